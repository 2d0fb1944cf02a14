/* SPDX-License-Identifier: MIT */
/*
 * A hold on a file or block device: the descriptors and the lock, without the engine.
 *
 * Law: `lock` is never mapped and its descriptor never shared, so the lock ends with the process that took
 * it, even where a forked child keeps mappings (hold_forked() closes the child's copies). A hold that reads
 * has a shared lock, one that writes an exclusive one; on block devices O_EXCL takes the lock's place.
 */
#ifndef PMHEAP_FILE_HOLD_H
#define PMHEAP_FILE_HOLD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct file_hold {
	int lock;
	int fd;			/* read-write, where `writable` */
	int readonly_fd;	/* for mappings that must never become writable */
	bool writable;		/* the file lets this process write */
	bool made;		/* hold_make() made the file */
	uint64_t size;		/* bytes, rounded down to 4 KiB */
	dev_t dev;
	ino_t ino;
};

#define HOLD_RDONLY 1U		/* shared lock */
#define HOLD_BLOCK 2U		/* block devices too */
#define HOLD_DIRECT 4U		/* reads of a block device pass the page cache by */

/*
 * -EBUSY held by another process or in use by the kernel, -EACCES, -ENOENT, -EINVAL neither file nor (with
 * HOLD_BLOCK) block device, -ENODEV smaller than a page. After a failure hold_drop() is still due.
 */
int hold_take(struct file_hold *hold, const char *path, unsigned int flags);
/* The same on a file that is made, or emptied, and given `size` bytes of zeroes with disk space behind them. */
int hold_make(struct file_hold *hold, const char *path, uint64_t size);
void hold_init(struct file_hold *hold);
void hold_drop(struct file_hold *hold);

int hold_upgrade(struct file_hold *hold);	/* shared to exclusive: -EBUSY, -EACCES */
void hold_downgrade(struct file_hold *hold);
int hold_sync(struct file_hold *hold);		/* the page cache of a block device to the device */

/* Which file is at path now? */
int hold_identify(const char *path, dev_t *dev, ino_t *ino);

#endif
