/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listening on all fabrics at once. A peer that asks to connect is answered
 * when somebody accepts and nobody stands there before it, and waits in a list
 * until its connection stands; one that never comes to that is forgotten.
 * Nothing here lets one peer hold up another.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "channel/channel_state.h"
#include "channel/inside.h"
#include "core/clock.h"
#include "core/warnings.h"
#include "fabric/waiter.h"

#define FABRICS_MAX 2
#define COMING_MAX 64u
#define PORT_TRIES 16
#define FRUITLESS_MAX 200u
/* An honest peer needs a round trip to come. */
#define HESITATION_MS 200u
/* Requests that are answered in a call that must not block, and they are refused: there may be no end of them. */
#define REFUSALS_MAX 32u

/* Warnings: of each enum vb__refusal, and of these. */
enum {
	DID_NOT_COME = VB__REFUSAL_UNABLE + 1,
	WENT_AWAY
};
_Static_assert(WENT_AWAY < VB__WARNING_KINDS, "there must be room for each kind");

/* A connection that is being made. */
struct coming {
	struct coming *next;
	struct vb_channel *channel;
	uint64_t deadline_ns;
};

struct vb_listener {
	struct vb__settings settings;
	struct vb__warnings warnings;
	struct vb__pep *peps[FABRICS_MAX];
	struct coming *coming;
	unsigned coming_count, room;
	struct vb__waiter waiter;
	uint16_t port;
	bool hurried;	    /* it was left although there may be more requests */
	unsigned fruitless; /* times, in a row, that what woke it stayed */
	struct vb_error done_without;
	uint8_t unable[VB__HELLO_BYTES]; /* says no to who cannot be served */
	struct vb__pass passes[VB__PASSES_MAX];
	bool pass_used[VB__PASSES_MAX];
	unsigned pass_count;
	unsigned shared_receives;
	struct vb__pool **pools; /* NULL: each channel has its own receives */
	char description[512];
};

static void add_words(struct vb_listener *l, const char *fabric, const char *words)
{
	size_t at = strlen(l->description);

	snprintf(l->description + at, sizeof(l->description) - at, "%s%s: %s", at ? "; " : "",
		 fabric, words);
}

/*
 * In auto mode a fabric that this machine has not (no device, no libfabric) is no
 * reason to fail, nor is a TCP port that an iWARP device of ours took for the same
 * listener.
 */
static bool can_do_without(const struct vb_listener *l, const struct vb_error *why)
{
	if (l->settings.fabric != VB_FABRIC_AUTO)
		return false;
	if (why->code == VB_ERR_NO_DEVICE || why->code == VB_ERR_ACCESS ||
	    why->code == VB_ERR_UNREACHABLE || why->code == VB_ERR_UNSUPPORTED)
		return true;
	return why->code == VB_ERR_IN_USE && l->peps[0] && l->peps[0]->shares_tcp_ports;
}

static int serve(struct vb_listener *l, const struct vb__fabric *fabric,
		 const struct vb__address *at, struct vb_error *err)
{
	struct vb_error why = { .code = VB_OK };
	struct vb__pep *pep;
	unsigned i = 0;
	int rc = vb__pep_open(fabric, &l->settings, at, &pep, &why);

	if (rc) {
		if (!can_do_without(l, &why))
			return vb__fail_again(err, &why);
		add_words(l, fabric->name,
			  why.code == VB_ERR_IN_USE
				  ? "an iWARP device has the port, it takes its ports from TCP"
				  : why.cause);
		l->done_without = why;
		return 0;
	}
	while (l->peps[i])
		i++;
	l->peps[i] = pep;
	l->port = pep->port;
	add_words(l, fabric->name, pep->device);
	return vb__waiter_add(&l->waiter, pep->wait_fd, VB__READY_OWN, err);
}

static void stop_serving(struct vb_listener *l)
{
	for (int i = 0; i < FABRICS_MAX && l->peps[i]; i++) {
		vb__waiter_remove(&l->waiter, l->peps[i]->wait_fd);
		vb__pep_close(l->peps[i]);
		l->peps[i] = NULL;
	}
	l->description[0] = '\0';
}

/* The last fabric's reason is the one that can be mended; the words are those of all. */
static int fail_nothing_served(struct vb_listener *l, const struct vb__address *at,
			       struct vb_error *err)
{
	struct vb_error *why = &l->done_without;

	snprintf(why->operation, sizeof(why->operation), "listen on");
	snprintf(why->object, sizeof(why->object), "%s", at->text);
	snprintf(why->cause, sizeof(why->cause), "%.*s", (int)sizeof(why->cause) - 1,
		 l->description);
	return vb__fail_again(err, why);
}

