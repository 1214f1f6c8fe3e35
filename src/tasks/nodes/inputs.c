/* What the network reads: the table of features scaled, with means over hops; facts of edges. */
#include "base/parallel.h"
#include "tasks/nodes/net.h"

static basin_status pick_relations(basin_node_inputs *inputs, basin_error *error) {
    const basin_network *network = inputs->network;
    int *count = &inputs->shape.relations;
    if (basin_choice_is(inputs->settings->relations, "one")) {
        inputs->node.relation[(*count)++] = basin_network_main_relation(network);
        if (inputs->node.relation[0] >= 0) return BASIN_OK;
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: %d relations and no union of them; needs one named homo",
                          network->path, network->relations);
    }
    for (int r = 0; r < network->relations; r++) {
        if (!strcmp(network->relation[r].name, "homo")) continue;
        if (*count == BASIN_MAX_RELATIONS)
            return basin_fail(error, BASIN_UNSUPPORTED, "%s: more than %d relations", network->path,
                              BASIN_MAX_RELATIONS);
        inputs->node.relation[(*count)++] = r;
    }
    if (*count) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s: no relation besides the union", network->path);
}

typedef struct scaling {
    float *to;
    int64_t stride;
    const basin_scaler *scale;
    const float *from;
} scaling;

static void scale_some(const void *context, int64_t first, int64_t last) {
    const scaling *s = context;
    for (int64_t i = first; i < last; i++)
        basin_scaler_apply(s->to + i * s->stride, s->scale, s->from + i * s->scale->features, 1);
}

basin_status basin_node_inputs_scale_rows(basin_node_inputs *inputs, const basin_scaler *scale,
                                          const basin_scaler *edge_scale, basin_error *error) {
    basin_node_table *t = &inputs->node;
    bool fitted = scale->mean || scale->quantile; /* else it may not know how many there are */
    basin_scaler own = *scale;
    own.features = t->own;
    if (fitted && scale->features != t->own)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: %lld features (with degrees), the detector was trained on %lld",
                          t->network->path, (long long)t->own, (long long)scale->features);
    t->means = inputs->settings->hops;
    t->stride = inputs->shape.columns = t->own * (1 + t->means);
    BASIN_TRY(BASIN_NEW_RAW(&t->row, (t->network->nodes + t->halo) * t->stride,
                            "the table of inputs", error));
    inputs->edge_scale = edge_scale;
    scaling rows = {t->row, t->stride, &own, inputs->raw};
    basin_parallel_for(scale_some, &rows, t->network->nodes, 256, 0);
    free(inputs->raw);
    inputs->raw = NULL;
    return BASIN_OK;
}

/* Bags of words are nearly all 0: their first product is that of a list. */
static void choose_list(basin_node_inputs *inputs) {
    static const int64_t sparse = 8, small = 100000; /* cells for one that counts; that are few */
    int64_t cells = inputs->network->nodes * inputs->shape.columns, count = 0;
    if (cells < small || !basin_nodes_descends(inputs->settings) ||
        !basin_choice_is(inputs->settings->position, "none"))
        return;
    for (int64_t i = 0; i < cells; i++) count += inputs->node.row[i] != 0;
    if (count && count < INT32_MAX && count * sparse < cells) inputs->shape.listed = count;
}

basin_status basin_node_inputs_scale(basin_node_inputs *inputs, const basin_scaler *scale,
                                     const basin_scaler *edge_scale, basin_error *error) {
    BASIN_TRY(basin_node_inputs_scale_rows(inputs, scale, edge_scale, error));
    for (int64_t b = 1; b <= inputs->node.means; b++) basin_node_table_means(&inputs->node, b, 0);
    choose_list(inputs);
    return BASIN_OK;
}

