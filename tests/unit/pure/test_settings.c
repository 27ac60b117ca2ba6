/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: defaults, the environment, limits, and messages that name what is wrong. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "core/settings.h"
#include "suite.h"

static int forget_environment(void **state)
{
	(void)state;
	unsetenv("VB_FABRIC");
	unsetenv("VB_DEVICE");
	unsetenv("VB_WIREUP");
	return 0;
}

static void assert_settings(struct vb__settings *s, const struct vb_options *o)
{
	struct vb_error err = { .code = VB_OK };

	assert_int_equal(vb__settings_from(s, o, &err), 0);
	assert_int_equal(err.code, VB_OK);
}

static void assert_refused(const struct vb_options *o, const char *operation, const char *in_cause)
{
	struct vb_error err = { .code = VB_OK };
	struct vb__settings s;

	assert_int_equal(vb__settings_from(&s, o, &err), VB_ERR_INVALID);
	assert_int_equal(err.code, VB_ERR_INVALID);
	assert_string_equal(err.operation, operation);
	assert_non_null(strstr(err.cause, in_cause));
	assert_int_equal(vb__settings_from(&s, o, NULL), VB_ERR_INVALID);
}

static void no_options_and_zeroes_mean_the_documented_defaults(void **state)
{
	static const struct vb_options zero;
	const struct vb_options *options[] = { NULL, &zero };

	(void)state;
	for (size_t i = 0; i < COUNT(options); i++) {
		struct vb__settings s;

		assert_settings(&s, options[i]);
		assert_int_equal(s.fabric, VB_FABRIC_AUTO);
		assert_string_equal(s.device, "");
		assert_int_equal(s.family, AF_UNSPEC);
		assert_int_equal(s.max_message, 256 << 10);
		assert_int_equal(s.depth, 2);
		assert_int_equal(s.connect_timeout_ms, 10000);
		assert_int_equal(s.peer_timeout_ms, 10000);
		assert_int_equal(s.wireup, VB_WIREUP_AUTO);
		assert_int_equal(s.qp.mtu_bytes, 0);
		assert_int_equal(s.qp.ack_timeout, 0);
		assert_int_equal(s.qp.retries, 6);
		assert_int_equal(s.qp.rnr_retries, 7);
		assert_int_equal(s.qp.min_rnr_timer, 12);
		assert_int_equal(s.qp.reads, 16);
		assert_null(s.log.write);
	}
}

static void log_nowhere(void *arg, enum vb_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	(void)line;
}

static void options_are_taken_over(void **state)
{
	char device[] = "mlx5_0";
	struct vb_options o = {
		.fabric = VB_FABRIC_OFI,
		.device = device,
		.family = AF_INET6,
		.max_message_bytes = 1,
		.depth = 3,
		.connect_timeout_ms = 4,
		.peer_timeout_ms = 200,
		.spin_us = 6,
		.log = log_nowhere,
		.log_arg = device,
		.log_level = VB_LOG_DEBUG,
	};
	struct vb__settings s;

	(void)state;
	assert_settings(&s, &o);
	device[0] = '?'; /* the library has its own copy */
	assert_string_equal(s.device, "mlx5_0");
	assert_int_equal(s.fabric, VB_FABRIC_OFI);
	assert_int_equal(s.family, AF_INET6);
	assert_int_equal(s.max_message, 1);
	assert_int_equal(s.depth, 3);
	assert_int_equal(s.connect_timeout_ms, 4);
	assert_int_equal(s.peer_timeout_ms, 200);
	assert_int_equal(s.spin_us, 6);
	assert_ptr_equal(s.log.write, log_nowhere);
	assert_ptr_equal(s.log.arg, device);
	assert_int_equal(s.log.level, VB_LOG_DEBUG);
}

static void spinning_is_off_if_unwanted_or_with_one_cpu_only(void **state)
{
	struct vb_options never = { .spin_us = VB_SPIN_NEVER };
	struct vb__settings s;
	cpu_set_t all, one;

	(void)state;
	assert_settings(&s, &never);
	assert_int_equal(s.spin_us, 0);

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	assert_settings(&s, NULL);
	assert_int_equal(s.spin_us, CPU_COUNT(&all) > 1 ? 20 : 0);

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_settings(&s, NULL);
	assert_int_equal(s.spin_us, 0);
	sched_setaffinity(0, sizeof(all), &all);
}

static void environment_chooses_the_fabric_unless_the_options_do(void **state)
{
	static const struct {
		const char *env;
		enum vb_fabric option, expected;
	} cases[] = {
		{ "verbs", VB_FABRIC_AUTO, VB_FABRIC_VERBS },
		{ "ofi", VB_FABRIC_AUTO, VB_FABRIC_OFI },
		{ "auto", VB_FABRIC_AUTO, VB_FABRIC_AUTO },
		{ "", VB_FABRIC_AUTO, VB_FABRIC_AUTO },
		{ "verbs", VB_FABRIC_OFI, VB_FABRIC_OFI },
		{ "nonsense", VB_FABRIC_VERBS, VB_FABRIC_VERBS },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct vb_options o = { .fabric = cases[i].option };
		struct vb__settings s;

		setenv("VB_FABRIC", cases[i].env, 1);
		assert_settings(&s, &o);
		assert_int_equal(s.fabric, cases[i].expected);
	}
}

