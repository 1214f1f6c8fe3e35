/* Energy attention along a list in the tokens' own space. With M_h = Wk_h' Wq_h the score of a pair
 * is r = K_B . Q_C = g_B . M_h g_C: all heads gather the same row, that of a token, instead of a
 * row of keys each, and nothing of the size [N, H, D] is ever whole: the nodes are walked in
 * ranges.
 *
 *     by query   u = M g_C,  u2 = M t_C;   c = t_B . u + g_B . u2;   P = softmax over B of beta r
 *         S = beta w sum P g_B             the force on g_C: M' S
 *         G = beta w sum P (t_B + beta (c - mean) g_B)         gradients: M' G,  gM = G g' + S t'
 *     by key     v = M' g_B, v2 = M' t_B;  c = t_C . v + g_C . v2
 *         S = beta sum w P g_C             the force on g_B: M S
 *         G = beta sum w P (t_C + beta (c - mean) g_C)         gradients: M G
 *
 * t is the cotangent of the force, mean that of c under P. Sums are as in listed.cu.
 *
 * Count for a pair, whatever H: force 2 rows of D, reverse 4. T-Social (146 million pairs, D 128,
 * bfloat16): 225 GB in all, 0.05 s of memory, as no cache holds its rows. For a pair and head the
 * force multiplies and adds 4 D numbers, the reverse 11 D: 0.8 TFMA, 0.03 s. Hubs are in
 * tokens.h. */
#include <type_traits>

#include "backend/cuda/inside.h"
#include "backend/cuda/lists/tokens.h"

static const int64_t RANGE = 524288; /* nodes walked at a time */
static const int64_t SIZE = sizeof(basin_bf16);
enum { GRADIENT_PARTS = 16, HUB_BLOCKS = 264 };

/* The operands of a call; absent ones are NULL. */
struct basin_cuda_tokens {
    int64_t nodes, heads, width, pairs;
    const int32_t *row, *key, *column, *query; /* [N + 1], [pairs] */
    const void *g, *t;                         /* bfloat16 [N, D]; t: reverse */
    const float *m;                            /* [H, D, D] */
    const float *beta, *w;                     /* [H], [N, H] */
    float *lse, *gw;                           /* [N, H] */
    float *out;                                /* [N, D]: dg or gg */
    float *gm, *gbeta;                         /* reverse: [H, D, D], [H] */
};

/* ---- kernels ---- */

template <bool REVERSE, int G, int H, bool KEYS>
BASIN_DEVICE void finish(basin_tokens_node<REVERSE, G, H, KEYS> &n, const basin_tokens_walk &p,
                         int node, const float (&beta)[H]) {
    BASIN_UNROLL (h, H) {
        int64_t row = (int64_t)node * H + h;
        if (KEYS) {
            n.sum[h].store(p.out, row, beta[h]);
            continue;
        }
        basin_tokens_closing end = basin_tokens_close<REVERSE>(
            p, n.s[h], (int64_t)p.first * H + row, beta[h], threadIdx.x % G == 0);
        if (REVERSE) {
            n.sum[h].add(-beta[h] * end.offset, n.plain[h]);
            n.plain[h].store(p.out2, row, end.factor);
        }
        n.sum[h].store(p.out, row, end.factor);
    }
}

