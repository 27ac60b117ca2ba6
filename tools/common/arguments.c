/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: options by getopt_long, in any place before "--", and what stands between them. */
#include "common/arguments.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <verbatim/verbatim.h>

#include "common/console.h"
#include "common/exit_code.h"
#include "common/flag.h"
#include "common/help.h"
#include "common/quantity.h"

#define FLAGS_MAX 128
#define LONG_ONLY 256 /* what getopt_long returns for the flag of index 0 */

#define RETRIES 5
#define PERF_PORT "7472"

/* HOST PORT KEY FILE. More are counted, but not kept. */
#define WORDS_MAX 4

struct words {
	char *word[WORDS_MAX];
	int count;
	const char *value; /* of the last option */
};

static void add_word(struct words *words, char *word)
{
	if (words->count < WORDS_MAX)
		words->word[words->count] = word;
	words->count++;
}

const char *tool_name(enum tool tool)
{
	switch (tool) {
	case RDSEND:
		return "rdsend";
	case RDRECV:
		return "rdrecv";
	case RDCP:
		return "rdcp";
	case RDPIPE:
		return "rdpipe";
	case RDPERF:
		return "rdperf";
	}
	return "?";
}

int arguments_misused(const struct arguments *a, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	console_error("%s; try '%s --help'", text, tool_name(a->tool));
	return EXIT_USAGE;
}

/* ---- Options ---- */

/* What getopt_long wants to know. In order ('-'), so that it can be seen what stood before "--". */
static void describe(enum tool tool, char *letters, struct option *names)
{
	*letters++ = '-';
	*letters++ = ':';
	for (int i = 0; flags[i].name || flags[i].help; i++) {
		if (!flags[i].name || !(flags[i].tools & tool))
			continue;
		*names++ = (struct option){ .name = flags[i].name,
					    .has_arg = flag_is_optional(&flags[i])
							       ? optional_argument
						       : flags[i].value ? required_argument
									: no_argument,
					    .val = LONG_ONLY + i };
		if (!flags[i].letter)
			continue;
		*letters++ = flags[i].letter;
		if (flags[i].value && !flag_is_optional(&flags[i]))
			*letters++ = ':';
	}
	*letters = '\0';
	*names = (struct option){ 0 };
}

static const struct flag *flag_of(enum tool tool, int code)
{
	if (code >= LONG_ONLY)
		return &flags[code - LONG_ONLY];
	for (const struct flag *flag = flags; flag->name || flag->help; flag++)
		if ((flag->tools & tool) && flag->letter && flag->letter == code)
			return flag;
	return NULL;
}

static int bad_option(const struct arguments *a, int code, const char *word)
{
	const struct flag *flag = optopt ? flag_of(a->tool, optopt) : NULL;

	if (code == ':' && flag)
		return arguments_misused(a, "option --%s needs a value: %s", flag->name,
					 flag->value);
	if (flag && optopt >= LONG_ONLY)
		return arguments_misused(a, "option --%s takes no value", flag->name);
	if (optopt)
		return arguments_misused(a, "unknown option '-%c'", optopt);
	return arguments_misused(a, "unknown or ambiguous option '%.200s'", word);
}

static int bad_value(const struct arguments *a, const struct flag *flag, const char *value)
{
	return arguments_misused(a, "--%s: '%.200s' is not %s", flag->name, value, flag->wanted);
}

static int add_place(struct arguments *a, const char *word)
{
	if (list_add(&a->places, word) == 0)
		return -1;
	console_error("out of memory");
	return EXIT_MEMORY;
}

/* rdcp's and rdpipe's are any number, the others' few. */
static int take_word(struct arguments *a, struct words *words, char *word)
{
	if (a->tool & (RDCP | RDPIPE))
		return add_place(a, word);
	add_word(words, word);
	return -1;
}

