/* The calls of softmax attention with values: tiles on tensor cores where they fit, else row by row
 * (lists, wide heads). See attention/values.h. */
#include "engine/backend/cuda/attention/values.h"
#include "engine/backend/cuda/inside.h"
#include "engine/core/philox.h"

/* ---- row by row: a warp for each own row ---- */

enum { ROWS_THREADS = 128, ROWS_EACH = 8, ROWS_WIDTH = 32 * ROWS_EACH };

template <typename T> struct values_row {
    float v[4][ROWS_EACH]; /* of the four tables, a lane's columns; 0 where absent */

    BASIN_METHOD void load(const void *const *table, const basin_values_steps *of, const int *width,
                           bool second, int64_t entry, int64_t head, int64_t node) {
        int lane = threadIdx.x % 32;
        BASIN_UNROLL (t, 4)
            BASIN_UNROLL (e, ROWS_EACH) {
                int column = lane + 32 * e;
                const T *x = (const T *)table[t] + entry * of[t / 2].batch + head * of[t / 2].head +
                             node * of[t / 2].token;
                bool there = table[t] && (second || t % 2 == 0) && column < width[t / 2];
                v[t][e] = there ? basin_to_float(x[column]) : 0;
            }
    }
};

BASIN_DEVICE float warp_sum(float x) {
    for (int lanes = 16; lanes; lanes /= 2) x += __shfl_xor_sync(~0u, x, lanes);
    return x;
}

template <typename T>
BASIN_DEVICE void row_products(float &s, float &x, float &g, float &y, const values_row<T> &a,
                               const values_row<T> &b) {
    s = x = g = y = 0;
    BASIN_UNROLL (e, ROWS_EACH) {
        s += a.v[0][e] * b.v[0][e], x += a.v[1][e] * b.v[0][e] + a.v[0][e] * b.v[1][e];
        g += a.v[2][e] * b.v[2][e], y += a.v[3][e] * b.v[2][e] + a.v[2][e] * b.v[3][e];
    }
    s = warp_sum(s), x = warp_sum(x), g = warp_sum(g), y = warp_sum(y);
}

