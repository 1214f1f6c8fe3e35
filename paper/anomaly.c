/* Anomalies among the nodes of a graph (section 4, appendix C): tokens attend to their neighbours,
 * and an MLP reads each token before and after the descent.
 *
 *     anomaly DATA [--NAME VALUE ..]
 *
 * DATA is a network with features and labels (basin_network_open): an npz file, or tables. Settings
 * have the names and meanings of `basin anomaly eval`, which gives the same numbers from the same
 * seed; their defaults are the paper's for Amazon with 40 % of the labels. The program prints the
 * loss of every epoch, and macro-F1 and AUC of the test nodes over several splits: table 1 (92.8
 * and 97.3 for Amazon). */
#include <basin/tasks/network.h>

#include "paper.h"

/* ---- the tables of appendix C ---- */

static struct {
    int64_t dim, heads, head_dim, memories, steps; /* D, H, Y, K, T */
    double alpha, rate, ratio, fraction;
    int64_t attention, hopfield; /* 0 or 1: the ablations of appendix F */
    int64_t epochs, runs, seed;
} set;

static void read_settings(void) {
    set.head_dim = integer("--head-dim", 128);
    set.memories = integer("--memories", 640);
    set.steps = integer("--steps", 1);
    set.heads = integer("--heads", 2);
    set.dim = integer("--dim", set.head_dim); /* not in the table; the released code's */
    set.alpha = real("--alpha", 1);           /* equation 19 */
    set.attention = integer("--attention", 1);
    set.hopfield = integer("--hopfield", 1);
    set.rate = real("--rate", 0.001);
    set.epochs = integer("--epochs", 100);
    set.ratio = real("--ratio", 0.4);     /* of the labels, for training */
    set.fraction = real("--fraction", 1); /* of the nodes, per epoch; T-Finance, T-Social: 0.05 */
    set.runs = integer("--runs", 5);      /* splits */
    set.seed = integer("--seed", 0);
}

/* ---- the data ---- */

typedef struct data {
    basin_network *network;
    basin_network_view view;
    basin_relation_view edges; /* of all kinds, both ways */
    uint8_t *part;             /* [N] training, validation, test */
    float *feature;            /* [N, F] scaled */
    float *label, *weight;     /* [N] weight 0: not in the loss */
} data;

static void open_data(data *d, const char *path) {
    basin_network_options with_union = {.unite = true};
    must(basin_network_open(&d->network, &path, 1, &with_union, &error));
    basin_network_get_view(&d->view, d->network);
    for (int r = 0; r < d->view.relations; r++) { /* the only one, or the union of several */
        basin_network_get_relation(&d->edges, d->network, r);
        if (d->view.relations == 1 || !strcmp(d->edges.name, "homo")) break;
    }
    if (!d->view.feature || !d->view.label) quit(path, "expected features and labels");
    int64_t N = d->view.nodes;
    d->part = malloc((size_t)N);
    d->feature = malloc(sizeof(float[N * d->view.features]));
    d->label = malloc(sizeof(float[N])), d->weight = malloc(sizeof(float[N]));
}

/* Each feature with mean 0 and deviation 1 over the training nodes. */
static void scale_features(data *d) {
    int64_t N = d->view.nodes, F = d->view.features;
    for (int64_t f = 0; f < F; f++) {
        const float *x = d->view.feature + f;
        double count = 0, sum = 0, squares = 0;
        for (int64_t i = 0; i < N; i++)
            if (d->part[i] == BASIN_SPLIT_TRAIN) count += 1, sum += (double)x[i * F];
        double mean = sum / count;
        for (int64_t i = 0; i < N; i++)
            if (d->part[i] == BASIN_SPLIT_TRAIN)
                squares += ((double)x[i * F] - mean) * ((double)x[i * F] - mean);
        double deviation = sqrt(squares / count);
        bool varies = deviation > 1e-7 * fabs(mean); /* beyond rounding */
        float factor = varies ? (float)(1 / deviation) : 1;
        for (int64_t i = 0; i < N; i++) d->feature[i * F + f] = (x[i * F] - (float)mean) * factor;
    }
}

/* Training nodes, 40 % or 1 %, then 1 : 2 for validation and test, class by class. Anomalies weigh
 * omega, the ratio of benign to anomalous labels (equation 12). */
