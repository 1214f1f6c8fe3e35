/* Growing one tree, the leaf of greatest gain first. */
#include "train/trees/grow.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/team/processors.h"
#include "base/team/team.h"
#include "basin/random.h"

typedef struct split {
    double gain;
    int64_t feature; /* -1: none */
    int64_t bin;     /* rows with code <= bin go left */
} split;

typedef struct basin_leaf {
    int64_t begin, end; /* rows of the grower */
    int64_t depth;
    int64_t node; /* of the tree */
    basin_gradient total;
    basin_gradient *sums; /* by bin */
    split best;
} leaf;

static int64_t bins_of(const basin_binned *binned) { return binned->start[binned->features]; }

basin_status basin_grower_new(basin_grower *grower, const basin_binned *binned,
                              const basin_trees_spec *spec, basin_error *error) {
    size_t trains = (size_t)binned->trains, leaves = (size_t)spec->leaves, cells = 0;
    bool fits = basin_size_multiply(&cells, leaves, (size_t)bins_of(binned));
    *grower = (basin_grower){.binned = binned, .spec = spec};
    grower->row = basin_array_new(trains, sizeof *grower->row);
    grower->aside = basin_array_new(trains, sizeof *grower->aside);
    grower->seen = basin_array_new((size_t)binned->features, sizeof *grower->seen);
    grower->sums = fits ? basin_array_new(cells, sizeof *grower->sums) : NULL;
    grower->leaf = basin_array_new(leaves, sizeof *grower->leaf);
    if (grower->row && grower->aside && grower->seen && grower->sums && grower->leaf)
        return BASIN_OK;
    basin_grower_free(grower);
    return basin_fail(error, BASIN_NO_MEMORY, "boosted trees: sums over %lld bins in %zu leaves",
                      (long long)bins_of(binned), leaves);
}

void basin_grower_free(basin_grower *grower) {
    free(grower->row);
    free(grower->aside);
    free(grower->seen);
    free(grower->sums);
    free(grower->leaf);
    *grower = (basin_grower){0};
}

/* ---- sums and splits ---- */

static void sum_feature(basin_gradient *sums, const uint8_t *code, const int32_t *row,
                        const basin_gradient *gradient, int64_t rows) {
    for (int64_t i = 0; i < rows; i++) {
        basin_gradient *cell = &sums[code[row[i]]];
        cell->slope += gradient[row[i]].slope;
        cell->curve += gradient[row[i]].curve;
    }
}

static double worth(basin_gradient g, double l2) { return g.slope * g.slope / (g.curve + l2); }

/* The best cut of one feature, better than `best`. */
static void scan_feature(split *best, const basin_grower *grower, const leaf *l, int64_t f) {
    const basin_trees_spec *spec = grower->spec;
    const int64_t *start = grower->binned->start + f;
    basin_gradient left = {0, 0};
    double whole = worth(l->total, spec->l2);
    for (int64_t b = start[0]; b + 1 < start[1]; b++) {
        left.slope += l->sums[b].slope;
        left.curve += l->sums[b].curve;
        basin_gradient right = {l->total.slope - left.slope, l->total.curve - left.curve};
        if (left.curve < spec->least_hessian || right.curve < spec->least_hessian) continue;
        double gain = worth(left, spec->l2) + worth(right, spec->l2) - whole;
        if (gain > best->gain) *best = (split){gain, f, b - start[0]};
    }
}

static const split NO_SPLIT = {1e-9, -1, 0};

/* Ties go to the lower feature, whichever thread found it. */
static bool better(split a, split b) {
    return a.gain > b.gain || (a.gain == b.gain && a.feature >= 0 && a.feature < b.feature);
}

typedef struct looking {
    const basin_grower *grower;
    const leaf *at;
    const basin_gradient *gradient;
    const leaf *sibling; /* NULL: from the rows */
    split *best;
    pthread_mutex_t *lock; /* of best */
} looking;

static void sum_bins(const looking *look, int64_t f) {
    const basin_binned *binned = look->grower->binned;
    const leaf *l = look->at;
    int64_t from = binned->start[f], to = binned->start[f + 1];
    if (look->sibling) {
        for (int64_t b = from; b < to; b++) {
            l->sums[b].slope -= look->sibling->sums[b].slope;
            l->sums[b].curve -= look->sibling->sums[b].curve;
        }
        return;
    }
    memset(l->sums + from, 0, (size_t)(to - from) * sizeof *l->sums);
    sum_feature(l->sums + from, binned->code + f * binned->rows, look->grower->row + l->begin,
                look->gradient, l->end - l->begin);
}

