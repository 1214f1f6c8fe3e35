/* Fused energy attention on the CPU in float32: value, force, reverse of the force.
 *
 * Per batch entry, with q a query, k a key, h a head; sums run over the allowed pairs only:
 *
 *     r[q,k,h] = Q[q,h] . K[k,h]             s = beta[h] r
 *     y[q,k,h'] = sum_h s[q,k,h] mix[h,h']    (y = s without mix)
 *     z = y scale[pair,h']                    (z = y without scale; z = y + bias where it is added)
 *
 *     value    lse[q,h] = log sum_k exp z[q,k,h], and 0 for a query with no key
 *
 *     force    the gradient of sum w lse, P = exp(z - lse):
 *         u = w P scale                        t[q,k,h] = sum_h' mix[h,h'] u[q,k,h']
 *         dQ[q,h] = beta[h] sum_k t K[k,h]     dK[k,h] = beta[h] sum_q t Q[q,h]
 *         dbeta[h] = sum t r                   dscale = w P y     dmix[h,h'] = sum s[h] u[h']
 *
 *     reverse  the gradient of F = sum A . dQ + sum B . dK, lse differentiated through:
 *         c[q,k,h] = A[q,h] . K[k,h] + Q[q,h] . B[k,h]
 *         v[q,k,h'] = sum_h mix[h,h'] beta[h] c[q,k,h]      gw[q,h'] = sum_k P scale v
 *         gz = w P (scale v - gw[q])           gs[q,k,h] = sum_h' mix[h,h'] scale gz
 *         gQ[q,h] = beta[h] sum_k (t B[k,h] + gs K[k,h])
 *         gK[k,h] = beta[h] sum_q (t A[q,h] + gs Q[q,h])
 *         gbeta[h] = sum t c + gs r            gscale = w P v + gz y
 *         gmix[h,h'] = sum u[h'] beta[h] c[h] + s[h] scale gz[h']
 *
 * A bias leaves the factors scale out of all this: dbias = w P, gbias = gz.
 *
 * Results are the same bit for bit for any number of threads. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_ATTENTION_H
#define BASIN_BACKEND_CPU_ATTENTION_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct basin_attention_pattern {
    int64_t batch, queries, keys, heads, width;
    int64_t parts;         /* of how many such batches this is one; 0: it is all */
    bool exclude_self;     /* all pairs: q == k is left out (queries == keys then) */
    bool causal;           /* all pairs: k > q is left out (queries == keys then) */
    int64_t pairs;         /* CSR: what key, query, pair and scale have room for, >= row[queries] */
    const int32_t *row;    /* [queries + 1]; NULL for all pairs. CSR has batch 1 */
    const int32_t *key;    /* [pairs] of each pair; ascending inside a row is faster */
    const int32_t *column; /* [keys + 1] the same pairs by key, for dk and gk: */
    const int32_t *query;  /* [pairs] the query of the j-th pair in that order */
    const int32_t *pair;   /* [pairs] and its number in CSR order */
} basin_attention_pattern;

typedef enum basin_attention_mode {
    BASIN_ATTENTION_VALUE,
    BASIN_ATTENTION_FORCE,
    BASIN_ATTENTION_REVERSE,
} basin_attention_mode;

/* Operands. Optional inputs and unwanted outputs are NULL; an unwanted output costs no time. */
typedef struct basin_attention {
    basin_attention_mode mode;
    basin_attention_pattern pattern;
    const float *q;     /* [batch, queries, H, Y] */
    const float *k;     /* [batch, keys, H, Y] */
    const float *beta;  /* [H] */
    const float *scale; /* [pairs, H], or all pairs [batch, queries, keys, H]; optional */
    bool added;         /* scale is a bias: added to the scores */
    const float *mix;   /* [H, H]; optional */
    const float *w;     /* [batch, queries, H] cotangent of lse; force and reverse */
    const float *a;     /* like q, cotangent of dq; reverse, NULL for zero */
    const float *b;     /* like k, cotangent of dk; reverse, NULL for zero */
    float *lse;         /* [batch, queries, H]; value and force */
    float *gw;          /* the same; reverse */
    /* Like q, k, beta, scale and mix; d.. of the force and g.. of the reverse. */
    float *out_query, *out_key, *out_beta, *out_scale, *out_mix;
} basin_attention;

/* Bytes of workspace, 64-byte aligned: linear in threads, tokens and pairs x heads. */
size_t basin_attention_workspace(const basin_attention *at, int threads);
void basin_attention_run(const basin_attention *at, int threads, void *workspace);

