/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending: each worker carries a block all the way, from the input through its
 * codec into the rail, while others are at theirs. Blocks are claimed in their
 * order, and on each rail they are sent in that order, so that a receiver that
 * needs them in order never waits for one behind another.
 */
#include "core/clock.h"
#include "transfer/codec.h"
#include "transfer/crew.h"
#include "transfer/engine.h"
#include "transfer/governor.h"
#include "transfer/pace.h"

struct sending {
	struct vb__crew crew;
	struct vb__source *source;

	pthread_mutex_t order; /* held by the worker that claims a block */
	unsigned next_rail;
	bool ended;
	uint64_t claimed[VB_RAILS_MAX];
	struct vb__pace pace;

	uint64_t sent[VB_RAILS_MAX]; /* under the crew's lock, and so all below */
	unsigned leaving;
	struct vb__governor governor; /* of packing, where that is agreed on */
};

/* A block on its way. */
struct carried {
	struct vb__block block;
	struct vb__loan loan;
	unsigned rail;
	uint64_t turn;
};

/* Takes the next block and a place on a rail for it: 1, 0 at the end, or an error. Order held. */
static int claim_in_order(struct sending *s, struct carried *c, struct vb_error *err)
{
	struct vb_session *session = s->crew.session;
	int rc;

	if (s->ended)
		return 0;
	c->rail = s->next_rail++ % session->rail_count;
	c->block = (struct vb__block){ .length = 0 };
	rc = vb__channel_borrow(session->rails[c->rail], &c->loan, err);
	if (rc == 0) {
		rc = s->source->ops->next(s->source, c->loan.data,
					  vb__pace_room(&s->pace, session->agreed.block_bytes),
					  &c->block, err);
		if (rc <= 0)
			vb__channel_give_back_unsent(session->rails[c->rail], &c->loan);
	}
	if (rc <= 0) {
		s->ended = true;
		return rc;
	}
	c->turn = s->claimed[c->rail]++;
	vb__pace_keep(&s->pace, vb__block_data_bytes(&c->block), s->crew.cancel_fd);
	return 1;
}

static int claim(struct sending *s, struct carried *c, struct vb_error *err)
{
	int rc;

	pthread_mutex_lock(&s->order);
	rc = claim_in_order(s, c, err);
	pthread_mutex_unlock(&s->order);
	return rc;
}

/* What was saved by packing may be used by others, which wait for `order` as they are to be slow. */
static void refund(struct sending *s, const struct carried *c, const struct vb__message *message)
{
	uint64_t plain = vb__block_data_bytes(&c->block), wire = message->len - VB__BLOCK_TRAILER;

	if (!s->pace.bytes_per_second || wire >= plain)
		return;
	pthread_mutex_lock(&s->order);
	vb__pace_refund(&s->pace, plain - wire);
	pthread_mutex_unlock(&s->order);
}

/* Waits for those that were claimed before on the same rail. */
static bool await_turn(struct sending *s, const struct carried *c)
{
	bool mine;

	pthread_mutex_lock(&s->crew.lock);
	while (!s->crew.failed && s->sent[c->rail] != c->turn)
		pthread_cond_wait(&s->crew.changed, &s->crew.lock);
	mine = !s->crew.failed;
	pthread_mutex_unlock(&s->crew.lock);
	return mine;
}

static void pass_turn(struct sending *s, const struct carried *c)
{
	pthread_mutex_lock(&s->crew.lock);
	s->sent[c->rail]++;
	pthread_cond_broadcast(&s->crew.changed);
	pthread_mutex_unlock(&s->crew.lock);
}

/* How hard is this block to be packed? */
static int choose_level(struct sending *s, const struct carried *c)
{
	int level;

	if (!s->crew.session->agreed.pack || c->block.flags & VB__BLOCK_HOLE)
		return VB__LEVEL_OFF;
	pthread_mutex_lock(&s->crew.lock);
	level = vb__governor_choose(&s->governor);
	pthread_mutex_unlock(&s->crew.lock);
	return level;
}

