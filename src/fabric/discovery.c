/* SPDX-License-Identifier: Apache-2.0 */
/* Takes the picture of the system by which path.c decides, and hands out what comes of it. */
#include "fabric/discovery.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/failure.h"
#include "core/settings.h"
#include "fabric/fabric.h"
#include "fabric/path.h"
#include "fabric/route.h"

#ifdef VB_HAVE_VERBS
#include "fabric/verbs/verbs_system.h"
#define PROVE verbs_prove
static int read_devices(struct vb_device **devices, bool with_abilities, struct vb_error *err)
{
	return verbs_devices_read(devices, with_abilities, err);
}
#else
#define PROVE NULL
static int read_devices(struct vb_device **devices, bool with_abilities, struct vb_error *err)
{
	(void)with_abilities;
	(void)err;
	*devices = NULL;
	return 0;
}
#endif

#ifdef VB_HAVE_OFI
#include "fabric/ofi/ofi_providers.h"
static int read_providers(struct vb_provider **providers, struct vb_error *err)
{
	return ofi_providers_read(providers, err);
}
#else
static int read_providers(struct vb_provider **providers, struct vb_error *err)
{
	(void)providers;
	return vb__fabric_fail_missing(VB_FABRIC_OFI, "list", err);
}
#endif

/* ---- The picture ---- */

struct picture {
	struct vb_device *devices;
	struct vb__interface *interfaces;
	struct vb__own_address *addresses;
};

static void forget(struct picture *picture)
{
	vb_device_free(picture->devices);
	vb__interfaces_free(picture->interfaces);
	vb__own_addresses_free(picture->addresses);
}

static bool has_gid(const struct vb_port *port, const uint8_t bytes[16])
{
	const struct vb_gid *gid = port->gids;

	while (gid && memcmp(gid->bytes, bytes, 16) != 0)
		gid = gid->next;
	return gid;
}

/* The kernel does not say which interface is an InfiniBand port's; the IPoIB address does. Children come later. */
static void find_ipoib(struct vb_port *port, const struct vb__interface *interfaces)
{
	for (const struct vb__interface *i = interfaces; i && !port->interface[0]; i = i->next) {
		if (i->kind != VB__INTERFACE_IPOIB || i->hw_len != 20 || !has_gid(port, i->hw + 4))
			continue;
		port->ifindex = i->index;
		snprintf(port->interface, sizeof(port->interface), "%s", i->name);
	}
}

static int look(struct picture *picture, bool with_abilities, struct vb_error *err)
{
	int rc, errnum;

	*picture = (struct picture){ .devices = NULL };
	rc = read_devices(&picture->devices, with_abilities, err);
	if (rc)
		return rc;
	errnum = vb__interfaces_read(&picture->interfaces);
	if (!errnum)
		errnum = vb__own_addresses_read(&picture->addresses);
	if (errnum)
		return vb__fail_errno(err, errnum, "netlink", "interfaces and addresses");
	for (struct vb_device *d = picture->devices; d; d = d->next)
		for (struct vb_port *p = d->ports; p; p = p->next)
			if (p->wire == VB_WIRE_INFINIBAND)
				find_ipoib(p, picture->interfaces);
	return 0;
}

/* ---- Devices ---- */

int vb_device_list(struct vb_device **devices, struct vb_error *err)
{
	struct picture picture;
	int rc;

	vb__error_clear(err);
	*devices = NULL;
	rc = look(&picture, true, err);
	if (rc == 0) {
		*devices = picture.devices;
		picture.devices = NULL;
	}
	forget(&picture);
	return rc;
}

static void free_gids(struct vb_gid *gid)
{
	while (gid) {
		struct vb_gid *next = gid->next;

		free(gid);
		gid = next;
	}
}

void vb_device_free(struct vb_device *device)
{
	while (device) {
		struct vb_device *next = device->next;

		while (device->ports) {
			struct vb_port *port = device->ports;

			device->ports = port->next;
			free_gids(port->gids);
			free(port);
		}
		free(device);
		device = next;
	}
}

const char *vb_port_state_name(enum vb_port_state state)
{
	static const char *const names[] = {
		[VB_PORT_UNKNOWN] = "unknown",
		[VB_PORT_DOWN] = "down",
		[VB_PORT_INIT] = "initializing: no subnet manager has configured it",
		[VB_PORT_ARMED] = "armed: the subnet manager has not finished",
		[VB_PORT_ACTIVE] = "active",
		[VB_PORT_DEFERRED] = "active, deferred",
	};

	return (unsigned)state < sizeof(names) / sizeof(names[0]) ? names[state] : "unknown";
}

