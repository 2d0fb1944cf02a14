// SPDX-License-Identifier: GPL-2.0-only
/*
 * Commands whose struct or buffer lies in memory that is not there, must not be written, or belongs to the
 * kernel: EFAULT, and the heap is as it was, also when only the answer could not be written.
 */
#include <sys/resource.h>
#include "commands.h"

/* Two pages, then one without access. */
static unsigned char *guarded_pages(struct __test_metadata *_metadata)
{
	unsigned char *p = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, (void *)p);
	ASSERT_EQ(0, mprotect(p + 2 * PAGE, PAGE, PROT_NONE));
	return p;
}

FIXTURE(argument)
{
	struct scene scene;
	unsigned char *buf;
};

FIXTURE_VARIANT(argument)
{
	const struct command *command;
};

EVERY_COMMAND_VARIANT(argument);

FIXTURE_SETUP(argument)
{
	scene_setup(_metadata, &self->scene);
	self->buf = guarded_pages(_metadata);
}

FIXTURE_TEARDOWN(argument)
{
	scene_teardown(_metadata, &self->scene);
}

TEST_F(argument, null_unmapped_and_kernel_addresses_are_EFAULT)
{
	const __u64 bad[] = { 0, 4, address(self->buf + 2 * PAGE), KERNEL_ADDRESS, KERNEL_ADDRESS | 1,
			      0xffffffff81000000ULL, 0x7ffffffff000ULL, 0x800000000000ULL, -8ULL, -PAGE, ~0ULL };
	const struct command *c = variant->command;

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_SPOILED(-EFAULT, &self->scene, c, (void *)(uintptr_t)bad[i]);
	}
}

TEST_F(argument, struct_cut_by_the_end_of_mapped_memory_is_EFAULT)
{
	const struct command *c = variant->command;
	static const unsigned int there[] = { 1, 4, 8, 12 };

	for (unsigned int i = 0; i < ARRAY_SIZE(there); i++) {
		unsigned char *at = self->buf + 2 * PAGE - there[i];
		unsigned char good[1024] __attribute__((aligned(8)));

		scene_prepare(_metadata, &self->scene, c, good);
		memcpy(at, good, there[i]);
		EXPECT_SPOILED(-EFAULT, &self->scene, c, at);
	}
}

/* Commands that answer in their struct. */
FIXTURE(answer)
{
	struct scene scene;
	unsigned char *buf;
};

FIXTURE_VARIANT(answer)
{
	const struct command *command;
};

COMMAND_VARIANT(answer, region_info, INFO_REGION);
COMMAND_VARIANT(answer, pool_list, LIST);
COMMAND_VARIANT(answer, pool_create, CREATE);
COMMAND_VARIANT(answer, pool_open, OPEN);
COMMAND_VARIANT(answer, pool_destroy, DESTROY);
COMMAND_VARIANT(answer, pool_info, INFO_POOL);
COMMAND_VARIANT(answer, apply, APPLY);
COMMAND_VARIANT(answer, object, OBJECT);
COMMAND_VARIANT(answer, next, NEXT);
COMMAND_VARIANT(answer, name_get, GET_NAME);
COMMAND_VARIANT(answer, name_next, NEXT_NAME);
COMMAND_VARIANT(answer, persist, PERSIST);
COMMAND_VARIANT(answer, stat, STAT);

FIXTURE_SETUP(answer)
{
	scene_setup(_metadata, &self->scene);
	self->buf = guarded_pages(_metadata);
}

FIXTURE_TEARDOWN(answer)
{
	scene_teardown(_metadata, &self->scene);
}

