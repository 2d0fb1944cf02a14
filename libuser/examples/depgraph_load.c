// SPDX-License-Identifier: MIT
/* depgraph load: one op vector a package. See depgraph.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "depgraph.h"

#define STUBS_AT_ONCE 256U	/* with three ops each they fit a vector of 1,024 beside the package's own */
#define OPS_MAX 1024U

/* A vector in the making. Nothing of it is reachable, and all of it is given back, until it is applied. */
struct batch {
	struct depgraph *g;
	struct pmheap_op op[OPS_MAX];
	uint32_t ops;
	uint64_t made[OPS_MAX];		/* reserved, to be published */
	uint32_t mades;
	struct {
		uint32_t bucket;
		uint64_t was, now;	/* the bucket's word */
	} link[STUBS_AT_ONCE + 1];
	uint32_t links;
	uint64_t nodes;
};

static void add_op(struct batch *b, uint32_t kind, uint64_t off, uint64_t value, uint64_t expect)
{
	b->op[b->ops++] = (struct pmheap_op){ .kind = kind, .off = off, .value = value, .expect = expect };
}

static uint64_t graph_word(struct batch *b, size_t field)
{
	return b->g->graph_off + field;
}

static int reserve(struct batch *b, size_t bytes, uint32_t type, uint64_t *off)
{
	int rc = pmheap_reserve(b->g->h, bytes, 0, type, 0, 1, off);

	if (!rc) {
		b->made[b->mades++] = *off;
		add_op(b, PMHEAP_OP_PUBLISH, *off, 0, 0);
	}
	return rc;
}

static void batch_start(struct batch *b, struct depgraph *g)
{
	b->g = g;
	b->ops = b->mades = b->links = 0;
	b->nodes = 0;
}

static void batch_drop(struct batch *b)
{
	if (b->mades)
		pmheap_cancel(b->g->h, b->made, b->mades);
}

/* Where new nodes of a bucket go: several in one vector chain up before the word is stored once. */
static uint64_t *bucket_head(struct batch *b, uint32_t bucket)
{
	uint32_t i;

	for (i = 0; i < b->links; i++) {
		if (b->link[i].bucket == bucket)
			return &b->link[i].now;
	}
	b->link[i].bucket = bucket;
	b->link[i].was = b->link[i].now = b->g->bucket[bucket];
	b->links++;
	return &b->link[i].now;
}

/* A node that this batch makes, found by name; 0 if none. */
static uint64_t batch_find(struct batch *b, const char *name, size_t len)
{
	uint32_t bucket = graph_bucket(name, len), i;
	uint64_t off = 0, was = 0;

	for (i = 0; i < b->links; i++) {
		if (b->link[i].bucket == bucket) {
			off = b->link[i].now;
			was = b->link[i].was;
		}
	}
	for (; off != was; off = graph_node(b->g, off)->next) {
		struct node *n = graph_node(b->g, off);

		if (n->name_len == len && !memcmp(n->name, name, len))
			return off;
	}
	return 0;
}

static uint64_t find(struct batch *b, const char *name)
{
	size_t len = strlen(name);
	uint64_t off = graph_find(b->g, name, len);

	return off ? off : batch_find(b, name, len);
}

static int make_node(struct batch *b, const char *name, uint64_t edges, uint64_t *off)
{
	size_t len = strlen(name);
	uint64_t *head;
	struct node *n;
	int rc;

	rc = reserve(b, sizeof(*n) + len + 1, TYPE_NODE, off);
	if (rc)
		return rc;
	head = bucket_head(b, graph_bucket(name, len));
	n = graph_node(b->g, *off);
	n->next = *head;
	n->edges = edges;
	n->name_len = (uint32_t)len;
	memcpy(n->name, name, len + 1);
	*head = *off;
	b->nodes++;
	return pmheap_flush(b->g->h, n, sizeof(*n) + len + 1);
}

static int batch_apply(struct batch *b)
{
	uint32_t i;
	int rc;

	for (i = 0; i < b->links; i++) {
		uint64_t word = b->g->graph->buckets + b->link[i].bucket * sizeof(uint64_t);

		add_op(b, PMHEAP_OP_COMPARE64, word, 0, b->link[i].was);
		add_op(b, PMHEAP_OP_STORE64, word, b->link[i].now, 0);
	}
	if (b->nodes)
		add_op(b, PMHEAP_OP_ADD64, graph_word(b, offsetof(struct graph, nodes)), b->nodes, 0);
	/* What the vector publishes must be durable before it. */
	rc = pmheap_drain(b->g->h);
	return rc < 0 ? rc : pmheap_apply(b->g->h, b->op, b->ops, NULL);
}

