/* Drift of columns against training; see nodes.h. */
#include "base/bundle.h"
#include "base/sort.h"
#include "tasks/nodes/near.h"

enum { EDGES = BASIN_DRIFT_EDGES, BINS = BASIN_DRIFT_BINS };
/* Nodes and edges that are looked at, at most; values that set edges; that can show drift. */
enum { LOOKED_AT = 200000, SAMPLE = 20000, FEW = 50 };

/* ---- values ---- */

/* Values column by column: of nodes features and degrees, of edges what they carry. */
typedef struct column_values {
    int64_t rows, count; /* columns; nodes or edges */
    float *value;        /* [rows, count] */
} column_values;

static void values_free(column_values *v) { free(v->value); }

static basin_status values_new(column_values *v, int64_t rows, int64_t count, basin_error *error) {
    *v = (column_values){.rows = rows, .count = count};
    return BASIN_NEW_RAW(&v->value, (size_t)rows * (size_t)count, "column statistics", error);
}

static const basin_relation *main_relation(const basin_network *network) {
    int main = network->both ? BASIN_COME : basin_network_main_relation(network);
    return network->relations ? &network->relation[main < 0 ? 0 : main] : NULL;
}

/* Nodes from `first` on, evenly thinned out. */
static basin_status read_nodes(column_values *v, const basin_network *network, int64_t first,
                               basin_error *error) {
    const basin_relation *relation = main_relation(network);
    int64_t features = network->feature ? network->features : 0, all = network->nodes - first;
    int64_t N = basin_int_min(all, LOOKED_AT);
    BASIN_TRY(values_new(v, features + 1, N, error));
    for (int64_t i = 0; i < N; i++) {
        int64_t node = first + i * all / N;
        const int64_t *row = relation ? relation->row + node : NULL;
        for (int64_t c = 0; c < features; c++)
            v->value[c * N + i] = network->feature[node * features + c];
        v->value[features * N + i] = row ? (float)(row[1] - row[0]) : 0;
    }
    return BASIN_OK;
}

/* An edge counts once, and only where one of its ends does. */
static bool counts(const basin_network *network, int64_t node, int64_t other, int64_t first) {
    return (node >= first || other >= first) &&
           (network->directed || network->both || other <= node);
}

/* Edges of nodes from `first` on, evenly thinned out; none where they carry nothing. */
static basin_status read_edges(column_values *v, const basin_network *network, int64_t first,
                               basin_error *error) {
    const basin_relation *r = main_relation(network);
    const basin_facts *facts = &network->facts;
    int64_t width = r && r->fact ? basin_facts_width(facts) : 0, all = 0, seen = 0, kept = 0;
    for (int64_t i = 0; i < network->nodes && width; i++)
        for (int64_t e = r->row[i]; e < r->row[i + 1]; e++)
            all += counts(network, i, r->col[e], first);
    int64_t step = 1 + all / LOOKED_AT;
    BASIN_SCRATCH_RAW(float, column, width, "column statistics", error);
    BASIN_TRY(values_new(v, width, (all + step - 1) / step, error));
    for (int64_t i = 0; i < network->nodes && width; i++)
        for (int64_t e = r->row[i]; e < r->row[i + 1]; e++) {
            if (!counts(network, i, r->col[e], first) || seen++ % step) continue;
            basin_facts_columns(column, facts, r->fact + e * facts->count);
            for (int64_t c = 0; c < width; c++) v->value[c * v->count + kept] = column[c];
            kept++;
        }
    return BASIN_OK;
}

/* The same of single nodes of a network that grows. */
static basin_status read_near_nodes(column_values *v, const basin_near_graph *g,
                                    const int64_t *node, int64_t count, basin_error *error) {
    int64_t features = g->base->feature ? g->base->features : 0;
    int found = basin_network_main_relation(g->base), main = found < 0 ? 0 : found;
    BASIN_TRY(values_new(v, features + 1, count, error));
    for (int64_t i = 0; i < count; i++) {
        const float *x = features ? basin_near_feature(g, node[i]) : NULL;
        for (int64_t c = 0; c < features; c++) v->value[c * count + i] = x[c];
        v->value[features * count + i] = (float)basin_near_sees(g, main, node[i], false).count;
    }
    return BASIN_OK;
}

