/* Making a plan: the passes of ir.h in their order, then the kernel calls and memory. */
#include "engine/plan/plan.h"
#include "base/shape.h"
#include "base/sized.h"

#include <stdarg.h>

#include "base/try.h"

/* ---- memory ---- */

/* SIZE_MAX on overflow. */
static size_t value_bytes(const basin_plan *plan, const struct basin_value *value) {
    size_t bytes, size = basin_kind_size(plan->store->backend->table, value->kind);
    bool fits = basin_size_multiply(&bytes, (size_t)basin_shape_count(value->shape), size);
    return fits && bytes < SIZE_MAX / 2 ? basin_aligned(bytes) : SIZE_MAX;
}

/* An input, or a constant tensor, which lies among them. */
static basin_status place_input(basin_plan *plan, basin_ir_value *value, basin_error *error) {
    size_t bytes = value_bytes(plan, value->leaf->out[0]);
    bool input = value->leaf->op == BASIN_OP_INPUT;
    if (bytes > SIZE_MAX - plan->stats.input_bytes)
        return basin_fail_memory(error, input ? value->leaf->name : "a constant");
    value->block = BASIN_BLOCK_INPUTS;
    value->offset = plan->stats.input_bytes;
    plan->stats.input_bytes += bytes;
    if (input)
        plan->input[plan->inputs++] = (basin_plan_input){.expr = value->leaf->origin->out[0],
                                                         .offset = value->offset,
                                                         .value = (size_t)(value - plan->ir.value)};
    return BASIN_OK;
}

static bool is_data(const basin_ir_value *value) {
    return value->leaf && value->leaf->op == BASIN_OP_DATA;
}

static basin_tensor data_of(const basin_ir_value *value) {
    return basin_tensor_borrow(value->leaf->origin->data,
                               value->kind == BASIN_INDEX ? BASIN_I32 : BASIN_F64, value->shape);
}

static basin_status write_data(basin_plan *plan, basin_error *error) {
    for (size_t i = 0; i < plan->ir.values; i++) {
        const basin_ir_value *value = &plan->ir.value[i];
        if (!is_data(value)) continue;
        basin_tensor number = data_of(value);
        void *to = (char *)plan->block[BASIN_BLOCK_INPUTS] + value->offset;
        BASIN_TRY(basin_device_write(plan->store->backend, to, value->kind, &number, error));
    }
    return BASIN_OK;
}

static basin_status place_state(basin_plan *plan, basin_ir_value *value, basin_error *error) {
    basin_expr leaf = value->leaf->out[0];
    int entry;
    BASIN_TRY(basin_store_demand(&entry, plan->store, value->leaf->name, leaf->shape, error));
    value->block = (int)plan->blocks;
    plan->block[plan->blocks++] = plan->store->entry[entry].memory;
    plan->stats.state_bytes += value_bytes(plan, leaf);
    return BASIN_OK;
}

/* Gives inputs and states their places, and what is written into a state that state's. */
static basin_status place_leaves(basin_plan *plan, size_t nodes, basin_error *error) {
    basin_ir *ir = &plan->ir;
    int *block = basin_ir_scratch(ir, nodes, sizeof *block); /* of states, by node */
    if (!block) return BASIN_NO_MEMORY;
    BASIN_TRY(BASIN_NEW_RAW(&plan->input, ir->values, "a plan", error));
    BASIN_TRY(BASIN_NEW(&plan->block, BASIN_BLOCK_STATES + ir->values, "a plan", error));
    plan->blocks = BASIN_BLOCK_STATES;
    for (size_t i = 0; i < ir->values; i++) {
        const basin_node *leaf = ir->value[i].leaf;
        if (!leaf) continue;
        if (leaf->op == BASIN_OP_INPUT || leaf->op == BASIN_OP_DATA)
            BASIN_TRY(place_input(plan, &ir->value[i], error));
        if (leaf->op == BASIN_OP_STATE) {
            BASIN_TRY(place_state(plan, &ir->value[i], error));
            block[leaf->id] = ir->value[i].block;
        }
    }
    for (size_t i = 0; i < ir->values; i++)
        if (ir->value[i].state) ir->value[i].block = block[ir->value[i].state->id];
    return BASIN_OK;
}

