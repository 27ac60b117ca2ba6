/* SPDX-License-Identifier: Apache-2.0 */
/* Frames. */
#include "remote/frame.h"

#include <string.h>

#define MAGIC_BYTES 8u

/* What no shell prints by itself, and what does not survive a change of line ends. */
static const uint8_t *magic_of(enum tool tool)
{
	static const uint8_t copy[MAGIC_BYTES] = { 'V', 'B', 'r', 'd', 'c', 'p', 0x1a, '\n' };
	static const uint8_t pipe[MAGIC_BYTES] = { 'V', 'B', 'p', 'i', 'p', 'e', 0x1a, '\n' };

	return tool == RDCP ? copy : pipe;
}

void frame_hello(uint8_t to[FRAME_HELLO_BYTES], enum tool tool)
{
	memcpy(to, magic_of(tool), MAGIC_BYTES);
	for (size_t i = 0; i < 4; i++)
		to[MAGIC_BYTES + i] = (uint8_t)(FRAME_VERSION >> 8 * i);
}

int frame_hello_begins(const uint8_t *from, size_t len, enum tool tool)
{
	return memcmp(from, magic_of(tool), len < MAGIC_BYTES ? len : MAGIC_BYTES) == 0;
}

static uint32_t number(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

uint32_t frame_hello_version(const uint8_t from[FRAME_HELLO_BYTES], enum tool tool)
{
	return frame_hello_begins(from, MAGIC_BYTES, tool) ? number(from + MAGIC_BYTES) : 0;
}

void frame_head(uint8_t to[FRAME_HEAD], enum frame_kind kind, size_t len)
{
	for (size_t i = 0; i < 4; i++)
		to[i] = (uint8_t)(len >> 8 * i);
	to[4] = (uint8_t)kind;
}

ssize_t frame_take(struct frame *frame, const uint8_t *bytes, size_t len)
{
	uint32_t payload;

	if (len < FRAME_HEAD)
		return 0;
	payload = number(bytes);
	if (payload > FRAME_MAX || bytes[4] == FRAME_NONE || bytes[4] > FRAME_LAST)
		return -1;
	if (len - FRAME_HEAD < payload)
		return 0;
	*frame = (struct frame){ .kind = bytes[4], .payload = bytes + FRAME_HEAD, .len = payload };
	return (ssize_t)(FRAME_HEAD + payload);
}
