/* Libraries opened at run time: their functions work; what is absent is named, with its package. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/library.h"

static void functions_are_found(void **state) {
    (void)state;
    struct {
        const char *(*version)(void);
    } table = {NULL};
    basin_error error;
    const char *const names[] = {"archive_version_string", NULL};
    if (!basin_library_present(BASIN_LIBRARY_ARCHIVE)) skip();
    assert_int_equal(basin_library_load(&table, BASIN_LIBRARY_ARCHIVE, names, &error), BASIN_OK);
    assert_non_null(strstr(table.version(), "libarchive"));
}

static void what_is_absent_is_named_with_its_package(void **state) {
    (void)state;
    void *table[2];
    basin_error error;
    const char *const names[] = {"no_such_function_of_any_library", NULL};
    assert_int_equal(basin_library_load(table, BASIN_LIBRARY_CURL, names, &error),
                     BASIN_UNSUPPORTED);
    assert_non_null(strstr(error.text, "libcurl, wanted for downloads, cannot be used: "));
    assert_non_null(strstr(error.text, "Debian's package libcurl"));
    assert_null(basin_library_find(BASIN_LIBRARY_CURL, names[0]));
}

static void all_have_a_name_and_a_purpose(void **state) {
    (void)state;
    for (int i = 0; i < BASIN_LIBRARIES; i++) {
        assert_non_null(basin_library_name(i));
        assert_non_null(basin_library_purpose(i));
    }
    assert_null(basin_library_name(BASIN_LIBRARIES));
    assert_null(basin_library_purpose(BASIN_LIBRARIES));
    assert_int_equal(basin_library_present(BASIN_LIBRARIES), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_found),
        cmocka_unit_test(what_is_absent_is_named_with_its_package),
        cmocka_unit_test(all_have_a_name_and_a_purpose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
