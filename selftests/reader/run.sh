#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Holds the engine against a reader that knows nothing but format.rst: run.sh BUILD_DIR
#
# Golden images, and images made now: N random ones, and N power cuts. Then each law of the format broken by itself,
# and FLIPS random changes of each kind an image: seals, words under good seals, and records. And REPAIRS lost lines of
# each kind, repaired by the engine.
# Prints TAP, one program's after the other's; exits 1 when something failed.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
status=0

make -s -C "$here" O="$dir"
rm -rf "$dir/golden" "$dir/made" "$dir/cuts"
mkdir "$dir/golden" "$dir/made" "$dir/cuts"
"$here/golden.py" unpack "$dir/golden"
"$dir/images" "$dir/made"
"$dir/images" "$dir/made" "${SEED:-1}" "${N:-60}"
"$dir/scenes" "$dir/cuts" "${SEED:-1}" "${N:-60}"
for image in "$dir"/cuts/*.img; do
	"$dir/verdict" "$image" >"${image%.img}.txt"
done

"$here/vectors.py" || status=1
"$here/agree.py" "$dir/golden" "$dir/verdict" || status=1
"$here/agree.py" "$dir/made" "$dir/verdict" || status=1
"$here/agree.py" "$dir/cuts" || status=1
"$here/laws.py" "$dir/verdict" "$dir/golden/objects.img" || status=1
"$here/flips.py" "$dir/verdict" "${FLIPS:-15}" flip,forge,record "$dir"/golden/*.img || status=1
"$here/repairs.py" "$dir/verdict" "${REPAIRS:-3}" "$dir/golden/log.img" "$dir/golden/objects.img" || status=1
exit "$status"
