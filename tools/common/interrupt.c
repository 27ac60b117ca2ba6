/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interrupts. They are blocked everywhere but in a thread that waits for them, so that it does not
 * matter what handlers a library installs: one that libfabric brings along does.
 */
#include "common/interrupt.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "common/trouble.h"

static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

static atomic_bool seen;
static bool only_once;
static int event_fd = -1;
static sigset_t waited_for;

static void let_the_next_one_kill(void)
{
	const struct sigaction plain = { .sa_handler = SIG_DFL };

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (sigismember(&waited_for, signals[i]))
			sigaction(signals[i], &plain, NULL);
	pthread_sigmask(SIG_UNBLOCK, &waited_for, NULL);
}

static void *wait_for_one(void *arg)
{
	const uint64_t one = 1;
	int number;

	(void)arg;
	while (sigwait(&waited_for, &number) != 0)
		;
	seen = true;
	if (write(event_fd, &one, sizeof(one)) < 0)
		_exit(20); /* cannot be: nothing else would end the transfer */
	if (!only_once)
		let_the_next_one_kill();
	for (;;)
		pause();
	return NULL;
}

/* With all signals blocked: those that are not waited for are for the main thread. */
static int start_waiting(void)
{
	sigset_t all, before;
	pthread_t thread;
	int result;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(&thread, NULL, wait_for_one, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (result == 0) {
		pthread_detach(thread);
		pthread_sigmask(SIG_BLOCK, &waited_for, NULL);
	}
	return result;
}

int interrupt_open(struct vb_error *err)
{
	struct sigaction before;
	int result;

	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event_fd < 0)
		return trouble_errno(err, VB_ERR_SYSTEM, errno, "eventfd", "");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD,
	       SIG_DFL); /* if our parent ignored it, we would not learn how a command ended */
	sigemptyset(&waited_for);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		/* nohup(1) stays in force. */
		if (signals[i] != SIGHUP || sigaction(SIGHUP, NULL, &before) != 0 ||
		    before.sa_handler != SIG_IGN)
			sigaddset(&waited_for, signals[i]);
	result = start_waiting();
	return result ? trouble_errno(err, VB_ERR_SYSTEM, result, "pthread_create", "") : 0;
}

void interrupt_only_once(void)
{
	only_once = true;
}

int interrupt_fd(void)
{
	return event_fd;
}

bool interrupt_seen(void)
{
	return seen;
}
