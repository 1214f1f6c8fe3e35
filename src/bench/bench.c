/* The frame of `basin bench`; see bench.h. */
#include "bench/bench.h"
#include "base/sort.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/device.h"
#include "base/clock.h"
#include "base/philox.h"
#include "basin/random.h"

void basin_bench_add(basin_bench *bench, const char *key, const char *name,
                     basin_status (*run)(void *context, basin_error *error), void *context,
                     double flops) {
    if (bench->items == BASIN_BENCH_ITEMS) return;
    bench->item[bench->items++] = (basin_bench_item){
        .key = key, .name = name, .run = run, .context = context, .flops = flops};
}

static basin_status run_plan(void *plan, basin_error *error) { return basin_plan_run(plan, error); }

basin_plan *basin_bench_plan(basin_bench *bench, const char *key, const char *name,
                             const basin_plan_spec *spec, double flops, basin_error *error) {
    basin_plan *plan = NULL;
    if (bench->plans == BASIN_BENCH_PLANS ||
        basin_plan_new(&plan, bench->store, spec, error) != BASIN_OK)
        return NULL;
    bench->plan[bench->plans++] = plan;
    basin_bench_add(bench, key, name, run_plan, plan, flops);
    return plan;
}

static basin_status write_random(basin_bench *bench, basin_plan *plan, basin_expr input,
                                 double scale, double share, basin_error *error) {
    basin_tensor tensor;
    basin_status status = basin_tensor_new(&tensor, BASIN_F32, basin_expr_shape(input), error);
    if (status) return status;
    float *number = tensor.data;
    size_t count = (size_t)basin_shape_count(tensor.shape);
    uint64_t stream = 1000 + (uint64_t)strlen(basin_expr_name(input));
    if (share < 0) {
        basin_random_fill_normal(number, bench->seed, stream, 0, count);
        for (size_t i = 0; i < count; i++) number[i] *= (float)scale;
    } else {
        basin_random_fill_uniform(number, bench->seed, stream, 0, count);
        for (size_t i = 0; i < count; i++) number[i] = (double)number[i] < share ? 1 : 0;
    }
    status = basin_plan_write(plan, input, &tensor, error);
    basin_tensor_free(&tensor);
    return status;
}

basin_status basin_bench_normal(basin_bench *bench, basin_plan *plan, basin_expr input,
                                double scale, basin_error *error) {
    return write_random(bench, plan, input, scale, -1, error);
}

basin_status basin_bench_bits(basin_bench *bench, basin_plan *plan, basin_expr input, double share,
                              basin_error *error) {
    return write_random(bench, plan, input, 1, share, error);
}

static void summarise(basin_bench_item *item, int rounds) {
    double sorted[BASIN_BENCH_ROUNDS];
    memcpy(sorted, item->seconds, (size_t)rounds * sizeof *sorted);
    qsort(sorted, (size_t)rounds, sizeof *sorted, basin_compare_double);
    item->least = sorted[0];
    item->median =
        rounds % 2 ? sorted[rounds / 2] : (sorted[rounds / 2 - 1] + sorted[rounds / 2]) / 2;
}

bool basin_bench_alone(const basin_bench *bench) {
    return basin_backend_threads(bench->backend) == 1 &&
           strcmp(basin_backend_name(bench->backend), "cuda") != 0;
}

basin_status basin_bench_keep(basin_bench *bench, const char *key, basin_error *error) {
    char keys[200] = "";
    size_t used = 0;
    for (int i = 0; i < bench->items; i++) {
        if (!strcmp(bench->item[i].key, key)) {
            bench->item[0] = bench->item[i];
            bench->items = 1;
            return BASIN_OK;
        }
        int length =
            snprintf(keys + used, sizeof keys - used, "%s%s", i ? ", " : "", bench->item[i].key);
        used += length > 0 && (size_t)length < sizeof keys - used ? (size_t)length : 0;
    }
    return basin_fail(error, BASIN_BAD_VALUE, "nothing to time is called '%s'; wanted one of %s",
                      key, keys);
}

basin_status basin_bench_run(basin_bench *bench, int rounds, const basin_watch *watch,
                             basin_error *error) {
    basin_status status = BASIN_OK;
    double (*clock)(void) = basin_bench_alone(bench) ? basin_cpu_clock : basin_clock;
    int warm = strcmp(basin_backend_name(bench->backend), "cuda") == 0 ? 3 : 1;
    basin_news news = {.what = "bench",
                       .total = (int64_t)(rounds + warm) * bench->items,
                       .loss = NAN,
                       .speed = NAN,
                       .seconds_left = NAN};
    /* the first round warms up (on cuda three: compiled, captured, replayed) and does not count */
    for (int r = -warm; r < rounds && !status; r++)
        for (int i = 0; i < bench->items && !status; i++) {
            basin_bench_item *item = &bench->item[i];
            basin_watch_show(watch, &news);
            news.done++;
            double start = clock();
            status = item->run(item->context, error);
            if (!status) status = basin_backend_wait(bench->backend, error);
            if (r >= 0) item->seconds[r] = clock() - start;
        }
    for (int i = 0; i < bench->items && !status; i++) summarise(&bench->item[i], rounds);
    return status;
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
    for (int i = 0; i < bench->plans; i++) basin_plan_free(bench->plan[i]);
    basin_yardstick_free(bench->products);
    basin_adamw_free(&bench->adamw);
    basin_pairs_free(&bench->pairs);
    basin_params_free(&bench->params);
    basin_graph_free(bench->graph);
    basin_store_free(bench->store);
    basin_backend_close(bench->backend);
}
