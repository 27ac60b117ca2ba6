/* SPDX-License-Identifier: Apache-2.0 */
/* Access to the peer's memory: put, get, the atomics; one at a time, or many posted. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel/channel_state.h"
#include "channel/inside.h"
#include "wire/token.h"

static const struct {
	enum vb__op_kind op;
	unsigned right;
	bool atomic;
} kinds[] = {
	[VB_PUT] = { VB__OP_WRITE, VB_RIGHT_WRITE, false },
	[VB_GET] = { VB__OP_READ, VB_RIGHT_READ, false },
	[VB_FETCH_ADD] = { VB__OP_FETCH_ADD, VB_RIGHT_ATOMIC, true },
	[VB_COMPARE_SWAP] = { VB__OP_COMPARE_SWAP, VB_RIGHT_ATOMIC, true },
	[VB_PUT_NOTIFY] = { VB__OP_WRITE, VB_RIGHT_WRITE, false },
};

/* ---- Operations of this sort on the channel; lock held ---- */

unsigned vb__access_done(struct vb_channel *ch, uint64_t id, bool well)
{
	struct vb__accesses *a = &ch->accesses;

	a->finished[id & ~VB__ACCESS_ID] = true;
	a->spoiled |= !well;
	while (a->done < a->posted && a->finished[(a->done + 1) % VB__ACCESS_DEPTH])
		a->done++;
	if (!a->spoiled)
		__atomic_store_n(&a->done_well, a->done, __ATOMIC_RELEASE);
	return VB__NEWS_SENT | VB__NEWS_ACCESS | (well ? 0 : VB__NEWS_STATE);
}

int64_t vb__access_start(struct vb_channel *ch, struct vb__op *op, struct vb_error *err)
{
	struct vb__accesses *a = &ch->accesses;

	while (!ch->failure.code && a->posted - a->done >= a->limit)
		vb__channel_wait(ch, VB__NEWS_SENT);
	if (ch->failure.code)
		return vb__fail_again(err, &ch->failure);
	op->id = VB__ACCESS_ID | (uint64_t)(a->posted + 1) % VB__ACCESS_DEPTH;
	a->finished[(a->posted + 1) % VB__ACCESS_DEPTH] = false;
	if (vb__ep_post(ch->ep, op, &ch->failure) != 0) {
		vb__channel_fail(ch, NULL);
		return vb__fail_again(err, &ch->failure);
	}
	a->posted++;
	if (op->sge_count)
		a->local = a->posted;
	return a->posted;
}

int vb__access_finish(struct vb_channel *ch, int64_t handle, struct vb_error *err)
{
	struct vb__accesses *a = &ch->accesses;

	/* After a failure as well: what is posted comes back flushed. */
	while (a->done < handle && (!ch->failure.code || ch->ep->outstanding))
		vb__channel_wait(ch, VB__NEWS_SENT);
	return a->done_well >= handle ? 0 : vb__fail_again(err, &ch->failure);
}

/* ---- What the user asks for ---- */

/* An access that was looked at: where it goes, and by which local memory. */
struct checked {
	const struct vb_access *access;
	struct vb__token_fields token;
	struct vb__sge sge[VB__SGE_MAX];
	unsigned count;
	size_t len;
	struct vb__mr *own; /* registered for this one, if it may be */
};

static int measure(struct checked *c, const struct vb_channel *ch, struct vb_error *err)
{
	const struct vb_access *a = c->access;

	if (a->count < 0 || (a->count && !a->pieces))
		return vb__fail_invalid(err, "access", "no pieces were given");
	if (a->count > (int)ch->ep->sge)
		return vb__fail_invalid(err, "access", "%d pieces, the limit is %u", a->count,
					ch->ep->sge);
	for (int i = 0; i < a->count; i++)
		if (a->pieces[i].iov_len && !a->pieces[i].iov_base)
			return vb__fail_invalid(err, "access",
						"a piece has a length but no address");
	for (int i = 0; i < a->count; i++)
		if (__builtin_add_overflow(c->len, a->pieces[i].iov_len, &c->len))
			return vb__fail_invalid(err, "access", "the pieces' lengths overflow");
	if (kinds[a->kind].atomic && (a->count != 1 || c->len != 8))
		return vb__fail_invalid(err, "access", "an atomic has one piece of 8 bytes");
	return 0;
}

