/* SPDX-License-Identifier: Apache-2.0 */
/* Walking: what is offered of nasty trees, and in which order. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tree/content.h"
#include "tree/walk.h"
#include "tree_kit.h"

/* An offer, kept. */
struct kept {
	struct vb__offer offer;
	char *path, *words;
	uint8_t *xattrs;
	bool follow;
};

struct walking {
	struct kit *kit;
	struct vb_tree_options options;
	const char *paths[4];
	atomic_bool stop;

	struct kept *kept;
	size_t count, room;
	/* Called for each. */
	int (*meanwhile)(struct walking *w, const struct vb__walked *walked);
	unsigned seen, fds_max;
};

static unsigned open_descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static char *text_of(struct vb__slice slice)
{
	return strndup(slice.len ? (const char *)slice.data : "", slice.len);
}

static int keep(void *arg, const struct vb__walked *walked)
{
	struct walking *w = arg;
	struct kept *kept;

	if (w->meanwhile) {
		int rc = w->meanwhile(w, walked);

		if (rc)
			return rc;
	}
	if (w->count == w->room) {
		w->room = w->room * 2 + 64;
		w->kept = realloc(w->kept, w->room * sizeof(*kept));
	}
	kept = &w->kept[w->count++];
	*kept = (struct kept){ .offer = *walked->offer, .follow = walked->follow };
	kept->path = strdup(walked->offer->kind == VB__OFFER_LISTED ? "" : walked->path);
	kept->words = text_of(walked->offer->target);
	kept->xattrs = malloc(walked->offer->xattrs.len + 1);
	if (walked->offer->xattrs.len)
		memcpy(kept->xattrs, walked->offer->xattrs.data, walked->offer->xattrs.len);
	return 0;
}

static int walk_with(struct walking *w)
{
	struct vb__dirs dirs;
	struct vb__filter *filter = NULL;
	struct vb__walk walk = {
		.paths = w->paths,
		.options = &w->options,
		.dirs = &dirs,
		.stop = &w->stop,
		.take = keep,
		.arg = w,
	};
	int rc;

	while (walk.path_count < COUNT(w->paths) && w->paths[walk.path_count])
		walk.path_count++;
	vb__dirs_init(&dirs);
	assert_int_equal(vb__filter_create(w->options.rules, &filter, NULL), 0);
	walk.filter = filter;
	rc = vb__walk(&walk, NULL);
	vb__filter_destroy(filter);
	assert_int_equal(dirs.open, 0);
	vb__dirs_destroy(&dirs);
	return rc;
}

static struct walking walk_of(struct kit *kit, const char *path, unsigned keep_what)
{
	return (struct walking){ .kit = kit,
				 .options = { .keep = keep_what, .recursive = true },
				 .paths = { path } };
}

static void forget(struct walking *w)
{
	for (size_t i = 0; i < w->count; i++) {
		free(w->kept[i].path);
		free(w->kept[i].words);
		free(w->kept[i].xattrs);
	}
	free(w->kept);
	w->kept = NULL;
	w->count = w->room = 0;
}

/* The only one of that kind and path. */
static const struct kept *find(const struct walking *w, enum vb__offer_kind kind, const char *path)
{
	const struct kept *found = NULL;

	for (size_t i = 0; i < w->count; i++)
		if (w->kept[i].offer.kind == kind && strcmp(w->kept[i].path, path) == 0) {
			assert_null(found);
			found = &w->kept[i];
		}
	return found;
}

static const struct kept *find_any(const struct walking *w, const char *path)
{
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->kept[i].path, path) == 0)
			return &w->kept[i];
	return NULL;
}

/* Numbers ascend from 1, parents come first, and each directory is listed once, after its own. */
static void assert_well_formed(const struct walking *w)
{
	uint32_t number = 0;
	size_t directories = 0, listed = 0;
	bool *closed = calloc(w->count + 2, sizeof(bool));

	for (size_t i = 0; i < w->count; i++) {
		const struct vb__offer *o = &w->kept[i].offer;

		if (o->kind == VB__OFFER_LISTED) {
			assert_in_range(o->number, 1, number);
			assert_false(closed[o->number]);
			closed[o->number] = true;
			listed++;
			continue;
		}
		assert_true(o->parent <= number);
		assert_false(o->parent && closed[o->parent]);
		if (o->kind == VB__OFFER_MISSED)
			continue;
		assert_int_equal(o->number, ++number);
		directories += o->kind == VB__OFFER_DIRECTORY;
	}
	assert_int_equal(directories, listed);
	free(closed);
}

