/* Graphs laid side by side as one list of tokens and one block-diagonal list of pairs, without
 * padding, as basin_graph_net_batch takes them. */
#include "base/hash.h"
#include "base/try.h"
#include "basin/random.h"
#include "tasks/graphs/set/graphset.h"

enum { STREAM_SIGNS = 41, STREAM_EDGES = 42 };

/* The CLS with itself, with every node both ways, and the edges. */
int64_t basin_graphset_pairs(const basin_graphset *set, int64_t graph) {
    int64_t nodes = basin_graphset_nodes(set, graph);
    int64_t edges = set->edge_start[graph + 1] - set->edge_start[graph];
    if (nodes < set->node_start[graph + 1] - set->node_start[graph]) {
        edges = 0;
        for (int64_t e = set->edge_start[graph]; e < set->edge_start[graph + 1]; e++)
            edges += basin_graphset_inside(set, e, nodes);
    }
    return 2 * nodes + 1 + edges;
}

/* The arrays of a batch, of graphs, tokens or pairs; the last three have rows of several numbers,
 * all of 4 bytes. */
enum { GRAPHS, TOKENS, PAIRS, KINDS, ARRAYS = 15, WIDE = 3 };
#define AT(field) offsetof(basin_graphset_batch, field)
static const struct {
    size_t at;
    int kind;
} arrays[ARRAYS] = {
    {AT(share), GRAPHS},      {AT(first), GRAPHS},        {AT(source), TOKENS},
    {AT(before), TOKENS},     {AT(after), TOKENS},        {AT(owner), TOKENS},
    {AT(pairs.row), TOKENS},  {AT(pairs.column), TOKENS}, {AT(pairs.key), PAIRS},
    {AT(pairs.query), PAIRS}, {AT(pairs.pair), PAIRS},    {AT(strength), PAIRS},
    {AT(feature), TOKENS},    {AT(position), TOKENS},     {AT(edge_feature), PAIRS}};

static void **array_at(basin_graphset_batch *b, int i) {
    return (void **)((char *)b + arrays[i].at);
}

void basin_graphset_batch_free(basin_graphset_batch *b) {
    for (int i = 0; i < ARRAYS; i++) free(*array_at(b, i));
    *b = (basin_graphset_batch){0};
}

/* Makes room; the old content is lost. Grows by a quarter more than asked, so that this is rare. */
static bool make_room(basin_graphset_batch *b, const int64_t need[KINDS], int64_t features,
                      int64_t edge_features, int64_t positions) {
    const int64_t width[WIDE] = {features, positions, edge_features};
    bool wider = features > b->features || edge_features > b->edge_features || positions > b->width;
    bool grows[KINDS], fine = true;
    b->features = features, b->edge_features = edge_features, b->width = positions;
    for (int kind = 0; kind < KINDS; kind++) {
        grows[kind] = need[kind] > b->capacity[kind] || (wider && kind != GRAPHS);
        if (grows[kind]) b->capacity[kind] = need[kind] + need[kind] / 4;
    }
    for (int i = 0; i < ARRAYS; i++) {
        if (!grows[arrays[i].kind]) continue;
        int64_t row = i < ARRAYS - WIDE ? 1 : width[i - ARRAYS + WIDE];
        void **array = array_at(b, i);
        free(*array);
        *array = basin_array_new((size_t)b->capacity[arrays[i].kind] + 1, 4 * (size_t)row);
        fine = fine && *array;
    }
    if (!fine) memset(b->capacity, 0, sizeof b->capacity);
    return fine;
}

/* Adds `weight` where a label of the row is one-hot; a raw one is added as the number it is.
 * `label` [rows, count] is NULL where there are no columns. */
static float *add_labels(float *to, const basin_label_column *column, const int32_t *label,
                         int64_t row, int64_t count, bool raw, float weight) {
    for (int64_t c = 0; c < count; c++) {
        int32_t own = label[row * count + c];
        int64_t at = (int64_t)own - column[c].first;
        if (raw)
            *to++ += weight * (float)own;
        else {
            if (at >= 0 && at < column[c].count) to[at] += weight;
            to += column[c].count;
        }
    }
    return to;
}

