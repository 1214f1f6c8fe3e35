/* How long energy attention over all pairs takes on a GPU, at the paper's image model, beside the
 * floors of its products and of its memory traffic.
 *
 *     build/bench/cuda_attention [BATCH [NODES]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/backend/kernel.h"

enum { TIMING_CALLS = 20, TIMING_RUNS = 12, TIMING_HEADS = 12, TIMING_WIDTH = 64 };

typedef struct timing {
    basin_backend *backend;
    basin_call call[TIMING_CALLS]; /* the same one, so that a run is long */
    void *block[1 + BASIN_MAX_IN + BASIN_MAX_OUT];
    int blocks;
    double bytes; /* of operands */
} timing;

/* An operand of random numbers in [-1, 1) or, positive, [0, 1], as floats or as the upper halves of
 * floats. */
static basin_operand timing_operand(timing *t, basin_kind kind, basin_shape shape, bool positive) {
    size_t count = (size_t)basin_shape_count(shape), size = kind == BASIN_NARROW ? 2 : 4;
    char *host = malloc(count * size);
    uint64_t state = (uint64_t)t->blocks + 1;
    void *memory = t->backend->table->alloc(t->backend, count * size);
    if (!host || !memory) {
        fprintf(stderr, "out of memory for %zu bytes\n", count * size);
        exit(1);
    }
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        float x = (float)(state >> 40) / 8388608.0f - 1.0f;
        if (positive && x < 0) x = -x;
        memcpy(host + i * size, (char *)&x + (4 - size), size);
    }
    t->backend->table->copy_in(t->backend, memory, host, count * size);
    free(host);
    t->bytes += (double)count * (double)size;
    t->block[t->blocks] = memory;
    return (basin_operand){.block = t->blocks++, .kind = kind, .shape = shape};
}

static double timing_seconds(timing *t) {
    double began = basin_clock();
    basin_error error = {0};
    t->backend->table->run(t->backend, t->call, TIMING_CALLS, t->block);
    if (t->backend->table->wait(t->backend, &error) != BASIN_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return basin_clock() - began;
}

/* What is timed: an operation, and whether beta is learnt. */
typedef struct timing_form {
    const char *name;
    basin_op op;
    bool learns;
    double products; /* multiplications and additions of a pair and column */
} timing_form;

/* The call, its operands in blocks of their own. */
static basin_call timing_call(timing *t, const timing_form *form, basin_kind kind, uint8_t products,
                              int64_t batch, int64_t nodes) {
    basin_shape large = BASIN_SHAPE(batch, nodes, TIMING_HEADS, TIMING_WIDTH);
    basin_shape row = BASIN_SHAPE(batch, nodes, TIMING_HEADS), heads = BASIN_SHAPE(TIMING_HEADS);
    bool value = form->op == BASIN_OP_ATTENTION, reverse = form->op == BASIN_OP_ATTENTION_REVERSE;
    basin_call call = {.op = form->op, .attr = {.exclude_self = true, .products = products}};
    for (int i = 0; i < BASIN_MAX_IN; i++) call.in[i].block = -1;
    for (int i = 0; i < BASIN_MAX_OUT; i++) call.out[i].block = -1;
    call.ins = reverse ? BASIN_ATT_B + 1 : BASIN_ATT_W + 1, call.outs = value ? 1 : 6;
    call.in[BASIN_ATT_Q] = timing_operand(t, kind, large, false);
    call.in[BASIN_ATT_K] = timing_operand(t, kind, large, false);
    call.in[BASIN_ATT_BETA] = timing_operand(t, BASIN_REAL, heads, true);
    if (value) call.out[BASIN_ATT_LSE] = timing_operand(t, BASIN_REAL, row, true);
    if (value) return call;
    call.in[BASIN_ATT_W] = timing_operand(t, BASIN_REAL, row, true);
    if (reverse) call.in[BASIN_ATT_A] = timing_operand(t, kind, large, false);
    if (reverse) call.in[BASIN_ATT_B] = timing_operand(t, kind, large, false);
    if (reverse && form->learns) call.out[BASIN_ATT_GW] = timing_operand(t, BASIN_REAL, row, true);
    if (form->learns)
        call.out[reverse ? BASIN_ATT_GBETA : BASIN_ATT_DBETA] =
            timing_operand(t, BASIN_REAL, heads, true);
    call.out[reverse ? BASIN_ATT_GQ : BASIN_ATT_DQ] = timing_operand(t, kind, large, false);
    call.out[reverse ? BASIN_ATT_GK : BASIN_ATT_DK] = timing_operand(t, kind, large, false);
    return call;
}

/* One form in one precision; prints a row. */
static void timing_row(basin_backend *backend, const timing_form *form, const char *name,
                       basin_kind kind, uint8_t products, double rate, int64_t batch,
                       int64_t nodes) {
    timing t = {.backend = backend, .blocks = 1};
    basin_call call = timing_call(&t, form, kind, products, batch, nodes);
    call.workspace_bytes = backend->table->workspace(backend, &call);
    t.block[0] = backend->table->alloc(backend, call.workspace_bytes + 1);
    for (int i = 0; i < TIMING_CALLS; i++) t.call[i] = call;
    double least = 1e9;
    double flops = form->products * (double)(batch * nodes * nodes) * TIMING_HEADS * TIMING_WIDTH;
    for (int i = 0; i < TIMING_RUNS; i++) {
        double seconds = timing_seconds(&t) / TIMING_CALLS;
        if (i > 2 && seconds < least) least = seconds;
    }
    double product = flops / rate, memory = t.bytes / 4.3e12;
    double floor = product > memory ? product : memory;
    printf("%-5s %-16s %8.4f ms   products %.4f, memory %.4f: %.2f of the floor\n", name,
           form->name, 1e3 * least, 1e3 * product, 1e3 * memory, least / floor);
    for (int i = 0; i < t.blocks; i++) backend->table->free(backend, t.block[i]);
}

/* Rates are what large products reach on an H200. */
static void timing_all(basin_backend *backend, int64_t batch, int64_t nodes) {
    static const timing_form form[] = {{"log-sum-exp", BASIN_OP_ATTENTION, false, 2},
                                       {"force", BASIN_OP_ATTENTION_FORCE, false, 6},
                                       {"reverse", BASIN_OP_ATTENTION_REVERSE, false, 14},
                                       {"reverse, beta", BASIN_OP_ATTENTION_REVERSE, true, 14}};
    printf("batch %lld, %lld nodes, H %d, Y %d, all pairs but self\n", (long long)batch,
           (long long)nodes, TIMING_HEADS, TIMING_WIDTH);
    for (size_t i = 0; i < sizeof form / sizeof *form; i++) {
        timing_row(backend, &form[i], "bf16", BASIN_NARROW, 0, 770e12, batch, nodes);
        timing_row(backend, &form[i], "tf32", BASIN_REAL, BASIN_PRODUCTS_TF32, 385e12, batch,
                   nodes);
        timing_row(backend, &form[i], "f32", BASIN_REAL, 0, 128e12, batch, nodes);
    }
}

int main(int count, char **word) {
    basin_backend *cuda;
    basin_error error;
    if (basin_backend_open(&cuda, &(basin_compute){.backend = "cuda"}, &error)) {
        printf("%s: skipped\n", error.text);
        return 0;
    }
    timing_all(cuda, count > 1 ? atoll(word[1]) : 256, count > 2 ? atoll(word[2]) : 197);
    basin_backend_close(cuda);
    return 0;
}