static void every_kind_of_entry_is_offered_as_what_it_is(void **state)
{
	struct kit *kit = *state;
	struct walking w = walk_of(kit, kit_path(kit, "top"), VB_KEEP_ARCHIVE);
	const struct kept *file, *link, *fifo, *top;
	struct timespec times[2] = { { .tv_nsec = UTIME_NOW },
				     { .tv_sec = -7, .tv_nsec = 123456789 } };

	make_dir(kit, "top");
	make_file(kit, "top/file", 5000);
	assert_int_equal(utimensat(kit->dir_fd, "top/file", times, 0), 0);
	assert_int_equal(fchmodat(kit->dir_fd, "top/file", 04751, 0), 0);
	make_link(kit, "top/link", "no/where");
	assert_int_equal(mkfifoat(kit->dir_fd, "top/fifo", 0640), 0);
	assert_int_equal(walk_with(&w), 0);
	assert_well_formed(&w);
	top = find(&w, VB__OFFER_DIRECTORY, "top");
	file = find(&w, VB__OFFER_FILE, "top/file");
	link = find(&w, VB__OFFER_SYMLINK, "top/link");
	fifo = find(&w, VB__OFFER_SPECIAL, "top/fifo");
	assert_true(top && file && link && fifo);
	assert_int_equal(w.count, 5);
	assert_int_equal(top->offer.number, 1);
	assert_int_equal(top->offer.parent, 0);
	assert_int_equal(file->offer.parent, 1);
	assert_int_equal(file->offer.size, 5000);
	assert_int_equal(file->offer.mode, S_IFREG | 04751);
	assert_true(file->offer.mtime_s == -7);
	assert_int_equal(file->offer.mtime_ns, 123456789);
	assert_int_equal(file->offer.flags, 0);
	assert_string_equal(link->words, "no/where");
	assert_int_equal(fifo->offer.mode & S_IFMT, S_IFIFO);
	forget(&w);
}

static void device_numbers_are_told(void **state)
{
	struct kit *kit = *state;
	struct walking w = walk_of(kit, "/dev/null", VB_KEEP_ARCHIVE);

	(void)kit;
	assert_int_equal(walk_with(&w), 0);
	assert_int_equal(w.count, 1);
	assert_int_equal(w.kept[0].offer.kind, VB__OFFER_SPECIAL);
	assert_int_equal(w.kept[0].offer.device_major, 1);
	assert_int_equal(w.kept[0].offer.device_minor, 3);
	forget(&w);
}

static void paths_stand_under_their_last_component_or_as_contents(void **state)
{
	struct kit *kit = *state;
	static const struct {
		const char *path;
		bool contents;
	} cases[] = { { "a/b", false },	 { "a/b/", false },  { "a//b//", false },
		      { "a/b/.", true }, { "a/b/./", true }, { "a/b/c/..", true },
		      { "./a/b", false } };

	make_dir(kit, "a");
	make_dir(kit, "a/b");
	make_dir(kit, "a/b/c");
	make_file(kit, "a/b/file", 1);
	assert_int_equal(chdir(kit->dir), 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct walking w = walk_of(kit, cases[i].path, VB_KEEP_ARCHIVE);

		assert_int_equal(walk_with(&w), 0);
		assert_well_formed(&w);
		assert_int_equal(w.count, 5);
		assert_int_equal(w.kept[0].offer.kind, VB__OFFER_DIRECTORY);
		assert_int_equal(w.kept[0].offer.name.len, cases[i].contents ? 0 : 1);
		assert_non_null(find(&w, VB__OFFER_FILE, cases[i].contents ? "file" : "b/file"));
		forget(&w);
	}
	assert_int_equal(chdir("/"), 0);
}

