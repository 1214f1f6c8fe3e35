/* Oddness without labels: how badly a node is completed from its neighbours. Its features are
 * hidden, the tokens descend the energy of attention among neighbours and of a Hopfield network,
 * and what is read off at the end is held against what was hidden:
 *
 *     x = E v + b, or a learned token where v is hidden;   x <- x - alpha dE/dg,  T times
 *     energy of a node = |v - (W g(T) + c)|^2 / 2
 *
 * Trained on the same network to complete hidden nodes; no label is looked at. What stays high
 * after the descent fits neither its neighbours nor anything remembered. */
#include "base/info.h"
#include "base/sized.h"
#include "base/sort.h"
#include "base/states.h"
#include "base/training.h"
#include "basin/random.h"
#include "tasks/nodes/net.h"

/* Chosen beforehand, for any graph: a quarter is hidden at a time, a few hundred steps. */
enum { STEPS = 300, WARMUP = 20, FOURTHS = 4, ROUNDS = 4, DESCENT = 3, DIM = 64, MEMORIES = 256 };
static const double rate = 3e-3, alpha = 0.5;

typedef struct completion {
    const basin_network *network;
    basin_nodes_settings settings;
    basin_node_inputs inputs; /* its table is v */
    basin_pairs pairs[BASIN_MAX_RELATIONS];
    basin_store *store;
    basin_graph *graph;
    basin_params params;
    basin_block block;
    basin_pattern pattern;
    basin_expr value, hidden, energy, loss; /* [N, F], [N], [N], [] */
    basin_expr gap;                         /* [N, F] what was hidden less what was completed */
    basin_trainer *trainer;
    basin_plan *plan; /* energies, and gaps where they are explained */
    float *mask;      /* [N] */
    double *found;    /* [N] */
    float *unit;      /* [F, 2] mean and factor of a column: what scaled it */
    float *gaps;      /* [N, F] of a run, where they are explained */
    double *part;     /* [N, F, 2] mean gaps, and parts of the energies */
    uint64_t seed;
} completion;

/* ---- what is completed ---- */

/* Only numbers from 0 to 1 (words, shares) have one scale for all; else each column its own. */
static bool is_share(const basin_network *n) {
    for (int64_t i = 0; n->feature && i < n->nodes * n->features; i++)
        if (n->feature[i] < 0 || n->feature[i] > 1) return false;
    return n->feature != NULL;
}

/* Columns around their means, all divided by the root of their mean variance. */
static void scale_together(float *x, int64_t rows, int64_t columns, float *unit) {
    double all = 0;
    for (int64_t c = 0; c < columns; c++) {
        double mean = 0;
        for (int64_t i = 0; i < rows; i++) mean += (double)x[i * columns + c] / (double)rows;
        unit[2 * c] = (float)mean;
        for (int64_t i = 0; i < rows; i++) {
            x[i * columns + c] = (float)((double)x[i * columns + c] - mean);
            all += (double)x[i * columns + c] * (double)x[i * columns + c];
        }
    }
    float factor = all > 0 ? (float)(1 / sqrt(all / (double)(rows * columns))) : 1;
    for (int64_t i = 0; i < rows * columns; i++) x[i] *= factor;
    for (int64_t c = 0; c < columns; c++) unit[2 * c + 1] = factor;
}

static basin_status prepare(completion *c, basin_error *error) {
    BASIN_AT_EXIT(basin_scaler_free) basin_scaler scale = {0};
    basin_scaler edge_scale = {0}; /* features have none */
    bool share = is_share(c->network);
    int64_t N = c->network->nodes;
    c->settings.scaling = share ? "none" : "standard";
    c->settings.degree = !share;
    c->settings.facts = c->network->facts.count ? "features" : "none";
    BASIN_TRY(basin_node_inputs_open(&c->inputs, c->network, &c->settings, error));
    BASIN_SCRATCH_RAW(int64_t, node, N, "nodes", error);
    for (int64_t i = 0; i < N; i++) node[i] = i;
    BASIN_TRY(basin_node_inputs_fit(&scale, &edge_scale, &c->inputs, node, N, error));
    BASIN_TRY(basin_node_inputs_scale(&c->inputs, &scale, &edge_scale, error));
    BASIN_TRY(BASIN_NEW_RAW(&c->unit, 2 * c->inputs.shape.columns, "columns", error));
    for (int64_t f = 0; f < c->inputs.shape.columns && !share; f++)
        c->unit[2 * f] = scale.mean[f], c->unit[2 * f + 1] = scale.factor[f];
    if (share) scale_together(c->inputs.node.row, N, c->inputs.shape.columns, c->unit);
    return basin_node_inputs_pairs(c->pairs, &c->inputs, c->network, N, 0, error);
}

