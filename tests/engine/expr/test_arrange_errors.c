/* Arrangements, choices and constants of operands that do not fit: one message that says what was
 * found, and NULL passed on without one. */
#include <string.h>

#include "engine/expr/graph.h"
#include "engine/expr/misfit.h"

typedef struct operands {
    basin_graph *graph;
    basin_expr a, s, index; /* [2, 3], [], index [5] */
} operands;

typedef basin_expr build(const operands *o);

#define CASES(X)                                                                                   \
    X(reshape_two, basin_reshape(o->a, BASIN_SHAPE(-1, -1)), "'a' [2, 3]", "[-1, -1]")             \
    X(reshape_rest, basin_reshape(o->a, BASIN_SHAPE(4, -1)), "'a' [2, 3]", "[4, -1]")              \
    X(insert_far, basin_expand_dims(o->a, 4, 1), "axes_insert: 1 axes at 4", "'a' [2, 3]")         \
    X(insert_many, basin_expand_dims(o->a, 0, 7), "axes_insert: 7 axes", "'a' [2, 3]")             \
    X(stack_shapes, basin_stack((basin_expr[]){o->a, basin_transpose(o->a)}, 2, 0), "[1, 2, 3]",   \
      "[1, 3, 2]")                                                                                 \
    X(stride_axis, basin_stride(o->a, 2, 0, 1, 1), "stride: axis 2", "'a' [2, 3]")                 \
    X(stride_step, basin_stride(o->a, 1, 0, 2, 0), "2 elements from 0", "steps of 0",              \
      "'a' [2, 3]")                                                                                \
    X(stride_start, basin_stride(o->a, 1, 4, 1, 2), "1 elements from 4", "'a' [2, 3]")             \
    X(stride_back, basin_stride(o->a, 1, 1, 3, -1), "3 elements from 1", "steps of -1")            \
    X(roll_axis, basin_roll(o->s, 0, 1), "roll: axis 0", "'s' []")                                 \
    X(take_index, basin_take(o->a, 1, o->a), "'a' [2, 3]", "index tensor")                         \
    X(diagonal_same, basin_diagonal(o->a, 1, -1), "axes 1 and 1", "'a' [2, 3]")                    \
    X(diagonal_length, basin_diagonal(o->a, 0, 1), "axes 0 and 1", "'a' [2, 3]")                   \
    X(cumsum_axis, basin_cumsum(o->a, 2), "cumsum: axis 2", "'a' [2, 3]")                          \
    X(cumsum_index, basin_cumsum(o->index, 0), "index")                                            \
    X(softmax_axis, basin_softmax(o->a, 2), "softmax: axis 2", "'a' [2, 3]")                       \
    X(logsumexp_axis, basin_logsumexp(o->s, 0), "logsumexp: axis 0", "'s' []")                     \
    X(iota_negative, basin_arange(o->graph, -1), "iota: -1")                                       \
    X(eye_negative, basin_eye(o->graph, -2), "iota: -2")                                           \
    X(constant_size, basin_leaf_data(o->graph, BASIN_INDEX, BASIN_SHAPE(-1), NULL), "[-1]")        \
    X(from_real, basin_from_index(o->a, 3), "from_index: 'a' [2, 3]", "index tensor")              \
    X(to_none, basin_to_index(o->a, 0), "to_index: 'a' [2, 3]", "1 to")                            \
    X(one_hot_none, basin_one_hot(o->index, 0), "one_hot: 'index' [5] among 0")                    \
    X(argmax_axis, basin_argmax(o->a, 2), "argmax: axis 2", "'a' [2, 3]")                          \
    X(argmax_empty, basin_argmax(basin_slice(o->a, 1, 0, 0), 1), "argmax: 1 elements of axis 1",   \
      "[2, 0]")                                                                                    \
    X(top_many, basin_top_k(o->a, 4, 1, NULL), "top: 4 elements of axis 1", "'a' [2, 3]")          \
    X(top_most, basin_top_k(basin_full(o->graph, BASIN_SHAPE(99), 1), 65, 0, NULL),                \
      "top: the 65 largest", "1 to 64")                                                            \
    X(iota_large, basin_arange(o->graph, (1 << 24) + 1), "iota: 16777217", "0 to 16777216")        \
    X(one_hot_large, basin_one_hot(o->index, (1 << 24) + 1), "16777217", "0 to 16777216")          \
    X(labels_shape, basin_cross_entropy_labels(o->a, o->index), "scores 'a' [2, 3]",               \
      "labels 'index' [5]")                                                                        \
    X(labels_real, basin_cross_entropy_labels(o->a, basin_sum(o->a, 1, 1)), "scores 'a' [2, 3]",   \
      "index tensor")                                                                              \
    X(sparsemax_scalar, basin_sparse_softmax(o->s, BASIN_SPARSE_SPARSEMAX), "sparsemax",           \
      "'s' [] is a scalar")                                                                        \
    X(entmax_scalar, basin_sparse_conjugate(o->s, BASIN_SPARSE_ENTMAX15), "entmax15", "scalar")    \
    X(normmax_scalar, basin_sparse_softmax(o->s, BASIN_SPARSE_NORMMAX2), "normmax2", "scalar")     \
    X(power_shapes, basin_power(o->a, basin_transpose(o->a)), "[2, 3]", "[3, 2]")                  \
    X(einsum_three, basin_einsum_many("ab,bc,cd->ad", (basin_expr[]){o->a, o->a, o->a}, 3),        \
      "'ab,bc,cd->ad'", "..")                                                                      \
    X(einsum_one, basin_einsum_many("ab->c", (basin_expr[]){o->a}, 1), "'ab->c'", "'a' [2, 3]")    \
    X(einsum_twice_out, basin_einsum_many("ab->aa", (basin_expr[]){o->a}, 1), "'ab->aa'",          \
      "'a' [2, 3]")

