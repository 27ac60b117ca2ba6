/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measuring what a path between two hosts can do: how much, how many, how soon.
 * What is measured are the operations of the device themselves, below channels
 * and streams; tools/rdperf.c is made of this.
 *
 * One side serves,
 *
 *	vb_perf_server_open(NULL, "7472", NULL, &server, &err);
 *	while (vb_perf_server_next(server, &err) == 0)
 *		;
 *
 * and the other asks for one cell after another of what can be measured:
 *
 *	struct vb_perf_cell cell = { .op = VB_PERF_WRITE, .bytes = 65536 };
 *
 *	vb_perf_connect("host", "7472", NULL, &perf, &err);
 *	vb_perf_run(perf, &cell, &result, &err);
 *	vb_perf_close(perf);
 *
 * All calls are for one thread at a time and block. There is no key: whoever
 * reaches the port can have the serving side measure with it, which costs CPU,
 * the link, and up to VB_PERF_MEMORY_MAX of memory. Nothing else can be had.
 */
#ifndef VERBATIM_PERF_H
#define VERBATIM_PERF_H

#include <stdbool.h>
#include <stdint.h>

#include <verbatim/error.h>
#include <verbatim/options.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vb_perf_op {
	VB_PERF_SEND = 0,
	VB_PERF_WRITE,
	VB_PERF_WRITE_IMM, /* write with immediate data, which the other side receives */
	VB_PERF_READ,
	VB_PERF_FETCH_ADD,
	VB_PERF_CAS,
};

/* The type of the queue pair. Which one can do what is in vb_perf_check. */
enum vb_perf_qp {
	VB_PERF_RC = 0, /* reliable connection */
	VB_PERF_UC,	/* unreliable connection */
	VB_PERF_UD,	/* unreliable datagrams */
};

enum vb_perf_kind {
	VB_PERF_BANDWIDTH = 0, /* `depth` under way at once */
	VB_PERF_LATENCY, /* one at a time: half a round trip, or until a read or an atomic is done */
};

enum vb_perf_wait {
	VB_PERF_POLL = 0, /* both sides spin */
	VB_PERF_EVENT,	  /* both sides sleep until something completes */
};

/* One thing to measure. Zero means the default. */
struct vb_perf_cell {
	enum vb_perf_op op;
	enum vb_perf_qp qp;
	enum vb_perf_kind kind;
	enum vb_perf_wait wait;
	uint32_t bytes; /* of a message; the atomics' is 8, which is their default. Else 65536 */
	uint32_t depth; /* under way at once on each rail. 16 */
	uint32_t rails; /* connections that share the work. 1 */
	uint32_t duration_ms; /* 500 */
	uint32_t count;	      /* so many on each rail, as long as they move; 0: by the duration */
	bool both_ways;	      /* both sides at once; for bandwidth */
	bool check; /* the data are compared, which costs time; not of VB_PERF_WRITE_IMM over UC */
};

#define VB_PERF_BYTES_MAX (1u << 30)
#define VB_PERF_DEPTH_MAX 4096u
#define VB_PERF_RAILS_MAX 16u
#define VB_PERF_DURATION_MAX_MS 3600000u
#define VB_PERF_MEMORY_MAX (UINT64_C(2) << 30) /* on each side */

struct vb_perf_result {
	uint64_t messages; /* in all, both ways together; of those that may be lost, what arrived */
	uint64_t elapsed_ns;
	double bytes_per_second, messages_per_second;
	uint64_t lost;	  /* sent and not arrived: only UC and UD lose any */
	uint64_t corrupt; /* other than it was sent; 0 if it was not checked */

	/* Of VB_PERF_LATENCY, else 0. Percentiles are right to 1 %, the others exactly. */
	uint64_t min_ns, median_ns, p99_ns, p999_ns, max_ns, mean_ns;

	/* CPU time of both processes by the time that has passed: 1 is one CPU. What the kernel does elsewhere for
	 * a device in software is not in it. */
	double cpu_here, cpu_there;
};

/* How it goes on, some times a second. `messages` is this side's. */
struct vb_perf_progress {
	uint64_t elapsed_ns, messages, bytes;
};
typedef void (*vb_perf_progress_fn)(void *arg, const struct vb_perf_progress *progress);

struct vb_perf_options {
	struct vb_options connection; /* its depth and message size do not count here */
	int stop_fd;		      /* when it is readable: VB_ERR_INTERRUPTED. 0: none */
	vb_perf_progress_fn progress; /* or NULL */
	void *progress_arg;
};

/* "send", "write_imm", "rc" and so on. */
const char *vb_perf_op_name(enum vb_perf_op op);
const char *vb_perf_qp_name(enum vb_perf_qp qp);

/*
 * Whether there is such a thing at all, on some device: VB_ERR_UNSUPPORTED or
 * VB_ERR_INVALID, with the reason, if not. vb_perf_run asks this, too.
 */
int vb_perf_check(const struct vb_perf_cell *cell, struct vb_error *err);

/* ---- The side that asks ---- */

struct vb_perf;

/*
 * Connects to a server, as vb_channel_connect does. VB_ERR_PROTOCOL if what
 * listens there does not measure; VB_ERR_REFUSED while it serves somebody else.
 */
int vb_perf_connect(const char *host, const char *port, const struct vb_perf_options *options,
		    struct vb_perf **perf, struct vb_error *err);

/*
 * Measures one cell, over connections of its own. VB_ERR_UNSUPPORTED or
 * VB_ERR_TOO_BIG, with what cannot do it: the type, or the device of either
 * side; then others can be asked for. So they can after VB_ERR_CORRUPT, when the
 * result is there, too. After any other failure there is only vb_perf_close.
 * VB_ERR_TIMEOUT: it is not over by the duration and the peer time-out, or with a
 * count nothing has moved for that long.
 */
int vb_perf_run(struct vb_perf *perf, const struct vb_perf_cell *cell,
		struct vb_perf_result *result, struct vb_error *err);

/* What was chosen and why, as vb_channel_description; its parts. */
const char *vb_perf_description(const struct vb_perf *perf);
const char *vb_perf_fabric(const struct vb_perf *perf);
const char *vb_perf_device(const struct vb_perf *perf);

/* Says farewell and frees it. NULL is fine. */
void vb_perf_close(struct vb_perf *perf);

/* ---- The side that serves ---- */

struct vb_perf_server;

int vb_perf_server_open(const char *host, const char *port, const struct vb_perf_options *options,
			struct vb_perf_server **server, struct vb_error *err);

/* The port and what is served on it, as of a listener. */
int vb_perf_server_port(const struct vb_perf_server *server);
const char *vb_perf_server_description(const struct vb_perf_server *server);

/*
 * Waits for the next client and serves it until it is gone. Who comes meanwhile
 * is told that it is busy. How a client ended is told by the log; a failure is
 * one of the listener, or VB_ERR_INTERRUPTED.
 */
int vb_perf_server_next(struct vb_perf_server *server, struct vb_error *err);

/* NULL is fine. */
void vb_perf_server_close(struct vb_perf_server *server);

#ifdef __cplusplus
}
#endif
#endif
