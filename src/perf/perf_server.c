/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The side that serves measurements, to one client after another. Nothing that
 * a client says or leaves unsaid ends more than its own visit.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "channel/inside.h"
#include "core/clock.h"
#include "perf/perf_rig.h"
#include "transfer/opening.h"

#define HELLO_MS 3000u
/* A client that wants nothing for so long has had its time. */
#define IDLE_MS 30000u
#define SLICE_MS 50u

/* Who was turned away is left so much room to read why. */
#define DISMISSED 8u

/* For a port that the fabric finds free and its wire-up does not. */
#define PORT_TRIES 16

struct dismissed {
	struct vb_channel *channel;
	bool untold; /* that we are busy, as it could not be said yet */
};

struct vb_perf_server {
	struct vb__settings settings;
	struct vb__perf_talk talk; /* with the client, if there is one */
	struct vb_listener *listener;
	char *host; /* or NULL */
	struct vb__pep *pep;
	struct vb__perf_rig
		*rig; /* of the last cell, until the next word: the client may still be at it */
	struct dismissed dismissed[DISMISSED];
	unsigned next_dismissed;
	bool quiet; /* nobody was at the listener, and its descriptor wakes for who comes */
};

static void turn_one_away(void *server);

/* ---- Life ---- */

int vb_perf_server_open(const char *host, const char *port, const struct vb_perf_options *options,
			struct vb_perf_server **server, struct vb_error *err)
{
	struct vb_error local = { .code = VB_OK };
	struct vb__errand *opening;
	struct vb_perf_server *s = calloc(1, sizeof(*s));
	int rc;

	err = err ? err : &local;
	vb__error_clear(err);
	if (!s)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	rc = vb__perf_talk_from(&s->talk, &s->settings, options, err);
	if (rc == 0 && host) {
		s->host = strdup(host);
		rc = s->host ? 0 : vb__fail_errno(err, ENOMEM, "strdup", NULL);
	}
	if (rc == 0)
		rc = vb__opening_start(host, port, &s->settings, &opening, err);
	if (rc == 0)
		rc = vb__opening_finish(opening, s->talk.stop_fd, &s->listener, err);
	s->talk.meanwhile = turn_one_away;
	s->talk.meanwhile_arg = s;
	if (rc)
		vb_perf_server_close(s);
	else
		*server = s;
	return rc;
}

static void drop_rig(struct vb_perf_server *s)
{
	vb__perf_rig_close(s->rig);
	free(s->rig);
	s->rig = NULL;
}

void vb_perf_server_close(struct vb_perf_server *s)
{
	if (!s)
		return;
	drop_rig(s);
	vb_channel_abort(s->talk.channel);
	vb__pep_close(s->pep);
	for (unsigned i = 0; i < DISMISSED; i++)
		vb_channel_abort(s->dismissed[i].channel);
	vb_listener_close(s->listener);
	free(s->host);
	free(s);
}

int vb_perf_server_port(const struct vb_perf_server *s)
{
	return vb_listener_port(s->listener);
}

const char *vb_perf_server_description(const struct vb_perf_server *s)
{
	return vb_listener_description(s->listener);
}

/* ---- Others than the client ---- */

static struct dismissed *dismiss(struct vb_perf_server *s, struct vb_channel *channel)
{
	struct dismissed *place = &s->dismissed[s->next_dismissed++ % DISMISSED];

	vb_channel_abort(place->channel);
	*place = (struct dismissed){ .channel = channel };
	return place;
}

static void tell_busy(struct dismissed *stranger)
{
	static const struct vb_error busy = {
		.code = VB_ERR_REFUSED,
		.cause = "it measures with somebody else just now",
		.hint = "try again later",
	};

	stranger->untold = vb__perf_try_refuse(stranger->channel, &busy) == VB_ERR_AGAIN;
}

/*
 * Whoever comes while somebody is served hears so: one at a time, and without
 * waiting for anything, as that would be at the cost of the one who is served.
 */
static void turn_one_away(void *server)
{
	struct vb_perf_server *s = server;
	struct pollfd fd = { .fd = vb_listener_fd(s->listener), .events = POLLIN };
	struct vb_channel *channel;

	for (unsigned i = 0; i < DISMISSED; i++)
		if (s->dismissed[i].untold)
			tell_busy(&s->dismissed[i]);
	/* A listener that is asked again and again for nothing believes that something is wrong. */
	if (s->quiet && poll(&fd, 1, 0) <= 0)
		return;
	s->quiet = vb_listener_try_accept(s->listener, &channel, NULL) != 0;
	if (!s->quiet)
		tell_busy(dismiss(s, channel));
}

