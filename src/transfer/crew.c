/* SPDX-License-Identifier: Apache-2.0 */
/* A crew's threads, and conducting them. What a worker does is not its business. */
#include "transfer/crew.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"

#define PROGRESS_MS 100u
#define TELLING_MS 500u
/* While something is under way that nobody waits for. */
#define TENDING_MS 3u
/* A broken rail may be the consequence of something that the peer is about to tell. */
#define REASON_MS 1500u
/* A failure to read or write may be the consequence of a stop that is about to be heard of. */
#define STOPPING_MS 50

static void signal_fd(int fd)
{
	const uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* Not the time that the rails took to connect: it must not go backwards when they have. */
static uint64_t elapsed(const struct vb__crew *c)
{
	return c->start_ns ? vb__now_ns() - c->start_ns : 0;
}

int vb__crew_open(struct vb__crew *c, struct vb_session *session, struct vb_error *err)
{
	*c = (struct vb__crew){ .session = session };
	c->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->cancel_fd < 0 || c->done_fd < 0) {
		vb__fail_errno(err, errno, "eventfd", NULL);
		if (c->cancel_fd >= 0)
			close(c->cancel_fd);
		if (c->done_fd >= 0)
			close(c->done_fd);
		session->failed = true;
		vb__session_tell_failure(session, err);
		return (int)err->code;
	}
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	return 0;
}

static void *run(void *arg)
{
	struct vb__crew *c = arg;
	unsigned number;

	pthread_mutex_lock(&c->lock);
	number = c->numbered++;
	pthread_mutex_unlock(&c->lock);
	c->work(c, number);
	pthread_mutex_lock(&c->lock);
	c->working--;
	pthread_mutex_unlock(&c->lock);
	signal_fd(c->done_fd);
	return NULL;
}

int vb__crew_start(struct vb__crew *c, unsigned count,
		   void (*work)(struct vb__crew *crew, unsigned number), struct vb_error *err)
{
	sigset_t all, before;
	int rc = 0;

	c->work = work;
	c->working = count;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (c->thread_count < count && rc == 0) {
		rc = pthread_create(&c->threads[c->thread_count], NULL, run, c);
		c->thread_count += rc == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0)
		return 0;
	pthread_mutex_lock(&c->lock);
	c->working -= count - c->thread_count;
	pthread_mutex_unlock(&c->lock);
	rc = vb__fail_errno(err, rc, "pthread_create", NULL);
	vb__crew_fail(c, err);
	return rc;
}

void vb__crew_fail(struct vb__crew *c, const struct vb_error *failure)
{
	static const struct vb_error unknown = { .code = VB_ERR_IO,
						 .cause = "it failed without saying why" };

	if (failure->code == VB_OK) /* at_end may forget to */
		failure = &unknown;
	pthread_mutex_lock(&c->lock);
	vb__fail_again(&c->failure, failure);
	c->failed = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	signal_fd(c->cancel_fd);
	for (unsigned i = 0; i < VB_RAILS_MAX; i++)
		if (c->session->rails[i])
			vb__channel_cancel(c->session->rails[i], failure);
	signal_fd(c->done_fd);
}

bool vb__crew_failed(struct vb__crew *c)
{
	bool failed;

	pthread_mutex_lock(&c->lock);
	failed = c->failed;
	pthread_mutex_unlock(&c->lock);
	return failed;
}

void vb__crew_count(struct vb__crew *c, const struct vb__block *block,
		    const struct vb__message *message)
{
	pthread_mutex_lock(&c->lock);
	c->sum.bytes += block->length;
	c->sum.blocks++;
	c->sum.digest += block->hash;
	if (block->flags & VB__BLOCK_HOLE)
		c->hole_bytes += block->length;
	c->wire_bytes += message->len - VB__BLOCK_TRAILER;
	c->pack_ns += message->pack_ns;
	pthread_mutex_unlock(&c->lock);
}

static unsigned filled(const struct vb_session *s)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < s->rail_count; i++)
		sum += vb__channel_filled(s->rails[i]);
	return s->rail_count ? sum / s->rail_count : 0;
}

static struct vb__sum current(struct vb__crew *c)
{
	struct vb__sum sum;

	pthread_mutex_lock(&c->lock);
	sum = c->sum;
	pthread_mutex_unlock(&c->lock);
	sum.filled = (uint8_t)filled(c->session);
	return sum;
}

