/* SPDX-License-Identifier: GPL-2.0-only */
/* The NVDIMM's backing file, as QEMU has it mapped. */
#ifndef TRACE_DEVICE_H
#define TRACE_DEVICE_H

#include <stdint.h>

struct device {
	uint8_t *bytes, *end;
};

/* Fills in where the file is mapped; ends the program when it is not, as a trace would miss everything. */
void device_find(struct device *d, const char *file);
/* A sparse copy of all bytes. */
void device_copy(const struct device *d, const char *to);

/* A message, and the end of the machine. */
void plugin_die(const char *what, const char *which) __attribute__((noreturn));

#endif
