/* SPDX-License-Identifier: Apache-2.0 */
/* What a trial tells. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/quantity.h"
#include "info/trial.h"

#define WC_RETRY_EXCEEDED 12 /* IBV_WC_RETRY_EXC_ERR, of a library that need not be here */

static const char black_hole_remedy[] =
	"compare the MTU at both ends and at every switch and tunnel in between (`ip link`, "
	"`ibv_devinfo`); find the largest packet that passes: `ping -M do -s 8972 HOST`, then 4072, "
	"1472; let firewalls pass UDP 4791 in fragments of any size";

static const char *name_of(const struct trial *trial)
{
	return trial->fabric == VB_FABRIC_VERBS ? "verbs" : "ofi";
}

static void judge_unmade(struct findings *to, const struct trial *t, const char *host)
{
	const struct vb_error *e = &t->unmade;
	char remedy[200];

	/* Nobody has said that somebody would be there. */
	if (e->code == VB_ERR_REFUSED) {
		snprintf(remedy, sizeof(remedy), "`rdinfo --serve` at %.100s", host);
		findings_add(to, FINDING_WARNING, name_of(t), remedy,
			     "the way was not tried: nobody serves there");
		return;
	}
	findings_add(to, FINDING_PROBLEM, name_of(t), e->hint, "cannot connect to %.60s: %.300s",
		     host, e->cause);
}

static void judge_round_trip(struct findings *to, const struct trial *t)
{
	findings_add(to, FINDING_OK, name_of(t), NULL, "connected: %.300s", t->description);
	if (t->median_us > 0)
		findings_add(to, FINDING_OK, name_of(t), NULL,
			     "there and back in %.1f us (median), %.1f us at worst", t->median_us,
			     t->worst_us);
	else
		findings_add(to, FINDING_PROBLEM, name_of(t), t->unmade.hint,
			     "connected, but messages of 8 bytes fail: %s", t->unmade.cause);
}

/* Nothing came, rather than that somebody said or did something. */
static bool is_silence(const struct vb_error *e)
{
	if (e->code == VB_ERR_TIMEOUT)
		return true;
	if (e->code != VB_ERR_LOST)
		return false;
	if (e->native_kind == VB_NATIVE_WC)
		return e->native == WC_RETRY_EXCEEDED;
	return (e->native_kind == VB_NATIVE_ERRNO || e->native_kind == VB_NATIVE_FI) &&
	       e->native == ETIMEDOUT;
}

/* Small ones pass and large ones vanish: that is what a wrong MTU on the way looks like. */
static void judge_hole(struct findings *to, const struct trial *t, unsigned i)
{
	const struct trial_step *bad = &t->step[i];

	if (i == 0 || !is_silence(&bad->failed))
		findings_add(to, FINDING_PROBLEM, name_of(t), bad->failed.hint,
			     "messages of %u bytes fail: %s", bad->bytes, bad->failed.cause);
	else
		findings_add(to, FINDING_PROBLEM, name_of(t), black_hole_remedy,
			     "MTU black hole: messages of %u bytes pass, %u bytes do not arrive %s "
			     "(%.200s)",
			     t->step[i - 1].bytes, bad->bytes,
			     bad->got_there ? "from there" : "there", bad->failed.cause);
}

static void judge_bursts(struct findings *to, const struct trial *t)
{
	char text[300] = "", rate[QUANTITY_TEXT];
	size_t at = 0;

	for (unsigned i = 0; i < t->steps; i++) {
		const struct trial_step *step = &t->step[i];

		if (!step->rate) {
			findings_add(
				to, FINDING_PROBLEM, name_of(t), step->failed.hint,
				"single messages pass, but of a burst of %u bytes each not all "
				"do: %.200s",
				step->bytes, step->failed.cause);
			return;
		}
		if (at < sizeof(text))
			at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%u: %s",
					       at ? ", " : "", step->bytes,
					       quantity_rate(rate, step->rate));
	}
	if (t->steps)
		findings_add(to, FINDING_OK, name_of(t), NULL, "bursts by bytes a message: %s",
			     text);
}

static void judge_steps(struct findings *to, const struct trial *t)
{
	for (unsigned i = 0; i < t->steps; i++) {
		if (t->step[i].got_there && t->step[i].came_back)
			continue;
		judge_hole(to, t, i);
		return;
	}
	judge_bursts(to, t);
}

void trial_judge(struct findings *to, const struct trial *t, const char *host)
{
	if (t->pointless)
		findings_add(to, FINDING_OK, name_of(t), NULL, "not tried: %s", t->reason);
	else if (t->unmade.code && !t->description[0])
		judge_unmade(to, t, host);
	else
		judge_round_trip(to, t);
	judge_steps(to, t);
}