/* ---- A cell ---- */

static int say_figures(struct vb_perf_server *s, struct vb_error *err)
{
	const struct vb__perf_rig *rig = s->rig;
	struct vb__perf_word word = {
		.kind = VB__PERF_FIGURES,
		.figures = {
			.messages = rig->plan.cell.both_ways ? vb__perf_rig_posted(rig) : 0,
			.arrived = vb__perf_rig_arrived(rig),
			.elapsed_ns = rig->sent_ns > rig->begun_ns ? rig->sent_ns - rig->begun_ns : 0,
			.cpu_ns = rig->cpu_ns,
			.wall_ns = rig->end.ns - rig->begin.ns,
		},
	};

	for (unsigned i = 0; i < rig->count; i++)
		word.figures.corrupt += rig->rails[i].corrupt;
	return vb__perf_say(&s->talk, &word, err);
}

static int prepare(struct vb_perf_server *s, const struct vb_perf_cell *cell, struct vb_error *err)
{
	struct vb__perf_word ready = { .kind = VB__PERF_READY };
	int rc = vb_perf_check(cell, err);

	if (rc)
		return rc;
	s->rig = malloc(sizeof(*s->rig));
	if (!s->rig)
		return vb__fail_errno(err, ENOMEM, "malloc", NULL);
	rc = vb__perf_rig_plan(s->rig, &s->talk, true, cell, &s->settings, err);
	if (rc)
		return rc;
	if (getrandom(&ready.key, sizeof(ready.key), 0) != sizeof(ready.key))
		return vb__fail_errno(err, errno, "getrandom", NULL);
	s->rig->plan.key = ready.key;
	rc = vb__perf_rig_offer(s->rig, s->pep->fabric->id, &ready, err);
	if (rc)
		return rc;
	rc = vb__perf_say(&s->talk, &ready, err);
	return rc ? rc : vb__perf_rig_accept(s->rig, s->pep, err);
}

/* What is wrong with a cell is told to the client, which may ask for another; what is wrong with the client is not. */
static bool is_about_cell(int rc)
{
	return rc == VB_ERR_UNSUPPORTED || rc == VB_ERR_TOO_BIG || rc == VB_ERR_INVALID ||
	       rc == VB_ERR_MEMLOCK || rc == VB_ERR_NOMEM;
}

static int serve_cell(struct vb_perf_server *s, const struct vb_perf_cell *cell,
		      struct vb_error *err)
{
	struct vb__perf_word begin = { .kind = VB__PERF_BEGIN };
	struct vb_error why = { .code = VB_OK };
	int rc = prepare(s, cell, &why);

	if (rc && is_about_cell(rc)) {
		vb__perf_refuse(&s->talk, &why);
		drop_rig(s);
		return 0;
	}
	if (rc == 0)
		rc = vb__perf_say(&s->talk, &begin, &why);
	if (rc == 0)
		rc = vb__perf_rig_run(s->rig, &why);
	if (rc == 0)
		rc = say_figures(s, &why);
	return rc ? vb__fail_again(err, &why) : 0;
}

/* ---- A client ---- */

static int next_word(struct vb_perf_server *s, uint32_t ms, enum vb__perf_word_kind kind,
		     struct vb__perf_word *word, struct vb_error *err)
{
	uint64_t deadline = vb__now_ns() + vb__ms(ms), slice;
	struct vb_error why;
	int rc;

	/* In slices, in which others are turned away. */
	do {
		why = (struct vb_error){ .code = VB_OK };
		slice = vb__now_ns() + vb__ms(SLICE_MS);
		turn_one_away(s);
		rc = vb__perf_await(&s->talk, kind, slice < deadline ? slice : deadline, word,
				    &why);
	} while (rc == VB_ERR_TIMEOUT && vb__now_ns() < deadline);
	return rc ? vb__fail_again(err, &why) : 0;
}

static int open_somewhere(struct vb_perf_server *s, const struct vb__fabric *fabric,
			  const struct vb__address *at, struct vb_error *err)
{
	int tries = PORT_TRIES, rc;

	do {
		vb__error_clear(err);
		rc = vb__pep_open(fabric, &s->settings, at, &s->pep, err);
	} while (rc == VB_ERR_IN_USE && --tries > 0);
	return rc;
}