/* Refuses a plan that the device has no room for, and says what would help. */
static basin_status check_room(const basin_plan *plan, basin_error *error) {
    basin_backend *backend = plan->store->backend;
    size_t needed = plan->ir.arena_bytes + plan->stats.input_bytes;
    size_t room = basin_device_free_bytes(backend);
    if (backend->memory_limit && backend->memory_limit < room) room = backend->memory_limit;
    if (needed <= room) return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY,
                      "a plan needs %.4g GiB (results %.4g, inputs %.4g) and %s has %.4g GiB for "
                      "it; a smaller batch, activations computed again instead of kept (recompute) "
                      "or narrow ones (dtype bf16) need less",
                      (double)needed / 0x1p30, (double)plan->ir.arena_bytes / 0x1p30,
                      (double)plan->stats.input_bytes / 0x1p30, backend->table->name,
                      (double)room / 0x1p30);
}

static basin_status alloc_block(basin_plan *plan, int block, size_t bytes, basin_error *error) {
    basin_backend *backend = plan->store->backend;
    plan->block[block] = backend->table->alloc(backend, bytes);
    if (!plan->block[block])
        return basin_fail(error, BASIN_NO_MEMORY,
                          "a plan needs %.4g GiB of memory for %s, which %s cannot give; a "
                          "smaller batch, or activations computed again instead of kept "
                          "(recompute), need less",
                          (double)bytes / 0x1p30,
                          block == BASIN_BLOCK_ARENA ? "its results" : "its inputs",
                          backend->table->name);
    if (block == BASIN_BLOCK_INPUTS) backend->table->fill_zero(backend, plan->block[block], bytes);
    return BASIN_OK; /* results are written before they are read */
}

/* ---- calls ---- */

static basin_operand operand_of(const basin_ir *ir, int value) {
    basin_operand operand = {.block = -1};
    if (value < 0) return operand;
    const basin_ir_value *root = &ir->value[ir->value[value].root];
    operand.kind = root->kind;
    operand.shape = ir->value[value].shape;
    operand.block = root->block;
    operand.offset = root->offset;
    if (root->buffer >= 0) {
        operand.block = BASIN_BLOCK_ARENA;
        operand.offset = ir->buffer[root->buffer].offset + ir->value[value].offset;
    }
    operand.stride = ir->value[value].stride;
    operand.scale = root->scale;
    operand.drop = ir->value[value].drop, operand.stream = ir->value[value].stream;
    return operand;
}

static basin_shape matrix_shape(int64_t batch, int64_t rows, int64_t cols) {
    return batch == 1 ? BASIN_SHAPE(rows, cols) : BASIN_SHAPE(batch, rows, cols);
}

/* Factors and results as matrices, whatever their shapes were. */
static void shape_product(basin_call *call, const basin_ir *ir,
                          const basin_ir_instruction *instruction) {
    int64_t size[4];
    basin_product_sizes(size, ir, instruction);
    int64_t batch = size[0], m = size[1], n = size[2], k = size[3];
    bool ta = instruction->attr.transpose_a, tb = instruction->attr.transpose_b;
    call->in[0].shape = matrix_shape(batch, ta ? k : m, ta ? m : k);
    call->in[1].shape = matrix_shape(batch, tb ? n : k, tb ? k : n);
    for (int i = 0; i < call->outs; i++)
        if (call->out[i].kind != BASIN_INDEX) call->out[i].shape = matrix_shape(batch, m, n);
    for (int i = 0; i < call->byte_copies; i++)
        call->byte_copy[i].shape =
            i == BASIN_BYTE_COPY_TRANSPOSED ? matrix_shape(batch, n, m) : matrix_shape(batch, m, n);
}

