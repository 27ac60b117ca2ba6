/* SPDX-License-Identifier: Apache-2.0 */
/* Datagram endpoints: opened at the right address and fabric, described, closed. */
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dgram/dgram_state.h"
#include "fabric/fabric.h"

#define DEFAULT_RECEIVES 256u
#define RECEIVES_MAX 65536u
#define LOCAL_MAX 32

/* ---- Where ---- */

static bool is_for_others(const struct ifaddrs *i, int family)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)i->ifa_addr;
	int own = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;

	if ((own != AF_INET && own != AF_INET6) || (family != AF_UNSPEC && own != family))
		return false;
	return !(i->ifa_flags & IFF_LOOPBACK) &&
	       (own == AF_INET || !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr));
}

/* The addresses of this machine, with the port that `any` has. */
static int local_addresses(const struct vb__address *any, int family, struct vb__address *found)
{
	struct ifaddrs *list, *i;
	int n = 0;

	if (getifaddrs(&list) != 0)
		return 0;
	for (i = list; i && n < LOCAL_MAX; i = i->ifa_next) {
		if (!is_for_others(i, family))
			continue;
		vb__address_from(&found[n], i->ifa_addr);
		vb__address_set_port(&found[n++], vb__address_port(any));
	}
	freeifaddrs(list);
	return n;
}

static int find_addresses(const char *host, const char *port, int family,
			  struct vb__address found[LOCAL_MAX], struct vb_error *err)
{
	struct vb__address named[VB__ADDRESSES_MAX];
	int n = vb__address_resolve(host, port, family, named, err);

	if (n < 0)
		return n;
	if (!host)
		return local_addresses(&named[0], family, found);
	memcpy(found, named, (size_t)n * sizeof(*found));
	return n;
}

/* ---- Opening ---- */

static int fail_nowhere(struct vb_error *err)
{
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_NO_DEVICE,
				.operation = "datagrams at",
				.object = "any address",
				.cause = "no device that has datagrams has an address here",
				.hint = "see `rdma link` and `ip addr`; without hardware: `rdma "
					"link add rxe0 type rxe netdev INTERFACE`, or the ofi "
					"fabric",
			});
}

/* Nothing is wrong: just not by this fabric, or not at this address. */
static bool is_elsewhere(enum vb_err code)
{
	return code == VB_ERR_NO_DEVICE || code == VB_ERR_UNSUPPORTED || code == VB_ERR_ACCESS;
}

/* The first address that the fabric has; if there is none, what was worth most to know. */
static int open_over(struct vb_dgram *dgram, const struct vb__dgrams *fabric,
		     const struct vb__dg_attr *attr, const struct vb__address *at, int count,
		     struct vb_error *why)
{
	for (int i = 0; i < count; i++) {
		struct vb_error here = { .code = VB_OK };

		if (vb__dg_open(fabric, attr, &at[i], &dgram->dg, &here) == 0) {
			dgram->family = at[i].sa.ss_family;
			return 0;
		}
		if (why->code == VB_OK || why->code == VB_ERR_NO_DEVICE)
			*why = here;
		if (!is_elsewhere(here.code))
			break;
	}
	return why->code;
}

static int open_somewhere(struct vb_dgram *dgram, bool anywhere, const struct vb__address *at,
			  int count, unsigned receives, struct vb_error *err)
{
	struct vb__dg_attr attr = { .receives = receives, .settings = &dgram->settings };
	struct vb_error why = { .code = VB_OK };
	enum vb_fabric wanted = dgram->settings.fabric;
	bool tried = false;

	for (const struct vb__dgrams *const *f = vb__dgrams_all; *f; f++) {
		if (wanted != VB_FABRIC_AUTO && wanted != (*f)->id)
			continue;
		tried = true;
		if (open_over(dgram, *f, &attr, at, count, &why) == 0)
			return 0;
		if (why.code != VB_OK && !is_elsewhere(why.code))
			break;
	}
	if (!tried)
		return vb__fabric_fail_missing(wanted, "datagrams", err);
	if (why.code == VB_OK || (anywhere && why.code == VB_ERR_NO_DEVICE))
		return fail_nowhere(err);
	return vb__fail_again(err, &why);
}

static void introduce(struct vb_dgram *dgram)
{
	struct vb__dg *dg = dgram->dg;
	struct vb__greeting greeting = {
		.version = VB__DATAGRAM_VERSION,
		.numbered = dgram->numbered,
		.max_bytes = dg->max_bytes > UINT16_MAX ? UINT16_MAX : (uint16_t)dg->max_bytes,
	};

	dg->lock = &dgram->lock;
	vb__greeting_encode(dg->greeting, &greeting);
	dgram->max_bytes = dg->max_bytes - (dgram->numbered ? VB__NUMBER_BYTES : 0);
	snprintf(dgram->description, sizeof(dgram->description),
		 "%s on %s at %s, datagrams of up to %zu bytes", dg->fabric->name, dg->device,
		 dg->address, dgram->max_bytes);
	vb__log(&dgram->settings.log, VB_LOG_INFO, "%s", dgram->description);
}

static int set_up(struct vb_dgram *dgram, const char *host, const char *port,
		  const struct vb_dgram_options *options, struct vb_error *err)
{
	unsigned receives = options && options->receives ? options->receives : DEFAULT_RECEIVES;
	struct vb__address at[LOCAL_MAX];
	int n, rc;

	dgram->numbered = options && options->numbered;
	if (receives > RECEIVES_MAX)
		return vb__fail_invalid(err, "receives", "%u is over the limit of %u", receives,
					RECEIVES_MAX);
	rc = vb__settings_from(&dgram->settings, options ? &options->connection : NULL, err);
	if (rc)
		return rc;
	n = find_addresses(host, port, dgram->settings.family, at, err);
	if (n < 0)
		return n;
	rc = open_somewhere(dgram, !host, at, n, receives, err);
	if (rc == 0)
		introduce(dgram);
	return rc;
}

int vb_dgram_open(const char *host, const char *port, const struct vb_dgram_options *options,
		  struct vb_dgram **out, struct vb_error *err)
{
	struct vb_dgram *dgram = calloc(1, sizeof(*dgram));
	int rc;

	vb__error_clear(err);
	*out = NULL;
	if (!dgram)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	pthread_mutex_init(&dgram->lock, NULL);
	rc = set_up(dgram, host, port, options, err);
	if (rc) {
		vb_dgram_close(dgram);
		return rc;
	}
	*out = dgram;
	return 0;
}

void vb_dgram_close(struct vb_dgram *dgram)
{
	if (!dgram)
		return;
	while (dgram->named)
		vb_dgram_peer_close(dgram->named);
	vb__dg_close(dgram->dg);
	pthread_mutex_destroy(&dgram->lock);
	free(dgram);
}

/* ---- Looking at it ---- */

size_t vb_dgram_max(const struct vb_dgram *dgram)
{
	return dgram->max_bytes;
}

int vb_dgram_port(const struct vb_dgram *dgram)
{
	return dgram->dg->port;
}

const char *vb_dgram_description(const struct vb_dgram *dgram)
{
	return dgram->description;
}

int vb_dgram_fd(const struct vb_dgram *dgram)
{
	return dgram->dg->wait_fd;
}

void vb_dgram_counters(struct vb_dgram *dgram, struct vb_dgram_counters *counters)
{
	pthread_mutex_lock(&dgram->lock);
	*counters = dgram->counters;
	pthread_mutex_unlock(&dgram->lock);
}
