// SPDX-License-Identifier: GPL-2.0-only
/*
 * Signatures on what is to be formatted: regions of ours by the engine, file systems, RAIDs, encryption,
 * swap and partition tables by libblkid, and a few of persistent memory that libblkid does not know.
 */
#include <string.h>

#include <blkid/blkid.h>
#include <heap.h>

#include "file_media.h"
#include "signature.h"
#include "tool.h"

#define EDGE_BYTES (64U << 10)

static const struct {
	uint64_t off;
	const char *magic;
	const char *what;
} magics[] = {
	{ 0, "BTT_ARENA_INFO", "a block translation table (sector-mode namespace)" },
	{ 4096, "BTT_ARENA_INFO", "a block translation table (sector-mode namespace)" },
	{ 4096, "NVDIMM_PFN_INFO", "an fsdax namespace's page map" },
	{ 4096, "NVDIMM_DAX_INFO", "a devdax namespace's page map" },
	{ 0, "PMEMOBJ", "a libpmemobj pool" },
	{ 0, "PMEMBLK", "a libpmemblk pool" },
	{ 0, "PMEMLOG", "a libpmemlog pool" },
	{ 0, "PMEMPOOL", "a PMDK pool set's part" },
};

static int find_own(struct file_media *m, char *text)
{
	struct heap_info info;
	int rc = heap_probe(&m->p, &info);
	char uuid[37];

	if (!rc)
		snprintf(text, SIGNATURE_TEXT, "a pmheap region (%s%s%s)", show_uuid(info.uuid, uuid),
			 info.label[0] ? ", label " : "", info.label);
	else if (rc == -EUCLEAN || rc == -EOPNOTSUPP)
		snprintf(text, SIGNATURE_TEXT, "a pmheap region (%s)", pmheap_strerror(rc));
	else
		return 0;
	return 1;
}

static int find_magic(struct file_media *m, char *text)
{
	char found[16];
	size_t i, len;

	for (i = 0; i < sizeof(magics) / sizeof(magics[0]); i++) {
		len = strlen(magics[i].magic);
		if (persist_read(&m->p, found, magics[i].off, len) || memcmp(found, magics[i].magic, len) != 0)
			continue;
		snprintf(text, SIGNATURE_TEXT, "%s", magics[i].what);
		return 1;
	}
	return 0;
}

static int find_blkid(const char *path, char *text)
{
	blkid_probe pr = blkid_new_probe_from_filename(path);
	const char *type, *label = "";
	int rc, found = 0;

	if (!pr)
		return -EIO;
	blkid_probe_enable_superblocks(pr, 1);
	blkid_probe_set_superblocks_flags(pr, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL | BLKID_SUBLKS_BADCSUM);
	blkid_probe_enable_partitions(pr, 1);
	while (!(rc = blkid_do_probe(pr)) && !found) {
		blkid_probe_lookup_value(pr, "LABEL", &label, NULL);
		if (!blkid_probe_lookup_value(pr, "TYPE", &type, NULL)) {
			snprintf(text, SIGNATURE_TEXT, "%s%s%.64s", type, *label ? ", label " : "", label);
			found = 1;
		} else if (!blkid_probe_lookup_value(pr, "PTTYPE", &type, NULL)) {
			snprintf(text, SIGNATURE_TEXT, "a %s partition table", type);
			found = 1;
		}
	}
	blkid_free_probe(pr);
	return found || rc >= 0 ? found : -EIO;
}

/* 1 yes, 0 no, or -errno. */
static int is_zero(FILE *f, long off, int whence)
{
	static char byte[EDGE_BYTES];
	size_t n, i;

	if (fseek(f, off, whence))
		return -errno;
	n = fread(byte, 1, sizeof(byte), f);
	if (ferror(f))
		return -EIO;
	for (i = 0; i < n; i++) {
		if (byte[i])
			return 0;
	}
	return 1;
}

/* To the last byte of the file, which may be no multiple of a page, or less than one. */
static int find_data(const char *path, char *text)
{
	FILE *f = fopen(path, "re");
	int rc;

	if (!f)
		return -errno;
	rc = is_zero(f, 0, SEEK_SET);
	if (rc == 1 && !feof(f))
		rc = is_zero(f, -(long)EDGE_BYTES, SEEK_END);
	fclose(f);
	if (rc)
		return rc < 0 ? rc : 0;
	snprintf(text, SIGNATURE_TEXT, "data of no known kind");
	return 1;
}

int signature_find(const char *path, bool any_data, char text[SIGNATURE_TEXT])
{
	struct file_media *m;
	int rc;

	rc = file_media_view(path, &m);
	if (rc == -ENODEV && any_data)		/* it is shorter than a page */
		return find_data(path, text);
	if (rc)
		return rc;
	rc = find_own(m, text);
	if (!rc)
		rc = find_magic(m, text);
	if (!rc)
		rc = find_blkid(path, text);
	if (!rc && any_data)
		rc = find_data(path, text);
	file_media_close(m);
	return rc;
}
