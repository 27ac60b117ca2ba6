/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's judgement: pure, from facts to findings. */
#ifndef TOOLS_DOCTOR_H
#define TOOLS_DOCTOR_H

#include "info/facts.h"
#include "info/findings.h"

/* What a channel with default options pins, and what a transfer does in good comfort. */
#define DOCTOR_LEAST_BYTES (UINT64_C(3) << 20)
#define DOCTOR_GOOD_BYTES (UINT64_C(16) << 20)

/* Judges the whole machine. Where there is no RDMA device, what only matters to one is left out. */
void doctor_judge(struct findings *findings, const struct facts *facts);

#endif
