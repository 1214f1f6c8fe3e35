/* Pointwise programs, single pointwise operations, functions of the caller, random draws. */

#include "base/sort.h"
#include "engine/backend/cpu/cpu.h"
#include "engine/backend/shape.h"

enum { LINE = 16 };  /* floats */
enum { SLACK = 16 }; /* floats a fill may write past its end; also keeps registers off one set */

static bool fills_register(int op) { return op >= BASIN_INSTRUCTION_LOAD; }

static bool reads_register(const basin_instruction *instruction, int reg) {
    if (fills_register(instruction->op)) return false;
    return instruction->a == reg || (instruction->op >= BASIN_OP_ADD && instruction->b == reg) ||
           (instruction->op == BASIN_OP_SELECT && instruction->c == reg);
}

static int last_write(const basin_program *program, int reg) {
    int last = -1;
    for (int i = 0; i < program->instructions; i++)
        if (program->instruction[i].to == reg) last = i;
    return last;
}

/* Whether some instruction after `when`, or a store, still reads what operand a holds in memory. */
static bool operand_read_after(const basin_program *program, int a, int when) {
    for (int i = 0; i < program->instructions; i++) {
        if (program->instruction[i].op != BASIN_INSTRUCTION_LOAD || program->instruction[i].a != a)
            continue;
        if (i > when) return true;
        for (int s = 0; s < program->stores; s++)
            if (last_write(program, program->store[s]) == i) return true;
        for (int j = when + 1; j < program->instructions; j++)
            if (reads_register(&program->instruction[j], program->instruction[i].to)) return true;
    }
    return false;
}

static bool is_narrow_in(const basin_cpu_program *p, int a) { return p->kinds.narrow_in >> a & 1; }

static bool is_narrow_out(const basin_cpu_program *p, int s) {
    return p->kinds.narrow_out >> s & 1;
}

/* The last instruction to set output s, if no operand under the output is read later. */
static int direct_instruction(const basin_cpu_program *p, int s) {
    const basin_program *program = p->program;
    int instruction = last_write(program, program->store[s]);
    if (instruction < 0 || fills_register(program->instruction[instruction].op) || !p->out[s] ||
        is_narrow_out(p, s))
        return -1;
    for (int i = 0; i < s; i++)
        if (p->direct[i] == instruction) return -1;
    for (int a = 0; a < BASIN_MAX_IN; a++) {
        bool under = (p->dense >> a & 1) && p->in[a] == p->out[s];
        if (under && operand_read_after(program, a, instruction)) return -1;
    }
    return instruction;
}

static void sort_operands(basin_cpu_program *p) {
    int64_t dense[BASIN_MAX_RANK];
    const basin_shape *domain = &p->program->domain;
    basin_shape_strides(dense, domain);
    for (int i = 0; i < p->program->instructions; i++) {
        const basin_instruction *instruction = &p->program->instruction[i];
        if (instruction->op != BASIN_INSTRUCTION_LOAD) continue;
        const int64_t *stride = p->program->stride[instruction->a];
        bool is_dense = true, is_constant = true, is_row = p->unit > 1;
        for (int axis = 0; axis < domain->rank; axis++) {
            if (domain->dim[axis] == 1) continue;
            if (stride[axis] != dense[axis]) is_dense = false;
            if (stride[axis] != 0) is_constant = false;
            if (stride[axis] != 0 && axis < domain->rank - 1) is_row = false;
        }
        p->dense |= (uint32_t)is_dense << instruction->a;
        if (is_narrow_in(p, instruction->a)) continue;
        p->constant |= (uint32_t)is_constant << instruction->a;
        p->periodic |= (uint32_t)(is_row && !is_dense) << instruction->a;
    }
}

/* Instructions whose result is the same in every block. As many as fit keep scratch after the
 * registers, in the order of the instructions, which no other instruction overwrites. */
static bool is_constant(const basin_cpu_program *p, const basin_instruction *instruction) {
    return instruction->op == BASIN_INSTRUCTION_IMMEDIATE ||
           (instruction->op == BASIN_INSTRUCTION_LOAD &&
            ((p->constant | p->periodic) >> instruction->a & 1));
}

