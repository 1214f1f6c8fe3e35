/* Sampled parts of a network. */
#include "base/sort.h"
#include "basin/random.h"
#include "tasks/nodes/net.h"

enum { STREAM_SUBGRAPH = 1 << 20, STREAM_TARGETS = 2 << 20, STREAM_WALK = 3 << 20 };

static int64_t draws_of(double fraction, int64_t count) {
    int64_t n = (int64_t)ceil(fraction * (double)count);
    return n < 1 ? 1 : n < count ? n : count;
}

int64_t basin_nodes_batch_count(const basin_nodes_source *source) {
    const basin_nodes_settings *r = source->inputs->settings;
    if (!basin_choice_is(r->sampling, "neighbours")) return 1;
    return (draws_of(r->fraction, source->train_count) + r->batch - 1) / r->batch;
}

int64_t basin_nodes_batch_nodes(const basin_nodes_source *source) {
    const basin_nodes_settings *r = source->inputs->settings;
    int64_t all = source->inputs->shape.nodes;
    if (basin_choice_is(r->sampling, "full")) return all;
    bool walk = basin_choice_is(r->sampling, "neighbours");
    return draws_of(r->fraction, walk ? source->train_count : all);
}

/* The first `count` of a random order of 0 .. n - 1: a partial Fisher-Yates. */
static int64_t *choose(int64_t n, int64_t count, uint64_t seed, uint64_t stream) {
    int64_t *item = basin_array_new((size_t)n, sizeof *item);
    basin_random random = basin_random_start(seed, stream, 0);
    for (int64_t i = 0; i < n && item; i++) item[i] = i;
    for (int64_t i = 0; i < count && item; i++) {
        int64_t j = i + (int64_t)basin_random_below(&random, (uint64_t)(n - i)), keep = item[i];
        item[i] = item[j];
        item[j] = keep;
    }
    return item;
}

static basin_status draw_subgraph(basin_nodes_batch *b, const basin_nodes_source *s, uint64_t seed,
                                  int64_t epoch, basin_error *error) {
    const basin_node_inputs *inputs = s->inputs;
    int64_t N = inputs->shape.nodes;
    b->targets = draws_of(inputs->settings->fraction, N);
    BASIN_FREE_AT_EXIT int64_t *node =
        choose(N, b->targets, seed, STREAM_SUBGRAPH + (uint64_t)epoch);
    if (!node) return basin_fail_memory(error, "a subgraph");
    return basin_network_induce(&b->network, inputs->network, node, b->targets, error);
}

static basin_status draw_neighbours(basin_nodes_batch *b, const basin_nodes_source *s,
                                    uint64_t seed, int64_t epoch, int64_t number,
                                    basin_error *error) {
    const basin_node_inputs *inputs = s->inputs;
    const basin_nodes_settings *r = inputs->settings;
    int64_t expected = draws_of(r->fraction, s->train_count), first = number * r->batch;
    int64_t count = expected - first < r->batch ? expected - first : r->batch;
    int64_t shards = s->shards ? s->shards : 1;
    int64_t from = count * s->shard / shards, to = count * (s->shard + 1) / shards;
    int64_t fanout[3] = {r->fanout, 1 + r->fanout / 4, 1 + r->fanout / 4};
    int64_t depth = r->blocks * r->steps;
    int steps = depth < 3 ? (int)depth : 3;
    first += from, count = b->targets = to - from;
    if (!count) return BASIN_OK;
    BASIN_FREE_AT_EXIT int64_t *order =
        choose(s->train_count, expected, seed, STREAM_TARGETS + (uint64_t)epoch);
    if (!order) return basin_fail_memory(error, "a batch");
    for (int64_t i = 0; i < count; i++) order[i] = s->train[order[first + i]];
    /* How many nodes and walked edges there are at most. */
    int64_t level = (r->batch + shards - 1) / shards, nodes = level, edges = 0;
    for (int i = 0; i < steps; i++) nodes += level *= fanout[i], edges += 2 * level;
    b->shape.nodes = basin_int_min(nodes, inputs->shape.nodes);
    for (int i = 0; i < inputs->shape.relations; i++) b->shape.pairs[i] = edges;
    basin_sample_spec spec = {.fanout = fanout,
                              .steps = steps,
                              .seed = seed,
                              .stream = (uint64_t)STREAM_WALK + (uint64_t)epoch * 65536 +
                                        (uint64_t)(number * shards + s->shard)};
    return basin_network_sample(&b->network, inputs->network, order, count, &spec, error);
}

