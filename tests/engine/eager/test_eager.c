/* Energy attention at once on ref and cpu against plain loops in double: all pairs, causal ones and
 * lists, odd sizes, multipliers, batches of lists, bfloat16; and what is refused. */
#include <stdio.h>

#include "engine/backend/attention_problem.h"
#include "engine/eager/eager.h"

#include "basin/basin.h"

/* ---- a problem's operands as a job has them ---- */

typedef struct bench {
    basin_eager_attention at;
    void *memory[INPUTS + OUTPUTS];
    basin_pairs pairs;
} bench;

static void *place(bench *b, int slot, int64_t count, basin_dtype dtype) {
    size_t bytes = ((size_t)count * basin_dtype_size(dtype) + 127) / 64 * 64;
    assert_int_equal(posix_memalign(&b->memory[slot], 64, bytes), 0);
    memset(b->memory[slot], 0xff, bytes);
    return b->memory[slot];
}

static basin_dtype dtype_of(const bench *b, bool token) {
    return token ? b->at.dtype : b->at.dtype == BASIN_F64 ? BASIN_F64 : BASIN_F32;
}

static bool is_token(int like) { return like == Q || like == K || like == A || like == B; }

static const void *give(bench *b, const problem *p, int i) {
    if (!p->in[i]) return NULL;
    basin_dtype dtype = dtype_of(b, is_token(i));
    basin_tensor to =
        basin_tensor_borrow(place(b, i, p->size[i], dtype), dtype, BASIN_SHAPE(p->size[i]));
    basin_tensor from = basin_tensor_borrow(p->in[i], BASIN_F64, BASIN_SHAPE(p->size[i]));
    assert_int_equal(basin_tensor_convert(&to, &from, NULL), BASIN_OK);
    assert_int_equal(basin_tensor_convert(&from, &to, NULL), BASIN_OK); /* what kernels see */
    return to.data;
}

static void *take(bench *b, const problem *p, int o) {
    int like = output_like[o];
    return place(b, INPUTS + o, p->size[like], dtype_of(b, is_token(like)));
}

static void give_list(bench *b, const problem *p) {
    int32_t *edge = zeros(2 * p->pairs, sizeof *edge);
    for (int64_t i = 0; i < p->pairs; i++) edge[2 * i] = p->query[i], edge[2 * i + 1] = p->key[i];
    assert_ok(basin_pairs_new(&b->pairs, p->queries, p->keys, edge, p->pairs, 0, &failure));
    free(edge);
    basin_eager_attention *at = &b->at;
    at->pairs = b->pairs.pairs, at->row = b->pairs.row, at->key = b->pairs.key;
    at->column = b->pairs.column, at->query = b->pairs.query, at->pair = b->pairs.pair;
}

static bench bench_of(problem *p, basin_dtype dtype, bool list) {
    bench b = {.at = {.dtype = dtype,
                      .batch = p->batch,
                      .queries = p->queries,
                      .keys = p->keys,
                      .heads = p->heads,
                      .head_dim = p->width,
                      .causal = p->causal}};
    basin_eager_attention *at = &b.at;
    if (list) give_list(&b, p);
    at->q = give(&b, p, Q), at->k = give(&b, p, K), at->beta = give(&b, p, BETA);
    at->scale = give(&b, p, SCALE), at->w = give(&b, p, W);
    at->a = give(&b, p, A), at->b = give(&b, p, B);
    at->lse = take(&b, p, LSE), at->dq = take(&b, p, DQ), at->dk = take(&b, p, DK);
    at->gq = take(&b, p, GQ), at->gk = take(&b, p, GK), at->gw = take(&b, p, GW);
    if (!list || p->batch == 1) {
        at->dbeta = take(&b, p, DBETA), at->gbeta = take(&b, p, GBETA);
        at->dscale = p->in[SCALE] ? take(&b, p, DSCALE) : NULL;
        at->gscale = p->in[SCALE] ? take(&b, p, GSCALE) : NULL;
    }
    return b;
}

static void bench_free(bench *b) {
    for (int i = 0; i < INPUTS + OUTPUTS; i++) free(b->memory[i]);
    basin_pairs_free(&b->pairs);
}

/* ---- runs ---- */

static void run_all(const basin_eager *eager, const basin_eager_attention *at) {
    for (int i = BASIN_EAGER_LSE; i <= BASIN_EAGER_REVERSE; i++)
        assert_ok(basin_eager_run(eager, (basin_eager_operation)i, at, &failure));
}

