/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of this machine. The kernel lists them in sysfs, also those that
 * are denied to us; what only verbs can tell is asked of those that open.
 */
#include "fabric/verbs/verbs_system.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/verbs/verbs.h"
#include "fabric/verbs/verbs_abilities.h"
#include "fabric/verbs/verbs_netdev.h"

#define DEVICES "/sys/class/infiniband"
#define NODES "/sys/class/infiniband_verbs"

/* ---- sysfs ---- */

/* The first line of a file; false, and "", if it cannot be read. */
__attribute__((format(printf, 3, 4))) static bool read_line(char *to, size_t size,
							    const char *format, ...)
{
	char path[512];
	va_list args;
	FILE *file;
	bool ok;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	to[0] = '\0';
	file = fopen(path, "re");
	if (!file)
		return false;
	ok = fgets(to, (int)size, file) != NULL;
	fclose(file);
	to[strcspn(to, "\n")] = '\0';
	return ok;
}

/* "uverbs0" for a device, "" if it has none. */
static void find_node(const char *device, char *to, size_t size)
{
	struct dirent *entry;
	char name[64];
	DIR *dir = opendir(NODES);

	to[0] = '\0';
	while (dir && !to[0] && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, "uverbs", 6) != 0)
			continue;
		if (read_line(name, sizeof(name), NODES "/%s/ibdev", entry->d_name) &&
		    !strcmp(name, device))
			snprintf(to, size, "/dev/infiniband/%.40s", entry->d_name);
	}
	if (dir)
		closedir(dir);
}

static void find_driver(const char *device, char *to, size_t size)
{
	char path[256], target[256];
	ssize_t n;
	const char *slash;

	snprintf(path, sizeof(path), DEVICES "/%s/device/driver", device);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return;
	target[n] = '\0';
	slash = strrchr(target, '/');
	snprintf(to, size, "%.31s", slash ? slash + 1 : target);
}

static uint64_t read_guid(const char *device)
{
	unsigned part[4] = { 0 };
	char line[64];

	if (!read_line(line, sizeof(line), DEVICES "/%s/node_guid", device) ||
	    sscanf(line, "%4x:%4x:%4x:%4x", &part[0], &part[1], &part[2], &part[3]) != 4)
		return 0;
	return (uint64_t)part[0] << 48 | (uint64_t)part[1] << 32 | (uint64_t)part[2] << 16 |
	       part[3];
}

static enum vb_wire read_wire(const char *device, unsigned port)
{
	char type[32], layer[32];

	if (read_line(type, sizeof(type), DEVICES "/%s/node_type", device) && type[0] == '4')
		return VB_WIRE_IWARP;
	read_line(layer, sizeof(layer), DEVICES "/%s/ports/%u/link_layer", device, port);
	if (!strcmp(layer, "InfiniBand"))
		return VB_WIRE_INFINIBAND;
	return strcmp(layer, "Ethernet") ? VB_WIRE_UNKNOWN : VB_WIRE_ROCE_V2;
}

static void read_port(const char *device, struct vb_port *port)
{
	char line[64];
	double gbps = 0;

	port->wire = read_wire(device, port->number);
	/* "4: ACTIVE"; our numbers are the kernel's. */
	read_line(line, sizeof(line), DEVICES "/%s/ports/%u/state", device, port->number);
	if (line[0] >= '1' && line[0] <= '5')
		port->state = (enum vb_port_state)(line[0] - '0');
	read_line(port->rate, sizeof(port->rate), DEVICES "/%s/ports/%u/rate", device,
		  port->number);
	if (sscanf(port->rate, "%lf", &gbps) == 1 && gbps > 0)
		port->rate_mbps = (uint32_t)(gbps * 1000);
	if (read_line(line, sizeof(line), DEVICES "/%s/ports/%u/lid", device, port->number))
		port->lid = (uint16_t)strtoul(line, NULL, 16);
}

static int by_number(const struct dirent **a, const struct dirent **b)
{
	return atoi((*a)->d_name) - atoi((*b)->d_name);
}

static int is_number(const struct dirent *entry)
{
	return atoi(entry->d_name) > 0;
}

