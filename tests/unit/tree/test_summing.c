/* SPDX-License-Identifier: Apache-2.0 */
/* Sums: the same where a sync would do nothing, and only there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tree/part_name.h"
#include "tree/target.h"
#include "tree_kit.h"

static const uint8_t key[VB_TREE_KEY_BYTES] = { 1, 2, 3 };

/* Two trees: what a sync would make of the one, and the other. */
struct pair {
	struct vb_tree_options options;
	const char *source, *target;
	struct vb_tree_sum here, there;
	struct vb_error err;
};

static struct pair pair_of(const char *source, const char *target)
{
	return (struct pair){ .options = { .keep = VB_KEEP_ARCHIVE,
					   .select = VB_SELECT_CHANGED,
					   .recursive = true,
					   .delete_others = true },
			      .source = source,
			      .target = target };
}

/* A shell's work in the kit's directory; false if it cannot be done here. */
static bool run(struct kit *kit, const char *command)
{
	char line[1024];

	assert_true(snprintf(line, sizeof(line), "export TZ=UTC && cd '%s' && { %s; } 2>/dev/null",
			     kit->dir, command) < (int)sizeof(line));
	return system(line) == 0;
}

static int sum_there(struct pair *p)
{
	return vb_tree_sum(
		&(struct vb_tree_scope){
			.paths = &p->source, .path_count = 1, .target = p->target, .key = key },
		&p->options, &p->there, &p->err);
}

static int sum_here(struct pair *p)
{
	return vb_tree_sum(
		&(struct vb_tree_scope){ .paths = &p->source, .path_count = 1, .key = key },
		&p->options, &p->here, &p->err);
}

static bool is_same(struct pair *p)
{
	assert_int_equal(sum_here(p), 0);
	return sum_there(p) == 0 && memcmp(&p->here, &p->there, sizeof(p->here)) == 0;
}

static void sync_trees(struct pair *p)
{
	struct vb_tree_report report;

	assert_int_equal(
		vb_tree_copy(&p->source, 1, p->target, &p->options, NULL, &report, &p->err), 0);
	assert_int_equal(report.failed, 0);
}

/* With something of every kind. The directory's time is put back after each change, here and below. */
static void make_tree(struct kit *kit)
{
	assert_true(run(kit,
			"mkdir -p from/sub/deeper from/empty && cd from &&"
			"echo one >one && echo two >two && echo three >sub/three &&"
			"ln one sub/one && ln sub/three sub/deeper/three &&"
			"echo out >out && ln out ../outside &&"
			"ln -s one link && mkfifo fifo && touch sub/deeper/nothing &&"
			"find . -depth -exec touch -h -d '2020-02-02 02:02:02.222222222' {} +"));
	(void)run(kit, "setfattr -n user.one -v 1 from/one from/sub");
	(void)run(kit, "setfacl -m u:1234:r from/two");
	(void)run(kit, "setfacl -d -m u:1234:r from/sub/deeper");
	(void)run(kit, "mknod from/node c 1 3 && touch -h -d '2020-02-02' from/node from");
}

