/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as bytes. */
#include "wire/token.h"

#include "wire/bytes.h"

#define MAGIC UINT32_C(0x4b544256) /* "VBTK" */
#define RIGHTS_ALL 7u

void vb__token_encode(uint8_t to[VB__TOKEN_LENGTH], const struct vb__token_fields *fields)
{
	vb__put32(to, MAGIC);
	vb__put32(to + 4, fields->rights);
	vb__put64(to + 8, fields->addr);
	vb__put64(to + 16, fields->key);
	vb__put64(to + 24, fields->len);
}

bool vb__token_decode(struct vb__token_fields *fields, const uint8_t from[VB__TOKEN_LENGTH])
{
	*fields = (struct vb__token_fields){
		.rights = vb__get32(from + 4),
		.addr = vb__get64(from + 8),
		.key = vb__get64(from + 16),
		.len = vb__get64(from + 24),
	};
	return vb__get32(from) == MAGIC && fields->rights && !(fields->rights & ~RIGHTS_ALL) &&
	       fields->len && fields->addr <= UINT64_MAX - fields->len;
}
