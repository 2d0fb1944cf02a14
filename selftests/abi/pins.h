/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ways to keep references to pages of a pool beyond its mapping: pages spliced into a pipe, and a direct read
 * that a slow disk has not answered yet. The slow disk is a network block device whose server is the test.
 */
#ifndef PINS_H
#define PINS_H

#include <endian.h>
#include <linux/aio_abi.h>
#include <linux/nbd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include "fixture.h"

/* The pipe now refers to len bytes (few pages) at p; its read end, or -errno. */
static inline int pin_in_pipe(void *p, size_t len)
{
	struct iovec iov = { p, len };
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	rc = vmsplice(fds[1], &iov, 1, SPLICE_F_NONBLOCK) == (ssize_t)len ? fds[0] : -errno;
	close(fds[1]);
	if (rc < 0)
		close(fds[0]);
	return rc;
}

/* ---- the slow disk ---- */

#define DISK_BYTES (16 * MIB)

struct slow_disk {
	int dev;			/* of the block device, O_DIRECT */
	int socket;			/* the server's end */
	pthread_t driver;
	int control;			/* of the block device, for the driver thread */
};

static inline void *slow_disk_drive(void *arg)
{
	struct slow_disk *d = arg;

	ioctl(d->control, NBD_DO_IT);
	return NULL;
}

/* -ENOENT where the kernel has no nbd. */
static inline int slow_disk_open(struct slow_disk *d)
{
	int pair[2];

	d->control = open("/dev/nbd0", O_RDWR | O_CLOEXEC);
	if (d->control < 0)
		return -ENOENT;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	if (ioctl(d->control, NBD_SET_BLKSIZE, PAGE) || ioctl(d->control, NBD_SET_SIZE_BLOCKS, DISK_BYTES / PAGE) ||
	    ioctl(d->control, NBD_CLEAR_SOCK) || ioctl(d->control, NBD_SET_SOCK, pair[0]))
		return -errno;
	d->socket = pair[1];
	if (pthread_create(&d->driver, NULL, slow_disk_drive, d))
		return -EAGAIN;
	for (int i = 0; i < 200; i++) {		/* until the driver has set the size */
		d->dev = open("/dev/nbd0", O_RDONLY | O_DIRECT | O_CLOEXEC);
		if (d->dev >= 0 && lseek(d->dev, 0, SEEK_END) == (off_t)DISK_BYTES)
			return 0;
		close(d->dev);
		usleep(10000);
	}
	return -ETIMEDOUT;
}

static inline int read_all(int fd, void *buf, size_t len)
{
	for (size_t at = 0; at < len; ) {
		ssize_t n = read(fd, (char *)buf + at, len - at);

		if (n <= 0)
			return -EIO;
		at += (size_t)n;
	}
	return 0;
}

/* Take a request off the wire: the disk is at work now. Others than `bytes` at offset 0 are answered at once. */
static inline int slow_disk_take(struct slow_disk *d, __u32 bytes, struct nbd_request *request)
{
	static char zeroes[64 * KIB];

	for (;;) {
		struct nbd_reply reply = { .magic = htobe32(NBD_REPLY_MAGIC) };
		__u32 len;

		if (read_all(d->socket, request, sizeof(*request)))
			return -EIO;
		len = be32toh(request->len);
		if (len == bytes && be64toh(request->from) == 0)
			return 0;
		memcpy(&reply.handle, &request->handle, sizeof(reply.handle));
		if (write(d->socket, &reply, sizeof(reply)) != sizeof(reply))
			return -EIO;
		for (; len; len -= len > sizeof(zeroes) ? sizeof(zeroes) : len)
			if (write(d->socket, zeroes, len > sizeof(zeroes) ? sizeof(zeroes) : len) < 0)
				return -EIO;
	}
}

static inline int slow_disk_answer(struct slow_disk *d, const struct nbd_request *request, int byte)
{
	struct nbd_reply reply = { .magic = htobe32(NBD_REPLY_MAGIC) };
	size_t len = be32toh(request->len);
	char *data = malloc(len);
	int rc;

	memset(data, byte, len);
	memcpy(&reply.handle, &request->handle, sizeof(reply.handle));
	rc = write(d->socket, &reply, sizeof(reply)) == sizeof(reply) && write(d->socket, data, len) == (ssize_t)len;
	free(data);
	return rc ? 0 : -EIO;
}

static inline void slow_disk_close(struct slow_disk *d)
{
	close(d->dev);
	ioctl(d->control, NBD_DISCONNECT);
	close(d->socket);
	pthread_join(d->driver, NULL);
	ioctl(d->control, NBD_CLEAR_SOCK);
	close(d->control);
}

/* ---- an asynchronous direct read ---- */

struct flight {
	aio_context_t context;
	struct iocb iocb;
};

static inline int flight_start(struct flight *f, int fd, void *buf, size_t len)
{
	struct iocb *list[1] = { &f->iocb };

	memset(f, 0, sizeof(*f));
	if (syscall(SYS_io_setup, 1, &f->context))
		return -errno;
	f->iocb.aio_fildes = (__u32)fd;
	f->iocb.aio_lio_opcode = IOCB_CMD_PREAD;
	f->iocb.aio_buf = address(buf);
	f->iocb.aio_nbytes = len;
	return syscall(SYS_io_submit, f->context, 1, list) == 1 ? 0 : -errno;
}

/* What the read returned. */
static inline long flight_end(struct flight *f)
{
	struct io_event event;
	long n = syscall(SYS_io_getevents, f->context, 1, 1, &event, NULL);

	syscall(SYS_io_destroy, f->context);
	return n == 1 ? (long)event.res : -EIO;
}

#endif
