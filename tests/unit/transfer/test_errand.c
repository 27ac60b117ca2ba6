/* SPDX-License-Identifier: Apache-2.0 */
/* Errands: taken, failed, or left alone; and that doors and sessions, when a stop has ended them, do nothing more. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <verbatim/verbatim.h>

#include "channel/inside.h"
#include "core/clock.h"
#include "core/failure.h"
#include "fabric/address.h"
#include "fabric/fabric.h"
#include "suite.h"
#include "transfer/errand.h"
#include "transfer/session_state.h"

static sem_t go_on, gone;

/* ---- Errands ---- */

struct chore {
	char words[16];
	bool waits, fails, *saw_given_up, *had_signals;
	pthread_t *discarded_by;
	unsigned *discarded;
};

static int run(void *job, const atomic_bool *given_up, struct vb_error *err)
{
	struct chore *c = job;
	sigset_t blocked;

	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	*c->had_signals = !sigismember(&blocked, SIGINT) || !sigismember(&blocked, SIGTERM);
	if (c->waits)
		sem_wait(&go_on);
	*c->saw_given_up = atomic_load(given_up);
	strcpy(c->words, "done");
	return c->fails ? vb__fail_errno(err, EACCES, "an errand", c->words) : 0;
}

static void discard(void *job)
{
	struct chore *c = job;
	unsigned *discarded = c->discarded;

	if (c->discarded_by)
		*c->discarded_by = pthread_self();
	free(c);
	(*discarded)++;
	sem_post(&gone);
}

static const struct vb__errand_kind chores = { .run = run, .discard = discard };

struct seen {
	bool given_up, signals;
	unsigned discarded;
	pthread_t by;
};

static struct chore *make(struct seen *seen)
{
	struct chore *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	*seen = (struct seen){ .by = pthread_self() };
	c->saw_given_up = &seen->given_up;
	c->had_signals = &seen->signals;
	c->discarded = &seen->discarded;
	c->discarded_by = &seen->by;
	return c;
}

static void what_was_brought_is_the_callers(void **state)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__errand *errand;
	struct seen seen;
	void *job = NULL;

	(void)state;
	assert_int_equal(vb__errand_start(&chores, make(&seen), &errand, &err), 0);
	assert_int_equal(vb__errand_finish(errand, -1, &job, &err), 0);
	assert_string_equal(((struct chore *)job)->words, "done");
	assert_false(seen.given_up);
	assert_false(seen.signals);
	assert_int_equal(seen.discarded, 0);
	free(job);
}

static void a_failure_is_told_in_its_own_words(void **state)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__errand *errand;
	struct seen seen;
	struct chore *c = make(&seen);
	void *job;

	(void)state;
	c->fails = true;
	assert_int_equal(vb__errand_start(&chores, c, &errand, &err), 0);
	assert_int_equal(vb__errand_finish(errand, -1, &job, &err), VB_ERR_ACCESS);
	assert_string_equal(err.operation, "an errand");
	assert_string_equal(err.object, "done");
	assert_int_equal(seen.discarded, 1);
	sem_wait(&gone);
}

static void who_is_left_alone_cleans_up_behind_itself(void **state)
{
	struct vb_error err = { .code = VB_OK };
	int stop = eventfd(1, EFD_CLOEXEC);
	struct vb__errand *errand;
	struct seen seen;
	struct chore *c = make(&seen);
	void *job;

	(void)state;
	c->waits = true;
	assert_int_equal(vb__errand_start(&chores, c, &errand, &err), 0);
	assert_int_equal(vb__errand_finish(errand, stop, &job, &err), VB_ERR_INTERRUPTED);
	assert_int_equal(seen.discarded, 0);
	sem_post(&go_on);
	sem_wait(&gone);
	assert_int_equal(seen.discarded, 1);
	assert_true(seen.given_up);
	assert_false(pthread_equal(seen.by, pthread_self()));
	close(stop);
}

