/* SPDX-License-Identifier: Apache-2.0 */
/* Where datagrams can be sent: endpoints that are asked for, groups, and those who sent something. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <netinet/in.h>

#include "core/clock.h"
#include "dgram/dgram_state.h"

#define AGAIN_MS 50
#define ONE_OF_SEVERAL_MS 2000u

/* ---- The application's own peers ---- */

/* NULL: there is no memory for it, which `err` tells. */
static struct vb_dgram_peer *make_peer(struct vb_dgram *dgram, struct vb_error *err)
{
	struct vb_dgram_peer *peer = calloc(1, sizeof(*peer));

	if (!peer) {
		vb__fail_errno(err, ENOMEM, "calloc", NULL);
		return NULL;
	}
	peer->dgram = dgram;
	peer->flow = dgram->next_flow++;
	peer->next = dgram->named;
	dgram->named = peer;
	return peer;
}

static void set_way(struct vb_dgram_peer *peer, struct vb__dg_peer *way, size_t limit)
{
	size_t bytes = limit && limit < way->max_bytes ? limit : way->max_bytes;

	peer->way = way;
	peer->max_bytes = bytes - (peer->dgram->numbered ? VB__NUMBER_BYTES : 0);
	snprintf(peer->text, sizeof(peer->text), "%s", way->text);
}

/* Lock held. */
static void drop_peer(struct vb_dgram_peer *peer)
{
	struct vb_dgram_peer **at = &peer->dgram->named;

	while (*at != peer)
		at = &(*at)->next;
	*at = peer->next;
	if (peer->way)
		vb__dg_peer_close(peer->way);
	free(peer);
}

void vb_dgram_peer_close(struct vb_dgram_peer *peer)
{
	struct vb_dgram *dgram = peer ? peer->dgram : NULL;

	if (!peer)
		return;
	pthread_mutex_lock(&dgram->lock);
	drop_peer(peer);
	pthread_mutex_unlock(&dgram->lock);
}

const char *vb_dgram_peer_text(const struct vb_dgram_peer *peer)
{
	return peer->text;
}

size_t vb_dgram_peer_max(const struct vb_dgram_peer *peer)
{
	return peer->max_bytes;
}

/* ---- Asking for an endpoint ---- */

static int fail_greeting(struct vb_error *err, enum vb_err code, const char *peer,
			 const char *cause, const char *hint)
{
	return vb__fail(err, &(struct vb__failure){ .code = code,
						    .operation = "ask",
						    .object = peer,
						    .cause = cause,
						    .hint = hint });
}

/* Programs that do not greet are none of ours, and understood as long as nothing is numbered. */
static int check_greeting(const struct vb_dgram *dgram, const uint8_t *bytes, const char *peer,
			  size_t *limit, struct vb_error *err)
{
	struct vb__greeting greeting = { .numbered = false };
	char cause[80];

	switch (vb__greeting_decode(&greeting, bytes, VB__GREETING_BYTES)) {
	case VB__GREETING_OTHER_VERSION:
		snprintf(cause, sizeof(cause), "it speaks version %u of datagrams, we speak %u",
			 greeting.version, VB__DATAGRAM_VERSION);
		return fail_greeting(err, VB_ERR_VERSION, peer, cause,
				     "run the same release at both ends");
	case VB__GREETING_GOOD:
		*limit = greeting.max_bytes;
		if (*limit && *limit < VB__DATAGRAM_MAX_LEAST)
			return fail_greeting(err, VB_ERR_PROTOCOL, peer,
					     "what it says of the largest datagram makes no sense",
					     "it is a broken or foreign program");
		break;
	case VB__GREETING_FOREIGN:
		*limit = 0;
	}
	if (greeting.numbered == dgram->numbered)
		return 0;
	return fail_greeting(err, VB_ERR_PROTOCOL, peer,
			     dgram->numbered ? "it does not number its datagrams, we do"
					     : "it numbers its datagrams, we do not",
			     "set `numbered` at both ends, or at neither");
}

