/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole lives of streams, of memory that is shared and of a server, over
 * libfabric, again and again, each time with one more call of the system or of
 * the fabric failing on one side: either all goes well nevertheless, or a call
 * says what failed. Nothing hangs, and no descriptor is left. What memory is left
 * the leak sanitizer tells.
 */
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../pure/suite.h"
#include "failing.h"
#include "lives.h"

#define HANGS_AFTER_S 20

const struct vb_options life_options = {
	.fabric = VB_FABRIC_OFI,
	.max_message_bytes = 8u << 10,
	.depth = 4,
	.connect_timeout_ms = 5000,
	.listener_is_up = true,
};

/* ---- For the lives ---- */

bool goes_on(struct side *side, int rc, const struct vb_error *err)
{
	if (side->rc == 0 && rc < 0) {
		side->rc = rc;
		side->err = *err;
	}
	return side->rc == 0;
}

void begins_to_end(struct side *side)
{
	side->ending = side->rc == 0;
}

bool expects(struct side *side, bool as_it_should_be, const char *what)
{
	struct vb_error err = { .code = VB_ERR_CORRUPT };

	snprintf(err.cause, sizeof(err.cause), "%s", what);
	return goes_on(side, as_it_should_be ? 0 : VB_ERR_CORRUPT, &err);
}

void now_listening(struct side *side, int port)
{
	side->life->port = port;
	sem_post(&side->life->listening);
}

bool port_there(struct side *side, char port[8])
{
	sem_wait(&side->life->listening);
	snprintf(port, 8, "%u", (unsigned)(uint16_t)side->life->port);
	return side->life->port != 0;
}

bool try_again(struct side *side)
{
	return !atomic_load(&side->life->over);
}

bool nobody_came(struct side *side, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 2) == 0 && atomic_load(&side->life->over);
}

/* ---- The torture ---- */

static char round_text[120];

static void tell_hang(int signal)
{
	ssize_t n = write(STDERR_FILENO, round_text, strlen(round_text));

	(void)signal;
	_exit(n < 0 ? 2 : 1);
}

static void *run_peer(void *arg)
{
	struct side *side = arg;

	side->life->peer(side);
	return NULL;
}

/* With the nth call of the victim failing; returns how many there were. */
static unsigned live(const struct life *of, unsigned nth, struct side *victim, struct side *peer)
{
	struct life life = *of;
	pthread_t thread;

	*victim = *peer = (struct side){ .life = &life };
	sem_init(&life.listening, 0, 0);
	snprintf(round_text, sizeof(round_text), "Bail out! %s hangs, call %u failed\n", of->name,
		 nth);
	alarm(HANGS_AFTER_S);
	assert_int_equal(pthread_create(&thread, NULL, run_peer, peer), 0);
	failing_begin(nth);
	life.victim(victim);
	failing_end();
	atomic_store(&life.over, true);
	sem_post(&life.listening); /* if it never came to that */
	pthread_join(thread, NULL);
	alarm(0);
	sem_destroy(&life.listening);
	return failing_count();
}

static unsigned descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Connecting tells in the cause what each address and fabric said. */
static bool names(const struct vb_error *err, const char *call)
{
	bool memory = !strcmp(call, "calloc") || !strcmp(call, "malloc") || !strcmp(call, "strdup");

	/* Or it was asked for within a call of libfabric, which says no more. */
	return strstr(err->operation, call) || strstr(err->cause, call) ||
	       (memory && strstr(err->cause, strerror(ENOMEM)));
}

/*
 * When both close, the victim has heard that the peer has everything, and that is all that closing promises. If
 * what it says then does not get through, the peer knows no better than that it was lost.
 */
static bool lost_at_the_end(const struct side *peer)
{
	return failing_call() && peer->ending && peer->rc == VB_ERR_LOST;
}

/* What is wrong with how this round ended, or NULL. */
static const char *judge(const struct side *victim, const struct side *peer)
{
	const char *call = failing_call();

	if (victim->rc == 0)
		return peer->rc && !lost_at_the_end(peer) ? "all is well, but not for the peer"
							  : NULL;
	if (!call)
		return "nothing failed, and yet it went wrong";
	if (victim->err.code != (enum vb_err)victim->rc || !victim->err.cause[0])
		return "what is told is not what was returned";
	return names(&victim->err, call) ? NULL : "the error is of something else";
}

static bool check(const struct life *of, unsigned n, const struct side *victim,
		  const struct side *peer)
{
	const char *wrong = judge(victim, peer), *call = failing_call();
	char ours[VB_ERROR_LINE_MAX], theirs[VB_ERROR_LINE_MAX];

	if (wrong)
		print_error("%s, call %u, %s, failed: %s (%s; the peer: %s)\n", of->name, n,
			    call ? call : "none", wrong,
			    vb_error_format(&victim->err, ours, sizeof(ours)),
			    vb_error_format(&peer->err, theirs, sizeof(theirs)));
	return !wrong;
}

static void torture(const struct life *of)
{
	unsigned before, after, calls, n = 0, made_up_for = 0, wrong = 0;
	struct side victim, peer;

	live(of, 0, &victim, &peer); /* what is made once, and stays */
	before = descriptors();
	do {
		calls = live(of, ++n, &victim, &peer);
		wrong += !check(of, n, &victim, &peer);
		made_up_for += failing_call() && victim.rc == 0;
		after = descriptors();
		if (after != before)
			fail_msg("%s, call %u, %s, failed: %u descriptors, there were %u", of->name,
				 n, failing_call() ? failing_call() : "none", after, before);
	} while (calls >= n);
	print_message("# %s: %u calls failed in turn, %u of these were made up for\n", of->name,
		      n - 1, made_up_for);
	assert_int_equal(wrong, 0);
	assert_true(n > 20);
}

static void every_call_of_a_stream_that_accepts_fails_once(void **state)
{
	(void)state;
	torture(&stream_lives[0]);
}

static void every_call_of_a_stream_that_connects_fails_once(void **state)
{
	(void)state;
	torture(&stream_lives[1]);
}

static void every_call_of_who_accepts_and_shares_memory_fails_once(void **state)
{
	(void)state;
	torture(&memory_lives[0]);
}

static void every_call_of_who_connects_and_shares_memory_fails_once(void **state)
{
	(void)state;
	torture(&memory_lives[1]);
}

static void every_call_of_a_server_fails_once(void **state)
{
	(void)state;
	torture(&server_lives[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call_of_a_stream_that_accepts_fails_once),
		cmocka_unit_test(every_call_of_a_stream_that_connects_fails_once),
		cmocka_unit_test(every_call_of_who_accepts_and_shares_memory_fails_once),
		cmocka_unit_test(every_call_of_who_connects_and_shares_memory_fails_once),
		cmocka_unit_test(every_call_of_a_server_fails_once),
	};

	signal(SIGALRM, tell_hang);
	return cmocka_run_group_tests_name("lives_torture", tests, NULL, NULL);
}
