/* SPDX-License-Identifier: Apache-2.0 */
/* What verbs and rdma_cm say when they fail, in the words of struct vb_error, and what to try. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memlock.h"
#include "fabric/verbs/verbs.h"

static const char *hint_for(enum vb_err code)
{
	switch (code) {
	case VB_ERR_REFUSED:
		return "nobody listens there over RDMA: start the receiving side first and check "
		       "the port";
	case VB_ERR_NO_DEVICE:
		return "the route to this address has no RDMA device: see `rdma link` and `ip "
		       "route get ADDRESS`, or use the ofi fabric";
	case VB_ERR_UNREACHABLE:
		return "check the address, that the peer has an RDMA device on that network "
		       "(`rdma link`), and that UDP port 4791 (RoCE) passes";
	case VB_ERR_LOST:
		return "look at the peer: it was killed or crashed, or its link went down";
	default:
		return NULL;
	}
}

int verbs_errnum(int rc)
{
	return rc < 0 ? errno : rc;
}

int verbs_fail(struct vb_error *err, int errnum, const char *operation, const char *object)
{
	int code = vb__fail_errno(err, errnum, operation, object);
	const char *hint = hint_for(vb__err_from_errno(errnum));

	if (err && !err->hint[0] && hint)
		vb__error_hint(err, "%s", hint);
	return code;
}

/* ENOMEM from the verbs nearly always means that the memlock limit is used up. */
static int fail_pinning(struct vb_error *err, int errnum, const char *operation, const char *object,
			const char *need)
{
	uint64_t limit = vb__memlock_limit();
	char cause[200];

	if (errnum != ENOMEM || limit == UINT64_MAX)
		return verbs_fail(err, errnum, operation, object);
	snprintf(cause, sizeof(cause),
		 "cannot pin %s: the memlock limit of this process is %llu KiB", need,
		 (unsigned long long)limit / 1024);
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_MEMLOCK,
				     .native_kind = VB_NATIVE_ERRNO,
				     .native = errnum,
				     .operation = operation,
				     .object = object,
				     .cause = cause,
				     .hint = "raise it: `* - memlock unlimited` in "
					     "/etc/security/limits.d/rdma.conf and log in again; "
					     "LimitMEMLOCK=infinity in a systemd unit; "
					     "--ulimit memlock=-1 or --cap-add IPC_LOCK for a "
					     "container (a non-root process there needs the "
					     "capability in its effective set)",
			     });
}

static size_t kib(size_t bytes)
{
	return (bytes + 1023) / 1024;
}

int verbs_fail_memory(struct vb_error *err, int errnum, const char *operation, const char *object,
		      size_t bytes)
{
	char need[60];

	snprintf(need, sizeof(need), "%zu KiB of memory", kib(bytes));
	return fail_pinning(err, errnum, operation, object, need);
}

/* Drivers do not tell how they lay out their queues: most by 64 bytes and 16 for each piece, in whole pages. */
int verbs_fail_queue(struct vb_error *err, int errnum, const char *operation, const char *object,
		     unsigned entries, unsigned sge)
{
	size_t bytes = (size_t)entries * (64 + 16 * (size_t)sge), page = 4096;
	char need[80];

	snprintf(need, sizeof(need), "about %zu KiB of memory for %u entries",
		 kib((bytes + page - 1) / page * page), entries);
	return fail_pinning(err, errnum, operation, object, need);
}

static bool note(const struct vb__log *log, enum vb_log_level level, int rc, const char *call,
		 const char *object, const char *then)
{
	if (rc && log)
		vb__log(log, level, "%s on %s: %s; %s", call, object, strerror(verbs_errnum(rc)),
			then);
	return rc;
}

bool verbs_note(const struct vb__log *log, int rc, const char *call, const char *object,
		const char *then)
{
	return note(log, VB_LOG_DEBUG, rc, call, object, then);
}

void verbs_undone(const struct vb__log *log, const char *object, const char *call, int rc)
{
	note(log, VB_LOG_WARNING, rc, call, object, "it is left to the end of the process");
}

