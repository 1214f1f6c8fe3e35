/* What a report shows: the trace ends where the model does and its energy falls, forces and weights
 * are decoded as plain loops decode them; attention is the softmax, and a negative gain is seen to
 * climb. */
#include <math.h>

#include "basin/random.h"
#include "support/test.h"
#include "tasks/pictures/report/report.h"

enum { D = 6, H = 2, Y = 3, M = 7, P = 12, N = 9, COUNT = 2, STEPS = 4 };

typedef struct desk {
    basin_backend *backend;
    basin_image_model *model;
    float patches[COUNT * N * P], output[COUNT * N * P];
    uint8_t mask[COUNT * N];
} desk;

/* Weights larger than the first ones, so that the steps matter. */
static void enlarge(desk *d) {
    static const char *const name[] = {"wk", "wq", "xi", "pos", "mask", "delta"};
    basin_error error;
    for (int i = 0; i < 6; i++) {
        basin_tensor tensor;
        if (basin_store_get(&tensor, d->model->store, name[i], &error)) continue; /* a ViT */
        int64_t count = basin_shape_count(tensor.shape);
        basin_random_fill_normal_f64(tensor.data, 3, (uint64_t)i, 0, (size_t)count);
        for (int64_t k = 0; k < count; k++) ((double *)tensor.data)[k] *= 0.4;
        assert_ok(basin_store_write(d->model->store, name[i], &tensor, &failure));
        basin_tensor_free(&tensor);
    }
}

static void desk_open(desk *d, const char *arch, bool cls, const char *hopfield) {
    basin_image_settings s;
    assert_int_equal(basin_settings_preset(&s, &basin_image_task, "fashion", NULL), BASIN_OK);
    s.arch = arch, s.channels = 3, s.size = 6, s.patch = 2, s.dim = D, s.heads = H, s.head_dim = Y;
    s.memories = M, s.steps = STEPS, s.occlude = 5, s.keep = 1, s.cls = cls;
    s.hopfield = hopfield != NULL;
    if (hopfield) s.hopfield_kind = hopfield;
    for (int c = 0; c < 3; c++) s.mean[c] = 0.5, s.deviation[c] = 0.25;
    assert_ok(basin_backend_open(&d->backend, &(basin_compute){.backend = "ref", .threads = 1},
                                 &failure));
    assert_ok(basin_image_model_new(&d->model, &s, d->backend, &failure));
    enlarge(d);
    basin_random_fill_normal(d->patches, 8, 0, 0, COUNT * N * P);
    for (uint64_t i = 0; i < COUNT; i++) basin_image_mask_draw(d->mask + N * i, N, 5, 1, 2, i);
    basin_image_runner runner;
    assert_ok(basin_image_runner_new(&runner, d->model, COUNT, &failure));
    assert_ok(basin_image_runner_run(&runner, d->output, d->patches, d->mask, COUNT, &failure));
    basin_image_runner_free(&runner);
}

static void desk_close(desk *d) {
    basin_image_close(d->model);
    basin_backend_close(d->backend);
}

TEST(traces_end_where_models_do) {
    static const char *const arch[] = {"et", "et", "vit", "albert", "et", "et", "et"};
    static const char *const kind[] = {"relu", "relu", "relu", "relu", NULL, "power", "softmax"};
    for (int i = 0; i < 7; i++) {
        desk d;
        basin_image_trace trace;
        desk_open(&d, arch[i], i % 2, kind[i]);
        assert_ok(basin_image_trace_new(&trace, d.model, d.patches, d.mask, COUNT, 0, &failure));
        const float *last = trace.token + STEPS * COUNT * N * P;
        for (int k = 0; k < COUNT * N * P; k++) assert_float_equal(last[k], d.output[k], 1e-5);
        assert_int_equal(trace.parts, i == 4 ? 1 : i < 2 || i > 4 ? 2 : 0);
        assert_int_equal(trace.use != NULL, i < 2 || i > 4);
        double use = 0; /* a softmax of each of the COUNT * N tokens adds up to 1 */
        for (int m = 0; trace.use && m < M; m++) use += trace.use[m];
        if (i == 6) assert_float_equal(use, COUNT * N, 1e-4);
        for (int t = 0; trace.parts && t < STEPS; t++) {
            double fall = trace.energy[0][t * COUNT + 1] - trace.energy[0][(t + 1) * COUNT + 1];
            if (trace.parts == 2)
                fall += trace.energy[1][t * COUNT + 1] - trace.energy[1][(t + 1) * COUNT + 1];
            assert_true(fall > 0);
            assert_true(trace.square[0][t * COUNT + 1] > 0);
        }
        basin_image_trace_free(&trace);
        desk_close(&d);
    }
}