TEST_F(answer, struct_that_cannot_be_written_is_EFAULT_and_changes_nothing)
{
	const struct command *c = variant->command;

	scene_prepare(_metadata, &self->scene, c, self->buf);
	ASSERT_EQ(0, mprotect(self->buf, PAGE, PROT_READ));
	EXPECT_SPOILED(-EFAULT, &self->scene, c, self->buf);
	ASSERT_EQ(0, mprotect(self->buf, PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(c->rc, scene_call(_metadata, &self->scene, c, self->buf));
}

TEST_F(answer, struct_half_in_a_page_that_cannot_be_written_is_EFAULT_and_changes_nothing)
{
	const struct command *c = variant->command;

	for (unsigned int there = 4; there < c->size; there += 4) {
		unsigned char *at = self->buf + PAGE - there;
		__u64 before;
		int rc;

		scene_prepare(_metadata, &self->scene, c, at);
		before = scene_digest(&self->scene);
		ASSERT_EQ(0, mprotect(self->buf + PAGE, PAGE, PROT_READ));
		rc = call(scene_fd(&self->scene, c), c->cmd, at);
		/* The second page may hold nothing that the command answers: then it goes through. */
		EXPECT_TRUE(rc == -EFAULT || rc == 0);
		if (rc) {
			EXPECT_EQ(before, scene_digest(&self->scene));
		} else if (c->undo) {
			c->undo(_metadata, &self->scene, at);
		}
		ASSERT_EQ(0, mprotect(self->buf + PAGE, PAGE, PROT_READ | PROT_WRITE));
	}
}

/* Commands with the address of a buffer in their struct. */
FIXTURE(buffer)
{
	struct scene scene;
	unsigned char *buf;
};

FIXTURE_VARIANT(buffer)
{
	const struct command *command;
};

COMMAND_VARIANT(buffer, attach, ATTACH);
COMMAND_VARIANT(buffer, format, FORMAT);
COMMAND_VARIANT(buffer, pool_create, CREATE);
COMMAND_VARIANT(buffer, pool_open, OPEN);
COMMAND_VARIANT(buffer, pool_destroy, DESTROY);
COMMAND_VARIANT(buffer, reserve, TAKE);
COMMAND_VARIANT(buffer, cancel, CANCEL);
COMMAND_VARIANT(buffer, apply, APPLY);
COMMAND_VARIANT(buffer, name_get, GET_NAME);
COMMAND_VARIANT(buffer, name_next, NEXT_NAME);
COMMAND_VARIANT(buffer, persist, PERSIST);

FIXTURE_SETUP(buffer)
{
	scene_setup(_metadata, &self->scene);
	self->buf = guarded_pages(_metadata);
}

FIXTURE_TEARDOWN(buffer)
{
	scene_teardown(_metadata, &self->scene);
}

static void point_to(const struct command *c, unsigned char *arg, __u64 where)
{
	memcpy(arg + c->pointer, &where, sizeof(where));
}

TEST_F(buffer, null_unmapped_wrapping_and_kernel_buffers_are_EFAULT_and_change_nothing)
{
	const struct command *c = variant->command;
	const __u64 bad[] = { 0, 8, address(self->buf + 2 * PAGE), KERNEL_ADDRESS, 0xffffffff81000000ULL,
			      0x7ffffffff000ULL, 0x800000000000ULL, 1ULL << 63, -8ULL, -4096ULL, ~0ULL };

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		scene_prepare(_metadata, &self->scene, c, self->buf);
		point_to(c, self->buf, bad[i]);
		EXPECT_SPOILED(-EFAULT, &self->scene, c, self->buf);
	}
}

TEST_F(buffer, buffer_cut_by_the_end_of_mapped_memory_is_EFAULT_and_changes_nothing)
{
	const struct command *c = variant->command;
	__u64 good;

	for (unsigned int missing = 1; missing < c->bytes; missing += 3) {
		unsigned int there = c->bytes - missing;
		unsigned char *at = self->buf + 2 * PAGE - there;

		scene_prepare(_metadata, &self->scene, c, self->buf);
		memcpy(&good, self->buf + c->pointer, sizeof(good));
		memcpy(at, (void *)(uintptr_t)good, there);
		point_to(c, self->buf, address(at));
		EXPECT_SPOILED(-EFAULT, &self->scene, c, self->buf);
	}
}

/* Commands that fill a buffer. */
FIXTURE(filled)
{
	struct scene scene;
	unsigned char *buf;
};

FIXTURE_VARIANT(filled)
{
	const struct command *command;
};

COMMAND_VARIANT(filled, reserve, TAKE);
COMMAND_VARIANT(filled, name_next, NEXT_NAME);

FIXTURE_SETUP(filled)
{
	scene_setup(_metadata, &self->scene);
	self->buf = guarded_pages(_metadata);
}

FIXTURE_TEARDOWN(filled)
{
	scene_teardown(_metadata, &self->scene);
}

TEST_F(filled, buffer_that_cannot_be_written_is_EFAULT_and_changes_nothing)
{
	const struct command *c = variant->command;

	ASSERT_EQ(0, mprotect(self->buf + PAGE, PAGE, PROT_READ));
	for (unsigned int there = 0; there < c->bytes; there++) {
		scene_prepare(_metadata, &self->scene, c, self->buf);
		point_to(c, self->buf, address(self->buf + PAGE - there));
		EXPECT_SPOILED(-EFAULT, &self->scene, c, self->buf);
	}
}

TEST_F(filled, buffer_in_a_page_not_touched_yet_is_filled)
{
	const struct command *c = variant->command;
	unsigned char *fresh = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, (void *)fresh);
	scene_prepare(_metadata, &self->scene, c, self->buf);
	point_to(c, self->buf, address(fresh));
	EXPECT_EQ(c->rc, call(scene_fd(&self->scene, c), c->cmd, self->buf));
	EXPECT_NE(0, fresh[0] | fresh[1] | fresh[2] | fresh[3]);
}

