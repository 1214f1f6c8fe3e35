/* Energy attention: all pairs or a list of them. See attention.h. */
#include "backend/cpu/attention.h"

#include "backend/cpu/attention_edges.h"

static size_t workspace_of(const basin_attention *at, basin_attention_mode mode, int threads) {
    return at->pattern.row ? basin_attention_edges_workspace(at, mode, threads)
                           : basin_attention_dense_workspace(at, mode, threads);
}

static void run(const basin_attention *at, basin_attention_mode mode, int threads,
                void *workspace) {
    if (at->pattern.row)
        basin_attention_edges(at, mode, threads, workspace);
    else
        basin_attention_dense(at, mode, threads, workspace);
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
