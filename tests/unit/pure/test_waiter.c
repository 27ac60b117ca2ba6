/* SPDX-License-Identifier: Apache-2.0 */
/* The waiter: what makes it ready, what is taken, and how long it sleeps. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/clock.h"
#include "fabric/waiter.h"
#include "suite.h"

/* Only a waiter that misses its event sleeps so long. */
#define NEVER_MS 20000u

static struct vb__waiter open_waiter(uint32_t tick_ms)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__waiter w;

	assert_int_equal(vb__waiter_open(&w, tick_ms, &err), 0);
	return w;
}

static uint64_t in_ms(uint32_t ms)
{
	return vb__now_ns() + vb__ms(ms);
}

static uint32_t check_all(struct vb__waiter *w)
{
	return vb__waiter_check(w, VB__READY_TICK | VB__READY_WAKE);
}

/* Sleeps until something is ready; false if that never comes. */
static bool comes(struct vb__waiter *w, uint32_t bits)
{
	uint64_t deadline = in_ms(NEVER_MS);

	while (vb__now_ns() < deadline) {
		vb__waiter_sleep(w->epoll, deadline);
		if (check_all(w) == bits)
			return true;
	}
	return false;
}

static void a_new_waiter_has_nothing_ready(void **state)
{
	struct vb__waiter w = open_waiter(0);

	(void)state;
	assert_int_equal(w.tick, -1);
	assert_int_equal(check_all(&w), 0);
	vb__waiter_close(&w);
}

static void it_ticks_again_and_again(void **state)
{
	struct vb__waiter w = open_waiter(5);

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(comes(&w, VB__READY_TICK));
	vb__waiter_close(&w);
}

static void ticks_of_a_second_and_more_do_not_come_early(void **state)
{
	struct vb__waiter w = open_waiter(1001);

	(void)state;
	vb__waiter_sleep(w.epoll, in_ms(20));
	assert_int_equal(check_all(&w), 0);
	vb__waiter_close(&w);
}

static void many_wakes_are_seen_once(void **state)
{
	struct vb__waiter w = open_waiter(0);

	(void)state;
	for (int i = 0; i < 3; i++)
		vb__waiter_wake(&w);
	assert_int_equal(check_all(&w), VB__READY_WAKE);
	assert_int_equal(check_all(&w), 0);
	vb__waiter_close(&w);
}

static void a_wake_stays_until_somebody_takes_it(void **state)
{
	struct vb__waiter w = open_waiter(0);

	(void)state;
	vb__waiter_wake(&w);
	assert_int_equal(vb__waiter_check(&w, 0), VB__READY_WAKE);
	assert_int_equal(vb__waiter_check(&w, VB__READY_TICK), VB__READY_WAKE);
	vb__waiter_sleep(w.epoll, UINT64_MAX); /* a sleeper is woken all the same */
	assert_int_equal(vb__waiter_check(&w, VB__READY_WAKE), VB__READY_WAKE);
	assert_int_equal(vb__waiter_check(&w, VB__READY_WAKE), 0);
	vb__waiter_close(&w);
}

static void a_tick_stays_until_somebody_takes_it(void **state)
{
	struct vb__waiter w = open_waiter(1000);

	(void)state;
	vb__waiter_sleep(w.epoll, in_ms(NEVER_MS));
	assert_int_equal(vb__waiter_check(&w, 0), VB__READY_TICK);
	assert_int_equal(vb__waiter_check(&w, VB__READY_WAKE), VB__READY_TICK);
	vb__waiter_wake(&w);
	assert_int_equal(vb__waiter_check(&w, VB__READY_TICK), VB__READY_TICK | VB__READY_WAKE);
	assert_int_equal(vb__waiter_check(&w, VB__READY_TICK), VB__READY_WAKE);
	vb__waiter_close(&w);
}

static void sleeping_takes_nothing(void **state)
{
	struct vb__waiter w = open_waiter(0);

	(void)state;
	vb__waiter_wake(&w);
	vb__waiter_sleep(w.epoll, UINT64_MAX);
	vb__waiter_sleep(w.epoll, UINT64_MAX);
	assert_int_equal(check_all(&w), VB__READY_WAKE);
	vb__waiter_close(&w);
}

static void *wake_it(void *waiter)
{
	vb__waiter_wake(waiter);
	return NULL;
}

static void another_thread_wakes_a_sleeper(void **state)
{
	struct vb__waiter w = open_waiter(0);
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, wake_it, &w), 0);
	assert_true(comes(&w, VB__READY_WAKE));
	pthread_join(thread, NULL);
	vb__waiter_close(&w);
}

