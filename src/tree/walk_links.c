/* SPDX-License-Identifier: Apache-2.0 */
/* A table of inodes, with chains, that grows. */
#include "tree/walk_links.h"

#include <stdlib.h>

#define PLACES_MIN 256u

struct link {
	struct link *next;
	dev_t dev;
	ino_t ino;
	nlink_t left; /* names that were not met yet */
	uint32_t number;
};

struct vb__links {
	struct link **places;
	size_t place_count; /* a power of two */
	size_t count;
};

struct vb__links *vb__links_create(void)
{
	struct vb__links *links = calloc(1, sizeof(*links));

	if (!links)
		return NULL;
	links->place_count = PLACES_MIN;
	links->places = calloc(links->place_count, sizeof(struct link *));
	if (links->places)
		return links;
	free(links);
	return NULL;
}

void vb__links_destroy(struct vb__links *links)
{
	if (!links)
		return;
	for (size_t i = 0; i < links->place_count; i++)
		while (links->places[i]) {
			struct link *link = links->places[i];

			links->places[i] = link->next;
			free(link);
		}
	free(links->places);
	free(links);
}

static struct link **place_of(struct link **places, size_t count, dev_t dev, ino_t ino)
{
	uint64_t hash = ((uint64_t)ino ^ (uint64_t)dev << 40) * 0x9e3779b97f4a7c15u;

	return &places[(hash >> 32) & (count - 1)];
}

static void grow(struct vb__links *links)
{
	size_t more = links->place_count * 2;
	struct link **places = calloc(more, sizeof(struct link *));

	if (!places)
		return;
	for (size_t i = 0; i < links->place_count; i++)
		while (links->places[i]) {
			struct link *link = links->places[i];
			struct link **place = place_of(places, more, link->dev, link->ino);

			links->places[i] = link->next;
			link->next = *place;
			*place = link;
		}
	free(links->places);
	links->places = places;
	links->place_count = more;
}

static void add(struct vb__links *links, const struct stat *st, uint32_t number)
{
	struct link *link = malloc(sizeof(*link)), **place;

	if (!link)
		return;
	if (links->count >= links->place_count)
		grow(links);
	place = place_of(links->places, links->place_count, st->st_dev, st->st_ino);
	*link = (struct link){ .next = *place,
			       .dev = st->st_dev,
			       .ino = st->st_ino,
			       .left = st->st_nlink - 1,
			       .number = number };
	*place = link;
	links->count++;
}

uint32_t vb__links_meet(struct vb__links *links, const struct stat *st, uint32_t number)
{
	struct link **at = place_of(links->places, links->place_count, st->st_dev, st->st_ino);
	struct link *link;
	uint32_t first;

	while (*at && ((*at)->ino != st->st_ino || (*at)->dev != st->st_dev))
		at = &(*at)->next;
	link = *at;
	if (!link) {
		add(links, st, number);
		return 0;
	}
	first = link->number;
	if (--link->left == 0) {
		*at = link->next;
		free(link);
		links->count--;
	}
	return first;
}
