/* Stores pictures or vectors in an associative memory, recalls them from damaged cues, and measures
 * how many patterns separation functions hold: docs/memories.md. */
#include <basin/tasks/tasks.h>

#include "capacity.h"

static const char usage[] =
    "memories store MEMORY PATTERNS [--function NAME] [--power N] [--beta X] [--binary 1]\n"
    "               [--height N] [--width N] [--channels N] [--limit N]\n"
    "    PATTERNS: pictures (a file, folder, archive, MNIST ..), or .npz or .safetensors with\n"
    "    vectors [count, D]; NAME: classical, power, softmax, entmax15, sparsemax, normmax2, lsr\n"
    "memories recall MEMORY none|top|bottom|left|right|random [--share X] [--noise X] [--limit N]\n"
    "                [--steps N] [--seed N] [--png FILE] [--backend ref|cpu|cuda] [--threads N]\n"
    "    damages the stored patterns and recalls them; FILE shows cue, recall and original\n"
    "memories capacity FUNCTION BITS,BITS,.. [--power N] [--flips SHARE] [--seed N]\n"
    "    FUNCTION: classical, power, softmax or lsr\n";

/* ---- store ---- */

static void load_vectors(memory *m, const char *path, int64_t limit) {
    basin_bundle *in;
    const basin_tensor *found = NULL;
    must(basin_bundle_read(&in, path, &error));
    for (size_t i = 0; i < basin_bundle_count(in) && !found; i++)
        if (basin_bundle_at(in, i)->shape.rank == 2) found = basin_bundle_at(in, i);
    if (!found || basin_shape_count(found->shape) < 1) quit(path, "no tensor [count, D]");
    basin_tensor head = basin_tensor_borrow(found->data, found->dtype, found->shape);
    if (limit && limit < head.shape.dim[0]) head.shape.dim[0] = limit;
    must(basin_tensor_new(&m->patterns, BASIN_F32, head.shape, &error));
    must(basin_tensor_convert(&m->patterns, &head, &error));
    basin_bundle_free(in);
}

static void load_pictures(memory *m, const char *path, int64_t limit) {
    basin_pictures *pictures;
    basin_picture picture = {0}, scaled = {0};
    must(basin_pictures_open(&pictures, &path, 1, BASIN_PICTURES_ALL, &error));
    must(basin_pictures_load(&picture, pictures, 0, &error));
    if (!m->height) m->height = picture.height;
    if (!m->width) m->width = picture.width;
    if (!m->channels) m->channels = picture.channels;
    int64_t count = basin_pictures_count(pictures), dim = m->height * m->width * m->channels;
    if (limit && limit < count) count = limit;
    must(basin_tensor_new(&m->patterns, BASIN_F32, BASIN_SHAPE(count, dim), &error));
    for (int64_t i = 0; i < count; i++) {
        must(basin_pictures_load(&picture, pictures, i, &error));
        must(basin_picture_set_channels(&picture, (int)m->channels, &error));
        must(basin_picture_scale(&scaled, &picture, m->height, m->width, &error));
        for (int64_t k = 0; k < dim; k++)
            ((float *)m->patterns.data)[i * dim + k] = (float)scaled.pixel[k] / 255;
    }
    basin_picture_free(&picture);
    basin_picture_free(&scaled);
    basin_pictures_close(pictures);
}

static int store(const char *path, const char *patterns) {
    memory m = {.function = find_function(text("--function", "softmax")),
                .binary = integer("--binary", 0),
                .height = integer("--height", 0),
                .width = integer("--width", 0),
                .channels = integer("--channels", 0)};
    int64_t limit = integer("--limit", 0);
    const char *dot = strrchr(patterns, '.');
    m.power = real("--power", m.function == POWER ? 3 : 0);
    m.beta = real("--beta", m.function == LSR ? 2 : m.function > POWER ? 50 : 0);
    check_options();
    if (dot && (!strcmp(dot, ".npz") || !strcmp(dot, ".safetensors")))
        load_vectors(&m, patterns, limit);
    else
        load_pictures(&m, patterns, limit);
    make_keys(&m);
    memory_write(path, &m);
    printf("%d patterns of %d numbers\n", (int)m.count, (int)m.dim);
    memory_free(&m);
    return 0;
}

/* ---- recall ---- */

typedef struct damage {
    const char *where; /* one of the names of `usage` */
    double share, noise;
    uint64_t seed;
} damage;

/* Whether number i of a pattern is erased; vectors are erased as if they were columns. */
static bool is_erased(const memory *m, const damage *d, uint64_t cue, int64_t i) {
    int64_t channels = m->channels ? m->channels : 1, row = m->channels ? m->width * channels : 1;
    double y = ((double)(i / row) + 0.5) / (double)(m->dim / row);
    double x = ((double)(i % row / channels) + 0.5) / (double)(row / channels);
    if (!strcmp(d->where, "top")) return y < d->share;
    if (!strcmp(d->where, "bottom")) return y > 1 - d->share;
    if (!strcmp(d->where, "left")) return x < d->share;
    if (!strcmp(d->where, "right")) return x > 1 - d->share;
    if (!strcmp(d->where, "random"))
        return basin_random_uniform_at(d->seed, 2 * cue, (uint64_t)(i / channels)) < d->share;
    if (strcmp(d->where, "none") != 0)
        quit(d->where, "expected none, top, bottom, left, right or random");
    return false;
}

