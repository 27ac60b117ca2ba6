/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deposit: a file is written straight into the receiver's memory, and a secret is handed out for it.
 *
 *	deposit --receive ADDRESS SECRETS FILE        ADDRESS is [HOST]:PORT, e.g. :7471
 *	deposit --send ADDRESS FILE ID                prints the secret that belongs to ID
 *
 * SECRETS is a file of lines "ID SECRET". A message begins with a letter that says what it is:
 *
 *	sender                          receiver
 *	O  length and SHA-256      ->
 *	                           <-   T  a token of memory that was granted for just this
 *	   writes into that memory
 *	D  done                    ->      revokes, and compares the hash
 *	                           <-   G  good
 *	I  its ID                  ->      stores FILE
 *	                           <-   S  the secret
 *
 * In place of each answer there may be an N, no, and why: then the receiver hangs up. It serves one sender after another
 * until one has got its secret. Exit codes: 0 all went well, 1 it failed, 2 usage, 3 the receiver said no.
 */
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "example.h"

#define LARGEST (256u << 20)
#define PATIENCE_MS 5000 /* with a peer who has something to say: anybody may call, and be silent */
#define TEXT_MAX 256

struct offer {
	uint64_t len;
	uint8_t sha256[32];
};

struct message {
	char kind;
	size_t len;
	uint8_t body[TEXT_MAX];
};

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Waits until the channel may have got further. */
static int wait_for_peer(struct vb_channel *channel, uint64_t deadline_ms, struct vb_error *err)
{
	struct pollfd descriptor = { .fd = vb_channel_fd(channel), .events = POLLIN };
	uint64_t now = now_ms();

	if (now < deadline_ms && poll(&descriptor, 1, (int)(deadline_ms - now)) != 0)
		return 0;
	*err = (struct vb_error){ .code = VB_ERR_TIMEOUT, .cause = "that takes too long" };
	return err->code;
}

static int say(struct vb_channel *channel, char kind, const void *body, size_t len,
	       struct vb_error *err)
{
	uint64_t deadline_ms = now_ms() + PATIENCE_MS;
	char message[1 + TEXT_MAX] = { kind };
	int rc;

	memcpy(message + 1, body, len);
	while ((rc = vb_channel_try_send(channel, message, 1 + len, err)) == VB_ERR_AGAIN) {
		rc = wait_for_peer(channel, deadline_ms, err);
		if (rc != 0)
			break;
	}
	return rc;
}

/* The next message. One that is empty or too long is of kind 0. */
static int hear(struct vb_channel *channel, uint64_t patience_ms, struct message *message,
		struct vb_error *err)
{
	uint64_t deadline_ms = now_ms() + patience_ms;
	const void *bytes;
	ssize_t len;

	while ((len = vb_channel_try_recv(channel, &bytes, err)) == VB_ERR_AGAIN) {
		len = wait_for_peer(channel, deadline_ms, err);
		if (len != 0)
			break;
	}
	*message = (struct message){ 0 };
	if (len < 1 || len - 1 > TEXT_MAX)
		return len < 0 ? (int)len : 0;
	message->kind = *(const char *)bytes;
	message->len = (size_t)len - 1;
	memcpy(message->body, (const char *)bytes + 1, message->len);
	return 0;
}

static bool hash(const void *data, size_t len, uint8_t sha256[32])
{
	return EVP_Digest(data, len, sha256, NULL, EVP_sha256(), NULL) == 1;
}

/* ---- Sending ---- */

/* The answer must be of this kind. Returns an exit code. */
static int expect(struct vb_channel *channel, char kind, struct message *answer)
{
	struct vb_error err;

	if (hear(channel, 12 * PATIENCE_MS, answer, &err) != 0)
		return complain("deposit", &err);
	if (answer->kind == kind)
		return 0;
	for (size_t i = 0; i < answer->len; i++)
		if (answer->body[i] < ' ' || answer->body[i] > '~')
			answer->body[i] = '?';
	fprintf(stderr, "deposit: the receiver says no: %.*s\n", (int)answer->len,
		(const char *)answer->body);
	return 3;
}