static void make_call(basin_plan *plan, basin_call *call, const basin_ir_instruction *instruction) {
    *call = (basin_call){.op = instruction->op,
                         .attr = instruction->attr,
                         .ins = instruction->ins,
                         .outs = instruction->outs,
                         .byte_copies = instruction->byte_copies,
                         .program = instruction->program,
                         .workspace_bytes = instruction->workspace_bytes};
    for (int i = 0; i < instruction->ins; i++)
        call->in[i] = operand_of(&plan->ir, instruction->in[i]);
    for (int i = 0; i < instruction->outs; i++)
        call->out[i] = operand_of(&plan->ir, instruction->out[i]);
    for (int i = 0; i < instruction->byte_copies; i++)
        call->byte_copy[i] = operand_of(&plan->ir, instruction->byte_copy[i]);
    if (instruction->workspace >= 0)
        call->workspace = plan->ir.buffer[instruction->workspace].offset;
    call->attr.products = (uint8_t)plan->store->backend->products;
    bool product = instruction->op == BASIN_OP_MATMUL;
    if (product) shape_product(call, &plan->ir, instruction);
    if (instruction->parts) basin_ir_part_call(call, instruction, plan->store->backend->table);
    if (product && call->program) call->form = basin_form_with_more(call->program, call);
}

/* Asked before the layout: only shapes and which operands are there matter. */
static void ask_workspaces(basin_plan *plan) {
    basin_backend *backend = plan->store->backend;
    basin_call call;
    for (size_t i = 0; i < plan->ir.instructions; i++) {
        basin_ir_instruction *instruction = &plan->ir.instruction[i];
        make_call(plan, &call, instruction);
        for (int k = 0; k < instruction->outs; k++) /* not placed yet, but there */
            if (instruction->out[k] >= 0 && call.out[k].block < 0)
                call.out[k].block = BASIN_BLOCK_ARENA;
        for (int k = 0; k < instruction->byte_copies; k++)
            if (instruction->byte_copy[k] >= 0) call.byte_copy[k].block = BASIN_BLOCK_ARENA;
        for (int k = 0; k < instruction->ins; k++)
            if (instruction->in[k] >= 0 && call.in[k].block < 0)
                call.in[k].block = BASIN_BLOCK_ARENA;
        instruction->workspace_bytes = basin_aligned(backend->table->workspace(backend, &call));
    }
}

static basin_status make_calls(basin_plan *plan, const basin_plan_spec *spec, basin_error *error) {
    plan->calls = plan->ir.instructions;
    BASIN_TRY(BASIN_NEW_RAW(&plan->call, plan->calls, "a plan", error));
    BASIN_TRY(BASIN_NEW_RAW(&plan->output, spec->outputs, "a plan", error));
    for (size_t i = 0; i < plan->calls; i++)
        make_call(plan, &plan->call[i], &plan->ir.instruction[i]);
    plan->outputs = spec->outputs;
    for (int i = 0; i < spec->outputs; i++)
        plan->output[i] =
            (basin_plan_output){spec->output[i], operand_of(&plan->ir, plan->ir.output[i])};
    return BASIN_OK;
}

/* What the instructions allow in each index input, and whether index constants are so. */
static basin_status find_bounds(basin_plan *plan, basin_error *error) {
    basin_bounds *bounds = basin_ir_scratch(&plan->ir, plan->ir.values, sizeof *bounds);
    if (!bounds) return BASIN_NO_MEMORY;
    basin_bounds_find(bounds, &plan->ir); /* of roots */
    for (size_t i = 0; i < plan->inputs; i++) plan->input[i].bounds = bounds[plan->input[i].value];
    for (size_t i = 0; i < plan->ir.values; i++) {
        const basin_ir_value *value = &plan->ir.value[i];
        if (!is_data(value) || value->kind != BASIN_INDEX) continue;
        basin_tensor number = data_of(value);
        BASIN_TRY(basin_bounds_check(&bounds[i], NULL, &number, error));
    }
    return BASIN_OK;
}

