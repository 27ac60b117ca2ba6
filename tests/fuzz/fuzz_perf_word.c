/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes words of a measurement: what a server believes of any client, and what the two tell each other while connecting. */
#include <string.h>

#include "fuzz_target.h"
#include "wire/perf_word.h"

static void try_pass(const uint8_t *data, size_t size)
{
	uint8_t bytes[VB__PERF_PASS];
	struct vb__perf_pass pass;

	if (!vb__perf_pass_decode(&pass, data, size))
		return;
	HOLDS(size >= VB__PERF_PASS && pass.rail < VB_PERF_RAILS_MAX && pass.receives);
	vb__perf_pass_encode(bytes, &pass);
	HOLDS(memcmp(bytes, data, VB__PERF_PASS) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t bytes[VB__PERF_WORD_MAX];
	struct vb__perf_word word, again;
	size_t len;

	try_pass(data, size);
	if (!vb__perf_word_decode(&word, data, size))
		return 0;
	HOLDS(word.tail_len == size - VB__PERF_WORD && word.tail_len <= VB__PERF_TAIL_MAX);
	if (word.kind == VB__PERF_CELL) {
		HOLDS(word.cell.bytes && word.cell.bytes <= VB_PERF_BYTES_MAX);
		HOLDS(word.cell.depth && word.cell.depth <= VB_PERF_DEPTH_MAX);
		HOLDS(word.cell.rails && word.cell.rails <= VB_PERF_RAILS_MAX);
		HOLDS(word.cell.op <= VB_PERF_CAS && word.cell.qp <= VB_PERF_UD);
	}
	if (word.kind == VB__PERF_REFUSED)
		HOLDS(word.code < VB_OK && word.code >= VB_ERR_INTERRUPTED);
	/* What was understood says the same when it is said again. */
	len = vb__perf_word_encode(bytes, &word);
	HOLDS(len == size && vb__perf_word_decode(&again, bytes, len));
	HOLDS(memcmp(&again, &word, sizeof(word)) == 0);
	return 0;
}

size_t fuzz_sample(uint8_t *to, size_t room, uint64_t seed)
{
	struct vb__perf_word word = { .kind = VB__PERF_HELLO + (unsigned)(seed % 7) };
	uint8_t bytes[VB__PERF_WORD_MAX];
	size_t len;

	if (word.kind == VB__PERF_CELL)
		word.cell = (struct vb_perf_cell){ .op = seed / 7 % 6,
						   .qp = seed / 42 % 3,
						   .bytes = 1 + (uint32_t)(seed >> 20) % 65536,
						   .depth = 16,
						   .rails = 1,
						   .duration_ms = 500 };
	if (word.kind == VB__PERF_REFUSED)
		word.code = VB_ERR_TOO_BIG;
	if (word.kind == VB__PERF_REFUSED || word.kind == VB__PERF_CELL) {
		word.tail_len = seed / 7 % 40;
		memset(word.tail, 'x', word.tail_len);
	}
	len = vb__perf_word_encode(bytes, &word);
	HOLDS(len <= room);
	memcpy(to, bytes, len);
	return len;
}
