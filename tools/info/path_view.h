/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to a peer, and what else was considered. */
#ifndef TOOLS_PATH_VIEW_H
#define TOOLS_PATH_VIEW_H

#include <stdio.h>
#include <verbatim/device.h>

void path_view_print(const struct vb_path *paths, FILE *out);
void path_view_json(const struct vb_path *paths, FILE *out);

#endif
