/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The governor's reckoning. A transfer has two limits: the workers' time, which packing takes, and the
 * link, of which packing saves. Everything is in bytes and nanoseconds.
 */
#include "transfer/governor.h"

#include <float.h>
#include <string.h>

#define RUNGS VB__GOVERNOR_RUNGS
#define FIRST 1u /* the rung to begin with: cheap, and right on slow links, where it matters most */

/* A period is so long at least, so that its rate means something. */
#define PERIOD_MS 50u
#define ROUNDS 2u /* how often all slots are used in one */
/* But it is over after so much in any case: with many slots, or large blocks, they are not all used soon. */
#define SLOTS_COUNTED 64u
#define PERIOD_MOST_BYTES (64u << 20)

/* From how many percent on the room under way is taken by the link, and not by chance. */
#define BACKLOG 70u
/* A link that shows no backlog may be so much faster than it was thought, from period to period. */
#define LINK_GROWTH 2

/* By forecast, to be worth a try; by measurement, to be kept. */
#define WORTH 1.08
#define BETTER 1.03
#define AS_GOOD 0.97
/* A trial is given up early if it is so much slower than what was before. */
#define HOPELESS 0.4
#define HOPELESS_MS 20u

/* Periods that a rung is left alone after a failed trial: first, and at most. */
#define BAN_FIRST 16u
#define BAN_MOST 512u
/* The base has changed by so much since the ban: all bets are off. */
#define CHANGED_RATE 1.6
#define CHANGED_RATIO 0.15
#define CHANGED_FILLED 35

/* Nothing is gained. */
#define IN_VAIN 0.97
/* Slower than that, unpacking is hardly what limits it: 150 MB/s. */
#define UNPACKS_ANYWAY 0.15

/* A block tells something from this size on. */
#define TELLING_BYTES 4096u
/* What was learnt is good for so many blocks. */
#define FRESH_BLOCKS 512u
#define PROBE_BLOCKS 16u
#define PROBE_SHARE 0.01

/* Typical numbers, of which only the proportions are used where nothing better is known. */
static const struct {
	int level;
	double cost, gain;
} ladder[RUNGS] = {
	{ VB__LEVEL_OFF, 0, 0 }, { -3, 1, 0.74 }, { 1, 1.25, 0.79 },
	{ 3, 2.1, 0.81 },	 { 6, 6, 0.85 },  { 9, 9, 0.86 },
};

void vb__governor_hold(struct vb__governor *g, int level)
{
	*g = (struct vb__governor){ .steady = true, .level = level };
}

static unsigned counted_slots(const struct vb__governor *g)
{
	return g->slots < SLOTS_COUNTED ? g->slots : SLOTS_COUNTED;
}

void vb__governor_begin(struct vb__governor *g, unsigned workers, unsigned slots)
{
	*g = (struct vb__governor){ .workers = workers, .slots = slots, .rung = FIRST };
	g->unsettled = counted_slots(g);
}

static unsigned rung_of(int level)
{
	for (unsigned i = 0; i < RUNGS; i++)
		if (ladder[i].level == level)
			return i;
	return 0;
}

/* ---- What is known of the rungs ---- */

static bool is_fresh(const struct vb__governor *g, unsigned rung)
{
	return g->rungs[rung].block && g->blocks - g->rungs[rung].block <= FRESH_BLOCKS;
}

/* The rung that was learnt of last, or 0 if there is none. */
static unsigned freshest(const struct vb__governor *g)
{
	unsigned best = 0;

	for (unsigned i = 1; i < RUNGS; i++)
		if (g->rungs[i].block > g->rungs[best].block)
			best = i;
	return best;
}

static double cost_of(const struct vb__governor *g, unsigned rung)
{
	unsigned from = is_fresh(g, rung) ? rung : freshest(g);

	if (!rung || !from)
		return 0;
	return g->rungs[from].cost * ladder[rung].cost / ladder[from].cost;
}

static double ratio_of(const struct vb__governor *g, unsigned rung)
{
	unsigned from = is_fresh(g, rung) ? rung : freshest(g);
	double ratio;

	if (!rung || !from)
		return 1;
	ratio = 1 - (1 - g->rungs[from].ratio) * ladder[rung].gain / ladder[from].gain;
	return ratio < 0.001 ? 0.001 : ratio;
}

/* New data may be quite different, so what is new counts much. */
static void learn(struct vb__governor *g, const struct vb__effort *e)
{
	unsigned rung = rung_of(e->level);
	struct vb__rung *r = &g->rungs[rung];
	double weight = is_fresh(g, rung) ? 0.25 : 1;

	if (!rung || e->plain < TELLING_BYTES)
		return;
	r->cost += weight * ((double)e->pack_ns / (double)e->plain - r->cost);
	r->ratio += weight * ((double)e->wire / (double)e->plain - r->ratio);
	r->block = g->blocks;
}

