/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a channel. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <verbatim/verbatim.h>

#include "channel/channel_state.h"
#include "channel/inside.h"

static void *prepare(void *arg)
{
	(void)arg;
	for (int i = 0; vb__fabrics[i]; i++)
		if (vb__fabrics[i]->prepare)
			vb__fabrics[i]->prepare();
	return NULL;
}

static pthread_t preparing;
static pid_t preparing_in; /* the process that has this thread; 0: none */

/* exit(3) takes the fabrics' libraries down: not under the thread that starts them. */
static void await_prepared(void)
{
	if (preparing_in == getpid())
		pthread_join(preparing, NULL);
}

static void begin_to_prepare(void)
{
	sigset_t all, before;

	if (atexit(await_prepared) != 0)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&preparing, NULL, prepare, NULL) == 0)
		preparing_in = getpid();
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void vb_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, begin_to_prepare);
}

const char *vb_version(void)
{
	return VB_VERSION;
}

void vb_channel_set_timeout(struct vb_channel *ch, uint32_t timeout_ms)
{
	vb__channel_lock(ch);
	ch->timeout_ms = timeout_ms;
	vb__channel_unlock(ch);
}

int vb_channel_fd(struct vb_channel *ch, struct vb_error *err)
{
	int fd;

	vb__error_clear(err);
	vb__channel_lock(ch);
	fd = vb__loop_open(ch, err);
	vb__channel_unlock(ch);
	return fd;
}

const char *vb_channel_description(const struct vb_channel *ch)
{
	return ch->description;
}

enum vb_wireup vb__channel_wireup(const struct vb_channel *ch)
{
	return ch->ep->wireup;
}

const char *vb_channel_fabric(const struct vb_channel *ch)
{
	return ch->ep->fabric->name;
}

const char *vb_channel_device(const struct vb_channel *ch)
{
	return ch->ep->device;
}

const char *vb_channel_peer(const struct vb_channel *ch)
{
	return ch->ep->peer;
}

size_t vb_channel_max_message(const struct vb_channel *ch)
{
	return ch->max_message;
}

unsigned vb_channel_depth(const struct vb_channel *ch)
{
	return ch->credits.depth;
}

void vb_channel_counters(struct vb_channel *ch, struct vb_counters *counters)
{
	vb__channel_lock(ch);
	*counters = ch->counters;
	vb__channel_unlock(ch);
}
