/* Random graphs on the CUDA backend, with and without fusion, against the plain plan of the
 * reference; each plan runs call by call, is captured, and is replayed, and a second plan must give
 * the same bits. With arguments FIRST COUNT it runs those graphs instead of the usual ones. */
#include "basin/energy.h"
#include "plan/random_graphs.h"
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
enum { B = 3, D = 64, MOST = 208, WEIGHTS = 3, RESULTS = 1 + 2 * WEIGHTS };

static void open_narrow(lab *l, const char *backend) {
    lab_open(l, backend, 1);
    assert_int_equal(basin_backend_set_storage(l->backend, BASIN_BF16, NULL), BASIN_OK);
    basin_backend_set_narrow_least(l->backend, 0);
}

static basin_expr tokens_of(lab *l, int64_t nodes) {
    static double x[B * MOST * D];
    for (int64_t i = 0; i < B * nodes * D; i++)
        x[i] = 2 * basin_random_uniform_at(3, 1, (uint64_t)i) - 1;
    return lab_input(l, "x", BASIN_SHAPE(B, nodes, D), x);
}

static void run_plan(basin_tensor *result, lab *l, const basin_expr *output, int outputs) {
    basin_plan *plan = lab_plan(l, output, outputs);
    for (int i = 0; i < RUNS; i++) lab_run(plan);
    for (int i = 0; i < outputs; i++) result[i] = lab_read(plan, output[i]);
    basin_plan_free(plan);
}

/* result [1 + 2 weights] */
static void run_descent(basin_tensor *result, lab *l, const basin_energy *energy, int64_t nodes,
                        const basin_expr *weight, int weights) {
    basin_expr at[1 + WEIGHTS] = {tokens_of(l, nodes)};
    basin_expr back[1 + WEIGHTS], output[RESULTS];
    basin_descent_spec spec = {.steps = 2, .alpha = 0.1};
    basin_expr end = basin_descend(energy, at[0], &spec, NULL);
    for (int i = 0; i < weights; i++) at[1 + i] = weight[i];
    basin_grad_many(back, basin_sum_all(basin_square(end)), at, 1 + weights);
    output[0] = back[0];
    for (int i = 0; i < weights; i++) {
        output[1 + i] = basin_sub(basin_scale(at[1 + i], 0.01), back[1 + i]);
        output[1 + weights + i] = basin_sum_all(basin_square(back[1 + i]));
    }
    run_plan(result, l, output, 1 + 2 * weights);
}

/* The end alone: ReLUs write no bits, and memories are joined nevertheless. */
static void run_forward(basin_tensor *result, lab *l, const basin_energy *energy, int64_t nodes) {
    basin_descent_spec spec = {.steps = 2, .alpha = 0.1};
    basin_expr end = basin_descend(energy, tokens_of(l, nodes), &spec, NULL);
    run_plan(result, l, &end, 1);
}

static void compare_and_free(basin_tensor *found, basin_tensor *wanted, const char *const *what,
                             int results) {
    for (int i = 0; i < results; i++) {
        lab_assert_near(&found[i], &wanted[i], 1e-2, what[i]);
        basin_tensor_free(&found[i]);
        basin_tensor_free(&wanted[i]);
    }
}

/* result [RESULTS], or [1] of a forward pass */
static void narrow_descent(basin_tensor *result, const char *backend, int64_t nodes, bool forward) {
    lab l;
    open_narrow(&l, backend);
    basin_block block;
    basin_block_config config = {.dim = D, .heads = 2, .head_dim = 64, .memories = 256};
    assert_int_equal(basin_block_declare(&block, &l.params, "", &config), BASIN_OK);
    lab_fill(&l, 9, 0.2);
    basin_pattern pattern = BASIN_OTHER_PAIRS;
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_energy energy = basin_block_energy(&bound);
    const basin_expr weight[WEIGHTS] = {block.xi, block.wq, block.wk};
    if (forward)
        run_forward(result, &l, &energy, nodes);
    else
        run_descent(result, &l, &energy, nodes, weight, WEIGHTS);
    lab_close(&l);
}

static void test_narrow_descent(void **state) {
    const int64_t nodes[] = {24, 37, 196};
    const char *what[RESULTS] = {"tokens",  "memories",   "queries",    "keys",
                                 "squares", "of queries", "and of keys"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        basin_tensor found[RESULTS], wanted[RESULTS];
        narrow_descent(found, "cuda", nodes[k], false);
        narrow_descent(wanted, "ref", nodes[k], false);
        compare_and_free(found, wanted, what, RESULTS);
        narrow_descent(found, "cuda", nodes[k], true);
        narrow_descent(wanted, "ref", nodes[k], true);
        compare_and_free(found, wanted, (const char *const[]){"a forward pass"}, 1);
    }
}

/* Two sets of memories, of sizes whose ReLUs leave no bits: masks are numbers. */
enum { SETS = 2, OF_SETS = 1 + 2 * SETS };
static basin_expr memory_part(const void *xi, basin_expr g, int part) {
    return basin_energy_hopfield(g, ((const basin_expr *)xi)[part], BASIN_HOPFIELD_RELU, 0);
}

static void narrow_memories(basin_tensor result[OF_SETS], const char *backend, int64_t nodes) {
    lab l;
    open_narrow(&l, backend);
    const basin_expr xi[SETS] = {lab_state(&l, "xi0", BASIN_SHAPE(96, D)),
                                 lab_state(&l, "xi1", BASIN_SHAPE(160, D))};
    basin_energy energy = {
        .parts = SETS, .name = {"first", "second"}, .part = memory_part, .context = xi};
    lab_fill(&l, 9, 0.2);
    run_descent(result, &l, &energy, nodes, xi, SETS);
    lab_close(&l);
}