/* The error relative to the largest number. */
static void compare(const bench *b, const problem *p, double *const out[OUTPUTS], double tolerance,
                    double terms) {
    for (int o = 0; o < OUTPUTS; o++) {
        void *data = b->memory[INPUTS + o];
        if (!data) continue;
        int64_t count = p->size[output_like[o]];
        basin_tensor found =
            basin_tensor_borrow(data, dtype_of(b, is_token(output_like[o])), BASIN_SHAPE(count));
        double most = o == GBETA ? terms : 0, worst = 0;
        for (int64_t i = 0; i < count; i++) {
            double miss = fabs(basin_tensor_at(&found, i) - out[o][i]);
            if (!(miss <= worst)) worst = miss; /* NaN counts */
            if (fabs(out[o][i]) > most) most = fabs(out[o][i]);
        }
        if (!(worst <= tolerance * (most > 1e-3 ? most : 1e-3)))
            fail_msg("%s: off by %g of %g", output_name[o], worst, most);
    }
}

static const struct kind {
    const char *backend;
    basin_dtype dtype;
    double tolerance;
} kinds[] = {{"ref", BASIN_F64, 1e-12}, {"cpu", BASIN_F32, 1e-5}, {"cpu", BASIN_BF16, 5e-3}};

/* Frees the problem. */
static void check(problem p, bool list) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        basin_eager *eager = NULL;
        assert_ok(basin_eager_open(
            &eager, &(basin_compute){.backend = kinds[i].backend, .threads = 2}, &failure));
        bench b = bench_of(&p, kinds[i].dtype, list);
        double *out[OUTPUTS];
        outputs_new(&p, out);
        double terms = naive(&p, out);
        run_all(eager, &b.at);
        compare(&b, &p, out, kinds[i].tolerance, terms);
        outputs_free(out);
        bench_free(&b);
        basin_eager_close(eager);
    }
    problem_free(&p);
}

TEST(test_all_pairs) {
    check(dense_problem(2, 7, 5, 3, 5, false, false, false), false);
    check(dense_problem(1, 33, 65, 2, 17, false, false, false), false);
    check(dense_problem(3, 1, 1, 1, 1, false, false, false), false);
    check(dense_problem(2, 6, 9, 2, 8, false, true, false), false);
}

TEST(test_causal_pairs) {
    problem p = dense_problem(2, 37, 37, 2, 9, false, false, false);
    problem_make_causal(&p);
    check(p, false);
}

/* Pairs of a list are in order and different, as basin_pairs_new leaves them. */
static problem ordered_list(int64_t batch, int64_t nodes, bool scale) {
    problem p = {.batch = batch, .queries = nodes, .keys = nodes, .heads = 3, .width = 7};
    int64_t each = nodes / 3, at = 0;
    problem_pairs(&p, nodes * each);
    for (int64_t q = 0; q < nodes; q++)
        for (int64_t j = 0; j < each && q != nodes / 2; j++, at++)
            p.query[at] = (int32_t)q, p.key[at] = (int32_t)(3 * j + q % 3);
    p.pairs = at;
    problem_fill(&p, scale, false);
    return p;
}

TEST(test_lists) {
    check(ordered_list(1, 31, false), true);
    check(ordered_list(1, 31, true), true);
}

/* Entry by entry, each as if it were alone. */
TEST(test_a_list_for_a_batch) {
    basin_eager *eager = NULL;
    assert_int_equal(basin_eager_open(&eager, &(basin_compute){.threads = 1}, NULL), BASIN_OK);
    BASIN_AT_EXIT(problem_free) problem p = ordered_list(3, 13, false);
    BASIN_AT_EXIT(bench_free) bench whole = bench_of(&p, BASIN_F32, true);
    run_all(eager, &whole.at);
    int64_t row = p.queries * p.heads, token = row * p.width;
    for (int64_t e = 0; e < p.batch; e++) {
        basin_eager_attention one = whole.at;
        float *lse = zeros(row, sizeof *lse), *gq = zeros(token, sizeof *gq);
        one.batch = 1, one.lse = lse, one.gq = gq;
        one.dq = one.dk = one.gk = one.gw = NULL;
        one.q = (const float *)one.q + e * token, one.k = (const float *)one.k + e * token;
        one.a = (const float *)one.a + e * token, one.b = (const float *)one.b + e * token;
        one.w = (const float *)one.w + e * row;
        run_all(eager, &one);
        assert_memory_equal(lse, (float *)whole.at.lse + e * row, (size_t)row * sizeof *lse);
        assert_memory_equal(gq, (float *)whole.at.gq + e * token, (size_t)token * sizeof *gq);
        free(lse), free(gq);
    }
    basin_eager_close(eager);
}

