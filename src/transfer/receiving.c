/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving: each worker takes a block from its rail, has its codec check it, and
 * only then stores it, while others are at theirs.
 *
 * Where blocks can be stored only one at a time, one thread does nothing else: it finds
 * those that were checked on a shelf. Were each worker to store its own, it would sleep
 * until the one before is done, and nobody would store until it has woken up.
 */
#include "core/clock.h"
#include "transfer/codec.h"
#include "transfer/crew.h"
#include "transfer/engine.h"

/* More than this many lie there only if it is the storing that is slow. */
#define SHELF 16u

struct checked {
	struct vb__block block;
	struct vb__message message;
	struct vb__loan loan; /* which it lies in */
};

struct receiving {
	struct vb__crew crew;
	const struct vb__demand *demand;
	struct vb__sink *sink;
	unsigned workers; /* who come after these store from the shelf */

	struct checked shelf[SHELF]; /* under the crew's lock, and so all below */
	uint64_t shelved, taken;
	unsigned receiving; /* workers that may yet put something there */
};

static int fail_block(const struct vb__crew *crew, enum vb_err code, const char *cause,
		      struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = code,
				     .operation = "receive from",
				     .object = crew->session->peer,
				     .cause = cause,
			     });
}

/* A tree's sink knows by itself. */
static int check(const struct vb__crew *crew, const struct vb__block *block, struct vb_error *err)
{
	const struct vb__terms *agreed = &crew->session->agreed;

	if (agreed->tree || (block->file == 0 && !(block->flags & ~(uint32_t)VB__BLOCK_HOLE) &&
			     block->offset + block->length <= agreed->total_bytes))
		return 0;
	return fail_block(crew, VB_ERR_PROTOCOL, "a block does not belong to the transfer", err);
}

static int store(struct receiving *r, const struct vb__block *block, const void *data,
		 const struct vb__message *message, struct vb_error *err)
{
	int rc = r->sink->ops->put(r->sink, block, data, err);

	if (rc == 0)
		vb__crew_count(&r->crew, block, message);
	return rc;
}

static void give_back(struct receiving *r, const struct checked *c)
{
	vb__channel_give_back(r->crew.session->rails[c->message.rail], &c->loan);
}

/* Waits for room. False: the transfer has failed, it is not wanted any more. */
static bool shelve(struct receiving *r, const struct checked *c)
{
	bool wanted;

	pthread_mutex_lock(&r->crew.lock);
	while (!r->crew.failed && r->shelved - r->taken == SHELF)
		pthread_cond_wait(&r->crew.changed, &r->crew.lock);
	wanted = !r->crew.failed;
	if (wanted) {
		r->shelf[r->shelved++ % SHELF] = *c;
		pthread_cond_broadcast(&r->crew.changed);
	}
	pthread_mutex_unlock(&r->crew.lock);
	return wanted;
}

/* Waits for one. False: nothing more will come. */
static bool take_from_shelf(struct receiving *r, struct checked *c)
{
	bool any;

	pthread_mutex_lock(&r->crew.lock);
	while (r->shelved == r->taken && r->receiving)
		pthread_cond_wait(&r->crew.changed, &r->crew.lock);
	any = r->shelved != r->taken;
	if (any) {
		*c = r->shelf[r->taken++ % SHELF];
		pthread_cond_broadcast(&r->crew.changed);
	}
	pthread_mutex_unlock(&r->crew.lock);
	return any;
}

static void store_from_shelf(struct receiving *r)
{
	struct vb_error err = { .code = VB_OK };
	struct checked c;

	while (take_from_shelf(r, &c)) {
		if (!vb__crew_failed(&r->crew) &&
		    store(r, &c.block, c.message.bytes, &c.message, &err) != 0)
			vb__crew_fail(&r->crew, &err);
		give_back(r, &c);
	}
}

static void leave(struct receiving *r)
{
	pthread_mutex_lock(&r->crew.lock);
	r->receiving--;
	pthread_cond_broadcast(&r->crew.changed);
	pthread_mutex_unlock(&r->crew.lock);
}

