/* Masked image completion (section 3, appendix B, Algorithm 1): half of the patches of a picture
 * are hidden, and T steps down the energy of the tokens bring them back.
 *
 *     image DATA [--NAME VALUE ..]
 *
 * DATA is a collection of pictures with the parts "train" and "test" (basin_pictures_open): the
 * folder of Fashion-MNIST, a folder of photographs, "shapes:1024". Settings have the names and
 * meanings of `basin image train`, which gives the same numbers from the same seed; their defaults
 * are the paper's. The program prints the loss of every epoch, the mean squared error of the hidden
 * patches of test pictures (0.306 in the paper) and the energy before each step, and draws figure 3
 * (--figure FILE.png). */
#include <basin/tasks/pictures.h>

#include "paper.h"

/* ---- the table of appendix B ---- */

static struct {
    int64_t size, patch, channels;
    int64_t dim, heads, head_dim, memories, steps; /* D, H, Y, K, T */
    double alpha, beta;
    int64_t attention, hopfield, self_attention; /* 0 or 1: the ablations */
    int64_t occlude, keep;
    int64_t batch, epochs, warmup;
    double rate, rate_first, rate_last, beta2, decay, clip;
    double crop_scale, flip, jitter, mean, deviation;
    int64_t seed, masks, test_limit;
    const char *figure;
} set;

static void read_settings(void) {
    set.size = integer("--size", 224); /* pixels per side */
    set.patch = integer("--patch", 16);
    set.channels = integer("--channels", 3);
    set.dim = integer("--dim", 768);
    set.heads = integer("--heads", 12);
    set.head_dim = integer("--head-dim", 64);
    set.memories = integer("--memories", 3072);
    set.steps = integer("--steps", 12);
    set.alpha = real("--alpha", 0.1);                          /* dt / tau */
    set.beta = real("--beta", 1 / sqrt((double)set.head_dim)); /* 1/8, not trained */
    set.attention = integer("--attention", 1);
    set.hopfield = integer("--hopfield", 1);
    set.self_attention = integer("--self-attention", 1);
    set.occlude = integer("--occlude", 100); /* patches in the loss, */
    set.keep = integer("--keep", 10);        /* of which so many stay visible */
    set.batch = integer("--batch", 768);
    set.epochs = integer("--epochs", 100);
    set.warmup = integer("--warmup", 2); /* epochs */
    set.rate = real("--rate", 5e-4);
    set.rate_first = real("--rate-first", 5e-7);
    set.rate_last = real("--rate-last", 5e-7);
    set.beta2 = real("--beta2", 0.99);
    set.decay = real("--decay", 0.05);
    set.clip = real("--clip", 1);
    set.crop_scale = real("--crop-scale", 0.08); /* least share of a picture's area */
    set.flip = real("--flip", 0.5);
    set.jitter = real("--jitter", 0.4);
    set.mean = real("--mean", -1); /* of pixels 0 .. 1; -1: ImageNet's, by channel */
    set.deviation = real("--deviation", -1);
    set.seed = integer("--seed", 0);
    set.masks = integer("--masks", 10); /* draws of the masks of test pictures */
    set.test_limit = integer("--test-limit", 0);
    set.figure = text("--figure", NULL);
}

static int64_t tokens(void) { return set.size / set.patch * (set.size / set.patch); } /* N */
static int64_t pixels(void) { return set.channels * set.patch * set.patch; }          /* P */

/* ---- the energy ---- */

typedef struct model {
    basin_params params;
    basin_expr enc_w, enc_b, mask, pos; /* [P, D] [D] [D] [N, D] */
    basin_expr wk, wq, xi;              /* [H, Y, D] [H, Y, D] [K, D] */
    basin_expr gamma, delta;            /* [] [D] */
    basin_expr dec_w, dec_b;            /* [D, P] [P] */
    basin_expr patches, replaced;       /* inputs [B, N, P] [B, N] */
    basin_expr occluded;                /* input [B, N]: what the loss counts */
    basin_expr output, loss;            /* [B, N, P] [] */
    basin_expr *energy;                 /* [T + 1] of all pictures, before each step */
} model;

/* Equation 1, the gradient of the Lagrangian of equation 2:
 * g_i = gamma (x_i - mean) / sqrt(variance + epsilon) + delta_i */
