/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summing up: what two walks come to, compared without telling each other anything but the result. Into
 * it goes of each entry whatever the receiver would look at in wanting.c, making.c and meta.c to leave
 * it as it is, and nothing else: what is changed there has to be changed here. Directories come in any
 * order, so the entries' hashes are added up. In doubt there is no sum.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef VB_HAVE_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include "core/failure.h"
#include "transfer/descriptor.h"
#include "tree/filter.h"
#include "tree/journal.h"
#include "tree/nameset.h"
#include "tree/numbers.h"
#include "tree/owners.h"
#include "tree/part_name.h"
#include "tree/target.h"
#include "tree/top.h"
#include "tree/walk.h"
#include "wire/bytes.h"

#define HASH_BYTES 16u
#define LINKED_MAX (1u << 17)	  /* files with several names: they are remembered */
#define PATH_LEN_MAX (2u * 4095u) /* not deeper than any receiver goes */

/* A hash, or several added up. */
struct sum {
	uint64_t low, high;
};

struct summing {
	const struct vb_tree_scope *scope;
	unsigned keep;
	struct vb__owners owners;
	struct vb__numbers linked; /* struct linked, by the number of the first name */
	struct sum total;
	struct vb_tree_sum *result;
	struct vb_error *err;
};

/* A file that may have several names. Which of them comes first is chance. */
struct linked {
	struct sum attributes, paths;
	uint64_t count;
};

static int give_up(struct summing *s, const char *object, const char *why)
{
	return vb__fail(s->err, &(struct vb__failure){ .code = VB_ERR_UNSUPPORTED,
						       .operation = "sum up",
						       .object = object,
						       .cause = why });
}

/* ---- Hashes ---- */

static struct sum hash(const struct summing *s, const void *data, size_t len)
{
	XXH128_hash_t h = XXH3_128bits_withSecret(data, len, s->scope->key, VB_TREE_KEY_BYTES);

	return (struct sum){ .low = h.low64, .high = h.high64 };
}

static void add(struct sum *to, struct sum more)
{
	to->low += more.low;
	to->high += more.high;
}

static uint8_t *put(uint8_t *to, struct sum sum)
{
	vb__put64(to, sum.low);
	vb__put64(to + 8, sum.high);
	return to + HASH_BYTES;
}

static struct sum hash_slice(const struct summing *s, struct vb__slice slice)
{
	return slice.len ? hash(s, slice.data, slice.len) : (struct sum){ .low = 0 };
}

/* Its attributes come in any order, too. The label of SELinux is the system's business. */
static int hash_xattrs(struct summing *s, struct vb__slice run, struct sum *to)
{
	uint8_t pair[2 * HASH_BYTES];
	struct vb__xattr x;
	size_t at = 0;

	while (at < run.len) {
		if (!vb__xattr_decode(&x, run.data, run.len, &at))
			return give_up(s, NULL, "attributes make no sense");
		if (strcmp(x.name, "security.selinux") == 0)
			continue;
		put(put(pair, hash(s, x.name, strlen(x.name))), hash_slice(s, x.value));
		add(to, hash(s, pair, sizeof(pair)));
	}
	return 0;
}

/* ---- Entries ---- */

/* By name where there is one, as a receiver looks for it; it must lead back to where it came from. */
static int hash_owner(struct summing *s, bool group, struct vb__slice name, uint32_t id,
		      struct sum *to)
{
	uint8_t number[5] = { group };

	if (!(s->keep & VB_KEEP_OWNER))
		return 0;
	if (name.len && vb__owners_find(&s->owners, group, name.data, name.len, ~id) != id)
		return give_up(s, NULL, "a user or group has several numbers");
	vb__put32(number + 1, id);
	*to = name.len ? hash_slice(s, name) : hash(s, number, sizeof(number));
	return 0;
}

