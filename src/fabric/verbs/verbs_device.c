/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librdmacm opens each device once per process, so everybody on it shares
 * one queue of asynchronous events. Whoever finds events there takes them all
 * and tells those whom each concerns: what ends them wakes them, the rest is a
 * notice in their log. What is wired up by TCP has the device opened once more, and
 * that tells everything once more.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "fabric/verbs/verbs.h"

#define NOTICES_KEPT 8u
#define ECHO_MS 5000u

static pthread_mutex_t watchers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct verbs_watcher *watchers;

/* What an event is about. */
enum subject {
	ABOUT_DEVICE,
	ABOUT_PORT,
	ABOUT_QP,
	ABOUT_CQ,
	ABOUT_SRQ,
};

enum weight {
	SAY_LITTLE, /* it is in the course of things */
	MENTION,    /* somebody else's business, mostly */
	SAY,
	END, /* nothing works any more that it is about */
};

struct meaning {
	enum ibv_event_type type;
	enum subject subject;
	enum weight weight;
	const char *words; /* NULL: as libibverbs puts it */
};

static const struct meaning meanings[] = {
	{ IBV_EVENT_QP_FATAL, ABOUT_QP, END, NULL },
	{ IBV_EVENT_QP_REQ_ERR, ABOUT_QP, END, NULL },
	{ IBV_EVENT_QP_ACCESS_ERR, ABOUT_QP, END, NULL },
	{ IBV_EVENT_CQ_ERR, ABOUT_CQ, END, NULL },
	{ IBV_EVENT_SRQ_ERR, ABOUT_SRQ, END, NULL },
	{ IBV_EVENT_DEVICE_FATAL, ABOUT_DEVICE, END, NULL },
	{ IBV_EVENT_PATH_MIG, ABOUT_QP, SAY, "it goes by its other path from now on" },
	{ IBV_EVENT_PATH_MIG_ERR, ABOUT_QP, SAY, "it could not change to its other path" },
	{ IBV_EVENT_SQ_DRAINED, ABOUT_QP, SAY_LITTLE, NULL },
	{ IBV_EVENT_QP_LAST_WQE_REACHED, ABOUT_QP, SAY_LITTLE, NULL },
	{ IBV_EVENT_SRQ_LIMIT_REACHED, ABOUT_SRQ, SAY,
	  "the receives that clients share run low; if none is left, senders wait" },
	{ IBV_EVENT_PORT_ERR, ABOUT_PORT, SAY,
	  "the port is down; what uses it goes on if it comes back within the peer time-out" },
	{ IBV_EVENT_PORT_ACTIVE, ABOUT_PORT, SAY, "the port is up" },
	{ IBV_EVENT_GID_CHANGE, ABOUT_PORT, MENTION,
	  "the table of GIDs changed: the port got or lost an address" },
	{ IBV_EVENT_LID_CHANGE, ABOUT_PORT, SAY,
	  "the port's LID changed; peers that use the old one are lost after the time-out" },
	{ IBV_EVENT_PKEY_CHANGE, ABOUT_PORT, MENTION, "the table of partition keys changed" },
	{ IBV_EVENT_SM_CHANGE, ABOUT_PORT, SAY_LITTLE, NULL },
	{ IBV_EVENT_CLIENT_REREGISTER, ABOUT_PORT, SAY_LITTLE, NULL },
};

static struct meaning meaning_of(enum ibv_event_type type)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].type == type)
			return meanings[i];
	return (struct meaning){ type, ABOUT_DEVICE, SAY, NULL };
}

static bool concerns(const struct ibv_async_event *event, enum subject subject,
		     const struct verbs_watcher *w)
{
	switch (subject) {
	case ABOUT_QP:
		return event->element.qp == w->qp;
	case ABOUT_CQ:
		return event->element.cq == w->cqs[0] || event->element.cq == w->cqs[1];
	case ABOUT_SRQ:
		return event->element.srq == w->srq;
	case ABOUT_PORT:
		return !w->port || event->element.port_num == w->port;
	default:
		return true;
	}
}

static const char *words_of(const struct meaning *m)
{
	return m->words ? m->words : ibv_event_type_str(m->type);
}

/* A notice that was given, for the sake of its echo. */
static struct notice {
	const struct ibv_context *context; /* NULL: there is nothing here */
	struct vb__log log;
	char device[64];
	enum ibv_event_type type;
	int port;
	uint64_t at_ns;
} notices[NOTICES_KEPT];
static unsigned notices_next;

static bool is_same_log(const struct vb__log *a, const struct vb__log *b)
{
	return a->write == b->write && a->arg == b->arg;
}

/* Lock held. The same to the same log, a moment ago by another context of the device: an echo, each of one notice. */
static bool is_echo(const struct verbs_watcher *w, enum ibv_event_type type, int port)
{
	struct notice new = { .context = w->context,
			      .log = *w->log,
			      .type = type,
			      .port = port,
			      .at_ns = vb__now_ns() };

	for (unsigned i = 0; i < NOTICES_KEPT; i++) {
		struct notice *n = &notices[i];

		if (n->context && n->context != w->context && n->type == type && n->port == port &&
		    is_same_log(&n->log, w->log) && !strcmp(n->device, w->device) &&
		    new.at_ns - n->at_ns < vb__ms(ECHO_MS)) {
			n->context = NULL;
			return true;
		}
	}
	snprintf(new.device, sizeof(new.device), "%s", w->device);
	notices[notices_next++ % NOTICES_KEPT] = new;
	return false;
}

