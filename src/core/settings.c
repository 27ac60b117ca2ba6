/* SPDX-License-Identifier: Apache-2.0 */
/* Options: from what the caller and the environment say to what the library works with. */
#include "core/settings.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/failure.h"

#define DEFAULT_MESSAGE (256u << 10)
#define DEFAULT_DEPTH 2u
#define DEFAULT_TIMEOUT_MS 10000u
#define DEFAULT_SPIN_US 20u
#define PEER_TIMEOUT_MIN_MS 200u

static int fabric_from_env(enum vb_fabric *fabric, struct vb_error *err)
{
	const char *name = getenv("VB_FABRIC");

	if (!name || !*name || !strcmp(name, "auto"))
		*fabric = VB_FABRIC_AUTO;
	else if (!strcmp(name, "verbs"))
		*fabric = VB_FABRIC_VERBS;
	else if (!strcmp(name, "ofi"))
		*fabric = VB_FABRIC_OFI;
	else
		return vb__fail_invalid(err, "VB_FABRIC", "\"%s\" is none of auto, verbs, ofi",
					name);
	return 0;
}

/* Where only one CPU is to be had, spinning keeps from running what we wait for. */
static uint32_t default_spin_us(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) == 1)
		return 0;
	return DEFAULT_SPIN_US;
}

static int check(const struct vb__settings *s, struct vb_error *err)
{
	if (s->max_message > VB_MESSAGE_MAX)
		return vb__fail_invalid(err, "max_message_bytes", "%u is over the limit of %u",
					s->max_message, VB_MESSAGE_MAX);
	if (s->depth > VB_DEPTH_MAX)
		return vb__fail_invalid(err, "depth", "%u is over the limit of %u", s->depth,
					VB_DEPTH_MAX);
	if (s->peer_timeout_ms < PEER_TIMEOUT_MIN_MS)
		return vb__fail_invalid(err, "peer_timeout_ms", "%u is under the least of %u",
					s->peer_timeout_ms, PEER_TIMEOUT_MIN_MS);
	if (s->family != AF_UNSPEC && s->family != AF_INET && s->family != AF_INET6)
		return vb__fail_invalid(err, "family", "%d is none of AF_UNSPEC, AF_INET, AF_INET6",
					s->family);
	if (s->fabric > VB_FABRIC_OFI)
		return vb__fail_invalid(err, "fabric", "%d is no fabric", (int)s->fabric);
	return 0;
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

int vb__settings_from(struct vb__settings *s, const struct vb_options *options,
		      struct vb_error *err)
{
	static const struct vb_options none;
	const struct vb_options *o = options ? options : &none;
	const char *device = o->device ? o->device : getenv("VB_DEVICE");
	int rc;

	*s = (struct vb__settings){
		.fabric = o->fabric,
		.family = o->family,
		.max_message = or_default(o->max_message_bytes, DEFAULT_MESSAGE),
		.depth = or_default(o->depth, DEFAULT_DEPTH),
		.connect_timeout_ms = or_default(o->connect_timeout_ms, DEFAULT_TIMEOUT_MS),
		.listener_is_up = o->listener_is_up,
		.peer_timeout_ms = or_default(o->peer_timeout_ms, DEFAULT_TIMEOUT_MS),
		.spin_us = o->spin_us == VB_SPIN_NEVER ? 0
						       : or_default(o->spin_us, default_spin_us()),
		.log = { .write = o->log, .arg = o->log_arg, .level = o->log_level },
	};
	if (device &&
	    snprintf(s->device, sizeof(s->device), "%s", device) >= (int)sizeof(s->device))
		return vb__fail_invalid(err, "device", "\"%s\" is too long for a device name",
					device);
	if (o->source &&
	    snprintf(s->source, sizeof(s->source), "%s", o->source) >= (int)sizeof(s->source))
		return vb__fail_invalid(err, "source", "\"%s\" is too long for an address",
					o->source);
	if (s->fabric == VB_FABRIC_AUTO) {
		rc = fabric_from_env(&s->fabric, err);
		if (rc)
			return rc;
	}
	return check(s, err);
}