/* What was done is not thrown away because somebody wants to stop as well: that is for the next step to see. */
static void what_is_done_is_done(void **state)
{
	struct vb_error err = { .code = VB_OK };
	int stop = eventfd(1, EFD_CLOEXEC);
	struct vb__errand *errand;
	struct seen seen;
	void *job;

	(void)state;
	assert_int_equal(vb__errand_start(&chores, make(&seen), &errand, &err), 0);
	assert_int_equal(vb__errand_await(&errand, 1, -1, -1), 0);
	assert_int_equal(vb__errand_finish(errand, stop, &job, &err), 0);
	free(job);
	assert_int_equal(vb__errand_start(&chores, make(&seen), &errand, &err), 0);
	assert_int_equal(vb__errand_await(&errand, 1, -1, -1), 0);
	vb__errand_leave(&errand, 1);
	assert_int_equal(seen.discarded, 1);
	sem_wait(&gone);
	close(stop);
}

enum {
	MANY = VB__ERRANDS_MAX,
	QUICK = 5
};

/* All but one of many wait. */
static void start_many(struct vb__errand **errands, struct seen *seen)
{
	for (unsigned i = 0; i < MANY; i++) {
		struct vb_error err = { .code = VB_OK };
		struct chore *c = make(&seen[i]);

		c->waits = i != QUICK;
		assert_int_equal(vb__errand_start(&chores, c, &errands[i], &err), 0);
	}
}

static void of_many_the_first_that_is_done_is_told(void **state)
{
	int readable = eventfd(1, EFD_CLOEXEC);
	struct vb__errand *errands[MANY];
	struct seen seen[MANY];

	(void)state;
	start_many(errands, seen);
	assert_int_equal(vb__errand_await(errands, MANY, -1, -1), QUICK);
	assert_int_equal(vb__errand_await(errands, MANY, readable, -1), QUICK);
	assert_int_equal(vb__errand_await(errands, QUICK, readable, -1), -1);
	assert_int_equal(vb__errand_await(errands, QUICK, -1, readable), -1);
	for (unsigned i = 0; i < MANY - 1; i++)
		sem_post(&go_on);
	vb__errand_leave(errands, MANY);
	for (unsigned i = 0; i < MANY; i++)
		sem_wait(&gone);
	close(readable);
}

/* Not one after the other: each of these takes all the time that it is given. */
static void many_are_left_as_soon_as_one(void **state)
{
	struct vb__errand *errands[MANY];
	struct seen seen[MANY];
	uint64_t start;

	(void)state;
	start_many(errands, seen);
	start = vb__now_ns();
	vb__errand_leave(errands, MANY);
	assert_true(vb__now_ns() - start < vb__ms(3000));
	for (unsigned i = 0; i < MANY - 1; i++)
		sem_post(&go_on);
	for (unsigned i = 0; i < MANY; i++)
		sem_wait(&gone);
	for (unsigned i = 0; i < MANY; i++)
		assert_true(i == QUICK || seen[i].given_up);
}

static const char *failing = "";

__typeof__(eventfd) __real_eventfd, __wrap_eventfd;
__typeof__(pthread_create) __real_pthread_create, __wrap_pthread_create;

int __wrap_eventfd(unsigned count, int flags)
{
	if (strcmp(failing, "eventfd") != 0)
		return __real_eventfd(count, flags);
	errno = EMFILE;
	return -1;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *),
			  void *arg)
{
	return strcmp(failing, "pthread_create") == 0
		       ? EAGAIN
		       : __real_pthread_create(thread, attr, start, arg);
}

static void what_cannot_be_started_is_discarded(void **state)
{
	static const char *const calls[] = { "eventfd", "pthread_create" };

	(void)state;
	for (unsigned i = 0; i < COUNT(calls); i++) {
		struct vb_error err = { .code = VB_OK };
		struct vb__errand *errand;
		struct seen seen;

		failing = calls[i];
		assert_true(vb__errand_start(&chores, make(&seen), &errand, &err) < 0);
		failing = "";
		assert_string_equal(err.operation, calls[i]);
		assert_int_equal(seen.discarded, 1);
		sem_wait(&gone);
	}
}

