/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every command of the ABI as a plain call, which returns 0 or what it is asked for, or -errno; and the ops of a
 * vector as one-liners.
 */
#ifndef CALLS_H
#define CALLS_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/pmheap.h>

static inline __u64 address(const void *p)
{
	return (__u64)(uintptr_t)p;
}

static inline int call(int fd, unsigned long cmd, void *arg)
{
	int rc = ioctl(fd, cmd, arg);

	return rc < 0 ? -errno : rc;
}

static inline int pool_create_with(int region, const char *name, struct pmheap_pool_create *c)
{
	int rc;

	c->size = sizeof(*c);
	c->name = address(name);
	c->name_len = (__u32)strlen(name);
	rc = call(region, PMHEAP_POOL_CREATE, c);
	return rc < 0 ? rc : c->fd;
}

static inline int pool_create(int region, const char *name, __u64 quota)
{
	struct pmheap_pool_create c = { .quota = quota };

	return pool_create_with(region, name, &c);
}

static inline int pool_open(int region, const char *name, __u32 flags)
{
	struct pmheap_pool_open o = { .size = sizeof(o), .flags = flags, .name = address(name),
				      .name_len = (__u32)strlen(name) };
	int rc = call(region, PMHEAP_POOL_OPEN, &o);

	return rc < 0 ? rc : o.fd;
}

static inline int pool_destroy(int region, const char *name)
{
	struct pmheap_pool_destroy d = { .size = sizeof(d), .name = address(name), .name_len = (__u32)strlen(name) };

	return call(region, PMHEAP_POOL_DESTROY, &d);
}

static inline int scrub(int region, struct pmheap_scrub *s)
{
	s->size = sizeof(*s);
	return call(region, PMHEAP_SCRUB, s);
}

/* A whole round; the sum of what the calls count. Busy steps are asked for again. -errno. */
static inline int scrub_round(int region, __u32 flags, __u32 limit, struct pmheap_scrub *sum)
{
	static struct pmheap_finding room[8];
	struct pmheap_scrub s = { .cursor = 0 };
	int rc;

	memset(sum, 0, sizeof(*sum));
	for (;;) {
		s = (struct pmheap_scrub){ .flags = flags, .cursor = s.cursor, .findings = address(room), .count = 8,
					   .limit = limit };
		rc = scrub(region, &s);
		if (rc)
			return rc == -ENOENT ? 0 : rc;
		sum->steps = s.steps;
		sum->damages += s.damages;
		sum->bytes += s.bytes;
		sum->chunks += s.chunks;
		sum->contents += s.contents;
		sum->pools += s.pools;
		sum->closed += s.closed;
		sum->blocks += s.blocks;
		sum->objects += s.objects;
		sum->names += s.names;
		if (s.flags & PMHEAP_SCRUB_BUSY)
			usleep(1000);
	}
}

static inline int pool_list(int region, __u64 *cursor, struct pmheap_pool_info *info)
{
	int rc;

	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	info->cursor = *cursor;
	rc = call(region, PMHEAP_POOL_LIST, info);
	if (!rc)
		*cursor = info->cursor;
	return rc;
}

static inline int reserve(int pool, __u64 bytes, __u64 align, __u32 type, __u32 flags, __u32 count, __u64 *offs)
{
	struct pmheap_reserve r = { .size = sizeof(r), .flags = flags, .bytes = bytes, .align = align, .type = type,
				    .count = count, .offs = address(offs) };

	return call(pool, PMHEAP_RESERVE, &r);
}

static inline int cancel(int pool, const __u64 *offs, __u32 count)
{
	struct pmheap_cancel c = { .size = sizeof(c), .count = count, .offs = address(offs) };

	return call(pool, PMHEAP_CANCEL, &c);
}

static inline int apply(int pool, const struct pmheap_vector_op *ops, __u32 count, __u32 *failed)
{
	struct pmheap_apply a = { .size = sizeof(a), .ops = address(ops), .count = count, .failed = ~0U };
	int rc = call(pool, PMHEAP_APPLY, &a);

	if (failed)
		*failed = a.failed;
	return rc;
}

