#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# make run, second boot: what the power cut left is whole, and the load goes on to its end.
set -e

say() { printf '\n# %s\n' "$*"; }

say "check of the device as the cut left it"
pmheap check "$NVDIMMS"
say "attach, which recovers"
pmheap attach "$NVDIMMS"
pmheap info label:run
say "every acknowledged package against the text"
depgraph verify label:run packages /test/graph.txt /test/acks
say "the load goes on"
depgraph load label:run packages /test/graph.txt --ack /dev/ack
pmheap stat label:run packages
say "detach and check"
pmheap detach label:run
pmheap check "$NVDIMMS"
