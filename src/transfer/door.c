/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A door: a listener at which those come in who know the key. Until a guest
 * has proven that it does it has a small channel and a limited time, there are
 * only so many of them at once, and a wrong proof costs a second.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/log.h"
#include "transfer/session_state.h"

#define GUESTS_MAX 16u
#define PENALTY_MS 1000u
/* After this a guest that has not proven makes room for another one. */
#define PATIENCE_MS 2000u

struct guest {
	struct vb_channel *channel;
	struct vb__parley *parley; /* NULL: it failed, and waits for its penalty to be over */
	uint64_t came_ns, leaves_ns;
};

struct vb_door {
	struct vb__plan plan;
	struct vb_listener *listener;
	struct guest guests[GUESTS_MAX];
	unsigned guest_count;
};

int vb_door_open(const char *host, const char *port, const struct vb_transfer_options *options,
		 struct vb_door **door, struct vb_error *err)
{
	struct vb_door *d = calloc(1, sizeof(*d));
	struct vb_error local = { .code = VB_OK };
	int rc;

	err = err ? err : &local;
	vb__error_clear(err);
	if (!d)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	rc = vb__plan_from(&d->plan, options, err);
	if (rc == 0)
		rc = vb__plan_secret(&d->plan, options, err);
	if (rc == 0)
		rc = vb__listener_open(host, port, &d->plan.connection, &d->listener, err);
	if (rc)
		vb_door_close(d);
	else
		*door = d;
	return rc;
}

static void dismiss(struct vb_door *d, unsigned number)
{
	struct guest *g = &d->guests[number];

	vb__parley_close(g->parley);
	vb_channel_abort(g->channel);
	*g = d->guests[--d->guest_count];
}

void vb_door_close(struct vb_door *d)
{
	if (!d)
		return;
	while (d->guest_count)
		dismiss(d, 0);
	vb_listener_close(d->listener);
	vb__secret_wipe(&d->plan.secret);
	free(d);
}

int vb_door_port(const struct vb_door *d)
{
	return vb_listener_port(d->listener);
}

const char *vb_door_description(const struct vb_door *d)
{
	return vb_listener_description(d->listener);
}

struct vb_listener *vb__door_listener(struct vb_door *d)
{
	return d->listener;
}

static void warn(const struct vb_door *d, const struct guest *g, const char *why)
{
	vb__log(&d->plan.connection.log, VB_LOG_WARNING, "%s was turned away: %s",
		vb_channel_peer(g->channel), why);
}

static void welcome(struct vb_door *d, struct vb_channel *channel)
{
	struct vb_error err = { .code = VB_OK };
	uint64_t now = vb__now_ns();
	struct guest g = { .channel = channel, .came_ns = now };

	g.leaves_ns = now + vb__ms(d->plan.connection.peer_timeout_ms);
	if (vb__parley_open(channel, &d->plan.secret, VB__PARLEY_ACCEPTED, &g.parley, &err) != 0) {
		warn(d, &g, err.cause);
		vb_channel_abort(channel);
		return;
	}
	d->guests[d->guest_count++] = g;
}

/* Those whose time is over go; if it is full, also one who has been silent for a while. */
static void make_room(struct vb_door *d)
{
	uint64_t now = vb__now_ns();
	int longest = -1;

	for (unsigned i = 0; i < d->guest_count;) {
		struct guest *g = &d->guests[i];

		if (now >= g->leaves_ns) {
			if (g->parley)
				warn(d, g, "it did not prove to know the key in time");
			dismiss(d, i);
			continue;
		}
		if (g->parley && now - g->came_ns > vb__ms(PATIENCE_MS) &&
		    (longest < 0 || g->came_ns < d->guests[longest].came_ns))
			longest = (int)i;
		i++;
	}
	if (d->guest_count == GUESTS_MAX && longest >= 0) {
		warn(d, &d->guests[longest], "it is silent, and others are waiting");
		dismiss(d, (unsigned)longest);
	}
}

/*
 * Takes new arrivals; whoever shows a pass is handed out, all others are guests.
 * Those who come when it is full wait outside, unless they stand in the way of
 * somebody with a pass.
 */
static int next_arrival(struct vb_door *d, bool for_rails, struct vb_channel **rail,
			struct vb_error *err)
{
	struct vb_channel *channel;
	int rc;

	make_room(d);
	while (for_rails || d->guest_count < GUESTS_MAX) {
		rc = vb_listener_try_accept(d->listener, &channel, err);
		if (rc)
			return rc;
		if (vb__channel_pass(channel) >= 0) {
			*rail = channel;
			return 0;
		}
		if (vb__channel_pass(channel) != VB__PASS_STALE && d->guest_count < GUESTS_MAX)
			welcome(d, channel);
		else
			vb_channel_abort(channel);
	}
	return VB_ERR_AGAIN;
}

