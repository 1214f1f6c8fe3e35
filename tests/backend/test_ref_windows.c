/* Pairs, convolution, pooling and random draws on the reference backend: small cases by hand, and
 * the adjoint identity <A x, y> = <x, A' y> for each operation and its reverse. */
#include "backend/rig.h"
#include "basin/random.h"

static void fill(double *x, int64_t count, uint64_t stream) {
    for (int64_t i = 0; i < count; i++) x[i] = basin_random_normal_at(3, stream, (uint64_t)i);
}

static double dot(const double *x, const double *y, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

static void add_list(rig *r) {
    rig_index(r, BASIN_SHAPE(4), INDICES(0, 2, 2, 3));
    rig_index(r, BASIN_SHAPE(4), INDICES(1, 0, 1, -9)); /* the last one is padding */
    for (int i = 0; i < 3; i++) rig_in_absent(r);
}

/* Three queries, two keys, two heads of width 1; pairs (0, 1), (0, 0), (2, 1). */
TEST(pairs) {
    rig r = rig_new(BASIN_OP_PAIR_DOT);
    rig_in(&r, BASIN_SHAPE(3, 2, 1), VALUES(1, 2, 3, 4, 5, 6));
    rig_in(&r, BASIN_SHAPE(2, 2, 1), VALUES(1, 10, 2, 20));
    add_list(&r);
    rig_out(&r, BASIN_SHAPE(4, 2));
    rig_expect(&r, VALUES(2, 40, 1, 20, 10, 120, 0, 0));

    r = rig_new(BASIN_OP_PAIR_SUM);
    rig_in(&r, BASIN_SHAPE(4, 2), VALUES(1, 2, 3, 4, 5, 6, 99, 99));
    rig_in(&r, BASIN_SHAPE(2, 2, 1), VALUES(1, 10, 2, 20));
    add_list(&r);
    rig_out(&r, BASIN_SHAPE(3, 2, 1));
    rig_expect(&r, VALUES(5, 80, 0, 0, 10, 120));

    r = rig_new(BASIN_OP_PAIR_SUM);
    r.call.attr.transpose_a = true;
    rig_in(&r, BASIN_SHAPE(4, 2), VALUES(1, 2, 3, 4, 5, 6, 99, 99));
    rig_in(&r, BASIN_SHAPE(3, 2, 1), VALUES(1, 2, 3, 4, 5, 6));
    add_list(&r);
    rig_out(&r, BASIN_SHAPE(2, 2, 1));
    rig_expect(&r, VALUES(3, 8, 26, 40));
}

TEST(pairs_of_wide_heads) {
    rig r = rig_new(BASIN_OP_PAIR_DOT);
    rig_in(&r, BASIN_SHAPE(1, 1, 3), VALUES(1, 2, 3));
    rig_in(&r, BASIN_SHAPE(1, 1, 3), VALUES(4, 5, 6));
    rig_index(&r, BASIN_SHAPE(2), INDICES(0, 1));
    rig_index(&r, BASIN_SHAPE(1), INDICES(0));
    rig_out(&r, BASIN_SHAPE(1, 1));
    rig_expect(&r, VALUES(32));
}

static void set_window(rig *r, int rows, int columns, int stride, int pad) {
    r->call.attr.window[0] = rows, r->call.attr.window[1] = columns;
    r->call.attr.stride[0] = r->call.attr.stride[1] = stride;
    r->call.attr.pad[0] = r->call.attr.pad[1] = pad;
}

/* A 2 x 3 image of one channel under a 2 x 2 kernel, stride 1; valid, then padded by one before. */
TEST(conv_by_hand) {
    rig r = rig_new(BASIN_OP_CONV);
    set_window(&r, 0, 0, 1, 0);
    rig_in(&r, BASIN_SHAPE(1, 2, 3, 1), VALUES(1, 2, 3, 4, 5, 6));
    rig_in(&r, BASIN_SHAPE(2, 2, 1, 1), VALUES(1, 10, 100, 1000));
    rig_out(&r, BASIN_SHAPE(1, 1, 2, 1));
    rig_expect(&r, VALUES(5421, 6532));

    r = rig_new(BASIN_OP_CONV);
    set_window(&r, 0, 0, 1, 1);
    rig_in(&r, BASIN_SHAPE(1, 2, 3, 1), VALUES(1, 2, 3, 4, 5, 6));
    rig_in(&r, BASIN_SHAPE(2, 2, 1, 1), VALUES(1, 10, 100, 1000));
    rig_out(&r, BASIN_SHAPE(1, 2, 3, 1));
    rig_expect(&r, VALUES(1000, 2100, 3200, 4010, 5421, 6532));
}

/* Two images, 5 x 4 x 3, kernel 3 x 2 to 2 filters, stride 2, one row and column of padding:
 * y [2, 3, 2, 2]. The sum is independently coded: it walks x, not y. */
enum { X = 2 * 5 * 4 * 3, K = 3 * 2 * 3 * 2, Y = 2 * 3 * 2 * 2 };

static void conv_expected(double *y, const double *x, const double *kernel) {
    for (int i = 0; i < Y; i++) y[i] = 0;
    for (int i = 0; i < X * K; i++) {
        int cell = i / K, tap = i % K;
        int ch = cell % 3, c = cell / 3 % 4, r = cell / 12 % 5, b = cell / 60;
        int o = tap % 2, kch = tap / 2 % 3, dj = tap / 6 % 2, di = tap / 12;
        int row = r + 1 - di, column = c + 1 - dj;
        if (kch != ch || row < 0 || column < 0 || row % 2 || column % 2) continue;
        if (row / 2 >= 3 || column / 2 >= 2) continue;
        y[((b * 3 + row / 2) * 2 + column / 2) * 2 + o] += x[cell] * kernel[tap];
    }
}

TEST(conv_and_its_reverses) {
    double x[X], kernel[K], y[Y], expected[Y];
    basin_shape xs = BASIN_SHAPE(2, 5, 4, 3), ks = BASIN_SHAPE(3, 2, 3, 2),
                ys = BASIN_SHAPE(2, 3, 2, 2);
    fill(x, X, 1), fill(kernel, K, 2), fill(y, Y, 3);
    conv_expected(expected, x, kernel);
    rig r = rig_new(BASIN_OP_CONV);
    set_window(&r, 0, 0, 2, 1);
    rig_in(&r, xs, x), rig_in(&r, ks, kernel), rig_out(&r, ys);
    rig_expect(&r, expected);
    double wanted = dot(expected, y, Y);

    r = rig_new(BASIN_OP_CONV_INPUT);
    set_window(&r, 0, 0, 2, 1);
    rig_in(&r, ys, y), rig_in(&r, ks, kernel), rig_out(&r, xs);
    rig_run(&r);
    assert_true(fabs(dot(rig_result(&r, 0), x, X) - wanted) < 1e-12);
    rig_free(&r);

    r = rig_new(BASIN_OP_CONV_KERNEL);
    set_window(&r, 0, 0, 2, 1);
    rig_in(&r, xs, x), rig_in(&r, ys, y), rig_out(&r, ks);
    rig_run(&r);
    assert_true(fabs(dot(rig_result(&r, 0), kernel, K) - wanted) < 1e-12);
    rig_free(&r);
}

/* 3 x 3 cells, windows 2 x 2, stride 2, one row and column of padding before: windows of 1, 2, 2
 * and 4 real cells. */
static const double cells[] = {1, 5, 5, 2, 9, -1, 4, 9, 3};

static void pool_case(basin_op op, bool x_first, const double *second, bool y_out,
                      const double *wanted) {
    basin_shape xs = BASIN_SHAPE(1, 3, 3, 1), ys = BASIN_SHAPE(1, 2, 2, 1);
    rig r = rig_new(op);
    set_window(&r, 2, 2, 2, 1);
    if (x_first) rig_in(&r, xs, cells);
    if (second) rig_in(&r, y_out ? xs : ys, second);
    rig_out(&r, y_out ? ys : xs);
    rig_expect(&r, wanted);
}

TEST(pooling) {
    const double *y = VALUES(1, 20, 300, 4000);
    pool_case(BASIN_OP_AVGPOOL, true, NULL, true, VALUES(1, 5, 3, 5));
    pool_case(BASIN_OP_AVGPOOL_REVERSE, false, y, false,
              VALUES(1, 10, 10, 150, 1000, 1000, 150, 1000, 1000));
    pool_case(BASIN_OP_MAXPOOL, true, NULL, true, VALUES(1, 5, 4, 9));
    pool_case(BASIN_OP_MAXPOOL_SCATTER, true, y, false, VALUES(1, 20, 0, 0, 4000, 0, 300, 0, 0));
    pool_case(BASIN_OP_MAXPOOL_GATHER, true, VALUES(10, 11, 12, 13, 14, 15, 16, 17, 18), true,
              VALUES(10, 11, 16, 14));
}

/* Overlapping windows, several channels and images, and a window with no cell at all. */
TEST(pooling_overlap) {
    rig r = rig_new(BASIN_OP_MAXPOOL_SCATTER);
    set_window(&r, 1, 2, 1, 0);
    rig_in(&r, BASIN_SHAPE(2, 1, 3, 2), VALUES(1, 9, 5, 1, 2, 1, 0, 1, 0, 2, 0, 3));
    rig_in(&r, BASIN_SHAPE(2, 1, 2, 2), VALUES(1, 2, 3, 4, 5, 6, 7, 8));
    rig_out(&r, BASIN_SHAPE(2, 1, 3, 2));
    rig_expect(&r, VALUES(0, 2, 4, 4, 0, 0, 5, 0, 7, 6, 0, 8));

    const basin_op ops[] = {BASIN_OP_AVGPOOL, BASIN_OP_MAXPOOL};
    for (int i = 0; i < 2; i++) {
        r = rig_new(ops[i]);
        set_window(&r, 1, 1, 1, 1);
        rig_in(&r, BASIN_SHAPE(1, 1, 1, 1), VALUES(-3));
        rig_out(&r, BASIN_SHAPE(1, 2, 2, 1));
        rig_expect(&r, VALUES(0, 0, 0, -3));
    }
}

TEST(random_draws) {
    const uint64_t seed = 0x80000001fffffff2u;
    for (int uniform = 0; uniform < 2; uniform++) {
        double wanted[6];
        rig r = rig_new(uniform ? BASIN_OP_UNIFORM : BASIN_OP_NORMAL);
        r.call.attr.stream = 5;
        rig_index(&r, BASIN_SHAPE(2), INDICES(-14, INT32_MIN + 1)); /* the words of the seed */
        rig_out(&r, BASIN_SHAPE(2, 3));
        for (uint64_t i = 0; i < 6; i++)
            wanted[i] = uniform ? (double)basin_random_uniform_at(seed, 5, i)
                                : basin_random_normal_at(seed, 5, i);
        rig_run(&r);
        rig_check(&r, 0, wanted, 0);
        rig_free(&r);
    }
}