static void split(data *d, int64_t run) {
    double count[2] = {0, 0};
    must(basin_split_stratified(d->part, d->network, set.ratio, (uint64_t)set.seed, (uint64_t)run,
                                &error));
    for (int64_t i = 0; i < d->view.nodes; i++) {
        if (d->view.label[i] > 1) quit(d->view.path, "expected labels 0 and 1");
        if (d->part[i] == BASIN_SPLIT_TRAIN) count[d->view.label[i]] += 1;
    }
    for (int64_t i = 0; i < d->view.nodes; i++) {
        bool trains = d->part[i] == BASIN_SPLIT_TRAIN, anomaly = trains && d->view.label[i] == 1;
        d->label[i] = anomaly;
        d->weight[i] = anomaly ? (float)(count[0] / count[1]) : trains;
    }
    scale_features(d);
}

/* ---- the part of the graph that a step sees: all of it, or a subgraph ---- */

typedef struct sample {
    int64_t nodes;
    int64_t *node;     /* [nodes] of the whole graph */
    basin_pairs pairs; /* the edges among them */
} sample;

static void take_sample(sample *s, const data *d, int64_t *node, int64_t nodes) {
    int32_t *place = malloc(sizeof(int32_t[d->view.nodes])); /* in the sample; -1: not in it */
    int32_t *edge = malloc(sizeof(int32_t[2 * d->edges.edges + 1]));
    int64_t count = 0;
    for (int64_t i = 0; i < d->view.nodes; i++) place[i] = -1;
    for (int64_t i = 0; i < nodes; i++) place[node[i]] = (int32_t)i;
    for (int64_t i = 0; i < nodes; i++)
        for (int64_t e = d->edges.row[node[i]]; e < d->edges.row[node[i] + 1]; e++) {
            if (place[d->edges.col[e]] < 0) continue;
            edge[2 * count] = (int32_t)i, edge[2 * count + 1] = place[d->edges.col[e]];
            count++;
        }
    *s = (sample){.nodes = nodes, .node = node};
    must(basin_pairs_new(&s->pairs, nodes, nodes, edge, count, BASIN_PAIRS_DROP_SELF, &error));
    free(place), free(edge);
}

/* "We sample a different subgraph to train for each epoch": the first nodes of a random order. */
static void draw_sample(sample *s, const data *d, double fraction, int64_t seed, int64_t epoch) {
    int64_t N = d->view.nodes, *node = malloc(sizeof(int64_t[N]));
    int64_t count = fraction < 1 ? (int64_t)ceil(fraction * (double)N) : N;
    basin_random random = basin_random_start((uint64_t)seed, (uint64_t)((1 << 20) + epoch), 0);
    for (int64_t i = 0; i < N; i++) node[i] = i;
    for (int64_t i = 0; i < count && count < N; i++) {
        int64_t j = i + (int64_t)basin_random_below(&random, (uint64_t)(N - i)), keep = node[i];
        node[i] = node[j], node[j] = keep;
    }
    take_sample(s, d, node, count);
}

static void free_sample(sample *s) {
    basin_pairs_free(&s->pairs);
    free(s->node);
}

/* ---- the energy ---- */

typedef struct model {
    basin_params params;
    basin_expr emb_w, emb_b, pos;             /* [F, D] [D] [all nodes, D] */
    basin_expr wk, wq, beta, xi;              /* [H, Y, D] [H, Y, D] [H] [K, D] */
    basin_expr gamma, delta;                  /* [] [D] */
    basin_expr hidden_w, hidden_b;            /* [2 D, D] [D] */
    basin_expr head_w, head_b;                /* [D] [] */
    basin_expr feature, label, weight, place; /* inputs [N, F] [N] [N] [N] */
    basin_pattern neighbours;                 /* input: who sees whom */
    basin_expr logit, probability, loss;      /* [N] [N] [] */
} model;

/* Equations 1 and 15. */
static basin_expr layer_norm(const void *context, basin_expr x) {
    const model *m = context;
    return basin_layernorm(x, m->gamma, m->delta, 1e-5);
}

/* Equations 16 and 20, first sum: beta is learned, one per head.
 * E_ATT = -1 / beta sum over C, h of log sum over neighbours B of C of exp(beta K_hB . Q_hC) */
