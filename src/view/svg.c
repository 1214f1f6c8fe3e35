/* Parts of pictures; see svg.h. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/number.h"
#include "view/svg.h"

void basin_svg_colour(FILE *file, double score) {
    static const double stop[3][3] = {{59, 111, 182}, {200, 200, 200}, {196, 54, 42}};
    double s = score < 0 || isnan(score) ? 0 : score > 1 ? 1 : score;
    int low = s < 0.5 ? 0 : 1;
    double t = 2 * s - low;
    int c[3];
    for (int i = 0; i < 3; i++) c[i] = (int)lround(stop[low][i] * (1 - t) + stop[low + 1][i] * t);
    fprintf(file, "#%02x%02x%02x", c[0], c[1], c[2]);
}

void basin_svg_head(FILE *file, int width, int height, const char *title, const char *subtitle) {
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" font-family=\"sans-serif\" font-size=\"12\">\n",
            width, height, width, height);
    fputs("<style>.p{fill:#fff}.t{fill:#222}.m{fill:#666}.e{stroke:#777}.n{stroke:#fff}"
          "@media(prefers-color-scheme:dark){.p{fill:#16181c}.t{fill:#eee}.m{fill:#aaa}"
          ".e{stroke:#999}.n{stroke:#16181c}}</style>\n",
          file);
    fprintf(file, "<rect class=\"p\" width=\"%d\" height=\"%d\"/>\n", width, height);
    fputs("<text class=\"t\" x=\"24\" y=\"32\" font-size=\"17\" font-weight=\"bold\">", file);
    basin_markup_text(file, title, 70);
    fputs("</text>\n", file);
    if (!subtitle) return;
    fputs("<text class=\"m\" x=\"24\" y=\"53\">", file);
    basin_markup_text(file, subtitle, 100);
    fputs("</text>\n", file);
}

void basin_svg_scale(FILE *file, int y) {
    fputs("<g>", file);
    for (int i = 0; i < 60; i++) {
        fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"3\" height=\"10\" fill=\"", 24 + 2 * i, y);
        basin_svg_colour(file, i / 59.0);
        fputs("\"/>", file);
    }
    fputs("</g>\n", file);
}

/* ---- Escaped text; see svg.h ---- */

/* How many bytes the UTF-8 sequence at `s` has; 0 where it is none. */
static int sequence(const unsigned char *s) {
    if (s[0] < 0x80) return 1;
    int count = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 0;
    for (int i = 1; i < count; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] >= 0xa0)) return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] >= 0x90)) return 0;
    return count;
}

static const char *entity_of(unsigned char c) {
    switch (c) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: return NULL;
    }
}

void basin_markup_text(FILE *file, const char *text, int most) {
    const unsigned char *s = (const unsigned char *)text;
    for (int i = 0; *s && (!most || i < most); i++) {
        int count = sequence(s);
        const char *entity = entity_of(*s);
        if (entity)
            fputs(entity, file);
        else if (count == 0 || (*s < ' ' && *s != '\n' && *s != '\t'))
            fputs("\xef\xbf\xbd", file);
        else
            fwrite(s, 1, (size_t)count, file);
        s += count ? count : 1;
    }
    if (*s) fputs("\xe2\x80\xa6", file);
}

/* ---- The line plot; see svg.h ---- */

typedef struct axis {
    double low, high, step; /* low and high are what the frame shows */
    double from, to;        /* in the picture */
} axis;

/* Distinct in hue and lightness, readable on white and on near black. */
static const char *const colours[] = {"#2b7bba", "#d9772a", "#3b9a5f", "#9563b5",
                                      "#c14a56", "#8a7a3d", "#3aa0a8", "#777777"};
enum {
    COLOURS = sizeof colours / sizeof *colours,
    MOST_TICKS = 50,
    MOST_DOTS = 40,
    LEGEND_ROW = 18
};

double basin_plot_step(double low, double high, int wanted) {
    double raw = (high - low) / wanted, power = pow(10, floor(log10(raw))), ratio = raw / power;
    return power * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10);
}

static void find_range(axis *a, const basin_plot *plot, bool vertical) {
    a->low = INFINITY;
    a->high = -INFINITY;
    for (int k = 0; k < plot->lines; k++) {
        const basin_plot_line *line = &plot->line[k];
        for (int64_t i = 0; i < line->count; i++) {
            if (!isfinite(line->x[i]) || !isfinite(line->y[i])) continue;
            double value = vertical ? line->y[i] : line->x[i];
            if (value < a->low) a->low = value;
            if (value > a->high) a->high = value;
        }
    }
    if (!(a->low <= a->high)) a->low = 0, a->high = 1;
    double least = fmax(fabs(a->low), fabs(a->high)) * 1e-9;
    if (a->high - a->low <= least) { /* a flat line still needs a frame around it */
        double pad = a->low == 0 ? 1 : fabs(a->low) * 0.1;
        a->low -= pad;
        a->high += pad;
    }
}

