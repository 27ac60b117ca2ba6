/* SPDX-License-Identifier: Apache-2.0 */
/* The fabric contract itself, below the channel. */
#include "fabric/fabric.h"

#include "core/clock.h"
#include "harness.h"

#define BIG (256u << 10)

#define KEPT_MAX 8

/* A connected endpoint with a piece of registered memory, and what the peer told about its own. */
struct link {
	struct vb__ep *ep;
	struct vb__settings settings;
	uint8_t *memory;
	struct vb__mr *mr;
	struct {
		uint64_t addr, key;
	} remote;
	enum vb__qp_type type;
	struct vb__completion kept[KEPT_MAX]; /* not asked for yet, see await_kind */
	unsigned kept_count;
};

static void post(struct link *l, enum vb__op_kind kind, uint64_t id, size_t at, size_t len)
{
	struct vb__sge sge = { .addr = l->memory + at, .len = len, .mr = l->mr };
	struct vb__op op = { .kind = kind, .id = id, .sge = &sge, .sge_count = 1 };
	struct vb_error err = { .code = VB_OK };

	if (vb__ep_post(l->ep, &op, &err) != 0)
		printf("# post: %s: %s\n", err.operation, err.cause);
	CHECK_EQ(err.code, VB_OK);
}

static int post_remote(struct link *l, struct vb__op op, size_t at, size_t len, size_t remote_at)
{
	struct vb__sge sge = { .addr = l->memory + at, .len = len, .mr = l->mr };

	op.sge = &sge;
	op.sge_count = 1;
	op.remote_addr = l->remote.addr + remote_at;
	if (!op.remote_key)
		op.remote_key = l->remote.key;
	return vb__ep_post(l->ep, &op, NULL);
}

static struct vb__completion take_kept(struct link *l, unsigned i)
{
	struct vb__completion done = l->kept[i];

	l->kept_count--;
	memmove(&l->kept[i], &l->kept[i + 1], (l->kept_count - i) * sizeof(done));
	return done;
}

/* Waits for one completion the way the channel does: poll, arm, sleep. */
static struct vb__completion await_new(struct link *l)
{
	struct vb__completion done;

	while (vb__ep_poll(l->ep, &done, 1) == 0) {
		if (vb__ep_arm(l->ep) == 0) {
			struct timespec ts = { .tv_nsec = 1000000 };

			nanosleep(&ts, NULL);
		}
		if (l->ep->state == VB__EP_DOWN && l->ep->outstanding == 0) {
			done.status = VB_ERR_FLUSHED;
			break;
		}
	}
	return done;
}

static struct vb__completion await(struct link *l)
{
	return l->kept_count ? take_kept(l, 0) : await_new(l);
}

/* Sends and receives complete each in their own order only: what the peer says next may come before what we sent is done. */
static struct vb__completion await_kind(struct link *l, enum vb__op_kind kind)
{
	struct vb__completion done;

	for (unsigned i = 0; i < l->kept_count; i++)
		if (l->kept[i].kind == kind)
			return take_kept(l, i);
	while ((done = await_new(l)).status == VB_OK && done.kind != kind) {
		CHECK(l->kept_count < KEPT_MAX);
		l->kept[l->kept_count++] = done;
	}
	return done;
}

static struct vb__completion await_good(struct link *l, enum vb__op_kind kind, uint64_t id)
{
	struct vb__completion done = await_kind(l, kind);

	if (done.status)
		printf("# completion: %s %s\n", vb_err_name(done.status), l->ep->down.cause);
	CHECK_EQ(done.status, VB_OK);
	CHECK_EQ(done.kind, kind);
	CHECK_EQ(done.id, id);
	return done;
}

static void equip(struct link *l, unsigned access)
{
	struct vb_error err = { .code = VB_OK };

	l->memory = calloc(1, 2 * BIG);
	CHECK_EQ(vb__mr_open(l->ep, l->memory, 2 * BIG, access, &l->mr, &err), 0);
	for (uint64_t id = 100; id < 108; id++)
		post(l, VB__OP_RECV, id, (id - 100) * 64, 64);
}

static struct vb__ep_attr attr_of(struct link *l)
{
	return (struct vb__ep_attr){
		.send_depth = 16,
		.recv_depth = 16,
		.sge = 4,
		.settings = &l->settings,
		.qp_type = l->type,
	};
}

static void tell_memory(struct link *l)
{
	uint64_t message[2] = { l->mr->remote_addr, l->mr->remote_key };

	memcpy(l->memory + 1024, message, 16);
	post(l, VB__OP_SEND, 1, 1024, 16);
}