/* Reads options and the words between them up to "--" or the end. -1: go on. */
static int read_options(struct arguments *a, struct words *words, int argc, char **argv)
{
	struct option names[FLAGS_MAX];
	char letters[2 * FLAGS_MAX];
	int code;

	describe(a->tool, letters, names);
	opterr = 0;
	optind = 0; /* starts afresh */
	while ((code = getopt_long(argc, argv, letters, names, NULL)) != -1) {
		const struct flag *flag = code == 1 ? NULL : flag_of(a->tool, code);

		words->value = optarg;
		if (code != 1 && !flag)
			return bad_option(a, code, argv[optind - 1]);
		if (flag && flag_set(flag, a, optarg) != 0)
			return bad_value(a, flag, optarg);
		if (code == 1 && (code = take_word(a, words, optarg)) >= 0)
			return code;
		if (a->request != REQUEST_NONE)
			break;
	}
	return -1;
}

/* ---- What is not an option ---- */

/* A number must be one; anything else is a service's name, which the library looks up. */
static bool port_is_fine(const char *port, uint64_t least)
{
	uint64_t number;

	if (!port || !*port)
		return false;
	if (*port < '0' || *port > '9')
		return *port != '-' && *port != '+';
	return quantity_count(port, &number) == 0 && number >= least && number <= 65535;
}

static int take_words(struct arguments *a, const struct words *words, bool have_key)
{
	int i = 0;

	if (a->tool == RDSEND)
		a->host = words->word[i++];
	a->port = words->word[i++];
	if (!have_key)
		a->key = words->word[i++];
	if (i < words->count)
		a->file = words->word[i];
	if (a->host && !*a->host)
		return arguments_misused(a, "HOST is empty");
	if (!port_is_fine(a->port, a->tool == RDSEND ? 1 : 0))
		return arguments_misused(a, "'%.200s' is not a port", a->port);
	if (a->file && !*a->file)
		return arguments_misused(a, "FILE is empty");
	if (a->file && strcmp(a->file, "-") == 0)
		a->file = NULL;
	return -1;
}

/*
 * What follows "--" is the command, unless words are missing still: then it just
 * ends the options, as usual, and a second "--" begins the command.
 */
static void take_rest(struct arguments *a, struct words *words, int wanted, char **rest)
{
	while (*rest && words->count < wanted)
		add_word(words, *rest++);
	if (*rest && strcmp(*rest, "--") == 0) {
		a->command = rest + 1;
		return;
	}
	while (*rest)
		add_word(words, *rest++);
}

static int check_words(const struct arguments *a, const struct words *words, int wanted,
		       bool have_key)
{
	static const char *const names[] = { "HOST", "PORT", "KEY" };
	int first = a->tool == RDSEND ? 0 : 1;

	if (words->count < wanted)
		return arguments_misused(a, "%s is missing", names[first + words->count]);
	if (words->count > wanted + 1)
		return arguments_misused(a, "too many arguments%s",
					 have_key ? ": with -k or VB_KEY there is no KEY among them"
						  : "");
	if (a->command && !a->command[0])
		return arguments_misused(a, "no command after '--'");
	if (a->command && words->count > wanted)
		return arguments_misused(a, "give either FILE or a command, not both");
	return -1;
}

static int answer(const struct arguments *a)
{
	if (a->request == REQUEST_HELP)
		help_print(a->tool, stdout);
	else
		printf("%s %s\n", tool_name(a->tool), vb_version());
	if (fflush(stdout) == 0 && !ferror(stdout))
		return EXIT_OK;
	console_error("cannot write to stdout");
	return EXIT_FILE;
}

/* What follows "--". */
static int take_places(struct arguments *a, char **rest)
{
	int code = -1;

	while (code < 0 && *rest)
		code = add_place(a, *rest++);
	if (code < 0 && a->far_path && a->far_path[0] == '-')
		return arguments_misused(a, "--%s-path: '%.200s' is not a path", tool_name(a->tool),
					 a->far_path);
	return code;
}

