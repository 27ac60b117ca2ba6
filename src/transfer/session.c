/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: two sides that have proven to each other that they know the key. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "transfer/connecting.h"
#include "transfer/session_state.h"

/* How long to wait until the peer has heard the last words. */
#define FAREWELL_MS 500u
/* Before knocking again. */
#define PAUSE_MS 50

int vb__session_create(const struct vb__plan *plan, struct vb_channel *channel,
		       struct vb__parley *parley, struct vb_session **session, struct vb_error *err)
{
	struct vb_session *s = calloc(1, sizeof(*s));

	if (!s) {
		vb__parley_close(parley);
		vb_channel_abort(channel);
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	}
	s->plan = *plan;
	vb__secret_wipe(&s->plan.secret); /* it is proven, and needed no more */
	s->channel = channel;
	s->parley = parley;
	snprintf(s->peer, sizeof(s->peer), "%s", vb_channel_peer(channel));
	snprintf(s->description, sizeof(s->description), "%s", vb_channel_description(channel));
	*session = s;
	return 0;
}

/* It may be that another one was quicker and the receiver wants only one. */
static void explain_loss(struct vb_error *err)
{
	if (err->code != VB_ERR_LOST && err->code != VB_ERR_EOF && err->code != VB_ERR_CLOSED)
		return;
	err->code = VB_ERR_REFUSED;
	snprintf(err->cause, sizeof(err->cause),
		 "the other side hung up before keys were compared");
	snprintf(err->hint, sizeof(err->hint), "perhaps it is serving somebody else: try again");
}

static int prove(struct vb__parley *parley, struct vb_channel *channel, const struct vb__plan *plan,
		 uint64_t deadline, struct vb_error *err)
{
	int rc;

	while ((rc = vb__parley_prove(parley, err)) == VB_ERR_AGAIN) {
		if (vb__plan_stopped(plan))
			return vb__fail_interrupted(err);
		if (vb__now_ns() >= deadline)
			return vb__fail(err, &(struct vb__failure){
						     .code = VB_ERR_TIMEOUT,
						     .operation = "compare keys with",
						     .object = vb_channel_peer(channel),
						     .cause = "it does not answer",
						     .hint = "perhaps it is serving somebody else: "
							     "try again" });
		vb__await_words(channel, plan->stop_fd, -1, deadline);
	}
	if (rc && err)
		explain_loss(err);
	return rc;
}

static int check_names(const char *host, const char *port, struct vb_error *err)
{
	const struct vb_session *sizes = NULL;

	if (!host || !port)
		return vb__fail_invalid(err, "connect", "no %s was given", host ? "port" : "host");
	if (strlen(host) >= sizeof(sizes->host) || strlen(port) >= sizeof(sizes->port))
		return vb__fail_invalid(err, "connect", "the name of the %s is too long",
					strlen(host) >= sizeof(sizes->host) ? "host" : "port");
	return 0;
}

/* Connecting and stretching a user's key take about as long; they can be done at once. Without options the secret is there. */
static int connect_with_secret(const char *host, const char *port, struct vb__plan *plan,
			       const struct vb_transfer_options *options,
			       struct vb_channel **channel, struct vb_error *err)
{
	struct vb_error secret_err = { .code = VB_OK };
	struct vb__errand *connecting;
	int rc = vb__connecting_start(host, port, &plan->connection, &connecting, err), secret_rc;

	if (rc)
		return rc;
	secret_rc = options ? vb__plan_secret(plan, options, &secret_err) : 0;
	rc = vb__connecting_finish(connecting, plan->stop_fd, channel, err);
	if (rc == 0 && secret_rc) {
		vb_channel_abort(*channel);
		rc = vb__fail_again(err, &secret_err);
	}
	return rc;
}

static int connect_and_prove(const char *host, const char *port, struct vb__plan *plan,
			     const struct vb_transfer_options *options, struct vb_session **session,
			     struct vb_error *err)
{
	/* For both: whoever found the listener late has no more time for the proof. */
	uint64_t deadline = vb__now_ns() + vb__ms(plan->connection.connect_timeout_ms);
	struct vb_channel *channel;
	struct vb__parley *parley;
	int rc = connect_with_secret(host, port, plan, options, &channel, err);

	if (rc)
		return rc;
	rc = vb__parley_open(channel, &plan->secret, VB__PARLEY_CONNECTED, &parley, err);
	if (rc == 0) {
		rc = prove(parley, channel, plan, deadline, err);
		if (rc == 0)
			return vb__session_create(plan, channel, parley, session, err);
		vb__parley_close(parley);
	}
	vb_channel_abort(channel);
	return rc;
}

