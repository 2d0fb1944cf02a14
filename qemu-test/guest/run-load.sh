#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# make run, first boot: a new heap, and packages into it until the power goes.
set -e

pmheap format "$NVDIMMS" --label run
pmheap attach "$NVDIMMS"
pmheap create label:run packages --mode 600
depgraph load label:run packages /test/graph.txt --ack /dev/ack
