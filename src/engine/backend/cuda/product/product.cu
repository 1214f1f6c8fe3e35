/* Matrix products through cuBLASLt, which counts columns first: a row-major D = A B is its D' = B'
 * A'. An epilogue that has the form relu?(alpha tile + beta c + bias) is computed with the product;
 * another one runs as a program over the raw product, which waits in the workspace (the result
 * itself may lie on an operand of the program). Algorithms are chosen once for each kind of
 * product: cuBLASLt's first, or one that is faster and gives the same bits (below). ReLUs, which
 * may write a mask, and products that read one have special kernels where available
 * (product/relu_sm90a.cu). */
#include <new>
#include <string.h>
#include <string>
#include <unordered_map>

#include "engine/backend/cuda/elements.h"
#include "engine/backend/cuda/inside.h"

#define TRY_LT(cuda, expression) try_lt((cuda), (expression), #expression, __LINE__)
static bool try_lt(basin_cuda *cuda, cublasStatus_t code, const char *what, int line) {
    if (code != CUBLAS_STATUS_SUCCESS) basin_cuda_fail_lt(cuda, code, what, __FILE__, line);
    return code == CUBLAS_STATUS_SUCCESS;
}

/* ---- kinds of products ---- */

/* The description of a kind of product for cuBLASLt. */
typedef struct kind {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t b, a, d; /* in cuBLASLt's order: first factor, second, result */
    cublasLtMatmulAlgo_t algo;
    bool exists;
} kind;

struct basin_cuda_factors {
    std::unordered_map<std::string, kind> known;
};

void basin_cuda_factors_new(basin_cuda *cuda) {
    cuda->factors = new (std::nothrow) basin_cuda_factors();
    if (!cuda->factors)
        basin_cuda_fail(cuda, cudaErrorMemoryAllocation, "products", __FILE__, __LINE__);
}

static void kind_free(kind *k) {
    if (k->desc) cublasLtMatmulDescDestroy(k->desc);
    if (k->a) cublasLtMatrixLayoutDestroy(k->a);
    if (k->b) cublasLtMatrixLayoutDestroy(k->b);
    if (k->d) cublasLtMatrixLayoutDestroy(k->d);
}

void basin_cuda_factors_free(basin_cuda *cuda) {
    if (!cuda->factors) return;
    for (auto &entry : cuda->factors->known) kind_free(&entry.second);
    delete cuda->factors;
    cuda->factors = NULL;
}

/* All of the product that its algorithm depends on. */
static std::string key_of(const basin_cuda_product *p) {
    const int64_t field[] = {
        p->batch,  p->m,        p->n,         p->k,      p->transpose_a,    p->transpose_b,
        p->relu,   p->bias,     p->step_a,    p->step_b, p->narrow_factors, p->narrow_result,
        p->add,    p->products, p->alignment, p->row_a,  p->row_b,          p->row_d,
        p->kind_a, p->kind_b};
    return std::string((const char *)field, sizeof field);
}

static cudaDataType_t type_of(bool narrow, basin_kind kind) {
    return kind == BASIN_E4M3   ? CUDA_R_8F_E4M3
           : kind == BASIN_E5M2 ? CUDA_R_8F_E5M2
           : narrow             ? CUDA_R_16BF
                                : CUDA_R_32F;
}

/* As cuBLASLt counts them: columns one after the other, `apart` elements apart (0: dense). */
static void make_layout(basin_cuda *cuda, cublasLtMatrixLayout_t *layout, cudaDataType_t type,
                        int64_t rows, int64_t columns, int64_t apart, int64_t batch, int64_t step) {
    int32_t entries = (int32_t)batch;
    if (!TRY_LT(cuda, cublasLtMatrixLayoutCreate(layout, type, (uint64_t)rows, (uint64_t)columns,
                                                 apart ? apart : rows)))
        return;
    if (batch == 1) return;
    TRY_LT(cuda, cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                  &entries, sizeof entries));
    TRY_LT(cuda, cublasLtMatrixLayoutSetAttribute(
                     *layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step));
}

