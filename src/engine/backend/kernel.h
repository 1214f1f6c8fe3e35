/* What a plan hands to a backend: kernel calls over blocks of device memory, operands named by
 * block and byte offset, so that a list can be run, queued on a stream, or captured and replayed.
 * Block 0 is the plan's arena; others hold inputs and stores. Buffers start at multiples of 64
 * bytes. Outputs overlap inputs only exactly, on an operand of the same size of the same program.
 */
#ifndef BASIN_BACKEND_KERNEL_H
#define BASIN_BACKEND_KERNEL_H

#include <stddef.h>

#include "basin/backend.h"
#include "engine/backend/op.h"

typedef enum basin_kind {
    BASIN_REAL,   /* the backend's floating type */
    BASIN_INDEX,  /* int32_t */
    BASIN_NARROW, /* bfloat16: intermediate results of plans that store them so */
    BASIN_E4M3,   /* bytes (tensor/byte.h), of numbers times the operand's scale */
    BASIN_E5M2,
} basin_kind;

static inline bool basin_kind_is_byte(basin_kind kind) {
    return kind == BASIN_E4M3 || kind == BASIN_E5M2;
}

typedef struct basin_operand {
    int32_t block; /* -1: absent */
    basin_kind kind;
    size_t offset; /* bytes */
    basin_shape shape;
    int64_t stride; /* elements from one row to the next, where a joint matrix has more columns than
                       this operand; 0: dense */
    size_t part;  /* of a call in parts: bytes from the operand of one part to that of the next; 0:
                     all parts read the same */
    double scale; /* of bytes: what numbers were multiplied by, a power of two */
    double drop; /* above 0: a seed, of which a program draws what UNIFORM would, like its domain */
    uint32_t stream;
} basin_operand;

/* Its address; NULL: it is absent. */
static inline void *basin_operand_at(const basin_operand *operand, void *const *block) {
    return operand->block < 0 ? NULL : (char *)block[operand->block] + operand->offset;
}

/* An instruction of a program: register `to` <- op(registers a, b, c). LOAD, TILE, IMMEDIATE fill
 * one. */
enum {
    BASIN_INSTRUCTION_LOAD = BASIN_OP_COUNT, /* operand number a of the call */
    BASIN_INSTRUCTION_TILE,                  /* epilogues only: the element of the matrix product */
    BASIN_INSTRUCTION_IMMEDIATE,             /* the constant `value` */
};
typedef struct basin_instruction {
    uint16_t op, to, a, b, c;
    double value;          /* POW's exponent, IMMEDIATE's constant */
    basin_custom_code own; /* OWN: only of backends that compile it */
} basin_instruction;

enum { BASIN_MAX_REGISTERS = 32 };

/* A pointwise program runs its instructions for every element of a domain and then stores register
 * store[i] to output i. Operands are addressed by strides over the domain's (merged) axes: 0 where
 * an operand is broadcast. Outputs are dense over the whole domain. For an epilogue the domain is
 * the product's own [batch, m, n], not merged (rank 3). The last axis of every stride is 0 or 1. */
typedef struct basin_program {
    int instructions, registers, stores;
    basin_instruction *instruction; /* [instructions] */
    uint16_t store[BASIN_MAX_OUT];  /* [stores] */
    basin_shape domain;
    int64_t stride[BASIN_MAX_IN][BASIN_MAX_RANK]; /* elements, per operand and domain axis */
} basin_program;

/* What the epilogue of a matrix product makes of it, where that is simple enough to be computed
 * with the product:
 *
 *     relu?(alpha tile + beta c + row)    or    alpha tile, 0 where `mask` is not above 0
 *     or c + step (alpha tile + beta c)
 *
 * Here tile is the product, c an operand that lies like the result, row one that repeats a row [n]
 * and mask one that also lies like the result; step is one number, or one for each row. Some
 * kernels add a second operand like c. */

typedef struct basin_form {
    bool known, relu;
    double alpha, beta;
    int c, row, mask; /* operands of the program; -1: none */
    double of_more;
    int more; /* as c; -1 unless asked for by basin_form_with_more */
    int step; /* likewise; a second result, if there is one, is |step (alpha tile + beta c)| */
} basin_form;

enum {
    BASIN_MAX_BYTE_COPIES = 2,
    BASIN_BYTE_COPY_TRANSPOSED = 1, /* of a product: the one that is transposed */
};

typedef struct basin_call {
    basin_op op;
    basin_attr attr;
    int ins, outs, byte_copies;
    basin_operand in[BASIN_MAX_IN], out[BASIN_MAX_OUT];
    basin_operand
        byte_copy[BASIN_MAX_BYTE_COPIES]; /* bytes of results: basin_byte_copy_of says of which */
    const basin_program *program; /* POINTWISE; or the epilogue of MATMUL, whose operands then
                                     follow the two factors: its operand number a is in[2 + a] */
    basin_form form;              /* of that epilogue; .known is false where none was asked for */
    size_t workspace;             /* byte offset into block 0 */
    size_t workspace_bytes;
    /* Above 1: the call is the first of this many parts. Consecutive calls of this kind are a run:
     * each part goes through it in order, with a workspace for each of the backend's threads. */
    int parts;
} basin_call;

enum { BASIN_PARTS = 64 }; /* of a call, at most */

/* The result that byte copy i repeats as bytes: both forces of attention, else the first. */
static inline int basin_byte_copy_of(basin_op op, int i) {
    return op == BASIN_OP_MATMUL ? 0 : op == BASIN_OP_ATTENTION_FORCE ? i + (int)BASIN_ATT_DQ : i;
}

