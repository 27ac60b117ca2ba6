/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that are the same on every run: what fails once fails again. */
#ifndef VB_TEST_DICE_H
#define VB_TEST_DICE_H

#include <stddef.h>
#include <stdint.h>

struct dice {
	uint64_t state;
};

/* splitmix64 */
static inline uint64_t dice_next(struct dice *dice)
{
	uint64_t z = (dice->state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* 0 .. sides - 1 */
static inline unsigned dice_throw(struct dice *dice, unsigned sides)
{
	return (unsigned)(dice_next(dice) % sides);
}

static inline void dice_fill(struct dice *dice, uint8_t *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)dice_next(dice);
}

#endif
