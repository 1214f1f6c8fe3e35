/* Factors of bytes the other way round; see turn.h. A product under a ReLU, or one that is masked,
 * stores them with its result; what others write is turned right behind them, while it is in a
 * cache. */
#include "plan/passes/turn.h"

#include "base/memory.h"
#include "plan/passes/program.h"

int basin_result_in(const basin_ir *ir, const basin_ir_instruction *instruction, int root) {
    for (int k = 0; k < instruction->outs; k++)
        if (instruction->out[k] >= 0 && basin_root_of(ir, instruction->out[k]) == root) return k;
    return -1;
}

int basin_byte_value(basin_converting *c, basin_shape shape, basin_kind kind, double scale) {
    int value = basin_ir_value_new(c->ir, shape, kind);
    if (value >= 0) c->ir->value[value].scale = scale;
    return value;
}

static bool add_turn(basin_converting *c, int to, int from) {
    basin_ir_instruction turn = {.op = BASIN_OP_PERMUTE,
                                 .attr = {.axes = {1, 0}},
                                 .ins = 1,
                                 .outs = 1,
                                 .in = {from},
                                 .out = {to},
                                 .workspace = -1};
    return basin_ir_list_add(&c->list, &turn);
}

/* The factor's bytes the other way round, made or to be made; NULL where there are none. */
static basin_turned *find_turned(const basin_converting *c, int value, int64_t columns) {
    int root = basin_root_of(c->ir, value);
    int64_t first = c->ir->value[value].first;
    for (size_t i = 0; i < c->turns; i++)
        if (c->turned[i].root == root && c->turned[i].first == first &&
            c->turned[i].columns == columns)
            return &c->turned[i];
    return NULL;
}

/* Room for those of a factor [rows, columns]; NULL when out of memory. */
static basin_turned *new_turned(basin_converting *c, int value, int64_t rows, int64_t columns) {
    int root = basin_root_of(c->ir, value);
    bool tokens = c->twin[root] >= 0;
    int bytes = basin_byte_value(c, BASIN_SHAPE(columns, rows), tokens ? c->kind[root] : BASIN_E4M3,
                                 tokens ? c->scale[root] : BASIN_TURN_WEIGHTS);
    if (bytes < 0 || !basin_array_reserve((void **)&c->turned, &c->turned_capacity, c->turns + 1,
                                          sizeof *c->turned))
        return NULL;
    const basin_ir_value *v = &c->ir->value[value];
    c->turned[c->turns] = (basin_turned){
        root, bytes, v->first, columns, rows, v->stride ? v->stride : columns, SIZE_MAX};
    return &c->turned[c->turns++];
}

/* Columns of the factor's root, from `first` on, as they lie. */
static int columns_of(basin_converting *c, const basin_turned *t, int64_t first, int64_t columns) {
    basin_ir *ir = c->ir;
    int twin = c->twin[t->root];
    int from = basin_ir_value_new(ir, BASIN_SHAPE(t->rows, columns), BASIN_NARROW);
    if (from < 0) return -1;
    ir->value[from].root = twin < 0 ? t->root : twin;
    ir->value[from].first = first;
    ir->value[from].stride = t->apart == columns ? 0 : t->apart;
    return from;
}

/* Their place among those of the factor, the other way round. */
static int place_turned(basin_converting *c, const basin_turned *t, int64_t first,
                        int64_t columns) {
    basin_ir *ir = c->ir;
    if (columns == t->columns) return t->value;
    int to = basin_ir_value_new(ir, BASIN_SHAPE(columns, t->rows), ir->value[t->value].kind);
    if (to < 0) return -1;
    ir->value[to].root = t->value;
    ir->value[to].first = (first - t->first) * t->rows;
    return to;
}

int basin_turn_of(basin_converting *c, int value, int64_t rows, int64_t columns) {
    basin_turned *found = find_turned(c, value, columns);
    if (found) return found->value;
    basin_turned *made = new_turned(c, value, rows, columns);
    if (!made) return -1;
    basin_turned t = *made;
    int from = columns_of(c, &t, t.first, columns), turned = -1;
    if (from < 0) return -1;
    if (c->twin[t.root] >= 0) return add_turn(c, t.value, from) ? t.value : -1;
    turned = basin_ir_value_new(c->ir, BASIN_SHAPE(columns, rows), BASIN_NARROW);
    bool ok = turned >= 0 && add_turn(c, turned, from) &&
              basin_ir_list_copy(&c->list, c->ir, t.value, turned);
    return ok ? t.value : -1;
}

