// SPDX-License-Identifier: GPL-2.0-only
/* pmheap: the admin command. Finds the subcommand, reads options, opens what most subcommands need. */
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

static const struct command commands[] = {
	{ "format", "DEVICE|file:PATH [--size S] [--label L] [--force]", "make an empty region",
	  OPT_SIZE | OPT_LABEL | OPT_FORCE | OPT_JSON, 1, 1, run_format },
	{ "attach", "DEVICE... [--read-only] | --all", "make regions of devices available",
	  OPT_ALL | OPT_READONLY | OPT_JSON, 0, 64, run_attach },
	{ "detach", "REGION [--force]", "let a region's device go", OPT_FORCE, 1, 1, run_detach },
	{ "list", "[REGION]", "list the attached regions, or a region's pools", OPT_JSON, 0, 1, run_list },
	{ "info", "REGION|DEVICE [POOL]", "show what is known about a region or pool", OPT_JSON, 1, 2, run_info },
	{ "create", "REGION POOL [--quota S] [--span S] [--mode M] [--home ADDR] [--owner UID:GID]", "create a pool",
	  OPT_QUOTA | OPT_SPAN | OPT_MODE | OPT_HOME | OPT_OWNER, 2, 2, run_create },
	{ "destroy", "REGION POOL", "destroy a pool and all that is in it", 0, 2, 2, run_destroy },
	{ "quota", "REGION POOL --quota S", "change a pool's quota (0: none)", OPT_QUOTA, 2, 2, run_quota },
	{ "objects", "REGION POOL [--type T]", "list a pool's published objects",
	  OPT_TYPE | OPT_JSON, 2, 2, run_objects },
	{ "names", "REGION POOL", "list a pool's named objects", OPT_JSON, 2, 2, run_names },
	{ "stat", "REGION POOL", "show how full a pool is", OPT_JSON, 2, 2, run_stat },
	{ "check", "REGION [--rate S] [--quick] | DEVICE|IMAGE [--list]", "verify a region, in use or at rest",
	  OPT_LIST | OPT_RATE | OPT_QUICK | OPT_JSON, 1, 1, run_check },
	{ "lab", "[--size S] [--json] PROGRAM [ARGUMENT...]", "run a program and tell where it forgets to make stores durable",
	  OPT_SIZE | OPT_PROGRAM | OPT_JSON, 1, INT_MAX, run_lab },
	{ "repair", "DEVICE|IMAGE [--yes] [--undo FILE | --revert FILE [--force]]", "mend a region that nobody uses",
	  OPT_YES | OPT_UNDO | OPT_REVERT | OPT_FORCE | OPT_JSON, 1, 1, run_repair },
	{ "version", "", "show the version", OPT_JSON, 0, 0, run_version },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* val is the bit of enum tool_option. */
static const struct option long_options[] = {
	{ "json", no_argument, NULL, OPT_JSON },
	{ "force", no_argument, NULL, OPT_FORCE },
	{ "all", no_argument, NULL, OPT_ALL },
	{ "read-only", no_argument, NULL, OPT_READONLY },
	{ "list", no_argument, NULL, OPT_LIST },
	{ "quick", no_argument, NULL, OPT_QUICK },
	{ "rate", required_argument, NULL, OPT_RATE },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "label", required_argument, NULL, OPT_LABEL },
	{ "quota", required_argument, NULL, OPT_QUOTA },
	{ "span", required_argument, NULL, OPT_SPAN },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "home", required_argument, NULL, OPT_HOME },
	{ "owner", required_argument, NULL, OPT_OWNER },
	{ "type", required_argument, NULL, OPT_TYPE },
	{ "yes", no_argument, NULL, OPT_YES },
	{ "undo", required_argument, NULL, OPT_UNDO },
	{ "revert", required_argument, NULL, OPT_REVERT },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