static int ask(struct vb_dgram *dgram, const struct vb__address *at, uint64_t deadline_ns,
	       struct vb_dgram_peer *peer, struct vb_error *err)
{
	uint8_t greeting[VB__GREETING_BYTES] = { 0 };
	struct vb__dg_peer *way;
	size_t limit = 0;
	int rc = vb__dg_resolve(dgram->dg, at, deadline_ns, greeting, &way, err);

	if (rc)
		return rc;
	rc = check_greeting(dgram, greeting, at->text, &limit, err);
	if (rc) {
		vb__dg_peer_close(way);
		return rc;
	}
	set_way(peer, way, limit);
	return 0;
}

static bool is_worth_another_try(int rc)
{
	return rc == VB_ERR_REFUSED || rc == VB_ERR_TIMEOUT || rc == VB_ERR_UNREACHABLE;
}

static void pause_unlocked(struct vb_dgram *dgram)
{
	struct timespec moment = { .tv_nsec = AGAIN_MS * 1000000L };

	pthread_mutex_unlock(&dgram->lock);
	nanosleep(&moment, NULL);
	pthread_mutex_lock(&dgram->lock);
}

/* A try that the deadline cuts short says less than a no that came before it. */
static void keep_more_telling(struct vb_error *why, const struct vb_error *latest)
{
	if (latest->code != VB_ERR_TIMEOUT || why->code == VB_OK)
		*why = *latest;
}

/* Lock held, but while waiting. */
static int ask_until(struct vb_dgram *dgram, const struct vb__address *at, int count,
		     uint64_t deadline_ns, struct vb_dgram_peer *peer, struct vb_error *err)
{
	struct vb_error why = { .code = VB_OK };

	for (;;) {
		int rc = VB_ERR_UNREACHABLE;

		for (int i = 0; i < count; i++) {
			uint64_t until = vb__now_ns() + vb__ms(ONE_OF_SEVERAL_MS);
			struct vb_error latest = { .code = VB_OK };

			rc = ask(dgram, &at[i],
				 count > 1 && until < deadline_ns ? until : deadline_ns, peer,
				 &latest);
			if (rc)
				keep_more_telling(&why, &latest);
			if (rc == 0 || !is_worth_another_try(rc))
				break;
		}
		if (rc == 0)
			return 0;
		if (!is_worth_another_try(rc) || dgram->settings.listener_is_up ||
		    vb__now_ns() + vb__ms(AGAIN_MS) >= deadline_ns)
			return vb__fail_again(err, &why);
		pause_unlocked(dgram);
	}
}

int vb_dgram_resolve(struct vb_dgram *dgram, const char *host, const char *port,
		     struct vb_dgram_peer **out, struct vb_error *err)
{
	uint64_t deadline_ns = vb__now_ns() + vb__ms(dgram->settings.connect_timeout_ms);
	struct vb__address at[VB__ADDRESSES_MAX];
	struct vb_dgram_peer *peer;
	int n, rc;

	vb__error_clear(err);
	*out = NULL;
	if (!host)
		return vb__fail_invalid(err, "resolve", "no host was given");
	n = vb__address_resolve(host, port, dgram->family, at, err);
	if (n < 0)
		return n;
	pthread_mutex_lock(&dgram->lock);
	peer = make_peer(dgram, err);
	rc = peer ? ask_until(dgram, at, n, deadline_ns, peer, err) : VB_ERR_NOMEM;
	if (rc && peer)
		drop_peer(peer);
	pthread_mutex_unlock(&dgram->lock);
	if (rc == 0)
		*out = peer;
	return rc;
}

/* ---- Groups ---- */

static bool is_group(const struct vb__address *at)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)&at->sa;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&at->sa;

	return at->sa.ss_family == AF_INET ? IN_MULTICAST(ntohl(four->sin_addr.s_addr))
					   : IN6_IS_ADDR_MULTICAST(&six->sin6_addr);
}

static bool is_joined(const struct vb_dgram *dgram, const struct vb_dgram_peer *new)
{
	for (const struct vb_dgram_peer *p = dgram->named; p; p = p->next)
		if (p != new && p->group.len &&
		    vb__address_same_host((const struct sockaddr *)&p->group.sa,
					  (const struct sockaddr *)&new->group.sa))
			return true;
	return false;
}

