/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers that fail: both ends say so and why, and nothing is left under the target's name. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

#include "transfer/session_state.h"
#include "transfer_side.h"

/* An output file that exists already, so that it shows whether it was touched. */
static const char *old_target(const struct side *side)
{
	const char *target = scratch_path(side, "target");

	make_file(target, 100, 99);
	return target;
}

static bool is_untouched(const struct side *side)
{
	return file_holds(scratch_path(side, "target"), 100, 99);
}

static int fail_at_end(void *arg, int cancel_fd, struct vb_error *err)
{
	(void)cancel_fd;
	*err = (struct vb_error){ .code = VB_ERR_IO };
	snprintf(err->operation, sizeof(err->operation), "command");
	snprintf(err->cause, sizeof(err->cause), "%s", (const char *)arg);
	return VB_ERR_IO;
}

static void told_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o =
		serve_receiving(side, &options, &(struct vb_output){ .path = old_target(side) });

	went_wrong(&o, VB_ERR_IO, "tar: exit status 2");
	CHECK(!strcmp(o.err.operation, "the sender at"));
	CHECK(is_untouched(side));
	CHECK_EQ(scratch_files(side), 1);
}

static void failing_end_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o;
	struct feed feed;

	open_feed(&feed, 100000, 1);
	o = come_sending(side, &options,
			 &(struct vb_input){ .fd = feed.fd,
					     .at_end = fail_at_end,
					     .at_end_arg = "tar: exit status 2" });
	went_wrong(&o, VB_ERR_IO, "command: tar: exit status 2");
	close_feed(&feed);
}

static void failing_end_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct drain drain;
	struct outcome o;

	open_drain(&drain);
	o = serve_receiving(side, &options,
			    &(struct vb_output){ .fd = drain.fd,
						 .at_end = fail_at_end,
						 .at_end_arg = "zfs: exit status 1" });
	went_wrong(&o, VB_ERR_IO, "command: zfs: exit status 1");
	drain.fd = -1; /* it was closed before at_end */
	CHECK(drained(&drain, 100000, 1));
}

static void told_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o;
	struct feed feed;

	open_feed(&feed, 100000, 1);
	o = come_sending(side, &options, &(struct vb_input){ .fd = feed.fd });
	went_wrong(&o, VB_ERR_IO, "zfs: exit status 1");
	CHECK(!strcmp(o.err.operation, "the receiver at"));
	close_feed(&feed);
}

/* A process that has all the descriptors it may have. */
static void no_descriptor_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_door *door = door_here(side, &options);
	struct vb_session *session = let_in(door);
	int lowest_free = dup(STDERR_FILENO);
	struct rlimit before, no_more;
	struct outcome o;

	close(lowest_free);
	getrlimit(RLIMIT_NOFILE, &before);
	no_more = (struct rlimit){ (rlim_t)lowest_free, before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &no_more);
	o = receive_by(session, &(struct vb_output){ .path = "/dev/null" });
	setrlimit(RLIMIT_NOFILE, &before);
	went_wrong(&o, VB_ERR_SYSTEM, "Too many open files");
	vb_session_close(session);
	vb_door_close(door);
}

static void told_of_no_descriptor_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o;
	struct feed feed;

	open_feed(&feed, 100000, 1);
	o = come_sending(side, &options, &(struct vb_input){ .fd = feed.fd });
	went_wrong(&o, VB_ERR_SYSTEM, "Too many open files");
	CHECK(!strcmp(o.err.operation, "the receiver at"));
	close_feed(&feed);
}

/* A file system of 1 MiB, for this process only. */
static bool mount_small(struct side *side)
{
	if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("none", side->scratch, "tmpfs", 0, "size=1m") == 0)
		return true;
	skip_test(side, "a small file system cannot be mounted here: that needs root");
	return false;
}

static void full_disk_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	bool mounted = mount_small(side);
	struct outcome o;

	side->shared->note = mounted ? 1 : 2;
	signal_step(side, 0);
	if (!mounted)
		return;
	o = serve_receiving(side, &options, &(struct vb_output){ .path = old_target(side) });
	went_wrong(&o, VB_ERR_IO, "No space left on device");
	CHECK(is_untouched(side));
	CHECK_EQ(scratch_files(side), 1);
}

