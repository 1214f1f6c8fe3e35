/* Random graphs on the CUDA backend, with and without fusion, against the plain plan of the
 * reference; each plan runs call by call, is captured, and is replayed, and a second plan must give
 * the same bits. With arguments FIRST COUNT it runs those graphs instead of the usual ones. */
#include "expr/random_graphs.h"

static uint64_t first = 0, count = 60;
static basin_backend *cuda;

enum { JUDGE, SHAKEN, FAST, AGAIN, SINGLE, VARIANTS };

/* How many of the comparisons fail; each is printed. */
static int check_graph(uint64_t seed) {
    const variant variants[VARIANTS] = {
        [JUDGE] = {"ref", 1, BASIN_FUSE_OFF, false, false, NULL},
        [SHAKEN] = {"ref", 1, BASIN_FUSE_OFF, false, true, NULL},
        [FAST] = {"cuda", 1, BASIN_FUSE_ON, true, false, cuda},
        [AGAIN] = {"cuda", 1, BASIN_FUSE_ON, true, false, cuda},
        [SINGLE] = {"cuda", 1, BASIN_FUSE_OFF, false, false, cuda},
    };
    bool rough = seed % 2;
    int failures = 0;
    char text[300];
    numbers n[VARIANTS];
    for (int i = 0; i < VARIANTS; i++) n[i] = run_variant(seed, rough, &variants[i]);
    if (!rough && !near(text, seed, "cuda", &n[FAST], &n[JUDGE], 5e-3, &n[SHAKEN]))
        failures++, fprintf(stderr, "  FAILED %s\n", text);
    if (!rough && !near(text, seed, "cuda without fusion", &n[SINGLE], &n[JUDGE], 5e-3, &n[SHAKEN]))
        failures++, fprintf(stderr, "  FAILED %s\n", text);
    if (n[FAST].values != n[AGAIN].values ||
        memcmp(n[FAST].value, n[AGAIN].value, n[FAST].values * sizeof(double)) != 0)
        failures++, fprintf(stderr, "  FAILED graph %llu: the same plan gives other bits\n",
                            (unsigned long long)seed);
    for (int i = 0; i < VARIANTS; i++) free(n[i].value);
    return failures;
}

static void test_random_graphs(void **state) {
    int failures = 0;
    (void)state;
    for (uint64_t i = 0; i < count; i++) failures += check_graph(first + i);
    assert_int_equal(failures, 0);
}

int main(int argc, char **argv) {
    basin_error error;
    if (argc > 2) first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    if (basin_backend_open(&cuda, "cuda", 0, &error)) {
        printf("no CUDA device: skipped (%s)\n", error.text);
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs)};
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    basin_backend_close(cuda);
    return failures;
}
