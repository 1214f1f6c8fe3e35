/* What a plan makes of expressions: dead nodes gone, equal ones shared, chains and epilogues in one
 * call, memory by lifetimes, updates that read old values, recomputation, the same bits for any
 * number of threads. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/info.h"
#include "engine/backend/kernel.h"
#include "engine/expr/graph.h"
#include "engine/plan/plan.h"
#include "support/lab.h"

typedef struct bench {
    basin_backend *backend;
    basin_store *store;
    basin_plan *plan;
} bench;

static void open_bench(bench *b, const char *name, int threads) {
    *b = (bench){0};
    assert_ok(basin_backend_open(&b->backend, &(basin_compute){.backend = name, .threads = threads},
                                 &failure));
    assert_int_equal(basin_store_new(&b->store, b->backend, NULL), BASIN_OK);
}

static void close_bench(bench *b) {
    basin_plan_free(b->plan);
    basin_store_free(b->store);
    basin_backend_close(b->backend);
}

static basin_plan_stats make_plan(bench *b, const basin_plan_spec *spec) {
    basin_plan_free(b->plan);
    assert_ok(basin_plan_new(&b->plan, b->store, spec, &failure));
    return basin_plan_stats_of(b->plan);
}

static basin_plan_stats stats_of(basin_expr a, basin_fusion fusion) {
    bench b;
    open_bench(&b, "cpu", 1);
    basin_plan_stats stats =
        make_plan(&b, &(basin_plan_spec){.output = &a, .outputs = 1, .fusion = fusion});
    close_bench(&b);
    return stats;
}

static int calls_of(basin_expr a) { return stats_of(a, BASIN_FUSE_ON).calls; }

TEST(test_dead_and_equal) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(4, 4), -1, 1);
    basin_matmul(basin_exp(x), x); /* nobody asks for it */
    basin_expr y = basin_sum_all(basin_matmul(x, x));
    assert_int_equal(stats_of(y, BASIN_FUSE_OFF).nodes, 2);
    assert_ptr_equal(basin_matmul(x, x), basin_matmul(x, x));
    assert_ptr_equal(basin_add(x, y), basin_add(y, x));
    assert_ptr_equal(basin_offset(x, 2), basin_add(basin_scalar(c.graph, 2), x));
    assert_ptr_equal(basin_input(c.graph, "x", BASIN_SHAPE(4, 4)), x);
    basin_expr twice = basin_add(basin_sum_all(basin_matmul(x, x)), basin_exp(y));
    assert_int_equal(stats_of(twice, BASIN_FUSE_OFF).nodes, 4);
}

/* Many small products of which one has a single row, column or step of k: cpu makes no product. */
TEST(test_thin_products) {
    static const int64_t size[][3] = {{5, 1, 7}, {6, 33, 1}, {1, 33, 6}, {1, 40, 1}, {3, 20, 2}};
    for (int i = 0; i < 20; i++) {
        int64_t m = size[i / 4][0], k = size[i / 4][1], n = size[i / 4][2];
        bool ta = i & 1, tb = i & 2,
             thin = k == 1 || (n == 1 && (!ta || m == 1)) || (m == 1 && (tb || n == 1));
        basin_tensor value[2] = {{0}};
        for (int fast = 0; fast < 2; fast++) {
            lab l = lab_new(fast ? "cpu" : "ref", 1);
            basin_shape a = ta ? BASIN_SHAPE(17, k, m) : BASIN_SHAPE(17, m, k);
            basin_shape b = tb ? BASIN_SHAPE(17, n, k) : BASIN_SHAPE(17, k, n);
            basin_expr y = basin_matmul_t(lab_state(&l, "a", a), ta, lab_state(&l, "b", b), tb);
            char text[1000];
            lab_fill(&l, 3, 1);
            basin_plan *plan = lab_plan(&l, &y, 1);
            basin_plan_describe(plan, 0, text, sizeof text);
            lab_run(plan);
            value[fast] = lab_read(plan, y);
            assert_int_equal(!strstr(text, "MATMUL"), fast && thin);
            basin_plan_free(plan);
            lab_close(&l);
        }
        lab_assert_near(&value[1], &value[0], 1e-6, "a thin product");
        basin_tensor_free(&value[0]);
        basin_tensor_free(&value[1]);
    }
}

/* A plan that does not fit is refused with its size and advice, one that does is not. */
TEST(test_memory_limit) {
    BASIN_AT_EXIT(check_free) check c;
    bench b;
    basin_error error = {0};
    c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(512, 512), -1, 1);
    basin_expr y = basin_matmul(basin_exp(x), x);
    basin_plan_spec spec = {.output = &y, .outputs = 1};
    open_bench(&b, "cpu", 1);
    basin_plan_stats stats = make_plan(&b, &spec);
    basin_plan_free(b.plan);
    b.backend->memory_limit = stats.arena_bytes + stats.input_bytes - 1;
    assert_int_equal(basin_plan_new(&b.plan, b.store, &spec, &error), BASIN_NO_MEMORY);
    assert_null(b.plan);
    assert_non_null(strstr(error.text, "GiB"));
    assert_non_null(strstr(error.text, "(recompute)")); /* settings, not flags of a program */
    assert_null(strstr(error.text, "--"));
    b.backend->memory_limit = stats.arena_bytes + stats.input_bytes;
    make_plan(&b, &spec);
    close_bench(&b);
}

