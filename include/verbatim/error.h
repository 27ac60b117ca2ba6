/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of libverbatim.
 *
 * Every call that can fail returns 0 or a count on success and a negative
 * enum vb_err on failure, and takes a `struct vb_error *` as its last argument
 * for the details, which may be NULL. The call clears it first and fills it in
 * on failure (VB_ERR_AGAIN is no failure). It owns no memory: copy it, keep
 * it, forget it.
 */
#ifndef VERBATIM_ERROR_H
#define VERBATIM_ERROR_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum vb_err {
	VB_OK = 0,
	VB_ERR_INVALID = -1,	    /* an argument makes no sense */
	VB_ERR_NOMEM = -2,	    /* out of memory */
	VB_ERR_MEMLOCK = -3,	    /* memory may not be pinned: the memlock limit is too low */
	VB_ERR_NO_DEVICE = -4,	    /* no RDMA device for this peer or of this name */
	VB_ERR_ACCESS = -5,	    /* a device node or an address is denied to us */
	VB_ERR_RESOLVE = -6,	    /* a name has no address */
	VB_ERR_REFUSED = -7,	    /* nobody listens there, or the peer said no */
	VB_ERR_UNREACHABLE = -8,    /* no route, or the address does not answer */
	VB_ERR_TIMEOUT = -9,	    /* the time allowed for the call is over */
	VB_ERR_IN_USE = -10,	    /* the address is taken */
	VB_ERR_PROTOCOL = -11,	    /* the peer breaks the protocol */
	VB_ERR_VERSION = -12,	    /* the peer speaks another version of the protocol */
	VB_ERR_TOO_BIG = -13,	    /* the message is over the agreed limit; nothing was sent */
	VB_ERR_EOF = -14,	    /* the peer has said that nothing more will come */
	VB_ERR_CLOSED = -15,	    /* the peer has closed the channel, or did before it took all */
	VB_ERR_LOST = -16,	    /* the connection broke: the peer died or cannot be reached */
	VB_ERR_AGAIN = -17,	    /* a non-blocking call would have to wait */
	VB_ERR_UNSUPPORTED = -18,   /* this fabric or device cannot do it */
	VB_ERR_REMOTE_ACCESS = -19, /* the peer's memory may not be accessed like this */
	VB_ERR_FLUSHED = -20,	    /* given up because the connection went down */
	VB_ERR_SYSTEM = -21,	    /* a system or library call failed; see native */
	VB_ERR_IO = -22,  /* a file, pipe or command failed: input or output, not the connection */
	VB_ERR_KEY = -23, /* the peer does not know our key, or we do not know its */
	VB_ERR_CORRUPT = -24,	  /* data arrived other than it was sent */
	VB_ERR_INTERRUPTED = -25, /* somebody wanted it to stop */
};

/* What the number in vb_error.native is. */
enum vb_native {
	VB_NATIVE_NONE = 0,
	VB_NATIVE_ERRNO, /* errno */
	VB_NATIVE_GAI,	 /* a result of getaddrinfo */
	VB_NATIVE_WC,	 /* enum ibv_wc_status */
	VB_NATIVE_CM,	 /* enum rdma_cm_event_type */
	VB_NATIVE_ASYNC, /* enum ibv_event_type */
	VB_NATIVE_FI,	 /* an error number of libfabric */
	VB_NATIVE_TLS,	 /* an error number of OpenSSL */
};

/*
 * One failure, told by its first and deepest cause.
 * The strings are always terminated; each may be empty.
 */
struct vb_error {
	enum vb_err code;
	enum vb_native native_kind;
	int native;
	char operation[40]; /* what was being done: "ibv_reg_mr", "connect" */
	char object[104];   /* to what: "10.0.0.2 port 7471", "device mlx5_0" */
	char cause[320];    /* why, in words */
	char hint[440];	    /* what to try; empty if there is nothing to say */
};

/* The name of a code as it stands in this header: "VB_ERR_LOST". Never NULL. */
const char *vb_err_name(enum vb_err code);

/* What a code means, in a few words: "connection lost". Never NULL. */
const char *vb_err_text(enum vb_err code);

/*
 * The whole error on one line: "operation object: cause (native); hint".
 * Writes at most `size` bytes including the terminator, returns `buf`.
 */
char *vb_error_format(const struct vb_error *err, char *buf, size_t size);

/* Large enough for any formatted error. */
#define VB_ERROR_LINE_MAX 1024

#ifdef __cplusplus
}
#endif
#endif
