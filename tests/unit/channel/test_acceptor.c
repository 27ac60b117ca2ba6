/* SPDX-License-Identifier: Apache-2.0 */
/* A listener that is woken and finds nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>

#include <cmocka.h>
#include <verbatim/channel.h>

#include "paper_fabrics.h"

#define OFTEN 201

static unsigned warnings;

static void count_warning(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg, (void)level;
	assert_non_null(strstr(line, "ulimit -n"));
	warnings++;
}

static struct vb_listener *listen_on_paper(void)
{
	const struct vb_options options = { .fabric = VB_FABRIC_VERBS, .log = count_warning };
	struct vb_listener *listener = NULL;

	warnings = 0;
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

static void what_wakes_and_cannot_be_taken_is_told_once(void **state)
{
	struct vb_listener *listener = listen_on_paper();

	(void)state;
	paper_deaf = true;
	assert_int_equal(eventfd_write(paper_bell, 1), 0);
	for (int i = 0; i < OFTEN; i++)
		find_nobody(listener);
	assert_int_equal(warnings, 1);
	vb_listener_close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(to_be_woken_often_for_nothing_is_no_shortage),
		cmocka_unit_test(what_wakes_and_cannot_be_taken_is_told_once),
	};

	return cmocka_run_group_tests_name("acceptor", tests, NULL, NULL);
}
