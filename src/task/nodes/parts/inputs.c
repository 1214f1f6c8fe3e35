/* Inputs of a graph in parts: tables of each part as those of a whole graph, with what concerns all
 * nodes found together: scales, the mean weight, means over neighbours that other parts have. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/team/team.h"
#include "task/nodes/parts/parts.h"

static basin_status no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the inputs of parts");
}

/* ---- what can be had ---- */

static basin_status check(const basin_nodes_settings *s, basin_error *error) {
    const struct {
        bool asked;
        const char *what;
    } refused[] = {
        {!basin_choice_is(s->position, "none"), "position none"},
        {!basin_choice_is(s->sampling, "auto") && !basin_choice_is(s->sampling, "full"),
         "sampling full, or neighbours of the whole graph, in 1 part"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i].asked)
            return basin_fail(error, BASIN_UNSUPPORTED,
                              "position %s, sampling %s on a graph in parts; wanted %s",
                              s->position, s->sampling, refused[i].what);
    return BASIN_OK;
}

/* ---- weights of nodes ---- */

/* Degrees to a power over their mean among all nodes, summed part by part. */
static basin_status weigh(basin_parted_inputs *in, int relation, basin_error *error) {
    basin_parts *p = in->parts;
    double *sum = calloc((size_t)p->parts, sizeof *sum), all = 0;
    if (!sum) return no_memory(error);
    for (int64_t k = 0; k < p->count; k++) {
        const basin_node_inputs *part = &in->part[k];
        sum[p->first + k] = basin_degree_powers(part->node_weight[relation],
                                                &part->network->relation[part->relation[relation]],
                                                part->network->nodes, part->settings->degree_power);
    }
    basin_status status = basin_ranks_sum(p->ranks, sum, p->parts, error); /* others' are zero */
    for (int64_t q = 0; q < p->parts; q++) all += sum[q];
    for (int64_t k = 0; k < p->count && all > 0 && !status; k++)
        for (int64_t i = 0; i < in->part[k].network->nodes; i++)
            in->part[k].node_weight[relation][i] *= (float)((double)p->face->nodes / all);
    free(sum);
    return status;
}

/* ---- opening ---- */

static void set_shape(basin_parted_inputs *in) {
    const basin_parts *p = in->parts;
    const basin_node_inputs *first = &in->part[0];
    bool loops = basin_choice_is(first->settings->self_loops, "add");
    in->shape = first->shape;
    in->shape.nodes = in->shape.positions = p->most_nodes;
    in->shape.halo = p->most_halo;
    in->shape.parts = p->parts;
    in->whole = (basin_node_inputs){.network = p->face, .settings = first->settings};
    in->whole.shape = first->shape;
    in->whole.shape.nodes = in->whole.shape.positions = p->face->nodes;
    for (int r = 0; r < in->shape.relations; r++) {
        in->shape.pairs[r] = p->most_edges[first->relation[r]] + (loops ? p->most_nodes : 0);
        in->whole.relation[r] = first->relation[r];
    }
}

basin_status basin_parted_inputs_open(basin_parted_inputs *in, basin_parts *parts,
                                      const basin_nodes_settings *settings, basin_error *error) {
    *in = (basin_parted_inputs){.parts = parts};
    basin_status status = check(settings, error);
    if (!status && !(in->part = calloc((size_t)parts->count, sizeof *in->part)))
        status = no_memory(error);
    for (int64_t k = 0; k < parts->count && !status; k++)
        status = basin_node_inputs_open(&in->part[k], parts->part[k]->network, settings, error);
    status = basin_ranks_agree(parts->ranks, status, error);
    if (!status) set_shape(in);
    for (int r = 0; r < in->shape.relations && settings->degree_power > 0 && !status; r++)
        status = weigh(in, r, error);
    if (status) basin_parted_inputs_close(in);
    return status;
}

void basin_parted_inputs_close(basin_parted_inputs *in) {
    for (int64_t k = 0; in->part && k < in->parts->count; k++)
        basin_node_inputs_close(&in->part[k]);
    free(in->part);
    *in = (basin_parted_inputs){0};
}

size_t basin_parted_inputs_bytes(const basin_parted_inputs *in) {
    size_t bytes = 0;
    for (int64_t k = 0; k < in->parts->count; k++) bytes += basin_node_inputs_bytes(&in->part[k]);
    return bytes;
}

/* ---- scales ---- */

/* Every rank fits the same scale, on the rows of all training nodes. */
basin_status basin_parted_inputs_fit(basin_scaler *scale, const basin_parted_inputs *in,
                                     const uint8_t *split, basin_error *error) {
    basin_parts *p = in->parts;
    int64_t N = p->face->nodes, F = in->part[0].features, count = 0;
    uint8_t *chosen = calloc((size_t)N, 1);
    const void **mine = basin_array_new((size_t)p->count, sizeof *mine);
    for (int64_t i = 0; i < N && chosen; i++) count += chosen[i] = split[i] == BASIN_PART_TRAIN;
    float *raw = basin_array_new((size_t)count, (size_t)F * sizeof *raw);
    int64_t *node = basin_array_new((size_t)count, sizeof *node);
    basin_status status = chosen && mine && raw && node ? BASIN_OK : no_memory(error);
    for (int64_t k = 0; k < p->count && !status; k++) mine[k] = in->part[k].raw;
    for (int64_t i = 0; i < count && !status; i++) node[i] = i;
    if (!status) status = basin_parts_gather(raw, p, mine, chosen, (size_t)F * sizeof *raw, error);
    if (!status) {
        basin_node_inputs train = {.settings = in->part[0].settings, .features = F, .raw = raw};
        basin_scaler none = {0}; /* facts are refused */
        status = basin_node_inputs_fit(scale, &none, &train, node, count, error);
    }
    free(chosen), free(mine), free(raw), free(node);
    return status;
}