static const struct {
	const char *what, *command;
} changes[] = {
	{ "size", "echo >>two && touch -r ../from/two two" },
	{ "time by a nanosecond", "touch -d '2020-02-02 02:02:02.222222223' two" },
	{ "time of a directory", "touch -d 2021-01-01 sub/deeper" },
	{ "time of the top", "touch -d 2021-01-01 ." },
	{ "time of a link", "touch -h -d 2021-01-01 link" },
	{ "mode", "chmod 600 two" },
	{ "mode of a directory", "chmod 700 empty" },
	{ "mode of a fifo", "chmod 600 fifo" },
	{ "setuid", "chmod u+s two" },
	{ "owner", "chown 1234 two" },
	{ "group", "chgrp 1234 two" },
	{ "owner of a link", "chown -h 1234 link" },
	{ "an attribute more", "setfattr -n user.more -v 1 two" },
	{ "an attribute less", "setfattr -x user.one one" },
	{ "an attribute's value", "setfattr -n user.one -v 2 one" },
	{ "an attribute's name", "setfattr -x user.one sub && setfattr -n user.two -v 1 sub" },
	{ "root's attribute", "setfattr -n trusted.root -v 1 two" },
	{ "an ACL less", "setfacl -b two" },
	{ "an ACL more", "setfacl -m u:1:r one" },
	{ "an ACL that differs", "setfacl -m u:1234:rw,m::r two" },
	{ "a default ACL less", "setfacl -k sub/deeper" },
	{ "where a link leads to", "ln -snf two link && touch -h -r ../from/link link" },
	{ "file for link", "rm link && echo >link" },
	{ "link for file", "rm two && ln -s one two" },
	{ "directory for file", "rm two && mkdir two" },
	{ "file for directory", "rmdir empty && echo >empty" },
	{ "file for fifo", "rm fifo && : >fifo && touch -r ../from/fifo fifo" },
	{ "a device's number", "rm node && mknod node c 1 5 && touch -r ../from/node node" },
	{ "block for character", "rm node && mknod node b 1 3 && touch -r ../from/node node" },
	{ "names that belong together and do not", "cp -p sub/one x && mv x sub/one" },
	{ "names that do not and do", "ln -f sub/three two" },
	{ "names that belong to the wrong file",
	  "ln -f sub/one sub/deeper/three && ln -f sub/three out" },
	{ "missing file", "rm two" },
	{ "missing directory", "rmdir empty" },
	{ "missing name", "rm sub/one" },
	{ "further file", "echo >more" },
	{ "further directory", "mkdir sub/more" },
	{ "another name", "mv two tow" },
	{ "another directory", "mv two sub" },
	{ "swapped", "mv sub/deeper/nothing . && mv two sub/deeper/nothing && mv nothing two" },
};

static void every_difference_that_a_sync_would_mend_makes_another_sum(void **state)
{
	struct kit *kit = *state;
	struct pair p = pair_of(kit_path(kit, "from/."), kit_path(kit, "to"));
	unsigned seen = 0;

	make_tree(kit);
	make_dir(kit, "to");
	sync_trees(&p);
	assert_true(is_same(&p));
	for (size_t i = 0; i < COUNT(changes); i++) {
		char command[512];

		snprintf(command, sizeof(command), "cd to && %s", changes[i].command);
		if (!run(kit, command))
			continue; /* not for us, or not of this file system */
		/* What stands in a directory is no reason that it has another time. */
		assert_true(run(kit, "for d in . sub sub/deeper; do case $(stat -c %Y to/$d) in "
				     "1609459200) ;; *) touch -r from/$d to/$d;; esac; done"));
		if (is_same(&p))
			fail_msg("the sum does not tell: %s", changes[i].what);
		sync_trees(&p);
		if (!is_same(&p))
			fail_msg("%s: a sync is no remedy, or the sum is wrong", changes[i].what);
		seen++;
	}
	assert_true(seen > COUNT(changes) / 2);
	assert_true(run(kit, "rm from/two && touch -d 2020-02-02 from"));
	assert_false(is_same(&p));
}

static void what_a_sync_would_leave_makes_no_difference(void **state)
{
	struct kit *kit = *state;
	struct pair p = pair_of(kit_path(kit, "from/."), kit_path(kit, "to"));

	make_tree(kit);
	make_dir(kit, "to");
	sync_trees(&p);
	/* Other names outside of the tree, the times of access and change, the contents themselves. */
	assert_true(run(kit, "ln to/two outside2 && touch -a -d 2021-01-01 to/one &&"
			     "echo owt >to/two && touch -r from/two to/two"));
	assert_true(is_same(&p));
	assert_int_equal(p.here.bytes, 4 + 4 + 6 + 4);
	assert_in_range(p.here.entries, 13, 14); /* with a device, if there may be one */
	p.options.keep = 0;
	assert_true(run(kit, "rm from/link to/link from/fifo to/fifo from/node to/node || :"));
	assert_true(run(kit, "chmod 600 to/two && chmod 700 to/sub && touch to/sub &&"
			     "cp -p to/one x && mv x to/one"));
	assert_true(is_same(&p));
	assert_true(run(kit, "touch to/two"));
	assert_false(is_same(&p));
}

