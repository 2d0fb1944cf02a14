#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The answers of `depgraph query`, computed from the text alone.

depgraph_reference.py FILE rdeps NAME | top N | path FROM TO
"""
import collections
import sys


def read(path):
    graph = {}
    with open(path, encoding="utf-8") as f:
        for line in f:
            name, _, deps = line.rstrip("\n").partition("\t")
            if name and name not in graph:
                graph[name] = [d for d in deps.split(",") if d]
    return graph


def key(name):
    return name.encode()


def rdeps(graph, name):
    return sorted((p for p, deps in graph.items() if name in deps), key=key)


def top(graph, n):
    count = collections.Counter(d for deps in graph.values() for d in deps)
    ranked = sorted(count.items(), key=lambda item: (-item[1], key(item[0])))
    return [f"{number} {name}" for name, number in ranked[:n]]


def path(graph, start, end):
    """Distances to the end over reversed edges; then downhill from the start, smallest name first."""
    reverse = collections.defaultdict(list)
    for package, deps in graph.items():
        for dep in deps:
            reverse[dep].append(package)
    distance = {end: 0}
    queue = collections.deque([end])
    while queue:
        at = queue.popleft()
        for before in reverse[at]:
            if before not in distance:
                distance[before] = distance[at] + 1
                queue.append(before)
    if start not in distance:
        return ["no path"]
    way = [start]
    while way[-1] != end:
        here = way[-1]
        way.append(min((d for d in graph[here] if distance.get(d, -1) == distance[here] - 1), key=key))
    return [" -> ".join(way)]


def main(argv):
    if len(argv) < 4:
        sys.exit(__doc__)
    graph, what = read(argv[1]), argv[2]
    names = set(graph).union(*map(set, graph.values()))
    wanted = [] if what == "top" else argv[3:]
    for name in wanted:
        if name not in names:
            sys.exit(f"there is no package {name}")
    if what == "rdeps":
        lines = rdeps(graph, argv[3])
    elif what == "top":
        lines = top(graph, int(argv[3]))
    elif what == "path":
        lines = path(graph, argv[3], argv[4])
    else:
        sys.exit(__doc__)
    print("\n".join(lines) if lines else "", end="\n" if lines else "")


main(sys.argv)
