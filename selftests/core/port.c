// SPDX-License-Identifier: GPL-2.0-only
/* Host bodies of port.h for tests: allocations can be made to fail and are counted. */
#include <sys/random.h>
#include "medium.h"

long alloc_fail_at, allocs;
u32 cpu_now, task_now;
u64 random_seed;
void (*cpu_wait)(void);
void (*cpu_switch)(void);
int cpu_held;
bool cpu_roams;

void *port_alloc(size_t bytes)
{
	void *p;

	if (alloc_fail_at && !--alloc_fail_at)
		return NULL;
	p = calloc(1, bytes ? bytes : 1);
	if (p)
		__atomic_add_fetch(&allocs, 1, __ATOMIC_RELAXED);
	return p;
}

void port_free(const void *p)
{
	if (p)
		__atomic_sub_fetch(&allocs, 1, __ATOMIC_RELAXED);
	free((void *)(uintptr_t)p);
}

int port_breathe(void)
{
	return 0;
}

u32 port_cpu(void)
{
	return cpu_now;
}

void port_random(void *buf, size_t len)
{
	u8 *to = buf;

	if (!random_seed) {
		if (getrandom(buf, len, 0) != (ssize_t)len)
			abort();
		return;
	}
	while (len--)
		*to++ = (u8)rnd(&random_seed, 256);
}

/* From tables made once, one for each byte of the word: another form than the module's on purpose. */
static u32 crc_table[8][256];

__attribute__((constructor)) static void crc_tables(void)
{
	for (u32 n = 0; n < 256; n++) {
		u32 c = n;

		for (int k = 0; k < 8; k++)
			c = c & 1 ? 0x82f63b78u ^ c >> 1 : c >> 1;
		crc_table[0][n] = c;
	}
	for (u32 k = 1; k < 8; k++)
		for (u32 n = 0; n < 256; n++)
			crc_table[k][n] = crc_table[0][crc_table[k - 1][n] & 0xff] ^ crc_table[k - 1][n] >> 8;
}

static u32 crc_by_table(u32 crc, u64 word)
{
	u32 sum = 0;

	word ^= crc;
	for (u32 k = 0; k < 8; k++)
		sum ^= crc_table[7 - k][word >> k * 8 & 0xff];
	return sum;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static u32 crc_by_instruction(u32 crc, u64 word)
{
	return (u32)__builtin_ia32_crc32di(crc, word);
}
#else
#define crc_by_instruction crc_by_table
#endif

/* Tests of crashes compute millions; a first use holds the two forms against each other. */
u32 port_crc32c_word(u32 crc, u64 word)
{
	static int fast = -1;
	int now = __atomic_load_n(&fast, __ATOMIC_RELAXED);

	if (now < 0) {
		now = 0;
#ifdef __x86_64__
		now = __builtin_cpu_supports("sse4.2") != 0;
		assert(!now || crc_by_instruction(crc, word) == crc_by_table(crc, word));
#endif
		__atomic_store_n(&fast, now, __ATOMIC_RELAXED);
	}
	return now ? crc_by_instruction(crc, word) : crc_by_table(crc, word);
}

void port_mutex_init(struct port_mutex *m)
{
	pthread_mutex_init(&m->m, NULL);
}

void port_mutex_destroy(struct port_mutex *m)
{
	pthread_mutex_destroy(&m->m);
}

/* A lock may sleep, and so must not be asked for between persist_begin() and persist_end(). */
static void may_sleep(void)
{
	assert(!cpu_held);
	if (cpu_switch)
		cpu_switch();
}

void port_mutex_lock(struct port_mutex *m)
{
	may_sleep();
	if (!cpu_wait)
		pthread_mutex_lock(&m->m);
	else
		while (pthread_mutex_trylock(&m->m))
			cpu_wait();
}

int port_mutex_trylock(struct port_mutex *m)
{
	return !pthread_mutex_trylock(&m->m);
}

void port_mutex_unlock(struct port_mutex *m)
{
	pthread_mutex_unlock(&m->m);
}

void port_rwsem_init(struct port_rwsem *s)
{
	pthread_rwlock_init(&s->s, NULL);
}

void port_rwsem_destroy(struct port_rwsem *s)
{
	pthread_rwlock_destroy(&s->s);
}

void port_rwsem_read(struct port_rwsem *s)
{
	may_sleep();
	if (!cpu_wait)
		pthread_rwlock_rdlock(&s->s);
	else
		while (pthread_rwlock_tryrdlock(&s->s))
			cpu_wait();
}

int port_rwsem_tryread(struct port_rwsem *s)
{
	may_sleep();
	return !pthread_rwlock_tryrdlock(&s->s);
}

void port_rwsem_read_done(struct port_rwsem *s)
{
	pthread_rwlock_unlock(&s->s);
}

void port_rwsem_write(struct port_rwsem *s)
{
	may_sleep();
	if (!cpu_wait)
		pthread_rwlock_wrlock(&s->s);
	else
		while (pthread_rwlock_trywrlock(&s->s))
			cpu_wait();
}

void port_rwsem_write_done(struct port_rwsem *s)
{
	pthread_rwlock_unlock(&s->s);
}
