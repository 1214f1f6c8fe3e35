/* The picture as a memory of itself; see complete.h. A hole descends, level by level, on
 *
 *     E(x) = sum over patches p of c_p (-1 / beta) log sum over stored q exp(-beta d(p, q))
 *     d(p, q) = mean |x_p - x_q - s|^2 + 9 |t_p - t_q|^2 + |m_p - m_q - s|^2
 *
 * p: 7 x 7 patches that hold something missing; q: those that are known, the stored patterns; c_p:
 * confidence, which falls with the depth; t: how rough the surroundings are, mean |gx| and |gy|
 * over 15 x 15 pixels; m: their mean colour, in the hole the trained model's; s: m_p - m_q, at most
 * 12 levels of 255, on the finest grid 6: so far patterns are shifted to the model's colours. Known
 * pixels are clamped. A step attends over the patterns and moves each missing pixel to the minimum
 * for that attention, the mean of what is retrieved, x_q + s, for the patches around it. On the
 * coarsest grid all patterns are attended to and beta rises; on finer ones it is infinite, one
 * pattern is left, and PatchMatch (Barnes 2009) looks for it. In the end each pixel is the one
 * pattern's with the largest c_p, with a smooth correction by the known pixels at the rim. */
#include "base/sort.h"
#include "basin/random.h"
#include "tasks/pictures/complete/complete.h"

enum { HALF = 3, SIDE = 2 * HALF + 1, PATCH = SIDE * SIDE, LANES = 4, FEATURES = 8 };
enum { TEXTURE = 0, TEXTURES = 2, MEAN = TEXTURES, USED = 5 }; /* places of features */
enum { VOTE = LANES + TEXTURES + 1 }; /* sums of what was retrieved, and of its weights */
enum { LEVELS = 10 };

static const char what[] = "the memory of a picture";

/* The surroundings of a hole in pixels of 1, 2, 4.. of the picture. */
typedef struct grid {
    int64_t height, width;
    float shift;               /* the largest of patterns, in levels of 255 */
    float *colour;             /* [height, width, LANES] the state */
    float *feature;            /* [height, width, FEATURES] by their weights */
    float *depth;              /* [height, width] */
    uint8_t *missing, *stored; /* [height, width]; the centre of a pattern */
    int32_t *at;               /* [height, width] the centre of the pattern retrieved, or -1 */
    float *apart;              /* [height, width] its distance */
    float *weight;             /* [height, width] confidence */
    int32_t *target, *source;  /* [targets] [sources] centres of patches to fill, of patterns */
    int64_t targets, sources;
} grid;

static void grid_free(grid *g) { BASIN_FREE(g->colour, g->missing, g->at); }

static basin_status grid_new(grid *g, int64_t height, int64_t width, basin_error *error) {
    int64_t n = height * width;
    *g = (grid){.height = height, .width = width};
    BASIN_TRY(BASIN_NEW(&g->colour, n * (LANES + FEATURES + 3), what, error));
    BASIN_TRY(BASIN_NEW(&g->missing, 2 * n, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&g->at, 3 * n, what, error));
    g->feature = g->colour + n * LANES, g->depth = g->feature + n * FEATURES;
    g->apart = g->depth + n, g->weight = g->apart + n, g->stored = g->missing + n;
    g->target = g->at + n, g->source = g->target + n;
    for (int64_t i = 0; i < n; i++) g->at[i] = -1;
    return BASIN_OK;
}

/* ---- features ---- */

/* Replaces a feature by its mean over 15 x 15 pixels, of those that count. */
static basin_status box_mean(grid *g, int64_t f, const uint8_t *counts, basin_error *error) {
    enum { RADIUS = 7 };
    int64_t row = g->width + 1, w = g->width;
    BASIN_SCRATCH(double, sum, (g->height + 1) * row * 2, what, error);
    for (int64_t i = 0; i < g->height * w; i++) {
        int64_t to = (i / w + 1) * row + i % w + 1;
        double add[] = {counts[i] ? (double)g->feature[i * FEATURES + f] : 0, counts[i]};
        for (int64_t k = 0; k < 2; k++)
            sum[to * 2 + k] = sum[(to - 1) * 2 + k] + sum[(to - row) * 2 + k] -
                              sum[(to - row - 1) * 2 + k] + add[k];
    }
    for (int64_t i = 0; i < g->height * w; i++) {
        int64_t top = basin_int_max(i / w - RADIUS, 0), left = basin_int_max(i % w - RADIUS, 0);
        int64_t bottom = basin_int_min(i / w + RADIUS + 1, g->height);
        int64_t right = basin_int_min(i % w + RADIUS + 1, w);
        double part[2];
        for (int64_t k = 0; k < 2; k++)
            part[k] = sum[(bottom * row + right) * 2 + k] - sum[(bottom * row + left) * 2 + k] -
                      sum[(top * row + right) * 2 + k] + sum[(top * row + left) * 2 + k];
        g->feature[i * FEATURES + f] = part[1] > 0.5 ? (float)(part[0] / part[1]) : 0;
    }
    return BASIN_OK;
}

