/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where posting is a system call, small messages are put together while
 * earlier ones are under way. The application may go away to do something
 * else just then; this thread sees to it that nothing stays behind. And where
 * accesses to memory need somebody who polls, at both ends, it is the one: for
 * the peer's all the time, for our own while nobody else does. The same goes for what the socket had no room for
 * when it was posted. Under a stream it looks at what came while the program is in no call. It exists only in
 * channels that have put messages together, granted memory or accessed some, or were behind with sending, and
 * under streams that said that it may be needed.
 */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "channel/channel_state.h"
#include "channel/inside.h"
#include "core/condition.h"

/* How long a message that is not alone may wait for company. */
#define PATIENCE_NS 50000

/* Who goes on accessing memory polls by itself, and would only be disturbed. */
#define STEP_BACK_MS 5u

static void wait_for_room(struct vb_channel *ch)
{
	while (ch->outbox.slot && !ch->flusher.stop && !ch->failure.code) {
		vb__channel_progress(ch);
		vb__outbox_push(ch);
		if (ch->outbox.slot)
			vb__channel_wait(ch, VB__NEWS_ROOM);
	}
}

static void be_idle(struct vb_channel *ch, uint64_t until_ns)
{
	ch->flusher.idle = true;
	vb__cond_wait(&ch->flusher.wanted, &ch->lock, until_ns);
	ch->flusher.idle = false;
}

/* Whoever waits looks as well, and better. So it is woken only when that one goes. */
static void rest(struct vb_channel *ch)
{
	ch->flusher.rests = true;
	be_idle(ch, UINT64_MAX);
	ch->flusher.rests = false;
}

/* What has changed until now is seen by this look. */
static void look_for_others(struct vb_channel *ch)
{
	struct vb__flusher *f = &ch->flusher;
	bool more;

	f->looked_at = ch->changes;
	f->to_send = false;
	vb__channel_unlock(ch);
	more = f->look(f->look_arg);
	vb__channel_lock(ch);
	f->to_send |= more; /* somebody may have left with more since */
	if (!f->to_send && !(ch->ep->caps & VB__CAP_ATTENDED))
		f->stands_in = false;
}

static unsigned news_for_others(const struct vb__flusher *f)
{
	if (!f->look)
		return 0;
	return VB__NEWS_RECEIVED | (f->to_send ? VB__NEWS_SENT | VB__NEWS_ROOM : 0);
}

static void sleep_for_others(struct vb_channel *ch)
{
	struct vb__flusher *f = &ch->flusher;

	f->sleeps = !f->attends;
	vb__channel_wait(ch, news_for_others(f));
	f->sleeps = false;
}

/* Not every call polls, and whoever polls need not look at what came thereby. */
static void step_back(struct vb_channel *ch)
{
	struct vb__flusher *f = &ch->flusher;

	f->steps_back = true;
	be_idle(ch, vb__now_ns() + vb__ms(STEP_BACK_MS));
	f->steps_back = false;
	if (f->stop || ch->failure.code)
		return;
	vb__channel_progress(ch);
	if (f->look && f->looked_at != ch->changes)
		look_for_others(ch);
}

static bool is_needed(const struct vb_channel *ch)
{
	return ch->flusher.attends || ch->flusher.stands_in || vb__ep_is_behind(ch->ep);
}

/* There is nothing in the outbox. */
static void stand_by(struct vb_channel *ch)
{
	struct vb__flusher *f = &ch->flusher;
	bool in_use = atomic_exchange(&f->in_use, false);

	if (ch->failure.code || !is_needed(ch))
		be_idle(ch, UINT64_MAX);
	else if (!f->attends && in_use)
		step_back(ch);
	else if (!f->attends && f->watchers)
		rest(ch);
	else if (f->look && f->looked_at != ch->changes)
		look_for_others(ch);
	else
		sleep_for_others(ch);
}

static void *flush(void *arg)
{
	const struct timespec patience = { .tv_nsec = PATIENCE_NS };
	struct vb_channel *ch = arg;
	struct vb__flusher *f = &ch->flusher;

	vb__channel_lock(ch);
	while (!f->stop) {
		if (!ch->outbox.slot || ch->failure.code) {
			stand_by(ch);
			continue;
		}
		vb__channel_unlock(ch);
		nanosleep(&patience, NULL);
		vb__channel_lock(ch);
		wait_for_room(ch);
	}
	vb__channel_unlock(ch);
	return NULL;
}

/* The application's signals are for its own threads. Returns an errno. */
static int start(struct vb_channel *ch)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&ch->flusher.thread, NULL, flush, ch);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

