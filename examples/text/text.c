/* Trains a language model on a text, evaluates it, and generates text: README.md. The model is an
 * NRGPT, whose tokens descend an energy, or a GPT; model.h has both. */
#include <time.h>

#include "model.h"
#include "tokens.h"

static const char usage[] =
    "text train FILE.. -o MODEL [SETTINGS]\n"
    "    trains on all but the last tenth of the text, which chooses the weights that are kept\n"
    "    SETTINGS of the model: --arch nrgpt|gpt --tokens characters|bytes --context N --dim N\n"
    "    --heads N --hidden N --steps N --tied 0|1 --dropout X; of NRGPT: --feed ff1|ff2|ff2w\n"
    "    --strict 0|1 --beta X --dropout-step X; of GPT: --bias 0|1\n"
    "    SETTINGS of the run: --iterations N --batch N --every N --warmup N --rate X\n"
    "    --last-rate X --decay X --seed N\n"
    "text eval MODEL FILE..: loss and energies; of the training text, of the last tenth only\n"
    "text generate MODEL [--prompt TEXT] [--tokens N] [--temperature X] [--top-k N] [--seed N]\n"
    "All take --backend ref|cpu|cuda --threads N --dtype f32|bf16\n";

/* ---- settings: options of `train`, and the metadata of a model file ---- */

typedef struct settings {
    config model;
    int64_t bytes; /* whether a token is a byte instead of a character */
    int64_t iterations, batch, every, warmup, seed;
    double rate, last_rate, decay;
} settings;

/* Where settings are: in the options, or in the metadata of a file, where `write` puts them. */
typedef struct record {
    const char *prefix; /* of `where`: "--", or the path of the file */
    basin_bundle *file; /* NULL: options */
    bool write;
    char where[200]; /* prefix and name of the last one, for messages */
} record;

/* One setting as text; `value` is what is written, or the default of an option. */
static const char *exchange(record *r, const char *name, const char *value) {
    snprintf(r->where, sizeof r->where, "%.150s%s", r->prefix, name);
    if (r->write)
        must(basin_bundle_meta_set(r->file, name, value, &error));
    else
        value = r->file ? basin_bundle_meta(r->file, name) : text(r->where, value);
    if (!value) quit(r->where, "not in the metadata: this is not a model of text");
    return value;
}

static void real_setting(record *r, double *value, const char *name, double initial, double low,
                         double high) {
    char now[40], why[80];
    snprintf(now, sizeof now, "%.17g", r->write ? *value : initial);
    *value = number(r->where, exchange(r, name, now));
    snprintf(why, sizeof why, "expected %g to %g", low, high);
    if (!(*value >= low && *value <= high)) quit(r->where, why);
}

static void setting(record *r, int64_t *value, const char *name, double initial, double low,
                    double high) {
    double found = (double)*value;
    real_setting(r, &found, name, initial, low, high);
    if (found != floor(found)) quit(r->where, "expected a whole number");
    *value = (int64_t)found;
}

/* One of three names, or of two and NULL. */
static void choice(record *r, int64_t *value, const char *name, int64_t initial,
                   const char *const names[3]) {
    const char *found = exchange(r, name, names[r->write ? *value : initial]);
    for (*value = 0; *value < 3 && names[*value]; ++*value)
        if (!strcmp(found, names[*value])) return;
    quit(r->where, "not one of the names that the usage lists");
}

/* All of them, with their defaults and limits. */
static void visit(record *r, settings *s) {
    config *m = &s->model;
    choice(r, &m->gpt, "arch", 0, (const char *const[]){"nrgpt", "gpt", NULL});
    choice(r, &s->bytes, "tokens", 0, (const char *const[]){"characters", "bytes", NULL});
    choice(r, &m->feed, "feed", FEED_2W, (const char *const[]){"ff1", "ff2", "ff2w"});
    setting(r, &m->context, "context", 64, 1, 1 << 20);
    setting(r, &m->dim, "dim", 128, 1, 1 << 16);
    setting(r, &m->heads, "heads", 4, 1, 1 << 12);
    setting(r, &m->hidden, "hidden", 4.0 * (double)m->dim, 1, 1 << 20);
    setting(r, &m->steps, "steps", 4, 1, MAX_STEPS);
    setting(r, &m->tied, "tied", (double)m->gpt, 0, 1);
    setting(r, &m->bias, "bias", 0, 0, 1);
    setting(r, &m->strict, "strict", 0, 0, 1);
    real_setting(r, &m->beta, "beta", 1, 1e-9, 1e3);
    real_setting(r, &m->dropout, "dropout", 0, 0, 0.95);
    real_setting(r, &m->dropout_step, "dropout-step", 0, 0, 0.95);
    setting(r, &s->iterations, "iterations", 2000, 1, 1e9);
    setting(r, &s->batch, "batch", 12, 1, 1 << 16);
    setting(r, &s->every, "every", 200, 1, 1e9);
    setting(r, &s->warmup, "warmup", 100, 0, 1e9);
    real_setting(r, &s->rate, "rate", 1e-3, 0, 1);
    real_setting(r, &s->last_rate, "last-rate", 1e-4, 0, 1);
    real_setting(r, &s->decay, "decay", 0.1, 0, 1);
    setting(r, &s->seed, "seed", 0, 0, INT32_MAX);
    if (m->gpt && m->dim % m->heads) quit("heads", "expected a divisor of dim in a GPT");
}

