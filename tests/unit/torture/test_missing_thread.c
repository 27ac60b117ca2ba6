/* SPDX-License-Identifier: Apache-2.0 */
/* A stream that cannot have a thread when it first needs one, and can a moment later. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <verbatim/stream.h>

static _Atomic unsigned refusals, warnings;

__typeof__(pthread_create) __real_pthread_create, __wrap_pthread_create;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	if (refusals) {
		refusals--;
		return EAGAIN;
	}
	return __real_pthread_create(thread, attr, run, arg);
}

static void on_log(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg, (void)level;
	if (strstr(line, "there is no thread"))
		warnings++;
}

static const struct vb_stream_options options = {
	.connection = { .fabric = VB_FABRIC_OFI, .log = on_log, .log_level = VB_LOG_WARNING },
};

struct asking {
	char port[8];
	sem_t has_read, synced;
};

/* The other side, in no need of a thread. */
static void *ask(void *arg)
{
	struct asking *a = arg;
	struct vb_stream *stream;
	uint8_t bytes[10] = { 0 };

	assert_int_equal(vb_stream_connect("127.0.0.1", a->port, &options, &stream, NULL), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(vb_stream_write(stream, bytes, sizeof(bytes), NULL), 0);
		assert_int_equal(vb_stream_flush(stream, NULL), 0);
		sem_wait(&a->has_read);
	}
	assert_int_equal(vb_stream_sync(stream, NULL), 0);
	sem_post(&a->synced);
	vb_stream_abort(stream);
	return NULL;
}

static void thread_is_asked_for_again(void **state)
{
	struct vb_stream_server *server;
	struct vb_stream *stream;
	struct asking a;
	pthread_t asker;
	uint8_t bytes[10];

	(void)state;
	sem_init(&a.has_read, 0, 0);
	sem_init(&a.synced, 0, 0);
	assert_int_equal(vb_stream_serve("127.0.0.1", "0", &options, &server, NULL), 0);
	snprintf(a.port, sizeof(a.port), "%d", vb_stream_server_port(server));
	assert_int_equal(pthread_create(&asker, NULL, ask, &a), 0);
	assert_int_equal(vb_stream_accept(server, &stream, NULL), 0);
	vb_stream_server_close(server);

	refusals = 2;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(vb_stream_read(stream, bytes, sizeof(bytes), NULL), sizeof(bytes));
		assert_int_equal(refusals, i < 2 ? 1 - i : 0);
		sem_post(&a.has_read);
	}
	assert_int_equal(warnings, 1);
	sem_wait(&a.synced); /* we are in no call */
	pthread_join(asker, NULL);
	vb_stream_abort(stream);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thread_is_asked_for_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
