/* Arrangements, choices and constants of operands that do not fit: one message that says what was
 * found, and NULL passed on without one. */
#include <string.h>

#include "expr/graph.h"
#include "expr/misfit.h"

typedef struct operands {
    basin_graph *graph;
    basin_expr a, s, index; /* [2, 3], [], index [5] */
} operands;

typedef basin_expr build(const operands *o);
#define BUILD(name, expression)                                                                    \
    static basin_expr name(const operands *o) { return expression; }

BUILD(reshape_two, basin_reshape(o->a, BASIN_SHAPE(-1, -1)))
BUILD(reshape_rest, basin_reshape(o->a, BASIN_SHAPE(4, -1)))
BUILD(insert_far, basin_axes_insert(o->a, 4, 1))
BUILD(insert_many, basin_axes_insert(o->a, 0, 7))
BUILD(stack_shapes, basin_stack((basin_expr[]){o->a, basin_transpose(o->a)}, 2, 0))
BUILD(stride_axis, basin_stride(o->a, 2, 0, 1))
BUILD(stride_step, basin_stride(o->a, 1, 0, 0))
BUILD(stride_start, basin_stride(o->a, 1, 4, 2))
BUILD(flip_axis, basin_flip(o->a, -3))
BUILD(roll_axis, basin_roll(o->s, 0, 1))
BUILD(take_index, basin_take(o->a, 1, o->a))
BUILD(diagonal_same, basin_diagonal(o->a, 1, -1))
BUILD(diagonal_length, basin_diagonal(o->a, 0, 1))
BUILD(cumsum_axis, basin_cumsum(o->a, 2))
BUILD(cumsum_index, basin_cumsum(o->index, 0))
BUILD(softmax_axis, basin_softmax(o->a, 2))
BUILD(logsumexp_axis, basin_logsumexp(o->s, 0))
BUILD(iota_negative, basin_iota(o->graph, -1))
BUILD(eye_negative, basin_eye(o->graph, -2))
BUILD(constant_size, basin_index_constant(o->graph, NULL, BASIN_SHAPE(-1)))
BUILD(from_real, basin_from_index(o->a, 3))
BUILD(to_none, basin_to_index(o->a, 0))
BUILD(one_hot_none, basin_one_hot(o->index, 0))
BUILD(argmax_axis, basin_argmax(o->a, 2))
BUILD(argmax_empty, basin_argmax(basin_slice(o->a, 1, 0, 0), 1))
BUILD(top_many, basin_top(o->a, 4, 1, NULL))
BUILD(top_most, basin_top(basin_fill(o->graph, BASIN_SHAPE(99), 1), 65, 0, NULL))
BUILD(iota_large, basin_iota(o->graph, (1 << 24) + 1))
BUILD(one_hot_large, basin_one_hot(o->index, (1 << 24) + 1))
BUILD(labels_shape, basin_cross_entropy_labels(o->a, o->index))
BUILD(labels_real, basin_cross_entropy_labels(o->a, basin_sum(o->a, 1, 1)))
BUILD(sparsemax_scalar, basin_sparsemax(o->s))
BUILD(entmax_scalar, basin_entmax15_conjugate(o->s))
BUILD(normmax_scalar, basin_normmax2(o->s))
BUILD(power_shapes, basin_power(o->a, basin_transpose(o->a)))
BUILD(einsum_three, basin_einsum_many("ab,bc,cd->ad", (basin_expr[]){o->a, o->a, o->a}, 3))
BUILD(einsum_one, basin_einsum_many("ab->c", (basin_expr[]){o->a}, 1))
BUILD(einsum_twice_out, basin_einsum_many("ab->aa", (basin_expr[]){o->a}, 1))

