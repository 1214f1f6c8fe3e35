/* Numbers in JSON and CSV: whole ones have all their digits, the rest the shortest decimal that
 * reads back as the same number. */
#include "io/folder.h"
#include "io/json.h"
#include "support/comma.h"
#include "support/test.h"

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
TEST(locales_change_nothing) {
    char text[BASIN_NUMBER_TEXT];
    if (!comma_set(*state)) skip();
    assert_string_equal(basin_number_print(text, 0.1), "0.1");
    assert_string_equal(basin_number_print(text, -1.25e-30), "-1.25e-30");
    setlocale(LC_NUMERIC, "C");
}

int main(void) { return tests_run(folder_new, folder_remove); }