static int fail_outside(const struct vb_channel *ch, const struct checked *c, struct vb_error *err)
{
	char cause[160];

	snprintf(cause, sizeof(cause),
		 "%zu bytes at %llu are not within the %llu that were granted", c->len,
		 (unsigned long long)c->access->offset, (unsigned long long)c->token.len);
	return vb__fail(err, &(struct vb__failure){ .code = VB_ERR_REMOTE_ACCESS,
						    .operation = "access memory of",
						    .object = ch->ep->peer,
						    .cause = cause });
}

static int fail_right(const struct vb_channel *ch, struct vb_error *err)
{
	return vb__fail(
		err, &(struct vb__failure){ .code = VB_ERR_REMOTE_ACCESS,
					    .operation = "access memory of",
					    .object = ch->ep->peer,
					    .cause = "it was not granted for this",
					    .hint = "ask the peer for a grant with that right" });
}

static int check_token(struct checked *c, const struct vb_channel *ch, struct vb_error *err)
{
	const struct vb_access *a = c->access;

	if (!vb__token_decode(&c->token, a->token->bytes))
		return vb__fail_invalid(err, "access", "that is no token");
	if (kinds[a->kind].atomic && !(ch->ep->caps & VB__CAP_ATOMIC))
		return vb__fail_no_atomics(ch, err);
	if (!(c->token.rights & kinds[a->kind].right))
		return fail_right(ch, err);
	if (a->offset > c->token.len || c->len > c->token.len - a->offset)
		return fail_outside(ch, c, err);
	if (kinds[a->kind].atomic && (c->token.addr + a->offset) % 8)
		return vb__fail_invalid(err, "access", "an atomic's address is no multiple of 8");
	return 0;
}

static int look_at(struct checked *c, const struct vb_channel *ch, const struct vb_access *access,
		   struct vb_error *err)
{
	int rc;

	/* The pieces are left as they are: to clear room for many would cost more than to check one. */
	c->access = access;
	c->token = (struct vb__token_fields){ .len = 0 };
	c->count = 0;
	c->len = 0;
	c->own = NULL;
	if (access->kind < VB_PUT || access->kind > VB_PUT_NOTIFY || !access->token)
		return vb__fail_invalid(err, "access", "there is no such access");
	rc = measure(c, ch, err);
	return rc ? rc : check_token(c, ch, err);
}

/* Lock held. The registration by which a piece of local memory is used; NULL if none is needed. */
static int find_memory(struct checked *c, struct vb_channel *ch, const struct iovec *piece,
		       bool may_register, struct vb__mr **mr, struct vb_error *err)
{
	enum vb__op_kind kind = kinds[c->access->kind].op;
	bool sink = kind == VB__OP_READ && ch->ep->caps & VB__CAP_SINK;
	unsigned access = sink			 ? VB__ACCESS_READ_SINK
			  : kind == VB__OP_WRITE ? VB__ACCESS_SOURCE
						 : VB__ACCESS_LOCAL;
	struct vb_region *region = vb__region_find(ch, piece);
	int rc = 0;

	*mr = NULL;
	if (ch->ep->caps & VB__CAP_ANY_BUFFER ||
	    (kind == VB__OP_WRITE && c->len <= ch->ep->inline_bytes))
		return 0;
	if (region && sink && !region->sink)
		rc = vb__mr_open(ch->ep, region->addr, region->len, access, &region->sink, err);
	if (region)
		*mr = sink ? region->sink : region->mr;
	else if (!may_register)
		rc = vb__fail_invalid(err, "access", "local memory is in no region");
	else if (!(rc = vb__mr_open(ch->ep, piece->iov_base, piece->iov_len, access, &c->own, err)))
		*mr = c->own;
	return rc;
}

static int gather(struct checked *c, struct vb_channel *ch, bool may_register, struct vb_error *err)
{
	int rc = 0;

	for (int i = 0; i < c->access->count && rc == 0; i++) {
		const struct iovec *piece = &c->access->pieces[i];
		struct vb__sge *sge = &c->sge[c->count];

		if (!piece->iov_len)
			continue;
		*sge = (struct vb__sge){ .addr = piece->iov_base, .len = piece->iov_len };
		rc = find_memory(c, ch, piece, may_register, &sge->mr, err);
		c->count++;
	}
	return rc;
}

/* A notice behind the END would break the protocol. */
static int check_may_notify(struct vb_channel *ch, struct vb_error *err)
{
	if (ch->ending)
		return vb__fail_invalid(err, "notify", "after the channel was finished");
	return vb__channel_check_peer_open(ch, err);
}

