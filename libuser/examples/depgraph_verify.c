// SPDX-License-Identifier: MIT
/*
 * depgraph verify: after a cut, every acknowledged package is there with all its edges, no package is there in
 * part, and nothing is in the pool that the graph does not reach.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "depgraph.h"

struct verdict {
	uint64_t acknowledged, missing;
	uint64_t packages, stubs, edges;
	uint64_t bad;
};

static void bad(struct verdict *v, const char *name, const char *what)
{
	if (v->bad++ < 20)
		fprintf(stderr, "depgraph: %s: %s\n", name, what);
}

/* A node's edges lead, in order, to nodes named as the text says. */
static void verify_edges(const struct depgraph *g, const struct graph_index *index, const struct node *n,
			 const struct text_package *p, struct verdict *v)
{
	const struct edges *e = pmheap_ptr(g->h, n->edges);
	struct pmheap_object o;
	size_t i;

	if (pmheap_object(g->h, n->edges, &o) || o.off != n->edges || o.type != TYPE_EDGES ||
	    o.state != PMHEAP_PUBLISHED || o.size < sizeof(*e) + p->deps * sizeof(uint64_t)) {
		bad(v, n->name, "its edges are no published edge array");
		return;
	}
	if (e->count != p->deps) {
		bad(v, n->name, "it does not have all its edges");
		return;
	}
	for (i = 0; i < e->count; i++) {
		if (graph_index_of(index, e->node[i]) == index->count)
			bad(v, n->name, "an edge leads to no node");
		else if (strcmp(graph_node(g, e->node[i])->name, p->dep[i]) != 0)
			bad(v, n->name, "an edge leads to another package");
	}
	v->edges += e->count;
}

static void verify_node(const struct depgraph *g, const struct graph_index *index, uint64_t off,
			const struct text *t, struct verdict *v)
{
	const struct node *n = graph_node(g, off);
	const struct text_package *p;
	struct pmheap_object o;

	if (pmheap_object(g->h, off, &o) || o.off != off || o.type != TYPE_NODE || o.state != PMHEAP_PUBLISHED ||
	    o.size < sizeof(*n) + n->name_len + 1 || n->name[n->name_len]) {
		bad(v, "a node", "it is no published node");
		return;
	}
	if (!n->edges) {
		v->stubs++;
		return;
	}
	v->packages++;
	p = text_find(t, n->name);
	if (p)
		verify_edges(g, index, n, p, v);
	else
		bad(v, n->name, "the text has no such package");
}

/* Published objects of a type, by iteration: as many as the graph reaches. */
static void verify_count(const struct depgraph *g, uint32_t type, uint64_t reached, const char *what,
			 struct verdict *v)
{
	struct pmheap_object o;
	uint64_t cursor = 0, n = 0;
	int rc;

	while ((rc = pmheap_next(g->h, type, &cursor, &o)) == 1)
		n++;
	if (rc)
		bad(v, what, pmheap_strerror(rc));
	else if (n != reached)
		bad(v, what, "the pool holds more or fewer than the graph reaches");
}

/* A line that was cut off acknowledges nothing. */
static int verify_acks(const struct depgraph *g, const char *ack, struct verdict *v)
{
	size_t len;
	char *bytes = file_read(ack, &len), *line, *end;
	uint64_t off;

	if (!bytes) {
		fprintf(stderr, "depgraph: cannot read %s\n", ack);
		return -1;
	}
	for (line = bytes; (end = strchr(line, '\n')); line = end + 1) {
		size_t chars = (size_t)(end - line);

		if (chars && line[chars - 1] == '\r')	/* from a terminal line */
			chars--;
		if (!chars)
			continue;
		v->acknowledged++;
		off = graph_find(g, line, chars);
		if (!off || !graph_node(g, off)->edges) {
			*end = 0;
			v->missing++;
			bad(v, line, "acknowledged, and not there");
		}
	}
	free(bytes);
	return 0;
}

static int verify(const struct depgraph *g, const struct text *t, const char *ack, struct verdict *v)
{
	struct graph_index index;
	size_t i;
	int rc;

	rc = graph_index_make(g, &index);
	if (rc)
		bad(v, GRAPH_NAME, "its chains hold more nodes than it counts");
	for (i = 0; i < index.count; i++)
		verify_node(g, &index, index.off[i], t, v);
	if (v->packages != g->graph->packages || v->edges != g->graph->edges || index.count != g->graph->nodes)
		bad(v, GRAPH_NAME, "its counters differ from what it holds");
	verify_count(g, TYPE_NODE, index.count, "nodes", v);
	verify_count(g, TYPE_EDGES, v->packages, "edge arrays", v);
	verify_count(g, TYPE_GRAPH, 1, "graphs", v);
	verify_count(g, TYPE_BUCKETS, 1, "bucket arrays", v);
	free(index.off);
	return verify_acks(g, ack, v);
}

int depgraph_verify(const char *region, const char *pool, const char *file, const char *ack)
{
	struct verdict v = { .bad = 0 };
	struct depgraph g;
	struct text t;
	int rc;

	rc = text_read(&t, file);
	if (!rc)
		rc = graph_open(&g, region, pool, false);
	if (!rc) {
		rc = verify(&g, &t, ack, &v);
		graph_close(&g);
	}
	text_free(&t);
	if (rc)
		return 1;
	printf("acknowledged %" PRIu64 ", of them missing %" PRIu64 "; packages %" PRIu64 ", stubs %" PRIu64
	       ", edges %" PRIu64 ", bad %" PRIu64 "\n",
	       v.acknowledged, v.missing, v.packages, v.stubs, v.edges, v.bad);
	return v.bad ? 1 : 0;
}
