/* SPDX-License-Identifier: Apache-2.0 */
/* What two sides do with each other, from beginning to end, over libfabric on loopback. */
#ifndef TORTURE_LIVES_H
#define TORTURE_LIVES_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <verbatim/verbatim.h>

/* One side. From its first failed call on it only ends what it has begun. */
struct side {
	struct life *life;
	int rc;		     /* of that call */
	struct vb_error err; /* and its words */
	bool ending;	     /* all went well until it began to close */
};

struct life {
	const char *name;
	void (*victim)(struct side *side); /* whose calls fail */
	void (*peer)(struct side *side);   /* in a thread of its own */

	sem_t listening;  /* whoever listens does, or never will */
	int port;	  /* 0: it does not */
	atomic_bool over; /* the victim has ended */
};

extern const struct life stream_lives[2], memory_lives[2], server_lives[1];

/* The first failure of this side; returns whether it can go on. */
bool goes_on(struct side *side, int rc, const struct vb_error *err);

/* All that is left is to close. */
void begins_to_end(struct side *side);

/* As any failure, for what came otherwise than it should. */
bool expects(struct side *side, bool as_it_should_be, const char *what);

extern const struct vb_options life_options;
void now_listening(struct side *side, int port);

/* The port to connect to as text; false if there is none. */
bool port_there(struct side *side, char port[8]);

/* The peer's connecting: again and again, as the victim may fail to let it in. False if the victim has ended. */
bool try_again(struct side *side);

/* The peer's accepting: until somebody comes or the victim has ended, which is true then. */
bool nobody_came(struct side *side, int fd);

#endif
