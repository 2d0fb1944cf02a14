// SPDX-License-Identifier: GPL-2.0-only
/*
 * Random calls with random arguments, from several threads that share descriptors, mappings and buffers: each gives
 * 0 or an errno of the ABI, and afterwards the region is whole and nothing is left in it. What the kernel thinks of
 * it stands in its log.
 *
 * Most calls begin as good ones, of which one thing is spoiled: pure noise does not get past the first check.
 *
 *   PMHEAP_FUZZ_SECONDS   how long the threads go on (default 4)
 *   PMHEAP_SEED           default 1; one thread on one CPU makes the same calls from the same seed, and gets the
 *                         same answers: the second test shows it, and a search for a failure can use it
 */
#include <pthread.h>
#include <sched.h>
#include "fuzz.h"

#define THREADS 4
#define SECONDS 4
#define REPEATED 4000U		/* calls of the repeatable form */

static unsigned int number(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text && *text ? (unsigned int)strtoul(text, NULL, 0) : otherwise;
}

static bool errno_of_the_abi(int rc)
{
	static const int known[] = { 0, ENOTTY, E2BIG, EOPNOTSUPP, EINVAL, EAGAIN, ENOENT, EEXIST, EBUSY, ENOSPC,
				     EDQUOT, EROFS, EACCES, EFAULT, ENXIO, ENOMEM, EMFILE, ENODEV, EBADF };

	for (unsigned int i = 0; i < ARRAY_SIZE(known); i++)
		if (rc == -known[i])
			return true;
	return false;
}

static void keep_pool(struct fuzzer *f, int fd)
{
	int old = __atomic_exchange_n(&f->shared->pool[pick(f, SLOTS)], fd, __ATOMIC_RELAXED);

	if (old >= 0)
		close(old);
}

/* What a call gave serves the next ones; another thread may have overwritten it meanwhile, which is as well. */
static void keep(struct fuzzer *f, unsigned long cmd, const union argument *arg)
{
	const __u64 *offs = (void *)f->arena;

	if (cmd == PMHEAP_POOL_CREATE)
		keep_pool(f, arg->create.fd);
	if (cmd == PMHEAP_POOL_OPEN)
		keep_pool(f, arg->open.fd);
	if (cmd == PMHEAP_RESERVE && arg->reserve.offs == address(offs))
		for (unsigned int i = 0; i < arg->reserve.count && i < 6; i++)
			__atomic_store_n(&f->shared->off[pick(f, OFFS)], offs[i], __ATOMIC_RELAXED);
}

static int some_fd(struct fuzzer *f, enum node node)
{
	const struct shared *s = f->shared;

	if (one_in(f, 40))
		node = (enum node)pick(f, 3);
	return node == CONTROL ? s->control : node == REGION ? s->region :
	       __atomic_load_n(&s->pool[pick(f, SLOTS)], __ATOMIC_RELAXED);
}

/* Regions have small numbers, and the machine needs them: this goes nowhere, and no other thread can change it. */
static int harmless_detach(struct fuzzer *f, const union argument *arg)
{
	union argument own = *arg;

	own.detach.region |= 1U << 16;
	return call(some_fd(f, CONTROL), PMHEAP_DETACH, &own);
}

static void random_ioctl(struct fuzzer *f)
{
	enum command_index which = (enum command_index)pick(f, COMMANDS);
	const struct command *c = &commands[which];
	unsigned long cmd = c->cmd;
	union argument *arg = (void *)(f->arena + 3 * PAGE);
	void *where = arg;
	int rc;

	memset(arg, 0, sizeof(*arg));
	fill_good(f, which, arg);
	arg->size = c->size;
	spoil(f, c, arg);
	if (one_in(f, 60))
		cmd = one_in(f, 2) ? cmd ^ 1UL << pick(f, 32) : odd_value(f) & 0xffffffff;
	if (one_in(f, 60))
		where = (void *)(uintptr_t)some_buffer(f);
	rc = cmd == PMHEAP_DETACH ? harmless_detach(f, arg) : call(some_fd(f, c->node), cmd, where);
	f->calls++;
	f->good += !rc;
	f->hash = hash_bytes(hash_bytes(f->hash, &cmd, sizeof(cmd)), &rc, sizeof(rc));
	if (!errno_of_the_abi(rc)) {
		f->strange = rc;
		f->strange_cmd = (__u32)cmd;
	}
	if (!rc && where == arg)
		keep(f, cmd, arg);
}

