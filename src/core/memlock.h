/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory may be pinned. */
#ifndef VB_CORE_MEMLOCK_H
#define VB_CORE_MEMLOCK_H

#include <stdint.h>

/* In bytes; UINT64_MAX: as much as there is. */
uint64_t vb__memlock_limit(void);

#endif
