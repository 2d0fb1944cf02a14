// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Size classes of small objects. The table is generated; its waste is recomputed by a test. */
#include "engine.h"

static const struct {
	u16 bytes, pages;
} table[] = {
#include "classes.h"
};

static_assert(ARRAY_SIZE(table) == HEAP_CLASSES, "classes.h has the classes heap.h promises");

u32 heap_class_bytes(u32 class)
{
	return table[class].bytes;
}

u32 heap_class_pages(u32 class)
{
	return table[class].pages;
}

u32 heap_class_of(u64 size)
{
	u32 top, step;

	if (size <= 128)
		return (u32)((size + 15) / 16) - 1;
	top = fls64(size - 1) - 1;		/* 2^top < size <= 2^(top + 1) */
	step = (u32)((size - 1) >> (top - 3)) & 7;
	return 8 + (top - 7) * 8 + step;
}
