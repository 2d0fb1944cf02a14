/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writing JSON as it comes. Keys are plain; the key is NULL inside an array. Byte strings (names may hold any
 * byte) are written one character a byte, U+0000 to U+00FF: as Latin-1 they give the bytes back.
 */
#ifndef PMHEAP_JSON_H
#define PMHEAP_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void json_open(const char *key, char bracket);	/* '{' or '[' */
void json_close(char bracket);			/* '}' or ']' */
void json_end(void);				/* newline after the outermost close */
void json_u64(const char *key, uint64_t v);
void json_s64(const char *key, int64_t v);
void json_bool(const char *key, bool v);
void json_bytes(const char *key, const void *p, size_t len);
void json_string(const char *key, const char *s);
void json_uuid(const char *key, const uint8_t uuid[16]);

#endif
