/* Forms of epilogues: programs that have one, and which, and programs that have none. They are
 * written in postfix: t the product's element, a and b operands that lie like the result, r and s
 * rows [n], k a column [m], z one number, "dup" what is on top once more. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend/kernel.h"
#include "support/lab.h"

enum { BATCH = 2, M = 3, N = 4, MOST = 20 };
enum { A, B, R, S, K, Z, OPERANDS };

/* The program of a text, over [batch, m, n], and the call that has it as its epilogue. */
typedef struct epilogue {
    basin_instruction instruction[MOST];
    basin_program program;
    basin_call call;
} epilogue;

static const struct word {
    const char *text;
    int op, takes, operand;
} words[] = {
    {"t", BASIN_INSTRUCTION_TILE, 0, 0}, {"a", BASIN_INSTRUCTION_LOAD, 0, A},
    {"b", BASIN_INSTRUCTION_LOAD, 0, B}, {"r", BASIN_INSTRUCTION_LOAD, 0, R},
    {"s", BASIN_INSTRUCTION_LOAD, 0, S}, {"k", BASIN_INSTRUCTION_LOAD, 0, K},
    {"z", BASIN_INSTRUCTION_LOAD, 0, Z}, {"copy", BASIN_OP_COPY, 1, 0},
    {"neg", BASIN_OP_NEG, 1, 0},         {"relu", BASIN_OP_RELU, 1, 0},
    {"step", BASIN_OP_STEP, 1, 0},       {"tanh", BASIN_OP_TANH, 1, 0},
    {"+", BASIN_OP_ADD, 2, 0},           {"-", BASIN_OP_SUB, 2, 0},
    {"*", BASIN_OP_MUL, 2, 0},           {"/", BASIN_OP_DIV, 2, 0},
    {"max", BASIN_OP_MAX2, 2, 0},
};

/* A register of its own for each instruction; a number where the text is no word. */
static basin_instruction instruction_of(const char *text, int to, uint16_t stack[], int *height) {
    basin_instruction s = {.op = BASIN_INSTRUCTION_IMMEDIATE, .to = (uint16_t)to};
    int takes = 0;
    char *end = NULL;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(text, words[i].text)) {
            s.op = (uint16_t)words[i].op, s.a = (uint16_t)words[i].operand;
            takes = words[i].takes;
        }
    if (s.op == BASIN_INSTRUCTION_IMMEDIATE) s.value = strtod(text, &end);
    if (end && *end) fail_msg("no word: %s", text);
    assert_true(*height >= takes);
    if (takes == 2) s.b = stack[--*height];
    if (takes > 0) s.a = stack[--*height];
    return s;
}

static void write_steps(epilogue *e, const char *text) {
    char copy[120], *rest = copy;
    uint16_t stack[MOST];
    int height = 0;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *word; (word = strtok_r(rest, " ", &rest));) {
        if (!strcmp(word, "dup")) {
            stack[height] = stack[height - 1];
            height++;
            continue;
        }
        int to = e->program.instructions++;
        assert_true(to < MOST);
        e->instruction[to] = instruction_of(word, to, stack, &height);
        stack[height++] = (uint16_t)to;
    }
    assert_int_equal(height, 1);
    e->program.store[0] = stack[0];
    e->program.registers = e->program.instructions;
}

static void set_strides(epilogue *e, int a, int64_t batch, int64_t row, int64_t column) {
    int64_t *stride = e->program.stride[a];
    stride[0] = batch, stride[1] = row, stride[2] = column;
}

static void make(epilogue *e, const char *text) {
    *e = (epilogue){.program = {.stores = 1, .domain = BASIN_SHAPE(BATCH, M, N)}};
    for (int a = 0; a < OPERANDS; a++) set_strides(e, a, 0, 0, 0);
    for (int a = A; a <= B; a++) set_strides(e, a, (int64_t)M * N, N, 1);
    for (int a = R; a <= S; a++) set_strides(e, a, 0, 0, 1);
    set_strides(e, K, 0, 1, 0);
    e->program.instruction = e->instruction;
    write_steps(e, text);
    e->call =
        (basin_call){.op = BASIN_OP_MATMUL, .ins = 2 + OPERANDS, .outs = 1, .program = &e->program};
}

