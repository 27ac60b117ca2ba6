/* SPDX-License-Identifier: Apache-2.0 */
/* Rigs: making the connections, and looking around while they are used. */
#include "perf/perf_rig.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "core/clock.h"
#include "perf/perf_datagrams.h"
#include "wire/bytes.h"

#define TICK_MS 20u
#define SHOW_MS 200u
#define SLEEP_MS 100
#define SLEEP_FOR_LEDGER_MS 1
#define CONNECT_MS 10000u
#define KNOCK_MS 50u

/* After a connection broke: so long for the other side to say why. */
#define EXPLAIN_MS 1500u

int vb__perf_rig_plan(struct vb__perf_rig *rig, struct vb__perf_talk *talk, bool serves,
		      const struct vb_perf_cell *cell, const struct vb__settings *settings,
		      struct vb_error *err)
{
	bool answers = cell->kind == VB_PERF_LATENCY && cell->op != VB_PERF_READ &&
		       !vb__perf_is_atomic(cell->op);

	*rig = (struct vb__perf_rig){
		.plan = {
			.cell = *cell,
			.settings = settings,
			.is_target = serves || cell->both_ways || answers,
		},
		.talk = talk,
		.serves = serves,
	};
	return vb__perf_layout(&rig->plan.cell, &rig->plan.layout, err);
}

void vb__perf_rig_close(struct vb__perf_rig *rig)
{
	for (unsigned i = 0; rig && i < rig->plan.cell.rails; i++)
		vb__perf_rail_close(&rig->plan, &rig->rails[i]);
}

/* ---- Connecting ---- */

static int open_datagrams(struct vb__perf_rig *rig, enum vb_fabric fabric,
			  const struct vb__address *there, struct vb_error *err)
{
	struct vb__address here;
	int rc = vb__perf_dg_here(there, &here, err);

	for (; rc == 0 && rig->count < rig->plan.cell.rails; rig->count++)
		rc = vb__perf_dg_open(&rig->plan, &rig->rails[rig->count], fabric, &here, err);
	return rc;
}

int vb__perf_rig_offer(struct vb__perf_rig *rig, enum vb_fabric fabric, struct vb__perf_word *ready,
		       struct vb_error *err)
{
	struct vb__address there;
	int rc;

	if (rig->plan.cell.qp != VB_PERF_UD)
		return 0;
	rc = vb__perf_peer_address(rig->talk, rig->plan.settings->family, 9, &there, err);
	if (rc == 0)
		rc = open_datagrams(rig, fabric, &there, err);
	for (unsigned i = 0; rc == 0 && i < rig->count; i++)
		vb__put16(ready->tail + 2 * i, rig->rails[i].dg->port);
	ready->tail_len = 2 * rig->count;
	return rc;
}

int vb__perf_rig_open(struct vb__perf_rig *rig, const struct vb__fabric *fabric,
		      const struct vb__address *there, struct vb_error *err)
{
	struct vb__ep_attr attr = vb__perf_rail_attr(&rig->plan);
	uint64_t deadline = vb__now_ns() + vb__ms(CONNECT_MS);
	int rc = 0;

	rig->there = *there;
	if (rig->plan.cell.qp == VB_PERF_UD)
		return open_datagrams(rig, fabric->id, there, err);
	for (; rc == 0 && rig->count < rig->plan.cell.rails; rig->count++) {
		struct vb__perf_rail *rail = &rig->rails[rig->count];

		rc = vb__ep_open(fabric, &attr, there, deadline, &rail->ep, err);
		if (rc == 0)
			rc = vb__perf_rail_equip(&rig->plan, rail, err);
	}
	return rc;
}

static int fail_foreign(const struct vb__ep *ep, struct vb_error *err)
{
	return vb__fail(err,
			&(struct vb__failure){
				.code = VB_ERR_PROTOCOL,
				.operation = "connect to",
				.object = ep->peer,
				.cause = "what answered is not the other side of this measurement",
			});
}

static int connect_rail(struct vb__perf_rig *rig, unsigned number, uint64_t deadline_ns,
			struct vb_error *err)
{
	struct vb__perf_rail *rail = &rig->rails[number];
	struct vb__perf_pass pass = vb__perf_rail_pass(&rig->plan, rail, number);
	uint8_t bytes[VB__PERF_PASS];
	int rc;