/* What some options mean together. */
static int finish_rdcp(struct arguments *a, char **rest)
{
	int code = take_places(a, rest);

	if (a->archive) {
		a->tree.keep |= VB_KEEP_ARCHIVE;
		a->tree.recursive = true;
	}
	/* The paths are below SRC, so it is gone through, and directories among them with all. */
	if (a->files_from)
		a->tree.recursive = true;
	/* Without the times the next run could not tell what is unchanged. */
	if (a->sync)
		a->tree.keep |= VB_KEEP_TIMES;
	if (a->sync || a->checksum)
		a->tree.select = a->checksum ? VB_SELECT_DIFFERENT : VB_SELECT_CHANGED;
	if (code < 0 && a->tree.delete_others && !a->tree.recursive)
		return arguments_misused(a, "--delete is about directories: add -r or -a");
	for (size_t i = 0; code < 0 && a->files_from && i < a->rules.count; i++)
		if (a->rules.item[i][0] == '+')
			return arguments_misused(a,
						 "--include would add to what --files-from lists");
	if (code < 0 && a->tree.delete_others && a->files_from)
		return arguments_misused(a, "--delete with --files-from would delete all the rest");
	return code;
}

/* HOST PORT KEY FILE, as far as the tool wants them. */
static int finish_pipe(struct arguments *a, struct words *found, bool have_key, char **argv)
{
	int code, wanted = a->tool == RDSEND ? 3 : 2;
	struct words words = *found;
	bool dashes;

	have_key = have_key || a->key_file;
	wanted -= have_key;
	/* It may also be the value of an option, as the last word of all. */
	dashes = optind > 1 && strcmp(argv[optind - 1], "--") == 0 &&
		 words.value != argv[optind - 1];
	if (dashes && words.count < wanted)
		take_rest(a, &words, wanted, argv + optind);
	else if (dashes)
		a->command = argv + optind;
	code = check_words(a, &words, wanted, have_key);
	if (code < 0)
		code = take_words(a, &words, have_key);
	if (code < 0 && a->tool == RDSEND && !a->file && !a->command && a->key_file &&
	    strcmp(a->key_file, "-") == 0)
		return arguments_misused(a, "stdin cannot be both the key (-k -) and the data");
	return code;
}

/* HOST, or none where this side serves or only draws. */
static int finish_perf(struct arguments *a, struct words *words, char **rest)
{
	while (*rest)
		add_word(words, *rest++);
	if (words->count > 1)
		return arguments_misused(a, "too many arguments");
	a->host = words->count ? words->word[0] : NULL;
	if (a->host && !*a->host)
		return arguments_misused(a, "HOST is empty");
	if (a->serve && a->host)
		return arguments_misused(a, "--serve takes no HOST: it waits for whoever comes");
	if (a->runs.count && !a->svg)
		return arguments_misused(a, "--add is about a chart: say --svg FILE, too");
	if (a->serve && a->svg)
		return arguments_misused(a, "--svg is for the side that asks");
	if (!a->serve && !a->host && !a->runs.count)
		return arguments_misused(a, "HOST is missing");
	if (a->only_bandwidth && a->only_latency)
		return arguments_misused(a, "give either --bw or --lat: without, it is both");
	a->port = a->port ? a->port : PERF_PORT;
	if (!port_is_fine(a->port, a->serve ? 0 : 1))
		return arguments_misused(a, "--port: '%.200s' is not a port", a->port);
	return -1;
}

int arguments_parse(struct arguments *a, enum tool tool, bool have_key, int argc, char **argv)
{
	struct words words = { .count = 0 };
	int code;

	*a = (struct arguments){ .tool = tool, .retries = RETRIES };
	code = read_options(a, &words, argc, argv);
	if (code >= 0)
		return code;
	if (a->request != REQUEST_NONE)
		return answer(a);
	if (tool == RDPERF)
		return finish_perf(a, &words, argv + optind);
	if (tool == RDPIPE)
		return take_places(a, argv + optind);
	return tool == RDCP ? finish_rdcp(a, argv + optind)
			    : finish_pipe(a, &words, have_key, argv);
}

void arguments_free(struct arguments *a)
{
	list_free(&a->places);
	list_free(&a->rules);
	list_free(&a->ssh_options);
	list_free(&a->runs);
}
