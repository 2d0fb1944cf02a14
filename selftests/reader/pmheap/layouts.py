# SPDX-License-Identifier: GPL-2.0-only
"""The structs that lines hold: the struct tables of the document, field by field."""

import struct
from collections import namedtuple


class Layout:
    def __init__(self, form: str, fields: str):
        self._struct = struct.Struct("<" + form)
        self._type = namedtuple("Fields", fields)
        assert self._struct.size == 64

    def of(self, line: bytes):
        return self._type._make(self._struct.unpack(line))


SUPER = Layout("QIIQQQQIIII", "magic format reserved size compat ro_compat incompat uid gid version crc")
IDENTITY = Layout("16sIIQ24sII", "uuid mode label_len created reserved version crc")
GEOMETRY = Layout("IIIIIIQQQQII", "chunks front_pages pools lanes half_lines reserved "
                                  "pool_table chunk_table page_table lane_table version crc")
SLOT = Layout("B3sI48sII", "state reserved0 block reserved version crc")
CHUNK = Layout("BBHHHIIIIQQ16sII", "state kind type pool reserved0 logical tenure pages names "
                                   "birth death reserved version crc")
PAGE = Layout("BBBBHHIIII32sII", "kind class_ dist reserved type pool pages names logical tenure bits version crc")
POOL = Layout("BBHI16sQQQIIII", "role reserved0 pool flags uuid quota span home uid gid version crc")
MORE = Layout("IIII16s24sII", "mode name_len types name_root type_block reserved version crc")
PART = Layout("BBHI48sII", "role reserved0 pool reserved1 reserved version crc")
NAMES = Layout("BBHIII40sII", "role depth pool parent parent_slot reserved0 reserved version crc")
CHILDREN = Layout("48s8sII", "child reserved version crc")
NAME = Layout("QQB7s32sII", "off hash len reserved head version crc")


def le32s(data: bytes) -> tuple[int, ...]:
    return struct.unpack(f"<{len(data) // 4}I", data)


def zero(data: bytes) -> bool:
    return not any(data)
