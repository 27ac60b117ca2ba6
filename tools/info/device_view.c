/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, ports and GIDs in words. */
#include "info/device_view.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"

/* An IPv4 address is shown as such. */
static const char *address_of(const struct vb_gid *gid)
{
	bool four = !strncmp(gid->text, "::ffff:", 7) && strchr(gid->text, '.');

	return four ? gid->text + 7 : gid->text;
}

static bool is_same(const struct vb_gid *a, const struct vb_gid *b)
{
	return !memcmp(a->bytes, b->bytes, sizeof(a->bytes)) && a->ifindex == b->ifindex;
}

static const char *wire_in_short(enum vb_wire wire)
{
	return wire == VB_WIRE_ROCE_V1 ? "v1" : wire == VB_WIRE_ROCE_V2 ? "v2" : "";
}

/* An address is in the table once for each version of RoCE: that makes one line. */
static void print_gid(const struct vb_port *port, const struct vb_gid *gid, FILE *out)
{
	char numbers[64];
	size_t at = 0;

	for (const struct vb_gid *g = port->gids; g != gid; g = g->next)
		if (is_same(g, gid))
			return;
	for (const struct vb_gid *g = gid; g; g = g->next)
		if (is_same(g, gid) && at < sizeof(numbers))
			at += (size_t)snprintf(numbers + at, sizeof(numbers) - at, "%s%u%s%s",
					       at ? ", " : "", g->index,
					       *wire_in_short(g->wire) ? " " : "",
					       wire_in_short(g->wire));
	fprintf(out, "    gid %-12s %-40s %s\n", numbers, address_of(gid),
		gid->interface[0] ? gid->interface
		: gid->ifindex	  ? "(of another network namespace)"
				  : "");
}

static void print_port(const struct vb_port *port, FILE *out)
{
	fprintf(out, "  port %u  %s, %s", port->number, vb_port_state_name(port->state),
		port->wire == VB_WIRE_ROCE_V2 ? "RoCE" : vb_wire_name(port->wire));
	if (port->rate[0])
		fprintf(out, ", %s", port->rate);
	if (port->mtu_bytes)
		fprintf(out, ", MTU %u", port->mtu_bytes);
	if (port->mtu_bytes && port->mtu_bytes != port->max_mtu_bytes)
		fprintf(out, " of %u", port->max_mtu_bytes);
	if (port->wire == VB_WIRE_INFINIBAND)
		fprintf(out, ", LID %u", port->lid);
	fprintf(out, ", %s\n", port->interface[0] ? port->interface : "no interface");
	for (const struct vb_gid *gid = port->gids; gid; gid = gid->next)
		print_gid(port, gid, out);
}

/* "atomics, dmabuf": those of the abilities that are there, or those that are not. */
static void print_which(const struct vb_abilities *can, bool there, FILE *out)
{
	const struct {
		const char *name;
		bool there;
	} all[] = {
		{ "atomics", can->atomics },
		{ "shared receives", can->max_srq > 0 },
		{ "memory windows", can->windows_1 || can->windows_2 },
		{ "on-demand paging", can->on_demand_paging },
		{ "dmabuf", can->dmabuf },
	};
	const char *comma = "";

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i].there != there)
			continue;
		fprintf(out, "%s%s", comma, all[i].name);
		comma = ", ";
	}
	fputs(*comma ? "\n" : "-\n", out);
}

static void print_abilities(const struct vb_abilities *can, FILE *out)
{
	fprintf(out,
		"  limits  %u queue pairs, %u pieces (%u of a read), %u bytes inline, %u reads at once\n",
		can->max_qp, can->max_sge, can->max_sge_read, can->max_inline_bytes,
		can->max_reads_out);
	fputs("  has     ", out);
	print_which(can, true, out);
	fputs("  lacks   ", out);
	print_which(can, false, out);
}

static void print_device(const struct vb_device *d, FILE *out)
{
	char line[VB_ERROR_LINE_MAX];

	fprintf(out, "%s  %s%s%s%s%s\n", d->name, d->node[0] ? d->node : "no node",
		d->driver[0] ? ", driver " : "", d->driver, d->firmware[0] ? ", firmware " : "",
		d->firmware);
	if (d->trouble.code)
		fprintf(out, "  cannot be used: %s\n",
			vb_error_format(&d->trouble, line, sizeof(line)));
	for (const struct vb_port *p = d->ports; p; p = p->next)
		print_port(p, out);
	if (!d->trouble.code)
		print_abilities(&d->can, out);
}

