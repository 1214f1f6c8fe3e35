/* Superpixels and their graphs.
 *
 * SLIC (Achanta et al. 2012): k-means of pixels in colour and place around centres on a grid, each
 * looking no further than twice the grid's step, then pieces that are not connected, or too small,
 * join a neighbour. CIFAR-10's colours are compared in Lab, grey values as they are.
 *
 * The graph (Dwivedi et al.): each superpixel has edges to its 8 nearest by place, with weight
 * A_ij = exp(-(d_ij / sigma_i)^2) made symmetric, sigma_i the mean distance to those 8. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/team/team.h"
#include "base/try.h"
#include "basin/random.h"
#include "basin/tasks/pictures.h"
#include "data/graphset/graphset.h"
#include "data/packed.h"

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
    return memory ? BASIN_OK : basin_fail_memory(error, "superpixels");
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
    if (!label) return basin_fail_memory(error, "superpixels");
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
        status = basin_fail_memory(error, "superpixels");
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
                              : basin_fail_memory(error, "superpixels");
    for (int64_t i = 0; i < set->graphs && !status; i++) value[i] = class_of[i];
    if (!status) status = basin_graphset_set_classes(set, value, set->graphs, error);
    if (!status) status = pack(set, g, channels + 2, error);
    for (int64_t i = 0; g && i < set->graphs; i++) picture_graph_free(&g[i]);
    free(g);
    free(value);
    if (status) basin_graphset_free(set);
    return status;
}

/* ---- collections of pictures ---- */

/* Labelled pictures for superpixel graphs: the pixels come from a collection of pictures, the
 * classes from the labels beside MNIST's images, from the records of CIFAR's binaries, or from the
 * names of folders. */

enum { CIFAR_RECORD = 3073, IDX_LABELS = 8 };

/* One half of a collection. */
typedef struct half {
    basin_pictures *pictures;
    int64_t count, all;
    uint8_t *pixel;    /* [count, height, width, channels] */
    int32_t *class_of; /* [count] */
} half;

typedef struct album {
    const char *path;
    int64_t height, width, limit;
    int channels;
    bool named; /* classes are folders */
    half part[2];
    char (*name)[64]; /* [names] the folders' */
    int names;
} album;

enum { MOST_NAMES = 1000 };

static basin_status no_memory(const album *a, basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory for the pictures", a->path);
}

/* ---- classes ---- */

/* "FILE[17]" -> FILE and 17; false where the name is not of that form. */
static bool split_name(char *file, size_t size, int64_t *number, const char *name) {
    const char *open = strrchr(name, '[');
    if (!open || (size_t)(open - name) >= size) return false;
    memcpy(file, name, (size_t)(open - name));
    file[open - name] = 0;
    *number = strtoll(open + 1, NULL, 10);
    return true;
}

/* A byte of a file, gzipped or not. */
static bool byte_at(uint8_t *value, gzFile file, int64_t offset) {
    return gzseek(file, (z_off_t)offset, SEEK_SET) >= 0 && gzread(file, value, 1) == 1;
}

/* Where the class of picture `number` of `file` is kept; the file is replaced by that one. */
static int64_t label_place(char *file, int64_t number) {
    char *images = strstr(file, "images-idx3");
    if (!images) images = strstr(file, "images.idx3");
    if (!images) return number * CIFAR_RECORD;
    memcpy(images, "labels", 6);
    images[10] = '1';
    return IDX_LABELS + number;
}

/* Classes of pictures that are stored as pixels; labels are read in order, file by file. */
static basin_status read_labels(half *h, const album *a, const int64_t *item, basin_error *error) {
    char name[BASIN_PICTURE_NAME], file[BASIN_PICTURE_NAME], open[BASIN_PICTURE_NAME] = "";
    gzFile stream = NULL;
    basin_status status = BASIN_OK;
    for (int64_t i = 0; i < h->count && !status; i++) {
        int64_t number;
        uint8_t value;
        basin_pictures_name(name, h->pictures, item[i]);
        if (!split_name(file, sizeof file, &number, name)) {
            status = basin_fail(error, BASIN_BAD_FILE, "%s: a picture without a class: %s", a->path,
                                name);
            break;
        }
        int64_t place = label_place(file, number);
        if (strcmp(file, open) != 0) {
            if (stream) gzclose(stream);
            if (basin_gz_open(&stream, file, NULL)) stream = NULL;
            snprintf(open, sizeof open, "%s", file);
        }
        if (!stream || !byte_at(&value, stream, place))
            status = basin_fail(error, BASIN_IO, "%s: no class of picture %lld", file,
                                (long long)number);
        else
            h->class_of[i] = value;
    }
    if (stream) gzclose(stream);
    return status;
}

