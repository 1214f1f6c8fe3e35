/* Where plans put what they compute, looked at without running them: every operand lies where its
 * producer left it, results lie on operands only where programs may write in place, and parts
 * of a batch, which run at once, touch memory apart. Random graphs,
 * and descents whose tokens a second one reads in several ways. */
#include <stdlib.h>
#include <string.h>

#include "basin/energy.h"
#include "engine/plan/plan.h"
#include "support/lab.h"
#include "support/world.h"

enum { UNIT = 64 }; /* bytes: all buffers, and slices of them, begin at multiples */

/* The plan that is looked at. */
static struct {
    const basin_plan *plan;
    const char *made; /* of what, and how */
    uint64_t number;
} at;

static struct { int parts, hoisted; /* calls seen */ } seen;

static void complain(const char *what, size_t call) {
    char text[400];
    basin_plan_describe(at.plan, (int)call, text, sizeof text);
    fail_msg("%s %llu: call %zu %s: %s", at.made, (unsigned long long)at.number, call, what, text);
}

/* ---- memory ---- */

typedef struct range {
    size_t first, end; /* units of the arena */
    int root;
} range;

static size_t element_bytes(basin_kind kind) {
    const basin_backend_table *table = at.plan->store->backend->table;
    return kind == BASIN_REAL     ? table->real_size
           : kind == BASIN_NARROW ? table->narrow_size
           : kind == BASIN_INDEX  ? sizeof(int32_t)
                                  : table->byte_size;
}

/* Where a value lies, of a part the whole joint value; empty where that is not in the arena. */
static range range_of(int value) {
    const basin_ir *ir = &at.plan->ir;
    if (value < 0 || ir->value[ir->value[value].root].buffer < 0) return (range){0, 0, -1};
    int root = ir->value[value].root;
    const basin_ir_value *v = &ir->value[root];
    const basin_ir_buffer *buffer = &ir->buffer[v->buffer];
    size_t bytes = (size_t)basin_shape_count(v->shape) * element_bytes(v->kind);
    if (v->bytes) bytes = v->bytes;
    assert_in_range(bytes, 0, buffer->bytes);
    assert_in_range(buffer->offset + buffer->bytes, 0, ir->arena_bytes);
    return (range){buffer->offset / UNIT, (buffer->offset + bytes + UNIT - 1) / UNIT, root};
}

static range workspace_of(size_t call) {
    const basin_ir_instruction *s = &at.plan->ir.instruction[call];
    if (s->workspace < 0 || !s->workspace_bytes) return (range){0, 0, -1};
    const basin_ir_buffer *buffer = &at.plan->ir.buffer[s->workspace];
    return (range){buffer->offset / UNIT, (buffer->offset + buffer->bytes) / UNIT, -1};
}

static bool overlap(range a, range b) { return a.first < b.end && b.first < a.end; }

/* ---- one call after the other ---- */

/* A result lies on an operand: a program's own, exactly, or a part beside it. */
static bool may_lie_on(const basin_ir_instruction *s, int operand, range result, range read) {
    int base = s->op == BASIN_OP_MATMUL ? 2 : 0;
    bool exact = result.first == read.first && result.end == read.end;
    return result.root == read.root || (s->program && operand >= base && exact);
}

static void check_call(size_t i, const int *holds) {
    const basin_ir_instruction *s = &at.plan->ir.instruction[i];
    range own = workspace_of(i);
    for (int k = 0; k < s->ins; k++) {
        range read = range_of(s->in[k]);
        if (overlap(read, own)) complain("has its workspace on an operand", i);
        for (size_t u = read.first; u < read.end; u++)
            if (holds[u] != read.root) complain("reads what is gone", i);
    }
    for (int o = 0; o < basin_ir_results(s); o++) {
        range result = range_of(basin_ir_result(s, o));
        if (overlap(result, own)) complain("has its workspace on a result", i);
        for (int k = 0; k < s->ins; k++) {
            range read = range_of(s->in[k]);
            if (overlap(result, read) && !may_lie_on(s, k, result, read))
                complain("writes on an operand", i);
        }
        for (int q = 0; q < o; q++)
            if (overlap(result, range_of(basin_ir_result(s, q))) &&
                range_of(basin_ir_result(s, q)).root != result.root)
                complain("writes a result on another", i);
    }
}

