/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rdsend over a fabric that flips a bit: in the VB_FAULT_SEND-th block that is sent (1, 2, ...), bit
 * VB_FAULT_BIT of byte VB_FAULT_BYTE; negative: counted from the end of what is sent, -1 being the last.
 * Everything is as it should be until then, hashes too. Linked with --wrap=vb__ep_post.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <verbatim/transfer.h>

#include "fabric/fabric.h"
#include "wire/block.h"
#include "wire/packet.h"

int __real_vb__ep_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err);
int __wrap_vb__ep_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err);

static long setting(const char *name)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : 0;
}

/* Control is a trailer only, and words are shorter than any block that tests send. */
static bool is_block(const struct vb__op *op)
{
	return (op->kind == VB__OP_SEND || op->kind == VB__OP_SEND_IMM) && op->sge_count == 1 &&
	       op->sge[0].len >= VB_BLOCK_MIN + VB__BLOCK_TRAILER;
}

int __wrap_vb__ep_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err)
{
	static atomic_long count;

	if (is_block(op) && ++count == setting("VB_FAULT_SEND")) {
		long at = setting("VB_FAULT_BYTE");
		uint8_t *bytes = op->sge[0].addr;

		bytes[at < 0 ? (long)op->sge[0].len + at : at] ^=
			(uint8_t)(1u << setting("VB_FAULT_BIT"));
	}
	return __real_vb__ep_post(ep, op, err);
}
