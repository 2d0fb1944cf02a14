// SPDX-License-Identifier: MIT
/*
 * The library's calls as the program sees them: the real one, and what it means for the notes. The real ones
 * are the library itself with these names changed to real_*, so that what they call among each other is not
 * looked at twice, and a caller's address is the program's.
 */
#include <errno.h>
#include <stdlib.h>

#include "lab.h"

struct lab lab = { .lock = PTHREAD_MUTEX_INITIALIZER };
__thread bool lab_inside;

int real_pmheap_create(const char *region, const char *pool, const struct pmheap_attr *attr, struct pmheap **h);
int real_pmheap_open(const char *region, const char *pool, unsigned int flags, struct pmheap **h);
int real_pmheap_close(struct pmheap *h);
int real_pmheap_reserve(struct pmheap *h, uint64_t size, uint64_t align, uint32_t type, uint32_t flags,
			uint32_t count, uint64_t *offs);
int real_pmheap_apply(struct pmheap *h, const struct pmheap_op *ops, uint32_t n, uint32_t *failed);
int real_pmheap_flush(struct pmheap *h, const void *p, size_t len);
int real_pmheap_drain(struct pmheap *h);
int real_pmheap_persist(struct pmheap *h, const void *p, size_t len);
int real_pmheap_memcpy_persist(struct pmheap *h, void *dst, const void *src, size_t len);
int real_pmheap_memset_persist(struct pmheap *h, void *dst, int c, size_t len);

/* The lab works, in between lab_begin() and lab_end(), with errno the program's. */
static bool lab_begin(int *saved_errno)
{
	if (!lab.report)
		return false;
	*saved_errno = errno;
	lab_inside = true;
	pthread_mutex_lock(&lab.lock);
	return true;
}

static void lab_end(const int *saved_errno)
{
	pthread_mutex_unlock(&lab.lock);
	lab_inside = false;
	errno = *saved_errno;
}

static void lab_before_fork(void)
{
	pthread_mutex_lock(&lab.lock);
}

static void lab_in_parent(void)
{
	pthread_mutex_unlock(&lab.lock);
}

static void lab_in_child(void)
{
	report_forked();
	views_forked();
	pthread_mutex_unlock(&lab.lock);
}

__attribute__((constructor)) static void lab_start(void)
{
	report_open();
	if (lab.report)
		pthread_atfork(lab_before_fork, lab_in_parent, lab_in_child);
}

__attribute__((destructor)) static void lab_finish(void)
{
	int saved;

	if (!lab_begin(&saved))
		return;
	views_end();
	__atomic_fetch_add(&lab.report->ended, 1, __ATOMIC_RELAXED);
	lab_end(&saved);
}

static int watched(int rc, struct pmheap *h, const char *region, const char *pool)
{
	int saved;

	if (!rc && lab_begin(&saved)) {
		if (view_add(h, region, pool))
			report_short();
		lab_end(&saved);
	}
	return rc;
}

LAB_EXPORT int pmheap_create(const char *region, const char *pool, const struct pmheap_attr *attr, struct pmheap **h)
{
	int rc = real_pmheap_create(region, pool, attr, h);

	return watched(rc, rc ? NULL : *h, region, pool);
}

LAB_EXPORT int pmheap_open(const char *region, const char *pool, unsigned int flags, struct pmheap **h)
{
	int rc = real_pmheap_open(region, pool, flags, h);

	return watched(rc, rc ? NULL : *h, region, pool);
}

LAB_EXPORT int pmheap_close(struct pmheap *h)
{
	struct lab_view *v;
	int saved;

	if (h && lab_begin(&saved)) {
		v = view_of(h);
		if (v)
			view_drop(v);
		lab_end(&saved);
	}
	return real_pmheap_close(h);
}

static void reserved(struct pmheap *h, uint32_t count, const uint64_t *offs)
{
	struct lab_view *v = view_of(h);
	struct pmheap_object o;
	uint32_t i;

	for (i = 0; v && i < count; i++) {
		if (!pmheap_object(h, offs[i], &o))
			lines_reset(v, o.off, o.size);
	}
}

LAB_EXPORT int pmheap_reserve(struct pmheap *h, uint64_t size, uint64_t align, uint32_t type, uint32_t flags,
			      uint32_t count, uint64_t *offs)
{
	int rc = real_pmheap_reserve(h, size, align, type, flags, count, offs), saved;

	if (!rc && lab_begin(&saved)) {
		reserved(h, count, offs);
		lab_end(&saved);
	}
	return rc;
}

LAB_EXPORT int pmheap_alloc(struct pmheap *h, uint64_t size, uint64_t *off)
{
	return pmheap_reserve(h, size, 0, 0, 0, 1, off);
}