static basin_expr layer_norm(const void *context, basin_expr x) {
    const model *m = context;
    return basin_layernorm(x, m->gamma, m->delta, 1e-5);
}

/* Equations 3 and 4; with B = C in the sum it is equation 13.
 * E_ATT = -1 / beta sum over h, C of log sum over B of exp(beta A_hBC),
 * A_hBC = K_hB . Q_hC, K_hB = W_K g_B, Q_hC = W_Q g_C */
static basin_expr attention(const void *context, basin_expr g) {
    const model *m = context;
    const basin_pattern *pairs = set.self_attention ? &BASIN_ALL_PAIRS : &BASIN_OTHER_PAIRS;
    basin_expr beta = basin_full(m->params.graph, BASIN_SHAPE(set.heads), set.beta);
    basin_expr K = basin_einsum("bnd,hyd->bnhy", g, m->wk);
    basin_expr Q = basin_einsum("bnd,hyd->bnhy", g, m->wq);
    basin_expr lse = basin_attention_lse(Q, K, beta, pairs, NULL); /* [B, N, H] */
    return basin_neg(basin_sum(basin_div(lse, beta), 1, 2));
}

/* Equation 5 with r = ReLU, G(z) = relu(z)^2 / 2:
 * E_HN = -sum over B, mu of G(xi_mu . g_B) */
static basin_expr hopfield(const void *context, basin_expr g) {
    const model *m = context;
    basin_expr h = basin_relu(basin_einsum("bnd,kd->bnk", g, m->xi));
    return basin_scale(basin_sum(basin_square(h), 1, 2), -0.5);
}

/* ---- the network that follows from it ---- */

static basin_expr parameter(model *m, const char *name, basin_shape shape, basin_init init) {
    return basin_param_add(&m->params, "", name, shape, init);
}

/* Algorithm 1, "Initialize". The numbers drawn depend on the order of this list. */
static void declare_parameters(model *m) {
    const basin_init draw = {BASIN_INIT_NORMAL, 0.02};
    const basin_init zero = {BASIN_INIT_CONSTANT, 0}, one = {BASIN_INIT_CONSTANT, 1};
    const int64_t D = set.dim, N = tokens(), P = pixels();
    const basin_shape heads = BASIN_SHAPE(set.heads, set.head_dim, D);
    m->enc_w = parameter(m, "enc_w", BASIN_SHAPE(P, D), draw);
    m->enc_b = parameter(m, "enc_b", BASIN_SHAPE(D), zero);
    m->mask = parameter(m, "mask", BASIN_SHAPE(D), draw);
    m->pos = parameter(m, "pos", BASIN_SHAPE(N, D), draw);
    if (set.attention) m->wk = parameter(m, "wk", heads, draw);
    if (set.attention) m->wq = parameter(m, "wq", heads, draw);
    if (set.hopfield) m->xi = parameter(m, "xi", BASIN_SHAPE(set.memories, D), draw);
    m->gamma = parameter(m, "gamma", BASIN_SCALAR, one);
    m->delta = parameter(m, "delta", BASIN_SHAPE(D), zero);
    m->dec_w = parameter(m, "dec_w", BASIN_SHAPE(D, P), draw);
    m->dec_b = parameter(m, "dec_b", BASIN_SHAPE(P), zero);
}

/* Algorithm 1, "Infer": tokens with positions, T steps x <- x - alpha dE/dg (equation 6), decoded.
 * Neither equation 9 nor the attention's update is written: they are the gradient of the terms. */
static void build_output(model *m) {
    const int64_t B = set.batch, N = tokens();
    basin_term term[2];
    basin_energy energy = {.term = term, .activation = layer_norm, .context = m};
    if (set.attention) term[energy.terms++] = (basin_term){"attention", attention, NULL};
    if (set.hopfield) term[energy.terms++] = (basin_term){"hopfield", hopfield, NULL};

    basin_expr x = basin_add(basin_matmul(m->patches, m->enc_w), m->enc_b);
    x = basin_where(basin_reshape(m->replaced, BASIN_SHAPE(B, N, 1)), m->mask, x);
    x = basin_add(x, m->pos);

    basin_descent_spec descent = {.steps = (int)set.steps, .alpha = set.alpha};
    basin_expr trace[2 * (set.steps + 1)]; /* [T + 1, terms] each of [B] */
    x = basin_descend(&energy, x, &descent, trace);
    m->output = basin_add(basin_matmul(layer_norm(m, x), m->dec_w), m->dec_b);

    for (int64_t t = 0; t <= set.steps; t++) {
        m->energy[t] = basin_sum_all(trace[t * energy.terms]);
        if (energy.terms > 1)
            m->energy[t] = basin_add(m->energy[t], basin_sum_all(trace[t * energy.terms + 1]));
    }
}

