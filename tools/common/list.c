/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of texts. */
#include "common/list.h"

#include <stdlib.h>
#include <string.h>

int list_add_part(struct list *list, const char *text, size_t len)
{
	char *copy;

	if (list->count + 2 > list->room) {
		size_t room = list->room ? 2 * list->room : 8;
		char **more = reallocarray(list->item, room, sizeof(*more));

		if (!more)
			return -1;
		list->item = more;
		list->room = room;
	}
	copy = malloc(len + 1);
	if (!copy)
		return -1;
	memcpy(copy, text, len);
	copy[len] = '\0';
	list->item[list->count++] = copy;
	list->item[list->count] = NULL;
	return 0;
}

int list_add(struct list *list, const char *text)
{
	return list_add_part(list, text, strlen(text));
}

const char *const *list_texts(const struct list *list)
{
	static const char *const none[] = { NULL };

	return list->count ? (const char *const *)list->item : none;
}

void list_free(struct list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->item[i]);
	free(list->item);
	*list = (struct list){ 0 };
}
