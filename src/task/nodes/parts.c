/* A graph in parts: inputs, training and scoring; see parts.h. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/device.h"
#include "base/team/team.h"
#include "base/try.h"
#include "task/nodes/fit.h"
#include "task/nodes/parts.h"
#include "task/nodes/stream.h"
#include "train/gradients.h"

static basin_status no_memory(basin_error *error) {
    return basin_fail_memory(error, "the inputs of parts");
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

/* ---- Before training on a graph in parts: inputs, plans and what they take. */

basin_status basin_nodes_prepare_parts(basin_nodes_fitting *f, basin_error *error) {
    f->work.parts->threads = basin_backend_threads(f->work.backend);
    basin_status status = basin_parted_inputs_open(&f->parted, f->work.parts, &f->settings, error);
    if (!status) f->settings.sampling = "full";
    if (!status) status = basin_parted_inputs_fit(&f->model->scale, &f->parted, f->part, error);
    if (!status) status = basin_parted_inputs_scale(&f->parted, &f->model->scale, error);
    /* What asks for sizes alone finds those of the whole. */
    if (!status) f->inputs = f->parted.whole;
    return status;
}

/* Weights that make up 1 over all training nodes. */
static float *share_weights(const basin_nodes_fitting *f) {
    int64_t N = f->network->nodes;
    float *share = basin_array_new((size_t)N, sizeof *share);
    double sum = 0;
    for (int64_t i = 0; i < N; i++) sum += (double)f->weight[i];
    for (int64_t i = 0; i < N && share; i++) share[i] = (float)((double)f->weight[i] / sum);
    return share;
}

static void describe(basin_nodes_fitting *f) {
    const basin_parts *p = f->work.parts;
    f->bytes = basin_parted_trainer_bytes(f->joint) + basin_parted_inputs_bytes(&f->parted);
    snprintf(f->model->trained_on, sizeof f->model->trained_on,
             "the full graph in %lld parts on %lld rank%s, %.2f GiB on the first",
             (long long)p->parts, (long long)basin_ranks_count(p->ranks),
             basin_ranks_count(p->ranks) > 1 ? "s" : "", (double)f->bytes / (1 << 30));
}

basin_status basin_nodes_make_parts(basin_nodes_fitting *f, const basin_trainer_spec *spec,
                                    basin_error *error) {
    float *weight = share_weights(f);
    if (!weight) return basin_fail_memory(error, "weights");
    basin_status status = basin_nodes_net_new(&f->net, &f->settings, &f->parted.shape, true, error);
    if (!status)
        status = basin_parted_trainer_new(&f->joint, &f->parted, &f->net, f->store, spec, f->label,
                                          weight, error);
    free(weight);
    if (!status) describe(f);
    return status;
}

/* ---- Training on a graph in parts: each plan gives its part's share of the loss and of the
 * gradients, activations of halos go round in the middle of it; then the shares are summed in the
 * order of the parts and the update follows, the same on every rank. */

struct basin_parted_trainer {
    basin_parts *parts;
    const basin_nodes_net *net;
    basin_store *store;
    basin_schedule schedule;
    basin_expr *gradient; /* [params] */
    basin_plan **plan;    /* [parts of this rank] loss and gradients */
    basin_params sums;    /* states "gradient.NAME" */
    basin_adamw adamw;
    basin_plan *update;
    basin_ranks_tree *tree;
};

static basin_status trainer_no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory to train on parts");
}

/* ---- plans ---- */

static basin_status make_plan(basin_parted_trainer *t, int64_t k, basin_error *error) {
    size_t count = t->net->params.count;
    basin_expr *output = basin_array_new(count + 1, sizeof *output);
    if (!output) return trainer_no_memory(error);
    output[0] = t->net->loss;
    for (size_t i = 0; i < count; i++) output[i + 1] = t->gradient[i];
    basin_plan_spec spec = {.output = output, .outputs = (int)count + 1};
    basin_status status = basin_plan_new(&t->plan[k], t->store, &spec, error);
    free(output);
    return status;
}