	vb__perf_pass_encode(bytes, &pass);
	rc = vb__ep_connect(rail->ep, bytes, sizeof(bytes), deadline_ns, err);
	if (rc)
		return rc;
	if (!vb__perf_pass_decode(&rail->peer, rail->ep->peer_data, rail->ep->peer_data_len) ||
	    rail->peer.key != rig->plan.key)
		return fail_foreign(rail->ep, err);
	return rail->ep->caps & VB__CAP_CONNECTOR_FIRST ? vb__perf_rail_open_talk(rail, err) : 0;
}

/* A broken connection is often only the consequence of what the other side is about to say. */
static int explain(struct vb__perf_rig *rig, const struct vb_error *broken, struct vb_error *err)
{
	struct vb_error said = { .code = VB_OK };
	uint64_t deadline = vb__now_ns() + vb__ms(EXPLAIN_MS);
	struct vb__perf_word word;

	if (broken->code == VB_ERR_INTERRUPTED || rig->heard)
		return vb__fail_again(err, broken);
	do {
		/* It may have said something else before. */
		vb__error_clear(&said);
		vb__perf_await(rig->talk, VB__PERF_REFUSED, deadline, &word, &said);
	} while (said.code == VB_ERR_PROTOCOL && vb__now_ns() < deadline);
	/* That its time is over may also be what the other side says. */
	if ((said.code == VB_ERR_TIMEOUT && vb__now_ns() >= deadline) ||
	    said.code == VB_ERR_PROTOCOL)
		return vb__fail_again(err, broken);
	return vb__fail_again(err, &said);
}

static int resolve_rail(struct vb__perf_rig *rig, unsigned number,
			const struct vb__perf_word *ready, uint64_t deadline_ns,
			struct vb_error *err)
{
	struct vb__address there = rig->there;

	if (ready->tail_len < 2 * (number + 1))
		return vb__fail(err, &(struct vb__failure){ .code = VB_ERR_PROTOCOL,
							    .operation = "measure",
							    .cause = "the other side named no "
								     "port for datagrams" });
	vb__address_set_port(&there, vb__get16(ready->tail + 2 * number));
	return vb__perf_dg_resolve(&rig->rails[number], &there, deadline_ns, err);
}

int vb__perf_rig_connect(struct vb__perf_rig *rig, const struct vb__perf_word *ready,
			 struct vb_error *err)
{
	uint64_t deadline = vb__now_ns() + vb__ms(CONNECT_MS);
	struct vb_error broken = { .code = VB_OK };
	int rc = 0;

	rig->plan.key = ready->key;
	for (unsigned i = 0; rc == 0 && i < rig->count; i++)
		rc = rig->rails[i].dg ? resolve_rail(rig, i, ready, deadline, &broken)
				      : connect_rail(rig, i, deadline, &broken);
	return rc ? explain(rig, &broken, err) : 0;
}

int vb__perf_rig_await_begin(struct vb__perf_rig *rig, uint64_t deadline_ns, struct vb_error *err)
{
	struct vb__perf_word word;
	struct vb_error why;
	uint64_t slice;
	int rc;

	/* In slices: a knock may have got lost. */
	do {
		why = (struct vb_error){ .code = VB_OK };
		for (unsigned i = 0; i < rig->count; i++)
			if (rig->rails[i].dg)
				vb__perf_dg_knock(&rig->plan, &rig->rails[i]);
		slice = vb__now_ns() + vb__ms(KNOCK_MS);
		rc = vb__perf_await(rig->talk, VB__PERF_BEGIN,
				    slice < deadline_ns ? slice : deadline_ns, &word, &why);
	} while (rc == VB_ERR_TIMEOUT && vb__now_ns() >= slice && vb__now_ns() < deadline_ns);
	return rc ? vb__fail_again(err, &why) : 0;
}

/* ---- Accepting ---- */