int vb__flusher_ready(struct vb_channel *ch)
{
	struct vb__flusher *f = &ch->flusher;
	int errnum = f->running ? 0 : start(ch);

	if (errnum)
		vb__log(&ch->settings.log, VB_LOG_DEBUG,
			"pthread_create for %s: %s; small messages go one by one", ch->ep->peer,
			strerror(errnum));
	f->running = !errnum;
	return errnum;
}

void vb__flusher_wake(struct vb_channel *ch)
{
	struct vb__flusher *f = &ch->flusher;

	if (f->idle) {
		f->idle = false;
		pthread_cond_signal(&f->wanted);
	} else if (f->attends || f->stands_in) {
		vb__channel_alert(ch); /* it waits as all the others do */
	}
}

int vb__flusher_attend(struct vb_channel *ch)
{
	int errnum = vb__flusher_ready(ch);

	if (errnum)
		return errnum;
	ch->flusher.attends = true;
	vb__flusher_wake(ch);
	return 0;
}

int vb__flusher_stand_in(struct vb_channel *ch)
{
	struct vb__flusher *f = &ch->flusher;
	int errnum = f->stands_in ? 0 : vb__flusher_ready(ch);

	if (errnum)
		return errnum;
	f->in_use = true;
	if (!f->stands_in) {
		f->stands_in = true;
		vb__flusher_wake(ch);
	}
	return 0;
}

void vb__flusher_make_room(struct vb_channel *ch)
{
	struct vb__flusher *f = &ch->flusher;

	if (!f->sleeps || pthread_equal(pthread_self(), f->thread))
		return;
	f->sleeps = false;
	vb__ep_wake(ch->ep);
}

/* Once: it is tried again with each call. */
static void tell_of_no_thread(struct vb_channel *ch)
{
	if (!ch->flusher.missed)
		vb__log(&ch->settings.log, VB_LOG_WARNING,
			"there is no thread for %s: what is under way may go on in the next call only",
			ch->ep->peer);
	ch->flusher.missed = true;
}

void vb__flusher_see_off(struct vb_channel *ch)
{
	struct vb__flusher *f = &ch->flusher;

	if (!vb__ep_is_behind(ch->ep) || f->stop)
		return;
	vb__flusher_note_use(ch); /* it may be over soon */
	if (f->steps_back)
		return;
	if (vb__flusher_ready(ch) != 0)
		tell_of_no_thread(ch);
	else if (f->idle)
		vb__flusher_wake(ch);
}

void vb__channel_appoint(struct vb_channel *ch, bool (*look)(void *arg), void *arg)
{
	vb__channel_lock(ch);
	ch->flusher.look = look;
	ch->flusher.look_arg = arg;
	vb__channel_unlock(ch);
}

void vb__channel_leave(struct vb_channel *ch, bool to_send)
{
	struct vb__flusher *f = &ch->flusher;

	/* It knows already; reads come by the million. */
	if (!to_send && atomic_load_explicit(&f->stands_in, memory_order_relaxed) &&
	    atomic_load_explicit(&f->in_use, memory_order_relaxed))
		return;
	vb__channel_lock(ch);
	if (vb__flusher_stand_in(ch) != 0) {
		tell_of_no_thread(ch);
	} else if (to_send && !f->to_send) {
		f->to_send = true;
		ch->changes++; /* whoever is about to wait sees to it, too */
		if (f->watchers)
			vb__channel_alert(ch);
		else if (!f->steps_back)
			vb__flusher_wake(ch);
	}
	vb__channel_unlock(ch);
}

void vb__flusher_note_use(struct vb_channel *ch)
{
	struct vb__flusher *f = &ch->flusher;

	if (f->running && !pthread_equal(pthread_self(), f->thread))
		atomic_store_explicit(&f->in_use, true, memory_order_relaxed);
}

void vb__flusher_watch(struct vb_channel *ch)
{
	ch->flusher.watchers++;
}

void vb__flusher_unwatch(struct vb_channel *ch)
{
	struct vb__flusher *f = &ch->flusher;

	vb__flusher_note_use(ch);
	if (--f->watchers == 0 && f->rests) {
		f->rests = false;
		vb__flusher_wake(ch);
	}
}

void vb__flusher_stop(struct vb_channel *ch)
{
	struct vb__flusher *f = &ch->flusher;
	bool running;

	vb__channel_lock(ch);
	running = f->running;
	f->stop = true;
	f->running = false;
	ch->changes++; /* it may be spinning */
	pthread_cond_signal(&f->wanted);
	vb__ep_wake(ch->ep); /* it may be the one that sleeps there */
	pthread_cond_broadcast(&ch->changed);
	vb__channel_unlock(ch);
	if (running)
		pthread_join(f->thread, NULL);
}
