/* SPDX-License-Identifier: Apache-2.0 */
/* librdmacm on paper: ids, their events, and a peer that answers as it is told to. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mock_books.h"
#include "mock_system.h"
#include "mock_verbs.h"

#define EVENTS_MAX 256

struct mock_id {
	struct rdma_cm_id id;
	unsigned unacked;
};

struct mock_cm_event {
	struct rdma_cm_event event;
	uint8_t data[256];
	void *context; /* of a group */
};

struct mock_channel {
	struct rdma_event_channel channel;
	struct mock_cm_event events[EVENTS_MAX];
	unsigned count;
};

struct mock_peer mock_peer;
struct mock_said mock_said;

void mock_rdmacm_reset(void)
{
	for (struct mock_channel *c = NULL; (c = mock_next_alive("event channel", c));)
		close(c->channel.fd);
	mock_said = (struct mock_said){ .len = 0 };
	mock_peer = (struct mock_peer){
		.resolve_addr = { .event = RDMA_CM_EVENT_ADDR_RESOLVED },
		.resolve_route = { .event = RDMA_CM_EVENT_ROUTE_RESOLVED },
		.connect = { .event = RDMA_CM_EVENT_ESTABLISHED, .data = "yes", .len = 4 },
		.join = { .event = RDMA_CM_EVENT_MULTICAST_JOIN },
	};
}

static int refused(int errnum)
{
	errno = errnum;
	return -1;
}

/* ---- Event channels ---- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	int errnum = mock_call("rdma_create_event_channel", NULL);
	struct mock_channel *c;

	if (errnum) {
		errno = errnum;
		return NULL;
	}
	c = mock_make("event channel", sizeof(*c));
	c->channel.fd = mock_system_eventfd();
	return &c->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	mock_note("rdma_destroy_event_channel", channel);
	for (struct mock_id *i = NULL; (i = mock_next_alive("id", i));)
		if (i->id.channel == channel)
			mock_complain("rdma_destroy_event_channel before its id");
	mock_end(channel, "event channel", "rdma_destroy_event_channel");
	close(channel->fd);
}

static struct mock_cm_event *raise_event(struct rdma_event_channel *channel,
					 const struct mock_answer *what)
{
	struct mock_channel *c = (struct mock_channel *)channel;
	struct mock_cm_event *e = &c->events[c->count++];

	*e = (struct mock_cm_event){
		.event = { .event = what->event,
			   .status = what->status,
			   .param.conn.private_data_len = what->len },
	};
	if (what->len)
		memcpy(e->data, what->data, what->len);
	mock_system_raise(channel->fd);
	return e;
}

static void raise_on(struct rdma_cm_id *id, const struct mock_answer *what, void *context)
{
	struct mock_cm_event *e;

	if (what->none)
		return;
	e = raise_event(id->channel, what);
	e->event.id = id;
	e->context = context;
	if (id->ps == RDMA_PS_UDP) {
		e->event.param.ud.qp_num = context ? MOCK_GROUP_QP : MOCK_UD_QP;
		e->event.param.ud.qkey = MOCK_QKEY;
	}
}

void mock_cm_event(struct rdma_cm_id *id, const struct mock_answer *what)
{
	raise_on(id, what, NULL);
}

void mock_connect_request(struct rdma_cm_id *listener, const void *data, uint8_t len)
{
	struct mock_answer what = { .event = RDMA_CM_EVENT_CONNECT_REQUEST,
				    .data = data,
				    .len = len };
	struct rdma_cm_event *event = &raise_event(listener->channel, &what)->event;

	event->listen_id = listener;
	event->param.conn.responder_resources = 4;
	event->param.conn.initiator_depth = 2;
}

static struct rdma_cm_id *make_id(struct rdma_event_channel *channel)
{
	struct mock_id *i = mock_make("id", sizeof(*i));

	i->id.channel = channel;
	i->id.port_num = 1;
	return &i->id;
}

/* The id of a request comes to life when somebody takes the event. */
static struct rdma_cm_id *requesting_id(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = make_id(channel);
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(40000) };

	peer.sin_addr.s_addr = htonl(0x0a000002);
	memcpy(&id->route.addr.dst_addr, &peer, sizeof(peer));
	id->verbs = &mock_context;
	return id;
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	int errnum = mock_call("rdma_get_cm_event", channel);
	struct mock_channel *c = (struct mock_channel *)channel;
	struct mock_cm_event *e;

	mock_check(channel, "event channel", "rdma_get_cm_event");
	if (!errnum && !c->count) {
		errnum = EAGAIN;
		if (!mock_system_nonblocking(channel->fd))
			mock_complain("rdma_get_cm_event would block");
	}
	if (errnum)
		return refused(errnum);
	e = mock_make("CM event", sizeof(*e));
	*e = c->events[0];
	memmove(c->events, c->events + 1, --c->count * sizeof(*e));
	mock_system_take(channel->fd);
	e->event.param.conn.private_data = e->event.param.conn.private_data_len ? e->data : NULL;
	if (e->context)
		e->event.param.ud.private_data = e->context;
	if (e->event.listen_id)
		e->event.id = requesting_id(channel);
	/* As the real one does. */
	if (e->event.event == RDMA_CM_EVENT_REJECTED && e->event.id->qp)
		mock_qp_error(e->event.id->qp);
	((struct mock_id *)(e->event.listen_id ? e->event.listen_id : e->event.id))->unacked++;
	*event = &e->event;
	return 0;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	int errnum = mock_call("rdma_ack_cm_event", event);

	mock_end(event, "CM event", "rdma_ack_cm_event");
	((struct mock_id *)(event->listen_id ? event->listen_id : event->id))->unacked--;
	return errnum ? refused(errnum) : 0;
}