static void take_place(int *holds, range place) {
    for (size_t u = place.first; u < place.end; u++) holds[u] = place.root;
}

/* holds[unit]: the root whose numbers are there. */
static void check_run(int *holds, size_t first) {
    const basin_ir *ir = &at.plan->ir;
    for (size_t i = first; i < ir->instructions; i++) {
        check_call(i, holds);
        take_place(holds, workspace_of(i));
        for (int o = 0; o < basin_ir_results(&ir->instruction[i]); o++)
            take_place(holds, range_of(basin_ir_result(&ir->instruction[i], o)));
    }
    for (int i = 0; i < ir->outputs; i++) {
        range output = range_of(ir->output[i]);
        for (size_t u = output.first; u < output.end; u++) assert_int_equal(holds[u], output.root);
    }
}

/* ---- parts ---- */

/* Who touches a unit during a run of calls in parts: no part, one, or several. */
enum { NOBODY = -1, SEVERAL = -2 };
typedef struct touch {
    int by;
    bool written;
} touch;

static void touch_units(touch *unit, size_t first, size_t end, int by, bool writes, size_t call) {
    for (size_t u = first; u < end; u++) {
        bool own = unit[u].by == NOBODY || unit[u].by == by;
        if ((writes || unit[u].written) && (!own || by == SEVERAL))
            complain("touches in one part what another one writes or reads", call);
        unit[u].by = own ? by : SEVERAL;
        unit[u].written = unit[u].written || writes;
    }
}

static void touch_operand(touch *unit, const basin_operand *operand, int value, bool writes,
                          size_t call) {
    range whole = range_of(value);
    int parts = operand->part ? at.plan->call[call].parts : 1;
    if (whole.first == whole.end) return;
    assert_int_equal(operand->part % UNIT, 0);
    for (int p = 0; p < parts; p++) {
        size_t first = (operand->offset + (size_t)p * operand->part) / UNIT;
        size_t end = operand->part ? first + operand->part / UNIT : whole.end;
        touch_units(unit, first, end, operand->part ? p : SEVERAL, writes, call);
    }
}

/* Calls from `first` to `end`, each part at its own pace. */
static void check_parts(size_t first, size_t end) {
    const basin_plan *plan = at.plan;
    touch *unit = calloc(plan->ir.arena_bytes / UNIT + 1, sizeof *unit);
    assert_non_null(unit);
    for (size_t u = 0; u <= plan->ir.arena_bytes / UNIT; u++) unit[u].by = NOBODY;
    for (size_t i = first; i < end; i++) {
        const basin_call *call = &plan->call[i];
        const basin_ir_instruction *s = &plan->ir.instruction[i];
        range own = workspace_of(i); /* one a thread, the same for all calls of the run */
        assert_in_range(call->workspace_bytes * (size_t)plan->store->backend->threads, 0,
                        (own.end - own.first) * UNIT);
        for (int k = 0; k < call->ins; k++) {
            touch_operand(unit, &call->in[k], s->in[k], false, i);
            if (overlap(own, range_of(s->in[k]))) complain("has a workspace on an operand", i);
        }
        for (int k = 0; k < call->outs; k++) touch_operand(unit, &call->out[k], s->out[k], true, i);
    }
    free(unit);
    seen.parts += (int)(end - first);
}

/* ---- plans ---- */

static void check_plan(void) {
    const basin_plan *plan = at.plan;
    size_t units = plan->ir.arena_bytes / UNIT + 1;
    int *holds = malloc(units * sizeof *holds);
    assert_non_null(holds);
    for (size_t u = 0; u < units; u++) holds[u] = -1;
    check_run(holds, 0);
    check_run(holds, plan->ir.hoisted); /* once more, with what hoisted calls left */
    free(holds);
    for (size_t i = 0, end; i < plan->calls; i = end) {
        int parts = plan->call[i].parts;
        end = i + 1;
        while (parts > 1 && end < plan->calls && plan->call[end].parts == parts) end++;
        if (parts > 1) check_parts(i, end);
    }
    seen.hoisted += (int)plan->ir.hoisted;
}

