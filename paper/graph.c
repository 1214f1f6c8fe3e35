/* Classes of graphs (section 5, appendix D): nodes and a CLS token that sees all of them, S blocks
 * whose attention follows the edges, and a linear map of the CLS token.
 *
 *     graph DATA [--NAME VALUE ..]
 *
 * DATA is a TUDataset (basin_graphset_read). Settings have the names and meanings of `basin graph
 * train`, which gives the same numbers from the same seed (with --validation 0); their defaults are
 * the paper's. The program prints the loss of every epoch and the accuracy of table 2 (96.6 % for
 * MUTAG) by the paper's protocol: on the graphs that it was trained on, with the noise of training.
 * `basin graph cv` tests on graphs that a model has not seen. */
#include <basin/tasks/graphset.h>

#include "paper.h"

/* ---- the table of appendix D ---- */

static struct {
    int64_t dim, heads, head_dim, memories, steps, blocks;    /* D, H, Y, K, T, S */
    int64_t eigenvectors, batch, epochs, warmup, noisy, seed; /* k; noisy: evaluations */
    double alpha, noise, smoothing, rate, rate_first, rate_last, beta2, decay;
} set;

static void read_settings(void) {
    set.dim = integer("--dim", 128), set.heads = integer("--heads", 12);
    set.head_dim = integer("--head-dim", 64), set.memories = integer("--memories", 512);
    set.steps = integer("--steps", 1), set.blocks = integer("--blocks", 4);
    set.alpha = real("--alpha", 0.01), set.noise = real("--noise", 0.02);
    set.eigenvectors = integer("--eigenvectors", 15), set.noisy = integer("--noisy", 100);
    set.batch = integer("--batch", 32), set.epochs = integer("--epochs", 300);
    set.warmup = integer("--warmup", 50), set.rate = real("--rate", 1e-3);
    set.rate_first = real("--rate-first", 5e-6), set.rate_last = real("--rate-last", 5e-6);
    set.beta2 = real("--beta2", 0.99), set.decay = real("--decay", 0.05);
    set.smoothing = real("--smoothing", 0.05), set.seed = integer("--seed", 0);
}

/* ---- the data ---- */

static struct {
    basin_graphset set;
    int64_t features, edge_features; /* F, P' */
    float *feature, *edge_feature;   /* [nodes, F] [edges, P'] */
    basin_positions positions;       /* [tokens, k] */
    double tokens[2], pairs[2];      /* of batches: the mean, and half a deviation */
} data;

/* Attributes as they are, then the label one-hot; a column of ones where there is neither. */
static float *encode(int64_t *width, const float *attribute, int64_t attributes,
                     const int32_t *label, int64_t labels, int64_t rows) {
    int32_t low = INT32_MAX, high = INT32_MIN;
    for (int64_t i = 0; labels && i < rows; i++) low = label[i] < low ? label[i] : low;
    for (int64_t i = 0; labels && i < rows; i++) high = label[i] > high ? label[i] : high;
    bool plain = !attributes && !labels;
    *width = attributes + plain + (labels && rows ? high - low + 1 : 0);
    float *table = calloc((size_t)(rows * *width) + 1, sizeof(float)), *row = table;
    for (int64_t i = 0; i < rows; i++, row += *width) {
        for (int64_t c = 0; c < attributes; c++) row[c] = attribute[i * attributes + c];
        if (labels) row[attributes + label[i] - low] = 1;
        if (plain) row[0] = 1;
    }
    return table;
}

static int64_t nodes_of(int64_t graph) {
    return data.set.node_start[graph + 1] - data.set.node_start[graph];
}

static int64_t pairs_of(int64_t graph) { /* the edges, and the CLS token with every node */
    return data.set.edge_start[graph + 1] - data.set.edge_start[graph] + 2 * nodes_of(graph);
}