static int send_file(struct vb_channel *channel, const void *data, size_t len, const char *id)
{
	struct offer offer = { .len = len };
	struct message answer;
	struct vb_token token;
	struct vb_error err;
	int rc;

	if (strlen(id) > TEXT_MAX || !hash(data, len, offer.sha256)) {
		fprintf(stderr, "deposit: the ID is too long, or there is no SHA-256\n");
		return 1;
	}
	if (say(channel, 'O', &offer, sizeof(offer), &err) != 0)
		return complain("deposit", &err);
	rc = expect(channel, 'T', &answer);
	if (rc != 0)
		return rc;
	memcpy(&token, answer.body, sizeof(token));
	if (vb_put(channel, &token, 0, data, len, &err) != 0)
		return complain("deposit", &err);
	if (say(channel, 'D', "", 0, &err) != 0)
		return complain("deposit", &err);
	rc = expect(channel, 'G', &answer);
	if (rc != 0)
		return rc;
	if (say(channel, 'I', id, strlen(id), &err) != 0)
		return complain("deposit", &err);
	rc = expect(channel, 'S', &answer);
	if (rc == 0)
		printf("%.*s\n", (int)answer.len, (char *)answer.body);
	return rc;
}

static int send_side(const struct address *to, const char *path, const char *id)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc;
	struct vb_channel *channel;
	struct vb_error err;
	struct stat st = { 0 };
	void *data = "";

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size)
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd < 0 || data == MAP_FAILED) {
		fprintf(stderr, "deposit: %s: %s\n", path, strerror(errno));
		return 1;
	}
	close(fd);
	if (vb_channel_connect(to->host ? to->host : "localhost", to->port, NULL, &channel, &err) !=
	    0)
		return complain("deposit", &err);
	rc = send_file(channel, data, (size_t)st.st_size, id);
	vb_channel_close(channel, NULL); /* the answers have said it all */
	return rc;
}

/* ---- Receiving ---- */

struct receiver {
	const char *secrets, *path;
	struct vb_channel *channel;
	struct offer offer;
	struct vb_region *memory;
	char why[TEXT_MAX]; /* the sender is sent away */
};

static bool refuse(struct receiver *r, const char *why)
{
	snprintf(r->why, sizeof(r->why), "%s", why);
	return false;
}

static bool refuse_vb(struct receiver *r, const struct vb_error *err)
{
	char line[VB_ERROR_LINE_MAX];

	return refuse(r, vb_error_format(err, line, sizeof(line)));
}

static bool await(struct receiver *r, char kind, uint64_t patience_ms, struct message *message)
{
	struct vb_error err;

	if (hear(r->channel, patience_ms, message, &err) != 0)
		return refuse_vb(r, &err);
	return message->kind == kind || refuse(r, "that is not what comes next");
}

static bool answer(struct receiver *r, char kind, const void *body, size_t len)
{
	struct vb_error err;

	return say(r->channel, kind, body, len, &err) == 0 || refuse_vb(r, &err);
}

static bool take_offer(struct receiver *r)
{
	struct message message;
	struct vb_error err;

	if (!await(r, 'O', PATIENCE_MS, &message))
		return false;
	if (message.len != sizeof(r->offer))
		return refuse(r, "that is no offer");
	memcpy(&r->offer, message.body, sizeof(r->offer));
	if (r->offer.len == 0 || r->offer.len > LARGEST)
		return refuse(r, r->offer.len ? "it is too large" : "it is empty");
	return vb_region_alloc(r->channel, r->offer.len, &r->memory, &err) == 0 ||
	       refuse_vb(r, &err);
}

