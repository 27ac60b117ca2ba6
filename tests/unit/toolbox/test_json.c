/* SPDX-License-Identifier: Apache-2.0 */
/* JSON objects. */
#include "common/json.h"

#include <stdlib.h>

#include "suite.h"

static void members_of_every_kind_make_an_object(void **state)
{
	struct json json;
	char *text;

	(void)state;
	json_begin(&json);
	json_text(&json, "a", "b");
	json_number(&json, "n", UINT64_MAX);
	json_open(&json, "inner");
	json_real(&json, "r", 1.5);
	json_null(&json, "none");
	json_close(&json);
	json_text(&json, "missing", NULL);
	text = json_end(&json);
	assert_string_equal(text,
			    "{\"a\": \"b\", \"n\": 18446744073709551615, "
			    "\"inner\": {\"r\": 1.500, \"none\": null}, \"missing\": null}\n");
	free(text);
}

static void empty_objects_are_objects(void **state)
{
	struct json json;
	char *text;

	(void)state;
	json_begin(&json);
	json_open(&json, "o");
	json_close(&json);
	text = json_end(&json);
	assert_string_equal(text, "{\"o\": {}}\n");
	free(text);
}

static void lists_hold_items_without_names(void **state)
{
	struct json json;
	char *text;

	(void)state;
	json_begin(&json);
	json_list(&json, "l");
	json_number(&json, NULL, 1);
	json_open(&json, NULL);
	json_bool(&json, "b", true);
	json_close(&json);
	json_list_end(&json);
	json_list(&json, "none");
	json_list_end(&json);
	text = json_end(&json);
	assert_string_equal(text, "{\"l\": [1, {\"b\": true}], \"none\": []}\n");
	free(text);
}

static void any_text_is_a_valid_string(void **state)
{
	struct json json;
	char *text;

	(void)state;
	json_begin(&json);
	json_text(&json, "t", "\"\\/\n\x1b\x7f\xc3\xa4\xff\xc3");
	text = json_end(&json);
	assert_string_equal(text,
			    "{\"t\": \"\\\"\\\\/\\u000a\\u001b\\u007f\xc3\xa4\\ufffd\\ufffd\"}\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_of_every_kind_make_an_object),
		cmocka_unit_test(empty_objects_are_objects),
		cmocka_unit_test(lists_hold_items_without_names),
		cmocka_unit_test(any_text_is_a_valid_string),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
