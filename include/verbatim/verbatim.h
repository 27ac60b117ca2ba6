/* SPDX-License-Identifier: Apache-2.0 */
/* Everything of libverbatim. Start reading at channel.h. */
#ifndef VERBATIM_VERBATIM_H
#define VERBATIM_VERBATIM_H

#include <verbatim/channel.h>
#include <verbatim/device.h>
#include <verbatim/dgram.h>
#include <verbatim/error.h>
#include <verbatim/memory.h>
#include <verbatim/options.h>
#include <verbatim/perf.h>
#include <verbatim/server.h>
#include <verbatim/stream.h>
#include <verbatim/transfer.h>
#include <verbatim/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that is running: "0.1.0". */
const char *vb_version(void);

/*
 * Begins to load, in a thread of its own, what connecting and listening will need: the first time
 * that takes up to a third of a second. Worth a call where something else has to be waited for anyway.
 * exit(3) waits for it.
 */
void vb_prepare(void);

#ifdef __cplusplus
}
#endif
#endif