static basin_status read_near_edges(column_values *v, const basin_near_graph *g,
                                    const int64_t *node, int64_t count, basin_error *error) {
    enum { MAX = 20000 };
    const basin_facts *facts = &g->base->facts;
    const basin_relation *r = main_relation(g->base);
    int main = r ? (int)(r - g->base->relation) : 0;
    int64_t width = r && r->fact ? basin_facts_width(facts) : 0, all = 0, seen = 0, kept = 0;
    for (int64_t i = 0; i < count && width; i++)
        all += basin_near_sees(g, main, node[i], false).count;
    int64_t step = 1 + all / MAX;
    BASIN_SCRATCH_RAW(float, column, width, "column statistics", error);
    BASIN_TRY(values_new(v, width, (all + step - 1) / step, error));
    for (int64_t i = 0; i < count && width; i++) {
        basin_near_list list = basin_near_sees(g, main, node[i], false);
        for (int64_t e = 0; e < list.count; e++) {
            if (seen++ % step) continue;
            basin_facts_columns(column, facts, basin_near_fact(&list, e, facts->count));
            for (int64_t c = 0; c < width; c++) v->value[c * v->count + kept] = column[c];
            kept++;
        }
    }
    return BASIN_OK;
}

/* 0: below the first edge; 1: on it; then up to and with each further edge, and above the last. */
static int bin_of(const float edge[EDGES], float x) {
    int bin = x >= edge[0];
    for (int i = 0; i < EDGES; i++) bin += edge[i] < x;
    return bin;
}

static void count_row(double count[BINS], const float *edge, const column_values *v, int64_t row) {
    for (int i = 0; i < BINS; i++) count[i] = 0;
    for (int64_t n = 0; n < v->count; n++) count[bin_of(edge, v->value[row * v->count + n])]++;
}

/* Values of a column, evenly thinned out, ascending; returns how many. */
static int64_t sample_row(float sample[SAMPLE], const column_values *v, int64_t row) {
    int64_t taken = v->count < SAMPLE ? v->count : SAMPLE;
    for (int64_t i = 0; i < taken; i++) sample[i] = v->value[row * v->count + i * v->count / taken];
    qsort(sample, (size_t)taken, sizeof *sample, basin_compare_float);
    return taken;
}

/* ---- training ---- */

static basin_status sketch_new(basin_drift_sketch *r, int64_t rows, basin_error *error) {
    *r = (basin_drift_sketch){.rows = rows};
    BASIN_TRY(BASIN_NEW_RAW(&r->edge, rows * EDGES, "column statistics", error));
    return BASIN_NEW_RAW(&r->count, rows * BINS, "column statistics", error);
}

/* Each value where there are few, else the minimum and deciles. */
static void set_edges(float edge[EDGES], const float *sample, int64_t taken) {
    int values = 0;
    for (int64_t i = 0; i < taken && values <= EDGES; i++) {
        if (i && sample[i] == sample[i - 1]) continue;
        if (values < EDGES) edge[values] = sample[i];
        values++;
    }
    for (int i = values; i < EDGES; i++) edge[i] = edge[values - 1];
    for (int i = 0; i < EDGES && values > EDGES; i++) edge[i] = sample[i * taken / EDGES];
}

static basin_status sketch_take(basin_drift_sketch *sketch, const column_values *v,
                                basin_error *error) {
    BASIN_SCRATCH_RAW(float, sample, SAMPLE, "column statistics", error);
    BASIN_TRY(sketch_new(sketch, v->count ? v->rows : 0, error));
    for (int64_t row = 0; row < sketch->rows; row++) {
        double count[BINS];
        float *edge = sketch->edge + row * EDGES;
        set_edges(edge, sample, sample_row(sample, v, row));
        count_row(count, edge, v, row);
        for (int i = 0; i < BINS; i++) sketch->count[row * BINS + i] = (float)count[i];
    }
    return BASIN_OK;
}

basin_status basin_nodes_reference_take(basin_nodes_reference *reference,
                                        const basin_network *network, bool facts,
                                        basin_error *error) {
    BASIN_AT_EXIT(values_free) column_values nodes = {0}, edges = {0};
    basin_nodes_reference_free(reference);
    BASIN_TRY(read_nodes(&nodes, network, 0, error));
    BASIN_TRY(sketch_take(&reference->node, &nodes, error));
    if (!facts) return BASIN_OK;
    BASIN_TRY(read_edges(&edges, network, 0, error));
    return sketch_take(&reference->fact, &edges, error);
}

void basin_nodes_reference_free(basin_nodes_reference *reference) {
    free(reference->node.edge), free(reference->node.count);
    free(reference->fact.edge), free(reference->fact.count);
    *reference = (basin_nodes_reference){0};
}

