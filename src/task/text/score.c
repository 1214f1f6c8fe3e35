/* How well a model tells the next token: loss over windows, by place, and its energies. */
#include "base/sort.h"
#include "task/text/text.h"

/* One pass over a text; window w begins at w stride and counts its last `stride` tokens. */
typedef struct pass {
    basin_text_model *model;
    const basin_text_corpus *corpus;
    basin_text_graph graph;
    basin_plan *plan;
    basin_expr label, loss, least; /* [windows tokens] twice more */
    int64_t stride, windows, limit;
    int32_t *id, *wanted; /* [batch, context] */
    basin_tensor value[2], energy;
    double *sum; /* [context] */
    int64_t *count;
    int64_t hits;
    double end, descent;
    int64_t rises, moves;
} pass;

/* ---- what is computed ---- */

static int energies_of(const pass *p) {
    return p->graph.energy ? 2 * ((int)p->model->settings.steps + 1) : 0;
}

/* The loss of each token, and the least that it could be: that of the likeliest. */
static basin_status make_plan(pass *p, basin_error *error) {
    basin_expr output[2 + 2 * (BASIN_MAX_LAYERS + 1)];
    int energies = energies_of(p);
    int64_t rows = p->graph.windows * p->graph.tokens;
    basin_expr logits = basin_reshape(basin_language_logits(&p->graph.net, p->graph.x),
                                      BASIN_SHAPE(rows, p->model->settings.vocabulary));
    p->label = basin_index(p->graph.graph, "label", BASIN_SHAPE(rows));
    p->loss = output[0] = basin_cross_entropy_labels(logits, p->label);
    p->least = output[1] = basin_sub(basin_logsumexp(logits, -1), basin_maximum(logits, -1, 1));
    for (int i = 0; i < energies; i++) output[2 + i] = p->graph.energy[i];
    BASIN_TRY(basin_graph_check(p->graph.graph, error));
    basin_plan_spec spec = {.output = output, .outputs = 2 + energies};
    return basin_plan_new(&p->plan, p->model->store, &spec, error);
}

static basin_status make_arrays(pass *p, basin_error *error) {
    int64_t rows = p->graph.windows * p->graph.tokens;
    BASIN_TRY(BASIN_NEW(&p->id, rows, "scoring a text", error));
    BASIN_TRY(BASIN_NEW(&p->wanted, rows, "scoring a text", error));
    BASIN_TRY(BASIN_NEW(&p->sum, p->graph.tokens, "scoring a text", error));
    BASIN_TRY(BASIN_NEW(&p->count, p->graph.tokens, "scoring a text", error));
    for (int i = 0; i < 2; i++)
        BASIN_TRY(basin_tensor_new(&p->value[i], BASIN_F64, BASIN_SHAPE(rows), error));
    return basin_tensor_new(&p->energy, BASIN_F64, BASIN_SHAPE(energies_of(p), rows), error);
}

static void pass_free(pass *p) {
    basin_plan_free(p->plan);
    basin_text_graph_free(&p->graph);
    basin_tensor_free(&p->value[0]);
    basin_tensor_free(&p->value[1]);
    basin_tensor_free(&p->energy);
    BASIN_FREE(p->id, p->wanted, p->sum, p->count);
}

/* ---- windows ---- */

/* What does not count has the label -1. */
static void fill(pass *p, int64_t first, int64_t count) {
    int64_t N = p->graph.tokens;
    for (int64_t i = 0; i < p->graph.windows; i++) {
        int64_t window = i < count ? first + i : -1;
        if (i < count && p->limit != p->windows)
            window = (int64_t)((double)window * (double)p->windows / (double)p->limit);
        int64_t at = window * p->stride;
        for (int64_t n = 0; n < N; n++) {
            bool inside = window >= 0 && at + n + 1 < p->corpus->count;
            bool counts = inside && (window == 0 || n >= N - p->stride);
            p->id[i * N + n] = inside ? p->corpus->id[at + n] : 0;
            p->wanted[i * N + n] = counts ? p->corpus->id[at + n + 1] : -1;
        }
    }
}

