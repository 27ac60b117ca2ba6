/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trying a path in earnest: `rdinfo --check HOST` talks to an `rdinfo --serve` there, over each fabric by
 * itself. Verbs is served at a port, libfabric at the one after it: an iWARP device takes its ports from TCP.
 *
 * A request is a message whose first 8 bytes are its kind and a number, both 32 bits, little-endian:
 * SWALLOW (no answer), ASK (answered by 8 bytes of the same), GIVE (answered by as many bytes as the number says).
 */
#ifndef TOOLS_TRIAL_H
#define TOOLS_TRIAL_H

#include <stdbool.h>
#include <stdint.h>
#include <verbatim/channel.h>

#include "info/findings.h"

#define TRIAL_PORT "7470"
#define TRIAL_STEPS 6
#define TRIAL_LARGEST (256u << 10)

enum trial_request {
	TRIAL_SWALLOW = 1,
	TRIAL_ASK,
	TRIAL_GIVE,
};

/* What came of messages of one size. */
struct trial_step {
	uint32_t bytes;
	bool got_there, came_back; /* a single one */
	uint64_t rate;		   /* of a burst to the peer, bytes per second; 0: there was none */
	struct vb_error failed;	   /* VB_OK: nothing did */
};

struct trial {
	enum vb_fabric fabric;
	bool pointless;		    /* the path says that this fabric does not lead there, */
	char reason[320];	    /* and why */
	struct vb_error unmade;	    /* the connection could not be made; VB_OK: it could */
	char description[400];	    /* of the connection */
	double median_us, worst_us; /* there and back, 8 bytes; 0: no answer */
	struct trial_step step[TRIAL_STEPS];
	unsigned steps; /* that were taken: it ends with the first that fails; bursts come last */
};

/* Connects and tries. The port is that of verbs. */
void trial_run(struct trial *trial, const char *host, const char *port,
	       const struct vb_options *options);

/* Pure: what the trial tells, in lines. */
void trial_judge(struct findings *findings, const struct trial *trial, const char *host);

/* Serves until an interrupt. Returns 0, or -1 after saying why nothing can be served. */
int trial_serve(const char *bind, const char *port, const struct vb_options *options, bool as_json);

/* Pure: the first 8 bytes of a request. */
#define TRIAL_HEAD 8u
void trial_head_put(uint8_t to[TRIAL_HEAD], uint32_t kind, uint32_t number);
void trial_head_get(const uint8_t from[TRIAL_HEAD], uint32_t *kind, uint32_t *number);

/* The port after this one, for libfabric; -1 if it is no number with one after it. */
int trial_next_port(const char *port, char to[8]);

#endif
