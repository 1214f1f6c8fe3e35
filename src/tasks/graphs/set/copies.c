/* Which graphs of a set are the same: equal up to the order of their nodes, with all labels and
 * attributes. Nodes get colours, refined by those of their neighbours; graphs whose colours agree
 * are then matched node by node. See basin_graphset_copies. */
#include "base/hash.h"
#include "base/sort.h"
#include "base/try.h"
#include "tasks/graphs/set/graphset.h"

static const char copies[] = "copies of graphs";
enum { ROUNDS = 4, TRIALS = 100000 };

/* ---- colours ---- */

static int64_t nodes_of(const basin_graphset *s, int64_t g) {
    return s->node_start[g + 1] - s->node_start[g];
}

static uint64_t hash_row(uint64_t hash, const void *table, int64_t row, int64_t stride,
                         int64_t columns) {
    if (!table) return hash;
    return basin_hash_words(hash, (const char *)table + 4 * row * stride, 4 * (size_t)columns);
}

/* Walks along edges, which are made of the edges, are left out. */
static uint64_t hash_edge(const basin_graphset *s, int64_t e) {
    uint64_t hash = hash_row(BASIN_HASH_START, s->edge_label, e, s->edge_labels, s->edge_labels);
    return hash_row(hash, s->edge_attribute, e, s->edge_attributes,
                    s->edge_attributes - s->edge_walks);
}

/* Colours [2 nodes, the second half for work] of graph g. */
static void colour_nodes(uint64_t *colour, const basin_graphset *s, int64_t g) {
    int64_t first = s->node_start[g], n = nodes_of(s, g);
    uint64_t *next = colour + n;
    for (int64_t i = 0; i < n; i++) {
        colour[i] =
            hash_row(BASIN_HASH_START, s->node_label, first + i, s->node_labels, s->node_labels);
        colour[i] = hash_row(colour[i], s->node_attribute, first + i, s->node_attributes,
                             s->node_attributes);
    }
    for (int round = 0; round < ROUNDS; round++) {
        memset(next, 0, (size_t)n * sizeof *next);
        for (int64_t e = s->edge_start[g]; e < s->edge_start[g + 1]; e++)
            next[s->edge[2 * e]] += basin_hash_pair(colour[s->edge[2 * e + 1]], hash_edge(s, e));
        for (int64_t i = 0; i < n; i++) colour[i] = basin_hash_pair(colour[i], next[i]);
    }
}

static uint64_t print_of(uint64_t *colour, const basin_graphset *s, int64_t g) {
    int64_t n = nodes_of(s, g);
    uint64_t sum = (uint64_t)n;
    colour_nodes(colour, s, g);
    for (int64_t i = 0; i < n; i++) sum += basin_hash_pair(colour[i], 1);
    return sum;
}

basin_status basin_graphset_prints(int64_t *print, const basin_graphset *set, const int64_t *graph,
                                   int64_t count, basin_error *error) {
    int64_t max = 1;
    for (int64_t i = 0; i < count; i++)
        max = basin_int_max(max, nodes_of(set, graph ? graph[i] : i));
    BASIN_SCRATCH_RAW(uint64_t, colour, 2 * max, copies, error);
    for (int64_t i = 0; i < count; i++) {
        uint64_t own = print_of(colour, set, graph ? graph[i] : i);
        memcpy(&print[i], &own, sizeof own);
    }
    return BASIN_OK;
}

/* ---- two graphs, node by node ---- */

typedef struct matching {
    const basin_graphset *s;
    int64_t a, b, n;          /* two graphs of n nodes */
    const uint64_t *own, *of; /* [n] their colours */
    int32_t *order;           /* [n] nodes of a, each but the first of a part after a neighbour */
    int32_t *map, *back;      /* [n] from a to b and back; -1: not yet */
    int32_t *next;            /* [n + 1] of `order`: the first node of b to try */
} matching;

