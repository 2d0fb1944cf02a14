// SPDX-License-Identifier: MIT
/* depgraph query: answers straight from the heap. What is computed on the way is volatile and thrown away. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "depgraph.h"

#define FAR UINT32_MAX

struct query {
	struct depgraph g;
	struct graph_index index;
};

static const struct node *node_at(const struct query *q, size_t i)
{
	return graph_node(&q->g, q->index.off[i]);
}

/* Edges of node i; a stub has none. */
static size_t edges_of(const struct query *q, size_t i, const uint64_t **to)
{
	const struct node *n = node_at(q, i);
	const struct edges *e = n->edges ? pmheap_ptr(q->g.h, n->edges) : NULL;

	*to = e ? e->node : NULL;
	return e ? e->count : 0;
}

static size_t find_index(const struct query *q, const char *name)
{
	uint64_t off = graph_find(&q->g, name, strlen(name));

	if (!off) {
		fprintf(stderr, "depgraph: there is no package %s\n", name);
		return q->index.count;
	}
	return graph_index_of(&q->index, off);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int query_rdeps(const struct query *q, const char *name)
{
	size_t count = q->index.count, want = find_index(q, name), i, j, n, found = 0;
	const char **names = calloc(count + 1, sizeof(*names));
	const uint64_t *to;

	if (!names || want == count) {
		free(names);
		return 1;
	}
	for (i = 0; i < count; i++) {
		n = edges_of(q, i, &to);
		for (j = 0; j < n && to[j] != q->index.off[want]; j++)
			;
		if (j < n)
			names[found++] = node_at(q, i)->name;
	}
	qsort(names, found, sizeof(*names), by_text);
	for (i = 0; i < found; i++)
		puts(names[i]);
	free(names);
	return 0;
}

struct rank {
	uint32_t count;
	const char *name;
};

static int by_rank(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int query_top(const struct query *q, const char *number)
{
	size_t count = q->index.count, i, j, n, top = strtoul(number, NULL, 10);
	struct rank *rank = calloc(count + 1, sizeof(*rank));
	const uint64_t *to;

	if (!rank)
		return 1;
	for (i = 0; i < count; i++)
		rank[i].name = node_at(q, i)->name;
	for (i = 0; i < count; i++) {
		n = edges_of(q, i, &to);
		for (j = 0; j < n; j++)
			rank[graph_index_of(&q->index, to[j])].count++;
	}
	qsort(rank, count, sizeof(*rank), by_rank);
	for (i = 0; i < count && i < top && rank[i].count; i++)
		printf("%" PRIu32 " %s\n", rank[i].count, rank[i].name);
	free(rank);
	return 0;
}

struct path {
	uint32_t *dist;		/* from the start */
	size_t *order;		/* as they were reached */
	bool *good;		/* on some shortest path */
	size_t reached;
};

static void path_search(const struct query *q, struct path *p, size_t from)
{
	size_t head, j, n, next;
	const uint64_t *to;

	memset(p->dist, 0xff, q->index.count * sizeof(*p->dist));
	p->dist[from] = 0;
	p->order[p->reached++] = from;
	for (head = 0; head < p->reached; head++) {
		n = edges_of(q, p->order[head], &to);
		for (j = 0; j < n; j++) {
			next = graph_index_of(&q->index, to[j]);
			if (p->dist[next] != FAR)
				continue;
			p->dist[next] = p->dist[p->order[head]] + 1;
			p->order[p->reached++] = next;
		}
	}
}

/* Of the nodes one step on that lead to the end by a shortest path, the one whose name comes first. */
static size_t path_next(const struct query *q, const struct path *p, size_t at)
{
	size_t best = q->index.count, j, n, next;
	const uint64_t *to;

	n = edges_of(q, at, &to);
	for (j = 0; j < n; j++) {
		next = graph_index_of(&q->index, to[j]);
		if (!p->good[next] || p->dist[next] != p->dist[at] + 1)
			continue;
		if (best == q->index.count || strcmp(node_at(q, next)->name, node_at(q, best)->name) < 0)
			best = next;
	}
	return best;
}

static void path_print(const struct query *q, struct path *p, size_t from, size_t end)
{
	size_t i, at;

	if (p->dist[end] == FAR) {
		puts("no path");
		return;
	}
	p->good[end] = true;
	for (i = p->reached; i-- > 0; ) {
		at = p->order[i];
		if (at != end)
			p->good[at] = path_next(q, p, at) != q->index.count;
	}
	fputs(node_at(q, from)->name, stdout);
	for (at = from; at != end; ) {
		at = path_next(q, p, at);
		printf(" -> %s", node_at(q, at)->name);
	}
	putchar('\n');
}

static int query_path(const struct query *q, const char *a, const char *b)
{
	size_t count = q->index.count, from = find_index(q, a), end = find_index(q, b);
	struct path p = {
		.dist = calloc(count + 1, sizeof(*p.dist)), .order = calloc(count + 1, sizeof(*p.order)),
		.good = calloc(count + 1, sizeof(*p.good)),
	};
	int rc = 1;

	if (p.dist && p.order && p.good && from != count && end != count) {
		path_search(q, &p, from);
		path_print(q, &p, from, end);
		rc = 0;
	}
	free(p.dist);
	free(p.order);
	free(p.good);
	return rc;
}

int depgraph_query(const char *region, const char *pool, int argc, char **argv)
{
	struct query q;
	int rc = 2;

	if (graph_open(&q.g, region, pool, false))
		return 1;
	if (graph_index_make(&q.g, &q.index))
		rc = 1;
	else if (argc == 2 && !strcmp(argv[0], "rdeps"))
		rc = query_rdeps(&q, argv[1]);
	else if (argc == 2 && !strcmp(argv[0], "top"))
		rc = query_top(&q, argv[1]);
	else if (argc == 3 && !strcmp(argv[0], "path"))
		rc = query_path(&q, argv[1], argv[2]);
	if (rc == 2)
		fputs("depgraph: query rdeps NAME, top N, or path FROM TO\n", stderr);
	free(q.index.off);
	graph_close(&q.g);
	return rc;
}
