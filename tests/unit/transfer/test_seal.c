/* SPDX-License-Identifier: Apache-2.0 */
/* Seals: known answers, keys and nonces that never come twice, and what two sides agree on. */
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>

#include "suite.h"
#include "transfer/seal.h"

#define TEXT "nothing is said in vain"
#define TEXT_BYTES (sizeof(TEXT) - 1)
#define MESSAGE_BYTES (TEXT_BYTES + VB__SEAL_TAG)

static struct vb__seal *seal_by(enum vb__cipher cipher, uint8_t first)
{
	struct vb__seal_secret secret;
	struct vb__seal *seal;

	for (unsigned i = 0; i < sizeof(secret.bytes); i++)
		secret.bytes[i] = (uint8_t)(first + i);
	assert_int_equal(vb__seal_create(cipher, &secret, &seal, NULL), 0);
	return seal;
}

/* The first `data_bytes` from elsewhere, the rest where it is. */
static void close_text(struct vb__seal *seal, uint64_t turn, size_t data_bytes,
		       uint8_t message[MESSAGE_BYTES])
{
	struct vb__sealed sealed = {
		.turn = turn,
		.data = (const uint8_t *)TEXT,
		.data_bytes = data_bytes,
		.more_bytes = TEXT_BYTES - data_bytes,
		.bytes = message,
	};

	memcpy(message + data_bytes, &TEXT[data_bytes], sealed.more_bytes);
	assert_int_equal(vb__seal_close(seal, &sealed, NULL), 0);
}

/*
 * As Python's cryptography computes them: HKDFExpand(SHA512(), 44, b"verbatim seal" + cipher + epoch) of the bytes 0 to 63,
 * then AESGCM or ChaCha20Poly1305.
 */
static const struct {
	enum vb__cipher cipher;
	uint64_t turn;
	const char *message;
} answers[] = {
	{ VB__CIPHER_AES, 0,
	  "8667993ed9e285bda7812bb308608d4172bac987d86f66416f51c1806a3b87a4eaaec0a246f93d" },
	{ VB__CIPHER_AES, 1023,
	  "5a2c611ec611eaf873b109df454ba9ddc68cb97df1e8916e09bf1ffa0a49478b827d7dc41e5d65" },
	{ VB__CIPHER_AES, 1024,
	  "2769633d64db158f8db08a6bbc2eeda6893cf914f38e3f0d674276b64699240a50f1602fcc5e49" },
	{ VB__CIPHER_AES, (UINT64_C(1) << 40) + 5,
	  "a7f2f4c406e394b0aaa7ce3eaae35a1810e92b9e86fe7c4026faef10abfa85d62a024e472798e5" },
	{ VB__CIPHER_CHACHA, 0,
	  "a866a23c2617cf84847e75e5394303644b9547d2442cab7262edfe47f862d4ccfed33e09c3eda9" },
	{ VB__CIPHER_CHACHA, 1023,
	  "eabd7bf3f2e237f6b0c1c20943af7327bd1b751fdb5bc41a99a7208d2d11a5e4accb4d2f204925" },
	{ VB__CIPHER_CHACHA, 1024,
	  "c46985563187b1806d7be8f0519136f5240b1b2c9ebea534bfe631fe21dedd8e27ea6279362f41" },
	{ VB__CIPHER_CHACHA, (UINT64_C(1) << 40) + 5,
	  "c352a1e350e54c1f8ad45f3eb12602a8d734342e8b4581250cdfb8663dd5cf8f40920dab84bbfc" },
};

static void what_is_sealed_is_what_others_compute(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(answers); i++) {
		struct vb__seal *seal = seal_by(answers[i].cipher, 0);
		char hex[2 * MESSAGE_BYTES + 1];
		uint8_t message[MESSAGE_BYTES];

		close_text(seal, answers[i].turn, i % (TEXT_BYTES + 1), message);
		for (size_t b = 0; b < sizeof(message); b++)
			snprintf(hex + 2 * b, 3, "%02x", message[b]);
		assert_string_equal(hex, answers[i].message);
		vb__seal_destroy(seal);
	}
}