void device_view_print(const struct vb_device *devices, FILE *out)
{
	if (!devices)
		fputs("no RDMA device: transfers run over libfabric tcp\n", out);
	for (const struct vb_device *d = devices; d; d = d->next) {
		print_device(d, out);
		if (d->next)
			fputc('\n', out);
	}
}

/* ---- JSON ---- */

static void add_gids(struct json *json, const struct vb_port *port)
{
	json_list(json, "gids");
	for (const struct vb_gid *g = port->gids; g; g = g->next) {
		json_open(json, NULL);
		json_number(json, "index", g->index);
		json_text(json, "gid", g->text);
		json_text(json, "type", vb_wire_name(g->wire));
		json_text(json, "interface", g->interface[0] ? g->interface : NULL);
		json_close(json);
	}
	json_list_end(json);
}

static void add_ports(struct json *json, const struct vb_device *d)
{
	static const char *const states[] = { "unknown", "down",   "init",
					      "armed",	 "active", "deferred" };

	json_list(json, "ports");
	for (const struct vb_port *p = d->ports; p; p = p->next) {
		json_open(json, NULL);
		json_number(json, "port", p->number);
		json_text(json, "state", states[p->state]);
		json_text(json, "link_layer",
			  p->wire == VB_WIRE_INFINIBAND ? "InfiniBand" : "Ethernet");
		json_text(json, "transport",
			  p->wire == VB_WIRE_ROCE_V2 ? "RoCE" : vb_wire_name(p->wire));
		json_text(json, "rate", p->rate[0] ? p->rate : NULL);
		json_number(json, "rate_mbps", p->rate_mbps);
		json_number(json, "mtu", p->mtu_bytes);
		json_number(json, "max_mtu", p->max_mtu_bytes);
		json_number(json, "max_message", p->max_message_bytes);
		json_number(json, "lid", p->lid);
		json_text(json, "interface", p->interface[0] ? p->interface : NULL);
		add_gids(json, p);
		json_close(json);
	}
	json_list_end(json);
}

static void add_abilities(struct json *json, const struct vb_abilities *can)
{
	json_open(json, "can");
	json_number(json, "max_qp", can->max_qp);
	json_number(json, "max_cq", can->max_cq);
	json_number(json, "max_mr", can->max_mr);
	json_number(json, "max_pd", can->max_pd);
	json_number(json, "max_qp_requests", can->max_qp_requests);
	json_number(json, "max_sge", can->max_sge);
	json_number(json, "max_sge_read", can->max_sge_read);
	json_number(json, "max_inline", can->max_inline_bytes);
	json_number(json, "max_reads_out", can->max_reads_out);
	json_number(json, "max_reads_in", can->max_reads_in);
	json_bool(json, "atomics", can->atomics);
	json_bool(json, "atomics_with_cpu", can->atomics_with_cpu);
	json_number(json, "max_srq", can->max_srq);
	json_bool(json, "memory_windows_1", can->windows_1);
	json_bool(json, "memory_windows_2", can->windows_2);
	json_bool(json, "on_demand_paging", can->on_demand_paging);
	json_bool(json, "dmabuf", can->dmabuf);
	json_close(json);
}

void device_view_json(const struct vb_device *devices, FILE *out)
{
	char guid[24], *line;
	struct json json;

	json_begin(&json);
	json_list(&json, "devices");
	for (const struct vb_device *d = devices; d; d = d->next) {
		json_open(&json, NULL);
		json_text(&json, "name", d->name);
		json_text(&json, "node", d->node[0] ? d->node : NULL);
		json_text(&json, "driver", d->driver[0] ? d->driver : NULL);
		json_text(&json, "firmware", d->firmware[0] ? d->firmware : NULL);
		snprintf(guid, sizeof(guid), "0x%016llx", (unsigned long long)d->guid);
		json_text(&json, "guid", guid);
		json_text(&json, "trouble", d->trouble.code ? d->trouble.cause : NULL);
		if (!d->trouble.code)
			add_abilities(&json, &d->can);
		add_ports(&json, d);
		json_close(&json);
	}
	json_list_end(&json);
	line = json_end(&json);
	if (line)
		fputs(line, out);
	free(line);
}