/* All nodes of the range but hubs. */
template <bool REVERSE, int G, int H, bool KEYS>
static __global__ void __launch_bounds__(BASIN_TOKENS_THREADS,
                                         basin_tokens_blocks(REVERSE, KEYS, H))
    walk_nodes(basin_tokens_walk p) {
    const int32_t *start = p.start + p.first;
    int group = (int)((blockIdx.x * BASIN_TOKENS_THREADS + threadIdx.x) / G);
    int node = group * BASIN_TOKENS_NODES, stop = min(node + (int)BASIN_TOKENS_NODES, p.count);
    int at = __ldg(start + min(node, p.count)), end = at, limit = __ldg(start + p.count);
    int hub = basin_tokens_hub(limit - __ldg(start));
    bool open = false;
    float beta[H];
    basin_tokens_ahead<REVERSE, G, H, KEYS> ahead;
    basin_tokens_node<REVERSE, G, H, KEYS> n;
    BASIN_UNROLL (h, H) beta[h] = p.beta[h];
    ahead.last = max(limit - 1, 0);
    ahead.fill(p, at);
    n.begin(p, 0);
    for (node--;;) {
        while (at == end && node < stop) {
            if (open) finish(n, p, node, beta);
            open = ++node < stop;
            if (!open) break;
            end = __ldg(start + node + 1);
            open = end - at <= hub;
            if (open)
                n.begin(p, node);
            else
                at = end, ahead.fill(p, at);
        }
        if (!__any_sync(0xffffffffu, node < stop)) return;
        bool on = at < end;
        n.turn(ahead, p, beta, at, on);
        at += on;
    }
}

/* hubs [ranges] = 1 where one of the range's nodes is a hub, however large its pieces; 0 before. */
static __global__ void find_hubs(int *hubs, const int32_t *start, int nodes, int range) {
    int node = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (node < nodes && __ldg(start + node + 1) - __ldg(start + node) > (int)BASIN_TOKENS_HUB)
        hubs[node / range] = 1;
}

/* M [H, i, j] as bfloat16, and transposed: [H, j, i]. */
static __global__ void place_weights(basin_bf16 *straight, basin_bf16 *turned, const float *m,
                                     int count, int width) {
    int at = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (at >= count) return;
    int h = at / (width * width), i = at / width % width, j = at % width;
    straight[at] = turned[(h * width + j) * width + i] = basin_from_float<basin_bf16>(m[at]);
}

/* ---- the workspace ---- */

struct space {
    int *hubs;                 /* [ranges] */
    char *straight, *turned;   /* [H, D, D]: M, M' */
    char *x, *x2, *out, *out2; /* [range, H, D] */
    float *summary, *slope, *sums;
    basin_tokens_sums *state;
    float *parts; /* [GRADIENT_PARTS, H, D, D] of gM */
    char *sum;
};

static int64_t range_of(const basin_cuda_tokens *at) {
    return at->nodes < RANGE ? at->nodes : RANGE;
}
/* Where hubs leave their sums; a range has no more pieces than all pairs. */
static int64_t slots_of(const basin_cuda_tokens *at) {
    int64_t pieces = basin_cuda_ceil(at->pairs, BASIN_TOKENS_HUB);
    return 2 * (pieces < BASIN_TOKENS_PIECES ? pieces : (int64_t)BASIN_TOKENS_PIECES);
}

static size_t lay_out(space *s, const basin_cuda_tokens *at, bool reverse, void *workspace) {
    basin_cuda_arena arena = {(char *)workspace, 0};
    int64_t squares = at->heads * at->width * at->width;
    int64_t rows = range_of(at) * at->heads * at->width * SIZE;
    int64_t slots = slots_of(at) * at->heads;
    *s = {};
    s->hubs = basin_cuda_take<int>(&arena, basin_cuda_ceil(at->nodes, range_of(at)));
    s->straight = basin_cuda_take<char>(&arena, squares * SIZE);
    s->turned = basin_cuda_take<char>(&arena, squares * SIZE);
    s->x = basin_cuda_take<char>(&arena, rows);
    s->out = basin_cuda_take<char>(&arena, rows);
    s->summary = basin_cuda_take<float>(&arena, at->nodes * at->heads * (reverse ? 3 : 2));
    s->state = basin_cuda_take<basin_tokens_sums>(&arena, slots);
    s->sums = basin_cuda_take<float>(&arena, slots * (reverse ? 2 : 1) * at->width);
    if (!reverse) return arena.used;
    s->x2 = basin_cuda_take<char>(&arena, rows);
    s->out2 = basin_cuda_take<char>(&arena, rows);
    int64_t bytes = 0;
    if (at->gm) {
        s->parts = basin_cuda_take<float>(&arena, GRADIENT_PARTS * squares);
        bytes = (int64_t)basin_cuda_sum_bytes(1, GRADIENT_PARTS, squares);
    }
    if (at->gbeta) {
        s->slope = basin_cuda_take<float>(&arena, at->nodes * at->heads);
        int64_t more = (int64_t)basin_cuda_sum_bytes(1, at->nodes, at->heads);
        bytes = more > bytes ? more : bytes;
    }
    s->sum = basin_cuda_take<char>(&arena, bytes);
    return arena.used;
}