/* What is a hole, or has been unpacked to where the next one will be, does not lie in its loan. */
static bool goes_on_shelf(const struct receiving *r, const struct vb__block *block,
			  const void *data, const struct vb__message *message)
{
	return r->sink->one_at_a_time && data == message->bytes && !(block->flags & VB__BLOCK_HOLE);
}

/* Checks what has come, and stores it or has it stored. */
static int deal_with(struct receiving *r, struct vb__codec *codec, struct checked *c,
		     struct vb_error *err)
{
	const void *data;
	int rc = vb__codec_decode(codec, &c->block, &c->message, &data, err);

	if (rc == 0)
		rc = check(&r->crew, &c->block, err);
	if (rc == 0 && goes_on_shelf(r, &c->block, data, &c->message) && shelve(r, c))
		return 0;
	if (rc == 0 && !vb__crew_failed(&r->crew))
		rc = store(r, &c->block, c->block.flags & VB__BLOCK_HOLE ? NULL : data, &c->message,
			   err);
	give_back(r, c);
	return rc;
}

static void receive(struct receiving *r, unsigned number)
{
	struct vb_session *session = r->crew.session;
	struct checked c = { .message.rail = number % session->rail_count };
	struct vb_error err = { .code = VB_OK };
	struct vb__codec *codec = NULL;
	int rc = vb__codec_open(session, r->crew.cancel_fd, &codec, &err);

	while (rc == 0 && !vb__crew_failed(&r->crew)) {
		rc = vb__channel_recv_loan(session->rails[c.message.rail], &c.loan, &err);
		if (rc)
			break;
		c.message.bytes = c.loan.data;
		c.message.len = c.loan.bytes;
		c.message.turn = c.loan.turn;
		rc = deal_with(r, codec, &c, &err);
	}
	vb__codec_close(codec);
	if (rc && rc != VB_ERR_EOF)
		vb__crew_fail(&r->crew, &err);
	leave(r);
}

static void work(struct vb__crew *crew, unsigned number)
{
	struct receiving *r = (struct receiving *)crew;

	if (number < r->workers)
		receive(r, number);
	else
		store_from_shelf(r);
}

/*
 * On each rail blocks come in their order. So if all workers wait for an earlier one, and the rails
 * without a worker are at their end, then it was left out: nobody can bring it any more.
 */
static bool is_stuck(const struct vb__crew *crew)
{
	struct vb__sink *sink = ((const struct receiving *)crew)->sink;

	return crew->working && sink->ops->waiting && sink->ops->waiting(sink) == crew->working;
}

static bool all_heard(const struct vb__crew *crew)
{
	return (crew->working == 0 && crew->session->end_heard) || is_stuck(crew);
}

static int check_moving(struct vb__crew *crew)
{
	struct vb_error err = { .code = VB_OK };
	bool stuck;

	pthread_mutex_lock(&crew->lock);
	stuck = is_stuck(crew);
	pthread_mutex_unlock(&crew->lock);
	if (!stuck)
		return 0;
	fail_block(crew, VB_ERR_CORRUPT, "a block was left out on its way", &err);
	vb__crew_fail(crew, &err);
	return err.code;
}

static int compare(struct vb__crew *crew, struct vb_error *err)
{
	const struct vb__sum *sent = &crew->session->end, *stored = &crew->sum;

	if (sent->bytes == stored->bytes && sent->blocks == stored->blocks &&
	    sent->digest == stored->digest)
		return 0;
	return fail_block(crew, VB_ERR_CORRUPT, "what arrived is not what was sent", err);
}

/* This may take long: to sync it, to wait for the command that has read it. */
static void finish(struct vb__crew *crew, unsigned number)
{
	struct receiving *r = (struct receiving *)crew;
	struct vb_error err = { .code = VB_OK };

	(void)number;
	if (compare(crew, &err) != 0 || r->sink->ops->finish(r->sink, crew->sum.bytes, &err) != 0)
		vb__crew_fail(crew, &err);
}

