/* Every operation as a set of duels, on shapes that hit the edges of vectors, blocks and tiles.
 * Tests of backends include this; duel_rival says which one fights. */
#ifndef BASIN_TESTS_BACKEND_OPERATIONS_H
#define BASIN_TESTS_BACKEND_OPERATIONS_H

#include "engine/backend/duel.h"
#include "engine/backend/shape.h"
#include "engine/core/philox.h"

/* Each function over a range where it is interesting, and at the ends of the number line. */
TEST_WITH(functions, NULL, duel_verdict) {
    const struct {
        basin_op op;
        double low, high, value;
    } cases[] = {
        {BASIN_OP_NEG, -9, 9, 0},        {BASIN_OP_ABS, -9, 9, 0},
        {BASIN_OP_SIGN, -1, 1, 0},       {BASIN_OP_SQRT, -1, 1e6, 0},
        {BASIN_OP_EXP, -87.3, 89, 0},    {BASIN_OP_EXP, -1, 1, 0},
        {BASIN_OP_LOG, -1, 2, 0},        {BASIN_OP_LOG, 0, 1e30, 0},
        {BASIN_OP_LOG, 0, 1e-37, 0},     {BASIN_OP_LOG, 0.99, 1.01, 0},
        {BASIN_OP_LOG1P, -1, 2, 0},      {BASIN_OP_LOG1P, -1e-4, 1e-4, 0},
        {BASIN_OP_LOG1P, 0, 1e20, 0},    {BASIN_OP_EXPM1, -20, 90, 0},
        {BASIN_OP_EXPM1, -0.5, 0.5, 0},  {BASIN_OP_EXPM1, -1e-4, 1e-4, 0},
        {BASIN_OP_TANH, -12, 12, 0},     {BASIN_OP_TANH, -1, 1, 0},
        {BASIN_OP_TANH, -1e-3, 1e-3, 0}, {BASIN_OP_SIGMOID, -100, 100, 0},
        {BASIN_OP_SIGMOID, -9, 9, 0},    {BASIN_OP_SOFTPLUS, -100, 100, 0},
        {BASIN_OP_SOFTPLUS, -9, 9, 0},   {BASIN_OP_LNCOSH, -100, 100, 0},
        {BASIN_OP_LNCOSH, -2, 2, 0},     {BASIN_OP_RELU, -3, 3, 0},
        {BASIN_OP_STEP, -3, 3, 0},       {BASIN_OP_SIN, -7, 7, 0},
        {BASIN_OP_SIN, -1e4, 1e4, 0},    {BASIN_OP_SIN, -1e6, 1e6, 0},
        {BASIN_OP_COS, -7, 7, 0},        {BASIN_OP_COS, -1e4, 1e4, 0},
        {BASIN_OP_ERF, -5, 5, 0},        {BASIN_OP_ERF, -1e-3, 1e-3, 0},
        {BASIN_OP_POW, 0, 9, 0.7},       {BASIN_OP_POW, -2, 2, 0},
        {BASIN_OP_POW, -2, 2, 1},        {BASIN_OP_POW, -2, 2, 2},
        {BASIN_OP_POW, -2, 2, 3},        {BASIN_OP_POW, -2, 2, 4},
        {BASIN_OP_POW, -2, 2, 5},        {BASIN_OP_POW, -2, 2, 7},
        {BASIN_OP_POW, -2, 2, 30},       {BASIN_OP_POW, 0, 2, 0.5},
        {BASIN_OP_POW, -2, 2, -1},       {BASIN_OP_POW, 0, 2, -0.5},
        {BASIN_OP_POW, -2, 2, -3},       {BASIN_OP_COPY, -9, 9, 0},
    };
    const double special[] = {0,     -0.0, 1,     -1,    INFINITY, -INFINITY, NAN,
                              1e-40, 3e38, -3e38, 88.72, 104,      -104,      1e-20};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        duel d = duel_new(cases[i].op);
        d.call.attr.value = cases[i].value;
        double *x = duel_in(&d, BASIN_SHAPE(4099), cases[i].low, cases[i].high);
        for (size_t j = 0; j < sizeof special / sizeof *special; j++)
            if (cases[i].low < 0 || !signbit(special[j])) x[50 * j] = (double)(float)special[j];
        duel_out(&d, BASIN_SHAPE(4099));
        duel_fight(&d, -4.2e-7);
    }
}