static void add_edge(float *to, const basin_graphset_encoding *e, const basin_graphset *set,
                     int64_t edge, float weight) {
    const float *mean = e->mean + e->attributes, *scale = e->scale + e->attributes;
    if (!e->edge_attributes && !e->edge_labels) *to += weight;
    for (int64_t c = 0; c < e->edge_attributes; c++) {
        float value = set->edge_attribute[edge * e->edge_attributes + c];
        *to++ += weight * (value - mean[c]) * scale[c];
    }
    add_labels(to, e->edge_label, set->edge_label, edge, e->edge_labels, e->raw, weight);
}

static void put_node(float *to, const basin_graphset_encoding *e, const basin_graphset *set,
                     int64_t node, int64_t degree) {
    memset(to, 0, (size_t)e->features * sizeof *to);
    if (!e->attributes && !e->labels && !e->degrees && !e->edge_sums) *to = 1;
    for (int64_t c = 0; c < e->attributes; c++)
        *to++ = (set->node_attribute[node * e->attributes + c] - e->mean[c]) * e->scale[c];
    to = add_labels(to, e->label, set->node_label, node, e->labels, e->raw, 1);
    if (e->degrees) to[degree < e->degrees ? degree : e->degrees - 1] = 1;
}

/* The features [nodes that a model sees, F] of a graph. */
static void put_features(float *to, const basin_graphset *set, const basin_graphset_encoding *e,
                         int64_t g) {
    int64_t n = basin_graphset_nodes(set, g), edge = set->edge_start[g];
    for (int64_t i = 0; i < n; i++, to += e->features) {
        int64_t from = edge, degree = 0;
        while (edge < set->edge_start[g + 1] && set->edge[2 * edge] == i) edge++;
        for (int64_t k = from; k < edge; k++) degree += basin_graphset_inside(set, k, n);
        put_node(to, e, set, set->node_start[g] + i, degree);
        for (int64_t k = from; e->edge_sums && k < edge; k++)
            if (basin_graphset_inside(set, k, n))
                add_edge(to + e->features - e->edge_features, e, set, k, 0.25f);
    }
}

typedef struct place {
    int64_t graph, node, token, pair; /* where in the batch the graph begins */
} place;

static void put_nodes(basin_graphset_batch *b, const basin_graphset *set,
                      const basin_graphset_encoding *e, int64_t g, place at) {
    int64_t n = basin_graphset_nodes(set, g);
    b->first[at.graph] = (int32_t)at.token;
    b->share[at.graph] = n ? 1 / (float)n : 0;
    for (int64_t t = 0; t <= n; t++) {
        int32_t token = (int32_t)(at.token + t);
        b->source[token] = t ? (int32_t)(at.node + t - 1) : -1;
        b->owner[token] = t ? (int32_t)at.graph : -1;
        b->before[token] = t ? token - 1 : -1;
        b->after[token] = t < n ? token + 1 : -1;
    }
    put_features(b->feature + at.node * e->features, set, e, g);
}

/* A pair with ones for features. */
static int64_t put_plain(basin_graphset_batch *b, int64_t pair, int64_t key) {
    b->pairs.key[pair] = (int32_t)key;
    for (int64_t c = 0; c < b->edge_features; c++) b->edge_feature[pair * b->edge_features + c] = 1;
    return pair + 1;
}

/* What chooses among the pairs of a batch; NULL: nothing. */
typedef struct draws {
    uint64_t seed, epoch;
} draws;

/* Whether a pair is left out; it goes both ways or not at all, whatever else is in the batch. */
static bool drops(const draws *by, const basin_graphset *set, int64_t g, int64_t edge) {
    if (!by || !(set->edge_dropout > 0)) return false;
    int32_t a = set->edge[2 * edge], b = set->edge[2 * edge + 1];
    const int64_t pair[3] = {g, a < b ? a : b, a < b ? b : a};
    uint64_t at = basin_hash_words(BASIN_HASH_START, pair, sizeof pair);
    float draw = basin_random_uniform_at(by->seed, STREAM_EDGES + (by->epoch << 8), at);
    return (double)draw < set->edge_dropout;
}

/* Rows of the pair list in order: the CLS with all (or with all others), then each node with the
 * CLS and its edges. The pairs of the CLS have ones for features, as published. */