basin_cpu_program basin_cpu_program_prepare(const basin_program *program, const void *const *in,
                                            void *const *out, const basin_simd *simd,
                                            basin_cpu_kinds kinds) {
    basin_cpu_program p = {.simd = simd, .program = program, .in = in, .out = out, .kinds = kinds};
    int64_t width = program->domain.rank > 0 ? program->domain.dim[program->domain.rank - 1] : 0;
    p.unit = width > 1 && width < BASIN_CPU_LONG_ROW ? width : 1;
    sort_operands(&p);
    int slots = program->registers;
    for (int i = 0; i < program->instructions && slots < BASIN_MAX_REGISTERS; i++)
        slots += is_constant(&p, &program->instruction[i]);
    p.lasting = slots - program->registers;
    p.block = (BASIN_CPU_SCRATCH / (slots < 8 ? 8 : slots) - SLACK) / 16 * 16;
    for (int s = 0; s < program->stores; s++) p.direct[s] = direct_instruction(&p, s);
    return p;
}

static float *scratch_of(const basin_cpu_program *p, float *scratch, int reg) {
    return scratch + reg * (p->block + SLACK);
}

/* memcpy of a short run, without the call. */
static void copy_short(float *to, const float *from, int64_t n) {
    int64_t i = 0;
    for (; i + SLACK <= n; i += SLACK) memcpy(to + i, from + i, SLACK * sizeof *to);
    for (; i < n; i++) to[i] = from[i];
}

/* n elements from `from`, or n times the first; may write SLACK elements more. */
static void copy_run(float *to, const float *from, int64_t n, bool repeat) {
    if (repeat) {
        float value = *from;
        for (int64_t i = 0; i < n; i += SLACK)
            for (int j = 0; j < SLACK; j++) to[i + j] = value;
    } else {
        copy_short(to, from, n);
    }
}

/* `rows` rows of `width` elements, `apart` apart, or each `width` times its first element. */
static void copy_rows(float *to, const float *from, int64_t apart, int64_t rows, int64_t width,
                      bool repeat) {
    if (!repeat || width > SLACK) {
        for (int64_t r = 0; r < rows; r++)
            copy_run(to + r * width, from + r * apart, width, repeat);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        float value = from[r * apart];
        for (int j = 0; j < SLACK; j++) to[r * width + j] = value;
    }
}

/* Elements start .. start + n - 1 of a broadcast operand; `start` and n may cut rows. */
static void expand(float *to, const float *from, const basin_shape *domain, const int64_t *stride,
                   int64_t start, int64_t n) {
    int last = domain->rank - 1;
    int64_t width = domain->dim[last], row = start / width, col = start % width;
    int64_t inner = last > 0 ? domain->dim[last - 1] : 1, apart = last > 0 ? stride[last - 1] : 0;
    bool repeat = stride[last] == 0;
    while (n > 0) {
        int64_t index = row % inner, rows = basin_int_min(inner - index, n / width);
        const float *at = from + index * apart;
        if (last > 1) at += basin_shape_offset(row / inner, domain, last - 1, stride);
        if (col > 0 || rows == 0) { /* a part of a row */
            int64_t run = basin_int_min(width - col, n);
            copy_run(to, at + (repeat ? 0 : col), run, repeat);
            to += run, n -= run, col = 0, row++;
        } else {
            copy_rows(to, at, apart, rows, width, repeat);
            to += rows * width, n -= rows * width, row += rows;
        }
    }
}

/* A constant's n elements: an immediate, a number, or a short row again and again. */
static void write_constant(const basin_cpu_program *p, float *to,
                           const basin_instruction *instruction, int64_t n) {
    if (instruction->op == BASIN_INSTRUCTION_IMMEDIATE)
        p->simd->fill(to, (float)instruction->value, n);
    else if (p->constant >> instruction->a & 1)
        p->simd->fill(to, *(const float *)p->in[instruction->a], n);
    else
        expand(to, p->in[instruction->a], &p->program->domain, p->program->stride[instruction->a],
               0, n);
}

/* A narrow operand under a block, as float. */
static const float *widen_block(const basin_cpu_program *p, float *to, int a, int64_t start,
                                int64_t n) {
    const basin_shape *domain = &p->program->domain;
    const uint16_t *from = p->in[a];
    if (p->dense >> a & 1) {
        p->simd->widen(to, from + start, n);
        return to;
    }
    for (int64_t i = 0; i < n; i++)
        p->simd->widen(
            to + i,
            from + basin_shape_offset(start + i, domain, domain->rank, p->program->stride[a]), 1);
    return to;
}

