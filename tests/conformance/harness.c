/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the conformance tests: conformance --fabric verbs|ofi --address ADDRESS [--wireup tcp] [--device NAME]
 * [--filter PART] [--without PART]... [--threads] [--below-transfers]
 */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "fabric/fabric.h"
#include "transfer_side.h"

#define TIME_LIMIT_S 60u

static struct {
	const char *fabric, *address, *filter, *without[4], *device, *wireup;
	bool threads_only, below_transfers;
} arguments = { .fabric = "ofi", .address = "127.0.0.1" };

void check_failed(const char *file, int line, const char *condition)
{
	printf("# %s:%d: not so: %s\n", file, line, condition);
	fflush(stdout);
	_exit(1);
}

void check_equal(long long a, long long b, const char *file, int line, const char *ta,
		 const char *tb)
{
	if (a == b)
		return;
	printf("# %s:%d: %s is %lld, %s is %lld\n", file, line, ta, a, tb, b);
	fflush(stdout);
	_exit(1);
}

void fail_with(const struct vb_error *err, const char *doing)
{
	char line[VB_ERROR_LINE_MAX];

	printf("# %s: %s: %s\n", doing, vb_err_name(err->code),
	       vb_error_format(err, line, sizeof(line)));
	fflush(stdout);
	_exit(1);
}

struct vb_listener *listen_here(struct side *side)
{
	struct vb_listener *listener;
	struct vb_error err;

	if (vb_listener_open(side->address, "0", &side->options, &listener, &err) != 0)
		fail_with(&err, "listen");
	side->shared->port = vb_listener_port(listener);
	sem_post(&side->shared->listening);
	return listener;
}

struct vb_channel *accept_one(struct side *side, struct vb_listener *listener)
{
	struct vb_channel *channel;
	struct vb_error err;

	(void)side;
	if (vb_listener_accept(listener, &channel, &err) != 0)
		fail_with(&err, "accept");
	return channel;
}

struct vb_channel *serve_one(struct side *side)
{
	struct vb_listener *listener = listen_here(side);
	struct vb_channel *channel = accept_one(side, listener);

	vb_listener_close(listener);
	return channel;
}

const char *port_there(struct side *side)
{
	static char port[16];

	while (sem_wait(&side->shared->listening) != 0)
		;
	sem_post(&side->shared->listening);
	snprintf(port, sizeof(port), "%d", side->shared->port);
	return port;
}

struct vb_channel *connect_there(struct side *side)
{
	struct vb_channel *channel;
	struct vb_error err;

	if (vb_channel_connect(side->address, port_there(side), &side->options, &channel, &err) !=
	    0)
		fail_with(&err, "connect");
	CHECK(!strcmp(vb_channel_fabric(channel), side->fabric));
	return channel;
}

void close_well(struct vb_channel *channel)
{
	struct vb_error err;

	if (vb_channel_close(channel, &err) != 0)
		fail_with(&err, "close");
}

void send_well(struct vb_channel *channel, const void *message, size_t len)
{
	struct vb_error err;

	if (vb_channel_send(channel, message, len, &err) != 0)
		fail_with(&err, "send");
}

ssize_t recv_well(struct vb_channel *channel, const void **message)
{
	struct vb_error err;
	ssize_t n = vb_channel_recv(channel, message, &err);

	if (n < 0)
		fail_with(&err, "receive");
	return n;
}

void expect_eof(struct vb_channel *channel)
{
	const void *message;
	struct vb_error err;
	ssize_t n = vb_channel_recv(channel, &message, &err);

	if (n != VB_ERR_EOF && n < 0)
		fail_with(&err, "expecting the end of the stream");
	CHECK_EQ(n, VB_ERR_EOF);
}

void skip_test(struct side *side, const char *reason)
{
	snprintf(side->shared->skipped, sizeof(side->shared->skipped), "%s", reason);
}

void signal_step(struct side *side, int step)
{
	sem_post(&side->shared->step[step]);
}

void await_step(struct side *side, int step)
{
	while (sem_wait(&side->shared->step[step]) != 0)
		;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= UINT64_C(0x9e3779b97f4a7c15);
	return x ^ x >> 29;
}

void fill(void *to, size_t len, uint32_t seed)
{
	uint8_t *bytes = to;
	uint64_t word;

	for (size_t i = 0; i < len; i += 8) {
		word = mix((uint64_t)seed << 32 | i);
		memcpy(bytes + i, &word, len - i < 8 ? len - i : 8);
	}
}

