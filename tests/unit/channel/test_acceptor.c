/* SPDX-License-Identifier: Apache-2.0 */
/* A listener: which fabrics it does without, and what becomes of it if it is woken and finds nobody, or too many. */
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>
#include <verbatim/channel.h>

#include "core/clock.h"
#include "paper_fabrics.h"

#define OFTEN 201
#define PLACES 64
#define HESITATION_MS 200
#define FLOOD 300

static unsigned warnings;
/* Lines about those who were refused, and how many they were. */
static unsigned refusal_lines, told_refusals;

static void count_warning(void *arg, enum vb_log_level level, const char *line)
{
	unsigned long more = strtoul(line, NULL, 10);

	(void)arg, (void)level;
	warnings += strstr(line, "ulimit -n") != NULL;
	if (!strstr(line, "a peer was refused: "))
		return;
	refusal_lines++;
	told_refusals += more ? (unsigned)more : 1;
}

static struct vb_listener *listen_on_paper(void)
{
	const struct vb_options options = { .fabric = VB_FABRIC_VERBS, .log = count_warning };
	struct vb_listener *listener = NULL;

	warnings = refusal_lines = told_refusals = 0;
	paper_reset();
	assert_int_equal(vb_listener_open("127.0.0.1", "7471", &options, &listener, NULL), 0);
	return listener;
}

static void find_nobody(struct vb_listener *listener)
{
	struct vb_channel *channel;

	assert_int_equal(vb_listener_try_accept(listener, &channel, NULL), VB_ERR_AGAIN);
}

/* As by what devices have to tell, or by strangers that are turned away. */
static void to_be_woken_often_for_nothing_is_no_shortage(void **state)
{
	struct vb_listener *listener = listen_on_paper();

	(void)state;
	for (int i = 0; i < OFTEN; i++) {
		assert_int_equal(eventfd_write(paper_bell, 1), 0);
		find_nobody(listener);
	}
	assert_int_equal(warnings, 0);
	vb_listener_close(listener);
}

/* As by a queue of strangers, of whom the fabric takes one at a time. */
static void what_wakes_and_stays_is_not_slowed_down(void **state)
{
	struct vb_listener *listener = listen_on_paper();
	uint64_t began = vb__now_ns();

	(void)state;
	paper_deaf = true;
	assert_int_equal(eventfd_write(paper_bell, 1), 0);
	for (int i = 0; i < 10 * OFTEN; i++)
		find_nobody(listener);
	assert_int_equal(warnings, 0);
	assert_true(vb__now_ns() - began < vb__ms(5000)); /* pauses would be 18 s */
	vb_listener_close(listener);
}

static void what_cannot_be_taken_for_want_of_descriptors_is_told_once(void **state)
{
	struct vb_listener *listener = listen_on_paper();
	int lowest_free = dup(paper_bell);
	struct rlimit before, no_more;

	(void)state;
	paper_deaf = true;
	assert_int_equal(eventfd_write(paper_bell, 1), 0);
	close(lowest_free);
	getrlimit(RLIMIT_NOFILE, &before);
	no_more = (struct rlimit){ .rlim_cur = (rlim_t)lowest_free, .rlim_max = before.rlim_max };
	setrlimit(RLIMIT_NOFILE, &no_more);
	for (int i = 0; i < OFTEN; i++)
		find_nobody(listener);
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(warnings, 1);
	vb_listener_close(listener);
}

static void who_does_not_come_makes_room_for_the_next(void **state)
{
	struct vb_listener *listener = listen_on_paper();

	(void)state;
	paper_callers = PLACES + 1;
	find_nobody(listener);
	find_nobody(listener);
	find_nobody(listener);
	assert_int_equal(paper_refusals, 1); /* the others may still be on their way */
	usleep((HESITATION_MS + 1) * 1000);
	paper_callers = PLACES / 2;
	find_nobody(listener);
	assert_int_equal(paper_callers, 0);
	assert_int_equal(paper_refusals, 1);
	vb_listener_close(listener);
}

