/* SPDX-License-Identifier: MIT */
/*
 * The medium under the engine when it runs in a program: a file, mapped and locked, or a private view of a
 * file or block device that is read on demand and never written (for the offline tools).
 *
 *   mapped   base is a shared mapping of the whole file
 *   view     base is anonymous memory; a page is read from the source when first touched. A page that cannot
 *            be read makes persist_read() give -EIO, as failing media do.
 */
#ifndef PMHEAP_FILE_MEDIA_H
#define PMHEAP_FILE_MEDIA_H

#include <persist.h>

#include "file_hold.h"

struct file_media {
	struct persist p;
	struct file_hold hold;
	unsigned char *base;	/* p.size bytes */
	u8 *page;		/* view: enum view_page per 4 KiB; NULL: mapped */
	bool sync;		/* MAP_SYNC works: flushed lines are durable */
};

enum view_page {
	VIEW_UNREAD = 0,
	VIEW_READ = 1,
	VIEW_BAD = 2,
};

/* Errors and flags are those of hold_take() and hold_make(). HOLD_RDONLY sets p.readonly. */
int file_media_map(const char *path, unsigned int flags, struct file_media **out);
int file_media_make(const char *path, u64 size, struct file_media **out);
int file_media_view(const char *path, struct file_media **out);
void file_media_close(struct file_media *m);

/* From a shared to an exclusive lock and a writable mapping (-EACCES, -EBUSY), and back. */
int file_media_upgrade(struct file_media *m);
void file_media_downgrade(struct file_media *m);

/* Map [off, off + len) of the file over the caller's own reservation at addr. */
int file_media_map_at(struct file_media *m, void *addr, u64 off, u64 len, bool readonly);

#define VIEW_PAGE 4096U

/* Read a view's pages of a range: 0 or -EIO. */
int file_media_load(struct file_media *m, u64 off, u64 len);
/* Pages from off on as they stand on the medium, whatever the view has made of them; all is aligned to pages. */
int file_media_source(struct file_media *m, u64 off, unsigned char *to, u64 len);

/* file_domain.c: PERSIST_CACHE or PERSIST_MEMORY for a device whose lines reach it by write-back. */
u32 file_domain_level(dev_t dev);

static inline struct file_media *file_media_of(struct persist *p)
{
	return container_of(p, struct file_media, p);
}

#endif
