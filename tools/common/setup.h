/* SPDX-License-Identifier: Apache-2.0 */
/* From the command line to everything that a session needs. */
#ifndef TOOLS_SETUP_H
#define TOOLS_SETUP_H

#include "common/arguments.h"
#include "common/key.h"
#include "common/outcome.h"
#include "common/progress.h"

/*
 * Prepares console, signals and `arguments->options`, looks at the files, gets the key; `key` and
 * `progress` must outlive the options. Fails with the details in `outcome`.
 */
int setup(struct arguments *arguments, struct key *key, struct progress *progress,
	  struct outcome *outcome);

/* What the library is to log. What was chosen the tool tells itself, by what it asks the library. */
enum vb_log_level setup_log_level(int verbosity);

#endif