TEST(test_chains) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(5, 7), -1, 1);
    basin_expr row = check_input(&c, "row", BASIN_SHAPE(7), -1, 1);
    basin_expr y = basin_tanh(basin_add(basin_mul(x, row), basin_exp(basin_neg(x))));
    assert_int_equal(calls_of(y), 1);
    assert_int_equal(stats_of(y, BASIN_FUSE_OFF).calls, 5);
    assert_int_equal(stats_of(y, BASIN_FUSE_ON).nodes, 5);
    check_backends(&c, y, 1e-6);
    /* a chain longer than a program may be */
    for (int i = 0; i < 200; i++) y = basin_sin(basin_add(y, i % 2 ? x : row));
    assert_true(calls_of(y) <= 12);
    check_backends(&c, y, 1e-4);
    /* more operands than a call has */
    basin_expr sum = NULL;
    for (int i = 0; i < 40; i++) {
        basin_expr part = basin_reshape(basin_slice(basin_sin(x), 0, i % 5, 1), BASIN_SHAPE(7));
        part = basin_cos(basin_scale(basin_softmax(basin_scale(part, 1 + i), -1), 3));
        sum = sum ? basin_add(sum, part) : part;
    }
    check_backends(&c, sum, 1e-5);
}

/* More values alive at once in one program than it has registers. */
TEST(test_registers) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(6), -1, 1), part[40], y = NULL;
    for (int i = 0; i < 40; i++) part[i] = basin_sin(basin_offset(x, 0.1 * i));
    for (int i = 0; i < 40; i++) y = y ? basin_add(y, basin_mul(part[i], part[39 - i])) : part[0];
    check_backends(&c, y, 1e-5);
}

TEST(test_epilogues) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 5, 6), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(6, 6), -1, 1);
    basin_expr bias = check_input(&c, "bias", BASIN_SHAPE(6), -1, 1);
    basin_expr h = basin_matmul(x, w);
    basin_expr y[] = {
        basin_relu(h),
        basin_relu(basin_add(h, bias)),
        basin_add(x, basin_scale(basin_tanh(basin_add(h, bias)), 0.5)),
        basin_mul(basin_reshape(h, BASIN_SHAPE(10, 6)), basin_sigmoid(bias)),
        basin_square(basin_reshape(h, BASIN_SHAPE(60))),
        basin_exp(basin_matmul_t(x, false, x, true)),
        basin_add(basin_matmul_t(x, false, x, true),
                  basin_reshape(basin_slice(bias, 0, 0, 5), BASIN_SHAPE(5, 1))),
    };
    const int calls[] = {1, 1, 1, 2, 2, 1, 2};
    for (size_t i = 0; i < sizeof y / sizeof *y; i++) {
        check_backends(&c, y[i], 1e-5);
        if (calls_of(y[i]) > calls[i]) fail_msg("%zu takes %d calls", i, calls_of(y[i]));
    }
    /* read by someone else: no epilogue, but right */
    basin_expr both = basin_concat((basin_expr[]){basin_relu(h), h}, 2, 0);
    check_backends(&c, both, 1e-5);
}

/* Long inner sums: the residual must not be overwritten by partial products. */
TEST(test_residual_in_place) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(9, 1500), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(1500, 40), -0.1, 0.1);
    basin_expr r = check_input(&c, "r", BASIN_SHAPE(9, 40), -1, 1);
    basin_expr residual = basin_softmax(r, -1);
    check_backends(&c, basin_add(residual, basin_matmul(x, w)), 1e-5);
}

/* Products that are added run as one call each, beside one that may pack what they share. */
TEST(test_accumulation) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(6, 8), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(8, 8), -1, 1), y = basin_matmul(x, w);
    for (int i = 0; i < 5; i++) y = basin_add(y, basin_matmul(y, w));
    assert_in_range(calls_of(y), 6, 7);
    check_backends(&c, y, 1e-5);
}

