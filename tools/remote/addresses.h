/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: under which this host may be reached, and in which order another is tried. */
#ifndef TOOLS_ADDRESSES_H
#define TOOLS_ADDRESSES_H

#include "remote/message.h"

/*
 * Fills in the addresses of this host: the one that ssh came to, those of RDMA devices, the others;
 * loopback only where ssh came by it, or where there was no ssh.
 */
void addresses_of_host(struct invitation *invitation);

/* Does the way from here to this address begin at an RDMA device? */
bool addresses_route_is_rdma(const char *address);

/* For addresses_sort where RDMA is not wanted: always false. */
bool addresses_nowhere(const char *address);

/* Is there any RDMA device here? */
bool addresses_any_rdma(void);

/* ---- The pure parts ---- */

/* The server's address in SSH_CONNECTION, "client port server port"; false if there is none. */
bool addresses_asked(const char *ssh_connection, char text[INET6_ADDRSTRLEN]);

/* Adds one, unless it is there already or there is no room. */
void addresses_add(struct invitation *invitation, const struct address *address);

/*
 * Leaves only those of `family` (0: both), and puts those first where both ends of the way are RDMA
 * devices, as `here` says of each; else the order stays.
 */
void addresses_sort(struct invitation *invitation, int family, bool (*here)(const char *address));

#endif
