/* Models of language: NRGPT's steps, GPT's layers, and what both have around them: tokens,
 * positions, a last norm, the head and the loss; see basin/language.h. */
#include <math.h>

#include "expr/graph.h"
#include "model/model.h"

static const basin_init small = {BASIN_INIT_NORMAL, 0.02};
static const basin_init none = {BASIN_INIT_CONSTANT, 0};
static const basin_init one = {BASIN_INIT_CONSTANT, 1};

/* ---- NRGPT ---- */

static basin_expr normal(basin_params *params, const char *name, basin_shape shape) {
    return basin_param_add(params, "", name, shape, small);
}

static basin_expr zeros(basin_params *params, const char *name, int64_t count) {
    return basin_param_add(params, "", name, BASIN_SHAPE(count), none);
}

/* FF1 and FF2W widen at once; FF2 has a square map first. */
static void nrgpt_declare(basin_language *model, basin_params *params) {
    const basin_language_config *c = &model->config;
    basin_zoo_nrgpt *m = &model->nrgpt;
    int64_t D = c->dim, U = c->hidden;
    bool two = c->feed != BASIN_ZOO_FEED_1, square = c->feed == BASIN_ZOO_FEED_2;
    *m = (basin_zoo_nrgpt){.feed = c->feed, .strict = c->strict, .beta = c->beta};
    m->h = normal(params, "h", BASIN_SHAPE(c->heads, D, D));
    m->bias = zeros(params, "bias", D);
    m->proj = normal(params, "proj", BASIN_SHAPE(D, D));
    m->scale = basin_param_add(params, "", "scale", BASIN_SCALAR, one);
    m->w1 = normal(params, "w1", BASIN_SHAPE(square ? D : U, D));
    m->b1 = zeros(params, "b1", square ? D : U);
    if (!two) return;
    m->w2 = normal(params, "w2", square ? BASIN_SHAPE(U, D) : BASIN_SHAPE(D, U));
    m->b2 = zeros(params, "b2", square ? U : D);
}

static basin_expr nrgpt_steps(const basin_language *model, basin_expr x, basin_expr seed,
                              basin_expr *energy) {
    const basin_language_config *c = &model->config;
    basin_zoo_nrgpt m = model->nrgpt;
    m.dropout = c->dropout;
    m.dropout_step = c->dropout_step;
    m.seed = seed;
    x = basin_dropout(x, c->dropout_step, seed);
    basin_turn turn;
    basin_energy energies = basin_zoo_nrgpt_energy(&m, &turn);
    basin_descent_spec spec = {.steps = c->steps,
                               .alpha = c->alpha > 0 ? c->alpha : 1,
                               .recompute = c->recompute,
                               .turn = &turn,
                               .turns = 1};
    return basin_descend(&energies, x, &spec, energy);
}

/* ---- GPT: pre-norm layers of causal softmax attention and a perceptron ---- */

/* First values as in GPT-2. What is added to the tokens is drawn smaller, so that their variance
 * does not grow with depth. */
static void gpt_declare(basin_language *model, basin_params *params) {
    const basin_language_config *c = &model->config;
    basin_layer_config layer = {.dim = c->dim,
                                .width = c->dim,
                                .hidden = c->hidden,
                                .no_bias = !c->bias,
                                .gains = {"norm1_w", "norm2_w"},
                                .deviation = 0.02,
                                .added = 0.02 / sqrt(2.0 * c->steps)};
    for (int i = 0; i < c->steps; i++)
        basin_model_layer_declare(&model->layer[i], params, &layer, i);
}

/* Queries, keys and values of all heads are one product, and one operation mixes the values. */
static basin_expr attention(const basin_language_config *c, const basin_vit_layer *l, basin_expr g,
                            basin_expr seed) {
    basin_expr weight[3] = {l->wq, l->wk, l->wv}, bias[3] = {l->bq, l->bk, l->bv};
    basin_expr qkv = basin_model_affine(g, basin_concat(weight, 3, -1),
                                        l->bq ? basin_concat(bias, 3, -1) : NULL);
    basin_expr mixed =
        basin_softmax_attention_packed(qkv, c->heads, c->dropout, seed, &BASIN_CAUSAL_PAIRS);
    return g ? basin_model_affine(basin_reshape(mixed, basin_expr_shape(g)), l->wo, l->bo) : NULL;
}

static basin_expr layer(const basin_language_config *c, const basin_vit_layer *l, basin_expr x,
                        basin_expr seed) {
    basin_expr pull = attention(c, l, basin_model_norm_of(&l->norm1, x, 1e-5), seed);
    x = basin_add(x, basin_dropout(pull, c->dropout, seed));
    pull = basin_model_perceptron(l, x, 1e-5);
    return basin_add(x, basin_dropout(pull, c->dropout, seed));
}

