/* basin info: tables, JSON, statistics, and files that are not what they should be. basin --version
 * comes at once: it opens no library and starts no thread to see what is there. */
#include "program/program.h"

#include <math.h>
#include <sys/resource.h>

#include "base/library.h"
#include "basin/io.h"

static void write_model(void **state, const char *name) {
    BASIN_AT_EXIT(free_bundle) basin_bundle *bundle;
    double w[6] = {1, 2, 3, 4, NAN, -INFINITY};
    int32_t n[2] = {7, 9};
    basin_tensor weight = basin_tensor_borrow(w, BASIN_F64, BASIN_SHAPE(2, 3));
    basin_tensor number = basin_tensor_borrow(n, BASIN_I32, BASIN_SHAPE(2));
    basin_tensor empty = basin_tensor_borrow(w, BASIN_F32, BASIN_SHAPE(0, 4));
    assert_int_equal(basin_bundle_new(&bundle, NULL, NULL), BASIN_OK);
    assert_int_equal(basin_bundle_add(bundle, "w", &weight, NULL), BASIN_OK);
    assert_int_equal(basin_bundle_add(bundle, "n", &number, NULL), BASIN_OK);
    assert_int_equal(basin_bundle_add(bundle, "empty", &empty, NULL), BASIN_OK);
    assert_int_equal(basin_bundle_meta_set(bundle, "alpha", "0.1\x1b[2J\n\"", NULL), BASIN_OK);
    assert_int_equal(basin_bundle_write(folder_path(state, name), bundle, NULL), BASIN_OK);
}

TEST(describes) {
    write_model(state, "m.safetensors");
    write_model(state, "m.npz");
    for (int i = 0; i < 2; i++) {
        const program *p = run_ok(state, "info %s", i ? "m.npz" : "m.safetensors");
        assert_contains(p->out, "\ntensors  3\nnumbers  8\nbytes    56\nconfiguration:\n");
        assert_contains(p->out, "alpha  0.1?[2J?\"\n");
        assert_contains(p->out, "  w       F64   [2, 3]      6\n");
    }
}

/* A layer norm that makes the descent climb gets a note. */
TEST(notes_a_negative_gamma) {
    basin_bundle *bundle;
    double value = -1.3;
    basin_tensor gamma = basin_tensor_borrow(&value, BASIN_F64, BASIN_SCALAR);
    assert_int_equal(basin_bundle_new(&bundle, NULL, NULL), BASIN_OK);
    assert_int_equal(basin_bundle_add(bundle, "gamma", &gamma, NULL), BASIN_OK);
    assert_int_equal(basin_bundle_write(folder_path(state, "g.npz"), bundle, NULL), BASIN_OK);
    basin_bundle_free(bundle);
    const program *p = run_ok(state, "info g.npz");
    assert_contains(p->err, "gamma of 1 layer norm is negative (minimum -1.3)");
    write_model(state, "m.npz");
    assert_string_equal(run(state, "info m.npz")->err, "");
}

TEST(describes_as_json) {
    write_model(state, "m.safetensors");
    write_model(state, "m.npz");
    cJSON *tree = run_json(run(state, "info --json m.safetensors m.npz"));
    assert_string_equal(json_at(tree, "files.1.file")->valuestring, "m.npz");
    assert_true(json_number(tree, "files.0.bytes") == 56);
    assert_string_equal(json_at(tree, "files.0.configuration.alpha")->valuestring,
                        "0.1\x1b[2J\n\"");
    assert_string_equal(json_at(tree, "files.0.tensors.0.name")->valuestring, "w");
    assert_true(json_number(tree, "files.0.tensors.0.shape.1") == 3);
}

/* A network's digests are compared where that is asked for, a model's wherever it is opened. */
TEST(compares_digests) {
    static const char edges[] = "src,dst\na,b\nb,c\n",
                      nodes[] = "id,f,label\na,1,0\nb,2,1\nc,3,0\n";
    file_put(folder_path(state, "e.csv"), edges, sizeof edges - 1);
    file_put(folder_path(state, "v.csv"), nodes, sizeof nodes - 1);
    run_ok(state, "data convert e.csv v.csv n.basin");
    assert_contains(run_ok(state, "info n.basin")->out, "digests  there (--check compares)\n");
    assert_contains(run_ok(state, "info --check n.basin")->out, "digests  as computed now\n");
    FILE *file = fopen(folder_path(state, "n.basin"), "r+b");
    assert_true(file && !fseek(file, -1, SEEK_END));
    int last = fgetc(file);
    assert_true(!fseek(file, -1, SEEK_END) && fputc(last ^ 1, file) != EOF && !fclose(file));
    run_ok(state, "info n.basin");
    assert_error(run(state, "info --check n.basin"), 1, "n.basin: tensor ");
    write_model(state, "m.npz");
    assert_contains(run_ok(state, "info --check m.npz")->out, "digests  absent");
    run_ok(state, "info --check " BASIN_SOURCE "/models/photos.safetensors " BASIN_SOURCE
                  "/models/fashion.safetensors " BASIN_SOURCE "/models/context.safetensors");
}

TEST(reports_bad_files) {
    assert_error(run(state, "info missing.npz"), 1, "missing.npz");
    assert_int_equal(file_put(folder_path(state, "short.safetensors"), "\x40\0\0", 3), 0);
    assert_error(run(state, "info short.safetensors"), 1, "short.safetensors");
    assert_error(run(state, "info ."), 1, ".");
    /* the others are described all the same */
    write_model(state, "m.npz");
    const program *p = run(state, "info short.safetensors m.npz");
    assert_error(p, 1, "short.safetensors");
    assert_contains(p->out, "m.npz\ntensors  3\n");
}

/* The loader's own report, in one file a process. */
TEST(opens_nothing) {
    char line[1000];
    static char text[262144];
    snprintf(line, sizeof line,
             "cd '%s' && LD_DEBUG=files LD_DEBUG_OUTPUT=\"$PWD\"/loaded %s --version >.out && "
             "cat loaded.* >.err",
             (const char *)*state, BASIN_PROGRAM);
    if (system(line) != 0) skip(); /* a loader that does not report */
    slurp(text, sizeof text, folder_path(state, ".err"));
    assert_contains(text, "libz.so");
    for (int i = 0; basin_library_name(i); i++)
        if (strstr(text, basin_library_file(i))) fail_msg("%s was opened", basin_library_name(i));
    assert_null(strstr(text, "libcuda"));
}

/* Processor time, which others on the machine hardly move: 2 ms of it, against 60 before. */
TEST(starts_at_once) {
    struct rusage before, after;
    getrusage(RUSAGE_CHILDREN, &before);
    run_ok(state, "--version");
    getrusage(RUSAGE_CHILDREN, &after);
    double spent = (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
                   (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
                   1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
                   1e-6 * (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
#ifndef __SANITIZE_ADDRESS__
    if (!strchr(&BASIN_PROGRAM[1], ' ')) assert_true(spent < 0.06); /* not under valgrind */
#endif
    assert_true(spent > 0);
}

int main(void) { return tests_run(folder_new, program_teardown); }