/* The edges from a node on: the first that does not begin below it. */
static int64_t edges_from(const basin_graphset *s, int64_t g, int64_t node) {
    int64_t low = s->edge_start[g], high = s->edge_start[g + 1];
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (s->edge[2 * middle] < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_there(const matching *m, int64_t e, int32_t from, int32_t to) {
    const basin_graphset *s = m->s;
    const int32_t ends[2] = {from, to}, *first = s->edge + 2 * s->edge_start[m->b];
    size_t edges = (size_t)(s->edge_start[m->b + 1] - s->edge_start[m->b]);
    const int32_t *found = bsearch(ends, first, edges, sizeof ends, basin_compare_ends);
    return found && hash_edge(s, (found - s->edge) / 2) == hash_edge(s, e);
}

/* Whether node v of a can be node w of b, for all edges to nodes that are matched. */
static bool fits(const matching *m, int32_t v, int32_t w) {
    const basin_graphset *s = m->s;
    if (m->back[w] >= 0 || m->own[v] != m->of[w]) return false;
    for (int64_t e = edges_from(s, m->a, v); e < s->edge_start[m->a + 1] && s->edge[2 * e] == v;
         e++) {
        int32_t to = m->map[s->edge[2 * e + 1]];
        if (to >= 0 && !is_there(m, e, w, to)) return false;
    }
    return true;
}

static bool all_edges(const matching *m) { /* of which some may go one way */
    const basin_graphset *s = m->s;
    for (int64_t e = s->edge_start[m->a]; e < s->edge_start[m->a + 1]; e++)
        if (!is_there(m, e, m->map[s->edge[2 * e]], m->map[s->edge[2 * e + 1]])) return false;
    return true;
}

static void order_nodes(matching *m) {
    const basin_graphset *s = m->s;
    int64_t count = 0, done = 0;
    for (int32_t i = 0; i < m->n; i++) m->back[i] = 0;
    for (int32_t i = 0; i < m->n; i++) {
        if (!m->back[i]) m->back[m->order[count++] = i] = 1;
        for (; done < count; done++) {
            int32_t v = m->order[done];
            for (int64_t e = edges_from(s, m->a, v);
                 e < s->edge_start[m->a + 1] && s->edge[2 * e] == v; e++) {
                int32_t to = s->edge[2 * e + 1];
                if (!m->back[to]) m->back[m->order[count++] = to] = 1;
            }
        }
    }
    for (int32_t i = 0; i < m->n; i++) m->map[i] = m->back[i] = -1;
}

/* Where the search takes too long, they count as equal: to keep them together costs little. */
static bool match(matching *m) {
    int64_t trials = TRIALS + 2 * m->n, depth = 0;
    order_nodes(m);
    m->next[0] = 0;
    while (depth >= 0 && trials-- > 0) {
        if (depth == m->n && all_edges(m)) return true;
        if (depth == m->n && --depth < 0) return false;
        int32_t v = m->order[depth], w = m->next[depth];
        if (m->map[v] >= 0) m->back[m->map[v]] = -1, m->map[v] = -1;
        while (w < m->n && !fits(m, v, w)) w++;
        if (w == m->n) {
            depth--;
            continue;
        }
        m->map[v] = w, m->back[w] = v;
        m->next[depth++] = w + 1;
        m->next[depth] = 0;
    }
    return depth >= 0;
}

static basin_status compare(bool *same, const basin_graphset *s, int64_t a, int64_t b,
                            basin_error *error) {
    int64_t n = nodes_of(s, a);
    *same = n == nodes_of(s, b) &&
            s->edge_start[a + 1] - s->edge_start[a] == s->edge_start[b + 1] - s->edge_start[b];
    if (!*same || !n) return BASIN_OK;
    BASIN_SCRATCH_RAW(uint64_t, colour, 4 * n, copies, error);
    BASIN_SCRATCH_RAW(int32_t, whole, 4 * n + 1, copies, error);
    colour_nodes(colour, s, a);
    colour_nodes(colour + 2 * n, s, b);
    matching m = {
        s, a, b, n, colour, colour + 2 * n, whole, whole + n, whole + 2 * n, whole + 3 * n};
    *same = match(&m);
    return BASIN_OK;
}

/* ---- a set ---- */

typedef struct printed {
    int64_t print, at;
} printed;

static int by_print(const void *a, const void *b) {
    const printed *x = a, *y = b;
    return x->print != y->print ? BASIN_COMPARE(x->print, y->print) : BASIN_COMPARE(x->at, y->at);
}

basin_status basin_graphset_copies(int64_t *first, const basin_graphset *set, basin_error *error) {
    int64_t n = set->graphs;
    BASIN_SCRATCH_RAW(printed, all, n, copies, error);
    BASIN_TRY(basin_graphset_prints(first, set, NULL, n, error));
    for (int64_t g = 0; g < n; g++) all[g] = (printed){first[g], g};
    qsort(all, (size_t)n, sizeof *all, by_print);
    for (int64_t i = 0, begin = 0; i < n; i++) { /* with graphs of the same colours before it */
        bool same = false;
        if (all[i].print != all[begin].print) begin = i;
        int64_t own = all[i].at;
        first[own] = own;
        for (int64_t k = begin; k < i && !same; k++) {
            if (first[all[k].at] != all[k].at) continue;
            BASIN_TRY(compare(&same, set, all[k].at, own, error));
            if (same) first[own] = all[k].at;
        }
    }
    return BASIN_OK;
}

/* ---- one graph in place of several ---- */

/* What is to be learnt of the copies of graph g, for column c: the mean of values, of classes and
 * of yes or no what more of them are; NaN where as many are something else. */
static double mean_of(const basin_graphset *s, const int64_t *next, int64_t g, int64_t c) {
    double sum = 0, known = 0, mean;
    for (int64_t i = g; i >= 0; i = next[i]) {
        double y = (double)s->target[i * s->targets + c];
        if (!isnan(y)) sum += y, known++;
    }
    mean = sum / known;
    return !s->binary || isnan(mean) ? mean : mean > 0.5 ? 1 : mean < 0.5 ? 0 : NAN;
}

static int32_t commonest(const basin_graphset *s, const int64_t *next, int64_t g) {
    int32_t best = -1;
    int64_t max = 0;
    for (int32_t c = 0; c < s->classes; c++) {
        int64_t count = 0;
        for (int64_t i = g; i >= 0; i = next[i]) count += s->class_of[i] == c;
        if (count == max) best = -1;
        if (count > max) max = count, best = c;
    }
    return best;
}

static void move_rows(void *table, int64_t to, int64_t from, int64_t count, int64_t bytes) {
    if (table && count)
        memmove((char *)table + to * bytes, (char *)table + from * bytes, (size_t)(count * bytes));
}

static void move_graph(basin_graphset *s, int64_t to, int64_t from) {
    int64_t n = s->node_start[to], nodes = nodes_of(s, from), first = s->node_start[from];
    int64_t e = s->edge_start[to], edges = s->edge_start[from + 1] - s->edge_start[from];
    int64_t begin = s->edge_start[from];
    move_rows(s->node_label, n, first, nodes, 4 * s->node_labels);
    move_rows(s->edge, e, begin, edges, 8);
    move_rows(s->edge_label, e, begin, edges, 4 * s->edge_labels);
    move_rows(s->limit, to, from, 1, 8 * s->targets);
    move_rows(s->line, to, from, 1, 8);
    move_rows(s->scaffold, to, from, 1, 8);
    s->node_start[to + 1] = n + nodes, s->edge_start[to + 1] = e + edges;
    if (!s->id) return;
    int64_t length = s->id_start[from + 1] - s->id_start[from];
    memmove(s->id + s->id_start[to], s->id + s->id_start[from], (size_t)length);
    s->id_start[to + 1] = s->id_start[to] + length;
}

basin_status basin_graphset_merge(int64_t *undecided, basin_graphset *s, const int64_t *copy,
                                  basin_error *error) {
    int64_t kept = 0;
    BASIN_SCRATCH_RAW(int64_t, next, 2 * s->graphs, copies, error); /* copies of each; the last */
    int64_t *last = next + s->graphs;
    for (int64_t g = 0; g < s->graphs; g++) {
        next[g] = -1, last[g] = g;
        if (copy[g] != g) next[last[copy[g]]] = g, last[copy[g]] = g;
    }
    *undecided = 0;
    for (int64_t g = 0; g < s->graphs; g++) {
        if (copy[g] != g) continue;
        int32_t class_of = s->class_of ? commonest(s, next, g) : 0;
        *undecided += class_of < 0;
        for (int64_t c = 0; c < s->targets; c++)
            s->target[kept * s->targets + c] = (float)mean_of(s, next, g, c);
        if (s->class_of) s->class_of[kept] = class_of;
        move_graph(s, kept++, g);
    }
    s->graphs = kept, s->nodes = s->node_start[kept], s->edges = s->edge_start[kept];
    if (s->id) s->id_bytes = s->id_start[kept];
    return BASIN_OK;
}