static unsigned open_link_server(struct side *side, struct link *l, unsigned access)
{
	struct vb__address found[VB__ADDRESSES_MAX];
	struct vb__request *request;
	struct vb__ep_attr attr;
	struct vb__pep *pep;

	CHECK_EQ(vb__settings_from(&l->settings, &side->options, NULL), 0);
	attr = attr_of(l);
	CHECK(vb__address_resolve(side->address, "0", 0, found, NULL) > 0);
	CHECK_EQ(vb__pep_open(fabric_of(side), &l->settings, &found[0], &pep, NULL), 0);
	side->shared->port = pep->port;
	sem_post(&side->shared->listening);
	while (vb__pep_next(pep, &request, NULL) == 0)
		sleep_ms(1);
	CHECK(request->data_len >= 48);
	CHECK(is_filled(request->data, 48, 1)); /* private data, all of it */
	CHECK_EQ(vb__ep_accept_open(request, &attr, &l->ep, NULL), 0);
	if (!(l->ep->caps & VB__CAP_ATOMIC))
		access &= ~(unsigned)VB__ACCESS_REMOTE_ATOMIC;
	equip(l, access);
	fill(l->memory + BIG, 48, 2);
	CHECK_EQ(vb__ep_accept(l->ep, l->memory + BIG, 48, NULL), 0);
	/* The connecting side speaks first: on iWARP it must. */
	await_good(l, VB__OP_RECV, 100);
	CHECK_EQ(l->ep->state, VB__EP_UP);
	memcpy(&l->remote, l->memory, 16);
	tell_memory(l);
	await_good(l, VB__OP_SEND, 1);
	vb__pep_close(pep);
	return l->ep->caps;
}

static unsigned open_link_client(struct side *side, struct link *l, unsigned access)
{
	struct vb__address found[VB__ADDRESSES_MAX];
	uint8_t data[48];
	struct vb__ep_attr attr;

	CHECK_EQ(vb__settings_from(&l->settings, &side->options, NULL), 0);
	attr = attr_of(l);
	CHECK(vb__address_resolve(side->address, port_there(side), 0, found, NULL) > 0);
	CHECK_EQ(vb__ep_open(fabric_of(side), &attr, &found[0], vb__now_ns() + vb__ms(5000), &l->ep,
			     NULL),
		 0);
	if (!(l->ep->caps & VB__CAP_ATOMIC))
		access &= ~(unsigned)VB__ACCESS_REMOTE_ATOMIC;
	equip(l, access);
	fill(data, 48, 1);
	CHECK_EQ(vb__ep_connect(l->ep, data, 48, vb__now_ns() + vb__ms(5000), NULL), 0);
	CHECK(l->ep->peer_data_len >= 48);
	CHECK(is_filled(l->ep->peer_data, 48, 2));
	tell_memory(l);
	await_good(l, VB__OP_SEND, 1);
	await_good(l, VB__OP_RECV, 100);
	memcpy(&l->remote, l->memory, 16);
	return l->ep->caps;
}

static void close_link(struct link *l)
{
	vb__ep_close(l->ep);
	free(l->memory);
}

/* Sends a one-byte word and waits for one: both ends are at the same point. */
static void say(struct link *l, uint8_t word)
{
	l->memory[2000] = word;
	post(l, VB__OP_SEND, 7, 2000, 1);
	await_good(l, VB__OP_SEND, 7);
}

static void hear(struct link *l, uint8_t word)
{
	struct vb__completion done = await_kind(l, VB__OP_RECV);

	CHECK_EQ(done.status, VB_OK);
	CHECK_EQ(done.kind, VB__OP_RECV);
	CHECK_EQ(done.len, 1);
	CHECK_EQ(l->memory[(done.id - 100) * 64], word);
}

/* ---- Tests ---- */

static void one_sided_server(struct side *side)
{
	struct link l = { 0 };

	open_link_server(side, &l, VB__ACCESS_REMOTE_READ | VB__ACCESS_REMOTE_WRITE);
	fill(l.memory + BIG, BIG / 2, 9);
	say(&l, 'r');
	hear(&l, 'w'); /* sent after the write: it is in our memory now */
	CHECK(is_filled(l.memory + BIG + BIG / 2, BIG / 2, 10));
	say(&l, 'd');
	hear(&l, 'e');
	close_link(&l);
}

