/* SPDX-License-Identifier: Apache-2.0 */
/* Keys made into secrets of fixed length: a user's slowly. Where keys come from is not its job. */
#include <stdbool.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include "core/failure.h"
#include "transfer/complaint.h"
#include "transfer/parley.h"

/* Part of the protocol: both ends must use the same. scrypt takes 16 MiB and some tens of ms for each guess. */
#define SALT "verbatim key v1"
#define RANDOM_LABEL "verbatim random key v1"
#define SCRYPT_N (1u << 14)
#define SCRYPT_R 8u
#define SCRYPT_P 1u
#define SCRYPT_MEMORY_MAX (32u << 20)

/* scrypt begins with HMAC, which takes keys that differ only in NULs at their end for the same. */
static bool stretch(struct vb__secret *secret, const void *key, size_t key_bytes)
{
	unsigned char digest[SHA512_DIGEST_LENGTH];
	bool ok = EVP_Digest(key, key_bytes, digest, NULL, EVP_sha512(), NULL) == 1 &&
		  EVP_PBE_scrypt((const char *)digest, sizeof(digest), (const unsigned char *)SALT,
				 sizeof(SALT) - 1, SCRYPT_N, SCRYPT_R, SCRYPT_P, SCRYPT_MEMORY_MAX,
				 secret->bytes, sizeof(secret->bytes)) == 1;

	OPENSSL_cleanse(digest, sizeof(digest));
	return ok;
}

int vb__secret_from_key(struct vb__secret *secret, const void *key, size_t key_bytes,
			struct vb_error *err)
{
	vb__error_clear(err);
	if (!key || !key_bytes)
		return vb__fail_invalid(err, "key", "it is empty");
	ERR_clear_error();
	if (stretch(secret, key, key_bytes))
		return 0;
	vb__secret_wipe(secret);
	return vb__complaint_fail(err, "EVP_PBE_scrypt");
}

int vb__secret_from_random_key(struct vb__secret *secret, const void *key, size_t key_bytes,
			       struct vb_error *err)
{
	vb__error_clear(err);
	if (!key || key_bytes < sizeof(secret->bytes))
		return vb__fail_invalid(err, "key", "one that is random has %zu bytes or more",
					sizeof(secret->bytes));
	ERR_clear_error();
	if (EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, RANDOM_LABEL, sizeof(RANDOM_LABEL) - 1,
		      key, key_bytes, secret->bytes, sizeof(secret->bytes), NULL))
		return 0;
	vb__secret_wipe(secret);
	return vb__complaint_fail(err, "EVP_Q_mac");
}

void vb__secret_wipe(struct vb__secret *secret)
{
	OPENSSL_cleanse(secret, sizeof(*secret));
}
