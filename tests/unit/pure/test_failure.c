/* SPDX-License-Identifier: Apache-2.0 */
/* struct vb_error: filled in once, never overrun, and told in one line. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "core/failure.h"
#include "suite.h"

#define FIRST_CODE VB_ERR_INVALID
#define LAST_CODE VB_ERR_INTERRUPTED

static void every_code_has_a_name_and_a_text_of_its_own(void **state)
{
	(void)state;
	for (int a = FIRST_CODE; a >= LAST_CODE; a--) {
		assert_memory_equal(vb_err_name(a), "VB_ERR_", 7);
		assert_string_not_equal(vb_err_name(a), "VB_ERR_?");
		assert_string_not_equal(vb_err_text(a), "unknown error");
		assert_true(vb_err_text(a)[0]);
		for (int b = VB_OK; b > a; b--) {
			assert_string_not_equal(vb_err_name(a), vb_err_name(b));
			assert_string_not_equal(vb_err_text(a), vb_err_text(b));
		}
	}
	assert_string_equal(vb_err_name(VB_OK), "VB_OK");
	assert_string_equal(vb_err_name(VB_ERR_LOST), "VB_ERR_LOST");
	assert_string_equal(vb_err_text(VB_ERR_LOST), "connection lost");
}

static void unknown_codes_have_words_too(void **state)
{
	static const int unknown[] = { 1, LAST_CODE - 1, -1000 };

	(void)state;
	for (size_t i = 0; i < COUNT(unknown); i++) {
		assert_string_equal(vb_err_name(unknown[i]), "VB_ERR_?");
		assert_string_equal(vb_err_text(unknown[i]), "unknown error");
	}
}

static void failure_is_recorded_as_told(void **state)
{
	struct vb_error err = { .code = VB_OK };

	(void)state;
	assert_int_equal(vb__fail(&err, &(struct vb__failure){ VB_ERR_REFUSED, VB_NATIVE_CM, 8,
							       "connect", "10.0.0.2 port 7471",
							       "rejected", "start the listener" }),
			 VB_ERR_REFUSED);
	assert_int_equal(err.code, VB_ERR_REFUSED);
	assert_int_equal(err.native_kind, VB_NATIVE_CM);
	assert_int_equal(err.native, 8);
	assert_string_equal(err.operation, "connect");
	assert_string_equal(err.object, "10.0.0.2 port 7471");
	assert_string_equal(err.cause, "rejected");
	assert_string_equal(err.hint, "start the listener");
}

static void first_failure_wins_and_its_code_is_returned(void **state)
{
	struct vb_error err = { .code = VB_OK }, before;
	struct vb_error stored = { .code = VB_ERR_NOMEM, .cause = "stored" };

	(void)state;
	vb__fail_errno(&err, ECONNRESET, "read", "peer");
	before = err;
	assert_int_equal(vb__fail_errno(&err, EINVAL, "close", "fd"), VB_ERR_LOST);
	assert_int_equal(vb__fail_invalid(&err, "depth", "%d", 7), VB_ERR_LOST);
	vb__fail_again(&err, &stored);
	assert_memory_equal(&err, &before, sizeof(err));
}

static void a_stored_failure_is_copied_whole(void **state)
{
	struct vb_error err = { .code = VB_OK }, stored = { .code = VB_OK };

	(void)state;
	vb__fail_errno(&stored, EPIPE, "write", "socket");
	vb__error_hint(&stored, "try %s", "again");
	assert_int_equal(vb__fail_again(&err, &stored), VB_ERR_LOST);
	assert_memory_equal(&err, &stored, sizeof(err));
}

static void a_caller_without_an_error_gets_the_code(void **state)
{
	struct vb_error stored = { .code = VB_ERR_EOF };

	(void)state;
	assert_int_equal(vb__fail(NULL, &(struct vb__failure){ .code = VB_ERR_EOF }), VB_ERR_EOF);
	assert_int_equal(vb__fail_errno(NULL, EACCES, "open", NULL), VB_ERR_ACCESS);
	assert_int_equal(vb__fail_invalid(NULL, "depth", "%s", "wrong"), VB_ERR_INVALID);
	assert_int_equal(vb__fail_again(NULL, &stored), VB_ERR_EOF);
	vb__error_hint(NULL, "%s", "lost");
	vb__error_clear(NULL);
}

static void errnos_become_the_codes_that_fit(void **state)
{
	static const struct {
		int errnum;
		enum vb_err code;
	} cases[] = {
		{ EINVAL, VB_ERR_INVALID },
		{ ENOMEM, VB_ERR_NOMEM },
		{ ENODEV, VB_ERR_NO_DEVICE },
		{ ENXIO, VB_ERR_NO_DEVICE },
		{ EACCES, VB_ERR_ACCESS },
		{ EPERM, VB_ERR_ACCESS },
		{ ECONNREFUSED, VB_ERR_REFUSED },
		{ EHOSTUNREACH, VB_ERR_UNREACHABLE },
		{ ENETUNREACH, VB_ERR_UNREACHABLE },
		{ EADDRNOTAVAIL, VB_ERR_UNREACHABLE },
		{ ETIMEDOUT, VB_ERR_TIMEOUT },
		{ EADDRINUSE, VB_ERR_IN_USE },
		{ ECONNRESET, VB_ERR_LOST },
		{ ECONNABORTED, VB_ERR_LOST },
		{ EPIPE, VB_ERR_LOST },
		{ ENOTCONN, VB_ERR_LOST },
		{ EAGAIN, VB_ERR_SYSTEM },
		{ EOPNOTSUPP, VB_ERR_UNSUPPORTED },
		{ ENOSYS, VB_ERR_UNSUPPORTED },
		{ EIO, VB_ERR_SYSTEM },
		{ EMFILE, VB_ERR_SYSTEM },
		{ 0, VB_ERR_SYSTEM },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct vb_error err = { .code = VB_OK };

		assert_int_equal(vb__fail_errno(&err, cases[i].errnum, "op", NULL), cases[i].code);
		assert_int_equal(err.native, cases[i].errnum);
		assert_int_equal(err.native_kind, VB_NATIVE_ERRNO);
	}
}

static void a_cause_that_is_not_told_comes_from_the_native_value_or_the_code(void **state)
{
	static const struct {
		enum vb_native kind;
		int native;
	} without_words[] = { { VB_NATIVE_NONE, 0 }, { VB_NATIVE_ERRNO, 0 }, { VB_NATIVE_WC, 12 },
			      { VB_NATIVE_CM, 8 },   { VB_NATIVE_ASYNC, 1 }, { VB_NATIVE_FI, 111 } };
	struct vb_error err = { .code = VB_OK };

	(void)state;
	for (size_t i = 0; i < COUNT(without_words); i++) {
		vb__error_clear(&err);
		vb__fail(&err, &(struct vb__failure){ .code = VB_ERR_LOST,
						      .native_kind = without_words[i].kind,
						      .native = without_words[i].native });
		assert_string_equal(err.cause, "connection lost");
	}
	vb__error_clear(&err);
	vb__fail_errno(&err, ENOENT, "open", NULL);
	assert_string_equal(err.cause, strerror(ENOENT));
	vb__error_clear(&err);
	vb__fail(&err, &(struct vb__failure){ .code = VB_ERR_RESOLVE,
					      .native_kind = VB_NATIVE_GAI,
					      .native = EAI_NONAME });
	assert_string_equal(err.cause, gai_strerror(EAI_NONAME));
}

static void one_line_tells_all_parts_that_there_are(void **state)
{
	static const struct {
		struct vb_error err;
		const char *line;
	} cases[] = {
		{ { .cause = "why" }, "why" },
		{ { .operation = "connect", .cause = "why" }, "connect: why" },
		{ { .operation = "connect", .object = "host", .cause = "why" },
		  "connect host: why" },
		{ { .operation = "o", .cause = "why", .hint = "try" }, "o: why; try" },
		{ { .operation = "o", .cause = "c", .native_kind = VB_NATIVE_ERRNO, .native = 5 },
		  "o: c (errno 5)" },
		{ { .operation = "o", .cause = "c", .native_kind = VB_NATIVE_GAI, .native = -2 },
		  "o: c (getaddrinfo -2)" },
		{ { .operation = "o", .cause = "c", .native_kind = VB_NATIVE_WC, .native = 12 },
		  "o: c (wc status 12)" },
		{ { .operation = "o", .cause = "c", .native_kind = VB_NATIVE_CM, .native = 8 },
		  "o: c (cm event 8)" },
		{ { .operation = "o", .cause = "c", .native_kind = VB_NATIVE_ASYNC, .native = 1 },
		  "o: c (async event 1)" },
		{ { .operation = "send to",
		    .object = "h",
		    .cause = "c",
		    .native_kind = VB_NATIVE_FI,
		    .native = 111,
		    .hint = "try this" },
		  "send to h: c (fi_errno 111); try this" },
	};
	char line[VB_ERROR_LINE_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_ptr_equal(vb_error_format(&cases[i].err, line, sizeof(line)), line);
		assert_string_equal(line, cases[i].line);
	}
}

/* Longer than any field. */
static const char *long_text(void)
{
	static char text[2000];

	memset(text, 'x', sizeof(text) - 1);
	return text;
}

