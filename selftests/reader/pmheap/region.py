# SPDX-License-Identifier: GPL-2.0-only
"""A region, read from start to end."""

from . import superblock
from .blocks import Blocks
from .chunks import OWNED, Chunks
from .damages import Damages
from .image import Image
from .journal import Journal
from .lines import Lines
from .names import Names
from .objects import Objects
from .pages import Pages
from .pools import DYING, Pools


class Region:
    """Raises Unreadable when there is none."""

    def __init__(self, image: Image):
        self.damages = Damages()
        copy = superblock.find(image, self.damages)
        self.geometry, self.epoch = copy.geometry, copy.epoch
        self.lines = Lines(image, copy.seed, self.damages)
        superblock.check(copy, self.lines)
        self.journal = Journal(self.lines, self.geometry, self.epoch)
        self.journal.replay()
        self.chunks = Chunks(self.lines, self.geometry)
        pages = Pages(self.lines, self.chunks, bool(copy.super.ro_compat & superblock.RO_COMPAT_HELD))
        blocks = Blocks(self.lines, pages)
        self.pools = Pools(self.lines, self.geometry, blocks, bool(copy.super.ro_compat & superblock.RO_COMPAT_HEADS))
        self.objects: dict[int, Objects] = {}
        self.names: dict[int, Names] = {}
        for slot, pool in self.pools.live.items():
            self.objects[slot] = Objects(pool, self.chunks, pages)
            self.names[slot] = Names(pool, blocks, self.objects[slot])
        self._check_owners(blocks)

    def _check_owners(self, blocks: Blocks) -> None:
        for number, chunk in enumerate(self.chunks.table):
            if chunk and chunk.state == OWNED:
                self.damages.law(self.pools.in_use(chunk.pool), "chunk: owner", self.geometry.chunk_line(number))
        for number, slot in blocks.unclaimed():
            dying = slot < len(self.pools.states) and self.pools.states[slot] == DYING
            self.damages.law(dying, "block: no owner", blocks.where(number))

    @property
    def used_lines(self) -> list[int]:
        """Numbers of the lines that mean something."""
        return sorted(self.lines.used | self.journal.used)

    def facts(self) -> list[str]:
        objects = sorted((slot, item.off, item.size, item.type) for slot, found in self.objects.items()
                         for item in found.by_off.values())
        names = sorted((slot, off, name.hex()) for slot, directory in self.names.items()
                       for name, off in directory.found)
        return [f"damaged {int(bool(self.damages))}",
                f"image {self.lines.image.digest():08x}",
                *("object {} {} {} {}".format(*item) for item in objects),
                *("name {} {} {}".format(*item) for item in names),
                f"used {sum(size for _, _, size, _ in objects)}",
                f"free {sum(found.free for found in self.objects.values())}",
                f"objects {len(objects)}",
                f"names {len(names)}",
                "chunks {} {} {} {} {}".format(*self.chunks.states())]
