/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parleys: TLS 1.3 with an external pre-shared key, in memory, carried by the
 * messages of a channel. What the two sides talk about is not its job.
 *
 * Channel messages are just pieces of the TLS stream. Inside TLS each say is its
 * length, 16 bits, and its bytes: where a TLS record ends is up to OpenSSL, and
 * does not matter here.
 */
#include "transfer/parley.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "core/failure.h"
#include "transfer/complaint.h"
#include "wire/bytes.h"

/* One suite only: the key is bound to a hash, and the hash to the suite. */
#define SUITE "TLS_AES_256_GCM_SHA384"
#define GROUPS "X25519:P-256"
#define IDENTITY "verbatim"
#define VERSION "verbatim/1"
#define VERSIONS "\012" VERSION /* as ALPN lists them: each after its length */
#define EXPORTER "EXPORTER-verbatim-"

/* An honest opening has less than 1 KiB each way. */
#define UNPROVEN_MAX (16u << 10)
#define LENGTH_BYTES 2u

struct vb__parley {
	struct vb_channel *channel;
	struct vb__secret secret; /* until it is proven */
	SSL_CTX *context;
	SSL *ssl;
	BIO *in, *out; /* of the SSL, which owns them */

	bool proven;
	bool peer_ended;
	size_t unproven_bytes;
	struct vb_error failure; /* the first one: after it nothing goes on */

	size_t piece_bytes; /* of the stream, taken from `out` but not sent yet */
	uint8_t piece[VB__PARLEY_CHANNEL_BYTES];
	uint8_t said[LENGTH_BYTES + VB__PARLEY_MAX];
	size_t heard_bytes;
	uint8_t heard[LENGTH_BYTES + VB__PARLEY_MAX];
};

/* ---- Failures ---- */

static const char *operation_of(const struct vb__parley *p)
{
	return p->proven ? "talk with" : "prove the key to";
}

/* Without a cause: one that is told in the same words wherever it comes up. */
static int fail(struct vb__parley *p, enum vb_err code, const char *cause)
{
	struct vb__failure f = {
		.code = code,
		.operation = operation_of(p),
		.object = vb_channel_peer(p->channel),
		.cause = cause,
	};

	if (!cause)
		vb__complaint_explain(&f);
	return vb__fail(&p->failure, &f);
}

/* The last call into OpenSSL failed, most likely for what the peer sent. */
static int fail_tls(struct vb__parley *p)
{
	struct vb__failure f = {
		.operation = operation_of(p),
		.object = vb_channel_peer(p->channel),
	};
	const char *reason = vb__complaint_judge(&f, p->proven);
	char cause[160];

	snprintf(cause, sizeof(cause), "%s: %s",
		 p->proven ? "what was said was changed on its way"
			   : "what the peer said makes no sense",
		 reason);
	if (!f.cause && f.code != VB_ERR_NOMEM)
		f.cause = cause;
	if (f.code == VB_ERR_PROTOCOL)
		f.hint = "is it Verbatim that answers at this port?";
	return vb__fail(&p->failure, &f);
}

/* ---- The stream of TLS, in pieces ---- */

/* Sends what TLS has to say; what could not be sent waits for the next time. */
static int flush(struct vb__parley *p, struct vb_error *err)
{
	size_t limit = vb_channel_max_message(p->channel);
	int n, rc;

	if (limit > sizeof(p->piece))
		limit = sizeof(p->piece);
	for (;;) {
		if (!p->piece_bytes) {
			n = BIO_read(p->out, p->piece, (int)limit);
			if (n <= 0)
				return 0;
			p->piece_bytes = (size_t)n;
		}
		rc = vb_channel_try_send(p->channel, p->piece, p->piece_bytes, err);
		if (rc)
			return rc;
		p->piece_bytes = 0;
	}
}

