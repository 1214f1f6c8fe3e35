/* Crops cut by the device against those of the host (picture/augment.c), which are the judge: equal
 * bits, for every fit, size, number of channels and jitter, from the device's memory and from the
 * host's. Skipped, visibly, where there is no device. `time` as an argument: images/s instead,
 * which must be enough; of a device that nothing else uses. */
#include "backend/device.h"
#include "backend/kernel.h"
#include "base/clock.h"
#include "data/network/make.h"
#include "data/pictures/pictures.h"
#include "picture/picture.h"
#include "support/test.h"

static basin_backend *cuda;

enum { PICTURES = 24 };

/* Pictures of many sizes, in memory that the device reads. */
typedef struct gallery {
    basin_picture host[PICTURES];
    void *device[PICTURES];
    bool pinned;
} gallery;

static void gallery_open(gallery *g, bool pinned, int64_t side) {
    const basin_backend_table *t = cuda->table;
    g->pinned = pinned;
    for (int i = 0; i < PICTURES; i++) {
        int64_t height = 1 + side * (i % 7 + 1) / 3, width = 1 + side * (i % 5 + 1) / 2;
        g->host[i] = make_picture(height, width, i % 4 == 3 ? 1 : 3, i);
        size_t bytes = (size_t)(height * width * g->host[i].channels);
        g->device[i] =
            pinned ? basin_backend_crops(cuda)->alloc_host(cuda, bytes) : t->alloc(cuda, bytes);
        assert_non_null(g->device[i]);
        if (pinned)
            memcpy(g->device[i], g->host[i].pixel, bytes);
        else
            t->copy_in(cuda, g->device[i], g->host[i].pixel, bytes);
    }
}

static void gallery_close(gallery *g) {
    for (int i = 0; i < PICTURES; i++) {
        (g->pinned ? basin_backend_crops(cuda)->free_host : cuda->table->free)(cuda, g->device[i]);
        basin_picture_free(&g->host[i]);
    }
}

static basin_crop crop_of(const gallery *g, int i, const basin_drawn *drawn) {
    const basin_resize *r = &drawn->resize;
    basin_crop crop = {.pixel = g->device[i],
                       .box_y = r->box.y,
                       .box_x = r->box.x,
                       .box_height = r->box.height,
                       .box_width = r->box.width,
                       .height = (int32_t)g->host[i].height,
                       .width = (int32_t)g->host[i].width,
                       .channels = g->host[i].channels,
                       .full_height = (int32_t)r->height,
                       .full_width = (int32_t)r->width,
                       .from_y = (int32_t)r->y,
                       .from_x = (int32_t)r->x,
                       .mirror = r->flip};
    memcpy(crop.order, drawn->order, sizeof crop.order);
    memcpy(crop.factor, drawn->factor, sizeof crop.factor);
    return crop;
}

static basin_crop_batch batch_of(const basin_augment *a, const basin_crop *crop, int64_t count) {
    basin_crop_batch batch = {
        .crop = crop, .count = count, .size = a->size, .patch = a->patch, .channels = a->channels};
    for (int c = 0; c < a->channels; c++) {
        batch.factor[c] = 1 / (255 * a->deviation[c]);
        batch.offset[c] = -a->mean[c] / a->deviation[c];
    }
    return batch;
}

static basin_augment with_statistics(basin_augment a) {
    for (int c = 0; c < 3; c++) {
        a.mean[c] = 0.4F + 0.03F * (float)c;
        a.deviation[c] = 0.22F + 0.01F * (float)c;
    }
    return a;
}

/* Drawn for a picture some times larger than the one kept, so that boxes end between pixels. */
static basin_drawn draw(const basin_augment *a, const basin_picture *p, int i, double larger) {
    basin_drawn drawn;
    basin_kept kept = {(int64_t)((double)p->height * larger), (int64_t)((double)p->width * larger),
                       *p};
    basin_kept_draw(&drawn, a, &kept, 11, i / 3, i);
    return drawn;
}

