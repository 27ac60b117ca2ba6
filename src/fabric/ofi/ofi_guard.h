/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guards libfabric's tcp provider from its peers. It crashes when they send what it does not expect,
 * and nothing in libfabric lets anybody look at it first. So the calls are intercepted by which
 * libfabric itself, and only libfabric, gets bytes from a socket: on connections of ours it sees none
 * that ofi_frames.h would not let through, and a connection ends at the first of these.
 */
#ifndef VB_FABRIC_OFI_GUARD_H
#define VB_FABRIC_OFI_GUARD_H

#include <rdma/fabric.h>
#include <stdbool.h>

/* Once, for the loaded library. False: it cannot be done, and peers have to be trusted. */
bool ofi_guard_install(void *library);

/*
 * Between the two, the socket on which this thread has libfabric connect or listen is ours, if its provider is
 * known; so is whatever comes to one that listens. The end returns the one that connects; -1: there is none.
 * With `only_six` one of IPv6 that listens does not serve IPv4.
 */
void ofi_guard_begin(const struct fi_info *info, bool only_six);
int ofi_guard_end(void);

/* Has the peer at this socket sent what it must not? Any number will do. */
bool ofi_guard_has_struck(int socket);

/* Has the kernel ended it since the peer's host did not answer? Likewise. */
bool ofi_guard_saw_silence(int socket);

/* Did this socket, when libfabric sent last, not take everything? Likewise. */
bool ofi_guard_is_behind(int socket);

#endif
