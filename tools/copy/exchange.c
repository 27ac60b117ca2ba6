/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges. The side that is started by ssh opens its door; the one that is not, or the source, connects. */
#include "copy/exchange.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "common/console.h"
#include "common/event.h"
#include "common/interrupt.h"
#include "common/trouble.h"
#include "copy/duty.h"

#define DEFAULT_PEER_MS 10000
#define AFTERWORD_MS 3000 /* for what the other side says of a failure */
#define LOOK_MS 200	  /* for looks that are not over when a connection could be made */

/* ---- Orders ---- */

static bool copy_list(struct list *to, const struct list *from)
{
	for (size_t i = 0; from && i < from->count; i++)
		if (list_add(to, from->item[i]) != 0)
			return false;
	return true;
}

/* Both sides are told everything: each takes what it needs. */
static bool make_order(struct order *order, const struct copier *c, enum role role, bool tunnelled)
{
	const struct arguments *a = c->arguments;
	const char *device = a->options.connection.device;

	*order = (struct order){
		.role = role,
		.tunnelled = tunnelled,
		.stream = c->job->from->kind == OPERAND_STDIO ||
			  c->jobs->target.kind == OPERAND_STDIO,
		.verbosity = a->verbosity > 5 ? 5 : a->verbosity,
		.tree = a->tree,
		.transfer = a->options,
	};
	order->tree.into_directory = c->jobs->into_directory;
	order->tree.tell_all = c->listing->names;
	order->target = strdup(c->jobs->target.path);
	order->device = strdup(device ? device : "");
	return copy_list(&order->paths, &c->job->paths) && copy_list(&order->rules, &a->rules) &&
	       copy_list(&order->listed, c->listed) && order->target && order->device;
}

/* ---- Waiting ---- */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

typedef bool (*reached_fn)(struct copy_far *far);

static bool has_answered(struct copy_far *far)
{
	struct invitation invitation;
	struct ending ending;

	return copy_far_has_invited(far, &invitation) || copy_far_has_ended(far, &ending);
}

static bool has_ended(struct copy_far *far)
{
	struct ending ending;

	return copy_far_has_ended(far, &ending);
}

/*
 * Waits until one of both has reached it or is gone; so long, or with -1 for ever. False: that has
 * not come to pass, or we are interrupted. `other` may be NULL.
 */
static bool await(const struct copier *c, struct copy_far *far, struct copy_far *other,
		  reached_fn reached, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = c->news, .events = POLLIN },
				{ .fd = interrupt_fd(), .events = POLLIN } };
	int64_t until = now_ms() + timeout_ms;

	for (;;) {
		int64_t left = timeout_ms < 0 ? -1 : until - now_ms();

		event_clear(c->news);
		if (interrupt_seen())
			return false;
		if (reached(far) || far_is_gone(&far->far) ||
		    (other && (reached(other) || far_is_gone(&other->far))))
			return true;
		if (timeout_ms >= 0 && left <= 0)
			return false;
		poll(fds, 2, (int)left);
	}
}

static void say_gone(struct copy_far *far, struct ending *ending)
{
	if (interrupt_seen())
		trouble_say(&ending->err, VB_ERR_INTERRUPTED, "interrupted");
	else if (far_is_wrong(&far->far))
		trouble_say(&ending->err, VB_ERR_PROTOCOL, "rdcp at %s breaks the protocol",
			    far->far.host);
	else
		trouble_say(&ending->err, VB_ERR_LOST, "the far side at %s has gone",
			    far->far.host);
}

/* ---- Verdicts ---- */

/* Does this say only that the other side has ended, and not why? */
static bool is_hearsay(const struct ending *ending)
{
	switch (ending->err.code) {
	case VB_ERR_CLOSED:
	case VB_ERR_LOST:
	case VB_ERR_EOF:
	case VB_ERR_FLUSHED:
	case VB_ERR_INTERRUPTED:
	case VB_ERR_TIMEOUT:
		return true;
	default:
		return false;
	}
}

/* The deeper cause of two. */
static void listen_to(struct ending *ending, const struct ending *other)
{
	if (ending->err.code != VB_OK && is_hearsay(ending) && other->err.code != VB_OK &&
	    !is_hearsay(other))
		ending->err = other->err;
}

static int peer_ms(const struct copier *c)
{
	uint32_t ms = c->arguments->options.connection.peer_timeout_ms;

	return (ms && ms < 600000 ? (int)ms : DEFAULT_PEER_MS) + AFTERWORD_MS;
}

