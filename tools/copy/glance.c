/* SPDX-License-Identifier: Apache-2.0 */
/* Glances. What makes trees the same is known to the library. */
#include "copy/glance.h"

#include <unistd.h>

#include "common/event.h"

/* A transfer is needed to tell of each entry; and what is in a list but not there, the sender tells. */
bool glance_is_for(const struct order *order)
{
	const struct vb_tree_options *tree = &order->tree;

	return order->role != ROLE_COPY && !order->stream && !order->tunnelled &&
	       tree->select == VB_SELECT_CHANGED && !tree->dry_run && !tree->tell_all &&
	       !order->transfer.fsync && order->paths.count && !order->listed.count;
}

static void *look(void *arg)
{
	struct glance *glance = arg;
	const struct order *order = glance->order;
	struct vb_tree_options tree = order->tree;
	struct vb_tree_scope scope = { .paths = list_texts(&order->paths),
				       .path_count = order->paths.count,
				       .target = order->role == ROLE_RECEIVE ? order->target : NULL,
				       .key = order->glance_key,
				       .stop_fd = glance->stop };
	struct vb_error err;

	tree.rules = list_texts(&order->rules);
	glance->seen.known = vb_tree_sum(&scope, &tree, &glance->seen.sum, &err) == 0;
	if (!glance->seen.known && err.code == VB_ERR_INTERRUPTED)
		return NULL;
	atomic_store(&glance->ready, true);
	glance->done(glance->arg, &glance->seen);
	return NULL;
}

void glance_begin(struct glance *glance, const struct order *order, glance_fn done, void *arg)
{
	*glance = (struct glance){ .order = order, .done = done, .arg = arg };
	glance->stop = event_open();
	if (glance->stop < 0)
		return;
	glance->begun = pthread_create(&glance->thread, NULL, look, glance) == 0;
	if (!glance->begun)
		close(glance->stop);
}

bool glance_has_seen(const struct glance *glance, struct glimpse *seen)
{
	bool ready = atomic_load(&glance->ready);

	if (ready)
		*seen = glance->seen;
	return ready;
}

void glance_end(struct glance *glance)
{
	if (!glance->begun)
		return;
	event_raise(glance->stop);
	pthread_join(glance->thread, NULL);
	close(glance->stop);
	glance->begun = false;
}
