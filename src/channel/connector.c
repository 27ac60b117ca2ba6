/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting: which fabric leads to the peer, and trying until somebody
 * listens. Every address and fabric is a candidate; each remembers what it
 * was answered, so that the end can tell all of it.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "channel/channel_state.h"
#include "channel/inside.h"
#include "core/clock.h"
#include "fabric/discovery.h"

/* While there are other candidates, one must not take all the time. rdma_cm repeats a lost request after 4.3 s. */
#define ATTEMPT_MS 5000u
/* A second way only has to find somebody who was refused or not heard by the first: one repetition of TCP's. */
#define SECOND_WAY_MS 1500u
#define SECOND_WAY_AGAIN_MS 500u
#define SECOND_WAY_SWALLOWED_MS 10000u
#define PAUSE_FIRST_MS 20u
#define PAUSE_MAX_MS 250u

#define CANDIDATES_MAX (VB__ADDRESSES_MAX * 3)

struct candidate {
	const struct vb__fabric *fabric;
	const struct vb__address *address;
	enum vb_wireup
		second; /* another way than the candidate before it; VB_WIREUP_AUTO: it is none */
	uint64_t not_before_ns;
	struct vb_error answer;
	bool heard; /* the listener itself answered so, and not somebody in its place */
	bool hopeless;
};

static int fail_version(struct vb_error *err, const struct vb__ep *ep, unsigned theirs)
{
	char cause[160];

	snprintf(cause, sizeof(cause), "the peer speaks version %u of the protocol, we speak %u",
		 theirs, VB__PROTOCOL_VERSION);
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_VERSION,
				     .operation = "connect to",
				     .object = ep->peer,
				     .cause = cause,
				     .hint = "install the same version of Verbatim at both ends",
			     });
}

static int fail_foreign(struct vb_error *err, const struct vb__ep *ep)
{
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_PROTOCOL,
				.operation = "connect to",
				.object = ep->peer,
				.cause = "what listens there does not speak Verbatim's protocol",
				.hint = "check the port",
			});
}

static int fail_refusal(struct vb_error *err, const struct vb__ep *ep,
			const struct vb__hello *hello)
{
	static const struct {
		const char *cause, *hint;
	} answers[] = {
		[VB__REFUSAL_GARBAGE] = { "the listener refused our hello",
					  "install the same version of Verbatim at both ends" },
		[VB__REFUSAL_BUSY] = { "the listener is too busy", "try again later" },
		[VB__REFUSAL_TOKEN] = { "the listener does not expect us",
					"what we belong to is over there: begin again" },
		[VB__REFUSAL_UNABLE] = { "the listener could not make the connection",
					 "it is short of something, and its log says of what: look "
					 "there, and at its `ulimit -n` and `ulimit -l`" },
	};
	unsigned known = hello->reason < sizeof(answers) / sizeof(answers[0]) &&
					 answers[hello->reason].cause
				 ? hello->reason
				 : VB__REFUSAL_GARBAGE;

	if (hello->reason == VB__REFUSAL_VERSION)
		return fail_version(err, ep, hello->version);
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_REFUSED,
				     .operation = "connect to",
				     .object = ep->peer,
				     .cause = answers[known].cause,
				     .hint = answers[known].hint,
			     });
}

/* What the fabric said, or better, what the listener said through it. */
static int explain_failure(struct vb_error *err, const struct vb__ep *ep, int rc,
			   const struct vb_error *answer, bool *heard)
{
	struct vb__hello hello;
	enum vb__hello_verdict verdict = vb__hello_decode(&hello, ep->peer_data, ep->peer_data_len);

	*heard = rc == VB_ERR_REFUSED && verdict != VB__HELLO_GARBAGE;
	if (rc == VB_ERR_REFUSED && verdict == VB__HELLO_OTHER_VERSION)
		return fail_version(err, ep, hello.version);
	if (rc == VB_ERR_REFUSED && verdict == VB__HELLO_GOOD && hello.kind == VB__HELLO_REFUSE)
		return fail_refusal(err, ep, &hello);
	return vb__fail_again(err, answer);
}

/* The listener accepted: does it speak as we do, and within what we asked for? */
static int check_answer(struct vb_channel *ch, struct vb_error *err)
{
	const struct vb__ep *ep = ch->ep;
	struct vb__hello hello;

	switch (vb__hello_decode(&hello, ep->peer_data, ep->peer_data_len)) {
	case VB__HELLO_GARBAGE:
		return fail_foreign(err, ep);
	case VB__HELLO_OTHER_VERSION:
		return fail_version(err, ep, hello.version);
	case VB__HELLO_GOOD:
		break;
	}
	if (hello.kind != VB__HELLO_ACCEPT || hello.max_message > ch->max_message ||
	    hello.depth > ch->credits.depth)
		return fail_foreign(err, ep);
	vb__channel_agree(ch, hello.max_message, hello.depth);
	return 0;
}

