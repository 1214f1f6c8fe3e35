/* The matrix products of the image model alone, as the yardstick of its speed: per step Q and K,
 * scores, the two attention sums, both ways back, and the Hopfield network up and down; encoder and
 * decoder once. In training each product A B = C is followed by its two reverses, C' B^T and A^T
 * C'. They run through the machine's BLAS and through Basin's own product. */
#include <stdlib.h>

#include "backend/gemm.h"
#include "base/memory.h"
#include "base/team/team.h"
#include "basin/random.h"
#include "bench/bench.h"

/* c [m, n] = a b for each of `batch`; a is stored [m, k] or turned, b [k, n] or turned. */
typedef struct product {
    int64_t batch, m, n, k;
    bool a_turned, b_turned;
    const float *a, *b;
    float *c;
    const float *packed; /* b once more as Basin's product reads it, or NULL */
    float *back;         /* where the reverses of it go */
} product;

enum { STEP = 9, ALL = 11 };

struct basin_yardstick {
    int threads;
    int64_t steps;
    product list[ALL];  /* STEP of them once a step, the others once */
    float *memory[ALL]; /* a, b and c of each */
    float *packed[ALL];
    void *workspace;
};

/* ---- one product ---- */

static void blas_one(const product *p, int64_t i) {
    basin_blas_product(p->c + i * p->m * p->n, p->a + i * p->m * p->k, p->a_turned,
                       p->b + i * p->k * p->n, p->b_turned, p->m, p->n, p->k);
}

static void blas_some(const void *context, int64_t first, int64_t last, int place) {
    (void)place;
    for (int64_t i = first; i < last; i++) blas_one(context, i);
}

/* Many small products are shared out, each in one thread; a large one takes all threads. */
static void blas_product(const product *p, int threads) {
    if (p->batch == 1) {
        basin_blas_threads(threads);
        blas_one(p, 0);
        return;
    }
    basin_blas_threads(1);
    basin_team_run(blas_some, p, p->batch, 0, threads);
}

static basin_gemm describe(const product *p) {
    return (basin_gemm){.batch = p->batch,
                        .m = p->m,
                        .n = p->n,
                        .k = p->k,
                        .a = p->a,
                        .a_row = p->a_turned ? 1 : p->k,
                        .a_col = p->a_turned ? p->m : 1,
                        .a_batch = p->m * p->k,
                        .b = p->b,
                        .b_row = p->b_turned ? 1 : p->n,
                        .b_col = p->b_turned ? p->k : 1,
                        .b_batch = p->k * p->n,
                        .b_packed = p->packed,
                        .c = p->c,
                        .c_row = p->n,
                        .c_batch = p->m * p->n};
}

/* The gradients of a and of b as products. */
static void reverse(product out[2], const product *p) {
    product a = {.batch = p->batch, .c = p->back}, b = a;
    if (p->a_turned) {
        a.m = p->k, a.n = p->m, a.k = p->n;
        a.a = p->b, a.a_turned = p->b_turned, a.b = p->c, a.b_turned = true;
    } else {
        a.m = p->m, a.n = p->k, a.k = p->n;
        a.a = p->c, a.b = p->b, a.b_turned = !p->b_turned;
    }
    if (p->b_turned) {
        b.m = p->n, b.n = p->k, b.k = p->m;
        b.a = p->c, b.a_turned = true, b.b = p->a, b.b_turned = p->a_turned;
    } else {
        b.m = p->k, b.n = p->n, b.k = p->m;
        b.a = p->a, b.a_turned = !p->a_turned, b.b = p->c;
    }
    out[0] = a, out[1] = b;
}

static void run_one(basin_yardstick *s, const product *p, bool own) {
    if (own) {
        basin_gemm gemm = describe(p);
        basin_gemm_run(&gemm, s->threads, s->workspace);
    } else {
        blas_product(p, s->threads);
    }
}

static void run_range(basin_yardstick *s, int from, int to, bool own, bool training) {
    for (int i = from; i < to; i++) {
        run_one(s, &s->list[i], own);
        if (!training) continue;
        product back[2];
        reverse(back, &s->list[i]);
        run_one(s, &back[0], own);
        run_one(s, &back[1], own);
    }
}

static basin_status run_all(basin_yardstick *s, bool own, bool training) {
    for (int64_t t = 0; t < s->steps; t++) run_range(s, 0, STEP, own, training);
    run_range(s, STEP, ALL, own, training);
    return BASIN_OK;
}

basin_status basin_yardstick_blas(void *products, basin_error *error) {
    (void)error;
    return run_all(products, false, false);
}

basin_status basin_yardstick_own(void *products, basin_error *error) {
    (void)error;
    return run_all(products, true, false);
}

basin_status basin_yardstick_blas_training(void *products, basin_error *error) {
    (void)error;
    return run_all(products, false, true);
}

