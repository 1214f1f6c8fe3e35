/* How the work over a CSR list is cut; see attention/pairs.h. */
#include "backend/cpu/attention/pairs.h"

#include "base/team/team.h"

enum {
    MIN_PIECE = 1024,          /* pairs; fewer are not worth a thread */
    BLOCK_BYTES = 1024 * 1024, /* about half of a second-level cache */
    MIN_RUN = 16,              /* pairs of an average run; shorter ones cost more than misses do */
};

static int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

static int64_t block_count(int64_t pairs, int64_t nodes, int64_t others, int64_t row_bytes) {
    int64_t wanted = ceil_divide(others * row_bytes, BLOCK_BYTES);
    int64_t most = nodes > 0 ? pairs / (nodes * MIN_RUN) : 1;
    if (wanted > most) wanted = most;
    return wanted > 1 ? wanted : 1;
}

basin_cpu_pairs basin_cpu_pairs_cut(const int32_t *start, const int32_t *other, int64_t nodes,
                                    int64_t others, int64_t row_bytes) {
    int64_t count = start[nodes], piece = ceil_divide(count, PAIRS_MAX_CHUNKS);
    if (piece < MIN_PIECE) piece = MIN_PIECE;
    int64_t blocks = block_count(count, nodes, others, row_bytes);
    return (basin_cpu_pairs){.nodes = nodes,
                             .others = others,
                             .count = count,
                             .start = start,
                             .other = other,
                             .piece = piece,
                             .chunks = ceil_divide(count, piece),
                             .block = ceil_divide(others, blocks),
                             .blocks = blocks};
}

size_t basin_cpu_pairs_cut_size(int64_t pairs, int64_t nodes, int64_t others, int64_t row_bytes) {
    int64_t blocks = block_count(pairs, nodes, others, row_bytes);
    return blocks > 1 ? (size_t)((nodes + PAIRS_MAX_CHUNKS) * (blocks + 1)) : 0;
}

/* The fragment at pair `begin`, in the first node from `node` on that has one. */
static basin_cpu_fragment fragment_at(const basin_cpu_pairs *pairs, int64_t chunk, int64_t node,
                                      int64_t begin) {
    int64_t first = chunk * pairs->piece, last = first + pairs->piece;
    if (last > pairs->count) last = pairs->count;
    if (begin >= last) return (basin_cpu_fragment){.node = node, .begin = last, .end = last};
    while (pairs->start[node + 1] <= begin) node++;
    int64_t end = pairs->start[node + 1];
    return (basin_cpu_fragment){.node = node,
                                .slot = pairs->start[node] < first ? pairs->nodes + chunk : node,
                                .begin = begin,
                                .end = end < last ? end : last};
}

basin_cpu_fragment basin_cpu_fragment_first(const basin_cpu_pairs *pairs, int64_t chunk) {
    int64_t begin = chunk * pairs->piece, low = 0, high = pairs->nodes;
    while (high - low > 1) { /* start[low] <= begin < start[high] */
        int64_t middle = (low + high) / 2;
        if (pairs->start[middle] <= begin)
            low = middle;
        else
            high = middle;
    }
    return fragment_at(pairs, chunk, low, begin);
}

void basin_cpu_fragment_next(basin_cpu_fragment *fragment, const basin_cpu_pairs *pairs,
                             int64_t chunk) {
    *fragment = fragment_at(pairs, chunk, fragment->node, fragment->end);
}

int64_t basin_cpu_pairs_continued(const basin_cpu_pairs *pairs, int64_t chunk) {
    basin_cpu_fragment first = basin_cpu_fragment_first(pairs, chunk);
    return first.begin < first.end && first.slot >= pairs->nodes ? first.node : -1;
}

/* The first of pairs at .. end whose other node is `limit` or later, by steps that double, then by
 * halves: runs are long. */
static int64_t run_end(const int32_t *other, int64_t at, int64_t end, int64_t limit) {
    int64_t step = 1;
    while (at + step <= end && other[at + step - 1] < limit) at += step, step *= 2;
    int64_t last = at + step - 1 < end ? at + step - 1 : end;
    while (at < last) {
        int64_t middle = (at + last) / 2;
        if (other[middle] < limit)
            at = middle + 1;
        else
            last = middle;
    }
    return at;
}

static void find_runs(const void *context, int64_t begin, int64_t end, int place) {
    const basin_cpu_pairs *pairs = context;
    (void)place;
    for (int64_t chunk = begin; chunk < end; chunk++)
        for (basin_cpu_fragment f = basin_cpu_fragment_first(pairs, chunk); f.begin < f.end;
             basin_cpu_fragment_next(&f, pairs, chunk)) {
            int32_t *cut = pairs->cut + f.slot * (pairs->blocks + 1);
            int64_t at = f.begin;
            cut[0] = (int32_t)at;
            for (int64_t b = 1; b < pairs->blocks; b++) {
                at = run_end(pairs->other, at, f.end, b * pairs->block);
                cut[b] = (int32_t)at;
            }
            cut[pairs->blocks] = (int32_t)f.end;
        }
}

void basin_cpu_pairs_find_runs(const basin_cpu_pairs *pairs, int threads) {
    if (pairs->blocks > 1) basin_team_run(find_runs, pairs, pairs->chunks, 1, threads);
}
