/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many descriptors we may have. Whoever listens needs one and more for each caller, strangers
 * among them; programs we start may be made for the lower limit, and get that.
 */
#ifndef TOOLS_DESCRIPTORS_H
#define TOOLS_DESCRIPTORS_H

#include <stdbool.h>

/* As many as we may; where that fails it stays as it is. */
void descriptors_raise(void);

/*
 * Back to what it was before that, for a program that is about to be started; then raise it again.
 * False, and nothing happens, if it was not raised.
 */
bool descriptors_lower(void);

#endif
