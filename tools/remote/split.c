/* SPDX-License-Identifier: Apache-2.0 */
/* Splitting. Quotes and backslashes count; nothing is substituted. */
#include "remote/split.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n';
}

/* Between double quotes a backslash is one unless it stands before these. */
static bool escapes(char quote, const char *at)
{
	return *at == '\\' && at[1] && quote != '\'' && (!quote || strchr("\"\\$`", at[1]));
}

/* One word into `word`, which is as long as `text`; NULL if a quote is not closed. */
static const char *take_word(char *word, const char *text)
{
	char quote = 0;

	for (; *text && (quote || !is_blank(*text)); text++) {
		if (escapes(quote, text))
			*word++ = *++text;
		else if (quote ? *text == quote : *text == '\'' || *text == '"')
			quote = quote ? 0 : *text;
		else
			*word++ = *text;
	}
	*word = '\0';
	return quote ? NULL : text;
}

const char *split_words(struct list *words, const char *text)
{
	char *word = malloc(strlen(text) + 1);
	const char *wrong = word ? NULL : "out of memory";

	for (;;) {
		while (is_blank(*text))
			text++;
		if (!*text || wrong)
			break;
		text = take_word(word, text);
		if (!text)
			wrong = "a quote is not closed";
		else if (list_add(words, word) != 0)
			wrong = "out of memory";
		if (wrong)
			break;
	}
	free(word);
	return wrong;
}
