/* Pointwise programs: a group of the plan's instructions becomes instructions over a few registers,
 * its domain with axes merged as far as all operands allow. */
#include "engine/plan/ir.h"

#include <stdlib.h>

#include "base/memory.h"
#include "engine/backend/shape.h"

static bool is_const(const basin_ir *ir, int value) {
    return ir->value[value].leaf && ir->value[value].leaf->op == BASIN_OP_CONST;
}

static bool is_inside(const basin_group *group, const basin_ir *ir, int value) {
    if (ir->value[value].root != value) return false;
    for (int i = 0; i < group->members; i++)
        if (ir->instruction[group->member[i]].out[0] == value) return true;
    return false;
}

static void add_load(basin_group *group, int value) {
    int i = 0;
    while (i < group->loads && group->load[i] != value) i++;
    if (i == BASIN_GROUP_LOADS) {
        group->too_large = true;
        return;
    }
    if (i == group->loads) {
        group->load[group->loads] = value;
        group->load_uses[group->loads++] = 0;
    }
    group->load_uses[i]++;
}

void basin_group_collect(basin_group *group, const basin_ir *ir, const int *leader, int first,
                         int last) {
    *group = (basin_group){.domain = ir->value[ir->instruction[last].out[0]].shape};
    for (int i = first; i <= last; i++) {
        if (leader[i] != last || ir->instruction[i].dead) continue;
        group->too_large = group->too_large || group->members == BASIN_GROUP_MEMBERS;
        if (group->too_large) return;
        group->member[group->members++] = i;
    }
    for (int i = 0; i < group->members; i++) {
        const basin_ir_instruction *instruction = &ir->instruction[group->member[i]];
        for (int k = 0; k < instruction->ins; k++)
            if (!is_const(ir, instruction->in[k]) && !is_inside(group, ir, instruction->in[k]))
                add_load(group, instruction->in[k]);
        if (group->member[i] != last && !ir->value[instruction->out[0]].state) continue;
        group->too_large = group->too_large || group->stores == BASIN_MAX_OUT;
        if (!group->too_large) group->store[group->stores++] = instruction->out[0];
    }
}

void basin_product_sizes(int64_t size[4], const basin_ir *ir,
                         const basin_ir_instruction *instruction) {
    basin_shape a = ir->value[instruction->in[0]].shape, b = ir->value[instruction->in[1]].shape;
    int64_t leading = 1;
    for (int i = 0; i < a.rank - 2; i++) leading *= a.dim[i];
    bool shared = b.rank == 2;
    size[0] = shared ? 1 : leading;
    size[1] = a.dim[a.rank - 1 - !instruction->attr.transpose_a] * (shared ? leading : 1);
    size[2] = b.dim[b.rank - 1 - instruction->attr.transpose_b];
    size[3] = a.dim[a.rank - 1 - instruction->attr.transpose_a];
}

/* One stride for `count` axes from `axis` on, if the operand walks evenly; else false. */
static bool common_stride(int64_t *out, const int64_t *stride, basin_shape domain, int axis,
                          int count) {
    int64_t found = 0, expected = -1;
    for (int i = axis + count - 1; i >= axis; i--) {
        if (domain.dim[i] == 1) continue;
        if (expected < 0)
            found = stride[i];
        else if (stride[i] != expected)
            return false;
        expected = stride[i] * domain.dim[i];
    }
    *out = found;
    return true;
}

/* How many leading axes of the domain make up `count` elements; -1 if no number does. */
static int axes_holding(basin_shape domain, int from, int64_t count) {
    int64_t product = 1;
    int axis = from;
    while (axis < domain.rank && product < count) product *= domain.dim[axis++];
    return product == count ? axis - from : -1;
}

/* Strides over [batch, m, n] of an operand given over the group's domain. */
static bool product_strides(int64_t out[3], basin_shape operand, basin_shape domain,
                            const int64_t size[4]) {
    int64_t stride[BASIN_MAX_RANK];
    int batch = axes_holding(domain, 0, size[0]);
    int m = batch < 0 ? -1 : axes_holding(domain, batch, size[1]);
    if (m < 0) return false;
    basin_shape_broadcast(stride, &operand, &domain);
    return common_stride(&out[0], stride, domain, 0, batch) &&
           common_stride(&out[1], stride, domain, batch, m) &&
           common_stride(&out[2], stride, domain, batch + m, domain.rank - batch - m);
}

