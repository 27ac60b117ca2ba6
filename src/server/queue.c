/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of those who may have something to tell the server. */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/failure.h"
#include "server/server_state.h"

int vb__queue_open(struct vb__queue *q, struct vb_error *err)
{
	*q = (struct vb__queue){ .wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) };
	pthread_mutex_init(&q->lock, NULL);
	return q->wake < 0 ? vb__fail_errno(err, errno, "eventfd", NULL) : 0;
}

void vb__queue_close(struct vb__queue *q)
{
	if (q->wake >= 0)
		close(q->wake);
	pthread_mutex_destroy(&q->lock);
}

/* Lock held. */
static bool append(struct vb__queue *q, struct vb__client *client)
{
	if (client->queued)
		return false;
	client->queued = true;
	client->next_turn = NULL;
	if (q->last)
		q->last->next_turn = client;
	else
		q->first = client;
	q->last = client;
	q->count++;
	return true;
}

void vb__queue_add(struct vb__queue *q, struct vb__client *client)
{
	pthread_mutex_lock(&q->lock);
	append(q, client);
	pthread_mutex_unlock(&q->lock);
}

void vb__queue_call(struct vb__queue *q, struct vb__client *client)
{
	uint64_t one = 1;

	pthread_mutex_lock(&q->lock);
	if (append(q, client) && !q->woken) {
		q->woken = true;
		while (write(q->wake, &one, sizeof(one)) < 0 && errno == EINTR)
			;
	}
	pthread_mutex_unlock(&q->lock);
}

void vb__queue_woken(struct vb__queue *q)
{
	uint64_t count;

	pthread_mutex_lock(&q->lock);
	while (read(q->wake, &count, sizeof(count)) < 0 && errno == EINTR)
		;
	q->woken = false;
	pthread_mutex_unlock(&q->lock);
}

/* Lock held. `before` stands in front of it, or is NULL. */
static void take_out(struct vb__queue *q, struct vb__client *before, struct vb__client *client)
{
	if (before)
		before->next_turn = client->next_turn;
	else
		q->first = client->next_turn;
	if (q->last == client)
		q->last = before;
	client->queued = false;
	q->count--;
}

struct vb__client *vb__queue_next(struct vb__queue *q)
{
	struct vb__client *client;

	pthread_mutex_lock(&q->lock);
	client = q->first;
	if (client)
		take_out(q, NULL, client);
	pthread_mutex_unlock(&q->lock);
	return client;
}

void vb__queue_remove(struct vb__queue *q, struct vb__client *client)
{
	struct vb__client *before = NULL;

	pthread_mutex_lock(&q->lock);
	if (client->queued) {
		for (struct vb__client *c = q->first; c != client; c = c->next_turn)
			before = c;
		take_out(q, before, client);
	}
	pthread_mutex_unlock(&q->lock);
}