static void damage_cues(float *cue, uint8_t *known, const memory *m, const damage *d,
                        int64_t cues) {
    for (int64_t i = 0; i < cues * m->dim; i++) {
        uint64_t number = (uint64_t)(i / m->dim);
        double noise = basin_random_normal_at(d->seed, 2 * number + 1, (uint64_t)(i % m->dim));
        known[i] = !is_erased(m, d, number, i % m->dim);
        cue[i] = ((const float *)m->patterns.data)[i] + (float)(d->noise * noise);
        if (!known[i]) cue[i] = (m->low + m->high) / 2;
    }
}

/* A row of cue, recall and original per pattern. */
static void draw(const char *path, const memory *m, const float *cue, const float *value,
                 int64_t cues) {
    const float *from[] = {cue, value, m->patterns.data};
    int64_t line = m->width * m->channels;
    basin_picture all = {0};
    if (!m->channels) quit(path, "the patterns are not pictures");
    must(basin_picture_resize_memory(&all, cues * m->height, 3 * m->width, (int)m->channels,
                                     &error));
    for (int64_t y = 0; y < all.height; y++)
        for (int64_t i = 0; i < 3 * line; i++) {
            float pixel = from[i / line][y * line + i % line];
            all.pixel[y * 3 * line + i] = (uint8_t)lrintf(255 * fminf(fmaxf(pixel, 0), 1));
        }
    must(basin_picture_write_png(path, &all, &error));
    basin_picture_free(&all);
}

static void print_recall(const memory *m, const recalled *r, const float *cue, const uint8_t *known,
                         int64_t cues) {
    const float *truth = m->patterns.data;
    puts(" cue  overlap before   after  nearest");
    for (int64_t i = 0; i < cues; i++) {
        int64_t at = i * m->dim;
        printf("%4d  %14.4f  %6.4f  %7d\n", (int)i, overlap_of(m, cue + at, known + at, truth + at),
               overlap_of(m, r->value + at, NULL, truth + at), (int)r->nearest[i]);
    }
    puts("step      energy");
    for (int t = 0; t <= r->path.steps; t++)
        printf("%4d  %10.6f\n", t, basin_descent_total(&r->path, t));
    puts(r->path.converged ? "all states converged" : "some states still move");
}

static int recall_all(const char *path, const char *where) {
    damage d = {where, real("--share", 0.5), real("--noise", 0), (uint64_t)integer("--seed", 0)};
    int64_t cues = integer("--limit", 8);
    int steps = (int)integer("--steps", 100);
    const char *png = text("--png", NULL);
    basin_engine engine = open_engine();
    memory m;
    recalled r;
    check_options();
    memory_open(&m, path);
    if (cues > m.count) cues = m.count;
    float *cue = calloc((size_t)(cues * m.dim), sizeof *cue);
    uint8_t *known = calloc((size_t)(cues * m.dim), 1);
    damage_cues(cue, known, &m, &d, cues);
    recall(&r, &m, &engine, cue, known, cues, steps);
    print_recall(&m, &r, cue, known, cues);
    if (png) draw(png, &m, cue, r.value, cues);
    recalled_free(&r);
    free(cue);
    free(known);
    memory_free(&m);
    basin_engine_close(&engine);
    return 0;
}

/* ---- capacity ---- */

static int capacity(const char *name, const char *list) {
    enum { MOST = 16 };
    separation function = find_function(name);
    double power = real("--power", 3), flips = real("--flips", 0), held[MOST];
    uint64_t seed = (uint64_t)integer("--seed", 0);
    int64_t bits[MOST];
    int count = 0;
    check_options();
    if (function > SOFTMAX && function < LSR)
        quit(name, "recalls random signs until two patterns are equal: no capacity to measure");
    puts("bits  capacity");
    for (char *end; *list && count < MOST; list = end + (*end == ','), count++) {
        bits[count] = strtoll(list, &end, 10);
        if (bits[count] < 2 || bits[count] > 64 * WORDS) quit(list, "expected 2 to 4096 bits");
        held[count] = measure(function, power, bits[count], flips, seed);
        printf("%4d  %8.1f\n", (int)bits[count], held[count]);
    }
    printf("capacity grows as %s: a = %.3f, theory %.3f\n", function <= POWER ? "N^a" : "exp(a N)",
           exponent(function, held, bits, count), theory(function, power));
    return 0;
}

int main(int count, char **argument) {
    const char *command = count < 4 ? "" : argument[1];
    options = argument + (count < 4 ? count : 4);
    if (!strcmp(command, "store")) return store(argument[2], argument[3]);
    if (!strcmp(command, "recall")) return recall_all(argument[2], argument[3]);
    if (!strcmp(command, "capacity")) return capacity(argument[2], argument[3]);
    fputs(usage, stderr);
    return 2;
}
