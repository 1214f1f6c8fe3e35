/* Energy Transformers over rows of a table; see trees.h. */

#include "base/states.h"
#include "base/training.h"
#include "tasks/nodes/trees/trees.h"

#include <pthread.h>

#include "base/number.h"
#include "base/sort.h"
#include "basin/random.h"
#include "basin/tasks/metrics.h"
#include "basin/train.h"

/* Chosen by validation on the sets of docs/anomaly.md; docs/lab/detectors.md has the figures. */
enum {
    PIECES = 32, /* of a column between its quantiles */
    UNITS = 4,   /* that a column's pieces become */
    DIM = 32,
    HEADS = 2,
    MEMORIES = 64,
    HIDDEN = 32,
    BATCH = 256,    /* rows of a step */
    JUDGED = 4096,  /* validation rows that say when to stop, */
    LOOKS = 40,     /* times that they are scored, */
    PATIENCE = 8,   /* scores that may pass without a better one */
    MINIMUM = 200,  /* steps of training, at least */
    MAXIMUM = 1000, /* and at most */
    STEPS = 64,     /* of the integral of an explanation */
    NAME = 96,
};
static const double dropout = 0.2, rate = 0.003, decay = 0.02, average = 0.99;
static const char what[] = "a network of rows";

/* The network as expressions over B rows, with what computes them. */
typedef struct engine {
    basin_graph *graph;
    basin_params params;
    basin_expr pieces;              /* input [B, F, PIECES] */
    basin_expr label, weight, seed; /* in training: [B] [B] [2] */
    basin_expr logit, loss, slope;  /* [B]; in training []; for explanations [B, F, PIECES] */
    basin_backend *backend;
    basin_store *store;
    basin_plan *plan;
    struct engine *next;
} engine;

struct basin_row_net {
    basin_row_net_spec spec;
    int64_t features, weights;
    float *edge;   /* [features, PIECES + 1] quantiles */
    float *weight; /* [weights] of all parameters, in the order of their declaration */
    pthread_mutex_t lock;
    engine *idle; /* for one row */
};

/* ---- the model ---- */

static const basin_init zero = {BASIN_INIT_CONSTANT, 0}, one = {BASIN_INIT_CONSTANT, 1},
                        differing = {BASIN_INIT_NORMAL, 1}; /* from member to member */

static basin_expr add(engine *n, const char *name, int number, basin_shape shape, basin_init init) {
    char text[NAME];
    snprintf(text, sizeof text, "%s%d", name, number);
    return basin_param_add(&n->params, "", text, shape, init);
}

/* [B, K, W] by one matrix [W, U] of all members. */
static basin_expr product(engine *n, const char *name, int number, basin_expr x, int64_t units) {
    if (!x) return NULL;
    basin_shape s = basin_expr_shape(x);
    int64_t width = s.dim[2];
    basin_expr w = add(n, name, number, BASIN_SHAPE(width, units),
                       (basin_init){BASIN_INIT_LECUN, (double)width});
    x = basin_matmul(basin_reshape(x, BASIN_SHAPE(s.dim[0] * s.dim[1], width)), w);
    return basin_reshape(x, BASIN_SHAPE(s.dim[0], s.dim[1], units));
}

/* Tokens of all members [B K, C, D]. */
static basin_expr embed(engine *n, const basin_row_net_spec *s, int64_t F, int64_t B) {
    int64_t K = s->members, first = 0;
    basin_expr token[BASIN_ROW_TOKENS];
    basin_expr w =
        add(n, "pieces", 0, BASIN_SHAPE(F, PIECES, UNITS), (basin_init){BASIN_INIT_LECUN, PIECES});
    basin_expr v = basin_einsum("bft,fte->bfe", n->pieces, w);
    for (int t = 0; t < s->tokens; first += s->width[t++]) {
        int64_t W = s->width[t] * UNITS;
        basin_expr x = basin_reshape(basin_slice(v, 1, first, s->width[t]), BASIN_SHAPE(B, 1, W));
        x = basin_mul(x, add(n, "token_in", t, BASIN_SHAPE(K, W), differing));
        x = basin_mul(product(n, "token_w", t, x, DIM),
                      add(n, "token_out", t, BASIN_SHAPE(K, DIM), one));
        token[t] = basin_add(x, add(n, "token_b", t, BASIN_SHAPE(K, DIM), zero));
    }
    basin_expr all = basin_stack(token, s->tokens, 2);
    return basin_dropout(basin_reshape(all, BASIN_SHAPE(B * K, s->tokens, DIM)), dropout, n->seed);
}

