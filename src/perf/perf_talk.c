/* SPDX-License-Identifier: Apache-2.0 */
/* Talking. What the words mean is known elsewhere. */
#include "perf/perf_talk.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/failure.h"

#define DEPTH 4u
#define SAY_MS 2000u
#define PART_MS 500u

int vb__perf_talk_from(struct vb__perf_talk *talk, struct vb__settings *settings,
		       const struct vb_perf_options *options, struct vb_error *err)
{
	static const struct vb_perf_options none;
	const struct vb_perf_options *o = options ? options : &none;

	*talk = (struct vb__perf_talk){
		.stop_fd = o->stop_fd > 0 ? o->stop_fd : -1,
		.progress = o->progress,
		.progress_arg = o->progress_arg,
	};
	vb__error_clear(err);
	if (vb__settings_from(settings, &o->connection, err) != 0)
		return err ? (int)err->code : VB_ERR_INVALID;
	settings->max_message = VB__PERF_WORD_MAX;
	settings->depth = DEPTH;
	return 0;
}

static int fail_silent(const struct vb__perf_talk *talk, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_TIMEOUT,
				     .operation = "measure with",
				     .object = vb_channel_peer(talk->channel),
				     .cause = "the other side does not answer",
			     });
}

int vb__perf_say(struct vb__perf_talk *talk, const struct vb__perf_word *word, struct vb_error *err)
{
	struct pollfd fd = { .fd = vb_channel_fd(talk->channel, err), .events = POLLIN };
	uint64_t deadline = vb__now_ns() + vb__ms(SAY_MS);
	uint8_t bytes[VB__PERF_WORD_MAX];
	size_t len = vb__perf_word_encode(bytes, word);
	int rc;

	if (fd.fd < 0)
		return fd.fd;
	/* Who takes no words must not hold us up. */
	while ((rc = vb_channel_try_send(talk->channel, bytes, len, err)) == VB_ERR_AGAIN) {
		if (vb__now_ns() >= deadline)
			return fail_silent(talk, err);
		poll(&fd, 1, vb__ms_left(deadline));
	}
	talk->quiet = false;
	return rc;
}

void vb__perf_part(struct vb__perf_talk *talk)
{
	struct pollfd fd = { .events = POLLIN };
	uint64_t deadline = vb__now_ns() + vb__ms(PART_MS);

	if (!talk->channel)
		return;
	fd.fd = vb_channel_fd(talk->channel, NULL);
	while (fd.fd >= 0 && vb_channel_try_finish(talk->channel, NULL) == VB_ERR_AGAIN &&
	       vb__now_ns() < deadline)
		poll(&fd, 1, vb__ms_left(deadline));
	vb_channel_abort(talk->channel);
	talk->channel = NULL;
}

static struct vb__perf_word refusal(const struct vb_error *why)
{
	struct vb__perf_word word = { .kind = VB__PERF_REFUSED, .code = why->code };
	char line[VB_ERROR_LINE_MAX];

	vb_error_format(why, line, sizeof(line));
	word.tail_len = strnlen(line, VB__PERF_TAIL_MAX);
	memcpy(word.tail, line, word.tail_len);
	return word;
}

void vb__perf_refuse(struct vb__perf_talk *talk, const struct vb_error *why)
{
	struct vb__perf_word word = refusal(why);

	vb__perf_say(talk, &word, NULL);
}

int vb__perf_try_refuse(struct vb_channel *channel, const struct vb_error *why)
{
	struct vb__perf_word word = refusal(why);
	uint8_t bytes[VB__PERF_WORD_MAX];

	return vb_channel_try_send(channel, bytes, vb__perf_word_encode(bytes, &word), NULL);
}

static int fail_refused(const struct vb__perf_word *word, struct vb_error *err)
{
	char cause[sizeof(err->cause)];

	snprintf(cause, sizeof(cause), "%.*s", (int)word->tail_len, (const char *)word->tail);
	return vb__fail(err, &(struct vb__failure){
				     .code = word->code,
				     .operation = "the other side",
				     .cause = cause,
			     });
}

static int fail_foreign(const struct vb__perf_talk *talk, struct vb_error *err)
{
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_PROTOCOL,
				.operation = "measure with",
				.object = vb_channel_peer(talk->channel),
				.cause = "the other side does not speak as rdperf does",
				.hint = "check the port, and that both ends run the same version",
			});
}

int vb__perf_hear(struct vb__perf_talk *talk, struct vb__perf_word *word, struct vb_error *err)
{
	const void *message;
	ssize_t n = vb_channel_try_recv(talk->channel, &message, err);

	talk->quiet = n == VB_ERR_AGAIN;
	if (n == VB_ERR_AGAIN)
		return 0;
	if (n < 0)
		return (int)n;
	if (!vb__perf_word_decode(word, message, (size_t)n))
		return fail_foreign(talk, err);
	return word->kind == VB__PERF_REFUSED ? fail_refused(word, err) : 1;
}

int vb__perf_stopped(const struct vb__perf_talk *talk, struct vb_error *err)
{
	struct pollfd stop = { .fd = talk->stop_fd, .events = POLLIN };

	if (talk->stop_fd < 0 || poll(&stop, 1, 0) <= 0)
		return 0;
	return vb__fail_interrupted(err);
}

int vb__perf_await(struct vb__perf_talk *talk, enum vb__perf_word_kind kind, uint64_t deadline_ns,
		   struct vb__perf_word *word, struct vb_error *err)
{
	struct pollfd fds[] = {
		{ .fd = vb_channel_fd(talk->channel, err), .events = POLLIN },
		{ .fd = talk->stop_fd, .events = POLLIN },
	};
	int rc;

	if (fds[0].fd < 0)
		return fds[0].fd;
	while ((rc = vb__perf_hear(talk, word, err)) == 0) {
		rc = vb__perf_stopped(talk, err);
		if (rc)
			return rc;
		if (vb__now_ns() >= deadline_ns)
			return fail_silent(talk, err);
		poll(fds, 2, deadline_ns == UINT64_MAX ? -1 : vb__ms_left(deadline_ns));
	}
	if (rc < 0)
		return rc;
	return word->kind == kind ? 0 : fail_foreign(talk, err);
}

int vb__perf_peer_address(const struct vb__perf_talk *talk, int family, uint16_t port,
			  struct vb__address *address, struct vb_error *err)
{
	struct vb__address found[VB__ADDRESSES_MAX];
	char host[VB__ADDRESS_TEXT], service[8];
	char *end;
	int n;

	snprintf(host, sizeof(host), "%s", vb_channel_peer(talk->channel));
	end = strstr(host, " port ");
	if (end)
		*end = '\0';
	snprintf(service, sizeof(service), "%u", port);
	n = vb__address_resolve(host, service, family, found, err);
	if (n < 0)
		return n;
	*address = found[0];
	return 0;
}
