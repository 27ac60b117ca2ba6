/* SPDX-License-Identifier: Apache-2.0 */
/* Axes. */
#include "perf/axis.h"

#include <math.h>

#define POWERS_OF_TWO_MAX 13

/* Products of powers of ten are not exact. */
#define ALMOST 1e-9

static void add_tick(struct axis *axis, double value)
{
	if (axis->count < AXIS_TICKS)
		axis->tick[axis->count++] = value;
}

static double step_for(double most)
{
	double power = pow(10, floor(log10(most) + ALMOST));

	if (most / power >= 8)
		return 2 * power;
	if (most / power >= 4)
		return power;
	return most / power >= 2 ? power / 2 : power / 5;
}

void axis_linear(struct axis *axis, double most)
{
	bool sound = most > 0 && isfinite(most);
	double step = sound ? step_for(most) : 0.25;
	double steps = sound ? ceil(most / step - ALMOST) : 4;

	axis->logarithmic = false;
	axis->count = 0;
	axis->low = 0;
	axis->high = steps * step;
	for (int i = 0; i <= (int)steps; i++)
		add_tick(axis, i * step);
}

/* The next of 1, 2, 5, 10 ... below or above. */
static double round_125(double value, bool up)
{
	static const double steps[] = { 1, 2, 5, 10 };
	double power = pow(10, floor(log10(value) + ALMOST));

	for (int i = 0; i < 4; i++) {
		double rounded = steps[up ? i : 3 - i] * power;

		if (up ? rounded >= value * (1 - ALMOST) : rounded <= value * (1 + ALMOST))
			return rounded;
	}
	return power;
}

static bool is_on(const struct axis *axis, double value)
{
	return value >= axis->low * (1 - ALMOST) && value <= axis->high * (1 + ALMOST);
}

void axis_log10(struct axis *axis, double least, double most)
{
	static const double steps[] = { 1, 2, 5 };
	double power;
	bool fine;

	if (!(least > 0) || !isfinite(most) || most < least)
		least = most = 1;
	axis->logarithmic = true;
	axis->count = 0;
	axis->low = round_125(least, false);
	axis->high = round_125(most, true);
	if (axis->high <= axis->low)
		axis->high = 10 * axis->low;
	fine = axis->high / axis->low < 2e3;
	power = pow(10, floor(log10(axis->low) + ALMOST));
	while (power <= axis->high * (1 + ALMOST)) {
		for (int i = 0; i < (fine ? 3 : 1); i++)
			if (is_on(axis, steps[i] * power))
				add_tick(axis, steps[i] * power);
		power *= 10;
	}
}

void axis_log2(struct axis *axis, double least, double most)
{
	int first, last, every;

	if (!(least > 0) || !isfinite(most) || most < least)
		least = most = 1;
	first = (int)ceil(log2(least) - ALMOST);
	last = (int)floor(log2(most) + ALMOST);
	every = (last - first) / POWERS_OF_TWO_MAX + 1;
	axis->logarithmic = true;
	axis->count = 0;
	/* A single size stands in the middle. */
	axis->low = most > least ? least : least / 2;
	axis->high = most > least ? most : most * 2;
	for (int i = first; i <= last; i += every)
		add_tick(axis, exp2(i));
	if (!axis->count)
		add_tick(axis, least);
}

double axis_place(const struct axis *axis, double value)
{
	double part;

	if (axis->logarithmic)
		part = log(value / axis->low) / log(axis->high / axis->low);
	else
		part = (value - axis->low) / (axis->high - axis->low);
	if (!(part > 0))
		part = 0;
	return axis->from + (part < 1 ? part : 1) * (axis->to - axis->from);
}
