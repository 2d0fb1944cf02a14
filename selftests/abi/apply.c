// SPDX-License-Identifier: GPL-2.0-only
/* Op vectors by the ABI, rule by rule: the errno, the op at fault, and that nothing was done. */
#include "fixture.h"

FIXTURE(vector)
{
	struct heap heap;
	int pool;
	__u64 pub, res, gone, named;		/* 128 bytes each */
	__u64 span;
	volatile __u64 *word;			/* pub's, mapped */
};

FIXTURE_SETUP(vector)
{
	char *page;

	heap_setup(_metadata, &self->heap, 0);
	self->pool = self->heap.pool;
	self->pub = published(_metadata, self->pool, 128);
	self->gone = published(_metadata, self->pool, 128);
	self->named = published(_metadata, self->pool, 128);
	self->res = reserved(_metadata, self->pool, 128);
	self->span = stat_of(_metadata, self->pool).span;
	ASSERT_EQ(0, apply(self->pool, VECTOR(FREE(self->gone), NAME(self->named, "named")), NULL));
	page = mapped(_metadata, self->pool, self->pub / PAGE * PAGE, PAGE);
	self->word = (void *)(page + self->pub % PAGE);
}

FIXTURE_TEARDOWN(vector)
{
	heap_teardown(_metadata, &self->heap);
}

TEST_F(vector, publish_takes_only_starts_of_own_reservations)
{
	const __u64 bad[] = { 0, 1, self->pub, self->gone, self->res + 1, self->res + 16, self->span - 16, self->span,
			      1ULL << 32, 1ULL << 63, self->res | 1ULL << 63, ~0ULL, -16ULL };

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, PUBLISH(bad[i]));
		EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, PUBLISH(self->res), PUBLISH(bad[i]));
		EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, PUBLISH(bad[i]), PUBLISH(self->res));
	}
	EXPECT_VECTOR(self->pool, PUBLISH(self->res));
	EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, PUBLISH(self->res));
}

TEST_F(vector, free_takes_only_exact_starts_of_published_objects)
{
	__u64 huge = published(_metadata, self->pool, 3 * CHUNK);
	const __u64 bad[] = { 0, 1, self->res, self->gone, self->pub + 1, self->pub + 8, self->pub + 16, huge + 16,
			      huge + PAGE, huge + CHUNK, CHUNK - 16, self->span, self->pub | 1ULL << 63, ~0ULL };

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, FREE(bad[i]));
		EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, FREE(self->pub), FREE(bad[i]));
	}
	EXPECT_VECTOR(self->pool, FREE(self->pub), FREE(huge));
	EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, FREE(self->pub));
	EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, FREE(huge));
}

TEST_F(vector, object_twice_in_publish_or_free_is_EINVAL_and_the_later_is_at_fault)
{
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, PUBLISH(self->res), PUBLISH(self->res));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, FREE(self->pub), FREE(self->pub));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, PUBLISH(self->res), FREE(self->res));
	EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, FREE(self->res), PUBLISH(self->res));
	EXPECT_BAD_VECTOR(-EINVAL, 2, self->pool, FREE(self->pub), PUBLISH(self->res), FREE(self->pub));
}

TEST_F(vector, cancel_of_a_published_object_is_EINVAL)
{
	EXPECT_REFUSED(-EINVAL, self->pool, cancel(self->pool, &self->pub, 1));
	EXPECT_VECTOR(self->pool, PUBLISH(self->res));
	EXPECT_REFUSED(-EINVAL, self->pool, cancel(self->pool, &self->res, 1));
}

TEST_F(vector, words_outside_published_and_own_reserved_objects_are_EINVAL)
{
	const __u64 bad[] = { 0, 8, CHUNK - 8, self->gone, self->gone + 8, self->span - 8, self->span, 1ULL << 32,
			      1ULL << 63, self->pub | 1ULL << 63, -8ULL };

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, STORE(bad[i], 1));
		EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, ADD(bad[i], 1));
		EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, COMPARE(bad[i], 0));
		EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, STORE(self->pub, 1), STORE(bad[i], 1));
	}
	EXPECT_EQ(0, *self->word);
}

TEST_F(vector, first_and_last_word_of_an_object_work_and_the_next_is_judged_on_its_own)
{
	__u64 big = published(_metadata, self->pool, 4 * KIB), len = usable(_metadata, self->pool, big);

	EXPECT_VECTOR(self->pool, STORE(big, 1), STORE(big + len - 8, 2), ADD(self->res, 3), COMPARE(self->pub + 120, 0));
	EXPECT_VECTOR(self->pool, COMPARE(big, 1), COMPARE(big + len - 8, 2));
	EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, STORE(big + len, 1));
}

