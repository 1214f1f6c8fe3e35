/* Libraries opened at run time: their functions work; what is absent is named, with its package. */
#include "base/library.h"
#include "support/test.h"

/* Pieces of libraries that are mapped; memory of the process's own does not count. */
static void count_mapped(size_t *pieces) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    if (!maps) skip();
    *pieces = 0;
    while (fgets(line, sizeof line, maps)) *pieces += strstr(line, ".so") != NULL;
    fclose(maps);
}

/* Comes first: what is open stays open. */
TEST(presence_is_told_without_opening) {
    bool present[BASIN_LIBRARIES];
    size_t before, after;
    count_mapped(&before);
    for (int i = 0; i < BASIN_LIBRARIES; i++) present[i] = basin_library_present(i);
    count_mapped(&after);
    assert_int_equal(after, before);
    for (int i = 0; i < BASIN_LIBRARIES; i++) {
        bool opens = basin_library_open(basin_library_file(i)) != NULL;
#if defined(BASIN_EMULATED)
        assert_true(present[i] || !opens); /* libraries of the host are there and do not open */
#else
        assert_int_equal(present[i], opens);
#endif
    }
    assert_true(basin_library_file_present("libc.so.6"));
    assert_false(basin_library_file_present("libbasin-of-nowhere.so.1"));
    assert_false(basin_library_file_present("c.so.6")); /* only the end of a name */
    assert_null(basin_library_open("libbasin-of-nowhere.so.1"));
    assert_non_null(strstr(basin_library_why(), "libbasin-of-nowhere.so.1"));
}

TEST(functions_are_found) {
    struct {
        const char *(*version)(void);
    } table = {NULL};
    const basin_library_function wanted[] = {{"archive_version_string", NULL}, {0}};
    if (!basin_library_present(BASIN_LIBRARY_ARCHIVE)) skip();
    assert_ok(basin_library_load(&table, BASIN_LIBRARY_ARCHIVE, wanted, &failure));
    assert_non_null(strstr(table.version(), "libarchive"));
}

TEST(what_is_absent_is_named_with_its_package) {
    void *table[2];
    basin_error error;
    const basin_library_function wanted[] = {{"no_such_function_of_any_library", NULL}, {0}};
    assert_int_equal(basin_library_load(table, BASIN_LIBRARY_MICROHTTPD, wanted, &error),
                     BASIN_UNSUPPORTED);
    assert_non_null(strstr(error.text, "libmicrohttpd, needed for HTTP, cannot be used: "));
    assert_non_null(strstr(error.text, "Debian's package libmicrohttpd12"));
    assert_null(basin_library_find(BASIN_LIBRARY_MICROHTTPD, wanted[0].name));
}

static int answer(void) { return 42; }

/* As in a static program: by address, whatever is installed. */
TEST(what_is_linked_is_not_opened) {
    struct {
        int (*answer)(void);
    } table = {NULL};
    const basin_library_function wanted[] = {{"answer", (void (*)(void))answer}, {0}};
    assert_int_equal(basin_library_load(&table, BASIN_LIBRARY_MICROHTTPD, wanted, NULL), BASIN_OK);
    assert_int_equal(table.answer(), 42);
}

TEST(all_have_a_name_and_a_purpose) {
    for (int i = 0; i < BASIN_LIBRARIES; i++) {
        assert_non_null(basin_library_name(i));
        assert_non_null(basin_library_purpose(i));
    }
    assert_null(basin_library_name(BASIN_LIBRARIES));
    assert_null(basin_library_purpose(BASIN_LIBRARIES));
    assert_int_equal(basin_library_present(BASIN_LIBRARIES), 0);
}
