/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka and what it wants included before it. */
#ifndef VB_TEST_SUITE_H
#define VB_TEST_SUITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