TEST(test_memory) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(100, 100), -1, 1), y = x;
    size_t matrix = 100 * 100 * sizeof(float);
    for (int i = 0; i < 10; i++) y = basin_softmax(basin_exp(y), -1);
    basin_plan_stats fused = stats_of(y, BASIN_FUSE_ON);
    assert_true(fused.arena_bytes < fused.unshared_bytes);
    assert_true(fused.arena_bytes < 2 * matrix + matrix / 2);
    assert_true(fused.unshared_bytes >= 10 * matrix);
    assert_true(fused.input_bytes >= matrix && fused.input_bytes < matrix + 64);
    assert_int_equal(fused.state_bytes, 0);
    /* in place: a chain of pointwise calls needs one buffer */
    basin_expr s = basin_softmax(x, -1), z = s;
    for (int i = 0; i < 500; i++) z = basin_sin(basin_offset(z, i));
    assert_true(stats_of(z, BASIN_FUSE_ON).arena_bytes < matrix + matrix / 2);
    basin_expr p = basin_state(c.graph, "p", BASIN_SHAPE(100, 10));
    basin_plan_stats stated = stats_of(basin_matmul(x, p), BASIN_FUSE_ON);
    assert_true(stated.state_bytes >= matrix / 10 && stated.state_bytes < matrix / 10 + 64);
}

/* ---- updates ---- */

static void write_state(bench *b, const char *name, basin_shape shape, double base) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor t;
    assert_int_equal(basin_tensor_new(&t, BASIN_F64, shape, NULL), BASIN_OK);
    for (int64_t i = 0; i < basin_shape_count(shape); i++) ((double *)t.data)[i] = base + (double)i;
    assert_ok(basin_store_write(b->store, name, &t, &failure));
}

static double state_at(bench *b, const char *name, int64_t i) {
    basin_tensor t;
    assert_int_equal(basin_store_get(&t, b->store, name, NULL), BASIN_OK);
    double value = basin_tensor_at(&t, i);
    basin_tensor_free(&t);
    return value;
}

static void run(bench *b) { assert_int_equal(basin_plan_run(b->plan, NULL), BASIN_OK); }

TEST(test_swap) {
    for (int plain = 0; plain < 2; plain++) {
        bench b;
        basin_graph *g = basin_graph_new();
        basin_shape s = BASIN_SHAPE(3, 2);
        basin_expr a = basin_state(g, "a", s), q = basin_state(g, "b", s);
        basin_expr r = basin_state(g, "c", s);
        basin_update update[] = {{a, q}, {q, r}, {r, a}};
        basin_expr out[] = {a, basin_add(a, q), basin_reshape(q, BASIN_SHAPE(6))};
        open_bench(&b, "cpu", 1);
        write_state(&b, "a", s, 100);
        write_state(&b, "b", s, 200);
        write_state(&b, "c", s, 300);
        make_plan(&b, &(basin_plan_spec){.output = out,
                                         .outputs = 3,
                                         .update = update,
                                         .updates = 3,
                                         .fusion = plain ? BASIN_FUSE_OFF : BASIN_FUSE_ON});
        run(&b);
        assert_float_equal(state_at(&b, "a", 1), 201, 0);
        assert_float_equal(state_at(&b, "b", 5), 305, 0);
        assert_float_equal(state_at(&b, "c", 0), 100, 0);
        /* outputs are what the expressions were worth when the run began */
        const double wanted[] = {100, 300, 200};
        for (int i = 0; i < 3; i++) {
            double data[6];
            basin_tensor t = basin_tensor_borrow(data, BASIN_F64, basin_expr_shape(out[i]));
            assert_int_equal(basin_plan_read(&t, b.plan, out[i], NULL), BASIN_OK);
            assert_float_equal(data[0], wanted[i], 0);
        }
        run(&b);
        run(&b);
        assert_float_equal(state_at(&b, "a", 1), 101, 0);
        close_bench(&b);
        basin_graph_free(g);
    }
}

/* Values that fan out: two states take one value, a state takes a broadcast and a transpose of
 * itself, and others read it late. */
TEST(test_update_shapes) {
    for (int plain = 0; plain < 2; plain++) {
        bench b;
        basin_graph *g = basin_graph_new();
        basin_shape s = BASIN_SHAPE(3, 3);
        basin_expr a = basin_state(g, "a", s), q = basin_state(g, "b", s);
        basin_expr r = basin_state(g, "c", s), d = basin_state(g, "d", s);
        basin_expr v = basin_scale(basin_add(a, basin_slice(a, 0, 0, 1)), 0.5);
        basin_expr late = basin_matmul(basin_add(v, a), q);
        basin_update update[] = {{a, v}, {q, v}, {r, basin_transpose(r)}, {d, late}};
        open_bench(&b, "cpu", 1);
        write_state(&b, "a", s, 1);
        write_state(&b, "b", s, 10);
        write_state(&b, "c", s, 100);
        make_plan(&b, &(basin_plan_spec){.update = update,
                                         .updates = 4,
                                         .fusion = plain ? BASIN_FUSE_OFF : BASIN_FUSE_ON});
        run(&b);
        assert_float_equal(state_at(&b, "a", 5), (6 + 3) / 2.0, 1e-6);
        assert_float_equal(state_at(&b, "b", 8), (9 + 3) / 2.0, 1e-6);
        assert_float_equal(state_at(&b, "c", 1), 103, 0);
        /* row 0 of v + a is 2, 4, 6; column 0 of b is 10, 13, 16 */
        assert_float_equal(state_at(&b, "d", 0), 2 * 10 + 4 * 13 + 6 * 16, 1e-4);
        close_bench(&b);
        basin_graph_free(g);
    }
}

