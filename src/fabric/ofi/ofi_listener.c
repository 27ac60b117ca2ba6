/* SPDX-License-Identifier: Apache-2.0 */
/* Listening over libfabric. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/ofi/ofi.h"
#include "fabric/ofi/ofi_guard.h"

/* How often it is looked who waits before it is closed: there may be no end of them. */
#define LAST_LOOKS 256

static int start(struct ofi_pep *pep, const struct vb__settings *settings,
		 const struct vb__address *at, struct vb_error *err)
{
	struct sockaddr_storage sa;
	size_t len = sizeof(sa);
	struct vb__address bound;
	int rc;

	rc = ofi_library.fabric(pep->info->fabric_attr, &pep->fabric, NULL);
	if (rc)
		return ofi_fail(err, rc, "fi_fabric", pep->info->fabric_attr->name);
	rc = ofi_eq_open(pep->fabric, &pep->eq, &pep->base.wait_fd, err);
	if (rc)
		return rc;
	ofi_guard_begin(pep->info, settings->family == AF_INET6);
	rc = fi_passive_ep(pep->fabric, pep->info, &pep->pep, NULL);
	if (rc == 0)
		rc = fi_pep_bind(pep->pep, &pep->eq->fid, 0);
	if (rc == 0)
		rc = fi_listen(pep->pep);
	ofi_guard_end();
	if (rc)
		return ofi_fail(err, rc, "listen on", at->text);
	rc = fi_getname(&pep->pep->fid, &sa, &len);
	if (rc)
		return ofi_fail(err, rc, "fi_getname", at->text);
	vb__address_from(&bound, (struct sockaddr *)&sa);
	pep->base.port = vb__address_port(&bound);
	ofi_callers_start(pep, (struct sockaddr *)&sa);
	return 0;
}

int ofi_listen(const struct vb__settings *settings, const struct vb__address *at,
	       struct vb__pep **out, struct vb_error *err)
{
	struct ofi_pep *pep = calloc(1, sizeof(*pep));
	int rc;

	if (!pep)
		return vb__fail_errno(err, FI_ENOMEM, "calloc", NULL);
	pep->base.fabric = &vb__ofi_fabric;
	pep->log = settings->log;
	rc = ofi_info_get(settings, NULL, at, &pep->info, err);
	if (rc == 0)
		rc = start(pep, settings, at, err);
	if (rc) {
		ofi_pep_close(&pep->base);
		return rc;
	}
	snprintf(pep->base.device, sizeof(pep->base.device), "%s",
		 pep->info->fabric_attr->prov_name);
	if (!ofi_library.guarded)
		vb__log(&pep->log, VB_LOG_WARNING,
			"libfabric cannot be guarded here: whoever connects may crash it");
	*out = &pep->base;
	return 0;
}

void ofi_turn_away(const struct vb__log *log, struct fid_pep *pep, const struct fi_info *info,
		   const struct vb__private_data *words)
{
	ofi_note(log, fi_reject(pep, info->handle, words->data, words->len), "fi_reject",
		 "a request", "the peer is not told");
}

/* The provider `sockets` leaves its own name out of a request. */
static bool name_provider(const struct ofi_pep *pep, struct fi_info *info)
{
	char **name = &info->fabric_attr->prov_name;

	if (!*name)
		*name = strdup(pep->info->fabric_attr->prov_name);
	return *name;
}

static int make_request(struct ofi_pep *pep, const struct fi_eq_cm_entry *entry, size_t data_len,
			struct vb__request **out, struct vb_error *err)
{
	struct ofi_request *request = calloc(1, sizeof(*request));
	const struct vb__private_data none = { .len = 0 };

	if (!request || !name_provider(pep, entry->info)) {
		free(request);
		ofi_turn_away(&pep->log, pep->pep, entry->info, &none);
		ofi_library.freeinfo(entry->info);
		return vb__fail_errno(err, FI_ENOMEM, "calloc", NULL);
	}
	request->base.fabric = &vb__ofi_fabric;
	request->info = entry->info;
	request->pep = pep->pep;
	request->log = pep->log;
	if (data_len > sizeof(request->base.data))
		data_len = sizeof(request->base.data);
	memcpy(request->base.data, entry->data, data_len);
	request->base.data_len = data_len;
	*out = &request->base;
	return 1;
}

int ofi_next_request(struct vb__pep *base, struct vb__request **request, struct vb_error *err)
{
	struct ofi_pep *pep = (struct ofi_pep *)base;
	struct fi_eq_err_entry error;
	union {
		struct fi_eq_cm_entry entry;
		uint8_t room[sizeof(struct fi_eq_cm_entry) + 256];
	} u;
	uint32_t event;
	ssize_t n;

	for (;;) {
		errno = 0; /* of an end the provider believes an EAGAIN that is left there */
		n = fi_eq_read(pep->eq, &event, &u, sizeof(u), 0);
		if (n == -FI_EAGAIN) {
			ofi_callers_look_after(pep);
			return 0;
		}
		if (n == -FI_EAVAIL) {
			error = (struct fi_eq_err_entry){ .err_data_size = 0 };
			n = fi_eq_readerr(pep->eq, &error, 0);
			ofi_note(&pep->log, n < 0 ? n : error.err, "fi_eq_read", "listener",
				 "somebody's attempt failed half-way: his loss, not ours");
		} else if (n < 0) {
			return ofi_fail(err, n, "fi_eq_read", "listener");
		} else if (event == FI_CONNREQ && n >= (ssize_t)sizeof(u.entry)) {
			return make_request(pep, &u.entry, (size_t)n - sizeof(u.entry), request,
					    err);
		}
	}
}

int ofi_pep_arm(struct vb__pep *base)
{
	struct ofi_pep *pep = (struct ofi_pep *)base;
	struct fid *fid = &pep->eq->fid;

	return fi_trywait(pep->fabric, &fid, 1) != FI_SUCCESS;
}

void ofi_reject(struct vb__request *base, const void *data, size_t len)
{
	struct ofi_request *request = (struct ofi_request *)base;
	const struct vb__private_data words = { data, len };

	ofi_turn_away(&request->log, request->pep, request->info, &words);
	ofi_library.freeinfo(request->info);
	free(request);
}

static bool has_more(struct vb__pep *base)
{
	struct pollfd p = { .fd = base->wait_fd, .events = POLLIN };

	return ofi_pep_arm(base) != 0 || poll(&p, 1, 0) > 0;
}

/*
 * The provider forgets those who wait and keeps their sockets: they would wait on, and the descriptors be lost. It
 * takes several looks until one whose socket is accepted is a request.
 */
static void turn_all_away(struct vb__pep *base)
{
	int rc = 0;

	for (int i = 0; i < LAST_LOOKS && rc >= 0 && (rc > 0 || has_more(base)); i++) {
		struct vb__request *request = NULL;

		rc = ofi_next_request(base, &request, NULL);
		if (request)
			ofi_reject(request, NULL, 0);
	}
}

void ofi_pep_close(struct vb__pep *base)
{
	struct ofi_pep *pep = (struct ofi_pep *)base;

	if (pep->base.port)
		turn_all_away(base);
	ofi_close(&pep->log, pep->pep ? &pep->pep->fid : NULL, "listener");
	ofi_close(&pep->log, pep->eq ? &pep->eq->fid : NULL, "event queue");
	ofi_close(&pep->log, pep->fabric ? &pep->fabric->fid : NULL, "fabric");
	if (pep->info) /* else libfabric may not be there */
		ofi_library.freeinfo(pep->info);
	free(pep);
}