/* ---- Doors and sessions ---- */

static bool server_is_slow, secret_fails, none_needed;
static atomic_uint opened, closed;

__typeof__(vb__address_resolve) __real_vb__address_resolve, __wrap_vb__address_resolve;
__typeof__(vb__pep_open) __real_vb__pep_open, __wrap_vb__pep_open;
__typeof__(vb__ep_open) __real_vb__ep_open, __wrap_vb__ep_open;
__typeof__(vb__listener_open) __real_vb__listener_open, __wrap_vb__listener_open;
__typeof__(vb__channel_connect) __real_vb__channel_connect, __wrap_vb__channel_connect;
__typeof__(vb__plan_secret) __real_vb__plan_secret, __wrap_vb__plan_secret;
__typeof__(vb_listener_close) __real_vb_listener_close, __wrap_vb_listener_close;
__typeof__(vb_channel_abort) __real_vb_channel_abort, __wrap_vb_channel_abort;

/* A name server that answers late. The name may not be looked at before: it must be the errand's own. */
int __wrap_vb__address_resolve(const char *host, const char *port, int family,
			       struct vb__address found[VB__ADDRESSES_MAX], struct vb_error *err)
{
	if (server_is_slow)
		sem_wait(&go_on);
	return __real_vb__address_resolve(host, port, family, found, err);
}

int __wrap_vb__pep_open(const struct vb__fabric *fabric, const struct vb__settings *settings,
			const struct vb__address *at, struct vb__pep **pep, struct vb_error *err)
{
	(void)fabric, (void)settings, (void)at, (void)pep;
	atomic_fetch_add(&opened, 1);
	return vb__fail_errno(err, EADDRINUSE, "listen", NULL);
}

int __wrap_vb__ep_open(const struct vb__fabric *fabric, const struct vb__ep_attr *attr,
		       const struct vb__address *peer, uint64_t deadline_ns, struct vb__ep **ep,
		       struct vb_error *err)
{
	(void)fabric, (void)attr, (void)peer, (void)deadline_ns, (void)ep;
	atomic_fetch_add(&opened, 1);
	return vb__fail_errno(err, ECONNREFUSED, "connect", NULL);
}

/* Where none is needed there is success at once. */
int __wrap_vb__listener_open(const char *host, const char *port,
			     const struct vb__settings *settings, struct vb_listener **listener,
			     struct vb_error *err)
{
	return none_needed ? 0 : __real_vb__listener_open(host, port, settings, listener, err);
}

int __wrap_vb__channel_connect(const char *host, const char *port,
			       const struct vb__settings *settings, struct vb_channel **channel,
			       struct vb_error *err)
{
	return none_needed ? 0 : __real_vb__channel_connect(host, port, settings, channel, err);
}

int __wrap_vb__plan_secret(struct vb__plan *plan, const struct vb_transfer_options *options,
			   struct vb_error *err)
{
	return secret_fails ? vb__fail_errno(err, EACCES, "scrypt", NULL)
			    : __real_vb__plan_secret(plan, options, err);
}

/* An errand that was left cleans up with this, or with the next one. */
void __wrap_vb_listener_close(struct vb_listener *listener)
{
	__real_vb_listener_close(listener);
	atomic_fetch_add(&closed, 1);
	sem_post(&gone);
}

void __wrap_vb_channel_abort(struct vb_channel *channel)
{
	__real_vb_channel_abort(channel);
	atomic_fetch_add(&closed, 1);
	sem_post(&gone);
}

static void begin(void)
{
	atomic_store(&opened, 0);
	atomic_store(&closed, 0);
	while (sem_trywait(&gone) == 0)
		;
}

/* Until so many were closed: the callers' own, and what was left. */
static void await_closed(unsigned count)
{
	while (atomic_load(&closed) < count)
		sem_wait(&gone);
}