/* First and last activations of all tokens side by side become a logit per member, [B, K]. */
static basin_expr read_out(engine *n, const basin_row_net_spec *s, basin_expr x, int64_t B) {
    int64_t K = s->members, W = 2 * DIM * s->tokens;
    basin_block block;
    basin_block_config config = {.dim = DIM,
                                 .heads = HEADS,
                                 .head_dim = DIM / HEADS,
                                 .memories = MEMORIES,
                                 .no_attention = s->tokens == 1,
                                 .learn_beta = s->tokens > 1,
                                 .init_query = {BASIN_INIT_NORMAL, 0.05},
                                 .init_memory = {BASIN_INIT_NORMAL, 1 / sqrt(DIM)}};
    basin_descent_spec descent = {.steps = 1, .alpha = 1};
    if (!x || basin_block_declare(&block, &n->params, "", &config)) return NULL;
    basin_block_bound bound = {.block = &block, .pattern = &BASIN_ALL_PAIRS};
    basin_energy energy = basin_block_energy(&bound);
    basin_expr last = basin_descend(&energy, x, &descent, NULL);
    basin_expr both[] = {basin_block_norm(&block, x), basin_block_norm(&block, last)};
    basin_expr h = basin_reshape(basin_concat(both, 2, 2), BASIN_SHAPE(B, K, W));
    h = basin_mul(basin_dropout(h, dropout, n->seed),
                  add(n, "head_in", 0, BASIN_SHAPE(K, W), differing));
    h = basin_add(product(n, "head_w", 0, h, HIDDEN),
                  add(n, "head_b", 0, BASIN_SHAPE(K, HIDDEN), zero));
    h = basin_mul(
        basin_dropout(basin_relu(h), dropout, n->seed),
        add(n, "head_w", 1, BASIN_SHAPE(K, HIDDEN), (basin_init){BASIN_INIT_LECUN, HIDDEN}));
    return basin_add(basin_sum(h, 2, 1), add(n, "head_b", 1, BASIN_SHAPE(K), zero));
}

/* The logit of the members' mean probability. */
static basin_expr mean_logit(basin_expr z) {
    basin_expr yes = basin_logsumexp(basin_neg(basin_softplus(basin_neg(z))), -1);
    return basin_sub(yes, basin_logsumexp(basin_neg(basin_softplus(z)), -1));
}

/* The loss of every member by itself, so that they differ. */
static basin_expr loss_of(const engine *n, basin_expr z, int64_t B) {
    basin_expr label = basin_reshape(n->label, BASIN_SHAPE(B, 1));
    basin_expr ce = basin_sub(basin_softplus(z), basin_mul(label, z));
    basin_expr sum = basin_sum_all(basin_mul(n->weight, basin_mean(ce, 1, 1)));
    return basin_div(sum, basin_sum_all(n->weight));
}

static void engine_free(engine *n) {
    basin_plan_free(n->plan);
    basin_store_free(n->store);
    basin_backend_close(n->backend);
    basin_params_free(&n->params);
    basin_graph_free(n->graph);
    *n = (engine){0};
}

/* Without a plan; on one thread, so that bits do not depend on how many there are. */
static basin_status engine_open(engine *n, const basin_row_net *net, int64_t B, bool training,
                                bool slopes, basin_error *error) {
    basin_compute compute = {.threads = 1};
    *n = (engine){.graph = basin_graph_new()};
    if (!n->graph) return basin_fail_memory(error, what);
    basin_params_begin(&n->params, n->graph);
    n->pieces = basin_input(n->graph, "pieces", BASIN_SHAPE(B, net->features, PIECES));
    if (training) {
        n->label = basin_input(n->graph, "label", BASIN_SHAPE(B));
        n->weight = basin_input(n->graph, "weight", BASIN_SHAPE(B));
        n->seed = basin_index(n->graph, "seed", BASIN_SHAPE(2));
    }
    basin_expr z = read_out(n, &net->spec, embed(n, &net->spec, net->features, B), B);
    if (z) n->logit = mean_logit(z);
    if (z && training) n->loss = loss_of(n, z, B);
    if (n->logit && slopes) n->slope = basin_grad(basin_sum_all(n->logit), n->pieces);
    BASIN_TRY(basin_graph_check(n->graph, error));
    BASIN_TRY(basin_backend_open(&n->backend, &compute, error));
    return basin_store_new(&n->store, n->backend, error);
}

