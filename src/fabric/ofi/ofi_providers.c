/* SPDX-License-Identifier: Apache-2.0 */
/* The providers that have what an endpoint of ours needs at the least: connections, messages and one-sided memory. */
#include "fabric/ofi/ofi_providers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/ofi/ofi.h"

static bool is_listed(const struct vb_provider *list, const char *name)
{
	while (list && strcmp(list->name, name) != 0)
		list = list->next;
	return list;
}

static int add_all(struct vb_provider **providers, const struct fi_info *info)
{
	uint32_t version = ofi_library.version();
	struct vb_provider **end = providers;

	for (; info; info = info->next) {
		const char *name = info->fabric_attr->prov_name;

		if (!name || is_listed(*providers, name))
			continue;
		*end = calloc(1, sizeof(**end));
		if (!*end)
			return -FI_ENOMEM;
		snprintf((*end)->name, sizeof((*end)->name), "%s", name);
		snprintf((*end)->version, sizeof((*end)->version), "%u.%u", FI_MAJOR(version),
			 FI_MINOR(version));
		end = &(*end)->next;
	}
	return 0;
}

int ofi_providers_read(struct vb_provider **providers, struct vb_error *err)
{
	struct fi_info *hints, *info = NULL;
	int rc = ofi_library_load(err);

	if (rc)
		return rc;
	hints = ofi_library.dupinfo(NULL);
	if (!hints)
		return ofi_fail(err, FI_ENOMEM, "fi_dupinfo", NULL);
	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG | FI_RMA;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED |
				      FI_MR_PROV_KEY;
	rc = ofi_library.getinfo(VB__OFI_API, NULL, NULL, 0, hints, &info);
	ofi_library.freeinfo(hints);
	if (rc == 0)
		rc = add_all(providers, info);
	if (info)
		ofi_library.freeinfo(info);
	return rc && rc != -FI_ENODATA ? ofi_fail(err, rc, "fi_getinfo", "providers") : 0;
}
