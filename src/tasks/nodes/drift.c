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

/* Nodes from `first` on, or some nodes of a network that grows. */
typedef struct nodes_seen {
    basin_node_table of; /* its network and additions */
    const int64_t *node; /* [count] or NULL */
    int64_t first, count;
} nodes_seen;

static int main_relation(const basin_network *n) {
    int main = n->both ? BASIN_COME : basin_network_main_relation(n);
    return main < 0 ? 0 : main;
}

/* Evenly thinned out. */
static basin_status read_nodes(column_values *v, const nodes_seen *s, basin_error *error) {
    const basin_network *n = s->of.network;
    int64_t features = n->feature ? n->features : 0, N = basin_int_min(s->count, LOOKED_AT);
    BASIN_TRY(values_new(v, features + 1, N, error));
    for (int64_t i = 0; i < N; i++) {
        int64_t at = i * s->count / N, node = s->node ? s->node[at] : s->first + at, edges = 0;
        const float *x = !features     ? NULL
                         : s->of.grown ? basin_near_feature(s->of.grown, node)
                                       : n->feature + node * features;
        if (n->relations) edges = basin_node_list(&s->of, main_relation(n), node).count;
        for (int64_t c = 0; c < features; c++) v->value[c * N + i] = x[c];
        v->value[features * N + i] = (float)edges;
    }
    return BASIN_OK;
}

/* An edge counts once, and only where one of its ends does. */
static bool counts(const nodes_seen *s, int64_t node, int64_t other) {
    const basin_network *n = s->of.network;
    return s->node ||
           ((node >= s->first || other >= s->first) && (n->directed || n->both || other <= node));
}

/* Evenly thinned out; none where they carry nothing. */
static basin_status read_edges(column_values *v, const nodes_seen *s, basin_error *error) {
    const basin_network *n = s->of.network;
    int main = main_relation(n);
    int64_t width = n->relations && n->relation[main].fact ? basin_facts_width(&n->facts) : 0;
    int64_t nodes = s->node ? s->count : n->nodes, all = 0, step = 0, seen = 0, kept = 0;
    BASIN_SCRATCH_RAW(float, column, width, "column statistics", error);
    for (int pass = 0; pass < 2; pass++) {
        if (pass) step = 1 + all / (s->node ? SAMPLE : LOOKED_AT);
        if (pass) BASIN_TRY(values_new(v, width, (all + step - 1) / step, error));
        for (int64_t i = 0; i < nodes && width; i++) {
            int64_t node = s->node ? s->node[i] : i;
            basin_near_list list = basin_node_list(&s->of, main, node);
            for (int64_t e = 0; e < list.count; e++) {
                if (!counts(s, node, list.col[e]) || (!pass && ++all) || seen++ % step) continue;
                basin_facts_columns(column, &n->facts, basin_near_fact(&list, e, n->facts.count));
                for (int64_t c = 0; c < width; c++) v->value[c * v->count + kept] = column[c];
                kept++;
            }
        }
    }
    return BASIN_OK;
}

/* Nodes, then edges. */
static basin_status (*const reader[2])(column_values *, const nodes_seen *,
                                       basin_error *) = {read_nodes, read_edges};

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
    const nodes_seen all = {.of.network = network, .count = network->nodes};
    basin_nodes_reference_free(reference);
    for (int i = 0; i < 1 + facts; i++) {
        BASIN_AT_EXIT(values_free) column_values values = {0};
        BASIN_TRY(reader[i](&values, &all, error));
        BASIN_TRY(sketch_take(&reference->of[i], &values, error));
    }
    return BASIN_OK;
}

void basin_nodes_reference_free(basin_nodes_reference *reference) {
    for (int i = 0; i < 2; i++) free(reference->of[i].edge), free(reference->of[i].count);
    *reference = (basin_nodes_reference){0};
}

/* Files hold [rows, EDGES] and [rows, BINS] of each. */
static const char *const edge_name[] = {"drift.edge", "drift.fact_edge"};
static const char *const count_name[] = {"drift.count", "drift.fact_count"};

