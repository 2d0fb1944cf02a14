// SPDX-License-Identifier: GPL-2.0-only
/* Op vectors, rule by rule: what is refused, for which op, and that a refused vector does nothing. */
#include "fixture.h"

/* One pool with an object of each state. */
struct field {
	struct pmheap *h;
	uint64_t res, pub, gone, named;		/* offsets; 128 bytes each */
	uint64_t *word;				/* pub's */
};

static struct field field_new(void)
{
	struct field f = { .h = fresh(POOL, 0) };

	f.word = published_words(f.h, 16, &f.pub);
	f.res = reserved(f.h, 128);
	f.gone = published(f.h, 128);
	f.named = published(f.h, 128);
	check_rc(0, pmheap_name_set(f.h, "named", 5, f.named, 0));
	check_rc(0, pmheap_free(f.h, f.gone));
	return f;
}

TEST(publish_takes_only_what_the_caller_reserved)
{
	struct field f = field_new();
	const uint64_t bad[] = { 0, 1, f.pub, f.gone, f.res + 16, f.res + 1, f.pub + 16, stat_of(f.h).span - 16,
				 stat_of(f.h).span, 1ULL << 63, f.res | 1ULL << 63, UINT64_MAX, UINT64_MAX - 15 };

	for (unsigned int i = 0; i < COUNT(bad); i++) {
		apply_refused(f.h, -EINVAL, 0, op_publish(bad[i]));
		apply_refused(f.h, -EINVAL, 1, op_publish(f.res), op_publish(bad[i]));
		apply_refused(f.h, -EINVAL, 0, op_publish(bad[i]), op_publish(f.res));
		check_refused(f.h, -EINVAL, pmheap_publish(f.h, bad[i]));
	}
	apply(f.h, op_publish(f.res));
	apply_refused(f.h, -EINVAL, 0, op_publish(f.res));
	finish(f.h, POOL);
}

TEST(free_takes_only_the_exact_start_of_a_published_object)
{
	struct field f = field_new();
	uint64_t huge = published(f.h, 3 * CHUNK);
	const uint64_t bad[] = { 0, 1, f.res, f.gone, f.pub + 1, f.pub + 8, f.pub + 16, huge + 16, huge + 4096,
				 huge + CHUNK, stat_of(f.h).span, f.pub | 1ULL << 63, UINT64_MAX, CHUNK - 16 };

	for (unsigned int i = 0; i < COUNT(bad); i++) {
		apply_refused(f.h, -EINVAL, 0, op_free(bad[i]));
		apply_refused(f.h, -EINVAL, 1, op_free(f.pub), op_free(bad[i]));
		if (bad[i])
			check_refused(f.h, -EINVAL, pmheap_free(f.h, bad[i]));
	}
	apply(f.h, op_free(f.pub), op_free(huge));
	apply_refused(f.h, -EINVAL, 0, op_free(f.pub));
	finish(f.h, POOL);
}

TEST(library_free_of_offset_0_is_a_no_op)
{
	struct field f = field_new();

	check_refused(f.h, 0, pmheap_free(f.h, 0));
	finish(f.h, POOL);
}

TEST(an_object_stands_in_one_publish_or_free_only)
{
	struct field f = field_new();

	apply_refused(f.h, -EINVAL, 1, op_publish(f.res), op_publish(f.res));
	apply_refused(f.h, -EINVAL, 1, op_free(f.pub), op_free(f.pub));
	apply_refused(f.h, -EINVAL, 1, op_publish(f.res), op_free(f.res));
	apply_refused(f.h, -EINVAL, 3, op_free(f.pub), op_publish(f.res), op_store(f.named, 1), op_free(f.pub));
	finish(f.h, POOL);
}