static void file_by_a_bare_name_and_in_the_root_are_found(void **state)
{
	struct kit *kit = *state;
	struct walking w = walk_of(kit, "file", 0), root = walk_of(kit, "/dev", VB_KEEP_ARCHIVE);

	make_file(kit, "file", 1);
	assert_int_equal(chdir(kit->dir), 0);
	assert_int_equal(walk_with(&w), 0);
	assert_int_equal(w.count, 1);
	assert_int_equal(w.kept[0].offer.kind, VB__OFFER_FILE);
	assert_string_equal(w.kept[0].path, "file");
	forget(&w);
	assert_int_equal(chdir("/"), 0);
	root.options.recursive = false;
	assert_int_equal(walk_with(&root), 0);
	assert_int_equal(root.count, 1);
	assert_string_equal(root.kept[0].path, "dev");
	assert_int_equal(root.kept[0].offer.native, EISDIR);
	forget(&root);
}

static void path_that_is_not_there_is_missed_and_the_rest_offered(void **state)
{
	struct kit *kit = *state;
	struct walking w = walk_of(kit, kit_path(kit, "absent"), 0);

	w.paths[1] = "";
	w.paths[2] = kit_path(kit, "no/such/place");
	w.paths[3] = kit_path(kit, "file");
	make_file(kit, "file", 1);
	assert_int_equal(walk_with(&w), 0);
	assert_well_formed(&w);
	assert_int_equal(w.count, 4);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(w.kept[i].offer.kind, VB__OFFER_MISSED);
		assert_int_equal(w.kept[i].offer.native, ENOENT);
		assert_int_equal(w.kept[i].offer.flags, 0);
		assert_string_equal(w.kept[i].words, "No such file or directory");
	}
	assert_int_equal(w.kept[3].offer.kind, VB__OFFER_FILE);
	forget(&w);
}

static void odd_names_are_as_good_as_others(void **state)
{
	static const char *const names[] = { "-rf", "new\nline", "\x1b[31m", "$(touch x)", " ",
					     "...", "\xff\xfe",	 "*",	     "a\\b",	   "\"'`" };
	struct kit *kit = *state;
	struct walking w = walk_of(kit, kit_path(kit, "."), VB_KEEP_ARCHIVE);
	char longest[256];

	memset(longest, 'x', 255);
	longest[255] = '\0';
	make_file(kit, longest, 0);
	for (size_t i = 0; i < COUNT(names); i++)
		make_file(kit, names[i], 0);
	assert_int_equal(walk_with(&w), 0);
	assert_well_formed(&w);
	for (size_t i = 0; i < COUNT(names); i++)
		assert_non_null(find(&w, VB__OFFER_FILE, names[i]));
	assert_non_null(find(&w, VB__OFFER_FILE, longest));
	assert_int_equal(w.count, COUNT(names) + 3);
	forget(&w);
}

static int watch_descriptors(struct walking *w, const struct vb__walked *walked)
{
	unsigned n = open_descriptors();

	(void)walked;
	w->fds_max = n > w->fds_max ? n : w->fds_max;
	return 0;
}

