/* What epilogues make of their products, where it is simple enough to be done another way. */
#include "expr/program.h"

/* A register: product times the product, plus `load` times an operand, plus a constant; all of it
 * perhaps under a ReLU, or 0 where operand number `mask` is not above 0. */
typedef struct content {
    bool known, relu;
    double product, load, constant;
    int operand, mask;
} content;

static const content nothing = {.operand = -1, .mask = -1};

static bool is_constant(const content *c) {
    return c->known && !c->relu && c->product == 0 && c->operand < 0;
}

static content scaled(content c, double by) {
    c.known = c.known && !c.relu && by != 0;
    c.product *= by, c.load *= by, c.constant *= by;
    return c;
}

static content sum_of(content a, content b) {
    bool one = a.operand < 0 || b.operand < 0 || a.operand == b.operand;
    a.known = a.known && b.known && !a.relu && !b.relu && a.mask == b.mask && one;
    a.product += b.product, a.load += b.load, a.constant += b.constant;
    if (a.operand < 0) a.operand = b.operand;
    return a;
}

static content product_by(content c, const content *constant) {
    c = scaled(c, constant->constant);
    if (c.mask >= 0 && constant->mask >= 0 && c.mask != constant->mask) c.known = false;
    if (constant->mask >= 0) c.mask = constant->mask;
    return c;
}

static content loaded(const basin_program *program, int a) {
    const int64_t *stride = program->stride[a], *dim = program->domain.dim;
    bool dense = stride[2] == 1 && (dim[1] == 1 || stride[1] == dim[2]) &&
                 (dim[0] == 1 || stride[0] == dim[1] * dim[2]);
    content c = nothing;
    c.known = dense;
    c.load = 1;
    c.operand = a;
    return c;
}

/* 1 where the operand is above 0. */
static content step_of(const content *c) {
    content out = nothing;
    out.known = c->known && !c->relu && c->product == 0 && c->load == 1 && c->constant == 0 &&
                c->operand >= 0 && c->mask < 0;
    out.constant = 1;
    out.mask = c->operand;
    return out;
}

static content relu_of(content c) {
    c.known =
        c.known && !c.relu && c.product == 1 && c.operand < 0 && c.constant == 0 && c.mask < 0;
    c.relu = true;
    return c;
}

static content content_of(const basin_program *program, const basin_step *s, const content *r) {
    content c = nothing;
    switch (s->op) {
    case BASIN_STEP_TILE: c.known = true, c.product = 1; return c;
    case BASIN_STEP_IMMEDIATE: c.known = true, c.constant = s->value; return c;
    case BASIN_STEP_LOAD: return loaded(program, s->a);
    case BASIN_OP_COPY: return r[s->a];
    case BASIN_OP_NEG: return scaled(r[s->a], -1);
    case BASIN_OP_ADD: return sum_of(r[s->a], r[s->b]);
    case BASIN_OP_SUB: return sum_of(r[s->a], scaled(r[s->b], -1));
    case BASIN_OP_MUL:
        if (is_constant(&r[s->a])) return product_by(r[s->b], &r[s->a]);
        return is_constant(&r[s->b]) ? product_by(r[s->a], &r[s->b]) : c;
    case BASIN_OP_STEP: return step_of(&r[s->a]);
    case BASIN_OP_RELU: return relu_of(r[s->a]);
    default: return c;
    }
}

basin_program_form basin_program_form_of(const basin_program *program) {
    content r[BASIN_MAX_REGISTERS];
    basin_program_form form = {BASIN_FORM_SUM, 1, 0, -1};
    if (!program) return form;
    form.kind = BASIN_FORM_OTHER;
    if (program->stores != 1) return form;
    for (int i = 0; i < BASIN_MAX_REGISTERS; i++) r[i] = nothing;
    for (int i = 0; i < program->steps; i++)
        r[program->step[i].to] = content_of(program, &program->step[i], r);
    content c = r[program->store[0]];
    if (!c.known || c.product == 0 || c.constant != 0) return form;
    if (c.mask >= 0 && c.operand >= 0) return form;
    form.kind = c.relu ? BASIN_FORM_RELU : c.mask >= 0 ? BASIN_FORM_MASKED : BASIN_FORM_SUM;
    form.of_product = c.product, form.of_operand = c.load;
    form.operand = c.mask >= 0 ? c.mask : c.operand;
    return form;
}
