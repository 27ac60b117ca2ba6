/* SPDX-License-Identifier: Apache-2.0 */
/* Files under way: what comes for them, and how they come to stand. */
#include "tree/arrival.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/failure.h"
#include "transfer/descriptor.h"
#include "tree/tree_sink.h"

/* Pieces of zeros of this size are left out of a file that had holes. */
#define HOLE 4096u

struct vb__arrival *vb__arrival_new(struct vb__tree_sink *s, struct vb__place *place,
				    const char *name, const struct vb__offer *offer)
{
	size_t len = strlen(name) + 1;
	struct vb__arrival *a = calloc(1, sizeof(*a) + len);

	if (!a)
		return NULL;
	a->number = offer->number;
	a->place = place;
	a->hash = vb__place_hash(place, name);
	a->size = offer->size;
	a->identity = offer->identity;
	a->linked = offer->flags & VB__OFFER_LINKED;
	a->sparse = (offer->flags & VB__OFFER_SPARSE) && (s->tree->keep & VB_KEEP_HOLES);
	memcpy(a->name, name, len);
	if (vb__meta_take(&s->rules, &a->meta, offer))
		return a;
	free(a);
	return NULL;
}

void vb__arrival_free(struct vb__arrival *a)
{
	while (a->links) {
		struct vb__further *next = a->links->next;

		free(a->links);
		a->links = next;
	}
	vb__extents_free(&a->claimed);
	vb__meta_free(&a->meta);
	free(a);
}

/* ---- Small files. ---- */

static int link_fd(struct vb__tree_sink *s, int fd, int dir_fd, const char *name)
{
	char path[32];

	if (!atomic_load_explicit(&s->no_empty_path, memory_order_relaxed)) {
		if (linkat(fd, "", dir_fd, name, AT_EMPTY_PATH) == 0)
			return 0;
		if (errno != ENOENT && errno != EPERM)
			return -1;
		/* That takes a capability. */
		atomic_store_explicit(&s->no_empty_path, true, memory_order_relaxed);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, dir_fd, name, AT_SYMLINK_FOLLOW);
}

/* The file is written to without a name if that can be, else under the one in `temp`. */
static int open_temp(struct vb__tree_sink *s, int dir_fd, mode_t mode, struct vb__part_name *temp)
{
	int flags = O_RDWR | O_CLOEXEC, fd;

	if (s->nameless && !atomic_load_explicit(&s->no_nameless, memory_order_relaxed)) {
		fd = openat(dir_fd, ".", O_TMPFILE | flags, mode);
		if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) {
			temp->text[0] = '\0';
			return fd;
		}
		atomic_store_explicit(&s->no_nameless, true, memory_order_relaxed);
	}
	flags |= O_CREAT | O_EXCL | O_NOFOLLOW;
	fd = openat(dir_fd, temp->text, flags, 0600);
	if (fd < 0 && errno == EEXIST && unlinkat(dir_fd, temp->text, 0) == 0)
		fd = openat(dir_fd, temp->text, flags, 0600);
	return fd;
}

static bool is_zero(const uint8_t *data, size_t len)
{
	return len && !data[0] && memcmp(data, data + 1, len - 1) == 0;
}

/* 0 or an errno. */
static int write_data(int fd, const uint8_t *data, size_t len, bool sparse)
{
	size_t at = 0, part;

	for (; at < len; at += part) {
		ssize_t n;

		part = sparse && len - at > HOLE ? HOLE : len - at;
		if (sparse && is_zero(data + at, part))
			continue;
		n = pwrite(fd, data + at, part, (off_t)at);
		if (n < 0 && errno != EINTR)
			return errno;
		if (n == 0)
			return ENOSPC;
		part = n < 0 ? 0 : (size_t)n;
	}
	return sparse ? vb__filing_resize(fd, len) : 0;
}

/* It has a name from which it can be moved, or its own at once. 0 or an errno. */
static int give_name(struct vb__tree_sink *s, struct vb__arrival *a, int dir_fd, int fd,
		     struct vb__part_name *temp, bool replaces)
{
	int errnum;

