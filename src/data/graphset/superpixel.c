/* Superpixels and their graphs.
 *
 * SLIC (Achanta et al. 2012): k-means of pixels in colour and place around centres on a grid, each
 * looking no further than twice the grid's step, then pieces that are not connected, or too small,
 * join a neighbour. CIFAR-10's colours are compared in Lab, grey values as they are.
 *
 * The graph (Dwivedi et al.): each superpixel has edges to its 8 nearest by place, with weight
 * A_ij = exp(-(d_ij / sigma_i)^2) made symmetric, sigma_i the mean distance to those 8. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/team/team.h"
#include "data/graphset/graphset.h"

enum { NEAREST = 8, MOST_CHANNELS = 3 };

/* ---- colours ---- */

static double linear(double value) {
    return value > 0.04045 ? pow((value + 0.055) / 1.055, 2.4) : value / 12.92;
}

static double root(double t) { return t > 0.008856 ? cbrt(t) : 7.787 * t + 16.0 / 116; }

/* sRGB 0 .. 1 to CIE Lab (D65). */
static void to_lab(double lab[3], const float rgb[3]) {
    double r = linear((double)rgb[0]), g = linear((double)rgb[1]), b = linear((double)rgb[2]);
    double x = root((0.412453 * r + 0.357580 * g + 0.180423 * b) / 0.95047);
    double y = root(0.212671 * r + 0.715160 * g + 0.072169 * b);
    double z = root((0.019334 * r + 0.119193 * g + 0.950227 * b) / 1.08883);
    lab[0] = 116 * y - 16, lab[1] = 500 * (x - y), lab[2] = 200 * (y - z);
}

/* ---- SLIC ---- */

typedef struct centre {
    double colour[MOST_CHANNELS], x, y;
} centre;

typedef struct slic {
    int64_t height, width, channels, segments, pixels;
    double step, weight; /* of the grid; of places against colours */
    double *colour;      /* [height, width, channels] */
    centre *at;          /* [segments] */
    double *distance;    /* [height, width] */
    int32_t *label;      /* [height, width] */
} slic;

/* The picture cut into rows of cells about as wide as high; a centre in the middle of each. */
static void place_centres(slic *s, int64_t wanted) {
    double area = (double)s->pixels / (double)(wanted > 0 ? wanted : 1);
    s->step = sqrt(area);
    int64_t rows = (int64_t)fmax(1, floor((double)s->height / s->step + 0.5));
    if (rows > s->height) rows = s->height;
    s->segments = 0;
    for (int64_t r = 0; r < rows; r++) {
        int64_t columns = wanted * (r + 1) / rows - wanted * r / rows;
        if (columns > s->width) columns = s->width;
        for (int64_t c = 0; c < columns; c++) {
            centre *at = &s->at[s->segments++];
            at->y = ((double)r + 0.5) * (double)s->height / (double)rows - 0.5;
            at->x = ((double)c + 0.5) * (double)s->width / (double)columns - 0.5;
            int64_t pixel = (int64_t)(at->y + 0.5) * s->width + (int64_t)(at->x + 0.5);
            memcpy(at->colour, s->colour + pixel * s->channels,
                   (size_t)s->channels * sizeof *s->colour);
        }
    }
}

static void claim(slic *s, int64_t k, int64_t pixel, double x, double y) {
    const centre *at = &s->at[k];
    double colour = 0;
    for (int64_t c = 0; c < s->channels; c++) {
        double d = s->colour[pixel * s->channels + c] - at->colour[c];
        colour += d * d;
    }
    double place = (x - at->x) * (x - at->x) + (y - at->y) * (y - at->y);
    double distance = colour + s->weight * place;
    if (distance < s->distance[pixel]) s->distance[pixel] = distance, s->label[pixel] = (int32_t)k;
}

static void assign(slic *s) {
    double reach = 2 * s->step;
    for (int64_t p = 0; p < s->pixels; p++) s->distance[p] = INFINITY;
    for (int64_t k = 0; k < s->segments; k++) {
        int64_t top = (int64_t)fmax(0, s->at[k].y - reach);
        int64_t left = (int64_t)fmax(0, s->at[k].x - reach);
        int64_t bottom = (int64_t)fmin((double)s->height - 1, s->at[k].y + reach);
        int64_t right = (int64_t)fmin((double)s->width - 1, s->at[k].x + reach);
        for (int64_t y = top; y <= bottom; y++)
            for (int64_t x = left; x <= right; x++)
                claim(s, k, y * s->width + x, (double)x, (double)y);
    }
}

