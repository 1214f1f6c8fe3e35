/* Pointwise operations, fused into a program or single: each program becomes one kernel, written
 * out here as text and compiled once. Sizes and strides are its arguments, so programs that differ
 * only in shape share one kernel. A thread takes V neighbours at a time, all loads before the first
 * store, so an output may lie on an operand of the same size. */
#include <stdio.h>
#include <string.h>

#include <memory>
#include <string>

#include "engine/backend/cuda/elements.h"
#include "engine/backend/cuda/inside.h"
#include "engine/backend/cuda/prelude.h"

static_assert(BASIN_MAX_IN == 16 && BASIN_MAX_OUT == 6 && BASIN_MAX_RANK <= 8,
              "the sizes of basin_args in prelude.h");

/* ---- the program of a call ---- */

static int64_t count_of(const basin_cuda_program *p) {
    return basin_shape_product(&p->program.domain, 0, p->program.domain.rank);
}

static size_t size_of(bool narrow) { return narrow ? sizeof(basin_bf16) : sizeof(float); }

/* Restricts an epilogue's program over [batch, m, n] to the tile, its last operand then. */
static void take_tile(basin_cuda_program *p, const basin_cuda_tile *tile) {
    int64_t n = p->program.domain.dim[2];
    for (int a = 0; a < p->operands; a++) {
        int64_t first = tile->first * p->program.stride[a][1];
        if (p->draw[a].there)
            p->draw[a].first = first;
        else
            p->in[a] = (const char *)p->in[a] + (size_t)first * size_of(p->narrow_in[a]);
    }
    for (int o = 0; o < p->program.stores; o++)
        if (p->out[o])
            p->out[o] = (char *)p->out[o] + (size_t)(tile->first * n) * size_of(p->narrow_out[o]);
    p->program.domain.dim[1] = tile->rows;
    p->tile = p->operands++;
    p->in[p->tile] = tile->data;
    p->narrow_in[p->tile] = tile->narrow;
    int64_t *stride = p->program.stride[p->tile];
    stride[0] = tile->rows * n, stride[1] = n, stride[2] = 1;
}

bool basin_cuda_program_of(basin_cuda_program *p, const basin_cuda_frame *frame,
                           const basin_cuda_tile *tile) {
    const basin_call *call = frame->call;
    int first = tile ? 2 : 0;
    memset(p, 0, sizeof *p);
    p->program = call->program ? *call->program : basin_program_alone(p->own, call);
    p->operands = call->ins - first;
    p->tile = -1;
    for (int a = 0; a < p->operands; a++) {
        p->in[a] = frame->in[first + a];
        const basin_operand *operand = &call->in[first + a];
        p->narrow_in[a] = operand->kind == BASIN_NARROW;
        p->draw[a] = {0, operand->stream, (uint32_t)(operand->drop * 0x1p24) << 8 | 255,
                      operand->drop > 0};
    }
    for (int o = 0; o < p->program.stores; o++) {
        p->out[o] = frame->out[o];
        p->narrow_out[o] = call->out[o].kind == BASIN_NARROW;
    }
    if (tile) take_tile(p, tile);
    basin_program_merge_axes(&p->program, p->operands);
    return count_of(p) > 0;
}

/* ---- its text ---- */

typedef enum walk {
    UNUSED,
    DENSE,   /* like the domain itself */
    SCALAR,  /* one number for all */
    STRIDED, /* its own strides; neighbours along the last axis */
    REPEATED /* its own strides; one number along the last axis */
} walk;

typedef struct layout {
    walk walk[BASIN_MAX_IN];
    int width; /* V */
    bool wide; /* more elements than 31 bits count */
    bool strided;
} layout;

static walk walk_of(const basin_cuda_program *p, int a) {
    const basin_shape *domain = &p->program.domain;
    const int64_t *stride = p->program.stride[a];
    bool used = a == p->tile, dense = true, scalar = true;
    int64_t step = 1;
    for (int i = 0; i < p->program.instructions; i++)
        used = used || (p->program.instruction[i].op == BASIN_INSTRUCTION_LOAD &&
                        p->program.instruction[i].a == a);
    for (int i = domain->rank - 1; i >= 0; i--) {
        scalar = scalar && stride[i] == 0;
        dense = dense && stride[i] == step;
        step *= domain->dim[i];
    }
    if (!used) return UNUSED;
    if (scalar || step == 1) return SCALAR;
    return dense ? DENSE : stride[domain->rank - 1] == 0 ? REPEATED : STRIDED;
}

