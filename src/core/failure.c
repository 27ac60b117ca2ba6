/* SPDX-License-Identifier: Apache-2.0 */
/* struct vb_error: filling it in and printing it. What hints say is decided by who fails. */
#include "core/failure.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

static const struct {
	enum vb_err code;
	const char *name;
	const char *text;
} codes[] = {
	{ VB_OK, "VB_OK", "success" },
	{ VB_ERR_INVALID, "VB_ERR_INVALID", "invalid argument" },
	{ VB_ERR_NOMEM, "VB_ERR_NOMEM", "out of memory" },
	{ VB_ERR_MEMLOCK, "VB_ERR_MEMLOCK", "memory cannot be pinned" },
	{ VB_ERR_NO_DEVICE, "VB_ERR_NO_DEVICE", "no RDMA device" },
	{ VB_ERR_ACCESS, "VB_ERR_ACCESS", "permission denied" },
	{ VB_ERR_RESOLVE, "VB_ERR_RESOLVE", "name not resolved" },
	{ VB_ERR_REFUSED, "VB_ERR_REFUSED", "connection refused" },
	{ VB_ERR_UNREACHABLE, "VB_ERR_UNREACHABLE", "peer unreachable" },
	{ VB_ERR_TIMEOUT, "VB_ERR_TIMEOUT", "timed out" },
	{ VB_ERR_IN_USE, "VB_ERR_IN_USE", "address in use" },
	{ VB_ERR_PROTOCOL, "VB_ERR_PROTOCOL", "protocol violated by the peer" },
	{ VB_ERR_VERSION, "VB_ERR_VERSION", "protocol version not supported" },
	{ VB_ERR_TOO_BIG, "VB_ERR_TOO_BIG", "message too big" },
	{ VB_ERR_EOF, "VB_ERR_EOF", "end of stream" },
	{ VB_ERR_CLOSED, "VB_ERR_CLOSED", "channel closed by the peer" },
	{ VB_ERR_LOST, "VB_ERR_LOST", "connection lost" },
	{ VB_ERR_AGAIN, "VB_ERR_AGAIN", "not yet" },
	{ VB_ERR_UNSUPPORTED, "VB_ERR_UNSUPPORTED", "not supported" },
	{ VB_ERR_REMOTE_ACCESS, "VB_ERR_REMOTE_ACCESS", "remote access error" },
	{ VB_ERR_FLUSHED, "VB_ERR_FLUSHED", "given up, the connection went down" },
	{ VB_ERR_SYSTEM, "VB_ERR_SYSTEM", "system error" },
	{ VB_ERR_IO, "VB_ERR_IO", "input or output failed" },
	{ VB_ERR_KEY, "VB_ERR_KEY", "the keys differ" },
	{ VB_ERR_CORRUPT, "VB_ERR_CORRUPT", "data was corrupted on its way" },
	{ VB_ERR_INTERRUPTED, "VB_ERR_INTERRUPTED", "interrupted" },
};

static const char *const native_names[] = {
	[VB_NATIVE_NONE] = "",		 [VB_NATIVE_ERRNO] = "errno",
	[VB_NATIVE_GAI] = "getaddrinfo", [VB_NATIVE_WC] = "wc status",
	[VB_NATIVE_CM] = "cm event",	 [VB_NATIVE_ASYNC] = "async event",
	[VB_NATIVE_FI] = "fi_errno",	 [VB_NATIVE_TLS] = "openssl",
};

const char *vb_err_name(enum vb_err code)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == code)
			return codes[i].name;
	return "VB_ERR_?";
}

const char *vb_err_text(enum vb_err code)
{
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].code == code)
			return codes[i].text;
	return "unknown error";
}

