/* Energy attention on the reference backend: the value against its definition, the force against
 * central differences of the value, the reverse against central differences of the force; over
 * all pairs and over lists of pairs, with and without multipliers, mixing and self-attention. */
#include "basin/random.h"
#include "engine/backend/rig.h"

enum { LARGEST = 256 };

/* Operands by their number in the call; a count of 0 means absent. */
typedef struct problem {
    int64_t batch, queries, keys, heads, width, pairs;
    bool exclude_self, added;
    const int32_t *row, *key; /* NULL: all pairs */
    int64_t count[BASIN_ATT_IN];
    double data[BASIN_ATT_IN][LARGEST];
} problem;

enum {
    WITH_SCALE = 1,
    WITH_MIX = 2,
    WITHOUT_SELF = 4,
    LISTED = 8,
    WITHOUT_A = 16,
    WITHOUT_B = 32,
    ADDED = 64
};

/* Query 1 has no pair; the last two entries are padding that must not be read. */
static const int32_t list_row[] = {0, 2, 2, 5, 6};
static const int32_t list_key[] = {1, 2, 0, 1, 2, 2, -7, 1 << 30};

static problem problem_new(int64_t batch, int64_t queries, int64_t keys, int flags) {
    bool listed = flags & LISTED;
    problem p = {.batch = batch, .queries = queries, .keys = keys, .heads = 2, .width = 3};
    p.exclude_self = flags & WITHOUT_SELF;
    p.added = flags & ADDED;
    p.row = listed ? list_row : NULL;
    p.key = listed ? list_key : NULL;
    p.pairs = listed ? 8 : batch * queries * keys;
    p.count[BASIN_ATT_Q] = batch * queries * p.heads * p.width;
    p.count[BASIN_ATT_K] = batch * keys * p.heads * p.width;
    p.count[BASIN_ATT_BETA] = p.heads;
    p.count[BASIN_ATT_SCALE] = flags & WITH_SCALE ? p.pairs * p.heads : 0;
    p.count[BASIN_ATT_MIX] = flags & WITH_MIX ? p.heads * p.heads : 0;
    p.count[BASIN_ATT_W] = batch * queries * p.heads;
    p.count[BASIN_ATT_A] = flags & WITHOUT_A ? 0 : p.count[BASIN_ATT_Q];
    p.count[BASIN_ATT_B] = flags & WITHOUT_B ? 0 : p.count[BASIN_ATT_K];
    for (int i = 0; i < BASIN_ATT_IN; i++)
        for (int64_t j = 0; j < p.count[i]; j++)
            p.data[i][j] = basin_random_normal_at(7, (uint64_t)i, (uint64_t)j);
    return p;
}

static basin_shape operand_shape(const problem *p, int i) {
    switch (i) {
    case BASIN_ATT_Q:
    case BASIN_ATT_A: return BASIN_SHAPE(p->batch, p->queries, p->heads, p->width);
    case BASIN_ATT_K:
    case BASIN_ATT_B: return BASIN_SHAPE(p->batch, p->keys, p->heads, p->width);
    case BASIN_ATT_SCALE: return BASIN_SHAPE(p->pairs, p->heads);
    case BASIN_ATT_MIX: return BASIN_SHAPE(p->heads, p->heads);
    case BASIN_ATT_W: return BASIN_SHAPE(p->batch, p->queries, p->heads);
    default: return BASIN_SHAPE(p->heads);
    }
}

/* Runs the operation with all its inputs; the outputs are chosen by the caller. */
static rig problem_rig(const problem *p, basin_op op) {
    rig r = rig_new(op);
    int last = op == BASIN_OP_ATTENTION         ? BASIN_ATT_PAIR
               : op == BASIN_OP_ATTENTION_FORCE ? BASIN_ATT_W
                                                : BASIN_ATT_B;
    r.call.attr.exclude_self = p->exclude_self;
    r.call.attr.added = p->added;
    for (int i = 0; i <= last; i++) {
        if (i == BASIN_ATT_ROW && p->row)
            rig_index(&r, BASIN_SHAPE(p->queries + 1), p->row);
        else if (i == BASIN_ATT_KEY && p->row)
            rig_index(&r, BASIN_SHAPE(p->pairs), p->key);
        else if (p->count[i])
            rig_in(&r, operand_shape(p, i), p->data[i]);
        else
            rig_in_absent(&r);
    }
    return r;
}

static void add_output(rig *r, const problem *p, int like, bool wanted) {
    if (wanted)
        rig_out(r, operand_shape(p, like));
    else
        rig_out_absent(r);
}

