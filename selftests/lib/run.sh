#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Runs the library's tests on one region: run.sh DIR REGION [TOOL]
#
# DIR holds the test programs. A file: region is made new by TOOL (the command `pmheap`) for each program, so
# that one program's debris is not the next one's. Prints one TAP stream and ends with a line of totals; exits 1
# when a test failed, or when a program died before it had told all its results.
set -u

dir=$1
region=$2
tool=${3-}
size=${PMHEAP_TEST_SIZE:-64M}
both="pool reserve apply object names flush address stat threads rdonly cxx"
case $region in
file:*) tests="$both file" ;;
*)      tests="$both process" ;;
esac

passed=0 failed=0 skipped=0
export PMHEAP_TEST_REGION="$region"

fresh_region() {
	case $region in
	file:*)
		rm -f "${region#file:}"
		"$tool" format "$region" --size "$size" >/dev/null
	esac
}

count() { grep -c "$1" "$dir/out.tap"; }

for t in $tests; do
	if ! fresh_region; then
		echo "not ok - $t: cannot format $region"
		failed=$((failed + 1))
		continue
	fi
	"$dir/$t" >"$dir/out.tap"
	rc=$?
	cat "$dir/out.tap"
	skips=$(count '^ok .*# SKIP')
	bad=$(count '^not ok ')
	good=$(($(count '^ok ') - skips))
	plan=$(sed -n 's/^1\.\.//p' "$dir/out.tap")
	if [ "${plan:-0}" -ne $((good + bad + skips)) ] || [ "$rc" -ne 0 -a "$bad" -eq 0 ]; then
		echo "not ok - $t: ended with status $rc after $((good + bad + skips)) of ${plan:-?} results"
		bad=$((bad + 1))
	fi
	passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skips))
done
echo "# lib on $region: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
