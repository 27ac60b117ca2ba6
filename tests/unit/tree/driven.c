/* SPDX-License-Identifier: Apache-2.0 */
#include "driven.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct driven driven_open(struct kit *kit, const char *path, unsigned keep)
{
	return (struct driven){ .kit = kit,
				.options = { .keep = keep,
					     .recursive = true,
					     .event = kit_event,
					     .event_arg = kit },
				.paths = { path },
				.room = ROOM };
}

void driven_start(struct driven *d)
{
	struct vb_error err = { .code = VB_OK };

	d->buffer = aligned_alloc(4096, ROOM);
	assert_int_equal(vb__tree_source_open(d->paths, d->paths[1] ? 2 : 1, &d->options,
					      VB_DIRECT_AUTO, d->kit->cancel_fd, &d->report,
					      &d->source, &err),
			 0);
	assert_int_equal(d->source->total_bytes, UINT64_MAX);
}

void driven_end(struct driven *d)
{
	d->source->ops->close(d->source);
	free(d->buffer);
}

int driven_next(struct driven *d)
{
	struct vb_error err = { .code = VB_OK };
	int rc;

	alarm(HANGS_S);
	rc = d->source->ops->next(d->source, d->buffer, d->room, &d->block, &err);
	alarm(0);
	if (rc > 0) {
		assert_true(d->block.length > 0);
		assert_true(vb__block_data_bytes(&d->block) <= d->room);
	}
	return rc;
}

void driven_fill(struct driven *d)
{
	struct vb_error err = { .code = VB_OK };

	assert_int_equal(d->source->ops->fill(d->source, d->buffer, &d->block, &err), 0);
	assert_true(d->block.length > 0 && vb__block_data_bytes(&d->block) <= d->room);
}

void driven_take(struct driven *d, uint32_t flags)
{
	assert_int_equal(driven_next(d), 1);
	driven_fill(d);
	assert_int_equal(d->block.flags, flags);
}

void driven_note_offers(struct driven *d)
{
	struct vb__offer offer;
	size_t at = 0;

	assert_int_equal(d->block.offset, d->offers_offset);
	d->offers_offset += d->block.length;
	while (at < d->block.length) {
		assert_true(vb__offer_decode(&offer, d->buffer, d->block.length, &at));
		d->directories += offer.kind == VB__OFFER_DIRECTORY;
		d->listed += offer.kind == VB__OFFER_LISTED;
		d->missed += offer.kind == VB__OFFER_MISSED;
		if (offer.kind == VB__OFFER_LISTED || offer.kind == VB__OFFER_MISSED)
			continue;
		assert_int_equal(offer.number, ++d->last_number);
		if (offer.kind == VB__OFFER_FILE)
			d->last_file = offer;
	}
}

static void take_more_offers(struct driven *d)
{
	driven_take(d, VB__BLOCK_OFFERS);
	driven_note_offers(d);
}

void driven_take_first_offers(struct driven *d, uint32_t number)
{
	while (d->last_number < number)
		take_more_offers(d);
	assert_int_equal(d->last_number, number);
}

void driven_take_offers(struct driven *d, uint32_t number)
{
	driven_take_first_offers(d, number);
	while (d->listed < d->directories)
		take_more_offers(d);
	assert_int_equal(d->last_number, number);
}

int driven_hear(struct driven *d, struct vb__answer answer)
{
	uint8_t note[VB__ANSWER_MAX];
	struct vb_error err = { .code = VB_OK };
	int rc = d->source->ops->hear(d->source, note,
				      vb__answer_encode(note, sizeof(note), &answer), &err);

	assert_int_equal(rc, err.code);
	assert_int_equal(rc != 0, err.cause[0] != '\0');
	return rc;
}

int driven_want(struct driven *d, uint32_t number, uint32_t count)
{
	return driven_hear(d, (struct vb__answer){
				      .kind = VB__ANSWER_WANT, .number = number, .count = count });
}

int driven_want_part(struct driven *d, uint32_t number, uint64_t offset, uint64_t length)
{
	return driven_hear(d, (struct vb__answer){ .kind = VB__ANSWER_PART,
						   .number = number,
						   .offset = offset,
						   .length = length });
}

int driven_settle(struct driven *d, uint32_t number)
{
	return driven_hear(d, (struct vb__answer){ .kind = VB__ANSWER_SETTLED, .number = number });
}

struct vb__parcel driven_parcel_at(struct driven *d, size_t *at)
{
	struct vb__parcel parcel;

	assert_int_equal(d->block.flags, VB__BLOCK_PARCELS);
	assert_true(vb__parcel_decode(&parcel, d->buffer, d->block.length, at));
	return parcel;
}

struct vb__parcel driven_only_parcel(struct driven *d)
{
	size_t at = 0;
	struct vb__parcel parcel = driven_parcel_at(d, &at);

	assert_int_equal(at, d->block.length);
	return parcel;
}

void assert_bytes(const uint8_t *data, size_t len, uint64_t offset)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] != byte_at(offset + i))
			fail_msg("byte %llu is wrong", (unsigned long long)(offset + i));
}

void assert_words(const struct vb__parcel *parcel, const char *words)
{
	assert_int_equal(parcel->kind, VB__PARCEL_MISSED);
	assert_int_equal(parcel->data.len, strlen(words));
	assert_memory_equal(parcel->data.data, words, strlen(words));
}
