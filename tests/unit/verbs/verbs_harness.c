/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints on the mocked device. */
#include "verbs_harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fabric/verbs/verbs_port.h"

struct vb__settings harness_settings;
struct vb__ep_attr harness_attr;
unsigned harness_teardown_from;
bool harness_without_cm;

static uint8_t memory[4096];

static char log_lines[64][256];
static unsigned log_count;

static void keep_line(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	if (log_count == ARRAY_SIZE(log_lines))
		mock_complain("endless log: %s", line);
	else
		snprintf(log_lines[log_count++], sizeof(log_lines[0]), "%s", line);
}

int __wrap_verbs_preflight(const char *root, bool cm, struct vb_error *err);

/* This machine need not have any RDMA. */
int __wrap_verbs_preflight(const char *root, bool cm, struct vb_error *err)
{
	(void)root;
	if (!cm || !harness_without_cm)
		return 0;
	return vb__fail(err, &(struct vb__failure){ .code = VB_ERR_ACCESS,
						    .object = "/dev/infiniband/rdma_cm",
						    .cause = "it is not there" });
}

int harness_start(void **state)
{
	(void)state;
	mock_verbs_reset();
	verbs_ports_forget();
	harness_teardown_from = 0;
	harness_without_cm = false;
	log_count = 0;
	harness_settings = (struct vb__settings){
		.wireup = VB_WIREUP_CM,
		.peer_timeout_ms = 10000,
		.qp = { .retries = 6, .rnr_retries = 7, .min_rnr_timer = 12, .reads = 16 },
		.log = { .write = keep_line, .level = VB_LOG_DEBUG },
	};
	harness_attr = (struct vb__ep_attr){
		.send_depth = 8, .recv_depth = 4, .sge = 2, .settings = &harness_settings
	};
	return 0;
}

int harness_end(void **state)
{
	const char *complaint = mock_complaint(), *leak = mock_leak(),
		   *unlawful = harness_unlawful();

	(void)state;
	if (complaint)
		print_error("misuse: %s\n", complaint);
	if (leak)
		print_error("leaked: %s\n", leak);
	if (unlawful)
		print_error("torn down out of order: %s\n", unlawful);
	return complaint || leak || unlawful ? -1 : 0;
}

struct vb__address harness_peer(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(MOCK_PORT) };
	struct vb__address peer;

	inet_pton(AF_INET, "10.0.0.2", &sa.sin_addr);
	vb__address_from(&peer, (struct sockaddr *)&sa);
	return peer;
}

uint64_t harness_deadline(void)
{
	return vb__now_ns() + vb__ms(50);
}

struct vb__ep *harness_open(void)
{
	struct vb__address peer = harness_peer();
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep = NULL;
	int rc =
		vb__ep_open(&vb__verbs_fabric, &harness_attr, &peer, harness_deadline(), &ep, &err);

	if (rc)
		fail_msg("open: %s: %s", err.operation, err.cause);
	return ep;
}

struct vb__ep *harness_connect(void)
{
	struct vb__ep *ep = harness_open();
	struct vb_error err = { .code = VB_OK };

	if (vb__ep_connect(ep, "hi", 3, harness_deadline(), &err) != 0)
		fail_msg("connect: %s: %s", err.operation, err.cause);
	return ep;
}

struct vb__pep *harness_listen(void)
{
	struct vb__address at = harness_peer();
	struct vb_error err = { .code = VB_OK };
	struct vb__pep *pep = NULL;

	if (vb__pep_open(&vb__verbs_fabric, &harness_settings, &at, &pep, &err) != 0)
		fail_msg("listen: %s: %s", err.operation, err.cause);
	return pep;
}

struct vb__ep *harness_request(struct vb__pep *pep)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__request *request;
	struct vb__ep *ep = NULL;

	mock_connect_request(((struct verbs_pep *)pep)->cm.id, "hi", 3);
	assert_int_equal(vb__pep_next(pep, &request, &err), 1);
	if (vb__ep_accept_open(request, &harness_attr, &ep, &err) != 0)
		fail_msg("accept_open: %s: %s", err.operation, err.cause);
	return ep;
}

static struct vb__mr *memory_of(struct vb__ep *ep, struct vb_error *err)
{
	struct vb__mr *mr = ep->mrs;

	if (!mr)
		vb__mr_open(ep, memory, sizeof(memory), VB__ACCESS_LOCAL, &mr, err);
	return mr;
}

int harness_post(struct vb__ep *ep, enum vb__op_kind kind, uint64_t id, size_t len,
		 struct vb_error *err)
{
	struct vb_error unwanted = { .code = VB_OK };
	struct vb_error *e = err ? err : &unwanted;
	struct vb__mr *mr = memory_of(ep, e);
	struct vb__sge sge = { .addr = memory, .len = len, .mr = mr };
	struct vb__op op = { .kind = kind, .id = id, .sge = &sge, .sge_count = 1 };
	int rc = mr ? vb__ep_post(ep, &op, e) : (int)e->code;

