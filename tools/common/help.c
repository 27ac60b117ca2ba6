/* SPDX-License-Identifier: Apache-2.0 */
/* The help. */
#include "common/help.h"

#include <string.h>

#include "common/exit_code.h"
#include "common/flag.h"

#define WIDTH 80
#define COLUMN 26

static const char send_intro[] =
	"Usage: rdsend [OPTION]... HOST PORT KEY [FILE | -- COMMAND [ARGUMENT]...]\n"
	"\n"
	"Sends stdin, FILE ('-': stdin) or the output of COMMAND to rdrecv at HOST, over\n"
	"RDMA or, where there is none, over TCP. Success means that all of it has arrived\n"
	"and is stored; if anything fails at either side, both sides say so and fail.\n"
	"COMMAND starts when the receiver has been found; if it fails, all fails.\n";

static const char recv_intro[] =
	"Usage: rdrecv [OPTION]... PORT KEY [FILE | -- COMMAND [ARGUMENT]...]\n"
	"\n"
	"Waits at PORT (0: a free one, which it prints) for rdsend and writes what comes\n"
	"to stdout, FILE ('-': stdout) or the input of COMMAND. FILE is replaced only\n"
	"when everything is there; if anything fails at either side, both sides say so\n"
	"and fail. COMMAND starts when the sender has come; if it fails, all fails, and\n"
	"if the transfer fails it is ended before it sees the end of its input.\n";

static const char copy_intro[] =
	"Usage: rdcp [OPTION]... SRC... DST\n"
	"\n"
	"Copies files and, with -r or -a, directories between hosts, over RDMA or, where\n"
	"there is none, over TCP. SRC and DST are [USER@]HOST:PATH, [ADDRESS]:PATH for an\n"
	"IPv6 address, or local paths; a colon after a slash ('./a:b') is none of a host.\n"
	"Between two other hosts the data goes directly. ssh starts rdcp at the far side.\n"
	"'-' is stdin as the only SRC, stdout as DST.\n"
	"\n"
	"If DST is a directory, or there are several SRC, everything comes into it; else\n"
	"DST is the copy's name. As with cp and scp, SRC 'dir/' is 'dir', and 'dir/.' is\n"
	"what is in it. Relative paths at a far side start at the home directory there.\n"
	"\n"
	"A file stands under its name only when it is complete and checked. What was\n"
	"interrupted is continued by running rdcp again.\n";

static const char stages_intro[] =
	"Usage: rdpipe [OPTION]... STAGE...\n"
	"\n"
	"Runs a pipeline whose commands are on other hosts: stdin goes into the first\n"
	"STAGE, stdout is what comes out of the last. From one to the next the data goes\n"
	"directly from host to host, over RDMA or, where there is none, over TCP. ssh\n"
	"starts rdpipe at each of them. STAGE is one of\n"
	"\n"
	"  [USER@]HOST:COMMAND  a command for bash at HOST; [ADDRESS]: for IPv6\n"
	"  [HOST:]'<FILE'       only as the first: the data is in FILE\n"
	"  [HOST:]'>FILE'       only as the last: all of it becomes FILE, or nothing does\n"
	"  [HOST:]'>>FILE'      only as the last: it is appended to FILE as it comes\n"
	"\n"
	"FILE without HOST is here. stdin is not read if it is a terminal, with -n, or\n"
	"when the data is in FILE; the first COMMAND then reads /dev/null.\n"
	"\n"
	"No COMMAND starts before every host is reached and every connection made. None\n"
	"sees an end of its input unless all before it have succeeded. Whatever fails, a\n"
	"COMMAND by an exit status other than 0, all others are ended, and rdpipe says\n"
	"which stage it was, and fails.\n";

static const char key_text[] =
	"\n"
	"KEY is what both sides must know; it never crosses the network. '-' asks for it\n"
	"on the terminal. It is left out when the key comes from -k or from VB_KEY in the\n"
	"environment. On the command line others may see it for a moment.\n";

static const char units_text[] =
	"\n"
	"Sizes and rates: K, M, G, T are powers of 1024; KB, MB, GB, TB of 1000.\n"
	"SEC: seconds, fractions too, or with ms, s, m, h. VB_FABRIC, VB_WIREUP and\n"
	"VB_DEVICE in the environment stand for --fabric, --wireup and --device where\n"
	"these are not given.\n";

