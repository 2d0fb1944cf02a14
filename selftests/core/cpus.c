// SPDX-License-Identifier: GPL-2.0-only
#include <stdio.h>
#include <ucontext.h>
#include "cpus.h"
#include "medium.h"

#define STACK (256U << 10)

struct task {
	ucontext_t context;
	void *stack;
	void (*fn)(void *arg);
	void *arg;
	u32 cpu;
	int held;
	bool done;
};

static struct {
	struct task task[CPUS_TASKS];
	u32 n, cpus, now;
	u64 seed, switches, idle;
	ucontext_t home;
} cpus;

/* Somebody else is in the middle of a stretch on this task's CPU. */
static bool kept_off(const struct task *t)
{
	u32 i;

	for (i = 0; i < cpus.n; i++)
		if (&cpus.task[i] != t && cpus.task[i].held && cpus.task[i].cpu == t->cpu)
			return true;
	return false;
}

static u32 choose(void)
{
	u32 i, k;

	for (i = rnd(&cpus.seed, cpus.n), k = 0; k < 64; i = rnd(&cpus.seed, cpus.n), k++)
		if (!cpus.task[i].done && !kept_off(&cpus.task[i]))
			return i;
	for (i = 0; i < cpus.n; i++)
		if (!cpus.task[i].done && !kept_off(&cpus.task[i]))
			return i;
	return CPUS_TASKS;
}

static void resume(u32 next, ucontext_t *from)
{
	struct task *t = &cpus.task[next];

	cpus.now = next;
	cpus.switches++;
	cpu_now = t->cpu;
	task_now = next;
	cpu_held = t->held;
	swapcontext(from, &t->context);
}

static void leave(void)
{
	struct task *t = &cpus.task[cpus.now];
	u32 me = cpus.now, next;

	t->held = cpu_held;
	if (!t->held && !rnd(&cpus.seed, 8))
		t->cpu = rnd(&cpus.seed, cpus.cpus);
	next = choose();
	if (next == me) {
		cpu_now = t->cpu;
		return;
	}
	resume(next, &t->context);
	/* back again: whoever came here has set what is this task's */
}

/* Most primitives are followed by others of the same task, as on a real machine; some by anybody's. */
static void maybe_leave(void)
{
	cpus.idle = 0;
	if (!rnd(&cpus.seed, 3))
		leave();
}

static void wait_for_lock(void)
{
	if (cpu_held || cpus.idle++ > 1000000) {
		printf("not ok - task %u %s\n", cpus.now, cpu_held ? "sleeps where it must stay on its CPU" : "waits for ever");
		exit(1);
	}
	leave();
}

static void task_main(u32 number)
{
	struct task *t = &cpus.task[number];
	u32 next;

	t->fn(t->arg);
	t->done = true;
	t->held = 0;
	next = choose();
	if (next == CPUS_TASKS)
		setcontext(&cpus.home);
	resume(next, &t->context);
}

static void start(u32 i, void (*fn)(void *arg), void *arg)
{
	struct task *t = &cpus.task[i];

	memset(t, 0, sizeof(*t));
	t->fn = fn;
	t->arg = arg;
	t->cpu = i % cpus.cpus;
	t->stack = malloc(STACK);
	getcontext(&t->context);
	t->context.uc_stack.ss_sp = t->stack;
	t->context.uc_stack.ss_size = STACK;
	makecontext(&t->context, (void (*)(void))task_main, 1, i);
}

void cpus_run(u32 n, u32 ncpus, u64 seed, void (*fn)(void *arg), void **arg)
{
	u32 i;

	cpus.n = n;
	cpus.cpus = ncpus;
	cpus.seed = seed | 1;
	for (i = 0; i < n; i++)
		start(i, fn, arg[i]);
	cpu_wait = wait_for_lock;
	cpu_switch = maybe_leave;
	resume(choose(), &cpus.home);
	cpu_wait = NULL;
	cpu_switch = NULL;
	cpu_held = 0;
	for (i = 0; i < n; i++)
		free(cpus.task[i].stack);
}

void cpus_move(void)
{
	struct task *t = &cpus.task[cpus.now];

	assert(!cpu_held);
	if (!cpu_switch) {
		cpu_now = (cpu_now + 1) % 5;
		return;
	}
	t->cpu = (t->cpu + 1) % cpus.cpus;
	cpu_now = t->cpu;
	if (kept_off(t))
		leave();
}

u64 cpus_switches(void)
{
	return cpus.switches;
}