static void one_sided_client(struct side *side)
{
	struct link l = { 0 };
	struct vb__sge two[2];
	struct vb__op op = { .kind = VB__OP_WRITE, .id = 22, .sge = two, .sge_count = 2 };

	open_link_client(side, &l, VB__ACCESS_READ_SINK);
	hear(&l, 'r');
	/* A read completes only when the data is there. */
	CHECK_EQ(post_remote(&l, (struct vb__op){ .kind = VB__OP_READ, .id = 21 }, BIG, BIG / 2,
			     BIG),
		 0);
	await_good(&l, VB__OP_READ, 21);
	CHECK(is_filled(l.memory + BIG, BIG / 2, 9));
	/* A write gathered from two pieces. */
	fill(l.memory + BIG, BIG / 2, 10);
	two[0] = (struct vb__sge){ .addr = l.memory + BIG, .len = 1000, .mr = l.mr };
	two[1] = (struct vb__sge){ .addr = l.memory + BIG + 1000,
				   .len = BIG / 2 - 1000,
				   .mr = l.mr };
	op.remote_addr = l.remote.addr + BIG + BIG / 2;
	op.remote_key = l.remote.key;
	CHECK_EQ(vb__ep_post(l.ep, &op, NULL), 0);
	await_good(&l, VB__OP_WRITE, 22);
	say(&l, 'w');
	hear(&l, 'd');
	say(&l, 'e');
	close_link(&l);
}

/* More than there are receives for: the rest waits, in order. */
#define WAITING 12u

static void patient_server(struct side *side)
{
	struct link l = { 0 };

	if (open_link_server(side, &l, VB__ACCESS_LOCAL) & VB__CAP_PATIENT) {
		for (uint8_t i = 0; i < 7; i++)
			hear(&l, i);
		sleep_ms(50);
		CHECK_EQ(vb__ep_poll(l.ep, &(struct vb__completion){ 0 }, 1), 0);
		for (uint8_t i = 7; i < WAITING; i++) {
			post(&l, VB__OP_RECV, 100, 0, 64);
			hear(&l, i);
		}
		post(&l, VB__OP_RECV, 100, 0, 64);
	}
	say(&l, 'd');
	hear(&l, 'e');
	close_link(&l);
}

static void patient_client(struct side *side)
{
	struct link l = { 0 };

	if (open_link_client(side, &l, VB__ACCESS_LOCAL) & VB__CAP_PATIENT)
		for (uint8_t i = 0; i < WAITING; i++)
			say(&l, i);
	hear(&l, 'd');
	say(&l, 'e');
	close_link(&l);
}

static void denied_server(struct side *side)
{
	struct link l = { 0 };
	struct vb__completion done;

	open_link_server(side, &l, VB__ACCESS_REMOTE_READ); /* read only */
	say(&l, 'g');
	do
		done = await(&l);
	while (done.status == VB_OK);
	CHECK_EQ(l.memory[BIG + 4096], 0); /* untouched */
	close_link(&l);
}

static void denied_client(struct side *side)
{
	struct link l = { 0 };
	struct vb__completion done;

	open_link_client(side, &l, VB__ACCESS_LOCAL);
	hear(&l, 'g');
	memset(l.memory + BIG, 0x55, 4096);
	CHECK_EQ(post_remote(&l, (struct vb__op){ .kind = VB__OP_WRITE, .id = 5 }, BIG, 4096,
			     BIG + 4096),
		 0);
	/* Either the write fails, or (iWARP, TCP) the connection does. */
	do
		done = await(&l);
	while (done.status == VB_OK);
	CHECK_EQ(l.ep->state, VB__EP_DOWN);
	CHECK(l.ep->down.code == VB_ERR_REMOTE_ACCESS || l.ep->down.code == VB_ERR_LOST);
	CHECK(l.ep->down.cause[0]);
	close_link(&l);
}

static void special_server(struct side *side)
{
	struct link l = { 0 };
	unsigned caps =
		open_link_server(side, &l, VB__ACCESS_REMOTE_WRITE | VB__ACCESS_REMOTE_ATOMIC);

	if (caps & VB__CAP_IMM) {
		struct vb__completion done = await(&l);

		CHECK_EQ(done.status, VB_OK);
		CHECK_EQ(done.kind, VB__OP_RECV);
		CHECK(done.has_imm);
		CHECK_EQ(done.imm, 0xfeedbeef);
		CHECK(done.by_write);
		CHECK(is_filled(l.memory + BIG, 100, 3));
		done = await(&l);
		CHECK_EQ(done.status, VB_OK);
		CHECK(done.has_imm && !done.by_write);
		CHECK_EQ(done.imm, 0x12345678);
		CHECK_EQ(done.len, 50);
	}
	hear(&l, 'a');
	if (caps & VB__CAP_ATOMIC) {
		uint64_t value;

		memcpy(&value, l.memory + BIG + 1024, 8);
		CHECK_EQ(value, 1000);
	}
	say(&l, 'e');
	close_link(&l);
}

