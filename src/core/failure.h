/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Filling in struct vb_error. The first failure wins: an error that already
 * holds a code is not overwritten, so clean-up code may fail without harm.
 */
#ifndef VB_CORE_FAILURE_H
#define VB_CORE_FAILURE_H

#include <stdarg.h>

#include <verbatim/error.h>

/* What failed. Strings may be NULL. */
struct vb__failure {
	enum vb_err code;
	enum vb_native native_kind;
	int native;
	const char *operation;
	const char *object;
	const char *cause; /* NULL: the text of the native value, else of the code */
	const char *hint;
};

/* Records the failure in `err` (NULL is fine) unless it holds one; returns its code. */
int vb__fail(struct vb_error *err, const struct vb__failure *failure);

/* The common case: a system call failed with `errnum`; the code is derived from it. */
int vb__fail_errno(struct vb_error *err, int errnum, const char *operation, const char *object);

/* The same for what the user reads from or writes to: always VB_ERR_IO. */
int vb__fail_io(struct vb_error *err, int errnum, const char *operation, const char *object);

/* An argument makes no sense; the cause is formatted. */
int vb__fail_invalid(struct vb_error *err, const char *operation, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Somebody wants it to stop. */
int vb__fail_interrupted(struct vb_error *err);

/* Copies a stored failure out; returns its code. */
int vb__fail_again(struct vb_error *err, const struct vb_error *stored);

/* The code that fits an errno. */
enum vb_err vb__err_from_errno(int errnum);

/* What helps against an errno whoever met it, or NULL. */
const char *vb__errno_hint(int errnum);

/* Replaces the hint, formatted. */
void vb__error_hint(struct vb_error *err, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Makes it an empty one. Every call begins so: it must not cost the writing of all of its bytes. */
static inline void vb__error_clear(struct vb_error *err)
{
	if (!err)
		return;
	err->code = VB_OK;
	err->native_kind = VB_NATIVE_NONE;
	err->native = 0;
	err->operation[0] = err->object[0] = err->cause[0] = err->hint[0] = '\0';
}

#endif
