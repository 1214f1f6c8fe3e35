/* Networks that look like the fraud sets of the paper: as many nodes, edges and features, as many
 * anomalies, degrees with a heavy tail, anomalies that hide among the others.
 *
 * Edges are among normal nodes, among anomalies, or between the two. Within a class nodes have a
 * rank, a number t from 0 to 1, and the weight 1 / sqrt(t) - c: degrees fall off as their cube. A
 * node draws its share of different partners among the ranks before it, by weight, from a stream of
 * its own, so that the number of edges is exact. Square roots alone invert the distribution of
 * weights: the edges are the same bits on every machine.
 *
 * Features: hidden factors, a shift for anomalies (a small one for those that are camouflaged) and
 * a trace of the degree, as amounts, counts, rates and plain numbers in turn. */
#include <inttypes.h>

#include "base/sort.h"
#include "basin/random.h"
#include "data/network/network.h"

enum {
    STREAM_ORDER = 1,
    STREAM_NORMAL,
    STREAM_ANOMALOUS,
    STREAM_CROSS,
    STREAM_LOADING,
    STREAM_FEATURE,
    STREAM_HIDDEN,
    STREAM_HIDE,
    FACTORS = 4
};

static const double FLATNESS = 0.95; /* c */

static const struct {
    const char *name;
    basin_fraud_spec spec;
} known[] = {
    {"amazon", {11944, 4398392, 25, 0.0687, 0.954, 0.01, 1.0, 0.35, 0}},
    {"yelp", {45954, 3846979, 32, 0.1453, 0.773, 0.03, 0.5, 0.5, 0}},
    {"tfinance", {39357, 21222543, 10, 0.0458, 0.971, 0.01, 0.9, 0.4, 0}},
    {"tsocial", {5781065, 73105508, 10, 0.0301, 0.624, 0.05, 0.7, 0.5, 0}},
};

basin_status basin_fraud_like(basin_fraud_spec *spec, const char *name, double scale,
                              basin_error *error) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) != 0) continue;
        *spec = known[i].spec;
        spec->nodes = llround((double)spec->nodes * scale);
        spec->edges = llround((double)spec->edges * scale);
        if (spec->nodes < 20) spec->nodes = 20;
        /* a small part of a dense network would be all edges */
        int64_t most = (int64_t)(0.3 * 0.5 * (double)spec->nodes * (double)(spec->nodes - 1));
        if (spec->edges > most) spec->edges = most;
        return BASIN_OK;
    }
    return basin_fail(error, BASIN_BAD_VALUE,
                      "no set '%s' to be like, wanted amazon, yelp, tfinance or tsocial", name);
}

/* ---- how many partners each rank draws ---- */

typedef struct block {
    int64_t draws, among; /* ranks that draw, and among how many; within a class those before it */
    bool within;
    int64_t *first; /* [draws + 1] where the edges of each rank begin */
} block;

/* A rank as a number from about 0 to 1, its weight, and the sum of the weights before it. */
static double place(int64_t rank, int64_t count) {
    double head = 1 + 0.002 * (double)count;
    return ((double)rank + head) / ((double)count + head);
}

static double weight(int64_t rank, int64_t count) {
    return 1 / sqrt(place(rank, count)) - FLATNESS;
}

static double sum_before(int64_t rank, int64_t count) {
    double t = place(rank, count);
    return 2 * sqrt(t) - FLATNESS * t;
}

static int64_t partners(const block *b, int64_t rank) { return b->within ? rank : b->among; }

/* No more than this many of those before it: further draws would only collide. */
static double most_of(const block *b, int64_t rank) { return 0.6 * (double)partners(b, rank); }

static double reach(const block *b, int64_t rank) {
    return sum_before(partners(b, rank), b->among) - sum_before(0, b->among);
}

static double share(const block *b, const double *base, int64_t rank, double factor) {
    double wanted = factor * base[rank], most = most_of(b, rank);
    return wanted < most ? wanted : most;
}

static double total(const block *b, const double *base, double factor) {
    double sum = 0;
    for (int64_t r = 0; r < b->draws; r++) sum += share(b, base, r, factor);
    return sum;
}

/* The factor for which the shares sum up to `edges`. */
static double find_factor(const block *b, const double *base, double edges) {
    double low = 0, high = 1;
    while (total(b, base, high) < edges) low = high, high *= 4;
    for (int i = 0; i < 30; i++) {
        double middle = (low + high) / 2;
        if (total(b, base, middle) < edges)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Whole numbers of edges that sum up exactly. */
static basin_status allot(block *b, int64_t edges, basin_error *error) {
    double room = 0;
    for (int64_t r = 0; r < b->draws; r++) room += most_of(b, r);
    if ((double)edges > 0.95 * room)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%" PRId64 " edges do not fit among %" PRId64 " and %" PRId64 " nodes",
                          edges, b->draws, b->among);
    BASIN_FREE_AT_EXIT double *base = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&base, b->draws, "edges to draw", error));
    for (int64_t r = 0; r < b->draws; r++) base[r] = reach(b, r) * weight(r, b->draws);
    double factor = find_factor(b, base, (double)edges), sum = 0;
    double exact = (double)edges / total(b, base, factor);
    for (int64_t r = 0; r < b->draws; r++) {
        sum += share(b, base, r, factor) * exact;
        int64_t end = r + 1 < b->draws ? (int64_t)(sum + 0.5) : edges;
        b->first[r + 1] = end < edges ? end : edges;
    }
    return BASIN_OK;
}

