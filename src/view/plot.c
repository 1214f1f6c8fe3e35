/* The line plot; see plot.h. */
#include "view/plot.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

typedef struct axis {
    double low, high, step; /* low and high are what the frame shows */
    double from, to;        /* in the picture */
} axis;

/* Distinct in hue and lightness, readable on white and on near black. */
static const char *const colours[] = {"#2b7bba", "#d9772a", "#3b9a5f", "#9563b5",
                                      "#c14a56", "#8a7a3d", "#3aa0a8", "#777777"};
enum { COLOURS = sizeof colours / sizeof *colours, MOST_TICKS = 50, MOST_DOTS = 40 };

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
    if (a->high - a->low <= least) { /* a flat line still wants a frame around it */
        double pad = a->low == 0 ? 1 : fabs(a->low) * 0.1;
        a->low -= pad;
        a->high += pad;
    }
}

/* The vertical axis begins and ends at ticks, the horizontal one with the data. */
static void round_axis(axis *a, bool vertical, int wanted) {
    a->step = basin_plot_step(a->low, a->high, wanted);
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

static void put_text(FILE *file, const char *text) {
    for (; *text; text++) switch (*text) {
        case '&': fputs("&amp;", file); break;
        case '<': fputs("&lt;", file); break;
        case '>': fputs("&gt;", file); break;
        default: fputc((unsigned char)*text < ' ' ? '?' : *text, file);
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

static void put_line(FILE *file, const basin_plot_line *line, const axis *x, const axis *y,
                     const char *colour) {
    bool open = false;
    fprintf(file, "<path class=\"line\" stroke=\"%s\" d=\"", colour);
    for (int64_t i = 0; i < line->count; i++) {
        bool there = isfinite(line->x[i]) && isfinite(line->y[i]);
        if (there)
            fprintf(file, "%c%.2f %.2f", open ? 'L' : 'M', place(x, line->x[i]),
                    place(y, line->y[i]));
        open = there;
    }
    fputs("\"/>\n", file);
    for (int64_t i = 0; i < line->count && line->count <= MOST_DOTS; i++)
        if (isfinite(line->x[i]) && isfinite(line->y[i]))
            fprintf(file, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3\" fill=\"%s\"/>\n",
                    place(x, line->x[i]), place(y, line->y[i]), colour);
}

/* Letters are about 7 wide at this size, which is all that the layout needs to know. */
static double text_width(const char *text) { return 7.0 * (double)strlen(text); }

static void put_legend(FILE *file, const basin_plot *plot, double left, double top) {
    double at = left;
    for (int k = 0; k < plot->lines; k++) {
        fprintf(file,
                "<path class=\"line\" stroke=\"%s\" d=\"M%.1f %.1fh18\"/>"
                "<text x=\"%.1f\" y=\"%.1f\">",
                colours[k % COLOURS], at, top - 4.5, at + 24, top);
        put_text(file, plot->line[k].name);
        fputs("</text>\n", file);
        at += 24 + text_width(plot->line[k].name) + 18;
    }
}

static void put_labels(FILE *file, const basin_plot *plot, const axis *x, const axis *y) {
    fprintf(file, "<text class=\"title\" x=\"%.1f\" y=\"26\">", x->from);
    put_text(file, plot->title);
    fputs("</text>\n", file);
    put_legend(file, plot, x->from, 50);
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", (x->from + x->to) / 2,
            y->from + 40);
    put_text(file, plot->x_label);
    double middle = (y->from + y->to) / 2;
    fprintf(file,
            "</text>\n<text x=\"18\" y=\"%.1f\" text-anchor=\"middle\" "
            "transform=\"rotate(-90 18 %.1f)\">",
            middle, middle);
    put_text(file, plot->y_label);
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

void basin_plot_write(FILE *file, const basin_plot *plot) {
    int width = plot->width > 0 ? plot->width : 720, height = plot->height > 0 ? plot->height : 440;
    axis x, y;
    find_range(&x, plot, false);
    find_range(&y, plot, true);
    round_axis(&x, false, 8);
    round_axis(&y, true, 5);
    x.from = left_margin(&y), x.to = width - 24;
    y.from = height - 56, y.to = 68;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\">\n<title>",
            width, height, width, height);
    put_text(file, plot->title);
    fputs("</title>\n", file);
    put_style(file);
    fprintf(file, "<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", width, height);
    put_axis(file, &y, &x, true);
    put_axis(file, &x, &y, false);
    fprintf(file, "<path class=\"frame\" fill=\"none\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n", x.from,
            y.to, y.from, x.to);
    for (int k = 0; k < plot->lines; k++)
        put_line(file, &plot->line[k], &x, &y, colours[k % COLOURS]);
    put_labels(file, plot, &x, &y);
    fputs("</svg>\n", file);
}
