/* SPDX-License-Identifier: Apache-2.0 */
/* Words: what two sides say to each other about a transfer. See docs/protocol.md. */
#ifndef VB_WIRE_WORDS_H
#define VB_WIRE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <verbatim/error.h>

/* Room enough for any words. */
#define VB__WORDS_MAX 2048u
#define VB__NOTE_ROOM 2000u

enum vb__words_kind {
	VB__WORDS_TERMS = 1,	/* first, from both: what I want to do, and my limits */
	VB__WORDS_READY = 2,	/* from the side that listens: the rails may connect */
	VB__WORDS_PROGRESS = 3, /* now and then, from both */
	VB__WORDS_END = 4,	/* from the sender: that was all, check it */
	VB__WORDS_VERDICT = 5, /* last: from the receiver how it went, or from either what failed */
	VB__WORDS_NOTE = 6,    /* of a tree's receiver: answers, see wire/offer.h */
};

/* Besides the levels that may be asked for. */
enum vb__pack_wish {
	VB__PACK_IF_ASKED = 0, /* of an answer: blocks are not packed */
	VB__PACK_NEVER = 254,
	VB__PACK_AUTO = 255,
};

struct vb__terms {
	bool sends; /* the one who says this sends, the other one receives */
	bool sparse;
	bool tree;     /* offers and answers, not one file */
	bool has_mode; /* there are permissions, which may be none at all: */
	uint16_t mode;
	uint16_t rails;
	uint32_t block_bytes;
	uint32_t window;
	uint64_t bytes_per_second; /* 0: no limit */
	uint64_t total_bytes;	   /* UINT64_MAX: not known */
	uint8_t seal;		   /* see transfer/seal.h; of an answer what holds */
	uint8_t pack;		   /* a level or one of the below, likewise */
};

/* So far, or in all. */
struct vb__sum {
	uint64_t bytes, blocks;
	uint64_t digest; /* the sum of all blocks' hashes */
	uint8_t filled;	 /* PROGRESS: percent of the buffers in use */
};

struct vb__words {
	enum vb__words_kind kind;
	union {
		struct vb__terms terms;
		struct vb__sum sum;	 /* PROGRESS, END */
		struct vb_error verdict; /* code VB_OK: all is well */
		struct {
			size_t len;	      /* up to VB__NOTE_ROOM */
			const uint8_t *bytes; /* decoded: within what was decoded */
		} note;
	};
};

/* Returns the length. Texts that are too long are cut. */
size_t vb__words_encode(uint8_t to[VB__WORDS_MAX], const struct vb__words *words);

/* False: they make no sense. Texts come back without control characters. */
bool vb__words_decode(struct vb__words *words, const uint8_t *from, size_t len);

#endif
