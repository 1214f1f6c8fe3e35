/* What the CUDA backend's files share: lists of calls, memory, compiled programs, products. */
#ifndef BASIN_BACKEND_CUDA_INSIDE_H
#define BASIN_BACKEND_CUDA_INSIDE_H

#include <string>

#include "engine/backend/cuda/device.h"
extern "C" {
#include "engine/backend/device.h"
}

extern const basin_eager_table basin_cuda_eager;

/* While one thread captures, another that shares the device may neither allocate nor free nor load
 * code: the capture would fail. Whoever does one of these holds the gate of the backends that were
 * opened beside one another (code.cu); a replayed graph needs none. */
class basin_cuda_gate {
  public:
    explicit basin_cuda_gate(const basin_cuda *cuda);
    ~basin_cuda_gate();
    basin_cuda_gate(const basin_cuda_gate &) = delete;
    basin_cuda_gate &operator=(const basin_cuda_gate &) = delete;

  private:
    struct inside;
    inside *held;
};

/* run.cu */
basin_cuda_operation basin_cuda_operation_of(basin_op op);

/* run.cu: a list of calls runs call by call the first time, is captured as a graph the second and
 * replayed from then on. Freeing memory drops the graphs that use it. */
basin_cuda_frame basin_cuda_frame_of(basin_cuda *cuda, const basin_call *call, void *const *block);
/* The same for a workspace, before operands have places: only NULL or not is right. */
basin_cuda_frame basin_cuda_outline(const basin_call *call);
void basin_cuda_graphs_new(basin_cuda *cuda);
void basin_cuda_graphs_free(basin_cuda *cuda);
void basin_cuda_graphs_forget(basin_cuda *cuda, const void *memory);
void basin_cuda_run(basin_backend *backend, const basin_call *call, size_t calls,
                    void *const *block);

/* memory.cu; `shares`: other threads also use the device */
void basin_cuda_staging_new(basin_cuda *cuda, bool shares);
void basin_cuda_staging_free(basin_cuda *cuda);
/* Puts what copy_in was given into its places; called before what may read it is queued. */
void basin_cuda_deliver(basin_cuda *cuda);
/* Until the stream has done all that was queued. */
bool basin_cuda_wait(basin_cuda *cuda);
void *basin_cuda_alloc(basin_backend *backend, size_t bytes);
void basin_cuda_free(basin_backend *backend, void *memory);
void basin_cuda_copy_in(basin_backend *backend, void *device, const void *host, size_t bytes);
void basin_cuda_copy_out(basin_backend *backend, void *host, const void *device, size_t bytes);
void basin_cuda_fill_zero(basin_backend *backend, void *device, size_t bytes);
size_t basin_cuda_free_bytes(const basin_backend *backend);

/* A pointwise program, axes merged; LOAD a reads in[a], TILE reads in[tile]. pointwise.cu */
struct basin_cuda_program {
    basin_program program;
    basin_instruction own[4]; /* the instructions of an operation that came without a program */
    int operands, tile;       /* tile: -1 where there is none */
    const void *in[BASIN_MAX_IN];
    bool narrow_in[BASIN_MAX_IN];
    struct {
        int64_t first; /* element */
        uint32_t stream, limit;
        bool there;
    } draw[BASIN_MAX_IN]; /* of a seed, in[a] */
    void *out[BASIN_MAX_OUT];
    bool narrow_out[BASIN_MAX_OUT];
};

/* The raw result of a product, dense: rows first .. first + rows - 1 of each batch entry. */
struct basin_cuda_tile {
    const void *data;
    bool narrow;
    int64_t first, rows;
};

/* A call's program: pointwise (tile NULL), or the epilogue of the tile's rows. False: empty. */
bool basin_cuda_program_of(basin_cuda_program *p, const basin_cuda_frame *frame,
                           const basin_cuda_tile *tile);
void basin_cuda_program_run(basin_cuda *cuda, const basin_cuda_program *p);
/* Runs as many of the pointwise calls, from the first on, as are one program over operands that do
 * not meet: the updates of all parameters, for one. Returns how many, at least 1. */
/* As many as it looks at; before CUDA 12.1 a kernel took fewer arguments. */
enum { BASIN_CUDA_TOGETHER = CUDART_VERSION >= 12010 ? 24 : 1 };
int basin_cuda_pointwise_many(const basin_cuda_frame *frame, int frames);

/* code.cu: operations of the caller's own in a program: function `own<number>`, its call. */
std::string basin_cuda_own_function(const basin_custom_code *code, int number);
std::string basin_cuda_own_value(const basin_instruction *s, int number);
extern const basin_custom_table basin_cuda_own;