TEST(words_lie_in_objects_that_are_published_or_ones_own_reserved)
{
	struct field f = field_new();
	uint64_t usable = object_of(f.h, f.pub).size;
	const uint64_t bad[] = { 0, 8, f.gone, f.gone + 8, stat_of(f.h).span - 8, stat_of(f.h).span, 1ULL << 63,
				 UINT64_MAX - 7, CHUNK - 8 };

	for (unsigned int i = 0; i < COUNT(bad); i++) {
		apply_refused(f.h, -EINVAL, 0, op_store(bad[i], 1));
		apply_refused(f.h, -EINVAL, 0, op_add(bad[i], 1));
		apply_refused(f.h, -EINVAL, 0, op_compare(bad[i], 0));
		apply_refused(f.h, -EINVAL, 1, op_store(f.pub, 9), op_store(bad[i], 1));
	}
	check_eq(0, f.word[0]);
	apply(f.h, op_store(f.pub, 1), op_store(f.pub + usable - 8, 2), op_store(f.res, 3), op_add(f.res + 8, 4));
	check_eq(1, f.word[0]);
	check_eq(2, f.word[usable / 8 - 1]);
	check_eq(3, *(uint64_t *)pmheap_ptr(f.h, f.res));
	finish(f.h, POOL);
}

TEST(words_are_8_byte_aligned)
{
	struct field f = field_new();

	for (unsigned int by = 1; by < 8; by++) {
		apply_refused(f.h, -EINVAL, 0, op_store(f.pub + by, 1));
		apply_refused(f.h, -EINVAL, 0, op_add(f.pub + by, 1));
		apply_refused(f.h, -EINVAL, 0, op_compare(f.pub + by, 0));
	}
	finish(f.h, POOL);
}

TEST(words_of_an_object_that_the_vector_frees_are_EINVAL_and_the_later_op_is_at_fault)
{
	struct field f = field_new();

	apply_refused(f.h, -EINVAL, 1, op_free(f.pub), op_store(f.pub, 1));
	apply_refused(f.h, -EINVAL, 1, op_store(f.pub, 1), op_free(f.pub));
	apply_refused(f.h, -EINVAL, 1, op_free(f.pub), op_add(f.pub + 8, 1));
	apply_refused(f.h, -EINVAL, 1, op_free(f.pub), op_compare(f.pub + 8, 0));
	apply_refused(f.h, -EINVAL, 2, op_store(f.named, 1), op_compare(f.pub, 0), op_free(f.pub));
	finish(f.h, POOL);
}

TEST(words_of_an_object_that_the_vector_publishes_are_fine_in_any_order)
{
	struct field f = field_new();
	uint64_t second = reserved(f.h, 128);

	apply(f.h, op_publish(f.res), op_store(f.res, 5));
	apply(f.h, op_store(second + 8, 6), op_publish(second));
	check_eq(5, *(uint64_t *)pmheap_ptr(f.h, f.res));
	check_eq(6, *(uint64_t *)pmheap_ptr(f.h, second + 8));
	finish(f.h, POOL);
}

TEST(a_word_stands_in_one_compare_and_one_change_only)
{
	struct field f = field_new();

	apply_refused(f.h, -EINVAL, 1, op_store(f.pub, 1), op_store(f.pub, 2));
	apply_refused(f.h, -EINVAL, 1, op_store(f.pub, 1), op_add(f.pub, 2));
	apply_refused(f.h, -EINVAL, 1, op_add(f.pub, 1), op_add(f.pub, 2));
	apply_refused(f.h, -EINVAL, 1, op_add(f.pub, 1), op_store(f.pub, 2));
	apply_refused(f.h, -EINVAL, 1, op_compare(f.pub, 0), op_compare(f.pub, 0));
	apply_refused(f.h, -EINVAL, 2, op_compare(f.pub, 0), op_store(f.pub, 1), op_compare(f.pub, 0));
	apply(f.h, op_compare(f.pub, 0), op_store(f.pub, 1));
	apply(f.h, op_add(f.pub, 41), op_compare(f.pub, 1));
	check_eq(42, f.word[0]);
	finish(f.h, POOL);
}

TEST(compare_judges_the_state_before_the_vector)
{
	struct field f = field_new();

	apply(f.h, op_store(f.pub, 7));
	apply(f.h, op_store(f.pub, 8), op_compare(f.pub, 7));
	apply_refused(f.h, -EAGAIN, 1, op_store(f.pub, 9), op_compare(f.pub, 9));
	check_eq(8, f.word[0]);
	finish(f.h, POOL);
}