TEST_F(vector, unaligned_words_are_EINVAL)
{
	for (unsigned int by = 1; by < 8; by++) {
		EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, STORE(self->pub + by, 1));
		EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, ADD(self->pub + by, 1));
		EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, COMPARE(self->pub + by, 0));
	}
}

TEST_F(vector, words_of_objects_being_freed_are_EINVAL_and_the_later_op_is_at_fault)
{
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, FREE(self->pub), STORE(self->pub, 1));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, STORE(self->pub + 64, 1), FREE(self->pub));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, FREE(self->pub), COMPARE(self->pub, 0));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, FREE(self->pub), ADD(self->pub + 120, 1));
}

TEST_F(vector, words_of_objects_being_published_work_in_any_order)
{
	__u64 second = reserved(_metadata, self->pool, 128);

	EXPECT_VECTOR(self->pool, PUBLISH(self->res), STORE(self->res, 5), STORE(second, 6), PUBLISH(second));
	EXPECT_VECTOR(self->pool, COMPARE(self->res, 5), COMPARE(second, 6));
}

TEST_F(vector, word_twice_is_EINVAL_but_compare_and_change_together_work)
{
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, STORE(self->pub, 1), STORE(self->pub, 1));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, STORE(self->pub, 1), ADD(self->pub, 1));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, ADD(self->pub, 1), STORE(self->pub, 1));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, ADD(self->pub, 1), ADD(self->pub, 1));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, COMPARE(self->pub, 0), COMPARE(self->pub, 0));
	EXPECT_VECTOR(self->pool, COMPARE(self->pub, 0), STORE(self->pub, 7));
	EXPECT_VECTOR(self->pool, ADD(self->pub, 1), COMPARE(self->pub, 7));
	EXPECT_EQ(8, *self->word);
}

TEST_F(vector, compare_mismatch_is_EAGAIN_and_nothing_is_done)
{
	EXPECT_BAD_VECTOR(-EAGAIN, 0, self->pool, COMPARE(self->pub, 1));
	EXPECT_BAD_VECTOR(-EAGAIN, 2, self->pool, PUBLISH(self->res), STORE(self->pub, 9), COMPARE(self->pub + 8, ~0ULL),
			  NAME(self->res, "x"));
	EXPECT_EQ(0, *self->word);
	EXPECT_VECTOR(self->pool, STORE(self->pub, 5));
	EXPECT_BAD_VECTOR(-EAGAIN, 1, self->pool, STORE(self->pub, 6), COMPARE(self->pub, 6));
	EXPECT_EQ(5, *self->word);
}

TEST_F(vector, add_wraps)
{
	EXPECT_VECTOR(self->pool, ADD(self->pub, ~0ULL));
	EXPECT_EQ(~0ULL, *self->word);
	EXPECT_VECTOR(self->pool, ADD(self->pub, 3));
	EXPECT_EQ(2, *self->word);
}

TEST_F(vector, free_of_a_named_object_is_EBUSY_unless_unnamed_in_the_same_vector)
{
	EXPECT_BAD_VECTOR(-EBUSY, 0, self->pool, FREE(self->named));
	EXPECT_BAD_VECTOR(-EBUSY, 1, self->pool, STORE(self->pub, 1), FREE(self->named));
	EXPECT_VECTOR(self->pool, NAME(self->named, "second"));
	EXPECT_BAD_VECTOR(-EBUSY, 0, self->pool, FREE(self->named), UNNAME("named"));
	EXPECT_VECTOR(self->pool, FREE(self->named), UNNAME("named"), UNNAME("second"));
	EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, FREE(self->named));
}

TEST_F(vector, names_are_EEXIST_without_the_flag_and_replaced_with_it)
{
	__u64 off = 0;

	EXPECT_BAD_VECTOR(-EEXIST, 0, self->pool, NAME(self->pub, "named"));
	EXPECT_BAD_VECTOR(-EEXIST, 1, self->pool, PUBLISH(self->res), NAME(self->named, "named"));
	EXPECT_VECTOR(self->pool, RENAME(self->pub, "named"));
	EXPECT_EQ(0, name_get(self->pool, "named", 5, &off));
	EXPECT_EQ(self->pub, off);
	EXPECT_VECTOR(self->pool, FREE(self->named), RENAME(self->pub, "brand new"));
}