static void spread(double need[2], int64_t (*size)(int64_t graph)) {
    double sum = 0, squares = 0, n = (double)data.set.graphs, batch = (double)set.batch;
    for (int64_t g = 0; g < data.set.graphs; g++)
        sum += (double)(size(g) + 1), squares += pow((double)(size(g) + 1), 2);
    need[0] = ceil(batch * sum / n);
    need[1] = ceil(fmax(32, 0.5 * sqrt(batch * fmax(squares / n - sum / n * sum / n, 0))));
}

/* Positions are eigenvectors of the normalised Laplacian (equation 23) of each graph with its CLS
 * token, which is connected to all nodes. */
static void open_data(const char *path) {
    basin_position_options spec = {.vectors = set.eigenvectors, .with_cls = true};
    basin_graphset *s = &data.set;
    must(basin_graphset_read(s, path, NULL, &error));
    if (s->task != BASIN_GRAPHS_CLASSES || s->node_labels > 1 || s->edge_labels > 1)
        quit(path, "expected a class per graph, and one column of labels at most");
    data.feature = encode(&data.features, s->node_attribute, s->node_attributes, s->node_label,
                          s->node_labels, s->nodes);
    data.edge_feature = encode(&data.edge_features, s->edge_attribute, s->edge_attributes,
                               s->edge_label, s->edge_labels, s->edges);
    must(basin_positions_new(&data.positions, s, &spec, 0, s->graphs, &error));
    if (set.batch > s->graphs) set.batch = s->graphs;
    spread(data.tokens, nodes_of), spread(data.pairs, pairs_of);
}

/* ---- the energy ---- */

typedef struct block {
    const struct model *model;
    basin_expr wk, wq, beta, mix, xi; /* [H, Y, D] [H, Y, D] [H] [H, H] [K, D] */
    basin_expr gamma, delta;          /* [] [D] */
} block;

typedef struct affine {
    basin_expr w, b; /* x w + b */
} affine;

enum { FEATURE, POSITION, NODE, EDGE, TARGET, WEIGHT, FIRST, SEED, INPUTS, BLOCKS_MOST = 16 };

/* The model for batches of up to N tokens and E pairs. */
typedef struct model {
    double level; /* of N and E */
    basin_params params;
    affine encoder, place, edge, decoder; /* F to D, k to D, P' to H, D to classes */
    basin_expr cls, conv;                 /* [D] [H, 3, 3] */
    block block[BLOCKS_MOST];
    basin_expr input[INPUTS];
    void *value[INPUTS]; /* of the next batch */
    basin_pattern pattern;
    int32_t *pair;                      /* [E, 2] query, key: of the next batch */
    int64_t tokens, pairs, graphs;      /* in it so far */
    basin_expr adjacency, output, loss; /* [E, H] [B, classes] [] */
    basin_trainer *trainer;
    basin_plan *plan; /* of the output */
} model;

/* Equations 1 and 26: each block has its own. */
static basin_expr layer_norm(const void *context, basin_expr x) {
    const block *b = context;
    return basin_layernorm(x, b->gamma, b->delta, 1e-5);
}

/* Equation 25 over the connected pairs; the mixing of heads is only in the released code.
 * E_ATT = -sum_h,C 1/beta_h log sum_B exp(A_hBC sum_h' mix_h'h beta_h' K_h'B . Q_h'C) */
static basin_expr attention(const void *context, basin_expr g) {
    const block *b = context;
    basin_expr K = basin_einsum("nd,hyd->nhy", g, b->wk);
    basin_expr Q = basin_einsum("nd,hyd->nhy", g, b->wq);
    basin_lse_options edges = {.scale = b->model->adjacency, .mix = b->mix};
    basin_expr lse = basin_attention_lse(Q, K, b->beta, &b->model->pattern, &edges);
    return basin_neg(basin_sum_all(basin_div(lse, b->beta))); /* lse [N, H] */
}

/* Equation 5 with G(z) = relu(z)^2 / 2: E_HN = -sum over B, mu of G(xi_mu . g_B) */
static basin_expr hopfield(const void *context, basin_expr g) {
    const block *b = context;
    basin_expr h = basin_relu(basin_einsum("nd,kd->nk", g, b->xi));
    return basin_scale(basin_sum_all(basin_square(h)), -0.5);
}

