/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers the facts: from the library, the process, /sys and /proc. */
#include "info/facts.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <ifaddrs.h>
#include <linux/capability.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <verbatim/verbatim.h>

#include "info/link_speed.h"
#include "info/sysfs.h"

static void note_versions(struct facts *facts)
{
	struct utsname name;

	snprintf(facts->version, sizeof(facts->version), "%s", vb_version());
	if (uname(&name) == 0)
		snprintf(facts->kernel, sizeof(facts->kernel), "%.79s", name.release);
	sysfs_library_version("libibverbs.so.", facts->libibverbs, sizeof(facts->libibverbs));
	sysfs_library_version("librdmacm.so.", facts->librdmacm, sizeof(facts->librdmacm));
}

/* The kernel's own has had this number since there are such files. */
static bool in_initial_user_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/user", &st) != 0 || st.st_ino == 0xEFFFFFFDu;
}

static uint64_t bytes_of(rlim_t limit)
{
	return limit == RLIM_INFINITY ? FACTS_NO_LIMIT : limit;
}

static void note_memory(struct facts *facts)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };
	struct rlimit limit = { .rlim_cur = 0 };

	getrlimit(RLIMIT_MEMLOCK, &limit);
	facts->memlock = bytes_of(limit.rlim_cur);
	facts->memlock_hard = bytes_of(limit.rlim_max);
	facts->root = geteuid() == 0;
	if (syscall(SYS_capget, &header, data) == 0)
		facts->ipc_lock = data[0].effective & (1u << CAP_IPC_LOCK);
	facts->ipc_lock_bounded = !facts->ipc_lock &&
				  prctl(PR_CAPBSET_READ, CAP_IPC_LOCK, 0, 0, 0) == 1;
	facts->ipc_lock_inside = facts->ipc_lock && !in_initial_user_namespace();
	facts->ipc_lock = facts->ipc_lock && !facts->ipc_lock_inside;
}

static void note_node(struct node_fact *node, const char *path)
{
	struct passwd *owner;
	struct group *group;
	struct stat st;
	int fd;

	*node = (struct node_fact){ .there = path[0] && stat(path, &st) == 0 };
	if (!node->there)
		return;
	/* In earnest: the rules of a container deny what the permissions allow. */
	fd = open(path, O_RDWR | O_CLOEXEC);
	node->allowed = fd >= 0;
	node->ruled_out = fd < 0 && errno == EPERM;
	if (fd >= 0)
		close(fd);
	node->mode = st.st_mode & 07777;
	owner = getpwuid(st.st_uid);
	group = getgrgid(st.st_gid);
	snprintf(node->owner, sizeof(node->owner), "%.31s", owner ? owner->pw_name : "?");
	snprintf(node->group, sizeof(node->group), "%.31s", group ? group->gr_name : "?");
}

/* Those that say more than that there is a link. */
static unsigned count_addresses(const struct ifaddrs *list, const char *interface)
{
	unsigned n = 0;

	for (; list; list = list->ifa_next) {
		const struct sockaddr_in6 *six = (const void *)list->ifa_addr;

		if (!list->ifa_addr || strcmp(list->ifa_name, interface) != 0)
			continue;
		if (list->ifa_addr->sa_family == AF_INET)
			n++;
		else if (list->ifa_addr->sa_family == AF_INET6 &&
			 !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
			n++;
	}
	return n;
}

static void note_pcie(struct link_fact *link)
{
	const char *name = link->device->name;

	link->pcie_gts = sysfs_number("/sys/class/infiniband/%s/device/current_link_speed", name);
	link->pcie_max_gts = sysfs_number("/sys/class/infiniband/%s/device/max_link_speed", name);
	link->pcie_lanes =
		(unsigned)sysfs_number("/sys/class/infiniband/%s/device/current_link_width", name);
	link->pcie_max_lanes =
		(unsigned)sysfs_number("/sys/class/infiniband/%s/device/max_link_width", name);
}

static void note_links(struct facts *facts)
{
	struct ifaddrs *addresses = NULL;
	unsigned i = 0;

	if (getifaddrs(&addresses) != 0)
		addresses = NULL;
	for (const struct vb_device *d = facts->devices; d; d = d->next) {
		if (i < FACTS_LINKS_MAX)
			note_node(&facts->nodes[i++], d->node);
		for (const struct vb_port *p = d->ports; p; p = p->next) {
			struct link_fact *link;

			if (facts->link_count == FACTS_LINKS_MAX)
				break;
			link = &facts->links[facts->link_count++];
			*link = (struct link_fact){ .device = d, .port = p };
			note_pcie(link);
			if (!p->interface[0])
				continue;
			link->interface_mtu =
				(unsigned)sysfs_number("/sys/class/net/%s/mtu", p->interface);
			link_speed(p->interface, &link->speed_mbps, &link->best_mbps);
			link->addresses = count_addresses(addresses, p->interface);
		}
	}
	if (addresses)
		freeifaddrs(addresses);
}

static void note_netns(struct facts *facts)
{
	char line[16];

	if (!sysfs_line(line, sizeof(line), "/sys/module/ib_core/parameters/netns_mode"))
		return;
	facts->netns = line[0] == 'Y' || line[0] == '1' ? NETNS_SHARED : NETNS_EXCLUSIVE;
}

/* The nodes' numbers are told in every network namespace, devices only in their own. */
static void note_elsewhere(struct facts *facts)
{
	const struct dirent *entry;
	DIR *dir = facts->devices ? NULL : opendir("/sys/class/infiniband_verbs");

	while (dir && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, "uverbs", 6))
			facts->elsewhere = true;
	if (dir)
		closedir(dir);
}

static void note_huge_pages(struct facts *facts)
{
	char line[128];
	FILE *file = fopen("/proc/meminfo", "re");

	while (file && fgets(line, sizeof(line), file)) {
		unsigned long long n;

		if (sscanf(line, "HugePages_Total: %llu", &n) == 1)
			facts->huge_total = n;
		else if (sscanf(line, "HugePages_Free: %llu", &n) == 1)
			facts->huge_free = n;
		else if (sscanf(line, "Hugepagesize: %llu kB", &n) == 1)
			facts->huge_kib = n;
	}
	if (file)
		fclose(file);
	if (sysfs_line(line, sizeof(line), "/sys/kernel/mm/transparent_hugepage/enabled") &&
	    strchr(line, '['))
		sscanf(strchr(line, '[') + 1, "%15[a-z]", facts->transparent);
}

void facts_gather(struct facts *facts, enum vb_fabric fabric)
{
	*facts = (struct facts){ .fabric = fabric };
	note_memory(facts);
	if (fabric != VB_FABRIC_OFI && vb_device_list(&facts->devices, &facts->devices_failed) != 0)
		facts->devices = NULL;
	note_links(facts);
	note_node(&facts->rdma_cm, "/dev/infiniband/rdma_cm");
	note_netns(facts);
	note_elsewhere(facts);
	note_huge_pages(facts);
	if (fabric != VB_FABRIC_VERBS &&
	    vb_provider_list(&facts->providers, &facts->providers_failed) != 0)
		facts->providers = NULL;
	note_versions(facts);
}

void facts_free(struct facts *facts)
{
	vb_device_free(facts->devices);
	vb_provider_free(facts->providers);
	*facts = (struct facts){ .netns = NETNS_UNKNOWN };
}