	if (!temp->text[0]) {
		if (!replaces && link_fd(s, fd, dir_fd, a->name) == 0)
			return 0;
		if (!replaces && errno != EEXIST)
			return errno;
		*temp = vb__part_name(s->journal.tag, &a->hash);
		if (link_fd(s, fd, dir_fd, temp->text) &&
		    (errno != EEXIST || unlinkat(dir_fd, temp->text, 0) ||
		     link_fd(s, fd, dir_fd, temp->text)))
			return errno;
	}
	errnum = vb__tree_move(s, a->place, dir_fd, temp->text, a->name);
	if (errnum)
		(void)unlinkat(dir_fd, temp->text, 0);
	return errnum;
}

/* All that it has besides its contents; it replaces `old`, or nothing. */
static int dress(struct vb__tree_sink *s, const struct vb__arrival *a, int fd,
		 const struct stat *old, bool fresh, struct vb_error *err)
{
	struct vb__thing thing = { .fd = fd, .fresh = fresh, .path = a->name };

	if (fstat(fd, &thing.st))
		return vb__fail_io(err, errno, "fstat", a->name);
	if (old && s->rules.root && !(s->tree->keep & VB_KEEP_OWNER))
		(void)!fchown(fd, old->st_uid, old->st_gid);
	return vb__meta_apply(&s->rules, &a->meta, vb__meta_mode(&s->rules, &a->meta, old), &thing,
			      NULL, err);
}

/* What it replaces; NULL: nothing, or no file. */
static const struct stat *look_for_old(const struct vb__arrival *a, int dir_fd, struct stat *st,
				       bool *replaces)
{
	*replaces = !a->place->made && fstatat(dir_fd, a->name, st, AT_SYMLINK_NOFOLLOW) == 0;
	return *replaces && S_ISREG(st->st_mode) ? st : NULL;
}

static int store_whole(struct vb__tree_sink *s, struct vb__arrival *a,
		       const struct vb__parcel *parcel, int dir_fd, struct stat *now,
		       struct vb_error *err)
{
	struct vb__part_name temp = vb__part_name(s->journal.tag, &a->hash);
	struct stat old_st;
	bool replaces;
	const struct stat *old = look_for_old(a, dir_fd, &old_st, &replaces);
	int fd = open_temp(s, dir_fd, vb__meta_mode(&s->rules, &a->meta, old) & 0777, &temp);
	int rc, errnum;

	if (fd < 0)
		return vb__fail_io(err, errno, "write", a->name);
	errnum = write_data(fd, parcel->data.data, parcel->data.len, a->sparse);
	rc = errnum ? vb__fail_filing(err, errnum, a->name) : 0;
	if (rc == 0)
		rc = dress(s, a, fd, old, !a->place->default_acl, err);
	if (rc && temp.text[0])
		(void)unlinkat(dir_fd, temp.text, 0);
	errnum = rc ? 0 : give_name(s, a, dir_fd, fd, &temp, replaces);
	if (errnum)
		rc = vb__fail_io(err, errnum, "write", a->name);
	if (rc == 0 && fstat(fd, now))
		rc = vb__fail_io(err, errno, "fstat", a->name);
	close(fd);
	return rc;
}

/* ---- Large files. ---- */

static int store_part(struct vb__tree_sink *s, struct vb__arrival *a, int dir_fd, struct stat *now,
		      struct vb_error *err)
{
	struct vb__part_name temp = vb__part_name(s->journal.tag, &a->hash);
	int fd = vb__part_hold(s, a), rc, errnum;
	struct stat old_st, st;
	bool replaces;
	const struct stat *old = look_for_old(a, dir_fd, &old_st, &replaces);

	if (fd < 0)
		return vb__fail_io(err, errno, "write", a->name);
	errnum = vb__filing_resize(fd, a->size);
	if (errnum)
		return vb__fail_filing(err, errnum, a->name);
	rc = dress(s, a, fd, old, !a->place->default_acl, err);
	if (rc)
		return rc;
	if (s->options.fsync && fsync(fd))
		return vb__fail_io(err, errno, "fsync", a->name);
	errnum = vb__fd_flush(fd);
	if (!errnum && (fstat(fd, now) || fstatat(dir_fd, temp.text, &st, AT_SYMLINK_NOFOLLOW)))
		errnum = errno;
	if (!errnum && (st.st_ino != now->st_ino || st.st_dev != now->st_dev))
		errnum = ESTALE;
	if (!errnum)
		errnum = vb__tree_move(s, a->place, dir_fd, temp.text, a->name);
	if (errnum)
		return vb__fail_io(err, errnum, "write", a->name);
	return fstat(fd, now) ? vb__fail_io(err, errno, "fstat", a->name) : 0;
}