static int greet(struct vb_channel *ch, uint64_t deadline_ns, bool *heard, struct vb_error *err)
{
	struct vb__hello hello = vb__channel_hello(ch, VB__HELLO_OPEN);
	struct vb_error answer = { .code = VB_OK };
	uint8_t bytes[VB__HELLO_BYTES];
	int rc;

	vb__hello_encode(bytes, &hello);
	rc = vb__ep_connect(ch->ep, bytes, sizeof(bytes), deadline_ns, &answer);
	return rc ? explain_failure(err, ch->ep, rc, &answer, heard) : check_answer(ch, err);
}

/* The address to connect from, of the family that the peer's has. */
static int find_source(const struct candidate *c, const struct vb__settings *settings,
		       struct vb__address *source, struct vb_error *err)
{
	struct vb__address found[VB__ADDRESSES_MAX];
	int n = vb__address_resolve(settings->source, "0", c->address->sa.ss_family, found, err);

	if (n < 0)
		return n;
	*source = found[0];
	return 0;
}

static int attempt(struct candidate *c, const struct vb__settings *wanted, uint64_t deadline_ns,
		   struct vb_channel **channel, struct vb_error *err)
{
	struct vb__settings own = *wanted;
	const struct vb__settings *settings = &own;
	struct vb__ep_attr attr = vb__channel_ep_attr(settings);
	struct vb__address source;
	struct vb_channel *ch;
	struct vb__ep *ep;
	int rc = 0;

	c->heard = false;
	if (c->second)
		own.wireup = c->second;
	if (settings->source[0]) {
		rc = find_source(c, settings, &source, err);
		attr.source = &source;
	}
	if (rc == 0)
		rc = vb__ep_open(c->fabric, &attr, c->address, deadline_ns, &ep, err);
	if (rc == 0)
		rc = vb__channel_create(ep, settings, &ch, err);
	if (rc)
		return rc;
	rc = greet(ch, deadline_ns, &c->heard, err);
	if (rc) {
		vb__channel_destroy(ch);
		return rc;
	}
	vb__channel_lock(ch);
	vb__packet_post_control(ch); /* there may be credits that the peer waits for */
	vb__channel_unlock(ch);
	*channel = ch;
	return 0;
}

static unsigned list_candidates(struct candidate *to, const struct vb__address *addresses, int n,
				const struct vb__settings *settings)
{
	unsigned count = 0;

	for (int i = 0; i < n; i++)
		for (const struct vb__fabric *const *f = vb__fabrics; *f; f++) {
			enum vb_wireup second;

			if (settings->fabric != VB_FABRIC_AUTO && settings->fabric != (*f)->id)
				continue;
			to[count++] = (struct candidate){ .fabric = *f, .address = &addresses[i] };
			second = (*f)->second_wireup ? (*f)->second_wireup(settings)
						     : VB_WIREUP_AUTO;
			if (second != VB_WIREUP_AUTO)
				to[count++] = (struct candidate){ .fabric = *f,
								  .address = &addresses[i],
								  .second = second };
		}
	return count;
}

/* Trying again cannot change these. */
static bool is_hopeless(int code)
{
	return code == VB_ERR_NO_DEVICE || code == VB_ERR_ACCESS || code == VB_ERR_UNSUPPORTED ||
	       code == VB_ERR_RESOLVE || code == VB_ERR_MEMLOCK || code == VB_ERR_NOMEM ||
	       code == VB_ERR_INVALID;
}

/* Somebody answered for this port, and clearly. */
static bool is_final(int code)
{
	return code == VB_ERR_VERSION || code == VB_ERR_PROTOCOL;
}

static void describe(struct vb_channel *ch, const struct candidate *c, unsigned count,
		     const struct candidate *chosen)
{
	const char *why = "it was asked for";

	if (ch->settings.fabric == VB_FABRIC_AUTO && chosen->fabric->id == VB_FABRIC_VERBS)
		why = "it owns the route to the peer";
	else if (ch->settings.fabric == VB_FABRIC_AUTO)
		why = "it is the only fabric in this build";
	for (unsigned i = 0; !chosen->second && i < count; i++)
		if (&c[i] != chosen && c[i].address == chosen->address && c[i].answer.code &&
		    !c[i].second)
			why = c[i].answer.cause;
	if (chosen->second)
		why = chosen[-1].answer.cause;
	snprintf(ch->description, sizeof(ch->description), "%s on %s to %s: %s%.240s%s%s",
		 ch->ep->fabric->name, ch->ep->device, ch->ep->peer,
		 chosen->second ? "rdma_cm: " : "", why, ch->ep->how[0] ? "; " : "", ch->ep->how);
	vb__log(&ch->settings.log, VB_LOG_INFO, "connected by %s", ch->description);
}

