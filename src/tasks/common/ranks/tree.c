/* Sums over shards in one order; see ranks.h.
 *
 * The node (level l, place i) is the sum of the shards i 2^l .. (i + 1) 2^l - 1: its left half plus
 * its right half. A rank adds up the nodes that lie wholly within its shards. Each rank then gets a
 * slice of the numbers of the remaining nodes, adds up the rest of the tree, and gives its slice to
 * all: every number travels twice, and the order of additions is the tree's, whoever makes them.
 */

#include "base/try.h"
#include "tasks/common/ranks/ranks.h"

enum { LEVELS = 64 };

typedef struct node {
    int level;
    int64_t place;
    float *value;
} node;

/* Nodes from left to right, none of which can be added to its neighbour yet. */
typedef struct stack {
    node node[2 * LEVELS];
    int count;
} stack;

struct basin_ranks_tree {
    basin_ranks *ranks;
    basin_backend *backend;
    const basin_collective *table; /* NULL: numbers are in the host's memory */
    basin_ranks_share share;
    int64_t shards, count, done; /* shards of this rank that were pushed */
    stack stack;
    float *spare[2 * LEVELS + 2]; /* arrays [count] that nobody uses */
    int spares;
    float *next;     /* [count], being written; NULL: none */
    float *sum;      /* [count] */
    float *received; /* [nodes of all ranks, this rank's slice] */
};

basin_ranks_share basin_ranks_deal_to(int64_t rank, int64_t count, int64_t items) {
    int64_t first = items * rank / count;
    return (basin_ranks_share){first, items * (rank + 1) / count - first};
}

basin_ranks_share basin_ranks_deal(const basin_ranks *ranks, int64_t items) {
    return basin_ranks_deal_to(basin_ranks_rank(ranks), basin_ranks_count(ranks), items);
}

/* ---- memory, adding ---- */

static float *alloc(const basin_ranks_tree *t, int64_t count) {
    return t->table ? t->table->alloc(t->backend, count)
                    : basin_array_new((size_t)count, sizeof(float));
}

static void release_array(const basin_ranks_tree *t, float *array) {
    if (array && t->table)
        t->table->free(t->backend, array);
    else
        free(array);
}

static void add(basin_ranks_tree *t, float *to, const float *from, int64_t count) {
    if (t->table)
        t->table->add(t->backend, to, from, count);
    else
        for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

static void release(basin_ranks_tree *t, float *value) { t->spare[t->spares++] = value; }

/* Whether two neighbours are the halves of a node. */
static bool are_halves(const node *left, const node *right) {
    return left->level == right->level && left->place + 1 == right->place && left->place % 2 == 0;
}

/* Puts a node to the right of the others, and adds halves of a node while there are two. Nodes that
 * are only outlined (`t` NULL) have nothing to add. */
static void put(stack *s, node n, int64_t count, basin_ranks_tree *t, bool own) {
    while (s->count && are_halves(&s->node[s->count - 1], &n)) {
        const node *left = &s->node[--s->count];
        if (t) add(t, left->value, n.value, count);
        if (t && own) release(t, n.value);
        n = (node){n.level + 1, left->place / 2, left->value};
    }
    s->node[s->count++] = n;
}

/* At the end of the shards a half may have no other half; then it stands for its node. */
static float *fold(basin_ranks_tree *t, stack *s, int64_t count) {
    while (s->count > 1) {
        s->count--;
        add(t, s->node[s->count - 1].value, s->node[s->count].value, count);
    }
    return s->node[0].value;
}

/* The nodes that a rank will have left. */
static int outline(stack *s, basin_ranks_share share) {
    s->count = 0;
    for (int64_t i = 0; i < share.count; i++)
        put(s, (node){0, share.first + i, NULL}, 0, NULL, false);
    return s->count;
}

/* ---- this rank's shards ---- */

/* Which numbers a rank adds up. */
static basin_ranks_share slice(const basin_ranks_tree *t, int64_t rank) {
    return basin_ranks_deal_to(rank, basin_ranks_count(t->ranks), t->count);
}

static basin_ranks_share share_of(const basin_ranks_tree *t, int64_t rank) {
    return basin_ranks_deal_to(rank, basin_ranks_count(t->ranks), t->shards);
}

static int64_t nodes_of_all(const basin_ranks_tree *t) {
    int64_t nodes = 0;
    stack s;
    for (int64_t r = 0; r < basin_ranks_count(t->ranks); r++) nodes += outline(&s, share_of(t, r));
    return nodes;
}

/* As many arrays as the stack will ever hold, and one to write into. */
static basin_status reserve(basin_ranks_tree *t, basin_error *error) {
    stack s = {.count = 0};
    int max = 0;
    for (int64_t i = 0; i < t->share.count; i++) {
        put(&s, (node){0, t->share.first + i, NULL}, 0, NULL, false);
        max = s.count > max ? s.count : max;
    }
    bool good = true;
    while (t->spares < max + 1 && good) {
        float *array = alloc(t, t->count);
        good = array != NULL;
        if (good) t->spare[t->spares++] = array;
    }
    if (good && basin_ranks_count(t->ranks) > 1) {
        int64_t room = nodes_of_all(t) * slice(t, basin_ranks_rank(t->ranks)).count;
        t->sum = alloc(t, t->count);
        t->received = alloc(t, room ? room : 1);
        good = t->sum && t->received;
    }
    return good ? BASIN_OK : basin_fail_memory(error, "gradients");
}

basin_status basin_ranks_tree_new(basin_ranks_tree **tree, basin_ranks *ranks, int64_t shards,
                                  int64_t count, basin_backend *backend,
                                  const basin_collective *table, basin_error *error) {
    *tree = NULL;
    if (shards < basin_ranks_count(ranks))
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "shards is %lld, and there are %lld ranks; needs at least one shard per rank",
            (long long)shards, (long long)basin_ranks_count(ranks));
    basin_ranks_tree *t = calloc(1, sizeof *t);
    if (!t) return basin_fail_memory(error, "gradients");
    t->ranks = ranks;
    t->backend = backend;
    t->table = table;
    t->shards = shards;
    t->count = count;
    t->share = basin_ranks_deal(ranks, shards);
    BASIN_TRY_OR(reserve(t, error), basin_ranks_tree_free(t));
    *tree = t;
    return BASIN_OK;
}