/* What the vector's ops point to. */
FIXTURE(op_name)
{
	struct scene scene;
	unsigned char *buf;
};

FIXTURE_SETUP(op_name)
{
	scene_setup(_metadata, &self->scene);
	self->buf = guarded_pages(_metadata);
}

FIXTURE_TEARDOWN(op_name)
{
	scene_teardown(_metadata, &self->scene);
}

TEST_F(op_name, name_of_an_op_in_bad_memory_is_EFAULT_and_nothing_of_the_vector_is_done)
{
	const __u64 bad[] = { 0, 8, address(self->buf + 2 * PAGE), address(self->buf + 2 * PAGE - 3), KERNEL_ADDRESS,
			      0x800000000000ULL, ~0ULL, -4ULL };
	int pool = self->scene.heap.pool;

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		struct pmheap_vector_op ops[2] = { STORE(self->scene.word, i + 1), NAME(self->scene.word, "four") };

		ops[1].name = bad[i];
		EXPECT_REFUSED(-EFAULT, pool, apply(pool, ops, 2, NULL));
		ops[1].kind = PMHEAP_OP_UNNAME;
		ops[1].off = 0;
		EXPECT_REFUSED(-EFAULT, pool, apply(pool, ops, 2, NULL));
		EXPECT_EQ(0, apply_one(pool, COMPARE(self->scene.word, 0)));
	}
}

/* Buffers that lie in the pool itself: its memory is as good as any. */
TEST_F(op_name, arguments_and_buffers_may_lie_in_the_pools_own_mapping)
{
	int pool = self->scene.heap.pool;
	__u64 home = published(_metadata, pool, PAGE);
	unsigned char *at = (unsigned char *)mapped(_metadata, pool, home / PAGE * PAGE, 2 * PAGE) + home % PAGE;
	struct pmheap_reserve *r = (void *)at;
	struct pmheap_vector_op *op = (void *)(at + 1024);
	struct pmheap_apply *a = (void *)(at + 2048);
	__u64 *off = (void *)(at + 3072);

	*r = (struct pmheap_reserve){ .size = sizeof(*r), .bytes = 64, .count = 1, .offs = address(off) };
	ASSERT_EQ(0, call(pool, PMHEAP_RESERVE, r));
	ASSERT_NE(0, *off);
	*op = PUBLISH(*off);
	*a = (struct pmheap_apply){ .size = sizeof(*a), .ops = address(op), .count = 1 };
	ASSERT_EQ(0, call(pool, PMHEAP_APPLY, a));
	EXPECT_EQ(1, a->failed);
}

TEST_F(op_name, buffers_in_pool_memory_that_is_not_there_are_EFAULT)
{
	int pool = self->scene.heap.pool;
	unsigned char *hole = mapped(_metadata, pool, 0, CHUNK);	/* the guard: never owned */

	EXPECT_REFUSED(-EFAULT, pool, reserve(pool, 64, 0, 0, 0, 1, (__u64 *)hole));
	EXPECT_REFUSED(-EFAULT, pool, apply(pool, (void *)hole, 1, NULL));
	EXPECT_REFUSED(-EFAULT, pool, cancel(pool, (void *)hole, 1));
	EXPECT_EQ(-EFAULT, call(pool, PMHEAP_STAT, hole));
}

/* Full descriptor table: no descriptor, no pool, no open left behind. */
TEST_F(op_name, full_descriptor_table_is_EMFILE_without_side_effects)
{
	struct rlimit limit = { .rlim_cur = open_files(), .rlim_max = 1024 };
	struct pmheap_pool_create c = { 0 };
	struct pmheap_pool_info info;
	int region = self->scene.heap.region;
	__u64 before = region_digest(region), cursor = 0;

	for (rlim_t fd = 0; fd < limit.rlim_cur; fd++) {	/* no hole below the limit */
		ASSERT_LE(0, fcntl((int)fd, F_GETFD));
	}
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	for (int i = 0; i < 100; i++) {
		ASSERT_EQ(-EMFILE, pool_create_with(region, "spoiled", &c));
		ASSERT_EQ(-EMFILE, pool_open(region, POOL, 0));
	}
	limit.rlim_cur = 1024;
	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &limit));
	EXPECT_EQ(before, region_digest(region));
	ASSERT_EQ(0, pool_list(region, &cursor, &info));
	EXPECT_EQ(1, info.opens);
	EXPECT_EQ(-ENOENT, pool_open(region, "spoiled", 0));
}

TEST_HARNESS_MAIN
