/* Pointwise programs over domains of many sizes, cut into blocks of many lengths (the more
 * registers and constants a program has, the shorter its blocks): no element is left out, none is
 * computed from what was never written. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/shape.h"
#include "support/lab.h"

/* tanh(.. tanh(x + 1) + 2 .. + row) + column: constants, a repeated row and a repeated column. */
static basin_expr program(basin_expr x, basin_expr row, basin_expr column, int constants) {
    for (int i = 1; i <= constants; i++)
        x = basin_tanh(basin_scale(basin_offset(x, 0.1 * i), 1 + 0.05 * i));
    if (row) x = basin_add(x, row);
    return column ? basin_mul(x, column) : x;
}

/* What becomes of a program's result: NULL, nothing. */
typedef basin_expr ending(basin_expr a);
static basin_expr largest(basin_expr a) { return basin_max(a, -1, 1); }
static basin_expr average(basin_expr a) { return basin_mean(a, -1, 1); }
static basin_expr largest_of_all(basin_expr a) { return basin_max(a, 0, 2); }

static basin_tensor run(const char *backend, int threads, basin_shape shape, int constants,
                        bool broadcast, ending *end) {
    lab l = lab_new(backend, threads);
    basin_expr x = lab_state(&l, "x", shape), row = NULL, column = NULL;
    if (broadcast) {
        row = lab_state(&l, "row", BASIN_SHAPE(shape.dim[shape.rank - 1]));
        column = lab_state(&l, "column", BASIN_SHAPE(shape.dim[0], 1));
    }
    lab_fill(&l, 8, 1);
    basin_expr made = program(x, row, column, constants);
    basin_tensor value = lab_value(&l, end ? end(made) : made);
    lab_close(&l);
    return value;
}

static void check_end(basin_shape shape, int constants, bool broadcast, ending *end) {
    char text[BASIN_SHAPE_TEXT + 40];
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor exact = run("ref", 1, shape, constants, broadcast, end);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor fast = run("cpu", 1, shape, constants, broadcast, end);
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor team = run("cpu", 3, shape, constants, broadcast, end);
    snprintf(text, sizeof text, "%d constants over %s", constants, basin_shape_text(shape));
    /* Each tanh adds a rounding or two: 13 of them err by 1.06e-6 on arm64. */
    lab_assert_near(&fast, &exact, 1e-6 * fmax(1, constants / 6.0), text);
    lab_assert_near(&team, &fast, 0, text);
}

static void check_one(basin_shape shape, int constants, bool broadcast) {
    check_end(shape, constants, broadcast, NULL);
}

/* Sums and maxima of rows that a program computes, which are written nowhere. */
TEST(reduced) {
    static const int64_t width[] = {1, 2, 48, 200, 255, 256, 257, 1500};
    static ending *const end[] = {largest, average, largest_of_all};
    for (size_t i = 0; i < sizeof width / sizeof *width; i++)
        for (int constants = 1; constants <= 13; constants += 6)
            for (int k = 0; k < 3; k++)
                for (int broadcast = 0; broadcast < 2; broadcast++)
                    check_end(BASIN_SHAPE(8000 / width[i], width[i]), constants, broadcast, end[k]);
}

/* What of each sample [n] is computed beside others. */
static basin_expr of_sample(basin_expr x, int kind) {
    int64_t rows = basin_expr_shape(x).dim[0], n = basin_expr_shape(x).dim[1];
    basin_expr square = basin_reshape(x, BASIN_SHAPE(rows, n / 40, 40));
    switch (kind) {
    case 0: return basin_sum(x, -1, 1);
    case 1: return basin_sum(basin_exp(x), -1, 1);
    case 2: return basin_softmax(x, -1);
    case 3: return basin_logsumexp(x, -1);
    case 4: return basin_sum(square, 1, 1);
    case 5: return basin_matmul_t(square, true, square, false);
    default: return basin_matmul(x, basin_transpose(basin_slice(x, 0, 0, 1)));
    }
}

/* A batch that is padded gives the samples that were there the same bits. */
TEST(samples_apart) {
    static const int64_t width[] = {40, 360, 80000};
    for (int i = 0; i < 3 * 7; i++) {
        basin_tensor value[3];
        for (int k = 0; k < 3; k++) {
            lab l = lab_new("cpu", k + 1);
            int64_t rows = k == 0 ? 3 : k == 1 ? 17 : 70, n = width[i / 7];
            basin_expr x = lab_state(&l, "x", BASIN_SHAPE(rows, n));
            BASIN_AT_EXIT(basin_tensor_free) basin_tensor number = {0};
            assert_int_equal(basin_tensor_new(&number, BASIN_F64, basin_expr_shape(x), NULL), 0);
            for (int64_t j = 0; j < rows * n; j++)
                ((double *)number.data)[j] = sin((double)(j * j % 1009));
            lab_set(&l, x, number.data);
            value[k] = lab_value(&l, basin_slice(of_sample(x, i % 7), 0, 0, 3));
            lab_close(&l);
        }
        lab_assert_near(&value[1], &value[0], 0, "3 of 17 samples");
        lab_assert_near(&value[2], &value[0], 0, "3 of 70 samples");
        for (int k = 0; k < 3; k++) basin_tensor_free(&value[k]);
    }
}

TEST(flat) {
    static const int64_t size[] = {1,    17,   255,  256,  1000,  1071,
                                   1072, 1073, 3000, 5555, 20000, 51200};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (int constants = 1; constants <= 13; constants += 3)
            check_one(BASIN_SHAPE(size[i]), constants, false);
}

TEST(rows) {
    static const int64_t width[] = {2, 3, 48, 64, 200, 255, 256, 257, 700, 1500};
    for (size_t i = 0; i < sizeof width / sizeof *width; i++)
        for (int constants = 1; constants <= 13; constants += 4)
            check_one(BASIN_SHAPE(8000 / width[i], width[i]), constants, true);
}