/* Stubs beyond what fits the package's vector go ahead of it: a stub says nothing, so nothing is half there. */
static int make_stubs(struct batch *b, const struct text_package *p)
{
	struct depgraph *g = b->g;
	uint64_t off;
	size_t i;
	int rc;

	for (i = 0; i < p->deps; i++) {
		if (find(b, p->dep[i]))
			continue;
		if (b->nodes == STUBS_AT_ONCE) {
			rc = batch_apply(b);
			if (rc)
				return rc;
			batch_start(b, g);
			if (find(b, p->dep[i]))
				continue;
		}
		rc = make_node(b, p->dep[i], 0, &off);
		if (rc)
			return rc;
	}
	return 0;
}

static int make_edges(struct batch *b, const struct text_package *p, uint64_t *off)
{
	size_t bytes = sizeof(struct edges) + p->deps * sizeof(uint64_t), i;
	struct edges *e;
	int rc;

	rc = reserve(b, bytes, TYPE_EDGES, off);
	if (rc)
		return rc;
	e = pmheap_ptr(b->g->h, *off);
	e->count = p->deps;
	for (i = 0; i < p->deps; i++)
		e->node[i] = find(b, p->dep[i]);
	return pmheap_flush(b->g->h, e, bytes);
}

static int make_package(struct batch *b, const struct text_package *p)
{
	uint64_t edges, node;
	int rc;

	rc = make_stubs(b, p);
	if (!rc)
		rc = make_edges(b, p, &edges);
	if (rc)
		return rc;
	node = find(b, p->name);
	if (!node) {
		rc = make_node(b, p->name, edges, &node);
	} else if (batch_find(b, p->name, strlen(p->name))) {
		/* It depends on itself: the stub made for that is this package. */
		graph_node(b->g, node)->edges = edges;
		rc = pmheap_flush(b->g->h, graph_node(b->g, node), sizeof(struct node));
	} else {
		add_op(b, PMHEAP_OP_COMPARE64, node + offsetof(struct node, edges), 0, 0);
		add_op(b, PMHEAP_OP_STORE64, node + offsetof(struct node, edges), edges, 0);
	}
	if (rc)
		return rc;
	add_op(b, PMHEAP_OP_ADD64, graph_word(b, offsetof(struct graph, packages)), 1, 0);
	if (p->deps)
		add_op(b, PMHEAP_OP_ADD64, graph_word(b, offsetof(struct graph, edges)), p->deps, 0);
	return batch_apply(b);
}

static bool is_loaded(struct depgraph *g, const char *name)
{
	uint64_t off = graph_find(g, name, strlen(name));

	return off && graph_node(g, off)->edges;
}

/* 1 loaded now, 0 it was there, or -errno. Another loader at the same buckets makes this one try again. */
static int load_package(struct depgraph *g, struct batch *b, const struct text_package *p)
{
	int rc;

	do {
		if (is_loaded(g, p->name))
			return 0;
		batch_start(b, g);
		rc = make_package(b, p);
		if (rc)
			batch_drop(b);
	} while (rc == -EAGAIN);
	return rc ? rc : 1;
}

static int acknowledge(int fd, const char *name)
{
	char line[512];
	int len = snprintf(line, sizeof(line), "%s\n", name), at = 0;
	ssize_t n;

	while (at < len) {
		n = write(fd, line + at, (size_t)(len - at));
		if (n < 0 && errno != EINTR)
			return -errno;
		at += n > 0 ? (int)n : 0;
	}
	return 0;
}

static int load_all(struct depgraph *g, const struct text *t, int ack, size_t *loaded)
{
	struct batch *b = malloc(sizeof(*b));
	size_t i;
	int rc = b ? 0 : -ENOMEM;

	for (i = 0; i < t->packages && !rc; i++) {
		rc = load_package(g, b, &t->package[i]);
		if (rc == 1) {
			++*loaded;
			rc = ack >= 0 ? acknowledge(ack, t->package[i].name) : 0;
		}
		if (rc)
			fprintf(stderr, "depgraph: %s: %s\n", t->package[i].name, pmheap_strerror(rc));
	}
	free(b);
	return rc;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int depgraph_load(const char *region, const char *pool, const char *file, const char *ack)
{
	double start = seconds();
	struct depgraph g;
	struct text t;
	size_t loaded = 0;
	int fd = -1, rc;

	if (ack) {
		fd = open(ack, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0644);
		if (fd < 0) {
			fprintf(stderr, "depgraph: cannot open %s\n", ack);
			return 1;
		}
	}
	rc = text_read(&t, file);
	if (!rc)
		rc = graph_open(&g, region, pool, true);
	if (!rc) {
		rc = load_all(&g, &t, fd, &loaded);
		printf("loaded %zu packages in %.1f s; %" PRIu64 " packages, %" PRIu64 " names, %" PRIu64 " edges\n",
		       loaded, seconds() - start, g.graph->packages, g.graph->nodes, g.graph->edges);
		graph_close(&g);
	}
	text_free(&t);
	if (fd >= 0)
		close(fd);
	return rc ? 1 : 0;
}
