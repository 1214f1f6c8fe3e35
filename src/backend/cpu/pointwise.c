/* Pointwise operations, fused into a program or alone; alone, one runs as a program of one
 * instruction. Rows long enough are taken one at a time, so that what is broadcast over them is
 * read in place; short ones run together in blocks of the flattened domain. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/program.h"
#include "backend/shape.h"

/* How the domain is cut: pieces of `length` within each stretch of `width` elements. */
typedef struct cut {
    int64_t width, length, per_width, pieces;
} cut;

static cut cut_domain(const basin_cpu_program *p) {
    const basin_program *program = p->program;
    const basin_shape *domain = &program->domain;
    int64_t count = basin_shape_product(domain, 0, domain->rank);
    cut c = {.width = count};
    bool flat = domain->rank < 2 || domain->dim[domain->rank - 1] < BASIN_CPU_LONG_ROW;
    for (int i = 0; i < program->instructions && !flat; i++) {
        const basin_instruction *instruction = &program->instruction[i];
        if (instruction->op != BASIN_INSTRUCTION_LOAD) continue;
        if (!((p->dense | p->constant) >> instruction->a & 1))
            c.width = domain->dim[domain->rank - 1];
    }
    if (count == 0) return c;
    int64_t least = (c.width + p->block - 1) / p->block;
    c.length = ((c.width + least - 1) / least + 63) / 64 * 64;
    if (c.length > p->block) c.length = p->block;
    if (p->unit > 1) c.length = p->block / p->unit * p->unit;
    c.per_width = (c.width + c.length - 1) / c.length;
    c.pieces = count / c.width * c.per_width;
    return c;
}

static void run_pieces(const basin_cpu_program *p, const cut *c, int64_t first, int64_t last) {
    _Alignas(64) float scratch[BASIN_CPU_SCRATCH];
    if (first >= last) return;
    basin_cpu_program_begin(p, scratch);
    int64_t row = first / c->per_width, col = first % c->per_width * c->length;
    for (int64_t i = first; i < last; i++) {
        int64_t n = c->width - col < c->length ? c->width - col : c->length;
        basin_cpu_program_block(p, scratch, row * c->width + col, n);
        col += n;
        if (col == c->width) col = 0, row++;
    }
}

typedef struct sharing {
    const basin_cpu_program *program;
    const cut *cut;
} sharing;

static void share_pieces(const void *context, int64_t first, int64_t last, int place) {
    const sharing *s = context;
    (void)place;
    run_pieces(s->program, s->cut, first, last);
}

static void run_program(const basin_cpu_frame *frame, const basin_program *program) {
    basin_cpu_program p = basin_cpu_program_prepare(program, frame->in, frame->out, frame->simd,
                                                    basin_cpu_kinds_of(frame->call, 0));
    cut c = cut_domain(&p);
    int64_t work = basin_shape_product(&program->domain, 0, program->domain.rank);
    int team = basin_cpu_team(frame, work);
    sharing s = {&p, &c};
    basin_team_run(share_pieces, &s, c.pieces, 0, team);
}

void basin_cpu_pointwise_fused(const basin_cpu_frame *frame) {
    run_program(frame, frame->call->program);
}

/* Drops axes of one element and joins axes that every operand walks as one. */
static void merge_axes(basin_program *program, int operands) {
    basin_shape *domain = &program->domain;
    int axes = 0;
    for (int i = 0; i < domain->rank; i++) {
        if (domain->dim[i] == 1) continue;
        bool joins = axes > 0;
        for (int a = 0; a < operands && joins; a++)
            joins = program->stride[a][axes - 1] == program->stride[a][i] * domain->dim[i];
        axes += !joins;
        domain->dim[axes - 1] = joins ? domain->dim[axes - 1] * domain->dim[i] : domain->dim[i];
        for (int a = 0; a < operands; a++) program->stride[a][axes - 1] = program->stride[a][i];
    }
    domain->rank = axes;
}

void basin_cpu_pointwise(const basin_cpu_frame *frame) {
    const basin_call *call = frame->call;
    basin_instruction instruction[4];
    basin_program program = {
        .instructions = call->ins + 1, .registers = 4, .stores = 1, .instruction = instruction};
    program.store[0] = 3;
    program.domain = call->out[0].shape;
    for (int a = 0; a < call->ins; a++) {
        instruction[a] =
            (basin_instruction){.op = BASIN_INSTRUCTION_LOAD, .to = (uint16_t)a, .a = (uint16_t)a};
        basin_shape_broadcast(program.stride[a], &call->in[a].shape, &call->out[0].shape);
    }
    instruction[call->ins] = (basin_instruction){
        .op = (uint16_t)call->op, .to = 3, .a = 0, .b = 1, .c = 2, .value = call->attr.value};
    merge_axes(&program, call->ins);
    run_program(frame, &program);
}
