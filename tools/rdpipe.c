/* SPDX-License-Identifier: Apache-2.0 */
/* rdpipe: a pipeline of commands on several hosts. */
#include <string.h>

#include "common/console.h"
#include "common/descriptors.h"
#include "common/interrupt.h"
#include "pipe/conductor.h"
#include "pipe/stage_server.h"
#include "pipe/verdict.h"

static int run(const struct arguments *arguments, const struct stages *stages)
{
	static struct conductor conductor;
	int code = conductor_open(&conductor, arguments, stages);

	if (code < 0) {
		conductor_run(&conductor);
		code = (int)verdict_tell(&conductor);
	}
	conductor_end(&conductor);
	return code;
}

int main(int argc, char **argv)
{
	struct arguments arguments;
	struct stages stages = { 0 };
	int code;

	console_open("rdpipe");
	descriptors_raise();
	if (argc == 2 && strcmp(argv[1], "--server") == 0)
		return stage_server_run();
	code = arguments_parse(&arguments, RDPIPE, true, argc, argv);
	if (code < 0)
		code = stages_make(&stages, &arguments);
	if (code < 0)
		code = run(&arguments, &stages);
	interrupt_leave(code);
	stages_free(&stages);
	arguments_free(&arguments);
	return code;
}
