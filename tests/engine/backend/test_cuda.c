/* The CUDA backend against the reference, operation by operation, and what is its own: products
 * with fused epilogues, long rows, copies under way, replayed graphs. All failures are printed
 * before the test fails. Skipped, visibly, where there is no device. */
#include <stdio.h>

#include "basin/expr.h"
#include "basin/plan.h"
#include "engine/backend/operations.h"
#include "support/cuda.h"

static basin_backend *open_cuda(int round) { return (void)round, cuda; }
static void keep_open(basin_backend *backend) { (void)backend; }

/* ---- epilogues that the product computes itself ---- */

typedef struct epilogue {
    const char *name;
    int operands; /* 0: none; 1: dense; 2: a row */
    bool in_place;
    basin_instruction instruction[8]; /* the last one's register is stored */
} epilogue;

#define TILE                                                                                       \
    { .op = BASIN_INSTRUCTION_TILE }
#define LOAD(r)                                                                                    \
    { .op = BASIN_INSTRUCTION_LOAD, .to = (r) }
#define NUMBER(r, x)                                                                               \
    { .op = BASIN_INSTRUCTION_IMMEDIATE, .to = (r), .value = (x) }
#define DO(name, r, from, other)                                                                   \
    { .op = BASIN_OP_##name, .to = (r), .a = (from), .b = (other) }
static const epilogue epilogue_cases[] = {
    {"relu", 0, false, {TILE, DO(RELU, 1, 0, 0)}},
    {"scaled", 0, false, {TILE, NUMBER(1, -0.25), DO(MUL, 2, 0, 1)}},
    {"tile - c, in place", 1, true, {TILE, LOAD(1), DO(SUB, 2, 0, 1)}},
    {"c - 0.1 tile", 1, false, {TILE, NUMBER(1, 0.1), DO(MUL, 2, 0, 1), LOAD(3), DO(SUB, 4, 3, 2)}},
    {"relu(tile + row)", 2, false, {TILE, LOAD(1), DO(ADD, 2, 1, 0), DO(RELU, 2, 2, 0)}},
    {"tile * c, in place (a program of its own)", 1, true, {TILE, LOAD(1), DO(MUL, 2, 0, 1)}},
    {"-0.5 tile where c > 0",
     1,
     true,
     {TILE, LOAD(1), DO(STEP, 2, 1, 0), NUMBER(3, -0.5), DO(MUL, 4, 0, 3), DO(MUL, 5, 2, 4),
      DO(MUL, 6, 5, 2)}},
};

static basin_program program_of(basin_instruction own[8], const epilogue *e, basin_shape domain) {
    basin_program program = {.registers = 8, .stores = 1, .domain = domain, .instruction = own};
    memcpy(own, e->instruction, sizeof e->instruction);
    while (program.instructions < 8 && own[program.instructions].op) program.instructions++;
    program.store[0] = own[program.instructions - 1].to;
    return program;
}

static const struct {
    int64_t batch, m, n, k;
} sizes[] = {{1, 392, 768, 256}, {1, 64, 64, 64}, {3, 49, 36, 20}, {1, 7, 5, 3}, {2, 1, 33, 17}};

/* t: bits that say which factors are transposed and, of narrow ones, that the result and what is
 * added to it are wide. */
static void fused_product(const epilogue *e, int size, int t, bool narrow) {
    int64_t batch = sizes[size].batch, m = sizes[size].m, n = sizes[size].n, k = sizes[size].k;
    bool wide = t & 4;
    duel d = duel_new(BASIN_OP_MATMUL);
    basin_shape domain = BASIN_SHAPE(batch, m, n), row = BASIN_SHAPE(n);
    basin_instruction instruction[8];
    basin_program program = program_of(instruction, e, domain);
    d.call.attr.transpose_a = t & 1, d.call.attr.transpose_b = t >> 1 & 1;
    duel_in(&d, t & 1 ? BASIN_SHAPE(batch, k, m) : BASIN_SHAPE(batch, m, k), -1, 1);
    duel_in(&d, t & 2 ? BASIN_SHAPE(batch, n, k) : BASIN_SHAPE(batch, k, n), -1, 1);
    if (e->operands) {
        basin_shape shape = e->operands == 1 ? domain : row;
        duel_in(&d, shape, -1, 1);
        basin_shape_broadcast(program.stride[0], &shape, &domain);
    }
    duel_out(&d, domain);
    if (e->in_place) d.in_place[0] = 2;
    d.call.program = &program;
    if (narrow) duel_narrow(&d, wide || e->operands == 2 ? 3 : 7, wide ? 0 : 1);
    int before = duel_rival.failures;
    duel_fight(&d, !narrow ? 3e-6 : wide ? 5e-6 : 1.2e-2);
    if (duel_rival.failures > before)
        fprintf(stderr, "  (epilogue %s, %s%s)\n", e->name, narrow ? "narrow" : "float",
                narrow && wide ? ", wide result" : "");
}

static void fused_products_of(bool narrow) {
    for (size_t i = 0; i < sizeof epilogue_cases / sizeof *epilogue_cases; i++)
        for (int size = 0; size < (int)(sizeof sizes / sizeof *sizes); size++)
            for (int t = 0; t < (narrow ? 8 : 4); t++)
                fused_product(&epilogue_cases[i], size, t, narrow);
}

TEST_WITH(fused_products, NULL, duel_verdict) { fused_products_of(false); }

/* So many rows that they are taken in turns, the result on top of an operand. */
TEST_WITH(long_product, NULL, duel_verdict) {
    const epilogue *e = &epilogue_cases[5];
    duel d = duel_new(BASIN_OP_MATMUL);
    basin_shape domain = BASIN_SHAPE(1, 4999, 3072);
    basin_instruction instruction[8];
    basin_program program = program_of(instruction, e, domain);
    duel_in(&d, BASIN_SHAPE(4999, 4), -1, 1);
    duel_in(&d, BASIN_SHAPE(4, 3072), -1, 1);
    duel_in(&d, domain, -1, 1);
    basin_shape_broadcast(program.stride[0], &domain, &domain);
    duel_out(&d, domain);
    d.in_place[0] = 2;
    d.call.program = &program;
    duel_fight(&d, 3e-6);
}

/* So few tiles and so long a sum that it is cut into parts; with and without something to add. */
TEST_WITH(long_sum_product, NULL, duel_verdict) {
    for (int add = 0; add < 2; add++) {
        const epilogue *e = &epilogue_cases[3];
        duel d = duel_new(BASIN_OP_MATMUL);
        basin_shape domain = BASIN_SHAPE(1, 96, 130);
        basin_instruction instruction[8];
        basin_program program = program_of(instruction, e, domain);
        d.call.attr.transpose_a = true;
        duel_in(&d, BASIN_SHAPE(8192, 96), -1, 1);
        duel_in(&d, BASIN_SHAPE(8192, 130), -1, 1);
        if (add) {
            duel_in(&d, domain, -1, 1);
            basin_shape_broadcast(program.stride[0], &domain, &domain);
            d.call.program = &program;
        }
        duel_out(&d, add ? domain : BASIN_SHAPE(96, 130));
        if (add) d.in_place[0] = 2;
        duel_fight(&d, 3e-6);
    }
}

/* ---- narrow operands ---- */

TEST_WITH(narrow_products, NULL, duel_verdict) { fused_products_of(true); }

/* Pointwise programs, sums and layer norms between the two types. */
TEST_WITH(narrow_rows, NULL, duel_verdict) {
    const basin_shape shapes[] = {BASIN_SHAPE(40, 768), BASIN_SHAPE(7, 300, 12),
                                  BASIN_SHAPE(33, 65), BASIN_SHAPE(50, 36)};
    for (int i = 0; i < 4; i++)
        for (unsigned mask = 0; mask < 8; mask++) {
            basin_shape row = BASIN_SHAPE(shapes[i].dim[shapes[i].rank - 1]);
            duel d = duel_new(BASIN_OP_MUL);
            duel_in(&d, shapes[i], -2, 2);
            duel_in(&d, row, -2, 2);
            duel_out(&d, shapes[i]);
            duel_narrow(&d, mask & 3, mask >> 2);
            duel_fight(&d, mask & 4 ? -4e-3 : -2e-7);
            if (mask < 2) {
                d = duel_new(BASIN_OP_SUM);
                d.call.attr.axis = 0, d.call.attr.count = 1;
                duel_in(&d, shapes[i], -1, 2);
                basin_shape out = shapes[i];
                for (int j = 1; j < out.rank; j++) out.dim[j - 1] = out.dim[j];
                out.rank--;
                duel_out(&d, out);
                duel_narrow(&d, mask, 0);
                duel_fight(&d, 5e-7);
            }
            d = duel_new(BASIN_OP_LAYERNORM_REVERSE);
            d.call.attr.value = 1e-5;
            duel_in(&d, shapes[i], -3, 5);
            duel_in(&d, BASIN_SCALAR, 0.5, 1.5);
            duel_in(&d, shapes[i], -1, 1);
            duel_out(&d, shapes[i]);
            duel_out(&d, BASIN_SCALAR);
            duel_out(&d, row);
            duel_narrow(&d, (mask & 1) | (mask & 2) << 1, mask >> 2);
            duel_fight(&d, mask & 4 ? 5e-3 : 1e-5);
            d = duel_new(BASIN_OP_LAYERNORM_REVERSE); /* with a residual, and stored twice */
            d.call.attr.value = 1e-5;
            duel_in(&d, shapes[i], -3, 5);
            duel_in(&d, BASIN_SCALAR, 0.5, 1.5);
            duel_in(&d, shapes[i], -1, 1);
            duel_in(&d, shapes[i], -1, 1);
            duel_out(&d, shapes[i]);
            duel_out_absent(&d);
            duel_out_absent(&d);
            duel_out(&d, shapes[i]);
            duel_narrow(&d, (mask & 1) | (mask & 2) << 1, 8);
            duel_fight(&d, 5e-3);
            d = duel_new(BASIN_OP_LAYERNORM);
            d.call.attr.value = 1e-5;
            duel_in(&d, shapes[i], -3, 5);
            duel_in(&d, BASIN_SCALAR, 0.5, 1.5);
            duel_in(&d, row, -1, 1);
            duel_out(&d, shapes[i]);
            duel_narrow(&d, mask & 1, mask >> 2);
            duel_fight(&d, mask & 4 ? 5e-3 : 2e-6);
        }
}

TEST_WITH(narrow_causal, NULL, duel_verdict) {
    for (size_t i = 0; i < sizeof causal_shapes / sizeof *causal_shapes; i++)
        for (unsigned narrow = 1; narrow < 4; narrow++) causal_of(causal_shapes[i], i % 2, narrow);
}

/* Attention with narrow tokens: q, k, a, b and what is like them. */
TEST_WITH(narrow_attention, NULL, duel_verdict) {
    const pattern p = pattern_new();
    const unsigned ins =
        1u << BASIN_ATT_Q | 1u << BASIN_ATT_K | 1u << BASIN_ATT_A | 1u << BASIN_ATT_B;
    const unsigned outs[] = {0, 1u << BASIN_ATT_DQ | 1u << BASIN_ATT_DK,
                             1u << BASIN_ATT_GQ | 1u << BASIN_ATT_GK};
    for (int op = BASIN_OP_ATTENTION; op <= BASIN_OP_ATTENTION_REVERSE; op++)
        for (int flags = 0; flags < 64; flags += op == BASIN_OP_ATTENTION ? 32 : 13)
            for (int listed = 0; listed < 2; listed++) {
                duel d =
                    attention_duel((basin_op)op, listed ? &p : NULL, listed ? flags & 31 : flags);
                duel_narrow(&d, ins, outs[op - BASIN_OP_ATTENTION]);
                duel_fight(&d, 2e-2);
            }
}

/* Factors and results that are columns of joint matrices; what lies in the gaps stays. */
TEST_WITH(products_apart, NULL, duel_verdict) {
    const int64_t cases[][3] = {{200, 384, 256}, {64, 96, 32}, {50, 40, 24}, {1100, 64, 300}};
    basin_instruction relu[] = {{.op = BASIN_INSTRUCTION_TILE, .to = 0},
                                {.op = BASIN_OP_RELU, .to = 1, .a = 0}};
    for (int i = 0; i < 4; i++)
        for (int t = 0; t < 64; t++) {
            int64_t m = cases[i][0], n = cases[i][1], k = cases[i][2];
            basin_program program = {.instructions = 2,
                                     .registers = 2,
                                     .stores = 1,
                                     .instruction = relu,
                                     .store = {1},
                                     .domain = BASIN_SHAPE(1, m, n)};
            basin_shape a = t & 1 ? BASIN_SHAPE(k, m) : BASIN_SHAPE(m, k);
            basin_shape b = t & 2 ? BASIN_SHAPE(n, k) : BASIN_SHAPE(k, n);
            duel d = duel_new(BASIN_OP_MATMUL);
            d.call.attr.transpose_a = t & 1, d.call.attr.transpose_b = t >> 1 & 1;
            duel_in_apart(&d, a, t & 4 ? a.dim[1] + 64 : 0, -1, 1);
            duel_in_apart(&d, b, t & 8 ? b.dim[1] + 32 : 0, -1, 1);
            duel_out(&d, BASIN_SHAPE(m, n));
            d.call.out[0].stride = t & 16 ? n + 96 : 0;
            if (t & 32) d.call.program = &program;
            duel_narrow(&d, 3, t & 32 ? 1 : 0);
            duel_fight(&d, t & 32 ? 6e-3 : 2e-5);
        }
}

/* What runs behind a product, a mask of numbers or a dense addend, where the result's rows lie
 * apart: also a product with nothing to sum, and one that is taken in turns. */
TEST_WITH(programs_apart, NULL, duel_verdict) {
    const int64_t cases[][3] = {{200, 96, 64}, {37, 40, 24}, {33, 64, 0}, {4999, 3072, 4}};
    basin_instruction instructions[] = {{.op = BASIN_INSTRUCTION_TILE, .to = 0},
                                        {.op = BASIN_INSTRUCTION_LOAD, .to = 1, .a = 0},
                                        {.op = BASIN_OP_STEP, .to = 2, .a = 1},
                                        {.op = BASIN_OP_MUL, .to = 3, .a = 0, .b = 2},
                                        {.op = BASIN_OP_ADD, .to = 4, .a = 0, .b = 1}};
    for (int i = 0; i < 4; i++)
        for (int t = 0; t < (i < 3 ? 12 : 1); t++) { /* 4 to 7: no program; from 8 on: an addend */
            int64_t m = cases[i][0], n = cases[i][1], k = cases[i][2];
            basin_program program = {.instructions = 5,
                                     .registers = 5,
                                     .stores = 1,
                                     .instruction = instructions,
                                     .store = {t & 8 ? 4 : 3},
                                     .domain = BASIN_SHAPE(1, m, n),
                                     .stride = {{m * n, n, 1}}};
            duel d = duel_new(BASIN_OP_MATMUL);
            duel_in_apart(&d, BASIN_SHAPE(m, k), t & 2 && k > 0 ? k + 64 : 0, -1, 1);
            duel_in(&d, BASIN_SHAPE(k, n), -1, 1);
            if (!(t & 4)) {
                duel_in(&d, BASIN_SHAPE(m, n), -1, 1);
                d.call.program = &program;
            }
            duel_out(&d, BASIN_SHAPE(m, n));
            d.call.out[0].stride = n + 96;
            if (t & 1) duel_narrow(&d, 7, 1);
            duel_fight(&d, t & 1 ? 6e-3 : 2e-5);
        }
}

/* Products with nothing to sum, and with no elements. */
TEST_WITH(empty_products, NULL, duel_verdict) {
    const int64_t cases[][3] = {{5, 7, 0}, {0, 7, 3}, {5, 0, 3}};
    for (int i = 0; i < 3; i++) {
        duel d = duel_new(BASIN_OP_MATMUL);
        duel_in(&d, BASIN_SHAPE(cases[i][0], cases[i][2]), -1, 1);
        duel_in(&d, BASIN_SHAPE(cases[i][2], cases[i][1]), -1, 1);
        duel_out(&d, BASIN_SHAPE(cases[i][0], cases[i][1]));
        duel_fight(&d, 3e-6);
    }
}

/* Layer norm at every way a row is held, with its reverse. */
TEST_WITH(norm_widths, NULL, duel_verdict) {
    const int64_t widths[] = {1,   4,   100, 128,  132,  256,  511, 512,
                              513, 600, 768, 1000, 1024, 1028, 3000};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        basin_shape shape = BASIN_SHAPE(37, widths[i]), row = BASIN_SHAPE(widths[i]);
        duel d = duel_new(BASIN_OP_LAYERNORM);
        d.call.attr.value = 1e-5;
        duel_in(&d, shape, -3, 5);
        duel_in(&d, BASIN_SCALAR, 0.5, 1.5);
        duel_in(&d, row, -1, 1);
        duel_out(&d, shape);
        duel_fight(&d, 2e-6);
        d = duel_new(BASIN_OP_LAYERNORM_REVERSE);
        d.call.attr.value = 1e-5;
        duel_in(&d, shape, -3, 5);
        duel_in(&d, BASIN_SCALAR, 0.5, 1.5);
        duel_in(&d, shape, -1, 1);
        duel_out(&d, shape);
        duel_out(&d, BASIN_SCALAR);
        duel_out(&d, row);
        duel_fight(&d, 1e-5);
    }
}

