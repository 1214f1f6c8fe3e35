/* Energy Transformers over rows of a table, in detectors' files of earlier versions: read, not
 * trained; see trees.h. The tensor PREFIXnet has the numbers of members and tokens, the columns of
 * each token, the edges of the columns' pieces, and the weights in the order of their declaration.
 */
#include <pthread.h>

#include "base/bundle.h"
#include "base/sort.h"
#include "base/states.h"
#include "basin/energy.h"
#include "tasks/nodes/trees/trees.h"

/* Pieces of a column, what they become, and sizes of the block and the head. */
enum { PIECES = 32, UNITS = 4, DIM = 32, HEADS = 2, MEMORIES = 64, HIDDEN = 32 };
enum { MAX_MEMBERS = 64, MAX_TOKENS = 32, MAX_WIDTH = 1 << 20, ROWS = 64, NAME = 96 };
static const char what[] = "a network of rows";

struct basin_row_net {
    basin_tensor file;
    int64_t members, tokens, features, weights;
    const float *width, *edge; /* [tokens] [features, PIECES + 1] */
    float *weight;             /* [weights] of all parameters */
    basin_engine engine;
    basin_params params;
    basin_expr pieces, logit, slope; /* [ROWS, F, PIECES] [ROWS] [ROWS, F, PIECES] */
    pthread_mutex_t lock;            /* of */
    basin_plan *plan[2];             /* for logits; also for slopes, made when first needed */
};

/* ---- the model ---- */

static basin_expr add(basin_row_net *n, const char *name, int64_t number, basin_shape shape) {
    char text[NAME];
    snprintf(text, sizeof text, "%s%lld", name, (long long)number);
    return basin_param_add(&n->params, "", text, shape, (basin_init){BASIN_INIT_CONSTANT, 0});
}

/* Tokens of all members [ROWS K, C, D]. Weights are declared in the order that files have, here and
 * below. */
static basin_expr embed(basin_row_net *n) {
    int64_t K = n->members, first = 0;
    basin_expr token[MAX_TOKENS];
    basin_expr w = add(n, "pieces", 0, BASIN_SHAPE(n->features, PIECES, UNITS));
    basin_expr v = basin_einsum("bft,fte->bfe", n->pieces, w);
    for (int64_t t = 0; t < n->tokens; first += (int64_t)n->width[t++]) {
        int64_t width = (int64_t)n->width[t], W = width * UNITS;
        basin_expr x = basin_reshape(basin_slice(v, 1, first, width), BASIN_SHAPE(ROWS, 1, W));
        x = basin_mul(x, add(n, "token_in", t, BASIN_SHAPE(K, W)));
        basin_expr out = add(n, "token_out", t, BASIN_SHAPE(K, DIM));
        x = basin_einsum("bkw,wd->bkd", x, add(n, "token_w", t, BASIN_SHAPE(W, DIM)));
        x = basin_mul(x, out);
        token[t] = basin_add(x, add(n, "token_b", t, BASIN_SHAPE(K, DIM)));
    }
    basin_expr all = basin_stack(token, (int)n->tokens, 2);
    return basin_reshape(all, BASIN_SHAPE(ROWS * K, n->tokens, DIM));
}

/* First and last activations of all tokens side by side become a logit per member, [ROWS, K]. */
static basin_expr read_out(basin_row_net *n, basin_expr x) {
    int64_t K = n->members, W = 2 * DIM * n->tokens;
    basin_block block;
    basin_block_config config = {.dim = DIM,
                                 .heads = HEADS,
                                 .head_dim = DIM / HEADS,
                                 .memories = MEMORIES,
                                 .no_attention = n->tokens == 1,
                                 .learn_beta = n->tokens > 1};
    basin_descent_spec descent = {.steps = 1, .alpha = 1};
    if (!x || basin_block_declare(&block, &n->params, "", &config)) return NULL;
    basin_block_bound bound = {.block = &block, .pattern = &BASIN_ALL_PAIRS};
    basin_energy energy = basin_block_energy(&bound);
    basin_expr last = basin_descend(&energy, x, &descent, NULL);
    basin_expr both[] = {basin_block_norm(&block, x), basin_block_norm(&block, last)};
    basin_expr h = basin_reshape(basin_concat(both, 2, 2), BASIN_SHAPE(ROWS, K, W));
    h = basin_mul(h, add(n, "head_in", 0, BASIN_SHAPE(K, W)));
    basin_expr bias = add(n, "head_b", 0, BASIN_SHAPE(K, HIDDEN));
    h = basin_einsum("bkw,wd->bkd", h, add(n, "head_w", 0, BASIN_SHAPE(W, HIDDEN)));
    h = basin_relu(basin_add(h, bias));
    h = basin_mul(h, add(n, "head_w", 1, BASIN_SHAPE(K, HIDDEN)));
    return basin_add(basin_sum(h, 2, 1), add(n, "head_b", 1, BASIN_SHAPE(K)));
}