/*
 * How much an answer says: what a peer said, clearly at best, more than that this machine is
 * short of something, and that more than that a way is none. A second way may never have been tried.
 */
static unsigned weigh(const struct candidate *c)
{
	int code = c->answer.code;

	if (c->second || code == VB_OK)
		return 0;
	if (is_final(code))
		return 6;
	if (!c->hopeless)
		return 5;
	if (!is_hopeless(code))
		return 4;
	return code == VB_ERR_NO_DEVICE ? 1 : code == VB_ERR_UNSUPPORTED ? 2 : 3;
}

static const struct candidate *most_telling(const struct candidate *c, unsigned count)
{
	const struct candidate *best = &c[0];

	for (unsigned i = 1; i < count; i++)
		if (weigh(&c[i]) > weigh(best))
			best = &c[i];
	return best;
}

static size_t add_answer(char *to, size_t size, const struct candidate *c, bool further)
{
	const struct vb_error *a = &c->answer;
	bool plain = !strcmp(a->operation, "connect to");

	if (c->second) /* of the one before it */
		return (size_t)snprintf(to, size, "; wired up by TCP: %s", a->cause);
	return (size_t)snprintf(to, size, "%s%s over %s: %s%s%s", further ? "; " : "",
				c->address->text, c->fabric->name, plain ? "" : a->operation,
				plain ? "" : ": ", a->cause);
}

/* Where verbs found no device, discovery knows better why: only now, as it has to open all devices. */
static void explain_absence(struct candidate *c, unsigned count,
			    const struct vb__settings *settings)
{
	for (unsigned i = 0; i < count; i++) {
		const struct vb__path_query query = { .peer = c[i].address,
						      .device = settings->device };
		struct vb_path *path;

		if (c[i].answer.code != VB_ERR_NO_DEVICE || c[i].fabric->id != VB_FABRIC_VERBS ||
		    vb__path_to(&query, &path, NULL) != 0)
			continue;
		if (path->fabric == VB_FABRIC_OFI)
			snprintf(c[i].answer.cause, sizeof(c[i].answer.cause), "%s", path->why);
		vb_path_free(path);
	}
}

/* All answers on one line; code, native value and hint are those of the most telling one. */
static int fail_all(struct vb_error *err, const struct candidate *c, unsigned count,
		    const char *host, const char *port, uint32_t timeout_ms)
{
	const struct candidate *best = most_telling(c, count);
	bool gave_up = !is_final(best->answer.code) && !best->hopeless;
	struct vb_error all = best->answer;
	size_t at = 0;

	snprintf(all.operation, sizeof(all.operation), "connect to");
	snprintf(all.object, sizeof(all.object), "%.64s port %.16s", host, port);
	if (gave_up)
		at = (size_t)snprintf(all.cause, sizeof(all.cause),
				      "gave up after %.3g s: ", timeout_ms / 1000.0);
	for (unsigned i = 0; i < count && at < sizeof(all.cause); i++)
		if (!c[i].second || (c[i].answer.code && !is_hopeless(c[i].answer.code)))
			at += add_answer(all.cause + at, sizeof(all.cause) - at, &c[i], i > 0);
	if (err)
		*err = all;
	return all.code;
}

static void pause_before(uint64_t deadline_ns, unsigned round)
{
	uint64_t now = vb__now_ns(), ms = PAUSE_FIRST_MS << (round < 4 ? round : 4);
	uint64_t ns = vb__ms(ms < PAUSE_MAX_MS ? ms : PAUSE_MAX_MS);
	struct timespec ts;

	if (now + ns > deadline_ns)
		ns = deadline_ns > now ? deadline_ns - now : 0;
	ts = (struct timespec){ .tv_nsec = (long)ns };
	nanosleep(&ts, NULL);
}

/* Keeps an answer, unless it only says that the time was over while an earlier one says more. */
static void keep_answer(struct candidate *c, const struct vb_error *answer, bool listener_is_up)
{
	if (answer->code != VB_ERR_TIMEOUT || c->answer.code == VB_OK)
		c->answer = *answer;
	c->hopeless = is_hopeless(answer->code) ||
		      (listener_is_up && (answer->code == VB_ERR_REFUSED || c->second));
}

/* What takes long the first time is not the peer's fault, and does not count. */
static void prepare(const struct vb__fabric *fabric, uint64_t *deadline_ns)
{
	uint64_t start = vb__now_ns();

	if (!fabric->prepare)
		return;
	fabric->prepare();
	*deadline_ns += vb__now_ns() - start;
}

