/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts: what came of a pipeline, told to the user in words or in JSON. */
#ifndef TOOLS_VERDICT_H
#define TOOLS_VERDICT_H

#include "pipe/conductor.h"

/* After conductor_run: tells, and returns the exit code. */
enum exit_code verdict_tell(struct conductor *conductor);

/*
 * The pure part: how much an error tells of the cause. Most does what began where it was found, least
 * that somebody wanted it to stop.
 */
int verdict_weight(const struct vb_error *err, bool own);

#endif
