/* Cues: damaging them, and comparing patterns with each other. */
#include <math.h>
#include <string.h>

#include "basin/random.h"
#include "task/given.h"
#include "task/memory/memory.h"

typedef enum side { NONE, TOP, BOTTOM, LEFT, RIGHT, RANDOM, SIDES } side;

static basin_status find_side(side *found, const char *name, basin_error *error) {
    static const char *const names[] = {"none", "top", "bottom", "left", "right", "random"};
    for (int i = 0; i < SIDES; i++)
        if (!strcmp(name ? name : "none", names[i])) return *found = (side)i, BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "to erase '%s'; wanted none, top, bottom, left, right or random", name);
}

/* Whether number i of a pattern is erased. */
static bool is_erased(const basin_memory_spec *s, int64_t dim, int64_t i, side where,
                      const basin_memory_damage *d) {
    int64_t row = s->channels ? s->width * s->channels : 1;
    double y = ((double)(i / row) + 0.5) / (double)(dim / row);
    double x = s->channels ? ((double)(i % row / s->channels) + 0.5) / (double)s->width : 0;
    uint64_t pixel = (uint64_t)(s->channels ? i / s->channels : i);
    switch (where) {
    case TOP: return y < d->share;
    case BOTTOM: return y > 1 - d->share;
    case LEFT: return x < d->share;
    case RIGHT: return x > 1 - d->share;
    case RANDOM: return basin_random_uniform_at(d->seed, 2 * d->stream, pixel) < d->share;
    default: return false;
    }
}

basin_status basin_memory_damage_cue(float *cue, unsigned char *known, const basin_memory *memory,
                                     const basin_memory_damage *damage, basin_error *error) {
    basin_memory_damage d;
    side where = NONE;
    int64_t dim = basin_memory_dim(memory);
    basin_status status = basin_given_take(&d, sizeof d, damage, "basin_memory_damage", error);
    if (!status) status = find_side(&where, d.erase, error);
    if (status) return status;
    if (d.share == 0) d.share = 0.5;
    if (!(d.share > 0 && d.share <= 1) || !(d.noise >= 0 && isfinite(d.noise)))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "to erase a share of %g and add noise of %g; wanted above 0 to 1, and 0 "
                          "or more",
                          d.share, d.noise);
    if ((where == LEFT || where == RIGHT) && !memory->spec.channels)
        return basin_fail(error, BASIN_BAD_VALUE, "to erase the %s of vectors; wanted pictures",
                          d.erase);
    for (int64_t i = 0; i < dim; i++) {
        known[i] = !is_erased(&memory->spec, dim, i, where, &d);
        double noise = basin_random_normal_at(d.seed, 2 * d.stream + 1, (uint64_t)i);
        if (d.noise > 0) cue[i] += (float)(d.noise * noise);
        if (!known[i]) cue[i] = (memory->low + memory->high) / 2;
    }
    return BASIN_OK;
}

/* A number as the memory sees it: which side of the middle it is on, where states are binary. */
static double seen(const basin_memory *m, double value) {
    double middle = ((double)m->low + m->high) / 2;
    if (!m->spec.binary || value == middle) return value;
    return value > middle ? m->high : m->low;
}

/* Around what the cosine of keys is taken. */
static double centre(const basin_memory *m, int64_t i) {
    return m->spec.binary ? ((double)m->low + m->high) / 2 : m->mean[i];
}

void basin_memory_compare(double *overlap, double *mse, const basin_memory *memory, const float *a,
                          const float *b, const unsigned char *known_a) {
    double ab = 0, aa = 0, bb = 0, apart = 0;
    int64_t dim = basin_memory_dim(memory);
    double middle = ((double)memory->low + memory->high) / 2;
    for (int64_t i = 0; i < dim; i++) {
        bool known = !known_a || known_a[i];
        double x = known ? seen(memory, a[i]) : middle, y = seen(memory, b[i]);
        double u = known ? x - centre(memory, i) : 0, v = y - centre(memory, i);
        ab += u * v, aa += u * u, bb += v * v, apart += (x - y) * (x - y);
    }
    *overlap = aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
    *mse = apart / (double)dim;
}
