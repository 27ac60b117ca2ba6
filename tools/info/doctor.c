/* SPDX-License-Identifier: Apache-2.0 */
/* Judges what concerns the machine as a whole; what concerns a link is in doctor_links.c. */
#include "info/doctor.h"

#include <stdio.h>
#include <string.h>

#include "info/doctor_links.h"

static const char memlock_remedy[] =
	"`* - memlock unlimited` in /etc/security/limits.d/rdma.conf and log in again; "
	"LimitMEMLOCK=infinity in a systemd unit; --cap-add IPC_LOCK for a container";

static void judge_versions(struct findings *to, const struct facts *f)
{
	const char *ofi = f->providers ? f->providers->version : "";

	findings_add(to, FINDING_OK, "versions", NULL, "verbatim %s, Linux %s%s%s%s%s%s%s",
		     f->version, f->kernel, f->libibverbs[0] ? ", libibverbs " : "", f->libibverbs,
		     f->librdmacm[0] ? ", librdmacm " : "", f->librdmacm,
		     ofi[0] ? ", libfabric " : "", ofi);
}

static bool has_usable(const struct facts *f)
{
	const struct vb_device *d = f->devices;

	while (d && d->trouble.code)
		d = d->next;
	return d;
}

/* Why CAP_IPC_LOCK does not help, though it was given; or might have been: users of a host have it in that set as well. */
static const char *useless_capability(const struct facts *f)
{
	if (f->ipc_lock_inside)
		return "; in a user namespace (a rootless container) CAP_IPC_LOCK does nothing: "
		       "raise the limit of the user who starts it, or start it as root";
	if (f->ipc_lock_bounded && !f->root)
		return "; CAP_IPC_LOCK is in this process's bounding set only, which does "
		       "nothing: start it by `verbatim COMMAND` in Verbatim's image, without "
		       "no_new_privs (allowPrivilegeEscalation: false), or as root, or with "
		       "--ulimit memlock=-1";
	return "";
}

static void judge_limit(struct findings *to, const struct facts *f)
{
	bool least = f->memlock >= DOCTOR_LEAST_BYTES;
	char remedy[480];

	snprintf(remedy, sizeof(remedy), "%s%s%s", memlock_remedy,
		 f->memlock_hard > f->memlock ? "; for now: `ulimit -l hard`" : "",
		 useless_capability(f));
	findings_add(to, least ? FINDING_WARNING : FINDING_PROBLEM, "memlock", remedy,
		     "%llu KiB of memory may be pinned; a channel needs about %llu MiB%s",
		     (unsigned long long)f->memlock / 1024,
		     (unsigned long long)(DOCTOR_LEAST_BYTES >> 20),
		     least ? ", large windows and several rails need more" : "");
}

static void judge_memlock(struct findings *to, const struct facts *f)
{
	if (f->memlock == FACTS_NO_LIMIT)
		findings_add(to, FINDING_OK, "memlock", NULL, "memory may be pinned without limit");
	else if (f->ipc_lock)
		findings_add(to, FINDING_OK, "memlock", NULL,
			     "CAP_IPC_LOCK is effective, so the limit of %llu KiB does not hold",
			     (unsigned long long)f->memlock / 1024);
	else if (f->memlock >= DOCTOR_GOOD_BYTES)
		findings_add(to, FINDING_OK, "memlock", NULL, "%llu MiB of memory may be pinned",
			     (unsigned long long)(f->memlock >> 20));
	else
		judge_limit(to, f);
}

/* ---- Nodes ---- */

static const char *denied_by(const struct node_fact *node)
{
	return node->ruled_out ? ", but this container's device rules do not have it" : "";
}

static void denied_remedy(const struct node_fact *node, const char *path, char *to, size_t size)
{
	if (node->ruled_out)
		snprintf(to, size, "--device %s, not a volume", path);
	else
		snprintf(to, size,
			 "add the user to the group %s (--group-add for a container), or let the "
			 "udev rule give MODE=\"0666\" (rdma-core's does)",
			 node->group);
}

static void judge_node(struct findings *to, const struct node_fact *node, const char *topic,
		       const char *path, const char *if_missing)
{
	char remedy[300];

	if (!node->there) {
		findings_add(to, FINDING_PROBLEM, topic, if_missing, "there is no %s", path);
		return;
	}
	if (node->allowed) {
		findings_add(to, FINDING_OK, topic, NULL, "%s may be read and written", path);
		return;
	}
	denied_remedy(node, path, remedy, sizeof(remedy));
	findings_add(to, FINDING_PROBLEM, topic, remedy, "%s is denied: it is %s:%s %04o%s", path,
		     node->owner, node->group, node->mode, denied_by(node));
}

static void judge_device(struct findings *to, const struct vb_device *d,
			 const struct node_fact *node)
{
	char topic[24], remedy[200];

	snprintf(topic, sizeof(topic), "%.23s", d->name);
	snprintf(remedy, sizeof(remedy), "`modprobe ib_uverbs`; in a container: --device %s",
		 d->node[0] ? d->node : "/dev/infiniband/uverbs0");
	if (!node->there || !node->allowed)
		judge_node(to, node, topic, d->node[0] ? d->node : "node below /dev/infiniband",
			   remedy);
	else if (d->trouble.code)
		findings_add(to, FINDING_PROBLEM, topic, d->trouble.hint, "%s: %s",
			     d->trouble.operation, d->trouble.cause);
	else
		findings_add(to, FINDING_OK, topic, NULL, "%s opens%s%s", d->node,
			     d->firmware[0] ? ", firmware " : "", d->firmware);
}