/* Sums cut into chunks, and rows summed by an index that names few rows often. */
TEST_WITH(long_sums, NULL, duel_verdict) {
    const basin_shape shapes[] = {BASIN_SHAPE(3000000), BASIN_SHAPE(50432, 40),
                                  BASIN_SHAPE(700, 33), BASIN_SHAPE(2500, 768)};
    for (int i = 0; i < 4; i++) {
        duel d = duel_new(BASIN_OP_SUM);
        d.call.attr.axis = 0, d.call.attr.count = 1;
        duel_in(&d, shapes[i], -1, 2);
        basin_shape out = {.rank = shapes[i].rank - 1, .dim = {shapes[i].dim[1]}};
        duel_out(&d, out);
        duel_fight(&d, 5e-7);
    }
    static int32_t index[20000];
    for (int i = 0; i < 20000; i++) index[i] = i % 7 == 0 ? -1 : i % 3;
    duel d = duel_new(BASIN_OP_SCATTER);
    duel_in(&d, BASIN_SHAPE(20000, 50), -1, 2);
    duel_index(&d, BASIN_SHAPE(20000), index);
    duel_out(&d, BASIN_SHAPE(5, 50));
    duel_fight(&d, 2e-6);
}

/* ---- memory and plans ---- */

/* Large copies travel in pieces through a waiting room, small ones wait for each other; those to
 * one place must arrive in order. */