/* AdamW: three states written by one call, with the bias corrections as inputs. */
TEST(test_adamw) {
    enum { N = 37 };
    const double lr = 0.01, b1 = 0.9, b2 = 0.99, decay = 0.1, epsilon = 1e-8;
    BASIN_AT_EXIT(free_graph) basin_graph *g = basin_graph_new();
    basin_shape s = BASIN_SHAPE(N);
    basin_expr p = basin_state(g, "p", s), m = basin_state(g, "m", s), v = basin_state(g, "v", s);
    basin_expr grad = basin_input(g, "grad", s);
    basin_expr m1 = basin_add(basin_scale(m, b1), basin_scale(grad, 1 - b1));
    basin_expr v1 = basin_add(basin_scale(v, b2), basin_scale(basin_square(grad), 1 - b2));
    basin_expr step = basin_div(m1, basin_offset(basin_sqrt(v1), epsilon));
    basin_expr p1 = basin_sub(basin_scale(p, 1 - lr * decay), basin_scale(step, lr));
    basin_update update[] = {{p, p1}, {m, m1}, {v, v1}};
    bench b;
    open_bench(&b, "cpu", 2);
    write_state(&b, "p", s, 1);
    basin_plan_stats stats = make_plan(&b, &(basin_plan_spec){.update = update, .updates = 3});
    assert_int_equal(stats.calls, 1);
    assert_int_equal(stats.arena_bytes, 0);
    double gradient[N], pw[N], mw[N] = {0}, vw[N] = {0};
    for (int i = 0; i < N; i++) pw[i] = 1 + i;
    for (int t = 0; t < 3; t++) {
        check_fill(gradient, N, (uint64_t)t);
        basin_tensor tensor = basin_tensor_borrow(gradient, BASIN_F64, s);
        assert_int_equal(basin_plan_write(b.plan, grad, &tensor, NULL), BASIN_OK);
        run(&b);
        for (int i = 0; i < N; i++) {
            mw[i] = b1 * mw[i] + (1 - b1) * gradient[i];
            vw[i] = b2 * vw[i] + (1 - b2) * gradient[i] * gradient[i];
            pw[i] = pw[i] * (1 - lr * decay) - lr * mw[i] / (sqrt(vw[i]) + epsilon);
        }
    }
    for (int i = 0; i < N; i++) {
        assert_float_equal(state_at(&b, "p", i), pw[i], 1e-5);
        assert_float_equal(state_at(&b, "m", i), mw[i], 1e-6);
        assert_float_equal(state_at(&b, "v", i), vw[i], 1e-6);
    }
    close_bench(&b);
}

/* Plans on one store share states by name. */
TEST(test_shared_store) {
    bench b;
    basin_plan *reader;
    BASIN_AT_EXIT(free_graph) basin_graph *g = basin_graph_new(), *h = basin_graph_new();
    basin_expr a = basin_state(g, "a", BASIN_SHAPE(2)), same = basin_state(h, "a", BASIN_SHAPE(2));
    basin_update update = {a, basin_offset(a, 1)};
    basin_expr sum = basin_sum_all(same);
    open_bench(&b, "cpu", 1);
    make_plan(&b, &(basin_plan_spec){.update = &update, .updates = 1});
    assert_ok(basin_plan_new(&reader, b.store, &(basin_plan_spec){.output = &sum, .outputs = 1},
                             &failure));
    for (int i = 0; i < 5; i++) run(&b);
    assert_int_equal(basin_plan_run(reader, NULL), BASIN_OK);
    assert_float_equal(basin_plan_scalar(reader, sum), 10, 0);
    assert_string_equal(basin_store_name(b.store, 0), "a");
    assert_null(basin_store_name(b.store, 1));
    assert_int_equal(basin_store_shape(b.store, 0).dim[0], 2);
    basin_plan_free(reader);
    close_bench(&b);
}

/* ---- recomputation ---- */

enum { TOKENS = 64, WIDTH = 32, HIDDEN = 256 };

/* T steps of x <- x + f(x), their loss, and its gradients with respect to x and the weights. */
typedef struct descent {
    basin_graph *graph;
    basin_expr x, w, out[3];
} descent;

