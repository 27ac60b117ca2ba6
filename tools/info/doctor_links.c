/* SPDX-License-Identifier: Apache-2.0 */
/* Judges a port and what it is connected by. */
#include "info/doctor_links.h"

#include <stdio.h>
#include <string.h>

/* What RoCE v2 puts around a payload: IP, UDP, and InfiniBand's own headers and checksum, at the most. */
#define ROCE_OVERHEAD 96u

static bool is_link_local(const struct vb_gid *gid)
{
	return gid->bytes[0] == 0xfe && (gid->bytes[1] & 0xc0) == 0x80;
}

/* ---- GIDs ---- */

struct gid_count {
	unsigned all, v2, usable, foreign;
};

static struct gid_count count_gids(const struct vb_port *port)
{
	struct gid_count n = { .all = 0 };

	for (const struct vb_gid *gid = port->gids; gid; gid = gid->next) {
		n.all++;
		n.v2 += gid->wire == VB_WIRE_ROCE_V2;
		n.foreign += gid->ifindex && !gid->interface[0];
		n.usable += gid->wire == VB_WIRE_ROCE_V2 && gid->interface[0] &&
			    !is_link_local(gid);
	}
	return n;
}

static void judge_gids(struct findings *to, const char *topic, const struct link_fact *link)
{
	const struct vb_port *port = link->port;
	const char *name = port->interface[0] ? port->interface : "its interface";
	struct gid_count n = count_gids(port);

	if (!n.all)
		findings_add(to, FINDING_PROBLEM, topic,
			     "set the interface up and give it an address: `ip link set IF up`, "
			     "`ip address add ...`",
			     "the GID table is empty");
	else if (!n.v2)
		findings_add(
			to, FINDING_PROBLEM, topic,
			"let the port speak v2: `cma_roce_mode -d DEVICE -p 1 -m 2`, or update "
			"the firmware",
			"no GID is of RoCE v2");
	else if (n.foreign == n.all)
		findings_add(to, FINDING_WARNING, topic,
			     "give this network namespace an interface of the device (SR-IOV, "
			     "macvlan), or use the host's network",
			     "all %u GIDs belong to interfaces of other network namespaces", n.all);
	else if (!n.usable && !link->addresses)
		findings_add(to, FINDING_WARNING, topic,
			     "give it one: `ip address add ADDRESS/BITS dev IF`",
			     "%s has no address, so only link-local peers can be reached", name);
	else if (!n.usable)
		findings_add(to, FINDING_PROBLEM, topic,
			     "set the link down and up, and see `dmesg`: the table may be full",
			     "%s has %u addresses, but none is in the GID table", name,
			     link->addresses);
	else
		findings_add(to, FINDING_OK, topic, NULL, "%u GIDs, %u of RoCE v2 with an address",
			     n.all, n.usable);
}

/* ---- MTU ---- */

static void judge_mtu(struct findings *to, const char *topic, const struct link_fact *link)
{
	const struct vb_port *p = link->port;
	char remedy[200];

	snprintf(remedy, sizeof(remedy),
		 "`ip link set %s mtu 9000` at both ends, with switches that pass it",
		 p->interface);
	if (link->interface_mtu < p->mtu_bytes + 44)
		findings_add(to, FINDING_PROBLEM, topic, remedy,
			     "packets of %u bytes do not fit through %s, whose MTU is %u",
			     p->mtu_bytes, p->interface, link->interface_mtu);
	else if (p->mtu_bytes < p->max_mtu_bytes &&
		 link->interface_mtu < p->max_mtu_bytes + ROCE_OVERHEAD)
		findings_add(to, FINDING_WARNING, topic, remedy,
			     "%u bytes a packet of %u, as the MTU of %s is %u", p->mtu_bytes,
			     p->max_mtu_bytes, p->interface, link->interface_mtu);
	else
		findings_add(to, FINDING_OK, topic, NULL, "MTU %u, on %s %u", p->mtu_bytes,
			     p->interface, link->interface_mtu);
}