/* code.cu: kernels compiled at run time, kept by text, shared with `beside` (or NULL). */
struct CUfunc_st;
void basin_cuda_codes_new(basin_cuda *cuda, const basin_cuda *beside);
void basin_cuda_codes_free(basin_cuda *cuda);
/* While collecting, unknown texts are noted, nothing is launched; then all are compiled. */
void basin_cuda_codes_collect(basin_cuda *cuda);
void basin_cuda_codes_compile(basin_cuda *cuda);
bool basin_cuda_codes_collecting(const basin_cuda *cuda);
/* The kernel of the text, a body over `const basin_args p`, or after BASIN_CUDA_FOR_MANY over a
 * `basin_many`; NULL while collecting and where it does not compile. */
#define BASIN_CUDA_FOR_MANY "/*many*/"
CUfunc_st *basin_cuda_code_find(basin_cuda *cuda, const char *text);
/* The compiler's errors for a text; empty where it compiles. Nothing is loaded. */
std::string basin_cuda_code_try(basin_cuda *cuda, const std::string &text);
void basin_cuda_code_launch(basin_cuda *cuda, CUfunc_st *function, unsigned blocks,
                            unsigned threads, void *arguments);

/* product.cu: D [batch, m, n] = relu?(alpha A B + beta C + bias [n]), factors may be transposed. */
struct basin_cuda_product {
    int64_t batch, m, n, k;
    bool transpose_a, transpose_b, relu, bias;
    bool own;               /* not cuBLASLt's: relu_product below */
    bool marks;             /* with relu: writes a bit per element, set where it is above 0 */
    bool masked;            /* 0 where such a bit is not set */
    int64_t step_a, step_b; /* elements from one batch entry to the next; 0: shared */
    int64_t row_a, row_b,
        row_d; /* elements from one row in memory to the next; 0: dense; C is as D */
    bool narrow_factors, narrow_result;
    basin_kind kind_a, kind_b, kind_d; /* which bytes factors and result are; else not read */
    double unit, scale; /* of bytes: of what the product is a multiple, and what D is scaled by */
    bool add;           /* there is a C */
    uint8_t products;
    uint32_t alignment; /* bytes, of all pointers */
    double alpha, beta;
};
void basin_cuda_factors_new(basin_cuda *cuda);
void basin_cuda_factors_free(basin_cuda *cuda);
bool basin_cuda_product_exists(basin_cuda *cuda, const basin_cuda_product *product);
void basin_cuda_product_run(basin_cuda *cuda, const basin_cuda_product *product, void *d,
                            const void *a, const void *b, const void *c, const void *bias);
/* product/small.cu: products of few floats with their epilogues. */
bool basin_cuda_small_fits(const basin_cuda *cuda, const basin_call *call);
void basin_cuda_small_run(const basin_cuda_frame *frame);
/* product/relu_sm90a.cu: products under a ReLU, which may mark, or masked, of bfloat16 on Hopper.
 * Whether one could is the same for both of a pair but for k and strides; where bits lie is the
 * same for all. `transposed`: NULL, or where D' is also written, as bytes; m is a multiple of
 * 16. */
bool basin_cuda_relu_product_exists(const basin_cuda *cuda, const basin_cuda_product *product);
void basin_cuda_relu_product_run(basin_cuda *cuda, const basin_cuda_product *product, void *d,
                                 void *transposed, const void *a, const void *b, void *bits);
/* product/bytes.cu: the same after a product d that another kernel has computed; n % 64 is 0. */
void basin_cuda_mask_write(basin_cuda *cuda, const basin_cuda_product *product, void *mask,
                           const void *d);
void basin_cuda_mask_apply(basin_cuda *cuda, const basin_cuda_product *product, void *d,
                           const void *mask);

/* bytes.cu: rows of numbers as bytes, `apart` from one to the next (0: dense); a pointwise copy; to
 * [columns, rows], the transpose of rows of bytes. */
void basin_cuda_bytes_store(basin_cuda *cuda, void *to, const basin_operand *operand,
                            const void *from, bool narrow, int64_t from_apart, int64_t rows,
                            int64_t columns);
void basin_cuda_bytes_copy(const basin_cuda_frame *frame);
void basin_cuda_bytes_turn(basin_cuda *cuda, void *to, const void *from, int64_t apart,
                           int64_t rows, int64_t columns);

/* product/product.cu: which of the algorithms for a product is the fastest of those that give the
 * bits of the first. Descriptors in cuBLASLt's order. */
enum { BASIN_CUDA_CANDIDATES = 16 };
struct basin_cuda_search {
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t b, a, d;
    const cublasLtMatmulAlgo_t *algo; /* [count] */
    int count;
};
int basin_cuda_search_run(basin_cuda *cuda, const basin_cuda_search *search,
                          const basin_cuda_product *product);

/* Processes that have joined: the part of the state that only backend.cu and collective.cu know. */

struct basin_cuda_nccl; /* the library, and those who have joined */

/* Every basin_cuda is one of these. */
struct basin_cuda_state : basin_cuda {
    basin_cuda_nccl *nccl; /* NULL before processes join */
};

extern const basin_collective basin_cuda_collectives;
void basin_cuda_nccl_free(basin_cuda *cuda);

#endif