static void judge_devices(struct findings *to, const struct facts *f)
{
	unsigned i = 0;

	for (const struct vb_device *d = f->devices; d && i < FACTS_LINKS_MAX; d = d->next)
		judge_device(to, d, &f->nodes[i++]);
}

static void judge_rdma_cm(struct findings *to, const struct facts *f)
{
	static const char remedy[] =
		"`modprobe rdma_ucm`; in a container: --device /dev/infiniband/rdma_cm";

	static const char without[] = "RoCE v2 and InfiniBand connect by TCP instead; iWARP "
				      "cannot connect, and datagrams cannot be used";
	static const char path[] = "/dev/infiniband/rdma_cm";
	char allow[200];

	if (f->rdma_cm.there && f->rdma_cm.allowed) {
		judge_node(to, &f->rdma_cm, "rdma_cm", path, remedy);
		return;
	}
	if (!f->rdma_cm.there) {
		findings_add(to, FINDING_WARNING, "rdma_cm", remedy, "there is no %s: %s", path,
			     without);
		return;
	}
	denied_remedy(&f->rdma_cm, path, allow, sizeof(allow));
	findings_add(to, FINDING_WARNING, "rdma_cm", allow, "%s is denied: it is %s:%s %04o%s; %s",
		     path, f->rdma_cm.owner, f->rdma_cm.group, f->rdma_cm.mode,
		     denied_by(&f->rdma_cm), without);
}

static void judge_netns(struct findings *to, const struct facts *f)
{
	if (f->netns == NETNS_SHARED)
		findings_add(to, FINDING_OK, "namespaces", NULL,
			     "shared: every network namespace sees all devices");
	else if (f->netns == NETNS_EXCLUSIVE)
		findings_add(to, FINDING_OK, "namespaces", NULL,
			     "exclusive: a device is in one network namespace only");
}

/* ---- What does not need a device ---- */

static void judge_huge_pages(struct findings *to, const struct facts *f)
{
	if (f->huge_total)
		findings_add(to, FINDING_OK, "huge pages", NULL,
			     "%llu of %llu KiB reserved, %llu free; transparent ones: %s",
			     (unsigned long long)f->huge_total, (unsigned long long)f->huge_kib,
			     (unsigned long long)f->huge_free,
			     f->transparent[0] ? f->transparent : "unknown");
	else
		findings_add(to, FINDING_OK, "huge pages", NULL,
			     "none reserved, and none needed; transparent ones: %s",
			     f->transparent[0] ? f->transparent : "unknown");
}

static void judge_providers(struct findings *to, const struct facts *f)
{
	bool tcp = false;
	char names[300] = "";
	size_t at = 0;

	if (f->providers_failed.code) {
		findings_add(to, has_usable(f) ? FINDING_WARNING : FINDING_PROBLEM, "libfabric",
			     f->providers_failed.hint, "%s", f->providers_failed.cause);
		return;
	}
	for (const struct vb_provider *p = f->providers; p; p = p->next) {
		tcp = tcp || !strcmp(p->name, "tcp");
		if (at < sizeof(names))
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
					       at ? ", " : "", p->name);
	}
	if (tcp)
		findings_add(to, FINDING_OK, "libfabric", NULL, "providers: %s", names);
	else
		findings_add(to, FINDING_PROBLEM, "libfabric",
			     "install a libfabric that was built with it (Debian: libfabric1); "
			     "see FI_PROVIDER in the environment",
			     "it has no tcp provider%s%s", at ? "; it has: " : "", names);
}

static void judge_absence(struct findings *to, const struct facts *f)
{
	if (f->fabric == VB_FABRIC_OFI)
		return;
	if (f->elsewhere && !f->devices_failed.code) {
		findings_add(to, f->fabric ? FINDING_PROBLEM : FINDING_WARNING, "devices",
			     "--network host for a container; or give it a device of its own: "
			     "`rdma dev set DEVICE netns PID`",
			     "this machine's RDMA devices are in other network namespaces%s",
			     f->fabric ? "" : ": transfers run over libfabric tcp");
		return;
	}
	if (f->fabric == VB_FABRIC_VERBS && !f->devices_failed.code)
		findings_add(to, FINDING_PROBLEM, "devices",
			     "`rdma link add rxe0 type rxe netdev IF` makes one without hardware",
			     "no RDMA device, and verbs was asked for");
	else if (f->devices_failed.code)
		findings_add(to, FINDING_PROBLEM, "devices", f->devices_failed.hint, "%s: %s",
			     f->devices_failed.operation, f->devices_failed.cause);
	else
		findings_add(to, FINDING_OK, "devices", NULL,
			     "no RDMA device: transfers run over libfabric tcp");
}

void doctor_judge(struct findings *to, const struct facts *f)
{
	judge_versions(to, f);
	if (f->devices) {
		judge_memlock(to, f);
		judge_devices(to, f);
		judge_rdma_cm(to, f);
		judge_netns(to, f);
		for (unsigned i = 0; i < f->link_count; i++)
			doctor_judge_link(to, &f->links[i]);
	} else {
		judge_absence(to, f);
	}
	if (f->fabric != VB_FABRIC_VERBS)
		judge_providers(to, f);
	judge_huge_pages(to, f);
}
