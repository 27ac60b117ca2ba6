/* SPDX-License-Identifier: Apache-2.0 */
/* What connecting and listening share in the wire-up by TCP. */
#ifndef VB_FABRIC_VERBS_TCP_H
#define VB_FABRIC_VERBS_TCP_H

#include "fabric/verbs/verbs_wireup.h"

struct verbs_tcp_request {
	struct verbs_request base;
	int fd;
	struct verbs_port port; /* ours, that it came to */
	struct vb__wireup asked;
	uint8_t reason; /* enum vb__wireup_reason, if it is refused */
};

/* Takes what has come: 1 the record is whole, 0 it is not yet, or a negative errno; the end of the stream is -ECONNRESET. */
int verbs_tcp_hear(int fd, struct verbs_record *record);

/* 0 or an errno. There is always room for the few records of a wire-up. */
int verbs_tcp_say(int fd, const struct vb__wireup *record);

/* A REJECT with this reason and data, for what it is worth. */
void verbs_tcp_refuse(int fd, uint8_t reason, const void *data, size_t len);

/* The port of the socket that belongs to a listener's port; 0: there is none. */
uint16_t verbs_tcp_port(uint16_t port);

/* verbs_tcp_listener.c, for verbs_tcp */
int verbs_tcp_listen(struct verbs_pep *pep, const struct vb__settings *settings,
		     const struct vb__address *at, struct vb_error *err);
int verbs_tcp_next_request(struct verbs_pep *pep, struct vb__request **request,
			   struct vb_error *err);
void verbs_tcp_unlisten(struct verbs_pep *pep);
void verbs_tcp_reject(struct verbs_request *request, const void *data, size_t len);

#endif
