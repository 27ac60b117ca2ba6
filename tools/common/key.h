/* SPDX-License-Identifier: Apache-2.0 */
/* The key that both sides share: where it comes from, and how it disappears. */
#ifndef TOOLS_KEY_H
#define TOOLS_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <verbatim/error.h>

#define KEY_MAX 4096u

struct key {
	unsigned char bytes[KEY_MAX + 2]; /* room for a line's end, and to see that it is too long */
	size_t len;
};

/*
 * Takes VB_KEY out of the environment, where nobody can read it any longer.
 * True if there was one, be it empty.
 */
bool key_from_environment(struct key *key);

/* Takes the key from the command line and overwrites it there. */
int key_from_argument(struct key *key, char *argument, struct vb_error *err);

/* The first line of stdin. Nothing beyond it is read. */
int key_from_stdin(struct key *key, struct vb_error *err);

/* A whole file, less one newline at its end. */
int key_from_file(struct key *key, const char *path, struct vb_error *err);

/* Asks for it on the terminal, unseen. */
int key_from_terminal(struct key *key, struct vb_error *err);

/* VB_ERR_INVALID if it is empty or too long. */
int key_check(const struct key *key, struct vb_error *err);

void key_wipe(struct key *key);

#endif
