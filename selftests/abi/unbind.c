// SPDX-License-Identifier: GPL-2.0-only
/* The device goes away, by its driver's unbind, while the region is in use. Needs PMHEAP_DEVICE. */
#include "device.h"
#include "pins.h"
#include "victim.h"

FIXTURE(unbind)
{
	struct driver driver;
	struct victim v;
};

FIXTURE_SETUP(unbind)
{
	ASSERT_NE(NULL, device_path());
	ASSERT_EQ(0, driver_of(device_path(), &self->driver));
	ASSERT_TRUE(victim_setup(_metadata, &self->v));
}

/* As it was found: bound and attached. */
FIXTURE_TEARDOWN(unbind)
{
	int region;

	if (access(device_path(), F_OK)) {
		EXPECT_EQ(0, driver_bind(&self->driver));
	}
	region = region_open();
	EXPECT_LE(0, region);
	close(region);
}

TEST_F(unbind, unbind_while_open_and_mapped_gives_ENODEV_and_SIGBUS_and_comes_back_whole)
{
	int region, pool;

	ASSERT_EQ(0, apply(self->v.pool, VECTOR(NAME(self->v.off, "it"), STORE(self->v.off, 4711)), NULL));
	ASSERT_EQ(0, driver_write(&self->driver, "unbind"));
	expect_gone(_metadata, &self->v);
	ASSERT_EQ(0, driver_bind(&self->driver));
	region = region_open();
	ASSERT_LE(0, region);
	pool = pool_open(region, POOL, 0);
	ASSERT_LE(0, pool);
	EXPECT_EQ(1, stat_of(_metadata, pool).objects);
	EXPECT_EQ(0, apply_one(pool, COMPARE(self->v.off, 4711)));
	close(pool);
	close(region);
}

TEST_F(unbind, unbind_is_safe_against_processes_that_call_and_touch)
{
	pid_t pids[6];
	int region;

	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = child_start();
		if (!pids[i])
			hammer(&self->v);
	}
	usleep(300000);
	ASSERT_EQ(0, driver_write(&self->driver, "unbind"));
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++) {
		EXPECT_EQ(0, child_end(pids[i]));
	}
	expect_gone(_metadata, &self->v);
	ASSERT_EQ(0, driver_bind(&self->driver));
	region = region_open();
	ASSERT_LE(0, region);
	close(region);
}

TEST_F(unbind, unbind_waits_for_pinned_pages)
{
	int pin = pin_in_pipe((void *)self->v.p, PAGE);
	char page[PAGE];
	pid_t pid;

	ASSERT_LE(0, pin);
	pid = child_start();
	if (!pid) {
		close(pin);
		_exit(driver_write(&self->driver, "unbind") ? 1 : 0);
	}
	usleep(500000);
	EXPECT_EQ(0, waitpid(pid, NULL, WNOHANG));		/* it waits */
	EXPECT_EQ(SIGBUS, touch((void *)self->v.p, true));	/* but has cut already */
	ASSERT_EQ(PAGE, read(pin, page, PAGE));
	EXPECT_EQ(1, page[0]);
	close(pin);
	EXPECT_EQ(0, child_end(pid));
	expect_gone(_metadata, &self->v);
}

TEST_F(unbind, forced_detach_waits_for_pinned_pages_and_can_be_killed_meanwhile)
{
	int pin = pin_in_pipe((void *)self->v.p, PAGE);
	char page[PAGE];
	pid_t pid;
	int rc = -EINTR;

	ASSERT_LE(0, pin);
	pid = child_start();
	if (!pid) {
		close(pin);
		detach(self->v.number, PMHEAP_DETACH_FORCE);
		_exit(0);
	}
	usleep(500000);
	EXPECT_EQ(0, waitpid(pid, NULL, WNOHANG));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	EXPECT_EQ(-SIGKILL, child_end(pid));
	ASSERT_EQ(PAGE, read(pin, page, PAGE));
	close(pin);
	for (int i = 0; i < 100 && rc && rc != -ENODEV; i++) {
		rc = detach(self->v.number, PMHEAP_DETACH_FORCE);
		usleep(10000);
	}
	EXPECT_TRUE(rc == 0 || rc == -ENODEV);
	expect_gone(_metadata, &self->v);
}

/* It may go between any two of these calls. */
static void open_until_gone(const struct victim *v)
{
	for (;;) {
		int fd = pool_open(v->region, POOL, 0);
		char *p;

		if (fd == -ENODEV)
			_exit(0);
		child_check(fd >= 0);
		p = (char *)map_pool(fd, v->off, PAGE, PROT_READ);
		child_check(p != MAP_FAILED || errno == ENODEV);
		if (p != MAP_FAILED) {
			child_check(touch(p, false) != SIGSEGV);
			child_check(!munmap(p, PAGE));
		}
		close(fd);
	}
}

TEST_F(unbind, opens_racing_with_unbind_either_win_or_fail_cleanly)
{
	pid_t pids[4];

	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = child_start();
		if (pids[i])
			continue;
		open_until_gone(&self->v);
	}
	usleep(200000);
	ASSERT_EQ(0, driver_write(&self->driver, "unbind"));
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++) {
		EXPECT_EQ(0, child_end(pids[i]));
	}
	expect_gone(_metadata, &self->v);
}

TEST_F(unbind, unbind_and_forced_detach_at_once_are_both_done)
{
	pid_t pid = child_start();
	int rc;

	if (!pid) {
		rc = detach(self->v.number, PMHEAP_DETACH_FORCE);
		child_check(rc == 0 || rc == -ENODEV);
		_exit(0);
	}
	EXPECT_EQ(0, driver_write(&self->driver, "unbind"));
	EXPECT_EQ(0, child_end(pid));
	expect_gone(_metadata, &self->v);
}

TEST_HARNESS_MAIN
