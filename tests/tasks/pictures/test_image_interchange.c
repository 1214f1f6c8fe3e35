/* Model files: one that others wrote, as share/basin/published.py does, runs and gives what plain
 * loops in double give; weights go out rounded; what does not fit is refused. */
#include <math.h>

#include "basin/random.h"
#include "engine/io/bundle.h"
#include "support/folder.h"
#include "support/test.h"
#include "tasks/pictures/image.h"

/* 9 patches of 2 x 2 pixels in colour: 12 numbers. */
enum { H = 2, Y = 3, D = 6, M = 7, P = 12, N = 9, ALL = N + 1, STEPS = 12 };

/* ---- a file of others ---- */

typedef struct weights {
    double wk[H][Y][D], wq[H][Y][D], xi[M][D], wenc[P][D], benc[D], wdec[D][P], bdec[P];
    double pos[ALL][D], cls[D], mask[D], gamma[1], bias[D];
} weights;

static const struct {
    const char *name;
    size_t offset;
    int rank;
    int64_t dim[3];
} keys[] = {
    {"wk", offsetof(weights, wk), 3, {H, Y, D}}, {"wq", offsetof(weights, wq), 3, {H, Y, D}},
    {"xi", offsetof(weights, xi), 2, {M, D}},    {"enc_w", offsetof(weights, wenc), 2, {P, D}},
    {"enc_b", offsetof(weights, benc), 1, {D}},  {"dec_w", offsetof(weights, wdec), 2, {D, P}},
    {"dec_b", offsetof(weights, bdec), 1, {P}},  {"pos", offsetof(weights, pos), 2, {ALL, D}},
    {"cls", offsetof(weights, cls), 1, {D}},     {"mask", offsetof(weights, mask), 1, {D}},
    {"gamma", offsetof(weights, gamma), 0, {0}}, {"delta", offsetof(weights, bias), 1, {D}},
};
enum { KEYS = sizeof keys / sizeof *keys };

static void weights_draw(weights *w) {
    basin_random_fill_normal_f64((double *)w, 4, 0, 0, sizeof *w / sizeof(double));
    for (size_t i = 0; i < sizeof *w / sizeof(double); i++) ((double *)w)[i] *= 0.5;
    w->gamma[0] = 1.3;
}

/* `without` and `wrong` name keys to leave out and to cut a row from; NULL: none. */
static void publish(const char *path, weights *w, const char *without, const char *wrong) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    assert_ok(basin_bundle_new(&bundle, NULL, &failure));
    for (int i = 0; i < KEYS; i++) {
        basin_shape shape = basin_shape_of(keys[i].rank, keys[i].dim);
        if (wrong && !strcmp(wrong, keys[i].name)) shape.dim[shape.rank - 1]--;
        basin_tensor tensor = basin_tensor_borrow((char *)w + keys[i].offset, BASIN_F64, shape);
        if (!without || strcmp(without, keys[i].name) != 0)
            assert_ok(basin_bundle_add(bundle, keys[i].name, &tensor, &failure));
    }
    basin_image_settings s;
    assert_ok(basin_settings_preset(&s, &basin_image_task, "paper-imagenet", &failure));
    s.size = 6, s.patch = 2, s.dim = D, s.heads = H, s.head_dim = Y, s.memories = M;
    s.cls = true, s.occlude = 5, s.keep = 1;
    assert_ok(basin_settings_store(bundle, "image", &s, &basin_image_task, &failure));
    assert_ok(basin_bundle_write(path, bundle, &failure));
}

/* ---- the same in plain loops ---- */

static void normalise(double g[D], const double x[D], const weights *w) {
    double mean = 0, var = 0;
    for (int i = 0; i < D; i++) mean += x[i] / D;
    for (int i = 0; i < D; i++) var += (x[i] - mean) * (x[i] - mean) / D;
    for (int i = 0; i < D; i++) g[i] = w->gamma[0] * (x[i] - mean) / sqrt(var + 1e-5) + w->bias[i];
}

/* force += the part of -dE/dg that one head's attention makes; self-attention is allowed. */
static void head_force(double (*force)[D], double (*g)[D], const weights *w, int h) {
    double k[ALL][Y] = {{0}}, q[ALL][Y] = {{0}}, beta = 1 / sqrt(Y);
    for (int t = 0; t < ALL; t++)
        for (int y = 0; y < Y; y++)
            for (int i = 0; i < D; i++)
                k[t][y] += w->wk[h][y][i] * g[t][i], q[t][y] += w->wq[h][y][i] * g[t][i];
    for (int c = 0; c < ALL; c++) {
        double p[ALL], sum = 0;
        for (int b = 0; b < ALL; b++) {
            double dot = 0;
            for (int y = 0; y < Y; y++) dot += k[b][y] * q[c][y];
            sum += p[b] = exp(beta * dot);
        }
        for (int b = 0; b < ALL; b++)
            for (int y = 0; y < Y; y++)
                for (int i = 0; i < D; i++) {
                    force[c][i] += p[b] / sum * k[b][y] * w->wq[h][y][i];
                    force[b][i] += p[b] / sum * q[c][y] * w->wk[h][y][i];
                }
    }
}

static void memory_force(double force[D], const double g[D], const weights *w) {
    for (int m = 0; m < M; m++) {
        double overlap = 0;
        for (int i = 0; i < D; i++) overlap += w->xi[m][i] * g[i];
        for (int i = 0; i < D; i++) force[i] += fmax(overlap, 0) * w->xi[m][i];
    }
}

