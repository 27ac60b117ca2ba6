/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bare loop of what transfers cannot do without: read a file, hash or seal it, TCP, check or open it, and perhaps
 * write it to a file, by as many threads and connections as there are CPUs at either end. No start, no end, and
 * nothing else that makes it a transfer. So it is what this machine and these libraries let anybody do; prints GB/s.
 *
 *	bare_loop plain|hashed|sealed FILE [TO]
 */
#include <err.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define BLOCK (512 << 10)
#define TAG 16
#define THREADS_MAX 64

/* What follows the data. */
struct trailer {
	uint8_t tag[TAG];
	uint64_t offset, hash;
};
#define WHOLE (BLOCK + sizeof(struct trailer))

static enum {
	PLAIN,
	HASHED,
	SEALED
} how;
static const char *const hows[] = { "plain", "hashed", "sealed" };
static const char *to;
static int file = -1, written = -1, sockets[THREADS_MAX];
static uint64_t file_bytes;
static _Atomic uint64_t taken; /* of the file */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static uint8_t *get_memory(void)
{
	uint8_t *memory =
		mmap(NULL, WHOLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		err(1, "mmap");
	return memory;
}

/* The key is no secret here, so the nonces may be those of another thread, too. */
static EVP_CIPHER_CTX *get_cipher(bool seals)
{
	static const uint8_t key[32] = { 1 };
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();

	if (!cipher || EVP_CipherInit_ex2(cipher, EVP_aes_256_gcm(), key, NULL, seals, NULL) != 1)
		errx(1, "cannot set up AES-256-GCM");
	return cipher;
}

static void crypt_block(EVP_CIPHER_CTX *cipher, uint8_t *block, bool seals, uint64_t number)
{
	uint8_t nonce[12] = { 0 }, *tag = block + BLOCK;
	int n;

	memcpy(nonce, &number, sizeof(number));
	if (EVP_CipherInit_ex2(cipher, NULL, NULL, nonce, seals, NULL) != 1 ||
	    (!seals && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, TAG, tag) != 1) ||
	    EVP_CipherUpdate(cipher, block, &n, block, BLOCK) != 1 ||
	    EVP_CipherFinal_ex(cipher, tag, &n) != 1 ||
	    (seals && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, TAG, tag) != 1))
		errx(1, "a block cannot be %s", seals ? "sealed" : "opened");
}

/* What is told about it. */
static struct trailer *trailer_of(uint8_t *block)
{
	return (struct trailer *)(void *)(block + BLOCK);
}

static void *send_blocks(void *arg)
{
	int fd = *(int *)arg;
	uint8_t *block = get_memory();
	EVP_CIPHER_CTX *cipher = get_cipher(true);
	uint64_t at, number = 0;

	while ((at = atomic_fetch_add(&taken, BLOCK)) + BLOCK <= file_bytes) {
		trailer_of(block)->offset = at;
		if (pread(file, block, BLOCK, (off_t)at) != BLOCK)
			err(1, "read");
		if (how == SEALED)
			crypt_block(cipher, block, true, number++);
		if (how == HASHED)
			trailer_of(block)->hash = XXH3_64bits(block, BLOCK);
		if (send(fd, block, WHOLE, MSG_NOSIGNAL) != (ssize_t)WHOLE)
			err(1, "send");
	}
	shutdown(fd, SHUT_WR);
	return NULL;
}

/* Blocks that were received. The kernel lets one write at a time: whoever does goes on for the others. */
static struct received {
	struct received *next;
	uint8_t *block;
} * unused, *first, **end = &first;
static bool writing;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;

static void make_blocks(unsigned count)
{
	struct received *all = calloc(count, sizeof(*all));

	if (!all)
		err(1, "calloc");
	for (unsigned i = 0; i < count; i++) {
		all[i] = (struct received){ .next = unused, .block = get_memory() };
		unused = &all[i];
	}
}

static struct received *take_unused(void)
{
	struct received *r;

	pthread_mutex_lock(&lock);
	while (!unused)
		pthread_cond_wait(&more, &lock);
	r = unused;
	unused = r->next;
	pthread_mutex_unlock(&lock);
	return r;
}

