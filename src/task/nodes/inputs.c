/* The table of inputs: scaled features, logarithms of degrees, and means of both over the
 * neighbours and their neighbours. */
#include "task/nodes/inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/team/team.h"
#include "basin/tasks/graphset.h"
#include "data/network/network.h"

static basin_status pick_relations(basin_node_inputs *inputs, basin_error *error) {
    const basin_network *network = inputs->network;
    int *count = &inputs->shape.relations;
    if (basin_choice_is(inputs->settings->relations, "one")) {
        inputs->relation[(*count)++] = basin_network_main_relation(network);
        if (inputs->relation[0] >= 0) return BASIN_OK;
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: %d relations and no union of them; wanted one named homo",
                          network->path, network->relations);
    }
    for (int r = 0; r < network->relations; r++) {
        if (!strcmp(network->relation[r].name, "homo")) continue;
        if (*count == BASIN_ANOMALY_RELATIONS)
            return basin_fail(error, BASIN_UNSUPPORTED, "%s: more than %d relations", network->path,
                              BASIN_ANOMALY_RELATIONS);
        inputs->relation[(*count)++] = r;
    }
    if (*count) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE, "%s: no relation besides the union", network->path);
}

static float *new_floats(int64_t rows, int64_t columns, basin_error *error) {
    size_t count;
    float *x = NULL;
    if (basin_size_multiply(&count, (size_t)rows, (size_t)columns))
        x = basin_array_new(count, sizeof *x);
    if (!x)
        basin_fail(error, BASIN_NO_MEMORY, "out of memory for a table of %lld x %lld numbers",
                   (long long)rows, (long long)columns);
    return x;
}

/* Features, the logarithms of degrees, and totals of what edges carry. */
static basin_status make_raw(basin_node_inputs *inputs, basin_error *error) {
    const basin_network *network = inputs->network;
    int64_t N = network->nodes, F = network->feature ? network->features : 0;
    int64_t D = F + (inputs->settings->degree ? inputs->shape.relations : 0);
    int64_t C = D;
    if (basin_facts_are_features(inputs->settings))
        C += basin_node_facts_width(network, inputs->shape.relations);
    inputs->features = C;
    if (C < 1)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "%s: no features; wanted some, or degree, which makes one",
                          network->path);
    float *x = inputs->raw = new_floats(N, C, error);
    if (!x) return BASIN_NO_MEMORY;
    for (int64_t i = 0; i < N; i++) {
        if (F) memcpy(x + i * C, network->feature + i * F, (size_t)F * sizeof *x);
        for (int64_t r = F; r < D; r++) {
            const int64_t *row = network->relation[inputs->relation[r - F]].row;
            x[i * C + r] = (float)log1p((double)(row[i + 1] - row[i]));
        }
    }
    if (C == D) return BASIN_OK;
    return basin_node_facts_fill(x + D, C, network, inputs->relation, inputs->shape.relations,
                                 error);
}

void basin_neighbour_mean(float *mean, const float *from, int64_t stride, int64_t columns,
                          const basin_relation *relation, int64_t node) {
    int64_t count = 0;
    memset(mean, 0, (size_t)columns * sizeof *mean);
    for (int64_t e = relation->row[node]; e < relation->row[node + 1]; e++) {
        int64_t j = relation->col[e];
        if (j == node) continue;
        for (int64_t c = 0; c < columns; c++) mean[c] += from[j * stride + c];
        count++;
    }
    for (int64_t c = 0; c < columns && count; c++) mean[c] /= (float)count;
}

typedef struct averaging {
    float *to;
    const float *from;
    int64_t stride, columns;
    const basin_relation *relation;
} averaging;

static void average_some(const void *context, int64_t first, int64_t last, int place) {
    const averaging *a = context;
    (void)place;
    for (int64_t i = first; i < last; i++)
        basin_neighbour_mean(a->to + i * a->stride, a->from, a->stride, a->columns, a->relation, i);
}

/* to[i] = mean of from over the neighbours of i. */
static void neighbour_means(float *to, const float *from, int64_t stride, int64_t columns,
                            const basin_relation *relation, int64_t nodes) {
    averaging a = {to, from, stride, columns, relation};
    basin_team_run_all(average_some, &a, nodes, 256);
}

const basin_relation *basin_node_inputs_hops(const basin_node_inputs *inputs) {
    int homo = basin_network_main_relation(inputs->network);
    return &inputs->network->relation[homo >= 0 ? homo : inputs->relation[0]];
}

typedef struct scaling {
    float *to;
    int64_t stride;
    const basin_scaler *scale;
    const float *from;
} scaling;

