// SPDX-License-Identifier: GPL-2.0-only
#include "fixture.h"

void fixture_format(struct medium *m)
{
	struct heap_format f = { .size = m->p.size, .label = "test", .mode = 0755, .created = 1 };

	memcpy(f.uuid, "pmheap-test-uuid", 16);
	EXPECT_EQ(heap_format(&m->p, &f), 0);
	m->p.zeroed = false;
}

void fixture_attach(struct fixture *f)
{
	f->pool = NULL;
	f->owner = NULL;
	EXPECT_EQ(heap_attach(&f->m->p, &f->h), 0);
	if (!heap_pool_open(f->h, "p", &f->pool))
		EXPECT_EQ(heap_owner_create(f->pool, &f->owner), 0);
}

void fixture_open(struct fixture *f, u64 size)
{
	struct heap_pool_attr attr = { .mode = 0600 };

	f->m = medium_new(size);
	fixture_format(f->m);
	EXPECT_EQ(heap_attach(&f->m->p, &f->h), 0);
	EXPECT_EQ(heap_pool_create(f->h, "p", &attr, &f->pool), 0);
	EXPECT_EQ(heap_owner_create(f->pool, &f->owner), 0);
}

void fixture_detach(struct fixture *f, bool clean)
{
	if (f->owner)
		heap_owner_release(f->owner);
	if (f->pool)
		heap_pool_close(f->pool);
	heap_detach(f->h, clean);
	f->h = NULL;
}

static void print_damage(void *arg, enum heap_check_kind kind, const char *what, u64 where)
{
	(void)arg;
	if (kind == HEAP_CHECK_DAMAGE)
		printf("# damage: %s, at 0x%llx\n", what, (unsigned long long)where);
}

u64 image_damages(const u8 *image, u64 size, bool loud, struct heap_check_report *r)
{
	struct heap_check c = { .say = loud ? print_damage : NULL };
	struct heap_check_report own;
	struct medium m = { .p = { .size = size, .level = PERSIST_MEMORY } };
	int err;

	m.now = malloc(size);
	memcpy(m.now, image, size);
	err = heap_check(&m.p, &c, r ? r : &own);
	free(m.now);
	if (err && loud)
		printf("# check could not look: %d\n", err);
	return err ? ~0ULL : (r ? r : &own)->damages;
}

void fixture_close(struct fixture *f)
{
	fixture_detach(f, true);
	EXPECT_EQ(image_damages(f->m->now, f->m->p.size, true, NULL), 0);
	medium_free(f->m);
	EXPECT_EQ(allocs, 0);
}

void fixture_cycle(struct fixture *f)
{
	fixture_detach(f, true);
	fixture_attach(f);
}

u64 must_reserve(struct fixture *f, u64 size, u32 type)
{
	u64 off = 0;

	EXPECT_EQ(heap_reserve(f->owner, size, 0, type, 0, 1, &off), 0);
	EXPECT(off);
	return off;
}

static int apply_one(struct fixture *f, const struct heap_op *op)
{
	u32 failed;

	return heap_apply(f->owner, op, 1, &failed);
}

int publish(struct fixture *f, u64 off)
{
	return apply_one(f, &(struct heap_op){ .kind = HEAP_OP_PUBLISH, .off = off });
}

int free_object(struct fixture *f, u64 off)
{
	return apply_one(f, &(struct heap_op){ .kind = HEAP_OP_FREE, .off = off });
}

int name_object(struct fixture *f, const char *name, u64 off, u32 flags)
{
	return apply_one(f, &(struct heap_op){ .kind = HEAP_OP_NAME, .off = off, .name = (const u8 *)name,
					       .name_len = (u32)strlen(name), .flags = flags });
}

int unname(struct fixture *f, const char *name)
{
	return apply_one(f, &(struct heap_op){ .kind = HEAP_OP_UNNAME, .name = (const u8 *)name,
					       .name_len = (u32)strlen(name) });
}

static u64 phys(struct fixture *f, u64 off)
{
	u64 at;

	EXPECT_EQ(heap_pool_chunk(f->pool, off / PMHEAP_CHUNK, &at), 0);
	return at + off % PMHEAP_CHUNK;
}

void user_store(struct fixture *f, u64 off, u64 value, bool durable)
{
	u64 at = phys(f, off);

	cpu_now ^= 1;		/* a thread that went on elsewhere: its fences drain nobody else's stores */
	persist_store64(&f->m->p, at, value);
	if (durable) {
		persist_writeback(&f->m->p, at);
		persist_fence(&f->m->p);
	}
	cpu_now ^= 1;
}

u64 user_load(struct fixture *f, u64 off)
{
	u64 v;

	memcpy(&v, f->m->now + phys(f, off), 8);
	return le64toh(v);
}

static struct pmheap_media_geometry geometry(struct fixture *f)
{
	struct pmheap_media_geometry g;

	memcpy(&g, f->m->now + 2 * PMHEAP_LINE, sizeof(g));
	return g;
}

u64 chunk_line_of(struct fixture *f, u64 off)
{
	return le64_to_cpu(geometry(f).chunk_table) + phys(f, off) / PMHEAP_CHUNK * PMHEAP_LINE;
}

u64 page_line_of(struct fixture *f, u64 off)
{
	return le64_to_cpu(geometry(f).page_table) + phys(f, off) / PMHEAP_PAGE * PMHEAP_LINE;
}

static u64 mix(u64 h, u64 v)
{
	return (h ^ v) * 0x100000001b3ULL;
}

u64 digest(struct fixture *f)
{
	struct heap_object o;
	struct heap_stat st;
	u64 h = 0xcbf29ce484222325ULL, cursor = 0, off;
	u8 name[255];
	u32 len, i;

	while (heap_next(f->pool, HEAP_ANY_TYPE, &cursor, &o) == 1)
		h = mix(mix(mix(h, o.off), o.size), o.type);
	for (cursor = 0; heap_name_next(f->pool, &cursor, name, &len, &off) == 1; h = mix(h, off))
		for (i = 0; i < len; i++)
			h = mix(h, name[i]);
	EXPECT_EQ(heap_stat(f->pool, 0, &st), 0);
	return mix(mix(mix(mix(h, st.used), st.reserved), st.objects), st.largest);
}
