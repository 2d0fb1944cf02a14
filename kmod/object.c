// SPDX-License-Identifier: GPL-2.0-only
/*
 * The commands about a pool's objects. Each copies in what it needs, enters the engine, leaves it, and copies
 * out; what cannot be answered is undone, and what cannot be undone is answered before it is done.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "pmheap_private.h"

static struct pmheap_file *call_file(struct pmheap_call *call)
{
	return call->file->private_data;
}

static int cancel(struct pmheap_file *pf, const u64 *offs, u32 count)
{
	struct heap_owner *owner;
	int rc;

	rc = pmheap_region_enter(pf->pool->region);
	if (rc)
		return rc;
	owner = pmheap_owner_get(pf);
	rc = IS_ERR(owner) ? PTR_ERR(owner) : heap_cancel(owner, offs, count);
	pmheap_region_exit(pf->pool->region);
	return rc;
}

static int reserve(struct pmheap_file *pf, const struct pmheap_reserve *cmd, u64 *offs)
{
	u32 flags = cmd->flags & PMHEAP_RESERVE_ZERO ? HEAP_RESERVE_ZERO : 0;
	struct heap_owner *owner;
	int rc;

	rc = pmheap_region_enter(pf->pool->region);
	if (rc)
		return rc;
	owner = pmheap_owner_get(pf);
	rc = IS_ERR(owner) ? PTR_ERR(owner) :
			     heap_reserve(owner, cmd->bytes, cmd->align, cmd->type, flags, cmd->count, offs);
	pmheap_region_exit(pf->pool->region);
	return rc;
}

int pmheap_ioctl_reserve(struct pmheap_call *call)
{
	struct pmheap_reserve *cmd = call->arg;
	struct pmheap_file *pf = call_file(call);
	u64 few[16], *offs = few;
	int rc;

	if (cmd->flags & ~PMHEAP_RESERVE_ZERO)
		return -EOPNOTSUPP;
	if (pf->readonly)
		return -EACCES;
	if (!cmd->count || cmd->count > PMHEAP_VECTOR_MAX)
		return -EINVAL;
	if (cmd->count > ARRAY_SIZE(few))
		offs = kvmalloc_array(cmd->count, sizeof(*offs), GFP_KERNEL_ACCOUNT);
	if (!offs)
		return -ENOMEM;
	rc = reserve(pf, cmd, offs);
	if (!rc && copy_to_user(u64_to_user_ptr(cmd->offs), offs, cmd->count * sizeof(*offs))) {
		cancel(pf, offs, cmd->count);
		rc = -EFAULT;
	}
	pmheap_free_vector(few, offs);
	return rc;
}

int pmheap_ioctl_cancel(struct pmheap_call *call)
{
	struct pmheap_cancel *cmd = call->arg;
	struct pmheap_file *pf = call_file(call);
	u64 few[16], *offs;
	int rc;

	if (cmd->flags || cmd->reserved)
		return -EOPNOTSUPP;
	if (pf->readonly)
		return -EACCES;
	if (!cmd->count || cmd->count > PMHEAP_VECTOR_MAX)
		return -EINVAL;
	offs = pmheap_copy_vector(few, sizeof(few), cmd->offs, cmd->count, sizeof(*offs));
	if (IS_ERR(offs))
		return PTR_ERR(offs);
	rc = cancel(pf, offs, cmd->count);
	pmheap_free_vector(few, offs);
	return rc;
}

/* ---- op vectors ---- */

/* The engine's op is the ABI's, with the name's address in its place: a vector is translated where it lies. */
#define SAME_AT(field) static_assert(offsetof(struct heap_op, field) == offsetof(struct pmheap_vector_op, field))
SAME_AT(kind);
SAME_AT(flags);
SAME_AT(off);
SAME_AT(value);
SAME_AT(expect);
SAME_AT(name);
SAME_AT(name_len);
SAME_AT(reserved);
static_assert(sizeof(struct heap_op) == sizeof(struct pmheap_vector_op));
static_assert(sizeof(u8 *) == sizeof(u64));
static_assert(HEAP_VECTOR_MAX == PMHEAP_VECTOR_MAX && HEAP_VECTOR_NAMES == PMHEAP_VECTOR_NAMES_MAX);

static bool has_name(const struct heap_op *op)
{
	return op->kind == HEAP_OP_NAME || op->kind == HEAP_OP_UNNAME;
}

/* The engine refuses a name of a wrong length without looking at it. */
static bool good_length(const struct heap_op *op)
{
	return op->name_len && op->name_len <= PMHEAP_NAME_LEN_MAX;
}

static u32 name_bytes(const struct heap_op *ops, u32 count)
{
	u32 bytes = 0, names = 0, i;

	for (i = 0; i < count && names < PMHEAP_VECTOR_NAMES_MAX; i++)
		if (has_name(&ops[i]) && good_length(&ops[i])) {
			bytes += ops[i].name_len;
			names++;
		}
	return bytes;
}

/*
 * Bring the names into one buffer. What is beyond the limit gets none: the engine refuses the vector at that
 * op, unless an earlier one is at fault.
 */
static int copy_names(struct heap_op *ops, u32 count, u8 *buf, u32 *failed)
{
	u32 names = 0, i;

	for (i = 0; i < count; i++) {
		const void __user *user = u64_to_user_ptr((u64)(uintptr_t)ops[i].name);

		if (!has_name(&ops[i]))
			continue;
		ops[i].name = NULL;
		if (!good_length(&ops[i]) || names == PMHEAP_VECTOR_NAMES_MAX)
			continue;
		names++;
		if (copy_from_user(buf, user, ops[i].name_len)) {
			*failed = i;
			return -EFAULT;
		}
		ops[i].name = buf;
		buf += ops[i].name_len;
	}
	return 0;
}

