// SPDX-License-Identifier: GPL-2.0-only
/* Every command at every wrong size, with every unknown flag and reserved field; unknown commands. */
#include "commands.h"

FIXTURE(command)
{
	struct scene scene;
	unsigned char *buf;		/* two pages before one that is not mapped */
};

FIXTURE_VARIANT(command)
{
	const struct command *command;
};

EVERY_COMMAND_VARIANT(command);

FIXTURE_SETUP(command)
{
	scene_setup(_metadata, &self->scene);
	self->buf = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)self->buf);
	ASSERT_EQ(0, mprotect(self->buf + 2 * PAGE, PAGE, PROT_NONE));
}

FIXTURE_TEARDOWN(command)
{
	scene_teardown(_metadata, &self->scene);
}

TEST_F(command, exact_size_works)
{
	scene_prepare(_metadata, &self->scene, variant->command, self->buf);
	EXPECT_EQ(variant->command->rc, scene_call(_metadata, &self->scene, variant->command, self->buf));
}

TEST_F(command, smaller_sizes_are_EINVAL)
{
	const struct command *c = variant->command;
	const __u32 sizes[] = { 0, 1, 2, 3, 4, 5, 8, c->size / 2, c->size - 8, c->size - 4, c->size - 1 };

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (sizes[i] >= c->size)
			continue;
		scene_prepare(_metadata, &self->scene, c, self->buf);
		*(__u32 *)self->buf = sizes[i];
		EXPECT_SPOILED(-EINVAL, &self->scene, c, self->buf);
	}
}

TEST_F(command, zero_tail_up_to_a_page_is_the_same_call)
{
	const struct command *c = variant->command;
	const __u32 sizes[] = { c->size + 1, c->size + 4, c->size + 8, 1024, PAGE - 1, PAGE };

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(self->buf, 0, 2 * PAGE);
		scene_prepare(_metadata, &self->scene, c, self->buf);
		*(__u32 *)self->buf = sizes[i];
		EXPECT_EQ(c->rc, scene_call(_metadata, &self->scene, c, self->buf))
			TH_LOG("size %u", sizes[i]);
		for (unsigned int at = c->size; at < 2 * PAGE; at++) {
			ASSERT_EQ(0, self->buf[at]);
		}
	}
}

TEST_F(command, non_zero_tail_is_E2BIG)
{
	const struct command *c = variant->command;
	const __u32 sizes[] = { c->size + 1, c->size + 4, c->size + 8, 1024, PAGE, PAGE + 1, 2 * PAGE };

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++)
		for (int last = 0; last < 2; last++) {
			memset(self->buf, 0, 2 * PAGE);
			scene_prepare(_metadata, &self->scene, c, self->buf);
			*(__u32 *)self->buf = sizes[i];
			self->buf[last ? sizes[i] - 1 : c->size] = last ? 0x80 : 1;
			EXPECT_SPOILED(-E2BIG, &self->scene, c, self->buf);
		}
}

TEST_F(command, sizes_above_a_page_are_E2BIG_zero_tail_or_not)
{
	const struct command *c = variant->command;
	static const __u32 sizes[] = { PAGE + 1, 2 * PAGE, 2 * PAGE + 1, 1U << 20, 0x7fffffff, 0x80000000U, 0xffffffffU };

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		memset(self->buf, 0, 2 * PAGE);
		scene_prepare(_metadata, &self->scene, c, self->buf);
		*(__u32 *)self->buf = sizes[i];
		EXPECT_SPOILED(-E2BIG, &self->scene, c, self->buf);
	}
}

TEST_F(command, exact_size_at_the_end_of_mapped_memory_works)
{
	const struct command *c = variant->command;
	unsigned char *at = self->buf + 2 * PAGE - c->size;

	scene_prepare(_metadata, &self->scene, c, at);
	EXPECT_EQ(c->rc, scene_call(_metadata, &self->scene, c, at));
	at++;			/* now its last byte is not there */
	memmove(at, at - 1, c->size - 1);
	*(__u32 *)at = c->size;
	EXPECT_SPOILED(-EFAULT, &self->scene, c, at);
}

TEST_F(command, unknown_flag_bits_are_EOPNOTSUPP)
{
	const struct command *c = variant->command;

	for (unsigned int bit = 0; bit < 32; bit++) {
		if (c->flags & 1U << bit)
			continue;
		scene_prepare(_metadata, &self->scene, c, self->buf);
		((__u32 *)self->buf)[1] = 1U << bit;
		EXPECT_SPOILED(-EOPNOTSUPP, &self->scene, c, self->buf);
	}
}

TEST_F(command, command_number_in_another_direction_or_of_another_type_is_ENOTTY)
{
	const struct command *c = variant->command;
	const unsigned long others[] = {
		c->cmd | _IOC_READ << _IOC_DIRSHIFT, c->cmd | _IOC_WRITE << _IOC_DIRSHIFT,
		c->cmd | (_IOC_READ | _IOC_WRITE) << _IOC_DIRSHIFT | c->size << _IOC_SIZESHIFT,
		c->cmd | 1UL << _IOC_SIZESHIFT, c->cmd ^ 0x100, c->cmd ^ 0x8000,
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(others); i++) {
		struct command other = *c;

		scene_prepare(_metadata, &self->scene, c, self->buf);
		other.cmd = others[i] & 0xffffffffUL;
		EXPECT_SPOILED(-ENOTTY, &self->scene, &other, self->buf);
	}
}

