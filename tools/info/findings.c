/* SPDX-License-Identifier: Apache-2.0 */
/* Findings, collected and shown. */
#include "info/findings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/printable.h"

#define WIDTH 100
#define COLUMN 24 /* where the text begins */

void findings_add(struct findings *findings, enum finding_level level, const char *topic,
		  const char *remedy, const char *format, ...)
{
	struct finding *new = calloc(1, sizeof(*new));
	va_list args;

	findings->count[level]++;
	if (!new) {
		findings->lost = true;
		return;
	}
	new->level = level;
	snprintf(new->topic, sizeof(new->topic), "%s", topic);
	snprintf(new->remedy, sizeof(new->remedy), "%s", remedy ? remedy : "");
	va_start(args, format);
	vsnprintf(new->text, sizeof(new->text), format, args);
	va_end(args);
	if (findings->last)
		findings->last->next = new;
	else
		findings->first = new;
	findings->last = new;
}

enum finding_level findings_worst(const struct findings *findings)
{
	if (findings->count[FINDING_PROBLEM])
		return FINDING_PROBLEM;
	return findings->count[FINDING_WARNING] ? FINDING_WARNING : FINDING_OK;
}

const char *finding_level_name(enum finding_level level)
{
	static const char *const names[] = { "ok", "warning", "problem" };

	return names[level];
}

/* Begins at COLUMN and goes on there in further lines. */
static void wrap(const char *text)
{
	size_t column = COLUMN;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (column > COLUMN && column + 1 + len > WIDTH) {
			printf("\n%*s", COLUMN, "");
			column = COLUMN;
		} else if (column > COLUMN) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)len, text);
		column += len;
		text += len + strspn(text + len, " ");
	}
	putchar('\n');
}

static void print_lines(const struct findings *findings)
{
	char clean[1024];

	for (const struct finding *f = findings->first; f; f = f->next) {
		printf("%-8s %-14s ", finding_level_name(f->level), f->topic);
		wrap(printable(clean, sizeof(clean), f->text));
		if (!f->remedy[0])
			continue;
		printf("%*s", COLUMN, "");
		snprintf(clean, sizeof(clean), "try: %s", f->remedy);
		wrap(clean);
	}
	printf("\n%u ok, %u warning%s, %u problem%s\n", findings->count[FINDING_OK],
	       findings->count[FINDING_WARNING], findings->count[FINDING_WARNING] == 1 ? "" : "s",
	       findings->count[FINDING_PROBLEM], findings->count[FINDING_PROBLEM] == 1 ? "" : "s");
}

static void print_json(const struct findings *findings)
{
	struct json json;
	char *line;

	json_begin(&json);
	json_text(&json, "worst", finding_level_name(findings_worst(findings)));
	json_list(&json, "checks");
	for (const struct finding *f = findings->first; f; f = f->next) {
		json_open(&json, NULL);
		json_text(&json, "level", finding_level_name(f->level));
		json_text(&json, "topic", f->topic);
		json_text(&json, "text", f->text);
		json_text(&json, "remedy", f->remedy[0] ? f->remedy : NULL);
		json_close(&json);
	}
	json_list_end(&json);
	line = json_end(&json);
	if (line)
		fputs(line, stdout);
	free(line);
}

int findings_print(const struct findings *findings, bool as_json)
{
	if (as_json)
		print_json(findings);
	else
		print_lines(findings);
	return fflush(stdout) == 0 && !findings->lost ? 0 : -1;
}

void findings_free(struct findings *findings)
{
	while (findings->first) {
		struct finding *f = findings->first;

		findings->first = f->next;
		free(f);
	}
	*findings = (struct findings){ .first = NULL };
}
