/* Storage: every result gets a buffer for as long as it is needed, a pointwise result takes over
 * the buffer of an operand that ends there, and buffers that never meet share one arena. What
 * instructions that run at once read and write is needed until the last of them. */
#include "base/try.h"
#include "basin/random.h"
#include "engine/plan/ir.h"

/* -1 when out of memory; also where all buffers together would be more than a size can say. */
static int buffer_new(basin_ir *ir, size_t bytes, int first, int last) {
    if (bytes > SIZE_MAX / 2 - ir->unshared_bytes ||
        !BASIN_RESERVE(&ir->buffer, &ir->buffer_capacity, ir->buffers + 1)) {
        basin_ir_no_memory(ir);
        return -1;
    }
    ir->buffer[ir->buffers] =
        (basin_ir_buffer){basin_aligned(bytes), 0, first, last, .early = first, .late = last};
    ir->unshared_bytes += basin_aligned(bytes);
    return (int)ir->buffers++;
}

/* The last instruction that reads each root value; outputs last to the end, and so does what
 * hoisted instructions leave to the others: later runs read it again. */
static void find_lifetimes(const basin_ir *ir, int *last) {
    for (size_t i = 0; i < ir->values; i++)
        last[i] = ir->value[i].output ? (int)ir->instructions : ir->value[i].producer;
    for (size_t i = 0; i < ir->instructions; i++)
        for (int k = 0; k < ir->instruction[i].ins; k++) {
            if (ir->instruction[i].in[k] < 0) continue;
            int root = ir->value[ir->instruction[i].in[k]].root;
            int producer = ir->value[root].producer;
            bool kept = i >= ir->hoisted && producer >= 0 && producer < (int)ir->hoisted;
            int end = kept ? (int)ir->instructions : (int)i;
            if (last[root] < end) last[root] = end;
        }
}

/* Whether the instruction reads the root only as full-size operands of its program. */
static bool read_evenly(const basin_ir *ir, const basin_ir_instruction *instruction, int root) {
    int base = instruction->op == BASIN_OP_MATMUL ? 2 : 0;
    int64_t count = basin_shape_count(ir->value[instruction->out[0]].shape);
    for (int k = 0; k < instruction->ins; k++) {
        if (instruction->in[k] < 0 || ir->value[instruction->in[k]].root != root) continue;
        if (k < base || basin_shape_count(ir->value[instruction->in[k]].shape) != count)
            return false;
    }
    return true;
}

/* An operand's buffer that `value`, a result of this instruction, may take over; or -1. */
static int find_inherited(const basin_ir *ir, int s, int value, const int *last, int taken) {
    const basin_ir_instruction *instruction = &ir->instruction[s];
    if (!instruction->program || basin_op_reduces(instruction->op)) return -1;
    for (int k = instruction->op == BASIN_OP_MATMUL ? 2 : 0; k < instruction->ins; k++) {
        if (instruction->in[k] < 0) continue;
        int root = ir->value[instruction->in[k]].root;
        int buffer = ir->value[root].leaf ? -1 : ir->value[root].buffer; /* of a leaf: a block */
        if (buffer < 0 || buffer == taken || last[root] != s || ir->value[root].state) continue;
        if (ir->value[root].kind != ir->value[value].kind) continue;
        if (basin_shape_count(ir->value[root].shape) !=
            basin_shape_count(ir->value[instruction->in[k]].shape))
            continue; /* others are also parts of it */
        if (ir->buffer[buffer].last == s && read_evenly(ir, instruction, root)) return buffer;
    }
    return -1;
}

/* A joint value is placed with the first of its parts. */
static basin_status place_results(basin_ir *ir, int s, const int *last,
                                  const basin_backend_table *table, bool plain) {
    basin_ir_instruction *instruction = &ir->instruction[s];
    int taken = -1;
    for (int k = 0; k < basin_ir_results(instruction); k++) {
        int result = basin_ir_result(instruction, k);
        int value = result < 0 ? -1 : ir->value[result].root;
        if (value < 0 || ir->value[value].state || ir->value[value].buffer >= 0) continue;
        int end = last[value] < s ? s : last[value];
        bool whole = value == result; /* not a part */
        int buffer = plain || !whole ? -1 : find_inherited(ir, s, value, last, taken);
        if (buffer >= 0) {
            ir->buffer[buffer].last = end;
            taken = buffer;
        } else {
            size_t size = basin_kind_size(table, ir->value[value].kind);
            size_t bytes;
            if (!basin_size_multiply(&bytes, (size_t)basin_shape_count(ir->value[value].shape),
                                     size))
                return basin_ir_no_memory(ir);
            if (ir->value[value].bytes) bytes = ir->value[value].bytes;
            buffer = buffer_new(ir, bytes, s, end);
            if (buffer < 0) return BASIN_NO_MEMORY;
        }
        ir->value[value].buffer = buffer;
    }
    if (instruction->workspace_bytes && !instruction->parts) {
        instruction->workspace = buffer_new(ir, instruction->workspace_bytes, s, s);
        if (instruction->workspace < 0) return BASIN_NO_MEMORY;
    }
    return BASIN_OK;
}