static void look_at_features(const void *context, int64_t first, int64_t last, int place) {
    const looking *look = context;
    const basin_grower *grower = look->grower;
    split mine = NO_SPLIT; /* `best` may be another thread's already */
    (void)place;
    for (int64_t f = first; f < last; f++) {
        if (!grower->seen[f]) continue;
        sum_bins(look, f);
        if (look->at->depth < grower->spec->depth) scan_feature(&mine, grower, look->at, f);
    }
    pthread_mutex_lock(look->lock);
    if (better(mine, *look->best)) *look->best = mine;
    pthread_mutex_unlock(look->lock);
}

/* Sums of a leaf by bin, from its rows or as the difference of its parent's and its sibling's; and
 * its best split. */
static void look_at(basin_grower *grower, leaf *l, const basin_gradient *gradient,
                    const leaf *sibling) {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    looking look = {grower, l, gradient, sibling, &l->best, &lock};
    int64_t features = grower->binned->features;
    int64_t steps = BASIN_TREE_BINS + (sibling ? 0 : l->end - l->begin);
    l->best = NO_SPLIT;
    basin_team_run(look_at_features, &look, features, 0,
                   basin_team_size(basin_processors(), 4 * features * steps));
}

/* ---- the tree ---- */

static basin_status add_nodes(basin_trees *trees, int count, basin_error *error) {
    size_t have = (size_t)trees->root[trees->trees + 1], need = have + (size_t)count;
    if (!basin_array_reserve((void **)&trees->node, &trees->node_capacity, need,
                             sizeof *trees->node))
        return basin_fail(error, BASIN_NO_MEMORY, "boosted trees: %zu nodes", need);
    for (size_t i = have; i < need; i++) trees->node[i] = (basin_tree_node){.feature = -1};
    trees->root[trees->trees + 1] += count;
    return BASIN_OK;
}

/* Rows that go left come first, both parts in the order they had. Returns where the right begin. */
static int64_t part_rows(basin_grower *grower, const leaf *l) {
    const uint8_t *code = grower->binned->code + l->best.feature * grower->binned->rows;
    int64_t left = l->begin, right = 0;
    for (int64_t i = l->begin; i < l->end; i++) {
        int32_t row = grower->row[i];
        if (code[row] <= l->best.bin)
            grower->row[left++] = row;
        else
            grower->aside[right++] = row;
    }
    memcpy(grower->row + left, grower->aside, (size_t)right * sizeof *grower->row);
    return left;
}

static basin_gradient total_of(const basin_grower *grower, const basin_gradient *gradient,
                               int64_t begin, int64_t end) {
    basin_gradient total = {0, 0};
    for (int64_t i = begin; i < end; i++) {
        total.slope += gradient[grower->row[i]].slope;
        total.curve += gradient[grower->row[i]].curve;
    }
    return total;
}

/* Leaf `at` becomes two: itself and leaf number `leaves`. */
static basin_status split_leaf(basin_grower *grower, basin_trees *trees, int64_t at, int64_t leaves,
                               const basin_gradient *gradient, basin_error *error) {
    leaf *a = &grower->leaf[at], *b = &grower->leaf[leaves];
    int64_t root = trees->root[trees->trees], child = trees->root[trees->trees + 1] - root;
    basin_status status = add_nodes(trees, 2, error);
    if (status) return status;
    int64_t middle = part_rows(grower, a), cut = grower->binned->start[a->best.feature];
    basin_tree_node *node = &trees->node[root + a->node];
    node->feature = (int32_t)a->best.feature;
    node->child = (int32_t)child;
    node->threshold = grower->binned->cut[cut + a->best.bin];
    /* The smaller part is summed anew, into the new table; the larger is what is left. */
    bool small_left = middle - a->begin < a->end - middle;
    leaf left = {a->begin, middle, a->depth + 1, child, {0, 0}, NULL, {0, -1, 0}};
    leaf right = {middle, a->end, a->depth + 1, child + 1, {0, 0}, NULL, {0, -1, 0}};
    left.sums = small_left ? b->sums : a->sums;
    right.sums = small_left ? a->sums : b->sums;
    left.total = total_of(grower, gradient, left.begin, left.end);
    right.total = total_of(grower, gradient, right.begin, right.end);
    leaf *small = small_left ? &left : &right, *large = small_left ? &right : &left;
    look_at(grower, small, gradient, NULL);
    look_at(grower, large, gradient, small);
    *a = left;
    *b = right;
    return BASIN_OK;
}