static void set_kinds(epilogue *e, basin_kind result, basin_kind a, basin_kind r) {
    e->call.out[0].kind = result;
    e->call.in[2 + A].kind = e->call.in[2 + B].kind = a;
    e->call.in[2 + R].kind = e->call.in[2 + S].kind = r;
}

static bool is_form(basin_form f, basin_form want) {
    return f.known == want.known && f.relu == want.relu && f.alpha == want.alpha &&
           f.beta == want.beta && f.c == want.c && f.row == want.row && f.mask == want.mask;
}

static const basin_form none = {.c = -1, .row = -1, .mask = -1};

static void check_one(const char *text, basin_form want) {
    epilogue e;
    make(&e, text);
    if (!is_form(basin_form_of(&e.program, NULL), want)) fail_msg("%s", text);
    if (!is_form(basin_form_of(&e.program, &e.call), want)) fail_msg("%s, with its call", text);
}

/* ---- what has a form ---- */

TEST(no_program) {
    basin_call call = {.op = BASIN_OP_MATMUL, .ins = 2, .outs = 1};
    basin_form product = {.known = true, .alpha = 1, .c = -1, .row = -1, .mask = -1};
    assert_true(is_form(basin_form_of(NULL, NULL), product));
    assert_true(is_form(basin_form_of(NULL, &call), product));
}

TEST(sums) {
    static const struct {
        const char *text;
        double alpha, beta;
        int c, row;
    } cases[] = {
        {"t", 1, 0, -1, -1},           {"t copy", 1, 0, -1, -1},
        {"t neg", -1, 0, -1, -1},      {"3 t *", 3, 0, -1, -1},
        {"t 3 * neg", -3, 0, -1, -1},  {"t 4 /", 0.25, 0, -1, -1},
        {"t dup +", 2, 0, -1, -1},     {"3 1 - t *", 2, 0, -1, -1},
        {"t 5 + 5 -", 1, 0, -1, -1},   {"t t 3 * -", -2, 0, -1, -1},
        {"t a +", 1, 1, A, -1},        {"b t 0.5 * +", 0.5, 1, B, -1},
        {"a t -", -1, 1, A, -1},       {"t a 3 * - 2 * a +", 2, -5, A, -1},
        {"t a 2 / +", 1, 0.5, A, -1},  {"t a + 4 /", 0.25, 0.25, A, -1},
        {"t a + a -", 1, 0, A, -1},    {"t r +", 1, 0, -1, R},
        {"s t 2 * +", 2, 0, -1, S},    {"r 0.5 * dup + t +", 1, 0, -1, R},
        {"t b 2 * + r +", 1, 2, B, R},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        basin_form want = {.known = true,
                           .alpha = cases[i].alpha,
                           .beta = cases[i].beta,
                           .c = cases[i].c,
                           .row = cases[i].row,
                           .mask = -1};
        check_one(cases[i].text, want);
    }
}

TEST(relus) {
    basin_form want = {.known = true, .relu = true, .alpha = 1, .c = -1, .row = -1, .mask = -1};
    check_one("t relu", want);
    check_one("t relu copy", want);
    want.alpha = -2;
    check_one("t -2 * relu", want);
    want.beta = 3, want.c = A;
    check_one("a 3 * t 2 * - relu", want);
    want.row = S;
    check_one("a 3 * t 2 * - s + relu", want);
}

