/* SPDX-License-Identifier: Apache-2.0 */
/* Options: from what the caller and the environment say to what the library works with. */
#include "core/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/cpus.h"
#include "core/failure.h"

#define DEFAULT_MESSAGE (256u << 10)
#define DEFAULT_DEPTH 2u
#define DEFAULT_TIMEOUT_MS 10000u
#define DEFAULT_SPIN_US 20u
#define PEER_TIMEOUT_MIN_MS 200u

#define DEFAULT_RETRIES 6u     /* 7 is without end on rxe */
#define DEFAULT_RNR_RETRIES 7u /* without end, and hardly ever needed: credits see to it */
#define DEFAULT_RNR_TIMER 12u  /* 0.64 ms; what rdma_cm leaves there means 655 ms */
#define DEFAULT_READS 16u

/* One of `names`, the first of which is also meant by nothing at all. Negative: none of them. */
static int choice_from_env(const char *variable, const char *const names[3], struct vb_error *err)
{
	const char *name = getenv(variable);

	if (!name || !*name)
		return 0;
	for (int i = 0; i < 3; i++)
		if (!strcmp(name, names[i]))
			return i;
	return vb__fail_invalid(err, variable, "\"%s\" is none of %s, %s, %s", name, names[0],
				names[1], names[2]);
}

/* What the options leave open. */
static int heed_environment(struct vb__settings *s, struct vb_error *err)
{
	static const char *const fabrics[] = {
		[VB_FABRIC_AUTO] = "auto", [VB_FABRIC_VERBS] = "verbs", [VB_FABRIC_OFI] = "ofi"
	};
	static const char *const wireups[] = {
		[VB_WIREUP_AUTO] = "auto", [VB_WIREUP_CM] = "cm", [VB_WIREUP_TCP] = "tcp"
	};
	int choice = 0;

	if (s->fabric == VB_FABRIC_AUTO)
		choice = choice_from_env("VB_FABRIC", fabrics, err);
	if (choice > 0)
		s->fabric = (enum vb_fabric)choice;
	if (choice >= 0 && s->wireup == VB_WIREUP_AUTO) {
		choice = choice_from_env("VB_WIREUP", wireups, err);
		if (choice > 0)
			s->wireup = (enum vb_wireup)choice;
	}
	return choice < 0 ? choice : 0;
}

/* Where only one CPU is to be had, spinning keeps from running what we wait for. */
static uint32_t default_spin_us(void)
{
	return vb__cpus() > 1 ? DEFAULT_SPIN_US : 0;
}

static int check_qp(const struct vb_qp_options *qp, struct vb_error *err)
{
	uint32_t mtu = qp->mtu_bytes;

	if (mtu && (mtu < 256 || mtu > 4096 || mtu & (mtu - 1)))
		return vb__fail_invalid(err, "qp.mtu_bytes",
					"%u is none of 256, 512, 1024, 2048, 4096", mtu);
	if (qp->ack_timeout > 31)
		return vb__fail_invalid(err, "qp.ack_timeout", "%u is over the limit of 31",
					qp->ack_timeout);
	if (qp->retries > 7 || qp->rnr_retries > 7)
		return vb__fail_invalid(err, qp->retries > 7 ? "qp.retries" : "qp.rnr_retries",
					"%u is over the limit of 7",
					qp->retries > 7 ? qp->retries : qp->rnr_retries);
	if (qp->service_level > 15)
		return vb__fail_invalid(err, "qp.service_level", "%u is over the limit of 15",
					qp->service_level);
	if (qp->min_rnr_timer > 31)
		return vb__fail_invalid(err, "qp.min_rnr_timer", "%u is over the limit of 31",
					qp->min_rnr_timer);
	return 0;
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
	if (s->wireup > VB_WIREUP_TCP)
		return vb__fail_invalid(err, "wireup", "%d is no way to wire up", (int)s->wireup);
	return check_qp(&s->qp, err);
}

static uint32_t or_default(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

static struct vb_qp_options complete(struct vb_qp_options qp)
{
	qp.retries = (uint8_t)or_default(qp.retries, DEFAULT_RETRIES);
	qp.rnr_retries = (uint8_t)or_default(qp.rnr_retries, DEFAULT_RNR_RETRIES);
	qp.min_rnr_timer = (uint8_t)or_default(qp.min_rnr_timer, DEFAULT_RNR_TIMER);
	qp.reads = (uint8_t)or_default(qp.reads, DEFAULT_READS);
	return qp;
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
		.wireup = o->wireup,
		.qp = complete(o->qp),
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
	rc = heed_environment(s, err);
	return rc ? rc : check(s, err);
}

bool vb__settings_given_up(const struct vb__settings *s)
{
	return s->given_up && atomic_load(s->given_up);
}
