/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: from operands to who copies what. Nothing is looked at but the command line. */
#include "copy/jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/console.h"
#include "common/exit_code.h"

static int no_memory(void)
{
	console_error("out of memory");
	return EXIT_MEMORY;
}

/* ---- Operands ---- */

static int read_operands(struct jobs *jobs, const struct arguments *a)
{
	size_t count = a->places.count;

	if (count < 2)
		return arguments_misused(a, "%s",
					 count ? "DST is missing" : "SRC and DST are missing");
	jobs->sources = calloc(count - 1, sizeof(*jobs->sources));
	if (!jobs->sources)
		return no_memory();
	jobs->source_count = count - 1;
	for (size_t i = 0; i < count; i++) {
		struct operand *operand = i + 1 < count ? &jobs->sources[i] : &jobs->target;
		const char *wrong = operand_parse(operand, a->places.item[i]);

		if (wrong)
			return arguments_misused(a, "'%.200s': %s", a->places.item[i], wrong);
		if (i + 1 < count && !operand_as_source(operand))
			return no_memory();
	}
	jobs->into_directory = count > 2;
	return -1;
}

/* "-" is one file that cannot be walked, listed or read twice. */
static int check_stdio(const struct jobs *jobs, const struct arguments *a)
{
	bool from = false, to = jobs->target.kind == OPERAND_STDIO;

	for (size_t i = 0; i < jobs->source_count; i++)
		from = from || jobs->sources[i].kind == OPERAND_STDIO;
	if (!from && !to)
		return -1;
	if (jobs->source_count > 1)
		return arguments_misused(a, "with '-' there is one SRC only");
	if ((from ? &jobs->target : &jobs->sources[0])->kind != OPERAND_REMOTE)
		return arguments_misused(a, "'-' goes to or comes from another host; here use cat");
	if (from && (!*jobs->target.path || operand_ends_in_slash(&jobs->target)))
		return arguments_misused(a, "'-' has no name: DST must be that of a file");
	if (a->tree.dry_run || a->files_from || a->rules.count || a->tree.delete_others)
		return arguments_misused(a, "-n, --delete and the choice of files are not for '-'");
	return -1;
}

static int check_options(const struct jobs *jobs, const struct arguments *a)
{
	if (a->files_from && jobs->source_count > 1)
		return arguments_misused(a,
					 "--files-from takes one SRC, which its paths are below");
	if (a->tree.delete_others && jobs->count > 1)
		return arguments_misused(a, "--delete takes sources of one host only");
	return -1;
}

/* ---- Jobs ---- */

static struct job *job_for(struct jobs *jobs, const struct operand *source)
{
	for (size_t i = 0; i < jobs->count; i++)
		if (operand_same_host(jobs->job[i].from, source))
			return &jobs->job[i];
	jobs->job[jobs->count].from = source;
	return &jobs->job[jobs->count++];
}

static int share_out(struct jobs *jobs)
{
	jobs->job = calloc(jobs->source_count, sizeof(*jobs->job));
	if (!jobs->job)
		return no_memory();
	for (size_t i = 0; i < jobs->source_count; i++)
		if (list_add(&job_for(jobs, &jobs->sources[i])->paths, jobs->sources[i].path) != 0)
			return no_memory();
	return -1;
}

/* What a list names lies in SRC: its contents go, and not SRC itself. */
static int mean_contents(struct operand *source)
{
	size_t len = strlen(source->path);
	char *more;

	if (len >= 2 && strcmp(source->path + len - 2, "/.") == 0)
		return -1;
	if (asprintf(&more, "%s/.", source->path) < 0)
		return no_memory();
	free(source->path);
	source->path = more;
	return -1;
}

int jobs_make(struct jobs *jobs, const struct arguments *a)
{
	int code;

	*jobs = (struct jobs){ 0 };
	code = read_operands(jobs, a);
	if (code < 0)
		code = check_stdio(jobs, a);
	if (code < 0 && a->files_from && jobs->source_count == 1)
		code = mean_contents(&jobs->sources[0]);
	if (code < 0)
		code = share_out(jobs);
	return code < 0 ? check_options(jobs, a) : code;
}

void jobs_free(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->count; i++)
		list_free(&jobs->job[i].paths);
	for (size_t i = 0; i < jobs->source_count; i++)
		operand_free(&jobs->sources[i]);
	operand_free(&jobs->target);
	free(jobs->job);
	free(jobs->sources);
	*jobs = (struct jobs){ 0 };
}
