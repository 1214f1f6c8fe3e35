/* Lists of pairs: against a set kept as a matrix, both orders of it, padding, errors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pairs.h"
#include "support/lab.h"

enum { MOST = 12 };

/* The set of pairs that edges and flags mean, as a matrix. */
static void mark(bool in[MOST][MOST], int64_t n, const int32_t *edge, int64_t count, int flags) {
    memset(in, 0, sizeof(bool[MOST][MOST]));
    for (int64_t i = 0; i < count; i++) {
        in[edge[2 * i]][edge[2 * i + 1]] = true;
        if (flags & BASIN_PAIRS_BOTH_WAYS) in[edge[2 * i + 1]][edge[2 * i]] = true;
    }
    for (int64_t i = 0; i < n; i++) {
        if (flags & BASIN_PAIRS_DROP_SELF) in[i][i] = false;
        if (flags & BASIN_PAIRS_ADD_SELF) in[i][i] = true;
    }
}

/* Rows in order, keys ascending within them, every pair of the set and no other; the same by
 * columns; the number of each pair. */
static void compare(const basin_pairs *p, bool in[MOST][MOST]) {
    int64_t at = 0;
    assert_int_equal(p->row[0], 0);
    for (int32_t q = 0; q < p->queries; q++) {
        for (int32_t k = 0; k < p->keys; k++) {
            int64_t found = basin_pairs_find(p, q, k);
            if (!in[q][k]) {
                assert_int_equal(found, -1);
                continue;
            }
            assert_int_equal(found, at);
            assert_int_equal(p->key[at++], k);
        }
        assert_int_equal(p->row[q + 1], at);
    }
    assert_int_equal(p->pairs, at);
    at = 0;
    assert_int_equal(p->column[0], 0);
    for (int32_t k = 0; k < p->keys; k++) {
        for (int32_t q = 0; q < p->queries; q++) {
            if (!in[q][k]) continue;
            assert_int_equal(p->query[at], q);
            assert_int_equal(p->pair[at++], basin_pairs_find(p, q, k));
        }
        assert_int_equal(p->column[k + 1], at);
    }
}

TEST(random_sets) {
    for (uint64_t seed = 0; seed < 400; seed++) {
        basin_random r = basin_random_start(seed, 1, 0);
        bool in[MOST][MOST];
        int32_t edge[2 * 60];
        int flags = (int)basin_random_below(&r, 8);
        bool square = (flags & (BASIN_PAIRS_BOTH_WAYS | BASIN_PAIRS_ADD_SELF)) || seed % 2;
        int64_t queries = 1 + (int64_t)basin_random_below(&r, MOST);
        int64_t keys = square ? queries : 1 + (int64_t)basin_random_below(&r, MOST);
        int64_t count = (int64_t)basin_random_below(&r, seed % 3 ? 61 : 6);
        for (int64_t i = 0; i < count; i++) {
            edge[2 * i] = (int32_t)basin_random_below(&r, (uint64_t)queries);
            edge[2 * i + 1] = (int32_t)basin_random_below(&r, (uint64_t)keys);
        }
        basin_pairs pairs;
        assert_ok(basin_pairs_new(&pairs, queries, keys, edge, count, flags, &failure));
        mark(in, queries < keys ? queries : keys, edge, count, flags);
        compare(&pairs, in);
        basin_pairs_free(&pairs);
        assert_null(pairs.row);
    }
}

TEST(empty) {
    bool in[MOST][MOST] = {{false}};
    basin_pairs pairs;
    assert_int_equal(basin_pairs_new(&pairs, 5, 3, NULL, 0, 0, NULL), BASIN_OK);
    compare(&pairs, in);
    basin_pairs_free(&pairs);
    assert_int_equal(basin_pairs_new(&pairs, 0, 0, NULL, 0, BASIN_PAIRS_ADD_SELF, NULL), BASIN_OK);
    assert_int_equal(pairs.pairs, 0);
    assert_int_equal(basin_pairs_find(&pairs, 0, 0), -1);
    basin_pairs_free(&pairs);
    assert_int_equal(basin_pairs_new(&pairs, 4, 4, NULL, 0, BASIN_PAIRS_ADD_SELF, NULL), BASIN_OK);
    assert_int_equal(pairs.pairs, 4);
    assert_int_equal(basin_pairs_find(&pairs, 2, 2), 2);
    assert_int_equal(basin_pairs_find(&pairs, -1, 2), -1);
    assert_int_equal(basin_pairs_find(&pairs, 4, 2), -1);
    assert_int_equal(basin_pairs_find(&pairs, 2, 1000), -1);
    basin_pairs_free(&pairs);
}

