/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer options: checked and completed; and how much memory they come to. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "core/memlock.h"
#include "transfer/session_state.h"

#define DEFAULT_BLOCK (256u << 10)
#define DEFAULT_WINDOW 8u
#define DEFAULT_WORKERS_MAX 4u
#define WINDOW_LEAST 2u
#define CPUS_PER_RAIL 4u
#define DEFAULT_RAILS_MAX 4u

/* Receives that a channel posts beyond its depth, see channel_setup.c. */
#define FURTHER_SLOTS 5u

static unsigned cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static uint32_t default_workers(void)
{
	return cpus() < DEFAULT_WORKERS_MAX ? cpus() : DEFAULT_WORKERS_MAX;
}

uint32_t vb__plan_rails(const struct vb__plan *plan, bool tcp)
{
	uint32_t wide = cpus() / CPUS_PER_RAIL;

	if (plan->rails)
		return plan->rails;
	return !tcp || wide <= 1 ? 1 : wide < DEFAULT_RAILS_MAX ? wide : DEFAULT_RAILS_MAX;
}

static int check_range(struct vb_error *err, const char *what, uint32_t value, uint32_t least,
		       uint32_t most)
{
	if (value >= least && value <= most)
		return 0;
	return vb__fail_invalid(err, what, "%u is not between %u and %u", value, least, most);
}

static int check(const struct vb__plan *plan, const struct vb_transfer_options *o,
		 struct vb_error *err)
{
	int rc = 0;

	if (!o->key || !o->key_bytes)
		return vb__fail_invalid(err, "key", "none was given");
	rc = check_range(err, "block_bytes", plan->block_bytes, VB_BLOCK_MIN, VB_BLOCK_MAX);
	if (rc == 0 && plan->block_bytes % VB_BLOCK_MIN)
		rc = vb__fail_invalid(err, "block_bytes", "%u is no multiple of %u",
				      plan->block_bytes, VB_BLOCK_MIN);
	if (rc == 0)
		rc = check_range(err, "window_blocks", plan->window, 1, VB_WINDOW_MAX);
	if (rc == 0)
		rc = check_range(err, "rails", plan->rails, 0, VB_RAILS_MAX);
	if (rc == 0)
		rc = check_range(err, "workers", plan->workers, 1, VB_WORKERS_MAX);
	return rc;
}

int vb__plan_from(struct vb__plan *plan, const struct vb_transfer_options *o, struct vb_error *err)
{
	int rc;

	if (!o)
		return vb__fail_invalid(err, "options", "none were given, and a key is needed");
	*plan = (struct vb__plan){
		.block_bytes = o->block_bytes ? o->block_bytes : DEFAULT_BLOCK,
		.window = o->window_blocks ? o->window_blocks : DEFAULT_WINDOW,
		.block_given = o->block_bytes != 0,
		.window_given = o->window_blocks != 0,
		.rails = o->rails,
		.workers = o->workers ? o->workers : default_workers(),
		.bytes_per_second = o->max_bytes_per_second,
		.fsync = o->fsync,
		.direct = o->direct,
		.wait_timeout_ms = o->wait_timeout_ms,
		.stop_fd = o->stop_fd > 0 ? o->stop_fd : -1,
		.progress = o->progress,
		.progress_arg = o->progress_arg,
	};
	rc = check(plan, o, err);
	if (rc == 0)
		rc = vb__settings_from(&plan->connection, &o->connection, err);
	if (rc)
		return rc;
	plan->connection.max_message = VB__PARLEY_CHANNEL_BYTES;
	plan->connection.depth = VB__PARLEY_CHANNEL_DEPTH;
	return vb__secret_from_key(&plan->secret, o->key, o->key_bytes, err);
}

/*
 * Where memory may be pinned only up to a limit (8 MiB is common), the default
 * keeps well below; what the user asks for is tried as it is.
 */
uint32_t vb__plan_window(const struct vb__plan *plan, const struct vb__terms *terms, bool tcp)
{
	uint64_t limit = tcp ? UINT64_MAX : vb__memlock_limit();
	uint64_t per_block = terms->block_bytes + VB_BLOCK_MIN, window;

	if (plan->window_given)
		return plan->window < terms->window ? plan->window : terms->window;
	if (limit == UINT64_MAX)
		return terms->window;
	window = limit / 4 * 3 / per_block / terms->rails;
	window = window > FURTHER_SLOTS + WINDOW_LEAST ? window - FURTHER_SLOTS : WINDOW_LEAST;
	return window < terms->window ? (uint32_t)window : terms->window;
}

bool vb__plan_stopped(const struct vb__plan *plan)
{
	struct pollfd stop = { .fd = plan->stop_fd, .events = POLLIN };

	return plan->stop_fd >= 0 && poll(&stop, 1, 0) > 0;
}

int vb__fail_stopped(struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){ .code = VB_ERR_INTERRUPTED,
						    .cause = "interrupted" });
}
