/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer options: checked and completed; and how much memory they come to. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "core/cpus.h"
#include "core/memlock.h"
#include "transfer/session_state.h"

#define DEFAULT_WORKERS_MAX 4u
#define IN_TURN_WORKERS_MAX 2u /* one reads, the other does the rest; a third is only in the way */
#define WINDOW_LEAST 2u
#define WINDOW_GOOD 4u

/* Receives that a channel posts beyond its depth, see channel_setup.c. */
#define FURTHER_SLOTS 5u

/* Two connections over RDMA with large blocks pin half of this, unless there are many threads that compute. */
#define PLENTY_BYTES (32u << 20)
#define RDMA_RAILS 2u
#define TCP_RAILS_MAX 8u
#define TCP_RAILS_OF_STREAM_MAX 4u

/* Over TCP a block costs system calls. Over RDMA the device does the work, but the memory is pinned. */
static const struct defaults {
	uint32_t block_bytes, window;
} defaults_tcp = { 512u << 10, 4 }, defaults_rdma = { 512u << 10, 8 },
  defaults_rdma_scarce = { 256u << 10, 8 };

static bool memory_is_scarce(void)
{
	return vb__memlock_limit() < PLENTY_BYTES;
}

static const struct defaults *defaults_over(bool tcp)
{
	return tcp ? &defaults_tcp : memory_is_scarce() ? &defaults_rdma_scarce : &defaults_rdma;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static int check_range(struct vb_error *err, const char *what, uint32_t value, uint32_t least,
		       uint32_t most)
{
	if (value >= least && value <= most)
		return 0;
	return vb__fail_invalid(err, what, "%u is not between %u and %u", value, least, most);
}

static int check(const struct vb_transfer_options *o, struct vb_error *err)
{
	int rc = 0;

	if (!o->key || !o->key_bytes)
		return vb__fail_invalid(err, "key", "none was given");
	if (o->key_is_random && o->key_bytes < VB__SECRET_BYTES)
		return vb__fail_invalid(err, "key", "one that is random has %u bytes or more",
					VB__SECRET_BYTES);
	if (o->block_bytes)
		rc = check_range(err, "block_bytes", o->block_bytes, VB_BLOCK_MIN, VB_BLOCK_MAX);
	if (rc == 0 && o->block_bytes % VB_BLOCK_MIN)
		rc = vb__fail_invalid(err, "block_bytes", "%u is no multiple of %u", o->block_bytes,
				      VB_BLOCK_MIN);
	if (rc == 0)
		rc = check_range(err, "window_blocks", o->window_blocks, 0, VB_WINDOW_MAX);
	if (rc == 0)
		rc = check_range(err, "rails", o->rails, 0, VB_RAILS_MAX);
	if (rc == 0)
		rc = check_range(err, "workers", o->workers, 0, VB_WORKERS_MAX);
	if (rc == 0)
		rc = check_range(err, "encrypt", (uint32_t)o->encrypt, 0, VB_ENCRYPT_NEVER);
	if (rc == 0 && o->compress != VB_COMPRESS_AUTO && o->compress != VB_COMPRESS_NEVER)
		rc = check_range(err, "compress", (uint32_t)o->compress, 0, VB_COMPRESS_MAX);
	return rc;
}

static uint8_t pack_wish(int compress)
{
	return compress == VB_COMPRESS_AUTO    ? VB__PACK_AUTO
	       : compress == VB_COMPRESS_NEVER ? VB__PACK_NEVER
					       : (uint8_t)compress;
}

int vb__plan_from(struct vb__plan *plan, const struct vb_transfer_options *o, struct vb_error *err)
{
	int rc;

	if (!o)
		return vb__fail_invalid(err, "options", "none were given, and a key is needed");
	*plan = (struct vb__plan){
		.block_bytes = o->block_bytes,
		.window = o->window_blocks,
		.rails = o->rails,
		.workers = o->workers,
		.bytes_per_second = o->max_bytes_per_second,
		.fsync = o->fsync,
		.encrypt = o->encrypt,
		.pack = pack_wish(o->compress),
		.direct = o->direct,
		.wait_timeout_ms = o->wait_timeout_ms,
		.stop_fd = o->stop_fd > 0 ? o->stop_fd : -1,
		.progress = o->progress,
		.progress_arg = o->progress_arg,
	};
	rc = check(o, err);
	if (rc == 0)
		rc = vb__settings_from(&plan->connection, &o->connection, err);
	if (rc)
		return rc;
	plan->connection.max_message = VB__PARLEY_CHANNEL_BYTES;
	plan->connection.depth = VB__PARLEY_CHANNEL_DEPTH;
	return 0;
}

int vb__plan_secret(struct vb__plan *plan, const struct vb_transfer_options *o,
		    struct vb_error *err)
{
	return o->key_is_random
		       ? vb__secret_from_random_key(&plan->secret, o->key, o->key_bytes, err)
		       : vb__secret_from_key(&plan->secret, o->key, o->key_bytes, err);
}

/*
 * Over TCP a rail takes a CPU, but a stream does not feed many. RDMA devices do the work of a connection in one
 * place, and drivers in software in the thread that posts it, so a second one makes it faster.
 */
static uint32_t default_rails(bool tcp, const struct vb__terms *terms)
{
	if (tcp)
		return smaller(vb__cpus(), vb__terms_of_stream(terms) ? TCP_RAILS_OF_STREAM_MAX
								      : TCP_RAILS_MAX);
	return memory_is_scarce() ? 1 : RDMA_RAILS;
}

/* A rail without a block would be connected for nothing. */
static uint32_t useful_rails(uint32_t rails, const struct vb__terms *terms)
{
	uint64_t blocks = terms->total_bytes ? (terms->total_bytes - 1) / terms->block_bytes + 1
					     : 1;

	return blocks < rails ? (uint32_t)blocks : rails;
}

/* How many blocks each rail may have pinned, at most; one comes with a trailer, on a page of its own. */
static uint64_t pinnable_slots(const struct vb__terms *terms)
{
	uint64_t rails = terms->rails ? terms->rails : 1;

	return vb__memlock_limit() / 8 * 7 / (terms->block_bytes + VB_BLOCK_MIN) / rails;
}

/*
 * Where memory may be pinned only up to a limit (8 MiB is common), the default keeps well below, also that of
 * a process which receives from one and sends to another; what the user asks for is tried as it is.
 */
static uint32_t pinnable_window(const struct vb__terms *terms)
{
	uint64_t slots = pinnable_slots(terms);

	if (slots >= FURTHER_SLOTS + 2 * VB_WINDOW_MAX)
		return VB_WINDOW_MAX;
	return slots > FURTHER_SLOTS + 2 * WINDOW_LEAST ? (uint32_t)(slots - FURTHER_SLOTS) / 2
							: WINDOW_LEAST;
}

/* A receiver that may pin little takes smaller blocks, rather than none: the sender chooses the rails. */
static uint32_t pinnable_block(const struct vb__terms *proposed)
{
	struct vb__terms terms = *proposed;

	while (terms.block_bytes > VB_BLOCK_MIN &&
	       pinnable_slots(&terms) < FURTHER_SLOTS + 2 * WINDOW_GOOD)
		terms.block_bytes =
			larger(terms.block_bytes / 2 / VB_BLOCK_MIN * VB_BLOCK_MIN, VB_BLOCK_MIN);
	return terms.block_bytes;
}

unsigned vb__plan_workers(const struct vb__plan *plan, enum vb__labour labour)
{
	static const unsigned most[] = {
		[VB__LABOUR_IN_TURN] = IN_TURN_WORKERS_MAX,
		[VB__LABOUR_MOVE] = DEFAULT_WORKERS_MAX,
		[VB__LABOUR_COMPUTE] = VB_WORKERS_MAX,
	};

	return plan->workers ? plan->workers : smaller(vb__cpus(), most[labour]);
}

/*
 * Besides those that are on the network, each worker that computes has a block. The receiver may ask for
 * that, but cannot make the window larger; over TCP the rails have room for as many as there are CPUs.
 */
static uint32_t default_window(const struct vb__plan *plan, bool tcp, const struct vb__terms *terms)
{
	bool packing = terms->pack != VB__PACK_IF_ASKED && terms->pack != VB__PACK_NEVER;
	bool asked = !tcp && (terms->pack != VB__PACK_NEVER || terms->seal & VB__SEAL_CAN);
	bool computing = packing || asked || terms->seal & VB__SEAL_WANTED;
	unsigned workers = computing ? vb__plan_workers(plan, VB__LABOUR_COMPUTE) : 0;
	unsigned rails = terms->rails ? terms->rails : 1;

	return defaults_over(tcp)->window + (workers + rails - 1) / rails;
}

void vb__plan_propose(const struct vb__plan *plan, bool tcp, struct vb__terms *terms)
{
	terms->block_bytes = plan->block_bytes ? plan->block_bytes
					       : defaults_over(tcp)->block_bytes;
	terms->rails = (uint16_t)(plan->rails ? plan->rails
					      : useful_rails(default_rails(tcp, terms), terms));
	terms->seal = (uint8_t)vb__seal_wish(plan->encrypt);
	terms->pack = plan->pack;
	terms->window = default_window(plan, tcp, terms);
	if (plan->window)
		terms->window = plan->window;
	else if (!tcp)
		terms->window = smaller(terms->window, pinnable_window(terms));
	terms->bytes_per_second = plan->bytes_per_second;
}

/* Of two limits, of which 0 is none. */
static uint64_t slower(uint64_t a, uint64_t b)
{
	return !a || (b && b < a) ? b : a;
}

/* What the sender says counts, unless that is nothing. */
static uint8_t pack_agree(uint8_t senders, uint8_t receivers)
{
	if (senders == VB__PACK_NEVER || receivers == VB__PACK_NEVER)
		return VB__PACK_IF_ASKED;
	return senders ? senders : receivers;
}

void vb__plan_restrict(const struct vb__plan *plan, bool tcp, struct vb__terms *terms)
{
	if (plan->block_bytes)
		terms->block_bytes = smaller(terms->block_bytes, plan->block_bytes);
	else if (!tcp)
		terms->block_bytes = pinnable_block(terms);
	if (plan->window)
		terms->window = smaller(terms->window, plan->window);
	else if (!tcp)
		terms->window = smaller(terms->window, pinnable_window(terms));
	terms->bytes_per_second = slower(terms->bytes_per_second, plan->bytes_per_second);
	terms->pack = pack_agree(terms->pack, plan->pack);
	terms->seal = (uint8_t)vb__seal_agree(vb__seal_wish(plan->encrypt), terms->seal);
}

bool vb__plan_stopped(const struct vb__plan *plan)
{
	struct pollfd stop = { .fd = plan->stop_fd, .events = POLLIN };

	return plan->stop_fd >= 0 && poll(&stop, 1, 0) > 0;
}
