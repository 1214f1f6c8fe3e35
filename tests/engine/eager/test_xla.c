/* The custom call of XLA on the host, as XLA would make it: the same results as the call in C, axes
 * of vmap, its question for the version, and operands that are not those of the job. */
#include "engine/eager/xla.h"
#include "support/test.h"

#include "basin/basin.h"
#include "basin/eager.h"

enum { GROUPS = 2, N = 5, H = 2, Y = 3, TOKENS = N * H * Y, ROWS = N * H };
enum { GIVES_W = 4, GIVES_A = 8, GIVES_B = 16 };

static char said[200];

static void *create_error(xla_error_arguments *arguments) {
    snprintf(said, sizeof said, "%s", arguments->message);
    return said;
}

static const xla_api api = {.size = sizeof api, .error_create = create_error};

/* A call with room for its operands; shapes have GROUPS in front where `wide`. */
typedef struct call {
    xla_frame frame;
    xla_buffer buffer[16], *arg[8], *result[8];
    int64_t dims[16][5], job[7];
    int buffers, attribute_type;
    xla_array array;
    void *value;
} call;

static xla_buffer *add(call *c, void *data, int axes, int64_t wide, int64_t a, int64_t b,
                       int64_t y) {
    int64_t *dim = c->dims[c->buffers], full[] = {wide, 1, a, b, y};
    int rank = 0;
    dim[rank++] = full[0];
    if (axes >= 3) dim[rank++] = 1;
    dim[rank++] = a;
    if (axes >= 3) dim[rank++] = b;
    if (axes == 4) dim[rank++] = y;
    xla_buffer *buffer = &c->buffer[c->buffers++];
    *buffer = (xla_buffer){
        .size = sizeof *buffer, .dtype = XLA_F64, .data = data, .rank = rank, .dims = dim};
    return buffer;
}

static void *make_flagged(call *c, int operation, int64_t flags, int64_t given, int64_t wanted) {
    int64_t job[] = {operation, flags, given, wanted, 1, 0, 0x3ff0000000000000}; /* factor 1 */
    memcpy(c->job, job, sizeof job);
    c->array = (xla_array){XLA_S64, operation < BASIN_EAGER_VALUES ? 6 : 7, c->job};
    c->value = &c->array;
    c->attribute_type = 1;
    c->frame.size = sizeof c->frame;
    c->frame.api = &api;
    c->frame.args.buffer = c->arg;
    c->frame.results.buffer = c->result;
    c->frame.attributes.count = 1;
    c->frame.attributes.types = &c->attribute_type;
    c->frame.attributes.value = &c->value;
    return basin_xla_handler_named("attention_host")(&c->frame);
}

static void *make(call *c, int operation, int64_t given, int64_t wanted) {
    return make_flagged(c, operation, 0, given, wanted);
}

typedef struct numbers {
    double q[GROUPS][TOKENS], k[GROUPS][TOKENS], a[GROUPS][TOKENS], b[GROUPS][TOKENS];
    double beta[GROUPS][H], w[GROUPS][ROWS];
} numbers;

static void fill(numbers *n) {
    double *all = (double *)(void *)n;
    for (size_t i = 0; i < sizeof *n / sizeof *all; i++)
        all[i] = (double)basin_random_uniform_at(7, 3, (uint64_t)i) - 0.5;
    for (int g = 0; g < GROUPS; g++)
        for (int h = 0; h < H; h++) n->beta[g][h] = 0.5 + 0.25 * h + g;
}

static basin_eager_attention problem(const numbers *n, int group) {
    return (basin_eager_attention){.dtype = BASIN_F64,
                                   .batch = 1,
                                   .queries = N,
                                   .keys = N,
                                   .heads = H,
                                   .head_dim = Y,
                                   .q = n->q[group],
                                   .k = n->k[group],
                                   .beta = n->beta[group],
                                   .w = n->w[group],
                                   .a = n->a[group],
                                   .b = n->b[group]};
}

static void same(const double *found, const double *wanted, int count) {
    for (int i = 0; i < count; i++)
        if (found[i] - wanted[i] > 1e-12 || wanted[i] - found[i] > 1e-12)
            fail_msg("number %d: found %g, expected %g", i, found[i], wanted[i]);
}

