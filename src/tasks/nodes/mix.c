/* Logits of trees and of a network become one probability; validation says how; see nodes.h. */
#include "base/bundle.h"
#include "base/number.h"
#include "base/sized.h"
#include "base/sort.h"
#include "basin/random.h"
#include "tasks/nodes/nodes.h"

void basin_nodes_ensemble_mix(double *probability, const basin_nodes_ensemble *e,
                              const double *trees, const double *network_logit, int64_t nodes) {
    for (int64_t i = 0; i < nodes; i++) {
        double z = e->share > 0 ? e->share * (e->scale * network_logit[i] + e->shift) : 0;
        if (e->share < 1) z += (1 - e->share) * trees[i];
        probability[i] = basin_probability_of(z);
    }
}

static void spread(double *mean, double *deviation, const double *logit, const uint8_t *part,
                   int64_t nodes) {
    double sum = 0, squares = 0, count = 0;
    for (int64_t i = 0; i < nodes; i++) {
        if (part[i] != BASIN_SPLIT_VAL) continue;
        sum += logit[i];
        squares += logit[i] * logit[i];
        count++;
    }
    *mean = sum / count;
    *deviation = sqrt(fmax(squares / count - *mean * *mean, 1e-12));
}

/* ---- shares of views and network ---- */

/* Views that have fits, then the network; shares in quarters, each part with deviation 1. */
enum { PARTS = BASIN_TREE_VIEWS + 1, QUARTERS = 4, POINTS = 126 };

typedef struct point {
    double share[PARTS];
    double merit, auroc, evenness;
} point;

typedef struct weight_search {
    int64_t nodes, count;    /* of the network, of validation */
    const double *of[PARTS]; /* [N] logits; NULL: takes no part */
    double deviation[PARTS];
    const uint8_t *part;
    double *score;  /* [count] */
    uint8_t *label; /* [count] */
    point point[POINTS];
    int points;
} weight_search;

/* The minimum share of a teacher's trees: few labels do not suffice to measure their worth. */
static const double taught = 0.5;

/* All ways to deal quarters out to the parts that are there, from `part` on. */
static void list_points(weight_search *c, point *p, int part, int left) {
    int max = c->of[part] ? left : 0;
    for (int q = part + 1 < PARTS ? 0 : left; q <= max; q++) { /* the last gets the rest */
        p->share[part] = (double)q / QUARTERS;
        if (part + 1 < PARTS) {
            list_points(c, p, part + 1, left - q);
            continue;
        }
        if (c->of[BASIN_VIEW_TAUGHT] && p->share[BASIN_VIEW_TAUGHT] < taught) continue;
        p->evenness = 0;
        for (int k = 0; k < PARTS; k++) p->evenness -= p->share[k] * p->share[k];
        c->point[c->points++] = *p;
    }
}

/* Only ranks count: AUROC and AUPRC together. */
static basin_status evaluate(weight_search *c, point *p, basin_error *error) {
    basin_ranking ranking = {.size = sizeof ranking};
    for (int64_t i = 0, n = 0; i < c->nodes; i++) {
        if (c->part[i] != BASIN_SPLIT_VAL) continue;
        double z = 0;
        for (int k = 0; k < PARTS; k++)
            if (p->share[k] > 0) z += p->share[k] * c->of[k][i] / c->deviation[k];
        c->score[n++] = z;
    }
    BASIN_TRY(basin_ranking_measure(&ranking, c->score, c->label, c->count, 0, error));
    p->merit = ranking.auroc + ranking.auprc, p->auroc = ranking.auroc;
    return BASIN_OK;
}

static int better_first(const void *a, const void *b) {
    const point *x = a, *y = b;
    if (x->merit != y->merit) return x->merit < y->merit ? 1 : -1;
    if (x->evenness != y->evenness) return x->evenness < y->evenness ? 1 : -1;
    for (int k = 0; k < PARTS; k++) /* or the choice would be that of the system's qsort */
        if (x->share[k] != y->share[k]) return x->share[k] < y->share[k] ? -1 : 1;
    return 0;
}

