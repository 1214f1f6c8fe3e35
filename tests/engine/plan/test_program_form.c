/* What the passes over plans take an epilogue for, and that a chain of products with a division in
 * it is joined like one with a multiplication. */
#include <string.h>

#include "base/info.h"
#include "engine/backend/kernel.h"
#include "engine/plan/ir.h"
#include "support/lab.h"

enum { M = 3, N = 4, LIKE = 0, ROW = 1 };

/* The form of a program of these instructions, each with a register of its own, over [1, M, n]. */
static basin_program_form form_of(int64_t n, const basin_instruction *instruction,
                                  int instructions) {
    basin_instruction own[8];
    basin_program p = {.instructions = instructions,
                       .registers = instructions,
                       .stores = 1,
                       .instruction = own,
                       .store = {(uint16_t)(instructions - 1)},
                       .domain = BASIN_SHAPE(1, M, n),
                       .stride = {[LIKE] = {0, n, n == 1 ? 0 : 1}, [ROW] = {0, 0, 1}}};
    for (int i = 0; i < instructions; i++) own[i] = instruction[i], own[i].to = (uint16_t)i;
    return basin_program_form_of(&p);
}

#define FORM_OF(n, ...)                                                                            \
    form_of(n, (const basin_instruction[]){__VA_ARGS__},                                           \
            (int)(sizeof((const basin_instruction[]){__VA_ARGS__}) / sizeof(basin_instruction)))
#define TILE                                                                                       \
    { .op = BASIN_INSTRUCTION_TILE }
#define LOAD(operand)                                                                              \
    { .op = BASIN_INSTRUCTION_LOAD, .a = (operand) }
#define NUMBER(number)                                                                             \
    { .op = BASIN_INSTRUCTION_IMMEDIATE, .value = (number) }
#define STEP(operation, x, y)                                                                      \
    { .op = BASIN_OP_##operation, .a = (x), .b = (y) }

static void assert_form(basin_program_form f, basin_form_kind kind, double of_product,
                        double of_operand, int operand) {
    assert_int_equal(f.kind, kind);
    assert_true(f.of_product == of_product);
    assert_true(f.of_operand == of_operand);
    assert_int_equal(f.operand, operand);
}

static void assert_other(basin_program_form f) { assert_form(f, BASIN_FORM_OTHER, 1, 0, -1); }

TEST(forms) {
    assert_form(basin_program_form_of(NULL), BASIN_FORM_SUM, 1, 0, -1);
    assert_form(FORM_OF(N, TILE, NUMBER(3), STEP(MUL, 0, 1)), BASIN_FORM_SUM, 3, 0, -1);
    assert_form(FORM_OF(N, TILE, LOAD(LIKE), STEP(SUB, 0, 1)), BASIN_FORM_SUM, 1, -1, LIKE);
    assert_form(FORM_OF(N, TILE, STEP(RELU, 0, 0)), BASIN_FORM_RELU, 1, 0, -1);
    assert_form(FORM_OF(N, TILE, LOAD(LIKE), STEP(STEP, 1, 0), STEP(MUL, 0, 2)), BASIN_FORM_MASKED,
                1, 0, LIKE);
    /* a division, and an operand of one column */
    assert_form(FORM_OF(N, TILE, NUMBER(4), STEP(DIV, 0, 1)), BASIN_FORM_SUM, 0.25, 0, -1);
    assert_form(FORM_OF(1, TILE, LOAD(LIKE), STEP(ADD, 0, 1)), BASIN_FORM_SUM, 1, 1, LIKE);
}

/* Forms that products have, but that the passes make nothing of. */
TEST(refusals) {
    assert_other(FORM_OF(N, TILE, LOAD(ROW), STEP(ADD, 0, 1)));
    assert_other(FORM_OF(N, TILE, LOAD(ROW), STEP(ADD, 0, 1), STEP(RELU, 2, 0)));
    assert_other(FORM_OF(N, TILE, LOAD(LIKE), STEP(ADD, 0, 1), STEP(RELU, 2, 0)));
    assert_other(FORM_OF(N, TILE, NUMBER(2), STEP(MUL, 0, 1), STEP(RELU, 2, 0)));
    assert_other(FORM_OF(N, TILE, STEP(TANH, 0, 0)));
}

/* ---- a chain with a division ---- */

enum { TOKENS = 6, DIM = 8, WIDTH = 32 };

/* y = x + (q A) / 4 + (k B) / 4 with q = x A' and k = x B'; *joint counts products of [q k]. */
static basin_tensor descend(bool narrow, int *joint) {
    lab l;
    char text[1000];
    *joint = 0;
    lab_open(&l, "ref", 1);
    if (narrow) {
        lab_narrow(&l, BASIN_BF16);
    }
    basin_expr x = lab_state(&l, "x", BASIN_SHAPE(TOKENS, DIM));
    basin_expr a = lab_state(&l, "a", BASIN_SHAPE(WIDTH, DIM));
    basin_expr b = lab_state(&l, "b", BASIN_SHAPE(WIDTH, DIM));
    lab_fill(&l, 3, 0.5);
    basin_expr four = basin_scalar(l.graph, 4);
    basin_expr q = basin_matmul_t(x, false, a, true), k = basin_matmul_t(x, false, b, true);
    basin_expr y = basin_add(x, basin_div(basin_matmul(q, a), four));
    y = basin_add(y, basin_div(basin_matmul(k, b), four));
    basin_plan *plan = lab_plan(&l, &y, 1);
    for (int i = 0; i < basin_plan_stats_of(plan).calls; i++) {
        basin_plan_describe(plan, i, text, sizeof text);
        *joint += strstr(text, "MATMUL") && strstr(text, "<- bf16 [6, 64]");
    }
    l.backend->narrow = false; /* ref rounds nothing from here on */
    lab_run(plan);
    basin_tensor value = lab_read(plan, y);
    basin_plan_free(plan);
    lab_close(&l);
    return value;
}

TEST(joined) {
    int joint, none;
    BASIN_AT_EXIT(basin_tensor_free)
    basin_tensor narrow = descend(true, &joint), plain = descend(false, &none);
    lab_assert_near(&narrow, &plain, 1e-12, "a joint chain");
    assert_int_equal(joint, 1);
    assert_int_equal(none, 0);
}