static basin_expr apply(affine map, basin_expr x) {
    return basin_add(basin_matmul(x, map.w), map.b);
}

/* Equation 24, A = Conv2D(X (x) X) * A', for the connected pairs: the convolved Gram matrix is the
 * sum over a, b in -1, 0, 1 of conv[a, b] x_{C + a} . x_{B + b}. With three shifted copies of X as
 * heads, each rotation of the second factor gives three of these nine products. */
static basin_expr build_adjacency(const model *m, basin_expr x) {
    const int64_t N = basin_expr_shape(x).dim[0];
    basin_expr node = m->input[NODE]; /* 0 for a CLS token, where a graph begins */
    basin_expr before = basin_mul(basin_pad(basin_slice(x, 0, 0, N - 1), 0, 1, 0), node);
    basin_expr after = basin_pad(basin_slice(basin_mul(x, node), 0, 1, N - 1), 0, 0, 1);
    basin_expr shifted = basin_stack((basin_expr[]){before, x, after}, 3, 1), sum = NULL;
    for (int turn = 0; turn < 3; turn++) {
        basin_expr gram = basin_pair_dot(shifted, basin_roll(shifted, 1, -turn), &m->pattern);
        basin_expr tap = basin_einsum("htt->ht", basin_roll(m->conv, 2, -turn)); /* [H, 3] */
        basin_expr part = basin_matmul_t(gram, false, tap, true);                /* [E, H] */
        sum = sum ? basin_add(sum, part) : part;
    }
    return basin_mul(sum, apply(m->edge, m->input[EDGE])); /* A' */
}

/* ---- the network that follows from it ---- */

static basin_expr parameter(model *m, const char *prefix, const char *name, basin_shape shape,
                            basin_init_kind kind, double scale) {
    return basin_param_add(&m->params, prefix, name, shape, (basin_init){kind, scale});
}

static affine declare_affine(model *m, const char *name, int64_t in, int64_t out) {
    return (affine){parameter(m, name, "_w", BASIN_SHAPE(in, out), BASIN_INIT_LECUN, (double)in),
                    parameter(m, name, "_b", BASIN_SHAPE(out), BASIN_INIT_CONSTANT, 0)};
}

static void declare_block(model *m, block *b, int64_t number) {
    const int64_t D = set.dim, H = set.heads, Y = set.head_dim, K = set.memories;
    char at[32];
    snprintf(at, sizeof at, "block%lld.", (long long)number);
    b->model = m;
    b->wk = parameter(m, at, "wk", BASIN_SHAPE(H, Y, D), BASIN_INIT_NORMAL, 0.002);
    b->wq = parameter(m, at, "wq", BASIN_SHAPE(H, Y, D), BASIN_INIT_NORMAL, 0.002);
    b->beta = parameter(m, at, "beta", BASIN_SHAPE(H), BASIN_INIT_CONSTANT, 1 / sqrt((double)Y));
    b->mix = parameter(m, at, "mix", BASIN_SHAPE(H, H), BASIN_INIT_NORMAL, 0.002);
    b->xi = parameter(m, at, "xi", BASIN_SHAPE(K, D), BASIN_INIT_NORMAL, 1 / sqrt((double)D));
    b->gamma = parameter(m, at, "gamma", BASIN_SCALAR, BASIN_INIT_CONSTANT, 1);
    b->delta = parameter(m, at, "delta", BASIN_SHAPE(D), BASIN_INIT_CONSTANT, 0);
}

/* First values are those of the released code. The numbers drawn depend on the order. */
static void declare_parameters(model *m) {
    m->encoder = declare_affine(m, "enc", data.features, set.dim);
    m->cls = parameter(m, "", "cls", BASIN_SHAPE(set.dim), BASIN_INIT_NORMAL, 0.02);
    m->place = declare_affine(m, "pos", set.eigenvectors, set.dim);
    m->conv = parameter(m, "", "conv", BASIN_SHAPE(set.heads, 3, 3), BASIN_INIT_LECUN, 9);
    m->edge = declare_affine(m, "adj", data.edge_features, set.heads);
    for (int64_t i = 0; i < set.blocks; i++) declare_block(m, &m->block[i], i);
    m->decoder = declare_affine(m, "dec", set.dim, data.set.classes);
}

