/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: what the far side says in frames. Pure. */
#ifndef TOOLS_MESSAGE_H
#define TOOLS_MESSAGE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <verbatim/tree.h>

#include "common/exit_code.h"
#include "copy/pack.h"

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

/* What came of an order. */
struct ending {
	enum phase phase; /* how far it came */
	struct vb_error err;
	struct vb_tree_report report;
	uint64_t missing; /* of the paths in a list; not in the report */
	char peer[128];
	char description[768];
	char cipher[32]; /* empty: it was not encrypted */
};

struct note {
	enum vb_log_level level;
	char text[VB_ERROR_LINE_MAX];
};

/* A vb_tree_event with room for what it points to. */
struct happening {
	struct vb_tree_event event;
	char path[4096 + 256];
	struct vb_error failure;
};

void invitation_pack(struct pack *pack, const struct invitation *invitation);
void ending_pack(struct pack *pack, const struct ending *ending);
void note_pack(struct pack *pack, const struct note *note);
void event_pack(struct pack *pack, const struct vb_tree_event *event);
void progress_pack(struct pack *pack, const struct vb_progress *progress);

/* These take what they want off the front; whether it was well-formed, unpack_end tells. */
void invitation_unpack(struct unpack *unpack, struct invitation *invitation);
void ending_unpack(struct unpack *unpack, struct ending *ending);
void note_unpack(struct unpack *unpack, struct note *note);
void event_unpack(struct unpack *unpack, struct happening *happening);
void progress_unpack(struct unpack *unpack, struct vb_progress *progress);

#endif