bool is_filled(const void *from, size_t len, uint32_t seed)
{
	const uint8_t *bytes = from;
	uint64_t word;

	for (size_t i = 0; i < len; i += 8) {
		word = mix((uint64_t)seed << 32 | i);
		if (memcmp(bytes + i, &word, len - i < 8 ? len - i : 8) != 0)
			return false;
	}
	return true;
}

const struct vb__fabric *fabric_of(const struct side *side)
{
	for (const struct vb__fabric *const *f = vb__fabrics; *f; f++)
		if (!strcmp((*f)->name, side->fabric))
			return *f;
	CHECK(!"the fabric is built in");
	return NULL;
}

void make_room(struct vb__ep *ep)
{
	static uint8_t room[64]; /* what is said in it is of no interest */
	struct vb__sge sge = { .addr = room, .len = sizeof(room) };
	struct vb__op op = { .kind = VB__OP_RECV, .sge = &sge, .sge_count = 1 };

	CHECK_EQ(vb__mr_open(ep, room, sizeof(room), VB__ACCESS_LOCAL, &sge.mr, NULL), 0);
	for (int i = 0; i < 8; i++)
		CHECK_EQ(vb__ep_post(ep, &op, NULL), 0);
}

int count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

void sleep_ms(unsigned ms)
{
	struct timespec ts = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&ts, NULL);
}

static struct shared *new_shared(void)
{
	struct shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (s == MAP_FAILED)
		abort();
	for (int i = 0; i < 4; i++)
		sem_init(&s->step[i], 1, 0);
	sem_init(&s->listening, 1, 0);
	return s;
}

/* The other one may want to know its number before we do. */
static void start(void (*run)(struct side *), struct side *side, pid_t *number)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid != 0) {
		*number = pid;
		return;
	}
	*number = getpid();
	alarm(TIME_LIMIT_S);
	run(side);
	fflush(stdout);
	exit(0); /* not _exit: leak checkers run at exit */
}

static bool ended_well(pid_t pid, enum fate fate, const char *who, int status)
{
	(void)pid;
	if (fate == DIES)
		return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	if (WIFSIGNALED(status))
		printf("# %s: killed by signal %d%s\n", who, WTERMSIG(status),
		       WTERMSIG(status) == SIGALRM ? " (it took too long)" : "");
	else
		printf("# %s: exit %d\n", who, WEXITSTATUS(status));
	return false;
}

/* When one side fails, the other is not left waiting for it. */
static bool watch(const struct test *test, struct shared *shared)
{
	pid_t left[2] = { shared->server, shared->client };
	bool good = true;
	int status;

	for (int ends = 0; ends < 2; ends++) {
		pid_t pid = wait(&status);
		int who = pid == shared->client;

		left[who] = 0;
		if (!ended_well(pid, who ? test->client_fate : test->server_fate,
				who ? "client" : "server", status) &&
		    good) {
			good = false;
			if (left[!who]) {
				kill(left[!who], SIGCONT);
				kill(left[!who], SIGKILL);
			}
		}
	}
	return good;
}

