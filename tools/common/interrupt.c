/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts. */
#include "common/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/trouble.h"

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

static volatile sig_atomic_t seen;
static int event_fd = -1;

static void on_signal(int number)
{
	const struct sigaction plain = { .sa_handler = SIG_DFL };
	const uint64_t one = 1;
	int saved = errno;

	seen = number;
	if (write(event_fd, &one, sizeof(one)) < 0)
		_exit(20); /* cannot be: nothing else would end the transfer */
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &plain, NULL);
	errno = saved;
}

int interrupt_open(struct vb_error *err)
{
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	struct sigaction before;

	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event_fd < 0)
		return trouble_errno(err, VB_ERR_SYSTEM, errno, "eventfd", "");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD,
	       SIG_DFL); /* if our parent ignored it, we would not learn how a command ended */
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		/* nohup(1) stays in force. A library that libfabric brings has replaced the others'. */
		if (signals[i] == SIGHUP && sigaction(SIGHUP, NULL, &before) == 0 &&
		    before.sa_handler == SIG_IGN)
			continue;
		sigaction(signals[i], &action, NULL);
	}
	return 0;
}

int interrupt_fd(void)
{
	return event_fd;
}

bool interrupt_seen(void)
{
	return seen != 0;
}
