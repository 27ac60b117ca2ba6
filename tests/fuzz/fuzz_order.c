/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what rdcp and rdpipe and their far sides say to each other over ssh: frames, orders and messages. */
#include <stdlib.h>
#include <string.h>

#include "copy/order.h"
#include "fuzz_target.h"
#include "pipe/stage_order.h"
#include "remote/frame.h"

static void check_order(const uint8_t *data, size_t size)
{
	struct order order, again;
	struct pack pack = { 0 };

	if (order_unpack(&order, data, size)) {
		/* What was understood says the same when it is said again. */
		order_pack(&pack, &order);
		HOLDS(pack.len == size && order_unpack(&again, pack.bytes, pack.len));
		HOLDS(again.paths.count == order.paths.count);
		order_free(&again);
		free(pack.bytes);
	}
	order_free(&order);
}

static void check_messages(const uint8_t *data, size_t size)
{
	static struct happening happening;
	struct unpack unpack = unpack_begin(data, size);
	struct vb_progress progress;
	struct invitation invitation;
	struct ending ending;
	struct note note;

	invitation_unpack(&unpack, &invitation);
	HOLDS(invitation.address_count <= ADDRESSES_MAX);
	unpack = unpack_begin(data, size);
	ending_unpack(&unpack, &ending);
	HOLDS(memchr(ending.err.cause, '\0', sizeof(ending.err.cause)));
	unpack = unpack_begin(data, size);
	note_unpack(&unpack, &note);
	HOLDS(memchr(note.text, '\0', sizeof(note.text)));
	unpack = unpack_begin(data, size);
	event_unpack(&unpack, &happening);
	HOLDS(memchr(happening.path, '\0', sizeof(happening.path)));
	unpack = unpack_begin(data, size);
	progress_unpack(&unpack, &progress);
	HOLDS(memchr(progress.name, '\0', sizeof(progress.name)));
}

static void check_stages(const uint8_t *data, size_t size)
{
	struct stage_ending ending;
	struct stage_order order;
	struct stage_doors doors;

	if (stage_order_unpack(&order, data, size))
		HOLDS(order.text && *order.text && order.kind);
	stage_order_free(&order);
	stage_doors_unpack(&doors, data, size);
	HOLDS(doors.output.address_count <= ADDRESSES_MAX);
	stage_ending_unpack(&ending, data, size);
	HOLDS(memchr(ending.cipher, '\0', sizeof(ending.cipher)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame frame;
	ssize_t n = frame_take(&frame, data, size);

	if (n <= 0)
		return 0;
	HOLDS((size_t)n <= size && frame.len + FRAME_HEAD == (size_t)n);
	check_order(frame.payload, frame.len);
	check_messages(frame.payload, frame.len);
	check_stages(frame.payload, frame.len);
	return 0;
}

static size_t sample_order(uint8_t *to, size_t room, uint64_t seed)
{
	struct order order = { .role = 1 + seed % 3,
			       .verbosity = (int)(seed / 3 % 4),
			       .tree = { .keep = (unsigned)(seed / 12 % 1024) },
			       .invitation = { .address_count = seed / 7 % 3,
					       .port = (uint16_t)seed } };
	struct pack pack = { 0 };

	for (size_t i = 0; i < order.invitation.address_count; i++)
		memcpy(order.invitation.addresses[i].text, "10.0.0.1", 9);
	list_add(&order.paths, "some/path");
	list_add(&order.rules, "- *");
	order_pack(&pack, &order);
	HOLDS(pack.len + FRAME_HEAD <= room);
	frame_head(to, FRAME_ORDER, pack.len);
	memcpy(to + FRAME_HEAD, pack.bytes, pack.len);
	free(pack.bytes);
	order_free(&order);
	return FRAME_HEAD + pack.len;
}

static size_t sample_stage(uint8_t *to, size_t room, uint64_t seed)
{
	char text[] = "some | command";
	struct stage_order order = { .kind = STAGE_COMMAND,
				     .text = text,
				     .input = (enum stage_flow)(seed % 3),
				     .output = FLOW_CLIENT };
	struct pack pack = { 0 };

	stage_order_pack(&pack, &order);
	HOLDS(pack.len + FRAME_HEAD <= room);
	frame_head(to, FRAME_ORDER, pack.len);
	memcpy(to + FRAME_HEAD, pack.bytes, pack.len);
	free(pack.bytes);
	return FRAME_HEAD + pack.len;
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	return seed % 4 ? sample_order(to, room, seed / 4) : sample_stage(to, room, seed / 4);
}