/* Gives TLS the next message of the channel. */
static int take_message(struct vb__parley *p)
{
	const void *message;
	ssize_t n = vb_channel_try_recv(p->channel, &message, &p->failure);

	if (n == VB_ERR_EOF) {
		vb__error_clear(&p->failure);
		return fail(p, VB_ERR_LOST, "the peer went away in the middle of it");
	}
	if (n < 0)
		return (int)n;
	if (n == 0) /* a peer that sends only these would keep us busy for ever */
		return fail(p, VB_ERR_PROTOCOL, "the peer sent an empty message");
	if (!p->proven) {
		p->unproven_bytes += (size_t)n;
		if (p->unproven_bytes > UNPROVEN_MAX)
			return fail(p, VB_ERR_PROTOCOL, "the peer talks but proves nothing");
	}
	if (BIO_write(p->in, message, (int)n) != (int)n)
		return fail_tls(p);
	return 0;
}

/* Ends a call: a failure is told to the peer, as far as it has room, and to the caller. */
static int conclude(struct vb__parley *p, int rc, struct vb_error *err)
{
	ERR_clear_error();
	if (rc == 0)
		return 0;
	flush(p, NULL); /* also what TLS answers by itself */
	return rc == VB_ERR_AGAIN ? rc : vb__fail_again(err, &p->failure);
}

/* ---- Setting up ---- */

/* A new one each time: OpenSSL takes it over, changes it, and lets it expire. */
static SSL_SESSION *make_key_session(SSL *ssl)
{
	static const unsigned char suite[] = { 0x13, 0x02 };
	const struct vb__parley *p = SSL_get_app_data(ssl);
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, suite);
	SSL_SESSION *session = SSL_SESSION_new();

	if (session && cipher && SSL_SESSION_set_cipher(session, cipher) &&
	    SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) &&
	    SSL_SESSION_set1_master_key(session, p->secret.bytes, sizeof(p->secret.bytes)))
		return session;
	SSL_SESSION_free(session);
	return NULL;
}

/* Client: offers the key. One suite has one hash, so the server cannot want another. */
static int offer_key(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_bytes,
		     SSL_SESSION **session)
{
	(void)md;
	*id = (const unsigned char *)IDENTITY;
	*id_bytes = sizeof(IDENTITY) - 1;
	*session = make_key_session(ssl);
	return *session != NULL;
}

/* Server: without a session there is no key, and then nothing that both could agree on. */
static int find_key(SSL *ssl, const unsigned char *id, size_t id_bytes, SSL_SESSION **session)
{
	*session = NULL;
	if (id_bytes != sizeof(IDENTITY) - 1 || memcmp(id, IDENTITY, id_bytes) != 0)
		return 1;
	*session = make_key_session(ssl);
	return *session != NULL;
}