/* With the lock, which is let go meanwhile. */
static void write_all(void)
{
	writing = true;
	while (first) {
		struct received *r = first;

		first = r->next;
		if (!first)
			end = &first;
		pthread_mutex_unlock(&lock);
		if (to &&
		    pwrite(written, r->block, BLOCK, (off_t)trailer_of(r->block)->offset) != BLOCK)
			err(1, "write");
		pthread_mutex_lock(&lock);
		r->next = unused;
		unused = r;
		pthread_cond_signal(&more);
	}
	writing = false;
}

static void pass_on(struct received *r)
{
	pthread_mutex_lock(&lock);
	r->next = NULL;
	*end = r;
	end = &r->next;
	if (!writing)
		write_all();
	pthread_mutex_unlock(&lock);
}

static void *receive_blocks(void *arg)
{
	int fd = *(int *)arg;
	EVP_CIPHER_CTX *cipher = get_cipher(false);
	struct received *r = take_unused();
	uint64_t number = 0;
	ssize_t n;

	while ((n = recv(fd, r->block, WHOLE, MSG_WAITALL)) == (ssize_t)WHOLE) {
		if (how == SEALED)
			crypt_block(cipher, r->block, false, number++);
		if (how == HASHED && trailer_of(r->block)->hash != XXH3_64bits(r->block, BLOCK))
			errx(1, "a block came with another hash");
		pass_on(r);
		r = take_unused();
	}
	if (n != 0)
		err(1, "receive");
	return NULL;
}

static void run_all(void *(*work)(void *), unsigned count)
{
	pthread_t threads[THREADS_MAX];

	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&threads[i], NULL, work, &sockets[i]) != 0)
			errx(1, "cannot start a thread");
	for (unsigned i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static int listen_here(struct sockaddr_in *at)
{
	socklen_t len = sizeof(*at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*at = (struct sockaddr_in){ .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (fd < 0 || bind(fd, (struct sockaddr *)at, len) != 0 || listen(fd, THREADS_MAX) != 0 ||
	    getsockname(fd, (struct sockaddr *)at, &len) != 0)
		err(1, "listen");
	return fd;
}

/* What libverbatim chooses between two addresses of one host; without it, the system's. */
static void choose_congestion_control(int fd)
{
	static const char name[] = "cubic";

	(void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name) - 1);
}

/* The other end is a process of its own, as with the programs that this is compared to. */
static pid_t start_receiver(unsigned count)
{
	struct sockaddr_in at;
	int listener = listen_here(&at);
	pid_t child = fork();

	if (child < 0)
		err(1, "fork");
	for (unsigned i = 0; i < count; i++) {
		sockets[i] = child ? socket(AF_INET, SOCK_STREAM, 0) : accept(listener, NULL, NULL);
		choose_congestion_control(sockets[i]);
		if (sockets[i] < 0 ||
		    (child && connect(sockets[i], (struct sockaddr *)&at, sizeof(at)) != 0))
			err(1, "connect");
	}
	close(listener);
	if (child)
		return child;
	if (to)
		written = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (to && written < 0)
		err(1, "%s", to);
	make_blocks(3 * count);
	run_all(receive_blocks, count);
	exit(0);
}

static unsigned cpus(void)
{
	cpu_set_t set;
	int count = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;

	return count < THREADS_MAX ? (unsigned)count : THREADS_MAX;
}

int main(int argc, char **argv)
{
	unsigned count = cpus();
	struct stat st;
	double since;
	pid_t child;
	int status;

	while (argc > 1 && how <= SEALED && strcmp(argv[1], hows[how]) != 0)
		how++;
	if (argc < 3 || argc > 4 || how > SEALED)
		errx(2, "usage: bare_loop plain|hashed|sealed FILE [TO]");
	to = argv[3];
	file = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (file < 0 || fstat(file, &st) != 0)
		err(1, "%s", argv[2]);
	file_bytes = (uint64_t)st.st_size;
	child = start_receiver(count);
	since = now();
	run_all(send_blocks, count);
	if (waitpid(child, &status, 0) != child || status != 0)
		errx(1, "the other end has failed");
	printf("%.3f\n", (double)(file_bytes - file_bytes % BLOCK) / (now() - since) / 1e9);
	return 0;
}
