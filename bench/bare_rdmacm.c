/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of rdma_cm with all that messages need - queues, memory, receives -
 * and nothing else: what the setting up of a channel is compared with. Not an
 * example of good manners.
 *
 *	bare_rdmacm connect|close ADDRESS size=N count=N depth=N
 */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PORT 17472

struct link {
	struct rdma_event_channel *events;
	struct rdma_cm_id *id;
	struct ibv_pd *pd;
	struct ibv_comp_channel *waits;
	struct ibv_cq *tx, *rx;
	struct ibv_mr *mr;
	char *memory;
};

static size_t size = 65536;
static unsigned count = 100, depth = 2;

static void must(int well, const char *what)
{
	if (well)
		return;
	fprintf(stderr, "bare_rdmacm: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* Returns the id it is about. */
static struct rdma_cm_id *await_event(struct link *l, enum rdma_cm_event_type wanted)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	must(!rdma_get_cm_event(l->events, &event), "rdma_get_cm_event");
	if (event->event != wanted) {
		fprintf(stderr, "bare_rdmacm: %s\n", rdma_event_str(event->event));
		exit(1);
	}
	id = event->id;
	rdma_ack_cm_event(event);
	return id;
}

static void post_recv(struct link *l, unsigned number)
{
	struct ibv_sge sge = { (uintptr_t)l->memory + number * size, (uint32_t)size, l->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	must(!ibv_post_recv(l->id->qp, &wr, &bad), "ibv_post_recv");
}

static struct ibv_cq *make_cq(struct link *l)
{
	struct ibv_cq *cq = ibv_create_cq(l->id->verbs, (int)(2 * depth), NULL, l->waits, 0);

	must(cq && !ibv_req_notify_cq(cq, 0), "ibv_create_cq");
	return cq;
}

static void open_link(struct link *l)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 2 * depth,
			 .max_recv_wr = 2 * depth,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	must((l->pd = ibv_alloc_pd(l->id->verbs)) != NULL, "ibv_alloc_pd");
	must((l->waits = ibv_create_comp_channel(l->id->verbs)) != NULL, "ibv_create_comp_channel");
	attr.send_cq = l->tx = make_cq(l);
	attr.recv_cq = l->rx = make_cq(l);
	must(!rdma_create_qp(l->id, l->pd, &attr), "rdma_create_qp");
	l->memory = aligned_alloc(4096, 3 * depth * size);
	l->mr = ibv_reg_mr(l->pd, l->memory, 3 * depth * size, IBV_ACCESS_LOCAL_WRITE);
	must(l->mr != NULL, "ibv_reg_mr");
	for (unsigned i = 0; i < 2 * depth; i++)
		post_recv(l, i);
}

static void close_link(struct link *l)
{
	rdma_destroy_qp(l->id);
	ibv_dereg_mr(l->mr);
	ibv_destroy_cq(l->tx);
	ibv_destroy_cq(l->rx);
	ibv_destroy_comp_channel(l->waits);
	ibv_dealloc_pd(l->pd);
	rdma_destroy_id(l->id);
	free(l->memory);
}

/* Sleeps until there is a completion. */
static void take(struct link *l, struct ibv_cq *cq)
{
	struct ibv_cq *woken;
	struct ibv_wc wc;
	void *context;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0) {
		must(!ibv_get_cq_event(l->waits, &woken, &context), "ibv_get_cq_event");
		ibv_ack_cq_events(woken, 1);
		must(!ibv_req_notify_cq(woken, 0), "ibv_req_notify_cq");
	}
	must(n == 1 && wc.status == IBV_WC_SUCCESS, "ibv_poll_cq");
}

static void send_word(struct link *l)
{
	struct ibv_sge sge = { (uintptr_t)l->memory + 2 * depth * size, 4, l->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	must(!ibv_post_send(l->id->qp, &wr, &bad), "ibv_post_send");
	take(l, l->tx);
}

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };

	must(inet_pton(AF_INET, text, &address.sin_addr) == 1, text);
	return address;
}

/* The client says that it goes, is told so, and goes. */
static void serve(const char *text, int ready)
{
	struct sockaddr_in address = address_of(text);
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	struct rdma_cm_id *listener;
	struct link l = { .events = rdma_create_event_channel() };

	must(!rdma_create_id(l.events, &listener, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(!rdma_bind_addr(listener, (struct sockaddr *)&address), "rdma_bind_addr");
	must(!rdma_listen(listener, 8), "rdma_listen");
	must(write(ready, "x", 1) == 1, "write");
	for (unsigned i = 0; i < count; i++) {
		l.id = await_event(&l, RDMA_CM_EVENT_CONNECT_REQUEST);
		open_link(&l);
		must(!rdma_accept(l.id, &param), "rdma_accept");
		await_event(&l, RDMA_CM_EVENT_ESTABLISHED);
		take(&l, l.rx);
		send_word(&l);
		rdma_disconnect(l.id); /* the client's own may be lost: it does not wait */
		close_link(&l);
	}
}

static void connect_link(struct link *l, struct sockaddr_in *address)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	l->events = rdma_create_event_channel();
	must(!rdma_create_id(l->events, &l->id, NULL, RDMA_PS_TCP), "rdma_create_id");
	must(!rdma_resolve_addr(l->id, NULL, (struct sockaddr *)address, 5000),
	     "rdma_resolve_addr");
	await_event(l, RDMA_CM_EVENT_ADDR_RESOLVED);
	must(!rdma_resolve_route(l->id, 5000), "rdma_resolve_route");
	await_event(l, RDMA_CM_EVENT_ROUTE_RESOLVED);
	open_link(l);
	must(!rdma_connect(l->id, &param), "rdma_connect");
	await_event(l, RDMA_CM_EVENT_ESTABLISHED);
}

/* The first one also starts the library; it does not count. */
static double set_up_or_down(const char *text, int down)
{
	struct sockaddr_in address = address_of(text);
	double taken = 0, t;

	for (unsigned i = 0; i < count; i++) {
		struct link l = { 0 };

		t = now();
		connect_link(&l, &address);
		if (down)
			t = now();
		else
			taken += i ? now() - t : 0;
		send_word(&l);
		take(&l, l.rx);
		rdma_disconnect(l.id);
		close_link(&l);
		rdma_destroy_event_channel(l.events);
		if (down)
			taken += i ? now() - t : 0;
	}
	return taken / (count - 1);
}

int main(int argc, char **argv)
{
	int ready[2];
	char c;
	pid_t pid;

	if (argc < 3 || pipe(ready) != 0)
		return 2;
	for (int i = 3; i < argc; i++) {
		char *value = strchr(argv[i], '=');
		unsigned long n = value ? strtoul(value + 1, NULL, 10) : 0;

		if (!strncmp(argv[i], "size", 4))
			size = n;
		else if (!strncmp(argv[i], "count", 5))
			count = (unsigned)n;
		else if (!strncmp(argv[i], "depth", 5))
			depth = (unsigned)n;
	}
	pid = fork();
	if (pid == 0) {
		serve(argv[2], ready[1]);
		return 0;
	}
	close(ready[1]);
	must(read(ready[0], &c, 1) == 1, "the server ended; read");
	printf("%.0f\n", set_up_or_down(argv[2], !strcmp(argv[1], "close")) * 1e6);
	waitpid(pid, NULL, 0);
	return 0;
}
