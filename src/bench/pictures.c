/* Timing the input of image training; see bench.h. */

#include "base/clock.h"
#include "base/sort.h"
#include "base/try.h"
#include "bench/bench.h"
#include "task/image/image.h"

/* What a training run has of the input pipeline: a plan with an input for the batch. */
typedef struct rig {
    basin_backend *backend;
    basin_store *store;
    basin_graph *graph;
    basin_expr patches;
    basin_plan *plan;
    basin_image_set set;
    basin_image_settings settings;
    basin_image_input *input;
} rig;

static basin_status rig_open(rig *g, const basin_bench_pictures_spec *o, basin_error *error) {
    basin_image_source source = {.path = o->path, .paths = o->paths};
    basin_image_settings *s = &g->settings;
    BASIN_TRY(basin_image_set_open(&g->set, &source, false, 0, error));
    BASIN_TRY(basin_settings_preset(s, &basin_image_task, "paper-imagenet", error));
    s->size = o->size;
    s->patch = o->patch;
    s->seed = o->seed;
    s->batch = o->batch < g->set.items ? o->batch : g->set.items;
    g->graph = basin_graph_new();
    if (!g->graph) return basin_fail_memory(error, "a graph");
    basin_shape shape = BASIN_SHAPE(s->batch, basin_image_tokens(s), basin_image_patch_values(s));
    g->patches = basin_input(g->graph, "patches", shape);
    basin_expr output = basin_sum_all(g->patches);
    basin_plan_spec spec = {.output = &output, .outputs = 1};
    BASIN_TRY(basin_store_new(&g->store, g->backend, error));
    BASIN_TRY(basin_plan_new(&g->plan, g->store, &spec, error));
    basin_image_input_config config = {.set = &g->set,
                                       .settings = s,
                                       .backend = g->backend,
                                       .keep_decoded = o->keep_decoded,
                                       .cut_from = o->cut_from,
                                       .threads = o->threads};
    return basin_image_input_new(&g->input, &config, error);
}

static void rig_close(rig *g) {
    basin_image_input_free(g->input);
    basin_plan_free(g->plan);
    basin_store_free(g->store);
    basin_graph_free(g->graph);
    basin_image_set_close(&g->set);
}

static basin_status run_epoch(rig *g, int64_t epoch, basin_error *error) {
    int64_t steps = g->set.items / g->settings.batch;
    for (int64_t s = epoch * steps; s < (epoch + 1) * steps; s++)
        BASIN_TRY(basin_image_input_write(g->input, g->plan, g->patches, s, 0, error));
    return basin_backend_wait(g->backend, error);
}

/* Images per second over whole epochs, after one that keeps what is to be kept. */
basin_status basin_bench_pictures(basin_bench_pictures_result *result,
                                  const basin_bench_pictures_spec *spec, basin_error *error) {
    double rate[BASIN_BENCH_ROUNDS];
    BASIN_AT_EXIT(rig_close) rig g = {.backend = spec->backend};
    BASIN_TRY(rig_open(&g, spec, error));
    int64_t first = strcmp(basin_image_input_state(g.input).keep_decoded, "off") != 0;
    int64_t images = g.set.items / g.settings.batch * g.settings.batch;
    if (first) BASIN_TRY(run_epoch(&g, 0, error));
    for (int64_t i = 0; i < spec->rounds; i++) {
        double start = basin_clock();
        BASIN_TRY(run_epoch(&g, first + i, error));
        rate[i] = (double)images / (basin_clock() - start);
    }
    qsort(rate, (size_t)spec->rounds, sizeof *rate, basin_compare_double);
    basin_image_feeding state = basin_image_input_state(g.input);
    *result = (basin_bench_pictures_result){.pictures = g.set.items,
                                            .unreadable = state.unreadable,
                                            .keep_decoded = state.keep_decoded,
                                            .cut_from = state.cut_from,
                                            .kept = state.kept,
                                            .rate = rate[spec->rounds / 2]};
    return BASIN_OK;
}
