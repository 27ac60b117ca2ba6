/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: where they lie in memory, and the list of the free ones. */
#include "channel/slots.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "wire/packet.h"

#define CACHE_LINE 64u

static size_t whole_pages(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* What holds no messages needs no page of its own. */
static size_t stride_of(const struct vb__slots *s)
{
	return s->room > VB__PACKET_TRAILER ? whole_pages(s->room) : CACHE_LINE;
}

static int map(struct vb__slots *s, struct vb_error *err)
{
	size_t stride = stride_of(s);

	s->memory_bytes = whole_pages(s->count * stride);
	s->memory = mmap(NULL, s->memory_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s->memory == MAP_FAILED) {
		s->memory = NULL;
		vb__fail_errno(err, errno, "mmap", "message buffers");
		vb__error_hint(err, "%zu bytes: choose a smaller depth or message size",
			       s->memory_bytes);
		return VB_ERR_NOMEM;
	}
	for (unsigned i = 0; i < s->count; i++) {
		s->slot[i].number = i;
		s->slot[i].bytes = s->memory + i * stride;
		vb__slot_give_back(s, &s->slot[i]);
	}
	return 0;
}

int vb__slots_open(struct vb__slots *s, struct vb__ep *ep, unsigned count, size_t payload_bytes,
		   struct vb_error *err)
{
	int rc;

	*s = (struct vb__slots){ .count = count, .room = payload_bytes + VB__PACKET_TRAILER };
	s->slot = calloc(count, sizeof(*s->slot));
	if (!s->slot)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	rc = map(s, err);
	if (rc == 0 && !(ep->caps & VB__CAP_ANY_BUFFER))
		rc = vb__mr_open(ep, s->memory, s->memory_bytes, VB__ACCESS_LOCAL, &s->mr, err);
	if (rc)
		vb__slots_close(s);
	return rc;
}

struct vb__slot *vb__slot_take(struct vb__slots *s)
{
	struct vb__slot *slot = s->free;

	if (!slot)
		return NULL;
	s->free = slot->next_free;
	slot->filled = 0;
	return slot;
}

void vb__slot_give_back(struct vb__slots *s, struct vb__slot *slot)
{
	slot->next_free = s->free;
	s->free = slot;
}

void vb__slots_close(struct vb__slots *s)
{
	if (s->memory)
		munmap(s->memory, s->memory_bytes);
	free(s->slot);
	*s = (struct vb__slots){ .count = 0 };
}
