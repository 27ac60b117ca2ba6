/* SPDX-License-Identifier: Apache-2.0 */
#include "sink_kit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "wire/words.h"

#define NOBODY 65534

static void take_event(void *arg, const struct vb_tree_event *event)
{
	struct kit *kit = arg;

	kit->events[event->happening]++;
	snprintf(kit->last_path, sizeof(kit->last_path), "%s", event->path);
	assert_int_equal(event->failure != NULL, event->happening >= VB_TREE_FAILED);
	if (event->failure)
		kit->last_failure = *event->failure;
}

int kit_setup(void **state)
{
	struct kit *kit = calloc(1, sizeof(*kit));
	const char *base = getenv("TMPDIR");
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	umask(022);
	snprintf(kit->dir, sizeof(kit->dir), "%s/vb-tree-XXXXXX", base ? base : "/var/tmp");
	kit->cancel_fd = eventfd(0, EFD_CLOEXEC);
	kit->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	kit->options = (struct vb_tree_options){
		.keep = VB_KEEP_ARCHIVE,
		.recursive = true,
		.event = take_event,
		.event_arg = kit,
		.tell_all = true,
	};
	kit->sink_options =
		(struct vb__sink_options){ .cancel_fd = kit->cancel_fd, .wake_fd = kit->wake_fd };
	*state = kit;
	return mkdtemp(kit->dir) ? 0 : -1;
}

void kit_run(struct kit *kit, const char *format, ...)
{
	char what[600], command[800];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	snprintf(command, sizeof(command), "cd '%s' && { %s ; }", kit->dir, what);
	assert_int_equal(system(command), 0);
}

int kit_teardown(void **state)
{
	struct kit *kit = *state;
	char command[200];

	if (kit->sink)
		kit->sink->ops->close(kit->sink);
	(void)umount2(kit->dir, MNT_DETACH); /* a test that failed may have left its tmpfs */
	snprintf(command, sizeof(command), "chmod -R u+rwx '%s'; rm -rf '%s'", kit->dir, kit->dir);
	(void)!system(command);
	close(kit->cancel_fd);
	close(kit->wake_fd);
	free(kit);
	return 0;
}

const char *kit_path(struct kit *kit, const char *name)
{
	snprintf(kit->path, sizeof(kit->path), "%s/%s", kit->dir, name);
	return kit->path;
}

mode_t kit_mode(struct kit *kit, const char *name)
{
	struct stat st;

	return lstat(kit_path(kit, name), &st) ? 0 : st.st_mode;
}

