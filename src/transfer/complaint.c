/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenSSL complains about, and what that means for us. Whom to tell is not its job. */
#include "transfer/complaint.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

/* The first of TLS itself, unless memory was short; else the first. */
static unsigned long take_complaint(void)
{
	unsigned long next, first = ERR_get_error();

	while ((next = ERR_get_error()))
		if (ERR_GET_LIB(first) != ERR_LIB_SSL && ERR_GET_LIB(next) == ERR_LIB_SSL &&
		    ERR_GET_REASON(first) != ERR_R_MALLOC_FAILURE)
			first = next;
	return first;
}

int vb__complaint_fail(struct vb_error *err, const char *operation)
{
	unsigned long complaint = take_complaint();
	bool memory = ERR_GET_REASON(complaint) == ERR_R_MALLOC_FAILURE;

	return vb__fail(err, &(struct vb__failure){
				     .code = memory ? VB_ERR_NOMEM : VB_ERR_SYSTEM,
				     .native_kind = VB_NATIVE_TLS,
				     .native = (int)complaint,
				     .operation = operation,
				     .cause = ERR_reason_error_string(complaint),
			     });
}

/* Reasons above the offset are alerts: what the peer complains about. */
static enum vb_err code_while_proving(int reason)
{
	switch (reason) {
	case SSL_R_BINDER_DOES_NOT_VERIFY:
	case SSL_R_DIGEST_CHECK_FAILED:
	case SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC:
	case SSL_R_CERTIFICATE_VERIFY_FAILED: /* it has a certificate instead of a key */
	case SSL_AD_REASON_OFFSET + SSL_AD_BAD_RECORD_MAC:
	case SSL_AD_REASON_OFFSET + SSL_AD_ILLEGAL_PARAMETER: /* OpenSSL says this of a binder */
	case SSL_AD_REASON_OFFSET + SSL_AD_DECRYPT_ERROR:
	case SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_PSK_IDENTITY:
		return VB_ERR_KEY;
	case SSL_R_NO_APPLICATION_PROTOCOL:
	case SSL_AD_REASON_OFFSET + SSL_AD_NO_APPLICATION_PROTOCOL:
		return VB_ERR_VERSION;
	default:
		return VB_ERR_PROTOCOL;
	}
}

/* Once proven, nobody but the peer can say what TLS accepts, and the peer says nothing else. */
static enum vb_err code_of(int reason, bool proven)
{
	if (reason == ERR_R_MALLOC_FAILURE)
		return VB_ERR_NOMEM;
	return proven ? VB_ERR_CORRUPT : code_while_proving(reason);
}

const char *vb__complaint_judge(struct vb__failure *failure, bool proven)
{
	unsigned long complaint = take_complaint();
	const char *reason = ERR_reason_error_string(complaint);

	failure->code = code_of(ERR_GET_REASON(complaint), proven);
	failure->native_kind = VB_NATIVE_TLS;
	failure->native = (int)complaint;
	vb__complaint_explain(failure);
	return reason ? reason : "OpenSSL does not say how";
}

void vb__complaint_explain(struct vb__failure *failure)
{
	if (failure->code == VB_ERR_KEY) {
		failure->cause = "the peer does not have the same key";
		failure->hint = "give both sides the same key";
	} else if (failure->code == VB_ERR_VERSION) {
		failure->cause = "the peer speaks another version of the protocol";
		failure->hint = "use the same release of Verbatim at both ends";
	}
}
