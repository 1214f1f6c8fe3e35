/* Scores of 64 own rows in registers: pairs left out, the softmax of a row, weights as operands of
 * the next product. See attention/strip_sm90a.cu. */
#ifndef BASIN_BACKEND_CUDA_ATTENTION_STRIP_ROWS_H
#define BASIN_BACKEND_CUDA_ATTENTION_STRIP_ROWS_H

#include "engine/backend/cuda/attention/strip_tables.h"

/* A strip is cut into pieces of N others: ptxas keeps all registers of a product's result until the
 * last of them is dead, so what is made of one piece takes the place of the one before. */
template <int N> struct piece {
    float r[N / 2], c[N / 2]; /* [4 j + e]: own row g (e < 2) or g + 8, other 8 j + 2 t + e % 2 */
};
template <int N> struct weights {
    uint32_t p[N / 16][4], s[N / 16][4]; /* left operands: of P or t, and in reverse of gs */
};

/* Four pairs of numbers as a left operand. */
template <typename T>
BASIN_DEVICE void pack(uint32_t (&to)[4], const strip_block<T> &, const float (&x)[8]) {
    BASIN_UNROLL (i, 4)
        to[i] = strip_block<T>::WIDE ? two_halves(x[2 * i], x[2 * i + 1])
                                     : basin_mma_bf16::two(x[2 * i], x[2 * i + 1]);
}

/* Pairs of a node with itself; `row` is the warp's first own row, a multiple of 16, less the
 * piece's first other. FROM and TO: among which 16s of others to look for it. */
template <int FROM, int TO, typename T, int N>
BASIN_DEVICE void leave_out_band(const strip_block<T> &s, piece<N> &v, int row) {
    constexpr int MIDDLE = (FROM + TO) / 2;
    if constexpr (TO - FROM > 1) {
        if (row < MIDDLE * 16)
            leave_out_band<FROM, MIDDLE>(s, v, row);
        else
            leave_out_band<MIDDLE, TO>(s, v, row);
    } else {
        if (s.g == 2 * s.t) v.r[8 * FROM] = v.r[8 * FROM + 6] = s.left_out;
        if (s.g == 2 * s.t + 1) v.r[8 * FROM + 1] = v.r[8 * FROM + 7] = s.left_out;
    }
}
template <typename T, int N>
BASIN_DEVICE void leave_out_self(const strip_block<T> &s, piece<N> &v, int row) {
    if (row >= 0 && row < N) leave_out_band<0, N / 16>(s, v, row);
}

/* Others from `nodes` on, all of them among the last 16. */
template <typename T, int N>
BASIN_DEVICE void leave_out_end(const strip_block<T> &s, piece<N> &v, int nodes) {
#pragma unroll
    for (int i = N / 2 - 8; i < N / 2; i++)
        if (i / 4 * 8 + 2 * s.t + i % 2 >= nodes) v.r[i] = s.left_out;
}

/* What is summed over a row: the largest score (of this thread's columns, as beta's sign has it),
 * weights 2^(z' - maximum), and these times c, r and c r. */
struct strip_row {
    float maximum[2], total[2], gain[2], slope[2], bend[2];
};

template <typename T, int N>
BASIN_DEVICE void raise(strip_row &row, const strip_block<T> &s, const piece<N> &v) {
    float maximum[4] = {row.maximum[0], row.maximum[0], row.maximum[1], row.maximum[1]};
    if (s.scale > 0) {
        BASIN_UNROLL (i, N / 2) maximum[i % 4] = fmaxf(maximum[i % 4], v.r[i]);
        row.maximum[0] = fmaxf(maximum[0], maximum[1]),
        row.maximum[1] = fmaxf(maximum[2], maximum[3]);
    } else {
        BASIN_UNROLL (i, N / 2) maximum[i % 4] = fminf(maximum[i % 4], v.r[i]);
        row.maximum[0] = fminf(maximum[0], maximum[1]),
        row.maximum[1] = fminf(maximum[2], maximum[3]);
    }
}