/* Roughness of what is known, and from the rim on into the hole. */
static basin_status find_texture(grid *g, int64_t t, basin_error *error) {
    const float weight = 3;
    int64_t n = g->height * g->width, step = t ? g->width : 1;
    BASIN_SCRATCH(uint8_t, counts, n, what, error);
    float *f = g->feature + TEXTURE + t;
    for (int64_t i = 0; i < n; i++) {
        bool in = t ? i + step < n : i % g->width + 1 < g->width;
        counts[i] = in && !g->missing[i] && !g->missing[i + step];
        for (int c = 0; c < 3 && counts[i]; c++)
            f[i * FEATURES] +=
                weight * fabsf(g->colour[(i + step) * LANES + c] - g->colour[i * LANES + c]);
    }
    BASIN_TRY(box_mean(g, TEXTURE + t, counts, error));
    for (int64_t i = 0; i < n; i++)
        if (g->missing[i]) f[i * FEATURES] = 0;
    const basin_ties ties = {g->height, g->width, FEATURES, g->missing, .known = f};
    return basin_membrane_add(f, &ties, 1, error);
}

static basin_status find_features(grid *g, basin_error *error) {
    int64_t n = g->height * g->width;
    BASIN_SCRATCH_RAW(uint8_t, all, n, what, error);
    memset(all, 1, (size_t)n);
    for (int64_t t = 0; t < TEXTURES; t++) BASIN_TRY(find_texture(g, t, error));
    for (int64_t c = 0; c < 3; c++) {
        for (int64_t i = 0; i < n; i++)
            g->feature[i * FEATURES + MEAN + c] = g->colour[i * LANES + c];
        BASIN_TRY(box_mean(g, MEAN + c, all, error));
    }
    return BASIN_OK;
}

/* ---- grids ---- */

/* The part of the picture around a hole, in multiples of `unit` pixels. */
static basin_status cut(grid *g, basin_area *area, const basin_picture *p, const basin_hole *hole,
                        basin_area box, int64_t unit, basin_error *error) {
    enum { MIN = 48, MAX = 256 };
    int64_t margin = basin_int_max(box.height, box.width);
    margin = basin_int_min(basin_int_max(margin, MIN), MAX);
    area->top = basin_int_max(box.top - margin, 0) / unit * unit;
    area->left = basin_int_max(box.left - margin, 0) / unit * unit;
    area->height = basin_int_min(box.top + box.height + margin, p->height) - area->top;
    area->width = basin_int_min(box.left + box.width + margin, p->width) - area->left;
    int64_t width = (area->width + unit - 1) / unit * unit;
    BASIN_TRY(grid_new(g, (area->height + unit - 1) / unit * unit, width, error));
    for (int64_t i = 0; i < g->height * width; i++) { /* what reaches out repeats the last pixel */
        int64_t y = area->top + basin_int_min(i / width, area->height - 1);
        int64_t x = area->left + basin_int_min(i % width, area->width - 1);
        g->depth[i] = (float)basin_hole_depth(hole, y, x);
        g->missing[i] = g->depth[i] > 0;
        for (int c = 0; c < 3; c++)
            g->colour[i * LANES + c] = p->pixel[(y * p->width + x) * p->channels + c % p->channels];
    }
    return find_features(g, error);
}

