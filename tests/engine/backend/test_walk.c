/* Attention along lists in place, against plain loops in double: hubs and nodes without neighbours,
 * self loops kept, dropped and added, more heads than are taken at once; and the same bits for any
 * number of threads. */
#include <math.h>

#include "basin/random.h"
#include "basin/walk.h"
#include "support/test.h"

enum { N = 90, STRIDE = 48, WIDTH = 37, H = 19, MOST = 4000 };

typedef struct world {
    int64_t begin[N + 1];
    int32_t other[MOST];
    float rows[N * STRIDE], own[N * H * STRIDE], beta[H];
    float sum[N * H * STRIDE], lse[N * H];
    double want_sum[N * H * STRIDE], want_lse[N * H];
    bool biased;
    float bias[MOST * H]; /* of edges in the order of `entry` */
    int64_t entry[MOST];
} world;

static float draw(uint64_t stream, int64_t i) {
    return (float)basin_random_normal_at(5, stream, (uint64_t)i);
}

static void fill_rows(float *to, uint64_t stream, int64_t rows, float scale) {
    for (int64_t i = 0; i < rows * STRIDE; i++)
        to[i] = i % STRIDE < WIDTH ? scale * draw(stream, i) : 0;
}

/* Node 0 has all as neighbours, node 1 none, the others a few; some are their own. */
static void world_new(world *w) {
    int64_t edges = 0;
    for (int64_t i = 0; i < N; i++) {
        w->begin[i] = edges;
        for (int64_t j = 0; j < N && i != 1; j++)
            if (i == 0 || basin_random_uniform_at(5, 9, (uint64_t)(i * N + j)) < 0.07)
                w->other[edges++] = (int32_t)j;
    }
    w->begin[N] = edges;
    for (int64_t e = 0; e < edges; e++) w->entry[e] = edges - 1 - e;
    for (int64_t i = 0; i < edges * H; i++) w->bias[i] = draw(4, i);
    assert_true(edges < MOST);
    fill_rows(w->rows, 1, N, 1);
    fill_rows(w->own, 2, N * H, 0.15f);
    for (int h = 0; h < H; h++) w->beta[h] = 0.2f + 0.05f * (float)h;
}

/* What the edge from i to j adds; nothing where a node is its own neighbour by option alone. */
static double bias_of(const world *w, int64_t i, int64_t j, int h, bool drop) {
    for (int64_t e = w->begin[i]; e < w->begin[i + 1] && w->biased; e++)
        if (w->other[e] == j && !(drop && i == j)) return (double)w->bias[w->entry[e] * H + h];
    return 0;
}

/* exp(beta own_i . row_j - shift), and whether j counts as a neighbour of i. */
static double term(const world *w, int64_t i, int64_t j, int h, double shift) {
    double dot = 0;
    for (int d = 0; d < WIDTH; d++)
        dot += (double)w->own[(i * H + h) * STRIDE + d] * (double)w->rows[j * STRIDE + d];
    return exp((double)w->beta[h] * dot - shift);
}

static int times(const world *w, int64_t i, int64_t j, bool drop, bool add) {
    int count = 0;
    for (int64_t e = w->begin[i]; e < w->begin[i + 1]; e++)
        count += w->other[e] == j && !(drop && i == j);
    return count + (add && i == j);
}

static void plain(world *w, bool ask, bool drop, bool add) {
    memset(w->want_sum, 0, sizeof w->want_sum);
    for (int64_t i = 0; i < N; i++)
        for (int h = 0; h < H; h++) {
            double total = 0, *sum = w->want_sum + (i * H + h) * STRIDE;
            for (int64_t j = 0; j < N; j++) {
                int count = times(w, i, j, drop, add);
                if (!count) continue;
                double shift = (ask ? 0 : (double)w->lse[j * H + h]) - bias_of(w, i, j, h, drop);
                double e = count * term(w, i, j, h, shift);
                total += e;
                for (int d = 0; d < WIDTH; d++) sum[d] += e * (double)w->rows[j * STRIDE + d];
            }
            if (!ask) continue;
            w->want_lse[i * H + h] = total > 0 ? log(total) : 0;
            for (int d = 0; d < WIDTH && total > 0; d++) sum[d] /= total;
        }
}

static void close_to(const float *found, const double *wanted, int64_t n, const char *what) {
    for (int64_t i = 0; i < n; i++)
        if (!(fabs((double)found[i] - wanted[i]) <= 2e-5 * (1 + fabs(wanted[i]))))
            fail_msg("%s[%lld] is %g, expected %g", what, (long long)i, (double)found[i],
                     wanted[i]);
}

static void check(world *w, bool drop, bool add) {
    static float again[N * H * STRIDE], lse[N * H];
    basin_walk walk = {.rows = w->rows,
                       .stride = STRIDE,
                       .heads = H,
                       .beta = w->beta,
                       .begin = w->begin,
                       .other = w->other,
                       .drop_self = drop,
                       .add_self = add,
                       .threads = 1,
                       .bias = w->biased ? w->bias : NULL,
                       .entry = w->biased ? w->entry : NULL};
    plain(w, true, drop, add);
    /* in two parts, the second beginning inside */
    basin_walk_by_query(w->sum, w->lse, w->own, &walk, 0, 40);
    basin_walk_by_query(w->sum + 40 * H * STRIDE, w->lse, w->own + 40 * H * STRIDE, &walk, 40,
                        N - 40);
    close_to(w->lse, w->want_lse, N * H, "lse");
    close_to(w->sum, w->want_sum, N * H * STRIDE, "sum of a query");
    walk.threads = 3;
    basin_walk_by_query(again, lse, w->own, &walk, 0, N);
    assert_memory_equal(again, w->sum, sizeof again);
    assert_memory_equal(lse, w->lse, sizeof lse);
    plain(w, false, drop, add);
    basin_walk_by_key(w->sum, w->own, w->lse, &walk, 0, N);
    close_to(w->sum, w->want_sum, N * H * STRIDE, "sum of a key");
    walk.threads = 1;
    basin_walk_by_key(again, w->own, w->lse, &walk, 0, N);
    assert_memory_equal(again, w->sum, sizeof again);
}

TEST(walks_as_plain_loops_do) {
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    world_new(w);
    check(w, false, false);
    check(w, true, false);
    check(w, true, true);
    w->biased = true;
    check(w, false, false);
    check(w, true, true);
    free(w);
}
