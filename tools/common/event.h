/* SPDX-License-Identifier: Apache-2.0 */
/* Events: an eventfd(2) that is readable when there is something to look at. Any thread. */
#ifndef TOOLS_EVENT_H
#define TOOLS_EVENT_H

/* One that is not raised; -1 with errno. close(2) ends it. */
int event_open(void);

void event_raise(int fd);

/* No longer raised, if it was. */
void event_clear(int fd);

#endif