/* Step 0 of the Hopfield force, and the shares of memories, in plain loops on what is encoded. */
static double *numbers(desk *d, const char *name) {
    basin_tensor tensor;
    assert_ok(basin_store_get(&tensor, d->model->store, name, &failure));
    assert_int_equal(tensor.dtype, BASIN_F64);
    return tensor.data;
}

static void normalise(double g[D], const double *x, double gamma, const double *delta) {
    double mean = 0, var = 0;
    for (int i = 0; i < D; i++) mean += x[i] / D;
    for (int i = 0; i < D; i++) var += (x[i] - mean) * (x[i] - mean) / D;
    for (int i = 0; i < D; i++) g[i] = gamma * (x[i] - mean) / sqrt(var + 1e-5) + delta[i];
}

static void assert_decoded(const float *patch, desk *d, const double *vector) {
    double *gamma = numbers(d, "gamma"), *delta = numbers(d, "delta");
    double *w = numbers(d, "dec_w"), *b = numbers(d, "dec_b"), g[D];
    normalise(g, vector, *gamma, delta);
    for (int p = 0; p < P; p++) {
        double want = b[p];
        for (int i = 0; i < D; i++) want += g[i] * w[i * P + p];
        assert_float_equal(patch[p], want, 1e-5);
    }
    free(gamma), free(delta), free(w), free(b);
}

TEST(a_force_is_decoded) {
    desk d;
    BASIN_AT_EXIT(basin_image_trace_free) basin_image_trace trace;
    desk_open(&d, "et", true, "relu");
    assert_ok(basin_image_trace_new(&trace, d.model, d.patches, d.mask, COUNT, 0, &failure));
    double *mask = numbers(&d, "mask"), *pos = numbers(&d, "pos"), *xi = numbers(&d, "xi");
    double *gamma = numbers(&d, "gamma"), *delta = numbers(&d, "delta");
    int n = 0;
    while (d.mask[n] != BASIN_PATCH_REPLACED) n++;
    double x[D], g[D], force[D] = {0};
    for (int i = 0; i < D; i++) x[i] = mask[i] + pos[(n + 1) * D + i];
    normalise(g, x, *gamma, delta);
    for (int m = 0; m < M; m++) {
        double overlap = 0;
        for (int i = 0; i < D; i++) overlap += xi[m * D + i] * g[i];
        for (int i = 0; i < D; i++) force[i] += fmax(overlap, 0) * xi[m * D + i];
    }
    assert_decoded(trace.token + n * P, &d, x);
    assert_decoded(trace.force[1] + n * P, &d, force);
    free(mask), free(pos), free(xi), free(gamma), free(delta);
    desk_close(&d);
}