void basin_ranks_tree_free(basin_ranks_tree *tree) {
    if (!tree) return;
    for (int i = 0; i < tree->spares; i++) release_array(tree, tree->spare[i]);
    for (int i = 0; i < tree->stack.count; i++) release_array(tree, tree->stack.node[i].value);
    release_array(tree, tree->next);
    release_array(tree, tree->sum);
    release_array(tree, tree->received);
    free(tree);
}

float *basin_ranks_tree_next(basin_ranks_tree *tree) {
    if (!tree->next) tree->next = tree->spare[--tree->spares];
    return tree->next;
}

/* ---- messages ---- */

static basin_status exchange(const basin_ranks_tree *t, const basin_collective_part *part,
                             int64_t sends, int64_t receives, basin_error *error) {
    if (t->table) return t->table->exchange(t->backend, part, sends, part + sends, receives, error);
    BASIN_SCRATCH_RAW(basin_ranks_part, bytes, sends + receives, "a message", error);
    for (int64_t i = 0; i < sends + receives; i++)
        bytes[i] =
            (basin_ranks_part){part[i].data, (size_t)part[i].count * sizeof(float), part[i].rank};
    return basin_ranks_exchange(t->ranks, bytes, sends, bytes + sends, receives, error);
}

/* A slice of each of our nodes to its rank, and ours of theirs. */
static basin_status deal_nodes(basin_ranks_tree *t, basin_error *error) {
    const stack *ours = &t->stack;
    int64_t ranks = basin_ranks_count(t->ranks), self = basin_ranks_rank(t->ranks);
    int64_t nodes = nodes_of_all(t), sends = ranks * ours->count, at = 0;
    int64_t mine = slice(t, self).count;
    stack s;
    BASIN_SCRATCH_RAW(basin_collective_part, part, sends + nodes, "a message", error);
    for (int64_t r = 0; r < ranks; r++) {
        basin_ranks_share to = slice(t, r);
        for (int i = 0; i < ours->count; i++)
            part[at++] =
                (basin_collective_part){ours->node[i].value + to.first, to.count, (int32_t)r};
    }
    float *from = t->received;
    for (int64_t r = 0; r < ranks; r++)
        for (int i = outline(&s, share_of(t, r)); i > 0; i--, from += mine)
            part[at++] = (basin_collective_part){from, mine, (int32_t)r};
    return exchange(t, part, sends, nodes, error);
}

/* The sum of this rank's slice. */
static float *add_slices(basin_ranks_tree *t) {
    int64_t count = slice(t, basin_ranks_rank(t->ranks)).count;
    stack all = {.count = 0}, s;
    float *from = t->received;
    for (int64_t r = 0; r < basin_ranks_count(t->ranks); r++) {
        int nodes = outline(&s, share_of(t, r));
        for (int i = 0; i < nodes; i++, from += count)
            put(&all, (node){s.node[i].level, s.node[i].place, from}, count, t, false);
    }
    return fold(t, &all, count);
}

static basin_status gather_slices(basin_ranks_tree *t, float *mine, basin_error *error) {
    int64_t ranks = basin_ranks_count(t->ranks), self = basin_ranks_rank(t->ranks);
    BASIN_SCRATCH_RAW(basin_collective_part, part, 2 * ranks, "a message", error);
    int64_t count = slice(t, self).count;
    for (int64_t r = 0; r < ranks; r++) {
        basin_ranks_share from = slice(t, r);
        part[r] = (basin_collective_part){mine, count, (int32_t)r};
        part[ranks + r] = (basin_collective_part){t->sum + from.first, from.count, (int32_t)r};
    }
    return exchange(t, part, ranks, ranks, error);
}

void basin_ranks_tree_push(basin_ranks_tree *tree) {
    node leaf = {0, tree->share.first + tree->done++, tree->next};
    tree->next = NULL;
    put(&tree->stack, leaf, tree->count, tree, true);
}

/* ---- the sum ---- */

basin_status basin_ranks_tree_sum(float **sum, basin_ranks_tree *tree, basin_error *error) {
    basin_status status = BASIN_OK;
    if (tree->done != tree->share.count)
        return basin_fail(error, BASIN_BAD_VALUE, "%lld shards were pushed, needs %lld",
                          (long long)tree->done, (long long)tree->share.count);
    if (basin_ranks_count(tree->ranks) > 1) {
        status = deal_nodes(tree, error);
        if (!status) status = gather_slices(tree, add_slices(tree), error);
        *sum = tree->sum;
    } else {
        stack whole = tree->stack;
        *sum = fold(tree, &whole, tree->count);
    }
    for (int i = 0; i < tree->stack.count; i++) release(tree, tree->stack.node[i].value);
    tree->stack.count = 0;
    tree->done = 0;
    return status;
}
