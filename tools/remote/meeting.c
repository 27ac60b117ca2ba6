/* SPDX-License-Identifier: Apache-2.0 */
/* Meetings. What is said on the connection afterwards is not known here. */
#include "remote/meeting.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/trouble.h"
#include "remote/addresses.h"

#define TRY_MS 3000u /* for each address of a host */
#define TRIES 5u     /* so many such times for all of them: a host may have dozens */

int meeting_open(const struct vb_transfer_options *options, const char *bind, struct vb_door **door,
		 struct invitation *invitation, struct vb_error *err)
{
	struct vb_transfer_options with_key = *options;
	int result;

	*invitation = (struct invitation){ 0 };
	if (getrandom(invitation->secret, SECRET_BYTES, 0) != SECRET_BYTES)
		return trouble_errno(err, VB_ERR_SYSTEM, errno, "getrandom", "");
	with_key.key = invitation->secret;
	with_key.key_bytes = SECRET_BYTES;
	with_key.key_is_random = true;
	with_key.connection.listener_is_up = true;
	result = vb_door_open(bind, "0", &with_key, door, err);
	if (result != 0)
		return result;
	invitation->port = (uint16_t)vb_door_port(*door);
	if (!bind)
		addresses_of_host(invitation);
	return 0;
}

/* ---- The side that connects ---- */

__attribute__((format(printf, 2, 3))) static void say(const struct meeting_listener *listener,
						      const char *format, ...)
{
	char text[VB_ERROR_LINE_MAX + 256];
	va_list args;

	if (!listener->say)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	listener->say(listener->arg, text);
}

/* Is another address worth a try? */
static bool may_differ(enum vb_err code)
{
	return code != VB_OK && code != VB_ERR_INTERRUPTED && code != VB_ERR_INVALID &&
	       code != VB_ERR_NOMEM;
}

static void try_address(const struct meeting_listener *listener, const struct address *address,
			const char *port, const struct vb_transfer_options *options,
			struct vb_session **session, struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];

	if (vb_session_connect(address->text, port, options, session, err) == 0)
		say(listener, "connected to %s port %s%s: %s", address->text, port,
		    address->rdma    ? ", an RDMA device's"
		    : address->asked ? ", where ssh has come to"
				     : "",
		    vb_session_description(*session));
	else if (err->code != VB_ERR_INTERRUPTED)
		say(listener, "no way by %s: %s", address->text,
		    vb_error_format(err, line, sizeof(line)));
}

static uint64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The first failure is told: it is of the most likely address. */
static void try_addresses(const struct meeting_listener *listener,
			  const struct invitation *invitation,
			  const struct vb_transfer_options *options, struct vb_session **session,
			  struct vb_error *first)
{
	uint64_t until = now_ms() + (uint64_t)TRIES * options->connection.connect_timeout_ms;
	char port[8];

	snprintf(port, sizeof(port), "%u", invitation->port);
	for (size_t i = 0; i < invitation->address_count && !*session && now_ms() < until; i++) {
		struct vb_error err = { .code = VB_OK };

		try_address(listener, &invitation->addresses[i], port, options, session, &err);
		if (first->code == VB_OK || !may_differ(err.code))
			*first = err;
		if (err.code != VB_OK && !may_differ(err.code))
			return;
	}
}

int meeting_connect(const struct vb_transfer_options *given, const struct invitation *to,
		    const struct meeting_listener *listener, struct vb_session **session,
		    struct vb_error *err)
{
	struct vb_transfer_options options = *given;
	struct invitation invitation = *to;

	err->code = VB_OK;
	options.key = invitation.secret;
	options.key_bytes = SECRET_BYTES;
	options.key_is_random = true;
	if (!options.connection.connect_timeout_ms)
		options.connection.connect_timeout_ms = TRY_MS;
	addresses_sort(&invitation, options.connection.family,
		       options.connection.fabric == VB_FABRIC_OFI ? addresses_nowhere
								  : addresses_route_is_rdma);
	if (!invitation.address_count)
		trouble_say(err, VB_ERR_UNREACHABLE, "the host has no address of that kind");
	try_addresses(listener, &invitation, &options, session, err);
	/* Where RDMA does not get through, TCP may. */
	if (!*session && options.connection.fabric == VB_FABRIC_AUTO && may_differ(err->code) &&
	    addresses_any_rdma()) {
		options.connection.fabric = VB_FABRIC_OFI;
		options.connection.device = NULL;
		try_addresses(listener, &invitation, &options, session, err);
	}
	if (*session)
		err->code = VB_OK;
	/* It does listen, for it has told us the port. */
	snprintf(err->hint, sizeof(err->hint), "a firewall may be in the way");
	explicit_bzero(&invitation, sizeof(invitation));
	return err->code;
}