static inline int object(int pool, __u64 off, struct pmheap_object_info *o)
{
	memset(o, 0, sizeof(*o));
	o->size = sizeof(*o);
	o->off = off;
	return call(pool, PMHEAP_OBJECT, o);
}

static inline int next(int pool, __u32 type, __u64 *cursor, struct pmheap_next *n)
{
	int rc;

	memset(n, 0, sizeof(*n));
	n->size = sizeof(*n);
	n->type = type;
	n->cursor = *cursor;
	rc = call(pool, PMHEAP_NEXT, n);
	if (!rc)
		*cursor = n->cursor;
	return rc;
}

static inline int name_get(int pool, const void *name, __u32 len, __u64 *off)
{
	struct pmheap_name_get g = { .size = sizeof(g), .name = address(name), .name_len = len };
	int rc = call(pool, PMHEAP_NAME_GET, &g);

	if (!rc)
		*off = g.off;
	return rc;
}

static inline int name_next(int pool, __u64 *cursor, void *name, __u32 *len, __u64 *off)
{
	struct pmheap_name_next n = { .size = sizeof(n), .cursor = *cursor, .name = address(name), .name_len = *len };
	int rc = call(pool, PMHEAP_NAME_NEXT, &n);

	if (!rc) {
		*cursor = n.cursor;
		*len = n.name_len;
		*off = n.off;
	}
	return rc;
}

static inline int stat_get(int pool, struct pmheap_pool_stat *st)
{
	memset(st, 0, sizeof(*st));
	st->size = sizeof(*st);
	return call(pool, PMHEAP_STAT, st);
}

static inline int set_quota(int pool, __u64 quota)
{
	struct pmheap_set_quota q = { .size = sizeof(q), .quota = quota };

	return call(pool, PMHEAP_SET_QUOTA, &q);
}

static inline int region_info(int region, struct pmheap_region_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = sizeof(*info);
	return call(region, PMHEAP_REGION_INFO, info);
}

static inline int detach(__u32 region, __u32 flags)
{
	struct pmheap_detach d = { .size = sizeof(d), .flags = flags, .region = region };
	int fd = open("/dev/pmheap", O_RDWR | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = call(fd, PMHEAP_DETACH, &d);
	close(fd);
	return rc;
}

static inline int attach(const char *path, __u32 flags)	/* the region's number */
{
	struct pmheap_attach a = { .size = sizeof(a), .flags = flags, .path = address(path),
				   .path_len = (__u32)strlen(path) };
	int fd = open("/dev/pmheap", O_RDWR | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	rc = call(fd, PMHEAP_ATTACH, &a);
	close(fd);
	return rc < 0 ? rc : (int)a.region;
}

static inline void *map_pool(int pool, __u64 off, size_t len, int prot)
{
	return mmap(NULL, len, prot, MAP_SHARED, pool, (off_t)off);
}

/* ---- ops ---- */

#define OP(k, ...) ((struct pmheap_vector_op){ .kind = PMHEAP_OP_##k, __VA_ARGS__ })
#define PUBLISH(o) OP(PUBLISH, .off = (o))
#define FREE(o) OP(FREE, .off = (o))
#define STORE(o, v) OP(STORE64, .off = (o), .value = (v))
#define COMPARE(o, v) OP(COMPARE64, .off = (o), .expect = (v))
#define ADD(o, v) OP(ADD64, .off = (o), .value = (v))
#define NAME(o, text) OP(NAME, .off = (o), .name = address(text), .name_len = sizeof(text) - 1)
#define RENAME(o, text) OP(NAME, .flags = PMHEAP_NAME_REPLACE, .off = (o), .name = address(text), \
			   .name_len = sizeof(text) - 1)
#define UNNAME(text) OP(UNNAME, .name = address(text), .name_len = sizeof(text) - 1)
#define VECTOR(...) (const struct pmheap_vector_op[]){ __VA_ARGS__ }, \
	sizeof((const struct pmheap_vector_op[]){ __VA_ARGS__ }) / sizeof(struct pmheap_vector_op)

static inline int apply_one(int pool, struct pmheap_vector_op op)
{
	return apply(pool, &op, 1, NULL);
}

#endif
