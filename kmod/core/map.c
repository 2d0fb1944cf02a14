// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* A small hash map u64 -> u64: linear probing, at most half full, removal by shifting back. */
#include "engine.h"

static u32 map_slot(const struct heap_map *m, u64 key)
{
	return (u32)((key * 0x9e3779b97f4a7c15ULL) >> 32) & m->mask;
}

int map_init(struct heap_map *m, u32 room)
{
	u32 size = 8;

	while (size < room * 2)
		size *= 2;
	m->entry = port_alloc(sizeof(*m->entry) * size);
	m->mask = size - 1;
	m->used = 0;
	return m->entry ? 0 : -ENOMEM;
}

void map_free(struct heap_map *m)
{
	port_free(m->entry);
	m->entry = NULL;
	m->used = 0;
}

static u32 map_find(const struct heap_map *m, u64 key)
{
	u32 i = map_slot(m, key);

	while (m->entry[i].key && m->entry[i].key != key)
		i = (i + 1) & m->mask;
	return i;
}

int map_reserve(struct heap_map *m, u32 more)
{
	struct heap_map bigger;
	u32 i;
	int err;

	if (m->entry && (m->used + more) * 2 <= m->mask + 1)
		return 0;
	err = map_init(&bigger, m->used + more);
	if (err)
		return err;
	for (i = 0; m->entry && i <= m->mask; i++)
		if (m->entry[i].key)
			map_set(&bigger, m->entry[i].key, m->entry[i].value);
	port_free(m->entry);
	*m = bigger;
	return 0;
}

u64 map_get(const struct heap_map *m, u64 key)
{
	return m->entry ? m->entry[map_find(m, key)].value : 0;
}

/* The entries behind a hole move up unless they already sit at or before their own slot. */
static void map_remove(struct heap_map *m, u32 hole)
{
	u32 i = hole;

	for (;;) {
		u32 want;

		i = (i + 1) & m->mask;
		if (!m->entry[i].key)
			break;
		want = map_slot(m, m->entry[i].key);
		if (((i - want) & m->mask) < ((i - hole) & m->mask))
			continue;
		m->entry[hole] = m->entry[i];
		hole = i;
	}
	m->entry[hole].key = 0;
	m->entry[hole].value = 0;
	m->used--;
}

void map_set(struct heap_map *m, u64 key, u64 value)
{
	u32 i = map_find(m, key);

	if (!m->entry[i].key) {
		if (!value)
			return;
		m->entry[i].key = key;
		m->used++;
	}
	m->entry[i].value = value;
	if (!value)
		map_remove(m, i);
}
