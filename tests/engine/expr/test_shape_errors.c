/* Operands that do not fit: every builder gives NULL and leaves a message that names what it got;
 * the first message stays. Plans refuse such graphs, and index inputs out of bounds. */
#include <stdio.h>
#include <string.h>

#include "base/info.h"
#include "basin/params.h"
#include "engine/expr/graph.h"
#include "engine/expr/misfit.h"

/* Ready operands for the cases below. */
typedef struct operands {
    basin_graph *graph;
    basin_expr a;     /* [2, 3] */
    basin_expr b;     /* [4] */
    basin_expr c;     /* [2, 3, 4] */
    basin_expr s;     /* [] */
    basin_expr x;     /* [1, 4, 4, 2] */
    basin_expr index; /* index [5] */
    basin_expr seed;  /* index [2] */
    basin_expr q;     /* [4, 2, 3] */
    basin_expr beta;  /* [2] */
    basin_pattern list, bad_list;
} operands;

static operands make_operands(void) {
    operands o = {.graph = basin_graph_new()};
    assert_non_null(o.graph);
    o.a = basin_input(o.graph, "a", BASIN_SHAPE(2, 3));
    o.b = basin_input(o.graph, "b", BASIN_SHAPE(4));
    o.c = basin_input(o.graph, "c", BASIN_SHAPE(2, 3, 4));
    o.s = basin_input(o.graph, "s", BASIN_SCALAR);
    o.x = basin_input(o.graph, "x", BASIN_SHAPE(1, 4, 4, 2));
    o.index = basin_index(o.graph, "index", BASIN_SHAPE(5));
    o.seed = basin_index(o.graph, "seed", BASIN_SHAPE(2));
    o.q = basin_input(o.graph, "q", BASIN_SHAPE(4, 2, 3));
    o.beta = basin_input(o.graph, "beta", BASIN_SHAPE(2));
    basin_expr pairs = basin_index(o.graph, "pairs", BASIN_SHAPE(6));
    o.list = (basin_pattern){
        .row = o.index, .key = pairs, .column = o.index, .query = pairs, .pair = pairs};
    o.bad_list = o.list;
    o.bad_list.query = o.seed;
    return o;
}

typedef basin_expr build(const operands *o);

static basin_expr dropped(basin_expr q, double rate, basin_expr seed) {
    basin_softmax_options options = {.dropout = rate, .seed = seed};
    return basin_softmax_attention(q, q, q, NULL, &options);
}

static basin_expr cotangent_of(const operands *o) {
    basin_expr gradient;
    basin_vjp(&gradient, o->a, o->b, &o->a, 1);
    return gradient;
}

