/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The talk of both sides of a measurement beside their data: words over a
 * channel, the user's wish to stop, and showing how it goes on.
 */
#ifndef VB_PERF_TALK_H
#define VB_PERF_TALK_H

#include <verbatim/channel.h>

#include "core/settings.h"
#include "fabric/address.h"
#include "wire/perf_word.h"

struct vb__perf_talk {
	struct vb_channel *channel;
	int stop_fd; /* or -1 */
	bool quiet;  /* nothing was there, and the channel's descriptor wakes for what comes */
	vb_perf_progress_fn progress;
	void *progress_arg;
	void (*meanwhile)(void *arg); /* or NULL: called now and then while it is measured */
	void *meanwhile_arg;
};

/* The settings of control channels, and the rest, of what the user wants. */
int vb__perf_talk_from(struct vb__perf_talk *talk, struct vb__settings *settings,
		       const struct vb_perf_options *options, struct vb_error *err);

/* Blocks for some seconds at most. */
int vb__perf_say(struct vb__perf_talk *talk, const struct vb__perf_word *word,
		 struct vb_error *err);

/* Ends the talk and frees its channel; the other side hears of it, if it listens. */
void vb__perf_part(struct vb__perf_talk *talk);

/* Tells the client why not; as far as it still listens. */
void vb__perf_refuse(struct vb__perf_talk *talk, const struct vb_error *why);

/* The same without waiting: VB_ERR_AGAIN if it cannot be said yet. */
int vb__perf_try_refuse(struct vb_channel *channel, const struct vb_error *why);

/*
 * 1 and a word, or 0 if there is none: then `quiet`. A REFUSED is an error, with
 * what it says. VB_ERR_EOF: the other side has ended it in good order.
 */
int vb__perf_hear(struct vb__perf_talk *talk, struct vb__perf_word *word, struct vb_error *err);

/* Blocks until there is a word, which must be of this kind. Also ends when somebody wants to stop. */
int vb__perf_await(struct vb__perf_talk *talk, enum vb__perf_word_kind kind, uint64_t deadline_ns,
		   struct vb__perf_word *word, struct vb_error *err);

/* Where the channel goes to, but at another port. */
int vb__perf_peer_address(const struct vb__perf_talk *talk, int family, uint16_t port,
			  struct vb__address *address, struct vb_error *err);

/* VB_ERR_INTERRUPTED if somebody wants to stop. */
int vb__perf_stopped(const struct vb__perf_talk *talk, struct vb_error *err);

#endif
