/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rdpipe and the `rdpipe --server` of each stage say to each other. Pure.
 *
 *	client			server
 *	ORDER (stage_order)		what it is to be
 *				INVITATION (stage_doors)	its doors are open
 *	ONWARD (invitation)	if the next stage is another server: that one's door
 *				READY		all its connections are made
 *	BEGIN			so are everybody's: commands start, data flows
 *				ENDING (stage_ending)	what came of it; then it exits
 *
 * A server that fails sends its ENDING at once. STOP of the client's may come at any time.
 */
#ifndef TOOLS_STAGE_ORDER_H
#define TOOLS_STAGE_ORDER_H

#include "common/exit_code.h"
#include "pipe/stages.h"
#include "remote/message.h"

/* Where what it reads comes from, and what it writes goes to. */
enum stage_flow {
	FLOW_NONE = 0,
	FLOW_STAGE, /* another server: its output connects to the other's door */
	FLOW_CLIENT,
};

struct stage_order {
	enum stage_kind kind;
	char *text;
	enum stage_flow input, output;
	bool tells; /* its progress is wanted */
	int verbosity;
	char *device;
	struct vb_transfer_options transfer; /* the numbers in it */
};

/* More than this no far side takes; what bash itself takes in one word is far less. */
#define STAGE_ORDER_MAX (4u << 20)

/* Those that were asked for; without a port: none. */
struct stage_doors {
	struct invitation input, output;
};

/* How its command ended. */
enum stage_exit {
	ENDED_NOT = 0, /* there was none, or it was ended because others failed */
	ENDED_STATUS,
	ENDED_SIGNAL,
};

struct stage_ending {
	struct vb_error err;
	enum phase phase;
	bool own; /* the failure began here, and was not told by others */
	enum stage_exit how;
	unsigned number; /* the status or the signal */
	uint64_t bytes_in, bytes_out;
	uint64_t elapsed_ns;
	char cipher[32]; /* of both connections; empty: one at least was not encrypted */
};

void stage_order_pack(struct pack *pack, const struct stage_order *order);
void stage_doors_pack(struct pack *pack, const struct stage_doors *doors);
void stage_ending_pack(struct pack *pack, const struct stage_ending *ending);

/* False if it is none. Free an order in any case. */
bool stage_order_unpack(struct stage_order *order, const void *bytes, size_t len);
bool stage_doors_unpack(struct stage_doors *doors, const void *bytes, size_t len);
bool stage_ending_unpack(struct stage_ending *ending, const void *bytes, size_t len);

void stage_order_free(struct stage_order *order);

#endif