/* How many of the sorted points count: a fifth, or all within the best one's standard error where
 * validation has few nodes of a class. */
static int count_best(const weight_search *c) {
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

static basin_status find_shares(double share[PARTS], weight_search *c, basin_error *error) {
    c->points = 0;
    list_points(c, &(point){.evenness = 0}, 0, QUARTERS);
    for (int i = 0; i < c->points; i++) BASIN_TRY(evaluate(c, &c->point[i], error));
    qsort(c->point, (size_t)c->points, sizeof *c->point, better_first);
    int best = count_best(c);
    for (int k = 0; k < PARTS; k++) {
        share[k] = 0;
        for (int i = 0; i < best; i++) share[k] += c->point[i].share[k] / best;
    }
    return BASIN_OK;
}

/* Shares of parts of deviation 1 become weights of views, summing to 1, and the network's share. */
static void set_weights(basin_nodes_ensemble *e, double *trees, const double *view,
                        const double share[PARTS], const weight_search *c) {
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

/* What trees and network each reach, with the shares and threshold that validation chooses. */
static basin_status measure_alone(basin_nodes_ensemble *e, int which, const weight_search *all,
                                  const basin_network *network, const uint8_t *part,
                                  const char *scan, basin_error *error) {
    weight_search c = *all;
    double share[PARTS] = {0}, whole = 0, threshold;
    for (int k = 0; k < PARTS; k++) {
        if ((k == BASIN_TREE_VIEWS) != which) c.of[k] = NULL; /* trees, or the network */
        whole += c.of[k] != NULL;
    }
    if (!(whole > 0)) return BASIN_OK;
    BASIN_SCRATCH(double, probability, network->nodes, "scores", error);
    BASIN_TRY(find_shares(share, &c, error));
    whole = 0;
    for (int k = 0; k < PARTS; k++) whole += share[k] /= c.deviation[k];
    for (int64_t i = 0; i < network->nodes; i++) {
        double z = 0;
        for (int k = 0; k < PARTS; k++)
            if (share[k] > 0) z += share[k] / whole * c.of[k][i];
        probability[i] = basin_probability_of(z);
    }
    BASIN_TRY(basin_nodes_choose_threshold(&threshold, probability, network, part, scan, error));
    for (int p = BASIN_SPLIT_VAL; p <= BASIN_SPLIT_TEST; p++)
        if (basin_split_nodes(NULL, part, network->nodes, p))
            BASIN_TRY(basin_nodes_evaluate(&e->alone[which][p], probability, NULL, network, part, p,
                                           threshold, error));
    return BASIN_OK;
}

basin_status basin_nodes_ensemble_choose(basin_nodes_ensemble *e, double *trees, const double *view,
                                         const double *network_logit, const basin_network *network,
                                         const uint8_t *part, const char *scan,
                                         basin_error *error) {
    double share[PARTS] = {0}, mean;
    BASIN_AT_EXIT(basin_nodes_samples_free) basin_nodes_samples samples = {0};
    weight_search c = {.nodes = network->nodes, .part = part};
    for (int k = 0; k < PARTS; k++) {
        c.of[k] = k == BASIN_TREE_VIEWS ? network_logit : e->seeing[k] ? view + k * c.nodes : NULL;
        c.deviation[k] = 1;
        if (c.of[k]) spread(&mean, &c.deviation[k], c.of[k], part, c.nodes);
        /* Fits without a tree are constant: scaled to deviation 1 they would outweigh all others.
         */
        if (k < BASIN_TREE_VIEWS && c.deviation[k] <= 1e-5) c.of[k] = NULL;
    }
    BASIN_TRY(
        basin_nodes_samples_take(&samples, network_logit, network, part, BASIN_SPLIT_VAL, error));
    c.score = samples.score, c.label = samples.label, c.count = samples.count;
    BASIN_TRY(find_shares(share, &c, error));
    set_weights(e, trees, view, share, &c);
    align(e, trees, network_logit, part, network->nodes);
    for (int which = 0; which < 2; which++)
        BASIN_TRY(measure_alone(e, which, &c, network, part, scan, error));
    return BASIN_OK;
}

/* ---- Calibrated probabilities, and thresholds for a goal, from the validation nodes ---- */

enum { KEPT = 16384 }; /* validation nodes in a model file, at most */

/* ---- calibration ---- */

/* Isotonic lines have flat parts; a trace of the probability itself keeps nodes apart there. */
double basin_nodes_calibrated(const basin_nodes_model *model, double p) {
    static const double trace = 1e-3;
    if (model->calibration.kind == BASIN_CALIBRATION_NONE) return p;
    p = (1 - trace) * basin_calibration_apply(&model->calibration, p) + trace * p;
    return model->floor + (1 - 2 * model->floor) * p;
}

static basin_status fit(basin_calibration *c, const char *how, const basin_nodes_samples *s,
                        basin_error *error) {
    bool platt = basin_choice_is(how, "platt");
    if (basin_choice_is(how, "none")) return BASIN_OK;
    if (basin_choice_is(how, "auto"))
        return basin_calibration_choose(c, s->score, s->label, s->count, error);
    return basin_calibration_fit(c, platt ? BASIN_CALIBRATION_PLATT : BASIN_CALIBRATION_ISOTONIC,
                                 s->score, s->label, s->count, error);
}

static basin_status keep(basin_nodes_samples *s, basin_error *error) {
    int64_t kept = basin_int_min(s->count, KEPT);
    BASIN_FREE_AT_EXIT basin_sample *list = NULL;
    BASIN_TRY(basin_samples_sort(&list, s->score, s->label, s->count, false, error));
    for (int64_t i = 0; i < kept; i++) {
        s->score[i] = list[i * s->count / kept].score;
        s->label[i] = list[i * s->count / kept].label;
    }
    s->count = kept;
    return BASIN_OK;
}

double basin_nodes_base_rate(const basin_network *network, const uint8_t *part) {
    int64_t count = 0, anomalous = 0;
    for (int64_t i = 0; i < network->nodes; i++) {
        if (part[i] != BASIN_SPLIT_TRAIN) continue;
        count++;
        anomalous += network->label[i] == 1;
    }
    return count ? (double)anomalous / (double)count : 0;
}

basin_status basin_nodes_calibrate(basin_nodes_model *model, double *probability,
                                   const basin_network *network, const uint8_t *part,
                                   basin_error *error) {
    basin_nodes_samples *s = &model->judged;
    basin_nodes_samples_free(s);
    BASIN_TRY(basin_nodes_samples_take(s, probability, network, part, BASIN_SPLIT_VAL, error));
    BASIN_TRY(fit(&model->calibration, model->settings.calibrate, s, error));
    /* As many nodes as these, without an anomaly, are as likely as not with half of one. */
    model->floor = 0.5 / (double)(s->count + 1);
    for (int64_t i = 0; i < network->nodes; i++)
        probability[i] = basin_nodes_calibrated(model, probability[i]);
    for (int64_t i = 0; i < s->count; i++) s->score[i] = basin_nodes_calibrated(model, s->score[i]);
    model->threshold = basin_nodes_calibrated(model, model->threshold);
    return keep(s, error);
}

/* ---- thresholds ---- */

/* At most `alerts` nodes lie above it; equal ones stay together. */
static basin_status for_alerts(double *threshold, double alerts, const double *probability,
                               int64_t nodes, basin_error *error) {
    BASIN_SCRATCH_RAW(double, sorted, nodes, "a threshold", error);
    memcpy(sorted, probability, (size_t)nodes * sizeof *sorted);
    qsort(sorted, (size_t)nodes, sizeof *sorted, basin_compare_double);
    *threshold =
        alerts >= (double)nodes ? nextafter(sorted[0], -1) : sorted[nodes - 1 - (int64_t)alerts];
    return BASIN_OK;
}

typedef struct goal {
    basin_goal kind;
    double expected; /* of a cost, the threshold itself */
    bool cost;
} goal;

static bool read_goal(goal *g, const char *text) {
    static const struct {
        const char *name;
        basin_goal goal;
        double max;
    } goals[] = {{"precision=", BASIN_GOAL_SURE, 1},
                 {"recall=", BASIN_GOAL_RECALL, 1},
                 {"fpr=", BASIN_GOAL_FPR, 1},
                 {"alerts=", BASIN_GOAL_BUDGET, 9e15},
                 {"cost=", BASIN_GOAL_BUDGET, 1e9}};
    for (size_t i = 0; i < sizeof goals / sizeof *goals; i++) {
        size_t length = strlen(goals[i].name);
        char *end;
        if (strncmp(text, goals[i].name, length) != 0) continue;
        *g = (goal){goals[i].goal, basin_real_read(text + length, &end), *text == 'c'};
        bool good = end != text + length && g->expected > 0 && g->expected <= goals[i].max;
        if (!g->cost)
            return good && !*end && (goals[i].max == 1 || g->expected == floor(g->expected));
        const char *second = end + 1;
        double missed = good && *end == ':' ? basin_real_read(second, &end) : 0;
        g->expected /= g->expected + missed;
        return missed > 0 && end != second && !*end;
    }
    return false;
}

/* A threshold by samples; without any for a sure precision, by the estimate. */
static basin_status choose(double *threshold, const goal *g, const basin_nodes_samples *s,
                           basin_error *error) {
    if (g->kind == BASIN_GOAL_BUDGET) return BASIN_OK; /* it is there already */
    if (!basin_threshold_for(threshold, g->kind, g->expected, s->score, s->label, s->count, NULL))
        return BASIN_OK;
    basin_goal kind = g->kind == BASIN_GOAL_SURE ? BASIN_GOAL_PRECISION : g->kind;
    return basin_threshold_for(threshold, kind, g->expected, s->score, s->label, s->count, error);
}

enum { DRAWS = 400, EXPECTED = 4 };

/* The figures above a threshold on samples not drawn; whether each class and an alert is there. */
static bool judge_others(double value[EXPECTED], double threshold, const basin_nodes_samples *s,
                         const uint8_t *drawn) {
    double count[2] = {0}, above[2] = {0};
    for (int64_t i = 0; i < s->count; i++) {
        if (drawn[i]) continue;
        count[s->label[i]]++;
        above[s->label[i]] += s->score[i] > threshold;
    }
    value[0] = above[1] / (above[0] + above[1]), value[1] = above[1] / count[1];
    value[2] = above[0] / count[0], value[3] = (above[0] + above[1]) / (count[0] + count[1]);
    return count[0] > 0 && count[1] > 0 && above[0] + above[1] > 0;
}

/* Draw `number` of a bootstrap: how often it has each sample. */
static void draw(uint8_t *times, int64_t count, int number) {
    basin_random random = basin_random_start(0, (uint64_t)number, 0);
    memset(times, 0, (size_t)count);
    for (int64_t i = 0; i < count; i++) {
        uint8_t *one = &times[basin_random_below(&random, (uint64_t)count)];
        if (*one < UINT8_MAX) ++*one;
    }
}

/* Samples are ascending, and so are draws from them. */
static basin_status expect(basin_nodes_threshold_result *t, const goal *g,
                           const basin_nodes_samples *s, basin_error *error) {
    double *const to[EXPECTED] = {t->precision, t->recall, t->fpr, t->alerts};
    double found[EXPECTED][DRAWS], value[EXPECTED];
    BASIN_AT_EXIT(basin_nodes_samples_free) basin_nodes_samples in = {0};
    int draws = 0;
    BASIN_TRY(BASIN_NEW_RAW(&in.score, s->count, "a threshold", error));
    BASIN_TRY(BASIN_NEW_RAW(&in.label, s->count, "a threshold", error));
    BASIN_SCRATCH_RAW(uint8_t, drawn, s->count, "a threshold", error);
    for (int d = 0; d < DRAWS && s->count; d++) {
        double threshold = t->threshold;
        draw(drawn, s->count, d);
        in.count = 0;
        for (int64_t i = 0; i < s->count; i++)
            for (int k = 0; k < drawn[i] && in.count < s->count; k++) {
                in.score[in.count] = s->score[i];
                in.label[in.count++] = s->label[i];
            }
        if (choose(&threshold, g, &in, NULL) || !judge_others(value, threshold, s, drawn)) continue;
        for (int k = 0; k < EXPECTED; k++) found[k][draws] = value[k];
        draws++;
    }
    for (int k = 0; k < EXPECTED; k++) {
        qsort(found[k], (size_t)draws, sizeof **found, basin_compare_double);
        to[k][0] = draws ? found[k][draws / 2] : NAN;
        to[k][1] = draws ? found[k][draws / 40] : NAN;
        to[k][2] = draws ? found[k][draws - 1 - draws / 40] : NAN;
    }
    return BASIN_OK;
}

basin_status basin_nodes_threshold_for(basin_nodes_threshold_result *result,
                                       const basin_nodes_model *model, const char *text,
                                       const double *probability, int64_t nodes,
                                       basin_error *error) {
    goal g;
    if (!read_goal(&g, text))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "threshold for '%s'; needs precision=X, recall=X or fpr=X with X up to "
                          "1, cost=X:Y of an alert for nothing and of an anomaly that is missed, "
                          "or alerts=N",
                          text);
    if (!model) return BASIN_OK;
    const basin_nodes_samples *s = &model->judged;
    basin_nodes_threshold_result found = {.threshold = g.expected};
    if (g.cost && model->calibration.kind == BASIN_CALIBRATION_NONE)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "threshold for '%s': the model's probabilities are not calibrated; needs "
                          "one trained with validation nodes and calibrate auto",
                          text);
    if (g.kind == BASIN_GOAL_BUDGET && !g.cost)
        BASIN_TRY(for_alerts(&found.threshold, g.expected, probability, nodes, error));
    if (g.kind != BASIN_GOAL_BUDGET && !s->count)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "threshold for '%s': the model keeps no validation nodes; needs one "
                          "trained with some by this version",
                          text);
    BASIN_TRY(choose(&found.threshold, &g, s, error));
    BASIN_TRY(expect(&found, &g, s, error));
    basin_info_fill(result, &found, sizeof found);
    return BASIN_OK;
}