TEST(weights_become_patches) {
    desk d;
    basin_image_trace trace;
    desk_open(&d, "et", true, "relu");
    assert_ok(basin_image_trace_new(&trace, d.model, d.patches, d.mask, COUNT, 0, &failure));
    double *xi = numbers(&d, "xi"), *wk = numbers(&d, "wk"), *wq = numbers(&d, "wq");
    assert_decoded(trace.weight[BASIN_IMAGE_MEMORY] + 5 * P, &d, xi + 5 * D);
    assert_decoded(trace.weight[BASIN_IMAGE_KEY] + (1 * Y + 2) * P, &d, wk + (1 * Y + 2) * D);
    assert_decoded(trace.weight[BASIN_IMAGE_QUERY], &d, wq);
    free(xi), free(wk), free(wq);
    basin_image_trace_free(&trace);
    desk_close(&d);
    desk_open(&d, "vit", false, "relu");
    assert_ok(basin_image_trace_new(&trace, d.model, d.patches, d.mask, COUNT, 0, &failure));
    assert_null(trace.weight[BASIN_IMAGE_MEMORY]);
    assert_null(trace.weight[BASIN_IMAGE_KEY]);
    basin_image_trace_free(&trace);
    desk_close(&d);
}

/* Occluded patches are grey. */
TEST(pictures_hold_patches) {
    basin_image_settings s;
    BASIN_AT_EXIT(basin_picture_free) basin_picture picture = {0};
    float patches[4 * 16];
    assert_int_equal(basin_settings_preset(&s, &basin_image_task, "fashion", NULL), BASIN_OK);
    s.size = 8; /* four patches of 4 x 4, grey */
    s.mean[0] = 0.5, s.deviation[0] = 0.25;
    for (int i = 0; i < 4 * 16; i++) patches[i] = (float)(i - 32) / 16;
    const uint8_t mask[4] = {0, BASIN_PATCH_REPLACED, BASIN_PATCH_KEPT, 0};
    assert_ok(basin_image_sheet_picture(&picture, patches, mask, &s, &failure));
    assert_int_equal(picture.pixel[0], 0);           /* 0.5 - 0.25 x 2 */
    assert_int_equal(picture.pixel[0 * 8 + 5], 128); /* patch 1 is occluded */
    assert_int_equal(picture.pixel[4 * 8 + 0], 128); /* patch 2 begins at 0 */
    assert_int_equal(picture.pixel[7 * 8 + 7], 251); /* 0.5 + 0.25 x 31 / 16 */
}

/* ---- attention ---- */

/* Token k of the first picture as it begins, CLS first, normalised. */
static void begin_token(double g[D], desk *d, int k) {
    double *pos = numbers(d, "pos"), *mask = numbers(d, "mask"), *cls = numbers(d, "cls");
    double *w = numbers(d, "enc_w"), *b = numbers(d, "enc_b"), x[D];
    double *gamma = numbers(d, "gamma"), *delta = numbers(d, "delta");
    for (int i = 0; i < D; i++) {
        double patch = b[i];
        for (int p = 0; p < P && k; p++) patch += d->patches[(k - 1) * P + p] * w[p * D + i];
        bool hidden = k && d->mask[k - 1] == BASIN_PATCH_REPLACED;
        x[i] = (k == 0 ? cls[i] : hidden ? mask[i] : patch) + pos[k * D + i];
    }
    normalise(g, x, *gamma, delta);
    free(pos), free(mask), free(cls), free(w), free(b), free(gamma), free(delta);
}

/* What query `n` of head `h` gives to each key: equation 3's softmax in plain loops. */
static void plain_shares(double share[N + 1], desk *d, int h, int n) {
    double *wq = numbers(d, "wq"), *wk = numbers(d, "wk"), g[D], query[Y] = {0}, sum = 0;
    begin_token(g, d, n + 1);
    for (int y = 0; y < Y; y++)
        for (int i = 0; i < D; i++) query[y] += wq[(h * Y + y) * D + i] * g[i];
    for (int k = 0; k <= N; k++) {
        double score = 0;
        begin_token(g, d, k);
        for (int y = 0; y < Y; y++)
            for (int i = 0; i < D; i++) score += query[y] * wk[(h * Y + y) * D + i] * g[i];
        share[k] = k == n + 1 ? 0 : exp(score / sqrt(Y)); /* not to itself */
        sum += share[k];
    }
    for (int k = 0; k <= N; k++) share[k] /= sum;
    free(wq), free(wk);
}

