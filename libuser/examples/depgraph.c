// SPDX-License-Identifier: MIT
/*
 * depgraph: the Debian archive's dependency graph in a persistent heap. Real input, loaded package by package,
 * that can be cut off at any moment and goes on where it was.
 */
#include <stdio.h>
#include <string.h>

#include "depgraph.h"

static int usage(void)
{
	fputs("usage: depgraph load REGION POOL FILE [--ack PATH]\n"
	      "       depgraph verify REGION POOL FILE ACKFILE\n"
	      "       depgraph query REGION POOL rdeps NAME\n"
	      "       depgraph query REGION POOL top N\n"
	      "       depgraph query REGION POOL path FROM TO\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	if (argc == 5 && !strcmp(argv[1], "load"))
		return depgraph_load(argv[2], argv[3], argv[4], NULL);
	if (argc == 7 && !strcmp(argv[1], "load") && !strcmp(argv[5], "--ack"))
		return depgraph_load(argv[2], argv[3], argv[4], argv[6]);
	if (argc == 6 && !strcmp(argv[1], "verify"))
		return depgraph_verify(argv[2], argv[3], argv[4], argv[5]);
	if (argc >= 6 && !strcmp(argv[1], "query"))
		return depgraph_query(argv[2], argv[3], argc - 4, argv + 4);
	return usage();
}