#define CASES(X)                                                                                   \
    X(add, basin_add(o->a, o->b), "add", "'a' [2, 3]", "'b' [4]")                                  \
    X(sub, basin_sub(o->c, o->a), "sub", "[2, 3]", "[2, 3, 4]")                                    \
    X(mul, basin_mul(o->b, o->a), "mul", "[2, 3]", "[4]")                                          \
    X(divide, basin_div(o->a, o->b), "div", "[2, 3]", "[4]")                                       \
    X(maximum2, basin_maximum(o->a, o->b), "max", "[2, 3]", "[4]")                                 \
    X(minimum2, basin_minimum(o->a, o->b), "min", "[2, 3]", "[4]")                                 \
    X(greater, basin_greater(o->a, o->b), "greater", "[2, 3]", "[4]")                              \
    X(equal, basin_equal(o->a, o->b), "equal", "[2, 3]", "[4]")                                    \
    X(of_variable, basin_atan2(basin_variable(o->a), o->b), "atan2", "'g' [2, 3]", "'b' [4]")      \
    X(select_inner, basin_where(o->a, o->a, o->b), "select", "[2, 3]", "[4]")                      \
    X(select_where, basin_where(o->b, o->a, o->a), "select", "[2, 3]", "[4]")                      \
    X(select_index, basin_where(o->index, o->s, o->s), "index")                                    \
    X(index_unary, basin_exp(o->index), "'index'")                                                 \
    X(index_binary, basin_add(o->index, o->index), "add", "index")                                 \
    X(index_copy, basin_stop_gradient(o->index), "index")                                          \
    X(index_broadcast, basin_broadcast_to(o->index, BASIN_SHAPE(2, 5)), "index")                   \
    X(index_slice, basin_slice(o->index, 0, 1, 2), "index")                                        \
    X(index_pad, basin_pad(o->index, 0, 1, 2), "index")                                            \
    X(index_sum, basin_sum(o->index, 0, 1), "index")                                               \
    X(index_softmax, basin_softmax(o->index, -1), "index")                                         \
    X(index_concat, basin_concat((basin_expr[]){o->index, o->index}, 2, 0), "index")               \
    X(index_table, basin_take(o->index, 0, o->index), "index")                                     \
    X(index_matmul, basin_matmul(o->seed, o->a), "index")                                          \
    X(index_variable, basin_grad(basin_sum_all(o->a), o->index), "index")                          \
    X(broadcast, basin_broadcast_to(o->a, BASIN_SHAPE(3, 3)), "broadcast", "[2, 3]", "[3, 3]")     \
    X(broadcast_down, basin_broadcast_to(o->a, BASIN_SHAPE(3)), "broadcast", "[2, 3]", "[3]")      \
    X(broadcast_rank, basin_broadcast_to(o->a, ((basin_shape){.rank = 9})), "broadcast", "[2, 3]") \
    X(fill_negative, basin_full(o->graph, BASIN_SHAPE(-2), 0), "[-2]")                             \
    X(fill_huge, basin_full(o->graph, BASIN_SHAPE(INT64_MAX, 2), 0), "[9223372036854775807, 2]")   \
    X(reshape, basin_reshape(o->a, BASIN_SHAPE(7)), "reshape", "'a' [2, 3]", "[7]")                \
    X(reshape_negative, basin_reshape(o->a, BASIN_SHAPE(-2, -3)), "reshape", "[2, 3]", "[-2, -3]") \
    X(permute_twice, basin_permute(o->a, (int[]){0, 0}), "permute", "[2, 3]")                      \
    X(permute_far, basin_permute(o->a, (int[]){0, 2}), "permute", "[2, 3]")                        \
    X(transpose, basin_transpose(o->b), "transpose", "'b' [4]", "rank 1")                          \
    X(slice_axis, basin_slice(o->a, 2, 0, 1), "slice", "axis 2", "[2, 3]")                         \
    X(slice_axis_below, basin_slice(o->a, -3, 0, 1), "slice", "axis -3", "[2, 3]")                 \
    X(slice_far, basin_slice(o->a, 1, 2, 2), "slice", "[2, 3]")                                    \
    X(slice_negative, basin_slice(o->a, 1, -1, 2), "slice", "-1", "[2, 3]")                        \
    X(slice_huge, basin_slice(o->a, 1, INT64_MAX, 2), "slice", "[2, 3]")                           \
    X(pad_axis, basin_pad(o->a, 5, 1, 1), "pad", "axis 5", "[2, 3]")                               \
    X(pad_negative, basin_pad(o->a, 0, -1, 1), "pad", "-1")                                        \
    X(pad_huge, basin_pad(o->a, 0, INT64_MAX, INT64_MAX), "pad", "9223372036854775807")            \
    X(concat, basin_concat((basin_expr[]){o->a, o->b}, 2, 0), "concat", "'a' [2, 3]", "'b' [4]")   \
    X(concat_axis, basin_concat((basin_expr[]){o->a, o->a}, 2, 2), "concat", "axis 2", "[2, 3]")   \
    X(gather_real, basin_take(o->a, 0, o->b), "take", "'a' [2, 3]", "'b' [4]")                     \
    X(gather_scalar, basin_take(o->s, 0, o->index), "take", "[]")                                  \
    X(scatter_count, basin_scatter(o->a, o->index, 3), "scatter", "'a' [2, 3]", "'index' [5]")     \
    X(scatter_rows, basin_scatter(o->a, o->seed, -1), "scatter", "-1")                             \
    X(sum_axis, basin_sum(o->a, 2, 1), "sum", "axis 2", "[2, 3]")                                  \
    X(sum_count, basin_sum(o->a, 1, 2), "sum", "2 axes from 1", "[2, 3]")                          \
    X(mean_axis, basin_mean(o->a, -3, 1), "axis -3", "[2, 3]")                                     \
    X(maximum, basin_max(o->a, 0, 3), "maximum", "3 axes", "[2, 3]")                               \
    X(logsumexp, basin_logsumexp(o->s, -1), "logsumexp", "scalar")                                 \
    X(softmax, basin_softmax(o->s, -1), "softmax", "scalar")                                       \
    X(layernorm_delta, basin_layernorm(o->a, o->s, o->b, 1e-5), "layernorm", "x 'a' [2, 3]",       \
      "delta 'b' [4]")                                                                             \
    X(layernorm_gamma, basin_layernorm(o->a, o->b, o->b, 1e-5), "layernorm", "[2, 3]", "[4]")      \
    X(matmul, basin_matmul(o->a, o->b), "matmul", "[2, 3]", "[4]")                                 \
    X(matmul_inner, basin_matmul(o->a, o->a), "matmul", "'a' [2, 3] and 'a' [2, 3]")               \
    X(matmul_batch, basin_matmul(o->a, o->c), "matmul", "[2, 3]", "[2, 3, 4]")                     \
    X(matmul_transposed, basin_matmul_t(o->c, true, o->a, false), "matmul",                        \
      "[2, 3, 4] (transposed)", "[2, 3]")                                                          \
    X(einsum_sizes, basin_einsum("ab,bc->ac", o->a, o->a), "ab,bc->ac",                            \
      "'a' [2, 3] and 'a' [2, 3]")                                                                 \
    X(einsum_rank, basin_einsum("abc,bc->a", o->a, o->a), "abc,bc->a", "[2, 3]")                   \
    X(einsum_twice, basin_einsum("aa,ab->b", o->a, o->a), "aa,ab->b")                              \
    X(einsum_unknown, basin_einsum("ab,ab->c", o->a, o->a), "ab,ab->c")                            \
    X(einsum_syntax, basin_einsum("ab;ab->a", o->a, o->a), "ab;ab->a")                             \
    X(einsum_open, basin_einsum("ab,ab", o->a, o->a), "'ab,ab'")                                   \
    X(conv_channels,                                                                               \
      basin_conv2d(o->x, basin_input(o->graph, "k", BASIN_SHAPE(2, 2, 3, 1)), 1, 1), "conv2d",     \
      "[1, 4, 4, 2]", "[2, 2, 3, 1]")                                                              \
    X(conv_rank, basin_conv2d(o->a, o->x, 1, true), "conv2d", "[2, 3]", "[1, 4, 4, 2]")            \
    X(conv_stride, basin_conv2d(o->x, basin_input(o->graph, "k", BASIN_SHAPE(2, 2, 2, 1)), 0, 1),  \
      "conv2d", "[1, 4, 4, 2]", "[2, 2, 2, 1]")                                                    \
    X(conv_large, basin_conv2d(o->x, basin_input(o->graph, "k", BASIN_SHAPE(5, 2, 2, 1)), 1, 0),   \
      "conv2d", "[1, 4, 4, 2]", "[5, 2, 2, 1]")                                                    \
    X(avgpool, basin_pool2d(o->x, BASIN_POOL_AVERAGE, 5, 1), "pool2d", "[1, 4, 4, 2]", "[5, 5]")   \
    X(maxpool, basin_pool2d(o->a, BASIN_POOL_MAX, 2, 1), "pool2d", "[2, 3]", "[2, 2]")             \
    X(maxpool_window, basin_pool2d(o->x, BASIN_POOL_MAX, 0, 1), "pool2d", "[0, 0]")                \
    X(normal, basin_normal(o->index, BASIN_SHAPE(3)), "seed", "[5]")                               \
    X(uniform, basin_uniform(o->b, BASIN_SHAPE(3)), "seed", "[4]")                                 \
    X(dropout_rate, basin_dropout(o->a, 1, o->index), "dropout of 1", "rate < 1")                  \
    X(dropout_seed, basin_dropout(o->a, 0.5, o->b), "seed", "[4]")                                 \
    X(causal_rank, basin_causal_logsumexp(o->a, 1, false), "causal logsumexp", "[2, 3]", "heads")  \
    X(causal_softmax_rank, basin_causal_softmax(o->a, 1, false), "causal softmax", "[2, 3]")       \
    X(dropped_rate, dropped(o->c, 1, o->index), "dropout of 1", "rate < 1")                        \
    X(dropped_seed, dropped(o->c, 0.5, o->b), "seed", "[4]")                                       \
    X(attend_rank, basin_attention_lse(o->a, o->q, o->beta, &BASIN_ALL_PAIRS, NULL), "attention",  \
      "[2, 3]")                                                                                    \
    X(attend_heads,                                                                                \
      basin_attention_lse(o->q, basin_transpose(o->q), o->beta, &BASIN_ALL_PAIRS, NULL),           \
      "attention", "[1, 4, 2, 3]", "[1, 4, 3, 2]")                                                 \
    X(attend_beta, basin_attention_lse(o->q, o->q, o->b, &BASIN_ALL_PAIRS, NULL), "attention",     \
      "beta", "'b' [4]")                                                                           \
    X(attend_scale,                                                                                \
      basin_attention_lse(o->q, o->q, o->beta, &BASIN_ALL_PAIRS,                                   \
                          &(basin_lse_options){.scale = o->a}),                                    \
      "attention", "[2, 3]", "[16, 2]")                                                            \
    X(attend_mix,                                                                                  \
      basin_attention_lse(o->q, o->q, o->beta, &BASIN_ALL_PAIRS,                                   \
                          &(basin_lse_options){.mix = o->a}),                                      \
      "attention", "[2, 3]", "[2, 2]")                                                             \
    X(attend_self,                                                                                 \
      basin_attention_lse(basin_slice(o->q, 0, 0, 2), o->q, o->beta, &BASIN_OTHER_PAIRS, NULL),    \
      "attention", "2 queries", "4 keys")                                                          \
    X(attend_list, basin_attention_lse(o->q, o->q, o->beta, &o->bad_list, NULL), "attention",      \
      "4 queries", "4 keys")                                                                       \
    X(attend_tokens,                                                                               \
      basin_attention_lse(basin_slice(o->q, 0, 0, 2), o->q, o->beta, &o->list, NULL), "attention", \
      "2 queries", "4 keys")                                                                       \
    X(pair_dot, basin_pair_dot(o->q, o->a, &o->list), "pair_dot", "[4, 2, 3]", "[2, 3]")           \
    X(pair_dot_list, basin_pair_dot(o->q, o->q, &o->bad_list), "4 queries", "4 keys")              \
    X(pair_dot_dense, basin_pair_dot(o->q, o->q, &BASIN_ALL_PAIRS), "pair_dot", "list")            \
    X(pair_sum, basin_pair_sum(o->a, o->q, &o->list), "pair_sum", "[2, 3]", "[6, 2]")              \
    X(pair_sum_dense, basin_pair_sum(o->a, o->q, &BASIN_ALL_PAIRS), "pair_sum", "list")            \
    X(declared_shape, basin_input(o->graph, "a", BASIN_SHAPE(3, 2)), "'a'", "[3, 2]", "[2, 3]")    \
    X(declared_kind, basin_index(o->graph, "b", BASIN_SHAPE(4)),                                   \
      "'b' is declared as an index input, it was an input before")                                 \
    X(declared_role, basin_state(o->graph, "a", BASIN_SHAPE(2, 3)),                                \
      "'a' is declared as a state, it was an input before")                                        \
    X(declared_nameless, basin_input(o->graph, NULL, BASIN_SHAPE(3, 2)),                           \
      "an input of shape [3, 2] has no name")                                                      \
    X(of_result, basin_add(basin_exp(basin_matmul(basin_transpose(o->a), o->a)), o->b),            \
      "add: exp(..) [3, 3] and 'b' [4]")                                                           \
    X(of_results, basin_matmul(basin_mul(o->a, basin_sin(o->a)), basin_scale(o->b, 0.5)),          \
      "matmul: mul('a', ..) [2, 3] and mul(0.5, 'b') [4]")                                         \
    X(declared_size, basin_input(o->graph, "z", BASIN_SHAPE(4, -1)), "'z'", "[4, -1]")             \
    X(cotangent, cotangent_of(o), "vjp", "[2, 3]", "[4]")

