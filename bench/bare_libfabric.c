/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bare send/receive loop over libfabric's tcp provider, as small as it gets:
 * what the channel is compared with. Not an example of good manners.
 *
 *	bare_libfabric bw|rate ADDRESS size=N count=N depth=N
 *	bare_libfabric lat ADDRESS size=N count=N
 *	bare_libfabric connect|close ADDRESS size=N count=N depth=N [asleep]
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PORT "17471"
#define CREDIT_EVERY(depth) ((depth) / 2 ? (depth) / 2 : 1)

struct link {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *tx, *rx;
	struct fid_ep *ep;
};

static size_t size = 64;
static unsigned count = 1000, depth = 8;
static int
	visits; /* just makes and closes connections: then one queue is for both, as it is quicker to open */
static int asleep; /* waits by sleeping, as whoever does not have a CPU to burn */

static void must(long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "bare_libfabric: %s: %s\n", what, fi_strerror((int)-rc));
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static struct fi_info *ask(const char *address, uint64_t flags)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->ep_attr->type = FI_EP_MSG;
	hints->caps = FI_MSG;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup("tcp");
	must(fi_getinfo(FI_VERSION(1, 11), address, PORT, flags, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
	return info;
}

static void open_link(struct link *l)
{
	struct fi_cq_attr attr = { .size = 1024,
				   .format = FI_CQ_FORMAT_DATA,
				   .wait_obj = asleep ? FI_WAIT_UNSPEC : FI_WAIT_NONE };

	must(fi_domain(l->fabric, l->info, &l->domain, NULL), "fi_domain");
	must(fi_cq_open(l->domain, &attr, &l->tx, NULL), "fi_cq_open");
	l->rx = l->tx;
	if (!visits)
		must(fi_cq_open(l->domain, &attr, &l->rx, NULL), "fi_cq_open");
	must(fi_endpoint(l->domain, l->info, &l->ep, NULL), "fi_endpoint");
	must(fi_ep_bind(l->ep, &l->eq->fid, 0), "bind");
	must(fi_ep_bind(l->ep, &l->tx->fid, visits ? FI_TRANSMIT | FI_RECV : FI_TRANSMIT), "bind");
	if (!visits)
		must(fi_ep_bind(l->ep, &l->rx->fid, FI_RECV), "bind");
	must(fi_enable(l->ep), "fi_enable");
}

static void await_event(struct fid_eq *eq, uint32_t wanted, struct fi_eq_cm_entry *entry)
{
	struct fi_eq_err_entry error = { .err = 0 };
	uint32_t event;
	ssize_t n = fi_eq_sread(eq, &event, entry, sizeof(*entry), -1, 0);

	if (n == -FI_EAVAIL && fi_eq_readerr(eq, &error, 0) > 0)
		n = -error.err;
	must(n, "fi_eq_sread");
	if (event != wanted)
		must(-FI_EOTHER, "fi_eq_sread");
}

static void take(struct link *l, struct fid_cq *cq)
{
	struct fi_cq_data_entry done;
	ssize_t n;

	while ((n = asleep ? fi_cq_sread(cq, &done, 1, NULL, -1) : fi_cq_read(cq, &done, 1)) ==
	       -FI_EAGAIN)
		if (cq == l->tx)
			fi_cq_read(l->rx, NULL, 0);
	must(n, "fi_cq_read");
}

static void post_recv(struct link *l, char *buffer)
{
	must(fi_recv(l->ep, buffer, size, NULL, 0, NULL), "fi_recv");
}

static void do_send(struct link *l, const char *buffer, size_t len)
{
	ssize_t rc;

	while ((rc = fi_send(l->ep, buffer, len, NULL, 0, NULL)) == -FI_EAGAIN)
		fi_cq_read(l->tx, NULL, 0);
	must(rc, "fi_send");
}

static void close_link(struct link *l)
{
	fi_close(&l->ep->fid);
	fi_close(&l->tx->fid);
	if (!visits)
		fi_close(&l->rx->fid);
	fi_close(&l->domain->fid);
	fi_freeinfo(l->info);
}

static void answer(struct link *l, char *buffers, int echo)
{
	char word[4];

	for (unsigned i = 0; i < count; i++) {
		char *buffer = buffers + i % (2 * depth) * size;

		take(l, l->rx);
		if (echo) {
			do_send(l, buffer, size);
			take(l, l->tx);
		} else if ((i + 1) % CREDIT_EVERY(depth) == 0 || i + 1 == count) {
			do_send(l, word, 4); /* room for more */
			take(l, l->tx);
		}
		post_recv(l, buffer);
	}
	sleep(1);
}

/* The client says that it goes, is told so, and goes. */
static void see_off(struct link *l)
{
	char word[4];

	take(l, l->rx);
	do_send(l, word, 4);
	take(l, l->tx);
}

static void serve(const char *address, const char *mode, int ready)
{
	struct link l = { .info = ask(address, FI_SOURCE) };
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_cm_entry entry;
	struct fid_pep *pep;
	char *buffers = malloc(size * 2 * depth);

	must(fi_fabric(l.info->fabric_attr, &l.fabric, NULL), "fi_fabric");
	must(fi_eq_open(l.fabric, &eq, &l.eq, NULL), "fi_eq_open");
	must(fi_passive_ep(l.fabric, l.info, &pep, NULL), "fi_passive_ep");
	must(fi_pep_bind(pep, &l.eq->fid, 0), "fi_pep_bind");
	must(fi_listen(pep), "fi_listen");
	if (write(ready, "x", 1) != 1)
		exit(1);
	for (unsigned round = 0; round < (visits ? count : 1); round++) {
		await_event(l.eq, FI_CONNREQ, &entry);
		l.info = entry.info;
		open_link(&l);
		for (unsigned i = 0; i < 2 * depth; i++)
			post_recv(&l, buffers + i * size);
		must(fi_accept(l.ep, NULL, 0), "fi_accept");
		await_event(l.eq, FI_CONNECTED, &entry);
		if (visits)
			see_off(&l);
		else
			answer(&l, buffers, !strcmp(mode, "lat"));
		close_link(&l);
	}
}

static void connect_link(struct link *l, const char *address)
{
	struct fi_eq_attr eq = { .wait_obj = FI_WAIT_UNSPEC };
	struct fi_eq_cm_entry entry;
	static char credits[65536];

	l->info = ask(address, 0);
	must(fi_fabric(l->info->fabric_attr, &l->fabric, NULL), "fi_fabric");
	must(fi_eq_open(l->fabric, &eq, &l->eq, NULL), "fi_eq_open");
	open_link(l);
	for (unsigned i = 0; i < 4; i++)
		must(fi_recv(l->ep, credits + i * 4096, 4096, NULL, 0, NULL), "fi_recv");
	must(fi_connect(l->ep, l->info->dest_addr, NULL, 0), "fi_connect");
	await_event(l->eq, FI_CONNECTED, &entry);
}

static void await_credit(struct link *l, unsigned *room)
{
	static char credits[4096];

	take(l, l->rx);
	*room += CREDIT_EVERY(depth);
	must(fi_recv(l->ep, credits, sizeof(credits), NULL, 0, NULL), "fi_recv");
}

static double one_way(const char *address)
{
	struct link l = { 0 };
	unsigned room = depth, last = (count + CREDIT_EVERY(depth) - 1) / CREDIT_EVERY(depth),
		 seen = 0, flying = 0;
	char *buffers = malloc(size * depth);
	double start;

	memset(buffers, 1, size * depth);
	connect_link(&l, address);
	start = now();
	for (unsigned i = 0; i < count; i++) {
		while (!room) {
			await_credit(&l, &room);
			seen++;
		}
		if (flying == depth) {
			take(&l, l.tx);
			flying--;
		}
		do_send(&l, buffers + i % depth * size, size);
		flying++;
		room--;
	}
	for (; seen < last; seen++)
		await_credit(&l, &room);
	return now() - start;
}

static double ping_pong(const char *address)
{
	struct link l = { 0 };
	char *buffer = calloc(1, size);
	static char credits[65536];
	double start = 0;

	connect_link(&l, address);
	for (unsigned i = 0; i < count; i++) {
		if (i == 100)
			start = now();
		do_send(&l, buffer, size);
		take(&l, l.tx);
		take(&l, l.rx);
		must(fi_recv(l.ep, credits, 4096, NULL, 0, NULL), "fi_recv");
	}
	return (now() - start) / (count - 100) / 2;
}

/* The first one also starts the library; it does not count. */
static double set_up_or_down(const char *address, int down)
{
	double taken = 0, t;
	char word[4] = "end";

	for (unsigned i = 0; i < count; i++) {
		struct link l = { 0 };

		t = now();
		connect_link(&l, address);
		if (down)
			t = now();
		else
			taken += i ? now() - t : 0;
		do_send(&l, word, 4);
		take(&l, l.tx);
		take(&l, l.rx);
		fi_shutdown(l.ep, 0);
		close_link(&l);
		fi_close(&l.eq->fid);
		fi_close(&l.fabric->fid);
		if (down)
			taken += i ? now() - t : 0;
	}
	return taken / (count - 1);
}

int main(int argc, char **argv)
{
	int ready[2];
	char c;
	pid_t pid;

	if (argc < 3 || pipe(ready) != 0)
		return 2;
	for (int i = 3; i < argc; i++) {
		char *value = strchr(argv[i], '=');
		unsigned long n = value ? strtoul(value + 1, NULL, 10) : 0;

		if (!strncmp(argv[i], "size", 4))
			size = n;
		else if (!strncmp(argv[i], "count", 5))
			count = (unsigned)n;
		else if (!strncmp(argv[i], "depth", 5))
			depth = (unsigned)n;
		else if (!strcmp(argv[i], "asleep"))
			asleep = 1;
	}
	visits = !strcmp(argv[1], "connect") || !strcmp(argv[1], "close");
	pid = fork();
	if (pid == 0) {
		serve(argv[2], argv[1], ready[1]);
		return 0;
	}
	close(ready[1]);
	if (read(ready[0], &c, 1) != 1)
		return 1;
	if (!strcmp(argv[1], "bw"))
		printf("%.1f\n", (double)size * count / one_way(argv[2]) / 1e6);
	else if (!strcmp(argv[1], "rate"))
		printf("%.0f\n", count / one_way(argv[2]));
	else if (!strcmp(argv[1], "lat"))
		printf("%.2f\n", ping_pong(argv[2]) * 1e6);
	else
		printf("%.0f\n", set_up_or_down(argv[2], !strcmp(argv[1], "close")) * 1e6);
	waitpid(pid, NULL, 0);
	return 0;
}
