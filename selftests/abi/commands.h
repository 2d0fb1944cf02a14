/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A table of all commands, each with a call that goes through, so that a test can spoil one thing of it.
 *
 * The control commands are set up to fail with a known errno (`rc`) for a path or region that is not there: that
 * is as far as a call can go without taking the machine's devices apart.
 */
#ifndef COMMANDS_H
#define COMMANDS_H

#include "fixture.h"

enum node { CONTROL, REGION, OBJECTS };

/* A heap in which every command has something to work on, and the memory that calls point to. */
struct scene {
	struct heap heap;
	int control;
	__u64 word;			/* a published object of 64 bytes, named "named" */
	volatile __u64 *content;	/* its first word */
	__u64 offs[4];
	struct pmheap_vector_op op;
	struct pmheap_range range;
	struct pmheap_finding finding;
	char name[PMHEAP_POOL_NAME_SIZE];
};

struct command {
	unsigned long cmd;
	__u32 size;
	enum node node;
	__u32 flags;			/* bits that mean something, in or out */
	int reserved;			/* offset of a reserved field, or -1 */
	int pointer;			/* offset of the address of a buffer, or -1 */
	__u32 bytes;			/* of that buffer */
	int rc;				/* what the call gives */
	void (*prepare)(struct __test_metadata *_metadata, struct scene *s, void *arg);
	void (*undo)(struct __test_metadata *_metadata, struct scene *s, void *arg);
};

static const char no_such_path[] = "/nonexistent/device";

static inline void prepare_attach(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_attach *a = arg;

	a->path = address(no_such_path);
	a->path_len = sizeof(no_such_path) - 1;
}

static inline void prepare_detach(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_detach *d = arg;

	d->region = 0x7fffffff;
}

static inline void prepare_format(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_format *f = arg;

	f->path = address(no_such_path);
	f->path_len = sizeof(no_such_path) - 1;
}

static inline void prepare_nothing(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
}

static inline void prepare_create(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_pool_create *c = arg;

	strcpy(s->name, "spoiled");
	c->name = address(s->name);
	c->name_len = (__u32)strlen(s->name);
}

static inline void undo_create(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_pool_create *c = arg;

	ASSERT_EQ(0, close(c->fd));
	ASSERT_EQ(0, pool_destroy(s->heap.region, "spoiled"));
}

static inline void prepare_open(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_pool_open *o = arg;

	strcpy(s->name, POOL);
	o->name = address(s->name);
	o->name_len = (__u32)strlen(s->name);
}

static inline void undo_open(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_pool_open *o = arg;

	ASSERT_EQ(0, close(o->fd));
}

static inline void prepare_destroy(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_pool_destroy *d = arg;
	int fd = pool_create(s->heap.region, OTHER, 0);

	ASSERT_TRUE(fd >= 0 || fd == -EEXIST);
	if (fd >= 0) {
		ASSERT_EQ(0, close(fd));
	}
	strcpy(s->name, OTHER);
	d->name = address(s->name);
	d->name_len = (__u32)strlen(s->name);
}

static inline void prepare_reserve(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_reserve *r = arg;

	r->bytes = 100;
	r->count = 4;
	r->offs = address(s->offs);
}

static inline void undo_reserve(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	ASSERT_EQ(0, cancel(s->heap.pool, s->offs, 4));
}

static inline void prepare_cancel(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_cancel *c = arg;
	struct pmheap_object_info o;

	for (int i = 0; i < 4; i++) {
		if (s->offs[i] && !object(s->heap.pool, s->offs[i], &o) && o.state == PMHEAP_RESERVED)
			continue;
		ASSERT_EQ(0, reserve(s->heap.pool, 100, 0, 0, 0, 1, &s->offs[i]));
	}
	c->count = 4;
	c->offs = address(s->offs);
}

static inline void prepare_apply(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_apply *a = arg;

	s->op = ADD(s->word, 1);
	a->ops = address(&s->op);
	a->count = 1;
}

static inline void prepare_object(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_object_info *o = arg;

	o->off = s->word + 8;
}

static inline void prepare_next(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_next *n = arg;

	n->type = PMHEAP_ANY_TYPE;
}

static inline void prepare_name_get(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_name_get *g = arg;

	strcpy(s->name, "named");
	g->name = address(s->name);
	g->name_len = (__u32)strlen(s->name);
}

static inline void prepare_name_next(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_name_next *n = arg;

	n->name = address(s->name);
	n->name_len = PMHEAP_NAME_LEN_MAX;
}

static inline void prepare_persist(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_persist *p = arg;

	s->range = (struct pmheap_range){ .off = s->word, .len = 64 };
	p->ranges = address(&s->range);
	p->count = 1;
}

static inline void prepare_scrub(struct __test_metadata *_metadata, struct scene *s, void *arg)
{
	struct pmheap_scrub *c = arg;

	c->findings = address(&s->finding);
	c->count = 1;
	c->limit = 200;
}

