// SPDX-License-Identifier: MIT
/* hello REGION: a counter that outlives its process, and power cuts. */
#include <errno.h>
#include <stdio.h>

#include <pmheap.h>

int main(int argc, char **argv)
{
	const char *region = argc > 1 ? argv[1] : "pmheap0";
	struct pmheap *h;
	uint64_t off = 0;
	int rc = pmheap_open(region, "hello", 0, &h);

	if (rc == -ENOENT)
		rc = pmheap_create(region, "hello", NULL, &h);
	if (!rc && pmheap_name_get(h, "counter", 7, &off) == -ENOENT) {
		rc = pmheap_reserve(h, sizeof(uint64_t), 0, 0, PMHEAP_ZERO, 1, &off);
		struct pmheap_op birth[] = { { .kind = PMHEAP_OP_PUBLISH, .off = off },
					     { .kind = PMHEAP_OP_NAME, .off = off, .name = "counter", .name_len = 7 } };
		rc = rc ? rc : pmheap_apply(h, birth, 2, NULL);	/* there and named, or not there */
	}
	struct pmheap_op count = { .kind = PMHEAP_OP_ADD64, .off = off, .value = 1 };

	rc = rc ? rc : pmheap_apply(h, &count, 1, NULL);		/* durable when it returns */
	if (rc)
		return fprintf(stderr, "hello: %s: %s\n", region, pmheap_strerror(rc)), 1;
	printf("run %llu\n", *(unsigned long long *)pmheap_ptr(h, off));	/* in place */
	return pmheap_close(h);
}
