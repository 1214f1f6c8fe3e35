/* Tokens on a line: what prints, what does not, what is too long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cli/text/piece.h"

static void expect(const char *bytes, size_t length, const char *want, int columns) {
    char line[BASIN_PIECE_TEXT];
    assert_int_equal(basin_piece_print(line, bytes, length), columns);
    assert_string_equal(line, want);
}

static void prints(void **state) {
    (void)state;
    expect("a b", 3, "a b", 3);
    expect("", 0, "", 0);
    expect("\xc3\xa9\xe6\x97\xa5", 5, "\xc3\xa9\xe6\x97\xa5", 2);
    expect("\n\t\\\0", 4, "\\n\\t\\\\\\x00", 10);
    expect("\x1b[", 2, "\\x1b[", 5);
    expect("\xc2\x85", 2, "\\xc2\\x85", 8); /* a line end to some terminals */
    expect("\xe6\x97", 2, "\\xe6\\x97", 8);
}

static void cuts_long_ones(void **state) {
    char line[BASIN_PIECE_TEXT], bytes[1000];
    (void)state;
    memset(bytes, '\xff', sizeof bytes);
    basin_piece_print(line, bytes, sizeof bytes);
    assert_true(strlen(line) < BASIN_PIECE_TEXT);
    assert_string_equal(line + strlen(line) - 6, "\\xff..");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints),
        cmocka_unit_test(cuts_long_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
