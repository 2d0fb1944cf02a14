/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the engine asks of the world it is compiled into.
 *
 * The engine is plain C. It runs in the kernel, in libpmheap (file: regions), in the offline tools and
 * in the tests; this header is the only place where the two worlds meet, so a port to a third is a read
 * of this file and of persist.h.
 *
 *   types       u8..u64, s32, s64, __le16/32/64 with sparse's endian checks, bool
 *   memory      port_alloc() (zeroed, any size, may sleep), port_free()
 *   locks       port_mutex, port_rwsem; every lock may sleep; port_rwsem_write_killable() may give -EINTR
 *   atomics     port_atomic64 for statistics; port_load_acquire()/port_store_release() for publication
 *   checksum    port_crc32c_word(): CRC32C over one little-endian 8-byte word, no finalisation
 *   courtesy    port_breathe() in long loops: reschedules, and gives -EINTR once the task is being killed
 *
 * On the host the lock bodies are functions resolved at link time, so that a test can replace them by
 * ones that switch between simulated CPUs.
 */
#ifndef PMHEAP_CORE_PORT_H
#define PMHEAP_CORE_PORT_H

#ifdef __KERNEL__

#include <linux/types.h>
#include <linux/kernel.h>
#include <linux/errno.h>
#include <linux/string.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sched/signal.h>
#include <linux/mutex.h>
#include <linux/rwsem.h>
#include <linux/list.h>
#include <linux/bitops.h>
#include <linux/bitmap.h>
#include <linux/log2.h>
#include <linux/build_bug.h>
#include <linux/crc32c.h>
#include <linux/random.h>
#include <linux/sort.h>
#include <linux/smp.h>
#ifdef CONFIG_X86_64
#include <asm/cpufeature.h>
#endif

#define port_mutex mutex
#define port_mutex_init(m) mutex_init(m)
#define port_mutex_destroy(m) mutex_destroy(m)
/* One of several like locks that are taken in the order of their ranks, below 32. */
#define port_mutex_init_ranked(m, rank)                                                 \
	do {                                                                            \
		static struct lock_class_key keys_[32];                                 \
		mutex_init(m);                                                          \
		lockdep_set_class(m, &keys_[rank]);                                     \
	} while (0)
#define port_mutex_lock(m) mutex_lock(m)
#define port_mutex_trylock(m) mutex_trylock(m)
#define port_mutex_unlock(m) mutex_unlock(m)
#define port_mutex_assert(m) lockdep_assert_held(m)

#define port_rwsem rw_semaphore
#define port_rwsem_init(s) init_rwsem(s)
#define port_rwsem_destroy(s) do { } while (0)
#define port_rwsem_read(s) down_read(s)
#define port_rwsem_tryread(s) down_read_trylock(s)
#define port_rwsem_read_done(s) up_read(s)
#define port_rwsem_write(s) down_write(s)
#define port_rwsem_write_killable(s) down_write_killable(s)
#define port_rwsem_write_done(s) up_write(s)

#define port_atomic64 atomic64_t
#define port_atomic64_add(v, a) atomic64_add(v, a)
#define port_atomic64_read(a) ((u64)atomic64_read(a))
#define port_atomic64_set(a, v) atomic64_set(a, v)
#define port_load_acquire(p) smp_load_acquire(p)
#define port_store_release(p, v) smp_store_release(p, v)

static inline void *port_alloc(size_t bytes)
{
	return kvzalloc(bytes, GFP_KERNEL_ACCOUNT);
}

static inline void port_free(const void *p)
{
	kvfree(p);
}

static inline int port_breathe(void)
{
	cond_resched();
	return fatal_signal_pending(current) ? -EINTR : 0;
}

static inline u32 port_cpu(void)
{
	return raw_smp_processor_id();
}

static inline void port_random(void *buf, size_t len)
{
	get_random_bytes(buf, len);
}

#define port_sort(base, n, size, cmp) sort(base, n, size, cmp, NULL)

/* crc32c() of 6.1 is an indirect call into the crypto layer; one word at a time wants the instruction. */
static inline u32 port_crc32c_word(u32 crc, u64 word)
{
	__le64 le = cpu_to_le64(word);

#ifdef CONFIG_X86_64
	if (likely(boot_cpu_has(X86_FEATURE_XMM4_2))) {
		u64 wide = crc;

		asm("crc32q %1, %0" : "+r" (wide) : "rm" (word));
		return (u32)wide;
	}
#endif
	return crc32c(crc, &le, sizeof(le));
}

