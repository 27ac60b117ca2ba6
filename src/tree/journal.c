/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing the journal. What to do with it is not its business. */
#include "tree/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <unistd.h>
#include <xxhash.h>

#include <verbatim/transfer.h>

#include "wire/bytes.h"

#define VERSION 1u
#define BOOT_ID 36u
/* In the header: 1 if all that it tells of came sealed. */
#define SEALED_AT 52u
/* So much of it is read at a time. */
#define PIECE (64u * VB__JOURNAL_RECORD)
/* A journal that is longer is not looked at further: 1 GiB are 16 million records. */
#define LENGTH_MAX (1u << 30)

static const uint8_t magic[8] = { 'r', 'd', 'c', 'p', '\n', 'j', 'r', 'n' };

enum kind {
	KIND_DONE = 1,
	KIND_PART = 2,
	KIND_RESTART = 3, /* parts that were said before do not count */
};

/* `offset`, `length` and `file` are of a PART only. */
struct record {
	uint32_t kind;
	uint32_t flags; /* PART: the block's; DONE: 1, it was synced */
	struct vb__path_hash path;
	uint64_t identity;
	uint64_t offset, length;
	uint64_t hash; /* PART: the block's; DONE: of the target */
	uint32_t file;
};

/* 32 bytes each. */
struct vb__journal_done {
	struct vb__path_hash path; /* all 0: free */
	uint64_t identity, target;
};

/* ---- Records. ---- */

static void encode(uint8_t *to, const struct record *r)
{
	vb__put32(to, r->kind | r->flags << 8);
	vb__put32(to + 4, r->file);
	vb__put64(to + 8, r->path.high);
	vb__put64(to + 16, r->path.low);
	vb__put64(to + 24, r->identity);
	vb__put64(to + 32, r->offset);
	vb__put64(to + 40, r->length);
	vb__put64(to + 48, r->hash);
	vb__put64(to + 56, XXH3_64bits(to, 56));
}

static bool decode(struct record *r, const uint8_t *from)
{
	uint32_t kind = vb__get32(from);

	if (XXH3_64bits(from, 56) != vb__get64(from + 56))
		return false;
	*r = (struct record){
		.kind = kind & 0xff,
		.flags = kind >> 8,
		.file = vb__get32(from + 4),
		.path = { .high = vb__get64(from + 8), .low = vb__get64(from + 16) },
		.identity = vb__get64(from + 24),
		.offset = vb__get64(from + 32),
		.length = vb__get64(from + 40),
		.hash = vb__get64(from + 48),
	};
	return r->kind >= KIND_DONE && r->kind <= KIND_RESTART;
}

static bool read_boot_id(uint8_t to[BOOT_ID])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, BOOT_ID);

	if (fd >= 0)
		close(fd);
	return n == BOOT_ID;
}

/* 64 bytes as well. Without a boot's name no two are the same. */
static void encode_header(uint8_t to[VB__JOURNAL_RECORD], bool sealed)
{
	memset(to, 0, VB__JOURNAL_RECORD);
	memcpy(to, magic, sizeof(magic));
	vb__put32(to + 8, VERSION);
	vb__put32(to + 12, VB__JOURNAL_RECORD);
	if (!read_boot_id(to + 16))
		(void)!getrandom(to + 16, BOOT_ID, 0);
	to[SEALED_AT] = sealed;
	vb__put64(to + 56, XXH3_64bits(to, 56));
}

/* What came unsealed is added to what came sealed: that must be known before it is done. */
static bool drop_seal(const struct vb__journal *j, uint8_t header[VB__JOURNAL_RECORD])
{
	header[SEALED_AT] = false;
	vb__put64(header + 56, XXH3_64bits(header, 56));
	return pwrite(j->fd, header, VB__JOURNAL_RECORD, 0) == VB__JOURNAL_RECORD &&
	       fdatasync(j->fd) == 0;
}

