/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning of a transfer: both sides say their terms, of which the
 * smaller ones hold, and the side that connected connects the rails, showing
 * tokens that only the two know.
 */
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "transfer/connecting.h"
#include "transfer/session_state.h"

#define GRACE_MS 1000u

static uint64_t deadline(const struct vb_session *s)
{
	return vb__now_ns() + vb__ms(s->plan.connection.connect_timeout_ms);
}

static int fail_unsealed(const struct vb_session *s, struct vb_error *err)
{
	char cause[sizeof(err->cause)];

	snprintf(cause, sizeof(cause), "it is required, but %s does not agree", s->peer);
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_REFUSED,
				     .operation = "encryption",
				     .cause = cause,
				     .hint = "it was told not to (--encrypt=no), or is too old",
			     });
}

/* It is agreed on what is done with the data: is that what the user asked for? */
static int check_seal(const struct vb_session *s, struct vb_error *err)
{
	if (vb__seal_cipher(s->agreed.seal) != VB__CIPHER_NONE)
		return 0;
	if (s->plan.encrypt == VB_ENCRYPT_REQUIRE)
		return fail_unsealed(s, err);
	if (s->plan.encrypt == VB_ENCRYPT_ASK)
		vb__log(&s->plan.connection.log, VB_LOG_WARNING,
			"not encrypted: %s does not agree to that", s->peer);
	return 0;
}

int vb__session_propose(struct vb_session *s, const struct vb__terms *ours, struct vb_error *err)
{
	struct vb__words words = { .kind = VB__WORDS_TERMS, .terms = *ours };
	const struct vb__terms *theirs = &words.terms;
	int rc;

	s->agreed = *ours;
	s->agreed.seal = s->agreed.pack = 0;
	rc = vb__session_say(s, &words, err);
	if (rc == 0)
		rc = vb__session_expect(s, VB__WORDS_TERMS, &words, deadline(s), err);
	if (rc)
		return rc;
	if (theirs->sends)
		return vb__fail_invalid(err, "transfer", "both sides want to send");
	if ((ours->bytes_per_second &&
	     (!theirs->bytes_per_second || theirs->bytes_per_second > ours->bytes_per_second)) ||
	    theirs->rails != ours->rails || theirs->block_bytes > ours->block_bytes ||
	    theirs->window > ours->window ||
	    (theirs->seal & VB__SEAL_WANTED && !(ours->seal & VB__SEAL_CAN)) ||
	    theirs->pack == VB__PACK_NEVER || (theirs->pack && ours->pack == VB__PACK_NEVER))
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_PROTOCOL,
					     .operation = "agree with",
					     .object = s->peer,
					     .cause = "it wants more than was offered",
				     });
	s->agreed.block_bytes = theirs->block_bytes;
	s->agreed.window = theirs->window;
	s->agreed.bytes_per_second = theirs->bytes_per_second;
	s->agreed.seal = theirs->seal;
	s->agreed.pack = theirs->pack;
	return check_seal(s, err);
}

int vb__session_answer(struct vb_session *s, bool tree, struct vb_error *err)
{
	struct vb__words words;
	int rc = vb__session_expect(s, VB__WORDS_TERMS, &words, deadline(s), err);

	if (rc == VB_ERR_TIMEOUT && err)
		vb__error_hint(err, "perhaps it wants to receive, too: one side must send");
	if (rc)
		return rc;
	if (!words.terms.sends)
		return vb__fail_invalid(err, "transfer", "both sides want to receive");
	if (words.terms.tree != tree)
		return vb__fail_invalid(err, "transfer",
					tree ? "the peer sends one file, not a tree"
					     : "the peer sends a tree, not one file");
	s->agreed = words.terms;
	s->agreed.sends = false;
	vb__plan_restrict(&s->plan, vb__session_is_tcp(s), &s->agreed);
	rc = check_seal(s, err);
	if (rc)
		return rc;
	words.terms = s->agreed;
	return vb__session_say(s, &words, err);
}

static int make_pass(struct vb_session *s, unsigned number, bool sends, struct vb__pass *pass,
		     struct vb_error *err)
{
	*pass = (struct vb__pass){
		.max_message = s->agreed.block_bytes + VB__BLOCK_TRAILER,
		.depth = s->agreed.window,
		.traffic = sends ? VB__TRAFFIC_OUT : VB__TRAFFIC_IN,
	};
	return vb__parley_derive(s->parley, "rail", number, pass->token, sizeof(pass->token), err);
}

/* A secret for each rail and direction, which is named as the side that listens sees it. */
static int derive_secret(struct vb_session *s, unsigned rail, bool sends, struct vb_error *err)
{
	bool inward = sends == !s->door;

	if (vb__seal_cipher(s->agreed.seal) == VB__CIPHER_NONE)
		return 0;
	return vb__parley_derive(s->parley, inward ? "seal-in" : "seal-out", rail,
				 s->secrets[rail].bytes, sizeof(s->secrets[rail].bytes), err);
}

_Static_assert(VB_RAILS_MAX <= VB__ERRANDS_MAX, "one is waited for with each rail");

static int start_rail(struct vb_session *s, const struct vb__pass *pass,
		      struct vb__errand **connecting, struct vb_error *err)
{
	struct vb__settings settings = s->plan.connection;

	settings.fabric = vb__session_is_tcp(s) ? VB_FABRIC_OFI : VB_FABRIC_VERBS;
	settings.max_message = pass->max_message;
	settings.depth = pass->depth;
	settings.traffic = pass->traffic;
	memcpy(settings.token, pass->token, sizeof(settings.token));
	return vb__connecting_start(s->host, s->port, &settings, connecting, err);
}

