/* Calls abreast: small products, draws and programs that may run at once. Here they run in another
 * order than in the plan, what adds to a result behind what writes it; the results keep their bits,
 * which they would not if one call read or wrote what another one writes. */
#include <string.h>

#include "backend/kernel.h"
#include "support/lab.h"

enum { TOKENS = 20, DIM = 8, HEAD = 6, MEMORIES = 16, OUTPUTS = 6 };

/* A backend on which calls may be abreast; it remembers what ran so. */
static struct {
    basin_backend_table table;
    const basin_backend_table *real;
    int products, follow, draws, programs; /* the most at once; products behind others */
} spy;

static bool same_place(const basin_operand *a, const basin_operand *b) {
    return a->block >= 0 && a->block == b->block && a->offset == b->offset;
}

/* The call abreast of it to whose result call k adds, or -1. */
static int added_to(const basin_call *call, int k) {
    for (int j = k - 1; j >= 0; j--)
        for (int i = 2; i < call[k].ins; i++)
            if (call[k].op == BASIN_OP_MATMUL && same_place(&call[k].in[i], &call[j].out[0]))
                return j;
    return -1;
}

static void run_from(basin_backend *backend, const basin_call *call, int k, int abreast,
                     void *const *block) {
    basin_call one = call[k];
    one.abreast = 0;
    spy.real->run(backend, &one, 1, block);
    for (int j = k + 1; j < abreast; j++)
        if (added_to(call, j) == k) run_from(backend, call, j, abreast, block);
}

static void note(const basin_call *call) {
    int *most = call->op == BASIN_OP_MATMUL   ? &spy.products
                : call->op == BASIN_OP_NORMAL ? &spy.draws
                                              : &spy.programs;
    if (call->abreast > *most) *most = call->abreast;
    for (int k = 0; k < call->abreast; k++) spy.follow += added_to(call, k) >= 0;
}

static void run_backwards(basin_backend *backend, const basin_call *call, size_t calls,
                          void *const *block) {
    for (size_t i = 0; i < calls;) {
        int abreast = call[i].abreast > 1 ? call[i].abreast : 1;
        assert_in_range(i + (size_t)abreast, 1, calls);
        if (abreast > 1) note(&call[i]);
        for (int k = abreast - 1; k >= 0; k--)
            if (added_to(&call[i], k) < 0) run_from(backend, &call[i], k, abreast, block);
        i += (size_t)abreast;
    }
}

static void run_abreast(basin_backend *backend) {
    memset(&spy, 0, sizeof spy);
    spy.real = backend->table;
    spy.table = *backend->table;
    spy.table.run = run_backwards;
    spy.table.abreast = spy.table.chain = true;
    spy.table.packed_bytes = NULL;
    backend->table = &spy.table;
}

static basin_expr tokens(lab *l) {
    double x[TOKENS * DIM];
    for (int i = 0; i < TOKENS * DIM; i++) x[i] = basin_random_uniform_at(3, 1, (uint64_t)i) - 0.5;
    return lab_input(l, "x", BASIN_SHAPE(TOKENS, DIM), x);
}

/* Two noisy steps x <- x + 0.5 (Q Wq + K Wk + relu(x Xi') Xi) + noise, their squares, and the
 * gradients of these. */
static void write_steps(lab *l, basin_expr *output) {
    basin_expr wq = lab_state(l, "wq", BASIN_SHAPE(HEAD, DIM));
    basin_expr wk = lab_state(l, "wk", BASIN_SHAPE(HEAD, DIM));
    basin_expr xi = lab_state(l, "xi", BASIN_SHAPE(MEMORIES, DIM));
    basin_expr a = lab_input(l, "a", BASIN_SHAPE(4), (const double[]){0.1, 0.2, 0.3, 0.4});
    basin_expr b = lab_input(l, "b", BASIN_SHAPE(4), (const double[]){0.5, 0.6, 0.7, 0.8});
    basin_expr seed = lab_index(l, "seed", (const int32_t[]){5, 6}, 2), x = tokens(l);
    for (int step = 0; step < 2; step++) {
        basin_expr q = basin_matmul_t(x, false, wq, true), k = basin_matmul_t(x, false, wk, true);
        basin_expr h = basin_relu(basin_matmul_t(x, false, xi, true));
        basin_expr sum = basin_add(basin_matmul(q, wq), basin_matmul(k, wk));
        sum = basin_add(sum, basin_matmul(h, xi));
        basin_expr noise = basin_normal(seed, BASIN_SHAPE(TOKENS, DIM));
        x = basin_add(basin_add(x, basin_scale(noise, 0.01)), basin_scale(sum, 0.5));
    }
    basin_expr loss = basin_sum_all(basin_square(x));
    output[0] = loss;
    output[1] = basin_grad(loss, wq), output[2] = basin_grad(loss, wk);
    output[3] = basin_grad(loss, xi);
    output[4] = basin_exp(basin_scale(a, 2)), output[5] = basin_exp(basin_scale(b, 2));
}

static void compute(basin_tensor *result, const char *backend, bool abreast) {
    lab l;
    basin_expr output[OUTPUTS];
    lab_open(&l, backend, 1);
    const basin_backend_table *table = l.backend->table;
    if (abreast) run_abreast(l.backend);
    write_steps(&l, output);
    lab_fill(&l, 11, 0.5);
    basin_plan *plan = lab_plan(&l, output, OUTPUTS);
    lab_run(plan);
    for (int i = 0; i < OUTPUTS; i++) result[i] = lab_read(plan, output[i]);
    basin_plan_free(plan);
    l.backend->table = table;
    lab_close(&l);
}

static void test_any_order(void **state) {
    (void)state;
    static const char *const name[OUTPUTS] = {"loss", "wq", "wk", "xi", "exp a", "exp b"};
    basin_tensor wanted[OUTPUTS], found[OUTPUTS];
    compute(wanted, "ref", false);
    compute(found, "cpu", true);
    for (int i = 0; i < OUTPUTS; i++) {
        lab_assert_near(&found[i], &wanted[i], 1e-5, name[i]);
        basin_tensor_free(&found[i]);
        basin_tensor_free(&wanted[i]);
    }
    assert_in_range(spy.products, 3, BASIN_ABREAST);
    assert_in_range(spy.follow, 2, 100);
    assert_int_equal(spy.draws, 2);
    assert_int_equal(spy.programs, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
