/* SPDX-License-Identifier: Apache-2.0 */
/* Parleys with those who are no Verbatim, or another one: other TLS, other programs, garbage. */
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "parley_pair.h"

#define V1 "\012verbatim/1"
#define V2 "\012verbatim/2"

/* How a stranger's TLS differs from ours; what is zero is as ours. */
struct manners {
	int version;		  /* 0: TLS 1.3 */
	const char *old_suites;	  /* for TLS 1.2 */
	const char *suite;	  /* NULL: ours */
	unsigned char number;	  /* of that suite, 0x13.. */
	const char *groups;	  /* NULL: ours */
	const char *identity;	  /* NULL: ours */
	const char *versions;	  /* ALPN; NULL: ours, "": none */
	bool no_key, certificate; /* to prove who it is */
	bool key_without_dhe;
	uint32_t early_data;
};

struct stranger {
	struct manners manners;
	SSL_CTX *context;
	SSL *ssl;
	BIO *in, *out;
	struct vb_channel *channel;
};

static SSL_SESSION *key_session(SSL *ssl)
{
	const struct manners *m = &((struct stranger *)SSL_get_app_data(ssl))->manners;
	unsigned char suite[] = { 0x13, m->number ? m->number : 2 };
	SSL_SESSION *session = SSL_SESSION_new();

	assert_true(SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, suite)));
	assert_true(SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION));
	assert_true(SSL_SESSION_set1_master_key(session, right_secret.bytes, VB__SECRET_BYTES));
	assert_true(SSL_SESSION_set_max_early_data(session, m->early_data));
	if (m->early_data)
		assert_true(SSL_SESSION_set1_alpn_selected(session, (unsigned char *)V1 + 1, 10));
	return session;
}

static int offer_key(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_bytes,
		     SSL_SESSION **session)
{
	const char *identity = ((struct stranger *)SSL_get_app_data(ssl))->manners.identity;

	(void)md;
	*id = (const unsigned char *)(identity ? identity : "verbatim");
	*id_bytes = strlen((const char *)*id);
	*session = key_session(ssl);
	return 1;
}

static int find_key(SSL *ssl, const unsigned char *id, size_t id_bytes, SSL_SESSION **session)
{
	assert_int_equal(id_bytes, 8);
	assert_memory_equal(id, "verbatim", 8);
	*session = key_session(ssl);
	return 1;
}