/* A path of about 12,000 bytes, and files on the way that are met before and after going down. */
static void tree_deeper_than_a_path_may_be_is_walked(void **state)
{
	enum {
		DEPTH = 300
	};
	struct kit *kit = *state;
	struct walking w = walk_of(kit, kit_path(kit, "d"), VB_KEEP_ARCHIVE);
	unsigned before, files = 0, incomplete = 0;
	char name[41];
	int fd;

	memset(name, 'n', 40);
	name[40] = '\0';
	make_dir(kit, "d");
	fd = openat(kit->dir_fd, "d", O_RDONLY);
	for (unsigned i = 0; i < DEPTH; i++) {
		int next;

		for (char c = 'a'; c < 'd'; c++) {
			char file[2] = { c, '\0' };

			close(openat(fd, file, O_CREAT | O_WRONLY, 0600));
		}
		assert_int_equal(mkdirat(fd, name, 0700), 0);
		next = openat(fd, name, O_RDONLY);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
	before = open_descriptors();
	w.meanwhile = watch_descriptors;
	assert_int_equal(walk_with(&w), 0);
	assert_well_formed(&w);
	for (size_t i = 0; i < w.count; i++) {
		assert_int_not_equal(w.kept[i].offer.kind, VB__OFFER_MISSED);
		files += w.kept[i].offer.kind == VB__OFFER_FILE;
		incomplete += w.kept[i].offer.flags & VB__OFFER_INCOMPLETE;
	}
	assert_int_equal(files, 3 * DEPTH);
	assert_int_equal(incomplete, 0);
	assert_int_equal(w.count, (DEPTH + 1) * 2 + 3 * DEPTH);
	assert_true(w.fds_max - before <= 2 * VB__DIRS_OPEN + 10);
	assert_int_equal(open_descriptors(), before);
	forget(&w);
}

static void symlinks_are_followed_unless_they_are_kept(void **state)
{
	struct kit *kit = *state;
	struct walking w = walk_of(kit, kit_path(kit, "top"), 0);

	make_dir(kit, "top");
	make_dir(kit, "top/real");
	make_file(kit, "top/real/file", 3);
	make_file(kit, "outside", 9);
	make_link(kit, "top/to_dir", "real");
	make_link(kit, "top/to_file", "../outside");
	make_link(kit, "top/broken", "nowhere");
	make_link(kit, "top/itself", "itself");
	make_link(kit, "top/real/up", "..");
	assert_int_equal(walk_with(&w), 0);
	assert_well_formed(&w);
	assert_non_null(find(&w, VB__OFFER_FILE, "top/to_dir/file"));
	assert_int_equal(find(&w, VB__OFFER_FILE, "top/to_file")->offer.size, 9);
	assert_true(find(&w, VB__OFFER_FILE, "top/to_file")->follow);
	assert_false(find(&w, VB__OFFER_FILE, "top/real/file")->follow);
	assert_string_equal(find(&w, VB__OFFER_MISSED, "top/broken")->words,
			    "a symlink that leads nowhere");
	assert_int_equal(find(&w, VB__OFFER_MISSED, "top/broken")->offer.flags, 0);
	assert_int_equal(find(&w, VB__OFFER_MISSED, "top/itself")->offer.native, ELOOP);
	assert_string_equal(find(&w, VB__OFFER_MISSED, "top/real/up")->words,
			    "a symlink that leads back up");
	assert_non_null(find(&w, VB__OFFER_MISSED, "top/to_dir/up"));
	forget(&w);
	w.options.keep = VB_KEEP_SYMLINKS;
	assert_int_equal(walk_with(&w), 0);
	assert_non_null(find(&w, VB__OFFER_SYMLINK, "top/to_dir"));
	assert_null(find_any(&w, "top/to_dir/file"));
	assert_non_null(find(&w, VB__OFFER_SYMLINK, "top/itself"));
	forget(&w);
}

static void symlink_of_the_users_own_is_kept_unless_a_slash_follows(void **state)
{
	struct kit *kit = *state;
	struct walking w = walk_of(kit, kit_path(kit, "link"), VB_KEEP_SYMLINKS);

	make_dir(kit, "real");
	make_file(kit, "real/file", 1);
	make_link(kit, "link", "real");
	assert_int_equal(walk_with(&w), 0);
	assert_int_equal(w.count, 1);
	assert_int_equal(w.kept[0].offer.kind, VB__OFFER_SYMLINK);
	forget(&w);
	w.paths[0] = kit_path(kit, "link/");
	assert_int_equal(walk_with(&w), 0);
	assert_non_null(find(&w, VB__OFFER_DIRECTORY, "link"));
	assert_non_null(find(&w, VB__OFFER_FILE, "link/file"));
	forget(&w);
}

static void hard_links_name_the_first(void **state)
{
	struct kit *kit = *state;
	struct walking w = walk_of(kit, kit_path(kit, "."), VB_KEEP_ARCHIVE);
	uint32_t first = 0, links = 0;

	make_dir(kit, "dir");
	make_file(kit, "one", 7);
	assert_int_equal(linkat(kit->dir_fd, "one", kit->dir_fd, "dir/two", 0), 0);
	assert_int_equal(linkat(kit->dir_fd, "one", kit->dir_fd, "three", 0), 0);
	make_file(kit, "single", 7);
	assert_int_equal(walk_with(&w), 0);
	assert_well_formed(&w);
	for (size_t i = 0; i < w.count; i++) {
		const struct vb__offer *o = &w.kept[i].offer;

		if (o->kind == VB__OFFER_FILE && o->flags & VB__OFFER_LINKED) {
			assert_int_equal(first, 0);
			first = o->number;
		}
		if (o->kind == VB__OFFER_HARDLINK) {
			assert_int_equal(o->first, first);
			links++;
		}
	}
	assert_true(first);
	assert_int_equal(links, 2);
	assert_int_equal(find(&w, VB__OFFER_FILE, "single")->offer.flags, 0);
	forget(&w);
	w.options.keep = 0;
	assert_int_equal(walk_with(&w), 0);
	assert_non_null(find(&w, VB__OFFER_FILE, "one"));
	assert_non_null(find(&w, VB__OFFER_FILE, "three"));
	forget(&w);
}

static void sparse_file_is_marked(void **state)
{
	struct kit *kit = *state;
	struct walking w = walk_of(kit, kit_path(kit, "file"), 0);

	make_file(kit, "file", 10);
	assert_int_equal(truncate(w.paths[0], 10 * MIB), 0);
	assert_int_equal(walk_with(&w), 0);
	assert_int_equal(w.kept[0].offer.flags, VB__OFFER_SPARSE);
	assert_int_equal(w.kept[0].offer.size, 10 * MIB);
	forget(&w);
}

static void attributes_are_read_if_they_are_kept(void **state)
{
	struct kit *kit = *state;
	struct walking w = walk_of(kit, kit_path(kit, "file"), VB_KEEP_XATTRS);
	struct vb__xattr xattr;
	const struct vb__offer *offer;
	size_t at = 0;

	make_file(kit, "file", 1);
	if (setxattr(w.paths[0], "user.test", "val\0ue", 6, 0)) {
		print_message("no attributes here: %s\n", strerror(errno));
		skip();
	}
	assert_int_equal(walk_with(&w), 0);
	offer = &w.kept[0].offer;
	assert_true(offer->xattrs.len > 0);
	while (at < offer->xattrs.len) {
		assert_true(vb__xattr_decode(&xattr, w.kept[0].xattrs, offer->xattrs.len, &at));
		if (strcmp(xattr.name, "user.test") == 0)
			break;
	}
	assert_string_equal(xattr.name, "user.test");
	assert_int_equal(xattr.value.len, 6);
	assert_memory_equal(xattr.value.data, "val\0ue", 6);
	forget(&w);
	w.options.keep = VB_KEEP_ACLS;
	assert_int_equal(walk_with(&w), 0);
	assert_int_equal(w.kept[0].offer.xattrs.len, 0);
	forget(&w);
}

static void owners_are_named_only_if_they_are_kept(void **state)
{
	struct kit *kit = *state;
	struct walking w = walk_of(kit, "/etc/passwd", VB_KEEP_OWNER);

	(void)kit;
	assert_int_equal(walk_with(&w), 0);
	assert_int_equal(w.kept[0].offer.uid, 0);
	assert_int_equal(w.kept[0].offer.user.len, 4);
	forget(&w);
	w.options.keep = VB_KEEP_OWNER | VB_KEEP_NUMERIC_IDS;
	assert_int_equal(walk_with(&w), 0);
	assert_int_equal(w.kept[0].offer.user.len, 0);
	forget(&w);
}

static void contents_are_hashed_if_that_decides(void **state)
{
	static const uint8_t empty[] = { 0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
					 0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f };
	struct kit *kit = *state;
	struct walking w = walk_of(kit, kit_path(kit, "."), 0);
	uint8_t content[16];
	int fd;

	make_file(kit, "empty", 0);
	make_file(kit, "some", 700 * KIB);
	w.options.select = VB_SELECT_DIFFERENT;
	assert_int_equal(walk_with(&w), 0);
	assert_true(find(&w, VB__OFFER_FILE, "empty")->offer.flags & VB__OFFER_HASHED);
	assert_memory_equal(find(&w, VB__OFFER_FILE, "empty")->offer.content, empty, 16);
	fd = openat(kit->dir_fd, "some", O_RDONLY);
	assert_int_equal(vb__content_hash(fd, content, NULL, -1), 0);
	close(fd);
	assert_memory_equal(find(&w, VB__OFFER_FILE, "some")->offer.content, content, 16);
	assert_memory_not_equal(content, empty, 16);
	forget(&w);
}

static void what_is_not_asked_for_is_missed(void **state)
{
	struct kit *kit = *state;
	struct walking w = walk_of(kit, kit_path(kit, "."), 0);

	assert_int_equal(mkfifoat(kit->dir_fd, "fifo", 0600), 0);
	make_file(kit, "file", 1);
	assert_int_equal(walk_with(&w), 0);
	assert_string_equal(find(&w, VB__OFFER_MISSED, "fifo")->words, "not a regular file");
	assert_non_null(find(&w, VB__OFFER_FILE, "file"));
	forget(&w);
	w.options.recursive = false;
	assert_int_equal(walk_with(&w), 0);
	assert_int_equal(w.count, 1);
	assert_int_equal(w.kept[0].offer.kind, VB__OFFER_MISSED);
	assert_int_equal(w.kept[0].offer.native, EISDIR);
	forget(&w);
}

static void rules_leave_things_out_with_all_that_is_in_them(void **state)
{
	static const char *const rules[] = { "+ /top/a.o", "- *.o", "- /top/left/", NULL };
	struct kit *kit = *state;
	struct walking w = walk_of(kit, kit_path(kit, "top"), VB_KEEP_ARCHIVE);

	make_dir(kit, "top");
	make_dir(kit, "top/left");
	make_file(kit, "top/left/file", 1);
	make_file(kit, "top/a.o", 1);
	make_file(kit, "top/b.o", 1);
	make_file(kit, "top/c.c", 1);
	w.options.rules = rules;
	assert_int_equal(walk_with(&w), 0);
	assert_well_formed(&w);
	assert_non_null(find(&w, VB__OFFER_FILE, "top/a.o"));
	assert_non_null(find(&w, VB__OFFER_FILE, "top/c.c"));
	assert_int_equal(w.count, 4);
	forget(&w);
}

/* When the directory has been offered, and before it is read further. */
static int remove_others(struct walking *w, const struct vb__walked *walked)
{
	if (walked->offer->kind != VB__OFFER_FILE || w->seen++)
		return 0;
	for (unsigned i = 0; i < 50; i++) {
		char name[20];

		snprintf(name, sizeof(name), "d/%u", i);
		if (strcmp(name, walked->path) != 0)
			assert_int_equal(unlinkat(w->kit->dir_fd, name, 0), 0);
	}
	return 0;
}

static void what_vanishes_while_it_is_walked_over_is_told_so(void **state)
{
	struct kit *kit = *state;
	struct walking w = walk_of(kit, kit_path(kit, "d"), VB_KEEP_ARCHIVE);
	unsigned vanished = 0;

	make_dir(kit, "d");
	for (unsigned i = 0; i < 50; i++) {
		char name[20];

		snprintf(name, sizeof(name), "d/%u", i);
		make_file(kit, name, 1);
	}
	w.meanwhile = remove_others;
	assert_int_equal(walk_with(&w), 0);
	assert_well_formed(&w);
	for (size_t i = 0; i < w.count; i++) {
		if (w.kept[i].offer.kind != VB__OFFER_MISSED)
			continue;
		assert_int_equal(w.kept[i].offer.flags, VB__OFFER_VANISHED);
		vanished++;
	}
	assert_int_equal(vanished, 49);
	forget(&w);
}

/* Root may read everything, so somebody else has to look. */
static void as_somebody_else(void (*look)(struct kit *kit), struct kit *kit)
{
	int status;
	pid_t pid;

	assert_int_equal(fchmod(kit->dir_fd, 0755), 0);
	pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(2);
		look(kit);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void look_at_locked(struct kit *kit)
{
	struct walking w = walk_of(kit, kit_path(kit, "d"), 0);
	unsigned incomplete = 0;
	const struct kept *missed;

	if (walk_with(&w))
		_exit(3);
	missed = find(&w, VB__OFFER_MISSED, "d/locked");
	for (size_t i = 0; i < w.count; i++)
		incomplete += w.kept[i].offer.kind == VB__OFFER_LISTED &&
			      w.kept[i].offer.flags & VB__OFFER_INCOMPLETE;
	if (!missed || missed->offer.native != EACCES || missed->offer.flags || incomplete != 1 ||
	    !find(&w, VB__OFFER_DIRECTORY, "d/locked") || !find(&w, VB__OFFER_FILE, "d/file"))
		_exit(4);
	forget(&w);
}

static void directory_that_may_not_be_read_is_offered_as_incomplete(void **state)
{
	struct kit *kit = *state;

	make_dir(kit, "d");
	make_dir(kit, "d/locked");
	make_file(kit, "d/locked/secret", 1);
	make_file(kit, "d/file", 1);
	assert_int_equal(fchmodat(kit->dir_fd, "d/locked", 0, 0), 0);
	as_somebody_else(look_at_locked, kit);
	assert_int_equal(fchmodat(kit->dir_fd, "d/locked", 0700, 0), 0);
}

static int stop_now(struct walking *w, const struct vb__walked *walked)
{
	(void)walked;
	w->seen++;
	atomic_store(&w->stop, true);
	return 0;
}

static int refuse(struct walking *w, const struct vb__walked *walked)
{
	(void)walked;
	return ++w->seen == 3 ? VB_ERR_NOMEM : 0;
}

static void walk_ends_when_it_is_told_to(void **state)
{
	struct kit *kit = *state;
	struct walking w = walk_of(kit, "/usr", VB_KEEP_ARCHIVE);
	unsigned before = open_descriptors();

	(void)kit;
	w.meanwhile = stop_now;
	assert_int_equal(walk_with(&w), VB_ERR_INTERRUPTED);
	assert_in_range(w.seen, 1, 10);
	forget(&w);
	w.seen = 0;
	w.stop = false;
	w.meanwhile = refuse;
	assert_int_equal(walk_with(&w), VB_ERR_NOMEM);
	assert_int_equal(w.seen, 3);
	assert_int_equal(open_descriptors(), before);
	forget(&w);
}

static void identity_changes_with_the_file(void **state)
{
	struct kit *kit = *state;
	const char *path = kit_path(kit, "file");
	struct stat one, two;

	make_file(kit, "file", 10);
	assert_int_equal(stat(path, &one), 0);
	assert_int_equal(stat(path, &two), 0);
	assert_int_equal(vb__file_identity(&one), vb__file_identity(&two));
	two.st_ctim.tv_nsec ^= 1;
	assert_int_not_equal(vb__file_identity(&one), vb__file_identity(&two));
	two = one;
	two.st_size++;
	assert_int_not_equal(vb__file_identity(&one), vb__file_identity(&two));
}

#define IN_KIT(test) cmocka_unit_test_setup_teardown(test, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_KIT(every_kind_of_entry_is_offered_as_what_it_is),
		IN_KIT(device_numbers_are_told),
		IN_KIT(paths_stand_under_their_last_component_or_as_contents),
		IN_KIT(file_by_a_bare_name_and_in_the_root_are_found),
		IN_KIT(path_that_is_not_there_is_missed_and_the_rest_offered),
		IN_KIT(odd_names_are_as_good_as_others),
		IN_KIT(tree_deeper_than_a_path_may_be_is_walked),
		IN_KIT(symlinks_are_followed_unless_they_are_kept),
		IN_KIT(symlink_of_the_users_own_is_kept_unless_a_slash_follows),
		IN_KIT(hard_links_name_the_first),
		IN_KIT(sparse_file_is_marked),
		IN_KIT(attributes_are_read_if_they_are_kept),
		IN_KIT(owners_are_named_only_if_they_are_kept),
		IN_KIT(contents_are_hashed_if_that_decides),
		IN_KIT(what_is_not_asked_for_is_missed),
		IN_KIT(rules_leave_things_out_with_all_that_is_in_them),
		IN_KIT(what_vanishes_while_it_is_walked_over_is_told_so),
		IN_KIT(directory_that_may_not_be_read_is_offered_as_incomplete),
		IN_KIT(walk_ends_when_it_is_told_to),
		IN_KIT(identity_changes_with_the_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
