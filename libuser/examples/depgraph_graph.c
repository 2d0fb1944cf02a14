// SPDX-License-Identifier: MIT
/* The graph's own structure in the pool: its root, its hash table. See depgraph.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "depgraph.h"

/* Root and bucket array become reachable in one step. */
static int graph_create(struct depgraph *g, uint64_t *root)
{
	struct pmheap_op ops[3] = { { .kind = PMHEAP_OP_PUBLISH }, { .kind = PMHEAP_OP_PUBLISH } };
	uint64_t buckets;
	struct graph *graph;
	int rc;

	rc = pmheap_reserve(g->h, sizeof(*graph), 0, TYPE_GRAPH, PMHEAP_ZERO, 1, root);
	if (!rc)
		rc = pmheap_reserve(g->h, GRAPH_BUCKETS * sizeof(uint64_t), 0, TYPE_BUCKETS, PMHEAP_ZERO, 1, &buckets);
	if (rc)
		return rc;
	graph = pmheap_ptr(g->h, *root);
	graph->magic = GRAPH_MAGIC;
	graph->buckets = buckets;
	rc = pmheap_persist(g->h, graph, sizeof(*graph));
	if (rc < 0)
		return rc;
	ops[0].off = *root;
	ops[1].off = buckets;
	ops[2] = (struct pmheap_op){
		.kind = PMHEAP_OP_NAME, .off = *root, .name = GRAPH_NAME, .name_len = strlen(GRAPH_NAME),
	};
	return pmheap_apply(g->h, ops, 3, NULL);
}

static int graph_attach(struct depgraph *g, bool create)
{
	int rc;

	rc = pmheap_name_get(g->h, GRAPH_NAME, strlen(GRAPH_NAME), &g->graph_off);
	if (rc == -ENOENT && create)
		rc = graph_create(g, &g->graph_off);
	if (rc)
		return rc;
	g->graph = pmheap_ptr(g->h, g->graph_off);
	if (g->graph->magic != GRAPH_MAGIC)
		return -EINVAL;
	g->bucket = pmheap_ptr(g->h, g->graph->buckets);
	return 0;
}

int graph_open(struct depgraph *g, const char *region, const char *pool, bool create)
{
	int rc;

	*g = (struct depgraph){ .h = NULL };
	rc = pmheap_open(region, pool, create ? 0 : PMHEAP_RDONLY, &g->h);
	if (rc == -ENOENT && create)
		rc = pmheap_create(region, pool, NULL, &g->h);
	if (rc == -EROFS)	/* a file: region that was cut off: a writer may recover it */
		rc = pmheap_open(region, pool, 0, &g->h);
	if (!rc)
		rc = graph_attach(g, create);
	if (rc) {
		fprintf(stderr, "depgraph: %s %s: %s\n", region, pool, pmheap_strerror(rc));
		graph_close(g);
	}
	return rc;
}

void graph_close(struct depgraph *g)
{
	if (g->h)
		pmheap_close(g->h);
	g->h = NULL;
}

uint32_t graph_bucket(const char *name, size_t len)
{
	uint64_t hash = 0xcbf29ce484222325ULL;	/* FNV-1a */
	size_t i;

	for (i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3ULL;
	return (uint32_t)(hash ^ hash >> 32) % GRAPH_BUCKETS;
}

struct node *graph_node(const struct depgraph *g, uint64_t off)
{
	return pmheap_ptr(g->h, off);
}

uint64_t graph_find(const struct depgraph *g, const char *name, size_t len)
{
	uint64_t off;
	struct node *n;

	for (off = g->bucket[graph_bucket(name, len)]; off; off = n->next) {
		n = graph_node(g, off);
		if (n->name_len == len && !memcmp(n->name, name, len))
			return off;
	}
	return 0;
}

static int by_offset(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

int graph_index_make(const struct depgraph *g, struct graph_index *index)
{
	uint64_t off;
	size_t room = g->graph->nodes;
	uint32_t b;

	index->count = 0;
	index->off = calloc(room + 1, sizeof(*index->off));
	if (!index->off)
		return -ENOMEM;
	for (b = 0; b < GRAPH_BUCKETS; b++) {
		for (off = g->bucket[b]; off; off = graph_node(g, off)->next) {
			if (index->count == room)	/* more than the graph says it has, or a ring */
				return -EUCLEAN;
			index->off[index->count++] = off;
		}
	}
	qsort(index->off, index->count, sizeof(*index->off), by_offset);
	return 0;
}

size_t graph_index_of(const struct graph_index *index, uint64_t off)
{
	uint64_t *found = bsearch(&off, index->off, index->count, sizeof(off), by_offset);

	return found ? (size_t)(found - index->off) : index->count;
}
