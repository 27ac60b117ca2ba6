/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: both ways to begin, small and large both ways, and the end. */
#include <string.h>

#include "lives.h"

#define SMALL 100u
#define LARGE (48u << 10)

static struct vb_stream_options options(void)
{
	return (struct vb_stream_options){ .connection = life_options, .direct_bytes = 16u << 10 };
}

static bool write_some(struct side *side, struct vb_stream *s, const void *data, size_t len)
{
	struct vb_error err;

	return goes_on(side, vb_stream_write(s, data, len, &err), &err);
}

static bool sync_all(struct side *side, struct vb_stream *s)
{
	struct vb_error err;

	return goes_on(side, vb_stream_sync(s, &err), &err);
}

/* Bytes of this value only. */
static bool read_some(struct side *side, struct vb_stream *s, uint8_t *data, size_t len, int value)
{
	struct vb_error err;
	ssize_t n;
	bool right;

	memset(data, 0, len);
	n = vb_stream_read(s, data, len, &err);
	right = n == (ssize_t)len && data[0] == value && memcmp(data, data + 1, len - 1) == 0;
	return goes_on(side, n < 0 ? (int)n : 0, &err) && expects(side, right, "other bytes");
}

static void end(struct side *side, struct vb_stream *s)
{
	struct vb_error err;

	begins_to_end(side);
	if (side->rc)
		vb_stream_abort(s);
	else
		goes_on(side, vb_stream_close(s, &err), &err);
}

/* The victim's part; the peer's is the mirror of it. */
static void speak_first(struct side *side, struct vb_stream *s)
{
	static uint8_t kept[LARGE], other[LARGE];
	struct vb_error err;

	memset(kept, 1, sizeof(kept));
	if (goes_on(side, vb_stream_keep(s, kept, sizeof(kept), &err), &err) &&
	    write_some(side, s, kept, SMALL) && sync_all(side, s) &&
	    write_some(side, s, kept, LARGE) && read_some(side, s, other, SMALL, 2) &&
	    goes_on(side, vb_stream_fd(s, &err), &err) && read_some(side, s, kept, LARGE, 3) &&
	    read_some(side, s, other, LARGE, 4)) {
		memset(other, 5, sizeof(other));
		if (write_some(side, s, other, LARGE) && sync_all(side, s))
			vb_stream_forget(s, kept);
	}
	end(side, s);
}

static void answer(struct side *side, struct vb_stream *s)
{
	static uint8_t buffer[LARGE], out[3][LARGE];

	for (int i = 0; i < 3; i++)
		memset(out[i], 2 + i, LARGE);
	if (read_some(side, s, buffer, SMALL, 1) && read_some(side, s, buffer, LARGE, 1) &&
	    write_some(side, s, out[0], SMALL) && write_some(side, s, out[1], LARGE) &&
	    write_some(side, s, out[2], LARGE) && read_some(side, s, buffer, LARGE, 5))
		expects(side, vb_stream_read(s, buffer, 1, NULL) == 0, "no end");
	end(side, s);
}

static void victim_serves(struct side *side)
{
	struct vb_stream_options o = options();
	struct vb_stream_server *server;
	struct vb_stream *s;
	struct vb_error err;

	if (!goes_on(side, vb_stream_serve("127.0.0.1", "0", &o, &server, &err), &err))
		return;
	now_listening(side, vb_stream_server_port(server));
	if (goes_on(side, vb_stream_accept(server, &s, &err), &err))
		speak_first(side, s);
	vb_stream_server_close(server);
}

static void peer_connects(struct side *side)
{
	struct vb_stream_options o = options();
	struct vb_stream *s;
	char port[8];

	if (!port_there(side, port))
		return;
	while (vb_stream_connect("127.0.0.1", port, &o, &s, NULL) != 0)
		if (!try_again(side))
			return;
	answer(side, s);
}

static void victim_connects(struct side *side)
{
	struct vb_stream_options o = options();
	struct vb_stream *s;
	struct vb_error err;
	char port[8];

	if (port_there(side, port) &&
	    goes_on(side, vb_stream_connect("127.0.0.1", port, &o, &s, &err), &err))
		speak_first(side, s);
}

static void peer_serves(struct side *side)
{
	struct vb_stream_options o = options();
	struct vb_stream_server *server;
	struct vb_stream *s;
	struct vb_error err;
	int rc;

	if (!goes_on(side, vb_stream_serve("127.0.0.1", "0", &o, &server, &err), &err))
		return;
	now_listening(side, vb_stream_server_port(server));
	do
		rc = vb_stream_try_accept(server, &s, &err);
	while (rc == VB_ERR_AGAIN && !nobody_came(side, vb_stream_server_fd(server)));
	if (rc == 0)
		answer(side, s);
	vb_stream_server_close(server);
}

const struct life stream_lives[2] = {
	{ .name = "stream that accepts", .victim = victim_serves, .peer = peer_connects },
	{ .name = "stream that connects", .victim = victim_connects, .peer = peer_serves },
};
