/* A small graph drawn; see svg.h. Nodes begin on a circle; edges pull them together, all push
 * each other away, less far from step to step (Fruchterman and Reingold 1991). */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "view/svg.h"

enum { WIDTH = 720, HEIGHT = 640, TOP = 70, BOTTOM = 50, MARGIN = 36 };

typedef struct point {
    double x, y;
} point;

/* ---- where nodes stand ---- */

static void push(point *move, const point *at, int64_t nodes, double wide) {
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t k = 0; k < i; k++) {
            double x = at[i].x - at[k].x, y = at[i].y - at[k].y;
            double far = x * x + y * y + 1e-9, force = wide * wide / far;
            move[i].x += x * force, move[i].y += y * force;
            move[k].x -= x * force, move[k].y -= y * force;
        }
}

/* Towards the middle, too, so that parts without an edge between them stay in sight. */
static void pull(point *move, const point *at, const basin_molecule *m, double wide) {
    for (int64_t e = 0; e < m->edges; e++) {
        int32_t a = m->edge[2 * e], b = m->edge[2 * e + 1];
        double x = at[a].x - at[b].x, y = at[a].y - at[b].y, force = 0.5 * hypot(x, y) / wide;
        move[a].x -= x * force, move[a].y -= y * force;
        move[b].x += x * force, move[b].y += y * force;
    }
    for (int64_t i = 0; i < m->nodes; i++) move[i].x -= 0.3 * at[i].x, move[i].y -= 0.3 * at[i].y;
}

static void settle(point *at, point *move, const basin_molecule *m) {
    double n = (double)m->nodes, wide = 2 / sqrt(n + 1);
    int steps = (int)fmin(500, fmax(20, 3e8 / (n * n + 1)));
    for (int64_t i = 0; i < m->nodes; i++) {
        double angle = 2 * acos(-1) * (double)i / n;
        at[i] = (point){cos(angle), sin(angle)};
    }
    for (int s = 0; s < steps; s++) {
        double most = 0.3 * (1 - (double)s / steps) + 0.002;
        for (int64_t i = 0; i < m->nodes; i++) move[i] = (point){0, 0};
        push(move, at, m->nodes, wide);
        pull(move, at, m, wide);
        for (int64_t i = 0; i < m->nodes; i++) {
            double far = hypot(move[i].x, move[i].y) + 1e-12, step = fmin(far, most) / far;
            at[i].x += step * move[i].x, at[i].y += step * move[i].y;
        }
    }
}

/* Into the page, both axes on one scale. */
static void fit(point *at, int64_t nodes) {
    point low = at[0], high = at[0];
    for (int64_t i = 1; i < nodes; i++) {
        low = (point){fmin(low.x, at[i].x), fmin(low.y, at[i].y)};
        high = (point){fmax(high.x, at[i].x), fmax(high.y, at[i].y)};
    }
    double room_x = WIDTH - 2 * MARGIN, room_y = HEIGHT - TOP - BOTTOM - 2 * MARGIN;
    double scale = fmin(room_x / fmax(high.x - low.x, 1e-6), room_y / fmax(high.y - low.y, 1e-6));
    scale = fmin(scale, 400);
    for (int64_t i = 0; i < nodes; i++) {
        at[i].x = WIDTH / 2.0 + scale * (at[i].x - (low.x + high.x) / 2);
        at[i].y = TOP + MARGIN + room_y / 2 + scale * (at[i].y - (low.y + high.y) / 2);
    }
}

/* ---- drawing ---- */

static int compare(const void *a, const void *b) {
    const int32_t *x = a, *y = b;
    return x[0] != y[0] ? (x[0] > y[0]) - (x[0] < y[0]) : (x[1] > y[1]) - (x[1] < y[1]);
}

