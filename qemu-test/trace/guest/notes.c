// SPDX-License-Identifier: GPL-2.0-only
/*
 * libnotes.so, to be preloaded: tells the tracer each change that a program asks the module for, before the call
 * and after it. So any program that runs on the ABI can be traced, and what must survive is known. A program's own
 * stores to words are told by note_store() and note_stored(), which the workloads call when they are there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <linux/pmheap.h>

#include "note.h"

#define FDS 1024
#define RESERVED 65536U		/* a power of two */

int ioctl(int fd, unsigned long command, ...);
void note_store(const char *pool, uint64_t off, uint64_t value);
void note_stored(void);

static __thread struct note_page *page;
static char pool_of[FDS][64];

/* What a reserve said of an object, for the vector that publishes it. */
static struct {
	uint64_t off, bytes;
	uint32_t type;
	int fd;
} reserved[RESERVED];

static struct note_page *page_get(void)
{
	if (!page) {
		page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (page == MAP_FAILED)
			abort();
	}
	return page;
}

static uint32_t reserved_slot(int fd, uint64_t off)
{
	uint32_t i = (uint32_t)((off >> 4) * 0x9e3779b1U) ^ (uint32_t)fd;

	for (i &= RESERVED - 1; reserved[i].off; i = (i + 1) & (RESERVED - 1))
		if (reserved[i].off == off && reserved[i].fd == fd)
			break;
	return i;
}

static void reserve_done(int fd, const struct pmheap_reserve *r)
{
	const uint64_t *off = (const uint64_t *)(uintptr_t)r->offs;
	uint32_t i;

	for (i = 0; i < r->count; i++) {
		uint32_t slot = reserved_slot(fd, off[i]);

		reserved[slot].off = off[i];
		reserved[slot].bytes = r->bytes;
		reserved[slot].type = r->type;
		reserved[slot].fd = fd;
	}
}

static struct note_call *call_begin(uint32_t command, const char *pool, uint32_t pool_len)
{
	struct note_call *call = (struct note_call *)page_get()->body;

	memset(call, 0, sizeof(*call));
	call->command = command;
	memcpy(call->pool, pool, pool_len < sizeof(call->pool) ? pool_len : sizeof(call->pool) - 1);
	return call;
}

static void say(uint32_t kind, uint32_t bytes)
{
	note_say(page_get(), kind, (uint32_t)gettid(), bytes);
}

static void say_result(int result)
{
	struct note_result *r = (struct note_result *)page_get()->body;

	*r = (struct note_result){ .result = result };
	say(NOTE_END, sizeof(*r));
}

static uint32_t op_put(uint8_t *to, int fd, const struct pmheap_vector_op *op)
{
	struct note_op *n = (struct note_op *)to;
	uint32_t room = (op->name_len + 7) & ~7U;

	*n = (struct note_op){ .kind = op->kind, .flags = op->flags, .off = op->off, .value = op->value,
			       .name_len = op->name_len };
	if (op->kind == PMHEAP_OP_PUBLISH) {
		uint32_t slot = reserved_slot(fd, op->off);

		n->value = reserved[slot].bytes;
		n->flags = reserved[slot].type;
	}
	memset(n + 1, 0, room);
	memcpy(n + 1, (const void *)(uintptr_t)op->name, op->name_len);
	return sizeof(*n) + room;
}

static void say_vector(int fd, const struct pmheap_apply *a)
{
	const struct pmheap_vector_op *op = (const struct pmheap_vector_op *)(uintptr_t)a->ops;
	struct note_call *call = call_begin(CALL_APPLY, pool_of[fd], sizeof(call->pool));
	uint32_t kind = NOTE_BEGIN, used = sizeof(*call), i;

	for (i = 0; i < a->count; i++) {
		if (used + sizeof(struct note_op) + 256 > NOTE_BODY_MAX) {
			say(kind, used);
			kind = NOTE_MORE;
			call->ops = 0;
			used = sizeof(*call);
		}
		used += op_put((uint8_t *)call + used, fd, &op[i]);
		call->ops++;
	}
	say(kind, used);
}

/* Whether the end of the call is to be told as well. */
static int say_before(int fd, unsigned long command, void *arg)
{
	if (command == PMHEAP_APPLY) {
		say_vector(fd, arg);
	} else if (command == PMHEAP_POOL_CREATE) {
		const struct pmheap_pool_create *c = arg;

		call_begin(CALL_CREATE, (const char *)(uintptr_t)c->name, c->name_len);
		say(NOTE_BEGIN, sizeof(struct note_call));
	} else if (command == PMHEAP_POOL_DESTROY) {
		const struct pmheap_pool_destroy *d = arg;

		call_begin(CALL_DESTROY, (const char *)(uintptr_t)d->name, d->name_len);
		say(NOTE_BEGIN, sizeof(struct note_call));
	} else {
		return 0;
	}
	return 1;
}

static void pool_opened(int fd, uint64_t name, uint32_t len)
{
	if (fd < 0 || fd >= FDS || len >= sizeof(pool_of[fd]))
		abort();
	memset(pool_of[fd], 0, sizeof(pool_of[fd]));
	memcpy(pool_of[fd], (const void *)(uintptr_t)name, len);
}

static void keep(int fd, unsigned long command, void *arg)
{
	if (command == PMHEAP_POOL_CREATE) {
		const struct pmheap_pool_create *c = arg;

		pool_opened(c->fd, c->name, c->name_len);
	} else if (command == PMHEAP_POOL_OPEN) {
		const struct pmheap_pool_open *o = arg;

		pool_opened(o->fd, o->name, o->name_len);
	} else if (command == PMHEAP_RESERVE) {
		reserve_done(fd, arg);
	}
}

int ioctl(int fd, unsigned long command, ...)
{
	static int (*real)(int, unsigned long, ...);
	int rc, told, error;
	va_list list;
	void *arg;

	va_start(list, command);
	arg = va_arg(list, void *);
	va_end(list);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "ioctl");
	told = fd >= 0 && fd < FDS && say_before(fd, command, arg);
	rc = real(fd, command, arg);
	error = errno;
	if (!rc)
		keep(fd, command, arg);
	if (told)
		say_result(rc ? -error : 0);
	errno = error;
	return rc;
}

void note_store(const char *pool, uint64_t off, uint64_t value)
{
	struct note_call *call = call_begin(CALL_STORE, pool, (uint32_t)strlen(pool));
	struct note_op *op = (struct note_op *)(call + 1);

	call->ops = 1;
	*op = (struct note_op){ .kind = PMHEAP_OP_STORE64, .off = off, .value = value };
	say(NOTE_BEGIN, sizeof(*call) + sizeof(*op));
}

void note_stored(void)
{
	say_result(0);
}