static descent build_descent(int T, bool recompute, bool force) {
    descent d = {.graph = basin_graph_new()};
    d.x = basin_input(d.graph, "x", BASIN_SHAPE(TOKENS, WIDTH));
    d.w = basin_state(d.graph, "w", BASIN_SHAPE(WIDTH, HIDDEN));
    basin_expr x = d.x, at[] = {d.x, d.w};
    for (int t = 0; t < T; t++) {
        if (recompute) basin_recompute_begin(d.graph);
        basin_expr h = basin_matmul(basin_tanh(x), d.w);
        basin_expr f = basin_matmul_t(basin_softplus(h), false, d.w, true);
        if (force) f = basin_grad(basin_sum_all(basin_lncosh(h)), x);
        x = basin_add(x, basin_scale(f, -0.01));
        if (recompute) basin_keep(x);
        if (recompute) basin_recompute_end(d.graph);
    }
    d.out[0] = basin_mean_all(basin_square(x));
    basin_vjp(d.out + 1, d.out[0], NULL, at, 2);
    assert_null(basin_graph_error(d.graph));
    return d;
}

static basin_plan_stats run_descent(basin_tensor result[3], const descent *d, const char *backend,
                                    int threads) {
    bench b;
    basin_tensor x;
    open_bench(&b, backend, threads);
    basin_plan_stats stats =
        make_plan(&b, &(basin_plan_spec){.output = d->out, .outputs = 3, .fusion = BASIN_FUSE_ON});
    assert_int_equal(basin_tensor_new(&x, BASIN_F64, BASIN_SHAPE(WIDTH, HIDDEN), NULL), BASIN_OK);
    check_fill(x.data, WIDTH * HIDDEN, 3);
    assert_int_equal(basin_store_write(b.store, "w", &x, NULL), BASIN_OK);
    x.shape = BASIN_SHAPE(TOKENS, WIDTH);
    check_fill(x.data, TOKENS * WIDTH, 4);
    assert_int_equal(basin_plan_write(b.plan, d->x, &x, NULL), BASIN_OK);
    run(&b);
    for (int i = 0; i < 3; i++) {
        assert_ok(basin_tensor_new(&result[i], BASIN_F64, basin_expr_shape(d->out[i]), &failure));
        assert_int_equal(basin_plan_read(&result[i], b.plan, d->out[i], NULL), BASIN_OK);
    }
    basin_tensor_free(&x);
    close_bench(&b);
    return stats;
}

static void free_results(basin_tensor result[3]) {
    for (int i = 0; i < 3; i++) basin_tensor_free(&result[i]);
}

TEST(test_recompute_values) {
    for (int force = 0; force < 2; force++) {
        descent kept = build_descent(4, false, force), again = build_descent(4, true, force);
        basin_tensor a[3], b[3];
        basin_plan_stats first = run_descent(a, &kept, "ref", 1);
        basin_plan_stats second = run_descent(b, &again, "ref", 1);
        assert_int_equal(first.recomputed, 0);
        assert_true(second.recomputed > 4);
        assert_true(second.arena_bytes < first.arena_bytes);
        for (int i = 0; i < 3; i++) assert_true(check_distance(&b[i], &a[i]) < 1e-12);
        free_results(a);
        free_results(b);
        basin_graph_free(kept.graph);
        basin_graph_free(again.graph);
    }
}

/* Memory beyond the first steps grows by one token tensor a step. */
TEST(test_recompute_memory) {
    for (int force = 0; force < 2; force++) {
        size_t bytes[2], token = TOKENS * WIDTH * sizeof(float);
        const int T[] = {4, 12};
        for (int i = 0; i < 2; i++) {
            descent d = build_descent(T[i], true, force);
            bench b;
            open_bench(&b, "cpu", 1);
            bytes[i] = make_plan(&b, &(basin_plan_spec){.output = d.out, .outputs = 3}).arena_bytes;
            close_bench(&b);
            basin_graph_free(d.graph);
        }
        size_t grown = bytes[1] > bytes[0] ? bytes[1] - bytes[0] : 0;
        if (grown > 9 * token) fail_msg("8 more steps take %zu token tensors more", grown / token);
    }
}

/* Without recomputation the sums of gradients still do not keep every step's product. */
TEST(test_accumulated_gradient_memory) {
    size_t bytes[2], weight = WIDTH * HIDDEN * sizeof(float),
                     hidden = TOKENS * HIDDEN * sizeof(float);
    const int T[] = {4, 12};
    for (int i = 0; i < 2; i++) {
        descent d = build_descent(T[i], false, false);
        bytes[i] = stats_of(d.out[2], BASIN_FUSE_ON).arena_bytes;
        basin_graph_free(d.graph);
    }
    /* tanh x, h and softplus h of each step, but no weight gradients */
    size_t step = 2 * hidden + 2 * TOKENS * WIDTH * sizeof(float);
    if (bytes[1] > bytes[0] + 8 * step + weight)
        fail_msg("8 more steps take %zu bytes, expected at most %zu", bytes[1] - bytes[0],
                 8 * step + weight);
}

TEST(test_threads) {
    descent d = build_descent(3, true, true);
    basin_tensor one[3];
    run_descent(one, &d, "cpu", 1);
    for (int threads = 2; threads <= 4; threads++) {
        basin_tensor many[3];
        run_descent(many, &d, "cpu", threads);
        for (int i = 0; i < 3; i++)
            assert_memory_equal(many[i].data, one[i].data, basin_tensor_bytes(&one[i]));
        free_results(many);
    }
    free_results(one);
    basin_graph_free(d.graph);
}