/* The program of a pointwise call that has none: operands loaded, broadcast, one instruction. */
basin_program basin_program_alone(basin_instruction instruction[4], const basin_call *call);
/* Drops axes of one element and merges neighbours that all operands walk through evenly. */
void basin_program_merge_axes(basin_program *p, int operands);

/* A backend is a table of functions and its own state. All calls on one backend happen from one
 * thread. `alloc` returns device memory, or NULL; a stream is in order, so `copy_*` and `run`
 * need no waiting in between; `wait` returns when all is done and reports what failed. */
typedef struct basin_backend_table {
    const char *name; /* "ref", "cpu", "cuda" */
    size_t real_size; /* bytes of a REAL element */
    basin_dtype real; /* its host type */
    bool fuse;        /* whether plans fuse by default; ref runs one operation per call */
    bool reduces;     /* whether SUM and MAX over rows take a program for their operand */
    bool chain; /* whether accumulation is free: a product adds to a tensor of its result's kind */
    bool masks; /* whether narrow products write and read masks; plan/passes/narrow.c */
    bool keeps; /* whether VALUES keeps something for its reverse; plan/schedule/order.c */
    bool draws; /* whether programs draw masks themselves; likewise */
    bool joins; /* whether factors and results of products, and what attention over all pairs reads
                   and writes in their shapes, may have strides; plan/passes/join.c */
    /* Bytes of a NARROW element: 2; 0: kernels take none. ref rounds what it stores. */
    size_t narrow_size;
    bool parts; /* whether calls may be in parts */
    int apart;  /* small plans: memory is reused after this many calls, which may run at once */
    bool narrow_reads; /* whether sums, permutations and causal softmax also take NARROW operands */
    bool narrow_lists; /* whether attention along a list of pairs also takes NARROW tokens */
    /* Bytes of an E4M3 or E5M2 element: 1, or that of ref's own type, likewise; 0: no such. */
    size_t byte_size;
    void *(*alloc)(basin_backend *backend, size_t bytes);
    void (*free)(basin_backend *backend, void *memory);
    /* The host's memory may change as soon as it returns. */
    void (*copy_in)(basin_backend *backend, void *device, const void *host, size_t bytes);
    void (*copy_out)(basin_backend *backend, void *host, const void *device, size_t bytes);
    void (*fill_zero)(basin_backend *backend, void *device, size_t bytes);
    /* Bytes that alloc could still give; NULL where that is not known. */
    size_t (*free_bytes)(const basin_backend *backend);
    /* Multiply-adds from which narrow factors pay; 0: 2^26. */
    double narrow_min;
    /* What this processor lacks for NARROW operands, or NULL; the function NULL: nothing. */
    const char *(*narrow_lacks)(const basin_backend *backend);
    /* Bytes of a packed factor B [k, n] of that kind; NULL where packing does not pay. */
    size_t (*packed_bytes)(const basin_backend *backend, int64_t k, int64_t n, basin_kind kind);
    /* Scratch bytes that the call needs; asked for once, when the plan is made. */
    size_t (*workspace)(basin_backend *backend, const basin_call *call);
    /* Queues the calls in order; block[i] is the address of block i. Allocates nothing. */
    void (*run)(basin_backend *backend, const basin_call *call, size_t calls, void *const *block);
    basin_status (*wait)(basin_backend *backend, basin_error *error);
    /* Reports what failed so far, without waiting; NULL where `run` has finished on return. */
    basin_status (*check)(basin_backend *backend, basin_error *error);
    /* Further functions (backend/device.h); NULL where the backend has none of these. */
    const struct basin_collective *collective;
    const struct basin_custom_table *own;
    const struct basin_eager_table *eager;
    /* Another backend for another thread, with the settings of `other`, that shares with it what is
     * compiled and only read; NULL where there is nothing to share. */
    basin_status (*open_beside)(basin_backend **backend, const basin_backend *other,
                                basin_error *error);
    void (*close)(basin_backend *backend);
} basin_backend_table;

/* Bytes of an element in the backend's memory. */
static inline size_t basin_kind_size(const basin_backend_table *table, basin_kind kind) {
    return kind == BASIN_REAL     ? table->real_size
           : kind == BASIN_NARROW ? table->narrow_size
           : kind == BASIN_INDEX  ? sizeof(int32_t)
                                  : table->byte_size;
}

struct basin_backend {
    const basin_backend_table *table;
    int threads;             /* host backends */
    basin_products products; /* for plans made from now on */
    bool narrow;             /* they store intermediate results as bfloat16 */
    bool bytes;              /* and factors of large products as bytes; plan/passes/bytes.c */
    size_t memory_limit;     /* bytes a plan may need; 0: as many as are free */
    double narrow_min;       /* for products of that many multiply-adds and more */
};

/* Products, storage, narrow_min and memory_limit, for plans made from now on. */
basin_status basin_backend_configure(basin_backend *backend, const basin_compute *compute,
                                     basin_error *error);

basin_status basin_backend_open_ref(basin_backend **backend, basin_error *error);
basin_status basin_backend_open_cpu(basin_backend **backend, int threads, basin_error *error);
/* Without `lists`: for single calls only. */
basin_status basin_backend_open_cuda(basin_backend **backend, bool lists, basin_error *error);

/* The form of a program over a product, NULL for the product itself; .known is false where it has
 * none. With the call of the product, operands count where their kinds are right: those of the
 * result or INDEX (bits) for c and mask, REAL for row. Without one, NULL, any kind is. */
basin_form basin_form_of(const basin_program *program, const basin_call *call);
/* The same with of_more times a second operand, masks of sums, and steps. */
basin_form basin_form_with_more(const basin_program *program, const basin_call *call);

#endif
