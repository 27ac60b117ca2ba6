/* SPDX-License-Identifier: Apache-2.0 */
/* Text made harmless: a name may hold escape sequences that a terminal would obey. */
#include "common/printable.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

size_t printable_character(const char *text, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *s = (const unsigned char *)text;
	size_t len = s[0] < 0x80       ? 1
		     : s[0] >> 5 == 6  ? 2
		     : s[0] >> 4 == 14 ? 3
		     : s[0] >> 3 == 30 ? 4
				       : 0;

	if (!s[0] || !len)
		return 0;
	*code = len == 1 ? s[0] : s[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if (s[i] >> 6 != 2)
			return 0;
		*code = *code << 6 | (s[i] & 0x3fu);
	}
	if (*code < least[len] || *code > 0x10ffff || (*code >= 0xd800 && *code <= 0xdfff))
		return 0;
	return len;
}

static bool is_harmless(uint32_t code)
{
	return !(code < 0x20 || (code >= 0x7f && code < 0xa0) ||
		 (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
		 (code >= 0x2066 && code <= 0x2069));
}

/* What stands for the one byte `c`. */
static void escape(char to[8], unsigned char c)
{
	static const char letters[] = "\nn\tt\rr";
	const char *at = c ? strchr(letters, c) : NULL;

	if (at && c < 0x20)
		snprintf(to, 8, "\\%c", at[1]);
	else
		snprintf(to, 8, "\\x%02x", c);
}

char *printable(char *to, size_t size, const char *from)
{
	size_t used = 0;

	while (*from) {
		char piece[8] = "";
		uint32_t code = 0;
		size_t len = printable_character(from, &code);

		if (len && is_harmless(code)) {
			memcpy(piece, from, len);
			piece[len] = '\0';
			from += len;
		} else {
			escape(piece, (unsigned char)*from++);
		}
		if (used + strlen(piece) >= size)
			break;
		memcpy(to + used, piece, strlen(piece));
		used += strlen(piece);
	}
	if (size)
		to[used] = '\0';
	return to;
}

static unsigned width_of(uint32_t code)
{
	static const struct {
		uint32_t first, last;
	} wide[] = { { 0x1100, 0x115f },   { 0x2e80, 0xa4cf },	 { 0xac00, 0xd7a3 },
		     { 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },	 { 0xff00, 0xff60 },
		     { 0xffe0, 0xffe6 },   { 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff },
		     { 0x1f900, 0x1faff }, { 0x20000, 0x3fffd } };

	if ((code >= 0x300 && code <= 0x36f) || code == 0x200b || code == 0x200d ||
	    (code >= 0xfe00 && code <= 0xfe0f))
		return 0;
	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		if (code >= wide[i].first && code <= wide[i].last)
			return 2;
	return 1;
}

size_t printable_columns(const char *text)
{
	size_t columns = 0;

	while (*text) {
		uint32_t code = 0;
		size_t len = printable_character(text, &code);

		columns += len ? width_of(code) : 1;
		text += len ? len : 1;
	}
	return columns;
}
