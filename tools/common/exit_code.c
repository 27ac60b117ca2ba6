/* SPDX-License-Identifier: Apache-2.0 */
/* From errors to exit codes. */
#include "common/exit_code.h"

/* NULL where a tool has no such code. */
static const struct {
	enum exit_code code;
	const char *of_pipe, *of_rdcp, *of_rdperf, *of_rdpipe;
} meanings[] = {
	{ EXIT_OK, "everything has arrived and is stored", "everything is copied",
	  "everything is measured", "every stage has succeeded" },
	{ EXIT_USAGE, "wrong usage", "wrong usage", "wrong usage, or no such measurement",
	  "wrong usage" },
	{ EXIT_START, "the keys differ, the key could not be read, or encryption is refused",
	  "cannot start", "a device here or there cannot do it", "cannot start" },
	{ EXIT_SOCKET, "cannot listen, or the connection was lost", "the connection was lost",
	  "cannot listen, or the connection was lost", "a connection was lost" },
	{ EXIT_FILE, "a file, pipe or command failed, here or at the peer",
	  "the target as a whole, stdin or stdout failed", "a file could not be read or written",
	  "a command or a file failed, at any stage" },
	{ EXIT_PROTOCOL, "protocol error, another version, or corrupted data",
	  "protocol error, another version, or corrupted data",
	  "the other side is no rdperf, or of another version; or corrupted data",
	  "protocol error, another version, or corrupted data" },
	{ EXIT_INTERRUPTED, "interrupted, here or at the peer", "interrupted",
	  "interrupted, here or at the peer", "interrupted, here or at a stage" },
	{ EXIT_MEMORY, "not enough memory, or it may not be pinned",
	  "not enough memory, or it may not be pinned",
	  "not enough memory, or it may not be pinned",
	  "not enough memory, or it may not be pinned" },
	{ EXIT_PARTIAL, NULL, "some files could not be copied; all others were", NULL, NULL },
	{ EXIT_VANISHED, NULL, "some files vanished before they were copied", NULL, NULL },
	{ EXIT_TIMEOUT, "time-out", "time-out", "time-out", "time-out" },
	{ EXIT_CONNECT, "cannot connect", "cannot connect", "cannot connect", "cannot connect" },
	{ EXIT_NOT_RUN, NULL, "rdcp at the far side may not be run", NULL,
	  "rdpipe at a far side may not be run" },
	{ EXIT_NOT_FOUND, NULL, "rdcp at the far side is not found", NULL,
	  "rdpipe at a far side is not found" },
};

void exit_code_print(enum tool tool, FILE *out)
{
	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++) {
		const char *meaning = tool == RDCP     ? meanings[i].of_rdcp
				      : tool == RDPIPE ? meanings[i].of_rdpipe
				      : tool == RDPERF ? meanings[i].of_rdperf
						       : meanings[i].of_pipe;

		if (meaning)
			fprintf(out, "  %*d  %s\n", tool & (RDCP | RDPIPE) ? 3 : 2,
				(int)meanings[i].code, meaning);
	}
}

/* Of what goes wrong with the network, whose meaning depends on the moment. */
static enum exit_code network_code(enum phase phase)
{
	switch (phase) {
	case PHASE_CHECK:
	case PHASE_KEY:
		return EXIT_START;
	case PHASE_CONNECT:
		return EXIT_CONNECT;
	default:
		return EXIT_SOCKET;
	}
}

enum exit_code exit_code_of(enum vb_err code, enum phase phase)
{
	switch (code) {
	case VB_OK:
		return EXIT_OK;
	case VB_ERR_INVALID:
		return EXIT_USAGE;
	case VB_ERR_NOMEM:
	case VB_ERR_MEMLOCK:
		return EXIT_MEMORY;
	case VB_ERR_KEY:
		return EXIT_START;
	case VB_ERR_REFUSED: /* after connecting: what is required, not the connection */
		return phase == PHASE_CONNECT ? EXIT_CONNECT : EXIT_START;
	case VB_ERR_IO:
		return phase == PHASE_KEY ? EXIT_START : EXIT_FILE;
	case VB_ERR_INTERRUPTED:
		return EXIT_INTERRUPTED;
	case VB_ERR_TOO_BIG: /* found before anything went over: for the device */
		return phase == PHASE_CHECK ? EXIT_START : EXIT_PROTOCOL;
	case VB_ERR_TIMEOUT:
		return phase == PHASE_CONNECT ? EXIT_CONNECT : EXIT_TIMEOUT;
	case VB_ERR_PROTOCOL:
	case VB_ERR_VERSION:
	case VB_ERR_CORRUPT:
	case VB_ERR_AGAIN:
	case VB_ERR_REMOTE_ACCESS:
		return EXIT_PROTOCOL;
	case VB_ERR_EOF:
	case VB_ERR_CLOSED:
	case VB_ERR_LOST:
	case VB_ERR_FLUSHED:
		return EXIT_SOCKET;
	default:
		return network_code(phase);
	}
}
