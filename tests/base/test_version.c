/* The version string and its three numbers are kept by hand side by side: they must agree. */
#include "basin/version.h"
#include "support/test.h"

static void string_agrees_with_numbers(void **state) {
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", BASIN_VERSION_MAJOR, BASIN_VERSION_MINOR,
             BASIN_VERSION_PATCH);
    assert_string_equal(text, BASIN_VERSION_STRING);
    assert_string_equal(text, basin_version());
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(string_agrees_with_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