/* ---- means over neighbours ---- */

/* Columns from .. from + C - 1 of each part's table, and those of its halo, into new rows. */
static basin_status take_columns(float **rows, basin_parted_inputs *in, int64_t from, int64_t C,
                                 basin_error *error) {
    basin_parts *p = in->parts;
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < p->count && !status; k++) {
        int64_t n = p->part[k]->network->nodes, S = in->part[k].shape.columns;
        size_t row = (size_t)C * sizeof **rows;
        rows[k] = basin_array_new((size_t)(n + p->part[k]->halo), row);
        if (!rows[k]) status = no_memory(error);
        for (int64_t i = 0; i < n && !status; i++)
            memcpy(rows[k] + i * C, in->part[k].table + i * S + from, row);
    }
    status = basin_ranks_agree(p->ranks, status, error);
    return status ? status : basin_parts_fetch(p, rows, C, error);
}

/* Means of rows [n + h, C] into columns `to` .. of a part's table. */
typedef struct hop {
    const basin_node_inputs *part;
    const float *rows;
    int64_t to, columns;
} hop;

static void take_means(const void *context, int64_t first, int64_t last, int place) {
    const hop *h = context;
    const basin_relation *relation = basin_node_inputs_hops(h->part);
    float *to = h->part->table + h->to;
    (void)place;
    for (int64_t i = first; i < last; i++)
        basin_neighbour_mean(to + i * h->part->shape.columns, h->rows, h->columns, h->columns,
                             relation, i);
}

basin_status basin_parted_inputs_scale(basin_parted_inputs *in, const basin_scaler *scale,
                                       basin_error *error) {
    basin_parts *p = in->parts;
    int64_t hops = in->part[0].settings->hops;
    float **rows = calloc((size_t)p->count, sizeof *rows);
    basin_status status = rows ? BASIN_OK : no_memory(error);
    for (int64_t k = 0; k < p->count && !status; k++)
        status = basin_node_inputs_scale_rows(&in->part[k], scale, NULL, error);
    status = basin_ranks_agree(p->ranks, status, error);
    in->shape.columns = in->whole.shape.columns = in->part[0].shape.columns;
    int64_t C = in->shape.columns / (1 + hops);
    for (int64_t h = 1; h <= hops && !status; h++) {
        status = take_columns(rows, in, (h - 1) * C, C, error);
        for (int64_t k = 0; k < p->count; k++) {
            int64_t n = p->part[k]->network->nodes;
            hop of = {&in->part[k], rows[k], h * C, C};
            if (!status) basin_team_run(take_means, &of, n, 256, basin_parts_threads(p, n * C));
            free(rows[k]);
            rows[k] = NULL;
        }
    }
    free(rows);
    return status;
}

/* ---- into plans ---- */

/* Rows of all nodes become those of a part; NULL stays NULL. */
static basin_status take_rows(float **to, const float *from /* [N, width] */, int64_t width,
                              const basin_network *n, basin_error *error) {
    size_t row = (size_t)width * sizeof **to;
    *to = NULL;
    if (!from) return BASIN_OK;
    if (!(*to = basin_array_new((size_t)n->nodes, row))) return no_memory(error);
    for (int64_t i = 0; i < n->nodes; i++)
        memcpy(*to + i * width, from + n->origin[i] * width, row);
    return BASIN_OK;
}

basin_status basin_parted_inputs_write(const basin_parted_inputs *in, int64_t k,
                                       const basin_nodes_net *net, basin_plan *plan,
                                       const float *label, const float *weight,
                                       basin_error *error) {
    const basin_node_inputs *part = &in->part[k];
    const basin_network *n = part->network;
    basin_pairs pairs[BASIN_ANOMALY_RELATIONS] = {{0}};
    float *own_label = NULL, *own_weight = NULL;
    bool graph = basin_nodes_on_graph(part->settings);
    basin_status status = take_rows(&own_label, label, basin_nodes_width(part->settings), n, error);
    if (!status) status = take_rows(&own_weight, weight, 1, n, error);
    if (!status && graph)
        status =
            basin_node_inputs_pairs_apart(pairs, part, n, in->shape.nodes, in->shape.halo, error);
    if (!status) {
        basin_nodes_net_data data = basin_node_inputs_data(part, pairs);
        data.label = own_label, data.weight = own_weight;
        status = basin_nodes_net_write(net, plan, &data, error);
    }
    for (int r = 0; r < part->shape.relations && graph; r++) basin_pairs_free(&pairs[r]);
    free(own_label), free(own_weight);
    return status;
}
