/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a listener, as an errand. */
#include "transfer/opening.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/failure.h"

struct opening {
	char *host, *port; /* NULL where none was given */
	struct vb__settings settings;
	struct vb_listener *listener;
};

static int run(void *job, const atomic_bool *given_up, struct vb_error *err)
{
	struct opening *o = job;

	o->settings.given_up = given_up;
	return vb__listener_open(o->host, o->port, &o->settings, &o->listener, err);
}

static void discard(void *job)
{
	struct opening *o = job;

	vb_listener_close(o->listener);
	free(o->host);
	free(o->port);
	free(o);
}

static const struct vb__errand_kind kind = { .run = run, .discard = discard };

int vb__opening_start(const char *host, const char *port, const struct vb__settings *settings,
		      struct vb__errand **opening, struct vb_error *err)
{
	struct opening *o = calloc(1, sizeof(*o));

	if (!o)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	o->settings = *settings;
	o->host = host ? strdup(host) : NULL;
	o->port = port ? strdup(port) : NULL;
	if ((host && !o->host) || (port && !o->port)) {
		discard(o);
		return vb__fail_errno(err, ENOMEM, "strdup", NULL);
	}
	return vb__errand_start(&kind, o, opening, err);
}

int vb__opening_finish(struct vb__errand *opening, int stop_fd, struct vb_listener **listener,
		       struct vb_error *err)
{
	struct opening *o;
	void *job;
	int rc = vb__errand_finish(opening, stop_fd, &job, err);

	if (rc)
		return rc;
	o = job;
	*listener = o->listener;
	o->listener = NULL;
	discard(o);
	return 0;
}
