/* SPDX-License-Identifier: Apache-2.0 */
/* Ids to names, by two small tables where the last of those with the same place stays. */
#include "tree/walk_owners.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#define PLACES 256u
#define ANSWER_MAX (1u << 20) /* a group may have many members */

struct owner {
	bool known;
	uint32_t id;
	uint8_t len;
	char name[VB__OWNER_MAX];
};

struct vb__owners {
	struct owner users[PLACES], groups[PLACES];
};

struct vb__owners *vb__owners_create(void)
{
	return calloc(1, sizeof(struct vb__owners));
}

void vb__owners_destroy(struct vb__owners *owners)
{
	free(owners);
}

static int ask_user(uint32_t id, char *answer, size_t room, const char **name)
{
	struct passwd entry, *found = NULL;
	int errnum = getpwuid_r(id, &entry, answer, room, &found);

	*name = found ? found->pw_name : "";
	return errnum;
}

static int ask_group(uint32_t id, char *answer, size_t room, const char **name)
{
	struct group entry, *found = NULL;
	int errnum = getgrgid_r(id, &entry, answer, room, &found);

	*name = found ? found->gr_name : "";
	return errnum;
}

/* What cannot be found out, or is too long, has no name. */
static void ask(struct owner *owner, int (*who)(uint32_t, char *, size_t, const char **))
{
	const char *name = "";
	char *answer = NULL, *larger;
	size_t room = 2048;
	int errnum;

	do {
		larger = realloc(answer, room *= 2);
		if (!larger)
			break;
		answer = larger;
		errnum = who(owner->id, answer, room, &name);
	} while (errnum == EINTR || (errnum == ERANGE && room < ANSWER_MAX));
	if (larger && strlen(name) <= VB__OWNER_MAX) {
		owner->len = (uint8_t)strlen(name);
		memcpy(owner->name, name, owner->len);
	}
	free(answer);
}

static struct vb__slice look_up(struct owner *places, uint32_t id,
				int (*who)(uint32_t, char *, size_t, const char **))
{
	struct owner *owner = &places[id % PLACES];

	if (!owner->known || owner->id != id) {
		*owner = (struct owner){ .known = true, .id = id };
		ask(owner, who);
	}
	return (struct vb__slice){ .data = (const uint8_t *)owner->name, .len = owner->len };
}

struct vb__slice vb__owners_user(struct vb__owners *owners, uid_t uid)
{
	return look_up(owners->users, uid, ask_user);
}

struct vb__slice vb__owners_group(struct vb__owners *owners, gid_t gid)
{
	return look_up(owners->groups, gid, ask_group);
}
