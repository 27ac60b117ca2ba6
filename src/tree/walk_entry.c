/* SPDX-License-Identifier: Apache-2.0 */
/* One entry of a walk: what is told of it. Which entries there are is not decided here. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifdef VB_HAVE_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

#include "core/failure.h"
#include "tree/content.h"
#include "tree/walk_state.h"
#include "wire/bytes.h"

uint64_t vb__file_identity(const struct stat *st)
{
	uint8_t bytes[56];

	vb__put64(bytes, st->st_dev);
	vb__put64(bytes + 8, st->st_ino);
	vb__put64(bytes + 16, (uint64_t)st->st_size);
	vb__put64(bytes + 24, (uint64_t)st->st_mtim.tv_sec);
	vb__put64(bytes + 32, (uint64_t)st->st_mtim.tv_nsec);
	vb__put64(bytes + 40, (uint64_t)st->st_ctim.tv_sec);
	vb__put64(bytes + 48, (uint64_t)st->st_ctim.tv_nsec);
	return XXH3_64bits(bytes, sizeof(bytes));
}

static struct vb__slice slice_of(const char *text)
{
	return (struct vb__slice){ .data = (const uint8_t *)text, .len = strlen(text) };
}

static int take(struct vb__walker *w, const struct vb__spot *spot, const struct vb__offer *offer,
		mode_t mode)
{
	struct vb__walked walked = { .offer = offer, .path = w->path, .mode = mode };

	if (spot) {
		walked.dir = spot->dir;
		walked.name = spot->name;
		walked.follow = spot->follow;
	}
	return w->walk->take(w->walk->arg, &walked);
}

int vb__walk_miss(struct vb__walker *w, const struct vb__spot *spot, mode_t mode, int errnum,
		  const char *why)
{
	struct vb_error failure = { .code = VB_OK };
	struct vb__offer offer = {
		.kind = VB__OFFER_MISSED,
		.parent = spot->parent,
		.name = slice_of(spot->shown),
		.native = errnum,
	};

	/* Some file systems list names that cannot be looked up. */
	if (offer.name.len > VB__NAME_MAX)
		offer.name.len = VB__NAME_MAX;
	/* The user's own was never there; others were when the directory was read. */
	if (errnum == ENOENT && !spot->top && !why)
		offer.flags = VB__OFFER_VANISHED;
	vb__fail_io(&failure, errnum, NULL, NULL);
	offer.error = failure.code;
	offer.target = slice_of(why ? why : failure.cause);
	return take(w, NULL, &offer, mode);
}

int vb__walk_listed(struct vb__walker *w, uint32_t number, bool incomplete)
{
	struct vb__offer offer = {
		.kind = VB__OFFER_LISTED,
		.number = number,
		.flags = incomplete ? VB__OFFER_INCOMPLETE : 0,
	};

	return take(w, NULL, &offer, 0);
}

static void tell_owner(struct vb__walker *w, const struct stat *st, struct vb__offer *offer)
{
	unsigned keep = w->walk->options->keep;

	offer->uid = st->st_uid;
	offer->gid = st->st_gid;
	if (!(keep & VB_KEEP_OWNER) || keep & VB_KEEP_NUMERIC_IDS)
		return;
	offer->user = vb__owners_user(w->owners, st->st_uid);
	offer->group = vb__owners_group(w->owners, st->st_gid);
}

/* One that cannot be hashed is offered without: if it cannot be read, that will be seen. */
static int hash(struct vb__walker *w, const struct vb__spot *spot, struct vb__offer *offer)
{
	int fd = openat(spot->dir_fd, spot->name,
			O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC |
				(spot->follow ? 0 : O_NOFOLLOW));
	int errnum;

	if (fd < 0)
		return 0;
	errnum = vb__content_hash(fd, offer->content, w->walk->stop, -1);
	close(fd);
	if (errnum == 0)
		offer->flags |= VB__OFFER_HASHED;
	return errnum == ECANCELED ? VB_ERR_INTERRUPTED : 0;
}

