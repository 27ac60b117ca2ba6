/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attributes of an open file, or of what stands under a name: there is no call for that, but a way
 * by /proc, which does not follow the last link either.
 */
#include "tree/attributes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

#include <verbatim/tree.h>

#include "core/failure.h"

/* The kernel's own limits. */
#define LIST_MAX (64u << 10)
#define VALUE_MAX (64u << 10)

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool is_acl(const char *name)
{
	return strcmp(name, "system.posix_acl_access") == 0 ||
	       strcmp(name, "system.posix_acl_default") == 0;
}

/* Is it ours to deal with? The label of SELinux is given by the system here, not by the sender. */
static bool is_kept(const struct vb__meta_rules *rules, const char *name)
{
	if (is_acl(name))
		return rules->keep & VB_KEEP_ACLS;
	if (!(rules->keep & VB_KEEP_XATTRS))
		return false;
	if (starts_with(name, "user."))
		return true;
	return rules->root && strcmp(name, "security.selinux") != 0 &&
	       (starts_with(name, "trusted.") || starts_with(name, "security."));
}

/* What the system keeps for itself may be refused. */
static bool may_fail(const char *name, int errnum)
{
	return starts_with(name, "security.") &&
	       (errnum == EPERM || errnum == ENOTSUP || errnum == EACCES || errnum == EINVAL);
}

struct by_name {
	char path[32 + VB__NAME_MAX + 1];
};

static const char *path_of(const struct vb__thing *t, struct by_name *by)
{
	snprintf(by->path, sizeof(by->path), "/proc/self/fd/%d/%s", t->dir_fd, t->name);
	return by->path;
}

static ssize_t list_of(const struct vb__thing *t, char *list, size_t room)
{
	struct by_name by;

	return t->fd >= 0 ? flistxattr(t->fd, list, room) : llistxattr(path_of(t, &by), list, room);
}

static ssize_t get(const struct vb__thing *t, const char *name, void *value, size_t room)
{
	struct by_name by;

	return t->fd >= 0 ? fgetxattr(t->fd, name, value, room)
			  : lgetxattr(path_of(t, &by), name, value, room);
}

static int set(const struct vb__thing *t, const struct vb__xattr *x)
{
	struct by_name by;

	return t->fd >= 0 ? fsetxattr(t->fd, x->name, x->value.data, x->value.len, 0)
			  : lsetxattr(path_of(t, &by), x->name, x->value.data, x->value.len, 0);
}

static int drop(const struct vb__thing *t, const char *name)
{
	struct by_name by;

	return t->fd >= 0 ? fremovexattr(t->fd, name) : lremovexattr(path_of(t, &by), name);
}

static bool is_given(const struct vb__meta *meta, const char *name)
{
	struct vb__xattr x;
	size_t at = 0;

	while (at < meta->xattrs_len && vb__xattr_decode(&x, meta->xattrs, meta->xattrs_len, &at))
		if (strcmp(x.name, name) == 0)
			return true;
	return false;
}

static int fail(struct vb_error *err, int errnum, const char *operation, const char *name,
		const struct vb__thing *t)
{
	char cause[sizeof(err->cause)];

	snprintf(cause, sizeof(cause), "attribute %.200s: %s", name, strerror(errnum));
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_IO,
				     .native_kind = VB_NATIVE_ERRNO,
				     .native = errnum,
				     .operation = operation,
				     .object = t->path,
				     .cause = cause,
			     });
}

static int prune(const struct vb__meta_rules *rules, const struct vb__meta *meta,
		 const struct vb__thing *t, const char *list, size_t len, bool *changed,
		 struct vb_error *err)
{
	for (const char *name = list; name < list + len; name += strlen(name) + 1) {
		if (!is_kept(rules, name) || is_given(meta, name))
			continue;
		if (drop(t, name) == 0)
			*changed = true;
		else if (errno != ENODATA && !may_fail(name, errno))
			return fail(err, errno, "clear", name, t);
	}
	return 0;
}

static bool concerns(const struct vb__meta_rules *rules, const struct vb__thing *t)
{
	/* Links have no ACLs, nor attributes of the user. */
	return (rules->keep & (VB_KEEP_XATTRS | VB_KEEP_ACLS)) &&
	       !(S_ISLNK(t->st.st_mode) && !rules->root);
}

int vb__attributes_prune(const struct vb__meta_rules *rules, const struct vb__meta *meta,
			 const struct vb__thing *t, bool *changed, struct vb_error *err)
{
	char few[1024], *list = few;
	ssize_t n;
	int rc;

	if (t->fresh || !concerns(rules, t))
		return 0;
	n = list_of(t, few, sizeof(few) - 1);
	if (n < 0 && errno == ERANGE && (list = malloc(LIST_MAX + 1)))
		n = list_of(t, list, LIST_MAX);
	if (!list)
		return vb__fail_errno(err, ENOMEM, "malloc", NULL);
	if (n > 0)
		list[n] = '\0'; /* it is, but who knows */
	rc = n > 0 ? prune(rules, meta, t, list, (size_t)n, changed, err) : 0;
	if (list != few)
		free(list);
	return rc;
}

static bool is_set(const struct vb__thing *t, const struct vb__xattr *x, uint8_t *room)
{
	ssize_t n;

	if (t->fresh)
		return false;
	n = get(t, x->name, room, VALUE_MAX);
	return n >= 0 && (size_t)n == x->value.len && memcmp(room, x->value.data, (size_t)n) == 0;
}

int vb__attributes_set(const struct vb__meta_rules *rules, const struct vb__meta *meta,
		       const struct vb__thing *t, bool *changed, struct vb_error *err)
{
	uint8_t *room = NULL;
	struct vb__xattr x;
	size_t at = 0;
	int rc = 0;

	if (!meta->xattrs_len || !concerns(rules, t))
		return 0;
	room = malloc(VALUE_MAX);
	if (!room)
		return vb__fail_errno(err, ENOMEM, "malloc", NULL);
	while (rc == 0 && at < meta->xattrs_len &&
	       vb__xattr_decode(&x, meta->xattrs, meta->xattrs_len, &at)) {
		if (!is_kept(rules, x.name) || is_set(t, &x, room))
			continue;
		if (set(t, &x) == 0)
			*changed = true;
		else if (!may_fail(x.name, errno))
			rc = fail(err, errno, "set", x.name, t);
	}
	free(room);
	return rc;
}
