#include "harness.h"
const struct test crew_tests[] = { { NULL } };