static int tell_file(struct vb__walker *w, const struct vb__spot *spot, const struct stat *st,
		     struct vb__offer *offer)
{
	const struct vb_tree_options *options = w->walk->options;

	offer->kind = VB__OFFER_FILE;
	offer->size = (uint64_t)st->st_size;
	offer->identity = vb__file_identity(st);
	if (st->st_blocks * 512 < st->st_size)
		offer->flags |= VB__OFFER_SPARSE;
	return options->select == VB_SELECT_DIFFERENT ? hash(w, spot, offer) : 0;
}

/* 0 or an errno. */
static int tell_symlink(const struct vb__spot *spot, struct vb__offer *offer,
			char target[VB__LINK_MAX + 1])
{
	ssize_t n = readlinkat(spot->dir_fd, spot->name, target, VB__LINK_MAX + 1);

	if (n < 0)
		return errno;
	if (n == 0 || n > (ssize_t)VB__LINK_MAX)
		return ENAMETOOLONG;
	offer->kind = VB__OFFER_SYMLINK;
	offer->target = (struct vb__slice){ .data = (uint8_t *)target, .len = (size_t)n };
	return 0;
}

static int finish_offer(struct vb__walker *w, const struct vb__spot *spot, const struct stat *st,
			struct vb__offer *offer)
{
	struct vb__xattr_place place = { spot->dir_fd, spot->name, st->st_mode, spot->follow };
	int errnum = 0, rc;

	if (offer->kind != VB__OFFER_HARDLINK) {
		tell_owner(w, st, offer);
		errnum = vb__xattrs_read(&w->xattrs, &place, &offer->xattrs);
	}
	rc = take(w, spot, offer, st->st_mode);
	/* One that is gone has none, and if it is needed that will be seen. */
	if (rc == 0 && errnum && errnum != ENOENT)
		rc = vb__walk_miss(w, spot, st->st_mode, errnum,
				   "its extended attributes cannot be read");
	return rc;
}

/* Is it a further name of something? */
static bool tell_links(struct vb__walker *w, const struct stat *st, struct vb__offer *offer)
{
	if (!(w->walk->options->keep & VB_KEEP_HARDLINKS) || S_ISDIR(st->st_mode) ||
	    st->st_nlink < 2)
		return false;
	offer->first = vb__links_meet(w->links, st, offer->number);
	offer->kind = VB__OFFER_HARDLINK;
	offer->flags = offer->first ? 0 : VB__OFFER_LINKED;
	return offer->first;
}

static int tell_kind(struct vb__walker *w, const struct vb__spot *spot, const struct stat *st,
		     struct vb__offer *offer, char target[VB__LINK_MAX + 1], int *errnum)
{
	/* Before it is remembered by its number: without a target it gets none. */
	*errnum = S_ISLNK(st->st_mode) ? tell_symlink(spot, offer, target) : 0;
	if (*errnum || tell_links(w, st, offer))
		return 0;
	if (S_ISREG(st->st_mode))
		return tell_file(w, spot, st, offer);
	if (S_ISDIR(st->st_mode)) {
		offer->kind = VB__OFFER_DIRECTORY;
	} else if (S_ISLNK(st->st_mode)) {
		offer->kind = VB__OFFER_SYMLINK;
	} else {
		offer->kind = VB__OFFER_SPECIAL;
		offer->device_major = major(st->st_rdev);
		offer->device_minor = minor(st->st_rdev);
	}
	return 0;
}

int vb__walk_offer(struct vb__walker *w, const struct vb__spot *spot, const struct stat *st)
{
	struct vb__offer offer = {
		.number = w->last_number + 1,
		.parent = spot->parent,
		.mode = st->st_mode,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
		.name = slice_of(spot->shown),
	};
	char target[VB__LINK_MAX + 1];
	int errnum, rc;

	if (w->last_number == UINT32_MAX)
		return VB_ERR_TOO_BIG;
	rc = tell_kind(w, spot, st, &offer, target, &errnum);
	if (errnum)
		return vb__walk_miss(w, spot, st->st_mode, errnum, NULL);
	if (rc)
		return rc;
	w->last_number++;
	return finish_offer(w, spot, st, &offer);
}
