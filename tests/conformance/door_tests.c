/* SPDX-License-Identifier: Apache-2.0 */
/* Doors: who is let in, who is not, and that those do not disturb. */
#include <errno.h>

#include "core/clock.h"
#include "transfer/session_state.h"
#include "transfer_side.h"

#define TRANSFERRED 1000u

static void receive_rightful(struct side *side, struct vb_door *door)
{
	const char *target = scratch_path(side, "target");
	struct vb_session *session = let_in(door);
	struct outcome o = receive_by(session, &(struct vb_output){ .path = target });

	went_well(&o, TRANSFERRED);
	CHECK(file_holds(target, TRANSFERRED, 1));
	vb_session_close(session);
}

static void send_rightful(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	make_file(source, TRANSFERRED, 1);
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	went_well(&o, TRANSFERRED);
}

/* Warnings of the door, counted. */
static void count_warnings(void *arg, enum vb_log_level level, const char *line)
{
	if (level == VB_LOG_WARNING && strstr(line, "was turned away"))
		++*(unsigned *)arg;
}

static void wrong_key_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	unsigned warnings = 0;
	struct vb_door *door;

	options.connection.log = count_warnings;
	options.connection.log_arg = &warnings;
	options.connection.log_level = VB_LOG_WARNING;
	door = door_here(side, &options);
	receive_rightful(side, door);
	CHECK_EQ(warnings, 1);
	vb_door_close(door);
}

static void wrong_key_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_session *session;
	struct vb_error err;

	options.key = "sesamE";
	CHECK_EQ(vb_session_connect(side->address, port_there(side), &options, &session, &err),
		 VB_ERR_KEY);
	is_told(&err, VB_ERR_KEY, "the peer does not have the same key");
	CHECK(strstr(err.hint, "same key"));
	send_rightful(side);
}

static struct vb_channel *stranger(struct side *side)
{
	side->options.max_message_bytes = 4096;
	side->options.depth = 4;
	return connect_there(side);
}

static void talk_nonsense(struct vb_channel *ch)
{
	uint8_t noise[1000];

	fill(noise, sizeof(noise), 42);
	vb_channel_send(ch, noise, sizeof(noise), NULL);
}

static void steadfast_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_door *door = door_here(side, &options);

	receive_rightful(side, door);
	vb_door_close(door);
}

/* Guesses as fast as it can; the door has 16 places, and a wrong guess keeps one of them for a second. */
static void guessing_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_session *session;
	uint64_t began = vb__now_ns();

	options.key = "a key that takes no time to stretch";
	options.key_bytes = strlen(options.key);
	options.key_is_random = true;
	for (unsigned i = 0; i < 2 * 16 + 1; i++)
		CHECK_EQ(vb_session_connect(side->address, port_there(side), &options, &session,
					    NULL),
			 VB_ERR_KEY);
	CHECK(vb__now_ns() - began >= vb__ms(2000));
	send_rightful(side);
}

static uint32_t short_ms(const struct side *side)
{
	return side->slow ? 4000 : 1000;
}

/* Comes late, and says nothing. */
static void late_silent_server(struct side *side)
{
	struct vb_listener *listener = listen_here(side);
	struct vb_channel *ch;
	char port[8];

	snprintf(port, sizeof(port), "%d", vb_listener_port(listener));
	vb_listener_close(listener);
	signal_step(side, 0);
	sleep_ms(short_ms(side) * 6 / 10);
	CHECK_EQ(vb_listener_open(side->address, port, &side->options, &listener, NULL), 0);
	ch = accept_one(side, listener);
	await_step(side, 1);
	vb_channel_abort(ch);
	vb_listener_close(listener);
}

static void hurried_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_session *session;
	struct vb_error err;
	uint64_t began;

	options.connection.connect_timeout_ms = short_ms(side);
	await_step(side, 0);
	began = vb__now_ns();
	vb_session_connect(side->address, port_there(side), &options, &session, &err);
	CHECK(vb__now_ns() - began < vb__ms(short_ms(side) * 13 / 10));
	is_told(&err, VB_ERR_TIMEOUT, "it does not answer");
	signal_step(side, 1);
}