static void three(call *c, numbers *n) {
    c->arg[0] = add(c, n->q, 4, GROUPS, N, H, Y);
    c->arg[1] = add(c, n->k, 4, GROUPS, N, H, Y);
    c->arg[2] = add(c, n->beta, 1, GROUPS, H, 0, 0);
    c->frame.args.count = 3;
}

TEST(energies_and_forces) {
    numbers n;
    basin_eager *eager;
    double lse[GROUPS][ROWS], dq[GROUPS][TOKENS], dk[GROUPS][TOKENS], dbeta[GROUPS][H];
    double own[ROWS], own_q[TOKENS], own_k[TOKENS], own_beta[H];
    call first = {0}, second = {0};
    fill(&n);
    three(&first, &n);
    first.result[0] = add(&first, lse, 3, GROUPS, N, H, 0);
    first.frame.results.count = 1;
    assert_null(make(&first, BASIN_EAGER_LSE, 0, 1));
    three(&second, &n);
    second.arg[3] = add(&second, n.w, 3, GROUPS, N, H, 0);
    second.result[0] = add(&second, dq, 4, GROUPS, N, H, Y);
    second.result[1] = add(&second, dk, 4, GROUPS, N, H, Y);
    second.result[2] = add(&second, dbeta, 1, GROUPS, H, 0, 0);
    second.frame.args.count = 4, second.frame.results.count = 3;
    assert_null(make(&second, BASIN_EAGER_FORCE, GIVES_W, 7));
    assert_ok(basin_eager_open(&eager, &(basin_compute){.backend = "ref", .threads = 1}, &failure));
    for (int g = 0; g < GROUPS; g++) {
        basin_eager_attention at = problem(&n, g);
        at.lse = own;
        assert_ok(basin_eager_run(eager, BASIN_EAGER_LSE, &at, &failure));
        same(lse[g], own, ROWS);
        at = problem(&n, g);
        at.dq = own_q, at.dk = own_k, at.dbeta = own_beta;
        assert_ok(basin_eager_run(eager, BASIN_EAGER_FORCE, &at, &failure));
        same(dq[g], own_q, TOKENS);
        same(dk[g], own_k, TOKENS);
        same(dbeta[g], own_beta, H);
    }
    basin_eager_close(eager);
}

/* With one beta for all groups they become one batch. */
TEST(reverses_of_forces) {
    numbers n;
    basin_eager *eager;
    double gq[GROUPS][TOKENS], gk[GROUPS][TOKENS], own_q[TOKENS], own_k[TOKENS];
    call c = {0};
    fill(&n);
    three(&c, &n);
    c.dims[2][0] = 1;
    c.arg[3] = add(&c, n.w, 3, GROUPS, N, H, 0);
    c.arg[4] = add(&c, n.a, 4, GROUPS, N, H, Y);
    c.arg[5] = add(&c, n.b, 4, GROUPS, N, H, Y);
    c.result[0] = add(&c, gq, 4, GROUPS, N, H, Y);
    c.result[1] = add(&c, gk, 4, GROUPS, N, H, Y);
    c.frame.args.count = 6, c.frame.results.count = 2;
    assert_null(make(&c, BASIN_EAGER_REVERSE, GIVES_W | GIVES_A | GIVES_B, 3));
    assert_ok(basin_eager_open(&eager, &(basin_compute){.backend = "ref", .threads = 1}, &failure));
    for (int g = 0; g < GROUPS; g++) {
        basin_eager_attention at = problem(&n, g);
        at.beta = n.beta[0], at.gq = own_q, at.gk = own_k;
        assert_ok(basin_eager_run(eager, BASIN_EAGER_REVERSE, &at, &failure));
        same(gq[g], own_q, TOKENS);
        same(gk[g], own_k, TOKENS);
    }
    basin_eager_close(eager);
}