/* Nodes, then edges; files hold [rows, EDGES] and [rows, BINS] of each. */
static const char *const edge_name[] = {"drift.edge", "drift.fact_edge"};
static const char *const count_name[] = {"drift.count", "drift.fact_count"};

basin_status basin_nodes_reference_store(basin_bundle *bundle, const basin_nodes_reference *all,
                                         basin_error *error) {
    for (int i = 0; i < 2; i++) {
        const basin_drift_sketch *r = i ? &all->fact : &all->node;
        if (!r->rows) continue;
        basin_shape edges = BASIN_SHAPE(r->rows, EDGES), bins = BASIN_SHAPE(r->rows, BINS);
        BASIN_TRY(basin_bundle_put(bundle, edge_name[i], r->edge, BASIN_F32, edges, error));
        BASIN_TRY(basin_bundle_put(bundle, count_name[i], r->count, BASIN_F32, bins, error));
    }
    return BASIN_OK;
}

basin_status basin_nodes_reference_load(basin_nodes_reference *all, const basin_bundle *bundle,
                                        int64_t features, basin_error *error) {
    for (int i = 0; i < 2; i++) {
        basin_drift_sketch *r = i ? &all->fact : &all->node;
        const basin_tensor *edge, *count;
        if (!basin_bundle_find(bundle, edge_name[i])) return BASIN_OK;
        BASIN_TRY(basin_bundle_expect(&edge, bundle, edge_name[i], BASIN_F32,
                                      BASIN_SHAPE(i ? -1 : features + 1, EDGES), error));
        int64_t rows = edge->shape.dim[0];
        BASIN_TRY(basin_bundle_expect(&count, bundle, count_name[i], BASIN_F32,
                                      BASIN_SHAPE(rows, BINS), error));
        if (basin_tensor_first_bad(edge) >= 0 || basin_tensor_first_bad(count) >= 0)
            return basin_fail(error, BASIN_BAD_FILE, "%s: %s or %s holds NaN or infinity",
                              basin_bundle_path(bundle), edge_name[i], count_name[i]);
        BASIN_TRY(sketch_new(r, rows, error));
        memcpy(r->edge, edge->data, (size_t)rows * EDGES * sizeof *r->edge);
        memcpy(r->count, count->data, (size_t)rows * BINS * sizeof *r->count);
    }
    return BASIN_OK;
}

/* ---- measuring ---- */

typedef struct measurer {
    const basin_drift_sketch *then;
    const column_values *now;
    float *sample; /* [SAMPLE] */
} measurer;

/* Shrinks what is seen towards training where there is little, and allows for chance. */
static void judge(basin_nodes_drift_column *c, const double *then, double *now, int64_t bins,
                  double nodes) {
    static const double strength = 5;
    double all = 0;
    for (int64_t i = 0; i < bins; i++) all += then[i];
    for (int64_t i = 0; i < bins && all > 0; i++) now[i] += strength * then[i] / all;
    c->index = all > 0 ? basin_stability_index(then, now, bins) : 0;
    double chance = (double)(bins - 1) * (1 / nodes + 1 / fmax(all, 1));
    c->level = nodes < FEW ? 0 : (c->index > 0.1 + chance) + (c->index > 0.25 + chance);
}

/* The edge up to which half of the nodes lie. */
static double middle(const float edge[EDGES], const double count[BINS]) {
    double all = 0, below = 0;
    int at = 1;
    for (int i = 0; i < BINS; i++) all += count[i];
    for (int i = 0; i <= 1; i++) below += count[i];
    while (at < EDGES && below < all / 2) below += count[++at];
    return (double)edge[at - 1];
}

static void measure_number(basin_nodes_drift_column *c, const measurer *m, int64_t row) {
    double then[BINS], now[BINS];
    const float *edge = m->then->edge + row * EDGES;
    for (int i = 0; i < BINS; i++) then[i] = (double)m->then->count[row * BINS + i];
    count_row(now, edge, m->now, row);
    int64_t taken = sample_row(m->sample, m->now, row);
    c->then = middle(edge, then);
    c->now = (double)m->sample[taken / 2];
    judge(c, then, now, BINS, (double)m->now->count);
}

