/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes' names of what is not opened: by the call for it, and where a system does not let it through. */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tree/xattr_list.h"
#include "tree_kit.h"

#define OURS "user.colour"
#define LISTXATTRAT 465
#define CANNOT 77 /* be forbidden here, say under qemu-user */

/* Are there the names that the kernel gives by a path? A security module's label may be among them. */
static bool lists(struct kit *kit, const char *name, bool follow, bool has_ours)
{
	char names[256], expected[256];
	ssize_t n = vb__xattr_list_at(kit->dir_fd, name, follow, names, sizeof(names)), wanted;
	const char *path = kit_path(kit, name);

	wanted = follow ? listxattr(path, expected, sizeof(expected))
			: llistxattr(path, expected, sizeof(expected));
	return n >= 0 && n == wanted && memcmp(names, expected, (size_t)n) == 0 &&
	       (memmem(names, (size_t)n, OURS, sizeof(OURS)) != NULL) == has_ours;
}

static bool fails(struct kit *kit, const char *name, size_t room, int errnum)
{
	char names[64];

	errno = 0;
	return vb__xattr_list_at(kit->dir_fd, name, false, names, room) == -1 && errno == errnum;
}

/* Of a file with an attribute, a link to it, a FIFO without; and what is not there. */
static bool is_right(struct kit *kit)
{
	return lists(kit, "file", false, true) && lists(kit, "link", true, true) &&
	       lists(kit, "link", false, false) && lists(kit, "fifo", false, false) &&
	       fails(kit, "file", 3, ERANGE) && fails(kit, "nothing", 64, ENOENT);
}

/* From now on this process gets `errnum` for the call. */
static bool forbid(int errnum)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, LISTXATTRAT, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)errnum),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = COUNT(filter), .filter = filter };
	char names[64];

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
	       syscall(LISTXATTRAT, AT_FDCWD, "/", 0, names, sizeof(names)) == -1 &&
	       errno == errnum;
}

/* False: this file system has no attributes. */
static bool make(struct kit *kit)
{
	make_file(kit, "file", 1);
	make_link(kit, "link", "file");
	assert_int_equal(mkfifoat(kit->dir_fd, "fifo", 0600), 0);
	return setxattr(kit_path(kit, "file"), OURS, "red", 3, 0) == 0;
}

static void lists_without_opening(void **state)
{
	struct kit *kit = *state;

	if (!make(kit))
		skip();
	assert_true(is_right(kit));
}

static void lists_where_the_call_is_forbidden(void **state)
{
	static const int answers[] = { ENOSYS, EPERM };
	struct kit *kit = *state;
	int status;

	if (!make(kit))
		skip();
	for (size_t i = 0; i < COUNT(answers); i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(!forbid(answers[i]) ? CANNOT : !is_right(kit));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT)
			skip();
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lists_without_opening, kit_setup, kit_teardown),
		cmocka_unit_test_setup_teardown(lists_where_the_call_is_forbidden, kit_setup,
						kit_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
