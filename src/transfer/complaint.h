/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Complaints: what OpenSSL has put into the thread's error queue, in our codes
 * and words. Each call empties the queue, for whoever looks into it next.
 */
#ifndef VB_TRANSFER_COMPLAINT_H
#define VB_TRANSFER_COMPLAINT_H

#include <stdbool.h>

#include "core/failure.h"

/* A call failed that has nothing to do with the peer. Returns the code. */
int vb__complaint_fail(struct vb_error *err, const char *operation);

/*
 * TLS with the peer failed. Fills in the code, the native value, and cause and hint where we
 * have words of our own; else the cause is left NULL, to be made of the returned reason.
 */
const char *vb__complaint_judge(struct vb__failure *failure, bool proven);

/* Cause and hint for VB_ERR_KEY and VB_ERR_VERSION; nothing for other codes. */
void vb__complaint_explain(struct vb__failure *failure);

#endif
