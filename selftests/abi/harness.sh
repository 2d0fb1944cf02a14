#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Gets the kernel's own test harness: harness.sh DIR
#
# Makes DIR/tools/testing/selftests/ with kselftest_harness.h, kselftest.h, lib.mk and the runner, out of the
# packaged kernel source, which it installs when it is missing. Does nothing when they are there.
set -eu

dir=$1
package=linux-source-6.1
want="kselftest_harness.h kselftest.h lib.mk kselftest"

[ -e "$dir/complete" ] && exit 0

mkdir -p "$(dirname "$dir")"
exec 9>"$dir.lock"
flock 9
[ -e "$dir/complete" ] && exit 0

tarball=/usr/src/$package.tar.xz
if [ ! -e "$tarball" ]; then
	apt-get -q install -y --no-install-recommends "$package" >&2 || {
		apt-get -q update >&2
		apt-get -q install -y --no-install-recommends "$package" >&2
	}
fi

tmp=$(mktemp -d "$dir.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
set --
for path in $want; do
	set -- "$@" "$package/tools/testing/selftests/$path"
done
tar -xJf "$tarball" -C "$tmp" --strip-components=1 "$@"
touch "$tmp/complete"
chmod 755 "$tmp"
rm -rf "$dir"
mv "$tmp" "$dir"
