/* SPDX-License-Identifier: Apache-2.0 */
/* See parley_pair.h. */
#include "parley_pair.h"

#include <string.h>

#include <openssl/err.h>

struct vb__secret right_secret, wrong_secret;

int make_secrets(void **state)
{
	(void)state;
	return vb__secret_from_key(&right_secret, "the key", 7, NULL) ||
	       vb__secret_from_key(&wrong_secret, "another key", 11, NULL);
}

void pair_open(struct pair *pair, const struct vb__secret *client, const struct vb__secret *server)
{
	memset(pair, 0, sizeof(*pair));
	mock_channel_pair(&pair->end[CLIENT].channel, &pair->end[SERVER].channel);
	assert_int_equal(vb__parley_open(&pair->end[CLIENT].channel, client, VB__PARLEY_CONNECTED,
					 &pair->end[CLIENT].parley, NULL),
			 0);
	assert_int_equal(vb__parley_open(&pair->end[SERVER].channel, server, VB__PARLEY_ACCEPTED,
					 &pair->end[SERVER].parley, NULL),
			 0);
	pair->end[CLIENT].proof = pair->end[SERVER].proof = VB_ERR_AGAIN;
}

/* An end that is done may still have to be told of a failure, but not by proving. */
static bool step(struct end *end)
{
	unsigned sent = end->channel.sent, waiting = end->channel.waiting;

	if (end->proof != VB_ERR_AGAIN)
		return false;
	end->proof = vb__parley_prove(end->parley, &end->err);
	assert_int_equal(ERR_peek_error(), 0);
	return end->proof != VB_ERR_AGAIN || end->channel.sent != sent ||
	       end->channel.waiting != waiting;
}

bool pair_prove(struct pair *pair)
{
	bool further;

	do {
		further = step(&pair->end[CLIENT]);
		further |= step(&pair->end[SERVER]);
	} while (further);
	return pair->end[CLIENT].proof == 0 && pair->end[SERVER].proof == 0;
}

void pair_agree(struct pair *pair)
{
	pair_open(pair, &right_secret, &right_secret);
	assert_true(pair_prove(pair));
}

void assert_unproven(struct end *end, enum vb_err code)
{
	struct vb_error again;
	uint8_t key[32];

	assert_string_equal(vb_err_name(end->proof), vb_err_name(code));
	assert_int_equal(end->err.code, code);
	assert_string_not_equal(end->err.cause, "");
	assert_int_equal(vb__parley_prove(end->parley, &again), code);
	assert_memory_equal(&again, &end->err, sizeof(again));
	assert_int_equal(vb__parley_say(end->parley, "x", 1, NULL), code);
	assert_hears_nothing(end, code);
	assert_int_equal(vb__parley_derive(end->parley, "data", 0, key, sizeof(key), NULL), code);
}

void assert_says(struct end *end, const void *words, size_t len)
{
	assert_int_equal(vb__parley_say(end->parley, words, len, &end->err), 0);
	assert_int_equal(end->err.code, 0);
}

void assert_hears(struct end *end, const void *words, size_t len)
{
	const void *heard;

	assert_int_equal(vb__parley_hear(end->parley, &heard, &end->err), len);
	assert_int_equal(end->err.code, 0);
	assert_memory_equal(heard, words, len);
}

void assert_hears_nothing(struct end *end, enum vb_err code)
{
	const void *heard = NULL;
	ssize_t n = vb__parley_hear(end->parley, &heard, &end->err);

	assert_true(n < 0);
	assert_string_equal(vb_err_name((enum vb_err)n), vb_err_name(code));
	assert_int_equal(end->err.code, code == VB_ERR_AGAIN ? VB_OK : code);
	assert_null(heard);
	assert_int_equal(ERR_peek_error(), 0);
}

void pair_derive(struct end *end, const char *label, uint32_t number, uint8_t to[32])
{
	assert_int_equal(vb__parley_derive(end->parley, label, number, to, 32, &end->err), 0);
}

void pair_close(struct pair *pair)
{
	for (int i = 0; i < 2; i++)
		vb__parley_close(pair->end[i].parley);
	for (int i = 0; i < 2; i++)
		mock_channel_drain(&pair->end[i].channel);
}