static void declare_input(model *m, int which, const char *name, basin_shape shape) {
    m->input[which] = which < FIRST ? basin_input(m->params.graph, name, shape)
                                    : basin_index(m->params.graph, name, shape);
    m->value[which] = calloc((size_t)basin_shape_count(shape), 4);
}

static void declare_inputs(model *m, int64_t N, int64_t E) {
    declare_input(m, FEATURE, "feature", BASIN_SHAPE(N, data.features));
    declare_input(m, POSITION, "position", BASIN_SHAPE(N, set.eigenvectors));
    declare_input(m, NODE, "node", BASIN_SHAPE(N, 1));
    declare_input(m, EDGE, "edge", BASIN_SHAPE(E, data.edge_features));
    declare_input(m, FIRST, "first", BASIN_SHAPE(set.batch)); /* CLS tokens */
    declare_input(m, TARGET, "target", BASIN_SHAPE(set.batch, data.set.classes));
    declare_input(m, WEIGHT, "weight", BASIN_SHAPE(set.batch));
    declare_input(m, SEED, "seed", BASIN_SHAPE(2)); /* of the noise */
    m->pattern = basin_pairs_declare(m->params.graph, "pairs", N, N, E);
    m->pair = malloc(sizeof(int32_t[2 * E]));
}

/* Tokens with positions; S blocks of T steps of equation 27, X <- X - alpha dE/dg + sqrt(alpha)
 * epsilon; a linear map of the CLS tokens; the cross entropy of smoothed labels. */
static void build(model *m, int64_t N, int64_t E) {
    basin_params_begin(&m->params, basin_graph_new());
    declare_parameters(m);
    declare_inputs(m, N, E);
    basin_expr x = basin_where(m->input[NODE], apply(m->encoder, m->input[FEATURE]), m->cls);
    x = basin_add(x, apply(m->place, m->input[POSITION]));
    m->adjacency = build_adjacency(m, x);
    basin_descent_spec descent = {
        .steps = (int)set.steps, .alpha = set.alpha, .noise = set.noise, .seed = m->input[SEED]};
    for (int64_t i = 0; i < set.blocks; i++) {
        const basin_term term[] = {{"attention", attention, NULL}, {"hopfield", hopfield, NULL}};
        basin_energy energy = {term, 2, layer_norm, &m->block[i]};
        x = basin_descend(&energy, x, &descent, NULL);
    }
    m->output = apply(m->decoder, basin_take(x, 0, m->input[FIRST]));
    basin_expr right = basin_sum(basin_mul(m->input[TARGET], m->output), -1, 1);
    basin_expr surprise = basin_sub(basin_logsumexp(m->output, -1), right);
    m->loss = basin_sum_all(basin_mul(m->input[WEIGHT], surprise));
    must(basin_graph_check(m->params.graph, &error));
}

/* Gradient centralisation: the gradient of each output's weights loses its mean over the inputs,
 * which are the first axis of a map, two axes of the convolution, and else the last. */
static basin_expr centralise(void *context, basin_expr state, basin_expr gradient) {
    (void)context;
    basin_shape shape = basin_expr_shape(state);
    const char *name = basin_expr_name(state);
    bool conv = !strcmp(name, "conv"), map = strstr(name, "_w") != NULL;
    int axis = map ? 0 : conv ? 1 : shape.rank - 1, count = conv ? 2 : 1;
    if (shape.rank < 2 || shape.dim[axis] < 2) return gradient;
    for (int i = axis; i < axis + count; i++) shape.dim[i] = 1;
    return basin_sub(gradient, basin_reshape(basin_mean(gradient, axis, count), shape));
}

/* ---- batches: graphs side by side, without an edge between them ---- */