#define BUILD(name, expression, ...)                                                               \
    static basin_expr name(const operands *o) { return expression; }
CASES(BUILD)

static const struct {
    const char *name;
    build *build;
    const char *says[MISFIT_SAYS]; /* all of these are in the message */
} cases[] = {CASES(MISFIT)};

TEST(test_builders) {
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        operands o = make_operands();
        assert_null(basin_graph_error(o.graph));
        basin_expr made = cases[i].build(&o);
        wrong += !misfit_told(cases[i].name, made, o.graph, cases[i].says);
        basin_graph_free(o.graph);
    }
    assert_int_equal(wrong, 0);
}

TEST(test_first_error_stays) {
    operands o = make_operands();
    assert_null(basin_add(o.a, o.b));
    assert_null(basin_reshape(o.a, BASIN_SHAPE(7)));
    assert_null(basin_graph_fail(o.graph, BASIN_IO, "another"));
    const basin_error *error = basin_graph_error(o.graph);
    assert_int_equal(error->status, BASIN_BAD_SHAPE);
    assert_string_equal(error->text, "add: 'a' [2, 3] and 'b' [4] do not broadcast");
    basin_graph_free(o.graph);
    BASIN_AT_EXIT(free_graph) basin_graph *graph = basin_graph_new();
    assert_null(basin_graph_fail(graph, BASIN_UNSUPPORTED, "number %d", 7));
    assert_string_equal(basin_graph_error(graph)->text, "number 7");
}