static int read_ports(struct vb_device *device)
{
	struct vb_port **end = &device->ports;
	struct dirent **names;
	char path[256];
	int n, rc = 0;

	snprintf(path, sizeof(path), DEVICES "/%s/ports", device->name);
	n = scandir(path, &names, is_number, by_number);
	for (int i = 0; i < n; i++) {
		*end = rc == 0 ? calloc(1, sizeof(**end)) : NULL;
		if (*end) {
			(*end)->number = (unsigned)atoi(names[i]->d_name);
			read_port(device->name, *end);
			end = &(*end)->next;
		} else {
			rc = VB_ERR_NOMEM;
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	return rc;
}

/* ---- What only verbs tells ---- */

static enum vb_wire gid_wire(const struct vb_port *port, uint32_t type)
{
	if (port->wire == VB_WIRE_IWARP || port->wire == VB_WIRE_INFINIBAND)
		return port->wire;
	return type == IBV_GID_TYPE_ROCE_V2 ? VB_WIRE_ROCE_V2 : VB_WIRE_ROCE_V1;
}

static struct vb_gid *make_gid(const struct vb_port *port, const struct ibv_gid_entry *entry)
{
	struct vb_gid *gid = calloc(1, sizeof(*gid));

	if (!gid)
		return NULL;
	gid->index = entry->gid_index;
	gid->wire = gid_wire(port, entry->gid_type);
	memcpy(gid->bytes, entry->gid.raw, sizeof(gid->bytes));
	inet_ntop(AF_INET6, gid->bytes, gid->text, sizeof(gid->text));
	gid->ifindex = entry->ndev_ifindex;
	return gid;
}

/* The number alone may be one of another namespace, so the name must agree. "": it has none in this one. */
static void find_interface(const char *device, const struct ibv_gid_entry *entry, char name[16])
{
	char ours[IF_NAMESIZE], theirs[64];

	name[0] = '\0';
	if (!entry->ndev_ifindex || !if_indextoname(entry->ndev_ifindex, ours))
		return;
	if (!read_line(theirs, sizeof(theirs), DEVICES "/%s/ports/%u/gid_attrs/ndevs/%u", device,
		       entry->port_num, entry->gid_index) ||
	    !strcmp(ours, theirs))
		snprintf(name, 16, "%s", ours);
}

static int add_gids(struct vb_device *device, const struct ibv_gid_entry *entries, ssize_t n)
{
	for (struct vb_port *port = device->ports; port; port = port->next) {
		struct vb_gid **end = &port->gids;

		for (ssize_t i = 0; i < n; i++) {
			if (entries[i].port_num != port->number)
				continue;
			*end = make_gid(port, &entries[i]);
			if (!*end)
				return VB_ERR_NOMEM;
			find_interface(device->name, &entries[i], (*end)->interface);
			end = &(*end)->next;
		}
	}
	return 0;
}

static int read_gids(struct ibv_context *context, struct vb_device *device, size_t room)
{
	struct ibv_gid_entry *entries = calloc(room ? room : 1, sizeof(*entries));
	ssize_t n;
	int rc;

	if (!entries)
		return VB_ERR_NOMEM;
	n = ibv_query_gid_table(context, entries, room, 0);
	if (n < 0)
		verbs_fail(&device->trouble, (int)-n, "ibv_query_gid_table", device->name);
	rc = add_gids(device, entries, n);
	free(entries);
	return rc;
}

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

static int read_by_verbs(struct ibv_context *context, struct vb_device *device)
{
	size_t room = 0;

	for (struct vb_port *port = device->ports; port; port = port->next) {
		struct ibv_port_attr attr = { .state = IBV_PORT_NOP };
		int errnum = ibv_query_port(context, (uint8_t)port->number, &attr);

		if (errnum) {
			verbs_fail(&device->trouble, errnum, "ibv_query_port", device->name);
			continue;
		}
		port->mtu_bytes = mtu_bytes(attr.active_mtu);
		port->max_mtu_bytes = mtu_bytes(attr.max_mtu);
		port->max_message_bytes = attr.max_msg_sz;
		room += attr.gid_tbl_len > 0 ? (size_t)attr.gid_tbl_len : 0;
	}
	return read_gids(context, device, room);
}

static int read_opened(struct vb_device *device, bool with_abilities)
{
	struct ibv_context *context;
	int rc;

	if (!device->node[0] || access(device->node, R_OK | W_OK) != 0) {
		verbs_fail_node(&device->trouble,
				device->node[0] ? device->node : "/dev/infiniband/uverbs0",
				device->node[0] ? errno : ENOENT);
		return 0;
	}
	if (verbs_device_open_named(device->name, &context, &device->trouble) != 0)
		return 0;
	rc = read_by_verbs(context, device);
	if (rc == 0 && with_abilities)
		verbs_abilities_read(context, device);
	verbs_device_release(context, NULL);
	return rc;
}

/* ---- The list ---- */

static int is_device(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && strlen(entry->d_name) < 64;
}

/* mlx5_10 after mlx5_9. */
static int by_version(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

static struct vb_device *make_device(const char *name)
{
	struct vb_device *device = calloc(1, sizeof(*device));

	if (!device)
		return NULL;
	snprintf(device->name, sizeof(device->name), "%.63s", name);
	find_node(name, device->node, sizeof(device->node));
	find_driver(name, device->driver, sizeof(device->driver));
	read_line(device->firmware, sizeof(device->firmware), DEVICES "/%s/fw_ver", name);
	device->guid = read_guid(name);
	return device;
}

int verbs_devices_read(struct vb_device **devices, bool with_abilities, struct vb_error *err)
{
	struct vb_device **end = devices;
	struct dirent **names = NULL;
	int n = scandir(DEVICES, &names, is_device, by_version), rc = 0;

	*devices = NULL;
	for (int i = 0; i < n; i++) {
		*end = rc == 0 ? make_device(names[i]->d_name) : NULL;
		if (*end && read_ports(*end) == 0 && read_opened(*end, with_abilities) == 0)
			end = &(*end)->next;
		else
			rc = VB_ERR_NOMEM;
		free(names[i]);
	}
	free(names);
	if (rc == 0) {
		verbs_netdevs_read(*devices);
		return 0;
	}
	vb_device_free(*devices);
	*devices = NULL;
	return verbs_fail(err, ENOMEM, "calloc", NULL);
}

/* ---- The proof ---- */

static enum vb__proof try_handle(struct ibv_pd *pd, struct vb_path *path, const struct vb__ip *peer)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = (uint8_t)path->port,
		.grh = { .sgid_index = (uint8_t)path->gid_index, .hop_limit = 64 },
	};
	struct ibv_ah *ah;

	memcpy(attr.grh.dgid.raw, peer->bytes, sizeof(attr.grh.dgid.raw));
	errno = 0;
	ah = ibv_create_ah(pd, &attr);
	if (!ah) {
		snprintf(path->proof, sizeof(path->proof), "%s: %s",
			 errno == ETIMEDOUT
				 ? "nobody answers to the question for its hardware address"
				 : "the device makes no address handle for it",
			 strerror(errno ? errno : EHOSTUNREACH));
		return VB__PROOF_FAILED;
	}
	ibv_destroy_ah(ah);
	snprintf(path->proof, sizeof(path->proof), "the device made an address handle for it");
	return VB__PROOF_GIVEN;
}

enum vb__proof verbs_prove(void *arg, struct vb_path *path, const struct vb__ip *peer)
{
	enum vb__proof proof = VB__PROOF_FAILED;
	struct vb_error err = { .code = VB_OK };
	struct ibv_context *context = NULL;
	struct ibv_pd *pd;

	(void)arg;
	if (path->wire == VB_WIRE_IWARP || path->wire == VB_WIRE_INFINIBAND) {
		snprintf(path->proof, sizeof(path->proof), "not tried: %s",
			 path->wire == VB_WIRE_IWARP
				 ? "iWARP has no address handles"
				 : "only the subnet manager knows the peer's LID");
		return VB__PROOF_NOT_TRIED;
	}
	verbs_device_open_named(path->device, &context, &err);
	pd = context ? ibv_alloc_pd(context) : NULL;
	if (pd)
		proof = try_handle(pd, path, peer);
	else
		snprintf(path->proof, sizeof(path->proof), "%.40s: %.100s",
			 context ? "ibv_alloc_pd" : err.operation,
			 context ? strerror(errno) : err.cause);
	if (pd)
		ibv_dealloc_pd(pd);
	if (context)
		verbs_device_release(context, NULL);
	return proof;
}
