#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The tests of the ABI and of the library on each kind of region. A line "# on WHAT" says whose results follow.
# In the environment: KINDS, some of emulate, nvdimm, memmap, virtio-pmem; TESTS, some of abi, abi32, lib, storm.
# What cannot depend on the kind, 32-bit programs and the storm too, runs on the first alone.
status=0

# The tests detach, format and leave pools behind: each suite begins with an empty region.
fresh() { # DEVICE -> /dev/pmheapN
	for region in $(pmheap list | sed -n 's/^\(pmheap[0-9]*\) .* '"${1#/dev/}"' .*/\1/p'); do
		pmheap detach "$region" --force >&2
	done
	pmheap format "$1" --force >/dev/null && pmheap attach "$1" | cut -d ' ' -f 1
}

on() { # KIND REGION [DEVICE]
	for suite in $TESTS; do
		case $suite in abi32|storm) [ "$PMHEAP_SCOPE" = all ] || continue ;; esac
		region=$2
		[ -z "$3" ] || region=$(fresh "$3")
		echo "# on $1: $suite"
		case $suite in
		abi*) PMHEAP_REGION=$region PMHEAP_DEVICE=$3 "/test/$suite/run.sh" "/test/$suite" ;;
		lib)  /test/lib/run.sh /test/lib "${region#/dev/}" ;;
		storm) /test/lib/storm.sh /test/lib "${region#/dev/}" "$3" ;;
		esac || status=1
	done
}

export PMHEAP_SCOPE=all
for kind in $KINDS; do
	case $kind in
	emulate)     on "$kind" /dev/pmheap0 ;;
	nvdimm)      on "$kind" - "$NVDIMMS" ;;
	memmap)      on "$kind" - "$MEMMAPS" ;;
	virtio-pmem) on "$kind" - "$VIRTIO_PMEMS" ;;
	esac
	PMHEAP_SCOPE=media
done
exit $status
