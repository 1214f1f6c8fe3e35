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

TEST(lines_are_drawn) {
    const double y[] = {1, NAN, 2, 1.5}, flat[] = {2, 2};
    const basin_plot_line line[] = {{"a", y, 4}, {"b", flat, 2}};
    basin_plot plot = {
        .title = "a < b \xc3\xbc\xff", .x_label = "step", .y_label = "energy", .line = line};
    plot.lines = 2;
    snprintf(path, sizeof path, "/tmp/basin-svg-%d", (int)getpid());
    assert_ok(basin_svg_plot(path, &plot, &failure));
    char *text = drawn();
    assert_int_equal(count(text, "<circle"), 5);
    assert_non_null(strstr(text, ">1.6</text>")); /* a tick of the vertical axis */
    assert_null(strstr(text, ">0.5</text>"));     /* steps are whole */
    assert_null(strstr(text, "nan"));
    assert_non_null(strstr(text, ">a &#60; b \xc3\xbc\xef\xbf\xbd<"));
    free(text);
    plot.lines = 0;
    assert_ok(basin_svg_plot(path, &plot, &failure));
    free(drawn());
}