/* A region whose result is not kept, read in the next region and by an update. */
TEST(test_regions_without_keep) {
    bench b;
    basin_graph *g = basin_graph_new();
    basin_expr a = basin_state(g, "a", BASIN_SHAPE(5)), x = a;
    for (int t = 0; t < 3; t++) {
        basin_recompute_begin(g);
        x = basin_softmax(basin_exp(x), -1);
        basin_recompute_end(g);
    }
    basin_expr out = basin_grad(basin_sum_all(basin_square(x)), a),
               plain = basin_state(g, "p", BASIN_SHAPE(5));
    basin_update update = {plain, x};
    open_bench(&b, "ref", 1);
    write_state(&b, "a", BASIN_SHAPE(5), -2);
    make_plan(&b,
              &(basin_plan_spec){.output = &out, .outputs = 1, .update = &update, .updates = 1});
    run(&b);
    double v[5] = {-2, -1, 0, 1, 2};
    for (int t = 0; t < 3; t++) {
        double sum = 0;
        for (int i = 0; i < 5; i++) sum += exp(exp(v[i]) - exp(2));
        for (int i = 0; i < 5; i++) v[i] = exp(exp(v[i]) - exp(2)) / sum;
    }
    for (int i = 0; i < 5; i++) assert_float_equal(state_at(&b, "p", i), v[i], 1e-12);
    close_bench(&b);
    basin_graph_free(g);
}

/* Chains of thousands of operations must not exhaust the stack, nor take long. */
TEST(test_long_chain) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2), -1, 1), y = x;
    for (int i = 0; i < 4000; i++) y = i % 50 ? basin_sin(y) : basin_softmax(y, -1);
    check_backends(&c, basin_grad(y, x), 1e-3);
}

/* A force computes the log-sum-exp of its scores as well, which then need not be computed alone;
 * but of two forces that each wait for the other's, only one may give it. */
TEST(test_shared_forces) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr p = check_input(&c, "p", BASIN_SHAPE(2, 2, 3), -1, 1);
    basin_expr q = check_input(&c, "q", BASIN_SHAPE(2, 2, 3), -1, 1);
    basin_expr beta = basin_full(c.graph, BASIN_SHAPE(2), 0.7);
    basin_expr a = basin_attention_lse(p, p, beta, &BASIN_ALL_PAIRS, NULL);
    basin_expr transposed = basin_transpose(a);
    basin_expr b = basin_attention_lse(q, q, beta, &BASIN_ALL_PAIRS, NULL);
    basin_expr energy = basin_sum_all(a), y = basin_sum_all(basin_mul(transposed, b));
    basin_expr force = basin_grad(energy, p), both[] = {energy, force};
    bench d;
    open_bench(&d, "cpu", 1);
    basin_plan_stats alone = make_plan(&d, &(basin_plan_spec){.output = both + 1, .outputs = 1});
    basin_plan_stats with = make_plan(&d, &(basin_plan_spec){.output = both, .outputs = 2});
    assert_int_equal(with.calls, alone.calls + 1); /* the sum */
    close_bench(&d);
    check_backends(&c, basin_add(basin_grad(y, p), basin_grad(y, q)), 1e-5);
}

/* Where the backend keeps something of attention with values, its reverse, and no other one of the
 * same tokens, takes it; numbers do not change. Two of them draw apart, one draws nothing. */
TEST(test_kept_values) {
    const int32_t word[] = {3, 8};
    double x[2 * 5 * 12];
    basin_backend_table table; /* outlives the plan */
    BASIN_AT_EXIT(lab_close) lab l = lab_new("cpu", 1);
    check_fill(x, 2 * 5 * 12, 4);
    basin_expr tokens = lab_input(&l, "x", BASIN_SHAPE(2, 5, 12), x);
    basin_expr seed = lab_index(&l, "seed", word, 2), loss = NULL, o[3];
    for (int i = 0; i < 3; i++) {
        o[i] = lab_attention(tokens, 2, i < 2 ? 0.4 : 0, seed, &BASIN_CAUSAL_PAIRS);
        basin_expr sum = basin_sum_all(basin_sin(o[i]));
        loss = loss ? basin_add(loss, sum) : sum;
    }
    basin_expr gradient = basin_grad(loss, tokens);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor wanted = lab_value(&l, gradient);
    table = *l.backend->table;
    table.keeps = true, l.backend->table = &table;
    basin_plan *plan = lab_plan(&l, &gradient, 1);
    int kept = 0, without = 0;
    for (size_t i = 0; i < plan->calls; i++) {
        const basin_call *reverse = &plan->call[i], *values = reverse;
        if (reverse->op != BASIN_OP_VALUES_REVERSE) continue;
        while (values->op != BASIN_OP_VALUES || values->attr.stream != reverse->attr.stream)
            values--;
        without += reverse->ins == BASIN_VAL_C + 1 && values->outs == 1;
        if (values->outs == 1) continue;
        assert_int_equal(reverse->ins, BASIN_VAL_O + 1);
        kept += reverse->in[BASIN_VAL_KEPT].offset == values->out[1].offset &&
                reverse->in[BASIN_VAL_O].offset == values->out[0].offset;
    }
    assert_int_equal(kept, 2);
    assert_int_equal(without, 1);
    lab_run(plan);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor found = lab_read(plan, gradient);
    assert_memory_equal(found.data, wanted.data, basin_tensor_bytes(&wanted));
    basin_plan_free(plan);
}