static basin_expr attention(const void *context, basin_expr g) {
    const model *m = context;
    basin_expr K = basin_einsum("nd,hyd->nhy", g, m->wk);
    basin_expr Q = basin_einsum("nd,hyd->nhy", g, m->wq);
    basin_expr lse = basin_attention_lse(Q, K, m->beta, &m->neighbours, NULL); /* [N, H] */
    return basin_neg(basin_sum_all(basin_div(lse, m->beta)));
}

/* Equation 20, second sum, with G(z) = relu(z)^2: E_HN = -1/2 sum over C, mu of G(xi_mu . g_C) */
static basin_expr hopfield(const void *context, basin_expr g) {
    const model *m = context;
    basin_expr h = basin_relu(basin_einsum("nd,kd->nk", g, m->xi));
    return basin_scale(basin_sum_all(basin_square(h)), -0.5);
}

/* ---- the network that follows from it ---- */

static basin_expr parameter(model *m, const char *name, basin_shape shape, basin_init init) {
    return basin_param_add(&m->params, "", name, shape, init);
}

/* First values are not in the paper. The numbers drawn depend on the order of this list. */
static void declare_parameters(model *m, int64_t nodes, int64_t features) {
    const int64_t D = set.dim, H = set.heads, Y = set.head_dim;
    const basin_init draw = {BASIN_INIT_NORMAL, 0.02}, zero = {BASIN_INIT_CONSTANT, 0};
    const basin_init one = {BASIN_INIT_CONSTANT, 1},
                     soft = {BASIN_INIT_CONSTANT, 1 / sqrt((double)Y)};
    m->emb_w = parameter(m, "emb_w", BASIN_SHAPE(features, D),
                         (basin_init){BASIN_INIT_LECUN, (double)features});
    m->emb_b = parameter(m, "emb_b", BASIN_SHAPE(D), zero);
    m->pos = parameter(m, "pos", BASIN_SHAPE(nodes, D), draw);
    if (set.attention) {
        m->wk = parameter(m, "wk", BASIN_SHAPE(H, Y, D), draw);
        m->wq = parameter(m, "wq", BASIN_SHAPE(H, Y, D), draw);
        m->beta = parameter(m, "beta", BASIN_SHAPE(H), soft);
    }
    if (set.hopfield) m->xi = parameter(m, "xi", BASIN_SHAPE(set.memories, D), draw);
    m->gamma = parameter(m, "gamma", BASIN_SCALAR, one);
    m->delta = parameter(m, "delta", BASIN_SHAPE(D), zero);
    m->hidden_w = parameter(m, "hidden_w", BASIN_SHAPE(2 * D, D),
                            (basin_init){BASIN_INIT_LECUN, 2 * (double)D});
    m->hidden_b = parameter(m, "hidden_b", BASIN_SHAPE(D), zero);
    m->head_w = parameter(m, "head_w", BASIN_SHAPE(D), (basin_init){BASIN_INIT_LECUN, (double)D});
    m->head_b = parameter(m, "head_b", BASIN_SCALAR, zero);
}

static void build_output(model *m, int64_t nodes) {
    basin_term term[2];
    basin_energy energy = {.term = term, .activation = layer_norm, .context = m};
    if (set.attention) term[energy.terms++] = (basin_term){"attention", attention, NULL};
    if (set.hopfield) term[energy.terms++] = (basin_term){"hopfield", hopfield, NULL};

    /* Equations 10 and 14: x = E y + lambda */
    basin_expr x = basin_add(basin_matmul(m->feature, m->emb_w), m->emb_b);
    x = basin_add(x, basin_take(m->pos, 0, m->place));

    /* Equations 6, 17 to 19, T times: x <- x - alpha dE/dg. Equation 17 is that gradient. */
    basin_descent_spec descent = {.steps = (int)set.steps, .alpha = set.alpha};
    basin_expr end = basin_descend(&energy, x, &descent, NULL);

    /* Equations 11 and 21: g(1) || g(T), read by an MLP with a sigmoid. */
    basin_expr g = basin_concat((basin_expr[]){layer_norm(m, x), layer_norm(m, end)}, 2, 1);
    basin_expr h = basin_relu(basin_add(basin_matmul(g, m->hidden_w), m->hidden_b));
    basin_expr z = basin_matmul(h, basin_reshape(m->head_w, BASIN_SHAPE(set.dim, 1)));
    m->logit = basin_add(basin_reshape(z, BASIN_SHAPE(nodes)), m->head_b);
    m->probability = basin_sigmoid(m->logit);
}