/* A bin for each value, and one for nodes with none of them. */
static basin_status measure_category(basin_nodes_drift_column *c, const measurer *m, int64_t first,
                                     int64_t values, basin_error *error) {
    BASIN_FREE_AT_EXIT double *then = NULL, *now = NULL;
    double all = 0, nodes = (double)m->now->count;
    BASIN_TRY(BASIN_NEW(&then, values + 1, "drift", error));
    BASIN_TRY(BASIN_NEW(&now, values + 1, "drift", error));
    for (int i = 0; i < BINS; i++) all += (double)m->then->count[first * BINS + i];
    for (int64_t v = 0; v < values; v++) {
        int64_t row = first + v;
        for (int i = bin_of(m->then->edge + row * EDGES, 1); i < BINS; i++)
            then[v] += (double)m->then->count[row * BINS + i];
        for (int64_t n = 0; n < m->now->count; n++)
            now[v] += (double)(m->now->value[row * m->now->count + n] > 0.5f);
        then[values] += then[v], now[values] += now[v];
    }
    then[values] = fmax(all - then[values], 0);
    now[values] = fmax(nodes - now[values], 0);
    c->category = true;
    c->then = all > 0 ? then[values] / all : 0;
    c->now = now[values] / nodes;
    judge(c, then, now, values + 1, nodes);
    return BASIN_OK;
}

/* NULL without memory. */
static basin_nodes_drift_column *add_column(basin_nodes_drift *d, const char *name) {
    basin_nodes_drift_column *c = &d->column[d->columns];
    c->name = basin_string_copy(name);
    return c->name ? d->columns++, c : NULL;
}

static basin_status measure_nodes(basin_nodes_drift *d, const measurer *m,
                                  const basin_schema *schema, basin_error *error) {
    for (size_t i = 0; i < schema->nodes.columns; i++) {
        const basin_schema_column *own = &schema->nodes.column[i];
        if (!basin_column_is_feature(own->type) || !basin_schema_width(own)) continue;
        char name[140];
        snprintf(name, sizeof name, "%s%.120s", schema->named ? "" : "feature ", own->name);
        basin_nodes_drift_column *c = add_column(d, name);
        if (!c) return basin_fail_memory(error, "drift");
        c->date = own->type == BASIN_COLUMN_DATE;
        if (own->type == BASIN_COLUMN_CATEGORY)
            BASIN_TRY(measure_category(c, m, own->first, own->value.count, error));
        else
            measure_number(c, m, own->first);
    }
    basin_nodes_drift_column *last = add_column(d, "number of neighbours");
    if (!last) return basin_fail_memory(error, "drift");
    measure_number(last, m, m->then->rows - 1);
    return BASIN_OK;
}

/* What edges carry; medians in the user's units. */
static basin_status measure_edges(basin_nodes_drift *d, const measurer *m,
                                  const basin_network *network, basin_error *error) {
    for (int64_t row = 0; row < m->then->rows; row++) {
        char name[BASIN_FACT_TEXT];
        basin_nodes_fact_name(name, network, row);
        char *side = network->directed ? strstr(name, " that come") : NULL;
        if (side) *side = 0; /* an edge both goes and comes */
        basin_nodes_drift_column *c = add_column(d, name);
        if (!c) return basin_fail_memory(error, "drift");
        measure_number(c, m, row);
        c->then = basin_facts_value(network, row, c->then);
        c->now = basin_facts_value(network, row, c->now);
    }
    return BASIN_OK;
}

/* The mean of a row of shares in training: bins go up to the edges between them. */
static double mean_then(const basin_drift_sketch *then, int64_t row) {
    double sum = 0, all = 0;
    for (int i = 0; i < BINS; i++) {
        int edge = i < 1 ? 0 : i > EDGES ? EDGES - 1 : i - 1;
        double count = (double)then->count[row * BINS + i];
        sum += count * (double)then->edge[row * EDGES + edge];
        all += count;
    }
    return all > 0 ? sum / all : 0;
}

static double mean_now(const column_values *now, int64_t row) {
    double sum = 0;
    for (int64_t i = 0; i < now->count; i++) sum += (double)now->value[row * now->count + i];
    return sum / (double)now->count;
}

/* Per category of edges the share of rows with a value unknown in training. */
static basin_status measure_unknown(basin_nodes_drift *d, const measurer *m,
                                    const basin_schema *schema, basin_error *error) {
    int64_t row = 1; /* after the count */
    for (size_t i = 0; i < schema->edges.columns; i++) {
        const basin_schema_column *own = &schema->edges.column[i];
        if (!basin_column_is_feature(own->type)) continue;
        bool kinds = own->type == BASIN_COLUMN_CATEGORY;
        int64_t width = kinds                                            ? own->value.count
                        : own->type == BASIN_COLUMN_NUMBER && !own->time ? 3
                                                                         : 1;
        double known[2] = {0, 0};
        for (int64_t v = row; kinds && v < row + width && v < m->then->rows; v++) {
            known[0] += mean_then(m->then, v);
            known[1] += mean_now(m->now, v);
        }
        row += width;
        if (!kinds) continue;
        double all = 0, n = (double)m->now->count;
        for (int b = 0; b < BINS; b++) all += (double)m->then->count[b];
        char name[100];
        snprintf(name, sizeof name, "%.80s of edges", own->name);
        basin_nodes_drift_column *c = add_column(d, name);
        if (!c) return basin_fail_memory(error, "drift");
        c->category = true;
        c->then = fmax(0, 1 - known[0]), c->now = fmax(0, 1 - known[1]);
        double then[2] = {all * (1 - c->then), all * c->then};
        double now[2] = {n * (1 - c->now), n * c->now};
        judge(c, then, now, 2, n);
    }
    return BASIN_OK;
}

