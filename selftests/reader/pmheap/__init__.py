# SPDX-License-Identifier: GPL-2.0-only
"""A reader of the media format, written from Documentation/format.rst and from nothing else.

It shares no code and no header with the engine: where the two disagree about an image, one of them or the
document is wrong.
"""