/* All weights into the store, or from there. */
static basin_status move_weights(engine *n, float *weight, bool out, basin_error *error) {
    for (size_t i = 0; i < n->params.count; i++) {
        basin_expr state = n->params.param[i].state;
        basin_tensor whole = basin_tensor_borrow(weight, BASIN_F32, basin_expr_shape(state));
        BASIN_AT_EXIT(basin_tensor_free) basin_tensor found = {0};
        int64_t count = basin_shape_count(whole.shape);
        if (out) BASIN_TRY(basin_store_get(&found, n->store, basin_expr_name(state), error));
        if (out) memcpy(weight, found.data, (size_t)count * sizeof *weight);
        if (!out) BASIN_TRY(basin_store_write(n->store, basin_expr_name(state), &whole, error));
        weight += count;
    }
    return BASIN_OK;
}

static basin_status predictor_open(engine *n, const basin_row_net *net, int64_t B, bool slopes,
                                   basin_error *error) {
    BASIN_TRY(engine_open(n, net, B, false, slopes, error));
    basin_expr output[] = {n->logit, n->slope};
    basin_plan_spec spec = {.output = output, .outputs = slopes ? 2 : 1};
    BASIN_TRY(basin_plan_new(&n->plan, n->store, &spec, error));
    return move_weights(n, net->weight, false, error);
}

/* ---- pieces ---- */

static basin_status find_edges(float *edge, const basin_trees_data *d, basin_error *error) {
    BASIN_SCRATCH_RAW(float, column, d->trains, "quantiles", error);
    for (int64_t f = 0; f < d->features; f++) {
        for (int64_t i = 0; i < d->trains; i++) column[i] = d->x[i * d->stride + f];
        qsort(column, (size_t)d->trains, sizeof *column, basin_compare_float);
        for (int64_t p = 0; p <= PIECES; p++) {
            double at = (double)(p * (d->trains - 1)) / PIECES;
            int64_t i = (int64_t)at, next = i + 1 < d->trains ? i + 1 : i;
            double low = (double)column[i], way = (double)column[next] - low;
            *edge++ = (float)(low + (at - (double)i) * way);
        }
    }
    return BASIN_OK;
}

/* -1 below a piece, 1 above it, a straight line inside; a piece of no width is a step. */
static void split(float *piece /* [F, PIECES] */, const basin_row_net *n, const float *row) {
    for (int64_t f = 0; f < n->features; f++)
        for (int p = 0; p < PIECES; p++, piece++) {
            const float *edge = n->edge + f * (PIECES + 1) + p;
            float low = edge[0], high = edge[1], x = row[f];
            *piece = x >= high ? 1 : x <= low ? -1 : 2 * (x - low) / (high - low) - 1;
        }
}

/* ---- predictions ---- */

static basin_status run(engine *n, double *logit, const float *piece, basin_error *error) {
    BASIN_TRY(basin_values_write(n->plan, n->pieces, piece, BASIN_F32, error));
    BASIN_TRY(basin_plan_run(n->plan, error));
    return basin_values_read(n->plan, n->logit, logit, BASIN_F64, error);
}

static basin_status predict(double *logit, engine *e, int64_t B, const basin_row_net *n,
                            const float *x, int64_t rows, int64_t stride, basin_error *error) {
    int64_t cells = n->features * PIECES;
    double found[BATCH];
    BASIN_SCRATCH(float, piece, (B * cells), what, error);
    for (int64_t first = 0; first < rows; first += B) {
        int64_t count = basin_int_min(B, rows - first);
        for (int64_t i = 0; i < count; i++) split(piece + i * cells, n, x + (first + i) * stride);
        BASIN_TRY(run(e, found, piece, error));
        memcpy(logit + first, found, (size_t)count * sizeof *logit);
    }
    return BASIN_OK;
}

/* An engine that nobody uses, or a new one. */
static basin_status predict_one(double *logit, basin_row_net *n, const float *x,
                                basin_error *error) {
    pthread_mutex_lock(&n->lock);
    engine *e = n->idle;
    if (e) n->idle = e->next;
    pthread_mutex_unlock(&n->lock);
    basin_status status = e ? BASIN_OK : BASIN_NEW(&e, 1, what, error);
    if (!status && !e->graph) status = predictor_open(e, n, 1, false, error);
    if (!status) status = predict(logit, e, 1, n, x, 1, 0, error);
    if (status) {
        if (e) engine_free(e);
        free(e);
        return status;
    }
    pthread_mutex_lock(&n->lock);
    e->next = n->idle;
    n->idle = e;
    pthread_mutex_unlock(&n->lock);
    return BASIN_OK;
}

