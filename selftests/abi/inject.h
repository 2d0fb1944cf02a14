/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every point at which the kernel could fail inside one system call, in turn: an allocation, or a copy to or from
 * user memory. Linux counts them by itself (fault injection, fail-nth); it takes a kernel that was built for that,
 * as `make check-debug` has.
 */
#ifndef INJECT_H
#define INJECT_H

#include "fixture.h"

#define FAULTS "/sys/kernel/debug/"

struct injector {
	int fd;			/* /proc/thread-self/fail-nth, or -1: this kernel does not inject */
	unsigned int nth;	/* the point to fail */
	unsigned int failed;	/* attempts that gave an error for that */
};

static inline int fault_setting(const char *kind, const char *name, const char *value)
{
	char path[80];
	int fd, rc;

	snprintf(path, sizeof(path), FAULTS "%s/%s", kind, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = write(fd, value, strlen(value)) < 0 ? -errno : 0;
	close(fd);
	return rc;
}

/* Allocations that may sleep and those of one page are left out unless asked for; each failure would be told. */
static inline void injector_setup(struct __test_metadata *_metadata, struct injector *in)
{
	static const char *const kinds[] = { "failslab", "fail_page_alloc", "fail_usercopy" };

	*in = (struct injector){ .fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC) };
	if (in->fd < 0)
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		ASSERT_EQ(0, fault_setting(kinds[i], "verbose", "0"));
	}
	ASSERT_EQ(0, fault_setting("failslab", "ignore-gfp-wait", "N"));
	ASSERT_EQ(0, fault_setting("fail_page_alloc", "ignore-gfp-wait", "N"));
	ASSERT_EQ(0, fault_setting("fail_page_alloc", "min-order", "0"));
}

static inline void injector_teardown(struct injector *in)
{
	close(in->fd);
}

static inline void inject_from_here(struct injector *in)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", ++in->nth);

	if (pwrite(in->fd, text, (size_t)n, 0) != n)
		abort();
}

/*
 * No more from here. False: the calls since inject_from_here() had fewer points than that. Reading and resetting
 * the count copies too, so the fault can come there: then it had not come before.
 */
static inline bool injected(struct injector *in)
{
	char text[16] = "";
	bool hit = pread(in->fd, text, sizeof(text) - 1, 0) > 0 && !atoi(text);

	while (pwrite(in->fd, "0", 1, 0) != 1)
		;
	return hit;
}

#endif