/* Capacities that hold this draw and, mostly, the others: powers of two times a start. */
static void size_up(basin_nodes_batch *b, const basin_node_inputs *inputs) {
    double f = inputs->settings->fraction;
    basin_nodes_shape start = b->shape;
    b->inputs = inputs;
    b->shape = inputs->shape;
    b->shape.placed = true, b->shape.listed = 0;
    b->shape.nodes = basin_int_max(start.nodes, b->network->nodes);
    for (int r = 0; r < b->shape.relations; r++) {
        int64_t pairs = start.pairs[r];
        if (!pairs) pairs = (int64_t)(1.5 * f * f * (double)inputs->shape.pairs[r]) + 1;
        pairs = basin_int_max(pairs, 64);
        while (pairs < b->pairs[r].pairs) pairs *= 2;
        b->shape.pairs[r] = pairs;
    }
}

static basin_status gather(basin_nodes_batch *b, const basin_nodes_source *s, basin_error *error) {
    const basin_node_inputs *inputs = s->inputs;
    const basin_network *n = b->network;
    int64_t width = basin_nodes_width(inputs->settings);
    BASIN_TRY(basin_rows_take(&b->table, inputs->node.row, inputs->shape.columns, n, error));
    BASIN_TRY(basin_rows_take(&b->label, s->label, width, n, error));
    BASIN_TRY(basin_rows_take(&b->weight, s->weight, 1, n, error));
    for (int64_t i = b->targets; i < n->nodes && b->weight; i++) b->weight[i] = 0;
    BASIN_TRY(BASIN_NEW_RAW(&b->place, n->nodes, "a batch", error));
    for (int64_t i = 0; i < n->nodes; i++) b->place[i] = (int32_t)n->origin[i];
    return BASIN_OK;
}

static basin_status fill(basin_nodes_batch *batch, const basin_nodes_source *source, bool given,
                         basin_error *error) {
    const basin_network *n = batch->network;
    BASIN_TRY(basin_node_inputs_pairs(batch->pairs, source->inputs, n, n->nodes, 0, error));
    BASIN_TRY(gather(batch, source, error));
    for (int r = 0; r < source->inputs->shape.relations && given; r++)
        batch->shape.pairs[r] = batch->pairs[r].pairs;
    size_up(batch, source->inputs);
    return BASIN_OK;
}

basin_status basin_nodes_batch_draw(basin_nodes_batch *batch, const basin_nodes_source *source,
                                    uint64_t seed, int64_t epoch, int64_t number,
                                    basin_error *error) {
    *batch = (basin_nodes_batch){0};
    bool walk = basin_choice_is(source->inputs->settings->sampling, "neighbours");
    basin_status status = walk ? draw_neighbours(batch, source, seed, epoch, number, error)
                               : draw_subgraph(batch, source, seed, epoch, error);
    if (!status && batch->network) status = fill(batch, source, false, error);
    if (status) basin_nodes_batch_free(batch);
    return status;
}

basin_status basin_nodes_batch_take(basin_nodes_batch *batch, const basin_nodes_source *source,
                                    basin_network *part, basin_error *error) {
    *batch = (basin_nodes_batch){.network = part};
    BASIN_TRY_OR(fill(batch, source, true, error), basin_nodes_batch_free(batch));
    return BASIN_OK;
}

basin_nodes_net_data basin_nodes_batch_data(const basin_nodes_batch *batch) {
    return (basin_nodes_net_data){.table = batch->table,
                                  .place = batch->place,
                                  .label = batch->label,
                                  .weight = batch->weight,
                                  .pairs = batch->pairs,
                                  .inputs = batch->inputs,
                                  .network = batch->network,
                                  .nodes = batch->network->nodes};
}

void basin_nodes_batch_free(basin_nodes_batch *batch) {
    basin_network_close(batch->network);
    free(batch->table), free(batch->place);
    free(batch->label), free(batch->weight);
    for (int r = 0; r < BASIN_MAX_RELATIONS; r++) basin_pairs_free(&batch->pairs[r]);
    *batch = (basin_nodes_batch){0};
}