TEST(compare_mismatch_is_EAGAIN_names_the_op_and_does_nothing)
{
	struct field f = field_new();

	apply_refused(f.h, -EAGAIN, 0, op_compare(f.pub, 1));
	apply_refused(f.h, -EAGAIN, 3, op_publish(f.res), op_free(f.pub), op_store(f.named, 5),
		      op_compare(f.named + 8, 0xfeedULL), op_name(f.res, "n", 0));
	apply_refused(f.h, -EAGAIN, 1, op_compare(f.pub, 0), op_compare(f.pub + 8, UINT64_MAX));
	check_eq(0, f.word[0]);
	check_eq(PMHEAP_RESERVED, object_of(f.h, f.res).state);
	finish(f.h, POOL);
}

TEST(add_wraps_modulo_2_to_the_64)
{
	struct field f = field_new();

	apply(f.h, op_add(f.pub, UINT64_MAX));
	check_eq(UINT64_MAX, f.word[0]);
	apply(f.h, op_add(f.pub, 2));
	check_eq(1, f.word[0]);
	apply(f.h, op_add(f.pub, 1ULL << 63));
	apply(f.h, op_add(f.pub, 1ULL << 63));
	check_eq(1, f.word[0]);
	finish(f.h, POOL);
}

TEST(name_is_set_replaced_only_by_flag_and_unset)
{
	struct field f = field_new();
	uint64_t off = 0;

	apply_refused(f.h, -EEXIST, 0, op_name(f.pub, "named", 0));
	apply_refused(f.h, -EEXIST, 1, op_store(f.pub, 1), op_name(f.named, "named", 0));
	apply(f.h, op_name(f.pub, "named", PMHEAP_NAME_REPLACE));
	check_rc(0, pmheap_name_get(f.h, "named", 5, &off));
	check_eq(f.pub, off);
	apply(f.h, op_name(f.pub, "new", PMHEAP_NAME_REPLACE));
	apply(f.h, op_unname("named"));
	check_rc(-ENOENT, pmheap_name_get(f.h, "named", 5, &off));
	apply_refused(f.h, -ENOENT, 0, op_unname("named"));
	apply_refused(f.h, -ENOENT, 1, op_publish(f.res), op_unname("named"));
	finish(f.h, POOL);
}

TEST(a_name_stands_in_one_name_or_unname_only)
{
	struct field f = field_new();

	apply_refused(f.h, -EINVAL, 1, op_name(f.pub, "x", 0), op_name(f.pub, "x", 0));
	apply_refused(f.h, -EINVAL, 1, op_name(f.pub, "x", 0), op_name(f.named, "x", PMHEAP_NAME_REPLACE));
	apply_refused(f.h, -EINVAL, 1, op_unname("named"), op_unname("named"));
	apply_refused(f.h, -EINVAL, 1, op_unname("named"), op_name(f.pub, "named", 0));
	apply_refused(f.h, -EINVAL, 1, op_name(f.pub, "named", PMHEAP_NAME_REPLACE), op_unname("named"));
	finish(f.h, POOL);
}

TEST(naming_anything_but_a_published_object_is_EINVAL)
{
	struct field f = field_new();
	const uint64_t bad[] = { 0, 1, f.res, f.gone, f.pub + 1, f.pub + 16, stat_of(f.h).span, 1ULL << 63, UINT64_MAX };

	for (unsigned int i = 0; i < COUNT(bad); i++) {
		apply_refused(f.h, -EINVAL, 0, op_name(bad[i], "x", 0));
		apply_refused(f.h, -EINVAL, 1, op_name(f.pub, "y", 0), op_name(bad[i], "x", 0));
		check_refused(f.h, -EINVAL, pmheap_name_set(f.h, "x", 1, bad[i], 0));
	}
	apply_refused(f.h, -EINVAL, 1, op_free(f.pub), op_name(f.pub, "x", 0));
	apply_refused(f.h, -EINVAL, 1, op_name(f.pub, "x", 0), op_free(f.pub));
	finish(f.h, POOL);
}

