/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the verbs backend share: endpoints on the mocked device, and common checks. */
#ifndef VB_TESTS_VERBS_HARNESS_H
#define VB_TESTS_VERBS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/clock.h"
#include "fabric/verbs/verbs.h"
#include "mock_books.h"
#include "mock_system.h"
#include "mock_verbs.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Before each test: new mocks. After it: everything was given back, once and in order. */
int harness_start(void **state);
int harness_end(void **state);
#define VERBS_TEST(f) cmocka_unit_test_setup_teardown(f, harness_start, harness_end)

/* Defaults that a test may change before it opens anything. Wired up by cm. */
extern struct vb__settings harness_settings;
extern struct vb__ep_attr harness_attr;

/* As if /dev/infiniband/rdma_cm were missing. */
extern bool harness_without_cm;

struct vb__address harness_peer(void);

/* Far enough for what is there already, near enough to wait for in vain. */
uint64_t harness_deadline(void);

struct vb__ep *harness_open(void);
struct vb__ep *harness_connect(void);
struct vb__pep *harness_listen(void);

/* Asks the listener for a connection and opens an endpoint for the request, state NEW. */
struct vb__ep *harness_request(struct vb__pep *pep);

/* Posts one operation of so many bytes from the endpoint's own test memory. */
int harness_post(struct vb__ep *ep, enum vb__op_kind kind, uint64_t id, size_t len,
		 struct vb_error *err);

/* Polls until nothing is outstanding, or in vain. Returns how many completions came. */
int harness_drain(struct vb__ep *ep, struct vb__completion *done, int max);

/* Arms until it is safe to sleep, polling nothing. False: it never becomes safe. */
bool harness_arm(struct vb__ep *ep);

void harness_cm_event(struct vb__ep *ep, enum rdma_cm_event_type event, int status);

/* Whether somebody sleeping on the descriptor would wake up. */
bool harness_readable(int fd);

/* The backend's own view. */
struct verbs_ep *harness_inside(struct vb__ep *ep);
struct ibv_qp *harness_qp(struct vb__ep *ep);

/*
 * The law of teardown: events acknowledged, QP, MRs, CQ, completion channel,
 * PD, id, event channel. NULL if it was kept, else the call that came too late.
 */
const char *harness_unlawful(void);

/* Where in the journal the law begins to hold: later than 0 if a test itself gives memory back. */
extern unsigned harness_teardown_from;

/* Whether the error is about this call: "timerfd" for timerfd_create is near enough. */
bool harness_names(const struct vb_error *err, const char *call);

/* Whether a line of the log, since harness_start, names this call and says what this errno means. */
bool harness_logged(const char *call, int errnum);

/* What a call that was made to fail with this errno can tell: of some no errno is to be had. */
int harness_told_errno(const char *call, int errnum);

/* No failure is lost: fails the test unless this one, of the n-th call, is told by the error or by the log. */
void harness_check_told(unsigned n, const char *call, int errnum, const struct vb_error *err);

/* Switches the capability that lifts the memlock limit; false: not ours to have. */
bool harness_lock_without_limit(bool may);

/* A memlock limit of 64 KiB, and that it holds. */
void harness_limit_memlock(void);

void assert_contains(const char *text, const char *part);

/* That this call failed for the limit of harness_limit_memlock: with the limit, the need and the three remedies. */
void assert_tells_memlock(const struct vb_error *err, const char *call, const char *need);

#endif
