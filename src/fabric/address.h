/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: from names to sockaddr and to words. */
#ifndef VB_FABRIC_ADDRESS_H
#define VB_FABRIC_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include <verbatim/error.h>

#define VB__ADDRESS_TEXT 80
#define VB__ADDRESSES_MAX 8

struct vb__address {
	struct sockaddr_storage sa;
	socklen_t len;
	char text[VB__ADDRESS_TEXT]; /* "10.0.0.2 port 7471" */
};

/*
 * Looks a host and port up; `host` NULL means all addresses of this machine (for listening), and an
 * IPv6 address may be in brackets; a link-local one needs its interface. Returns how many were found, at
 * least one, or an error.
 */
int vb__address_resolve(const char *host, const char *port, int family,
			struct vb__address found[VB__ADDRESSES_MAX], struct vb_error *err);

/* Makes an address of a sockaddr. */
void vb__address_from(struct vb__address *address, const struct sockaddr *sa);

uint16_t vb__address_port(const struct vb__address *address);
void vb__address_set_port(struct vb__address *address, uint16_t port);

/* Whatever the ports; IPv4 and its form inside IPv6 are the same. */
bool vb__address_same_host(const struct sockaddr *a, const struct sockaddr *b);
bool vb__address_equal(const struct sockaddr *a, const struct sockaddr *b);

/* As a GID of RoCE shows it: IPv6, or IPv4 inside it. */
void vb__address_gid(const struct sockaddr *sa, uint8_t gid[16]);

/* The address of ours from which the kernel would send to the peer, port 0; or why it cannot tell. */
int vb__address_source(const struct vb__address *peer, struct vb__address *source,
		       struct vb_error *err);

/* The interface by which the kernel would send to the peer; false if it cannot tell. */
bool vb__address_egress(const struct vb__address *peer, char name[16]);

#endif
