/* SPDX-License-Identifier: Apache-2.0 */
/* Which port of which device an address of ours belongs to: the one that has it as a GID of RoCE v2. */
#include "fabric/verbs/verbs_port.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "wire/wireup.h"

#define GIDS_MAX 256

/* What was looked at and not taken, for the error. */
struct notes {
	char text[220];
	size_t at;
};

static void note(struct notes *notes, const char *device, const char *why)
{
	int n = snprintf(notes->text + notes->at, sizeof(notes->text) - notes->at, "%s%s: %s",
			 notes->at ? "; " : "", device, why);

	notes->at += n > 0 ? (size_t)n : 0;
	if (notes->at >= sizeof(notes->text))
		notes->at = sizeof(notes->text) - 1;
}

/* Why a device was not taken. */
struct doubt {
	char why[120];
};

static bool doubt(struct doubt *doubt, const char *why)
{
	snprintf(doubt->why, sizeof(doubt->why), "%s", why);
	return false;
}

static bool doubt_call(struct doubt *doubt, const char *call, const char *cause)
{
	snprintf(doubt->why, sizeof(doubt->why), "%.40s: %.76s", call, cause);
	return false;
}

static bool fill_in(struct verbs_port *port, const struct ibv_gid_entry *entry, struct doubt *d)
{
	struct ibv_port_attr attr;
	int rc = ibv_query_port(port->context, (uint8_t)entry->port_num, &attr);

	if (rc)
		return doubt_call(d, "ibv_query_port", strerror(rc));
	if (attr.state != IBV_PORT_ACTIVE)
		return doubt(d, "its port is not active");
	port->number = (uint8_t)entry->port_num;
	port->gid_index = (uint8_t)entry->gid_index;
	memcpy(port->gid, &entry->gid, sizeof(port->gid));
	port->link = attr.link_layer == IBV_LINK_LAYER_ETHERNET ? VB__WIREUP_ETHERNET
								: VB__WIREUP_INFINIBAND;
	port->lid = attr.lid;
	port->mtu_bytes = (uint16_t)(128u << attr.active_mtu);
	return true;
}

/* Of an open device. */
static bool look_through(struct verbs_port *port, const uint8_t gid[16], struct doubt *d)
{
	struct ibv_gid_entry entries[GIDS_MAX];
	ssize_t n = ibv_query_gid_table(port->context, entries, GIDS_MAX, 0);

	if (n < 0)
		return doubt_call(d, "ibv_query_gid_table", strerror((int)-n));
	doubt(d, "it is none of its GIDs of RoCE v2");
	for (ssize_t i = 0; i < n; i++)
		if (entries[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(&entries[i].gid, gid, 16) && fill_in(port, &entries[i], d))
			return true;
	return false;
}

static bool look_at(struct ibv_device *device, const uint8_t gid[16], struct verbs_port *port,
		    struct doubt *d)
{
	struct vb_error err = { .code = VB_OK };

	if (device->transport_type == IBV_TRANSPORT_IWARP)
		return doubt(d, "iWARP, which rdma_cm alone can wire up");
	if (verbs_device_open(device, &port->context, &err) != 0)
		return doubt_call(d, err.operation, err.cause);
	if (look_through(port, gid, d))
		return true;
	verbs_device_release(port->context);
	port->context = NULL;
	return false;
}

static int fail_find(struct vb_error *err, const struct vb__address *local,
		     const struct notes *notes, const char *only)
{
	char cause[300];

	snprintf(cause, sizeof(cause), "no RDMA device%s%s has this address (%s)",
		 only[0] ? " named " : "", only,
		 notes->at ? notes->text : "there is none, or none of that name");
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_NO_DEVICE,
				.operation = "wire up by TCP from",
				.object = local->text,
				.cause = cause,
				.hint = "see `rdma link` and `ip addr`; give the peer's address "
					"on the RDMA network, or use the ofi fabric",
			});
}

int verbs_port_find(const struct vb__address *local, const char *only, struct verbs_port *port,
		    struct vb_error *err)
{
	struct notes notes = { .at = 0 };
	struct ibv_device **list;
	uint8_t gid[16];
	bool found = false;
	int n = 0;

	errno = 0;
	list = ibv_get_device_list(&n);
	if (!list)
		return verbs_fail(err, errno ? errno : ENODEV, "ibv_get_device_list", NULL);
	vb__address_gid((const struct sockaddr *)&local->sa, gid);
	for (int i = 0; i < n && !found; i++) {
		const char *name = ibv_get_device_name(list[i]);
		struct doubt d;

		if (only[0] && strcmp(only, name) != 0)
			continue;
		found = look_at(list[i], gid, port, &d);
		if (!found)
			note(&notes, name, d.why);
	}
	ibv_free_device_list(list);
	return found ? 0 : fail_find(err, local, &notes, only);
}