/* Lock held, but while waiting. The group is entered first, so that nobody else joins it meanwhile. */
static int join(struct vb_dgram_peer *peer, const struct vb__address *group, const char *name,
		struct vb_error *err)
{
	struct vb_dgram *dgram = peer->dgram;
	struct vb__dg_peer *way;
	int rc;

	peer->group = *group;
	if (is_joined(dgram, peer))
		return vb__fail_invalid(err, "join", "%s has been joined already", name);
	rc = vb__dg_join(dgram->dg, group,
			 vb__now_ns() + vb__ms(dgram->settings.connect_timeout_ms), &way, err);
	if (rc == 0)
		set_way(peer, way, 0);
	return rc;
}

int vb_dgram_join(struct vb_dgram *dgram, const char *group, struct vb_dgram_peer **out,
		  struct vb_error *err)
{
	struct vb__address at[VB__ADDRESSES_MAX];
	struct vb_dgram_peer *peer;
	int n, rc;

	vb__error_clear(err);
	*out = NULL;
	if (!group)
		return vb__fail_invalid(err, "join", "no group was given");
	n = vb__address_resolve(group, "0", dgram->family, at, err);
	if (n < 0)
		return n;
	if (!is_group(&at[0]))
		return vb__fail_invalid(err, "join", "%s is no multicast address", group);
	pthread_mutex_lock(&dgram->lock);
	peer = make_peer(dgram, err);
	rc = peer ? join(peer, &at[0], group, err) : VB_ERR_NOMEM;
	if (rc && peer)
		drop_peer(peer);
	pthread_mutex_unlock(&dgram->lock);
	if (rc == 0)
		*out = peer;
	return rc;
}

/* ---- Senders ---- */

struct vb_dgram_peer *vb__dgram_sender(struct vb_dgram *dgram, const struct vb__origin *origin)
{
	struct vb_dgram_peer *set = dgram->senders[vb__origin_hash(origin, SENDER_SETS)];
	struct vb_dgram_peer *found = NULL, *oldest = set;

	for (unsigned i = 0; i < SENDER_WAYS && !found; i++) {
		if (set[i].used && !memcmp(&set[i].origin, origin, sizeof(*origin)))
			found = &set[i];
		if (set[i].touched < oldest->touched)
			oldest = &set[i];
	}
	if (!found) {
		if (oldest->way)
			vb__dg_peer_close(oldest->way);
		found = oldest;
		*found = (struct vb_dgram_peer){
			.dgram = dgram,
			.max_bytes = dgram->max_bytes,
			.flow = dgram->next_flow++,
			.origin = *origin,
			.used = true,
			.text = "a sender",
		};
	}
	found->touched = ++dgram->clock;
	return found;
}

int vb__dgram_find_way(struct vb_dgram_peer *peer, struct vb_error *err)
{
	struct vb__dg *dg = peer->dgram->dg;
	struct vb__dg_peer *way;
	int rc;

	if (peer->way && (!peer->used || peer->ways_changed == dg->ways_changed))
		return 0;
	rc = vb__dg_peer_of(dg, &peer->origin, &way, err);
	if (rc)
		return rc;
	if (peer->way)
		vb__dg_peer_close(peer->way);
	set_way(peer, way, 0);
	peer->ways_changed = dg->ways_changed;
	return 0;
}

int vb_dgram_keep(struct vb_dgram *dgram, const struct vb_datagram *received,
		  struct vb_dgram_peer **out, struct vb_error *err)
{
	struct vb_dgram_peer *peer;
	int rc = VB_ERR_NOMEM;

	vb__error_clear(err);
	*out = NULL;
	pthread_mutex_lock(&dgram->lock);
	peer = make_peer(dgram, err);
	if (peer) {
		peer->origin = received->from->origin;
		peer->used = true;
		rc = vb__dgram_find_way(peer, err);
	}
	if (rc && peer)
		drop_peer(peer);
	pthread_mutex_unlock(&dgram->lock);
	if (rc == 0)
		*out = peer;
	return rc;
}
