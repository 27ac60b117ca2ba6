/* SPDX-License-Identifier: Apache-2.0 */
/* A stage at another host, as the client knows it. */
#ifndef TOOLS_FAR_STAGE_H
#define TOOLS_FAR_STAGE_H

#include "common/progress.h"
#include "pipe/stage_order.h"
#include "remote/far.h"

struct far_stage {
	const struct stage *stage;
	size_t number; /* from 1 */
	struct far far;
	struct progress *progress; /* where what it tells is shown */

	/* Under far.lock. */
	bool invited, ready, ended;
	struct stage_doors doors;
	struct stage_ending ending;
};

/* Starts its server; `stage` and `number` are set. See far_open. */
int far_stage_open(struct far_stage *stage, const struct arguments *arguments, int news,
		   struct vb_error *err, enum exit_code *code);

void far_stage_order(struct far_stage *stage, const struct stage_order *order);
void far_stage_send_onward(struct far_stage *stage, const struct invitation *invitation);
void far_stage_begin(struct far_stage *stage);

/* What is known by now. */
bool far_stage_has_invited(struct far_stage *stage);
bool far_stage_is_ready(struct far_stage *stage);
bool far_stage_has_ended(struct far_stage *stage);

/* Has it ended badly, or gone without a word? */
bool far_stage_has_failed(struct far_stage *stage);

void far_stage_close(struct far_stage *stage, bool at_once);

#endif