/* All that makes it differ but its path. */
static int hash_attributes(struct summing *s, const struct vb__offer *offer, struct sum *to)
{
	bool file = offer->kind == VB__OFFER_FILE, link = offer->kind == VB__OFFER_SYMLINK;
	struct sum user = { .low = 0 }, group = { .low = 0 }, xattrs = { .low = 0 };
	uint8_t record[40 + 4 * HASH_BYTES] = { 0 }, *end;
	int rc = hash_owner(s, false, offer->user, offer->uid, &user);

	if (rc == 0)
		rc = hash_owner(s, true, offer->group, offer->gid, &group);
	if (rc == 0)
		rc = hash_xattrs(s, offer->xattrs, &xattrs);
	if (rc)
		return rc;
	vb__put32(record, offer->mode & S_IFMT);
	if (s->keep & VB_KEEP_MODE && !link)
		vb__put32(record + 4, offer->mode & 07777);
	vb__put64(record + 8, file ? offer->size : 0);
	if (s->keep & VB_KEEP_TIMES || file) {
		vb__put64(record + 16, (uint64_t)offer->mtime_s);
		vb__put32(record + 24, offer->mtime_ns);
	}
	vb__put32(record + 28, offer->device_major);
	vb__put32(record + 32, offer->device_minor);
	end = put(put(record + 40, user), group);
	put(put(end, link ? hash_slice(s, offer->target) : (struct sum){ .low = 0 }), xattrs);
	*to = hash(s, record, sizeof(record));
	return 0;
}

static void add_linked(struct summing *s, const struct linked *linked)
{
	uint8_t record[2 * HASH_BYTES + 8];

	vb__put64(put(put(record, linked->attributes), linked->paths), linked->count);
	add(&s->total, hash(s, record, sizeof(record)));
}

/* One whose further names may come. */
static int remember(struct summing *s, uint32_t number, const struct linked *first)
{
	struct linked *linked = s->linked.count < LINKED_MAX ? malloc(sizeof(*linked)) : NULL;

	if (!linked)
		return give_up(s, NULL, "too many files have several names");
	*linked = *first;
	if (vb__numbers_set(&s->linked, number, linked))
		return 0;
	free(linked);
	return vb__fail_errno(s->err, ENOMEM, "malloc", NULL);
}

static int add_name(struct summing *s, uint32_t first, struct sum path)
{
	struct linked *linked = vb__numbers_get(&s->linked, first);

	if (!linked)
		return give_up(s, NULL, "a further name of no file");
	add(&linked->paths, path);
	linked->count++;
	return 0;
}

static int take_entry(struct summing *s, const struct vb__offer *offer, const char *path)
{
	size_t len = strlen(path);
	struct linked one = { .count = 1 };
	int rc;

	if (len > PATH_LEN_MAX)
		return give_up(s, NULL, "a path is too long");
	one.paths = hash(s, path, len);
	if (offer->kind == VB__OFFER_HARDLINK)
		return add_name(s, offer->first, one.paths);
	rc = hash_attributes(s, offer, &one.attributes);
	if (rc)
		return rc;
	if (offer->flags & VB__OFFER_LINKED)
		return remember(s, offer->number, &one);
	add_linked(s, &one);
	return 0;
}

static int take(void *arg, const struct vb__walked *walked)
{
	const struct vb__offer *offer = walked->offer;
	struct summing *s = arg;
	const char *slash;

	if (offer->kind == VB__OFFER_LISTED)
		return offer->flags & VB__OFFER_INCOMPLETE
			       ? give_up(s, NULL, "a directory could not be read")
			       : 0;
	if (offer->kind == VB__OFFER_MISSED)
		return give_up(s, walked->path, "it is not there, or cannot be read");
	slash = strrchr(walked->path, '/');
	if (vb__is_reserved(slash ? slash + 1 : walked->path))
		return give_up(s, walked->path, "it has a reserved name");
	s->result->entries++;
	if (offer->kind == VB__OFFER_FILE)
		s->result->bytes += offer->size;
	return take_entry(s, offer, walked->path);
}

/* ---- Trees ---- */

static void add_all_linked(struct summing *s)
{
	struct linked *linked;
	size_t at = 0;

	while ((linked = vb__numbers_next(&s->linked, &at))) {
		add_linked(s, linked);
		free(linked);
	}
	vb__numbers_free(&s->linked);
}

static int walk(struct summing *s, const char *const *paths, const struct vb_tree_options *options)
{
	static const atomic_bool never;
	struct vb__filter *filter;
	struct vb__dirs dirs;
	int rc = vb__filter_create(options->rules, &filter, s->err);

	if (rc)
		return rc;
	vb__dirs_init(&dirs);
	rc = vb__walk(&(struct vb__walk){ .paths = paths,
					  .path_count = s->scope->path_count,
					  .options = options,
					  .filter = filter,
					  .dirs = &dirs,
					  .stop = &never,
					  .stop_fd = s->scope->stop_fd,
					  .take = take,
					  .arg = s },
		      s->err);
	vb__dirs_destroy(&dirs);
	vb__filter_destroy(filter);
	return rc == VB_ERR_INTERRUPTED ? vb__fail_cancelled(s->err, "sum up", paths[0]) : rc;
}

