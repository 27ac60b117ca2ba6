/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The conformance harness. Each test is two functions, a server and a client,
 * which run in two processes of their own; the harness itself never touches
 * the library, so that nothing is open when it forks. Results are TAP.
 */
#ifndef CONFORMANCE_HARNESS_H
#define CONFORMANCE_HARNESS_H

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <verbatim/verbatim.h>

/* What both processes share. */
struct shared {
	sem_t step[4]; /* for tests that must do things in turn */
	sem_t listening;
	int port;
	pid_t server, client;
	_Atomic int note;
	_Atomic uint64_t number[4]; /* what one side tells the other */
	char skipped[120];	    /* why the test cannot be done here; empty: it can */
};

struct side {
	const char *address;
	const char *fabric;
	bool slow;	     /* in the VM: do less */
	const char *scratch; /* a directory of this test's own, removed after it */
	struct vb_options options;
	struct shared *shared;
};

enum fate {
	RETURNS = 0, /* the process must end well */
	DIES,	     /* it kills itself */
};

struct test {
	const char *name;
	void (*server)(struct side *side);
	void (*client)(struct side *side);
	enum fate server_fate, client_fate;
	const char *only; /* of this fabric only, else it is not in the list at all */
};

extern const struct test channel_tests[], end_tests[], stranger_tests[], fabric_tests[],
	lend_tests[], limit_tests[], memory_tests[], memory_bounds_tests[], memory_order_tests[],
	pass_tests[], stream_tests[], stream_sync_tests[], stream_direct_tests[],
	stream_fault_tests[], transfer_tests[], failure_tests[], kill_tests[], door_tests[],
	seal_tests[], pack_tests[], server_tests[], server_trouble_tests[], dgram_tests[],
	dgram_stranger_tests[], frame_stranger_tests[];

/* Several threads on one object: with --threads only these, for the thread sanitizer. */
extern const struct test thread_tests[], lend_thread_tests[], limit_thread_tests[],
	memory_thread_tests[], stream_thread_tests[], crew_tests[], server_thread_tests[],
	dgram_thread_tests[];

/* A failed check ends the process; the harness reports the test as failed. */
#define CHECK(condition)                                              \
	do {                                                          \
		if (!(condition))                                     \
			check_failed(__FILE__, __LINE__, #condition); \
	} while (0)

#define CHECK_EQ(a, b) check_equal((long long)(a), (long long)(b), __FILE__, __LINE__, #a, #b)

void check_failed(const char *file, int line, const char *condition) __attribute__((noreturn));
void check_equal(long long a, long long b, const char *file, int line, const char *ta,
		 const char *tb);

/* The usual beginnings; a failure ends the process with the error's text. */
struct vb_listener *listen_here(struct side *side);
struct vb_channel *accept_one(struct side *side, struct vb_listener *listener);
struct vb_channel *serve_one(struct side *side); /* both of the above, listener closed */
struct vb_channel *connect_there(struct side *side);
const char *port_there(struct side *side); /* waits until the server listens */

/* The usual ends. */
void close_well(struct vb_channel *channel);
void expect_eof(struct vb_channel *channel);
void send_well(struct vb_channel *channel, const void *message, size_t len);
ssize_t recv_well(struct vb_channel *channel, const void **message);

/* The test cannot be done here. Both sides still have to end, and well. */
void skip_test(struct side *side, const char *reason);

/* A failure that a call returned where none was expected; ends the process. */
void fail_with(const struct vb_error *err, const char *doing) __attribute__((noreturn));

void signal_step(struct side *side, int step);
void await_step(struct side *side, int step);

/* Bytes that tell their message and place. */
void fill(void *to, size_t len, uint32_t seed);
bool is_filled(const void *from, size_t len, uint32_t seed);

/* The table of the fabric under test, for tests below the channel. */
struct vb__fabric;
struct vb__ep;
const struct vb__fabric *fabric_of(const struct side *side);

/*
 * Posts receives for an endpoint that speaks below the channel. Even a hostile peer has room for the credits that it gets:
 * that no receiver was ever not ready is counted over all tests (tests/vm/inside).
 */
void make_room(struct vb__ep *ep);

int count_fds(void);
void sleep_ms(unsigned ms);

#endif