/* The far side's own word, for which it is given a moment. Has it ended with this order? */
static bool hear_out(const struct copier *c, struct copy_far *far, struct ending *ending)
{
	struct ending theirs;
	bool failed = ending->err.code != VB_OK;

	if (failed && !has_ended(far))
		far_stop(&far->far);
	await(c, far, NULL, has_ended, failed ? AFTERWORD_MS : peer_ms(c));
	if (copy_far_has_ended(far, &theirs)) {
		listen_to(ending, &theirs);
		ending->missing += theirs.missing;
		return true;
	}
	/* It stops when it hears no more from us: then that is what has happened. */
	if (ending->err.code == VB_ERR_INTERRUPTED && far_is_gone(&far->far))
		say_gone(far, ending);
	return false;
}

/* ---- Nothing to do ---- */

static void wake(void *arg, const struct glimpse *seen)
{
	const struct copier *c = arg;

	(void)seen;
	event_raise(c->news);
}

/*
 * May looking show that there is nothing to do? Then the far side is asked to look, too. What is here
 * is not looked at before the far side is there: ssh may have asked for a password, and what was seen
 * before that would be old.
 */
static bool begin_to_look(struct copier *c, struct order *here, struct order *there,
			  struct glance *glance)
{
	uint8_t *key = there->glance_key;

	if (c->has_looked || !glance_is_for(here) ||
	    getrandom(key, VB_TREE_KEY_BYTES, 0) != VB_TREE_KEY_BYTES)
		return false;
	memcpy(here->glance_key, key, VB_TREE_KEY_BYTES);
	there->glances = true;
	glance_begin(glance, here, wake, c);
	c->has_looked = true; /* once is enough */
	return true;
}

/* There is no more to be learned by looking. */
static bool has_compared(struct copy_far *far)
{
	struct glimpse ours, theirs;
	bool here = glance_has_seen(far->glance, &ours), there = copy_far_has_looked(far, &theirs);

	return has_ended(far) || (here && there) || (here && !ours.known) ||
	       (there && !theirs.known);
}

static bool has_compared_or_answered(struct copy_far *far)
{
	return has_answered(far) || has_compared(far);
}

static bool is_same(const struct glimpse *a, const struct glimpse *b)
{
	return a->known && b->known && a->sum.entries == b->sum.entries &&
	       a->sum.bytes == b->sum.bytes &&
	       memcmp(a->sum.digest, b->sum.digest, sizeof(a->sum.digest)) == 0;
}

/* The far side has its order. Is all as it should be? Then this is the ending, and the far side not needed. */
static bool nothing_to_do(struct copier *c, struct copy_far *far, struct glance *glance,
			  struct ending *ending)
{
	struct glimpse ours, theirs;
	int64_t began = now_ms();
	bool same;

	far->glance = glance;
	await(c, far, NULL, has_compared_or_answered, -1);
	await(c, far, NULL, has_compared, LOOK_MS);
	same = glance_has_seen(glance, &ours) && copy_far_has_looked(far, &theirs) &&
	       is_same(&ours, &theirs) && !has_ended(far) && !interrupt_seen();
	glance_end(glance);
	far->glance = NULL;
	if (!same)
		return false;
	ending->phase = PHASE_TRANSFER;
	ending->report.unchanged = ours.sum.entries;
	ending->report.bytes = ours.sum.bytes;
	ending->report.elapsed_ns = (uint64_t)(now_ms() - began) * 1000000;
	listing_begin(c->listing, -1);
	listing_end(c->listing, ending);
	return true;
}

/* ---- This host and a far side ---- */

static void say_note(void *arg, const char *text)
{
	(void)arg;
	console_note("%s", text);
}

static void run_here(const struct copier *c, const struct order *order, struct copy_far *far,
		     struct ending *ending)
{
	int data = order->role == ROLE_SEND ? STDIN_FILENO : STDOUT_FILENO;
	const struct duty duty = {
		.order = order,
		.stop_fd = interrupt_fd(),
		.fd = order->stream ? data : -1,
		.link = far ? &far->far.link : NULL,
		.slot = far ? &far->slot : NULL,
		.arg = c->listing,
		.say = say_note,
		.event = listing_event,
		.missing = listing_event,
		.progress = listing_progress,
		.log = console_log,
	};

	listing_begin(c->listing, duty.fd);
	duty_run(&duty, ending);
	listing_end(c->listing, ending);
}

/* By the data connection that the far side offers. */
static bool meet(struct copier *c, struct copy_far *far, struct order *here, struct ending *ending)
{
	await(c, far, NULL, has_answered, -1);
	here->connects = true;
	if (copy_far_has_invited(far, &here->invitation)) {
		run_here(c, here, far, ending);
		return hear_out(c, far, ending);
	}
	if (copy_far_has_ended(far, ending))
		return true;
	say_gone(far, ending);
	return false;
}

static bool with_far(struct copier *c, struct copy_far *far, enum role far_role, bool tunnelled,
		     struct ending *ending)
{
	struct order there, here;
	struct glance glance;
	bool usable = false, looking;

