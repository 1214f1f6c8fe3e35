/* A plan in the making: instructions over values, between the graph and the kernel calls. Passes in
 * their order: lower, order, chain, pack, fuse, inline, narrow, mask, join, bytes, keep, draw,
 * hoist, part, layout (docs/architecture.md says what each does). */
#ifndef BASIN_PLAN_IR_H
#define BASIN_PLAN_IR_H

#include "basin/plan.h"
#include "engine/expr/graph.h"

typedef struct basin_ir_value {
    basin_shape shape;
    basin_kind kind;
    int root;       /* the value whose storage it shares: itself, or what it reshapes, or
                       the joint value that it is a part of */
    int64_t first;  /* a part: where it begins in the joint value, in elements */
    int64_t stride; /* a part that is columns: from one row to the next; 0: dense */
    double scale;   /* of bytes: what numbers are multiplied by */
    double drop;    /* above 0: draws of a seed, see basin_operand */
    uint32_t stream;
    int producer;            /* instruction; -1 for leaves */
    const basin_node *leaf;  /* INPUT, STATE or CONST */
    const basin_node *state; /* an update: the state into whose storage it is written */
    bool output;             /* stays until the end */
    int uses;                /* filled by basin_ir_count_uses, for roots: of all its views */
    size_t bytes;            /* of a packed factor; 0: as its shape says */
    int buffer;              /* layout: which buffer of the arena; -1 where it is elsewhere */
    int block;               /* inputs and states: where they lie; -1 */
    size_t offset;           /* bytes, in that block; for a part: in its joint value */
} basin_ir_value;

typedef struct basin_ir_instruction {
    basin_op op;
    basin_attr attr;
    int ins, outs;
    int in[BASIN_MAX_IN], out[BASIN_MAX_OUT];          /* values; -1 where absent */
    int byte_copies, byte_copy[BASIN_MAX_BYTE_COPIES]; /* bytes of results; -1 where absent */
    basin_program *program;
    bool again; /* recomputes what an earlier instruction computed */
    bool dead;
    int parts; /* into which it is cut, like its neighbours that have as many; 0: it is not */
    size_t workspace_bytes;
    int workspace; /* buffer */
} basin_ir_instruction;

/* All values that the instruction writes, results and then byte copies. */
static inline int basin_ir_results(const basin_ir_instruction *instruction) {
    return instruction->outs + instruction->byte_copies;
}
static inline int basin_ir_result(const basin_ir_instruction *instruction, int k) {
    return k < instruction->outs ? instruction->out[k]
                                 : instruction->byte_copy[k - instruction->outs];
}

typedef struct basin_ir_buffer {
    size_t bytes, offset;
    int first, last; /* instructions during which it is needed, in the order of the list, */
    int early, late; /* the same with other parts of the batch later or earlier */
    bool cut;        /* holds one slice per part, */
    bool whole;      /* and is read whole by all parts of some run */
} basin_ir_buffer;

typedef struct basin_ir {
    basin_error *error;
    basin_ir_value *value;
    size_t values, value_capacity;
    basin_ir_instruction *instruction;
    size_t instructions, instruction_capacity;
    basin_ir_buffer *buffer;
    size_t buffers, buffer_capacity;
    void **scratch; /* what passes allocated, to the end of all passes */
    size_t scratches, scratch_capacity;
    size_t hoisted; /* how many instructions, the first ones; see schedule/order.c */
    int *output;    /* [outputs] values */
    int outputs;
    size_t arena_bytes, unshared_bytes;
} basin_ir;

static inline size_t basin_aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }
static inline int basin_root_of(const basin_ir *ir, int value) { return ir->value[value].root; }

