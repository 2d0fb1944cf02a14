// SPDX-License-Identifier: GPL-2.0-only
/* Reading and showing values: sizes with K, M, G, T (powers of 1024), UUIDs, levels, names. */
#include <inttypes.h>
#include <string.h>

#include "tool.h"

static const char size_unit[] = "KMGT";

int parse_size(const char *text, uint64_t *bytes)
{
	const char *unit;
	uint64_t v = 0;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	for (; *text >= '0' && *text <= '9'; text++) {
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*text - '0'), &v))
			return -ERANGE;
	}
	if (*text) {
		unit = strchr(size_unit, *text >= 'a' ? *text - 'a' + 'A' : *text);
		if (!unit || text[1])
			return -EINVAL;
		if (__builtin_mul_overflow(v, 1ULL << (10 * (unit - size_unit + 1)), &v))
			return -ERANGE;
	}
	*bytes = v;
	return 0;
}

const char *show_size(uint64_t bytes, char buf[32])
{
	unsigned int unit = 0;
	uint64_t whole = bytes;

	if (bytes < 1024) {
		snprintf(buf, 32, "%" PRIu64, bytes);
		return buf;
	}
	while (whole >= 1024ULL * 1024 && unit < sizeof(size_unit) - 2) {
		whole /= 1024;
		unit++;
	}
	if (whole % 1024)
		snprintf(buf, 32, "%.1f%c", (double)whole / 1024, size_unit[unit]);
	else
		snprintf(buf, 32, "%" PRIu64 "%c", whole / 1024, size_unit[unit]);
	return buf;
}

const char *show_uuid(const uint8_t uuid[16], char buf[37])
{
	char *to = buf;
	int i;

	for (i = 0; i < 16; i++)
		to += snprintf(to, 4, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", uuid[i]);
	return buf;
}

const char *show_level(uint32_t level)
{
	static const char *const name[] = { "none", "cache", "memory", "device" };

	return level < sizeof(name) / sizeof(name[0]) ? name[level] : "?";
}

const char *show_bytes(const void *text, size_t len, char buf[TEXT_SHOWN])
{
	const unsigned char *byte = text;
	char *to = buf;
	size_t i;

	*to = '\0';
	for (i = 0; i < len && i < NAME_MAX_BYTES; i++)
		to += snprintf(to, 5, byte[i] < 0x20 || byte[i] >= 0x7f || byte[i] == '\\' ? "\\x%02x" : "%c", byte[i]);
	return buf;
}
