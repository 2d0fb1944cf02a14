#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds a debug kernel out of Debian's kernel source: debug-kernel.sh kasan|kcsan
#
# Makes build/cache/kernel-6.1-KIND/ as kernel.sh would leave one, for vm.py --kernel 6.1-KIND, and
#   linux/                  the source tree it was built in, some 2 GB
#   headers                 the same: make -C .../headers M=...
#   config                  what was asked for; another one than config/*.config is built anew
#
# That takes about a quarter of an hour on two cores. A build that was cut short goes on where it was. The tree
# stays where it is built: make remembers its path.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
package=linux-source-6.1

case ${1-} in
kasan|kcsan) kind=$1 ;;
*) echo "usage: debug-kernel.sh kasan|kcsan" >&2; exit 2 ;;
esac
dir=$root/build/cache/kernel-6.1-$kind
tree=$dir/linux

wanted() { cat "$here/config/common.config" "$here/config/$kind.config"; }

complete() { [[ -s $dir/release ]] && wanted | cmp -s - "$dir/config"; }

unpack() {
	[[ -e $dir/unpacked ]] && return
	rm -rf "$tree"
	mkdir -p "$tree"
	tar -xJf "/usr/src/$package.tar.xz" -C "$tree" --strip-components=1
	touch "$dir/unpacked"
}

# kconfig drops in silence what it cannot satisfy: a kernel without KASAN would find nothing.
all_there() {
	local line lost=0
	while read -r line; do
		case $line in
		CONFIG_*) grep -qxF "$line" "$tree/.config" && continue ;;
		"# CONFIG_"*) grep -q "^${line:2:-11}=" "$tree/.config" || continue ;;
		*) continue ;;
		esac
		echo "debug-kernel.sh: the configuration lost \"$line\"" >&2
		lost=1
	done < <(wanted)
	return $lost
}

configure() {
	make -s -C "$tree" CC=gcc-12 tinyconfig >/dev/null
	wanted | grep -E '^(# )?CONFIG_' >>"$tree/.config"
	# It tells of each line that replaces one of tinyconfig's.
	make -s -C "$tree" CC=gcc-12 olddefconfig 2>&1 | grep -v 'warning: override:' >&2 || true
	all_there
}

place() {
	local release
	release=$(make -s -C "$tree" kernelrelease)
	rm -rf "${dir:?}/lib"
	make -s -C "$tree" CC=gcc-12 INSTALL_MOD_PATH="$dir" modules_install
	rm -f "$dir/lib/modules/$release"/{build,source}
	rm -f "$dir/vmlinux"
	cp "$tree/arch/x86/boot/bzImage" "$dir/vmlinuz"  # with KASAN the ELF kernel does not boot by PVH
	ln -sfn linux "$dir/headers"
	wanted >"$dir/config"
	echo "$release" >"$dir/release"
}

complete && exit 0
"$here/deps.sh" @debug
mkdir -p "$dir"
exec 8>"$dir.lock"
flock 8
complete && exit 0

rm -f "$dir/release"
unpack
configure
echo "debug-kernel.sh: building the $kind kernel, which takes a while; $dir/build.log" >&2
make -C "$tree" CC=gcc-12 -j"$(nproc)" bzImage modules >"$dir/build.log" 2>&1 ||
	{ tail -20 "$dir/build.log" >&2; exit 1; }
place
echo "debug-kernel.sh: $kind is $(<"$dir/release")" >&2