void basin_ir_free(basin_ir *ir);
/* Memory for a pass, zeroed or filled with -1, until all passes are over; NULL: error set. */
void *basin_ir_scratch(basin_ir *ir, size_t count, size_t size);
int *basin_ir_scratch_none(basin_ir *ir, size_t count);
void basin_ir_scratch_free(basin_ir *ir);
basin_status basin_ir_no_memory(basin_ir *ir);
/* New value or instruction; -1 when out of memory (the error is set). */
int basin_ir_value_new(basin_ir *ir, basin_shape shape, basin_kind kind);
int basin_ir_instruction_new(basin_ir *ir, const basin_ir_instruction *instruction);
/* A value in the storage of `root` from `first` on, rows `stride` apart (0: dense); or -1. */
int basin_ir_view_new(basin_ir *ir, int root, basin_shape shape, int64_t first, int64_t stride);
/* to = from', of matrices. */
basin_ir_instruction basin_ir_transpose(int to, int from);
/* The result of a new instruction of one operand, or of two (b >= 0). */
int basin_ir_apply(basin_ir *ir, basin_op op, int a, int b, basin_shape shape);
/* Leaves `count` instructions, by their old numbers, in that order. */
basin_status basin_ir_reorder(basin_ir *ir, const int *order, size_t count);

static inline bool basin_ir_is_narrow(const basin_ir *ir, int value) {
    return value >= 0 && ir->value[basin_root_of(ir, value)].kind == BASIN_NARROW;
}

basin_status basin_ir_lower(basin_ir *ir, const basin_graph *graph, const basin_plan_spec *spec);
/* Replaces log-sum-exps that a force or a softmax computes anyway. */
basin_status basin_ir_share_forces(basin_ir *ir);
/* Lets attention with values keep for its reverse what the backend then need not compute again. */
basin_status basin_ir_keep_values(basin_ir *ir);
/* Moves the drawing of masks into the programs that are their only readers. */
basin_status basin_ir_place_draws(basin_ir *ir);
/* Marks instructions nobody needs as dead and sorts the rest so that producers come first. */
basin_status basin_ir_sort(basin_ir *ir);
/* Tells results which instructions write them, after these have moved. */
void basin_ir_number(basin_ir *ir);
void basin_ir_count_uses(basin_ir *ir);
/* Sums of products in the order of computing; new constants go into the graph. */
basin_status basin_ir_chain(basin_ir *ir, basin_graph *graph);
/* Lets the reverse of a layer norm add the cotangent that passes by to its result. */
basin_status basin_ir_join_residuals(basin_ir *ir);
/* Packs factors that several products share, once for all of them. */
basin_status basin_ir_pack(basin_ir *ir, basin_backend *backend);
basin_status basin_ir_fuse(basin_ir *ir, bool plain, bool device, bool reduces);
/* Whether its rows can be what a program computes: see basin_backend_table. */
static inline bool basin_op_reduces(basin_op op) {
    return op == BASIN_OP_SUM || op == BASIN_OP_MAX;
}
/* Lets readers of cheap pointwise results compute these themselves; on a device all are cheap. */
basin_status basin_ir_inline(basin_ir *ir, bool device);
/* Makes results narrow where possible, and casts what products and attention of at least `min`
 * multiply-adds read. The table lists which other operations read narrow operands. */
basin_status basin_ir_narrow(basin_ir *ir, double min, const basin_backend_table *table);
/* Lets the reverse of a product under a ReLU read a bit per element instead of the result. */
basin_status basin_ir_mask(basin_ir *ir);
/* Joins products through several weights into one; `bytes`: also gradients of large weights. */
basin_status basin_ir_join(basin_ir *ir, bool bytes);
/* Lets products of at least that many multiply-adds read bytes, tokens and weights. */
basin_status basin_ir_bytes(basin_ir *ir, double min);
/* Brings to the front what depends only on constants and on states that are not updated. */
basin_status basin_ir_hoist(basin_ir *ir);
/* Marks what can run in parts of the batch. */
basin_status basin_ir_part(basin_ir *ir, const basin_backend *backend);
/* Whether such an instruction reads one slice of operand k a part. */
bool basin_ir_is_cut(const basin_ir_instruction *instruction, int k);
/* Makes the call of such an instruction that of its first part. */
void basin_ir_part_call(basin_call *call, const basin_ir_instruction *instruction,
                        const basin_backend_table *table);
/* Decides where every value lives; workspaces are known. Sizes of elements are the table's. */
basin_status basin_ir_layout(basin_ir *ir, const basin_backend *backend, bool plain);

