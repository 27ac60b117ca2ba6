/* SPDX-License-Identifier: Apache-2.0 */
/* Ports and their interfaces, by the kernel's RDMA netlink: it tells only what this network namespace may see. */
#include "fabric/verbs/verbs_netdev.h"

#include <net/if.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>

#include "fabric/netlink.h"

#define ATTRIBUTES (RDMA_NLDEV_ATTR_NDEV_NAME + 1)

struct numbered {
	const char *name;
	bool found;
	uint32_t index;
};

static void match_device(void *arg, const struct nlmsghdr *m)
{
	const struct nlattr *a[ATTRIBUTES];
	struct numbered *device = arg;
	char name[64];

	vb__nl_attributes(m, 0, a, ATTRIBUTES);
	vb__nl_text(a[RDMA_NLDEV_ATTR_DEV_NAME], name, sizeof(name));
	if (!a[RDMA_NLDEV_ATTR_DEV_INDEX] || strcmp(name, device->name) != 0)
		return;
	device->found = true;
	device->index = vb__nl_u32(a[RDMA_NLDEV_ATTR_DEV_INDEX]);
}

static void note_netdev(void *arg, const struct nlmsghdr *m)
{
	const struct nlattr *a[ATTRIBUTES];
	struct vb_device *device = arg;
	uint32_t number;

	vb__nl_attributes(m, 0, a, ATTRIBUTES);
	number = vb__nl_u32(a[RDMA_NLDEV_ATTR_PORT_INDEX]);
	for (struct vb_port *port = device->ports; port; port = port->next) {
		if (port->number != number || !a[RDMA_NLDEV_ATTR_NDEV_NAME])
			continue;
		port->ifindex = vb__nl_u32(a[RDMA_NLDEV_ATTR_NDEV_INDEX]);
		vb__nl_text(a[RDMA_NLDEV_ATTR_NDEV_NAME], port->interface, sizeof(port->interface));
	}
}

void verbs_netdevs_read(struct vb_device *devices)
{
	struct vb__nl_request request;

	for (struct vb_device *device = devices; device; device = device->next) {
		struct numbered numbered = { .name = device->name };

		vb__nl_begin(&request, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET),
			     NLM_F_DUMP, NULL, 0);
		vb__nl_ask(NETLINK_RDMA, &request, match_device, &numbered);
		if (!numbered.found)
			continue;
		vb__nl_begin(&request, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_PORT_GET),
			     NLM_F_DUMP, NULL, 0);
		vb__nl_add(&request, RDMA_NLDEV_ATTR_DEV_INDEX, &numbered.index,
			   sizeof(numbered.index));
		vb__nl_ask(NETLINK_RDMA, &request, note_netdev, device);
	}
}