/* The rows and columns that this tree sees. Returns how many rows. */
static int64_t draw_sample(basin_grower *grower, int64_t draw) {
    const basin_trees_spec *spec = grower->spec;
    int64_t rows = 0;
    for (int64_t r = 0; r < grower->binned->trains; r++)
        if (spec->rows >= 1 ||
            basin_random_uniform_at(spec->seed, (uint64_t)draw * 2, (uint64_t)r) < spec->rows)
            grower->row[rows++] = (int32_t)r;
    for (int64_t f = 0; f < grower->binned->features; f++) {
        bool chosen = spec->columns >= 1 ||
                      basin_random_uniform_at(spec->seed, (uint64_t)draw * 2 + 1, (uint64_t)f) <
                          spec->columns;
        grower->seen[f] = chosen && grower->binned->start[f + 1] - grower->binned->start[f] > 1;
    }
    return rows;
}

static void set_values(const basin_grower *grower, basin_trees *trees, int64_t leaves) {
    int64_t root = trees->root[trees->trees];
    for (int64_t i = 0; i < leaves; i++) {
        const leaf *l = &grower->leaf[i];
        trees->node[root + l->node].value =
            (float)(-grower->spec->rate * l->total.slope / (l->total.curve + grower->spec->l2));
    }
}

basin_status basin_grower_grow(basin_grower *grower, basin_trees *trees,
                               const basin_gradient *gradient, int64_t draw, basin_error *error) {
    int64_t bins = bins_of(grower->binned), leaves = 1;
    if (!basin_array_reserve((void **)&trees->root, &trees->root_capacity, (size_t)trees->trees + 2,
                             sizeof *trees->root))
        return basin_fail(error, BASIN_NO_MEMORY, "boosted trees: %lld trees",
                          (long long)trees->trees);
    trees->root[trees->trees + 1] = trees->root[trees->trees];
    basin_status status = add_nodes(trees, 1, error);
    if (status) return status;
    for (int64_t i = 0; i < grower->spec->leaves; i++)
        grower->leaf[i] = (leaf){.sums = grower->sums + i * bins};
    leaf *first = &grower->leaf[0];
    first->end = draw_sample(grower, draw);
    first->total = total_of(grower, gradient, 0, first->end);
    look_at(grower, first, gradient, NULL);
    while (leaves < grower->spec->leaves && !status) {
        int64_t at = 0;
        for (int64_t i = 1; i < leaves; i++)
            if (better(grower->leaf[i].best, grower->leaf[at].best)) at = i;
        if (grower->leaf[at].best.feature < 0) break;
        status = split_leaf(grower, trees, at, leaves, gradient, error);
        leaves++;
    }
    if (status) return status;
    set_values(grower, trees, leaves);
    trees->trees++;
    return BASIN_OK;
}

typedef struct scoring {
    double *score;
    int64_t stride;
    const basin_binned *binned;
    const basin_tree_node *tree;
} scoring;

static void score_rows(const void *context, int64_t first, int64_t last, int place) {
    const scoring *s = context;
    const basin_binned *binned = s->binned;
    const basin_tree_node *tree = s->tree;
    (void)place;
    for (int64_t r = first; r < last; r++) {
        const basin_tree_node *n = tree;
        while (n->feature >= 0) {
            const float *cut = binned->cut + binned->start[n->feature];
            bool left = binned->code[n->feature * binned->rows + r] == 0 ||
                        cut[binned->code[n->feature * binned->rows + r] - 1] < n->threshold;
            n = tree + n->child + !left;
        }
        s->score[r * s->stride] += n->value;
    }
}

void basin_grower_apply(const basin_grower *grower, const basin_trees *trees, double *score,
                        int64_t stride) {
    const basin_tree_node *tree = trees->node + trees->root[trees->trees - 1];
    scoring s = {score, stride, grower->binned, tree};
    int64_t rows = grower->binned->rows, work = rows * grower->spec->depth;
    basin_team_run(score_rows, &s, rows, 0, basin_team_size(basin_processors(), work));
}