/* One own row against what it sees; by key, queries of all heads that share the key's. */
template <typename T, basin_values_stage STAGE>
static __global__ void __launch_bounds__(ROWS_THREADS)
    values_rows(const __grid_constant__ basin_values_launch p) {
    constexpr bool by_key = STAGE == BASIN_VALUES_BY_KEY;
    int64_t task = (int64_t)blockIdx.x * (ROWS_THREADS / 32) + threadIdx.x / 32;
    if (task >= p.tasks) return;
    int lane = threadIdx.x % 32, heads = by_key ? p.heads / p.each : p.heads;
    int64_t node = task % p.own, head = task / p.own % heads, entry = task / p.own / heads;
    values_row<T> own, other;
    basin_values_sums sums;
    basin_values_stats mine = {};
    float out[2][ROWS_EACH] = {};
    own.load(p.x, p.of_x, p.width, p.second, entry, head, node);
    sums.begin(0, 0);
    if (STAGE == BASIN_VALUES_BY_QUERY) mine = p.stats[(entry * p.heads + head) * p.own + node];
    const int32_t *start = by_key ? p.column : p.row;
    int64_t first = start ? start[node] : 0, last = start ? start[node + 1] : p.other;
    if (!start && p.causal && by_key) first = min((int64_t)p.other, node);
    if (!start && p.causal && !by_key) last = min(last, node + 1);
    bool opens = true;
    for (int turn = 0; turn < (by_key ? p.each : 1); turn++) {
        int64_t h = by_key ? head * p.each + turn : head;
        for (int64_t n = first; n < last; n++) {
            int64_t to = !start ? n : by_key ? p.query[n] : p.key[n];
            int64_t pair = !start ? 0 : by_key ? p.pair[n] : n;
            int64_t i = by_key ? to : node, j = by_key ? node : to;
            if (p.exclude_self && i == j) continue;
            other.load(p.y, p.of_y, p.width, p.second, entry, by_key ? h : h / p.each, to);
            float s, x, g, y;
            row_products(s, x, g, y, own, other);
            int64_t at = start ? pair * p.of_bias.pair : i * p.of_bias.query + j;
            int64_t tat = start ? pair * p.of_tbias.pair : i * p.of_tbias.query + j;
            s *= p.scale * BASIN_LOG2_E, x *= p.scale;
            if (p.bias)
                s += p.bias[entry * p.of_bias.batch + h * p.of_bias.head + at] * BASIN_LOG2_E;
            if (p.tbias) x += p.tbias[entry * p.of_tbias.batch + h * p.of_tbias.head + tat];
            int64_t at_query = (entry * p.heads + h) * (by_key ? p.other : p.own) + i;
            float m = p.keep ? basin_values_mask(p, entry * p.heads + h, i, j) : 1;
            g *= m, y *= m;
            if (STAGE == BASIN_VALUES_STATS) {
                if (opens) sums.begin(x, g);
                opens = false;
                sums.raise(s);
                sums.add(s, x, g, y);
                continue;
            }
            basin_values_finish(s, x, g, y, by_key ? p.stats[at_query] : mine);
            s *= m, x *= m;
            if (!by_key && p.slope && lane == 0)
                p.slope[start ? (entry * p.pairs + pair) * p.heads + h
                              : ((entry * p.heads + h) * p.own + i) * p.other + j] =
                    p.second ? y : g;
            BASIN_UNROLL (e, ROWS_EACH) {
                out[0][e] += (p.second ? y : g) * other.v[0][e] + g * other.v[1][e];
                out[1][e] += (p.second ? x : s) * other.v[2][e] + s * other.v[3][e];
            }
        }
    }
    if (STAGE == BASIN_VALUES_STATS && lane == 0)
        p.stats[(entry * p.heads + head) * p.own + node] = sums.end();
    BASIN_UNROLL (w, STAGE == BASIN_VALUES_STATS ? 0 : 2)
        BASIN_UNROLL (e, ROWS_EACH) {
            int column = lane + 32 * e;
            T *to = (T *)p.out[w] + entry * p.of_x[w].batch + head * p.of_x[w].head +
                    node * p.of_x[w].token;
            if (p.out[w] && column < p.width[w])
                to[column] = basin_from_float<T>(w == 0 ? p.scale * out[w][e] : out[w][e]);
        }
}

static void launch_rows(const basin_cuda_frame *frame, basin_values_launch *p,
                        basin_values_stage stage) {
    basin_cuda_typed(frame->call->in[BASIN_VAL_Q].kind, [&](auto zero) {
        using T = decltype(zero);
        void (*kernel)(basin_values_launch) =
            stage == BASIN_VALUES_STATS      ? values_rows<T, BASIN_VALUES_STATS>
            : stage == BASIN_VALUES_BY_QUERY ? values_rows<T, BASIN_VALUES_BY_QUERY>
                                             : values_rows<T, BASIN_VALUES_BY_KEY>;
        unsigned blocks = (unsigned)basin_cuda_ceil(p->tasks, ROWS_THREADS / 32);
        kernel<<<blocks, ROWS_THREADS, 0, frame->stream>>>(*p);
    });
    BASIN_CUDA_LAUNCHED(frame->cuda, "attention with values");
}

/* ---- dropout ---- */

/* Whether four draws are above the limit, a bit each. */
BASIN_DEVICE uint32_t keep_four(uint64_t call, uint32_t stream, const uint32_t *seed,
                                uint32_t limit) {
    uint32_t word[4] = {(uint32_t)call, (uint32_t)(call >> 32), stream, 0}, bits = 0;
    uint32_t key[2] = {seed[0], seed[1]};
    BASIN_UNROLL (round, 10) {
        basin_philox_round(word, key);
        basin_philox_next(key);
    }
    BASIN_UNROLL (i, 4) bits |= word[i] > limit ? 1u << i : 0;
    return bits;
}

/* A block has 64 queries and 64 keys of a head. A thread draws the bits of one query and 32 keys,
 * the same ones in a warp, which has nothing to do where causal queries do not see them. */