/* Is there a header, is it of this boot, and may it be believed? */
static bool check_header(struct vb__journal *j, bool sealed)
{
	uint8_t have[VB__JOURNAL_RECORD], now[VB__JOURNAL_RECORD];

	if (pread(j->fd, have, sizeof(have), 0) != sizeof(have) ||
	    XXH3_64bits(have, 56) != vb__get64(have + 56))
		return false;
	encode_header(now, sealed);
	j->same_boot = memcmp(have, now, SEALED_AT) == 0;
	if (memcmp(have, now, 16) != 0 || (sealed && !have[SEALED_AT]))
		return false;
	return sealed || !have[SEALED_AT] || drop_seal(j, have);
}

/* ---- What is done. ---- */

static bool is_free(const struct vb__journal_done *done)
{
	return !done->path.high && !done->path.low;
}

static struct vb__journal_done *find_done(const struct vb__journal *j,
					  const struct vb__path_hash *path)
{
	size_t i = (size_t)(path->low % j->done_room);

	while (!is_free(&j->done[i]) &&
	       (j->done[i].path.high != path->high || j->done[i].path.low != path->low))
		i = (i + 1) % j->done_room;
	return &j->done[i];
}

/* Room for as many as there can be, and some more; what is not used takes no memory. */
static void make_room(struct vb__journal *j)
{
	struct stat st;
	size_t records;

	if (fstat(j->fd, &st))
		return;
	records = (size_t)(st.st_size < LENGTH_MAX ? st.st_size : LENGTH_MAX) / VB__JOURNAL_RECORD;
	j->done = calloc(records + records / 4 + 1, sizeof(*j->done));
	j->done_room = j->done ? records + records / 4 + 1 : 0;
}

/* What came last counts. */
static void remember_done(struct vb__journal *j, const struct record *r)
{
	if (j->done_room && (r->path.high || r->path.low))
		*find_done(j, &r->path) = (struct vb__journal_done){ .path = r->path,
								     .identity = r->identity,
								     .target = r->hash };
}

/* Calls for all records that are whole; `at` is behind the last. */
static void for_each(struct vb__journal *j, uint64_t *at,
		     void (*take)(struct vb__journal *j, const struct record *r, void *arg),
		     void *arg)
{
	uint8_t piece[PIECE];
	struct record r;

	for (*at = VB__JOURNAL_RECORD; *at < LENGTH_MAX;) {
		ssize_t n = pread(j->fd, piece, sizeof(piece), (off_t)*at);

		if (n < (ssize_t)VB__JOURNAL_RECORD)
			return;
		for (ssize_t i = 0; i + (ssize_t)VB__JOURNAL_RECORD <= n; i += VB__JOURNAL_RECORD) {
			if (!decode(&r, piece + i))
				return;
			take(j, &r, arg);
			*at += VB__JOURNAL_RECORD;
		}
	}
}

static void load_one(struct vb__journal *j, const struct record *r, void *arg)
{
	(void)arg;
	/* A crash of the system may have taken the data of a file that was not synced. */
	if (r->kind == KIND_DONE && (j->same_boot || r->flags))
		remember_done(j, r);
}

bool vb__journal_has(struct vb__journal *j, const struct vb__path_hash *path, uint64_t identity,
		     uint64_t target)
{
	const struct vb__journal_done *done;
	bool has = false;

	pthread_mutex_lock(&j->lock);
	if (j->fd >= 0 && j->done_room) {
		done = find_done(j, path);
		has = !is_free(done) && done->identity == identity && done->target == target;
	}
	pthread_mutex_unlock(&j->lock);
	return has;
}

uint64_t vb__journal_target(const struct stat *st, bool linked)
{
	/* Making a further name of a file changes its time of change. */
	uint64_t what[] = {
		st->st_ino,
		(uint64_t)st->st_size,
		(uint64_t)st->st_mtim.tv_sec,
		(uint64_t)st->st_mtim.tv_nsec,
		linked ? 0 : (uint64_t)st->st_ctim.tv_sec,
		linked ? 0 : (uint64_t)st->st_ctim.tv_nsec,
	};

	return XXH3_64bits(what, sizeof(what));
}

