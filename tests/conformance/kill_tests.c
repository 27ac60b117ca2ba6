/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 of either side of a transfer at any moment, many times: the other one ends soon, and what stands under
 * the target's name is whole, or what it was before. A round is two processes, made and killed by a third one. Both sides of
 * the test play such rounds, so there are two at a time. As the tools go through it: see test-pipe-kills.
 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "core/clock.h"
#include "transfer_side.h"

#define WHOLE 600000u
#define OLD 70000u
#define BYTES_PER_SECOND 2000000u /* so that it takes 300 ms */
#define DELAY_MS 400u
#define PEER_TIMEOUT_MS 5000u
#define ALL_ROUNDS_S 180u /* more than the harness gives a test */

struct round {
	struct side side; /* with a directory of this process's own */
	unsigned number;
	const char *source, *target;
	int port[2], up[2]; /* pipes: where the receiver listens, and that the sender was let in */
	pid_t sender, receiver;
};

/* For a peer that is killed before it has come. */
static uint32_t waiting_ms(const struct round *r)
{
	return r->side.slow ? 3000 : 2000;
}

static struct vb_transfer_options hasty(const struct round *r)
{
	struct vb_transfer_options options = transferring(&r->side);

	options.rails = 1 + r->number % 3;
	options.max_bytes_per_second = BYTES_PER_SECOND;
	options.wait_timeout_ms = options.connection.connect_timeout_ms = waiting_ms(r);
	options.connection.peer_timeout_ms = PEER_TIMEOUT_MS;
	return options;
}

static int receive_file(struct round *r)
{
	struct vb_transfer_options options = hasty(r);
	struct vb_session *session = NULL;
	struct vb_door *door;
	int port, rc;

	close(r->up[1]);
	if (vb_door_open(r->side.address, "0", &options, &door, NULL) != 0)
		return 1;
	port = vb_door_port(door);
	rc = write(r->port[1], &port, sizeof(port)) != sizeof(port) ||
	     vb_door_wait(door, &session, NULL) != 0 ||
	     vb_session_receive(session, &(struct vb_output){ .path = r->target }, NULL, NULL) != 0;
	vb_session_close(session);
	vb_door_close(door);
	return rc;
}

static int send_file(struct round *r)
{
	struct vb_transfer_options options = hasty(r);
	struct vb_session *session = NULL;
	char name[16];
	int port, rc;

	close(r->port[1]);
	if (read(r->port[0], &port, sizeof(port)) != sizeof(port))
		return 1; /* it was killed */
	snprintf(name, sizeof(name), "%d", port);
	rc = vb_session_connect(r->side.address, name, &options, &session, NULL) != 0 ||
	     write(r->up[1], "", 1) != 1 ||
	     vb_session_send(session, &(struct vb_input){ .path = r->source }, NULL, NULL) != 0;
	vb_session_close(session);
	return rc;
}

static pid_t start(struct round *r, int (*play)(struct round *r))
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return pid;
	alarm(30);
	close(r->up[0]);
	_exit(play(r));
}

static void start_both(struct round *r)
{
	CHECK_EQ(pipe(r->port), 0);
	CHECK_EQ(pipe(r->up), 0);
	r->receiver = start(r, receive_file);
	r->sender = start(r, send_file);
	close(r->port[0]);
	close(r->port[1]);
	close(r->up[1]);
}

/* As waitpid has it; or -1 if it is still there when it is time. */
static int end_of(pid_t pid, uint32_t limit_ms)
{
	uint64_t deadline = vb__now_ns() + vb__ms(limit_ms);
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (vb__now_ns() >= deadline)
			return -1;
		sleep_ms(5);
	}
	return status;
}

/* A killed receiver leaves something only where files without names cannot be. */
static bool is_whole_or_as_before(const struct round *r, bool sender_killed, int status)
{
	bool there = access(r->target, F_OK) == 0;

	if (sender_killed && scratch_files(&r->side) != 1 + there)
		return false;
	if (there && file_holds(r->target, WHOLE, 5))
		return true;
	return status != 0 && (!there || file_holds(r->target, OLD, 99));
}

/* In every fifth round from the beginning on, else from when the transfer begins. */
static void play(struct round *r, bool kill_sender)
{
	unsigned delay_ms = (unsigned)random() % DELAY_MS;
	bool early = r->number % 5 == 4;
	int status;
	char up;

	unlink(r->target);
	if (delay_ms % 2)
		make_file(r->target, OLD, 99);
	start_both(r);
	if (!early)
		(void)!read(r->up[0], &up, 1);
	sleep_ms(delay_ms);
	kill(kill_sender ? r->sender : r->receiver, SIGKILL);
	status = end_of(kill_sender ? r->receiver : r->sender,
			waiting_ms(r) + PEER_TIMEOUT_MS + 3000);
	waitpid(kill_sender ? r->sender : r->receiver, NULL, 0);
	close(r->up[0]);
	if (status >= 0 && WIFEXITED(status) && is_whole_or_as_before(r, kill_sender, status))
		return;
	printf("# round %u: %s was killed %u ms after %s; the other one's status is %d\n",
	       r->number, kill_sender ? "sender" : "receiver", delay_ms,
	       early ? "its start" : "the proof", status);
	CHECK(!"a round went well");
}

/* Over each of the two devices of the VM a hundred, by the two sides; natively the tools do. */
static void play_rounds(struct side *side, const char *dir, bool kill_sender)
{
	unsigned rounds = side->slow ? 50 : 5;
	struct round r = { .side = *side };

	r.side.scratch = scratch_path(side, dir);
	CHECK_EQ(mkdir(r.side.scratch, 0700), 0);
	r.source = scratch_path(&r.side, "source");
	r.target = scratch_path(&r.side, "target");
	make_file(r.source, WHOLE, 5);
	srandom((unsigned)vb__now_ns());
	alarm(ALL_ROUNDS_S);
	for (; r.number < rounds; r.number++)
		play(&r, kill_sender);
}

static void killing_senders(struct side *side)
{
	play_rounds(side, "receivers", true);
}

static void killing_receivers(struct side *side)
{
	play_rounds(side, "senders", false);
}

const struct test kill_tests[] = {
	{ "kills_at_any_moment_leave_whole_files_or_none", killing_senders, killing_receivers },
	{ NULL },
};