static void add_energies(pass *p, int64_t row) {
    int parts = energies_of(p);
    int64_t rows = p->energy.shape.dim[1];
    const double *e = p->energy.data;
    double first = 0, last = 0;
    for (int i = 0; i < parts; i += 2) {
        double now = e[i * rows + row] + e[(i + 1) * rows + row];
        if (i == 0) first = now;
        if (i > 0) p->moves++, p->rises += now > last;
        last = now;
    }
    p->end += last;
    p->descent += first - last;
}

static void add(pass *p) {
    const double *loss = p->value[0].data, *least = p->value[1].data;
    int64_t rows = p->graph.windows * p->graph.tokens;
    for (int64_t i = 0; i < rows; i++) {
        if (p->wanted[i] < 0) continue;
        p->sum[i % p->graph.tokens] += loss[i];
        p->count[i % p->graph.tokens]++;
        p->hits += loss[i] <= least[i];
        if (energies_of(p)) add_energies(p, i);
    }
}

static basin_status run(pass *p, basin_error *error) {
    double *energy = p->energy.data;
    BASIN_TRY(basin_values_write(p->plan, p->graph.ids, p->id, BASIN_I32, error));
    BASIN_TRY(basin_values_write(p->plan, p->label, p->wanted, BASIN_I32, error));
    BASIN_TRY(basin_plan_run(p->plan, error));
    BASIN_TRY(basin_plan_read(p->plan, p->loss, &p->value[0], error));
    BASIN_TRY(basin_plan_read(p->plan, p->least, &p->value[1], error));
    for (int i = 0; i < energies_of(p); i++, energy += p->energy.shape.dim[1])
        BASIN_TRY(basin_values_read(p->plan, p->graph.energy[i], energy, BASIN_F64, error));
    return BASIN_OK;
}

static basin_status run_all(pass *p, const basin_watch *watch, basin_error *error) {
    for (int64_t at = 0; at < p->limit; at += p->graph.windows) {
        basin_watch_progress(watch, "scoring", at, p->limit, NAN, NULL);
        if (basin_watch_stopped(watch)) return basin_fail(error, BASIN_BAD_VALUE, "interrupted");
        fill(p, at, basin_int_min(p->limit - at, p->graph.windows));
        BASIN_TRY(run(p, error));
        add(p);
    }
    return BASIN_OK;
}

/* ---- results ---- */

static basin_status tell(basin_text_scores *s, const pass *p, basin_error *error) {
    double total = 0;
    s->context = p->graph.tokens;
    s->windows = p->limit;
    BASIN_TRY(BASIN_NEW_RAW(&s->position_loss, s->context, "scores", error));
    for (int64_t n = 0; n < s->context; n++) {
        s->position_loss[n] = p->count[n] ? p->sum[n] / (double)p->count[n] : NAN;
        total += p->sum[n];
        s->tokens += p->count[n];
    }
    s->loss = total / (double)s->tokens;
    s->perplexity = exp(s->loss);
    double bytes = (double)p->corpus->bytes;
    s->bits = bytes > 0 ? s->loss / log(2) * (double)p->corpus->count / bytes : NAN;
    s->accuracy = (double)p->hits / (double)s->tokens;
    s->energy = p->graph.energy ? p->end / (double)s->tokens : NAN;
    s->descent = p->graph.energy ? p->descent / (double)s->tokens : NAN;
    s->rises = p->graph.energy ? (double)p->rises / (double)p->moves : NAN;
    return BASIN_OK;
}