static basin_status halve(grid *to, const grid *from, basin_error *error) {
    BASIN_TRY(grid_new(to, from->height / 2, from->width / 2, error));
    for (int64_t k = 0; k < 4 * to->height * to->width; k++) {
        int64_t i = k / 4, at = i / to->width * 2 * from->width + i % to->width * 2;
        at += k % 4 / 2 * from->width + k % 2;
        to->missing[i] |= from->missing[at];
        to->depth[i] += from->depth[at] / 8;
        for (int c = 0; c < LANES; c++)
            to->colour[i * LANES + c] += from->colour[at * LANES + c] / 4;
        for (int c = 0; c < FEATURES; c++)
            to->feature[i * FEATURES + c] += from->feature[at * FEATURES + c] / 4;
    }
    return BASIN_OK;
}

static float square_apart(const float *a, const float *b, int count) {
    float sum = 0;
    for (int k = 0; k < count; k++) sum += (a[k] - b[k]) * (a[k] - b[k]);
    return sum;
}

/* Patterns whose surroundings look like none of those at the rim are not stored. */
static void store(grid *g, const int32_t *rim, int64_t rims) {
    enum { SAMPLES = 96 };
    const float far = 60 * 60;
    int64_t step = rims / SAMPLES + 1, kept = 0;
    for (int64_t k = 0; k < g->sources; k++) {
        const float *f = g->feature + (int64_t)g->source[k] * FEATURES;
        float min = rims ? INFINITY : 0;
        for (int64_t r = 0; r < rims && min > far; r += step)
            min = fminf(min, square_apart(f, g->feature + (int64_t)rim[r] * FEATURES, USED));
        g->stored[g->source[k]] = min <= far;
        if (min <= far) g->source[kept++] = g->source[k];
    }
    g->sources = kept;
}

/* Patches with something missing are targets, the others sources. `by`: pixels of the picture. */
static basin_status find_patches(grid *g, double by, basin_error *error) {
    const double min = 0.02, fade = 6;
    int64_t rims = 0;
    BASIN_SCRATCH_RAW(int32_t, rim, g->height * g->width, what, error);
    for (int64_t i = 0; i < g->height * g->width; i++) {
        int64_t y = i / g->width, x = i % g->width;
        bool some = false;
        g->weight[i] = (float)(min + (1 - min) * exp(-by * (double)g->depth[i] / fade));
        if (y < HALF || x < HALF || y + HALF >= g->height || x + HALF >= g->width) continue;
        for (int64_t r = -HALF; r <= HALF && !some; r++)
            some = memchr(g->missing + i + r * g->width - HALF, 1, SIDE) != NULL;
        if (some && !g->missing[i]) rim[rims++] = (int32_t)i;
        *(some ? &g->target[g->targets++] : &g->source[g->sources++]) = (int32_t)i;
    }
    store(g, rim, rims);
    return BASIN_OK;
}

/* ---- attention ---- */

/* How far pattern q is shifted for the patch p; what its mean colour is then apart. */
static float find_shift(float shift[LANES], const grid *g, int64_t p, int64_t q) {
    const float *f = g->feature + MEAN;
    float left = 0;
    for (int c = 0; c < LANES; c++) {
        float e = f[p * FEATURES + c] - f[q * FEATURES + c];
        shift[c] = fminf(fmaxf(e, -g->shift), g->shift);
        left += (e - shift[c]) * (e - shift[c]);
    }
    return left;
}

/* d(p, q); infinite where it is found to be above the limit. */
static float apart(const grid *g, int64_t p, int64_t q, float limit) {
    float s[LANES] = {0}, shift[LANES], sum = find_shift(shift, g, p, q);
    sum += square_apart(g->feature + p * FEATURES, g->feature + q * FEATURES, TEXTURES);
    for (int64_t r = -HALF; r <= HALF; r++) {
        const float *a = g->colour + (p + r * g->width - HALF) * LANES;
        const float *b = g->colour + (q + r * g->width - HALF) * LANES;
        if (sum + (s[0] + s[1] + s[2]) / PATCH > limit) return INFINITY;
        for (int k = 0; k < SIDE * LANES; k += LANES)
            for (int c = 0; c < LANES; c++) {
                float e = a[k + c] - b[k + c] - shift[c];
                s[c] += e * e;
            }
    }
    return sum + (s[0] + s[1] + s[2]) / PATCH;
}

