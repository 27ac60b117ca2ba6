/* SPDX-License-Identifier: Apache-2.0 */
/* What the doctor wants to know of this machine. Gathered here, judged in doctor.h. */
#ifndef TOOLS_FACTS_H
#define TOOLS_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <verbatim/device.h>

#define FACTS_NO_LIMIT UINT64_MAX
#define FACTS_LINKS_MAX 64

/* A device node; zeroed it is not there. */
struct node_fact {
	bool there, allowed;
	bool ruled_out; /* not by its permissions, but by the device rules of a container */
	char owner[32], group[32];
	unsigned mode; /* its permissions */
};

/* What is known of a port beside what verbs tells. */
struct link_fact {
	const struct vb_device *device;
	const struct vb_port *port;
	unsigned interface_mtu;	       /* 0: unknown */
	unsigned speed_mbps;	       /* of the interface, */
	unsigned best_mbps;	       /* and the fastest that it supports; 0: unknown */
	double pcie_gts, pcie_max_gts; /* per lane; 0: not on PCIe */
	unsigned pcie_lanes, pcie_max_lanes;
	unsigned addresses; /* of the interface, but link-local ones */
};

enum netns_mode {
	NETNS_UNKNOWN = 0,
	NETNS_SHARED,
	NETNS_EXCLUSIVE,
};

struct facts {
	enum vb_fabric fabric; /* the only one that matters; VB_FABRIC_AUTO: all */
	char version[32], kernel[80];
	char libibverbs[32], librdmacm[32]; /* versions; empty: not loaded */

	uint64_t memlock, memlock_hard; /* bytes, or FACTS_NO_LIMIT */
	bool ipc_lock;			/* effective, and counts */
	bool ipc_lock_bounded;		/* only in the bounding set */
	bool ipc_lock_inside; /* effective in a user namespace other than the kernel's own */
	bool root;

	struct vb_device *devices;
	struct vb_error devices_failed;
	struct node_fact rdma_cm;
	struct node_fact nodes[FACTS_LINKS_MAX]; /* in the order of devices */
	struct link_fact links[FACTS_LINKS_MAX];
	unsigned link_count;
	enum netns_mode netns;
	bool elsewhere; /* there are devices, all in other network namespaces */

	uint64_t huge_total, huge_free, huge_kib; /* pages, and the size of one */
	char transparent[16];			  /* "always", "madvise", "never"; empty: unknown */

	struct vb_provider *providers;
	struct vb_error providers_failed;
};

/* Looks at everything that matters to the fabric, which never fails as a whole. */
void facts_gather(struct facts *facts, enum vb_fabric fabric);
void facts_free(struct facts *facts);

#endif
