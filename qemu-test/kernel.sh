#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Fetches a Debian kernel for the VM: kernel.sh 6.1|6.12
#
# Makes build/cache/kernel-VERSION/ with
#   vmlinuz, vmlinux        the kernel, packed and unpacked (see vmlinux.py)
#   lib/modules/RELEASE/    its modules, with modules.dep
#   headers                 the build directory: make -C .../headers M=...
#   release                 one line, RELEASE; written last, so it marks a whole cache
#
# Everything is unpacked and nothing is installed: installing the headers of
# 6.12 would pull in the image, initramfs-tools and a boot entry on the host.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cache=$(dirname "$here")/build/cache

case ${1-} in
6.1)  meta=linux-image-amd64 ;;
6.12) meta=linux-image-6.12-amd64 ;;
*)    echo "usage: kernel.sh 6.1|6.12" >&2; exit 2 ;;
esac
dir=$cache/kernel-$1

depends() { apt-cache depends "$1" 2>/dev/null | sed -n 's/^ *|\?Depends: //p'; }

# What the metapackage points to, e.g. linux-image-6.1.0-57-amd64.
image_of() { depends "$1" | grep -m1 '^linux-image-[0-9]'; }

# The headers come in three packages, which find each other by relative links.
headers_of() { # RELEASE
	echo "linux-headers-$1"
	depends "linux-headers-$1" | grep -E '^linux-(headers|kbuild)-'
}

unpack() { # DIR PACKAGE...
	local to=$1 deb
	shift
	(cd "$to" && apt-get -q -o APT::Sandbox::User=root download "$@" >&2) || return
	for deb in "$to"/*.deb; do
		dpkg -x "$deb" "$to" || return
		rm "$deb"
	done
}

# The one absolute path in the headers names the place they would be installed in.
relocate_headers() { # DIR RELEASE
	local build=$1/usr/src/linux-headers-$2
	# shellcheck disable=SC2016  # for make, not for us
	sed -i 's|^include /usr/src/|include $(dir $(realpath $(lastword $(MAKEFILE_LIST))))../|' "$build/Makefile"
	ln -s "usr/src/linux-headers-$2" "$1/headers"
}

place_image() { # DIR RELEASE
	mv "$1/boot/vmlinuz-$2" "$1/vmlinuz"
	python3 "$here/vmlinux.py" "$1/vmlinuz" "$1/vmlinux"
	[[ -d $1/lib/modules ]] || { mkdir -p "$1/lib"; mv "$1/usr/lib/modules" "$1/lib/"; }
	depmod -b "$1" "$2"
	rm -rf "${1:?}/boot" "${1:?}/usr/share" "$1/lib/modules/$2"/{build,source}
}

[[ -s $dir/release ]] && exit 0

mkdir -p "$cache"
exec 8>"$cache/kernel-$1.lock"
flock 8
[[ -s $dir/release ]] && exit 0

# The last three are what the unpacked kbuild tools would have depended on.
"$here/deps.sh" kmod xz-utils zstd python3 make gcc-12 libc6-dev libelf1 libssl3 pahole
image=$(image_of "$meta") || { apt-get -q update >&2; image=$(image_of "$meta"); } ||
	{ echo "kernel.sh: apt knows no $meta" >&2; exit 1; }
release=${image#linux-image-}
mapfile -t packages < <(echo "$image"; headers_of "$release")

rm -rf "$cache/kernel-$1".??????  # of a run that was killed
tmp=$(mktemp -d "$cache/kernel-$1.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
# An old package list may name versions that the mirror has dropped by now.
unpack "$tmp" "${packages[@]}" || { apt-get -q update >&2; unpack "$tmp" "${packages[@]}"; }
relocate_headers "$tmp" "$release"
place_image "$tmp" "$release"
echo "$release" >"$tmp/release"
rm -rf "$dir"
mv "$tmp" "$dir"
echo "kernel.sh: $1 is $release" >&2
