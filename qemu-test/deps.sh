#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Installs the Debian packages that a step needs: deps.sh PACKAGE|@GROUP...
# A no-op that touches no network when everything is there.
set -euo pipefail

declare -A group=(
	[build]="gcc make libc6-dev python3 kmod bc xz-utils"
	[check]="sparse clang clang-tidy libclang-rt-dev g++ gcc-multilib valgrind libc6-dbg groff man-db rsync git xfsprogs btrfs-progs cryptsetup-bin dosfstools fdisk bash-completion"
	[coverage]="llvm"
	[debug]="linux-source-6.1 gcc-12 make flex bison bc libelf-dev xz-utils kmod"
	[user]="pkg-config libblkid-dev"
	[run]="qemu-system-x86 busybox-static ndctl kmod xz-utils zstd python3 util-linux"
)

packages_of() {
	local arg
	for arg in "$@"; do
		case $arg in
		@*) [[ -v group[${arg#@}] ]] || { echo "deps.sh: no group $arg" >&2; return 1; }
		    tr ' ' '\n' <<<"${group[${arg#@}]}" ;;
		*)  echo "$arg" ;;
		esac
	done
}

missing_of() {
	local wanted
	wanted=$(sort -u)
	# dpkg-query fails for a package it never heard of, which is an answer.
	comm -23 <(echo "$wanted") \
		<(xargs dpkg-query -W -f '${Package} ${db:Status-Status}\n' <<<"$wanted" 2>/dev/null |
			sed -n 's/ installed$//p' | sort -u)
}

packages=$(packages_of "$@")
[[ -n $(missing_of <<<"$packages") ]] || exit 0

# Parallel makes may come here together, and apt's list lock does not wait:
# the script is its own lock file.
exec 9<"$0"
flock 9
mapfile -t missing < <(missing_of <<<"$packages")
((${#missing[@]})) || exit 0
((EUID == 0)) || { echo "deps.sh: need root to install: ${missing[*]}" >&2; exit 1; }

echo "deps.sh: installing ${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get -q update >&2
apt-get -q install -y --no-install-recommends -o DPkg::Lock::Timeout=600 "${missing[@]}" >&2
