/* SPDX-License-Identifier: Apache-2.0 */
/* Endings, events and glimpses. Texts stay as they came: whoever prints them makes them harmless. */
#include "copy/ending.h"

#include <string.h>

/* A plain row of numbers, here and there the same. */
#define REPORT_NUMBERS (sizeof(struct vb_tree_report) / sizeof(uint64_t))

void ending_pack(struct pack *pack, const struct ending *ending)
{
	uint64_t numbers[REPORT_NUMBERS];

	memcpy(numbers, &ending->report, sizeof(numbers));
	pack_number(pack, (uint64_t)ending->phase, 1);
	error_pack(pack, &ending->err);
	pack_number(pack, REPORT_NUMBERS, 1);
	for (size_t i = 0; i < REPORT_NUMBERS; i++)
		pack_number(pack, numbers[i], 8);
	pack_number(pack, ending->missing, 8);
	pack_text(pack, ending->peer);
	pack_text(pack, ending->description);
	pack_text(pack, ending->cipher);
}

void ending_unpack(struct unpack *unpack, struct ending *ending)
{
	uint64_t numbers[REPORT_NUMBERS];

	ending->phase = (enum phase)unpack_upto(unpack, 1, PHASE_TRANSFER);
	error_unpack(unpack, &ending->err);
	if (unpack_number(unpack, 1) != REPORT_NUMBERS)
		unpack->failed = true;
	for (size_t i = 0; i < REPORT_NUMBERS; i++)
		numbers[i] = unpack_number(unpack, 8);
	memcpy(&ending->report, numbers, sizeof(numbers));
	ending->missing = unpack_number(unpack, 8);
	unpack_text(unpack, ending->peer, sizeof(ending->peer));
	unpack_text(unpack, ending->description, sizeof(ending->description));
	unpack_text(unpack, ending->cipher, sizeof(ending->cipher));
}

void glimpse_pack(struct pack *pack, const struct glimpse *glimpse)
{
	pack_number(pack, glimpse->known, 1);
	pack_data(pack, glimpse->sum.digest, sizeof(glimpse->sum.digest));
	pack_number(pack, glimpse->sum.entries, 8);
	pack_number(pack, glimpse->sum.bytes, 8);
}

void glimpse_unpack(struct unpack *unpack, struct glimpse *glimpse)
{
	glimpse->known = unpack_bool(unpack);
	unpack_data(unpack, glimpse->sum.digest, sizeof(glimpse->sum.digest));
	glimpse->sum.entries = unpack_number(unpack, 8);
	glimpse->sum.bytes = unpack_number(unpack, 8);
}

void event_pack(struct pack *pack, const struct vb_tree_event *event)
{
	static const struct vb_error none;

	pack_number(pack, (uint64_t)event->happening, 1);
	pack_number(pack, event->at_peer, 1);
	pack_text(pack, event->path);
	pack_number(pack, event->mode, 4);
	pack_number(pack, event->bytes, 8);
	error_pack(pack, event->failure ? event->failure : &none);
}

void event_unpack(struct unpack *unpack, struct happening *happening)
{
	struct vb_tree_event *event = &happening->event;

	event->happening = (enum vb_tree_happening)unpack_upto(unpack, 1, VB_TREE_VANISHED);
	event->at_peer = unpack_bool(unpack);
	unpack_text(unpack, happening->path, sizeof(happening->path));
	event->path = happening->path;
	event->mode = (mode_t)unpack_number(unpack, 4);
	event->bytes = unpack_number(unpack, 8);
	error_unpack(unpack, &happening->failure);
	event->failure = happening->failure.code == VB_OK ? NULL : &happening->failure;
}
