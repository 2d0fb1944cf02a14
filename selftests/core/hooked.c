// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs scripts on three CPUs on an engine all of whose stores are hooked (hooks.c): `hooked [--self-test]`.
 * The self-test stores to the medium by hand, as no engine may, and so must fail.
 */
#include "hooks.h"
#include "script.h"
#include "state.h"

#define SIZE (16ULL << 20)

static void run(u64 seed)
{
	struct script s;
	u64 state;

	script_open(&s, SIZE, 4, seed);
	script_run(&s, 200, 3);
	EXPECT_EQ(region_state(s.m, s.h, &state), 0);
	EXPECT(state == s.state);
	script_detach(&s, true);
	script_attach(&s);
	script_detach(&s, false);
	script_close(&s);
}

static void bypass(void)
{
	struct medium *m = medium_new(SIZE);

	hook_memset(m->now + 4096, 1, 8);
	medium_free(m);
}

int main(int argc, char **argv)
{
	u64 seed;

	printf("1..1\n");
	if (argc > 1 && !strcmp(argv[1], "--self-test"))
		bypass();
	for (seed = 1; seed <= 8; seed++)
		run(seed);
	EXPECT(hooked_stores > 100000);
	printf("ok 1 - %llu stores of the engine, none to the medium but through persist.h\n",
	       (unsigned long long)hooked_stores);
	return 0;
}
