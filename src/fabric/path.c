/* SPDX-License-Identifier: Apache-2.0 */
/* Which device, port and GID belong to the kernel's route, and why the others do not. */
#include "fabric/path.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How near a candidate came to being the way; the nearest one that failed explains the failure. */
enum nearness {
	ELSEWHERE = 0, /* has nothing to do with the route's interface */
	NEARBY,	       /* has to do with it, but is not it */
	ON_ROUTE,      /* would be it, but cannot be used */
};

/* The choice as far as it has come. */
struct choice {
	const struct vb__system *system;
	const struct vb__wish *wish;
	const struct vb__interface *out; /* by which the route leaves */
	struct vb__ip source;
	struct vb_path *path;
	struct vb_candidate **end;
	vb__prove_fn prove;
	void *arg;

	/* Where a candidate is being looked at. */
	const struct vb_device *device;
	const struct vb_port *port;

	struct vb_candidate *taken;
	enum vb__proof proof; /* of that one */
	enum nearness nearest;
	char hurdle[200]; /* what was in the way of the nearest */
};

/* ---- Addresses and interfaces in words ---- */

bool vb__ip_is_zero(const struct vb__ip *ip)
{
	static const struct vb__ip zero;

	return !memcmp(ip, &zero, sizeof(zero));
}

bool vb__ip_is_link_local(const struct vb__ip *ip)
{
	return ip->bytes[0] == 0xfe && (ip->bytes[1] & 0xc0) == 0x80;
}

static bool is_four(const struct vb__ip *ip)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(ip->bytes, prefix, sizeof(prefix));
}

void vb__ip_text(char *to, size_t size, const struct vb__ip *ip, const char *scope)
{
	char text[INET6_ADDRSTRLEN] = "?";

	if (is_four(ip))
		inet_ntop(AF_INET, ip->bytes + 12, text, sizeof(text));
	else
		inet_ntop(AF_INET6, ip->bytes, text, sizeof(text));
	snprintf(to, size, "%s%s%s", text, scope && vb__ip_is_link_local(ip) ? "%" : "",
		 scope && vb__ip_is_link_local(ip) ? scope : "");
}

const struct vb__interface *vb__interface_find(const struct vb__interface *list, unsigned index)
{
	while (index && list && list->index != index)
		list = list->next;
	return index ? list : NULL;
}

static const char *name_of(const struct choice *c, unsigned index)
{
	const struct vb__interface *i = vb__interface_find(c->system->interfaces, index);

	return i ? i->name : "an interface";
}

/* ", VLAN 100 on eth0": what an interface is besides its name; empty for a plain one. */
static const char *nature(const struct choice *c, const struct vb__interface *i, char to[64])
{
	const char *lower = i->lower ? name_of(c, i->lower) : "another interface";

	to[0] = '\0';
	if (i->kind == VB__INTERFACE_VLAN)
		snprintf(to, 64, ", VLAN %u on %s", i->vlan, lower);
	else if (i->kind == VB__INTERFACE_MACVLAN)
		snprintf(to, 64, ", a macvlan on %s", lower);
	else if (i->kind == VB__INTERFACE_BOND)
		snprintf(to, 64, ", a bond");
	else if (i->kind == VB__INTERFACE_BRIDGE)
		snprintf(to, 64, ", a bridge");
	else if (i->kind == VB__INTERFACE_LOOPBACK)
		snprintf(to, 64, ", the loopback interface");
	else if (i->master)
		snprintf(to, 64, ", a member of %s", name_of(c, i->master));
	return to;
}

/* Do they stand on one another, or on the same? */
static bool are_related(const struct vb__interface *a, const struct vb__interface *b)
{
	return a->lower == b->index || b->lower == a->index || a->master == b->index ||
	       b->master == a->index || (a->lower && a->lower == b->lower);
}

/* ---- Keeping books ---- */

/* A candidate at the end of the list; NULL without memory. */
static struct vb_candidate *consider(struct choice *c, const struct vb_gid *gid)
{
	struct vb_candidate *new = calloc(1, sizeof(*new));

	if (!new)
		return NULL;
	snprintf(new->device, sizeof(new->device), "%s", c->device->name);
	new->port = c->port ? c->port->number : 0;
	new->gid_index = gid ? (int)gid->index : -1;
	if (gid)
		snprintf(new->gid, sizeof(new->gid), "%s", gid->text);
	*c->end = new;
	c->end = &new->next;
	return new;
}

