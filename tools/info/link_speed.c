/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds by the ethtool ioctl, which needs no privilege for this. */
#include "info/link_speed.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define WORDS_MAX 127 /* of each bitmap: the kernel counts them in a signed byte */

/* The kernel's numbers of link modes, as far as they are of one speed. */
static const struct {
	unsigned first, last, mbps;
} modes_of[] = {
	{ 0, 1, 10 },	    { 2, 3, 100 },	{ 4, 5, 1000 },	    { 12, 12, 10000 },
	{ 15, 15, 2500 },   { 17, 17, 1000 },	{ 18, 20, 10000 },  { 21, 22, 20000 },
	{ 23, 26, 40000 },  { 27, 30, 56000 },	{ 31, 33, 25000 },  { 34, 35, 50000 },
	{ 36, 39, 100000 }, { 40, 40, 50000 },	{ 41, 41, 1000 },   { 42, 46, 10000 },
	{ 47, 47, 2500 },   { 48, 48, 5000 },	{ 52, 56, 50000 },  { 57, 61, 100000 },
	{ 62, 66, 200000 }, { 67, 67, 100 },	{ 68, 68, 1000 },   { 69, 73, 400000 },
	{ 75, 79, 100000 }, { 80, 84, 200000 }, { 85, 89, 400000 }, { 90, 91, 100 },
	{ 92, 92, 10 },	    { 93, 98, 800000 },
};

static bool is_set(const uint32_t *modes, size_t words, unsigned bit)
{
	return bit / 32 < words && (modes[bit / 32] >> (bit % 32) & 1);
}

unsigned link_speed_best(const uint32_t *modes, size_t words)
{
	unsigned best = 0;

	for (size_t i = 0; i < sizeof(modes_of) / sizeof(modes_of[0]); i++)
		for (unsigned bit = modes_of[i].first; bit <= modes_of[i].last; bit++)
			if (is_set(modes, words, bit) && modes_of[i].mbps > best)
				best = modes_of[i].mbps;
	return best;
}

/* The bitmaps of supported, advertised and the peer's modes follow the fixed part. */
union settings {
	struct ethtool_link_settings fixed;
	uint32_t words[sizeof(struct ethtool_link_settings) / 4 + 3 * WORDS_MAX];
};

/* First the kernel is asked how long its bitmaps are: it answers with that, negated. */
static bool ask(int fd, const char *interface, union settings *settings)
{
	struct ifreq request = { .ifr_data = (void *)settings };

	memset(settings, 0, sizeof(*settings));
	settings->fixed.cmd = ETHTOOL_GLINKSETTINGS;
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", interface);
	if (ioctl(fd, SIOCETHTOOL, &request) != 0 || settings->fixed.link_mode_masks_nwords >= 0)
		return false;
	settings->fixed.cmd = ETHTOOL_GLINKSETTINGS;
	settings->fixed.link_mode_masks_nwords = (__s8)-settings->fixed.link_mode_masks_nwords;
	return ioctl(fd, SIOCETHTOOL, &request) == 0 && settings->fixed.link_mode_masks_nwords > 0;
}

void link_speed(const char *interface, unsigned *now_mbps, unsigned *best_mbps)
{
	union settings settings;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*now_mbps = *best_mbps = 0;
	if (fd < 0)
		return;
	if (ask(fd, interface, &settings)) {
		if (settings.fixed.speed != (uint32_t)SPEED_UNKNOWN)
			*now_mbps = settings.fixed.speed;
		*best_mbps = link_speed_best(settings.words + sizeof(settings.fixed) / 4,
					     (size_t)settings.fixed.link_mode_masks_nwords);
	}
	close(fd);
}
