// SPDX-License-Identifier: GPL-2.0-only
/*
 * The plugin: writes down each store, write-back and fence that concerns one NVDIMM, while programs of the guest
 * ask for it.
 *
 *   -plugin libtrace.so,region=FILE,out=DIRECTORY[,seed=N][,switch=N]
 *
 * region is the NVDIMM's backing file; one trace (../record.h) is written for each stretch between a note START
 * and a note STOP. switch=N: after one in N stores to the device, by chance from seed, the next CPU runs.
 *
 * The emulator does nothing for a write-back, so there is no access to hook: its address is computed from the
 * registers. These are right between blocks only. Hence one instruction a block while tracing; such blocks are
 * other ones than those made before, so nothing that was translated without hooks runs, and nothing has to be
 * thrown away. The CPUs must take turns in one thread (-accel tcg,thread=single), or the order would be chance.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../record.h"
#include "decode.h"
#include "device.h"
#include "qemu_plugin.h"

#define EXPORTED __attribute__((visibility("default")))
#define PAGE 4096U
#define UNKNOWN (~0ULL)

EXPORTED int qemu_plugin_version = 1;
EXPORTED int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv);

/* An instruction that the hooks must know more about than its address. */
struct site {
	uint64_t pc;
	struct operand operand;
};

static struct {
	struct qemu qemu;
	struct byte_array *scratch;	/* a register's value */
	int cpus;
	char region[PATH_MAX], out[PATH_MAX];
	uint64_t seed, preempt;
	struct device device;
	uint64_t guest;			/* the device's first guest-physical address */
	bool active;
	FILE *file;
	struct note_start start;
	struct trace_header header;
	unsigned int last_cpu;
} tracer = { .guest = UNKNOWN, .seed = 1 };

/* ---- the file ---- */

static void path_of(char *path, const char *suffix)
{
	snprintf(path, PATH_MAX, "%.3000s/%.31s.%s", tracer.out, tracer.start.name, suffix);
}

static void put(const void *what, size_t bytes)
{
	if (fwrite(what, bytes, 1, tracer.file) != 1)
		plugin_die("cannot write", "the trace");
}

static void record(unsigned int cpu, enum trace_type type, uint8_t size, uint64_t off, uint64_t value, uint64_t pc)
{
	struct trace_record r = { .type = type, .size = size, .cpu = (uint8_t)cpu, .off = off, .value = value, .pc = pc };

	tracer.header.switches += cpu != tracer.last_cpu;
	tracer.last_cpu = cpu;
	tracer.header.records++;
	put(&r, sizeof(r));
}

static void record_note(unsigned int cpu, uint64_t head, const uint8_t *body)
{
	struct trace_record r = { .type = TRACE_NOTE, .cpu = (uint8_t)cpu, .bytes = note_bytes(head), .value = head };
	uint8_t room[sizeof(r)] = { 0 };
	uint32_t at;

	tracer.header.records++;
	put(&r, sizeof(r));
	for (at = 0; at < r.bytes; at += sizeof(room)) {
		uint32_t left = r.bytes - at;

		memcpy(room, body + at, left < sizeof(room) ? left : sizeof(room));
		tracer.header.records++;
		put(room, sizeof(room));
	}
}

/* ---- notes ---- */

static void all_cpus_leave(void)
{
	int i;

	for (i = 0; i < tracer.cpus; i++)
		tracer.qemu.cpu_exit(tracer.qemu.cpu(i));
}

static void trace_begin(unsigned int cpu, uint64_t head, const uint8_t *body)
{
	char path[PATH_MAX];

	if (tracer.active || note_bytes(head) != sizeof(tracer.start))
		return;
	memcpy(&tracer.start, body, sizeof(tracer.start));
	tracer.start.name[sizeof(tracer.start.name) - 1] = 0;
	device_find(&tracer.device, tracer.region);
	path_of(path, "start");
	device_copy(&tracer.device, path);
	path_of(path, "trace");
	tracer.file = fopen(path, "wb");
	if (!tracer.file)
		plugin_die("cannot make", path);
	tracer.header = (struct trace_header){ .magic = TRACE_MAGIC,
					       .size = (uint64_t)(tracer.device.end - tracer.device.bytes) };
	put(&tracer.header, sizeof(tracer.header));
	tracer.active = true;
	record_note(cpu, head, body);
	*tracer.qemu.singlestep = 1;
	all_cpus_leave();
}

