#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# sparse on the host build of the engine and on the library: the media's byte order, in this world too. TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."

# What sparse says of a file of ours; of the compiler's own headers it does not know every builtin.
said_of() {
	sparse -std=gnu11 -Wbitwise -Wno-decl -Wno-non-pointer-null -m64 -D__x86_64__=1 -D_GNU_SOURCE -Ikmod/core \
		-Ilibuser/include -Iuapi "$1" 2>&1 | grep -v -e '^/usr/' -e ': note: in included file:$'
}

# It must be able to fail: a little-endian field read as it is.
sample=$(mktemp --suffix=.c)
trap 'rm -f "$sample"' EXIT
printf '#include "format.h"\nu32 wrong(__le32 v) { return v; }\n' >"$sample"

files=(kmod/core/*.c libuser/src/*.c)
echo "1..$((${#files[@]} + 1))"
n=1
if [[ $(said_of "$sample") == *"different base types"* ]]; then
	echo "ok $n - sparse sees a wrong byte order"
else
	echo "not ok $n - sparse sees a wrong byte order"
fi
for file in "${files[@]}"; do
	n=$((n + 1))
	if said=$(said_of "$file"); then
		echo "not ok $n - sparse $file"
		sed 's/^/# /' <<<"$said"
	else
		echo "ok $n - sparse $file"
	fi
done