/* Whether V elements at a time never straddle a row of an operand, nor a multiple of V in it. */
static bool width_fits(const basin_cuda_program *p, const layout *l, int width) {
    int last = p->program.domain.rank - 1;
    if (p->program.domain.dim[last] % width != 0) return false;
    for (int a = 0; a < p->operands; a++) {
        const int64_t *stride = p->program.stride[a];
        if (l->walk[a] != STRIDED) continue;
        if (stride[last] != 1) return false;
        for (int i = 0; i < last; i++)
            if (stride[i] % width != 0) return false;
    }
    return true;
}

static layout layout_of(const basin_cuda_program *p) {
    layout l = {};
    bool narrow = false;
    for (int a = 0; a < p->operands; a++) {
        l.walk[a] = walk_of(p, a);
        l.strided = l.strided || l.walk[a] == STRIDED || l.walk[a] == REPEATED;
        narrow = narrow || (p->narrow_in[a] && l.walk[a] == DENSE);
    }
    for (int o = 0; o < p->program.stores; o++) narrow = narrow || p->narrow_out[o];
    l.width = narrow && width_fits(p, &l, 8) ? 8 : width_fits(p, &l, 4) ? 4 : 1;
    l.wide = count_of(p) >= (int64_t)1 << 31;
    return l;
}

static std::string number(int64_t n) { return std::to_string(n); }

static std::string float_literal(double value) {
    char text[40];
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    snprintf(text, sizeof text, "__int_as_float(0x%08x)", bits);
    return text;
}

static std::string power_text(const std::string &a, double to) {
    char text[60];
    uint64_t bits;
    bool whole = to == (double)(int)to && to >= -64 && to <= 64;
    if (to == 0) return "1.0f";
    if (to == 1) return a;
    if (to == 2) return a + " * " + a;
    if (to == -1) return "1.0f / " + a;
    if (to == 0.5) return "root(" + a + ")";
    if (to == -0.5) return "1.0f / root(" + a + ")";
    if (whole && to > 0) return "(float)whole_power<" + number((int64_t)to) + ">(" + a + ")";
    if (whole) return "(float)(1.0 / whole_power<" + number((int64_t)-to) + ">(" + a + "))";
    memcpy(&bits, &to, sizeof bits);
    snprintf(text, sizeof text, ", __longlong_as_double(0x%016llxLL))", (unsigned long long)bits);
    return "power(" + a + text;
}

static std::string unary_text(int op, const std::string &a, double value) {
    switch (op) {
    case BASIN_OP_NEG: return "-" + a;
    case BASIN_OP_ABS: return "fabsf(" + a + ")";
    case BASIN_OP_SIGN: return "(float)((" + a + " > 0) - (" + a + " < 0))";
    case BASIN_OP_SQRT: return "sqrtf(" + a + ")";
    case BASIN_OP_EXP: return "expf(" + a + ")";
    case BASIN_OP_LOG: return "logf(" + a + ")";
    case BASIN_OP_LOG1P: return "log1pf(" + a + ")";
    case BASIN_OP_EXPM1: return "expm1f(" + a + ")";
    case BASIN_OP_TANH: return "tanhf(" + a + ")";
    case BASIN_OP_SIGMOID: return "sigmoid(" + a + ")";
    case BASIN_OP_SOFTPLUS: return "softplus(" + a + ")";
    case BASIN_OP_LNCOSH: return "lncosh(" + a + ")";
    case BASIN_OP_RELU: return a + " <= 0 ? 0.0f : " + a;
    case BASIN_OP_STEP: return a + " > 0 ? 1.0f : 0.0f";
    case BASIN_OP_SIN: return "sinf(" + a + ")";
    case BASIN_OP_COS: return "cosf(" + a + ")";
    case BASIN_OP_ERF: return "erff(" + a + ")";
    case BASIN_OP_POW: return power_text(a, value);
    default: return a; /* COPY */
    }
}

