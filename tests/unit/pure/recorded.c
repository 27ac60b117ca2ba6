/* SPDX-License-Identifier: Apache-2.0 */
/* Reads recorded systems. */
#include "recorded.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/route.h"
#include "suite.h"

#define WORDS_MAX 16

/* Where the next thing of each kind goes, and what is open. */
struct reading {
	struct recorded *to;
	struct vb__interface **interface;
	struct vb__own_address **address;
	struct vb_device **device;
	struct vb_port **port;
	struct vb_gid **gid;
	struct vb_device *in_device;
	struct vb_port *in_port;
	char *word[WORDS_MAX + 1];
	int count, at;
};

struct vb__ip recorded_ip(const char *text)
{
	struct vb__ip ip = { .bytes = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, text, ip.bytes + 12) == 1)
		return ip;
	if (inet_pton(AF_INET6, text, ip.bytes) != 1)
		fail_msg("no address: %s", text);
	return ip;
}

/* The next word; NULL at the end of the line. */
static char *next(struct reading *r)
{
	return r->at < r->count ? r->word[r->at++] : NULL;
}

static char *need(struct reading *r)
{
	char *word = next(r);

	if (!word)
		fail_msg("a word is missing after: %s", r->word[r->count - 1]);
	return word;
}

static unsigned number(struct reading *r)
{
	return (unsigned)strtoul(need(r), NULL, 10);
}

/* Takes the word if it is this one. */
static bool has(struct reading *r, const char *word)
{
	if (r->at >= r->count || strcmp(r->word[r->at], word) != 0)
		return false;
	r->at++;
	return true;
}

static void *more(size_t bytes)
{
	void *new = calloc(1, bytes);

	assert_non_null(new);
	return new;
}

static const char *name_of(const struct reading *r, unsigned index)
{
	const struct vb__interface *i = vb__interface_find(r->to->interfaces, index);

	return i ? i->name : "";
}

static void read_mac(struct reading *r, struct vb__interface *i)
{
	unsigned b[6];

	assert_int_equal(sscanf(need(r), "%2x:%2x:%2x:%2x:%2x:%2x", &b[0], &b[1], &b[2], &b[3],
				&b[4], &b[5]),
			 6);
	i->hw_len = 6;
	for (int n = 0; n < 6; n++)
		i->hw[n] = (uint8_t)b[n];
}

static void read_ipoib(struct reading *r, struct vb__interface *i)
{
	struct vb__ip gid = recorded_ip(need(r));

	i->kind = VB__INTERFACE_IPOIB;
	i->hw_len = 20;
	memcpy(i->hw + 4, gid.bytes, 16);
	if (has(r, "pkey"))
		i->pkey = (uint16_t)strtoul(need(r), NULL, 16);
}

static void read_on(struct reading *r, struct vb__interface *i)
{
	if (!has(r, "on"))
		fail_msg("%s stands on nothing", i->name);
	i->lower = number(r);
}

static void read_interface(struct reading *r)
{
	struct vb__interface *i = more(sizeof(*i));

	i->index = number(r);
	snprintf(i->name, sizeof(i->name), "%s", need(r));
	if (has(r, "vlan")) {
		i->kind = VB__INTERFACE_VLAN;
		i->vlan = number(r);
		read_on(r, i);
	}
	if (has(r, "macvlan")) {
		i->kind = VB__INTERFACE_MACVLAN;
		read_on(r, i);
	}
	if (has(r, "bond"))
		i->kind = VB__INTERFACE_BOND;
	if (has(r, "bridge"))
		i->kind = VB__INTERFACE_BRIDGE;
	if (has(r, "lo"))
		i->kind = VB__INTERFACE_LOOPBACK;
	if (has(r, "master"))
		i->master = number(r);
	if (has(r, "mac"))
		read_mac(r, i);
	if (has(r, "ipoib"))
		read_ipoib(r, i);
	*r->interface = i;
	r->interface = &i->next;
}

static void read_address(struct reading *r)
{
	struct vb__own_address *a = more(sizeof(*a));

	a->ifindex = number(r);
	a->ip = recorded_ip(need(r));
	*r->address = a;
	r->address = &a->next;
}

