/* SPDX-License-Identifier: Apache-2.0 */
/* The hello on the wire: magic, version, kind and reason stay where they are in all versions. */
#include "wire/hello.h"

#include <string.h>

#include <verbatim/options.h>

#include "wire/bytes.h"

static const uint8_t magic[4] = { 'V', 'B', 'T', 'M' };

void vb__hello_encode(uint8_t to[VB__HELLO_BYTES], const struct vb__hello *hello)
{
	memset(to, 0, VB__HELLO_BYTES);
	memcpy(to, magic, sizeof(magic));
	vb__put16(to + 4, hello->version);
	to[6] = (uint8_t)hello->kind;
	to[7] = (uint8_t)hello->reason;
	vb__put32(to + 8, hello->max_message);
	vb__put16(to + 12, hello->depth);
	memcpy(to + 16, hello->token, VB__TOKEN_BYTES);
}

enum vb__hello_verdict vb__hello_decode(struct vb__hello *hello, const uint8_t *from, size_t len)
{
	if (len < VB__HELLO_BYTES || memcmp(from, magic, sizeof(magic)) != 0)
		return VB__HELLO_GARBAGE;
	*hello = (struct vb__hello){
		.kind = from[6],
		.version = vb__get16(from + 4),
		.reason = from[7],
		.max_message = vb__get32(from + 8),
		.depth = vb__get16(from + 12),
	};
	memcpy(hello->token, from + 16, VB__TOKEN_BYTES);
	if (hello->kind < VB__HELLO_OPEN || hello->kind > VB__HELLO_REFUSE)
		return VB__HELLO_GARBAGE;
	if (hello->version != VB__PROTOCOL_VERSION)
		return VB__HELLO_OTHER_VERSION;
	if (hello->kind == VB__HELLO_REFUSE)
		return VB__HELLO_GOOD;
	if (!hello->max_message || hello->max_message > VB_MESSAGE_MAX || !hello->depth ||
	    hello->depth > VB_DEPTH_MAX)
		return VB__HELLO_GARBAGE;
	return VB__HELLO_GOOD;
}
