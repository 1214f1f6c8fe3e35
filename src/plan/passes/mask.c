/* Masks of ReLUs. Where a product is kept under a ReLU, r = max(P, 0), and a later one is kept
 * where r is above 0 (the reverse of the first), the second reads a bit per element instead of r:
 * the first writes them beside r, in an order that the backend chooses. There is room for the bits
 * of m rounded up to a multiple of 64 rows: a backend may keep those of square blocks together. */
#include "plan/ir.h"
#include "plan/passes/program.h"

static bool is_narrow(const basin_ir *ir, int value) {
    return value >= 0 && ir->value[ir->value[value].root].kind == BASIN_NARROW;
}

/* The instruction whose ReLU masks this one; -1 where there is none. */
static int relu_of(const basin_ir *ir, const basin_ir_instruction *instruction) {
    int64_t size[4], own[4];
    if (instruction->op != BASIN_OP_MATMUL || instruction->ins != 3 || instruction->outs != 1 ||
        basin_program_form_of(instruction->program).kind != BASIN_FORM_MASKED ||
        !is_narrow(ir, instruction->out[0]) || !is_narrow(ir, instruction->in[2]))
        return -1;
    int root = ir->value[instruction->in[2]].root, producer = ir->value[root].producer;
    const basin_ir_instruction *relu = producer < 0 ? NULL : &ir->instruction[producer];
    if (!relu || relu->op != BASIN_OP_MATMUL || relu->out[0] != root ||
        basin_program_form_of(relu->program).kind != BASIN_FORM_RELU)
        return -1;
    basin_product_sizes(own, ir, instruction);
    basin_product_sizes(size, ir, relu);
    bool fits = own[0] == 1 && size[0] == 1 && own[1] == size[1] && own[2] == size[2];
    return fits && own[2] % 128 == 0 && own[3] > 0 ? producer : -1;
}

basin_status basin_ir_mask(basin_ir *ir) {
    for (size_t i = 0; i < ir->instructions; i++) {
        int relu = relu_of(ir, &ir->instruction[i]);
        if (relu < 0) continue;
        if (ir->instruction[relu].outs == 1) {
            int64_t size[4];
            basin_product_sizes(size, ir, &ir->instruction[relu]);
            int64_t rows = (size[1] + 63) / 64 * 64;
            int bits = basin_ir_value_new(ir, BASIN_SHAPE(rows, size[2] / 32), BASIN_INDEX);
            if (bits < 0) return BASIN_NO_MEMORY;
            ir->value[bits].producer = relu;
            ir->instruction[relu].out[ir->instruction[relu].outs++] = bits;
        }
        ir->instruction[i].in[2] = ir->instruction[relu].out[1];
    }
    basin_ir_count_uses(ir);
    return BASIN_OK;
}
