/* Training on a GPU from pictures kept decoded: the same model file, byte for byte, whether the
 * host cuts the crops or the device does, from its own memory or the host's, and whether a run was
 * cut and resumed or not. Skipped, visibly, where there is no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "data/network/make.h"
#include "io/folder.h"
#include "task/image/train.h"

static basin_backend *cuda;

enum { FILES = 30 };

/* Number 4 is damaged, every seventh is grey. */
static int setup(void **state) {
    char path[PATH_TEXT], name[40];
    if (folder_new(state)) return -1;
    if (mkdir(folder_path(path, state, "in"), 0777)) return -1;
    for (int i = 0; i < FILES; i++) {
        uint8_t *bytes;
        basin_picture picture = make_picture(40 + 11 * i, 300 - 8 * i, i % 7 ? 3 : 1, i);
        size_t size = make_jpeg(&bytes, &picture, (jpeg_form){.quality = 90});
        snprintf(name, sizeof name, "in/%02d.jpg", i);
        if (file_put(folder_path(path, state, name), bytes, i == 4 ? size / 2 : size)) return -1;
        free(bytes);
        basin_picture_free(&picture);
    }
    return 0;
}

typedef struct bench {
    basin_image_run run;
    basin_watch watch;
    volatile sig_atomic_t stop;
    int64_t stop_at;
    int skipped;
    char in[PATH_TEXT], out[PATH_TEXT];
    const char *path;
} bench;

static void stop_there(void *context, const basin_news *news) {
    bench *b = context;
    if (strcmp(news->what, "training") == 0 && news->done == b->stop_at) b->stop = 1;
}

static void count_skipped(void *context, const char *line) {
    if (strncmp(line, "skipped: ", 9) == 0) ((bench *)context)->skipped++;
}

static void bench_open(bench *b, void **state, const char *name, const char *keep,
                       const char *cut) {
    char file[40];
    *b = (bench){.stop_at = -1};
    snprintf(file, sizeof file, "%s.safetensors", name);
    folder_path(b->out, state, file);
    b->path = folder_path(b->in, state, "in");
    b->watch =
        (basin_watch){.show = stop_there, .note = count_skipped, .context = b, .stop = &b->stop};
    b->run = (basin_image_run){.train = {.path = &b->path, .paths = 1},
                               .backend = cuda,
                               .out = b->out,
                               .save_every = 1e9,
                               .keep = keep,
                               .cut = cut,
                               .watch = &b->watch};
    basin_image_settings *s = &b->run.settings;
    basin_image_task.fill(s, "photos");
    s->size = 32;
    s->dim = 32;
    s->heads = 2;
    s->head_dim = 16;
    s->memories = 64;
    s->steps = 3;
    s->occlude = 8;
    s->keep = 1;
    s->batch = 8;
    s->epochs = 4;
    s->warmup = 1;
}

static basin_image_outcome train(bench *b) {
    basin_error error = {0};
    basin_image_outcome outcome;
    b->stop = 0;
    if (basin_image_train(&outcome, &b->run, &error)) fail_msg("%s", error.text);
    return outcome;
}

static void same_file(const char *a, const char *b) {
    enum { MOST = 1 << 20 };
    static char x[MOST], y[MOST];
    FILE *p = fopen(a, "rb"), *q = fopen(b, "rb");
    assert_true(p && q);
    size_t size = fread(x, 1, MOST, p);
    assert_true(size > 1000 && size < MOST);
    assert_int_equal(fread(y, 1, MOST, q), size);
    fclose(p);
    fclose(q);
    assert_memory_equal(x, y, size);
}

static void whoever_cuts_the_crops(void **state) {
    static const char *const cuts[] = {"whole", "reduced"};
    for (int i = 0; i < 2; i++) {
        bench host, device, pinned;
        bench_open(&host, state, "host", "off", cuts[i]);
        bench_open(&device, state, "device", "device", cuts[i]);
        bench_open(&pinned, state, "pinned", "host", cuts[i]);
        basin_image_outcome a = train(&host), b = train(&device), c = train(&pinned);
        assert_string_equal(a.keep, "off");
        assert_string_equal(b.keep, "device");
        assert_string_equal(c.keep, "host");
        assert_true(a.kept == 0 && b.kept > 0 && b.kept == c.kept);
        assert_true(a.unreadable == 1 && b.unreadable == 1 && c.unreadable == 1);
        assert_true(host.skipped == 1 && device.skipped == 1 && pinned.skipped == 1);
        same_file(host.out, device.out);
        same_file(host.out, pinned.out);
    }
}

static void a_stopped_run_resumes(void **state) {
    bench whole, cut;
    bench_open(&whole, state, "whole", NULL, NULL);
    basin_image_outcome o = train(&whole);
    assert_string_equal(o.keep, "device");
    bench_open(&cut, state, "cut", NULL, NULL);
    cut.stop_at = 5;
    o = train(&cut);
    assert_true(o.stopped && o.steps == 5);
    cut.stop_at = -1;
    cut.run.resume = true;
    cut.run.keep = "host";
    o = train(&cut);
    assert_true(o.resumed && !o.stopped);
    same_file(whole.out, cut.out);
}

int main(void) {
    basin_error error;
    if (basin_backend_open(&cuda, "cuda", 0, &error)) {
        printf("no CUDA device: skipped (%s)\n", error.text);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_cuts_the_crops),
        cmocka_unit_test(a_stopped_run_resumes),
    };
    int failures = cmocka_run_group_tests(tests, setup, folder_remove);
    basin_backend_close(cuda);
    return failures;
}
