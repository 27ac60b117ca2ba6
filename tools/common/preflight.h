/* SPDX-License-Identifier: Apache-2.0 */
/* What can be seen to fail before anybody is called, without touching anything. VB_ERR_IO if so. */
#ifndef TOOLS_PREFLIGHT_H
#define TOOLS_PREFLIGHT_H

#include <verbatim/error.h>

/* Can `path` be read? */
int preflight_source(const char *path, struct vb_error *err);

/* Can a file be made at `path`, or what is there be written to? */
int preflight_target(const char *path, struct vb_error *err);

#endif