const char *rdma_event_str(enum rdma_cm_event_type event)
{
	return event == RDMA_CM_EVENT_REJECTED ? "RDMA_CM_EVENT_REJECTED" : "RDMA_CM_EVENT";
}

/* ---- Ids ---- */

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space ps)
{
	int errnum = mock_call("rdma_create_id", channel);

	mock_check(channel, "event channel", "rdma_create_id");
	if (errnum)
		return refused(errnum);
	*id = make_id(channel);
	(*id)->context = context;
	(*id)->ps = ps;
	return 0;
}

static void drop_events(struct rdma_cm_id *id)
{
	struct mock_channel *c = (struct mock_channel *)id->channel;
	unsigned kept = 0;

	for (unsigned i = 0; i < c->count; i++)
		if (c->events[i].event.id != id && c->events[i].event.listen_id != id)
			c->events[kept++] = c->events[i];
		else
			mock_system_take(c->channel.fd);
	c->count = kept;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	int errnum = mock_call("rdma_destroy_id", id);
	struct mock_id *i = (struct mock_id *)id;

	if (!mock_check(id, "id", "rdma_destroy_id"))
		return refused(EINVAL);
	if (id->qp)
		mock_complain("rdma_destroy_id before its QP");
	if (i->unacked)
		mock_complain("rdma_destroy_id with %u events not acknowledged", i->unacked);
	if (mock_check(id->channel, "event channel", "rdma_destroy_id"))
		drop_events(id);
	mock_end(id, "id", "rdma_destroy_id");
	return errnum ? refused(errnum) : 0;
}

int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	int errnum = mock_call("rdma_migrate_id", id);

	mock_check(id, "id", "rdma_migrate_id");
	mock_check(channel, "event channel", "rdma_migrate_id");
	if (((struct mock_id *)id)->unacked)
		mock_complain("rdma_migrate_id with events not acknowledged");
	if (errnum)
		return refused(errnum);
	id->channel = channel;
	return 0;
}

/* The many calls on an id that just succeed or fail. */
static int simple_call(const char *name, struct rdma_cm_id *id)
{
	int errnum = mock_call(name, id);

	mock_check(id, "id", name);
	return errnum ? refused(errnum) : 0;
}

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src, struct sockaddr *dst,
		      int timeout_ms)
{
	(void)src;
	(void)dst;
	(void)timeout_ms;
	if (simple_call("rdma_resolve_addr", id) != 0)
		return -1;
	id->verbs = &mock_context;
	mock_cm_event(id, &mock_peer.resolve_addr);
	return 0;
}

int rdma_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	(void)timeout_ms;
	if (simple_call("rdma_resolve_route", id) != 0)
		return -1;
	mock_cm_event(id, &mock_peer.resolve_route);
	return 0;
}

int rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t len)
{
	(void)level;
	(void)name;
	(void)value;
	(void)len;
	return simple_call("rdma_set_option", id);
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (simple_call("rdma_create_qp", id) != 0)
		return -1;
	if (id->qp)
		mock_complain("rdma_create_qp on an id that has a QP");
	id->qp = mock_qp_create(pd, attr);
	return id->qp ? 0 : -1;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	mock_note("rdma_destroy_qp", id->qp);
	mock_check(id, "id", "rdma_destroy_qp");
	mock_qp_destroy(id->qp);
	id->qp = NULL;
}

/* ---- Connections ---- */

static void remember(const struct rdma_conn_param *param, const void *data, uint8_t len)
{
	mock_said = (struct mock_said){ .len = len };
	if (param)
		mock_said.param = *param;
	if (len)
		memcpy(mock_said.data, data, len);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	if (simple_call("rdma_connect", id) != 0)
		return -1;
	remember(param, param->private_data, param->private_data_len);
	mock_cm_event(id, &mock_peer.connect);
	return 0;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	if (simple_call("rdma_accept", id) != 0)
		return -1;
	remember(param, param->private_data, param->private_data_len);
	return 0;
}

int rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	if (simple_call("rdma_reject", id) != 0)
		return -1;
	remember(NULL, data, len);
	return 0;
}

/* Flushes whether the peer can be told or not, as the real one does. */
int rdma_disconnect(struct rdma_cm_id *id)
{
	int rc = simple_call("rdma_disconnect", id);

	if (id->qp)
		mock_qp_error(id->qp);
	return rc;
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	(void)event;
	return simple_call("rdma_notify", id);
}

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)addr;
	if (simple_call("rdma_bind_addr", id) != 0)
		return -1;
	/* Listeners for connections bind to all addresses, and so to no device. */
	if (id->ps == RDMA_PS_UDP && !mock_device.no_address)
		id->verbs = &mock_context;
	return 0;
}

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	(void)addr;
	if (simple_call("rdma_join_multicast", id) != 0)
		return -1;
	mock_check(id->qp, "QP", "rdma_join_multicast");
	raise_on(id, &mock_peer.join, context);
	return 0;
}

int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	(void)addr;
	mock_check(id->qp, "QP", "rdma_leave_multicast");
	return simple_call("rdma_leave_multicast", id);
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	(void)backlog;
	return simple_call("rdma_listen", id);
}

__be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	mock_check(id, "id", "rdma_get_src_port");
	return htons(MOCK_PORT);
}
