// SPDX-License-Identifier: GPL-2.0-only
/* pmheap create, destroy, quota, stat: one pool. */
#include <inttypes.h>

#include "json.h"
#include "tool.h"

int run_create(struct tool *t)
{
	struct pmheap_attr attr = {
		.size = sizeof(attr), .quota = t->quota, .span = t->span, .home = t->home, .mode = t->mode,
		.uid = t->uid, .gid = t->gid, .flags = t->given & OPT_OWNER ? PMHEAP_ATTR_OWNER : 0,
	};
	struct pmheap *h;
	int rc;

	rc = pmheap_create(t->args[0], t->args[1], &attr, &h);
	if (rc)
		return pool_failed(t, t->args[0], t->args[1], rc);
	pmheap_close(h);
	return EXIT_DONE;
}

int run_destroy(struct tool *t)
{
	int rc = pmheap_destroy(t->args[0], t->args[1]);

	return rc ? pool_failed(t, t->args[0], t->args[1], rc) : EXIT_DONE;
}

int run_quota(struct tool *t)
{
	struct pmheap *h;
	int rc;

	if (!(t->given & OPT_QUOTA)) {
		complain(t, "--quota is needed");
		return EXIT_USAGE;
	}
	rc = pmheap_open(t->args[0], t->args[1], 0, &h);
	if (rc)
		return pool_failed(t, t->args[0], t->args[1], rc);
	rc = pmheap_set_quota(h, t->quota);
	pmheap_close(h);
	return rc ? pool_failed(t, t->args[0], t->args[1], rc) : EXIT_DONE;
}

static void stat_to_json(const struct pmheap_stat *st)
{
	json_open(NULL, '{');
	json_string("level", show_level(st->level));
	json_u64("quota", st->quota);
	json_u64("span", st->span);
	json_u64("owned", st->owned);
	json_u64("used", st->used);
	json_u64("reserved", st->reserved);
	json_u64("largest", st->largest);
	json_u64("objects", st->objects);
	json_u64("fences", st->fences);
	json_u64("flushes", st->flushes);
	json_close('}');
	json_end();
}

static void stat_show(const struct pmheap_stat *st)
{
	char buf[32];

	printf("objects   %" PRIu64 "\n", st->objects);
	printf("used      %s (%" PRIu64 " bytes)\n", show_size(st->used, buf), st->used);
	printf("reserved  %s\n", show_size(st->reserved, buf));
	printf("owned     %s\n", show_size(st->owned, buf));
	printf("quota     %s\n", st->quota ? show_size(st->quota, buf) : "none");
	printf("span      %s\n", show_size(st->span, buf));
	printf("largest   %s (%" PRIu64 " bytes)\n", show_size(st->largest, buf), st->largest);
	printf("level     %s\n", show_level(st->level));
	printf("log       %" PRIu64 " fences, %" PRIu64 " flushes\n", st->fences, st->flushes);
}

int run_stat(struct tool *t)
{
	struct pmheap_stat st = { .size = sizeof(st) };
	struct region *r;
	struct pmheap *h;
	int rc;

	if (open_pool(t, t->args[0], t->args[1], &r, &h))
		return EXIT_FAILED;
	rc = pmheap_stat(h, &st);
	pmheap_close(h);
	region_close(r);
	if (rc)
		return pool_failed(t, t->args[0], t->args[1], rc);
	if (t->json)
		stat_to_json(&st);
	else
		stat_show(&st);
	return EXIT_DONE;
}
