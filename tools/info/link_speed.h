/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a network interface is, and could be. */
#ifndef TOOLS_LINK_SPEED_H
#define TOOLS_LINK_SPEED_H

#include <stddef.h>
#include <stdint.h>

/* In Mb/s, as its driver tells ethtool; 0 where it does not. */
void link_speed(const char *interface, unsigned *now_mbps, unsigned *best_mbps);

/* The fastest of the link modes in the bitmap; 0 if none is known. */
unsigned link_speed_best(const uint32_t *modes, size_t words);

#endif
