/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What differs between the kernels we run on, 6.1 and 6.12. No other file tests the version.
 */
#ifndef PMHEAP_COMPAT_H
#define PMHEAP_COMPAT_H

#include <linux/version.h>
#include <linux/blkdev.h>
#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/huge_mm.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/pfn_t.h>

/* ---- an exclusive open of a block device ---- */

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)

struct pmheap_bdev {
	struct block_device *bdev;
	fmode_t mode;
};

static inline int pmheap_bdev_open(struct pmheap_bdev *b, const char *path, bool write, void *holder)
{
	struct block_device *bdev;

	b->mode = FMODE_READ | FMODE_EXCL | (write ? FMODE_WRITE : 0);
	bdev = blkdev_get_by_path(path, b->mode, holder);
	if (IS_ERR(bdev))
		return PTR_ERR(bdev);
	b->bdev = bdev;
	return 0;
}

static inline void pmheap_bdev_close(struct pmheap_bdev *b)
{
	blkdev_put(b->bdev, b->mode);
	b->bdev = NULL;
}

#else

struct pmheap_bdev {
	struct block_device *bdev;
	struct file *file;
};

/*
 * No holder operations: the DAX holder hears of a removal earlier, before the memory goes; mark_dead comes
 * when there is nothing left to do.
 */
static inline int pmheap_bdev_open(struct pmheap_bdev *b, const char *path, bool write, void *holder)
{
	struct file *file;

	file = bdev_file_open_by_path(path, BLK_OPEN_READ | (write ? BLK_OPEN_WRITE : 0), holder, NULL);
	if (IS_ERR(file))
		return PTR_ERR(file);
	b->file = file;
	b->bdev = file_bdev(file);
	return 0;
}

static inline void pmheap_bdev_close(struct pmheap_bdev *b)
{
	bdev_fput(b->file);
	b->bdev = NULL;
}

#endif

/* ---- device nodes ---- */

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
typedef struct device pmheap_devnode_device;
#else
typedef const struct device pmheap_devnode_device;
#endif

/* ---- mapping ---- */

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline void pmheap_vma_set(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags |= flags;
}

static inline void pmheap_vma_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vma->vm_flags &= ~flags;
}
#else
static inline void pmheap_vma_set(struct vm_area_struct *vma, unsigned long flags)
{
	vm_flags_set(vma, flags);
}

static inline void pmheap_vma_clear(struct vm_area_struct *vma, unsigned long flags)
{
	vm_flags_clear(vma, flags);
}
#endif

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
typedef enum page_entry_size pmheap_fault_size;

static inline bool pmheap_fault_is_pmd(pmheap_fault_size size)
{
	return size == PE_SIZE_PMD;
}
#else
typedef unsigned int pmheap_fault_size;

static inline bool pmheap_fault_is_pmd(pmheap_fault_size size)
{
	return size == PMD_SHIFT - PAGE_SHIFT;
}
#endif

/* Without this the core does not let MAP_SYNC through to our mmap(). */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#define PMHEAP_FOPS_MMAP .mmap_supported_flags = MAP_SYNC
#else
#define PMHEAP_FOPS_MMAP .fop_flags = FOP_MMAP_SYNC
#endif

/*
 * DAX pages are inserted as devmap entries, which take no page reference; a free one has a count of 1.
 * Kernels after 6.12 change both, so nobody else knows.
 */
static inline vm_fault_t pmheap_insert_pmd(struct vm_fault *vmf, unsigned long pfn)
{
	return vmf_insert_pfn_pmd(vmf, __pfn_to_pfn_t(pfn, PFN_DEV | PFN_MAP), vmf->flags & FAULT_FLAG_WRITE);
}

static inline vm_fault_t pmheap_insert_page(struct vm_fault *vmf, unsigned long pfn)
{
	return vmf_insert_mixed(vmf->vma, vmf->address, __pfn_to_pfn_t(pfn, PFN_DEV | PFN_MAP));
}

static inline bool pmheap_dax_page_pinned(struct page *page)
{
	return page_ref_count(page) > 1;
}

#endif
