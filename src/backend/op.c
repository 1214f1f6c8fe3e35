/* The operations' names, small letters for pointwise ones, which make up formulas, capitals for
 * those that are calls of their own, and which are slow. */
#include "backend/op.h"

static const struct {
    const char *name;
    bool slow;
} ops[BASIN_OP_COUNT] = {
#define FAST false
#define SLOW true
#define LEAF(name, text) {text, false},
#define POINTWISE(name, text, cost) {text, cost},
#define CALL(name, ...) {#name, false},
#include "backend/ops.inc"
};

const char *basin_op_name(basin_op op) { return ops[op].name; }
bool basin_op_is_slow(basin_op op) { return op < BASIN_OP_COUNT && ops[op].slow; }
