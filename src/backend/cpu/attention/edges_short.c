/* Energy attention over a CSR list whose rows are short, as those of molecules are: no packing, all
 * heads of a row at once, each row and each column by one thread. Rows are
 * cut into fixed slices, so that sums over all pairs have one order. */
#include "backend/cpu/attention/edges.h"
#include "base/team/team.h"

enum { SLICES = 64, SHORT = 16 }; /* SHORT: pairs of an average row */

bool basin_attention_is_short(const basin_attention *at, basin_attention_mode mode) {
    const basin_attention_pattern *p = &at->pattern;
    int64_t lanes = basin_attention_kernels_find()->lanes;
    return mode != BASIN_ATTENTION_VALUE && !at->mix && !at->dmix && !at->gmix &&
           p->pairs <= SHORT * p->queries && p->heads <= lanes && lanes % p->heads == 0 &&
           p->width % ATTENTION_ALIGN == 0;
}

typedef struct brief {
    basin_attention_short s;
    const basin_attention_kernels *kernels;
    int64_t queries, keys;
    float *partial; /* [SLICES, ATTENTION_ALIGN] of dbeta, in lanes */
    float *zeros;   /* [H, Y] for a or b that is none */
} brief;

static size_t lay_out(brief *b, const basin_attention *at, basin_attention_mode mode,
                      void *workspace) {
    const basin_attention_pattern *p = &at->pattern;
    basin_arena a = {.base = workspace};
    b->s.t = basin_arena_floats(&a, p->pairs * p->heads);
    b->s.e = basin_arena_floats(&a, p->pairs * p->heads);
    b->s.gs =
        mode == BASIN_ATTENTION_REVERSE ? basin_arena_floats(&a, p->pairs * p->heads) : b->s.t;
    b->partial = basin_arena_floats(&a, SLICES * ATTENTION_ALIGN);
    b->zeros = basin_arena_floats(&a, p->heads * p->width);
    return a.used;
}

size_t basin_attention_short_workspace(const basin_attention *at, basin_attention_mode mode) {
    brief b = {.queries = 0};
    return lay_out(&b, at, mode, NULL);
}

static void run_rows(const void *context, int64_t first, int64_t last, int place) {
    const brief *b = context;
    (void)place;
    for (int64_t i = first; i < last; i++)
        b->kernels->short_rows(&b->s, i * b->queries / SLICES, (i + 1) * b->queries / SLICES,
                               b->partial + i * ATTENTION_ALIGN);
}

static void run_columns(const void *context, int64_t first, int64_t last, int place) {
    const brief *b = context;
    (void)place;
    b->kernels->short_columns(&b->s, first * b->keys / SLICES, last * b->keys / SLICES);
}

static void add_partials(float *out, const brief *b) {
    for (int64_t h = 0; h < b->s.heads; h++) {
        float sum = 0;
        for (int64_t i = 0; i < SLICES; i++)
            for (int64_t lane = h; lane < b->kernels->lanes; lane += b->s.heads)
                sum += b->partial[i * ATTENTION_ALIGN + lane];
        out[h] = sum;
    }
}

static void take_operands(brief *b, const basin_attention *at, bool reverse) {
    const basin_attention_pattern *p = &at->pattern;
    basin_attention_short *s = &b->s;
    int64_t row = p->heads * p->width;
    for (int64_t i = 0; i < row; i++) b->zeros[i] = 0;
    s->reverse = reverse, s->added = at->added;
    s->heads = p->heads, s->width = p->width;
    s->row = p->row, s->key = p->key, s->column = p->column, s->query = p->query, s->pair = p->pair;
    s->q = at->q, s->k = at->k, s->beta = at->beta, s->scale = at->scale, s->w = at->w;
    s->a = reverse && at->a ? at->a : b->zeros, s->a_step = reverse && at->a ? row : 0;
    s->b = reverse && at->b ? at->b : b->zeros, s->b_step = reverse && at->b ? row : 0;
    s->lse = reverse ? NULL : at->lse, s->gw = reverse ? at->gw : NULL;
    s->dscale = reverse ? at->gscale : at->dscale;
    s->out_query = reverse ? at->gq : at->dq, s->out_key = reverse ? at->gk : at->dk;
}

void basin_attention_short_run(const basin_attention *at, basin_attention_mode mode, int threads,
                               void *workspace) {
    bool reverse = mode == BASIN_ATTENTION_REVERSE;
    brief b = {.kernels = basin_attention_kernels_find(),
               .queries = at->pattern.queries,
               .keys = at->pattern.keys};
    float *beta = reverse ? at->gbeta : at->dbeta;
    lay_out(&b, at, mode, workspace);
    take_operands(&b, at, reverse);
    basin_team_run(run_rows, &b, SLICES, 1, threads);
    if (beta) add_partials(beta, &b);
    if (b.s.out_key) basin_team_run(run_columns, &b, SLICES, 1, threads);
}