static void refuse(int64_t queries, int64_t keys, const int32_t *edge, int64_t count, int flags,
                   const char *a, const char *b) {
    basin_pairs pairs;
    basin_error error = {0};
    assert_int_equal(basin_pairs_new(&pairs, queries, keys, edge, count, flags, &error),
                     BASIN_BAD_VALUE);
    if (!strstr(error.text, a) || !strstr(error.text, b))
        fail_msg("'%s' does not say '%s' and '%s'", error.text, a, b);
    assert_null(pairs.row);
}

TEST(errors) {
    const int32_t high[] = {0, 1, 1, 0, 2, 3, 1, 1}, low[] = {0, 1, -1, 0};
    refuse(3, 3, high, 4, 0, "edge 2 joins 2 and 3", "below 3 and 3");
    refuse(3, 3, low, 2, 0, "edge 1 joins -1 and 0", "below 3");
    refuse(2, 4, high, 4, 0, "edge 2 joins 2 and 3", "below 2 and 4");
    refuse(3, 4, NULL, 0, BASIN_PAIRS_BOTH_WAYS, "3 queries", "4 keys");
    refuse(3, 4, NULL, 0, BASIN_PAIRS_ADD_SELF, "3 queries", "4 keys");
    refuse(-1, 4, NULL, 0, 0, "-1 queries", "2^31");
    refuse(4, (int64_t)1 << 31, NULL, 0, 0, "2147483648 keys", "2^31");
    refuse(4, 4, NULL, (int64_t)1 << 30, 0, "1073741824 edges", "2^31");
}

/* ---- writing into a plan ---- */

enum { H = 2, Y = 3, QUERIES = 5 };

/* dot and sum over a list declared for `room` pairs among `tokens` tokens, and their gradient. */
static basin_tensor run_list(const char *backend, int64_t tokens, int64_t room,
                             const basin_pairs *pairs) {
    lab l = lab_new(backend, 1);
    basin_pattern p = basin_pairs_declare(l.graph, "list", tokens, tokens, room);
    basin_expr x = lab_state(&l, "x", BASIN_SHAPE(tokens, H, Y));
    basin_expr mixer = lab_state(&l, "mixer", BASIN_SHAPE(H, H));
    lab_fill(&l, 4, 1);
    basin_expr dot = basin_matmul(basin_tanh(basin_pair_dot(x, x, &p)), mixer);
    basin_expr sum = basin_sum_all(basin_square(basin_pair_sum(dot, x, &p)));
    basin_expr both[2] = {basin_grad(sum, x), basin_grad(sum, mixer)};
    basin_expr flat[2] = {
        basin_reshape(basin_slice(both[0], 0, 0, QUERIES), BASIN_SHAPE(QUERIES * H * Y)),
        basin_reshape(both[1], BASIN_SHAPE(H * H))};
    basin_expr all = basin_concat(flat, 2, 0);
    basin_plan *plan = lab_plan(&l, &all, 1);
    assert_ok(basin_pairs_write(plan, &p, pairs, &failure));
    lab_run(plan);
    basin_tensor value = lab_read(plan, all);
    basin_plan_free(plan);
    lab_close(&l);
    return value;
}

/* Room for more pairs, and for more tokens than the list speaks of, changes no number. */
TEST(padding) {
    static const int32_t edge[] = {0, 1, 1, 2, 3, 0, 4, 4, 2, 2};
    const char *backends[] = {"ref", "cpu"};
    BASIN_AT_EXIT(basin_pairs_free) basin_pairs pairs;
    assert_ok(basin_pairs_new(&pairs, QUERIES, QUERIES, edge, 5, BASIN_PAIRS_BOTH_WAYS, &failure));
    assert_int_equal(pairs.pairs, 8);
    for (int i = 0; i < 2; i++) {
        basin_tensor exact = run_list(backends[i], QUERIES, 8, &pairs);
        basin_tensor roomy = run_list(backends[i], QUERIES, 13, &pairs);
        basin_tensor large = run_list(backends[i], QUERIES + 4, 13, &pairs);
        assert_int_equal(basin_tensor_first_bad(&roomy), -1);
        lab_assert_near(&roomy, &exact, i ? 1e-6 : 1e-14, "room for pairs");
        lab_assert_near(&large, &exact, i ? 1e-6 : 1e-14, "room for tokens");
        basin_tensor_free(&exact);
        basin_tensor_free(&roomy);
        basin_tensor_free(&large);
    }
}