/* Not this one, for the reason given; the nearest reason is remembered. */
__attribute__((format(printf, 4, 5))) static int pass_over(struct choice *c,
							   const struct vb_gid *gid,
							   enum nearness nearness,
							   const char *format, ...)
{
	struct vb_candidate *candidate = consider(c, gid);
	va_list args;

	if (!candidate)
		return VB_ERR_NOMEM;
	va_start(args, format);
	vsnprintf(candidate->reason, sizeof(candidate->reason), format, args);
	va_end(args);
	if (nearness > c->nearest) {
		c->nearest = nearness;
		snprintf(c->hurdle, sizeof(c->hurdle), "%.40s: %.150s", c->device->name,
			 candidate->reason);
	}
	return 0;
}

/* What the path would be with this GID, and whether it can be proven. */
static enum vb__proof fill_in(struct choice *c, const struct vb_gid *gid)
{
	struct vb_path *p = c->path;
	uint16_t pkey = c->out->kind == VB__INTERFACE_IPOIB ? c->out->pkey : 0;

	snprintf(p->device, sizeof(p->device), "%s", c->device->name);
	p->port = c->port->number;
	p->wire = gid->wire;
	p->gid_index = gid->index;
	snprintf(p->gid, sizeof(p->gid), "%s", gid->text);
	p->lid = c->port->lid;
	p->pkey = pkey ? pkey : 0xffff;
	p->mtu_bytes = c->port->mtu_bytes;
	snprintf(p->proof, sizeof(p->proof), "not tried");
	return c->prove ? c->prove(c->arg, p, &c->wish->peer) : VB__PROOF_NOT_TRIED;
}

static void take(struct choice *c, struct vb_candidate *candidate, enum vb__proof proof)
{
	char nature_text[64];

	candidate->taken = true;
	c->taken = candidate;
	c->proof = proof;
	c->path->proven = proof == VB__PROOF_GIVEN;
	snprintf(candidate->reason, sizeof(candidate->reason),
		 "it belongs to %s%s, by which the route leaves", c->out->name,
		 nature(c, c->out, nature_text));
}

/* It is right. One whose proof does not fail takes the place of one whose did. */
static int welcome(struct choice *c, const struct vb_gid *gid)
{
	struct vb_candidate *candidate = consider(c, gid), *before = c->taken;
	struct vb_path kept = *c->path;
	enum vb__proof proof;

	if (!candidate)
		return VB_ERR_NOMEM;
	if (before && c->proof != VB__PROOF_FAILED) {
		snprintf(candidate->reason, sizeof(candidate->reason),
			 "right as well, but %s was found first", kept.device);
		return 0;
	}
	kept.candidates = c->path->candidates;
	proof = fill_in(c, gid);
	if (before && proof == VB__PROOF_FAILED) {
		snprintf(candidate->reason, sizeof(candidate->reason), "right, but %s",
			 c->path->proof);
		*c->path = kept;
		return 0;
	}
	take(c, candidate, proof);
	if (before) {
		before->taken = false;
		snprintf(before->reason, sizeof(before->reason), "right, but %s", kept.proof);
	}
	return 0;
}

/* ---- Looking at devices, ports and GIDs ---- */

/* Its interface is another one than the route's, or cannot be seen. */
static int judge_other_interface(struct choice *c, const struct vb_gid *gid)
{
	const struct vb__interface *its =
		gid->interface[0] ? vb__interface_find(c->system->interfaces, gid->ifindex) : NULL;
	bool same_address = !memcmp(gid->bytes, c->source.bytes, sizeof(gid->bytes));
	char text[64];

	if (!its)
		return pass_over(c, gid, same_address ? NEARBY : ELSEWHERE,
				 gid->ifindex ? "its interface is not in this network namespace"
					      : "it belongs to no interface");
	return pass_over(c, gid, are_related(its, c->out) ? NEARBY : ELSEWHERE,
			 "it belongs to %s%s, but the route leaves through %s", its->name,
			 nature(c, its, text), c->out->name);
}

