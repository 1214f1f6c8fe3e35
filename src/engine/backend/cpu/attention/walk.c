/* Energy attention along lists in the host's memory; see basin/walk.h. Each node is one
 * thread's work, in the order of its list, so results do not depend on the number of threads. */
#include "basin/walk.h"

#include <math.h>
#include <string.h>

#include "engine/backend/cpu/attention/attention.h"
#include "engine/core/team/team.h"

/* Pairs taken at once: their rows stay in the first-level cache while heads take turns. */
enum { CHUNK = 32, GRAIN = 32 };

/* Where a walk along the list of a node is. */
typedef struct step {
    int64_t node, at, end;
    bool own; /* after the last neighbour comes the node itself */
} step;

static step start(const basin_walk *w, int64_t node) {
    return (step){node, w->begin[node], w->begin[node + 1], w->add_self};
}

/* Neighbours, and which edges lead to them; -1: none does. */
typedef struct batch {
    int32_t index[CHUNK];
    int64_t edge[CHUNK];
} batch;

/* The next neighbours; 0 at the end. */
static int take(batch *b, step *s, const basin_walk *w) {
    int n = 0;
    for (; s->at < s->end && n < CHUNK; s->at++) {
        b->index[n] = w->other[s->at];
        b->edge[n] = w->entry ? w->entry[s->at] : s->at;
        n += !(w->drop_self && b->index[n] == s->node);
    }
    if (s->own && s->at == s->end && n < CHUNK) {
        b->edge[n] = -1;
        b->index[n++] = (int32_t)s->node;
        s->own = false;
    }
    return n;
}

/* r <- beta r + bias of one head. */
static void score(float *r, float beta, const basin_walk *w, const batch *b, int n, int64_t head) {
    for (int i = 0; i < n; i++) r[i] *= beta;
    for (int i = 0; i < n && w->bias; i++)
        if (b->edge[i] >= 0) r[i] += w->bias[b->edge[i] * w->heads + head];
}

/* Neighbours lie anywhere: asks for the rows that come next. */
static void expect(const basin_walk *w, const float *also, int64_t also_stride, step s,
                   int64_t last) {
    if (s.at == s.end) {
        if (s.node + 1 >= last) return;
        s = start(w, s.node + 1);
    }
    int64_t end = s.end - s.at > CHUNK ? s.at + CHUNK : s.end;
    for (int64_t e = s.at; e < end; e++) {
        const float *row = w->rows + (int64_t)w->other[e] * w->stride;
        for (int64_t i = 0; i < w->stride; i += 16) __builtin_prefetch(row + i, 0, 2);
        if (also) __builtin_prefetch(also + (int64_t)w->other[e] * also_stride, 0, 2);
    }
}

/* One head's running sums under the largest score so far, taken into those of all chunks before. */
typedef struct running {
    float max, total;
} running;

static void ask_chunk(running *all, float *sum, const float *own, const basin_walk *w, int64_t head,
                      const batch *b, int n, const basin_attention_kernels *k) {
    float r[CHUNK], max = all->max, total = 0;
    k->dot(r, own, w->rows, b->index, n, w->stride);
    score(r, w->beta[head], w, b, n, head);
    for (int i = 0; i < n; i++) max = fmaxf(max, r[i]);
    float fade = expf(all->max - max);
    for (int i = 0; i < n; i++) total += r[i] = expf(r[i] - max);
    if (fade != 1)
        for (int64_t i = 0; i < w->stride; i++) sum[i] *= fade;
    k->gather(sum, r, w->rows, b->index, n, w->stride);
    *all = (running){max, all->total * fade + total};
}

enum { HEADS_AT_ONCE = 16 };

