/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints that are nothing but their books. */
#include "paper_fabrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "core/clock.h"
#include "fabric/ofi/ofi_providers.h"
#include "fabric/verbs/verbs_system.h"

struct paper_answer paper[PAPER_WAYS];
int paper_bell = -1;
bool paper_deaf, paper_nonsense;
unsigned paper_callers, paper_refusals;

struct paper_ep {
	struct vb__ep base;
	struct paper_answer *answer;
};

void paper_reset(void)
{
	memset(paper, 0, sizeof(paper));
	paper_deaf = paper_nonsense = false;
	paper_callers = paper_refusals = 0;
}

static int answer_with(enum vb_err code, const char *cause, struct vb_error *err)
{
	if (code == VB_OK)
		return 0;
	return vb__fail(err, &(struct vb__failure){
				     .code = code, .operation = "connect to", .cause = cause });
}

static int open_on(const struct vb__fabric *fabric, enum paper_way way,
		   const struct vb__ep_attr *attr, uint64_t deadline_ns, struct vb__ep **out,
		   struct vb_error *err)
{
	struct paper_answer *answer = &paper[way];
	struct paper_ep *ep;

	if (!answer->tries++)
		answer->for_ns = deadline_ns - vb__now_ns();
	if (answer->open != VB_OK)
		return answer_with(answer->open, answer->cause, err);
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return answer_with(VB_ERR_NOMEM, "calloc", err);
	ep->answer = answer;
	ep->base = (struct vb__ep){
		.fabric = fabric,
		.wait_fd = eventfd(0, EFD_CLOEXEC),
		.caps = VB__CAP_ANY_BUFFER,
		.send_depth = attr->send_depth,
		.recv_depth = attr->recv_depth,
		.sge = attr->sge,
		.max_bytes = 1u << 20,
		.wireup = way == PAPER_TCP  ? VB_WIREUP_TCP
			  : way == PAPER_CM ? VB_WIREUP_CM
					    : VB_WIREUP_AUTO,
		.device = "paper0",
		.peer = "the peer",
	};
	*out = &ep->base;
	return 0;
}

static int open_verbs(const struct vb__ep_attr *attr, const struct vb__address *peer,
		      uint64_t deadline_ns, struct vb__ep **ep, struct vb_error *err)
{
	enum paper_way way = attr->settings->wireup == VB_WIREUP_TCP ? PAPER_TCP : PAPER_CM;

	(void)peer;
	return open_on(&vb__verbs_fabric, way, attr, deadline_ns, ep, err);
}

static int open_ofi(const struct vb__ep_attr *attr, const struct vb__address *peer,
		    uint64_t deadline_ns, struct vb__ep **ep, struct vb_error *err)
{
	(void)peer;
	return open_on(&vb__ofi_fabric, PAPER_OFI, attr, deadline_ns, ep, err);
}

/* The listener grants what it is asked for, or is too busy. */
static void hear_listener(struct vb__ep *ep, const void *data, size_t len,
			  const struct paper_answer *answer)
{
	bool refuses = answer->connect != VB_OK;
	struct vb__hello hello;

	vb__hello_decode(&hello, data, len);
	hello.kind = refuses ? VB__HELLO_REFUSE : VB__HELLO_ACCEPT;
	hello.reason = !refuses		? VB__REFUSAL_NONE
		       : answer->reason ? answer->reason
					: VB__REFUSAL_BUSY;
	memset(hello.token, 0, sizeof(hello.token));
	vb__hello_encode(ep->peer_data, &hello);
	ep->peer_data_len = VB__HELLO_BYTES;
}

static int connect_to(struct vb__ep *ep, const void *data, size_t len, uint64_t deadline_ns,
		      struct vb_error *err)
{
	const struct paper_answer *answer = ((struct paper_ep *)ep)->answer;

	(void)deadline_ns;
	if (answer->heard || answer->connect == VB_OK)
		hear_listener(ep, data, len, answer);
	if (answer->connect == VB_OK)
		vb__ep_up(ep);
	return answer_with(answer->connect, answer->cause, err);
}

static void close_ep(struct vb__ep *ep)
{
	close(ep->wait_fd);
	free(ep);
}

static int post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err)
{
	(void)ep, (void)op, (void)err;
	return 0;
}

static int poll_none(struct vb__ep *ep, struct vb__completion *done, int max)
{
	(void)ep, (void)done, (void)max;
	return 0;
}

static int arm(struct vb__ep *ep, bool arrivals_only)
{
	(void)ep, (void)arrivals_only;
	return 0;
}

static void disconnect(struct vb__ep *ep)
{
	vb__ep_down_closed(ep);
}

static void wake(struct vb__ep *ep)
{
	(void)ep;
}

/* ---- Listening ---- */