static void set_operation(basin_cuda *cuda, kind *k, const basin_cuda_product *p) {
    bool tf32 = !p->narrow_factors && p->products == BASIN_PRODUCTS_TF32;
    cublasOperation_t first = p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasOperation_t second = p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = p->relu && p->bias ? CUBLASLT_EPILOGUE_RELU_BIAS
                                  : p->relu          ? CUBLASLT_EPILOGUE_RELU
                                  : p->bias          ? CUBLASLT_EPILOGUE_BIAS
                                                     : CUBLASLT_EPILOGUE_DEFAULT;
    if (!TRY_LT(cuda, cublasLtMatmulDescCreate(
                          &k->desc, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                          CUDA_R_32F)))
        return;
    auto set = [&](cublasLtMatmulDescAttributes_t which, const auto &value) {
        TRY_LT(cuda, cublasLtMatmulDescSetAttribute(k->desc, which, &value, sizeof value));
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, first);
    set(CUBLASLT_MATMUL_DESC_TRANSB, second);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    if (p->bias) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
    /* Tensor cores sum bytes with 14 bits: 5e-3 on 50,000 terms, a tenth of the rounding's. */
    if (basin_kind_is_byte(p->kind_a)) set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, (int8_t)1);
}

/* Up to `room` algorithms, the one that cuBLASLt thinks best first; returns how many. */
static int ask_heuristic(basin_cuda *cuda, const kind *k, const basin_cuda_product *p,
                         cublasLtMatmulAlgo_t *algo, int room) {
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t found[BASIN_CUDA_CANDIDATES];
    int count = 0, good = 0;
    if (!TRY_LT(cuda, cublasLtMatmulPreferenceCreate(&preference))) return 0;
    cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                         &cuda->lt_bytes, sizeof cuda->lt_bytes);
    const cublasLtMatmulPreferenceAttributes_t sides[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    for (int i = 0; i < 4; i++)
        cublasLtMatmulPreferenceSetAttribute(preference, sides[i], &p->alignment,
                                             sizeof p->alignment);
    const void *somewhere =
        (const char *)cuda->lt_workspace + p->alignment; /* as aligned as it is */
    if (p->bias)
        cublasLtMatmulDescSetAttribute(k->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &somewhere,
                                       sizeof somewhere);
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(cuda->lt, k->desc, k->b, k->a, k->d,
                                                           k->d, preference, room, found, &count);
    for (int i = 0; i < count && status == CUBLAS_STATUS_SUCCESS; i++)
        if (found[i].state == CUBLAS_STATUS_SUCCESS) algo[good++] = found[i].algo;
    cublasLtMatmulPreferenceDestroy(preference);
    return good;
}

static bool pays_to_time(const basin_cuda *cuda, const basin_cuda_product *p) {
    const double minimum = 0x1p31; /* multiply-adds: some microseconds */
    return cuda->tune && !p->bias && (p->alignment == 64 || basin_kind_is_byte(p->kind_a)) &&
           (double)p->batch * (double)p->m * (double)p->n * (double)p->k >= minimum;
}

static void choose_algorithm(basin_cuda *cuda, kind *k, const basin_cuda_product *p) {
    cublasLtMatmulAlgo_t algo[BASIN_CUDA_CANDIDATES];
    bool timed = pays_to_time(cuda, p);
    int count = ask_heuristic(cuda, k, p, algo, timed ? BASIN_CUDA_CANDIDATES : 1);
    k->exists = count > 0;
    if (!k->exists) return;
    basin_cuda_search search = {k->desc, k->b, k->a, k->d, algo, count};
    k->algo = algo[count > 1 ? basin_cuda_search_run(cuda, &search, p) : 0];
}

static kind *find(basin_cuda *cuda, const basin_cuda_product *p) {
    std::string key = key_of(p);
    auto found = cuda->factors->known.find(key);
    if (found != cuda->factors->known.end()) return &found->second;
    kind k = {};
    bool ta = p->transpose_a, tb = p->transpose_b;
    set_operation(cuda, &k, p);
    make_layout(cuda, &k.b, type_of(p->narrow_factors, p->kind_b), tb ? p->k : p->n,
                tb ? p->n : p->k, p->row_b, p->batch, p->step_b);
    make_layout(cuda, &k.a, type_of(p->narrow_factors, p->kind_a), ta ? p->m : p->k,
                ta ? p->k : p->m, p->row_a, p->batch, p->step_a);
    make_layout(cuda, &k.d, type_of(p->narrow_result, BASIN_REAL), p->n, p->m, p->row_d, p->batch,
                p->m * p->n);
    if (k.desc && k.a && k.b && k.d) choose_algorithm(cuda, &k, p);
    return &(cuda->factors->known[key] = k);
}

