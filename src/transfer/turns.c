/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for turns. What is done in one is not its business. */
#include "transfer/turns.h"

#include "core/condition.h"
#include "core/failure.h"
#include "transfer/descriptor.h"

/* How soon those who wait for their turn notice that the transfer is given up. */
#define NOTICE_MS 50

/* A thread whose piece's turn has not come. */
struct vb__turn {
	uint64_t offset;
	pthread_cond_t comes;
	struct vb__turn *next;
};

void vb__turns_init(struct vb__turns *t, int cancel_fd, const char *operation, const char *object)
{
	*t = (struct vb__turns){ .cancel_fd = cancel_fd, .operation = operation, .object = object };
	pthread_mutex_init(&t->lock, NULL);
}

void vb__turns_destroy(struct vb__turns *t)
{
	pthread_mutex_destroy(&t->lock);
}

/* Lock held. Tells those whose wait is over, and nobody else: there may be many. */
static void wake(struct vb__turns *t)
{
	for (struct vb__turn *w = t->waiting; w; w = w->next)
		if (t->failure.code || w->offset <= t->at)
			pthread_cond_signal(&w->comes);
}

static void enlist(struct vb__turns *t, struct vb__turn *me)
{
	vb__cond_init(&me->comes);
	me->next = t->waiting;
	t->waiting = me;
}

static void strike_off(struct vb__turns *t, struct vb__turn *me)
{
	struct vb__turn **at = &t->waiting;

	while (*at != me)
		at = &(*at)->next;
	*at = me->next;
	pthread_cond_destroy(&me->comes);
}

/* Lock held. Returns when it is the turn of what starts at `offset`, or something has failed. */
static void wait_turn(struct vb__turns *t, uint64_t offset)
{
	struct vb__turn me = { .offset = offset };

	enlist(t, &me);
	while (!t->failure.code && t->at < offset) {
		if (!vb__cond_wait(&me.comes, &t->lock, vb__now_ns() + vb__ms(NOTICE_MS)) &&
		    vb__fd_cancelled(t->cancel_fd))
			vb__fail_cancelled(&t->failure, t->operation, t->object);
	}
	strike_off(t, &me);
}

static void fail_protocol(struct vb__turns *t, const char *cause)
{
	vb__fail(&t->failure, &(struct vb__failure){
				      .code = VB_ERR_PROTOCOL,
				      .operation = t->operation,
				      .object = t->object,
				      .cause = cause,
			      });
}

int vb__turns_take(struct vb__turns *t, uint64_t offset, struct vb_error *err)
{
	int rc;

	pthread_mutex_lock(&t->lock);
	if (t->at < offset)
		wait_turn(t, offset);
	if (t->at > offset)
		fail_protocol(t, "the same place came a second time");
	rc = t->failure.code ? vb__fail_again(err, &t->failure) : 0;
	if (rc)
		wake(t);
	pthread_mutex_unlock(&t->lock);
	return rc;
}

void vb__turns_pass(struct vb__turns *t, uint64_t length, const struct vb_error *failure)
{
	pthread_mutex_lock(&t->lock);
	if (failure->code)
		vb__fail_again(&t->failure, failure);
	else
		t->at += length;
	wake(t);
	pthread_mutex_unlock(&t->lock);
}

unsigned vb__turns_waiting(struct vb__turns *t)
{
	unsigned count = 0;

	pthread_mutex_lock(&t->lock);
	for (const struct vb__turn *w = t->waiting; w && !t->failure.code; w = w->next)
		count += w->offset > t->at;
	pthread_mutex_unlock(&t->lock);
	return count;
}

int vb__turns_end(struct vb__turns *t, uint64_t total, struct vb_error *err)
{
	int rc;

	pthread_mutex_lock(&t->lock);
	if (t->at != total)
		fail_protocol(t, "the end came before all of the data");
	rc = t->failure.code ? vb__fail_again(err, &t->failure) : 0;
	pthread_mutex_unlock(&t->lock);
	return rc;
}