static double dot(const double *x, const double *y, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* sum w lse, what the force is the gradient of */
static double value(const problem *p) {
    rig r = problem_rig(p, BASIN_OP_ATTENTION);
    add_output(&r, p, BASIN_ATT_W, true);
    rig_run(&r);
    double sum = dot(rig_result(&r, 0), p->data[BASIN_ATT_W], p->count[BASIN_ATT_W]);
    rig_free(&r);
    return sum;
}

/* sum a dq + sum b dk, what the reverse is the gradient of */
static double force_value(const problem *p) {
    rig r = problem_rig(p, BASIN_OP_ATTENTION_FORCE);
    rig_out_absent(&r);
    add_output(&r, p, BASIN_ATT_Q, true);
    add_output(&r, p, BASIN_ATT_K, true);
    rig_run(&r);
    double sum = dot(rig_result(&r, 1), p->data[BASIN_ATT_A], p->count[BASIN_ATT_A]) +
                 dot(rig_result(&r, 2), p->data[BASIN_ATT_B], p->count[BASIN_ATT_B]);
    rig_free(&r);
    return sum;
}

/* Compares output o of r with the gradient of f by operand i, in relative norm. */
static void check_gradient(rig *r, int o, problem *p, int i, double (*f)(const problem *)) {
    const double h = 1e-4, *found = rig_result(r, o);
    double error = 0, norm = 0;
    for (int64_t j = 0; j < p->count[i]; j++) {
        double keep = p->data[i][j], up, down, up2, down2, wanted;
        p->data[i][j] = keep + h, up = f(p);
        p->data[i][j] = keep - h, down = f(p);
        p->data[i][j] = keep + 2 * h, up2 = f(p);
        p->data[i][j] = keep - 2 * h, down2 = f(p);
        p->data[i][j] = keep;
        wanted = (8 * (up - down) - (up2 - down2)) / (12 * h);
        error += (found[j] - wanted) * (found[j] - wanted);
        norm += wanted * wanted;
    }
    if (!(sqrt(error) <= 1e-9 * (1 + sqrt(norm))))
        fail_msg("operation %d, output %d: relative error %g", (int)r->call.op, o,
                 sqrt(error / norm));
    if (norm == 0) fail_msg("operation %d, output %d is zero: no test", (int)r->call.op, o);
}

static void check_force(problem *p) {
    BASIN_AT_EXIT(rig_free) rig r = problem_rig(p, BASIN_OP_ATTENTION_FORCE);
    const int like[] = {BASIN_ATT_W,    BASIN_ATT_Q,     BASIN_ATT_K,
                        BASIN_ATT_BETA, BASIN_ATT_SCALE, BASIN_ATT_MIX};
    for (int o = 0; o < BASIN_ATT_OUT; o++) add_output(&r, p, like[o], p->count[like[o]]);
    rig_run(&r);
    assert_true(fabs(dot(rig_result(&r, 0), p->data[BASIN_ATT_W], p->count[BASIN_ATT_W]) -
                     value(p)) < 1e-12);
    for (int o = 1; o < BASIN_ATT_OUT; o++)
        if (p->count[like[o]]) check_gradient(&r, o, p, like[o], value);
}

static void check_reverse(problem *p) {
    BASIN_AT_EXIT(rig_free) rig r = problem_rig(p, BASIN_OP_ATTENTION_REVERSE);
    const int like[] = {BASIN_ATT_Q,    BASIN_ATT_K,     BASIN_ATT_W,
                        BASIN_ATT_BETA, BASIN_ATT_SCALE, BASIN_ATT_MIX};
    for (int o = 0; o < BASIN_ATT_OUT; o++) add_output(&r, p, like[o], p->count[like[o]]);
    rig_run(&r);
    for (int o = 0; o < BASIN_ATT_OUT; o++)
        if (p->count[like[o]]) check_gradient(&r, o, p, like[o], force_value);
}

TEST(force_and_reverse_are_gradients) {
    for (int flags = 0; flags < 16; flags++) {
        if (flags & LISTED && flags & WITHOUT_SELF) continue;
        problem p = flags & LISTED ? problem_new(1, 4, 3, flags) : problem_new(2, 3, 3, flags);
        check_force(&p);
        check_reverse(&p);
        if (!(flags & WITH_SCALE)) continue;
        p.added = true;
        check_force(&p);
        check_reverse(&p);
    }
}

TEST(reverse_with_one_cotangent) {
    problem a = problem_new(1, 3, 4, WITH_SCALE | WITH_MIX | WITHOUT_B);
    problem b = problem_new(1, 3, 4, WITH_SCALE | WITH_MIX | WITHOUT_A);
    check_reverse(&a);
    check_reverse(&b);
}

/* One head, one number a head: z = 0.5 q k, written out. */
TEST(value_by_hand) {
    BASIN_AT_EXIT(rig_free) rig r = rig_new(BASIN_OP_ATTENTION);
    rig_in(&r, BASIN_SHAPE(1, 2, 1, 1), VALUES(1, 2));
    rig_in(&r, BASIN_SHAPE(1, 3, 1, 1), VALUES(0, 1, -1));
    rig_in(&r, BASIN_SHAPE(1), VALUES(0.5));
    rig_out(&r, BASIN_SHAPE(1, 2, 1));
    rig_run(&r);
    rig_check(&r, 0, VALUES(log(1 + exp(0.5) + exp(-0.5)), log(1 + exp(1) + exp(-1))), 1e-15);
    r.call.attr.exclude_self = true;
    rig_run(&r);
    rig_check(&r, 0, VALUES(log(exp(0.5) + exp(-0.5)), log(1 + exp(-1))), 1e-15);
}

/* Two heads over one pair of tokens: z = (s mix) scale, and one key makes lse = z. */
TEST(scores_by_hand) {
    rig r = rig_new(BASIN_OP_ATTENTION);
    rig_in(&r, BASIN_SHAPE(1, 1, 2, 2), VALUES(1, 2, 3, 4));
    rig_in(&r, BASIN_SHAPE(1, 1, 2, 2), VALUES(1, 1, 1, -1)); /* Q.K = 3, -1 */
    rig_in(&r, BASIN_SHAPE(2), VALUES(2, 3));                 /* s = 6, -3 */
    rig_in(&r, BASIN_SHAPE(1, 2), VALUES(10, 100));
    rig_in(&r, BASIN_SHAPE(2, 2), VALUES(1, 2, 3, 4)); /* r = 6 - 9, 12 - 12 */
    rig_out(&r, BASIN_SHAPE(1, 1, 2));
    rig_expect(&r, VALUES(-30, 0));
}

TEST(query_without_keys) {
    problem p = problem_new(2, 1, 1, WITHOUT_SELF | WITH_SCALE | WITH_MIX);
    for (int op = BASIN_OP_ATTENTION_FORCE; op <= BASIN_OP_ATTENTION_REVERSE; op++) {
        rig r = problem_rig(&p, (basin_op)op);
        const int like[] = {BASIN_ATT_W,    BASIN_ATT_Q,     BASIN_ATT_K,
                            BASIN_ATT_BETA, BASIN_ATT_SCALE, BASIN_ATT_MIX};
        const int reverse_like[] = {BASIN_ATT_Q,    BASIN_ATT_K,     BASIN_ATT_W,
                                    BASIN_ATT_BETA, BASIN_ATT_SCALE, BASIN_ATT_MIX};
        for (int o = 0; o < BASIN_ATT_OUT; o++)
            add_output(&r, &p, op == BASIN_OP_ATTENTION_FORCE ? like[o] : reverse_like[o], true);
        rig_run(&r);
        for (int o = 0; o < BASIN_ATT_OUT; o++) rig_check(&r, o, (double[16]){0}, 0);
        rig_free(&r);
    }
}

/* Excluded pairs and padding get 0 in the outputs that have one number a pair. */
TEST(outputs_of_absent_pairs) {
    const int flags[] = {WITH_SCALE | LISTED, WITH_SCALE | WITHOUT_SELF,
                         WITH_SCALE | ADDED | LISTED, WITH_SCALE | ADDED | WITHOUT_SELF};
    for (int f = 0; f < 4; f++)
        for (int op = BASIN_OP_ATTENTION_FORCE; op <= BASIN_OP_ATTENTION_REVERSE; op++) {
            problem p = f % 2 ? problem_new(1, 3, 3, flags[f]) : problem_new(1, 4, 3, flags[f]);
            rig r = problem_rig(&p, (basin_op)op);
            for (int o = 0; o < BASIN_ATT_DSCALE; o++) rig_out_absent(&r);
            add_output(&r, &p, BASIN_ATT_SCALE, true);
            rig_run(&r);
            const double *found = rig_result(&r, BASIN_ATT_DSCALE);
            for (int64_t pair = 0; pair < p.pairs; pair++) {
                bool absent = f % 2 ? pair % 4 == 0 : pair >= 6;
                if (p.added && !absent) continue; /* the only key of a query has a slope of 0 */
                assert_true(absent == (found[pair * 2] == 0));
                assert_true(absent == (found[pair * 2 + 1] == 0));
            }
            rig_free(&r);
        }
}

TEST(large_scores_do_not_overflow) {
    problem p = problem_new(1, 3, 3, 0);
    for (int h = 0; h < 2; h++) p.data[BASIN_ATT_BETA][h] = h ? -1e5 : 1e5;
    assert_true(isfinite(value(&p)) && fabs(value(&p)) > 1e4);
    assert_true(isfinite(force_value(&p)));
}

TEST(all_pairs_equal_a_list_of_all) {
    const int32_t row[] = {0, 3, 6}, key[] = {0, 1, 2, 0, 1, 2};
    problem dense = problem_new(1, 2, 3, WITH_SCALE | WITH_MIX), list = dense;
    list.row = row, list.key = key;
    assert_true(value(&dense) == value(&list));
    assert_true(force_value(&dense) == force_value(&list));
}

TEST(bad_list_is_reported) {
    const int32_t row[] = {0, 3, 2}, key[] = {0, 1, 2, 0, 1, 3}, full[] = {0, 3, 6};
    problem p = problem_new(1, 2, 3, 0);
    p.row = row, p.key = key;
    for (int i = 0; i < 2; i++) {
        rig r = problem_rig(&p, BASIN_OP_ATTENTION);
        add_output(&r, &p, BASIN_ATT_W, true);
        assert_says(rig_try(&r, &failure), BASIN_BAD_VALUE,
                    i ? "attention: index 3 at element 5 is not in [0, 3)"
                      : "attention: index 2 at element 2 is not in [3, 7)");
        rig_check(&r, 0, VALUES(0, 0, 0, 0), 0);
        rig_free(&r);
        p.row = full;
    }
}
