/* How well classes are told apart; see classes.h. */
#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "task/nodes/classes/classes.h"

/* A probability of 0 would make one node's surprise infinite. */
static const double least = 1e-12;

int32_t basin_classes_best(const double *probability, int64_t classes) {
    int32_t best = 0;
    for (int64_t c = 1; c < classes; c++)
        if (probability[c] > probability[best]) best = (int32_t)c;
    return best;
}

void basin_classes_confusion(int64_t *matrix, const double *probability, const int32_t *class_of,
                             int64_t classes, const uint8_t *part, int which, int64_t nodes) {
    for (int64_t i = 0; i < classes * classes; i++) matrix[i] = 0;
    for (int64_t i = 0; i < nodes; i++)
        if (part[i] == which && class_of[i] >= 0)
            matrix[class_of[i] * classes +
                   basin_classes_best(probability + i * classes, classes)]++;
}

/* The mean of the classes' F1; one that is neither there nor predicted is left out. */
static double macro_f1(const int64_t *matrix, int64_t classes) {
    double sum = 0;
    int64_t counted = 0;
    for (int64_t c = 0; c < classes; c++) {
        int64_t there = 0, told = 0, right = matrix[c * classes + c];
        for (int64_t k = 0; k < classes; k++) {
            there += matrix[c * classes + k];
            told += matrix[k * classes + c];
        }
        if (!there && !told) continue;
        sum += 2 * (double)right / (double)(there + told);
        counted++;
    }
    return counted ? sum / (double)counted : 0;
}

/* Nodes of a part. */
typedef struct nodes {
    int64_t *node; /* [count] */
    int64_t count, classes;
    const double *probability;
    const int32_t *class_of;
} nodes;

/* Each class against all others, where a part has both. */
static basin_status mean_auroc(double *mean, const nodes *n, basin_error *error) {
    double *score = basin_array_new((size_t)n->count, sizeof *score), sum = 0;
    uint8_t *label = basin_array_new((size_t)n->count, sizeof *label);
    basin_status status = score && label ? BASIN_OK : BASIN_NO_MEMORY;
    if (status) basin_fail(error, status, "out of memory for figures");
    int64_t counted = 0;
    for (int64_t c = 0; c < n->classes && !status; c++) {
        int64_t there = 0;
        for (int64_t i = 0; i < n->count; i++) {
            score[i] = n->probability[n->node[i] * n->classes + c];
            there += label[i] = n->class_of[n->node[i]] == c;
        }
        if (!there || there == n->count) continue;
        basin_ranking ranking;
        status = basin_ranking_measure(&ranking, score, label, n->count, 0, error);
        sum += status ? 0 : ranking.auroc;
        counted++;
    }
    *mean = counted ? sum / (double)counted : NAN;
    free(score), free(label);
    return status;
}

static void right_and_surprise(double *accuracy, double *loss, const nodes *n) {
    double right = 0, sum = 0;
    for (int64_t i = 0; i < n->count; i++) {
        int64_t node = n->node[i];
        int32_t its = n->class_of[node];
        const double *p = n->probability + node * n->classes;
        right += its == basin_classes_best(p, n->classes);
        sum -= log(its >= 0 && p[its] > least ? p[its] : least);
    }
    *accuracy = right / (double)n->count;
    *loss = sum / (double)n->count;
}

basin_status basin_classes_measure(basin_score *score, const double *probability,
                                   const int32_t *class_of, int64_t classes, const uint8_t *part,
                                   int which, int64_t all, basin_error *error) {
    nodes n = {.count = basin_split_nodes(NULL, part, all, which),
               .classes = classes,
               .probability = probability,
               .class_of = class_of};
    double accuracy = 0, loss = 0, auroc = 0;
    *score = (basin_score){0};
    n.node = basin_array_new((size_t)n.count, sizeof *n.node);
    int64_t *matrix = basin_array_new((size_t)(classes * classes), sizeof *matrix);
    basin_status status = n.node && matrix ? BASIN_OK : BASIN_NO_MEMORY;
    if (status) basin_fail(error, status, "out of memory for figures");
    if (!status && !n.count) status = basin_fail(error, BASIN_BAD_VALUE, "no nodes to measure on");
    if (!status) {
        basin_split_nodes(n.node, part, all, which);
        basin_classes_confusion(matrix, probability, class_of, classes, part, which, all);
        right_and_surprise(&accuracy, &loss, &n);
        status = mean_auroc(&auroc, &n, error);
    }
    if (!status) {
        basin_score_add(score, "accuracy", accuracy);
        basin_score_add(score, "macro_f1", macro_f1(matrix, classes));
        basin_score_add(score, "auroc", auroc);
        basin_score_add(score, "loss", loss);
        score->tie = -loss;
    }
    free(n.node), free(matrix);
    return status;
}
