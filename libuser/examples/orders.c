// SPDX-License-Identifier: MIT
/*
 * A list of orders that grows at its head, and for whom wants to see what `pmheap lab` finds, ways to get it wrong.
 *
 *   orders REGION [late | undrained | lost | useless]
 *   pmheap lab orders {} late
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <pmheap.h>

#define ORDERS 1000U

struct order {
	uint64_t next;		/* offset of the older one */
	uint32_t number, amount;
	char customer[48];
};

static const char *mistake = "";

static bool makes(const char *which)
{
	return !strcmp(mistake, which);
}

/* Filled, durable, published with the link that makes it reachable: in this order. */
static int order_add(struct pmheap *h, uint64_t head, uint32_t number, const char *customer)
{
	struct order *o;
	uint64_t off;
	int rc = pmheap_alloc(h, sizeof(*o), &off);

	if (rc)
		return rc;
	o = pmheap_ptr(h, off);
	o->next = *(uint64_t *)pmheap_ptr(h, head);
	o->number = number;
	strncpy(o->customer, customer, sizeof(o->customer));
	o->amount = number % 7;
	rc = makes("undrained") ? pmheap_flush(h, o, sizeof(*o)) : pmheap_persist(h, o, sizeof(*o));
	if (makes("late"))
		o->amount = 7;	/* LATE: behind the flush */
	if (makes("useless"))
		rc = pmheap_persist(h, o, sizeof(*o));	/* USELESS: it has just been done */
	return rc < 0 ? rc : pmheap_publish_link(h, off, head);
}

/* A change by hand of what is published is durable when the program has made it so. */
static int order_change(struct pmheap *h, uint64_t head, uint32_t amount)
{
	struct order *o = pmheap_ptr(h, *(uint64_t *)pmheap_ptr(h, head));
	int rc = 0;

	o->amount = amount;	/* LOST: unless it is flushed */
	if (!makes("lost"))
		rc = pmheap_persist(h, &o->amount, sizeof(o->amount));
	return rc < 0 ? rc : 0;
}

static int orders(struct pmheap *h)
{
	uint64_t head;
	uint32_t i;
	int rc = pmheap_reserve(h, sizeof(head), 0, 0, PMHEAP_ZERO, 1, &head);

	if (!rc)
		rc = pmheap_publish(h, head);
	for (i = 0; i < ORDERS && !rc; i++)
		rc = order_add(h, head, i, i % 2 ? "Ada" : "Grace");
	return rc ? rc : order_change(h, head, 3);
}

int main(int argc, char **argv)
{
	struct pmheap *h;
	int rc;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: orders REGION [MISTAKE]\n");
		return 2;
	}
	mistake = argc == 3 ? argv[2] : "";
	rc = pmheap_create(argv[1], "orders", NULL, &h);
	if (!rc) {
		rc = orders(h);
		pmheap_close(h);
	}
	if (rc)
		fprintf(stderr, "orders: %s: %s\n", argv[1], pmheap_strerror(rc));
	return rc ? 1 : 0;
}
