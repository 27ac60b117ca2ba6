/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target without libFuzzer: over generated inputs, the same every
 * time, as TAP. With arguments: over these files, to see a crash again.
 */
#include <stdio.h>
#include <string.h>

#include "dice.h"
#include "fuzz_target.h"

#ifndef INPUTS
#define INPUTS 100000u
#endif
#define ROOM 512u

/* What numbers go wrong at. */
static const uint8_t edges[][4] = {
	{ 0, 0, 0, 0 },
	{ 1, 0, 0, 0 },
	{ 7, 0, 0, 0 },
	{ 8, 0, 0, 0 },
	{ 0xff, 0xff, 0xff, 0xff },
	{ 0xf8, 0xff, 0xff, 0xff },
	{ 0xff, 0xff, 0xff, 0x7f },
	{ 0, 0, 0, 0x80 },
	{ 0, 0, 0, 0x40 },
	{ 1, 0, 0, 0x40 },
};

static size_t mutate(struct dice *dice, uint8_t *data, size_t size)
{
	switch (dice_throw(dice, 5)) {
	case 0: /* a bit */
		if (size)
			data[dice_throw(dice, (unsigned)size)] ^=
				(uint8_t)(1u << dice_throw(dice, 8));
		return size;
	case 1: /* a byte */
		if (size)
			data[dice_throw(dice, (unsigned)size)] = (uint8_t)dice_next(dice);
		return size;
	case 2: /* a number, where numbers are */
		if (size >= 4)
			memcpy(data + dice_throw(dice, (unsigned)size / 4) * 4,
			       edges[dice_throw(dice, sizeof(edges) / sizeof(edges[0]))], 4);
		return size;
	case 3: /* cut */
		return size ? dice_throw(dice, (unsigned)size) : 0;
	default: /* more */
		dice_fill(dice, data + size, ROOM - size);
		return size + dice_throw(dice, (unsigned)(ROOM - size) + 1);
	}
}

/* In memory of its exact size, so that a sanitizer sees a read beyond the end. */
static void run(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1);

	HOLDS(exact);
	memcpy(exact, data, size);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static void run_generated(void)
{
	struct dice dice = { .state = 0 };
	uint8_t data[ROOM];

	for (unsigned i = 0; i < INPUTS; i++) {
		unsigned changes = dice_throw(&dice, 4);
		size_t size;

		memset(data, 0, sizeof(data));
		if (i % 16 == 15) {
			size = dice_throw(&dice, ROOM);
			dice_fill(&dice, data, size);
		} else {
			size = fuzz_sample(data, ROOM, dice_next(&dice));
		}
		while (changes--)
			size = mutate(&dice, data, size);
		run(data, size);
	}
}

static int run_file(const char *path)
{
	static uint8_t data[1u << 20];
	FILE *file = fopen(path, "rb");

	if (!file) {
		perror(path);
		return 1;
	}
	run(data, fread(data, 1, sizeof(data), file));
	fclose(file);
	return 0;
}

int main(int argc, char **argv)
{
	int status = 0;

	if (argc > 1) {
		for (int i = 1; i < argc; i++)
			status |= run_file(argv[i]);
		return status;
	}
	puts("1..1");
	fflush(stdout);
	run_generated();
	printf("ok 1 - invariants hold for %u inputs\n", INPUTS);
	return 0;
}
