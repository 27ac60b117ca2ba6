/* SPDX-License-Identifier: Apache-2.0 */
/* What happens to entries: counted, and told to the user. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/failure.h"
#include "tree/source_state.h"

void vb__source_tell(struct vb__tree_source *s, const struct vb_tree_event *event)
{
	bool failure = event->happening == VB_TREE_FAILED || event->happening == VB_TREE_VANISHED;

	if (!s->options->event || !(failure || s->options->tell_all))
		return;
	pthread_mutex_lock(&s->telling);
	s->options->event(s->options->event_arg, event);
	pthread_mutex_unlock(&s->telling);
}

static void count_failure(struct vb__tree_source *s, bool vanished)
{
	pthread_mutex_lock(&s->lock);
	*(vanished ? &s->sums.vanished : &s->sums.failed) += 1;
	pthread_mutex_unlock(&s->lock);
}

static void copy(char *to, size_t size, const void *from, size_t len)
{
	len = len < size ? len : size - 1;
	if (len)
		memcpy(to, from, len);
	to[len] = '\0';
}

/* The end of a path says more than its start. */
static const char *end_of(const char *path)
{
	size_t len = strlen(path), room = sizeof(((struct vb_error *)0)->object) - 1;

	return len > room ? path + len - room : path;
}

void vb__source_miss(struct vb__tree_source *s, const struct vb__item *item, int errnum,
		     const char *why, struct vb__notice *notice)
{
	char *path = vb__dir_path(item->dir, item->name);
	bool vanished = errnum == ENOENT && !why;
	struct vb_error failure = { .code = VB_OK };
	struct vb_tree_event event = {
		.happening = vanished ? VB_TREE_VANISHED : VB_TREE_FAILED,
		.path = path ? path : item->name,
		.mode = item->mode,
		.failure = &failure,
	};

	vb__fail(&failure, &(struct vb__failure){
				   .code = VB_ERR_IO,
				   .native_kind = errnum ? VB_NATIVE_ERRNO : VB_NATIVE_NONE,
				   .native = errnum,
				   .operation = "read",
				   .object = end_of(event.path),
				   .cause = why,
			   });
	*notice = (struct vb__notice){
		.parcel = { .kind = VB__PARCEL_MISSED,
			    .number = item->number,
			    .vanished = vanished,
			    .error = failure.code,
			    .native = errnum },
	};
	copy(notice->words, sizeof(notice->words), failure.cause, strlen(failure.cause));
	count_failure(s, vanished);
	vb__source_tell(s, &event);
	free(path);
}

void vb__source_tell_missed(struct vb__tree_source *s, const struct vb__walked *walked)
{
	const struct vb__offer *offer = walked->offer;
	bool vanished = offer->flags & VB__OFFER_VANISHED;
	struct vb_error failure = {
		.code = (enum vb_err)offer->error,
		.native_kind = offer->native ? VB_NATIVE_ERRNO : VB_NATIVE_NONE,
		.native = offer->native,
		.operation = "read",
	};
	struct vb_tree_event event = {
		.happening = vanished ? VB_TREE_VANISHED : VB_TREE_FAILED,
		.path = walked->path,
		.mode = walked->mode,
		.failure = &failure,
	};

	copy(failure.object, sizeof(failure.object), end_of(walked->path),
	     strlen(end_of(walked->path)));
	copy(failure.cause, sizeof(failure.cause), offer->target.data, offer->target.len);
	count_failure(s, vanished);
	vb__source_tell(s, &event);
}

/* A dry run knows only by what is told; what is not a file was counted as copied when it was offered. */
static void count_happened(struct vb__tree_source *s, const struct vb__answer *a)
{
	struct vb_tree_report *sums = &s->sums;
	uint64_t *kind = S_ISDIR(a->mode)   ? &sums->directories
			 : S_ISLNK(a->mode) ? &sums->symlinks
					    : &sums->specials;

	switch (a->happening) {
	case VB_TREE_FAILED:
		sums->failed++;
		break;
	case VB_TREE_VANISHED:
		sums->vanished++;
		break;
	case VB_TREE_DELETED:
		sums->deleted++;
		break;
	case VB_TREE_UNCHANGED:
		if (a->mode && !S_ISREG(a->mode) && *kind) {
			*kind -= 1;
			sums->unchanged++;
		}
		break;
	case VB_TREE_COPIED:
		if (s->options->dry_run && S_ISREG(a->mode) && sums->unchanged) {
			sums->files++;
			sums->unchanged--;
		}
		break;
	}
}

void vb__source_tell_happened(struct vb__tree_source *s, const struct vb__answer *a)
{
	bool failed = a->happening == VB_TREE_FAILED || a->happening == VB_TREE_VANISHED;
	char path[VB__ANSWER_MAX + 1];
	struct vb_error failure = {
		.code = (enum vb_err)a->error,
		.native_kind = a->native ? VB_NATIVE_ERRNO : VB_NATIVE_NONE,
		.native = a->native,
		.operation = "write",
	};
	struct vb_tree_event event = {
		.happening = a->happening,
		.at_peer = true,
		.path = path,
		.mode = a->mode,
		.bytes = a->bytes,
		.failure = failed ? &failure : NULL,
	};

	copy(path, sizeof(path), a->path.data, a->path.len);
	copy(failure.object, sizeof(failure.object), end_of(path), strlen(end_of(path)));
	copy(failure.cause, sizeof(failure.cause), a->cause.data, a->cause.len);
	pthread_mutex_lock(&s->lock);
	count_happened(s, a);
	pthread_mutex_unlock(&s->lock);
	vb__source_tell(s, &event);
}