bool basin_group_fits_product(const basin_group *group, const basin_ir *ir, int tile,
                              const basin_ir_instruction *product) {
    int64_t size[4], stride[3];
    basin_product_sizes(size, ir, product);
    int64_t count = size[0] * size[1] * size[2];
    if (basin_shape_count(group->domain) != count ||
        basin_shape_count(ir->value[group->load[tile]].shape) != count || count == 0)
        return false;
    for (int i = 0; i < group->loads; i++)
        if (!product_strides(stride, ir->value[group->load[i]].shape, group->domain, size) ||
            (stride[2] != 0 && stride[2] != 1))
            return false;
    return true;
}

/* While instructions are written: which register holds which value, and until when. */
typedef struct writer {
    basin_program *program; /* instruction NULL: only count registers */
    const basin_group *group;
    const basin_ir *ir;
    int tile;
    bool overflow;
    int value[BASIN_MAX_REGISTERS]; /* -1: free */
} writer;

static void put(writer *w, basin_instruction instruction) {
    if (w->program->instruction) w->program->instruction[w->program->instructions++] = instruction;
}

static int find_register(const writer *w, int value) {
    for (int i = 0; i < BASIN_MAX_REGISTERS; i++)
        if (w->value[i] == value) return i;
    return -1;
}

static int take_register(writer *w, int value) {
    int i = find_register(w, -1);
    w->overflow = w->overflow || i < 0;
    if (i < 0) return 0;
    w->value[i] = value;
    if (i + 1 > w->program->registers) w->program->registers = i + 1;
    return i;
}

static bool is_stored(const basin_group *group, int value) {
    for (int i = 0; i < group->stores; i++)
        if (group->store[i] == value) return true;
    return false;
}

static bool is_needed_after(const writer *w, int value, int member) {
    if (is_stored(w->group, value)) return true;
    for (int i = member + 1; i < w->group->members; i++) {
        const basin_ir_instruction *instruction = &w->ir->instruction[w->group->member[i]];
        for (int k = 0; k < instruction->ins; k++)
            if (instruction->in[k] == value) return true;
    }
    return false;
}

/* The register of an operand, filled by a new instruction where there is none yet. */
static uint16_t operand_register(writer *w, int value) {
    int found = find_register(w, value);
    if (found >= 0) return (uint16_t)found;
    basin_instruction instruction = {.op = BASIN_INSTRUCTION_IMMEDIATE,
                                     .to = (uint16_t)take_register(w, value)};
    if (is_const(w->ir, value))
        instruction.value = w->ir->value[value].leaf->attr.value;
    else {
        int load = 0, at = 0;
        for (; w->group->load[load] != value; load++) at += load != w->tile;
        instruction.op = load == w->tile ? BASIN_INSTRUCTION_TILE : BASIN_INSTRUCTION_LOAD;
        instruction.a = (uint16_t)(load == w->tile ? 0 : at);
    }
    put(w, instruction);
    return instruction.to;
}

static void write_member(writer *w, int member) {
    const basin_ir_instruction *from = &w->ir->instruction[w->group->member[member]];
    basin_instruction instruction = {
        .op = (uint16_t)from->op, .value = from->attr.value, .own = from->attr.code};
    uint16_t *slot[3] = {&instruction.a, &instruction.b, &instruction.c};
    for (int i = 0; i < from->ins; i++) *slot[i] = operand_register(w, from->in[i]);
    for (int i = 0; i < from->ins; i++) {
        int at = find_register(w, from->in[i]);
        if (at >= 0 && !is_needed_after(w, from->in[i], member)) w->value[at] = -1;
    }
    instruction.to = (uint16_t)take_register(w, from->out[0]);
    put(w, instruction);
}

static void write_members(writer *w) {
    for (int i = 0; i < BASIN_MAX_REGISTERS; i++) w->value[i] = -1;
    for (int i = 0; i < w->group->members; i++) write_member(w, i);
}

bool basin_group_fits(const basin_group *group, const basin_ir *ir) {
    basin_program counted = {0};
    writer w = {.program = &counted, .group = group, .ir = ir, .tile = -1};
    if (group->too_large) return false;
    write_members(&w);
    return !w.overflow;
}

basin_program *basin_program_new(int instructions) {
    basin_program *program = calloc(1, sizeof *program);
    if (!program) return NULL;
    program->instruction = calloc((size_t)instructions, sizeof *program->instruction);
    if (program->instruction) return program;
    free(program);
    return NULL;
}

