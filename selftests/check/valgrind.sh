#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# One test program of the library on a file: region, under valgrind: valgrind.sh TEST
set -euo pipefail

build=$(cd "$(dirname "$0")/../.." && pwd)/build
region=$build/check/valgrind-$1.region
export PMHEAP_TEST_REGION=file:$region TAP_SECONDS=300 PMHEAP_TEST_SPAN=0x40000000

rm -f "$region"
"$build/libuser/pmheap" format "file:$region" --size 64M >/dev/null
# The child of each test inherits valgrind, and its error makes the test fail.
exec valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite "$build/selftests/lib/$1"