static basin_status begin(pass *p, const basin_text_scoring *scoring, bool energies,
                          basin_error *error) {
    const basin_text_settings *s = &p->model->settings;
    int64_t batch = scoring->batch ? scoring->batch : s->batch, last = p->corpus->count - 1;
    p->stride = scoring->stride ? scoring->stride : s->context;
    if (last < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "a text of %lld tokens, wanted 2 or more",
                          (long long)p->corpus->count);
    if (p->stride < 1 || p->stride > s->context)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "stride is %lld, wanted 1 to %lld: the model's context",
                          (long long)p->stride, (long long)s->context);
    if (scoring->limit < 0 || batch < 1)
        return basin_fail(error, BASIN_BAD_VALUE, "%s is %lld, wanted %d or more",
                          batch < 1 ? "batch" : "limit",
                          (long long)(batch < 1 ? batch : scoring->limit), batch < 1);
    int64_t more = last > s->context ? last - s->context : 0;
    p->windows = 1 + (more + p->stride - 1) / p->stride;
    p->limit = scoring->limit && scoring->limit < p->windows ? scoring->limit : p->windows;
    basin_text_wish wish = {.energies = energies && basin_text_about(p->model).energies};
    return basin_text_graph_new(&p->graph, s, batch < p->limit ? batch : p->limit, s->context, wish,
                                error);
}

basin_status basin_text_score_corpus(basin_text_scores *scores, basin_text_model *model,
                                     const basin_text_corpus *corpus,
                                     const basin_text_scoring *scoring, bool energies,
                                     basin_error *error) {
    BASIN_AT_EXIT(pass_free) pass p = {.model = model, .corpus = corpus};
    *scores = (basin_text_scores){0};
    BASIN_TRY(begin(&p, scoring, energies, error));
    BASIN_TRY(make_plan(&p, error));
    BASIN_TRY(make_arrays(&p, error));
    BASIN_TRY(run_all(&p, scoring->watch, error));
    return tell(scores, &p, error);
}

void basin_text_scores_free(basin_text_scores *scores) {
    free(scores->position_loss);
    *scores = (basin_text_scores){0};
}

/* ---- parts of a text ---- */

/* The slice that is scored, and what it is to the model. */
static basin_status choose(basin_text *slice, basin_text_scores *s, const basin_text_model *model,
                           const basin_text *text, basin_text_part part, basin_error *error) {
    basin_text_origin it = basin_text_origin_of(text, 0);
    bool known = basin_text_origin_equal(&it, &model->origin);
    bool held = known && model->origin.train < model->origin.length;
    size_t train = (size_t)model->origin.train;
    if (part == BASIN_TEXT_AUTO) part = held ? BASIN_TEXT_VALIDATION : BASIN_TEXT_ALL;
    if (part != BASIN_TEXT_ALL && !known)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "this is not the text that the model was trained on: it has no part for "
                          "validation; wanted all of it");
    if (part == BASIN_TEXT_VALIDATION && !held)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "all of the text was trained on; wanted another text");
    s->part = part;
    s->trained_on = known && part != BASIN_TEXT_VALIDATION;
    *slice = basin_text_slice(text, part == BASIN_TEXT_VALIDATION ? train : 0,
                              part == BASIN_TEXT_TRAIN ? train : text->length);
    return BASIN_OK;
}

basin_status basin_text_score(basin_text_scores *scores, basin_text_model *model,
                              const basin_text *text, const basin_text_scoring *scoring,
                              basin_error *error) {
    BASIN_AT_EXIT(basin_text_corpus_free) basin_text_corpus corpus = {0};
    basin_text_scoring wish = scoring ? *scoring : (basin_text_scoring){0};
    basin_text_scores what = {0};
    basin_text slice;
    *scores = (basin_text_scores){0};
    BASIN_TRY(choose(&slice, &what, model, text, wish.part, error));
    BASIN_TRY(basin_text_corpus_new(&corpus, &model->vocabulary, &slice, "the text", error));
    BASIN_TRY(basin_text_score_corpus(scores, model, &corpus, &wish, true, error));
    scores->part = what.part;
    scores->trained_on = what.trained_on;
    scores->bytes = corpus.bytes;
    return BASIN_OK;
}