static void what_is_sealed_opens_in_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(answers); i++) {
		struct vb__seal *sender = seal_by(answers[i].cipher, 0);
		struct vb__seal *receiver = seal_by(answers[i].cipher, 0);
		uint8_t message[MESSAGE_BYTES];

		close_text(sender, answers[i].turn, 7, message);
		assert_memory_not_equal(message, TEXT, TEXT_BYTES);
		assert_int_equal(vb__seal_open(receiver, answers[i].turn, message, sizeof(message),
					       NULL),
				 0);
		assert_memory_equal(message, TEXT, TEXT_BYTES);
		vb__seal_destroy(sender);
		vb__seal_destroy(receiver);
	}
}

static void opens(struct vb__seal *receiver, uint64_t turn, const uint8_t *message, bool well)
{
	struct vb_error err = { .code = VB_OK };
	uint8_t copy[MESSAGE_BYTES];

	memcpy(copy, message, sizeof(copy));
	assert_int_equal(vb__seal_open(receiver, turn, copy, sizeof(copy), &err),
			 well ? 0 : VB_ERR_CORRUPT);
	assert_int_equal(ERR_peek_error(), 0);
}

static void it_opens_by_the_same_secret_cipher_and_turn_only(void **state)
{
	struct vb__seal *sender = seal_by(VB__CIPHER_AES, 0);
	struct vb__seal *same = seal_by(VB__CIPHER_AES, 0);
	struct vb__seal *other = seal_by(VB__CIPHER_AES, 1);
	struct vb__seal *chacha = seal_by(VB__CIPHER_CHACHA, 0);
	uint8_t message[MESSAGE_BYTES];

	(void)state;
	close_text(sender, 5, 3, message);
	opens(other, 5, message, false);
	opens(chacha, 5, message, false);
	opens(same, 4, message, false);
	opens(same, 6, message, false);
	opens(same, 5 + VB__SEAL_TURNS, message, false);
	opens(same, 5 + (UINT64_C(1) << 32), message, false);
	opens(same, 5, message, true); /* and is none the worse for all that */
	assert_int_equal(vb__seal_open(same, 5, message, VB__SEAL_TAG - 1, NULL), VB_ERR_CORRUPT);
	vb__seal_destroy(sender);
	vb__seal_destroy(same);
	vb__seal_destroy(other);
	vb__seal_destroy(chacha);
}

/* ---- Keys and nonces, where OpenSSL is given them ---- */

int __real_EVP_CipherInit_ex2(EVP_CIPHER_CTX *ctx, const EVP_CIPHER *cipher,
			      const unsigned char *key, const unsigned char *iv, int enc,
			      const OSSL_PARAM params[]);
int __wrap_EVP_CipherInit_ex2(EVP_CIPHER_CTX *ctx, const EVP_CIPHER *cipher,
			      const unsigned char *key, const unsigned char *iv, int enc,
			      const OSSL_PARAM params[]);

struct use {
	uint8_t key[32], nonce[12];
};

static struct use current, *uses;
static size_t use_count, key_count;

int __wrap_EVP_CipherInit_ex2(EVP_CIPHER_CTX *ctx, const EVP_CIPHER *cipher,
			      const unsigned char *key, const unsigned char *iv, int enc,
			      const OSSL_PARAM params[])
{
	if (key && uses) {
		memcpy(current.key, key, sizeof(current.key));
		key_count++;
	}
	if (iv && uses) {
		memcpy(current.nonce, iv, sizeof(current.nonce));
		uses[use_count++] = current;
	}
	return __real_EVP_CipherInit_ex2(ctx, cipher, key, iv, enc, params);
}

static int compare(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct use));
}

#define RAILS 4u /* or directions: each has a secret of its own */
#define TURNS (3u * VB__SEAL_TURNS + 1)

static void no_nonce_comes_twice_under_a_key_and_no_key_is_used_for_long(void **state)
{
	uint8_t message[MESSAGE_BYTES];
	size_t of_key = 1;

	(void)state;
	uses = calloc(RAILS * TURNS, sizeof(*uses));
	assert_non_null(uses);
	for (unsigned rail = 0; rail < RAILS; rail++) {
		struct vb__seal *seal =
			seal_by(rail % 2 ? VB__CIPHER_AES : VB__CIPHER_CHACHA, (uint8_t)(rail / 2));

		for (uint64_t turn = 0; turn < TURNS; turn++)
			close_text(seal, turn, 1, message);
		vb__seal_destroy(seal);
	}
	assert_int_equal(use_count, RAILS * TURNS);
	assert_int_equal(key_count, RAILS * 4);
	qsort(uses, use_count, sizeof(*uses), compare);
	for (size_t i = 1; i < use_count; i++) {
		assert_true(compare(&uses[i - 1], &uses[i]) != 0);
		of_key = memcmp(uses[i - 1].key, uses[i].key, 32) == 0 ? of_key + 1 : 1;
		assert_true(of_key <= VB__SEAL_TURNS);
	}
	free(uses);
	uses = NULL;
}