TEST(attention_is_a_softmax) {
    desk d;
    BASIN_AT_EXIT(basin_image_trace_free) basin_image_trace trace;
    desk_open(&d, "et", true, "relu");
    assert_ok(basin_image_trace_new(&trace, d.model, d.patches, d.mask, COUNT, 1 << 20, &failure));
    const basin_image_attention *a = &trace.attention;
    assert_int_equal(a->pictures, COUNT);
    assert_int_equal(a->steps, STEPS + 1);
    assert_int_equal(a->keys, N + 1);
    for (int h = 0; h < H; h++)
        for (int n = 0; n < N; n++) {
            const uint8_t *row = a->share + (h * N + n) * (N + 1); /* picture 0, step 0 */
            double want[N + 1], sum = 0;
            plain_shares(want, &d, h, n);
            for (int k = 0; k <= N; k++) sum += row[k];
            for (int k = 0; k <= N; k++) assert_float_equal(row[k] / sum, want[k], 2e-3);
        }
    desk_close(&d);
}

/* The attention that fits into `bytes`. */
static basin_image_attention look(basin_image_trace *trace, desk *d, size_t bytes) {
    assert_ok(basin_image_trace_new(trace, d->model, d->patches, d->mask, COUNT, bytes, &failure));
    return trace->attention;
}

/* A ViT asks before each layer; where memory for a page is short there are fewer steps, then fewer
 * pictures; a model without attention has none. */
TEST(attention_has_a_budget) {
    desk d;
    basin_image_trace trace;
    size_t map = (size_t)H * N * N;
    desk_open(&d, "vit", false, "relu");
    basin_image_attention a = look(&trace, &d, (COUNT * STEPS + 1) * map);
    assert_true(a.pictures == COUNT && a.steps == STEPS);
    basin_image_trace_free(&trace);
    a = look(&trace, &d, 5 * map);
    assert_true(a.pictures == 2 && a.steps == 2);
    assert_true(a.step[0] == 0 && a.step[1] == STEPS - 1);
    for (size_t row = 0; row < 2 * 2 * H * N; row++) {
        int most = 0;
        for (int k = 0; k < N; k++)
            most = a.share[row * N + k] > most ? a.share[row * N + k] : most;
        assert_int_equal(most, 255);
    }
    basin_image_trace_free(&trace);
    a = look(&trace, &d, map);
    assert_true(a.pictures == 1 && a.steps == 1 && a.step[0] == STEPS - 1);
    basin_image_trace_free(&trace);
    assert_null(look(&trace, &d, map - 1).share);
    basin_image_trace_free(&trace);
    desk_close(&d);
    desk_open(&d, "et", false, "relu");
    d.model->settings.attention = false;
    assert_null(look(&trace, &d, 1 << 20).share);
    basin_image_trace_free(&trace);
    desk_close(&d);
}

/* How often the energy rises with that gain of the layer norm. */
static int64_t rises_with(desk *d, double gamma) {
    BASIN_AT_EXIT(basin_image_trace_free) basin_image_trace trace;
    basin_tensor one = basin_tensor_borrow(&gamma, BASIN_F64, BASIN_SCALAR);
    assert_ok(basin_store_write(d->model->store, "gamma", &one, &failure));
    assert_ok(basin_image_trace_new(&trace, d->model, d->patches, d->mask, COUNT, 0, &failure));
    assert_float_equal(trace.gamma, gamma, 1e-9);
    return basin_image_trace_rises(&trace);
}

/* Against the gradient every step climbs. */
TEST(climbs_are_counted) {
    desk d;
    desk_open(&d, "et", false, "relu");
    assert_int_equal(rises_with(&d, 1), 0);
    assert_int_equal(rises_with(&d, -1.3), COUNT * STEPS);
    desk_close(&d);
}