static void an_added_descriptor_shows_its_bit_until_it_is_drained(void **state)
{
	struct vb__waiter w = open_waiter(0);
	struct vb_error err = { .code = VB_OK };
	int fd[2];
	char byte;

	(void)state;
	assert_int_equal(pipe(fd), 0);
	assert_int_equal(vb__waiter_add(&w, fd[0], VB__READY_OWN << 1, &err), 0);
	assert_int_equal(check_all(&w), 0);
	assert_int_equal(write(fd[1], "x", 1), 1);
	vb__waiter_wake(&w);
	assert_int_equal(check_all(&w), VB__READY_WAKE | VB__READY_OWN << 1);
	assert_int_equal(check_all(&w), VB__READY_OWN << 1);
	assert_int_equal(read(fd[0], &byte, 1), 1);
	assert_int_equal(check_all(&w), 0);
	vb__waiter_close(&w);
	close(fd[0]);
	close(fd[1]);
}

static void a_descriptor_that_cannot_be_added_is_an_error(void **state)
{
	struct vb__waiter w = open_waiter(0);
	struct vb_error err = { .code = VB_OK };

	(void)state;
	assert_true(vb__waiter_add(&w, -1, VB__READY_OWN, &err) < 0);
	assert_int_equal(err.native, EBADF);
	assert_string_equal(err.operation, "epoll_ctl");
	vb__waiter_close(&w);
}

static void sleep_ends_at_its_deadline_and_not_before(void **state)
{
	struct vb__waiter w = open_waiter(0);
	uint64_t deadline = in_ms(30);

	(void)state;
	vb__waiter_sleep(w.epoll, deadline);
	assert_true(vb__now_ns() >= deadline);
	vb__waiter_close(&w);
}

static void a_deadline_in_the_past_does_not_sleep(void **state)
{
	struct vb__waiter w = open_waiter(0);
	uint64_t begin = vb__now_ns();

	(void)state;
	vb__waiter_sleep(w.epoll, 0);
	vb__waiter_sleep(w.epoll, begin - 1);
	assert_true(vb__now_ns() - begin < vb__ms(NEVER_MS));
	vb__waiter_close(&w);
}

static void time_left_is_rounded_up_and_never_overflows(void **state)
{
	(void)state;
	assert_int_equal(vb__ms_left(0), 0);
	assert_int_equal(vb__ms_left(vb__now_ns()), 0);
	assert_int_equal(vb__ms_left(UINT64_MAX - 1), INT_MAX);
	assert_in_range(vb__ms_left(in_ms(NEVER_MS)), 1, NEVER_MS);
	assert_in_range(vb__ms_left(vb__now_ns() + vb__ms(NEVER_MS) + 1), 1, NEVER_MS + 1);
}

static void no_descriptors_left_is_an_error_with_a_hint_and_nothing_stays_open(void **state)
{
	struct vb_error err = { .code = VB_OK };
	struct rlimit before, now;
	struct vb__waiter w;
	int lowest = dup(0);

	(void)state;
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	/* Room for none, for one, for two of the three. */
	for (unsigned room = 0; room < 3; room++) {
		now = before;
		now.rlim_cur = (rlim_t)lowest + room;
		err = (struct vb_error){ .code = VB_OK };
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
		assert_true(vb__waiter_open(&w, 10, &err) < 0);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
		assert_int_equal(err.native, EMFILE);
		assert_non_null(strstr(err.hint, "ulimit -n"));
		assert_int_equal(w.epoll, -1);
		assert_int_equal(w.wake, -1);
		assert_int_equal(w.tick, -1);
		assert_int_equal(dup(0), lowest);
		close(lowest);
	}
}

static void closing_twice_or_unopened_is_harmless(void **state)
{
	struct vb__waiter none = VB__WAITER_NONE, w = open_waiter(10);

	(void)state;
	vb__waiter_close(&none);
	vb__waiter_close(&w);
	vb__waiter_close(&w);
	assert_int_equal(w.epoll, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_waiter_has_nothing_ready),
		cmocka_unit_test(it_ticks_again_and_again),
		cmocka_unit_test(ticks_of_a_second_and_more_do_not_come_early),
		cmocka_unit_test(many_wakes_are_seen_once),
		cmocka_unit_test(a_wake_stays_until_somebody_takes_it),
		cmocka_unit_test(a_tick_stays_until_somebody_takes_it),
		cmocka_unit_test(sleeping_takes_nothing),
		cmocka_unit_test(another_thread_wakes_a_sleeper),
		cmocka_unit_test(an_added_descriptor_shows_its_bit_until_it_is_drained),
		cmocka_unit_test(a_descriptor_that_cannot_be_added_is_an_error),
		cmocka_unit_test(sleep_ends_at_its_deadline_and_not_before),
		cmocka_unit_test(a_deadline_in_the_past_does_not_sleep),
		cmocka_unit_test(time_left_is_rounded_up_and_never_overflows),
		cmocka_unit_test(
			no_descriptors_left_is_an_error_with_a_hint_and_nothing_stays_open),
		cmocka_unit_test(closing_twice_or_unopened_is_harmless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