static std::string binary_text(int op, const std::string &a, const std::string &b) {
    switch (op) {
    case BASIN_OP_ADD: return a + " + " + b;
    case BASIN_OP_SUB: return a + " - " + b;
    case BASIN_OP_MUL: return a + " * " + b;
    case BASIN_OP_DIV: return a + " / " + b;
    case BASIN_OP_MAX2: return "larger(" + a + ", " + b + ")";
    case BASIN_OP_MIN2: return "smaller(" + a + ", " + b + ")";
    case BASIN_OP_GREATER: return a + " > " + b + " ? 1.0f : 0.0f";
    default: return a + " == " + b + " ? 1.0f : 0.0f"; /* EQUAL */
    }
}

/* What operand a is called inside the loop over the V elements. */
static std::string operand_text(const layout *l, int a) {
    bool single = l->walk[a] == SCALAR || l->walk[a] == REPEATED;
    return "x" + number(a) + (single ? ".v[0]" : ".v[j]");
}

static std::string instruction_text(const basin_cuda_program *p, const layout *l,
                                    const basin_instruction *s) {
    std::string a = "r" + number(s->a), b = "r" + number(s->b), c = "r" + number(s->c);
    std::string value;
    if (s->op == BASIN_INSTRUCTION_LOAD)
        value = operand_text(l, s->a);
    else if (s->op == BASIN_INSTRUCTION_TILE)
        value = operand_text(l, p->tile);
    else if (s->op == BASIN_INSTRUCTION_IMMEDIATE)
        value = float_literal(s->value);
    else if (s->op < BASIN_OP_ADD)
        value = unary_text(s->op, a, s->value);
    else if (s->op < BASIN_OP_SELECT)
        value = binary_text(s->op, a, b);
    else
        value = a + " != 0 ? " + b + " : " + c;
    return "r" + number(s->to) + " = " + value + ";\n";
}

static std::string load_text(const basin_cuda_program *p, int a, int width, const std::string &at) {
    if (p->draw[a].there)
        return "const pack<float, " + number(width) + "> x" + number(a) + " = draw<" +
               number(width) + ">(p.in[" + number(a) + "], p.stride[" + number(a) + "], " + at +
               ");\n";
    return "const pack<float, " + number(width) + "> x" + number(a) + " = load_" +
           (p->narrow_in[a] ? "narrow<" : "float<") + number(width) + ">(p.in[" + number(a) +
           "], " + at + ");\n";
}

/* The offset of each operand that has strides: o0, o1, ... from the number e of the element. */
static std::string offsets_text(const basin_cuda_program *p, const layout *l) {
    const std::string type = l->wide ? "unsigned long long" : "unsigned";
    std::string text = type + " e = (" + type + ")(i * " + number(l->width) + "), q, r;\n";
    for (int a = 0; a < p->operands; a++)
        if (l->walk[a] == STRIDED || l->walk[a] == REPEATED)
            text += "long long o" + number(a) + " = 0;\n";
    for (int axis = p->program.domain.rank - 1; axis >= 0; axis--) {
        const std::string n = number(axis), dim = "p.dim[" + n + "]";
        if (axis == 0)
            text += "r = e;\n";
        else if (l->wide)
            text += "q = e / " + dim + "; r = e - q * " + dim + "; e = q;\n";
        else
            text += "q = divide(e, " + dim + ", p.multiplier[" + n + "], p.shift[" + n +
                    "]); r = e - q * " + dim + "; e = q;\n";
        for (int a = 0; a < p->operands; a++)
            if (l->walk[a] == STRIDED || l->walk[a] == REPEATED)
                text += "o" + number(a) + " += (long long)r * p.stride[" + number(a) + "][" + n +
                        "];\n";
    }
    return text;
}