/* ---- everything else that can be done to a descriptor ---- */

static void random_mapping(struct fuzzer *f)
{
	void *at = (void *)(WINDOW + (unsigned long)(pick(f, WINDOWS) * CHUNK));
	size_t len = PAGE << pick(f, 10);
	int prot = (int)pick(f, 4), fd = some_fd(f, OBJECTS);

	switch (pick(f, 7)) {
	case 0:
	case 1:
		mmap(at, len, prot, (one_in(f, 8) ? MAP_PRIVATE : MAP_SHARED) | MAP_FIXED, fd,
		     (off_t)(one_in(f, 8) ? odd_value(f) / PAGE * PAGE : pick(f, 8) * CHUNK));
		break;
	case 2:
		mprotect(at, len, prot);
		break;
	case 3:
		/*
		 * Not MADV_DONTNEED: the core of 6.1 takes a 2 MiB DAX entry that another thread's fault makes
		 * meanwhile for a broken one, and says "bad pmd" (zap_pmd_range() does not know devmap there).
		 */
		madvise(at, len, one_in(f, 2) ? MADV_RANDOM : MADV_WILLNEED);
		break;
	case 4:
		msync(at, len, MS_SYNC);
		break;
	case 5:
		munmap(at, len);
		break;
	default:
		/* The kernel touches it: where nothing is, that is EFAULT and no signal. */
		if (one_in(f, 2))
			f->good += readlink("/proc/self/exe", at, 100) > 0;
		else
			f->good += !access(at, F_OK);
	}
}

static void random_file_call(struct fuzzer *f)
{
	int fd = some_fd(f, (enum node)pick(f, 3));
	struct stat st;
	char byte;

	switch (pick(f, 7)) {
	case 0:
		fsync(fd);
		break;
	case 1:
		lseek(fd, (off_t)odd_value(f), (int)pick(f, 3));
		break;
	case 2:
		f->good += pread(fd, &byte, 1, (off_t)odd_value(f)) > 0;
		break;
	case 3:
		f->good += !ftruncate(fd, (off_t)odd_value(f));
		break;
	case 4:
		fstat(fd, &st);
		break;
	case 5:
		keep_pool(f, -1);
		break;
	default:
		if (one_in(f, 20)) {
			pid_t pid = fork();	/* a copy of all this ends, calls in flight or not */

			if (!pid)
				_exit(0);
			waitpid(pid, NULL, 0);
		}
	}
}

static void random_call(struct fuzzer *f)
{
	switch (pick(f, 16)) {
	case 0:
		random_mapping(f);
		break;
	case 1:
		random_file_call(f);
		break;
	default:
		random_ioctl(f);
	}
}

static void *fuzz_until_told(void *arg)
{
	struct fuzzer *f = arg;

	while (!f->shared->stop)
		random_call(f);
	return NULL;
}

/* ---- tests ---- */

FIXTURE(fuzz)
{
	struct heap heap;
	struct pmheap_region_info before;
};

FIXTURE_SETUP(fuzz)
{
	heap_setup(_metadata, &self->heap, 0);
	ASSERT_EQ(0, close(self->heap.pool));
	self->heap.pool = -1;
	region_sweep(self->heap.region);
	ASSERT_EQ(0, region_info(self->heap.region, &self->before));
}

FIXTURE_TEARDOWN(fuzz)
{
	heap_teardown(_metadata, &self->heap);
}