/* Whoever must not block is not kept by those who are refused, and is woken for the rest. */
static void an_endless_row_of_strangers_keeps_nobody(void **state)
{
	struct vb_listener *listener = listen_on_paper();
	struct pollfd fd = { .fd = vb_listener_fd(listener), .events = POLLIN };

	(void)state;
	paper_nonsense = true;
	paper_callers = UINT_MAX;
	find_nobody(listener);
	assert_int_equal(poll(&fd, 1, 0), 1);
	paper_callers = 1;
	find_nobody(listener);
	assert_int_equal(paper_callers, 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	vb_listener_close(listener);
}

static void a_flood_of_strangers_is_no_flood_of_words(void **state)
{
	struct vb_listener *listener = listen_on_paper();
	uint64_t began = vb__now_ns(), took_s;

	(void)state;
	paper_nonsense = true;
	paper_callers = FLOOD;
	find_nobody(listener);
	assert_int_equal(refusal_lines, 1);
	while (paper_callers)
		find_nobody(listener);
	vb_listener_close(listener);
	took_s = (vb__now_ns() - began) / vb__ms(1000);
	assert_true(refusal_lines <= 2 + took_s);
	assert_int_equal(told_refusals, FLOOD);
}

/* ---- What it does without ---- */

static void assert_says(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("\"%s\" does not say \"%s\"", text, words);
}

static void without_libfabric_verbs_is_served_and_the_rest_explained(void **state)
{
	const struct vb_options options = { .fabric = VB_FABRIC_AUTO };
	struct vb_listener *listener = NULL;

	(void)state;
	paper_reset();
	paper[PAPER_OFI] =
		(struct paper_answer){ .listen = VB_ERR_UNSUPPORTED, .cause = "no libfabric" };
	assert_int_equal(vb_listener_open("127.0.0.1", "7471", &options, &listener, NULL), 0);
	assert_says(vb_listener_description(listener), "verbs: paper0; ofi: no libfabric");
	vb_listener_close(listener);
}

static void without_any_fabric_all_reasons_are_told(void **state)
{
	const struct vb_options options = { .fabric = VB_FABRIC_AUTO };
	struct vb_listener *listener = NULL;
	struct vb_error err;

	(void)state;
	paper_reset();
	paper[PAPER_CM] = (struct paper_answer){ .listen = VB_ERR_NO_DEVICE, .cause = "no device" };
	paper[PAPER_OFI] =
		(struct paper_answer){ .listen = VB_ERR_UNSUPPORTED, .cause = "no libfabric" };
	assert_int_equal(vb_listener_open("127.0.0.1", "7471", &options, &listener, &err),
			 VB_ERR_UNSUPPORTED);
	assert_says(err.cause, "verbs: no device; ofi: no libfabric");
}

static void who_asks_for_ofi_is_not_served_without_libfabric(void **state)
{
	const struct vb_options options = { .fabric = VB_FABRIC_OFI };
	struct vb_listener *listener = NULL;

	(void)state;
	paper_reset();
	paper[PAPER_OFI] =
		(struct paper_answer){ .listen = VB_ERR_UNSUPPORTED, .cause = "no libfabric" };
	assert_int_equal(vb_listener_open("127.0.0.1", "7471", &options, &listener, NULL),
			 VB_ERR_UNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_be_woken_often_for_nothing_is_no_shortage),
		cmocka_unit_test(what_wakes_and_stays_is_not_slowed_down),
		cmocka_unit_test(what_cannot_be_taken_for_want_of_descriptors_is_told_once),
		cmocka_unit_test(who_does_not_come_makes_room_for_the_next),
		cmocka_unit_test(an_endless_row_of_strangers_keeps_nobody),
		cmocka_unit_test(a_flood_of_strangers_is_no_flood_of_words),
		cmocka_unit_test(without_libfabric_verbs_is_served_and_the_rest_explained),
		cmocka_unit_test(without_any_fabric_all_reasons_are_told),
		cmocka_unit_test(who_asks_for_ofi_is_not_served_without_libfabric),
	};

	return cmocka_run_group_tests_name("acceptor", tests, NULL, NULL);
}