/* Every fabric at this address, the later ones at the port that the first one got. */
static int serve_all(struct vb_listener *l, struct vb__address at, struct vb_error *err)
{
	int rc = 0;

	for (const struct vb__fabric *const *f = vb__fabrics; *f && rc == 0; f++) {
		if (l->settings.fabric != VB_FABRIC_AUTO && l->settings.fabric != (*f)->id)
			continue;
		rc = vb__settings_given_up(&l->settings) ? vb__fail_interrupted(err)
							 : serve(l, *f, &at, err);
		if (rc == 0 && l->peps[0])
			vb__address_set_port(&at, l->port);
	}
	if (rc == 0 && !l->peps[0] && !l->description[0])
		rc = vb__fabric_fail_missing(l->settings.fabric, "listen", err);
	if (rc == 0 && !l->peps[0])
		rc = fail_nothing_served(l, &at, err);
	if (rc)
		stop_serving(l);
	return rc;
}

/* Any free port: the one that the first fabric found may be taken on the second. */
static int serve_somewhere(struct vb_listener *l, const struct vb__address *at,
			   struct vb_error *err)
{
	int tries = vb__address_port(at) ? 1 : PORT_TRIES, rc;

	do {
		vb__error_clear(err);
		rc = serve_all(l, *at, err);
	} while (rc == VB_ERR_IN_USE && --tries > 0);
	return rc;
}

/* The IPv6 wildcard serves IPv4 as well, so it comes first. */
static int serve_any(struct vb_listener *l, const struct vb__address *at, int n,
		     struct vb_error *err)
{
	int rc = VB_ERR_RESOLVE;

	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < n; i++) {
			if ((at[i].sa.ss_family == AF_INET6) != (pass == 0))
				continue;
			rc = serve_somewhere(l, &at[i], err);
			if (rc == 0 || rc == VB_ERR_IN_USE)
				return rc;
		}
	}
	return rc;
}

static void encode_refusal(uint8_t bytes[VB__HELLO_BYTES], enum vb__refusal reason)
{
	struct vb__hello hello = {
		.kind = VB__HELLO_REFUSE,
		.version = VB__PROTOCOL_VERSION,
		.reason = (uint16_t)reason,
	};

	vb__hello_encode(bytes, &hello);
}

int vb__listener_open(const char *host, const char *port, const struct vb__settings *settings,
		      struct vb_listener **listener, struct vb_error *err)
{
	struct vb__address at[VB__ADDRESSES_MAX] = { { .len = 0 } };
	struct vb_listener *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	l->settings = *settings;
	l->warnings.log = settings->log;
	l->room = COMING_MAX;
	l->waiter = VB__WAITER_NONE;
	encode_refusal(l->unable, VB__REFUSAL_UNABLE);
	rc = vb__waiter_open(&l->waiter, 0, err);
	if (rc == 0)
		rc = vb__address_resolve(host, port, l->settings.family, at, err);
	if (rc > 0)
		rc = host ? serve_somewhere(l, &at[0], err) : serve_any(l, at, rc, err);
	if (rc) {
		vb_listener_close(l);
		return rc;
	}
	l->settings.given_up = NULL;
	vb__log(&l->settings.log, VB_LOG_INFO, "listening on port %u: %s", l->port, l->description);
	*listener = l;
	return 0;
}

int vb_listener_open(const char *host, const char *port, const struct vb_options *options,
		     struct vb_listener **listener, struct vb_error *err)
{
	struct vb_error local = { .code = VB_OK };
	struct vb__settings settings;
	int rc;

	err = err ? err : &local;
	vb__error_clear(err);
	rc = vb__settings_from(&settings, options, err);
	return rc ? rc : vb__listener_open(host, port, &settings, listener, err);
}

static void forget(struct vb_listener *l, struct coming **at)
{
	struct coming *gone = *at;

	*at = gone->next;
	l->coming_count--;
	free(gone);
}

/* Off the list, and not waited for any more. */
static struct vb_channel *drop(struct vb_listener *l, struct coming **at)
{
	struct vb_channel *channel = (*at)->channel;

	forget(l, at);
	vb__waiter_remove(&l->waiter, channel->ep->wait_fd);
	return channel;
}

void vb_listener_close(struct vb_listener *l)
{
	if (!l)
		return;
	while (l->coming) {
		vb__channel_destroy(l->coming->channel);
		forget(l, &l->coming);
	}
	vb__warnings_close(&l->warnings);
	stop_serving(l);
	vb__waiter_close(&l->waiter);
	free(l);
}