static basin_status open_inputs(basin_node_inputs *inputs, basin_error *error) {
    const basin_network *network = inputs->network;
    const basin_nodes_settings *settings = inputs->settings;
    basin_nodes_shape *shape = &inputs->shape;
    basin_node_table *t = &inputs->node;
    bool loops = basin_choice_is(settings->self_loops, "add");
    int homo = basin_network_main_relation(network);
    shape->nodes = shape->positions = network->nodes;
    BASIN_TRY(pick_relations(inputs, error));
    if (basin_facts_bias(settings)) shape->facts = basin_facts_width(&network->facts);
    t->relations = shape->relations, t->chain = homo >= 0 ? homo : t->relation[0];
    BASIN_TRY(basin_node_table_begin(t, network, settings->degree,
                                     basin_facts_are_features(settings), error));
    BASIN_TRY(BASIN_NEW_RAW(&inputs->raw, network->nodes * t->own, "features of nodes", error));
    BASIN_TRY(basin_node_table_own(inputs->raw, t->own, t, error));
    for (int r = 0; r < shape->relations; r++)
        shape->pairs[r] = network->relation[t->relation[r]].edges + (loops ? network->nodes : 0);
    return BASIN_OK;
}

basin_status basin_node_inputs_open(basin_node_inputs *inputs, const basin_network *network,
                                    const basin_nodes_settings *settings, basin_error *error) {
    *inputs = (basin_node_inputs){.network = network, .settings = settings};
    BASIN_TRY_OR(open_inputs(inputs, error), basin_node_inputs_close(inputs));
    return BASIN_OK;
}

void basin_node_inputs_close(basin_node_inputs *inputs) {
    BASIN_FREE(inputs->raw, inputs->node.row);
    *inputs = (basin_node_inputs){0};
}

basin_status basin_node_inputs_pairs(basin_pairs *pairs, const basin_node_inputs *inputs,
                                     const basin_network *network, int64_t room, int64_t halo,
                                     basin_error *error) {
    const char *loops = inputs->settings->self_loops;
    basin_self_loops self = basin_choice_is(loops, "add")    ? BASIN_SELF_LOOPS_ADD
                            : basin_choice_is(loops, "drop") ? BASIN_SELF_LOOPS_DROP
                                                             : BASIN_SELF_LOOPS_KEEP;
    basin_status status = BASIN_OK;
    for (int r = 0; r < inputs->shape.relations; r++) pairs[r] = (basin_pairs){0};
    for (int r = 0; r < inputs->shape.relations && !status; r++)
        status = basin_network_pairs(&pairs[r], network, inputs->node.relation[r], self, room, halo,
                                     error);
    for (int r = 0; r < inputs->shape.relations && status; r++) basin_pairs_free(&pairs[r]);
    return status;
}

basin_nodes_net_data basin_node_inputs_data(const basin_node_inputs *inputs,
                                            const basin_pairs *pairs) {
    return (basin_nodes_net_data){.table = inputs->node.row,
                                  .pairs = pairs,
                                  .inputs = inputs,
                                  .network = inputs->network,
                                  .nodes = inputs->shape.nodes};
}

basin_status basin_rows_take(float **to, const float *from, int64_t width,
                             const basin_network *network, basin_error *error) {
    if (!from) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(to, network->nodes * width, "rows of nodes", error));
    for (int64_t i = 0; i < network->nodes; i++)
        memcpy(*to + i * width, from + network->origin[i] * width, (size_t)width * sizeof **to);
    return BASIN_OK;
}

/* ---- Biases of pairs: columns of edges, scaled by the ranks of training ---- */

static basin_status fit_edge_scale(basin_scaler *scale, const basin_node_inputs *inputs,
                                   const int64_t *node, int64_t nodes, basin_error *error) {
    const basin_network *n = inputs->network;
    const basin_facts *facts = &n->facts;
    int64_t width = basin_facts_width(facts), edges = 0, seen = 0, kept = 0;
    for (int r = 0; r < inputs->shape.relations; r++) {
        const int64_t *row = n->relation[inputs->node.relation[r]].row;
        for (int64_t i = 0; i < nodes; i++) edges += row[node[i] + 1] - row[node[i]];
    }
    int64_t step = 1 + edges / BASIN_FITTED_EDGES, rows = edges / step + 1;
    BASIN_SCRATCH(float, x, (rows * width), "a scale of edges", error);
    BASIN_SCRATCH_RAW(int64_t, all, rows, "a scale of edges", error);
    for (int r = 0; r < inputs->shape.relations; r++) {
        const basin_relation *relation = &n->relation[inputs->node.relation[r]];
        for (int64_t i = 0; i < nodes; i++)
            for (int64_t e = relation->row[node[i]]; e < relation->row[node[i] + 1]; e++)
                if (seen++ % step == 0)
                    basin_facts_columns(x + kept++ * width, facts,
                                        relation->fact + e * facts->count);
    }
    if (kept == 0) kept = 1; /* training nodes without edges: all zeros */
    for (int64_t i = 0; i < kept; i++) all[i] = i;
    return basin_scaler_fit(scale, BASIN_SCALE_QUANTILE, x, width, all, kept, error);
}