/* ---- Parts. ---- */

struct parts {
	const struct vb__path_hash *path;
	uint64_t identity, size;
	int fd;
	struct vb__extents *extents;
	uint8_t *buffer; /* for reading them again */
	size_t room;
	int errnum;
};

static bool read_part(struct parts *p, const struct record *r)
{
	uint64_t done = 0;

	if (r->length > p->room) {
		free(p->buffer);
		p->room = r->length;
		p->buffer = malloc(p->room);
		if (!p->buffer) {
			p->room = 0;
			return false;
		}
	}
	while (done < r->length) {
		ssize_t n =
			pread(p->fd, p->buffer + done, r->length - done, (off_t)(r->offset + done));

		if (n <= 0 && !(n < 0 && errno == EINTR))
			return false;
		done += n > 0 ? (uint64_t)n : 0;
	}
	return true;
}

static bool is_proven(struct parts *p, const struct record *r)
{
	struct vb__block block = {
		.offset = r->offset, .length = r->length, .file = r->file, .flags = r->flags
	};

	if (r->flags & VB__BLOCK_HOLE)
		return true;
	if (r->length > VB_BLOCK_MAX || !read_part(p, r))
		return false;
	return vb__block_hash(&block, p->buffer) == r->hash;
}

static void take_part(struct vb__journal *j, const struct record *r, void *arg)
{
	struct parts *p = arg;

	if (r->path.low != p->path->low || r->path.high != p->path->high)
		return;
	if (r->kind == KIND_RESTART)
		vb__extents_free(p->extents);
	if (r->kind != KIND_PART || r->identity != p->identity)
		return;
	if (!r->length || r->offset > p->size || r->length > p->size - r->offset)
		return;
	if (!j->same_boot && !is_proven(p, r))
		return;
	/* Said twice, by two runs: the second adds nothing. */
	if (vb__extents_add(p->extents, r->offset, r->length) == VB__EXTENTS_FULL)
		p->errnum = ENOMEM;
}

int vb__journal_parts(struct vb__journal *j, const struct vb__path_hash *path, uint64_t identity,
		      uint64_t size, int fd, struct vb__extents *extents)
{
	struct parts p = {
		.path = path, .identity = identity, .size = size, .fd = fd, .extents = extents
	};
	uint64_t at;

	if (j->fd < 0 || !j->resumed)
		return 0;
	for_each(j, &at, take_part, &p);
	free(p.buffer);
	return p.errnum;
}

/* ---- Writing. ---- */