/* Operand `a` for one block: in place where it is contiguous, else gathered into `to`. */
static const float *load_block(const basin_cpu_program *p, float *to, int a, int64_t start,
                               int64_t n) {
    const basin_shape *domain = &p->program->domain;
    const int64_t *stride = p->program->stride[a];
    const float *from = p->in[a];
    int last = domain->rank - 1;
    if (is_narrow_in(p, a)) return widen_block(p, to, a, start, n);
    if (p->dense >> a & 1) return from + start;
    if (stride[last] == 1) {
        int64_t width = domain->dim[last], row = start / width, col = start % width;
        if (col + n <= width) return from + basin_shape_offset(row, domain, last, stride) + col;
    }
    expand(to, from, domain, stride, start, n);
    return to;
}

static void run_instructions(const basin_cpu_program *p, const float **reg, float *scratch,
                             int64_t start, int64_t n) {
    const basin_program *program = p->program;
    int constants = 0;
    for (int i = 0; i < program->instructions; i++) {
        const basin_instruction *instruction = &program->instruction[i];
        float *to = scratch_of(p, scratch, instruction->to);
        if (is_constant(p, instruction)) {
            if (constants < p->lasting)
                to = scratch_of(p, scratch, program->registers + constants);
            else
                write_constant(p, to, instruction, n);
            constants++;
            reg[instruction->to] = to;
            continue;
        }
        if (instruction->op == BASIN_INSTRUCTION_LOAD) {
            reg[instruction->to] = load_block(p, to, instruction->a, start, n);
            continue;
        }
        for (int s = 0; s < program->stores; s++)
            if (p->direct[s] == i) to = (float *)p->out[s] + start;
        p->simd->map(instruction->op, to, 0, (basin_strip){reg[instruction->a], 0},
                     (basin_strip){reg[instruction->b], 0}, (basin_strip){reg[instruction->c], 0},
                     1, n, instruction->value);
        reg[instruction->to] = to;
    }
}

/* Writes down the constants; every thread does so before its first block. */
static void cpu_program_begin(const basin_cpu_program *p, float *scratch) {
    int64_t count = basin_shape_product(&p->program->domain, 0, p->program->domain.rank);
    int constants = 0;
    for (int i = 0; i < p->program->instructions && constants < p->lasting; i++) {
        const basin_instruction *instruction = &p->program->instruction[i];
        if (!is_constant(p, instruction)) continue;
        float *to = scratch_of(p, scratch, p->program->registers + constants++);
        write_constant(p, to, instruction, basin_int_min(count, p->block / p->unit * p->unit));
    }
}

/* Elements start .. start + n - 1 of the domain, n <= p->block, `start` a multiple of p->unit. */
static void cpu_program_block(const basin_cpu_program *p, float *scratch, int64_t start,
                              int64_t n) {
    const float *reg[BASIN_MAX_REGISTERS] = {0};
    const basin_program *program = p->program;
    run_instructions(p, reg, scratch, start, n);
    /* A register read in place may lie under another output: no copy before all are taken. */
    for (int s = 0; s < program->stores; s++) {
        const float *from = reg[program->store[s]];
        float *own = scratch_of(p, scratch, program->store[s]);
        if (p->direct[s] >= 0 || !p->out[s] || from == own || program->stores == 1) continue;
        memcpy(own, from, (size_t)n * sizeof *own);
        reg[program->store[s]] = own;
    }
    for (int s = 0; s < program->stores; s++) {
        float *to = (float *)p->out[s];
        if (to && is_narrow_out(p, s))
            p->simd->narrow((uint16_t *)p->out[s] + start, reg[program->store[s]], n);
        else if (p->direct[s] < 0 && to && reg[program->store[s]] != to + start)
            memcpy(to + start, reg[program->store[s]], (size_t)n * sizeof *to);
    }
}