/* One workspace a thread for all instructions of a run: any two of them may run at once. */
static basin_status place_workspaces(basin_ir *ir, size_t first, size_t end, int threads) {
    size_t max = 0, all;
    for (size_t i = first; i < end; i++)
        if (ir->instruction[i].workspace_bytes > max) max = ir->instruction[i].workspace_bytes;
    if (!basin_size_multiply(&all, max, (size_t)threads)) return basin_ir_no_memory(ir);
    int buffer = buffer_new(ir, all, (int)first, (int)end - 1);
    for (size_t i = first; i < end; i++) {
        ir->instruction[i].workspace = buffer;
        ir->instruction[i].workspace_bytes = max;
    }
    return buffer < 0 ? BASIN_NO_MEMORY : BASIN_OK;
}

/* What a run touches is needed all through it: one part may be at its end while another begins. */
static void stretch(basin_ir *ir, int value, size_t first, size_t end, bool cut) {
    const basin_ir_value *root = value < 0 ? NULL : &ir->value[ir->value[value].root];
    if (!root || root->leaf || root->buffer < 0) return;
    basin_ir_buffer *buffer = &ir->buffer[root->buffer];
    if (buffer->early > (int)first) buffer->early = (int)first;
    if (buffer->late < (int)end - 1) buffer->late = (int)end - 1;
    buffer->cut = buffer->cut || cut;
    buffer->whole = buffer->whole || !cut;
}

static basin_status stretch_runs(basin_ir *ir, int threads, int apart) {
    const size_t small = (size_t)1 << 29; /* bytes of all buffers */
    for (size_t i = 0; i < ir->buffers; i++) {
        ir->buffer[i].early = ir->buffer[i].first;
        ir->buffer[i].late = ir->buffer[i].last + (ir->unshared_bytes < small ? apart : 0);
    }
    for (size_t first = 0, end; first < ir->instructions; first = end + 1) {
        for (end = first; end < ir->instructions && ir->instruction[end].parts;) end++;
        for (size_t i = first; i < end; i++) {
            const basin_ir_instruction *instruction = &ir->instruction[i];
            for (int k = 0; k < instruction->ins; k++)
                stretch(ir, instruction->in[k], first, end, basin_ir_is_cut(instruction, k));
            for (int k = 0; k < instruction->outs; k++)
                stretch(ir, instruction->out[k], first, end, true);
        }
        if (end > first) BASIN_TRY(place_workspaces(ir, first, end, threads));
    }
    return BASIN_OK;
}

/* Whether two buffers may not share memory at all. */
static bool overlap_in_time(const basin_ir_buffer *a, const basin_ir_buffer *b) {
    return a->early <= b->late && b->early <= a->late;
}

/* Each part of its runs touches only that part's slice. */
static bool is_sliced(const basin_ir_buffer *buffer) { return buffer->cut && !buffer->whole; }

/* Whether they may share memory at exactly the same place: each part then only follows itself. */
static bool may_coincide(const basin_ir_buffer *a, const basin_ir_buffer *b) {
    return is_sliced(a) && is_sliced(b) && a->bytes == b->bytes &&
           (a->first > b->last || b->first > a->last);
}

/* The lowest place that overlaps no placed buffer alive with it; `placed` is by offset. */
static size_t find_place(const basin_ir *ir, const int *placed, int count, int which) {
    const basin_ir_buffer *own = &ir->buffer[which];
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        const basin_ir_buffer *other = &ir->buffer[placed[i]];
        if (!overlap_in_time(own, other)) continue;
        if (other->offset >= at + own->bytes) break;
        if (other->offset + other->bytes <= at) continue;
        if (!may_coincide(own, other)) {
            at = other->offset + other->bytes;
        } else if (other->offset != at) {
            at = other->offset + (other->offset > at ? 0 : other->bytes);
            i = -1; /* those before it may lie upon the new place */
        }
    }
    return at;
}

