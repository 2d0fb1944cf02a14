// SPDX-License-Identifier: GPL-2.0-only
/* Writing JSON. See json.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "tool.h"

static bool json_first = true;	/* nothing stands before in this object or array */

static void json_quote(const void *p, size_t len)
{
	const unsigned char *byte = p;
	size_t i;

	putchar('"');
	for (i = 0; i < len; i++) {
		if (byte[i] == '"' || byte[i] == '\\')
			printf("\\%c", byte[i]);
		else if (byte[i] < 0x20 || byte[i] >= 0x7f)
			printf("\\u%04x", byte[i]);
		else
			putchar(byte[i]);
	}
	putchar('"');
}

static void json_key(const char *key)
{
	if (!json_first)
		putchar(',');
	json_first = false;
	if (key) {
		json_quote(key, strlen(key));
		putchar(':');
	}
}

void json_open(const char *key, char bracket)
{
	json_key(key);
	putchar(bracket);
	json_first = true;
}

void json_close(char bracket)
{
	putchar(bracket);
	json_first = false;
}

void json_end(void)
{
	putchar('\n');
	json_first = true;
}

void json_u64(const char *key, uint64_t v)
{
	json_key(key);
	printf("%" PRIu64, v);
}

void json_s64(const char *key, int64_t v)
{
	json_key(key);
	printf("%" PRId64, v);
}

void json_bool(const char *key, bool v)
{
	json_key(key);
	fputs(v ? "true" : "false", stdout);
}

void json_bytes(const char *key, const void *p, size_t len)
{
	json_key(key);
	json_quote(p, len);
}

void json_string(const char *key, const char *s)
{
	json_bytes(key, s, strlen(s));
}

void json_uuid(const char *key, const uint8_t uuid[16])
{
	char buf[37];

	json_string(key, show_uuid(uuid, buf));
}
