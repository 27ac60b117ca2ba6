/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces, addresses and routes by rtnetlink, which needs no privilege. */
#include "fabric/route.h"

#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/netlink.h"

/* ---- Interfaces ---- */

struct interface_list {
	struct vb__interface **end;
	bool failed;
};

static enum vb__interface_kind kind_named(const char *name)
{
	static const struct {
		const char *name;
		enum vb__interface_kind kind;
	} kinds[] = {
		{ "vlan", VB__INTERFACE_VLAN },	      { "macvlan", VB__INTERFACE_MACVLAN },
		{ "ipvlan", VB__INTERFACE_MACVLAN },  { "bond", VB__INTERFACE_BOND },
		{ "team", VB__INTERFACE_BOND },	      { "bridge", VB__INTERFACE_BRIDGE },
		{ "macvtap", VB__INTERFACE_MACVLAN }, { "ipoib", VB__INTERFACE_IPOIB },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (!strcmp(name, kinds[i].name))
			return kinds[i].kind;
	return VB__INTERFACE_PLAIN;
}

/* What is particular to its kind. */
static void read_kind(struct vb__interface *i, const struct nlattr *info)
{
	const struct nlattr *outer[IFLA_INFO_DATA + 1], *data[IFLA_VLAN_ID + 1];
	char name[32];

	vb__nl_nested(info, outer, IFLA_INFO_DATA + 1);
	vb__nl_text(outer[IFLA_INFO_KIND], name, sizeof(name));
	i->kind = kind_named(name);
	vb__nl_nested(outer[IFLA_INFO_DATA], data, IFLA_VLAN_ID + 1);
	if (i->kind == VB__INTERFACE_VLAN)
		i->vlan = vb__nl_u16(data[IFLA_VLAN_ID]);
	else if (i->kind == VB__INTERFACE_IPOIB)
		i->pkey = vb__nl_u16(data[IFLA_IPOIB_PKEY]);
}

/* Where the link below is in another namespace, its number means nothing here. */
static void read_relations(struct vb__interface *i, const struct nlattr **a)
{
	bool stands_on_another = i->kind == VB__INTERFACE_VLAN || i->kind == VB__INTERFACE_MACVLAN;

	if (stands_on_another && !a[IFLA_LINK_NETNSID])
		i->lower = vb__nl_u32(a[IFLA_LINK]);
	i->master = vb__nl_u32(a[IFLA_MASTER]);
}

/* IPoIB's broadcast address holds the partition's key. */
static void read_partition(struct vb__interface *i, const struct nlattr *broadcast)
{
	const uint8_t *bytes;

	if (i->kind != VB__INTERFACE_IPOIB || i->pkey || vb__nl_len(broadcast) < 20)
		return;
	bytes = vb__nl_value(broadcast);
	i->pkey = (uint16_t)(bytes[8] << 8 | bytes[9]);
}

static void add_interface(void *arg, const struct nlmsghdr *m)
{
	struct interface_list *list = arg;
	const struct ifinfomsg *fixed = NLMSG_DATA(m);
	const struct nlattr *a[IFLA_LINK_NETNSID + 1];
	struct vb__interface *i;

	if (m->nlmsg_type != RTM_NEWLINK || m->nlmsg_len < NLMSG_LENGTH(sizeof(*fixed)))
		return;
	i = calloc(1, sizeof(*i));
	if (!i) {
		list->failed = true;
		return;
	}
	vb__nl_attributes(m, sizeof(*fixed), a, IFLA_LINK_NETNSID + 1);
	i->index = (unsigned)fixed->ifi_index;
	vb__nl_text(a[IFLA_IFNAME], i->name, sizeof(i->name));
	read_kind(i, a[IFLA_LINKINFO]);
	if (fixed->ifi_type == ARPHRD_INFINIBAND && i->kind == VB__INTERFACE_PLAIN)
		i->kind = VB__INTERFACE_IPOIB;
	if (fixed->ifi_type == ARPHRD_LOOPBACK)
		i->kind = VB__INTERFACE_LOOPBACK;
	read_relations(i, a);
	read_partition(i, a[IFLA_BROADCAST]);
	if (vb__nl_len(a[IFLA_ADDRESS]) <= sizeof(i->hw)) {
		i->hw_len = (unsigned)vb__nl_len(a[IFLA_ADDRESS]);
		if (i->hw_len)
			memcpy(i->hw, vb__nl_value(a[IFLA_ADDRESS]), i->hw_len);
	}
	*list->end = i;
	list->end = &i->next;
}

int vb__interfaces_read(struct vb__interface **interfaces)
{
	struct interface_list list = { .end = interfaces };
	struct ifinfomsg fixed = { .ifi_family = AF_UNSPEC };
	struct vb__nl_request request;
	int errnum;

	*interfaces = NULL;
	vb__nl_begin(&request, RTM_GETLINK, NLM_F_DUMP, &fixed, sizeof(fixed));
	errnum = vb__nl_ask(NETLINK_ROUTE, &request, add_interface, &list);
	return list.failed ? ENOMEM : errnum;
}

void vb__interfaces_free(struct vb__interface *i)
{
	while (i) {
		struct vb__interface *next = i->next;

		free(i);
		i = next;
	}
}

/* ---- Addresses ---- */

struct address_list {
	struct vb__own_address **end;
	bool failed;
};

static struct vb__ip ip_from(int family, const void *bytes, size_t len)
{
	struct vb__ip ip = { .bytes = { 0 } };

