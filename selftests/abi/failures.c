// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each command with each allocation and each copy of user memory failed in turn: it fails with ENOMEM or EFAULT and
 * changes nothing, or goes through without what failed. A report of the kernel, or a leak found by it afterwards,
 * is for whoever reads its log.
 */
#include "commands.h"
#include "device.h"
#include "inject.h"

#define SLOW 3600	/* seconds: a kernel full of checks takes one for an attach and detach, of hundreds */

#define NEEDS_INJECTION(in)                                                                     \
	if ((in)->fd < 0)                                                                       \
		SKIP(return, "this kernel was built without fault injection")

/* What one attempt at nth gave is judged: true, there is a next one. */
static bool judged(struct __test_metadata *_metadata, struct injector *in, int rc, int good, bool same)
{
	bool hit = injected(in);

	if (!hit || rc == good) {
		EXPECT_EQ(good, rc)
			TH_LOG("without a failure in it, at %u", in->nth);
		return hit;
	}
	in->failed++;
	EXPECT_TRUE(rc == -ENOMEM || rc == -EFAULT)
		TH_LOG("failure %u gives %d", in->nth, rc);
	EXPECT_TRUE(same)
		TH_LOG("failure %u gives %d and changes something", in->nth, rc);
	return true;
}

static void told(const char *what, const struct injector *in)
{
	dprintf(STDOUT_FILENO, "# %s: failures=%u errors=%u\n", what, in->nth - 1, in->failed);
}

/* ---- commands ---- */

FIXTURE(command)
{
	struct injector in;
	struct scene scene;
};

FIXTURE_VARIANT(command)
{
	const struct command *command;
};

EVERY_COMMAND_VARIANT(command);

FIXTURE_SETUP(command)
{
	injector_setup(_metadata, &self->in);
	scene_setup(_metadata, &self->scene);
}

FIXTURE_TEARDOWN(command)
{
	injector_teardown(&self->in);
	scene_teardown(_metadata, &self->scene);
}

static void fail_each(struct __test_metadata *_metadata, struct injector *in, struct scene *s, const struct command *c,
		      void (*before)(struct __test_metadata *_metadata, struct scene *s))
{
	unsigned char arg[1024] __attribute__((aligned(8)));
	unsigned int files;
	__u64 digest;
	int rc;

	do {
		scene_prepare(_metadata, s, c, arg);
		digest = scene_digest(s);
		files = open_files();
		before(_metadata, s);
		inject_from_here(in);
		rc = call(scene_fd(s, c), c->cmd, arg);
		if (!judged(_metadata, in, rc, c->rc, digest == scene_digest(s) && files == open_files()))
			break;
		if (!rc && c->undo)
			c->undo(_metadata, s, arg);
	} while (in->nth < 10000);
	if (!rc && c->undo)
		c->undo(_metadata, s, arg);
}

static void nothing(struct __test_metadata *_metadata, struct scene *s)
{
}

TEST_F(command, each_failure_inside_is_an_error_that_changes_nothing)
{
	NEEDS_INJECTION(&self->in);
	fail_each(_metadata, &self->in, &self->scene, variant->command, nothing);
	told("warm", &self->in);
	EXPECT_LT(1, self->in.nth);
}

/* The pool is loaded anew, and the caller is no owner in it yet. Reservations would not survive that. */
static void reopen(struct __test_metadata *_metadata, struct scene *s)
{
	ASSERT_EQ(0, close(s->heap.pool));
	s->heap.pool = pool_open(s->heap.region, POOL, 0);
	ASSERT_LE(0, s->heap.pool);
}

TEST_F(command, each_failure_in_a_pool_not_read_yet_changes_nothing)
{
	NEEDS_INJECTION(&self->in);
	if (variant->command->prepare == prepare_cancel)
		return;
	/* The mapping would keep the pool loaded. */
	ASSERT_EQ(0, munmap((void *)((uintptr_t)self->scene.content & -(uintptr_t)PAGE), PAGE));
	self->scene.content = &(__u64){ 0 };
	fail_each(_metadata, &self->in, &self->scene, variant->command, reopen);
	told("cold", &self->in);
	EXPECT_LT(1, self->in.nth);
}

/* ---- larger calls ---- */

FIXTURE(larger)
{
	struct injector in;
	struct heap heap;
	int region, pool;
};