/* Server: versions are for those with the key, which has been checked by now. */
static int choose_version(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_bytes,
			  const unsigned char *offered, unsigned int offered_bytes, void *arg)
{
	(void)arg;
	if (!SSL_session_reused(ssl))
		return SSL_TLSEXT_ERR_NOACK;
	if (SSL_select_next_proto((unsigned char **)chosen, chosen_bytes,
				  (const unsigned char *)VERSIONS, sizeof(VERSIONS) - 1, offered,
				  offered_bytes) == OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_OK;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Client: a server that shows a certificate does not know the key. */
static int refuse_certificate(X509_STORE_CTX *store, void *arg)
{
	(void)arg;
	X509_STORE_CTX_set_error(store, X509_V_ERR_APPLICATION_VERIFICATION);
	return 0;
}

/* That keys are used only with (EC)DHE is OpenSSL's default: SSL_OP_ALLOW_NO_DHE_KEX is off. */
static bool make_context(struct vb__parley *p)
{
	SSL_CTX *c = p->context = SSL_CTX_new(TLS_method());

	if (!c)
		return false;
	SSL_CTX_clear_options(c, SSL_OP_ALLOW_NO_DHE_KEX | SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
	SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_cert_verify_callback(c, refuse_certificate, NULL);
	SSL_CTX_set_psk_use_session_callback(c, offer_key);
	SSL_CTX_set_psk_find_session_callback(c, find_key);
	SSL_CTX_set_alpn_select_cb(c, choose_version, NULL);
	return SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) &&
	       SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION) &&
	       SSL_CTX_set_ciphersuites(c, SUITE) && SSL_CTX_set1_groups_list(c, GROUPS) &&
	       SSL_CTX_set_num_tickets(c, 0) && SSL_CTX_set_max_early_data(c, 0) &&
	       SSL_CTX_set_recv_max_early_data(c, 0) &&
	       SSL_CTX_set_alpn_protos(c, (const unsigned char *)VERSIONS, sizeof(VERSIONS) - 1) ==
		       0;
}

static bool make_ssl(struct vb__parley *p, enum vb__parley_role role)
{
	p->ssl = SSL_new(p->context);
	p->in = BIO_new(BIO_s_mem());
	p->out = BIO_new(BIO_s_mem());
	if (!p->ssl || !p->in || !p->out) {
		BIO_free(p->in);
		BIO_free(p->out);
		return false;
	}
	SSL_set_bio(p->ssl, p->in, p->out);
	if (role == VB__PARLEY_ACCEPTED) {
		SSL_set_accept_state(p->ssl);
	} else {
		SSL_set_connect_state(p->ssl);
		SSL_set_verify(p->ssl, SSL_VERIFY_PEER, NULL);
	}
	return SSL_set_app_data(p->ssl, p);
}

int vb__parley_open(struct vb_channel *channel, const struct vb__secret *secret,
		    enum vb__parley_role role, struct vb__parley **parley, struct vb_error *err)
{
	struct vb__parley *p = calloc(1, sizeof(*p));
	int rc;

	vb__error_clear(err);
	if (!p)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	rc = vb_channel_fd(channel,
			   err); /* whoever waits on it later does not look whether there is one */
	if (rc < 0) {
		free(p);
		return rc;
	}
	p->channel = channel;
	p->secret = *secret;
	ERR_clear_error();
	if (make_context(p) && make_ssl(p, role)) {
		*parley = p;
		return 0;
	}
	rc = vb__complaint_fail(err, "set up TLS 1.3");
	vb__parley_close(p);
	return rc;
}

void vb__parley_close(struct vb__parley *p)
{
	if (!p)
		return;
	if (p->proven && !p->failure.code) {
		SSL_shutdown(p->ssl);
		flush(p, NULL);
	}
	SSL_free(p->ssl);
	SSL_CTX_free(p->context);
	ERR_clear_error();
	OPENSSL_cleanse(p, sizeof(*p));
	free(p);
}

/* ---- Proving ---- */

/* TLS is content with the peer; are we? */
static int check_peer(struct vb__parley *p)
{
	const unsigned char *version;
	unsigned int bytes;

	if (!SSL_session_reused(p->ssl) || SSL_version(p->ssl) != TLS1_3_VERSION)
		return fail(p, VB_ERR_KEY, NULL);
	SSL_get0_alpn_selected(p->ssl, &version, &bytes);
	if (bytes != sizeof(VERSION) - 1 || memcmp(version, VERSION, bytes) != 0)
		return fail(p, VB_ERR_VERSION, NULL);
	return 0;
}

static int finish_proof(struct vb__parley *p)
{
	int rc = check_peer(p);

	if (rc)
		BIO_reset(p->out); /* our proof is not for this one */
	p->proven = rc == 0;
	vb__secret_wipe(&p->secret);
	return rc;
}

static int shake_hands(struct vb__parley *p)
{
	int rc;

	ERR_clear_error();
	rc = SSL_do_handshake(p->ssl);
	if (rc == 1)
		return finish_proof(p);
	switch (SSL_get_error(p->ssl, rc)) {
	case SSL_ERROR_WANT_READ:
		return BIO_ctrl_pending(p->out) ? 0 : take_message(p);
	case SSL_ERROR_ZERO_RETURN:
		return fail(p, VB_ERR_LOST, "the peer gave up before it had proven its key");
	default:
		return fail_tls(p);
	}
}

int vb__parley_prove(struct vb__parley *p, struct vb_error *err)
{
	int rc;

	vb__error_clear(err);
	if (p->failure.code)
		return vb__fail_again(err, &p->failure);
	do {
		rc = flush(p, &p->failure);
		if (rc || p->proven)
			break;
		rc = shake_hands(p);
	} while (rc == 0);
	return conclude(p, rc, err);
}

size_t vb__parley_heard_bytes(const struct vb__parley *p)
{
	return p->unproven_bytes;
}

/* ---- Talking ---- */

/* 0 if there can be talk. */
static int check_ready(const struct vb__parley *p, const char *operation, struct vb_error *err)
{
	vb__error_clear(err);
	if (p->failure.code)
		return vb__fail_again(err, &p->failure);
	if (!p->proven)
		return vb__fail_invalid(err, operation, "before both sides have proven their key");
	ERR_clear_error();
	return 0;
}

int vb__parley_say(struct vb__parley *p, const void *words, size_t len, struct vb_error *err)
{
	size_t written;
	int rc = check_ready(p, "say", err);

	if (rc)
		return rc;
	if (!words || !len || len > VB__PARLEY_MAX)
		return vb__fail_invalid(err, "say", "%zu bytes, not 1 to %u", len, VB__PARLEY_MAX);
	vb__put16(p->said, (uint16_t)len);
	memcpy(p->said + LENGTH_BYTES, words, len);
	if (!SSL_write_ex(p->ssl, p->said, LENGTH_BYTES + len, &written))
		return conclude(p, fail_tls(p), err);
	/* If it cannot be sent the peer is gone, but what it said before can still be heard. */
	rc = flush(p, err);
	return rc == VB_ERR_AGAIN ? 0 : rc;
}

int vb__parley_flush(struct vb__parley *p, struct vb_error *err)
{
	int rc = check_ready(p, "say", err);

	return rc ? rc : flush(p, err);
}

/* How much of what is being heard is still missing; 0: it is complete. */
static size_t missing(const struct vb__parley *p)
{
	size_t whole = LENGTH_BYTES;

	if (p->heard_bytes >= LENGTH_BYTES)
		whole += vb__get16(p->heard);
	return whole - p->heard_bytes;
}

/* Reads on in what has come: 0 if it got further, VB_ERR_AGAIN if TLS needs the next message. */
static int read_on(struct vb__parley *p)
{
	size_t n;

	if (SSL_read_ex(p->ssl, p->heard + p->heard_bytes, missing(p), &n)) {
		p->heard_bytes += n;
		if (p->heard_bytes == LENGTH_BYTES &&
		    (missing(p) == 0 || missing(p) > VB__PARLEY_MAX))
			return fail(p, VB_ERR_PROTOCOL,
				    "the peer said nothing, or too much at once");
		return 0;
	}
	switch (SSL_get_error(p->ssl, 0)) {
	case SSL_ERROR_WANT_READ:
		return VB_ERR_AGAIN;
	case SSL_ERROR_ZERO_RETURN:
		if (p->heard_bytes)
			return fail(p, VB_ERR_PROTOCOL, "the peer ended within a word");
		p->peer_ended = true;
		return VB_ERR_EOF;
	default:
		return fail_tls(p);
	}
}

static int fail_ended(const struct vb__parley *p, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_EOF,
				     .operation = operation_of(p),
				     .object = vb_channel_peer(p->channel),
				     .cause = "the peer has said all it had to say",
			     });
}