static __global__ void __launch_bounds__(ROWS_THREADS)
    keep_bits(uint32_t *to, const uint32_t *seed, uint32_t stream, uint32_t limit, int words,
              int rows, int queries, int keys, bool causal) {
    unsigned across = (unsigned)words / 2, at = blockIdx.x / across, down = (unsigned)rows / 64;
    int word = (int)(blockIdx.x % across) * 2 + (int)threadIdx.x / 64;
    int i = (int)(at % down) * 64 + (int)threadIdx.x % 64;
    if (i >= queries || word * 32 >= keys || (causal && word * 32 > i)) return;
    uint64_t begin = ((uint64_t)(at / down) * queries + i) * keys + word * 32;
    uint32_t key[2] = {seed[0], seed[1]}, low = 0, high = 0, shift = begin % 4;
    BASIN_UNROLL (n, 8) low |= keep_four(begin / 4 + n, stream, key, limit) << 4 * n;
    if (shift) high = keep_four(begin / 4 + 8, stream, key, limit); /* draws lie across calls */
    to[((int64_t)(at / down) * words + word) * rows + i] = __funnelshift_r(low, high, shift);
}

static int64_t sets_of(const basin_values *at) { return at->batch * at->heads; }

static size_t bits_bytes(const basin_values *at) {
    int64_t words = sets_of(at) * basin_values_words(at->keys) * basin_values_rows(at->queries);
    return at->seed ? (size_t)words * sizeof(uint32_t) : 0;
}

static void draw_bits(const basin_cuda_frame *frame, const basin_values *at, uint32_t *to) {
    int words = (int)basin_values_words(at->keys), rows = (int)basin_values_rows(at->queries);
    unsigned blocks = (unsigned)(sets_of(at) * (words / 2) * (rows / 64));
    if (!blocks) return;
    keep_bits<<<blocks, ROWS_THREADS, 0, frame->stream>>>(
        to, (const uint32_t *)at->seed, at->stream, (uint32_t)(at->drop * 0x1p24) << 8 | 255, words,
        rows, (int)at->queries, (int)at->keys, at->causal);
    BASIN_CUDA_LAUNCHED(frame->cuda, "dropout of attention");
}

/* ---- the call ---- */

static bool fits_tiles(const basin_cuda *cuda, const basin_values *at, basin_kind kind) {
    int width = (int)(at->width > at->value_width ? at->width : at->value_width);
    int64_t nodes = at->queries > at->keys ? at->queries : at->keys;
    size_t bytes = kind == BASIN_NARROW ? basin_values_bytes_bf16(width, at->order == 2)
                                        : basin_values_bytes_f32(width, at->order == 2);
    return !at->row && width <= BASIN_CUDA_DENSE_WIDTH && nodes < INT32_MAX / 2 &&
           at->batch * at->heads * basin_cuda_ceil(nodes, BASIN_VALUES_ROWS) < INT32_MAX &&
           bytes <= cuda->shared_limit;
}

/* Whether every row of a table begins at 16 bytes. */
static bool aligned(const void *table, const basin_values_steps *of, int64_t width,
                    basin_kind kind) {
    size_t size = kind == BASIN_NARROW ? sizeof(basin_bf16) : sizeof(float);
    return !table ||
           ((size_t)width * size % 16 == 0 && basin_cuda_aligned(table, of->token, kind, 16) &&
            (size_t)of->head * size % 16 == 0 && (size_t)of->batch * size % 16 == 0);
}

static size_t stats_bytes(const basin_values *at) {
    return (size_t)(sets_of(at) * at->queries) * sizeof(basin_values_stats);
}

static uint32_t *bits_of(const basin_values *at, void *workspace) {
    if (!at->kept) return (uint32_t *)((char *)workspace + stats_bytes(at));
    return (uint32_t *)at->kept + sets_of(at) * basin_values_rows(at->queries);
}

