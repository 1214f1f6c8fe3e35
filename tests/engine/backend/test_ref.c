/* The reference backend's pointwise operations, movement, reductions, norms and products, against
 * values worked out by hand. */
#include "engine/backend/rig.h"

TEST(pointwise_functions) {
    const struct {
        basin_op op;
        double x, value, y;
    } cases[] = {
        {BASIN_OP_NEG, 2, 0, -2},
        {BASIN_OP_ABS, -2, 0, 2},
        {BASIN_OP_SIGN, -3, 0, -1},
        {BASIN_OP_SIGN, 0, 0, 0},
        {BASIN_OP_SIGN, 0.1, 0, 1},
        {BASIN_OP_SQRT, 9, 0, 3},
        {BASIN_OP_EXP, 1, 0, 2.718281828459045},
        {BASIN_OP_LOG, 10, 0, 2.302585092994046},
        {BASIN_OP_LOG1P, 1e-20, 0, 1e-20},
        {BASIN_OP_EXPM1, 1e-20, 0, 1e-20},
        {BASIN_OP_TANH, 0.5, 0, 0.46211715726000975},
        {BASIN_OP_SIGMOID, 0.5, 0, 0.6224593312018546},
        {BASIN_OP_SIGMOID, -0.5, 0, 0.3775406687981454},
        {BASIN_OP_SIGMOID, -1000, 0, 0},
        {BASIN_OP_SIGMOID, 1000, 0, 1},
        {BASIN_OP_SOFTPLUS, 0, 0, 0.6931471805599453},
        {BASIN_OP_SOFTPLUS, 1000, 0, 1000},
        {BASIN_OP_SOFTPLUS, -1000, 0, 0},
        {BASIN_OP_LNCOSH, 1, 0, 0.4337808304830271},
        {BASIN_OP_LNCOSH, -1000, 0, 999.3068528194401},
        {BASIN_OP_RELU, -1, 0, 0},
        {BASIN_OP_RELU, 2, 0, 2},
        {BASIN_OP_STEP, 0, 0, 0},
        {BASIN_OP_STEP, 0.5, 0, 1},
        {BASIN_OP_SIN, 1, 0, 0.8414709848078965},
        {BASIN_OP_COS, 1, 0, 0.5403023058681398},
        {BASIN_OP_ERF, 0.5, 0, 0.5204998778130465},
        {BASIN_OP_POW, 2, 3, 8},
        {BASIN_OP_POW, 0, 0, 1},
        {BASIN_OP_POW, -2, 3, -8},
        {BASIN_OP_COPY, 7, 0, 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig r = rig_new(cases[i].op);
        r.call.attr.value = cases[i].value;
        rig_in(&r, BASIN_SCALAR, &cases[i].x);
        rig_out(&r, BASIN_SCALAR);
        rig_expect(&r, &cases[i].y);
    }
}

TEST(pointwise_two_operands) {
    const struct {
        basin_op op;
        double y[3];
    } cases[] = {
        {BASIN_OP_ADD, {3, 4, 2}},     {BASIN_OP_SUB, {-1, 0, 4}},  {BASIN_OP_MUL, {2, 4, -3}},
        {BASIN_OP_DIV, {0.5, 1, -3}},  {BASIN_OP_MAX2, {2, 2, 3}},  {BASIN_OP_MIN2, {1, 2, -1}},
        {BASIN_OP_GREATER, {0, 0, 1}}, {BASIN_OP_EQUAL, {0, 1, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig r = rig_new(cases[i].op);
        rig_in(&r, BASIN_SHAPE(3), VALUES(1, 2, 3));
        rig_in(&r, BASIN_SHAPE(3), VALUES(2, 2, -1));
        rig_out(&r, BASIN_SHAPE(3));
        rig_expect(&r, cases[i].y);
    }
}

TEST(pointwise_broadcast) {
    rig r = rig_new(BASIN_OP_ADD); /* [2, 1, 3] + [2, 1] */
    rig_in(&r, BASIN_SHAPE(2, 1, 3), VALUES(1, 2, 3, 4, 5, 6));
    rig_in(&r, BASIN_SHAPE(2, 1), VALUES(10, 20));
    rig_out(&r, BASIN_SHAPE(2, 2, 3));
    rig_expect(&r, VALUES(11, 12, 13, 21, 22, 23, 14, 15, 16, 24, 25, 26));

    r = rig_new(BASIN_OP_SELECT); /* a [2, 2], b a scalar, c [2] */
    rig_in(&r, BASIN_SHAPE(2, 2), VALUES(1, 0, 0, -1));
    rig_in(&r, BASIN_SCALAR, VALUES(5));
    rig_in(&r, BASIN_SHAPE(2), VALUES(7, 8));
    rig_out(&r, BASIN_SHAPE(2, 2));
    rig_expect(&r, VALUES(5, 8, 7, 5));

    r = rig_new(BASIN_OP_COPY);
    rig_in(&r, BASIN_SHAPE(2, 1), VALUES(1, 2));
    rig_out(&r, BASIN_SHAPE(2, 3));
    rig_expect(&r, VALUES(1, 1, 1, 2, 2, 2));
}

TEST(pointwise_empty_and_in_place) {
    rig r = rig_new(BASIN_OP_ADD);
    rig_in(&r, BASIN_SHAPE(0, 3), NULL);
    rig_in(&r, BASIN_SHAPE(3), VALUES(1, 2, 3));
    rig_out(&r, BASIN_SHAPE(0, 3));
    rig_expect(&r, NULL);

    r = rig_new(BASIN_OP_MUL);
    rig_in(&r, BASIN_SHAPE(2, 2), VALUES(1, 2, 3, 4));
    rig_in(&r, BASIN_SHAPE(2), VALUES(10, 100));
    r.call.out[r.call.outs++] = r.call.in[0];
    rig_expect(&r, VALUES(10, 200, 30, 400));
}

/* out0 = relu(x + bias) and out1 = 2 out0^2, x [2, 3] over bias [3]. */
TEST(pointwise_program) {
    basin_instruction instruction[] = {
        {.op = BASIN_INSTRUCTION_LOAD},
        {.op = BASIN_INSTRUCTION_LOAD, .to = 1, .a = 1},
        {.op = BASIN_OP_ADD, .b = 1},
        {.op = BASIN_OP_RELU},
        {.op = BASIN_OP_POW, .to = 1, .value = 2},
        {.op = BASIN_INSTRUCTION_IMMEDIATE, .to = 2, .value = 2},
        {.op = BASIN_OP_MUL, .to = 1, .a = 1, .b = 2},
    };
    basin_program program = {.instructions = 7,
                             .registers = 3,
                             .stores = 2,
                             .instruction = instruction,
                             .store = {0, 1},
                             .domain = BASIN_SHAPE(2, 3),
                             .stride = {{3, 1}, {0, 1}}};
    BASIN_AT_EXIT(rig_free) rig r = rig_new(BASIN_OP_POINTWISE);
    r.call.program = &program;
    rig_in(&r, BASIN_SHAPE(2, 3), VALUES(1, -2, 3, -4, 5, -6));
    rig_in(&r, BASIN_SHAPE(3), VALUES(1, 1, 2));
    rig_out(&r, BASIN_SHAPE(2, 3));
    rig_out(&r, BASIN_SHAPE(2, 3));
    rig_run(&r);
    rig_check(&r, 0, VALUES(2, 0, 5, 0, 6, 0), 0);
    rig_check(&r, 1, VALUES(8, 0, 50, 0, 72, 0), 0);
}

TEST(movement) {
    rig r = rig_new(BASIN_OP_PERMUTE); /* out[k, i, j] = in[i, j, k] */
    memcpy(r.call.attr.axes, (int8_t[]){2, 0, 1}, 3);
    rig_in(&r, BASIN_SHAPE(2, 1, 3), VALUES(1, 2, 3, 4, 5, 6));
    rig_out(&r, BASIN_SHAPE(3, 2, 1));
    rig_expect(&r, VALUES(1, 4, 2, 5, 3, 6));

    r = rig_new(BASIN_OP_SLICE);
    r.call.attr.axis = 1, r.call.attr.start = 1;
    rig_in(&r, BASIN_SHAPE(2, 3, 1), VALUES(1, 2, 3, 4, 5, 6));
    rig_out(&r, BASIN_SHAPE(2, 2, 1));
    rig_expect(&r, VALUES(2, 3, 5, 6));

    r = rig_new(BASIN_OP_PAD);
    r.call.attr.axis = 0, r.call.attr.start = 1;
    rig_in(&r, BASIN_SHAPE(1, 2), VALUES(1, 2));
    rig_out(&r, BASIN_SHAPE(3, 2));
    rig_expect(&r, VALUES(0, 0, 1, 2, 0, 0));

    r = rig_new(BASIN_OP_CONCAT);
    r.call.attr.axis = 1;
    rig_in(&r, BASIN_SHAPE(2, 1), VALUES(1, 2));
    rig_in(&r, BASIN_SHAPE(2, 0), NULL);
    rig_in(&r, BASIN_SHAPE(2, 2), VALUES(3, 4, 5, 6));
    rig_out(&r, BASIN_SHAPE(2, 3));
    rig_expect(&r, VALUES(1, 3, 4, 2, 5, 6));
}

TEST(movement_of_indices) {
    BASIN_AT_EXIT(rig_free) rig r = rig_new(BASIN_OP_SLICE);
    r.call.attr.start = 1;
    rig_index(&r, BASIN_SHAPE(4), INDICES(5, 6, 7, 8));
    r.call.out[r.call.outs++] = rig_operand(&r, BASIN_INDEX, BASIN_SHAPE(2), NULL);
    rig_run(&r);
    assert_memory_equal(rig_result(&r, 0), INDICES(6, 7), 8);
}

TEST(gather_scatter) {
    rig r = rig_new(BASIN_OP_GATHER);
    rig_in(&r, BASIN_SHAPE(3, 2), VALUES(1, 2, 3, 4, 5, 6));
    rig_index(&r, BASIN_SHAPE(4), INDICES(2, -1, 0, 2));
    rig_out(&r, BASIN_SHAPE(4, 2));
    rig_expect(&r, VALUES(5, 6, 0, 0, 1, 2, 5, 6));

    r = rig_new(BASIN_OP_SCATTER);
    rig_in(&r, BASIN_SHAPE(4, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    rig_index(&r, BASIN_SHAPE(4), INDICES(2, -1, 0, 2));
    rig_out(&r, BASIN_SHAPE(3, 2));
    rig_expect(&r, VALUES(5, 6, 0, 0, 8, 10));

    r = rig_new(BASIN_OP_SCATTER); /* of scalars, none of them */
    rig_in(&r, BASIN_SHAPE(0), NULL);
    rig_index(&r, BASIN_SHAPE(0), NULL);
    rig_out(&r, BASIN_SHAPE(2));
    rig_expect(&r, VALUES(0, 0));
}

TEST(bad_index_is_reported_once) {
    basin_error error = {0};
    rig r = rig_new(BASIN_OP_GATHER);
    rig_in(&r, BASIN_SHAPE(2), VALUES(1, 2));
    rig_index(&r, BASIN_SHAPE(3), INDICES(1, 2, -2));
    rig_out(&r, BASIN_SHAPE(3));
    assert_int_equal(rig_try(&r, &error), BASIN_BAD_VALUE);
    assert_string_equal(error.text, "gather: index 2 at element 1 is not in [-1, 2)");
    rig_check(&r, 0, VALUES(2, 0, 0), 0);
    assert_int_equal(r.backend->table->wait(r.backend, &error), BASIN_OK);
    rig_free(&r);

    r = rig_new(BASIN_OP_COUNT);
    assert_int_equal(rig_try(&r, &error), BASIN_UNSUPPORTED);
    rig_free(&r);
}

TEST(reductions) {
    const double *x = VALUES(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -12); /* [2, 3, 2] */
    const struct {
        basin_op op;
        int axis, count;
        basin_shape shape;
        double y[6];
    } cases[] = {
        {BASIN_OP_SUM, 0, 3, BASIN_SCALAR, {54}},
        {BASIN_OP_SUM, 0, 1, BASIN_SHAPE(3, 2), {8, 10, 12, 14, 16, -6}},
        {BASIN_OP_SUM, 1, 1, BASIN_SHAPE(2, 2), {9, 12, 27, 6}},
        {BASIN_OP_SUM, 1, 2, BASIN_SHAPE(2), {21, 33}},
        {BASIN_OP_MAX, 1, 1, BASIN_SHAPE(2, 2), {5, 6, 11, 10}},
        {BASIN_OP_MAX, 2, 1, BASIN_SHAPE(2, 3), {2, 4, 6, 8, 10, 11}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig r = rig_new(cases[i].op);
        r.call.attr.axis = cases[i].axis, r.call.attr.count = cases[i].count;
        rig_in(&r, BASIN_SHAPE(2, 3, 2), x);
        rig_out(&r, cases[i].shape);
        rig_expect(&r, cases[i].y);
    }
    rig r = rig_new(BASIN_OP_SUM); /* of nothing */
    r.call.attr.axis = 1, r.call.attr.count = 1;
    rig_in(&r, BASIN_SHAPE(2, 0), NULL);
    rig_out(&r, BASIN_SHAPE(2));
    rig_expect(&r, VALUES(0, 0));
    r = rig_new(BASIN_OP_SUM); /* over no axis: a copy */
    rig_in(&r, BASIN_SCALAR, VALUES(3));
    rig_out(&r, BASIN_SCALAR);
    rig_expect(&r, VALUES(3));
}

TEST(row_functions) {
    const double *x = VALUES(0, log(2), log(5), 1000, 1000, -1000);
    BASIN_AT_EXIT(rig_free) rig r = rig_new(BASIN_OP_LOGSUMEXP);
    rig_in(&r, BASIN_SHAPE(2, 3), x);
    rig_out(&r, BASIN_SHAPE(2));
    rig_expect(&r, VALUES(log(8), 1000 + log(2)));

    r = rig_new(BASIN_OP_LOGSUMEXP);
    rig_in(&r, BASIN_SHAPE(1, 0), NULL);
    rig_out(&r, BASIN_SHAPE(1));
    rig_expect(&r, VALUES(-INFINITY));

    r = rig_new(BASIN_OP_SOFTMAX);
    rig_in(&r, BASIN_SHAPE(2, 3), x);
    rig_out(&r, BASIN_SHAPE(2, 3));
    rig_run(&r);
    rig_check(&r, 0, VALUES(0.125, 0.25, 0.625, 0.5, 0.5, 0), 1e-13);
}

/* Rows (1, 3) and (2, 2): means 2 and 2, variances 1 and 0. */
TEST(layernorm) {
    rig r = rig_new(BASIN_OP_LAYERNORM);
    r.call.attr.value = 3;
    rig_in(&r, BASIN_SHAPE(2, 2), VALUES(1, 3, 2, 2));
    rig_in(&r, BASIN_SCALAR, VALUES(4));
    rig_in(&r, BASIN_SHAPE(2), VALUES(10, 20));
    rig_out(&r, BASIN_SHAPE(2, 2));
    rig_expect(&r, VALUES(8, 22, 10, 20));
}

static double layernorm_dot(const double *x, double gamma, const double *delta, const double *c) {
    rig r = rig_new(BASIN_OP_LAYERNORM);
    double sum = 0;
    r.call.attr.value = 0.01;
    rig_in(&r, BASIN_SHAPE(2, 3), x);
    rig_in(&r, BASIN_SCALAR, &gamma);
    rig_in(&r, BASIN_SHAPE(3), delta);
    rig_out(&r, BASIN_SHAPE(2, 3));
    rig_run(&r);
    for (int i = 0; i < 6; i++) sum += c[i] * rig_result(&r, 0)[i];
    rig_free(&r);
    return sum;
}

TEST(layernorm_reverse) {
    double x[] = {0.3, -1.2, 0.8, 1.1, 0.2, -0.4}, delta[] = {0.1, 0.2, 0.3};
    const double c[] = {0.5, 1.5, -0.7, 0.9, -1.1, 0.2}, gamma = 1.3, h = 1e-5;
    double dx[6], dgamma, ddelta[3];
    for (int i = 0; i < 6; i++) {
        double keep = x[i];
        x[i] = keep + h, dx[i] = layernorm_dot(x, gamma, delta, c);
        x[i] = keep - h, dx[i] = (dx[i] - layernorm_dot(x, gamma, delta, c)) / (2 * h);
        x[i] = keep;
    }
    dgamma = layernorm_dot(x, gamma + 0.5, delta, c) - layernorm_dot(x, gamma - 0.5, delta, c);
    for (int i = 0; i < 3; i++) ddelta[i] = c[i] + c[3 + i];
    BASIN_AT_EXIT(rig_free) rig r = rig_new(BASIN_OP_LAYERNORM_REVERSE);
    r.call.attr.value = 0.01;
    rig_in(&r, BASIN_SHAPE(2, 3), x);
    rig_in(&r, BASIN_SCALAR, &gamma);
    rig_in(&r, BASIN_SHAPE(2, 3), c);
    rig_out(&r, BASIN_SHAPE(2, 3));
    rig_out(&r, BASIN_SCALAR);
    rig_out(&r, BASIN_SHAPE(3));
    rig_run(&r);
    rig_check(&r, 0, dx, 1e-8);
    rig_check(&r, 1, &dgamma, 1e-12);
    rig_check(&r, 2, ddelta, 1e-14);
    r.call.out[0].block = r.call.out[2].block = -1;
    *rig_result(&r, 1) = NAN;
    rig_run(&r);
    rig_check(&r, 1, &dgamma, 1e-12);
}

/* The same product, its factors stored in all four ways. */
TEST(matmul) {
    const double *a = VALUES(1, 2, 3, 4, 5, 6), *at = VALUES(1, 4, 2, 5, 3, 6);   /* [2, 3] */
    const double *b = VALUES(1, -1, 2, 0, 0, 3), *bt = VALUES(1, 2, 0, -1, 0, 3); /* [3, 2] */
    for (int form = 0; form < 4; form++) {
        rig r = rig_new(BASIN_OP_MATMUL);
        r.call.attr.transpose_a = form & 1, r.call.attr.transpose_b = form & 2;
        rig_in(&r, form & 1 ? BASIN_SHAPE(3, 2) : BASIN_SHAPE(2, 3), form & 1 ? at : a);
        rig_in(&r, form & 2 ? BASIN_SHAPE(2, 3) : BASIN_SHAPE(3, 2), form & 2 ? bt : b);
        rig_out(&r, BASIN_SHAPE(2, 2));
        rig_expect(&r, VALUES(5, 8, 14, 14));
    }
    rig r = rig_new(BASIN_OP_MATMUL); /* a batch of two, k = 1; then k = 0 */
    rig_in(&r, BASIN_SHAPE(2, 1, 1), VALUES(2, 3));
    rig_in(&r, BASIN_SHAPE(2, 1, 2), VALUES(1, 2, 3, 4));
    rig_out(&r, BASIN_SHAPE(2, 1, 2));
    rig_expect(&r, VALUES(2, 4, 9, 12));
    r = rig_new(BASIN_OP_MATMUL);
    rig_in(&r, BASIN_SHAPE(1, 0), NULL);
    rig_in(&r, BASIN_SHAPE(0, 2), NULL);
    rig_out(&r, BASIN_SHAPE(1, 2));
    rig_expect(&r, VALUES(0, 0));
}

/* out0 = a b + bias[n] row[b, m], out1 = the product itself; batch 2, m 2, n 2, k 1. */
TEST(matmul_epilogue) {
    basin_instruction instruction[] = {
        {.op = BASIN_INSTRUCTION_TILE},
        {.op = BASIN_INSTRUCTION_LOAD, .to = 1},
        {.op = BASIN_INSTRUCTION_LOAD, .to = 2, .a = 1},
        {.op = BASIN_OP_MUL, .to = 1, .a = 1, .b = 2},
        {.op = BASIN_OP_ADD, .to = 1, .b = 1},
    };
    basin_program program = {.instructions = 5,
                             .registers = 3,
                             .stores = 2,
                             .instruction = instruction,
                             .store = {1, 0},
                             .domain = BASIN_SHAPE(2, 2, 2),
                             .stride = {{0, 0, 1}, {2, 1, 0}}};
    BASIN_AT_EXIT(rig_free) rig r = rig_new(BASIN_OP_MATMUL);
    r.call.program = &program;
    rig_in(&r, BASIN_SHAPE(2, 2, 1), VALUES(1, 2, 3, 4));
    rig_in(&r, BASIN_SHAPE(2, 1, 2), VALUES(5, 6, 7, 8));
    rig_in(&r, BASIN_SHAPE(2), VALUES(100, 200));
    rig_in(&r, BASIN_SHAPE(2, 2, 1), VALUES(1, 2, 3, 4));
    rig_out(&r, BASIN_SHAPE(2, 2, 2));
    rig_out(&r, BASIN_SHAPE(2, 2, 2));
    rig_run(&r);
    rig_check(&r, 0, VALUES(105, 206, 210, 412, 321, 624, 428, 832), 0);
    rig_check(&r, 1, VALUES(5, 6, 10, 12, 21, 24, 28, 32), 0);
}

TEST(table_of_the_backend) {
    BASIN_AT_EXIT(rig_free) rig r = rig_new(BASIN_OP_CONST);
    const basin_backend_table *table = r.backend->table;
    double host[2] = {1, 2}, back[2] = {0, 0};
    assert_string_equal(table->name, "ref");
    assert_int_equal(table->real_size, 8);
    assert_int_equal(table->real, BASIN_F64);
    assert_false(table->fuse);
    double *memory = table->alloc(r.backend, sizeof host);
    table->copy_in(r.backend, memory, host, sizeof host);
    table->fill_zero(r.backend, memory, sizeof *host);
    table->copy_out(r.backend, back, memory, sizeof host);
    assert_true(back[0] == 0 && back[1] == 2);
    table->free(r.backend, memory);
    rig_run(&r); /* a leaf: nothing happens, nothing fails */
}