static const struct {
    const char *name;
    build *build;
    const char *says[MISFIT_SAYS];
} cases[] = {
    MISFIT(reshape_two, "'a' [2, 3]", "[-1, -1]"),
    MISFIT(reshape_rest, "'a' [2, 3]", "[4, -1]"),
    MISFIT(insert_far, "axes_insert: 1 axes at 4", "'a' [2, 3]"),
    MISFIT(insert_many, "axes_insert: 7 axes", "'a' [2, 3]"),
    MISFIT(stack_shapes, "[1, 2, 3]", "[1, 3, 2]"),
    MISFIT(stride_axis, "stride: axis 2", "'a' [2, 3]"),
    MISFIT(stride_step, "every element 0 from 0", "'a' [2, 3]"),
    MISFIT(stride_start, "every element 2 from 4", "'a' [2, 3]"),
    MISFIT(flip_axis, "flip: axis -3", "'a' [2, 3]"),
    MISFIT(roll_axis, "roll: axis 0", "'s' []"),
    MISFIT(take_index, "'a' [2, 3]", "index tensor"),
    MISFIT(diagonal_same, "axes 1 and 1", "'a' [2, 3]"),
    MISFIT(diagonal_length, "axes 0 and 1", "'a' [2, 3]"),
    MISFIT(cumsum_axis, "cumsum: axis 2", "'a' [2, 3]"),
    MISFIT(cumsum_index, "index"),
    MISFIT(softmax_axis, "softmax: axis 2", "'a' [2, 3]"),
    MISFIT(logsumexp_axis, "logsumexp: axis 0", "'s' []"),
    MISFIT(iota_negative, "iota: -1"),
    MISFIT(eye_negative, "iota: -2"),
    MISFIT(constant_size, "[-1]"),
    MISFIT(from_real, "from_index: 'a' [2, 3]", "index tensor"),
    MISFIT(to_none, "to_index: 'a' [2, 3]", "1 to"),
    MISFIT(one_hot_none, "one_hot: 'index' [5] among 0"),
    MISFIT(argmax_axis, "argmax: axis 2", "'a' [2, 3]"),
    MISFIT(argmax_empty, "argmax: 1 elements of axis 1", "[2, 0]"),
    MISFIT(top_many, "top: 4 elements of axis 1", "'a' [2, 3]"),
    MISFIT(top_most, "top: the 65 largest", "1 to 64"),
    MISFIT(iota_large, "iota: 16777217", "0 to 16777216"),
    MISFIT(one_hot_large, "16777217", "0 to 16777216"),
    MISFIT(labels_shape, "scores 'a' [2, 3]", "labels 'index' [5]"),
    MISFIT(labels_real, "scores 'a' [2, 3]", "index tensor"),
    MISFIT(sparsemax_scalar, "sparsemax", "'s' [] is a scalar"),
    MISFIT(entmax_scalar, "entmax15_conjugate", "scalar"),
    MISFIT(normmax_scalar, "normmax2", "scalar"),
    MISFIT(power_shapes, "[2, 3]", "[3, 2]"),
    MISFIT(einsum_three, "'ab,bc,cd->ad'", ".."),
    MISFIT(einsum_one, "'ab->c'", "'a' [2, 3]"),
    MISFIT(einsum_twice_out, "'ab->aa'", "'a' [2, 3]"),
};

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
    assert_ptr_equal(basin_stride(o.a, 1, 1, INT64_MAX), basin_slice(o.a, 1, 1, 1));
    assert_ptr_equal(basin_stride(o.a, 1, 3, INT64_MAX), basin_slice(o.a, 1, 3, 0));
    assert_null(basin_graph_error(o.graph));
    basin_graph_free(o.graph);
}

TEST(test_null_passes) {
    operands o = make_operands();
    basin_expr none = NULL, a = o.a, where = a;
    const basin_expr made[] = {basin_axes_insert(none, 0, 1),
                               basin_stack(&none, 1, 0),
                               basin_stride(none, 0, 0, 2),
                               basin_flip(none, 0),
                               basin_roll(none, 0, 1),
                               basin_take(a, 0, none),
                               basin_take(none, 0, o.index),
                               basin_diagonal(none, 0, 1),
                               basin_cumsum(none, 0),
                               basin_softmax(none, 0),
                               basin_logsumexp(none, 0),
                               basin_constant(NULL, NULL),
                               basin_index_constant(NULL, NULL, BASIN_SHAPE(1)),
                               basin_iota(NULL, 3),
                               basin_eye(NULL, 3),
                               basin_triangle(NULL, 3, 3, 0),
                               basin_from_index(none, 1),
                               basin_to_index(none, 1),
                               basin_one_hot(none, 1),
                               basin_argmax(none, 0),
                               basin_top(none, 1, 0, &where),
                               where,
                               basin_cross_entropy_labels(a, none),
                               basin_cross_entropy_labels(none, o.index),
                               basin_sparsemax(none),
                               basin_entmax15(none),
                               basin_normmax2(none),
                               basin_sparsemax_conjugate(none),
                               basin_entmax15_conjugate(none),
                               basin_normmax2_conjugate(none),
                               basin_power(none, a),
                               basin_power(a, none),
                               basin_einsum_many("ab->a", &none, 1)};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) assert_null(made[i]);
    assert_null(basin_graph_error(o.graph));
    basin_graph_free(o.graph);
}
