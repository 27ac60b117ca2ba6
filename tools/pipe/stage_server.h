/* SPDX-License-Identifier: Apache-2.0 */
/* `rdpipe --server`: one stage of a pipeline at its host, which ssh has started. */
#ifndef TOOLS_STAGE_SERVER_H
#define TOOLS_STAGE_SERVER_H

/* Takes an order from stdin and carries it out. Returns the exit code. */
int stage_server_run(void);

#endif