/* ---- The end of both. ---- */

static void count(struct vb__tree_sink *s, struct vb__arrival *a)
{
	size_t len = strlen(a->name);

	s->report.files++;
	snprintf(s->current, sizeof(s->current), "%s",
		 len < sizeof(s->current) ? a->name : a->name + len - sizeof(s->current) + 1);
}

/* It stands, or will never. Frees it. */
static int conclude(struct vb__tree_sink *s, struct vb__arrival *a, const struct stat *now,
		    struct vb_error *err)
{
	struct vb__first *first = a->linked ? vb__first_new(a->place, a->name, now) : NULL;
	struct vb__place *place = a->place;
	struct vb__further *links;
	int rc = 0, left;

	pthread_mutex_lock(&s->lock);
	vb__numbers_remove(&s->arrivals, a->number);
	if (a->linked && (!first || !vb__numbers_set(&s->firsts, a->number, first)))
		rc = VB_ERR_NOMEM;
	links = a->links;
	a->links = NULL;
	s->waiting -= !a->resumed;
	s->heavy_bytes -= a->meta.xattrs_len;
	s->files_done++;
	if (now)
		count(s, a);
	if (s->unsettled)
		vb__tree_settle(s);
	pthread_mutex_unlock(&s->lock);
	if (rc) {
		free(first);
		first = NULL;
		rc = vb__fail_errno(err, ENOMEM, "malloc", NULL);
	}
	vb__arrival_free(a);
	left = vb__tree_make_further(s, links, first, rc ? NULL : err);
	rc = rc ? rc : left;
	left = vb__tree_leave(s, place, rc ? NULL : err);
	return rc ? rc : left;
}

/* It stands. */
static int welcome(struct vb__tree_sink *s, struct vb__arrival *a, uint64_t identity,
		   const struct stat *now, struct vb_error *err)
{
	vb__journal_add_done(&s->journal, &a->hash, identity, vb__journal_target(now, a->linked),
			     s->options.fsync && a->part);
	vb__tree_tell(s, &(struct vb__told){
				 .happening = VB_TREE_COPIED,
				 .place = a->place,
				 .name = vb__arrival_shown(a),
				 .mode = a->meta.mode,
				 .bytes = (uint64_t)now->st_size,
			 });
	vb__part_drop(s, a, false);
	return conclude(s, a, now, err);
}

static int give_up(struct vb__tree_sink *s, struct vb__arrival *a, const struct vb_error *failure,
		   struct vb_error *err)
{
	int rc = vb__tree_fail(s, a->place, vb__arrival_shown(a), a->meta.mode, failure, err);

	if (rc) /* all ends, and what came of it may be used next time */
		return rc;
	vb__part_drop(s, a, true);
	return conclude(s, a, NULL, err);
}

/* Calls `store` with its directory open, and does what has to be done then. */
static int place_it(struct vb__tree_sink *s, struct vb__arrival *a, const struct vb__parcel *whole,
		    struct vb_error *err)
{
	int dir_fd = vb__place_hold(&s->places, a->place), rc;
	struct vb_error failure = { .code = VB_OK };
	struct stat now;

	if (dir_fd < 0) {
		vb__fail_io(&failure, errno, "write", a->name);
		return give_up(s, a, &failure, err);
	}
	rc = whole ? store_whole(s, a, whole, dir_fd, &now, &failure)
		   : store_part(s, a, dir_fd, &now, &failure);
	vb__place_let_go(&s->places, a->place);
	return rc ? give_up(s, a, &failure, err) : welcome(s, a, a->identity, &now, err);
}

int vb__arrival_place(struct vb__tree_sink *s, struct vb__arrival *a, struct vb_error *err)
{
	return place_it(s, a, NULL, err);
}

/* ---- What comes. ---- */

/* As it was read, which may be later than it was offered. */
static void renew(struct vb__arrival *a, const struct vb__parcel *parcel)
{
	a->meta.mtime_s = parcel->mtime_s;
	a->meta.mtime_ns = parcel->mtime_ns;
	a->identity = parcel->identity;
}

static int take_whole(struct vb__tree_sink *s, const struct vb__parcel *parcel,
		      struct vb_error *err)
{
	struct vb__arrival *a;
	bool right;