static void shared_setup(struct shared *s, int region)
{
	void *arena = mmap((void *)ARENA, ARENA_PAGES * PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	child_check(arena == (void *)ARENA);
	child_check(!mprotect((void *)(ARENA + (ARENA_PAGES - 1) * PAGE), PAGE, PROT_READ));
	child_check(!mprotect((void *)(ARENA + (ARENA_PAGES - 2) * PAGE), PAGE, PROT_NONE));
	*s = (struct shared){ .region = region, .control = open("/dev/pmheap", O_RDWR | O_CLOEXEC) };
	child_check(s->control >= 0);
	for (unsigned int i = 0; i < SLOTS; i++) {
		char name[2] = { (char)('a' + i % 4), 0 };

		s->pool[i] = pool_create(region, name, 0);
		if (s->pool[i] < 0)
			s->pool[i] = pool_open(region, name, i % 4 == 3 ? PMHEAP_OPEN_RDONLY : 0);
		child_check(s->pool[i] >= 0);
	}
}

static void fuzzer_setup(struct fuzzer *f, struct shared *s, unsigned int index)
{
	*f = (struct fuzzer){ .shared = s, .arena = (unsigned char *)ARENA + index * 4 * PAGE,
			      .seed = (number("PMHEAP_SEED", 1) + index * 1000003ULL) * 0x9e3779b97f4a7c15ULL | 1,
			      .hash = HASH_START };
}

static void child_reports(const struct fuzzer *f)
{
	if (f->strange)
		dprintf(STDERR_FILENO, "# command %#x gave errno %d\n", f->strange_cmd, -f->strange);
	child_check(!f->strange);
	child_check(f->good > f->calls / 20);
}

static void __attribute__((noreturn)) fuzz_with_threads(int region)
{
	static struct fuzzer f[THREADS];
	unsigned long calls = 0, good = 0;
	static struct shared s;

	shared_setup(&s, region);
	for (unsigned int i = 0; i < THREADS; i++) {
		fuzzer_setup(&f[i], &s, i);
		child_check(!pthread_create(&f[i].thread, NULL, fuzz_until_told, &f[i]));
	}
	sleep(number("PMHEAP_FUZZ_SECONDS", SECONDS));
	s.stop = true;
	for (unsigned int i = 0; i < THREADS; i++) {
		child_check(!pthread_join(f[i].thread, NULL));
		child_reports(&f[i]);
		calls += f[i].calls;
		good += f[i].good;
	}
	printf("# fuzz: calls=%lu good=%lu seed=%u\n", calls, good, number("PMHEAP_SEED", 1));
	exit(0);
}

/* The fuzzers are dead: every pool can be walked and destroyed, and the region has all its chunks again. */
static void expect_whole_region(struct __test_metadata *_metadata, int region, const struct pmheap_region_info *before)
{
	struct pmheap_region_info after;
	struct pmheap_pool_info info;
	__u64 cursor = 0;

	while (!pool_list(region, &cursor, &info)) {
		int pool = pool_open(region, (const char *)info.name, 0);

		ASSERT_LE(0, pool);
		EXPECT_NE(0, pool_digest(pool));
		EXPECT_EQ(0, stat_of(_metadata, pool).reserved_bytes);
		ASSERT_EQ(0, close(pool));
	}
	region_sweep(region);
	ASSERT_EQ(0, region_info(region, &after));
	EXPECT_EQ(0, after.pools);
	EXPECT_EQ(before->damaged, after.damaged);
	EXPECT_EQ(before->chunks_free, after.chunks_free);
}

/* The time is the caller's to set. */
TEST_F_TIMEOUT(fuzz, random_calls_of_several_threads_leave_a_region_that_is_whole, 36000)
{
	pid_t pid = child_start();

	if (!pid)
		fuzz_with_threads(self->heap.region);
	EXPECT_EQ(0, child_end(pid));
	expect_whole_region(_metadata, self->heap.region, &self->before);
}

/* What one process with this seed does, on one CPU, as a hash. */
static __u64 repeatable_hash(struct __test_metadata *_metadata, int region)
{
	int ends[2];
	__u64 hash = 0;
	pid_t pid;

	ASSERT_EQ(0, pipe(ends));
	pid = child_start();
	if (!pid) {
		cpu_set_t first;
		struct shared s;
		struct fuzzer f;

		CPU_ZERO(&first);
		CPU_SET(0, &first);
		child_check(!sched_setaffinity(0, sizeof(first), &first));
		shared_setup(&s, region);
		fuzzer_setup(&f, &s, 0);
		while (f.calls < REPEATED)
			random_ioctl(&f);
		child_reports(&f);
		child_check(write(ends[1], &f.hash, sizeof(f.hash)) == sizeof(f.hash));
		_exit(0);
	}
	close(ends[1]);
	EXPECT_EQ(sizeof(hash), read(ends[0], &hash, sizeof(hash)));
	close(ends[0]);
	EXPECT_EQ(0, child_end(pid));
	return hash;
}

TEST_F(fuzz, one_seed_makes_the_same_calls_with_the_same_answers)
{
	__u64 first = repeatable_hash(_metadata, self->heap.region);

	expect_whole_region(_metadata, self->heap.region, &self->before);
	EXPECT_EQ(first, repeatable_hash(_metadata, self->heap.region));
	expect_whole_region(_metadata, self->heap.region, &self->before);
}

TEST_HARNESS_MAIN
