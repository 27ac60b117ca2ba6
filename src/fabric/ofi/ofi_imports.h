/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between a loaded library and functions that it takes from others. */
#ifndef VB_FABRIC_OFI_IMPORTS_H
#define VB_FABRIC_OFI_IMPORTS_H

#include <stdbool.h>
#include <stddef.h>

typedef void (*ofi_function)(void);

struct ofi_import {
	const char *name;
	ofi_function instead;
};

/*
 * From now on the library (of dlopen) calls these instead; other libraries and the program do not.
 * All or nothing: false, and nothing has changed, if it does not import one of them, or may not be
 * changed. At most 16.
 */
bool ofi_imports_replace(void *library, const struct ofi_import *imports, unsigned count);

#endif
