/* SPDX-License-Identifier: MIT */
/*
 * A dependency graph in a pool, used in place.
 *
 *   name "depgraph" -> struct graph -> bucket array -> chains of struct node -> struct edges -> nodes
 *
 * A node is a name. It is born as a stub, when the first package that depends on it is loaded, or with its own
 * package; a package is loaded when its node's `edges` is not 0. Everything links by pool offset. One op vector
 * loads one package: it publishes the edge array, the node and the stubs it needs, and links them all, so after
 * a power cut a package is there with all its edges or it is not there.
 */
#ifndef DEPGRAPH_H
#define DEPGRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pmheap.h>

#define GRAPH_NAME "depgraph"
#define GRAPH_MAGIC 0x3130307065646d70ULL
#define GRAPH_BUCKETS 65536U

enum graph_type {
	TYPE_GRAPH = 1,
	TYPE_BUCKETS = 2,
	TYPE_NODE = 3,
	TYPE_EDGES = 4,
};

struct graph {
	uint64_t magic;
	uint64_t buckets;	/* offset of GRAPH_BUCKETS words, each a node or 0 */
	uint64_t packages;	/* loaded */
	uint64_t edges;		/* of all loaded packages */
	uint64_t nodes;		/* stubs and packages */
};

struct node {
	uint64_t next;		/* in the bucket */
	uint64_t edges;		/* offset of struct edges; 0: a stub */
	uint32_t name_len;
	char name[];		/* and a terminating zero */
};

struct edges {
	uint64_t count;
	uint64_t node[];
};

struct depgraph {
	struct pmheap *h;
	struct graph *graph;
	uint64_t graph_off;
	uint64_t *bucket;
};

/* depgraph_graph.c */
int graph_open(struct depgraph *g, const char *region, const char *pool, bool create);
void graph_close(struct depgraph *g);
uint32_t graph_bucket(const char *name, size_t len);
struct node *graph_node(const struct depgraph *g, uint64_t off);
uint64_t graph_find(const struct depgraph *g, const char *name, size_t len);

/* A volatile look at all nodes, by ascending offset. */
struct graph_index {
	size_t count;
	uint64_t *off;
};
int graph_index_make(const struct depgraph *g, struct graph_index *index);
size_t graph_index_of(const struct graph_index *index, uint64_t off);	/* count: not there */

/* depgraph_text.c: the input, one package a line: name<TAB>dep1,dep2,... */
struct text_package {
	char *name;
	char **dep;
	size_t deps;
};
struct text {
	char *bytes;
	struct text_package *package;	/* in file order */
	size_t packages;
	size_t *by_name;	/* indexes into package, sorted; of several of one name the first counts */
};
int text_read(struct text *t, const char *path);
void text_free(struct text *t);
const struct text_package *text_find(const struct text *t, const char *name);
char *file_read(const char *path, size_t *len);

int depgraph_load(const char *region, const char *pool, const char *file, const char *ack);
int depgraph_verify(const char *region, const char *pool, const char *file, const char *ack);
int depgraph_query(const char *region, const char *pool, int argc, char **argv);

#endif