TEST(naming_an_object_that_the_vector_publishes_works_in_any_order)
{
	struct field f = field_new();
	uint64_t second = reserved(f.h, 128), off = 0;

	apply(f.h, op_publish(f.res), op_name(f.res, "first", 0));
	apply(f.h, op_name(second, "second", 0), op_publish(second));
	check_rc(0, pmheap_name_get(f.h, "first", 5, &off));
	check_eq(f.res, off);
	check_rc(0, pmheap_name_get(f.h, "second", 6, &off));
	check_eq(second, off);
	finish(f.h, POOL);
}

TEST(free_of_a_named_object_is_EBUSY_unless_the_same_vector_unnames_it)
{
	struct field f = field_new();

	apply_refused(f.h, -EBUSY, 0, op_free(f.named));
	apply_refused(f.h, -EBUSY, 1, op_store(f.pub, 1), op_free(f.named));
	check_refused(f.h, -EBUSY, pmheap_free(f.h, f.named));
	apply(f.h, op_name(f.named, "also", 0));
	check(pmheap_free(f.h, f.named) == -EBUSY);
	apply_refused(f.h, -EBUSY, 0, op_free(f.named), op_unname("named"));
	apply(f.h, op_free(f.named), op_unname("named"), op_unname("also"));
	apply_refused(f.h, -EINVAL, 0, op_free(f.named));
	finish(f.h, POOL);
}

TEST(unname_before_or_after_the_free_is_the_same)
{
	struct field f = field_new();

	apply(f.h, op_name(f.pub, "p", 0));
	apply(f.h, op_unname("named"), op_free(f.named));
	apply(f.h, op_free(f.pub), op_unname("p"));
	check_eq(0, stat_of(f.h).objects);
	finish(f.h, POOL);
}

TEST(unknown_op_kinds_are_EOPNOTSUPP)
{
	struct field f = field_new();
	static const uint32_t kinds[] = { 0, 8, 9, 255, 256 + PMHEAP_OP_PUBLISH, 65536 + PMHEAP_OP_FREE, 1U << 31,
					  UINT32_MAX };

	for (unsigned int i = 0; i < COUNT(kinds); i++) {
		apply_refused(f.h, -EOPNOTSUPP, 0, (struct pmheap_op){ .kind = kinds[i], .off = f.res });
		apply_refused(f.h, -EOPNOTSUPP, 1, op_publish(f.res), (struct pmheap_op){ .kind = kinds[i] });
	}
	finish(f.h, POOL);
}

TEST(unknown_op_flags_and_reserved_fields_are_EOPNOTSUPP)
{
	struct field f = field_new();
	const struct pmheap_op good[] = { op_publish(f.res), op_free(f.pub), op_store(f.pub, 1), op_compare(f.pub, 0),
					  op_add(f.pub, 1), op_name(f.pub, "x", 0), op_unname("named") };

	for (unsigned int i = 0; i < COUNT(good); i++) {
		struct pmheap_op op = good[i];

		op.flags = 2;
		apply_refused(f.h, -EOPNOTSUPP, 0, op);
		op.flags = 1U << 31;
		apply_refused(f.h, -EOPNOTSUPP, 1, op_store(f.named, 1), op);
		op.flags = 0;
		op.reserved = 1;
		apply_refused(f.h, -EOPNOTSUPP, 0, op);
		if (op.kind == PMHEAP_OP_NAME)
			continue;
		op.reserved = 0;
		op.flags = PMHEAP_NAME_REPLACE;
		apply_refused(f.h, -EOPNOTSUPP, 0, op);
	}
	finish(f.h, POOL);
}

