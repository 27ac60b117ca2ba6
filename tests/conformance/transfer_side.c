/* SPDX-License-Identifier: Apache-2.0 */
#include "transfer_side.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "core/clock.h"
#include "core/failure.h"
#include "transfer/parley.h"

#define KEY "sesame"

static struct vb__secret stretched;
static bool is_stretched;

int __real_vb__secret_from_key(struct vb__secret *secret, const void *key, size_t key_bytes,
			       struct vb_error *err);
int __wrap_vb__secret_from_key(struct vb__secret *secret, const void *key, size_t key_bytes,
			       struct vb_error *err);

void stretch_key(void)
{
	is_stretched = __real_vb__secret_from_key(&stretched, KEY, sizeof(KEY) - 1, NULL) == 0;
}

int __wrap_vb__secret_from_key(struct vb__secret *secret, const void *key, size_t key_bytes,
			       struct vb_error *err)
{
	bool known = is_stretched && key && key_bytes == sizeof(KEY) - 1 &&
		     memcmp(key, KEY, key_bytes) == 0;

	if (!known)
		return __real_vb__secret_from_key(secret, key, key_bytes, err);
	vb__error_clear(err);
	*secret = stretched;
	return 0;
}

struct vb_transfer_options transferring(const struct side *side)
{
	return (struct vb_transfer_options){
		.connection = side->options,
		.key = KEY,
		.key_bytes = sizeof(KEY) - 1,
		.block_bytes = BLOCK,
		.window_blocks = 4,
		.rails = 1,
		.workers = 2,
	};
}

struct vb_door *door_here(struct side *side, const struct vb_transfer_options *options)
{
	struct vb_door *door;
	struct vb_error err;

	if (vb_door_open(side->address, "0", options, &door, &err) != 0)
		fail_with(&err, "open a door");
	side->shared->port = vb_door_port(door);
	sem_post(&side->shared->listening);
	return door;
}

struct vb_session *let_in(struct vb_door *door)
{
	struct vb_session *session;
	struct vb_error err;

	if (vb_door_wait(door, &session, &err) != 0)
		fail_with(&err, "wait at the door");
	return session;
}

struct vb_session *come_in(struct side *side, const struct vb_transfer_options *options)
{
	struct vb_session *session;
	struct vb_error err;

	if (vb_session_connect(side->address, port_there(side), options, &session, &err) != 0)
		fail_with(&err, "come to the door");
	return session;
}

struct outcome send_by(struct vb_session *session, const struct vb_input *input)
{
	struct outcome o;

	o.rc = vb_session_send(session, input, &o.report, &o.err);
	CHECK_EQ(o.rc, o.err.code);
	return o;
}

struct outcome receive_by(struct vb_session *session, const struct vb_output *output)
{
	struct outcome o;

	o.rc = vb_session_receive(session, output, &o.report, &o.err);
	CHECK_EQ(o.rc, o.err.code);
	return o;
}

struct outcome serve_receiving(struct side *side, const struct vb_transfer_options *options,
			       const struct vb_output *output)
{
	struct vb_door *door = door_here(side, options);
	struct vb_session *session = let_in(door);
	struct outcome o = receive_by(session, output);

	vb_session_close(session);
	vb_door_close(door);
	return o;
}

struct outcome serve_sending(struct side *side, const struct vb_transfer_options *options,
			     const struct vb_input *input)
{
	struct vb_door *door = door_here(side, options);
	struct vb_session *session = let_in(door);
	struct outcome o = send_by(session, input);

	vb_session_close(session);
	vb_door_close(door);
	return o;
}

struct outcome come_receiving(struct side *side, const struct vb_transfer_options *options,
			      const struct vb_output *output)
{
	struct vb_session *session = come_in(side, options);
	struct outcome o = receive_by(session, output);

	vb_session_close(session);
	return o;
}

struct outcome come_sending(struct side *side, const struct vb_transfer_options *options,
			    const struct vb_input *input)
{
	struct vb_session *session = come_in(side, options);
	struct outcome o = send_by(session, input);

	vb_session_close(session);
	return o;
}

void went_well(const struct outcome *o, uint64_t bytes)
{
	if (o->rc)
		fail_with(&o->err, "transfer");
	CHECK_EQ(o->report.bytes, bytes);
}

void is_told(const struct vb_error *err, enum vb_err code, const char *words)
{
	char line[VB_ERROR_LINE_MAX];

	if (err->code == code && strstr(vb_error_format(err, line, sizeof(line)), words))
		return;
	printf("# %s with \"%s\" was expected\n", vb_err_name(code), words);
	fail_with(err, "but it was");
}

void went_wrong(const struct outcome *o, enum vb_err code, const char *words)
{
	is_told(&o->err, code, words);
}