/* NULL in, NULL out, and no message of its own. */
TEST(test_null_passes) {
    operands o = make_operands();
    basin_expr a = o.a, none = NULL, gradient[2] = {a, a};
    const basin_pattern *all = &BASIN_ALL_PAIRS;
    basin_expr (*const unary[])(basin_expr) = {
        basin_neg,       basin_abs,     basin_sign,     basin_sqrt,       basin_exp,
        basin_log,       basin_log1p,   basin_expm1,    basin_tanh,       basin_sigmoid,
        basin_softplus,  basin_lncosh,  basin_relu,     basin_heaviside,  basin_sin,
        basin_cos,       basin_erf,     basin_square,   basin_reciprocal, basin_stop_gradient,
        basin_transpose, basin_sum_all, basin_mean_all, basin_max_all,    basin_keep};
    basin_expr (*const binary[])(basin_expr, basin_expr) = {
        basin_add,     basin_sub,     basin_mul,   basin_div,    basin_maximum, basin_atan2,
        basin_minimum, basin_greater, basin_equal, basin_matmul, basin_grad};
    for (size_t i = 0; i < sizeof unary / sizeof *unary; i++)
        if (unary[i](none)) fail_msg("unary expression %zu is there", i);
    for (size_t i = 0; i < sizeof binary / sizeof *binary; i++)
        if (binary[i](a, none) || binary[i](none, a) || binary[i](none, none))
            fail_msg("binary expression %zu is there", i);
    basin_expr made[] = {basin_power_scalar(none, 0),
                         basin_power_scalar(none, 1),
                         basin_power_scalar(none, 2),
                         basin_power_scalar(none, 3),
                         basin_scale(none, 2),
                         basin_offset(none, 2),
                         basin_where(none, a, a),
                         basin_where(a, none, a),
                         basin_where(a, a, none),
                         basin_reshape(none, BASIN_SHAPE(2)),
                         basin_permute(none, (int[]){0}),
                         basin_broadcast_to(none, BASIN_SHAPE(2)),
                         basin_slice(none, 0, 0, 1),
                         basin_pad(none, 0, 1, 1),
                         basin_concat((basin_expr[]){none, a}, 2, 0),
                         basin_concat((basin_expr[]){a, none}, 2, 0),
                         basin_take(none, 0, o.index),
                         basin_take(a, 0, none),
                         basin_scatter(none, o.index, 2),
                         basin_scatter(a, none, 2),
                         basin_sum(none, 0, 1),
                         basin_mean(none, 0, 1),
                         basin_max(none, 0, 1),
                         basin_logsumexp(none, -1),
                         basin_softmax(none, -1),
                         basin_layernorm(none, a, a, 1),
                         basin_layernorm(a, none, a, 1),
                         basin_einsum("ab,ab->", none, a),
                         basin_einsum("ab,ab->", a, none),
                         basin_conv2d(none, a, 1, true),
                         basin_conv2d(a, none, 1, true),
                         basin_pool2d(none, BASIN_POOL_AVERAGE, 1, 1),
                         basin_pool2d(none, BASIN_POOL_MAX, 1, 1),
                         basin_normal(none, BASIN_SHAPE(2)),
                         basin_uniform(none, BASIN_SHAPE(2)),
                         basin_dropout(none, 0.5, o.index),
                         basin_causal_logsumexp(none, 1, false),
                         basin_causal_softmax(none, 1, false),
                         basin_attention_lse(none, a, a, all, NULL),
                         basin_attention_lse(a, none, a, all, NULL),
                         basin_attention_lse(a, a, none, all, NULL),
                         basin_pair_dot(none, a, all),
                         basin_pair_dot(a, none, all),
                         basin_pair_sum(none, a, all),
                         basin_pair_sum(a, none, all),
                         basin_input(NULL, "x", BASIN_SCALAR),
                         basin_scalar(NULL, 1),
                         basin_full(NULL, BASIN_SHAPE(2), 1)};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (made[i]) fail_msg("expression %zu is there", i);
    basin_vjp(gradient, none, NULL, &a, 1);
    assert_null(gradient[0]);
    assert_null(basin_expr_graph(none));
    assert_int_equal(basin_expr_shape(none).rank, 0);
    assert_string_equal(basin_expr_name(none), "");
    assert_null(basin_graph_error(o.graph));
    basin_graph_free(o.graph);
    assert_int_equal(basin_graph_error(NULL)->status, BASIN_NO_MEMORY);
    basin_graph_free(NULL);
}

