/* SPDX-License-Identifier: Apache-2.0 */
/* Links: frames over two descriptors. A thread reads; any thread may send. */
#ifndef TOOLS_LINK_H
#define TOOLS_LINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "remote/frame.h"
#include "remote/pack.h"

/* What came, by the thread that reads: it must not wait for another frame. FRAME_NONE: no more will. */
typedef void (*link_fn)(void *arg, const struct frame *frame);

struct link {
	int in, out;
	int quit; /* readable when it shall end */
	pthread_mutex_t sending;
	atomic_bool broken;    /* nothing can be sent any more */
	atomic_bool senseless; /* what came was no frame */
	pthread_t reader;
	bool reading;
	link_fn heard;
	void *arg;
};

/* Takes the descriptors over. */
int link_open(struct link *link, int in, int out);

/* Exchanges hellos first, elsewhere; then from now on frames are read. */
int link_listen(struct link *link, link_fn heard, void *arg);

/* These block until it is with the kernel. False when the link is broken. */
bool link_send(struct link *link, enum frame_kind kind, const void *payload, size_t len);

/* The same in two pieces. */
bool link_send_both(struct link *link, enum frame_kind kind, const void *head, size_t head_len,
		    const void *data, size_t len);

/* Sends what was packed, as one frame, and frees it. */
bool link_send_pack(struct link *link, enum frame_kind kind, struct pack *pack);

/* Bytes as they are, for the hello. */
bool link_write(struct link *link, const void *bytes, size_t len);

/* Says no more: the other side sees an end. Reading goes on. */
void link_hang_up(struct link *link);

/* Makes both directions end at once, wherever they wait. */
void link_break(struct link *link);

/* Ends whatever is under way and frees all. Not from within `heard`. */
void link_close(struct link *link);

#endif