bool basin_cuda_takes_tokens(const basin_backend *backend, int64_t heads, int64_t width) {
    return backend->narrow && heads >= 2 && heads <= 4 && (width == 64 || width == 128);
}

/* ---- products with M ---- */

static basin_cuda_product product_of(int64_t m, int64_t n, int64_t k) {
    basin_cuda_product p = {};
    p.batch = 1, p.m = m, p.n = n, p.k = k;
    p.narrow_factors = true;
    p.alignment = 64;
    p.alpha = 1, p.beta = 1, p.unit = 1, p.scale = 1;
    return p;
}

/* x [rows, H D] = g [rows, D] by m [H D, D]' */
static basin_cuda_product spread_of(const basin_cuda_tokens *at, int64_t rows) {
    basin_cuda_product p = product_of(rows, at->heads * at->width, at->width);
    p.transpose_b = true, p.narrow_result = p.narrow_factors;
    return p;
}

/* out [rows, D] = s [rows, H D] by m [H D, D], or that added to it. */
static basin_cuda_product gather_of(const basin_cuda_tokens *at, int64_t rows, bool add) {
    basin_cuda_product p = product_of(rows, at->width, at->heads * at->width);
    p.add = add;
    return p;
}

/* parts [GRADIENT_PARTS, H D, D] += s' g, of as many parts of the rows; or of few rows to the first
 * part alone. */
static basin_cuda_product gradient_of(const basin_cuda_tokens *at, int64_t rows, int parts) {
    basin_cuda_product p = product_of(at->heads * at->width, at->width, rows / parts);
    p.transpose_a = p.add = true;
    p.batch = parts;
    if (parts > 1) p.step_a = p.k * p.m, p.step_b = p.k * p.n;
    return p;
}

static void add_gradient(const basin_cuda_frame *frame, const basin_cuda_tokens *at, float *parts,
                         const char *s, const char *g, int64_t rows) {
    int64_t even = rows / GRADIENT_PARTS * GRADIENT_PARTS;
    basin_cuda_product most = gradient_of(at, even, GRADIENT_PARTS),
                       rest = gradient_of(at, rows - even, 1);
    if (even > 0) basin_cuda_product_run(frame->cuda, &most, parts, s, g, parts, NULL);
    if (rows > even)
        basin_cuda_product_run(frame->cuda, &rest, parts, s + even * rest.m * SIZE,
                               g + even * rest.n * SIZE, parts, NULL);
}

/* Chooses how to compute the products, before a run. */
static void choose_products(basin_cuda *cuda, const basin_cuda_tokens *at, bool reverse) {
    int64_t range = range_of(at), left = at->nodes % range;
    for (int64_t rows : {range, left}) {
        if (rows == 0) continue;
        int64_t even = rows / GRADIENT_PARTS * GRADIENT_PARTS;
        basin_cuda_product some[5] = {
            spread_of(at, rows), gather_of(at, rows, false), gather_of(at, rows, true),
            gradient_of(at, even, GRADIENT_PARTS), gradient_of(at, rows - even, 1)};
        for (int i = 0; i < (reverse && at->gm ? 5 : 3); i++)
            if (some[i].k > 0) basin_cuda_product_exists(cuda, &some[i]);
    }
}

/* ---- walking ---- */