/* ---- expressions ---- */

static basin_expr parameter(completion *c, const char *name, basin_shape shape, double from) {
    basin_init init = {from > 0 ? BASIN_INIT_LECUN : BASIN_INIT_CONSTANT, from};
    return basin_param_add(&c->params, "", name, shape, init);
}

/* Tokens of shown nodes, and the learned one of hidden nodes. */
static basin_expr embed(completion *c, int64_t F) {
    int64_t N = c->network->nodes;
    basin_expr hide = basin_reshape(c->hidden, BASIN_SHAPE(N, 1));
    basin_expr w = parameter(c, "emb_w", BASIN_SHAPE(F, DIM), (double)F);
    basin_expr b = parameter(c, "emb_b", BASIN_SHAPE(DIM), 0);
    basin_expr token = parameter(c, "hidden", BASIN_SHAPE(1, DIM), DIM);
    basin_expr shown = basin_add(basin_matmul(c->value, w), b);
    return basin_add(basin_mul(basin_offset(basin_neg(hide), 1), shown), basin_mul(hide, token));
}

static basin_status build(completion *c, basin_error *error) {
    int64_t N = c->network->nodes, F = c->inputs.shape.columns;
    const basin_nodes_settings *s = &c->settings;
    basin_block_config config = {BASIN_BLOCK_OF(s), .init_query = {BASIN_INIT_NORMAL, 0.05}};
    basin_descent_spec descent = {.steps = DESCENT, .alpha = alpha};
    c->graph = basin_graph_new();
    if (!c->graph) return basin_fail_memory(error, "a model");
    basin_params_begin(&c->params, c->graph);
    c->value = basin_input(c->graph, "value", BASIN_SHAPE(N, F));
    c->hidden = basin_input(c->graph, "hide", BASIN_SHAPE(N));
    c->pattern = basin_pairs_declare(c->graph, "pairs", N, N, c->inputs.shape.pairs[0]);
    basin_status status = basin_block_declare(&c->block, &c->params, "", &config);
    if (status) return basin_fail(error, status, "%s", basin_graph_error(c->graph)->text);
    basin_block_bound bound = {.block = &c->block, .pattern = &c->pattern};
    basin_energy energy = basin_block_energy(&bound);
    basin_expr g = basin_block_norm(&c->block, basin_descend(&energy, embed(c, F), &descent, NULL));
    basin_expr w = parameter(c, "out_w", BASIN_SHAPE(DIM, F), DIM);
    basin_expr b = parameter(c, "out_b", BASIN_SHAPE(F), 0);
    c->gap = basin_sub(c->value, basin_add(basin_matmul(g, w), b));
    c->energy = basin_scale(basin_sum(basin_square(c->gap), 1, 1), 0.5);
    c->loss = basin_div(basin_sum_all(basin_mul(c->hidden, c->energy)),
                        basin_scale(basin_sum_all(c->hidden), (double)F / 2));
    return basin_graph_check(c->graph, error);
}

/* ---- plans ---- */

static basin_status write_inputs(completion *c, basin_plan *plan, basin_error *error) {
    BASIN_TRY(basin_values_write(plan, c->value, c->inputs.node.row, BASIN_F32, error));
    return basin_pairs_write(plan, &c->pattern, &c->pairs[0], error);
}

static basin_status make_plans(completion *c, const basin_nodes_resources *work,
                               basin_error *error) {
    basin_trainer_spec spec = {
        .optimizer = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .clip = 1},
        .schedule = basin_schedule_make(1, STEPS, WARMUP, rate, -1, -1)};
    basin_expr output[] = {c->energy, c->gap};
    basin_plan_spec energies = {.output = output, .outputs = c->gaps ? 2 : 1};
    BASIN_TRY(basin_trainer_new(&c->trainer, c->store, &c->params, c->loss, &spec, error));
    basin_plan_stats stats = basin_plan_stats_of(basin_trainer_plan(c->trainer));
    double gib = 1 << 30, bytes = (double)(stats.arena_bytes + stats.input_bytes);
    if (bytes > (double)basin_nodes_memory_limit(work))
        return basin_fail(error, BASIN_NO_MEMORY,
                          "%s: completing the whole graph takes %.3g GiB of %.3g allowed; needs "
                          "more memory",
                          c->network->path, bytes / gib,
                          (double)basin_nodes_memory_limit(work) / gib);
    BASIN_TRY(basin_plan_new(&c->plan, c->store, &energies, error));
    BASIN_TRY(write_inputs(c, basin_trainer_plan(c->trainer), error));
    BASIN_TRY(write_inputs(c, c->plan, error));
    return basin_params_init(&c->params, c->store, c->seed, error);
}

