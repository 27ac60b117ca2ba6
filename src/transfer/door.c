/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A door: a listener at which those come in who know the key. Whoever comes
 * without a pass is a guest until then; how guests are treated is not decided here.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "core/clock.h"
#include "transfer/guests.h"
#include "transfer/opening.h"
#include "transfer/session_state.h"

/* Connections that are being made: half of them is not yet a guest. */
#define COMING_LEAST 4u
/* Taken in before those who are in are heard. */
#define ARRIVALS_MAX 16u

struct vb_door {
	struct vb__plan plan;
	struct vb_listener *listener;
	struct vb__guests guests;
	unsigned arrivals; /* since they were heard */
};

static void let_guests_come(struct vb_door *d)
{
	unsigned coming = d->guests.most / 4;

	vb__listener_set_room(d->listener, coming < COMING_LEAST ? COMING_LEAST : coming);
}

/* Opening the listener and stretching a user's key can be done at once. */
static int open_with_secret(struct vb_door *d, const char *host, const char *port,
			    const struct vb_transfer_options *options, struct vb_error *err)
{
	struct vb_error secret_err = { .code = VB_OK };
	struct vb__errand *opening;
	int rc = vb__opening_start(host, port, &d->plan.connection, &opening, err), secret_rc;

	if (rc)
		return rc;
	secret_rc = vb__plan_secret(&d->plan, options, &secret_err);
	rc = vb__opening_finish(opening, d->plan.stop_fd, &d->listener, err);
	return rc == 0 && secret_rc ? vb__fail_again(err, &secret_err) : rc;
}

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
		rc = open_with_secret(d, host, port, options, err);
	if (rc) {
		vb_door_close(d);
		return rc;
	}
	vb__guests_open(&d->guests, &d->plan.connection, &d->plan.secret,
			vb__listener_serves(d->listener, VB_FABRIC_VERBS));
	let_guests_come(d);
	*door = d;
	return 0;
}

void vb_door_close(struct vb_door *d)
{
	if (!d)
		return;
	vb__guests_close(&d->guests);
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

/* Somebody may be standing outside. */
static bool others_wait(const struct vb_door *d)
{
	struct pollfd outside = { .fd = vb_listener_fd(d->listener), .events = POLLIN };

	return poll(&outside, 1, 0) > 0;
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

	for (;;) {
		vb__guests_make_room(&d->guests, !for_rails && !vb__guests_have_room(&d->guests) &&
							 others_wait(d));
		if (d->arrivals == ARRIVALS_MAX ||
		    (!for_rails && !vb__guests_have_room(&d->guests)))
			return VB_ERR_AGAIN;
		rc = vb_listener_try_accept(d->listener, &channel, err);
		if (rc)
			return rc;
		d->arrivals++;
		if (vb__channel_pass(channel) >= 0) {
			*rail = channel;
			return 0;
		}
		if (vb__channel_pass(channel) != VB__PASS_STALE && vb__guests_have_room(&d->guests))
			vb__guests_welcome(&d->guests, channel);
		else
			vb_channel_abort(channel);
	}
}

/* Sleeps until somebody comes, the one who is let in or else a guest speaks, a guest must go, or the deadline. */
static void await(struct vb_door *d, struct vb_session *inside, uint64_t deadline_ns)
{
	struct pollfd fds[VB__GUESTS_MAX + 3], *guests;
	uint64_t next = vb__guests_next_ns(&d->guests), tell = vb__listener_tell(d->listener);
	unsigned n = 0;

	fds[n++] = (struct pollfd){ .fd = d->plan.stop_fd, .events = POLLIN };
	if (inside)
		fds[n++] = (struct pollfd){ .fd = vb_channel_fd(inside->channel, NULL),
					    .events = POLLIN };
	/* Nobody can come in for now: then who stands outside must not wake us all the time. */
	if (inside || vb__guests_have_room(&d->guests) || vb__guests_could_make_room(&d->guests))
		fds[n++] = (struct pollfd){ .fd = vb_listener_fd(d->listener), .events = POLLIN };
	guests = fds + n;
	if (!inside)
		n += vb__guests_poll(&d->guests, guests);
	if (next < deadline_ns)
		deadline_ns = next;
	if (tell < deadline_ns)
		deadline_ns = tell;
	if (d->arrivals == ARRIVALS_MAX)
		deadline_ns = 0;
	d->arrivals = 0;
	poll(fds, n, deadline_ns == UINT64_MAX ? -1 : vb__ms_left(deadline_ns));
	if (!inside)
		vb__guests_polled(&d->guests, guests);
}

static int let_in(struct vb_door *d, struct vb_channel *channel, struct vb__parley *parley,
		  struct vb_session **session, struct vb_error *err)
{
	int rc = vb__session_create(&d->plan, channel, parley, session, err);

	if (rc == 0)
		(*session)->door = d;
	return rc;
}

int vb_door_wait(struct vb_door *d, struct vb_session **session, struct vb_error *err)
{
	uint64_t deadline = UINT64_MAX;
	struct vb_channel *lost_rail, *proven;
	struct vb__parley *parley;
	int rc;

	vb__error_clear(err);
	if (d->plan.wait_timeout_ms)
		deadline = vb__now_ns() + vb__ms(d->plan.wait_timeout_ms);
	for (;;) {
		while ((rc = next_arrival(d, false, &lost_rail, err)) == 0)
			vb_channel_abort(lost_rail);
		if (rc != VB_ERR_AGAIN)
			return rc;
		if (vb__guests_take_proven(&d->guests, &proven, &parley))
			return let_in(d, proven, parley, session, err);
		if (vb__plan_stopped(&d->plan))
			return vb__fail_interrupted(err);
		if (vb__now_ns() >= deadline)
			return vb__fail(err, &(struct vb__failure){
						     .code = VB_ERR_TIMEOUT,
						     .operation = "wait",
						     .cause = "nobody came who knows the key",
					     });
		await(d, NULL, deadline);
	}
}

static int accept_rails(struct vb_door *d, struct vb_session *s, uint64_t deadline_ns,
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
			return vb__fail_interrupted(err);
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

int vb__door_accept_rails(struct vb_door *d, struct vb_session *s, uint64_t deadline_ns,
			  struct vb_error *err)
{
	int rc;

	/* Meanwhile nobody else is let in, and to say no is faster than to make a connection. */
	vb__listener_set_room(d->listener, 0);
	rc = accept_rails(d, s, deadline_ns, err);
	let_guests_come(d);
	return rc;
}