/* ---- a model: settings, vocabulary, weights in a store; and its file ---- */

typedef struct model {
    settings s;
    vocabulary v;
    basin_engine engine; /* its store has the weights */
    char origin[ORIGIN]; /* the training text: see origin_of */
} model;

/* The characters of a text, or all bytes. */
static void set_vocabulary(model *m, const passage *p) {
    free(m->v.character);
    m->v = (vocabulary){.bytes = m->s.bytes, .count = m->s.bytes ? 256 : 0};
    if (!m->v.bytes) add_characters(&m->v, p);
    m->s.model.vocabulary = m->v.count;
}

/* Settings, characters and the training text are metadata beside the weights. */
static void model_write(const char *path, model *m, const basin_params *params) {
    char *characters = allocate((size_t)m->v.count * 4 + 1, 1), *end = characters;
    record r = {.prefix = "", .write = true};
    for (int32_t id = 0; id < m->v.count && !m->v.bytes; id++) end += write_token(end, &m->v, id);
    must(basin_bundle_new(&r.file, path, &error));
    visit(&r, &m->s);
    exchange(&r, "characters", characters);
    exchange(&r, "text", m->origin);
    for (size_t i = 0; i < params->count; i++) {
        basin_tensor value;
        const char *name = basin_expr_name(params->param[i].state);
        must(basin_store_get(&value, m->engine.store, name, &error));
        must(basin_bundle_add(r.file, name, &value, &error));
    }
    must(basin_bundle_write_safetensors(path, r.file, &error));
    basin_bundle_free(r.file);
    free(characters);
}

static void model_read(model *m, const char *path) {
    char prefix[200];
    record r = {.prefix = prefix};
    network n;
    snprintf(prefix, sizeof prefix, "%.150s: ", path);
    must(basin_bundle_read(&r.file, path, &error));
    visit(&r, &m->s);
    const char *characters = exchange(&r, "characters", NULL);
    set_vocabulary(m, &(passage){path, (char *)characters, strlen(characters)});
    snprintf(m->origin, ORIGIN, "%s", exchange(&r, "text", NULL));
    network_new(&n, &m->s.model, 1, 1, false);
    must(basin_graph_check(n.graph, &error));
    must(basin_params_read(&n.params, m->engine.store, r.file, &error));
    network_free(&n);
    basin_bundle_free(r.file);
}

static model model_open(void) {
    model m = {.engine = open_engine()};
    check_options();
    return m;
}

static void model_close(model *m) {
    basin_engine_close(&m->engine);
    free(m->v.character);
}

/* ---- batches of windows ---- */

typedef struct batch {
    network n;
    basin_expr label;      /* index [B N] */
    basin_tensor id, next; /* [B N] tokens, and those that follow; -1: does not count */
    basin_plan *plan;      /* NULL: a trainer has it */
} batch;

static void batch_new(batch *b, const model *m, bool train) {
    *b = (batch){0};
    network_new(&b->n, &m->s.model, m->s.batch, m->s.model.context, train);
    basin_shape rows = basin_expr_shape(b->n.ids);
    b->label = basin_index(b->n.graph, "label", rows);
    must(basin_tensor_new(&b->id, BASIN_I32, rows, &error));
    must(basin_tensor_new(&b->next, BASIN_I32, rows, &error));
}