void same_digest(struct side *side, const struct outcome *mine, bool server)
{
	if (server) {
		await_step(side, 3);
		CHECK_EQ(side->shared->number[0], mine->report.digest);
		CHECK_EQ(side->shared->number[1], mine->report.blocks);
		CHECK_EQ(side->shared->number[2], mine->report.hole_bytes);
		signal_step(side, 2);
	} else {
		side->shared->number[0] = mine->report.digest;
		side->shared->number[1] = mine->report.blocks;
		side->shared->number[2] = mine->report.hole_bytes;
		signal_step(side, 3);
		await_step(side, 2);
	}
}

/* ---- Files ---- */

const char *scratch_path(const struct side *side, const char *name)
{
	static char paths[4][256];
	static unsigned next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", side->scratch, name);
	return path;
}

static void write_whole(int fd, const uint8_t *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = write(fd, bytes + at, len - at);

		if (n <= 0)
			return; /* the reader is gone: the test will tell */
		at += (size_t)n;
	}
}

static uint8_t *filled(size_t len, uint32_t seed)
{
	uint8_t *bytes = malloc(len + 8);

	CHECK(bytes);
	fill(bytes, len, seed);
	return bytes;
}

void make_file(const char *path, size_t len, uint32_t seed)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	uint8_t *bytes = filled(len, seed);

	CHECK(fd >= 0);
	write_whole(fd, bytes, len);
	CHECK_EQ(close(fd), 0);
	free(bytes);
}

/* All that can be read there, up to 64 MiB. */
static uint8_t *read_whole(int fd, size_t *len)
{
	size_t room = 1 << 16;
	uint8_t *bytes = malloc(room);
	ssize_t n;

	*len = 0;
	while ((n = read(fd, bytes + *len, room - *len)) > 0) {
		*len += (size_t)n;
		if (*len == room)
			bytes = realloc(bytes, room *= 2);
		CHECK(bytes && room <= 64u << 20);
	}
	return bytes;
}

bool file_holds(const char *path, size_t len, uint32_t seed)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *bytes;
	size_t found;
	bool same;

	if (fd < 0)
		return false;
	bytes = read_whole(fd, &found);
	same = found == len && is_filled(bytes, len, seed);
	free(bytes);
	close(fd);
	return same;
}

int scratch_files(const struct side *side)
{
	DIR *dir = opendir(side->scratch);
	int n = -2;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* ---- Pipes ---- */

static void open_pipe(int *reads, int *writes)
{
	int fds[2];

	CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
	*reads = fds[0];
	*writes = fds[1];
}

static void *run_feed(void *arg)
{
	struct feed *feed = arg;
	uint8_t *bytes = filled(feed->len, feed->seed);

	write_whole(feed->far_fd, bytes, feed->len);
	close(feed->far_fd);
	free(bytes);
	return NULL;
}

void open_feed(struct feed *feed, size_t len, uint32_t seed)
{
	*feed = (struct feed){ .len = len, .seed = seed };
	open_pipe(&feed->fd, &feed->far_fd);
	CHECK_EQ(pthread_create(&feed->thread, NULL, run_feed, feed), 0);
}

void close_feed(struct feed *feed)
{
	close(feed->fd);
	pthread_join(feed->thread, NULL);
}

static void *run_drain(void *arg)
{
	struct drain *drain = arg;

	drain->bytes = read_whole(drain->far_fd, &drain->len);
	return NULL;
}

void open_drain(struct drain *drain)
{
	*drain = (struct drain){ .len = 0 };
	open_pipe(&drain->far_fd, &drain->fd);
	CHECK_EQ(pthread_create(&drain->thread, NULL, run_drain, drain), 0);
}

void end_drain(struct drain *drain)
{
	close(drain->fd);
	pthread_join(drain->thread, NULL);
	close(drain->far_fd);
}

bool drained(struct drain *drain, size_t len, uint32_t seed)
{
	bool same;

	end_drain(drain);
	same = drain->len == len && is_filled(drain->bytes, len, seed);
	free(drain->bytes);
	return same;
}

void open_held(struct held *held)
{
	uint8_t *bytes = filled(HELD, 1);

	open_pipe(&held->fd, &held->far_fd);
	CHECK_EQ(write(held->far_fd, bytes, HELD), HELD);
	free(bytes);
}

void close_held(struct held *held)
{
	close(held->fd);
	close(held->far_fd);
}

/* ---- In the middle ---- */

void await_moment(void *arg, const struct vb_progress *progress)
{
	struct moment *moment = arg;

	if (moment->over || progress->bytes < moment->bytes)
		return;
	moment->over = true;
	moment->act(moment->arg);
}

void open_stopper(struct stopper *stopper, struct side *side)
{
	stopper->shared = side->shared;
	open_pipe(&stopper->fd, &stopper->far_fd);
}

void stop_now(void *arg)
{
	struct stopper *stopper = arg;

	stopper->shared->number[3] = vb__now_ns();
	CHECK_EQ(write(stopper->far_fd, "x", 1), 1);
}

void close_stopper(struct stopper *stopper)
{
	close(stopper->fd);
	close(stopper->far_fd);
}

uint64_t ms_since_stop(const struct side *side)
{
	CHECK(side->shared->number[3]);
	return (vb__now_ns() - side->shared->number[3]) / 1000000u;
}
