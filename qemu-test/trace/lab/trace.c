// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "medium.h"
#include "trace.h"

u8 *file_bytes(const char *path, u64 *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *bytes;

	if (fd < 0 || fstat(fd, &st))
		lab_die("cannot read %s", path);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		lab_die("cannot map %s", path);
	close(fd);
	*size = (u64)st.st_size;
	return bytes;
}

bool region_find(u8 *bytes, u64 size, u64 *at, u64 *region)
{
	struct heap_info info;
	struct medium m;

	for (*at = 0; *at < size; *at += PMHEAP_PAGE) {
		if (le64toh(*(u64 *)(bytes + *at)) != PMHEAP_MEDIA_MAGIC)
			continue;
		medium_init(&m, bytes + *at, size - *at);
		if (heap_probe(&m.p, &info))
			continue;
		*region = info.size;
		return true;
	}
	return false;
}

void trace_open(struct trace *t, const char *prefix)
{
	char path[PATH_MAX];
	u64 bytes, start, end;

	snprintf(path, sizeof(path), "%s.trace", prefix);
	t->header = (const void *)file_bytes(path, &bytes);
	if (bytes < sizeof(*t->header) || t->header->magic != TRACE_MAGIC || !t->header->complete ||
	    bytes != sizeof(*t->header) + t->header->records * sizeof(*t->record))
		lab_die("%s is no whole trace", path);
	t->record = (const void *)(t->header + 1);
	snprintf(path, sizeof(path), "%s.start", prefix);
	t->start = file_bytes(path, &start);
	snprintf(path, sizeof(path), "%s.end", prefix);
	t->end = file_bytes(path, &end);
	if (start != t->header->size || end != start)
		lab_die("%s is of another size than its trace says", path);
	if (!region_find(t->start, start, &t->at, &t->size))
		lab_die("%s.start holds no region", prefix);
}

bool trace_result(const struct trace *t, u64 begin, s32 *result)
{
	u32 task = note_task(t->record[begin].value);
	u64 i;

	for (i = begin; i < t->header->records; i += record_rooms(&t->record[i])) {
		const struct trace_record *r = &t->record[i];

		if (!record_is_note(r) || note_task(r->value) != task || note_kind(r->value) != NOTE_END)
			continue;
		*result = ((const struct note_result *)note_body(r))->result;
		return true;
	}
	return false;
}