/* Bytes in a ns. */
static double forecast(const struct vb__governor *g, unsigned rung)
{
	double busy = cost_of(g, rung) + g->other;
	double workers = busy > 0 ? g->workers / busy : DBL_MAX;
	double link = g->link > 0 ? g->link / ratio_of(g, rung) : DBL_MAX;

	return workers < link ? workers : link;
}

/* ---- Probing ---- */

/* The neighbour that is known least, of those that might be of use. */
static unsigned to_probe(const struct vb__governor *g)
{
	unsigned up = g->rung + 1 < RUNGS ? g->rung + 1 : g->rung;
	unsigned down = g->rung > 1 ? g->rung - 1 : up;

	return g->rungs[down].block < g->rungs[up].block ? down : up;
}

/*
 * What a probe takes of the transfer's time: its share of the workers', or, as blocks go in their turn, all
 * of the wait for it that is longer than what is under way keeps the link busy.
 */
static double price(const struct vb__governor *g, unsigned rung)
{
	double more = (cost_of(g, rung) - cost_of(g, g->rung)) * (double)g->largest;
	double queue =
		g->link > 0 ? g->slots / 2.0 * (double)g->largest * ratio_of(g, g->rung) / g->link
			    : 0;

	if (more <= 0)
		return 0;
	return more - queue > more / g->workers ? more - queue : more / g->workers;
}

static bool may_probe(const struct vb__governor *g, unsigned rung)
{
	double spent = (double)(g->now.last_ns - g->begin_ns);

	return rung != g->rung && !g->trial && g->blocks - g->probed_block >= PROBE_BLOCKS &&
	       g->now.last_ns - g->probed_ns >= (uint64_t)PERIOD_MS * 1000000 &&
	       g->probe_ns + price(g, rung) <= spent * PROBE_SHARE;
}

int vb__governor_choose(struct vb__governor *g)
{
	unsigned rung;

	if (g->steady)
		return g->level;
	rung = to_probe(g);
	if (!may_probe(g, rung))
		return ladder[g->rung].level;
	g->probed_block = g->blocks;
	g->probed_ns = g->now.last_ns;
	g->probe_ns += price(g, rung);
	return ladder[rung].level;
}

/* ---- Periods ---- */

static double rate(const struct vb__period *p)
{
	return p->last_ns > p->start_ns ? (double)p->plain / (double)(p->last_ns - p->start_ns) : 0;
}

/* Percent of the room. */
static double filled(const struct vb__period *p)
{
	return p->blocks ? (double)p->filled / (double)p->blocks : 0;
}

/* What is under way still goes as it was packed, and the rate is its for so long. */
static void begin_period(struct vb__governor *g, bool settle)
{
	g->periods++;
	g->unsettled = settle ? counted_slots(g) : 0;
	if (settle && g->unsettled < g->slots * g->filled / 100)
		g->unsettled = g->slots * g->filled / 100;
	g->now = (struct vb__period){ .start_ns = g->now.last_ns,
				      .last_ns = g->now.last_ns,
				      .filled_from = g->filled };
}

static void move_to(struct vb__governor *g, unsigned rung)
{
	g->rung = rung;
	begin_period(g, true);
}

static bool is_banned(const struct vb__governor *g, unsigned rung)
{
	return g->periods < g->rungs[rung].ban_until;
}

static void ban(struct vb__governor *g, unsigned rung)
{
	struct vb__rung *r = &g->rungs[rung];

	r->ban = r->ban ? r->ban * 2 : BAN_FIRST;
	if (r->ban > BAN_MOST)
		r->ban = BAN_MOST;
	r->ban_until = g->periods + r->ban;
}

/* What lies beyond a rung that is not worth it is not either. */
static void ban_from(struct vb__governor *g, unsigned rung)
{
	unsigned first = rung > g->base ? rung : 0, last = rung > g->base ? RUNGS - 1 : rung;

	for (unsigned i = first; i <= last; i++)
		ban(g, i);
}

static void keep_as_base(struct vb__governor *g)
{
	g->base = g->rung;
	g->base_rate = rate(&g->now);
	g->base_ratio = ratio_of(g, FIRST);
	g->base_filled = filled(&g->now);
}

static bool is_within(double value, double least, double most)
{
	return value > least && value < most;
}