basin_status basin_row_net_predict(double *logit, const basin_row_net *net, const float *x,
                                   int64_t rows, int64_t stride, basin_error *error) {
    BASIN_AT_EXIT(engine_free) engine e = {0};
    if (rows == 1) return predict_one(logit, (basin_row_net *)net, x, error);
    BASIN_TRY(predictor_open(&e, net, BATCH, false, error));
    return predict(logit, &e, BATCH, net, x, rows, stride, error);
}

basin_status basin_row_net_moves(double *move, const basin_row_net *net, const float *from,
                                 const float *to, basin_error *error) {
    BASIN_AT_EXIT(engine_free) engine e = {0};
    int64_t cells = net->features * PIECES;
    double logit[STEPS];
    BASIN_SCRATCH_RAW(float, end, (STEPS + 2) * cells, "an explanation", error);
    BASIN_TRY(predictor_open(&e, net, STEPS, true, error));
    float *way = end + cells, *piece = way + cells;
    split(end, net, from);
    split(way, net, to);
    for (int64_t c = 0; c < cells; c++) way[c] -= end[c];
    for (int64_t i = 0; i < STEPS * cells; i++)
        piece[i] = end[i % cells] + ((float)(i / cells) + 0.5f) / STEPS * way[i % cells];
    BASIN_TRY(run(&e, logit, piece, error));
    BASIN_TRY(basin_values_read(e.plan, e.slope, piece, BASIN_F32, error));
    memset(move, 0, (size_t)net->features * sizeof *move);
    for (int64_t i = 0; i < STEPS * cells; i++)
        move[i % cells / PIECES] += (double)way[i % cells] * (double)piece[i] / STEPS;
    return BASIN_OK;
}

/* ---- training ---- */

typedef struct fitting {
    basin_row_net *net;
    const basin_trees_data *data;
    engine engine, judge;
    basin_trainer *trainer;
    int64_t batch, steps, judges, every; /* validation row of so many that judges */
    int64_t *order;                      /* [trains] */
    float *piece, *number;               /* [batch, features, PIECES] [2, batch] */
    float *now, *best;                   /* [weights]; the network's own are the moving mean */
    double *logit;                       /* [judges] */
    uint8_t *label;
    uint64_t seed;
} fitting;

static void fitting_free(fitting *f) {
    basin_trainer_free_at(&f->trainer);
    engine_free(&f->engine);
    engine_free(&f->judge);
    free(f->order), free(f->piece), free(f->number);
    free(f->now), free(f->best), free(f->logit), free(f->label);
    basin_row_net_free(f->net);
}

/* Validation rows that say when to stop; none where a class is absent. */
static basin_status take_judges(fitting *f, basin_error *error) {
    const basin_trees_data *d = f->data;
    int64_t ones = 0;
    f->every = 1 + d->validations / JUDGED;
    f->judges = d->validations / f->every;
    BASIN_TRY(BASIN_NEW_RAW(&f->logit, f->judges, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&f->label, f->judges, what, error));
    for (int64_t i = 0; i < f->judges; i++)
        ones += f->label[i] = d->label[d->trains + i * f->every];
    if (ones == 0 || ones == f->judges) f->judges = 0;
    return f->judges ? predictor_open(&f->judge, f->net, BATCH, false, error) : BASIN_OK;
}

static basin_status prepare(fitting *f, basin_error *error) {
    const basin_trees_data *d = f->data;
    basin_row_net *n = f->net;
    f->batch = basin_int_min(BATCH, d->trains);
    f->steps = basin_int_min(MAXIMUM, d->trains / f->batch * LOOKS);
    if (f->steps < MINIMUM) f->steps = MINIMUM;
    basin_trainer_spec spec = {.optimizer = {.beta1 = 0.9,
                                             .beta2 = 0.999,
                                             .epsilon = 1e-8,
                                             .weight_decay = decay,
                                             .clip = 1,
                                             .decay_matrices_only = true},
                               .schedule = {f->steps / 8, f->steps, 0, rate, 0}};
    BASIN_TRY(find_edges(n->edge, d, error));
    BASIN_TRY(BASIN_NEW_RAW(&f->order, d->trains, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&f->number, 2 * f->batch, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&f->piece, f->batch * n->features * PIECES, what, error));
    BASIN_TRY(engine_open(&f->engine, n, f->batch, true, false, error));
    BASIN_TRY(basin_trainer_new(&f->trainer, f->engine.store, &f->engine.params, f->engine.loss,
                                &spec, error));
    BASIN_TRY(basin_params_init(&f->engine.params, f->engine.store, f->seed, error));
    n->weights = basin_params_total(&f->engine.params);
    BASIN_TRY(BASIN_NEW_RAW(&n->weight, n->weights, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&f->now, n->weights, what, error));
    BASIN_TRY(BASIN_NEW_RAW(&f->best, n->weights, what, error));
    BASIN_TRY(move_weights(&f->engine, n->weight, true, error));
    return take_judges(f, error);
}

