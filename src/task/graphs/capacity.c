/* How large the plans of a set's batches are: sizes on a ladder around the mean need of a batch, so
 * that a few plans serve all of them. */
#include <math.h>

#include "task/graphs/graphs.h"

/* Steps between capacities in deviations of a batch's need, and rows at least: on a host another
 * plan costs a few milliseconds and no memory for results, on a device a captured graph. */
typedef struct ladder {
    double deviations, least;
} ladder;

static ladder ladder_of(const basin_graphs_model *model) {
    return basin_store_shares_results(model->store) ? (ladder){0.5, 32} : (ladder){2, 64};
}

static void spread(double *mean, double *step, ladder by, const basin_graphset *set,
                   const int64_t *graph, int64_t count, int64_t batch,
                   int64_t (*size)(const basin_graphset *, int64_t)) {
    double sum = 0, squares = 0, n = count > 0 ? (double)count : 1;
    for (int64_t i = 0; i < count; i++) {
        double value = (double)size(set, graph[i]);
        sum += value, squares += value * value;
    }
    double variance = fmax(squares / n - sum / n * sum / n, 0);
    *mean = ceil((double)batch * sum / n);
    *step = ceil(fmax(by.least, by.deviations * sqrt((double)batch * variance)));
}

/* On a device sums over tokens are cut into equal parts. */
static int64_t round_up(double rows, const basin_graphs_plans *p) {
    int64_t unit = basin_store_shares_results(p->model->store) ? 1 : 32;
    return ((int64_t)rows + unit - 1) / unit * unit;
}

/* Capacities grow in steps from the mean need of a batch. On a device nearly all batches run on two
 * plans, and few need a third or fourth; on a host on ten, with little padding. */
basin_graphs_capacity basin_graphs_capacity_for(const basin_graphs_plans *p, int64_t nodes,
                                                int64_t pairs) {
    double tokens = (double)(nodes + p->batch);
    double steps = fmax(ceil((tokens - p->tokens_mean) / p->tokens_step),
                        ceil(((double)pairs - p->pairs_mean) / p->pairs_step));
    return (basin_graphs_capacity){p->batch, round_up(p->tokens_mean + steps * p->tokens_step, p),
                                   round_up(p->pairs_mean + steps * p->pairs_step, p)};
}

void basin_graphs_plans_begin(basin_graphs_plans *plans, basin_graphs_model *model,
                              const basin_graphset *set, const int64_t *graph, int64_t count,
                              const basin_schedule *schedule) {
    int64_t batch = model->settings.batch < count ? model->settings.batch : count;
    int64_t shards = schedule && model->settings.shards ? model->settings.shards : 1;
    batch = (batch + shards - 1) / shards;
    *plans = (basin_graphs_plans){.model = model, .training = schedule != NULL};
    plans->batch = batch > 0 ? batch : 1;
    if (schedule) plans->schedule = *schedule;
    ladder by = ladder_of(model);
    spread(&plans->tokens_mean, &plans->tokens_step, by, set, graph, count, plans->batch,
           basin_graphset_tokens);
    spread(&plans->pairs_mean, &plans->pairs_step, by, set, graph, count, plans->batch,
           basin_graphset_pairs);
}

/* Steps of a few dozen atoms: most molecules meet a plan that is there. */
void basin_graphs_plans_begin_one(basin_graphs_plans *plans, basin_graphs_model *model) {
    *plans = (basin_graphs_plans){.model = model, .batch = 1, .tokens_step = 32, .pairs_step = 128};
}