ssize_t vb__parley_hear(struct vb__parley *p, const void **words, struct vb_error *err)
{
	int rc = check_ready(p, "hear", err);
	size_t len;

	if (rc)
		return rc;
	flush(p, NULL);
	do {
		rc = read_on(p);
		if (rc == VB_ERR_AGAIN)
			rc = take_message(p);
	} while (rc == 0 && missing(p));
	if (p->peer_ended)
		return fail_ended(p, err);
	if (rc)
		return conclude(p, rc, err);
	len = p->heard_bytes - LENGTH_BYTES;
	p->heard_bytes = 0;
	*words = p->heard + LENGTH_BYTES;
	return (ssize_t)len;
}

int vb__parley_derive(struct vb__parley *p, const char *label, uint32_t number, void *to,
		      size_t len, struct vb_error *err)
{
	char whole[sizeof(EXPORTER) + 64];
	uint8_t context[4];
	int n, rc = check_ready(p, "derive", err);

	if (rc)
		return rc;
	n = snprintf(whole, sizeof(whole), EXPORTER "%s", label);
	if (n < 0 || (size_t)n >= sizeof(whole))
		return vb__fail_invalid(err, "derive", "the label is too long");
	vb__put32(context, number);
	if (SSL_export_keying_material(p->ssl, to, len, whole, (size_t)n, context, sizeof(context),
				       1) != 1)
		return vb__complaint_fail(err, "derive");
	return 0;
}
