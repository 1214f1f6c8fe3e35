/* Batches of differing sizes on a few plans: finding one, padding up to it, running. */
#include "base/info.h"
#include "base/sort.h"
#include "base/training.h"
#include "basin/plan.h"
#include "tasks/graphs/graphs.h"

/* ---- one plan ---- */

/* One model on a separate graph for a capacity of graphs, tokens and pairs, with its loss where it
 * is to be trained. Losses: cross entropy of classes, absolute error of values, and where asked the
 * squared error of reconstructed edges; every row has its weight, padding has none. */

/* The axes of a parameter that its inputs run over: products of the form x W have them first,
 * those with weights [.., D] last. */
static void inputs_of(int *axis, int *count, basin_expr state) {
    static const char *const first[] = {"enc_w",    "pos_w",  "adj_w", "dec_w",
                                        "hidden_w", "edge_w", "pair_w"};
    int rank = basin_expr_shape(state).rank;
    *axis = rank - 1, *count = 1;
    for (size_t i = 0; i < sizeof first / sizeof *first; i++)
        if (!strcmp(basin_expr_name(state), first[i])) *axis = 0;
    if (!strcmp(basin_expr_name(state), "conv")) *axis = 1, *count = 2;
}

/* Gradient centralisation (Yong et al. 2020): the gradient of each output's weights loses its mean
 * over the inputs. So a single output keeps learning, which the mean over outputs in the published
 * code's layout prevents. */