/* A journal that cannot be written only makes for more to be sent again. */
static void flush(struct vb__journal *j)
{
	size_t done = 0;

	while (done < j->batched) {
		ssize_t n =
			pwrite(j->fd, j->batch + done, j->batched - done, (off_t)(j->at + done));

		if (n <= 0 && !(n < 0 && errno == EINTR))
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	/* A piece that is not whole is overwritten by what comes next. */
	j->at += done - done % VB__JOURNAL_RECORD;
	j->written = j->written || done;
	j->batched = 0;
}

/* Small files are many: their records go together. */
static void add(struct vb__journal *j, const struct record *r, bool at_once)
{
	if (j->fd < 0 || j->mute)
		return;
	pthread_mutex_lock(&j->lock);
	encode(j->batch + j->batched, r);
	j->batched += VB__JOURNAL_RECORD;
	if (at_once || j->batched == sizeof(j->batch))
		flush(j);
	pthread_mutex_unlock(&j->lock);
}

void vb__journal_add_done(struct vb__journal *j, const struct vb__path_hash *path,
			  uint64_t identity, uint64_t target, bool synced)
{
	add(j,
	    &(struct record){ .kind = KIND_DONE,
			      .flags = synced,
			      .path = *path,
			      .identity = identity,
			      .hash = target },
	    false);
}

void vb__journal_add_part(struct vb__journal *j, const struct vb__path_hash *path,
			  uint64_t identity, const struct vb__block *block)
{
	add(j,
	    &(struct record){ .kind = KIND_PART,
			      .flags = block->flags,
			      .path = *path,
			      .identity = identity,
			      .offset = block->offset,
			      .length = block->length,
			      .hash = block->hash,
			      .file = block->file },
	    true);
}

void vb__journal_restart(struct vb__journal *j, const struct vb__path_hash *path)
{
	if (j->fd < 0 || !j->resumed)
		return;
	add(j, &(struct record){ .kind = KIND_RESTART, .path = *path }, true);
}

void vb__journal_flush(struct vb__journal *j)
{
	pthread_mutex_lock(&j->lock);
	if (j->fd >= 0 && j->batched)
		flush(j);
	pthread_mutex_unlock(&j->lock);
}

/* ---- Opening and closing. ---- */

bool vb__journal_exists(int dir_fd, uint64_t tag)
{
	char name[40];
	struct stat st;

	vb__journal_name(name, tag);
	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       st.st_uid == geteuid();
}

/* Nobody else's, nobody else has it open, and nobody has just removed it. */
static bool is_ours(int fd)
{
	struct stat st;

	return flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	       st.st_uid == geteuid() && st.st_nlink == 1 && !(st.st_mode & 077);
}

static void start_anew(struct vb__journal *j, bool sealed)
{
	uint8_t header[VB__JOURNAL_RECORD];

	encode_header(header, sealed);
	j->at = sizeof(header);
	if (ftruncate(j->fd, 0) || pwrite(j->fd, header, sizeof(header), 0) != sizeof(header)) {
		(void)unlinkat(j->dir_fd, j->name, 0);
		close(j->fd);
		j->fd = -1;
	}
}

/* After a crash of the system what it says still has to be proven, by those after us too. */
static void load(struct vb__journal *j, enum vb__journal_wish wish)
{
	bool sealed = wish == VB__JOURNAL_KEEP_SEALED;

	j->resumed = check_header(j, sealed);
	if (!j->resumed || wish == VB__JOURNAL_NONE) {
		start_anew(j, sealed);
		return;
	}
	make_room(j);
	for_each(j, &j->at, load_one, NULL);
	(void)!ftruncate(j->fd, (off_t)j->at);
	j->written = true;
}

void vb__journal_open(struct vb__journal *j, int dir_fd, uint64_t tag, enum vb__journal_wish wish)
{
	*j = (struct vb__journal){ .dir_fd = dir_fd, .tag = tag, .fd = -1 };
	j->mute = wish == VB__JOURNAL_NONE;
	pthread_mutex_init(&j->lock, NULL);
	vb__journal_name(j->name, tag);
	if (dir_fd >= 0)
		j->fd = openat(dir_fd, j->name,
			       O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (j->fd >= 0 && !is_ours(j->fd)) {
		close(j->fd);
		j->fd = -1;
	}
	if (j->fd >= 0)
		load(j, wish);
	if (j->fd < 0) {
		(void)!getrandom(&j->tag, sizeof(j->tag), 0);
		j->resumed = false;
	}
}

void vb__journal_remove(struct vb__journal *j)
{
	if (j->fd >= 0 && !j->removed)
		(void)unlinkat(j->dir_fd, j->name, 0);
	j->removed = j->mute = true;
}

void vb__journal_keep(struct vb__journal *j)
{
	pthread_mutex_lock(&j->lock);
	j->written = true;
	pthread_mutex_unlock(&j->lock);
}

void vb__journal_close(struct vb__journal *j)
{
	if (!j->removed)
		vb__journal_flush(j);
	if (!j->written)
		vb__journal_remove(j);
	if (j->fd >= 0)
		close(j->fd);
	free(j->done);
	pthread_mutex_destroy(&j->lock);
	*j = (struct vb__journal){ .fd = -1 };
}