static void special_client(struct side *side)
{
	struct link l = { 0 };
	unsigned caps = open_link_client(side, &l, VB__ACCESS_LOCAL);
	struct vb__op imm = { .kind = VB__OP_WRITE_IMM, .id = 1, .imm = 0xfeedbeef };
	struct vb__op add = { .kind = VB__OP_FETCH_ADD, .id = 2, .operand = 42 };
	struct vb__op swap = {
		.kind = VB__OP_COMPARE_SWAP, .id = 3, .operand = 1000, .compare = 42
	};
	uint64_t former;

	fill(l.memory + BIG, 100, 3);
	CHECK_EQ(post_remote(&l, imm, BIG, 100, BIG), caps & VB__CAP_IMM ? 0 : VB_ERR_UNSUPPORTED);
	if (caps & VB__CAP_IMM) {
		await_good(&l, VB__OP_WRITE_IMM, 1);
		imm.kind = VB__OP_SEND_IMM;
		imm.imm = 0x12345678;
		CHECK_EQ(post_remote(&l, imm, BIG, 50, BIG), 0);
		await_good(&l, VB__OP_SEND_IMM, 1);
	}
	CHECK_EQ(post_remote(&l, add, BIG + 512, 8, BIG + 1024),
		 caps & VB__CAP_ATOMIC ? 0 : VB_ERR_UNSUPPORTED);
	if (caps & VB__CAP_ATOMIC) {
		await_good(&l, VB__OP_FETCH_ADD, 2);
		memcpy(&former, l.memory + BIG + 512, 8);
		CHECK_EQ(former, 0);
		CHECK_EQ(post_remote(&l, swap, BIG + 512, 8, BIG + 1024), 0);
		await_good(&l, VB__OP_COMPARE_SWAP, 3);
		memcpy(&former, l.memory + BIG + 512, 8);
		CHECK_EQ(former, 42);
	}
	say(&l, 'a');
	hear(&l, 'e');
	close_link(&l);
}

static void flush_server(struct side *side)
{
	struct link l = { 0 };
	unsigned seen[8] = { 0 };
	int left = 7; /* one of the eight was used for the greeting */

	open_link_server(side, &l, VB__ACCESS_LOCAL);
	say(&l, 'x');
	while (left > 0) {
		struct vb__completion done = await(&l);

		CHECK_EQ(done.status, VB_ERR_FLUSHED);
		CHECK_EQ(done.kind, VB__OP_RECV);
		CHECK(done.id >= 101 && done.id < 108);
		CHECK_EQ(++seen[done.id - 100], 1);
		left--;
	}
	CHECK_EQ(l.ep->outstanding, 0);
	CHECK_EQ(l.ep->state, VB__EP_DOWN);
	CHECK_EQ(l.ep->down.code, VB_ERR_LOST);
	close_link(&l);
}

static void flush_client(struct side *side)
{
	struct link l = { 0 };

	open_link_client(side, &l, VB__ACCESS_LOCAL);
	hear(&l, 'x');
	vb__ep_disconnect(l.ep);
	CHECK_EQ(l.ep->state, VB__EP_DOWN);
	/* Our own receives come back as well, each once. */
	while (l.ep->outstanding)
		CHECK_EQ(await(&l).status, VB_ERR_FLUSHED);
	close_link(&l);
}

static void limits_server(struct side *side)
{
	struct link l = { 0 };

	open_link_server(side, &l, VB__ACCESS_LOCAL);
	hear(&l, 'e');
	close_link(&l);
}

static void limits_client(struct side *side)
{
	struct link l = { 0 };
	struct vb__sge sge[VB__SGE_MAX] = { { 0 } };
	struct vb__op op = { .kind = VB__OP_SEND, .sge = sge, .sge_count = VB__SGE_MAX };
	struct vb_error err = { .code = VB_OK };

	open_link_client(side, &l, VB__ACCESS_LOCAL);
	CHECK(l.ep->sge >= 2 && l.ep->send_depth >= 16 && l.ep->recv_depth >= 16);
	CHECK(l.ep->inline_bytes >= 16 && l.ep->max_bytes > BIG);
	CHECK_EQ(vb__ep_post(l.ep, &op, &err), VB_ERR_INVALID);
	CHECK(strstr(err.cause, "16"));
	/* A wake makes the descriptor readable, once. */
	while (vb__ep_arm(l.ep) != 0)
		;
	vb__ep_wake(l.ep);
	CHECK_EQ(vb__ep_arm(l.ep), 1);
	say(&l, 'e');
	close_link(&l);
}

