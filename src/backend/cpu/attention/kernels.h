/* The inner loops of energy attention, one table for each instruction set.
 *
 * Rows of numbers are packed: one head after the other, each row padded with zeros to a multiple of
 * ATTENTION_ALIGN floats, so no loop over a row has a remainder. The notation (r, c, t, gs, ...) is
 * that of attention.h. */
#ifndef BASIN_BACKEND_CPU_ATTENTION_KERNELS_H
#define BASIN_BACKEND_CPU_ATTENTION_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

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
    float *most;          /* [H] largest z so far */
    float *total;         /* [H] sum of exp(z - most) */
    float *gain;          /* [H] sum of exp(z - most) scale v; with c only */
    float *dscale;        /* [pairs, H] dscale or gscale, or NULL */
    float *dbeta;         /* [H, ATTENTION_ALIGN] partial sums, or NULL */
    float *dmix;          /* [H, H, ATTENTION_ALIGN] partial sums, or NULL */
    float *scratch;       /* [ATTENTION_PLANES, H, ATTENTION_TILE], for `whole` [pairs] */
} basin_attention_row;

/* A query's running sums over its keys, without scale and mix, e being exp(beta r - most). Sums
 * that c enters are taken about `center`, an early mean of c, so that little cancels at the end. */
typedef struct basin_attention_state {
    float most;
    float total;      /* sum e */
    float slope;      /* sum e r */
    float center;     /* reverse only, like what follows */
    float gain;       /* sum e (c - center) */
    float gain_slope; /* sum e (c - center) r */
    float unused[2];
} basin_attention_state;

/* What the keys need to know of a query: beta t = exp(beta r - most) weight with beta w / total for
 * the weight, beta gs = beta t beta (c - mean). */
typedef struct basin_attention_summary {
    float most, weight, mean, unused;
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
    /* With most, total and gain complete: r <- beta t, c <- beta gs, and the sums. lse = most + log
     * total. */
    void (*finish)(const basin_attention_row *row);
    /* One after the other, for a row that is all there. */
    void (*complete)(const basin_attention_row *row);
    /* The same for one head without scale and mix; c and dbeta may be NULL, and w
     * where only the state is wanted. Rows of r and c and scratch have room for a multiple of
     * ATTENTION_ALIGN pairs. */
    void (*whole)(const basin_attention_row *row);

    /* The fused passes over a list, one head. Along a row, n more keys of the query x:
     * rc[i] = r, or (r, c) in reverse, and
     * sum[0] += e K, or in reverse sum[0] += e (B + beta (c - center) K), sum[1] += e K. */
    void (*force_row)(basin_attention_state *state, float *sum, float *rc, const float *x,
                      const float *rows, const int32_t *index, int64_t n, int64_t width,
                      float beta);
    void (*reverse_row)(basin_attention_state *state, float *sum, float *rc, const float *x,
                        const float *rows, const int32_t *index, int64_t n, int64_t width,
                        float beta);
    /* Along a column, n more queries of the key: sum += beta t Q, or in reverse beta (t A + gs Q).
     */
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
} basin_attention_kernels;

const basin_attention_kernels *basin_attention_kernels_find(void);

extern const basin_attention_kernels basin_attention_kernels_avx2, basin_attention_kernels_avx512;

#endif
