/* Timing the input of image training; see bench.h. */
#include "base/sort.h"
#include "base/try.h"
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "data/pictures/pictures.h"
#include "picture/picture.h"
#include "task/image/image.h"

enum { SAMPLE = 256 };

/* ImageNet's figures; which ones they are does not matter to the time. */
static basin_augment transforms(const basin_bench_pictures_spec *o) {
    basin_augment a = basin_augment_training(o->size, 3, o->patch);
    const float mean[3] = {0.485F, 0.456F, 0.406F}, deviation[3] = {0.229F, 0.224F, 0.225F};
    memcpy(a.mean, mean, sizeof mean);
    memcpy(a.deviation, deviation, sizeof deviation);
    return a;
}

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

static basin_status rig_plan(rig *g, basin_error *error) {
    const basin_image_settings *s = &g->settings;
    g->graph = basin_graph_new();
    if (!g->graph) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a graph");
    g->patches =
        basin_input(g->graph, "patches",
                    BASIN_SHAPE(s->batch, basin_image_tokens(s), basin_image_patch_values(s)));
    basin_expr output = basin_sum_all(g->patches);
    basin_status status = basin_store_new(&g->store, g->backend, error);
    if (status) return status;
    basin_plan_spec spec = {.output = &output, .outputs = 1};
    return basin_plan_new(&g->plan, g->store, &spec, error);
}

static basin_status rig_new(rig *g, const basin_bench_pictures_spec *o, basin_error *error) {
    basin_image_source source = {.path = o->path, .paths = o->paths};
    *g = (rig){.backend = o->backend};
    basin_status status = basin_image_set_open(&g->set, &source, false, 0, error);
    if (status) return status;
    BASIN_TRY(basin_settings_preset(&g->settings, &basin_image_task, "paper-imagenet", error));
    g->settings.size = o->size;
    g->settings.patch = o->patch;
    g->settings.seed = o->seed;
    g->settings.batch = o->batch < g->set.items ? o->batch : g->set.items;
    status = rig_plan(g, error);
    basin_image_input_config config = {.set = &g->set,
                                       .settings = &g->settings,
                                       .backend = g->backend,
                                       .keep_decoded = o->keep_decoded,
                                       .cut_from = o->cut_from,
                                       .threads = o->threads};
    if (!status) status = basin_image_input_new(&g->input, &config, error);
    return status;
}

static void rig_free(rig *g) {
    basin_image_input_free(g->input);
    basin_plan_free(g->plan);
    basin_store_free(g->store);
    basin_graph_free(g->graph);
    basin_image_set_close(&g->set);
}

static basin_status rig_epoch(rig *g, int64_t epoch, basin_error *error) {
    int64_t steps = g->set.items / g->settings.batch;
    basin_status status = BASIN_OK;
    for (int64_t s = 0; s < steps && !status; s++)
        status =
            basin_image_input_write(g->input, g->plan, g->patches, epoch * steps + s, 0, error);
    return status ? status : basin_backend_wait(g->backend, error);
}

/* Images a second over whole epochs, after one that keeps what is to be kept. */
static basin_status time_feed(basin_bench_pictures_result *r, const basin_bench_pictures_spec *o,
                              basin_error *error) {
    double rate[BASIN_BENCH_PICTURES_ROUNDS];
    rig g;
    basin_status status = rig_new(&g, o, error);
    int64_t first = status || !strcmp(basin_image_input_state(g.input).keep_decoded, "off") ? 0 : 1;
    if (!status && first) status = rig_epoch(&g, 0, error);
    for (int64_t i = 0; i < o->rounds && !status; i++) {
        double start = basin_clock();
        status = rig_epoch(&g, first + i, error);
        rate[i] =
            (double)(g.set.items / g.settings.batch * g.settings.batch) / (basin_clock() - start);
    }
    if (!status) {
        qsort(rate, (size_t)o->rounds, sizeof *rate, basin_compare_double);
        r->rate = rate[o->rounds / 2];
        basin_image_feeding state = basin_image_input_state(g.input);
        r->unreadable = state.unreadable;
        r->keep_decoded = state.keep_decoded;
        r->cut_from = state.cut_from;
        r->kept = state.kept;
    }
    rig_free(&g);
    return status;
}

/* One picture, stage by stage, in CPU time. */
static basin_status time_one(basin_bench_pictures_result *r, const basin_augment *a,
                             const basin_pictures *pictures, int64_t i, float *values,
                             basin_scratch *scratch, basin_error *error) {
    basin_picture *picture = &scratch->picture;
    basin_fetched fetched;
    basin_decoder decoder;
    basin_drawn drawn;
    double start = basin_thread_clock();
    basin_status status = basin_pictures_fetch(&fetched, picture, pictures, i, error);
    r->read = basin_thread_clock() - start;
    if (!status && fetched.bytes) {
        start = basin_thread_clock();
        status = basin_picture_decode(picture, fetched.bytes, fetched.size, "", error);
        r->whole = basin_thread_clock() - start;
        start = basin_thread_clock();
        if (!status) status = basin_decoder_open(&decoder, fetched.bytes, fetched.size, "", error);
        if (!status) {
            basin_augment_draw(&drawn, a, decoder.height, decoder.width, 1, 0, i);
            status = basin_augment_decode(picture, &drawn, a, &decoder, false, error);
            basin_decoder_close(&decoder);
        }
        r->crop = basin_thread_clock() - start;
    } else if (!status) {
        basin_augment_draw(&drawn, a, picture->height, picture->width, 1, 0, i);
    }
    basin_map_close(&fetched.map);
    start = basin_thread_clock();
    if (!status) status = basin_augment_run(values, a, &drawn, picture, scratch, error);
    r->augment = basin_thread_clock() - start;
    return status;
}

static basin_status time_stages(basin_bench_pictures_result *r, const basin_bench_pictures_spec *o,
                                const basin_pictures *pictures, basin_error *error) {
    basin_scratch scratch = {0};
    basin_augment a = transforms(o);
    int64_t seen = 0, most = r->pictures < SAMPLE ? r->pictures : SAMPLE;
    float *values = malloc((size_t)basin_augment_values(&a) * sizeof *values);
    if (!values) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a picture");
    for (int64_t i = 0; i < most; i++) {
        basin_bench_pictures_result one = {0};
        if (time_one(&one, &a, pictures, i * r->pictures / most, values, &scratch, error)) continue;
        r->read += one.read;
        r->crop += one.crop;
        r->augment += one.augment;
        r->whole += one.whole;
        seen++;
    }
    double by = seen > 0 ? 1 / (double)seen : 0;
    r->read *= by, r->crop *= by, r->augment *= by, r->whole *= by;
    free(values);
    basin_scratch_free(&scratch);
    return BASIN_OK;
}

basin_status basin_bench_pictures(basin_bench_pictures_result *result,
                                  const basin_bench_pictures_spec *spec, basin_error *error) {
    basin_pictures *pictures;
    *result = (basin_bench_pictures_result){0};
    basin_status status = basin_pictures_open(&pictures, spec->path, spec->paths, NULL, error);
    if (status) return status;
    result->pictures = basin_pictures_count(pictures);
    status = time_feed(result, spec, error);
    if (!status) status = time_stages(result, spec, pictures, error);
    basin_pictures_free(pictures);
    return status;
}
