/* Softmax attention with values over all pairs on sm_90's warpgroup products: bfloat16, heads and
 * values up to 64 wide. See attention/values.h.
 *
 * A warpgroup has 64 own rows of one head in shared memory; the other side streams through it, in
 * tiles of 64 rows, several of them in flight. In the second order, two warpgroups of a block share
 * the streamed tiles, since reading these from the L2 cache for a single one takes longer than
 * computing; a barrier for each stage says when it is full and when it is read, so that one
 * multiplies while the other exponentiates. In lower orders, three blocks of one warpgroup share a
 * multiprocessor.
 */
#include "engine/backend/cuda/attention/dense.h"
#include "engine/backend/cuda/attention/dense_rows.h"
#include "engine/backend/cuda/attention/tma.h"
#include "engine/backend/cuda/attention/values.h"
#include "engine/backend/cuda/attention/wgmma.h"

namespace {

enum { ROWS = BASIN_VALUES_ROWS, SUMS = 32, TABLE = ROWS * 128 };

typedef basin_wgmma_bf16 number;

/* Bits of dropout for the thread's elements of a tile, set where they stay. */
template <bool BY_KEY> struct wide_kept {
    uint32_t word[BY_KEY ? 1 : 4];
    BASIN_METHOD static int bit(int n) {
        int column = n / 4 * 2 + n % 2;
        return BY_KEY ? column % 8 + column / 8 * 16 + n / 2 % 2 * 8 : n / 4 % 4 * 8 + n % 2;
    }
    BASIN_METHOD bool has(int n) const {
        return word[BY_KEY ? 0 : n / 2 % 2 * 2 + n / 16] >> bit(n) & 1;
    }
};

/* With the tables as the copy engine (TMA) knows them: [batch, heads, tokens, width]; what is known
 * of queries is [1, batch heads, queries, 4 floats]. */
struct wide_launch {
    CUtensorMap own[4], other[4], known;
    basin_values_launch p;
};

/* ---- a warpgroup's rows and the tiles it streams ---- */

/* TC: there is a tangent of c. */
template <basin_values_stage STAGE, int ORDER, bool TC> struct wide_block {
    enum {
        BY_KEY = STAGE == BASIN_VALUES_BY_KEY,
        BY_QUERY = STAGE == BASIN_VALUES_BY_QUERY,
        AT_ONCE = STAGE == BASIN_VALUES_AT_ONCE,
        SECOND = ORDER == 2,
        STREAMED = SECOND ? 4 : 2,
        OWN = AT_ONCE ? STREAMED / 2 : STREAMED,
        KNOWN = STREAMED * TABLE, /* where a stage has what is known of its queries */
        STAGE_BYTES = KNOWN + (BY_KEY ? ROWS * 16 : 0),
        GROUPS = SECOND ? 2 : 1, /* warpgroups of a block */
        BLOCKS = SECOND                                   ? 1
                 : AT_ONCE || STAGE == BASIN_VALUES_STATS ? 4
                                                          : 3, /* at a time */
        STAGES = SECOND        ? 4
                 : BLOCKS == 4 ? 2
                               : 3,
        AHEAD = BLOCKS == 4 ? 1 : 2, /* tiles on their way */
        /* Tables that count: those of queries lack tc where there is none. */
        OWN_TABLES = AT_ONCE             ? OWN
                     : SECOND && !BY_KEY ? 3 + TC
                                         : STREAMED,
        TILE_TABLES = SECOND && BY_KEY ? 3 + TC : STREAMED,
        TILE_BYTES = TILE_TABLES * TABLE + STAGE_BYTES - KNOWN,
        BYTES = GROUPS * OWN * TABLE + STAGES * STAGE_BYTES + 2 * STAGES * 8,
    };
    static_assert(BLOCKS * (BYTES + 1024) <= 228 * 1024, "shared memory has room for all blocks");

    const wide_launch &maps;
    const basin_values_launch &p;
    char *own, *stages;
    uint32_t full, empty; /* barriers of the stages */
    int entry, head, first, group, warp, g, t;
    int from, tiles; /* streamed tiles of a head: from .. from + tiles - 1 */

    BASIN_METHOD wide_block(const wide_launch &launch, char *shared) : maps(launch), p(launch.p) {
        int set = (int)blockIdx.x / p.blocks, block = (int)blockIdx.x % p.blocks;
        stages = shared + GROUPS * OWN * TABLE;
        full = basin_shared_address(stages + STAGES * STAGE_BYTES), empty = full + 8 * STAGES;
        group = __shfl_sync(~0u, (int)threadIdx.x / 128, 0);
        own = shared + group * OWN * TABLE;
        int heads = BY_KEY ? p.heads / p.each : p.heads;
        if (p.causal && !BY_KEY) block = p.blocks - 1 - block; /* the longest first */
        entry = set / heads, head = set % heads, first = (block * GROUPS + group) * ROWS;
        warp = __shfl_sync(~0u, (int)threadIdx.x / 32 % 4, 0);
        g = (int)threadIdx.x % 32 / 4, t = (int)threadIdx.x % 4;
        from = BY_KEY && p.causal ? block * GROUPS : 0;
        int end = !BY_KEY && p.causal ? min(p.other, (block + 1) * GROUPS * ROWS) : p.other;
        tiles = max((end + ROWS - 1) / ROWS - from, 0);
    }

    BASIN_METHOD int turns() const { return (BY_KEY ? p.each : 1) * tiles; }
    BASIN_METHOD int query_head(int turn) const {
        return BY_KEY ? head * p.each + turn / tiles : head;
    }
    BASIN_METHOD int begin_of(int turn) const {
        return (from + (BY_KEY ? turn % tiles : turn)) * ROWS;
    }
    BASIN_METHOD char *stage(int turn) const { return stages + turn % STAGES * STAGE_BYTES; }
    BASIN_METHOD static int slot(int table) { return SECOND ? table : table / 2; }
    BASIN_METHOD const char *mine(int table) const { return own + slot(table) * TABLE; }
    BASIN_METHOD const char *streamed(int turn, int table) const {
        return stage(turn) + slot(table) * TABLE;
    }
    /* Whether a table takes part; those that do and are absent are zeros. */
    BASIN_METHOD static bool counts(int table, bool of_queries) {
        return (SECOND || table % 2 == 0) && (table < 3 || TC || !of_queries);
    }

    /* 64 rows of a head; beyond its rows and columns, or of a table that is absent, zeros. */
    BASIN_METHOD void fetch(char *to, const CUtensorMap *map, const void *table, int h, int begin,
                            int turn) const {
        barrier_fetch(basin_shared_address(to), map, 0, table ? begin : INT32_MAX / 2, h, entry,
                      full + turn % STAGES * 8);
    }

    BASIN_METHOD void fetch_own() const {
        BASIN_UNROLL (g, GROUPS)
            BASIN_UNROLL (i, 4)
                if (slot(i) < OWN && counts(i, !BY_KEY))
                    fetch(own + (g * OWN + slot(i)) * TABLE, &maps.own[i], p.x[i], head,
                          first + g * ROWS, 0);
    }

    BASIN_METHOD void fetch_tile(int turn) const {
        int begin = begin_of(turn), queries = query_head(turn);
        barrier_expect(full + turn % STAGES * 8,
                       TILE_BYTES + (turn == 0 ? GROUPS * OWN_TABLES * TABLE : 0));
        BASIN_UNROLL (i, 4)
            if (counts(i, BY_KEY))
                fetch(stage(turn) + slot(i) * TABLE, &maps.other[i], p.y[i],
                      BY_KEY ? queries : head / p.each, begin, turn);
        if (BY_KEY)
            barrier_fetch(basin_shared_address(stage(turn) + KNOWN), &maps.known, 0, begin,
                          entry * p.heads + queries, 0, full + turn % STAGES * 8);
    }

    /* Whether no own row has a pair in a tile. */
    BASIN_METHOD bool sees_none(int turn) const {
        int begin = begin_of(turn);
        return p.causal && (BY_KEY ? begin + ROWS <= first : begin >= first + ROWS);
    }

    /* The own rows and the first tiles on their way, which the first thread sends for. */
    BASIN_METHOD void open(int count) const {
        if (threadIdx.x == 0) {
            BASIN_UNROLL (i, STAGES) barrier_new(full + 8 * i, 1);
            BASIN_UNROLL (i, STAGES) barrier_new(empty + 8 * i, 4 * GROUPS);
            asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            BASIN_UNROLL (i, AHEAD)
                if (i < count) fetch_tile(i);
            if (count > 0) fetch_own();
        }
        __syncwarp();
    }

    /* Waits for a tile; sends for one that takes the place of one before. */
    BASIN_METHOD void take(int turn, int count) const {
        int next = turn + AHEAD;
        if (threadIdx.x == 0 && next < count) {
            if (next >= STAGES) barrier_wait(empty + next % STAGES * 8, (next / STAGES - 1) % 2);
            fetch_tile(next);
        }
        __syncwarp();
        barrier_wait(full + turn % STAGES * 8, turn / STAGES % 2);
    }
    BASIN_METHOD void leave(int turn) const {
        __syncwarp();
        if (threadIdx.x % 32 == 0) barrier_arrive(empty + turn % STAGES * 8);
    }

    BASIN_METHOD void multiply(float (&s)[SUMS], float (&x)[SUMS], float (&c)[SUMS],
                               float (&y)[SUMS], int turn) const {
        basin_wgmma_fence();
        basin_wgmma_multiply<number, false>(s, mine(0), 0, streamed(turn, 0), 0);
        if constexpr (SECOND) {
            basin_wgmma_multiply<number, false>(x, mine(1), 0, streamed(turn, 0), 0);
            basin_wgmma_multiply<number, true>(x, mine(0), 0, streamed(turn, 1), 0);
        }
        if constexpr (!AT_ONCE)
            basin_wgmma_multiply<number, false>(c, mine(2), 0, streamed(turn, 2), 0);
        if constexpr (!AT_ONCE && SECOND) { /* tv c or c tv; then with tc */
            basin_wgmma_multiply<number, false>(y, mine(2 + BY_KEY), 0, streamed(turn, 3 - BY_KEY),
                                                0);
            if constexpr (TC)
                basin_wgmma_multiply<number, true>(y, mine(3 - BY_KEY), 0,
                                                   streamed(turn, 2 + BY_KEY), 0);
        }
        basin_wgmma_close();
        basin_wgmma_wait<0>();
        basin_wgmma_pin(s);
        if constexpr (SECOND) basin_wgmma_pin(x);
        if constexpr (!AT_ONCE) basin_wgmma_pin(c);
        if constexpr (!AT_ONCE && SECOND) basin_wgmma_pin(y);
    }

    /* Scores in units of log 2, minus infinity where there is no pair, and ts. */
    BASIN_METHOD void pairs(float (&s)[SUMS], float (&x)[SUMS], int turn) const {
        int begin = begin_of(turn), h = query_head(turn);
        float scale = p.scale * BASIN_LOG2_E;
        BASIN_UNROLL (n, SUMS) {
            s[n] *= scale;
            if (SECOND) x[n] *= p.scale;
        }
        bool below = BY_KEY ? first + ROWS - 1 <= begin : begin + ROWS - 1 <= first;
        if ((BY_KEY || begin + ROWS <= p.other) && (!p.causal || below) && !p.exclude_self &&
            !p.bias && !p.tbias)
            return;
        if (!p.bias && !p.tbias) {
            BASIN_UNROLL (n, SUMS) {
                int row = first + warp * 16 + g + n / 2 % 2 * 8, other = begin + column(n);
                bool seen = BY_KEY ? other >= row : other <= row;
                bool there = (BY_KEY || other < p.other) && (!p.causal || seen) &&
                             (!p.exclude_self || other != row);
                s[n] = there ? s[n] : basin_minus_infinity();
            }
            return;
        }
        BASIN_UNROLL (n, SUMS) {
            int row = first + warp * 16 + g + n / 2 % 2 * 8, other = begin + column(n);
            basin_values_pair(s[n], x[SECOND ? n : 0], p, entry, h, BY_KEY ? other : row,
                              BY_KEY ? row : other, row < p.own && other < p.other);
        }
    }

    /* The bits of dropout of the thread's pairs; loaded while products run. */
    BASIN_METHOD wide_kept<BY_KEY> kept(int turn) const {
        wide_kept<BY_KEY> k = {};
        int64_t words = ((int64_t)entry * p.heads + query_head(turn)) * p.words;
        if (BY_KEY) {
            const uint32_t *at = p.keep + (words + (first + warp * 16) / 32) * p.rows;
            int shift = warp % 2 * 16 + g;
            BASIN_UNROLL (j, ROWS / 8) {
                uint2 two = *(const uint2 *)(at + begin_of(turn) + column(4 * j));
                k.word[0] |= (two.x >> shift & 0x101u) << k.bit(4 * j);
                k.word[0] |= (two.y >> shift & 0x101u) << k.bit(4 * j + 1);
            }
            asm("" : "+r"(k.word[0])); /* one register, not the 16 that it comes from */
        } else {
            const uint32_t *at = p.keep + (words + begin_of(turn) / 32) * p.rows + first;
            BASIN_UNROLL (n, 4) k.word[n] = at[n % 2 * p.rows + warp * 16 + g + n / 2 * 8] >> 2 * t;
        }
        return k;
    }

    BASIN_METHOD int column(int n) const { return n / 4 * 8 + 2 * t + n % 2; }

    BASIN_METHOD int64_t query_at(int r) const {
        int i = first + warp * 16 + g + 8 * r;
        return i < p.own ? ((int64_t)entry * p.heads + head) * p.own + i : -1;
    }

    BASIN_METHOD float *level_of(int r) const {
        int64_t set = (int64_t)entry * p.heads + head;
        return p.level + set * p.rows + first + warp * 16 + g + 8 * r;
    }

    /* What is known of a query from its level and o, since the mean of g is c . o; for others. */
    BASIN_METHOD float4 recall(int r) const {
        const basin_values_steps &of = p.of_x[1];
        int row = first + warp * 16 + g + 8 * r;
        int64_t at = entry * of.batch + head * of.head + row * of.token;
        float mean = 0;
        BASIN_UNROLL (j, 2) {
            int column = 8 * t + 32 * j;
            if (row >= p.own || column >= p.width[1]) continue;
            uint4 c = *(const uint4 *)((const basin_bf16 *)p.x[2] + at + column);
            uint4 o = *(const uint4 *)((const basin_bf16 *)p.o + at + column);
            const uint32_t two[2][4] = {{c.x, c.y, c.z, c.w}, {o.x, o.y, o.z, o.w}};
            BASIN_UNROLL (i, 4) {
                mean =
                    fmaf(__uint_as_float(two[0][i] << 16), __uint_as_float(two[1][i] << 16), mean);
                mean = fmaf(__uint_as_float(two[0][i] & 0xffff0000u),
                            __uint_as_float(two[1][i] & 0xffff0000u), mean);
            }
        }
        float4 known = make_float4(row < p.own ? *level_of(r) : 0, 0, basin_quad_sum(mean), 0);
        if (t == 0 && row < p.own) ((float4 *)p.stats)[query_at(r)] = known;
        return known;
    }

    BASIN_METHOD void write(int w, void *table, const float (&sum)[SUMS],
                            const float (&factor)[2]) const {
        if (!table) return;
        const basin_values_steps &of = p.of_x[w];
        BASIN_UNROLL (r, 2) {
            int row = first + warp * 16 + g + 8 * r;
            basin_bf16 *to =
                (basin_bf16 *)table + entry * of.batch + head * of.head + row * of.token + 2 * t;
            BASIN_UNROLL (j, ROWS / 8)
                if (row < p.own && j * 8 < p.width[w])
                    basin_dense_store(to + j * 8, sum[j * 4 + r * 2] * factor[r],
                                      sum[j * 4 + r * 2 + 1] * factor[r]);
        }
    }
};

/* ---- weights: what pairs become, as left operands of the next products ---- */

struct wide_weights {
    uint32_t p[ROWS / 16][4], tp[ROWS / 16][4], ds[ROWS / 16][4], tds[ROWS / 16][4];
};

BASIN_DEVICE void pack(uint32_t (&to)[4], const float (&x)[8]) {
    BASIN_UNROLL (i, 4) to[i] = basin_mma_bf16::two(x[2 * i], x[2 * i + 1]);
}

/* What is known of a query: p = 2^(z - level); the means of ts and g, the sum of u. */
BASIN_DEVICE float4 known_of(const basin_values_sums &sums) {
    basin_values_stats of = sums.end();
    bool any = sums.total != 0; /* or not a number */
    return make_float4(any ? of.maximum + __log2f(sums.total) : -basin_minus_infinity(), of.mean,
                       of.d, of.sum);
}

template <bool DROP, typename block>
BASIN_DEVICE void weigh(wide_weights &w, const block &b, const float (&s)[SUMS],
                        const float (&x)[SUMS], const float (&c)[SUMS], const float (&y)[SUMS],
                        const float4 (&mine)[2], int turn, const wide_kept<block::BY_KEY> &kept) {
    const float4 *known = (const float4 *)(b.stage(turn) + block::KNOWN);
    BASIN_UNROLL (step, ROWS / 16) {
        float p[8], tp[8], ds[8], tds[8];
        BASIN_UNROLL (e, 8) {
            int n = step * 8 + e;
            float4 of = block::BY_KEY ? known[b.column(n)] : mine[e / 2 % 2];
            p[e] = basin_exp2(s[n] - of.x);
            float m = kept.has(n) ? b.p.kept : 0, slope = DROP ? fmaf(c[n], m, -of.z) : c[n] - of.z;
            ds[e] = p[e] * slope;
            if (block::SECOND) {
                tp[e] = p[e] * (x[n] - of.y);
                tds[e] = fmaf(tp[e], slope, p[e] * (y[n] - of.w));
            }
            if (DROP && block::BY_KEY) p[e] *= m;
        }
        if (block::BY_QUERY && b.p.slope)
            BASIN_UNROLL (e, 8) {
                int64_t i = b.query_at(e / 2 % 2);
                int j = b.begin_of(turn) + b.column(step * 8 + e);
                if (i >= 0 && j < b.p.other)
                    b.p.slope[i * b.p.other + j] = block::SECOND ? tds[e] : ds[e];
            }
        pack(w.p[step], p), pack(w.ds[step], ds);
        if (block::SECOND) pack(w.tp[step], tp), pack(w.tds[step], tds);
    }
}

/* ---- the kernels ---- */

template <int ORDER, bool TC, bool DROP>
__global__ void __launch_bounds__(ORDER == 2 ? 256 : 128, ORDER == 2 ? 1 : 4)
    wide_stats(const __grid_constant__ wide_launch l) {
    typedef wide_block<BASIN_VALUES_STATS, ORDER, TC> block;
    extern __shared__ __align__(1024) char shared[];
    const basin_values_launch &p = l.p;
    block b(l, shared);
    int count = b.turns();
    float s[SUMS], x[SUMS], c[SUMS], y[SUMS];
    basin_values_sums sums[2];
    BASIN_UNROLL (r, 2) sums[r].begin(0, 0);
    b.open(count);
    for (int turn = 0; turn < count; b.leave(turn++)) {
        b.take(turn, count);
        if (b.sees_none(turn)) continue;
        b.multiply(s, x, c, y, turn);
        b.pairs(s, x, turn);
        if constexpr (DROP) {
            wide_kept<false> kept = b.kept(turn);
            BASIN_UNROLL (n, SUMS) c[n] = kept.has(n) ? c[n] * p.kept : 0;
        }
        BASIN_UNROLL (r, 2) {
            float ts = ORDER == 2 ? __shfl_sync(~0u, x[2 * r], threadIdx.x & 28) : 0;
            float slope = __shfl_sync(~0u, c[2 * r], threadIdx.x & 28);
            if (turn == 0) sums[r].begin(ts, slope);
            float top = basin_minus_infinity();
            BASIN_UNROLL (n, SUMS / 2) top = fmaxf(top, s[n / 2 * 4 + 2 * r + n % 2]);
            sums[r].raise(top);
            BASIN_UNROLL (n, SUMS / 2) {
                int i = n / 2 * 4 + 2 * r + n % 2;
                sums[r].add(s[i], ORDER == 2 ? x[i] : 0, c[i], ORDER == 2 ? y[i] : 0);
            }
        }
    }
    BASIN_UNROLL (r, 2) {
        sums[r].merge(1), sums[r].merge(2);
        if (b.t == 0 && b.query_at(r) >= 0) ((float4 *)p.stats)[b.query_at(r)] = known_of(sums[r]);
    }
}

/* BOTH: by query, gc is requested beside gq. */
template <bool BY_KEY, int ORDER, bool TC, bool BOTH, bool DROP>
__global__ void __launch_bounds__(ORDER == 2 ? 256 : 128, ORDER == 2 ? 1 : 3)
    wide_side(const __grid_constant__ wide_launch l) {
    constexpr basin_values_stage STAGE = BY_KEY ? BASIN_VALUES_BY_KEY : BASIN_VALUES_BY_QUERY;
    typedef wide_block<STAGE, ORDER, TC> block;
    extern __shared__ __align__(1024) char shared[];
    const basin_values_launch &p = l.p;
    block b(l, shared);
    int count = b.turns();
    float s[SUMS], x[SUMS], c[SUMS], y[SUMS], out[SUMS] = {}, more[SUMS] = {};
    float4 mine[2] = {};
    wide_weights w;
    b.open(count);
    BASIN_UNROLL (r, 2)
        if (!BY_KEY && ORDER == 1 && p.level)
            mine[r] = b.recall(r);
        else if (!BY_KEY && b.query_at(r) >= 0)
            mine[r] = ((const float4 *)p.stats)[b.query_at(r)];
    wide_kept<BY_KEY> kept = {};
    if (DROP && !BY_KEY) kept = b.kept(0);
    for (int turn = 0; turn < count; b.leave(turn++)) {
        if (DROP && BY_KEY) kept = b.kept(turn); /* more registers than there are later */
        b.take(turn, count);
        if (b.sees_none(turn)) continue;
        b.multiply(s, x, c, y, turn);
        b.pairs(s, x, turn);
        weigh<DROP>(w, b, s, x, c, y, mine, turn, kept);
        basin_wgmma_fence();
        if constexpr (ORDER == 2) {
            basin_wgmma_sum<number, true>(out, w.tds, b.streamed(turn, 0), 0);
            basin_wgmma_sum<number, true>(out, w.ds, b.streamed(turn, 1), 0);
            if constexpr (BOTH || BY_KEY)
                basin_wgmma_sum<number, true>(more, w.tp, b.streamed(turn, 2), 0);
            if constexpr (BY_KEY ? TC : BOTH)
                basin_wgmma_sum<number, true>(more, w.p, b.streamed(turn, 3), 0);
        } else {
            basin_wgmma_sum<number, true>(out, w.ds, b.streamed(turn, 0), 0);
            if constexpr (BY_KEY) basin_wgmma_sum<number, true>(more, w.p, b.streamed(turn, 2), 0);
        }
        basin_wgmma_close();
        if (DROP && !BY_KEY && turn + 1 < count) kept = b.kept(turn + 1);
        basin_wgmma_wait<0>();
        basin_wgmma_pin(out);
        if constexpr (BOTH || BY_KEY) basin_wgmma_pin(more);
    }
    b.write(0, p.out[0], out, {p.scale, p.scale});
    if (BOTH || BY_KEY) b.write(1, p.out[1], more, {1, 1});
}

/* o, or its tangent, from sums that are scaled down where scores come that are larger by 2^8. */
template <int ORDER, bool DROP>
__global__ void __launch_bounds__(ORDER == 2 ? 256 : 128, ORDER == 2 ? 1 : 4)
    wide_at_once(const __grid_constant__ wide_launch l) {
    typedef wide_block<BASIN_VALUES_AT_ONCE, ORDER, false> block;
    extern __shared__ __align__(1024) char shared[];
    block b(l, shared);
    int count = b.turns();
    float s[SUMS], x[SUMS], unused[SUMS], out[SUMS] = {}, more[SUMS] = {};
    float maximum[2] = {basin_minus_infinity(), basin_minus_infinity()};
    float total[2] = {}, mean[2] = {}, base[2] = {};
    uint32_t w[ROWS / 16][4], tw[ROWS / 16][4];
    b.open(count);
    wide_kept<false> kept = {};
    if constexpr (DROP) kept = b.kept(0);
    for (int turn = 0; turn < count; b.leave(turn++)) {
        b.take(turn, count);
        if (b.sees_none(turn)) continue;
        b.multiply(s, x, unused, unused, turn);
        b.pairs(s, x, turn);
        float top[2] = {basin_minus_infinity(), basin_minus_infinity()};
        BASIN_UNROLL (n, SUMS) top[n / 2 % 2] = fmaxf(top[n / 2 % 2], s[n]);
        BASIN_UNROLL (r, 2) top[r] = basin_quad_max(top[r]);
        if (__any_sync(~0u, top[0] > maximum[0] + 8 || top[1] > maximum[1] + 8)) {
            float fade[2];
            BASIN_UNROLL (r, 2) {
                top[r] = fmaxf(top[r], maximum[r]);
                fade[r] = top[r] > maximum[r] ? basin_exp2(maximum[r] - top[r]) : 1;
                maximum[r] = top[r], total[r] *= fade[r], mean[r] *= fade[r];
            }
            BASIN_UNROLL (n, SUMS) {
                out[n] *= fade[n / 2 % 2];
                if (ORDER == 2) more[n] *= fade[n / 2 % 2];
            }
        }
        float level[2];
        BASIN_UNROLL (r, 2) level[r] = maximum[r] == basin_minus_infinity() ? 0 : maximum[r];
        if (ORDER == 2 && turn == 0) { /* ts is taken about its mean over the first tile */
            float all[2] = {}, gain[2] = {};
            BASIN_UNROLL (n, SUMS) {
                float e = basin_exp2(s[n] - level[n / 2 % 2]);
                all[n / 2 % 2] += e, gain[n / 2 % 2] += e * x[n];
            }
            BASIN_UNROLL (r, 2)
                base[r] = basin_quad_sum(gain[r]) / fmaxf(basin_quad_sum(all[r]), 1e-30f);
        }
        BASIN_UNROLL (step, ROWS / 16) {
            float e[8], te[8];
            BASIN_UNROLL (n, 8) {
                int r = n / 2 % 2;
                e[n] = basin_exp2(s[step * 8 + n] - level[r]), total[r] += e[n];
                if (DROP && !kept.has(step * 8 + n)) e[n] = 0;
                if (ORDER != 2) continue;
                te[n] = e[n] * (x[step * 8 + n] - base[r]), mean[r] += te[n];
            }
            pack(w[step], e);
            if (ORDER == 2) pack(tw[step], te);
        }
        basin_wgmma_fence();
        basin_wgmma_sum<number, true>(out, w, b.streamed(turn, 2), 0);
        if constexpr (ORDER == 2) {
            basin_wgmma_sum<number, true>(more, tw, b.streamed(turn, 2), 0);
            basin_wgmma_sum<number, true>(more, w, b.streamed(turn, 3), 0);
        }
        basin_wgmma_close();
        if (DROP && turn + 1 < count) kept = b.kept(turn + 1);
        basin_wgmma_wait<0>();
        basin_wgmma_pin(out);
        if constexpr (ORDER == 2) basin_wgmma_pin(more);
    }
    float share[2];
    BASIN_UNROLL (r, 2) {
        float all = basin_quad_sum(total[r]);
        share[r] = all == 0 ? 0 : (DROP ? b.p.kept : 1) / all,
        mean[r] = basin_quad_sum(mean[r]) * share[r];
        if (ORDER == 0 && b.p.level && b.t == 0 && b.query_at(r) >= 0)
            *b.level_of(r) = all == 0 ? -basin_minus_infinity() : maximum[r] + __log2f(all);
    }
    if (ORDER == 2) b.write(1, b.p.o, out, share);
    BASIN_UNROLL (n, SUMS)
        if (ORDER == 2) out[n] = fmaf(-mean[n / 2 % 2], out[n], more[n]);
    b.write(1, b.p.out[1], out, share);
}

/* A table [batch, heads, tokens, width] of T as the copy engine knows it, in boxes of 64 rows. */
template <typename T>
bool map_table(CUtensorMap *map, const void *table, const basin_values_steps &of, int64_t width,
               int64_t tokens, int64_t heads, int64_t batch) {
    bool narrow = sizeof(T) == 2;
    cuuint64_t size[] = {(cuuint64_t)width, (cuuint64_t)tokens, (cuuint64_t)heads,
                         (cuuint64_t)batch};
    cuuint64_t stride[] = {of.token * sizeof(T), of.head * sizeof(T), of.batch * sizeof(T)};
    cuuint32_t box[] = {narrow ? 64u : 4u, ROWS, 1, 1}, step[] = {1, 1, 1, 1};
    return basin_tma_encoder()(
               map, narrow ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4,
               (void *)table, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
               narrow ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE,
               CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <typename block>
cudaError_t start(void (*kernel)(wide_launch), const basin_values_launch *launch,
                  cudaStream_t stream) {
    wide_launch l;
    basin_values_launch &p = l.p;
    p = *launch;
    int64_t sets = p.tasks / p.blocks, shared = p.heads / p.each;
    int64_t own = block::BY_KEY ? shared : p.heads, other = block::BY_KEY ? p.heads : shared;
    int64_t batch = sets / own;
    bool good = true;
    for (int i = 0; i < 4 && good; i++) { /* of tables that are absent, some map */
        if (i > 0) l.own[i] = l.own[0], l.other[i] = l.other[0];
        if (p.x[i])
            good = map_table<basin_bf16>(&l.own[i], p.x[i], p.of_x[i / 2], p.width[i / 2], p.own,
                                         own, batch);
        if (p.y[i] && good)
            good = map_table<basin_bf16>(&l.other[i], p.y[i], p.of_y[i / 2], p.width[i / 2],
                                         p.other, other, batch);
    }
    basin_values_steps known = {batch * p.heads * p.other * 4, (int64_t)p.other * 4, 4};
    if (good && block::BY_KEY)
        good = map_table<float>(&l.known, p.stats, known, 4, p.other, batch * p.heads, 1);
    if (!good) return cudaErrorInvalidValue;
    p.blocks = (p.own + ROWS * block::GROUPS - 1) / (ROWS * block::GROUPS);
    cudaError_t code =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, block::BYTES);
    if (code == cudaSuccess)
        code = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxShared);
    if (code != cudaSuccess) return code;
    kernel<<<(unsigned)(sets * p.blocks), 128 * block::GROUPS, block::BYTES, stream>>>(l);
    return cudaGetLastError();
}

template <int ORDER, bool DROP>
cudaError_t start_at_once(const basin_values_launch *p, cudaStream_t stream) {
    return start<wide_block<BASIN_VALUES_AT_ONCE, ORDER, false>>(wide_at_once<ORDER, DROP>, p,
                                                                 stream);
}

template <int ORDER, bool TC, bool DROP = false>
cudaError_t start_stage(const basin_values_launch *p, basin_values_stage stage,
                        cudaStream_t stream) {
    if (stage == BASIN_VALUES_STATS)
        return start<wide_block<BASIN_VALUES_STATS, ORDER, TC>>(wide_stats<ORDER, TC, DROP>, p,
                                                                stream);
    if (stage == BASIN_VALUES_BY_KEY)
        return start<wide_block<BASIN_VALUES_BY_KEY, ORDER, TC>>(
            wide_side<true, ORDER, TC, false, DROP>, p, stream);
    typedef wide_block<BASIN_VALUES_BY_QUERY, ORDER, TC> block;
    bool both = ORDER == 2 && p->out[1];
    return start<block>(both ? wide_side<false, ORDER, TC, ORDER == 2, DROP>
                             : wide_side<false, ORDER, TC, false, DROP>,
                        p, stream);
}

} // namespace

bool basin_values_has_sm90() { return basin_tma_encoder() != NULL; }

cudaError_t basin_values_launch_sm90(const basin_values_launch *p, basin_values_stage stage,
                                     cudaStream_t stream) {
    bool tangent = stage == BASIN_VALUES_BY_KEY ? p->y[3] : p->x[3];
    if (stage == BASIN_VALUES_AT_ONCE)
        return p->second ? start_at_once<2, false>(p, stream)
               : p->keep ? start_at_once<0, true>(p, stream)
                         : start_at_once<0, false>(p, stream);
    if (!p->second)
        return p->keep ? start_stage<1, false, true>(p, stage, stream)
                       : start_stage<1, false>(p, stage, stream);
    return tangent ? start_stage<2, true>(p, stage, stream)
                   : start_stage<2, false>(p, stage, stream);
}