/* Each centre moves to the mean of its pixels; one that has none stays. */
static void move_centres(slic *s, centre *sum, double *count) {
    memset(sum, 0, (size_t)s->segments * sizeof *sum);
    memset(count, 0, (size_t)s->segments * sizeof *count);
    for (int64_t p = 0; p < s->pixels; p++) {
        int32_t k = s->label[p];
        if (k < 0) continue;
        for (int64_t c = 0; c < s->channels; c++)
            sum[k].colour[c] += s->colour[p * s->channels + c];
        sum[k].x += (double)(p % s->width), sum[k].y += (double)(p / s->width);
        count[k]++;
    }
    for (int64_t k = 0; k < s->segments; k++) {
        if (count[k] == 0) continue;
        for (int64_t c = 0; c < s->channels; c++) s->at[k].colour[c] = sum[k].colour[c] / count[k];
        s->at[k].x = sum[k].x / count[k], s->at[k].y = sum[k].y / count[k];
    }
}

/* Visits the connected pixels of one label from `start`; returns how many, listed in `queue`. */
static int64_t flood(const slic *s, int32_t *fresh, int32_t *queue, int64_t start, int32_t name) {
    int64_t head = 0, tail = 0;
    fresh[start] = name;
    queue[tail++] = (int32_t)start;
    while (head < tail) {
        int64_t p = queue[head++], x = p % s->width, y = p / s->width;
        int64_t next[4] = {x > 0 ? p - 1 : -1, x + 1 < s->width ? p + 1 : -1,
                           y > 0 ? p - s->width : -1, y + 1 < s->height ? p + s->width : -1};
        for (int i = 0; i < 4; i++)
            if (next[i] >= 0 && fresh[next[i]] < 0 && s->label[next[i]] == s->label[start]) {
                fresh[next[i]] = name;
                queue[tail++] = (int32_t)next[i];
            }
    }
    return tail;
}

/* Connected pieces get names of their own; pieces smaller than half a cell join the one they were
 * reached from. */
static int64_t connect(const slic *s, int32_t *fresh, int32_t *queue) {
    int64_t smallest = (int64_t)(0.5 * s->step * s->step);
    int32_t found = 0;
    for (int64_t p = 0; p < s->pixels; p++) fresh[p] = -1;
    for (int64_t p = 0; p < s->pixels; p++) {
        if (fresh[p] >= 0) continue;
        int32_t near = p % s->width ? fresh[p - 1] : p ? fresh[p - s->width] : -1;
        int64_t size = flood(s, fresh, queue, p, found);
        if (size < smallest && near >= 0)
            for (int64_t i = 0; i < size; i++) fresh[queue[i]] = near;
        else
            found++;
    }
    return found;
}

static void run_slic(slic *s, const float *pixel, const basin_superpixels *spec, centre *sum,
                     double *count) {
    for (int64_t p = 0; p < s->pixels; p++) {
        double *to = s->colour + p * s->channels;
        if (s->channels == 3)
            to_lab(to, pixel + 3 * p);
        else
            for (int64_t c = 0; c < s->channels; c++) to[c] = (double)pixel[p * s->channels + c];
        s->label[p] = -1;
    }
    place_centres(s, spec->segments);
    s->weight = spec->compactness * spec->compactness / (s->step * s->step);
    for (int i = 0; i < (spec->iterations ? spec->iterations : 10); i++) {
        assign(s);
        move_centres(s, sum, count);
    }
}

basin_status basin_slic(int32_t *label, int64_t *found, const float *pixel, int64_t height,
                        int64_t width, int64_t channels, const basin_superpixels *spec,
                        basin_error *error) {
    if (channels < 1 || channels > MOST_CHANNELS || height < 1 || width < 1 || spec->segments < 1 ||
        height > 1 << 15 || width > 1 << 15)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "superpixels of a picture of %lld x %lld x %lld; wanted 1 to 3 channels "
                          "and sides of 1 to 32768",
                          (long long)height, (long long)width, (long long)channels);
    slic s = {.height = height, .width = width, .channels = channels, .pixels = height * width};
    size_t pixels = (size_t)s.pixels, segments = (size_t)spec->segments;
    s.colour = basin_array_new(pixels * (size_t)channels, sizeof *s.colour);
    s.distance = basin_array_new(pixels, sizeof *s.distance);
    s.label = basin_array_new(2 * pixels, sizeof *s.label);
    s.at = basin_array_new(2 * segments, sizeof *s.at);
    double *count = basin_array_new(segments, sizeof *count);
    bool memory = s.colour && s.distance && s.label && s.at && count;
    if (memory) {
        run_slic(&s, pixel, spec, s.at + segments, count);
        *found = connect(&s, label, s.label + pixels);
    }
    free(s.colour);
    free(s.distance);
    free(s.label);
    free(s.at);
    free(count);
    return memory ? BASIN_OK : basin_fail(error, BASIN_NO_MEMORY, "out of memory for superpixels");
}