/* Tells the governor what came of it; `work_ns` is all that the worker did for it. */
static void note_effort(struct sending *s, const struct carried *c,
			const struct vb__message *message, uint64_t work_ns)
{
	struct vb__effort effort = {
		.level = message->level,
		.plain = c->block.length,
		.wire = message->len - VB__BLOCK_TRAILER,
		.pack_ns = message->pack_ns,
		.other_ns = work_ns - message->pack_ns,
	};

	if (!s->crew.session->agreed.pack || c->block.flags & VB__BLOCK_HOLE)
		return;
	effort.filled = vb__channel_filled(s->crew.session->rails[c->rail]);
	pthread_mutex_lock(&s->crew.lock);
	vb__governor_note(&s->governor, &effort, vb__now_ns());
	pthread_mutex_unlock(&s->crew.lock);
}

static int carry(struct sending *s, struct carried *c, struct vb__codec *codec,
		 struct vb_error *err)
{
	struct vb_channel *rail = s->crew.session->rails[c->rail];
	struct vb__message message = { .bytes = c->loan.data, .rail = c->rail, .turn = c->turn };
	uint64_t since = vb__now_ns(), work_ns;
	int rc = s->source->ops->fill(s->source, c->loan.data, &c->block, err);

	message.level = choose_level(s, c);
	if (rc == 0)
		rc = vb__codec_encode(codec, &c->block, &message, err);
	work_ns = vb__now_ns() - since;
	if (rc || !await_turn(s, c)) {
		vb__channel_give_back_unsent(rail, &c->loan);
		return rc;
	}
	rc = vb__channel_send_loan(rail, &c->loan, message.len, err);
	if (rc)
		return rc;
	pass_turn(s, c);
	vb__crew_count(&s->crew, &c->block, &message);
	note_effort(s, c, &message, work_ns);
	refund(s, c, &message);
	return 0;
}

/* The last to leave tells the rails that nothing more will come. */
static void leave(struct sending *s, struct vb_error *err)
{
	struct vb_session *session = s->crew.session;
	bool last;

	pthread_mutex_lock(&s->crew.lock);
	last = --s->leaving == 0 && !s->crew.failed;
	pthread_mutex_unlock(&s->crew.lock);
	for (unsigned i = 0; last && i < session->rail_count; i++)
		if (vb_channel_finish(session->rails[i], err) != 0) {
			vb__crew_fail(&s->crew, err);
			return;
		}
}

static void work(struct vb__crew *crew, unsigned number)
{
	struct sending *s = (struct sending *)crew;
	struct vb_error err = { .code = VB_OK };
	struct vb__codec *codec = NULL;
	struct carried c;
	int rc = vb__codec_open(crew->session, crew->cancel_fd, &codec, &err);

	(void)number;
	while (rc == 0 && (rc = claim(s, &c, &err)) > 0 && !vb__crew_failed(crew))
		rc = carry(s, &c, codec, &err);
	vb__codec_close(codec);
	if (rc < 0)
		vb__crew_fail(crew, &err);
	leave(s, &err);
}

/* This may take long: a command may have closed its output and yet not be done. */
static void finish(struct vb__crew *crew, unsigned number)
{
	struct sending *s = (struct sending *)crew;
	struct vb_error err = { .code = VB_OK };

	(void)number;
	if (s->source->ops->finish(s->source, &err) != 0)
		vb__crew_fail(crew, &err);
}

static bool verdict_heard(const struct vb__crew *crew)
{
	return crew->session->verdict_heard;
}

static void begin_packing(struct sending *s, unsigned workers)
{
	const struct vb__terms *agreed = &s->crew.session->agreed;

	if (agreed->pack == VB__PACK_AUTO)
		vb__governor_begin(&s->governor, workers, agreed->window * agreed->rails);
	else
		vb__governor_hold(&s->governor, agreed->pack);
}

static enum vb__labour labour(const struct vb_session *session)
{
	if (vb__codec_computes(session))
		return VB__LABOUR_COMPUTE;
	return vb__terms_of_stream(&session->agreed) ? VB__LABOUR_IN_TURN : VB__LABOUR_MOVE;
}

