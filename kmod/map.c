// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of a pool: file offset = pool offset, at most its span. What the pool owns is mapped when it is
 * touched; the rest gives SIGBUS, and works once the pool has grown.
 *
 * DAX memory goes in as devmap entries of 2 MiB, or of 4 KiB where the mapping's edges or an earlier split
 * want it. There is no pfn_mkwrite: long-term pins would be refused. Emulated memory goes in as ordinary file
 * pages by the core.
 */
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/preempt.h>
#include <linux/sched/signal.h>

#include "pmheap_private.h"

static struct pmheap_pool *vma_pool(struct vm_area_struct *vma)
{
	struct pmheap_file *pf = vma->vm_file->private_data;

	return pf->pool;
}

/* Where on the medium the faulting page is. The map_lock keeps the answer true until it is let go. */
static int fault_lookup(struct pmheap_pool *pool, struct vm_fault *vmf, u64 *off)
{
	u64 page = vmf->pgoff;
	int rc;

	lockdep_assert_held(&pool->map_lock);
	if (pool->dead)
		return -ENODEV;
	rc = heap_pool_chunk(pool->heap, page / PMHEAP_PAGES_PER_CHUNK, off);
	*off += (page % PMHEAP_PAGES_PER_CHUNK) << PAGE_SHIFT;
	return rc;
}

static vm_fault_t dax_fault(struct vm_fault *vmf)
{
	struct pmheap_pool *pool = vma_pool(vmf->vma);
	struct pmheap_region *region = pool->region;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	u64 off;

	down_read(&pool->map_lock);
	if (!fault_lookup(pool, vmf, &off)) {
		ret = pmheap_insert_page(vmf, region->media.pfn + (off >> PAGE_SHIFT));
		atomic64_inc(&region->pte_faults);
	}
	up_read(&pool->map_lock);
	return ret;
}

static bool pmd_fits(struct vm_fault *vmf)
{
	struct vm_area_struct *vma = vmf->vma;
	unsigned long start = vmf->address & PMD_MASK;

	return start >= vma->vm_start && start + PMD_SIZE <= vma->vm_end &&
	       !((vmf->pgoff - (vmf->address >> PAGE_SHIFT)) % PMHEAP_PAGES_PER_CHUNK);
}

static vm_fault_t dax_huge_fault(struct vm_fault *vmf, pmheap_fault_size size)
{
	struct pmheap_pool *pool = vma_pool(vmf->vma);
	struct pmheap_region *region = pool->region;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	u64 off;

	BUILD_BUG_ON(PMD_SIZE != PMHEAP_CHUNK);
	if (!pmheap_fault_is_pmd(size) || !pmd_fits(vmf))
		return VM_FAULT_FALLBACK;
	down_read(&pool->map_lock);
	if (!fault_lookup(pool, vmf, &off)) {
		ret = pmheap_insert_pmd(vmf, region->media.pfn + (round_down(off, PMHEAP_CHUNK) >> PAGE_SHIFT));
		if (ret == VM_FAULT_NOPAGE)
			atomic64_inc(&region->pmd_faults);
	}
	up_read(&pool->map_lock);
	return ret;
}

/* The folio lock is taken under map_lock: pmheap_emulate_settle() waits for it after pool->dead is set. */
static vm_fault_t emulated_fault(struct vm_fault *vmf)
{
	struct pmheap_pool *pool = vma_pool(vmf->vma);
	struct pmheap_region *region = pool->region;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	u64 off;

	down_read(&pool->map_lock);
	if (!fault_lookup(pool, vmf, &off)) {
		vmf->page = pmheap_media_page(&region->media, off);
		get_page(vmf->page);
		lock_page(vmf->page);
		atomic64_inc(&region->pte_faults);
		ret = VM_FAULT_LOCKED;
	}
	up_read(&pool->map_lock);
	return ret;
}

static const struct vm_operations_struct dax_vm_ops = {
	.fault = dax_fault,
	.huge_fault = dax_huge_fault,
};

static const struct vm_operations_struct emulated_vm_ops = {
	.fault = emulated_fault,
};

int pmheap_pool_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct pmheap_file *pf = file->private_data;
	struct pmheap_pool *pool = pf->pool;
	struct pmheap_media *media = &pool->region->media;
	unsigned long pages = pool->span >> PAGE_SHIFT;

	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_pgoff > pages || vma_pages(vma) > pages - vma->vm_pgoff)
		return -EINVAL;
	if (READ_ONCE(pool->dead))
		return -ENODEV;
	if ((vma->vm_flags & VM_SYNC) && !media->map_sync)
		return -EOPNOTSUPP;
	if (pf->readonly)
		pmheap_vma_clear(vma, VM_MAYWRITE);
	/* A core dump would try every page of the span; what is in the pool outlives the process anyway. */
	pmheap_vma_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	vma->vm_ops = pmheap_media_emulated(media) ? &emulated_vm_ops : &dax_vm_ops;
	return 0;
}

/* ---- writing back what user space stored ---- */

static int between_chunks(struct pmheap_region *region)
{
	cond_resched();
	if (fatal_signal_pending(current))
		return -EINTR;
	return percpu_ref_is_dying(&region->live) ? -ENODEV : 0;
}

/*
 * Of the chunks in [off, end) write back those that are owned, or only look at them. `must`: one that is not
 * owned is an error.
 */
static int walk_range(struct pmheap_pool *pool, u64 off, u64 end, bool write, bool must)
{
	struct pmheap_media *media = &pool->region->media;
	u64 at, len;
	int rc;

	for (; off < end; off += len) {
		len = min(end - off, PMHEAP_CHUNK - off % PMHEAP_CHUNK);
		rc = heap_pool_chunk(pool->heap, off / PMHEAP_CHUNK, &at);
		if (rc && must)
			return -ENXIO;
		if (!rc && write)
			pmheap_media_writeback(media, at + off % PMHEAP_CHUNK, len);
		rc = between_chunks(pool->region);
		if (rc)
			return rc;
	}
	return 0;
}

/*
 * PMHEAP_PERSIST. Inside a call. Nothing is touched unless every range is right. A fence is for write-backs of
 * its own CPU.
 */
int pmheap_pool_persist(struct pmheap_pool *pool, const struct pmheap_range *ranges, u32 count)
{
	const struct pmheap_range *r;
	int rc = 0;

	for (r = ranges; r < ranges + count; r++)
		if (r->off > pool->span || r->len > pool->span - r->off)
			return -EINVAL;
	for (r = ranges; r < ranges + count && !rc; r++)
		rc = walk_range(pool, r->off, r->off + r->len, false, true);
	if (rc)
		return rc;
	migrate_disable();
	for (r = ranges; r < ranges + count && !rc; r++)
		rc = walk_range(pool, r->off, r->off + r->len, true, true);
	if (!rc)
		rc = persist_fence(&pool->region->media.persist);
	migrate_enable();
	return rc;
}

/* msync() and fsync(). */
int pmheap_pool_fsync(struct file *file, loff_t start, loff_t last, int datasync)
{
	struct pmheap_file *pf = file->private_data;
	struct pmheap_pool *pool = pf->pool;
	u64 end = min_t(u64, (u64)last + 1, pool->span);
	int rc;

	rc = pmheap_region_enter(pool->region);
	if (rc)
		return rc;
	migrate_disable();
	if (pool->region->media.persist.level >= PERSIST_MEMORY)
		rc = walk_range(pool, start, end, true, false);
	if (!rc)
		rc = persist_fence(&pool->region->media.persist);
	migrate_enable();
	pmheap_region_exit(pool->region);
	return rc;
}