#else /* the host */

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#ifndef __force
#ifdef __CHECKER__
#define __force __attribute__((force))
#else
#define __force
#endif
#endif
#define cpu_to_le16(v) ((__force __le16)htole16(v))
#define cpu_to_le32(v) ((__force __le32)htole32(v))
#define cpu_to_le64(v) ((__force __le64)htole64(v))
#define le16_to_cpu(v) le16toh((__force u16)(v))
#define le32_to_cpu(v) le32toh((__force u32)(v))
#define le64_to_cpu(v) le64toh((__force u64)(v))

#ifndef EUCLEAN
#define EUCLEAN 117
#endif
#define static_assert _Static_assert
#define container_of(ptr, type, member) ((type *)((char *)(ptr) - offsetof(type, member)))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define min_t(t, a, b) ((t)(a) < (t)(b) ? (t)(a) : (t)(b))
#define max_t(t, a, b) ((t)(a) > (t)(b) ? (t)(a) : (t)(b))
#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))
#define READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v) __atomic_store_n(&(x), v, __ATOMIC_RELAXED)

static inline bool is_power_of_2(u64 n)
{
	return n && !(n & (n - 1));
}

static inline unsigned int hweight64(u64 w)
{
	return (unsigned int)__builtin_popcountll(w);
}

static inline unsigned int fls64(u64 w)
{
	return w ? 64 - (unsigned int)__builtin_clzll(w) : 0;
}

static inline unsigned long __ffs64(u64 w)
{
	return (unsigned long)__builtin_ctzll(w);
}

/* A list as the kernel spells it, the few calls the engine uses. */
struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool list_empty(const struct list_head *l)
{
	return l->next == l;
}

static inline void list_add(struct list_head *n, struct list_head *head)
{
	n->next = head->next;
	n->prev = head;
	head->next->prev = n;
	head->next = n;
}

static inline void list_add_tail(struct list_head *n, struct list_head *head)
{
	list_add(n, head->prev);
}

static inline void list_del_init(struct list_head *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	INIT_LIST_HEAD(n);
}

#define list_entry(p, type, member) container_of(p, type, member)
#define list_first_entry(l, type, member) list_entry((l)->next, type, member)
#define list_for_each_entry(pos, head, member)                                  \
	for (pos = list_entry((head)->next, __typeof__(*pos), member);          \
	     &pos->member != (head);                                            \
	     pos = list_entry(pos->member.next, __typeof__(*pos), member))
#define list_for_each_entry_safe(pos, n, head, member)                          \
	for (pos = list_entry((head)->next, __typeof__(*pos), member),          \
	     n = list_entry(pos->member.next, __typeof__(*pos), member);        \
	     &pos->member != (head);                                            \
	     pos = n, n = list_entry(n->member.next, __typeof__(*n), member))

struct port_mutex {
	pthread_mutex_t m;
};

struct port_rwsem {
	pthread_rwlock_t s;
};

void port_mutex_init(struct port_mutex *m);
void port_mutex_destroy(struct port_mutex *m);
void port_mutex_lock(struct port_mutex *m);
int port_mutex_trylock(struct port_mutex *m);	/* 1 taken, 0 not */
void port_mutex_unlock(struct port_mutex *m);
#define port_mutex_init_ranked(m, rank) port_mutex_init(m)
#define port_mutex_assert(m) ((void)(m))

void port_rwsem_init(struct port_rwsem *s);
void port_rwsem_destroy(struct port_rwsem *s);
void port_rwsem_read(struct port_rwsem *s);
int port_rwsem_tryread(struct port_rwsem *s);	/* 1 taken, 0 not */
void port_rwsem_read_done(struct port_rwsem *s);
void port_rwsem_write(struct port_rwsem *s);
void port_rwsem_write_done(struct port_rwsem *s);
static inline int port_rwsem_write_killable(struct port_rwsem *s)
{
	port_rwsem_write(s);
	return 0;
}

typedef struct {
	u64 v;
} port_atomic64;
#define port_atomic64_add(d, a) ((void)__atomic_fetch_add(&(a)->v, (u64)(d), __ATOMIC_RELAXED))
#define port_atomic64_read(a) __atomic_load_n(&(a)->v, __ATOMIC_RELAXED)
#define port_atomic64_set(a, d) __atomic_store_n(&(a)->v, d, __ATOMIC_RELAXED)
#define port_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define port_store_release(p, d) __atomic_store_n(p, d, __ATOMIC_RELEASE)

void *port_alloc(size_t bytes);		/* a function: tests make it fail */
void port_free(const void *p);
int port_breathe(void);
u32 port_cpu(void);
void port_random(void *buf, size_t len);
u32 port_crc32c_word(u32 crc, u64 word);
#define port_sort(base, n, size, cmp) qsort(base, n, size, cmp)

#endif /* __KERNEL__ */
#endif