enum vb_err vb__err_from_errno(int errnum)
{
	switch (errnum) {
	case EINVAL:
		return VB_ERR_INVALID;
	case ENOMEM:
		return VB_ERR_NOMEM;
	case ENODEV:
	case ENXIO:
		return VB_ERR_NO_DEVICE;
	case EACCES:
	case EPERM:
		return VB_ERR_ACCESS;
	case ECONNREFUSED:
		return VB_ERR_REFUSED;
	case EHOSTUNREACH:
	case ENETUNREACH:
	case EADDRNOTAVAIL:
		return VB_ERR_UNREACHABLE;
	case ETIMEDOUT:
		return VB_ERR_TIMEOUT;
	case EADDRINUSE:
		return VB_ERR_IN_USE;
	case ECONNRESET:
	case ECONNABORTED:
	case EPIPE:
	case ENOTCONN:
		return VB_ERR_LOST;
	case EOPNOTSUPP:
	case ENOSYS:
		return VB_ERR_UNSUPPORTED;
	default:
		return VB_ERR_SYSTEM;
	}
}

static void copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%s", from ? from : "");
}

static const char *default_cause(const struct vb__failure *f)
{
	if (f->native_kind == VB_NATIVE_ERRNO && f->native)
		return strerror(f->native);
	if (f->native_kind == VB_NATIVE_GAI)
		return gai_strerror(f->native);
	return vb_err_text(f->code);
}

int vb__fail(struct vb_error *err, const struct vb__failure *f)
{
	if (!err)
		return f->code;
	if (err->code != VB_OK)
		return err->code;
	err->code = f->code;
	err->native_kind = f->native_kind;
	err->native = f->native;
	copy(err->operation, sizeof(err->operation), f->operation);
	copy(err->object, sizeof(err->object), f->object);
	copy(err->cause, sizeof(err->cause), f->cause ? f->cause : default_cause(f));
	copy(err->hint, sizeof(err->hint), f->hint);
	return f->code;
}

int vb__fail_interrupted(struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){ .code = VB_ERR_INTERRUPTED });
}

const char *vb__errno_hint(int errnum)
{
	switch (errnum) {
	case EMFILE:
		return "too many open files: raise `ulimit -n`";
	case ENFILE:
		return "the machine has too many open files: raise `sysctl fs.file-max`";
	case ENOMEM:
		return "there is no memory left: end something, or ask for less";
	default:
		return NULL;
	}
}

int vb__fail_errno(struct vb_error *err, int errnum, const char *operation, const char *object)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = vb__err_from_errno(errnum),
				     .native_kind = VB_NATIVE_ERRNO,
				     .native = errnum,
				     .operation = operation,
				     .object = object,
				     .hint = vb__errno_hint(errnum),
			     });
}

int vb__fail_io(struct vb_error *err, int errnum, const char *operation, const char *object)
{
	return vb__fail(err, &(struct vb__failure){ .code = VB_ERR_IO,
						    .native_kind = VB_NATIVE_ERRNO,
						    .native = errnum,
						    .operation = operation,
						    .object = object });
}

int vb__fail_invalid(struct vb_error *err, const char *operation, const char *format, ...)
{
	char cause[sizeof(err->cause)];
	va_list args;

	va_start(args, format);
	vsnprintf(cause, sizeof(cause), format, args);
	va_end(args);
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_INVALID,
				     .operation = operation,
				     .cause = cause,
			     });
}

int vb__fail_again(struct vb_error *err, const struct vb_error *stored)
{
	if (err && err->code == VB_OK)
		*err = *stored;
	return stored->code;
}

void vb__error_hint(struct vb_error *err, const char *format, ...)
{
	va_list args;

	if (!err)
		return;
	va_start(args, format);
	vsnprintf(err->hint, sizeof(err->hint), format, args);
	va_end(args);
}

char *vb_error_format(const struct vb_error *err, char *buf, size_t size)
{
	char native[48] = "";

	if (err->native_kind != VB_NATIVE_NONE)
		snprintf(native, sizeof(native), " (%s %d)", native_names[err->native_kind],
			 err->native);
	snprintf(buf, size, "%s%s%s%s%s%s%s%s", err->operation, err->object[0] ? " " : "",
		 err->object, err->operation[0] || err->object[0] ? ": " : "", err->cause, native,
		 err->hint[0] ? "; " : "", err->hint);
	return buf;
}