/* The sum of an edge's two directions; `*drawn` where the other one comes before. */
static double both_ways(const basin_molecule *m, int64_t edge, bool *drawn) {
    int32_t back[2] = {m->edge[2 * edge + 1], m->edge[2 * edge]};
    const int32_t *other = bsearch(back, m->edge, (size_t)m->edges, 2 * sizeof *m->edge, compare);
    *drawn = other && (other - m->edge) / 2 < edge;
    return m->strength[edge] + (other ? m->strength[(other - m->edge) / 2] : 0);
}

static double largest(const basin_molecule *m) {
    double most = 1e-12;
    bool drawn;
    for (int64_t i = 0; i < m->nodes; i++) most = fmax(most, fabs(m->node[i]));
    for (int64_t e = 0; e < m->edges; e++) most = fmax(most, fabs(both_ways(m, e, &drawn)));
    return most;
}

static void put_edges(FILE *file, const basin_molecule *m, const point *at, double most) {
    for (int64_t e = 0; e < m->edges; e++) {
        bool drawn;
        double sum = both_ways(m, e, &drawn);
        const point *a = &at[m->edge[2 * e]], *b = &at[m->edge[2 * e + 1]];
        if (drawn) continue;
        fprintf(file,
                "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke-width=\"%.1f\" "
                "stroke=\"",
                a->x, a->y, b->x, b->y, 2 + 6 * fabs(sum) / most);
        basin_svg_colour(file, 0.5 + 0.5 * sum / most);
        fprintf(file, "\"><title>%d - %d: %+.3g</title></line>\n", m->edge[2 * e],
                m->edge[2 * e + 1], sum);
    }
}

static void put_nodes(FILE *file, const basin_molecule *m, const point *at, double most) {
    double radius = fmax(4, fmin(13, 110 / sqrt((double)m->nodes + 1)));
    for (int64_t i = 0; i < m->nodes; i++) {
        double share = m->node[i] / most;
        fprintf(file,
                "<circle class=\"n\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" stroke-width=\"1.5\" "
                "fill=\"",
                at[i].x, at[i].y, radius);
        basin_svg_colour(file, 0.5 + 0.5 * share);
        fprintf(file, "\"><title>node %lld", (long long)i);
        if (m->label) fprintf(file, ", label %d", m->label[i]);
        fprintf(file, ": %+.3g</title></circle>\n", m->node[i]);
        if (radius < 7) continue;
        fprintf(file,
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" font-size=\"%.0f\" "
                "fill=\"%s\" pointer-events=\"none\">%lld</text>\n",
                at[i].x, at[i].y + 4, fmin(12, radius), fabs(share) < 0.5 ? "#222" : "#fff",
                (long long)(m->label ? m->label[i] : i));
    }
}

bool basin_molecule_write(FILE *file, const basin_molecule *m) {
    BASIN_PLAIN_NUMBERS;
    point *at = calloc((size_t)m->nodes + 1, 2 * sizeof *at);
    if (!at) return false;
    settle(at, at + m->nodes + 1, m);
    fit(at, m->nodes);
    double most = largest(m);
    basin_svg_head(file, WIDTH, HEIGHT, m->title, m->subtitle);
    put_edges(file, m, at, most);
    put_nodes(file, m, at, most);
    basin_svg_scale(file, HEIGHT - 26);
    fprintf(file, "<text class=\"m\" x=\"152\" y=\"%d\">%+.2g to %+.2g: ", HEIGHT - 17, -most,
            most);
    basin_markup_text(file, m->legend, 100);
    fputs("</text>\n</svg>\n", file);
    free(at);
    return true;
}

/* ---- The neighbourhood of a node; see svg.h. Neighbours stand on a ring, those with the
 * most attention at the top, alternating to both sides ---- */

enum { STAR_WIDTH = 680, STAR_HEIGHT = 600, CENTRE_X = 340, CENTRE_Y = 310, RING = 160 };

/* The place of ray i of n: from the top, to the right, to the left, ... */
static double angle_of(int i, int n) {
    double turn = 2 * acos(-1) / n;
    int step = (i + 1) / 2;
    return -acos(-1) / 2 + (i % 2 ? step : -step) * turn;
}

