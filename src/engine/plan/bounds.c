/* What index inputs and constants may hold follows from the sizes of what they index; numbers are
 * compared with it when they are written, or a plan is made, so that kernels need no checks. */
#include "engine/plan/plan.h"

#include <math.h>
#include <stdio.h>

typedef struct search {
    basin_bounds *bounds; /* [values] */
    const basin_ir *ir;
} search;

static void bound(const search *s, int value, int64_t low, int64_t high, bool ascending) {
    if (value < 0) return;
    basin_bounds *b = &s->bounds[s->ir->value[value].root];
    if (b->low < low) b->low = low;
    if (b->high > high) b->high = high;
    b->ascending = b->ascending || ascending;
}

static void bound_list(const search *s, const int *list, int64_t queries, int64_t keys) {
    if (list[0] < 0) return;
    int64_t pairs = s->ir->value[list[1]].shape.dim[0];
    bound(s, list[0], 0, pairs, true);
    bound(s, list[1], 0, keys - 1, false);
    bound(s, list[2], 0, pairs, true);
    bound(s, list[3], 0, queries - 1, false);
    bound(s, list[4], 0, pairs - 1, false);
}

static int64_t length_of(const basin_ir *ir, int value, int axis) {
    return ir->value[value].shape.dim[axis];
}

void basin_bounds_find(basin_bounds *bounds, const basin_ir *ir) {
    const search s = {bounds, ir};
    for (size_t i = 0; i < ir->values; i++) bounds[i] = (basin_bounds){INT32_MIN, INT32_MAX, false};
    for (size_t i = 0; i < ir->instructions; i++) {
        const basin_ir_instruction *instruction = &ir->instruction[i];
        if (instruction->op == BASIN_OP_GATHER)
            bound(&s, instruction->in[1], -1, length_of(ir, instruction->in[0], 0) - 1, false);
        if (instruction->op == BASIN_OP_SCATTER)
            bound(&s, instruction->in[1], -1, length_of(ir, instruction->out[0], 0) - 1, false);
        if (instruction->op == BASIN_OP_FROM_INDEX && instruction->attr.start > 0)
            bound(&s, instruction->in[0], -1, instruction->attr.start - 1, false);
        if (instruction->op == BASIN_OP_PAIR_DOT || instruction->op == BASIN_OP_PAIR_SUM)
            bound_list(&s, instruction->in + 2, length_of(ir, instruction->in[2], 0) - 1,
                       length_of(ir, instruction->in[4], 0) - 1);
        if (instruction->op >= BASIN_OP_ATTENTION && instruction->op <= BASIN_OP_ATTENTION_REVERSE)
            bound_list(&s, instruction->in + BASIN_ATT_ROW,
                       length_of(ir, instruction->in[BASIN_ATT_Q], 1),
                       length_of(ir, instruction->in[BASIN_ATT_K], 1));
        if (instruction->op >= BASIN_OP_VALUES && instruction->op <= BASIN_OP_VALUES_SECOND)
            bound_list(&s, instruction->in + BASIN_VAL_ROW,
                       length_of(ir, instruction->in[BASIN_VAL_Q], 1),
                       length_of(ir, instruction->in[BASIN_VAL_K], 1));
    }
}

/* Element i, exactly; what no int32_t holds comes out beyond every bound. */
static int64_t index_at(const basin_tensor *tensor, int64_t i) {
    if (tensor->dtype == BASIN_I32) return ((const int32_t *)tensor->data)[i];
    if (tensor->dtype == BASIN_I64) return ((const int64_t *)tensor->data)[i];
    double number = basin_tensor_at(tensor, i);
    return fabs(number) < 1e18 ? (int64_t)number : INT64_MAX;
}

static bool is_whole(const basin_tensor *tensor, int64_t i) {
    if (tensor->dtype == BASIN_I32 || tensor->dtype == BASIN_I64) return true;
    double number = basin_tensor_at(tensor, i);
    return number == floor(number) || isnan(number); /* NaN is beyond every bound */
}

/* What is wrong with element i of the input of that name, or of a constant. */
static basin_status refuse(const basin_bounds *b, const char *name, const basin_tensor *tensor,
                           int64_t i, int64_t before, basin_error *error) {
    char of[BASIN_ERROR_TEXT] = "an index constant";
    double number = basin_tensor_at(tensor, i);
    if (name) snprintf(of, sizeof of, "input '%s'", name);
    if (index_at(tensor, i) < b->low || index_at(tensor, i) > b->high)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: element %lld is %.17g, expected %lld to %lld", of, (long long)i,
                          number, (long long)b->low, (long long)b->high);
    if (!is_whole(tensor, i))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: element %lld is %.17g, expected a whole number", of, (long long)i,
                          number);
    if (i == 0)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: element 0 is %.17g, expected 0, where the first row begins", of,
                          number);
    return basin_fail(error, BASIN_BAD_VALUE,
                      "%s: element %lld is %.17g, less than the one before (%lld)", of,
                      (long long)i, number, (long long)before);
}

basin_status basin_bounds_check(const basin_bounds *b, const char *name, const basin_tensor *tensor,
                                basin_error *error) {
    int64_t count = basin_shape_count(tensor->shape), before = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t number = index_at(tensor, i);
        if (number < b->low || number > b->high || !is_whole(tensor, i) ||
            (b->ascending && (i > 0 ? number < before : number != 0)))
            return refuse(b, name, tensor, i, before, error);
        before = number;
    }
    return BASIN_OK;
}