TEST(test_two_graphs) {
    operands o = make_operands(), p = make_operands();
    basin_expr x = basin_full(p.graph, BASIN_SHAPE(2, 3), 2);
    for (int i = 0; i < 40; i++) x = basin_sin(x); /* numbers that the other graph does not have */
    assert_null(basin_add(o.a, x));
    assert_non_null(strstr(basin_graph_error(o.graph)->text, "graph"));
    basin_graph_free(o.graph);
    o = make_operands();
    assert_null(basin_concat((basin_expr[]){o.a, x}, 2, 0));
    assert_non_null(basin_graph_error(o.graph));
    basin_graph_free(o.graph);
    o = make_operands();
    assert_null(basin_where(o.a, x, x));
    basin_graph_free(o.graph);
    o = make_operands();
    assert_null(basin_matmul_t(o.a, false, x, true));
    assert_non_null(basin_graph_error(o.graph));
    basin_graph_free(o.graph);
    o = make_operands();
    assert_null(basin_grad(basin_sum_all(o.a), x));
    assert_non_null(strstr(basin_graph_error(o.graph)->text, "graph"));
    basin_graph_free(o.graph);
    basin_graph_free(p.graph);
}

/* ---- plans ---- */

typedef struct bench {
    basin_backend *backend;
    basin_store *store;
    operands o;
} bench;