#define COMMAND(name, type, ...) { .cmd = PMHEAP_##name, .size = sizeof(struct type), __VA_ARGS__ }
#define AT(type, field) ((int)offsetof(struct type, field))

enum command_index {
	ATTACH, DETACH, FORMAT, INFO_REGION, LIST, CREATE, OPEN, DESTROY, SCRUB, INFO_POOL, TAKE, CANCEL, APPLY, OBJECT, NEXT,
	GET_NAME, NEXT_NAME, PERSIST, STAT, QUOTA, COMMANDS
};

static const struct command commands[COMMANDS] = {
	[ATTACH] = COMMAND(ATTACH, pmheap_attach, .node = CONTROL, .flags = PMHEAP_ATTACH_RDONLY, .reserved = -1,
		.pointer = AT(pmheap_attach, path), .bytes = 19, .rc = -ENOENT, .prepare = prepare_attach),
	[DETACH] = COMMAND(DETACH, pmheap_detach, .node = CONTROL, .flags = PMHEAP_DETACH_FORCE,
		.reserved = AT(pmheap_detach, reserved), .pointer = -1, .rc = -ENODEV, .prepare = prepare_detach),
	[FORMAT] = COMMAND(FORMAT, pmheap_format, .node = CONTROL, .flags = PMHEAP_FORMAT_FORCE, .reserved = -1,
		.pointer = AT(pmheap_format, path), .bytes = 19, .rc = -ENOENT, .prepare = prepare_format),
	[INFO_REGION] = COMMAND(REGION_INFO, pmheap_region_info, .node = REGION, .reserved = -1, .pointer = -1,
		.flags = PMHEAP_REGION_RDONLY | PMHEAP_REGION_EMULATED, .prepare = prepare_nothing),
	[LIST] = COMMAND(POOL_LIST, pmheap_pool_info, .node = REGION, .flags = PMHEAP_POOL_RDONLY, .reserved = -1,
		.pointer = -1, .prepare = prepare_nothing),
	[CREATE] = COMMAND(POOL_CREATE, pmheap_pool_create, .node = REGION, .flags = PMHEAP_CREATE_OWNER,
		.reserved = -1, .pointer = AT(pmheap_pool_create, name), .bytes = 7, .prepare = prepare_create,
		.undo = undo_create),
	[OPEN] = COMMAND(POOL_OPEN, pmheap_pool_open, .node = REGION, .flags = PMHEAP_OPEN_RDONLY, .reserved = -1,
		.pointer = AT(pmheap_pool_open, name), .bytes = sizeof(POOL) - 1, .prepare = prepare_open,
		.undo = undo_open),
	[DESTROY] = COMMAND(POOL_DESTROY, pmheap_pool_destroy, .node = REGION, .reserved = -1,
		.pointer = AT(pmheap_pool_destroy, name), .bytes = sizeof(OTHER) - 1, .prepare = prepare_destroy),
	[SCRUB] = COMMAND(SCRUB, pmheap_scrub, .node = REGION, .flags = PMHEAP_SCRUB_CONTENTS | PMHEAP_SCRUB_BUSY,
		.reserved = -1, .pointer = -1, .prepare = prepare_scrub),
	[INFO_POOL] = COMMAND(POOL_INFO, pmheap_pool_info, .node = OBJECTS, .flags = PMHEAP_POOL_RDONLY,
		.reserved = -1, .pointer = -1, .prepare = prepare_nothing),
	[TAKE] = COMMAND(RESERVE, pmheap_reserve, .node = OBJECTS, .flags = PMHEAP_RESERVE_ZERO, .reserved = -1,
		.pointer = AT(pmheap_reserve, offs), .bytes = 32, .prepare = prepare_reserve, .undo = undo_reserve),
	[CANCEL] = COMMAND(CANCEL, pmheap_cancel, .node = OBJECTS, .reserved = AT(pmheap_cancel, reserved),
		.pointer = AT(pmheap_cancel, offs), .bytes = 32, .prepare = prepare_cancel),
	[APPLY] = COMMAND(APPLY, pmheap_apply, .node = OBJECTS, .reserved = AT(pmheap_apply, reserved),
		.pointer = AT(pmheap_apply, ops), .bytes = sizeof(struct pmheap_vector_op),
		.prepare = prepare_apply),
	[OBJECT] = COMMAND(OBJECT, pmheap_object_info, .node = OBJECTS, .reserved = -1, .pointer = -1,
		.prepare = prepare_object),
	[NEXT] = COMMAND(NEXT, pmheap_next, .node = OBJECTS, .reserved = -1, .pointer = -1, .prepare = prepare_next),
	[GET_NAME] = COMMAND(NAME_GET, pmheap_name_get, .node = OBJECTS, .reserved = AT(pmheap_name_get, reserved),
		.pointer = AT(pmheap_name_get, name), .bytes = 5, .prepare = prepare_name_get),
	[NEXT_NAME] = COMMAND(NAME_NEXT, pmheap_name_next, .node = OBJECTS,
		.reserved = AT(pmheap_name_next, reserved), .pointer = AT(pmheap_name_next, name), .bytes = 5,
		.prepare = prepare_name_next),
	[PERSIST] = COMMAND(PERSIST, pmheap_persist, .node = OBJECTS, .reserved = -1,
		.pointer = AT(pmheap_persist, ranges), .bytes = sizeof(struct pmheap_range),
		.prepare = prepare_persist),
	[STAT] = COMMAND(STAT, pmheap_pool_stat, .node = OBJECTS, .flags = PMHEAP_STAT_KNOWN | PMHEAP_STAT_EXACT,
		.reserved = AT(pmheap_pool_stat, reserved), .pointer = -1, .prepare = prepare_nothing),
	[QUOTA] = COMMAND(SET_QUOTA, pmheap_set_quota, .node = OBJECTS, .reserved = -1, .pointer = -1,
		.prepare = prepare_nothing),
};

