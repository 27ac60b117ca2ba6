/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The governor over simulated hosts and links: is what it comes to as fast as
 * it should be, and what does finding out cost?
 *
 * A block is worked on by whoever of the workers is free first, goes over the link in its
 * turn, is unpacked at the other end, and only then makes room for another one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "suite.h"
#include "transfer/governor.h"

#define BLOCK (512u << 10)
#define MIB (1u << 20)
#define SLOTS 16u
#define SLOTS_MAX 2000u
#define WORKERS_MAX 16u
#define RUNGS 6u

/* As measured with zstd: ns to pack a byte, and what becomes of it. */
struct data {
	double cost[RUNGS], ratio[RUNGS];
};

static const int levels[RUNGS] = { 0, -3, 1, 3, 6, 9 };
static const struct data text = { { 0, 2.4, 2.8, 5, 14.5, 21 },
				  { 1, 0.237, 0.192, 0.179, 0.147, 0.143 } };
static const struct data noise = { { 0, 0.24, 0.3, 0.35, 0.6, 0.7 }, { 1, 1, 1, 1, 1, 1 } };
/* Media with headers: hardly anything to be gained. */
static const struct data dense = { { 0, 1, 1.5, 2, 5, 7 }, { 1, 0.96, 0.955, 0.95, 0.95, 0.95 } };

struct world {
	unsigned workers;
	double link;	/* bytes in a ns: 0.125 is 1 Gbit/s */
	double unpack;	/* ns for a packed block's byte, of all that the receiver has for it */
	double other;	/* ns for a byte, reading and hashing */
	unsigned rough; /* percent by which times vary */
	unsigned slots; /* 0: SLOTS */
	const struct data *data;
};

struct run {
	struct world world;
	struct vb__governor governor;
	struct dice dice;
	double now, free[WORKERS_MAX], sent, link_free, receiver_free, acked[SLOTS_MAX];
	uint64_t blocks, plain, wire;
	uint64_t at_level[RUNGS]; /* blocks */
};

static double vary(struct run *r, double value)
{
	double by = r->world.rough
			    ? (double)dice_throw(&r->dice, 2 * r->world.rough + 1) - r->world.rough
			    : 0;

	return value * (1 + by / 100);
}

static unsigned rung_of(int level)
{
	for (unsigned i = 0; i < RUNGS; i++)
		if (levels[i] == level)
			return i;
	fail();
	return 0;
}

static double later(double a, double b)
{
	return a > b ? a : b;
}

static void one_block(struct run *r)
{
	const struct world *w = &r->world;
	struct vb__effort e = { .plain = BLOCK };
	unsigned me = 0, under_way = 0, rung, slots = w->slots ? w->slots : SLOTS;
	double start, ready;

	for (unsigned i = 1; i < w->workers; i++)
		if (r->free[i] < r->free[me])
			me = i;
	e.level = vb__governor_choose(&r->governor);
	rung = rung_of(e.level);
	start = later(r->free[me], r->acked[r->blocks % slots]);
	e.pack_ns = (uint64_t)vary(r, w->data->cost[rung] * BLOCK);
	e.other_ns = (uint64_t)vary(r, w->other * BLOCK);
	e.wire = (uint64_t)(w->data->ratio[rung] * BLOCK);
	ready = later(start + (double)(e.pack_ns + e.other_ns), r->sent);
	r->sent = r->free[me] = ready;
	r->link_free = later(ready, r->link_free) + vary(r, (double)e.wire / w->link);
	r->receiver_free = later(r->link_free, r->receiver_free) +
			   (e.wire < BLOCK ? vary(r, w->unpack * BLOCK) : 0);
	r->acked[r->blocks % slots] = r->receiver_free;
	for (unsigned i = 0; i < slots; i++)
		under_way += r->acked[i] > ready;
	e.filled = under_way * 100 / slots;
	r->blocks++;
	r->at_level[rung]++;
	r->plain += e.plain;
	r->wire += e.wire;
	r->now = r->receiver_free;
	vb__governor_note(&r->governor, &e, 1000000 + (uint64_t)ready);
}

static void begin(struct run *r, const struct world *w)
{
	*r = (struct run){ .world = *w, .dice = { 1 } };
	vb__governor_begin(&r->governor, w->workers, w->slots ? w->slots : SLOTS);
}

/* Returns the rate of these, in bytes per ns. */
static double carry(struct run *r, uint64_t mib)
{
	double since = r->now;

	memset(r->at_level, 0, sizeof(r->at_level));
	for (uint64_t i = 0; i < mib * MIB / BLOCK; i++)
		one_block(r);
	return (double)(mib * MIB) / (r->now - since);
}