static basin_status make_update(basin_parted_trainer *t, const basin_trainer_spec *spec,
                                basin_error *error) {
    const basin_params *params = &t->net->params;
    basin_expr *sum = basin_array_new(params->count, sizeof *sum);
    if (!sum) return trainer_no_memory(error);
    basin_params_begin(&t->sums, params->graph);
    for (size_t i = 0; i < params->count; i++) {
        basin_expr p = params->param[i].state;
        sum[i] = basin_param_add(&t->sums, "gradient.", basin_expr_name(p), basin_expr_shape(p),
                                 (basin_init){0});
    }
    const basin_error *found = basin_graph_error(params->graph);
    basin_status status = found ? basin_fail(error, found->status, "%s", found->text) : BASIN_OK;
    if (!status) status = basin_adamw_from(&t->adamw, params, sum, &spec->adamw, error);
    basin_plan_spec plan = {.update = t->adamw.update, .updates = t->adamw.updates};
    if (!status) status = basin_plan_new(&t->update, t->store, &plan, error);
    free(sum);
    return status;
}

/* A batch norm's mean would be that of one part. */
static basin_status refuse_statistics(const basin_params *params, basin_error *error) {
    for (size_t i = 0; i < params->count; i++)
        if (params->param[i].statistic)
            return basin_fail(error, BASIN_UNSUPPORTED,
                              "a model with batch norm on a graph in parts; wanted one without, or "
                              "the whole graph");
    return BASIN_OK;
}

static int64_t count_numbers(const basin_params *params) {
    int64_t count = 0;
    for (size_t i = 0; i < params->count; i++)
        count += basin_shape_count(basin_expr_shape(params->param[i].state));
    return count;
}

static basin_status make(basin_parted_trainer *t, const basin_parted_inputs *inputs,
                         const basin_trainer_spec *spec, const float *label, const float *weight,
                         basin_error *error) {
    const basin_params *params = &t->net->params;
    basin_status status = BASIN_OK;
    t->gradient = basin_array_new(params->count, sizeof *t->gradient);
    t->plan = calloc((size_t)t->parts->count, sizeof *t->plan);
    if (!t->gradient || !t->plan) status = trainer_no_memory(error);
    if (!status) status = refuse_statistics(params, error);
    if (!status) status = basin_gradients(t->gradient, params, t->net->loss, error);
    for (int64_t k = 0; k < t->parts->count && !status; k++) {
        status = make_plan(t, k, error);
        if (!status)
            status = basin_parted_inputs_write(inputs, k, t->net, t->plan[k], label, weight, error);
    }
    if (!status) status = make_update(t, spec, error);
    if (!status)
        status = basin_ranks_tree_new(&t->tree, t->parts->ranks, t->parts->parts,
                                      count_numbers(params), NULL, error);
    return basin_ranks_agree(t->parts->ranks, status, error);
}

basin_status basin_parted_trainer_new(basin_parted_trainer **trainer,
                                      const basin_parted_inputs *inputs, const basin_nodes_net *net,
                                      basin_store *store, const basin_trainer_spec *spec,
                                      const float *label, const float *weight, basin_error *error) {
    *trainer = NULL;
    basin_parted_trainer *t = calloc(1, sizeof *t);
    if (!t) return trainer_no_memory(error);
    t->parts = inputs->parts, t->net = net, t->store = store, t->schedule = spec->schedule;
    basin_status status = make(t, inputs, spec, label, weight, error);
    if (status)
        basin_parted_trainer_free(t);
    else
        *trainer = t;
    return status;
}

void basin_parted_trainer_free(basin_parted_trainer *t) {
    if (!t) return;
    for (int64_t k = 0; k < t->parts->count && t->plan; k++) basin_plan_free(t->plan[k]);
    basin_plan_free(t->update);
    basin_adamw_free(&t->adamw);
    basin_params_free(&t->sums);
    basin_ranks_tree_free(t->tree);
    free(t->plan), free(t->gradient);
    free(t);
}

void basin_parted_trainer_rest(basin_parted_trainer *t) {
    for (int64_t k = 0; k < t->parts->count; k++) basin_plan_release(t->plan[k]);
}

size_t basin_parted_trainer_bytes(const basin_parted_trainer *t) {
    size_t bytes = 0;
    for (int64_t k = 0; k < t->parts->count; k++) {
        basin_plan_stats stats = basin_plan_get_stats(t->plan[k]);
        bytes += stats.arena_bytes + stats.input_bytes;
    }
    return bytes;
}