static void print_log(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg;
	printf("# log %d: %s\n", (int)level, line);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

/* `skipped` has room for the reason, if the test could not be done. */
static bool run(const struct test *test, char *skipped, size_t size)
{
	char scratch[] = "/tmp/vb-conformance-XXXXXX";
	struct side side = {
		.address = arguments.address,
		.fabric = arguments.fabric,
		.slow = getenv("VB_VM") != NULL,
		.scratch = mkdtemp(scratch),
		.options = {
			.fabric = strcmp(arguments.fabric, "ofi") ? VB_FABRIC_VERBS : VB_FABRIC_OFI,
			.wireup = arguments.wireup && !strcmp(arguments.wireup, "tcp")
					  ? VB_WIREUP_TCP
					  : VB_WIREUP_AUTO,
			.device = arguments.device,
			.peer_timeout_ms = 20000,
			.log = getenv("VB_TEST_LOG") ? print_log : NULL,
			.log_level = VB_LOG_DEBUG,
		},
		.shared = new_shared(),
	};
	bool good;

	start(test->server, &side, &side.shared->server);
	start(test->client, &side, &side.shared->client);
	good = watch(test, side.shared);
	snprintf(skipped, size, "%s", side.shared->skipped);
	nftw(scratch, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	munmap(side.shared, sizeof(*side.shared));
	return good;
}

static bool selected(const struct test *test)
{
	if (test->only && strcmp(test->only, arguments.fabric) != 0)
		return false;
	for (int i = 0; i < 4; i++)
		if (arguments.without[i] && strstr(test->name, arguments.without[i]))
			return false;
	return !arguments.filter || strstr(test->name, arguments.filter);
}

static int run_list(const struct test *list, int *number, bool count_only)
{
	int failed = 0;

	for (const struct test *test = list; test->name; test++) {
		struct timespec a, b;
		char skipped[120];
		bool good, again;

		if (!selected(test))
			continue;
		++*number;
		if (count_only)
			continue;
		clock_gettime(CLOCK_MONOTONIC, &a);
		good = run(test, skipped, sizeof(skipped));
		again = !good;
		if (again) { /* a busy machine may be the cause; tests/tap-sum tells it */
			printf("# %s failed\n", test->name);
			good = run(test, skipped, sizeof(skipped));
		}
		clock_gettime(CLOCK_MONOTONIC, &b);
		printf("%sok %d - %s # ", good ? "" : "not ", *number, test->name);
		if (good && skipped[0])
			printf("SKIP %s\n", skipped);
		else
			printf("%s%.2f s\n", good && again ? "AGAIN " : "",
			       (double)(b.tv_sec - a.tv_sec) +
				       (double)(b.tv_nsec - a.tv_nsec) * 1e-9);
		fflush(stdout);
		failed += !good;
	}
	return failed;
}

static int run_lists(const struct test *const *lists, int *number, bool count_only)
{
	int failed = 0;

	while (*lists)
		failed += run_list(*lists++, number, count_only);
	return failed;
}

static int run_all(int *number, bool count_only)
{
	static const struct test *const threads[] = { thread_tests,	   lend_thread_tests,
						      limit_thread_tests,  memory_thread_tests,
						      stream_thread_tests, server_thread_tests,
						      dgram_thread_tests,  NULL };
	static const struct test *const others[] = { channel_tests,
						     frame_stranger_tests,
						     end_tests,
						     stranger_tests,
						     fabric_tests,
						     lend_tests,
						     limit_tests,
						     memory_tests,
						     memory_bounds_tests,
						     memory_order_tests,
						     pass_tests,
						     stream_tests,
						     stream_sync_tests,
						     stream_direct_tests,
						     stream_fault_tests,
						     server_tests,
						     server_trouble_tests,
						     dgram_tests,
						     dgram_stranger_tests,
						     NULL };
	static const struct test *const transfers[] = { crew_tests,    transfer_tests,
							failure_tests, kill_tests,
							door_tests,    seal_tests,
							pack_tests,    NULL };
	int failed = run_lists(threads, number, count_only);

	if (arguments.threads_only)
		return failed + run_list(crew_tests, number, count_only);
	failed += run_lists(others, number, count_only);
	return failed + (arguments.below_transfers ? 0 : run_lists(transfers, number, count_only));
}

int main(int argc, char **argv)
{
	int count = 0, number = 0, without = 0;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--threads"))
			arguments.threads_only = true;
		else if (!strcmp(argv[i], "--below-transfers"))
			arguments.below_transfers = true;
		else if (!strcmp(argv[i], "--fabric"))
			arguments.fabric = value, i++;
		else if (!strcmp(argv[i], "--address"))
			arguments.address = value, i++;
		else if (!strcmp(argv[i], "--filter"))
			arguments.filter = value, i++;
		else if (!strcmp(argv[i], "--without") && without < 4)
			arguments.without[without++] = value, i++;
		else if (!strcmp(argv[i], "--device"))
			arguments.device = value, i++;
		else if (!strcmp(argv[i], "--wireup"))
			arguments.wireup = value, i++;
		else
			return fprintf(stderr, "conformance: unknown option %s\n", argv[i]), 2;
	}
	signal(SIGPIPE, SIG_IGN);
	/* Once, and not in every process of every test; but libfabric opens RDMA devices, which a fork breaks. */
	for (int i = 0; vb__fabrics[i]; i++)
		if (vb__fabrics[i]->prepare && !strcmp(vb__fabrics[i]->name, arguments.fabric))
			vb__fabrics[i]->prepare();
	if (!arguments.below_transfers)
		stretch_key();
	run_all(&count, true);
	printf("1..%d\n", count);
	return run_all(&number, false) ? 1 : 0;
}
