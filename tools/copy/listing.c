/* SPDX-License-Identifier: Apache-2.0 */
/* Listings. Names may come from a peer: nothing of them reaches the terminal but escaped. */
#include "copy/listing.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/console.h"
#include "common/json.h"
#include "common/outcome.h"
#include "common/printable.h"
#include "common/quantity.h"

#define SHOWN (4 * 4352) /* of a path, each byte as \x1b */

void listing_open(struct listing *listing, const struct arguments *a)
{
	*listing = (struct listing){
		.names = a->verbosity >= 1 || (a->tree.dry_run && a->verbosity >= 0),
		.dry_run = a->tree.dry_run,
		.stats = a->stats,
		.recursive = a->tree.recursive,
		.source = a->places.count == 2 ? a->places.item[0] : NULL,
	};
}

void listing_begin(struct listing *listing, int data_fd)
{
	progress_begin(&listing->progress, data_fd);
}

void listing_end(struct listing *listing, const struct ending *ending)
{
	const struct vb_report report = { .bytes = ending->report.bytes,
					  .elapsed_ns = ending->report.elapsed_ns };

	progress_end(&listing->progress, ending->err.code == VB_OK ? &report : NULL);
}

void listing_progress(void *arg, const struct vb_progress *progress)
{
	struct listing *listing = arg;

	progress_show(&listing->progress, progress);
}

/* ---- Events ---- */

static const char *const happenings[] = {
	[VB_TREE_COPIED] = "copied",	 [VB_TREE_UNCHANGED] = "unchanged",
	[VB_TREE_DELETED] = "deleted",	 [VB_TREE_FAILED] = "failed",
	[VB_TREE_VANISHED] = "vanished",
};

static void say_json(const struct vb_tree_event *event)
{
	struct json json;
	char *line;

	json_begin(&json);
	json_text(&json, "event", happenings[event->happening]);
	json_text(&json, "path", event->path);
	if (event->happening == VB_TREE_COPIED)
		json_number(&json, "bytes", event->bytes);
	if (event->failure)
		outcome_add_error(&json, event->failure);
	line = json_end(&json);
	if (line)
		console_write(line);
	free(line);
}

static bool is_failure(const struct vb_tree_event *event)
{
	return event->happening == VB_TREE_FAILED || event->happening == VB_TREE_VANISHED;
}

/* Is it a directory that was left for want of an option? Nothing else reads one as a file. */
static bool lacks_recursive(const struct listing *listing, const struct vb_error *failure)
{
	return !listing->recursive && failure->native_kind == VB_NATIVE_ERRNO &&
	       failure->native == EISDIR && strcmp(failure->operation, "read") == 0;
}

/* Here the shell expands patterns, and at a far side nobody does. */
static bool is_pattern(const struct vb_tree_event *event, const struct vb_error *failure)
{
	return failure->native_kind == VB_NATIVE_ERRNO && failure->native == ENOENT &&
	       strcmp(failure->operation, "read") == 0 && !strchr(event->path, '/') &&
	       strpbrk(event->path, "*?[");
}

/* The failure names its object, which need not be the path, and may be cut. */
static void say_failure(const struct listing *listing, const struct vb_tree_event *event)
{
	/* The contents of SRC have no name of their own. */
	const char *path = *event->path || !listing->source ? event->path : listing->source;
	char line[VB_ERROR_LINE_MAX] = "";

	if (event->failure) {
		struct vb_error failure = *event->failure;

		if (lacks_recursive(listing, &failure))
			snprintf(failure.hint, sizeof(failure.hint), "use -r or -a");
		if (is_pattern(event, &failure))
			snprintf(failure.hint, sizeof(failure.hint),
				 "rdcp expands no patterns; of HOST:DIR/. with -r, --include "
				 "'%.60s' --exclude '*' takes what matches",
				 event->path);
		vb_error_format(&failure, line, sizeof(line));
	}
	if (event->happening == VB_TREE_VANISHED)
		console_warning("%s has vanished", path);
	else if (!*path || strstr(line, path))
		console_error("%s", line);
	else
		console_error("%s: %s", path, line);
}

static void say_name(const struct vb_tree_event *event)
{
	const char *before = event->happening == VB_TREE_DELETED     ? "deleting "
			     : event->happening == VB_TREE_UNCHANGED ? "unchanged "
								     : "";
	const char *path = *event->path ? event->path : ".";
	char clean[SHOWN], line[SHOWN + 32];

	if (event->happening == VB_TREE_UNCHANGED && console_verbosity() < 2)
		return;
	snprintf(line, sizeof(line), "%s%s%s\n", before, printable(clean, sizeof(clean), path),
		 S_ISDIR(event->mode) ? "/" : "");
	console_write(line);
}

