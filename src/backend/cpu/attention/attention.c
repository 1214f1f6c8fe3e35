/* Energy attention: all pairs or a list of them. See attention.h. */
#include "backend/cpu/attention/attention.h"

#include "backend/cpu/attention/edges.h"

/* A list without scale and mix takes fewer passes. */
static bool is_fused(const basin_attention *at, basin_attention_mode mode) {
    if (at->scale || at->mix) return false;
    return (mode == BASIN_ATTENTION_FORCE && !at->dscale && !at->dmix) ||
           (mode == BASIN_ATTENTION_REVERSE && !at->gscale && !at->gmix);
}

static size_t workspace_of(const basin_attention *at, basin_attention_mode mode, int threads) {
    if (!at->pattern.row) return basin_attention_dense_workspace(at, mode, threads);
    if (basin_attention_is_short(at, mode)) return basin_attention_short_workspace(at, mode);
    if (is_fused(at, mode)) return basin_attention_fused_workspace(at, mode);
    return basin_attention_mixed_workspace(at, mode, threads);
}

enum { THREAD_WORK = 100000 }; /* multiplications of one product that are worth another thread */

/* Small problems take fewer threads; results do not depend on how many. */
int basin_attention_threads(const basin_attention *at, int threads) {
    const basin_attention_pattern *p = &at->pattern;
    double pairs = p->row ? p->row[p->queries] : (double)p->batch * (double)(p->queries * p->keys);
    double worth = 1 + pairs * (double)(p->heads * p->width) / THREAD_WORK;
    return worth < threads ? (int)worth : threads;
}

static void run(const basin_attention *at, basin_attention_mode mode, int threads,
                void *workspace) {
    threads = basin_attention_threads(at, threads);
    if (!at->pattern.row)
        basin_attention_dense(at, mode, threads, workspace);
    else if (basin_attention_is_short(at, mode))
        basin_attention_short_run(at, mode, threads, workspace);
    else if (is_fused(at, mode))
        basin_attention_fused(at, mode, threads, workspace);
    else
        basin_attention_mixed(at, mode, threads, workspace);
}

size_t basin_attention_value_workspace(const basin_attention *at, int threads) {
    return workspace_of(at, BASIN_ATTENTION_VALUE, threads);
}

size_t basin_attention_force_workspace(const basin_attention *at, int threads) {
    return workspace_of(at, BASIN_ATTENTION_FORCE, threads);
}

size_t basin_attention_force_reverse_workspace(const basin_attention *at, int threads) {
    return workspace_of(at, BASIN_ATTENTION_REVERSE, threads);
}

void basin_attention_value(const basin_attention *at, int threads, void *workspace) {
    run(at, BASIN_ATTENTION_VALUE, threads, workspace);
}

void basin_attention_force(const basin_attention *at, int threads, void *workspace) {
    run(at, BASIN_ATTENTION_FORCE, threads, workspace);
}

void basin_attention_force_reverse(const basin_attention *at, int threads, void *workspace) {
    run(at, BASIN_ATTENTION_REVERSE, threads, workspace);
}
