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
void verbs_tcp_refuse(const struct vb__log *log, int fd, uint8_t reason, const void *data,
		      size_t len);

/* An option that the socket is better off with; without, the log tells. */
void verbs_tcp_option(const struct vb__log *log, int fd, int level, int name, int value);

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

#define VERBS_TCP_DEVICES_MAX 32u

/* verbs_tcp_devices.c: what a listener keeps open. All zero there is none, and closing does nothing. */
struct verbs_tcp_devices {
	struct ibv_context *contexts[VERBS_TCP_DEVICES_MAX];
	struct verbs_watcher watchers[VERBS_TCP_DEVICES_MAX];
	unsigned count;
};

/* All that can be wired up by TCP; VB_ERR_NO_DEVICE: none can. Their events become VERBS_PEP_DEVICE. */
int verbs_tcp_devices_open(struct verbs_tcp_devices *devices, struct verbs_pep *pep,
			   struct vb_error *err);
void verbs_tcp_devices_look_after(struct verbs_tcp_devices *devices, struct verbs_pep *pep);
void verbs_tcp_devices_close(struct verbs_tcp_devices *devices, struct verbs_pep *pep);

/* For VERBS_PEP_DEVICE: the events of the listener's devices, if it has any. */
void verbs_tcp_look_after_devices(struct verbs_pep *pep);

/* verbs_tcp_listener.c, for verbs_tcp */
int verbs_tcp_listen(struct verbs_pep *pep, const struct vb__settings *settings,
		     const struct vb__address *at, struct vb_error *err);
int verbs_tcp_next_request(struct verbs_pep *pep, struct vb__request **request,
			   struct vb_error *err);
void verbs_tcp_unlisten(struct verbs_pep *pep);
void verbs_tcp_reject(struct verbs_request *request, const void *data, size_t len);

#endif
