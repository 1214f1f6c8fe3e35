/* Logits of trees and of a network become one probability; validation says how; see ensemble.h. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "task/nodes/ensemble/ensemble.h"
#include "task/nodes/nodes.h"

double basin_nodes_logit(double p) {
    double cut = fmin(fmax(p, 1e-9), 1 - 1e-9);
    return log(cut / (1 - cut));
}

static double sigmoid(double z) { return z >= 0 ? 1 / (1 + exp(-z)) : exp(z) / (1 + exp(z)); }

void basin_nodes_ensemble_mix(double *probability, const basin_nodes_ensemble *e,
                              const double *trees, const double *network_logit, int64_t nodes) {
    for (int64_t i = 0; i < nodes; i++) {
        double z = e->share > 0 ? e->share * (e->scale * network_logit[i] + e->shift) : 0;
        if (e->share < 1) z += (1 - e->share) * trees[i];
        probability[i] = sigmoid(z);
    }
}

/* Mean and deviation over the validation nodes. */
static void spread(double *mean, double *deviation, const double *logit, const uint8_t *part,
                   int64_t nodes) {
    double sum = 0, squares = 0, count = 0;
    for (int64_t i = 0; i < nodes; i++) {
        if (part[i] != BASIN_PART_VAL) continue;
        sum += logit[i];
        squares += logit[i] * logit[i];
        count++;
    }
    *mean = sum / count;
    *deviation = sqrt(fmax(squares / count - *mean * *mean, 1e-12));
}

/* ---- shares of views and network ---- */

/* Those that take part: the views that have fits, and the network, which comes last. Shares are
 * tried in quarters; each part has deviation 1 on validation. */
enum { PARTS = BASIN_TREE_VIEWS + 1, QUARTERS = 4, POINTS = 70 };

typedef struct point {
    double share[PARTS];
    double merit, auroc, evenness;
} point;

typedef struct contest {
    int64_t nodes, count;    /* of the network, of validation */
    const double *of[PARTS]; /* [N] logits; NULL: takes no part */
    double deviation[PARTS];
    const uint8_t *part;
    double *score;  /* [count] */
    uint8_t *label; /* [count] */
    point point[POINTS];
    int points;
} contest;

static void add_point(contest *c, const int quarters[PARTS]) {
    point *p = &c->point[c->points];
    *p = (point){.evenness = 0};
    for (int k = 0; k < PARTS; k++) {
        if (quarters[k] && !c->of[k]) return;
        p->share[k] = (double)quarters[k] / QUARTERS;
        p->evenness -= p->share[k] * p->share[k];
    }
    c->points++;
}

/* All ways to deal four quarters out. */
static void list_points(contest *c) {
    for (int a = 0; a <= QUARTERS; a++)
        for (int b = 0; a + b <= QUARTERS; b++)
            for (int d = 0; a + b + d <= QUARTERS; d++)
                for (int e = 0; a + b + d + e <= QUARTERS; e++)
                    add_point(c, (const int[PARTS]){a, b, d, e, QUARTERS - a - b - d - e});
}

/* Ranks alone count: AUROC and AUPRC together. */
static basin_status judge(contest *c, point *p, basin_error *error) {
    basin_ranking ranking;
    for (int64_t i = 0, n = 0; i < c->nodes; i++) {
        if (c->part[i] != BASIN_PART_VAL) continue;
        double z = 0;
        for (int k = 0; k < PARTS; k++)
            if (p->share[k] > 0) z += p->share[k] * c->of[k][i] / c->deviation[k];
        c->score[n++] = z;
    }
    basin_status status = basin_ranking_measure(&ranking, c->score, c->label, c->count, 0, error);
    if (!status) p->merit = ranking.auroc + ranking.auprc, p->auroc = ranking.auroc;
    return status;
}

static int better_first(const void *a, const void *b) {
    const point *x = a, *y = b;
    if (x->merit != y->merit) return x->merit < y->merit ? 1 : -1;
    if (x->evenness != y->evenness) return x->evenness < y->evenness ? 1 : -1;
    for (int k = 0; k < PARTS; k++) /* or the choice would be that of the system's qsort */
        if (x->share[k] != y->share[k]) return x->share[k] < y->share[k] ? -1 : 1;
    return 0;
}

/* How many of the points, sorted, count: a fifth, since the best alone owes too much to chance.
 * Where validation has few nodes of a class, all that lie within the best one's standard error do.
 */
static int count_best(const contest *c) {
    enum { BEST_OF = 5, FEW = 50 };
    int64_t ones = 0;
    int best = c->points / BEST_OF > 1 ? c->points / BEST_OF : 1;
    for (int64_t i = 0; i < c->count; i++) ones += c->label[i];
    int64_t rarer = ones < c->count - ones ? ones : c->count - ones;
    if (rarer >= FEW || rarer < 1) return best;
    double auroc = c->point[0].auroc, error = sqrt(auroc * (1 - auroc) / (double)rarer);
    while (best < c->points && c->point[best].merit >= c->point[0].merit - error) best++;
    return best;
}

