/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/fabric.h"
#include "harness.h"
int __real_vb__ep_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err);
int __wrap_vb__ep_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err);
int __wrap_vb__ep_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err)
{
	return __real_vb__ep_post(ep, op, err);
}
const struct test crew_tests[] = { { NULL } };