/* "The standard MSE loss between the original pixels and reconstructed pixels for only the 100
 * occluded patches." */
static void build_loss(model *m) {
    basin_expr where = basin_reshape(m->occluded, BASIN_SHAPE(set.batch, tokens(), 1));
    basin_expr miss = basin_mul(basin_square(basin_sub(m->output, m->patches)), where);
    basin_expr count = basin_scale(basin_sum_all(m->occluded), (double)pixels());
    m->loss = basin_div(basin_sum_all(miss), count);
}

static void build(model *m, basin_graph *graph) {
    const int64_t B = set.batch, N = tokens();
    basin_params_begin(&m->params, graph);
    m->patches = basin_input(graph, "patches", BASIN_SHAPE(B, N, pixels()));
    m->replaced = basin_input(graph, "replaced", BASIN_SHAPE(B, N));
    m->occluded = basin_input(graph, "occluded", BASIN_SHAPE(B, N));
    declare_parameters(m);
    build_output(m);
    build_loss(m);
    must(basin_graph_check(graph, &error));
}

/* ---- pictures and masks ---- */

/* Batches of patches: in training a random part of each picture, flipped and with its colours
 * changed (the table's third column); in tests the centre. */
static basin_picture_feed *open_feed(const basin_pictures *pictures, const int64_t *item,
                                     int64_t items, bool training) {
    static const double mean[3] = {0.485, 0.456, 0.406}, deviation[3] = {0.229, 0.224, 0.225};
    basin_augment view = {.size = set.size, .patch = set.patch, .channels = (int)set.channels};
    view.fit = training ? BASIN_PICTURE_FIT_RANDOM : BASIN_PICTURE_FIT_CROP;
    view.enlarge = 256.0 / 224;
    view.scale_low = set.crop_scale, view.scale_high = 1;
    view.ratio_low = 3.0 / 4, view.ratio_high = 4.0 / 3;
    if (training) view.flip = set.flip;
    if (training) view.brightness = view.contrast = view.saturation = set.jitter;
    for (int c = 0; c < 3; c++) {
        view.mean[c] = (float)(set.mean < 0 ? mean[c] : set.mean);
        view.deviation[c] = (float)(set.deviation < 0 ? deviation[c] : set.deviation);
    }
    basin_picture_feed_config config = {.pictures = pictures,
                                        .item = item,
                                        .items = items,
                                        .augment = view,
                                        .batch = set.batch,
                                        .training = training,
                                        .seed = (uint64_t)set.seed,
                                        .keep_bytes = (size_t)1 << 30};
    basin_picture_feed *feed;
    must(basin_picture_feed_new(&feed, &config, &error));
    return feed;
}

/* Of the 100 occluded tokens, uniformly drawn, 90 are replaced with the MASK token and 10 are left
 * as they are. Selection sampling: one pass over the tokens. */
static void draw_mask(float *replaced, float *occluded, int64_t keep, uint64_t seed,
                      uint64_t stream) {
    basin_random random = basin_random_start(seed, stream, 0);
    int64_t left = set.occlude;
    for (int64_t i = 0; i < tokens(); i++) {
        replaced[i] = occluded[i] = 0;
        if ((int64_t)basin_random_below(&random, (uint64_t)(tokens() - i)) >= left) continue;
        bool stays = (int64_t)basin_random_below(&random, (uint64_t)left) < keep;
        occluded[i] = 1, replaced[i] = !stays;
        keep -= stays, left--;
    }
}

/* ---- training ---- */