/* Prefetches the next tile's part of an operand while this tile is computed. */
static void prefetch_below(const float *from, int64_t row, const basin_cpu_tile *at) {
    for (int64_t r = at->rows; r < 2 * at->rows; r++)
        for (int64_t c = 0; c < at->cols; c += LINE) __builtin_prefetch(from + r * row + c, 0, 2);
}

static basin_strip widen_tile(const basin_cpu_program *p, float *to, int a,
                              const basin_cpu_tile *at) {
    const int64_t *stride = p->program->stride[a];
    const uint16_t *from = (const uint16_t *)p->in[a] + at->batch * stride[0] +
                           at->row * stride[1] + at->col * stride[2];
    for (int64_t r = 0; r < at->rows; r++) {
        if (stride[2] == 1) p->simd->widen(to + r * at->cols, from + r * stride[1], at->cols);
        for (int64_t c = 0; stride[2] != 1 && c < at->cols; c++)
            p->simd->widen(to + r * at->cols + c, from + r * stride[1], 1);
    }
    return (basin_strip){to, at->cols};
}

/* What a LOAD or TILE puts under a tile. Only an operand that is constant along rows but not along
 * columns is copied; the others are read where they are, or as one row again and again. */
static basin_strip load_tile(const basin_cpu_program *p, float *to,
                             const basin_instruction *instruction, const basin_cpu_tile *at) {
    if (instruction->op == BASIN_INSTRUCTION_TILE) return (basin_strip){at->tile, at->tile_row};
    if (is_narrow_in(p, instruction->a)) return widen_tile(p, to, instruction->a, at);
    const int64_t *stride = p->program->stride[instruction->a];
    const float *from = (const float *)p->in[instruction->a] + at->batch * stride[0] +
                        at->row * stride[1] + at->col * stride[2];
    if (stride[2] == 1) {
        if (stride[1] > 0) prefetch_below(from, stride[1], at);
        return (basin_strip){from, stride[1]};
    }
    copy_rows(to, from, stride[1], at->rows, at->cols, true);
    return (basin_strip){to, at->cols};
}

/* A constant under a tile: one row of it, where that lasts longer than the tile's first row. */
static basin_strip load_constant(const basin_cpu_program *p, float *scratch,
                                 const basin_instruction *instruction, int constants,
                                 const basin_cpu_tile *at) {
    bool lasts = constants < p->lasting;
    float *to = scratch_of(p, scratch, lasts ? p->program->registers + constants : instruction->to);
    float value = instruction->op == BASIN_INSTRUCTION_LOAD ? *(const float *)p->in[instruction->a]
                                                            : (float)instruction->value;
    p->simd->fill(to, value, lasts ? at->cols : at->rows * at->cols);
    return (basin_strip){to, lasts ? 0 : at->cols};
}

static void tile_instructions(const basin_cpu_program *p, basin_strip *reg, float *scratch,
                              const basin_cpu_tile *at, int64_t first) {
    const basin_program *program = p->program;
    int constants = 0;
    for (int i = 0; i < program->instructions; i++) {
        const basin_instruction *instruction = &program->instruction[i];
        float *to = scratch_of(p, scratch, instruction->to);
        int64_t row = at->cols;
        bool constant = is_constant(p, instruction);
        if (constant &&
            !(instruction->op == BASIN_INSTRUCTION_LOAD && (p->periodic >> instruction->a & 1))) {
            reg[instruction->to] = load_constant(p, scratch, instruction, constants++, at);
            continue;
        }
        constants += constant;
        if (fills_register(instruction->op)) {
            reg[instruction->to] = load_tile(p, to, instruction, at);
            continue;
        }
        for (int s = 0; s < program->stores; s++)
            if (p->direct[s] == i) to = (float *)p->out[s] + first, row = program->domain.dim[2];
        p->simd->map(instruction->op, to, row, reg[instruction->a], reg[instruction->b],
                     reg[instruction->c], at->rows, at->cols, instruction->value);
        reg[instruction->to] = (basin_strip){to, row};
    }
}