/* The inner loops of energy attention, one table for each instruction set.
 *
 * Rows of numbers are packed: one head after the other, each row padded with zeros to a multiple of
 * ATTENTION_ALIGN floats, so no loop over a row has a remainder. The notation (r, c, t, gs, ...) is
 * that of attention.h. */

enum {
    ATTENTION_ALIGN = 16, /* floats; the widest vector */
    ATTENTION_TILE = 32,  /* pairs the pointwise loops take at once */
    ATTENTION_PLANES = 5, /* tiles of [H, ATTENTION_TILE] floats they need as scratch */
};

/* The pairs of one query (or a part of them) for all heads at once, between the products. */
typedef struct basin_attention_row {
    int64_t heads, pairs;
    int64_t plane;        /* distance from one head to the next in r and c */
    int64_t scale_stride; /* distance from one pair to the next in scale and dscale */
    int64_t self;         /* the pair that is left out, or -1 */
    const float *beta;    /* [H] */
    const float *mix;     /* [H, H] or NULL */
    const float *scale;   /* [pairs, H] or NULL */
    bool added;           /* scale is a bias */
    const float *w;       /* [H] */
    float *r;             /* [H, pairs] Q . K; `finish` leaves beta t there */
    float *c;             /* [H, pairs] A . K + Q . B, or NULL; `finish` leaves beta gs there */
    uint16_t *t, *gs;     /* `whole` rounds beta t and beta gs to bfloat16 here, unless NULL */
    float *max;           /* [H] largest z so far */
    float *total;         /* [H] sum of exp(z - max) */
    float *gain;          /* [H] sum of exp(z - max) scale v; with c only */
    float *dscale;        /* [pairs, H] dscale or gscale, or NULL */
    float *dbeta;         /* [H, ATTENTION_ALIGN] partial sums, or NULL */
    float *dmix;          /* [H, H, ATTENTION_ALIGN] partial sums, or NULL */
    float *scratch;       /* [ATTENTION_PLANES, H, ATTENTION_TILE], for `whole` [pairs] */
} basin_attention_row;

/* A query's running sums over its keys, without scale and mix, e being exp(beta r - max). Sums
 * that c enters are taken about `center`, an early mean of c, so that little cancels at the end. */
typedef struct basin_attention_state {
    float max;
    float total;      /* sum e */
    float slope;      /* sum e r */
    float center;     /* reverse only, like what follows */
    float gain;       /* sum e (c - center) */
    float gain_slope; /* sum e (c - center) r */
    float unused[2];
} basin_attention_state;

/* What the keys need to know of a query: beta t = exp(beta r - max) weight with beta w / total for
 * the weight, beta gs = beta t beta (c - mean). */
typedef struct basin_attention_summary {
    float max, weight, mean, unused;
} basin_attention_summary;

/* Attention over a list of short rows (kernels_short.h); unwanted results are NULL. */
typedef struct basin_attention_short {
    bool reverse, added;
    int64_t heads, width;                             /* heads divide the lanes of a vector */
    const int32_t *row, *key, *column, *query, *pair; /* as in basin_attention_pattern */
    const float *q, *k, *a, *b;                       /* [tokens, H, Y] */
    int64_t a_step, b_step;                           /* floats from row to row; 0: all zeros */
    const float *beta, *scale, *w;
    float *lse, *gw, *dscale, *out_query, *out_key;
    float *t, *gs, *e; /* [pairs, H]: beta t, beta gs, scratch */
} basin_attention_short;

/* The pairs of one query and head of attention with values (backend/values.h). */
typedef struct basin_values_row {
    int64_t count, self; /* pairs; the one that is left out, or -1 */
    float scale;
    const float *bias, *tbias; /* [count] or NULL */
    float *s;                  /* q . k; becomes p */
    float *x;                  /* tq . k + q . tk, or NULL; tp */
    float *g;                  /* c . v, or NULL; scale ds */
    float *y;                  /* tc . v + c . tv, or NULL; scale tds */
    float *slope;              /* [count] tds, else ds; or NULL */
} basin_values_row;