static basin_expr gpt_layers(const basin_language *model, basin_expr x, basin_expr seed) {
    const basin_language_config *c = &model->config;
    basin_graph *graph = basin_expr_graph(model->tok);
    x = basin_dropout(x, c->dropout, seed);
    for (int i = 0; i < c->steps; i++) {
        if (c->recompute) basin_recompute_begin(graph);
        x = basin_keep(layer(c, &model->layer[i], x, seed));
        if (c->recompute) basin_recompute_end(graph);
    }
    return x;
}

/* ---- any model of language ---- */

static basin_status check_config(const basin_language_config *c, basin_graph *graph) {
    if (c->steps < 1 || c->steps > BASIN_MAX_LAYERS)
        basin_graph_fail(graph, BASIN_BAD_VALUE,
                         "a model of language with %d steps; wanted 1 to %d", c->steps,
                         BASIN_MAX_LAYERS);
    else if (c->vocabulary < 1 || c->context < 1 || c->dim < 1 || c->heads < 1 || c->hidden < 1)
        basin_graph_fail(graph, BASIN_BAD_VALUE,
                         "a model of language with %lld tokens, context %lld, D %lld, H %lld, %lld "
                         "hidden units; wanted 1 or more of each",
                         (long long)c->vocabulary, (long long)c->context, (long long)c->dim,
                         (long long)c->heads, (long long)c->hidden);
    else if (c->arch == BASIN_LANGUAGE_GPT && c->dim % c->heads != 0)
        basin_graph_fail(graph, BASIN_BAD_VALUE,
                         "a GPT with %lld heads, wanted a divisor of D %lld", (long long)c->heads,
                         (long long)c->dim);
    return basin_model_status(graph);
}

basin_status basin_language_declare(basin_language *model, basin_params *params,
                                    const basin_language_config *config) {
    *model = (basin_language){.config = *config};
    basin_language_config *c = &model->config;
    bool gpt = c->arch == BASIN_LANGUAGE_GPT, biased = !gpt || c->bias;
    if (c->hidden == 0) c->hidden = 4 * c->dim;
    basin_status status = check_config(c, params->graph);
    if (status) return status;
    int64_t V = c->vocabulary, D = c->dim;
    model->tok = basin_param_add(params, "", "tok", BASIN_SHAPE(V, D), small);
    model->pos = basin_param_add(params, "", "pos", BASIN_SHAPE(c->context, D), small);
    (gpt ? gpt_declare : nrgpt_declare)(model, params);
    model->norm.gain = basin_param_add(params, "", "lnf_w", BASIN_SHAPE(D), one);
    if (biased) model->norm.bias = basin_param_add(params, "", "lnf_b", BASIN_SHAPE(D), none);
    model->head_w =
        c->tied ? model->tok : basin_param_add(params, "", "head_w", BASIN_SHAPE(V, D), small);
    if (biased) model->head_b = basin_param_add(params, "", "head_b", BASIN_SHAPE(V), none);
    return basin_model_status(params->graph);
}

/* How many tokens a window has; 0, and a message, where they do not fit. */
static int64_t window_of(const basin_language *m, basin_expr ids, int64_t batch) {
    basin_shape s = basin_expr_shape(ids);
    int64_t most = m->config.context;
    if (s.rank == 1 && batch >= 1 && s.dim[0] % batch == 0 && s.dim[0] >= batch &&
        s.dim[0] / batch <= most)
        return s.dim[0] / batch;
    basin_graph_fail(
        basin_expr_graph(m->tok), BASIN_BAD_SHAPE,
        "%lld windows of tokens are %s, wanted [windows tokens], at most %lld tokens a window",
        (long long)batch, basin_shape_text(s), (long long)most);
    return 0;
}

basin_expr basin_language_tokens(const basin_language *model, basin_expr ids, int64_t batch,
                                 basin_expr seed, basin_expr *energy) {
    const basin_language_config *c = &model->config;
    int64_t N = ids ? window_of(model, ids, batch) : 0;
    if (!N) return NULL;
    basin_expr x = basin_reshape(basin_gather(model->tok, ids), BASIN_SHAPE(batch, N, c->dim));
    x = basin_add(x, basin_slice(model->pos, 0, 0, N));
    if (c->arch == BASIN_LANGUAGE_NRGPT) return nrgpt_steps(model, x, seed, energy);
    if (energy)
        return basin_graph_fail(basin_expr_graph(x), BASIN_UNSUPPORTED,
                                "energies of a GPT, which has none; wanted an NRGPT");
    return gpt_layers(model, x, seed);
}

basin_expr basin_language_logits(const basin_language *model, basin_expr tokens) {
    basin_expr g = basin_model_norm_of(&model->norm, tokens, 1e-5);
    basin_expr logits = basin_matmul_t(g, false, model->head_w, true);
    return model->head_b ? basin_add(logits, model->head_b) : logits;
}

basin_expr basin_language_loss(basin_expr logits, basin_expr label) {
    if (!logits || !label) return NULL;
    basin_shape s = basin_expr_shape(logits);
    basin_expr rows = basin_reshape(logits, BASIN_SHAPE(-1, s.dim[s.rank - 1]));
    return basin_mean_all(basin_cross_entropy_labels(rows, label));
}