static void refuse(struct vb_listener *l, struct vb__request *request, enum vb__refusal reason)
{
	static const char *const words[] = {
		[VB__REFUSAL_VERSION] = "it speaks another version of the protocol",
		[VB__REFUSAL_GARBAGE] = "it does not speak our protocol",
		[VB__REFUSAL_BUSY] = "there are too many connections",
		[VB__REFUSAL_TOKEN] = "its token is not expected here",
	};
	uint8_t bytes[VB__HELLO_BYTES];

	vb__warnings_add(&l->warnings, reason, vb__now_ns(), "a peer was refused: %s",
			 words[reason]);
	encode_refusal(bytes, reason);
	vb__request_reject(request, bytes, sizeof(bytes));
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static bool shows_token(const struct vb__hello *hello)
{
	static const uint8_t none[VB__TOKEN_BYTES];

	return memcmp(hello->token, none, sizeof(none)) != 0;
}

/* The number of the unused pass that the peer shows, or negative. */
static int find_pass(const struct vb_listener *l, const struct vb__hello *hello)
{
	for (unsigned i = 0; shows_token(hello) && i < l->pass_count; i++)
		if (!l->pass_used[i] &&
		    memcmp(l->passes[i].token, hello->token, VB__TOKEN_BYTES) == 0)
			return (int)i;
	return -1;
}

static void apply_pass(struct vb__settings *settings, const struct vb__pass *pass)
{
	settings->max_message = pass->max_message;
	settings->depth = pass->depth;
	settings->traffic = pass->traffic;
}

/* The pool to receive through, or none. */
static int find_pool(struct vb_listener *l, struct vb__request *request, struct vb__ep_attr *attr,
		     struct vb_error *err)
{
	struct vb_error why = { .code = VB_OK };
	struct vb__pool_attr pool = {
		.receives = l->shared_receives,
		.bytes = l->settings.max_message + VB__PACKET_TRAILER,
		.sends = attr->send_depth,
		.log = l->settings.log,
	};
	int rc;

	if (!l->pools)
		return 0;
	rc = vb__pool_for(request, &pool, l->pools, &attr->pool, &why);
	if (rc == 0)
		return 0;
	attr->pool = NULL;
	return rc == VB_ERR_UNSUPPORTED ? 0 : vb__fail_again(err, &why);
}

static int make_channel(struct vb_listener *l, struct vb__request *request,
			const struct vb__settings *settings, struct vb_channel **channel,
			struct vb_error *err)
{
	struct vb__ep_attr attr = vb__channel_ep_attr(settings);
	struct vb__ep *ep;
	int rc;

	attr.refusal = (struct vb__private_data){ l->unable, sizeof(l->unable) };
	rc = find_pool(l, request, &attr, err);
	if (rc) {
		vb__request_reject(request, l->unable, sizeof(l->unable));
		return rc;
	}
	rc = vb__ep_accept_open(request, &attr, &ep, err);
	return rc ? rc : vb__channel_create(ep, settings, channel, err);
}

/* Makes the channel and says yes. */
static int welcome(struct vb_listener *l, struct vb__request *request,
		   const struct vb__hello *theirs, int pass, struct vb_channel **channel,
		   struct vb_error *err)
{
	struct vb__settings settings = l->settings;
	struct vb__hello ours;
	uint8_t bytes[VB__HELLO_BYTES];
	int rc;

	if (pass >= 0)
		apply_pass(&settings, &l->passes[pass]);
	settings.max_message = smaller(settings.max_message, theirs->max_message);
	settings.depth = smaller(settings.depth, theirs->depth);
	rc = make_channel(l, request, &settings, channel, err);
	if (rc)
		return rc;
	(*channel)->pass = pass;
	vb__channel_keep_silent(*channel);
	ours = vb__channel_hello(*channel, VB__HELLO_ACCEPT);
	vb__hello_encode(bytes, &ours);
	rc = vb__ep_accept((*channel)->ep, bytes, sizeof(bytes), err);
	if (rc == 0)
		rc = vb__waiter_add(&l->waiter, (*channel)->ep->wait_fd, VB__READY_OWN, err);
	if (rc)
		vb__channel_destroy(*channel);
	return rc;
}

static enum vb__refusal judge(const struct vb_listener *l, const struct vb__request *request,
			      struct vb__hello *hello)
{
	enum vb__hello_verdict verdict = vb__hello_decode(hello, request->data, request->data_len);

	if (verdict == VB__HELLO_OTHER_VERSION)
		return VB__REFUSAL_VERSION;
	if (verdict == VB__HELLO_GARBAGE || hello->kind != VB__HELLO_OPEN)
		return VB__REFUSAL_GARBAGE;
	if (shows_token(hello) && find_pass(l, hello) < 0)
		return VB__REFUSAL_TOKEN;
	return VB__REFUSAL_NONE;
}

/* Whoever was asked in a while ago and does not come makes room for the next, but not those with a pass. */
static bool make_room(struct vb_listener *l)
{
	uint64_t hesitates_ns =
		vb__now_ns() + vb__ms(l->settings.peer_timeout_ms) - vb__ms(HESITATION_MS);
	struct coming **at = &l->coming;

	if (l->coming_count < l->room)
		return true;
	while (l->room && *at && (*at)->channel->pass >= 0)
		at = &(*at)->next;
	if (!l->room || !*at || (*at)->deadline_ns > hesitates_ns)
		return false;
	vb__warnings_add(&l->warnings, DID_NOT_COME, vb__now_ns(),
			 "a peer that did not come made room for another one");
	vb__channel_destroy(drop(l, at));
	return true;
}

static void answer(struct vb_listener *l, struct vb__request *request)
{
	struct vb_error err = { .code = VB_OK };
	struct coming *new, **at;
	struct vb_channel *channel;
	struct vb__hello hello;
	enum vb__refusal refusal = judge(l, request, &hello);
	int pass;

	if (refusal) {
		refuse(l, request, refusal);
		return;
	}
	pass = find_pass(l, &hello);
	new = pass >= 0 || make_room(l) ? malloc(sizeof(*new)) : NULL;
	if (!new) {
		refuse(l, request, VB__REFUSAL_BUSY);
		return;
	}
	if (welcome(l, request, &hello, pass, &channel, &err) != 0) {
		char line[VB_ERROR_LINE_MAX];

		vb__warnings_add(&l->warnings, VB__REFUSAL_UNABLE, vb__now_ns(),
				 "a peer could not be served: %s",
				 vb_error_format(&err, line, sizeof(line)));
		free(new);
		return;
	}
	*new = (struct coming){
		.channel = channel,
		.deadline_ns = vb__now_ns() + vb__ms(l->settings.peer_timeout_ms),
	};
	for (at = &l->coming; *at; at = &(*at)->next)
		;
	*at = new; /* first come, first served */
	if (pass >= 0)
		l->pass_used[pass] = true;
	l->coming_count++;
}

/*
 * Takes a new request, if there is one: 1. Only one, as whoever it brings is handed out first: while nobody takes them
 * the others wait in the fabric, where they cost next to nothing.
 */
static int answer_request(struct vb_listener *l, struct vb_error *err)
{
	struct vb__request *request;
	int rc = 0;

	for (int i = 0; rc == 0 && i < FABRICS_MAX && l->peps[i]; i++)
		rc = vb__pep_next(l->peps[i], &request, err);
	if (rc > 0) {
		l->fruitless = 0;
		answer(l, request);
	}
	return rc;
}

enum progress {
	COMING,
	ARRIVED,
	GONE
};

/* One that was connected counts as arrived, even if it is gone again: it may have sent something. */
static enum progress look_after(struct vb_channel *ch, bool *again)
{
	enum progress progress;

	vb__channel_lock(ch);
	vb__channel_progress(ch);
	*again |= vb__ep_arm(ch->ep) != 0;
	progress = ch->ep->was_up ? ARRIVED : ch->ep->state == VB__EP_DOWN ? GONE : COMING;
	vb__channel_unlock(ch);
	return progress;
}

/* The first connection that stands, if any; those that failed or took too long are dropped. */
static struct vb_channel *next_arrived(struct vb_listener *l, bool *again)
{
	struct coming **at = &l->coming;

	while (*at) {
		struct vb_channel *ch = (*at)->channel;
		enum progress progress = look_after(ch, again);

		if (progress == COMING && vb__now_ns() <= (*at)->deadline_ns) {
			at = &(*at)->next;
			continue;
		}
		drop(l, at);
		if (progress == ARRIVED)
			return ch;
		vb__warnings_add(&l->warnings, WENT_AWAY, vb__now_ns(),
				 "a peer went away while connecting");
		vb__channel_destroy(ch);
	}
	return NULL;
}

/* Everything is looked at: is it safe to sleep? */
static bool arm(struct vb_listener *l)
{
	bool safe = true;

	for (int i = 0; i < FABRICS_MAX && l->peps[i]; i++)
		safe &= vb__pep_arm(l->peps[i]) == 0;
	return safe;
}

/* Something is left to be taken, although all of it was looked at. */
static bool is_readable(const struct vb_listener *l)
{
	struct pollfd p = { .fd = l->waiter.epoll, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static bool descriptors_are_short(void)
{
	int fd = eventfd(0, EFD_CLOEXEC);

	if (fd < 0)
		return errno == EMFILE || errno == ENFILE;
	close(fd);
	return false;
}

/*
 * A fabric that cannot take a connection for want of descriptors wakes us again
 * and again, without a word. It gets better when some are closed. Whatever else wakes
 * us (what a device has to tell, a stranger, or a queue of them) is taken, and does not stay.
 */
static void slow_down(struct vb_listener *l)
{
	struct timespec pause = { .tv_nsec = 10000000 };

	l->fruitless = is_readable(l) ? l->fruitless + 1 : 0;
	if (l->fruitless < FRUITLESS_MAX)
		return;
	if (!descriptors_are_short()) {
		l->fruitless = 0;
		return;
	}
	if (l->fruitless == FRUITLESS_MAX)
		vb__log(&l->settings.log, VB_LOG_WARNING,
			"the listener is woken without anybody to serve: too few file "
			"descriptors? raise `ulimit -n`");
	nanosleep(&pause, NULL);
}

/* The descriptor stays readable until we are back. */
static int leave_hurried(struct vb_listener *l)
{
	l->hurried = true;
	vb__waiter_wake(&l->waiter);
	return VB_ERR_AGAIN;
}

static void come_back(struct vb_listener *l)
{
	if (l->hurried)
		vb__waiter_check(&l->waiter, VB__READY_WAKE);
	l->hurried = false;
}

static int accept_one(struct vb_listener *l, bool blocking, struct vb_channel **channel,
		      struct vb_error *err)
{
	struct vb_channel *ch;
	unsigned answered = 0;
	uint64_t tell_ns;
	int rc;

	vb__error_clear(err);
	come_back(l);
	for (;;) {
		bool again = false;

		ch = next_arrived(l, &again);
		if (ch)
			break;
		rc = answer_request(l, err);
		if (rc < 0)
			return rc;
		answered += rc > 0;
		if (!blocking && answered == REFUSALS_MAX)
			return leave_hurried(l);
		if (rc > 0 || again || !arm(l))
			continue;
		slow_down(l);
		tell_ns = vb__listener_tell(l);
		if (!blocking)
			return VB_ERR_AGAIN;
		vb__waiter_sleep(l->waiter.epoll, tell_ns);
	}
	snprintf(ch->description, sizeof(ch->description), "%s on %s to %s: the peer chose it%s%s",
		 ch->ep->fabric->name, ch->ep->device, ch->ep->peer, ch->ep->how[0] ? "; " : "",
		 ch->ep->how);
	vb__log(&l->settings.log, VB_LOG_INFO, "accepted by %s", ch->description);
	*channel = ch;
	return 0;
}

int vb_listener_accept(struct vb_listener *l, struct vb_channel **channel, struct vb_error *err)
{
	return accept_one(l, true, channel, err);
}

int vb_listener_try_accept(struct vb_listener *l, struct vb_channel **channel, struct vb_error *err)
{
	return accept_one(l, false, channel, err);
}

int vb_listener_fd(const struct vb_listener *l)
{
	return l->waiter.epoll;
}

int vb_listener_port(const struct vb_listener *l)
{
	return l->port;
}

const char *vb_listener_description(const struct vb_listener *l)
{
	return l->description;
}

bool vb__listener_serves(const struct vb_listener *l, enum vb_fabric fabric)
{
	bool serves = false;

	for (int i = 0; i < FABRICS_MAX && l->peps[i]; i++)
		serves |= l->peps[i]->fabric->id == fabric;
	return serves;
}

uint64_t vb__listener_tell(struct vb_listener *l)
{
	return vb__warnings_tell(&l->warnings, vb__now_ns());
}

void vb__listener_set_room(struct vb_listener *l, unsigned room)
{
	l->room = room < COMING_MAX ? room : COMING_MAX;
}

void vb__listener_share(struct vb_listener *l, unsigned receives, struct vb__pool **pools)
{
	l->shared_receives = receives;
	l->pools = pools;
}

void vb__listener_expect(struct vb_listener *l, const struct vb__pass *passes, unsigned count)
{
	for (struct coming *c = l->coming; c; c = c->next)
		if (c->channel->pass >= 0)
			c->channel->pass = VB__PASS_STALE;
	l->pass_count = count;
	for (unsigned i = 0; i < count; i++) {
		l->passes[i] = passes[i];
		l->pass_used[i] = false;
	}
}
