/* Figures: every node, every edge once, all within the page, the same again; lines that break,
 * ticks at whole numbers; names that stay text. */
#include <math.h>
#include <unistd.h>

#include "support/test.h"
#include "tasks/common/view/svg.h"

static char path[64];

/* What was drawn; free it. */
static char *drawn(void) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    unlink(path);
    return text;
}

static int count(const char *text, const char *what) {
    int found = 0;
    for (; (text = strstr(text, what)); text++) found++;
    return found;
}

static char *draw_graph(const basin_svg_graph_of *g) {
    snprintf(path, sizeof path, "/tmp/basin-svg-%d", (int)getpid());
    assert_ok(basin_svg_graph(path, g, &failure));
    return drawn();
}

TEST(graphs_are_drawn) {
    static const int32_t edge[] = {0, 1, 1, 0, 1, 2, 2, 1, 3, 4};
    static const double strength[] = {0.25, 0.5, -1, 0, 0.125}, node[] = {1, -2, 0, 0.5, 0};
    static const double at[] = {0, 0, 1, 0, 1, 1, 9, 9, 9, 0};
    static const char *const names[] = {"0", "1", "2", "3", "4"};
    basin_svg_graph_of g = {.title = "a < b",
                            .legend =
                                "what an atom and what is around it add to class 0 by the memory",
                            .nodes = 5,
                            .edges = 5,
                            .edge = edge,
                            .node = node,
                            .strength = strength,
                            .at = at,
                            .name = names};
    char *once = draw_graph(&g), *again = draw_graph(&g);
    assert_string_equal(once, again);
    assert_int_equal(count(once, "<circle"), 5);
    assert_int_equal(count(once, "<line"), 6);
    assert_non_null(strstr(once, "0 - 1: +0.75"));
    assert_non_null(strstr(once, "3 - 4: +0.125"));
    assert_non_null(strstr(once, ">-2 to +2<"));
    assert_non_null(strstr(once, ".title { font-size: 16px"));
    assert_non_null(strstr(once, "x=\"24.0\" y=\"604.0\" text-anchor=\"start\">what an atom"));
    assert_non_null(strstr(once, "a &#60; b"));
    assert_null(strstr(once, "nan"));
    for (const char *c = once; (c = strstr(c, "cx=\"")); c++) {
        double x = strtod(c + 4, NULL), y = strtod(strstr(c, "cy=\"") + 4, NULL);
        assert_true(x > 10 && x < 630 && y > 60 && y < 600);
    }
    free(once);
    free(again);
    const char *const name[] = {"ab<\xc3\xbc\xff"};
    g.nodes = 1, g.edges = 0, g.name = name; /* one node alone */
    g.title = "a file of a long name, which stands before all else.csv, graph 7: class 1";
    once = draw_graph(&g);
    assert_null(strstr(once, "nan"));
    assert_non_null(strstr(once, ">ab&#60;\xc3\xbc\xef\xbf\xbd<"));
    assert_non_null(strstr(once, ".title { font-size: 13.8px")); /* so that it fits */
    free(once);
}

TEST(lines_are_drawn) {
    const double y[] = {1, NAN, 2, 1.5}, flat[] = {2, 2};
    const basin_plot_line line[] = {{"a", y, 4}, {"b", flat, 2}};
    basin_plot plot = {.title = "t", .x_label = "step", .y_label = "energy", .line = line};
    plot.lines = 2;
    snprintf(path, sizeof path, "/tmp/basin-svg-%d", (int)getpid());
    assert_ok(basin_svg_plot(path, &plot, &failure));
    char *text = drawn();
    assert_int_equal(count(text, "<circle"), 5);
    assert_non_null(strstr(text, ">1.6</text>")); /* a tick of the vertical axis */
    assert_null(strstr(text, ">0.5</text>"));     /* steps are whole */
    assert_null(strstr(text, "nan"));
    free(text);
    plot.lines = 0;
    assert_ok(basin_svg_plot(path, &plot, &failure));
    free(drawn());
}