/* The logit of the members' mean probability. */
static basin_expr mean_logit(basin_expr z) {
    basin_expr yes = basin_logsumexp(basin_neg(basin_softplus(basin_neg(z))), -1);
    return basin_sub(yes, basin_logsumexp(basin_neg(basin_softplus(z)), -1));
}

/* On one thread, so that bits do not depend on how many there are. */
static basin_status declare(basin_row_net *n, basin_error *error) {
    BASIN_TRY(basin_engine_open(&n->engine, &(basin_compute){.threads = 1}, error));
    basin_params_begin(&n->params, n->engine.graph);
    n->pieces = basin_input(n->engine.graph, "pieces", BASIN_SHAPE(ROWS, n->features, PIECES));
    basin_expr z = read_out(n, embed(n));
    if (z) n->logit = mean_logit(z);
    if (n->logit) n->slope = basin_grad(basin_sum_all(n->logit), n->pieces);
    return basin_graph_check(n->engine.graph, error);
}

static basin_status write_weights(const basin_row_net *n, basin_error *error) {
    float *weight = n->weight;
    for (size_t i = 0; i < n->params.count; i++) {
        basin_expr state = n->params.param[i].state;
        basin_tensor one = basin_tensor_borrow(weight, BASIN_F32, basin_expr_shape(state));
        BASIN_TRY(basin_store_write(n->engine.store, basin_expr_name(state), &one, error));
        weight += basin_shape_count(one.shape);
    }
    return BASIN_OK;
}

/* ---- predictions ---- */

static void unlock(pthread_mutex_t **lock) { pthread_mutex_unlock(*lock); }

/* -1 below a piece, 1 above it, a straight line inside; a piece of no width is a step. */
static void split(float *piece /* [F, PIECES] */, const basin_row_net *n, const float *row) {
    for (int64_t f = 0; f < n->features; f++)
        for (int p = 0; p < PIECES; p++, piece++) {
            const float *edge = n->edge + f * (PIECES + 1) + p;
            float low = edge[0], high = edge[1], x = row[f];
            *piece = x >= high ? 1 : x <= low ? -1 : 2 * (x - low) / (high - low) - 1;
        }
}

static basin_status run(double *logit, basin_row_net *n, bool slopes, const float *piece,
                        basin_error *error) {
    basin_expr output[] = {n->logit, n->slope};
    basin_plan_spec spec = {.output = output, .outputs = slopes ? 2 : 1};
    basin_plan **plan = &n->plan[slopes];
    if (!*plan) BASIN_TRY(basin_plan_new(plan, n->engine.store, &spec, error));
    BASIN_TRY(basin_values_write(*plan, n->pieces, piece, BASIN_F32, error));
    BASIN_TRY(basin_plan_run(*plan, error));
    return basin_values_read(*plan, n->logit, logit, BASIN_F64, error);
}

basin_status basin_row_net_predict(double *logit, basin_row_net *n, const float *x, int64_t rows,
                                   int64_t stride, basin_error *error) {
    int64_t cells = n->features * PIECES;
    double found[ROWS];
    BASIN_SCRATCH(float, piece, (ROWS * cells), what, error);
    BASIN_AT_EXIT(unlock) pthread_mutex_t *lock = &n->lock;
    pthread_mutex_lock(lock);
    for (int64_t first = 0; first < rows; first += ROWS) {
        int64_t count = basin_int_min(ROWS, rows - first);
        for (int64_t i = 0; i < count; i++) split(piece + i * cells, n, x + (first + i) * stride);
        BASIN_TRY(run(found, n, false, piece, error));
        memcpy(logit + first, found, (size_t)count * sizeof *logit);
    }
    return BASIN_OK;
}