/* Rails that are being connected, and which of them each will be. */
struct coming {
	struct vb__errand *errands[VB_RAILS_MAX];
	unsigned rails[VB_RAILS_MAX], count;
};

/* Whichever is there first. */
static int take_rail(struct vb_session *s, struct coming *coming, struct vb_error *err)
{
	struct vb__errand *errand;
	unsigned rail;
	int at, rc;

	do {
		/* If the peer has given up, nobody will let us in any more. */
		rc = vb__plan_stopped(&s->plan) ? vb__fail_interrupted(err)
						: vb__session_listen(s, err);
		if (rc)
			return rc;
		at = vb__errand_await(coming->errands, coming->count, s->plan.stop_fd,
				      vb_channel_fd(s->channel, NULL));
	} while (at < 0);
	errand = coming->errands[at];
	rail = coming->rails[at];
	coming->count--;
	coming->errands[at] = coming->errands[coming->count];
	coming->rails[at] = coming->rails[coming->count];
	rc = vb__connecting_finish(errand, -1, &s->rails[rail], err);
	/* It has let us in before: it is there no more, or not as the one that it was. */
	if (rc == VB_ERR_REFUSED && err)
		rc = err->code = VB_ERR_LOST;
	s->rail_count += rc == 0;
	return rc;
}

/*
 * It may have been heard already, while the output was being opened. The peer may take its time:
 * a FIFO's reader has to come. If it is lost, that is heard here too.
 */
static int await_ready(struct vb_session *s, struct vb_error *err)
{
	int rc;

	while ((rc = vb__session_listen(s, err)) == 0 && !s->ready_heard) {
		if (vb__plan_stopped(&s->plan))
			return vb__fail_interrupted(err);
		vb__session_await(s, -1, UINT64_MAX);
	}
	return rc;
}

/* The rails go the way the parley went, all at once: to a peer far away each takes some round trips. */
static int connect_rails(struct vb_session *s, const struct vb__pass *passes, struct vb_error *err)
{
	struct coming coming = { .count = 0 };
	int rc = await_ready(s, err);

	for (unsigned i = 0; i < s->agreed.rails && rc == 0; i++) {
		rc = start_rail(s, &passes[i], &coming.errands[i], err);
		coming.rails[i] = i;
		coming.count += rc == 0;
	}
	while (rc == 0 && coming.count)
		rc = take_rail(s, &coming, err);
	vb__errand_leave(coming.errands, coming.count);
	return rc;
}

/* For a little longer than the peer tries: it knows why they do not come. */
static int accept_rails(struct vb_session *s, const struct vb__pass *passes, struct vb_error *err)
{
	struct vb__words ready = { .kind = VB__WORDS_READY };
	struct vb_listener *listener = vb__door_listener(s->door);
	int rc;

	vb__listener_expect(listener, passes, s->agreed.rails);
	rc = vb__session_say(s, &ready, err);
	if (rc == 0)
		rc = vb__door_accept_rails(s->door, s, deadline(s) + vb__ms(GRACE_MS), err);
	vb__listener_expect(listener, NULL, 0);
	return rc;
}

/* Devices may not grant what was asked for: a smaller message would not hold a block. */
static int check_rails(const struct vb_session *s, struct vb_error *err)
{
	for (unsigned i = 0; i < s->rail_count; i++)
		if (vb_channel_max_message(s->rails[i]) < s->agreed.block_bytes + VB__BLOCK_TRAILER)
			return vb__fail(err,
					&(struct vb__failure){
						.code = VB_ERR_UNSUPPORTED,
						.operation = "use",
						.object = vb_channel_device(s->rails[i]),
						.cause = "its messages are too small for a block",
						.hint = "choose smaller blocks" });
	return 0;
}

static const char *describe_packing(uint8_t pack, char *text, size_t size)
{
	if (!pack)
		return "";
	if (pack == VB__PACK_AUTO)
		return ", compressed where that is faster";
	snprintf(text, size, ", compressed at level %u", pack);
	return text;
}

int vb__session_open_rails(struct vb_session *s, bool sends, struct vb_error *err)
{
	struct vb__pass passes[VB_RAILS_MAX] = { { .depth = 0 } };
	const char *cipher = vb_session_cipher(s);
	size_t at = strlen(s->description);
	char packing[64];
	int rc = 0;

	for (unsigned i = 0; i < s->agreed.rails && rc == 0; i++) {
		rc = make_pass(s, i, sends, &passes[i], err);
		if (rc == 0)
			rc = derive_secret(s, i, sends, err);
	}
	if (rc == 0)
		rc = s->door ? accept_rails(s, passes, err) : connect_rails(s, passes, err);
	if (rc == 0)
		rc = check_rails(s, err);
	for (unsigned i = 0; rc == 0 && i < s->rail_count && vb__session_is_tcp(s); i++)
		vb__channel_stop_spinning(s->rails[i]);
	snprintf(s->description + at, sizeof(s->description) - at,
		 "; blocks of %u KiB, %u under way on each of %u rail%s, %s%s%s",
		 s->agreed.block_bytes >> 10, s->agreed.window, s->agreed.rails,
		 s->agreed.rails == 1 ? "" : "s", cipher ? "sealed by " : "not encrypted",
		 cipher ? cipher : "", describe_packing(s->agreed.pack, packing, sizeof(packing)));
	return rc;
}
