// SPDX-License-Identifier: MIT
/*
 * The host's bodies of kmod/core/port.h: locks are POSIX ones, memory is calloc(). The engine passes a lock
 * only what a lock may fail with by a bug, so a failure stops the program.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <sys/random.h>

#include <port.h>

static void port_must(int rc)
{
	if (rc)
		abort();
}

void port_mutex_init(struct port_mutex *m)
{
	port_must(pthread_mutex_init(&m->m, NULL));
}

void port_mutex_destroy(struct port_mutex *m)
{
	port_must(pthread_mutex_destroy(&m->m));
}

void port_mutex_lock(struct port_mutex *m)
{
	port_must(pthread_mutex_lock(&m->m));
}

int port_mutex_trylock(struct port_mutex *m)
{
	return !pthread_mutex_trylock(&m->m);
}

void port_mutex_unlock(struct port_mutex *m)
{
	port_must(pthread_mutex_unlock(&m->m));
}

void port_rwsem_init(struct port_rwsem *s)
{
	port_must(pthread_rwlock_init(&s->s, NULL));
}

void port_rwsem_destroy(struct port_rwsem *s)
{
	port_must(pthread_rwlock_destroy(&s->s));
}

void port_rwsem_read(struct port_rwsem *s)
{
	port_must(pthread_rwlock_rdlock(&s->s));
}

int port_rwsem_tryread(struct port_rwsem *s)
{
	return !pthread_rwlock_tryrdlock(&s->s);
}

void port_rwsem_read_done(struct port_rwsem *s)
{
	port_must(pthread_rwlock_unlock(&s->s));
}

void port_rwsem_write(struct port_rwsem *s)
{
	port_must(pthread_rwlock_wrlock(&s->s));
}

void port_rwsem_write_done(struct port_rwsem *s)
{
	port_must(pthread_rwlock_unlock(&s->s));
}

void *port_alloc(size_t bytes)
{
	return calloc(1, bytes);
}

void port_free(const void *p)
{
	free((void *)(uintptr_t)p);
}

int port_breathe(void)
{
	return 0;	/* a dying process takes its threads with it */
}

u32 port_cpu(void)
{
	int cpu = sched_getcpu();

	return cpu < 0 ? 0 : (u32)cpu;
}

void port_random(void *buf, size_t len)
{
	unsigned char *to = buf;
	ssize_t got;

	while (len) {
		got = getrandom(to, len, 0);
		if (got < 0 && errno != EINTR)
			abort();
		if (got > 0) {
			to += got;
			len -= (size_t)got;
		}
	}
}