void basin_cpu_program_tile(const basin_cpu_program *p, float *scratch, const basin_cpu_tile *at) {
    basin_strip reg[BASIN_MAX_REGISTERS] = {{0}};
    const basin_program *program = p->program;
    int64_t width = program->domain.dim[2];
    int64_t first = (at->batch * program->domain.dim[1] + at->row) * width + at->col;
    tile_instructions(p, reg, scratch, at, first);
    for (int s = 0; s < program->stores; s++) { /* as for blocks: none before all are taken */
        basin_strip *from = &reg[program->store[s]];
        float *own = scratch_of(p, scratch, program->store[s]);
        if (p->direct[s] >= 0 || !p->out[s] || from->x == own || program->stores == 1) continue;
        p->simd->map(BASIN_OP_COPY, own, at->cols, *from, *from, *from, at->rows, at->cols, 0);
        *from = (basin_strip){own, at->cols};
    }
    for (int s = 0; s < program->stores; s++) {
        basin_strip from = reg[program->store[s]];
        for (int64_t r = 0; p->out[s] && is_narrow_out(p, s) && r < at->rows; r++)
            p->simd->narrow((uint16_t *)p->out[s] + first + r * width, from.x + r * from.row,
                            at->cols);
        if (p->direct[s] < 0 && p->out[s] && !is_narrow_out(p, s))
            p->simd->map(BASIN_OP_COPY, (float *)p->out[s] + first, width, from, from, from,
                         at->rows, at->cols, 0);
    }
}

/* Pointwise operations, fused into a program or single; a single one runs as a program of one
 * instruction. Rows long enough are taken one at a time, so that what is broadcast over them is
 * read in place; short ones run together in blocks of the flattened domain. */

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
    int64_t min = (c.width + p->block - 1) / p->block;
    c.length = ((c.width + min - 1) / min + 63) / 64 * 64;
    if (c.length > p->block) c.length = p->block;
    if (p->unit > 1) c.length = p->block / p->unit * p->unit;
    c.per_width = (c.width + c.length - 1) / c.length;
    c.pieces = count / c.width * c.per_width;
    return c;
}

typedef struct sharing {
    const basin_cpu_program *program;
    const cut *cut;
} sharing;

static void run_pieces(const void *context, int64_t first, int64_t last) {
    const basin_cpu_program *p = ((const sharing *)context)->program;
    const cut *c = ((const sharing *)context)->cut;
    _Alignas(64) float scratch[BASIN_CPU_SCRATCH];
    if (first >= last) return;
    cpu_program_begin(p, scratch);
    int64_t row = first / c->per_width, col = first % c->per_width * c->length;
    for (int64_t i = first; i < last; i++) {
        int64_t n = c->width - col < c->length ? c->width - col : c->length;
        cpu_program_block(p, scratch, row * c->width + col, n);
        col += n;
        if (col == c->width) col = 0, row++;
    }
}

static void run_program(const basin_frame *frame, const basin_program *program) {
    basin_cpu_program p = basin_cpu_program_prepare(program, frame->in, frame->out, frame->simd,
                                                    basin_cpu_kinds_of(frame->call, 0));
    cut c = cut_domain(&p);
    int64_t work = basin_shape_product(&program->domain, 0, program->domain.rank);
    int team = basin_cpu_team(frame, work);
    sharing s = {&p, &c};
    basin_parallel_for(run_pieces, &s, c.pieces, 0, team);
}

void basin_cpu_pointwise_fused(const basin_frame *frame) {
    run_program(frame, frame->call->program);
}

void basin_cpu_pointwise(const basin_frame *frame) {
    const basin_call *call = frame->call;
    basin_instruction instruction[4];
    basin_program program = basin_program_alone(instruction, call);
    basin_program_merge_axes(&program, call->ins);
    run_program(frame, &program);
}

/* Rows of a program's domain, several at a time or one in stretches (only of a maximum). */
typedef struct reducing {
    const basin_cpu_program *program;
    void (*each)(float *to, const float *x, int64_t rows, int64_t n);
    float *to;                     /* [rows] */
    int64_t rows, n, some, length; /* `some` rows at a time, `length` elements of each */
} reducing;

