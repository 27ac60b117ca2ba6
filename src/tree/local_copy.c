/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree from one place to another on this host: source and sink are joined directly, by some threads
 * that carry blocks and by the caller's, which carries the notes back.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "transfer/pace.h"
#include "transfer/session_state.h"
#include "tree/tree_ends.h"
#include "wire/words.h"

#define BLOCK_BYTES (512u << 10)
#define PROGRESS_MS 100u

struct local {
	struct vb__plan plan;
	struct vb__source *source;
	struct vb__sink *sink;
	int cancel_fd; /* readable: give up */
	int wake_fd;   /* readable: the sink has something to say, or a worker is done */
	uint64_t start_ns;

	pthread_mutex_t order; /* held by the worker that takes a block */
	struct vb__pace pace;
	bool ended;

	pthread_mutex_t lock; /* for all below */
	unsigned working;
	bool failed;
	struct vb_error failure;
};

static void signal_fd(int fd)
{
	while (eventfd_write(fd, 1) < 0 && errno == EINTR)
		;
}

static void fail(struct local *l, const struct vb_error *failure)
{
	pthread_mutex_lock(&l->lock);
	vb__fail_again(&l->failure, failure);
	l->failed = true;
	pthread_mutex_unlock(&l->lock);
	signal_fd(l->cancel_fd);
	signal_fd(l->wake_fd);
}

static bool has_failed(struct local *l)
{
	bool failed;

	pthread_mutex_lock(&l->lock);
	failed = l->failed;
	pthread_mutex_unlock(&l->lock);
	return failed;
}

/* 1, 0 at the end, or an error. */
static int take(struct local *l, void *buffer, struct vb__block *block, struct vb_error *err)
{
	int rc = 0;

	pthread_mutex_lock(&l->order);
	if (!l->ended)
		rc = l->source->ops->next(l->source, buffer,
					  vb__pace_room(&l->pace, l->plan.block_bytes), block, err);
	l->ended = rc <= 0;
	if (rc > 0)
		vb__pace_keep(&l->pace, vb__block_data_bytes(block), l->cancel_fd);
	pthread_mutex_unlock(&l->order);
	return rc;
}

static void carry_blocks(struct local *l, void *buffer, struct vb_error *err)
{
	struct vb__block block = { .length = 0 };
	int rc;

	while (!has_failed(l) && (rc = take(l, buffer, &block, err)) != 0) {
		if (rc > 0)
			rc = l->source->ops->fill(l->source, buffer, &block, err);
		if (rc == 0)
			rc = l->sink->ops->put(l->sink, &block,
					       block.flags & VB__BLOCK_HOLE ? NULL : buffer, err);
		if (rc < 0) {
			fail(l, err);
			return;
		}
	}
}

static void *work(void *arg)
{
	struct local *l = arg;
	struct vb_error err = { .code = VB_OK };
	void *buffer = NULL;
	int rc = posix_memalign(&buffer, (size_t)sysconf(_SC_PAGESIZE), l->plan.block_bytes);

	if (rc == 0) {
		carry_blocks(l, buffer, &err);
	} else {
		vb__fail_errno(&err, rc, "allocate", "a block");
		fail(l, &err);
	}
	free(buffer);
	pthread_mutex_lock(&l->lock);
	l->working--;
	pthread_mutex_unlock(&l->lock);
	signal_fd(l->wake_fd);
	return NULL;
}

static void carry_notes(struct local *l)
{
	struct vb_error err = { .code = VB_OK };
	uint8_t note[VB__NOTE_ROOM];
	size_t len;

	while ((len = l->sink->ops->speak(l->sink, note, sizeof(note))) > 0)
		if (l->source->ops->hear(l->source, note, len, &err) != 0) {
			fail(l, &err);
			return;
		}
}

static void show_progress(struct local *l)
{
	struct vb_progress progress = {
		.total_bytes = UINT64_MAX,
		.elapsed_ns = vb__now_ns() - l->start_ns,
	};

	if (!l->plan.progress)
		return;
	l->sink->ops->progress(l->sink, &progress);
	l->plan.progress(l->plan.progress_arg, &progress);
}

static unsigned still_working(struct local *l)
{
	unsigned working;

	pthread_mutex_lock(&l->lock);
	working = l->working;
	pthread_mutex_unlock(&l->lock);
	return working;
}

/* Until all workers have left. */
static void conduct(struct local *l)
{
	struct pollfd fds[] = { { .fd = l->wake_fd, .events = POLLIN },
				{ .fd = l->plan.stop_fd, .events = POLLIN } };
	struct vb_error stopped = { .code = VB_OK };
	uint64_t next = 0;
	eventfd_t wakes;

	while (still_working(l) > 0) {
		carry_notes(l);
		if (vb__now_ns() >= next) {
			show_progress(l);
			next = vb__now_ns() + vb__ms(PROGRESS_MS);
		}
		poll(fds, 2, vb__ms_left(next));
		if (fds[1].fd >= 0 && vb__plan_stopped(&l->plan)) {
			vb__fail_interrupted(&stopped);
			fail(l, &stopped);
			fds[1].fd = -1;
		}
		eventfd_read(l->wake_fd, &wakes);
	}
}

