/* SPDX-License-Identifier: Apache-2.0 */
/* Guests. Whom they come to and by which listener is not known here. */
#include "transfer/guests.h"

#include <string.h>
#include <sys/resource.h>

#include "core/clock.h"
#include "core/memlock.h"

#define PENALTY_MS 1000u
/* For what a guest is told at last to get to it. */
#define PARTING_MS 200u
/* Where others wait: so long may a guest hesitate, and so long may it talk in all. */
#define HESITATION_MS 200u
#define PATIENCE_MS 2000u

#define GUESTS_LEAST 4u
#define TALKERS_MAX 16u
/* What one takes, generously, and which part of what there is they may take together. */
#define GUEST_FDS 12u
#define FDS_SHARE 2u
#define GUEST_PINNED_BYTES (64u << 10)
#define PINNED_SHARE 16u

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void vb__guests_open(struct vb__guests *g, const struct vb__settings *settings,
		     const struct vb__secret *secret, bool pinned)
{
	struct rlimit fds = { .rlim_cur = RLIM_INFINITY };
	uint64_t most;

	getrlimit(RLIMIT_NOFILE, &fds);
	most = smaller(VB__GUESTS_MAX, fds.rlim_cur / FDS_SHARE / GUEST_FDS);
	if (pinned)
		most = smaller(most, vb__memlock_limit() / PINNED_SHARE / GUEST_PINNED_BYTES);
	memset(g, 0, sizeof(*g));
	g->most = most < GUESTS_LEAST ? GUESTS_LEAST : (unsigned)most;
	g->warnings.log = settings->log;
	g->peer_timeout_ms = settings->peer_timeout_ms;
	g->secret = secret;
}

static void dismiss(struct vb__guests *g, unsigned number)
{
	struct vb__guest *guest = &g->guest[number];

	vb__parley_close(guest->parley);
	vb_channel_abort(guest->channel);
	*guest = g->guest[--g->count];
}

void vb__guests_close(struct vb__guests *g)
{
	while (g->count)
		dismiss(g, 0);
	vb__warnings_close(&g->warnings);
}

bool vb__guests_have_room(const struct vb__guests *g)
{
	return g->count < g->most;
}

void vb__guests_welcome(struct vb__guests *g, struct vb_channel *channel)
{
	uint64_t now = vb__now_ns();

	g->guest[g->count++] = (struct vb__guest){
		.channel = channel,
		.stirred = true,
		.came_ns = now,
		.heard_ns = now,
		.leaves_ns = now + vb__ms(g->peer_timeout_ms),
	};
}

/* ---- Who goes ---- */

/* Told apart, so that a flood of others does not hide a wrong key. */
enum kind {
	WRONG_KEY,
	GARBLED,
	LATE,
	STUCK,
	SILENT,
};

/* A flood of them is no flood of words. */
static void warn(struct vb__guests *g, enum kind kind, const struct vb__guest *guest,
		 const char *why)
{
	vb__warnings_add(&g->warnings, kind, vb__now_ns(), "%s was turned away: %s",
			 vb_channel_peer(guest->channel), why);
}

static bool is_talking(const struct vb__guest *guest)
{
	return guest->parley || guest->turned_away;
}

static unsigned talkers(const struct vb__guests *g)
{
	unsigned count = 0;

	for (unsigned i = 0; i < g->count; i++)
		count += is_talking(&g->guest[i]);
	return count;
}

static unsigned talkers_most(const struct vb__guests *g)
{
	return (unsigned)smaller(TALKERS_MAX, g->most - g->most / 4);
}

/* When it may have to make room. Never: a wrong key is to cost time, and who has spoken and is not heard yet waits for us. */
static uint64_t dispensable_ns(const struct vb__guest *guest)
{
	if (guest->turned_away || (guest->spoken && !guest->parley))
		return UINT64_MAX;
	return smaller(guest->heard_ns + vb__ms(HESITATION_MS),
		       guest->came_ns + vb__ms(PATIENCE_MS));
}

/* What it said may lie there unheard: it was we who were slow. */
static bool is_silent(struct vb__guest *guest)
{
	guest->spoken = guest->spoken || !vb__channel_is_silent(guest->channel);
	return !guest->spoken;
}

/* The one who came first of those who hesitate, if any; of those who said nothing rather than of those who talk. */
static struct vb__guest *most_dispensable(struct vb__guests *g, bool only_talkers, uint64_t now)
{
	struct vb__guest *found = NULL;

	for (unsigned i = 0; i < g->count; i++) {
		struct vb__guest *guest = &g->guest[i];

		if (now < dispensable_ns(guest) || (only_talkers && !guest->parley))
			continue;
		if (!found || (guest->spoken == found->spoken ? guest->came_ns < found->came_ns
							      : !guest->spoken))
			found = guest;
	}
	return found;
}

/* Somebody has spoken, and as many as may talk do. */
static bool talk_is_wanted(const struct vb__guests *g)
{
	bool wanted = false;

	for (unsigned i = 0; i < g->count; i++)
		wanted |= g->guest[i].spoken && !is_talking(&g->guest[i]);
	return wanted && talkers(g) >= talkers_most(g);
}