TEST(masks) {
    basin_form want = {.known = true, .alpha = 1, .c = -1, .row = -1, .mask = A};
    check_one("t a step *", want);
    check_one("a copy step t *", want);
    check_one("t a step * a step *", want);
    want.alpha = 6;
    check_one("t 2 * a step 3 * *", want);
    check_one("a step t * 2 * t 4 * a step * +", want);
    check_one("t a step * -4 / -2 * 12 *", want);
    want.mask = B, want.alpha = -1;
    check_one("t b step * neg", want);
}

/* Kernels that add two operands ask for more. */
TEST(sums_of_more) {
    epilogue e;
    make(&e, "b a 0.5 * + t 3 * +");
    basin_form f = basin_form_with_more(&e.program, &e.call);
    assert_true(f.known && f.alpha == 3 && f.row < 0 && f.mask < 0);
    double of_a = f.c == A ? f.beta : f.of_more, of_b = f.c == B ? f.beta : f.of_more;
    assert_true((f.c == A && f.more == B) || (f.c == B && f.more == A));
    assert_true(of_a == 0.5 && of_b == 1);
    assert_true(is_form(basin_form_of(&e.program, &e.call), none));
    make(&e, "t a + b step *");
    f = basin_form_with_more(&e.program, &e.call);
    assert_true(f.known && f.alpha == 1 && f.beta == 1 && f.c == A && f.mask == B && f.more < 0);
    make(&e, "t a - a 2 * + b + b -");
    f = basin_form_with_more(&e.program, &e.call);
    assert_true(f.known && f.c == A && f.beta == 1 && f.more == B && f.of_more == 0);
}

/* Steps of descents: c + step (alpha tile + beta c), and how far they move. */
TEST(steps) {
    static const struct {
        const char *text;
        double alpha, beta;
        int c, step;
    } cases[] = {
        {"a k t * +", 1, 0, A, K},
        {"a z t a 0.5 * - a 0.5 * - * +", 1, -1, A, Z},
        {"k t neg 2 * * b +", -2, 0, B, K},
        {"b k 2 * t b + * -", -2, -2, B, K},
        {"a k t * + k a * +", 1, 1, A, K},
        {"a 2 * z t * + a -", 1, 0, A, Z},
        {"t a - k * 4 / a +", 0.25, -0.25, A, K},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        epilogue e;
        make(&e, cases[i].text);
        basin_form f = basin_form_with_more(&e.program, &e.call);
        basin_form want = {.known = true,
                           .alpha = cases[i].alpha,
                           .beta = cases[i].beta,
                           .c = cases[i].c,
                           .row = -1,
                           .mask = -1};
        if (!is_form(f, want) || f.step != cases[i].step) fail_msg("%s", cases[i].text);
        assert_true(is_form(basin_form_of(&e.program, &e.call), none));
        int to = e.program.instructions, next = e.program.store[0], c = to;
        e.instruction[to] = (basin_instruction){
            .op = BASIN_INSTRUCTION_LOAD, .to = (uint16_t)c, .a = (uint16_t)cases[i].c};
        e.instruction[to + 1] = (basin_instruction){
            .op = BASIN_OP_SUB, .to = (uint16_t)c, .a = (uint16_t)next, .b = (uint16_t)c};
        e.instruction[to + 2] =
            (basin_instruction){.op = BASIN_OP_ABS, .to = (uint16_t)c, .a = (uint16_t)c};
        e.program.instructions += 3, e.program.registers++, e.program.stores = 2;
        e.program.store[1] = (uint16_t)c;
        f = basin_form_with_more(&e.program, &e.call);
        if (!is_form(f, want)) fail_msg("the move of %s", cases[i].text);
        e.instruction[to + 2].op = BASIN_OP_NEG;
        assert_false(basin_form_with_more(&e.program, &e.call).known);
        e.program.store[1] = e.program.store[0];
        assert_false(basin_form_with_more(&e.program, &e.call).known);
    }
    static const char *const no[] = {"k t *",
                                     "b k t * +  a +",
                                     "a k t * z * +",
                                     "a 2 * k t * +",
                                     "a k t a + b + * +",
                                     "r k t * +",
                                     "a k t * + 1 +",
                                     "a k t * + relu",
                                     "a k t relu * +",
                                     "a k t b step * * +",
                                     "a k t * z t * + +",
                                     "a k t r + * +"};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        epilogue e;
        make(&e, no[i]);
        if (basin_form_with_more(&e.program, &e.call).known) fail_msg("%s", no[i]);
    }
}

