#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# pmheap repair as a user meets it: what it says, when it writes, what it gives back. TAP.
set -uo pipefail
cd "$(dirname "$0")/../.."

pmheap=$PWD/build/libuser/pmheap
hello=$PWD/build/libuser/examples/hello
mkdir -p build/check
dir=$(mktemp -d "$PWD/build/check/repair.XXXXXX")
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
n=0 failed=0

shows() { # WHAT COMMAND...
	local what=$1
	shift
	n=$((n + 1))
	if "$@" >log 2>&1; then
		echo "ok $n - $what"
	else
		failed=1
		echo "not ok $n - $what"
		tail -n 20 log | sed 's/^/# /'
	fi
}

exits() { # STATUS COMMAND...
	local want=$1
	shift
	"$@" </dev/null >said 2>&1
	local got=$?
	cat said
	[[ $got == "$want" ]]
}

says() { # PATTERN STATUS COMMAND...
	local pattern=$1
	shift
	exits "$@" && grep -q -- "$pattern" said
}

number() { # OFFSET BYTES IMAGE
	od -A n -j "$1" -N "$2" -t "u$2" "$3" | tr -d ' '
}

flip() { # OFFSET
	local byte
	byte=$(number "$1" 1 image)
	printf '%b' "\\x$(printf %02x $((byte ^ 4)))" | dd of=image bs=1 seek="$1" conv=notrunc status=none
}

wipe() { # OFFSET
	head -c 64 /dev/zero | tr '\0' '\245' | dd of=image bs=1 seek="$1" conv=notrunc status=none
}

same() { # FILE FILE
	cmp "$1" "$2"
}

"$pmheap" format file:image --size 16M >/dev/null && "$hello" file:image >/dev/null || exit 1
cp image sound
chunk_table=$(number $((128 + 32)) 8 image)
page_table=$(number $((128 + 40)) 8 image)
page=$((page_table + 512 * 64))		# of the first chunk behind the front area, where hello's object is

shows "a sound region is clean" says clean 0 "$pmheap" repair image
shows "and is not written" same image sound

flip $((chunk_table + 64 + 8))
cp image damaged
shows "damage is shown" says '1 mended, 0 rebuilt, 0 held, 0 lost, 0 left' 1 "$pmheap" repair image
shows "and nothing is written without --yes" same image damaged
shows "nor is there an undo file" test ! -e image.undo
shows "with --yes it is mended" exits 0 "$pmheap" repair image --yes
shows "and check is clean" exits 0 "$pmheap" check image
shows "the same repair again has nothing to do" says clean 0 "$pmheap" repair image --yes
shows "the undo file gives the image back" exits 0 "$pmheap" repair image --revert image.undo
shows "byte for byte" same image damaged
shows "an undo file is not overwritten" exits 2 "$pmheap" repair image --yes
shows "and then nothing is written" same image damaged
rm image.undo

wipe "$page"
cp image damaged
shows "what cannot be told is held, and named" says 'name counter' 0 "$pmheap" repair image --yes --undo first
shows "and check is clean, and tells" says 'held .* pages' 0 "$pmheap" check image
shows "the name leads there still" says counter 0 "$pmheap" names file:image hello
shows "the program is told that its object is not known" exits 1 "$hello" file:image
shows "a region in use since is not reverted" exits 1 "$pmheap" repair image --revert first
shows "but by force" exits 0 "$pmheap" repair image --revert first --force
shows "JSON says what was done" says '"written":true' 0 "$pmheap" repair image --yes --undo second --json

shows "no region: status 2" exits 2 "$pmheap" repair first
shows "no file: status 2" exits 2 "$pmheap" repair nothing
shows "a broken undo file: status 2" exits 2 "$pmheap" repair image --revert image
echo "1..$n"
exit $failed