/* Every input that a call reads, or that is an output itself, must be written before a run. */
static void find_missing(basin_plan *plan) {
    basin_ir_count_uses(&plan->ir);
    for (size_t i = 0; i < plan->inputs; i++) {
        const basin_ir_value *value = &plan->ir.value[plan->input[i].value];
        plan->input[i].missing =
            basin_shape_count(value->shape) > 0 && (value->uses > 0 || value->output);
        plan->missing += plan->input[i].missing;
    }
}

/* ---- the public side ---- */

/* Whether the expression is of the same graph as those before it; *graph is that graph. */
static bool same_graph(const basin_graph **graph, basin_expr a) {
    if (a && !*graph) *graph = a->graph;
    return !a || a->graph == *graph;
}

static basin_status check_update(const basin_plan_spec *spec, int i, basin_error *error) {
    basin_expr state = spec->update[i].state, value = spec->update[i].value;
    if (!state || !value || state->node->op != BASIN_OP_STATE)
        return basin_fail(error, BASIN_BAD_VALUE, "update %d of a plan %s", i,
                          state && value ? "is not of a state" : "is NULL");
    if (value->kind != BASIN_REAL || !basin_shape_equal(state->shape, value->shape))
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "update %d of a plan: the state '%s' of shape %s cannot take %s%s", i,
                          basin_expr_name(state), basin_shape_text(state->shape),
                          basin_shape_text(value->shape),
                          value->kind == BASIN_REAL ? "" : ", an index tensor");
    for (int k = 0; k < i; k++)
        if (spec->update[k].state == state)
            return basin_fail(error, BASIN_BAD_VALUE,
                              "updates %d and %d of a plan write the same state '%s'", k, i,
                              basin_expr_name(state));
    return BASIN_OK;
}

static basin_status check_spec(const basin_graph **graph, const basin_plan_spec *spec,
                               basin_error *error) {
    bool same = true;
    *graph = NULL;
    for (int i = 0; i < spec->outputs; i++) same = same_graph(graph, spec->output[i]) && same;
    for (int i = 0; i < spec->updates; i++)
        same = same_graph(graph, spec->update[i].value) &&
               same_graph(graph, spec->update[i].state) && same;
    if (*graph && (*graph)->error.status != BASIN_OK)
        return basin_fail(error, (*graph)->error.status, "%s", (*graph)->error.text);
    if (!same) return basin_fail(error, BASIN_BAD_VALUE, "a plan over expressions of two graphs");
    for (int i = 0; i < spec->outputs; i++)
        if (!spec->output[i])
            return basin_fail(error, BASIN_BAD_VALUE, "output %d of a plan is NULL", i);
    if (!*graph) return basin_fail(error, BASIN_BAD_VALUE, "a plan without outputs");
    for (int i = 0; i < spec->updates; i++) BASIN_TRY(check_update(spec, i, error));
    return BASIN_OK;
}

/* What only hosts compute. Functions of the caller are among that; a device compiles the source
 * that comes along. */
static basin_status check_hosts(const basin_plan *plan, basin_error *error) {
    basin_backend *backend = plan->store->backend;
    const basin_custom_table *compiler = backend->table->own;
    for (size_t i = 0; backend->table->check && i < plan->ir.instructions; i++) {
        const basin_custom_code *code = &plan->ir.instruction[i].attr.code;
        basin_op op = plan->ir.instruction[i].op;
        if (!basin_op_is_hosts(op)) continue;
        if (op != BASIN_OP_OWN)
            return basin_fail(error, BASIN_UNSUPPORTED,
                              "backend %s does not compute %s; expected the backend cpu or ref",
                              backend->table->name, basin_op_name(op));
        if (!compiler || !code->source)
            return basin_fail(error, BASIN_UNSUPPORTED,
                              "backend %s cannot call '%s', a function of the host; expected %s"
                              "the backend cpu or ref, or an expression of other operations",
                              backend->table->name, code->name,
                              compiler ? "its source in CUDA C (.cuda), " : "");
        BASIN_TRY(compiler->check(backend, code, error));
    }
    return BASIN_OK;
}