/* Gone, when it has let somebody in. */
static void closed_door_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb__words words = { .kind = VB__WORDS_READY };
	struct vb_door *door = door_here(side, &options);
	struct vb_session *session = let_in(door);
	struct vb_error err;

	vb__error_clear(&err);
	CHECK_EQ(vb__session_answer(session, false, &err), 0);
	vb_door_close(door);
	CHECK_EQ(vb__session_say(session, &words, &err), 0);
	CHECK_EQ(vb__session_expect(session, VB__WORDS_VERDICT, &words, UINT64_MAX, &err),
		 VB_ERR_LOST);
	vb_session_close(session);
}

/* Not VB_ERR_REFUSED: that is said of what somebody will not do. */
static void shut_out_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	make_file(source, TRANSFERRED, 1);
	options.connection.connect_timeout_ms = short_ms(side);
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	went_wrong(&o, VB_ERR_LOST, "refused");
}

static void after_silent_client(struct side *side)
{
	struct vb_channel *silent = stranger(side);

	send_rightful(side);
	vb_channel_abort(silent);
}

static void after_nonsense_client(struct side *side)
{
	struct vb_channel *babbling = stranger(side);

	talk_nonsense(babbling);
	send_rightful(side);
	vb_channel_abort(babbling);
}

#define CALLERS 100
#define STALE_RAILS 8

/* What the log says of those who were turned away or refused. */
struct told {
	struct side *side;
	unsigned lines, callers;
};

static void count_told(void *arg, enum vb_log_level level, const char *line)
{
	struct told *told = arg;
	unsigned before = told->callers;
	unsigned long more;
	char *rest;

	(void)level;
	more = strtoul(line, &rest, 10);
	told->lines++;
	told->callers += strncmp(rest, " more like this: ", 17) == 0 ? (unsigned)more : 1;
	if (before < CALLERS + STALE_RAILS && told->callers >= CALLERS + STALE_RAILS)
		signal_step(told->side, 0);
}

static void taciturn_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct told told = { .side = side };
	struct vb_door *door;

	options.connection.log = count_told;
	options.connection.log_arg = &told;
	options.connection.log_level = VB_LOG_WARNING;
	door = door_here(side, &options);
	receive_rightful(side, door);
	vb_door_close(door);
	CHECK(told.lines < CALLERS / 2);
}

/* As the rails of a transfer that has failed. */
static void come_with_stale_pass(struct side *side)
{
	struct vb__settings settings;
	struct vb_channel *ch;

	side->options.listener_is_up = true;
	CHECK_EQ(vb__settings_from(&settings, &side->options, NULL), 0);
	memset(settings.token, 1, sizeof(settings.token));
	CHECK_EQ(vb__channel_connect(side->address, port_there(side), &settings, &ch, NULL),
		 VB_ERR_REFUSED);
}

/* Waits until all of them were told of, while nobody else comes. */
static void after_flood_client(struct side *side)
{
	for (int i = 0; i < CALLERS; i++) {
		struct vb_channel *babbling = stranger(side);

		talk_nonsense(babbling);
		vb_channel_abort(babbling);
	}
	for (int i = 0; i < STALE_RAILS; i++)
		come_with_stale_pass(side);
	await_step(side, 0);
	send_rightful(side);
}

static void after_broken_client(struct side *side)
{
	struct vb_channel *leaving = stranger(side), *ending = stranger(side);

	vb_channel_abort(leaving);
	vb_channel_try_finish(ending, NULL);
	send_rightful(side);
	vb_channel_abort(ending);
}

/* A line of /proc/self/status, in KiB. */
static long memory_kib(const char *what)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[128];
	long kib = 0;

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, what, strlen(what)))
			kib = strtol(line + strlen(what) + 1, NULL, 10);
	fclose(file);
	return kib;
}

