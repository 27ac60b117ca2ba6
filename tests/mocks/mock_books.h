/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The books of a mocked library: which calls were made in which order, which
 * objects are alive, and which call has to fail. Knows no library in
 * particular. Not for several threads.
 */
#ifndef VB_TESTS_MOCK_BOOKS_H
#define VB_TESTS_MOCK_BOOKS_H

#include <stdbool.h>
#include <stddef.h>

/* ---- For mocks ---- */

/* Enters a call into the journal; returns the errno that it has to fail with, or 0. */
int mock_call(const char *name, const void *object);

/* The same for a call that cannot fail. */
void mock_note(const char *name, const void *object);

/* An object that the library gives out, all zero. Its memory stays until mock_books_reset. */
void *mock_make(const char *kind, size_t size);
void mock_end(const void *object, const char *kind, const char *by);

/* Complains unless it is alive and of this kind. */
bool mock_check(const void *object, const char *kind, const char *by);

/* Something that the real library would hang, crash or leak over. The first one is kept. */
void mock_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Walks the live objects of a kind: NULL starts, NULL ends. */
void *mock_next_alive(const char *kind, const void *after);

/* ---- For tests ---- */

void mock_books_reset(void);

/* The n-th call from now on (1: the next) fails; with `and_all_after` all later ones, too. */
void mock_fail_nth(unsigned n, int errnum, bool and_all_after);

/* The next `times` calls of this name fail. */
void mock_fail_call(const char *name, unsigned times, int errnum);

/* After so many good ones, one call of this name fails. */
void mock_fail_after(const char *name, unsigned after, int errnum);

/* The name of the first call that was made to fail; NULL: none so far. */
const char *mock_failed_call(void);

unsigned mock_calls(void); /* so many stand in the journal */
const char *mock_call_at(unsigned index);
const void *mock_object_at(unsigned index);
unsigned mock_count(const char *name); /* calls of this name */

/* What is wrong so far, or NULL. */
const char *mock_complaint(void);

/* The kind of some object that is alive, or NULL. */
const char *mock_leak(void);

#endif