static void open_bench(bench *b) {
    assert_ok(basin_backend_open(&b->backend, &(basin_compute){.backend = "ref", .threads = 1},
                                 &failure));
    assert_int_equal(basin_store_new(&b->store, b->backend, NULL), BASIN_OK);
    b->o = make_operands();
}

static void close_bench(bench *b) {
    basin_graph_free(b->o.graph);
    basin_store_free(b->store);
    basin_backend_close(b->backend);
}

static void refused(bench *b, const basin_plan_spec *spec, basin_status status, const char *says) {
    basin_plan *plan = (basin_plan *)b;
    basin_error error = {0};
    assert_int_equal(basin_plan_new(&plan, b->store, spec, &error), status);
    assert_int_equal(error.status, status);
    assert_null(plan);
    if (!strstr(error.text, says)) fail_msg("'%s' does not say '%s'", error.text, says);
    assert_int_equal(basin_plan_new(&plan, b->store, spec, NULL), status);
}

TEST(test_plan_refuses) {
    bench b;
    open_bench(&b);
    operands *o = &b.o;
    basin_expr p = basin_state(o->graph, "p", BASIN_SHAPE(2, 3)), none = NULL;
    basin_update update[2] = {{p, o->b}, {p, o->a}};
    refused(&b, &(basin_plan_spec){.output = &none, .outputs = 1}, BASIN_BAD_VALUE, "output 0");
    refused(&b, &(basin_plan_spec){0}, BASIN_BAD_VALUE, "without outputs");
    refused(&b, &(basin_plan_spec){.update = update, .updates = 1}, BASIN_BAD_SHAPE, "[2, 3]");
    update[0].value = NULL;
    refused(&b, &(basin_plan_spec){.update = update, .updates = 2}, BASIN_BAD_VALUE, "NULL");
    update[0].value = o->a;
    refused(&b, &(basin_plan_spec){.update = update, .updates = 2}, BASIN_BAD_VALUE, "'p'");
    update[0].state = o->a;
    refused(&b, &(basin_plan_spec){.update = update, .updates = 1}, BASIN_BAD_VALUE, "state");
    operands other = make_operands();
    basin_expr two[] = {o->a, other.a};
    refused(&b, &(basin_plan_spec){.output = two, .outputs = 2}, BASIN_BAD_VALUE, "two graphs");
    basin_graph_free(other.graph);
    basin_tensor t;
    assert_int_equal(basin_tensor_new(&t, BASIN_F32, BASIN_SHAPE(5), NULL), BASIN_OK);
    assert_int_equal(basin_store_write(b.store, "p", &t, NULL), BASIN_OK);
    refused(&b, &(basin_plan_spec){.output = &p, .outputs = 1}, BASIN_BAD_SHAPE, "[5]");
    basin_tensor_free(&t);
    basin_add(o->a, o->b);
    refused(&b, &(basin_plan_spec){.output = &o->a, .outputs = 1}, BASIN_BAD_SHAPE,
            "add: 'a' [2, 3] and 'b' [4] do not broadcast");
    close_bench(&b);
}