static inline void scene_setup(struct __test_metadata *_metadata, struct scene *s)
{
	char *page;

	memset(s, 0, sizeof(*s));
	heap_setup(_metadata, &s->heap, 0);
	s->control = open("/dev/pmheap", O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, s->control);
	s->word = published(_metadata, s->heap.pool, 64);
	ASSERT_EQ(0, apply_one(s->heap.pool, NAME(s->word, "named")));
	page = mapped(_metadata, s->heap.pool, s->word / PAGE * PAGE, PAGE);
	s->content = (void *)(page + s->word % PAGE);
}

static inline void scene_teardown(struct __test_metadata *_metadata, struct scene *s)
{
	close(s->control);
	heap_teardown(_metadata, &s->heap);
}

static inline int scene_fd(const struct scene *s, const struct command *c)
{
	return c->node == CONTROL ? s->control : c->node == REGION ? s->heap.region : s->heap.pool;
}

/* What the scene's pool and region hold, the word's content too. */
static inline __u64 scene_digest(const struct scene *s)
{
	return pool_digest(s->heap.pool) ^ region_digest(s->heap.region) << 1 ^ *s->content << 32;
}

/* A good call at arg, its size set. */
static inline void scene_prepare(struct __test_metadata *_metadata, struct scene *s, const struct command *c, void *arg)
{
	memset(arg, 0, c->size);
	c->prepare(_metadata, s, arg);
	*(__u32 *)arg = c->size;
}

/* Call; what went through is undone. */
static inline int scene_call(struct __test_metadata *_metadata, struct scene *s, const struct command *c, void *arg)
{
	int rc = call(scene_fd(s, c), c->cmd, arg);

	if (!rc && c->undo)
		c->undo(_metadata, s, arg);
	return rc;
}

/* The call must fail so, change nothing, and leave no descriptor. */
#define EXPECT_SPOILED(want, s, c, arg)                                         \
	do {                                                                    \
		__u64 __before = scene_digest(s);                               \
		unsigned int __files = open_files();                            \
		EXPECT_EQ(want, call(scene_fd(s, c), (c)->cmd, arg));           \
		EXPECT_EQ(__before, scene_digest(s));                           \
		EXPECT_EQ(__files, open_files());                               \
	} while (0)

/* One variant of a fixture for each command that `index` names. */
#define COMMAND_VARIANT(fixture, name_, index_) FIXTURE_VARIANT_ADD(fixture, name_) { .command = &commands[index_] }

/* A variant for each of them all. */
#define EVERY_COMMAND_VARIANT(fixture) \
	COMMAND_VARIANT(fixture, attach, ATTACH); \
	COMMAND_VARIANT(fixture, detach, DETACH); \
	COMMAND_VARIANT(fixture, format, FORMAT); \
	COMMAND_VARIANT(fixture, region_info, INFO_REGION); \
	COMMAND_VARIANT(fixture, pool_list, LIST); \
	COMMAND_VARIANT(fixture, pool_create, CREATE); \
	COMMAND_VARIANT(fixture, pool_open, OPEN); \
	COMMAND_VARIANT(fixture, pool_destroy, DESTROY); \
	COMMAND_VARIANT(fixture, scrub, SCRUB); \
	COMMAND_VARIANT(fixture, pool_info, INFO_POOL); \
	COMMAND_VARIANT(fixture, reserve, TAKE); \
	COMMAND_VARIANT(fixture, cancel, CANCEL); \
	COMMAND_VARIANT(fixture, apply, APPLY); \
	COMMAND_VARIANT(fixture, object, OBJECT); \
	COMMAND_VARIANT(fixture, next, NEXT); \
	COMMAND_VARIANT(fixture, name_get, GET_NAME); \
	COMMAND_VARIANT(fixture, name_next, NEXT_NAME); \
	COMMAND_VARIANT(fixture, persist, PERSIST); \
	COMMAND_VARIANT(fixture, stat, STAT); \
	COMMAND_VARIANT(fixture, set_quota, QUOTA)

#endif
