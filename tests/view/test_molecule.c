/* The picture of a small graph: every node, every edge once, all within the page, the same again.
 */
#include "support/test.h"
#include "view/svg.h"

static char *drawn(const basin_molecule *m) {
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_true(basin_molecule_write(file, m));
    fclose(file);
    return text;
}

static int count(const char *text, const char *what) {
    int found = 0;
    for (; (text = strstr(text, what)); text++) found++;
    return found;
}

TEST(draws) {
    static const int32_t edge[] = {0, 1, 1, 0, 1, 2, 2, 1, 3, 4};
    static const double strength[] = {0.25, 0.5, -1, 0, 0.125}, node[] = {1, -2, 0, 0.5, 0};
    basin_molecule m = {.title = "a < b",
                        .legend = "what it adds",
                        .nodes = 5,
                        .edges = 5,
                        .edge = edge,
                        .node = node,
                        .strength = strength};
    char *once = drawn(&m), *again = drawn(&m);
    assert_string_equal(once, again);
    assert_int_equal(count(once, "<circle"), 5);
    assert_int_equal(count(once, "<line"), 3);
    assert_non_null(strstr(once, "0 - 1: +0.75"));
    assert_non_null(strstr(once, "3 - 4: +0.125"));
    assert_non_null(strstr(once, "-2 to +2: what it adds"));
    assert_non_null(strstr(once, "a &lt; b"));
    assert_null(strstr(once, "nan"));
    for (const char *at = once; (at = strstr(at, "cx=\"")); at++) {
        double x = strtod(at + 4, NULL), y = strtod(strstr(at, "cy=\"") + 4, NULL);
        assert_true(x > 10 && x < 710 && y > 60 && y < 600);
    }
    free(once);
    free(again);
    m.nodes = 1, m.edges = 0; /* one node alone */
    once = drawn(&m);
    assert_null(strstr(once, "nan"));
    free(once);
}
