/* SPDX-License-Identifier: Apache-2.0 */
/* The side that asks for measurements. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel/inside.h"
#include "core/clock.h"
#include "perf/perf_rig.h"
#include "transfer/connecting.h"

#define HELLO_MS 5000u
/* The other side may have much memory to register. */
#define READY_MS 30000u

struct vb_perf {
	struct vb__settings settings;
	struct vb__perf_talk talk;
	const struct vb__fabric *fabric;
	struct vb__address there; /* where data connections go */
};

/* ---- Connecting ---- */

static int fail_not_perf(const struct vb_perf *p, struct vb_error *err)
{
	return vb__fail(err, &(struct vb__failure){
				     .code = VB_ERR_PROTOCOL,
				     .operation = "measure with",
				     .object = vb_channel_peer(p->talk.channel),
				     .cause = "what listens there is no rdperf --serve",
				     .hint = "start it there, and check the port",
			     });
}

static int greet(struct vb_perf *p, struct vb_error *err)
{
	struct vb__perf_word word = { .kind = VB__PERF_HELLO };
	struct vb_error why = { .code = VB_OK };
	int rc;

	word.hello.version = VB__PERF_VERSION;
	rc = vb__perf_say(&p->talk, &word, &why);
	if (rc == 0)
		rc = vb__perf_await(&p->talk, VB__PERF_HELLO, vb__now_ns() + vb__ms(HELLO_MS),
				    &word, &why);
	if (rc == VB_ERR_INTERRUPTED || rc == VB_ERR_REFUSED || rc == VB_ERR_VERSION)
		return vb__fail_again(err, &why);
	if (rc)
		return fail_not_perf(p, err);
	return vb__perf_peer_address(&p->talk, p->settings.family, word.hello.port, &p->there, err);
}

static const struct vb__fabric *fabric_named(const char *name)
{
	const struct vb__fabric *const *f = vb__fabrics;

	while (*f && strcmp((*f)->name, name) != 0)
		f++;
	return *f;
}

int vb_perf_connect(const char *host, const char *port, const struct vb_perf_options *options,
		    struct vb_perf **perf, struct vb_error *err)
{
	struct vb_error local = { .code = VB_OK };
	struct vb__errand *connecting;
	struct vb_perf *p = calloc(1, sizeof(*p));
	int rc;

	err = err ? err : &local;
	vb__error_clear(err);
	if (!p)
		return vb__fail_errno(err, ENOMEM, "calloc", NULL);
	rc = vb__perf_talk_from(&p->talk, &p->settings, options, err);
	if (rc == 0 && !host)
		rc = vb__fail_invalid(err, "connect", "no host was given");
	if (rc == 0)
		rc = vb__connecting_start(host, port, &p->settings, &connecting, err);
	if (rc == 0)
		rc = vb__connecting_finish(connecting, p->talk.stop_fd, &p->talk.channel, err);
	if (rc == 0) {
		p->fabric = fabric_named(vb_channel_fabric(p->talk.channel));
		if (vb__channel_wireup(p->talk.channel) == VB_WIREUP_TCP) /* all cells likewise */
			p->settings.wireup = VB_WIREUP_TCP;
		rc = greet(p, err);
	}
	if (rc)
		vb_perf_close(p);
	else
		*perf = p;
	return rc;
}

void vb_perf_close(struct vb_perf *p)
{
	if (!p)
		return;
	vb__perf_part(&p->talk);
	free(p);
}

const char *vb_perf_description(const struct vb_perf *p)
{
	return vb_channel_description(p->talk.channel);
}

const char *vb_perf_fabric(const struct vb_perf *p)
{
	return vb_channel_fabric(p->talk.channel);
}

const char *vb_perf_device(const struct vb_perf *p)
{
	return vb_channel_device(p->talk.channel);
}

/* ---- Measuring ---- */

/* From the wish to connections that stand, and the other side's word to begin. */
static int set_up(struct vb_perf *p, struct vb__perf_rig *rig, struct vb_error *err)
{
	struct vb__perf_word word = { .kind = VB__PERF_CELL, .cell = rig->plan.cell };
	int rc = vb__perf_rig_open(rig, p->fabric, &p->there, err);

	if (rc == 0)
		rc = vb__perf_say(&p->talk, &word, err);
	if (rc == 0)
		rc = vb__perf_await(&p->talk, VB__PERF_READY, vb__now_ns() + vb__ms(READY_MS),
				    &word, err);
	if (rc == 0)
		rc = vb__perf_rig_connect(rig, &word, err);
	if (rc == 0)
		rc = vb__perf_rig_await_begin(rig, vb__now_ns() + vb__ms(READY_MS), err);
	return rc;
}

