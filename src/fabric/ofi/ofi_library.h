/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libfabric itself, loaded when it is first needed: loading takes a fifth of a second where it
 * brings its PSM providers along, which is a lot for a `--help` and for whoever goes by verbs.
 */
#ifndef VB_FABRIC_OFI_LIBRARY_H
#define VB_FABRIC_OFI_LIBRARY_H

#include <rdma/fabric.h>
#include <stdbool.h>

#include <verbatim/error.h>

/* What libfabric exports and we call; the rest goes by the tables of its objects. */
struct ofi_library {
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	const char *(*strerror)(int errnum);
	uint32_t (*version)(void);
	bool guarded; /* see ofi_guard.h */
};

/* Loads it, once. After a failure every call fails, and the pointers are NULL. Any thread. */
int ofi_library_load(struct vb_error *err);

extern struct ofi_library ofi_library;

#endif