/* A notice takes a credit, and the place of a message where it is one. */
static int await_credit(struct vb_channel *ch, bool slot, struct vb_error *err)
{
	uint64_t deadline = vb__channel_patience(ch, true);
	int rc;

	while ((rc = check_may_notify(ch, err)) == 0) {
		vb__outbox_push(ch);
		if (ch->credits.held && (!slot || (ch->tx.free && !ch->outbox.slot)))
			break;
		rc = vb__channel_await(ch, ch->credits.held ? VB__NEWS_SENT : VB__NEWS_ROOM,
				       deadline, "notify", err);
		if (rc)
			break;
	}
	return rc;
}

static int send_notice(struct vb_channel *ch, uint32_t number, struct vb_error *err)
{
	struct vb__packet packet = { .kind = VB__PACKET_DATA, .flags = VB__PACKET_NOTICE };
	struct vb__slot *slot;
	int rc = vb__channel_open_sends(ch, err);

	if (rc == 0)
		rc = await_credit(ch, true, err);
	if (rc)
		return rc;
	slot = vb__slot_take(&ch->tx);
	vb__notice_encode(slot->bytes, number);
	slot->filled = VB__NOTICE_BYTES;
	return vb__packet_post(ch, slot, packet, NULL, 0) ? vb__fail_again(err, &ch->failure) : 0;
}

static int64_t start_notify(struct vb_channel *ch, struct vb__op *op, uint32_t number,
			    struct vb_error *err)
{
	int64_t handle;
	int rc;

	if (ch->ep->caps & VB__CAP_IMM) {
		op->kind = VB__OP_WRITE_IMM;
		op->imm = number;
		/* Both at once: the END might go out while one is waited for. */
		while ((rc = await_credit(ch, false, err)) == 0 &&
		       ch->accesses.posted - ch->accesses.done >= ch->accesses.limit)
			vb__channel_wait(ch, VB__NEWS_SENT);
		if (rc)
			return rc;
		ch->credits.held--;
		return vb__access_start(ch, op, err);
	}
	handle = op->sge_count ? vb__access_start(ch, op, err) : ch->accesses.posted;
	if (handle < 0)
		return handle;
	rc = send_notice(ch, number, err);
	return rc ? rc : handle;
}

/* How far the pieces of an access are posted. */
struct cursor {
	unsigned piece;
	size_t at; /* in it */
};

/* The next pieces, up to `limit` bytes of them. Returns how many bytes these are. */
static size_t slice(const struct checked *c, struct cursor *from, size_t limit, struct vb__sge *to,
		    unsigned *count)
{
	size_t len = 0;

	for (*count = 0; from->piece < c->count && len < limit; ++*count) {
		const struct vb__sge *piece = &c->sge[from->piece];
		size_t n = piece->len - from->at;

		if (n > limit - len)
			n = limit - len;
		to[*count] = (struct vb__sge){ .addr = (uint8_t *)piece->addr + from->at,
					       .len = n,
					       .mr = piece->mr };
		len += n;
		from->at += n;
		if (from->at == piece->len)
			*from = (struct cursor){ .piece = from->piece + 1 };
	}
	return len;
}

/*
 * The most that one operation is for. What cannot be stopped once it has begun, where the fabric moves the bytes
 * itself, is kept short: who takes memory back waits for it.
 */
#define UNSTOPPABLE_BYTES (16u << 20)

static size_t most_at_once(const struct vb_channel *ch)
{
	bool unstoppable = ch->ep->caps & VB__CAP_ATTENDED && ch->ep->max_bytes > UNSTOPPABLE_BYTES;

	return unstoppable ? UNSTOPPABLE_BYTES : ch->ep->max_bytes;
}

uint64_t vb__access_room(struct vb_channel *ch)
{
	const struct vb__accesses *a = &ch->accesses;
	uint64_t room;

	vb__channel_lock(ch);
	if (__builtin_mul_overflow(a->limit - (a->posted - a->done), most_at_once(ch), &room))
		room = UINT64_MAX;
	vb__channel_unlock(ch);
	return room;
}

