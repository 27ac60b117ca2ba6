/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: what far sides and clients say in frames, whatever it is about. Pure. */
#ifndef TOOLS_MESSAGE_H
#define TOOLS_MESSAGE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <verbatim/transfer.h>

#include "remote/pack.h"

#define SECRET_BYTES 32u
#define ADDRESSES_MAX 24u

/* An address of the host that has opened its door. */
struct address {
	char text[INET6_ADDRSTRLEN]; /* always a number, never a name */
	bool rdma;		     /* its interface is one of an RDMA device */
	bool asked;		     /* the one that ssh has come to */
};

/* How to come to a door. */
struct invitation {
	struct address addresses[ADDRESSES_MAX];
	size_t address_count;
	uint16_t port;
	uint8_t secret[SECRET_BYTES];
};

struct note {
	enum vb_log_level level;
	char text[VB_ERROR_LINE_MAX];
};

void invitation_pack(struct pack *pack, const struct invitation *invitation);
void error_pack(struct pack *pack, const struct vb_error *err);
void note_pack(struct pack *pack, const struct note *note);
void progress_pack(struct pack *pack, const struct vb_progress *progress);

/* The numbers in them: no callbacks, and nothing that points to anything. */
void transfer_pack(struct pack *pack, const struct vb_transfer_options *options);

/* These take what they want off the front; whether it was well-formed, unpack_end tells. */
void invitation_unpack(struct unpack *unpack, struct invitation *invitation);
void error_unpack(struct unpack *unpack, struct vb_error *err);
void note_unpack(struct unpack *unpack, struct note *note);
void progress_unpack(struct unpack *unpack, struct vb_progress *progress);
void transfer_unpack(struct unpack *unpack, struct vb_transfer_options *options);

#endif
