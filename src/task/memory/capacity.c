/* The capacity of memories of random signs. A memory s adds to the field of a test state x, with
 * z = s . x, by the energies of the two values of a bit,
 *     s_i (F(z - s_i x_i + 1) - F(z - s_i x_i - 1)) = pull(z) s_i + stay(z) x_i,
 * so that one pass over the memories gives the fields at every load on the way. Nothing is stored
 * but the fields: memories are drawn again from their numbers. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/team/processors.h"
#include "base/team/team.h"
#include "basin/random.h"
#include "task/given.h"
#include "task/memory/memory.h"

enum { TESTS = 16, WORDS = 64 }; /* of a network; of 64 bits, in a pattern */

/* One network: its tests are its first memories. */
typedef struct network {
    uint64_t test[TESTS][WORDS]; /* bits of the states, 1 for +1 */
    float *field;                /* [TESTS, N] */
    double stay[TESTS];
} network;

typedef struct experiment {
    basin_memory_trial trial;
    basin_separation kind;
    int64_t n, networks, stored;
    float *pull; /* [2 N + 1] of z = -N .. N */
    double *stay;
    double tie;       /* fields below this have no sign but that of rounding, and count as wrong */
    network *network; /* [networks] */
    float *field;     /* [networks, TESTS, N] */
} experiment;

/* ---- separation functions ---- */

static double separate(const experiment *e, double z) {
    double m = z / (double)e->n;
    switch (e->kind) {
    case BASIN_SEPARATION_CLASSICAL: return m * m;
    case BASIN_SEPARATION_POWER: return m > 0 ? pow(m, e->trial.power) : 0;
    case BASIN_SEPARATION_SOFTMAX: return exp(z - (double)e->n);
    default: return fmax(0, 4 * m - 3); /* lsr with beta 4: within an eighth of the bits */
    }
}

static void fill_tables(experiment *e) {
    for (int64_t i = 0; i <= 2 * e->n; i++) {
        double z = (double)(i - e->n);
        double alike = separate(e, z) - separate(e, z - 2);
        double unlike = separate(e, z + 2) - separate(e, z);
        e->pull[i] = (float)((alike + unlike) / 2);
        e->stay[i] = (alike - unlike) / 2;
    }
    e->tie = 1e-5 * (e->pull[2 * e->n] + e->stay[2 * e->n]);
}

/* ---- networks ---- */

static void draw_pattern(uint64_t bit[WORDS], const experiment *e, int64_t k, int64_t memory) {
    uint64_t first = (uint64_t)memory * WORDS * 2;
    basin_random random = basin_random_start(e->trial.seed, (uint64_t)k, first);
    for (int64_t i = 0; i * 64 < e->n; i++) {
        uint64_t low = basin_random_next(&random), high = basin_random_next(&random);
        int64_t left = e->n - i * 64;
        bit[i] = (low | high << 32) & (left < 64 ? ((uint64_t)1 << left) - 1 : ~(uint64_t)0);
    }
}

static double sign_of(const uint64_t *bit, int64_t i) { return bit[i / 64] >> i % 64 & 1 ? 1 : -1; }

/* Flips a share of a test's bits, each drawn on its own. */
static void flip_bits(uint64_t *bit, const experiment *e, uint64_t stream) {
    for (int64_t i = 0; i < e->n && e->trial.flips > 0; i++)
        if (basin_random_uniform_at(e->trial.seed, stream, (uint64_t)i) < e->trial.flips)
            bit[i / 64] ^= (uint64_t)1 << i % 64;
}

static void begin_network(experiment *e, int64_t k) {
    network *w = &e->network[k];
    w->field = e->field + k * TESTS * e->n;
    for (int64_t t = 0; t < TESTS; t++) {
        draw_pattern(w->test[t], e, k, t);
        flip_bits(w->test[t], e, (uint64_t)(e->networks + k * TESTS + t));
    }
}

