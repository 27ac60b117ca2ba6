/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting, as an errand. */
#include "transfer/connecting.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/failure.h"

struct connecting {
	char host[256], port[32];
	struct vb__settings settings;
	struct vb_channel *channel;
};

static int run(void *job, const atomic_bool *given_up, struct vb_error *err)
{
	struct connecting *c = job;

	c->settings.given_up = given_up;
	return vb__channel_connect(c->host, c->port, &c->settings, &c->channel, err);
}

static void discard(void *job)
{
	struct connecting *c = job;

	vb_channel_abort(c->channel);
	free(c);
}

static const struct vb__errand_kind kind = { .run = run, .discard = discard };

int vb__connecting_start(const char *host, const char *port, const struct vb__settings *settings,
			 struct vb__errand **connecting, struct vb_error *err)
{
	struct connecting *c = calloc(1, sizeof(*c));

	if (!c)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	snprintf(c->host, sizeof(c->host), "%s", host);
	snprintf(c->port, sizeof(c->port), "%s", port);
	c->settings = *settings;
	return vb__errand_start(&kind, c, connecting, err);
}

int vb__connecting_finish(struct vb__errand *connecting, int stop_fd, struct vb_channel **channel,
			  struct vb_error *err)
{
	struct connecting *c;
	void *job;
	int rc = vb__errand_finish(connecting, stop_fd, &job, err);

	if (rc)
		return rc;
	c = job;
	*channel = c->channel;
	c->channel = NULL;
	discard(c);
	return 0;
}
