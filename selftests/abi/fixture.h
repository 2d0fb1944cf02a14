/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of the ABI share: the region under test, one fresh pool, and helpers that assert.
 *
 *   PMHEAP_REGION   the region, default /dev/pmheap0; the tests own it and destroy what is in it
 *   PMHEAP_DEVICE   its block device (/dev/pmem0), or unset for emulated memory; with it the tests also
 *                   detach, attach, format and unbind, and find the region by its device
 *
 * Helpers whose first argument is _metadata assert. Code in a forked child uses child_check() instead: a failed
 * ASSERT there would unwind into the parent's test. The harness's EXPECT and ASSERT are two statements each: in
 * a loop or after an if they need braces, or the second is left outside.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include "kselftest_harness.h"
#include "calls.h"

#undef TEST_TIMEOUT_DEFAULT	/* an emulated machine is slow */
#define TEST_TIMEOUT_DEFAULT 180

#define POOL "test"
#define OTHER "other"
#define KIB 1024ULL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define CHUNK (2 * MIB)
#define PAGE 4096ULL
#define SOMEBODY 1000		/* an unprivileged uid and gid */
#define KERNEL_ADDRESS 0xffff888000000000ULL

struct heap {
	int region;		/* fd of /dev/pmheapN */
	int pool;		/* fd of POOL, or -1 */
};

/* ---- children ---- */

#define child_check(cond)                                                                       \
	do {                                                                                    \
		if (!(cond)) {                                                                  \
			dprintf(STDERR_FILENO, "# %s:%d: child: %s does not hold (errno %d)\n", \
				__FILE__, __LINE__, #cond, errno);                              \
			_exit(1);                                                               \
		}                                                                               \
	} while (0)

static inline pid_t child_start(void)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* Its exit status, or -signal. */
static inline int child_end(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1000;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void become(unsigned int id)
{
	child_check(!setresgid(id, id, id));
	child_check(!setresuid(id, id, id));
}

/* ---- touching memory that may not be there ---- */

static sigjmp_buf touch_env;
static volatile sig_atomic_t touch_code;
static void * volatile touch_address;

static inline void touch_handler(int sig, siginfo_t *info, void *context)
{
	(void)context;
	touch_code = info->si_code;
	touch_address = info->si_addr;
	siglongjmp(touch_env, sig);
}

/* Read or write one byte: 0, or the signal that came. */
static inline int touch(void *p, bool write)
{
	struct sigaction act = { .sa_sigaction = touch_handler, .sa_flags = SA_SIGINFO }, bus, segv;
	int sig;

	sigemptyset(&act.sa_mask);
	sigaction(SIGBUS, &act, &bus);
	sigaction(SIGSEGV, &act, &segv);
	sig = sigsetjmp(touch_env, 1);
	if (!sig) {
		volatile char *byte = p;

		if (write)
			*byte = *byte;
		else
			(void)*byte;
	}
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGSEGV, &segv, NULL);
	return sig;
}

/* ---- the region and its pool ---- */

static inline const char *device_path(void)
{
	const char *path = getenv("PMHEAP_DEVICE");

	return path && *path ? path : NULL;
}

/* An open region whose source is that device, or -ENOENT. */
static inline int region_of_device(const char *path)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	struct pmheap_region_info info;
	char node[32];

	for (int n = 0; n < 64; n++) {
		int fd;

		snprintf(node, sizeof(node), "/dev/pmheap%d", n);
		fd = open(node, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (!region_info(fd, &info) && !strcmp((const char *)info.source, base))
			return fd;
		close(fd);
	}
	return -ENOENT;
}

static inline int region_open(void)
{
	const char *node = getenv("PMHEAP_REGION"), *device = device_path();
	int fd;

	if (!device) {
		fd = open(node && *node ? node : "/dev/pmheap0", O_RDWR | O_CLOEXEC);
		return fd < 0 ? -errno : fd;
	}
	fd = region_of_device(device);
	if (fd < 0) {		/* an earlier test detached it, and died */
		fd = attach(device, 0);
		fd = fd < 0 ? fd : region_of_device(device);
	}
	return fd;
}

/* N of /dev/pmheapN behind an fd. */
static inline int region_number(int fd)
{
	char link[64], path[64] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	if (readlink(link, path, sizeof(path) - 1) < 0)
		return -errno;
	return strncmp(path, "/dev/pmheap", 11) ? -EINVAL : atoi(path + 11);
}

static inline void region_sweep(int region)
{
	struct pmheap_pool_info info;
	__u64 cursor = 0;

	while (!pool_list(region, &cursor, &info)) {
		info.name[PMHEAP_POOL_NAME_SIZE - 1] = 0;
		pool_destroy(region, (const char *)info.name);
	}
}

static inline void heap_setup(struct __test_metadata *_metadata, struct heap *h, __u64 quota)
{
	h->pool = -1;
	h->region = region_open();
	ASSERT_LE(0, h->region)
		TH_LOG("no region: %s", strerror(-h->region));
	region_sweep(h->region);
	h->pool = pool_create(h->region, POOL, quota);
	ASSERT_LE(0, h->pool)
		TH_LOG("no pool: %s", strerror(-h->pool));
}

static inline void heap_teardown(struct __test_metadata *_metadata, struct heap *h)
{
	if (h->pool >= 0) {
		EXPECT_EQ(0, close(h->pool));
	}
	if (h->region >= 0) {
		region_sweep(h->region);
		EXPECT_EQ(0, close(h->region));
	}
}

/* ---- helpers that assert ---- */

static inline __u64 reserved(struct __test_metadata *_metadata, int pool, __u64 bytes)
{
	__u64 off = 0;

	ASSERT_EQ(0, reserve(pool, bytes, 0, 0, 0, 1, &off));
	ASSERT_NE(0, off);
	return off;
}

static inline __u64 published(struct __test_metadata *_metadata, int pool, __u64 bytes)
{
	__u64 off = 0;

	ASSERT_EQ(0, reserve(pool, bytes, 0, 0, PMHEAP_RESERVE_ZERO, 1, &off));
	ASSERT_EQ(0, apply_one(pool, PUBLISH(off)));
	return off;
}

static inline struct pmheap_pool_stat stat_of(struct __test_metadata *_metadata, int pool)
{
	struct pmheap_pool_stat st;

	ASSERT_EQ(0, stat_get(pool, &st));
	return st;
}

static inline __u64 usable(struct __test_metadata *_metadata, int pool, __u64 off)
{
	struct pmheap_object_info o;

	ASSERT_EQ(0, object(pool, off, &o));
	ASSERT_EQ(off, o.off);
	return o.bytes;
}

static inline void *mapped(struct __test_metadata *_metadata, int pool, __u64 off, size_t len)
{
	void *p = map_pool(pool, off, len, PROT_READ | PROT_WRITE);

	ASSERT_NE(MAP_FAILED, p)
		TH_LOG("mmap: %s", strerror(errno));
	return p;
}

static inline __u64 hash_bytes(__u64 hash, const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len--)
		hash = (hash ^ *p++) * 0x100000001b3ULL;
	return hash;
}