/* A reverse takes what the attention of its own operands keeps: of a region that is computed again,
 * the second one; of causal and other attention of the same tokens (kept in bfloat16), its own. */
TEST(test_kept_values_of_own_operands) {
    const int32_t word[] = {3, 8};
    double x[2 * 5 * 48];
    check_fill(x, 2 * 5 * 48, 4);
    for (int again = 0; again < 2; again++) {
        basin_backend_table table; /* outlives the plan */
        BASIN_AT_EXIT(lab_close) lab l = lab_new("ref", 1);
        if (!again) lab_narrow(&l, BASIN_BF16);
        basin_expr tokens = lab_input(&l, "x", BASIN_SHAPE(2, 5, 48), x), loss = NULL;
        basin_expr seed = lab_index(&l, "seed", word, 2), h = tokens;
        if (again) basin_recompute_begin(l.graph);
        if (again) h = basin_sin(h);
        for (int i = 0; i < 2 - again; i++) {
            basin_expr o = lab_attention(h, 2, again ? 0.4 : 0, seed,
                                         i ? &BASIN_CAUSAL_PAIRS : &BASIN_ALL_PAIRS);
            basin_expr sum = basin_sum_all(basin_sin(o));
            if (again) basin_recompute_end(l.graph);
            loss = loss ? basin_add(loss, sum) : sum;
        }
        table = *l.backend->table;
        table.keeps = table.fuse = true, l.backend->table = &table;
        basin_expr output[] = {loss, basin_grad(loss, tokens)};
        basin_plan *plan = lab_plan(&l, output, 2);
        int all = 0, keeps = 0, kept = 0;
        for (size_t i = 0; i < plan->calls; i++) {
            const basin_call *reverse = &plan->call[i], *values = reverse;
            all += reverse->op == BASIN_OP_VALUES;
            keeps += reverse->op == BASIN_OP_VALUES && reverse->outs == 2;
            if (reverse->op != BASIN_OP_VALUES_REVERSE) continue;
            while (values->op != BASIN_OP_VALUES || values->attr.causal != reverse->attr.causal)
                values--; /* the last one */
            kept += values->outs == 2 && reverse->ins == BASIN_VAL_O + 1 &&
                    reverse->in[BASIN_VAL_KEPT].offset == values->out[1].offset &&
                    reverse->in[BASIN_VAL_Q].offset == values->in[BASIN_VAL_Q].offset;
        }
        assert_int_equal(all, 2);
        assert_int_equal(keeps, 2 - again);
        assert_int_equal(kept, 2 - again);
        basin_plan_free(plan);
    }
}

/* Masks of dropout that programs alone read are drawn there where the backend can: the program has
 * the seed as an operand, with the mask's rate and stream. A mask whose number of elements cuts a
 * call of Philox is drawn apart, as other draws are. */
TEST(test_draws_in_programs) {
    const int32_t word[] = {3, 8};
    bench b;
    open_bench(&b, "cpu", 1);
    basin_backend_table table = *b.backend->table;
    table.draws = true, b.backend->table = &table;
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr seed = check_index(&c, "seed", word, 2), output[4];
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(3, 16), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(16, 16), -1, 1);
    output[0] = basin_dropout(basin_sin(x), 0.25, seed);
    output[1] = basin_add(x, basin_dropout(basin_matmul(x, w), 0.25, seed));
    output[2] = basin_dropout(check_input(&c, "odd", BASIN_SHAPE(3, 5), -1, 1), 0.25, seed);
    output[3] = basin_sin(basin_uniform(seed, BASIN_SHAPE(3, 16)));
    make_plan(&b, &(basin_plan_spec){.output = output, .outputs = 4, .fusion = BASIN_FUSE_ON});
    uint32_t stream[2] = {0};
    int uniforms = 0, drawn = 0;
    for (size_t i = 0; i < b.plan->calls; i++) {
        const basin_call *call = &b.plan->call[i];
        uniforms += call->op == BASIN_OP_UNIFORM;
        for (int k = 0; k < call->ins; k++) {
            if (!(call->in[k].drop > 0)) continue;
            assert_true(call->in[k].kind == BASIN_INDEX && call->in[k].drop == 0.25);
            assert_true(call->op == BASIN_OP_POINTWISE || (call->op == BASIN_OP_MATMUL && k >= 2));
            if (drawn < 2) stream[drawn] = call->in[k].stream;
            drawn++;
        }
    }
    assert_int_equal(drawn, 2);
    assert_int_equal(uniforms, 2);
    assert_true(stream[0] > 0 && stream[1] > 0 && stream[0] != stream[1]);
    close_bench(&b);
}

