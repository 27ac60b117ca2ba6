/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A crew: the threads that carry the blocks of one transfer, and the thread
 * that conducts them: it alone talks to the peer. Whatever fails first, here
 * or there, ends the work of all.
 */
#ifndef VB_TRANSFER_CREW_H
#define VB_TRANSFER_CREW_H

#include <pthread.h>

#include "transfer/codec.h"
#include "transfer/session_state.h"

struct vb__crew {
	struct vb_session *session;
	void (*work)(struct vb__crew *crew, unsigned number);
	int cancel_fd; /* readable: give up */
	int done_fd;   /* readable: a worker is done, or there is something to say */

	/* Or NULL: the next note to say, see sink.h; and what else there is to show. */
	size_t (*speak)(struct vb__crew *crew, void *note, size_t room);
	void (*progress)(struct vb__crew *crew, struct vb_progress *progress);
	pthread_t threads[VB_WORKERS_MAX + 1]; /* and one that stores */
	unsigned thread_count;
	uint64_t start_ns; /* of the work itself, once the rails are up; 0: they are not */

	pthread_mutex_t lock; /* for all below */
	pthread_cond_t changed;
	unsigned numbered, working;
	bool failed;
	struct vb_error failure;
	struct vb__sum sum; /* of what this side has sent or stored */
	uint64_t hole_bytes, wire_bytes, pack_ns;

	/* The conductor's own. */
	uint64_t progress_ns, telling_ns; /* when it is time for the next */
	bool silent;			  /* there was nothing more to say */
};

/* On failure, which the peer is told, there is nothing to close. */
int vb__crew_open(struct vb__crew *crew, struct vb_session *session, struct vb_error *err);

/* Starts the workers, with all signals blocked. If one cannot be started, the others are told to give up. */
int vb__crew_start(struct vb__crew *crew, unsigned count,
		   void (*work)(struct vb__crew *crew, unsigned number), struct vb_error *err);

/* For workers, and anybody: something failed, all give up. The first failure stays. */
void vb__crew_fail(struct vb__crew *crew, const struct vb_error *failure);
bool vb__crew_failed(struct vb__crew *crew);

/* For workers: a block is sent or stored, by this message. */
void vb__crew_count(struct vb__crew *crew, const struct vb__block *block,
		    const struct vb__message *message);

/* Says all notes that there are to say, however long that takes. Returns the failure. */
int vb__crew_speak_out(struct vb__crew *crew);

/* Conducts until `over` or a failure, which is returned. */
int vb__crew_conduct(struct vb__crew *crew, bool (*over)(const struct vb__crew *crew));
bool vb__crew_all_done(const struct vb__crew *crew);

/*
 * Has one worker do something, while the peer is listened to and all others are done. Returns the failure; then it
 * may still be at it, until the crew has concluded.
 */
int vb__crew_do(struct vb__crew *crew, void (*work)(struct vb__crew *crew, unsigned number));

/* Returns the failure, or 0. First the peer is told, or asked for a better reason; then all workers are waited for. */
int vb__crew_conclude(struct vb__crew *crew, struct vb_error *err);

void vb__crew_report(struct vb__crew *crew, struct vb_report *report);
void vb__crew_close(struct vb__crew *crew);

#endif