/* The largest score of the whole row, in units of log 2, less the lift of the weights. */
template <typename T> BASIN_DEVICE void settle(strip_row &row, const strip_block<T> &s) {
    for (int i = 0; i < 2; i++)
        row.maximum[i] = basin_quad_max(row.maximum[i] * s.scale) - (float)strip_block<T>::LIFT;
}

/* Sums over the row's weights; a force keeps them. */
template <basin_cuda_mode MODE, bool SLOPE, typename T, int N>
BASIN_DEVICE void weigh(weights<N> &w, strip_row &row, const strip_block<T> &s, const piece<N> &v) {
    BASIN_UNROLL (step, N / 16) {
        float kept[8];
        BASIN_UNROLL (e, 8) {
            int n = step * 8 + e, i = e / 2 % 2;
            kept[e] = basin_exp2(fmaf(v.r[n], s.scale, -row.maximum[i]));
            row.total[i] += kept[e];
            if (MODE == BASIN_CUDA_REVERSE) row.gain[i] = fmaf(kept[e], v.c[n], row.gain[i]);
            if (SLOPE) {
                float moved = kept[e] * v.r[n];
                row.slope[i] += moved;
                if (MODE == BASIN_CUDA_REVERSE) row.bend[i] = fmaf(moved, v.c[n], row.bend[i]);
            }
        }
        if (MODE == BASIN_CUDA_FORCE) pack(w.p[step], s, kept);
    }
}

/* The reverse, sums known: P = 2^(z' - level), gs = P (beta c + shift), shift = -beta mean. */
template <typename T, int N>
BASIN_DEVICE void bend(weights<N> &w, const strip_block<T> &s, const piece<N> &v,
                       const float level[2], const float shift[2]) {
    BASIN_UNROLL (step, N / 16) {
        float p[8], gs[8];
        BASIN_UNROLL (e, 8) {
            int n = step * 8 + e, i = e / 2 % 2;
            p[e] = basin_exp2(fmaf(v.r[n], s.scale, -level[i]));
            gs[e] = p[e] * fmaf(v.c[n], s.steep, shift[i]);
        }
        pack(w.p[step], s, p);
        pack(w.s[step], s, gs);
    }
}

/* By key: P w, and in reverse P w (beta c + shift), from what is known of the queries. MIXED: signs
 * of w differ; else they are left to the end. */
template <basin_cuda_mode MODE, bool MIXED, typename T, int N>
BASIN_DEVICE void weigh_signed(weights<N> &w, const strip_block<T> &s, const piece<N> &v,
                               int from) {
    BASIN_UNROLL (step, N / 16) {
        float p[8], gs[8];
        BASIN_UNROLL (j, 2) {
            int at = from + step * 16 + j * 8 + 2 * s.t;
            float2 level = *(const float2 *)&s.known->level[at], sign = {1, 1}, shift = {0, 0};
            if (MIXED) sign = *(const float2 *)&s.known->w[at];
            if (MODE == BASIN_CUDA_REVERSE) shift = *(const float2 *)&s.known->shift[at];
            BASIN_UNROLL (e, 4) {
                int n = step * 8 + j * 4 + e, to = j * 4 + e;
                p[to] = basin_exp2(fmaf(v.r[n], s.scale, e % 2 ? -level.y : -level.x));
                if (MIXED) p[to] *= e % 2 ? sign.y : sign.x;
                if (MODE == BASIN_CUDA_REVERSE)
                    gs[to] = p[to] * fmaf(v.c[n], s.steep, e % 2 ? shift.y : shift.x);
            }
        }
        pack(w.p[step], s, p);
        if (MODE == BASIN_CUDA_REVERSE) pack(w.s[step], s, gs);
    }
}