basin_status basin_parted_trainer_mask(basin_parted_trainer *t,
                                       const basin_nodes_settings *settings, int64_t member,
                                       basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < t->parts->count && !status; k++)
        status = basin_nodes_mask_write(t->plan[k], t->net->mask, settings, member, error);
    return status;
}

/* ---- a step ---- */

/* Other draws for every part; those of the first are as for a whole graph. */
static basin_status write_seeds(basin_parted_trainer *t, uint64_t seed, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < t->parts->count && !status; k++) {
        uint64_t mixed = seed ^ (uint64_t)(t->parts->first + k) * UINT64_C(0xd1342543de82ef95);
        status = basin_nodes_net_write_seed(t->net, t->plan[k], mixed, error);
    }
    return status;
}

/* The gradients of one part, one after the other. */
static basin_status read_gradients(basin_parted_trainer *t, int64_t k, basin_error *error) {
    float *to = basin_ranks_tree_next(t->tree);
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < t->net->params.count && !status; i++) {
        basin_shape shape = basin_expr_shape(t->gradient[i]);
        basin_tensor tensor = basin_tensor_borrow(to, BASIN_F32, shape);
        status = basin_plan_read(t->plan[k], t->gradient[i], &tensor, error);
        to += basin_shape_count(shape);
    }
    if (!status) basin_ranks_tree_push(t->tree);
    return status;
}

static basin_status sum_gradients(basin_parted_trainer *t, basin_error *error) {
    float *sum = NULL;
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < t->parts->count && !status; k++) status = read_gradients(t, k, error);
    if (!status) status = basin_ranks_tree_sum(&sum, t->tree, error);
    for (size_t i = 0; i < t->sums.count && !status; i++) {
        basin_expr state = t->sums.param[i].state;
        basin_shape shape = basin_expr_shape(state);
        basin_tensor tensor = basin_tensor_borrow(sum, BASIN_F32, shape);
        status = basin_store_write(t->store, basin_expr_name(state), &tensor, error);
        sum += basin_shape_count(shape);
    }
    return status;
}

static basin_status sum_losses(basin_parted_trainer *t, double *loss, int64_t step,
                               basin_error *error) {
    double *share = calloc((size_t)t->parts->parts, sizeof *share);
    if (!share) return trainer_no_memory(error);
    for (int64_t k = 0; k < t->parts->count; k++)
        share[t->parts->first + k] = basin_plan_scalar(t->plan[k], t->net->loss);
    basin_status status =
        basin_ranks_sum(t->parts->ranks, share, t->parts->parts, error); /* others' are zero */
    *loss = 0;
    for (int64_t q = 0; q < t->parts->parts; q++) *loss += share[q];
    free(share);
    if (status || isfinite(*loss)) return status;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "the loss is %g at step %lld, wanted a finite number: a smaller learning "
                      "rate or a smaller alpha may help",
                      *loss, (long long)step);
}

basin_status basin_parted_trainer_step(basin_parted_trainer *t, double *loss, int64_t step,
                                       uint64_t seed, basin_error *error) {
    const basin_schedule *s = &t->schedule;
    double rate = basin_rate_cosine(step, s->warmup, s->total, s->first, s->peak, s->last);
    basin_exchange_way way = {basin_parts_move, t->parts};
    BASIN_TRY(write_seeds(t, seed, error));
    BASIN_TRY(basin_plans_run(t->plan, (int)t->parts->count, &way, error));
    BASIN_TRY(sum_gradients(t, error));
    BASIN_TRY(sum_losses(t, loss, step, error));
    BASIN_TRY(basin_adamw_write(&t->adamw, t->update, step + 1, rate, error));
    return basin_plan_run(t->update, error);
}

/* ---- Training on samples: targets with some of their neighbours, of a graph that every rank has
 * whole (a file that is mapped is in memory once a host). A batch of targets is cut into shards,
 * which ranks share; a shard is a function of the member's seed and its place. See fit.h. */

enum { BATCH_LEAST = 32 }; /* targets, below which a step learns next to nothing */

basin_nodes_source basin_nodes_source_of(const basin_nodes_fitting *f) {
    return (basin_nodes_source){&f->inputs, f->label,       f->weight,
                                f->train,   f->train_count, .shards = f->settings.shards};
}

/* ---- the plan ---- */

