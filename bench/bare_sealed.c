/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bare loop of what encrypted transfers cannot do without: read a file, AES-256-GCM, TCP, AES-256-GCM,
 * by as many threads and connections as there are CPUs at either end. No hash, no order, no start, and
 * nothing is written. So it is what this machine and this OpenSSL let anybody do; prints GB/s.
 *
 *	bare_sealed FILE [plain]
 */
#include <err.h>
#include <fcntl.h>
#include <netinet/in.h>
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

#define BLOCK (512 << 10)
#define TAG 16
#define THREADS_MAX 64

static bool plain;
static int file = -1, sockets[THREADS_MAX];
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
		mmap(NULL, BLOCK + TAG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

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

static void *send_blocks(void *arg)
{
	int fd = *(int *)arg;
	uint8_t *block = get_memory();
	EVP_CIPHER_CTX *cipher = get_cipher(true);
	uint64_t at, number = 0;

	while ((at = atomic_fetch_add(&taken, BLOCK)) + BLOCK <= file_bytes) {
		if (pread(file, block, BLOCK, (off_t)at) != BLOCK)
			err(1, "read");
		if (!plain)
			crypt_block(cipher, block, true, number++);
		if (send(fd, block, BLOCK + TAG, MSG_NOSIGNAL) != BLOCK + TAG)
			err(1, "send");
	}
	shutdown(fd, SHUT_WR);
	return NULL;
}

static void *receive_blocks(void *arg)
{
	int fd = *(int *)arg;
	uint8_t *block = get_memory();
	EVP_CIPHER_CTX *cipher = get_cipher(false);
	uint64_t number = 0;
	ssize_t n;

	while ((n = recv(fd, block, BLOCK + TAG, MSG_WAITALL)) == BLOCK + TAG)
		if (!plain)
			crypt_block(cipher, block, false, number++);
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
		if (sockets[i] < 0 ||
		    (child && connect(sockets[i], (struct sockaddr *)&at, sizeof(at)) != 0))
			err(1, "connect");
	}
	close(listener);
	if (child)
		return child;
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

	plain = argc == 3 && strcmp(argv[2], "plain") == 0;
	if (argc < 2 || (argc > 2 && !plain))
		errx(2, "usage: bare_sealed FILE [plain]");
	file = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (file < 0 || fstat(file, &st) != 0)
		err(1, "%s", argv[1]);
	file_bytes = (uint64_t)st.st_size;
	child = start_receiver(count);
	since = now();
	run_all(send_blocks, count);
	if (waitpid(child, &status, 0) != child || status != 0)
		errx(1, "the other end has failed");
	printf("%.3f\n", (double)(file_bytes - file_bytes % BLOCK) / (now() - since) / 1e9);
	return 0;
}