/* Before: is what will be published durable? */
static void vector_judge(struct pmheap *h, const struct pmheap_op *ops, uint32_t n, uint32_t place, struct late *late)
{
	struct lab_view *v = view_of(h);
	struct pmheap_object o;
	uint32_t i;

	for (i = 0; v && i < n; i++) {
		if (ops[i].kind == PMHEAP_OP_PUBLISH && !pmheap_object(h, ops[i].off, &o))
			lines_published(v, o.off, o.size, place, late);
	}
}

/* After: the words that the vector stored are durable. */
static void vector_settle(struct pmheap *h, const struct pmheap_op *ops, uint32_t n)
{
	struct lab_view *v = view_of(h);
	uint32_t i;

	for (i = 0; v && ops && i < n; i++) {
		if (ops[i].kind == PMHEAP_OP_STORE64 || ops[i].kind == PMHEAP_OP_ADD64)
			lines_settle(v, ops[i].off);
	}
}

static int applied(struct pmheap *h, const struct pmheap_op *ops, uint32_t n, uint32_t *failed, uintptr_t caller)
{
	struct late late = { 0 };
	int rc, saved;

	if (h && ops && n <= 1024 && lab_begin(&saved)) {
		vector_judge(h, ops, n, place_of(caller), &late);
		lab_end(&saved);
	}
	rc = real_pmheap_apply(h, ops, n, failed);
	if (!rc && lab_begin(&saved)) {
		late_tell(&late);
		vector_settle(h, ops, n);
		lab_end(&saved);
	}
	late_forget(&late);
	return rc;
}

LAB_EXPORT int pmheap_apply(struct pmheap *h, const struct pmheap_op *ops, uint32_t n, uint32_t *failed)
{
	return applied(h, ops, n, failed, LAB_CALLER);
}

LAB_EXPORT int pmheap_publish(struct pmheap *h, uint64_t off)
{
	struct pmheap_op op = { .kind = PMHEAP_OP_PUBLISH, .off = off };

	return applied(h, &op, 1, NULL, LAB_CALLER);
}

LAB_EXPORT int pmheap_publish_link(struct pmheap *h, uint64_t off, uint64_t slot_off)
{
	struct pmheap_op ops[] = {
		{ .kind = PMHEAP_OP_PUBLISH, .off = off },
		{ .kind = PMHEAP_OP_STORE64, .off = slot_off, .value = off },
	};

	return applied(h, ops, 2, NULL, LAB_CALLER);
}

enum did {
	DID_STORE = 1,
	DID_FLUSH = 2,
	DID_DRAIN = 4,
};

static int barrier(int rc, struct pmheap *h, const void *p, size_t len, enum did did, uintptr_t caller)
{
	struct lab_view *v;
	uint32_t place;
	uint64_t off;
	int saved;

	if (rc < 0 || !lab_begin(&saved))
		return rc;
	v = view_of(h);
	place = place_of(caller);
	off = v ? (uintptr_t)p - (uintptr_t)v->base : 0;
	if (v && len && did & DID_STORE)
		lines_store(v, off, len, place);
	if (v && len && did & DID_FLUSH)
		lines_flush(v, off, len, place);
	if (did & DID_DRAIN)
		lines_drain();
	lab_end(&saved);
	return rc;
}

LAB_EXPORT int pmheap_flush(struct pmheap *h, const void *p, size_t len)
{
	return barrier(real_pmheap_flush(h, p, len), h, p, len, DID_FLUSH, LAB_CALLER);
}

LAB_EXPORT int pmheap_drain(struct pmheap *h)
{
	return barrier(real_pmheap_drain(h), h, NULL, 0, DID_DRAIN, LAB_CALLER);
}

LAB_EXPORT int pmheap_persist(struct pmheap *h, const void *p, size_t len)
{
	return barrier(real_pmheap_persist(h, p, len), h, p, len, DID_FLUSH | DID_DRAIN, LAB_CALLER);
}

LAB_EXPORT int pmheap_memcpy_persist(struct pmheap *h, void *dst, const void *src, size_t len)
{
	int rc;

	lab_inside = true;
	rc = real_pmheap_memcpy_persist(h, dst, src, len);
	lab_inside = false;
	return barrier(rc, h, dst, len, DID_STORE | DID_FLUSH | DID_DRAIN, LAB_CALLER);
}

LAB_EXPORT int pmheap_memset_persist(struct pmheap *h, void *dst, int c, size_t len)
{
	int rc;

	lab_inside = true;
	rc = real_pmheap_memset_persist(h, dst, c, len);
	lab_inside = false;
	return barrier(rc, h, dst, len, DID_STORE | DID_FLUSH | DID_DRAIN, LAB_CALLER);
}