static std::string text_of(const basin_cuda_program *p, const layout *l) {
    const std::string width = number(l->width), at = "i * " + width;
    std::string text = "{\n";
    for (int i = 0; i < p->program.instructions; i++)
        if (p->program.instruction[i].op == BASIN_OP_OWN)
            text += basin_cuda_own_function(&p->program.instruction[i].own, i);
    for (int a = 0; a < p->operands; a++)
        if (l->walk[a] == SCALAR) text += load_text(p, a, 1, "0");
    text += "for (long long i = (long long)block * blockDim.x + threadIdx.x; i < p.vectors; "
            "i += (long long)blocks * blockDim.x) {\n";
    if (l->strided) text += offsets_text(p, l);
    for (int a = 0; a < p->operands; a++) {
        if (l->walk[a] == DENSE) text += load_text(p, a, l->width, at);
        if (l->walk[a] == STRIDED) text += load_text(p, a, l->width, "o" + number(a));
        if (l->walk[a] == REPEATED) text += load_text(p, a, 1, "o" + number(a));
    }
    for (int o = 0; o < p->program.stores; o++)
        if (p->out[o]) text += "pack<float, " + width + "> y" + number(o) + ";\n";
    text += "#pragma unroll\nfor (int j = 0; j < " + width + "; j++) {\nfloat r0";
    for (int i = 1; i < p->program.registers; i++) text += ", r" + number(i);
    text += ";\n";
    for (int i = 0; i < p->program.instructions; i++) {
        const basin_instruction *s = &p->program.instruction[i];
        text += s->op == BASIN_OP_OWN ? basin_cuda_own_value(s, i) : instruction_text(p, l, s);
    }
    for (int o = 0; o < p->program.stores; o++)
        if (p->out[o]) text += "y" + number(o) + ".v[j] = r" + number(p->program.store[o]) + ";\n";
    text += "}\n";
    for (int o = 0; o < p->program.stores; o++)
        if (p->out[o])
            text += std::string(p->narrow_out[o] ? "store_narrow<" : "store_float<") + width +
                    ">(p.out[" + number(o) + "], " + at + ", y" + number(o) + ");\n";
    return text + "}\n}\n";
}

/* ---- running it ---- */

static basin_cuda_arguments arguments_of(const basin_cuda_program *p, const layout *l) {
    basin_cuda_arguments args = {};
    const basin_shape *domain = &p->program.domain;
    args.vectors = count_of(p) / l->width;
    for (int a = 0; a < p->operands; a++) {
        args.in[a] = p->in[a];
        for (int i = 0; i < domain->rank; i++) args.stride[a][i] = p->program.stride[a][i];
        const auto &draw = p->draw[a];
        if (draw.there) /* dense: its strides are not asked for */
            args.stride[a][0] = draw.first, args.stride[a][1] = draw.stream,
            args.stride[a][2] = draw.limit;
    }
    for (int o = 0; o < p->program.stores; o++) args.out[o] = p->out[o];
    for (int i = 0; i < domain->rank; i++) {
        basin_divisor by = basin_divisor_of(domain->dim[i]);
        args.dim[i] = by.d, args.multiplier[i] = by.multiplier, args.shift[i] = by.shift;
    }
    return args;
}

void basin_cuda_program_run(basin_cuda *cuda, const basin_cuda_program *p) {
    layout l = layout_of(p);
    CUfunc_st *function = basin_cuda_code_find(cuda, text_of(p, &l).c_str());
    if (!function) return;
    basin_cuda_arguments args = arguments_of(p, &l);
    basin_cuda_code_launch(cuda, function, basin_cuda_grid(cuda, args.vectors, 256), 256, &args);
}

void basin_cuda_pointwise(const basin_cuda_frame *frame) {
    basin_cuda_program p;
    if (basin_kind_is_byte(frame->call->out[0].kind)) {
        basin_cuda_bytes_copy(frame);
        return;
    }
    if (basin_cuda_program_of(&p, frame, NULL)) basin_cuda_program_run(frame->cuda, &p);
}

/* ---- several at once ---- */

static size_t bytes_of(const basin_operand *operand) {
    size_t size = operand->kind == BASIN_NARROW ? sizeof(basin_bf16) : sizeof(float);
    return (size_t)basin_shape_product(&operand->shape, 0, operand->shape.rank) * size;
}