TEST_F(command, command_is_ENOTTY_on_the_other_nodes)
{
	const struct command *c = variant->command;

	for (int node = CONTROL; node <= OBJECTS; node++) {
		struct command other = *c;

		if (node == c->node)
			continue;
		scene_prepare(_metadata, &self->scene, c, self->buf);
		other.node = node;
		EXPECT_SPOILED(-ENOTTY, &self->scene, &other, self->buf);
	}
}

/* Commands with a reserved field. */
FIXTURE(reserved_field)
{
	struct scene scene;
};

FIXTURE_VARIANT(reserved_field)
{
	const struct command *command;
};

COMMAND_VARIANT(reserved_field, detach, DETACH);
COMMAND_VARIANT(reserved_field, cancel, CANCEL);
COMMAND_VARIANT(reserved_field, apply, APPLY);
COMMAND_VARIANT(reserved_field, name_get, GET_NAME);
COMMAND_VARIANT(reserved_field, name_next, NEXT_NAME);
COMMAND_VARIANT(reserved_field, stat, STAT);

FIXTURE_SETUP(reserved_field)
{
	scene_setup(_metadata, &self->scene);
}

FIXTURE_TEARDOWN(reserved_field)
{
	scene_teardown(_metadata, &self->scene);
}

TEST_F(reserved_field, non_zero_reserved_field_is_EOPNOTSUPP)
{
	const struct command *c = variant->command;
	static const __u32 values[] = { 1, 0x100, 0x80000000U, ~0U };
	unsigned char buf[1024] __attribute__((aligned(8)));

	ASSERT_LE(0, c->reserved);
	for (unsigned int i = 0; i < ARRAY_SIZE(values); i++) {
		scene_prepare(_metadata, &self->scene, c, buf);
		memcpy(buf + c->reserved, &values[i], sizeof(values[i]));
		EXPECT_SPOILED(-EOPNOTSUPP, &self->scene, c, buf);
	}
}

TEST_F(reserved_field, reserved_field_comes_back_as_zero)
{
	const struct command *c = variant->command;
	unsigned char buf[1024] __attribute__((aligned(8)));
	__u32 value = 1;

	scene_prepare(_metadata, &self->scene, c, buf);
	EXPECT_EQ(c->rc, scene_call(_metadata, &self->scene, c, buf));
	memcpy(&value, buf + c->reserved, sizeof(value));
	EXPECT_EQ(0, value);
}

/* All numbers there are. */
FIXTURE(numbers)
{
	struct scene scene;
};

FIXTURE_SETUP(numbers)
{
	scene_setup(_metadata, &self->scene);
}

FIXTURE_TEARDOWN(numbers)
{
	scene_teardown(_metadata, &self->scene);
}

static bool is_command(unsigned long cmd, int node)
{
	for (unsigned int i = 0; i < COMMANDS; i++)
		if (commands[i].cmd == cmd && (int)commands[i].node == node)
			return true;
	return false;
}

TEST_F(numbers, every_number_that_is_no_command_of_its_node_is_ENOTTY)
{
	__u32 buf[256] = { sizeof(buf) };

	for (int node = CONTROL; node <= OBJECTS; node++)
		for (unsigned int nr = 0; nr < 256; nr++) {
			struct command c = { .cmd = _IO(PMHEAP_IOC_TYPE, nr), .node = node };

			if (is_command(c.cmd, node))
				continue;
			EXPECT_EQ(-ENOTTY, call(scene_fd(&self->scene, &c), c.cmd, buf))
				TH_LOG("node %d number %#x", node, nr);
			EXPECT_EQ(-ENOTTY, call(scene_fd(&self->scene, &c), c.cmd, NULL));
		}
	EXPECT_NE(0, scene_digest(&self->scene));
}

TEST_F(numbers, structs_have_one_layout_for_32_and_64_bit_callers)
{
	static const __u32 sizes[COMMANDS] = {
		[ATTACH] = 24, [DETACH] = 16, [FORMAT] = 112, [INFO_REGION] = 408, [LIST] = 344, [CREATE] = 64,
		[OPEN] = 24, [DESTROY] = 24, [INFO_POOL] = 344, [TAKE] = 40, [CANCEL] = 24, [APPLY] = 32,
		[OBJECT] = 32, [NEXT] = 40, [GET_NAME] = 32, [NEXT_NAME] = 40, [PERSIST] = 24, [STAT] = 88,
		[QUOTA] = 16, [SCRUB] = 96,
	};

	for (unsigned int i = 0; i < COMMANDS; i++) {
		EXPECT_EQ(sizes[i], commands[i].size)
			TH_LOG("command %u", i);
	}
	EXPECT_EQ(48, sizeof(struct pmheap_vector_op));
	EXPECT_EQ(16, sizeof(struct pmheap_range));
	EXPECT_EQ(96, sizeof(struct pmheap_finding));
}

TEST_HARNESS_MAIN
