/* SPDX-License-Identifier: Apache-2.0 */
#include "file_kit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define THREADS_MAX 16

static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	sigaddset(&set, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
}

int kit_setup(void **state)
{
	struct kit *kit = calloc(1, sizeof(*kit));
	const char *base = getenv("TMPDIR");

	block_signals();
	snprintf(kit->dir, sizeof(kit->dir), "%s/vb-files-XXXXXX", base ? base : "/var/tmp");
	kit->cancel_fd = eventfd(0, EFD_CLOEXEC);
	*state = kit;
	return mkdtemp(kit->dir) && kit->cancel_fd >= 0 ? 0 : -1;
}

static unsigned for_each_entry(struct kit *kit, bool remove_it)
{
	DIR *dir = opendir(kit->dir);
	struct dirent *entry;
	unsigned n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		n++;
		if (remove_it)
			assert_int_equal(unlinkat(dirfd(dir), entry->d_name, 0), 0);
	}
	closedir(dir);
	return n;
}

unsigned kit_count(struct kit *kit)
{
	return for_each_entry(kit, false);
}

int kit_teardown(void **state)
{
	struct kit *kit = *state;

	(void)umount2(kit->dir, MNT_DETACH); /* a test that failed may have left its tmpfs */
	for_each_entry(kit, true);
	rmdir(kit->dir);
	close(kit->cancel_fd);
	for (size_t i = 0; i < COUNT(kit->paths); i++)
		free(kit->paths[i]);
	free(kit);
	return 0;
}

const char *kit_path(struct kit *kit, const char *name)
{
	size_t dir = strlen(kit->dir);
	char **path = kit->paths;

	while (*path && strcmp(*path + dir + 1, name) != 0)
		path++;
	assert_true(path < kit->paths + COUNT(kit->paths) - 1);
	if (!*path)
		assert_true(asprintf(path, "%s/%s", kit->dir, name) > 0);
	return *path;
}

void kit_cancel(struct kit *kit)
{
	assert_int_equal(eventfd_write(kit->cancel_fd, 1), 0);
}

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)((offset * 0x9e3779b97f4a7c15u) >> 56) | 1;
}

void make_bytes(uint8_t *to, size_t len, uint64_t offset)
{
	for (size_t i = 0; i < len; i++)
		to[i] = byte_at(offset + i);
}

void make_file(const char *path, size_t len)
{
	uint8_t *data = page_aligned(len);
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);

	assert_true(fd >= 0);
	make_bytes(data, len, 0);
	assert_int_equal(write(fd, data, len), len);
	close(fd);
	free(data);
}

void assert_bytes(const uint8_t *data, size_t len, uint64_t offset)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] != byte_at(offset + i))
			fail_msg("byte %zu is wrong", i);
}

void assert_file_is(const char *path, const void *data, size_t len)
{
	uint8_t *have = page_aligned(len + 1);
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, have, len + 1), len);
	assert_memory_equal(have, data, len);
	close(fd);
	free(have);
}

void assert_same_files(const char *a, const char *b)
{
	char command[400];

	snprintf(command, sizeof(command), "cmp '%s' '%s'", a, b);
	assert_int_equal(system(command), 0);
}

uint8_t *page_aligned(size_t len)
{
	void *buffer = aligned_alloc(4096, (len + 4096) & ~(size_t)4095);

	assert_non_null(buffer);
	return buffer;
}

struct vb__source *open_source(struct kit *kit, const struct vb_input *input)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__source *source = NULL;
	char line[VB_ERROR_LINE_MAX];

	if (vb__source_open(input, VB_DIRECT_AUTO, kit->cancel_fd, &source, &err))
		fail_msg("%s", vb_error_format(&err, line, sizeof(line)));
	return source;
}

struct vb__sink *open_sink(struct kit *kit, const char *path, uint64_t total_bytes)
{
	struct vb__sink_options options = { .cancel_fd = kit->cancel_fd };
	struct vb__origin origin = { .total_bytes = total_bytes };
	struct vb_output output = { .path = path };
	struct vb_error err = { .code = VB_OK };
	struct vb__sink *sink = NULL;
	char line[VB_ERROR_LINE_MAX];

