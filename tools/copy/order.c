/* SPDX-License-Identifier: Apache-2.0 */
/* Orders on the wire. Numbers that make no sense are found by the library. */
#include "copy/order.h"

#include <stdlib.h>
#include <string.h>

enum {
	ORDER_CONNECTS = 1,
	ORDER_TUNNELLED = 2,
	ORDER_STREAM = 4,
	ORDER_RECURSIVE = 8,
	ORDER_DRY_RUN = 16,
	ORDER_DELETE = 32,
	ORDER_NO_RESUME = 64,
	ORDER_INTO_DIRECTORY = 128,
	ORDER_TELL_ALL = 256,
	ORDER_FSYNC = 512,
	ORDER_TELLS = 1024,
	ORDER_GLANCES = 2048,
	ORDER_ALL = 4095,
};

static unsigned flags_of(const struct order *order)
{
	return (order->connects ? ORDER_CONNECTS : 0) | (order->tunnelled ? ORDER_TUNNELLED : 0) |
	       (order->stream ? ORDER_STREAM : 0) | (order->tree.recursive ? ORDER_RECURSIVE : 0) |
	       (order->tree.dry_run ? ORDER_DRY_RUN : 0) |
	       (order->tree.delete_others ? ORDER_DELETE : 0) |
	       (order->tree.no_resume ? ORDER_NO_RESUME : 0) |
	       (order->tree.into_directory ? ORDER_INTO_DIRECTORY : 0) |
	       (order->tree.tell_all ? ORDER_TELL_ALL : 0) |
	       (order->transfer.fsync ? ORDER_FSYNC : 0) | (order->tells ? ORDER_TELLS : 0) |
	       (order->glances ? ORDER_GLANCES : 0);
}

static void set_flags(struct order *order, unsigned flags)
{
	order->connects = flags & ORDER_CONNECTS;
	order->tunnelled = flags & ORDER_TUNNELLED;
	order->stream = flags & ORDER_STREAM;
	order->tree.recursive = flags & ORDER_RECURSIVE;
	order->tree.dry_run = flags & ORDER_DRY_RUN;
	order->tree.delete_others = flags & ORDER_DELETE;
	order->tree.no_resume = flags & ORDER_NO_RESUME;
	order->tree.into_directory = flags & ORDER_INTO_DIRECTORY;
	order->tree.tell_all = flags & ORDER_TELL_ALL;
	order->transfer.fsync = flags & ORDER_FSYNC;
	order->tells = flags & ORDER_TELLS;
	order->glances = flags & ORDER_GLANCES;
}

void order_pack(struct pack *pack, const struct order *order)
{
	pack_number(pack, (uint64_t)order->role, 1);
	pack_number(pack, flags_of(order), 4);
	pack_number(pack, (unsigned)order->verbosity + 1u, 1);
	pack_number(pack, order->tree.keep, 4);
	pack_number(pack, (uint64_t)order->tree.select, 1);
	transfer_pack(pack, &order->transfer);
	pack_list(pack, &order->paths);
	pack_list(pack, &order->listed);
	pack_text(pack, order->target);
	pack_list(pack, &order->rules);
	pack_text(pack, order->device);
	if (order->glances)
		pack_data(pack, order->glance_key, sizeof(order->glance_key));
	invitation_pack(pack, &order->invitation);
}

bool order_unpack(struct order *order, const void *bytes, size_t len)
{
	struct unpack unpack = unpack_begin(bytes, len);

	*order = (struct order){ .role = (enum role)unpack_upto(&unpack, 1, ROLE_COPY) };
	set_flags(order, (unsigned)unpack_upto(&unpack, 4, ORDER_ALL));
	order->verbosity = (int)unpack_number(&unpack, 1) - 1;
	order->tree.keep = (unsigned)unpack_number(&unpack, 4);
	order->tree.select = (enum vb_select)unpack_upto(&unpack, 1, VB_SELECT_DIFFERENT);
	transfer_unpack(&unpack, &order->transfer);
	unpack_list(&unpack, &order->paths);
	unpack_list(&unpack, &order->listed);
	order->target = unpack_new_text(&unpack);
	unpack_list(&unpack, &order->rules);
	order->device = unpack_new_text(&unpack);
	if (order->glances)
		unpack_data(&unpack, order->glance_key, sizeof(order->glance_key));
	invitation_unpack(&unpack, &order->invitation);
	if (!unpack_end(&unpack) || !order->role)
		return false;
	/* What sends has something to send; one file if it is to be a stream. */
	return order->role == ROLE_RECEIVE ||
	       (order->paths.count && (!order->stream || order->paths.count == 1));
}

void order_free(struct order *order)
{
	list_free(&order->paths);
	list_free(&order->listed);
	list_free(&order->rules);
	free(order->target);
	free(order->device);
	explicit_bzero(&order->invitation, sizeof(order->invitation));
	order->target = order->device = NULL;
}