void listing_event(void *arg, const struct vb_tree_event *event)
{
	const struct listing *listing = arg;

	if (event->happening < VB_TREE_COPIED || event->happening > VB_TREE_VANISHED)
		return;
	if (!is_failure(event) && !listing->names)
		return;
	if (console_as_json())
		say_json(event);
	else if (is_failure(event))
		say_failure(listing, event);
	else
		say_name(event);
}

/* ---- The end ---- */

static uint64_t speed(const struct vb_tree_report *report)
{
	return quantity_speed(report->sent_bytes, report->elapsed_ns);
}

static void sum_up_json(const struct ending *total, enum exit_code code)
{
	const struct vb_tree_report *report = &total->report;
	struct json json;
	char *line;

	json_begin(&json);
	json_text(&json, "event", "summary");
	json_number(&json, "exit", code);
	outcome_add_error(&json, &total->err);
	json_number(&json, "files", report->files);
	json_number(&json, "directories", report->directories);
	json_number(&json, "symlinks", report->symlinks);
	json_number(&json, "specials", report->specials);
	json_number(&json, "hardlinks", report->hardlinks);
	json_number(&json, "unchanged", report->unchanged);
	json_number(&json, "deleted", report->deleted);
	json_number(&json, "failed", report->failed);
	json_number(&json, "vanished", report->vanished);
	json_number(&json, "bytes", report->bytes);
	json_number(&json, "sent_bytes", report->sent_bytes);
	json_number(&json, "resumed_bytes", report->resumed_bytes);
	json_real(&json, "elapsed_s", (double)report->elapsed_ns / 1e9);
	json_number(&json, "bytes_per_s", speed(report));
	outcome_add_packing(&json, report->moved_bytes, report->wire_bytes, report->pack_ns);
	json_text(&json, "peer", total->peer[0] ? total->peer : NULL);
	json_text(&json, "description", total->description[0] ? total->description : NULL);
	json_text(&json, "cipher", total->cipher[0] ? total->cipher : NULL);
	line = json_end(&json);
	if (line)
		console_write(line);
	free(line);
}

static void print_stats(const struct vb_tree_report *report, bool dry_run)
{
	char text[1024], took[QUANTITY_TEXT], rate[QUANTITY_TEXT];

	snprintf(text, sizeof(text),
		 "%s %" PRIu64 " files, %" PRIu64 " directories, %" PRIu64
		 " symbolic links, %" PRIu64 " special files, %" PRIu64 " hard links\n"
		 "Unchanged: %" PRIu64 ", deleted: %" PRIu64 ", failed: %" PRIu64
		 ", vanished: %" PRIu64 "\n"
		 "Bytes: %" PRIu64 ", of which %" PRIu64 " were sent and %" PRIu64
		 " were there from an earlier try\n"
		 "Time: %s (%.3f s), %s\n",
		 dry_run ? "To copy:" : "Copied:", report->files, report->directories,
		 report->symlinks, report->specials, report->hardlinks, report->unchanged,
		 report->deleted, report->failed, report->vanished, report->bytes,
		 report->sent_bytes, report->resumed_bytes,
		 quantity_duration(took, report->elapsed_ns / UINT64_C(1000000000)),
		 (double)report->elapsed_ns / 1e9, quantity_rate(rate, speed(report)));
	console_write(text);
}

static void say_partial(const struct vb_tree_report *report)
{
	bool rest = report->files + report->directories + report->symlinks + report->specials +
		    report->hardlinks + report->unchanged;
	char failed[64] = "", vanished[64] = "";

	if (report->failed)
		snprintf(failed, sizeof(failed), "%" PRIu64 " could not be copied", report->failed);
	if (report->vanished)
		snprintf(vanished, sizeof(vanished), "%s%" PRIu64 " vanished",
			 report->failed ? ", " : "", report->vanished);
	console_error("%s%s; %s", failed, vanished,
		      rest ? "the rest was copied" : "nothing was copied");
}

void listing_sum_up(const struct listing *listing, const struct ending *total, enum exit_code code)
{
	const struct vb_tree_report *report = &total->report;
	if (console_as_json()) {
		sum_up_json(total, code);
		return;
	}
	if (listing->stats)
		print_stats(report, listing->dry_run);
	/* Each has been told; but the reader of a long list may have missed them. */
	if (code == EXIT_PARTIAL || code == EXIT_VANISHED)
		say_partial(report);
	if (console_verbosity() < 1 || total->err.code != VB_OK)
		return;
	outcome_tell_packing(report->moved_bytes, report->wire_bytes, report->pack_ns);
	outcome_tell_bandwidth(speed(report));
}