TEST(copies) {
    const size_t counts[] = {1, 1000, 300000, 20000003};
    for (int i = 0; i < 4; i++) {
        size_t bytes = counts[i] * sizeof(int32_t);
        int32_t *host = malloc(bytes), *back = malloc(bytes);
        char *device = cuda->table->alloc(cuda, bytes);
        assert_true(host && back && device);
        for (int round = 0; round < 3; round++) {
            for (size_t j = 0; j < counts[i]; j++) host[j] = (int32_t)(j * 2654435761u) + round;
            cuda->table->copy_in(cuda, device, host, bytes);
            memset(host, 0, bytes); /* the caller's memory is free again */
        }
        cuda->table->copy_out(cuda, back, device, bytes);
        assert_int_equal(cuda->table->wait(cuda, NULL), BASIN_OK);
        for (size_t j = 0; j < counts[i]; j++)
            if (back[j] != (int32_t)(j * 2654435761u) + 2)
                fail_msg("copy of %zu: element %zu is %d, expected %d", counts[i], j, back[j],
                         (int32_t)(j * 2654435761u) + 2);
        cuda->table->free(cuda, device);
        free(host), free(back);
    }
}

/* x <- x + in, many times without reading in between: each run must see its own input. */
TEST(queued_runs) {
    BASIN_AT_EXIT(free_graph) basin_graph *graph = basin_graph_new();
    basin_store *store;
    basin_plan *plan;
    basin_shape shape = BASIN_SHAPE(1000, 700); /* more than a small copy */
    basin_expr in = basin_input(graph, "in", shape), x = basin_state(graph, "x", shape);
    basin_update update = {x, basin_add(basin_mul(x, basin_scalar(graph, 0.5)), in)};
    assert_ok(basin_store_new(&store, cuda, &failure));
    basin_plan_spec spec = {.update = &update, .updates = 1, .output = &in, .outputs = 1};
    assert_ok(basin_plan_new(&plan, store, &spec, &failure));
    basin_tensor tensor, result;
    assert_ok(basin_tensor_new(&tensor, BASIN_F32, shape, &failure));
    float *number = tensor.data, wanted[3] = {0};
    for (int run = 0; run < 9; run++) {
        for (int64_t i = 0; i < 700000; i++) number[i] = (float)(i % 3 + run);
        assert_ok(basin_plan_write(plan, in, &tensor, &failure));
        assert_ok(basin_plan_run(plan, &failure));
        for (int i = 0; i < 3; i++) wanted[i] = wanted[i] * 0.5f + (float)(i + run);
    }
    assert_ok(basin_store_get(&result, store, "x", &failure));
    for (int64_t i = 0; i < 700000; i++)
        if (((float *)result.data)[i] != wanted[i % 3])
            fail_msg("element %lld is %g, expected %g", (long long)i, ((float *)result.data)[i],
                     wanted[i % 3]);
    basin_tensor_free(&tensor), basin_tensor_free(&result);
    basin_plan_free(plan);
    basin_store_free(store);
}