/* The vertical axis begins and ends at ticks, the horizontal one with the data. */
static void round_axis(axis *a, bool vertical, int wanted, bool whole) {
    a->step = basin_plot_step(a->low, a->high, wanted);
    if (whole) a->step = fmax(a->step, 1);
    if (!vertical) return;
    a->low = floor(a->low / a->step + 1e-9) * a->step;
    a->high = ceil(a->high / a->step - 1e-9) * a->step;
}

static double place(const axis *a, double value) {
    return a->from + (value - a->low) / (a->high - a->low) * (a->to - a->from);
}

static void print_tick(char text[32], double value, double step) {
    double size = fabs(value);
    if (size < step * 1e-6) {
        snprintf(text, 32, "0");
    } else if (size >= 1e7 || step < 1e-5) {
        snprintf(text, 32, "%.4g", value);
    } else {
        int digits = (int)fmax(0, ceil(-log10(step) - 1e-9));
        snprintf(text, 32, "%.*f", digits, value);
    }
}

static void put_style(FILE *file) {
    fputs("<style>\n"
          "text { font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; "
          "fill: #3d434b }\n"
          ".title { font-size: 16px; font-weight: 600; fill: #16191d }\n"
          ".paper { fill: #ffffff } .grid { stroke: #e3e6ea } .frame { stroke: #8b929b }\n"
          ".line { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round }\n"
          "@media (prefers-color-scheme: dark) {\n"
          "  text { fill: #b6bdc6 } .title { fill: #eef0f3 }\n"
          "  .paper { fill: #15181c } .grid { stroke: #2b3037 } .frame { stroke: #6b737d }\n"
          "}\n</style>\n",
          file);
}

