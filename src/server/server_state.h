/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a server, for the files of this folder. */
#ifndef VB_SERVER_STATE_H
#define VB_SERVER_STATE_H

#include <pthread.h>

#include <verbatim/server.h>

#include "core/settings.h"

enum vb__client_state {
	/* Not clients, but they take their turns like them: the listener and the pools. */
	VB__CLIENT_DOOR = 0,
	VB__CLIENT_POOL,

	VB__CLIENT_HERE,
	VB__CLIENT_LEAVING, /* the farewell is under way */
	VB__CLIENT_GONE,    /* to be freed in its next turn */
};

struct vb__client {
	struct vb_server *server;
	struct vb_channel *channel;
	struct vb__pool *pool; /* of VB__CLIENT_POOL only */
	enum vb__client_state state;
	uint64_t deadline_ns; /* LEAVING: not longer than that */
	void *user;
	struct vb__client *next, *previous; /* of all clients, or of all pools */
	struct vb__client *next_turn;
	bool queued;
};

/* Those who may have something to tell, in the order of their turns. */
struct vb__queue {
	pthread_mutex_t lock;
	struct vb__client *first, *last;
	unsigned count;
	int wake;   /* readable when another thread than the one that waits has queued somebody */
	bool woken; /* it is */
};

/*
 * A turn is worth one event, and whoever had one goes to the end of the queue.
 * Only the queue is shared with other threads.
 */
struct vb_server {
	struct vb__settings settings;
	uint32_t max_clients, shared_receives;
	struct vb_listener *listener;
	struct vb__pool *pools;
	int epoll;

	struct vb__queue queue;
	unsigned turns_left; /* until the descriptors are looked at again */

	struct vb__client door;
	struct vb__client *pool_turns;
	struct vb__client *clients;
	unsigned present, here;	  /* clients that there are; that have not left */
	struct vb__client *shown; /* whose message the application looks at */
};

/* ---- queue.c ---- */

int vb__queue_open(struct vb__queue *queue, struct vb_error *err);
void vb__queue_close(struct vb__queue *queue);

/* At its end, unless it stands there already. */
void vb__queue_add(struct vb__queue *queue, struct vb__client *client);

/* The same, by a thread that need not be the one that waits. */
void vb__queue_call(struct vb__queue *queue, struct vb__client *client);

/* The first one, or NULL. */
struct vb__client *vb__queue_next(struct vb__queue *queue);
void vb__queue_remove(struct vb__queue *queue, struct vb__client *client);

/* `wake` was readable and has been seen. */
void vb__queue_woken(struct vb__queue *queue);

/* ---- client.c ---- */

/* What it has to tell, if anything: 1 and the event, 0, or an error of the listener. */
int vb__client_turn(struct vb__client *client, struct vb_server_event *event, struct vb_error *err);

/* Begins the farewell, which goes on in its turns. */
void vb__client_leave(struct vb__client *client, uint32_t within_ms);

/* Frees it at once. */
void vb__client_destroy(struct vb__client *client);

#endif