static void train(model *m, basin_store *store, const basin_pictures *pictures) {
    enum { MASK_SEED = 0x6d61736b }; /* masks have another seed than weights and crops */
    const int64_t B = set.batch, N = tokens(), per_epoch = basin_pictures_count(pictures) / B;
    float *replaced = malloc(sizeof(float[B * N])), *occluded = malloc(sizeof(float[B * N]));
    basin_trainer_spec spec = {
        .optimizer = {.beta1 = 0.9,
                      .beta2 = set.beta2,
                      .epsilon = 1e-8,
                      .weight_decay = set.decay,
                      .clip = set.clip},
        .schedule = {set.warmup * per_epoch, set.epochs * per_epoch, set.rate_first, set.rate,
                     set.rate_last},
    };
    basin_trainer *trainer;
    must(basin_trainer_new(&trainer, store, &m->params, m->loss, &spec, &error));
    must(basin_params_init(&m->params, store, (uint64_t)set.seed, &error));
    basin_picture_feed *feed = open_feed(pictures, NULL, 0, true);
    double sum = 0, loss;
    for (int64_t step = 0; step < set.epochs * per_epoch; step++) {
        basin_picture_feed_batch batch = {0};
        must(basin_picture_feed_next(&batch, feed, &error));
        for (int64_t i = 0; i < B; i++)
            draw_mask(replaced + i * N, occluded + i * N, set.keep, (uint64_t)set.seed ^ MASK_SEED,
                      (uint64_t)(step * B + i));
        write_input(basin_trainer_plan(trainer), m->patches, batch.values, BASIN_F32);
        write_input(basin_trainer_plan(trainer), m->replaced, replaced, BASIN_F32);
        write_input(basin_trainer_plan(trainer), m->occluded, occluded, BASIN_F32);
        must(basin_trainer_step(&loss, trainer, &error));
        sum += loss;
        if ((step + 1) % per_epoch) continue;
        printf("epoch %lld: loss %.9g\n", (long long)((step + 1) / per_epoch),
               sum / (double)per_epoch);
        fflush(stdout);
        sum = 0;
    }
    basin_picture_feed_free(feed);
    basin_trainer_free(trainer);
    free(replaced), free(occluded);
}

/* ---- evaluation ---- */

/* What a test needs of a batch; a short last batch is filled up with its first picture. */
typedef struct test {
    model *m;
    basin_plan *plan;
    float *truth, *output, *replaced, *unused; /* [B, N, P] [B, N, P] [B, N] [N] */
} test;

/* Completes a batch of test pictures, all their occluded patches replaced. */
static void complete(test *t, const basin_picture_feed_batch *batch, int64_t draw) {
    enum { TEST_SEED = 0x6576616c };
    const int64_t B = set.batch, N = tokens(), size = N * pixels();
    for (int64_t i = 0; i < B; i++) {
        int64_t from = i < batch->count ? i : 0;
        memcpy(t->truth + i * size, batch->values + from * size, sizeof(float[size]));
        draw_mask(t->replaced + i * N, t->unused, 0, (uint64_t)(TEST_SEED + draw),
                  (uint64_t)batch->index[from]);
    }
    write_input(t->plan, t->m->patches, t->truth, BASIN_F32);
    write_input(t->plan, t->m->replaced, t->replaced, BASIN_F32);
    must(basin_plan_run(t->plan, &error));
    read_output(t->output, t->plan, t->m->output, BASIN_F32);
}

/* The mean squared error over the replaced patches of picture i. */
static double masked_error(const test *t, int64_t i) {
    const int64_t N = tokens(), P = pixels();
    double sum = 0, count = 0;
    for (int64_t n = i * N; n < (i + 1) * N; n++)
        for (int64_t v = n * P; v < (n + 1) * P && t->replaced[n] > 0; v++, count++)
            sum += ((double)t->output[v] - t->truth[v]) * ((double)t->output[v] - t->truth[v]);
    return sum / count;
}

/* A pixel of a patch as a byte. */
static uint8_t shown(double value, int64_t channel) {
    static const double mean[3] = {0.485, 0.456, 0.406}, deviation[3] = {0.229, 0.224, 0.225};
    double m = set.mean < 0 ? mean[channel] : set.mean;
    double d = set.deviation < 0 ? deviation[channel] : set.deviation;
    return (uint8_t)lrint(255 * fmin(fmax(value * d + m, 0), 1));
}

