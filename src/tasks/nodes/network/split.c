/* Splits into training, validation and test: stratified by seed and run, from files, by time. */
#include <inttypes.h>

#include "base/sort.h"
#include "base/text.h"
#include "basin/random.h"
#include "tasks/nodes/network/network.h"

/* Cuts one class: the first `train` of a random order, then a third of the rest. */
static void cut_class(uint8_t *part, int64_t *node, int64_t count, double ratio, uint64_t seed,
                      uint64_t stream) {
    basin_random random = basin_random_start(seed, stream, 0);
    basin_random_shuffle(node, (size_t)count, &random);
    int64_t train = llround(ratio * (double)count);
    if (train < 1) train = 1;
    if (train > count) train = count;
    int64_t val = llround((double)(count - train) / 3);
    for (int64_t i = 0; i < count; i++)
        part[node[i]] = i < train         ? BASIN_SPLIT_TRAIN
                        : i < train + val ? BASIN_SPLIT_VAL
                                          : BASIN_SPLIT_TEST;
}

basin_status basin_split_stratified(uint8_t *part, const basin_network *network, double ratio,
                                    uint64_t seed, uint64_t run, basin_error *error) {
    if (!(ratio > 0 && ratio < 1))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a training ratio of %g, expected more than 0 and less than 1", ratio);
    int32_t max = basin_network_greatest_label(network);
    if (max < 0)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no node has a label to split by",
                          network->path);
    BASIN_SCRATCH_RAW(int64_t, node, network->nodes, "a split", error);
    memset(part, BASIN_SPLIT_NONE, (size_t)network->nodes);
    for (int32_t label = 0; label <= max; label++) {
        int64_t count = 0;
        for (int64_t k = 0; k < network->nodes; k++) {
            int64_t i = network->order ? network->order[k] : k;
            if (network->label[i] == label) node[count++] = i;
        }
        if (count) cut_class(part, node, count, ratio, seed, run << 16 | (uint64_t)(uint32_t)label);
    }
    return BASIN_OK;
}

basin_status basin_split_from_masks(uint8_t *part, const basin_network *network, int64_t split,
                                    basin_error *error) {
    if (!network->train)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: no masks for training are in it",
                          network->path);
    if (split < 0 || split >= network->splits)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: split %" PRId64 ", expected 0 to %" PRId64,
                          network->path, split, network->splits - 1);
    int64_t first = split * network->nodes;
    for (int64_t i = 0; i < network->nodes; i++) {
        bool train = network->train[first + i];
        bool val = network->val && network->val[first + i];
        bool test = network->test && network->test[first + i];
        if (train + val + test > 1)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "%s: node %" PRId64 " is in two parts of split %" PRId64,
                              network->path, i, split);
        part[i] = train  ? BASIN_SPLIT_TRAIN
                  : val  ? BASIN_SPLIT_VAL
                  : test ? BASIN_SPLIT_TEST
                         : BASIN_SPLIT_NONE;
        if (!network->label || network->label[i] < 0) part[i] = BASIN_SPLIT_NONE;
    }
    return BASIN_OK;
}

/* ---- by time ---- */

static bool is_edge_time(const basin_network *n, const char *column) {
    const basin_schema_column *c = n->schema ? basin_schema_find(&n->schema->edges, column) : NULL;
    return c && c->time && n->since;
}

static basin_status fail_column(const basin_network *n, const char *column, basin_error *error) {
    basin_list list = {0};
    for (int64_t f = 0; f < n->column.count; f++)
        basin_list_add(&list, n->column.text + n->column.at[f]);
    for (size_t i = 0; n->schema && i < n->schema->edges.columns; i++)
        if (n->schema->edges.column[i].time) basin_list_add(&list, n->schema->edges.column[i].name);
    return basin_fail(error, BASIN_BAD_VALUE, "%s: no times in '%s' to split by; there are %s",
                      n->path, column, list.count ? list.text : "no columns with names");
}

