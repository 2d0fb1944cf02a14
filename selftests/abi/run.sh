#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs the kselftests of the ABI on one region: run.sh [DIR] [NAME...]
#
# DIR holds the programs (default: where this script is); NAMEs run only those. In the environment PMHEAP_REGION
# and PMHEAP_DEVICE say which region, see fixture.h; without PMHEAP_DEVICE the programs that need a block device
# are left out. PMHEAP_SCOPE=media leaves out those whose results cannot depend on what the region is made of:
# for the second and further kinds of region on one kernel. The kernel's nbd module serves the reads held in
# flight (pins); without PMHEAP_DEVICE detach uses up four spare emulated regions of 16M (see victim.h). What
# is missing is skipped, and says so. Only a kernel that was built to inject failures runs `failures`.
#
# Prints one TAP stream, numbered through; exits 1 when a test failed, or when a program ended before it had told
# all its results. For busybox as well.
set -u

dir=${1:-$(dirname "$0")}
[ $# -gt 0 ] && shift
anywhere="scrub sizes memory control reserve apply names perms lifetime fuzz"
media="region pool objects map pins threads detach"
with_device="attach damage unbind"
with_injection="failures"

tests="$*"
if [ -z "$tests" ]; then
	tests=$media
	[ -n "${PMHEAP_DEVICE-}" ] && tests="$tests $with_device"
	if [ "${PMHEAP_SCOPE-all}" != media ]; then
		tests="$anywhere $tests"
		[ -e /sys/kernel/debug/failslab ] && tests="$tests $with_injection"
	fi
fi

out=$(mktemp)
trap 'rm -f "$out"' EXIT
n=0 failed=0 passed=0 skipped=0

# Its own number and the program's name instead of the program's number. The harness does not name what it
# skips: that is the test it said it runs.
emit() { # PROGRAM LINE
	n=$((n + 1))
	rest=$(echo "$2" | sed 's/^\(not \)\{0,1\}ok [0-9]* *-\{0,1\} *//')
	case $2 in
	"not ok"*) failed=$((failed + 1)); echo "not ok $n - $1: $rest" ;;
	*"# SKIP"*) skipped=$((skipped + 1)); echo "ok $n - $1: $running $rest" ;;
	*) passed=$((passed + 1)); echo "ok $n - $1: $rest" ;;
	esac
}

echo "TAP version 13"
for t in $tests; do
	begun=$(date +%s)
	"$dir/$t" >"$out" 2>&1
	rc=$?
	told=$n bad=$failed
	while IFS= read -r line; do
		case $line in
		"ok "*|"not ok "*) emit "$t" "$line" ;;
		1..*) plan=${line#1..} ;;
		"TAP version"*) ;;
		"#  RUN "*) running=$(echo "$line" | sed 's/^#  RUN *//; s/ \.\.\.$//') ;;
		"#            OK "*) ;;
		"# "*) echo "$line" ;;
		*) echo "# $line" ;;
		esac
	done <"$out"
	told=$((n - told))
	echo "# $t: $(($(date +%s) - begun)) s"
	if [ "$told" -ne "${plan:-0}" ] || { [ $rc -ne 0 ] && [ "$bad" -eq $failed ]; }; then
		emit "$t" "not ok 0 ended with status $rc after $told of ${plan:-?} results"
	fi
	plan=
done
echo "1..$n"
echo "# abi: $passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
