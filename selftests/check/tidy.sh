#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# clang-tidy on the engine, the library, the command and the examples, by .clang-tidy. TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."

check() { # NUMBER FILE
	local said
	said=$(clang-tidy --quiet "$2" -- -std=gnu11 -D_GNU_SOURCE -DPMHEAP_VERSION='"0"' -Ilibuser/include -Iuapi \
		-Ikmod/core -Ilibuser/src -Ilibuser/lab 2>/dev/null) && [[ -z $said ]] && { echo "ok $1 - tidy $2"; return; }
	{ echo "not ok $1 - tidy $2"; sed 's/^/# /' <<<"$said"; } | cat
}
export -f check

files=(kmod/core/*.c libuser/src/*.c libuser/lab/*.c libuser/tools/*.c libuser/examples/*.c)
echo "1..${#files[@]}"
for n in "${!files[@]}"; do echo "$((n + 1)) ${files[n]}"; done |
	xargs -P "$(nproc)" -L 1 bash -c 'out=$(check "$@"); echo "$out"' _
