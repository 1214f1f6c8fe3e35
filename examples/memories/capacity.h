/* How many random patterns of signs a separation function holds (Krotov and Hopfield 2016).
 *
 * At growing loads K, stored patterns take one update, which sets each bit as the energies of its
 * two values say; the capacity is the load at which more than 0.5 % of the bits are wrong. A memory
 * s adds to the field of a test state x, with z = s . x,
 *     s_i (F(z - s_i x_i + 1) - F(z - s_i x_i - 1)) = pull(z) s_i + stay(z) x_i,
 * so that one pass over the memories gives the fields at every load on the way. Nothing is stored
 * but the fields: memories are drawn again from their numbers. */
#pragma once
#include "memory.h"

enum { TESTS = 16, WORDS = 64, BITS = 20000, MOST_LOAD = 1 << 20 };
#define THRESHOLD 0.005

/* One network: its tests are its first memories. */
typedef struct network {
    uint64_t test[TESTS][WORDS]; /* bits of the states, 1 for +1 */
    double stay[TESTS];
} network;

typedef struct experiment {
    separation function;
    double power, flips;
    uint64_t seed;
    int64_t n, networks, stored;
    float *pull;  /* [2 N + 1] of z = -N .. N */
    double *stay; /* the same */
    double tie;   /* fields below this have no sign but that of rounding, and count as wrong */
    network *network;
    float *field; /* [networks, TESTS, N] */
} experiment;

static double separate(const experiment *e, double z) {
    double m = z / (double)e->n;
    if (e->function == CLASSICAL) return m * m;
    if (e->function == POWER) return m > 0 ? pow(m, e->power) : 0;
    if (e->function == SOFTMAX) return exp(z - (double)e->n);
    return fmax(0, 4 * m - 3); /* lsr with beta 4: within an eighth of the bits */
}

static void draw_pattern(uint64_t bit[WORDS], const experiment *e, int64_t k, int64_t item) {
    uint64_t first = (uint64_t)item * WORDS * 2;
    basin_random random = basin_random_start(e->seed, (uint64_t)k, first);
    for (int64_t i = 0; i * 64 < e->n; i++) {
        uint64_t low = basin_random_next(&random), high = basin_random_next(&random);
        int64_t left = e->n - i * 64;
        bit[i] = (low | high << 32) & (left < 64 ? ((uint64_t)1 << left) - 1 : ~(uint64_t)0);
    }
}

static double sign_of(const uint64_t *bit, int64_t i) { return bit[i / 64] >> i % 64 & 1 ? 1 : -1; }

/* The tests of network k, with a share of bits flipped, each drawn on its own. */
static void begin_network(experiment *e, int64_t k) {
    for (int64_t t = 0; t < TESTS; t++) {
        uint64_t *bit = e->network[k].test[t], stream = (uint64_t)(e->networks + k * TESTS + t);
        draw_pattern(bit, e, k, t);
        for (int64_t i = 0; i < e->n && e->flips > 0; i++)
            if (basin_random_uniform_at(e->seed, stream, (uint64_t)i) < e->flips)
                bit[i / 64] ^= (uint64_t)1 << i % 64;
    }
}

static void begin(experiment *e) {
    size_t levels = 2 * (size_t)e->n + 1;
    e->networks = (BITS + TESTS * e->n - 1) / (TESTS * e->n);
    e->pull = calloc(levels, sizeof *e->pull);
    e->stay = calloc(levels, sizeof *e->stay);
    e->network = calloc((size_t)e->networks, sizeof *e->network);
    e->field = calloc((size_t)(e->networks * TESTS * e->n), sizeof *e->field);
    if (!e->pull || !e->stay || !e->network || !e->field) quit("capacity", "out of memory");
    for (int64_t i = 0; i <= 2 * e->n; i++) {
        double z = (double)(i - e->n);
        double alike = separate(e, z) - separate(e, z - 2);
        double unlike = separate(e, z + 2) - separate(e, z);
        e->pull[i] = (float)((alike + unlike) / 2);
        e->stay[i] = (alike - unlike) / 2;
    }
    e->tie = 1e-5 * (e->pull[2 * e->n] + e->stay[2 * e->n]);
    for (int64_t k = 0; k < e->networks; k++) begin_network(e, k);
}

