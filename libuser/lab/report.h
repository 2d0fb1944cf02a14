/* SPDX-License-Identifier: MIT */
/*
 * What the lab tells: a file that the program under test and `pmheap lab` both map.
 *
 * It is memory, not text, so that what was found before a program died is there, however it died. Each slot is
 * claimed once, by an atomic counter, and belongs to the process that claimed it; a forked child goes on in
 * slots of its own, and the reader adds up what is the same. A place is an instruction: a module (an executable
 * or a shared library) and an address in it, as the module's debug information counts.
 */
#ifndef PMHEAP_LAB_REPORT_H
#define PMHEAP_LAB_REPORT_H

#include <stdint.h>

#define LAB_REPORT_ENV "PMHEAP_LAB_REPORT"	/* the file's path */
#define LAB_REPORT_MAGIC 0x3162616c70616568ULL
#define LAB_FINDINGS 4096U
#define LAB_MODULES 256U
#define LAB_NO_MODULE UINT32_MAX

enum lab_kind {
	LAB_LATE = 1,		/* stored, then published before it was durable */
	LAB_LOST,		/* stored to an object that is published, and never made durable */
	LAB_USELESS,		/* flushed again with nothing stored in between */
};

struct lab_place {
	uint32_t module;	/* index; LAB_NO_MODULE: not known */
	uint32_t pad;
	uint64_t addr;		/* of the call's return */
};

struct lab_finding {
	uint32_t kind;			/* enum lab_kind; 0: being written */
	uint32_t pad;
	struct lab_place store;		/* LATE, LOST: the store */
	struct lab_place flush;		/* its flush, if one came without a drain; USELESS: the earlier flush */
	struct lab_place call;		/* LATE: the publish; USELESS: the flush that did nothing */
	uint64_t count;			/* objects, or calls */
	uint64_t off, at;		/* the first: the object (USELESS: the range), and the byte in it */
};

struct lab_module {
	char path[504];
	uint32_t ready;
	uint32_t pad;
};

struct lab_report {
	uint64_t magic;
	uint32_t begun, ended;		/* processes */
	uint32_t pools;			/* opened while the lab looked on */
	uint32_t compiled;		/* 1: some of the program is compiled for the lab */
	uint32_t incomplete;		/* the lab ran out of memory or slots: there may be more */
	uint32_t modules, findings;	/* claimed; may exceed the arrays */
	uint32_t pad;
	struct lab_module module[LAB_MODULES];
	struct lab_finding finding[LAB_FINDINGS];
};

#endif
