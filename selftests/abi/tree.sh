#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Builds these tests where they would live in a kernel tree: tree.sh DIR
#
# Makes DIR the part of the packaged kernel source that tools/testing/selftests needs to build one of its
# directories, with this directory in it, unchanged, as pmheap/; builds it by the kernel's own Makefile; installs
# it, and says what came out.
set -eu

dir=$1
here=$(cd "$(dirname "$0")" && pwd)
package=linux-source-6.1
selftests=$dir/tools/testing/selftests

"$here/harness.sh" "$here/../../build/cache/kselftest-6.1"	# has the package installed
rm -rf "$dir"
mkdir -p "$dir"
tar -xJf "/usr/src/$package.tar.xz" -C "$dir" --strip-components=1 \
	"$package/tools/testing/selftests" "$package/scripts/subarch.include"
mkdir -p "$dir/include/uapi/linux" "$selftests/pmheap"
cp "$here/../../uapi/linux/pmheap.h" "$dir/include/uapi/linux/"
cp "$here"/*.c "$here"/*.h "$here"/*.sh "$here/Makefile" "$selftests/pmheap/"

make -s -C "$selftests" TARGETS=pmheap FORCE_TARGETS=1 install
n=0
for source in "$here"/*.c; do
	program=$selftests/kselftest_install/pmheap/$(basename "$source" .c)
	[ -x "$program" ] || { echo "tree.sh: $program was not built" >&2; exit 1; }
	n=$((n + 1))
done
echo "$n programs built and installed in $selftests/kselftest_install/pmheap"