bool basin_cuda_product_exists(basin_cuda *cuda, const basin_cuda_product *product) {
    return find(cuda, product)->exists;
}

void basin_cuda_product_run(basin_cuda *cuda, const basin_cuda_product *p, void *d, const void *a,
                            const void *b, const void *c, const void *bias) {
    kind *k = find(cuda, p);
    float alpha = (float)(p->alpha * p->unit), beta = p->add ? (float)p->beta : 0;
    if (!k->exists) {
        if (cuda->error.status == BASIN_OK)
            basin_fail(&cuda->error, BASIN_UNSUPPORTED,
                       "backend cuda: cuBLASLt has no algorithm for a product [%lld, %lld] by "
                       "[%lld, %lld], batch %lld",
                       (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n,
                       (long long)p->batch);
        return;
    }
    if (p->bias)
        TRY_LT(cuda, cublasLtMatmulDescSetAttribute(k->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                                    &bias, sizeof bias));
    TRY_LT(cuda,
           cublasLtMatmul(cuda->lt, k->desc, &alpha, b, k->b, a, k->a, &beta, c ? c : d, k->d, d,
                          k->d, &k->algo, cuda->lt_workspace, cuda->lt_bytes, cuda->stream));
}

/* ---- MATMUL ---- */

static int64_t batch_of(const basin_shape *shape) {
    return basin_shape_product(shape, 0, shape->rank - 2);
}

/* Factors of bytes; parts of joint ones begin at multiples of 16. */
static void take_bytes(basin_cuda_product *p, const basin_call *call) {
    p->kind_a = call->in[0].kind, p->kind_b = call->in[1].kind, p->kind_d = call->out[0].kind;
    p->narrow_factors = true;
    p->unit = 1 / (call->in[0].scale * call->in[1].scale);
    if (basin_kind_is_byte(p->kind_d)) p->scale = call->out[0].scale;
    p->alignment = 16;
}

static basin_cuda_product product_of(const basin_call *call) {
    const basin_shape *a = &call->in[0].shape, *b = &call->in[1].shape;
    basin_cuda_product p = {};
    int64_t batch_a = batch_of(a), batch_b = batch_of(b);
    p.transpose_a = call->attr.transpose_a, p.transpose_b = call->attr.transpose_b;
    p.batch = batch_a == 1 ? batch_b : batch_a;
    p.m = a->dim[a->rank - (p.transpose_a ? 1 : 2)];
    p.k = a->dim[a->rank - (p.transpose_a ? 2 : 1)];
    p.n = b->dim[b->rank - (p.transpose_b ? 2 : 1)];
    p.step_a = batch_a == 1 ? 0 : p.m * p.k;
    p.step_b = batch_b == 1 ? 0 : p.n * p.k;
    p.row_a = call->in[0].stride, p.row_b = call->in[1].stride, p.row_d = call->out[0].stride;
    p.narrow_factors = call->in[0].kind == BASIN_NARROW;
    p.narrow_result = call->out[0].kind == BASIN_NARROW;
    p.products = call->attr.products == BASIN_PRODUCTS_TF32 ? BASIN_PRODUCTS_TF32 : 0;
    p.alignment = 64; /* buffers begin at multiples of 64 bytes */
    p.alpha = p.unit = p.scale = 1;
    if (basin_kind_is_byte(call->in[0].kind)) take_bytes(&p, call);
    return p;
}

static bool writes_mask(const basin_call *call) {
    return call->outs == 2 && call->out[1].kind == BASIN_INDEX;
}

static bool reads_mask(const basin_call *call, const basin_form *f) {
    return f->mask >= 0 && call->in[2 + f->mask].kind == BASIN_INDEX;
}

/* The product with as much of its epilogue as can be computed with it: all of it, and true, or
 * none. The part of a mask may follow. No program reads bits: a product with such a mask has no
 * other way, and says so when it runs where cuBLASLt has no algorithm. */
static bool fuse(basin_cuda *cuda, basin_cuda_product *p, basin_form *f, const basin_call *call) {
    *f = basin_form_of(call->program, call);
    if (!call->program) return true;
    if (p->k == 0 || call->out[0].block < 0 || !f->known) return false;
    bool bytes = basin_kind_is_byte(p->kind_a);
    if (f->row >= 0 && (p->narrow_result || bytes)) return false; /* a bias is as its result */
    if (f->c >= 0 && p->row_d) return false;                      /* c is dense, cuBLASLt's as D */
    if (f->mask >= 0 && !reads_mask(call, f)) return false;       /* one of numbers */
    basin_cuda_product fused = *p;
    fused.relu = f->relu;
    fused.bias = f->row >= 0;
    fused.add = f->c >= 0;
    fused.alpha = f->alpha, fused.beta = f->beta;
    fused.own = (f->relu || f->mask >= 0) && basin_cuda_relu_product_exists(cuda, &fused);
    fused.masked = fused.own && f->mask >= 0;
    fused.marks = fused.own && f->relu && writes_mask(call);
    if (!fused.own && !reads_mask(call, f) && !basin_cuda_product_exists(cuda, &fused))
        return false;
    *p = fused;
    return true;
}

/* ---- long sums ---- */

/* The gradient of a weight is a small matrix, each element of it a sum over all tokens: too few
 * tiles for the processors. cuBLASLt cuts such sums by itself where factors are narrow; for others
 * they are cut here, into a number of parts that depends only on the sizes. */
static int64_t parts_of(const basin_cuda *cuda, const basin_cuda_product *p) {
    const int64_t maximum = 32, room = (int64_t)96 << 20;
    bool plain = !p->relu && !p->bias && !p->narrow_result && !p->row_a && !p->row_b && !p->row_d;
    int64_t tiles = basin_cuda_ceil(p->m, 256) * basin_cuda_ceil(p->n, 128);
    if (p->narrow_factors || !plain || p->batch != 1 || !p->transpose_a || p->transpose_b ||
        p->k < 4096 || p->m * p->n % 4 != 0 || tiles >= 2 * cuda->multiprocessors)
        return 1;
    int64_t parts = 4 * cuda->multiprocessors / tiles; /* four rounds of tiles */
    if (parts > maximum) parts = maximum;
    while (parts > 1 && (p->k % (4 * parts) != 0 || parts * p->m * p->n * 4 > room)) parts--;
    return parts;
}

/* d = alpha (the sum of the parts) + beta c; count is a multiple of 4 */
static __global__ void join_parts(float *d, const float *part, const float *c, int parts,
                                  int64_t count, float alpha, float beta) {
    typedef basin_pack<float, 4> four;
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count / 4) return;
    four sum = ((const four *)part)[i], more = {};
    for (int k = 1; k < parts; k++) {
        four next = ((const four *)(part + k * count))[i];
        BASIN_UNROLL (j, 4) sum.v[j] += next.v[j];
    }
    if (c) more = ((const four *)c)[i];
    BASIN_UNROLL (j, 4) sum.v[j] = alpha * sum.v[j] + beta * more.v[j];
    ((four *)d)[i] = sum;
}

