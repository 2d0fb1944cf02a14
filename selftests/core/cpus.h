/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Simulated CPUs: tasks that run the engine's code in turns of one primitive (a store, a flush, a fence, a lock),
 * one after another in an order that a seed gives. A task stays on its CPU between persist_begin() and
 * persist_end(), where also nobody else runs on that CPU; elsewhere it may be moved to another at any primitive.
 * Going from one task to another is no fence for anybody.
 */
#ifndef PMHEAP_SELFTESTS_CPUS_H
#define PMHEAP_SELFTESTS_CPUS_H

#include "port.h"

#define CPUS_TASKS 8

/* Run n tasks to their ends, fn(arg[i]) each, on that many CPUs. */
void cpus_run(u32 n, u32 cpus, u64 seed, void (*fn)(void *arg), void **arg);
void cpus_move(void);		/* the task that runs goes on, on another CPU */
u64 cpus_switches(void);	/* so far, of all runs */

#endif
