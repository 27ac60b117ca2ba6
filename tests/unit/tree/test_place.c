/* SPDX-License-Identifier: Apache-2.0 */
/* Directories by themselves, and the small tables that a tree's sink stands on. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sink_kit.h"
#include "tree/extents.h"
#include "tree/nameset.h"
#include "tree/numbers.h"
#include "tree/place.h"

static void open_places(struct kit *kit, struct vb__places *places)
{
	int fd = open(kit->dir, O_RDONLY | O_DIRECTORY);

	assert_int_equal(vb__places_open(places, fd, true), 0);
}

static struct vb__place *enter(struct vb__places *places, struct vb__place *parent,
			       const char *name)
{
	struct vb__place *place = vb__place_add(places, parent, 1, name);

	assert_int_equal(vb__place_enter(places, place, 0755), 0);
	return place;
}

static unsigned open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void many_places_few_descriptors(void **state)
{
	struct kit *kit = *state;
	struct vb__places places;
	struct vb__place *all[500];
	unsigned before = open_descriptors();
	char name[20];

	open_places(kit, &places);
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "d%d", i % 250);
		all[i] = enter(&places, i < 250 ? places.base : all[i - 250], name);
	}
	assert_true(open_descriptors() < before + 140);
	for (int i = 499; i >= 0; i--) {
		struct stat st;
		int fd = vb__place_hold(&places, all[i]);

		assert_true(fd >= 0);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_ino, all[i]->ino);
		vb__place_let_go(&places, all[i]);
	}
	vb__places_close(&places);
	assert_int_equal(open_descriptors(), before);
}

static void a_deep_place_is_found_again(void **state)
{
	struct kit *kit = *state;
	struct vb__places places;
	struct vb__place *place;
	char *path;

	open_places(kit, &places);
	place = places.base;
	for (int i = 0; i < 400; i++)
		place = enter(&places, place, "directory");
	place = places.all;
	assert_int_equal(place->depth, 400);
	for (struct vb__place *p = place; p->parent; p = p->parent) {
		assert_true(vb__place_hold(&places, p) >= 0);
		vb__place_let_go(&places, p);
	}
	assert_true(vb__place_hold(&places, place) >= 0);
	vb__place_let_go(&places, place);
	path = vb__place_path(place, "x");
	assert_int_equal(strlen(path), 400 * 10 + 1);
	free(path);
	vb__places_close(&places);
}

static void what_was_held_stays_open(void **state)
{
	struct kit *kit = *state;
	struct vb__places places;
	struct vb__place *held;
	char name[20];
	int fd;

	open_places(kit, &places);
	held = enter(&places, places.base, "held");
	fd = vb__place_hold(&places, held);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		enter(&places, places.base, name);
	}
	assert_int_equal(vb__place_hold(&places, held), fd);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	vb__places_close(&places);
}

static void what_is_no_directory_is_refused(void **state)
{
	struct kit *kit = *state;
	struct vb__places places;

	kit_run(kit, "echo x > file; mkdir dir; ln -s dir link");
	open_places(kit, &places);
	assert_int_equal(vb__place_enter(&places, vb__place_add(&places, places.base, 1, "file"),
					 0755),
			 ENOTDIR);
	assert_int_equal(vb__place_enter(&places, vb__place_add(&places, places.base, 2, "link"),
					 0755),
			 ENOTDIR);
	assert_false(enter(&places, places.base, "dir")->made);
	assert_true(enter(&places, places.base, "new")->made);
	vb__places_close(&places);
}

static void paths_are_as_they_are_shown(void **state)
{
	struct kit *kit = *state;
	struct vb__places places;
	struct vb__place *top, *below;
	char *path;

	open_places(kit, &places);
	top = enter(&places, places.base, "here");
	below = enter(&places, top, "below");
	top->shown = "there";
	path = vb__place_path(below, "file");
	assert_string_equal(path, "there/below/file");
	free(path);
	path = vb__place_real_path(below, "file");
	assert_string_equal(path, "here/below/file");
	free(path);
	top->shown = "";
	path = vb__place_path(below, NULL);
	assert_string_equal(path, "below");
	free(path);
	path = vb__place_path(places.base, NULL);
	assert_string_equal(path, "");
	free(path);
	vb__places_close(&places);
}

static void each_path_has_its_hash(void **state)
{
	struct kit *kit = *state;
	struct vb__places places;
	struct vb__path_hash one, two, three;

	open_places(kit, &places);
	one = vb__place_hash(enter(&places, places.base, "ab"), "c");
	two = vb__place_hash(enter(&places, places.base, "a"), "bc");
	three = vb__place_hash(enter(&places, places.base, "ab"), "c");
	assert_true(one.low != two.low && one.high != two.high);
	assert_memory_equal(&one, &three, sizeof(one));
	vb__places_close(&places);
}

static void extents_join(void **state)
{
	struct vb__extents x = { .list = NULL };
	uint64_t offset = 0, length;

	(void)state;
	assert_int_equal(vb__extents_add(&x, 100, 50), VB__EXTENTS_NEW);
	assert_int_equal(vb__extents_add(&x, 200, 50), VB__EXTENTS_NEW);
	assert_int_equal(vb__extents_add(&x, 0, 10), VB__EXTENTS_NEW);
	assert_int_equal(x.count, 3);
	assert_int_equal(vb__extents_add(&x, 149, 1), VB__EXTENTS_OVERLAP);
	assert_int_equal(vb__extents_add(&x, 99, 2), VB__EXTENTS_OVERLAP);
	assert_int_equal(vb__extents_add(&x, 150, 51), VB__EXTENTS_OVERLAP);
	assert_int_equal(vb__extents_add(&x, 5, 1000), VB__EXTENTS_OVERLAP);
	assert_true(vb__extents_gap(&x, &offset, 300, &length));
	assert_true(offset == 10 && length == 90);
	offset += length;
	assert_true(vb__extents_gap(&x, &offset, 300, &length));
	assert_true(offset == 150 && length == 50);
	assert_int_equal(vb__extents_add(&x, 150, 50), VB__EXTENTS_NEW);
	assert_int_equal(x.count, 2);
	assert_int_equal(vb__extents_add(&x, 10, 90), VB__EXTENTS_NEW);
	assert_int_equal(x.count, 1);
	assert_int_equal(x.bytes, 250);
	offset = 0;
	assert_false(vb__extents_gap(&x, &offset, 250, &length));
	offset = 0;
	assert_true(vb__extents_gap(&x, &offset, 300, &length));
	assert_true(offset == 250 && length == 50);
	vb__extents_free(&x);
}

/* Against an array of booleans. */
static void extents_are_right_in_any_order(void **state)
{
	bool there[200] = { false };
	struct vb__extents x = { .list = NULL };
	uint64_t sum = 0;

	(void)state;
	srand(1);
	for (int i = 0; i < 5000; i++) {
		unsigned at = (unsigned)rand() % 195, len = 1 + (unsigned)rand() % 4, free_at = 0;

		if (i % 500 == 0) {
			vb__extents_free(&x);
			memset(there, 0, sizeof(there));
			sum = 0;
		}
		for (unsigned k = at; k < at + len; k++)
			free_at += !there[k];
		assert_int_equal(vb__extents_add(&x, at, len),
				 free_at == len ? VB__EXTENTS_NEW : VB__EXTENTS_OVERLAP);
		if (free_at == len) {
			memset(there + at, 1, len);
			sum += len;
		}
		assert_int_equal(x.bytes, sum);
	}
	vb__extents_free(&x);
}