static void add_memory(const experiment *e, network *w, const uint64_t *bit, float *sign) {
    for (int64_t i = 0; i < e->n; i++) sign[i] = (float)sign_of(bit, i);
    for (int t = 0; t < TESTS; t++) {
        int64_t apart = 0;
        for (int64_t i = 0; i * 64 < e->n; i++)
            apart += __builtin_popcountll(bit[i] ^ w->test[t][i]);
        float pull = e->pull[2 * (e->n - apart)];
        float *field = w->field + t * e->n;
        w->stay[t] += e->stay[2 * (e->n - apart)];
        for (int64_t i = 0; pull != 0 && i < e->n; i++) field[i] += pull * sign[i];
    }
}

/* Bits of stored tests that are wrong after an update. */
static int64_t count_wrong(const experiment *e, int64_t k, int64_t load) {
    const network *w = &e->network[k];
    uint64_t truth[WORDS];
    int64_t wrong = 0;
    for (int64_t t = 0; t < TESTS && t < load; t++) {
        draw_pattern(truth, e, k, t);
        for (int64_t i = 0; i < e->n; i++) {
            double field = w->field[t * e->n + i] + w->stay[t] * sign_of(w->test[t], i);
            wrong += !(field * sign_of(truth, i) > e->tie);
        }
    }
    return wrong;
}

typedef struct loading {
    const experiment *experiment;
    int64_t load;
    _Atomic int64_t *wrong;
} loading;

static void load_networks(const void *context, int64_t first, int64_t last, int place) {
    const loading *l = context;
    const experiment *e = l->experiment;
    (void)place;
    for (int64_t k = first; k < last; k++) {
        uint64_t bit[WORDS];
        float sign[64 * WORDS];
        for (int64_t memory = e->stored; memory < l->load; memory++) {
            draw_pattern(bit, e, k, memory);
            add_memory(e, &e->network[k], bit, sign);
        }
        atomic_fetch_add(l->wrong, count_wrong(e, k, l->load));
    }
}

/* Stores memories up to a load in every network; the share of wrong bits then. */
static double load_up(experiment *e, int64_t load) {
    int64_t tests = load < TESTS ? load : TESTS;
    _Atomic int64_t wrong = 0;
    loading l = {e, load, &wrong};
    basin_team_run(load_networks, &l, e->networks, 1, e->trial.threads);
    e->stored = load;
    return (double)wrong / (double)(e->networks * tests * e->n);
}

/* ---- the experiment ---- */

static basin_status check(experiment *e, basin_error *error) {
    basin_memory_trial *t = &e->trial;
    basin_status status = basin_separation_find(&e->kind, t->function, error);
    if (!status) status = basin_separation_power(&t->power, e->kind, t->power, error);
    if (status) return status;
    if (e->kind >= BASIN_SEPARATION_ENTMAX15 && e->kind <= BASIN_SEPARATION_NORMMAX2)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "the capacity of %s: it recalls random signs until two patterns are "
                          "equal; wanted classical, power, softmax or lsr",
                          t->function);
    if (t->dim < 2 || t->dim > 64 * WORDS)
        return basin_fail(error, BASIN_BAD_VALUE, "patterns of %lld bits; wanted 2 to %d",
                          (long long)t->dim, 64 * WORDS);
    if (!(t->flips >= 0 && t->flips < 0.5) || !(t->threshold >= 0 && t->threshold < 0.5))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a share %g of flipped bits and a threshold of %g; wanted 0 to below 0.5",
                          t->flips, t->threshold);
    if (t->bits < 0 || t->most < 0 || t->bits > (int64_t)1 << 30 || t->most > (int64_t)1 << 32)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%lld bits at loads up to %lld; wanted 0 to 2^30 and 0 to 2^32",
                          (long long)t->bits, (long long)t->most);
    if (t->threshold == 0) t->threshold = 0.005;
    if (t->bits == 0) t->bits = 20000;
    if (t->most == 0) t->most = (int64_t)1 << 20;
    return BASIN_OK;
}