/* ---- tokens the other way round ---- */

/* How many columns of the factor product i could store the other way round itself, 0 for none;
 * `first`: from where on. Nobody reads them but as bytes. */
static int64_t storable(int64_t *first, const basin_converting *c, const basin_turned *t,
                        size_t i) {
    const basin_ir *ir = c->ir;
    const basin_ir_instruction *p = &ir->instruction[i];
    if (p->op != BASIN_OP_MATMUL || !c->converted[i] || p->attr.transpose_a ||
        basin_root_of(ir, p->out[0]) != t->root || c->twin[t->root] != t->root)
        return 0;
    basin_form_kind form = basin_program_form_of(p->program).kind;
    if (form != BASIN_FORM_RELU && form != BASIN_FORM_MASKED) return 0;
    int64_t size[4];
    basin_product_sizes(size, ir, p);
    *first = ir->value[p->out[0]].first;
    bool inside = *first >= t->first && *first + size[2] <= t->first + t->columns;
    return inside && size[1] == t->rows ? size[2] : 0;
}

/* The same of factor k, for those that it does store there: a product stores one. */
static int64_t stored(int64_t *first, const basin_converting *c, size_t k, size_t i) {
    for (size_t j = 0; j < k; j++)
        if (storable(first, c, &c->turned[j], i) > 0) return 0;
    return storable(first, c, &c->turned[k], i);
}

/* The last instruction that writes some of factor k but does not store it so; SIZE_MAX. */
static size_t last_plain(const basin_converting *c, size_t k) {
    size_t last = SIZE_MAX;
    int64_t first;
    for (size_t i = 0; i < c->instructions; i++)
        if (basin_result_in(c->ir, &c->ir->instruction[i], c->turned[k].root) >= 0 &&
            stored(&first, c, k, i) == 0)
            last = i;
    return last;
}

bool basin_turns_find(basin_converting *c) {
    for (size_t i = 0; i < c->instructions; i++) {
        const basin_ir_instruction p = c->ir->instruction[i];
        int64_t size[4];
        if (!c->converted[i] || !p.attr.transpose_a) continue;
        basin_product_sizes(size, c->ir, &p);
        for (int k = 0; k < 2; k++) {
            if (find_turned(c, p.in[k], size[1 + k])) continue;
            basin_turned *t = new_turned(c, p.in[k], size[3], size[1 + k]);
            if (!t) return false;
            t->writer = last_plain(c, c->turns - 1);
        }
    }
    return true;
}

bool basin_turn_store(basin_converting *c, basin_ir_instruction *instruction, size_t i) {
    for (size_t k = 0; k < c->turns; k++) {
        int64_t first, columns = stored(&first, c, k, i);
        if (columns == 0) continue;
        int to = place_turned(c, &c->turned[k], first, columns);
        if (to < 0) return false;
        if (instruction->twins == 0) instruction->twin[0] = -1;
        instruction->twins = BASIN_TWIN_TURNED + 1;
        instruction->twin[BASIN_TWIN_TURNED] = to;
    }
    return true;
}

/* From column `at` of factor k on: how many are alike, and whether a product stores those. */
static int64_t run_length(bool *done, const basin_converting *c, size_t k, int64_t at) {
    int64_t next = c->turned[k].first + c->turned[k].columns, first;
    *done = false;
    for (size_t i = 0; i < c->instructions; i++) {
        int64_t columns = stored(&first, c, k, i);
        if (columns == 0 || first < at) continue;
        if (first == at) {
            *done = true;
            return columns;
        }
        if (first < next) next = first;
    }
    return next - at;
}

/* Turns those columns of factor k that no product stores so. */
static bool turn_columns(basin_converting *c, size_t k) {
    const basin_turned t = c->turned[k];
    int64_t length;
    for (int64_t at = t.first; at < t.first + t.columns; at += length) {
        bool done;
        length = run_length(&done, c, k, at);
        if (done) continue;
        int from = columns_of(c, &t, at, length), to = place_turned(c, &t, at, length);
        if (from < 0 || to < 0 || !add_turn(c, to, from)) return false;
    }
    return true;
}

bool basin_turn_rest(basin_converting *c, size_t i) {
    for (size_t k = 0; k < c->turns; k++)
        if (c->turned[k].writer == i && !turn_columns(c, k)) return false;
    return true;
}