/* Whether every row of every table does. */
static bool has_vectors(const basin_cuda_frame *frame, const basin_values *at) {
    basin_kind kind = frame->call->in[BASIN_VAL_Q].kind;
    const void *of_q[] = {at->q, at->tq}, *of_c[] = {at->c, at->tc};
    const void *of_k[] = {at->k, at->tk}, *of_v[] = {at->v, at->tv};
    const void *outs[] = {at->out_q, at->out_k, at->out_v, at->out_c, at->out_o, at->o};
    bool vectors = true;
    for (int t = 0; t < 2; t++)
        vectors = vectors && aligned(of_q[t], &at->of_q, at->width, kind) &&
                  aligned(of_k[t], &at->of_k, at->width, kind) &&
                  aligned(of_v[t], &at->of_v, at->value_width, kind) &&
                  aligned(of_c[t], &at->of_c, at->value_width, kind);
    for (const void *out : outs) vectors = vectors && (size_t)out % 16 == 0;
    return vectors;
}

static bool takes_warpgroups(const basin_cuda_frame *frame, const basin_values *at) {
    basin_kind kind = frame->call->in[BASIN_VAL_Q].kind;
    return kind == BASIN_NARROW && fits_tiles(frame->cuda, at, kind) && has_vectors(frame, at) &&
           frame->cuda->capability == 90 && at->width > 0 && at->width <= 64 &&
           at->value_width > 0 && at->value_width <= 64 && at->queries > 0 && at->keys > 0 &&
           !(at->seed && at->order == 2) && basin_values_has_sm90();
}

/* Whether o or its tangent is all that is requested. */
static bool is_at_once(const basin_values *at) {
    return !at->out_q && !at->out_k && !at->out_v && !at->out_bias;
}

/* Whether levels are kept, which a reverse asks of the same operands, and o, as its result. */
static bool has_levels(const basin_cuda_frame *frame, const basin_values *at) {
    bool reverse = at->order == 1 && at->c && at->out_q;
    return at->kept && (at->order == 0 || reverse) && takes_warpgroups(frame, at);
}

static void launch(const basin_cuda_frame *frame, const basin_values *at, basin_values_stats *stats,
                   basin_values_stage stage) {
    bool by_key = stage == BASIN_VALUES_BY_KEY, second = at->order == 2;
    bool wide = takes_warpgroups(frame, at);
    basin_kind kind = frame->call->in[BASIN_VAL_Q].kind;
    const void *of_queries[] = {at->q, at->tq, at->c, at->tc};
    const void *of_keys[] = {at->k, at->tk, at->v, at->tv};
    basin_values_launch p = {};
    p.second = second;
    /* Only by query are values summed without c. */
    p.values = at->c && at->order > 0;
    for (int t = 0; t < 4; t++) {
        bool there = (second || t % 2 == 0) &&
                     (t < 2 || p.values || (stage == BASIN_VALUES_BY_QUERY && at->out_c));
        p.x[t] = there ? (by_key ? of_keys : of_queries)[t] : NULL;
        p.y[t] = there ? (by_key ? of_queries : of_keys)[t] : NULL;
    }
    p.of_x[0] = by_key ? at->of_k : at->of_q, p.of_x[1] = by_key ? at->of_v : at->of_c;
    p.of_y[0] = by_key ? at->of_q : at->of_k, p.of_y[1] = by_key ? at->of_c : at->of_v;
    p.out[0] = by_key ? at->out_k : at->out_q, p.out[1] = by_key ? at->out_v : at->out_c;
    p.o = at->order == 1 ? (void *)at->o : at->out_o;
    p.level = has_levels(frame, at) ? (float *)at->kept : NULL;
    p.width[0] = (int)at->width, p.width[1] = (int)at->value_width;
    p.own = (int)(by_key ? at->keys : at->queries);
    p.other = (int)(by_key ? at->queries : at->keys);
    p.heads = (int)at->heads, p.each = (int)(at->heads / at->shared);
    p.scale = (float)at->scale;
    p.bias = (const float *)at->bias, p.tbias = (const float *)at->tbias;
    p.of_bias = at->of_bias, p.of_tbias = at->of_tbias;
    p.slope = (float *)at->out_bias, p.stats = stats;
    if (at->seed) p.keep = bits_of(at, stats);
    p.words = (int)basin_values_words(at->keys), p.rows = (int)basin_values_rows(at->queries);
    p.kept = (float)(1 / (1 - at->drop));
    p.causal = at->causal, p.exclude_self = at->exclude_self;
    p.vectors = has_vectors(frame, at);
    p.pairs = at->pairs, p.row = at->row, p.key = at->key, p.column = at->column;
    p.query = at->query, p.pair = at->pair;
    int64_t sets = at->batch * (by_key ? at->shared : at->heads);
    if (!fits_tiles(frame->cuda, at, kind)) {
        p.tasks = sets * p.own;
        launch_rows(frame, &p, stage);
        return;
    }
    p.blocks = (int)basin_cuda_ceil(p.own, BASIN_VALUES_ROWS), p.tasks = sets * p.blocks;
    if (wide && is_at_once(at)) {
        if (stage == BASIN_VALUES_STATS) return;
        stage = BASIN_VALUES_AT_ONCE;
    }
    auto start = wide                                                ? basin_values_launch_sm90
                 : kind == BASIN_NARROW                              ? basin_values_launch_bf16
                 : frame->call->attr.products == BASIN_PRODUCTS_TF32 ? basin_values_launch_tf32
                                                                     : basin_values_launch_f32;
    BASIN_CUDA_TRY(frame->cuda, start(&p, stage, frame->stream));
}

