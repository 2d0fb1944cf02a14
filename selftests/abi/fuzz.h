/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arguments of random calls: a good one for each command, out of values, offsets, names and buffers that mean
 * something, and one thing of it spoiled.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <pthread.h>
#include "commands.h"

#define SLOTS 8			/* shared descriptors of pools */
#define OFFS 64
#define ARENA 0x20000000UL	/* fixed, as addresses are part of the calls */
#define ARENA_PAGES 32
#define WINDOW (ARENA + 0x1000000UL)	/* where pools are mapped */
#define WINDOWS 4

struct shared {
	int region, control;
	int pool[SLOTS];
	__u64 off[OFFS];	/* of objects, some of them still there */
	volatile bool stop;
};

struct fuzzer {
	pthread_t thread;
	struct shared *shared;
	__u64 seed;
	unsigned char *arena;	/* the thread's part of it */
	unsigned long calls, good;
	__u64 hash;		/* of the calls and what they gave */
	int strange;		/* an errno that no call should give */
	__u32 strange_cmd;
};

static inline __u64 pick(struct fuzzer *f, __u64 n)
{
	return next_random(&f->seed) % n;
}

static inline bool one_in(struct fuzzer *f, __u64 n)
{
	return !pick(f, n);
}

/* ---- values ---- */

static inline __u64 odd_value(struct fuzzer *f)
{
	static const __u64 odd[] = { 0, 1, 2, 7, 15, 16, 63, 255, 256, 1024, 1025, 4095, 4096, 65535, 0x7fffffff,
				     0x80000000, 0xffffffff, 0x100000000, CHUNK - 1, CHUNK, CHUNK + 1, 1ULL << 36,
				     1ULL << 40, ~0ULL >> 1, 1ULL << 63, -4096ULL, -16ULL, ~0ULL };

	return one_in(f, 3) ? next_random(&f->seed) >> pick(f, 64) : odd[pick(f, ARRAY_SIZE(odd))];
}

static inline __u64 some_size(struct fuzzer *f)
{
	return one_in(f, 20) ? odd_value(f) : 1 + pick(f, one_in(f, 10) ? 3 * CHUNK : 5000);
}

static inline __u64 some_off(struct fuzzer *f)
{
	__u64 off = __atomic_load_n(&f->shared->off[pick(f, OFFS)], __ATOMIC_RELAXED);

	return one_in(f, 8) ? off + 8 * pick(f, 600) : one_in(f, 30) ? odd_value(f) : off;
}

/* Good memory mostly; else a page without access, one that is read-only, a hole, a pool's mapping, the kernel. */
static inline __u64 some_buffer(struct fuzzer *f)
{
	__u64 own = address(f->arena) + PAGE + 64 * pick(f, 32);

	switch (pick(f, 40)) {
	case 0:
		return ARENA + pick(f, (ARENA_PAGES + 2) * PAGE);
	case 1:
		return WINDOW + pick(f, WINDOWS) * CHUNK + pick(f, CHUNK);
	case 2:
		return one_in(f, 2) ? KERNEL_ADDRESS : odd_value(f);
	default:
		return own;
	}
}

static inline __u64 some_name(struct fuzzer *f, __u32 *len)
{
	__u64 at = some_buffer(f);

	*len = 1 + (__u32)pick(f, 2);
	if (at >= address(f->arena) && at < address(f->arena) + 4 * PAGE)
		memset((void *)(uintptr_t)at, 'a' + (int)pick(f, 4), *len);
	return at;
}

static inline __u64 some_vector(struct fuzzer *f, __u32 count)
{
	struct pmheap_vector_op *ops = (void *)f->arena;

	for (__u32 i = 0; i < count && i < 40; i++) {
		ops[i] = (struct pmheap_vector_op){ .kind = 1 + (__u32)pick(f, 7), .off = some_off(f) };
		if (ops[i].kind >= PMHEAP_OP_STORE64 && ops[i].kind <= PMHEAP_OP_ADD64)
			ops[i].value = pick(f, 3);
		if (ops[i].kind == PMHEAP_OP_COMPARE64)
			ops[i].value = 0;
		if (ops[i].kind >= PMHEAP_OP_NAME)
			ops[i].name = some_name(f, &ops[i].name_len);
		if (ops[i].kind == PMHEAP_OP_UNNAME)
			ops[i].off = 0;
		if (one_in(f, 40))
			((__u32 *)&ops[i])[pick(f, sizeof(*ops) / 4)] = (__u32)odd_value(f);
	}
	return one_in(f, 40) ? some_buffer(f) : address(ops);
}

static inline __u64 some_list(struct fuzzer *f, __u32 count)
{
	__u64 *offs = (void *)f->arena;

	for (__u32 i = 0; i < count && i < 128; i++)
		offs[i] = some_off(f);
	return one_in(f, 40) ? some_buffer(f) : address(offs);
}

