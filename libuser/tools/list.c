// SPDX-License-Identifier: GPL-2.0-only
/* pmheap list, pmheap info: regions and their pools. */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <heap.h>

#include "file_media.h"
#include "json.h"
#include "tool.h"

static void region_to_json(const struct region_info *info)
{
	char name[32];

	snprintf(name, sizeof(name), "pmheap%d", info->number);
	json_string("region", info->number < 0 ? "" : name);
	json_string("source", info->source);
	json_uuid("uuid", info->uuid);
	json_string("label", info->label);
	json_u64("bytes", info->bytes);
	json_string("level", show_level(info->level));
	json_u64("mode", info->mode);
	json_u64("uid", info->uid);
	json_u64("gid", info->gid);
	json_u64("chunks", info->chunks);
	json_u64("chunks_free", info->chunks_free);
	json_u64("pools", info->pools);
	json_u64("pools_max", info->pools_max);
	json_u64("lanes", info->lanes);
	json_u64("epoch", info->epoch);
	json_u64("replayed", info->replayed);
	json_u64("damaged", info->damaged);
	json_s64("numa_node", info->numa_node);
	json_bool("readonly", info->readonly);
	json_bool("emulated", info->emulated);
}

static void pool_to_json(const struct pool_info *info)
{
	json_string("pool", info->name);
	json_uuid("uuid", info->uuid);
	json_u64("quota", info->quota);
	json_u64("span", info->span);
	json_u64("home", info->home);
	json_u64("owned", info->owned);
	json_u64("mode", info->mode);
	json_u64("uid", info->uid);
	json_u64("gid", info->gid);
	json_u64("opens", info->opens);
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
	return atoi((*a)->d_name + strlen("pmheap")) - atoi((*b)->d_name + strlen("pmheap"));
}

static int is_region_node(const struct dirent *entry)
{
	return !strncmp(entry->d_name, "pmheap", 6) && entry->d_name[6] >= '0' && entry->d_name[6] <= '9';
}

static void list_region(const struct tool *t, const struct region_info *info)
{
	char size[32], free[32], uuid[37], label[TEXT_SHOWN];

	if (t->json) {
		json_open(NULL, '{');
		region_to_json(info);
		json_close('}');
		return;
	}
	printf("pmheap%-4d %8s %8s %-7s %5u  %s  %-16s %s\n", info->number, show_size(info->bytes, size),
	       show_size(info->chunks_free * CHUNK_BYTES, free), show_level(info->level), info->pools,
	       show_uuid(info->uuid, uuid), info->source, show_bytes(info->label, strlen(info->label), label));
}

static int list_regions(const struct tool *t)
{
	struct region_info info;
	struct dirent **entries;
	struct region *r;
	int n, i, rc, code = EXIT_DONE;

	n = scandir("/dev", &entries, is_region_node, by_number);
	if (n < 0)
		return failed(t, "/dev", -errno);
	if (t->json) {
		json_open(NULL, '{');
		json_open("regions", '[');
	} else if (n) {
		printf("%-10s %8s %8s %-7s %5s  %-36s  %-16s %s\n", "REGION", "SIZE", "FREE", "LEVEL", "POOLS", "UUID",
		       "DEVICE", "LABEL");
	}
	for (i = 0; i < n; i++) {
		rc = region_open(entries[i]->d_name, REGION_RDONLY, &r);
		if (!rc) {
			rc = r->backend->region_info(r, &info);
			region_close(r);
		}
		if (!rc)
			list_region(t, &info);
		else if (rc != -ENOENT && rc != -ENODEV)	/* it went away meanwhile */
			code = failed(t, entries[i]->d_name, rc);
		free(entries[i]);
	}
	free(entries);
	if (t->json) {
		json_close(']');
		json_close('}');
		json_end();
	}
	return code;
}

static void list_pool(const struct tool *t, const struct pool_info *info)
{
	char owned[32], quota[32], span[32], name[TEXT_SHOWN];

	if (t->json) {
		json_open(NULL, '{');
		pool_to_json(info);
		json_close('}');
		return;
	}
	printf("%-24s %8s %8s %8s %04o %6u %6u %5u\n", show_bytes(info->name, strlen(info->name), name),
	       show_size(info->owned, owned), info->quota ? show_size(info->quota, quota) : "-",
	       show_size(info->span, span), info->mode, info->uid, info->gid, info->opens);
}

static int list_pools(const struct tool *t, const char *spelling)
{
	struct pool_info info;
	struct region *r;
	uint64_t cursor = 0;
	int rc;

	if (open_region(t, spelling, &r))
		return EXIT_FAILED;
	if (t->json) {
		json_open(NULL, '{');
		json_open("pools", '[');
	} else {
		printf("%-24s %8s %8s %8s %4s %6s %6s %5s\n", "POOL", "OWNED", "QUOTA", "SPAN", "MODE", "UID", "GID",
		       "OPENS");
	}
	while (!(rc = r->backend->pool_next(r, &cursor, &info)))
		list_pool(t, &info);
	region_close(r);
	if (t->json) {
		json_close(']');
		json_close('}');
		json_end();
	}
	return rc == -ENOENT ? EXIT_DONE : failed(t, spelling, rc);
}

int run_list(struct tool *t)
{
	return t->nargs ? list_pools(t, t->args[0]) : list_regions(t);
}