void kit_make_file(struct kit *kit, const char *name, const char *text)
{
	FILE *file = fopen(kit_path(kit, name), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

void kit_assert_file(struct kit *kit, const char *name, const char *text)
{
	char have[200] = "";
	int fd = open(kit_path(kit, name), O_RDONLY | O_NOFOLLOW);

	assert_true(fd >= 0);
	assert_true(read(fd, have, sizeof(have) - 1) >= 0);
	close(fd);
	assert_string_equal(have, text);
}

static uint8_t byte_at(uint64_t offset)
{
	return (uint8_t)((offset * 0x9e3779b97f4a7c15u) >> 56) | 1;
}

void kit_assert_bytes(struct kit *kit, const char *name, size_t len)
{
	uint8_t *have = malloc(len + 1);
	int fd = open(kit_path(kit, name), O_RDONLY | O_NOFOLLOW);

	assert_true(fd >= 0);
	assert_int_equal(read(fd, have, len + 1), len);
	close(fd);
	for (size_t i = 0; i < len; i++)
		if (have[i] != byte_at(i))
			fail_msg("byte %zu is wrong", i);
	free(have);
}

static unsigned count(struct kit *kit, const char *name, const char *start)
{
	DIR *dir = opendir(kit_path(kit, name));
	struct dirent *entry;
	unsigned n = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		     strncmp(entry->d_name, start, strlen(start)) == 0;
	closedir(dir);
	return n;
}

unsigned kit_count(struct kit *kit, const char *name)
{
	return count(kit, name, "");
}

unsigned kit_leftovers(struct kit *kit, const char *name)
{
	return count(kit, name, ".rdcp-");
}

int kit_try_open(struct kit *kit, const char *target)
{
	kit->err = (struct vb_error){ .code = VB_OK };
	kit->report = (struct vb_tree_report){ .files = 0 };
	kit->offers_at = 0;
	kit->part_count = 0;
	kit->settled = 0;
	kit->happened = 0;
	memset(kit->wanted, 0, sizeof(kit->wanted));
	memset(kit->events, 0, sizeof(kit->events));
	return vb__tree_sink_open(kit_path(kit, target), &kit->options, &kit->sink_options,
				  &kit->report, &kit->sink, &kit->err);
}

void kit_open(struct kit *kit, const char *target)
{
	char line[VB_ERROR_LINE_MAX];

	if (kit_try_open(kit, target))
		fail_msg("%s", vb_error_format(&kit->err, line, sizeof(line)));
}

void kit_close(struct kit *kit)
{
	kit->sink->ops->close(kit->sink);
	kit->sink = NULL;
}

static void hear_one(struct kit *kit, const struct vb__answer *a)
{
	if (a->kind == VB__ANSWER_WANT)
		for (uint32_t n = a->number; n < a->number + a->count; n++)
			kit->wanted[n % NUMBERS] = true;
	if (a->kind == VB__ANSWER_PART) {
		assert_true(kit->part_count < COUNT(kit->parts));
		kit->parts[kit->part_count].number = a->number;
		kit->parts[kit->part_count].offset = a->offset;
		kit->parts[kit->part_count++].length = a->length;
	}
	if (a->kind == VB__ANSWER_SETTLED) {
		assert_true(a->number > kit->settled);
		kit->settled = a->number;
	}
	kit->happened += a->kind == VB__ANSWER_HAPPENED;
}

/* All that the sink has to say; it must have rung before. */
static void hear(struct kit *kit)
{
	uint8_t note[VB__NOTE_ROOM];
	bool rung = eventfd_read(kit->wake_fd, &(eventfd_t){ 0 }) == 0;
	struct vb__answer answer;
	size_t len, at;

	while ((len = kit->sink->ops->speak(kit->sink, note, sizeof(note)))) {
		assert_true(rung);
		for (at = 0; at < len;) {
			assert_true(vb__answer_decode(&answer, note, len, &at));
			hear_one(kit, &answer);
		}
	}
}

void kit_finish(struct kit *kit)
{
	char line[VB_ERROR_LINE_MAX];

	kit->err = (struct vb_error){ .code = VB_OK };
	if (kit->sink->ops->finish(kit->sink, 0, &kit->err))
		fail_msg("%s", vb_error_format(&kit->err, line, sizeof(line)));
	hear(kit);
	kit_close(kit);
}

static struct vb__slice slice(const char *text)
{
	return (struct vb__slice){ .data = (const uint8_t *)text, .len = strlen(text) };
}

struct vb__offer offer_file(uint32_t number, uint32_t parent, const char *name, uint64_t size)
{
	return (struct vb__offer){
		.kind = VB__OFFER_FILE,
		.number = number,
		.parent = parent,
		.name = slice(name),
		.mode = S_IFREG | 0644,
		.uid = geteuid(),
		.gid = getegid(),
		.size = size,
		.mtime_s = 1000000000,
		.mtime_ns = 123456789,
		.identity = 77,
	};
}

struct vb__offer offer_directory(uint32_t number, uint32_t parent, const char *name)
{
	struct vb__offer offer = offer_file(number, parent, name, 0);

	offer.kind = VB__OFFER_DIRECTORY;
	offer.mode = S_IFDIR | 0755;
	offer.identity = 0;
	return offer;
}

struct vb__offer offer_symlink(uint32_t number, uint32_t parent, const char *name, const char *to)
{
	struct vb__offer offer = offer_directory(number, parent, name);

	offer.kind = VB__OFFER_SYMLINK;
	offer.mode = S_IFLNK | 0777;
	offer.target = slice(to);
	return offer;
}

struct vb__offer offer_hardlink(uint32_t number, uint32_t parent, const char *name, uint32_t first)
{
	return (struct vb__offer){
		.kind = VB__OFFER_HARDLINK,
		.number = number,
		.parent = parent,
		.name = slice(name),
		.first = first,
	};
}

struct vb__offer offer_listed(uint32_t number)
{
	return (struct vb__offer){ .kind = VB__OFFER_LISTED, .number = number };
}

struct vb__offer offer_missed(uint32_t parent, const char *name)
{
	return (struct vb__offer){
		.kind = VB__OFFER_MISSED,
		.parent = parent,
		.name = slice(name),
		.target = slice("Permission denied"),
		.error = VB_ERR_IO,
		.native = EACCES,
	};
}

int send_raw(struct kit *kit, unsigned flags, uint32_t file, uint64_t offset, const void *data,
	     size_t len)
{
	struct vb__block block = { .offset = offset, .length = len, .file = file, .flags = flags };
	void *aligned = aligned_alloc(4096, (len + 4096) & ~(size_t)4095);
	int rc;

	assert_non_null(aligned);
	if (data)
		memcpy(aligned, data, len);
	block.hash = vb__block_hash(&block, aligned);
	kit->err = (struct vb_error){ .code = VB_OK };
	rc = kit->sink->ops->put(kit->sink, &block, data ? aligned : NULL, &kit->err);
	assert_int_equal(rc, kit->err.code);
	free(aligned);
	hear(kit);
	return rc;
}

int send_offer(struct kit *kit, struct vb__offer offer)
{
	uint8_t record[8192];
	size_t len = vb__offer_encode(record, sizeof(record), &offer);
	int rc;

	assert_true(len > 0);
	rc = send_raw(kit, VB__BLOCK_OFFERS, 0, kit->offers_at, record, len);
	kit->offers_at += len;
	return rc;
}

int send_parcel(struct kit *kit, const struct vb__parcel *parcel)
{
	size_t len = VB__PARCEL_HEADER + parcel->data.len;
	uint8_t *record = malloc(len);
	int rc;

	vb__parcel_encode(record, parcel);
	if (parcel->data.len)
		memcpy(record + VB__PARCEL_HEADER, parcel->data.data, parcel->data.len);
	rc = send_raw(kit, VB__BLOCK_PARCELS, 0, 0, record, len);
	free(record);
	return rc;
}

int send_whole(struct kit *kit, uint32_t number, const char *text)
{
	return send_parcel(kit, &(struct vb__parcel){
					.kind = VB__PARCEL_WHOLE,
					.number = number,
					.size = strlen(text),
					.mtime_s = 1000000000,
					.mtime_ns = 123456789,
					.identity = 77,
					.data = slice(text),
				});
}

int send_end(struct kit *kit, uint32_t number, uint64_t size)
{
	return send_parcel(kit, &(struct vb__parcel){
					.kind = VB__PARCEL_END,
					.number = number,
					.size = size,
					.mtime_s = 1000000000,
					.mtime_ns = 123456789,
					.identity = 77,
				});
}

int send_missed(struct kit *kit, uint32_t number)
{
	return send_parcel(kit, &(struct vb__parcel){
					.kind = VB__PARCEL_MISSED,
					.number = number,
					.error = VB_ERR_IO,
					.native = EIO,
					.data = slice("Input/output error"),
				});
}

int send_block(struct kit *kit, uint32_t number, uint64_t offset, size_t len)
{
	uint8_t *data = malloc(len);
	int rc;

	for (size_t i = 0; i < len; i++)
		data[i] = byte_at(offset + i);
	rc = send_raw(kit, 0, number, offset, data, len);
	free(data);
	return rc;
}

int send_hole(struct kit *kit, uint32_t number, uint64_t offset, uint64_t len)
{
	struct vb__block block = {
		.offset = offset, .length = len, .file = number, .flags = VB__BLOCK_HOLE
	};
	int rc;

	block.hash = vb__block_hash(&block, NULL);
	kit->err = (struct vb_error){ .code = VB_OK };
	rc = kit->sink->ops->put(kit->sink, &block, NULL, &kit->err);
	hear(kit);
	return rc;
}

static void succeed(struct kit *kit, int rc)
{
	char line[VB_ERROR_LINE_MAX];

	if (rc)
		fail_msg("%s", vb_error_format(&kit->err, line, sizeof(line)));
}

void offers(struct kit *kit, struct vb__offer offer)
{
	succeed(kit, send_offer(kit, offer));
}

void whole(struct kit *kit, uint32_t number, const char *text)
{
	succeed(kit, send_whole(kit, number, text));
}

void blocks(struct kit *kit, uint32_t number, uint64_t offset, size_t len)
{
	succeed(kit, send_block(kit, number, offset, len));
}

void ends(struct kit *kit, uint32_t number, uint64_t size)
{
	succeed(kit, send_end(kit, number, size));
}

void as_nobody(struct kit *kit, bool (*run)(struct kit *kit))
{
	int status = 0;
	pid_t pid;

	if (geteuid() != 0) {
		assert_true(run(kit));
		return;
	}
	pid = fork();
	if (pid == 0)
		_exit(setgid(NOBODY) == 0 && setuid(NOBODY) == 0 && run(kit) ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}