/* From instructions as they were asked for to those that run; `plain`: as they are. */
static basin_status optimise(basin_plan *plan, bool plain) {
    basin_ir *ir = &plan->ir;
    basin_backend *backend = plan->store->backend;
    const basin_backend_table *table = backend->table;
    bool narrow = backend->narrow;
    if (plain) {
        BASIN_TRY(basin_ir_fuse(ir, plain, table->check != NULL, false));
        return narrow ? basin_ir_narrow(ir, backend->narrow_min, table) : BASIN_OK;
    }
    BASIN_TRY(basin_ir_share_forces(ir));
    BASIN_TRY(basin_ir_join_residuals(ir));
    if (table->chain || narrow) BASIN_TRY(basin_ir_chain(ir, plan->simple.graph));
    if (!narrow) BASIN_TRY(basin_ir_pack(ir, backend));
    BASIN_TRY(basin_ir_fuse(ir, plain, table->check != NULL, table->reduces && !narrow));
    if (narrow) BASIN_TRY(basin_ir_narrow(ir, backend->narrow_min, table));
    if (narrow) BASIN_TRY(basin_ir_pack(ir, backend)); /* the narrow copies */
    if (narrow && table->masks) BASIN_TRY(basin_ir_mask(ir));
    if (narrow && table->joins) BASIN_TRY(basin_ir_join(ir, backend->bytes));
    if (backend->bytes) BASIN_TRY(basin_ir_bytes(ir, backend->narrow_min));
    if (table->keeps) BASIN_TRY(basin_ir_keep_values(ir));
    if (table->draws) BASIN_TRY(basin_ir_place_draws(ir));
    BASIN_TRY(basin_ir_hoist(ir));
    return table->parts ? basin_ir_part(ir, backend) : BASIN_OK;
}

/* The arena: the store's, or a private one; inner plans also compute there, before the plan
 * does. */
static basin_status take_arena(basin_plan *plan, basin_error *error) {
    basin_plan *inner;
    for (int i = 0; (inner = basin_iterations_plan(&plan->iterations, i)); i++) {
        if (inner->ir.arena_bytes > plan->ir.arena_bytes)
            plan->ir.arena_bytes = inner->ir.arena_bytes;
        plan->stats.input_bytes += inner->stats.input_bytes;
        plan->stats.nodes += inner->stats.nodes;
    }
    basin_expr state;
    for (int i = 0; (state = basin_iterations_state(&plan->iterations, i)); i++)
        plan->stats.state_bytes += value_bytes(plan, state);
    plan->stats.arena_bytes = plan->ir.arena_bytes;
    plan->shares = plan->store->share && !plan->iterations.count;
    if (plan->shares) return basin_store_reserve(plan->store, plan->ir.arena_bytes, error);
    basin_status status = alloc_block(plan, BASIN_BLOCK_ARENA, plan->ir.arena_bytes, error);
    if (!plan->iterations.count) return status;
    plan->last = &plan->iterations.last;
    for (int i = 0; (inner = basin_iterations_plan(&plan->iterations, i)); i++) {
        inner->last = plan->last;
        inner->block[BASIN_BLOCK_ARENA] = plan->block[BASIN_BLOCK_ARENA];
    }
    return status;
}