static void show_region(const struct region_info *info)
{
	char a[37], b[32], label[TEXT_SHOWN];

	printf("device    %s%s%s\n", info->source, info->emulated ? " (volatile)" : "",
	       info->readonly ? " (read-only)" : "");
	printf("uuid      %s\n", show_uuid(info->uuid, a));
	printf("label     %s\n", show_bytes(info->label, strlen(info->label), label));
	printf("size      %s (%" PRIu64 " bytes)\n", show_size(info->bytes, a), info->bytes);
	printf("free      %s in %u of %u chunks\n", show_size(info->chunks_free * CHUNK_BYTES, b), info->chunks_free,
	       info->chunks);
	printf("level     %s\n", show_level(info->level));
	printf("owner     %u:%u, mode %04o\n", info->uid, info->gid, info->mode);
	printf("pools     %u of %u\n", info->pools, info->pools_max);
	printf("log       %u lanes, epoch %" PRIu64 ", %u records replayed\n", info->lanes, info->epoch,
	       info->replayed);
	printf("damaged   %u\n", info->damaged);
	if (info->numa_node >= 0)
		printf("numa      %d\n", info->numa_node);
}

static void show_pool(const struct pool_info *info)
{
	char a[37], name[TEXT_SHOWN];

	printf("pool      %s\n", show_bytes(info->name, strlen(info->name), name));
	printf("uuid      %s\n", show_uuid(info->uuid, a));
	printf("owned     %s\n", show_size(info->owned, a));
	printf("quota     %s\n", info->quota ? show_size(info->quota, a) : "none");
	printf("span      %s\n", show_size(info->span, a));
	if (info->home)
		printf("home      0x%" PRIx64 "\n", info->home);
	printf("owner     %u:%u, mode %04o\n", info->uid, info->gid, info->mode);
	printf("opens     %u\n", info->opens);
}

/* A device that is not attached, or an image: what its superblock says. */
static int probe_info(const char *path, struct region_info *info)
{
	struct file_media *m;
	struct heap_info k;
	int rc;

	rc = file_media_view(path, &m);
	if (rc)
		return rc;
	rc = heap_probe(&m->p, &k);
	file_media_close(m);
	if (rc)
		return rc;
	*info = (struct region_info){
		.bytes = k.size, .epoch = k.epoch, .mode = k.mode, .uid = k.uid, .gid = k.gid, .chunks = k.chunks,
		.pools_max = k.pools_max, .lanes = k.lanes, .numa_node = -1, .number = -1,
	};
	memcpy(info->uuid, k.uuid, sizeof(info->uuid));
	memcpy(info->label, k.label, sizeof(info->label) - 1);
	strncpy(info->source, path, sizeof(info->source) - 1);
	return 0;
}

static void probe_show(const struct region_info *info)
{
	char a[37], label[TEXT_SHOWN];

	printf("device    %s (not attached)\n", info->source);
	printf("uuid      %s\n", show_uuid(info->uuid, a));
	printf("label     %s\n", show_bytes(info->label, strlen(info->label), label));
	printf("size      %s (%" PRIu64 " bytes)\n", show_size(info->bytes, a), info->bytes);
	printf("owner     %u:%u, mode %04o\n", info->uid, info->gid, info->mode);
}

static int info_probe(const struct tool *t, const char *path)
{
	struct region_info info;
	int rc = probe_info(path, &info);

	if (rc)
		return file_failed(t, path, rc);
	if (t->json) {
		json_open(NULL, '{');
		json_string("source", info.source);
		json_uuid("uuid", info.uuid);
		json_string("label", info.label);
		json_u64("bytes", info.bytes);
		json_u64("mode", info.mode);
		json_u64("uid", info.uid);
		json_u64("gid", info.gid);
		json_bool("attached", false);
		json_close('}');
		json_end();
	} else {
		probe_show(&info);
	}
	return EXIT_DONE;
}

static int info_region(const struct tool *t, const char *spelling)
{
	struct region_info info;
	struct region *r;
	int rc;

	if (open_region(t, spelling, &r))
		return EXIT_FAILED;
	rc = r->backend->region_info(r, &info);
	region_close(r);
	if (rc)
		return failed(t, spelling, rc);
	if (t->json) {
		json_open(NULL, '{');
		region_to_json(&info);
		json_close('}');
		json_end();
	} else {
		show_region(&info);
	}
	return EXIT_DONE;
}

static int info_pool(const struct tool *t, const char *spelling, const char *pool)
{
	struct pool_info info;
	struct region *r;
	uint64_t cursor = 0;
	int rc;

	if (open_region(t, spelling, &r))
		return EXIT_FAILED;
	do {
		rc = r->backend->pool_next(r, &cursor, &info);
	} while (!rc && strcmp(info.name, pool) != 0);
	region_close(r);
	if (rc)
		return pool_failed(t, spelling, pool, rc);
	if (t->json) {
		json_open(NULL, '{');
		pool_to_json(&info);
		json_close('}');
		json_end();
	} else {
		show_pool(&info);
	}
	return EXIT_DONE;
}

/* A device or an image, and not a region: the spellings of those hold a colon or begin alike. */
static bool is_path(const char *text)
{
	const char *slash = strchr(text, '/'), *colon = strchr(text, ':');

	return slash && (!colon || slash < colon) && strncmp(text, CONTROL_DEVICE, strlen(CONTROL_DEVICE)) != 0;
}

int run_info(struct tool *t)
{
	if (t->nargs == 2)
		return info_pool(t, t->args[0], t->args[1]);
	if (is_path(t->args[0]))
		return info_probe(t, t->args[0]);
	return info_region(t, t->args[0]);
}