/* Figure 3: pictures with hidden patches, the completed pictures, the originals; a row of each. */
static void draw_figure(const test *t, const char *path) {
    const int64_t S = set.size, side = set.patch, across = S / side, P = pixels();
    const int64_t columns = set.batch < 8 ? set.batch : 8;
    basin_picture figure = {0};
    must(basin_picture_resize_memory(&figure, 3 * S, columns * S, (int)set.channels, &error));
    uint8_t *pixel = figure.pixel;
    for (int64_t y = 0; y < 3 * S; y++)
        for (int64_t x = 0; x < columns * S; x++)
            for (int64_t c = 0; c < set.channels; c++) {
                int64_t row = y / S, i = x / S, py = y % S, px = x % S;
                int64_t n = i * tokens() + py / side * across + px / side;
                int64_t at = n * P + (c * side + py % side) * side + px % side;
                bool hidden = t->replaced[n] > 0;
                double value = row == 1 && hidden ? t->output[at] : t->truth[at];
                *pixel++ = row == 0 && hidden ? 128 : shown(value, c);
            }
    must(basin_picture_write_png(path, &figure, &error));
    basin_picture_free(&figure);
}

static void evaluate(model *m, basin_store *store, const basin_pictures *pictures) {
    const int64_t B = set.batch, N = tokens(), count = basin_pictures_count(pictures);
    const int64_t items = set.test_limit && set.test_limit < count ? set.test_limit : count;
    int64_t *item = malloc(sizeof(int64_t[items])), seen = 0;
    for (int64_t i = 0; i < items; i++) item[i] = i;
    basin_expr output[set.steps + 2];
    output[0] = m->output;
    for (int64_t t = 0; t <= set.steps; t++) output[t + 1] = m->energy[t];
    basin_plan_spec spec = {.output = output, .outputs = (int)set.steps + 2};
    test t = {m, .truth = malloc(sizeof(float[B * N * pixels()])),
              .output = malloc(sizeof(float[B * N * pixels()])),
              .replaced = malloc(sizeof(float[B * N])), .unused = malloc(sizeof(float[N]))};
    must(basin_plan_new(&t.plan, store, &spec, &error));
    basin_picture_feed *feed = open_feed(pictures, item, items, false);
    double mse[set.masks], mean, deviation;
    memset(mse, 0, sizeof mse);
    for (basin_picture_feed_batch batch = {0};; seen += batch.count) {
        must(basin_picture_feed_next(&batch, feed, &error));
        if (!batch.count) break;
        for (int64_t draw = set.masks - 1; draw >= 0; draw--) {
            complete(&t, &batch, draw);
            for (int64_t i = 0; i < batch.count; i++) mse[draw] += masked_error(&t, i);
        }
        if (seen == 0 && set.figure) draw_figure(&t, set.figure);
    }
    for (int64_t k = 0; k < set.masks; k++) mse[k] /= (double)seen;
    mean_deviation(&mean, &deviation, mse, set.masks);
    printf("masked MSE %.6f +- %.6f over %lld draws of the masks of %lld pictures\n", mean,
           deviation, (long long)set.masks, (long long)seen);
    printf("energy per picture before each step (it falls: equation 7):");
    for (int64_t k = 0; k <= set.steps; k++) {
        double sum;
        must(basin_plan_read_scalar(&sum, t.plan, m->energy[k], &error));
        printf(" %.2f", sum / (double)B);
    }
    puts("");
    basin_picture_feed_free(feed);
    basin_plan_free(t.plan);
    free(t.truth), free(t.output), free(t.replaced), free(t.unused), free(item);
}

int main(int argc, char **argv) {
    if (argc < 2) quit("usage", "image DATA [--NAME VALUE ..]");
    options = argv + 2;
    read_settings();
    basin_engine engine = open_engine();
    check_options();
    basin_pictures *train_set, *test_set;
    must(basin_pictures_open(&train_set, (const char *[]){argv[1]}, 1, BASIN_PICTURES_TRAIN,
                             &error));
    must(basin_pictures_open(&test_set, (const char *[]){argv[1]}, 1, BASIN_PICTURES_TEST, &error));
    if (!basin_pictures_divided(test_set)) quit(argv[1], "expected parts \"train\" and \"test\"");
    basin_expr energy[set.steps + 1];
    model m = {.energy = energy};
    build(&m, engine.graph);
    printf("%lld pictures, %lld tokens each, %lld parameters\n",
           (long long)basin_pictures_count(train_set), (long long)tokens(),
           (long long)basin_params_total(&m.params));
    train(&m, engine.store, train_set);
    evaluate(&m, engine.store, test_set);
    basin_params_free(&m.params);
    basin_engine_close(&engine);
    basin_pictures_close(train_set), basin_pictures_close(test_set);
}