static void scale_some(const void *context, int64_t first, int64_t last, int place) {
    const scaling *s = context;
    (void)place;
    for (int64_t i = first; i < last; i++)
        basin_scaler_apply(s->to + i * s->stride, s->scale, s->from + i * s->scale->features, 1);
}

basin_status basin_node_inputs_scale_rows(basin_node_inputs *inputs, const basin_scaler *scale,
                                          const basin_scaler *edge_scale, basin_error *error) {
    int64_t N = inputs->network->nodes, F = inputs->features, hops = inputs->settings->hops;
    int64_t C = F * basin_scaler_planes(scale->kind), stride = C * (1 + hops);
    bool fitted = scale->mean || scale->quantile; /* else it may not know how many there are */
    basin_scaler own = *scale;
    own.features = F;
    if (fitted && scale->features != F)
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: %lld features (with degrees), the detector was trained on %lld",
                          inputs->network->path, (long long)F, (long long)scale->features);
    float *x = inputs->table = new_floats(N, stride, error);
    if (!x) return BASIN_NO_MEMORY;
    inputs->shape.columns = stride;
    inputs->reader.scale = edge_scale;
    scaling rows = {x, stride, &own, inputs->raw};
    basin_team_run_all(scale_some, &rows, N, 256);
    free(inputs->raw);
    inputs->raw = NULL;
    return BASIN_OK;
}

/* Bags of words are nearly all 0: their first product is that of a list. */
static void choose_list(basin_node_inputs *inputs) {
    static const int64_t sparse = 8, small = 100000; /* cells for one that counts; that are few */
    int64_t cells = inputs->network->nodes * inputs->shape.columns, count = 0;
    if (cells < small || !basin_nodes_may_list(inputs->settings)) return;
    for (int64_t i = 0; i < cells; i++) count += inputs->table[i] != 0;
    if (count && count < INT32_MAX && count * sparse < cells) inputs->shape.listed = count;
}

basin_status basin_node_inputs_scale(basin_node_inputs *inputs, const basin_scaler *scale,
                                     const basin_scaler *edge_scale, basin_error *error) {
    basin_status status = basin_node_inputs_scale_rows(inputs, scale, edge_scale, error);
    int64_t hops = inputs->settings->hops, stride = inputs->shape.columns, C = stride / (1 + hops);
    float *x = inputs->table;
    for (int64_t h = 1; h <= hops && !status; h++)
        neighbour_means(x + h * C, x + (h - 1) * C, stride, C, basin_node_inputs_hops(inputs),
                        inputs->network->nodes);
    if (!status) choose_list(inputs);
    return status;
}

basin_status basin_node_inputs_fit(basin_scaler *scale, basin_scaler *edge_scale,
                                   const basin_node_inputs *inputs, const int64_t *node,
                                   int64_t nodes, basin_error *error) {
    basin_scaler_kind kind;
    basin_status status = basin_nodes_scaling_kind(&kind, inputs->settings, error);
    if (!status)
        status = basin_scaler_fit(scale, kind, inputs->raw, inputs->features, node, nodes, error);
    if (status || !inputs->shape.facts) return status;
    return basin_edge_scale_fit(edge_scale, &inputs->reader, inputs->network, node, nodes, error);
}

double basin_degree_powers(float *w, const basin_relation *relation, int64_t nodes, double power) {
    double sum = 0;
    for (int64_t i = 0; i < nodes; i++) {
        double degree = (double)(relation->row[i + 1] - relation->row[i]);
        w[i] = degree > 0 ? (float)pow(degree, power) : 0;
        sum += w[i];
    }
    return sum;
}

/* Degree to a power, over its mean. */
static basin_status weigh_nodes(float **weight, const basin_relation *relation, int64_t nodes,
                                double power, basin_error *error) {
    float *w = *weight = new_floats(nodes, 1, error);
    if (!w) return BASIN_NO_MEMORY;
    double sum = basin_degree_powers(w, relation, nodes, power);
    for (int64_t i = 0; i < nodes && sum > 0; i++) w[i] *= (float)((double)nodes / sum);
    return BASIN_OK;
}