TEST_WITH(broadcasts, NULL, duel_verdict) {
    const basin_shape shapes[][4] = {
        {BASIN_SCALAR, BASIN_SCALAR, BASIN_SCALAR, BASIN_SCALAR},
        {BASIN_SHAPE(5), BASIN_SHAPE(5), BASIN_SCALAR, BASIN_SHAPE(5)},
        {BASIN_SHAPE(40, 768), BASIN_SHAPE(768), BASIN_SHAPE(40, 1), BASIN_SHAPE(40, 768)},
        {BASIN_SHAPE(33, 1), BASIN_SHAPE(1, 1300), BASIN_SCALAR, BASIN_SHAPE(33, 1300)},
        {BASIN_SHAPE(7, 1, 12), BASIN_SHAPE(7, 300, 1), BASIN_SHAPE(12), BASIN_SHAPE(7, 300, 12)},
        {BASIN_SHAPE(3, 4, 5, 3), BASIN_SHAPE(4, 1, 3), BASIN_SHAPE(3, 1, 5, 1),
         BASIN_SHAPE(3, 4, 5, 3)},
        {BASIN_SHAPE(2000, 3), BASIN_SHAPE(3), BASIN_SHAPE(2000, 1), BASIN_SHAPE(2000, 3)},
        {BASIN_SHAPE(64, 196), BASIN_SHAPE(64, 196), BASIN_SHAPE(196), BASIN_SHAPE(64, 196)},
        {BASIN_SHAPE(0, 4), BASIN_SHAPE(4), BASIN_SCALAR, BASIN_SHAPE(0, 4)},
        {BASIN_SHAPE(9, 257, 1), BASIN_SHAPE(1, 257, 1), BASIN_SHAPE(9, 1, 1),
         BASIN_SHAPE(9, 257, 1)},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int op = BASIN_OP_ADD; op <= BASIN_OP_SELECT; op++) {
            duel d = duel_new((basin_op)op);
            for (int a = 0; a < (op == BASIN_OP_SELECT ? 3 : 2); a++) {
                double *x = duel_in(&d, shapes[i][a], -2, 2);
                for (int64_t j = 0; j < basin_shape_count(shapes[i][a]); j += 3)
                    x[j] = round(x[j]); /* some are equal, some are zero */
            }
            duel_out(&d, shapes[i][3]);
            duel_fight(&d, -1.3e-7);
        }
}

static basin_instruction instruction_load(int to, int operand) {
    return (basin_instruction){
        .op = BASIN_INSTRUCTION_LOAD, .to = (uint16_t)to, .a = (uint16_t)operand};
}

static basin_instruction instruction_op(int op, int to, int a, int b, int c) {
    return (basin_instruction){.op = (uint16_t)op,
                               .to = (uint16_t)to,
                               .a = (uint16_t)a,
                               .b = (uint16_t)b,
                               .c = (uint16_t)c};
}

/* y0 = x tanh(row) + 0.5, y1 = relu(y0) col, y2 = x; y0 on top of x, registers used twice. */
static void fused_program(basin_shape domain, bool in_place) {
    basin_instruction instruction[] = {
        instruction_load(0, 0),
        instruction_load(1, 1),
        instruction_op(BASIN_OP_TANH, 2, 1, 0, 0),
        {.op = BASIN_INSTRUCTION_IMMEDIATE, .to = 3, .value = 0.5},
        instruction_op(BASIN_OP_MUL, 2, 2, 0, 0),
        instruction_op(BASIN_OP_ADD, 4, 2, 3, 0),
        instruction_load(1, 2),
        instruction_op(BASIN_OP_RELU, 3, 4, 0, 0),
        instruction_op(BASIN_OP_MUL, 5, 3, 1, 0),
        instruction_load(6, 3),
        instruction_op(BASIN_OP_SUB, 5, 5, 6, 0),
    };
    basin_program program = {
        .instructions = sizeof instruction / sizeof *instruction, .registers = 7, .stores = 3};
    duel d = duel_new(BASIN_OP_POINTWISE);
    basin_shape row = domain, column = domain;
    int last = domain.rank - 1;
    for (int i = 0; i < last; i++) row.dim[i] = 1;
    column.dim[last] = 1;
    const basin_shape shapes[] = {domain, row, column, BASIN_SCALAR};
    for (int a = 0; a < 4; a++) {
        duel_in(&d, shapes[a], -2, 2);
        basin_shape_broadcast(program.stride[a], &shapes[a], &domain);
    }
    program.instruction = instruction;
    program.domain = domain;
    program.store[0] = 4, program.store[1] = 5, program.store[2] = 0;
    for (int i = 0; i < 3; i++) duel_out(&d, domain);
    if (in_place) d.in_place[0] = 0;
    d.call.program = &program;
    duel_fight(&d, 1e-6);
}

TEST_WITH(programs, NULL, duel_verdict) {
    const basin_shape domains[] = {
        BASIN_SHAPE(1),       BASIN_SHAPE(17),        BASIN_SHAPE(5, 3),
        BASIN_SHAPE(4000, 3), BASIN_SHAPE(300, 12),   BASIN_SHAPE(50, 255),
        BASIN_SHAPE(50, 777), BASIN_SHAPE(3, 11, 70), BASIN_SHAPE(2, 5000)};
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        for (int in_place = 0; in_place < 2; in_place++) fused_program(domains[i], in_place);
}