template <bool REVERSE, int G, int H, bool KEYS>
static void launch(const basin_cuda_frame *frame, const basin_tokens_walk &p) {
    int groups = (int)basin_cuda_ceil(p.count, BASIN_TOKENS_NODES);
    unsigned blocks = (unsigned)basin_cuda_ceil((int64_t)groups * G, BASIN_TOKENS_THREADS);
    walk_nodes<REVERSE, G, H, KEYS><<<blocks, BASIN_TOKENS_THREADS, 0, frame->stream>>>(p);
    BASIN_CUDA_LAUNCHED(frame->cuda, "attention between tokens");
    walk_hubs<REVERSE, G, H, KEYS><<<HUB_BLOCKS, BASIN_TOKENS_THREADS, 0, frame->stream>>>(p);
    BASIN_CUDA_LAUNCHED(frame->cuda, "attention between tokens, hubs");
    join_hubs<REVERSE, H, KEYS>
        <<<(unsigned)basin_cuda_ceil(p.count, BASIN_TOKENS_THREADS), BASIN_TOKENS_THREADS, 0,
           frame->stream>>>(p, G * BASIN_TOKENS_EACH);
    BASIN_CUDA_LAUNCHED(frame->cuda, "attention between tokens, parts of hubs");
}

/* Calls f with the lanes of a group and the heads. */
template <typename F> static void with_sizes(int64_t width, int64_t heads, F f) {
    auto by_heads = [&](auto group) {
        if (heads == 2)
            f(group, std::integral_constant<int, 2>());
        else if (heads == 3)
            f(group, std::integral_constant<int, 3>());
        else
            f(group, std::integral_constant<int, 4>());
    };
    if (width == 64)
        by_heads(std::integral_constant<int, 8>());
    else
        by_heads(std::integral_constant<int, 16>());
}

static basin_tokens_walk describe(const basin_cuda_tokens *at, const space *s, bool keys) {
    basin_tokens_walk p = {};
    p.start = keys ? at->column : at->row, p.other = keys ? at->query : at->key;
    p.x = s->x, p.x2 = s->x2, p.out = s->out, p.out2 = s->out2;
    p.y = at->g, p.y2 = at->t, p.beta = at->beta, p.w = at->w;
    p.lse = at->lse, p.gw = at->gw, p.slope = s->slope, p.summary = s->summary;
    p.state = s->state, p.sums = s->sums, p.hubs = s->hubs;
    return p;
}

/* All nodes as queries, or as keys. */
template <bool REVERSE, bool KEYS>
static void walk_side(const basin_cuda_frame *frame, const basin_cuda_tokens *at, const space *s) {
    basin_tokens_walk p = describe(at, s, KEYS);
    const void *inward = KEYS ? s->turned : s->straight;
    int64_t row = at->width * (int64_t)sizeof(basin_bf16),
            ranges = basin_cuda_ceil(at->nodes, range_of(at));
    BASIN_CUDA_TRY(frame->cuda,
                   cudaMemsetAsync(s->hubs, 0, (size_t)ranges * sizeof(int), frame->stream));
    find_hubs<<<(unsigned)basin_cuda_ceil(at->nodes, 256), 256, 0, frame->stream>>>(
        s->hubs, p.start, (int)at->nodes, (int)range_of(at));
    BASIN_CUDA_LAUNCHED(frame->cuda, "attention between tokens, hubs");
    for (int64_t first = 0; first < at->nodes; first += range_of(at)) {
        int64_t rows = at->nodes - first < range_of(at) ? at->nodes - first : range_of(at);
        const char *g = (const char *)at->g + first * row, *t = (const char *)at->t + first * row;
        p.first = (int)first, p.count = (int)rows, p.hubs = s->hubs + first / range_of(at);
        basin_cuda_product spread = spread_of(at, rows), gather = gather_of(at, rows, KEYS);
        basin_cuda_product_run(frame->cuda, &spread, s->x, g, inward, NULL, NULL);
        if (REVERSE) basin_cuda_product_run(frame->cuda, &spread, s->x2, t, inward, NULL, NULL);
        with_sizes(at->width, at->heads, [&](auto group, auto heads) {
            launch<REVERSE, decltype(group)::value, decltype(heads)::value, KEYS>(frame, p);
        });
        float *out = at->out + first * at->width;
        basin_cuda_product_run(frame->cuda, &gather, out, s->out, inward, KEYS ? out : NULL, NULL);
        if (!s->parts || KEYS) continue;
        add_gradient(frame, at, s->parts, s->out, g, rows);
        add_gradient(frame, at, s->parts, s->out2, t, rows);
    }
}

