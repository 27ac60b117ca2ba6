/* SPDX-License-Identifier: Apache-2.0 */
/* Everything of libverbatim. Start reading at channel.h. */
#ifndef VERBATIM_VERBATIM_H
#define VERBATIM_VERBATIM_H

#include <verbatim/channel.h>
#include <verbatim/error.h>
#include <verbatim/options.h>
#include <verbatim/transfer.h>
#include <verbatim/tree.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library that is running: "0.1.0". */
const char *vb_version(void);

#ifdef __cplusplus
}
#endif
#endif
