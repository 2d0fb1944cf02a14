// SPDX-License-Identifier: GPL-2.0-only
/* Host bodies of port.h for tests: allocations can be made to fail and are counted. */
#include <sys/random.h>
#include "medium.h"

long alloc_fail_at, allocs;
u32 cpu_now;

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
	if (getrandom(buf, len, 0) != (ssize_t)len)
		abort();
}

/* Bit by bit from a table made once: slow and plain on purpose, another form than the module's. */
u32 port_crc32c_word(u32 crc, u64 word)
{
	static u32 table[256];
	int i;

	if (!table[1]) {
		for (u32 n = 0; n < 256; n++) {
			u32 c = n;

			for (int k = 0; k < 8; k++)
				c = c & 1 ? 0x82f63b78u ^ c >> 1 : c >> 1;
			__atomic_store_n(&table[n], c, __ATOMIC_RELAXED);
		}
	}
	for (i = 0; i < 8; i++)
		crc = table[(crc ^ word >> i * 8) & 0xff] ^ crc >> 8;
	return crc;
}

void port_mutex_init(struct port_mutex *m)
{
	pthread_mutex_init(&m->m, NULL);
}

void port_mutex_destroy(struct port_mutex *m)
{
	pthread_mutex_destroy(&m->m);
}

void port_mutex_lock(struct port_mutex *m)
{
	pthread_mutex_lock(&m->m);
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
	pthread_rwlock_rdlock(&s->s);
}

void port_rwsem_read_done(struct port_rwsem *s)
{
	pthread_rwlock_unlock(&s->s);
}

void port_rwsem_write(struct port_rwsem *s)
{
	pthread_rwlock_wrlock(&s->s);
}

void port_rwsem_write_done(struct port_rwsem *s)
{
	pthread_rwlock_unlock(&s->s);
}
