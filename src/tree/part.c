/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that large ones are written to: beside their place, readable to nobody else, under
 * names of ours. Only so many are kept open; one that is opened again must be the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tree/tree_sink.h"

/* Kept open at most, besides those that are being written to. */
#define OPEN_MAX_IDLE 64u

struct vb__part {
	int fd; /* -1: not open at the moment */
	struct vb__filing filing;
	dev_t dev;
	ino_t ino;
	bool made; /* or found */
	unsigned users;
};

/* ---- Those that are open and not in use, the longest first. The lock for opening is held. ---- */

static void link_newest(struct vb__tree_sink *s, struct vb__arrival *a)
{
	a->older = s->newest;
	a->newer = NULL;
	if (s->newest)
		s->newest->newer = a;
	else
		s->oldest = a;
	s->newest = a;
}

static void unlink_idle(struct vb__tree_sink *s, struct vb__arrival *a)
{
	*(a->newer ? &a->newer->older : &s->newest) = a->older;
	*(a->older ? &a->older->newer : &s->oldest) = a->newer;
	a->newer = a->older = NULL;
}

static void close_part(struct vb__tree_sink *s, struct vb__part *part)
{
	vb__filing_close(&part->filing);
	close(part->fd);
	part->fd = -1;
	s->open_parts--;
}

static void end_use(struct vb__tree_sink *s, struct vb__arrival *a)
{
	if (--a->part->users > 0)
		return;
	link_newest(s, a);
	while (s->open_parts > OPEN_MAX_IDLE && s->oldest) {
		struct vb__arrival *oldest = s->oldest;

		unlink_idle(s, oldest);
		close_part(s, oldest->part);
	}
}

/* ---- Opening. ---- */

/* Nobody else's, and no other name leads to it. */
static bool is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() && st->st_nlink == 1 &&
	       !(st->st_mode & 077);
}

static int open_found(int dir_fd, const char *name, struct stat *st)
{
	int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && (fstat(fd, st) || !is_ours(st))) {
		close(fd);
		errno = ESTALE;
		return -1;
	}
	return fd;
}

/* What was left there is no use. */
static int open_new(struct vb__tree_sink *s, struct vb__arrival *a, int dir_fd, const char *name,
		    struct stat *st)
{
	int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, fd;

