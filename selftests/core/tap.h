/* SPDX-License-Identifier: GPL-2.0-only */
/* TAP for the engine's tests: a test is a function; the first failed EXPECT names its line and ends the run. */
#ifndef PMHEAP_SELFTESTS_TAP_H
#define PMHEAP_SELFTESTS_TAP_H

#include <stdio.h>
#include <stdlib.h>

#define EXPECT(cond)                                                                    \
	do {                                                                            \
		if (!(cond)) {                                                          \
			printf("not ok - %s:%d: %s\n", __FILE__, __LINE__, #cond);      \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

#define EXPECT_EQ(a, b)                                                                 \
	do {                                                                            \
		long long a_ = (long long)(a), b_ = (long long)(b);                     \
		if (a_ != b_) {                                                         \
			printf("not ok - %s:%d: %s is %lld (0x%llx), not %s = %lld\n", __FILE__, __LINE__, #a, \
			       a_, (unsigned long long)a_, #b, b_);                     \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

struct test {
	const char *name;
	void (*run)(void);
};

static inline int tap_run(const struct test *t, unsigned int n)
{
	unsigned int i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%u\n", n);
	for (i = 0; i < n; i++) {
		t[i].run();
		printf("ok %u - %s\n", i + 1, t[i].name);
		fflush(stdout);
	}
	return 0;
}

#endif
