/* SPDX-License-Identifier: Apache-2.0 */
/* What a listener answered in the wire-up by TCP: its queue pair, or why there is none, in words. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "fabric/verbs/verbs_tcp.h"

static const char nat_hint[] =
	"RDMA goes from device to device, so no address may be translated between them (NAT); "
	"give the devices' own addresses";

static int fail_answer(const struct verbs_ep *ep, enum vb_err code, const char *cause,
		       const char *hint, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = code,
				     .operation = "connect to",
				     .object = ep->base.peer,
				     .cause = cause,
				     .hint = hint,
			     });
}

static int fail_rejected(struct verbs_ep *ep, const struct vb__wireup *answer, struct vb_error *err)
{
	static const char *const causes[] = {
		[VB__WIREUP_NO_REASON] = "the listener said no",
		[VB__WIREUP_NOT_VERSION] =
			"the listener speaks another version of the wire-up by TCP",
		[VB__WIREUP_NOT_DEVICE] = "the address belongs to no RDMA device of the listener's",
		[VB__WIREUP_NOT_TYPE] = "the listener does not serve queue pairs of this type",
		[VB__WIREUP_NOT_LINK] = "the listener's device speaks another link layer",
		[VB__WIREUP_NOT_READY] = "the listener could not set up its queue pair",
		[VB__WIREUP_NOT_YOURS] =
			"the listener sees another address of ours than our device has",
	};
	static const char *const hints[] = {
		[VB__WIREUP_NOT_DEVICE] =
			"give the peer's address on the RDMA network (`rdma link` there)",
		[VB__WIREUP_NOT_READY] = "look at the listener's messages",
		[VB__WIREUP_NOT_YOURS] = nat_hint,
	};
	unsigned reason = answer->reason < sizeof(causes) / sizeof(causes[0]) ? answer->reason : 0;

	memcpy(ep->base.peer_data, answer->data, answer->data_len);
	ep->base.peer_data_len = answer->data_len;
	return fail_answer(ep, VB_ERR_REFUSED, causes[reason], hints[reason], err);
}

static int fail_version(const struct verbs_ep *ep, unsigned theirs, struct vb_error *err)
{
	char cause[120];

	snprintf(cause, sizeof(cause),
		 "the listener speaks version %u of the wire-up by TCP, and this is version %u",
		 theirs, VB__WIREUP_VERSION);
	return fail_answer(ep, VB_ERR_VERSION, cause,
			   "install the same version of Verbatim at both ends", err);
}

static int fail_elsewhere(const struct verbs_ep *ep, const struct vb__wireup *answer,
			  struct vb_error *err)
{
	char cause[120], gid[INET6_ADDRSTRLEN] = "?";

	inet_ntop(AF_INET6, answer->gid, gid, sizeof(gid));
	snprintf(cause, sizeof(cause), "the listener names a queue pair at another address, %s",
		 gid);
	return fail_answer(ep, VB_ERR_PROTOCOL, cause, nat_hint, err);
}

int verbs_tcp_judge(struct verbs_ep *ep, const struct vb__wireup *answer,
		    enum vb__wireup_verdict verdict, struct vb_error *err)
{
	if (verdict == VB__WIREUP_OTHER_VERSION)
		return fail_version(ep, answer->version, err);
	if (verdict == VB__WIREUP_GOOD && answer->kind == VB__WIREUP_REJECT)
		return fail_rejected(ep, answer, err);
	if (verdict != VB__WIREUP_GOOD || answer->kind != VB__WIREUP_REPLY ||
	    answer->qp_type != ep->type || answer->link != ep->tcp.port.link)
		return fail_answer(ep, VB_ERR_REFUSED,
				   "what listens 1000 ports above does not wire up queue pairs",
				   "check the port", err);
	if (!verbs_tcp_is_at(answer, &ep->tcp.to))
		return fail_elsewhere(ep, answer, err);
	memcpy(ep->base.peer_data, answer->data, answer->data_len);
	ep->base.peer_data_len = answer->data_len;
	return 0;
}
