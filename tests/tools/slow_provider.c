/* SPDX-License-Identifier: Apache-2.0 */
/* A provider of libfabric's that takes long to start, and then is none. */
#include <fcntl.h>
#include <unistd.h>

struct fi_provider *fi_prov_ini(void);

struct fi_provider *fi_prov_ini(void)
{
	close(open("provider.starts", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	sleep(20);
	return NULL;
}
