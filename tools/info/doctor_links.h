/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's judgement of one port: state, GIDs, MTU, speed. Pure. */
#ifndef TOOLS_DOCTOR_LINKS_H
#define TOOLS_DOCTOR_LINKS_H

#include "info/facts.h"
#include "info/findings.h"

void doctor_judge_link(struct findings *findings, const struct link_fact *link);

#endif
