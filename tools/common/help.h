/* SPDX-License-Identifier: Apache-2.0 */
/* The help, made from the table of flags. */
#ifndef TOOLS_HELP_H
#define TOOLS_HELP_H

#include <stdio.h>

#include "common/arguments.h"

/* Within 80 columns. */
void help_print(enum tool tool, FILE *out);

#endif