static void read_device(struct reading *r)
{
	struct vb_device *d = more(sizeof(*d));

	snprintf(d->name, sizeof(d->name), "%s", need(r));
	if (has(r, "denied"))
		d->trouble = (struct vb_error){ .code = VB_ERR_ACCESS,
						.operation = "open",
						.object = "/dev/infiniband/uverbs0",
						.cause = "Permission denied" };
	*r->device = r->in_device = d;
	r->device = &d->next;
	r->port = &d->ports;
}

static void read_port(struct reading *r)
{
	struct vb_port *p = more(sizeof(*p));

	p->number = number(r);
	p->state = has(r, "active") ? VB_PORT_ACTIVE
		   : has(r, "down") ? VB_PORT_DOWN
		   : has(r, "init") ? VB_PORT_INIT
				    : VB_PORT_UNKNOWN;
	p->wire = has(r, "roce")    ? VB_WIRE_ROCE_V2
		  : has(r, "ib")    ? VB_WIRE_INFINIBAND
		  : has(r, "iwarp") ? VB_WIRE_IWARP
				    : VB_WIRE_UNKNOWN;
	if (r->at < r->count && r->word[r->at][0] >= '0' && r->word[r->at][0] <= '9') {
		p->ifindex = number(r);
		snprintf(p->interface, sizeof(p->interface), "%s", name_of(r, p->ifindex));
	}
	if (has(r, "lid"))
		p->lid = (uint16_t)number(r);
	p->mtu_bytes = has(r, "mtu") ? number(r) : 4096;
	*r->port = r->in_port = p;
	r->port = &p->next;
	r->gid = &p->gids;
}

static void read_gid(struct reading *r)
{
	struct vb_gid *g = more(sizeof(*g));
	struct vb__ip ip;

	g->index = number(r);
	g->wire = has(r, "v1")	 ? VB_WIRE_ROCE_V1
		  : has(r, "v2") ? VB_WIRE_ROCE_V2
		  : has(r, "ib") ? VB_WIRE_INFINIBAND
		  : has(r, "iw") ? VB_WIRE_IWARP
				 : VB_WIRE_UNKNOWN;
	ip = recorded_ip(need(r));
	memcpy(g->bytes, ip.bytes, sizeof(g->bytes));
	inet_ntop(AF_INET6, g->bytes, g->text, sizeof(g->text));
	if (r->at < r->count)
		g->ifindex = number(r);
	if (!has(r, "foreign"))
		snprintf(g->interface, sizeof(g->interface), "%s", name_of(r, g->ifindex));
	*r->gid = g;
	r->gid = &g->next;
}

static void read_route(struct reading *r)
{
	struct vb__route *route = &r->to->route;

	if (has(r, "error")) {
		route->errnum = (int)number(r);
		return;
	}
	route->ifindex = number(r);
	route->source = recorded_ip(need(r));
	if (has(r, "via"))
		route->gateway = recorded_ip(need(r));
	route->local = has(r, "local");
}

static void read_line(struct reading *r, char *line)
{
	static const struct {
		const char *word;
		void (*read)(struct reading *r);
	} kinds[] = {
		{ "if", read_interface }, { "addr", read_address }, { "dev", read_device },
		{ "port", read_port },	  { "gid", read_gid },	    { "route", read_route },
	};
	char *rest = NULL;

	r->count = r->at = 0;
	for (char *w = strtok_r(line, " \t", &rest); w && r->count < WORDS_MAX;
	     w = strtok_r(NULL, " \t", &rest))
		r->word[r->count++] = w;
	if (!r->count)
		return;
	for (size_t i = 0; i < COUNT(kinds); i++)
		if (has(r, kinds[i].word)) {
			kinds[i].read(r);
			if (r->at < r->count)
				fail_msg("not understood: %s", r->word[r->at]);
			return;
		}
	fail_msg("unknown line: %s", r->word[0]);
}

void recorded_read(struct recorded *to, const char *text)
{
	struct reading r = {
		.to = to,
		.interface = &to->interfaces,
		.address = &to->addresses,
		.device = &to->devices,
	};
	char *copy = strdup(text), *rest = NULL;

	*to = (struct recorded){ .devices = NULL };
	assert_non_null(copy);
	for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		read_line(&r, line);
	free(copy);
}

void recorded_free(struct recorded *recorded)
{
	vb_device_free(recorded->devices);
	vb__interfaces_free(recorded->interfaces);
	vb__own_addresses_free(recorded->addresses);
}
