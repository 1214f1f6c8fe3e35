/* Merges; see merges.h. Tokens of a word are a list with links both ways. A heap holds the pairs
 * that could be merged; one whose tokens have changed since is passed over when it comes up. */
#include "data/text/merges.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { FIRST_SLOTS = 64 };

void basin_merges_free(basin_merges *merges) {
    free(merges->merge);
    free(merges->slot);
    *merges = (basin_merges){0};
}

static size_t hash(int32_t left, int32_t right) {
    uint64_t h = basin_pair_number(left, right) * 0x9e3779b97f4a7c15u;
    return (size_t)(h ^ h >> 29);
}

/* The slot of a pair, or the free one where it belongs. */
static size_t seek(const basin_merges *m, int32_t left, int32_t right) {
    size_t at = hash(left, right) & (m->slots - 1);
    for (; m->slot[at] >= 0; at = (at + 1) & (m->slots - 1)) {
        const basin_token_merge *found = m->merge + m->slot[at];
        if (found->left == left && found->right == right) break;
    }
    return at;
}

static bool grow(basin_merges *m) {
    size_t slots = m->slots ? 2 * m->slots : FIRST_SLOTS;
    int32_t *slot = basin_array_new(slots, sizeof *slot);
    if (!slot) return false;
    memset(slot, 0xff, slots * sizeof *slot);
    free(m->slot);
    m->slot = slot;
    m->slots = slots;
    for (int64_t i = 0; i < m->count; i++)
        slot[seek(m, m->merge[i].left, m->merge[i].right)] = (int32_t)i;
    return true;
}

bool basin_merges_add(basin_merges *m, basin_token_merge merge) {
    size_t need = (size_t)m->count + 1;
    if (m->count == INT32_MAX || (2 * need > m->slots && !grow(m)) ||
        !basin_array_reserve((void **)&m->merge, &m->room, need, sizeof *m->merge))
        return false;
    m->slot[seek(m, merge.left, merge.right)] = (int32_t)m->count;
    m->merge[m->count++] = merge;
    return true;
}

int64_t basin_merges_find(const basin_merges *m, int32_t left, int32_t right) {
    return m->slots ? m->slot[seek(m, left, right)] : -1;
}

/* ---- a word ---- */

typedef struct basin_symbol {
    int32_t token;        /* -1: merged into the one before it */
    ptrdiff_t prev, next; /* -1: none */
} symbol;

void basin_merging_free(basin_merging *merging) {
    free(merging->symbol);
    free(merging->candidates.entry);
    *merging = (basin_merging){0};
}

/* Adds the pair that begins at symbol `at`, if it is one. */
static bool consider(basin_merging *w, const basin_merges *merges, ptrdiff_t at) {
    if (at < 0 || w->symbol[at].next < 0) return true;
    int32_t left = w->symbol[at].token, right = w->symbol[w->symbol[at].next].token;
    int64_t rank = basin_merges_find(merges, left, right);
    basin_queued pair = {rank, at, basin_pair_number(left, right)};
    return rank < 0 || basin_queue_push(&w->candidates, pair);
}

static bool merge_all(basin_merging *w, const basin_merges *merges) {
    while (w->candidates.count) {
        basin_queued c = basin_queue_pop(&w->candidates);
        symbol *left = w->symbol + c.second;
        if (left->token < 0 || left->next < 0) continue;
        symbol *right = w->symbol + left->next;
        if (basin_pair_number(left->token, right->token) != c.value) continue;
        left->token = merges->merge[c.first].token;
        left->next = right->next;
        right->token = -1;
        if (left->next >= 0) w->symbol[left->next].prev = c.second;
        if (!consider(w, merges, left->prev) || !consider(w, merges, c.second)) return false;
    }
    return true;
}

bool basin_merging_run(int32_t *token, size_t *count, const basin_merges *merges,
                       basin_merging *w) {
    size_t n = *count;
    bool ok = true;
    if (n < 2 || !merges->count) return true;
    if (!basin_array_reserve((void **)&w->symbol, &w->room, n, sizeof *w->symbol)) return false;
    w->candidates.count = 0;
    for (size_t i = 0; i < n; i++)
        w->symbol[i] = (symbol){token[i], (ptrdiff_t)i - 1, i + 1 < n ? (ptrdiff_t)i + 1 : -1};
    for (size_t i = 0; ok && i + 1 < n; i++) ok = consider(w, merges, (ptrdiff_t)i);
    if (!ok || !merge_all(w, merges)) return false;
    *count = 0;
    for (ptrdiff_t i = 0; i >= 0; i = w->symbol[i].next) token[(*count)++] = w->symbol[i].token;
    return true;
}
