/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the opening of a parley: what comes from a peer before it has proven anything. An
 * input is the victim's role, the size of the messages, and what they carry.
 */
#include <stdbool.h>
#include <string.h>

#include <openssl/err.h>

#include "fuzz_target.h"
#include "mock_channel.h"
#include "transfer/parley.h"

#define HEADER 2u

/* Stretching a key for each input would take its time. */
static const struct vb__secret secret = { { 1, 2, 3 } }, other = { { 3, 2, 1 } };

struct scene {
	struct vb_channel here, there;
	struct vb__parley *parley;
};

static void open_scene(struct scene *scene, enum vb__parley_role role, const struct vb__secret *key)
{
	mock_channel_pair(&scene->here, &scene->there);
	HOLDS(vb__parley_open(&scene->here, key, role, &scene->parley, NULL) == 0);
}

static void close_scene(struct scene *scene)
{
	vb__parley_close(scene->parley);
	mock_channel_drain(&scene->here);
	mock_channel_drain(&scene->there);
}

/* A failure is told, stays, and leaves nothing behind; success cannot be. */
static void check_refused(struct scene *scene, int rc, const struct vb_error *err)
{
	const void *words;

	HOLDS(rc < 0 && ERR_peek_error() == 0);
	if (rc == VB_ERR_AGAIN) {
		HOLDS(err->code == VB_OK);
		rc = VB_ERR_INVALID;
	} else {
		HOLDS((int)err->code == rc && err->cause[0]);
		HOLDS(vb__parley_prove(scene->parley, NULL) == rc);
	}
	HOLDS(vb__parley_hear(scene->parley, &words, NULL) == rc);
	HOLDS(vb__parley_say(scene->parley, "x", 1, NULL) == rc);
	HOLDS(scene->here.sent <= 3); /* hello, its repetition, an alert */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct scene scene;
	struct vb_error err;
	int rc;

	if (size < HEADER)
		return 0;
	open_scene(&scene, data[0] % 2 ? VB__PARLEY_ACCEPTED : VB__PARLEY_CONNECTED, &secret);
	rc = vb__parley_prove(scene.parley, &err);
	HOLDS(rc == VB_ERR_AGAIN);
	for (size_t at = HEADER, step = 1 + 2 * data[1]; at < size; at += step) {
		size_t len = size - at < step ? size - at : step;

		mock_channel_inject(&scene.here, data + at, len);
		if (rc == VB_ERR_AGAIN)
			rc = vb__parley_prove(scene.parley, &err);
	}
	check_refused(&scene, rc, &err);
	close_scene(&scene);
	return 0;
}

/* The first message of a client, or the answer of a server to it, with the right key or another. */
static size_t record(uint8_t *to, size_t room, bool server, bool right)
{
	const struct vb__secret *key = right ? &secret : &other;
	struct scene client, host;
	struct vb_channel *from = server ? &host.there : &client.there;
	const void *message;
	ssize_t len;

	open_scene(&client, VB__PARLEY_CONNECTED, key);
	open_scene(&host, VB__PARLEY_ACCEPTED, key);
	HOLDS(vb__parley_prove(client.parley, NULL) == VB_ERR_AGAIN);
	if (server) {
		len = vb_channel_try_recv(&client.there, &message, NULL);
		mock_channel_inject(&host.here, message, (size_t)len);
		HOLDS(vb__parley_prove(host.parley, NULL) == VB_ERR_AGAIN);
	}
	len = vb_channel_try_recv(from, &message, NULL);
	HOLDS(len > 0 && (size_t)len <= room);
	memcpy(to, message, (size_t)len);
	close_scene(&client);
	close_scene(&host);
	return (size_t)len;
}

/* Each kind is recorded once: what is random in it does not matter. */
static size_t sample(uint8_t *to, size_t room, bool server, bool right)
{
	static uint8_t recorded[2][2][512];
	static size_t len[2][2];

	if (!len[server][right])
		len[server][right] = record(recorded[server][right], 512, server, right);
	HOLDS(len[server][right] <= room);
	memcpy(to, recorded[server][right], len[server][right]);
	return len[server][right];
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	static const char http[] = "GET / HTTP/1.1\r\n\r\n";

	HOLDS(room >= HEADER + sizeof(http));
	to[0] = (uint8_t)(seed % 2);
	to[1] = seed / 2 % 4 ? 255 : (uint8_t)(seed / 8);
	if (seed / 2 % 32 == 31) {
		memcpy(to + HEADER, http, sizeof(http) - 1);
		return HEADER + sizeof(http) - 1;
	}
	/* What the victim waits for, with few exceptions. */
	return HEADER + sample(to + HEADER, room - HEADER, (seed / 64 % 8 == 0) == (to[0] == 1),
			       seed / 512 % 4);
}