static void compare(const basin_augment *a, const gallery *g, double larger, const char *what) {
    int64_t values = basin_augment_values(a), wrong = 0;
    float *got = malloc((size_t)(PICTURES * values) * sizeof *got);
    float *want = malloc((size_t)values * sizeof *want);
    float *device = cuda->table->alloc(cuda, (size_t)(PICTURES * values) * sizeof *got);
    basin_crop crop[PICTURES];
    basin_scratch scratch = {0};
    basin_error error = {0};
    double worst = 0;
    assert_true(got && want && device);
    for (int i = 0; i < PICTURES; i++) {
        basin_drawn drawn = draw(a, &g->host[i], i, larger);
        crop[i] = crop_of(g, i, &drawn);
    }
    basin_crop_batch batch = batch_of(a, crop, PICTURES);
    basin_backend_crops(cuda)->crop(cuda, device, &batch);
    memset(crop, 0, sizeof crop);
    cuda->table->copy_out(cuda, got, device, (size_t)(PICTURES * values) * sizeof *got);
    if (cuda->table->wait(cuda, &error)) fail_msg("%s: %s", what, error.text);
    for (int i = 0; i < PICTURES; i++) {
        basin_drawn drawn = draw(a, &g->host[i], i, larger);
        if (basin_augment_run(want, a, &drawn, &g->host[i], &scratch, &error))
            fail_msg("%s", error.text);
        for (int64_t k = 0; k < values; k++) {
            double by = (double)got[i * values + k] - (double)want[k];
            wrong += !(by == 0);
            if (!(by * by <= worst * worst)) worst = by;
        }
    }
    printf(
        "%s, size %lld, %d channels, patch %lld, larger %g: %lld of %lld differ, by at most %g\n",
        what, (long long)a->size, a->channels, (long long)a->patch, larger, (long long)wrong,
        (long long)(PICTURES * values), worst);
    basin_scratch_free(&scratch);
    cuda->table->free(cuda, device);
    free(got);
    free(want);
    assert_int_equal(wrong, 0);
}

static void crops(bool pinned) {
    const struct {
        int64_t size, patch, side;
    } cases[] = {{224, 16, 300}, {28, 4, 40}, {48, 0, 700}, {1, 1, 30}, {33, 11, 20}, {16, 8, 900}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gallery g;
        gallery_open(&g, pinned, cases[i].side);
        for (int channels = 1; channels <= 3; channels += 2) {
            basin_augment train =
                with_statistics(basin_augment_training(cases[i].size, channels, cases[i].patch));
            basin_augment plain = train;
            plain.brightness = plain.contrast = plain.saturation = 0;
            basin_augment eval =
                with_statistics(basin_augment_evaluation(cases[i].size, channels, cases[i].patch));
            basin_augment stretch = eval;
            stretch.fit = BASIN_FIT_STRETCH;
            compare(&train, &g, 1, "training");
            compare(&train, &g, 1.7, "training");
            compare(&plain, &g, 1, "no jitter");
            compare(&eval, &g, 1, "evaluation");
            compare(&stretch, &g, 1, "stretched");
        }
        gallery_close(&g);
    }
}

static void crops_from_device_memory(void **state) {
    (void)state;
    crops(false);
}

static void crops_from_host_memory(void **state) {
    (void)state;
    crops(true);
}

/* ---- speed ---- */

static void time_crops(bool pinned) {
    enum { BATCH = 256, ROUNDS = 50 };
    basin_augment a = with_statistics(basin_augment_training(224, 3, 16));
    basin_crop crop[BATCH];
    basin_error error = {0};
    gallery g;
    gallery_open(&g, pinned, 300);
    size_t bytes = BATCH * (size_t)basin_augment_values(&a) * sizeof(float);
    float *device = cuda->table->alloc(cuda, bytes);
    assert_non_null(device);
    for (int i = 0; i < BATCH; i++) {
        basin_drawn drawn = draw(&a, &g.host[i % PICTURES], i, 1);
        crop[i] = crop_of(&g, i % PICTURES, &drawn);
    }
    basin_crop_batch batch = batch_of(&a, crop, BATCH);
    basin_backend_crops(cuda)->crop(cuda, device, &batch);
    assert_int_equal(cuda->table->wait(cuda, &error), BASIN_OK);
    double start = basin_clock();
    for (int i = 0; i < ROUNDS; i++) basin_backend_crops(cuda)->crop(cuda, device, &batch);
    assert_int_equal(cuda->table->wait(cuda, &error), BASIN_OK);
    double seconds = (basin_clock() - start) / ROUNDS;
    printf("crops of 224 from %s memory: %.3f ms a batch of %d, %.0f images/s\n",
           pinned ? "the host's" : "the device's", 1e3 * seconds, BATCH, BATCH / seconds);
    assert_true(BATCH / seconds > 16000); /* the speed that the largest model is to reach */
    cuda->table->free(cuda, device);
    gallery_close(&g);
}

static void keeps_the_device_fed(void **state) {
    (void)state;
    time_crops(false);
    time_crops(true);
}

int main(int count, char **word) {
    basin_error error;
    if (basin_backend_open(&cuda, &(basin_compute){.backend = "cuda"}, &error)) {
        printf("no CUDA device: skipped (%s)\n", error.text);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crops_from_device_memory),
        cmocka_unit_test(crops_from_host_memory),
    };
    const struct CMUnitTest speed[] = {cmocka_unit_test(keeps_the_device_fed)};
    int failures = count > 1 && !strcmp(word[1], "time")
                       ? cmocka_run_group_tests(speed, NULL, NULL)
                       : cmocka_run_group_tests(tests, NULL, NULL);
    basin_backend_close(cuda);
    return failures;
}
