#include "harness.h"
const struct test door_tests[] = { { NULL } };
