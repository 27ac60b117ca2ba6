/* SPDX-License-Identifier: Apache-2.0 */
/* rdcp: copies files and trees between hosts. */
#include <string.h>

#include "common/console.h"
#include "common/descriptors.h"
#include "common/interrupt.h"
#include "common/outcome.h"
#include "common/trouble.h"
#include "copy/copier.h"
#include "copy/copy_server.h"
#include "copy/listed.h"

/* Once something was not encrypted, all of it was not. */
static void add_peer(struct ending *total, const struct ending *ending)
{
	if (!total->peer[0] || total->cipher[0])
		memcpy(total->cipher, ending->cipher, sizeof(total->cipher));
	memcpy(total->peer, ending->peer, sizeof(total->peer));
	memcpy(total->description, ending->description, sizeof(total->description));
}

/* The sum of what several jobs came to; the first failure is that of all. */
static void add_up(struct ending *total, const struct ending *ending)
{
	uint64_t sum[sizeof(total->report) / sizeof(uint64_t)], more[sizeof(sum) / sizeof(sum[0])];

	memcpy(sum, &total->report, sizeof(sum));
	memcpy(more, &ending->report, sizeof(more));
	for (size_t i = 0; i < sizeof(sum) / sizeof(sum[0]); i++)
		sum[i] += more[i];
	memcpy(&total->report, sum, sizeof(sum));
	if (total->err.code == VB_OK)
		total->err = ending->err;
	if (ending->peer[0])
		add_peer(total, ending);
}

/* The interrupt came when none was under way. */
static enum exit_code leave_the_rest(struct ending *total)
{
	char line[VB_ERROR_LINE_MAX];

	trouble_say(&total->err, VB_ERR_INTERRUPTED, "interrupted");
	if (!console_as_json())
		console_error("%s", outcome_error_line(&total->err, line));
	return EXIT_INTERRUPTED;
}

static enum exit_code copy(const struct arguments *a, const struct jobs *jobs,
			   const struct list *listed)
{
	static struct ending ending, total;
	static struct listing listing;
	enum exit_code code, first = EXIT_OK;
	size_t i;

	listing_open(&listing, a);
	for (i = 0; i < jobs->count && !interrupt_seen(); i++) {
		struct copier copier = { .arguments = a,
					 .jobs = jobs,
					 .job = &jobs->job[i],
					 .listed = listed,
					 .listing = &listing };

		code = copier_run(&copier, &ending);
		first = first == EXIT_OK ? code : first;
		add_up(&total, &ending);
	}
	if (i < jobs->count && first != EXIT_INTERRUPTED)
		first = leave_the_rest(&total);
	if (*total.description)
		console_note("%s", total.description);
	listing_sum_up(&listing, &total, first);
	return first;
}

/* -1: go on. */
static int prepare(const struct arguments *a, struct list *listed)
{
	char line[VB_ERROR_LINE_MAX];
	struct vb_error err;
	int result;

	console_set(a->verbosity, a->json);
	result = interrupt_open(&err);
	if (result == 0 && a->files_from)
		result = listed_read(listed, a->files_from, a->from0, &err);
	if (result == 0)
		return -1;
	console_error("%s", vb_error_format(&err, line, sizeof(line)));
	return (int)exit_code_of(err.code, PHASE_CHECK);
}

int main(int argc, char **argv)
{
	struct arguments arguments;
	struct list listed = { 0 };
	struct jobs jobs = { 0 };
	int code;

	console_open("rdcp");
	descriptors_raise();
	if (argc == 2 && strcmp(argv[1], "--server") == 0)
		return copy_server_run();
	code = arguments_parse(&arguments, RDCP, true, argc, argv);
	if (code < 0)
		code = jobs_make(&jobs, &arguments);
	if (code < 0)
		code = prepare(&arguments, &listed);
	if (code < 0)
		code = (int)copy(&arguments, &jobs, &listed);
	interrupt_leave(code);
	list_free(&listed);
	jobs_free(&jobs);
	arguments_free(&arguments);
	return code;
}
