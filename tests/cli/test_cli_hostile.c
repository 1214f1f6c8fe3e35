/* What a hostile or broken surrounding does to the program: damaged files, odd descriptors, limits.
 * Each ends with one line and exit 1, never with a signal. */
#include "cli/program.h"

#include <math.h>
#include <sys/stat.h>

/* Overwrites bytes of a file, from the end where `at` is negative. */
static void patch(void **state, const char *name, long at, const void *bytes, size_t size) {
    char path[PATH_TEXT];
    FILE *file = fopen(folder_path(path, state, name), "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, at < 0 ? SEEK_END : SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Where the data of a tensor begin. */
static long tensor_at(void **state, const char *name, const char *tensor) {
    char path[PATH_TEXT], header[65536], key[64];
    uint64_t length;
    FILE *file = fopen(folder_path(path, state, name), "rb");
    assert_non_null(file);
    assert_int_equal(fread(&length, 1, 8, file), 8);
    assert_true(length < sizeof header && fread(header, 1, length, file) == length);
    fclose(file);
    header[length] = 0;
    snprintf(key, sizeof key, "\"%s\":", tensor);
    const char *found = strstr(header, key);
    assert_non_null(found);
    found = strstr(found, "data_offsets\":[");
    assert_non_null(found);
    return (long)length + 8 + atol(found + strlen("data_offsets\":["));
}

static void checks_mapped_networks_everywhere(void **state) {
    assert_int_equal(run(state, "data make fraud --scale 0.01 n.basin -q")->code, 0);
    assert_int_equal(run(state, "anomaly train n.basin -q -o d.safetensors --members 1 "
                                "--epochs 4 --threads 1")
                         ->code,
                     0);
    float nan = NAN;
    assert_int_equal(run(state, "data convert n.basin gap.basin -q")->code, 0);
    patch(state, "gap.basin", tensor_at(state, "gap.basin", "x") + 4, &nan, sizeof nan);
    assert_error(run(state, "anomaly score d.safetensors gap.basin"), 1, "feature 1 of node 0");
    const program *p = run(state, "anomaly score d.safetensors gap.basin --missing mean");
    assert_int_equal(p->code, 0);
    assert_null(strstr(p->out, "nan"));
    patch(state, "n.basin", -4, "\377\377\377\177", 4);
    assert_error(run(state, "anomaly score d.safetensors n.basin"), 1, "leads to node 2147483647");
    assert_error(run(state, "anomaly train n.basin -o e.safetensors"), 1, "leads to node");
    assert_error(run(state, "anomaly eval n.basin"), 1, "leads to node");
    assert_error(run(state, "anomaly explain d.safetensors 0 n.basin"), 1, "leads to node");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checks_mapped_networks_everywhere),
    };
    return cmocka_run_group_tests(tests, folder_new, program_teardown);
}
