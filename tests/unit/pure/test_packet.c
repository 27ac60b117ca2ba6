/* SPDX-License-Identifier: Apache-2.0 */
/* Packets and the frames inside: round trips, and everything a peer could lie about. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dice.h"
#include "suite.h"
#include "wire/bytes.h"
#include "wire/packet.h"

/* Decodes a packet of `received` bytes with this trailer, in memory of just that size. */
static bool decode(struct vb__packet *got, const struct vb__packet *packet, size_t received)
{
	uint8_t *wire = malloc(received);
	bool good;

	assert_non_null(wire);
	vb__packet_encode(wire + received - VB__PACKET_TRAILER, packet);
	good = vb__packet_decode(got, wire, received);
	free(wire);
	return good;
}

static bool decodes(struct vb__packet packet, size_t received)
{
	struct vb__packet got;

	return decode(&got, &packet, received);
}

static void packet_comes_back_as_it_was_encoded(void **state)
{
	static const struct vb__packet packets[] = {
		{ VB__PACKET_DATA, 0, 0, 1, 0, 0 },
		{ VB__PACKET_DATA, 0, 1024, 1, 1u << 20, 1 },
		{ VB__PACKET_DATA, 0, 1, 1, 13, 1 },
		{ VB__PACKET_DATA, VB__PACKET_FRAMED, 65535, 1, 8, UINT32_MAX },
		{ VB__PACKET_DATA, VB__PACKET_FRAMED, 7, 0x01020304, 0x08101821, 0x10203040 },
		{ VB__PACKET_END, 0, 1, 0, 0, 2 },
		{ VB__PACKET_CREDIT, 0, 2, 0, 0, UINT32_MAX - 1 },
		{ VB__PACKET_END_SEEN, 0, 3, 0, 0, 3 },
		{ VB__PACKET_CLOSING, 0, 65535, 0, 0, 0x80000000 },
		{ VB__PACKET_ACCESSING, 0, 0, 0, 0, 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(packets); i++) {
		struct vb__packet got;

		assert_true(decode(&got, &packets[i], packets[i].payload + VB__PACKET_TRAILER));
		assert_int_equal(got.kind, packets[i].kind);
		assert_int_equal(got.flags, packets[i].flags);
		assert_int_equal(got.credits, packets[i].credits);
		assert_int_equal(got.messages, packets[i].messages);
		assert_int_equal(got.payload, packets[i].payload);
		assert_int_equal(got.seen, packets[i].seen);
	}
}

static void trailer_has_the_documented_layout(void **state)
{
	static const uint8_t expected[VB__PACKET_TRAILER] = { 1, 1, 2, 1, 4,  3,  2,  1,
							      8, 7, 6, 5, 12, 11, 10, 9 };
	struct vb__packet packet = { VB__PACKET_DATA, VB__PACKET_FRAMED, 0x0102,
				     0x01020304,      0x05060708,	 0x090a0b0c };
	uint8_t wire[VB__PACKET_TRAILER];

	(void)state;
	memset(wire, 0xff, sizeof(wire));
	vb__packet_encode(wire, &packet);
	assert_memory_equal(wire, expected, sizeof(wire));
}

static void every_truncated_trailer_is_refused(void **state)
{
	struct vb__packet end = { .kind = VB__PACKET_END }, got;
	uint8_t wire[VB__PACKET_TRAILER];

	(void)state;
	vb__packet_encode(wire, &end);
	for (size_t len = 0; len < sizeof(wire); len++) {
		uint8_t *cut = malloc(len ? len : 1);

		assert_non_null(cut);
		memcpy(cut, wire, len);
		assert_false(vb__packet_decode(&got, cut, len));
		free(cut);
	}
}

static void payload_must_be_as_long_as_the_trailer_says(void **state)
{
	struct vb__packet data = { .kind = VB__PACKET_DATA, .messages = 1, .payload = 100 };

	(void)state;
	for (size_t received = VB__PACKET_TRAILER; received < 300; received++)
		assert_int_equal(decodes(data, received), received == VB__PACKET_TRAILER + 100);
	data.payload = UINT32_MAX;
	assert_false(decodes(data, VB__PACKET_TRAILER));
}

static void a_length_that_is_equal_in_its_lower_32_bits_is_refused(void **state)
{
	struct vb__packet data = { .kind = VB__PACKET_DATA, .messages = 1, .payload = 100 }, got;
	size_t received = ((size_t)1 << 32) + 100 + VB__PACKET_TRAILER;
	uint8_t *wire = mmap(NULL, received, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)state;
	assert_ptr_not_equal(wire, MAP_FAILED);
	vb__packet_encode(wire + received - VB__PACKET_TRAILER, &data);
	assert_false(vb__packet_decode(&got, wire, received));
	munmap(wire, received);
}

static bool is_legal(unsigned kind, unsigned flags, uint32_t messages, uint32_t payload)
{
	switch (kind) {
	case VB__PACKET_DATA:
		if (flags == VB__PACKET_FRAMED)
			return messages >= 1 && messages <= payload / VB__FRAME_HEADER;
		return flags == 0 && messages == 1;
	case VB__PACKET_END:
	case VB__PACKET_CREDIT:
	case VB__PACKET_END_SEEN:
	case VB__PACKET_CLOSING:
	case VB__PACKET_ACCESSING:
		return !flags && !messages && !payload;
	default:
		return false;
	}
}

static void each_kind_has_its_own_contents_and_only_data_has_flags(void **state)
{
	static const uint32_t messages[] = { 0, 1, 2, 3, UINT32_MAX };
	static const uint32_t payloads[] = { 0, 1, 7, 8, 15, 16, 24 };

	(void)state;
	for (unsigned kind = 0; kind < 256; kind++)
		for (unsigned flags = 0; flags < 256; flags++)
			for (size_t m = 0; m < COUNT(messages); m++)
				for (size_t p = 0; p < COUNT(payloads); p++) {
					struct vb__packet packet = { kind, (uint8_t)flags, 3,
								     messages[m], payloads[p] };

					assert_int_equal(
						decodes(packet, VB__PACKET_TRAILER + payloads[p]),
						is_legal(kind, flags, messages[m], payloads[p]));
				}
}

static void random_runs_of_frames_come_back_whole_and_in_order(void **state)
{
	struct dice dice = { .state = 1 };

	(void)state;
	for (int run = 0; run < 500; run++) {
		unsigned count = 1 + dice_throw(&dice, 20), lens[20];
		uint8_t *payload, *message;
		const uint8_t *found;
		size_t size = 0, at = 0, len;

		for (unsigned i = 0; i < count; i++) {
			lens[i] = dice_throw(&dice, 4) ? dice_throw(&dice, 100) : 0;
			size += vb__frame_room(lens[i]);
		}
		payload = malloc(size);
		assert_non_null(payload);
		for (unsigned i = 0; i < count; i++) {
			message = vb__frame_begin(payload + at, lens[i]);
			assert_ptr_equal(message, payload + at + VB__FRAME_HEADER);
			memset(message, (int)i + 1, lens[i]);
			at += vb__frame_room(lens[i]);
		}
		at = 0;
		for (unsigned i = 0; i < count; i++) {
			assert_int_equal(at % 8, 0);
			assert_true(vb__frame_next(payload, size, &at, &found, &len));
			assert_int_equal(len, lens[i]);
			for (size_t b = 0; b < len; b++)
				assert_int_equal(found[b], i + 1);
		}
		assert_int_equal(at, size);
		assert_false(vb__frame_next(payload, size, &at, &found, &len));
		assert_int_equal(at, size);
		free(payload);
	}
}

static void a_frame_clears_its_header_and_padding_and_nothing_else(void **state)
{
	(void)state;
	for (size_t len = 0; len <= 64; len++) {
		size_t room = vb__frame_room(len);
		uint8_t buf[128];

		memset(buf, 0xee, sizeof(buf));
		memset(vb__frame_begin(buf, len), 0xdd, len);
		assert_int_equal(room % 8, 0);
		assert_in_range(room, VB__FRAME_HEADER + len, VB__FRAME_HEADER + len + 7);
		assert_int_equal(vb__get32(buf), len);
		assert_int_equal(vb__get32(buf + 4), 0);
		for (size_t i = VB__FRAME_HEADER + len; i < room; i++)
			assert_int_equal(buf[i], 0);
		for (size_t i = room; i < sizeof(buf); i++)
			assert_int_equal(buf[i], 0xee);
	}
}

static void a_frame_that_claims_more_than_there_is_is_refused(void **state)
{
	static const uint32_t claims[] = { 17,	       24,	   0x7fffffff, 0x80000000,
					   0xfffffff0, 0xfffffff8, 0xfffffff9, 0xffffffff };
	uint8_t payload[24] = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(claims); i++) {
		const uint8_t *found = NULL;
		size_t at = 0, len = 0;

		vb__put32(payload, claims[i]);
		assert_false(vb__frame_next(payload, sizeof(payload), &at, &found, &len));
		assert_int_equal(at, 0);
		assert_null(found);
	}
}