/* Equations 12 and 22, as a mean. With p = sigmoid(z), -l log p - (1 - l) log(1 - p) is
 * softplus(z) - l z. */
static void build_loss(model *m) {
    basin_expr surprise = basin_sub(basin_softplus(m->logit), basin_mul(m->label, m->logit));
    basin_expr sum = basin_sum_all(basin_mul(m->weight, surprise));
    m->loss = basin_div(sum, basin_sum_all(m->weight));
}

/* For a sample of this size; the weights are the store's. */
static void build(model *m, const data *d, const sample *s) {
    basin_graph *graph = basin_graph_new();
    int64_t n = s->nodes;
    basin_params_begin(&m->params, graph);
    m->feature = basin_input(graph, "feature", BASIN_SHAPE(n, d->view.features));
    m->place = basin_index(graph, "place", BASIN_SHAPE(n));
    m->neighbours = basin_pairs_declare(graph, "neighbours", n, n, s->pairs.pairs);
    m->label = basin_input(graph, "label", BASIN_SHAPE(n));
    m->weight = basin_input(graph, "weight", BASIN_SHAPE(n));
    declare_parameters(m, d->view.nodes, d->view.features);
    build_output(m, n);
    build_loss(m);
    must(basin_graph_check(graph, &error));
}

static void free_model(model *m) {
    basin_graph *graph = m->params.graph;
    basin_params_free(&m->params);
    basin_graph_free(graph);
}

static void write_sample(basin_plan *plan, const model *m, const data *d, const sample *s) {
    int64_t n = s->nodes, F = d->view.features;
    float *feature = malloc(sizeof(float[n * F]));
    float *label = malloc(sizeof(float[n])), *weight = malloc(sizeof(float[n]));
    int32_t *place = malloc(sizeof(int32_t[n]));
    for (int64_t i = 0; i < n; i++) {
        int64_t k = s->node[i];
        memcpy(feature + i * F, d->feature + k * F, sizeof(float[F]));
        label[i] = d->label[k], weight[i] = d->weight[k], place[i] = (int32_t)k;
    }
    write_input(plan, m->feature, feature, BASIN_F32);
    write_input(plan, m->label, label, BASIN_F32);
    write_input(plan, m->weight, weight, BASIN_F32);
    write_input(plan, m->place, place, BASIN_I32);
    must(basin_pairs_write(plan, &m->neighbours, &s->pairs, &error));
    free(feature), free(label), free(weight), free(place);
}

/* ---- evaluation ---- */