template <basin_cuda_mode MODE, typename T, int N>
BASIN_DEVICE void weigh_known(weights<N> &w, const strip_block<T> &s, const piece<N> &v, int from) {
    if (s.mixed)
        weigh_signed<MODE, true>(w, s, v, from);
    else
        weigh_signed<MODE, false>(w, s, v, from);
}

/* For warps with rows past the last node: any weights, since their sums are not read. */
template <int N> BASIN_DEVICE void idle(weights<N> &w, const piece<N> &v, bool reverse) {
    BASIN_UNROLL (i, N / 4) {
        w.p[i / 4][i % 4] = __float_as_uint(v.r[i]);
        if (reverse) w.s[i / 4][i % 4] = __float_as_uint(v.c[i]);
    }
}

/* The rest of a picture's tokens in bfloat16, up to 8 after the last whole strip of 64: a strip of
 * them would take as long as one of 64. The four warps divide the other side among them, 64 or 48
 * each, multiply by small products (mma.sync) and exchange the sums of a row; warp 0 writes the
 * results. See attention/strip_sm90a.cu; results of these products lie as those of strips do, of
 * which a thread has row g here. Halves gain nothing by it and keep their strips. */

typedef strip_block<basin_bf16> rest_block;

enum { SHARE = 16 }; /* of a thread in its warp's others: [4 i + 2 j + e] is 16 i + 8 j + 2 t + e */

BASIN_DEVICE int lane_of(const rest_block &s) { return s.g * 4 + s.t; }

/* The warp's others, 16s of them from here on: three, and warp 0 has a fourth. */
BASIN_DEVICE int others_of(const rest_block &s) { return s.warp ? 16 + 48 * s.warp : 0; }
BASIN_DEVICE bool has_others(const rest_block &s, int sixteen) {
    return sixteen < 3 || s.warp == 0;
}

/* A thread's other number i. */
BASIN_DEVICE int other_at(const rest_block &s, int i) {
    return others_of(s) + i / 4 * 16 + i / 2 % 2 * 8 + 2 * s.t + i % 2;
}

/* The address of a 16-byte piece; then that of piece (p ^ q) of the same row, and that 16 rows
 * on. */
BASIN_DEVICE uint32_t piece_at(const char *table, int row, int piece) {
    return basin_shared_address(table) + (uint32_t)(row * 128 + ((piece ^ row % 8) << 4));
}
BASIN_DEVICE uint32_t across(uint32_t at, int q) { return at ^ (uint32_t)q << 4; }
enum { DOWN = 16 * 128 };

/* The rows of a table as left operands, of 16 columns each; rows 8 to 15 of them are zeros. */
struct rest_rows {
    basin_mma_bf16::left_t v[WIDTH / 16];
};
BASIN_DEVICE rest_rows own_rows(const char *table, const rest_block &s) {
    int lane = lane_of(s);
    uint32_t at = piece_at(table, STRIPS_END + lane % 16, lane / 16);
    rest_rows x;
    BASIN_UNROLL (i, WIDTH / 16) {
        uint32_t *v = x.v[i].v;
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(across(at, i * 2))
                     : "memory");
    }
    return x;
}

/* Scores of the warp's others as products leave them: of each, rows g and g + 8, which is none. */
struct rest_scores {
    float v[SHARE / 2][4];
};

/* r += x y^T, of the warp's rows of y. */
BASIN_DEVICE void add_scores(rest_scores &r, const rest_rows &x, const char *y,
                             const rest_block &s) {
    int lane = lane_of(s);
    uint32_t at = piece_at(y, others_of(s) + lane / 16 * 8 + lane % 8, lane / 8 % 2);
    BASIN_UNROLL (k, WIDTH / 16)
        BASIN_UNROLL (i, SHARE / 4) {
            basin_mma_bf16::right_t b[2];
            if (!has_others(s, i)) continue;
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(b[0].v[0]), "=r"(b[0].v[1]), "=r"(b[1].v[0]), "=r"(b[1].v[1])
                         : "r"(across(at, k * 2) + (uint32_t)(i * DOWN))
                         : "memory");
            basin_mma_bf16::add(r.v[2 * i], x.v[k], b[0]);
            basin_mma_bf16::add(r.v[2 * i + 1], x.v[k], b[1]);
        }
}
BASIN_DEVICE void take_scores(float (&r)[SHARE], const rest_scores &x) {
    BASIN_UNROLL (i, SHARE) r[i] = x.v[i / 2][i % 2];
}

