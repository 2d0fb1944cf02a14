# SPDX-License-Identifier: GPL-2.0-only
"""CRC32C over 64-bit words, without the inversion at the end: eight tables, one for each byte of a word."""

POLYNOMIAL = 0x82F63B78
START = 0xFFFFFFFF


def _tables() -> list[list[int]]:
    first = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)
        first.append(crc)
    tables = [first]
    for _ in range(7):
        tables.append([crc >> 8 ^ first[crc & 255] for crc in tables[-1]])
    return tables


TABLES = _tables()


def crc_words(crc: int, words) -> int:
    t0, t1, t2, t3, t4, t5, t6, t7 = TABLES
    for word in words:
        word ^= crc
        crc = (t7[word & 255] ^ t6[word >> 8 & 255] ^ t5[word >> 16 & 255] ^ t4[word >> 24 & 255]
               ^ t3[word >> 32 & 255] ^ t2[word >> 40 & 255] ^ t1[word >> 48 & 255] ^ t0[word >> 56])
    return crc
