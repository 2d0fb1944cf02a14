// SPDX-License-Identifier: GPL-2.0-only
/*
 * Places in the words of a programmer. addr2line reads the debug information: it comes with the compiler, whose
 * users are the only ones who have a program to try, and costs the command no library.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lab_places.h"

/* Runs addr2line on one address; its output, or NULL. */
static FILE *addr2line(const char *module, uint64_t addr, pid_t *child)
{
	char number[32];
	int ends[2];

	snprintf(number, sizeof(number), "0x%" PRIx64, addr);
	if (pipe(ends))
		return NULL;
	*child = fork();
	if (*child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execlp("addr2line", "addr2line", "-f", "-C", "-e", module, number, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	if (*child < 0) {
		close(ends[0]);
		return NULL;
	}
	return fdopen(ends[0], "r");
}

static void cut_line(char *text)
{
	char *extra = strstr(text, " (discriminator");

	if (extra)
		*extra = 0;
	text[strcspn(text, "\n")] = 0;
}

/* Below the working directory, people want to read the rest. */
static const char *shorten(const char *path)
{
	char here[PATH_MAX];
	size_t len;

	if (!getcwd(here, sizeof(here)))
		return path;
	len = strlen(here);
	return !strncmp(path, here, len) && path[len] == '/' ? path + len + 1 : path;
}

void spot_find(const struct lab_report *r, const struct lab_place *place, struct spot *spot)
{
	char function[128] = "", where[PATH_MAX] = "";
	const char *module;
	pid_t child;
	FILE *f;

	*spot = (struct spot){ .where = "" };
	if (place->module >= LAB_MODULES)
		return;
	module = r->module[place->module].path;
	snprintf(spot->where, SPOT_MAX, "%.250s+0x%" PRIx64, shorten(module), place->addr - 1);
	f = addr2line(module, place->addr - 1, &child);	/* the call's last byte, not what it returns to */
	if (!f)
		return;
	if (fgets(function, sizeof(function), f) && fgets(where, sizeof(where), f)) {
		cut_line(function);
		cut_line(where);
		if (where[0] && where[0] != '?')
			snprintf(spot->where, SPOT_MAX, "%.300s", shorten(where));
		if (function[0] != '?')
			snprintf(spot->function, sizeof(spot->function), "%s", function);
	}
	fclose(f);
	waitpid(child, NULL, 0);
}