/* The rails are up: everything, until the verdict is said. */
static void conduct(struct receiving *r)
{
	struct vb__words verdict = { .kind = VB__WORDS_VERDICT };
	struct vb_session *session = r->crew.session;
	struct vb_error err = { .code = VB_OK };
	unsigned rails = session->rail_count;
	unsigned workers = vb__plan_workers(
		&session->plan, vb__codec_computes(session) ? VB__LABOUR_COMPUTE : VB__LABOUR_MOVE);

	r->crew.start_ns = vb__now_ns();
	/* Every rail needs one of its own, see sink.h. */
	r->workers = r->receiving = workers < rails ? rails : workers;
	if (vb__crew_start(&r->crew, r->workers + r->sink->one_at_a_time, work, &err) != 0 ||
	    vb__crew_conduct(&r->crew, all_heard) != 0 || check_moving(&r->crew) != 0 ||
	    vb__crew_do(&r->crew, finish) != 0 || vb__crew_speak_out(&r->crew) != 0)
		return;
	if (vb__session_say(session, &verdict, &err) != 0)
		vb__crew_fail(&r->crew, &err);
}

/* This may take long: a FIFO's reader has to come. */
static void open_sink(struct vb__crew *crew, unsigned number)
{
	struct receiving *r = (struct receiving *)crew;
	const struct vb_session *session = crew->session;
	struct vb__sink_options options = {
		.direct = session->plan.direct,
		.fsync = session->plan.fsync,
		.sealed = vb_session_cipher(session) != NULL,
		.cancel_fd = crew->cancel_fd,
		.wake_fd = crew->done_fd,
	};
	struct vb__origin origin = {
		.total_bytes = session->agreed.total_bytes,
		.has_mode = session->agreed.has_mode,
		.mode = session->agreed.mode,
		.sparse = session->agreed.sparse,
	};
	struct vb_error err = { .code = VB_OK };

	(void)number;
	if (r->demand->open(r->demand, &origin, &options, &r->sink, &err) != 0)
		vb__crew_fail(crew, &err);
}

static size_t speak(struct vb__crew *crew, void *note, size_t room)
{
	struct vb__sink *sink = ((struct receiving *)crew)->sink;

	return sink->ops->speak(sink, note, room);
}

static void progress(struct vb__crew *crew, struct vb_progress *progress)
{
	struct vb__sink *sink = ((struct receiving *)crew)->sink;

	if (sink && sink->ops->progress)
		sink->ops->progress(sink, progress);
}

static int receive_all(struct receiving *r, struct vb_error *err)
{
	struct vb_session *session = r->crew.session;
	int rc = vb__session_answer(session, r->demand->tree, err);

	if (rc == 0 && vb__crew_do(&r->crew, open_sink) == 0) {
		r->crew.speak = r->sink->ops->speak ? speak : NULL;
		r->crew.progress = progress;
		rc = vb__session_open_rails(session, false, err);
		if (rc == 0)
			conduct(r);
	}
	if (rc)
		vb__crew_fail(&r->crew, err);
	rc = vb__crew_conclude(&r->crew, err);
	if (r->sink)
		r->sink->ops->close(r->sink);
	return rc;
}

int vb__session_demand(struct vb_session *session, const struct vb__demand *demand,
		       struct vb_report *report, struct vb_error *err)
{
	struct vb_error local = { .code = VB_OK };
	struct receiving r = { .demand = demand };
	int rc;

	err = err ? err : &local;
	vb__error_clear(err);
	rc = vb__session_begin(session, err);
	if (rc == 0)
		rc = vb__crew_open(&r.crew, session, err);
	if (rc)
		return rc;
	rc = receive_all(&r, err);
	if (report)
		vb__crew_report(&r.crew, report);
	vb__crew_close(&r.crew);
	return rc;
}

struct one_output {
	struct vb__demand demand;
	const struct vb_output *output;
};

static int open_output(const struct vb__demand *demand, const struct vb__origin *origin,
		       const struct vb__sink_options *options, struct vb__sink **sink,
		       struct vb_error *err)
{
	const struct vb_output *output = ((const struct one_output *)demand)->output;

	if (output->failure && output->failure->code)
		return vb__fail_again(err, output->failure);
	return vb__sink_open(output, origin, options, sink, err);
}

int vb_session_receive(struct vb_session *session, const struct vb_output *output,
		       struct vb_report *report, struct vb_error *err)
{
	struct one_output one = { .demand.open = open_output, .output = output };

	return vb__session_demand(session, &one.demand, report, err);
}
