/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapped system calls: entered into the books, then done for real. */
#include "mock_system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "mock_books.h"

uint64_t mock_clock_ns;
uint64_t mock_memlock_bytes = RLIM_INFINITY;

void *__real_calloc(size_t n, size_t size);
int __real_clock_gettime(clockid_t clock, struct timespec *ts);
int __real_epoll_create1(int flags);
int __real_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __real_eventfd(unsigned count, int flags);
int __real_timerfd_create(int clock, int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *new_value,
			   struct itimerspec *old_value);

void *__wrap_calloc(size_t n, size_t size);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *new_value,
			   struct itimerspec *old_value);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fcntl64(int fd, int command, ...);
int __wrap_getrlimit(int resource, struct rlimit *limit);
int __wrap_getrlimit64(int resource, struct rlimit *limit);

void mock_system_reset(void)
{
	mock_clock_ns = 0;
	mock_memlock_bytes = RLIM_INFINITY;
}

void *mock_system_calloc(size_t size)
{
	void *memory = __real_calloc(1, size);

	if (!memory)
		abort();
	return memory;
}

int mock_system_eventfd(void)
{
	return __real_eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
}

void mock_system_raise(int fd)
{
	if (eventfd_write(fd, 1) != 0)
		abort();
}

void mock_system_take(int fd)
{
	eventfd_t one;

	if (eventfd_read(fd, &one) != 0)
		abort();
}

int mock_system_nonblocking(int fd)
{
	return (int)syscall(SYS_fcntl, fd, F_GETFL) & O_NONBLOCK;
}

/* Enters a call that says -1 and errno when it fails. */
static int refused(const char *name)
{
	int errnum = mock_call(name, NULL);

	if (errnum)
		errno = errnum;
	return errnum;
}

void *__wrap_calloc(size_t n, size_t size)
{
	if (mock_call("calloc", NULL)) {
		errno = ENOMEM;
		return NULL;
	}
	return __real_calloc(n, size);
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	if (!mock_clock_ns)
		return __real_clock_gettime(clock, ts);
	ts->tv_sec = (time_t)(mock_clock_ns / 1000000000u);
	ts->tv_nsec = (long)(mock_clock_ns % 1000000000u);
	return 0;
}

int __wrap_epoll_create1(int flags)
{
	return refused("epoll_create1") ? -1 : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	/* Taking out what is in cannot fail. */
	if (op != EPOLL_CTL_DEL && refused("epoll_ctl"))
		return -1;
	return __real_epoll_ctl(epfd, op, fd, event);
}

int __wrap_eventfd(unsigned count, int flags)
{
	return refused("eventfd") ? -1 : __real_eventfd(count, flags);
}

int __wrap_timerfd_create(int clock, int flags)
{
	return refused("timerfd_create") ? -1 : __real_timerfd_create(clock, flags);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *new_value,
			   struct itimerspec *old_value)
{
	if (refused("timerfd_settime"))
		return -1;
	return __real_timerfd_settime(fd, flags, new_value, old_value);
}

/* Sockets are real, but the calls may fail. */
#define WRAP_SOCKET_CALL(type, name, parameters, arguments)           \
	type __real_##name parameters;                                \
	type __wrap_##name parameters;                                \
	type __wrap_##name parameters                                 \
	{                                                             \
		return refused(#name) ? -1 : __real_##name arguments; \
	}

WRAP_SOCKET_CALL(int, socket, (int domain, int type, int protocol), (domain, type, protocol))
WRAP_SOCKET_CALL(int, bind, (int fd, const struct sockaddr *sa, socklen_t len), (fd, sa, len))
WRAP_SOCKET_CALL(int, listen, (int fd, int backlog), (fd, backlog))
WRAP_SOCKET_CALL(int, connect, (int fd, const struct sockaddr *sa, socklen_t len), (fd, sa, len))
WRAP_SOCKET_CALL(int, accept4, (int fd, struct sockaddr *sa, socklen_t *len, int flags),
		 (fd, sa, len, flags))
WRAP_SOCKET_CALL(int, getsockname, (int fd, struct sockaddr *sa, socklen_t *len), (fd, sa, len))
WRAP_SOCKET_CALL(int, getpeername, (int fd, struct sockaddr *sa, socklen_t *len), (fd, sa, len))
WRAP_SOCKET_CALL(int, setsockopt, (int fd, int level, int name, const void *v, socklen_t len),
		 (fd, level, name, v, len))
WRAP_SOCKET_CALL(int, getsockopt, (int fd, int level, int name, void *v, socklen_t *len),
		 (fd, level, name, v, len))
WRAP_SOCKET_CALL(ssize_t, send, (int fd, const void *from, size_t len, int flags),
		 (fd, from, len, flags))
WRAP_SOCKET_CALL(ssize_t, recv, (int fd, void *to, size_t len, int flags), (fd, to, len, flags))
WRAP_SOCKET_CALL(ssize_t, getrandom, (void *to, size_t len, unsigned flags), (to, len, flags))

/* Our code gets and sets flags only; only setting them is made to fail. */
static int set_flags(int fd, int command, long arg)
{
	if (command == F_SETFL && refused("fcntl"))
		return -1;
	return (int)syscall(SYS_fcntl, fd, command, arg);
}

int __wrap_fcntl(int fd, int command, ...)
{
	va_list args;
	long arg;

	va_start(args, command);
	arg = command == F_SETFL ? va_arg(args, int) : 0;
	va_end(args);
	return set_flags(fd, command, arg);
}

int __wrap_fcntl64(int fd, int command, ...)
{
	va_list args;
	long arg;

	va_start(args, command);
	arg = command == F_SETFL ? va_arg(args, int) : 0;
	va_end(args);
	return set_flags(fd, command, arg);
}

int __wrap_getrlimit(int resource, struct rlimit *limit)
{
	if (resource != RLIMIT_MEMLOCK) /* a sanitizer's, linked in with us */
		return (int)syscall(SYS_prlimit64, 0, resource, NULL, limit);
	*limit = (struct rlimit){ .rlim_cur = mock_memlock_bytes, .rlim_max = mock_memlock_bytes };
	return 0;
}

int __wrap_getrlimit64(int resource, struct rlimit *limit)
{
	return __wrap_getrlimit(resource, limit);
}
