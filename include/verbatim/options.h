/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How connections are made, and how they behave. A plain struct: zero (or
 * NULL) means the default, the library copies what it keeps.
 */
#ifndef VERBATIM_OPTIONS_H
#define VERBATIM_OPTIONS_H

#include <stdbool.h>
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

/* How the two ends of a connection over verbs are brought together. iWARP knows cm only. */
enum vb_wireup {
	VB_WIREUP_AUTO = 0, /* cm; tcp where /dev/infiniband/rdma_cm is missing or denied, or where
			     * cm finds no listener and tcp does. Listeners: both */
	VB_WIREUP_CM,	    /* by the kernel's connection manager, librdmacm */
	VB_WIREUP_TCP,	    /* over a TCP connection, which stays open, at 1000 above the port */
};

/*
 * The queue pairs of the verbs fabric, for those who know their network. The defaults are right for
 * nearly all.
 */
struct vb_qp_options {
	/* At most so many bytes in a packet: 256, 512, 1024, 2048 or 4096. Only with VB_WIREUP_TCP.
	 * The largest that both ports take. */
	uint32_t mtu_bytes;

	/* The device repeats what was not acknowledged within 4.096 µs * 2^ack_timeout, 31 at most.
	 * So that all tries together last as long as peer_timeout_ms. */
	uint8_t ack_timeout;

	/* How often, 7 at most: without end, with some devices. 6. */
	uint8_t retries;

	/* The same for a peer that has no receive posted, which happens only where a server's pool
	 * is empty. 7, without end. */
	uint8_t rnr_retries;

	/* And after how long: the code of enum ibv_qp_attr's min_rnr_timer, 31 at most. 12, 0.64 ms. */
	uint8_t min_rnr_timer;

	/* Reads and atomic operations under way at once, each way; fewer if the device cannot. 16. */
	uint8_t reads;

	/* InfiniBand's service level, 15 at most. Only with VB_WIREUP_TCP: rdma_cm asks the subnet
	 * manager for it. 0. */
	uint8_t service_level;
};

/* Failures are not logged but returned. */
enum vb_log_level {
	VB_LOG_WARNING = 0, /* something went wrong that no call returns */
	VB_LOG_INFO,	    /* what was chosen and why */
	VB_LOG_DEBUG,
};

/*
 * Called with one line, without a newline, by whichever thread is inside the
 * library; it must not call the library. `arg` must outlive the listeners and the
 * channels, also those accepted from a listener with these options.
 */
typedef void (*vb_log_fn)(void *arg, enum vb_log_level level, const char *line);

/* For spin_us: never spin, always sleep in the kernel. */
#define VB_SPIN_NEVER UINT32_MAX

struct vb_options {
	/* VB_FABRIC in the environment (auto, verbs, ofi) if not given here. */
	enum vb_fabric fabric;

	/* VB_WIREUP in the environment (auto, cm, tcp) if not given here. */
	enum vb_wireup wireup;
	struct vb_qp_options qp;

	/* Only this RDMA device or libfabric provider. VB_DEVICE in the environment. */
	const char *device;

	/* AF_INET or AF_INET6 only; both if not given. */
	int family;

	/* Connect from this address of ours; by the route to the peer if not given. Listeners have
	 * an argument for it. */
	const char *source;

	/* The largest message, and how many are buffered each way. The smallest of what both
	 * ends ask for and both devices can do counts. 256 KiB and 2. */
	uint32_t max_message_bytes;
	uint32_t depth;

	/* How long connect goes on trying. 10 s. */
	uint32_t connect_timeout_ms;

	/* It is known that somebody listens: one refusal is enough. */
	bool listener_is_up;

	/* A peer whose host is silent for so long is lost. 10 s, at least 200 ms. */
	uint32_t peer_timeout_ms;

	/* Busy-wait so long before sleeping. 20 µs, or VB_SPIN_NEVER with one CPU. */
	uint32_t spin_us;

	/* No log if not given. Warnings if no level is given. */
	vb_log_fn log;
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
