/* Random graphs on the CUDA backend, with and without fusion, against the plain plan of the
 * reference; each plan runs call by call, is captured, and is replayed, and a second plan must give
 * the same bits. With arguments FIRST COUNT it runs those graphs instead of the usual ones. */
#include "base/info.h"
#include "basin/energy.h"
#include "engine/backend/kernel.h"
#include "engine/expr/graph.h"
#include "engine/plan/narrow_descent.h"
#include "engine/plan/noisy_steps.h"
#include "engine/plan/random_graphs.h"
#include "support/cuda.h"
#include "support/lab.h"

static uint64_t first = 0, count = 60;

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

TEST(test_random_graphs) {
    int failures = 0;
    for (uint64_t i = 0; i < count; i++) failures += check_graph(first + i);
    assert_int_equal(failures, 0);
}

TEST(test_narrow_descent) { check_narrow_descent("cuda", 1, &narrow_usual); }

/* Small products; the gradients of 1,000 tokens are sums in parts. */
TEST(test_noisy_steps) {
    static const int64_t counts[] = {1, 20, 1000};
    for (int i = 0; i < 3; i++) {
        basin_tensor wanted[OUTPUTS], found[OUTPUTS];
        lab l = lab_new("ref", 1);
        compute_steps(wanted, &l, counts[i]);
        lab_close(&l);
        lab_open(&l, "cuda", 1);
        compute_steps(found, &l, counts[i]);
        lab_close(&l);
        compare_steps(found, wanted, 1e-5);
    }
}

TEST(test_byte_descent) {
    lab l = lab_new("cuda", 1);
    basin_status status =
        basin_backend_configure(l.backend, &(basin_compute){.storage = BASIN_F8_E4M3}, NULL);
    lab_close(&l);
    if (status) skip();
    check_byte_descent("cuda");
}

TEST(test_narrow_memories) { check_narrow_memories("cuda", 1); }

/* A descent whose weights change now and then: hoisted calls are captured and replayed apart from
 * the others, and every run has the bits of a new plan's first. */
TEST(test_standing_calls) {
    static double x[B * MOST * D];
    basin_block block;
    basin_block_config config = {
        .dim = D, .heads = 2, .head_dim = 64, .memories = 256, .learn_beta = true};
    basin_pattern pattern = BASIN_OTHER_PAIRS;
    basin_block_bound bound = {.block = &block, .pattern = &pattern};
    basin_descent_spec spec = {.steps = 3, .alpha = 0.1};
    BASIN_AT_EXIT(lab_close) lab l;
    open_stored(&l, "cuda", 1, BASIN_BF16);
    for (int i = 0; i < B * 196 * D; i++) x[i] = basin_random_uniform_at(3, 1, (uint64_t)i);
    assert_int_equal(basin_block_declare(&block, &l.params, "", &config), BASIN_OK);
    basin_energy energy = basin_block_energy(&bound);
    basin_expr start = lab_input(&l, "x", BASIN_SHAPE(B, 196, D), x);
    basin_expr end = basin_descend(&energy, start, &spec, NULL);
    basin_plan *plan = lab_plan(&l, &end, 1);
    assert_in_range(basin_plan_stats_of(plan).hoisted, 3, basin_plan_stats_of(plan).calls - 1);
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
}

/* Constants, arrangements, choices, sparse softmaxes and causal attention, with the gradient of a
 * function of each. Positions are far enough apart in value that rounding moves none. */
enum { ROWS = 70, COLUMNS = 96, ARRANGED = 9 };

static void arrange(basin_tensor *result, const char *backend) {
    static double x[ROWS * COLUMNS];
    static int32_t label[ROWS];
    basin_expr output[2 * ARRANGED], where;
    BASIN_AT_EXIT(lab_close) lab l = lab_new(backend, 1);
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = sin(1.3 * i) + 0.001 * (i % COLUMNS);
    for (int i = 0; i < ROWS; i++) label[i] = i % 7 == 3 ? -1 : i % COLUMNS;
    basin_expr a = lab_input(&l, "x", BASIN_SHAPE(ROWS, COLUMNS), x);
    basin_expr heads = basin_reshape(a, BASIN_SHAPE(ROWS, 2, 48));
    basin_expr beta = basin_full(l.graph, BASIN_SHAPE(2), 0.3), mix = basin_eye(l.graph, 2);
    basin_expr best = basin_top_k(a, 5, 1, &where);
    const basin_expr value[ARRANGED] = {
        basin_stride(basin_cumsum(a, 0), 1, COLUMNS - 1, COLUMNS, -1),
        basin_stride(basin_roll(a, 1, 5), 1, 2, COLUMNS / 3, 3),
        best,
        basin_scale(basin_mul(basin_from_index(where, COLUMNS), basin_mean_all(a)), 0.1),
        basin_cross_entropy_labels(a, lab_index(&l, "label", label, ROWS)),
        basin_scale(basin_sparse_softmax(a, BASIN_SPARSE_ENTMAX15),
                    20), /* the sum of a row has no slope */
        basin_sparse_conjugate(basin_scale(a, 3), BASIN_SPARSE_SPARSEMAX),
        basin_attention_lse(heads, basin_tanh(heads), beta, &BASIN_CAUSAL_PAIRS, NULL),
        basin_attention_lse(heads, heads, beta, &BASIN_EARLIER_PAIRS,
                            &(basin_lse_options){.mix = mix}),
    };
    for (int i = 0; i < ARRANGED; i++) {
        output[2 * i] = value[i];
        output[2 * i + 1] = basin_grad(basin_sin(value[i]), a);
    }
    run_plan(result, &l, output, 2 * ARRANGED);
}