/*
 * A door in a crowd of strangers may take us for one of them, if we are slow to speak, and hang up. So it is tried
 * again while there is time. If nothing comes of that, what happened first is the story.
 */
static int come_in(const char *host, const char *port, struct vb__plan *plan,
		   const struct vb_transfer_options *options, struct vb_session **session,
		   struct vb_error *err)
{
	const uint32_t timeout_ms = plan->connection.connect_timeout_ms;
	uint64_t deadline = vb__now_ns() + vb__ms(timeout_ms);
	struct vb_error first = { .code = VB_OK };
	struct pollfd stop = { .fd = plan->stop_fd, .events = POLLIN };
	int rc;

	for (;;) {
		rc = connect_and_prove(host, port, plan, options, session, err);
		if (rc == VB_ERR_LOST && !first.code)
			first = *err;
		if (first.code && rc == VB_ERR_REFUSED)
			*err = first;
		if (rc == 0)
			(*session)->plan.connection.connect_timeout_ms = timeout_ms;
		if (rc != VB_ERR_LOST || vb__ms_left(deadline) <= PAUSE_MS)
			return rc;
		options = NULL;
		poll(&stop, 1, PAUSE_MS);
		plan->connection.connect_timeout_ms = (uint32_t)vb__ms_left(deadline);
		vb__error_clear(err);
	}
}

/* The rails go where the parley went: a name may have several addresses, and mean several hosts. */
static void remember_address(struct vb_session *s)
{
	const char *end = strstr(s->peer, " port ");

	snprintf(s->host, sizeof(s->host), "%.*s", (int)(end ? end - s->peer : 0), s->peer);
}

int vb_session_connect(const char *host, const char *port,
		       const struct vb_transfer_options *options, struct vb_session **session,
		       struct vb_error *err)
{
	struct vb_error local = { .code = VB_OK };
	struct vb__plan plan;
	int rc;

	err = err ? err : &local;
	vb__error_clear(err);
	rc = check_names(host, port, err);
	if (rc == 0)
		rc = vb__plan_from(&plan, options, err);
	if (rc)
		return rc;
	rc = come_in(host, port, &plan, options, session, err);
	if (rc == 0) {
		remember_address(*session);
		snprintf((*session)->port, sizeof((*session)->port), "%s", port);
	}
	vb__secret_wipe(&plan.secret);
	return rc;
}

const char *vb_session_description(const struct vb_session *s)
{
	return s->description;
}

const char *vb_session_cipher(const struct vb_session *s)
{
	return vb__cipher_name(vb__seal_cipher(s->agreed.seal));
}

const char *vb_session_peer(const struct vb_session *s)
{
	return s->peer;
}

bool vb__session_is_tcp(const struct vb_session *s)
{
	return strcmp(vb_channel_fabric(s->channel), "ofi") == 0;
}

int vb__session_begin(struct vb_session *s, struct vb_error *err)
{
	if (s->used)
		return vb__fail_invalid(err, "transfer", "the session has had its transfer");
	s->used = true;
	return 0;
}

void vb__session_close_rails(struct vb_session *s)
{
	for (unsigned i = 0; i < VB_RAILS_MAX; i++) {
		vb_channel_abort(s->rails[i]);
		s->rails[i] = NULL;
	}
	s->rail_count = 0;
}

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/* Until the peer's library has our last words, or the time is over, of which a stop leaves little. */
static void await_heard(struct vb_session *s, uint64_t deadline_ns)
{
	while (vb__now_ns() < deadline_ns &&
	       (vb__parley_flush(s->parley, NULL) == VB_ERR_AGAIN ||
		vb_channel_try_finish(s->channel, NULL) == VB_ERR_AGAIN)) {
		if (vb__plan_stopped(&s->plan)) {
			deadline_ns = sooner(deadline_ns, vb__now_ns() + vb__ms(FAREWELL_MS));
			s->plan.stop_fd = -1;
		}
		vb__session_await(s, -1, deadline_ns);
	}
}

void vb_session_close(struct vb_session *s)
{
	if (!s)
		return;
	vb__session_close_rails(s);
	/* Only a receiver that says "stored" has something to say that must be heard. */
	await_heard(s, vb__now_ns() + vb__ms(s->failed || s->agreed.sends
						     ? FAREWELL_MS
						     : s->plan.connection.peer_timeout_ms));
	vb__parley_close(s->parley);
	vb_channel_abort(s->channel);
	explicit_bzero(s->secrets, sizeof(s->secrets));
	free(s);
}
