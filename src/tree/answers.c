/* SPDX-License-Identifier: Apache-2.0 */
/* A queue of bytes. */
#include "tree/answers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/condition.h"
#include "core/failure.h"
#include "transfer/descriptor.h"
#include "wire/bytes.h"

#define MUCH (1u << 20)
#define LENGTH 2u /* of a record's length */
#define NOTICE_MS 50

void vb__answers_open(struct vb__answers *a, int wake_fd, int cancel_fd)
{
	*a = (struct vb__answers){ .wake_fd = wake_fd, .cancel_fd = cancel_fd };
	pthread_mutex_init(&a->lock, NULL);
	vb__cond_init(&a->said);
}

void vb__answers_close(struct vb__answers *a)
{
	pthread_cond_destroy(&a->said);
	pthread_mutex_destroy(&a->lock);
	free(a->bytes);
}

static bool make_room(struct vb__answers *a, size_t len)
{
	size_t room = a->room ? a->room : 4096;
	uint8_t *bytes;

	if (a->start) {
		memmove(a->bytes, a->bytes + a->start, a->end - a->start);
		a->end -= a->start;
		a->start = 0;
	}
	while (room < a->end + len)
		room *= 2;
	if (room == a->room)
		return true;
	bytes = realloc(a->bytes, room);
	if (!bytes)
		return false;
	a->bytes = bytes;
	a->room = room;
	return true;
}

/* Lock held. */
static void append(struct vb__answers *a, const struct vb__answer *answer)
{
	uint8_t record[VB__ANSWER_MAX];
	size_t len = vb__answer_encode(record, sizeof(record), answer);

	if (!len || (a->end + LENGTH + len > a->room && !make_room(a, LENGTH + len))) {
		a->lost = true;
		return;
	}
	vb__put16(a->bytes + a->end, (uint16_t)len);
	memcpy(a->bytes + a->end + LENGTH, record, len);
	a->end += LENGTH + len;
}

static void append_wants(struct vb__answers *a)
{
	if (a->count)
		append(a, &(struct vb__answer){
				  .kind = VB__ANSWER_WANT, .number = a->first, .count = a->count });
	a->count = 0;
}

void vb__answers_want(struct vb__answers *a, uint32_t number)
{
	pthread_mutex_lock(&a->lock);
	if (a->count && a->first + a->count != number)
		append_wants(a);
	if (!a->count)
		a->first = number;
	a->count++;
	pthread_mutex_unlock(&a->lock);
}

static void ring(const struct vb__answers *a)
{
	const uint64_t one = 1;

	if (a->wake_fd >= 0)
		while (write(a->wake_fd, &one, sizeof(one)) < 0 && errno == EINTR)
			;
}

void vb__answers_add(struct vb__answers *a, const struct vb__answer *answer)
{
	pthread_mutex_lock(&a->lock);
	append_wants(a);
	append(a, answer);
	pthread_mutex_unlock(&a->lock);
	ring(a);
}

void vb__answers_insist(struct vb__answers *a)
{
	pthread_mutex_lock(&a->lock);
	append_wants(a);
	pthread_mutex_unlock(&a->lock);
	ring(a);
}

size_t vb__answers_speak(struct vb__answers *a, void *note, size_t room)
{
	size_t done = 0;

	pthread_mutex_lock(&a->lock);
	while (a->start < a->end) {
		size_t len = vb__get16(a->bytes + a->start);

		if (len > room - done)
			break;
		memcpy((uint8_t *)note + done, a->bytes + a->start + LENGTH, len);
		done += len;
		a->start += LENGTH + len;
	}
	if (a->start == a->end)
		a->start = a->end = 0;
	pthread_cond_broadcast(&a->said);
	pthread_mutex_unlock(&a->lock);
	return done;
}

int vb__answers_wait(struct vb__answers *a, struct vb_error *err)
{
	int rc = 0;

	pthread_mutex_lock(&a->lock);
	while (rc == 0 && a->end - a->start > MUCH) {
		if (!vb__cond_wait(&a->said, &a->lock, vb__now_ns() + vb__ms(NOTICE_MS)) &&
		    vb__fd_cancelled(a->cancel_fd))
			rc = vb__fail_cancelled(err, "answer", NULL);
	}
	if (rc == 0 && a->lost)
		rc = vb__fail_errno(err, ENOMEM, "answer", NULL);
	pthread_mutex_unlock(&a->lock);
	return rc;
}
