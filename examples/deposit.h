/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What goes over the channel of deposit.c: the sender's (O)ffer of a length and a SHA-256; a (T)oken of memory that is granted
 * for just this, which the sender writes into; (D)one; the memory is revoked, its hash compared: (G)ood; the sender's (I)D; the
 * (S)ecret. In place of each answer there may be a (N)o and why.
 */
#ifndef DEPOSIT_H
#define DEPOSIT_H

#include <stdint.h>
#include <string.h>

#include "example.h"

struct talk {
	struct vb_channel *channel;
	double until; /* now(): then nothing is waited for any more */
	struct message {
		char kind;
		union {
			struct {
				uint64_t len;
				uint8_t sha256[32];
			} offer;
			struct vb_token token;
			char text[256];
		};
	} message; /* to be said, or heard last */
};

/* Each of them: NULL, or why it went wrong. */
static inline const char *say(struct talk *talk, char kind)
{
	struct vb_error error;

	talk->message.kind = kind;
	return why_not(vb_channel_send(talk->channel, &talk->message, sizeof(talk->message),
				       &error),
		       &error);
}

static inline const char *hear(struct talk *talk, char kind)
{
	double left_ms = 1e3 * (talk->until - now());
	struct vb_error error;
	const void *bytes;
	ssize_t len;

	vb_channel_set_timeout(talk->channel, left_ms > 1 ? (uint32_t)left_ms : 1);
	len = vb_channel_recv(talk->channel, &bytes, &error);
	if (len != sizeof(talk->message))
		return len < 0 ? why_not(len, &error) : "that is not what comes next";
	memcpy(&talk->message, bytes, sizeof(talk->message));
	talk->message.text[sizeof(talk->message.text) - 1] = '\0';
	return talk->message.kind == kind ? NULL : "that is not what comes next";
}

static inline const char *ask(struct talk *talk, char kind, char answer)
{
	const char *why = say(talk, kind);

	return why ? why : hear(talk, answer);
}

#endif