static void full_disk_client(struct side *side, bool from_file)
{
	const char *source = scratch_path(side, "source");
	struct vb_transfer_options options = transferring(side);
	struct vb_input input = { .path = NULL };
	struct outcome o;
	struct feed feed;

	await_step(side, 0);
	if (side->shared->note != 1)
		return;
	make_file(source, 3 << 20, 1);
	open_feed(&feed, 3 << 20, 1);
	if (from_file)
		input.path = source;
	else
		input.fd = feed.fd;
	o = come_sending(side, &options, &input);
	went_wrong(&o, VB_ERR_IO, "No space left on device");
	CHECK(!strcmp(o.err.operation, "the receiver at"));
	CHECK(strstr(o.err.cause, "target"));
	close_feed(&feed);
}

static void full_disk_pipe_client(struct side *side)
{
	full_disk_client(side, false);
}

static void full_disk_file_client(struct side *side)
{
	full_disk_client(side, true);
}

static void unread_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o =
		serve_receiving(side, &options, &(struct vb_output){ .path = old_target(side) });

	went_wrong(&o, VB_ERR_IO, "Input/output error");
	CHECK(!strcmp(o.err.operation, "the sender at"));
	CHECK(is_untouched(side));
}

/* Our own memory as a file: it can be read up to where nothing is mapped. */
static void unreadable_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	uint8_t *bytes =
		mmap(NULL, 4 * BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	struct outcome o;

	CHECK(bytes != MAP_FAILED && fd >= 0);
	CHECK_EQ(munmap(bytes + 3 * BLOCK, BLOCK), 0);
	CHECK(lseek(fd, (off_t)(uintptr_t)bytes, SEEK_SET) >= 0);
	o = come_sending(side, &options, &(struct vb_input){ .fd = fd });
	went_wrong(&o, VB_ERR_IO, "Input/output error");
	CHECK(!strcmp(o.err.operation, "read"));
	munmap(bytes, 3 * BLOCK);
	close(fd);
}

static void nameless_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o =
		serve_receiving(side, &options, &(struct vb_output){ .path = old_target(side) });

	went_wrong(&o, VB_ERR_IO, "No such file");
	CHECK(strstr(o.err.cause, "source"));
	CHECK(is_untouched(side));
}

static void missing_source_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o = come_sending(side, &options,
					&(struct vb_input){ .path = scratch_path(side, "source") });

	went_wrong(&o, VB_ERR_IO, "No such file");
}

static void missing_directory_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	const char *target = scratch_path(side, "no/target");
	struct outcome o = serve_receiving(side, &options, &(struct vb_output){ .path = target });

	went_wrong(&o, VB_ERR_IO, "its directory does not exist");
}

static void homeless_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o;
	struct feed feed;

	open_feed(&feed, 10, 1);
	o = come_sending(side, &options, &(struct vb_input){ .fd = feed.fd });
	went_wrong(&o, VB_ERR_IO, "its directory does not exist");
	CHECK(!strcmp(o.err.operation, "the receiver at"));
	close_feed(&feed);
}

static void *read_ten(void *arg)
{
	struct drain *drain = arg;
	char bytes[10];

	CHECK_EQ(read(drain->far_fd, bytes, 10), 10);
	close(drain->far_fd);
	return NULL;
}

/* As `| head -c 10` does. */
static void early_reader_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct drain drain;
	struct outcome o;
	int fds[2];

	CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
	drain.far_fd = fds[0];
	pthread_create(&drain.thread, NULL, read_ten, &drain);
	o = serve_receiving(side, &options, &(struct vb_output){ .fd = fds[1] });
	went_wrong(&o, VB_ERR_IO, "the reader has closed the pipe");
	pthread_join(drain.thread, NULL);
	close(fds[1]);
}

static void endless_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct outcome o = come_sending(side, &options, &(struct vb_input){ .fd = zeros });

	went_wrong(&o, VB_ERR_IO, "the reader has closed the pipe");
	CHECK(!strcmp(o.err.operation, "the receiver at"));
	close(zeros);
}

/* A second, as it is promised; an emulated machine gets more. */
static uint64_t soon_ms(const struct side *side)
{
	return side->slow ? 3000 : 1000;
}

static struct outcome receive_stopped(struct side *side, struct stopper *stopper)
{
	struct vb_transfer_options options = transferring(side);
	struct moment moment = { .bytes = HELD, .act = stop_now, .arg = stopper };
	struct vb_door *door;
	struct vb_session *session;
	struct outcome o;

	if (stopper) {
		options.stop_fd = stopper->fd;
		options.progress = await_moment;
		options.progress_arg = &moment;
	}
	door = door_here(side, &options);
	session = let_in(door);
	o = receive_by(session, &(struct vb_output){ .path = old_target(side) });
	CHECK(ms_since_stop(side) < soon_ms(side));
	CHECK(is_untouched(side));
	vb_session_close(session);
	vb_door_close(door);
	return o;
}

