/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: where they lie, who has them, and what is registered. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "channel/slots.h"
#include "suite.h"
#include "wire/packet.h"

#define COUNT_MAX 16u

static struct vb__mr mr;
static struct {
	int calls, rc;
	void *addr;
	size_t len;
	unsigned access;
} registered;

static int register_memory(struct vb__ep *ep, void *addr, size_t len, unsigned access,
			   struct vb__mr **out, struct vb_error *err)
{
	(void)ep;
	registered.calls++;
	registered.addr = addr;
	registered.len = len;
	registered.access = access;
	*out = &mr;
	return registered.rc ? vb__fail_errno(err, registered.rc, "register", NULL) : 0;
}

static const struct vb__fabric fabric = { .name = "fake", .register_memory = register_memory };
static struct vb__ep ep;

static int begin(void **state)
{
	(void)state;
	memset(&registered, 0, sizeof(registered));
	ep = (struct vb__ep){ .fabric = &fabric, .caps = VB__CAP_ANY_BUFFER };
	return 0;
}

static void open_slots(struct vb__slots *s, unsigned count, size_t payload)
{
	struct vb_error err = { .code = VB_OK };

	assert_int_equal(vb__slots_open(s, &ep, count, payload, &err), 0);
}

static void every_slot_can_be_taken_once_and_then_there_is_none(void **state)
{
	struct vb__slot *taken[COUNT_MAX];
	struct vb__slots s;

	(void)state;
	open_slots(&s, COUNT_MAX, 100);
	for (unsigned i = 0; i < COUNT_MAX; i++) {
		taken[i] = vb__slot_take(&s);
		assert_non_null(taken[i]);
		assert_ptr_equal(taken[i], &s.slot[taken[i]->number]);
		for (unsigned k = 0; k < i; k++)
			assert_int_not_equal(taken[k]->number, taken[i]->number);
	}
	assert_null(vb__slot_take(&s));
	vb__slots_close(&s);
}

static void what_is_given_back_can_be_taken_again(void **state)
{
	struct vb__slot *a, *b;
	struct vb__slots s;

	(void)state;
	open_slots(&s, 2, 100);
	a = vb__slot_take(&s);
	b = vb__slot_take(&s);
	vb__slot_give_back(&s, a);
	assert_ptr_equal(vb__slot_take(&s), a);
	assert_null(vb__slot_take(&s));
	vb__slot_give_back(&s, b);
	vb__slot_give_back(&s, a);
	assert_non_null(vb__slot_take(&s));
	assert_non_null(vb__slot_take(&s));
	assert_null(vb__slot_take(&s));
	vb__slots_close(&s);
}

static void slots_for_messages_start_at_pages_and_all_lie_apart(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t payloads[] = { 0, 1, page - 1, page, page + 1, 10 * page };

	(void)state;
	for (size_t p = 0; p < COUNT(payloads); p++) {
		struct vb__slots s;

		open_slots(&s, COUNT_MAX, payloads[p]);
		assert_int_equal(s.room, payloads[p] + VB__PACKET_TRAILER);
		for (unsigned i = 0; i < s.count; i++) {
			if (payloads[p])
				assert_int_equal((uintptr_t)s.slot[i].bytes % page, 0);
			assert_true(s.slot[i].bytes + s.room <= s.memory + s.memory_bytes);
			memset(s.slot[i].bytes, (int)i + 1, s.room);
		}
		for (unsigned i = 0; i < s.count; i++) {
			assert_int_equal(s.slot[i].bytes[0], i + 1);
			assert_int_equal(s.slot[i].bytes[s.room - 1], i + 1);
		}
		vb__slots_close(&s);
	}
}

static void a_slot_is_empty_when_taken(void **state)
{
	struct vb__slots s;
	struct vb__slot *slot;

	(void)state;
	open_slots(&s, 1, 100);
	slot = vb__slot_take(&s);
	assert_int_equal(slot->filled, 0);
	slot->filled = 100;
	vb__slot_give_back(&s, slot);
	assert_int_equal(vb__slot_take(&s)->filled, 0);
	vb__slots_close(&s);
}

static void the_largest_slots_cost_no_memory_before_use(void **state)
{
	struct vb__slots s;

	(void)state;
	open_slots(&s, 64, VB_MESSAGE_MAX);
	assert_true(s.memory_bytes > (size_t)64 * VB_MESSAGE_MAX);
	s.slot[63].bytes[VB_MESSAGE_MAX - 1] = 1;
	vb__slots_close(&s);
}

static void memory_is_registered_whole_and_locally_where_the_fabric_needs_it(void **state)
{
	struct vb__slots s;

	(void)state;
	open_slots(&s, 4, 100);
	assert_int_equal(registered.calls, 0);
	assert_null(s.mr);
	vb__slots_close(&s);

	ep.caps = 0;
	open_slots(&s, 4, 100);
	assert_int_equal(registered.calls, 1);
	assert_ptr_equal(registered.addr, s.memory);
	assert_int_equal(registered.len, s.memory_bytes);
	assert_int_equal(registered.access, VB__ACCESS_LOCAL);
	assert_ptr_equal(s.mr, &mr);
	vb__slots_close(&s);
}

static void failed_registration_is_told_and_can_be_closed(void **state)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__slots s;

	(void)state;
	ep.caps = 0;
	registered.rc = ENOMEM;
	assert_int_equal(vb__slots_open(&s, &ep, 4, 100, &err), VB_ERR_NOMEM);
	assert_string_equal(err.operation, "register");
	vb__slots_close(&s);
}

static void memory_that_cannot_be_had_is_told_and_can_be_closed(void **state)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__slots s;

	(void)state;
	assert_int_equal(vb__slots_open(&s, &ep, 2, (size_t)1 << 60, &err), VB_ERR_NOMEM);
	assert_string_equal(err.operation, "mmap");
	assert_null(s.memory);
	vb__slots_close(&s);
}

static void closing_twice_is_harmless(void **state)
{
	struct vb__slots s;

	(void)state;
	open_slots(&s, 2, 100);
	vb__slots_close(&s);
	vb__slots_close(&s);
	assert_null(vb__slot_take(&s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_slot_can_be_taken_once_and_then_there_is_none, begin),
		cmocka_unit_test_setup(what_is_given_back_can_be_taken_again, begin),
		cmocka_unit_test_setup(slots_for_messages_start_at_pages_and_all_lie_apart, begin),
		cmocka_unit_test_setup(a_slot_is_empty_when_taken, begin),
		cmocka_unit_test_setup(the_largest_slots_cost_no_memory_before_use, begin),
		cmocka_unit_test_setup(
			memory_is_registered_whole_and_locally_where_the_fabric_needs_it, begin),
		cmocka_unit_test_setup(failed_registration_is_told_and_can_be_closed, begin),
		cmocka_unit_test_setup(memory_that_cannot_be_had_is_told_and_can_be_closed, begin),
		cmocka_unit_test_setup(closing_twice_is_harmless, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
