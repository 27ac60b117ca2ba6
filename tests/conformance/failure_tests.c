#include "harness.h"
const struct test failure_tests[] = { { NULL } };