TEST(fields_that_an_op_does_not_use_must_be_zero)
{
	struct field f = field_new();
	struct pmheap_op bad[] = { op_publish(f.res), op_publish(f.res), op_publish(f.res), op_publish(f.res),
				   op_free(f.pub), op_free(f.pub), op_store(f.pub, 1), op_compare(f.pub, 0),
				   op_add(f.pub, 1), op_name(f.pub, "x", 0), op_name(f.pub, "x", 0),
				   op_unname("named"), op_unname("named"), op_unname("named") };

	bad[0].value = 1;
	bad[1].expect = 1;
	bad[2].name = "x";
	bad[3].name_len = 1;
	bad[4].value = 1;
	bad[5].expect = 1ULL << 63;
	bad[6].expect = 1;
	bad[7].value = 1;
	bad[8].expect = 1;
	bad[9].value = 1;
	bad[10].expect = 1;
	bad[11].off = f.named;
	bad[12].value = 1;
	bad[13].expect = 1;
	for (unsigned int i = 0; i < COUNT(bad); i++) {
		uint64_t before = digest(f.h);
		uint32_t failed = 7;
		int rc = pmheap_apply(f.h, &bad[i], 1, &failed);

		if (rc != -EOPNOTSUPP && rc != -EINVAL)
			tap_fail(__FILE__, __LINE__, "case %u gives %d", i, rc);
		check_eq(0, failed);
		check_eq(before, digest(f.h));
	}
	finish(f.h, POOL);
}

TEST(of_two_faults_the_first_op_is_named)
{
	struct field f = field_new();

	apply_refused(f.h, -EINVAL, 1, op_publish(f.res), op_store(f.gone, 1), op_unname("missing"));
	apply_refused(f.h, -ENOENT, 1, op_publish(f.res), op_unname("missing"), op_store(f.gone, 1));
	apply_refused(f.h, -EAGAIN, 0, op_compare(f.pub, 5), op_free(f.res));
	apply_refused(f.h, -EINVAL, 0, op_free(f.res), op_compare(f.pub, 5));
	finish(f.h, POOL);
}

TEST(vector_of_1024_is_done_whole_and_1025_or_0_are_EINVAL)
{
	struct field f = field_new();
	struct pmheap_op *ops = calloc(1025, sizeof(*ops));
	uint64_t offs[1024];
	uint32_t failed;

	check_rc(0, pmheap_reserve(f.h, 64, 0, 0, 0, 1024, offs));
	for (unsigned int i = 0; i < 1024; i++)
		ops[i] = op_publish(offs[i]);
	ops[1024] = op_publish(f.res);
	check_refused(f.h, -EINVAL, pmheap_apply(f.h, ops, 0, &failed));
	check_refused(f.h, -EINVAL, pmheap_apply(f.h, ops, 1025, &failed));
	check_refused(f.h, -EINVAL, pmheap_apply(f.h, ops, UINT32_MAX, &failed));
	check_rc(0, pmheap_apply(f.h, ops, 1024, &failed));
	check_eq(1024, failed);
	for (unsigned int i = 0; i < 1024; i++)
		check_eq(PMHEAP_PUBLISHED, object_of(f.h, offs[i]).state);
	free(ops);
	finish(f.h, POOL);
}

TEST(vector_of_1024_with_a_bad_last_op_does_nothing)
{
	struct field f = field_new();
	struct pmheap_op *ops = calloc(1024, sizeof(*ops));
	uint64_t offs[1023];
	uint32_t failed = 0;

	check_rc(0, pmheap_reserve(f.h, 64, 0, 0, 0, 1023, offs));
	for (unsigned int i = 0; i < 1023; i++)
		ops[i] = op_publish(offs[i]);
	ops[1023] = op_free(f.gone);
	check_refused(f.h, -EINVAL, pmheap_apply(f.h, ops, 1024, &failed));
	check_eq(1023, failed);
	for (unsigned int i = 0; i < 1023; i++)
		check_eq(PMHEAP_RESERVED, object_of(f.h, offs[i]).state);
	free(ops);
	finish(f.h, POOL);
}