/* Ticks with their grid lines and numbers. */
static void put_axis(FILE *file, const axis *a, const axis *other, bool vertical) {
    char label[32];
    double first = ceil(a->low / a->step - 1e-9);
    for (int i = 0; i < MOST_TICKS; i++) {
        double value = (first + i) * a->step;
        if (value > a->high + a->step * 1e-6) break;
        double at = place(a, value);
        print_tick(label, value, a->step);
        if (vertical)
            fprintf(file,
                    "<path class=\"grid\" d=\"M%.1f %.1fH%.1f\"/>"
                    "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                    other->from, at, other->to, other->from - 8, at + 4.5, label);
        else
            fprintf(file,
                    "<path class=\"grid\" d=\"M%.1f %.1fV%.1f\"/>"
                    "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                    at, other->from, other->to, at, other->from + 19, label);
    }
}

static void put_path(FILE *file, const basin_plot_line *line, const axis *x, const axis *y) {
    bool open = false;
    for (int64_t i = 0; i < line->count; i++) {
        bool there = isfinite(line->x[i]) && isfinite(line->y[i]);
        if (there)
            fprintf(file, "%c%.2f %.2f", open ? 'L' : 'M', place(x, line->x[i]),
                    place(y, line->y[i]));
        open = there;
    }
}

/* Lines to compare with are grey, whatever their place. */
static const char *colour_of(const basin_plot *plot, int line) {
    return plot->line[line].form == BASIN_PLOT_DASHED ? "#8a929c" : colours[line % COLOURS];
}

static void put_stroke(FILE *file, const basin_plot *plot, int line) {
    bool dashed = plot->line[line].form == BASIN_PLOT_DASHED;
    fprintf(file, "<path class=\"line\" stroke=\"%s\"%s d=\"", colour_of(plot, line),
            dashed ? " stroke-dasharray=\"6 5\"" : "");
}

static void put_line(FILE *file, const basin_plot *plot, int number, const axis *x, const axis *y) {
    const basin_plot_line *line = &plot->line[number];
    const char *colour = colour_of(plot, number);
    if (line->form == BASIN_PLOT_AREA) {
        fprintf(file, "<path fill=\"%s\" fill-opacity=\"0.16\" d=\"", colour);
        put_path(file, line, x, y);
        fputs("\"/>\n", file);
    }
    put_stroke(file, plot, number);
    put_path(file, line, x, y);
    fputs("\"/>\n", file);
    if (line->form != BASIN_PLOT_DOTTED || line->count > MOST_DOTS) return;
    for (int64_t i = 0; i < line->count; i++)
        if (isfinite(line->x[i]) && isfinite(line->y[i]))
            fprintf(file, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3\" fill=\"%s\"/>\n",
                    place(x, line->x[i]), place(y, line->y[i]), colour);
}

/* Letters are about 7 wide at this size, which is all that the layout needs to know. */
static double text_width(const char *text) { return 7.0 * (double)strlen(text); }

/* Writes the legend, or, with `file` NULL, only counts its rows. */
static int put_legend(FILE *file, const basin_plot *plot, double left, double right, double top) {
    double at = left;
    int rows = 1;
    for (int k = 0; k < plot->lines; k++) {
        double width = 24 + text_width(plot->line[k].name);
        if (at > left && at + width > right) at = left, rows++;
        double y = top + LEGEND_ROW * (rows - 1);
        if (file) {
            put_stroke(file, plot, k);
            fprintf(file, "M%.1f %.1fh18\"/><text x=\"%.1f\" y=\"%.1f\">", at, y - 4.5, at + 24, y);
            basin_markup_text(file, plot->line[k].name, 0);
            fputs("</text>\n", file);
        }
        at += width + 18;
    }
    return rows;
}

static void put_labels(FILE *file, const basin_plot *plot, const axis *x, const axis *y) {
    fprintf(file, "<text class=\"title\" x=\"%.1f\" y=\"26\">", x->from);
    basin_markup_text(file, plot->title, 0);
    fputs("</text>\n", file);
    put_legend(file, plot, x->from, x->to, 50);
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", (x->from + x->to) / 2,
            y->from + 40);
    basin_markup_text(file, plot->x_label, 0);
    double middle = (y->from + y->to) / 2;
    fprintf(file,
            "</text>\n<text x=\"18\" y=\"%.1f\" text-anchor=\"middle\" "
            "transform=\"rotate(-90 18 %.1f)\">",
            middle, middle);
    basin_markup_text(file, plot->y_label, 0);
    fputs("</text>\n", file);
}

/* Room for the longest number beside the vertical axis. */
static double left_margin(const axis *y) {
    double widest = 0;
    double first = ceil(y->low / y->step - 1e-9);
    for (int i = 0; i < MOST_TICKS; i++) {
        char label[32];
        double value = (first + i) * y->step;
        if (value > y->high + y->step * 1e-6) break;
        print_tick(label, value, y->step);
        widest = fmax(widest, text_width(label));
    }
    return 42 + widest;
}

/* The frame says where numbers lie, for a script that marks one. */
static void put_frame(FILE *file, const axis *x, const axis *y) {
    fprintf(file,
            "<path class=\"frame\" fill=\"none\" data-low=\"%.9g\" data-high=\"%.9g\" "
            "data-from=\"%.1f\" data-to=\"%.1f\" data-top=\"%.1f\" data-bottom=\"%.1f\" "
            "d=\"M%.1f %.1fV%.1fH%.1f\"/>\n",
            x->low, x->high, x->from, x->to, y->to, y->from, x->from, y->to, y->from, x->to);
}

void basin_plot_histogram(double *x, double *y, int bins, const double *value, int64_t count,
                          double low, double high) {
    double width = (high - low) / bins;
    for (int b = 0; b < bins; b++) {
        x[2 * b + 1] = low + b * width, x[2 * b + 2] = low + (b + 1) * width;
        y[2 * b + 1] = y[2 * b + 2] = 0;
    }
    x[0] = low, x[2 * bins + 1] = high;
    y[0] = y[2 * bins + 1] = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!(value[i] >= low && value[i] <= high)) continue;
        int b = (int)fmin(floor((value[i] - low) / width), bins - 1);
        y[2 * b + 1]++, y[2 * b + 2]++;
    }
}

void basin_plot_write(FILE *file, const basin_plot *plot) {
    BASIN_PLAIN_NUMBERS;
    int width = plot->width > 0 ? plot->width : 720, height = plot->height > 0 ? plot->height : 440;
    axis x, y;
    find_range(&x, plot, false);
    find_range(&y, plot, true);
    round_axis(&x, false, 8, plot->x_whole);
    round_axis(&y, true, 5, plot->y_whole);
    x.from = left_margin(&y), x.to = width - 24;
    y.from = height - 56, y.to = 50 + LEGEND_ROW * put_legend(NULL, plot, x.from, x.to, 0);
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\">\n<title>",
            width, height, width, height);
    basin_markup_text(file, plot->title, 0);
    fputs("</title>\n", file);
    put_style(file);
    fprintf(file, "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", width, height);
    put_axis(file, &y, &x, true);
    put_axis(file, &x, &y, false);
    put_frame(file, &x, &y);
    for (int k = 0; k < plot->lines; k++) put_line(file, plot, k, &x, &y);
    put_labels(file, plot, &x, &y);
    fputs("</svg>\n", file);
}