static bool overlap(const void *a, const basin_operand *x, const void *b, const basin_operand *y) {
    return a && b && (const char *)a < (const char *)b + bytes_of(y) &&
           (const char *)b < (const char *)a + bytes_of(x);
}

/* Whether a result of f lies on an operand or a result of g. */
static bool disturbs(const basin_cuda_frame *f, const basin_cuda_frame *g) {
    for (int o = 0; o < f->call->outs; o++) {
        for (int i = 0; i < g->call->ins; i++)
            if (overlap(f->out[o], &f->call->out[o], g->in[i], &g->call->in[i])) return true;
        for (int i = 0; i < g->call->outs; i++)
            if (overlap(f->out[o], &f->call->out[o], g->out[i], &g->call->out[i])) return true;
    }
    return false;
}

static bool apart(const basin_cuda_frame *frame, int count) {
    for (int i = 0; i < count; i++)
        if (disturbs(&frame[i], &frame[count]) || disturbs(&frame[count], &frame[i])) return false;
    return true;
}

/* Makes l, which serves programs so far (all over `one` element or not), also serve m: fewer
 * neighbours at a time, operands of one element as of many. False: cannot be. */
static bool agree(layout *l, bool one, const layout *m, bool other, int operands) {
    if (l->wide != m->wide) return false;
    for (int a = 0; a < operands; a++) {
        if (l->walk[a] == m->walk[a]) continue;
        bool dense = (l->walk[a] == DENSE && other) || (m->walk[a] == DENSE && one);
        bool scalar = l->walk[a] == SCALAR || m->walk[a] == SCALAR;
        if (!dense || !scalar) return false;
        l->walk[a] = DENSE;
    }
    l->width = l->width < m->width ? l->width : m->width;
    return true;
}

/* Programs of the first frames that do the same with operands that do not meet, as many as there
 * are, and the layout that serves all of them. Few elements may be read one by one for that. */
static int alike(basin_cuda_program *p, layout *l, const basin_cuda_frame *frame, int frames) {
    const int64_t few = (int64_t)1 << 20;
    int64_t all = count_of(&p[0]);
    bool one = all == 1;
    int count = 1;
    *l = layout_of(&p[0]);
    for (; count < frames && apart(frame, count); count++) {
        basin_cuda_program *q = &p[count];
        if (!basin_cuda_program_of(q, &frame[count], NULL)) break;
        layout next = layout_of(q), both = *l;
        bool other = count_of(q) == 1;
        all += count_of(q);
        if (p->operands != q->operands || !agree(&both, one, &next, other, p->operands)) break;
        bool same = both.width == l->width && both.width == next.width;
        if ((!same && all > few) || text_of(&p[0], &both) != text_of(q, &both)) break;
        *l = both;
        one = one && other;
    }
    return count;
}

int basin_cuda_pointwise_many(const basin_cuda_frame *frame, int frames) {
    basin_cuda *cuda = frame->cuda;
    static_assert(sizeof(basin_cuda_many) <= 32764, "what the arguments of a kernel may take");
    std::unique_ptr<basin_cuda_many> many(new basin_cuda_many());
    std::unique_ptr<basin_cuda_program[]> p(new basin_cuda_program[BASIN_CUDA_MANY]);
    layout l;
    unsigned blocks = 0;
    if (!basin_cuda_program_of(&p[0], frame, NULL)) return 1;
    int count = alike(p.get(), &l, frame, frames < BASIN_CUDA_MANY ? frames : BASIN_CUDA_MANY);
    if (count == 1) {
        basin_cuda_pointwise(frame);
        return 1;
    }
    for (int i = 0; i < count; i++) {
        many->p[i] = arguments_of(&p[i], &l);
        blocks += basin_cuda_grid(cuda, many->p[i].vectors, 256);
        many->first[i + 1] = blocks;
    }
    const std::string text = text_of(&p[0], &l);
    CUfunc_st *function = basin_cuda_code_find(cuda, (BASIN_CUDA_FOR_MANY + text).c_str());
    if (function) basin_cuda_code_launch(cuda, function, blocks, 256, many.get());
    return count;
}