/* ---- drawing ---- */

/* Inverts the sum of the weights: with s = sqrt(t), 2 s - c s^2 = y. */
static int64_t draw_rank(const block *b, int64_t before, double span, basin_random *random) {
    double y = sum_before(0, b->among) + span * ((double)basin_random_next(random) / 4294967296.0);
    double s = (1 - sqrt(1 - FLATNESS * y)) / FLATNESS;
    double head = 1 + 0.002 * (double)b->among;
    int64_t v = (int64_t)(s * s * ((double)b->among + head) - head);
    return v < 0 ? 0 : v < before ? v : before - 1;
}

/* The partners of one rank. */
static void draw_partners(int32_t *pair, int32_t *taken, const block *b, int64_t rank,
                          const int32_t *drawing, const int32_t *drawn, uint64_t seed,
                          uint64_t stream) {
    int64_t before = partners(b, rank), count = b->first[rank + 1] - b->first[rank];
    double span = reach(b, rank);
    basin_random random = basin_random_start(seed, stream << 40 | (uint64_t)rank, 0);
    for (int64_t k = 0; k < count; k++) {
        int64_t v = draw_rank(b, before, span, &random);
        for (int again = 0; again < 4 && taken[v] == rank + 1; again++)
            v = draw_rank(b, before, span, &random);
        /* those of weight are taken: anyone then */
        while (taken[v] == rank + 1) v = (int64_t)basin_random_below(&random, (uint64_t)before);
        taken[v] = (int32_t)rank + 1;
        pair[2 * k] = drawing[rank];
        pair[2 * k + 1] = drawn[v];
    }
}

/* `taken` [among] holds 1 + the rank that took a partner last. */
static basin_status draw_block(int32_t *pair, block b, int64_t edges, const int32_t *drawing,
                               const int32_t *drawn, uint64_t seed, uint64_t stream,
                               basin_error *error) {
    BASIN_FREE_AT_EXIT int32_t *taken = NULL;
    BASIN_FREE_AT_EXIT int64_t *first = NULL;
    BASIN_TRY(BASIN_NEW(&first, b.draws + 1, "edges to draw", error));
    BASIN_TRY(BASIN_NEW(&taken, b.among, "edges to draw", error));
    b.first = first;
    BASIN_TRY(allot(&b, edges, error));
    for (int64_t r = 0; r < b.draws; r++)
        draw_partners(pair + 2 * first[r], taken, &b, r, drawing, drawn, seed, stream);
    return BASIN_OK;
}

/* ---- edges ---- */

typedef struct people {
    int32_t *normal, *anomalous; /* nodes by rank */
    int64_t normals, anomalies;
} people;

/* Of each kind as many as the homophily says, or as fit; what does not fit goes to the normal ones.
 */
static basin_status draw_edges(int32_t *pair, const people *p, const basin_fraud_spec *spec,
                               basin_error *error) {
    double a = (double)p->anomalies, n = (double)p->normals;
    int64_t cross = basin_int_min(llround((1 - spec->homophily) * (double)spec->edges),
                                  (int64_t)(0.9 * (0.6 * a * n)));
    int64_t among = basin_int_min(llround(spec->ring * (double)spec->edges),
                                  (int64_t)(0.9 * (0.3 * a * (a - 1))));
    int64_t rest = spec->edges - cross - among;
    block normal = {.draws = p->normals, .among = p->normals, .within = true};
    block ring = {.draws = p->anomalies, .among = p->anomalies, .within = true};
    block between = {.draws = p->anomalies, .among = p->normals};
    BASIN_TRY(
        draw_block(pair, normal, rest, p->normal, p->normal, spec->seed, STREAM_NORMAL, error));
    pair += 2 * rest;
    BASIN_TRY(draw_block(pair, ring, among, p->anomalous, p->anomalous, spec->seed,
                         STREAM_ANOMALOUS, error));
    pair += 2 * among;
    return draw_block(pair, between, cross, p->anomalous, p->normal, spec->seed, STREAM_CROSS,
                      error);
}