static void crowded_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_door *door = door_here(side, &options);
	long before = memory_kib("VmRSS");

	receive_rightful(side, door);
	CHECK(memory_kib("VmRSS") - before < 64 << 10);
	vb_door_close(door);
	signal_step(side, 0);
}

#define CROWD 20

/* More than are listened to at once; some of them come to nothing only after a while. */
static void after_crowd_client(struct side *side)
{
	struct vb_channel *crowd[CROWD] = { NULL };
	uint64_t start = vb__now_ns();

	for (int i = 0; i < CROWD; i++) {
		crowd[i] = stranger(side);
		if (i % 3 == 1)
			talk_nonsense(crowd[i]);
		if (i % 3 == 2) {
			vb_channel_abort(crowd[i]);
			crowd[i] = NULL;
		}
	}
	send_rightful(side);
	CHECK(vb__now_ns() - start < vb__ms(side->slow ? 30000 : 10000));
	await_step(side, 0);
	for (int i = 0; i < CROWD; i++)
		vb_channel_abort(crowd[i]);
}

#define SILENT 100

/* All of them connect and say nothing: they would be in the way for a long time, if it were not for somebody who speaks. */
static void after_silent_crowd_client(struct side *side)
{
	struct vb_channel *crowd[SILENT] = { NULL };
	int count = side->slow ? 10 : SILENT;
	uint64_t start = vb__now_ns();

	for (int i = 0; i < count; i++)
		crowd[i] = stranger(side);
	send_rightful(side);
	CHECK(vb__now_ns() - start < vb__ms(side->slow ? 30000 : 6000));
	for (int i = 0; i < count; i++)
		vb_channel_abort(crowd[i]);
}

/* As a door does that takes somebody slow for a stranger. */
static void hasty_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_listener *listener = listen_here(side);
	struct vb_door *door;
	char port[8];

	vb_channel_abort(accept_one(side, listener));
	snprintf(port, sizeof(port), "%d", vb_listener_port(listener));
	vb_listener_close(listener);
	CHECK_EQ(vb_door_open(side->address, port, &options, &door, NULL), 0);
	receive_rightful(side, door);
	vb_door_close(door);
}

/* Strangers come while a transfer is in its middle. */
static void disturbed_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o = serve_receiving(
		side, &options, &(struct vb_output){ .path = scratch_path(side, "target") });

	went_well(&o, HELD);
	CHECK(file_holds(scratch_path(side, "target"), HELD, 1));
}

struct disturbance {
	struct side *side;
	struct held held;
};

static void disturb(void *arg)
{
	struct disturbance *d = arg;
	struct vb_channel *ch;

	d->side->options.connect_timeout_ms = 100;
	/* siw's kernel part gives up a connection only after 10 s. */
	for (int i = 0; i < (d->side->slow ? 1 : 3); i++)
		if (vb_channel_connect(d->side->address, port_there(d->side), &d->side->options,
				       &ch, NULL) == 0)
			vb_channel_abort(ch);
	close(d->held.far_fd);
}

static void disturbing_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct disturbance d = { .side = side };
	struct moment moment = { .bytes = HELD, .act = disturb, .arg = &d };
	struct outcome o;

	open_held(&d.held);
	options.progress = await_moment;
	options.progress_arg = &moment;
	o = come_sending(side, &options, &(struct vb_input){ .fd = d.held.fd });
	went_well(&o, HELD);
	close(d.held.fd);
}

static void *stop_at_step(void *arg)
{
	struct side *side = ((void **)arg)[0];

	await_step(side, 1);
	stop_now(((void **)arg)[1]);
	return NULL;
}