static double share(uint64_t part, uint64_t of)
{
	return of ? (double)part / (double)of : 0;
}

static void tell_times(const struct vb__perf_rig *rig, struct vb_perf_result *result)
{
	const struct vb__histogram *times = &rig->times;
	const struct vb__moment *begin = &rig->begin, *end = &rig->end;

	result->min_ns = vb__ticks_in_ns(times->least, begin, end);
	result->max_ns = vb__ticks_in_ns(times->most, begin, end);
	result->mean_ns = times->count ? vb__ticks_in_ns(times->sum / times->count, begin, end) : 0;
	result->median_ns = vb__ticks_in_ns(vb__histogram_share(times, 500000), begin, end);
	result->p99_ns = vb__ticks_in_ns(vb__histogram_share(times, 990000), begin, end);
	result->p999_ns = vb__ticks_in_ns(vb__histogram_share(times, 999000), begin, end);
}

/* How many messages of `sent` count: those that have arrived, where that can be different. */
static uint64_t counted(const struct vb__perf_rig *rig, uint64_t sent, uint64_t arrived)
{
	return vb__perf_is_lossy(rig->plan.cell.qp) && vb__perf_takes_receives(rig->plan.cell.op) &&
			       arrived < sent
		       ? arrived
		       : sent;
}

static void tell_rates(const struct vb__perf_rig *rig, struct vb_perf_result *result)
{
	const struct vb__perf_word *there = &rig->word;
	uint64_t sent = vb__perf_rig_posted(rig), back = there->figures.messages;
	uint64_t ours = counted(rig, sent, there->figures.arrived);
	uint64_t theirs = 0;

	result->elapsed_ns = rig->sent_ns - rig->begun_ns;
	if (rig->plan.cell.kind == VB_PERF_LATENCY) {
		result->messages = rig->times.count;
		result->lost = rig->lost;
	} else {
		theirs = counted(rig, back, vb__perf_rig_arrived(rig));
		result->messages = ours + theirs;
		result->lost = sent - ours + back - theirs;
	}
	result->messages_per_second =
		1e9 * share(rig->plan.cell.kind == VB_PERF_LATENCY ? result->messages : ours,
			    result->elapsed_ns) +
		1e9 * share(theirs, there->figures.elapsed_ns);
	result->bytes_per_second = result->messages_per_second * rig->plan.cell.bytes;
}

static void tell(const struct vb__perf_rig *rig, struct vb_perf_result *result)
{
	*result = (struct vb_perf_result){
		.corrupt = rig->word.figures.corrupt,
		.cpu_here = share(rig->cpu_ns, rig->end.ns - rig->begin.ns),
		.cpu_there = share(rig->word.figures.cpu_ns, rig->word.figures.wall_ns),
	};
	for (unsigned i = 0; i < rig->count; i++)
		result->corrupt += rig->rails[i].corrupt;
	tell_rates(rig, result);
	tell_times(rig, result);
}

static int fail_corrupt(const struct vb_perf_result *result, struct vb_error *err)
{
	char cause[120];

	snprintf(cause, sizeof(cause), "%llu of %llu messages were not as they were sent",
		 (unsigned long long)result->corrupt, (unsigned long long)result->messages);
	return vb__fail(err, &(struct vb__failure){ .code = VB_ERR_CORRUPT,
						    .operation = "measure",
						    .cause = cause });
}

int vb_perf_run(struct vb_perf *p, const struct vb_perf_cell *wanted, struct vb_perf_result *result,
		struct vb_error *err)
{
	struct vb_error local = { .code = VB_OK };
	struct vb_perf_cell cell = *wanted;
	struct vb__perf_rig *rig;
	int rc;

	err = err ? err : &local;
	rc = vb_perf_check(&cell, err);
	if (rc)
		return rc;
	vb__perf_cell_settle(&cell);
	rig = malloc(sizeof(*rig));
	if (!rig)
		return vb__fail_errno(err, ENOMEM, "malloc", NULL);
	rc = vb__perf_rig_plan(rig, &p->talk, false, &cell, &p->settings, err);
	if (rc == 0)
		rc = set_up(p, rig, err);
	if (rc == 0)
		rc = vb__perf_rig_run(rig, err);
	if (rc == 0) {
		tell(rig, result);
		rc = result->corrupt ? fail_corrupt(result, err) : 0;
	}
	vb__perf_rig_close(rig);
	free(rig);
	return rc;
}