static basin_expr centralise(void *context, basin_expr state, basin_expr gradient) {
    (void)context;
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

static basin_expr class_loss(const basin_graphs_plan *p) {
    basin_expr inner = basin_sum(basin_mul(p->target, p->output), -1, 1);
    return basin_sum_all(basin_mul(p->weight, basin_sub(basin_logsumexp(p->output, -1), inner)));
}

/* Absolute errors, or cross entropy of each yes or no. The error of a censored value counts on one
 * side, relu(x) = (|x| + x) / 2. */
static basin_expr value_loss(const basin_graphs_plan *p, bool binary) {
    basin_shape s = basin_expr_shape(p->output);
    basin_expr miss = binary ? basin_sub(basin_softplus(p->output), basin_mul(p->target, p->output))
                             : basin_abs(basin_sub(p->output, p->target));
    basin_expr error = basin_sum(basin_mul(p->known, miss), -1, 1);
    if (p->side)
        error =
            basin_add(error, basin_sum(basin_mul(p->side, basin_sub(p->output, p->target)), -1, 1));
    return basin_scale(basin_sum_all(basin_mul(p->weight, error)), 1 / (double)s.dim[1]);
}

static basin_expr edge_loss(const basin_graphs_plan *p) {
    basin_expr found = basin_graph_net_edges(&p->net, &p->judged);
    basin_expr error = basin_square(basin_sub(found, p->judged.edge_features)); /* [pairs, P] */
    return basin_sum_all(basin_mul(p->pair_weight, error));
}

static void build_loss(basin_graphs_plan *p, const basin_graphs_model *model) {
    basin_shape rows = basin_expr_shape(p->output);
    p->target = basin_input(p->graph, "target", rows);
    p->weight = basin_input(p->graph, "weight", BASIN_SHAPE(rows.dim[0]));
    if (model->target == BASIN_GRAPHS_VALUES) p->known = basin_input(p->graph, "known", rows);
    if (model->limited) p->side = basin_input(p->graph, "side", rows);
    p->loss = p->known ? value_loss(p, model->binary) : class_loss(p);
    if (!model->settings.reconstruct) return;
    int64_t pairs = p->capacity.pairs, tokens = p->capacity.tokens;
    p->judged = p->batch;
    if (model->settings.all_pairs) {
        basin_shape features = BASIN_SHAPE(pairs = p->capacity.all, model->encoding.edge_features);
        p->judged.edge_features = basin_input(p->graph, "all_features", features);
        p->judged.pattern = basin_pairs_declare(p->graph, "all_pairs", tokens, tokens, pairs);
    }
    p->pair_weight = basin_input(p->graph, "pair_weight", BASIN_SHAPE(pairs, 1));
    p->loss = basin_add(p->loss, edge_loss(p));
}

static void build(basin_graphs_plan *p, const basin_graphs_model *model, bool training) {
    if (training) p->seed = basin_index(p->graph, "seed", BASIN_SHAPE(2));
    basin_graph_net_config config = basin_graphs_model_config(model, p->seed);
    if (basin_graph_net_declare(&p->net, &p->params, &config)) return;
    basin_graph_net_inputs(&p->batch, &p->net, p->graph, p->capacity.graphs,
                           p->capacity.tokens - p->capacity.graphs, p->capacity.pairs);
    p->output = basin_graph_net_forward(&p->net, &p->batch);
    if (training && p->output) build_loss(p, model);
}

static basin_status compile(basin_graphs_plan *p, basin_graphs_model *model,
                            const basin_schedule *schedule, basin_error *error) {
    const basin_graphs_settings *s = &model->settings;
    basin_plan_spec scores = {.output = &p->output, .outputs = 1};
    BASIN_TRY(basin_graph_check(p->graph, error));
    if (!schedule) return basin_plan_new(&p->plan, model->store, &scores, error);
    basin_trainer_spec spec = {.optimizer = {.beta1 = 0.9,
                                             .beta2 = s->beta2,
                                             .epsilon = 1e-8,
                                             .weight_decay = s->decay,
                                             .clip = s->clip},
                               .schedule = *schedule,
                               .reduction = s->shards > 1 ? &basin_shards_reduction : NULL};
    if (s->centralise) p->params.adjust = centralise;
    return basin_trainer_new(&p->trainer, model->store, &p->params, p->loss, &spec, error);
}

static void plan_free(basin_graphs_plan *plan) {
    if (!plan) return;
    basin_plan_free(plan->plan);
    basin_trainer_free_at(&plan->trainer);
    basin_params_free(&plan->params);
    basin_graph_free(plan->graph);
    free(plan);
}

/* For a capacity: with `schedule` for training, else for scores. */
static basin_status plan_new(basin_graphs_plan **plan, basin_graphs_model *model,
                             basin_graphs_capacity capacity, const basin_schedule *schedule,
                             basin_error *error) {
    basin_graphs_plan *p;
    *plan = NULL;
    BASIN_TRY(BASIN_NEW(&p, 1, "a graph", error));
    p->capacity = capacity;
    p->graph = basin_graph_new();
    BASIN_TRY_OR(p->graph ? BASIN_OK : basin_fail_memory(error, "a graph"), plan_free(p));
    basin_params_begin(&p->params, p->graph);
    build(p, model, schedule != NULL);
    BASIN_TRY_OR(compile(p, model, schedule, error), plan_free(p));
    *plan = p;
    return BASIN_OK;
}

/* ---- capacities ---- */

/* On a device sums over tokens are cut into equal parts. */
static int64_t round_up(double rows, const basin_graphs_plans *p) {
    int64_t unit = p->model->shares_results ? 1 : 32;
    return basin_int_ceil((int64_t)rows, unit) * unit;
}

static int64_t count_all(const basin_graphset *set, int64_t graph) {
    int64_t tokens = basin_graphset_tokens(set, graph);
    return tokens * tokens;
}

static bool takes_all(const basin_graphs_plans *p) {
    return p->training && p->model->settings.reconstruct && p->model->settings.all_pairs;
}

/* Capacities grow in steps from the mean need of a batch. On a device nearly all batches run on two
 * plans, and few need a third or fourth; on a host on ten, with little padding. */
static basin_graphs_capacity capacity_for(const basin_graphs_plans *p, int64_t nodes, int64_t pairs,
                                          int64_t all) {
    const int64_t need[BASIN_GRAPHS_NEEDS] = {nodes + p->batch, pairs, all};
    int64_t room[BASIN_GRAPHS_NEEDS] = {0};
    int needs = takes_all(p) ? BASIN_GRAPHS_NEEDS : BASIN_GRAPHS_NEEDS - 1;
    double steps = -INFINITY;
    for (int i = 0; i < needs; i++)
        steps = fmax(steps, ceil(((double)need[i] - p->need[i].mean) / p->need[i].step));
    for (int i = 0; i < needs; i++)
        room[i] = round_up(p->need[i].mean + steps * p->need[i].step, p);
    return (basin_graphs_capacity){p->batch, room[0], room[1], room[2]};
}

/* A step is half a deviation of a batch's need, or two, and a minimum of rows: on a host another
 * plan costs a few milliseconds and no memory for results, on a device a captured graph. */
void basin_graphs_plans_begin(basin_graphs_plans *plans, basin_graphs_model *model,
                              const basin_graphset *set, const int64_t *graph, int64_t count,
                              const basin_schedule *schedule) {
    static int64_t (*const size_of[])(const basin_graphset *, int64_t) = {
        basin_graphset_tokens, basin_graphset_pairs, count_all};
    bool host = model->shares_results;
    int64_t batch = basin_int_min(model->settings.batch, count);
    int64_t shards = schedule && model->settings.shards ? model->settings.shards : 1;
    *plans = (basin_graphs_plans){.model = model, .training = schedule != NULL};
    plans->batch = basin_int_max(basin_int_ceil(batch, shards), 1);
    if (schedule) plans->schedule = *schedule;
    for (int k = 0; k < BASIN_GRAPHS_NEEDS; k++) {
        double sum = 0, squares = 0, n = count > 0 ? (double)count : 1;
        for (int64_t i = 0; i < count; i++) {
            double value = (double)size_of[k](set, graph[i]);
            sum += value, squares += value * value;
        }
        double variance = fmax(squares / n - sum / n * sum / n, 0);
        double spread = sqrt((double)plans->batch * variance);
        plans->need[k].mean = ceil((double)plans->batch * sum / n);
        plans->need[k].step = ceil(host ? fmax(32, 0.5 * spread) : fmax(64, 2 * spread));
    }
}

/* ---- a few plans ---- */

static basin_plan *plan_of(const basin_graphs_plan *plan) {
    return plan->plan ? plan->plan : basin_trainer_plan(plan->trainer);
}

/* A slot for a new plan: the plan that was idle longest is evicted where all slots are taken, or
 * where memory does not fit a third plan as large as the largest. Plans take memory for their
 * inputs, and for their results where each keeps them separately. */
static int free_place(basin_graphs_plans *p) {
    bool shared = p->model->shares_results;
    size_t limit = shared ? BASIN_GRAPHS_INPUT_BYTES : BASIN_GRAPHS_DEVICE_BYTES;
    for (;;) {
        int oldest = -1, empty = -1, plans = 0;
        size_t sum = 0, max[2] = {0};
        for (int i = 0; i < BASIN_GRAPHS_PLANS; i++) {
            if (!p->plan[i]) {
                empty = i;
                continue;
            }
            basin_plan_stats s = basin_plan_stats_of(plan_of(p->plan[i]));
            const size_t own[2] = {s.input_bytes, shared ? 0 : s.arena_bytes};
            for (int k = 0; k < 2; k++) sum += own[k], max[k] = own[k] > max[k] ? own[k] : max[k];
            plans++;
            if (oldest < 0 || p->plan[i]->used < p->plan[oldest]->used) oldest = i;
        }
        if (empty >= 0 && (plans < 2 || sum + max[0] + max[1] <= limit)) return empty;
        plan_free(p->plan[oldest]);
        p->plan[oldest] = NULL;
    }
}

/* Notes what a plan takes; an error where that is more than the run may use. */
static basin_status check_memory(basin_graphs_plans *p, const basin_graphs_plan *plan,
                                 basin_error *error) {
    size_t bytes = basin_plan_bytes(plan_of(plan));
    p->bytes = bytes > p->bytes ? bytes : p->bytes;
    return p->run ? basin_run_hold(p->run, bytes, "a smaller batch, or recompute", error)
                  : BASIN_OK;
}

static basin_status plan_for(basin_graphs_plan **plan, basin_graphs_plans *p,
                             basin_graphs_capacity capacity, basin_error *error) {
    for (int i = 0; i < BASIN_GRAPHS_PLANS; i++) {
        *plan = p->plan[i];
        if (*plan && (*plan)->capacity.tokens == capacity.tokens &&
            (*plan)->capacity.pairs == capacity.pairs) {
            (*plan)->used = ++p->clock;
            return BASIN_OK;
        }
    }
    int place = free_place(p);
    BASIN_TRY(plan_new(plan, p->model, capacity, p->training ? &p->schedule : NULL, error));
    p->plan[place] = *plan;
    (*plan)->used = ++p->clock;
    return check_memory(p, *plan, error);
}

void basin_graphs_plans_free(basin_graphs_plans *p) {
    for (int i = 0; i < BASIN_GRAPHS_PLANS; i++) plan_free(p->plan[i]);
    free(p->scratch.data);
    basin_graphset_batch_free(&p->data);
    basin_graphset_batch_free(&p->all);
    *p = (basin_graphs_plans){0};
}

/* ---- writing a batch ---- */

/* Writes `rows` rows of 4-byte numbers, then bytes `fill` up to the input's size. */
static basin_status write_rows(basin_plan *plan, basin_graphs_scratch *scratch, basin_expr input,
                               const void *data, int64_t rows, basin_dtype dtype, int fill,
                               basin_error *error) {
    if (!input) return BASIN_OK;
    basin_shape shape = basin_expr_shape(input);
    size_t all = (size_t)basin_shape_count(shape) * 4;
    size_t used = shape.dim[0] ? all / (size_t)shape.dim[0] * (size_t)rows : 0;
    if (!basin_array_reserve(&scratch->data, &scratch->bytes, all + 1, 1))
        return basin_fail_memory(error, "a batch");
    if (used) memcpy(scratch->data, data, used);
    memset((char *)scratch->data + used, fill, all - used);
    basin_tensor tensor = basin_tensor_borrow(scratch->data, dtype, shape);
    return basin_plan_write(plan, input, &tensor, error);
}

/* A CLS that padding lacks stands on the first token; its output has no weight and no reader. */
static basin_status write_batch(basin_plan *plan, const basin_graph_net_batch *to,
                                const basin_graphset_batch *b, basin_graphs_scratch *scratch,
                                basin_error *error) {
    const struct {
        basin_expr input;
        const void *data;
        int64_t rows;
        basin_dtype dtype;
        int fill;
    } all[] = {{to->nodes, b->feature, b->nodes, BASIN_F32, 0},
               {to->positions, b->position, b->tokens, BASIN_F32, 0},
               {to->edge_features, b->edge_feature, b->pairs.pairs, BASIN_F32, 0},
               {to->strength, b->strength, b->pairs.pairs, BASIN_F32, 0},
               {to->share, b->share, b->graphs, BASIN_F32, 0},
               {to->source, b->source, b->tokens, BASIN_I32, 0xff},
               {to->before, b->before, b->tokens, BASIN_I32, 0xff},
               {to->after, b->after, b->tokens, BASIN_I32, 0xff},
               {to->owner, b->owner, b->tokens, BASIN_I32, 0xff},
               {to->first, b->first, b->graphs, BASIN_I32, 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        BASIN_TRY(write_rows(plan, scratch, all[i].input, all[i].data, all[i].rows, all[i].dtype,
                             all[i].fill, error));
    return basin_pairs_write(plan, &to->pattern, &b->pairs, error);
}

/* What the noise of this step is drawn from. */
static basin_status write_seed(basin_graphs_plans *p, const basin_graphs_plan *plan,
                               basin_error *error) {
    int32_t seed[2] = {(int32_t)(p->model->settings.seed & 0x7fffffff),
                       (int32_t)(p->step & 0x7fffffff)};
    return write_rows(plan_of(plan), &p->scratch, plan->seed, seed, 2, BASIN_I32, 0, error);
}

/* Prepares the plan for the batch that was filled. */
static basin_status prepare(basin_graphs_plan **plan, basin_graphs_plans *p, basin_error *error) {
    if (takes_all(p)) BASIN_TRY(basin_graphset_batch_all(&p->all, &p->data, error));
    basin_graphs_capacity capacity =
        capacity_for(p, p->data.nodes, p->data.pairs.pairs, p->all.pairs.pairs);
    BASIN_TRY(plan_for(plan, p, capacity, error));
    return write_batch(plan_of(*plan), &(*plan)->batch, &p->data, &p->scratch, error);
}

static basin_status fill(basin_graphs_plans *p, const basin_graphs_input *input,
                         const int64_t *graph, int64_t count, uint64_t epoch, basin_error *error) {
    return basin_graphset_batch_fill(&p->data, &input->set, &p->model->encoding, &input->positions,
                                     graph, count, p->training, (uint64_t)p->model->settings.seed,
                                     epoch, error);
}

/* ---- scores ---- */

static bool of_nodes(const basin_graphs_plans *p) {
    return p->model->target == BASIN_GRAPHS_NODE_CLASSES;
}

/* Rows of graphs, or of the tokens that are nodes. Moves to where the next ones go. */
static basin_status read_outputs(float **output, const basin_graphs_plans *p,
                                 basin_graphs_plan *plan, basin_error *error) {
    const basin_graphs_model *m = p->model;
    const basin_graphset_batch *b = &p->data;
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor all = {0};
    BASIN_TRY(basin_tensor_new(&all, BASIN_F32, basin_expr_shape(plan->output), error));
    BASIN_TRY(basin_plan_read(&all, plan->plan, plan->output, error));
    const float *from = all.data;
    for (int64_t i = 0; i < (of_nodes(p) ? b->tokens : b->graphs); i++, from += m->outputs) {
        if (of_nodes(p) && b->source[i] < 0) continue;
        for (int64_t c = 0; c < m->outputs; c++, ++*output)
            **output = m->binary ? (float)(1 / (1 + exp(-(double)from[c])))
                       : m->target == BASIN_GRAPHS_VALUES
                           ? (float)((double)from[c] * m->target_scale[c] + m->target_mean[c])
                           : from[c];
    }
    return BASIN_OK;
}

basin_status basin_graphs_plans_score(basin_graphs_plans *plans, float *output,
                                      const basin_graphs_input *input, const int64_t *graph,
                                      int64_t count, basin_error *error) {
    for (int64_t at = 0; at < count; at += plans->batch) {
        int64_t now = count - at < plans->batch ? count - at : plans->batch;
        basin_graphs_plan *plan;
        BASIN_TRY(fill(plans, input, graph + at, now, 0, error));
        BASIN_TRY(prepare(&plan, plans, error));
        BASIN_TRY(basin_plan_run(plan->plan, error));
        BASIN_TRY(read_outputs(&output, plans, plan, error));
    }
    return BASIN_OK;
}

/* ---- a step ---- */

/* What a step learns from: rows are graphs, or tokens where nodes have classes. */
typedef struct lesson {
    const basin_graphset *set;
    const int64_t *graph; /* [count] */
    int64_t count;
    float *target, *known, *side; /* [rows, C] */
    float *weight;                /* [rows] */
    float *pair_weight;           /* [pairs] */
} lesson;

/* 1 - smoothing on the class, the rest spread evenly over all outputs. With weight_classes a class
 * that holds n of the batch's V nodes has the weight (V - n) / V, as in the benchmark. */
static basin_status put_classes(lesson *l, const basin_graphs_plans *p, basin_error *error) {
    const basin_graphs_model *m = p->model;
    const double smoothing = m->settings.smoothing;
    bool nodes = of_nodes(p), weigh = nodes && m->settings.weight_classes;
    int64_t C = m->outputs, all = 0;
    BASIN_SCRATCH(int64_t, held, C, "targets", error);
    for (int pass = 0; pass < (weigh ? 2 : 1); pass++)
        for (int64_t i = 0; i < l->count; i++) {
            int64_t g = l->graph[i], row = nodes ? p->data.first[i] + 1 : i;
            int64_t end = row + (nodes ? basin_graphset_tokens(l->set, g) - 1 : 1);
            const int32_t *own = l->set->class_of + (nodes ? l->set->node_start[g] : g);
            for (; row < end; row++, own++) {
                float *to = l->target + row * C;
                if (*own < 0) continue;
                l->weight[row] = pass ? (float)((double)(all - held[*own]) / (double)all) : 1;
                if (pass) continue;
                for (int64_t c = 0; c < C; c++) to[c] = (float)(smoothing / (double)C);
                to[*own] += (float)(1 - smoothing);
                held[*own]++, all++;
            }
        }
    return BASIN_OK;
}

/* Values that are not known count nothing. */
static void put_values(lesson *l, const basin_graphs_model *m) {
    int64_t C = m->outputs, cells = l->count * C, known = 0;
    for (int64_t i = 0; i < cells; i++) {
        int64_t g = l->graph[i / C], c = i % C;
        float value = l->set->target[g * C + c];
        int side = basin_graphset_side(l->set, g, c);
        if (side) value = l->set->limit[2 * g * C + (side > 0 ? 0 : C) + c];
        l->weight[i / C] = 1;
        if (isnan(value)) continue;
        l->target[i] = (float)(((double)value - m->target_mean[c]) / m->target_scale[c]);
        l->known[i] = side ? 0.5f : 1, l->side[i] = -0.5f * (float)side;
        known++;
    }
    float factor = (float)((double)cells / (double)(known ? known : 1));
    for (int64_t i = 0; i < cells && known < cells; i++)
        l->known[i] *= factor, l->side[i] *= factor;
}

/* Weights sum to 1; returns what they summed to. */
static double normalise(float *weight, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += (double)weight[i];
    for (int64_t i = 0; i < count && sum > 0; i++) weight[i] = (float)((double)weight[i] / sum);
    return sum;
}

/* Each graph's pairs share 1 / (graphs x those of its features that are not 0), as published, where
 * edges have one feature. */
static void pair_weights(float *weight, const basin_graphs_plans *p) {
    const basin_graphset_batch *b = &p->data, *judges = takes_all(p) ? &p->all : b;
    int64_t P = b->edge_features;
    for (int64_t g = 0; g < b->graphs; g++) {
        int64_t last = g + 1 < b->graphs ? b->first[g + 1] : b->tokens, some = 0;
        int64_t from = judges->pairs.row[b->first[g]], to = judges->pairs.row[last];
        for (int64_t e = from; e < to; e++)
            for (int64_t c = 0; c < P; c++) some += judges->edge_feature[e * P + c] != 0;
        for (int64_t e = from; e < to; e++)
            weight[e] = 1 / ((float)b->graphs * (float)(some ? some : 1));
    }
}

static basin_status write_targets(double *weight, basin_graphs_plans *p, basin_graphs_plan *plan,
                                  const basin_graphset *set, const int64_t *graph, int64_t count,
                                  basin_error *error) {
    basin_shape shape = basin_expr_shape(plan->output);
    const basin_graphset_batch *judged = takes_all(p) ? &p->all : &p->data;
    int64_t cells = basin_shape_count(shape), rows = of_nodes(p) ? p->data.tokens : count;
    BASIN_SCRATCH(float, all, 3 * cells + shape.dim[0] + judged->pairs.pairs, "targets", error);
    lesson l = {set, graph, count, all, all + cells, all + 2 * cells, all + 3 * cells, NULL};
    l.pair_weight = l.weight + shape.dim[0];
    if (p->model->target == BASIN_GRAPHS_VALUES)
        put_values(&l, p->model);
    else
        BASIN_TRY(put_classes(&l, p, error));
    *weight = normalise(l.weight, rows);
    if (plan->pair_weight) pair_weights(l.pair_weight, p);
    const struct {
        basin_expr to;
        const float *from;
        int64_t rows;
    } input[] = {{plan->target, l.target, rows},
                 {plan->weight, l.weight, rows},
                 {plan->known, l.known, rows},
                 {plan->side, l.side, rows},
                 {plan->pair_weight, l.pair_weight, judged->pairs.pairs},
                 {takes_all(p) ? plan->judged.edge_features : NULL, judged->edge_feature,
                  judged->pairs.pairs}};
    for (int i = 0; i < 6; i++)
        BASIN_TRY(write_rows(plan_of(plan), &p->scratch, input[i].to, input[i].from, input[i].rows,
                             BASIN_F32, 0, error));
    if (takes_all(p))
        BASIN_TRY(basin_pairs_write(plan_of(plan), &plan->judged.pattern, &judged->pairs, error));
    return write_seed(p, plan, error);
}

basin_status basin_graphs_plans_settle(basin_graphs_plans *plans, basin_run_sum *sum,
                                       basin_error *error) {
    double mean = 0;
    if (!plans->running) return BASIN_OK;
    basin_status status = basin_trainer_loss(&mean, plans->running->trainer, error);
    sum->loss += mean * (double)plans->running_graphs;
    sum->weight += (double)plans->running_graphs;
    plans->running = NULL;
    return status;
}

basin_status basin_graphs_plans_step(basin_graphs_plans *plans, basin_run_sum *sum,
                                     const basin_graphs_input *input, const int64_t *graph,
                                     int64_t count, uint64_t epoch, basin_error *error) {
    basin_graphs_plan *plan;
    double weight;
    BASIN_TRY(fill(plans, input, graph, count, epoch, error));
    BASIN_TRY(basin_graphs_plans_settle(plans, sum, error));
    BASIN_TRY(prepare(&plan, plans, error));
    BASIN_TRY(write_targets(&weight, plans, plan, &input->set, graph, count, error));
    basin_trainer_set_step(plan->trainer, plans->step);
    BASIN_TRY(basin_trainer_step(NULL, plan->trainer, error));
    plans->step++;
    plans->running = plan;
    plans->running_graphs = count;
    return BASIN_OK;
}

basin_status basin_graphs_plans_load(basin_graphs_plan **plan, double *weight,
                                     basin_graphs_plans *plans, const basin_graphs_input *input,
                                     const int64_t *graph, int64_t count, uint64_t epoch,
                                     basin_error *error) {
    *weight = 0;
    if (!count) return plan_for(plan, plans, capacity_for(plans, 0, 0, 0), error);
    BASIN_TRY(fill(plans, input, graph, count, epoch, error));
    BASIN_TRY(prepare(plan, plans, error));
    return write_targets(weight, plans, *plan, &input->set, graph, count, error);
}
