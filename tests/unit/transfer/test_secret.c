/* SPDX-License-Identifier: Apache-2.0 */
/* Keys into secrets: known answers, and keys of any bytes and length. */
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>

#include "suite.h"
#include "transfer/parley.h"

static struct vb__secret secret_of(const void *key, size_t len)
{
	struct vb__secret secret;
	struct vb_error err;

	assert_int_equal(vb__secret_from_key(&secret, key, len, &err), 0);
	assert_int_equal(err.code, VB_OK);
	return secret;
}

/*
 * openssl kdf -keylen 32 -kdfopt hexpass:$(printf %s "$KEY" | openssl dgst -sha512 -r | cut -c1-128) \
 *	-kdfopt salt:"verbatim key v1" -kdfopt n:16384 -kdfopt r:8 -kdfopt p:1 SCRYPT
 */
static void secret_is_scrypt_of_the_digest_as_others_compute_it(void **state)
{
	static const uint8_t expected[VB__SECRET_BYTES] = {
		0x3d, 0xe9, 0x26, 0x23, 0x85, 0x1c, 0x96, 0xad, 0xaa, 0x86, 0xbb,
		0x25, 0xab, 0x4a, 0x5d, 0xbf, 0x79, 0x56, 0x11, 0x81, 0x28, 0xc3,
		0x49, 0x40, 0x5b, 0xc9, 0x21, 0xa0, 0x55, 0x41, 0x9c, 0x32
	};
	struct vb__secret secret = secret_of("correct horse battery staple", 28);

	(void)state;
	assert_memory_equal(secret.bytes, expected, sizeof(expected));
}

static void a_key_may_be_a_single_byte(void **state)
{
	static const uint8_t expected[] = { 0x02, 0xd9, 0xd4, 0xca };
	struct vb__secret secret = secret_of("k", 1);

	(void)state;
	assert_memory_equal(secret.bytes, expected, sizeof(expected));
}

static void a_key_may_be_a_mebibyte_and_its_last_byte_counts(void **state)
{
	static const uint8_t expected[] = { 0xa8, 0x7c, 0xf2, 0x3a };
	size_t len = 1u << 20;
	char *key = malloc(len);
	struct vb__secret secret, other;

	(void)state;
	assert_non_null(key);
	memset(key, 'v', len);
	secret = secret_of(key, len);
	key[len - 1] = 'w';
	other = secret_of(key, len);
	free(key);
	assert_memory_equal(secret.bytes, expected, sizeof(expected));
	assert_memory_not_equal(secret.bytes, other.bytes, sizeof(other.bytes));
}

static void nuls_in_a_key_count_wherever_they_are(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
	} keys[] = { { "a", 1 },   { "a\0", 2 }, { "a\0\0", 3 },
		     { "\0a", 2 }, { "\0", 1 },	 { "a\0b", 3 } };
	struct vb__secret secrets[COUNT(keys)];

	(void)state;
	for (size_t i = 0; i < COUNT(keys); i++) {
		secrets[i] = secret_of(keys[i].bytes, keys[i].len);
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(secrets[i].bytes, secrets[j].bytes,
						VB__SECRET_BYTES);
	}
}

static void no_key_is_refused(void **state)
{
	struct vb__secret secret;
	struct vb_error err;

	(void)state;
	assert_int_equal(vb__secret_from_key(&secret, "", 0, &err), VB_ERR_INVALID);
	assert_string_equal(err.cause, "it is empty");
	assert_int_equal(vb__secret_from_key(&secret, NULL, 5, NULL), VB_ERR_INVALID);
	assert_int_equal(ERR_peek_error(), 0);
}

/* printf %s "$KEY" | openssl dgst -sha256 -mac HMAC -macopt key:"verbatim random key v1" */
static void a_random_key_is_not_stretched(void **state)
{
	static const uint8_t expected[VB__SECRET_BYTES] = {
		0x6a, 0xfe, 0x61, 0xd4, 0xf9, 0xce, 0x99, 0x87, 0x0f, 0xb6, 0xfd,
		0x4d, 0x0c, 0xb2, 0xf9, 0x39, 0x7b, 0x1a, 0x72, 0xd1, 0xf4, 0x98,
		0x1a, 0x53, 0x22, 0x54, 0xcd, 0x39, 0xae, 0xf3, 0xcd, 0x53
	};
	static const char key[] = "0123456789abcdef0123456789abcdef";
	struct vb__secret secret;
	struct vb_error err;

	(void)state;
	assert_int_equal(vb__secret_from_random_key(&secret, key, 32, &err), 0);
	assert_memory_equal(secret.bytes, expected, sizeof(expected));
	assert_int_equal(vb__secret_from_random_key(&secret, key, 31, &err), VB_ERR_INVALID);
	assert_string_equal(err.cause, "one that is random has 32 bytes or more");
	assert_int_equal(vb__secret_from_random_key(&secret, NULL, 32, NULL), VB_ERR_INVALID);
}

static void wiping_leaves_nothing(void **state)
{
	static const uint8_t nothing[VB__SECRET_BYTES];
	struct vb__secret secret = secret_of("k", 1);

	(void)state;
	vb__secret_wipe(&secret);
	assert_memory_equal(secret.bytes, nothing, sizeof(nothing));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secret_is_scrypt_of_the_digest_as_others_compute_it),
		cmocka_unit_test(a_key_may_be_a_single_byte),
		cmocka_unit_test(a_key_may_be_a_mebibyte_and_its_last_byte_counts),
		cmocka_unit_test(nuls_in_a_key_count_wherever_they_are),
		cmocka_unit_test(no_key_is_refused),
		cmocka_unit_test(a_random_key_is_not_stretched),
		cmocka_unit_test(wiping_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