#define HASH_START 0xcbf29ce484222325ULL

/* Everything a program can see of a pool but its contents and the counters; 0 when it cannot be told. */
static inline __u64 pool_digest(int pool)
{
	struct pmheap_pool_stat st;
	struct pmheap_next n;
	__u64 hash = HASH_START, sum = 0, cursor = 0, off;
	char name[PMHEAP_NAME_LEN_MAX];
	__u32 len;
	int rc;

	if (stat_get(pool, &st))
		return 0;
	hash = hash_bytes(hash, &st.quota, offsetof(struct pmheap_pool_stat, fences) -
			  offsetof(struct pmheap_pool_stat, quota));
	while (!(rc = next(pool, PMHEAP_ANY_TYPE, &cursor, &n)))
		hash = hash_bytes(hash, &n.found_type, sizeof(n) - offsetof(struct pmheap_next, found_type));
	if (rc != -ENOENT)
		return 0;
	for (cursor = 0; len = sizeof(name), !(rc = name_next(pool, &cursor, name, &len, &off)); )
		sum += hash_bytes(hash_bytes(HASH_START, name, len), &off, sizeof(off));
	return rc == -ENOENT ? hash_bytes(hash, &sum, sizeof(sum)) | 1 : 0;
}

/* The pools of a region: names, owners, quotas, sizes. */
static inline __u64 region_digest(int region)
{
	struct pmheap_pool_info info;
	__u64 cursor = 0, sum = 0;

	while (!pool_list(region, &cursor, &info)) {
		info.cursor = 0;
		info.opens = 0;
		sum += hash_bytes(HASH_START, &info, sizeof(info));
	}
	return sum | 1;
}

/* A call that must fail so and change nothing in the pool. */
#define EXPECT_REFUSED(want, pool, call_)                       \
	do {                                                    \
		__u64 __before = pool_digest(pool);             \
		EXPECT_NE(0, __before);                         \
		EXPECT_EQ(want, call_);                         \
		EXPECT_EQ(__before, pool_digest(pool));         \
	} while (0)

/* A vector that must be refused, the op at `at` being at fault. */
#define EXPECT_BAD_VECTOR(want, at, pool, ...)                                  \
	do {                                                                    \
		__u32 __failed = ~1U;                                           \
		EXPECT_REFUSED(want, pool, apply(pool, VECTOR(__VA_ARGS__), &__failed)); \
		EXPECT_EQ((__u32)(at), __failed);                               \
	} while (0)

#define EXPECT_VECTOR(pool, ...)                                                \
	do {                                                                    \
		__u32 __failed = ~1U;                                           \
		EXPECT_EQ(0, apply(pool, VECTOR(__VA_ARGS__), &__failed));      \
		EXPECT_EQ(sizeof((struct pmheap_vector_op[]){ __VA_ARGS__ }) /  \
			  sizeof(struct pmheap_vector_op), __failed);           \
	} while (0)

static inline __u64 next_random(__u64 *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Of the first hundred, which is more than a test has. */
static inline unsigned int open_files(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 100; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

#endif