/* The door is left by a stop while strangers stand in it. */
static void leave_door(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_session *session;
	struct stopper stopper;
	struct vb_door *door;
	struct vb_error err;
	pthread_t thread;
	void *args[] = { side, &stopper };

	open_stopper(&stopper, side);
	options.stop_fd = stopper.fd;
	pthread_create(&thread, NULL, stop_at_step, args);
	door = door_here(side, &options);
	signal_step(side, 0);
	CHECK_EQ(vb_door_wait(door, &session, &err), VB_ERR_INTERRUPTED);
	CHECK(ms_since_stop(side) < (side->slow ? 3000 : 1000));
	is_told(&err, VB_ERR_INTERRUPTED, "interrupted");
	vb_door_close(door);
	pthread_join(thread, NULL);
	close_stopper(&stopper);
	signal_step(side, 2);
}

static void left_door_server(struct side *side)
{
	int fds;

	leave_door(side);
	fds = count_fds();
	leave_door(side);
	CHECK_EQ(count_fds(), fds);
}

static void lingering_client(struct side *side)
{
	for (int round = 0; round < 2; round++) {
		struct vb_channel *strangers[4];

		await_step(side, 0);
		for (int i = 0; i < 4; i++)
			strangers[i] = stranger(side);
		talk_nonsense(strangers[2]);
		signal_step(side, 1);
		await_step(side, 2);
		for (int i = 0; i < 4; i++)
			vb_channel_abort(strangers[i]);
	}
}

static void nobody(struct side *side)
{
	(void)side;
}

static void unvisited_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_session *session;
	struct vb_door *door;
	struct vb_error err;

	options.wait_timeout_ms = 50;
	door = door_here(side, &options);
	CHECK_EQ(vb_door_wait(door, &session, &err), VB_ERR_TIMEOUT);
	is_told(&err, VB_ERR_TIMEOUT, "nobody came who knows the key");
	CHECK_EQ(vb_door_wait(door, &session, &err), VB_ERR_TIMEOUT);
	vb_door_close(door);
}

static void in_vain_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_session *session;
	struct vb_error err;

	options.connection.connect_timeout_ms = side->slow ? 2000 : 300;
	CHECK_EQ(vb_session_connect(side->address, "9", &options, &session, &err), VB_ERR_REFUSED);
	is_told(&err, VB_ERR_REFUSED, "port 9");
	CHECK(strstr(err.hint, "start the receiving side"));
}

static void stopped_in_vain_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_session *session;
	struct stopper stopper;
	struct vb_error err;

	open_stopper(&stopper, side);
	stop_now(&stopper);
	options.stop_fd = stopper.fd;
	CHECK_EQ(vb_session_connect(side->address, "9", &options, &session, &err),
		 VB_ERR_INTERRUPTED);
	CHECK(ms_since_stop(side) < (side->slow ? 3000 : 1000));
	close_stopper(&stopper);
}

/* As by a name server that is slow and does not know it. */
static void stopped_while_looking_up_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct stopper stopper;
	struct vb_door *door;
	struct vb_error err;

	open_stopper(&stopper, side);
	CHECK_EQ(vb_door_open("no..name", "0", &options, &door, &err), VB_ERR_RESOLVE);
	options.stop_fd = stopper.fd;
	stop_now(&stopper);
	CHECK_EQ(vb_door_open("no..name", "0", &options, &door, &err), VB_ERR_INTERRUPTED);
	is_told(&err, VB_ERR_INTERRUPTED, "interrupted");
	close_stopper(&stopper);
}

static void busy_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_door *door = door_here(side, &options);
	int fds = 0;

	for (int i = 0; i < 4; i++) {
		receive_rightful(side, door);
		if (i == 1)
			fds = count_fds();
	}
	CHECK_EQ(count_fds(), fds);
	vb_door_close(door);
}

static void returning_client(struct side *side)
{
	int fds = 0;

	for (int i = 0; i < 4; i++) {
		send_rightful(side);
		if (i == 1)
			fds = count_fds();
	}
	CHECK_EQ(count_fds(), fds);
}

