/* SPDX-License-Identifier: Apache-2.0 */
/* Opening directories, keeping some of them open, and knowing them again. */
#include "tree/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <xxhash.h>

/* Kept open at most, besides those in use. */
#define OPEN_MAX_IDLE 128u
#define OPEN_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static struct vb__path_hash hash_of(const struct vb__path_hash *parent, const char *name)
{
	uint8_t text[sizeof(*parent) + VB__NAME_MAX + 1];
	size_t len = strnlen(name, VB__NAME_MAX);
	XXH128_hash_t hash;

	memcpy(text, parent, sizeof(*parent));
	memcpy(text + sizeof(*parent), name, len);
	hash = XXH3_128bits(text, sizeof(*parent) + len);
	return (struct vb__path_hash){ .high = hash.high64, .low = hash.low64 };
}

struct vb__path_hash vb__place_hash(const struct vb__place *place, const char *name)
{
	return hash_of(&place->hash, name);
}

/* ---- The cache. The lock is held for all of these. ---- */

static void link_newest(struct vb__places *p, struct vb__place *place)
{
	place->older = p->newest;
	place->newer = NULL;
	if (p->newest)
		p->newest->newer = place;
	else
		p->oldest = place;
	p->newest = place;
}

static void unlink_idle(struct vb__places *p, struct vb__place *place)
{
	*(place->newer ? &place->newer->older : &p->newest) = place->older;
	*(place->older ? &place->older->newer : &p->oldest) = place->newer;
	place->newer = place->older = NULL;
}

static void close_oldest(struct vb__places *p)
{
	struct vb__place *place = p->oldest;

	unlink_idle(p, place);
	close(place->fd);
	place->fd = -1;
	p->open_count--;
}

static void begin_use(struct vb__places *p, struct vb__place *place)
{
	if (place->users++ == 0)
		unlink_idle(p, place);
}

static void end_use(struct vb__places *p, struct vb__place *place)
{
	if (--place->users > 0)
		return;
	link_newest(p, place);
	while (p->open_count > OPEN_MAX_IDLE && p->oldest)
		close_oldest(p);
}

/* It is open, and in use by the caller. */
static void take_in(struct vb__places *p, struct vb__place *place, int fd)
{
	place->fd = fd;
	place->users = 1;
	p->open_count++;
}

/* ---- Opening. ---- */

/* One may be allowed to make files in it and yet not to list it. */
static int open_in(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, OPEN_FLAGS);

	if (fd < 0 && errno == EACCES)
		fd = openat(dir_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ELOOP) /* a link: not what we look for either */
		errno = ENOTDIR;
	return fd;
}

static int open_again(struct vb__place *place, int parent_fd)
{
	int fd = open_in(parent_fd, place->name);
	struct stat st;

	if (fd < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			errno = ESTALE;
		return -1;
	}
	if (fstat(fd, &st) == 0 && st.st_dev == place->dev && st.st_ino == place->ino)
		return fd;
	close(fd);
	errno = ESTALE;
	return -1;
}

/* The nearest that is open; the base always is. */
static struct vb__place *nearest_open(struct vb__place *place)
{
	while (place->fd < 0 && place->parent)
		place = place->parent;
	return place;
}

/* The next below `from` on the way to `place`. */
static struct vb__place *step_towards(const struct vb__place *from, struct vb__place *place)
{
	while (place->parent != from)
		place = place->parent;
	return place;
}

/* Lock held. Opens all on the way; each is closed again when there are too many. */
static int hold_locked(struct vb__places *p, struct vb__place *place)
{
	struct vb__place *at = nearest_open(place);

	if (at->fd < 0) {
		errno = ENOENT; /* in a dry run there may be no base */
		return -1;
	}
	begin_use(p, at);
	while (at != place) {
		struct vb__place *next = step_towards(at, place);
		int fd = open_again(next, at->fd), errnum = errno;

		if (fd >= 0)
			take_in(p, next, fd);
		end_use(p, at);
		if (fd < 0) {
			errno = errnum;
			return -1;
		}
		at = next;
	}
	return place->fd;
}

int vb__place_hold(struct vb__places *p, struct vb__place *place)
{
	int fd;

	pthread_mutex_lock(&p->lock);
	fd = hold_locked(p, place);
	pthread_mutex_unlock(&p->lock);
	return fd;
}

void vb__place_let_go(struct vb__places *p, struct vb__place *place)
{
	pthread_mutex_lock(&p->lock);
	end_use(p, place);
	pthread_mutex_unlock(&p->lock);
}

/* Without these permissions we could not work in our own directory. */
static void widen(struct vb__place *place, int parent_fd, const struct stat *st)
{
	if ((st->st_mode & 0700) == 0700 || st->st_uid != geteuid() || geteuid() == 0)
		return;
	if (fchmodat(parent_fd, place->name, (st->st_mode & 07777) | 0700, AT_SYMLINK_NOFOLLOW) ==
	    0)
		place->old_mode = st->st_mode;
}