static double rate_of_level(const struct world *w, uint64_t mib, int level)
{
	struct run r;

	begin(&r, w);
	vb__governor_hold(&r.governor, level);
	return carry(&r, mib);
}

static double rate_of_best(const struct world *w, uint64_t mib)
{
	double best = 0;

	for (unsigned i = 0; i < RUNGS; i++)
		best = later(best, rate_of_level(w, mib, levels[i]));
	return best;
}

static double rate_of_auto(const struct world *w, uint64_t mib)
{
	struct run r;

	begin(&r, w);
	return carry(&r, mib);
}

static void assert_at_least(const char *what, double rate, double share, double of)
{
	if (rate < share * of)
		fail_msg("%s: %.3f GB/s is not %.2f of %.3f", what, rate, share, of);
}

/* Two cores and loopback; ten times that. */
static const struct world fast = { .workers = 2, .link = 3, .other = 0.15, .unpack = 0.5 };
static const struct world gigabit = { .workers = 2, .link = 0.118, .other = 0.15, .unpack = 0.5 };

static struct world with(struct world w, const struct data *data, unsigned rough)
{
	w.data = data;
	w.rough = rough;
	return w;
}

static void never_slower_than_plain(void **state)
{
	static const double links[] = { 0.001, 0.01, 0.118, 0.4, 1, 3, 12 };
	static const struct data *const kinds[] = { &text, &noise, &dense };
	static const unsigned workers[] = { 1, 2, 4, 16 };
	static const double unpacks[] = { 0.05, 0.5, 2 };

	(void)state;
	for (unsigned i = 0; i < 7 * 3 * 4 * 3; i++) {
		struct world w = { .workers = workers[i % 4],
				   .link = links[i / 4 % 7],
				   .unpack = unpacks[i / 28 % 3],
				   .data = kinds[i / 84],
				   .other = 0.15 };
		uint64_t mib = 256 + (uint64_t)(w.link * 2000); /* two seconds' worth, at least */
		char what[120];

		snprintf(what, sizeof(what), "%u workers, link %.3f, data %u, unpack %.2f",
			 w.workers, w.link, i / 84, w.unpack);
		assert_at_least(what, rate_of_auto(&w, mib), 0.95, rate_of_level(&w, mib, 0));
	}
}

static void text_over_a_slow_link_is_packed_hard(void **state)
{
	struct world w = with(gigabit, &text, 0);
	double rate = rate_of_auto(&w, 2048);

	(void)state;
	assert_at_least("gigabit", rate, 3.5, rate_of_level(&w, 2048, 0));
	assert_at_least("gigabit", rate, 0.85, rate_of_best(&w, 2048));
	w.link = 0.00125;
	assert_at_least("10 Mbit/s", rate_of_auto(&w, 256), 0.85, rate_of_best(&w, 256));
	w.link = 0.0118;
	assert_at_least("100 Mbit/s", rate_of_auto(&w, 1024), 0.85, rate_of_best(&w, 1024));
}

static void a_hundred_megabytes_are_enough_to_gain(void **state)
{
	struct world w = with(gigabit, &text, 0);

	(void)state;
	assert_at_least("100 MB", rate_of_auto(&w, 100), 2, rate_of_level(&w, 100, 0));
}

static void noise_is_not_packed(void **state)
{
	struct world worlds[] = { with(fast, &noise, 0), with(gigabit, &noise, 0),
				  with(fast, &noise, 20), with(gigabit, &noise, 20) };

	(void)state;
	for (unsigned i = 0; i < COUNT(worlds); i++) {
		struct run r;

		begin(&r, &worlds[i]);
		carry(&r, 512);
		assert_at_least("noise", carry(&r, 2048), 0.98, rate_of_level(&worlds[i], 2048, 0));
		assert_true(r.at_level[0] >= r.blocks / 2);
	}
}

static void text_over_a_fast_link_goes_as_it_is(void **state)
{
	struct world w = with(fast, &text, 0);
	struct run r;

	(void)state;
	begin(&r, &w);
	assert_at_least("from the first byte", carry(&r, 1024), 0.9, rate_of_level(&w, 1024, 0));
	assert_at_least("then", carry(&r, 4096), 0.98, rate_of_level(&w, 4096, 0));
}

static void many_cores_pack_for_a_fast_link(void **state)
{
	struct world w = with(fast, &text, 0);

	(void)state;
	w.workers = 16;
	w.link = 1.2;
	w.unpack = 0.05;
	assert_at_least("16 cores", rate_of_auto(&w, 8192), 0.85, rate_of_best(&w, 8192));
}

