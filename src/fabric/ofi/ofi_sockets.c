/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of libfabric's tcp provider, which it shows to nobody: they are
 * found among our own descriptors, by their addresses. What to do with them is
 * not decided here.
 */
#include <dirent.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "fabric/ofi/ofi.h"

#define NEAR 16

static bool is_at(int fd, const struct sockaddr *local)
{
	struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(sa);

	return getsockname(fd, (struct sockaddr *)&sa, &len) == 0 &&
	       (sa.ss_family == AF_INET || sa.ss_family == AF_INET6) &&
	       vb__address_equal((struct sockaddr *)&sa, local);
}

/* With `peer` NULL: one that listens. */
static bool is_wanted(int fd, const struct sockaddr *local, const struct sockaddr *peer)
{
	struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
	socklen_t len = sizeof(sa);
	int listens = 0;

	if (!is_at(fd, local))
		return false;
	if (peer)
		return getpeername(fd, (struct sockaddr *)&sa, &len) == 0 &&
		       vb__address_equal((struct sockaddr *)&sa, peer);
	len = sizeof(listens);
	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens;
}

static int find_anywhere(const struct sockaddr *local, const struct sockaddr *peer)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int found = -1;

	if (!dir)
		return -1;
	while (found < 0 && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] != '.' && fd != dirfd(dir) && is_wanted(fd, local, peer))
			found = fd;
	}
	closedir(dir);
	return found;
}

static int find_near(int about, const struct sockaddr *local, const struct sockaddr *peer)
{
	for (int fd = about > NEAR ? about - NEAR : 0; fd < about + NEAR; fd++)
		if (is_wanted(fd, local, peer))
			return fd;
	return -1;
}

int ofi_socket_find(int sibling, const struct sockaddr *local, const struct sockaddr *peer)
{
	static atomic_int last;
	int found = find_near(sibling, local, peer);

	if (found < 0)
		found = find_near(last, local, peer);
	if (found < 0)
		found = find_anywhere(local, peer);
	if (found >= 0)
		last = found;
	return found;
}
