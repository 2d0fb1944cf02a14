// SPDX-License-Identifier: GPL-2.0-only
/* The header as C++ sees it: it compiles as it is, and a program can use it. */
#include <pmheap.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

static int use(const char *region)
{
	pmheap_attr attr = pmheap_attr();
	pmheap *h = 0;
	uint64_t off = 0, found = 0;

	attr.size = sizeof(attr);
	pmheap_destroy(region, "cxx");
	if (pmheap_create(region, "cxx", &attr, &h) || pmheap_alloc(h, 100, &off))
		return 1;
	char *text = static_cast<char *>(pmheap_ptr(h, off));
	std::strcpy(text, "written from C++");
	if (pmheap_persist(h, text, 100) < 0 || pmheap_publish(h, off) || pmheap_name_set(h, "text", 4, off, 0))
		return 2;
	if (pmheap_close(h) || pmheap_open(region, "cxx", PMHEAP_RDONLY, &h))
		return 3;
	if (pmheap_name_get(h, "text", 4, &found) || found != off)
		return 4;
	if (std::strcmp(static_cast<char *>(pmheap_ptr(h, off)), "written from C++"))
		return 5;
	return pmheap_close(h) || pmheap_destroy(region, "cxx") ? 6 : 0;
}

int main()
{
	const char *region = std::getenv("PMHEAP_TEST_REGION");
	int rc = region ? use(region) : -1;

	std::printf("TAP version 13\n1..1\n");
	if (rc)
		std::printf("# step %d\n", rc);
	std::printf("%sok 1 - cxx: program_in_Cxx_writes_publishes_and_reads_back\n", rc ? "not " : "");
	std::printf("# cxx: %d passed, %d failed, 0 skipped\n", !rc, !!rc);
	return !!rc;
}