/* A second way is worth a try only if the first one, before it, leads to the peer's host, but to no listener. */
static bool is_out(const struct candidate *c)
{
	return c->hopeless || (c->second && (c[-1].heard || is_hopeless(c[-1].answer.code)));
}

/* Now? A second way needs some time, or its answer would only be that there was none. */
static bool is_worth_it(const struct candidate *c, uint64_t deadline_ns)
{
	uint64_t now = vb__now_ns();

	return !is_out(c) && now >= c->not_before_ns && !(c->second && now >= deadline_ns);
}

/* Each try of a second way costs a queue pair, and whoever swallows what goes to that port would cost everybody's time. */
static void put_off(struct candidate *c, int code)
{
	if (c->second)
		c->not_before_ns = vb__now_ns() + vb__ms(code == VB_ERR_TIMEOUT
								 ? SECOND_WAY_SWALLOWED_MS
								 : SECOND_WAY_AGAIN_MS);
}

static unsigned count_first_ways(const struct candidate *c, unsigned count)
{
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++)
		n += !c[i].second;
	return n;
}

/* Until when to try one of `count`. An only one gets all the time, but for what its second way needs. */
static uint64_t limit_of(const struct candidate *c, unsigned first_ways, unsigned count,
			 uint64_t deadline_ns)
{
	uint64_t now = vb__now_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
	uint64_t most = vb__ms(c->second ? SECOND_WAY_MS : ATTEMPT_MS);

	if (!c->second && first_ways == 1) {
		uint64_t kept = left / 4 < vb__ms(SECOND_WAY_MS) ? left / 4 : vb__ms(SECOND_WAY_MS);

		most = count > 1 ? left - kept : left;
	}
	return now + (most < left ? most : left);
}

/* One round over the candidates: 1 connected, 0 go on trying, -1 no use. */
static int try_all(struct candidate *c, unsigned count, const struct vb__settings *settings,
		   uint64_t *deadline_ns, struct vb_channel **channel)
{
	unsigned hopeless = 0, first_ways = count_first_ways(c, count);

	for (unsigned i = 0; i < count; i++) {
		struct vb_error answer = { .code = VB_OK };
		uint64_t limit;

		if (is_worth_it(&c[i], *deadline_ns)) {
			prepare(c[i].fabric, deadline_ns);
			limit = limit_of(&c[i], first_ways, count, *deadline_ns);
			if (attempt(&c[i], settings, limit, channel, &answer) == 0) {
				describe(*channel, c, count, &c[i]);
				return 1;
			}
			keep_answer(&c[i], &answer, settings->listener_is_up);
			put_off(&c[i], answer.code);
			vb__log(&settings->log, VB_LOG_DEBUG, "%s over %s%s: %s",
				c[i].address->text, c[i].fabric->name,
				c[i].second ? ", wired up by TCP" : "", answer.cause);
			if (is_final(answer.code) && !c[i].second)
				return -1;
		}
		hopeless += is_out(&c[i]);
	}
	return hopeless == count ? -1 : 0;
}

int vb__channel_connect(const char *host, const char *port, const struct vb__settings *settings,
			struct vb_channel **channel, struct vb_error *err)
{
	struct vb__address addresses[VB__ADDRESSES_MAX];
	struct candidate candidates[CANDIDATES_MAX];
	uint64_t deadline;
	unsigned count, round = 0;
	int rc;

	if (!host)
		return vb__fail_invalid(err, "connect", "no host was given");
	rc = vb__address_resolve(host, port, settings->family, addresses, err);
	if (rc < 0)
		return rc;
	if (vb__settings_given_up(settings))
		return vb__fail_interrupted(err);
	count = list_candidates(candidates, addresses, rc, settings);
	if (!count)
		return vb__fabric_fail_missing(settings->fabric, "connect", err);
	deadline = vb__now_ns() + vb__ms(settings->connect_timeout_ms);
	for (;;) {
		rc = try_all(candidates, count, settings, &deadline, channel);
		if (rc > 0)
			return 0;
		if (rc < 0 || vb__now_ns() >= deadline || vb__settings_given_up(settings)) {
			explain_absence(candidates, count, settings);
			return fail_all(err, candidates, count, host, port,
					settings->connect_timeout_ms);
		}
		pause_before(deadline, round++);
	}
}

int vb_channel_connect(const char *host, const char *port, const struct vb_options *options,
		       struct vb_channel **channel, struct vb_error *err)
{
	struct vb__settings settings;
	int rc;

	vb__error_clear(err);
	rc = vb__settings_from(&settings, options, err);
	return rc ? rc : vb__channel_connect(host, port, &settings, channel, err);
}
