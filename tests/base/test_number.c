/* Integers in texts: what is read, what is refused, and where the text goes on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/number.h"

static void reads(void **state) {
    (void)state;
    const char *text = " 12 -7x9223372036854775807";
    int64_t value;
    assert_true(basin_integer_read(&value, &text));
    assert_int_equal(value, 12);
    assert_true(basin_integer_read(&value, &text));
    assert_int_equal(value, -7);
    assert_string_equal(text, "x9223372036854775807");
    text++;
    assert_true(basin_integer_read(&value, &text));
    assert_true(value == INT64_MAX);
    assert_string_equal(text, "");
}

static void refuses(void **state) {
    (void)state;
    const char *wrong[] = {"", "x", "-", "9223372036854775808", "-9223372036854775809"};
    for (int i = 0; i < 5; i++) {
        const char *text = wrong[i];
        int64_t value = 5;
        assert_false(basin_integer_read(&value, &text));
        assert_int_equal(value, 5);
        assert_ptr_equal(text, wrong[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads), cmocka_unit_test(refuses)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