typedef struct basin_attention_kernels {
    int64_t lanes; /* floats of a vector */
    /* out[i] = x . rows[index[i]] */
    void (*dot)(float *out, const float *x, const float *rows, const int32_t *index, int64_t n,
                int64_t width);
    /* rows are pairs (K | B), x is (Q | A): r[i] = Q . K, c[i] = A . K + Q . B */
    void (*dot_two)(float *r, float *c, const float *x, const float *rows, const int32_t *index,
                    int64_t n, int64_t width);
    /* sum += coefficient[i] rows[index[i]] */
    void (*gather)(float *sum, const float *coefficient, const float *rows, const int32_t *index,
                   int64_t n, int64_t width);
    /* rows are pairs (K | B): sum += gs[i] K + t[i] B */
    void (*gather_two)(float *sum, const float *gs, const float *t, const float *rows,
                       const int32_t *index, int64_t n, int64_t width);
    /* Takes the row's pairs into most, total and gain. */
    void (*measure)(const basin_attention_row *row);
    /* With most, total, gain complete: r <- beta t, c <- beta gs, sums. lse = most + log total. */
    void (*finish)(const basin_attention_row *row);
    /* One after the other, for a row that is all there. */
    void (*complete)(const basin_attention_row *row);
    /* The same for one head without scale and mix; c, dbeta and, where only the state is computed,
     * w may be NULL. Rows have room for a multiple of ATTENTION_ALIGN pairs. */
    void (*whole)(const basin_attention_row *row);

    /* Fused passes over a list, one head. Along a row, n more keys: rc[i] = r, or (r, c); sum[0] +=
     * e K, or in reverse sum[0] += e (B + beta (c - center) K), sum[1] += e K. */
    void (*force_row)(basin_attention_state *state, float *sum, float *rc, const float *x,
                      const float *rows, const int32_t *index, int64_t n, int64_t width,
                      float beta);
    void (*reverse_row)(basin_attention_state *state, float *sum, float *rc, const float *x,
                        const float *rows, const int32_t *index, int64_t n, int64_t width,
                        float beta);
    /* Along a column, n more queries: sum += beta t Q, or in reverse beta (t A + gs Q). */
    void (*force_column)(float *sum, const float *rc, const int32_t *pair,
                         const basin_attention_summary *summary, const float *rows,
                         const int32_t *index, int64_t n, int64_t width, float beta);
    void (*reverse_column)(float *sum, const float *rc, const int32_t *pair,
                           const basin_attention_summary *summary, const float *rows,
                           const int32_t *index, int64_t n, int64_t width, float beta);

    /* The rows of queries first .. last - 1 of a list of short ones: t, gs and all that is summed
     * along rows; dbeta or gbeta in lanes. Then the columns of keys first .. last - 1. */
    void (*short_rows)(const basin_attention_short *s, int64_t first, int64_t last, float *dbeta);
    void (*short_columns)(const basin_attention_short *s, int64_t first, int64_t last);

    void (*values)(const basin_values_row *row);
} basin_attention_kernels;

const basin_attention_kernels *basin_attention_kernels_find(void);

extern const basin_attention_kernels basin_attention_kernels_avx2, basin_attention_kernels_avx512;

/* ---- inside ---- */

/* All pairs: the number of keys that a query sees, from key 0 on. */
static inline int64_t basin_attention_keys(const basin_attention_pattern *p, int64_t query) {
    return p->causal ? query + !p->exclude_self : p->keys;
}

/* How many of `threads` are worth waking for all pairs of the pattern. */
int basin_attention_threads(const basin_attention *at, int threads);

/* A workspace being laid out; with a NULL base it is only counted. */
typedef struct basin_arena {
    char *base;
    size_t used; /* bytes */
} basin_arena;

static inline void *basin_arena_take(basin_arena *arena, int64_t count, size_t size) {
    void *block = arena->base ? arena->base + arena->used : NULL;
    arena->used += ((size_t)count * size + 63) / 64 * 64;
    return block;
}

static inline float *basin_arena_floats(basin_arena *arena, int64_t count) {
    return basin_arena_take(arena, count, sizeof(float));
}

/* Runs a form in a workspace (NULL: lays it out); returns the bytes for `threads` threads. */
typedef size_t basin_attention_form(const basin_attention *at, int threads, void *workspace);
/* Lists: short rows without mix (force, reverse); any scale and mix; neither, in fewer passes. */
bool basin_attention_is_short(const basin_attention *at);
basin_attention_form basin_attention_brief, basin_attention_mixed, basin_attention_fused;
/* Over all pairs. */
basin_attention_form basin_attention_dense;
/* All pairs of bfloat16 tokens, with the processor's bfloat16 instructions: products of bfloat16
 * with float sums, floats in between. q, k, a, b, out_query, out_key point to uint16_t. No scale,
 * no mix: whether the operands qualify. */
bool basin_attention_narrow_fits(const basin_attention *at);
basin_attention_form basin_attention_narrow;

#endif
