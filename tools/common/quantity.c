/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts: parsing and printing. What is sensible for an option is not decided here. */
#include "common/quantity.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Six digits after the point: so `fraction` times any unit below fits in 64 bits. */
#define FRACTION 1000000u

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit sizes[] = {
	{ "", 1 },
	{ "B", 1 },
	{ "K", UINT64_C(1) << 10 },
	{ "KiB", UINT64_C(1) << 10 },
	{ "KB", UINT64_C(1000) },
	{ "M", UINT64_C(1) << 20 },
	{ "MiB", UINT64_C(1) << 20 },
	{ "MB", UINT64_C(1000000) },
	{ "G", UINT64_C(1) << 30 },
	{ "GiB", UINT64_C(1) << 30 },
	{ "GB", UINT64_C(1000000000) },
	{ "T", UINT64_C(1) << 40 },
	{ "TiB", UINT64_C(1) << 40 },
	{ "TB", UINT64_C(1000000000000) },
};

static const struct unit times[] = {
	{ "", 1000 },	{ "s", 1000 },	  { "ms", 1 },
	{ "m", 60000 }, { "min", 60000 }, { "h", 3600000 },
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at `text`; returns what follows them, NULL if there are none or too many. */
static const char *whole_part(const char *text, uint64_t *value)
{
	if (!is_digit(*text))
		return NULL;
	for (*value = 0; is_digit(*text); text++)
		if (__builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(*text - '0'), value))
			return NULL;
	return text;
}

/* ".25" at `text`, in millionths, or nothing. */
static const char *fraction_part(const char *text, uint64_t *millionths)
{
	uint64_t place = FRACTION;

	*millionths = 0;
	if (*text != '.')
		return text;
	if (!is_digit(*++text))
		return NULL;
	for (; is_digit(*text); text++) {
		place /= 10;
		*millionths += place * (uint64_t)(*text - '0');
	}
	return text;
}

static int amount(const char *text, const struct unit *units, size_t count, uint64_t *result)
{
	uint64_t value = 0, millionths = 0;
	bool is_zero = !strpbrk(text, "123456789");

	text = whole_part(text, &value);
	if (text)
		text = fraction_part(text, &millionths);
	for (size_t i = 0; text && i < count; i++) {
		if (strcasecmp(text, units[i].name) != 0)
			continue;
		if (__builtin_mul_overflow(value, units[i].factor, &value) ||
		    __builtin_add_overflow(value, millionths * units[i].factor / FRACTION, &value))
			return -1;
		/* Mostly 0 means something else than very little. */
		if (!value && !is_zero)
			return -1;
		*result = value;
		return 0;
	}
	return -1;
}

int quantity_size(const char *text, uint64_t *bytes)
{
	return amount(text, sizes, COUNT(sizes), bytes);
}

int quantity_time(const char *text, uint64_t *ms)
{
	return amount(text, times, COUNT(times), ms);
}

int quantity_count(const char *text, uint64_t *count)
{
	const char *end = whole_part(text, count);

	return end && !*end ? 0 : -1;
}

/* Three digits that count: "1.23", "12.3", "123". */
static char *in_units(char to[QUANTITY_TEXT], uint64_t value, const char *suffix)
{
	static const char *const prefixes[] = { "", "k", "M", "G", "T", "P", "E" };
	double shown = (double)value;
	size_t i = 0;

	/* 999.5 would be printed as 1000. */
	for (; shown >= 999.5 && i + 1 < COUNT(prefixes); i++)
		shown /= 1000;
	snprintf(to, QUANTITY_TEXT, "%.*f %s%s",
		 i == 0		 ? 0
		 : shown < 9.995 ? 2
		 : shown < 99.95 ? 1
				 : 0,
		 shown, prefixes[i], suffix);
	return to;
}

char *quantity_bytes(char to[QUANTITY_TEXT], uint64_t bytes)
{
	return in_units(to, bytes, "B");
}

char *quantity_rate(char to[QUANTITY_TEXT], uint64_t bytes_per_second)
{
	return in_units(to, bytes_per_second, "B/s");
}

char *quantity_duration(char to[QUANTITY_TEXT], uint64_t seconds)
{
	uint64_t hours = seconds / 3600;
	unsigned rest = (unsigned)(seconds % 3600);

	if (hours > 99999)
		snprintf(to, QUANTITY_TEXT, "long");
	else if (hours)
		snprintf(to, QUANTITY_TEXT, "%" PRIu64 ":%02u:%02u", hours, rest / 60, rest % 60);
	else
		snprintf(to, QUANTITY_TEXT, "%u:%02u", rest / 60, rest % 60);
	return to;
}

uint64_t quantity_speed(uint64_t bytes, uint64_t elapsed_ns)
{
	double speed = elapsed_ns ? (double)bytes * 1e9 / (double)elapsed_ns : 0;

	return speed < 1e19 ? (uint64_t)speed : UINT64_MAX;
}
