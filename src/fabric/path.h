/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules by which a way to a peer is found: pure, from a picture of the
 * system to a decision with its reasons. Taking the picture is route.h's and
 * the backends' job.
 */
#ifndef VB_FABRIC_PATH_H
#define VB_FABRIC_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <verbatim/device.h>

/* IPv4 addresses are kept as IPv6 ones, ::ffff:a.b.c.d, which is also what GIDs look like. */
struct vb__ip {
	uint8_t bytes[16];
};

enum vb__interface_kind {
	VB__INTERFACE_PLAIN = 0,
	VB__INTERFACE_LOOPBACK,
	VB__INTERFACE_VLAN,
	VB__INTERFACE_MACVLAN, /* and ipvlan */
	VB__INTERFACE_BOND,    /* and team */
	VB__INTERFACE_BRIDGE,
	VB__INTERFACE_IPOIB,
};

struct vb__interface {
	struct vb__interface *next;
	unsigned index;
	char name[16];
	enum vb__interface_kind kind;
	unsigned lower;	 /* of a VLAN or macvlan: what it stands on */
	unsigned master; /* the bond or bridge that it is a member of */
	unsigned vlan;	 /* its number */
	uint16_t pkey;	 /* of IPoIB: the partition */
	uint8_t hw[20];	 /* of IPoIB: queue pair and GID */
	unsigned hw_len;
};

struct vb__own_address {
	struct vb__own_address *next;
	unsigned ifindex;
	struct vb__ip ip;
};

/* What the kernel answers when asked for the way to an address. */
struct vb__route {
	int errnum; /* there is none; 0: there is */
	bool local; /* to ourselves */
	unsigned ifindex;
	struct vb__ip source, gateway; /* the latter all zero: none */
};

struct vb__system {
	const struct vb_device *devices;
	const struct vb__interface *interfaces;
	const struct vb__own_address *addresses;
	bool verbs, ofi; /* this build has them */
};

struct vb__wish {
	struct vb__ip peer;
	unsigned scope; /* of a link-local peer: its interface */
	enum vb_fabric fabric;
	const char *device; /* empty: any */
	struct vb__route route;
};

enum vb__proof {
	VB__PROOF_NOT_TRIED = 0, /* there is nothing to try */
	VB__PROOF_GIVEN,
	VB__PROOF_FAILED,
};

/* Tries in earnest what was found: `path` names device, port and GID. Says in path->proof what came of it. */
typedef enum vb__proof (*vb__prove_fn)(void *arg, struct vb_path *path, const struct vb__ip *peer);

/*
 * Decides. `path` is empty but for its list's links. Of several that are right the first one is taken whose
 * proof does not fail; if all fail, the first. `prove` NULL: takes the first. VB_ERR_NOMEM is all that can go wrong.
 */
int vb__path_choose(struct vb_path *path, const struct vb__system *system,
		    const struct vb__wish *wish, vb__prove_fn prove, void *arg);

/* "10.0.0.1", "fd11::1"; with `scope` of a link-local one "fe80::1%eth0". */
void vb__ip_text(char *to, size_t size, const struct vb__ip *ip, const char *scope);

bool vb__ip_is_zero(const struct vb__ip *ip);
bool vb__ip_is_link_local(const struct vb__ip *ip);

const struct vb__interface *vb__interface_find(const struct vb__interface *list, unsigned index);

#endif