/* Who is anomalous, and of what rank in the class: the places of a random order. */
static basin_status cast(basin_network *n, people *p, const basin_fraud_spec *spec,
                         basin_error *error) {
    BASIN_FREE_AT_EXIT int64_t *order = NULL;
    p->anomalies = llround(spec->anomalous * (double)spec->nodes);
    p->normals = spec->nodes - p->anomalies;
    BASIN_TRY(BASIN_NEW_RAW(&order, spec->nodes, "nodes", error));
    BASIN_TRY(BASIN_NEW_RAW(&p->anomalous, spec->nodes, "nodes", error));
    BASIN_TRY(BASIN_NEW_RAW(&n->label, spec->nodes, "nodes", error));
    basin_random_permutation(order, (size_t)spec->nodes, spec->seed, STREAM_ORDER);
    p->normal = p->anomalous + p->anomalies;
    for (int64_t i = 0; i < spec->nodes; i++) {
        p->anomalous[i] = (int32_t)order[i];
        n->label[order[i]] = i < p->anomalies;
    }
    return BASIN_OK;
}

static void people_free(people *p) { free(p->anomalous); }

static basin_status make_edges(basin_network *n, const basin_fraud_spec *spec, basin_error *error) {
    BASIN_AT_EXIT(people_free) people p = {0};
    BASIN_FREE_AT_EXIT int32_t *pair = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&pair, 2 * (size_t)spec->edges, "edges", error));
    BASIN_TRY(cast(n, &p, spec, error));
    BASIN_TRY(draw_edges(pair, &p, spec, error));
    basin_edges edges = {pair, pair + 1, BASIN_I32, 2, spec->edges};
    return basin_network_add_relation(n, "homo", &edges, NULL, error);
}

/* ---- features ---- */

static float told_as(int64_t f, double z) {
    switch (f % 4) {
    case 0: return (float)exp(0.7 * z);              /* an amount */
    case 1: return (float)floor(exp(0.8 * z + 0.5)); /* a count */
    case 2: return (float)(1 / (1 + exp(-z)));       /* a rate */
    default: return (float)z;
    }
}

/* How a feature depends on the factors, the class and the degree. */
enum { OF_CLASS = FACTORS, OF_DEGREE, LOADINGS };

static void make_node(float *x, const double *loading /* [F, LOADINGS] */, const basin_network *n,
                      const basin_fraud_spec *spec, int64_t node) {
    double factor[FACTORS], shift = 0;
    const basin_relation *r = &n->relation[0];
    double degree = log1p((double)(r->row[node + 1] - r->row[node]));
    basin_random_fill_normal_f64(factor, spec->seed, STREAM_HIDDEN, (uint64_t)(node * FACTORS),
                                 FACTORS);
    if (n->label[node] == 1) {
        float hide = basin_random_uniform_at(spec->seed, STREAM_HIDE, (uint64_t)node);
        shift = hide < spec->camouflage ? 0.25 * spec->shift : spec->shift;
    }
    basin_random_fill_normal(x, spec->seed, STREAM_FEATURE, (uint64_t)(node * n->features),
                             (size_t)n->features);
    for (int64_t f = 0; f < n->features; f++, loading += LOADINGS) {
        double z = 0.6 * x[f] + shift * loading[OF_CLASS] + 0.1 * degree * loading[OF_DEGREE];
        for (int k = 0; k < FACTORS; k++) z += 0.4 * factor[k] * loading[k];
        x[f] = told_as(f, z);
    }
}

static basin_status make_features(basin_network *n, const basin_fraud_spec *spec,
                                  basin_error *error) {
    BASIN_TRY(basin_network_alloc_features(n, spec->features, NULL, error));
    size_t count = (size_t)spec->features * LOADINGS;
    BASIN_FREE_AT_EXIT double *loading = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&loading, count, "features", error));
    basin_random_fill_normal_f64(loading, spec->seed, STREAM_LOADING, 0, count);
    for (int64_t i = 0; i < n->nodes; i++)
        make_node(n->feature + i * n->features, loading, n, spec, i);
    return BASIN_OK;
}

basin_status basin_network_make_fraud(basin_network **network, const basin_fraud_spec *spec,
                                      basin_error *error) {
    *network = NULL;
    if (spec->edges < 0 || spec->features < 1 || !(spec->anomalous > 0 && spec->anomalous < 0.5) ||
        !(spec->homophily >= 0 && spec->homophily <= 1) || spec->nodes < 20 ||
        !(spec->ring >= 0 && spec->ring <= spec->homophily))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%" PRId64 " nodes, %" PRId64 " edges, %" PRId64
                          " features, %g anomalous, homophily %g: not a network that can be made",
                          spec->nodes, spec->edges, spec->features, spec->anomalous,
                          spec->homophily);
    BASIN_NETWORK_AT_EXIT basin_network *n = NULL;
    BASIN_TRY(basin_network_new(&n, "made", spec->nodes, error));
    BASIN_TRY(make_edges(n, spec, error));
    BASIN_TRY(make_features(n, spec, error));
    *network = n, n = NULL;
    return BASIN_OK;
}
