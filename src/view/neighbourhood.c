/* The neighbourhood of a node; see neighbourhood.h. Neighbours stand on a ring, those with the most
 * attention at the top, alternating to both sides. */
#include "view/neighbourhood.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "view/markup.h"
#include "view/svg.h"

enum { WIDTH = 680, HEIGHT = 600, CENTRE_X = 340, CENTRE_Y = 310, RING = 160 };

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
    int y = HEIGHT - 26;
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
    double neighbours = star->rays + (double)star->left_out;
    basin_svg_head(file, WIDTH, HEIGHT, star->title, star->subtitle);
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