basin_status basin_yardstick_own_training(void *products, basin_error *error) {
    (void)error;
    return run_all(products, true, true);
}

/* ---- all of them ---- */

static void list_products(product *list, const basin_bench_shape *s) {
    int64_t rows = s->batch * s->tokens, wide = s->heads * s->head_dim, N = s->tokens;
    int64_t D = s->dim, Y = s->head_dim, heads = s->batch * s->heads;
    const product all[ALL] = {
        {.batch = 1, .m = rows, .n = wide, .k = D, .b_turned = true},        /* Q */
        {.batch = 1, .m = rows, .n = wide, .k = D, .b_turned = true},        /* K */
        {.batch = heads, .m = N, .n = N, .k = Y, .b_turned = true},          /* scores */
        {.batch = heads, .m = N, .n = Y, .k = N},                            /* P K */
        {.batch = heads, .m = N, .n = Y, .k = N, .a_turned = true},          /* P^T Q */
        {.batch = 1, .m = rows, .n = D, .k = wide},                          /* back through wq */
        {.batch = 1, .m = rows, .n = D, .k = wide},                          /* back through wk */
        {.batch = 1, .m = rows, .n = s->memories, .k = D, .b_turned = true}, /* g xi^T */
        {.batch = 1, .m = rows, .n = D, .k = s->memories},                   /* back through xi */
        {.batch = 1, .m = rows, .n = D, .k = s->patch},                      /* encoder */
        {.batch = 1, .m = rows, .n = s->patch, .k = D},                      /* decoder */
    };
    for (int i = 0; i < ALL; i++) list[i] = all[i];
}

static double flops_of(const product *p) {
    return 2.0 * (double)p->batch * (double)p->m * (double)p->n * (double)p->k;
}

double basin_yardstick_flops(const basin_bench_shape *shape) {
    double sum = 0;
    product list[ALL];
    list_products(list, shape);
    for (int i = 0; i < ALL; i++) sum += flops_of(&list[i]) * (i < STEP ? (double)shape->steps : 1);
    return sum;
}

static size_t workspace_of(const product *p, int threads) {
    product back[2];
    basin_gemm gemm = describe(p);
    size_t bytes = basin_gemm_workspace(&gemm, threads);
    reverse(back, p);
    for (int i = 0; i < 2; i++) {
        gemm = describe(&back[i]);
        size_t more = basin_gemm_workspace(&gemm, threads);
        if (more > bytes) bytes = more;
    }
    return bytes;
}

/* Memory with numbers in it, and weights packed. */
static bool fill_product(basin_yardstick *s, int i) {
    product *p = &s->list[i];
    double most = (double)p->batch * ((double)p->m * (double)p->k + (double)p->k * (double)p->n +
                                      (double)p->m * (double)p->n);
    if (most > 1e12) return false;
    size_t a = (size_t)(p->batch * p->m * p->k), b = (size_t)(p->batch * p->k * p->n);
    size_t c = (size_t)(p->batch * p->m * p->n), back = a > b ? a : b;
    float *memory = s->memory[i] = basin_aligned_new((a + b + c + back) * sizeof *memory);
    if (!memory) return false;
    basin_random_fill_normal(memory, 1, (uint64_t)i, 0, a + b + c + back);
    p->a = memory, p->b = memory + a, p->c = memory + a + b, p->back = memory + a + b + c;
    if (p->batch > 1) return true;
    s->packed[i] = basin_aligned_new(basin_gemm_packed_size(p->k, p->n, BASIN_GEMM_F32));
    if (!s->packed[i]) return false;
    basin_gemm_pack(s->packed[i], p->b, p->b_turned ? 1 : p->n, p->b_turned ? p->k : 1, p->k, p->n,
                    BASIN_GEMM_F32, s->threads);
    p->packed = s->packed[i];
    return true;
}

basin_status basin_yardstick_new(basin_yardstick **products, const basin_bench_shape *shape,
                                 int threads, basin_error *error) {
    basin_yardstick *s = *products = calloc(1, sizeof *s);
    size_t workspace = 0;
    bool good = s != NULL;
    if (good) {
        s->threads = threads;
        s->steps = shape->steps;
        list_products(s->list, shape);
    }
    for (int i = 0; i < ALL && good; i++) {
        good = fill_product(s, i);
        size_t more = good ? workspace_of(&s->list[i], threads) : 0;
        if (more > workspace) workspace = more;
    }
    if (good) good = (s->workspace = basin_aligned_new(workspace ? workspace : 64)) != NULL;
    if (good) return BASIN_OK;
    basin_yardstick_free(s);
    *products = NULL;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the products of this shape");
}

void basin_yardstick_free(basin_yardstick *products) {
    if (!products) return;
    for (int i = 0; i < ALL; i++) {
        basin_aligned_free(products->memory[i]);
        basin_aligned_free(products->packed[i]);
    }
    basin_aligned_free(products->workspace);
    free(products);
}