static void trace_end(void)
{
	char path[PATH_MAX];

	tracer.active = false;
	*tracer.qemu.singlestep = 0;
	all_cpus_leave();
	tracer.header.complete = 1;
	rewind(tracer.file);
	put(&tracer.header, sizeof(tracer.header));
	if (fclose(tracer.file))
		plugin_die("cannot write", "the trace");
	path_of(path, "end");
	device_copy(&tracer.device, path);
}

static const uint8_t *host_address(qemu_plugin_meminfo_t info, uint64_t vaddr)
{
	struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(info, vaddr);

	return hw && !hw->io ? hw->host : NULL;
}

/* The store of a note's head: the body lies behind it in the same page. */
static void on_note(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *arg)
{
	const uint8_t *at = host_address(info, vaddr);
	uint64_t head;

	(void)arg;
	if (!at || vaddr % PAGE)
		return;
	memcpy(&head, at, sizeof(head));
	if (note_bytes(head) > NOTE_BODY_MAX)
		return;
	if (note_kind(head) == NOTE_START) {
		trace_begin(cpu, head, at + sizeof(head));
	} else if (tracer.active) {
		record_note(cpu, head, at + sizeof(head));
		if (note_kind(head) == NOTE_STOP)
			trace_end();
	}
}

/* ---- what the CPUs do ---- */

/* By chance the next CPU runs: between any two stores another one may do something. */
static void maybe_switch(unsigned int cpu)
{
	if (!tracer.preempt)
		return;
	tracer.seed ^= tracer.seed << 13;
	tracer.seed ^= tracer.seed >> 7;
	tracer.seed ^= tracer.seed << 17;
	if (tracer.seed % tracer.preempt == 0)
		tracer.qemu.cpu_exit(tracer.qemu.cpu((int)cpu));
}

static void stored(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, uint64_t pc, enum trace_type type)
{
	unsigned int bytes = 1U << qemu_plugin_mem_size_shift(info);
	const uint8_t *at;
	uint64_t value = 0;

	/* Loads are told of as well. */
	if (!tracer.active || !qemu_plugin_mem_is_store(info))
		return;
	tracer.header.callbacks++;
	at = host_address(info, vaddr);
	if (at < tracer.device.bytes || at >= tracer.device.end)
		return;
	if (tracer.guest == UNKNOWN)
		tracer.guest = tracer.qemu.phys_page(tracer.qemu.cpu((int)cpu), vaddr & ~(uint64_t)(PAGE - 1)) + vaddr % PAGE -
			       (uint64_t)(at - tracer.device.bytes);
	if (vaddr % PAGE + bytes > PAGE || bytes > 8) {
		tracer.header.crossing++;
		return;
	}
	memcpy(&value, at, bytes);
	record(cpu, type, (uint8_t)bytes, (uint64_t)(at - tracer.device.bytes), value, pc);
	maybe_switch(cpu);
}

static void on_store(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *arg)
{
	stored(cpu, info, vaddr, (uint64_t)arg, TRACE_STORE);
}

static void on_stream(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *arg)
{
	stored(cpu, info, vaddr, (uint64_t)arg, TRACE_STREAM);
}

static uint64_t register_value(void *cpu, int number)
{
	uint64_t value;

	tracer.qemu.array_resize(tracer.scratch, 0);
	tracer.qemu.read_register(cpu, tracer.scratch, number);
	memcpy(&value, tracer.scratch->data, sizeof(value));
	return value;
}

/* Registers as the debugger numbers them. */
static uint64_t operand_address(void *cpu, const struct operand *op)
{
	static const uint8_t number[] = { 0, 2, 3, 1, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };
	enum { FS_BASE = 24, GS_BASE = 25 };
	uint64_t at = (uint64_t)op->displacement;

	if (op->base != REGISTER_NONE)
		at += register_value(cpu, number[op->base]);
	if (op->index != REGISTER_NONE)
		at += register_value(cpu, number[op->index]) << op->scale;
	if (op->narrow)
		at = (uint32_t)at;
	if (op->segment)
		at += register_value(cpu, op->segment == 0x64 ? FS_BASE : GS_BASE);
	return at;
}