	if (vb__sink_open(&output, &origin, &options, &sink, &err))
		fail_msg("%s", vb_error_format(&err, line, sizeof(line)));
	return sink;
}

int sink_refuses(struct kit *kit, const char *path, const struct vb__origin *origin,
		 struct vb_error *err)
{
	struct vb__sink_options options = { .cancel_fd = kit->cancel_fd };
	struct vb_output output = { .path = path };
	struct vb__sink *sink = NULL;
	int rc;

	*err = (struct vb_error){ .code = VB_OK };
	rc = vb__sink_open(&output, origin, &options, &sink, err);
	assert_int_not_equal(rc, 0);
	assert_int_equal(rc, err->code);
	assert_null(sink);
	return rc;
}

/* Lock held. Takes a block unless all is over. */
static int take(struct pump *pump, uint8_t *buffer, struct vb__block *block)
{
	int rc = pump->rc ? pump->rc
			  : pump->source->ops->next(pump->source, buffer, pump->block_bytes, block,
						    &pump->err);

	if (rc < 0)
		pump->rc = rc;
	if (rc == 0)
		pump->rc = 1;
	if (rc <= 0 || pump->rc)
		return 0;
	pump->bytes += block->length;
	pump->hole_bytes += block->length - vb__block_data_bytes(block);
	pump->full_blocks += block->length == pump->block_bytes;
	pump->blocks++;
	return 1;
}

static int move(struct pump *pump, uint8_t *buffer, struct vb__block *block, struct vb_error *err)
{
	bool hole = block->flags & VB__BLOCK_HOLE;
	int rc = pump->source->ops->fill(pump->source, buffer, block, err);

	if (rc || !pump->sink)
		return rc;
	return pump->sink->ops->put(pump->sink, block, hole ? NULL : buffer, err);
}

static void *work(void *arg)
{
	struct pump *pump = arg;
	uint8_t *buffer = page_aligned(pump->block_bytes);
	struct vb__block block;
	int more;

	for (;;) {
		struct vb_error err = { .code = VB_OK };

		pthread_mutex_lock(&pump->lock);
		more = take(pump, buffer, &block);
		pthread_mutex_unlock(&pump->lock);
		if (!more)
			break;
		if (!move(pump, buffer, &block, &err))
			continue;
		pthread_mutex_lock(&pump->lock);
		if (pump->rc >= 0) {
			pump->rc = err.code;
			pump->err = err;
		}
		pthread_mutex_unlock(&pump->lock);
	}
	free(buffer);
	return NULL;
}

int pump_run(struct pump *pump)
{
	pthread_t threads[THREADS_MAX];

	pthread_mutex_init(&pump->lock, NULL);
	for (unsigned i = 0; i < pump->threads; i++)
		threads[i] = start_thread(work, pump);
	for (unsigned i = 0; i < pump->threads; i++)
		join_thread(threads[i]);
	pthread_mutex_destroy(&pump->lock);
	if (pump->rc > 0)
		pump->rc = pump->source->ops->finish(pump->source, &pump->err);
	if (pump->rc == 0 && pump->sink)
		pump->rc = pump->sink->ops->finish(pump->sink, pump->bytes, &pump->err);
	return pump->rc;
}

int pump_through(struct vb__source *source, struct vb__sink *sink, size_t block_bytes,
		 unsigned threads, struct vb_error *err)
{
	struct pump pump = {
		.source = source, .sink = sink, .block_bytes = block_bytes, .threads = threads
	};
	int rc = pump_run(&pump);

	source->ops->close(source);
	if (sink)
		sink->ops->close(sink);
	*err = pump.err;
	return rc;
}

pthread_t start_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, run, arg), 0);
	return thread;
}

void join_thread(pthread_t thread)
{
	assert_int_equal(pthread_join(thread, NULL), 0);
}