/* Lock held. In several operations if it is larger than one can be; a notice comes with the last. */
static int64_t start(struct vb_channel *ch, const struct checked *c, struct vb_error *err)
{
	bool notify = c->access->kind == VB_PUT_NOTIFY, whole;
	size_t most = most_at_once(ch), left = c->len, len;
	struct vb__sge sge[VB__SGE_MAX];
	struct vb__op op = {
		.kind = kinds[c->access->kind].op,
		.sge = c->sge,
		.sge_count = c->count,
		.remote_addr = c->token.addr + c->access->offset,
		.remote_key = c->token.key,
		.operand = c->access->operand,
		.compare = c->access->expected,
	};
	struct cursor at = { .piece = 0 };
	int64_t handle;

	if (!left && !notify)
		return ch->accesses.posted;
	whole = left <= most;
	if (!whole)
		op.sge = sge;
	do {
		handle = notify ? check_may_notify(ch, err) : vb__channel_check_peer_open(ch, err);
		if (handle)
			break;
		len = whole ? left : slice(c, &at, most, sge, &op.sge_count);
		left -= len;
		ch->accesses.of_peer = true;
		handle = notify && !left ? start_notify(ch, &op, c->access->number, err)
					 : vb__access_start(ch, &op, err);
		op.remote_addr += len;
	} while (left && handle >= 0);
	return handle;
}

/*
 * Where accesses go on only while somebody polls, the owner must be able to ask whether one is under way, at any
 * time. So the first one is announced, and from then on somebody here always polls. Lock held.
 */
static int announce(struct vb_channel *ch, struct vb_error *err)
{
	int errnum;

	if (!(ch->ep->caps & VB__CAP_ATTENDED))
		return 0;
	errnum = vb__flusher_stand_in(ch);
	if (errnum)
		return vb__fail_errno(err, errnum, "pthread_create", "for accesses");
	while (!ch->accessing && !ch->failure.code) {
		ch->accessing = vb__packet_post_accessing(ch);
		if (!ch->accessing && !ch->failure.code)
			vb__channel_wait(ch, VB__NEWS_SENT);
	}
	return ch->failure.code ? vb__fail_again(err, &ch->failure) : 0;
}

/* ---- One at a time ---- */

static int do_access(struct vb_channel *ch, const struct vb_access *access, struct vb_error *err)
{
	struct checked c;
	int64_t handle;
	int rc;

	vb__error_clear(err);
	rc = look_at(&c, ch, access, err);
	if (rc)
		return rc;
	vb__channel_lock(ch);
	rc = gather(&c, ch, true, err);
	if (rc == 0)
		rc = announce(ch, err);
	if (rc == 0) {
		handle = start(ch, &c, err);
		/* If it failed, parts of it may be under way, and the memory is the caller's again. */
		if (handle < 0)
			vb__access_finish(ch, ch->accesses.local, NULL);
		rc = handle < 0 ? (int)handle : vb__access_finish(ch, handle, err);
	}
	vb__mr_close(c.own);
	vb__channel_unlock(ch);
	return rc;
}

int vb_put(struct vb_channel *ch, const struct vb_token *token, uint64_t offset, const void *data,
	   size_t len, struct vb_error *err)
{
	struct iovec piece = { .iov_base = (void *)data, .iov_len = len };

	return do_access(ch,
			 &(struct vb_access){ .kind = VB_PUT,
					      .token = token,
					      .offset = offset,
					      .pieces = &piece,
					      .count = 1 },
			 err);
}

int vb_put_notify(struct vb_channel *ch, const struct vb_token *token, uint64_t offset,
		  const void *data, size_t len, uint32_t number, struct vb_error *err)
{
	struct iovec piece = { .iov_base = (void *)data, .iov_len = len };

	return do_access(ch,
			 &(struct vb_access){ .kind = VB_PUT_NOTIFY,
					      .token = token,
					      .offset = offset,
					      .pieces = &piece,
					      .count = 1,
					      .number = number },
			 err);
}

int vb_get(struct vb_channel *ch, const struct vb_token *token, uint64_t offset, void *data,
	   size_t len, struct vb_error *err)
{
	struct iovec piece = { .iov_base = data, .iov_len = len };

	return do_access(ch,
			 &(struct vb_access){ .kind = VB_GET,
					      .token = token,
					      .offset = offset,
					      .pieces = &piece,
					      .count = 1 },
			 err);
}