static basin_status first_shape(basin_nodes_shape *shape, const basin_nodes_fitting *f,
                                basin_error *error) {
    basin_nodes_source source = basin_nodes_source_of(f);
    basin_nodes_batch batch;
    source.shard = source.shards > 1 ? source.shards - 1 : 0; /* the last has some in any case */
    BASIN_TRY(basin_nodes_batch_draw(&batch, &source, (uint64_t)f->settings.seed, 0, 0, error));
    *shape = batch.shape;
    basin_nodes_batch_free(&batch);
    return BASIN_OK;
}

static basin_status make_fitting_trainer(basin_nodes_fitting *f, basin_error *error) {
    for (;;) {
        basin_nodes_shape shape;
        basin_status status = first_shape(&shape, f, error);
        if (!status) status = basin_nodes_make_trainer(f, &shape, error);
        if (status != BASIN_NO_MEMORY || !f->shrink || f->settings.batch <= BATCH_LEAST)
            return status;
        f->settings.batch /= 2;
    }
}

basin_status basin_nodes_make_samples(basin_nodes_fitting *f, basin_error *error) {
    int64_t asked = f->settings.batch;
    basin_status status = make_fitting_trainer(f, error);
    f->model->settings.batch = f->settings.batch;
    if (!status && f->settings.batch < asked)
        basin_watch_note(f->work.watch, "batches of %lld targets: %lld would not fit",
                         (long long)f->settings.batch, (long long)asked);
    if (!status && *f->shards.how) basin_watch_note(f->work.watch, "%s", f->shards.how);
    return status;
}

/* ---- a step ---- */

static bool same_shape(const basin_nodes_shape *a, const basin_nodes_shape *b) {
    bool same = a->nodes == b->nodes;
    for (int r = 0; r < a->relations; r++) same = same && a->pairs[r] == b->pairs[r];
    return same;
}

/* Draws a shard and writes it to the plan; *weight is that of its targets, 0: there are none. */
static basin_status write_sample(basin_nodes_fitting *f, double *weight, int64_t shard,
                                 const basin_run_place *place, uint64_t seed, basin_error *error) {
    basin_nodes_source source = basin_nodes_source_of(f);
    basin_nodes_batch batch;
    source.shard = shard;
    *weight = 0;
    basin_status status =
        basin_nodes_batch_draw(&batch, &source, seed, place->epoch, place->batch, error);
    if (status || !batch.network) return status;
    for (int64_t i = 0; i < batch.targets; i++) *weight += (double)batch.weight[i];
    if (!same_shape(&batch.shape, &f->planned))
        status = basin_nodes_make_trainer(f, &batch.shape, error);
    basin_nodes_net_data data = basin_nodes_batch_data(&batch);
    if (!status) status = basin_nodes_net_write(&f->net, f->trainer.plan, &data, error);
    basin_nodes_batch_free(&batch);
    return status;
}

/* A batch that is one shard, in a process alone. */
static basin_status step_alone(basin_nodes_fitting *f, double *loss, const basin_run_place *place,
                               uint64_t member_seed, uint64_t seed, basin_error *error) {
    double weight;
    basin_status status = write_sample(f, &weight, 0, place, member_seed, error);
    f->trainer.step = place->step;
    if (!status) status = basin_nodes_net_write_seed(&f->net, f->trainer.plan, seed, error);
    return status ? status : basin_trainer_step(&f->trainer, loss, error);
}

/* Where scoring took the plan's memory, a shard without targets finds none. */
static basin_status add_empty(basin_nodes_fitting *f, basin_error *error) {
    basin_nodes_shape shape;
    basin_status status = BASIN_OK;
    if (!f->trainer.plan) {
        status = first_shape(&shape, f, error);
        if (!status) status = basin_nodes_make_trainer(f, &shape, error);
    }
    return status ? status : basin_shards_add_empty(&f->shards, &f->trainer, error);
}

static basin_status add_shard(basin_nodes_fitting *f, int64_t shard, const basin_run_place *place,
                              uint64_t member_seed, uint64_t seed, basin_error *error) {
    double weight;
    uint64_t own = seed ^ (uint64_t)shard * UINT64_C(0xd1342543de82ef95);
    BASIN_TRY(write_sample(f, &weight, shard, place, member_seed, error));
    if (!(weight > 0)) return add_empty(f, error);
    basin_status status = basin_nodes_net_write_seed(&f->net, f->trainer.plan, own, error);
    return status ? status : basin_shards_add(&f->shards, &f->trainer, weight, error);
}