/* ---- calls ---- */

union argument {
	__u32 size;
	unsigned char bytes[512];
	__u32 words[128];
	struct pmheap_attach attach;
	struct pmheap_detach detach;
	struct pmheap_format format;
	struct pmheap_pool_create create;
	struct pmheap_pool_open open;
	struct pmheap_pool_info info;
	struct pmheap_reserve reserve;
	struct pmheap_cancel cancel;
	struct pmheap_apply apply;
	struct pmheap_object_info object;
	struct pmheap_next next;
	struct pmheap_name_next name_next;
	struct pmheap_persist persist;
	struct pmheap_pool_stat stat;
	struct pmheap_set_quota quota;
	struct pmheap_scrub scrub;
};

static inline __u32 some_count(struct fuzzer *f, __u32 most)
{
	return one_in(f, 30) ? (__u32)odd_value(f) : 1 + (__u32)pick(f, one_in(f, 8) ? most : 6);
}

/* name and name_len of open, destroy, name_get; create has them in the same place. */
static inline void fill_name(struct fuzzer *f, union argument *arg)
{
	arg->open.name = some_name(f, &arg->open.name_len);
}

static inline void fill_list(struct fuzzer *f, enum command_index which, union argument *arg)
{
	switch (which) {
	case TAKE:
		arg->reserve = (struct pmheap_reserve){ .flags = (__u32)pick(f, 2), .bytes = some_size(f),
			.align = one_in(f, 4) ? 1ULL << pick(f, 23) : 0, .type = (__u32)pick(f, 6),
			.count = some_count(f, 128), .offs = one_in(f, 30) ? some_buffer(f) : address(f->arena) };
		break;
	case CANCEL:
		arg->cancel.count = some_count(f, 128);
		arg->cancel.offs = some_list(f, arg->cancel.count);
		break;
	case APPLY:
		arg->apply.count = some_count(f, 40);
		arg->apply.ops = some_vector(f, arg->apply.count);
		break;
	default:
		arg->persist.count = some_count(f, 64);
		arg->persist.ranges = some_list(f, 2 * arg->persist.count);
	}
}

static inline void fill_good(struct fuzzer *f, enum command_index which, union argument *arg)
{
	switch (which) {
	case ATTACH:
	case FORMAT:
		arg->attach.path = one_in(f, 2) ? address(no_such_path) : some_buffer(f);
		arg->attach.path_len = 1 + (__u32)pick(f, 30);
		break;
	case CREATE:
		arg->create.quota = one_in(f, 3) ? 0 : CHUNK * (1 + pick(f, 4));
		arg->create.span = one_in(f, 2) ? 0 : CHUNK * (1 + pick(f, 64));
		/* fall through */
	case OPEN:
		arg->open.flags = which == OPEN ? (__u32)pick(f, 2) : 0;
		/* fall through */
	case DESTROY:
	case GET_NAME:
		fill_name(f, arg);
		break;
	case TAKE:
	case CANCEL:
	case APPLY:
	case PERSIST:
		fill_list(f, which, arg);
		break;
	case OBJECT:
		arg->object.off = some_off(f);
		break;
	case NEXT:
		arg->next.type = one_in(f, 2) ? PMHEAP_ANY_TYPE : (__u32)pick(f, 6);
		arg->next.cursor = some_off(f);
		break;
	case NEXT_NAME:
		arg->name_next.cursor = one_in(f, 2) ? 0 : odd_value(f);
		arg->name_next.name = some_buffer(f);
		arg->name_next.name_len = PMHEAP_NAME_LEN_MAX;
		break;
	case SCRUB:
		arg->scrub = (struct pmheap_scrub){ .flags = (__u32)pick(f, 2), .cursor = pick(f, 200),
			.findings = some_buffer(f), .count = some_count(f, 20), .limit = some_count(f, 100) };
		break;
	case QUOTA:
		arg->quota.quota = one_in(f, 2) ? 0 : CHUNK * pick(f, 16);
		break;
	default:
		break;
	}
}

static inline void spoil(struct fuzzer *f, const struct command *c, union argument *arg)
{
	switch (pick(f, 12)) {
	case 0:
		arg->size = (__u32)odd_value(f);
		break;
	case 1:
		arg->bytes[pick(f, c->size)] ^= (unsigned char)(1U << pick(f, 8));
		break;
	case 2:
		arg->words[pick(f, c->size / 4)] = (__u32)odd_value(f);
		break;
	case 3:
		if (one_in(f, 6))
			for (unsigned int i = 1; i < sizeof(arg->words) / 4; i++)
				arg->words[i] = (__u32)next_random(&f->seed);
		break;
	default:
		break;
	}
}

#endif