static int64_t put_pairs(basin_graphset_batch *b, const basin_graphset *set,
                         const basin_graphset_encoding *e, int64_t g, place at, const draws *drop) {
    int64_t n = basin_graphset_nodes(set, g);
    int64_t P = e->edge_features, edge = set->edge_start[g], pair = at.pair;
    for (int64_t t = 0; t <= n; t++) {
        b->pairs.row[at.token + t] = (int32_t)pair;
        for (int64_t k = !t && e->no_cls_self; k < (t ? 1 : n + 1); k++)
            pair = put_plain(b, pair, at.token + k);
        for (; t && edge < set->edge_start[g + 1] && set->edge[2 * edge] == t - 1; edge++) {
            if (!basin_graphset_inside(set, edge, n) || drops(drop, set, g, edge)) continue;
            b->pairs.key[pair] = (int32_t)(at.token + 1 + set->edge[2 * edge + 1]);
            float *to = b->edge_feature + pair++ * P;
            memset(to, 0, (size_t)P * sizeof *to);
            add_edge(to, e, set, edge, 1);
        }
    }
    return pair;
}

static void put_positions(basin_graphset_batch *b, const basin_positions *p,
                          const basin_graphset *set, int64_t g, place at, bool flip, uint64_t seed,
                          uint64_t epoch) {
    int64_t rows = basin_graphset_tokens(set, g), k = p->options.vectors;
    if (!p->width) return;
    const float *from = p->value + p->start[g - p->first] * p->width;
    float *to = b->position + at.token * p->width;
    memcpy(to, from, (size_t)(rows * p->width) * sizeof *to);
    if (!flip) return;
    basin_random random = basin_random_start(seed, STREAM_SIGNS + (epoch << 8), (uint64_t)g * 64);
    for (int64_t c = 0, bits = 0; c < k; c++, bits >>= 1) {
        if (c % 32 == 0) bits = (int64_t)basin_random_next(&random);
        for (int64_t t = 0; (bits & 1) && t < rows; t++) to[t * p->width + c] *= -1;
    }
}

/* The same pairs by key, ascending by query within one. */
static void sort_by_key(basin_pairs *p) {
    memset(p->column, 0, (size_t)(p->keys + 1) * sizeof *p->column);
    for (int64_t i = 0; i < p->pairs; i++) p->column[p->key[i] + 1]++;
    for (int64_t k = 0; k < p->keys; k++) p->column[k + 1] += p->column[k];
    for (int64_t q = 0; q < p->queries; q++)
        for (int64_t i = p->row[q]; i < p->row[q + 1]; i++) {
            int32_t to = p->column[p->key[i]]++;
            p->query[to] = (int32_t)q;
            p->pair[to] = (int32_t)i;
        }
    for (int64_t k = p->keys; k > 0; k--) p->column[k] = p->column[k - 1];
    p->column[0] = 0;
}

/* How much a pair counts in the energy of couplings: 1 / sqrt(n m), where its tokens have n and m.
 * The pull on a token then stays of one size, whether it has three pairs or three hundred. */
static void put_strengths(basin_graphset_batch *b) {
    const basin_pairs *p = &b->pairs;
    for (int64_t q = 0; q < p->queries; q++)
        for (int64_t i = p->row[q]; i < p->row[q + 1]; i++) {
            const int32_t *column = p->column + p->key[i];
            double own = p->row[q + 1] - p->row[q], other = column[1] - column[0];
            b->strength[i] = (float)(1 / sqrt(own * other));
        }
}

