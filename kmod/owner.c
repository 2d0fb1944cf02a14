// SPDX-License-Identifier: GPL-2.0-only
/*
 * Owners of reservations: one an address space and pool.
 *
 * An owner ends, and gives back what it reserved, when its address space ends (death or exec; heard through an
 * mmu notifier, since the file may live on in a child), when the last file through which it reserved is
 * released, or with its region. Whoever takes it off pool->owners ends it.
 *
 * A link says that an owner uses a file. The look-up of a running call takes no lock and no reference: its
 * caller lives in the address space, holds the file, and is inside a call, so none of the three can happen
 * meanwhile.
 */
#include <linux/hashtable.h>
#include <linux/mmu_notifier.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "pmheap_private.h"

struct pmheap_owner {
	struct mmu_notifier notifier;	/* its mm is the key */
	struct pmheap_pool *pool;	/* a reference to the memory */
	struct heap_owner *heap;
	struct list_head on_pool;
	struct list_head links;
};

struct owner_link {
	struct hlist_node hash;		/* in links, by file and mm */
	struct list_head on_file;
	struct list_head on_owner;
	struct pmheap_file *file;
	struct mm_struct *mm;
	struct pmheap_owner *owner;
	struct rcu_head rcu;
};

static DEFINE_HASHTABLE(links, 10);
static DEFINE_SPINLOCK(links_lock);	/* writers of the table; readers use RCU */

static unsigned long link_key(const struct pmheap_file *file, const struct mm_struct *mm)
{
	return ((unsigned long)file / sizeof(*file)) ^ ((unsigned long)mm / L1_CACHE_BYTES);
}

static struct pmheap_owner *link_find(struct pmheap_file *file, struct mm_struct *mm)
{
	struct pmheap_owner *owner = NULL;
	struct owner_link *link;

	rcu_read_lock();
	hash_for_each_possible_rcu(links, link, hash, link_key(file, mm))
		if (link->file == file && link->mm == mm) {
			owner = link->owner;
			break;
		}
	rcu_read_unlock();
	return owner;
}

static void link_add(struct owner_link *link, struct pmheap_file *file, struct pmheap_owner *owner)
{
	lockdep_assert_held(&owner->pool->owners_lock);
	link->file = file;
	link->mm = owner->notifier.mm;
	link->owner = owner;
	list_add(&link->on_file, &file->links);
	list_add(&link->on_owner, &owner->links);
	spin_lock(&links_lock);
	hash_add_rcu(links, &link->hash, link_key(file, link->mm));
	spin_unlock(&links_lock);
}

static void link_remove(struct owner_link *link)
{
	lockdep_assert_held(&link->owner->pool->owners_lock);
	list_del(&link->on_file);
	list_del(&link->on_owner);
	spin_lock(&links_lock);
	hash_del_rcu(&link->hash);
	spin_unlock(&links_lock);
	kfree_rcu(link, rcu);
}

/* The caller has found it on the pool's list, and puts the notifier outside the lock. */
static void owner_end(struct pmheap_owner *owner)
{
	struct owner_link *link, *next;

	lockdep_assert_held(&owner->pool->owners_lock);
	list_del_init(&owner->on_pool);
	list_for_each_entry_safe(link, next, &owner->links, on_owner)
		link_remove(link);
	heap_owner_release(owner->heap);
	owner->heap = NULL;
}

static void owner_mm_release(struct mmu_notifier *notifier, struct mm_struct *mm)
{
	struct pmheap_owner *owner = container_of(notifier, struct pmheap_owner, notifier);
	bool mine;

	mutex_lock(&owner->pool->owners_lock);
	mine = !list_empty(&owner->on_pool);
	if (mine)
		owner_end(owner);
	mutex_unlock(&owner->pool->owners_lock);
	if (mine)
		mmu_notifier_put(&owner->notifier);
}

static void owner_free(struct mmu_notifier *notifier)
{
	struct pmheap_owner *owner = container_of(notifier, struct pmheap_owner, notifier);

	kref_put(&owner->pool->kref, pmheap_pool_free);
	kfree(owner);
}

static const struct mmu_notifier_ops owner_mm_ops = {
	.release = owner_mm_release,
	.free_notifier = owner_free,
};