void basin_program_free(basin_program *program) {
    if (program) free(program->instruction);
    free(program);
}

static void set_domain(basin_program *p, const basin_group *group, const basin_ir *ir, int tile,
                       const basin_ir_instruction *product) {
    int64_t size[4];
    int at = 0;
    if (tile >= 0) basin_product_sizes(size, ir, product);
    p->domain = tile >= 0 ? BASIN_SHAPE(size[0], size[1], size[2]) : group->domain;
    for (int i = 0; i < group->loads; i++) {
        if (i == tile) continue;
        basin_shape operand = ir->value[group->load[i]].shape;
        if (tile >= 0)
            product_strides(p->stride[at++], operand, group->domain, size);
        else
            basin_shape_broadcast(p->stride[at++], &operand, &group->domain);
    }
    if (tile < 0) basin_program_merge_axes(p, at);
}

basin_program *basin_group_program(const basin_group *group, const basin_ir *ir, int tile,
                                   const basin_ir_instruction *product) {
    /* each member is one instruction, each of its up to three operands at most another */
    basin_program *program = basin_program_new(4 * group->members + 1);
    if (!program) return NULL;
    writer w = {.program = program, .group = group, .ir = ir, .tile = tile};
    write_members(&w);
    program->stores = group->stores;
    for (int i = 0; i < group->stores; i++)
        program->store[i] = (uint16_t)find_register(&w, group->store[i]);
    set_domain(program, group, ir, tile, product);
    return program;
}

basin_program *basin_program_copy(basin_shape shape) {
    basin_program *program = basin_program_new(1);
    if (!program) return NULL;
    program->instruction[0] = (basin_instruction){.op = BASIN_INSTRUCTION_LOAD};
    program->instructions = program->registers = program->stores = 1;
    program->domain = shape;
    basin_shape_broadcast(program->stride[0], &shape, &shape);
    basin_program_merge_axes(program, 1);
    return program;
}

/* ---- What epilogues make of their products, as the passes over plans see it ---- */

basin_program_form basin_program_form_of(const basin_program *program) {
    basin_form f = basin_form_of(program, NULL); /* programs do not know kinds */
    bool plain = f.alpha == 1 && f.c < 0;
    if (!f.known || f.row >= 0 || (f.relu && !plain))
        return (basin_program_form){BASIN_FORM_OTHER, 1, 0, -1};
    return (basin_program_form){
        .kind = f.relu        ? BASIN_FORM_RELU
                : f.mask >= 0 ? BASIN_FORM_MASKED
                              : BASIN_FORM_SUM,
        .of_product = f.alpha,
        .of_operand = f.beta,
        .operand = f.mask >= 0 ? f.mask : f.c,
    };
}

/* ---- New lists of instructions ---- */

bool basin_ir_list_add(basin_ir_list *list, const basin_ir_instruction *instruction) {
    if (!basin_array_reserve((void **)&list->instruction, &list->capacity, list->count + 1,
                             sizeof *instruction))
        return false;
    list->instruction[list->count++] = *instruction;
    return true;
}

bool basin_ir_list_copy(basin_ir_list *list, const basin_ir *ir, int to, int from) {
    basin_ir_instruction copy = {
        .op = BASIN_OP_POINTWISE, .ins = 1, .outs = 1, .in = {from}, .out = {to}, .workspace = -1};
    copy.program = basin_program_copy(ir->value[from].shape);
    if (copy.program && basin_ir_list_add(list, &copy)) return true;
    basin_program_free(copy.program);
    return false;
}

/* A joint value's producer is the last of those that write parts of it. */
void basin_ir_list_take(basin_ir_list *list, basin_ir *ir) {
    free(ir->instruction);
    ir->instruction = list->instruction;
    ir->instructions = list->count, ir->instruction_capacity = list->capacity;
    *list = (basin_ir_list){0};
    basin_ir_number(ir);
    basin_ir_count_uses(ir);
}

void basin_ir_list_discard(basin_ir_list *list, const basin_ir *ir) {
    for (size_t i = 0; i < list->count; i++) {
        bool old = false;
        for (size_t j = 0; j < ir->instructions; j++)
            old = old || list->instruction[i].program == ir->instruction[j].program;
        if (!old) basin_program_free(list->instruction[i].program);
    }
    free(list->instruction);
}