/* ---- What stands at the target ---- */

static void free_paths(char **paths, size_t count)
{
	for (size_t i = 0; paths && i < count; i++)
		free(paths[i]);
	free(paths);
}

/* Where what is at these paths comes to stand. */
static char **paths_there(const struct vb_tree_scope *scope)
{
	char **there = calloc(scope->path_count, sizeof(char *));

	for (size_t i = 0; there && i < scope->path_count; i++) {
		struct vb__top top;
		int len = -1;

		if (vb__top_open(&top, scope->paths[i]))
			len = asprintf(&there[i], "%s/%s", *scope->target ? scope->target : ".",
				       top.name);
		vb__top_close(&top);
		if (len < 0) {
			there[i] = NULL;
			free_paths(there, scope->path_count);
			return NULL;
		}
	}
	return there;
}

/* Would all come to stand in it, and was nothing left there by a try that failed? */
static int check_target(struct summing *s, const struct vb_tree_options *options)
{
	struct vb_tree_options look = *options;
	struct vb__target target;
	struct vb__top top;
	bool as = false, left;
	uint64_t tag = 0;
	int fd, rc;

	look.dry_run = true; /* it is not made */
	rc = vb__target_open(&target, s->scope->target, &look, s->err);
	if (rc)
		return rc;
	if (target.dir_fd < 0) {
		vb__target_close(&target);
		return give_up(s, s->scope->target, "it is no directory");
	}
	if (vb__top_open(&top, s->scope->paths[0])) {
		fd = vb__target_choose(&target, vb__top_shown(&top), &as, &tag);
		left = as || vb__journal_exists(fd, tag);
		rc = left ? give_up(s, s->scope->target, "an earlier try has left something") : 0;
		close(fd);
	} else {
		rc = vb__fail_errno(s->err, ENOMEM, "malloc", NULL);
	}
	vb__top_close(&top);
	vb__target_close(&target);
	return rc;
}

/* A receiver follows no links, and takes what it finds for what it is. */
static int walk_there(struct summing *s, const struct vb_tree_options *options)
{
	struct vb_tree_options there = *options;
	char **paths;
	int rc = check_target(s, options);

	if (rc)
		return rc;
	there.keep |= VB_KEEP_SYMLINKS | VB_KEEP_SPECIALS;
	there.recursive = true;
	paths = paths_there(s->scope);
	rc = paths ? walk(s, (const char *const *)paths, &there)
		   : vb__fail_errno(s->err, ENOMEM, "malloc", NULL);
	free_paths(paths, s->scope->path_count);
	return rc;
}

/* Could two of several come to stand in one place? A transfer takes the first and fails the other; sums would not show it. */
static int check_paths(struct summing *s)
{
	size_t count = s->scope->path_count;
	struct vb__nameset names = { 0 };
	int rc = 0;

	for (size_t i = 0; count > 1 && i < count && rc == 0; i++) {
		struct vb__top top;
		int added = -1;

		if (vb__top_open(&top, s->scope->paths[i]))
			added = top.contents
					? 0
					: vb__nameset_add(&names, 0, top.name, strlen(top.name));
		vb__top_close(&top);
		if (added < 0)
			rc = vb__fail_errno(s->err, ENOMEM, "malloc", NULL);
		else if (added == 0)
			rc = give_up(s, s->scope->paths[i], "another may have its place");
	}
	vb__nameset_free(&names);
	return rc;
}

int vb_tree_sum(const struct vb_tree_scope *scope, const struct vb_tree_options *options,
		struct vb_tree_sum *sum, struct vb_error *err)
{
	struct vb_error local;
	struct summing s = { .scope = scope, .result = sum, .err = err ? err : &local };
	int rc;

	vb__error_clear(s.err);
	*sum = (struct vb_tree_sum){ .entries = 0 };
	if (!scope->key || !scope->path_count || !options || options->select != VB_SELECT_CHANGED)
		return vb__fail_invalid(s.err, "sum up", "a key, paths and VB_SELECT_CHANGED");
	s.keep = options->keep;
	rc = check_paths(&s);
	if (rc == 0)
		rc = scope->target ? walk_there(&s, options) : walk(&s, scope->paths, options);
	add_all_linked(&s);
	vb__owners_free(&s.owners);
	put(sum->digest, s.total);
	return rc;
}