static void a_receiver_that_unpacks_too_slowly_is_spared(void **state)
{
	struct world w = with(fast, &text, 0);
	struct run r;

	(void)state;
	w.workers = 16;
	w.unpack = 1;
	begin(&r, &w);
	carry(&r, 1024);
	assert_at_least("receiver", carry(&r, 8192), 0.95, rate_of_level(&w, 8192, 0));
}

static void follows_the_data(void **state)
{
	struct world w = with(gigabit, &text, 5);
	struct run r;
	double packed, plain;

	(void)state;
	begin(&r, &w);
	for (int i = 0; i < 3; i++) {
		r.world.data = &noise;
		plain = carry(&r, 256);
		assert_at_least("noise", plain, 0.95, 0.118);
		r.world.data = &text;
		packed = carry(&r, 512);
		assert_at_least("text", packed, 2.5, 0.118);
	}
}

static void follows_the_link(void **state)
{
	struct world w = with(fast, &text, 5);
	struct run r;

	(void)state;
	begin(&r, &w);
	for (int i = 0; i < 3; i++) {
		r.world.link = 3;
		carry(&r, 512);
		assert_at_least("fast", carry(&r, 1024), 0.9, 3);
		r.world.link = 0.118;
		carry(&r, 64);
		assert_at_least("slow", carry(&r, 512), 2.5, 0.118);
	}
}

static void rough_times_do_not_confuse_it(void **state)
{
	struct world w;

	(void)state;
	for (unsigned rough = 10; rough <= 40; rough += 10) {
		w = with(gigabit, &text, rough);
		assert_at_least("gigabit", rate_of_auto(&w, 2048), 0.8, rate_of_best(&w, 2048));
		w = with(fast, &text, rough);
		assert_at_least("fast", rate_of_auto(&w, 4096), 0.93, rate_of_level(&w, 4096, 0));
	}
}

static void finding_out_costs_a_hundredth(void **state)
{
	struct world w = with(fast, &text, 0);
	struct run r;

	(void)state;
	begin(&r, &w);
	carry(&r, 8192);
	assert_true(r.governor.probe_ns <= r.now / 100);
	assert_true(r.governor.probe_ns > 0);
}

/* With a thousand blocks under way on each of two rails it finds out as soon as with a few. */
static void many_slots_do_not_make_it_slow(void **state)
{
	struct world w = with(fast, &noise, 0);
	struct run r;

	(void)state;
	w.slots = SLOTS_MAX;
	begin(&r, &w);
	carry(&r, 128);
	carry(&r, 128);
	assert_in_range(r.at_level[0], 200, 256);
	w = with(gigabit, &text, 0);
	w.slots = SLOTS_MAX;
	assert_at_least("gigabit", rate_of_auto(&w, 4096), 2, rate_of_level(&w, 4096, 0));
}

static void a_level_that_was_asked_for_is_held(void **state)
{
	struct world w = with(fast, &noise, 0);
	struct run r;

	(void)state;
	begin(&r, &w);
	vb__governor_hold(&r.governor, 3);
	carry(&r, 256);
	assert_int_equal(r.at_level[3], 512);
}

/* A pipe that brings a few bytes now and then. */
static void blocks_of_a_few_bytes_are_taken_as_they_come(void **state)
{
	struct vb__governor g;

	(void)state;
	vb__governor_begin(&g, 2, SLOTS);
	for (unsigned i = 0; i < 10000; i++) {
		struct vb__effort e = { .level = vb__governor_choose(&g), .plain = i % 3 };

		e.wire = e.plain;
		vb__governor_note(&g, &e, i / 2 * 1000000u);
	}
	assert_true(vb__governor_choose(&g) >= -3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(never_slower_than_plain),
		cmocka_unit_test(text_over_a_slow_link_is_packed_hard),
		cmocka_unit_test(a_hundred_megabytes_are_enough_to_gain),
		cmocka_unit_test(noise_is_not_packed),
		cmocka_unit_test(text_over_a_fast_link_goes_as_it_is),
		cmocka_unit_test(many_cores_pack_for_a_fast_link),
		cmocka_unit_test(a_receiver_that_unpacks_too_slowly_is_spared),
		cmocka_unit_test(follows_the_data),
		cmocka_unit_test(follows_the_link),
		cmocka_unit_test(rough_times_do_not_confuse_it),
		cmocka_unit_test(finding_out_costs_a_hundredth),
		cmocka_unit_test(many_slots_do_not_make_it_slow),
		cmocka_unit_test(a_level_that_was_asked_for_is_held),
		cmocka_unit_test(blocks_of_a_few_bytes_are_taken_as_they_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