static int choose_version(SSL *ssl, const unsigned char **out, unsigned char *out_bytes,
			  const unsigned char *in, unsigned int in_bytes, void *arg)
{
	const char *versions = ((struct stranger *)arg)->manners.versions;

	(void)ssl;
	if (!*versions)
		return SSL_TLSEXT_ERR_NOACK;
	if (SSL_select_next_proto((unsigned char **)out, out_bytes, (const unsigned char *)versions,
				  (unsigned)strlen(versions), in,
				  in_bytes) == OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_OK;
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void make_certificate(SSL_CTX *context)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *x = X509_new();

	assert_non_null(key);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
	X509_gmtime_adj(X509_getm_notBefore(x), -60);
	X509_gmtime_adj(X509_getm_notAfter(x), 3600);
	X509_set_pubkey(x, key);
	assert_true(X509_sign(x, key, EVP_sha256()));
	assert_int_equal(SSL_CTX_use_certificate(context, x), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(context, key), 1);
	X509_free(x);
	EVP_PKEY_free(key);
}

static void behave(struct stranger *s)
{
	const struct manners *m = &s->manners;
	SSL_CTX *c = s->context;
	int version = m->version ? m->version : TLS1_3_VERSION;

	SSL_CTX_set_min_proto_version(c, version);
	SSL_CTX_set_max_proto_version(c, version);
	SSL_CTX_set_security_level(c, 0);
	assert_true(!m->old_suites || SSL_CTX_set_cipher_list(c, m->old_suites));
	assert_true(SSL_CTX_set_ciphersuites(c, m->suite ? m->suite : "TLS_AES_256_GCM_SHA384"));
	assert_true(SSL_CTX_set1_groups_list(c, m->groups ? m->groups : "X25519"));
	SSL_CTX_set_num_tickets(c, m->early_data ? 2 : 0);
	if (m->key_without_dhe)
		SSL_CTX_set_options(c, SSL_OP_ALLOW_NO_DHE_KEX);
	if (m->certificate)
		make_certificate(c);
	if (!m->no_key) {
		SSL_CTX_set_psk_use_session_callback(c, offer_key);
		SSL_CTX_set_psk_find_session_callback(c, find_key);
	}
	if (!s->manners.versions)
		s->manners.versions = V1;
	SSL_CTX_set_alpn_protos(c, (const unsigned char *)m->versions,
				(unsigned)strlen(m->versions));
	SSL_CTX_set_alpn_select_cb(c, choose_version, s);
}

/* A stranger as `role`, a parley with the right key on the other side. */
static void open_with_stranger(struct pair *pair, struct stranger *s, int role, struct manners m)
{
	pair_open(pair, &right_secret, &right_secret);
	vb__parley_close(pair->end[role].parley);
	pair->end[role].parley = NULL;
	*s = (struct stranger){ .manners = m, .channel = &pair->end[role].channel };
	s->context = SSL_CTX_new(TLS_method());
	assert_non_null(s->context);
	behave(s);
	s->ssl = SSL_new(s->context);
	s->in = BIO_new(BIO_s_mem());
	s->out = BIO_new(BIO_s_mem());
	SSL_set_bio(s->ssl, s->in, s->out);
	SSL_set_app_data(s->ssl, s);
	if (role == CLIENT)
		SSL_set_connect_state(s->ssl);
	else
		SSL_set_accept_state(s->ssl);
}

/* Carries bytes between the stranger's TLS and its channel. */
static void stranger_carry(struct stranger *s)
{
	uint8_t bytes[4096];
	const void *message;
	ssize_t len;
	int n;

	while ((n = BIO_read(s->out, bytes, sizeof(bytes))) > 0)
		assert_int_equal(vb_channel_send(s->channel, bytes, (size_t)n, NULL), 0);
	while ((len = vb_channel_try_recv(s->channel, &message, NULL)) > 0)
		BIO_write(s->in, message, (int)len);
}

/* Returns true if the stranger is content. */
static bool stranger_meets(struct stranger *s, struct end *end)
{
	bool content;

	for (int i = 0; i < 4; i++) {
		SSL_do_handshake(s->ssl);
		stranger_carry(s);
		if (end->proof == VB_ERR_AGAIN)
			end->proof = vb__parley_prove(end->parley, &end->err);
		stranger_carry(s);
	}
	content = SSL_do_handshake(s->ssl) == 1 && !SSL_get_shutdown(s->ssl);
	ERR_clear_error(); /* what it left there is not ours */
	return content;
}

static void close_with_stranger(struct pair *pair, struct stranger *s)
{
	SSL_free(s->ssl);
	SSL_CTX_free(s->context);
	pair_close(pair);
}

static void assert_refuses_client(struct manners m, enum vb_err code)
{
	struct stranger s;
	struct pair pair;

	open_with_stranger(&pair, &s, CLIENT, m);
	stranger_meets(&s, &pair.end[SERVER]);
	assert_unproven(&pair.end[SERVER], code);
	close_with_stranger(&pair, &s);
}

static void assert_refuses_server(struct manners m, enum vb_err code)
{
	struct stranger s;
	struct pair pair;

	open_with_stranger(&pair, &s, SERVER, m);
	assert_false(stranger_meets(&s, &pair.end[CLIENT]));
	assert_unproven(&pair.end[CLIENT], code);
	close_with_stranger(&pair, &s);
}

/* Then what is refused below is refused for its one difference. */
static void a_stranger_with_our_manners_and_key_is_a_peer(void **state)
{
	(void)state;
	for (int role = CLIENT; role <= SERVER; role++) {
		struct stranger s;
		struct pair pair;

		open_with_stranger(&pair, &s, role, (struct manners){ .version = 0 });
		assert_true(stranger_meets(&s, &pair.end[!role]));
		assert_int_equal(pair.end[!role].proof, 0);
		assert_int_equal(SSL_write(s.ssl, "\5\0hello", 7), 7);
		stranger_carry(&s);
		assert_hears(&pair.end[!role], "hello", 5);
		close_with_stranger(&pair, &s);
	}
}

static void clients_of_other_tls_are_refused(void **state)
{
	static const struct manners all[] = {
		{ .version = TLS1_2_VERSION },
		{ .version = TLS1_1_VERSION, .old_suites = "ALL" },
		{ .version = TLS1_2_VERSION, .old_suites = "aNULL" },
		{ .version = TLS1_2_VERSION, .old_suites = "PSK" },
		{ .no_key = true },
		{ .identity = "somebody" },
		{ .identity = "verbatim2" },
		{ .suite = "TLS_AES_128_GCM_SHA256", .number = 1 },
		{ .suite = "TLS_CHACHA20_POLY1305_SHA256", .number = 3 },
		{ .groups = "P-384" },
		{ .groups = "P-384", .key_without_dhe = true },
		{ .no_key = true, .versions = "\2h2\10http/1.1" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++)
		assert_refuses_client(all[i], VB_ERR_PROTOCOL);
}

static void another_version_is_told_at_both_ends(void **state)
{
	struct stranger s;
	struct pair pair;

	(void)state;
	assert_refuses_client((struct manners){ .versions = "" }, VB_ERR_VERSION);
	assert_refuses_server((struct manners){ .versions = V2 }, VB_ERR_VERSION);
	assert_refuses_server((struct manners){ .versions = "" }, VB_ERR_VERSION);

	open_with_stranger(&pair, &s, CLIENT, (struct manners){ .versions = V2 });
	assert_false(stranger_meets(&s, &pair.end[SERVER]));
	assert_unproven(&pair.end[SERVER], VB_ERR_VERSION);
	assert_string_equal(pair.end[SERVER].err.cause,
			    "the peer speaks another version of the protocol");
	close_with_stranger(&pair, &s);
}

static void a_client_takes_later_choices_among_versions(void **state)
{
	struct stranger s;
	struct pair pair;

	(void)state;
	open_with_stranger(&pair, &s, CLIENT, (struct manners){ .versions = V2 V1 });
	assert_true(stranger_meets(&s, &pair.end[SERVER]));
	assert_int_equal(pair.end[SERVER].proof, 0);
	close_with_stranger(&pair, &s);
}

static void the_second_group_works_too(void **state)
{
	(void)state;
	for (int role = CLIENT; role <= SERVER; role++) {
		struct stranger s;
		struct pair pair;

		open_with_stranger(&pair, &s, role, (struct manners){ .groups = "P-256" });
		assert_true(stranger_meets(&s, &pair.end[!role]));
		assert_int_equal(pair.end[!role].proof, 0);
		close_with_stranger(&pair, &s);
	}
}

/* Without an ephemeral exchange the key would decrypt what was recorded: who would have that gets nothing. */
static void the_key_alone_is_never_enough_for_a_server(void **state)
{
	(void)state;
	assert_refuses_server((struct manners){ .groups = "P-384", .key_without_dhe = true },
			      VB_ERR_PROTOCOL);
}

static void servers_with_a_certificate_prove_nothing(void **state)
{
	(void)state;
	assert_refuses_server((struct manners){ .certificate = true, .no_key = true }, VB_ERR_KEY);
	assert_refuses_server((struct manners){ .no_key = true }, VB_ERR_PROTOCOL);
	assert_refuses_server((struct manners){ .version = TLS1_2_VERSION, .certificate = true },
			      VB_ERR_PROTOCOL);
}

static void early_data_is_not_heard(void **state)
{
	struct stranger s;
	struct pair pair;
	size_t written;

	(void)state;
	open_with_stranger(&pair, &s, CLIENT, (struct manners){ .early_data = 1000 });
	assert_int_equal(SSL_write_early_data(s.ssl, "\5\0early", 7, &written), 1);
	stranger_meets(&s, &pair.end[SERVER]);
	assert_int_not_equal(pair.end[SERVER].proof, 0);
	assert_unproven(&pair.end[SERVER], (enum vb_err)pair.end[SERVER].proof);
	close_with_stranger(&pair, &s);
}

static void a_peer_may_change_its_keys_in_the_middle(void **state)
{
	struct stranger s;
	struct pair pair;
	char answer[16];

	(void)state;
	open_with_stranger(&pair, &s, CLIENT, (struct manners){ .version = 0 });
	assert_true(stranger_meets(&s, &pair.end[SERVER]));
	assert_true(SSL_key_update(s.ssl, SSL_KEY_UPDATE_REQUESTED));
	assert_int_equal(SSL_write(s.ssl, "\5\0hello", 7), 7);
	stranger_carry(&s);
	assert_hears(&pair.end[SERVER], "hello", 5);
	assert_hears_nothing(&pair.end[SERVER], VB_ERR_AGAIN);
	assert_says(&pair.end[SERVER], "answer", 6);
	stranger_carry(&s);
	assert_int_equal(SSL_read(s.ssl, answer, sizeof(answer)), 8);
	assert_memory_equal(answer, "\6\0answer", 8);
	close_with_stranger(&pair, &s);
}

/* What a peer with the key can get wrong. */
static void lengths_that_cannot_be_are_refused(void **state)
{
	static const char *const lengths[] = { "\0\0", "\1\10", "\377\377" };

	(void)state;
	for (size_t i = 0; i < COUNT(lengths); i++) {
		struct stranger s;
		struct pair pair;

		open_with_stranger(&pair, &s, CLIENT, (struct manners){ .version = 0 });
		assert_true(stranger_meets(&s, &pair.end[SERVER]));
		assert_int_equal(SSL_write(s.ssl, lengths[i], 2), 2);
		stranger_carry(&s);
		assert_hears_nothing(&pair.end[SERVER], VB_ERR_PROTOCOL);
		close_with_stranger(&pair, &s);
	}
}

static void words_are_put_together_from_any_records(void **state)
{
	static const char stream[] = "\5\0hello\1\0x\3\0yes\2\0no";
	struct stranger s;
	struct pair pair;

	(void)state;
	open_with_stranger(&pair, &s, SERVER, (struct manners){ .version = 0 });
	assert_true(stranger_meets(&s, &pair.end[CLIENT]));
	for (size_t i = 0; i < 12; i++)
		assert_int_equal(SSL_write(s.ssl, stream + i, 1), 1);
	assert_int_equal(SSL_write(s.ssl, stream + 12, sizeof(stream) - 1 - 12),
			 sizeof(stream) - 1 - 12);
	stranger_carry(&s);
	assert_hears(&pair.end[CLIENT], "hello", 5);
	assert_hears(&pair.end[CLIENT], "x", 1);
	assert_hears(&pair.end[CLIENT], "yes", 3);
	assert_hears(&pair.end[CLIENT], "no", 2);
	assert_hears_nothing(&pair.end[CLIENT], VB_ERR_AGAIN);
	close_with_stranger(&pair, &s);
}

static void a_farewell_within_a_word_is_refused(void **state)
{
	struct stranger s;
	struct pair pair;

	(void)state;
	open_with_stranger(&pair, &s, CLIENT, (struct manners){ .version = 0 });
	assert_true(stranger_meets(&s, &pair.end[SERVER]));
	assert_int_equal(SSL_write(s.ssl, "\5\0hel", 5), 5);
	SSL_shutdown(s.ssl);
	stranger_carry(&s);
	assert_hears_nothing(&pair.end[SERVER], VB_ERR_PROTOCOL);
	close_with_stranger(&pair, &s);
}

/* ---- No TLS at all ---- */

static void assert_refuses_bytes(const void *bytes, size_t len, enum vb_err code)
{
	for (int victim = CLIENT; victim <= SERVER; victim++) {
		struct pair pair;
		struct end *end = &pair.end[victim];

		pair_open(&pair, &right_secret, &right_secret);
		mock_channel_inject(&end->channel, bytes, len);
		end->proof = vb__parley_prove(end->parley, &end->err);
		assert_unproven(end, code);
		pair_close(&pair);
	}
}

static void other_programs_are_refused(void **state)
{
	static const char *const all[] = {
		"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
		"HTTP/1.1 400 Bad Request\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"SSH-2.0-OpenSSH_9.2\r\n",
		"VBTM and more",
		"\x16\x03\x01\x7f\xff", /* a record that is too long */
	};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++)
		assert_refuses_bytes(all[i], strlen(all[i]), VB_ERR_PROTOCOL);
}

static void zeros_data_and_empty_messages_are_refused(void **state)
{
	static const uint8_t zeros[16u << 10], data[] = { 23, 3, 3, 0, 1, 'x' };

	(void)state;
	assert_refuses_bytes(data, sizeof(data), VB_ERR_PROTOCOL);
	assert_refuses_bytes(zeros, sizeof(zeros), VB_ERR_PROTOCOL);
	assert_refuses_bytes(zeros, 4096, VB_ERR_PROTOCOL);
	assert_refuses_bytes(zeros, 5, VB_ERR_PROTOCOL);
	assert_refuses_bytes(zeros, 0, VB_ERR_PROTOCOL);
}

/* Plausible for long: a handshake message of 64 KiB, as far as it comes. */
static void a_peer_that_only_talks_is_cut_off_at_16_KiB(void **state)
{
	static const uint8_t hello[] = { 22, 3, 1, 0x40, 0, 1, 1, 0, 0 }, more[4096];
	static const size_t steps[] = { 1, 7, sizeof(more) };

	(void)state;
	for (size_t i = 0; i < COUNT(steps); i++) {
		size_t sent = sizeof(hello);
		struct pair pair;
		struct end *end = &pair.end[SERVER];

		pair_open(&pair, &right_secret, &right_secret);
		mock_channel_inject(&end->channel, hello, sizeof(hello));
		while ((end->proof = vb__parley_prove(end->parley, &end->err)) == VB_ERR_AGAIN) {
			assert_true(sent <= 16u << 10);
			mock_channel_inject(&end->channel, more, steps[i]);
			sent += steps[i];
		}
		assert_unproven(end, VB_ERR_PROTOCOL);
		assert_string_equal(end->err.cause, "the peer talks but proves nothing");
		pair_close(&pair);
	}
}

static void a_message_over_16_KiB_is_not_even_looked_at(void **state)
{
	static uint8_t big[(16u << 10) + 1];

	(void)state;
	memcpy(big, "\26\3\1", 3);
	assert_refuses_bytes(big, sizeof(big), VB_ERR_PROTOCOL);
}

/* Farewells and warnings in plain text, from anybody. */
static void plain_alerts_end_it_but_prove_nothing(void **state)
{
	for (unsigned level = 0; level < 4; level++)
		for (unsigned alert = 0; alert < 256; alert++) {
			uint8_t bytes[] = { 21, 3, 3, 0, 2, (uint8_t)level, (uint8_t)alert };
			struct pair pair;
			struct end *end = &pair.end[alert % 2];

			(void)state;
			pair_open(&pair, &right_secret, &right_secret);
			for (int i = 0; i < 40; i++)
				mock_channel_inject(&end->channel, bytes, sizeof(bytes));
			end->proof = vb__parley_prove(end->parley, &end->err);
			assert_int_not_equal(end->proof, 0);
			assert_unproven(end, (enum vb_err)end->proof);
			pair_close(&pair);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stranger_with_our_manners_and_key_is_a_peer),
		cmocka_unit_test(clients_of_other_tls_are_refused),
		cmocka_unit_test(another_version_is_told_at_both_ends),
		cmocka_unit_test(a_client_takes_later_choices_among_versions),
		cmocka_unit_test(the_second_group_works_too),
		cmocka_unit_test(the_key_alone_is_never_enough_for_a_server),
		cmocka_unit_test(servers_with_a_certificate_prove_nothing),
		cmocka_unit_test(early_data_is_not_heard),
		cmocka_unit_test(a_peer_may_change_its_keys_in_the_middle),
		cmocka_unit_test(lengths_that_cannot_be_are_refused),
		cmocka_unit_test(words_are_put_together_from_any_records),
		cmocka_unit_test(a_farewell_within_a_word_is_refused),
		cmocka_unit_test(other_programs_are_refused),
		cmocka_unit_test(zeros_data_and_empty_messages_are_refused),
		cmocka_unit_test(a_peer_that_only_talks_is_cut_off_at_16_KiB),
		cmocka_unit_test(a_message_over_16_KiB_is_not_even_looked_at),
		cmocka_unit_test(plain_alerts_end_it_but_prove_nothing),
	};

	return cmocka_run_group_tests(tests, make_secrets, NULL);
}
