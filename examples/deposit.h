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
};

/* Each of them: NULL, or why it went wrong. */
static inline const char *say(struct vb_channel *channel, struct message *message, char kind)
{
	struct vb_error error;

	message->kind = kind;
	return why_not(vb_channel_send(channel, message, sizeof(*message), &error), &error);
}

static inline const char *hear(struct vb_channel *channel, struct message *message, char kind)
{
	struct vb_error error;
	const void *bytes;
	ssize_t len = vb_channel_recv(channel, &bytes, &error);

	if (len < 0)
		return why_not(len, &error);
	if (len != sizeof(*message))
		return "that is not what comes next";
	memcpy(message, bytes, sizeof(*message));
	message->text[sizeof(message->text) - 1] = '\0';
	return message->kind == kind ? NULL : "that is not what comes next";
}

static inline const char *ask(struct vb_channel *channel, struct message *message, char kind,
			      char answer)
{
	const char *why = say(channel, message, kind);

	return why ? why : hear(channel, message, answer);
}

#endif