static void run(struct local *l)
{
	pthread_t threads[VB_WORKERS_MAX];
	struct vb_error err = { .code = VB_OK };
	unsigned count = 0;
	sigset_t all, before;
	int rc = 0;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (count < vb__plan_workers(&l->plan, VB__LABOUR_MOVE) && rc == 0) {
		pthread_mutex_lock(&l->lock);
		l->working++;
		pthread_mutex_unlock(&l->lock);
		rc = pthread_create(&threads[count], NULL, work, l);
		count += rc == 0;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		pthread_mutex_lock(&l->lock);
		l->working--;
		pthread_mutex_unlock(&l->lock);
		vb__fail_errno(&err, rc, "pthread_create", NULL);
		fail(l, &err);
	}
	conduct(l);
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void finish(struct local *l)
{
	struct vb_error err = { .code = VB_OK };

	if (l->source->ops->finish(l->source, &err) != 0 ||
	    l->sink->ops->finish(l->sink, UINT64_MAX, &err) != 0)
		fail(l, &err);
	carry_notes(l);
	show_progress(l);
}

/* Each end hears of the other's failures, so the user is told by one of them only: that is `silent`. */
/* 0, or why this cannot be: the walk would meet its own copies, and those of them. */
static int check_outside(const char *path, const char *where, struct vb_error *err)
{
	char *from = realpath(path, NULL);
	size_t len = from ? strlen(from) : 0;
	struct stat st;
	bool inside = from && stat(from, &st) == 0 && S_ISDIR(st.st_mode) &&
		      strncmp(where, from, len) == 0 &&
		      (len == 1 || where[len] == '/' || where[len] == '\0');

	free(from);
	if (!inside)
		return 0;
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_INVALID,
				     .operation = "copy",
				     .object = path,
				     .cause = "a directory cannot be copied into itself",
				     .hint = "choose a target outside of it",
			     });
}

/* Where the target is, or will be made. */
static char *locate(const char *target)
{
	char *where = realpath(*target ? target : ".", NULL), *copy, *slash;

	if (where)
		return where;
	copy = strdup(target);
	for (size_t len = copy ? strlen(copy) : 0; len > 1 && copy[len - 1] == '/';)
		copy[--len] = '\0';
	slash = copy ? strrchr(copy, '/') : NULL;
	if (slash)
		slash[slash == copy] = '\0';
	where = copy ? realpath(slash ? copy : ".", NULL) : NULL;
	free(copy);
	return where;
}

static int check_paths(const char *const *paths, size_t path_count, const char *target,
		       struct vb_error *err)
{
	char *where = locate(target);
	int rc = 0;

	for (size_t i = 0; where && i < path_count && rc == 0; i++)
		rc = check_outside(paths[i], where, err);
	free(where);
	return rc;
}

static int open_ends(struct local *l, const char *const *paths, size_t path_count,
		     const char *target, const struct vb_tree_options *options,
		     const struct vb_tree_options *silent, struct vb_tree_report reports[2],
		     struct vb_error *err)
{
	struct vb__sink_options sink_options = {
		.direct = l->plan.direct,
		.fsync = l->plan.fsync,
		.cancel_fd = l->cancel_fd,
		.wake_fd = l->wake_fd,
	};
	int rc;

	if (l->cancel_fd < 0 || l->wake_fd < 0)
		return vb__fail_errno(err, errno, "eventfd", NULL);
	rc = vb__tree_sink_open(target, options, &sink_options, &reports[1], &l->sink, err);
	if (rc == 0)
		rc = vb__tree_source_open(paths, path_count, silent, l->plan.direct, l->cancel_fd,
					  &reports[0], &l->source, err);
	return rc;
}

static void close_all(struct local *l)
{
	if (l->source)
		l->source->ops->close(l->source);
	if (l->sink)
		l->sink->ops->close(l->sink);
	if (l->cancel_fd >= 0)
		close(l->cancel_fd);
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	pthread_mutex_destroy(&l->order);
	pthread_mutex_destroy(&l->lock);
}

static int make_plan(struct local *l, const struct vb_transfer_options *transfer,
		     struct vb_error *err)
{
	struct vb_transfer_options ours = { .rails = 0 };
	int rc;

	if (transfer)
		ours = *transfer;
	ours.key = "none";
	ours.key_bytes = 4;
	ours.connection = (struct vb_options){ .log = ours.connection.log };
	rc = vb__plan_from(&l->plan, &ours, err);
	if (!l->plan.block_bytes)
		l->plan.block_bytes = BLOCK_BYTES;
	l->pace.bytes_per_second = l->plan.bytes_per_second;
	return rc;
}

int vb_tree_copy(const char *const *paths, size_t path_count, const char *target,
		 const struct vb_tree_options *options, const struct vb_transfer_options *transfer,
		 struct vb_tree_report *report, struct vb_error *err)
{
	static const struct vb_tree_options defaults;
	struct vb_tree_report reports[2] = { { .files = 0 } };
	struct vb_error local_err;
	struct local l = { .start_ns = vb__now_ns() };
	struct vb_tree_options silent;
	int rc;

	err = err ? err : &local_err;
	vb__error_clear(err);
	options = options ? options : &defaults;
	silent = *options;
	silent.event = NULL;
	rc = check_paths(paths, path_count, target, err);
	if (rc == 0)
		rc = make_plan(&l, transfer, err);
	if (rc)
		return rc;
	pthread_mutex_init(&l.order, NULL);
	pthread_mutex_init(&l.lock, NULL);
	l.cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	l.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = open_ends(&l, paths, path_count, target, options, &silent, reports, err);
	if (rc == 0) {
		run(&l);
		if (!l.failed)
			finish(&l);
		rc = vb__fail_again(err, &l.failure);
	}
	close_all(&l);
	reports[1].elapsed_ns = vb__now_ns() - l.start_ns;
	if (report)
		*report = reports[1];
	return rc;
}