/* 1.5 wide where all neighbours get the same. */
static void put_ray(FILE *file, const basin_star_ray *ray, double angle, double neighbours) {
    double x = CENTRE_X + RING * cos(angle), y = CENTRE_Y + RING * sin(angle);
    double thick = fmin(12, 0.2 + 1.3 * ray->share * neighbours);
    fprintf(file,
            "<line class=\"e\" x1=\"%d\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" stroke-width=\"%.2f\" "
            "stroke-opacity=\"0.55\"/>\n",
            CENTRE_X, CENTRE_Y, x, y, thick);
}

static void put_node(FILE *file, const char *name, double x, double y, double radius, double score,
                     double angle, double share) {
    fprintf(file,
            "<circle class=\"n\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" stroke-width=\"2\" fill=\"", x,
            y, radius);
    basin_svg_colour(file, score);
    fputs("\"><title>", file);
    basin_markup_text(file, name, 200);
    fprintf(file, ": score %.3f, attention %.3f</title></circle>\n", score, share);
    double out = radius + 6, tx = x + out * cos(angle), ty = y + out * sin(angle) + 4;
    const char *anchor = cos(angle) > 0.3 ? "start" : cos(angle) < -0.3 ? "end" : "middle";
    if (cos(angle) <= 0.3 && cos(angle) >= -0.3) ty += sin(angle) > 0 ? 8 : -4;
    fprintf(file, "<text class=\"t\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", tx, ty, anchor);
    basin_markup_text(file, name, 14);
    fprintf(file, "<tspan class=\"m\"> %.2g%%</tspan></text>\n", 100 * share);
}

static void put_legend(FILE *file, const basin_star *star) {
    int y = STAR_HEIGHT - 26;
    basin_svg_scale(file, y);
    fprintf(file,
            "<text class=\"m\" x=\"152\" y=\"%d\">score 0 to 1; width and percent: share of "
            "its attention",
            y + 9);
    if (star->left_out > 0)
        fprintf(file, "; %lld more neighbours not shown", (long long)star->left_out);
    fputs("</text>\n", file);
}

/* Its name stands within, or below where it is too long for that. */
static void put_centre(FILE *file, const basin_star *star) {
    enum { WITHIN = 6, BELOW = 40 };
    bool within = strlen(star->name) <= WITHIN;
    bool dark = star->score > 0.3 && star->score < 0.7;
    fprintf(file, "<circle class=\"n\" cx=\"%d\" cy=\"%d\" r=\"22\" stroke-width=\"3\" fill=\"",
            CENTRE_X, CENTRE_Y);
    basin_svg_colour(file, star->score);
    fprintf(file, "\"/>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" font-weight=\"bold\" ",
            CENTRE_X, CENTRE_Y + (within ? 4 : 40));
    if (within)
        fprintf(file, "fill=\"%s\">", dark ? "#222" : "#fff");
    else
        fputs("class=\"t\">", file);
    basin_markup_text(file, star->name, within ? WITHIN : BELOW);
    fputs("</text>\n", file);
}

void basin_star_write(FILE *file, const basin_star *star) {
    BASIN_PLAIN_NUMBERS;
    double neighbours = star->rays + (double)star->left_out;
    basin_svg_head(file, STAR_WIDTH, STAR_HEIGHT, star->title, star->subtitle);
    for (int i = 0; i < star->rays; i++)
        put_ray(file, &star->ray[i], angle_of(i, star->rays), neighbours);
    for (int i = 0; i < star->rays; i++) {
        double angle = angle_of(i, star->rays);
        put_node(file, star->ray[i].name, CENTRE_X + RING * cos(angle),
                 CENTRE_Y + RING * sin(angle), 9, star->ray[i].score, angle, star->ray[i].share);
    }
    put_centre(file, star);
    put_legend(file, star);
    fputs("</svg>\n", file);
}