/* A new list of instructions in the making, for passes that put some between those that are there.
 * Programs belong to the old list until the new one takes its place. */

typedef struct basin_ir_list {
    basin_ir_instruction *instruction;
    size_t count, capacity;
} basin_ir_list;

/* False when out of memory. */
bool basin_ir_list_add(basin_ir_list *list, const basin_ir_instruction *instruction);
/* to <- from, as a separate instruction; kinds may differ. */
bool basin_ir_list_copy(basin_ir_list *list, const basin_ir *ir, int to, int from);
/* The list takes the place of the plan's. */
void basin_ir_list_take(basin_ir_list *list, basin_ir *ir);
/* Frees a list that does not. */
void basin_ir_list_discard(basin_ir_list *list, const basin_ir *ir);

/* ---- Groups of pointwise instructions and the programs made of them ---- */

enum { BASIN_GROUP_MEMBERS = 48, BASIN_GROUP_LOADS = BASIN_MAX_IN - 2 };

/* A group: its members in order, what it reads from outside, what it leaves behind. */
typedef struct basin_group {
    basin_shape domain;
    int member[BASIN_GROUP_MEMBERS], members;
    int load[BASIN_GROUP_LOADS], load_uses[BASIN_GROUP_LOADS], loads;
    int store[BASIN_MAX_OUT], stores;
    bool too_large; /* for these arrays; the rest is then incomplete */
} basin_group;

/* leader[i] == last marks the members among the pointwise instructions first .. last. */
void basin_group_collect(basin_group *group, const basin_ir *ir, const int *leader, int first,
                         int last);
/* Whether it stays within a program's limits. */
bool basin_group_fits(const basin_group *group, const basin_ir *ir);
/* Whether load number `tile` can come from the given matrix product, tile by tile. */
bool basin_group_fits_product(const basin_group *group, const basin_ir *ir, int tile,
                              const basin_ir_instruction *product);
/* A group's program; `tile`: the load of the product's element, or -1. NULL: no memory. */
basin_program *basin_group_program(const basin_group *group, const basin_ir *ir, int tile,
                                   const basin_ir_instruction *product);
/* What an epilogue makes of its product, where that is simple: a sum of multiples of the product
 * and of one operand like it (-1: none), the ReLU of the product, or a multiple of the product
 * where the operand is above 0. Without a program it is the product. */
typedef enum basin_form_kind {
    BASIN_FORM_OTHER,
    BASIN_FORM_SUM,
    BASIN_FORM_RELU,
    BASIN_FORM_MASKED,
} basin_form_kind;
typedef struct basin_program_form {
    basin_form_kind kind;
    double of_product, of_operand;
    int operand;
} basin_program_form;
basin_program_form basin_program_form_of(const basin_program *program);
/* Space for `instructions` instructions; NULL when out of memory. Freeing takes NULL. */
basin_program *basin_program_new(int instructions);
void basin_program_free(basin_program *program);
/* The reader's program whose operand `at` is the call's program's one result, of operands where[];
 * others are kept[]. False: BASIN_PROGRAM_MERGED do not suffice. */
enum { BASIN_PROGRAM_MERGED = 64 };
bool basin_program_merge(basin_program *merged, const basin_program *reader, int at,
                         const int *kept, const basin_program *call, const int *where);
/* A program that copies one operand of the given shape. */
basin_program *basin_program_copy(basin_shape shape);
/* batch, m, n, k of a MATMUL instruction. */
void basin_product_sizes(int64_t size[4], const basin_ir *ir,
                         const basin_ir_instruction *instruction);

/* ---- The expressions of a plan, rewritten; see simplify.c ---- */

typedef struct basin_simple {
    basin_graph *graph; /* holds the rewritten expressions; its leaves know their origin */
    basin_plan_spec spec;
    basin_expr *output;
    basin_update *update;
} basin_simple;

/* Rewrites what `spec` needs; with `plain` nothing is simplified, with `thin` products of vectors
 * are none. Free the result always. */
basin_status basin_simplify(basin_simple *simple, const basin_graph *from,
                            const basin_plan_spec *spec, bool plain, bool thin, basin_error *error);
void basin_simple_free(basin_simple *simple);

#endif