static basin_cuda_product part_of(const basin_cuda_product *p, int64_t parts) {
    basin_cuda_product part = *p;
    part.batch = parts;
    part.k = p->k / parts;
    part.step_a = part.k * p->m, part.step_b = part.k * p->n;
    part.alpha = 1, part.beta = 0, part.add = false;
    return part;
}

static void run_in_parts(const basin_cuda_frame *frame, const basin_cuda_product *p, const void *c,
                         int64_t parts) {
    basin_cuda *cuda = frame->cuda;
    basin_cuda_product part = part_of(p, parts);
    int64_t count = p->m * p->n;
    basin_cuda_product_run(cuda, &part, frame->workspace, frame->in[0], frame->in[1], NULL, NULL);
    join_parts<<<(unsigned)basin_cuda_ceil(count / 4, 256), 256, 0, cuda->stream>>>(
        (float *)frame->out[0], (const float *)frame->workspace, p->add ? (const float *)c : NULL,
        (int)parts, count, (float)p->alpha, (float)p->beta);
    BASIN_CUDA_LAUNCHED(cuda, "parts of a product");
}

/* ---- running ---- */

static bool is_empty(const basin_cuda_product *p) {
    return p->batch == 0 || p->m == 0 || p->n == 0;
}

/* Rows at a time of a product with an epilogue: raw ones stay in the cache between kernels. */
static int64_t rows_at_a_time(const basin_cuda_product *p) {
    const int64_t cached = (int64_t)24 << 20, step = 256;
    int64_t size = p->narrow_result ? (int64_t)sizeof(basin_bf16) : (int64_t)sizeof(float);
    int64_t rows = cached / (p->n * size) / step * step;
    if (p->batch > 1 || p->transpose_a || rows < step || p->m < 2 * rows) return p->m;
    return rows;
}

