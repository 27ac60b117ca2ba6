/* SPDX-License-Identifier: Apache-2.0 */
/* rdinfo: the RDMA devices of this machine, the way to a host, and what is wrong with either. */
#include <stdio.h>
#include <string.h>
#include <verbatim/device.h>

#include "common/console.h"
#include "common/outcome.h"
#include "info/device_view.h"
#include "info/doctor.h"
#include "info/inquiry.h"
#include "info/path_view.h"
#include "info/trial.h"

static int complain(const struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];

	console_error("%s", outcome_error_line(err, line));
	return INQUIRY_FAILED;
}

static int end(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	console_error("cannot write to stdout");
	return INQUIRY_FAILED;
}

static int show_devices(const struct inquiry *inquiry)
{
	struct vb_device *devices;
	struct vb_error err;

	if (vb_device_list(&devices, &err) != 0)
		return complain(&err);
	if (inquiry->json)
		device_view_json(devices, stdout);
	else
		device_view_print(devices, stdout);
	vb_device_free(devices);
	return end(0);
}

static int show_path(const struct inquiry *inquiry)
{
	struct vb_path *paths;
	struct vb_error err;
	int code = FINDING_PROBLEM;

	if (vb_path_find(inquiry->host, &inquiry->options, &paths, &err) != 0)
		return complain(&err);
	if (inquiry->json)
		path_view_json(paths, stdout);
	else
		path_view_print(paths, stdout);
	for (const struct vb_path *p = paths; p; p = p->next)
		if (p->fabric)
			code = FINDING_OK;
	vb_path_free(paths);
	return end(code);
}

/* Over verbs only where the kernel's route has a device: else its absence was the finding. */
static void try_fabric(struct findings *findings, const struct inquiry *inquiry,
		       const struct vb_path *paths, enum vb_fabric fabric)
{
	struct trial trial = { .fabric = fabric, .pointless = true };
	char port[8];

	if (inquiry->options.fabric && inquiry->options.fabric != fabric)
		return;
	snprintf(port, sizeof(port), "%.7s", inquiry->port);
	if (fabric == VB_FABRIC_OFI)
		trial_next_port(inquiry->port, port);
	for (const struct vb_path *p = paths; p; p = p->next) {
		if (fabric == VB_FABRIC_OFI || p->fabric == VB_FABRIC_VERBS)
			trial.pointless = false;
		else
			snprintf(trial.reason, sizeof(trial.reason), "%s", p->why);
	}
	if (!trial.pointless)
		trial_run(&trial, inquiry->host, port, &inquiry->options);
	trial_judge(findings, &trial, inquiry->host);
}

static void try_path(struct findings *findings, const struct inquiry *inquiry)
{
	struct vb_path *paths;
	struct vb_error err;

	if (vb_path_find(inquiry->host, &inquiry->options, &paths, &err) != 0) {
		findings_add(findings, FINDING_PROBLEM, "path", err.hint, "%s %s: %s",
			     err.operation, err.object, err.cause);
		return;
	}
	for (const struct vb_path *p = paths; p; p = p->next)
		findings_add(findings, p->fabric ? FINDING_OK : FINDING_PROBLEM, "path", NULL,
			     "to %s%s%s%s: %s", p->peer,
			     p->fabric == VB_FABRIC_VERBS ? " by verbs on "
			     : p->fabric		  ? " by ofi"
							  : "",
			     p->device, p->proven ? ", proven" : "", p->why);
	try_fabric(findings, inquiry, paths, VB_FABRIC_VERBS);
	try_fabric(findings, inquiry, paths, VB_FABRIC_OFI);
	vb_path_free(paths);
}

static int check(const struct inquiry *inquiry)
{
	static struct facts facts;
	struct findings findings = { .first = NULL };
	int code;

	facts_gather(&facts, inquiry->options.fabric);
	doctor_judge(&findings, &facts);
	facts_free(&facts);
	if (inquiry->host)
		try_path(&findings, inquiry);
	code = (int)findings_worst(&findings);
	if (findings_print(&findings, inquiry->json) != 0) {
		console_error("cannot write to stdout");
		code = INQUIRY_FAILED;
	}
	findings_free(&findings);
	return code;
}

int main(int argc, char **argv)
{
	struct inquiry inquiry;
	int code;

	console_open("rdinfo");
	code = inquiry_parse(&inquiry, argc, argv);
	if (code >= 0)
		return code;
	console_set(inquiry.verbosity, inquiry.json);
	if (inquiry.serve)
		return trial_serve(inquiry.bind, inquiry.port, &inquiry.options, inquiry.json) == 0
			       ? 0
			       : INQUIRY_FAILED;
	if (inquiry.check)
		return check(&inquiry);
	return inquiry.host ? show_path(&inquiry) : show_devices(&inquiry);
}
