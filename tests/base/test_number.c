/* Numbers in texts: what is read, what is refused, and where the text goes on; in any locale. */
#include <math.h>

#include "base/number.h"
#include "io/folder.h"
#include "support/comma.h"
#include "support/test.h"

TEST(reads) {
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

TEST(refuses) {
    const char *wrong[] = {"", "x", "-", "9223372036854775808", "-9223372036854775809"};
    for (int i = 0; i < 5; i++) {
        const char *text = wrong[i];
        int64_t value = 5;
        assert_false(basin_integer_read(&value, &text));
        assert_int_equal(value, 5);
        assert_ptr_equal(text, wrong[i]);
    }
}

/* What a text reads as, and how much of it is left. */
static void check_reals(void) {
    const struct {
        const char *text;
        double value;
        const char *rest;
    } trial[] = {{"1.5", 1.5, ""},      {" -12.25e2x", -1225, "x"}, {"7", 7, ""},
                 {"1,5", 1, ",5"},      {".5,.25", 0.5, ",.25"},    {"1.2.3", 1.2, ".3"},
                 {"inf", INFINITY, ""}, {"0x1.8p1", 3, ""},         {"x1.5", 0, "x1.5"},
                 {"", 0, ""},           {" 2. ", 2, " "},           {"1e5.5", 1e5, ".5"}};
    for (size_t i = 0; i < sizeof trial / sizeof *trial; i++) {
        char *end;
        double value = basin_real_read(trial[i].text, &end);
        if (value != trial[i].value || strcmp(end, trial[i].rest) != 0)
            fail_msg("'%s' is %g and leaves '%s'", trial[i].text, value, end);
    }
    char text[40];
    basin_real_print(text, sizeof text, 17, -0.1);
    assert_string_equal(text, "-0.10000000000000001");
    basin_real_print(text, sizeof text, 6, 1e6 / 3);
    assert_string_equal(text, "333333");
}

TEST(locales_change_nothing) {
    check_reals();
    if (!comma_set(*state)) skip();
    char text[8];
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, "1,5"); /* or nothing is tested */
    check_reals();
    for (int i = 0; i < 2; i++) {
        BASIN_PLAIN_NUMBERS;
        snprintf(text, sizeof text, "%.1f", 1.5);
        assert_string_equal(text, "1.5");
    }
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, "1,5");
    setlocale(LC_NUMERIC, "C");
}

int main(void) { return tests_run(folder_new, folder_remove); }
