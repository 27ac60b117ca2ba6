/* SPDX-License-Identifier: Apache-2.0 */
/* The records of the wire-up by TCP on their sockets, without ever blocking. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "fabric/verbs/verbs_tcp.h"

int verbs_tcp_hear(int fd, struct verbs_record *record)
{
	while (record->have < sizeof(record->bytes)) {
		ssize_t n = recv(fd, record->bytes + record->have,
				 sizeof(record->bytes) - record->have, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? 0 : -errno;
		if (n == 0)
			return -ECONNRESET;
		record->have += (size_t)n;
	}
	return 1;
}

int verbs_tcp_say(int fd, const struct vb__wireup *record)
{
	uint8_t bytes[VB__WIREUP_BYTES];
	ssize_t n;

	vb__wireup_encode(bytes, record);
	n = send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
	return n == (ssize_t)sizeof(bytes) ? 0 : n < 0 ? errno : EMSGSIZE;
}

void verbs_tcp_refuse(const struct vb__log *log, int fd, uint8_t reason, const void *data,
		      size_t len)
{
	struct vb__wireup no = {
		.kind = VB__WIREUP_REJECT,
		.version = VB__WIREUP_VERSION,
		.reason = reason,
		.data_len = (uint8_t)len,
	};

	if (len)
		memcpy(no.data, data, len);
	verbs_note(log, verbs_tcp_say(fd, &no), "send", "the wire-up's socket",
		   "the peer is not told why it is refused");
}

void verbs_tcp_option(const struct vb__log *log, int fd, int level, int name, int value)
{
	verbs_note(log, setsockopt(fd, level, name, &value, sizeof(value)), "setsockopt",
		   "the wire-up's socket", "it stays as it is");
}

bool verbs_tcp_is_at(const struct vb__wireup *record, const struct vb__address *peer)
{
	uint8_t gid[16];

	if (record->link != VB__WIREUP_ETHERNET)
		return true;
	vb__address_gid((const struct sockaddr *)&peer->sa, gid);
	return !memcmp(record->gid, gid, sizeof(gid));
}

uint16_t verbs_tcp_port(uint16_t port)
{
	unsigned there = port + VB__WIREUP_PORT_OFFSET;

	return there > UINT16_MAX ? 0 : (uint16_t)there;
}