FIXTURE_SETUP(larger)
{
	injector_setup(_metadata, &self->in);
	heap_setup(_metadata, &self->heap, 0);
	self->region = self->heap.region;
	self->pool = self->heap.pool;
}

FIXTURE_TEARDOWN(larger)
{
	injector_teardown(&self->in);
	heap_teardown(_metadata, &self->heap);
}

struct wish {
	__u64 bytes;
	__u32 count, flags;
};

/* But for the chunks that it took: they stay with the pool. */
static bool same_but_grown(struct __test_metadata *_metadata, int pool, const struct pmheap_pool_stat *before)
{
	struct pmheap_pool_stat now = stat_of(_metadata, pool);

	return now.used == before->used && now.reserved_bytes == before->reserved_bytes &&
	       now.objects == before->objects && now.owned >= before->owned && now.largest == before->largest;
}

/* Until it goes through with no failure in it; what it got is given back. */
static void fail_each_reserve(struct __test_metadata *_metadata, struct injector *in, int pool, struct wish w)
{
	static __u64 offs[PMHEAP_VECTOR_MAX];
	static __u32 type = 100;
	struct pmheap_pool_stat before;
	bool more;
	int rc;

	in->nth = in->failed = 0;
	do {
		before = stat_of(_metadata, pool);
		inject_from_here(in);
		/* Each of a type that is new to the pool. */
		rc = reserve(pool, w.bytes, 0, type++ % 200, w.flags, w.count, offs);
		more = judged(_metadata, in, rc, 0, !rc || same_but_grown(_metadata, pool, &before));
		if (!rc) {
			ASSERT_EQ(0, cancel(pool, offs, w.count));
		}
	} while (more && in->nth < 10000);
}

TEST_F(larger, failures_in_reserve_of_all_kinds_of_objects_change_nothing)
{
	static const struct wish wishes[] = {
		{ 16, PMHEAP_VECTOR_MAX, 0 }, { 3000, 100, PMHEAP_RESERVE_ZERO }, { 40000, 20, 0 },
		{ CHUNK - PAGE, 1, 0 }, { 3 * CHUNK + PAGE, 1, PMHEAP_RESERVE_ZERO },
	};

	NEEDS_INJECTION(&self->in);
	for (unsigned int i = 0; i < ARRAY_SIZE(wishes); i++) {
		fail_each_reserve(_metadata, &self->in, self->pool, wishes[i]);
		told("reserve", &self->in);
		EXPECT_LT(1, self->in.nth);
	}
}

#define BIRTHS 60

/* Objects with names, so that blocks of the name directory are wanted, and the vectors are long. */
static unsigned int births(struct pmheap_vector_op *ops, const __u64 *offs, char names[BIRTHS][24], unsigned int round)
{
	for (unsigned int i = 0; i < BIRTHS; i++) {
		int len = snprintf(names[i], 24, "born %u of %u", i, round);

		ops[2 * i] = PUBLISH(offs[i]);
		ops[2 * i + 1] = OP(NAME, .off = offs[i], .name = address(names[i]), .name_len = (__u32)len);
	}
	return 2 * BIRTHS;
}

static unsigned int deaths(struct pmheap_vector_op *ops, const __u64 *offs, char names[BIRTHS][24])
{
	for (unsigned int i = 0; i < BIRTHS; i++) {
		ops[2 * i] = FREE(offs[i]);
		ops[2 * i + 1] = OP(UNNAME, .name = address(names[i]), .name_len = (__u32)strlen(names[i]));
	}
	return 2 * BIRTHS;
}

TEST_F(larger, failures_in_long_vectors_with_names_do_nothing_of_them)
{
	struct pmheap_vector_op ops[2 * BIRTHS];
	char names[BIRTHS][24];
	__u64 offs[BIRTHS], digest;
	unsigned int n;
	bool more;
	int rc;

	NEEDS_INJECTION(&self->in);
	do {
		ASSERT_EQ(0, reserve(self->pool, 200, 0, 0, 0, BIRTHS, offs));
		n = births(ops, offs, names, self->in.nth);
		digest = pool_digest(self->pool);
		inject_from_here(&self->in);
		rc = apply(self->pool, ops, n, NULL);
		more = judged(_metadata, &self->in, rc, 0, digest == pool_digest(self->pool));
		if (rc) {
			ASSERT_EQ(0, apply(self->pool, ops, n, NULL));
		}
		ASSERT_EQ(0, apply(self->pool, ops, deaths(ops, offs, names), NULL));
	} while (more && self->in.nth < 10000);
	told("long vectors", &self->in);
	EXPECT_LT(1, self->in.nth);
}