static int judge_roce(struct choice *c, const struct vb_gid *gid)
{
	bool same_address = !memcmp(gid->bytes, c->source.bytes, sizeof(gid->bytes));
	char source[64];

	if (!gid->interface[0] || gid->ifindex != c->out->index)
		return judge_other_interface(c, gid);
	vb__ip_text(source, sizeof(source), &c->source, NULL);
	if (!same_address)
		return pass_over(c, gid, NEARBY, "of %s, but not the route's source address %s",
				 c->out->name, source);
	if (gid->wire != VB_WIRE_ROCE_V2)
		return pass_over(c, gid, ON_ROUTE,
				 "RoCE v1, which does not pass routers: v2 is wanted");
	return welcome(c, gid);
}

/* IPoIB's hardware address is a queue pair's number and the port's GID. */
static int judge_infiniband(struct choice *c, const struct vb_gid *gid)
{
	if (c->out->hw_len != 20)
		return pass_over(c, gid, ELSEWHERE,
				 "InfiniBand, but the route leaves through %s, which is no IPoIB",
				 c->out->name);
	if (memcmp(c->out->hw + 4, gid->bytes, sizeof(gid->bytes)) != 0)
		return pass_over(c, gid, ELSEWHERE, "%s stands on another port or GID",
				 c->out->name);
	return welcome(c, gid);
}

/* An iWARP GID begins with the interface's hardware address. */
static int judge_iwarp(struct choice *c, const struct vb_gid *gid)
{
	bool by_name = c->port->interface[0] && c->port->ifindex == c->out->index;
	bool by_address = c->out->hw_len == 6 && !memcmp(gid->bytes, c->out->hw, 6);

	if (by_name || by_address)
		return welcome(c, gid);
	if (c->port->interface[0])
		return pass_over(c, gid, ELSEWHERE,
				 "it belongs to %s, but the route leaves through %s",
				 c->port->interface, c->out->name);
	return pass_over(c, gid, ELSEWHERE, "its interface is not in this network namespace");
}

static int judge_gid(struct choice *c, const struct vb_gid *gid)
{
	switch (c->port->wire) {
	case VB_WIRE_INFINIBAND:
		return judge_infiniband(c, gid);
	case VB_WIRE_IWARP:
		return judge_iwarp(c, gid);
	case VB_WIRE_ROCE_V1:
	case VB_WIRE_ROCE_V2:
		return judge_roce(c, gid);
	default:
		return pass_over(c, gid, ELSEWHERE, "neither InfiniBand nor Ethernet");
	}
}

/* How near a port is by its interface alone. */
static enum nearness port_nearness(const struct choice *c, const struct vb_port *port)
{
	const struct vb__interface *its =
		port->interface[0] ? vb__interface_find(c->system->interfaces, port->ifindex)
				   : NULL;

	if (!its)
		return ELSEWHERE;
	return its == c->out || are_related(its, c->out) ? ON_ROUTE : ELSEWHERE;
}

static int judge_port(struct choice *c)
{
	const struct vb_port *port = c->port;
	int rc = 0;

	if (port->state != VB_PORT_ACTIVE)
		return pass_over(c, NULL, port_nearness(c, port), "the port is %s",
				 vb_port_state_name(port->state));
	if (!port->gids)
		return pass_over(c, NULL, port_nearness(c, port), "the port has no GID");
	for (const struct vb_gid *gid = port->gids; gid && rc == 0; gid = gid->next)
		rc = judge_gid(c, gid);
	return rc;
}

static int judge_device(struct choice *c, const struct vb_device *device)
{
	const struct vb_error *trouble = &device->trouble;
	enum nearness nearness = ELSEWHERE;
	int rc = 0;

	c->device = device;
	c->port = NULL;
	if (c->wish->fabric == VB_FABRIC_OFI)
		return pass_over(c, NULL, ELSEWHERE, "ofi was asked for");
	if (c->wish->device[0] && strcmp(c->wish->device, device->name) != 0)
		return pass_over(c, NULL, ELSEWHERE, "%s was asked for", c->wish->device);
	for (const struct vb_port *p = device->ports; p && trouble->code; p = p->next)
		if (port_nearness(c, p) > nearness)
			nearness = port_nearness(c, p);
	if (trouble->code)
		return pass_over(c, NULL, nearness, "it cannot be used: %s %s: %s",
				 trouble->operation, trouble->object, trouble->cause);
	for (c->port = device->ports; c->port && rc == 0; c->port = c->port->next)
		rc = judge_port(c);
	return rc;
}

/* ---- The decision ---- */