/* The memory is the sender's from the token until it is done, and never again. */
static bool take_deposit(struct receiver *r)
{
	uint64_t patience_ms = PATIENCE_MS + r->offer.len / 1000; /* 1 MB/s, or it is given up */
	struct message message;
	struct vb_grant *grant;
	struct vb_error err;
	bool ok;

	if (vb_grant(r->memory, 0, r->offer.len, VB_RIGHT_WRITE, &grant, &err) != 0)
		return refuse_vb(r, &err);
	ok = answer(r, 'T', vb_grant_token(grant), sizeof(struct vb_token)) &&
	     await(r, 'D', patience_ms, &message);
	vb_revoke(grant);
	return ok;
}

static bool check_deposit(struct receiver *r)
{
	uint8_t sha256[32];

	if (!hash(vb_region_addr(r->memory), r->offer.len, sha256) ||
	    memcmp(sha256, r->offer.sha256, sizeof(sha256)) != 0)
		return refuse(r, "bad: its SHA-256 is another one");
	return answer(r, 'G', "", 0);
}

static bool store_deposit(struct receiver *r)
{
	FILE *file = fopen(r->path, "wb");
	bool ok = file && fwrite(vb_region_addr(r->memory), r->offer.len, 1, file) == 1;

	if (file && fclose(file) != 0)
		ok = false;
	return ok || refuse(r, "it cannot be stored");
}

/* In a line "ID SECRET". */
static bool find_secret(const char *path, const struct message *id, char secret[TEXT_MAX])
{
	FILE *file = fopen(path, "r");
	char line[2 * TEXT_MAX], name[TEXT_MAX];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "%255s %255[^\n]", name, secret) == 2 &&
			strlen(name) == id->len && !memcmp(name, id->body, id->len);
	if (file)
		fclose(file);
	return found;
}

static bool hand_out_secret(struct receiver *r)
{
	char secret[TEXT_MAX];
	struct message id;

	if (!await(r, 'I', PATIENCE_MS, &id))
		return false;
	if (!find_secret(r->secrets, &id, secret))
		return refuse(r, "nobody is known by that ID");
	return store_deposit(r) && answer(r, 'S', secret, strlen(secret));
}

/* Gives the sender's library some time to take the last words. */
static void hang_up(struct receiver *r)
{
	uint64_t deadline_ms = now_ms() + PATIENCE_MS;
	struct vb_error err;

	while (vb_channel_try_finish(r->channel, &err) == VB_ERR_AGAIN &&
	       wait_for_peer(r->channel, deadline_ms, &err) == 0)
		;
	vb_region_close(r->memory);
	vb_channel_abort(r->channel);
}

static bool serve_sender(struct receiver *r)
{
	bool served = take_offer(r) && take_deposit(r) && check_deposit(r) && hand_out_secret(r);
	struct vb_error err;

	if (!served) {
		fprintf(stderr, "deposit: %s: %s\n", vb_channel_peer(r->channel), r->why);
		say(r->channel, 'N', r->why, strlen(r->why), &err);
	}
	hang_up(r);
	return served;
}

static int receive_side(const struct address *at, const char *secrets, const char *path)
{
	struct vb_listener *listener;
	struct vb_error err;
	bool served = false;
	int rc = vb_listener_open(at->host, at->port, NULL, &listener, &err);

	if (rc != 0)
		return complain("deposit", &err);
	fprintf(stderr, "deposit: listening on port %d\n", vb_listener_port(listener));
	while (rc == 0 && !served) {
		struct receiver r = { .secrets = secrets, .path = path };

		rc = vb_listener_accept(listener, &r.channel, &err);
		if (rc == 0)
			served = serve_sender(&r);
	}
	vb_listener_close(listener);
	return served ? 0 : complain("deposit", &err);
}

int main(int argc, char **argv)
{
	struct address address;

	if (argc == 5 && read_address(argv[2], &address)) {
		if (!strcmp(argv[1], "--receive"))
			return receive_side(&address, argv[3], argv[4]);
		if (!strcmp(argv[1], "--send"))
			return send_side(&address, argv[3], argv[4]);
	}
	fprintf(stderr, "usage: deposit --receive [HOST]:PORT SECRETS FILE\n"
			"       deposit --send HOST:PORT FILE ID\n");
	return 2;
}
