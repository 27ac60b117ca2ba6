/* SPDX-License-Identifier: Apache-2.0 */
/* `rdcp --server`: the far side of a copy, which ssh has started. */
#ifndef TOOLS_COPY_SERVER_H
#define TOOLS_COPY_SERVER_H

/* Takes orders from stdin until it ends. Returns the exit code. */
int copy_server_run(void);

#endif