	if (!make_order(&there, c, far_role, tunnelled) ||
	    !make_order(&here, c, far_role == ROLE_SEND ? ROLE_RECEIVE : ROLE_SEND, tunnelled)) {
		trouble_say(&ending->err, VB_ERR_NOMEM, "out of memory");
	} else {
		looking = begin_to_look(c, &here, &there, &glance);
		copy_far_order(far, &there);
		usable = (looking && nothing_to_do(c, far, &glance, ending)) ||
			 meet(c, far, &here, ending);
	}
	order_free(&there);
	order_free(&here);
	return usable;
}

/* ---- Two far sides ---- */

/* All at one far side. */
static bool within_far(struct copier *c, struct copy_far *far, struct ending *ending)
{
	struct order order;
	bool usable = false;

	if (!make_order(&order, c, ROLE_COPY, false)) {
		trouble_say(&ending->err, VB_ERR_NOMEM, "out of memory");
	} else {
		order.tells = true;
		listing_begin(c->listing, -1);
		copy_far_order(far, &order);
		await(c, far, NULL, has_ended, -1);
		usable = copy_far_has_ended(far, ending);
		if (!usable)
			say_gone(far, ending);
		if (copy_far_has_moved(far))
			ending->phase = PHASE_TRANSFER;
		listing_end(c->listing, ending);
	}
	order_free(&order);
	return usable;
}

static bool has_failed(struct copy_far *far)
{
	struct ending ending;

	return copy_far_has_ended(far, &ending) ? ending.err.code != VB_OK : far_is_gone(&far->far);
}

/* What both came to: the target's word counts, but where it knows nothing the source's. */
static bool both_ended(struct copier *c, struct ending *ending)
{
	struct ending source, target;
	bool failed, source_ended, target_ended;

	await(c, &c->source, &c->target, has_ended, -1);
	failed = has_failed(&c->source) || has_failed(&c->target);
	if (failed && !has_ended(&c->target))
		far_stop(&c->target.far);
	if (failed && !has_ended(&c->source))
		far_stop(&c->source.far);
	await(c, &c->source, NULL, has_ended, failed ? AFTERWORD_MS : peer_ms(c));
	await(c, &c->target, NULL, has_ended, failed ? AFTERWORD_MS : peer_ms(c));
	source_ended = copy_far_has_ended(&c->source, &source);
	target_ended = copy_far_has_ended(&c->target, &target);
	if (!source_ended || !target_ended) {
		say_gone(far_is_gone(&c->source.far) ? &c->source : &c->target, ending);
		if (copy_far_has_moved(&c->target))
			ending->phase = PHASE_TRANSFER;
		return false;
	}
	*ending = target;
	/* If the source could not connect, the target was only told to stop. */
	if (source.phase == PHASE_CONNECT)
		*ending = source;
	listen_to(ending, &source);
	ending->missing += source.missing;
	return true;
}

static bool between_fars(struct copier *c, bool tunnelled, struct ending *ending)
{
	struct order to, from;
	bool usable = false;

	c->source.partner = &c->target;
	c->target.partner = &c->source;
	if (!make_order(&to, c, ROLE_RECEIVE, tunnelled) ||
	    !make_order(&from, c, ROLE_SEND, tunnelled)) {
		trouble_say(&ending->err, VB_ERR_NOMEM, "out of memory");
	} else {
		to.tells = true;
		from.connects = true;
		listing_begin(c->listing, -1);
		copy_far_order(&c->target, &to);
		await(c, &c->target, NULL, has_answered, -1);
		if (copy_far_has_invited(&c->target, &from.invitation)) {
			copy_far_order(&c->source, &from);
			usable = both_ended(c, ending);
		} else if (!(usable = copy_far_has_ended(&c->target, ending))) {
			say_gone(&c->target, ending);
		}
		listing_end(c->listing, ending);
	}
	order_free(&to);
	order_free(&from);
	return usable;
}

static bool within_here(struct copier *c, struct ending *ending)
{
	struct order order;

	if (make_order(&order, c, ROLE_COPY, false))
		run_here(c, &order, NULL, ending);
	else
		trouble_say(&ending->err, VB_ERR_NOMEM, "out of memory");
	order_free(&order);
	return true;
}

bool exchange(struct copier *c, bool tunnelled, struct ending *ending)
{
	bool from = c->job->from->kind == OPERAND_REMOTE;
	bool to = c->jobs->target.kind == OPERAND_REMOTE;

	*ending = (struct ending){ .phase = PHASE_CHECK };
	if (!from && !to)
		return within_here(c, ending);
	if (!from)
		return with_far(c, &c->target, ROLE_RECEIVE, tunnelled, ending);
	if (!to)
		return with_far(c, &c->source, ROLE_SEND, tunnelled, ending);
	if (operand_same_host(c->job->from, &c->jobs->target))
		return within_far(c, &c->target, ending);
	return between_fars(c, tunnelled, ending);
}