/* Of the Laplacian of the whole graph, each of mean square 1. */
static basin_status find_eigenvectors(basin_node_inputs *inputs, basin_error *error) {
    const basin_relation *relation = basin_node_inputs_hops(inputs);
    int64_t N = inputs->network->nodes, k = inputs->settings->eigenvectors;
    basin_position_spec spec = {.vectors = k};
    float *value = inputs->eigenvectors = new_floats(N + 1, k, error);
    int32_t *edge = basin_array_new((size_t)relation->edges, 2 * sizeof *edge);
    if (!value || !edge) {
        free(edge);
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for eigenvectors");
    }
    for (int64_t i = 0; i < N; i++)
        for (int64_t e = relation->row[i]; e < relation->row[i + 1]; e++) {
            edge[2 * e] = (int32_t)i;
            edge[2 * e + 1] = relation->col[e];
        }
    basin_status status = basin_positions_of(value, &spec, N, edge, relation->edges, error);
    free(edge);
    /* Rows of a graph begin with a CLS token's, which is of no use here. */
    for (int64_t i = 0; i < N * k && !status; i++) value[i] = value[i + k] * sqrtf((float)N);
    return status;
}

basin_status basin_node_inputs_open(basin_node_inputs *inputs, const basin_network *network,
                                    const basin_nodes_settings *settings, basin_error *error) {
    *inputs = (basin_node_inputs){.network = network, .settings = settings};
    inputs->shape.nodes = inputs->shape.positions = network->nodes;
    basin_status status = pick_relations(inputs, error);
    if (!status && basin_facts_bias(settings)) {
        inputs->shape.facts = basin_facts_width(&network->facts);
        inputs->reader =
            (basin_edge_reader){.relations = inputs->shape.relations,
                                .add_self = basin_choice_is(settings->self_loops, "add")};
        memcpy(inputs->reader.relation, inputs->relation, sizeof inputs->relation);
    }
    if (!status) status = make_raw(inputs, error);
    for (int r = 0; r < inputs->shape.relations && !status; r++) {
        const basin_relation *relation = &network->relation[inputs->relation[r]];
        inputs->shape.pairs[r] =
            relation->edges + (basin_choice_is(settings->self_loops, "add") ? network->nodes : 0);
        if (settings->degree_power > 0)
            status = weigh_nodes(&inputs->node_weight[r], relation, network->nodes,
                                 settings->degree_power, error);
    }
    if (!status && basin_choice_is(settings->position, "laplacian"))
        status = find_eigenvectors(inputs, error);
    if (status) basin_node_inputs_close(inputs);
    return status;
}

size_t basin_node_inputs_bytes(const basin_node_inputs *inputs) {
    const basin_network *n = inputs->network;
    size_t N = (size_t)n->nodes, bytes = N * (size_t)(inputs->shape.columns + n->features) * 4;
    for (int r = 0; r < n->relations; r++)
        bytes += (N + 1) * sizeof(int64_t) +
                 (size_t)n->relation[r].edges *
                     (sizeof(int32_t) + (size_t)n->facts.count * sizeof(float));
    return bytes;
}

void basin_node_inputs_close(basin_node_inputs *inputs) {
    free(inputs->raw);
    free(inputs->table);
    free(inputs->eigenvectors);
    for (int r = 0; r < BASIN_ANOMALY_RELATIONS; r++) free(inputs->node_weight[r]);
    *inputs = (basin_node_inputs){0};
}

basin_status basin_node_inputs_pairs_apart(basin_pairs *pairs, const basin_node_inputs *inputs,
                                           const basin_network *network, int64_t room, int64_t halo,
                                           basin_error *error) {
    const char *loops = inputs->settings->self_loops;
    basin_self_loops self = basin_choice_is(loops, "add")    ? BASIN_SELF_ADD
                            : basin_choice_is(loops, "drop") ? BASIN_SELF_DROP
                                                             : BASIN_SELF_KEEP;
    basin_status status = BASIN_OK;
    for (int r = 0; r < inputs->shape.relations; r++) pairs[r] = (basin_pairs){0};
    for (int r = 0; r < inputs->shape.relations && !status; r++)
        status = basin_network_pairs_apart(&pairs[r], network, inputs->relation[r], self, room,
                                           halo, error);
    for (int r = 0; r < inputs->shape.relations && status; r++) basin_pairs_free(&pairs[r]);
    return status;
}

basin_status basin_node_inputs_pairs(basin_pairs *pairs, const basin_node_inputs *inputs,
                                     const basin_network *network, basin_error *error) {
    return basin_node_inputs_pairs_apart(pairs, inputs, network, network->nodes, 0, error);
}

basin_nodes_net_data basin_node_inputs_data(const basin_node_inputs *inputs,
                                            const basin_pairs *pairs) {
    basin_nodes_net_data data = {.table = inputs->table,
                                 .eigenvectors = inputs->eigenvectors,
                                 .pairs = pairs,
                                 .reader = &inputs->reader,
                                 .network = inputs->network,
                                 .nodes = inputs->shape.nodes};
    for (int r = 0; r < inputs->shape.relations; r++) data.node_weight[r] = inputs->node_weight[r];
    return data;
}