static basin_status begin(experiment *e, basin_error *error) {
    size_t levels = 2 * (size_t)e->trial.dim + 1;
    e->n = e->trial.dim;
    e->networks = (e->trial.bits + TESTS * e->n - 1) / (TESTS * e->n);
    e->pull = calloc(levels, sizeof *e->pull);
    e->stay = calloc(levels, sizeof *e->stay);
    e->network = calloc((size_t)e->networks, sizeof *e->network);
    e->field = calloc((size_t)(e->networks * TESTS * e->n), sizeof *e->field);
    if (!e->pull || !e->stay || !e->network || !e->field)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld networks of %lld bits",
                          (long long)e->networks, (long long)e->n);
    fill_tables(e);
    for (int64_t k = 0; k < e->networks; k++) begin_network(e, k);
    return BASIN_OK;
}

static void end(experiment *e) {
    free(e->pull);
    free(e->stay);
    free(e->network);
    free(e->field);
}

/* Where the error passes the threshold, between two loads: straight in logarithms. No error at all
 * counts as half a bit. */
static double crossing(const basin_memory_curve *curve, double threshold, double least) {
    int i = 0;
    while (i < curve->loads && curve->error[i] <= threshold) i++;
    if (i == curve->loads) return NAN;
    if (i == 0) return curve->load[0];
    double below = log(fmax(curve->error[i - 1], least)), above = log(curve->error[i]);
    double part = (log(threshold) - below) / (above - below);
    return exp(log(curve->load[i - 1]) + fmax(part, 0) * log(curve->load[i] / curve->load[i - 1]));
}

/* Loads grow by a quarter of an octave, until the error is well above the threshold. */
static void walk(basin_memory_curve *curve, experiment *e) {
    int64_t load = 1;
    double error = 0, enough = fmin(4 * e->trial.threshold, 0.4);
    for (int j = 4; curve->loads < BASIN_MEMORY_LOADS && error < enough; j++) {
        int64_t next = llround(exp2(j / 4.0));
        if (next > e->trial.most) break;
        if (next == load) continue;
        load = next;
        error = load_up(e, load);
        curve->load[curve->loads] = (double)load;
        curve->error[curve->loads++] = error;
    }
    double least = 0.5 / (double)(e->networks * TESTS * e->n);
    curve->capacity = crossing(curve, e->trial.threshold, least);
}

basin_status basin_memory_measure(basin_memory_curve *curve, const basin_memory_trial *trial,
                                  basin_error *error) {
    experiment e = {0};
    memset(curve, 0, sizeof *curve);
    basin_status status =
        basin_given_take(&e.trial, sizeof e.trial, trial, "basin_memory_trial", error);
    if (!status) status = check(&e, error);
    if (!status) status = begin(&e, error);
    if (!status && e.trial.threads <= 0) e.trial.threads = basin_processors();
    if (!status) walk(curve, &e);
    end(&e);
    return status;
}

/* ---- exponents ---- */

static bool is_polynomial(basin_separation kind) {
    return kind == BASIN_SEPARATION_CLASSICAL || kind == BASIN_SEPARATION_POWER;
}

double basin_memory_exponent(const char *function, const double *capacity, const int64_t *dim,
                             int count) {
    basin_separation kind;
    double s = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    if (basin_separation_find(&kind, function, NULL)) return NAN;
    for (int i = 0; i < count; i++) {
        double x = is_polynomial(kind) ? log((double)dim[i]) : (double)dim[i];
        double y = log(capacity[i]);
        if (!isfinite(y)) continue;
        s += 1, sx += x, sy += y, sxx += x * x, sxy += x * y;
    }
    double spread = s * sxx - sx * sx;
    return s >= 2 && spread > 0 ? (s * sxy - sx * sy) / spread : NAN;
}

double basin_memory_theory(const char *function, double power) {
    basin_separation kind;
    if (basin_separation_find(&kind, function, NULL)) return NAN;
    switch (kind) {
    case BASIN_SEPARATION_CLASSICAL: return 1;
    case BASIN_SEPARATION_POWER: return power - 1;
    case BASIN_SEPARATION_SOFTMAX: return 2 - log(cosh(2)); /* signal^2 over the noise's square */
    case BASIN_SEPARATION_LSR: /* ln 2 less the entropy of an eighth: one in the ball */
        return log(2) + log(1.0 / 8) / 8 + log(7.0 / 8) * 7 / 8;
    default: return NAN;
    }
}
