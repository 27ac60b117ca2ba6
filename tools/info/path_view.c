/* SPDX-License-Identifier: Apache-2.0 */
/* Paths in words. */
#include "info/path_view.h"

#include <stdlib.h>
#include <string.h>

#include "common/json.h"

static const char *name_of(enum vb_fabric fabric)
{
	return fabric == VB_FABRIC_VERBS ? "verbs" : fabric == VB_FABRIC_OFI ? "ofi" : "nothing";
}

/* Neighbours of a port with the same reason make one line. */
static bool belongs_to(const struct vb_candidate *c, const struct vb_candidate *first)
{
	return c && !c->taken && !strcmp(c->device, first->device) && c->port == first->port &&
	       !strcmp(c->reason, first->reason);
}

static const struct vb_candidate *print_group(const struct vb_candidate *c, FILE *out)
{
	const struct vb_candidate *first = c;

	fprintf(out, "    %s", c->device);
	if (c->port)
		fprintf(out, " port %u", c->port);
	if (c->gid_index >= 0)
		fprintf(out, " gid %d", c->gid_index);
	for (c = c->next; belongs_to(c, first); c = c->next)
		fprintf(out, ", %d", c->gid_index);
	fprintf(out, ": %s\n", first->reason);
	return c;
}

static void print_others(const struct vb_path *path, FILE *out)
{
	const struct vb_candidate *c = path->candidates;
	bool begun = false;

	while (c) {
		if (c->taken) {
			c = c->next;
			continue;
		}
		if (!begun)
			fputs("  not taken:\n", out);
		begun = true;
		c = print_group(c, out);
	}
}

static void print_path(const struct vb_path *p, FILE *out)
{
	fprintf(out, "%s: %s", p->peer, name_of(p->fabric));
	if (p->fabric == VB_FABRIC_VERBS)
		fprintf(out, " on %s port %u", p->device, p->port);
	else if (p->fabric == VB_FABRIC_AUTO)
		fputs(" leads there", out);
	fprintf(out, "\n  why    %s\n", p->why);
	if (p->interface[0])
		fprintf(out, "  route  %s%s, from %s%s%s\n", p->interface,
			p->to_ourselves ? " (this host itself)" : "", p->source,
			p->gateway[0] ? ", by way of " : "", p->gateway);
	if (p->fabric == VB_FABRIC_VERBS) {
		fprintf(out, "  gid    %u: %s, %s, MTU %u", p->gid_index, p->gid,
			vb_wire_name(p->wire), p->mtu_bytes);
		if (p->wire == VB_WIRE_INFINIBAND)
			fprintf(out, ", LID %u, partition 0x%04x", p->lid, p->pkey);
		fprintf(out, "\n  proof  %s\n", p->proof);
	}
	print_others(p, out);
}

void path_view_print(const struct vb_path *paths, FILE *out)
{
	for (const struct vb_path *p = paths; p; p = p->next) {
		print_path(p, out);
		if (p->next)
			fputc('\n', out);
	}
}

/* ---- JSON ---- */

static void add_candidates(struct json *json, const struct vb_path *path)
{
	json_list(json, "candidates");
	for (const struct vb_candidate *c = path->candidates; c; c = c->next) {
		json_open(json, NULL);
		json_text(json, "device", c->device);
		if (c->port)
			json_number(json, "port", c->port);
		if (c->gid_index >= 0) {
			json_number(json, "gid_index", (uint64_t)c->gid_index);
			json_text(json, "gid", c->gid);
		}
		json_bool(json, "taken", c->taken);
		json_text(json, "reason", c->reason);
		json_close(json);
	}
	json_list_end(json);
}

static void add_verbs(struct json *json, const struct vb_path *p)
{
	json_text(json, "device", p->device);
	json_number(json, "port", p->port);
	json_text(json, "type", vb_wire_name(p->wire));
	json_number(json, "gid_index", p->gid_index);
	json_text(json, "gid", p->gid);
	json_number(json, "lid", p->lid);
	json_number(json, "pkey", p->pkey);
	json_number(json, "mtu", p->mtu_bytes);
	json_bool(json, "proven", p->proven);
	json_text(json, "proof", p->proof);
}

void path_view_json(const struct vb_path *paths, FILE *out)
{
	struct json json;
	char *line;

	json_begin(&json);
	json_list(&json, "paths");
	for (const struct vb_path *p = paths; p; p = p->next) {
		json_open(&json, NULL);
		json_text(&json, "peer", p->peer);
		json_text(&json, "fabric", p->fabric ? name_of(p->fabric) : NULL);
		json_text(&json, "why", p->why);
		json_text(&json, "interface", p->interface[0] ? p->interface : NULL);
		json_text(&json, "source", p->source[0] ? p->source : NULL);
		json_text(&json, "gateway", p->gateway[0] ? p->gateway : NULL);
		json_bool(&json, "to_ourselves", p->to_ourselves);
		if (p->fabric == VB_FABRIC_VERBS)
			add_verbs(&json, p);
		add_candidates(&json, p);
		json_close(&json);
	}
	json_list_end(&json);
	line = json_end(&json);
	if (line)
		fputs(line, out);
	free(line);
}