/* ---- what has none ---- */

TEST(refusals) {
    static const struct {
        const char *why, *text[10];
    } cases[] = {
        {"no product", {"a", "3", "t t -", "a relu", "a b + relu", "a step"}},
        {"nothing left of it", {"t 0 *", "t 1 1 - *", "t a 0 * +"}},
        {"a division by 0", {"t 0 /", "t 1 1 - /"}},
        {"a constant", {"t 1 +", "t 1 + relu", "a t 2 + -"}},
        {"two operands like the result", {"t a + b +", "t a b + +"}},
        {"two rows", {"t r + s +", "t r s + 2 / +"}},
        {"a multiple of a row", {"t r 2 * +", "t r -", "t r + 2 *", "t r + r -", "t r + neg"}},
        {"an operand that lies otherwise", {"t k +", "t z +", "t z *", "k t -"}},
        {"a product of no constant", {"t dup *", "t a *", "r t *", "t relu 2 *", "2 t relu *"}},
        {"a quotient by no constant", {"2 t /", "t a /", "t dup /", "t a step /", "t 2 relu /"}},
        {"something after a ReLU",
         {"t relu a +", "a t relu +", "a t relu -", "t relu neg", "t relu 2 /", "t relu relu",
          "t relu a step *", "t relu dup +"}},
        {"a ReLU of something masked", {"t a step * relu"}},
        {"two masks", {"t a step * b step *", "t a step * t b step * +"}},
        {"a part that is not masked", {"t a step * t +", "t a step * a +", "t a step * 1 +"}},
        {"a mask that is added", {"t a step +", "t a step * a step -"}},
        {"an operand that is masked", {"t b + a step *", "t r + a step *", "t a + a step *"}},
        {"a step of no operand",
         {"t t step *", "t a 2 * step *", "t a 1 + step *", "t a r + step *", "t a relu step *",
          "t a step step *", "t a t + step *", "t 1 step *", "t a b step * step *"}},
        {"a mask that lies otherwise", {"t r step *", "t k step *", "t z step *"}},
        {"another operation",
         {"t tanh", "t tanh relu", "t a tanh +", "t a tanh step *", "t 2 tanh *", "t a max",
          "t 2 tanh /"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int k = 0; cases[i].text[k]; k++) {
            epilogue e;
            make(&e, cases[i].text[k]);
            if (!is_form(basin_form_of(&e.program, NULL), none) ||
                !is_form(basin_form_of(&e.program, &e.call), none))
                fail_msg("%s: %s", cases[i].why, cases[i].text[k]);
        }
}

/* Several results; and a register that is written again holds what was written last, one that never
 * was holds nothing. */
TEST(registers) {
    epilogue e;
    make(&e, "t 2 *");
    e.program.stores = 2;
    assert_false(basin_form_of(&e.program, &e.call).known);
    e.program.stores = 0;
    assert_false(basin_form_of(&e.program, &e.call).known);
    make(&e, "t tanh t 2 * max"); /* t, tanh, t, 2, *, max */
    e.program.instructions = 5;
    e.instruction[4].to = e.program.store[0] = 1;
    assert_true(basin_form_of(&e.program, &e.call).alpha == 2);
    e.program.store[0] = 7;
    assert_false(basin_form_of(&e.program, &e.call).known);
}

/* ---- operands ---- */

TEST(kinds) {
    const basin_kind real = BASIN_REAL, narrow = BASIN_NARROW, bits = BASIN_INDEX;
    static const char sum[] = "t a +", bias[] = "t r +", mask[] = "t a step *";
    const struct {
        const char *text;
        basin_kind result, a, r;
        bool known;
    } cases[] = {
        {sum, real, real, real, true},       {sum, narrow, narrow, real, true},
        {sum, narrow, real, real, false},    {sum, real, narrow, real, false},
        {bias, real, real, real, true},      {bias, narrow, narrow, real, true},
        {bias, narrow, real, narrow, false}, {bias, real, real, bits, false},
        {mask, real, real, real, true},      {mask, narrow, narrow, real, true},
        {mask, narrow, bits, real, true},    {mask, real, bits, real, true},
        {mask, narrow, real, real, false},   {mask, real, narrow, real, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        epilogue e;
        make(&e, cases[i].text);
        set_kinds(&e, cases[i].result, cases[i].a, cases[i].r);
        if (basin_form_of(&e.program, &e.call).known != cases[i].known)
            fail_msg("%s, case %zu", cases[i].text, i);
        assert_true(basin_form_of(&e.program, NULL).known); /* kinds are not settled */
    }
}

/* "t a +" over the domain with these strides of a: what a counts as. */
static char role_of(basin_shape domain, int64_t batch, int64_t row, int64_t column) {
    epilogue e;
    make(&e, "t a +");
    e.program.domain = domain;
    set_strides(&e, A, batch, row, column);
    basin_form f = basin_form_of(&e.program, &e.call);
    assert_true(is_form(f, basin_form_of(&e.program, NULL)));
    return !f.known ? '-' : f.c == A ? 'c' : f.row == A ? 'r' : '?';
}

TEST(strides) {
    basin_shape all = BASIN_SHAPE(2, 3, 4), batch = BASIN_SHAPE(1, 3, 4);
    basin_shape row = BASIN_SHAPE(2, 1, 4), column = BASIN_SHAPE(2, 3, 1);
    assert_int_equal(role_of(all, 12, 4, 1), 'c');
    assert_int_equal(role_of(all, 0, 4, 1), '-'); /* one matrix for all entries of a batch */
    assert_int_equal(role_of(all, 4, 0, 1), '-'); /* a row for each */
    assert_int_equal(role_of(all, 12, 4, 0), '-');
    assert_int_equal(role_of(all, 24, 8, 1), '-'); /* rows apart */
    assert_int_equal(role_of(all, 0, 0, 1), 'r');
    assert_int_equal(role_of(all, 0, 0, 0), '-');
    /* The stride along an axis of 1 means nothing. */
    assert_int_equal(role_of(batch, 0, 4, 1), 'c');
    assert_int_equal(role_of(batch, 7, 4, 1), 'c');
    assert_int_equal(role_of(batch, 7, 0, 1), 'r');
    assert_int_equal(role_of(row, 4, 0, 1), 'c');
    assert_int_equal(role_of(row, 0, 4, 1), 'r');
    assert_int_equal(role_of(column, 3, 1, 0), 'c');
    assert_int_equal(role_of(column, 3, 1, 1), 'c');
    assert_int_equal(role_of(column, 0, 0, 0), 'r');
    assert_int_equal(role_of(column, 3, 0, 0), '-');
    assert_int_equal(role_of(BASIN_SHAPE(1, 1, 4), 0, 0, 1), 'c'); /* either; c comes first */
}

/* One row of float under a narrow result is no c, but it is a row. */
TEST(row_of_another_kind) {
    epilogue e;
    make(&e, "t a +");
    e.program.domain = BASIN_SHAPE(1, 1, N);
    set_kinds(&e, BASIN_NARROW, BASIN_REAL, BASIN_REAL);
    assert_int_equal(basin_form_of(&e.program, &e.call).row, A);
    assert_int_equal(basin_form_of(&e.program, NULL).c, A);
}
