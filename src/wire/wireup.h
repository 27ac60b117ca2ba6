/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record that two queue pairs are wired up by over TCP: what each device
 * must know of the other one, and the private data. See docs/protocol.md.
 */
#ifndef VB_WIRE_WIREUP_H
#define VB_WIRE_WIREUP_H

#include <stddef.h>
#include <stdint.h>

#define VB__WIREUP_BYTES 96u
#define VB__WIREUP_VERSION 1u
#define VB__WIREUP_DATA 48u

/* The TCP port is so far above that of the listener. */
#define VB__WIREUP_PORT_OFFSET 1000u

enum vb__wireup_kind {
	VB__WIREUP_REQUEST = 1, /* the connecting side: this is my queue pair */
	VB__WIREUP_REPLY = 2,	/* the listening side: this is mine, and it is ready */
	VB__WIREUP_REJECT = 3,	/* no; the reason tells why */
	VB__WIREUP_READY = 4,	/* the connecting side: mine is ready as well */
};

enum vb__wireup_reason {
	VB__WIREUP_NO_REASON = 0, /* the private data may tell */
	VB__WIREUP_NOT_VERSION,	  /* the version is not spoken here; `version` is the one that is */
	VB__WIREUP_NOT_DEVICE, /* the address you reached belongs to no RDMA device that can do it */
	VB__WIREUP_NOT_TYPE,   /* the type of queue pair is not served here */
	VB__WIREUP_NOT_LINK,   /* your link layer is not that of this device */
	VB__WIREUP_NOT_READY,  /* the queue pair could not be made, or not brought up */
	VB__WIREUP_NOT_YOURS,  /* your GID is not the address that you call from */
};

enum vb__wireup_link {
	VB__WIREUP_INFINIBAND = 1, /* reached by the LID, and by the GID beyond the subnet */
	VB__WIREUP_ETHERNET = 2,   /* RoCE v2: reached by the GID */
};

struct vb__wireup {
	enum vb__wireup_kind kind;
	uint8_t version;
	uint8_t reason; /* enum vb__wireup_reason, of REJECT */

	/* Of REQUEST and REPLY. */
	uint8_t qp_type; /* enum vb__qp_type */
	uint8_t link;	 /* enum vb__wireup_link */
	uint16_t mtu;	 /* the largest that the port takes: 256, 512, ... 4096 */
	uint32_t qpn, psn;
	uint16_t lid;
	uint8_t gid[16];
	uint8_t responder_resources; /* reads and atomics of the other side's at once */
	uint8_t initiator_depth;     /* and of this side's */

	/* Of all but READY. */
	uint8_t data[VB__WIREUP_DATA];
	uint8_t data_len;
};

enum vb__wireup_verdict {
	VB__WIREUP_GOOD = 0,
	VB__WIREUP_GARBAGE,	  /* not ours, or nonsense inside */
	VB__WIREUP_OTHER_VERSION, /* ours; only kind, version and reason can be relied on */
};

void vb__wireup_encode(uint8_t to[VB__WIREUP_BYTES], const struct vb__wireup *record);
enum vb__wireup_verdict vb__wireup_decode(struct vb__wireup *record,
					  const uint8_t from[VB__WIREUP_BYTES]);

#endif
