#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The README's example is compiled as it stands there, and run twice on a file: region: it counts on.
set -euo pipefail
cd "$(dirname "$0")/../.."

user=build/libuser
dir=$(mktemp -d build/check/readme.XXXXXX)
trap 'rm -rf "$dir"' EXIT

awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' README.md >"$dir/example.c"
[[ -s $dir/example.c ]] || { echo "README.md has no C example" >&2; exit 1; }
gcc -std=gnu11 -Wall -Wextra -Werror -Ilibuser/include "$dir/example.c" "$user/libpmheap.a" -pthread -o "$dir/example"
g++ -x c++ -std=c++20 -fsyntax-only -Ilibuser/include <(printf '#include <pmheap.h>\n')

"$user/pmheap" format "file:$dir/region" --size 32M
first=$("$dir/example" "file:$dir/region")
second=$("$dir/example" "file:$dir/region")
echo "first: $first; second: $second"
[[ $first && $second && $first != "$second" ]]
"$user/pmheap" check "$dir/region"
