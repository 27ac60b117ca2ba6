/* SPDX-License-Identifier: Apache-2.0 */
/* Seals, by OpenSSL: keys for turns, and the two ciphers. What is sealed, and when, is not its business. */
#include "transfer/seal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "core/failure.h"
#include "transfer/complaint.h"

#define KEY_BYTES 32u
#define NONCE_BYTES 12u
#define LABEL "verbatim seal"

struct vb__seal {
	enum vb__cipher cipher;
	struct vb__seal_secret secret;
	EVP_CIPHER *algorithm;
	EVP_CIPHER_CTX *context;
	bool keyed; /* the context has the key of `epoch` */
	uint64_t epoch;
	uint8_t base[NONCE_BYTES];
};

static const struct {
	const char *name, *algorithm;
} ciphers[] = {
	[VB__CIPHER_AES] = { "AES-256-GCM", "AES-256-GCM" },
	[VB__CIPHER_CHACHA] = { "ChaCha20-Poly1305", "ChaCha20-Poly1305" },
};

const char *vb__cipher_name(enum vb__cipher cipher)
{
	return ciphers[cipher].name;
}

static void put64_big(uint8_t to[8], uint64_t value)
{
	for (int i = 7; i >= 0; i--, value >>= 8)
		to[i] = (uint8_t)value;
}

static int complain(const char *operation, struct vb_error *err)
{
	int rc = vb__complaint_fail(err, operation);

	ERR_clear_error();
	return rc;
}

int vb__seal_create(enum vb__cipher cipher, const struct vb__seal_secret *secret,
		    struct vb__seal **seal, struct vb_error *err)
{
	struct vb__seal *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	s->cipher = cipher;
	s->secret = *secret;
	s->algorithm = EVP_CIPHER_fetch(NULL, ciphers[cipher].algorithm, NULL);
	s->context = EVP_CIPHER_CTX_new();
	if (s->algorithm && s->context) {
		*seal = s;
		return 0;
	}
	rc = complain("set up encryption", err);
	vb__seal_destroy(s);
	return rc;
}

void vb__seal_destroy(struct vb__seal *s)
{
	if (!s)
		return;
	EVP_CIPHER_CTX_free(s->context);
	EVP_CIPHER_free(s->algorithm);
	OPENSSL_cleanse(s, sizeof(*s));
	free(s);
}

/* HKDF-Expand to no more than one hash's length is one HMAC. */
static bool expand(const struct vb__seal *s, uint64_t epoch, uint8_t to[EVP_MAX_MD_SIZE])
{
	uint8_t info[sizeof(LABEL) - 1 + 1 + 8 + 1];
	uint8_t *at = info + sizeof(LABEL) - 1;

	memcpy(info, LABEL, sizeof(LABEL) - 1);
	*at++ = (uint8_t)s->cipher;
	put64_big(at, epoch);
	at[8] = 1; /* the first block of the expansion */
	return HMAC(EVP_sha512(), s->secret.bytes, sizeof(s->secret.bytes), info, sizeof(info), to,
		    NULL);
}

static bool set_key(struct vb__seal *s, uint64_t epoch, bool seals)
{
	uint8_t derived[EVP_MAX_MD_SIZE];
	bool done;

	s->keyed = false;
	done = expand(s, epoch, derived) &&
	       EVP_CipherInit_ex2(s->context, s->algorithm, derived, NULL, seals, NULL) == 1;
	if (done)
		memcpy(s->base, derived + KEY_BYTES, NONCE_BYTES);
	OPENSSL_cleanse(derived, sizeof(derived));
	s->epoch = epoch;
	s->keyed = done;
	return done;
}

/* Ready for the message of this turn. */
static bool begin(struct vb__seal *s, uint64_t turn, bool seals)
{
	uint64_t epoch = turn / VB__SEAL_TURNS;
	uint8_t nonce[NONCE_BYTES], count[8];

	if ((!s->keyed || s->epoch != epoch) && !set_key(s, epoch, seals))
		return false;
	put64_big(count, turn);
	memcpy(nonce, s->base, sizeof(nonce));
	for (size_t i = 0; i < sizeof(count); i++)
		nonce[NONCE_BYTES - sizeof(count) + i] ^= count[i];
	return EVP_CipherInit_ex2(s->context, NULL, NULL, nonce, seals, NULL) == 1;
}

