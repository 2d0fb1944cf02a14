# SPDX-License-Identifier: GPL-2.0-only
"""Rules of the commit protocol, each broken in one place: (name, file, what stands there, what to put there instead).

What stands there must be found exactly once, so that a rule that the code has moved away from is noticed. PROOFS tells of
mutants that nothing can notice, and why; they are counted as noticed.
"""

Rule = tuple[str, str, str, str]

RULES: list[Rule] = [
    ("trailer before words", "journal.c",
     """		for (j = 0; j < ARRAY_SIZE(c->now.word); j++)
			if (mask & 1 << j)
				persist_store64(h->p, at + j * 8, le64_to_cpu(c->now.word[j]));
		persist_store64(h->p, at + 56, trailer(&c->now));
""",
     """		persist_store64(h->p, at + 56, trailer(&c->now));
		for (j = 0; j < ARRAY_SIZE(c->now.word); j++)
			if (mask & 1 << j)
				persist_store64(h->p, at + j * 8, le64_to_cpu(c->now.word[j]));
"""),
    ("home words before the record", "journal.c",
     "	record_build(h, l, t, lines);\n", "	home_store(h, l, t);\n	record_build(h, l, t, lines);\n"),
    ("lane released before the fence", "journal.c",
     "	err = lane_fence(h, l);\n	if (err)\n		goto out;\n	if (l->other",
     "	port_mutex_unlock(&l->lock);\n	err = lane_fence(h, l);\n	port_mutex_lock(&l->lock);\n	if (err)\n"
     "		goto out;\n	if (l->other"),
    ("settled under the fence of the words", "journal.c",
     "	err = lane_fence(h, l);\n	if (err)\n		return err;\n	lane_stream(h, l, 0, l->generation, l->index);\n",
     "	lane_stream(h, l, 0, l->generation, l->index);\n"),
    ("settled names the record before", "journal.c",
     "	lane_stream(h, l, 0, l->generation, l->index);",
     "	lane_stream(h, l, 0, l->generation, l->index ? l->index - 1 : 0);"),
    ("no settling", "journal.c",
     "	lane_stream(h, l, 0, l->generation, l->index);\n	return lane_fence(h, l);", "	return 0;"),
    ("home lines not written back at a switch", "journal.c", "	lane_write_back(h, l);\n	l->half ^= 1;", "	l->half ^= 1;"),
    ("retired with the record of the switch", "journal.c",
     "	l->other = LANE_HOME_PENDING;", "	lane_stream(h, l, 1, l->generation - 1, 0);\n	l->other = LANE_RETIRE_PENDING;"),
    ("retired never written", "journal.c",
     "			lane_stream(h, l, 1, l->generation - 1, 0);\n			l->other = LANE_RETIRE_PENDING;",
     "			l->other = LANE_RETIRE_PENDING;"),
    ("a half used again before it is retired", "journal.c", "	if (l->other != LANE_REUSABLE) {", "	if (false) {"),
    ("index goes on after a switch", "journal.c", "	l->pos = 0;\n	l->index = 0;", "	l->pos = 0;"),
    ("generation stays after a switch", "journal.c", "	l->generation++;\n", ""),
    ("epoch not raised", "journal.c", "epoch_store(h, h->epoch + 1)", "epoch_store(h, h->epoch)"),
    ("a record's sum does not cover its lane", "journal.c", "record_crc(h->seed, l->nr, l->record", "record_crc(h->seed, 0, l->record"),
    ("settled ignored", "recover.c", "!settled(lh, w)", "true"),
    ("everything settled", "recover.c", "!settled(lh, w)", "false"),
    ("retired ignored", "recover.c", "	while (generation > retired && pos", "	while (pos"),
    ("versions ignored", "recover.c", "		if (ahead <= 0)\n			continue;\n		if (ahead > 1 ||", "		if ("),
    ("replay in no order", "recover.c", "	port_sort(r->line, r->nlines, sizeof(*r->line), line_order);\n", ""),
    ("user words of all records", "recover.c", "		newest_only(r);\n", ""),
    ("the newer half first", "recover.c",
     "	u32 older = record_generation(l->half[0].log) > record_generation(l->half[1].log);",
     "	u32 older = record_generation(l->half[0].log) < record_generation(l->half[1].log);"),
    ("records of any epoch", "recover.c", "(u32)w[1] != h->epoch || !lines", "!lines"),
    ("records without a sum", "recover.c", "	return record_crc(h->seed, lane, w, lines) == w[1] >> 32 ? lines : 0;", "	return lines;"),
    ("a block's lines begin at version 1 again", "blocks.c", "	*version = !err && line_sealed(h->seed, no, &l) ? le32_to_cpu(l.version) + 1 : 1;", "	*version = 1;"),
    ("tenure not raised", "chunks.c", "				  h->chunk[phys[got]].tenure + 1);",
     "				  h->chunk[phys[got]].tenure + !h->chunk[phys[got]].tenure);"),
    ("chunks not zeroed", "chunks.c", "		persist_stream_zero(h->p, off + at, step);\n", ""),
    ("a chunk is free before it is zero", "chunks.c",
     "	if (!err)\n		err = chunks_zero(h, c);\n", ""),
    ("scrub without the stripes", "scrub.c", "#define ALL_STRIPES ~0U", "#define ALL_STRIPES 0U"),
    ("scrub without the pool's head", "scrub.c",
     "	port_mutex_lock(&pool->head);\n	x->pool = pool;\n	return 0;\n}\n\n"
     "void scrub_release(struct scrub *x)\n{\n	if (!x->pool)\n		return;\n"
     "	port_mutex_unlock(&x->pool->head);\n",
     "	x->pool = pool;\n	return 0;\n}\n\nvoid scrub_release(struct scrub *x)\n{\n	if (!x->pool)\n"
     "		return;\n"),
]

_EPOCH = ("either fence makes a copy of the new epoch certain before its first record is written; there are two so that "
          "never both copies are in flight, should a power cut ruin the line that it meets")

PROOFS: dict[str, str] = {
    "mkfs.c format_stream: no heap_fence (2)": "until both superblocks are certain there is no promise; the fence keeps both from "
                                               "being in flight at once",
    "open.c super_heal: no heap_fence": "the copy that is made again was of no use before, and the other one is whole: cut off, "
                                        "the next attach makes it again",
    "journal.c epoch_store: no heap_fence": _EPOCH,
    "journal.c epoch_store: no heap_fence (2)": _EPOCH,
    "user words of all records": "a lane is locked until the words of its vector are settled, so of the records newer than "
                                 "`settled` only the newest has any; the rule is a second guard, against hostile logs",
    "retired ignored": "what a retired half holds is home and durable, so versions skip its lines; and of user words only "
                       "those of the lane's newest record are stored, which is in the other half, or settled",
}