/* Values are those of b, biases w as [1, H, 1, N]; the second order with tangents a of q. */
TEST(with_values) {
    enum { GIVES_BIAS = 1, GIVES_C = 4, GIVES_TANGENT = 8 };
    numbers n;
    double o[GROUPS][TOKENS], dq[GROUPS][TOKENS], gq[GROUPS][TOKENS], gc[GROUPS][TOKENS];
    double own[2][TOKENS];
    basin_eager *eager;
    fill(&n);
    assert_ok(basin_eager_open(&eager, &(basin_compute){.backend = "ref", .threads = 1}, &failure));
    for (int order = 0; order < 3; order++) {
        call c = {0};
        int operation = BASIN_EAGER_VALUES + order, args = 4;
        three(&c, &n);
        c.arg[2] = add(&c, n.b, 4, GROUPS, N, H, Y);
        c.arg[3] = add(&c, n.w, 4, GROUPS, H, 1, N);
        if (order > 0) c.arg[args++] = add(&c, n.k, 4, GROUPS, N, H, Y);
        if (order > 1) c.arg[args++] = add(&c, n.a, 4, GROUPS, N, H, Y);
        c.result[0] = add(&c, order == 0 ? o : order == 1 ? dq : gq, 4, GROUPS, N, H, Y);
        if (order > 1) c.result[1] = add(&c, gc, 4, GROUPS, N, H, Y);
        c.frame.args.count = args, c.frame.results.count = order > 1 ? 2 : 1;
        int64_t given = GIVES_BIAS | (order > 0 ? GIVES_C : 0) | (order > 1 ? GIVES_TANGENT : 0);
        assert_null(make(&c, operation, given, order > 1 ? 17 : 1));
        for (int g = 0; g < GROUPS; g++) {
            basin_eager_attention at = problem(&n, g);
            basin_eager_values v = {.key_heads = H,
                                    .value_dim = Y,
                                    .factor = 1,
                                    .bias_repeats = {[2] = true},
                                    .v = n.b[g],
                                    .bias = n.w[g],
                                    .c = n.k[g],
                                    .o = own[0],
                                    .gc = own[1]};
            at.values = &v, at.b = NULL, at.dq = at.gq = own[0];
            assert_ok(basin_eager_run(eager, (basin_eager_operation)operation, &at, &failure));
            same(order == 0 ? o[g] : order == 1 ? dq[g] : gq[g], own[0], TOKENS);
            if (order > 1) same(gc[g], own[1], TOKENS);
        }
    }
    basin_eager_close(eager);
}

/* Operands without an axis of heads: [batch, N, width]. */
TEST(one_head) {
    enum { ONE_HEAD = 8 };
    numbers n;
    basin_eager *eager;
    double lse[GROUPS][N], own[GROUPS][N];
    call c = {0};
    fill(&n);
    void *data[] = {n.q, n.k, n.beta, lse};
    int64_t dims[][3] = {{GROUPS, N, H * Y}, {GROUPS, N, H * Y}, {1}, {GROUPS, N}};
    int rank[] = {3, 3, 1, 2};
    for (int i = 0; i < 4; i++)
        c.buffer[i] = (xla_buffer){.size = sizeof c.buffer[i],
                                   .dtype = XLA_F64,
                                   .data = data[i],
                                   .rank = rank[i],
                                   .dims = dims[i]};
    for (int i = 0; i < 3; i++) c.arg[i] = &c.buffer[i];
    c.result[0] = &c.buffer[3];
    c.frame.args.count = 3, c.frame.results.count = 1;
    assert_null(make_flagged(&c, BASIN_EAGER_LSE, ONE_HEAD, 0, 1));
    basin_eager_attention at = problem(&n, 0);
    at.batch = GROUPS, at.heads = 1, at.head_dim = (int64_t)H * Y, at.lse = own;
    assert_ok(basin_eager_open(&eager, &(basin_compute){.backend = "ref", .threads = 1}, &failure));
    assert_ok(basin_eager_run(eager, BASIN_EAGER_LSE, &at, &failure));
    same(lse[0], own[0], GROUPS * N);
    basin_eager_close(eager);
}

TEST(versions_are_told) {
    xla_metadata metadata = {.size = sizeof metadata, .traits = 9};
    xla_metadata_extension ask = {.base = {.size = sizeof ask, .type = XLA_EXTENSION_METADATA},
                                  .metadata = &metadata};
    xla_frame frame = {.size = sizeof frame, .extension = &ask.base};
    assert_null(basin_xla_handler_named("attention_host")(&frame));
    assert_int_equal(metadata.version.minor, XLA_VERSION_MINOR);
    assert_int_equal(metadata.traits, 0);
    assert_null(basin_xla_handler_named("attention"));
    assert_null(basin_xla_handler_named("attention_cuda")(&frame));
}

