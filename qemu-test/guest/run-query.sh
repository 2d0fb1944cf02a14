#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# make run, third boot: answers straight from the heap. /test/queries has one query a line; the answer to query
# N follows a line "query N", and after "query end" comes the rest.
set -e

now() { cut -d ' ' -f 1 /proc/uptime; }

began=$(now)
pmheap attach "$NVDIMMS" >/dev/null
attached=$(now)
n=0
while read -r query; do
	n=$((n + 1))
	echo "query $n"
	# shellcheck disable=SC2086  # words of a query
	depgraph query label:run packages $query </dev/null
done </test/queries
echo "query end"
echo "uptime at attach $began s, attached $attached s, answered $(now) s"
depgraph verify label:run packages /test/graph.txt /test/acks
pmheap detach label:run
pmheap check "$NVDIMMS"