/* Of what many share one line is enough for a log that they share, too. */
static void give_notice(const struct verbs_watcher *w, const struct verbs_watcher *told,
			const struct meaning *m, int port)
{
	static const enum vb_log_level levels[] = {
		[SAY_LITTLE] = VB_LOG_DEBUG,
		[MENTION] = VB_LOG_INFO,
		[SAY] = VB_LOG_WARNING,
		[END] = VB_LOG_WARNING,
	};
	enum vb_log_level level = levels[m->weight];

	if (!w->log)
		return;
	if (m->subject == ABOUT_QP || m->subject == ABOUT_CQ) {
		vb__log(w->log, level, "%s, %s: %s", w->device, w->peer, words_of(m));
		return;
	}
	if (told && is_same_log(told->log, w->log))
		return;
	if (m->subject != ABOUT_SRQ && is_echo(w, m->type, m->subject == ABOUT_PORT ? port : 0))
		return;
	if (m->subject == ABOUT_PORT)
		vb__log(w->log, level, "%s port %d: %s", w->device, port, words_of(m));
	else
		vb__log(w->log, level, "%s: %s", w->device, words_of(m));
}

static void tell(struct verbs_watcher *w, const struct ibv_async_event *event,
		 const struct meaning *m)
{
	int none = 0; /* the first one stays */

	if (m->type == IBV_EVENT_GID_CHANGE || m->type == IBV_EVENT_PORT_ACTIVE)
		atomic_store(&w->gids_moved, true);
	if (m->type == IBV_EVENT_SRQ_LIMIT_REACHED)
		atomic_store(&w->ran_low, true);
	if (m->weight == END && w->waiter) {
		atomic_compare_exchange_strong(&w->fatal, &none, (int)event->event_type + 1);
		vb__waiter_wake(w->waiter);
	}
}

/* Lock held. */
static void pass_on(const struct ibv_context *context, const struct ibv_async_event *event)
{
	const struct meaning m = meaning_of(event->event_type);
	const struct verbs_watcher *told = NULL;

	for (struct verbs_watcher *w = watchers; w; w = w->next) {
		if (w->context != context)
			continue;
		if (event->event_type == IBV_EVENT_COMM_EST) {
			if (w->id && event->element.qp == w->qp)
				verbs_note(w->log, rdma_notify(w->id, IBV_EVENT_COMM_EST),
					   "rdma_notify", w->peer,
					   "the peer's own word will come as well");
			continue;
		}
		if (!concerns(event, m.subject, w))
			continue;
		tell(w, event, &m);
		give_notice(w, told, &m, event->element.port_num);
		if (w->log)
			told = w;
	}
}

/* Lock held. Returns the errno that ended it, 0 if that is just their end. */
static int take_all(struct ibv_context *context)
{
	struct ibv_async_event event;

	while (ibv_get_async_event(context, &event) == 0) {
		pass_on(context, &event);
		ibv_ack_async_event(&event);
	}
	return errno == EAGAIN || errno == EINTR ? 0 : errno;
}

static bool is_watched(const struct ibv_context *context)
{
	const struct verbs_watcher *w = watchers;

	while (w && w->context != context)
		w = w->next;
	return w;
}

/*
 * Lock held. Reading the events must never block, since it is done with the lock held. What
 * happened while nobody was there is of no use to anybody.
 */
static int begin(struct ibv_context *context, struct vb_error *err)
{
	const char *name = ibv_get_device_name(context->device);
	int rc;

	if (is_watched(context))
		return 0;
	if (fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK) != 0)
		return verbs_fail(err, errno, "fcntl", name);
	rc = take_all(context);
	return rc ? verbs_fail(err, rc, "ibv_get_async_event", name) : 0;
}

int verbs_watch(struct verbs_watcher *w, struct ibv_context *context, struct vb_error *err)
{
	int rc;

	atomic_init(&w->fatal, 0);
	atomic_init(&w->ran_low, false);
	atomic_init(&w->gids_moved, false);
	pthread_mutex_lock(&watchers_lock);
	rc = begin(context, err);
	if (rc == 0) {
		w->context = context;
		w->next = watchers;
		watchers = w;
	}
	pthread_mutex_unlock(&watchers_lock);
	return rc;
}

void verbs_unwatch(struct verbs_watcher *w)
{
	struct verbs_watcher **at = &watchers;

	if (!w->context)
		return;
	pthread_mutex_lock(&watchers_lock);
	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	pthread_mutex_unlock(&watchers_lock);
	w->context = NULL;
}

int verbs_fatal_event(struct verbs_watcher *w)
{
	return atomic_exchange(&w->fatal, 0) - 1;
}

int verbs_take_device_events(struct ibv_context *context)
{
	int rc;

	pthread_mutex_lock(&watchers_lock);
	rc = take_all(context);
	pthread_mutex_unlock(&watchers_lock);
	return rc;
}