static basin_status step(fitting *f, int64_t number, basin_error *error) {
    const basin_trees_data *d = f->data;
    basin_row_net *n = f->net;
    int64_t each = d->trains / f->batch, at = number % each;
    if (at == 0)
        basin_random_permutation(f->order, (size_t)d->trains, f->seed, (uint64_t)(number / each));
    for (int64_t i = 0; i < f->batch; i++) {
        int64_t row = f->order[at * f->batch + i];
        split(f->piece + i * n->features * PIECES, n, d->x + row * d->stride);
        f->number[i] = d->label[row];
        f->number[f->batch + i] = (float)d->weight[d->label[row]];
    }
    uint64_t seed = f->seed * 0x9e3779b97f4a7c15u + (uint64_t)number;
    int32_t word[2] = {(int32_t)(uint32_t)seed, (int32_t)(uint32_t)(seed >> 32)};
    const engine *e = &f->engine;
    basin_plan *plan = basin_trainer_plan(f->trainer);
    double loss, part = fmax(1 - average, 1 / (double)(number + 2));
    BASIN_TRY(basin_values_write(plan, e->pieces, f->piece, BASIN_F32, error));
    BASIN_TRY(basin_values_write(plan, e->label, f->number, BASIN_F32, error));
    BASIN_TRY(basin_values_write(plan, e->weight, f->number + f->batch, BASIN_F32, error));
    BASIN_TRY(basin_values_write(plan, e->seed, word, BASIN_I32, error));
    BASIN_TRY(basin_trainer_step(&loss, f->trainer, error));
    BASIN_TRY(move_weights(&f->engine, f->now, true, error));
    for (int64_t i = 0; i < n->weights; i++)
        n->weight[i] += (float)part * (f->now[i] - n->weight[i]);
    return BASIN_OK;
}

static basin_status judge(double *auprc, fitting *f, basin_error *error) {
    const basin_trees_data *d = f->data;
    basin_ranking ranking = {.size = sizeof ranking};
    BASIN_TRY(move_weights(&f->judge, f->net->weight, false, error));
    BASIN_TRY(predict(f->logit, &f->judge, BATCH, f->net, d->x + d->trains * d->stride, f->judges,
                      f->every * d->stride, error));
    BASIN_TRY(basin_ranking_measure(&ranking, f->logit, f->label, f->judges, 0, error));
    *auprc = ranking.auprc;
    return BASIN_OK;
}

/* Until validation no longer gains; the best weights stay. */
static basin_status train(fitting *f, const basin_watch *watch, basin_error *error) {
    basin_row_net *n = f->net;
    size_t bytes = (size_t)n->weights * sizeof *n->weight;
    double max = -1, auprc;
    int64_t every = (f->steps + LOOKS - 1) / LOOKS, passed = 0;
    for (int64_t s = 0; s < f->steps && passed < PATIENCE && !basin_watch_stopped(watch); s++) {
        BASIN_TRY(step(f, s, error));
        if (!f->judges || (s + 1) % every) continue;
        BASIN_TRY(judge(&auprc, f, error));
        passed++;
        if (auprc > max) memcpy(f->best, n->weight, bytes), max = auprc, passed = 0;
    }
    if (max >= 0) memcpy(n->weight, f->best, bytes);
    return BASIN_OK;
}

static basin_status row_net_new(basin_row_net **net, const basin_row_net_spec *spec,
                                basin_error *error) {
    BASIN_TRY(BASIN_NEW(net, 1, what, error));
    basin_row_net *n = *net;
    n->spec = *spec;
    pthread_mutex_init(&n->lock, NULL);
    for (int t = 0; t < spec->tokens; t++) n->features += spec->width[t];
    return BASIN_NEW_RAW(&n->edge, n->features * (PIECES + 1), "quantiles", error);
}