static const char copy_example[] =
	"\n"
	"-S is rsync's --sparse; scp's -S PROGRAM is -e here.\n"
	"\n"
	"Examples:\n"
	"  rdcp picture.raw backup:            rdcp -r hostA:data hostB:/srv\n"
	"  rdcp -a --sync --delete photos/. me@backup:photos\n"
	"  tar c . | rdcp - backup:all.tar     rdcp -e 'docker exec -i' box:/etc/hosts .\n";

static const char stages_example[] =
	"\n"
	"COMMAND is what bash --norc -o pipefail -c gets, or where there is no bash\n"
	"/bin/sh -c. FILE is a name to the end of the word, at a HOST from the home\n"
	"directory on. Quote both, so that the shell here leaves them alone.\n"
	"\n"
	"Examples:\n"
	"  rdpipe fs1:'zfs send tank@snap' backup:'zfs recv tank'\n"
	"  rdpipe fs1:'zfs send tank@snap' fs2:'tee >(zfs recv tank)' \\\n"
	"    backup:'zfs recv tank'\n"
	"  rdpipe a:'<log' b:'sort | uniq -c' >counts\n"
	"  tar c . | rdpipe big:'zstd -T0' store:'>all.tar.zst'\n";

static const char send_example[] =
	"\n"
	"Example, after 'rdrecv -k key 7471 -- zfs recv tank/copy' at the host backup:\n"
	"  rdsend -k key backup 7471 -- zfs send tank/data@today\n";

static const char recv_example[] = "\n"
				   "Example, for 'rdsend -k key HOST 7471 picture.raw' elsewhere:\n"
				   "  rdrecv -k key 7471 picture.raw\n";

static const char perf_intro[] =
	"Usage: rdperf --serve [OPTION]...\n"
	"       rdperf [OPTION]... HOST\n"
	"       rdperf --svg FILE --add RUN.json [--add RUN.json]...\n"
	"\n"
	"Measures bandwidth, message rate and latency by size between here and HOST,\n"
	"where 'rdperf --serve' runs: over RDMA or, where there is none, over TCP. What\n"
	"counts are the device's own operations. There is no key: whoever reaches the\n"
	"port of the serving side can have it measure.\n";

static const char perf_example[] =
	"\n"
	"Examples, after 'rdperf --serve' at the host other:\n"
	"  rdperf other\n"
	"  rdperf --op write --size 4K,64K,1M --depth 64 --duration 2 other\n"
	"  rdperf --json other >poll.json; rdperf --event --svg both.svg \\\n"
	"    --label sleeping --add poll.json other\n";

/* Goes on at `column` of a line, and later lines begin at COLUMN. */
static void wrap(FILE *out, const char *text, size_t column)
{
	while (*text) {
		size_t len = strcspn(text, " ");

		if (column + len > WIDTH) {
			fprintf(out, "\n%*s", COLUMN, "");
			column = COLUMN;
		}
		fprintf(out, "%.*s", (int)len, text);
		column += len;
		text += len;
		for (; *text == ' '; text++, column++)
			if (column + 1 + strcspn(text + 1, " ") <= WIDTH)
				fputc(' ', out);
	}
	fputc('\n', out);
}

static void print_flag(const struct flag *flag, FILE *out)
{
	char names[64], letter[8] = "    ", value[32] = "";

	if (flag->letter)
		snprintf(letter, sizeof(letter), "-%c, ", flag->letter);
	if (flag_is_optional(flag))
		snprintf(value, sizeof(value), "[=%s", flag->value + 1);
	else if (flag->value)
		snprintf(value, sizeof(value), " %s", flag->value);
	snprintf(names, sizeof(names), "  %s--%s%s", letter, flag->name, value);
	fprintf(out, "%-*s", COLUMN, names);
	wrap(out, flag->help, strlen(names) < COLUMN ? COLUMN : strlen(names));
}

static const struct {
	const char *intro, *key, *example;
} texts[] = {
	[RDSEND] = { send_intro, key_text, send_example },
	[RDRECV] = { recv_intro, key_text, recv_example },
	[RDCP] = { copy_intro, "", copy_example },
	[RDPIPE] = { stages_intro, "", stages_example },
	[RDPERF] = { perf_intro, "", perf_example },
};

void help_print(enum tool tool, FILE *out)
{
	fputs(texts[tool].intro, out);
	fputs(texts[tool].key, out);
	for (const struct flag *flag = flags; flag->name || flag->help; flag++) {
		if (!(flag->tools & tool) || !flag->help)
			continue;
		if (flag->name)
			print_flag(flag, out);
		else
			fprintf(out, "\n%s:\n", flag->help);
	}
	fputs(units_text, out);
	fputs("\nExit codes:\n", out);
	exit_code_print(tool, out);
	fputs(texts[tool].example, out);
}
