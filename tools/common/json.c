/* SPDX-License-Identifier: Apache-2.0 */
/* JSON, only as far as the tools say something in it. */
#include "common/json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/printable.h"

void json_begin(struct json *json)
{
	*json = (struct json){ .empty = true };
	json->out = open_memstream(&json->text, &json->size);
	if (json->out)
		fputc('{', json->out);
}

static void quote(FILE *out, const char *text)
{
	uint32_t code = 0;
	size_t len;

	fputc('"', out);
	for (; *text; text += len ? len : 1) {
		len = printable_character(text, &code);
		if (!len)
			fputs("\\ufffd", out);
		else if (code == '"' || code == '\\')
			fprintf(out, "\\%c", (int)code);
		else if (code < 0x20 || (code >= 0x7f && code < 0xa0))
			fprintf(out, "\\u%04x", (unsigned)code);
		else
			fwrite(text, 1, len, out);
	}
	fputc('"', out);
}

static bool name_member(struct json *json, const char *name)
{
	if (!json->out)
		return false;
	if (!json->empty)
		fputs(", ", json->out);
	json->empty = false;
	if (name) {
		quote(json->out, name);
		fputs(": ", json->out);
	}
	return true;
}

void json_text(struct json *json, const char *name, const char *text)
{
	if (!text)
		json_null(json, name);
	else if (name_member(json, name))
		quote(json->out, text);
}

void json_number(struct json *json, const char *name, uint64_t number)
{
	if (name_member(json, name))
		fprintf(json->out, "%" PRIu64, number);
}

void json_real(struct json *json, const char *name, double number)
{
	if (name_member(json, name))
		fprintf(json->out, "%.3f", number);
}

void json_bool(struct json *json, const char *name, bool value)
{
	if (name_member(json, name))
		fputs(value ? "true" : "false", json->out);
}

void json_null(struct json *json, const char *name)
{
	if (name_member(json, name))
		fputs("null", json->out);
}

void json_open(struct json *json, const char *name)
{
	if (name_member(json, name))
		fputc('{', json->out);
	json->empty = true;
}

void json_close(struct json *json)
{
	if (json->out)
		fputc('}', json->out);
	json->empty = false;
}

void json_list(struct json *json, const char *name)
{
	if (name_member(json, name))
		fputc('[', json->out);
	json->empty = true;
}

void json_list_end(struct json *json)
{
	if (json->out)
		fputc(']', json->out);
	json->empty = false;
}

char *json_end(struct json *json)
{
	bool whole;

	if (!json->out)
		return NULL;
	fputs("}\n", json->out);
	whole = !ferror(json->out);
	if (fclose(json->out) != 0 || !whole) {
		free(json->text);
		return NULL;
	}
	return json->text;
}
