/* The version string and its three numbers are kept by hand side by side: they must agree. */
#include "basin/version.h"
#include "support/test.h"

TEST(string_agrees_with_numbers) {
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", BASIN_VERSION_MAJOR, BASIN_VERSION_MINOR,
             BASIN_VERSION_PATCH);
    assert_string_equal(text, BASIN_VERSION_STRING);
    assert_string_equal(text, basin_version());
}