/* The rails are up: everything, until the receiver has said how it went. */
static void conduct(struct sending *s)
{
	struct vb__words end = { .kind = VB__WORDS_END };
	struct vb_session *session = s->crew.session;
	struct vb_error err = { .code = VB_OK };
	unsigned workers = vb__plan_workers(&session->plan, labour(session));

	begin_packing(s, workers);
	s->leaving = workers;
	s->crew.start_ns = vb__now_ns();
	s->pace.bytes_per_second = session->agreed.bytes_per_second;
	if (vb__crew_start(&s->crew, workers, work, &err) != 0 ||
	    vb__crew_conduct(&s->crew, vb__crew_all_done) != 0)
		return;
	if (vb__crew_do(&s->crew, finish) != 0)
		return;
	end.sum = s->crew.sum;
	session->end_said = true;
	if (vb__session_say(session, &end, &err) != 0)
		vb__crew_fail(&s->crew, &err);
	else
		vb__crew_conduct(&s->crew, verdict_heard);
}

static int agree(struct vb_session *session, const struct vb__source *source, struct vb_error *err)
{
	struct vb__terms ours = {
		.sends = true,
		.tree = source->ops->hear != NULL,
		.sparse = source->sparse,
		.has_mode = source->has_mode,
		.mode = (uint16_t)source->mode,
		.total_bytes = source->total_bytes,
	};

	vb__plan_propose(&session->plan, vb__session_is_tcp(session), &ours);
	return vb__session_propose(session, &ours, err);
}

static void progress(struct vb__crew *crew, struct vb_progress *progress)
{
	struct vb__source *source = ((struct sending *)crew)->source;

	if (source && source->ops->progress)
		source->ops->progress(source, progress);
}

static int send_all(struct sending *s, const struct vb__supply *supply, struct vb_error *err)
{
	struct vb_session *session = s->crew.session;
	int rc = supply->open(supply, &session->plan, s->crew.cancel_fd, &s->source, err);

	if (rc == 0)
		rc = agree(session, s->source, err);
	if (rc == 0 && s->source->ops->hear)
		session->notes_to = s->source;
	s->crew.progress = progress;
	if (rc == 0)
		rc = vb__session_open_rails(session, true, err);
	if (rc)
		vb__crew_fail(&s->crew, err);
	else
		conduct(s);
	rc = vb__crew_conclude(&s->crew, err);
	session->notes_to = NULL;
	if (s->source)
		s->source->ops->close(s->source);
	return rc;
}

int vb__session_supply(struct vb_session *session, const struct vb__supply *supply,
		       struct vb_report *report, struct vb_error *err)
{
	struct vb_error local = { .code = VB_OK };
	struct sending s = { .ended = false };
	int rc;

	err = err ? err : &local;
	vb__error_clear(err);
	rc = vb__session_begin(session, err);
	if (rc == 0)
		rc = vb__crew_open(&s.crew, session, err);
	if (rc)
		return rc;
	pthread_mutex_init(&s.order, NULL);
	rc = send_all(&s, supply, err);
	if (report)
		vb__crew_report(&s.crew, report);
	pthread_mutex_destroy(&s.order);
	vb__crew_close(&s.crew);
	return rc;
}

struct one_input {
	struct vb__supply supply;
	const struct vb_input *input;
};

static int open_input(const struct vb__supply *supply, const struct vb__plan *plan, int cancel_fd,
		      struct vb__source **source, struct vb_error *err)
{
	const struct vb_input *input = ((const struct one_input *)supply)->input;

	if (input->failure && input->failure->code)
		return vb__fail_again(err, input->failure);
	return vb__source_open(input, plan->direct, cancel_fd, source, err);
}

int vb_session_send(struct vb_session *session, const struct vb_input *input,
		    struct vb_report *report, struct vb_error *err)
{
	struct one_input one = { .supply.open = open_input, .input = input };

	return vb__session_supply(session, &one.supply, report, err);
}
