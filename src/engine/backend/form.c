/* Forms of epilogues: a program is followed register by register, each the formula
 *
 *     relu?(alpha tile + beta c + of_more more + of_row row + constant), 0 where `mask` is not
 *     above 0,
 *     or kept c + step (the same), without relu and mask,
 *
 * until the register that is stored has a form, or none. */
#include "engine/backend/kernel.h"
#include "engine/backend/shape.h"

typedef struct content {
    bool known, relu;
    double alpha, beta, of_more, of_row, constant, kept;
    int c, more, row, mask, step;
} content;

static const content nothing = {.c = -1, .more = -1, .row = -1, .mask = -1, .step = -1};
static const basin_form unknown = {.c = -1, .row = -1, .mask = -1, .more = -1, .step = -1};

/* A constant, perhaps masked, or times a step. */
static bool is_number(const content *f) {
    return f->known && f->alpha == 0 && f->c < 0 && f->row < 0;
}

static bool is_constant(const content *f) { return is_number(f) && f->step < 0; }

static content scaled(content f, double by) {
    f.known = f.known && !f.relu && by != 0;
    f.alpha *= by, f.beta *= by, f.of_more *= by, f.of_row *= by, f.constant *= by;
    f.kept *= by;
    return f;
}

/* Whether both name the same operand, or one of them none. */
static bool agree(int a, int b) { return a < 0 || b < 0 || a == b; }

/* Adds a multiple of an operand that lies like the result: two have room. */
static void add_operand(content *f, int operand, double by) {
    if (operand < 0) return;
    if (agree(f->c, operand))
        f->c = operand, f->beta += by;
    else if (agree(f->more, operand))
        f->more = operand, f->of_more += by;
    else
        f->known = false;
}

/* c beside a step, which does not multiply it. */
static content kept_beside(content f, const content *c) {
    f.known = f.known && c->known && c->step < 0 && c->alpha == 0 && c->constant == 0 &&
              c->row < 0 && c->more < 0 && c->mask < 0 && !c->relu && agree(f.c, c->c);
    if (f.c < 0) f.c = c->c;
    f.kept += c->beta;
    return f;
}

static content sum_of(content f, content g) {
    if (f.step != g.step) return f.step < 0 ? kept_beside(g, &f) : kept_beside(f, &g);
    f.known = f.known && g.known && !f.relu && !g.relu && agree(f.row, g.row) && f.mask == g.mask;
    f.alpha += g.alpha, f.of_row += g.of_row, f.constant += g.constant, f.kept += g.kept;
    add_operand(&f, g.c, g.beta);
    add_operand(&f, g.more, g.of_more);
    if (f.row < 0) f.row = g.row;
    return f;
}

static content product_by(content f, const content *constant) {
    f = scaled(f, constant->constant);
    f.known = f.known && agree(f.mask, constant->mask) && (f.step < 0 || constant->mask < 0);
    if (constant->mask >= 0) f.mask = constant->mask;
    return f;
}

static content times_step(content f, const content *step) {
    f = scaled(f, step->constant);
    f.known = f.known && f.mask < 0;
    f.step = step->step;
    return f;
}

static content product_of(const content *f, const content *g) {
    if (is_constant(f)) return product_by(*g, f);
    if (is_constant(g)) return product_by(*f, g);
    if (is_number(f) && g->step < 0) return times_step(*g, f);
    return is_number(g) && f->step < 0 ? times_step(*f, g) : nothing;
}

static content quotient_of(const content *f, const content *g) {
    bool number = is_constant(g) && g->constant != 0 && g->mask < 0;
    return number ? scaled(*f, 1 / g->constant) : nothing;
}

/* 1 where the operand is above 0. */
static content step_of(const content *f) {
    content out = nothing;
    out.known = f->known && f->alpha == 0 && f->beta == 1 && f->constant == 0 && f->row < 0 &&
                f->more < 0 && f->mask < 0 && f->step < 0;
    out.constant = 1;
    out.mask = f->c;
    return out;
}

/* Only of sums with the product in them. */
static content relu_of(content f) {
    f.known = f.known && !f.relu && f.alpha != 0 && f.mask < 0 && f.step < 0;
    f.relu = true;
    return f;
}

/* An operand laid out like the result is c, masks of bits (which only a STEP reads) included; one
 * that repeats a row is row, one number for all or for each row is a step. */
static content loaded(const basin_program *program, const basin_call *call, int a) {
    const int64_t *stride = program->stride[a], *dim = program->domain.dim;
    bool along = dim[2] == 1 || stride[2] == 1;
    bool dense = along && (dim[1] == 1 || stride[1] == dim[2]) &&
                 (dim[0] == 1 || stride[0] == dim[1] * dim[2]);
    bool row = along && (dim[1] == 1 || stride[1] == 0) && (dim[0] == 1 || stride[0] == 0);
    bool step = dim[2] > 1 && stride[2] == 0;
    if (call) {
        basin_kind kind = call->in[2 + a].kind;
        bool drawn = call->in[2 + a].drop > 0;
        dense = dense && !drawn && (kind == call->out[0].kind || kind == BASIN_INDEX);
        row = row && kind == BASIN_REAL;
        step = step && kind == BASIN_REAL;
    }
    content f = nothing;
    f.known = dense || row || step;
    if (step) f.step = a, f.constant = 1;
    if (dense)
        f.c = a, f.beta = 1;
    else if (row)
        f.row = a, f.of_row = 1;
    return f;
}