TEST(vector_of_1024_words_in_1024_objects_of_many_runs_is_done_whole)
{
	struct pmheap *h = fresh(POOL, 0);
	struct pmheap_op *ops = calloc(1024, sizeof(*ops));
	uint64_t offs[1024];
	uint32_t failed;

	for (unsigned int i = 0; i < 1024; i++) {
		offs[i] = published(h, 16 + i % 64 * 48);
		ops[i] = op_store(offs[i] + 8, i);
	}
	check_rc(0, pmheap_apply(h, ops, 1024, &failed));
	for (unsigned int i = 0; i < 1024; i++)
		check_eq(i, ((uint64_t *)pmheap_ptr(h, offs[i]))[1]);
	for (unsigned int i = 0; i < 1024; i++)
		ops[i] = op_free(offs[i]);
	check_rc(0, pmheap_apply(h, ops, 1024, &failed));
	check_eq(0, stat_of(h).objects);
	free(ops);
	finish(h, POOL);
}

TEST(vector_takes_64_names_and_1024_are_judged_by_the_stated_limit)
{
	struct pmheap *h = fresh(POOL, 0);
	struct pmheap_op ops[1024];
	char name[1024][8];
	uint64_t off = published(h, 64), before;
	uint32_t failed;

	for (unsigned int i = 0; i < COUNT(ops); i++) {
		snprintf(name[i], sizeof(name[i]), "%u", i);
		ops[i] = op_name(off, name[i], 0);
	}
	check_rc(0, pmheap_apply(h, ops, 64, &failed));
	for (unsigned int i = 0; i < 64; i++)
		check_rc(0, pmheap_name_get(h, name[i], strlen(name[i]), &off));
	before = digest(h);
	check_rc(-EINVAL, pmheap_apply(h, ops + 64, 65, &failed));
	check_rc(-EINVAL, pmheap_apply(h, ops + 64, 1024 - 64, &failed));
	check_eq(before, digest(h));
	for (unsigned int i = 0; i < 64; i++)
		ops[i] = op_unname(name[i]);
	check_rc(0, pmheap_apply(h, ops, 64, &failed));
	check_rc(0, pmheap_free(h, off));
	finish(h, POOL);
}

TEST(one_vector_mixes_all_kinds)
{
	struct field f = field_new();
	uint64_t off = 0;

	apply(f.h, op_publish(f.res), op_free(f.named), op_unname("named"), op_name(f.res, "new", 0),
	      op_compare(f.pub, 0), op_store(f.pub, f.res), op_add(f.pub + 8, 3), op_compare(f.pub + 16, 0));
	check_eq(f.res, f.word[0]);
	check_eq(3, f.word[1]);
	check_rc(0, pmheap_name_get(f.h, "new", 3, &off));
	check_eq(f.res, off);
	check_rc(-EINVAL, pmheap_free(f.h, f.named));
	finish(f.h, POOL);
}

TEST(publish_link_publishes_and_stores_in_one_step)
{
	struct field f = field_new();
	const uint64_t bad[] = { 0, f.gone, f.pub + 4, 1ULL << 63, UINT64_MAX - 7 };

	for (unsigned int i = 0; i < COUNT(bad); i++)
		check_refused(f.h, -EINVAL, pmheap_publish_link(f.h, f.res, bad[i]));
	check_refused(f.h, -EINVAL, pmheap_publish_link(f.h, f.pub, f.pub));
	check_refused(f.h, -EINVAL, pmheap_publish_link(f.h, f.gone, f.pub));
	check_eq(0, f.word[0]);
	check_rc(0, pmheap_publish_link(f.h, f.res, f.pub));
	check_eq(f.res, f.word[0]);
	check_eq(PMHEAP_PUBLISHED, object_of(f.h, f.res).state);
	finish(f.h, POOL);
}

TEST(freed_memory_can_be_reserved_again)
{
	struct pmheap *h = fresh(POOL, CHUNK);
	uint64_t offs[32], off;

	for (unsigned int i = 0; i < 32; i++)
		offs[i] = published(h, 64 * KIB);
	check_rc(-EDQUOT, pmheap_alloc(h, 64 * KIB, &off));
	check_rc(0, pmheap_free(h, offs[17]));
	check_rc(0, pmheap_alloc(h, 64 * KIB, &off));
	check_eq(offs[17], off);
	check_rc(-EDQUOT, pmheap_alloc(h, 16, &off));
	finish(h, POOL);
}

TAP_MAIN
