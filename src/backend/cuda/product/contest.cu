/* Which of several algorithms computes a large product fastest, by running them on random numbers.
 * Only those that give the same bits as the first, the heuristic's choice, take part: results do
 * not depend on which wins, and a run repeats bit for bit though clocks do not. */
#include "backend/cuda/inside.h"

enum { ROUNDS = 3, REPEATS = 3 };

/* Device memory for one product, and what the first algorithm made of it. */
struct arena {
    void *a, *b, *c, *d, *first;
    int *differs;
    cudaEvent_t begin, end;
    int64_t size_a, size_b, size_d; /* elements */
};

/* Numbers in (-1, 1) from a hash of their place. */
static __device__ __forceinline__ float random_at(int64_t i, uint32_t seed) {
    uint32_t h = ((uint32_t)i ^ (uint32_t)(i >> 32) ^ seed) * 0x9e3779b1u;
    h = (h ^ h >> 15) * 0x85ebca77u;
    h = (h ^ h >> 13) * 0xc2b2ae3du;
    return (float)(int32_t)(h ^ h >> 16) * 0x1p-31f;
}

template <typename T> static __global__ void fill_random(T *x, int64_t count, uint32_t seed) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        x[i] = basin_from_float<T>(random_at(i, seed));
}

static __global__ void compare(int *differs, const uint16_t *x, const uint16_t *y, int64_t count) {
    bool other = false;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        other = other || x[i] != y[i];
    if (other) *differs = 1;
}

static __global__ void fill_bytes(uint8_t *x, int64_t count, uint32_t seed) {
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count;
         i += (int64_t)gridDim.x * blockDim.x)
        x[i] = (uint8_t)basin_two_bytes<false>(random_at(i, seed), 0);
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

/* Of a matrix whose rows lie `apart` elements from one another (0: without gaps). */
static int64_t elements(int64_t rows, int64_t columns, int64_t apart) {
    return rows * (apart ? apart : columns);
}

/* False where there is no memory for it, which is no fault. */
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

static bool multiply(basin_cuda *cuda, const basin_cuda_contest *c, const basin_cuda_product *p,
                     const arena *r, int which, void *d) {
    float alpha = 1, beta = p->add ? 1 : 0;
    return cublasLtMatmul(cuda->lt, c->desc, &alpha, r->b, c->b, r->a, c->a, &beta,
                          p->add ? r->c : d, c->d, d, c->d, &c->algo[which], cuda->lt_workspace,
                          cuda->lt_bytes, cuda->stream) == CUBLAS_STATUS_SUCCESS;
}

/* Whether algorithm `which` runs and gives the bits of the first. */
static bool agrees(basin_cuda *cuda, const basin_cuda_contest *c, const basin_cuda_product *p,
                   const arena *r, int which) {
    size_t bytes = (size_t)r->size_d * size_of(p->narrow_result);
    int differs = 1;
    cudaMemsetAsync(r->d, 0xff, bytes, cuda->stream);
    cudaMemsetAsync(r->differs, 0, sizeof(int), cuda->stream);
    if (!multiply(cuda, c, p, r, which, r->d)) return false;
    compare<<<(unsigned)cuda->multiprocessors * 8, 256, 0, cuda->stream>>>(
        r->differs, (const uint16_t *)r->d, (const uint16_t *)r->first, (int64_t)(bytes / 2));
    cudaMemcpyAsync(&differs, r->differs, sizeof(int), cudaMemcpyDeviceToHost, cuda->stream);
    return cudaStreamSynchronize(cuda->stream) == cudaSuccess && !differs;
}

/* Milliseconds of some runs; a large number where it could not be timed. */
static float time_of(basin_cuda *cuda, const basin_cuda_contest *c, const basin_cuda_product *p,
                     const arena *r, int which) {
    float time = 1e30f;
    bool ok = cudaEventRecord(r->begin, cuda->stream) == cudaSuccess;
    for (int i = 0; i < REPEATS && ok; i++) ok = multiply(cuda, c, p, r, which, r->d);
    ok = ok && cudaEventRecord(r->end, cuda->stream) == cudaSuccess &&
         cudaEventSynchronize(r->end) == cudaSuccess &&
         cudaEventElapsedTime(&time, r->begin, r->end) == cudaSuccess;
    return ok ? time : 1e30f;
}

/* The fastest; the first unless another is clearly faster. */
static int fastest(basin_cuda *cuda, const basin_cuda_contest *c, const basin_cuda_product *p,
                   const arena *r) {
    float best[BASIN_CUDA_CANDIDATES];
    bool good[BASIN_CUDA_CANDIDATES] = {true};
    int winner = 0;
    cudaMemsetAsync(r->first, 0xff, (size_t)r->size_d * size_of(p->narrow_result), cuda->stream);
    if (!multiply(cuda, c, p, r, 0, r->first)) return 0;
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

int basin_cuda_contest_run(basin_cuda *cuda, const basin_cuda_contest *contest,
                           const basin_cuda_product *product) {
    basin_cuda_gate gate(cuda); /* it allocates */
    arena r;
    bool ready = arena_new(cuda, &r, product);
    int winner = ready ? fastest(cuda, contest, product, &r) : 0;
    BASIN_CUDA_TRY(cuda, cudaStreamSynchronize(cuda->stream));
    arena_free(&r);
    return winner;
}