static basin_status compile(basin_plan *plan, const basin_graph *graph, const basin_plan_spec *spec,
                            basin_error *error) {
    basin_ir *ir = &plan->ir;
    const basin_backend_table *table = plan->store->backend->table;
    bool plain = spec->fusion == BASIN_FUSE_OFF ||
                 (!spec->fusion && !table->fuse && !plan->store->backend->narrow);
    bool thin = !plain && table->reduces && !plan->store->backend->narrow;
    BASIN_TRY(basin_simplify(&plan->simple, graph, spec, plain, thin, error));
    BASIN_TRY(basin_ir_lower(ir, plan->simple.graph, &plan->simple.spec));
    BASIN_TRY(basin_ir_sort(ir));
    plan->stats.nodes = (int)ir->instructions;
    for (size_t i = 0; i < ir->instructions; i++)
        plan->stats.recomputed += ir->instruction[i].again;
    BASIN_TRY(check_hosts(plan, error));
    BASIN_TRY(optimise(plan, plain));
    BASIN_TRY(place_leaves(plan, plan->simple.graph->nodes, error));
    ask_workspaces(plan);
    BASIN_TRY(basin_ir_layout(ir, plan->store->backend, plain));
    BASIN_TRY(make_calls(plan, spec, error));
    BASIN_TRY(check_room(plan, error));
    BASIN_TRY(alloc_block(plan, BASIN_BLOCK_INPUTS, plan->stats.input_bytes, error));
    BASIN_TRY(write_data(plan, error));
    BASIN_TRY(find_bounds(plan, error));
    find_missing(plan);
    BASIN_TRY(basin_plan_find_stops(plan, error));
    plan->stats.arena_bytes = ir->arena_bytes;
    plan->stats.unshared_bytes = ir->unshared_bytes;
    plan->stats.calls = (int)plan->calls;
    plan->stats.hoisted = (int)ir->hoisted;
    return BASIN_OK;
}

static basin_status make(basin_plan **plan, basin_store *store, const basin_plan_spec *spec,
                         bool inner, basin_error *error) {
    const basin_graph *graph;
    basin_plan *made;
    basin_status status = BASIN_OK;
    *plan = NULL;
    BASIN_TRY(check_spec(&graph, spec, error));
    BASIN_TRY(BASIN_NEW(&made, 1, "a plan", error));
    made->store = store;
    made->updates = spec->updates > 0;
    made->inner = inner;
    if (!inner) status = basin_iterations_make(&made->iterations, graph, store, spec, error);
    made->ir.error = error;
    if (!status) status = compile(made, graph, spec, error);
    if (!status && !inner) status = take_arena(made, error);
    made->ir.error = NULL;
    basin_ir_scratch_free(&made->ir);
    if (status) basin_plan_free(made);
    if (!status) *plan = made;
    return status;
}

basin_status basin_plan_new(basin_plan **plan, basin_store *store, const basin_plan_spec *spec,
                            basin_error *error) {
    *plan = NULL;
    BASIN_TRY(BASIN_SIZE_CHECK(spec, "basin_plan_spec", error));
    return make(plan, store, spec, false, error);
}

basin_status basin_plan_new_inner(basin_plan **plan, basin_store *store,
                                  const basin_plan_spec *spec, basin_error *error) {
    return make(plan, store, spec, true, error);
}

void basin_plan_free(basin_plan *plan) {
    if (!plan) return;
    basin_backend *backend = plan->store->backend;
    if (plan->store->last == plan) plan->store->last = NULL;
    basin_iterations_free(&plan->iterations);
    if (plan->block) {
        if (!plan->shares && !plan->inner)
            backend->table->free(backend, plan->block[BASIN_BLOCK_ARENA]);
        backend->table->free(backend, plan->block[BASIN_BLOCK_INPUTS]);
    }
    basin_ir_free(&plan->ir);
    basin_simple_free(&plan->simple);
    BASIN_FREE(plan->call, plan->input, plan->output, plan->block, plan->staging, plan);
}

/* A kernel call as a line of text: what it is, what it reads and writes, and the formula of its
 * program. For people who look at a plan; nothing reads it back. */

/* Text of bounded length; what does not fit is left out. */
typedef struct writer {
    char *text;
    size_t size, used;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = vsnprintf(w->text + w->used, w->size - w->used, format, list);
    va_end(list);
    w->used += length > 0 ? (size_t)length : 0;
    if (w->used >= w->size) w->used = w->size - 1;
}