static void plan_on(basin_backend *backend, const basin_plan_spec *spec) {
    basin_error error = {0};
    basin_store *store = NULL;
    basin_plan *plan = NULL;
    basin_status status = basin_store_new(&store, backend, &error);
    if (!status) status = basin_plan_new(&plan, store, spec, &error);
    if (status) fail_msg("%s %llu: %s", at.made, (unsigned long long)at.number, error.text);
    at.plan = plan;
    check_plan();
    basin_plan_free(plan);
    basin_store_free(store);
}

/* One kind of plans. */
typedef struct kind {
    const char *name, *backend;
    int threads;
    basin_dtype dtype;
    bool device; /* chains of products */
} kind;

static const kind kinds[] = {
    {"cpu, one thread,", "cpu", 1, BASIN_F32, false},
    {"cpu, three threads,", "cpu", 3, BASIN_F32, false},
    {"cpu, narrow,", "cpu", 3, BASIN_BF16, false},
    {"cpu, as a device,", "cpu", 1, BASIN_F32, true},
    {"ref, narrow,", "ref", 1, BASIN_BF16, false},
    {"ref, bytes,", "ref", 1, BASIN_F8_E4M3, false},
};

static void plan_all(basin_plan_spec spec, uint64_t number) {
    spec.fusion = BASIN_FUSE_ON;
    at.number = number;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i];
        basin_backend *backend;
        basin_compute compute = {
            .backend = k->backend, .threads = k->threads, .storage = k->dtype, .narrow_min = 1};
        if (basin_backend_open(&backend, &compute, NULL)) continue; /* no such storage here */
        const basin_backend_table *own = backend->table;
        basin_backend_table table = *own;
        table.chain = table.keeps = table.draws = true;
        if (k->device) backend->table = &table;
        at.made = k->name;
        plan_on(backend, &spec);
        backend->table = own;
        basin_backend_close(backend);
    }
}

TEST(test_random_graphs) {
    for (uint64_t number = 0; number < 48; number++) {
        world w;
        world_build(&w, number, number % 2, number % 3 == 0);
        assert_null(basin_graph_error(w.graph));
        plan_all(
            (basin_plan_spec){
                .output = w.output, .outputs = w.outputs, .update = w.update, .updates = w.updates},
            number);
        basin_graph_free(w.graph);
    }
    assert_true(seen.hoisted > 0);
}

/* ---- descents, the second of which begins where the first ended ---- */

enum { B = 12, N = 48, D = 64, WAYS = 4 };

/* The first one's tokens, as the second finds them: as they are, beside where they began, as
 * memories of each other, or through a matrix that is made of them. */
static basin_expr pass_on(basin_expr x, basin_expr tokens, uint64_t way) {
    basin_expr rows = basin_reshape(tokens, BASIN_SHAPE(B * N, D));
    switch (way) {
    case 0: return tokens;
    case 1: return basin_add(tokens, basin_sin(x));
    case 2:
        rows = basin_matmul(basin_matmul_t(rows, false, rows, true), rows);
        return basin_reshape(rows, BASIN_SHAPE(B, N, D));
    default: return basin_matmul(tokens, basin_matmul_t(rows, true, rows, false));
    }
}

TEST(test_descents) {
    const basin_block_config config = {.dim = D, .heads = 2, .head_dim = 32, .memories = 128};
    for (uint64_t way = 0; way < (uint64_t)2 * WAYS; way++) {
        basin_graph *graph = basin_graph_new();
        basin_params params;
        basin_block block;
        basin_params_begin(&params, graph);
        assert_int_equal(basin_block_declare(&block, &params, "", &config), BASIN_OK);
        basin_block_bound bound = {.block = &block, .pattern = &BASIN_OTHER_PAIRS};
        basin_energy energy = basin_block_energy(&bound);
        basin_descent_spec spec = {.steps = 2, .alpha = 0.1};
        basin_expr x = basin_input(graph, "x", BASIN_SHAPE(B, N, D));
        basin_expr first = basin_descend(&energy, x, &spec, NULL);
        basin_expr end = basin_descend(&energy, pass_on(x, first, way % WAYS), &spec, NULL);
        basin_expr output[] = {end, NULL};
        if (way >= WAYS) output[1] = basin_grad(basin_sum_all(basin_square(end)), block.xi);
        seen.parts = 0;
        plan_all((basin_plan_spec){.output = output, .outputs = way < WAYS ? 1 : 2}, way);
        assert_true(seen.parts > 0);
        basin_params_free(&params);
        basin_graph_free(graph);
    }
}