TEST_F(vector, name_twice_is_EINVAL_and_a_missing_one_ENOENT)
{
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, NAME(self->pub, "x"), NAME(self->pub, "x"));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, NAME(self->pub, "x"), RENAME(self->named, "x"));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, UNNAME("named"), UNNAME("named"));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, UNNAME("named"), NAME(self->pub, "named"));
	EXPECT_BAD_VECTOR(-ENOENT, 0, self->pool, UNNAME("missing"));
	EXPECT_BAD_VECTOR(-ENOENT, 1, self->pool, PUBLISH(self->res), UNNAME("name"));
}

TEST_F(vector, naming_anything_but_a_published_start_is_EINVAL)
{
	const __u64 bad[] = { 0, 1, self->res, self->gone, self->pub + 1, self->pub + 16, self->span, 1ULL << 63, ~0ULL };

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, NAME(bad[i], "x"));
		EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, NAME(self->pub, "y"), NAME(bad[i], "x"));
	}
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, FREE(self->pub), NAME(self->pub, "x"));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, NAME(self->pub, "x"), FREE(self->pub));
	EXPECT_VECTOR(self->pool, NAME(self->res, "x"), PUBLISH(self->res));
}

TEST_F(vector, names_of_0_and_256_bytes_are_EINVAL_and_of_1_and_255_work)
{
	static const __u32 bad[] = { 0, 256, 257, 4096, 1U << 31, ~0U };
	char name[4096];

	memset(name, 'n', sizeof(name));
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool,
				  OP(NAME, .off = self->pub, .name = address(name), .name_len = bad[i]));
		EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, PUBLISH(self->res),
				  OP(UNNAME, .name = address(name), .name_len = bad[i]));
	}
	EXPECT_VECTOR(self->pool, OP(NAME, .off = self->pub, .name = address(name), .name_len = 1),
		      OP(NAME, .off = self->pub, .name = address(name), .name_len = 255));
	EXPECT_VECTOR(self->pool, OP(UNNAME, .name = address(name), .name_len = 255),
		      OP(UNNAME, .name = address(name), .name_len = 1), FREE(self->pub));
}

TEST_F(vector, unknown_kinds_are_EOPNOTSUPP)
{
	static const __u32 kinds[] = { 0, 8, 9, 255, 257, 0x10001, 1U << 31, ~0U };

	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct pmheap_vector_op op = { .kind = kinds[i], .off = self->res };

		EXPECT_BAD_VECTOR(-EOPNOTSUPP, 0, self->pool, op);
		EXPECT_BAD_VECTOR(-EOPNOTSUPP, 1, self->pool, PUBLISH(self->res), op);
	}
}

TEST_F(vector, unknown_flags_and_reserved_fields_of_ops_are_EOPNOTSUPP)
{
	const struct pmheap_vector_op good[] = { PUBLISH(self->res), FREE(self->pub), STORE(self->pub, 1), ADD(self->pub, 1),
						 COMPARE(self->pub, 0), NAME(self->pub, "x"), UNNAME("named") };

	for (unsigned int i = 0; i < ARRAY_SIZE(good); i++) {
		struct pmheap_vector_op op = good[i];

		for (unsigned int bit = op.kind == PMHEAP_OP_NAME; bit < 32; bit++) {
			op.flags = 1U << bit;
			EXPECT_BAD_VECTOR(-EOPNOTSUPP, 0, self->pool, op);
		}
		op.flags = 0;
		op.reserved = 1;
		EXPECT_BAD_VECTOR(-EOPNOTSUPP, 1, self->pool, STORE(self->named, 1), op);
	}
}

TEST_F(vector, fields_that_an_op_does_not_use_must_be_zero)
{
	const struct pmheap_vector_op good[] = { PUBLISH(self->res), FREE(self->pub), STORE(self->pub, 1), ADD(self->pub, 1),
						 COMPARE(self->pub, 0), NAME(self->pub, "x"), UNNAME("named") };

	for (unsigned int i = 0; i < ARRAY_SIZE(good); i++) {
		for (int field = 0; field < 5; field++) {
			struct pmheap_vector_op op = good[i];
			__u64 * const fields[] = { &op.off, &op.value, &op.expect, &op.name };
			__u32 failed = 9;
			__u64 before = pool_digest(self->pool);
			int rc;

			if (field < 4 ? *fields[field] : op.name_len)
				continue;
			/* The one field of these that may be zero and is used. */
			if (op.kind == PMHEAP_OP_COMPARE64 && field == 2)
				continue;
			if (field < 4)
				*fields[field] = 8;
			else
				op.name_len = 8;
			rc = apply(self->pool, &op, 1, &failed);
			EXPECT_TRUE(rc == -EINVAL || rc == -EOPNOTSUPP)
				TH_LOG("op %u field %d gives %d", op.kind, field, rc);
			EXPECT_EQ(0, failed);
			EXPECT_EQ(before, pool_digest(self->pool));
		}
	}
}

