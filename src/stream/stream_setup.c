/* SPDX-License-Identifier: Apache-2.0 */
/* A stream's beginning and end; servers; looking at it. */
#include <errno.h>
#include <stdlib.h>

#include "stream/stream_state.h"

/* What is not said in the options: bytes in a message, messages under way. */
#define BLOCK_BYTES (128u << 10)
#define DEPTH 12u
#define LEAST_BLOCK 1024u

/* From here on a copy costs more than asking for the place that does without; see docs/design.md. */
#define DIRECT_BYTES (512u << 10)
#define SPILL_BYTES (UINT64_C(1) << 30)

struct vb_stream_server {
	struct vb_listener *listener;
	struct vb_stream_options options;
};

static int settings_from(struct vb__settings *settings, const struct vb_stream_options *options,
			 struct vb_error *err)
{
	struct vb_options connection = options->connection;

	if (!connection.max_message_bytes)
		connection.max_message_bytes = BLOCK_BYTES + VB__STREAM_WORD;
	if (connection.max_message_bytes < LEAST_BLOCK)
		connection.max_message_bytes = LEAST_BLOCK;
	if (!connection.depth)
		connection.depth = DEPTH;
	if (connection.depth < VB__STREAM_LEAST_DEPTH)
		connection.depth = VB__STREAM_LEAST_DEPTH;
	return vb__settings_from(settings, &connection, err);
}

static int check_channel(struct vb_channel *ch, struct vb_error *err)
{
	if (vb_channel_depth(ch) >= VB__STREAM_LEAST_DEPTH &&
	    vb_channel_max_message(ch) >= LEAST_BLOCK)
		return 0;
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_PROTOCOL,
				     .operation = "open a stream to",
				     .object = vb_channel_peer(ch),
				     .cause = "what was agreed on is too narrow for a stream",
				     .hint = "is it a stream at the other end?",
			     });
}

