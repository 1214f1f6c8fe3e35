/* Two detectors on the same nodes, with intervals of differences by a paired bootstrap. */
#include "base/sort.h"
#include "tasks/nodes/nodes.h"

enum { DRAWS = 1000, MEASURES = BASIN_NODES_DIFFERENCES };

/* A judged node, by falling score. */
typedef struct place {
    double score;
    int64_t number; /* among those judged */
    uint8_t label;
} place;

static int higher_first(const void *a, const void *b) {
    return BASIN_COMPARE(((const place *)b)->score, ((const place *)a)->score);
}

/* The measures where node i counts times[i] times. Whether there are both classes. */
static bool weigh(double value[MEASURES], const place *list, int64_t count, const uint8_t *times,
                  double threshold) {
    double seen[2] = {0}, above[2] = {0}, area = 0, precision = 0, square = 0;
    for (int64_t i = 0; i < count;) {
        double here = list[i].score, group[2] = {0};
        for (; i < count && list[i].score == here; i++) {
            double weight = times[list[i].number];
            group[list[i].label] += weight;
            square += weight * (here - list[i].label) * (here - list[i].label);
        }
        area += group[0] * (seen[1] + group[1] / 2);
        seen[0] += group[0], seen[1] += group[1];
        if (group[1] > 0) precision += group[1] * seen[1] / (seen[0] + seen[1]);
        if (here > threshold) above[0] = seen[0], above[1] = seen[1];
    }
    double alerts = above[0] + above[1];
    value[0] = area / (seen[0] * seen[1]), value[1] = precision / seen[1];
    value[2] = alerts > 0 ? above[1] / alerts : 0, value[3] = above[1] / seen[1];
    value[4] = square / (seen[0] + seen[1]);
    return seen[0] > 0 && seen[1] > 0;
}

static basin_status draw(basin_nodes_comparison *c, place *const list[2], int64_t count,
                         basin_error *error) {
    double value[2][MEASURES];
    int draws = 0;
    BASIN_SCRATCH_RAW(uint8_t, times, count, "a comparison", error);
    BASIN_SCRATCH_RAW(double, found, (MEASURES * DRAWS), "a comparison", error);
    for (int d = 0; d < DRAWS; d++) {
        basin_nodes_draw(times, count, d);
        bool both = true;
        for (int k = 0; k < 2; k++)
            both = weigh(value[k], list[k], count, times, c->figures[k].threshold) && both;
        for (int m = 0; m < MEASURES && both; m++)
            found[m * DRAWS + draws] = value[1][m] - value[0][m];
        draws += both;
    }
    memset(times, 1, (size_t)count);
    for (int k = 0; k < 2; k++) weigh(value[k], list[k], count, times, c->figures[k].threshold);
    for (int m = 0; m < MEASURES; m++) {
        static const char *const name[] = {"auroc", "auprc", "precision", "recall", "brier"};
        double *all = found + m * DRAWS;
        qsort(all, (size_t)draws, sizeof *all, basin_compare_double);
        c->difference[m] = (basin_nodes_difference){name[m], value[1][m] - value[0][m],
                                                    draws ? all[draws / 40] : NAN,
                                                    draws ? all[draws - 1 - draws / 40] : NAN};
    }
    return BASIN_OK;
}

/* Labelled nodes; without `all`, those that took part in the training of neither. */
static basin_status choose_nodes(uint8_t *part, basin_nodes_comparison *c,
                                 const basin_nodes_model *const model[2],
                                 const basin_network *const network[2], bool all,
                                 basin_error *error) {
    const basin_network *n = network[0];
    BASIN_SCRATCH_RAW(uint8_t, seen, n->nodes, "known nodes", error);
    for (int64_t i = 0; i < n->nodes; i++)
        part[i] = n->label && n->label[i] >= 0 ? BASIN_PART_TEST : BASIN_PART_NONE;
    int64_t count[2] = {0}, left = 0;
    for (int k = 0; k < 2 && !all; k++) {
        BASIN_TRY(basin_nodes_seen(seen, model[k], network[k], error));
        for (int64_t i = 0; i < n->nodes; i++) {
            if (!seen[i] || !n->label || n->label[i] < 0) continue;
            count[k]++;
            c->left_out += part[i] != BASIN_PART_NONE;
            part[i] = BASIN_PART_NONE;
        }
    }
    for (int64_t i = 0; i < n->nodes; i++) left += part[i] != BASIN_PART_NONE;
    if (left || !c->left_out) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: all %lld labelled nodes took part in training or validation (%lld of "
                      "them of A, %lld of B, parents included); needs labelled nodes that neither "
                      "has seen, such as later ones, or the option all, which is no test",
                      n->path, (long long)c->left_out, (long long)count[0], (long long)count[1]);
}

basin_status basin_nodes_compare(basin_nodes_comparison *c, const basin_nodes_model *const model[2],
                                 const basin_network *const network[2],
                                 const double *const probability[2], bool all, basin_error *error) {
    int64_t N = network[0]->nodes, count = 0;
    *c = (basin_nodes_comparison){0};
    if (network[1]->nodes != N)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: %lld nodes for one model, %lld for the other", network[0]->path,
                          (long long)N, (long long)network[1]->nodes);
    BASIN_SCRATCH_RAW(uint8_t, part, N, "a comparison", error);
    BASIN_SCRATCH_RAW(place, list, 2 * N, "a comparison", error); /* [2, N] */
    BASIN_TRY(choose_nodes(part, c, model, network, all, error));
    for (int k = 0; k < 2; k++)
        BASIN_TRY(basin_nodes_backtest(&c->figures[k], model[k], network[k], probability[k], part,
                                       BASIN_PART_TEST, model[k]->threshold, error));
    for (int64_t i = 0; i < N; i++) {
        if (!part[i]) continue;
        bool alert[2];
        for (int k = 0; k < 2; k++) {
            list[k * N + count] = (place){probability[k][i], count, network[0]->label[i] == 1};
            alert[k] = probability[k][i] > model[k]->threshold;
        }
        c->both += alert[0] && alert[1];
        for (int k = 0; k < 2; k++) c->only[k] += alert[k] && !alert[!k];
        count++;
    }
    place *const each[] = {list, list + N};
    for (int k = 0; k < 2; k++) qsort(each[k], (size_t)count, sizeof *list, higher_first);
    return draw(c, each, count, error);
}
