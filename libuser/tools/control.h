/* SPDX-License-Identifier: GPL-2.0-only */
/* /dev/pmheap: the control device. Calls return 0 or -errno, control_open() a file descriptor. */
#ifndef PMHEAP_CONTROL_H
#define PMHEAP_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

int control_open(void);
int control_attach(int fd, const char *device, bool readonly, uint32_t *number);
int control_detach(int fd, uint32_t number, bool force);
int control_format(int fd, const char *device, const char *label, uint32_t uid, uint32_t gid, bool force,
		   uint8_t uuid[16]);

#endif