static int take_request(struct vb__perf_rig *rig, struct vb__request *request, struct vb_error *err)
{
	struct vb__ep_attr attr = vb__perf_rail_attr(&rig->plan);
	struct vb__perf_rail *rail;
	struct vb__perf_pass pass;
	uint8_t bytes[VB__PERF_PASS];
	int rc;

	if (!vb__perf_pass_decode(&pass, request->data, request->data_len) ||
	    pass.key != rig->plan.key || pass.rail >= rig->plan.cell.rails ||
	    rig->rails[pass.rail].ep) {
		vb__request_reject(request, NULL, 0);
		return 0;
	}
	rail = &rig->rails[pass.rail];
	rc = vb__ep_accept_open(request, &attr, &rail->ep, err);
	if (rc == 0)
		rc = vb__perf_rail_equip(&rig->plan, rail, err);
	if (rc)
		return rc;
	rail->peer = pass;
	rail->expects_opening = rail->ep->caps & VB__CAP_CONNECTOR_FIRST;
	pass = vb__perf_rail_pass(&rig->plan, rail, pass.rail);
	vb__perf_pass_encode(bytes, &pass);
	rig->count++;
	return vb__ep_accept(rail->ep, bytes, sizeof(bytes), err);
}

/* How many stand; negative if one has failed. */
static int look_at_rails(struct vb__perf_rig *rig, struct vb_error *err)
{
	int standing = 0;

	for (unsigned i = 0; i < rig->plan.cell.rails; i++) {
		struct vb__perf_rail *rail = &rig->rails[i];
		bool is_open = rail->ep || rail->dg;
		int rc = is_open ? vb__perf_rail_poll(&rig->plan, rail, err) : 0;

		if (rc >= 0 && is_open)
			rc = vb__perf_rail_repay(&rig->plan, rail, err);
		if (rc < 0)
			return rc;
		standing += rail->to ||
			    (rail->ep && rail->ep->state == VB__EP_UP && !rail->expects_opening);
	}
	return standing;
}

/* True if it was safe to sleep, and something may be there now. */
static void sleep_on_all(struct vb__perf_rig *rig, struct vb__pep *pep)
{
	struct pollfd fds[VB_PERF_RAILS_MAX + 3];
	nfds_t n = 0;

	for (unsigned i = 0; i < rig->plan.cell.rails; i++) {
		if (vb__perf_rail_arm(&rig->rails[i], rig->sends) != 0)
			return;
		fds[n++] =
			(struct pollfd){ .fd = vb__perf_rail_fd(&rig->rails[i]), .events = POLLIN };
	}
	if (pep) {
		if (vb__pep_arm(pep) != 0)
			return;
		fds[n++] = (struct pollfd){ .fd = pep->wait_fd, .events = POLLIN };
	}
	fds[n++] = (struct pollfd){ .fd = rig->talk->stop_fd, .events = POLLIN };
	/* A word that nobody has taken yet keeps it readable. */
	fds[n] = (struct pollfd){ .fd = rig->talk->quiet ? vb_channel_fd(rig->talk->channel, NULL)
							 : -1,
				  .events = POLLIN };
	if (poll(fds, n + 1, rig->awaits_ledger ? SLEEP_FOR_LEDGER_MS : SLEEP_MS) > 0 &&
	    fds[n].revents)
		rig->talk->quiet = false;
}

int vb__perf_rig_accept(struct vb__perf_rig *rig, struct vb__pep *pep, struct vb_error *err)
{
	uint64_t deadline = vb__now_ns() + vb__ms(CONNECT_MS);
	struct vb__request *request;
	int rc;

	for (;;) {
		while ((rc = vb__pep_next(pep, &request, err)) > 0) {
			rc = take_request(rig, request, err);
			if (rc)
				return rc;
		}
		if (rc == 0)
			rc = look_at_rails(rig, err);
		if (rc < 0 || rc == (int)rig->plan.cell.rails)
			return rc < 0 ? rc : 0;
		rc = vb__perf_rig_tick(rig, err);
		if (rc)
			return rc;
		if (vb__now_ns() > deadline)
			return vb__fail(err, &(struct vb__failure){
						     .code = VB_ERR_TIMEOUT,
						     .operation = "measure",
						     .cause = "the data connections did not come",
					     });
		sleep_on_all(rig, pep);
	}
}

/* ---- Looking around ---- */

uint64_t vb__perf_rig_posted(const struct vb__perf_rig *rig)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < rig->count; i++)
		sum += rig->rails[i].posted;
	return sum;
}

uint64_t vb__perf_rig_arrived(const struct vb__perf_rig *rig)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < rig->count; i++)
		sum += rig->rails[i].arrived;
	return sum;
}