/* Attention within windows and among all tokens reads the same queries in two shapes: a force of
 * the one does not give the log-sum-exps of the other. */
TEST(test_windows_and_all) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(12, 2, 4), -1, 1);
    basin_expr beta = basin_full(c.graph, BASIN_SHAPE(2), 0.7);
    basin_expr windows = basin_reshape(x, BASIN_SHAPE(2, 6, 2, 4));
    basin_expr all = basin_attention_lse(x, x, beta, &BASIN_ALL_PAIRS, NULL);
    basin_expr some = basin_attention_lse(windows, windows, beta, &BASIN_ALL_PAIRS, NULL);
    basin_expr force = basin_grad(basin_sum_all(all), x);
    check_backends(&c, basin_mul(force, basin_sum_all(some)), 1e-5);
}

/* Paths double at every step: what depends on what must not be asked path by path. */
TEST(test_many_paths) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(2, 2, 2), -1, 1);
    basin_expr beta = basin_full(c.graph, BASIN_SHAPE(2), 0.7), y = NULL;
    for (int i = 0; i < 40; i++) {
        basin_expr lse = basin_attention_lse(x, x, beta, &BASIN_ALL_PAIRS, NULL);
        x = basin_add(basin_softmax(x, -1), basin_softmax(basin_sin(x), -1));
        y = y ? basin_add(basin_sum_all(lse), basin_sin(y)) : basin_sum_all(lse);
    }
    check_backends(&c, basin_grad(y, c.input[0]), 1e-4);
}

/* Plans that share their memory give the results of plans that do not, in turn, the smaller and
 * the larger; what another plan overwrote is not handed out. */
TEST(test_shared_results) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(8, 8), -1, 1);
    basin_expr y[2] = {basin_matmul(x, basin_exp(x)), NULL};
    basin_expr wide[3] = {y[0], basin_sin(x), basin_matmul(basin_cos(x), y[0])};
    y[1] = basin_concat(wide, 3, 0);
    bench b;
    open_bench(&b, "cpu", 1);
    basin_store_share_results(b.store);
    float number[64], small[64], large[192], again[64];
    for (int i = 0; i < 64; i++) number[i] = (float)(i % 7) / 7;
    basin_tensor in = basin_tensor_borrow(number, BASIN_F32, BASIN_SHAPE(8, 8));
    basin_tensor out[3] = {basin_tensor_borrow(small, BASIN_F32, BASIN_SHAPE(8, 8)),
                           basin_tensor_borrow(large, BASIN_F32, BASIN_SHAPE(24, 8)),
                           basin_tensor_borrow(again, BASIN_F32, BASIN_SHAPE(8, 8))};
    basin_plan *plan[2];
    for (int i = 0; i < 2; i++) {
        basin_plan_spec spec = {.output = &y[i], .outputs = 1};
        assert_ok(basin_plan_new(&plan[i], b.store, &spec, &failure));
        assert_ok(basin_plan_write(plan[i], x, &in, &failure));
        assert_ok(basin_plan_run(plan[i], &failure));
        assert_ok(basin_plan_read(&out[i], plan[i], y[i], &failure));
    }
    assert_memory_equal(small, large, sizeof small);
    assert_int_equal(basin_plan_read(&out[2], plan[0], y[0], &failure), BASIN_BAD_VALUE);
    assert_ok(basin_plan_run(plan[0], &failure));
    assert_ok(basin_plan_read(&out[2], plan[0], y[0], &failure));
    assert_memory_equal(small, again, sizeof small);
    basin_plan_free(plan[0]);
    basin_plan_free(plan[1]);
    close_bench(&b);
}

TEST(test_empty) {
    BASIN_AT_EXIT(check_free) check c = check_new();
    basin_expr x = check_input(&c, "x", BASIN_SHAPE(0, 3), -1, 1);
    basin_expr w = check_input(&c, "w", BASIN_SHAPE(3, 2), -1, 1);
    basin_expr y[] = {basin_exp(x),
                      basin_matmul(x, w),
                      basin_sum(x, 0, 1),
                      basin_sum_all(x),
                      basin_grad(basin_sum_all(basin_matmul(x, w)), w),
                      basin_softmax(x, -1),
                      basin_relu(basin_matmul(basin_transpose(x), x))};
    for (size_t i = 0; i < sizeof y / sizeof *y; i++) check_backends(&c, y[i], 1e-6);
}