static void environment_chooses_the_wire_up_unless_the_options_do(void **state)
{
	struct vb_options o = { .wireup = VB_WIREUP_CM };
	struct vb__settings s;

	(void)state;
	setenv("VB_WIREUP", "tcp", 1);
	assert_settings(&s, NULL);
	assert_int_equal(s.wireup, VB_WIREUP_TCP);
	assert_settings(&s, &o);
	assert_int_equal(s.wireup, VB_WIREUP_CM);
	setenv("VB_WIREUP", "udp", 1);
	assert_refused(NULL, "VB_WIREUP", "\"udp\" is none of auto, cm, tcp");
}

static void environment_chooses_the_device_unless_the_options_do(void **state)
{
	struct vb_options o = { .device = "mlx5_1" };
	struct vb__settings s;

	(void)state;
	setenv("VB_DEVICE", "rxe0", 1);
	assert_settings(&s, NULL);
	assert_string_equal(s.device, "rxe0");
	assert_settings(&s, &o);
	assert_string_equal(s.device, "mlx5_1");
}

static void a_bad_fabric_in_the_environment_is_quoted(void **state)
{
	static const char *const names[] = { "Verbs", "verbs ", "tcp" };

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		setenv("VB_FABRIC", names[i], 1);
		assert_refused(NULL, "VB_FABRIC", names[i]);
		assert_refused(NULL, "VB_FABRIC", "auto, verbs, ofi");
	}
}

static void the_limits_themselves_are_allowed(void **state)
{
	struct vb_options o = { .max_message_bytes = VB_MESSAGE_MAX, .depth = VB_DEPTH_MAX };
	struct vb__settings s;

	(void)state;
	assert_settings(&s, &o);
	assert_int_equal(s.max_message, VB_MESSAGE_MAX);
	assert_int_equal(s.depth, VB_DEPTH_MAX);
}

static void a_bad_value_is_named_with_its_limit(void **state)
{
	static const struct {
		struct vb_options options;
		const char *operation, *in_cause;
	} cases[] = {
		{ { .max_message_bytes = VB_MESSAGE_MAX + 1 }, "max_message_bytes", "1073741825" },
		{ { .max_message_bytes = UINT32_MAX }, "max_message_bytes", "1073741824" },
		{ { .depth = VB_DEPTH_MAX + 1 }, "depth", "1025" },
		{ { .depth = UINT32_MAX }, "depth", "1024" },
		{ { .peer_timeout_ms = 199 }, "peer_timeout_ms", "199" },
		{ { .peer_timeout_ms = 1 }, "peer_timeout_ms", "200" },
		{ { .family = AF_UNIX }, "family", "1" },
		{ { .family = -1 }, "family", "AF_INET6" },
		{ { .fabric = (enum vb_fabric)3 }, "fabric", "3" },
		{ { .fabric = (enum vb_fabric) - 1 }, "fabric", "-1" },
		{ { .wireup = (enum vb_wireup)3 }, "wireup", "3" },
		{ { .qp.mtu_bytes = 1500 }, "qp.mtu_bytes", "1500" },
		{ { .qp.mtu_bytes = 8192 }, "qp.mtu_bytes", "4096" },
		{ { .qp.ack_timeout = 32 }, "qp.ack_timeout", "31" },
		{ { .qp.retries = 8 }, "qp.retries", "8" },
		{ { .qp.rnr_retries = 9 }, "qp.rnr_retries", "9" },
		{ { .qp.min_rnr_timer = 32 }, "qp.min_rnr_timer", "32" },
		{ { .qp.service_level = 16 }, "qp.service_level", "16" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_refused(&cases[i].options, cases[i].operation, cases[i].in_cause);
}

static void a_device_name_is_never_cut(void **state)
{
	char name[65];
	struct vb_options o = { .device = name };
	struct vb__settings s;

	(void)state;
	memset(name, 'd', 64);
	name[64] = '\0';
	assert_refused(&o, "device", name);
	name[63] = '\0';
	assert_settings(&s, &o);
	assert_string_equal(s.device, name);
	name[63] = 'd';
	setenv("VB_DEVICE", name, 1);
	assert_refused(NULL, "device", name);
}

#define in_clean_environment(test) cmocka_unit_test_setup(test, forget_environment)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_clean_environment(no_options_and_zeroes_mean_the_documented_defaults),
		in_clean_environment(options_are_taken_over),
		in_clean_environment(spinning_is_off_if_unwanted_or_with_one_cpu_only),
		in_clean_environment(environment_chooses_the_fabric_unless_the_options_do),
		in_clean_environment(environment_chooses_the_device_unless_the_options_do),
		in_clean_environment(environment_chooses_the_wire_up_unless_the_options_do),
		in_clean_environment(a_bad_fabric_in_the_environment_is_quoted),
		in_clean_environment(the_limits_themselves_are_allowed),
		in_clean_environment(a_bad_value_is_named_with_its_limit),
		in_clean_environment(a_device_name_is_never_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
