/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both fabrics as the connector sees them, with no network behind: each way
 * answers as the test wants, and remembers how often and for how long it was
 * tried. What is posted never completes.
 */
#ifndef VB_TESTS_PAPER_FABRICS_H
#define VB_TESTS_PAPER_FABRICS_H

#include "fabric/fabric.h"
#include "wire/hello.h"

enum paper_way {
	PAPER_CM,
	PAPER_TCP,
	PAPER_OFI,
	PAPER_WAYS,
};

struct paper_answer {
	enum vb_err open;	 /* what looking for a device comes to */
	enum vb_err connect;	 /* and what connecting does */
	enum vb_err listen;	 /* and what listening does: the first way of each fabric counts */
	const char *cause;	 /* of each */
	bool heard;		 /* it is the listener itself that refuses */
	enum vb__refusal reason; /* then; none given: busy */

	unsigned tries;	 /* that were made */
	uint64_t for_ns; /* the time that the first one was given */
};
extern struct paper_answer paper[PAPER_WAYS];

/*
 * So many ask a listener of verbs to connect, politely or in no words of ours. None of those that are accepted ever comes,
 * and how many were refused is counted.
 */
extern unsigned paper_callers, paper_refusals;
extern bool paper_nonsense;

/* What wakes that listener. */
extern int paper_bell;	/* an eventfd */
extern bool paper_deaf; /* it stays, whatever is done */

/* All ways connect; nobody has tried. */
void paper_reset(void);

#endif