/* ---- Unreliable connections ---- */

/* False if this fabric or device has none, and the error says so. */
static bool uc_is_here(struct side *side)
{
	struct link l = { .type = VB__QP_UC };
	struct vb__address found[VB__ADDRESSES_MAX];
	struct vb_error err = { .code = VB_OK };
	struct vb__ep_attr attr;
	int rc;

	CHECK_EQ(vb__settings_from(&l.settings, &side->options, NULL), 0);
	attr = attr_of(&l);
	CHECK(vb__address_resolve(side->address, "9", 0, found, NULL) > 0);
	rc = vb__ep_open(fabric_of(side), &attr, &found[0], vb__now_ns() + vb__ms(5000), &l.ep,
			 &err);
	if (rc == 0) {
		vb__ep_close(l.ep);
		return true;
	}
	CHECK(rc == VB_ERR_UNSUPPORTED || rc == VB_ERR_NO_DEVICE);
	CHECK(strstr(err.cause, rc == VB_ERR_UNSUPPORTED ? "UC" : "iWARP"));
	skip_test(side, err.cause);
	return false;
}

static void uc_server(struct side *side)
{
	struct link l = { .type = VB__QP_UC };
	struct vb__completion done;

	if (!uc_is_here(side))
		return;
	open_link_server(side, &l, VB__ACCESS_REMOTE_WRITE | VB__ACCESS_REMOTE_READ);
	done = await(&l);
	CHECK_EQ(done.status, VB_OK);
	CHECK(done.by_write && done.imm == 0xfeedbeef);
	CHECK(is_filled(l.memory + BIG, BIG / 2, 3)); /* the write before it, and its own */
	CHECK(is_filled(l.memory + BIG + BIG / 2, 100, 4));
	say(&l, 'd');
	while (l.ep->state != VB__EP_DOWN) /* the peer's end is heard here as well */
		await(&l);
	CHECK_EQ(l.ep->down.code, VB_ERR_LOST);
	close_link(&l);
}

static void uc_client(struct side *side)
{
	struct link l = { .type = VB__QP_UC };
	struct vb__op write = { .kind = VB__OP_WRITE, .id = 1 };
	struct vb__op imm = { .kind = VB__OP_WRITE_IMM, .id = 2, .imm = 0xfeedbeef };
	struct vb__op read = { .kind = VB__OP_READ }, add = { .kind = VB__OP_FETCH_ADD };

	if (!uc_is_here(side))
		return;
	CHECK(!(open_link_client(side, &l, VB__ACCESS_LOCAL) & (VB__CAP_READ | VB__CAP_ATOMIC)));
	CHECK_EQ(post_remote(&l, read, BIG, 8, BIG), VB_ERR_UNSUPPORTED);
	CHECK_EQ(post_remote(&l, add, BIG, 8, BIG), VB_ERR_UNSUPPORTED);
	CHECK_EQ(l.ep->state, VB__EP_UP); /* no harm was done */
	fill(l.memory + BIG, BIG / 2, 3);
	fill(l.memory + BIG + BIG / 2, 100, 4);
	CHECK_EQ(post_remote(&l, write, BIG, BIG / 2, BIG), 0);
	await_good(&l, VB__OP_WRITE, 1);
	CHECK_EQ(post_remote(&l, imm, BIG + BIG / 2, 100, BIG + BIG / 2), 0);
	await_good(&l, VB__OP_WRITE_IMM, 2);
	hear(&l, 'd');
	close_link(&l);
}

const struct test fabric_tests[] = {
	{ "fabric_private_data_write_and_read", one_sided_server, one_sided_client },
	{ "fabric_lets_wait_what_has_no_receive_or_says_so", patient_server, patient_client },
	{ "fabric_refuses_what_is_not_granted", denied_server, denied_client },
	{ "fabric_immediate_and_atomics_or_a_clear_no", special_server, special_client },
	{ "fabric_every_operation_completes_exactly_once", flush_server, flush_client },
	{ "fabric_limits_are_told_and_kept", limits_server, limits_client },
	{ "fabric_uc_sends_and_writes_only", uc_server, uc_client, 0, 0, "verbs" },
	{ NULL },
};