/* Sizes that fit an int64_t but no memory. */
TEST(test_huge) {
    bench b;
    open_bench(&b);
    basin_graph *g = b.o.graph;
    for (int bits = 50; bits < 63; bits++) {
        char name[20];
        snprintf(name, sizeof name, "huge %d", bits);
        basin_expr x = basin_input(g, name, BASIN_SHAPE((int64_t)1 << bits));
        basin_expr wide = basin_full(g, BASIN_SHAPE((int64_t)1 << bits), bits), y[4];
        for (int i = 0; i < 4; i++) y[i] = basin_softmax(basin_offset(wide, i), -1);
        refused(&b, &(basin_plan_spec){.output = &x, .outputs = 1}, BASIN_NO_MEMORY, "memory");
        refused(&b, &(basin_plan_spec){.output = y, .outputs = 4}, BASIN_NO_MEMORY, "memory");
    }
    close_bench(&b);
}

static basin_status write_index(basin_plan *plan, basin_expr input, basin_dtype dtype,
                                const double *number, int64_t count, basin_error *error) {
    basin_tensor t, from = basin_tensor_view(number, BASIN_F64, BASIN_SHAPE(count));
    assert_int_equal(basin_tensor_new(&t, dtype, BASIN_SHAPE(count), NULL), BASIN_OK);
    assert_int_equal(basin_tensor_convert(&t, &from, NULL), BASIN_OK);
    basin_status status = basin_plan_write(plan, input, &t, error);
    basin_tensor_free(&t);
    return status;
}

TEST(test_index_bounds) {
    bench b;
    open_bench(&b);
    basin_error error;
    basin_plan *plan;
    basin_expr table = basin_input(b.o.graph, "table", BASIN_SHAPE(7, 2));
    basin_expr out[2] = {basin_take(table, 0, b.o.index),
                         basin_scatter(basin_take(table, 0, b.o.index), b.o.index, 4)};
    assert_ok(
        basin_plan_new(&plan, b.store, &(basin_plan_spec){.output = out, .outputs = 2}, &failure));
    basin_expr i = b.o.index;
    const basin_dtype dtypes[] = {BASIN_I32, BASIN_I64, BASIN_F64, BASIN_F32, BASIN_I8};
    for (int k = 0; k < 5; k++) {
        basin_dtype d = dtypes[k];
        assert_ok(write_index(plan, i, d, (double[]){0, 3, -1, 1, 2}, 5, &failure));
        assert_says(write_index(plan, i, d, (double[]){0, 3, -1, 4, 2}, 5, &failure),
                    BASIN_BAD_VALUE, "input 'index': element 3 is 4, expected -1 to 3");
        assert_int_equal(write_index(plan, i, d, (double[]){0, 3, -2, 3, 2}, 5, NULL),
                         BASIN_BAD_VALUE);
    }
    assert_says(write_index(plan, i, BASIN_I64, (double[]){0, 1e10, 0, 0, 0}, 5, &failure),
                BASIN_BAD_VALUE, "input 'index': element 1 is 10000000000, expected -1 to 3");
    assert_int_equal(write_index(plan, i, BASIN_F64, (double[]){0, 0.0 / 0.0, 0, 0, 0}, 5, &error),
                     BASIN_BAD_VALUE);
    assert_int_equal(write_index(plan, i, BASIN_F64, (double[]){0, 1e300, 0, 0, 0}, 5, &error),
                     BASIN_BAD_VALUE);
    for (int k = 2; k < 4; k++) { /* of real numbers, only whole ones are indices */
        const double half[] = {0, 1, 1.5, 0, 0}, below[] = {0, 1, -0.5, 0, 0};
        assert_says(write_index(plan, i, dtypes[k], half, 5, &failure), BASIN_BAD_VALUE,
                    "input 'index': element 2 is 1.5, expected a whole number");
        assert_int_equal(write_index(plan, i, dtypes[k], below, 5, &error), BASIN_BAD_VALUE);
    }
    assert_says(write_index(plan, i, BASIN_I32, (double[]){0, 1}, 2, &failure), BASIN_BAD_SHAPE,
                "input 'index' has shape [5], the tensor has [2]");
    assert_int_equal(write_index(plan, out[0], BASIN_I32, (double[]){0}, 1, &error),
                     BASIN_BAD_VALUE);
    basin_plan_free(plan);
    close_bench(&b);
}