/* The caller's workspace gives the same bits, and is not overrun. */
TEST(test_a_workspace_of_the_callers) {
    basin_eager *eager = NULL;
    assert_int_equal(basin_eager_open(&eager, &(basin_compute){.threads = 2}, NULL), BASIN_OK);
    BASIN_AT_EXIT(problem_free) problem p = dense_problem(2, 40, 40, 2, 8, false, false, false);
    bench mine = bench_of(&p, BASIN_BF16, false), own = bench_of(&p, BASIN_BF16, false);
    run_all(eager, &own.at);
    for (int i = BASIN_EAGER_LSE; i <= BASIN_EAGER_REVERSE; i++) {
        basin_eager_operation operation = (basin_eager_operation)i;
        size_t bytes = 0;
        void *room = NULL;
        assert_int_equal(basin_eager_workspace(&bytes, eager, operation, &mine.at, NULL), BASIN_OK);
        assert_true(bytes > 0);
        assert_int_equal(posix_memalign(&room, 64, bytes + 64), 0);
        memset((char *)room + bytes, 0x5a, 64);
        mine.at.workspace = room, mine.at.workspace_bytes = bytes;
        assert_int_equal(basin_eager_run(eager, operation, &mine.at, NULL), BASIN_OK);
        for (int j = 0; j < 64; j++) assert_int_equal(((char *)room)[bytes + (size_t)j], 0x5a);
        free(room);
    }
    assert_memory_equal(mine.at.gq, own.at.gq, (size_t)p.size[Q] * 2);
    assert_memory_equal(mine.at.dk, own.at.dk, (size_t)p.size[K] * 2);
    bench_free(&mine), bench_free(&own);
    basin_eager_close(eager);
}

/* ---- what is refused ---- */

static void refuse(const basin_eager *eager, basin_eager_operation operation,
                   const basin_eager_attention *at, const char *words) {
    assert_failed(basin_eager_run(eager, operation, at, &failure), words);
}

/* Frameworks give tensors without numbers no address. */
TEST(test_operands_without_numbers) {
    basin_eager *eager = NULL;
    float beta = 1, w[3] = {1, 1, 1}, lse[3] = {7, 7, 7}, q[3] = {1, 2, 3}, dq[3] = {7, 7, 7};
    assert_int_equal(basin_eager_open(&eager, &(basin_compute){.threads = 1}, NULL), BASIN_OK);
    basin_eager_attention at = {.dtype = BASIN_F32, .batch = 1, .heads = 1, .head_dim = 1};
    at.beta = &beta;
    for (int i = 0; i < 3; i++)
        assert_int_equal(basin_eager_run(eager, (basin_eager_operation)i, &at, NULL), BASIN_OK);
    at.queries = 3, at.q = q, at.w = w, at.lse = lse, at.dq = dq; /* and no key */
    assert_int_equal(basin_eager_run(eager, BASIN_EAGER_FORCE, &at, NULL), BASIN_OK);
    for (int i = 0; i < 3; i++) {
        assert_true(lse[i] == 0);
        assert_true(dq[i] == 0);
    }
    basin_eager_close(eager);
}

TEST(test_jobs_that_are_refused) {
    basin_eager *eager = NULL;
    assert_int_equal(basin_eager_open(&eager, &(basin_compute){.backend = "gpu"}, &failure),
                     BASIN_UNSUPPORTED);
    assert_int_equal(basin_eager_open(&eager, &(basin_compute){.threads = 1}, NULL), BASIN_OK);
    BASIN_AT_EXIT(problem_free) problem p = dense_problem(2, 7, 7, 3, 8, false, false, false);
    BASIN_AT_EXIT(bench_free) bench b = bench_of(&p, BASIN_F32, false);
    basin_eager_attention at = b.at;
    at.dtype = BASIN_F64;
    refuse(eager, BASIN_EAGER_LSE, &at, "takes F32 and BF16, not F64");
    at = b.at, at.q = NULL;
    refuse(eager, BASIN_EAGER_LSE, &at, "q is NULL");
    at = b.at, at.w = NULL;
    refuse(eager, BASIN_EAGER_FORCE, &at, "w is NULL");
    at = b.at, at.a = at.b = NULL;
    refuse(eager, BASIN_EAGER_REVERSE, &at, "a and b is NULL");
    at = b.at, at.heads = -1;
    refuse(eager, BASIN_EAGER_LSE, &at, "-1 heads");
    at = b.at, at.batch = INT64_MAX / 2;
    refuse(eager, BASIN_EAGER_LSE, &at, "too large");
    at = b.at, at.causal = true, at.keys = 6;
    refuse(eager, BASIN_EAGER_LSE, &at, "7 queries and 6 keys");
    at = b.at, at.q = (const char *)at.q + 4;
    refuse(eager, BASIN_EAGER_LSE, &at, "the address of q is not a multiple of 16");
    at = b.at, at.workspace = b.at.lse, at.workspace_bytes = 1;
    refuse(eager, BASIN_EAGER_FORCE, &at, "the workspace has 1 bytes, expected");
    basin_eager_close(eager);
}