basin_status basin_graphset_batch_fill(basin_graphset_batch *b, const basin_graphset *set,
                                       const basin_graphset_encoding *e,
                                       const basin_positions *positions, const int64_t *graph,
                                       int64_t count, bool flip, uint64_t seed, uint64_t epoch,
                                       basin_error *error) {
    int64_t tokens = 0, pairs = 0;
    for (int64_t i = 0; i < count; i++) {
        tokens += basin_graphset_tokens(set, graph[i]);
        pairs += basin_graphset_pairs(set, graph[i]) - e->no_cls_self;
    }
    if (pairs > INT32_MAX || tokens > INT32_MAX)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "a batch has %lld pairs; expected fewer than 2^31", (long long)pairs);
    if (!make_room(b, (const int64_t[]){count, tokens, pairs}, e->features, e->edge_features,
                   positions->width))
        return basin_fail_memory(error, "a batch of graphs");
    place at = {0};
    const draws by = {seed, epoch}, *drop = flip ? &by : NULL;
    for (int64_t i = 0; i < count; i++) {
        put_nodes(b, set, e, graph[i], at);
        put_positions(b, positions, set, graph[i], at, flip, seed, epoch);
        int64_t rows = basin_graphset_tokens(set, graph[i]);
        at = (place){i + 1, at.node + rows - 1, at.token + rows,
                     put_pairs(b, set, e, graph[i], at, drop)};
    }
    b->graphs = count, b->nodes = tokens - count, b->tokens = tokens;
    b->pairs.queries = b->pairs.keys = tokens, b->pairs.pairs = at.pair;
    b->pairs.row[tokens] = (int32_t)at.pair;
    sort_by_key(&b->pairs);
    put_strengths(b);
    return BASIN_OK;
}

basin_status basin_graphset_batch_all(basin_graphset_batch *all, const basin_graphset_batch *b,
                                      basin_error *error) {
    int64_t P = b->edge_features, pair = 0, pairs = 0;
    for (int64_t g = 0; g < b->graphs; g++) {
        int64_t tokens = (g + 1 < b->graphs ? b->first[g + 1] : b->tokens) - b->first[g];
        pairs += tokens * tokens;
    }
    if (pairs > INT32_MAX)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "a batch has %lld pairs; expected fewer than 2^31", (long long)pairs);
    if (!make_room(all, (const int64_t[]){b->graphs, b->tokens, pairs}, 1, P, 0))
        return basin_fail_memory(error, "all pairs of a batch");
    memset(all->edge_feature, 0, (size_t)(pairs * P) * sizeof *all->edge_feature);
    for (int64_t g = 0; g < b->graphs; g++) {
        int64_t first = b->first[g], end = g + 1 < b->graphs ? b->first[g + 1] : b->tokens;
        for (int64_t q = first; q < end; q++, pair += end - first) {
            all->pairs.row[q] = (int32_t)pair;
            for (int64_t k = first; k < end; k++) all->pairs.key[pair + k - first] = (int32_t)k;
            for (int64_t e = b->pairs.row[q]; e < b->pairs.row[q + 1]; e++)
                memcpy(all->edge_feature + (pair + b->pairs.key[e] - first) * P,
                       b->edge_feature + e * P, (size_t)P * sizeof *b->edge_feature);
        }
    }
    all->pairs.queries = all->pairs.keys = b->tokens, all->pairs.pairs = pairs;
    all->pairs.row[b->tokens] = (int32_t)pairs;
    sort_by_key(&all->pairs);
    return BASIN_OK;
}

/* ---- how nodes and edges become numbers ---- */

/* From labels and attributes to features: what is learnt from the training graphs, the ranges of
 * labels, means and deviations of attributes. */

enum { MAX_KINDS = 4096, DEGREES = 32 };
static const double MIN_VARIANCE = 1e-70; /* 1 over its root is a float */

/* Rows (nodes or edges) of graph g. */
typedef struct rows {
    const int64_t *start;
    const int64_t *graph;
    int64_t count;
} rows;

static basin_status label_ranges(basin_label_column *column, const int32_t *label, int64_t columns,
                                 const rows *r, const char *what, basin_error *error) {
    for (int64_t c = 0; c < columns; c++) {
        int64_t low = INT32_MAX, high = INT32_MIN;
        for (int64_t i = 0; i < r->count; i++)
            for (int64_t n = r->start[r->graph[i]]; n < r->start[r->graph[i] + 1]; n++) {
                int32_t value = label[n * columns + c];
                low = value < low ? value : low;
                high = value > high ? value : high;
            }
        if (low > high) low = 0, high = 0;
        if (high - low >= MAX_KINDS)
            return basin_fail(error, BASIN_UNSUPPORTED,
                              "%s labels from %lld to %lld; expected a range of at most %d", what,
                              (long long)low, (long long)high, MAX_KINDS);
        column[c] = (basin_label_column){(int32_t)low, (int32_t)(high - low + 1), {0}};
        memset(column[c].unseen, 0xff, sizeof column[c].unseen);
        for (int64_t i = 0; i < r->count; i++)
            for (int64_t n = r->start[r->graph[i]]; n < r->start[r->graph[i] + 1]; n++) {
                int64_t at = label[n * columns + c] - low;
                if (at >= 0 && at < 256) column[c].unseen[at / 64] &= ~(UINT64_C(1) << at % 64);
            }
    }
    return BASIN_OK;
}