static int larger_first(const void *a, const void *b) {
    const basin_ir_buffer *const *x = a, *const *y = b;
    if ((*x)->bytes != (*y)->bytes) return (*x)->bytes < (*y)->bytes ? 1 : -1;
    return *x < *y ? -1 : 1;
}

/* Each buffer at the lowest free place of its lifetime. Returns the bytes of all. */
static size_t place_in_order(basin_ir *ir, const basin_ir_buffer *const *order, int *placed) {
    size_t bytes = 0;
    for (size_t i = 0; i < ir->buffers; i++) {
        int which = (int)(order[i] - ir->buffer);
        basin_ir_buffer *b = &ir->buffer[which];
        b->offset = find_place(ir, placed, (int)i, which);
        if (b->offset + b->bytes > bytes) bytes = b->offset + b->bytes;
        size_t k = i;
        for (; k > 0 && ir->buffer[placed[k - 1]].offset > b->offset; k--)
            placed[k] = placed[k - 1];
        placed[k] = which;
    }
    return bytes;
}

/* What is alive at once, at most: no arena is smaller. */
static size_t max_alive(const basin_ir *ir) {
    size_t max = 0;
    for (size_t i = 0; i < ir->buffers; i++) { /* it is reached where some buffer begins */
        size_t alive = 0;
        for (size_t k = 0; k < ir->buffers; k++)
            if (ir->buffer[k].first <= ir->buffer[i].first &&
                ir->buffer[i].first <= ir->buffer[k].last)
                alive += ir->buffer[k].bytes;
        if (alive > max) max = alive;
    }
    return max;
}

static void move(const basin_ir_buffer **order, size_t from, size_t to) {
    const basin_ir_buffer *moved = order[from];
    for (; from < to; from++) order[from] = order[from + 1];
    for (; from > to; from--) order[from] = order[from - 1];
    order[to] = moved;
}

/* Moves one buffer after the other to another place in the order, and back where that needs more
 * memory; the same moves each time. Large arenas are worth it. */
static size_t close_gaps(basin_ir *ir, const basin_ir_buffer **order, int *placed, size_t bytes) {
    const double min = 0x1p26, work = 1e8;
    const size_t max = 500;
    double each = (double)ir->buffers * (double)ir->buffers;
    if ((double)bytes < min) return bytes;
    size_t alive = max_alive(ir);
    basin_random random = basin_random_start(1, 1, 0);
    for (size_t i = 0; i < max && (double)i * each < work && bytes > alive; i++) {
        size_t from = (size_t)basin_random_below(&random, ir->buffers);
        size_t to = (size_t)basin_random_below(&random, ir->buffers);
        move(order, from, to);
        size_t found = place_in_order(ir, order, placed);
        if (found <= bytes)
            bytes = found;
        else
            move(order, to, from);
    }
    return place_in_order(ir, order, placed);
}

/* Greedy by size: large buffers first; then as close_gaps finds it better. */
static basin_status place_buffers(basin_ir *ir) {
    const basin_ir_buffer **order = basin_ir_scratch(ir, ir->buffers, sizeof *order);
    int *placed = basin_ir_scratch(ir, ir->buffers, sizeof *placed);
    if (!order || !placed) return BASIN_NO_MEMORY;
    for (size_t i = 0; i < ir->buffers; i++) order[i] = &ir->buffer[i];
    qsort(order, ir->buffers, sizeof *order, larger_first);
    ir->arena_bytes = close_gaps(ir, order, placed, place_in_order(ir, order, placed));
    return BASIN_OK;
}

basin_status basin_ir_layout(basin_ir *ir, const basin_backend *backend, bool plain) {
    const basin_backend_table *table = backend->table;
    int *last = basin_ir_scratch(ir, ir->values, sizeof *last);
    if (!last) return BASIN_NO_MEMORY;
    find_lifetimes(ir, last);
    for (size_t i = 0; i < ir->instructions; i++)
        BASIN_TRY(place_results(ir, (int)i, last, table, plain));
    for (size_t i = 0; i < ir->values; i++)
        if (ir->value[i].first)
            ir->value[i].offset = (size_t)ir->value[i].first *
                                  basin_kind_size(table, ir->value[ir->value[i].root].kind);
    BASIN_TRY(stretch_runs(ir, backend->threads, table->apart));
    return place_buffers(ir);
}