const char *vb_wire_name(enum vb_wire wire)
{
	static const char *const names[] = {
		[VB_WIRE_UNKNOWN] = "unknown", [VB_WIRE_INFINIBAND] = "InfiniBand",
		[VB_WIRE_ROCE_V1] = "RoCE v1", [VB_WIRE_ROCE_V2] = "RoCE v2",
		[VB_WIRE_IWARP] = "iWARP",
	};

	return (unsigned)wire < sizeof(names) / sizeof(names[0]) ? names[wire] : "unknown";
}

/* ---- Providers ---- */

int vb_provider_list(struct vb_provider **providers, struct vb_error *err)
{
	int rc;

	vb__error_clear(err);
	*providers = NULL;
	rc = read_providers(providers, err);
	if (rc) {
		vb_provider_free(*providers);
		*providers = NULL;
	}
	return rc;
}

void vb_provider_free(struct vb_provider *provider)
{
	while (provider) {
		struct vb_provider *next = provider->next;

		free(provider);
		provider = next;
	}
}

/* ---- Paths ---- */

static bool is_built(enum vb_fabric fabric)
{
	for (const struct vb__fabric *const *f = vb__fabrics; *f; f++)
		if ((*f)->id == fabric)
			return true;
	return false;
}

static int find_in(const struct picture *picture, const struct vb__path_query *query,
		   struct vb_path **path, struct vb_error *err)
{
	const struct vb__system system = {
		.devices = picture->devices,
		.interfaces = picture->interfaces,
		.addresses = picture->addresses,
		.verbs = is_built(VB_FABRIC_VERBS),
		.ofi = is_built(VB_FABRIC_OFI),
	};
	struct vb__wish wish = {
		.peer = vb__ip_of(query->peer),
		.scope = vb__scope_of(query->peer),
		.fabric = query->fabric,
		.device = query->device ? query->device : "",
	};
	struct vb_path *new = calloc(1, sizeof(*new));

	if (new) {
		vb__route_ask(&wish.route, query->peer, query->source);
		if (vb__path_choose(new, &system, &wish, query->prove ? PROVE : NULL, NULL) == 0) {
			*path = new;
			return 0;
		}
	}
	vb_path_free(new);
	vb__fail_errno(err, ENOMEM, "calloc", NULL);
	return VB_ERR_NOMEM;
}

int vb__path_to(const struct vb__path_query *query, struct vb_path **path, struct vb_error *err)
{
	struct picture picture;
	int rc = look(&picture, false, err);

	*path = NULL;
	if (rc == 0)
		rc = find_in(&picture, query, path, err);
	forget(&picture);
	return rc;
}

/* The source that was asked for, of the family that the peer's address has. */
static int find_source(const struct vb__settings *settings, const struct vb__address *peer,
		       struct vb__address *source, struct vb_error *err)
{
	struct vb__address found[VB__ADDRESSES_MAX];
	int n = vb__address_resolve(settings->source, "0", peer->sa.ss_family, found, err);

	if (n < 0)
		return n;
	*source = found[0];
	return 0;
}

static int find_all(const struct vb__settings *settings, const struct vb__address *addresses, int n,
		    struct vb_path **paths, struct vb_error *err)
{
	struct picture picture;
	struct vb__address source;
	struct vb_path *path = NULL;
	int rc = look(&picture, false, err);

	for (int i = 0; rc == 0 && i < n; i++) {
		struct vb__path_query query = {
			.peer = &addresses[i],
			.fabric = settings->fabric,
			.device = settings->device,
			.prove = true,
		};

		if (settings->source[0]) {
			rc = find_source(settings, &addresses[i], &source, err);
			query.source = &source;
		}
		if (rc == 0)
			rc = find_in(&picture, &query, &path, err);
		if (rc == 0) {
			*paths = path;
			paths = &path->next;
		}
	}
	forget(&picture);
	return rc;
}

int vb_path_find(const char *host, const struct vb_options *options, struct vb_path **paths,
		 struct vb_error *err)
{
	struct vb__address addresses[VB__ADDRESSES_MAX] = { { .len = 0 } };
	struct vb__settings settings;
	int rc;

	vb__error_clear(err);
	*paths = NULL;
	if (!host)
		return vb__fail_invalid(err, "find the way to", "no host was given");
	rc = vb__settings_from(&settings, options, err);
	if (rc == 0)
		rc = vb__address_resolve(host, "1", settings.family, addresses, err);
	if (rc < 0)
		return rc;
	rc = find_all(&settings, addresses, rc, paths, err);
	if (rc) {
		vb_path_free(*paths);
		*paths = NULL;
	}
	return rc;
}

void vb_path_free(struct vb_path *path)
{
	while (path) {
		struct vb_path *next = path->next;

		while (path->candidates) {
			struct vb_candidate *candidate = path->candidates;

			path->candidates = candidate->next;
			free(candidate);
		}
		free(path);
		path = next;
	}
}