/* ---- files ---- */

basin_status basin_nodes_judged_store(basin_bundle *bundle, const basin_nodes_model *model,
                                      basin_error *error) {
    const basin_calibration *c = &model->calibration;
    const basin_nodes_samples *s = &model->judged;
    const double *line[] = {c->score, c->probability};
    static const char *const name[] = {"calibration.score", "calibration.probability"};
    if (!s->count) return BASIN_OK;
    basin_shape all = BASIN_SHAPE(s->count);
    BASIN_TRY(basin_bundle_meta_set(bundle, "calibration", basin_calibration_name(c->kind), error));
    BASIN_TRY(basin_nodes_set_number(bundle, "calibration.floor", model->floor, error));
    BASIN_TRY(basin_bundle_put(bundle, "validation.score", s->score, BASIN_F64, all, error));
    BASIN_TRY(basin_bundle_put(bundle, "validation.label", s->label, BASIN_U8, all, error));
    if (c->kind == BASIN_CALIBRATION_PLATT) /* slope and offset */
        return basin_bundle_put(bundle, "calibration.line", &c->slope, BASIN_F64, BASIN_SHAPE(2),
                                error);
    for (int i = 0; i < 2 && c->kind == BASIN_CALIBRATION_ISOTONIC; i++)
        BASIN_TRY(
            basin_bundle_put(bundle, name[i], line[i], BASIN_F64, BASIN_SHAPE(c->knots), error));
    return BASIN_OK;
}

