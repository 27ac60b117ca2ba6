/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: name look-up, words, and which way the kernel would go. */
#include "fabric/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/failure.h"

static socklen_t length_of(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* An IPv4 peer of a listener that serves both is shown as such. */
static const char *without_mapping(const char *host)
{
	return strncmp(host, "::ffff:", 7) == 0 && strchr(host, '.') ? host + 7 : host;
}

static void put_in_words(struct vb__address *a)
{
	char host[64] = "?";

	getnameinfo((struct sockaddr *)&a->sa, a->len, host, sizeof(host), NULL, 0, NI_NUMERICHOST);
	snprintf(a->text, sizeof(a->text), "%s port %u", without_mapping(host),
		 vb__address_port(a));
}

void vb__address_from(struct vb__address *a, const struct sockaddr *sa)
{
	*a = (struct vb__address){ .len = length_of(sa) };
	memcpy(&a->sa, sa, a->len);
	put_in_words(a);
}

uint16_t vb__address_port(const struct vb__address *a)
{
	if (a->sa.ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&a->sa)->sin6_port);
	return ntohs(((const struct sockaddr_in *)&a->sa)->sin_port);
}

void vb__address_set_port(struct vb__address *a, uint16_t port)
{
	if (a->sa.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&a->sa)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)&a->sa)->sin_port = htons(port);
	put_in_words(a);
}

/* Every address as one of IPv6, so that IPv4 and its form inside IPv6 are the same. */
static struct in6_addr as_six(const struct sockaddr *sa)
{
	struct in6_addr six = { .s6_addr = { [10] = 0xff, [11] = 0xff } };

	if (sa->sa_family == AF_INET6)
		return ((const struct sockaddr_in6 *)sa)->sin6_addr;
	memcpy(&six.s6_addr[12], &((const struct sockaddr_in *)sa)->sin_addr, 4);
	return six;
}

/* Link-local addresses mean something only together with their interface. */
static uint32_t scope_of(const struct sockaddr *sa)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)sa;

	if (sa->sa_family != AF_INET6 || !IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr))
		return 0;
	return six->sin6_scope_id;
}

void vb__address_gid(const struct sockaddr *sa, uint8_t gid[16])
{
	struct in6_addr six = as_six(sa);

	memcpy(gid, &six, sizeof(six));
}

bool vb__address_same_host(const struct sockaddr *a, const struct sockaddr *b)
{
	struct in6_addr six_a = as_six(a), six_b = as_six(b);

	return !memcmp(&six_a, &six_b, sizeof(six_a)) && scope_of(a) == scope_of(b);
}

static in_port_t raw_port(const struct sockaddr *a)
{
	return a->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)a)->sin6_port
					: ((const struct sockaddr_in *)a)->sin_port;
}

bool vb__address_equal(const struct sockaddr *a, const struct sockaddr *b)
{
	return raw_port(a) == raw_port(b) && vb__address_same_host(a, b);
}

static int fail_resolve(struct vb_error *err, int gai, const char *host, const char *port)
{
	char object[100];
	bool port_is_bad = gai == EAI_SERVICE;

	snprintf(object, sizeof(object), "%s", port_is_bad || !host ? port : host);
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_RESOLVE,
				     .native_kind = VB_NATIVE_GAI,
				     .native = gai,
				     .operation = "resolve",
				     .object = object,
				     .hint = port_is_bad ? "give a port number from 1 to 65535"
							 : "check the name's spelling, DNS and "
							   "/etc/hosts, or give the address itself",
			     });
}

/* A name, or a number of 16 bits: getaddrinfo cuts larger ones down and goes on. */
static bool port_makes_sense(const char *port)
{
	char *end;
	unsigned long number = strtoul(port, &end, 10);

	return *port && (*end || number <= UINT16_MAX);
}

/* "[::1]" is ::1, as people write it who also write a port behind it. */
static const char *without_brackets(const char *host, char *copy, size_t room)
{
	size_t len = host ? strlen(host) : 0;

	if (len < 3 || host[0] != '[' || host[len - 1] != ']' || len - 2 >= room)
		return host;
	memcpy(copy, host + 1, len - 2);
	copy[len - 2] = '\0';
	return copy;
}