static void a_frame_without_its_padding_is_refused(void **state)
{
	(void)state;
	for (size_t message = 0; message <= 16; message++)
		for (size_t size = 0; size <= 32; size++) {
			uint8_t whole[32] = { 0 }, *cut = malloc(size ? size : 1);
			const uint8_t *found;
			size_t at = 0, len;

			assert_non_null(cut);
			vb__frame_begin(whole, message);
			memcpy(cut, whole, size);
			assert_int_equal(vb__frame_next(cut, size, &at, &found, &len),
					 size >= vb__frame_room(message));
			free(cut);
		}
}

static void a_position_at_or_beyond_the_end_has_no_frame(void **state)
{
	static const size_t positions[] = { 16, 17, 24, SIZE_MAX - 7, SIZE_MAX };
	uint8_t payload[16] = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(positions); i++) {
		const uint8_t *found;
		size_t at = positions[i], len;

		assert_false(vb__frame_next(payload, sizeof(payload), &at, &found, &len));
		assert_int_equal(at, positions[i]);
	}
}

static void integers_survive_any_alignment(void **state)
{
	uint8_t buf[16];

	(void)state;
	for (size_t at = 0; at < 8; at++) {
		vb__put16(buf + at, 0xfedc);
		assert_int_equal(vb__get16(buf + at), 0xfedc);
		vb__put32(buf + at, 0xfedcba98);
		assert_int_equal(vb__get32(buf + at), 0xfedcba98);
		assert_int_equal(buf[at], 0x98);
	}
}

