// SPDX-License-Identifier: MIT
/*
 * CRC32C, one 8-byte word at a time, for port.h: the CPU's instruction where it has one, else a table of
 * eight times 256 entries that is made at the first use.
 */
#include <port.h>

#define CRC32C_POLY 0x82f63b78U		/* reflected */

static u32 crc32c_table[8][256];
static pthread_once_t crc32c_once = PTHREAD_ONCE_INIT;

static void crc32c_make_table(void)
{
	u32 i, j, crc;

	for (i = 0; i < 256; i++) {
		for (crc = i, j = 0; j < 8; j++)
			crc = (crc >> 1) ^ (crc & 1 ? CRC32C_POLY : 0);
		crc32c_table[0][i] = crc;
	}
	for (i = 0; i < 256; i++) {
		for (j = 1; j < 8; j++) {
			crc = crc32c_table[j - 1][i];
			crc32c_table[j][i] = (crc >> 8) ^ crc32c_table[0][crc & 0xff];
		}
	}
}

static u32 crc32c_by_table(u32 crc, u64 word)
{
	u32 out = 0, i;

	pthread_once(&crc32c_once, crc32c_make_table);
	word ^= crc;
	for (i = 0; i < 8; i++, word >>= 8)
		out ^= crc32c_table[7 - i][word & 0xff];
	return out;
}

#if defined(__x86_64__)

#include "cpu.h"

#define CPU1_C_SSE4_2 (1U << 20)

static bool crc32c_detect(void)
{
	return cpu_leaf(1).c & CPU1_C_SSE4_2;
}

static u32 crc32c_by_cpu(u32 crc, u64 word)
{
	u64 wide = crc;

	asm("crc32q %1, %0" : "+r" (wide) : "rm" (word));
	return (u32)wide;
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1UL << 7)
#endif

static bool crc32c_detect(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

static u32 crc32c_by_cpu(u32 crc, u64 word)
{
	asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %1" : "+r" (crc) : "r" (word));
	return crc;
}

#else

static bool crc32c_detect(void)
{
	return false;
}

static u32 crc32c_by_cpu(u32 crc, u64 word)
{
	return crc32c_by_table(crc, word);
}

#endif

u32 port_crc32c_word(u32 crc, u64 word)
{
	static int found;	/* 0 not asked yet, 1 table, 2 instruction; asking twice does no harm */
	int by = __atomic_load_n(&found, __ATOMIC_RELAXED);

	if (unlikely(!by)) {
		by = crc32c_detect() ? 2 : 1;
		__atomic_store_n(&found, by, __ATOMIC_RELAXED);
	}
	return likely(by == 2) ? crc32c_by_cpu(crc, word) : crc32c_by_table(crc, word);
}
