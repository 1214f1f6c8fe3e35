/* Epilogues that cuBLASLt computes: a program over a product is followed register by register, each
 * a formula of the product, until the one that is stored has a form that cuBLASLt has, or none. */
#include "backend/cuda/inside.h"

typedef basin_cuda_form form;

/* A constant, perhaps masked. */
static bool is_constant(const form *f) {
    return f->known && !f->relu && f->alpha == 0 && f->c < 0 && f->row < 0;
}

static form scaled(form f, double by) {
    f.known = f.known && !f.relu && by != 0;
    f.alpha *= by, f.beta *= by, f.constant *= by, f.of_row *= by;
    return f;
}

static form sum_of(form f, form g) {
    form out = {f.known && g.known && !f.relu && !g.relu,
                false,
                f.alpha + g.alpha,
                f.beta + g.beta,
                f.constant + g.constant,
                f.of_row + g.of_row,
                f.c >= 0 ? f.c : g.c,
                f.row >= 0 ? f.row : g.row,
                f.mask};
    if (f.c >= 0 && g.c >= 0 && f.c != g.c) out.known = false;
    if (f.row >= 0 && g.row >= 0 && f.row != g.row) out.known = false;
    if (f.mask != g.mask) out.known = false;
    return out;
}

static form product_by(form f, const form *constant) {
    int mask = constant->mask;
    f = scaled(f, constant->constant);
    if (f.mask >= 0 && mask >= 0 && f.mask != mask) f.known = false;
    if (mask >= 0) f.mask = mask;
    return f;
}

/* 1 where the operand is above 0. */
static form step_of(const form *f) {
    form out = {};
    out.known = f->known && !f->relu && f->alpha == 0 && f->beta == 1 && f->constant == 0 &&
                f->c >= 0 && f->row < 0 && f->mask < 0;
    out.constant = 1;
    out.c = out.row = -1;
    out.mask = f->c;
    return out;
}

/* An operand counts as c where it lies like the result, as row where it repeats a row [n]. */
static form operand_form(const basin_call *call, const basin_program *program, int a) {
    const int64_t *stride = program->stride[a], *dim = program->domain.dim;
    form f = {};
    bool dense = (dim[2] == 1 || stride[2] == 1) && (dim[1] == 1 || stride[1] == dim[2]) &&
                 (dim[0] == 1 || stride[0] == dim[1] * dim[2]);
    bool row = (dim[2] == 1 || stride[2] == 1) && (dim[1] == 1 || stride[1] == 0) &&
               (dim[0] == 1 || stride[0] == 0);
    f.c = f.row = f.mask = -1;
    basin_kind kind = call->in[2 + a].kind;
    if (dense && (kind == call->out[0].kind || kind == BASIN_INDEX)) /* a mask stands under STEPs */
        f.known = true, f.c = a, f.beta = 1;
    else if (row && call->in[2 + a].kind == BASIN_REAL)
        f.known = true, f.row = a, f.of_row = 1;
    return f;
}

static form step_form(const basin_call *call, const basin_program *program, const basin_step *s,
                      const form *r) {
    form constant = {true, false, 0, 0, s->value, 0, -1, -1, -1};
    form tile = {true, false, 1, 0, 0, 0, -1, -1, -1}, unknown = {};
    switch (s->op) {
    case BASIN_STEP_TILE: return tile;
    case BASIN_STEP_IMMEDIATE: return constant;
    case BASIN_STEP_LOAD: return operand_form(call, program, s->a);
    case BASIN_OP_COPY: return r[s->a];
    case BASIN_OP_NEG: return scaled(r[s->a], -1);
    case BASIN_OP_ADD: return sum_of(r[s->a], r[s->b]);
    case BASIN_OP_SUB: return sum_of(r[s->a], scaled(r[s->b], -1));
    case BASIN_OP_MUL:
        if (is_constant(&r[s->a])) return product_by(r[s->b], &r[s->a]);
        return is_constant(&r[s->b]) ? product_by(r[s->a], &r[s->b]) : unknown;
    case BASIN_OP_DIV:
        return is_constant(&r[s->b]) && r[s->b].constant != 0 && r[s->b].mask < 0
                   ? scaled(r[s->a], 1 / r[s->b].constant)
                   : unknown;
    case BASIN_OP_STEP: return step_of(&r[s->a]);
    case BASIN_OP_RELU: {
        form f = r[s->a];
        f.known = f.known && !f.relu && f.alpha != 0 && f.mask < 0;
        f.relu = true;
        return f;
    }
    default: return unknown;
    }
}

form basin_cuda_epilogue(const basin_call *call) {
    const basin_program *program = call->program;
    form r[BASIN_MAX_REGISTERS] = {}, unknown = {};
    if (program->stores != 1 || call->out[0].block < 0) return unknown;
    for (int i = 0; i < program->steps; i++) {
        const basin_step *s = &program->step[i];
        r[s->to] = step_form(call, program, s, r);
    }
    form f = r[program->store[0]];
    bool bias = f.row < 0 || f.of_row == 1;
    bool alone = f.mask < 0 || (f.c < 0 && f.row < 0); /* nothing but products is masked */
    return f.known && f.alpha != 0 && f.constant == 0 && bias && alone ? f : unknown;
}