static void message_with_immediate_data_says_what_its_trailer_would(void **state)
{
	static const uint32_t before[] = { 0, 254, 255, 256, UINT32_MAX, UINT32_MAX - 1 };
	struct vb__packet got;

	(void)state;
	for (size_t i = 0; i < COUNT(before); i++)
		for (uint32_t further = 0; further < 3; further++) {
			struct vb__packet packet = { VB__PACKET_DATA,	 0, 777, 1, 5000,
						     before[i] + further };

			assert_true(vb__packet_from_immediate(&got, vb__packet_immediate(&packet),
							      5000, before[i]));
			assert_int_equal(got.kind, VB__PACKET_DATA);
			assert_int_equal(got.messages, 1);
			assert_int_equal(got.credits, 777);
			assert_int_equal(got.payload, 5000);
			assert_int_equal(got.seen, packet.seen);
		}
	assert_false(vb__packet_from_immediate(&got, UINT32_C(1) << 24, 0, 0));
}

static void notice_is_a_number_and_no_message(void **state)
{
	struct vb__packet notice = { VB__PACKET_DATA, VB__PACKET_NOTICE, 0, 0, 4, 0 };
	uint8_t bytes[VB__NOTICE_BYTES];

	(void)state;
	vb__notice_encode(bytes, 0xfedcba98);
	assert_int_equal(vb__notice_number(bytes), 0xfedcba98);
	assert_true(decodes(notice, 4 + VB__PACKET_TRAILER));
	notice.messages = 1;
	assert_false(decodes(notice, 4 + VB__PACKET_TRAILER));
	notice.messages = 0;
	notice.payload = 5;
	assert_false(decodes(notice, 5 + VB__PACKET_TRAILER));
	notice.payload = 4;
	notice.flags |= VB__PACKET_FRAMED;
	assert_false(decodes(notice, 4 + VB__PACKET_TRAILER));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet_comes_back_as_it_was_encoded),
		cmocka_unit_test(trailer_has_the_documented_layout),
		cmocka_unit_test(every_truncated_trailer_is_refused),
		cmocka_unit_test(payload_must_be_as_long_as_the_trailer_says),
		cmocka_unit_test(a_length_that_is_equal_in_its_lower_32_bits_is_refused),
		cmocka_unit_test(each_kind_has_its_own_contents_and_only_data_has_flags),
		cmocka_unit_test(random_runs_of_frames_come_back_whole_and_in_order),
		cmocka_unit_test(a_frame_clears_its_header_and_padding_and_nothing_else),
		cmocka_unit_test(a_frame_that_claims_more_than_there_is_is_refused),
		cmocka_unit_test(a_frame_without_its_padding_is_refused),
		cmocka_unit_test(a_position_at_or_beyond_the_end_has_no_frame),
		cmocka_unit_test(integers_survive_any_alignment),
		cmocka_unit_test(message_with_immediate_data_says_what_its_trailer_would),
		cmocka_unit_test(notice_is_a_number_and_no_message),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