/* The mean of the best of them. */
static basin_status find_shares(double share[PARTS], contest *c, basin_error *error) {
    basin_status status = BASIN_OK;
    list_points(c);
    for (int i = 0; i < c->points && !status; i++) status = judge(c, &c->point[i], error);
    if (status) return status;
    qsort(c->point, (size_t)c->points, sizeof *c->point, better_first);
    int best = count_best(c);
    for (int k = 0; k < PARTS; k++) {
        share[k] = 0;
        for (int i = 0; i < best; i++) share[k] += c->point[i].share[k] / best;
    }
    return BASIN_OK;
}

/* Shares of parts with deviation 1 become weights of the views, which add up to 1, and the share of
 * a network that is scaled to the trees' deviation. */
static void set_weights(basin_nodes_ensemble *e, double *trees, const double *view,
                        const double share[PARTS], const contest *c) {
    double whole = 0, mean, deviation;
    for (int v = 0; v < BASIN_TREE_VIEWS; v++) whole += share[v] / c->deviation[v];
    for (int v = 0; v < BASIN_TREE_VIEWS && whole > 0; v++)
        e->weight[v] = share[v] / c->deviation[v] / whole;
    for (int64_t i = 0; i < c->nodes; i++) {
        trees[i] = 0;
        for (int v = 0; v < BASIN_TREE_VIEWS; v++)
            if (e->weight[v] > 0) trees[i] += e->weight[v] * view[v * c->nodes + i];
    }
    spread(&mean, &deviation, trees, c->part, c->nodes);
    double network = share[BASIN_TREE_VIEWS];
    e->share = whole > 0 ? network / (network + whole * deviation) : 1;
}

/* Fits that validation stopped before their first tree say the same of every node: scaled to a
 * deviation of 1 they would outweigh all others. */
static bool tells(double deviation) { return deviation > 1e-5; }

static basin_status choose_shares(basin_nodes_ensemble *e, double *trees, const double *view,
                                  const double *network_logit, const basin_network *network,
                                  const uint8_t *part, basin_error *error) {
    double share[PARTS] = {0}, mean;
    basin_nodes_samples samples;
    contest c = {.nodes = network->nodes, .part = part};
    for (int k = 0; k < PARTS; k++) {
        c.of[k] = k == BASIN_TREE_VIEWS ? network_logit : e->seeing[k] ? view + k * c.nodes : NULL;
        c.deviation[k] = 1;
        if (c.of[k]) spread(&mean, &c.deviation[k], c.of[k], part, c.nodes);
        if (k < BASIN_TREE_VIEWS && !tells(c.deviation[k])) c.of[k] = NULL;
    }
    basin_status status =
        basin_nodes_samples_take(&samples, network_logit, network, part, BASIN_PART_VAL, error);
    c.score = samples.score, c.label = samples.label, c.count = samples.count;
    if (!status) status = find_shares(share, &c, error);
    if (!status) set_weights(e, trees, view, share, &c);
    basin_nodes_samples_free(&samples);
    return status;
}

/* ---- both together ---- */

/* The network's logits come to the trees' mean and deviation. */
static void align(basin_nodes_ensemble *e, const double *trees, const double *network_logit,
                  const uint8_t *part, int64_t nodes) {
    double mean[2], deviation[2];
    spread(&mean[0], &deviation[0], trees, part, nodes);
    spread(&mean[1], &deviation[1], network_logit, part, nodes);
    e->scale = deviation[0] / deviation[1];
    e->shift = mean[0] - e->scale * mean[1];
}

typedef struct trial {
    basin_nodes_ensemble *ensemble;
    const double *trees, *network_logit;
    const basin_network *network;
    const uint8_t *part;
    const char *scan;
    double *probability; /* [N] */
} trial;

/* What a share reaches on a part of the nodes, with the threshold that validation then chooses. */
static basin_status try(basin_score *score, trial *t, double share, int part, basin_error *error) {
    double threshold;
    t->ensemble->share = share;
    basin_nodes_ensemble_mix(t->probability, t->ensemble, t->trees, t->network_logit,
                             t->network->nodes);
    basin_status status = basin_nodes_choose_threshold(&threshold, t->probability, t->network,
                                                       t->part, t->scan, error);
    return status ? status
                  : basin_nodes_measure(score, t->probability, NULL, t->network, t->part, part,
                                        threshold, error);
}

static basin_status measure_alone(trial *t, basin_error *error) {
    basin_nodes_ensemble *e = t->ensemble;
    double share = e->share;
    basin_status status = BASIN_OK;
    for (int which = 0; which < 2; which++)
        for (int p = BASIN_PART_VAL; p <= BASIN_PART_TEST && !status; p++)
            if (basin_split_nodes(NULL, t->part, t->network->nodes, p))
                status = try(&e->alone[which][p], t, which, p, error);
    e->share = share;
    return status;
}

basin_status basin_nodes_ensemble_choose(basin_nodes_ensemble *ensemble, double *trees,
                                         const double *view, const double *network_logit,
                                         const basin_network *network, const uint8_t *part,
                                         const char *scan, basin_error *error) {
    trial t = {ensemble, trees, network_logit, network, part, scan, NULL};
    t.probability = basin_array_new((size_t)network->nodes, sizeof *t.probability);
    if (!t.probability) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for scores");
    basin_status status = choose_shares(ensemble, trees, view, network_logit, network, part, error);
    align(ensemble, trees, network_logit, part, network->nodes);
    if (!status) status = measure_alone(&t, error);
    free(t.probability);
    return status;
}