	if (rc && !err)
		fail_msg("post: %s: %s", unwanted.operation, unwanted.cause);
	return rc;
}

int harness_drain(struct vb__ep *ep, struct vb__completion *done, int max)
{
	int n = 0;

	for (int i = 0; i < 200 && ep->outstanding && n < max; i++)
		n += vb__ep_poll(ep, done + n, max - n);
	return n;
}

bool harness_arm(struct vb__ep *ep)
{
	for (int i = 0; i < 10; i++)
		if (vb__ep_arm(ep) == 0)
			return true;
	return false;
}

void harness_cm_event(struct vb__ep *ep, enum rdma_cm_event_type event, int status)
{
	mock_cm_event(harness_inside(ep)->cm.id,
		      &(struct mock_answer){ .event = event, .status = status });
}

bool harness_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

struct verbs_ep *harness_inside(struct vb__ep *ep)
{
	return (struct verbs_ep *)ep;
}

struct ibv_qp *harness_qp(struct vb__ep *ep)
{
	return harness_inside(ep)->qp;
}

static int rank_of(const char *call)
{
	static const char *const law[] = {
		"ibv_ack_cq_events", "rdma_destroy_qp", "ibv_destroy_srq",
		"ibv_dereg_mr",	     "ibv_destroy_cq",	"ibv_destroy_comp_channel",
		"ibv_dealloc_pd",    "rdma_destroy_id",
	};

	if (!strcmp(call, "ibv_destroy_qp")) /* without rdma_cm */
		return rank_of("rdma_destroy_qp");
	for (unsigned i = 0; i < ARRAY_SIZE(law); i++)
		if (!strcmp(call, law[i]))
			return (int)i;
	return -1;
}

const char *harness_unlawful(void)
{
	int reached = 0;

	for (unsigned i = harness_teardown_from; i < mock_calls(); i++) {
		const char *call = mock_call_at(i);
		int rank = rank_of(call);

		if (!strcmp(call, "rdma_destroy_event_channel") ||
		    !strcmp(call, "ibv_close_device"))
			reached = 0; /* the end of one endpoint or listener */
		if (!strcmp(call, "ibv_destroy_srq"))
			reached = 0; /* the end of a pool begins; the mock knows its members */
		if (rank < 0)
			continue;
		if (rank < reached)
			return call;
		reached = rank;
	}
	return NULL;
}

bool harness_names(const struct vb_error *err, const char *call)
{
	return err->operation[0] && !strncmp(err->operation, call, strlen(err->operation));
}

bool harness_logged(const char *call, int errnum)
{
	for (unsigned i = 0; i < log_count; i++)
		if (strstr(log_lines[i], call) && strstr(log_lines[i], strerror(errnum)))
			return true;
	return false;
}

int harness_told_errno(const char *call, int errnum)
{
	if (!strcmp(call, "calloc"))
		return ENOMEM;
	return strcmp(call, "ibv_poll_cq") != 0 ? errnum : EIO;
}

void harness_check_told(unsigned n, const char *call, int errnum, const struct vb_error *err)
{
	int told = harness_told_errno(call, errnum);

	if ((harness_names(err, call) && err->native == told) || harness_logged(call, told))
		return;
	for (unsigned i = 0; i < log_count; i++)
		print_error("logged: %s\n", log_lines[i]);
	fail_msg("call %u: the failure of %s is told neither by the error nor by the log", n, call);
}

bool harness_lock_without_limit(bool may)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	const uint32_t bit = 1u << CAP_IPC_LOCK;

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	if (may && !(data[0].permitted & bit))
		return false;
	data[0].effective = may ? data[0].effective | bit : data[0].effective & ~bit;
	assert_int_equal(syscall(SYS_capset, &header, data), 0);
	return true;
}

void harness_limit_memlock(void)
{
	harness_lock_without_limit(false);
	mock_memlock_bytes = 64 * 1024;
}

void assert_contains(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("\"%s\" does not say \"%s\"", text, part);
}

void assert_tells_memlock(const struct vb_error *err, const char *call, const char *need)
{
	assert_int_equal(err->code, VB_ERR_MEMLOCK);
	assert_int_equal(err->native, ENOMEM);
	assert_string_equal(err->operation, call);
	assert_contains(err->cause, "the memlock limit of this process is 64 KiB");
	assert_contains(err->cause, need);
	assert_contains(err->hint, "limits.d");
	assert_contains(err->hint, "LimitMEMLOCK");
	assert_contains(err->hint, "IPC_LOCK");
}
