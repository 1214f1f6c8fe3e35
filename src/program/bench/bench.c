/* The frame of `basin bench`; see bench.h. */
#include "program/bench/bench.h"

#include "base/clock.h"
#include "base/info.h"
#include "base/sort.h"
#include "basin/random.h"

basin_status basin_bench_plan(basin_plan **plan, basin_bench *bench, const char *key,
                              const char *name, const basin_plan_spec *spec, double flops,
                              basin_error *error) {
    BASIN_TRY(basin_plan_new(plan, bench->store, spec, error));
    bench->item[bench->items++] =
        (basin_bench_item){.key = key, .name = name, .plan = *plan, .flops = flops};
    return BASIN_OK;
}

basin_status basin_bench_training(basin_plan **plan, basin_bench *bench, basin_expr loss,
                                  double flops, basin_error *error) {
    basin_optimizer_config config = BASIN_OPTIMIZER_DEFAULT;
    BASIN_TRY(basin_optimizer_new(&bench->adamw, &bench->params, loss, &config, error));
    basin_plan_spec spec = {.output = &loss,
                            .outputs = 1,
                            .update = bench->adamw.update,
                            .updates = bench->adamw.updates};
    BASIN_TRY(
        basin_bench_plan(plan, bench, "training", "training step with AdamW", &spec, flops, error));
    bench->training = basin_plan_stats_of(*plan);
    return basin_optimizer_write(&bench->adamw, *plan, 1, 1e-5, error);
}

basin_status basin_bench_write(basin_bench *bench, basin_plan *plan, basin_expr input, double share,
                               basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor tensor = {0};
    BASIN_TRY(basin_tensor_new(&tensor, BASIN_F32, basin_expr_shape(input), error));
    float *number = tensor.data;
    size_t count = (size_t)basin_shape_count(tensor.shape);
    uint64_t stream = 1000 + (uint64_t)strlen(basin_expr_name(input));
    if (share > 0) {
        basin_random_fill_uniform(number, bench->seed, stream, 0, count);
        for (size_t i = 0; i < count; i++) number[i] = (double)number[i] < share ? 1 : 0;
    } else {
        basin_random_fill_normal(number, bench->seed, stream, 0, count);
    }
    return basin_plan_write(plan, input, &tensor, error);
}

static void summarise(basin_bench_item *item, int rounds) {
    double sorted[BASIN_BENCH_ROUNDS];
    memcpy(sorted, item->seconds, (size_t)rounds * sizeof *sorted);
    qsort(sorted, (size_t)rounds, sizeof *sorted, basin_compare_double);
    item->least = sorted[0];
    item->median = (sorted[(rounds - 1) / 2] + sorted[rounds / 2]) / 2;
}

static bool is_cuda(const basin_bench *bench) {
    return !strcmp(basin_backend_name(bench->backend), "cuda");
}

bool basin_bench_alone(const basin_bench *bench) {
    return basin_backend_info_of(bench->backend).threads == 1 && !is_cuda(bench);
}

basin_status basin_bench_keep(basin_bench *bench, const char *key, basin_error *error) {
    const basin_bench_item *found = basin_bench_find(bench, key);
    char keys[200] = "";
    size_t used = 0;
    for (int i = 0; i < bench->items && !found; i++)
        used += (size_t)snprintf(keys + used, sizeof keys - used, "%s%s", i ? ", " : "",
                                 bench->item[i].key);
    if (!found)
        return basin_fail(error, BASIN_BAD_VALUE, "no item '%s'; expected one of %s", key, keys);
    basin_bench_item kept = *found;
    for (int i = 0; i < bench->items; i++)
        if (bench->item[i].plan != kept.plan) basin_plan_free(bench->item[i].plan);
    bench->item[0] = kept;
    bench->items = 1;
    return BASIN_OK;
}

basin_status basin_bench_run(basin_bench *bench, int rounds, const basin_watch *watch,
                             basin_error *error) {
    double (*clock)(void) = basin_bench_alone(bench) ? basin_cpu_clock : basin_clock;
    int warm = is_cuda(bench) ? 3 : 1, items = bench->items;
    int64_t done = 0, total = (int64_t)(rounds + warm) * items;
    /* the first round warms up (on cuda three: compiled, captured, replayed) and does not count */
    for (int r = -warm; r < rounds; r++)
        for (int i = 0; i < items; i++, done++) {
            basin_bench_item *item = &bench->item[i];
            basin_watch_progress(watch, "bench", done, total, NAN, NULL);
            double start = clock();
            BASIN_TRY(basin_plan_run(item->plan, error));
            BASIN_TRY(basin_backend_wait(bench->backend, error));
            if (r >= 0) item->seconds[r] = clock() - start;
        }
    for (int i = 0; i < items; i++) summarise(&bench->item[i], rounds);
    return BASIN_OK;
}

const basin_bench_item *basin_bench_find(const basin_bench *bench, const char *key) {
    for (int i = 0; i < bench->items; i++)
        if (!strcmp(bench->item[i].key, key)) return &bench->item[i];
    return NULL;
}

basin_block_config basin_bench_block(const basin_bench_shape *shape) {
    return (basin_block_config){.dim = shape->dim,
                                .heads = shape->heads,
                                .head_dim = shape->head_dim,
                                .memories = shape->memories,
                                .learn_beta = true,
                                .init_query = {BASIN_INIT_NORMAL, 0.02},
                                .init_memory = {BASIN_INIT_NORMAL, 0.02}};
}

void basin_bench_free(basin_bench *bench) {
    for (int i = 0; i < bench->items; i++) basin_plan_free(bench->item[i].plan);
    basin_optimizer_free(&bench->adamw);
    basin_pairs_free(&bench->pairs);
    basin_params_free(&bench->params);
    basin_graph_free(bench->graph);
    basin_store_free(bench->store);
    basin_backend_close(bench->backend);
}