int vb_fetch_add(struct vb_channel *ch, const struct vb_token *token, uint64_t offset, uint64_t add,
		 uint64_t *before, struct vb_error *err)
{
	uint64_t value = 0;
	struct iovec piece = { .iov_base = before ? before : &value, .iov_len = sizeof(value) };
	struct vb_access access = { .kind = VB_FETCH_ADD,
				    .token = token,
				    .offset = offset,
				    .pieces = &piece,
				    .count = 1,
				    .operand = add };

	return do_access(ch, &access, err);
}

int vb_compare_swap(struct vb_channel *ch, const struct vb_token *token, uint64_t offset,
		    uint64_t expected, uint64_t desired, uint64_t *before, struct vb_error *err)
{
	uint64_t value = 0;
	struct iovec piece = { .iov_base = before ? before : &value, .iov_len = sizeof(value) };
	struct vb_access access = { .kind = VB_COMPARE_SWAP,
				    .token = token,
				    .offset = offset,
				    .pieces = &piece,
				    .count = 1,
				    .operand = desired,
				    .expected = expected };

	return do_access(ch, &access, err);
}

/* ---- Many under way ---- */

int64_t vb_access_post(struct vb_channel *ch, const struct vb_access *accesses, int count,
		       struct vb_error *err)
{
	return vb__access_post(ch, accesses, count, false, err);
}

static void finish_local(struct vb_channel *ch)
{
	vb__channel_lock(ch);
	vb__access_finish(ch, ch->accesses.local, NULL);
	vb__channel_unlock(ch);
}

int64_t vb__access_post(struct vb_channel *ch, const struct vb_access *accesses, int count,
			bool attended, struct vb_error *err)
{
	struct checked c;
	int64_t handle = 0;
	bool began = false;

	vb__error_clear(err);
	if (count < 1 || !accesses)
		return vb__fail_invalid(err, "access", "nothing is to be posted");
	for (int i = 0; i < count && handle >= 0; i++) {
		handle = look_at(&c, ch, &accesses[i], err);
		if (handle)
			break;
		vb__channel_lock(ch);
		handle = gather(&c, ch, false, err);
		if (handle == 0 && !attended)
			handle = announce(ch, err);
		began |= handle == 0;
		if (handle == 0)
			handle = start(ch, &c, err);
		vb__channel_unlock(ch);
	}
	if (handle < 0 && began)
		finish_local(ch); /* nobody else knows of what is under way */
	return handle;
}

static int check_handle(const struct vb_channel *ch, int64_t handle, struct vb_error *err)
{
	if (handle > 0 && handle <= ch->accesses.posted)
		return 0;
	return vb__fail_invalid(err, "wait", "handle %lld was never given", (long long)handle);
}

bool vb__access_is_done(const struct vb_channel *ch, int64_t handle)
{
	return handle <= __atomic_load_n(&ch->accesses.done_well, __ATOMIC_ACQUIRE);
}

int vb_access_wait(struct vb_channel *ch, int64_t handle, struct vb_error *err)
{
	int rc;

	vb__error_clear(err);
	/* Of many under way most are known to be over before they are asked about: no lock for these. */
	if (handle > 0 && vb__access_is_done(ch, handle))
		return 0;
	vb__channel_lock(ch);
	rc = check_handle(ch, handle, err);
	if (rc == 0)
		rc = vb__access_finish(ch, handle, err);
	vb__channel_unlock(ch);
	return rc;
}

int vb_access_try(struct vb_channel *ch, int64_t handle, struct vb_error *err)
{
	int rc;

	vb__error_clear(err);
	vb__channel_lock(ch);
	rc = check_handle(ch, handle, err);
	while (rc == 0 && ch->accesses.done < handle && ch->ep->outstanding)
		if (vb__channel_would_block(ch, VB__NEWS_ACCESS))
			rc = VB_ERR_AGAIN;
	if (rc != VB_ERR_AGAIN)
		vb__loop_looks(ch, VB__NEWS_ACCESS);
	if (rc == 0 && ch->accesses.done_well < handle)
		rc = vb__fail_again(err, &ch->failure);
	vb__channel_unlock(ch);
	return rc;
}

int vb_token_read(const struct vb_token *token, uint64_t *len, unsigned *rights,
		  struct vb_error *err)
{
	struct vb__token_fields fields;

	vb__error_clear(err);
	if (!vb__token_decode(&fields, token->bytes))
		return vb__fail_invalid(err, "read", "that is no token");
	if (len)
		*len = fields.len;
	if (rights)
		*rights = fields.rights;
	return 0;
}
