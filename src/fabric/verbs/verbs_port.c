/* SPDX-License-Identifier: Apache-2.0 */
/* Which port of which device an address of ours belongs to: the one that has it as a GID of RoCE v2, by the same interface. */
#include "fabric/verbs/verbs_port.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/wireup.h"

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

/* As the kernel's files show it; false if they do not. */
static bool read_interface(const char *device, const struct ibv_gid_entry *entry, char *name,
			   int size)
{
	char path[200];
	FILE *file;
	bool ok;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/%u", device,
		 entry->port_num, entry->gid_index);
	file = fopen(path, "re");
	if (!file)
		return false;
	ok = fgets(name, size, file) != NULL;
	fclose(file);
	if (ok)
		name[strcspn(name, "\n")] = '\0';
	return ok;
}

bool verbs_gid_interface(const char *device, const struct ibv_gid_entry *entry, char name[16])
{
	char ours[IF_NAMESIZE], theirs[64];

	if (!entry->ndev_ifindex || !if_indextoname(entry->ndev_ifindex, ours))
		return false;
	if (read_interface(device, entry, theirs, sizeof(theirs)) && strcmp(ours, theirs) != 0)
		return false;
	snprintf(name, 16, "%s", ours);
	return true;
}

/* A GID that is the address: whether it can be used for it. */
static bool suits(struct verbs_port *port, const struct ibv_gid_entry *entry,
		  const struct vb__address *local, struct doubt *d)
{
	char interface[16];

	if (entry->gid_index > UINT8_MAX)
		return doubt(d, "the index of its GID is above 255, which no queue pair can name");
	if (!verbs_gid_interface(ibv_get_device_name(port->context->device), entry, interface))
		return doubt(d, "its GID's interface is down, or in another network namespace");
	if (!vb__address_is_on(local, interface))
		return doubt(d, "its GID belongs to another interface than the address");
	return fill_in(port, entry, d);
}

static bool search(struct verbs_port *port, const struct vb__address *local,
		   const struct ibv_gid_entry *entries, ssize_t n, struct doubt *d)
{
	uint8_t gid[16];

	vb__address_gid((const struct sockaddr *)&local->sa, gid);
	doubt(d, "it is none of its GIDs of RoCE v2");
	for (ssize_t i = 0; i < n; i++)
		if (entries[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !memcmp(&entries[i].gid, gid, sizeof(gid)) &&
		    suits(port, &entries[i], local, d))
			return true;
	return false;
}

/* How many GIDs there can be: a table that does not fit cannot be read at all. 0 and the reason if it cannot be told. */
static size_t count_gids(struct ibv_context *context, struct doubt *d)
{
	struct ibv_device_attr device;
	size_t room = 1;
	int rc = ibv_query_device(context, &device);

	if (rc) {
		doubt_call(d, "ibv_query_device", strerror(rc));
		return 0;
	}
	for (unsigned i = 1; i <= device.phys_port_cnt; i++) {
		struct ibv_port_attr attr;

		rc = ibv_query_port(context, (uint8_t)i, &attr);
		if (rc) {
			doubt_call(d, "ibv_query_port", strerror(rc));
			return 0;
		}
		room += attr.gid_tbl_len > 0 ? (size_t)attr.gid_tbl_len : 0;
	}
	return room;
}

/* Of an open device. */
static bool look_through(struct verbs_port *port, const struct vb__address *local, struct doubt *d)
{
	size_t room = count_gids(port->context, d);
	struct ibv_gid_entry *entries;
	bool found;
	ssize_t n;

	if (!room)
		return false;
	entries = calloc(room, sizeof(*entries));
	if (!entries)
		return doubt_call(d, "calloc", strerror(ENOMEM));
	n = ibv_query_gid_table(port->context, entries, room, 0);
	found = n < 0 ? doubt_call(d, "ibv_query_gid_table", strerror((int)-n))
		      : search(port, local, entries, n, d);
	free(entries);
	return found;
}

static bool look_at(struct ibv_device *device, const struct vb__address *local,
		    struct verbs_port *port, struct doubt *d)
{
	struct vb_error err = { .code = VB_OK };

	if (device->transport_type == IBV_TRANSPORT_IWARP)
		return doubt(d, "iWARP, which rdma_cm alone can wire up");
	if (verbs_device_open(device, &port->context, &err) != 0)
		return doubt_call(d, err.operation, err.cause);
	if (look_through(port, local, d))
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
	bool found = false;
	int n = 0;

	errno = 0;
	list = ibv_get_device_list(&n);
	if (!list)
		return verbs_fail(err, errno ? errno : ENODEV, "ibv_get_device_list", NULL);
	for (int i = 0; i < n && !found; i++) {
		const char *name = ibv_get_device_name(list[i]);
		struct doubt d;

		if (only[0] && strcmp(only, name) != 0)
			continue;
		found = look_at(list[i], local, port, &d);
		if (!found)
			note(&notes, name, d.why);
	}
	ibv_free_device_list(list);
	return found ? 0 : fail_find(err, local, &notes, only);
}