/* sum += p y, of the warp's rows of y. */
BASIN_DEVICE void add_sums(float (&sum)[WIDTH / 8][4], const float (&p)[SHARE], const char *y,
                           const rest_block &s) {
    int lane = lane_of(s);
    uint32_t at = piece_at(y, others_of(s) + lane % 16, lane / 16);
    BASIN_UNROLL (i, SHARE / 4) {
        if (!has_others(s, i)) continue;
        basin_mma_bf16::left_t a = {{basin_mma_bf16::two(p[4 * i], p[4 * i + 1]), 0,
                                     basin_mma_bf16::two(p[4 * i + 2], p[4 * i + 3]), 0}};
#pragma unroll
        for (int n = 0; n < WIDTH / 8; n += 2) {
            basin_mma_bf16::right_t b[2];
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(b[0].v[0]), "=r"(b[0].v[1]), "=r"(b[1].v[0]), "=r"(b[1].v[1])
                         : "r"(across(at, n) + (uint32_t)(i * DOWN))
                         : "memory");
            basin_mma_bf16::add(sum[n], a, b[0]);
            basin_mma_bf16::add(sum[n + 1], a, b[1]);
        }
    }
}

/* Others that are not there, not this warp's or the node itself. */
BASIN_DEVICE void leave_out_rest(float (&r)[SHARE], const rest_block &s, int nodes, bool self) {
    BASIN_UNROLL (i, SHARE) {
        int other = other_at(s, i);
        bool out = !has_others(s, i / 4) || other >= nodes || (self && other == STRIPS_END + s.g);
        if (out) r[i] = s.left_out;
    }
}

BASIN_DEVICE void write_pair(const basin_strip_launch &p, void *out, int64_t at, float first,
                             float second) {
    if (p.bytes)
        *(uint16_t *)((uint8_t *)out + at) = (uint16_t)bytes_of(p, first, second);
    else
        *(uint32_t *)((basin_bf16 *)out + at) = basin_mma_bf16::two(first, second);
}

/* The sums of all warps, times a factor, to the nodes' places. */
BASIN_DEVICE void write_rest(const rest_block &s, const basin_strip_launch &p,
                             const float (&sum)[WIDTH / 8][4], void *out, float factor, int nodes,
                             int64_t step, int width) {
    int lane = lane_of(s), node = STRIPS_END + s.g;
    int64_t first = (s.entry * nodes + node) * step + (int64_t)s.head * width + 2 * s.t;
    if (p.bytes) factor *= p.scale;
    if (s.warp > 0)
        BASIN_UNROLL (i, WIDTH / 16)
            s.known->sum[s.warp - 1][i][lane] =
                make_float4(sum[2 * i][0], sum[2 * i][1], sum[2 * i + 1][0], sum[2 * i + 1][1]);
    __syncthreads();
    if (s.warp > 0 || node >= nodes) return;
    BASIN_UNROLL (i, WIDTH / 16) {
        float4 x = make_float4(sum[2 * i][0], sum[2 * i][1], sum[2 * i + 1][0], sum[2 * i + 1][1]);
        BASIN_UNROLL (k, 3) {
            float4 y = s.known->sum[k][i][lane];
            x.x += y.x, x.y += y.y, x.z += y.z, x.w += y.w;
        }
        if (16 * i < width) write_pair(p, out, first + 16 * i, x.x * factor, x.y * factor);
        if (16 * i + 8 < width) write_pair(p, out, first + 16 * i + 8, x.z * factor, x.w * factor);
    }
}

#endif