static int larger_first(const void *a, const void *b) {
    const basin_nodes_drift_column *x = a, *y = b;
    return BASIN_COMPARE(y->index, x->index);
}

/* Few nodes may have enough edges; drift of nodes then says nothing. */
static basin_status measure(basin_nodes_drift *drift, const basin_nodes_model *model,
                            const basin_network *network, const column_values *nodes,
                            const column_values *edges, basin_error *error) {
    const basin_nodes_reference *then = &model->reference;
    size_t max = model->schema->nodes.columns + 1 + (size_t)then->fact.rows;
    max += model->schema->edges.columns;
    BASIN_SCRATCH_RAW(float, sample, SAMPLE, "drift", error);
    BASIN_TRY(BASIN_NEW(&drift->column, max, "drift", error));
    if (nodes->count < 1) return basin_fail(error, BASIN_BAD_VALUE, "%s: no nodes", network->path);
    measurer of_nodes = {&then->node, nodes, sample}, of_edges = {&then->fact, edges, sample};
    BASIN_TRY(measure_nodes(drift, &of_nodes, model->schema, error));
    if (edges->rows == then->fact.rows && edges->count) {
        BASIN_TRY(measure_edges(drift, &of_edges, network, error));
        BASIN_TRY(measure_unknown(drift, &of_edges, model->schema, error));
    }
    for (int64_t i = 0; i < drift->columns; i++) {
        drift->some += drift->column[i].level == 1;
        drift->large += drift->column[i].level == 2;
    }
    qsort(drift->column, (size_t)drift->columns, sizeof *drift->column, larger_first);
    return BASIN_OK;
}

static basin_status drift_new(basin_nodes_drift **drift, const basin_nodes_model *model,
                              int64_t nodes, basin_error *error) {
    *drift = NULL;
    if (!model->reference.node.rows || !model->schema)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "the model does not say what its training's columns looked like; needs "
                          "one trained by this version");
    BASIN_TRY(BASIN_NEW(drift, 1, "drift", error));
    **drift = (basin_nodes_drift){.nodes = nodes, .few = nodes < FEW};
    return BASIN_OK;
}

static basin_status drop(basin_nodes_drift **drift, basin_status status) {
    if (status) basin_nodes_drift_free(*drift), *drift = NULL;
    return status;
}

basin_status basin_nodes_drift_new(basin_nodes_drift **drift, const basin_nodes_model *model,
                                   const basin_network *network, int64_t first,
                                   basin_error *error) {
    BASIN_AT_EXIT(values_free) column_values nodes = {0}, edges = {0};
    BASIN_TRY(drift_new(drift, model, network->nodes - first, error));
    basin_status status = basin_nodes_check_network(model, network, error);
    if (!status) status = read_nodes(&nodes, network, first, error);
    if (!status) status = read_edges(&edges, network, first, error);
    if (!status) status = measure(*drift, model, network, &nodes, &edges, error);
    return drop(drift, status);
}

basin_status basin_nodes_drift_near(basin_nodes_drift **drift, const basin_nodes_model *model,
                                    const basin_near_graph *graph, const int64_t *node,
                                    int64_t count, basin_error *error) {
    BASIN_AT_EXIT(values_free) column_values nodes = {0}, edges = {0};
    BASIN_TRY(drift_new(drift, model, count, error));
    basin_status status = read_near_nodes(&nodes, graph, node, count, error);
    if (!status) status = read_near_edges(&edges, graph, node, count, error);
    if (!status) status = measure(*drift, model, graph->base, &nodes, &edges, error);
    return drop(drift, status);
}

void basin_nodes_drift_free(basin_nodes_drift *drift) {
    if (!drift) return;
    for (int64_t i = 0; i < drift->columns; i++) free((char *)(uintptr_t)drift->column[i].name);
    BASIN_FREE(drift->column, drift);
}
