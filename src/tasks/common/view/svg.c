/* Figures as SVG; see svg.h. */
#include "tasks/common/view/svg.h"

#include "base/file.h"
#include "base/number.h"
#include "base/text.h"
#include "base/try.h"

/* Escaped, whatever a name holds; bytes that are not UTF-8 and control characters become U+FFFD. A
 * text longer than `max` characters ends with an ellipsis. */
static void put_text(FILE *file, const char *text, int max) {
    for (int i = 0; *text && i < max; i++) {
        uint32_t point;
        size_t count = basin_text_character(&point, text, strlen(text));
        if (strchr("&<>\"'", *text))
            fprintf(file, "&#%d;", *text);
        else if (!count || point < ' ')
            fputs("\xef\xbf\xbd", file);
        else
            fwrite(text, 1, count, file);
        text += count ? count : 1;
    }
    if (*text) fputs("\xe2\x80\xa6", file);
}

/* Text of a class at a point; `anchor` is start, middle or end. */
static void put_label(FILE *file, const char *class, double x, double y, const char *anchor,
                      const char *text) {
    fprintf(file, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class, x, y,
            anchor);
    put_text(file, text, 100);
    fputs("</text>\n", file);
}

static void put_head(FILE *file, int width, int height, const char *title) {
    double letters = fmax(1, fmin((double)strlen(title), 101)); /* small enough that all fit */
    fprintf(
        file,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
        "height=\"%d\" role=\"img\">\n<style>\n"
        "text { font: 13px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #3d434b }\n"
        ".title { font-size: %.3gpx; font-weight: 600; fill: #16191d }\n"
        ".paper { fill: #fff } .grid { stroke: #e3e6ea } .frame { stroke: #8b929b; fill: none }\n"
        ".line { fill: none; stroke-width: 2; stroke-linejoin: round }\n"
        "@media (prefers-color-scheme: dark) {\n"
        "  text { fill: #b6bdc6 } .title { fill: #eef0f3 }\n"
        "  .paper { fill: #15181c } .grid { stroke: #2b3037 } .frame { "
        "stroke: #6b737d }\n"
        "}\n</style>\n<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n",
        width, height, width, height, fmin(16, 1.7 * (width - 48) / letters), width, height);
    fputs("<title>", file); /* for screen readers */
    put_text(file, title, 100);
    fputs("</title>\n", file);
    put_label(file, "title", 24, 28, "start", title);
}

/* ---- a line plot ---- */

enum { WIDTH = 720, HEIGHT = 440, BOTTOM = HEIGHT - 56, MAX_DOTS = 40 };

typedef struct axis {
    double low, high, step; /* low and high are what the frame shows */
    double from, to;        /* in the picture */
} axis;

/* The data's range, and a step of 1, 2 or 5 times 10^n; the vertical axis ends at ticks. */
static axis axis_of(const basin_plot *plot, bool vertical) {
    axis a = {.low = INFINITY, .high = -INFINITY};
    for (const basin_plot_line *line = plot->line; line < plot->line + plot->lines; line++)
        for (int64_t i = 0; i < line->count; i++) {
            if (!isfinite(line->y[i])) continue;
            a.low = fmin(a.low, vertical ? line->y[i] : (double)i);
            a.high = fmax(a.high, vertical ? line->y[i] : (double)i);
        }
    if (!(a.low <= a.high)) a.low = 0, a.high = 1;
    if (a.high - a.low <= fmax(fabs(a.low), fabs(a.high)) * 1e-9) { /* a flat line */
        double pad = a.low == 0 ? 1 : fabs(a.low) * 0.1;
        a.low -= pad, a.high += pad;
    }
    double raw = (a.high - a.low) / (vertical ? 5 : 8), power = pow(10, floor(log10(raw)));
    a.step = power * (raw <= power ? 1 : raw <= 2 * power ? 2 : raw <= 5 * power ? 5 : 10);
    if (!vertical) a.step = fmax(a.step, 1);
    if (vertical) a.low = floor(a.low / a.step + 1e-9) * a.step;
    if (vertical) a.high = ceil(a.high / a.step - 1e-9) * a.step;
    return a;
}