static void show_progress(struct vb__crew *c)
{
	const struct vb__plan *plan = &c->session->plan;
	struct vb__sum sum = current(c);
	struct vb_progress progress = {
		.bytes = sum.bytes,
		.total_bytes = c->session->agreed.total_bytes,
		.elapsed_ns = elapsed(c),
		.filled_here = sum.filled,
		.filled_there = c->session->theirs.filled,
	};

	if (!plan->progress)
		return;
	if (c->progress)
		c->progress(c, &progress);
	plan->progress(plan->progress_arg, &progress);
}

static void tell_progress(struct vb__crew *c)
{
	struct vb__words words = { .kind = VB__WORDS_PROGRESS, .sum = current(c) };
	struct vb_error err = { .code = VB_OK };

	/* A peer that does not listen is not told more and more. */
	if (vb__parley_flush(c->session->parley, NULL) != VB_ERR_AGAIN &&
	    vb__session_say(c->session, &words, &err) != 0)
		vb__crew_fail(c, &err);
}

/* As many notes as the peer has room for. */
static void say_notes(struct vb__crew *c)
{
	uint8_t note[VB__NOTE_ROOM];
	struct vb__words words = { .kind = VB__WORDS_NOTE };
	struct vb_error err = { .code = VB_OK };

	c->silent = !c->speak;
	while (!c->silent && vb__parley_flush(c->session->parley, NULL) != VB_ERR_AGAIN) {
		words.note.bytes = note;
		words.note.len = c->speak(c, note, sizeof(note));
		c->silent = words.note.len == 0;
		if (!c->silent && vb__session_say(c->session, &words, &err) != 0) {
			vb__crew_fail(c, &err);
			return;
		}
	}
}

/* Shows and tells what is due; returns when it is time again. */
static uint64_t keep_time(struct vb__crew *c)
{
	uint64_t now = vb__now_ns(), next;

	if (now >= c->progress_ns) {
		show_progress(c);
		c->progress_ns = now + vb__ms(PROGRESS_MS);
	}
	if (now >= c->telling_ns) {
		if (c->telling_ns)
			tell_progress(c);
		c->telling_ns = now + vb__ms(TELLING_MS);
	}
	next = c->progress_ns < c->telling_ns ? c->progress_ns : c->telling_ns;
	for (unsigned i = 0; i < c->session->rail_count; i++)
		if (vb__channel_tend(c->session->rails[i]) && now + vb__ms(TENDING_MS) < next)
			next = now + vb__ms(TENDING_MS);
	return next;
}

/* Often only the consequence of something that the peer tells. */
static bool is_consequence(int code)
{
	return code == VB_ERR_LOST || code == VB_ERR_CLOSED || code == VB_ERR_FLUSHED;
}

/* The peer has told why: that is better than what was found here because of it. */
static void take_reason(struct vb__crew *c, const struct vb_error *reason)
{
	pthread_mutex_lock(&c->lock);
	if (c->session->told_by_peer && is_consequence(c->failure.code))
		c->failure = *reason;
	pthread_mutex_unlock(&c->lock);
}

/* All that the peer has said so far. */
static void listen_to_peer(struct vb__crew *c)
{
	struct vb_error err = { .code = VB_OK };

	if (vb__session_listen(c->session, &err) == 0)
		return;
	vb__crew_fail(c, &err);
	take_reason(c, &err);
}

bool vb__crew_all_done(const struct vb__crew *c)
{
	return c->working == 0;
}

static bool is_over(struct vb__crew *c, bool (*over)(const struct vb__crew *crew))
{
	bool yes;

	pthread_mutex_lock(&c->lock);
	yes = c->failed || over(c);
	pthread_mutex_unlock(&c->lock);
	return yes;
}