/* Window `row` begins with token `at`. */
static void batch_fill(batch *b, int64_t row, const tokens *t, int64_t at) {
    int64_t N = b->n.tokens;
    int32_t *id = (int32_t *)b->id.data + row * N, *next = (int32_t *)b->next.data + row * N;
    for (int64_t i = 0; i < N; i++) {
        bool inside = at + i + 1 < t->count;
        id[i] = inside ? t->id[at + i] : 0;
        next[i] = inside ? t->id[at + i + 1] : -1;
    }
}

static void batch_free(batch *b) {
    basin_plan_free(b->plan);
    network_free(&b->n);
    basin_tensor_free(&b->id);
    basin_tensor_free(&b->next);
}

/* ---- evaluation: the loss of the next token, and what the energies do ---- */

/* Sums over tokens. The plan sums a batch, so that few numbers are read. */
enum { LOSS, HITS, COUNT, ENERGIES };
enum { ATTENTION, FEED_FORWARD, RISES, PER_STEP }; /* from ENERGIES on, for each step */
enum { SUMS = ENERGIES + PER_STEP * (MAX_STEPS + 1) };

typedef struct evaluation {
    batch b;
    basin_expr sums; /* [count] */
    int count;
    double sum[SUMS];
} evaluation;

static void evaluation_new(evaluation *e, model *m) {
    *e = (evaluation){.count = ENERGIES};
    batch_new(&e->b, m, false);
    network *n = &e->b.n;
    basin_shape windows = BASIN_SHAPE(n->windows, n->tokens);
    basin_expr label = basin_reshape(basin_from_index(e->b.label, m->v.count), windows);
    basin_expr likeliest = basin_from_index(basin_argmax(n->logits, -1), m->v.count);
    basin_expr counts = basin_greater(label, basin_scalar(n->graph, -0.5)), before = NULL;
    basin_expr part[SUMS] = {[LOSS] = basin_sum_all(network_loss(n, e->b.label)),
                             [HITS] = basin_sum_all(basin_equal(label, likeliest)),
                             [COUNT] = basin_sum_all(counts)};
    for (int64_t t = 0; t <= m->s.model.steps && !m->s.model.gpt; t++) {
        basin_expr a = n->energy[2 * t], f = n->energy[2 * t + 1], now = basin_add(a, f);
        basin_expr rises = basin_greater(now, before ? before : now);
        part[e->count + ATTENTION] = basin_sum_all(basin_mul(counts, a));
        part[e->count + FEED_FORWARD] = basin_sum_all(basin_mul(counts, f));
        part[e->count + RISES] = basin_sum_all(basin_mul(counts, rises));
        e->count += PER_STEP;
        before = now;
    }
    e->sums = basin_stack(part, e->count, 0);
    basin_plan_spec spec = {.output = &e->sums, .outputs = 1};
    must(basin_plan_new(&e->b.plan, m->engine.store, &spec, &error));
}

/* The mean loss over windows side by side, in which each token is predicted once. */
static double evaluate(evaluation *e, const tokens *t) {
    double part[SUMS];
    basin_tensor read = basin_tensor_borrow(part, BASIN_F64, BASIN_SHAPE(e->count));
    basin_feed feed[] = {{e->b.n.ids, &e->b.id}, {e->b.label, &e->b.next}};
    memset(e->sum, 0, sizeof e->sum);
    for (int64_t at = 0; at + 1 < t->count;) {
        for (int64_t row = 0; row < e->b.n.windows; row++, at += e->b.n.tokens)
            batch_fill(&e->b, row, t, at);
        must(basin_plan_call(e->b.plan, feed, 2, &e->sums, &read, 1, &error));
        for (int i = 0; i < e->count; i++) e->sum[i] += part[i];
    }
    return e->sum[LOSS] / e->sum[COUNT];
}

static void print_evaluation(model *m, const passage *p) {
    evaluation e;
    char origin[ORIGIN];
    origin_of(origin, p);
    bool known = !strcmp(origin, m->origin);
    size_t first = known ? nine_tenths(p) : 0;
    tokens t = encode(&m->v, p, first, p->length);
    if (t.count < 2) quit(p->name, "expected two tokens or more");
    puts(known ? "the part of the training text that was held out" : "the whole text");
    evaluation_new(&e, m);
    double loss = evaluate(&e, &t), *sum = e.sum, count = sum[COUNT];
    printf("tokens         %.0f\n", count);
    printf("loss           %.4f nats per token\n", loss);
    double per_byte = (double)t.count / (double)(p->length - first);
    printf("bits per byte  %.4f\n", loss / log(2) * per_byte);
    printf("accuracy       %.4f\n", sum[HITS] / count);
    if (!m->s.model.gpt) puts("step  attention  feed-forward     energy  tokens whose energy rose");
    for (int i = ENERGIES; i < e.count; i += PER_STEP) {
        double a = sum[i + ATTENTION] / count, f = sum[i + FEED_FORWARD] / count;
        printf("%4d %10.4f %13.4f %10.4f %23.1f %%\n", (i - ENERGIES) / PER_STEP, a, f, a + f,
               100 * sum[i + RISES] / count);
    }
    batch_free(&e.b);
    free(t.id);
}

