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
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pid_t victim; /* under the lock */

static int wait_for_one(void)
{
	int number;

	while (sigwait(&waited_for, &number) != 0)
		;
	return number;
}

/* By the signal, as whoever waits for us is to see. */
static void die_by(int number)
{
	const struct sigaction plain = { .sa_handler = SIG_DFL };

	sigaction(number, &plain, NULL);
	pthread_sigmask(SIG_UNBLOCK, &waited_for, NULL);
	raise(number);
}

static void *wait_for_all(void *arg)
{
	const uint64_t one = 1;
	int number;

	(void)arg;
	wait_for_one();
	seen = true;
	if (write(event_fd, &one, sizeof(one)) < 0)
		_exit(20); /* cannot be: nothing else would end the transfer */
	for (;;) {
		number = wait_for_one();
		if (only_once)
			continue;
		pthread_mutex_lock(&lock);
		if (!victim || kill(victim, SIGKILL) == 0 || errno != EPERM)
			die_by(number);
		pthread_mutex_unlock(&lock);
	}
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
	result = pthread_create(&thread, NULL, wait_for_all, NULL);
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

void interrupt_hold(void)
{
	pthread_mutex_lock(&lock);
}

void interrupt_let_go(pid_t whom)
{
	victim = whom;
	pthread_mutex_unlock(&lock);
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

void interrupt_leave(int code)
{
	if (seen)
		_exit(code);
}
