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
    basin_ranks_memory memory;
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

/* ---- adding ---- */

static void add(basin_ranks_tree *t, float *to, const float *from, int64_t count) {
    t->memory.add(t->memory.context, to, from, count);
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
        float *array = t->memory.alloc(t->memory.context, t->count);
        good = array != NULL;
        if (good) t->spare[t->spares++] = array;
    }
    if (good && basin_ranks_count(t->ranks) > 1) {
        int64_t room = nodes_of_all(t) * slice(t, basin_ranks_rank(t->ranks)).count;
        t->sum = t->memory.alloc(t->memory.context, t->count);
        t->received = t->memory.alloc(t->memory.context, room ? room : 1);
        good = t->sum && t->received;
    }
    return good ? BASIN_OK : basin_fail_memory(error, "gradients");
}

/* ---- the host's memory ---- */

static float *host_alloc(void *context, int64_t count) {
    (void)context;
    return basin_array_new((size_t)count, sizeof(float));
}

static void host_free(void *context, float *array) {
    (void)context;
    free(array);
}

static void host_add(void *context, float *to, const float *from, int64_t count) {
    (void)context;
    for (int64_t i = 0; i < count; i++) to[i] += from[i];
}

static basin_status host_exchange(void *context, const basin_ranks_part *send, int64_t sends,
                                  const basin_ranks_part *receive, int64_t receives,
                                  basin_error *error) {
    return basin_ranks_exchange(context, send, sends, receive, receives, error);
}

basin_status basin_ranks_tree_new(basin_ranks_tree **tree, basin_ranks *ranks, int64_t shards,
                                  int64_t count, const basin_ranks_memory *memory,
                                  basin_error *error) {
    *tree = NULL;
    if (shards < basin_ranks_count(ranks))
        return basin_fail(
            error, BASIN_BAD_VALUE,
            "shards is %lld, and there are %lld ranks; needs at least one shard per rank",
            (long long)shards, (long long)basin_ranks_count(ranks));
    basin_ranks_tree *t = calloc(1, sizeof *t);
    if (!t) return basin_fail_memory(error, "gradients");
    t->ranks = ranks;
    t->memory = memory
                    ? *memory
                    : (basin_ranks_memory){ranks, host_alloc, host_free, host_add, host_exchange};
    t->shards = shards;
    t->count = count;
    t->share = basin_ranks_deal(ranks, shards);
    BASIN_TRY_OR(reserve(t, error), basin_ranks_tree_free(t));
    *tree = t;
    return BASIN_OK;
}

void basin_ranks_tree_free(basin_ranks_tree *tree) {
    if (!tree) return;
    const basin_ranks_memory *m = &tree->memory;
    for (int i = 0; i < tree->spares; i++) m->free(m->context, tree->spare[i]);
    for (int i = 0; i < tree->stack.count; i++) m->free(m->context, tree->stack.node[i].value);
    if (tree->next) m->free(m->context, tree->next);
    if (tree->sum) m->free(m->context, tree->sum);
    if (tree->received) m->free(m->context, tree->received);
    free(tree);
}

float *basin_ranks_tree_next(basin_ranks_tree *tree) {
    if (!tree->next) tree->next = tree->spare[--tree->spares];
    return tree->next;
}

/* ---- messages ---- */

static basin_status exchange(const basin_ranks_tree *t, const basin_ranks_part *part, int64_t sends,
                             int64_t receives, basin_error *error) {
    return t->memory.exchange(t->memory.context, part, sends, part + sends, receives, error);
}

/* A slice of each of our nodes to its rank, and ours of theirs. */
static basin_status deal_nodes(basin_ranks_tree *t, basin_error *error) {
    const stack *ours = &t->stack;
    int64_t ranks = basin_ranks_count(t->ranks), self = basin_ranks_rank(t->ranks);
    int64_t nodes = nodes_of_all(t), sends = ranks * ours->count, at = 0;
    int64_t mine = slice(t, self).count;
    stack s;
    BASIN_SCRATCH_RAW(basin_ranks_part, part, sends + nodes, "a message", error);
    for (int64_t r = 0; r < ranks; r++) {
        basin_ranks_share to = slice(t, r);
        for (int i = 0; i < ours->count; i++)
            part[at++] = (basin_ranks_part){ours->node[i].value + to.first,
                                            (size_t)to.count * sizeof(float), r};
    }
    float *from = t->received;
    for (int64_t r = 0; r < ranks; r++)
        for (int i = outline(&s, share_of(t, r)); i > 0; i--, from += mine)
            part[at++] = (basin_ranks_part){from, (size_t)mine * sizeof(float), r};
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
    BASIN_SCRATCH_RAW(basin_ranks_part, part, 2 * ranks, "a message", error);
    size_t bytes = (size_t)slice(t, self).count * sizeof(float);
    for (int64_t r = 0; r < ranks; r++) {
        basin_ranks_share from = slice(t, r);
        part[r] = (basin_ranks_part){mine, bytes, r};
        part[ranks + r] =
            (basin_ranks_part){t->sum + from.first, (size_t)from.count * sizeof(float), r};
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