/* Hides the nodes of `fourth` in draw `draw`; whether there are any. */
static bool hide(completion *c, uint64_t draw, int fourth) {
    bool any = false;
    for (int64_t i = 0; i < c->network->nodes; i++) {
        double u = basin_random_uniform_at(c->seed, draw, (uint64_t)i);
        c->mask[i] = (int)(u * FOURTHS) == fourth;
        any = any || c->mask[i] > 0;
    }
    return any;
}

/* ---- learning and asking ---- */

enum { ASKING = 1 << 20 }; /* draws of the end are others than those of training */

static basin_status learn(completion *c, const basin_watch *watch, bool *stopped,
                          basin_error *error) {
    for (int64_t t = 0; t < STEPS && !*stopped; t++) {
        /* With a few nodes a fourth may be empty, from which nothing could be learned. */
        if (!hide(c, (uint64_t)t + 1, 0)) c->mask[t % c->network->nodes] = 1;
        BASIN_TRY(basin_values_write(basin_trainer_plan(c->trainer), c->hidden, c->mask, BASIN_F32,
                                     error));
        basin_trainer_set_step(c->trainer, t);
        double loss = NAN;
        BASIN_TRY(basin_trainer_step(&loss, c->trainer, error));
        basin_progress_report news = {"learning",         t + 1, STEPS, loss, NAN, "steps",
                                      .seconds_left = NAN};
        basin_watch_show(watch, &news);
        *stopped = basin_watch_stopped(watch);
    }
    return BASIN_OK;
}

/* Each node's mean energy over the rounds in which it is hidden. */
static basin_status ask(double *energy, completion *c, basin_error *error) {
    int64_t N = c->network->nodes;
    memset(energy, 0, (size_t)N * sizeof *energy);
    for (int k = 0; k < ROUNDS * FOURTHS; k++) {
        hide(c, (uint64_t)(ASKING + k / FOURTHS), k % FOURTHS);
        BASIN_TRY(basin_values_write(c->plan, c->hidden, c->mask, BASIN_F32, error));
        BASIN_TRY(basin_plan_run(c->plan, error));
        BASIN_TRY(basin_values_read(c->plan, c->energy, c->found, BASIN_F64, error));
        if (c->gaps) BASIN_TRY(basin_values_read(c->plan, c->gap, c->gaps, BASIN_F32, error));
        for (int64_t i = 0; i < N; i++)
            if (c->mask[i] > 0) energy[i] += c->found[i] / ROUNDS;
        for (int64_t i = 0, F = c->inputs.shape.columns; i < N * F && c->gaps; i++) {
            double gap = c->mask[i / F] > 0 ? (double)c->gaps[i] : 0;
            c->part[2 * i] += gap / ROUNDS, c->part[2 * i + 1] += gap * gap / 2 / ROUNDS;
        }
    }
    return BASIN_OK;
}

/* ---- which features a node is off by ---- */

/* Unscaled, as the user has it: degrees and most facts are logarithms. */
static double in_units(const completion *c, const basin_nodes_feature *f, double scaled) {
    const basin_network *n = c->network;
    const float *unit = c->unit + 2 * f->column;
    double value = scaled / (double)unit[1] + (double)unit[0];
    if (f->fact >= 0) return basin_facts_value(n, f->fact, value);
    return f->column < (n->feature ? n->features : 0) ? value : expm1(value);
}

