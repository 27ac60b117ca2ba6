/* SPDX-License-Identifier: Apache-2.0 */
/* Words over a session's parley, and waiting for them. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "transfer/session_state.h"
#include "transfer/source.h"

int vb__session_say(struct vb_session *s, const struct vb__words *words, struct vb_error *err)
{
	uint8_t bytes[VB__WORDS_MAX];

	return vb__parley_say(s->parley, bytes, vb__words_encode(bytes, words), err);
}

/* What failed over there, in the words of those over there. */
static int fail_by_peer(struct vb_session *s, const struct vb_error *theirs, struct vb_error *err)
{
	struct vb_error told = { .code = theirs->code,
				 .native_kind = theirs->native_kind,
				 .native = theirs->native };
	const char *space = *theirs->operation && *theirs->object ? " " : "";
	const char *colon = *theirs->operation || *theirs->object ? ": " : "";

	snprintf(told.operation, sizeof(told.operation), "the %s at",
		 s->agreed.sends ? "receiver" : "sender");
	snprintf(told.object, sizeof(told.object), "%.103s", s->peer);
	snprintf(told.cause, sizeof(told.cause), "%s%s%s%s%.160s", theirs->operation, space,
		 theirs->object, colon, theirs->cause);
	snprintf(told.hint, sizeof(told.hint), "%s", theirs->hint);
	s->told_by_peer = true;
	return vb__fail_again(err, &told);
}

int vb__session_hear(struct vb_session *s, struct vb__words *words, struct vb_error *err)
{
	const void *bytes;
	ssize_t n = vb__parley_hear(s->parley, &bytes, err);

	if (n == VB_ERR_EOF) {
		vb__error_clear(err);
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_LOST,
					     .operation = "talk to",
					     .object = s->peer,
					     .cause = "the peer left without a word",
				     });
	}
	if (n < 0)
		return (int)n;
	if (!vb__words_decode(words, bytes, (size_t)n))
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_PROTOCOL,
					     .operation = "talk to",
					     .object = s->peer,
					     .cause = "what the peer says makes no sense",
				     });
	if (words->kind == VB__WORDS_VERDICT && words->verdict.code)
		return fail_by_peer(s, &words->verdict, err);
	return 0;
}

void vb__await_words(struct vb_channel *channel, int stop_fd, int other_fd, uint64_t deadline_ns)
{
	struct pollfd fds[] = {
		{ .fd = vb_channel_fd(channel, NULL), .events = POLLIN },
		{ .fd = stop_fd, .events = POLLIN },
		{ .fd = other_fd, .events = POLLIN },
	};

	poll(fds, 3, deadline_ns == UINT64_MAX ? -1 : vb__ms_left(deadline_ns));
}

void vb__session_await(struct vb_session *s, int other_fd, uint64_t deadline_ns)
{
	vb__await_words(s->channel, s->plan.stop_fd, other_fd, deadline_ns);
}

static int fail_unexpected(struct vb_session *s, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_PROTOCOL,
				     .operation = "talk to",
				     .object = s->peer,
				     .cause = "the peer speaks out of turn",
			     });
}

int vb__session_expect(struct vb_session *s, enum vb__words_kind kind, struct vb__words *words,
		       uint64_t deadline_ns, struct vb_error *err)
{
	int rc;

	for (;;) {
		rc = vb__session_hear(s, words, err);
		if (rc == 0 && words->kind == kind)
			return 0;
		if (rc == 0 && words->kind != VB__WORDS_PROGRESS)
			return fail_unexpected(s, err);
		if (rc && rc != VB_ERR_AGAIN)
			return rc;
		if (vb__plan_stopped(&s->plan))
			return vb__fail_interrupted(err);
		if (vb__now_ns() >= deadline_ns)
			return vb__fail(err, &(struct vb__failure){
						     .code = VB_ERR_TIMEOUT,
						     .operation = "talk to",
						     .object = s->peer,
						     .cause = "the peer does not answer",
					     });
		if (rc == VB_ERR_AGAIN)
			vb__session_await(s, -1, deadline_ns);
	}
}

static int take_note(struct vb_session *s, const struct vb__words *words, struct vb_error *err)
{
	if (words->kind == VB__WORDS_PROGRESS) {
		s->theirs = words->sum;
	} else if (words->kind == VB__WORDS_READY && !s->door && !s->ready_heard) {
		s->ready_heard = true;
	} else if (words->kind == VB__WORDS_END && !s->agreed.sends && !s->end_heard) {
		s->end_heard = true;
		s->end = words->sum;
	} else if (words->kind == VB__WORDS_VERDICT && s->end_said) {
		s->verdict_heard = true;
	} else if (words->kind == VB__WORDS_NOTE && s->notes_to) {
		return s->notes_to->ops->hear(s->notes_to, words->note.bytes, words->note.len, err);
	} else {
		return fail_unexpected(s, err);
	}
	return 0;
}

int vb__session_listen(struct vb_session *s, struct vb_error *err)
{
	struct vb__words words = { .kind = VB__WORDS_PROGRESS };
	int rc = 0;

	/* Whoever gave the verdict may be gone: there is nothing more to hear. */
	while (rc == 0 && !s->verdict_heard) {
		rc = vb__session_hear(s, &words, err);
		if (rc == 0)
			rc = take_note(s, &words, err);
	}
	return rc == VB_ERR_AGAIN ? 0 : rc;
}

void vb__session_tell_failure(struct vb_session *s, const struct vb_error *failure)
{
	struct vb__words words = { .kind = VB__WORDS_VERDICT, .verdict = *failure };

	if (!s->told_by_peer)
		vb__session_say(s, &words, NULL);
}