static struct outcome send_stopped(struct side *side, struct stopper *stopper)
{
	struct vb_transfer_options options = transferring(side);
	struct moment moment = { .bytes = HELD, .act = stop_now, .arg = stopper };
	struct vb_session *session;
	struct held held;
	struct outcome o;

	if (stopper) {
		options.stop_fd = stopper->fd;
		options.progress = await_moment;
		options.progress_arg = &moment;
	}
	open_held(&held);
	session = come_in(side, &options);
	o = send_by(session, &(struct vb_input){ .fd = held.fd });
	CHECK(ms_since_stop(side) < soon_ms(side));
	vb_session_close(session);
	close_held(&held);
	return o;
}

static void stopped_by_sender_server(struct side *side)
{
	struct outcome o = receive_stopped(side, NULL);

	went_wrong(&o, VB_ERR_INTERRUPTED, "interrupted");
	CHECK(!strcmp(o.err.operation, "the sender at"));
}

static void stopping_client(struct side *side)
{
	struct stopper stopper;
	struct outcome o;

	open_stopper(&stopper, side);
	o = send_stopped(side, &stopper);
	went_wrong(&o, VB_ERR_INTERRUPTED, "interrupted");
	CHECK(!o.err.operation[0]);
	close_stopper(&stopper);
}

static void stopping_server(struct side *side)
{
	struct stopper stopper;
	struct outcome o;

	open_stopper(&stopper, side);
	o = receive_stopped(side, &stopper);
	went_wrong(&o, VB_ERR_INTERRUPTED, "interrupted");
	CHECK(!o.err.operation[0]);
	close_stopper(&stopper);
}

static void stopped_by_receiver_client(struct side *side)
{
	struct outcome o = send_stopped(side, NULL);

	went_wrong(&o, VB_ERR_INTERRUPTED, "interrupted");
	CHECK(!strcmp(o.err.operation, "the receiver at"));
}

static uint64_t busy_ms(const struct side *side)
{
	return soon_ms(side) + 1000;
}

struct busy {
	struct stopper stopper;
	uint64_t ms;
};

/* As a write to a slow disk is: nothing wakes it. */
static int stay_busy(void *arg, int cancel_fd, struct vb_error *err)
{
	struct busy *busy = arg;

	(void)cancel_fd, (void)err;
	stop_now(&busy->stopper);
	poll(NULL, 0, (int)busy->ms);
	return 0;
}

static void busy_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct busy busy = { .ms = busy_ms(side) };
	struct outcome o;

	open_stopper(&busy.stopper, side);
	options.stop_fd = busy.stopper.fd;
	o = serve_receiving(side, &options,
			    &(struct vb_output){ .path = "/dev/null",
						 .at_end = stay_busy,
						 .at_end_arg = &busy });
	went_wrong(&o, VB_ERR_INTERRUPTED, "interrupted");
	CHECK(ms_since_stop(side) >= busy.ms);
	close_stopper(&busy.stopper);
}

static void told_in_time_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o;
	struct feed feed;

	open_feed(&feed, 100000, 1);
	o = come_sending(side, &options, &(struct vb_input){ .fd = feed.fd });
	CHECK(ms_since_stop(side) < soon_ms(side));
	went_wrong(&o, VB_ERR_INTERRUPTED, "interrupted");
	CHECK(!strcmp(o.err.operation, "the receiver at"));
	close_feed(&feed);
}

/* As a command that got the ^C as well, and was quicker. */
static int fail_just_before_stop(void *timer, int cancel_fd, struct vb_error *err)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 10000000 };

	timerfd_settime(*(int *)timer, 0, &soon, NULL);
	return fail_at_end("ended by signal 2", cancel_fd, err);
}

static void stop_behind_failure_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	struct outcome o;

	options.stop_fd = timer;
	o = serve_receiving(side, &options,
			    &(struct vb_output){ .path = "/dev/null",
						 .at_end = fail_just_before_stop,
						 .at_end_arg = &timer });
	went_wrong(&o, VB_ERR_INTERRUPTED, "interrupted");
	close(timer);
}

static void stopped_behind_failure_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o;
	struct feed feed;

	open_feed(&feed, 100000, 1);
	o = come_sending(side, &options, &(struct vb_input){ .fd = feed.fd });
	went_wrong(&o, VB_ERR_INTERRUPTED, "interrupted");
	CHECK(!strcmp(o.err.operation, "the receiver at"));
	close_feed(&feed);
}

