/* SPDX-License-Identifier: Apache-2.0 */
/* Journal, live objects and planned failures of the mocks. */
#include "mock_books.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mock_system.h"

#define CALLS_MAX 16384
#define OBJECTS_MAX 1024

struct object {
	const char *kind;
	bool alive;
	void *memory;
};

static struct {
	const char *name;
	const void *object;
} journal[CALLS_MAX];

static struct object objects[OBJECTS_MAX];
static unsigned calls, object_count;
static char complaint[200];

static struct {
	unsigned nth; /* counted down; 0: none */
	bool and_all_after;
	const char *name;
	unsigned after, times;
	int errnum;
	const char *failed;
} plan;

void mock_books_reset(void)
{
	for (unsigned i = 0; i < object_count; i++)
		free(objects[i].memory);
	calls = object_count = 0;
	complaint[0] = '\0';
	memset(&plan, 0, sizeof(plan));
}

void mock_note(const char *name, const void *object)
{
	if (calls == CALLS_MAX) {
		mock_complain("endless calls of %s", name);
		return;
	}
	journal[calls].name = name;
	journal[calls++].object = object;
}

int mock_call(const char *name, const void *object)
{
	bool fail = false;

	mock_note(name, object);
	if (plan.nth && --plan.nth == 0) {
		fail = true;
		plan.nth = plan.and_all_after;
	}
	if (plan.times && !strcmp(plan.name, name)) {
		fail = plan.after == 0;
		plan.times -= fail;
		plan.after -= !fail;
	}
	if (fail && !plan.failed)
		plan.failed = name;
	return fail ? plan.errnum : 0;
}

void mock_complain(const char *format, ...)
{
	va_list args;

	if (complaint[0])
		return;
	va_start(args, format);
	vsnprintf(complaint, sizeof(complaint), format, args);
	va_end(args);
}

void *mock_make(const char *kind, size_t size)
{
	struct object *o = &objects[object_count++];

	if (object_count > OBJECTS_MAX)
		abort();
	*o = (struct object){ .kind = kind, .alive = true, .memory = mock_system_calloc(size) };
	return o->memory;
}

static struct object *find(const void *memory)
{
	for (unsigned i = 0; i < object_count; i++)
		if (objects[i].memory == memory)
			return &objects[i];
	return NULL;
}

bool mock_check(const void *object, const char *kind, const char *by)
{
	struct object *o = find(object);

	if (!o || strcmp(o->kind, kind) != 0)
		mock_complain("%s got something that is no %s", by, kind);
	else if (!o->alive)
		mock_complain("%s got a %s that was destroyed", by, kind);
	return o && o->alive;
}

void mock_end(const void *object, const char *kind, const char *by)
{
	if (mock_check(object, kind, by))
		find(object)->alive = false;
}

void *mock_next_alive(const char *kind, const void *after)
{
	unsigned i = after ? (unsigned)(find(after) - objects) + 1 : 0;

	for (; i < object_count; i++)
		if (objects[i].alive && !strcmp(objects[i].kind, kind))
			return objects[i].memory;
	return NULL;
}

void mock_fail_nth(unsigned n, int errnum, bool and_all_after)
{
	plan.nth = n;
	plan.errnum = errnum;
	plan.and_all_after = and_all_after;
}

void mock_fail_call(const char *name, unsigned times, int errnum)
{
	plan.name = name;
	plan.after = 0;
	plan.times = times;
	plan.errnum = errnum;
}

void mock_fail_after(const char *name, unsigned after, int errnum)
{
	mock_fail_call(name, 1, errnum);
	plan.after = after;
}

const char *mock_failed_call(void)
{
	return plan.failed;
}

unsigned mock_calls(void)
{
	return calls;
}

const char *mock_call_at(unsigned index)
{
	return journal[index].name;
}

const void *mock_object_at(unsigned index)
{
	return journal[index].object;
}

unsigned mock_count(const char *name)
{
	unsigned n = 0;

	for (unsigned i = 0; i < calls; i++)
		n += !strcmp(journal[i].name, name);
	return n;
}

const char *mock_complaint(void)
{
	return complaint[0] ? complaint : NULL;
}

const char *mock_leak(void)
{
	for (unsigned i = 0; i < object_count; i++)
		if (objects[i].alive)
			return objects[i].kind;
	return NULL;
}
