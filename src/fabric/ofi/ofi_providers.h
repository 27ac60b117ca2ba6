/* SPDX-License-Identifier: Apache-2.0 */
/* What libfabric offers on this machine. */
#ifndef VB_FABRIC_OFI_PROVIDERS_H
#define VB_FABRIC_OFI_PROVIDERS_H

#include <verbatim/device.h>

/* Providers with connected endpoints, each once. */
int ofi_providers_read(struct vb_provider **providers, struct vb_error *err);

#endif