/* Pattern q, by a weight, votes for the patch p. */
static void add_vote(float *votes, const grid *g, int64_t p, int64_t q, float weight) {
    float shift[LANES];
    find_shift(shift, g, p, q);
    for (int64_t k = 0; k < PATCH; k++) {
        int64_t by = (k / SIDE - HALF) * g->width + k % SIDE - HALF;
        float *to = votes + (p + by) * VOTE;
        for (int c = 0; c < LANES; c++)
            to[c] += weight * (g->colour[(q + by) * LANES + c] + shift[c]);
        for (int c = 0; c < TEXTURES; c++)
            to[LANES + c] += weight * g->feature[(q + by) * FEATURES + TEXTURE + c];
        to[VOTE - 1] += weight;
    }
}

/* Within a step: large holes have many patches. */
static basin_status check_stop(const basin_watch *watch, int64_t patch, basin_error *error) {
    enum { OFTEN = 256 };
    if (patch % OFTEN || !basin_watch_stopped(watch)) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "interrupted");
}

/* Attention over the patterns at a finite beta, of which at most PATTERNS are taken; the energy. */
static basin_status attend(float *votes, double *energy, grid *g, double beta,
                           const basin_watch *watch, basin_error *error) {
    enum { PATTERNS = 600 };
    const double negligible = 1e-3;
    int64_t step = g->sources / PATTERNS + 1;
    BASIN_SCRATCH_RAW(float, d, g->sources, what, error);
    for (int64_t k = 0; k < g->targets; k++) {
        int64_t p = g->target[k], best = 0;
        double sum = 0;
        BASIN_TRY(check_stop(watch, k, error));
        for (int64_t j = 0; j < g->sources; j += step) {
            d[j] = apart(g, p, g->source[j], INFINITY);
            if (d[j] < d[best]) best = j;
        }
        for (int64_t j = 0; j < g->sources; j += step) sum += exp(beta * (double)(d[best] - d[j]));
        g->at[p] = g->source[best], g->apart[p] = d[best];
        *energy += (double)g->weight[p] * ((double)d[best] - log(sum) / beta);
        for (int64_t j = 0; j < g->sources; j += step) {
            double a = exp(beta * (double)(d[best] - d[j])) / sum;
            if (a > negligible) add_vote(votes, g, p, g->source[j], g->weight[p] * (float)a);
        }
    }
    return BASIN_OK;
}

/* `favour`: the pattern is taken unless the present one is nearer by that factor. */
static void try_pattern(grid *g, int64_t p, int64_t q, float favour) {
    if (q < 0 || q >= g->height * g->width || !g->stored[q] || q == g->at[p]) return;
    float limit = favour * g->apart[p], d = apart(g, p, q, limit);
    if (d < limit) g->apart[p] = d, g->at[p] = (int32_t)q;
}

/* The nearest pattern, beta infinite: a pass of PatchMatch, from the upper left or back. Patterns
 * that go on with a neighbour's are favoured: whole pieces are retrieved, with fewer seams. */
static basin_status search(grid *g, bool back, basin_random *random, const basin_watch *watch,
                           basin_error *error) {
    const float favour = 1.15F;
    int64_t w = g->width, step = back ? -1 : 1;
    for (int64_t k = 0; k < g->targets; k++) {
        int64_t p = g->target[back ? g->targets - 1 - k : k];
        BASIN_TRY(check_stop(watch, k, error));
        if (g->at[p - step] >= 0) try_pattern(g, p, g->at[p - step] + step, favour);
        if (g->at[p - step * w] >= 0) try_pattern(g, p, g->at[p - step * w] + step * w, favour);
        for (int64_t reach = basin_int_max(g->height, w); reach > 0; reach /= 2) {
            uint64_t word = basin_random_next(random), span = (uint64_t)(2 * reach + 1);
            int64_t y = g->at[p] / w + (int64_t)((word & 0xffff) * span >> 16) - reach;
            int64_t x = g->at[p] % w + (int64_t)((word >> 16) * span >> 16) - reach;
            if (y >= 0 && x >= 0 && y < g->height && x < w) try_pattern(g, p, y * w + x, 1);
        }
    }
    return BASIN_OK;
}

/* Votes of the patterns retrieved; the energy. */
static void retrieve(float *votes, double *energy, const grid *g) {
    for (int64_t k = 0; k < g->targets; k++) {
        int64_t p = g->target[k];
        *energy += (double)g->weight[p] * (double)g->apart[p];
        add_vote(votes, g, p, g->at[p], g->weight[p]);
    }
}