/* ---- graphs ---- */

/* One picture's graph: nodes [n, channels + 2], edges [8 n, 2] with their weights. */
typedef struct picture_graph {
    int64_t nodes, edges;
    float *node;
    int32_t *edge;
    float *weight;
} picture_graph;

static void picture_graph_free(picture_graph *g) {
    free(g->node);
    free(g->edge);
    free(g->weight);
}

static void mean_nodes(float *node, double *count, const int32_t *label, const float *pixel,
                       int64_t nodes, int64_t height, int64_t width, int64_t channels) {
    int64_t row = channels + 2;
    memset(node, 0, (size_t)(nodes * row) * sizeof *node);
    for (int64_t i = 0; i < nodes; i++) count[i] = 0;
    for (int64_t p = 0; p < height * width; p++) {
        float *to = node + label[p] * row;
        for (int64_t c = 0; c < channels; c++) to[c] += pixel[p * channels + c];
        to[channels] += ((float)(p % width) + 0.5f) / (float)width;
        to[channels + 1] += ((float)(p / width) + 0.5f) / (float)height;
        count[label[p]]++;
    }
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t c = 0; c < row; c++) node[i * row + c] /= (float)count[i];
}

typedef struct neighbour {
    double distance;
    int32_t node;
} neighbour;

static int by_distance(const void *a, const void *b) {
    const neighbour *x = a, *y = b;
    if (x->distance != y->distance) return x->distance < y->distance ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static double distance_of(const float *node, int64_t row, int64_t i, int64_t j) {
    const float *a = node + (i + 1) * row - 2, *b = node + (j + 1) * row - 2;
    return hypot((double)(a[0] - b[0]), (double)(a[1] - b[1]));
}

/* The nearest of each node, and sigma: the mean distance to them. */
static void find_nearest(picture_graph *g, double *sigma, neighbour *list, int64_t row) {
    int64_t most = g->nodes - 1 < NEAREST ? g->nodes - 1 : NEAREST;
    g->edges = 0;
    for (int64_t i = 0; i < g->nodes; i++) {
        int64_t n = 0;
        double sum = 0;
        for (int64_t j = 0; j < g->nodes; j++)
            if (j != i) list[n++] = (neighbour){distance_of(g->node, row, i, j), (int32_t)j};
        qsort(list, (size_t)n, sizeof *list, by_distance);
        for (int64_t k = 0; k < most; k++, g->edges++) {
            sum += list[k].distance;
            g->edge[2 * g->edges] = (int32_t)i;
            g->edge[2 * g->edges + 1] = list[k].node;
        }
        sigma[i] = sum / NEAREST + 1e-8;
    }
}

static void weigh_edges(picture_graph *g, const double *sigma, int64_t row) {
    for (int64_t e = 0; e < g->edges; e++) {
        int64_t i = g->edge[2 * e], j = g->edge[2 * e + 1];
        double d = distance_of(g->node, row, i, j);
        double there = exp(-d * d / (sigma[i] * sigma[i])),
               back = exp(-d * d / (sigma[j] * sigma[j]));
        g->weight[e] = (float)((there + back) / 2);
    }
}

static basin_status graph_of(picture_graph *g, const float *pixel, int64_t height, int64_t width,
                             int64_t channels, const basin_superpixels *spec, basin_error *error) {
    size_t pixels = (size_t)(height * width);
    int32_t *label = basin_array_new(pixels, sizeof *label);
    *g = (picture_graph){0};
    if (!label) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for superpixels");
    basin_status status = basin_slic(label, &g->nodes, pixel, height, width, channels, spec, error);
    size_t n = (size_t)g->nodes;
    double *count = basin_array_new(n, sizeof *count);
    neighbour *list = basin_array_new(n, sizeof *list);
    g->node = basin_array_new(n, (size_t)(channels + 2) * sizeof *g->node);
    g->edge = basin_array_new(n, 2 * NEAREST * sizeof *g->edge);
    g->weight = basin_array_new(n, NEAREST * sizeof *g->weight);
    if (!status && count && list && g->node && g->edge && g->weight) {
        mean_nodes(g->node, count, label, pixel, g->nodes, height, width, channels);
        find_nearest(g, count, list, channels + 2);
        weigh_edges(g, count, channels + 2);
    } else if (!status)
        status = basin_fail(error, BASIN_NO_MEMORY, "out of memory for superpixels");
    free(label);
    free(count);
    free(list);
    return status;
}

/* Packs the pictures' graphs in their order. */
static basin_status pack(basin_graphset *set, const picture_graph *g, int64_t columns,
                         basin_error *error) {
    for (int64_t i = 0; i < set->graphs; i++) set->nodes += g[i].nodes, set->edges += g[i].edges;
    int64_t count = set->edges, node = 0, edge = 0;
    int32_t *all = basin_array_new((size_t)count, 2 * sizeof *all);
    set->node_attributes = columns;
    set->edge_attributes = 1;
    set->node_start = basin_array_new((size_t)set->graphs + 1, sizeof *set->node_start);
    set->node_attribute = basin_array_new((size_t)(set->nodes * columns), sizeof(float));
    set->edge_attribute = basin_array_new((size_t)count, sizeof(float));
    if (!all || !set->node_start || !set->node_attribute || !set->edge_attribute) {
        free(all);
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld graphs",
                          (long long)set->graphs);
    }
    for (int64_t i = 0; i < set->graphs; i++) {
        set->node_start[i] = node;
        memcpy(set->node_attribute + node * columns, g[i].node,
               (size_t)(g[i].nodes * columns) * sizeof(float));
        memcpy(set->edge_attribute + edge, g[i].weight, (size_t)g[i].edges * sizeof(float));
        for (int64_t e = 0; e < 2 * g[i].edges; e++)
            all[2 * edge + e] = (int32_t)(node + g[i].edge[e]);
        node += g[i].nodes, edge += g[i].edges;
    }
    set->node_start[set->graphs] = node;
    basin_status status = basin_graphset_set_edges(set, all, count, set->name, "edges", error);
    free(all);
    return status;
}

