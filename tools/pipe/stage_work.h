/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of one stage, at its host: opens doors, meets its neighbours, runs the command between
 * its two connections, or reads or writes the file at its one.
 *
 * The command's input ends only when everything before it has succeeded; whatever fails, the command
 * is killed before that. Its output ends well only if it exits with 0 and its input was all right.
 */
#ifndef TOOLS_STAGE_WORK_H
#define TOOLS_STAGE_WORK_H

#include "pipe/stage_order.h"

/* Who orders. The functions get `arg` and may block; `await_*` return false when it shall stop. */
struct stage_client {
	void *arg;
	void (*invite)(void *arg, const struct stage_doors *doors);
	bool (*await_onward)(void *arg, struct invitation *invitation);
	/* All connections are made: says so. */
	void (*ready)(void *arg);
	void (*say)(void *arg, const char *text);
	vb_progress_fn progress;
	vb_log_fn log;
	int stop_fd;  /* readable when it shall stop */
	int begin_fd; /* readable when all are ready */
};

/* Blocks until all is over. What came of it is in `ending`. */
void stage_work(const struct stage_order *order, const struct stage_client *client,
		struct stage_ending *ending);

#endif