	pthread_mutex_lock(&s->lock);
	a = vb__numbers_get(&s->arrivals, parcel->number);
	right = a && !a->placing && !a->ended && !a->resumed && !a->claimed.count;
	if (right) {
		a->placing = true;
		renew(a, parcel);
		s->report.sent_bytes += parcel->size;
		s->stored_bytes += a->size;
	}
	pthread_mutex_unlock(&s->lock);
	if (!right)
		return vb__tree_fail_protocol(s, "a file came that was not wanted", err);
	return place_it(s, a, parcel, err);
}

/* Lock held. Is all there, and nobody at it? */
static bool is_ripe(struct vb__arrival *a)
{
	uint64_t offset = 0, length;

	if (!a->ended || a->placing || a->stored != a->claimed.bytes ||
	    vb__extents_gap(&a->claimed, &offset, a->size, &length))
		return false;
	a->placing = true;
	return true;
}

static int place_if_ripe(struct vb__tree_sink *s, struct vb__arrival *a, bool ripe,
			 struct vb_error *err)
{
	if (!ripe)
		return 0;
	if (!a->failed)
		return vb__arrival_place(s, a, err);
	vb__part_drop(s, a, true);
	return conclude(s, a, NULL, err);
}

/* What came now does not belong to what came before. */
static void tell_mixed(struct vb__tree_sink *s, const struct vb__arrival *a)
{
	struct vb_error failure = { .code = VB_OK };

	vb__fail(&failure, &(struct vb__failure){
				   .code = VB_ERR_IO,
				   .operation = "resume",
				   .object = vb__arrival_shown(a),
				   .cause = "it was changed while it was copied",
			   });
	vb__tree_tell(s, &(struct vb__told){
				 .happening = VB_TREE_FAILED,
				 .place = a->place,
				 .name = vb__arrival_shown(a),
				 .mode = a->meta.mode,
				 .failure = &failure,
			 });
}

static int take_end(struct vb__tree_sink *s, const struct vb__parcel *parcel, struct vb_error *err)
{
	struct vb__arrival *a;
	bool right, ripe = false, mixed = false;

	pthread_mutex_lock(&s->lock);
	a = vb__numbers_get(&s->arrivals, parcel->number);
	right = a && !a->placing && !a->ended && parcel->size <= a->size;
	if (right) {
		mixed = a->resumed && a->identity != parcel->identity && !a->failed;
		a->failed |= mixed;
		renew(a, parcel);
		a->size = parcel->size;
		a->ended = true;
		ripe = is_ripe(a);
	}
	pthread_mutex_unlock(&s->lock);
	if (!right)
		return vb__tree_fail_protocol(s, "the end of a file came that was not wanted", err);
	if (mixed)
		tell_mixed(s, a);
	return place_if_ripe(s, a, ripe, err);
}

/* Lock held. Blocks of it may still be under way. */
static bool bury(struct vb__tree_sink *s, uint32_t number)
{
	uint32_t *slot = &s->gone_ring[s->gone_at++ % VB__TREE_GONE_MAX];

	if (*slot)
		vb__numbers_remove(&s->gone, *slot);
	*slot = number;
	return vb__numbers_set(&s->gone, number, s);
}

static void tell_missed(struct vb__tree_sink *s, const struct vb__arrival *a,
			const struct vb__parcel *parcel)
{
	struct vb_error failure = { .code = VB_OK };
	char cause[sizeof(failure.cause)];

	snprintf(cause, sizeof(cause), "%.*s", (int)parcel->data.len,
		 (const char *)parcel->data.data);
	vb__fail(&failure, &(struct vb__failure){
				   .code = parcel->error,
				   .native_kind = parcel->native ? VB_NATIVE_ERRNO : VB_NATIVE_NONE,
				   .native = parcel->native,
				   .operation = "read",
				   .object = vb__arrival_shown(a),
				   .cause = *cause ? cause : NULL,
			   });
	vb__tree_tell(s, &(struct vb__told){
				 .happening = parcel->vanished ? VB_TREE_VANISHED : VB_TREE_FAILED,
				 .place = a->place,
				 .name = vb__arrival_shown(a),
				 .mode = a->meta.mode,
				 .at_peer = true,
				 .failure = &failure,
			 });
}

/* Threads may be writing to it: the last of them ends it. */
static int take_missed(struct vb__tree_sink *s, const struct vb__parcel *parcel,
		       struct vb_error *err)
{
	struct vb__arrival *a;
	bool right, told = true, ripe = false, buried = true;

