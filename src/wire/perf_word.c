/* SPDX-License-Identifier: Apache-2.0 */
/* Words of a measurement: magic 4, kind 1, reserved 3, then what the kind says, zeros up to 64; then the tail. */
#include "wire/perf_word.h"

#include <string.h>

#include "wire/bytes.h"

#define MAGIC 0x50425652u /* "RVBP" */
#define AT_BODY 8

#define FLAG_BOTH_WAYS 1u
#define FLAG_CHECK 2u

static void put_cell(uint8_t *to, const struct vb_perf_cell *cell)
{
	to[0] = (uint8_t)cell->op;
	to[1] = (uint8_t)cell->qp;
	to[2] = (uint8_t)cell->kind;
	to[3] = (uint8_t)cell->wait;
	vb__put32(to + 4, cell->bytes);
	vb__put32(to + 8, cell->depth);
	vb__put32(to + 12, cell->rails);
	vb__put32(to + 16, cell->duration_ms);
	vb__put32(to + 20, cell->count);
	to[24] = (cell->both_ways ? FLAG_BOTH_WAYS : 0) | (cell->check ? FLAG_CHECK : 0);
}

static bool get_cell(struct vb_perf_cell *cell, const uint8_t *from)
{
	if (from[0] > VB_PERF_CAS || from[1] > VB_PERF_UD || from[2] > VB_PERF_LATENCY ||
	    from[3] > VB_PERF_EVENT || from[24] > (FLAG_BOTH_WAYS | FLAG_CHECK))
		return false;
	*cell = (struct vb_perf_cell){
		.op = from[0],
		.qp = from[1],
		.kind = from[2],
		.wait = from[3],
		.bytes = vb__get32(from + 4),
		.depth = vb__get32(from + 8),
		.rails = vb__get32(from + 12),
		.duration_ms = vb__get32(from + 16),
		.count = vb__get32(from + 20),
		.both_ways = from[24] & FLAG_BOTH_WAYS,
		.check = from[24] & FLAG_CHECK,
	};
	return cell->bytes && cell->bytes <= VB_PERF_BYTES_MAX && cell->depth &&
	       cell->depth <= VB_PERF_DEPTH_MAX && cell->rails &&
	       cell->rails <= VB_PERF_RAILS_MAX && cell->duration_ms &&
	       cell->duration_ms <= VB_PERF_DURATION_MAX_MS;
}

static void put_figures(uint8_t *to, const struct vb__perf_word *word)
{
	vb__put64(to, word->figures.messages);
	vb__put64(to + 8, word->figures.arrived);
	vb__put64(to + 16, word->figures.elapsed_ns);
	vb__put64(to + 24, word->figures.cpu_ns);
	vb__put64(to + 32, word->figures.wall_ns);
	vb__put64(to + 40, word->figures.corrupt);
}

static void get_figures(struct vb__perf_word *word, const uint8_t *from)
{
	word->figures.messages = vb__get64(from);
	word->figures.arrived = vb__get64(from + 8);
	word->figures.elapsed_ns = vb__get64(from + 16);
	word->figures.cpu_ns = vb__get64(from + 24);
	word->figures.wall_ns = vb__get64(from + 32);
	word->figures.corrupt = vb__get64(from + 40);
}

size_t vb__perf_word_encode(uint8_t to[VB__PERF_WORD_MAX], const struct vb__perf_word *word)
{
	uint8_t *body = to + AT_BODY;

	memset(to, 0, VB__PERF_WORD);
	vb__put32(to, MAGIC);
	to[4] = (uint8_t)word->kind;
	switch (word->kind) {
	case VB__PERF_HELLO:
		vb__put16(body, word->hello.version);
		vb__put16(body + 2, word->hello.port);
		break;
	case VB__PERF_CELL:
		put_cell(body, &word->cell);
		break;
	case VB__PERF_READY:
		vb__put64(body, word->key);
		break;
	case VB__PERF_DONE:
	case VB__PERF_FIGURES:
		put_figures(body, word);
		break;
	case VB__PERF_REFUSED:
		vb__put32(body, (uint32_t)-word->code);
		break;
	case VB__PERF_BEGIN:
		break;
	}
	memcpy(to + VB__PERF_WORD, word->tail, word->tail_len);
	return VB__PERF_WORD + word->tail_len;
}

static bool get_body(struct vb__perf_word *word, const uint8_t *body)
{
	uint32_t code;

	switch (word->kind) {
	case VB__PERF_HELLO:
		word->hello.version = vb__get16(body);
		word->hello.port = vb__get16(body + 2);
		return true;
	case VB__PERF_CELL:
		return get_cell(&word->cell, body);
	case VB__PERF_READY:
		word->key = vb__get64(body);
		return true;
	case VB__PERF_BEGIN:
		return true;
	case VB__PERF_DONE:
	case VB__PERF_FIGURES:
		get_figures(word, body);
		return true;
	case VB__PERF_REFUSED:
		code = vb__get32(body);
		word->code = code && code <= (uint32_t)-VB_ERR_INTERRUPTED
				     ? (enum vb_err) - (int)code
				     : VB_ERR_PROTOCOL;
		return true;
	}
	return false;
}

/* A text is for people: what a terminal might obey is none. */
static bool is_text(const uint8_t *tail, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (tail[i] < 0x20 || tail[i] == 0x7f)
			return false;
	return true;
}

bool vb__perf_word_decode(struct vb__perf_word *word, const uint8_t *from, size_t len)
{
	if (len < VB__PERF_WORD || len > VB__PERF_WORD_MAX || vb__get32(from) != MAGIC)
		return false;
	*word = (struct vb__perf_word){ .kind = from[4], .tail_len = len - VB__PERF_WORD };
	memcpy(word->tail, from + VB__PERF_WORD, word->tail_len);
	if (!get_body(word, from + AT_BODY))
		return false;
	if (word->kind == VB__PERF_REFUSED)
		return is_text(word->tail, word->tail_len);
	return !word->tail_len || word->kind == VB__PERF_CELL || word->kind == VB__PERF_READY;
}

/* magic 3, rail 1, key 8, data 16, ledger 16, receives 4 */
void vb__perf_pass_encode(uint8_t to[VB__PERF_PASS], const struct vb__perf_pass *pass)
{
	vb__put32(to, (MAGIC & 0xffffffu) | (uint32_t)pass->rail << 24);
	vb__put64(to + 4, pass->key);
	vb__put64(to + 12, pass->data.addr);
	vb__put64(to + 20, pass->data.key);
	vb__put64(to + 28, pass->ledger.addr);
	vb__put64(to + 36, pass->ledger.key);
	vb__put32(to + 44, pass->receives);
}

bool vb__perf_pass_decode(struct vb__perf_pass *pass, const uint8_t *from, size_t len)
{
	if (len < VB__PERF_PASS || (vb__get32(from) & 0xffffffu) != (MAGIC & 0xffffffu))
		return false;
	*pass = (struct vb__perf_pass){
		.rail = from[3],
		.key = vb__get64(from + 4),
		.data = { vb__get64(from + 12), vb__get64(from + 20) },
		.ledger = { vb__get64(from + 28), vb__get64(from + 36) },
		.receives = vb__get32(from + 44),
	};
	return pass->rail < VB_PERF_RAILS_MAX && pass->receives;
}
