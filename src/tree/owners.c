/* SPDX-License-Identifier: Apache-2.0 */
/* The databases of users and groups may be far away and slow: what they said is remembered. */
#include "tree/owners.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "wire/offer.h"

/* Nobody has so many; a peer that makes them up is not remembered. */
#define REMEMBERED_MAX 4096u
#define ROOM_FOR_RECORD (64u << 10)

struct vb__owner {
	char name[VB__OWNER_MAX + 1];
	bool group, known;
	uint32_t id;
};

static bool is_it(const struct vb__owner *o, bool group, const void *name, size_t len)
{
	return o->group == group && strlen(o->name) == len && memcmp(o->name, name, len) == 0;
}

static void ask(struct vb__owner *o)
{
	char *room = malloc(ROOM_FOR_RECORD);
	struct passwd user, *user_found = NULL;
	struct group group, *group_found = NULL;

	if (!room)
		return;
	if (o->group)
		(void)getgrnam_r(o->name, &group, room, ROOM_FOR_RECORD, &group_found);
	else
		(void)getpwnam_r(o->name, &user, room, ROOM_FOR_RECORD, &user_found);
	o->known = group_found || user_found;
	o->id = group_found ? group.gr_gid : user_found ? user.pw_uid : 0;
	free(room);
}

static void remember(struct vb__owners *owners, const struct vb__owner *o)
{
	size_t room = owners->room ? 2 * owners->room : 16;
	struct vb__owner *list;

	if (owners->count == owners->room) {
		if (room > REMEMBERED_MAX)
			return;
		list = realloc(owners->list, room * sizeof(*list));
		if (!list)
			return;
		owners->list = list;
		owners->room = room;
	}
	owners->last = owners->count;
	owners->list[owners->count++] = *o;
}

uint32_t vb__owners_find(struct vb__owners *owners, bool group, const void *name, size_t len,
			 uint32_t otherwise)
{
	struct vb__owner o = { .group = group };
	size_t i = owners->last;

	if (!len || len > VB__OWNER_MAX)
		return otherwise;
	for (size_t n = 0; n < owners->count; n++, i = (i + 1) % owners->count)
		if (is_it(&owners->list[i], group, name, len)) {
			owners->last = i;
			return owners->list[i].known ? owners->list[i].id : otherwise;
		}
	memcpy(o.name, name, len);
	ask(&o);
	remember(owners, &o);
	return o.known ? o.id : otherwise;
}

void vb__owners_free(struct vb__owners *owners)
{
	free(owners->list);
	*owners = (struct vb__owners){ .list = NULL };
}
