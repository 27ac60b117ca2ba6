/* SPDX-License-Identifier: Apache-2.0 */
/* Messages. Texts stay as they came: whoever prints them makes them harmless. */
#include "copy/message.h"

#include <arpa/inet.h>
#include <string.h>

void invitation_pack(struct pack *pack, const struct invitation *invitation)
{
	pack_number(pack, invitation->port, 2);
	pack_data(pack, invitation->secret, sizeof(invitation->secret));
	pack_number(pack, invitation->address_count, 1);
	for (size_t i = 0; i < invitation->address_count; i++) {
		pack_text(pack, invitation->addresses[i].text);
		pack_number(pack, invitation->addresses[i].rdma, 1);
		pack_number(pack, invitation->addresses[i].asked, 1);
	}
}

static bool is_address(const char *text)
{
	uint8_t raw[16];

	return inet_pton(AF_INET, text, raw) == 1 || inet_pton(AF_INET6, text, raw) == 1;
}

void invitation_unpack(struct unpack *unpack, struct invitation *invitation)
{
	*invitation = (struct invitation){ .port = (uint16_t)unpack_number(unpack, 2) };
	unpack_data(unpack, invitation->secret, sizeof(invitation->secret));
	invitation->address_count = unpack_upto(unpack, 1, ADDRESSES_MAX);
	for (size_t i = 0; i < invitation->address_count; i++) {
		struct address *address = &invitation->addresses[i];

		unpack_text(unpack, address->text, sizeof(address->text));
		address->rdma = unpack_bool(unpack);
		address->asked = unpack_bool(unpack);
		if (!is_address(address->text))
			unpack->failed = true;
	}
}

static void error_pack(struct pack *pack, const struct vb_error *err)
{
	pack_number(pack, (uint64_t)-err->code, 2);
	pack_number(pack, (uint64_t)err->native_kind, 1);
	pack_number(pack, (uint32_t)err->native, 4);
	pack_text(pack, err->operation);
	pack_text(pack, err->object);
	pack_text(pack, err->cause);
	pack_text(pack, err->hint);
}

static void error_unpack(struct unpack *unpack, struct vb_error *err)
{
	err->code = (enum vb_err) - (int)unpack_upto(unpack, 2, 1000);
	err->native_kind = (enum vb_native)unpack_upto(unpack, 1, VB_NATIVE_TLS);
	err->native = (int)(uint32_t)unpack_number(unpack, 4);
	unpack_text(unpack, err->operation, sizeof(err->operation));
	unpack_text(unpack, err->object, sizeof(err->object));
	unpack_text(unpack, err->cause, sizeof(err->cause));
	unpack_text(unpack, err->hint, sizeof(err->hint));
}

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

void note_pack(struct pack *pack, const struct note *note)
{
	pack_number(pack, (uint64_t)note->level, 1);
	pack_text(pack, note->text);
}

void note_unpack(struct unpack *unpack, struct note *note)
{
	note->level = (enum vb_log_level)unpack_upto(unpack, 1, VB_LOG_DEBUG);
	unpack_text(unpack, note->text, sizeof(note->text));
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

void progress_pack(struct pack *pack, const struct vb_progress *progress)
{
	pack_number(pack, progress->bytes, 8);
	pack_number(pack, progress->total_bytes, 8);
	pack_number(pack, progress->elapsed_ns, 8);
	pack_number(pack, progress->filled_here, 1);
	pack_number(pack, progress->filled_there, 1);
	pack_number(pack, progress->files, 8);
	pack_number(pack, progress->total_files, 8);
	pack_number(pack, progress->counting, 1);
	pack_text(pack, progress->name);
}

void progress_unpack(struct unpack *unpack, struct vb_progress *progress)
{
	progress->bytes = unpack_number(unpack, 8);
	progress->total_bytes = unpack_number(unpack, 8);
	progress->elapsed_ns = unpack_number(unpack, 8);
	progress->filled_here = (unsigned)unpack_upto(unpack, 1, 100);
	progress->filled_there = (unsigned)unpack_upto(unpack, 1, 100);
	progress->files = unpack_number(unpack, 8);
	progress->total_files = unpack_number(unpack, 8);
	progress->counting = unpack_bool(unpack);
	unpack_text(unpack, progress->name, sizeof(progress->name));
}