void complain(const struct tool *t, const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fprintf(stderr, "pmheap: %s%s", t->command ? t->command : "", t->command ? ": " : "");
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

int failed(const struct tool *t, const char *what, int err)
{
	complain(t, "%s: %s", what, pmheap_strerror(err));
	return EXIT_FAILED;
}

static int usage(FILE *to, const struct command *one)
{
	size_t i;

	if (one) {
		fprintf(to, "usage: pmheap %s%s%s%s\n%s\n", one->name, *one->arguments ? " " : "", one->arguments,
			(one->options & (OPT_JSON | OPT_PROGRAM)) == OPT_JSON ? " [--json]" : "", one->help);
		return to == stdout ? EXIT_DONE : EXIT_USAGE;
	}
	fprintf(to, "usage: pmheap COMMAND ...\n\n");
	for (i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-*s%s\n           %s\n", *commands[i].arguments ? 9 : 0, commands[i].name,
			commands[i].arguments, commands[i].help);
	fprintf(to, "\nREGION is /dev/pmheapN, pmheapN, uuid:UUID, label:NAME or file:PATH.\n"
		"S is a number of bytes, or with K, M, G or T behind it. See pmheap(8).\n");
	return to == stdout ? EXIT_DONE : EXIT_USAGE;
}

static int read_number(const char *text, int base, uint64_t max, uint64_t *v)
{
	char *end;

	errno = 0;
	*v = strtoull(text, &end, base);
	return *text < '0' || *text > '9' || *end || errno || *v > max ? -EINVAL : 0;
}

static int read_owner(struct tool *t, const char *text)
{
	const char *colon = strchr(text, ':');
	char number[sizeof("4294967294")];
	uint64_t uid, gid;

	if (!colon || (size_t)(colon - text) >= sizeof(number))
		return -EINVAL;
	snprintf(number, sizeof(number), "%.*s", (int)(colon - text), text);
	/* The largest number stands for nobody's at all. */
	if (read_number(number, 10, UINT32_MAX - 1, &uid) || read_number(colon + 1, 10, UINT32_MAX - 1, &gid))
		return -EINVAL;
	t->uid = (uint32_t)uid;
	t->gid = (uint32_t)gid;
	return 0;
}

static int read_option(struct tool *t, int option, const char *text)
{
	uint64_t v = 0;
	int rc = 0;

	switch (option) {
	case OPT_JSON:
		t->json = true;
		break;
	case OPT_SIZE:
		return parse_size(text, &t->size);
	case OPT_QUOTA:
		return parse_size(text, &t->quota);
	case OPT_SPAN:
		return parse_size(text, &t->span);
	case OPT_RATE:
		return parse_size(text, &t->rate);
	case OPT_LABEL:
		t->label = text;
		return strlen(text) <= LABEL_MAX ? 0 : -ERANGE;
	case OPT_UNDO:
		t->undo = text;
		break;
	case OPT_REVERT:
		t->revert = text;
		break;
	case OPT_MODE:
		rc = read_number(text, 8, 0777, &v);
		t->mode = (uint32_t)v;
		break;
	case OPT_HOME:
		return read_number(text, 0, UINT64_MAX, &t->home);
	case OPT_OWNER:
		return read_owner(t, text);
	case OPT_TYPE:
		rc = read_number(text, 0, PMHEAP_ANY_TYPE, &v);
		t->type = (uint32_t)v;
		break;
	}
	return rc;
}

/* getopt's own words would not say which program they come from. */
static int no_option(const struct tool *t, const struct command *c, int found, const char *word)
{
	if (found == ':')
		complain(t, "%s needs a value", word);
	else if (!optopt)
		complain(t, "there is no %s", word);
	else if (strchr(word, '='))
		complain(t, "%.*s takes no value", (int)strcspn(word, "="), word);
	else
		complain(t, "there is no -%c", optopt);
	return usage(stderr, c);
}

/* 0, or an exit code + 1. */
static int read_options(struct tool *t, const struct command *c, int argc, char **argv)
{
	int index, option, rc;

	/* What follows a program's name is the program's. */
	const char *letters = c->options & OPT_PROGRAM ? "+:h" : ":h";

	opterr = 0;
	while ((option = getopt_long(argc, argv, letters, long_options, &index)) != -1) {
		if (option == 'h')
			return usage(stdout, c) + 1;
		if (option == '?' || option == ':')
			return no_option(t, c, option, argv[optind - 1]) + 1;
		if (!(option & (int)c->options)) {
			complain(t, "there is no --%s here", long_options[index].name);
			return usage(stderr, c) + 1;
		}
		rc = read_option(t, option, optarg);
		if (rc) {
			complain(t, "--%s %s: %s", long_options[index].name, optarg,
				 rc == -ERANGE ? "too large" : "not understood");
			return EXIT_USAGE + 1;
		}
		t->given |= (unsigned int)option;
	}
	t->nargs = argc - optind;
	t->args = argv + optind;
	if (t->nargs < c->args_min || t->nargs > c->args_max)
		return usage(stderr, c) + 1;
	return 0;
}

static const struct command *find_command(const char *name)
{
	size_t i;

	for (i = 0; i < COMMANDS; i++) {
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	}
	return NULL;
}

int run_version(struct tool *t)
{
	if (t->json)
		printf("{\"version\":\"%s\"}\n", PMHEAP_VERSION);
	else
		printf("pmheap %s\n", PMHEAP_VERSION);
	return EXIT_DONE;
}

/* pmheap --help, or help and perhaps a command. */
static bool asks_for_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h") || !strcmp(word, "help");
}

static int run(struct tool *t, int argc, char **argv)
{
	const struct command *c;
	const char *name;
	bool help;
	int rc;

	if (argc < 2)
		return usage(stderr, NULL);
	help = asks_for_help(argv[1]);
	if (help && argc == 2)
		return usage(stdout, NULL);
	name = argv[help ? 2 : 1];
	c = find_command(strcmp(name, "--version") ? name : "version");
	if (!c) {
		complain(t, "there is no command %s; pmheap help lists them", name);
		return EXIT_USAGE;
	}
	if (help)
		return usage(stdout, c);
	t->command = c->name;
	rc = read_options(t, c, argc - 1, argv + 1);
	return rc ? rc - 1 : c->run(t);
}

int main(int argc, char **argv)
{
	struct tool t = { .type = PMHEAP_ANY_TYPE, .label = "" };
	int rc = run(&t, argc, argv);

	if (fflush(stdout) || ferror(stdout)) {
		complain(&t, "cannot write the output");
		return rc ? rc : EXIT_FAILED;
	}
	return rc;
}
