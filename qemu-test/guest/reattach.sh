#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The crash lab's second boot: crash images through the real module. The host puts an image into the NVDIMM,
# behind our back, and says its name on /dev/cmd; "trace NAME" asks for a trace of its recovery. We attach, look,
# use, detach, check, and tell on /dev/ack.

notes() { LD_PRELOAD=/test/libnotes.so "$@"; }

# Pages of the device that the check has read are of the image before.
forget_pages() {
	blockdev --flushbufs "$NVDIMMS"
	echo 3 >/proc/sys/vm/drop_caches
}

recover() { # NAME HOW
	[ "$2" != trace ] || tracectl start "$1"
	region=$(pmheap attach "$NVDIMMS" | cut -d ' ' -f 1) &&
		notes pmheap create "$region" revived >/dev/null &&
		notes pmheap destroy "$region" revived >/dev/null
	ok=$?
	[ "$2" != trace ] || tracectl stop
	return $ok
}

reattach() {
	forget_pages
	recover "$1" "$2" || return 1
	pmheap info "$region" || return 1
	pmheap detach "$region" || return 1
	forget_pages
	pmheap check "$NVDIMMS"
}

echo ready >/dev/ack
while read -r how name </dev/cmd && [ "$how" != end ]; do
	if reattach "$name" "$how" >/tmp/said 2>&1; then
		replayed=$(sed -n 's/.*[^0-9]\([0-9]*\) records replayed.*/\1/p' /tmp/said)
		echo "done $name ${replayed:-0}" >/dev/ack
	else
		sed 's/^/# /' /tmp/said
		echo "failed $name" >/dev/ack
		pmheap detach "$region" --force
	fi
done
