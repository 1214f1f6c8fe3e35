/* Random graphs on the CUDA backend, with and without fusion, against the plain plan of the
 * reference; each plan runs call by call, is captured, and is replayed, and a second plan must give
 * the same bits. With arguments FIRST COUNT it runs those graphs instead of the usual ones. */
#include "basin/energy.h"
#include "expr/random_graphs.h"
#include "support/lab.h"

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

/* A descent in bfloat16 and its gradients, through joint matrices and masks of its ReLUs, against
 * ref, which rounds at the same places. Each gradient has two readers, as in training. */
enum { WEIGHTS = 3, RESULTS = 1 + 2 * WEIGHTS };
static void narrow_descent(basin_tensor result[RESULTS], const char *backend, int64_t nodes) {
    lab l;
    enum { B = 3, D = 64, MOST = 208 };
    static double x[B * MOST * D];
    for (int64_t i = 0; i < B * nodes * D; i++)
        x[i] = 2 * basin_random_uniform_at(3, 1, (uint64_t)i) - 1;
    lab_open(&l, backend, 1);
    assert_int_equal(basin_backend_set_storage(l.backend, BASIN_BF16, NULL), BASIN_OK);
    basin_backend_set_narrow_least(l.backend, 0);
    basin_block block;
    basin_block_config config = {.dim = D, .heads = 2, .head_dim = 64, .memories = 256};
    assert_int_equal(basin_block_declare(&block, &l.params, "", &config), BASIN_OK);
    lab_fill(&l, 9, 0.2);
    basin_pattern pattern = BASIN_OTHER_PAIRS;
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_expr tokens = lab_input(&l, "x", BASIN_SHAPE(B, nodes, D), x);
    basin_descent_spec spec = {.steps = 2, .alpha = 0.1};
    basin_expr end = basin_descend(&energy, tokens, &spec, NULL), back[1 + WEIGHTS];
    basin_expr at[1 + WEIGHTS] = {tokens, block.xi, block.wq, block.wk}, output[RESULTS];
    basin_grad_many(back, basin_sum_all(basin_square(end)), at, 1 + WEIGHTS);
    output[0] = back[0];
    for (int i = 0; i < WEIGHTS; i++) {
        output[1 + i] = basin_sub(basin_scale(at[1 + i], 0.01), back[1 + i]);
        output[1 + WEIGHTS + i] = basin_sum_all(basin_square(back[1 + i]));
    }
    basin_plan *plan = lab_plan(&l, output, RESULTS);
    for (int i = 0; i < RUNS; i++) lab_run(plan);
    for (int i = 0; i < RESULTS; i++) result[i] = lab_read(plan, output[i]);
    basin_plan_free(plan);
    lab_close(&l);
}

static void test_narrow_descent(void **state) {
    const int64_t nodes[] = {24, 37, 196};
    const char *what[RESULTS] = {"tokens",  "memories",   "queries",    "keys",
                                 "squares", "of queries", "and of keys"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        basin_tensor found[RESULTS], wanted[RESULTS];
        narrow_descent(found, "cuda", nodes[k]);
        narrow_descent(wanted, "ref", nodes[k]);
        for (int i = 0; i < RESULTS; i++) {
            lab_assert_near(&found[i], &wanted[i], 1e-2, what[i]);
            basin_tensor_free(&found[i]);
            basin_tensor_free(&wanted[i]);
        }
    }
}

int main(int argc, char **argv) {
    basin_error error;
    if (argc > 2) first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    if (basin_backend_open(&cuda, "cuda", 0, &error)) {
        printf("no CUDA device: skipped (%s)\n", error.text);
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_narrow_descent),
                                       cmocka_unit_test(test_random_graphs)};
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    basin_backend_close(cuda);
    return failures;
}