static int freeze_client(void *side, int cancel_fd, struct vb_error *err)
{
	(void)cancel_fd, (void)err;
	kill(((struct side *)side)->shared->client, SIGSTOP);
	return 0;
}

/* All is stored, but the sender does not hear of it. */
static void stopped_farewell_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct stopper stopper;
	struct vb_session *session;
	struct vb_door *door;
	struct outcome o;

	open_stopper(&stopper, side);
	options.stop_fd = stopper.fd;
	door = door_here(side, &options);
	session = let_in(door);
	o = receive_by(session, &(struct vb_output){ .path = "/dev/null",
						     .at_end = freeze_client,
						     .at_end_arg = side });
	went_well(&o, 100000);
	stop_now(&stopper);
	vb_session_close(session);
	CHECK(ms_since_stop(side) < soon_ms(side) + 500);
	kill(side->shared->client, SIGCONT);
	vb_door_close(door);
	close_stopper(&stopper);
}

static void frozen_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct feed feed;

	open_feed(&feed, 100000, 1);
	come_sending(side, &options, &(struct vb_input){ .fd = feed.fd });
	close_feed(&feed);
}

static void kill_client(void *arg)
{
	kill(((struct side *)arg)->shared->client, SIGKILL);
}

static void kill_server(void *arg)
{
	kill(((struct side *)arg)->shared->server, SIGKILL);
}

static void killing_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct moment moment = { .bytes = HELD, .act = kill_client, .arg = side };
	struct outcome o;

	options.progress = await_moment;
	options.progress_arg = &moment;
	o = serve_receiving(side, &options, &(struct vb_output){ .path = old_target(side) });
	went_wrong(&o, VB_ERR_LOST, "");
	CHECK(is_untouched(side));
	CHECK_EQ(scratch_files(side), 1);
}

static void sending_until_killed_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct held held;

	open_held(&held);
	come_sending(side, &options, &(struct vb_input){ .fd = held.fd });
}

static void receiving_until_killed_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);

	serve_receiving(side, &options, &(struct vb_output){ .path = old_target(side) });
}

static void killing_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct moment moment = { .bytes = HELD, .act = kill_server, .arg = side };
	struct held held;
	struct outcome o;

	options.progress = await_moment;
	options.progress_arg = &moment;
	open_held(&held);
	o = come_sending(side, &options, &(struct vb_input){ .fd = held.fd });
	went_wrong(&o, VB_ERR_LOST, "");
	CHECK(is_untouched(side));
	close_held(&held);
}

static const struct vb_error cable_cut = { .code = VB_ERR_LOST, .cause = "the cable was cut" };

static void break_parley(void *session)
{
	vb__channel_cancel((*(struct vb_session **)session)->channel, &cable_cut);
}

static void break_rail(void *session)
{
	vb__channel_cancel((*(struct vb_session **)session)->rails[1], &cable_cut);
}

/* One of the connections breaks in the middle, at the sender. */
static void break_client(struct side *side, void (*act)(void *))
{
	struct vb_transfer_options options = transferring(side);
	struct vb_session *session;
	struct moment moment = { .bytes = HELD, .act = act, .arg = &session };
	struct held held;
	struct outcome o;

	options.rails = 2;
	options.progress = await_moment;
	options.progress_arg = &moment;
	open_held(&held);
	session = come_in(side, &options);
	o = send_by(session, &(struct vb_input){ .fd = held.fd });
	went_wrong(&o, VB_ERR_LOST, "the cable was cut");
	vb_session_close(session);
	close_held(&held);
}

/* With data under way: somebody is inside a call on it. */
static void broken_rail_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct vb_session *session;
	struct moment moment = { .bytes = 4 * BLOCK, .act = break_rail, .arg = &session };
	struct outcome o;

	options.rails = 2;
	options.progress = await_moment;
	options.progress_arg = &moment;
	session = come_in(side, &options);
	o = send_by(session, &(struct vb_input){ .fd = zeros });
	went_wrong(&o, VB_ERR_LOST, ""); /* as either side saw it */
	vb_session_close(session);
	close(zeros);
}

static void broken_parley_client(struct side *side)
{
	break_client(side, break_parley);
}

static void deserted_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o =
		serve_receiving(side, &options, &(struct vb_output){ .path = old_target(side) });

	went_wrong(&o, VB_ERR_LOST, "");
	CHECK(is_untouched(side));
}

static void deserting_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);

	vb_session_close(come_in(side, &options));
}