typedef struct cutting {
    picture_graph *g;
    const uint8_t *pixel; /* [graphs, height, width, channels] */
    int64_t height, width, channels;
    const basin_superpixels *spec;
} cutting;

static basin_status cut_one(const void *context, int64_t i, basin_error *error) {
    const cutting *c = context;
    int64_t size = c->height * c->width * c->channels;
    float *value = basin_array_new((size_t)size, sizeof *value);
    basin_status status = BASIN_NO_MEMORY;
    basin_error own;
    own.text[0] = 0;
    for (int64_t p = 0; p < size && value; p++) value[p] = (float)c->pixel[i * size + p] / 255.0f;
    if (value) status = graph_of(&c->g[i], value, c->height, c->width, c->channels, c->spec, &own);
    free(value);
    if (!status) return BASIN_OK;
    return basin_fail(error, status, "picture %lld: %s", (long long)i, own.text);
}

static basin_status cut(picture_graph *g, const uint8_t *pixel, int64_t graphs, int64_t height,
                        int64_t width, int64_t channels, const basin_superpixels *spec,
                        basin_error *error) {
    cutting c = {g, pixel, height, width, channels, spec};
    return basin_team_try(cut_one, &c, graphs, 64, error);
}

basin_status basin_graphset_superpixels(basin_graphset *set, const uint8_t *pixel,
                                        const int32_t *class_of, const int64_t split[3],
                                        int64_t height, int64_t width, int64_t channels,
                                        const basin_superpixels *spec, basin_error *error) {
    *set = (basin_graphset){.task = BASIN_GRAPHS_CLASSES, .name = "superpixels"};
    for (int i = 0; i < 3; i++) set->graphs += set->split[i] = split[i];
    picture_graph *g = calloc((size_t)set->graphs + 1, sizeof *g);
    int64_t *value = basin_array_new((size_t)set->graphs, sizeof *value);
    basin_status status = g && value
                              ? cut(g, pixel, set->graphs, height, width, channels, spec, error)
                              : basin_fail(error, BASIN_NO_MEMORY, "out of memory for superpixels");
    for (int64_t i = 0; i < set->graphs && !status; i++) value[i] = class_of[i];
    if (!status) status = basin_graphset_set_classes(set, value, set->graphs, error);
    if (!status) status = pack(set, g, channels + 2, error);
    for (int64_t i = 0; g && i < set->graphs; i++) picture_graph_free(&g[i]);
    free(g);
    free(value);
    if (status) basin_graphset_free(set);
    return status;
}
