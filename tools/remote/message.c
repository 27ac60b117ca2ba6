/* SPDX-License-Identifier: Apache-2.0 */
/* Messages. Texts stay as they came: whoever prints them makes them harmless. */
#include "remote/message.h"

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

void error_pack(struct pack *pack, const struct vb_error *err)
{
	pack_number(pack, (uint64_t)-err->code, 2);
	pack_number(pack, (uint64_t)err->native_kind, 1);
	pack_number(pack, (uint32_t)err->native, 4);
	pack_text(pack, err->operation);
	pack_text(pack, err->object);
	pack_text(pack, err->cause);
	pack_text(pack, err->hint);
}

void error_unpack(struct unpack *unpack, struct vb_error *err)
{
	err->code = (enum vb_err) - (int)unpack_upto(unpack, 2, 1000);
	err->native_kind = (enum vb_native)unpack_upto(unpack, 1, VB_NATIVE_TLS);
	err->native = (int)(uint32_t)unpack_number(unpack, 4);
	unpack_text(unpack, err->operation, sizeof(err->operation));
	unpack_text(unpack, err->object, sizeof(err->object));
	unpack_text(unpack, err->cause, sizeof(err->cause));
	unpack_text(unpack, err->hint, sizeof(err->hint));
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

void transfer_pack(struct pack *pack, const struct vb_transfer_options *options)
{
	pack_number(pack, options->connection.fabric, 1);
	pack_number(pack, options->connection.wireup, 1);
	pack_number(pack, (uint64_t)options->connection.family, 2);
	pack_number(pack, options->connection.connect_timeout_ms, 4);
	pack_number(pack, options->connection.peer_timeout_ms, 4);
	pack_number(pack, options->block_bytes, 4);
	pack_number(pack, options->window_blocks, 4);
	pack_number(pack, options->rails, 4);
	pack_number(pack, options->workers, 4);
	pack_number(pack, options->max_bytes_per_second, 8);
	pack_number(pack, options->direct, 1);
	pack_number(pack, options->encrypt, 1);
	pack_number(pack, (uint64_t)(options->compress - VB_COMPRESS_NEVER), 1);
}

void transfer_unpack(struct unpack *unpack, struct vb_transfer_options *options)
{
	options->connection.fabric = (enum vb_fabric)unpack_upto(unpack, 1, VB_FABRIC_OFI);
	options->connection.wireup = (enum vb_wireup)unpack_upto(unpack, 1, VB_WIREUP_TCP);
	options->connection.family = (int)unpack_number(unpack, 2);
	options->connection.connect_timeout_ms = (uint32_t)unpack_number(unpack, 4);
	options->connection.peer_timeout_ms = (uint32_t)unpack_number(unpack, 4);
	options->block_bytes = (uint32_t)unpack_number(unpack, 4);
	options->window_blocks = (uint32_t)unpack_number(unpack, 4);
	options->rails = (uint32_t)unpack_number(unpack, 4);
	options->workers = (uint32_t)unpack_number(unpack, 4);
	options->max_bytes_per_second = unpack_number(unpack, 8);
	options->direct = (enum vb_direct)unpack_upto(unpack, 1, VB_DIRECT_NEVER);
	options->encrypt = (enum vb_encrypt)unpack_upto(unpack, 1, VB_ENCRYPT_NEVER);
	options->compress = (int)unpack_upto(unpack, 1, VB_COMPRESS_MAX - VB_COMPRESS_NEVER) +
			    VB_COMPRESS_NEVER;
}