size_t basin_cuda_matmul_workspace(const basin_cuda *cuda, const basin_call *call) {
    basin_cuda_product p = product_of(call);
    basin_form f;
    if (is_empty(&p) || basin_cuda_small_fits(cuda, call)) return 0;
    if (fuse((basin_cuda *)cuda, &p, &f, call)) {
        int64_t parts = p.own ? 1 : parts_of(cuda, &p);
        basin_cuda_product chosen = parts > 1 ? part_of(&p, parts) : p;
        if (p.k > 0 && !p.own)
            basin_cuda_product_exists((basin_cuda *)cuda, &chosen); /* before a run */
        return parts > 1 ? (size_t)(parts * p.m * p.n) * sizeof(float) : 0;
    }
    return (size_t)(p.batch * rows_at_a_time(&p) * p.n) *
           (p.narrow_result ? sizeof(basin_bf16) : sizeof(float));
}

/* A sum over nothing is zero. */
static void multiply(basin_cuda *cuda, const basin_cuda_product *p, void *d, const void *a,
                     const void *b, const void *c, const void *bias) {
    size_t size = p->narrow_result ? sizeof(basin_bf16) : sizeof(float);
    size_t row = (size_t)(p->row_d ? p->row_d : p->n) * size;
    if (p->k > 0)
        basin_cuda_product_run(cuda, p, d, a, b, c, bias);
    else
        BASIN_CUDA_TRY(cuda, cudaMemset2DAsync(d, row, 0, (size_t)p->n * size,
                                               (size_t)(p->batch * p->m), cuda->stream));
}

/* Puts rows of the workspace where those of the result are, `apart` elements apart. */
static void lay_apart(const basin_cuda_frame *frame, const basin_cuda_tile *tile,
                      const basin_cuda_product *p, int64_t apart) {
    size_t size = tile->narrow ? sizeof(basin_bf16) : sizeof(float);
    size_t row = (size_t)p->n * size, step = (size_t)apart * size;
    char *to = (char *)frame->out[0] + (size_t)tile->first * step;
    BASIN_CUDA_TRY(frame->cuda, cudaMemcpy2DAsync(to, step, tile->data, row, row,
                                                  (size_t)(p->batch * tile->rows),
                                                  cudaMemcpyDeviceToDevice, frame->cuda->stream));
}

/* Rows of the raw product into the workspace, then the program over them, until all are done. Where
 * rows of the result lie apart, they are copied from there. */
static void run_in_turns(const basin_cuda_frame *frame, basin_cuda_product p) {
    basin_cuda *cuda = frame->cuda;
    int64_t all = p.m, turn = rows_at_a_time(&p), row = p.row_a ? p.row_a : p.k;
    int64_t apart = frame->out[0] ? p.row_d : 0;
    p.row_d = 0;
    size_t factor = p.narrow_factors ? sizeof(basin_bf16) : sizeof(float);
    for (int64_t first = 0; first < all; first += turn) {
        basin_cuda_program program;
        basin_cuda_tile tile = {frame->workspace, p.narrow_result, first,
                                all - first < turn ? all - first : turn};
        const char *a = (const char *)frame->in[0] + (size_t)(first * row) * factor;
        p.m = tile.rows;
        if (!basin_cuda_codes_collecting(cuda))
            multiply(cuda, &p, frame->workspace, a, frame->in[1], NULL, NULL);
        if (!basin_cuda_program_of(&program, frame, &tile)) continue;
        if (apart) program.out[0] = frame->workspace;
        basin_cuda_program_run(cuda, &program);
        if (apart && !basin_cuda_codes_collecting(cuda)) lay_apart(frame, &tile, &p, apart);
    }
}