/* ---- Agreeing ---- */

static void it_is_sealed_if_one_wants_and_both_can(void **state)
{
	static const bool sealed[4][4] = {
		[VB_ENCRYPT_IF_ASKED] = { false, true, true, false },
		[VB_ENCRYPT_ASK] = { true, true, true, false },
		[VB_ENCRYPT_REQUIRE] = { true, true, true, false },
		[VB_ENCRYPT_NEVER] = { false, false, false, false },
	};

	(void)state;
	for (unsigned a = 0; a < 4; a++)
		for (unsigned b = 0; b < 4; b++) {
			unsigned agreed = vb__seal_agree(vb__seal_wish(a), vb__seal_wish(b));

			assert_int_equal(vb__seal_cipher(agreed) != VB__CIPHER_NONE, sealed[a][b]);
		}
	/* An older one says nothing at all. */
	assert_int_equal(vb__seal_cipher(vb__seal_agree(vb__seal_wish(VB_ENCRYPT_REQUIRE), 0)),
			 VB__CIPHER_NONE);
}

static void aes_is_taken_where_both_have_it(void **state)
{
	const unsigned fast = VB__SEAL_CAN | VB__SEAL_WANTED, slow = fast | VB__SEAL_SLOW_AES;

	(void)state;
	assert_int_equal(vb__seal_cipher(vb__seal_agree(fast, fast)), VB__CIPHER_AES);
	assert_int_equal(vb__seal_cipher(vb__seal_agree(fast, slow)), VB__CIPHER_CHACHA);
	assert_int_equal(vb__seal_cipher(vb__seal_agree(slow, fast)), VB__CIPHER_CHACHA);
	assert_int_equal(vb__seal_cipher(vb__seal_agree(slow, slow)), VB__CIPHER_CHACHA);
	assert_string_equal(vb__cipher_name(VB__CIPHER_AES), "AES-256-GCM");
	assert_string_equal(vb__cipher_name(VB__CIPHER_CHACHA), "ChaCha20-Poly1305");
	assert_null(vb__cipher_name(VB__CIPHER_NONE));
}

/* An OpenSSL without one of the ciphers. */
static const char *missing = "";
EVP_CIPHER *__real_EVP_CIPHER_fetch(OSSL_LIB_CTX *library, const char *name, const char *wish);
EVP_CIPHER *__wrap_EVP_CIPHER_fetch(OSSL_LIB_CTX *library, const char *name, const char *wish);

EVP_CIPHER *__wrap_EVP_CIPHER_fetch(OSSL_LIB_CTX *library, const char *name, const char *wish)
{
	return strcmp(name, missing) == 0 ? NULL : __real_EVP_CIPHER_fetch(library, name, wish);
}

static void nothing_is_promised_by_a_cipher_that_is_missing(void **state)
{
	(void)state;
	missing = "AES-256-GCM";
	assert_int_equal(vb__seal_wish(VB_ENCRYPT_REQUIRE), 0);
	missing = "ChaCha20-Poly1305";
	assert_int_equal(vb__seal_wish(VB_ENCRYPT_ASK), VB__SEAL_CAN | VB__SEAL_WANTED);
	missing = "";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sealed_is_what_others_compute),
		cmocka_unit_test(what_is_sealed_opens_in_place),
		cmocka_unit_test(it_opens_by_the_same_secret_cipher_and_turn_only),
		cmocka_unit_test(no_nonce_comes_twice_under_a_key_and_no_key_is_used_for_long),
		cmocka_unit_test(it_is_sealed_if_one_wants_and_both_can),
		cmocka_unit_test(aes_is_taken_where_both_have_it),
		cmocka_unit_test(nothing_is_promised_by_a_cipher_that_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
