/* SPDX-License-Identifier: Apache-2.0 */
/* How long the kernel goes on repeating what is not acknowledged: computed as it does, pure. */
#ifndef VB_FABRIC_OFI_PATIENCE_H
#define VB_FABRIC_OFI_PATIENCE_H

#include <stdint.h>

/*
 * How long at most the kernel may pause until what goes unanswered is asked again: an eighth of the peer time-out, or as
 * much longer as it takes for it not to give up, after `retries` (net.ipv4.tcp_retries2), before we do. 0: as long as it
 * likes.
 */
uint32_t ofi_patience_pause_ms(uint32_t peer_timeout_ms, unsigned retries);

#endif