basin_status basin_row_net_fit(basin_row_net **net, const basin_trees_data *data,
                               const basin_row_net_spec *spec, const basin_watch *watch,
                               basin_error *error) {
    BASIN_AT_EXIT(fitting_free) fitting f = {.data = data, .seed = spec->seed};
    *net = NULL;
    BASIN_TRY(row_net_new(&f.net, spec, error));
    BASIN_TRY(prepare(&f, error));
    BASIN_TRY(train(&f, watch, error));
    *net = f.net, f.net = NULL;
    return BASIN_OK;
}

void basin_row_net_free(basin_row_net *net) {
    if (!net) return;
    for (engine *e = net->idle, *next; e; e = next) next = e->next, engine_free(e), free(e);
    pthread_mutex_destroy(&net->lock);
    free(net->edge), free(net->weight), free(net);
}

int64_t basin_row_net_features(const basin_row_net *net) { return net->features; }

/* ---- files ---- */

/* PREFIXnet: the numbers of members and tokens, the columns of each token; edges; weights. */
static const char *key_of(char text[NAME], const char *prefix) {
    snprintf(text, NAME, "%snet", prefix);
    return text;
}

static int64_t edges_of(const basin_row_net *n) { return n->features * (PIECES + 1); }

basin_status basin_row_net_store(basin_bundle *bundle, const char *prefix, const basin_row_net *net,
                                 basin_error *error) {
    char key[NAME];
    int64_t edges = edges_of(net), first = 2 + net->spec.tokens;
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor all = {0};
    BASIN_TRY(basin_tensor_new(&all, BASIN_F32, BASIN_SHAPE(first + edges + net->weights), error));
    float *number = all.data;
    number[0] = (float)net->spec.members, number[1] = (float)net->spec.tokens;
    for (int t = 0; t < net->spec.tokens; t++) number[2 + t] = (float)net->spec.width[t];
    memcpy(number + first, net->edge, (size_t)edges * sizeof *number);
    memcpy(number + first + edges, net->weight, (size_t)net->weights * sizeof *number);
    return basin_bundle_add(bundle, key_of(key, prefix), &all, error);
}

static bool is_count(float x, float max) { return x >= 1 && x <= max && x == floorf(x); }

static bool read_spec(basin_row_net_spec *spec, const float *number, int64_t count) {
    bool sound = count > 3 && is_count(number[0], 64) && is_count(number[1], BASIN_ROW_TOKENS);
    *spec = (basin_row_net_spec){.tokens = sound ? (int)number[1] : 0};
    sound = sound && count > 2 + spec->tokens;
    for (int t = 0; t < spec->tokens && sound; t++) {
        sound = is_count(number[2 + t], 1 << 20);
        spec->width[t] = sound ? (int64_t)number[2 + t] : 0;
    }
    if (sound) spec->members = (int64_t)number[0];
    return sound;
}

/* Edges and weights after the shape; whether they are as many as a model of that shape has. */
static basin_status take_numbers(bool *sound, basin_row_net *n, const float *number, int64_t count,
                                 basin_error *error) {
    BASIN_AT_EXIT(engine_free) engine like = {0};
    int64_t edges = edges_of(n), first = 2 + n->spec.tokens;
    BASIN_TRY(engine_open(&like, n, 1, false, false, error));
    n->weights = basin_params_total(&like.params);
    *sound = count == first + edges + n->weights;
    if (!*sound) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&n->weight, n->weights, what, error));
    memcpy(n->edge, number + first, (size_t)edges * sizeof *number);
    memcpy(n->weight, number + first + edges, (size_t)n->weights * sizeof *number);
    return BASIN_OK;
}

basin_status basin_row_net_load(basin_row_net **net, const basin_bundle *bundle, const char *prefix,
                                basin_error *error) {
    char key[NAME];
    basin_row_net_spec spec;
    const basin_tensor *t = basin_bundle_find(bundle, key_of(key, prefix));
    *net = NULL;
    if (!t) return BASIN_OK;
    int64_t count = basin_shape_count(t->shape);
    bool sound =
        t->dtype == BASIN_F32 && basin_tensor_first_bad(t) < 0 && read_spec(&spec, t->data, count);
    basin_status status = sound ? row_net_new(net, &spec, error) : BASIN_OK;
    if (sound && !status) status = take_numbers(&sound, *net, t->data, count, error);
    if (!status && !sound)
        status = basin_fail(error, BASIN_BAD_FILE, "%s: %s is not %s", basin_bundle_path(bundle),
                            key, what);
    if (status) basin_row_net_free(*net), *net = NULL;
    return status;
}
