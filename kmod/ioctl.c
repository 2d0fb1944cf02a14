// SPDX-License-Identifier: GPL-2.0-only
/*
 * How commands come in: a table row a command, its size checked here, its argument copied here once; the
 * handler sees kernel memory only and answers with pmheap_reply().
 */
#include <linux/nospec.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "pmheap_private.h"

long pmheap_ioctl(const struct pmheap_command *table, u32 rows, u32 base, struct file *file, unsigned int cmd,
		  unsigned long user)
{
	u32 nr = _IOC_NR(cmd) - base;
	const struct pmheap_command *command;
	struct pmheap_call call;
	union pmheap_arg arg;
	u32 size;
	int rc;

	if (nr >= rows)
		return -ENOTTY;
	command = &table[array_index_nospec(nr, rows)];
	if (command->cmd != cmd)
		return -ENOTTY;

	call.file = file;
	call.arg = &arg;
	call.user = (void __user *)user;
	if (get_user(size, (u32 __user *)call.user))
		return -EFAULT;
	if (size < command->min_size)
		return -EINVAL;
	/* No future struct is that long; do not read on to find that out. */
	if (size > PAGE_SIZE)
		return -E2BIG;
	rc = copy_struct_from_user(&arg, command->size, call.user, size);
	if (rc)
		return rc;
	/* It may have changed since it was checked. */
	arg.size = size;
	call.size = min_t(u32, size, command->size);
	return command->run(&call);
}

int pmheap_reply(struct pmheap_call *call)
{
	return copy_to_user(call->user, call->arg, call->size) ? -EFAULT : 0;
}

void *pmheap_copy_vector(void *few, size_t room, u64 user, u32 count, size_t size)
{
	size_t bytes = array_size(count, size);
	void *vector = few;

	if (bytes > room)
		vector = kvmalloc(bytes, GFP_KERNEL_ACCOUNT);
	if (!vector)
		return ERR_PTR(-ENOMEM);
	if (copy_from_user(vector, u64_to_user_ptr(user), bytes)) {
		pmheap_free_vector(few, vector);
		return ERR_PTR(-EFAULT);
	}
	return vector;
}

void pmheap_free_vector(const void *few, const void *vector)
{
	if (vector != few)
		kvfree(vector);
}

int pmheap_copy_pool_name(char name[PMHEAP_POOL_NAME_SIZE], u64 user, u32 len)
{
	if (!len || len >= PMHEAP_POOL_NAME_SIZE)
		return -EINVAL;
	if (copy_from_user(name, u64_to_user_ptr(user), len))
		return -EFAULT;
	name[len] = 0;
	return strlen(name) == len ? 0 : -EINVAL;
}

char *pmheap_copy_path(u64 user, u32 len)
{
	char *path;

	if (!len || len > PMHEAP_PATH_LEN_MAX)
		return ERR_PTR(-EINVAL);
	path = memdup_user_nul(u64_to_user_ptr(user), len);
	if (!IS_ERR(path) && strlen(path) != len) {
		kfree(path);
		return ERR_PTR(-EINVAL);
	}
	return path;
}