basin_status basin_node_inputs_fit(basin_scaler *scale, basin_scaler *edge_scale,
                                   const basin_node_inputs *inputs, const int64_t *node,
                                   int64_t nodes, basin_error *error) {
    basin_scaler_kind kind;
    BASIN_TRY(basin_scaler_parse(&kind, inputs->settings->scaling, error));
    BASIN_TRY(basin_scaler_fit(scale, kind, inputs->raw, inputs->node.own, node, nodes, error));
    return inputs->shape.facts ? fit_edge_scale(edge_scale, inputs, node, nodes, error) : BASIN_OK;
}

typedef struct filling {
    float *x; /* [pairs, width]; or [edges, heads] of biases */
    const basin_node_inputs *inputs;
    const basin_relation *relation;
    const basin_facts *facts;
    const basin_pairs *pairs;
    const float *we; /* [width, heads] */
    int64_t heads;
} filling;

static void fill_edge(float *x, const filling *f, int64_t edge) {
    basin_facts_columns(x, f->facts, f->relation->fact + edge * f->facts->count);
    basin_scaler_apply(x, f->inputs->edge_scale, x, 1);
}

static void fill_queries(const void *context, int64_t first, int64_t last) {
    const filling *f = context;
    const basin_relation *r = f->relation;
    int64_t width = basin_facts_width(f->facts);
    bool keep = basin_choice_is(f->inputs->settings->self_loops, "keep"); /* or left out */
    for (int64_t q = first; q < last; q++) {
        int64_t e = r->row[q]; /* pairs have the order of edges */
        for (int64_t p = f->pairs->row[q]; p < f->pairs->row[q + 1]; p++) {
            if (f->pairs->key[p] == q && !keep) continue;
            while ((r->col[e] == q && !keep) || (e > r->row[q] && r->col[e] == r->col[e - 1])) e++;
            fill_edge(f->x + p * width, f, e++);
        }
    }
}

basin_status basin_edge_facts(float **result, const basin_node_inputs *inputs,
                              const basin_network *network, int r, const basin_pairs *pairs,
                              basin_error *error) {
    const basin_facts *facts = &network->facts;
    int64_t count = pairs->pairs * basin_facts_width(facts);
    BASIN_TRY(BASIN_NEW(result, count + 1, "facts of edges", error));
    filling f = {*result, inputs, &network->relation[inputs->node.relation[r]],
                 facts,   pairs,  .heads = 0};
    basin_parallel_for(fill_queries, &f, pairs->queries, 256, 0);
    return BASIN_OK;
}

/* Returns the first edge of those that there was no memory for. */
static int64_t weigh_edges(const void *context, int64_t first, int64_t last) {
    const filling *f = context;
    int64_t width = basin_facts_width(f->facts);
    float *x = malloc((size_t)width * sizeof *x);
    for (int64_t e = first; x && e < last; e++) {
        fill_edge(x, f, e);
        for (int64_t h = 0; h < f->heads; h++) {
            float sum = 0;
            for (int64_t c = 0; c < width; c++) sum += x[c] * f->we[c * f->heads + h];
            f->x[e * f->heads + h] = sum;
        }
    }
    free(x);
    return x ? last : first;
}

basin_status basin_edge_bias(float *bias, const basin_node_inputs *inputs, int r, const float *we,
                             int64_t heads, basin_error *error) {
    const basin_network *n = inputs->network;
    const basin_relation *relation = &n->relation[inputs->node.relation[r]];
    filling f = {bias, inputs, relation, &n->facts, .we = we, .heads = heads};
    bool room = basin_parallel_find(weigh_edges, &f, relation->edges, 0) == relation->edges;
    return room ? BASIN_OK : basin_fail_memory(error, "biases of edges");
}
