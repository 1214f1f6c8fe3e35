/* Figures as SVG; see svg.h. */
#include "tasks/common/view/svg.h"

#include "base/file.h"
#include "base/number.h"
#include "base/sort.h"
#include "base/text.h"
#include "base/try.h"

/* Escaped, whatever a name holds; bytes that are not UTF-8 and control characters become U+FFFD. At
 * most so many characters, with an ellipsis behind a longer text. */
static void put_text(FILE *file, const char *text, int most) {
    for (int i = 0; *text && i < most; i++) {
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

/* With a title to read where `titled`. */
static void put_head(FILE *file, int width, int height, const char *title, bool titled) {
    double letters = fmax(1, fmin((double)strlen(title), 101)); /* small enough that all fit */
    fprintf(
        file,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
        "height=\"%d\" role=\"img\">\n<style>\n"
        "text { font: 13px system-ui, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #3d434b }\n"
        ".title { font-size: %.3gpx; font-weight: 600; fill: #16191d }\n"
        ".paper { fill: #fff } .grid { stroke: #e3e6ea } .frame { stroke: #8b929b; fill: none }\n"
        ".line { fill: none; stroke-width: 2; stroke-linejoin: round }\n"
        ".bond { stroke: #3d434b; stroke-width: 1.6; stroke-linecap: round }\n"
        "@media (prefers-color-scheme: dark) {\n"
        "  text { fill: #b6bdc6 } .title { fill: #eef0f3 }\n"
        "  .bond { stroke: #b6bdc6 } .paper { fill: #15181c } .grid { stroke: #2b3037 } .frame { "
        "stroke: #6b737d }\n"
        "}\n</style>\n<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n",
        width, height, width, height, fmin(16, 1.7 * (width - 48) / letters), width, height);
    fputs("<title>", file); /* what a screen reader says of the picture */
    put_text(file, title, 100);
    fputs("</title>\n", file);
    if (titled) put_label(file, "title", 24, 28, "start", title);
}

/* ---- a line plot ---- */

enum { WIDTH = 720, HEIGHT = 440, BOTTOM = HEIGHT - 56, MOST_DOTS = 40 };

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
    for (int64_t i = 0; i < line->count && line->count <= MOST_DOTS; i++)
        if (isfinite(line->y[i]))
            fprintf(file, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"3\" fill=\"%s\"/>\n",
                    place(x, (double)i), place(y, line->y[i]), colour);
}

static void plot_write(FILE *file, const basin_plot *plot) {
    static const char *const colours[] = {"#2b7bba", "#d9772a", "#3b9a5f", "#9563b5"};
    axis x = axis_of(plot, false), y = axis_of(plot, true);
    x.from = 100, x.to = WIDTH - 24, y.from = BOTTOM, y.to = 68;
    put_head(file, WIDTH, HEIGHT, plot->title, true);
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

/* ---- a graph, where the caller puts its nodes; a molecule as chemists draw it: carbon is a
 * corner, others are letters ---- */

enum { SIDE = 640, TOP = 70, PAD = 60 };

typedef struct point {
    double x, y;
} point;

static double distance(point a, point b) { return hypot(a.x - b.x, a.y - b.y) + 1e-9; }

/* Into the page, both axes on one scale. */
static void fit(point *at, int64_t nodes) {
    point low = at[0], high = at[0];
    for (int64_t i = 1; i < nodes; i++) {
        low = (point){fmin(low.x, at[i].x), fmin(low.y, at[i].y)};
        high = (point){fmax(high.x, at[i].x), fmax(high.y, at[i].y)};
    }
    double size = fmax(fmax(high.x - low.x, high.y - low.y), 1e-6);
    double scale = fmin((SIDE - TOP - 2 * PAD) / size, 54);
    for (int64_t i = 0; i < nodes; i++) {
        at[i].x = SIDE / 2.0 + scale * (at[i].x - (low.x + high.x) / 2);
        at[i].y = (TOP + SIDE - PAD) / 2.0 + scale * (at[i].y - (low.y + high.y) / 2);
    }
}

/* From blue (0) over grey (0.5) to red (1). */
static void put_colour(FILE *file, const char *what, double score) {
    static const double stop[3][3] = {{59, 111, 182}, {200, 200, 200}, {196, 54, 42}};
    double s = fmin(fmax(score, 0), 1), t = 2 * s - (s >= 0.5);
    const double *low = stop[s >= 0.5], *high = low + 3;
    fprintf(file, " %s=\"#", what);
    for (int i = 0; i < 3; i++) fprintf(file, "%02x", (int)lround(low[i] + t * (high[i] - low[i])));
    fputs("\"", file);
}

/* Of an edge both ways: the other direction; -1: there is none. */
static int64_t reverse(const basin_svg_graph_of *g, int64_t edge) {
    int32_t back[2] = {g->edge[2 * edge + 1], g->edge[2 * edge]};
    const int32_t *other =
        bsearch(back, g->edge, (size_t)g->edges, 2 * sizeof *g->edge, basin_compare_ends);
    return other ? (other - g->edge) / 2 : -1;
}

static bool is_drawn(const basin_svg_graph_of *g, int64_t edge) {
    return reverse(g, edge) < edge && reverse(g, edge) >= 0;
}

/* The sum of an edge's directions. */
static double both_ways(const basin_svg_graph_of *g, int64_t edge) {
    int64_t other = reverse(g, edge);
    return g->strength[edge] + (other >= 0 ? g->strength[other] : 0);
}

static bool has_letters(const basin_svg_graph_of *g, int64_t i) {
    bool bound = false;
    if (!g->atom) return true;
    const int32_t *atom = g->atom + 4 * i;
    for (int64_t e = 0; e < g->edges && !bound; e++) bound = g->edge[2 * e] == i;
    return atom[0] != 6 || atom[1] || !bound;
}

/* One line of a bond, `aside` of it, from letters to letters. */
static void put_stroke(FILE *file, const basin_svg_graph_of *g, const point *at, int64_t e,
                       double aside, double shorter, bool dashed) {
    int32_t a = g->edge[2 * e], b = g->edge[2 * e + 1];
    double far = distance(at[a], at[b]), x = (at[b].x - at[a].x) / far,
           y = (at[b].y - at[a].y) / far;
    double from = has_letters(g, a) ? 10 : shorter, to = has_letters(g, b) ? 10 : shorter;
    fprintf(file, "<line class=\"bond\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"%s/>\n",
            at[a].x + from * x - aside * y, at[a].y + from * y + aside * x,
            at[b].x - to * x - aside * y, at[b].y - to * y + aside * x,
            dashed ? " stroke-dasharray=\"3 4\"" : "");
}

/* On which side of an edge its nodes have more neighbours. */
static int side_of(const basin_svg_graph_of *g, const point *at, int64_t edge) {
    int32_t a = g->edge[2 * edge], b = g->edge[2 * edge + 1];
    int side = 0;
    for (int64_t e = 0; e < g->edges; e++) {
        point c = at[g->edge[2 * e + 1]];
        if (g->edge[2 * e] != a && g->edge[2 * e] != b) continue;
        double turn = (at[b].x - at[a].x) * (c.y - at[a].y) - (at[b].y - at[a].y) * (c.x - at[a].x);
        side += (turn > 1) - (turn < -1);
    }
    return (side > 0) - (side < 0);
}

static void put_bond(FILE *file, const basin_svg_graph_of *g, const point *at, int64_t e) {
    int32_t order = !g->order ? 1 : g->order[e] > 4 ? 2 : g->order[e], side = side_of(g, at, e);
    bool beside = order == 4 || (order == 2 && side);
    if (order == 2 && !side) {
        put_stroke(file, g, at, e, 2.6, 0, false);
        put_stroke(file, g, at, e, -2.6, 0, false);
        return;
    }
    put_stroke(file, g, at, e, 0, 0, order == 0);
    if (beside) put_stroke(file, g, at, e, side < 0 ? -5 : 5, 5, order == 4);
    for (int i = -1; i < 2 && order == 3; i += 2) put_stroke(file, g, at, e, 4.5 * i, 4, false);
}

/* The element with its hydrogens, on the side that has fewer neighbours, and its charge. */
static void put_letters(FILE *file, const basin_svg_graph_of *g, const point *at, int64_t i) {
    static const char row[] = "<text class=\"atom\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">";
    static const int32_t none[4];
    const int32_t *atom = g->atom ? g->atom + 4 * i : none;
    double wide = 5.5 * (double)strlen(g->name[i]) + 0.5, left = 0;
    for (int64_t e = 0; e < g->edges; e++)
        if (g->edge[2 * e] == i) left += at[g->edge[2 * e + 1]].x - at[i].x;
    bool before = left > 4;
    put_label(file, "atom", at[i].x, at[i].y + 5, "middle", g->name[i]);
    if (atom[2]) {
        fprintf(file, row, at[i].x + (before ? -wide - (atom[2] > 1 ? 7 : 0) : wide), at[i].y + 5,
                before ? "end" : "start");
        fputs("H</text>\n", file);
        if (atom[2] > 1) {
            fprintf(file, row, at[i].x + (before ? -wide : wide + 11), at[i].y + 8,
                    before ? "end" : "start");
            fprintf(file, "<tspan class=\"small\">%d</tspan></text>\n", atom[2]);
        }
        wide += before ? 0 : atom[2] > 1 ? 18 : 11;
    }
    if (!atom[1]) return;
    fprintf(file, row, at[i].x + wide, at[i].y - 2, "start");
    fputs("<tspan class=\"small\">", file);
    if (abs(atom[1]) > 1) fprintf(file, "%d", abs(atom[1]));
    fputs(atom[1] > 0 ? "+</tspan></text>\n" : "\xe2\x88\x92</tspan></text>\n", file);
}

static void put_molecule(FILE *file, const basin_svg_graph_of *g, const point *at, double most) {
    fputs("<style>.atom { font-size: 15px } .small { font-size: 10px }</style>\n", file);
    for (int64_t e = 0; e < g->edges && g->strength; e++) { /* what bonds add, beneath them */
        double sum = both_ways(g, e);
        int32_t i = g->edge[2 * e], k = g->edge[2 * e + 1];
        if (is_drawn(g, e)) continue;
        fprintf(file,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke-width=\"12\" "
                "stroke-opacity=\"%.2f\"",
                at[i].x, at[i].y, at[k].x, at[k].y, 0.85 * fmin(fabs(sum) / most, 1));
        put_colour(file, "stroke", sum > 0);
        fprintf(file, "><title>%d - %d: %+.3g</title></line>\n", i, k, sum);
    }
    for (int64_t i = 0; i < g->nodes && g->node; i++) {
        fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"15\" fill-opacity=\"%.2f\"", at[i].x,
                at[i].y, 0.85 * fmin(fabs(g->node[i]) / most, 1));
        put_colour(file, "fill", g->node[i] > 0);
        fprintf(file, "><title>%lld: %+.3g</title></circle>\n", (long long)i, g->node[i]);
    }
    for (int64_t e = 0; e < g->edges; e++)
        if (!is_drawn(g, e)) put_bond(file, g, at, e);
    for (int64_t i = 0; i < g->nodes; i++)
        if (has_letters(g, i)) put_letters(file, g, at, i);
}

void basin_svg_molecule(FILE *file, const basin_svg_graph_of *g) {
    point low = {1e9, 1e9}, high = {-1e9, -1e9}, *at = calloc((size_t)g->nodes + 1, sizeof *at);
    for (int64_t i = 0; at && i < g->nodes; i++) {
        at[i] = (point){36 * g->at[2 * i], 36 * g->at[2 * i + 1]};
        low = (point){fmin(low.x, at[i].x), fmin(low.y, at[i].y)};
        high = (point){fmax(high.x, at[i].x), fmax(high.y, at[i].y)};
    }
    for (int64_t i = 0; at && i < g->nodes; i++) at[i].x += 30 - low.x, at[i].y += 24 - low.y;
    put_head(file, (int)(high.x - low.x) + 66, (int)(high.y - low.y) + 48, g->title, false);
    if (at) put_molecule(file, g, at, 1);
    fputs("</svg>\n", file);
    free(at);
}

static void graph_write(FILE *file, const basin_svg_graph_of *g, const point *at) {
    double most = 1e-12;
    char range[40];
    for (int64_t i = 0; i < g->nodes; i++) most = fmax(most, fabs(g->node[i]));
    for (int64_t e = 0; e < g->edges && g->strength; e++) most = fmax(most, fabs(both_ways(g, e)));
    snprintf(range, sizeof range, "%+.2g to %+.2g", -most, most);
    put_head(file, SIDE, SIDE, g->title, true);
    if (g->subtitle) put_label(file, "", 24, 52, "start", g->subtitle);
    put_molecule(file, g, at, most);
    for (int i = 0; i < 60; i++) {
        fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"3\" height=\"10\"", 24 + 2 * i, SIDE - 26);
        put_colour(file, "fill", i / 59.0);
        fputs("/>", file);
    }
    put_label(file, "", 156, SIDE - 17, "start", range);
    put_label(file, "", 24, SIDE - 36, "start", g->legend);
    fputs("</svg>\n", file);
}

basin_status basin_svg_graph(const char *path, const basin_svg_graph_of *g, basin_error *error) {
    BASIN_PLAIN_NUMBERS;
    basin_writer writer;
    BASIN_SCRATCH(point, at, g->nodes + 1, "drawing a graph", error);
    memcpy(at, g->at, (size_t)g->nodes * sizeof *at);
    fit(at, g->nodes);
    BASIN_TRY(basin_writer_create(&writer, path, error));
    graph_write(writer.file, g, at);
    return basin_writer_commit(&writer, error);
}
