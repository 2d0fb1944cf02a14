// SPDX-License-Identifier: GPL-2.0-only
/*
 * pmheap lab: run somebody's program in front of libpmheap-lab, and tell what that noticed. See lab/lab.h.
 *
 * The lab's library is preloaded, so that it stands in for libpmheap in a program that is linked dynamically. A
 * program that was compiled with the flags of libpmheap-lab.pc also names the lines of its stores.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "json.h"
#include "lab_places.h"
#include "tool.h"

#define LAB_LIBRARY "libpmheap-lab.so.0"
#define LAB_SCRATCH_BYTES (64ULL << 20)
#define LAB_NO_PROGRAM 126	/* the child's exit status, as a shell's */

struct lab_run {
	char dir[PATH_MAX - 64];	/* temporary; holds the report and the scratch region */
	char report_path[PATH_MAX], region[PATH_MAX];
	bool has_region;
	struct lab_report *report;
	int status;			/* of waitpid() */
};

/* One mistake, with its places found. */
struct mistake {
	const struct lab_finding *f;
	uint64_t count;
	struct spot store, flush, call;
};

static int report_make(struct lab_run *run)
{
	int fd = open(run->report_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600), rc = 0;
	void *p = MAP_FAILED;

	if (fd < 0)
		return -errno;
	if (!ftruncate(fd, sizeof(struct lab_report)))
		p = mmap(NULL, sizeof(struct lab_report), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		rc = -errno;
	close(fd);
	if (rc)
		return rc;
	run->report = p;
	run->report->magic = LAB_REPORT_MAGIC;
	return 0;
}

static int directory_make(struct lab_run *run, const char *parent)
{
	int len = snprintf(run->dir, sizeof(run->dir), "%s/pmheap-lab.XXXXXX", parent), rc = 0;

	if (len < 0 || (size_t)len >= sizeof(run->dir))
		rc = -ENAMETOOLONG;
	else if (!mkdtemp(run->dir))
		rc = -errno;
	if (rc)
		run->dir[0] = 0;
	return rc;
}

static int run_begin(struct lab_run *run, const char *parent)
{
	int rc;

	*run = (struct lab_run){ .dir = "" };
	rc = directory_make(run, parent);
	if (rc)
		return rc;
	snprintf(run->report_path, sizeof(run->report_path), "%s/report", run->dir);
	snprintf(run->region, sizeof(run->region), "file:%s/region", run->dir);
	return report_make(run);
}

static void run_end(struct lab_run *run)
{
	if (run->report)
		munmap(run->report, sizeof(*run->report));
	if (!run->dir[0])
		return;
	unlink(run->report_path);
	if (run->has_region)
		unlink(run->region + strlen("file:"));
	rmdir(run->dir);
}

/* {} among the program's arguments is a region made for this run. */
static int scratch(const struct tool *t, struct lab_run *run)
{
	int i;

	for (i = 1; i < t->nargs; i++) {
		if (strcmp(t->args[i], "{}") != 0)
			continue;
		t->args[i] = run->region;
		run->has_region = true;
	}
	if (run->has_region)
		return format_scratch(t, run->region + strlen("file:"),
				      t->given & OPT_SIZE ? t->size : LAB_SCRATCH_BYTES);
	if (!(t->given & OPT_SIZE))
		return EXIT_DONE;
	complain(t, "--size is for a scratch region, which {} among the arguments stands for");
	return EXIT_USAGE;
}

/* Beside the command, in the lib directory beside the command's, or where the loader looks. */
static void library_find(char path[PATH_MAX])
{
	static const char *const places[] = { "/" LAB_LIBRARY, "/../lib/" LAB_LIBRARY };
	char self[PATH_MAX - 64];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	size_t i;

	self[len > 0 ? len : 0] = 0;
	if (len > 0)
		*strrchr(self, '/') = 0;
	for (i = 0; len > 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(path, PATH_MAX, "%s%s", self, places[i]);
		if (!access(path, R_OK))
			return;
	}
	snprintf(path, PATH_MAX, LAB_LIBRARY);
}

static void child_run(const struct tool *t, const struct lab_run *run)
{
	char preload[2 * PATH_MAX], library[PATH_MAX];
	const char *before = getenv("LD_PRELOAD");

	library_find(library);
	snprintf(preload, sizeof(preload), "%s%s%.4000s", library, before ? ":" : "", before ? before : "");
	setenv("LD_PRELOAD", preload, 1);
	setenv(LAB_REPORT_ENV, run->report_path, 1);
	if (t->json)	/* what is read by a program is one object, and nothing before it */
		dup2(STDERR_FILENO, STDOUT_FILENO);
	execvp(t->args[0], t->args);
	complain(t, "%s: %s", t->args[0], strerror(errno));
	_exit(LAB_NO_PROGRAM);
}

/* Ctrl-C is for the program; what it did until then is still told. */
static int program_run(struct tool *t, struct lab_run *run)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, interrupt, quit;
	pid_t child;

	fflush(stdout);
	sigaction(SIGINT, &ignore, &interrupt);
	sigaction(SIGQUIT, &ignore, &quit);
	child = fork();
	if (child == 0) {
		sigaction(SIGINT, &interrupt, NULL);
		sigaction(SIGQUIT, &quit, NULL);
		child_run(t, run);
	}
	if (child < 0)
		return -errno;
	while (waitpid(child, &run->status, 0) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	return 0;
}

static bool same_mistake(const struct mistake *a, const struct mistake *b)
{
	return a->f->kind == b->f->kind && !strcmp(a->store.where, b->store.where) &&
	       !strcmp(a->flush.where, b->flush.where) && !strcmp(a->call.where, b->call.where);
}

static int by_place(const void *x, const void *y)
{
	const struct mistake *a = x, *b = y;
	const char *at = a->store.where[0] ? a->store.where : a->call.where;
	const char *bt = b->store.where[0] ? b->store.where : b->call.where;

	return a->f->kind != b->f->kind ? (int)a->f->kind - (int)b->f->kind : strverscmp(at, bt);
}

/* Of several processes, and of several instructions of one line, one mistake. */
static size_t mistakes_collect(const struct lab_report *r, struct mistake *list)
{
	size_t i, k, n = 0, found = r->findings < LAB_FINDINGS ? r->findings : LAB_FINDINGS;

	for (i = 0; i < found; i++) {
		struct mistake *m = &list[n];

		if (!r->finding[i].kind)	/* its process died over it */
			continue;
		*m = (struct mistake){ .f = &r->finding[i], .count = r->finding[i].count };
		spot_find(r, &m->f->store, &m->store);
		spot_find(r, &m->f->flush, &m->flush);
		spot_find(r, &m->f->call, &m->call);
		for (k = 0; k < n && !same_mistake(&list[k], m); k++)
			;
		if (k == n)
			n++;
		else
			list[k].count += m->count;
	}
	qsort(list, n, sizeof(*list), by_place);
	return n;
}

static void show_spot(const char *before, const struct spot *s)
{
	printf("%s%s", before, s->where[0] ? s->where : "code that the lab does not see");
	if (s->function[0])
		printf(" (%s)", s->function);
}

static void show_times(const struct mistake *m)
{
	printf("; %" PRIu64 " %s", m->count, m->count == 1 ? "time" : "times");
}

static void show_mistake(const struct mistake *m)
{
	const char *what = m->f->kind == LAB_USELESS ? "useless flush: " : "lost: ";

	show_spot(m->f->kind == LAB_LATE ? "late: " : what, m->f->kind == LAB_USELESS ? &m->call : &m->store);
	if (m->f->kind == LAB_LATE)
		show_spot(" stores what is not durable before the object is published at ", &m->call);
	else if (m->f->kind == LAB_LOST)
		printf(" stores to a published object, and nobody makes it durable");
	else
		show_spot(": nothing was stored since the flush at ", &m->flush);
	if (m->f->kind != LAB_USELESS && m->flush.where[0])
		show_spot("; flushed, but not drained, at ", &m->flush);
	show_times(m);
	printf(", first at offset 0x%" PRIx64 ", byte %" PRIu64 "\n", m->f->off, m->f->at);
}

static void json_spot(const char *key, const struct spot *s)
{
	if (s->where[0])
		json_string(key, s->where);
}

static void json_mistakes(const struct mistake *list, size_t n, const struct lab_run *run)
{
	static const char *const kinds[] = { [LAB_LATE] = "late", [LAB_LOST] = "lost", [LAB_USELESS] = "useless" };
	size_t i;

	json_open(NULL, '{');
	json_open("mistakes", '[');
	for (i = 0; i < n; i++) {
		json_open(NULL, '{');
		json_string("kind", kinds[list[i].f->kind]);
		json_spot("store", &list[i].store);
		json_spot("flush", &list[i].flush);
		json_spot("call", &list[i].call);
		json_u64("count", list[i].count);
		json_u64("off", list[i].f->off);
		json_u64("byte", list[i].f->at);
		json_close('}');
	}
	json_close(']');
	json_bool("compiled", run->report->compiled);
	json_bool("complete", !run->report->incomplete && run->report->begun == run->report->ended);
	json_close('}');
	json_end();
}

/* What the numbers do not cover. */
static void caveats(const struct tool *t, const struct lab_run *run)
{
	const struct lab_report *r = run->report;

	if (!r->compiled)
		complain(t, "%s is not compiled for the lab: compile it with `pkg-config --cflags libpmheap-lab` to learn the lines",
			 t->args[0]);
	if (r->begun != r->ended)
		complain(t, "%u of %u processes did not exit in the ordinary way: "
			 "what they never flushed is not known", r->begun - r->ended, r->begun);
	if (r->incomplete)
		complain(t, "there was more than could be noted");
	if (WIFSIGNALED(run->status))
		complain(t, "%s died of signal %d", t->args[0], WTERMSIG(run->status));
	else if (WEXITSTATUS(run->status))
		complain(t, "%s ended with exit status %d", t->args[0], WEXITSTATUS(run->status));
}

static int tell(const struct tool *t, const struct lab_run *run)
{
	struct mistake *list;
	size_t i, n;

	if (WIFEXITED(run->status) && WEXITSTATUS(run->status) == LAB_NO_PROGRAM && !run->report->begun)
		return EXIT_USAGE;	/* the child has said why */
	if (!run->report->pools) {
		complain(t, "%s opened no pool that the lab could see; if the library is linked into it, "
			 "link it with -lpmheap-lab instead", t->args[0]);
		return EXIT_USAGE;
	}
	list = calloc(LAB_FINDINGS, sizeof(*list));
	if (!list)
		return failed(t, "report", -ENOMEM);
	n = mistakes_collect(run->report, list);
	for (i = 0; i < n && !t->json; i++)
		show_mistake(&list[i]);
	if (t->json)
		json_mistakes(list, n, run);
	else
		printf("%zu %s\n", n, n == 1 ? "mistake" : "mistakes");
	free(list);
	caveats(t, run);
	return n || run->status ? EXIT_FAILED : EXIT_DONE;
}

int run_lab(struct tool *t)
{
	const char *set = getenv("TMPDIR"), *parent = set && *set ? set : "/tmp";
	struct lab_run run;
	int rc = run_begin(&run, parent);

	if (rc) {
		complain(t, "no scratch directory can be made in %s: %s", parent, strerror(-rc));
		rc = EXIT_FAILED;
	} else {
		rc = scratch(t, &run);
	}
	if (!rc) {
		rc = program_run(t, &run);
		rc = rc ? failed(t, t->args[0], rc) : tell(t, &run);
	}
	run_end(&run);
	return rc;
}