/* The labelled nodes that have a time, in its order; how many. */
static basin_status sort_nodes(basin_ranked *by, int64_t *count, const basin_network *n,
                               const char *column, basin_error *error) {
    int64_t feature = -1;
    for (int64_t f = 0; f < n->column.count && feature < 0; f++)
        if (!strcmp(n->column.text + n->column.at[f], column)) feature = f;
    if (feature < 0 && !is_edge_time(n, column)) return fail_column(n, column, error);
    *count = 0;
    for (int64_t i = 0; i < n->nodes; i++) {
        double time = feature >= 0 ? (double)n->feature[i * n->features + feature] : n->since[i];
        if (n->label && n->label[i] >= 0 && isfinite(time))
            by[(*count)++] = (basin_ranked){time, i};
    }
    qsort(by, (size_t)*count, sizeof *by, basin_lower_first);
    return BASIN_OK;
}

/* Where the first node stands that is later than the one at which a part should end. */
static int64_t cut_at(const basin_ranked *by, int64_t count, double share) {
    int64_t at = llround(share * (double)count);
    if (at < 1 || at >= count) return at < 1 ? 0 : count;
    while (at < count && by[at].value == by[at - 1].value) at++;
    return at;
}

/* New masks: those of a mapped file stay where they are. */
static basin_status new_masks(basin_network *n, basin_error *error) {
    uint8_t **slot[] = {&n->train, &n->val, &n->test}, *mask[3] = {0};
    basin_status status = BASIN_OK;
    for (int i = 0; i < 3 && !status; i++) status = BASIN_NEW(&mask[i], n->nodes, "a split", error);
    for (int i = 0; i < 3; i++)
        if (status)
            free(mask[i]);
        else
            basin_network_release(n, *slot[i]), *slot[i] = mask[i];
    if (!status) n->splits = 1;
    return status;
}

static bool is_date(const basin_network *n, const char *column) {
    const basin_schema_column *c = n->schema ? basin_schema_find(&n->schema->nodes, column) : NULL;
    if (!c && n->schema) c = basin_schema_find(&n->schema->edges, column);
    return c && c->type == BASIN_COLUMN_DATE;
}

static void note_cuts(basin_network *n, const char *column, const basin_ranked *by, int64_t count,
                      int64_t train, int64_t val) {
    int64_t labelled = 0;
    char first[BASIN_TIME_TEXT], second[BASIN_TIME_TEXT];
    bool date = is_date(n, column);
    for (int64_t i = 0; i < n->nodes; i++) labelled += n->label[i] >= 0;
    basin_time_print(first, by[train - 1].value, date);
    basin_time_print(second, by[val - 1].value, date);
    basin_network_add_note(
        n,
        "by %s: %" PRId64 " nodes train, up to %s; %" PRId64 " validate, up to %s; %" PRId64
        " test; %" PRId64 " labelled nodes have no time",
        column, train, first, val - train, second, count - val, labelled - count);
}

basin_status basin_network_split_by_time(basin_network *network, const char *column, double train,
                                         double val, basin_error *error) {
    int64_t count = 0;
    BASIN_SCRATCH_RAW(basin_ranked, by, network->nodes, "a split", error);
    BASIN_TRY(sort_nodes(by, &count, network, column, error));
    int64_t first = cut_at(by, count, train), second = cut_at(by, count, train + val);
    if (first < 1 || second == first)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: %" PRId64 " labelled nodes with times in '%s' make %" PRId64
                          " for training and %" PRId64 " for validation, expected some of each",
                          network->path, count, column, first, second - first);
    BASIN_TRY(new_masks(network, error));
    for (int64_t i = 0; i < count; i++)
        (i < first ? network->train : i < second ? network->val : network->test)[by[i].at] = 1;
    note_cuts(network, column, by, count, first, second);
    return BASIN_OK;
}

int64_t basin_split_nodes(int64_t *node, const uint8_t *part, int64_t nodes, int which) {
    int64_t count = 0;
    for (int64_t i = 0; i < nodes; i++)
        if (part[i] == which) {
            if (node) node[count] = i;
            count++;
        }
    return count;
}