/* Missing pixels move to the mean of the votes. */
static void move(grid *g, const float *votes) {
    for (int64_t i = 0; i < g->height * g->width; i++) {
        const float *sum = votes + i * VOTE;
        if (!g->missing[i] || sum[VOTE - 1] <= 0) continue;
        for (int c = 0; c < LANES; c++) g->colour[i * LANES + c] = sum[c] / sum[VOTE - 1];
        for (int c = 0; c < TEXTURES; c++)
            g->feature[i * FEATURES + TEXTURE + c] = sum[LANES + c] / sum[VOTE - 1];
    }
    for (int64_t k = 0; k < g->targets; k++)
        g->apart[g->target[k]] = apart(g, g->target[k], g->at[g->target[k]], INFINITY);
}

/* The energy of a step, per unit of confidence, in its two terms. */
static void note_energy(basin_course *course, const grid *g, double energy) {
    double model = 0, all = 0;
    float shift[LANES];
    for (int64_t k = 0; k < g->targets; k++) {
        int64_t p = g->target[k];
        model += (double)g->weight[p] * (double)find_shift(shift, g, p, g->at[p]);
        all += (double)g->weight[p];
    }
    if (course->steps == BASIN_COURSE) return;
    course->model[course->steps] = model / all;
    course->memory[course->steps++] = (energy - model) / all;
}

/* ---- the end ---- */

/* Each pixel of a patch around the hole is what the most confident patch retrieved for it. */
static void take_whole(float *taken /* [height, width, LANES] */, const grid *g,
                       float *best /* [height, width] zeros */) {
    for (int64_t k = 0; k < g->targets * PATCH; k++) {
        int64_t p = g->target[k / PATCH], e = k % PATCH;
        int64_t by = (e / SIDE - HALF) * g->width + e % SIDE - HALF;
        if (g->weight[p] <= best[p + by]) continue;
        float shift[LANES];
        best[p + by] = g->weight[p];
        find_shift(shift, g, p, g->at[p]);
        for (int c = 0; c < LANES; c++)
            taken[(p + by) * LANES + c] = g->colour[(g->at[p] + by) * LANES + c] + shift[c];
    }
}

/* The smoothest change of what was taken that meets the known pixels, where it is known what was
 * retrieved for them, and ends within `length` pixels. */
static basin_status finish(grid *g, basin_error *error) {
    const double length = 8;
    const float max = 16; /* more is an edge in another place, not another light */
    int64_t n = g->height * g->width;
    BASIN_SCRATCH_RAW(float, taken, n *LANES, what, error);
    BASIN_SCRATCH(float, best, n, what, error);
    memcpy(taken, g->colour, (size_t)(n * LANES) * sizeof *taken);
    take_whole(taken, g, best);
    for (int64_t i = 0; i < n * LANES; i++) {
        float change = fminf(fmaxf(g->colour[i] - taken[i], -max), max);
        if (g->missing[i / LANES])
            g->colour[i] = taken[i];
        else
            taken[i] = g->colour[i] - change;
    }
    const basin_ties ties = {g->height,
                             g->width,
                             LANES,
                             g->missing,
                             .known = g->colour,
                             .guess = taken,
                             .spring = 1 / (length * length)};
    return basin_membrane_add(g->colour, &ties, 3, error);
}

/* ---- the descent ---- */

/* Begins with what a coarser grid retrieved, else with anything. */
static void begin(grid *g, const grid *coarse, basin_random *random) {
    for (int64_t k = 0; k < g->targets; k++) {
        int64_t p = g->target[k], y = p / g->width, x = p % g->width;
        int64_t from = coarse->at[y / 2 * coarse->width + x / 2], q = -1;
        if (from >= 0)
            q = (from / coarse->width * 2 + y % 2) * g->width + from % coarse->width * 2 + x % 2;
        if (q < 0 || !g->stored[q]) q = g->source[basin_random_below(random, (uint64_t)g->sources)];
        g->at[p] = (int32_t)q;
    }
}

typedef struct descent {
    grid grid[LEVELS];
    int levels;
    uint64_t seed;
    const basin_watch *watch;
    basin_course *course;
} descent;

static void descent_free(descent *d) {
    for (int k = 0; k < LEVELS; k++) grid_free(&d->grid[k]);
}