/* Other data, or another link: what failed may succeed now. */
static void forget_bans_if_changed(struct vb__governor *g)
{
	double rose = g->base_rate > 0 ? rate(&g->now) / g->base_rate : 1;

	if (is_within(rose, 1 / CHANGED_RATE, CHANGED_RATE) &&
	    is_within(ratio_of(g, FIRST) - g->base_ratio, -CHANGED_RATIO, CHANGED_RATIO) &&
	    is_within(filled(&g->now) - g->base_filled, -CHANGED_FILLED, CHANGED_FILLED))
		return;
	for (unsigned i = 0; i < RUNGS; i++)
		g->rungs[i].ban = 0, g->rungs[i].ban_until = 0;
	keep_as_base(g);
}

static void measure(struct vb__governor *g)
{
	const struct vb__period *p = &g->now;
	double wire = (double)p->wire / (double)(p->last_ns - p->start_ns);

	g->other = (double)p->other_ns / (double)p->plain;
	if (filled(p) >= BACKLOG)
		g->link = wire; /* it takes no more */
	else if (g->link > 0)
		g->link = (g->link > wire ? g->link : wire) * LINK_GROWTH;
}

/* Packed without any gain. */
static bool is_in_vain(const struct vb__governor *g)
{
	return g->rung && ratio_of(g, g->rung) > IN_VAIN;
}

/* May the receiver be what limits it, by unpacking? */
static bool is_doubtful(const struct vb__governor *g)
{
	return g->rung && !is_banned(g, 0) && rate(&g->now) > UNPACKS_ANYWAY;
}

static unsigned best_by_forecast(const struct vb__governor *g)
{
	unsigned best = g->rung;
	double least = forecast(g, g->rung) * WORTH;

	for (unsigned i = 0; i < RUNGS; i++)
		if (i != g->rung && !is_banned(g, i) && forecast(g, i) > least) {
			best = i;
			least = forecast(g, i);
		}
	return best;
}

/* Where there is much room, what goes into it for a while is more than the link takes. */
static bool is_filling(const struct vb__governor *g)
{
	return g->slots > SLOTS_COUNTED && g->filled > g->now.filled_from + 1;
}

/* Is what was tried worth keeping? More work must pay, less work must do no harm. */
static bool has_failed(const struct vb__governor *g)
{
	return is_filling(g) ||
	       rate(&g->now) < g->base_rate * (g->rung > g->base ? BETTER : AS_GOOD);
}

static void decide(struct vb__governor *g)
{
	unsigned best;

	if (!is_filling(g))
		measure(g);
	if (g->trial && has_failed(g)) {
		ban_from(g, g->rung);
		g->trial = false;
		move_to(g, g->base);
		return;
	}
	if (g->trial) {
		g->rungs[g->rung].ban = 0;
		keep_as_base(g);
	}
	g->trial = false;
	forget_bans_if_changed(g);
	best = is_in_vain(g) || is_doubtful(g) ? 0 : best_by_forecast(g);
	if (is_filling(g) && !is_in_vain(g))
		best = g->rung;
	if (best == g->rung) {
		begin_period(g, false);
		return;
	}
	g->trial = !is_in_vain(g); /* that needs no proof */
	keep_as_base(g);
	move_to(g, best);
}

static bool is_over(const struct vb__governor *g, bool is_backlogged)
{
	const struct vb__period *p = &g->now;
	uint64_t ms = (p->last_ns - p->start_ns) / 1000000;

	if (p->blocks <= g->workers || !p->plain || p->last_ns <= p->start_ns)
		return false;
	if (g->trial && is_filling(g))
		return true;
	if (g->trial && ms >= HOPELESS_MS && rate(p) < g->base_rate * HOPELESS)
		return true;
	if (!g->periods) /* it may have begun all wrong, which shows soon */
		return p->blocks >= (is_backlogged ? ROUNDS : 0.5) * counted_slots(g);
	return (p->blocks >= ROUNDS * counted_slots(g) || p->plain >= PERIOD_MOST_BYTES) &&
	       ms >= PERIOD_MS;
}

static void add(struct vb__period *p, const struct vb__effort *e)
{
	p->blocks++;
	p->plain += e->plain;
	p->wire += e->wire;
	p->pack_ns += e->pack_ns;
	p->other_ns += e->other_ns;
	p->filled += e->filled;
}

void vb__governor_note(struct vb__governor *g, const struct vb__effort *e, uint64_t now_ns)
{
	if (g->steady)
		return;
	g->blocks++;
	g->filled = e->filled;
	g->largest = e->plain > g->largest ? e->plain : g->largest;
	learn(g, e);
	if (!g->begin_ns)
		g->begin_ns = g->now.start_ns = g->now.last_ns = now_ns;
	if (now_ns > g->now.last_ns)
		g->now.last_ns = now_ns;
	if (g->unsettled) {
		g->unsettled--;
		g->now.start_ns = g->now.last_ns;
		return;
	}
	add(&g->now, e);
	if (is_over(g, e->filled >= BACKLOG))
		decide(g);
}
