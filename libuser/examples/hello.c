// SPDX-License-Identifier: MIT
/* A counter that outlives its process: run it again, and it goes on. hello REGION */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <pmheap.h>

int main(int argc, char **argv)
{
	const char *region = argc > 1 ? argv[1] : "pmheap0";
	struct pmheap *h;
	uint64_t off;
	int rc = pmheap_open(region, "hello", 0, &h);

	if (rc == -ENOENT)
		rc = pmheap_create(region, "hello", NULL, &h);
	if (!rc && pmheap_name_get(h, "counter", 7, &off) == -ENOENT) {
		rc = pmheap_reserve(h, sizeof(uint64_t), 0, 0, PMHEAP_ZERO, 1, &off);
		struct pmheap_op birth[] = {
			{ .kind = PMHEAP_OP_PUBLISH, .off = off },
			{ .kind = PMHEAP_OP_NAME, .off = off, .name = "counter", .name_len = 7 },
		};
		rc = rc ? rc : pmheap_apply(h, birth, 2, NULL);	/* there with its name, or not at all */
	}
	struct pmheap_op count = { .kind = PMHEAP_OP_ADD64, .off = rc ? 0 : off, .value = 1 };

	rc = rc ? rc : pmheap_apply(h, &count, 1, NULL);		/* durable when it returns */
	if (rc) {
		fprintf(stderr, "hello: %s: %s\n", region, pmheap_strerror(rc));
		return 1;
	}
	printf("run %" PRIu64 "\n", *(uint64_t *)pmheap_ptr(h, off));
	return pmheap_close(h);
}