/* Where the product goes transposed; NULL where nobody asks for that. */
static void *transposed_of(const basin_cuda_frame *frame) {
    return frame->call->byte_copies > BASIN_BYTE_COPY_TRANSPOSED
               ? frame->byte_copy[BASIN_BYTE_COPY_TRANSPOSED]
               : NULL;
}

/* The product with its epilogue. */
static void run_fused(const basin_cuda_frame *frame, const basin_cuda_product *p,
                      const basin_form *f) {
    basin_cuda *cuda = frame->cuda;
    const void *c = f->c < 0 ? NULL : frame->in[2 + f->c];
    const void *bias = f->row < 0 ? NULL : frame->in[2 + f->row];
    const void *mask = f->mask < 0 ? NULL : frame->in[2 + f->mask];
    int64_t parts = p->own ? 1 : parts_of(cuda, p);
    if (p->own)
        basin_cuda_relu_product_run(cuda, p, frame->out[0], transposed_of(frame), frame->in[0],
                                    frame->in[1], p->marks ? frame->out[1] : (void *)mask);
    else if (parts > 1)
        run_in_parts(frame, p, c, parts);
    else
        multiply(cuda, p, frame->out[0], frame->in[0], frame->in[1], c, bias);
    if (mask && !p->masked) basin_cuda_mask_apply(cuda, p, frame->out[0], mask);
}

