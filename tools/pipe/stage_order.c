/* SPDX-License-Identifier: Apache-2.0 */
/* Orders and endings of stages on the wire. */
#include "pipe/stage_order.h"

#include <stdlib.h>

void stage_order_pack(struct pack *pack, const struct stage_order *order)
{
	pack_number(pack, (uint64_t)order->kind, 1);
	pack_text(pack, order->text);
	pack_number(pack, (uint64_t)order->input, 1);
	pack_number(pack, (uint64_t)order->output, 1);
	pack_number(pack, order->tells, 1);
	pack_number(pack, (unsigned)order->verbosity + 1u, 1);
	pack_text(pack, order->device);
	transfer_pack(pack, &order->transfer);
	pack_number(pack, order->transfer.fsync, 1);
}

/* Files have one end only, commands at least one. */
static bool makes_sense(const struct stage_order *order)
{
	bool input = order->input != FLOW_NONE, output = order->output != FLOW_NONE;

	if (!order->text || !*order->text)
		return false;
	switch (order->kind) {
	case STAGE_COMMAND:
		return output;
	case STAGE_READ:
		return output && !input;
	case STAGE_WRITE:
	case STAGE_APPEND:
		return input && !output;
	}
	return false;
}

bool stage_order_unpack(struct stage_order *order, const void *bytes, size_t len)
{
	struct unpack unpack = unpack_begin(bytes, len);

	*order = (struct stage_order){ .kind = (enum stage_kind)unpack_upto(&unpack, 1,
									    STAGE_APPEND) };
	order->text = unpack_new_text(&unpack);
	order->input = (enum stage_flow)unpack_upto(&unpack, 1, FLOW_CLIENT);
	order->output = (enum stage_flow)unpack_upto(&unpack, 1, FLOW_CLIENT);
	order->tells = unpack_bool(&unpack);
	order->verbosity = (int)unpack_number(&unpack, 1) - 1;
	order->device = unpack_new_text(&unpack);
	transfer_unpack(&unpack, &order->transfer);
	order->transfer.fsync = unpack_bool(&unpack);
	return unpack_end(&unpack) && makes_sense(order);
}

void stage_order_free(struct stage_order *order)
{
	free(order->text);
	free(order->device);
	order->text = order->device = NULL;
}

void stage_doors_pack(struct pack *pack, const struct stage_doors *doors)
{
	invitation_pack(pack, &doors->input);
	invitation_pack(pack, &doors->output);
}

bool stage_doors_unpack(struct stage_doors *doors, const void *bytes, size_t len)
{
	struct unpack unpack = unpack_begin(bytes, len);

	invitation_unpack(&unpack, &doors->input);
	invitation_unpack(&unpack, &doors->output);
	return unpack_end(&unpack);
}

void stage_ending_pack(struct pack *pack, const struct stage_ending *ending)
{
	error_pack(pack, &ending->err);
	pack_number(pack, (uint64_t)ending->phase, 1);
	pack_number(pack, ending->own, 1);
	pack_number(pack, (uint64_t)ending->how, 1);
	pack_number(pack, ending->number, 1);
	pack_number(pack, ending->bytes_in, 8);
	pack_number(pack, ending->bytes_out, 8);
	pack_number(pack, ending->elapsed_ns, 8);
	pack_text(pack, ending->cipher);
}

bool stage_ending_unpack(struct stage_ending *ending, const void *bytes, size_t len)
{
	struct unpack unpack = unpack_begin(bytes, len);

	*ending = (struct stage_ending){ .phase = PHASE_CHECK };
	error_unpack(&unpack, &ending->err);
	ending->phase = (enum phase)unpack_upto(&unpack, 1, PHASE_TRANSFER);
	ending->own = unpack_bool(&unpack);
	ending->how = (enum stage_exit)unpack_upto(&unpack, 1, ENDED_SIGNAL);
	ending->number = (unsigned)unpack_number(&unpack, 1);
	ending->bytes_in = unpack_number(&unpack, 8);
	ending->bytes_out = unpack_number(&unpack, 8);
	ending->elapsed_ns = unpack_number(&unpack, 8);
	unpack_text(&unpack, ending->cipher, sizeof(ending->cipher));
	return unpack_end(&unpack);
}
