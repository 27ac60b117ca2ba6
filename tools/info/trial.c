/* SPDX-License-Identifier: Apache-2.0 */
/* The asking side: each call has a time limit, as what is looked for is a path that swallows what it gets. */
#include "info/trial.h"

#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/quantity.h"
#include "common/trouble.h"

#define ROUND_TRIPS 50
#define BURST_BYTES (1u << 20) /* of each size, in so many messages as that makes, */
#define BURST_MOST 64u	       /* but no more than these */
#define STEP_MS 5000u
#define PEER_TIMEOUT_MS 4000u

static const uint32_t sizes[TRIAL_STEPS] = { 64, 1024, 2048, 8192, 64u << 10, TRIAL_LARGEST };

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

int trial_next_port(const char *port, char to[8])
{
	uint64_t number;

	if (quantity_count(port, &number) != 0 || number >= 65535)
		return -1;
	snprintf(to, 8, "%u", number ? (unsigned)number + 1 : 0);
	return 0;
}

void trial_head_put(uint8_t to[TRIAL_HEAD], uint32_t kind, uint32_t number)
{
	const uint32_t head[2] = { htole32(kind), htole32(number) };

	memcpy(to, head, TRIAL_HEAD);
}

void trial_head_get(const uint8_t from[TRIAL_HEAD], uint32_t *kind, uint32_t *number)
{
	uint32_t head[2];

	memcpy(head, from, TRIAL_HEAD);
	*kind = le32toh(head[0]);
	*number = le32toh(head[1]);
}

/* ---- With time limits ---- */

struct talk {
	struct vb_channel *channel;
	uint8_t *buffer; /* of TRIAL_LARGEST bytes */
	uint64_t deadline_ns;
	struct vb_error *err;
};

/* After a call that would have to wait. */
static int wait_for_more(const struct talk *talk, const char *what)
{
	struct pollfd fd = { .fd = vb_channel_fd(talk->channel, talk->err), .events = POLLIN };
	uint64_t now = now_ns();
	int ms = now < talk->deadline_ns ? (int)((talk->deadline_ns - now) / 1000000) + 1 : 0;

	if (fd.fd < 0)
		return fd.fd;
	if (ms > 0 && poll(&fd, 1, ms) >= 0)
		return 0;
	return trouble_say(talk->err, VB_ERR_TIMEOUT, "%s for %u seconds", what, STEP_MS / 1000);
}

static int send_request(const struct talk *talk, enum trial_request kind, uint32_t number,
			size_t len)
{
	int rc;

	trial_head_put(talk->buffer, kind, number);
	while ((rc = vb_channel_try_send(talk->channel, talk->buffer, len, talk->err)) ==
	       VB_ERR_AGAIN) {
		rc = wait_for_more(talk, "nothing could be sent");
		if (rc)
			break;
	}
	return rc;
}

static int await_answer(const struct talk *talk, size_t len)
{
	const void *message;
	ssize_t n;

	while ((n = vb_channel_try_recv(talk->channel, &message, talk->err)) == VB_ERR_AGAIN) {
		n = wait_for_more(talk, "no answer");
		if (n)
			return (int)n;
	}
	if (n < 0)
		return (int)n;
	if ((size_t)n == len)
		return 0;
	return trouble_say(talk->err, VB_ERR_PROTOCOL, "an answer of %zd bytes, not %zu", n, len);
}

/* ---- Measuring ---- */

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int try_round_trips(struct trial *trial, struct talk *talk)
{
	uint64_t took[ROUND_TRIPS];
	const unsigned middle = ROUND_TRIPS / 2;

	talk->deadline_ns = now_ns() + STEP_MS * UINT64_C(1000000);
	for (unsigned i = 0; i < ROUND_TRIPS; i++) {
		uint64_t start = now_ns();
		int rc = send_request(talk, TRIAL_ASK, i, 8);

		if (rc == 0)
			rc = await_answer(talk, 8);
		if (rc)
			return rc;
		took[i] = now_ns() - start;
	}
	qsort(took, ROUND_TRIPS, sizeof(took[0]), by_size);
	trial->median_us = (double)took[middle] / 1e3;
	trial->worst_us = (double)took[ROUND_TRIPS - 1] / 1e3;
	return 0;
}

/* One message there, one back: alone, so that nothing puts it together with others. */
static int try_single(struct trial_step *step, struct talk *talk)
{
	int rc;

	talk->err = &step->failed;
	talk->deadline_ns = now_ns() + STEP_MS * UINT64_C(1000000);
	rc = send_request(talk, TRIAL_ASK, 0, step->bytes);
	if (rc == 0)
		rc = await_answer(talk, 8);
	step->got_there = rc == 0;
	if (rc == 0)
		rc = send_request(talk, TRIAL_GIVE, step->bytes, 8);
	if (rc == 0)
		rc = await_answer(talk, step->bytes);
	step->came_back = rc == 0;
	return rc;
}

static int try_burst(struct trial_step *step, struct talk *talk)
{
	uint32_t count = BURST_BYTES / step->bytes;
	uint64_t start = now_ns();
	int rc = 0;

	count = count > BURST_MOST ? BURST_MOST : count;
	talk->err = &step->failed;
	talk->deadline_ns = start + STEP_MS * UINT64_C(1000000);
	for (uint32_t i = 0; i + 1 < count && rc == 0; i++)
		rc = send_request(talk, TRIAL_SWALLOW, i, step->bytes);
	if (rc == 0)
		rc = send_request(talk, TRIAL_ASK, count, step->bytes);
	if (rc == 0)
		rc = await_answer(talk, 8);
	if (rc == 0)
		step->rate = quantity_speed((uint64_t)count * step->bytes, now_ns() - start);
	return rc;
}

static void try_channel(struct trial *trial, struct talk *talk)
{
	int rc;

	snprintf(trial->description, sizeof(trial->description), "%s",
		 vb_channel_description(talk->channel));
	talk->err = &trial->unmade;
	rc = try_round_trips(trial, talk);
	for (unsigned i = 0; i < TRIAL_STEPS && rc == 0; i++) {
		trial->step[i].bytes = sizes[i];
		trial->steps = i + 1;
		rc = try_single(&trial->step[i], talk);
	}
	for (unsigned i = 0; i < TRIAL_STEPS && rc == 0; i++)
		rc = try_burst(&trial->step[i], talk);
}

void trial_run(struct trial *trial, const char *host, const char *port,
	       const struct vb_options *options)
{
	struct vb_options own = *options;
	struct talk talk = { .buffer = calloc(1, TRIAL_LARGEST) };

	own.fabric = trial->fabric;
	own.max_message_bytes = TRIAL_LARGEST;
	own.peer_timeout_ms = PEER_TIMEOUT_MS;
	own.listener_is_up = true;
	if (!talk.buffer)
		trouble_say(&trial->unmade, VB_ERR_NOMEM, "out of memory");
	else if (vb_channel_connect(host, port, &own, &talk.channel, &trial->unmade) == 0)
		try_channel(trial, &talk);
	/* A path that swallows messages would have an orderly end wait for them. */
	vb_channel_abort(talk.channel);
	free(talk.buffer);
}
