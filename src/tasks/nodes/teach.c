/* Where labels are few, the Energy Transformer in context (context/) teaches trees: it compares
 * nodes without a label with the labelled ones, and trees that see a node and the means over its
 * neighbours are fitted to its probabilities. So what was learnt beforehand, on synthetic tables,
 * becomes a view of the detector that scores, explains and serves as the others do. Nodes of
 * validation are neither among the labels nor among the pupils; docs/anomaly.md has figures. */
#include "base/sort.h"
#include "basin/tasks/context.h"
#include "tasks/nodes/net.h"

enum {
    FEW = 1000,      /* labels, with validation, */
    FEW_JUDGES = 50, /* and anomalies of validation that are too many for a teacher */
    PUPILS = 4096,
};
static const char what[] = "lessons for trees";

void basin_lesson_free(basin_lesson *l) { BASIN_FREE(l->node, l->target); }

static bool is_needed(const basin_network *n, const uint8_t *part) {
    int64_t count[2] = {0, 0}, labels = 0, judges = 0;
    for (int64_t i = 0; i < n->nodes; i++) {
        labels += part[i] == BASIN_SPLIT_TRAIN || part[i] == BASIN_SPLIT_VAL;
        judges += part[i] == BASIN_SPLIT_VAL && n->label[i] == 1;
        if (part[i] == BASIN_SPLIT_TRAIN) count[n->label[i] == 1]++;
    }
    bool whole = n->relations == 0 || basin_network_main_relation(n) >= 0;
    return labels <= FEW && judges < FEW_JUDGES && count[0] && count[1] && whole && !n->both;
}

/* Labelled nodes with their labels, and others, evenly thinned out, to be asked about. */
static void list_pupils(basin_lesson *l, int32_t *label, const basin_network *n,
                        const uint8_t *part) {
    int64_t others = 0, seen = 0;
    for (int64_t i = 0; i < n->nodes; i++)
        others += part[i] != BASIN_SPLIT_TRAIN && part[i] != BASIN_SPLIT_VAL;
    for (int64_t i = 0; i < n->nodes; i++) {
        label[i] = part[i] == BASIN_SPLIT_TRAIN ? n->label[i] : -1;
        bool take = label[i] >= 0;
        if (!take && part[i] != BASIN_SPLIT_VAL) {
            int64_t before = seen * PUPILS / basin_int_max(others, PUPILS);
            take = ++seen * PUPILS / basin_int_max(others, PUPILS) > before;
        }
        if (take) l->node[l->count++] = i;
    }
}

static basin_status ask(basin_lesson *l, basin_context *context, const int32_t *label,
                        const basin_network *n, size_t memory, basin_error *error) {
    BASIN_SCRATCH_RAW(double, probability, l->count, what, error);
    BASIN_TRY(basin_context_read(context, n, memory, error));
    BASIN_TRY(basin_context_store(context, &(basin_context_options){.label = label}, error));
    BASIN_TRY(basin_context_predict(probability, context, l->node, l->count, error));
    for (int64_t i = 0; i < l->count; i++) {
        int32_t y = label[l->node[i]];
        l->target[i] = y >= 0 ? (float)y : (float)probability[i];
    }
    return BASIN_OK;
}

basin_status basin_nodes_teach(basin_lesson *l, const basin_network *n, const uint8_t *part,
                               basin_backend *backend, size_t memory, const basin_watch *watch,
                               basin_error *error) {
    basin_context *context;
    *l = (basin_lesson){0};
    if (!is_needed(n, part)) return BASIN_OK;
    if (basin_context_open(&context, NULL, backend, error)) {
        basin_watch_note(watch, "%s; trees learn from the labels only", error->text);
        return BASIN_OK;
    }
    BASIN_SCRATCH_RAW(int32_t, label, n->nodes, what, error);
    basin_status status = BASIN_NEW_RAW(&l->node, n->nodes, what, error);
    if (!status) status = BASIN_NEW_RAW(&l->target, n->nodes, what, error);
    if (!status) list_pupils(l, label, n, part);
    if (!status) status = ask(l, context, label, n, memory, error);
    basin_context_close(context);
    return status;
}
