#include "harness.h"
const struct test transfer_tests[] = { { NULL } };