static basin_status explain(basin_nodes_explanation **why, const completion *c,
                            const basin_ranked *odd, basin_error *error) {
    int64_t F = c->inputs.shape.columns, width = basin_node_facts_width(c->network, 1, true);
    int64_t own = c->settings.facts[0] == 'n' ? F : F - width * c->inputs.shape.relations;
    BASIN_TRY(BASIN_NEW(why, 1, "an explanation", error));
    basin_nodes_explanation *e = *why;
    e->node = odd->at, e->energy = odd->value, e->features = F;
    e->has_energy = e->completed = true;
    BASIN_TRY(BASIN_NEW(&e->feature, F, "an explanation", error));
    for (int64_t i = 0; i < F; i++) {
        const double *part = c->part + 2 * (odd->at * F + i);
        double value = (double)c->inputs.node.row[odd->at * F + i];
        basin_nodes_feature *f = &e->feature[i];
        *f = (basin_nodes_feature){
            .column = i, .fact = i < own ? -1 : (i - own) % width, .share = part[1]};
        f->value = in_units(c, f, value), f->typical = in_units(c, f, value - part[0]);
    }
    qsort(e->feature, (size_t)F, sizeof *e->feature, basin_nodes_larger_share);
    return BASIN_OK;
}

static basin_status explain_top(basin_nodes_explanation **top, const completion *c,
                                const double *energy, int64_t count, basin_error *error) {
    BASIN_SCRATCH_RAW(basin_ranked, odd, c->network->nodes, "explanations", error);
    for (int64_t i = 0; i < c->network->nodes; i++) odd[i] = (basin_ranked){energy[i], i};
    qsort(odd, (size_t)c->network->nodes, sizeof *odd, basin_higher_first);
    for (int64_t i = 0; i < count; i++) {
        BASIN_TRY(explain(&top[i], c, &odd[i], error));
        top[i]->rank = i + 1;
    }
    return BASIN_OK;
}

static void completion_free(completion *c) {
    basin_plan_free(c->plan);
    basin_trainer_free_at(&c->trainer);
    basin_params_free(&c->params);
    basin_graph_free(c->graph);
    basin_store_free(c->store);
    for (int r = 0; r < BASIN_MAX_RELATIONS; r++) basin_pairs_free(&c->pairs[r]);
    basin_node_inputs_close(&c->inputs);
    BASIN_FREE(c->mask, c->found, c->unit, c->gaps, c->part);
}

basin_status basin_nodes_unsupervised(double *energy, basin_nodes_explanation **top, bool *stopped,
                                      const basin_network *network, basin_backend *backend,
                                      const basin_nodes_unsupervised_options *options,
                                      basin_error *error) {
    static const basin_nodes_unsupervised_options none = {0};
    const basin_nodes_unsupervised_options *o = options ? options : &none;
    BASIN_NETWORK_AT_EXIT basin_network *ordered = NULL;
    basin_nodes_resources with = {.backend = backend, .watch = o->watch, .memory = o->memory};
    BASIN_TRY(BASIN_SIZE_CHECK(o, "basin_nodes_unsupervised_options", error));
    BASIN_TRY(basin_network_ordered(&ordered, network, error));
    BASIN_AT_EXIT(completion_free)
    completion c = {.network = ordered ? ordered : network, .seed = o->seed};
    *stopped = false;
    BASIN_TRY(basin_settings_preset(&c.settings, &basin_anomaly_task, "default", error));
    c.settings.hops = 0, c.settings.dim = DIM, c.settings.memories = MEMORIES;
    c.settings.heads = 4;
    BASIN_TRY(BASIN_NEW_RAW(&c.mask, network->nodes, "scores", error));
    BASIN_TRY(BASIN_NEW_RAW(&c.found, network->nodes, "scores", error));
    BASIN_TRY(prepare(&c, error));
    bool explains = top && o->explain > 0;
    size_t cells = (size_t)(network->nodes * c.inputs.shape.columns);
    if (explains) BASIN_TRY(BASIN_NEW_RAW(&c.gaps, cells, "explanations", error));
    if (explains) BASIN_TRY(BASIN_NEW(&c.part, 2 * cells, "explanations", error));
    BASIN_TRY(basin_store_new(&c.store, backend, error));
    BASIN_TRY(build(&c, error));
    BASIN_TRY(make_plans(&c, &with, error));
    BASIN_TRY(learn(&c, with.watch, stopped, error));
    if (*stopped) return BASIN_OK;
    BASIN_TRY(ask(energy, &c, error));
    if (explains) BASIN_TRY(explain_top(top, &c, energy, o->explain, error));
    for (int64_t i = 0; explains && ordered && i < o->explain; i++)
        top[i]->node = network->order[top[i]->node];
    return basin_rows_reorder(energy, network->order, network->nodes, sizeof *energy, true, error);
}
