/* SPDX-License-Identifier: Apache-2.0 */
/* Giving entries their metadata. Attributes are in attributes.c. */
#include "tree/meta.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <verbatim/tree.h>

#include "core/failure.h"
#include "transfer/filing.h"
#include "tree/attributes.h"

void vb__meta_rules_open(struct vb__meta_rules *rules, unsigned keep)
{
	*rules = (struct vb__meta_rules){
		.keep = keep,
		.umask = 0777 & ~vb__less_umask(0777),
		.root = geteuid() == 0,
	};
}

void vb__meta_rules_close(struct vb__meta_rules *rules)
{
	vb__owners_free(&rules->owners);
}

bool vb__meta_take(struct vb__meta_rules *rules, struct vb__meta *meta,
		   const struct vb__offer *offer)
{
	bool named = (rules->keep & VB_KEEP_OWNER) && !(rules->keep & VB_KEEP_NUMERIC_IDS);
	bool attributes = rules->keep & (VB_KEEP_XATTRS | VB_KEEP_ACLS);

	*meta = (struct vb__meta){
		.mode = offer->mode,
		.uid = offer->uid,
		.gid = offer->gid,
		.mtime_s = offer->mtime_s,
		.mtime_ns = offer->mtime_ns,
	};
	if (named) {
		meta->uid = vb__owners_find(&rules->owners, false, offer->user.data,
					    offer->user.len, offer->uid);
		meta->gid = vb__owners_find(&rules->owners, true, offer->group.data,
					    offer->group.len, offer->gid);
	}
	if (!attributes || !offer->xattrs.len)
		return true;
	meta->xattrs = malloc(offer->xattrs.len);
	if (!meta->xattrs)
		return false;
	memcpy(meta->xattrs, offer->xattrs.data, offer->xattrs.len);
	meta->xattrs_len = (uint32_t)offer->xattrs.len;
	return true;
}

void vb__meta_free(struct vb__meta *meta)
{
	free(meta->xattrs);
	meta->xattrs = NULL;
	meta->xattrs_len = 0;
}

mode_t vb__meta_mode(const struct vb__meta_rules *rules, const struct vb__meta *meta,
		     const struct stat *old)
{
	if (rules->keep & VB_KEEP_MODE)
		return meta->mode & 07777;
	/* Who may run it as somebody else was decided for the old contents. */
	return old && S_ISREG(old->st_mode) ? old->st_mode & 0777
					    : meta->mode & 0777 & ~rules->umask;
}

static int set_owner(const struct vb__thing *t, uid_t uid, gid_t gid)
{
	return t->fd >= 0 ? fchown(t->fd, uid, gid)
			  : fchownat(t->dir_fd, t->name, uid, gid, AT_SYMLINK_NOFOLLOW);
}

/*
 * Whoever is not root may give files to their other groups at least. Takes off the mode what would
 * let others run it as somebody else than its owner was.
 */
static bool give_away(const struct vb__meta *meta, const struct vb__thing *t, mode_t *mode)
{
	bool user = t->st.st_uid == meta->uid, group = t->st.st_gid == meta->gid, given = false;

	if (!user || !group)
		given = user = group = set_owner(t, meta->uid, meta->gid) == 0;
	if (!given && t->st.st_gid != meta->gid)
		given = group = set_owner(t, (uid_t)-1, meta->gid) == 0;
	user = user || t->st.st_uid == meta->uid;
	group = group || t->st.st_gid == meta->gid;
	if (S_ISREG(t->st.st_mode))
		*mode &= ~((user ? 0u : S_ISUID) | (group ? 0u : S_ISGID));
	return given;
}

static int set_mode(const struct vb__thing *t, mode_t mode)
{
	return t->fd >= 0 ? fchmod(t->fd, mode)
			  : fchmodat(t->dir_fd, t->name, mode, AT_SYMLINK_NOFOLLOW);
}

static int set_time(const struct vb__thing *t, const struct vb__meta *meta)
{
	struct timespec times[2] = {
		{ .tv_nsec = UTIME_OMIT },
		{ .tv_sec = meta->mtime_s, .tv_nsec = meta->mtime_ns },
	};

	return t->fd >= 0 ? futimens(t->fd, times)
			  : utimensat(t->dir_fd, t->name, times, AT_SYMLINK_NOFOLLOW);
}

static bool has_time(const struct stat *st, const struct vb__meta *meta)
{
	return st->st_mtim.tv_sec == meta->mtime_s && st->st_mtim.tv_nsec == meta->mtime_ns;
}

typedef int (*attributes_fn)(const struct vb__meta_rules *rules, const struct vb__meta *meta,
			     const struct vb__thing *t, bool *changed, struct vb_error *err);

/* Of what its owner may not write, not even the attributes may be changed, but by root. */
static int act_on_attributes(attributes_fn act, const struct vb__meta_rules *rules,
			     const struct vb__meta *meta, mode_t mode, const struct vb__thing *t,
			     bool *changed, struct vb_error *err)
{
	struct vb_error failure = { .code = VB_OK };
	int rc = act(rules, meta, t, changed, &failure);

	if (rc && failure.native == EACCES && !(mode & S_IWUSR) && !S_ISLNK(t->st.st_mode) &&
	    set_mode(t, mode | S_IWUSR) == 0) {
		vb__error_clear(&failure);
		rc = act(rules, meta, t, changed, &failure);
		if (set_mode(t, mode) && rc == 0)
			rc = vb__fail_io(&failure, errno, "set the permissions of", t->path);
	}
	return rc ? vb__fail_again(err, &failure) : 0;
}

int vb__meta_apply(const struct vb__meta_rules *rules, const struct vb__meta *meta, mode_t mode,
		   const struct vb__thing *t, bool *changed, struct vb_error *err)
{
	bool given = (rules->keep & VB_KEEP_OWNER) && give_away(meta, t, &mode), attributes = false;
	bool has_mode = S_ISLNK(t->st.st_mode) ||
			((t->st.st_mode & 07777) == mode && !(given && (mode & 07000)));
	bool late = (rules->keep & VB_KEEP_TIMES) && !(has_time(&t->st, meta) && !t->fresh);
	int rc;

	/* An ACL that should not be there has its say in the permissions: it goes first. */
	rc = act_on_attributes(vb__attributes_prune, rules, meta, t->st.st_mode & 07777, t,
			       &attributes, err);
	if (rc == 0 && (!has_mode || attributes) && !S_ISLNK(t->st.st_mode) && set_mode(t, mode))
		rc = vb__fail_io(err, errno, "set the permissions of", t->path);
	if (rc == 0)
		rc = act_on_attributes(vb__attributes_set, rules, meta, mode, t, &attributes, err);
	if (rc == 0 && late && set_time(t, meta))
		rc = vb__fail_io(err, errno, "set the time of", t->path);
	if (changed && (given || !has_mode || late || attributes))
		*changed = true;
	return rc;
}