/* Of a link-local one there may be one on every link. */
static bool lacks_interface(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET6 &&
	       IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)sa)->sin6_addr) &&
	       !scope_of(sa);
}

static int fail_without_interface(struct vb_error *err, const char *host)
{
	int rc = vb__fail(err, &(struct vb__failure){
				       .code = VB_ERR_INVALID,
				       .operation = "resolve",
				       .object = host,
				       .cause = "a link-local address needs its interface",
			       });

	vb__error_hint(err, "name the interface: %s%%eth0", host);
	return rc;
}

int vb__address_resolve(const char *host, const char *port, int family,
			struct vb__address found[VB__ADDRESSES_MAX], struct vb_error *err)
{
	struct addrinfo hints = {
		.ai_family = family,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = host ? 0 : AI_PASSIVE,
	};
	struct addrinfo *list, *ai;
	char plain[NI_MAXHOST];
	bool lacking = false;
	int n = 0, rc;

	if (!port)
		return vb__fail_invalid(err, "resolve", "no port was given");
	if (!port_makes_sense(port))
		return fail_resolve(err, EAI_SERVICE, host, port);
	host = without_brackets(host, plain, sizeof(plain));
	rc = getaddrinfo(host, port, &hints, &list);
	if (rc)
		return fail_resolve(err, rc, host, port);
	for (ai = list; ai && n < VB__ADDRESSES_MAX; ai = ai->ai_next)
		if (lacks_interface(ai->ai_addr))
			lacking = true;
		else if (ai->ai_family == AF_INET || ai->ai_family == AF_INET6)
			vb__address_from(&found[n++], ai->ai_addr);
	freeaddrinfo(list);
	if (!n && lacking)
		return fail_without_interface(err, host);
	return n ? n : fail_resolve(err, EAI_NONAME, host, port);
}

/* Connecting a UDP socket sends nothing, but makes the kernel choose a source address. */
static int source_address(const struct vb__address *peer, struct sockaddr_storage *source,
			  struct vb_error *err)
{
	socklen_t len = sizeof(*source);
	int fd = socket(peer->sa.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int rc = 0;

	if (fd < 0)
		return vb__fail_errno(err, errno, "socket", peer->text);
	if (connect(fd, (const struct sockaddr *)&peer->sa, peer->len) != 0)
		rc = vb__fail_errno(err, errno, "look for a route to", peer->text);
	else if (getsockname(fd, (struct sockaddr *)source, &len) != 0)
		rc = vb__fail_errno(err, errno, "getsockname", peer->text);
	close(fd);
	return rc;
}

int vb__address_source(const struct vb__address *peer, struct vb__address *source,
		       struct vb_error *err)
{
	struct sockaddr_storage sa = { .ss_family = AF_UNSPEC };
	int rc = source_address(peer, &sa, err);

	if (rc)
		return rc;
	vb__address_from(source, (struct sockaddr *)&sa);
	vb__address_set_port(source, 0);
	return 0;
}

static bool is_internet(const struct sockaddr *sa)
{
	return sa->sa_family == AF_INET || sa->sa_family == AF_INET6;
}

bool vb__address_egress(const struct vb__address *peer, char name[16])
{
	struct sockaddr_storage source = { .ss_family = AF_UNSPEC };
	struct ifaddrs *list, *i;
	bool found = false;

	if (source_address(peer, &source, NULL) != 0 || getifaddrs(&list) != 0)
		return false;
	for (i = list; i && !found; i = i->ifa_next) {
		if (!i->ifa_addr || !is_internet(i->ifa_addr) ||
		    !vb__address_same_host(i->ifa_addr, (struct sockaddr *)&source))
			continue;
		snprintf(name, IF_NAMESIZE, "%s", i->ifa_name);
		found = true;
	}
	freeifaddrs(list);
	return found;
}
