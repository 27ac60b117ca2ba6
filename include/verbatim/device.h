/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discovery: the RDMA devices of this machine, and which way leads to a peer.
 *
 *	struct vb_device *devices;
 *	struct vb_path *path;
 *
 *	if (vb_device_list(&devices, &err) == 0)
 *		for (struct vb_device *d = devices; d; d = d->next)
 *			puts(d->name);
 *	vb_device_free(devices);
 *
 *	if (vb_path_find("host", NULL, &path, &err) == 0)
 *		printf("%s: %s\n", path->peer, path->why);
 *	vb_path_free(path);
 *
 * Both look at the system as it is at that moment and send nothing but, perhaps, a question for the
 * peer's hardware address. What they return is the caller's, does not change any more, and is worth
 * little after a link went down and up: the indexes of GIDs move. The structs may grow at their ends.
 * Any thread may call any of these.
 */
#ifndef VERBATIM_DEVICE_H
#define VERBATIM_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <verbatim/error.h>
#include <verbatim/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Devices ---- */

enum vb_port_state {
	VB_PORT_UNKNOWN = 0,
	VB_PORT_DOWN,
	VB_PORT_INIT,  /* InfiniBand: no subnet manager has been here yet */
	VB_PORT_ARMED, /* nor has it finished */
	VB_PORT_ACTIVE,
	VB_PORT_DEFERRED, /* was active, and hopes to be again */
};

/* What a port speaks, which is also what its GIDs are. */
enum vb_wire {
	VB_WIRE_UNKNOWN = 0,
	VB_WIRE_INFINIBAND,
	VB_WIRE_ROCE_V1, /* RDMA over Ethernet, on one network only */
	VB_WIRE_ROCE_V2, /* over UDP port 4791; as a port's: either version, see the GIDs */
	VB_WIRE_IWARP,	 /* over TCP */
};

/* One valid entry of a port's table. */
struct vb_gid {
	struct vb_gid *next;
	unsigned index;
	enum vb_wire wire;
	uint8_t bytes[16];
	char text[48];	    /* as an address: "::ffff:10.0.0.1", "fe80::1" */
	unsigned ifindex;   /* of its interface, 0: none */
	char interface[16]; /* empty: none, or of another network namespace */
};

struct vb_port {
	struct vb_port *next;
	unsigned number; /* from 1 on */
	enum vb_port_state state;
	enum vb_wire wire;
	uint32_t rate_mbps; /* of the link as it is now; 0: unknown */
	char rate[40];	    /* in the kernel's words: "100 Gb/sec (4X EDR)" */
	uint32_t mtu_bytes, max_mtu_bytes;
	uint32_t max_message_bytes;
	uint16_t lid; /* InfiniBand's */
	unsigned ifindex;
	char interface[16];  /* that it belongs to; empty: none that can be seen here */
	struct vb_gid *gids; /* none if the device cannot be used */
};

/* What the device says it can do, and what it was seen to do. */
struct vb_abilities {
	unsigned max_qp, max_cq, max_mr, max_pd;
	unsigned max_qp_requests;  /* outstanding, each way */
	unsigned max_sge;	   /* pieces of an operation, */
	unsigned max_sge_read;	   /* of a read */
	unsigned max_inline_bytes; /* as a queue pair was granted them */
	unsigned max_reads_out;	   /* reads and atomics of a queue pair under way to the peer, */
	unsigned max_reads_in;	   /* and from it */
	bool atomics;		   /* among its own */
	bool atomics_with_cpu;	   /* also with those of this machine's CPUs */
	unsigned max_srq;	   /* shared receive queues; 0: none */
	bool windows_1, windows_2; /* memory windows by type */
	bool on_demand_paging;
	bool dmabuf;
};

struct vb_device {
	struct vb_device *next;
	char name[64];
	char node[64];	   /* "/dev/infiniband/uverbs0"; empty: it has none */
	char driver[32];   /* the kernel's: "mlx5_core"; empty if unknown, as of software devices */
	char firmware[64]; /* its version */
	uint64_t guid;	   /* of the node, as it is written: 0x0002c90300a1b2c3 */
	struct vb_error trouble; /* why it cannot be used; VB_OK: it can */
	struct vb_abilities can; /* all zero if it cannot be used */
	struct vb_port *ports;
};

/*
 * All devices that the kernel knows, also those that are denied to us. No device is no failure:
 * `*devices` is NULL then. In a build without verbs there never is one.
 */
int vb_device_list(struct vb_device **devices, struct vb_error *err);

/* The whole list. NULL is fine. */
void vb_device_free(struct vb_device *devices);

/* "active", "RoCE v2". Never NULL. */
const char *vb_port_state_name(enum vb_port_state state);
const char *vb_wire_name(enum vb_wire wire);

/* ---- Providers ---- */

/* One of libfabric's that connections could go over, by `device` of struct vb_options. */
struct vb_provider {
	struct vb_provider *next;
	char name[64];
	char version[16]; /* of libfabric itself */
};

/* VB_ERR_UNSUPPORTED if this build has no ofi, or libfabric is not here. Loads it, which takes a while. */
int vb_provider_list(struct vb_provider **providers, struct vb_error *err);
void vb_provider_free(struct vb_provider *providers);

/* ---- Ways to a peer ---- */

/* A GID, a port or a device, if it did not get as far as that, which was considered. */
struct vb_candidate {
	struct vb_candidate *next;
	char device[64];
	unsigned port;	  /* 0: the whole device */
	int gid_index;	  /* -1: the whole port */
	char gid[48];	  /* empty then */
	bool taken;	  /* one of them at most */
	char reason[200]; /* why, or why not */
};

/* The way to one address of a peer. */
struct vb_path {
	struct vb_path *next; /* the way to the peer's next address */
	char peer[64];	      /* the address */
	char source[64];      /* of ours */
	char gateway[64];     /* empty: none is needed */
	char interface[16]; /* by which it leaves; if the peer is ourselves, the one that has the address */
	bool to_ourselves;

	/* What connecting would use; VB_FABRIC_AUTO: nothing leads there. */
	enum vb_fabric fabric;
	char why[320];

	/* With VB_FABRIC_VERBS. */
	char device[64];
	unsigned port;
	enum vb_wire wire;
	unsigned gid_index;
	char gid[48];
	uint16_t lid;
	uint16_t pkey; /* of the partition, InfiniBand's; else 0xffff */
	uint32_t mtu_bytes;
	bool proven;	 /* the device made an address handle for the peer */
	char proof[160]; /* what came of trying that, or why it was not tried */

	/* In the order of devices, ports and GIDs. */
	struct vb_candidate *candidates;
};

/*
 * Finds the ways to `host`, one for each of its addresses, in the order in which connecting would try
 * them. Of the options it heeds fabric, device, family and source. The kernel's route tells the interface and our
 * address; the device is the one that has a GID with both, of RoCE v2 on Ethernet. There is always a path,
 * if only to tell why nothing leads there; a name without an address is an error. Blocks for the name's
 * look-up, and for some seconds if the peer's hardware address is asked for in vain.
 */
int vb_path_find(const char *host, const struct vb_options *options, struct vb_path **paths,
		 struct vb_error *err);

/* The whole list. NULL is fine. */
void vb_path_free(struct vb_path *paths);

#ifdef __cplusplus
}
#endif
#endif