static void test_narrow_memories(void **state) {
    const int64_t nodes[] = {24, 37, 196};
    const char *what[OF_SETS] = {"tokens", "96 memories", "160 memories", "squares",
                                 "and of the others"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        basin_tensor found[OF_SETS], wanted[OF_SETS];
        narrow_memories(found, "cuda", nodes[k]);
        narrow_memories(wanted, "ref", nodes[k]);
        compare_and_free(found, wanted, what, OF_SETS);
    }
}

/* A descent whose weights change now and then: hoisted calls are captured and replayed apart from
 * the others, and every run has the bits of a new plan's first. */
static void test_standing_calls(void **state) {
    static double x[B * MOST * D];
    basin_block block;
    basin_block_config config = {
        .dim = D, .heads = 2, .head_dim = 64, .memories = 256, .learn_beta = true};
    basin_pattern pattern = BASIN_OTHER_PAIRS;
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_descent_spec spec = {.steps = 3, .alpha = 0.1};
    lab l;
    (void)state;
    open_narrow(&l, "cuda");
    for (int i = 0; i < B * 196 * D; i++) x[i] = basin_random_uniform_at(3, 1, (uint64_t)i);
    assert_int_equal(basin_block_declare(&block, &l.params, "", &config), BASIN_OK);
    basin_energy energy = basin_block_energy(&bound);
    basin_expr start = lab_input(&l, "x", BASIN_SHAPE(B, 196, D), x);
    basin_expr end = basin_descend(&energy, start, &spec, NULL);
    basin_plan *plan = lab_plan(&l, &end, 1);
    assert_in_range(basin_plan_get_stats(plan).hoisted, 3, basin_plan_get_stats(plan).calls - 1);
    for (uint64_t seed = 1; seed <= RUNS + 1; seed++) {
        lab_fill(&l, seed, 0.2);
        basin_tensor wanted = lab_value(&l, end);
        for (int run = 0; run < 2; run++) {
            lab_run(plan);
            basin_tensor found = lab_read(plan, end);
            assert_memory_equal(found.data, wanted.data, basin_tensor_bytes(&wanted));
            basin_tensor_free(&found);
        }
        basin_tensor_free(&wanted);
    }
    basin_plan_free(plan);
    lab_close(&l);
}

/* Constants, arrangements, choices, sparse softmaxes and causal attention, with the gradient of a
 * function of each. Positions are far enough apart in value that rounding moves none. */
enum { ROWS = 70, COLUMNS = 96, ARRANGED = 9 };

static void arrange(basin_tensor *result, const char *backend) {
    static double x[ROWS * COLUMNS];
    static int32_t label[ROWS];
    basin_expr output[2 * ARRANGED], where;
    lab l;
    lab_open(&l, backend, 1);
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = sin(1.3 * i) + 0.001 * (i % COLUMNS);
    for (int i = 0; i < ROWS; i++) label[i] = i % 7 == 3 ? -1 : i % COLUMNS;
    basin_expr a = lab_input(&l, "x", BASIN_SHAPE(ROWS, COLUMNS), x);
    basin_expr heads = basin_reshape(a, BASIN_SHAPE(ROWS, 2, 48));
    basin_expr beta = basin_fill(l.graph, BASIN_SHAPE(2), 0.3), mix = basin_eye(l.graph, 2);
    basin_expr best = basin_top(a, 5, 1, &where);
    const basin_expr value[ARRANGED] = {
        basin_flip(basin_cumsum(a, 0), 1),
        basin_stride(basin_roll(a, 1, 5), 1, 2, 3),
        best,
        basin_scale(basin_mul(basin_from_index(where, COLUMNS), basin_mean_all(a)), 0.1),
        basin_cross_entropy_labels(a, lab_index(&l, "label", label, ROWS)),
        basin_scale(basin_entmax15(a), 20), /* the sum of a row has no slope */
        basin_sparsemax_conjugate(basin_scale(a, 3)),
        basin_attention_lse(heads, basin_tanh(heads), beta, NULL, NULL, &BASIN_CAUSAL_PAIRS),
        basin_attention_lse(heads, heads, beta, NULL, mix, &BASIN_EARLIER_PAIRS),
    };
    for (int i = 0; i < ARRANGED; i++) {
        output[2 * i] = value[i];
        output[2 * i + 1] = basin_grad(basin_sin(value[i]), a);
    }
    run_plan(result, &l, output, 2 * ARRANGED);
    lab_close(&l);
}

static void test_arrangements(void **state) {
    (void)state;
    basin_tensor found[2 * ARRANGED], wanted[2 * ARRANGED];
    arrange(found, "cuda");
    arrange(wanted, "ref");
    for (int i = 0; i < 2 * ARRANGED; i++) {
        char what[40];
        snprintf(what, sizeof what, "%s %d", i % 2 ? "gradient" : "value", i / 2);
        lab_assert_near(&found[i], &wanted[i], 1e-4, what);
        basin_tensor_free(&found[i]);
        basin_tensor_free(&wanted[i]);
    }
}

int main(int argc, char **argv) {
    basin_error error;
    if (argc > 2) first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    if (basin_backend_open(&cuda, "cuda", 0, &error)) {
        printf("no CUDA device: skipped (%s)\n", error.text);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_narrow_descent), cmocka_unit_test(test_narrow_memories),
        cmocka_unit_test(test_standing_calls), cmocka_unit_test(test_arrangements),
        cmocka_unit_test(test_random_graphs)};
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    basin_backend_close(cuda);
    return failures;
}