static void ask_heads(float *sum, float *lse, const float *own, const basin_walk *w, int64_t node,
                      int64_t last, int64_t head, int heads, const basin_attention_kernels *k) {
    running all[HEADS_AT_ONCE];
    batch b;
    step s = start(w, node);
    for (int h = 0; h < heads; h++) all[h] = (running){-INFINITY, 0};
    for (int n; (n = take(&b, &s, w)) > 0;) {
        expect(w, NULL, 0, s, last);
        for (int h = 0; h < heads; h++)
            ask_chunk(&all[h], sum + h * w->stride, own + h * w->stride, w, head + h, &b, n, k);
    }
    for (int h = 0; h < heads; h++) {
        float inverse = all[h].total > 0 ? 1 / all[h].total : 0;
        for (int64_t i = 0; i < w->stride; i++) sum[h * w->stride + i] *= inverse;
        lse[h] = all[h].total > 0 ? all[h].max + logf(all[h].total) : 0;
    }
}

/* What the threads of a walk share. */
typedef struct walking {
    const basin_walk *w;
    const basin_attention_kernels *kernels;
    float *sum;           /* [count, H, stride] */
    const float *own;     /* [count, H, stride] */
    float *lse;           /* written by query */
    const float *lse_all; /* read by key */
    int64_t first, count; /* nodes */
} walking;

static void ask_nodes(const void *context, int64_t begin, int64_t end) {
    const walking *t = context;
    const basin_walk *w = t->w;
    int64_t H = w->heads, width = H * w->stride;
    for (int64_t i = begin; i < end; i++) {
        memset(t->sum + i * width, 0, (size_t)width * sizeof *t->sum);
        for (int64_t h = 0; h < H; h += HEADS_AT_ONCE) {
            int heads = H - h < HEADS_AT_ONCE ? (int)(H - h) : HEADS_AT_ONCE;
            int64_t at = i * width + h * w->stride;
            ask_heads(t->sum + at, t->lse + (t->first + i) * H + h, t->own + at, w, t->first + i,
                      t->first + t->count, h, heads, t->kernels);
        }
    }
}

void basin_walk_by_query(float *sum, float *lse, const float *own, const basin_walk *w,
                         int64_t first, int64_t count) {
    walking t = {.w = w, .kernels = basin_attention_kernels_find(), .sum = sum, .own = own};
    t.lse = lse, t.first = first, t.count = count;
    basin_parallel_for(ask_nodes, &t, count, GRAIN, w->threads);
}

static void answer_chunk(float *sum, const float *own, const float *lse, const basin_walk *w,
                         int64_t head, const batch *b, int n, const basin_attention_kernels *k) {
    float r[CHUNK];
    k->dot(r, own, w->rows, b->index, n, w->stride);
    score(r, w->beta[head], w, b, n, head);
    for (int i = 0; i < n; i++) r[i] = expf(r[i] - lse[b->index[i] * w->heads + head]);
    k->gather(sum, r, w->rows, b->index, n, w->stride);
}

static void answer_nodes(const void *context, int64_t begin, int64_t end) {
    const walking *t = context;
    const basin_walk *w = t->w;
    int64_t H = w->heads, width = H * w->stride;
    for (int64_t i = begin; i < end; i++) {
        batch b;
        step s = start(w, t->first + i);
        memset(t->sum + i * width, 0, (size_t)width * sizeof *t->sum);
        for (int n; (n = take(&b, &s, w)) > 0;) {
            expect(w, t->lse_all, H, s, t->first + t->count);
            for (int64_t h = 0; h < H; h++) {
                int64_t at = i * width + h * w->stride;
                answer_chunk(t->sum + at, t->own + at, t->lse_all, w, h, &b, n, t->kernels);
            }
        }
    }
}

void basin_walk_by_key(float *sum, const float *own, const float *lse, const basin_walk *w,
                       int64_t first, int64_t count) {
    walking t = {.w = w, .kernels = basin_attention_kernels_find(), .sum = sum, .own = own};
    t.lse_all = lse, t.first = first, t.count = count;
    basin_parallel_for(answer_nodes, &t, count, GRAIN, w->threads);
}
