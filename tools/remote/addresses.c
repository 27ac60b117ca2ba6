/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses. Which of them is connected to in the end, is tried out elsewhere. */
#include "remote/addresses.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The pure parts ---- */

bool addresses_asked(const char *ssh_connection, char text[INET6_ADDRSTRLEN])
{
	char server[64];
	uint8_t raw[16];

	if (!ssh_connection || sscanf(ssh_connection, "%*s %*s %63s", server) != 1)
		return false;
	server[strcspn(server, "%")] = '\0';
	/* What came to an IPv6 socket by IPv4. */
	if (strncmp(server, "::ffff:", 7) == 0 && strchr(server, '.'))
		memmove(server, server + 7, strlen(server + 7) + 1);
	if (strlen(server) >= INET6_ADDRSTRLEN ||
	    (inet_pton(AF_INET, server, raw) != 1 && inet_pton(AF_INET6, server, raw) != 1))
		return false;
	snprintf(text, INET6_ADDRSTRLEN, "%s", server);
	return true;
}

void addresses_add(struct invitation *invitation, const struct address *address)
{
	for (size_t i = 0; i < invitation->address_count; i++) {
		struct address *known = &invitation->addresses[i];

		if (strcmp(known->text, address->text) == 0) {
			known->rdma |= address->rdma;
			return;
		}
	}
	if (invitation->address_count < ADDRESSES_MAX)
		invitation->addresses[invitation->address_count++] = *address;
}

void addresses_sort(struct invitation *invitation, int family, bool (*here)(const char *address))
{
	struct address sorted[ADDRESSES_MAX];
	bool best[ADDRESSES_MAX], taken[ADDRESSES_MAX];
	size_t count = 0;

	for (size_t i = 0; i < invitation->address_count; i++) {
		const struct address *address = &invitation->addresses[i];

		taken[i] = !family || (strchr(address->text, ':') ? AF_INET6 : AF_INET) == family;
		best[i] = taken[i] && address->rdma && here(address->text);
	}
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < invitation->address_count; i++)
			if (taken[i] && best[i] == (round == 0))
				sorted[count++] = invitation->addresses[i];
	memcpy(invitation->addresses, sorted, count * sizeof(sorted[0]));
	invitation->address_count = count;
}

/* ---- What the kernel knows ---- */

bool addresses_any_rdma(void)
{
	DIR *dir = opendir("/sys/class/infiniband");
	struct dirent *entry;
	bool any = false;

	while (dir && !any && (entry = readdir(dir)))
		any = entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return any;
}

/* Is it one of the interfaces that this device's table of addresses names? Soft-RoCE is only there. */
static bool device_serves(const char *device, const char *interface)
{
	char path[512], name[IF_NAMESIZE + 2];
	bool found = false;
	FILE *file;

	for (int i = 0; i < 256 && !found; i++) {
		snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/%d",
			 device, i);
		file = fopen(path, "re");
		if (!file)
			return false;
		/* Entries that are not in use cannot be read. */
		if (fgets(name, sizeof(name), file)) {
			name[strcspn(name, "\n")] = '\0';
			found = strcmp(name, interface) == 0;
		}
		fclose(file);
	}
	return found;
}

static bool interface_is_rdma(const char *interface)
{
	DIR *dir = opendir("/sys/class/infiniband");
	char path[512];
	struct dirent *entry;
	bool found;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device/infiniband", interface);
	found = access(path, F_OK) == 0;
	while (dir && !found && (entry = readdir(dir)))
		found = entry->d_name[0] != '.' && device_serves(entry->d_name, interface);
	if (dir)
		closedir(dir);
	return found;
}

static bool as_text(const struct sockaddr *from, char text[INET6_ADDRSTRLEN])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)from;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)from;

	if (from && from->sa_family == AF_INET)
		return inet_ntop(AF_INET, &v4->sin_addr, text, INET6_ADDRSTRLEN);
	return from && from->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr) &&
	       inet_ntop(AF_INET6, &v6->sin6_addr, text, INET6_ADDRSTRLEN);
}

/* Of those that are up, RDMA or not, loopback or not. */
static void add_some(struct invitation *invitation, const struct ifaddrs *all, bool rdma,
		     bool loopback)
{
	for (; all; all = all->ifa_next) {
		struct address address = { .rdma = rdma };

		if (!(all->ifa_flags & IFF_UP) || !as_text(all->ifa_addr, address.text))
			continue;
		if (!(all->ifa_flags & IFF_LOOPBACK) != !loopback)
			continue;
		if (interface_is_rdma(all->ifa_name) == rdma)
			addresses_add(invitation, &address);
	}
}

static bool is_loopback(const char *text)
{
	return strncmp(text, "127.", 4) == 0 || strcmp(text, "::1") == 0;
}

void addresses_of_host(struct invitation *invitation)
{
	const char *connection = getenv("SSH_CONNECTION");
	struct address asked = { .asked = true };
	bool by_ssh = addresses_asked(connection, asked.text);
	struct ifaddrs *all = NULL;

	invitation->address_count = 0;
	if (by_ssh && strncasecmp(asked.text, "fe80:", 5) != 0)
		addresses_add(invitation, &asked);
	if (getifaddrs(&all) != 0)
		return;
	add_some(invitation, all, true, false);
	add_some(invitation, all, false, false);
	if (!by_ssh || is_loopback(asked.text)) {
		add_some(invitation, all, true, true);
		add_some(invitation, all, false, true);
	}
	freeifaddrs(all);
}

/* The address of ours that packets to there would come from. */
static bool source_to(const char *address, char text[INET6_ADDRSTRLEN])
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(9) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(9) };
	bool is_v4 = inet_pton(AF_INET, address, &v4.sin_addr) == 1;
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof(from);
	bool known = false;
	int fd;

	if (!is_v4 && inet_pton(AF_INET6, address, &v6.sin6_addr) != 1)
		return false;
	fd = socket(is_v4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	/* Nothing is sent by this. */
	if (connect(fd, is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6,
		    is_v4 ? sizeof(v4) : sizeof(v6)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&from, &len) == 0)
		known = as_text((struct sockaddr *)&from, text);
	close(fd);
	return known;
}

bool addresses_route_is_rdma(const char *address)
{
	char ours[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN];
	struct ifaddrs *all = NULL;
	bool rdma = false;

	if (!source_to(address, ours) || getifaddrs(&all) != 0)
		return false;
	for (struct ifaddrs *i = all; i && !rdma; i = i->ifa_next)
		rdma = as_text(i->ifa_addr, text) && strcmp(text, ours) == 0 &&
		       interface_is_rdma(i->ifa_name);
	freeifaddrs(all);
	return rdma;
}

bool addresses_nowhere(const char *address)
{
	(void)address;
	return false;
}