	pthread_mutex_lock(&s->lock);
	a = vb__numbers_get(&s->arrivals, parcel->number);
	right = (a && !a->placing && !a->ended) || vb__numbers_get(&s->gone, parcel->number);
	if (right && a && !a->missed) {
		told = a->failed;
		a->failed = a->missed = a->ended = true;
		a->size = 0;
		ripe = a->placing = a->stored == a->claimed.bytes;
		buried = bury(s, parcel->number);
	}
	pthread_mutex_unlock(&s->lock);
	if (!right)
		return vb__tree_fail_protocol(s, "a file was given up that was not wanted", err);
	if (!buried)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	if (!told)
		tell_missed(s, a, parcel);
	return place_if_ripe(s, a, ripe, err);
}

int vb__tree_take_parcels(struct vb__tree_sink *s, const uint8_t *data, size_t len,
			  struct vb_error *err)
{
	struct vb__parcel parcel;
	size_t at = 0;
	int rc = vb__answers_wait(&s->answers, err);

	while (rc == 0 && at < len) {
		if (!vb__parcel_decode(&parcel, data, len, &at))
			return vb__tree_fail_protocol(s, "a parcel makes no sense", err);
		if (parcel.kind == VB__PARCEL_WHOLE)
			rc = take_whole(s, &parcel, err);
		else if (parcel.kind == VB__PARCEL_END)
			rc = take_end(s, &parcel, err);
		else
			rc = take_missed(s, &parcel, err);
	}
	if (rc == 0)
		vb__journal_flush(&s->journal);
	return rc;
}

/* 1: it is to be written; 0: thrown away; or an error. */
static int claim(struct vb__tree_sink *s, const struct vb__block *block, struct vb__arrival **found,
		 struct vb_error *err)
{
	struct vb__arrival *a = vb__numbers_get(&s->arrivals, block->file);
	enum vb__extents_added added;

	if (!a || a->missed)
		return vb__numbers_get(&s->gone, block->file)
			       ? 0
			       : vb__tree_fail_protocol(s, "a block came that was not wanted", err);
	if (a->placing || block->offset > a->size || block->length > a->size - block->offset)
		return vb__tree_fail_protocol(s, "a block is beyond its file's end", err);
	added = vb__extents_add(&a->claimed, block->offset, block->length);
	if (added == VB__EXTENTS_OVERLAP)
		return vb__tree_fail_protocol(s, "a block came twice", err);
	if (added == VB__EXTENTS_FULL)
		return vb__fail_errno(err, ENOMEM, "realloc", NULL);
	*found = a;
	s->report.sent_bytes += vb__block_data_bytes(block);
	return 1;
}

/* The first of its blocks that could not be written: told, or the end of all. */
static int fail_block(struct vb__tree_sink *s, struct vb__arrival *a, int errnum,
		      struct vb_error *err)
{
	struct vb_error failure = { .code = VB_OK };
	bool first;

	pthread_mutex_lock(&s->lock);
	first = !a->failed;
	a->failed = true;
	pthread_mutex_unlock(&s->lock);
	vb__fail_filing(&failure, errnum, a->name);
	return first ? vb__tree_fail(s, a->place, vb__arrival_shown(a), a->meta.mode, &failure, err)
		     : 0;
}

int vb__tree_take_block(struct vb__tree_sink *s, const struct vb__block *block, const void *data,
			struct vb_error *err)
{
	struct vb__arrival *a = NULL;
	bool failed, ripe;
	int rc, errnum = 0;

	pthread_mutex_lock(&s->lock);
	rc = claim(s, block, &a, err);
	failed = rc > 0 && a->failed;
	pthread_mutex_unlock(&s->lock);
	if (rc <= 0)
		return rc;
	if (!failed)
		errnum = vb__part_write(s, a, block, data);
	if (!failed && !errnum)
		vb__journal_add_part(&s->journal, &a->hash, a->identity, block);
	if (errnum) {
		rc = fail_block(s, a, errnum, err);
		if (rc < 0)
			return rc;
	}
	pthread_mutex_lock(&s->lock);
	a->stored += block->length;
	s->stored_bytes += block->length;
	ripe = a->missed ? a->stored == a->claimed.bytes && !a->placing : is_ripe(a);
	a->placing |= ripe;
	pthread_mutex_unlock(&s->lock);
	return place_if_ripe(s, a, ripe, err);
}
