/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/ofi/ofi_patience.h"

#include "fabric/fabric.h"

/* The kernel's bounds of TCP_RTO_MAX_MS; the upper one is its default, too. */
#define PAUSE_LEAST_MS 1000u
#define PAUSE_MOST_MS 120000u
/* TCP_RTO_MIN, which it counts from, however fast the peer answers. */
#define FIRST_PAUSE_MS 200u

/* Linux' tcp_model_timeout(): pauses double until they are as long as they may be. */
static uint64_t patience_ms(uint32_t pause_ms, unsigned retries)
{
	uint64_t sum = 0, pause = FIRST_PAUSE_MS;

	for (unsigned i = 0; i <= retries; i++) {
		sum += pause < pause_ms ? pause : pause_ms;
		pause = pause < pause_ms ? 2 * pause : pause;
	}
	return sum;
}

uint32_t ofi_patience_pause_ms(uint32_t peer_timeout_ms, unsigned retries)
{
	uint64_t enough_ms = (uint64_t)peer_timeout_ms * 5 / 4;
	uint32_t pause_ms = peer_timeout_ms / VB__TICKS;

	if (pause_ms < PAUSE_LEAST_MS)
		pause_ms = PAUSE_LEAST_MS;
	while (pause_ms < PAUSE_MOST_MS && patience_ms(pause_ms, retries) < enough_ms)
		pause_ms *= 2;
	return pause_ms < PAUSE_MOST_MS ? pause_ms : 0;
}