TEST(strange_operands_are_refused) {
    numbers n;
    double lse[GROUPS][ROWS];
    fill(&n);
    for (int way = 0; way < 5; way++) {
        call c = {0};
        three(&c, &n);
        c.result[0] = add(&c, lse, 3, GROUPS, N, H, 0);
        c.frame.results.count = 1;
        if (way == 0) c.frame.args.count = 2;
        if (way == 1) c.buffer[0].dtype = XLA_S32;
        if (way == 2) c.dims[1][4] = Y + 1;
        if (way == 3) c.buffer[3].rank = 1;
        *said = 0;
        assert_non_null(make(&c, way == 4 ? 9 : BASIN_EAGER_LSE, 0, 1));
        assert_non_null(strstr(said, "the operands are not those of its job"));
    }
}

/* ---- plans: y = sum over rows of a b, b the same for all groups ---- */

static const basin_eager_plan *offered;
static int asked;

static const basin_eager_plan *find(const char *name) {
    asked++;
    return strcmp(name, "product") == 0 ? offered : NULL;
}

static void *call_plan(call *c, const char *name, int dtype) {
    double *a = (double *)c->job;
    static double b[3] = {1, 10, 100};
    for (int i = 0; i < 6; i++) a[i] = i;
    int64_t dims[][2] = {{GROUPS, 3}, {3}, {GROUPS}};
    for (int i = 0; i < 3; i++) memcpy(c->dims[i], dims[i], sizeof dims[i]);
    c->buffer[0] = (xla_buffer){.dtype = dtype, .data = a, .rank = 2, .dims = c->dims[0]};
    c->buffer[1] = (xla_buffer){.dtype = XLA_F64, .data = b, .rank = 1, .dims = c->dims[1]};
    c->buffer[2].dtype = XLA_F64, c->buffer[2].rank = 1, c->buffer[2].dims = c->dims[2];
    for (int i = 0; i < 2; i++) c->arg[i] = &c->buffer[i];
    c->result[0] = &c->buffer[2];
    xla_text text = {name, strlen(name)};
    c->value = &text, c->attribute_type = 4;
    c->frame = (xla_frame){.api = &api,
                           .args = {.count = 2, .buffer = c->arg},
                           .results = {.count = 1, .buffer = c->result},
                           .attributes = {.count = 1, .types = &c->attribute_type}};
    c->frame.attributes.value = &c->value;
    return basin_xla_handler_named("plan")(&c->frame);
}

TEST(plans) {
    basin_engine engine;
    basin_plan *plan;
    double y[GROUPS];
    call c = {.buffer[2].data = y};
    assert_ok(basin_engine_open(&engine, &(basin_compute){.backend = "ref"}, &failure));
    basin_expr in[] = {basin_input(engine.graph, "a", BASIN_SHAPE(3)),
                       basin_input(engine.graph, "b", BASIN_SHAPE(3))};
    basin_expr out = basin_sum(basin_mul(in[0], in[1]), 0, 1);
    basin_plan_spec spec = {.output = &out, .outputs = 1};
    assert_ok(basin_plan_new(&plan, engine.store, &spec, &failure));
    basin_eager_plan made = {.plan = plan, .input = in, .inputs = 2, .output = &out, .outputs = 1};
    assert_non_null(call_plan(&c, "product", XLA_F64)); /* nobody to ask */
    offered = &made;
    basin_xla_set_find(find);
    for (int i = 0; i < 2; i++) assert_null(call_plan(&c, "product", XLA_F64));
    assert_int_equal(asked, 1);
    assert_true(y[0] == 210 && y[1] == 543);
    assert_non_null(call_plan(&c, "quotient", XLA_F64));
    assert_non_null(strstr(said, "no plan is called quotient"));
    assert_non_null(call_plan(&c, "product", XLA_F32));
    assert_non_null(strstr(said, "operands are not the plan's"));
    c.attribute_type = 1;
    assert_non_null(basin_xla_handler_named("plan")(&c.frame));
    basin_plan_free(plan);
    basin_engine_close(&engine);
}