TEST(too_large_plan_says_so) {
    BASIN_AT_EXIT(free_graph) basin_graph *graph = basin_graph_new();
    basin_store *store;
    basin_plan *plan;
    basin_expr in = basin_input(graph, "in", BASIN_SHAPE(1 << 20, 1));
    basin_expr out =
        basin_softmax(basin_add(in, basin_input(graph, "row", BASIN_SHAPE(1 << 19))), -1);
    basin_plan_spec spec = {.output = &out, .outputs = 1};
    assert_ok(basin_store_new(&store, cuda, &failure));
    assert_failure(basin_plan_new(&plan, store, &spec, &failure), BASIN_NO_MEMORY, "smaller batch");
    basin_store_free(store);
}

TEST(opens_a_device_by_number) {
    const char *const number[] = {"0", "5", "first", "", "-1", "1x"};
    for (int i = 0; i < 6; i++) {
        basin_error error = {0};
        basin_backend *other;
        assert_int_equal(setenv("BASIN_CUDA_DEVICE", number[i], 1), 0);
        basin_status status =
            basin_backend_open(&other, &(basin_compute){.backend = "cuda"}, &error);
        assert_int_equal(unsetenv("BASIN_CUDA_DEVICE"), 0);
        assert_int_equal(status, i < 2 ? BASIN_OK : BASIN_BAD_VALUE);
        if (status) assert_non_null(strstr(error.text, "BASIN_CUDA_DEVICE is '"));
        basin_backend_close(other);
    }
}

int main(void) {
    cuda_open();
    duel_rival.open = open_cuda;
    duel_rival.close = keep_open;
    duel_rival.rounds = 2;
    duel_rival.gather = true;
    return cuda_close(tests_run(NULL, NULL));
}
