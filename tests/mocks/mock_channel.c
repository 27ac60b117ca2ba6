/* SPDX-License-Identifier: Apache-2.0 */
/* See mock_channel.h. Each message lies in memory of its exact size, for sanitizers to see. */
#include "mock_channel.h"

#include <stdlib.h>
#include <string.h>

#include "core/failure.h"

struct mock_message {
	struct mock_message *next;
	size_t len;
	uint8_t *bytes;
};

void mock_channel_pair(struct vb_channel *a, struct vb_channel *b)
{
	*a = (struct vb_channel){ .peer = b, .max_message = 4096 };
	*b = (struct vb_channel){ .peer = a, .max_message = 4096 };
}

static struct mock_message *new_message(const void *bytes, size_t len)
{
	struct mock_message *m = calloc(1, sizeof(*m));

	if (!m || !(m->bytes = malloc(len ? len : 1)))
		abort();
	m->len = len;
	if (len)
		memcpy(m->bytes, bytes, len);
	return m;
}

static void free_message(struct mock_message *m)
{
	if (m)
		free(m->bytes);
	free(m);
}

static void arrive(struct vb_channel *ch, struct mock_message *m)
{
	if (ch->first)
		ch->last->next = m;
	else
		ch->first = m;
	ch->last = m;
	ch->waiting++;
}

static struct mock_message *take_first(struct vb_channel *ch)
{
	struct mock_message *m = ch->first;

	ch->first = m->next;
	ch->waiting--;
	return m;
}

void mock_channel_inject(struct vb_channel *ch, const void *bytes, size_t len)
{
	arrive(ch, new_message(bytes, len));
}

void mock_channel_drain(struct vb_channel *ch)
{
	while (ch->first)
		free_message(take_first(ch));
	free_message(ch->shown);
	free_message(ch->delayed);
	ch->shown = ch->delayed = NULL;
}

static void cross(struct vb_channel *ch, struct mock_message *m)
{
	struct mock_message *before = ch->delayed;
	enum mock_fate fate = MOCK_DELIVER;

	if (ch->wire)
		fate = ch->wire(ch->wire_arg, ch->sent, m->bytes, &m->len);
	ch->sent++;
	ch->delayed = NULL;
	if (fate == MOCK_REPEAT)
		arrive(ch->peer, new_message(m->bytes, m->len));
	if (fate == MOCK_DELAY)
		ch->delayed = m;
	else if (fate == MOCK_DROP)
		free_message(m);
	else
		arrive(ch->peer, m);
	if (before)
		arrive(ch->peer, before);
}

static int fail(struct vb_error *err, enum vb_err code)
{
	return vb__fail(err, &(struct vb__failure){ .code = code, .operation = "mock" });
}

int vb_channel_try_send(struct vb_channel *ch, const void *message, size_t len,
			struct vb_error *err)
{
	vb__error_clear(err);
	if (ch->broken)
		return fail(err, ch->broken);
	if (len > ch->max_message)
		return fail(err, VB_ERR_TOO_BIG);
	if (ch->room && ch->peer->waiting >= ch->room)
		return VB_ERR_AGAIN;
	cross(ch, new_message(message, len));
	return 0;
}

/* Cannot wait for the peer, which is the same thread: there is room, or the test is wrong. */
int vb_channel_send(struct vb_channel *ch, const void *message, size_t len, struct vb_error *err)
{
	int rc = vb_channel_try_send(ch, message, len, err);

	if (rc == VB_ERR_AGAIN)
		abort();
	return rc;
}

ssize_t vb_channel_try_recv(struct vb_channel *ch, const void **message, struct vb_error *err)
{
	vb__error_clear(err);
	free_message(ch->shown);
	ch->shown = NULL;
	if (ch->first) {
		ch->shown = take_first(ch);
		*message = ch->shown->bytes;
		return (ssize_t)ch->shown->len;
	}
	if (ch->peer->ended)
		return fail(err, VB_ERR_EOF);
	return ch->broken ? fail(err, ch->broken) : VB_ERR_AGAIN;
}

/* Nobody sleeps here. */
int vb_channel_fd(struct vb_channel *ch, struct vb_error *err)
{
	vb__error_clear(err);
	return ch->broken ? fail(err, ch->broken) : 0;
}

size_t vb_channel_max_message(const struct vb_channel *ch)
{
	return ch->max_message;
}

const char *vb_channel_peer(const struct vb_channel *ch)
{
	(void)ch;
	return "the other end";
}
