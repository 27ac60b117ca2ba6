/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers with all their threads at work, also when something goes wrong under them. Data is changed
 * on its way where a packet is posted: the linker puts our vb__ep_post before the library's.
 */
#include "fabric/fabric.h"
#include "transfer_side.h"
#include "wire/packet.h"

static _Atomic int flip_in;	  /* at 1, the next block is changed */
static _Atomic size_t flip_place; /* at this distance from its end */

int __real_vb__ep_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err);
int __wrap_vb__ep_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err);

int __wrap_vb__ep_post(struct vb__ep *ep, const struct vb__op *op, struct vb_error *err)
{
	bool bare = op->kind == VB__OP_SEND_IMM; /* without the packet's trailer */
	bool block = (bare || op->kind == VB__OP_SEND) && op->sge_count && op->sge->len > BLOCK;

	if (flip_in && block && flip_in-- == 1)
		((uint8_t *)op->sge
			 ->addr)[op->sge->len + (bare ? VB__PACKET_TRAILER : 0) - flip_place] ^= 4;
	return __real_vb__ep_post(ep, op, err);
}

static size_t much(const struct side *side)
{
	return side->slow ? 2000001 : 20000001;
}

static struct vb_transfer_options crowded(const struct side *side)
{
	struct vb_transfer_options options = transferring(side);

	options.rails = 3;
	options.workers = 4;
	return options;
}

static void file_server(struct side *side)
{
	struct vb_transfer_options options = crowded(side);
	const char *target = scratch_path(side, "target");
	struct outcome o = serve_receiving(side, &options, &(struct vb_output){ .path = target });

	went_well(&o, much(side));
	CHECK(file_holds(target, much(side), 5));
	same_digest(side, &o, true);
}

static void file_client(struct side *side)
{
	struct vb_transfer_options options = crowded(side);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	make_file(source, much(side), 5);
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	went_well(&o, much(side));
	same_digest(side, &o, false);
}

static void pipe_server(struct side *side)
{
	struct vb_transfer_options options = crowded(side);
	struct drain drain;
	struct outcome o;

	open_drain(&drain);
	o = serve_receiving(side, &options, &(struct vb_output){ .fd = drain.fd });
	went_well(&o, much(side));
	CHECK(drained(&drain, much(side), 5));
	same_digest(side, &o, true);
}

static void pipe_client(struct side *side)
{
	struct vb_transfer_options options = crowded(side);
	struct outcome o;
	struct feed feed;

	open_feed(&feed, much(side), 5);
	o = come_sending(side, &options, &(struct vb_input){ .fd = feed.fd });
	went_well(&o, much(side));
	close_feed(&feed);
	same_digest(side, &o, false);
}

static void *stop_at_step(void *arg)
{
	struct side *side = ((void **)arg)[0];

	await_step(side, 0);
	stop_now(((void **)arg)[1]);
	return NULL;
}

static void tell_moment(void *side)
{
	signal_step(side, 0);
}

/* Nobody reads what is written: all workers of both sides are stuck when it is stopped. */
static void stuck_server(struct side *side)
{
	struct vb_transfer_options options = crowded(side);
	struct held full;
	struct outcome o;

	open_held(&full);
	o = serve_receiving(side, &options, &(struct vb_output){ .fd = full.far_fd });
	went_wrong(&o, VB_ERR_INTERRUPTED, "interrupted");
	CHECK(!strcmp(o.err.operation, "the sender at"));
	CHECK(ms_since_stop(side) < (side->slow ? 5000 : 2000));
	close_held(&full);
}

static void stopping_client(struct side *side)
{
	struct vb_transfer_options options = crowded(side);
	const char *source = scratch_path(side, "source");
	struct moment moment = { .bytes = 10 * BLOCK, .act = tell_moment, .arg = side };
	struct stopper stopper;
	void *args[] = { side, &stopper };
	pthread_t thread;
	struct outcome o;

	make_file(source, 64 * BLOCK, 1); /* more than a pipe and all windows take */
	open_stopper(&stopper, side);
	pthread_create(&thread, NULL, stop_at_step, args);
	options.stop_fd = stopper.fd;
	options.progress = await_moment;
	options.progress_arg = &moment;
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	went_wrong(&o, VB_ERR_INTERRUPTED, "interrupted");
	pthread_join(thread, NULL);
	close_stopper(&stopper);
}

static void wary_file_server(struct side *side)
{
	struct vb_transfer_options options = crowded(side);
	const char *target = scratch_path(side, "target");
	struct outcome o;

	make_file(target, 100, 99);
	o = serve_receiving(side, &options, &(struct vb_output){ .path = target });
	went_wrong(&o, VB_ERR_CORRUPT, "changed on its way");
	CHECK(file_holds(target, 100, 99));
}

/* One block, and it was changed. */
static void wary_pipe_server(struct side *side)
{
	struct vb_transfer_options options = crowded(side);
	struct drain drain;
	struct outcome o;

	open_drain(&drain);
	o = serve_receiving(side, &options, &(struct vb_output){ .fd = drain.fd });
	went_wrong(&o, VB_ERR_CORRUPT, "changed on its way");
	CHECK(drained(&drain, 0, 0));
}

static void flip_client(struct side *side, int block, size_t place)
{
	struct vb_transfer_options options = crowded(side);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	make_file(source, 5 * BLOCK, 5);
	flip_place = place;
	flip_in = block;
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	CHECK_EQ(flip_in, 0);
	went_wrong(&o, VB_ERR_CORRUPT, "changed on its way");
	CHECK(!strcmp(o.err.operation, "the receiver at"));
}

static void flip_data_client(struct side *side)
{
	flip_client(side, 3, 1000);
}

/* Behind the data are the block's trailer of 40 bytes, offset first, and the packet's of 16. */
static void flip_offset_client(struct side *side)
{
	flip_client(side, 3, 16 + 40 - 5);
}

static void flip_first_client(struct side *side)
{
	struct vb_transfer_options options = crowded(side);
	const char *source = scratch_path(side, "source");
	struct outcome o;

	make_file(source, BLOCK, 5);
	flip_place = BLOCK / 2;
	flip_in = 1;
	o = come_sending(side, &options, &(struct vb_input){ .path = source });
	went_wrong(&o, VB_ERR_CORRUPT, "changed on its way");
}

const struct test crew_tests[] = {
	{ "many_workers_and_rails_carry_a_file", file_server, file_client },
	{ "many_workers_and_rails_carry_a_stream_in_order", pipe_server, pipe_client },
	{ "stop_frees_workers_that_are_stuck", stuck_server, stopping_client },
	{ "changed_data_is_told_at_both_and_not_written", wary_file_server, flip_data_client },
	{ "changed_offset_is_told_at_both_and_not_written", wary_file_server, flip_offset_client },
	{ "changed_data_is_not_written_to_a_pipe", wary_pipe_server, flip_first_client },
	{ NULL },
};
