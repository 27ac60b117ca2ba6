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
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common/trouble.h"

/*
 * What ends a process and is no crash: a command that is fed by this one must not take that for the end of the data.
 * SIGALRM is left to whoever sets an alarm.
 */
static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGXCPU };

/* timeout(1) sends two, to a process and to its group. A user who has lost patience is slower. */
#define ONE_MS 300

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

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* What comes together is one interrupt. */
static void await_calm(void)
{
	int64_t left, end = now_ms() + ONE_MS;

	while ((left = end - now_ms()) > 0)
		(void)sigtimedwait(&waited_for, NULL,
				   &(struct timespec){ .tv_nsec = left * 1000000 });
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
	await_calm();
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

/* nohup(1) stays in force, and its like. But a shell ignores a terminal's two for whatever it has in the background. */
static bool stays_ignored(int number)
{
	struct sigaction before;

	return number != SIGINT && number != SIGQUIT && number != SIGTERM &&
	       sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_IGN;
}

int interrupt_open(struct vb_error *err)
{
	int result;

	event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (event_fd < 0)
		return trouble_errno(err, VB_ERR_SYSTEM, errno, "eventfd", "");
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD,
	       SIG_DFL); /* if our parent ignored it, we would not learn how a command ended */
	sigemptyset(&waited_for);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!stays_ignored(signals[i]))
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

/* LeakSanitizer looks at what exit(3) ends only. */
extern void __lsan_do_leak_check(void) __attribute__((weak));

void interrupt_leave(int code)
{
	if (seen)
		_exit(code);
	if (code == 0)
		return;
	fflush(NULL);
	if (__lsan_do_leak_check)
		__lsan_do_leak_check();
	_exit(code);
}