/* The route to ourselves leaves through lo; what counts is who has the address. */
static unsigned owner_of(const struct vb__system *system, const struct vb__ip *ip, unsigned scope)
{
	for (const struct vb__own_address *a = system->addresses; a; a = a->next)
		if (!memcmp(&a->ip, ip, sizeof(*ip)) && (!scope || scope == a->ifindex))
			return a->ifindex;
	return 0;
}

static bool find_exit(struct choice *c)
{
	const struct vb__route *route = &c->wish->route;
	unsigned index = route->ifindex, owner;

	c->source = route->source;
	c->path->to_ourselves = route->local;
	if (route->local) {
		owner = owner_of(c->system, &c->wish->peer, c->wish->scope);
		index = owner ? owner : index;
		c->source = c->wish->peer;
	}
	c->out = vb__interface_find(c->system->interfaces, index);
	if (!c->out)
		return false;
	snprintf(c->path->interface, sizeof(c->path->interface), "%s", c->out->name);
	vb__ip_text(c->path->source, sizeof(c->path->source), &c->source, c->out->name);
	if (!vb__ip_is_zero(&route->gateway))
		vb__ip_text(c->path->gateway, sizeof(c->path->gateway), &route->gateway, NULL);
	return true;
}

/* Why it is not verbs. */
static void explain_absence(const struct choice *c, char *to, size_t size)
{
	char text[64];

	if (!c->system->verbs)
		snprintf(to, size, "this build has no verbs");
	else if (!c->system->devices)
		snprintf(to, size, "this machine has no RDMA device");
	else if (c->hurdle[0])
		snprintf(to, size, "%s", c->hurdle);
	else if (c->wish->device[0])
		snprintf(to, size, "no RDMA device %s on %s%s, by which the route leaves",
			 c->wish->device, c->out->name, nature(c, c->out, text));
	else
		snprintf(to, size, "the route to it leaves through %s%s, which has no RDMA device",
			 c->out->name, nature(c, c->out, text));
}

static void decide(struct choice *c)
{
	struct vb_path *p = c->path;
	enum vb_fabric wanted = c->wish->fabric;
	char absence[240];

	if (c->taken) {
		p->fabric = VB_FABRIC_VERBS;
		snprintf(p->why, sizeof(p->why), "%.150s%s%s", c->taken->reason,
			 c->proof == VB__PROOF_FAILED ? "; but " : "",
			 c->proof == VB__PROOF_FAILED ? p->proof : "");
		return;
	}
	explain_absence(c, absence, sizeof(absence));
	if (wanted == VB_FABRIC_VERBS)
		snprintf(p->why, sizeof(p->why), "verbs was asked for, but %s", absence);
	else if (!c->system->ofi)
		snprintf(p->why, sizeof(p->why), "this build has no ofi%s%s",
			 wanted == VB_FABRIC_OFI ? "" : ", and ",
			 wanted == VB_FABRIC_OFI ? "" : absence);
	else if (wanted == VB_FABRIC_OFI)
		snprintf(p->why, sizeof(p->why), "it was asked for");
	else
		snprintf(p->why, sizeof(p->why), "%s", absence);
	if (wanted != VB_FABRIC_VERBS && c->system->ofi)
		p->fabric = VB_FABRIC_OFI;
}

/* What speaks against any way at all; NULL if nothing does. */
static const char *no_way(const struct vb__wish *wish)
{
	return wish->route.errnum ? strerror(wish->route.errnum) : NULL;
}

int vb__path_choose(struct vb_path *path, const struct vb__system *system,
		    const struct vb__wish *wish, vb__prove_fn prove, void *arg)
{
	struct choice c = {
		.system = system,
		.wish = wish,
		.path = path,
		.end = &path->candidates,
		.prove = prove,
		.arg = arg,
	};
	const char *obstacle = no_way(wish);
	const struct vb__interface *scope = vb__interface_find(system->interfaces, wish->scope);
	int rc = 0;

	vb__ip_text(path->peer, sizeof(path->peer), &wish->peer, scope ? scope->name : NULL);
	if (!obstacle && !find_exit(&c))
		obstacle = "the interface of the route cannot be found";
	if (obstacle) {
		snprintf(path->why, sizeof(path->why), "the kernel has no route to it: %s",
			 obstacle);
		return 0;
	}
	for (const struct vb_device *d = system->devices; d && rc == 0; d = d->next)
		rc = judge_device(&c, d);
	if (rc == 0)
		decide(&c);
	return rc;
}