	vb__journal_restart(&s->journal, &a->hash);
	fd = openat(dir_fd, name, flags, 0600);
	if (fd < 0 && errno == EEXIST && unlinkat(dir_fd, name, 0) == 0)
		fd = openat(dir_fd, name, flags, 0600);
	if (fd >= 0 && fstat(fd, st)) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_again(const struct vb__part *part, int dir_fd, const char *name, struct stat *st)
{
	int fd = open_found(dir_fd, name, st);

	if (fd >= 0 && (st->st_dev != part->dev || st->st_ino != part->ino)) {
		close(fd);
		errno = ESTALE;
		return -1;
	}
	return fd;
}

static struct vb__filing_plan plan_for(const struct vb__tree_sink *s, const struct vb__arrival *a)
{
	return (struct vb__filing_plan){
		.total_bytes = a->size,
		.sparse = a->sparse,
		.fsync = s->options.fsync,
		.direct = s->options.direct,
	};
}

/* It is open, and in use by the caller. 0 or an errno. */
static int take_in(struct vb__tree_sink *s, struct vb__arrival *a, int fd, const struct stat *st)
{
	struct vb__filing_plan plan = plan_for(s, a);
	struct vb__part *part = a->part;
	int errnum = part->made ? 0 : vb__filing_reserve(fd, &plan);

	part->fd = fd;
	part->dev = st->st_dev;
	part->ino = st->st_ino;
	part->made = true;
	part->users = 1;
	s->open_parts++;
	vb__filing_open(&part->filing, fd, &plan);
	if (errnum)
		end_use(s, a);
	return errnum;
}

static int open_part(struct vb__tree_sink *s, struct vb__arrival *a)
{
	struct vb__part_name name = vb__part_name(s->journal.tag, &a->hash);
	int dir_fd = vb__place_hold(&s->places, a->place), fd, errnum;
	struct stat st;

	if (dir_fd < 0)
		return errno;
	fd = a->part->made ? open_again(a->part, dir_fd, name.text, &st)
			   : open_new(s, a, dir_fd, name.text, &st);
	errnum = fd < 0 ? errno : take_in(s, a, fd, &st);
	vb__place_let_go(&s->places, a->place);
	return errnum;
}

/* 0 or an errno. */
static int begin_use(struct vb__tree_sink *s, struct vb__arrival *a)
{
	int errnum = 0;

	pthread_mutex_lock(&s->opening);
	if (!a->part) {
		a->part = calloc(1, sizeof(*a->part));
		if (a->part)
			a->part->fd = -1;
	}
	if (!a->part)
		errnum = ENOMEM;
	else if (a->part->fd < 0)
		errnum = open_part(s, a);
	else if (a->part->users++ == 0)
		unlink_idle(s, a);
	pthread_mutex_unlock(&s->opening);
	return errnum;
}

/* ---- What others need. ---- */

int vb__part_write(struct vb__tree_sink *s, struct vb__arrival *a, const struct vb__block *block,
		   const void *data)
{
	int errnum = begin_use(s, a);

	if (errnum)
		return errnum;
	errnum = vb__filing_put(&a->part->filing, data, vb__block_data_bytes(block), block->offset);
	pthread_mutex_lock(&s->opening);
	end_use(s, a);
	pthread_mutex_unlock(&s->opening);
	return errnum;
}

int vb__part_hold(struct vb__tree_sink *s, struct vb__arrival *a)
{
	int errnum = begin_use(s, a);

	errno = errnum;
	return errnum ? -1 : a->part->fd;
}

static void remove_file(struct vb__tree_sink *s, struct vb__arrival *a)
{
	struct vb__part_name name = vb__part_name(s->journal.tag, &a->hash);
	int dir_fd = vb__place_hold(&s->places, a->place);

	if (dir_fd < 0)
		return;
	(void)unlinkat(dir_fd, name.text, 0);
	vb__place_let_go(&s->places, a->place);
}

void vb__part_drop(struct vb__tree_sink *s, struct vb__arrival *a, bool remove)
{
	bool made;

	if (!a->part)
		return;
	pthread_mutex_lock(&s->opening);
	if (a->part->fd >= 0) {
		if (a->part->users == 0)
			unlink_idle(s, a);
		close_part(s, a->part);
	}
	made = a->part->made;
	free(a->part);
	a->part = NULL;
	pthread_mutex_unlock(&s->opening);
	if (remove && made)
		remove_file(s, a);
}

/* What it says of the file that was found: none of it if that is shorter than it should be. */
static int look_up(struct vb__tree_sink *s, struct vb__arrival *a, int fd)
{
	int errnum =
		vb__journal_parts(&s->journal, &a->hash, a->identity, a->size, fd, &a->claimed);

	a->stored = a->claimed.bytes;
	a->resumed = a->stored > 0;
	return errnum;
}

int vb__part_resume(struct vb__tree_sink *s, struct vb__arrival *a)
{
	struct vb__part_name name = vb__part_name(s->journal.tag, &a->hash);
	int dir_fd = vb__place_hold(&s->places, a->place), fd, errnum;
	struct stat st;

	if (dir_fd < 0)
		return errno;
	fd = open_found(dir_fd, name.text, &st);
	vb__place_let_go(&s->places, a->place);
	if (fd < 0)
		return 0;
	errnum = look_up(s, a, fd);
	if (errnum || !a->resumed) {
		close(fd);
		return errnum;
	}
	a->part = calloc(1, sizeof(*a->part));
	if (!a->part) {
		close(fd);
		return ENOMEM;
	}
	a->part->made = true;
	pthread_mutex_lock(&s->opening);
	errnum = take_in(s, a, fd, &st);
	end_use(s, a);
	pthread_mutex_unlock(&s->opening);
	return errnum;
}
