/* Calls that run concurrently: small products, draws and programs that may run at once. Here they
 * run in another order than in the plan, what adds to a result behind what writes it; the results
 * keep their bits, which they would not if one call read or wrote what another one writes. */
#include <string.h>

#include "backend/kernel.h"
#include "plan/noisy_steps.h"

enum { TOKENS = 20 };

/* A backend on which calls may be concurrent; it remembers what ran so. */
static struct {
    basin_backend_table table;
    const basin_backend_table *real;
    int products, follow, draws, programs; /* the most at once; products behind others */
} spy;

static bool same_place(const basin_operand *a, const basin_operand *b) {
    return a->block >= 0 && a->block == b->block && a->offset == b->offset;
}

/* The concurrent call to whose result call k adds, or -1. */
static int added_to(const basin_call *call, int k) {
    for (int j = k - 1; j >= 0; j--)
        for (int i = 2; i < call[k].ins; i++)
            if (call[k].op == BASIN_OP_MATMUL && same_place(&call[k].in[i], &call[j].out[0]))
                return j;
    return -1;
}

static void run_from(basin_backend *backend, const basin_call *call, int k, int concurrent,
                     void *const *block) {
    basin_call one = call[k];
    one.concurrent = 0;
    spy.real->run(backend, &one, 1, block);
    for (int j = k + 1; j < concurrent; j++)
        if (added_to(call, j) == k) run_from(backend, call, j, concurrent, block);
}

static void note(const basin_call *call) {
    int *most = call->op == BASIN_OP_MATMUL   ? &spy.products
                : call->op == BASIN_OP_NORMAL ? &spy.draws
                                              : &spy.programs;
    if (call->concurrent > *most) *most = call->concurrent;
    for (int k = 0; k < call->concurrent; k++) spy.follow += added_to(call, k) >= 0;
}

static void run_backwards(basin_backend *backend, const basin_call *call, size_t calls,
                          void *const *block) {
    for (size_t i = 0; i < calls;) {
        int concurrent = call[i].concurrent > 1 ? call[i].concurrent : 1;
        assert_in_range(i + (size_t)concurrent, 1, calls);
        if (concurrent > 1) note(&call[i]);
        for (int k = concurrent - 1; k >= 0; k--)
            if (added_to(&call[i], k) < 0) run_from(backend, &call[i], k, concurrent, block);
        i += (size_t)concurrent;
    }
}

static void run_concurrent(basin_backend *backend) {
    memset(&spy, 0, sizeof spy);
    spy.real = backend->table;
    spy.table = *backend->table;
    spy.table.run = run_backwards;
    spy.table.concurrent = spy.table.chain = true;
    spy.table.packed_bytes = NULL;
    backend->table = &spy.table;
}

TEST(test_any_order) {
    basin_tensor wanted[OUTPUTS], found[OUTPUTS];
    lab l = lab_new("ref", 1);
    compute_steps(wanted, &l, TOKENS);
    lab_close(&l);
    lab_open(&l, "cpu", 1);
    const basin_backend_table *table = l.backend->table;
    run_concurrent(l.backend);
    compute_steps(found, &l, TOKENS);
    l.backend->table = table;
    lab_close(&l);
    compare_steps(found, wanted, 1e-5);
    assert_in_range(spy.products, 3, BASIN_CONCURRENT);
    assert_in_range(spy.follow, 2, 100);
    assert_int_equal(spy.draws, 2);
    assert_int_equal(spy.programs, 2);
}