/* Faults have nobody to give an error to: memory is there when it is touched, or the core tries again. */
TEST_F(larger, failures_in_mmap_and_in_the_faults_of_a_mapping_lose_nothing)
{
	__u64 off = 0;
	bool more;

	NEEDS_INJECTION(&self->in);
	ASSERT_EQ(0, reserve(self->pool, 2 * CHUNK, 0, 0, 0, 1, &off));
	do {
		volatile char *p;
		int rc = 0;

		inject_from_here(&self->in);
		p = map_pool(self->pool, off, 2 * CHUNK, PROT_READ | PROT_WRITE);
		if (p == MAP_FAILED)
			rc = -errno;
		for (__u64 at = 0; !rc && at < 2 * CHUNK; at += CHUNK / 4)
			p[at] = (char)at + 1;
		more = judged(_metadata, &self->in, rc, 0, true);
		if (rc)
			continue;
		for (__u64 at = 0; at < 2 * CHUNK; at += CHUNK / 4) {
			EXPECT_EQ((char)at + 1, p[at]);
			p[at] = 0;
		}
		ASSERT_EQ(0, munmap((void *)p, 2 * CHUNK));
	} while (more && self->in.nth < 10000);
	told("mmap and faults", &self->in);
	EXPECT_LT(1, self->in.nth);
}

/* ---- attach, detach, format ---- */

FIXTURE(whole)
{
	struct injector in;
	const char *path;
};

FIXTURE_SETUP(whole)
{
	injector_setup(_metadata, &self->in);
	self->path = device_path();
	if (!self->path)
		return;
	ASSERT_EQ(0, device_detached());
}

FIXTURE_TEARDOWN(whole)
{
	int fd;

	injector_teardown(&self->in);
	fd = region_open();
	EXPECT_LE(0, fd);
	close(fd);
}

#define NEEDS_DEVICE(self)                                                                      \
	if (!(self)->path)                                                                      \
		SKIP(return, "PMHEAP_DEVICE is not set")

static bool is_attached(const char *path)
{
	int fd = region_of_device(path);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

TEST_F_TIMEOUT(whole, failures_in_attach_leave_the_device_free, SLOW)
{
	bool more;
	int rc;

	NEEDS_INJECTION(&self->in);
	NEEDS_DEVICE(self);
	do {
		inject_from_here(&self->in);
		rc = attach(self->path, 0);
		more = judged(_metadata, &self->in, rc < 0 ? rc : 0, 0, !is_attached(self->path));
		if (rc >= 0) {
			ASSERT_EQ(0, detach((__u32)rc, 0));
		}
	} while (more && self->in.nth < 10000);
	told("attach", &self->in);
	EXPECT_LT(1, self->in.nth);
}

TEST_F_TIMEOUT(whole, failures_in_detach_leave_the_region_attached_or_gone, SLOW)
{
	bool more;
	int rc, n;

	NEEDS_INJECTION(&self->in);
	NEEDS_DEVICE(self);
	do {
		n = attach(self->path, 0);
		ASSERT_LE(0, n);
		inject_from_here(&self->in);
		rc = detach((__u32)n, 0);
		more = judged(_metadata, &self->in, rc, 0, is_attached(self->path));
		if (rc) {
			ASSERT_EQ(0, detach((__u32)n, 0));
		}
	} while (more && self->in.nth < 10000);
	told("detach", &self->in);
	EXPECT_LT(1, self->in.nth);
}

TEST_F_TIMEOUT(whole, failures_in_format_leave_a_device_that_can_be_formatted, SLOW)
{
	bool more;
	int rc;

	NEEDS_INJECTION(&self->in);
	NEEDS_DEVICE(self);
	do {
		struct pmheap_format f = { .flags = PMHEAP_FORMAT_FORCE };

		inject_from_here(&self->in);
		rc = control_format(self->path, &f);
		more = judged(_metadata, &self->in, rc, 0, true);
	} while (more && self->in.nth < 10000);
	told("format", &self->in);
	EXPECT_LT(1, self->in.nth);
}

TEST_HARNESS_MAIN