TEST(too_small) {
    static const int32_t edge[] = {0, 1, 1, 2, 2, 0};
    BASIN_AT_EXIT(lab_close) lab l;
    BASIN_AT_EXIT(basin_pairs_free) basin_pairs pairs;
    lab_open(&l, "ref", 1);
    assert_int_equal(basin_pairs_new(&pairs, 3, 3, edge, 3, 0, NULL), BASIN_OK);
    basin_expr x = lab_state(&l, "x", BASIN_SHAPE(3, H, Y));
    basin_pattern few = basin_pairs_declare(l.graph, "few", 3, 3, 2);
    basin_expr sum = basin_sum_all(basin_pair_dot(x, x, &few));
    basin_plan *plan = lab_plan(&l, &sum, 1);
    assert_int_equal(basin_pairs_write(plan, &few, &pairs, &failure), BASIN_BAD_VALUE);
    basin_plan_free(plan);
    basin_pattern small = basin_pairs_declare(l.graph, "small", 2, 2, 3);
    basin_expr part = basin_slice(x, 0, 0, 2);
    sum = basin_sum_all(basin_pair_dot(part, part, &small));
    plan = lab_plan(&l, &sum, 1);
    assert_failure(basin_pairs_write(plan, &small, &pairs, &failure), BASIN_BAD_SHAPE,
                   "'small.row' has room for 3 numbers, got 4");
    basin_plan_free(plan);
    char name[300];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    assert_null(basin_pairs_declare(l.graph, name, 2, 2, 3).row);
    assert_non_null(strstr(basin_graph_error(l.graph)->text, "longer than 255"));
}

static basin_expr indices(basin_graph *graph, const int32_t *number) {
    basin_tensor tensor = basin_tensor_view(number, BASIN_I32, BASIN_SHAPE(3));
    return basin_constant(graph, &tensor);
}

/* A list of constants of which one number may be wrong; `wanted` is NULL where none is. */
static void refuse_list(int32_t first, int32_t last, int32_t key, const char *wanted) {
    const int32_t row[] = {first, 2, last}, keys[] = {0, key, 1}, column[] = {0, 1, 3};
    const int32_t query[] = {0, 0, 1}, pair[] = {0, 1, 2};
    basin_engine engine;
    basin_error error = {0};
    basin_tensor result, x, ones;
    assert_int_equal(basin_engine_open(&engine, &(basin_compute){.threads = 1}, NULL), BASIN_OK);
    basin_graph *g = engine.graph;
    basin_pattern list = {.row = indices(g, row),
                          .key = indices(g, keys),
                          .column = indices(g, column),
                          .query = indices(g, query),
                          .pair = indices(g, pair)};
    float number[4] = {1, 2, 3, 4}, one = 1;
    x = basin_tensor_borrow(number, BASIN_F32, BASIN_SHAPE(2, 1, 2));
    ones = basin_tensor_borrow(&one, BASIN_F32, BASIN_SHAPE(1));
    basin_feed given[] = {{basin_input(g, "q", x.shape), &x},
                          {basin_input(g, "beta", ones.shape), &ones}};
    basin_expr q = given[0].input, beta = given[1].input;
    basin_expr output[] = {basin_attention_lse(q, q, beta, &list, NULL),
                           basin_pair_dot(q, q, &list)};
    for (int i = 0; i < 2; i++) {
        basin_status status =
            basin_engine_compute(&engine, &result, output + i, 1, given, 2 - i, &error);
        assert_int_equal(status, wanted ? BASIN_BAD_VALUE : BASIN_OK);
        if (wanted) assert_string_equal(error.text, wanted);
        if (!status) basin_tensor_free(&result);
    }
    basin_engine_close(&engine);
}

TEST(constants) {
    refuse_list(0, 3, 1, NULL);
    refuse_list(0, 1000000, 1, "an index constant: element 2 is 1000000, expected 0 to 3");
    refuse_list(0, 3, 1000000, "an index constant: element 1 is 1000000, expected 0 to 1");
    refuse_list(0, 1, 1, "an index constant: element 2 is 1, less than the one before (2)");
    refuse_list(1, 3, 1,
                "an index constant: element 0 is 1, expected 0, where the first row begins");
}