basin_status basin_nodes_step_samples(basin_nodes_fitting *f, double *loss,
                                      const basin_run_place *place, uint64_t member_seed,
                                      uint64_t seed, basin_error *error) {
    basin_status status = BASIN_OK;
    double weight;
    if (!f->shards.tree) return step_alone(f, loss, place, member_seed, seed, error);
    for (int64_t i = 0; i < f->shards.share.count && !status; i++)
        status = add_shard(f, f->shards.share.first + i, place, member_seed, seed, error);
    f->trainer.step = place->step;
    return status ? status : basin_shards_step(&f->shards, loss, &weight, &f->trainer, error);
}

/* ---- Probabilities of all nodes of a graph in parts, by one plan a part, or where these do not
 * fit by streams that go on in step. */

struct basin_parted_scorer {
    basin_parts *parts;
    const basin_nodes_settings *settings;
    const basin_nodes_net *net;
    double **row;                /* [parts of this rank] probabilities */
    basin_plan **plan;           /* [parts of this rank], */
    basin_nodes_stream **stream; /* or these; NULL: plans */
    int relations;
};

static basin_status scorer_no_memory(basin_error *error) {
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory to score parts");
}

/* Bytes that a node's probabilities take. */
static size_t width_of(const basin_parted_scorer *s) {
    return (size_t)basin_nodes_width(s->settings) * sizeof **s->row;
}

/* ---- making ---- */

static basin_status scorer_make_plan(basin_parted_scorer *s, const basin_parted_inputs *inputs,
                                     int64_t k, basin_store *store, basin_error *error) {
    basin_expr output = s->net->probability;
    basin_plan_spec spec = {.output = &output, .outputs = 1};
    BASIN_TRY(basin_plan_new(&s->plan[k], store, &spec, error));
    return basin_parted_inputs_write(inputs, k, s->net, s->plan[k], NULL, NULL, error);
}

static basin_status make_part(basin_parted_scorer *s, const basin_parted_inputs *inputs, int64_t k,
                              basin_store *store, const basin_nodes_resources *stream,
                              basin_error *error) {
    s->row[k] = basin_array_new((size_t)inputs->shape.nodes, width_of(s));
    if (!s->row[k]) return scorer_no_memory(error);
    if (stream && s->settings->smoothing > 0)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "smoothing %lld of parts that are streamed, as their plans do not fit; "
                          "wanted more memory, more ranks, or a model with smoothing 0",
                          (long long)s->settings->smoothing);
    if (!stream) return scorer_make_plan(s, inputs, k, store, error);
    return basin_nodes_stream_new(&s->stream[k], &inputs->part[k], s->parts->part[k]->halo, store,
                                  stream, error);
}

basin_status basin_parted_scorer_new(basin_parted_scorer **scorer,
                                     const basin_parted_inputs *inputs, const basin_nodes_net *net,
                                     basin_store *store, const basin_nodes_resources *stream,
                                     basin_error *error) {
    basin_parts *p = inputs->parts;
    *scorer = NULL;
    basin_parted_scorer *s = calloc(1, sizeof *s);
    basin_status status = s ? BASIN_OK : scorer_no_memory(error);
    if (s) {
        *s = (basin_parted_scorer){.parts = p, .settings = inputs->part[0].settings, .net = net};
        s->relations = inputs->shape.relations;
        s->plan = calloc((size_t)p->count, sizeof(basin_plan *));
        s->row = calloc((size_t)p->count, sizeof(double *));
        if (stream) s->stream = calloc((size_t)p->count, sizeof(basin_nodes_stream *));
        if (!s->plan || !s->row || (stream && !s->stream)) status = scorer_no_memory(error);
    }
    for (int64_t k = 0; k < p->count && !status; k++)
        status = make_part(s, inputs, k, store, stream, error);
    status = basin_ranks_agree(p->ranks, status, error);
    if (status)
        basin_parted_scorer_free(s);
    else
        *scorer = s;
    return status;
}