static int open_data_listener(struct vb_perf_server *s, struct vb_error *err)
{
	struct vb__address at[VB__ADDRESSES_MAX];
	const struct vb__fabric *const *f = vb__fabrics;
	int rc = VB_ERR_RESOLVE, n = vb__address_resolve(s->host, "0", s->settings.family, at, err);

	if (n <= 0)
		return n;
	while (*f && strcmp((*f)->name, vb_channel_fabric(s->talk.channel)) != 0)
		f++;
	/* The IPv6 wildcard serves IPv4 as well, so it comes first. */
	for (int i = 0; rc && i < 2 * n; i++) {
		if ((at[i % n].sa.ss_family == AF_INET6) != (i < n))
			continue;
		rc = open_somewhere(s, *f, &at[i % n], err);
	}
	return rc;
}

static int welcome(struct vb_perf_server *s, struct vb_error *err)
{
	struct vb__perf_word word;
	int rc = next_word(s, HELLO_MS, VB__PERF_HELLO, &word, err);

	if (rc)
		return rc;
	if (word.hello.version != VB__PERF_VERSION)
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_VERSION,
					     .cause = "it speaks another version of rdperf's words",
					     .hint = "install the same version at both ends",
				     });
	rc = open_data_listener(s, err);
	if (rc)
		return rc;
	word = (struct vb__perf_word){ .kind = VB__PERF_HELLO };
	word.hello.version = VB__PERF_VERSION;
	word.hello.port = s->pep->port;
	return vb__perf_say(&s->talk, &word, err);
}

static int visit(struct vb_perf_server *s, struct vb_error *err)
{
	struct vb__perf_word word;
	int rc = welcome(s, err);

	while (rc == 0) {
		rc = next_word(s, IDLE_MS, VB__PERF_CELL, &word, err);
		drop_rig(s);
		if (rc == 0)
			rc = serve_cell(s, &word.cell, err);
	}
	return rc;
}

static int await_client(struct vb_perf_server *s, struct vb_error *err)
{
	struct pollfd fds[] = {
		{ .fd = vb_listener_fd(s->listener), .events = POLLIN },
		{ .fd = s->talk.stop_fd, .events = POLLIN },
	};
	int rc;

	while ((rc = vb_listener_try_accept(s->listener, &s->talk.channel, err)) == VB_ERR_AGAIN) {
		rc = vb__perf_stopped(&s->talk, err);
		if (rc)
			return rc;
		poll(fds, 2, -1);
	}
	s->talk.quiet = false;
	s->quiet = false;
	return rc;
}

/* The last word: why it is over, if the client does not know. Then it is left to itself. */
static void see_off(struct vb_perf_server *s, int rc, const struct vb_error *why)
{
	char line[VB_ERROR_LINE_MAX];
	struct vb_error stopped = { .code = VB_ERR_INTERRUPTED,
				    .cause = "the serving side was interrupted" };

	/* First the word, then the end of the data connections, or they would be what the client tells. */
	if (rc == VB_ERR_EOF) {
		vb__log(&s->settings.log, VB_LOG_INFO, "%s is done",
			vb_channel_peer(s->talk.channel));
	} else {
		vb__log(&s->settings.log, VB_LOG_WARNING, "%s: %s",
			vb_channel_peer(s->talk.channel), vb_error_format(why, line, sizeof(line)));
		vb__perf_refuse(&s->talk, rc == VB_ERR_INTERRUPTED ? &stopped : why);
	}
	drop_rig(s);
	vb__pep_close(s->pep);
	s->pep = NULL;
	if (rc == VB_ERR_INTERRUPTED)
		vb__perf_part(&s->talk);
	else
		dismiss(s, s->talk.channel);
	s->talk.channel = NULL;
}

int vb_perf_server_next(struct vb_perf_server *s, struct vb_error *err)
{
	struct vb_error local = { .code = VB_OK }, why = { .code = VB_OK };
	int rc;

	err = err ? err : &local;
	vb__error_clear(err);
	rc = await_client(s, err);
	if (rc)
		return rc;
	rc = visit(s, &why);
	see_off(s, rc, &why);
	return rc == VB_ERR_INTERRUPTED && vb__perf_stopped(&s->talk, err) ? VB_ERR_INTERRUPTED : 0;
}
