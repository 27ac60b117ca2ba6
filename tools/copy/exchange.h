/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges: one try of a job, between this host and a far side, or between two. */
#ifndef TOOLS_EXCHANGE_H
#define TOOLS_EXCHANGE_H

#include "copy/copier.h"

/*
 * Does it once, the far sides being open: directly, or `tunnelled` through ssh. What came of it is
 * in `ending`. False if a far side is in no state to be ordered about any more.
 */
bool exchange(struct copier *copier, bool tunnelled, struct ending *ending);

#endif