static basin_status run_step(descent *d, int k, int i, int steps, basin_random *random,
                             basin_error *error) {
    const double cold = 0.05, hot = 0.002; /* beta, by squared levels of 255 */
    grid *g = &d->grid[k];
    double energy = 0;
    BASIN_SCRATCH(float, votes, g->height * g->width * VOTE, what, error);
    if (k == d->levels - 1) {
        double beta = hot * pow(cold / hot, i / (steps - 1.0));
        BASIN_TRY(attend(votes, &energy, g, beta, d->watch, error));
    } else {
        for (int pass = 0; pass < 2 && i >= 0; pass++)
            BASIN_TRY(search(g, pass, random, d->watch, error));
        retrieve(votes, &energy, g);
    }
    if (i >= 0) note_energy(d->course, g, energy);
    if (k > 0 || i < steps - 1) move(g, votes);
    double done = (0.25 + 0.75 * (i + 1.0) / steps) / pow(4, k);
    basin_watch_progress(d->watch, "completing", 500 + llrint(500 * done), 1000, NAN, "parts");
    return BASIN_OK;
}

static basin_status descend(descent *d, int k, basin_error *error) {
    enum { COARSEST = 4, MIDDLE = 8, FINEST = 5 };
    grid *g = &d->grid[k];
    bool coarsest = k == d->levels - 1;
    int steps = coarsest ? COARSEST : k ? MIDDLE : FINEST;
    basin_random random = basin_random_start(d->seed, (uint64_t)k, 0);
    g->shift = k ? 12 : 6;
    BASIN_TRY(find_patches(g, (double)(1 << k), error));
    if (!g->sources || !g->targets) return BASIN_OK;
    if (!coarsest) {
        begin(g, &d->grid[k + 1], &random);
        BASIN_TRY(run_step(d, k, -1, steps, &random, error)); /* what it comes to on this grid */
    }
    for (int i = 0; i < steps; i++) BASIN_TRY(run_step(d, k, i, steps, &random, error));
    return k ? BASIN_OK : finish(g, error);
}

/* One hole, whose box and depth are given. */
static basin_status fill_hole(basin_picture *p, const basin_hole *hole, basin_area box,
                              int64_t deepest, descent *d, basin_error *error) {
    enum { SHALLOW = 8 }; /* on the coarsest grid */
    basin_area area;
    for (d->levels = 2; d->levels < LEVELS && deepest >> (d->levels - 1) > SHALLOW;) d->levels++;
    BASIN_TRY(cut(&d->grid[0], &area, p, hole, box, 1 << (d->levels - 1), error));
    for (int k = 1; k < d->levels; k++) BASIN_TRY(halve(&d->grid[k], &d->grid[k - 1], error));
    for (int k = d->levels - 1; k >= 0; k--) BASIN_TRY(descend(d, k, error));
    const grid *g = &d->grid[0];
    for (int64_t i = 0; i < box.height * box.width; i++) {
        int64_t y = box.top + i / box.width, x = box.left + i % box.width;
        int64_t at = (y - area.top) * g->width + x - area.left;
        for (int c = 0; c < p->channels && g->missing[at]; c++)
            p->pixel[(y * p->width + x) * p->channels + c] =
                (uint8_t)lrintf(fminf(fmaxf(g->colour[at * LANES + c], 0), 255));
    }
    return BASIN_OK;
}

basin_status basin_memory_fill(basin_picture *picture, const basin_hole *hole, uint64_t seed,
                               const basin_watch *watch, basin_course *course, basin_error *error) {
    enum { FEW = 64 * 64 }; /* known pixels: fewer patterns say too little about the hole */
    int64_t area = hole->box.height * hole->box.width, deepest;
    if (picture->height * picture->width - hole->missing < FEW) return BASIN_OK;
    BASIN_SCRATCH(uint8_t, mark, area, what, error);
    BASIN_SCRATCH_RAW(int64_t, stack, area, what, error);
    for (int64_t i = 0; i < area; i++) {
        if (mark[i] || !hole->depth[i]) continue;
        BASIN_AT_EXIT(descent_free) descent d = {.seed = seed, .watch = watch, .course = course};
        basin_area box = basin_hole_part(mark, stack, hole, i, &deepest);
        BASIN_TRY(fill_hole(picture, hole, box, deepest, &d, error));
    }
    return BASIN_OK;
}