/* Integrated gradients along the straight line between the pieces of both. */
static basin_status add_moves(float *value, basin_row_net *n, float *end /* [ROWS + 2, cells] */,
                              const float *from, const float *to, basin_error *error) {
    int64_t cells = n->features * PIECES;
    double logit[ROWS];
    float *way = end + cells, *piece = way + cells;
    split(end, n, from);
    split(way, n, to);
    for (int64_t c = 0; c < cells; c++) way[c] -= end[c];
    for (int64_t i = 0; i < ROWS * cells; i++)
        piece[i] = end[i % cells] + ((float)(i / cells) + 0.5f) / ROWS * way[i % cells];
    BASIN_TRY(run(logit, n, true, piece, error));
    BASIN_TRY(basin_values_read(n->plan[true], n->slope, piece, BASIN_F32, error));
    for (int64_t f = 0; f < n->features; f++) {
        double move = 0;
        for (int64_t i = 0; i < ROWS * PIECES; i++) {
            int64_t c = f * PIECES + i % PIECES;
            move += (double)way[c] * (double)piece[i / PIECES * cells + c] / ROWS;
        }
        value[f] = (float)move;
    }
    return BASIN_OK;
}

basin_status basin_row_net_moves(float *value, basin_row_net *n, const float *x, int64_t rows,
                                 int64_t stride, basin_error *error) {
    BASIN_SCRATCH_RAW(float, room, (ROWS + 2) * n->features * PIECES, what, error);
    BASIN_AT_EXIT(unlock) pthread_mutex_t *lock = &n->lock;
    pthread_mutex_lock(lock);
    for (int64_t i = 0; i < rows; i++, value += n->features + 1) {
        BASIN_TRY(add_moves(value, n, room, x, x + i * stride, error));
        value[n->features] = 0;
    }
    return BASIN_OK;
}

int64_t basin_row_net_features(const basin_row_net *net) { return net->features; }

/* ---- files ---- */

basin_status basin_row_net_store(basin_bundle *bundle, const char *prefix, const basin_row_net *net,
                                 basin_error *error) {
    char key[NAME];
    snprintf(key, NAME, "%snet", prefix);
    return basin_bundle_put(bundle, key, net->file.data, BASIN_F32, net->file.shape, error);
}

void basin_row_net_free(basin_row_net *net) {
    if (!net) return;
    for (int i = 0; i < 2; i++) basin_plan_free(net->plan[i]);
    basin_params_free(&net->params);
    basin_engine_close(&net->engine);
    basin_tensor_free(&net->file);
    pthread_mutex_destroy(&net->lock);
    free(net);
}

static bool is_count(float x, float max) { return x >= 1 && x <= max && x == floorf(x); }

/* BASIN_BAD_FILE where sizes are none, or not those of the tensor. */
static basin_status read(basin_row_net *n, const basin_tensor *tensor, basin_error *error) {
    int64_t count = basin_shape_count(tensor->shape);
    if (tensor->dtype != BASIN_F32 || basin_tensor_first_bad(tensor) >= 0 || count < 3)
        return BASIN_BAD_FILE;
    BASIN_TRY(basin_tensor_new(&n->file, BASIN_F32, tensor->shape, error));
    BASIN_TRY(basin_tensor_convert(&n->file, tensor, error));
    float *number = n->file.data;
    if (!is_count(number[0], MAX_MEMBERS) || !is_count(number[1], MAX_TOKENS))
        return BASIN_BAD_FILE;
    n->members = (int64_t)number[0], n->tokens = (int64_t)number[1];
    n->width = number + 2, n->edge = n->width + n->tokens;
    for (int64_t t = 0; t < n->tokens; n->features += (int64_t)n->width[t++])
        if (count < 3 + n->tokens || !is_count(n->width[t], MAX_WIDTH)) return BASIN_BAD_FILE;
    int64_t first = 2 + n->tokens + n->features * (PIECES + 1);
    n->weight = number + first, n->weights = count - first;
    if (n->weights < 1) return BASIN_BAD_FILE;
    BASIN_TRY(declare(n, error));
    if (basin_params_total(&n->params) != n->weights) return BASIN_BAD_FILE;
    return write_weights(n, error);
}

basin_status basin_row_net_load(basin_row_net **net, const basin_bundle *bundle, const char *prefix,
                                basin_error *error) {
    char key[NAME];
    snprintf(key, NAME, "%snet", prefix);
    const basin_tensor *tensor = basin_bundle_find(bundle, key);
    *net = NULL;
    if (!tensor) return BASIN_OK;
    BASIN_TRY(BASIN_NEW(net, 1, what, error));
    pthread_mutex_init(&(*net)->lock, NULL);
    basin_status status = read(*net, tensor, error);
    if (status == BASIN_BAD_FILE)
        basin_fail(error, status, "%s: %s is not %s", basin_bundle_path(bundle), key, what);
    if (status) basin_row_net_free(*net), *net = NULL;
    return status;
}