TEST(test_list_bounds) {
    bench b;
    open_bench(&b);
    basin_error error;
    basin_plan *plan;
    basin_graph *g = b.o.graph;
    basin_expr row = basin_index(g, "row", BASIN_SHAPE(5)),
               key = basin_index(g, "key", BASIN_SHAPE(6));
    basin_pattern list = {.row = row,
                          .key = key,
                          .column = basin_index(g, "column", BASIN_SHAPE(5)),
                          .query = basin_index(g, "query", BASIN_SHAPE(6)),
                          .pair = basin_index(g, "pair", BASIN_SHAPE(6))};
    basin_expr lse = basin_attention_lse(b.o.q, b.o.q, b.o.beta, &list, NULL);
    assert_ok(
        basin_plan_new(&plan, b.store, &(basin_plan_spec){.output = &lse, .outputs = 1}, &failure));
    assert_int_equal(write_index(plan, row, BASIN_I32, (double[]){0, 1, 3, 3, 6}, 5, &error), 0);
    assert_says(write_index(plan, row, BASIN_I32, (double[]){0, 3, 1, 3, 6}, 5, &failure),
                BASIN_BAD_VALUE, "input 'row': element 2 is 1, less than the one before (3)");
    assert_says(write_index(plan, row, BASIN_I32, (double[]){0, 1, 3, 3, 7}, 5, &failure),
                BASIN_BAD_VALUE, "input 'row': element 4 is 7, expected 0 to 6");
    assert_says(write_index(plan, key, BASIN_I32, (double[]){0, 1, 2, 3, 2, 4}, 6, &failure),
                BASIN_BAD_VALUE, "input 'key': element 5 is 4, expected 0 to 3");
    assert_int_equal(write_index(plan, key, BASIN_I32, (double[]){3, 1, 2, 3, 2, 0}, 6, &error), 0);
    basin_plan_free(plan);
    close_bench(&b);
}

TEST(test_reading) {
    bench b;
    open_bench(&b);
    basin_plan *plan;
    basin_expr y = basin_sin(b.o.a), other = basin_cos(b.o.a);
    double data[6] = {0};
    basin_tensor t = basin_tensor_borrow(data, BASIN_F64, BASIN_SHAPE(3, 2));
    assert_ok(
        basin_plan_new(&plan, b.store, &(basin_plan_spec){.output = &y, .outputs = 1}, &failure));
    assert_failure(basin_plan_read(&t, plan, y, &failure), BASIN_BAD_SHAPE, "[3, 2]");
    t.shape = BASIN_SHAPE(2, 3);
    assert_int_equal(basin_plan_read(&t, plan, other, &failure), BASIN_BAD_VALUE);
    assert_int_equal(basin_plan_read(&t, plan, NULL, &failure), BASIN_BAD_VALUE);
    assert_true(basin_plan_scalar(plan, y) != basin_plan_scalar(plan, y)); /* NaN */
    assert_int_equal(basin_plan_write(plan, y, &t, &failure), BASIN_BAD_VALUE);
    assert_int_equal(basin_plan_write(plan, NULL, &t, &failure), BASIN_BAD_VALUE);
    basin_plan_free(plan);
    basin_plan_free(NULL);
    close_bench(&b);
}

/* A name used twice is reported when it is declared, not by the optimiser's updates. */
TEST(test_parameters) {
    BASIN_AT_EXIT(free_graph) basin_graph *graph = basin_graph_new();
    basin_params params;
    basin_params_begin(&params, graph);
    const basin_init one = {BASIN_INIT_CONSTANT, 1};
    assert_non_null(basin_param_add(&params, "head.", "w", BASIN_SHAPE(3), one));
    assert_non_null(basin_param_add(&params, "head.", "b", BASIN_SHAPE(3), one));
    assert_null(basin_param_add(&params, "", "head.w", BASIN_SHAPE(3), one));
    assert_string_equal(basin_graph_error(graph)->text, "there are two parameters named 'head.w'");
    assert_int_equal(params.count, 2);
    basin_params_free(&params);
}