/* Finite numbers, `count` of them where it is not 0; free them. */
static basin_status get_numbers(double **value, int64_t *count, const basin_bundle *bundle,
                                const char *name, basin_error *error) {
    const basin_tensor *tensor;
    BASIN_TRY(basin_bundle_get(&tensor, bundle, name, error));
    int64_t found = basin_shape_count(tensor->shape);
    if (tensor->dtype != BASIN_F64 || found < 1 || (*count && found != *count) ||
        basin_tensor_first_bad(tensor) >= 0)
        return basin_fail(
            error, BASIN_BAD_FILE, "%s: %s has %lld numbers of %s; needs finite ones of F64",
            basin_bundle_path(bundle), name, (long long)found, basin_dtype_name(tensor->dtype));
    BASIN_TRY(BASIN_NEW_RAW(value, found, name, error));
    memcpy(*value, tensor->data, (size_t)found * sizeof **value);
    *count = found;
    return BASIN_OK;
}

static basin_status load_calibration(basin_calibration *c, const basin_bundle *bundle,
                                     const char *kind, basin_error *error) {
    BASIN_FREE_AT_EXIT double *line = NULL;
    int64_t two = 2;
    if (!strcmp(kind, "none")) return BASIN_OK;
    if (!strcmp(kind, "platt")) {
        BASIN_TRY(get_numbers(&line, &two, bundle, "calibration.line", error));
        *c = (basin_calibration){BASIN_CALIBRATION_PLATT, .slope = line[0], .offset = line[1]};
        return BASIN_OK;
    }
    if (strcmp(kind, "isotonic") != 0)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: calibration is '%.40s'; needs none, platt or isotonic",
                          basin_bundle_path(bundle), kind);
    BASIN_TRY(get_numbers(&c->score, &c->knots, bundle, "calibration.score", error));
    c->kind = BASIN_CALIBRATION_ISOTONIC;
    BASIN_TRY(get_numbers(&c->probability, &c->knots, bundle, "calibration.probability", error));
    for (int64_t i = 0; i < c->knots; i++)
        if (c->probability[i] < 0 || c->probability[i] > 1)
            return basin_fail(error, BASIN_BAD_FILE,
                              "%s: calibration.probability has %g; needs 0 to 1",
                              basin_bundle_path(bundle), c->probability[i]);
    return BASIN_OK;
}

basin_status basin_nodes_judged_load(basin_nodes_model *model, const basin_bundle *bundle,
                                     basin_error *error) {
    const char *kind = basin_bundle_meta(bundle, "calibration"); /* older files have none */
    basin_nodes_samples *s = &model->judged;
    const basin_tensor *label;
    if (!kind) return BASIN_OK;
    if (basin_bundle_meta(bundle, "calibration.floor")) /* nor this */
        BASIN_TRY(basin_bundle_number(&model->floor, bundle, "calibration.floor", 0, 0.5, error));
    BASIN_TRY(load_calibration(&model->calibration, bundle, kind, error));
    BASIN_TRY(get_numbers(&s->score, &s->count, bundle, "validation.score", error));
    BASIN_TRY(basin_bundle_expect(&label, bundle, "validation.label", BASIN_U8,
                                  BASIN_SHAPE(s->count), error));
    BASIN_TRY(BASIN_NEW_RAW(&s->label, s->count, "validation nodes", error));
    memcpy(s->label, label->data, (size_t)s->count);
    return BASIN_OK;
}
