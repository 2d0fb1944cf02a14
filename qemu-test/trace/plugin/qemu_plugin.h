/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is used of QEMU: its interface for TCG plugins, version 1 (QEMU 7.2), of which Debian packages no header,
 * and some of its own symbols, which the program exports and the dynamic linker finds.
 */
#ifndef TRACE_QEMU_PLUGIN_H
#define TRACE_QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

struct qemu_plugin_tb;
struct qemu_plugin_insn;

struct qemu_info {
	const char *target;
	struct {
		int min, cur;
	} version;
	bool system;
	int cpus, cpus_max;
};

/* The inside of QEMU's struct qemu_plugin_hwaddr, for memory that is no I/O. */
struct qemu_plugin_hwaddr {
	bool io, store;
	void *host;
};

enum { PLUGIN_NO_REGISTERS = 0 };
enum { PLUGIN_MEM_W = 2 };

typedef void plugin_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb);
typedef void plugin_executed(unsigned int cpu, void *arg);
typedef void plugin_accessed(unsigned int cpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *arg);
typedef void plugin_ended(qemu_plugin_id_t id, void *arg);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, plugin_translate *cb);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, plugin_executed *cb, int flags, void *arg);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, plugin_accessed *cb, int flags, int rw, void *arg);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, plugin_ended *cb, void *arg);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t n);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t info, uint64_t vaddr);

/* QEMU's own. */
struct byte_array {		/* GLib's GByteArray */
	uint8_t *data;
	unsigned int len;
};

struct qemu {
	int *singlestep;				/* one instruction a block */
	void *(*cpu)(int index);
	void (*cpu_exit)(void *cpu);			/* leave the block after this one, on to the next CPU */
	uint64_t (*phys_page)(void *cpu, uint64_t addr);	/* ~0: not mapped */
	int (*read_register)(void *cpu, struct byte_array *to, int number);
	struct byte_array *(*array_new)(void);
	struct byte_array *(*array_resize)(struct byte_array *a, unsigned int bytes);
};

#endif