static enum vb_err cm_code(const struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_REJECTED:
		return VB_ERR_REFUSED;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
		return event->status == -ENODEV ? VB_ERR_NO_DEVICE : VB_ERR_UNREACHABLE;
	case RDMA_CM_EVENT_UNREACHABLE:
		return VB_ERR_UNREACHABLE;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		/* This is how iWARP says that nobody listens. */
		return event->status == -ECONNREFUSED ? VB_ERR_REFUSED : VB_ERR_UNREACHABLE;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		return VB_ERR_NO_DEVICE;
	default:
		return VB_ERR_LOST;
	}
}

static int fail_cm(struct vb_error *err, const struct rdma_cm_event *event, enum vb_err code,
		   const char *operation, const char *object)
{
	char cause[160];

	snprintf(cause, sizeof(cause), "%s, %s status %d", vb_err_text(code),
		 rdma_event_str(event->event), event->status);
	return vb__fail(err, &(struct vb__failure){
				     .code = code,
				     .native_kind = VB_NATIVE_CM,
				     .native = event->event,
				     .operation = operation,
				     .object = object,
				     .cause = cause,
				     .hint = hint_for(code),
			     });
}

int verbs_fail_cm(struct vb_error *err, const struct rdma_cm_event *event, const char *operation,
		  const char *object)
{
	return fail_cm(err, event, cm_code(event), operation, object);
}

int verbs_lost_cm(struct vb_error *err, const struct rdma_cm_event *event, const char *operation,
		  const char *object)
{
	if (event->event != RDMA_CM_EVENT_DEVICE_REMOVAL)
		return fail_cm(err, event, VB_ERR_LOST, operation, object);
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_LOST,
				     .native_kind = VB_NATIVE_CM,
				     .native = event->event,
				     .operation = operation,
				     .object = object,
				     .cause = "the RDMA device here was removed",
				     .hint = "see the kernel's log (`dmesg`) for the device",
			     });
}

/* What came is larger than was agreed on. (Soft-RoCE calls it a local error, and it looks like a loss.) */
static bool is_oversized(enum ibv_wc_status status, enum vb__op_kind kind)
{
	return kind == VB__OP_RECV && status == IBV_WC_LOC_LEN_ERR;
}

enum vb_err verbs_wc_code(enum ibv_wc_status status, enum vb__op_kind kind)
{
	if (is_oversized(status, kind))
		return VB_ERR_PROTOCOL;
	switch (status) {
	case IBV_WC_SUCCESS:
		return VB_OK;
	case IBV_WC_WR_FLUSH_ERR:
		return VB_ERR_FLUSHED;
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
		return VB_ERR_REMOTE_ACCESS;
	case IBV_WC_LOC_LEN_ERR: /* not VB_ERR_TOO_BIG, after which a channel goes on */
		return VB_ERR_SYSTEM;
	default:
		return VB_ERR_LOST;
	}
}

static const char *wc_hint(enum ibv_wc_status status, enum vb__op_kind kind)
{
	if (is_oversized(status, kind))
		return "the peer runs a broken or foreign program";
	switch (status) {
	case IBV_WC_RETRY_EXC_ERR:
		return "the peer does not acknowledge: its host or link is gone, or the path "
		       "drops large packets: compare the MTU at both ends and on the switches "
		       "(`ip link`, `ibv_devinfo`, `ping -M do -s 8972`)";
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return "the peer had no receive posted: it runs another version or a broken "
		       "program";
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
		return "the memory is not granted for this, or not any more: ask the peer for a "
		       "grant that covers the range and the right";
	case IBV_WC_LOC_PROT_ERR:
		return "the buffer is not, or no longer, registered for this connection";
	case IBV_WC_LOC_LEN_ERR:
		return "the device takes no message of this size: try a smaller one";
	default: /* siw calls a send into a connection that just ended LOC_QP_OP_ERR */
		return hint_for(VB_ERR_LOST);
	}
}