#define BUILD(name, expression, ...)                                                               \
    static basin_expr name(const operands *o) { return expression; }
CASES(BUILD)

static const struct {
    const char *name;
    build *build;
    const char *says[MISFIT_SAYS]; /* all of these are in the message */
} cases[] = {CASES(MISFIT)};

static operands make_operands(void) {
    operands o = {.graph = basin_graph_new()};
    assert_non_null(o.graph);
    o.a = basin_input(o.graph, "a", BASIN_SHAPE(2, 3));
    o.s = basin_input(o.graph, "s", BASIN_SCALAR);
    o.index = basin_index(o.graph, "index", BASIN_SHAPE(5));
    return o;
}

TEST(test_messages) {
    int wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        operands o = make_operands();
        basin_expr made = cases[i].build(&o);
        wrong += !misfit_told(cases[i].name, made, o.graph, cases[i].says);
        basin_graph_free(o.graph);
    }
    assert_int_equal(wrong, 0);
}

/* A step beyond the end, however far, takes the first element. */
TEST(test_far_step) {
    operands o = make_operands();
    assert_ptr_equal(basin_stride(o.a, 1, 1, 1, INT64_MAX), basin_slice(o.a, 1, 1, 1));
    assert_ptr_equal(basin_stride(o.a, 1, 3, 0, INT64_MAX), basin_slice(o.a, 1, 3, 0));
    assert_ptr_equal(basin_stride(o.a, 1, 1, 1, -INT64_MAX), basin_slice(o.a, 1, 1, 1));
    assert_null(basin_graph_error(o.graph));
    basin_graph_free(o.graph);
}

TEST(test_null_passes) {
    operands o = make_operands();
    basin_expr none = NULL, a = o.a, where = a;
    const basin_expr made[] = {basin_expand_dims(none, 0, 1),
                               basin_stack(&none, 1, 0),
                               basin_stride(none, 0, 0, 1, 2),
                               basin_roll(none, 0, 1),
                               basin_take(a, 0, none),
                               basin_take(none, 0, o.index),
                               basin_diagonal(none, 0, 1),
                               basin_cumsum(none, 0),
                               basin_softmax(none, 0),
                               basin_logsumexp(none, 0),
                               basin_constant(NULL, NULL),
                               basin_arange(NULL, 3),
                               basin_eye(NULL, 3),
                               basin_tri(NULL, 3, 3, 0),
                               basin_from_index(none, 1),
                               basin_to_index(none, 1),
                               basin_one_hot(none, 1),
                               basin_argmax(none, 0),
                               basin_top_k(none, 1, 0, &where),
                               where,
                               basin_cross_entropy_labels(a, none),
                               basin_cross_entropy_labels(none, o.index),
                               basin_sparse_softmax(none, BASIN_SPARSE_SPARSEMAX),
                               basin_sparse_softmax(none, BASIN_SPARSE_ENTMAX15),
                               basin_sparse_softmax(none, BASIN_SPARSE_NORMMAX2),
                               basin_sparse_conjugate(none, BASIN_SPARSE_SPARSEMAX),
                               basin_sparse_conjugate(none, BASIN_SPARSE_ENTMAX15),
                               basin_sparse_conjugate(none, BASIN_SPARSE_NORMMAX2),
                               basin_power(none, a),
                               basin_power(a, none),
                               basin_einsum_many("ab->a", &none, 1)};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) assert_null(made[i]);
    assert_null(basin_graph_error(o.graph));
    basin_graph_free(o.graph);
}
