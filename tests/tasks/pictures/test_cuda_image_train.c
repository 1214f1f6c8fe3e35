/* Training on a GPU from JPEG files: the same model file, byte for byte, whether a run was stopped
 * and resumed or not. Skipped, visibly, where there is no device. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/cuda.h"
#include "tasks/nodes/network/make.h"
#include "tasks/pictures/image_bench.h"

enum { FILES = 30 };

/* Number 4 is damaged, every seventh is grey. */
static int setup(void **state) {
    char name[40];
    if (folder_new(state)) return -1;
    if (mkdir(folder_path(state, "in"), 0777)) return -1;
    for (int i = 0; i < FILES; i++) {
        uint8_t *bytes;
        basin_picture picture = make_picture(40 + 11 * i, 300 - 8 * i, i % 7 ? 3 : 1, i);
        size_t size = make_jpeg(&bytes, &picture, (jpeg_form){.quality = 90});
        snprintf(name, sizeof name, "in/%02d.jpg", i);
        if (file_put(folder_path(state, name), bytes, i == 4 ? size / 2 : size)) return -1;
        free(bytes);
        basin_picture_free(&picture);
    }
    return 0;
}

typedef struct photos {
    bench b;
    const char *path;
} photos;

static void photos_open(photos *p, void **state, const char *name) {
    bench_open(&p->b, state, name, "cuda");
    assert_ok(basin_settings_start(p->b.settings, "photos", &failure));
    basin_image_settings *s = p->b.s;
    s->size = 32, s->dim = 32, s->heads = 2, s->head_dim = 16, s->memories = 64, s->steps = 3;
    s->occlude = 8, s->keep = 1, s->batch = 8, s->epochs = 4, s->warmup = 1;
    s->holes = 0.4, s->average = 0.8;
    p->path = folder_path(state, "in");
    p->b.train.path = &p->path;
    p->b.train.hold_out = 0;
}

TEST(a_stopped_run_resumes) {
    photos whole, cut;
    photos_open(&whole, state, "whole");
    bench_train(&whole.b, -1, false);
    assert_int_equal(whole.b.read.unreadable, 1);
    assert_int_equal(whole.b.skipped, 1);
    photos_open(&cut, state, "cut");
    basin_training_result o = bench_train(&cut.b, 5, false);
    assert_true(o.stopped && o.steps == 5);
    o = bench_train(&cut.b, -1, true);
    assert_true(o.resumed && !o.stopped);
    same_file(whole.b.out, cut.b.out);
    bench_close(&whole.b);
    bench_close(&cut.b);
}

int main(void) {
    cuda_open();
    return cuda_close(tests_run(setup, folder_remove));
}
