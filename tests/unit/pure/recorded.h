/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Systems as they were recorded, written down as text, one thing in a line; indentation means nothing:
 *
 *	if    INDEX NAME [vlan N on INDEX | macvlan on INDEX | bond | bridge | lo] [master INDEX]
 *	      [mac aa:bb:cc:dd:ee:ff] [ipoib GID pkey 8001]
 *	addr  INDEX ADDRESS
 *	dev   NAME [denied]                 what follows belongs to it
 *	port  NUMBER active|down|init roce|ib|iwarp [INDEX of its interface] [lid N] [mtu N]
 *	gid   INDEX v1|v2|ib|iw ADDRESS [INDEX of its interface [foreign]]
 *	route [INDEX SOURCE [via ADDRESS] [local] | error ERRNO]
 */
#ifndef VB_TEST_RECORDED_H
#define VB_TEST_RECORDED_H

#include "fabric/path.h"

struct recorded {
	struct vb_device *devices;
	struct vb__interface *interfaces;
	struct vb__own_address *addresses;
	struct vb__route route;
};

/* Ends the test if a line makes no sense. */
void recorded_read(struct recorded *to, const char *text);
void recorded_free(struct recorded *recorded);

struct vb__ip recorded_ip(const char *text);

#endif
