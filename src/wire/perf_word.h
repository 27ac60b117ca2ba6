/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of a measurement: what one message of its control channel says, and
 * what two data connections of it tell each other while connecting. See
 * docs/protocol.md. Everything is bounded here; what a device can do is not known here.
 */
#ifndef VB_WIRE_PERF_WORD_H
#define VB_WIRE_PERF_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <verbatim/perf.h>

#define VB__PERF_VERSION 1u
#define VB__PERF_WORD 64u      /* all words but those with a text or an address */
#define VB__PERF_TAIL_MAX 400u /* a text or an address behind it */
#define VB__PERF_WORD_MAX (VB__PERF_WORD + VB__PERF_TAIL_MAX)

enum vb__perf_word_kind {
	VB__PERF_HELLO = 1, /* both: `version`; the server's with the `port` of its data listener */
	VB__PERF_CELL = 2,  /* client: measure this; the tail is its datagram address, if any */
	VB__PERF_READY =
		3, /* server: go on; `key` is what the data connections show, the tail its address */
	VB__PERF_BEGIN = 4,   /* server: all connections stand, begin */
	VB__PERF_DONE = 5,    /* client: `messages` were sent, that was all */
	VB__PERF_FIGURES = 6, /* server: what it has seen and done */
	VB__PERF_REFUSED = 7, /* server: `code` and the tail say why not */
};

struct vb__perf_word {
	enum vb__perf_word_kind kind;
	union {
		struct {
			uint16_t version;
			uint16_t port;
		} hello;
		struct vb_perf_cell cell; /* no field is a default's zero, but `count` */
		uint64_t key;
		struct {
			uint64_t messages;   /* sent and completed */
			uint64_t arrived;    /* received, where that can be known */
			uint64_t elapsed_ns; /* of its own sending */
			uint64_t cpu_ns, wall_ns;
			uint64_t corrupt;
		} figures; /* also of DONE, with `messages` only */
		enum vb_err code;
	};
	uint8_t tail[VB__PERF_TAIL_MAX];
	size_t tail_len;
};

/* Returns how many bytes it takes. */
size_t vb__perf_word_encode(uint8_t to[VB__PERF_WORD_MAX], const struct vb__perf_word *word);

/* False: it makes no sense. A cell is within the limits of perf.h, and what vb_perf_check may say of it is not said. */
bool vb__perf_word_decode(struct vb__perf_word *word, const uint8_t *from, size_t len);

/* What goes with connecting and accepting: where the other side's memory is. */
#define VB__PERF_PASS 48u

struct vb__perf_pass {
	uint64_t key;
	uint8_t rail;
	uint32_t receives; /* posted at once */
	struct {
		uint64_t addr, key;
	} data, ledger;
};

void vb__perf_pass_encode(uint8_t to[VB__PERF_PASS], const struct vb__perf_pass *pass);

/* `len` may be more: fabrics pad. */
bool vb__perf_pass_decode(struct vb__perf_pass *pass, const uint8_t *from, size_t len);

#endif
