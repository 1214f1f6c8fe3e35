/* One model on a graph of its own for a capacity of graphs, tokens and pairs, with its loss where
 * it is to be trained. Losses: cross entropy of classes, absolute error of values, and where asked
 * the squared error of reconstructed edges; every row has its weight, padding has none. */
#include <stdlib.h>
#include <string.h>

#include "task/graphs/graphs.h"

/* The axes of a parameter that its inputs run over: products of the form x W have them first,
 * those with weights [.., D] last. */
static void inputs_of(int *axis, int *count, basin_expr state) {
    static const char *const first[] = {"enc_w", "pos_w", "adj_w", "dec_w", "hidden_w", "edge_w"};
    int rank = basin_expr_shape(state).rank;
    *axis = rank - 1, *count = 1;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (!strcmp(basin_expr_name(state), first[i])) *axis = 0;
    if (!strcmp(basin_expr_name(state), "conv")) *axis = 1, *count = 2;
}

/* Gradient centralisation (Yong et al. 2020): the gradient of each output's weights loses its mean
 * over the inputs. So an output of its own keeps learning, which the mean over outputs of the
 * published code's layout forbids. */
static basin_expr centralise(basin_expr state, basin_expr gradient) {
    basin_shape shape = basin_expr_shape(state);
    int axis, count;
    if (shape.rank < 2) return gradient;
    inputs_of(&axis, &count, state);
    for (int i = axis; i < axis + count; i++) {
        if (shape.dim[i] < 2) return gradient;
        shape.dim[i] = 1;
    }
    return basin_sub(gradient, basin_reshape(basin_mean(gradient, axis, count), shape));
}

/* ---- the loss ---- */

static basin_expr class_loss(const basin_graphs_plan *p) {
    basin_expr inner = basin_sum(basin_mul(p->target, p->output), -1, 1);
    return basin_sum_all(basin_mul(p->weight, basin_sub(basin_logsumexp(p->output), inner)));
}

static basin_expr value_loss(const basin_graphs_plan *p) {
    basin_shape s = basin_expr_shape(p->output);
    basin_expr miss = basin_abs(basin_sub(p->output, p->target));
    basin_expr error = basin_sum(basin_mul(p->known, miss), -1, 1);
    return basin_scale(basin_sum_all(basin_mul(p->weight, error)), 1 / (double)s.dim[1]);
}

static basin_expr edge_loss(const basin_graphs_plan *p) {
    basin_expr found = basin_graphs_edges(&p->net, &p->batch), want = p->batch.edge_features;
    if (p->net.config.reconstruct_first) want = basin_slice(want, 1, 0, 1);
    basin_expr error = basin_square(basin_sub(found, want)); /* [pairs, P or 1] */
    return basin_sum_all(basin_mul(p->pair_weight, error));
}

static void build_loss(basin_graphs_plan *p, const basin_graphs_model *model) {
    basin_shape rows = basin_expr_shape(p->output);
    p->target = basin_input(p->graph, "target", rows);
    p->weight = basin_input(p->graph, "weight", BASIN_SHAPE(rows.dim[0]));
    if (model->target == BASIN_GRAPHS_VALUES) p->known = basin_input(p->graph, "known", rows);
    p->loss = model->target == BASIN_GRAPHS_VALUES ? value_loss(p) : class_loss(p);
    if (!model->settings.reconstruct) return;
    p->pair_weight = basin_input(p->graph, "pair_weight", BASIN_SHAPE(p->capacity.pairs, 1));
    p->loss = basin_add(p->loss, edge_loss(p));
}

/* ---- plans ---- */

/* Looks are built where they are wanted alone: they would move the streams of noise. */
static void build(basin_graphs_plan *p, const basin_graphs_model *model, bool training, bool noisy,
                  bool look) {
    if (training || noisy) p->seed = basin_index(p->graph, "seed", BASIN_SHAPE(2));
    basin_graphs_config config = basin_graphs_model_config(model, p->seed);
    if (!training) config.drop = 0; /* noisy use keeps the noise of the descent alone */
    if (basin_graphs_declare(&p->net, &p->params, &config)) return;
    p->batch = basin_graphs_inputs(&p->net, p->graph, p->capacity.graphs,
                                   p->capacity.tokens - p->capacity.graphs, p->capacity.pairs);
    if (look) basin_graphs_look(&p->view, &p->net, &p->batch);
    p->output = basin_graphs_forward(&p->net, &p->batch);
    if (training && p->output) build_loss(p, model);
}

/* The outputs alone, or also what is inside. */
static basin_status compile_scores(basin_graphs_plan *p, basin_graphs_model *model, bool look,
                                   basin_error *error) {
    basin_expr output[5] = {p->output, p->view.embedding};
    basin_plan_spec spec = {.output = output, .outputs = look ? 2 : 1};
    for (int i = 0; i < 3 && look; i++)
        if (p->view.energy[i]) output[spec.outputs++] = p->view.energy[i];
    return basin_plan_new(&p->plan, model->store, &spec, error);
}

static basin_status compile(basin_graphs_plan *p, basin_graphs_model *model,
                            const basin_schedule *schedule, bool look, basin_error *error) {
    const basin_graphs_settings *s = &model->settings;
    const basin_error *found = basin_graph_error(p->graph);
    if (found) return basin_fail(error, found->status, "%s", found->text);
    if (!schedule) return compile_scores(p, model, look, error);
    basin_trainer_spec spec = {.adamw = {.beta1 = 0.9,
                                         .beta2 = s->beta2,
                                         .epsilon = 1e-8,
                                         .weight_decay = s->decay,
                                         .clip = s->clip},
                               .schedule = *schedule,
                               .meeting = s->shards > 1 ? &basin_shards_meeting : NULL};
    if (s->centralise) p->params.adjust = centralise;
    return basin_trainer_new(&p->trainer, model->store, &p->params, p->loss, &spec, error);
}

basin_status basin_graphs_plan_new(basin_graphs_plan **plan, basin_graphs_model *model,
                                   basin_graphs_capacity capacity, const basin_schedule *schedule,
                                   bool noisy, bool look, basin_error *error) {
    basin_graphs_plan *p = *plan = calloc(1, sizeof *p);
    if (p) p->graph = basin_graph_new();
    if (!p || !p->graph) {
        free(p);
        *plan = NULL;
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a graph");
    }
    p->capacity = capacity;
    basin_params_begin(&p->params, p->graph);
    build(p, model, schedule != NULL, noisy, look);
    basin_status status = compile(p, model, schedule, look, error);
    if (!status) return BASIN_OK;
    basin_graphs_plan_free(p);
    *plan = NULL;
    return status;
}

void basin_graphs_plan_free(basin_graphs_plan *plan) {
    if (!plan) return;
    basin_plan_free(plan->plan);
    basin_trainer_free(&plan->trainer);
    basin_params_free(&plan->params);
    basin_graph_free(plan->graph);
    free(plan);
}
