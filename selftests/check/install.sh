#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What make install puts somewhere works from there: the library, static and shared, found by pkg-config; the
# command; the manual. TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."

root=$PWD
dir=$(mktemp -d build/check/install.XXXXXX)
dir=$root/$dir
trap 'rm -rf "$dir"' EXIT
export PKG_CONFIG_PATH=$dir/opt/lib/pkgconfig LD_LIBRARY_PATH=$dir/opt/lib MANPATH=$dir/opt/share/man
log=$dir/log
n=0 failed=0

shows() { # WHAT COMMAND...
	local what=$1
	shift
	n=$((n + 1))
	if "$@" >"$log" 2>&1; then
		echo "ok $n - $what"
	else
		failed=1
		echo "not ok $n - $what"
		tail -n 20 "$log" | sed 's/^/# /'
	fi
}

compiles() { # PROGRAM FLAGS...
	local program=$1
	shift
	# shellcheck disable=SC2046  # words
	gcc -std=gnu11 -Wall -Werror $(pkg-config --cflags libpmheap) libuser/examples/hello.c "$@" -o "$dir/$program"
}

runs() { # PROGRAM
	rm -f "$dir/region"
	"$dir/opt/sbin/pmheap" format "file:$dir/region" --size 32M && "$dir/$1" "file:$dir/region" &&
		"$dir/opt/sbin/pmheap" check "$dir/region"
}

lab_finds_a_late_store() {
	local found
	# shellcheck disable=SC2046  # words
	gcc -std=gnu11 $(pkg-config --cflags libpmheap-lab) libuser/examples/orders.c -o "$dir/orders" \
		$(pkg-config --libs libpmheap-lab) || return 1
	"$dir/opt/sbin/pmheap" lab "$dir/orders" {} || return 1
	found=$("$dir/opt/sbin/pmheap" lab "$dir/orders" {} late)
	echo "$found"
	[[ $found == "late: libuser/examples/orders.c:"*"1 mistake" ]]
}

# Nor has the loader to be told where the lab's library is.
lab_finds_its_library() {
	env -u LD_LIBRARY_PATH "$dir/opt/sbin/pmheap" lab "$dir/orders" {}
}

exports_no_more_than_its_map() {
	diff <(nm -D --defined-only "$dir/opt/lib/libpmheap.so" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort) \
		<(sed -n 's/^\t\t\(pmheap_[a-z_0-9]*\);$/\1/p' libuser/libpmheap.map | sort)
}

static_exports_no_more() {
	diff <(nm --defined-only "$dir/opt/lib/libpmheap.a" | awk '$2 ~ /[TDBRC]/ { print $3 }' | sort) \
		<(sed -n 's/^\t\t\(pmheap_[a-z_0-9]*\);$/\1/p' libuser/libpmheap.map | sort)
}

manual_is_sound() {
	local page bad=0
	for page in "$dir"/opt/share/man/man[0-9]/*; do
		grep -q '^\.so ' "$page" && continue
		# What groff warns of is wrong on every reader's screen.
		groff -man -Tutf8 -ww -z "$page" 2>&1 | grep . && { echo "$page"; bad=1; }
	done
	return $bad
}

shows "make install" make -s install "PREFIX=$dir/opt" DESTDIR=
# shellcheck disable=SC2046
shows "a program compiles against the shared library" compiles shared $(pkg-config --libs libpmheap)
shows "and runs" runs shared
shows "a program compiles against the static library" compiles static "$dir/opt/lib/libpmheap.a" -pthread
shows "and runs" runs static
shows "the shared library exports what its map says" exports_no_more_than_its_map
shows "the static library exports the same" static_exports_no_more
shows "a program compiles for the lab, which finds its mistake" lab_finds_a_late_store
shows "the lab finds its library in the place where it was put" lab_finds_its_library
shows "the command tells its version" "$dir/opt/sbin/pmheap" version
shows "the manual has no groff warnings" manual_is_sound
shows "man finds a page" env MANPAGER=cat man 3 pmheap_open
shows "bash completion loads" bash -n "$dir/opt/share/bash-completion/completions/pmheap"
shows "the installed uapi header compiles" gcc -fsyntax-only -x c -I"$dir/opt/include" - <<<'#include <linux/pmheap.h>'
echo "1..$n"
exit $failed
