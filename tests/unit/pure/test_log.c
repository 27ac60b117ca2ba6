/* SPDX-License-Identifier: Apache-2.0 */
/* The log: which lines reach the application. */
#include <string.h>

#include "core/log.h"
#include "suite.h"

struct seen {
	unsigned lines;
	enum vb_log_level level;
	char line[2048];
};

static void remember(void *arg, enum vb_log_level level, const char *line)
{
	struct seen *seen = arg;

	seen->lines++;
	seen->level = level;
	strcpy(seen->line, line);
}

static void lines_up_to_the_level_arrive_and_no_others(void **state)
{
	(void)state;
	for (int level = VB_LOG_WARNING; level <= VB_LOG_DEBUG; level++)
		for (int line = VB_LOG_WARNING; line <= VB_LOG_DEBUG; line++) {
			struct seen seen = { .lines = 0 };
			struct vb__log log = { remember, &seen, (enum vb_log_level)level };

			vb__log(&log, (enum vb_log_level)line, "%d of %d", line, level);
			assert_int_equal(seen.lines, line <= level);
			if (seen.lines)
				assert_int_equal(seen.level, line);
		}
}

static void a_line_arrives_formatted_and_without_newline(void **state)
{
	struct seen seen = { .lines = 0 };
	struct vb__log log = { remember, &seen, VB_LOG_INFO };

	(void)state;
	vb__log(&log, VB_LOG_INFO, "%s on %s", "verbs", "rxe0");
	assert_string_equal(seen.line, "verbs on rxe0");
}

static void a_line_too_long_is_cut(void **state)
{
	struct seen seen = { .lines = 0 };
	struct vb__log log = { remember, &seen, VB_LOG_INFO };
	char text[2000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	vb__log(&log, VB_LOG_WARNING, "%s", text);
	assert_int_equal(strlen(seen.line), 1023);
}

static void without_a_callback_nothing_happens(void **state)
{
	struct vb__log log = { NULL, NULL, VB_LOG_DEBUG };

	(void)state;
	vb__log(&log, VB_LOG_WARNING, "%s", "nobody listens");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_up_to_the_level_arrive_and_no_others),
		cmocka_unit_test(a_line_arrives_formatted_and_without_newline),
		cmocka_unit_test(a_line_too_long_is_cut),
		cmocka_unit_test(without_a_callback_nothing_happens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
