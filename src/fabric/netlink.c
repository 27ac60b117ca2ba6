/* SPDX-License-Identifier: Apache-2.0 */
/* Netlink, as much as is needed to ask. What the kernel says is read within its bounds all the same. */
#include "fabric/netlink.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES (64u << 10) /* the kernel's dumps come in pieces of half that at most */
#define ANSWER_SECONDS 5

void vb__nl_begin(struct vb__nl_request *r, uint16_t type, uint16_t flags, const void *fixed,
		  size_t len)
{
	*r = (struct vb__nl_request){
		.header = { .nlmsg_type = type,
			    .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
			    .nlmsg_len = (uint32_t)NLMSG_LENGTH(len),
			    .nlmsg_seq = 1 },
	};
	if (len)
		memcpy(r->body, fixed, len);
}

/* The caller's requests are small and known; one that were too large would stay as it is. */
void vb__nl_add(struct vb__nl_request *r, uint16_t type, const void *value, size_t len)
{
	struct nlattr attribute = { .nla_len = (uint16_t)(NLA_HDRLEN + len), .nla_type = type };
	size_t at = NLMSG_ALIGN(r->header.nlmsg_len) - NLMSG_HDRLEN;

	if (at + NLA_ALIGN(attribute.nla_len) > sizeof(r->body))
		return;
	memcpy(r->body + at, &attribute, sizeof(attribute));
	memcpy(r->body + at + NLA_HDRLEN, value, len);
	r->header.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + at + NLA_ALIGN(attribute.nla_len));
}

/* Hands the messages out. 1 at the end of the answer, 0 if more may come, negative: an errno. */
static int take(uint8_t *bytes, size_t len, bool dump,
		void (*each)(void *arg, const struct nlmsghdr *message), void *arg)
{
	for (struct nlmsghdr *m = (struct nlmsghdr *)(void *)bytes; NLMSG_OK(m, len);
	     m = NLMSG_NEXT(m, len)) {
		if (m->nlmsg_type == NLMSG_ERROR)
			return m->nlmsg_len >= NLMSG_LENGTH(sizeof(int)) &&
					       *(const int *)NLMSG_DATA(m)
				       ? *(const int *)NLMSG_DATA(m)
				       : 1;
		if (m->nlmsg_type == NLMSG_DONE)
			return 1;
		each(arg, m);
		if (!dump)
			return 1;
	}
	return 0;
}

static int converse(int fd, struct vb__nl_request *request,
		    void (*each)(void *arg, const struct nlmsghdr *message), void *arg)
{
	bool dump = request->header.nlmsg_flags & NLM_F_DUMP;
	uint8_t *answer = malloc(ANSWER_BYTES);
	int rc = answer ? 0 : -ENOMEM;

	if (rc == 0 && send(fd, request, request->header.nlmsg_len, 0) < 0)
		rc = -errno;
	while (rc == 0) {
		ssize_t n = recv(fd, answer, ANSWER_BYTES, 0);

		if (n < 0 && errno != EINTR)
			rc = -errno;
		else if (n >= 0)
			rc = take(answer, (size_t)n, dump, each, arg);
	}
	free(answer);
	return rc < 0 ? -rc : 0;
}

int vb__nl_ask(int protocol, struct vb__nl_request *request,
	       void (*each)(void *arg, const struct nlmsghdr *message), void *arg)
{
	struct timeval patience = { .tv_sec = ANSWER_SECONDS };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	int errnum;

	if (fd < 0)
		return errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0)
		errnum = errno;
	else
		errnum = converse(fd, request, each, arg);
	close(fd);
	return errnum;
}

/* Later ones of a type win, as nobody sends two. */
static void sort_out(const uint8_t *at, size_t len, const struct nlattr **attributes,
		     unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		attributes[i] = NULL;
	while (len >= NLA_HDRLEN) {
		const struct nlattr *a = (const struct nlattr *)(const void *)at;
		unsigned type = a->nla_type & NLA_TYPE_MASK;
		size_t step;

		if (a->nla_len < NLA_HDRLEN || a->nla_len > len)
			return;
		if (type < count)
			attributes[type] = a;
		step = (size_t)NLA_ALIGN(a->nla_len);
		if (step >= len)
			return;
		at += step;
		len -= step;
	}
}

void vb__nl_attributes(const struct nlmsghdr *m, size_t fixed, const struct nlattr **attributes,
		       unsigned count)
{
	size_t skip = NLMSG_ALIGN(fixed), len = m->nlmsg_len - NLMSG_HDRLEN;

	sort_out((const uint8_t *)m + NLMSG_HDRLEN + skip, len > skip ? len - skip : 0, attributes,
		 count);
}

void vb__nl_nested(const struct nlattr *within, const struct nlattr **attributes, unsigned count)
{
	sort_out(within ? vb__nl_value(within) : NULL, vb__nl_len(within), attributes, count);
}

const void *vb__nl_value(const struct nlattr *a)
{
	return (const uint8_t *)a + NLA_HDRLEN;
}

size_t vb__nl_len(const struct nlattr *a)
{
	return a ? (size_t)a->nla_len - NLA_HDRLEN : 0;
}

static bool read_number(const struct nlattr *a, void *to, size_t len)
{
	if (vb__nl_len(a) < len)
		return false;
	memcpy(to, vb__nl_value(a), len);
	return true;
}

uint32_t vb__nl_u32(const struct nlattr *a)
{
	uint32_t value;

	return read_number(a, &value, sizeof(value)) ? value : 0;
}

uint16_t vb__nl_u16(const struct nlattr *a)
{
	uint16_t value;

	return read_number(a, &value, sizeof(value)) ? value : 0;
}

uint8_t vb__nl_u8(const struct nlattr *a)
{
	uint8_t value;

	return read_number(a, &value, sizeof(value)) ? value : 0;
}

void vb__nl_text(const struct nlattr *a, char *to, size_t size)
{
	size_t len = vb__nl_len(a);

	if (len >= size)
		len = size - 1;
	if (len)
		memcpy(to, vb__nl_value(a), len);
	to[len] = '\0';
}