static content content_of(const basin_program *program, const basin_call *call,
                          const basin_instruction *s, const content *r) {
    content f = nothing;
    switch (s->op) {
    case BASIN_INSTRUCTION_TILE: f.known = true, f.alpha = 1; return f;
    case BASIN_INSTRUCTION_IMMEDIATE: f.known = true, f.constant = s->value; return f;
    case BASIN_INSTRUCTION_LOAD: return loaded(program, call, s->a);
    case BASIN_OP_COPY: return r[s->a];
    case BASIN_OP_NEG: return scaled(r[s->a], -1);
    case BASIN_OP_ADD: return sum_of(r[s->a], r[s->b]);
    case BASIN_OP_SUB: return sum_of(r[s->a], scaled(r[s->b], -1));
    case BASIN_OP_MUL: return product_of(&r[s->a], &r[s->b]);
    case BASIN_OP_DIV: return quotient_of(&r[s->a], &r[s->b]);
    case BASIN_OP_STEP: return step_of(&r[s->a]);
    case BASIN_OP_RELU: return relu_of(r[s->a]);
    default: return f;
    }
}

/* What the program stores; *second is what it stores the absolute value of as well. */
static content stored(const basin_program *program, const basin_call *call, content *second) {
    content r[BASIN_MAX_REGISTERS];
    for (int i = 0; i < BASIN_MAX_REGISTERS; i++) r[i] = nothing;
    for (int i = 0; i < program->instructions; i++) {
        const basin_instruction *s = &program->instruction[i];
        if (s->to == program->store[1]) *second = s->op == BASIN_OP_ABS ? r[s->a] : nothing;
        r[s->to] = content_of(program, call, s, r);
    }
    return r[program->store[0]];
}

/* Whether f is a step, and m, where there are two results, how far it goes. */
static bool is_step(const content *f, const content *m, int stores) {
    bool moves = m->known && m->step == f->step && m->kept == 0 && m->constant == 0 &&
                 m->alpha == f->alpha && m->beta == f->beta && m->c == f->c && m->row < 0 &&
                 m->more < 0;
    return f->step >= 0 && f->kept == 1 && f->row < 0 && f->more < 0 && (stores == 1 || moves);
}

basin_form basin_form_with_more(const basin_program *program, const basin_call *call) {
    basin_form product = {
        .known = true, .alpha = 1, .c = -1, .row = -1, .mask = -1, .more = -1, .step = -1};
    if (!program) return product;
    content m = nothing, f = stored(program, call, &m);
    bool bias = f.row < 0 || f.of_row == 1;
    bool good = f.step < 0 ? program->stores == 1 : is_step(&f, &m, program->stores);
    if (!f.known || f.alpha == 0 || f.constant != 0 || !bias || !good) return unknown;
    return (basin_form){true,  f.relu, f.alpha,   f.beta, f.c,
                        f.row, f.mask, f.of_more, f.more, f.step};
}

basin_form basin_form_of(const basin_program *program, const basin_call *call) {
    basin_form f = basin_form_with_more(program, call);
    bool alone = f.mask < 0 || (f.c < 0 && f.row < 0); /* nothing but products is masked */
    return f.more < 0 && f.step < 0 && alone ? f : unknown;
}

basin_program basin_program_alone(basin_instruction instruction[4], const basin_call *call) {
    basin_program program = {.instructions = call->ins + 1,
                             .registers = 4,
                             .stores = 1,
                             .instruction = instruction,
                             .store = {3},
                             .domain = call->out[0].shape};
    for (int a = 0; a < call->ins; a++) {
        instruction[a] =
            (basin_instruction){.op = BASIN_INSTRUCTION_LOAD, .to = (uint16_t)a, .a = (uint16_t)a};
        basin_shape_broadcast(program.stride[a], &call->in[a].shape, &program.domain);
    }
    instruction[call->ins] = (basin_instruction){
        .op = (uint16_t)call->op, .to = 3, .a = 0, .b = 1, .c = 2, .value = call->attr.value};
    return program;
}

void basin_program_merge_axes(basin_program *p, int operands) {
    int rank = 0;
    for (int i = 0; i < p->domain.rank; i++) {
        if (p->domain.dim[i] == 1) continue;
        bool even = rank > 0;
        for (int k = 0; k < operands && even; k++)
            even = p->stride[k][rank - 1] == p->stride[k][i] * p->domain.dim[i];
        if (!even) rank++;
        int64_t dim = p->domain.dim[i];
        p->domain.dim[rank - 1] = even ? p->domain.dim[rank - 1] * dim : dim;
        for (int k = 0; k < operands; k++) p->stride[k][rank - 1] = p->stride[k][i];
    }
    if (rank == 0) {
        rank = 1;
        p->domain.dim[0] = 1;
        for (int k = 0; k < operands; k++) p->stride[k][0] = 0;
    }
    p->domain.rank = rank;
}