static void each_stands_under_its_name_in_a_target_full_of_others(void **state)
{
	struct kit *kit = *state;
	struct pair p = pair_of(kit_path(kit, "from"), kit_path(kit, "to"));

	make_tree(kit);
	make_dir(kit, "to");
	make_file(kit, "to/other", 1);
	assert_int_equal(sum_there(&p), VB_ERR_UNSUPPORTED);
	sync_trees(&p);
	assert_true(is_same(&p));
	assert_true(run(kit, "ln -s to again"));
	p.target = kit_path(kit, "again");
	assert_true(is_same(&p));
	p.target = kit_path(kit, "to/from");
	assert_false(is_same(&p));
}

/* What the user wants to be followed is no link there; one that is there is never followed. */
static void links_are_followed_at_the_source_alone(void **state)
{
	struct kit *kit = *state;
	struct pair p = pair_of(kit_path(kit, "from"), kit_path(kit, "to"));

	p.options.keep = VB_KEEP_TIMES | VB_KEEP_MODE;
	assert_true(run(kit, "mkdir from to && echo >from/one && ln -s one from/link"));
	sync_trees(&p);
	assert_true(is_same(&p));
	assert_true(run(kit, "ln -sf one to/from/link"));
	assert_false(is_same(&p));
	assert_true(run(kit, "rm -r to/from && ln -s ../from to/from"));
	assert_false(is_same(&p));
}

static void what_is_excluded_does_not_count(void **state)
{
	struct kit *kit = *state;
	struct pair p = pair_of(kit_path(kit, "from/."), kit_path(kit, "to"));
	static const char *const rules[] = { "- *.o", "- /sub/", NULL };

	make_tree(kit);
	make_dir(kit, "to");
	p.options.rules = rules;
	sync_trees(&p);
	assert_true(run(kit, "mkdir to/sub && echo >to/x.o && echo >from/sub/x &&"
			     "touch -r from to"));
	assert_true(is_same(&p));
	p.options.rules = NULL;
	assert_false(is_same(&p));
}

static void where_it_cannot_be_told_there_is_no_sum(void **state)
{
	struct kit *kit = *state;
	struct pair p = pair_of(kit_path(kit, "from"), kit_path(kit, "to"));

	make_tree(kit);
	p.options.into_directory = true;
	assert_true(sum_there(&p) < 0);
	assert_int_equal(faccessat(kit->dir_fd, "to", F_OK, 0), -1);
	make_file(kit, "to", 1);
	assert_true(sum_there(&p) < 0);
	p.source = kit_path(kit, "nothing");
	assert_int_equal(sum_here(&p), VB_ERR_UNSUPPORTED);
	p.source = kit_path(kit, "from");
	p.options.recursive = false;
	assert_int_equal(sum_here(&p), VB_ERR_UNSUPPORTED);
	p.options.recursive = true;
	p.options.keep &= ~(unsigned)VB_KEEP_SPECIALS;
	assert_int_equal(sum_here(&p), VB_ERR_UNSUPPORTED);
	p.options.select = VB_SELECT_DIFFERENT;
	assert_int_equal(sum_here(&p), VB_ERR_INVALID);
}

