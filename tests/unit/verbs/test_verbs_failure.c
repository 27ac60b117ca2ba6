/* SPDX-License-Identifier: Apache-2.0 */
/* What is said when the machine is at fault: limits, missing devices, denied nodes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_harness.h"

/* ---- Memory ---- */

static void refused_registration_tells_limit_need_and_remedies(void **state)
{
	static uint8_t memory[5u << 20];
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep = harness_open();
	struct vb__mr *mr;

	(void)state;
	harness_limit_memlock();
	mock_fail_call("ibv_reg_mr", 1, ENOMEM);
	vb__mr_open(ep, memory, sizeof(memory), VB__ACCESS_LOCAL, &mr, &err);
	assert_tells_memlock(&err, "ibv_reg_mr", "cannot pin 5120 KiB of memory:");
	assert_null(ep->mrs);
	vb__ep_close(ep);
}

static const struct vb__private_data sorry = { "sorry", 6 };

static void assert_sorry(unsigned times)
{
	assert_int_equal(mock_count("rdma_reject"), times);
	assert_int_equal(mock_said.len, 6);
	assert_memory_equal(mock_said.data, "sorry", 6);
}

/* Whether it is the completion queue that cannot be, or what comes before there is an endpoint. */
static void whom_it_cannot_serve_is_refused_in_words(void **state)
{
	static const char *const calls[] = { "ibv_create_cq", "ibv_alloc_pd", "rdma_migrate_id",
					     "calloc" };
	struct vb__pep *pep = harness_listen();
	struct vb__request *request;
	struct vb__ep *ep;

	(void)state;
	harness_attr.refusal = sorry;
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++) {
		mock_connect_request(((struct verbs_pep *)pep)->cm.id, "hi", 3);
		assert_int_equal(vb__pep_next(pep, &request, NULL), 1);
		mock_said.len = 0;
		mock_fail_call(calls[i], 1, ENOMEM);
		assert_true(vb__ep_accept_open(request, &harness_attr, &ep, NULL) < 0);
		assert_sorry(i + 1);
	}
	vb__pep_close(pep);
}

static void who_is_never_accepted_is_refused_in_words(void **state)
{
	struct vb__pep *pep = harness_listen();

	(void)state;
	harness_attr.refusal = sorry;
	vb__ep_close(harness_request(pep));
	assert_sorry(1);
	vb__pep_close(pep);
}

static void who_is_accepted_is_not_refused_any_more(void **state)
{
	struct vb__pep *pep = harness_listen();
	struct vb__ep *ep;

	(void)state;
	harness_attr.refusal = sorry;
	ep = harness_request(pep);
	assert_int_equal(vb__ep_accept(ep, "yes", 4, NULL), 0);
	vb__ep_close(ep);
	assert_int_equal(mock_count("rdma_reject"), 0);
	vb__pep_close(pep);
}

static void without_a_limit_memory_is_just_out(void **state)
{
	static uint8_t memory[64];
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep = harness_open();
	struct vb__mr *mr;

	(void)state;
	mock_fail_call("ibv_reg_mr", 1, ENOMEM);
	assert_int_equal(vb__mr_open(ep, memory, sizeof(memory), VB__ACCESS_LOCAL, &mr, &err),
			 VB_ERR_NOMEM);
	assert_string_equal(err.operation, "ibv_reg_mr");
	vb__ep_close(ep);
}

static void whom_the_limit_does_not_bind_is_just_out_of_memory(void **state)
{
	static uint8_t memory[64];
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep;
	struct vb__mr *mr;

	(void)state;
	if (!harness_lock_without_limit(true)) {
		print_message("# skipped: CAP_IPC_LOCK is not to be had here\n");
		skip();
	}
	ep = harness_open();
	mock_memlock_bytes = 64 * 1024;
	mock_fail_call("ibv_reg_mr", 1, ENOMEM);
	assert_int_equal(vb__mr_open(ep, memory, sizeof(memory), VB__ACCESS_LOCAL, &mr, &err),
			 VB_ERR_NOMEM);
	vb__ep_close(ep);
}

/* Queues are pinned as well. */
static void queues_over_the_memlock_limit_tell_limit_need_and_remedies(void **state)
{
	static const struct {
		const char *call, *need;
	} cases[] = {
		{ "ibv_create_cq", "about 12 KiB of memory for 151 entries" },
		{ "rdma_create_qp", "about 16 KiB of memory for 151 entries" },
		{ "ibv_reg_mr", "cannot pin 1 KiB of memory:" },
	};

	(void)state;
	harness_limit_memlock();
	harness_attr.send_depth = 100;
	harness_attr.recv_depth = 50;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct vb__address peer = harness_peer();
		struct vb_error err = { .code = VB_OK };
		struct vb__ep *ep;

		mock_fail_call(cases[i].call, 10, ENOMEM);
		vb__ep_open(&vb__verbs_fabric, &harness_attr, &peer, harness_deadline(), &ep, &err);
		assert_tells_memlock(&err, cases[i].call, cases[i].need);
	}
}