void verbs_fail_wc(struct vb_error *err, enum ibv_wc_status status, enum vb__op_kind kind,
		   const char *object)
{
	static const char *const names[] = {
		[VB__OP_RECV] = "receive from",	  [VB__OP_SEND] = "send to",
		[VB__OP_SEND_IMM] = "send to",	  [VB__OP_WRITE] = "write to",
		[VB__OP_WRITE_IMM] = "write to",  [VB__OP_READ] = "read from",
		[VB__OP_FETCH_ADD] = "atomic on", [VB__OP_COMPARE_SWAP] = "atomic on",
		[VB__OP_BIND] = "grant to",	  [VB__OP_UNBIND] = "revoke from",
	};

	vb__fail(err, &(struct vb__failure){
			      .code = verbs_wc_code(status, kind),
			      .native_kind = VB_NATIVE_WC,
			      .native = status,
			      .operation = names[kind],
			      .object = object,
			      .cause = is_oversized(status, kind)
					       ? "the peer sent a larger message than was agreed on"
					       : ibv_wc_status_str(status),
			      .hint = wc_hint(status, kind),
		      });
}

static int no_device(struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_NO_DEVICE,
				     .operation = "look for",
				     .object = "devices",
				     .cause = "this machine has no RDMA device",
				     .hint = "see `rdma link`; to try RDMA without hardware: `rdma "
					     "link add rxe0 type rxe netdev INTERFACE`; or use the "
					     "ofi fabric",
			     });
}

static const char *node_hint(bool cm, int errnum)
{
	if (errnum == EPERM)
		return "this container's device rules do not have it: pass it by --device, not as "
		       "a volume";
	if (errnum != ENOENT)
		return "allow it: add the user to the group that `ls -l /dev/infiniband` shows, or "
		       "mend the udev rule";
	return cm ? "load the module (`modprobe rdma_ucm`), or pass the node to the container: "
		    "--device /dev/infiniband/rdma_cm; or wire up by TCP (--wireup tcp, "
		    "VB_WIREUP=tcp)"
		  : "load the module (`modprobe ib_uverbs`), or pass the node to the container: "
		    "--device /dev/infiniband/uverbs0";
}

int verbs_fail_node(struct vb_error *err, const char *node, int errnum)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_ACCESS,
				     .native_kind = VB_NATIVE_ERRNO,
				     .native = errnum,
				     .operation = "open",
				     .object = node,
				     .hint = node_hint(strstr(node, "rdma_cm") != NULL, errnum),
			     });
}

/* How many entries of a sysfs folder begin with `prefix`; the name of one in `first`. */
static int count_entries(const char *root, const char *folder, const char *prefix, char *first,
			 size_t size)
{
	char path[256];
	struct dirent *entry;
	DIR *dir;
	int n = 0;

	snprintf(path, sizeof(path), "%s%s", root, folder);
	dir = opendir(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
			continue;
		if (n++ == 0)
			snprintf(first, size, "%s", entry->d_name);
	}
	closedir(dir);
	return n;
}

/* Tried in earnest: a container may show a node to root and deny it all the same. */
static int check_node(const char *root, const char *name, struct vb_error *err)
{
	char path[512], node[300];
	int fd;

	snprintf(node, sizeof(node), "/dev/infiniband/%s", name);
	snprintf(path, sizeof(path), "%s%s", root, node);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return verbs_fail_node(err, node, errno);
	close(fd);
	return 0;
}

static int look(const char *root, bool cm, struct vb_error *err)
{
	char device[256], node[256];
	int devices = count_entries(root, "/sys/class/infiniband", "", device, sizeof(device));
	int nodes =
		count_entries(root, "/sys/class/infiniband_verbs", "uverbs", node, sizeof(node));
	int rc;

	if (!devices)
		return no_device(err);
	rc = cm ? check_node(root, "rdma_cm", err) : 0;
	/* With several devices some may be usable: then the one on the route will tell. */
	if (rc == 0 && nodes == 1)
		rc = check_node(root, node, err);
	return rc;
}

int verbs_preflight(const char *root, bool cm, struct vb_error *err)
{
	static atomic_bool good[2]; /* on the real system */
	int rc;

	if (!root[0] && atomic_load(&good[cm]))
		return 0;
	rc = look(root, cm, err);
	if (!root[0] && rc == 0)
		atomic_store(&good[cm], true);
	return rc;
}
