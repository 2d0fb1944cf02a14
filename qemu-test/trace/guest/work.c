// SPDX-License-Identifier: GPL-2.0-only
/* workload storm-prepare|storm|names|pools-prepare|pools REGION [PROCESSES] [ROUNDS] */
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

/* In the preloaded library, if there is one. */
void note_store(const char *pool, uint64_t off, uint64_t value) __attribute__((weak));
void note_stored(void) __attribute__((weak));

uint32_t work_random(struct work *w, uint32_t below)
{
	w->seed ^= w->seed << 13;
	w->seed ^= w->seed >> 7;
	w->seed ^= w->seed << 17;
	return (uint32_t)(w->seed >> 24) % below;
}

void work_must(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "workload: %s: %s\n", what, pmheap_strerror(rc));
	exit(1);
}

void work_open(struct work *w, const char *region, const char *pool, uint64_t seed)
{
	*w = (struct work){ .region = region, .pool = pool, .seed = seed * 0x9e3779b97f4a7c15ULL | 1 };
	work_must(pmheap_open(region, pool, 0, &w->h), pool);
}

void work_fork(uint32_t processes, work_body *body, struct work *w, uint32_t rounds)
{
	uint32_t i;
	int status, failed = 0;

	for (i = 0; i < processes; i++) {
		pid_t child = fork();

		if (child < 0)
			exit(1);
		if (!child) {
			struct work mine;

			work_open(&mine, w->region, w->pool, w->seed + i + 1);
			body(&mine, i, rounds);
			work_must(pmheap_close(mine.h), "close");
			_exit(0);
		}
	}
	while (wait(&status) > 0)
		failed |= status;
	if (failed)
		exit(1);
}

uint64_t work_make(struct work *w, uint64_t bytes, uint32_t type, uint64_t tag)
{
	uint64_t off, i, word;
	char *to;

	work_must(pmheap_reserve(w->h, bytes, 0, type, 0, 1, &off), "reserve");
	to = pmheap_ptr(w->h, off);
	for (i = 0; i < bytes; i += sizeof(word)) {
		word = (tag + i) * 0x9e3779b97f4a7c15ULL;
		memcpy(to + i, &word, bytes - i < sizeof(word) ? bytes - i : sizeof(word));
	}
	work_must(pmheap_flush(w->h, to, bytes), "flush");
	return off;
}

void work_store(struct work *w, uint64_t off, uint64_t value)
{
	uint64_t *word = pmheap_ptr(w->h, off);

	if (note_store)
		note_store(w->pool, off, value);
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
	work_must(pmheap_persist(w->h, word, sizeof(*word)), "persist");
	if (note_stored)
		note_stored();
}

struct pmheap_op *work_op(struct pmheap_op *op, uint32_t *n, uint32_t kind, uint64_t off, uint64_t value)
{
	op[*n] = (struct pmheap_op){ .kind = kind, .off = off, .value = value };
	return &op[(*n)++];
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "", *region = argc > 2 ? argv[2] : "";
	uint32_t processes = argc > 3 ? (uint32_t)atoi(argv[3]) : 4, rounds = argc > 4 ? (uint32_t)atoi(argv[4]) : 20;

	if (!strcmp(what, "storm-prepare"))
		work_storm_prepare(region, processes);
	else if (!strcmp(what, "storm"))
		work_storm(region, processes, rounds);
	else if (!strcmp(what, "names"))
		work_names(region, processes, rounds);
	else if (!strcmp(what, "pools-prepare"))
		work_pools_prepare(region);
	else if (!strcmp(what, "pools"))
		work_pools(region, rounds);
	else {
		fprintf(stderr, "usage: workload storm-prepare|storm|names|pools-prepare|pools REGION [PROCESSES] [ROUNDS]\n");
		return 2;
	}
	return 0;
}
