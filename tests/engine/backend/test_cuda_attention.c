/* Energy attention and the products over pairs on a CUDA device against plain loops in double: all
 * pairs and lists, hubs and isolated nodes, multipliers and mixing, in float, tf32 and bfloat16.
 * Each call runs three times (one by one, captured, replayed) and must give the same bits. Skipped
 * where there is no device.
 */
#include <stdio.h>

#include "engine/backend/attention_problem.h"

#include "engine/backend/kernel.h"
#include "support/cuda.h"

/* ---- one call, its operands in blocks of their own ---- */

enum { GUARD = 64 }; /* bytes before every operand and behind the workspace */

typedef struct stage {
    basin_call call;
    void *block[1 + BASIN_MAX_IN + BASIN_MAX_OUT];
    int blocks;
} stage;

static size_t element_size(basin_kind kind) { return kind == BASIN_NARROW ? 2 : 4; }

static uint16_t narrow(double x) {
    float value = (float)x;
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if (isnan(value)) return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static double widen(uint16_t x) {
    uint32_t bits = (uint32_t)x << 16;
    float value;
    memcpy(&value, &bits, 4);
    return (double)value;
}

static int64_t row_width(const basin_operand *x) { /* of one node's heads */
    return x->shape.dim[x->shape.rank - 2] * x->shape.dim[x->shape.rank - 1];
}

/* Of the operand, or of the joint matrix that it is some columns of. */
static size_t operand_bytes(const basin_operand *x) {
    int64_t count = basin_shape_count(x->shape);
    return (size_t)(x->stride ? count / row_width(x) * x->stride : count) * element_size(x->kind);
}

static basin_operand place(stage *s, basin_kind kind, basin_shape shape, const void *data) {
    size_t bytes = (size_t)basin_shape_count(shape) * element_size(kind) + GUARD;
    char *memory = cuda->table->alloc(cuda, bytes), *host = malloc(bytes);
    assert_non_null(memory);
    assert_non_null(host);
    memset(host, 0xff, bytes);
    if (data && bytes > GUARD) memcpy(host + GUARD, data, bytes - GUARD);
    cuda->table->copy_in(cuda, memory, host, bytes);
    free(host);
    s->block[s->blocks] = memory;
    return (basin_operand){.block = s->blocks++, .kind = kind, .offset = GUARD, .shape = shape};
}

/* Numbers of a REAL or NARROW operand; NULL: absent. `more` elements behind them are NaN. */
static void stage_in(stage *s, basin_kind kind, basin_shape shape, const double *x, int64_t more) {
    int64_t count = basin_shape_count(shape);
    basin_operand *operand = &s->call.in[s->call.ins++];
    *operand = (basin_operand){.block = -1};
    if (!x) return;
    char *data = zeros(count, 4);
    for (int64_t i = 0; i < count; i++) {
        double value = i < count - more ? x[i] : (double)NAN;
        if (kind == BASIN_NARROW)
            ((uint16_t *)(void *)data)[i] = narrow(value);
        else
            ((float *)(void *)data)[i] = (float)value;
    }
    *operand = place(s, kind, shape, data);
    free(data);
}

static void stage_index(stage *s, int64_t count, const int32_t *data) {
    basin_operand *operand = &s->call.in[s->call.ins++];
    *operand = (basin_operand){.block = -1};
    if (data) *operand = place(s, BASIN_INDEX, BASIN_SHAPE(count), data);
}

static void stage_out(stage *s, basin_kind kind, basin_shape shape, bool wanted) {
    s->call.out[s->call.outs++] =
        wanted ? place(s, kind, shape, NULL) : (basin_operand){.block = -1};
}

static void poison(void *memory, size_t bytes) {
    char *host = malloc(bytes);
    assert_non_null(host);
    memset(host, 0xff, bytes);
    cuda->table->copy_in(cuda, memory, host, bytes);
    free(host);
}

static char *fetch(const void *memory, size_t bytes) {
    char *host = malloc(bytes);
    basin_error error = {0};
    assert_non_null(host);
    cuda->table->copy_out(cuda, host, memory, bytes);
    if (cuda->table->wait(cuda, &error) != BASIN_OK) fail_msg("%s", error.text);
    return host;
}

static void check_guard(const char *bytes, const char *what, const char *name) {
    for (int i = 0; i < GUARD; i++)
        if ((unsigned char)bytes[i] != 0xff) fail_msg("%s: written outside of %s", name, what);
}

/* Runs the call; result[o] holds the bytes of output o, to be freed. */
static void stage_run_once(stage *s, char *result[BASIN_MAX_OUT], const char *name) {
    basin_error error = {0};
    size_t bytes = s->call.workspace_bytes;
    poison(s->block[0], bytes + GUARD);
    for (int o = 0; o < s->call.outs; o++) {
        const basin_operand *out = &s->call.out[o];
        size_t size = operand_bytes(out);
        if (out->block >= 0) poison(s->block[out->block], size + GUARD);
    }
    cuda->table->run(cuda, &s->call, 1, s->block);
    if (cuda->table->wait(cuda, &error) != BASIN_OK) fail_msg("%s: %s", name, error.text);
    char *workspace = fetch(s->block[0], bytes + GUARD);
    check_guard(workspace + bytes, "the workspace", name);
    free(workspace);
    for (int o = 0; o < s->call.outs; o++) {
        const basin_operand *out = &s->call.out[o];
        size_t size = operand_bytes(out);
        result[o] = NULL;
        if (out->block < 0) continue;
        result[o] = fetch(s->block[out->block], size + GUARD);
        check_guard(result[o], "an output", name);
        memmove(result[o], result[o] + GUARD, size);
    }
}

static void stage_run(stage *s, char *result[BASIN_MAX_OUT], const char *name) {
    s->call.workspace_bytes = cuda->table->workspace(cuda, &s->call);
    s->block[0] = cuda->table->alloc(cuda, s->call.workspace_bytes + GUARD);
    assert_non_null(s->block[0]);
    stage_run_once(s, result, name);
    for (int again = 2; again <= 3; again++) {
        char *other[BASIN_MAX_OUT];
        stage_run_once(s, other, name);
        for (int o = 0; o < s->call.outs; o++) {
            const basin_operand *out = &s->call.out[o];
            size_t size = operand_bytes(out);
            if (out->block >= 0 && memcmp(result[o], other[o], size) != 0)
                fail_msg("%s: output %d has other bits in run %d", name, o, again);
            free(other[o]);
        }
    }
    for (int i = 0; i < s->blocks; i++) cuda->table->free(cuda, s->block[i]);
}

static double result_at(const char *result, basin_kind kind, int64_t i) {
    if (kind == BASIN_NARROW) return widen(((const uint16_t *)(const void *)result)[i]);
    return (double)((const float *)(const void *)result)[i];
}

/* The error's norm against that of what is wanted; says where it is largest. */
static void compare(const char *result, basin_kind kind, const double *wanted, int64_t count,
                    double tolerance, double slack, const char *name) {
    double difference = 0, norm = 0, most = -1;
    int64_t worst = 0;
    for (int64_t i = 0; i < count; i++) {
        double delta = fabs(result_at(result, kind, i) - wanted[i]);
        if (!(delta <= most)) most = delta, worst = i;
        difference += delta * delta;
        norm += wanted[i] * wanted[i];
        if (isnan(delta)) break;
    }
    if (sqrt(difference) <= tolerance * sqrt(norm) + slack + 1e-12) return;
    fail_msg("%s: relative error %g, expected %g; element %lld of %lld: found %.9g, expected %.9g",
             name, sqrt(difference / norm), tolerance, (long long)worst, (long long)count,
             result_at(result, kind, worst), wanted[worst]);
}

/* ---- attention ---- */

typedef enum flavour { F32, TF32, BF16 } flavour;
static const char *const flavour_name[] = {"f32", "tf32", "bf16"};

typedef struct pattern {
    bool list, exclude_self;
    int64_t padding;
    int32_t *index[5]; /* row, key, column, query, pair */
} pattern;

/* The list by query and by key; padding is out of bounds on purpose. */
static pattern pattern_new(const problem *p, bool list, bool exclude_self) {
    pattern t = {.list = list, .exclude_self = exclude_self, .padding = list ? 5 : 0};
    if (!list) return t;
    int64_t count[] = {p->queries + 1, p->pairs + t.padding, p->keys + 1, p->pairs + t.padding,
                       p->pairs + t.padding};
    for (int i = 0; i < 5; i++) {
        t.index[i] = zeros(count[i], sizeof(int32_t));
        if (i % 2 || i == 4) memset(t.index[i], 0x7f, (size_t)count[i] * sizeof(int32_t));
    }
    for (int64_t i = 0; i < p->pairs; i++) {
        t.index[0][p->query[i] + 1]++;
        t.index[2][p->key[i] + 1]++;
        t.index[1][i] = p->key[i];
    }
    for (int64_t q = 0; q < p->queries; q++) t.index[0][q + 1] += t.index[0][q];
    for (int64_t k = 0; k < p->keys; k++) t.index[2][k + 1] += t.index[2][k];
    int32_t *next = zeros(p->keys, sizeof *next);
    for (int64_t i = 0; i < p->pairs; i++) {
        int64_t at = t.index[2][p->key[i]] + next[p->key[i]]++;
        t.index[3][at] = p->query[i];
        t.index[4][at] = (int32_t)i;
    }
    free(next);
    return t;
}

static void pattern_free(pattern *t) {
    for (int i = 0; i < 5; i++) free(t->index[i]);
}

static basin_shape shape_like(const problem *p, const pattern *t, int input) {
    int64_t H = p->heads;
    switch (input) {
    case Q:
    case A: return BASIN_SHAPE(p->batch, p->queries, H, p->width);
    case K:
    case B: return BASIN_SHAPE(p->batch, p->keys, H, p->width);
    case BETA: return BASIN_SHAPE(H);
    case SCALE: return BASIN_SHAPE(p->pairs + t->padding, H);
    case MIX: return BASIN_SHAPE(H, H);
    default: return BASIN_SHAPE(p->batch, p->queries, H);
    }
}

static basin_kind kind_of(int input, flavour f) {
    bool large = input == Q || input == K || input == A || input == B;
    return f == BF16 && large ? BASIN_NARROW : BASIN_REAL;
}

/* A call of the family with the outputs of the bit set `which`. */
static stage stage_of(const problem *p, const pattern *t, basin_op op, unsigned which, flavour f) {
    stage s = {.call = {.op = op, .attr = {.exclude_self = t->exclude_self, .causal = p->causal}},
               .blocks = 1};
    if (f == TF32) s.call.attr.products = BASIN_PRODUCTS_TF32;
    static const int first[] = {Q, K, BETA, SCALE, MIX}, last[] = {W, A, B};
    for (int i = 0; i < 5; i++)
        stage_in(&s, kind_of(first[i], f), shape_like(p, t, first[i]), p->in[first[i]],
                 first[i] == SCALE ? t->padding * p->heads : 0);
    int64_t count[] = {p->queries + 1, p->pairs + t->padding, p->keys + 1, p->pairs + t->padding,
                       p->pairs + t->padding};
    for (int i = 0; i < 5; i++) stage_index(&s, count[i], t->index[i]);
    int more = op == BASIN_OP_ATTENTION ? 0 : op == BASIN_OP_ATTENTION_FORCE ? 1 : 3;
    for (int i = 0; i < more; i++)
        stage_in(&s, kind_of(last[i], f), shape_like(p, t, last[i]), p->in[last[i]], 0);
    int base = op == BASIN_OP_ATTENTION_REVERSE ? GQ : LSE;
    for (int o = 0; o < (op == BASIN_OP_ATTENTION ? 1 : 6); o++) {
        int like = output_like[base + o];
        stage_out(&s, kind_of(like, f), shape_like(p, t, like), which >> (base + o) & 1);
    }
    return s;
}

/* Narrow outputs carry 8 bits; so do the weights they are summed with. */
static double tolerance_of(flavour f, int output) {
    bool large = output == DQ || output == DK || output == GQ || output == GK;
    return f == F32 ? 1e-5 : f == TF32 ? 4e-3 : large ? 1e-2 : 1e-4;
}

/* A picture's nodes behind whole strips of 64, in bfloat16, have kernels of their own; so few of
 * them could be far off and hardly show among all. */
static void compare_rest(const problem *p, const char *result, basin_kind kind,
                         const double *wanted, int output, const char *name) {
    enum { STRIPS_END = 192, MOST = 208 };
    char text[400];
    int like = output_like[output];
    int64_t nodes = like == K ? p->keys : like == Q || like == W ? p->queries : 0;
    if (nodes <= STRIPS_END || nodes > MOST) return;
    int64_t each = p->size[like] / (p->batch * nodes);
    snprintf(text, sizeof text, "%s from node %d on", name, STRIPS_END);
    for (int64_t i = 0; i < p->batch; i++) {
        int64_t at = (i * nodes + STRIPS_END) * each;
        compare(result + (size_t)at * element_size(kind), kind, wanted + at,
                (nodes - STRIPS_END) * each, tolerance_of(BF16, output), 0, text);
    }
}

static void check_call(const problem *p, const pattern *t, double *const wanted[OUTPUTS],
                       double terms, basin_op op, unsigned which, flavour f) {
    char *result[BASIN_MAX_OUT], name[300];
    static const char *const op_name[] = {"value", "force", "reverse"};
    stage s = stage_of(p, t, op, which, f);
    int base = op == BASIN_OP_ATTENTION_REVERSE ? GQ : LSE;
    for (int o = -1; o < s.call.outs; o++) {
        snprintf(
            name, sizeof name,
            "%s %s, %s%s%s%s, batch %d, %d queries, %d keys, %d pairs, H %d, Y %d, a %d, b %d: "
            "%s",
            flavour_name[f], op_name[op - BASIN_OP_ATTENTION], t->list ? "list" : "all pairs",
            t->exclude_self ? " but self" : "", p->in[SCALE] ? ", scale" : "",
            p->in[MIX] ? ", mix" : "", (int)p->batch, (int)p->queries, (int)p->keys, (int)p->pairs,
            (int)p->heads, (int)p->width, p->in[A] != NULL, p->in[B] != NULL,
            o < 0 ? "run" : output_name[base + o]);
        if (o < 0) {
            stage_run(&s, result, name);
            continue;
        }
        if (!result[o]) continue;
        int like = output_like[base + o];
        double slack = base + o == GBETA ? (f == F32 ? 1e-6 : f == TF32 ? 1e-3 : 1e-5) * terms : 0;
        compare(result[o], s.call.out[o].kind, wanted[base + o], p->size[like],
                tolerance_of(f, base + o), slack, name);
        if (f == BF16 && !t->list)
            compare_rest(p, result[o], s.call.out[o].kind, wanted[base + o], base + o, name);
        for (int64_t i = 0; like == SCALE && i < t->padding * p->heads; i++)
            if (result_at(result[o], BASIN_REAL, p->size[like] + i) != 0)
                fail_msg("%s: padding is not 0", name);
        free(result[o]);
    }
}

static unsigned outputs_of(const problem *p) {
    unsigned which = (1u << OUTPUTS) - 1;
    if (!p->in[SCALE]) which &= ~(1u << DSCALE | 1u << GSCALE);
    if (!p->in[MIX]) which &= ~(1u << DMIX | 1u << GMIX);
    return which;
}

static void round_inputs(problem *p) {
    static const int large[] = {Q, K, A, B};
    for (int i = 0; i < 4; i++)
        for (int64_t j = 0; p->in[large[i]] && j < p->size[large[i]]; j++)
            p->in[large[i]][j] = widen(narrow(p->in[large[i]][j]));
}

static void check_outputs(problem *p, bool list, bool exclude_self, flavour f, unsigned which) {
    double *out[OUTPUTS];
    if (f == BF16) round_inputs(p);
    outputs_new(p, out);
    double terms = naive(p, out);
    pattern t = pattern_new(p, list, exclude_self);
    check_call(p, &t, out, terms, BASIN_OP_ATTENTION, which, f);
    check_call(p, &t, out, terms, BASIN_OP_ATTENTION_FORCE, which, f);
    check_call(p, &t, out, terms, BASIN_OP_ATTENTION_REVERSE, which, f);
    pattern_free(&t);
    outputs_free(out);
    problem_free(p);
}

static void check(problem *p, bool list, bool exclude_self, flavour f) {
    check_outputs(p, list, exclude_self, f, outputs_of(p));
}

static void check_dense(const int64_t s[5], bool self, bool scale, bool mix, flavour f) {
    problem p = dense_problem(s[0], s[1], s[2], s[3], s[4], !self, scale, mix);
    check(&p, false, !self, f);
}

static void check_list(const int64_t s[5], bool scale, bool mix, flavour f) {
    problem p = list_problem(s[0], s[1], s[2], s[3], s[4], scale, mix);
    check(&p, true, false, f);
}

static void dense_shapes(flavour f) {
    static const int64_t square[][5] = {
        {1, 1, 1, 1, 1},      {2, 5, 5, 3, 7},       {3, 9, 9, 2, 16},     {1, 16, 16, 2, 8},
        {1, 40, 40, 4, 33},   {1, 64, 64, 2, 64},    {1, 70, 70, 1, 64},   {2, 33, 33, 12, 64},
        {1, 197, 197, 2, 64}, {1, 130, 130, 1, 128}, {1, 300, 300, 1, 32}, {2, 65, 65, 2, 100}};
    static const int64_t oblong[][5] = {{2, 19, 50, 3, 20},   {2, 50, 19, 3, 24},
                                        {1, 150, 1100, 1, 8}, {2, 200, 208, 3, 64},
                                        {2, 208, 193, 2, 40}, {1, 199, 195, 2, 48}};
    for (size_t i = 0; i < sizeof square / sizeof *square; i++)
        for (int self = 0; self < 2; self++) check_dense(square[i], self, false, false, f);
    for (size_t i = 0; i < sizeof oblong / sizeof *oblong; i++)
        check_dense(oblong[i], true, false, false, f);
}

static void list_shapes(flavour f) {
    static const int64_t shape[][5] = {
        {1, 1, 1, 1, 1},     {6, 4, 3, 2, 7},     {20, 20, 9, 12, 64}, {50, 31, 20, 1, 128},
        {40, 60, 12, 3, 40}, {9, 80, 30, 16, 16}, {30, 30, 5, 2, 256}, {300, 200, 40, 2, 24},
        {64, 64, 1, 2, 32},  {90, 70, 60, 2, 33}, {30, 40, 20, 2, 300}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) check_list(shape[i], false, false, f);
}

TEST(test_dense_f32) { dense_shapes(F32); }
TEST(test_dense_tf32) { dense_shapes(TF32); }
TEST(test_dense_bf16) { dense_shapes(BF16); }
TEST(test_list_f32) { list_shapes(F32); }
TEST(test_list_bf16) { list_shapes(BF16); }

/* So many nodes that warps look for cut ones 32 at a time. Sums over all pairs are left to the
 * small ones: they cancel here. */
TEST(test_list_large) {
    unsigned sums = 1u << DBETA | 1u << GBETA;
    for (int f = F32; f <= BF16; f += 2) {
        problem p = list_problem(1100000, 1060000, 2, 1, f == F32 ? 8 : 16, false, false);
        check_outputs(&p, true, false, (flavour)f, outputs_of(&p) & ~sums);
    }
}

/* Short lists whose nodes' heads go together, with and without multipliers. */
TEST(test_list_joint) {
    static const int64_t shape[][5] = {
        {300, 200, 5, 4, 16}, {64, 80, 9, 2, 32}, {90, 70, 4, 8, 16}, {50, 40, 40, 4, 32}};
    for (int i = 0; i < 4; i++)
        for (int scale = 0; scale < 2; scale++) check_list(shape[i], scale, false, F32);
}

/* Multipliers and mixing, and rows too wide for the fast forms. */
TEST(test_mixed) {
    static const int64_t dense[][5] = {{1, 1, 1, 1, 1}, {2, 5, 5, 3, 7}, {2, 33, 33, 12, 64}};
    static const int64_t list[][5] = {
        {6, 4, 3, 2, 7}, {20, 20, 9, 12, 64}, {9, 80, 30, 16, 16}, {300, 200, 40, 2, 24}};
    for (int option = 1; option < 4; option++)
        for (int f = F32; f <= BF16; f += 2) {
            for (int i = 0; i < 3; i++)
                check_dense(dense[i], option == 2, option & 1, option & 2, (flavour)f);
            for (int i = 0; i < 4; i++) check_list(list[i], option & 1, option & 2, (flavour)f);
        }
    check_dense((int64_t[]){2, 20, 20, 2, 200}, false, false, false, F32);
    check_dense((int64_t[]){2, 20, 30, 2, 515}, true, false, false, F32);
}

/* Tokens that see those before them, in the dense form and with multipliers and mixing. */
TEST(test_causal) {
    static const int64_t shape[][5] = {
        {1, 1, 1, 1, 1},      {2, 5, 5, 3, 7},       {1, 40, 40, 4, 33},   {2, 65, 65, 2, 64},
        {1, 197, 197, 2, 64}, {1, 130, 130, 1, 128}, {1, 300, 300, 1, 32}, {1, 1024, 1024, 1, 64}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++)
        for (int option = 0; option < 6; option++) {
            const int64_t *s = shape[i];
            bool self = option & 1, full = option >= 4 && s[1] < 100;
            problem p = dense_problem(s[0], s[1], s[2], s[3], s[4], !self, full, full);
            problem_make_causal(&p);
            check(&p, false, !self, full ? F32 : (flavour)(option / 2));
        }
}

/* So many pairs that a chunk is longer than the shortest, and a hub of thousands. */
TEST(test_list_long) {
    check_list((int64_t[]){2000, 1500, 400, 1, 4}, false, false, F32);
    check_list((int64_t[]){2000, 1500, 400, 1, 4}, true, false, F32);
}

TEST(test_no_pairs) {
    for (int mix = 0; mix < 2; mix++) {
        check_list((int64_t[]){5, 4, 0, 2, 8}, mix, mix, F32);
        check_dense((int64_t[]){3, 1, 1, 2, 5}, false, mix, mix, F32);
        check_dense((int64_t[]){2, 3, 0, 2, 5}, true, mix, mix, F32);
        check_dense((int64_t[]){2, 0, 3, 2, 5}, true, mix, mix, F32);
    }
}

/* Scores of thousands: nothing overflows. */
TEST(test_large_scores) {
    for (int list = 0; list < 2; list++) {
        problem p = list ? list_problem(30, 30, 10, 2, 8, false, false)
                         : dense_problem(1, 30, 30, 2, 8, true, false, false);
        double *out[OUTPUTS];
        char *result[BASIN_MAX_OUT];
        for (int64_t i = 0; i < p.size[Q]; i++) p.in[Q][i] = (float)(1e4 * p.in[Q][i]);
        outputs_new(&p, out);
        naive(&p, out);
        pattern t = pattern_new(&p, list, !list);
        stage s = stage_of(&p, &t, BASIN_OP_ATTENTION_FORCE, 1u << LSE | 1u << DQ | 1u << DK, F32);
        stage_run(&s, result, "large scores");
        for (int o = LSE; o <= DK; o++) {
            compare(result[o], BASIN_REAL, out[o], p.size[output_like[o]], 2e-3, 0, output_name[o]);
            free(result[o]);
        }
        s = stage_of(&p, &t, BASIN_OP_ATTENTION_REVERSE, outputs_of(&p), F32);
        stage_run(&s, result, "large scores, reverse");
        for (int o = 0; o < 4; o++) {
            for (int64_t i = 0; i < p.size[output_like[GQ + o]]; i++)
                if (!isfinite(result_at(result[o], BASIN_REAL, i)))
                    fail_msg("large scores: %s[%d] is not finite", output_name[GQ + o], (int)i);
            free(result[o]);
        }
        pattern_free(&t);
        outputs_free(out);
        problem_free(&p);
    }
}

/* The sizes of a picture's tokens with a beta below 0, one of 0, and numbers far from 1. */
TEST(test_picture) {
    for (int f = F32; f <= BF16; f++) {
        problem p = dense_problem(1, 197, 197, 3, 64, true, false, false);
        static const double size[INPUTS] = {
            [Q] = 30, [K] = 0.01, [W] = 1e-3, [A] = 1e-5, [B] = 1e-3};
        for (int i = 0; i < INPUTS; i++)
            for (int64_t j = 0; size[i] > 0 && j < p.size[i]; j++)
                p.in[i][j] = (float)(size[i] * p.in[i][j]);
        p.in[BETA][1] = 0, p.in[BETA][2] = -p.in[BETA][2];
        check(&p, false, true, (flavour)f);
    }
}

/* Either side with one node behind its strips, with the most that have small products, and with one
 * more; all widths. */
TEST(test_rest) {
    static const int64_t square[][5] = {{1, 193, 193, 2, 40}, {1, 200, 200, 2, 56}};
    static const int64_t oblong[][5] = {
        {1, 201, 200, 2, 64}, {1, 200, 201, 2, 48}, {1, 193, 208, 2, 56}};
    for (int i = 0; i < 4; i++) check_dense(square[i / 2], i % 2, false, false, BF16);
    for (int i = 0; i < 3; i++) check_dense(oblong[i], true, false, false, BF16);
}

/* Where all w have one sign, the sums by key are signed at the end; a w of 0 weighs nothing. Either
 * sign of beta; strips and, in bfloat16, what lies behind them. */
TEST(test_signs) {
    static const int64_t nodes[] = {200, 206};
    for (int f = TF32; f <= BF16; f++)
        for (int i = 0; i < 4; i++) {
            int64_t n = nodes[i / 2];
            problem p = dense_problem(1, n, n, 2, 64, true, false, false);
            for (int64_t j = 0; j < p.size[W]; j++)
                p.in[W][j] = (i % 2 ? -1 : 1) * fabs(p.in[W][j]);
            for (int64_t query = 3; query < n; query += 96) p.in[W][2 * query] = 0; /* 195, too */
            p.in[BETA][1] = -p.in[BETA][1];
            check(&p, false, true, (flavour)f);
        }
}

/* Long sequences in bfloat16, which have kernels of their own: ends inside a tile, either side the
 * longer one, all widths, causal; with and without gradients of beta; betas below 0 and of 0, w of
 * either sign and of 0, keys with a large part in common (so that the mean of c is far from 0),
 * scores that grow from tile to tile, an absent cotangent. */
TEST(test_long) {
    static const int64_t size[][5] = {{2, 256, 256, 2, 64}, {1, 300, 300, 3, 64},
                                      {1, 257, 640, 3, 40}, {1, 641, 319, 3, 48},
                                      {1, 700, 700, 3, 56}, {1, 1100, 1100, 1, 64}};
    for (int i = 0; i < 24; i++) {
        const int64_t *s = size[i / 4];
        bool self = i % 2 || s[1] != s[2], causal = i % 4 == 3 && s[1] == s[2];
        problem p = dense_problem(s[0], s[1], s[2], s[3], s[4], !self, false, false);
        if (causal) problem_make_causal(&p);
        if (s[3] == 3) p.in[BETA][1] = 0, p.in[BETA][2] = -p.in[BETA][2];
        for (int64_t j = 0; j < p.size[W]; j += 7) p.in[W][j] = 0;
        for (int64_t j = 0; i % 4 == 1 && j < p.size[K]; j++)
            p.in[K][j] = (float)(p.in[K][j] + (j % s[4] < 8 ? 3 : 0));
        for (int64_t j = 0; i % 4 == 2 && j < p.size[K]; j++)
            p.in[K][j] = (float)(p.in[K][j] * (1 + 0.01 * (double)(j / (s[3] * s[4]))));
        if (i == 4) free(p.in[A]), p.in[A] = NULL;
        if (i == 5) free(p.in[B]), p.in[B] = NULL;
        unsigned beta = 1u << DBETA | 1u << GBETA;
        check_outputs(&p, false, !self, BF16, outputs_of(&p) & ~(i % 3 ? 0 : beta));
    }
}

/* More heads than fit on the device at a time: each entry of a batch that repeats two pictures
 * comes out as in the batch of these two. */
static void check_many(basin_op op, flavour f) {
    enum { TIMES = 14 };
    problem few = dense_problem(2, 197, 197, 12, 64, true, false, false), many = few;
    pattern t = pattern_new(&few, false, true);
    char *one[BASIN_MAX_OUT], *all[BASIN_MAX_OUT];
    many.batch *= TIMES, many.pairs *= TIMES;
    for (int i = 0; i < INPUTS; i++) {
        if (!few.in[i] || i == BETA) continue;
        many.in[i] = zeros(few.size[i] * TIMES, sizeof(double));
        for (int64_t j = 0; j < few.size[i] * TIMES; j++)
            many.in[i][j] = few.in[i][j % few.size[i]];
    }
    unsigned which = 1u << DQ | 1u << DK | 1u << LSE | 1u << GQ | 1u << GK | 1u << GW;
    stage a = stage_of(&few, &t, op, which, f), b = stage_of(&many, &t, op, which, f);
    stage_run(&a, one, "few heads");
    stage_run(&b, all, "many heads");
    for (int o = 0; o < a.call.outs; o++) {
        size_t bytes = one[o] ? operand_bytes(&a.call.out[o]) : 0;
        for (size_t i = 0; one[o] && i < TIMES; i++)
            if (memcmp(all[o] + i * bytes, one[o], bytes) != 0)
                fail_msg("%s %s: output %d of copy %zu has other bits", flavour_name[f],
                         op == BASIN_OP_ATTENTION_FORCE ? "force" : "reverse", o, i);
        free(one[o]), free(all[o]);
    }
    for (int i = 0; i < INPUTS; i++)
        if (i != BETA) free(many.in[i]);
    pattern_free(&t);
    problem_free(&few);
}

TEST(test_many) {
    for (int f = TF32; f <= BF16; f++) {
        check_many(BASIN_OP_ATTENTION_FORCE, (flavour)f);
        check_many(BASIN_OP_ATTENTION_REVERSE, (flavour)f);
    }
}

/* An absent output changes no other, and an absent cotangent counts as zero. Kind 4 is the size of
 * a picture's tokens, in bfloat16. */
TEST(test_absent) {
    for (int kind = 0; kind < 5; kind++) {
        bool list = kind & 1, full = kind & 2, picture = kind == 4;
        problem p = list      ? list_problem(20, 15, 6, 3, 18, full, full)
                    : picture ? dense_problem(2, 196, 196, 2, 64, true, false, false)
                              : dense_problem(2, 12, 12, 3, 18, true, full, full);
        if (picture) round_inputs(&p);
        pattern t = pattern_new(&p, list, !list);
        double *out[OUTPUTS];
        for (int o = 0; o < OUTPUTS + 3; o++) {
            double *kept[] = {p.in[A], p.in[B]};
            if (o > OUTPUTS) p.in[A] = NULL;
            if (o == OUTPUTS || o == OUTPUTS + 2) p.in[B] = NULL;
            outputs_new(&p, out);
            double terms = naive(&p, out);
            unsigned which = outputs_of(&p) & (o < OUTPUTS ? 1u << o : ~0u);
            check_call(&p, &t, out, terms,
                       o < GQ ? BASIN_OP_ATTENTION_FORCE : BASIN_OP_ATTENTION_REVERSE, which,
                       picture ? BF16 : F32);
            outputs_free(out);
            p.in[A] = kept[0];
            p.in[B] = kept[1];
        }
        pattern_free(&t);
        problem_free(&p);
    }
}

/* ---- operands that are some columns of joint matrices ---- */

/* Moves an operand of a call into a matrix with `more` columns besides its own, `before` of them in
 * front; they stay 0xff. */
static void lay_apart(stage *s, basin_operand *x, int64_t before, int64_t more) {
    size_t size = element_size(x->kind), dense = operand_bytes(x);
    int64_t width = row_width(x), rows = basin_shape_count(x->shape) / width;
    char *data = fetch(s->block[x->block], dense + GUARD);
    x->stride = width + more, x->offset = GUARD + (size_t)before * size;
    size_t bytes = operand_bytes(x) + GUARD;
    char *host = malloc(bytes), *memory = cuda->table->alloc(cuda, bytes);
    assert_non_null(host);
    assert_non_null(memory);
    memset(host, 0xff, bytes);
    for (int64_t i = 0; i < rows; i++)
        memcpy(host + x->offset + (size_t)(i * x->stride) * size,
               data + GUARD + (size_t)(i * width) * size, (size_t)width * size);
    cuda->table->copy_in(cuda, memory, host, bytes);
    cuda->table->free(cuda, s->block[x->block]);
    s->block[x->block] = memory;
    free(host), free(data);
}

/* The operand's own columns of a result; fails where others were written. */
static char *own_columns(const char *result, const basin_operand *x, const char *name) {
    size_t size = element_size(x->kind), row = (size_t)row_width(x) * size;
    size_t stride = (size_t)x->stride * size, bytes = operand_bytes(x), first = x->offset - GUARD;
    char *own = zeros((int64_t)(bytes / stride + 1), row);
    for (size_t i = 0; i < bytes; i++) {
        size_t column = i % stride;
        if (column >= first && column < first + row)
            own[i / stride * row + column - first] = result[i];
        else if ((unsigned char)result[i] != 0xff)
            fail_msg("%s: row %zu is written outside of its columns", name, i / stride);
    }
    return own;
}

/* A call with Q, K, A, B and their results in joint matrices, each of its own width, in multiples
 * of `unit` columns. Bits as in the dense call, unless rows of a picture are not aligned: these
 * have other kernels. */
static void check_apart(const int64_t s[5], bool self, basin_op op, flavour f, int64_t unit) {
    BASIN_AT_EXIT(problem_free)
    problem p = dense_problem(s[0], s[1], s[2], s[3], s[4], !self, false, false);
    pattern t = pattern_new(&p, false, !self);
    char *dense[BASIN_MAX_OUT], *apart[BASIN_MAX_OUT], name[200];
    unsigned which = outputs_of(&p);
    bool picture = s[1] >= 193 && s[1] <= 208 && f != F32, same = !picture || unit % 8 == 0;
    bool reverse = op == BASIN_OP_ATTENTION_REVERSE;
    snprintf(name, sizeof name, "%s %s, batch %d, %d by %d nodes, H %d, Y %d, columns by %d",
             flavour_name[f], reverse ? "reverse" : "force", (int)s[0], (int)s[1], (int)s[2],
             (int)s[3], (int)s[4], (int)unit);
    stage one = stage_of(&p, &t, op, which, f), two = stage_of(&p, &t, op, which, f);
    stage_run(&one, dense, name);
    static const int in[] = {BASIN_ATT_Q, BASIN_ATT_K, BASIN_ATT_A, BASIN_ATT_B};
    for (int i = 0; i < (reverse ? 4 : 2); i++)
        lay_apart(&two, &two.call.in[in[i]], unit * (i % 3), unit * (i + 2));
    int first = reverse ? (int)BASIN_ATT_GQ : (int)BASIN_ATT_DQ;
    lay_apart(&two, &two.call.out[first], unit * 2, unit * 3);
    lay_apart(&two, &two.call.out[first + 1], unit, unit * 7);
    stage_run(&two, apart, name);
    for (int o = 0; o < two.call.outs; o++) {
        const basin_operand *x = &one.call.out[o];
        if (!dense[o]) continue;
        int64_t count = basin_shape_count(x->shape);
        bool moved = two.call.out[o].stride != 0;
        char *own = moved ? own_columns(apart[o], &two.call.out[o], name) : apart[o];
        if (same && memcmp(own, dense[o], operand_bytes(x)) != 0)
            fail_msg("%s: output %d has other bits than where it lies by itself", name, o);
        double *wanted = zeros(count, sizeof *wanted);
        for (int64_t i = 0; i < count; i++) wanted[i] = result_at(dense[o], x->kind, i);
        if (moved) compare(own, x->kind, wanted, count, 1e-2, 0, name);
        if (moved) free(own);
        free(wanted), free(dense[o]), free(apart[o]);
    }
    pattern_free(&t);
}

TEST(test_joint) {
    static const int64_t size[][5] = {
        {2, 197, 197, 2, 64}, {2, 200, 208, 3, 64},  {2, 208, 193, 2, 40}, {2, 33, 33, 12, 64},
        {2, 19, 50, 3, 20},   {1, 130, 130, 1, 128}, {2, 40, 40, 4, 33},   {3, 5, 5, 3, 7},
        {1, 1, 1, 1, 1},      {2, 3, 0, 2, 5},       {2, 0, 3, 2, 5}};
    static const int64_t unit[] = {8, 24, 1, 3, 4};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (size_t j = 0; j < sizeof unit / sizeof *unit; j++)
            for (int f = F32; f <= BF16; f++) {
                bool self = size[i][1] != size[i][2] || j % 2;
                check_apart(size[i], self, BASIN_OP_ATTENTION_FORCE, (flavour)f, unit[j]);
                check_apart(size[i], self, BASIN_OP_ATTENTION_REVERSE, (flavour)f, unit[j]);
            }
}

/* Lists and mixed heads take none, and say so however often they run. */
TEST(test_joint_refused) {
    for (int list = 0; list < 2; list++) {
        problem p = list ? list_problem(6, 4, 3, 2, 8, false, false)
                         : dense_problem(2, 5, 5, 3, 8, true, false, true);
        pattern t = pattern_new(&p, list, !list);
        stage s = stage_of(&p, &t, BASIN_OP_ATTENTION_FORCE, outputs_of(&p), F32);
        lay_apart(&s, &s.call.in[BASIN_ATT_K], 8, 16);
        s.call.workspace_bytes = cuda->table->workspace(cuda, &s.call);
        s.block[0] = cuda->table->alloc(cuda, s.call.workspace_bytes + GUARD);
        for (int again = 0; again < 4; again++) {
            cuda->table->run(cuda, &s.call, 1, s.block);
            assert_failure(cuda->table->wait(cuda, &failure), BASIN_UNSUPPORTED, "lie apart");
        }
        for (int i = 0; i < s.blocks; i++) cuda->table->free(cuda, s.block[i]);
        pattern_free(&t);
        problem_free(&p);
    }
}

/* ---- products over pairs ---- */

static void check_pairs(const int64_t s[5], flavour f) {
    BASIN_AT_EXIT(problem_free) problem p = list_problem(s[0], s[1], s[2], s[3], s[4], true, false);
    pattern t = pattern_new(&p, true, false);
    int64_t H = p.heads, Y = p.width, room = p.pairs + t.padding;
    basin_kind kind = f == BF16 ? BASIN_NARROW : BASIN_REAL;
    basin_shape queries = BASIN_SHAPE(p.queries, H, Y), keys = BASIN_SHAPE(p.keys, H, Y);
    if (f == BF16) round_inputs(&p);
    double *w = zeros(room * H, sizeof *w), *by_query = zeros(p.size[Q], sizeof *w);
    double *by_key = zeros(p.size[K], sizeof *w);
    for (int64_t i = 0; i < p.pairs * H; i++)
        for (int64_t y = 0; y < Y; y++) {
            int64_t q = (p.query[i / H] * H + i % H) * Y + y,
                    k = (p.key[i / H] * H + i % H) * Y + y;
            w[i] += p.in[Q][q] * p.in[K][k];
            by_query[q] += p.in[SCALE][i] * p.in[K][k];
            by_key[k] += p.in[SCALE][i] * p.in[Q][q];
        }
    for (int what = 0; what < 3; what++) {
        char name[200], *result[BASIN_MAX_OUT];
        stage c = {.call = {.op = what ? BASIN_OP_PAIR_SUM : BASIN_OP_PAIR_DOT}, .blocks = 1};
        c.call.attr.transpose_a = what == 2;
        snprintf(name, sizeof name, "%s pair %s, %d queries, %d keys, %d pairs, H %d, Y %d",
                 flavour_name[f],
                 what == 0   ? "dot"
                 : what == 1 ? "sum"
                             : "sum by key",
                 (int)p.queries, (int)p.keys, (int)p.pairs, (int)H, (int)Y);
        if (what == 0) stage_in(&c, kind, queries, p.in[Q], 0);
        if (what != 0) stage_in(&c, BASIN_REAL, BASIN_SHAPE(room, H), p.in[SCALE], t.padding * H);
        stage_in(&c, kind, what == 2 ? queries : keys, p.in[what == 2 ? Q : K], 0);
        int64_t count[] = {p.queries + 1, room, p.keys + 1, room, room};
        for (int i = 0; i < 5; i++) stage_index(&c, count[i], t.index[i]);
        stage_out(&c, what ? kind : BASIN_REAL,
                  what == 0   ? BASIN_SHAPE(room, H)
                  : what == 1 ? queries
                              : keys,
                  true);
        stage_run(&c, result, name);
        compare(result[0], c.call.out[0].kind,
                what == 0   ? w
                : what == 1 ? by_query
                            : by_key,
                basin_shape_count(c.call.out[0].shape), f == BF16 && what ? 5e-3 : 1e-5, 0, name);
        free(result[0]);
    }
    free(w), free(by_query), free(by_key);
    pattern_free(&t);
}

TEST(test_pairs) {
    static const int64_t shape[][5] = {
        {1, 1, 1, 1, 1},     {6, 4, 3, 2, 7},     {20, 20, 9, 12, 64}, {50, 31, 20, 1, 128},
        {40, 60, 12, 3, 40}, {9, 80, 30, 16, 16}, {30, 30, 5, 2, 256}, {300, 200, 40, 2, 24},
        {40, 40, 9, 2, 1},   {20, 30, 9, 2, 515}, {20, 30, 9, 1, 520}, {5, 4, 0, 2, 8}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        check_pairs(shape[i], F32);
        check_pairs(shape[i], BF16);
    }
}

int main(void) {
    cuda_open();
    return cuda_close(tests_run(NULL, NULL));
}