static void a_door_that_was_stopped_is_not_opened_later(void **state)
{
	struct vb_transfer_options options = { .key = "key", .key_bytes = 3 };
	char host[] = "127.0.0.1", port[] = "0";
	struct vb_door *door = NULL;
	struct vb_error err;

	(void)state;
	begin();
	server_is_slow = true;
	options.stop_fd = eventfd(1, EFD_CLOEXEC);
	assert_int_equal(vb_door_open(host, port, &options, &door, &err), VB_ERR_INTERRUPTED);
	assert_null(door);
	memset(host, 'x', strlen(host));
	memset(port, 'x', strlen(port));
	close(options.stop_fd);
	sem_post(&go_on);
	await_closed(2);
	server_is_slow = false;
	assert_int_equal(atomic_load(&opened), 0);
}

static void a_session_that_was_stopped_does_not_connect_later(void **state)
{
	struct vb_transfer_options options = { .key = "key", .key_bytes = 3 };
	char host[] = "127.0.0.1", port[] = "7471";
	struct vb_session *session = NULL;
	struct vb_error err;

	(void)state;
	begin();
	server_is_slow = true;
	options.stop_fd = eventfd(1, EFD_CLOEXEC);
	assert_int_equal(vb_session_connect(host, port, &options, &session, &err),
			 VB_ERR_INTERRUPTED);
	assert_null(session);
	memset(host, 'x', strlen(host));
	memset(port, 'x', strlen(port));
	close(options.stop_fd);
	sem_post(&go_on);
	await_closed(1);
	server_is_slow = false;
	assert_int_equal(atomic_load(&opened), 0);
}

/* With no stop they do get there, or this test sees nothing. */
static void else_they_do(void **state)
{
	struct vb_transfer_options options = { .key = "key", .key_bytes = 3 };
	struct vb_session *session;
	struct vb_error err;
	struct vb_door *door;

	(void)state;
	begin();
	assert_int_equal(vb_door_open("127.0.0.1", "7471", &options, &door, &err), VB_ERR_IN_USE);
	assert_int_equal(atomic_load(&opened), 1);
	options.connection.connect_timeout_ms = 1;
	begin();
	assert_true(vb_session_connect("127.0.0.1", "7471", &options, &session, &err) < 0);
	assert_int_not_equal(atomic_load(&opened), 0);
}

static void without_a_secret_there_is_no_door_and_no_session(void **state)
{
	struct vb_transfer_options options = { .key = "key", .key_bytes = 3 };
	struct vb_session *session = NULL;
	struct vb_door *door = NULL;
	struct vb_error err;

	(void)state;
	begin();
	none_needed = secret_fails = true;
	assert_int_equal(vb_door_open("127.0.0.1", "0", &options, &door, &err), VB_ERR_ACCESS);
	assert_string_equal(err.operation, "scrypt");
	assert_null(door);
	assert_int_equal(vb_session_connect("127.0.0.1", "7471", &options, &session, &err),
			 VB_ERR_ACCESS);
	assert_null(session);
	none_needed = secret_fails = false;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_brought_is_the_callers),
		cmocka_unit_test(a_failure_is_told_in_its_own_words),
		cmocka_unit_test(who_is_left_alone_cleans_up_behind_itself),
		cmocka_unit_test(what_is_done_is_done),
		cmocka_unit_test(of_many_the_first_that_is_done_is_told),
		cmocka_unit_test(many_are_left_as_soon_as_one),
		cmocka_unit_test(what_cannot_be_started_is_discarded),
		cmocka_unit_test(a_door_that_was_stopped_is_not_opened_later),
		cmocka_unit_test(a_session_that_was_stopped_does_not_connect_later),
		cmocka_unit_test(else_they_do),
		cmocka_unit_test(without_a_secret_there_is_no_door_and_no_session),
	};

	sem_init(&go_on, 0, 0);
	sem_init(&gone, 0, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
