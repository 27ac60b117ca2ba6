/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which port of which device an address of ours belongs to. Discovery knows:
 * it is the way to ourselves. Here it becomes what a queue pair wants. Discovery
 * looks at all devices, so what it found is kept, for as long as the device says
 * the same of it: those who connect try again and again, and callers come in crowds.
 */
#include "fabric/verbs/verbs_port.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "fabric/discovery.h"
#include "fabric/route.h"
#include "wire/wireup.h"

#define FINDS_KEPT 8u
#define INFINIBAND_MS 1000u
#define PKEY_NUMBER 0x7fffu /* the bit above tells full members of a partition from limited ones */

static int fail_find(struct vb_error *err, const struct vb__address *local, const char *only,
		     const char *why)
{
	char cause[300];

	snprintf(cause, sizeof(cause), "no RDMA device%s%s has this address (%.200s)",
		 only[0] ? " named " : "", only, why);
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_NO_DEVICE,
				.operation = "wire up by TCP from",
				.object = local->text,
				.cause = cause,
				.hint = "`rdinfo ADDRESS` tells what was considered; give the "
					"peer's address on the RDMA network, or use the ofi fabric",
			});
}

/* Whether there is something to be wired up, or else why not. */
static bool is_usable(const struct vb_path *path, char *why, size_t size)
{
	if (path->fabric != VB_FABRIC_VERBS)
		snprintf(why, size, "%s", path->why);
	else if (path->wire == VB_WIRE_IWARP)
		snprintf(why, size, "%s: iWARP, which rdma_cm alone can wire up", path->device);
	else if (path->gid_index > UINT8_MAX)
		snprintf(why, size,
			 "%s: the index of its GID is above 255, which no queue pair can name",
			 path->device);
	else
		return true;
	return false;
}

static const char *device_name(const struct verbs_port *port)
{
	return ibv_get_device_name(port->context->device);
}

static int fail_partition(struct vb_error *err, const struct vb_path *path)
{
	char object[100];

	snprintf(object, sizeof(object), "0x%04x on %.64s port %u", path->pkey, path->device,
		 path->port);
	return verbs_fail(err, ENOENT, "find partition", object);
}

/*
 * The index of the partition that the IPoIB interface is in, as a full member if the port is one there. Ethernet has
 * one partition, at index 0.
 */
static int find_pkey(struct verbs_port *port, const struct vb_path *path, struct vb_error *err)
{
	int found = -1;
	__be16 pkey;

	if (path->wire != VB_WIRE_INFINIBAND)
		return 0;
	for (int i = 0; i <= UINT16_MAX; i++) {
		if (ibv_query_pkey(port->context, port->number, i, &pkey) != 0)
			break;
		if (ntohs(pkey) == path->pkey ||
		    (found < 0 && !((ntohs(pkey) ^ path->pkey) & PKEY_NUMBER)))
			found = i;
		if (ntohs(pkey) == path->pkey)
			break;
	}
	if (found < 0)
		return fail_partition(err, path);
	port->pkey_index = (uint16_t)found;
	return 0;
}

static int fill_in(struct verbs_port *port, const struct vb_path *path, const struct vb__log *log,
		   struct vb_error *err)
{
	int rc = verbs_device_open_named(path->device, &port->context, err);

	if (rc)
		return rc;
	port->number = (uint8_t)path->port;
	port->gid_index = (uint8_t)path->gid_index;
	port->link = path->wire == VB_WIRE_INFINIBAND ? VB__WIREUP_INFINIBAND : VB__WIREUP_ETHERNET;
	port->lid = path->lid;
	port->mtu_bytes = (uint16_t)path->mtu_bytes;
	inet_pton(AF_INET6, path->gid, port->gid);
	rc = find_pkey(port, path, err);
	if (rc) {
		verbs_device_release(port->context, log);
		port->context = NULL;
	}
	return rc;
}

/* ---- What was found before ---- */

struct find {
	struct vb__ip ip;
	unsigned scope;
	char only[64];
	char device[64];	/* empty: there is nothing here */
	struct verbs_port port; /* without a context */
	struct ibv_gid_entry gid;
	uint64_t until_ns;
};

static pthread_mutex_t finds_lock = PTHREAD_MUTEX_INITIALIZER;
static struct find finds[FINDS_KEPT];
static unsigned finds_next;

/* Lock held. */
static struct find *find_of(const struct vb__address *local, const char *only)
{
	struct vb__ip ip = vb__ip_of(local);

	for (unsigned i = 0; i < FINDS_KEPT; i++)
		if (finds[i].device[0] && !memcmp(&finds[i].ip, &ip, sizeof(ip)) &&
		    finds[i].scope == vb__scope_of(local) && !strcmp(finds[i].only, only))
			return &finds[i];
	return NULL;
}