static void other_errors_of_registration_are_told_as_they_are(void **state)
{
	static uint8_t memory[64];
	struct vb_error err = { .code = VB_OK };
	struct vb__ep *ep = harness_open();
	struct vb__mr *mr;

	(void)state;
	mock_memlock_bytes = 64 * 1024;
	mock_fail_call("ibv_reg_mr", 1, EFAULT);
	assert_int_equal(vb__mr_open(ep, memory, sizeof(memory), VB__ACCESS_LOCAL, &mr, &err),
			 VB_ERR_SYSTEM);
	assert_int_equal(err.native, EFAULT);
	vb__ep_close(ep);
}

/* ---- Listening ---- */

static const struct listen_case {
	const char *call;
	int errnum;
	enum vb_err code;
	const char *hint;
} listen_cases[] = {
	{ "rdma_bind_addr", EADDRINUSE, VB_ERR_IN_USE, "rdma resource show cm_id" },
	{ "rdma_listen", EADDRINUSE, VB_ERR_IN_USE, "choose another one" },
	{ "rdma_bind_addr", EADDRNOTAVAIL, VB_ERR_UNREACHABLE, "no RDMA device has this address" },
	{ "rdma_bind_addr", ENODEV, VB_ERR_NO_DEVICE, "no RDMA device has this address" },
	{ "rdma_bind_addr", EACCES, VB_ERR_ACCESS, "" },
};

static void listen_says_what_is_wrong_with_the_address(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(listen_cases); i++) {
		const struct listen_case *c = &listen_cases[i];
		struct vb__address at = harness_peer();
		struct vb_error err = { .code = VB_OK };
		struct vb__pep *pep;

		mock_fail_call(c->call, 1, c->errnum);
		assert_int_equal(vb__pep_open(&vb__verbs_fabric, &harness_settings, &at, &pep,
					      &err),
				 c->code);
		assert_string_equal(err.operation, c->call);
		assert_string_equal(err.object, at.text);
		assert_contains(err.hint, c->hint);
	}
}

/* ---- The machine ---- */

int __real_verbs_preflight(const char *root, bool cm, struct vb_error *err);

struct machine {
	char root[64];
};