	if (family == AF_INET6 && len >= 16) {
		memcpy(ip.bytes, bytes, 16);
	} else if (family == AF_INET && len >= 4) {
		ip.bytes[10] = ip.bytes[11] = 0xff;
		memcpy(ip.bytes + 12, bytes, 4);
	}
	return ip;
}

static struct vb__ip ip_in(int family, const struct nlattr *a)
{
	return a ? ip_from(family, vb__nl_value(a), vb__nl_len(a)) : (struct vb__ip){ { 0 } };
}

static void add_address(void *arg, const struct nlmsghdr *m)
{
	struct address_list *list = arg;
	const struct ifaddrmsg *fixed = NLMSG_DATA(m);
	const struct nlattr *a[IFA_LOCAL + 1];
	struct vb__own_address *own;

	if (m->nlmsg_type != RTM_NEWADDR || m->nlmsg_len < NLMSG_LENGTH(sizeof(*fixed)))
		return;
	own = calloc(1, sizeof(*own));
	if (!own) {
		list->failed = true;
		return;
	}
	vb__nl_attributes(m, sizeof(*fixed), a, IFA_LOCAL + 1);
	own->ifindex = fixed->ifa_index;
	/* On point-to-point links IFA_ADDRESS is the other end. */
	own->ip = ip_in(fixed->ifa_family, a[IFA_LOCAL] ? a[IFA_LOCAL] : a[IFA_ADDRESS]);
	*list->end = own;
	list->end = &own->next;
}

int vb__own_addresses_read(struct vb__own_address **addresses)
{
	struct address_list list = { .end = addresses };
	struct ifaddrmsg fixed = { .ifa_family = AF_UNSPEC };
	struct vb__nl_request request;
	int errnum;

	*addresses = NULL;
	vb__nl_begin(&request, RTM_GETADDR, NLM_F_DUMP, &fixed, sizeof(fixed));
	errnum = vb__nl_ask(NETLINK_ROUTE, &request, add_address, &list);
	return list.failed ? ENOMEM : errnum;
}

void vb__own_addresses_free(struct vb__own_address *a)
{
	while (a) {
		struct vb__own_address *next = a->next;

		free(a);
		a = next;
	}
}

/* ---- The route ---- */

struct vb__ip vb__ip_of(const struct vb__address *a)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)&a->sa;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&a->sa;

	return a->sa.ss_family == AF_INET6 ? ip_from(AF_INET6, &six->sin6_addr, 16)
					   : ip_from(AF_INET, &four->sin_addr, 4);
}

unsigned vb__scope_of(const struct vb__address *a)
{
	return a->sa.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&a->sa)->sin6_scope_id
					   : 0;
}

static void read_route(void *arg, const struct nlmsghdr *m)
{
	struct vb__route *route = arg;
	const struct rtmsg *fixed = NLMSG_DATA(m);
	const struct nlattr *a[RTA_VIA + 1];

	if (m->nlmsg_type != RTM_NEWROUTE || m->nlmsg_len < NLMSG_LENGTH(sizeof(*fixed)))
		return;
	vb__nl_attributes(m, sizeof(*fixed), a, RTA_VIA + 1);
	route->errnum = 0;
	route->local = fixed->rtm_type == RTN_LOCAL;
	route->ifindex = vb__nl_u32(a[RTA_OIF]);
	/* Of an address that we asked to go from there is no RTA_PREFSRC. */
	if (a[RTA_PREFSRC])
		route->source = ip_in(fixed->rtm_family, a[RTA_PREFSRC]);
	route->gateway = ip_in(fixed->rtm_family, a[RTA_GATEWAY]);
	/* IPv4 by way of an IPv6 router: struct rtvia, a family and an address. */
	if (!a[RTA_GATEWAY] && vb__nl_len(a[RTA_VIA]) >= 18)
		route->gateway =
			ip_from(AF_INET6, (const uint8_t *)vb__nl_value(a[RTA_VIA]) + 2, 16);
}

/* The address without what makes it an IPv6 one. */
static void add_ip(struct vb__nl_request *request, uint16_t type, int family,
		   const struct vb__ip *ip)
{
	vb__nl_add(request, type, ip->bytes + (family == AF_INET ? 12 : 0),
		   family == AF_INET ? 4 : 16);
}

static bool is_mapped(const struct vb__address *a)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&a->sa;

	return a->sa.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six->sin6_addr);
}

void vb__route_ask(struct vb__route *route, const struct vb__address *peer,
		   const struct vb__address *source)
{
	int family = is_mapped(peer) ? AF_INET : peer->sa.ss_family;
	struct rtmsg fixed = {
		.rtm_family = (unsigned char)family,
		.rtm_dst_len = family == AF_INET ? 32 : 128,
		.rtm_src_len = source ? (family == AF_INET ? 32 : 128) : 0,
	};
	struct vb__ip to = vb__ip_of(peer), from = { .bytes = { 0 } };
	uint32_t scope = vb__scope_of(peer);
	struct vb__nl_request request;
	int errnum;

	*route = (struct vb__route){ .errnum = ENETUNREACH };
	vb__nl_begin(&request, RTM_GETROUTE, 0, &fixed, sizeof(fixed));
	add_ip(&request, RTA_DST, family, &to);
	if (source) {
		from = vb__ip_of(source);
		add_ip(&request, RTA_SRC, family, &from);
		route->source = from;
	}
	if (scope)
		vb__nl_add(&request, RTA_OIF, &scope, sizeof(scope));
	errnum = vb__nl_ask(NETLINK_ROUTE, &request, read_route, route);
	if (errnum)
		route->errnum = errnum;
}