/* Some of OpenSSL's ciphers take a piece of no bytes for the end. */
static bool pass(struct vb__seal *s, uint8_t *to, const uint8_t *from, size_t len)
{
	int n;

	return !len || EVP_CipherUpdate(s->context, to, &n, from, (int)len) == 1;
}

int vb__seal_close(struct vb__seal *s, const struct vb__sealed *m, struct vb_error *err)
{
	uint8_t *more = m->bytes + m->data_bytes, *tag = more + m->more_bytes;
	int n;

	if (begin(s, m->turn, true) && pass(s, m->bytes, m->data, m->data_bytes) &&
	    pass(s, more, more, m->more_bytes) && EVP_CipherFinal_ex(s->context, tag, &n) == 1 &&
	    EVP_CIPHER_CTX_ctrl(s->context, EVP_CTRL_AEAD_GET_TAG, VB__SEAL_TAG, tag) == 1)
		return 0;
	return complain("encrypt", err);
}

int vb__seal_open(struct vb__seal *s, uint64_t turn, uint8_t *bytes, size_t len,
		  struct vb_error *err)
{
	uint8_t *tag;
	int n;

	if (len < VB__SEAL_TAG)
		return VB_ERR_CORRUPT;
	tag = bytes + len - VB__SEAL_TAG;
	if (!begin(s, turn, false) ||
	    EVP_CIPHER_CTX_ctrl(s->context, EVP_CTRL_AEAD_SET_TAG, VB__SEAL_TAG, tag) != 1 ||
	    !pass(s, bytes, bytes, len - VB__SEAL_TAG))
		return complain("decrypt", err);
	if (EVP_CipherFinal_ex(s->context, tag, &n) == 1)
		return 0;
	ERR_clear_error();
	return VB_ERR_CORRUPT;
}

/* ---- Agreeing ---- */

/* AES itself and what GCM multiplies with. */
static bool has_fast_aes(void)
{
#if defined(__x86_64__)
	return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
	return (getauxval(AT_HWCAP) & (HWCAP_AES | HWCAP_PMULL)) == (HWCAP_AES | HWCAP_PMULL);
#else
	return false;
#endif
}

static bool is_there(enum vb__cipher cipher)
{
	EVP_CIPHER *algorithm = EVP_CIPHER_fetch(NULL, ciphers[cipher].algorithm, NULL);
	bool there = algorithm != NULL;

	EVP_CIPHER_free(algorithm);
	ERR_clear_error();
	return there;
}

unsigned vb__seal_wish(enum vb_encrypt encrypt)
{
	/* Some builds of OpenSSL have only what is in a standard, which ChaCha20 is not. */
	if (encrypt == VB_ENCRYPT_NEVER || !is_there(VB__CIPHER_AES))
		return 0;
	return VB__SEAL_CAN | (encrypt == VB_ENCRYPT_IF_ASKED ? 0 : VB__SEAL_WANTED) |
	       (has_fast_aes() || !is_there(VB__CIPHER_CHACHA) ? 0 : VB__SEAL_SLOW_AES);
}

unsigned vb__seal_agree(unsigned ours, unsigned theirs)
{
	unsigned either = ours | theirs;

	if (!(ours & theirs & VB__SEAL_CAN) || !(either & VB__SEAL_WANTED))
		return ours & VB__SEAL_CAN;
	return VB__SEAL_CAN | (either & (VB__SEAL_WANTED | VB__SEAL_SLOW_AES));
}

enum vb__cipher vb__seal_cipher(unsigned agreed)
{
	if (!(agreed & VB__SEAL_WANTED))
		return VB__CIPHER_NONE;
	return agreed & VB__SEAL_SLOW_AES ? VB__CIPHER_CHACHA : VB__CIPHER_AES;
}
