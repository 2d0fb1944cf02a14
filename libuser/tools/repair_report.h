/* SPDX-License-Identifier: GPL-2.0-only */
/* What a repair says: kept while it runs, told at its end, with the names of pools and objects. */
#ifndef PMHEAP_REPAIR_REPORT_H
#define PMHEAP_REPAIR_REPORT_H

#include <heap.h>

struct report_finding {
	enum heap_repair_kind kind;
	char *what;
	uint64_t where;
};

struct report_object {
	uint32_t slot, type, len;
	bool published;
	uint64_t off, bytes;
	uint8_t name[PMHEAP_OBJECT_NAME_MAX];
	char *pool;		/* its name, when it can be opened */
};

struct repair_report {
	struct heap_repair_report r;
	struct report_finding *finding;
	struct report_object *object;
	size_t findings, objects;
	bool no_memory;
};

int repair_report_run(struct repair_report *report, struct persist *p);	/* the repair itself */
int repair_report_names(struct repair_report *report, struct persist *p);	/* after it; attaches */
bool repair_report_found(const struct repair_report *report);
void repair_report_text(const struct repair_report *report);
void repair_report_json(const struct repair_report *report, const char *path, const char *undo);
void repair_report_free(struct repair_report *report);

#endif