void basin_parted_scorer_free(basin_parted_scorer *s) {
    if (!s) return;
    for (int64_t k = 0; k < s->parts->count; k++) {
        if (s->plan) basin_plan_free(s->plan[k]);
        if (s->stream) basin_nodes_stream_free(s->stream[k]);
        if (s->row) free(s->row[k]);
    }
    free(s->plan), free(s->stream), free(s->row);
    free(s);
}

bool basin_parted_scorer_streams(const basin_parted_scorer *s) { return s->stream != NULL; }

size_t basin_parted_scorer_bytes(const basin_parted_scorer *s) {
    size_t bytes = 0;
    for (int64_t k = 0; s->stream && k < s->parts->count; k++)
        bytes += basin_nodes_stream_bytes(s->stream[k]);
    return bytes;
}

/* ---- plans ---- */

static basin_status run_plans(basin_parted_scorer *s, int64_t member, basin_error *error) {
    basin_exchange_way way = {basin_parts_move, s->parts};
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < s->parts->count && !status; k++)
        status = basin_nodes_mask_write(s->plan[k], s->net->mask, s->settings, member, error);
    if (!status) status = basin_plans_run(s->plan, (int)s->parts->count, &way, error);
    for (int64_t k = 0; k < s->parts->count && !status; k++) {
        basin_shape shape = basin_expr_shape(s->net->probability);
        basin_tensor out = basin_tensor_borrow(s->row[k], BASIN_F64, shape);
        status = basin_plan_read(s->plan[k], s->net->probability, &out, error);
    }
    for (int64_t k = 0; k < s->parts->count; k++) basin_plan_release(s->plan[k]);
    return status;
}

/* ---- streams ---- */

static basin_status exchange(basin_parted_scorer *s, basin_stream_phase phase, int relation,
                             basin_error *error) {
    basin_exchange_rows *rows = basin_array_new((size_t)s->parts->count, sizeof *rows);
    if (!rows) return scorer_no_memory(error);
    for (int64_t k = 0; k < s->parts->count; k++)
        rows[k] = basin_nodes_stream_rows(s->stream[k], phase, relation);
    basin_status status = basin_parts_move(s->parts, rows, (int)s->parts->count, error);
    free(rows);
    return status;
}

/* A step over one relation: all parts do each phase, then their halos hear of it. */
static basin_status step(basin_parted_scorer *s, int block, int relation, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int i = 0; i < BASIN_STREAM_PHASES && !status; i++) {
        basin_stream_phase phase = (basin_stream_phase)i;
        for (int64_t k = 0; k < s->parts->count && !status; k++)
            status = basin_nodes_stream_phase(s->stream[k], phase, block, relation, error);
        if (!status && phase != BASIN_STREAM_KEY && s->settings->attention)
            status = exchange(s, phase, relation, error);
    }
    return status;
}

static basin_status descend(basin_parted_scorer *s, basin_error *error) {
    basin_status status = BASIN_OK;
    int done = 0;
    for (int r = 0; r < s->relations && !status; r++) {
        if (s->settings->degree_power > 0) status = exchange(s, BASIN_STREAM_KEY, r, error);
        for (int64_t b = 0; b < s->settings->blocks; b++)
            for (int64_t t = 0; t < s->settings->steps && !status; t++) {
                basin_nodes_stream_show(s->stream[0], done++);
                status = step(s, (int)b, r, error);
            }
    }
    return status;
}

static basin_status run_streams(basin_parted_scorer *s, int64_t member, basin_error *error) {
    basin_status status = BASIN_OK;
    for (int64_t k = 0; k < s->parts->count && !status; k++)
        status = basin_nodes_stream_begin(s->stream[k], member, error);
    status = basin_ranks_agree(s->parts->ranks, status, error);
    if (!status) status = descend(s, error);
    for (int64_t k = 0; k < s->parts->count; k++) {
        basin_status ended = basin_nodes_stream_end(s->stream[k], status ? NULL : s->row[k], error);
        status = status ? status : ended;
    }
    return status;
}

basin_status basin_parted_scorer_run(basin_parted_scorer *s, double *probability, int64_t member,
                                     basin_error *error) {
    BASIN_TRY(s->stream ? run_streams(s, member, error) : run_plans(s, member, error));
    return basin_parts_gather(probability, s->parts, (const void *const *)s->row, NULL, width_of(s),
                              error);
}