static void eval(const char *path, char **files, int count) {
    model m = model_open();
    model_read(&m, path);
    passage p = read_files(files, count);
    print_evaluation(&m, &p);
    free(p.bytes);
    model_close(&m);
}

/* ---- training ---- */

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* AdamW; the rate rises linearly from 0, then falls as a cosine. Vectors do not decay. */
static void trainer_new(basin_trainer **trainer, const batch *b, model *m) {
    const settings *s = &m->s;
    basin_schedule schedule = {s->warmup, s->iterations, 0, s->rate, s->last_rate};
    basin_trainer_spec spec = {.optimizer = BASIN_OPTIMIZER_DEFAULT, .schedule = schedule};
    spec.optimizer.weight_decay = s->decay;
    spec.optimizer.decay_matrices_only = true;
    basin_expr loss = basin_mean_all(network_loss(&b->n, b->label));
    must(basin_params_init(&b->n.params, m->engine.store, (uint64_t)s->seed, &error));
    must(basin_trainer_new(trainer, m->engine.store, &b->n.params, loss, &spec, &error));
}

/* One step on random windows. They and dropout are functions of the seed and the step. */
static double train_step(basin_trainer *trainer, batch *b, const tokens *t, int64_t seed,
                         int64_t step) {
    enum { SALT = 0x77696e64 }; /* first values are drawn from the seed itself */
    int32_t dropout[2] = {(int32_t)seed, (int32_t)step};
    basin_random random = basin_random_start((uint64_t)seed ^ SALT, (uint64_t)step, 0);
    double loss;
    uint64_t places = (uint64_t)(t->count - b->n.tokens);
    for (int64_t row = 0; row < b->n.windows; row++)
        batch_fill(b, row, t, (int64_t)basin_random_below(&random, places));
    basin_tensor seeds = basin_tensor_view(dropout, BASIN_I32, BASIN_SHAPE(2));
    must(basin_plan_write(basin_trainer_plan(trainer), b->n.ids, &b->id, &error));
    must(basin_plan_write(basin_trainer_plan(trainer), b->label, &b->next, &error));
    must(basin_plan_write(basin_trainer_plan(trainer), b->n.seed, &seeds, &error));
    must(basin_trainer_step(&loss, trainer, &error));
    return loss;
}

/* The weights of the lowest validation loss are those in the file. */
static void run(model *m, const char *output, const tokens *t, const tokens *validation) {
    const settings *s = &m->s;
    batch b;
    evaluation e;
    basin_trainer *trainer;
    double best = INFINITY, loss = 0, seconds = 0;
    batch_new(&b, m, true);
    trainer_new(&trainer, &b, m);
    evaluation_new(&e, m);
    fprintf(stderr, "%d parameters\n", (int)basin_params_total(&b.n.params));
    for (int64_t step = 0, since = 1; step < s->iterations; step++, since++) {
        double began = seconds_now();
        loss += train_step(trainer, &b, t, s->seed, step);
        seconds += seconds_now() - began;
        if (since < s->every && step + 1 < s->iterations) continue;
        double found = evaluate(&e, validation);
        fprintf(stderr, "step %d: loss %.4f, validation %.4f, %.2f ms per step\n", (int)step + 1,
                loss / (double)since, found, 1e3 * seconds / (double)since);
        if (found < best) model_write(output, m, &b.n.params), best = found;
        loss = seconds = 0, since = 0;
    }
    batch_free(&e.b);
    basin_trainer_free(trainer);
    batch_free(&b);
}

static void train(const char *output, char **files, int count) {
    settings s = {0};
    visit(&(record){.prefix = "--"}, &s);
    model m = model_open();
    passage p = read_files(files, count);
    m.s = s;
    size_t cut = nine_tenths(&p);
    origin_of(m.origin, &p);
    set_vocabulary(&m, &p);
    tokens t = encode(&m.v, &p, 0, cut), held = encode(&m.v, &p, cut, p.length);
    if (t.count <= s.model.context || held.count < 2)
        quit(p.name, "too short: nine tenths must be longer than --context");
    run(&m, output, &t, &held);
    model_read(&m, output);
    print_evaluation(&m, &p);
    free(t.id);
    free(held.id);
    free(p.bytes);
    model_close(&m);
}