static void texts_too_long_are_cut_and_the_line_still_fits(void **state)
{
	struct vb_error err = { .code = VB_OK };
	char line[VB_ERROR_LINE_MAX];

	(void)state;
	vb__fail(&err, &(struct vb__failure){ VB_ERR_SYSTEM, VB_NATIVE_ASYNC, -2147483647 - 1,
					      long_text(), long_text(), long_text(), long_text() });
	assert_int_equal(strlen(err.operation), sizeof(err.operation) - 1);
	assert_int_equal(strlen(err.object), sizeof(err.object) - 1);
	assert_int_equal(strlen(err.cause), sizeof(err.cause) - 1);
	assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
	vb_error_format(&err, line, sizeof(line));
	assert_int_equal(strlen(line), sizeof(err.operation) + sizeof(err.object) +
					       sizeof(err.cause) + sizeof(err.hint) - 4 +
					       strlen(" : (async event -2147483648); ") + 1);
	vb__error_hint(&err, "%s", long_text());
	assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
	vb__error_clear(&err);
	vb__fail_invalid(&err, long_text(), "%s", long_text());
	assert_int_equal(strlen(err.cause), sizeof(err.cause) - 1);
}

static void formatting_never_writes_beyond_the_buffer(void **state)
{
	struct vb_error err = { .operation = "connect", .object = "host", .cause = "refused" };
	char whole[VB_ERROR_LINE_MAX], part[VB_ERROR_LINE_MAX];

	(void)state;
	vb_error_format(&err, whole, sizeof(whole));
	for (size_t size = 0; size <= strlen(whole) + 1; size++) {
		memset(part, '#', sizeof(part));
		vb_error_format(&err, part, size);
		assert_int_equal(part[size], '#');
		if (!size)
			continue;
		assert_int_equal(strlen(part), size - 1);
		assert_memory_equal(part, whole, size - 1);
	}
}

