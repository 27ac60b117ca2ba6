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

#define LISTXATTRAT 465
#define CANNOT 77 /* be forbidden here, say under qemu-user */

static bool lists(int dir, const char *name, bool follow, const char *expected)
{
	char names[64];
	ssize_t n = vb__xattr_list_at(dir, name, follow, names, sizeof(names));

	return n == (ssize_t)(*expected ? strlen(expected) + 1 : 0) &&
	       memcmp(names, expected, (size_t)n) == 0;
}

static bool fails(int dir, const char *name, size_t room, int errnum)
{
	char names[64];

	errno = 0;
	return vb__xattr_list_at(dir, name, false, names, room) == -1 && errno == errnum;
}

/* Of a file with an attribute, a link to it, a FIFO without; and what is not there. */
static bool is_right(int dir)
{
	return lists(dir, "file", false, "user.colour") &&
	       lists(dir, "link", true, "user.colour") && lists(dir, "link", false, "") &&
	       lists(dir, "fifo", false, "") && fails(dir, "file", 3, ERANGE) &&
	       fails(dir, "nothing", 64, ENOENT);
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
	return setxattr(kit_path(kit, "file"), "user.colour", "red", 3, 0) == 0;
}

static void lists_without_opening(void **state)
{
	struct kit *kit = *state;

	if (!make(kit))
		skip();
	assert_true(is_right(kit->dir_fd));
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
			_exit(!forbid(answers[i]) ? CANNOT : !is_right(kit->dir_fd));
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
