// SPDX-License-Identifier: MIT
/* Mistakes on their way into the report, and the numbers that stand for places in the program. See report.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lab.h"

#define PLACES (1U << 16)	/* a hash table: a program has fewer instructions that store to pools */

struct mine {			/* a finding of this process */
	struct finding_key key;
	uint64_t event;
	struct lab_finding *at;
};

static uintptr_t place[PLACES];	/* by number; 0 is LAB_NOWHERE */
static struct mine mine[LAB_FINDINGS];
static unsigned int mines;

void report_open(void)
{
	const char *path = getenv(LAB_REPORT_ENV);
	struct lab_report *r;
	int fd;

	fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	r = mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (r == MAP_FAILED)
		return;
	if (r->magic != LAB_REPORT_MAGIC) {
		munmap(r, sizeof(*r));
		return;
	}
	__atomic_fetch_add(&r->begun, 1, __ATOMIC_RELAXED);
	lab.report = r;
}

void report_forked(void)
{
	mines = 0;
	__atomic_fetch_add(&lab.report->begun, 1, __ATOMIC_RELAXED);
}

void report_short(void)
{
	__atomic_store_n(&lab.report->incomplete, 1, __ATOMIC_RELAXED);
}

uint32_t place_of(uintptr_t caller)
{
	uint32_t i = (uint32_t)(caller * 0x9e3779b97f4a7c15ULL >> 48), n;

	for (n = 0; n < PLACES; n++, i = (i + 1) % PLACES) {
		if (i == LAB_NOWHERE)
			continue;
		if (!place[i])
			place[i] = caller;
		if (place[i] == caller)
			return i;
	}
	report_short();
	return LAB_NOWHERE;
}

struct module_search {
	uintptr_t addr;
	uintptr_t base;
	const char *path;
};

static int module_match(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct module_search *s = arg;
	int i;

	(void)size;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD || s->addr - (info->dlpi_addr + ph->p_vaddr) >= ph->p_memsz)
			continue;
		s->base = info->dlpi_addr;
		s->path = info->dlpi_name;
		return 1;
	}
	return 0;
}

static uint32_t module_find(const char *path)
{
	struct lab_report *r = lab.report;
	uint32_t i, n = __atomic_load_n(&r->modules, __ATOMIC_RELAXED);

	for (i = 0; i < n && i < LAB_MODULES; i++) {
		if (__atomic_load_n(&r->module[i].ready, __ATOMIC_ACQUIRE) && !strcmp(r->module[i].path, path))
			return i;
	}
	i = __atomic_fetch_add(&r->modules, 1, __ATOMIC_RELAXED);
	if (i >= LAB_MODULES) {
		report_short();
		return LAB_NO_MODULE;
	}
	strncpy(r->module[i].path, path, sizeof(r->module[i].path) - 1);
	__atomic_store_n(&r->module[i].ready, 1, __ATOMIC_RELEASE);
	return i;
}

static struct lab_place place_show(uint32_t number)
{
	struct module_search s = { .addr = place[number] };
	char program[504] = "";

	if (number == LAB_NOWHERE || !dl_iterate_phdr(module_match, &s))
		return (struct lab_place){ .module = LAB_NO_MODULE };
	if (!*s.path && readlink("/proc/self/exe", program, sizeof(program) - 1) < 0)
		return (struct lab_place){ .module = LAB_NO_MODULE };
	return (struct lab_place){ .module = module_find(*s.path ? s.path : program), .addr = s.addr - s.base };
}

static struct lab_finding *finding_new(const struct finding_key *key, uint64_t off, uint64_t at)
{
	uint32_t i = __atomic_fetch_add(&lab.report->findings, 1, __ATOMIC_RELAXED);
	struct lab_finding *f;

	if (i >= LAB_FINDINGS)
		return NULL;
	f = &lab.report->finding[i];
	f->store = place_show(key->store);
	f->flush = place_show(key->flush);
	f->call = place_show(key->call);
	f->off = off;
	f->at = at;
	__atomic_store_n(&f->kind, key->kind, __ATOMIC_RELEASE);
	return f;
}

void report_finding(const struct finding_key *key, uint64_t event, uint64_t off, uint64_t at)
{
	struct mine *m;

	for (m = mine; m < mine + mines; m++) {
		if (m->key.kind == key->kind && m->key.store == key->store && m->key.flush == key->flush &&
		    m->key.call == key->call)
			break;
	}
	if (m == mine + mines) {
		if (mines == LAB_FINDINGS) {
			report_short();
			return;
		}
		*m = (struct mine){ .key = *key, .event = event - 1, .at = finding_new(key, off, at) };
		if (!m->at) {
			report_short();
			return;
		}
		mines++;
	}
	if (m->event != event)
		m->at->count++;
	m->event = event;
}
