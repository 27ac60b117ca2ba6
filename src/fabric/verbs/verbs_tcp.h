/* SPDX-License-Identifier: Apache-2.0 */
/* What connecting and listening share in the wire-up by TCP. */
#ifndef VB_FABRIC_VERBS_TCP_H
#define VB_FABRIC_VERBS_TCP_H

#include "fabric/verbs/verbs_wireup.h"

struct verbs_tcp_request {
	struct verbs_request base;
	int fd;
	struct vb__address peer;
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

/*
 * Whether a queue pair may be where the record says. On Ethernet its GID must be the address that the socket leads to:
 * else a peer could point us at a third host, or at addresses where nobody is, for which the kernel makes us wait.
 */
bool verbs_tcp_is_at(const struct vb__wireup *record, const struct vb__address *peer);

/* The port of the socket that belongs to a listener's port; 0: there is none. */
uint16_t verbs_tcp_port(uint16_t port);

/* verbs_tcp_answer.c: 0 and the private data if it is a queue pair that can be connected to. */
int verbs_tcp_judge(struct verbs_ep *ep, const struct vb__wireup *answer,
		    enum vb__wireup_verdict verdict, struct vb_error *err);

/* verbs_tcp_listener.c, for verbs_tcp */
int verbs_tcp_listen(struct verbs_pep *pep, const struct vb__settings *settings,
		     const struct vb__address *at, struct vb_error *err);
int verbs_tcp_next_request(struct verbs_pep *pep, struct vb__request **request,
			   struct vb_error *err);
void verbs_tcp_unlisten(struct verbs_pep *pep);
void verbs_tcp_reject(struct verbs_request *request, const void *data, size_t len);

#endif