template <bool REVERSE>
static void walk_sides(const basin_cuda_frame *frame, const basin_cuda_tokens *at, const space *s) {
    int squares = (int)(at->heads * at->width * at->width);
    place_weights<<<(unsigned)basin_cuda_ceil(squares, 256), 256, 0, frame->stream>>>(
        (basin_bf16 *)s->straight, (basin_bf16 *)s->turned, at->m, squares, (int)at->width);
    BASIN_CUDA_LAUNCHED(frame->cuda, "attention between tokens, M");
    if (s->parts)
        BASIN_CUDA_TRY(
            frame->cuda,
            cudaMemsetAsync(s->parts, 0, GRADIENT_PARTS * squares * sizeof(float), frame->stream));
    walk_side<REVERSE, false>(frame, at, s);
    walk_side<REVERSE, true>(frame, at, s);
}

static void run(const basin_cuda_frame *frame, const basin_cuda_tokens *at, bool reverse) {
    space s;
    lay_out(&s, at, reverse, frame->workspace);
    if (reverse)
        walk_sides<true>(frame, at, &s);
    else
        walk_sides<false>(frame, at, &s);
    if (s.parts)
        basin_cuda_sum(frame, at->gm, BASIN_REAL, s.parts, BASIN_REAL, 1, GRADIENT_PARTS,
                       at->heads * at->width * at->width, s.sum);
    if (s.slope)
        basin_cuda_sum(frame, at->gbeta, BASIN_REAL, s.slope, BASIN_REAL, 1, at->nodes, at->heads,
                       s.sum);
}

/* ---- calls ---- */

static basin_cuda_tokens tokens_of(const basin_cuda_frame *frame) {
    const basin_call *call = frame->call;
    const void *const *in = frame->in;
    void *const *out = frame->out;
    basin_cuda_tokens at = {};
    bool reverse = call->op == BASIN_OP_TOKENS_REVERSE;
    at.nodes = call->in[BASIN_ATT_Q].shape.dim[0], at.width = call->in[BASIN_ATT_Q].shape.dim[1];
    at.heads = call->in[BASIN_ATT_K].shape.dim[0];
    at.pairs = call->in[BASIN_ATT_KEY].shape.dim[0];
    at.row = (const int32_t *)in[BASIN_ATT_ROW], at.key = (const int32_t *)in[BASIN_ATT_KEY];
    at.column = (const int32_t *)in[BASIN_ATT_COLUMN];
    at.query = (const int32_t *)in[BASIN_ATT_QUERY];
    at.g = in[BASIN_ATT_Q], at.t = reverse ? in[BASIN_ATT_A] : NULL;
    at.m = (const float *)in[BASIN_ATT_K];
    at.beta = (const float *)in[BASIN_ATT_BETA], at.w = (const float *)in[BASIN_ATT_W];
    at.out = (float *)out[reverse ? (int)BASIN_ATT_GQ : (int)BASIN_ATT_DQ];
    if (reverse) {
        at.gm = (float *)out[BASIN_ATT_GK], at.gw = (float *)out[BASIN_ATT_GW];
        at.gbeta = (float *)out[BASIN_ATT_GBETA];
    } else
        at.lse = (float *)out[BASIN_ATT_LSE];
    return at;
}

size_t basin_cuda_tokens_workspace(const basin_cuda *cuda, const basin_call *call) {
    const basin_cuda_frame frame = basin_cuda_outline(call);
    basin_cuda_tokens at = tokens_of(&frame);
    space s;
    bool reverse = call->op == BASIN_OP_TOKENS_REVERSE;
    if (at.nodes > 0) choose_products((basin_cuda *)cuda, &at, reverse);
    return lay_out(&s, &at, reverse, NULL);
}

void basin_cuda_tokens_attention(const basin_cuda_frame *frame) {
    basin_cuda_tokens at = tokens_of(frame);
    run(frame, &at, frame->call->op == BASIN_OP_TOKENS_REVERSE);
}