static void plain(double (*out)[P], const weights *w, const float *patches, const uint8_t *mask) {
    double x[ALL][D], g[ALL][D];
    for (int t = 0; t < ALL; t++)
        for (int i = 0; i < D; i++) {
            double value = t ? w->benc[i] : w->cls[i];
            for (int p = 0; t && p < P; p++) value += patches[(t - 1) * P + p] * w->wenc[p][i];
            if (t && mask[t - 1] == BASIN_PATCH_REPLACED) value = w->mask[i];
            x[t][i] = value + w->pos[t][i];
        }
    for (int step = 0; step < STEPS; step++) {
        double force[ALL][D] = {{0}};
        for (int t = 0; t < ALL; t++) normalise(g[t], x[t], w);
        for (int h = 0; h < H; h++) head_force(force, g, w, h);
        for (int t = 0; t < ALL; t++) {
            memory_force(force[t], g[t], w);
            for (int i = 0; i < D; i++) x[t][i] += 0.1 * force[t][i];
        }
    }
    for (int t = 0; t < N; t++) {
        normalise(g[0], x[t + 1], w);
        for (int p = 0; p < P; p++) {
            out[t][p] = w->bdec[p];
            for (int i = 0; i < D; i++) out[t][p] += g[0][i] * w->wdec[i][p];
        }
    }
}

/* ---- tests ---- */

typedef struct desk {
    basin_backend *backend;
    basin_image_model *model;
} desk;

static void desk_open(desk *d, const char *path, const char *backend) {
    assert_ok(basin_backend_open(&d->backend, &(basin_compute){.backend = backend, .threads = 1},
                                 &failure));
    assert_ok(basin_image_open(&d->model, path, d->backend, &failure));
}

static void desk_close(desk *d) {
    basin_image_close(d->model);
    basin_backend_close(d->backend);
}

static void complete(float *out, desk *d, const float *patches, const uint8_t *mask) {
    basin_image_runner runner;
    assert_ok(basin_image_runner_new(&runner, d->model, 1, &failure));
    assert_ok(basin_image_runner_run(&runner, out, patches, mask, 1, &failure));
    basin_image_runner_free(&runner);
}

static void scene(float *patches, uint8_t *mask) {
    basin_random_fill_normal(patches, 8, 0, 0, N * P);
    basin_image_mask_draw(mask, N, 5, 1, 2, 0);
}

TEST(published_weights_run) {
    char *path = folder_path(state, "published.safetensors");
    weights w;
    desk d;
    float patches[N * P], got[N * P];
    uint8_t mask[N];
    double want[N][P];
    weights_draw(&w);
    publish(path, &w, NULL, NULL);
    desk_open(&d, path, "ref");
    scene(patches, mask);
    complete(got, &d, patches, mask);
    plain(want, &w, patches, mask);
    for (int i = 0; i < N * P; i++)
        assert_true(fabs(got[i] - want[i / P][i % P]) < 1e-6 * (1 + fabs(want[i / P][i % P])));
    desk_close(&d);
}

/* In half the bytes: every weight rounded to 8 bits, the settings as they were. */
TEST(weights_are_rounded_to_bf16) {
    char *path = folder_path(state, "full.safetensors");
    weights w;
    desk d, again;
    weights_draw(&w);
    publish(path, &w, NULL, NULL);
    desk_open(&d, path, "cpu");
    path = folder_path(state, "half.safetensors");
    assert_ok(basin_image_write(path, d.model, BASIN_BF16, &failure));
    basin_bundle *bundle;
    assert_ok(basin_bundle_read(&bundle, path, &failure));
    assert_int_equal(basin_bundle_find(bundle, "xi")->dtype, BASIN_BF16);
    basin_bundle_free(bundle);
    desk_open(&again, path, "cpu");
    assert_ok(basin_settings_match(&d.model->settings, &again.model->settings,
                                   basin_image_task.table, "f", &failure));
    basin_tensor whole, half;
    assert_ok(basin_store_get(&whole, d.model->store, "xi", &failure));
    assert_ok(basin_store_get(&half, again.model->store, "xi", &failure));
    for (int i = 0; i < D * M; i++) {
        float a = ((float *)whole.data)[i], b = ((float *)half.data)[i];
        uint32_t bits;
        memcpy(&bits, &b, sizeof bits);
        assert_int_equal(bits & 0xffff, 0);
        assert_true(fabsf(a - b) <= fabsf(a) / 256 && (a == 0 || b != 0));
    }
    basin_tensor_free(&whole);
    basin_tensor_free(&half);
    assert_int_equal(basin_image_write(path, d.model, BASIN_I32, &failure), BASIN_BAD_VALUE);
    desk_close(&again);
    desk_close(&d);
}

static void refused(void **state, const char *without, const char *wrong, const char *text) {
    char *path = folder_path(state, "bad.safetensors");
    weights w;
    basin_error error;
    basin_backend *backend;
    basin_image_model *model;
    weights_draw(&w);
    publish(path, &w, without, wrong);
    assert_ok(
        basin_backend_open(&backend, &(basin_compute){.backend = "ref", .threads = 1}, &failure));
    assert_int_not_equal(basin_image_open(&model, path, backend, &error), BASIN_OK);
    if (!strstr(error.text, text) || !strstr(error.text, "bad.safetensors"))
        fail_msg("%s", error.text);
    basin_backend_close(backend);
}

TEST(wrong_files_are_refused) {
    refused(state, "mask", NULL, "mask");
    refused(state, NULL, "delta", "[5]");
    refused(state, NULL, "dec_w", "[6, 11]");
}

int main(void) { return tests_run(folder_new, folder_remove); }
