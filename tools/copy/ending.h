/* SPDX-License-Identifier: Apache-2.0 */
/* Endings, events and glimpses: what the far side of a copy says in frames about files. Pure. */
#ifndef TOOLS_ENDING_H
#define TOOLS_ENDING_H

#include <verbatim/tree.h>

#include "common/exit_code.h"
#include "remote/message.h"

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

/* A vb_tree_event with room for what it points to. */
struct happening {
	struct vb_tree_event event;
	char path[4096 + 256];
	struct vb_error failure;
};

/* What a side has seen of its tree. */
struct glimpse {
	bool known; /* the sum is */
	struct vb_tree_sum sum;
};

void ending_pack(struct pack *pack, const struct ending *ending);
void glimpse_pack(struct pack *pack, const struct glimpse *glimpse);
void event_pack(struct pack *pack, const struct vb_tree_event *event);

/* These take what they want off the front; whether it was well-formed, unpack_end tells. */
void ending_unpack(struct unpack *unpack, struct ending *ending);
void glimpse_unpack(struct unpack *unpack, struct glimpse *glimpse);
void event_unpack(struct unpack *unpack, struct happening *happening);

#endif