TEST_WITH(permutations, NULL, duel_verdict) {
    const struct {
        basin_shape shape;
        int8_t axes[5];
    } cases[] = {
        {BASIN_SHAPE(300, 70), {1, 0}},
        {BASIN_SHAPE(3, 5, 7), {2, 1, 0}},
        {BASIN_SHAPE(3, 5, 7), {0, 2, 1}},
        {BASIN_SHAPE(3, 5, 7), {1, 0, 2}},
        {BASIN_SHAPE(2, 31, 12, 64), {0, 2, 1, 3}},
        {BASIN_SHAPE(2, 31, 12, 6), {2, 0, 3, 1}},
        {BASIN_SHAPE(2, 1, 12, 6), {1, 3, 2, 0}},
        {BASIN_SHAPE(2, 3, 4, 5, 6), {4, 2, 0, 3, 1}},
        {BASIN_SHAPE(1, 1), {1, 0}},
        {BASIN_SHAPE(6, 7), {0, 1}},
        {BASIN_SHAPE(0, 7), {1, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        duel d = duel_new(BASIN_OP_PERMUTE);
        basin_shape out = cases[i].shape;
        for (int j = 0; j < out.rank; j++) {
            d.call.attr.axes[j] = cases[i].axes[j];
            out.dim[j] = cases[i].shape.dim[cases[i].axes[j]];
        }
        duel_in(&d, cases[i].shape, -1, 1);
        duel_out(&d, out);
        duel_fight(&d, -1e-30);
    }
}

TEST_WITH(slices, NULL, duel_verdict) {
    for (int axis = 0; axis < 3; axis++) {
        basin_shape whole = BASIN_SHAPE(40, 37, 53), part = whole;
        part.dim[axis] = 11;
        duel d = duel_new(BASIN_OP_SLICE);
        d.call.attr.axis = axis, d.call.attr.start = 9;
        duel_in(&d, whole, -1, 1);
        duel_out(&d, part);
        duel_fight(&d, -1e-30);
        d = duel_new(BASIN_OP_PAD);
        d.call.attr.axis = axis, d.call.attr.start = 9;
        duel_in(&d, part, -1, 1);
        duel_out(&d, whole);
        duel_fight(&d, -1e-30);
        d = duel_new(BASIN_OP_CONCAT);
        d.call.attr.axis = axis;
        duel_in(&d, part, -1, 1);
        duel_in(&d, whole, -1, 1);
        duel_in(&d, part, -1, 1);
        whole.dim[axis] += 22;
        duel_out(&d, whole);
        duel_fight(&d, -1e-30);
    }
}

TEST_WITH(rows_by_index, NULL, duel_verdict) {
    int32_t index[501];
    const basin_shape rows[] = {BASIN_SHAPE(60), BASIN_SHAPE(60, 3), BASIN_SHAPE(60, 5, 33)};
    for (int i = 0; i < 501; i++) index[i] = (i * 7919) % 61 - 1;
    for (int i = 0; i < 3; i++) {
        basin_shape table = rows[i], list = rows[i];
        list.dim[0] = 501;
        duel d = duel_new(BASIN_OP_GATHER);
        duel_in(&d, table, -1, 1);
        duel_index(&d, BASIN_SHAPE(501), index);
        duel_out(&d, list);
        duel_fight(&d, -1e-30);
        d = duel_new(BASIN_OP_SCATTER);
        duel_in(&d, list, -1, 1);
        duel_index(&d, BASIN_SHAPE(501), index);
        duel_out(&d, table);
        duel_fight(&d, 1e-6);
    }
    duel d = duel_new(BASIN_OP_FROM_INDEX);
    duel_index(&d, BASIN_SHAPE(3, 167), index);
    duel_out(&d, BASIN_SHAPE(3, 167));
    duel_fight(&d, 0);
}

TEST_WITH(bad_index_is_reported, NULL, duel_verdict) {
    basin_backend *backend = duel_rival.open(0);
    const basin_backend_table *table = backend->table;
    basin_error error = {0};
    const double numbers[6] = {1, 2, 3, 4, 5, 6};
    const int32_t index[2] = {1, 3};
    float out[4];
    void *block[] = {NULL, duel_block(backend, numbers, NULL, 6, 4),
                     duel_block(backend, NULL, index, 2, 4), duel_block(backend, NULL, NULL, 4, 4)};
    basin_call call = {.op = BASIN_OP_GATHER, .ins = 2, .outs = 1};
    call.in[0] =
        (basin_operand){.block = 1, .kind = BASIN_REAL, .offset = 64, .shape = BASIN_SHAPE(3, 2)};
    call.in[1] =
        (basin_operand){.block = 2, .kind = BASIN_INDEX, .offset = 64, .shape = BASIN_SHAPE(2)};
    call.out[0] =
        (basin_operand){.block = 3, .kind = BASIN_REAL, .offset = 64, .shape = BASIN_SHAPE(2, 2)};
    table->run(backend, &call, 1, block);
    assert_int_equal(table->wait(backend, &error), BASIN_BAD_VALUE);
    assert_string_equal(error.text, "gather: index 3 at element 1 is not in [-1, 3)");
    assert_int_equal(table->wait(backend, &error), BASIN_OK);
    table->copy_out(backend, out, (char *)block[3] + 64, sizeof out);
    assert_true(out[0] == 3 && out[1] == 4 && out[2] == 0 && out[3] == 0);
    for (int i = 1; i < 4; i++) table->free(backend, block[i]);
    duel_rival.close(backend);
}

TEST_WITH(reductions, NULL, duel_verdict) {
    const struct {
        basin_shape shape;
        int axis, count;
    } cases[] = {
        {BASIN_SHAPE(1000, 77), 0, 1},    {BASIN_SHAPE(1000, 77), 1, 1},
        {BASIN_SHAPE(1000, 77), 0, 2},    {BASIN_SHAPE(9000, 12), 0, 1},
        {BASIN_SHAPE(9000, 1), 0, 1},     {BASIN_SHAPE(3, 400, 70), 1, 1},
        {BASIN_SHAPE(3, 40, 70), 0, 2},   {BASIN_SHAPE(3, 40, 70), 1, 2},
        {BASIN_SHAPE(70000), 0, 1},       {BASIN_SHAPE(200000), 0, 1},
        {BASIN_SHAPE(5), 0, 1},           {BASIN_SHAPE(4, 5, 6, 7), 1, 2},
        {BASIN_SHAPE(100, 3, 768), 0, 1}, {BASIN_SHAPE(0, 5), 0, 1},
        {BASIN_SHAPE(5, 0), 1, 1},        {BASIN_SHAPE(2, 300000, 3), 1, 1},
        {BASIN_SHAPE(129, 64), 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int op = BASIN_OP_SUM; op <= BASIN_OP_MAX; op++) {
            duel d = duel_new((basin_op)op);
            basin_shape in = cases[i].shape, out = {.rank = in.rank - cases[i].count};
            d.call.attr.axis = cases[i].axis, d.call.attr.count = cases[i].count;
            for (int j = 0; j < out.rank; j++)
                out.dim[j] = in.dim[j < cases[i].axis ? j : j + cases[i].count];
            duel_in(&d, in, -1, 2);
            duel_out(&d, out);
            duel_fight(&d, op == BASIN_OP_MAX ? -1e-30 : 5e-7);
        }
}

TEST_WITH(row_operations, NULL, duel_verdict) {
    const basin_shape shapes[] = {
        BASIN_SHAPE(1, 1),     BASIN_SHAPE(7, 3),    BASIN_SHAPE(100, 196), BASIN_SHAPE(5, 768),
        BASIN_SHAPE(3, 4, 17), BASIN_SHAPE(2, 5001), BASIN_SHAPE(300, 129)};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        basin_shape rows = shapes[i], row = BASIN_SHAPE(shapes[i].dim[shapes[i].rank - 1]);
        rows.rank--;
        duel d = duel_new(BASIN_OP_LOGSUMEXP);
        duel_in(&d, shapes[i], -90, 120);
        duel_out(&d, rows);
        duel_fight(&d, 1e-6);
        d = duel_new(BASIN_OP_SOFTMAX);
        duel_in(&d, shapes[i], -9, 9);
        duel_out(&d, shapes[i]);
        duel_fight(&d, 2e-6);
        for (int power = 1; power <= 2; power++) {
            d = duel_new(BASIN_OP_THRESHOLD);
            d.call.attr.count = power;
            duel_in(&d, shapes[i], -3, 3);
            duel_out(&d, rows);
            duel_fight(&d, 1e-6);
        }
        for (int each = 0; each < 2; each++) { /* one gain, or one of each column */
            d = duel_new(BASIN_OP_LAYERNORM);
            d.call.attr.value = 1e-5;
            duel_in(&d, shapes[i], -3, 5);
            duel_in(&d, each ? row : BASIN_SCALAR, 0.5, 1.5);
            duel_in(&d, row, -1, 1);
            duel_out(&d, shapes[i]);
            duel_fight(&d, 2e-6);
        }
    }
}

/* Diagonally dominant; more matrices than threads, and one. Devices refuse them in plans. */
TEST_WITH(matrices, NULL, duel_verdict) {
    const basin_shape shapes[] = {BASIN_SHAPE(1, 1),         BASIN_SHAPE(2, 3, 3),
                                  BASIN_SHAPE(2, 2, 17, 17), BASIN_SHAPE(96, 96),
                                  BASIN_SHAPE(300, 8, 8),    BASIN_SHAPE(0, 4, 4)};
    const int64_t columns[] = {1, 5, 33};
    basin_backend *backend = duel_rival.open(0);
    bool device = backend->table->check != NULL;
    duel_rival.close(backend);
    for (int i = 0; i < 6 * 9 && !device; i++) {
        basin_shape a = shapes[i / 9], b = a, lead = {.rank = a.rank - 2};
        int64_t n = a.dim[a.rank - 1];
        memcpy(lead.dim, a.dim, sizeof lead.dim);
        duel d = duel_new(i % 9 == 0 ? BASIN_OP_CHOLESKY : BASIN_OP_SOLVE);
        double *x = duel_in(&d, a, -1, 1);
        for (int64_t j = 0; j < basin_shape_count(a) / n; j++) x[j * n + j % n] += (double)n;
        b.dim[b.rank - 1] = columns[i % 3];
        d.call.attr.count = i % 9 == 2 || i % 9 == 3 || i % 9 == 4;
        d.call.attr.transpose_a = i % 2;
        if (i % 9 > 1) duel_in(&d, b, -1, 1);
        if (i % 9 == 1)
            duel_out_absent(&d), duel_out(&d, lead), duel_out(&d, lead);
        else
            duel_out(&d, i % 9 == 0 ? a : b);
        duel_fight(&d, 2e-6);
    }
}

/* Scores of causal pairs: groups of queries that end in the middle, rows that are no multiple of
 * any vector, more heads than warps, rows too long for shared memory. Bits of
 * `narrow`: operands and the result in bfloat16. */
static void causal_of(basin_shape shape, bool strict, unsigned narrow) {
    const basin_op ops[] = {BASIN_OP_CAUSAL_LOGSUMEXP, BASIN_OP_CAUSAL_SOFTMAX,
                            BASIN_OP_CAUSAL_SOFTMAX_REVERSE};
    for (int i = 0; i < 3; i++) {
        duel d = duel_new(ops[i]);
        basin_shape heads = shape;
        heads.dim[--heads.rank - 1] = shape.dim[shape.rank - 1];
        d.call.attr.value = 0.6, d.call.attr.exclude_self = strict;
        duel_in(&d, shape, -4, 4);
        if (i == 2) duel_in(&d, shape, -1, 1);
        duel_out(&d, i == 0 ? heads : shape);
        if (narrow) duel_narrow(&d, narrow, i > 0 ? narrow >> 1 & 1 : 0);
        /* The reverse's first queries have large shares, and differences that nearly cancel, beside
         * many small ones, which the scale is of. */
        duel_fight(&d, narrow ? 5e-3 : i == 2 ? 1e-5 : 4e-6);
    }
}

static const basin_shape causal_shapes[] = {
    {3, {1, 1, 1}},      {4, {2, 7, 7, 3}},     {4, {3, 64, 64, 1}},  {5, {2, 2, 9, 40, 1}},
    {4, {2, 33, 32, 6}}, {3, {40, 17, 5}},      {4, {2, 5, 8, 12}},   {3, {3, 2, 16}},
    {3, {9, 1600, 8}},   {4, {2, 130, 130, 6}}, {4, {2, 90, 600, 1}}, {3, {60, 256, 6}},
    {3, {20, 32, 7}},    {3, {30, 48, 3}},      {3, {16, 24, 5}},     {3, {9, 100, 2}},
    {3, {33, 66, 4}}};

TEST_WITH(causal, NULL, duel_verdict) {
    for (size_t i = 0; i < sizeof causal_shapes / sizeof *causal_shapes; i++)
        for (int strict = 0; strict < 2; strict++) causal_of(causal_shapes[i], strict, 0);
}

/* Tensors of all sizes, an empty one and a long one among them. */
TEST_WITH(squares, NULL, duel_verdict) {
    const basin_shape shapes[] = {BASIN_SHAPE(300, 700), BASIN_SCALAR,         BASIN_SHAPE(0, 4),
                                  BASIN_SHAPE(16384),    BASIN_SHAPE(3, 5, 7), BASIN_SHAPE(16385)};
    for (int count = 1; count <= 6; count++) {
        duel d = duel_new(BASIN_OP_SQUARES);
        for (int i = 0; i < count; i++) duel_in(&d, shapes[i], -1, 2);
        duel_out(&d, BASIN_SCALAR);
        duel_fight(&d, 2e-6);
    }
}

TEST_WITH(layernorm_reverse, NULL, duel_verdict) {
    const basin_shape shapes[] = {BASIN_SHAPE(1, 4), BASIN_SHAPE(1100, 33),
                                  BASIN_SHAPE(4, 49, 192)};
    for (int i = 0; i < 3; i++)
        for (int absent = 0; absent < 32; absent++) { /* bit 3: with a residual; 4: gains */
            duel d = duel_new(BASIN_OP_LAYERNORM_REVERSE);
            basin_shape row = BASIN_SHAPE(shapes[i].dim[shapes[i].rank - 1]);
            basin_shape gain = absent & 16 ? row : BASIN_SCALAR;
            const basin_shape outs[] = {shapes[i], gain, row};
            d.call.attr.value = 1e-5;
            duel_in(&d, shapes[i], -3, 5);
            duel_in(&d, gain, 0.5, 1.5);
            duel_in(&d, shapes[i], -1, 1);
            if (absent & 8) duel_in(&d, shapes[i], -1, 1);
            for (int j = 0; j < 3; j++) {
                if (absent >> j & 1)
                    duel_out_absent(&d);
                else
                    duel_out(&d, outs[j]);
            }
            duel_fight(&d, 1e-5);
        }
}

static const struct product_case {
    basin_shape a, b;
    bool transpose_a, transpose_b;
} product_cases[] = {
    {{2, {5, 7}}, {2, {7, 3}}, false, false},
    {{2, {7, 5}}, {2, {3, 7}}, true, true},
    {{2, {130, 70}}, {2, {70, 300}}, false, false},
    {{3, {3, 31, 40}}, {3, {3, 40, 33}}, false, false},
    {{3, {3, 40, 31}}, {3, {3, 40, 33}}, true, false},
    {{3, {3, 31, 40}}, {3, {1, 33, 40}}, false, true},
    {{3, {1, 31, 40}}, {3, {3, 40, 33}}, false, false},
    {{2, {64, 1}}, {2, {1, 50}}, false, false},
    {{2, {1, 900}}, {2, {900, 1}}, false, false},
};

static int64_t batch_of(basin_shape s) { return s.rank < 3 ? 1 : s.dim[0]; }

static basin_shape product_shape(const struct product_case *c) {
    int64_t m = c->a.dim[c->a.rank - (c->transpose_a ? 1 : 2)];
    int64_t n = c->b.dim[c->b.rank - (c->transpose_b ? 2 : 1)];
    int64_t batch = batch_of(c->a) > 1 ? batch_of(c->a) : batch_of(c->b);
    return c->a.rank == 2 ? BASIN_SHAPE(m, n) : BASIN_SHAPE(batch, m, n);
}

static duel product_duel(const struct product_case *c) {
    duel d = duel_new(BASIN_OP_MATMUL);
    d.call.attr.transpose_a = c->transpose_a, d.call.attr.transpose_b = c->transpose_b;
    duel_in(&d, c->a, -1, 1);
    duel_in(&d, c->b, -1, 1);
    return d;
}

TEST_WITH(products, NULL, duel_verdict) {
    for (size_t i = 0; i < sizeof product_cases / sizeof *product_cases; i++) {
        duel d = product_duel(&product_cases[i]);
        duel_out(&d, product_shape(&product_cases[i]));
        duel_fight(&d, 3e-6);
    }
}

/* y0 = relu(tile + row), y1 = x - 0.1 column y0 + scalar: every way an operand can lie under a
 * tile, constants in registers that are written again, and y1 on top of x or not. */
TEST_WITH(epilogues, NULL, duel_verdict) {
    basin_instruction instruction[] = {
        {.op = BASIN_INSTRUCTION_TILE, .to = 0},
        instruction_load(1, 0),
        instruction_op(BASIN_OP_ADD, 2, 0, 1, 0),
        instruction_op(BASIN_OP_RELU, 2, 2, 0, 0),
        {.op = BASIN_INSTRUCTION_IMMEDIATE, .to = 3, .value = 0.1},
        instruction_load(4, 1),
        instruction_op(BASIN_OP_MUL, 3, 3, 4, 0),
        instruction_op(BASIN_OP_MUL, 5, 3, 2, 0),
        instruction_load(6, 2),
        instruction_op(BASIN_OP_SUB, 6, 6, 5, 0),
        instruction_load(3, 3),
        instruction_op(BASIN_OP_ADD, 3, 6, 3, 0),
    };
    for (size_t i = 0; i < sizeof product_cases / sizeof *product_cases; i++)
        for (int wide = 0; wide < 2; wide++) {
            duel d = product_duel(&product_cases[i]);
            basin_shape out = product_shape(&product_cases[i]), domain = out;
            if (out.rank == 2) domain = BASIN_SHAPE(1, out.dim[0], out.dim[1]);
            basin_shape row = {1, {domain.dim[2]}}, column = domain;
            column.dim[2] = 1;
            if (wide) column.dim[1] = 1;
            const basin_shape shapes[] = {row, column, domain, BASIN_SCALAR};
            basin_program program = {.registers = wide ? 32 : 7, .stores = 2, .domain = domain};
            program.instructions = sizeof instruction / sizeof *instruction;
            program.instruction = instruction;
            program.store[0] = 2, program.store[1] = 3;
            if (i % 2) d.in_place[1] = 4;
            for (int a = 0; a < 4; a++) {
                duel_in(&d, shapes[a], -1, 1);
                basin_shape_broadcast(program.stride[a], &shapes[a], &domain);
            }
            duel_out(&d, out);
            duel_out(&d, out);
            d.call.program = &program;
            duel_fight(&d, 3e-6);
        }
}

enum { QUERIES = 37, KEYS = 23, PAIRS = 400, PADDING = 9 };

typedef struct pattern {
    int32_t row[QUERIES + 1], key[PAIRS + PADDING];
    int32_t column[KEYS + 1], query[PAIRS + PADDING], pair[PAIRS + PADDING];
} pattern;

/* Some rows are empty, one is long; the padding points nowhere sensible. */
static pattern pattern_new(void) {
    pattern p = {.row = {0}};
    int pairs = 0;
    for (int q = 0; q < QUERIES; q++) {
        int n = q == 5 ? 100 : q % 4 * 6;
        for (int i = 0; i < n && pairs < PAIRS; i++)
            p.key[pairs] = (int32_t)(basin_random_word_at(1, 2, (uint64_t)pairs) % KEYS), pairs++;
        p.row[q + 1] = pairs;
    }
    int at = 0;
    for (int k = 0; k < KEYS; k++) {
        for (int q = 0; q < QUERIES; q++)
            for (int i = p.row[q]; i < p.row[q + 1]; i++)
                if (p.key[i] == k) p.query[at] = q, p.pair[at++] = i;
        p.column[k + 1] = at;
    }
    return p;
}

static void add_pattern(duel *d, const pattern *p) {
    duel_index(d, BASIN_SHAPE(QUERIES + 1), p->row);
    duel_index(d, BASIN_SHAPE(PAIRS + PADDING), p->key);
    duel_index(d, BASIN_SHAPE(KEYS + 1), p->column);
    duel_index(d, BASIN_SHAPE(PAIRS + PADDING), p->query);
    duel_index(d, BASIN_SHAPE(PAIRS + PADDING), p->pair);
}

TEST_WITH(pairs, NULL, duel_verdict) {
    const pattern p = pattern_new();
    const int64_t heads[] = {1, 2, 3, 12}, widths[] = {1, 5, 64, 67};
    for (int i = 0; i < 4; i++) {
        basin_shape x = BASIN_SHAPE(QUERIES, heads[i], widths[i]);
        basin_shape z = BASIN_SHAPE(KEYS, heads[i], widths[i]);
        basin_shape w = BASIN_SHAPE(PAIRS + PADDING, heads[i]);
        duel d = duel_new(BASIN_OP_PAIR_DOT);
        duel_in(&d, x, -1, 1);
        duel_in(&d, z, -1, 1);
        add_pattern(&d, &p);
        duel_out(&d, w);
        duel_fight(&d, 4e-6);
        for (int by_key = 0; by_key < 2; by_key++) {
            d = duel_new(BASIN_OP_PAIR_SUM);
            d.call.attr.transpose_a = by_key;
            duel_in(&d, w, -1, 1);
            duel_in(&d, by_key ? x : z, -1, 1);
            add_pattern(&d, &p);
            duel_out(&d, by_key ? z : x);
            duel_fight(&d, 4e-6);
        }
    }
}

static basin_shape attention_shape(int i, int64_t batch, int64_t queries, int64_t keys, bool list) {
    enum { HEADS = 3, WIDTH = 19 };
    switch (i) {
    case BASIN_ATT_Q:
    case BASIN_ATT_A: return BASIN_SHAPE(batch, queries, HEADS, WIDTH);
    case BASIN_ATT_K:
    case BASIN_ATT_B: return BASIN_SHAPE(batch, keys, HEADS, WIDTH);
    case BASIN_ATT_BETA: return BASIN_SHAPE(HEADS);
    case BASIN_ATT_MIX: return BASIN_SHAPE(HEADS, HEADS);
    case BASIN_ATT_W: return BASIN_SHAPE(batch, queries, HEADS);
    default: return BASIN_SHAPE(list ? PAIRS + PADDING : batch * queries * keys, HEADS);
    }
}

/* flags: 1 scale, 2 mix, 4 a, 8 b, 16 an odd set of outputs, 32 without self, 64 causal, 128 the
 * scale is added. */
static duel attention_duel(basin_op op, const pattern *p, int flags) {
    static const int force_out[] = {BASIN_ATT_W,    BASIN_ATT_Q,     BASIN_ATT_K,
                                    BASIN_ATT_BETA, BASIN_ATT_SCALE, BASIN_ATT_MIX};
    static const int reverse_out[] = {BASIN_ATT_Q,    BASIN_ATT_K,     BASIN_ATT_W,
                                      BASIN_ATT_BETA, BASIN_ATT_SCALE, BASIN_ATT_MIX};
    const int *like = op == BASIN_OP_ATTENTION_REVERSE ? reverse_out : force_out;
    int64_t batch = p ? 1 : 2, queries = p ? QUERIES : 21, keys = p ? KEYS : 21;
    int ins = op == BASIN_OP_ATTENTION         ? BASIN_ATT_W
              : op == BASIN_OP_ATTENTION_FORCE ? BASIN_ATT_A
                                               : BASIN_ATT_IN;
    duel d = duel_new(op);
    d.call.attr.exclude_self = flags & 32;
    d.call.attr.causal = flags & 64;
    d.call.attr.added = flags & 128;
    for (int i = 0; i < ins; i++) {
        bool absent = (i == BASIN_ATT_SCALE && !(flags & 1)) ||
                      (i == BASIN_ATT_MIX && !(flags & 2)) || (i == BASIN_ATT_A && !(flags & 4)) ||
                      (i == BASIN_ATT_B && !(flags & 8));
        bool index = i >= BASIN_ATT_ROW && i <= BASIN_ATT_PAIR;
        if (index && p && i == BASIN_ATT_ROW) add_pattern(&d, p);
        if (absent || (index && !p)) duel_in_absent(&d);
        if (!absent && !index) duel_in(&d, attention_shape(i, batch, queries, keys, p), -1, 1);
    }
    for (int i = 0; i < (op == BASIN_OP_ATTENTION ? 1 : BASIN_ATT_OUT); i++) {
        bool absent = (like[i] == BASIN_ATT_SCALE && !(flags & 1)) ||
                      (like[i] == BASIN_ATT_MIX && !(flags & 2)) || (flags & 16 && i % 2 == 0 && i);
        if (absent)
            duel_out_absent(&d);
        else
            duel_out(&d, attention_shape(like[i], batch, queries, keys, p));
    }
    return d;
}

TEST_WITH(attention, NULL, duel_verdict) {
    const pattern p = pattern_new();
    for (int op = BASIN_OP_ATTENTION; op <= BASIN_OP_ATTENTION_REVERSE; op++)
        for (int flags = 0; flags < 256; flags += op == BASIN_OP_ATTENTION ? 33 : 5) {
            duel d = attention_duel((basin_op)op, NULL, flags);
            duel_fight(&d, 2e-5);
            d = attention_duel((basin_op)op, &p, flags & (31 | 128));
            duel_fight(&d, 2e-5);
        }
}

/* Softmax attention with values: odd widths, heads that share keys, several groups of queries.
 * flags: 1 a bias, 2 of each query, 4 tq, 8 tk, 16 tv, 32 tc, 64 causal, 128 without self, 256
 * heads first, 512 without c; a multiple of 5: dropout, unless of a list. */
static const int32_t values_seed[2] = {41, -9};
static duel values_duel(basin_op op, const pattern *p, int flags, int64_t queries) {
    enum { BATCH = 2, HEADS = 4, SHARED = 2, WIDTH = 19, VALUES = 9 };
    int64_t n = p ? QUERIES : queries, m = p ? KEYS : queries == 21 ? 21 : 90;
    int64_t repeats = flags & 2 ? BATCH : 1, pairs = PAIRS + PADDING;
    basin_shape q = BASIN_SHAPE(BATCH, n, HEADS, WIDTH), k = BASIN_SHAPE(BATCH, m, SHARED, WIDTH);
    basin_shape v = BASIN_SHAPE(BATCH, m, SHARED, VALUES), c = BASIN_SHAPE(BATCH, n, HEADS, VALUES);
    basin_shape bias =
        p ? BASIN_SHAPE(repeats, pairs, HEADS) : BASIN_SHAPE(repeats, 1, flags & 2 ? n : 1, m);
    basin_shape slopes = p ? BASIN_SHAPE(BATCH, pairs, HEADS) : BASIN_SHAPE(BATCH, HEADS, n, m);
    const basin_shape shape[BASIN_VAL_IN] = {
        [BASIN_VAL_Q] = q,          [BASIN_VAL_K] = k,  [BASIN_VAL_V] = v,  [BASIN_VAL_BIAS] = bias,
        [BASIN_VAL_C] = c,          [BASIN_VAL_TQ] = q, [BASIN_VAL_TK] = k, [BASIN_VAL_TV] = v,
        [BASIN_VAL_TBIAS] = slopes, [BASIN_VAL_TC] = c};
    const basin_shape out[] = {q, k, v, slopes, c};
    int order = (int)op - (int)BASIN_OP_VALUES, bit[BASIN_VAL_IN] = {0};
    bool alone = flags & 512 && order == 2; /* the tangent of o alone */
    bit[BASIN_VAL_BIAS] = bit[BASIN_VAL_TBIAS] = 1, bit[BASIN_VAL_TQ] = 4, bit[BASIN_VAL_TK] = 8;
    bit[BASIN_VAL_TV] = 16, bit[BASIN_VAL_TC] = 32;
    duel d = duel_new(op);
    d.call.attr.value = 0.7;
    d.call.attr.causal = !p && flags & 64, d.call.attr.exclude_self = !p && n == m && flags & 128;
    d.call.attr.transpose_a = flags & 256;
    for (int i = 0; i < (order == 0   ? BASIN_VAL_C
                         : order == 1 ? BASIN_VAL_TQ
                                      : BASIN_VAL_IN);
         i++) {
        bool index = i >= BASIN_VAL_ROW && i <= BASIN_VAL_PAIR;
        bool absent =
            (bit[i] && !(flags & bit[i])) || (alone && (i == BASIN_VAL_C || i == BASIN_VAL_TC));
        if (index && p && i == BASIN_VAL_ROW) add_pattern(&d, p);
        if (i == BASIN_VAL_SEED && !p && flags % 5 == 0) {
            d.call.attr.drop = 0.3, d.call.attr.stream = 4;
            duel_index(&d, BASIN_SHAPE(2), values_seed);
            continue;
        }
        absent = absent || i == BASIN_VAL_SEED || (index && !p);
        if (absent) duel_in_absent(&d);
        if (!absent && !index) duel_in(&d, shape[i], -1, 1);
    }
    if (order == 0) duel_out(&d, c);
    for (int i = 0; order > 0 && i < (order == 1 ? BASIN_VAL_OUT_C : BASIN_VAL_OUT); i++) {
        bool absent = (i == BASIN_VAL_OUT_BIAS && !(flags & 1)) || (alone && i < BASIN_VAL_OUT_C);
        if (absent)
            duel_out_absent(&d);
        else
            duel_out(&d, out[i]);
    }
    return d;
}

TEST_WITH(values, NULL, duel_verdict) {
    const pattern p = pattern_new();
    for (int op = BASIN_OP_VALUES; op <= BASIN_OP_VALUES_SECOND; op++)
        for (int flags = 0; flags < 1024; flags += op == BASIN_OP_VALUES_SECOND ? 29 : 89) {
            duel d = values_duel((basin_op)op, NULL, flags, flags % 3 ? 21 : 70);
            if (flags % 2) duel_narrow(&d, 0xfdf7 & ~(1u << BASIN_VAL_TBIAS), 0x17);
            duel_fight(&d, flags % 2 ? 2e-2 : 2e-5);
            d = values_duel((basin_op)op, &p, flags, 0);
            duel_fight(&d, 2e-5);
        }
}

TEST_WITH(draws, NULL, duel_verdict) {
    const int32_t seed[2] = {123456789, -5};
    for (int kind = 0; kind < 3; kind++) { /* the last one: masks */
        duel d = duel_new(kind == 0 ? BASIN_OP_NORMAL : BASIN_OP_UNIFORM);
        d.call.attr.stream = 17, d.call.attr.drop = kind == 2 ? 0.7 : 0;
        duel_index(&d, BASIN_SHAPE(2), seed);
        duel_out(&d, BASIN_SHAPE(91, 333));
        duel_fight(&d, 0);
    }
}

#endif
