// SPDX-License-Identifier: MIT
/* What an error of this library means, in its own terms. */
#include "lib.h"

static const struct {
	int err;
	const char *text;
} texts[] = {
	{ 0, "success" },
	{ ENOTTY, "the kernel module does not know this call" },
	{ E2BIG, "a struct holds more than this version knows" },
	{ EOPNOTSUPP, "unknown flag, op or feature" },
	{ EINVAL, "invalid argument" },
	{ EAGAIN, "a compare found another value" },
	{ ENOENT, "no such region, pool, name or object" },
	{ EEXIST, "it exists already" },
	{ EBUSY, "in use" },
	{ ENOSPC, "the region, or the file system, is full" },
	{ EDQUOT, "over the pool's quota" },
	{ EROFS, "the region is read-only" },
	{ EACCES, "not permitted" },
	{ EPERM, "not permitted" },
	{ EFAULT, "bad address" },
	{ EINTR, "interrupted" },
	{ ENOMEM, "out of memory or address space" },
	{ EMFILE, "too many open files" },
	{ ENFILE, "too many open files in the system" },
	{ EUCLEAN, "damaged metadata" },
	{ EIO, "the medium failed" },
	{ ENODEV, "no region there, or its device is gone" },
	{ ENXIO, "the memory is not there" },
	{ ESTALE, "revoked" },
	/* What files and paths add to these. */
	{ ENOTDIR, "a part of the path is no directory" },
	{ EISDIR, "it is a directory" },
	{ ENAMETOOLONG, "a name or the path is too long" },
	{ ELOOP, "too many symbolic links in the path" },
	{ ENOTBLK, "not a block device" },
	{ EFBIG, "larger than the file system allows" },
	{ EOVERFLOW, "too large for this system" },
	{ ETXTBSY, "the file is a program that runs" },
	{ ENOLCK, "the file system cannot lock" },
	{ ENOSYS, "the system does not know this call" },
	{ EBADF, "not an open file" },
};

const char *pmheap_strerror(int err)
{
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].err == err || -texts[i].err == err)
			return texts[i].text;
	}
	return "unknown error";
}