/* InfiniBand's comes from the subnet manager, iWARP's from TCP. */
static void judge_infiniband_mtu(struct findings *to, const char *topic,
				 const struct link_fact *link)
{
	const struct vb_port *p = link->port;
	bool best = p->mtu_bytes >= p->max_mtu_bytes;

	findings_add(to, best ? FINDING_OK : FINDING_WARNING, topic,
		     best ? NULL : "let the subnet manager give the partition mtu=5 (4096)",
		     "MTU %u of %u", p->mtu_bytes, p->max_mtu_bytes);
}

/* ---- Speed ---- */

/* Gb/s that a PCIe link carries, less its encoding: 8b/10b up to 5 GT/s, 128b/130b from 8 on. */
static double pcie_gbps(double gts, unsigned lanes)
{
	return gts * lanes * (gts < 8 ? 0.8 : 128.0 / 130.0);
}

static void judge_pcie(struct findings *to, const char *topic, const struct link_fact *link)
{
	double carries = pcie_gbps(link->pcie_gts, link->pcie_lanes);
	double rate = link->port->rate_mbps / 1000.0;

	if (link->pcie_gts <= 0 || !link->pcie_lanes)
		return;
	if (carries < rate)
		findings_add(to, FINDING_WARNING, topic,
			     "another slot, or the BIOS's setting for this one: see LnkSta in "
			     "`lspci -vv`",
			     "PCIe x%u at %.3g GT/s carries %.0f Gb/s, the port %.0f",
			     link->pcie_lanes, link->pcie_gts, carries, rate);
	else if (link->pcie_lanes < link->pcie_max_lanes ||
		 link->pcie_gts < link->pcie_max_gts * 0.99)
		findings_add(to, FINDING_OK, topic, NULL,
			     "PCIe x%u of x%u at %.3g of %.3g GT/s, enough for the port",
			     link->pcie_lanes, link->pcie_max_lanes, link->pcie_gts,
			     link->pcie_max_gts);
}

/* "40 Gb/sec (1X ...)": InfiniBand's links have four lanes or more; one is what is left of them. */
static bool lost_lanes(const struct vb_port *port)
{
	return port->wire == VB_WIRE_INFINIBAND && strstr(port->rate, "(1X");
}

static void judge_speed(struct findings *to, const char *topic, const struct link_fact *link)
{
	const struct vb_port *p = link->port;

	if (link->best_mbps && link->speed_mbps && link->speed_mbps < link->best_mbps)
		findings_add(
			to, FINDING_WARNING, topic,
			"cable, transceiver and the switch's port: `ethtool IF` shows what both "
			"sides offer",
			"the link runs at %u Mb/s, the adapter can do %u", link->speed_mbps,
			link->best_mbps);
	else if (lost_lanes(p))
		findings_add(to, FINDING_WARNING, topic,
			     "cable and connectors: `iblinkinfo`, `ibdiagnet`",
			     "the link runs at %s", p->rate);
	else
		findings_add(to, FINDING_OK, topic, NULL, "active, %s, %s", vb_wire_name(p->wire),
			     p->rate[0] ? p->rate : "speed unknown");
	judge_pcie(to, topic, link);
}

/* ---- All of a port ---- */

static void judge_inactive(struct findings *to, const char *topic, const struct vb_port *port)
{
	bool waits = port->state == VB_PORT_INIT || port->state == VB_PORT_ARMED;

	findings_add(to, waits ? FINDING_PROBLEM : FINDING_WARNING, topic,
		     waits ? "start one, for instance opensm, at one host of the fabric"
			   : "plug the cable in, or set the link up; an unused port may stay so",
		     "the port is %s", vb_port_state_name(port->state));
}

void doctor_judge_link(struct findings *to, const struct link_fact *link)
{
	const struct vb_port *port = link->port;
	char topic[24];

	snprintf(topic, sizeof(topic), "%.16s/%u", link->device->name, port->number);
	if (port->state != VB_PORT_ACTIVE) {
		judge_inactive(to, topic, port);
		return;
	}
	judge_speed(to, topic, link);
	if (link->device->trouble.code)
		return;
	if (port->wire == VB_WIRE_ROCE_V2)
		judge_gids(to, topic, link);
	if (port->wire == VB_WIRE_ROCE_V2 && link->interface_mtu && port->mtu_bytes)
		judge_mtu(to, topic, link);
	if (port->wire == VB_WIRE_INFINIBAND && port->mtu_bytes)
		judge_infiniband_mtu(to, topic, link);
}
