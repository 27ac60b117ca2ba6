/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How connections are made, and how they behave. A plain struct: zero (or
 * NULL) means the default, the library copies what it keeps.
 */
#ifndef VERBATIM_OPTIONS_H
#define VERBATIM_OPTIONS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which fabric carries the data. */
enum vb_fabric {
	VB_FABRIC_AUTO = 0, /* verbs where the route to the peer has an RDMA device, else ofi */
	VB_FABRIC_VERBS,    /* libibverbs and librdmacm: RoCE, InfiniBand, iWARP */
	VB_FABRIC_OFI,	    /* libfabric: its tcp provider runs anywhere */
};

enum vb_log_level {
	VB_LOG_ERROR = 0,
	VB_LOG_WARNING,
	VB_LOG_INFO, /* what was chosen and why */
	VB_LOG_DEBUG,
};

/* Called with one line, without a newline; may come from any thread that is inside the library. */
typedef void (*vb_log_fn)(void *arg, enum vb_log_level level, const char *line);

/* For spin_us: never spin, always sleep in the kernel. */
#define VB_SPIN_NEVER UINT32_MAX

struct vb_options {
	enum vb_fabric fabric;	    /* VB_FABRIC in the environment, else auto */
	const char *device;	    /* only this RDMA device; VB_DEVICE in the environment */
	int family;		    /* AF_INET or AF_INET6 only; 0 for both */
	uint32_t max_message_bytes; /* the largest message; 256 KiB; the smaller of both ends counts */
	uint32_t depth; /* messages buffered each way; 2; the smaller of both ends counts */
	uint32_t connect_timeout_ms; /* how long connect goes on trying; 10 s */
	uint32_t peer_timeout_ms;    /* a peer silent for so long is lost; 10 s */
	uint32_t spin_us; /* busy-wait so long before sleeping; 20 µs with several CPUs */
	vb_log_fn log;	  /* NULL: no log */
	void *log_arg;
	enum vb_log_level log_level;
};

/* Limits of the above. */
#define VB_MESSAGE_MAX (1u << 30)
#define VB_DEPTH_MAX 1024u

#ifdef __cplusplus
}
#endif
#endif