/* Mean and scale of the columns from `first` on. A column that varies by no more than the rounding
 * of its sums counts as constant, whatever its units: lengths in molecules are about 1e-10
 * metres. */
static void statistics(float *mean, float *scale, const float *number, int64_t first,
                       int64_t columns, const rows *r) {
    for (int64_t c = first; c < columns; c++) {
        double sum = 0, squares = 0, count = 0;
        for (int64_t i = 0; i < r->count; i++)
            for (int64_t n = r->start[r->graph[i]]; n < r->start[r->graph[i] + 1]; n++) {
                double value = (double)number[n * columns + c];
                sum += value, squares += value * value, count += 1;
            }
        double centre = count > 0 ? sum / count : 0;
        double variance = count > 0 ? squares / count - centre * centre : 0;
        bool varies = variance > fmax(1e-12 * squares / count, MIN_VARIANCE);
        mean[c] = (float)centre;
        scale[c] = varies ? (float)(1 / sqrt(variance)) : 1;
    }
}

void basin_graphset_encoding_count(basin_graphset_encoding *e) {
    e->edge_features = e->edge_attributes;
    for (int64_t c = 0; c < e->edge_labels; c++)
        e->edge_features += e->raw ? 1 : e->edge_label[c].count;
    e->features = e->attributes + e->degrees;
    for (int64_t c = 0; c < e->labels; c++) e->features += e->raw ? 1 : e->label[c].count;
    if (e->edge_sums) e->features += e->edge_features;
    if (!e->features) e->features = 1;
    if (!e->edge_features) e->edge_features = 1;
}

static basin_status learn(basin_graphset_encoding *e, const basin_graphset *set,
                          const int64_t *graph, int64_t count, const basin_encoding_spec *spec,
                          basin_error *error) {
    rows nodes = {set->node_start, graph, count}, edges = {set->edge_start, graph, count};
    bool bare = !set->node_labels && !set->node_attributes;
    *e = (basin_graphset_encoding){
        .attributes = set->node_attributes,
        .labels = set->node_labels,
        .edge_attributes = set->edge_attributes,
        .edge_labels = set->edge_labels,
        .raw = spec->raw,
        .edge_sums =
            spec->edge_sums && (set->edge_labels || set->edge_attributes > set->edge_walks)};
    e->degrees = spec->degrees >= 0 ? spec->degrees : bare ? DEGREES : 0;
    if (bare && e->degrees && e->degrees < DEGREES) e->degrees = DEGREES; /* all that is known */
    int64_t columns = e->attributes + e->edge_attributes;
    BASIN_TRY(BASIN_NEW(&e->mean, columns, "an encoding", error));
    BASIN_TRY(BASIN_NEW(&e->scale, columns, "an encoding", error));
    for (int64_t c = 0; c < columns; c++) e->scale[c] = 1;
    if (spec->standardise)
        statistics(e->mean, e->scale, set->node_attribute, 0, e->attributes, &nodes);
    statistics(e->mean + e->attributes, e->scale + e->attributes, set->edge_attribute,
               e->edge_attributes - set->edge_walks, e->edge_attributes, &edges);
    BASIN_TRY(label_ranges(e->label, set->node_label, e->labels, &nodes, "node", error));
    BASIN_TRY(label_ranges(e->edge_label, set->edge_label, e->edge_labels, &edges, "edge", error));
    basin_graphset_encoding_count(e);
    return BASIN_OK;
}

basin_status basin_graphset_encoding_new(basin_graphset_encoding *e, const basin_graphset *set,
                                         const int64_t *graph, int64_t count,
                                         const basin_encoding_spec *spec, basin_error *error) {
    BASIN_TRY_OR(learn(e, set, graph, count, spec, error), basin_graphset_encoding_free(e));
    return BASIN_OK;
}

void basin_graphset_encoding_free(basin_graphset_encoding *encoding) {
    BASIN_FREE(encoding->mean, encoding->scale);
    *encoding = (basin_graphset_encoding){0};
}