static void add_pair(model *m, int64_t query, int64_t key, const float *feature) {
    const int64_t P = data.edge_features;
    float *to = (float *)m->value[EDGE] + m->pairs * P;
    for (int64_t c = 0; c < P; c++) to[c] = feature ? feature[c] : 1; /* of the CLS token: ones */
    m->pair[2 * m->pairs] = (int32_t)query, m->pair[2 * m->pairs + 1] = (int32_t)key;
    m->pairs++;
}

/* "The sign of the top k eigen-vectors is flipped randomly during training." */
static void flip_signs(float *position, int64_t rows, uint64_t graph, uint64_t epoch) {
    const int64_t k = set.eigenvectors; /* a bit of a word each */
    uint32_t bits = basin_random_word_at((uint64_t)set.seed, 41 + (epoch << 8), 64 * graph);
    for (int64_t i = 0; i < rows * k; i++)
        if (bits >> i % k & 1) position[i] *= -1;
}

/* The CLS token, then the nodes; pairs by query, then by key. */
static void add_graph(model *m, int64_t graph, int64_t epoch) {
    const basin_graphset *s = &data.set;
    const int64_t at = m->tokens, n = nodes_of(graph), C = s->classes;
    const int64_t F = data.features, P = data.edge_features, k = set.eigenvectors;
    float *feature = (float *)m->value[FEATURE] + at * F, *node = (float *)m->value[NODE] + at;
    float *position = (float *)m->value[POSITION] + at * k;
    float *target = (float *)m->value[TARGET] + m->graphs * C;
    memcpy(feature + F, data.feature + s->node_start[graph] * F, sizeof(float[n * F]));
    memcpy(position, data.positions.value + data.positions.start[graph] * k,
           sizeof(float[(n + 1) * k]));
    if (epoch >= 0) flip_signs(position, n + 1, (uint64_t)graph, (uint64_t)epoch);
    for (int64_t c = 0; c < C; c++) target[c] = (float)(set.smoothing / (double)C);
    target[s->class_of[graph]] += (float)(1 - set.smoothing);
    for (int64_t i = 1; i <= n; i++) node[i] = 1, add_pair(m, at, at + i, NULL);
    for (int64_t i = 0, e = s->edge_start[graph]; i < n; i++) {
        add_pair(m, at + 1 + i, at, NULL);
        for (; e < s->edge_start[graph + 1] && s->edge[2 * e] == i; e++)
            add_pair(m, at + 1 + i, at + 1 + s->edge[2 * e + 1], data.edge_feature + e * P);
    }
    ((int32_t *)m->value[FIRST])[m->graphs++] = (int32_t)at;
    m->tokens += n + 1;
}

/* Models for batches of several sizes share the weights of the store; sums are rounded by size. */
static model *model_for(basin_store *store, const int64_t *graph, int64_t count) {
    static model all[64];
    const double *t = data.tokens, *p = data.pairs;
    int64_t tokens = set.batch, pairs = 0, per = (data.set.graphs + set.batch - 1) / set.batch;
    for (int64_t i = 0; i < count; i++) tokens += nodes_of(graph[i]), pairs += pairs_of(graph[i]);
    double level = fmax(ceil(((double)tokens - t[0]) / t[1]), ceil(((double)pairs - p[0]) / p[1]));
    model *m = all;
    for (; m->plan && m < all + 63; m++)
        if (m->level == level) return m;
    build(m, (int64_t)(t[0] + level * t[1]), (int64_t)(p[0] + level * p[1]));
    basin_trainer_spec spec = {
        .optimizer = {.beta1 = 0.9, .beta2 = set.beta2, .epsilon = 1e-8, .weight_decay = set.decay},
        .schedule = {set.warmup * per, set.epochs * per, set.rate_first, set.rate, set.rate_last}};
    m->level = level;
    m->params.adjust = centralise;
    must(basin_trainer_new(&m->trainer, store, &m->params, m->loss, &spec, &error));
    must(basin_plan_new(&m->plan, store, &(basin_plan_spec){.output = &m->output, .outputs = 1},
                        &error));
    return m;
}

