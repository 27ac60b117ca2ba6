/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/ofi/ofi_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/failure.h"
#include "fabric/ofi/ofi_guard.h"
#include "fabric/ofi/ofi_imports.h"

#define SONAME "libfabric.so.1"

struct ofi_library ofi_library;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct vb_error why_not;

/* libinfinipath, which Debian's libfabric brings along, takes these over. They are the program's. */
static void *open_without_handlers(void)
{
	static const int taken[] = { SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGINT, SIGTERM };
	enum {
		COUNT = sizeof(taken) / sizeof(taken[0])
	};
	struct sigaction before[COUNT];
	void *handle;

	for (unsigned i = 0; i < COUNT; i++)
		sigaction(taken[i], NULL, &before[i]);
	handle = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	for (unsigned i = 0; i < COUNT; i++)
		sigaction(taken[i], &before[i], NULL);
	return handle;
}

/*
 * libfabric's own verbs provider, which we have no use for, looks through the names of all the kernel's functions when
 * libfabric is first asked for something, line by line and twice: a third of what it takes to start. To it there are none.
 */
static FILE *open_unless_symbols(const char *path, const char *mode)
{
	return fopen(strcmp(path, "/proc/kallsyms") == 0 ? "/dev/null" : path, mode);
}

static void spare_it_the_symbols(void *handle)
{
	static const struct ofi_import import = { "fopen", (ofi_function)open_unless_symbols };

	/* Where it cannot be spared them it reads them, and all is well, too. */
	(void)ofi_imports_replace(handle, &import, 1);
}

/* POSIX has function pointers go through void pointers, ISO C has not heard of it. */
static bool find(void *handle, const char *name, void *function)
{
	*(void **)function = dlsym(handle, name);
	return *(void **)function;
}

/*
 * libfabric 2's tcp provider takes and clears 16 MiB for each domain, for messages that nobody has posted a receive for.
 * Our endpoints have none: there they wait in the socket. It can be told so by its environment only, which it reads when it
 * is first asked for something.
 */
static void take_little_memory(const struct ofi_library *library)
{
	if (FI_MAJOR(library->version()) >= 2)
		setenv("FI_TCP_MAX_RX_SIZE", "0", 0);
}

static void load(void)
{
	struct ofi_library found;
	void *handle = open_without_handlers(); /* it stays for good */
	const char *said;

	if (handle && find(handle, "fi_getinfo", &found.getinfo) &&
	    find(handle, "fi_freeinfo", &found.freeinfo) &&
	    find(handle, "fi_dupinfo", &found.dupinfo) &&
	    find(handle, "fi_fabric", &found.fabric) &&
	    find(handle, "fi_strerror", &found.strerror) &&
	    find(handle, "fi_version", &found.version)) {
		take_little_memory(&found);
		spare_it_the_symbols(handle);
		found.guarded = ofi_guard_install(handle);
		ofi_library = found;
		return;
	}
	said = dlerror();
	vb__fail(&why_not,
		 &(struct vb__failure){
			 .code = VB_ERR_UNSUPPORTED,
			 .operation = "load",
			 .object = SONAME,
			 .cause = said ? said : "it is not what was expected",
			 .hint = "install libfabric (Debian: libfabric1), or use --fabric verbs",
		 });
}

int ofi_library_load(struct vb_error *err)
{
	pthread_once(&once, load);
	return why_not.code ? vb__fail_again(err, &why_not) : 0;
}