/* The unweighted mean of the F1 of both classes. */
static double macro_f1(const data *d, const double *p, int part, double threshold) {
    double count[2][2] = {{0}}; /* [label][decision] */
    for (int64_t i = 0; i < d->view.nodes; i++)
        if (d->part[i] == part) count[d->view.label[i]][p[i] > threshold] += 1;
    double wrong = count[0][1] + count[1][0];
    return 0.5 * (2 * count[1][1] / (2 * count[1][1] + wrong) +
                  2 * count[0][0] / (2 * count[0][0] + wrong));
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The area under the ROC curve: how often an anomaly scores above a benign node, ties as half. */
static double auc(const data *d, const double *p, int part) {
    int64_t N = d->view.nodes, count[2] = {0}, low = 0, high = 0;
    double *score[2] = {malloc(sizeof(double[N])), malloc(sizeof(double[N]))}, pairs = 0;
    for (int64_t i = 0; i < N; i++)
        if (d->part[i] == part) {
            int label = d->view.label[i];
            score[label][count[label]++] = p[i];
        }
    for (int label = 0; label < 2; label++)
        qsort(score[label], (size_t)count[label], sizeof(double), by_value);
    for (int64_t i = 0; i < count[1]; i++) {
        while (low < count[0] && score[0][low] < score[1][i]) low++;
        while (high < count[0] && score[0][high] <= score[1][i]) high++;
        pairs += 0.5 * (double)(low + high);
    }
    free(score[0]), free(score[1]);
    return pairs / ((double)count[0] * (double)count[1]);
}

/* The best macro-F1 of the validation nodes of 19 thresholds, and the scores of the test nodes. */
static double validate(double test[2], const data *d, const double *p) {
    double best = -1, threshold = 0.5;
    for (int i = 1; i < 20; i++) {
        double f1 = macro_f1(d, p, BASIN_SPLIT_VAL, 0.05 * i);
        if (f1 > best) best = f1, threshold = 0.05 * i;
    }
    test[0] = macro_f1(d, p, BASIN_SPLIT_TEST, threshold);
    test[1] = auc(d, p, BASIN_SPLIT_TEST);
    return best;
}

/* ---- one run: a split, 100 epochs of Adam, the epoch with the best validation macro-F1 ---- */

static void run(double *f1, double *area, data *d, basin_engine *engine, int64_t number) {
    const int64_t seed = set.seed + number;
    double *p = malloc(sizeof(double[d->view.nodes])), best = -1, test[2], loss;
    basin_trainer_spec spec = {.optimizer = {.beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8},
                               .schedule = {0, set.epochs, set.rate, set.rate, set.rate}};
    basin_trainer *trainer = NULL;
    basin_store *store;
    basin_plan *plan;
    sample whole, seen;
    model all = {0}, m = {0};
    must(basin_store_new(&store, engine->backend, &error));
    split(d, number);
    draw_sample(&whole, d, 1, seed, 0);
    build(&all, d, &whole);
    must(basin_plan_new(&plan, store, &(basin_plan_spec){.output = &all.probability, .outputs = 1},
                        &error));
    write_sample(plan, &all, d, &whole);
    must(basin_params_init(&all.params, store, (uint64_t)seed, &error));
    for (int64_t epoch = 0; epoch < set.epochs; epoch++) {
        if (!epoch || set.fraction < 1) { /* another subgraph is another plan, on the same store */
            draw_sample(&seen, d, set.fraction, seed, epoch);
            build(&m, d, &seen);
            must(basin_trainer_new(&trainer, store, &m.params, m.loss, &spec, &error));
            write_sample(basin_trainer_plan(trainer), &m, d, &seen);
            free_sample(&seen);
        }
        basin_trainer_set_step(trainer, epoch);
        must(basin_trainer_step(&loss, trainer, &error));
        must(basin_plan_run(plan, &error));
        read_output(p, plan, all.probability, BASIN_F64);
        double score = validate(test, d, p);
        printf("split %lld, epoch %lld: loss %.9g, validation macro-F1 %.6f\n", (long long)number,
               (long long)epoch + 1, loss, score);
        fflush(stdout);
        if (score > best) best = score, *f1 = test[0], *area = test[1];
        if (epoch + 1 == set.epochs || set.fraction < 1)
            basin_trainer_free(trainer), free_model(&m);
    }
    printf("split %lld: test macro-F1 %.6f, AUC %.6f\n", (long long)number, *f1, *area);
    basin_plan_free(plan);
    free_model(&all), free_sample(&whole);
    basin_store_free(store);
    free(p);
}

int main(int argc, char **argv) {
    static const char *const name[2] = {"macro-F1", "AUC"};
    if (argc < 2) quit("usage", "anomaly DATA [--NAME VALUE ..]");
    options = argv + 2;
    read_settings();
    basin_engine engine = open_engine();
    check_options();
    data d = {.view.size = sizeof d.view, .edges.size = sizeof d.edges};
    open_data(&d, argv[1]);
    double *result[2] = {malloc(sizeof(double[set.runs])), malloc(sizeof(double[set.runs]))};
    for (int64_t i = 0; i < set.runs; i++) run(&result[0][i], &result[1][i], &d, &engine, i);
    for (int k = 0; k < 2; k++) {
        double mean, deviation;
        mean_deviation(&mean, &deviation, result[k], set.runs);
        printf("%s %.4f +- %.4f %%\n", name[k], 100 * mean, 100 * deviation);
    }
    basin_engine_close(&engine);
    basin_network_close(d.network);
    free(d.part), free(d.feature), free(d.label), free(d.weight), free(result[0]), free(result[1]);
}
