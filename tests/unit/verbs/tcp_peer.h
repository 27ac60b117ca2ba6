/* SPDX-License-Identifier: Apache-2.0 */
/* The other end of a wire-up by TCP: plain sockets, no verbs, and manners as the test wants them. */
#ifndef VB_TESTS_TCP_PEER_H
#define VB_TESTS_TCP_PEER_H

#include "verbs_harness.h"
#include "wire/wireup.h"

/* What it says of its queue pair. A test may change its copy. */
extern const struct vb__wireup tcp_peer_pair;

/* Before tests: the harness with wire-up by TCP. */
int tcp_start(void **state);
#define TCP_TEST(f) cmocka_unit_test_setup_teardown(f, tcp_start, harness_end)

/* ---- It listens; in a process of its own, since connecting blocks ---- */

enum tcp_manners {
	TCP_POLITE,  /* answers with `answer`, hears READY, then waits */
	TCP_CLOSES,  /* hears the request and goes */
	TCP_SILENT,  /* hears it and says nothing */
	TCP_BABBLES, /* says something else */
};

/* Its address, for vb__ep_open; the process goes with the test's own. */
struct vb__address tcp_peer_listen(enum tcp_manners manners, const struct vb__wireup *answer);

/* What it heard; false if it did not hear as much. `request` and `ready` of a polite one. */
bool tcp_peer_heard(struct vb__wireup *request, struct vb__wireup *ready);

/* It goes. */
void tcp_peer_end(void);

/* ---- It connects ---- */

/* A socket to the listener's second port, blocking, but not for ever. */
int tcp_peer_call(const struct vb__pep *pep);
void tcp_peer_say(int fd, const struct vb__wireup *record);

/* The next record; false at the end of the stream. */
bool tcp_peer_hear(int fd, struct vb__wireup *record);

/*
 * vb__pep_next until it has something to say, or has answered on `fd`: what was written to a socket need not be
 * there at once at its other end.
 */
int tcp_next(struct vb__pep *pep, struct vb__request **request, int fd, struct vb_error *err);

/* An endpoint for a caller that said `asked`; state NEW. */
struct vb__ep *tcp_peer_request(struct vb__pep *pep, int fd, const struct vb__wireup *asked);

struct vb__address tcp_address(uint16_t port); /* at 127.0.0.1 */

/* A listener at 127.0.0.1, at any port. */
struct vb__pep *tcp_listen(void);

#endif