static void destroy(struct vb_stream *s)
{
	vb__stream_free_kept(s);
	vb__arrivals_close(&s->in.arrivals);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* What the peer's sync needs while nobody is in a call here. */
static int open_syncs(struct vb_stream *s, struct vb_error *err)
{
	int rc = 0;

	vb__channel_appoint(s->channel, vb__stream_look, s);
	if (!vb__channel_is_attended(s->channel))
		rc = vb__ledger_open(s, err);
	if (rc && vb__channel_check_open(s->channel, NULL) != 0) {
		vb__error_clear(
			err); /* the peer is gone already: whoever reads will hear of that */
		rc = 0;
	}
	return rc;
}

/* Takes the channel over, also on failure. */
static int create(struct vb_channel *ch, const struct vb_stream_options *options, bool accepted,
		  struct vb_stream **stream, struct vb_error *err)
{
	struct vb_stream *s = calloc(1, sizeof(*s));
	int rc;

	if (!s) {
		vb_channel_abort(ch);
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	}
	s->channel = ch;
	s->block_bytes = vb_channel_max_message(ch) - VB__STREAM_WORD;
	s->direct_bytes = options->direct_bytes ? options->direct_bytes : DIRECT_BYTES;
	s->spill_bytes = options->spill_bytes ? options->spill_bytes : SPILL_BYTES;
	s->accepted = accepted;
	s->log = (struct vb__log){
		.write = options->connection.log,
		.arg = options->connection.log_arg,
		.level = options->connection.log_level,
	};
	s->in.spill.last = &s->in.spill.first;
	pthread_mutex_init(&s->lock, NULL);
	rc = check_channel(ch, err);
	if (rc == 0)
		rc = vb__arrivals_open(&s->in.arrivals, vb_channel_depth(ch), err);
	if (rc == 0)
		rc = open_syncs(s, err);
	if (rc) {
		vb_channel_abort(ch);
		destroy(s);
		return rc;
	}
	s->registered_before = vb__channel_registrations(ch);
	*stream = s;
	return 0;
}

int vb_stream_connect(const char *host, const char *port, const struct vb_stream_options *options,
		      struct vb_stream **stream, struct vb_error *err)
{
	static const struct vb_stream_options none;
	struct vb_error local = { .code = VB_OK };
	struct vb__settings settings;
	struct vb_channel *ch;
	int rc;

	err = err ? err : &local;
	vb__error_clear(err);
	options = options ? options : &none;
	rc = settings_from(&settings, options, err);
	if (rc == 0)
		rc = vb__channel_connect(host, port, &settings, &ch, err);
	return rc ? rc : create(ch, options, false, stream, err);
}

int vb_stream_serve(const char *host, const char *port, const struct vb_stream_options *options,
		    struct vb_stream_server **server, struct vb_error *err)
{
	struct vb_error local = { .code = VB_OK };
	struct vb_stream_server *sv = calloc(1, sizeof(*sv));
	struct vb__settings settings;
	int rc;

	err = err ? err : &local;
	vb__error_clear(err);
	if (!sv)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	if (options)
		sv->options = *options;
	rc = settings_from(&settings, &sv->options, err);
	if (rc == 0)
		rc = vb__listener_open(host, port, &settings, &sv->listener, err);
	if (rc)
		free(sv);
	else
		*server = sv;
	return rc;
}

int vb_stream_accept(struct vb_stream_server *server, struct vb_stream **stream,
		     struct vb_error *err)
{
	struct vb_channel *ch;
	int rc = vb_listener_accept(server->listener, &ch, err);

	return rc ? rc : create(ch, &server->options, true, stream, err);
}

int vb_stream_try_accept(struct vb_stream_server *server, struct vb_stream **stream,
			 struct vb_error *err)
{
	struct vb_channel *ch;
	int rc = vb_listener_try_accept(server->listener, &ch, err);

	return rc ? rc : create(ch, &server->options, true, stream, err);
}

void vb_stream_server_close(struct vb_stream_server *server)
{
	if (!server)
		return;
	vb_listener_close(server->listener);
	free(server);
}

int vb_stream_server_port(const struct vb_stream_server *server)
{
	return vb_listener_port(server->listener);
}

int vb_stream_server_fd(const struct vb_stream_server *server)
{
	return vb_listener_fd(server->listener);
}

int vb_stream_fd(struct vb_stream *s, struct vb_error *err)
{
	return vb_channel_fd(s->channel, err);
}

const char *vb_stream_description(const struct vb_stream *s)
{
	return vb_channel_description(s->channel);
}

const char *vb_stream_peer(const struct vb_stream *s)
{
	return vb_channel_peer(s->channel);
}

void vb_stream_counters(struct vb_stream *s, struct vb_stream_counters *counters)
{
	struct vb_counters channel;

	vb_channel_counters(s->channel, &channel);
	pthread_mutex_lock(&s->lock);
	*counters = s->counters;
	pthread_mutex_unlock(&s->lock);
	counters->messages_sent = channel.messages_sent;
	counters->registrations = vb__channel_registrations(s->channel) - s->registered_before;
}

/* ---- The end ---- */

/* What was put together, and that we read no more. */
static int go_on_leaving(struct vb_stream *s, void *arg, struct vb_error *err)
{
	(void)arg, (void)err;
	vb__stream_say_due(s);
	return s->due && !s->failure.code ? VB_ERR_AGAIN : 0;
}

/* `rc` is what the channel said. */
static int judge(struct vb_stream *s, int rc, struct vb_error *err)
{
	if (s->out.peer_left && s->out.peer_read == s->out.written)
		return 0;
	if (s->failure.code)
		return vb__fail_again(err, &s->failure);
	if (s->out.peer_left || s->out.filled || rc == VB_ERR_CLOSED)
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_CLOSED,
					     .operation = "end the stream to",
					     .object = vb_channel_peer(s->channel),
					     .cause = "the peer closed before it had read all",
				     });
	return rc;
}

/* Lock held. */
static int say_farewell(struct vb_stream *s, struct vb_error *err)
{
	struct vb__call call = { .wish = VB__WISH_FLUSH, .blocking = true };
	struct vb_error end = { .code = VB_OK };
	int rc;

	s->closing = true;
	vb__stream_drop(s);
	s->due |= VB__DUE_BYE | (s->out.filled ? VB__DUE_FLUSH : 0);
	vb__stream_until(s, &call, go_on_leaving, NULL, NULL);
	rc = vb_channel_finish(s->channel, &end);
	vb__stream_attend(s, &call); /* the peer's own farewell may have come */
	rc = judge(s, rc, err);
	if (rc && !err->code)
		vb__fail_again(err, &end);
	return rc;
}

int vb_stream_close(struct vb_stream *s, struct vb_error *err)
{
	struct vb_error local = { .code = VB_OK };
	int rc;

	if (!s)
		return 0;
	err = err ? err : &local;
	vb__error_clear(err);
	pthread_mutex_lock(&s->lock);
	rc = say_farewell(s, err);
	pthread_mutex_unlock(&s->lock);
	vb_channel_close(s->channel, NULL);
	destroy(s);
	return rc;
}

void vb_stream_abort(struct vb_stream *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock); /* somebody may be looking */
	s->closing = true;
	vb__stream_drop(s);
	pthread_mutex_unlock(&s->lock);
	vb_channel_abort(s->channel);
	destroy(s);
}