static int listen_on(const struct vb__fabric *fabric, enum paper_way way,
		     const struct vb__address *at, struct vb__pep **out, struct vb_error *err)
{
	struct vb__pep *pep;

	if (paper[way].listen != VB_OK)
		return answer_with(paper[way].listen, paper[way].cause, err);
	pep = calloc(1, sizeof(*pep));
	if (!pep)
		return answer_with(VB_ERR_NOMEM, "calloc", err);
	*pep = (struct vb__pep){ .fabric = fabric,
				 .wait_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
				 .port = vb__address_port(at),
				 .device = "paper0" };
	*out = pep;
	return 0;
}

static int listen_verbs(const struct vb__settings *settings, const struct vb__address *at,
			struct vb__pep **pep, struct vb_error *err)
{
	int rc = listen_on(&vb__verbs_fabric, PAPER_CM, at, pep, err);

	(void)settings;
	if (rc == 0)
		paper_bell = (*pep)->wait_fd;
	return rc;
}

static int listen_ofi(const struct vb__settings *settings, const struct vb__address *at,
		      struct vb__pep **pep, struct vb_error *err)
{
	(void)settings;
	return listen_on(&vb__ofi_fabric, PAPER_OFI, at, pep, err);
}

static int next_request(struct vb__pep *pep, struct vb__request **request, struct vb_error *err)
{
	static const struct vb__hello asking = { .kind = VB__HELLO_OPEN,
						 .version = VB__PROTOCOL_VERSION,
						 .max_message = 4096,
						 .depth = 2 };
	eventfd_t rung;

	if (!paper_deaf)
		eventfd_read(pep->wait_fd, &rung);
	if (!paper_callers)
		return 0;
	*request = calloc(1, sizeof(**request));
	if (!*request)
		return answer_with(VB_ERR_NOMEM, "calloc", err);
	(*request)->fabric = pep->fabric;
	if (!paper_nonsense) {
		vb__hello_encode((*request)->data, &asking);
		(*request)->data_len = VB__HELLO_BYTES;
	}
	paper_callers--;
	return 1;
}

static int accept_open(struct vb__request *request, const struct vb__ep_attr *attr,
		       struct vb__ep **ep, struct vb_error *err)
{
	free(request);
	return open_on(&vb__verbs_fabric, PAPER_CM, attr, UINT64_MAX, ep, err);
}

static int say_yes(struct vb__ep *ep, const void *data, size_t len, struct vb_error *err)
{
	(void)data, (void)len, (void)err;
	ep->state = VB__EP_CONNECTING;
	return 0;
}

static void say_no(struct vb__request *request, const void *data, size_t len)
{
	(void)data, (void)len;
	paper_refusals++;
	free(request);
}

static int pep_arm(struct vb__pep *pep)
{
	(void)pep;
	return 0;
}

static void pep_close(struct vb__pep *pep)
{
	close(pep->wait_fd);
	free(pep);
}

static enum vb_wireup second_wireup(const struct vb__settings *settings)
{
	return settings->wireup == VB_WIREUP_AUTO ? VB_WIREUP_TCP : VB_WIREUP_AUTO;
}

const struct vb__fabric vb__verbs_fabric = {
	.name = "verbs",
	.id = VB_FABRIC_VERBS,
	.qp_types = 1u << VB__QP_RC,
	.second_wireup = second_wireup,
	.open = open_verbs,
	.connect = connect_to,
	.close = close_ep,
	.listen = listen_verbs,
	.next_request = next_request,
	.pep_arm = pep_arm,
	.accept_open = accept_open,
	.accept = say_yes,
	.reject = say_no,
	.pep_close = pep_close,
	.post = post,
	.poll = poll_none,
	.arm = arm,
	.disconnect = disconnect,
	.wake = wake,
};

const struct vb__fabric vb__ofi_fabric = {
	.name = "ofi",
	.id = VB_FABRIC_OFI,
	.qp_types = 1u << VB__QP_RC,
	.open = open_ofi,
	.connect = connect_to,
	.close = close_ep,
	.listen = listen_ofi,
	.next_request = next_request,
	.pep_arm = pep_arm,
	.pep_close = pep_close,
	.post = post,
	.poll = poll_none,
	.arm = arm,
	.disconnect = disconnect,
	.wake = wake,
};

/* ---- A machine that has nothing ---- */

int verbs_devices_read(struct vb_device **devices, bool with_abilities, struct vb_error *err)
{
	(void)with_abilities, (void)err;
	*devices = NULL;
	return 0;
}

enum vb__proof verbs_prove(void *arg, struct vb_path *path, const struct vb__ip *peer)
{
	(void)arg, (void)path, (void)peer;
	return VB__PROOF_NOT_TRIED;
}

int ofi_providers_read(struct vb_provider **providers, struct vb_error *err)
{
	(void)err;
	*providers = NULL;
	return 0;
}