/* The folder that a picture is in: the last but one part of its path. */
static bool folder_of(char folder[64], const char *name) {
    const char *end = strrchr(name, '/'), *start = end;
    if (!end || end == name) return false;
    while (start > name && start[-1] != '/') start--;
    size_t length = (size_t)(end - start);
    if (!length || length >= 64) return false;
    memcpy(folder, start, length);
    folder[length] = 0;
    return true;
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

/* All folders of the training half, sorted: their places are the classes. */
static basin_status list_folders(album *a, basin_error *error) {
    char name[BASIN_PICTURE_NAME], folder[64], last[64] = "";
    a->name = calloc(MOST_NAMES, sizeof *a->name);
    if (!a->name) return no_memory(a, error);
    for (int64_t i = 0; i < a->part[0].all; i++) {
        basin_pictures_name(name, a->part[0].pictures, i);
        if (!folder_of(folder, name) || !strcmp(folder, last)) continue;
        snprintf(last, sizeof last, "%s", folder);
        bool known = false;
        for (int k = 0; k < a->names; k++) known = known || !strcmp(a->name[k], folder);
        if (known) continue;
        if (a->names == MOST_NAMES)
            return basin_fail(error, BASIN_UNSUPPORTED, "%s: more than %d classes", a->path,
                              MOST_NAMES);
        memcpy(a->name[a->names++], folder, sizeof folder);
    }
    qsort(a->name, (size_t)a->names, sizeof *a->name, by_name);
    return BASIN_OK;
}

static basin_status read_folders(half *h, const album *a, const int64_t *item, basin_error *error) {
    char name[BASIN_PICTURE_NAME], folder[64];
    for (int64_t i = 0; i < h->count; i++) {
        basin_pictures_name(name, h->pictures, item[i]);
        char(*at)[64] = folder_of(folder, name)
                            ? bsearch(folder, a->name, (size_t)a->names, sizeof *a->name, by_name)
                            : NULL;
        if (!at)
            return basin_fail(error, BASIN_BAD_FILE, "%s: %s is in no folder of the training half",
                              a->path, name);
        h->class_of[i] = (int32_t)(at - a->name);
    }
    return BASIN_OK;
}

/* ---- pixels ---- */

static basin_status load(half *h, const album *a, const int64_t *item, basin_error *error) {
    size_t size = (size_t)(a->height * a->width * a->channels);
    basin_picture picture = {0};
    basin_status status = BASIN_OK;
    for (int64_t i = 0; i < h->count && !status; i++) {
        status = basin_pictures_load(&picture, h->pictures, item[i], error);
        if (!status) status = basin_picture_set_channels(&picture, a->channels, error);
        if (!status && (picture.height != a->height || picture.width != a->width))
            status =
                basin_fail(error, BASIN_BAD_FILE,
                           "%s: picture %lld is %lld x %lld; wanted %lld x %lld as the first",
                           a->path, (long long)item[i], (long long)picture.height,
                           (long long)picture.width, (long long)a->height, (long long)a->width);
        if (!status) memcpy(h->pixel + (size_t)i * size, picture.pixel, size);
    }
    basin_picture_free(&picture);
    return status;
}

/* Takes the items' pixels and classes. */
static basin_status take(album *a, int which, const int64_t *item, basin_error *error) {
    half *h = &a->part[which];
    size_t size;
    if (!basin_size_multiply(&size, (size_t)h->count, (size_t)(a->height * a->width * a->channels)))
        return no_memory(a, error);
    h->pixel = basin_array_new(size, 1);
    h->class_of = basin_array_new((size_t)h->count, sizeof *h->class_of);
    if (!h->pixel || !h->class_of) return no_memory(a, error);
    BASIN_TRY(load(h, a, item, error));
    return a->named ? read_folders(h, a, item, error) : read_labels(h, a, item, error);
}

/* ---- the set ---- */

static void album_free(album *a) {
    for (int i = 0; i < 2; i++) {
        basin_pictures_free(a->part[i].pictures);
        free(a->part[i].pixel);
        free(a->part[i].class_of);
    }
    free(a->name);
}

static basin_status album_open(album *a, basin_error *error) {
    static const char *const split[2] = {"train", "test"};
    char name[BASIN_PICTURE_NAME], file[BASIN_PICTURE_NAME];
    int64_t number;
    for (int i = 0; i < 2; i++) {
        half *h = &a->part[i];
        basin_status status = basin_pictures_open(&h->pictures, &a->path, 1, split[i], error);
        if (status) return status;
        h->all = h->count = basin_pictures_count(h->pictures);
        if (a->limit && h->count > a->limit) h->count = a->limit;
        if (!basin_pictures_divided(h->pictures))
            return basin_fail(error, BASIN_BAD_FILE, "%s: no halves for training and test",
                              a->path);
        if (!h->count)
            return basin_fail(error, BASIN_BAD_FILE, "%s: no pictures for %s", a->path, split[i]);
    }
    basin_pictures_name(name, a->part[0].pictures, 0);
    a->named = !split_name(file, sizeof file, &number, name);
    basin_picture first = {0};
    basin_status status = basin_pictures_load(&first, a->part[0].pictures, 0, error);
    a->height = first.height, a->width = first.width, a->channels = first.channels;
    basin_picture_free(&first);
    return !status && a->named ? list_folders(a, error) : status;
}

/* The order of training pictures, those for validation behind the others, and of test pictures. */
static basin_status choose(int64_t *item[2], const album *a, int64_t validation, uint64_t seed,
                           basin_error *error) {
    int64_t n = a->part[0].count, all = a->part[0].all;
    if (validation >= n)
        return basin_fail(error, BASIN_BAD_VALUE, "%lld of %lld pictures for validation",
                          (long long)validation, (long long)n);
    item[0] = basin_array_new((size_t)all, sizeof *item[0]);
    item[1] = basin_array_new((size_t)a->part[1].all, sizeof *item[1]);
    if (!item[0] || !item[1]) return no_memory(a, error);
    for (int part = 0; part < 2; part++)
        for (int64_t i = 0; i < a->part[part].all; i++) item[part][i] = i;
    basin_random random = basin_random_start(seed, 61, 0);
    if (a->named) {
        basin_random_shuffle(item[0], (size_t)all, &random);
        basin_random_shuffle(item[1], (size_t)a->part[1].all, &random);
    } else
        for (int64_t i = 0; i < n; i++) item[0][i] = (i + validation) % n;
    return BASIN_OK;
}

static basin_status make(basin_graphset *set, album *a, const basin_superpixels *spec,
                         int64_t validation, basin_error *error) {
    basin_superpixels s = *spec;
    half *train = &a->part[0], *test = &a->part[1];
    int64_t split[3] = {train->count - validation, validation, test->count};
    size_t size = (size_t)(a->height * a->width * a->channels);
    size_t first = (size_t)train->count, second = (size_t)test->count;
    uint8_t *pixel = realloc(train->pixel, (first + second) * size);
    if (pixel) train->pixel = pixel;
    int32_t *class_of = realloc(train->class_of, (first + second) * sizeof *class_of);
    if (class_of) train->class_of = class_of;
    if (!pixel || !class_of) return no_memory(a, error);
    memcpy(pixel + first * size, test->pixel, second * size);
    memcpy(class_of + first, test->class_of, second * sizeof *class_of);
    if (!s.segments) s.segments = a->channels == 1 ? 75 : 150;
    if (s.compactness <= 0) s.compactness = a->channels == 1 ? 0.25 : 10;
    return basin_graphset_superpixels(set, pixel, class_of, split, a->height, a->width, a->channels,
                                      &s, error);
}

basin_status basin_graphset_read_pictures(basin_graphset *set, const char *path,
                                          const basin_superpixels *spec, int64_t validation,
                                          int64_t limit, uint64_t seed, basin_error *error) {
    album a = {.path = path, .limit = limit};
    int64_t *item[2] = {NULL, NULL};
    *set = (basin_graphset){0};
    basin_status status = album_open(&a, error);
    if (!status) status = choose(item, &a, validation, seed, error);
    for (int i = 0; i < 2 && !status; i++) status = take(&a, i, item[i], error);
    if (!status) status = make(set, &a, spec, validation, error);
    free(item[0]);
    free(item[1]);
    album_free(&a);
    return status;
}