/* A try that failed has left its journal: the next one has something to do. */
static void what_an_earlier_try_has_left_is_not_overlooked(void **state)
{
	struct kit *kit = *state;
	struct pair p = pair_of(kit_path(kit, "from"), kit_path(kit, "to"));
	struct vb__target target;
	char name[VB__JOURNAL_NAME], path[256];
	uint64_t tag;
	bool as;

	make_tree(kit);
	make_dir(kit, "to");
	sync_trees(&p);
	assert_true(is_same(&p));
	assert_int_equal(vb__target_open(&target, p.target, &p.options, NULL), 0);
	close(vb__target_choose(&target, "from", &as, &tag));
	vb__target_close(&target);
	vb__journal_name(name, tag);
	snprintf(path, sizeof(path), "to/%s", name);
	make_file(kit, path, 0);
	assert_int_equal(sum_there(&p), VB_ERR_UNSUPPORTED);
	assert_int_equal(unlinkat(kit->dir_fd, path, 0), 0);
	assert_true(is_same(&p));
	snprintf(path, sizeof(path), "from/%s", name);
	make_file(kit, path, 0);
	assert_int_equal(sum_here(&p), VB_ERR_UNSUPPORTED);
}

/* Also among names that are left out. */
static void it_stops_when_it_is_told_to(void **state)
{
	static const char *const nothing[] = { "- /from/*", NULL };
	struct kit *kit = *state;
	struct pair p = pair_of(kit_path(kit, "from"), NULL);

	make_tree(kit);
	assert_int_equal(eventfd_write(kit->cancel_fd, 1), 0);
	p.options.rules = nothing;
	assert_int_equal(vb_tree_sum(&(struct vb_tree_scope){ .paths = &p.source,
							      .path_count = 1,
							      .key = key,
							      .stop_fd = kit->cancel_fd },
				     &p.options, &p.here, &p.err),
			 VB_ERR_INTERRUPTED);
}

static void another_key_makes_another_sum(void **state)
{
	struct kit *kit = *state;
	struct pair p = pair_of(kit_path(kit, "from"), NULL);
	static const uint8_t other[VB_TREE_KEY_BYTES] = { 3, 2, 1 };

	make_tree(kit);
	assert_int_equal(sum_here(&p), 0);
	assert_int_equal(vb_tree_sum(&(struct vb_tree_scope){ .paths = &p.source,
							      .path_count = 1,
							      .key = other },
				     &p.options, &p.there, &p.err),
			 0);
	assert_memory_not_equal(p.here.digest, p.there.digest, sizeof(p.here.digest));
}

static int sum_of_two(const struct pair *p, const char *one, const char *two)
{
	const char *paths[] = { one, two };
	struct vb_tree_sum sum;

	return vb_tree_sum(&(struct vb_tree_scope){ .paths = paths, .path_count = 2, .key = key },
			   &p->options, &sum, NULL);
}

static void several_of_which_one_may_hide_another_have_no_sum(void **state)
{
	struct kit *kit = *state;
	struct pair p = pair_of(kit_path(kit, "from/one"), NULL);
	const char *three = kit_path(kit, "from/sub/three");
	const char *sub = kit_path(kit, "from/sub");

	make_tree(kit);
	assert_int_equal(sum_of_two(&p, p.source, three), 0);
	assert_int_equal(sum_of_two(&p, p.source, p.source), VB_ERR_UNSUPPORTED);
	assert_int_equal(sum_of_two(&p, three, kit_path(kit, "from/sub/deeper/three")),
			 VB_ERR_UNSUPPORTED);
	assert_int_equal(sum_of_two(&p, sub, kit_path(kit, "from/.")), VB_ERR_UNSUPPORTED);
}

#define IN_KIT(name) cmocka_unit_test_setup_teardown(name, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_KIT(every_difference_that_a_sync_would_mend_makes_another_sum),
		IN_KIT(what_a_sync_would_leave_makes_no_difference),
		IN_KIT(each_stands_under_its_name_in_a_target_full_of_others),
		IN_KIT(links_are_followed_at_the_source_alone),
		IN_KIT(what_is_excluded_does_not_count),
		IN_KIT(where_it_cannot_be_told_there_is_no_sum),
		IN_KIT(what_an_earlier_try_has_left_is_not_overlooked),
		IN_KIT(it_stops_when_it_is_told_to),
		IN_KIT(another_key_makes_another_sum),
		IN_KIT(several_of_which_one_may_hide_another_have_no_sum),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