/* The first guest that has proven, or negative. */
static int proven_guest(struct vb_door *d)
{
	for (unsigned i = 0; i < d->guest_count; i++) {
		struct vb_error err = { .code = VB_OK };
		struct guest *g = &d->guests[i];
		int rc;

		if (!g->parley)
			continue;
		rc = vb__parley_prove(g->parley, &err);
		if (rc == 0)
			return (int)i;
		if (rc == VB_ERR_AGAIN)
			continue;
		warn(d, g, err.cause);
		vb__parley_close(g->parley);
		g->parley = NULL;
		g->leaves_ns = vb__now_ns() + vb__ms(PENALTY_MS);
	}
	return -1;
}

/* Sleeps until somebody comes, the one who is let in or else a guest speaks, a guest must go, or the deadline. */
static void await(struct vb_door *d, struct vb_session *inside, uint64_t deadline_ns)
{
	struct pollfd fds[GUESTS_MAX + 3];
	unsigned n = 0;

	fds[n++] = (struct pollfd){ .fd = d->plan.stop_fd, .events = POLLIN };
	if (inside)
		fds[n++] = (struct pollfd){ .fd = vb_channel_fd(inside->channel, NULL),
					    .events = POLLIN };
	if (inside || d->guest_count < GUESTS_MAX)
		fds[n++] = (struct pollfd){ .fd = vb_listener_fd(d->listener), .events = POLLIN };
	for (unsigned i = 0; i < d->guest_count; i++) {
		const struct guest *g = &d->guests[i];
		uint64_t end = d->guest_count == GUESTS_MAX && g->parley
				       ? g->came_ns + vb__ms(PATIENCE_MS + 1)
				       : g->leaves_ns;

		if (end < deadline_ns)
			deadline_ns = end;
		if (g->parley && !inside)
			fds[n++] = (struct pollfd){ .fd = vb_channel_fd(g->channel, NULL),
						    .events = POLLIN };
	}
	poll(fds, n, deadline_ns == UINT64_MAX ? -1 : vb__ms_left(deadline_ns));
}

static int let_in(struct vb_door *d, unsigned number, struct vb_session **session,
		  struct vb_error *err)
{
	struct guest g = d->guests[number];
	int rc;

	d->guests[number] = d->guests[--d->guest_count];
	rc = vb__session_create(&d->plan, g.channel, g.parley, session, err);
	if (rc == 0)
		(*session)->door = d;
	return rc;
}

int vb_door_wait(struct vb_door *d, struct vb_session **session, struct vb_error *err)
{
	uint64_t deadline = UINT64_MAX;
	struct vb_channel *lost_rail;
	int rc, proven;

	vb__error_clear(err);
	if (d->plan.wait_timeout_ms)
		deadline = vb__now_ns() + vb__ms(d->plan.wait_timeout_ms);
	for (;;) {
		while ((rc = next_arrival(d, false, &lost_rail, err)) == 0)
			vb_channel_abort(lost_rail);
		if (rc != VB_ERR_AGAIN)
			return rc;
		proven = proven_guest(d);
		if (proven >= 0)
			return let_in(d, (unsigned)proven, session, err);
		if (vb__plan_stopped(&d->plan))
			return vb__fail_stopped(err);
		if (vb__now_ns() >= deadline)
			return vb__fail(err, &(struct vb__failure){
						     .code = VB_ERR_TIMEOUT,
						     .operation = "wait",
						     .cause = "nobody came who knows the key",
					     });
		await(d, NULL, deadline);
	}
}

int vb__door_accept_rails(struct vb_door *d, struct vb_session *s, uint64_t deadline_ns,
			  struct vb_error *err)
{
	struct vb_channel *rail;
	int rc;

	while (s->rail_count < s->agreed.rails) {
		rc = next_arrival(d, true, &rail, err);
		if (rc == 0) {
			s->rails[vb__channel_pass(rail)] = rail;
			s->rail_count++;
			continue;
		}
		if (rc != VB_ERR_AGAIN)
			return rc;
		/* The peer may have failed to connect them, and say so. */
		rc = vb__session_listen(s, err);
		if (rc)
			return rc;
		if (vb__plan_stopped(&d->plan))
			return vb__fail_stopped(err);
		if (vb__now_ns() >= deadline_ns)
			return vb__fail(err, &(struct vb__failure){
						     .code = VB_ERR_TIMEOUT,
						     .operation = "wait for",
						     .object = s->peer,
						     .cause = "its data connections did not come",
					     });
		await(d, s, deadline_ns);
	}
	return 0;
}
