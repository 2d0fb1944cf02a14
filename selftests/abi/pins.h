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
#define SLOW_AT MIB			/* a read from here waits for slow_disk_answer(), any other is zeroes at once */

struct slow_disk {
	int control;			/* of the block device, for the driver thread */
	int dev;			/* the same, O_DIRECT */
	int socket;			/* the server's end */
	pthread_t driver, server;
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool waiting;			/* a slow read has come */
	int answer;			/* byte to answer it with, or -1 */
};

static inline void *slow_disk_drive(void *arg)
{
	struct slow_disk *d = arg;

	ioctl(d->control, NBD_DO_IT);
	return NULL;
}

static inline int slow_disk_judge(struct slow_disk *d, const struct nbd_request *request)
{
	int byte;

	if (be64toh(request->from) != SLOW_AT)
		return 0;
	pthread_mutex_lock(&d->lock);
	d->waiting = true;
	pthread_cond_broadcast(&d->change);
	while (d->answer < 0)
		pthread_cond_wait(&d->change, &d->lock);
	byte = d->answer;
	pthread_mutex_unlock(&d->lock);
	return byte;
}

static inline void *slow_disk_serve(void *arg)
{
	struct slow_disk *d = arg;
	struct nbd_request request;

	while (recv(d->socket, &request, sizeof(request), MSG_WAITALL) == sizeof(request) &&
	       be32toh(request.type) == NBD_CMD_READ) {
		struct nbd_reply reply = { .magic = htobe32(NBD_REPLY_MAGIC) };
		__u32 len = be32toh(request.len);
		char *data = malloc(len);

		memset(data, slow_disk_judge(d, &request), len);
		memcpy(&reply.handle, &request.handle, sizeof(reply.handle));
		if (send(d->socket, &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply) ||
		    send(d->socket, data, len, MSG_NOSIGNAL) != (ssize_t)len)
			len = 0;
		free(data);
		if (!len)
			break;
	}
	return NULL;
}

/* -ENOENT where the kernel has no nbd. */
static inline int slow_disk_open(struct slow_disk *d)
{
	int pair[2];

	memset(d, 0, sizeof(*d));
	d->answer = -1;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->change, NULL);
	d->control = open("/dev/nbd0", O_RDWR | O_CLOEXEC);
	if (d->control < 0)
		return -ENOENT;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	d->socket = pair[1];
	if (ioctl(d->control, NBD_SET_BLKSIZE, PAGE) || ioctl(d->control, NBD_SET_SIZE_BLOCKS, DISK_BYTES / PAGE) ||
	    ioctl(d->control, NBD_SET_SOCK, pair[0]))
		return -errno;
	if (pthread_create(&d->server, NULL, slow_disk_serve, d) ||
	    pthread_create(&d->driver, NULL, slow_disk_drive, d))
		return -EAGAIN;
	for (int i = 0; i < 500; i++) {		/* until the driver has set the size */
		d->dev = open("/dev/nbd0", O_RDONLY | O_DIRECT | O_CLOEXEC);
		if (d->dev >= 0 && lseek(d->dev, 0, SEEK_END) == (off_t)DISK_BYTES)
			return 0;
		close(d->dev);
		usleep(10000);
	}
	return -ETIMEDOUT;
}

/* Until the slow read has reached the disk. */
static inline void slow_disk_wait(struct slow_disk *d)
{
	pthread_mutex_lock(&d->lock);
	while (!d->waiting)
		pthread_cond_wait(&d->change, &d->lock);
	pthread_mutex_unlock(&d->lock);
}

static inline void slow_disk_answer(struct slow_disk *d, int byte)
{
	pthread_mutex_lock(&d->lock);
	d->answer = byte;
	pthread_cond_broadcast(&d->change);
	pthread_mutex_unlock(&d->lock);
}

static inline void slow_disk_close(struct slow_disk *d)
{
	close(d->dev);
	ioctl(d->control, NBD_DISCONNECT);
	pthread_join(d->server, NULL);
	shutdown(d->socket, SHUT_RDWR);
	pthread_join(d->driver, NULL);
	ioctl(d->control, NBD_CLEAR_SOCK);
	close(d->socket);
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
	f->iocb.aio_offset = SLOW_AT;
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
