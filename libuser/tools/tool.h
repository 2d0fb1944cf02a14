/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The command pmheap. main.c finds the subcommand in a table, reads its options and calls it; a subcommand
 * does its work, writes to stdout, complains to stderr, and returns the exit code.
 */
#ifndef PMHEAP_TOOL_H
#define PMHEAP_TOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "backend.h"

#define EXIT_DONE 0
#define EXIT_FAILED 1		/* it did not work; check: damage */
#define EXIT_USAGE 2		/* wrong use; check: could not look */

#define CONTROL_DEVICE "/dev/pmheap"

/* Options, as bits: which of them a subcommand takes, and which were given. */
enum tool_option {
	OPT_JSON = 1 << 0,
	OPT_FORCE = 1 << 1,
	OPT_ALL = 1 << 2,
	OPT_READONLY = 1 << 3,
	OPT_LIST = 1 << 4,
	OPT_SIZE = 1 << 5,
	OPT_LABEL = 1 << 6,
	OPT_QUOTA = 1 << 7,
	OPT_SPAN = 1 << 8,
	OPT_MODE = 1 << 9,
	OPT_HOME = 1 << 10,
	OPT_OWNER = 1 << 11,
	OPT_TYPE = 1 << 12,
	OPT_PROGRAM = 1 << 13,	/* no option: the first argument is a program, and all after it are its own */
	OPT_YES = 1 << 14,
	OPT_UNDO = 1 << 15,
	OPT_REVERT = 1 << 16,
	OPT_RATE = 1 << 17,
	OPT_QUICK = 1 << 18,
};

struct tool {
	const char *command;
	unsigned int given;	/* enum tool_option */
	bool json;
	uint64_t size, quota, span, home, rate;
	uint32_t mode, uid, gid, type;
	const char *label;
	const char *undo, *revert;	/* files; NULL: not given */
	int nargs;
	char **args;
};

struct command {
	const char *name;
	const char *arguments;	/* for people */
	const char *help;
	unsigned int options;
	int args_min, args_max;
	int (*run)(struct tool *t);
};

int run_format(struct tool *t);
int run_attach(struct tool *t);
int run_detach(struct tool *t);
int run_list(struct tool *t);
int run_info(struct tool *t);
int run_create(struct tool *t);
int run_destroy(struct tool *t);
int run_quota(struct tool *t);
int run_stat(struct tool *t);
int run_objects(struct tool *t);
int run_names(struct tool *t);
int run_check(struct tool *t);
int run_lab(struct tool *t);
int run_repair(struct tool *t);
int run_version(struct tool *t);

/* "pmheap: COMMAND: ..." on stderr. */
void complain(const struct tool *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The same about `what` with an error of the library; EXIT_FAILED. */
int failed(const struct tool *t, const char *what, int err);

/* opening.c: the same about a file or device, a region, or a pool of it, as spelled on the command line. */
int file_failed(const struct tool *t, const char *path, int err);
int region_failed(const struct tool *t, const char *spelling, int err);
/* Of a call that takes both: the region, if it cannot even be opened, is what is wrong. */
int pool_failed(const struct tool *t, const char *spelling, const char *pool, int err);

/* Open for looking. A file: region that needs recovery is recovered, as by any program that opens it. */
int open_region(const struct tool *t, const char *spelling, struct region **r);
int open_pool(const struct tool *t, const char *spelling, const char *pool, struct region **r, struct pmheap **h);

/* check_in_use.c: a region that the kernel has; the exit code. */
int check_in_use(const struct tool *t, const char *spelling, struct region *r);

/* format.c: a new file that holds an empty region; 0, or an exit code when it has complained. */
int format_scratch(const struct tool *t, const char *path, uint64_t size);

/* size.c */
int parse_size(const char *text, uint64_t *bytes);	/* -EINVAL, -ERANGE */
const char *show_size(uint64_t bytes, char buf[32]);
const char *show_uuid(const uint8_t uuid[16], char buf[37]);
const char *show_level(uint32_t level);
/* Others chose it: what would upset a terminal is written \xHH. */
#define TEXT_SHOWN (4 * NAME_MAX_BYTES + 1)
const char *show_bytes(const void *text, size_t len, char buf[TEXT_SHOWN]);

#endif