static void a_cleared_error_takes_the_next_failure(void **state)
{
	struct vb_error err = { .code = VB_OK };

	(void)state;
	vb__fail_errno(&err, EPIPE, "write", "x");
	vb__error_hint(&err, "hint");
	vb__error_clear(&err);
	vb__fail(&err, &(struct vb__failure){ .code = VB_ERR_EOF });
	assert_int_equal(err.code, VB_ERR_EOF);
	assert_int_equal(err.native_kind, VB_NATIVE_NONE);
	assert_string_equal(err.operation, "");
	assert_string_equal(err.object, "");
	assert_string_equal(err.cause, "end of stream");
	assert_string_equal(err.hint, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_a_name_and_a_text_of_its_own),
		cmocka_unit_test(unknown_codes_have_words_too),
		cmocka_unit_test(failure_is_recorded_as_told),
		cmocka_unit_test(first_failure_wins_and_its_code_is_returned),
		cmocka_unit_test(a_stored_failure_is_copied_whole),
		cmocka_unit_test(a_caller_without_an_error_gets_the_code),
		cmocka_unit_test(errnos_become_the_codes_that_fit),
		cmocka_unit_test(a_cause_that_is_not_told_comes_from_the_native_value_or_the_code),
		cmocka_unit_test(one_line_tells_all_parts_that_there_are),
		cmocka_unit_test(texts_too_long_are_cut_and_the_line_still_fits),
		cmocka_unit_test(formatting_never_writes_beyond_the_buffer),
		cmocka_unit_test(a_cleared_error_takes_the_next_failure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
