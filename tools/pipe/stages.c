/* SPDX-License-Identifier: Apache-2.0 */
/* Stages. */
#include "pipe/stages.h"

#include <stdlib.h>
#include <string.h>

#include "common/console.h"
#include "common/exit_code.h"
#include "remote/operand.h"

/* ---- One ---- */

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t\n");
}

/* What an operator stands before is a name to its end: no shell looks at it. */
static enum stage_kind kind_of(const char **text)
{
	const char *at = skip_blanks(*text);
	enum stage_kind kind = STAGE_COMMAND;

	if (at[0] == '<')
		kind = STAGE_READ;
	else if (at[0] == '>')
		kind = at[1] == '>' ? STAGE_APPEND : STAGE_WRITE;
	if (kind != STAGE_COMMAND)
		*text = skip_blanks(at + (kind == STAGE_APPEND ? 2 : 1));
	return kind;
}

const char *stage_parse(struct stage *stage, const char *word)
{
	struct operand operand = { .kind = OPERAND_LOCAL };
	const char *wrong = NULL, *text = word;

	*stage = (struct stage){ .kind = kind_of(&text) };
	if (stage->kind == STAGE_COMMAND) {
		wrong = operand_parse(&operand, word);
		if (!wrong && operand.kind != OPERAND_REMOTE)
			wrong = "that is no stage: write HOST:COMMAND, '<FILE', '>FILE' or "
				"'>>FILE'";
		text = operand.path ? operand.path : "";
		stage->kind = kind_of(&text);
		stage->host = operand.host;
		operand.host = NULL;
	}
	if (!wrong && !*skip_blanks(text))
		wrong = stage->kind == STAGE_COMMAND ? "there is no command"
						     : "there is no name of a file";
	stage->text = strdup(text);
	if (!wrong && !stage->text)
		wrong = "out of memory";
	operand_free(&operand);
	return wrong;
}

void stage_free(struct stage *stage)
{
	free(stage->host);
	free(stage->text);
	*stage = (struct stage){ 0 };
}

/* ---- All ---- */

static const char *misplaced(const struct stages *stages, size_t i)
{
	enum stage_kind kind = stages->stage[i].kind;

	if (kind == STAGE_READ && i > 0)
		return "'<' can only be the first stage";
	if ((kind == STAGE_WRITE || kind == STAGE_APPEND) && i + 1 < stages->count)
		return "'>' can only be the last stage; in between there is tee";
	return NULL;
}

static bool any_host(const struct stages *stages)
{
	for (size_t i = 0; i < stages->count; i++)
		if (stages->stage[i].host)
			return true;
	return false;
}

int stages_make(struct stages *stages, const struct arguments *a)
{
	size_t count = a->places.count;

	*stages = (struct stages){ 0 };
	if (!count)
		return arguments_misused(a, "STAGE is missing");
	stages->stage = calloc(count, sizeof(*stages->stage));
	if (!stages->stage) {
		console_error("out of memory");
		return EXIT_MEMORY;
	}
	stages->count = count;
	for (size_t i = 0; i < count; i++) {
		const char *wrong = stage_parse(&stages->stage[i], a->places.item[i]);

		wrong = wrong ? wrong : misplaced(stages, i);
		if (wrong)
			return arguments_misused(a, "'%.200s': %s", a->places.item[i], wrong);
	}
	if (!any_host(stages))
		return arguments_misused(a, "no stage is at another host; here use the shell");
	return -1;
}

void stages_free(struct stages *stages)
{
	for (size_t i = 0; i < stages->count; i++)
		stage_free(&stages->stage[i]);
	free(stages->stage);
	*stages = (struct stages){ 0 };
}
