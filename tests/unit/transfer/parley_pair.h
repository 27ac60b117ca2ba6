/* SPDX-License-Identifier: Apache-2.0 */
/* Two parleys, or a parley and a stranger, at the two ends of a channel in memory. */
#ifndef VB_PARLEY_PAIR_H
#define VB_PARLEY_PAIR_H

#include <stdbool.h>

#include "core/failure.h"
#include "mock_channel.h"
#include "suite.h"
#include "transfer/parley.h"

/* One end of it. */
struct end {
	struct vb_channel channel;
	struct vb__parley *parley;
	int proof; /* what the last prove returned */
	struct vb_error err;
};

/* Index 0 is the side that connected, 1 the one that accepted. */
enum {
	CLIENT,
	SERVER
};
struct pair {
	struct end end[2];
};

/* Made of "the key" and "another key"; stretched once, because that is slow. */
extern struct vb__secret right_secret, wrong_secret;
int make_secrets(void **state);

void pair_open(struct pair *pair, const struct vb__secret *client, const struct vb__secret *server);

/* Lets both prove, in turns, until neither gets further. True if both have. */
bool pair_prove(struct pair *pair);

/* Both of the above with the right secret, which must succeed. */
void pair_agree(struct pair *pair);

/* The proof of one end went wrong with this code; the story is told, and told again. */
void assert_unproven(struct end *end, enum vb_err code);

void assert_says(struct end *end, const void *words, size_t len);
void assert_hears(struct end *end, const void *words, size_t len);
void assert_hears_nothing(struct end *end, enum vb_err code);

/* Derives 32 bytes, of one end. */
void pair_derive(struct end *end, const char *label, uint32_t number, uint8_t to[32]);

void pair_close(struct pair *pair);

#endif