static void numbers_are_found_and_removed(void **state)
{
	struct vb__numbers numbers = { .slots = NULL };
	static char what[3000];

	(void)state;
	assert_null(vb__numbers_get(&numbers, 5));
	vb__numbers_remove(&numbers, 5);
	for (uint32_t n = 1; n < 3000; n++)
		assert_true(vb__numbers_set(&numbers, n * 7919, &what[n]));
	for (uint32_t n = 1; n < 3000; n += 2)
		vb__numbers_remove(&numbers, n * 7919);
	for (uint32_t n = 1; n < 3000; n++)
		assert_ptr_equal(vb__numbers_get(&numbers, n * 7919), n % 2 ? NULL : &what[n]);
	assert_int_equal(numbers.count, 1499);
	vb__numbers_free(&numbers);
}

static void names_are_new_once(void **state)
{
	struct vb__nameset set = { .slots = NULL };
	char name[20];

	(void)state;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 2000; i++) {
			int len = snprintf(name, sizeof(name), "%d", i);

			assert_int_equal(vb__nameset_add(&set, 9, name, (size_t)len), !round);
		}
	assert_true(vb__nameset_has(&set, 9, "1999", 4));
	assert_false(vb__nameset_has(&set, 9, "2000", 4));
	assert_int_equal(set.count, 2000);
	vb__nameset_free(&set);
	assert_false(vb__nameset_has(&set, 9, "1", 1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(many_places_few_descriptors),
		TEST(a_deep_place_is_found_again),
		TEST(what_was_held_stays_open),
		TEST(what_is_no_directory_is_refused),
		TEST(paths_are_as_they_are_shown),
		TEST(each_path_has_its_hash),
		TEST(extents_join),
		TEST(extents_are_right_in_any_order),
		TEST(numbers_are_found_and_removed),
		TEST(names_are_new_once),
	};

	return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