static void expect_invalid(struct side *side, const struct vb_transfer_options *options,
			   const char *name)
{
	struct vb_session *session;
	struct vb_door *door;
	struct vb_error err;

	CHECK_EQ(vb_door_open(side->address, "0", options, &door, &err), VB_ERR_INVALID);
	is_told(&err, VB_ERR_INVALID, name);
	CHECK_EQ(vb_session_connect(side->address, "9", options, &session, &err), VB_ERR_INVALID);
	is_told(&err, VB_ERR_INVALID, name);
}

static void options_client(struct side *side)
{
	const struct vb_transfer_options good = transferring(side);
	struct vb_transfer_options wrong[10];
	static const char *const names[] = {
		"block_bytes", "block_bytes", "block_bytes", "window_blocks",	"rails",
		"workers",     "key",	      "key",	     "peer_timeout_ms", "key"
	};
	struct vb_session *session;
	struct vb_error err;
	char longest[300];

	for (int i = 0; i < 10; i++)
		wrong[i] = good;
	wrong[0].block_bytes = VB_BLOCK_MIN - 1;
	wrong[1].block_bytes = VB_BLOCK_MIN + 1;
	wrong[2].block_bytes = VB_BLOCK_MAX + VB_BLOCK_MIN;
	wrong[3].window_blocks = VB_WINDOW_MAX + 1;
	wrong[4].rails = VB_RAILS_MAX + 1;
	wrong[5].workers = VB_WORKERS_MAX + 1;
	wrong[6].key = NULL;
	wrong[7].key_bytes = 0;
	wrong[8].connection.peer_timeout_ms = 1;
	wrong[9].key_is_random = true; /* it is too short for that */
	for (int i = 0; i < 10; i++)
		expect_invalid(side, &wrong[i], names[i]);
	expect_invalid(side, NULL, "options");
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	CHECK_EQ(vb_session_connect(NULL, "9", &good, &session, &err), VB_ERR_INVALID);
	CHECK_EQ(vb_session_connect("host", NULL, &good, &session, &err), VB_ERR_INVALID);
	CHECK_EQ(vb_session_connect(longest, "9", &good, &session, &err), VB_ERR_INVALID);
	is_told(&err, VB_ERR_INVALID, "host is too long");
}

const struct test door_tests[] = {
	{ "wrong_key_is_told_and_the_wait_goes_on", wrong_key_server, wrong_key_client },
	{ "wrong_keys_cost_time", steadfast_server, guessing_client },
	{ "time_for_connecting_is_for_the_proof_too", late_silent_server, hurried_client },
	{ "refused_after_having_been_let_in_is_lost", closed_door_server, shut_out_client,
	  .only = "ofi" },
	{ "silent_stranger_does_not_keep_the_rightful_out", steadfast_server, after_silent_client },
	{ "babbling_stranger_does_not_keep_the_rightful_out", steadfast_server,
	  after_nonsense_client },
	{ "leaving_strangers_do_not_keep_the_rightful_out", steadfast_server, after_broken_client },
	{ "flood_of_strangers_is_no_flood_of_words", taciturn_server, after_flood_client,
	  .only = "ofi" },
	{ "crowd_of_strangers_does_not_keep_the_rightful_out", crowded_server, after_crowd_client },
	{ "silent_crowd_does_not_keep_the_rightful_out", steadfast_server,
	  after_silent_crowd_client },
	{ "sender_that_was_hung_up_on_knocks_again", hasty_server, send_rightful },
	{ "strangers_do_not_disturb_a_transfer", disturbed_server, disturbing_client },
	{ "door_closes_in_front_of_strangers", left_door_server, lingering_client },
	{ "waiting_for_nobody_ends_in_time", unvisited_server, nobody },
	{ "coming_to_no_door_tells_what_to_do", nobody, in_vain_client },
	{ "coming_to_no_door_can_be_stopped", nobody, stopped_in_vain_client },
	{ "stop_goes_before_a_name_that_was_not_found", stopped_while_looking_up_server, nobody },
	{ "door_serves_one_after_another", busy_server, returning_client },
	{ "options_out_of_range_are_told_by_name", nobody, options_client },
	{ NULL },
};