TEST(test_arrangements) {
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

/* Attention with values and its reverse: o and the gradients of two functions of it, with what the
 * device keeps between them; and the last without that. Heads of 64 and of 24, causal and not,
 * queries that fill tiles and ones that do not, with dropout and without. */
enum { KEPT = 4 };

static void run_values(basin_tensor result[KEPT], const char *backend, int kind, bool narrow) {
    static double x[2 * 131 * 3 * 2 * 64];
    int64_t tokens = kind % 3 == 0 ? 128 : kind % 3 == 1 ? 131 : 37, width = kind & 4 ? 24 : 64;
    const basin_pattern *pattern = kind & 2 ? &BASIN_CAUSAL_PAIRS : &BASIN_ALL_PAIRS;
    const int32_t word[] = {3, -8};
    BASIN_AT_EXIT(lab_close) lab l = lab_new(backend, 1);
    if (narrow) lab_narrow(&l, BASIN_BF16);
    check_fill(x, 2 * tokens * 6 * width, 5);
    basin_expr qkv = lab_input(&l, "x", BASIN_SHAPE(2, tokens, 6 * width), x);
    basin_expr seed = lab_index(&l, "seed", word, 2), output[3];
    for (int i = 0; i < 2 * tokens * 2 * width; i++) x[i] = sin(0.7 * i);
    basin_expr c = lab_input(&l, "c", BASIN_SHAPE(2, tokens, 2, width), x);
    basin_expr o = lab_attention(qkv, 2, kind & 1 ? 0.3 : 0, seed, pattern);
    output[0] = o;
    output[1] = basin_grad(basin_sum_all(basin_mul(c, basin_sin(o))), qkv);
    output[2] = basin_grad(basin_sum_all(basin_mul(c, o)), qkv);
    run_plan(result, &l, output, 3);
    run_plan(result + 3, &l, output + 2, 1);
}

TEST(test_kept_values) {
    for (int kind = 0; kind < 48; kind++) {
        basin_tensor found[KEPT], wanted[KEPT];
        run_values(found, "cuda", kind % 24, kind >= 24);
        run_values(wanted, "ref", kind % 24, kind >= 24);
        if (kind < 24) /* what is kept changes no bit */
            assert_memory_equal(found[2].data, found[3].data, basin_tensor_bytes(&found[3]));
        for (int i = 0; i < KEPT; i++) {
            char what[40];
            snprintf(what, sizeof what, "values, kind %d, result %d", kind, i);
            lab_assert_near(&found[i], &wanted[i], kind < 24 ? 1e-5 : 1e-2, what);
            basin_tensor_free(&found[i]);
            basin_tensor_free(&wanted[i]);
        }
    }
}

/* Dropout within programs, alone and behind a product that runs in turns; both directions. */
static void run_dropout(basin_tensor result[4], const char *backend, int64_t rows, bool narrow) {
    enum { INNER = 8, WIDTH = 512 };
    static double x[24600 * INNER], w[INNER * WIDTH];
    const int32_t word[] = {3, -8};
    BASIN_AT_EXIT(lab_close) lab l = lab_new(backend, 1);
    if (narrow) lab_narrow(&l, BASIN_BF16);
    check_fill(x, rows * INNER, 5);
    check_fill(w, INNER * WIDTH, 6);
    basin_expr a = lab_input(&l, "x", BASIN_SHAPE(rows, INNER), x), output[4];
    basin_expr b = lab_input(&l, "w", BASIN_SHAPE(INNER, WIDTH), w);
    basin_expr seed = lab_index(&l, "seed", word, 2);
    basin_expr sum = basin_add(basin_sin(basin_reshape(basin_sum(a, 1, 1), BASIN_SHAPE(rows, 1))),
                               basin_dropout(basin_matmul(a, b), 0.3, seed));
    output[0] = basin_sum(basin_dropout(basin_sin(sum), 0.6, seed), 1, 1);
    output[1] = basin_dropout(basin_cos(a), 0.1, seed);
    basin_vjp(output + 2, basin_add(basin_sum_all(output[0]), basin_sum_all(output[1])), NULL,
              (basin_expr[]){a, b}, 2);
    run_plan(result, &l, output, 4);
}

TEST(test_dropout_in_programs) {
    static const int64_t rows[] = {40, 24600};
    for (int kind = 0; kind < 4; kind++) {
        basin_tensor found[4], wanted[4];
        run_dropout(found, "cuda", rows[kind / 2], kind % 2);
        run_dropout(wanted, "ref", rows[kind / 2], kind % 2);
        for (int i = 0; i < 4; i++) {
            char what[40];
            snprintf(what, sizeof what, "dropout, kind %d, result %d", kind, i);
            lab_assert_near(&found[i], &wanted[i], kind % 2 ? 1e-2 : 1e-5, what);
            basin_tensor_free(&found[i]);
            basin_tensor_free(&wanted[i]);
        }
    }
}

int main(int argc, char **argv) {
    if (argc > 2) first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    cuda_open();
    return cuda_close(tests_run(NULL, NULL));
}
