/* Plots: ticks at whole numbers, lines to compare with, areas, legends that wrap, histograms. */
#include <math.h>

#include "support/test.h"
#include "view/svg.h"

/* The picture as text; free it. */
static char *draw(const basin_plot *plot) {
    enum { ROOM = 1 << 16 };
    char *text = calloc(ROOM, 1);
    assert_non_null(text);
    FILE *file = fmemopen(text, ROOM, "w");
    assert_non_null(file);
    basin_plot_write(file, plot);
    fclose(file);
    return text;
}

static int count(const char *text, const char *part) {
    int found = 0;
    for (; (text = strstr(text, part)); text += strlen(part)) found++;
    return found;
}

TEST(steps_are_whole) {
    const double x[] = {0, 1, 2, 3}, y[] = {10, 20, 30, 40};
    basin_plot_line line = {"a", x, y, 4, BASIN_PLOT_DOTTED};
    basin_plot plot = {.title = "t", .x_label = "x", .y_label = "y", .line = &line, .lines = 1};
    char *text = draw(&plot);
    assert_non_null(strstr(text, ">0.5</text>"));
    free(text);
    plot.x_whole = true;
    text = draw(&plot);
    assert_null(strstr(text, ">0.5</text>"));
    assert_non_null(strstr(text, ">2</text>"));
    assert_non_null(strstr(text, "data-low=\"0\" data-high=\"3\""));
    free(text);
}

TEST(forms_differ) {
    const double x[] = {0, 1, 2}, y[] = {1, NAN, 2};
    const basin_plot_line line[] = {{"<dots>", x, y, 3, BASIN_PLOT_DOTTED},
                                    {"dashes", x, y, 3, BASIN_PLOT_DASHED},
                                    {"area", x, y, 3, BASIN_PLOT_AREA}};
    basin_plot plot = {.title = "t", .x_label = "x", .y_label = "y", .line = line, .lines = 3};
    char *text = draw(&plot);
    assert_int_equal(count(text, "<circle"), 2);          /* the dots alone, NaN left out */
    assert_int_equal(count(text, "stroke-dasharray"), 2); /* line and legend */
    assert_int_equal(count(text, "fill-opacity"), 1);     /* the area */
    assert_non_null(strstr(text, "&lt;dots&gt;"));
    free(text);
}

static double top_of(const char *text) { return atof(strstr(text, "data-top=\"") + 10); }

TEST(legends_wrap) {
    const double x[] = {0, 1}, y[] = {0, 1};
    const char *name = "a name that is long enough for half a row";
    basin_plot_line line[4];
    for (int i = 0; i < 4; i++) line[i] = (basin_plot_line){name, x, y, 2, BASIN_PLOT_DOTTED};
    basin_plot plot = {.title = "t", .x_label = "x", .y_label = "y", .line = line, .lines = 1};
    char *one = draw(&plot);
    plot.lines = 4;
    char *four = draw(&plot);
    assert_true(top_of(four) > top_of(one));
    free(one);
    free(four);
}

TEST(values_fall_into_bins) {
    const double value[] = {0, 0.1, 0.5, 0.99, 1, 2, -1, NAN};
    double x[6], y[6];
    basin_plot_histogram(x, y, 2, value, 8, 0, 1);
    const double wanted_x[] = {0, 0, 0.5, 0.5, 1, 1}, wanted_y[] = {0, 2, 2, 3, 3, 0};
    for (int i = 0; i < 6; i++) {
        assert_float_equal(x[i], wanted_x[i], 1e-12);
        assert_float_equal(y[i], wanted_y[i], 0);
    }
}