static void forget_signals(int fd)
{
	uint64_t count;

	while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

int vb__crew_conduct(struct vb__crew *c, bool (*over)(const struct vb__crew *crew))
{
	struct vb_error err = { .code = VB_OK };
	uint64_t next;

	for (;;) {
		listen_to_peer(c);
		if (vb__plan_stopped(&c->session->plan)) {
			vb__fail_interrupted(&err);
			vb__crew_fail(c, &err);
		}
		next = keep_time(c);
		say_notes(c);
		if (is_over(c, over))
			return c->failure.code;
		vb__session_await(c->session, c->done_fd, next);
		forget_signals(c->done_fd);
	}
}

static bool is_silent(const struct vb__crew *c)
{
	return c->silent;
}

int vb__crew_speak_out(struct vb__crew *c)
{
	return vb__crew_conduct(c, is_silent);
}

static void join(struct vb__crew *c)
{
	for (unsigned i = 0; i < c->thread_count; i++)
		pthread_join(c->threads[i], NULL);
	c->thread_count = 0;
	c->numbered = 0;
}

int vb__crew_do(struct vb__crew *c, void (*work)(struct vb__crew *crew, unsigned number))
{
	struct vb_error err = { .code = VB_OK };
	int rc;

	join(c);
	rc = vb__crew_start(c, 1, work, &err);
	if (rc == 0)
		rc = vb__crew_conduct(c, vb__crew_all_done);
	/* If it failed the peer is to hear of that first. */
	if (rc == 0)
		join(c);
	return rc;
}

/* If only a rail broke, the peer may know why. */
static void ask_for_reason(struct vb__crew *c)
{
	uint64_t deadline = vb__now_ns() + vb__ms(REASON_MS);
	struct vb_error reason = { .code = VB_OK };
	struct vb__words words;
	int rc;

	if (!is_consequence(c->failure.code))
		return;
	do {
		rc = vb__session_expect(c->session, VB__WORDS_VERDICT, &words, deadline, &reason);
	} while (rc == 0 && vb__now_ns() < deadline);
	take_reason(c, &reason);
}

/* A terminal's ^C ends the reader of our output as well, and that may be seen first. */
static void prefer_stop(struct vb__crew *c)
{
	struct pollfd stop = { .fd = c->session->plan.stop_fd, .events = POLLIN };

	if (c->failure.code != VB_ERR_IO || c->session->told_by_peer || stop.fd < 0 ||
	    poll(&stop, 1, STOPPING_MS) <= 0)
		return;
	pthread_mutex_lock(&c->lock);
	vb__error_clear(&c->failure);
	vb__fail_interrupted(&c->failure);
	pthread_mutex_unlock(&c->lock);
}

static void tell_failure(struct vb__crew *c)
{
	prefer_stop(c);
	c->session->failed = true;
	if (!c->session->told_by_peer)
		ask_for_reason(c);
	vb__session_tell_failure(c->session, &c->failure);
}

static bool is_working(struct vb__crew *c)
{
	bool yes;

	pthread_mutex_lock(&c->lock);
	yes = !vb__crew_all_done(c);
	pthread_mutex_unlock(&c->lock);
	return yes;
}

/* Takes what the peer has said, whatever it is. False: it says no more. */
static bool hear_out(struct vb__crew *c)
{
	struct vb__words words;
	int rc;

	do {
		rc = vb__session_hear(c->session, &words, NULL);
	} while (rc == 0);
	return rc == VB_ERR_AGAIN;
}

/*
 * Who writes to a slow disk cannot be woken. Meanwhile our words go out, and the peer's are taken:
 * a connection that is closed with some of them unread takes ours with it.
 */
static void await_workers(struct vb__crew *c)
{
	while (is_working(c) && hear_out(c)) {
		vb__await_words(c->session->channel, -1, c->done_fd,
				vb__now_ns() + vb__ms(TELLING_MS));
		forget_signals(c->done_fd);
	}
	join(c);
}

int vb__crew_conclude(struct vb__crew *c, struct vb_error *err)
{
	if (!vb__crew_failed(c)) {
		join(c);
		show_progress(c); /* the last one tells all of it */
		return 0;
	}
	tell_failure(c);
	await_workers(c);
	return vb__fail_again(err, &c->failure);
}

void vb__crew_report(struct vb__crew *c, struct vb_report *report)
{
	*report = (struct vb_report){
		.bytes = c->sum.bytes,
		.hole_bytes = c->hole_bytes,
		.blocks = c->sum.blocks,
		.elapsed_ns = elapsed(c),
		.digest = c->sum.digest,
		.wire_bytes = c->wire_bytes,
		.pack_ns = c->pack_ns,
	};
}

void vb__crew_close(struct vb__crew *c)
{
	pthread_cond_destroy(&c->changed);
	pthread_mutex_destroy(&c->lock);
	close(c->cancel_fd);
	close(c->done_fd);
}