/* The directory that stands there under its name. */
static int open_standing(struct vb__places *p, struct vb__place *place, int parent_fd)
{
	struct stat st;
	int fd;

	if (fstatat(parent_fd, place->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno;
	if (!S_ISDIR(st.st_mode))
		return ENOTDIR;
	widen(place, parent_fd, &st);
	fd = open_in(parent_fd, place->name);
	if (fd < 0)
		return errno;
	if (fstat(fd, &st)) {
		close(fd);
		return errno;
	}
	place->dev = st.st_dev;
	place->ino = st.st_ino;
	place->default_acl = p->check_acls &&
			     fgetxattr(fd, "system.posix_acl_default", NULL, 0) > 0;
	pthread_mutex_lock(&p->lock);
	take_in(p, place, fd);
	end_use(p, place);
	pthread_mutex_unlock(&p->lock);
	return 0;
}

int vb__place_enter(struct vb__places *p, struct vb__place *place, mode_t mode)
{
	int parent_fd = vb__place_hold(p, place->parent), errnum;

	if (parent_fd < 0)
		return errno;
	place->made = mkdirat(parent_fd, place->name, (mode & 0777) | 0700) == 0;
	errnum = place->made ? 0 : errno;
	if (!errnum || errnum == EEXIST)
		errnum = open_standing(p, place, parent_fd);
	if (place->made)
		place->old_mode = 0; /* what it should be is known */
	vb__place_let_go(p, place->parent);
	return errnum;
}

int vb__place_look(struct vb__places *p, struct vb__place *place)
{
	int parent_fd, errnum;
	struct stat st;

	if (place->parent->absent) {
		place->absent = true;
		return 0;
	}
	parent_fd = vb__place_hold(p, place->parent);
	if (parent_fd < 0)
		return errno;
	errnum = fstatat(parent_fd, place->name, &st, AT_SYMLINK_NOFOLLOW) ? errno : 0;
	if (!errnum)
		errnum = S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
	place->absent = errnum == ENOENT;
	place->dev = st.st_dev;
	place->ino = st.st_ino;
	vb__place_let_go(p, place->parent);
	return place->absent ? 0 : errnum;
}

/* ---- Their lives. ---- */

static struct vb__place *new_place(struct vb__places *p, const char *name)
{
	size_t len = strlen(name) + 1;
	struct vb__place *place = calloc(1, sizeof(*place) + len);

	if (!place)
		return NULL;
	memcpy(place->name, name, len);
	place->fd = -1;
	pthread_mutex_lock(&p->lock);
	place->next = p->all;
	if (p->all)
		p->all->previous = place;
	p->all = place;
	p->count++;
	pthread_mutex_unlock(&p->lock);
	return place;
}

struct vb__place *vb__place_add(struct vb__places *p, struct vb__place *parent, uint32_t number,
				const char *name)
{
	struct vb__place *place = new_place(p, name);

	if (!place)
		return NULL;
	place->parent = parent;
	place->number = number;
	place->depth = parent->depth + 1;
	place->hash = hash_of(&parent->hash, name);
	return place;
}

void vb__place_free(struct vb__places *p, struct vb__place *place)
{
	pthread_mutex_lock(&p->lock);
	if (place->fd >= 0) {
		if (place->users == 0)
			unlink_idle(p, place);
		close(place->fd);
		p->open_count--;
	}
	*(place->previous ? &place->previous->next : &p->all) = place->next;
	if (place->next)
		place->next->previous = place->previous;
	p->count--;
	pthread_mutex_unlock(&p->lock);
	vb__meta_free(&place->meta);
	vb__nameset_free(&place->names);
	free(place);
}

int vb__places_open(struct vb__places *p, int base_fd, bool check_acls)
{
	struct stat st = { .st_mode = 0 };

	*p = (struct vb__places){ .check_acls = check_acls };
	pthread_mutex_init(&p->lock, NULL);
	p->base = new_place(p, "");
	if (!p->base || (base_fd >= 0 && fstat(base_fd, &st))) {
		int errnum = p->base ? errno : ENOMEM;

		if (base_fd >= 0)
			close(base_fd);
		return errnum;
	}
	p->base->dev = st.st_dev;
	p->base->ino = st.st_ino;
	p->base->absent = base_fd < 0;
	if (base_fd >= 0) /* in use for ever */
		take_in(p, p->base, base_fd);
	p->base->default_acl = check_acls && base_fd >= 0 &&
			       fgetxattr(base_fd, "system.posix_acl_default", NULL, 0) > 0;
	return 0;
}

void vb__places_close(struct vb__places *p)
{
	for (struct vb__place *place = p->all; place; place = place->next)
		if (place->old_mode && vb__place_hold(p, place) >= 0) {
			(void)!fchmod(place->fd, place->old_mode & 07777);
			vb__place_let_go(p, place);
		}
	while (p->all)
		vb__place_free(p, p->all);
	pthread_mutex_destroy(&p->lock);
}

static const char *called(const struct vb__place *place, bool shown)
{
	return shown && place->shown ? place->shown : place->name;
}

/* From its end to its start; the base has no name. */
static char *build_path(const struct vb__place *place, const char *name, bool shown)
{
	size_t len = strlen(name);
	char *path, *at;

	for (const struct vb__place *p = place; p->parent; p = p->parent)
		len += strlen(called(p, shown)) + 1;
	path = malloc(len + 1);
	if (!path)
		return NULL;
	at = path + len;
	*at = '\0';
	for (const struct vb__place *p = place;; p = p->parent) {
		size_t part = strlen(name);

		if (*at && part) /* not behind the last */
			*--at = '/';
		at -= part;
		memcpy(at, name, part);
		if (!p->parent)
			break;
		name = called(p, shown);
	}
	memmove(path, at, strlen(at) + 1);
	return path;
}

char *vb__place_path(const struct vb__place *place, const char *name)
{
	return build_path(place, name ? name : "", true);
}

char *vb__place_real_path(const struct vb__place *place, const char *name)
{
	return build_path(place, name, false);
}