TEST_F(vector, first_of_several_faults_is_the_one_told)
{
	EXPECT_BAD_VECTOR(-ENOENT, 1, self->pool, PUBLISH(self->res), UNNAME("missing"), FREE(self->gone));
	EXPECT_BAD_VECTOR(-EINVAL, 1, self->pool, PUBLISH(self->res), FREE(self->gone), UNNAME("missing"));
	EXPECT_BAD_VECTOR(-EAGAIN, 0, self->pool, COMPARE(self->pub, 3), FREE(self->res));
	EXPECT_BAD_VECTOR(-EINVAL, 0, self->pool, FREE(self->res), COMPARE(self->pub, 3));
}

TEST_F(vector, counts_of_0_and_above_1024_are_EINVAL_and_1024_work)
{
	struct pmheap_vector_op *ops = calloc(1025, sizeof(*ops));
	static const __u32 counts[] = { 0, 1025, 1U << 16, 1U << 31, ~0U };
	__u64 offs[1024];

	ASSERT_EQ(0, reserve(self->pool, 64, 0, 0, 0, 1024, offs));
	for (unsigned int i = 0; i < 1024; i++) {
		ops[i] = PUBLISH(offs[i]);
	}
	ops[1024] = PUBLISH(self->res);
	for (unsigned int i = 0; i < ARRAY_SIZE(counts); i++) {
		EXPECT_REFUSED(-EINVAL, self->pool, apply(self->pool, ops, counts[i], NULL));
	}
	EXPECT_EQ(0, apply(self->pool, ops, 1024, NULL));
	EXPECT_EQ(1024 + 2, stat_of(_metadata, self->pool).objects);
	free(ops);
}

TEST_F(vector, bad_last_op_of_1024_undoes_none_because_none_was_done)
{
	struct pmheap_vector_op *ops = calloc(1024, sizeof(*ops));
	__u64 offs[1023];
	__u32 failed = 0;

	ASSERT_EQ(0, reserve(self->pool, 64, 0, 0, 0, 1023, offs));
	for (unsigned int i = 0; i < 1023; i++) {
		ops[i] = PUBLISH(offs[i]);
	}
	ops[1023] = FREE(self->gone);
	EXPECT_REFUSED(-EINVAL, self->pool, apply(self->pool, ops, 1024, &failed));
	EXPECT_EQ(1023, failed);
	free(ops);
}

TEST_F(vector, sixty_four_names_work_and_more_are_EINVAL)
{
	struct pmheap_vector_op ops[65];
	char name[65][4];

	for (unsigned int i = 0; i < 65; i++) {
		snprintf(name[i], sizeof(name[i]), "%u", i);
		ops[i] = OP(NAME, .off = self->pub, .name = address(name[i]), .name_len = (__u32)strlen(name[i]));
	}
	EXPECT_REFUSED(-EINVAL, self->pool, apply(self->pool, ops, 65, NULL));
	EXPECT_EQ(0, apply(self->pool, ops, 64, NULL));
	for (unsigned int i = 0; i < 64; i++) {
		ops[i].kind = PMHEAP_OP_UNNAME;
		ops[i].off = 0;
	}
	EXPECT_EQ(0, apply(self->pool, ops, 64, NULL));
}

TEST_F(vector, answer_carries_failed_and_the_regions_level)
{
	struct pmheap_region_info info;
	struct pmheap_vector_op op = PUBLISH(self->res);
	struct pmheap_apply a = { .size = sizeof(a), .ops = address(&op), .count = 1, .failed = 77, .level = 77 };

	ASSERT_EQ(0, region_info(self->heap.region, &info));
	EXPECT_EQ(0, call(self->pool, PMHEAP_APPLY, &a));
	EXPECT_EQ(1, a.failed);
	EXPECT_EQ(info.level, a.level);
	EXPECT_EQ(0, a.reserved);
}

TEST_HARNESS_MAIN