static struct pmheap_owner *owner_make(struct pmheap_pool *pool)
{
	struct pmheap_owner *owner;
	int rc;

	owner = kzalloc(sizeof(*owner), GFP_KERNEL_ACCOUNT);
	if (!owner)
		return ERR_PTR(-ENOMEM);
	owner->pool = pool;
	INIT_LIST_HEAD(&owner->on_pool);
	INIT_LIST_HEAD(&owner->links);
	rc = heap_owner_create(pool->heap, &owner->heap);
	if (rc)
		goto free_owner;
	owner->notifier.ops = &owner_mm_ops;
	rc = mmu_notifier_register(&owner->notifier, current->mm);
	if (rc)
		goto release_heap;
	kref_get(&pool->kref);
	return owner;

release_heap:
	heap_owner_release(owner->heap);
free_owner:
	kfree(owner);
	return ERR_PTR(rc);
}

static struct pmheap_owner *owner_find(struct pmheap_pool *pool)
{
	struct pmheap_owner *owner;

	lockdep_assert_held(&pool->owners_lock);
	list_for_each_entry(owner, &pool->owners, on_pool)
		if (owner->notifier.mm == current->mm)
			return owner;
	return NULL;
}

/*
 * The first call of this address space through this file. Another thread may be as far as we are: then its
 * owner and its link count, and ours go.
 */
static struct pmheap_owner *owner_join(struct pmheap_file *file)
{
	struct pmheap_pool *pool = file->pool;
	struct pmheap_owner *owner, *made = NULL;
	struct owner_link *link;

	link = kzalloc(sizeof(*link), GFP_KERNEL_ACCOUNT);
	if (!link)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&pool->owners_lock);
	owner = owner_find(pool);
	if (!owner) {
		mutex_unlock(&pool->owners_lock);
		made = owner_make(pool);
		if (IS_ERR(made)) {
			kfree(link);
			return made;
		}
		mutex_lock(&pool->owners_lock);
		owner = owner_find(pool);
		if (!owner) {
			owner = made;
			made = NULL;
			list_add(&owner->on_pool, &pool->owners);
		}
	}
	if (!link_find(file, current->mm)) {
		link_add(link, file, owner);
		link = NULL;
	}
	mutex_unlock(&pool->owners_lock);
	kfree(link);
	if (made) {
		heap_owner_release(made->heap);
		mmu_notifier_put(&made->notifier);
	}
	return owner;
}

struct heap_owner *pmheap_owner_get(struct pmheap_file *file)
{
	struct pmheap_owner *owner;

	if (!current->mm)
		return ERR_PTR(-EINVAL);
	owner = link_find(file, current->mm);
	if (!owner)
		owner = owner_join(file);
	return IS_ERR(owner) ? ERR_CAST(owner) : owner->heap;
}

static void put_ended(struct list_head *ended)
{
	struct pmheap_owner *owner, *next;

	list_for_each_entry_safe(owner, next, ended, links) {
		list_del(&owner->links);
		mmu_notifier_put(&owner->notifier);
	}
}

/* The file is released. */
void pmheap_owner_leave(struct pmheap_file *file)
{
	struct pmheap_pool *pool = file->pool;
	struct owner_link *link, *next;
	struct pmheap_owner *owner;
	LIST_HEAD(ended);

	mutex_lock(&pool->owners_lock);
	list_for_each_entry_safe(link, next, &file->links, on_file) {
		owner = link->owner;
		link_remove(link);
		if (!list_empty(&owner->links))
			continue;
		owner_end(owner);
		list_add(&owner->links, &ended);
	}
	mutex_unlock(&pool->owners_lock);
	put_ended(&ended);
}

/* The region ends: no call is inside, but address spaces may be ending at the same time. */
void pmheap_owner_release_all(struct pmheap_pool *pool)
{
	struct pmheap_owner *owner, *next;
	LIST_HEAD(ended);

	mutex_lock(&pool->owners_lock);
	list_for_each_entry_safe(owner, next, &pool->owners, on_pool) {
		owner_end(owner);
		list_add(&owner->links, &ended);
	}
	mutex_unlock(&pool->owners_lock);
	put_ended(&ended);
}