static void reduce_rows(const void *context, int64_t first, int64_t last) {
    const reducing *r = context;
    const basin_cpu_program *p = r->program;
    _Alignas(64) float scratch[BASIN_CPU_SCRATCH];
    const float *reg[BASIN_MAX_REGISTERS] = {0};
    if (first >= last) return;
    cpu_program_begin(p, scratch);
    for (int64_t i = first * r->some; i < last * r->some && i < r->rows; i += r->some) {
        int64_t rows = basin_int_min(r->some, r->rows - i);
        float pair[2]; /* of a long row: the maximum so far, and that of the next stretch */
        for (int64_t at = 0; at < r->n; at += r->length) {
            int64_t n = basin_int_min(r->length, r->n - at);
            run_instructions(p, reg, scratch, i * r->n + at, rows * n);
            const float *x = reg[p->program->store[0]];
            r->each(at ? &pair[1] : r->to + i, x, rows, n);
            if (at) r->each(r->to + i, pair, 1, 2);
            pair[0] = r->to[i];
        }
    }
}

void basin_cpu_program_reduce(const basin_frame *frame,
                              void (*each)(float *to, const float *x, int64_t rows, int64_t n)) {
    const basin_program *program = frame->call->program;
    void *const nowhere[BASIN_MAX_OUT] = {NULL};
    basin_cpu_program p =
        basin_cpu_program_prepare(program, frame->in, nowhere, frame->simd, (basin_cpu_kinds){0});
    int64_t count = basin_shape_product(&program->domain, 0, program->domain.rank);
    int64_t unit = program->domain.rank > 1 ? p.unit : 1;
    reducing r = {.program = &p, .each = each, .to = frame->out[0]};
    r.rows = basin_shape_count(frame->call->out[0].shape);
    r.n = count / r.rows;
    r.some = basin_int_max(1, p.block / r.n);
    r.length = basin_int_min(r.n, p.block / unit * unit);
    basin_parallel_for(reduce_rows, &r, basin_int_ceil(r.rows, r.some), 0,
                       basin_cpu_team(frame, count));
}

/* The caller's own function, in double, at every element of operands that are broadcast. */

static void own_rows(const basin_frame *frame, int64_t first, int64_t last) {
    const basin_call *call = frame->call;
    const basin_shape *shape = &call->out[0].shape;
    int outer = shape->rank > 0 ? shape->rank - 1 : 0;
    int64_t width = basin_shape_last(shape, 1), stride[BASIN_OWN_INS][BASIN_MAX_RANK] = {{0}};
    float *y = frame->out[0];
    for (int a = 0; a < call->ins; a++) basin_shape_broadcast(stride[a], &call->in[a].shape, shape);
    for (int64_t row = first; row < last; row++) {
        int64_t at[BASIN_OWN_INS];
        for (int a = 0; a < call->ins; a++)
            at[a] = basin_shape_offset(row, shape, outer, stride[a]);
        for (int64_t i = 0; i < width; i++) {
            double x[BASIN_OWN_INS];
            for (int a = 0; a < call->ins; a++)
                x[a] = (double)((const float *)frame->in[a])[at[a] + i * stride[a][outer]];
            y[row * width + i] = (float)call->attr.function(x, call->attr.context);
        }
    }
}

void basin_cpu_own(const basin_frame *frame) {
    const basin_shape *shape = &frame->call->out[0].shape;
    int64_t rows = basin_shape_rows(shape);
    basin_cpu_share(frame, own_rows, rows, 8 * rows * basin_shape_last(shape, 1));
}

/* Counter-based draws: element i depends only on the seed, the stream and i, so any thread may fill
 * any range. The numbers are those of basin/random.h. */

enum { PIECE = 4096 };

static void draw(const basin_frame *frame, int64_t first, int64_t last) {
    uint64_t seed = basin_seed_of(frame->in[0]);
    basin_simd_fill *fill =
        frame->call->op == BASIN_OP_NORMAL ? frame->simd->normal : frame->simd->uniform;
    float *out = frame->out[0];
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    int64_t begin = first * PIECE, end = last * PIECE < count ? last * PIECE : count;
    fill(out + begin, seed, frame->call->attr.stream, (uint64_t)begin, (size_t)(end - begin));
    double drop = frame->call->attr.drop;
    for (int64_t i = begin; i < end && drop > 0; i++) out[i] = (double)out[i] > drop ? 1.0F : 0.0F;
}

void basin_cpu_random(const basin_frame *frame) {
    int64_t count = basin_shape_count(frame->call->out[0].shape);
    basin_cpu_share(frame, draw, (count + PIECE - 1) / PIECE, count * 8);
}
