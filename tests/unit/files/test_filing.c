/* SPDX-License-Identifier: Apache-2.0 */
/* Files in memory: their pages are made by all CPUs, where there are many, and nothing else changes. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "file_kit.h"
#include "transfer/filing.h"

#define TOTAL (20u * MIB + 12345)
#define BLOCK (300u * KIB) /* not all of them begin where a page does */

static unsigned cpu_count;

__typeof__(sched_getaffinity) __wrap_sched_getaffinity;

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	(void)pid;
	CPU_ZERO_S(size, set);
	for (unsigned i = 0; i < cpu_count; i++)
		CPU_SET_S(i, size, set);
	return 0;
}

static const struct vb__filing_plan whole = { .total_bytes = TOTAL };

static uint64_t bytes_held(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static bool makes_pages(const struct vb__filing_plan *plan, unsigned cpus)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct vb__filing filing;
	bool makes;

	cpu_count = cpus;
	assert_int_equal(vb__filing_reserve(fd, plan), 0);
	vb__filing_open(&filing, fd, plan);
	makes = filing.pages.map != NULL;
	vb__filing_close(&filing);
	assert_int_equal(bytes_held(fd), 0);
	close(fd);
	return makes;
}

static void pages_are_made_where_that_pays(void **state)
{
	struct vb__filing_plan plan = whole;

	(void)state;
	assert_true(makes_pages(&plan, 8));
	assert_false(makes_pages(&plan, 2));
	plan.sparse = true;
	assert_false(makes_pages(&plan, 8));
	plan = (struct vb__filing_plan){ .total_bytes = UINT64_MAX };
	assert_false(makes_pages(&plan, 8));
	plan.total_bytes = MIB;
	assert_false(makes_pages(&plan, 8));
}

static void pages_of_a_part_are_made(void **state)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	struct vb__pages pages;

	(void)state;
	assert_int_equal(ftruncate(fd, TOTAL), 0);
	vb__pages_open(&pages, fd, TOTAL);
	vb__pages_make(&pages, MIB + 100, MIB);
	assert_int_equal(bytes_held(fd), MIB + 4096);
	vb__pages_make(&pages, TOTAL - 10, 10);
	assert_int_equal(bytes_held(fd), MIB + 2 * 4096);

	/* What is beyond the end is not there to be made. */
	vb__pages_make(&pages, TOTAL - 10, 11);
	assert_int_equal(ftruncate(fd, 0), 0);
	vb__pages_make(&pages, MIB, MIB);
	assert_int_equal(bytes_held(fd), 0);
	vb__pages_close(&pages);
	close(fd);
}

struct share {
	struct vb__filing *filing;
	const uint8_t *data;
	unsigned number;
};

static void *put_every_fourth(void *arg)
{
	struct share *s = arg;

	for (uint64_t at = s->number * BLOCK; at < TOTAL; at += 4 * BLOCK) {
		size_t len = TOTAL - at < BLOCK ? TOTAL - at : BLOCK;

		assert_int_equal(vb__filing_put(s->filing, s->data + at, len, at), 0);
	}
	return NULL;
}

static void what_many_threads_put_is_what_the_file_has(void **state)
{
	uint8_t *data = malloc(TOTAL);
	struct vb__filing filing;
	struct share shares[4];
	pthread_t threads[4];
	int fd = memfd_create("file", MFD_CLOEXEC);
	char name[40];

	(void)state;
	cpu_count = 8;
	make_bytes(data, TOTAL, 0);
	assert_int_equal(vb__filing_reserve(fd, &whole), 0);
	vb__filing_open(&filing, fd, &whole);
	for (unsigned i = 0; i < 4; i++) {
		shares[i] = (struct share){ &filing, data, i };
		assert_int_equal(pthread_create(&threads[i], NULL, put_every_fourth, &shares[i]),
				 0);
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	vb__filing_close(&filing);
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	assert_file_is(name, data, TOTAL);
	close(fd);
	free(data);
}

/* There was room when it began. */
static void assert_full(struct kit *kit)
{
	int fd = open(kit_path(kit, "file"), O_RDWR | O_CREAT, 0600);
	uint8_t *data = calloc(1, MIB);
	struct vb__filing filing;
	uint64_t at = 0;
	int rc;

	cpu_count = 8;
	assert_int_equal(vb__filing_reserve(fd, &whole), 0);
	make_file(kit_path(kit, "other"), 10 * MIB);
	vb__filing_open(&filing, fd, &whole);
	assert_non_null(filing.pages.map);
	while ((rc = vb__filing_put(&filing, data, MIB, at)) == 0 && at < TOTAL)
		at += MIB;
	assert_int_equal(rc, ENOSPC);
	assert_in_range(at, 10 * MIB, 14 * MIB);
	vb__filing_close(&filing);
	close(fd);
	free(data);
}

static void memory_that_runs_out_is_told_as_ever(void **state)
{
	struct kit *kit = *state;

	if (mount("none", kit->dir, "tmpfs", 0, "size=24m")) {
		print_message("# skipped: no tmpfs can be mounted: %s\n", strerror(errno));
		skip();
	}
	assert_full(kit);
	assert_int_equal(umount(kit->dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_made_where_that_pays),
		cmocka_unit_test(pages_of_a_part_are_made),
		cmocka_unit_test(what_many_threads_put_is_what_the_file_has),
		cmocka_unit_test_setup_teardown(memory_that_runs_out_is_told_as_ever, kit_setup,
						kit_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
