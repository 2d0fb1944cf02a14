#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The crash lab's first boot: each workload on the NVDIMM, traced from a quiet region on. In the environment:
# PROCESSES, STORM, NAMES, POOLS: rounds.
set -e

notes() { LD_PRELOAD=/test/libnotes.so "$@"; }

# A fresh region; what its first attach zeroes in the background is done before anything is traced.
quiet_region() {
	pmheap format "$NVDIMMS" --force >/dev/null
	while :; do
		region=$(pmheap attach "$NVDIMMS" | cut -d ' ' -f 1)
		sleep 1
		pmheap detach "$region"
		pmheap check "$NVDIMMS" | grep -q ' 0 not zeroed' && break
	done
	region=$(pmheap attach "$NVDIMMS" | cut -d ' ' -f 1)
}

traced() { # NAME COMMAND...
	name=$1
	shift
	echo "# $name"
	tracectl start "$name"
	"$@"
	tracectl stop
}

storm() {
	tracectl fences begin "$region" storm
	notes workload storm "$region" "$PROCESSES" "$STORM"
	tracectl fences end "$region" storm
}

detach_attach() {
	pmheap detach "$region"
	pmheap attach "$NVDIMMS" >/dev/null
	notes workload storm "$region" "$PROCESSES" 2
}

quiet_region
workload storm-prepare "$region" "$PROCESSES"
traced storm storm
traced names notes workload names "$region" 2 "$NAMES"
notes pmheap create "$region" packages >/dev/null
traced depgraph notes depgraph load "$region" packages /test/graph.txt
workload pools-prepare "$region"
traced pools notes workload pools "$region" 1 "$POOLS"
traced detach detach_attach
pmheap detach "$region"
pmheap check "$NVDIMMS"