static void both_send_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o;
	struct feed feed;

	open_feed(&feed, 10, 1);
	o = serve_sending(side, &options, &(struct vb_input){ .fd = feed.fd });
	went_wrong(&o, VB_ERR_INVALID, "both sides want to send");
	close_feed(&feed);
}

static void both_send_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct outcome o;
	struct feed feed;

	open_feed(&feed, 10, 1);
	o = come_sending(side, &options, &(struct vb_input){ .fd = feed.fd });
	went_wrong(&o, VB_ERR_INVALID, "both sides want to send");
	close_feed(&feed);
}

static struct vb_transfer_options impatient(struct side *side)
{
	struct vb_transfer_options options = transferring(side);

	options.connection.connect_timeout_ms = side->slow ? 3000 : 500;
	return options;
}

static void both_receive_server(struct side *side)
{
	struct vb_transfer_options options = impatient(side);
	struct outcome o =
		serve_receiving(side, &options, &(struct vb_output){ .path = old_target(side) });

	went_wrong(&o, VB_ERR_TIMEOUT, "wants to receive, too");
	CHECK(is_untouched(side));
}

static void both_receive_client(struct side *side)
{
	struct vb_transfer_options options = impatient(side);
	struct outcome o = come_receiving(
		side, &options, &(struct vb_output){ .path = scratch_path(side, "other") });

	went_wrong(&o, VB_ERR_TIMEOUT, "wants to receive, too");
}

static void twice_server(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_output output = { .path = scratch_path(side, "target") };
	struct vb_door *door = door_here(side, &options);
	struct vb_session *session = let_in(door);
	struct outcome o = receive_by(session, &output);

	went_well(&o, 10);
	o = receive_by(session, &output);
	went_wrong(&o, VB_ERR_INVALID, "has had its transfer");
	vb_session_close(session);
	vb_door_close(door);
}

static void twice_client(struct side *side)
{
	struct vb_transfer_options options = transferring(side);
	struct vb_session *session = come_in(side, &options);
	struct outcome o;
	struct feed feed;

	open_feed(&feed, 10, 1);
	o = send_by(session, &(struct vb_input){ .fd = feed.fd });
	went_well(&o, 10);
	o = send_by(session, &(struct vb_input){ .fd = feed.fd });
	went_wrong(&o, VB_ERR_INVALID, "has had its transfer");
	vb_session_close(session);
	close_feed(&feed);
}

const struct test failure_tests[] = {
	{ "failing_end_of_the_sender_is_told_at_both", told_server, failing_end_client },
	{ "failing_end_of_the_receiver_is_told_at_both", failing_end_server, told_client },
	{ "want_of_descriptors_is_told_at_both", no_descriptor_server,
	  told_of_no_descriptor_client },
	{ "disk_full_of_the_receiver_is_told_at_both", full_disk_server, full_disk_pipe_client },
	{ "disk_too_small_is_told_beforehand", full_disk_server, full_disk_file_client },
	{ "read_error_in_the_middle_is_told_at_both", unread_server, unreadable_client },
	{ "missing_source_is_told_at_both", nameless_server, missing_source_client },
	{ "missing_directory_is_told_at_both", missing_directory_server, homeless_client },
	{ "reader_that_closes_early_stops_both", early_reader_server, endless_client },
	{ "stopping_the_sender_stops_both_soon", stopped_by_sender_server, stopping_client },
	{ "stopping_the_receiver_stops_both_soon", stopping_server, stopped_by_receiver_client },
	{ "stop_is_told_while_a_worker_cannot_be_woken", busy_server, told_in_time_client },
	{ "stop_ends_the_farewell_to_a_frozen_peer", stopped_farewell_server, frozen_client },
	{ "stop_goes_before_a_failure_that_was_seen_first", stop_behind_failure_server,
	  stopped_behind_failure_client },
	{ "killed_sender_leaves_the_target_untouched", killing_server, sending_until_killed_client,
	  RETURNS, DIES },
	{ "killed_receiver_leaves_the_target_untouched", receiving_until_killed_server,
	  killing_client, DIES, RETURNS },
	{ "peer_that_leaves_without_a_transfer_is_lost", deserted_server, deserting_client },
	{ "broken_parley_ends_both", deserted_server, broken_parley_client },
	{ "broken_rail_ends_both", deserted_server, broken_rail_client },
	{ "both_sides_sending_is_told", both_send_server, both_send_client },
	{ "both_sides_receiving_is_told", both_receive_server, both_receive_client },
	{ "session_carries_one_transfer", twice_server, twice_client },
	{ NULL },
};