/* ---- generation ---- */

/* A token by its probability at this temperature, among the `top` likeliest; 0 is all of them. */
static int32_t draw_token(const float *logit, int64_t count, double temperature, int64_t top,
                          double uniform) {
    int32_t chosen = 0;
    double *share = allocate((size_t)count, sizeof *share), sum = 0;
    for (int32_t i = 0; i < count; i++)
        if (logit[i] > logit[chosen]) chosen = i;
    for (int64_t i = 0; i < count && temperature > 0; i++) {
        int64_t above = 0;
        for (int64_t k = 0; k < count && top; k++) above += logit[k] > logit[i];
        if (!top || above < top) share[i] = exp((logit[i] - logit[chosen]) / temperature);
        sum += share[i];
    }
    uniform *= sum;
    for (int32_t i = 0; i < count && uniform >= 0; uniform -= share[i++])
        if (share[i] > 0) chosen = i;
    free(share);
    return chosen;
}

/* The last tokens, as many as the context has, go through the network, the next one is drawn from
 * the logits of the last, and so on. The network is causal: zeros after the last change nothing. */
static void continue_text(model *m, const tokens *prompt, int64_t count, double temperature,
                          int64_t top, uint64_t seed) {
    network n;
    basin_plan *plan;
    int64_t N = m->s.model.context, V = m->v.count, end = prompt->count;
    int32_t *id = allocate((size_t)(end + count + N), sizeof *id);
    float *logits = allocate((size_t)(N * V), sizeof *logits);
    basin_tensor read = basin_tensor_borrow(logits, BASIN_F32, BASIN_SHAPE(1, N, V));
    char piece[4];
    network_new(&n, &m->s.model, 1, N, false);
    basin_plan_spec spec = {.output = &n.logits, .outputs = 1};
    must(basin_plan_new(&plan, m->engine.store, &spec, &error));
    memcpy(id, prompt->id, (size_t)end * sizeof *id);
    for (int64_t i = 0; i < count; i++, end++) {
        int64_t first = end > N ? end - N : 0;
        basin_tensor window = basin_tensor_view(id + first, BASIN_I32, BASIN_SHAPE(N));
        basin_feed feed = {n.ids, &window};
        must(basin_plan_call(plan, &feed, 1, &n.logits, &read, 1, &error));
        double uniform = basin_random_uniform_at(seed, 0, (uint64_t)i);
        id[end] = draw_token(logits + (end - first - 1) * V, V, temperature, top, uniform);
        fwrite(piece, 1, write_token(piece, &m->v, id[end]), stdout);
        fflush(stdout);
    }
    basin_plan_free(plan);
    network_free(&n);
    free(logits);
    free(id);
}

static void generate(const char *path) {
    const char *prompt = text("--prompt", "\n");
    passage given = {"--prompt", (char *)prompt, strlen(prompt)};
    int64_t count = integer("--tokens", 500), top = integer("--top-k", 0);
    double temperature = real("--temperature", 0.8);
    uint64_t seed = (uint64_t)integer("--seed", 0);
    if (count < 0 || top < 0 || temperature < 0)
        quit("--tokens, --top-k, --temperature", "expected 0 or more");
    if (!given.length) quit("--prompt", "expected a character or more");
    model m = model_open();
    model_read(&m, path);
    tokens t = encode(&m.v, &given, 0, given.length);
    fputs(prompt, stdout);
    continue_text(&m, &t, count, temperature, top, seed);
    putchar('\n');
    free(t.id);
    model_close(&m);
}

int main(int count, char **argument) {
    const char *command = count > 2 ? argument[1] : "";
    char **files = argument + 2;
    int operands = 0;
    while (operands + 2 < count && files[operands][0] != '-') operands++;
    options = argument + (count > 2 ? operands + 2 : count);
    if (!strcmp(command, "train") && operands)
        train(text("-o", "model.safetensors"), files, operands);
    else if (!strcmp(command, "eval") && operands > 1)
        eval(files[0], files + 1, operands - 1);
    else if (!strcmp(command, "generate") && operands == 1)
        generate(files[0]);
    else
        return fputs(usage, stderr), 2;
    return 0;
}
