/* SPDX-License-Identifier: Apache-2.0 */
/* The picture of the system that discovery decides by: the mock's device, the real interfaces' names, 127.0.0.1 on lo. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/failure.h"
#include "fabric/route.h"
#include "fabric/verbs/verbs_system.h"
#include "mock_books.h"
#include "mock_verbs.h"

int __wrap_verbs_devices_read(struct vb_device **devices, bool with_abilities,
			      struct vb_error *err);
int __wrap_vb__interfaces_read(struct vb__interface **interfaces);
int __wrap_vb__own_addresses_read(struct vb__own_address **addresses);
void __wrap_vb__route_ask(struct vb__route *route, const struct vb__address *peer,
			  const struct vb__address *source);

static enum vb_wire wire(void)
{
	if (mock_context.device->transport_type == IBV_TRANSPORT_IWARP)
		return VB_WIRE_IWARP;
	return mock_device.port.link_layer == IBV_LINK_LAYER_INFINIBAND ? VB_WIRE_INFINIBAND
									: VB_WIRE_ROCE_V2;
}

static struct vb_gid *make_gid(const struct ibv_gid_entry *entry)
{
	struct vb_gid *gid = calloc(1, sizeof(*gid));

	if (!gid)
		return NULL;
	gid->index = entry->gid_index;
	gid->wire = wire() == VB_WIRE_ROCE_V2 && entry->gid_type != IBV_GID_TYPE_ROCE_V2
			    ? VB_WIRE_ROCE_V1
			    : wire();
	memcpy(gid->bytes, entry->gid.raw, sizeof(gid->bytes));
	inet_ntop(AF_INET6, gid->bytes, gid->text, sizeof(gid->text));
	gid->ifindex = entry->ndev_ifindex;
	if (!if_indextoname(entry->ndev_ifindex, gid->interface))
		gid->interface[0] = '\0';
	return gid;
}

/* False: there is no memory for all of it. */
static bool make_port(struct vb_device *device)
{
	struct vb_port *port = calloc(1, sizeof(*port));
	struct vb_gid **end = port ? &port->gids : NULL;

	device->ports = port;
	if (!port)
		return false;
	port->number = 1;
	port->state = mock_device.port.state == IBV_PORT_ACTIVE ? VB_PORT_ACTIVE : VB_PORT_DOWN;
	port->wire = wire();
	port->lid = mock_device.port.lid;
	port->mtu_bytes = 128u << mock_device.port.active_mtu;
	port->ifindex = if_nametoindex("lo");
	snprintf(port->interface, sizeof(port->interface), "lo");
	for (unsigned i = 0; i < mock_device.gid_count; i++) {
		*end = make_gid(&mock_device.gids[i]);
		if (!*end)
			return false;
		end = &(*end)->next;
	}
	return true;
}

int __wrap_verbs_devices_read(struct vb_device **devices, bool with_abilities, struct vb_error *err)
{
	struct vb_device *device = calloc(1, sizeof(*device));

	(void)with_abilities;
	mock_note("verbs_devices_read", NULL);
	if (!device || !make_port(device)) {
		vb_device_free(device);
		vb__fail_errno(err, ENOMEM, "calloc", NULL);
		return VB_ERR_NOMEM;
	}
	snprintf(device->name, sizeof(device->name), MOCK_DEVICE);
	*devices = device;
	return 0;
}

/* lo may be an IPoIB interface, on the last of the device's GIDs. */
static void describe(struct vb__interface *i)
{
	if (strcmp(i->name, "lo") != 0 || !mock_ipoib_pkey)
		return;
	i->kind = VB__INTERFACE_IPOIB;
	i->pkey = mock_ipoib_pkey;
	i->hw_len = 20;
	memcpy(i->hw + 4, &mock_device.gids[mock_device.gid_count - 1].gid, 16);
}

int __wrap_vb__interfaces_read(struct vb__interface **interfaces)
{
	struct if_nameindex *all = if_nameindex();
	int rc = 0;

	*interfaces = NULL;
	for (struct if_nameindex *n = all; n && n->if_index && rc == 0; n++) {
		struct vb__interface *new = calloc(1, sizeof(*new));

		rc = new ? 0 : ENOMEM;
		if (!new)
			continue;
		new->index = n->if_index;
		snprintf(new->name, sizeof(new->name), "%.15s", n->if_name);
		describe(new);
		new->next = *interfaces;
		*interfaces = new;
	}
	if_freenameindex(all);
	return rc;
}

int __wrap_vb__own_addresses_read(struct vb__own_address **addresses)
{
	struct vb__own_address *own = calloc(1, sizeof(*own));

	*addresses = own;
	if (!own)
		return ENOMEM;
	own->ifindex = if_nametoindex("lo");
	own->ip = (struct vb__ip){ .bytes = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };
	return 0;
}

void __wrap_vb__route_ask(struct vb__route *route, const struct vb__address *peer,
			  const struct vb__address *source)
{
	(void)source;
	*route = (struct vb__route){ .local = true, .ifindex = if_nametoindex("lo") };
	route->source = vb__ip_of(peer);
}