static void add_memory(experiment *e, int64_t k, int64_t item) {
    uint64_t bit[WORDS];
    float sign[64 * WORDS];
    draw_pattern(bit, e, k, item);
    for (int64_t i = 0; i < e->n; i++) sign[i] = (float)sign_of(bit, i);
    for (int64_t t = 0; t < TESTS; t++) {
        int64_t apart = 0;
        for (int64_t i = 0; i * 64 < e->n; i++)
            apart += __builtin_popcountll(bit[i] ^ e->network[k].test[t][i]);
        float pull = e->pull[2 * (e->n - apart)], *field = e->field + (k * TESTS + t) * e->n;
        e->network[k].stay[t] += e->stay[2 * (e->n - apart)];
        for (int64_t i = 0; pull != 0 && i < e->n; i++) field[i] += pull * sign[i];
    }
}

/* Bits of stored tests that are wrong after an update. */
static int64_t count_wrong(const experiment *e, int64_t k) {
    uint64_t truth[WORDS];
    int64_t wrong = 0;
    for (int64_t t = 0; t < TESTS && t < e->stored; t++) {
        const float *pulled = e->field + (k * TESTS + t) * e->n;
        draw_pattern(truth, e, k, t);
        for (int64_t i = 0; i < e->n; i++) {
            double field = pulled[i] + e->network[k].stay[t] * sign_of(e->network[k].test[t], i);
            wrong += !(field * sign_of(truth, i) > e->tie);
        }
    }
    return wrong;
}

/* Stores memories up to a load in every network; the share of wrong bits then. */
static double load_up(experiment *e, int64_t load) {
    int64_t tests = load < TESTS ? load : TESTS, wrong = 0, before = e->stored;
    e->stored = load;
    for (int64_t k = 0; k < e->networks; k++) {
        for (int64_t item = before; item < load; item++) add_memory(e, k, item);
        wrong += count_wrong(e, k);
    }
    return (double)wrong / (double)(e->networks * tests * e->n);
}

/* The load at which the error passes the threshold, interpolated in logarithms; loads grow by a
 * quarter of an octave. NaN where the largest load does not reach it. */
static double measure(separation function, double power, int64_t bits, double flips,
                      uint64_t seed) {
    experiment e = {.function = function, .power = power, .n = bits, .flips = flips, .seed = seed};
    double capacity = NAN, last = 0, least;
    int64_t load = 1;
    begin(&e);
    least = 0.5 / (double)(e.networks * TESTS * e.n); /* no error counts as half a bit */
    for (int j = 4; isnan(capacity); j++) {
        int64_t next = llround(exp2(j / 4.0));
        if (next > MOST_LOAD) break;
        if (next == load) continue;
        double wrong = load_up(&e, next);
        if (wrong > THRESHOLD) {
            double below = log(fmax(last, least)), part = log(THRESHOLD) - below;
            part = fmax(part / (log(wrong) - below), 0);
            capacity =
                load == 1 ? (double)next : (double)load * pow((double)next / (double)load, part);
        }
        load = next;
        last = wrong;
    }
    free(e.pull);
    free(e.stay);
    free(e.network);
    free(e.field);
    return capacity;
}

/* How capacities grow: the least-squares slope of ln K over ln N for classical and power, over N
 * for softmax and lsr. And what theory says of large N. */
static double exponent(separation function, const double *capacity, const int64_t *bits,
                       int count) {
    double s = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (int i = 0; i < count; i++) {
        double x = function <= POWER ? log((double)bits[i]) : (double)bits[i], y = log(capacity[i]);
        if (!isfinite(y)) continue;
        s += 1, sx += x, sy += y, sxx += x * x, sxy += x * y;
    }
    return (s * sxy - sx * sy) / (s * sxx - sx * sx);
}

static double theory(separation function, double power) {
    if (function == CLASSICAL) return 1;
    if (function == POWER) return power - 1;
    if (function == SOFTMAX) return 2 - log(cosh(2));        /* signal^2 over the noise's square */
    return log(2) + log(1.0 / 8) / 8 + log(7.0 / 8) * 7 / 8; /* ln 2 less an eighth's entropy */
}
