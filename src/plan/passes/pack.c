/* Packing: the right factor of several products (a weight, the same in all steps of a descent) is
 * brought once into the layout in which the backend's products read it. */
#include "plan/ir.h"
#include "plan/passes/program.h"

/* Whether two instructions are products by one and the same matrix. */
static bool share_factor(const basin_ir *ir, const basin_ir_instruction *a,
                         const basin_ir_instruction *b) {
    const basin_ir_value *x = &ir->value[a->in[1]], *y = &ir->value[b->in[1]];
    return b->op == BASIN_OP_MATMUL && !b->attr.packed_b && x->root == y->root &&
           basin_shape_equal(x->shape, y->shape) && a->attr.transpose_b == b->attr.transpose_b;
}

/* Makes all products from `first` on that share its factor read the packed one. */
static basin_status pack_factor(basin_ir *ir, size_t first, size_t bytes) {
    const basin_ir_instruction model = ir->instruction[first];
    int packed = basin_ir_value_new(ir, ir->value[model.in[1]].shape, BASIN_REAL);
    if (packed < 0) return BASIN_NO_MEMORY;
    ir->value[packed].bytes = bytes;
    basin_ir_instruction pack = {
        .op = BASIN_OP_PACK, .ins = 1, .outs = 1, .in = {model.in[1]}, .out = {packed}};
    pack.attr.transpose_b = model.attr.transpose_b;
    size_t instructions = ir->instructions;
    for (size_t i = first; i < instructions; i++)
        if (share_factor(ir, &model, &ir->instruction[i])) {
            ir->instruction[i].in[1] = packed;
            ir->instruction[i].attr.packed_b = true;
        }
    return basin_ir_instruction_new(ir, &pack) < 0 ? BASIN_NO_MEMORY : BASIN_OK;
}

basin_status basin_ir_pack(basin_ir *ir, basin_backend *backend) {
    basin_status status = BASIN_OK;
    size_t instructions = ir->instructions;
    if (!backend->table->packed_bytes) return BASIN_OK;
    for (size_t i = 0; i < instructions && !status; i++) {
        const basin_ir_instruction *instruction = &ir->instruction[i];
        if (instruction->op != BASIN_OP_MATMUL || instruction->attr.packed_b ||
            ir->value[instruction->in[1]].shape.rank != 2)
            continue;
        int64_t size[4];
        int products = 0;
        for (size_t k = i; k < instructions; k++)
            products += share_factor(ir, instruction, &ir->instruction[k]);
        basin_product_sizes(size, ir, instruction);
        basin_kind kind = ir->value[ir->value[instruction->in[1]].root].kind;
        size_t bytes =
            products > 1 ? backend->table->packed_bytes(backend, size[3], size[2], kind) : 0;
        if (bytes > 0) status = pack_factor(ir, i, bytes);
    }
    return status ? status : basin_ir_sort(ir);
}
