#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds pmheap.ko out of tree: module.sh KERNEL DIR [MAKE ARGUMENT...]
#
# KERNEL is 6.1, 6.12 (fetched by kernel.sh), or the build directory of a kernel. DIR gets a tree of links to
# the sources and all that is built, so kernels do not meet and the source tree stays clean.
set -euo pipefail

(($# >= 2)) || { echo "usage: module.sh 6.1|6.12|KDIR DIR [MAKE ARGUMENT...]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
kernel=$1 dir=$2
shift 2

"$here/deps.sh" @build
if [[ $kernel == */* ]]; then
	headers=$kernel
else
	"$here/kernel.sh" "$kernel"
	headers=$root/build/cache/kernel-$kernel/headers
fi

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
exec 9>"$dir/lock"
flock 9

find "$dir" -xtype l -delete  # to sources that are gone, or have moved with the repository
(cd "$root" && find Kbuild kmod uapi \( -name '*.[ch]' -o -name Kbuild \) ! -name '*.mod.c') | while read -r file; do
	[[ $dir/$file -ef $root/$file ]] && continue
	mkdir -p "$dir/$(dirname "$file")"
	ln -sf "$root/$file" "$dir/$file"
done

# No BTF for modules: that takes the kernel's vmlinux with its debug information.
make -s -C "$headers" M="$dir" CONFIG_DEBUG_INFO_BTF_MODULES= "$@" modules
ln -sf kmod/pmheap.ko "$dir/pmheap.ko"
