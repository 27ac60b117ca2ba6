/* SPDX-License-Identifier: Apache-2.0 */
/* From a path, in words and numbers, to what ibv_modify_qp wants. */
#include "fabric/verbs/verbs_way.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fabric/discovery.h"
#include "fabric/verbs/verbs.h"

static enum ibv_mtu mtu_of(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && (256u << mtu) <= bytes)
		mtu++;
	return mtu;
}

/* The highest bit tells full members from limited ones: both are of the partition. */
static int find_pkey(struct verbs_way *way, uint16_t pkey, struct vb_error *err)
{
	struct ibv_context *context = verbs_open_named(way->device, err);
	__be16 found;
	int rc = VB_ERR_NO_DEVICE;

	if (!context)
		return rc;
	for (int i = 0; rc && ibv_query_pkey(context, way->port, i, &found) == 0; i++) {
		if ((ntohs(found) & 0x7fff) != (pkey & 0x7fff))
			continue;
		way->pkey_index = (uint16_t)i;
		rc = 0;
	}
	ibv_close_device(context);
	if (rc)
		verbs_fail(err, ENOENT, "find partition of", way->interface);
	return rc;
}

static int fail_no_way(struct vb_error *err, const struct vb__address *peer,
		       const struct vb_path *path)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_NO_DEVICE,
				     .operation = "find the way to",
				     .object = peer->text,
				     .cause = path->why,
				     .hint = "`rdinfo HOST` tells what was considered",
			     });
}

int verbs_way_find(struct verbs_way *way, const struct vb__address *peer,
		   const struct vb__address *source, const char *device, struct vb_error *err)
{
	const struct vb__path_query query = {
		.peer = peer,
		.source = source,
		.fabric = VB_FABRIC_VERBS,
		.device = device,
	};
	struct vb_path *path;
	int rc = vb__path_to(&query, &path, err);

	if (rc)
		return rc;
	*way = (struct verbs_way){
		.port = (uint8_t)path->port,
		.wire = path->wire,
		.gid_index = (uint8_t)path->gid_index,
		.lid = path->lid,
		.mtu = mtu_of(path->mtu_bytes),
	};
	snprintf(way->device, sizeof(way->device), "%s", path->device);
	snprintf(way->interface, sizeof(way->interface), "%s", path->interface);
	snprintf(way->why, sizeof(way->why), "%s", path->why);
	inet_pton(AF_INET6, path->gid, way->gid.raw);
	if (path->fabric != VB_FABRIC_VERBS)
		rc = fail_no_way(err, peer, path);
	else if (path->wire == VB_WIRE_INFINIBAND)
		rc = find_pkey(way, path->pkey, err);
	vb_path_free(path);
	return rc;
}
