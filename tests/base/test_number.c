/* Numbers, days and the version in texts: what is read or refused, and printed; in any locale. */
#include <math.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/number.h"
#include "basin/version.h"
#include "support/comma.h"
#include "support/folder.h"
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
        locale_t before = basin_numbers_begin();
        snprintf(text, sizeof text, "%.1f", 1.5);
        assert_string_equal(text, "1.5");
        basin_numbers_end(&before);
    }
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, "1,5");
    setlocale(LC_NUMERIC, "C");
}

/* Whole numbers have all their digits, the rest the shortest decimal that reads back as the same.
 */
TEST(prints_whole_numbers) {
    char text[BASIN_NUMBER_TEXT];
    assert_string_equal(basin_number_print(text, 520560640), "520560640");
    assert_string_equal(basin_number_print(text, -1e15), "-1000000000000000");
    assert_string_equal(basin_number_print(text, 9007199254740992.0), "9007199254740992");
    assert_string_equal(basin_number_print(text, 0), "0");
    assert_string_equal(basin_number_print(text, 1e300), "1e+300");
}

TEST(prints_what_reads_back) {
    static const double value[] = {0.1,  1.0 / 3,           5e-324, 123456.789, 1e16,
                                   -2.5, 9007199254740993.5};
    char text[BASIN_NUMBER_TEXT];
    for (size_t i = 0; i < sizeof value / sizeof *value; i++)
        assert_true(strtod(basin_number_print(text, value[i]), NULL) == value[i]);
    assert_string_equal(basin_number_print(text, 0.1), "0.1");
}

/* JSON has a point, whatever the locale of the program that calls. */
TEST(locales_change_nothing_in_print) {
    char text[BASIN_NUMBER_TEXT];
    if (!comma_set(*state)) skip();
    assert_string_equal(basin_number_print(text, 0.1), "0.1");
    assert_string_equal(basin_number_print(text, -1.25e-30), "-1.25e-30");
    setlocale(LC_NUMERIC, "C");
}

TEST(days_have_their_names) {
    static const struct {
        int64_t seconds;
        const char *day;
    } known[] = {
        {0, "1970-01-01"},          {86399, "1970-01-01"},      {86400, "1970-01-02"},
        {951782400, "2000-02-29"},  {951868800, "2000-03-01"},  {1709164800, "2024-02-29"},
        {1735689599, "2024-12-31"}, {1735689600, "2025-01-01"}, {4107542400, "2100-03-01"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char text[BASIN_DAY_TEXT];
        assert_string_equal(basin_day_print(text, known[i].seconds), known[i].day);
    }
}

/* The string and the three numbers are kept by hand side by side. */
TEST(string_agrees_with_numbers) {
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", BASIN_VERSION_MAJOR, BASIN_VERSION_MINOR,
             BASIN_VERSION_PATCH);
    assert_string_equal(text, BASIN_VERSION_STRING);
    assert_string_equal(text, basin_version());
}

int main(void) { return tests_run(folder_new, folder_remove); }