static void hang_up_on_one(struct vb__guests *g, bool only_talkers, uint64_t now)
{
	struct vb__guest *guest;

	do
		guest = most_dispensable(g, only_talkers, now);
	while (guest && !guest->parley && !is_silent(guest));
	if (!guest)
		return;
	if (guest->spoken)
		warn(g, STUCK, guest, "it does not go on, and others are waiting");
	else
		warn(g, SILENT, guest, "it says nothing, and others are waiting");
	dismiss(g, (unsigned)(guest - g->guest));
}

void vb__guests_make_room(struct vb__guests *g, bool others_wait)
{
	uint64_t now = vb__now_ns();

	for (unsigned i = g->count; i-- > 0;) {
		struct vb__guest *guest = &g->guest[i];

		if (now < guest->leaves_ns)
			continue;
		if (!guest->turned_away)
			warn(g, LATE, guest, "it did not prove to know the key in time");
		dismiss(g, i);
	}
	if (talk_is_wanted(g))
		hang_up_on_one(g, true, now);
	if (others_wait && !vb__guests_have_room(g))
		hang_up_on_one(g, false, now);
}

/* ---- What they say ---- */

static void turn_away(struct vb__guests *g, struct vb__guest *guest, const struct vb_error *why)
{
	bool wrong_key = why->code == VB_ERR_KEY;
	uint64_t stays_ms = wrong_key ? PENALTY_MS : PARTING_MS;

	warn(g, wrong_key ? WRONG_KEY : GARBLED, guest, why->cause);
	vb__parley_close(guest->parley);
	guest->parley = NULL;
	guest->turned_away = true;
	guest->leaves_ns = why->code == VB_ERR_LOST ? 0 : vb__now_ns() + vb__ms(stays_ms);
}

/* Its first word: now it is worth a parley, if one is to be had. */
static void let_talk(struct vb__guests *g, struct vb__guest *guest)
{
	struct vb_error err = { .code = VB_OK };

	if (is_silent(guest) || talkers(g) >= talkers_most(g))
		return;
	guest->heard_ns = vb__now_ns();
	if (vb__parley_open(guest->channel, g->secret, VB__PARLEY_ACCEPTED, &guest->parley, &err))
		turn_away(g, guest, &err);
}

/* True: it has proven. */
static bool hear(struct vb__guests *g, struct vb__guest *guest)
{
	struct vb_error err = { .code = VB_OK };
	size_t heard_bytes;
	int rc;

	if (!guest->parley && !guest->turned_away)
		let_talk(g, guest);
	guest->stirred = false;
	if (!guest->parley)
		return false;
	rc = vb__parley_prove(guest->parley, &err);
	if (rc && rc != VB_ERR_AGAIN) {
		turn_away(g, guest, &err);
		return false;
	}
	heard_bytes = vb__parley_heard_bytes(guest->parley);
	if (heard_bytes != guest->heard_bytes)
		guest->heard_ns = vb__now_ns();
	guest->heard_bytes = heard_bytes;
	return rc == 0;
}

bool vb__guests_take_proven(struct vb__guests *g, struct vb_channel **channel,
			    struct vb__parley **parley)
{
	for (unsigned i = 0; i < g->count; i++) {
		struct vb__guest *guest = &g->guest[i];
		bool waits_to_talk = guest->spoken && !is_talking(guest);

		if ((!guest->stirred && !waits_to_talk) || !hear(g, guest))
			continue;
		*channel = guest->channel;
		*parley = guest->parley;
		*guest = g->guest[--g->count];
		return true;
	}
	return false;
}

/* ---- Waiting ---- */

bool vb__guests_could_make_room(struct vb__guests *g)
{
	return most_dispensable(g, false, vb__now_ns()) != NULL;
}

uint64_t vb__guests_next_ns(struct vb__guests *g)
{
	bool crowded = !vb__guests_have_room(g) || talk_is_wanted(g);
	uint64_t now = vb__now_ns(), next = vb__warnings_tell(&g->warnings, now);

	for (unsigned i = 0; i < g->count; i++) {
		uint64_t dispensable = crowded ? dispensable_ns(&g->guest[i]) : UINT64_MAX;

		next = smaller(next, g->guest[i].leaves_ns);
		if (dispensable > now)
			next = smaller(next, dispensable);
	}
	return next;
}

unsigned vb__guests_poll(const struct vb__guests *g, struct pollfd *fds)
{
	for (unsigned i = 0; i < g->count; i++) {
		const struct vb__guest *guest = &g->guest[i];

		fds[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
		if (guest->parley)
			fds[i].fd = vb_channel_fd(guest->channel, NULL);
		else if (!guest->spoken)
			fds[i].fd = vb__channel_wait_fd(guest->channel);
	}
	return g->count;
}

void vb__guests_polled(struct vb__guests *g, const struct pollfd *fds)
{
	for (unsigned i = 0; i < g->count; i++)
		g->guest[i].stirred |= fds[i].revents != 0;
}