basin_status basin_nodes_reference_store(basin_bundle *bundle, const basin_nodes_reference *all,
                                         basin_error *error) {
    for (int i = 0; i < 2; i++) {
        const basin_drift_sketch *r = &all->of[i];
        basin_shape edges = BASIN_SHAPE(r->rows, EDGES), bins = BASIN_SHAPE(r->rows, BINS);
        if (!r->rows) continue;
        BASIN_TRY(basin_bundle_put(bundle, edge_name[i], r->edge, BASIN_F32, edges, error));
        BASIN_TRY(basin_bundle_put(bundle, count_name[i], r->count, BASIN_F32, bins, error));
    }
    return BASIN_OK;
}

basin_status basin_nodes_reference_load(basin_nodes_reference *all, const basin_bundle *bundle,
                                        int64_t features, basin_error *error) {
    for (int i = 0; i < 2; i++) {
        basin_drift_sketch *r = &all->of[i];
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
    basin_nodes_drift *drift;
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
    double all = 0, nodes = (double)m->now->count;
    BASIN_SCRATCH(double, then, values + 1, "drift", error);
    BASIN_SCRATCH(double, now, values + 1, "drift", error);
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
    c->then = all > 0 ? then[values] / all : 0;
    c->now = now[values] / nodes;
    judge(c, then, now, values + 1, nodes);
    return BASIN_OK;
}

static basin_status add_column(basin_nodes_drift_column **c, basin_nodes_drift *d, bool category,
                               basin_error *error, const char *form, const char *name) {
    char text[BASIN_FACT_TEXT];
    snprintf(text, sizeof text, form, name);
    *c = &d->column[d->columns];
    (*c)->category = category;
    (*c)->name = basin_string_copy(text);
    d->columns += (*c)->name != NULL;
    return (*c)->name ? BASIN_OK : basin_fail_memory(error, "drift");
}

static basin_status measure_nodes(const measurer *m, const basin_schema *schema,
                                  basin_error *error) {
    basin_nodes_drift_column *c;
    for (size_t i = 0; i < schema->nodes.columns; i++) {
        const basin_schema_column *own = &schema->nodes.column[i];
        bool category = own->type == BASIN_COLUMN_CATEGORY;
        if (!basin_column_is_feature(own->type) || !basin_schema_width(own)) continue;
        BASIN_TRY(add_column(&c, m->drift, category, error,
                             schema->named ? "%.120s" : "feature %.120s", own->name));
        c->date = own->type == BASIN_COLUMN_DATE;
        if (category)
            BASIN_TRY(measure_category(c, m, own->first, own->value.count, error));
        else
            measure_number(c, m, own->first);
    }
    BASIN_TRY(add_column(&c, m->drift, false, error, "%s", "number of neighbours"));
    measure_number(c, m, m->then->rows - 1);
    return BASIN_OK;
}

/* What edges carry; medians in the user's units. */
static basin_status measure_edges(const measurer *m, const basin_network *network,
                                  basin_error *error) {
    for (int64_t row = 0; row < m->then->rows; row++) {
        basin_nodes_drift_column *c;
        char name[BASIN_FACT_TEXT];
        basin_nodes_fact_name(name, network, row);
        char *side = network->directed ? strstr(name, " that come") : NULL;
        if (side) *side = 0; /* an edge both goes and comes */
        BASIN_TRY(add_column(&c, m->drift, false, error, "%s", name));
        measure_number(c, m, row);
        c->then = basin_facts_value(network, row, c->then);
        c->now = basin_facts_value(network, row, c->now);
    }
    return BASIN_OK;
}

/* Adds the mean of a row of shares, in training (bins go up to the edges between them) and now. */
static void add_means(double mean[2], const measurer *m, int64_t row) {
    double sum[2] = {0}, all = 0, n = (double)m->now->count;
    for (int i = 0; i < BINS; i++) {
        int edge = i < 1 ? 0 : i > EDGES ? EDGES - 1 : i - 1;
        double count = (double)m->then->count[row * BINS + i];
        sum[0] += count * (double)m->then->edge[row * EDGES + edge];
        all += count;
    }
    for (int64_t i = 0; i < m->now->count; i++)
        sum[1] += (double)m->now->value[row * m->now->count + i];
    mean[0] += all > 0 ? sum[0] / all : 0, mean[1] += sum[1] / n;
}

/* Per category of edges the share of rows with a value unknown in training. */
static basin_status measure_unknown(const measurer *m, const basin_schema *schema,
                                    basin_error *error) {
    int64_t row = 1; /* after the count */
    double all = 0, n = (double)m->now->count;
    for (int b = 0; b < BINS; b++) all += (double)m->then->count[b];
    for (size_t i = 0; i < schema->edges.columns; i++) {
        const basin_schema_column *own = &schema->edges.column[i];
        basin_nodes_drift_column *c;
        bool kinds = own->type == BASIN_COLUMN_CATEGORY;
        int64_t first = row;
        double known[2] = {0, 0};
        if (!basin_column_is_feature(own->type)) continue;
        row += kinds ? own->value.count : own->type == BASIN_COLUMN_NUMBER && !own->time ? 3 : 1;
        if (!kinds) continue;
        for (int64_t v = first; v < row && v < m->then->rows; v++) add_means(known, m, v);
        BASIN_TRY(add_column(&c, m->drift, true, error, "%.80s of edges", own->name));
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
                            const nodes_seen *seen, basin_error *error) {
    const basin_drift_sketch *then = model->reference.of;
    const basin_schema *schema = model->schema;
    const basin_network *network = seen->of.network;
    BASIN_AT_EXIT(values_free) column_values nodes = {0}, edges = {0};
    BASIN_TRY(read_nodes(&nodes, seen, error));
    BASIN_TRY(read_edges(&edges, seen, error));
    size_t max = schema->nodes.columns + 1 + (size_t)then[1].rows + schema->edges.columns;
    BASIN_SCRATCH_RAW(float, sample, SAMPLE, "drift", error);
    BASIN_TRY(BASIN_NEW(&drift->column, max, "drift", error));
    if (nodes.count < 1) return basin_fail(error, BASIN_BAD_VALUE, "%s: no nodes", network->path);
    measurer of_nodes = {drift, &then[0], &nodes, sample};
    measurer of_edges = {drift, &then[1], &edges, sample};
    BASIN_TRY(measure_nodes(&of_nodes, schema, error));
    if (edges.rows == then[1].rows && edges.count) {
        BASIN_TRY(measure_edges(&of_edges, network, error));
        BASIN_TRY(measure_unknown(&of_edges, schema, error));
    }
    for (int64_t i = 0; i < drift->columns; i++) {
        drift->some += drift->column[i].level == 1;
        drift->large += drift->column[i].level == 2;
    }
    qsort(drift->column, (size_t)drift->columns, sizeof *drift->column, larger_first);
    return BASIN_OK;
}

static basin_status drift_new(basin_nodes_drift **drift, const basin_nodes_model *model,
                              const nodes_seen *seen, basin_error *error) {
    *drift = NULL;
    if (!model->reference.of[0].rows || !model->schema)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "the model does not say what its training's columns looked like; needs "
                          "one trained by this version");
    BASIN_TRY(BASIN_NEW(drift, 1, "drift", error));
    **drift = (basin_nodes_drift){.nodes = seen->count, .few = seen->count < FEW};
    BASIN_TRY_OR(measure(*drift, model, seen, error),
                 (basin_nodes_drift_free(*drift), *drift = NULL));
    return BASIN_OK;
}

basin_status basin_nodes_drift_new(basin_nodes_drift **drift, const basin_nodes_model *model,
                                   const basin_network *network, int64_t first,
                                   basin_error *error) {
    nodes_seen seen = {.of.network = network, .first = first, .count = network->nodes - first};
    *drift = NULL;
    BASIN_TRY(basin_nodes_check_network(model, network, error));
    return drift_new(drift, model, &seen, error);
}

basin_status basin_nodes_drift_near(basin_nodes_drift **drift, const basin_nodes_model *model,
                                    const basin_near_graph *graph, const int64_t *node,
                                    int64_t count, basin_error *error) {
    nodes_seen seen = {{.network = graph->base, .grown = graph}, node, .count = count};
    return drift_new(drift, model, &seen, error);
}

void basin_nodes_drift_free(basin_nodes_drift *drift) {
    if (!drift) return;
    for (int64_t i = 0; i < drift->columns; i++) free((char *)(uintptr_t)drift->column[i].name);
    BASIN_FREE(drift->column, drift);
}