size_t basin_cuda_values_workspace(const basin_cuda *, const basin_call *call) {
    const basin_cuda_frame frame = basin_cuda_outline(call);
    basin_values at = basin_values_of(call, frame.in, frame.out);
    return stats_bytes(&at) + (at.kept ? 0 : bits_bytes(&at));
}

void basin_cuda_values(const basin_cuda_frame *frame) {
    basin_values at = basin_values_of(frame->call, frame->in, frame->out);
    int64_t queries = at.batch * at.heads * at.queries, keys = at.batch * at.shared * at.keys;
    basin_values_stats *stats = (basin_values_stats *)frame->workspace;
    /* No table has rows of no width: kernels would read what was never written. */
    int64_t minimum = at.width < at.value_width ? at.width : at.value_width;
    if (minimum < 1 || at.width > ROWS_WIDTH || at.value_width > ROWS_WIDTH) {
        if (frame->cuda->error.status == BASIN_OK)
            basin_fail(
                &frame->cuda->error, BASIN_UNSUPPORTED,
                "backend cuda: attention: heads of %lld and values of %lld; expected 1 to %d",
                (long long)at.width, (long long)at.value_width, (int)ROWS_WIDTH);
        return;
    }
    if (at.out_bias) { /* pairs that are not visited */
        const basin_shape *shape = &frame->call->out[BASIN_VAL_OUT_BIAS].shape;
        size_t bytes = (size_t)basin_shape_count(*shape) * sizeof(float);
        if (bytes)
            BASIN_CUDA_TRY(frame->cuda, cudaMemsetAsync(at.out_bias, 0, bytes, frame->stream));
    }
    if (queries > 0 && at.seed && !(at.kept && at.order == 1))
        draw_bits(frame, &at, bits_of(&at, stats));
    if (at.out_o && queries > 0 && !(takes_warpgroups(frame, &at) && is_at_once(&at) && at.out_c)) {
        basin_values plain = at;
        plain.order = 0, plain.out_c = at.out_o, plain.c = NULL, plain.out_o = NULL;
        plain.out_q = plain.out_k = plain.out_v = plain.out_bias = NULL;
        launch(frame, &plain, stats, BASIN_VALUES_STATS);
        launch(frame, &plain, stats, BASIN_VALUES_BY_QUERY);
    }
    if (queries > 0 && !has_levels(frame, &at)) launch(frame, &at, stats, BASIN_VALUES_STATS);
    if (queries > 0 && (at.out_q || at.out_c || at.out_bias))
        launch(frame, &at, stats, BASIN_VALUES_BY_QUERY);
    if (keys > 0 && (at.out_k || at.out_v)) launch(frame, &at, stats, BASIN_VALUES_BY_KEY);
}
