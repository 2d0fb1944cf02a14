// SPDX-License-Identifier: GPL-2.0-only
/*
 * tracectl start NAME | stop | fences begin|end REGION POOL
 *
 * Begins and ends tracing, and tells the tracer the engine's own count of fences.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <pmheap.h>

#include "note.h"

static struct note_page page;

static uint64_t kernel_symbol(const char *name)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[512], symbol[256];
	unsigned long long at, found = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx %*c %255s", &at, symbol) == 2 && !strcmp(symbol, name))
			found = at;
	if (f)
		fclose(f);
	if (!found) {
		fprintf(stderr, "tracectl: no %s in /proc/kallsyms\n", name);
		exit(1);
	}
	return found;
}

static uint64_t module_number(const char *file)
{
	char path[128];
	char text[32];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/module/pmheap/%s", file);
	f = fopen(path, "r");
	if (!f || !fgets(text, sizeof(text), f)) {
		fprintf(stderr, "tracectl: cannot read %s\n", path);
		exit(1);
	}
	fclose(f);
	return strtoull(text, NULL, 0);
}

static int start(const char *name)
{
	struct note_start *s = (struct note_start *)page.body;

	strncpy(s->name, name, sizeof(s->name) - 1);
	s->task_switch = kernel_symbol("__switch_to_asm");
	s->text = module_number("sections/.text");
	s->text_end = s->text + module_number("coresize");
	note_say(&page, NOTE_START, (uint32_t)getpid(), sizeof(*s));
	return 0;
}

static int fences(const char *which, const char *region, const char *pool)
{
	struct note_fences *n = (struct note_fences *)page.body;
	struct pmheap_stat st = { .size = sizeof(st), .flags = PMHEAP_STAT_KNOWN };
	struct pmheap *h;
	int rc = pmheap_open(region, pool, PMHEAP_RDONLY, &h);

	if (!rc) {
		rc = pmheap_stat(h, &st);
		pmheap_close(h);
	}
	if (rc) {
		fprintf(stderr, "tracectl: %s %s: %s\n", region, pool, pmheap_strerror(rc));
		return 1;
	}
	*n = (struct note_fences){ .fences = st.fences, .flushes = st.flushes, .begin = !strcmp(which, "begin") };
	note_say(&page, NOTE_FENCES, (uint32_t)getpid(), sizeof(*n));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "start"))
		return start(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "stop")) {
		note_say(&page, NOTE_STOP, (uint32_t)getpid(), 0);
		return 0;
	}
	if (argc == 5 && !strcmp(argv[1], "fences"))
		return fences(argv[2], argv[3], argv[4]);
	fprintf(stderr, "usage: tracectl start NAME | stop | fences begin|end REGION POOL\n");
	return 2;
}