static void load(model *m, const int64_t *graph, int64_t count, int64_t epoch, int64_t step) {
    basin_plan *plan = epoch < 0 ? m->plan : basin_trainer_plan(m->trainer);
    basin_pairs pairs;
    const int32_t seed[2] = {(int32_t)set.seed, (int32_t)step};
    m->tokens = m->pairs = m->graphs = 0;
    for (int i = 0; i < INPUTS; i++)
        memset(m->value[i], 0, 4 * (size_t)basin_shape_count(basin_expr_shape(m->input[i])));
    for (int64_t i = 0; i < count; i++) add_graph(m, graph[i], epoch);
    for (int64_t i = 0; i < count; i++) ((float *)m->value[WEIGHT])[i] = (float)(1 / (double)count);
    memcpy(m->value[SEED], seed, sizeof seed);
    for (int i = 0; i < INPUTS; i++)
        write_input(plan, m->input[i], m->value[i], i < FIRST ? BASIN_F32 : BASIN_I32);
    must(basin_pairs_new(&pairs, m->tokens, m->tokens, m->pair, m->pairs, 0, &error));
    must(basin_pairs_write(plan, &m->pattern, &pairs, &error));
    basin_pairs_free(&pairs);
}

/* A pass over the graphs: the mean loss of an epoch of training, or the accuracy (epoch -1). */
static double pass(basin_store *store, const int64_t *order, int64_t epoch, int64_t *step) {
    const int64_t G = data.set.graphs, C = data.set.classes;
    float output[set.batch][C];
    double sum = 0, loss;
    for (int64_t at = 0, count; at < G; at += count, ++*step) {
        count = G - at < set.batch ? G - at : set.batch;
        model *m = model_for(store, order + at, count);
        load(m, order + at, count, epoch, *step);
        if (epoch >= 0) {
            basin_trainer_set_step(m->trainer, *step);
            must(basin_trainer_step(&loss, m->trainer, &error));
            sum += loss * (double)count;
            continue;
        }
        must(basin_plan_run(m->plan, &error));
        read_output(output, m->plan, m->output, BASIN_F32);
        for (int64_t i = 0, c; i < count; i++) { /* right: no output is above that of the class */
            float own = output[i][data.set.class_of[order[at + i]]];
            for (c = 0; c < C && own >= output[i][c]; c++) continue;
            sum += c == C;
        }
    }
    return sum / (double)G;
}

int main(int argc, char **argv) {
    if (argc < 2) quit("usage", "graph DATA [--NAME VALUE ..]");
    options = argv + 2;
    read_settings();
    basin_engine engine = open_engine();
    check_options();
    if (set.blocks > BLOCKS_MOST || set.eigenvectors > 32)
        quit("--blocks, --eigenvectors", "too many");
    open_data(argv[1]);
    int64_t G = data.set.graphs, order[G], step = 0;
    for (int64_t i = 0; i < G; i++) order[i] = i;
    const basin_params *params = &model_for(engine.store, order, set.batch)->params;
    printf("%lld graphs, %lld parameters\n", (long long)G, (long long)basin_params_total(params));
    must(basin_params_init(params, engine.store, (uint64_t)set.seed, &error));
    for (int64_t epoch = 0; epoch < set.epochs; epoch++) {
        basin_random_permutation(order, (size_t)G, (uint64_t)set.seed, 44 + ((uint64_t)epoch << 8));
        double loss = pass(engine.store, order, epoch, &step);
        printf("epoch %lld: loss %.9g\n", (long long)epoch + 1, loss);
        fflush(stdout);
    }
    double accuracy[set.noisy + 1], mean, deviation;
    for (int64_t i = 0; i < G; i++) order[i] = i;
    for (int64_t i = step = 0; i < set.noisy; i++)
        accuracy[i] = 100 * pass(engine.store, order, -1, &step);
    mean_deviation(&mean, &deviation, accuracy, set.noisy);
    printf("accuracy %.4f +- %.4f %% over %lld evaluations of the training graphs\n", mean,
           deviation, (long long)set.noisy);
    basin_engine_close(&engine);
}