/* Plans ask for nothing else (plan/passes/bytes.c). */
static void refuse_bytes(basin_cuda *cuda, const basin_cuda_product *p) {
    if (cuda->error.status == BASIN_OK)
        basin_fail(&cuda->error, BASIN_UNSUPPORTED,
                   "backend cuda: no kernel for a product of bytes [%lld, %lld] by [%lld, %lld] "
                   "with such an epilogue",
                   (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n);
}

void basin_cuda_matmul(const basin_cuda_frame *frame) {
    basin_cuda *cuda = frame->cuda;
    const basin_call *call = frame->call;
    basin_cuda_product p = product_of(call);
    basin_form f;
    if (is_empty(&p)) return;
    if (basin_cuda_small_fits(cuda, call)) {
        basin_cuda_small_run(frame);
        return;
    }
    bool fused = fuse(cuda, &p, &f, call);
    if (basin_kind_is_byte(p.kind_a) && (!fused || (basin_kind_is_byte(p.kind_d) && !p.own))) {
        refuse_bytes(cuda, &p);
        return;
    }
    if (!fused) run_in_turns(frame, p);
    if (basin_cuda_codes_collecting(cuda)) return;
    if (fused) run_fused(frame, &p, &f);
    if (writes_mask(call) && !p.marks)
        basin_cuda_mask_write(cuda, &p, frame->out[1], frame->out[0]);
    if (call->byte_copies && frame->byte_copy[0])
        basin_cuda_bytes_store(cuda, frame->byte_copy[0], &call->byte_copy[0], frame->out[0],
                               p.narrow_result, p.row_d, p.m, p.n);
}

/* Which of several algorithms computes a large product fastest, by running them on random numbers.
 * Only those that give the same bits as the first, the heuristic's choice, take part: results do
 * not depend on which wins, and a run repeats bit for bit though clocks do not. */

enum { ROUNDS = 3, REPEATS = 3 };

/* Device memory for one product, and what the first algorithm made of it. */
struct arena {
    void *a, *b, *c, *d, *first;
    int *differs;
    cudaEvent_t begin, end;
    int64_t size_a, size_b, size_d; /* elements */
};

/* Numbers in (-1, 1) from a hash of their place. */
BASIN_DEVICE float random_at(int64_t i, uint32_t seed) {
    uint32_t h = ((uint32_t)i ^ (uint32_t)(i >> 32) ^ seed) * 0x9e3779b1u;
    h = (h ^ h >> 15) * 0x85ebca77u;
    h = (h ^ h >> 13) * 0xc2b2ae3du;
    return (float)(int32_t)(h ^ h >> 16) * 0x1p-31f;
}

template <typename T> static __global__ void fill_random(T *x, int64_t count, uint32_t seed) {
    BASIN_GRID (i, count, blockDim.x) x[i] = basin_from_float<T>(random_at(i, seed));
}

static __global__ void compare(int *differs, const uint16_t *x, const uint16_t *y, int64_t count) {
    bool other = false;
    BASIN_GRID (i, count, blockDim.x) other = other || x[i] != y[i];
    if (other) *differs = 1;
}

static __global__ void fill_bytes(uint8_t *x, int64_t count, uint32_t seed) {
    BASIN_GRID (i, count, blockDim.x) x[i] = (uint8_t)basin_two_bytes<false>(random_at(i, seed), 0);
}

static size_t size_of(bool narrow) { return narrow ? sizeof(basin_bf16) : sizeof(float); }
static size_t factor_size(const basin_cuda_product *p) {
    return basin_kind_is_byte(p->kind_a) ? 1 : size_of(p->narrow_factors);
}

static void fill(basin_cuda *cuda, void *x, bool narrow, int64_t count, uint32_t seed) {
    unsigned blocks = (unsigned)cuda->multiprocessors * 8;
    basin_cuda_typed(narrow ? BASIN_NARROW : BASIN_REAL, [&](auto zero) {
        using T = decltype(zero);
        fill_random<T><<<blocks, 256, 0, cuda->stream>>>((T *)x, count, seed);
    });
}

static void fill_factor(basin_cuda *cuda, void *x, const basin_cuda_product *p, int64_t count,
                        uint32_t seed) {
    if (basin_kind_is_byte(p->kind_a))
        fill_bytes<<<(unsigned)cuda->multiprocessors * 8, 256, 0, cuda->stream>>>((uint8_t *)x,
                                                                                  count, seed);
    else
        fill(cuda, x, p->narrow_factors, count, seed);
}

/* The extent of a matrix whose rows lie `apart` elements from one another (0: without gaps). */
static int64_t elements(int64_t rows, int64_t columns, int64_t apart) {
    return rows * (apart ? apart : columns);
}

/* False where there is no memory for it, which is not an error. */
static bool arena_new(basin_cuda *cuda, arena *r, const basin_cuda_product *p) {
    *r = {};
    r->size_a = (p->step_a ? p->batch : 1) *
                elements(p->transpose_a ? p->k : p->m, p->transpose_a ? p->m : p->k, p->row_a);
    r->size_b = (p->step_b ? p->batch : 1) *
                elements(p->transpose_b ? p->n : p->k, p->transpose_b ? p->k : p->n, p->row_b);
    r->size_d = p->batch * elements(p->m, p->n, p->row_d);
    size_t factor = factor_size(p), result = size_of(p->narrow_result);
    bool ok = cudaMalloc(&r->a, (size_t)r->size_a * factor) == cudaSuccess &&
              cudaMalloc(&r->b, (size_t)r->size_b * factor) == cudaSuccess &&
              cudaMalloc(&r->d, (size_t)r->size_d * result) == cudaSuccess &&
              cudaMalloc(&r->first, (size_t)r->size_d * result) == cudaSuccess &&
              (!p->add || cudaMalloc(&r->c, (size_t)r->size_d * result) == cudaSuccess) &&
              cudaMalloc((void **)&r->differs, sizeof(int)) == cudaSuccess &&
              cudaEventCreate(&r->begin) == cudaSuccess && cudaEventCreate(&r->end) == cudaSuccess;
    cudaGetLastError();
    if (!ok) return false;
    fill_factor(cuda, r->a, p, r->size_a, 1);
    fill_factor(cuda, r->b, p, r->size_b, 2);
    if (p->add) fill(cuda, r->c, p->narrow_result, r->size_d, 3);
    return cudaGetLastError() == cudaSuccess;
}

static void arena_free(arena *r) {
    void *memory[] = {r->a, r->b, r->c, r->d, r->first, r->differs};
    for (void *m : memory) cudaFree(m);
    if (r->begin) cudaEventDestroy(r->begin);
    if (r->end) cudaEventDestroy(r->end);
}

static bool search_multiply(basin_cuda *cuda, const basin_cuda_search *c,
                            const basin_cuda_product *p, const arena *r, int which, void *d) {
    float alpha = 1, beta = p->add ? 1 : 0;
    return cublasLtMatmul(cuda->lt, c->desc, &alpha, r->b, c->b, r->a, c->a, &beta,
                          p->add ? r->c : d, c->d, d, c->d, &c->algo[which], cuda->lt_workspace,
                          cuda->lt_bytes, cuda->stream) == CUBLAS_STATUS_SUCCESS;
}

/* Whether algorithm `which` runs and gives the bits of the first. */
static bool agrees(basin_cuda *cuda, const basin_cuda_search *c, const basin_cuda_product *p,
                   const arena *r, int which) {
    size_t bytes = (size_t)r->size_d * size_of(p->narrow_result);
    int differs = 1;
    cudaMemsetAsync(r->d, 0xff, bytes, cuda->stream);
    cudaMemsetAsync(r->differs, 0, sizeof(int), cuda->stream);
    if (!search_multiply(cuda, c, p, r, which, r->d)) return false;
    compare<<<(unsigned)cuda->multiprocessors * 8, 256, 0, cuda->stream>>>(
        r->differs, (const uint16_t *)r->d, (const uint16_t *)r->first, (int64_t)(bytes / 2));
    cudaMemcpyAsync(&differs, r->differs, sizeof(int), cudaMemcpyDeviceToHost, cuda->stream);
    return cudaStreamSynchronize(cuda->stream) == cudaSuccess && !differs;
}

/* Milliseconds of some runs; a large number where it could not be timed. */
static float time_of(basin_cuda *cuda, const basin_cuda_search *c, const basin_cuda_product *p,
                     const arena *r, int which) {
    float time = 1e30f;
    bool ok = cudaEventRecord(r->begin, cuda->stream) == cudaSuccess;
    for (int i = 0; i < REPEATS && ok; i++) ok = search_multiply(cuda, c, p, r, which, r->d);
    ok = ok && cudaEventRecord(r->end, cuda->stream) == cudaSuccess &&
         cudaEventSynchronize(r->end) == cudaSuccess &&
         cudaEventElapsedTime(&time, r->begin, r->end) == cudaSuccess;
    return ok ? time : 1e30f;
}

/* The fastest; the first unless another is clearly faster. */
static int fastest(basin_cuda *cuda, const basin_cuda_search *c, const basin_cuda_product *p,
                   const arena *r) {
    float best[BASIN_CUDA_CANDIDATES];
    bool good[BASIN_CUDA_CANDIDATES] = {true};
    int winner = 0;
    cudaMemsetAsync(r->first, 0xff, (size_t)r->size_d * size_of(p->narrow_result), cuda->stream);
    if (!search_multiply(cuda, c, p, r, 0, r->first)) return 0;
    for (int i = 1; i < c->count; i++) good[i] = agrees(cuda, c, p, r, i);
    for (int i = 0; i < c->count; i++) best[i] = 1e30f;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < c->count; i++) {
            float time = good[i] ? time_of(cuda, c, p, r, i) : 1e30f;
            if (time < best[i]) best[i] = time;
        }
    for (int i = 1; i < c->count; i++)
        if (best[i] < 0.98f * best[0] && best[i] < best[winner]) winner = i;
    return winner;
}

int basin_cuda_search_run(basin_cuda *cuda, const basin_cuda_search *search,
                          const basin_cuda_product *product) {
    basin_cuda_gate gate(cuda); /* it allocates */
    arena r;
    bool ready = arena_new(cuda, &r, product);
    int winner = ready ? fastest(cuda, search, product, &r) : 0;
    BASIN_CUDA_TRY(cuda, cudaStreamSynchronize(cuda->stream));
    arena_free(&r);
    return winner;
}