static double place(const axis *a, double value) {
    return a->from + (value - a->low) / (a->high - a->low) * (a->to - a->from);
}

/* Ticks with their grid lines and numbers. */
static void put_axis(FILE *file, const axis *a, const axis *other, bool vertical) {
    int digits = (int)fmin(fmax(ceil(-log10(a->step) - 1e-9), 0), 12);
    double first = ceil(a->low / a->step - 1e-9);
    int ticks = (int)floor(a->high / a->step + 1e-6 - first);
    for (int i = 0; i <= ticks; i++) {
        double value = (first + i) * a->step, at = place(a, value);
        bool large = fabs(value) >= 1e7;
        char text[40];
        snprintf(text, sizeof text, large ? "%.*g" : "%.*f", large ? 4 : digits, value + 0.0);
        fprintf(file, "<path class=\"grid\" d=\"M%.1f %.1f%c%.1f\"/>", vertical ? other->from : at,
                vertical ? at : other->from, vertical ? 'H' : 'V', other->to);
        put_label(file, "", vertical ? other->from - 8 : at, vertical ? at + 4.5 : other->from + 19,
                  vertical ? "end" : "middle", text);
    }
}

static void put_line(FILE *file, const basin_plot_line *line, const char *colour, const axis *x,
                     const axis *y) {
    bool open = false;
    fprintf(file, "<path class=\"line\" stroke=\"%s\" d=\"", colour);
    for (int64_t i = 0; i < line->count; i++) {
        bool there = isfinite(line->y[i]);
        if (there)
            fprintf(file, "%c%.2f %.2f", open ? 'L' : 'M', place(x, (double)i),
                    place(y, line->y[i]));
        open = there;
    }
    fputs("\"/>\n", file);
    for (int64_t i = 0; i < line->count && line->count <= MAX_DOTS; i++)
        if (isfinite(line->y[i]))
            fprintf(file, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3\" fill=\"%s\"/>\n",
                    place(x, (double)i), place(y, line->y[i]), colour);
}

static void plot_write(FILE *file, const basin_plot *plot) {
    static const char *const colours[] = {"#2b7bba", "#d9772a", "#3b9a5f", "#9563b5"};
    axis x = axis_of(plot, false), y = axis_of(plot, true);
    x.from = 100, x.to = WIDTH - 24, y.from = BOTTOM, y.to = 68;
    put_head(file, WIDTH, HEIGHT, plot->title);
    put_axis(file, &y, &x, true);
    put_axis(file, &x, &y, false);
    fprintf(file, "<path class=\"frame\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", x.from, y.to, y.from,
            x.to);
    double at = x.from;
    for (int k = 0; k < plot->lines; k++) {
        const basin_plot_line *line = &plot->line[k];
        const char *colour = colours[k % 4];
        put_line(file, line, colour, &x, &y);
        fprintf(file, "<path class=\"line\" stroke=\"%s\" d=\"M%.1f 45.5h18\"/>", colour, at);
        put_label(file, "", at + 24, 50, "start", line->name);
        at += 50 + 7 * (double)strlen(line->name); /* letters are about 7 wide */
    }
    put_label(file, "", (x.from + x.to) / 2, BOTTOM + 40, "middle", plot->x_label);
    fprintf(file, "<g transform=\"rotate(-90 18 %d)\">", (BOTTOM + 68) / 2);
    put_label(file, "", 18, (BOTTOM + 68) / 2.0, "middle", plot->y_label);
    fputs("</g>\n</svg>\n", file);
}

basin_status basin_svg_plot(const char *path, const basin_plot *plot, basin_error *error) {
    BASIN_PLAIN_NUMBERS;
    basin_writer writer;
    BASIN_TRY(basin_writer_create(&writer, path, error));
    plot_write(writer.file, plot);
    return basin_writer_commit(&writer, error);
}
