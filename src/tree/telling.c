/* SPDX-License-Identifier: Apache-2.0 */
/* Events, for the user here and, as answers, for the one there. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/failure.h"
#include "tree/tree_sink.h"

void vb__tree_count(struct vb__tree_sink *s, uint64_t *number, uint64_t more)
{
	pthread_mutex_lock(&s->lock);
	*number += more;
	pthread_mutex_unlock(&s->lock);
}

static bool is_failure(const struct vb__told *told)
{
	return told->happening == VB_TREE_FAILED || told->happening == VB_TREE_VANISHED;
}

static void answer(struct vb__tree_sink *s, const struct vb__told *told, const char *path)
{
	const struct vb_error *f = told->failure;
	struct vb__answer a = {
		.kind = VB__ANSWER_HAPPENED,
		.happening = (uint8_t)told->happening,
		.mode = told->mode,
		.bytes = told->bytes,
		.path = { .data = (const uint8_t *)path, .len = strlen(path) },
	};

	if (f) {
		a.error = f->code;
		a.native = f->native_kind == VB_NATIVE_ERRNO ? f->native : 0;
		a.cause.data = (const uint8_t *)f->cause;
		a.cause.len = strlen(f->cause);
	}
	vb__answers_add(&s->answers, &a);
}

static void tell_here(struct vb__tree_sink *s, const struct vb__told *told, const char *path)
{
	struct vb_tree_event event = {
		.happening = told->happening,
		.at_peer = told->at_peer,
		.path = path,
		.mode = told->mode,
		.bytes = told->bytes,
		.failure = told->failure,
	};

	if (!s->tree->event)
		return;
	pthread_mutex_lock(&s->telling);
	s->tree->event(s->tree->event_arg, &event);
	pthread_mutex_unlock(&s->telling);
}

/* Before there is a place there is only a name. */
static char *path_of(const struct vb__told *told)
{
	const char *name = told->name;

	if (told->place)
		return vb__place_path(told->place, name);
	return strdup(name ? name : "");
}

void vb__tree_tell(struct vb__tree_sink *s, const struct vb__told *told)
{
	char *path;

	if (told->happening == VB_TREE_FAILED)
		vb__tree_count(s, &s->report.failed, 1);
	if (told->happening == VB_TREE_VANISHED)
		vb__tree_count(s, &s->report.vanished, 1);
	if (!is_failure(told) && !s->tree->tell_all)
		return;
	path = path_of(told);
	if (!path)
		return;
	tell_here(s, told, path);
	if (!told->at_peer)
		answer(s, told, path);
	free(path);
}

/* What the next entry would meet as well. */
static bool is_everybodys(int errnum)
{
	return errnum == ENOSPC || errnum == EDQUOT || errnum == EROFS || errnum == EIO ||
	       errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM;
}

/* The end of a path says more than its start. */
static void name_object(struct vb_error *err, const struct vb__told *told)
{
	size_t room = sizeof(err->object) - 1, len;
	char *path = path_of(told);

	len = path ? strlen(path) : 0;
	if (len)
		snprintf(err->object, sizeof(err->object), "%s%s", len > room ? "..." : "",
			 len > room ? path + len - (room - 3) : path);
	free(path);
}

int vb__tree_fail(struct vb__tree_sink *s, struct vb__place *place, const char *name, mode_t mode,
		  const struct vb_error *failure, struct vb_error *err)
{
	struct vb_error named = *failure;
	struct vb__told told = {
		.happening = VB_TREE_FAILED,
		.place = place,
		.name = name,
		.mode = mode,
		.failure = &named,
	};

	name_object(&named, &told);
	if (named.native_kind == VB_NATIVE_ERRNO && named.native == ESTALE)
		snprintf(named.cause, sizeof(named.cause),
			 "somebody has put something else in its place meanwhile");
	if (named.code != VB_ERR_IO ||
	    (named.native_kind == VB_NATIVE_ERRNO && is_everybodys(named.native)))
		return vb__fail_again(err, &named);
	vb__tree_tell(s, &told);
	return 0;
}

int vb__tree_fail_errno(struct vb__tree_sink *s, struct vb__place *place, const char *name,
			mode_t mode, int errnum, const char *operation, struct vb_error *err)
{
	struct vb_error failure = { .code = VB_OK };

	vb__fail_io(&failure, errnum, operation, NULL);
	return vb__tree_fail(s, place, name, mode, &failure, err);
}

int vb__tree_fail_protocol(const struct vb__tree_sink *s, const char *cause, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_PROTOCOL,
				     .operation = "receive to",
				     .object = s->target.path,
				     .cause = cause,
			     });
}