TEST(test_values_that_are_refused) {
    basin_eager *eager = NULL;
    assert_int_equal(basin_eager_open(&eager, &(basin_compute){.threads = 1}, NULL), BASIN_OK);
    float x[64] __attribute__((aligned(64))) = {0};
    const basin_eager_values all = {
        .key_heads = 2, .value_dim = 2, .factor = 1, .v = x, .c = x, .o = x + 32};
    basin_eager_values v = all;
    const basin_eager_attention right = {.dtype = BASIN_F32,
                                         .batch = 1,
                                         .queries = 3,
                                         .keys = 3,
                                         .heads = 2,
                                         .head_dim = 2,
                                         .q = x,
                                         .k = x,
                                         .values = &v};
    basin_eager_attention at = right;
    assert_int_equal(basin_eager_run(eager, BASIN_EAGER_VALUES, &at, NULL), BASIN_OK);
    v.key_heads = 3;
    refuse(eager, BASIN_EAGER_VALUES, &at, "must divide those of queries");
    v = all, v.v = NULL;
    refuse(eager, BASIN_EAGER_VALUES, &at, "v is NULL");
    v = all, v.c = NULL;
    refuse(eager, BASIN_EAGER_VALUES_REVERSE, &at, "c is NULL");
    v = all, v.dbias = x;
    refuse(eager, BASIN_EAGER_VALUES_REVERSE, &at, "bias is NULL");
    at = right, at.values = NULL;
    refuse(eager, BASIN_EAGER_VALUES, &at, "values is NULL");
    v = all, at = right, at.exclude_self = true, at.keys = 2;
    refuse(eager, BASIN_EAGER_VALUES, &at, "leave out self pairs");
    const int32_t row[4] = {0};
    at = right, at.row = row, at.causal = true;
    refuse(eager, BASIN_EAGER_VALUES, &at, "list the pairs that count");
    basin_eager_close(eager);
}

/* An operand that is left unset would be block 0, the workspace. */
TEST(test_operands_are_present_or_absent) {
    const basin_eager_values v = {.key_heads = 1};
    const basin_eager_attention at = {.dtype = BASIN_BF16, .heads = 1, .values = &v};
    for (int order = 0; order < 3; order++) {
        basin_eager_job j;
        basin_eager_values_describe(&j, (basin_eager_operation)(BASIN_EAGER_VALUES + order), &at);
        for (int i = 0; i < j.call.ins; i++) assert_int_equal(j.call.in[i].block, -1);
        for (int i = 0; i < j.call.outs; i++) assert_int_equal(j.call.out[i].block, -1);
    }
}

TEST(test_lists_that_are_refused) {
    basin_eager *eager = NULL;
    assert_int_equal(basin_eager_open(&eager, &(basin_compute){.threads = 1}, NULL), BASIN_OK);
    BASIN_AT_EXIT(problem_free) problem p = ordered_list(1, 13, false);
    BASIN_AT_EXIT(bench_free) bench b = bench_of(&p, BASIN_F32, true);
    basin_eager_attention at = b.at;
    at.causal = true;
    refuse(eager, BASIN_EAGER_LSE, &at, "list the pairs that count");
    at = b.at, at.batch = 2;
    refuse(eager, BASIN_EAGER_FORCE, &at, "in a batch of 2; expected 1");
    at = b.at, at.key = NULL;
    refuse(eager, BASIN_EAGER_LSE, &at, "a part of the list");
    b.pairs.key[2] = 13;
    refuse(eager, BASIN_EAGER_LSE, &b.at, "key 13 at element 2 is not in [0, 13)");
    b.pairs.key[2] = 0, b.pairs.row[1] = 99;
    refuse(eager, BASIN_EAGER_LSE, &b.at, "row has");
    basin_eager_close(eager);
}
