/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Channels in memory, for what is built on channels: two ends in one thread, and
 * somebody on the wire between them who may do anything to a message.
 */
#ifndef VB_MOCK_CHANNEL_H
#define VB_MOCK_CHANNEL_H

#include <stdbool.h>

#include <verbatim/channel.h>

/* What becomes of a message on its way. */
enum mock_fate {
	MOCK_DELIVER,
	MOCK_DROP,
	MOCK_REPEAT, /* it comes twice */
	MOCK_DELAY,  /* it comes after the next one */
};

/* May change a message in place, or shorten it. `number` counts what this end sent, from 0. */
typedef enum mock_fate (*mock_wire_fn)(void *arg, unsigned number, uint8_t *bytes, size_t *len);

struct mock_message;

struct vb_channel {
	struct vb_channel *peer;
	size_t max_message;
	unsigned room;	    /* how many messages may wait at the peer; 0: any number */
	bool ended;	    /* this end has finished: its peer reads VB_ERR_EOF after the last */
	enum vb_err broken; /* what all calls at this end return, after what had arrived */

	mock_wire_fn wire;
	void *wire_arg;

	unsigned sent;
	unsigned waiting; /* messages that came and were not taken */
	struct mock_message *first, *last, *shown, *delayed;
};

/* Two ends of one channel, which need no more than mock_channel_drain to be freed. */
void mock_channel_pair(struct vb_channel *a, struct vb_channel *b);

/* Puts a message before this end as if its peer had sent it, past the wire. */
void mock_channel_inject(struct vb_channel *ch, const void *bytes, size_t len);

/* Forgets what waits at this end. */
void mock_channel_drain(struct vb_channel *ch);

#endif
