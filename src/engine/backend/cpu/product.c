/* The batched matrix product: c[n, i, j] = sum over l of a[n, i, l] b[n, l, j], each factor plain
 * or transposed, with the epilogue program run on every tile while it is in the nearest cache. */
#include "engine/backend/cpu/cpu.h"
#include "engine/backend/gemm.h"

/* Whether every epilogue operand walks [batch, m] as one axis. */
static bool epilogue_folds(const basin_program *program, int operands, int64_t m) {
    for (int a = 0; a < operands; a++)
        if (program->stride[a][0] != program->stride[a][1] * m) return false;
    return true;
}

static basin_gemm_precision precision_of(basin_kind factors) {
    return factors == BASIN_NARROW ? BASIN_GEMM_BF16 : BASIN_GEMM_F32;
}

/* The product without its addresses. One B for a whole batch makes it one tall product. */
static basin_gemm describe(const basin_call *call) {
    basin_factor a = basin_factor_of(&call->in[0].shape, call->attr.transpose_a);
    basin_factor b = basin_factor_of(&call->in[1].shape, call->attr.transpose_b);
    basin_gemm g = {.batch = a.batch == 1 ? b.batch : a.batch, .m = a.rows, .n = b.columns};
    g.k = a.columns;
    bool folds = b.batch == 1 && a.batch > 1 && !call->attr.transpose_a;
    if (folds && call->program) folds = epilogue_folds(call->program, call->ins - 2, g.m);
    if (folds) g.m *= g.batch, g.batch = 1;
    g.a_row = a.step_row, g.a_col = a.step_column, g.a_batch = a.step_batch;
    g.b_row = b.step_row, g.b_col = b.step_column, g.b_batch = b.step_batch;
    g.c_row = g.n, g.c_batch = g.m * g.n;
    g.precision = precision_of(call->in[0].kind);
    return g;
}

static void epilogue(void *context, const float *tile, int64_t tile_row, int64_t batch, int64_t row,
                     int64_t col, int64_t rows, int64_t cols) {
    _Alignas(64) float scratch[BASIN_CPU_SCRATCH];
    const basin_cpu_program *p = context;
    int64_t step = p->block / cols; /* rows that fit a register */
    for (int64_t r = 0; r < rows; r += step) {
        int64_t max = rows - r < step ? rows - r : step;
        basin_cpu_tile at = {tile + r * tile_row, tile_row, batch, row + r, col, max, cols};
        basin_cpu_program_tile(p, scratch, &at);
    }
}

/* A narrow result is rounded on its way out, though there be nothing else to do. */
static bool has_epilogue(const basin_call *call) {
    return call->program || call->out[0].kind == BASIN_NARROW;
}

size_t basin_cpu_matmul_workspace(const basin_call *call, int threads) {
    basin_gemm g = describe(call);
    if (has_epilogue(call)) g.epilogue = epilogue;
    return basin_gemm_workspace(&g, threads);
}

typedef struct finishing {
    basin_finish f;
    const basin_simd *simd;
    int64_t batch, step_batch; /* elements */
} finishing;

static void finish(void *context, const float *tile, int64_t tile_row, int64_t batch, int64_t row,
                   int64_t col, int64_t rows, int64_t cols) {
    const finishing *at = context;
    int64_t first = batch * at->batch + row * at->f.row + col;
    basin_finish f = at->f;
    if (f.step) f.step += batch * at->step_batch + row * f.step_row;
    at->simd->finish(&f, tile, tile_row, first, rows, cols);
}

/* Whether a product ends in a form that one pass over its tiles computes. */
static bool finishing_of(finishing *to, const basin_frame *frame, const basin_gemm *g) {
    const basin_call *call = frame->call;
    basin_form form = call->form;
    if (!form.known) form = basin_form_with_more(call->program, call);
    bool narrow = call->out[0].kind == BASIN_NARROW, steps = form.step >= 0;
    if (!form.known || form.row >= 0 || form.more >= 0 || (form.mask >= 0 && form.c >= 0) ||
        (steps && (narrow || !frame->out[0])))
        return false;
    int other = form.mask >= 0 ? form.mask : form.c;
    *to = (finishing){.simd = frame->simd, .batch = g->c_batch};
    to->f = (basin_finish){.to = frame->out[0],
                           .other = other >= 0 ? frame->in[2 + other] : NULL,
                           .row = g->c_row,
                           .alpha = (float)form.alpha,
                           .beta = (float)form.beta,
                           .narrow = narrow,
                           .relu = form.relu,
                           .masks = form.mask >= 0};
    if (!steps) return true;
    const int64_t *stride = call->program->stride[form.step];
    to->f.step = frame->in[2 + form.step], to->f.step_row = stride[1], to->step_batch = stride[0];
    if (call->outs > 1) to->f.moved = frame->out[1];
    return true;
}

/* Whether the product is added to what is there already. */
static bool adds_in_place(const finishing *to) {
    const basin_finish *f = &to->f;
    return f->other == f->to && !f->step && !f->narrow && !f->relu && !f->masks && f->alpha == 1 &&
           f->beta == 1;
}

/* Any other epilogue is a program over the tiles, or nothing but rounding. */
static void run_program(const basin_frame *frame, basin_gemm *g) {
    const basin_call *call = frame->call;
    basin_instruction tile = {.op = BASIN_INSTRUCTION_TILE};
    basin_program program = {.instructions = 1, .registers = 1, .stores = 1, .instruction = &tile};
    if (call->program) program = *call->program;
    program.domain = BASIN_SHAPE(g->batch, g->m, g->n);
    basin_cpu_program p = basin_cpu_program_prepare(&program, frame->in + 2, frame->out,
                                                    frame->simd, basin_cpu_kinds_of(call, 2));
    g->epilogue = epilogue;
    g->context = &p;
    basin_gemm_run(g, frame->threads, frame->workspace);
}

void basin_cpu_matmul(const basin_frame *frame) {
    const basin_call *call = frame->call;
    basin_gemm g = describe(call);
    finishing end;
    g.a = frame->in[0], g.b = frame->in[1], g.c = frame->out[0];
    if (call->attr.packed_b) g.b_packed = frame->in[1];
    g.c_narrow = call->out[0].kind == BASIN_NARROW;
    if (has_epilogue(call) && !finishing_of(&end, frame, &g)) {
        run_program(frame, &g);
        return;
    }
    if (has_epilogue(call) && adds_in_place(&end))
        g.accumulate = true;
    else if (has_epilogue(call))
        g.epilogue = finish, g.context = &end;
    basin_gemm_run(&g, frame->threads, frame->workspace);
}

size_t basin_cpu_packed_bytes(const basin_backend *backend, int64_t k, int64_t n, basin_kind kind) {
    (void)backend;
    return basin_gemm_packed_size(k, n, precision_of(kind));
}

void basin_cpu_pack(const basin_frame *frame) {
    basin_factor b = basin_factor_of(&frame->call->in[0].shape, frame->call->attr.transpose_b);
    basin_gemm_pack(frame->out[0], frame->in[0], b.step_row, b.step_column, b.rows, b.columns,
                    precision_of(frame->call->in[0].kind), frame->threads);
}