static void put_operand(writer *w, const basin_operand *operand) {
    static const char *const kind[] = {"", "index ", "bf16 ", "e4m3 ", "e5m2 "}; /* basin_kind */
    if (operand->block < 0)
        put(w, "-");
    else
        put(w, "%s%s", kind[operand->kind], basin_shape_text(operand->shape));
    if (operand->stride) put(w, " of %lld", (long long)operand->stride);
}

enum { FORMULA = 400 };

static void put_own(char *text, size_t size, const basin_instruction *s, char (*r)[FORMULA]) {
    const uint16_t operand[] = {s->a, s->b, s->c};
    writer w = {text, size, 0};
    put(&w, "%s", s->own.name);
    for (int i = 0; i < s->own.operands; i++) put(&w, "%s%s", i ? ", " : "(", r[operand[i]]);
    put(&w, ")");
}

static void put_instruction(char *formula, const basin_instruction *s, char (*r)[FORMULA]) {
    char text[3 * FORMULA + 40];
    if (s->op == BASIN_INSTRUCTION_LOAD)
        snprintf(text, sizeof text, "%c", 'a' + s->a);
    else if (s->op == BASIN_INSTRUCTION_TILE)
        snprintf(text, sizeof text, "product");
    else if (s->op == BASIN_INSTRUCTION_IMMEDIATE)
        snprintf(text, sizeof text, "%.4g", s->value);
    else if (s->op == BASIN_OP_POW)
        snprintf(text, sizeof text, "%s^%g", r[s->a], s->value);
    else if (s->op == BASIN_OP_OWN)
        put_own(text, sizeof text, s, r);
    else if (s->op < BASIN_OP_ADD)
        snprintf(text, sizeof text, "%s(%s)", basin_op_name((basin_op)s->op), r[s->a]);
    else if (s->op <= BASIN_OP_DIV)
        snprintf(text, sizeof text, "(%s %c %s)", r[s->a], "+-*/"[s->op - BASIN_OP_ADD], r[s->b]);
    else if (s->op < BASIN_OP_SELECT)
        snprintf(text, sizeof text, "%s(%s, %s)", basin_op_name((basin_op)s->op), r[s->a], r[s->b]);
    else
        snprintf(text, sizeof text, "select(%s, %s, %s)", r[s->a], r[s->b], r[s->c]);
    text[FORMULA - 1] = 0;
    memcpy(formula, text, FORMULA);
}

/* The formula of each result over a, b, c.., the operands of the program in their order. */
static void put_program(writer *w, const basin_program *program) {
    char r[BASIN_MAX_REGISTERS][FORMULA] = {{0}};
    for (int i = 0; i < program->instructions; i++)
        put_instruction(r[program->instruction[i].to], &program->instruction[i], r);
    for (int i = 0; i < program->stores; i++) put(w, "%s%s", i ? ", " : "; ", r[program->store[i]]);
}

void basin_call_describe(char *text, size_t size, const basin_call *call) {
    writer w = {text, size, 0};
    text[0] = 0;
    put(&w, "%-17s ", call->op == BASIN_OP_OWN ? call->attr.own->name : basin_op_name(call->op));
    for (int i = 0; i < call->outs + call->byte_copies; i++) {
        if (i) put(&w, ", ");
        put_operand(&w, i < call->outs ? &call->out[i] : &call->byte_copy[i - call->outs]);
    }
    put(&w, " <- ");
    for (int i = 0; i < call->ins; i++) {
        bool transposed = call->op == BASIN_OP_MATMUL &&
                          (i == 0 ? call->attr.transpose_a : i == 1 && call->attr.transpose_b);
        if (i) put(&w, ", ");
        put_operand(&w, &call->in[i]);
        if (transposed) put(&w, "'");
    }
    if (call->program) put_program(&w, call->program);
    if (call->parts > 1) put(&w, "; one of %d parts", call->parts);
}