static bool recall(const struct vb__address *local, const char *only, struct find *to)
{
	const struct find *found;

	pthread_mutex_lock(&finds_lock);
	found = find_of(local, only);
	if (found)
		*to = *found;
	pthread_mutex_unlock(&finds_lock);
	return found && vb__now_ns() < to->until_ns;
}

void verbs_ports_forget(void)
{
	pthread_mutex_lock(&finds_lock);
	memset(finds, 0, sizeof(finds));
	pthread_mutex_unlock(&finds_lock);
}

static const char not_kept[] = "what was found is looked for again the next time";
static const char not_again[] = "what was found before is looked for again";

static bool read_gid(const struct verbs_port *port, const struct vb__log *log, const char *then,
		     struct ibv_gid_entry *gid)
{
	int rc = ibv_query_gid_ex(port->context, port->number, port->gid_index, gid, 0);

	return !verbs_note(log, rc, "ibv_query_gid_ex", device_name(port), then) &&
	       !memcmp(&gid->gid, port->gid, sizeof(port->gid));
}

/*
 * A GID of RoCE is an address of its interface and goes with it, so its entry in the table tells all. On InfiniBand the
 * address may move to another interface unseen: there it holds for a moment only.
 */
static void keep(const struct vb__address *local, const char *only, const struct vb__log *log,
		 const struct verbs_port *port)
{
	struct find new = { .ip = vb__ip_of(local),
			    .scope = vb__scope_of(local),
			    .port = *port,
			    .until_ns = UINT64_MAX };
	struct find *to;

	if (!read_gid(port, log, not_kept, &new.gid))
		return;
	if (port->link == VB__WIREUP_INFINIBAND)
		new.until_ns = vb__now_ns() + vb__ms(INFINIBAND_MS);
	new.port.context = NULL;
	snprintf(new.only, sizeof(new.only), "%.63s", only);
	snprintf(new.device, sizeof(new.device), "%.63s", device_name(port));
	pthread_mutex_lock(&finds_lock);
	to = find_of(local, only);
	if (!to)
		to = &finds[finds_next++ % FINDS_KEPT];
	*to = new;
	pthread_mutex_unlock(&finds_lock);
}

/* Whether the device still says so; what may change without a change of the GID is filled in anew. */
static bool is_still_so(const struct find *old, const struct vb__log *log, struct verbs_port *port)
{
	struct ibv_port_attr attr;
	struct ibv_gid_entry gid;

	if (!read_gid(port, log, not_again, &gid) || gid.gid_type != old->gid.gid_type ||
	    gid.ndev_ifindex != old->gid.ndev_ifindex ||
	    verbs_note(log, ibv_query_port(port->context, port->number, &attr), "ibv_query_port",
		       device_name(port), not_again) ||
	    attr.state != IBV_PORT_ACTIVE)
		return false;
	port->lid = attr.lid;
	port->mtu_bytes = (uint16_t)(128u << attr.active_mtu);
	return true;
}

static bool find_again(const struct vb__address *local, const char *only, const struct vb__log *log,
		       struct verbs_port *port)
{
	struct vb_error why = { .code = VB_OK };
	struct find old;

	if (!recall(local, only, &old))
		return false;
	*port = old.port;
	if (verbs_device_open_named(old.device, &port->context, &why) != 0) {
		vb__log(log, VB_LOG_DEBUG, "%s on %s: %s; %s", why.operation, old.device, why.cause,
			not_again);
		return false;
	}
	if (is_still_so(&old, log, port))
		return true;
	verbs_device_release(port->context, log);
	return false;
}

static int discover(const struct vb__address *local, const char *only, const struct vb__log *log,
		    struct verbs_port *port, struct vb_error *err)
{
	const struct vb__path_query query = { .peer = local, .device = only };
	struct vb_path *path;
	char why[320];
	int rc = vb__path_to(&query, &path, err);

	if (rc)
		return rc;
	if (is_usable(path, why, sizeof(why))) {
		rc = fill_in(port, path, log, err);
		if (rc == 0)
			keep(local, only, log, port);
	} else {
		rc = fail_find(err, local, only, why);
	}
	vb_path_free(path);
	return rc;
}

int verbs_port_find(const struct vb__address *local, const char *only, const struct vb__log *log,
		    struct verbs_port *port, struct vb_error *err)
{
	if (find_again(local, only, log, port))
		return 0;
	*port = (struct verbs_port){ .context = NULL };
	return discover(local, only, log, port, err);
}