static void show(struct vb__perf_rig *rig, uint64_t now)
{
	uint64_t messages = vb__perf_rig_posted(rig);
	struct vb_perf_progress progress = {
		.elapsed_ns = rig->begun_ns ? vb__now_ns() - rig->begun_ns : 0,
		.messages = messages,
		.bytes = messages * rig->plan.cell.bytes,
	};

	if (!rig->talk->progress || now - rig->shown_ns < vb__ms(SHOW_MS))
		return;
	rig->shown_ns = now;
	rig->talk->progress(rig->talk->progress_arg, &progress);
}

/* Can the other side have sent what it says? Who has only received has sent nothing to compare. */
static bool is_possible(const struct vb__perf_rig *rig)
{
	uint64_t receives = 0;

	if (!rig->serves && !rig->plan.cell.both_ways)
		return true;
	for (unsigned i = 0; i < rig->count; i++)
		receives += rig->rails[i].receives;
	return vb__perf_is_possible(&rig->plan.cell, rig->word.figures.messages,
				    vb__perf_rig_arrived(rig), receives);
}

/* Only the word that it is done is expected meanwhile. */
static int listen_in(struct vb__perf_rig *rig, struct vb_error *err)
{
	enum vb__perf_word_kind expected = rig->serves ? VB__PERF_DONE : VB__PERF_FIGURES;
	int rc;

	if (rig->heard)
		return 0;
	rc = vb__perf_hear(rig->talk, &rig->word, err);
	if (rc <= 0)
		return rc;
	if (rig->word.kind != expected)
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_PROTOCOL,
					     .operation = "measure",
					     .cause = "the other side says what is out of place",
				     });
	if (!is_possible(rig))
		return vb__fail(err, &(struct vb__failure){
					     .code = VB_ERR_PROTOCOL,
					     .operation = "measure",
					     .cause = "the other side says that it has sent what "
						      "it cannot have",
				     });
	rig->heard = true;
	return 0;
}

int vb__perf_rig_tick(struct vb__perf_rig *rig, struct vb_error *err)
{
	uint64_t now = vb__now_coarse_ns();
	int rc;

	if (now - rig->ticked_ns < vb__ms(TICK_MS))
		return 0;
	rig->ticked_ns = now;
	show(rig, now);
	if (rig->talk->meanwhile)
		rig->talk->meanwhile(rig->talk->meanwhile_arg);
	rc = vb__perf_stopped(rig->talk, err);
	if (rc == 0)
		rc = listen_in(rig, err);
	return rc == 0 && rig->deadline_ns ? vb__perf_time_check(rig, now, err) : rc;
}

int vb__perf_rig_idle(struct vb__perf_rig *rig, bool asleep, struct vb_error *err)
{
	int rc;

	if (!asleep)
		return vb__perf_rig_is_due(rig) ? vb__perf_rig_tick(rig, err) : 0;
	rc = vb__perf_rig_tick(rig, err);
	if (rc)
		return rc;
	if (!rig->talk->quiet)
		rc = listen_in(rig, err);
	if (rc == 0)
		sleep_on_all(rig, NULL);
	return rc;
}

int vb__perf_rig_say_done(struct vb__perf_rig *rig, struct vb_error *err)
{
	struct vb__perf_word done = { .kind = VB__PERF_DONE };

	done.figures.messages = vb__perf_rig_posted(rig);
	return rig->serves ? 0 : vb__perf_say(rig->talk, &done, err);
}

/* ---- Running ---- */

static uint64_t cpu_now(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
}

int vb__perf_rig_run(struct vb__perf_rig *rig, struct vb_error *err)
{
	const struct vb_perf_cell *cell = &rig->plan.cell;
	uint64_t cpu = cpu_now();
	struct vb_error broken = { .code = VB_OK };
	int rc;

	vb__perf_time_start(rig);
	rig->begin = vb__moment_now();
	if (cell->kind == VB_PERF_BANDWIDTH || (rig->serves && !vb__perf_is_answered(cell->op)))
		rc = vb__perf_flow(rig, &broken);
	else
		rc = rig->serves ? vb__perf_pong(rig, &broken) : vb__perf_ping(rig, &broken);
	rig->cpu_ns = cpu_now() - cpu;
	rig->end = vb__moment_now();
	for (unsigned i = 0; rc == 0 && i < rig->count; i++)
		vb__perf_rail_check_memory(&rig->plan, &rig->rails[i]);
	return rc ? explain(rig, &broken, err) : 0;
}