static void on_writeback(unsigned int cpu, void *arg)
{
	const struct site *site = arg;
	uint64_t size = (uint64_t)(tracer.device.end - tracer.device.bytes), at, page;
	void *guest_cpu;

	if (!tracer.active)
		return;
	guest_cpu = tracer.qemu.cpu((int)cpu);
	at = operand_address(guest_cpu, &site->operand);
	page = tracer.qemu.phys_page(guest_cpu, at & ~(uint64_t)(PAGE - 1));
	if (page == UNKNOWN) {
		tracer.header.unresolved++;
		return;
	}
	/* Before the first store to the device there is nothing to write back. */
	page += at % PAGE;
	if (tracer.guest != UNKNOWN && page - tracer.guest < size)
		record(cpu, TRACE_WRITEBACK, 0, (page - tracer.guest) & ~(uint64_t)(TRACE_LINE - 1), 0, site->pc);
}

static void on_fence(unsigned int cpu, void *arg)
{
	if (tracer.active)
		record(cpu, TRACE_FENCE, 0, 0, 0, (uint64_t)arg);
}

static void on_switch(unsigned int cpu, void *arg)
{
	if (tracer.active)
		record(cpu, TRACE_SWITCH, 0, 0, 0, (uint64_t)arg);
}

/* ---- hooks ---- */

static struct site *site_new(uint64_t pc, const struct operand *op)
{
	struct site *site = malloc(sizeof(*site));

	if (!site)
		plugin_die("cannot go on", "without memory");
	*site = (struct site){ pc, *op };
	return site;		/* as long as its block: for good */
}

static void hook(struct qemu_plugin_insn *insn)
{
	uint64_t pc = qemu_plugin_insn_vaddr(insn);
	struct operand op;
	enum insn_kind kind = insn_decode(qemu_plugin_insn_data(insn), qemu_plugin_insn_size(insn), pc, &op);

	if (kind == INSN_NOTE) {
		qemu_plugin_register_vcpu_mem_cb(insn, on_note, PLUGIN_NO_REGISTERS, PLUGIN_MEM_W, NULL);
		return;
	}
	if (!tracer.active)
		return;
	if (pc == tracer.start.task_switch)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_switch, PLUGIN_NO_REGISTERS, (void *)pc);
	if (kind == INSN_WRITEBACK)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_writeback, PLUGIN_NO_REGISTERS, site_new(pc, &op));
	else if (kind == INSN_FENCE)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_fence, PLUGIN_NO_REGISTERS, (void *)pc);
	else
		qemu_plugin_register_vcpu_mem_cb(insn, kind == INSN_STREAM ? on_stream : on_store, PLUGIN_NO_REGISTERS,
						 PLUGIN_MEM_W, (void *)pc);
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t n = qemu_plugin_tb_n_insns(tb), i;

	(void)id;
	for (i = 0; i < n; i++)
		hook(qemu_plugin_tb_get_insn(tb, i));
}

/* ---- beginning ---- */

static void *symbol(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	if (!found)
		fprintf(stderr, "trace plugin: this QEMU does not export %s\n", name);
	return found;
}

static bool qemu_find(struct qemu *q)
{
	q->singlestep = symbol("singlestep");
	*(void **)&q->cpu = symbol("qemu_get_cpu");
	*(void **)&q->cpu_exit = symbol("cpu_exit");
	*(void **)&q->phys_page = symbol("cpu_get_phys_page_debug");
	*(void **)&q->read_register = symbol("x86_cpu_gdb_read_register");
	*(void **)&q->array_new = symbol("g_byte_array_new");
	*(void **)&q->array_resize = symbol("g_byte_array_set_size");
	return q->singlestep && q->cpu && q->cpu_exit && q->phys_page && q->read_register && q->array_new && q->array_resize;
}

static bool option(const char *text)
{
	const char *value = strchr(text, '=');
	size_t name;

	if (!value++)
		return false;
	name = (size_t)(value - text);
	if (!strncmp(text, "region=", name))
		return realpath(value, tracer.region);
	if (!strncmp(text, "out=", name))
		return realpath(value, tracer.out);
	if (!strncmp(text, "seed=", name))
		tracer.seed = strtoull(value, NULL, 0) * 2 + 1;
	else if (!strncmp(text, "switch=", name))
		tracer.preempt = strtoull(value, NULL, 0);
	else
		return false;
	return true;
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	int i;

	if (!info->system || info->cpus > (int)TRACE_CPUS || !qemu_find(&tracer.qemu))
		return -1;
	tracer.cpus = info->cpus;
	for (i = 0; i < argc; i++) {
		if (!option(argv[i])) {
			fprintf(stderr, "trace plugin: cannot use %s\n", argv[i]);
			return -1;
		}
	}
	if (!*tracer.region || !*tracer.out) {
		fprintf(stderr, "trace plugin: region= and out= are needed\n");
		return -1;
	}
	tracer.scratch = tracer.qemu.array_new();
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
