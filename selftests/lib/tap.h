/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A test harness that speaks TAP and needs nothing but libc.
 *
 * TEST(what_it_shows) { ... } defines and registers a test. Every test runs in a child of its own, so a
 * crash, a leaked lock or a closed descriptor ends with it; it fails when it dies, hangs, or a check does
 * not hold. skip() ends it as skipped and says why. A check that fails ends the process that made it, so
 * the checks work in threads too; in a process that the test forked, the parent sees exit status 1.
 */
#ifndef TAP_H
#define TAP_H

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAP_SECONDS 120		/* a test that takes longer hangs; TAP_SECONDS in the environment overrides */
#define TAP_FAILED 1
#define TAP_SKIPPED 77

struct tap_test {
	const char *name;
	void (*run)(void);
	struct tap_test *next;
};

static struct tap_test *tap_tests, **tap_tail = &tap_tests;
static char *tap_reason;	/* shared with the child, for skip() */
#define TAP_REASON_SIZE 256

#define TEST(what)                                                              \
	static void what(void);                                                 \
	static void __attribute__((constructor)) tap_register_##what(void)      \
	{                                                                       \
		static struct tap_test t = { #what, what, NULL };               \
		*tap_tail = &t;                                                 \
		tap_tail = &t.next;                                             \
	}                                                                       \
	static void what(void)

static inline void __attribute__((noreturn, format(printf, 3, 4)))
tap_fail(const char *file, int line, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	dprintf(STDOUT_FILENO, "# %s:%d: %s\n", file, line, text);
	_exit(TAP_FAILED);
}

static inline void __attribute__((noreturn, format(printf, 1, 2))) skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(tap_reason, TAP_REASON_SIZE, fmt, ap);
	va_end(ap);
	_exit(TAP_SKIPPED);
}

#define check(cond)                                                                     \
	do {                                                                            \
		if (!(cond))                                                            \
			tap_fail(__FILE__, __LINE__, "%s does not hold", #cond);        \
	} while (0)

/* Integers, compared as 64-bit ones of their own sign. */
#define check_eq(want, seen)                                                            \
	do {                                                                            \
		__typeof__(seen) tap_seen = (seen);                                     \
		__typeof__(seen) tap_want = (__typeof__(seen))(want);                   \
		if (tap_want != tap_seen)                                               \
			tap_fail(__FILE__, __LINE__, "%s is %" PRId64 ", want %" PRId64, \
				 #seen, (int64_t)tap_seen, (int64_t)tap_want);          \
	} while (0)

/* What a call returned: 0, a count, or a negative errno value. */
#define check_rc(want, call)                                                            \
	do {                                                                            \
		int tap_rc = (call), tap_wanted = (want);                               \
		if (tap_wanted != tap_rc)                                               \
			tap_fail(__FILE__, __LINE__, "%s gives %d (%s), want %d (%s)",  \
				 #call, tap_rc, tap_rc < 0 ? strerror(-tap_rc) : "fine", \
				 tap_wanted, tap_wanted < 0 ? strerror(-tap_wanted) : "fine"); \
	} while (0)

/* Fork; the child dies with its parent and must end by _exit(). */
static inline pid_t tap_fork(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		tap_fail(__FILE__, __LINE__, "fork: %s", strerror(errno));
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

/* Wait for it: its exit status, or -signal. */
static inline int tap_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			tap_fail(__FILE__, __LINE__, "waitpid: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void tap_child(struct tap_test *t)
{
	const char *limit = getenv("TAP_SECONDS");

	alarm(limit ? (unsigned int)atoi(limit) : TAP_SECONDS);
	t->run();
	exit(0);	/* not _exit(): leak checkers look at the end */
}

static inline int tap_run_all(const char *suite, const char *only)
{
	unsigned int passed = 0, failed = 0, skipped = 0, n = 0;
	struct tap_test *t;

	for (t = tap_tests; t; t = t->next)
		n += !only || strstr(t->name, only);
	printf("TAP version 13\n1..%u\n", n);
	n = 0;
	for (t = tap_tests; t; t = t->next) {
		int rc;
		pid_t pid;

		if (only && !strstr(t->name, only))
			continue;
		pid = tap_fork();
		if (!pid)
			tap_child(t);
		rc = tap_wait(pid);
		if (rc == -SIGALRM)
			printf("# timed out\n");
		else if (rc < 0)
			printf("# killed by signal %d\n", -rc);
		printf("%sok %u - %s: %s%s%s\n", rc && rc != TAP_SKIPPED ? "not " : "", ++n, suite, t->name,
		       rc == TAP_SKIPPED ? " # SKIP " : "", rc == TAP_SKIPPED ? tap_reason : "");
		passed += !rc;
		skipped += rc == TAP_SKIPPED;
		failed += rc && rc != TAP_SKIPPED;
	}
	printf("# %s: %u passed, %u failed, %u skipped\n", suite, passed, failed, skipped);
	return failed || !n;
}

static inline int tap_main(int argc, char **argv)
{
	const char *suite = strrchr(argv[0], '/');

	tap_reason = mmap(NULL, TAP_REASON_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (tap_reason == MAP_FAILED)
		return 1;
	return tap_run_all(suite ? suite + 1 : argv[0], argc > 1 ? argv[1] : NULL);
}

#define TAP_MAIN int main(int argc, char **argv) { return tap_main(argc, argv); }

#endif