static int apply(struct pmheap_file *pf, struct heap_op *ops, u32 count, u32 *failed)
{
	struct heap_owner *owner;
	int rc;

	rc = pmheap_region_enter(pf->pool->region);
	if (rc)
		return rc;
	owner = pmheap_owner_get(pf);
	rc = IS_ERR(owner) ? PTR_ERR(owner) : heap_apply(owner, ops, count, failed);
	pmheap_region_exit(pf->pool->region);
	return rc;
}

static int apply_with_names(struct pmheap_file *pf, struct heap_op *ops, u32 count, u32 *failed)
{
	u32 bytes = name_bytes(ops, count);
	u8 *names = NULL;
	int rc;

	if (bytes) {
		names = kvmalloc(bytes, GFP_KERNEL_ACCOUNT);
		if (!names)
			return -ENOMEM;
	}
	rc = copy_names(ops, count, names, failed);
	if (!rc)
		rc = apply(pf, ops, count, failed);
	kvfree(names);
	return rc;
}

int pmheap_ioctl_apply(struct pmheap_call *call)
{
	struct pmheap_apply *cmd = call->arg;
	struct pmheap_file *pf = call_file(call);
	struct heap_op few[8], *ops;
	int rc;

	if (cmd->flags || cmd->reserved)
		return -EOPNOTSUPP;
	if (pf->readonly)
		return -EACCES;
	if (!cmd->count || cmd->count > PMHEAP_VECTOR_MAX)
		return -EINVAL;
	ops = pmheap_copy_vector(few, sizeof(few), cmd->ops, cmd->count, sizeof(*ops));
	if (IS_ERR(ops))
		return PTR_ERR(ops);
	/* A vector cannot be taken back: the answer for success goes out first. */
	cmd->failed = cmd->count;
	cmd->level = pf->pool->region->media.persist.level;
	rc = pmheap_reply(call);
	if (!rc) {
		rc = apply_with_names(pf, ops, cmd->count, &cmd->failed);
		if (rc && cmd->failed != cmd->count)
			pmheap_reply(call);
	}
	pmheap_free_vector(few, ops);
	return rc;
}

/* ---- looking ---- */

int pmheap_ioctl_object(struct pmheap_call *call)
{
	struct pmheap_object_info *cmd = call->arg;
	struct pmheap_file *pf = call_file(call);
	struct heap_object object;
	int rc;

	if (cmd->flags)
		return -EOPNOTSUPP;
	rc = pmheap_region_enter(pf->pool->region);
	if (rc)
		return rc;
	rc = heap_object(pf->pool->heap, cmd->off, &object);
	pmheap_region_exit(pf->pool->region);
	if (rc)
		return rc;
	cmd->off = object.off;
	cmd->bytes = object.size;
	cmd->type = object.type;
	cmd->state = object.state;
	return pmheap_reply(call);
}

int pmheap_ioctl_next(struct pmheap_call *call)
{
	struct pmheap_next *cmd = call->arg;
	struct pmheap_file *pf = call_file(call);
	struct heap_object object;
	int rc;

	if (cmd->flags)
		return -EOPNOTSUPP;
	rc = pmheap_region_enter(pf->pool->region);
	if (rc)
		return rc;
	rc = heap_next(pf->pool->heap, cmd->type, &cmd->cursor, &object);
	pmheap_region_exit(pf->pool->region);
	if (rc <= 0)
		return rc ?: -ENOENT;
	cmd->found_type = object.type;
	cmd->off = object.off;
	cmd->bytes = object.size;
	return pmheap_reply(call);
}

int pmheap_ioctl_name_get(struct pmheap_call *call)
{
	struct pmheap_name_get *cmd = call->arg;
	struct pmheap_file *pf = call_file(call);
	u8 name[PMHEAP_NAME_LEN_MAX];
	int rc;

	if (cmd->flags || cmd->reserved)
		return -EOPNOTSUPP;
	if (!cmd->name_len || cmd->name_len > sizeof(name))
		return -EINVAL;
	if (copy_from_user(name, u64_to_user_ptr(cmd->name), cmd->name_len))
		return -EFAULT;
	rc = pmheap_region_enter(pf->pool->region);
	if (rc)
		return rc;
	rc = heap_name_get(pf->pool->heap, name, cmd->name_len, &cmd->off);
	pmheap_region_exit(pf->pool->region);
	return rc ?: pmheap_reply(call);
}

int pmheap_ioctl_name_next(struct pmheap_call *call)
{
	struct pmheap_name_next *cmd = call->arg;
	struct pmheap_file *pf = call_file(call);
	u8 name[PMHEAP_OBJECT_NAME_MAX];
	u32 len;
	int rc;

	if (cmd->flags || cmd->reserved)
		return -EOPNOTSUPP;
	if (cmd->name_len < PMHEAP_NAME_LEN_MAX)
		return -EINVAL;
	rc = pmheap_region_enter(pf->pool->region);
	if (rc)
		return rc;
	rc = heap_name_next(pf->pool->heap, &cmd->cursor, name, &len, &cmd->off);
	pmheap_region_exit(pf->pool->region);
	if (rc <= 0)
		return rc ?: -ENOENT;
	if (copy_to_user(u64_to_user_ptr(cmd->name), name, len))
		return -EFAULT;
	cmd->name_len = len;
	return pmheap_reply(call);
}