static void make(const struct machine *m, const char *path, mode_t mode)
{
	char full[256];
	int fd;

	snprintf(full, sizeof(full), "%s%s", m->root, path);
	if (S_ISDIR(mode)) {
		assert_int_equal(mkdir(full, 0755), 0);
		return;
	}
	fd = open(full, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

/* A machine with folders but no device. */
static struct machine make_machine(void)
{
	static const char *const folders[] = {
		"/sys", "/sys/class",	  "/sys/class/infiniband", "/sys/class/infiniband_verbs",
		"/dev", "/dev/infiniband"
	};
	struct machine m = { .root = "/tmp/verbs-machine-XXXXXX" };

	assert_non_null(mkdtemp(m.root));
	assert_int_equal(chmod(m.root, 0755), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(folders); i++)
		make(&m, folders[i], S_IFDIR);
	return m;
}

static void remove_machine(const struct machine *m)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", m->root);
	assert_int_equal(system(command), 0);
}

static void a_machine_without_devices_says_how_to_get_one(void **state)
{
	struct machine m = make_machine();
	struct vb_error err = { .code = VB_OK };

	(void)state;
	assert_int_equal(__real_verbs_preflight(m.root, true, &err), VB_ERR_NO_DEVICE);
	assert_contains(err.cause, "no RDMA device");
	assert_contains(err.hint, "type rxe");
	vb__error_clear(&err);
	assert_int_equal(__real_verbs_preflight("/nowhere", true, &err), VB_ERR_NO_DEVICE);
	remove_machine(&m);
}

static void a_container_without_rdma_cm_says_how_to_pass_it(void **state)
{
	struct machine m = make_machine();
	struct vb_error err = { .code = VB_OK };

	(void)state;
	make(&m, "/sys/class/infiniband/mlx5_0", S_IFDIR);
	make(&m, "/sys/class/infiniband_verbs/uverbs0", S_IFDIR);
	make(&m, "/dev/infiniband/uverbs0", 0666);
	assert_int_equal(__real_verbs_preflight(m.root, true, &err), VB_ERR_ACCESS);
	assert_int_equal(err.native, ENOENT);
	assert_string_equal(err.object, "/dev/infiniband/rdma_cm");
	assert_contains(err.hint, "modprobe rdma_ucm");
	assert_contains(err.hint, "--device /dev/infiniband/rdma_cm");
	assert_contains(err.hint, "--wireup tcp");
	vb__error_clear(&err);
	assert_int_equal(__real_verbs_preflight(m.root, false, &err), 0);
	remove_machine(&m);
}

static void a_missing_uverbs_node_is_named(void **state)
{
	struct machine m = make_machine();
	struct vb_error err = { .code = VB_OK };

	(void)state;
	make(&m, "/sys/class/infiniband/mlx5_0", S_IFDIR);
	make(&m, "/sys/class/infiniband_verbs/uverbs3", S_IFDIR);
	make(&m, "/dev/infiniband/rdma_cm", 0666);
	assert_int_equal(__real_verbs_preflight(m.root, true, &err), VB_ERR_ACCESS);
	assert_string_equal(err.object, "/dev/infiniband/uverbs3");
	assert_contains(err.hint, "ib_uverbs");
	remove_machine(&m);
}

static void a_fine_machine_passes(void **state)
{
	struct machine m = make_machine();
	struct vb_error err = { .code = VB_OK };

	(void)state;
	make(&m, "/sys/class/infiniband/mlx5_0", S_IFDIR);
	make(&m, "/sys/class/infiniband_verbs/abi_version", 0444);
	make(&m, "/sys/class/infiniband_verbs/uverbs0", S_IFDIR);
	make(&m, "/dev/infiniband/rdma_cm", 0666);
	make(&m, "/dev/infiniband/uverbs0", 0666);
	assert_int_equal(__real_verbs_preflight(m.root, true, &err), 0);
	assert_int_equal(err.code, VB_OK);
	remove_machine(&m);
}

/* In a child that is nobody in particular: root is denied nothing. */
static bool says_denied(const struct machine *m, const char *node)
{
	struct vb_error err = { .code = VB_OK };

	return __real_verbs_preflight(m->root, true, &err) == VB_ERR_ACCESS &&
	       err.native == EACCES && !strcmp(err.object, node) &&
	       strstr(err.hint, "ls -l /dev/infiniband");
}

static void denied_as_nobody(const char *node)
{
	struct machine m = make_machine();
	int status;
	pid_t child;

	make(&m, "/sys/class/infiniband/mlx5_0", S_IFDIR);
	make(&m, "/sys/class/infiniband_verbs/uverbs0", S_IFDIR);
	make(&m, "/dev/infiniband/rdma_cm", 0666);
	make(&m, "/dev/infiniband/uverbs0", 0666);
	{
		char full[256];

		snprintf(full, sizeof(full), "%s%s", m.root, node);
		assert_int_equal(chmod(full, 0600), 0);
		if (geteuid() != 0)
			assert_int_equal(chmod(full, 0), 0);
	}
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		if (geteuid() == 0 && setuid(65534) != 0)
			_exit(77);
		_exit(says_denied(&m, node) ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	remove_machine(&m);
	if (WEXITSTATUS(status) == 77) {
		print_message("# skipped: cannot become nobody here, and root is denied nothing\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static void a_denied_uverbs_node_says_whom_to_ask(void **state)
{
	(void)state;
	denied_as_nobody("/dev/infiniband/uverbs0");
}

static void a_denied_rdma_cm_node_says_whom_to_ask(void **state)
{
	(void)state;
	denied_as_nobody("/dev/infiniband/rdma_cm");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		VERBS_TEST(refused_registration_tells_limit_need_and_remedies),
		VERBS_TEST(without_a_limit_memory_is_just_out),
		VERBS_TEST(whom_the_limit_does_not_bind_is_just_out_of_memory),
		VERBS_TEST(whom_it_cannot_serve_is_refused_in_words),
		VERBS_TEST(who_is_never_accepted_is_refused_in_words),
		VERBS_TEST(who_is_accepted_is_not_refused_any_more),
		VERBS_TEST(queues_over_the_memlock_limit_tell_limit_need_and_remedies),
		VERBS_TEST(other_errors_of_registration_are_told_as_they_are),
		VERBS_TEST(listen_says_what_is_wrong_with_the_address),
		VERBS_TEST(a_machine_without_devices_says_how_to_get_one),
		VERBS_TEST(a_container_without_rdma_cm_says_how_to_pass_it),
		VERBS_TEST(a_missing_uverbs_node_is_named),
		VERBS_TEST(a_fine_machine_passes),
		VERBS_TEST(a_denied_uverbs_node_says_whom_to_ask),
		VERBS_TEST(a_denied_rdma_cm_node_says_whom_to_ask),
	};

	return cmocka_run_group_tests_name("verbs_failure", tests, NULL, NULL);
}
