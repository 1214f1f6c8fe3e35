/* Text that goes on from a prompt, token by token: a window of the last tokens is run on the model,
 * a token drawn from what it says, and the window moves on. */
#include "base/clock.h"
#include "base/sort.h"
#include "basin/random.h"
#include "task/text/text.h"

/* Lengths of windows that have a plan: 16, 32, .. the context; filled up behind the end. */
enum { SHORTEST = 16, LENGTHS = 24 };

typedef struct window_plan {
    basin_text_graph graph;
    basin_plan *plan;
    basin_expr last, label;      /* index [1]; index [tokens], NULL where surprises are not asked */
    basin_expr logits, surprise; /* [1, V] [tokens] */
} window_plan;

typedef struct story {
    basin_text_model *model;
    basin_text_generation wish;
    int64_t steps;         /* of energies; 0: without */
    int64_t prompt, count; /* tokens */
    int32_t *id;           /* [prompt + tokens] */
    double *surprise;      /* the same */
    double *energy;        /* [steps + 1, 2] of the token that is reported */
    bool enough;           /* the caller needs no more */
    /* The window of the last tokens: */
    window_plan *plan[2][LENGTHS]; /* [1]: with surprises */
    int32_t *window, *label;       /* [context] */
    double *logit;                 /* [V] after the last token */
    double *surprises;             /* [context] by those before it; NaN of the first */
    double *energies;              /* [steps + 1, 2, context] */
    int64_t length;                /* of its plan, and the stride of the energies */
} story;

/* ---- plans ---- */

static int parts_of(const story *s) { return s->steps ? 2 * ((int)s->steps + 1) : 0; }

static void plan_free(window_plan *plan) {
    if (!plan) return;
    basin_plan_free(plan->plan);
    basin_text_graph_free(&plan->graph);
    free(plan);
}

/* The head is large where tokens are many: only the last row goes through it, mostly. */
static basin_status build(window_plan *p, const story *s, int64_t length, bool look,
                          basin_error *error) {
    basin_expr output[2 + 2 * (BASIN_MAX_LAYERS + 1)];
    basin_text_wish wish = {.energies = s->steps > 0};
    int outputs = 0;
    BASIN_TRY(basin_text_graph_new(&p->graph, &s->model->settings, 1, length, wish, error));
    basin_expr rows = basin_reshape(p->graph.x, BASIN_SHAPE(length, s->model->settings.dim));
    p->last = basin_index(p->graph.graph, "last", BASIN_SHAPE(1));
    p->logits = basin_language_logits(&p->graph.net, basin_gather(rows, p->last));
    output[outputs++] = p->logits;
    if (look) {
        p->label = basin_index(p->graph.graph, "label", BASIN_SHAPE(length));
        p->surprise =
            basin_cross_entropy_labels(basin_language_logits(&p->graph.net, rows), p->label);
        output[outputs++] = p->surprise;
    }
    for (int i = 0; i < parts_of(s); i++) output[outputs++] = p->graph.energy[i];
    BASIN_TRY(basin_graph_check(p->graph.graph, error));
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    return basin_plan_new(&p->plan, s->model->store, &spec, error);
}

/* The shortest plan that has room for `count` tokens; made where it is first asked for. */
static basin_status plan_for(window_plan **plan, story *s, int64_t count, bool look,
                             basin_error *error) {
    int64_t length = SHORTEST;
    int at = 0;
    for (; length < count && at + 1 < LENGTHS; length *= 2) at++;
    s->length = basin_int_min(length, s->model->settings.context);
    *plan = s->plan[look][at];
    if (*plan) return BASIN_OK;
    BASIN_TRY(BASIN_NEW(plan, 1, "a window of text", error));
    BASIN_TRY_OR(build(*plan, s, s->length, look, error), plan_free(*plan));
    s->plan[look][at] = *plan;
    return BASIN_OK;
}

/* ---- running a window ---- */

static basin_status write(const window_plan *p, story *s, const int32_t *id, int64_t count,
                          basin_error *error) {
    int64_t N = p->graph.tokens;
    int32_t last = (int32_t)count - 1;
    for (int64_t n = 0; n < N; n++) {
        s->window[n] = n < count ? id[n] : 0;
        s->label[n] = n + 1 < count ? id[n + 1] : -1;
    }
    BASIN_TRY(basin_values_write(p->plan, p->graph.ids, s->window, BASIN_I32, error));
    BASIN_TRY(basin_values_write(p->plan, p->last, &last, BASIN_I32, error));
    return basin_values_write(p->plan, p->label, s->label, BASIN_I32, error);
}

static basin_status read(const window_plan *p, story *s, basin_error *error) {
    int64_t N = p->graph.tokens;
    BASIN_TRY(basin_values_read(p->plan, p->logits, s->logit, BASIN_F64, error));
    if (p->surprise) {
        BASIN_TRY(basin_values_read(p->plan, p->surprise, s->surprises, BASIN_F64, error));
        memmove(s->surprises + 1, s->surprises, (size_t)(N - 1) * sizeof *s->surprises);
        s->surprises[0] = NAN; /* it is of the token behind each row */
    }
    for (int i = 0; i < parts_of(s); i++)
        BASIN_TRY(
            basin_values_read(p->plan, p->graph.energy[i], s->energies + i * N, BASIN_F64, error));
    for (int64_t i = 0; i < s->model->settings.vocabulary; i++)
        if (!isfinite(s->logit[i]))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "the model gives %g for token %lld; wanted a finite number",
                              s->logit[i], (long long)i);
    return BASIN_OK;
}

/* Runs the last tokens that the context has room for, `*first` on. `all`: surprises, too. */
static basin_status look(int64_t *first, story *s, bool all, basin_error *error) {
    window_plan *plan;
    int64_t context = s->model->settings.context;
    *first = s->count > context ? s->count - context : 0;
    BASIN_TRY(plan_for(&plan, s, s->count - *first, all, error));
    BASIN_TRY(write(plan, s, s->id + *first, s->count - *first, error));
    BASIN_TRY(basin_plan_run(plan->plan, error));
    return read(plan, s, error);
}

/* ---- drawing a token ---- */

/* The share of each of the first `count`, the likeliest being 1 before they are summed. */
static int64_t pick(const basin_ranked *rank, int64_t count, double temperature, double uniform) {
    double sum = 0, at = 0;
    for (int64_t i = 0; i < count; i++) sum += exp((rank[i].value - rank[0].value) / temperature);
    for (int64_t i = 0; i < count; i++) {
        at += exp((rank[i].value - rank[0].value) / temperature);
        if (uniform * sum < at) return i;
    }
    return count - 1;
}

static basin_status draw(int32_t *id, double *surprise, const story *s, basin_error *error) {
    const basin_text_generation *w = &s->wish;
    int64_t V = s->model->settings.vocabulary, most = w->top_k && w->top_k < V ? w->top_k : V;
    double sum = 0;
    BASIN_SCRATCH_RAW(basin_ranked, rank, V, "drawing a token", error);
    for (int64_t i = 0; i < V; i++) rank[i] = (basin_ranked){s->logit[i], i};
    qsort(rank, (size_t)V, sizeof *rank, basin_higher_first);
    for (int64_t i = 0; i < V; i++) sum += exp(rank[i].value - rank[0].value);
    double uniform = basin_random_uniform_at(w->seed, 0, (uint64_t)(s->count - s->prompt));
    int64_t chosen = w->temperature > 0 ? pick(rank, most, w->temperature, uniform) : 0;
    *id = (int32_t)rank[chosen].at;
    *surprise = log(sum) + rank[0].value - rank[chosen].value;
    return BASIN_OK;
}

/* Reports token n; `at`: where it lies in the window that was run last, or -1: before it. */
static void tell(story *s, int64_t n, int64_t at) {
    basin_text_token token = {.id = s->id[n],
                              .given = n < s->prompt,
                              .place = n,
                              .surprise = s->surprise[n],
                              .steps = at >= 0 ? s->steps : 0,
                              .energy = s->energy};
    char piece[BASIN_TEXT_PIECE];
    token.length = basin_vocabulary_piece(piece, &s->model->vocabulary, token.id, n == 0);
    token.text = piece;
    for (int i = 0; token.steps && i < parts_of(s); i++)
        s->energy[i] = s->energies[i * s->length + at];
    if (s->wish.tell && !s->wish.tell(s->wish.context, &token)) s->enough = true;
    if (basin_watch_stopped(s->wish.watch)) s->enough = true;
}

/* ---- the prompt ---- */

static basin_status make_arrays(story *s, basin_error *error) {
    const basin_text_settings *of = &s->model->settings;
    int64_t most = s->prompt + s->wish.tokens, context = of->context;
    BASIN_TRY(BASIN_NEW_RAW(&s->id, most, "the tokens of a text", error));
    BASIN_TRY(BASIN_NEW_RAW(&s->surprise, most, "the tokens of a text", error));
    BASIN_TRY(BASIN_NEW_RAW(&s->energy, 2 * (s->steps + 1), "energies", error));
    BASIN_TRY(BASIN_NEW_RAW(&s->window, context, "a window of text", error));
    BASIN_TRY(BASIN_NEW_RAW(&s->label, context, "a window of text", error));
    BASIN_TRY(BASIN_NEW_RAW(&s->surprises, context, "a window of text", error));
    BASIN_TRY(BASIN_NEW_RAW(&s->logit, of->vocabulary, "a window of text", error));
    return BASIN_NEW_RAW(&s->energies, context * parts_of(s), "a window of text", error);
}

static basin_status read_prompt(story *s, const basin_text *prompt, basin_error *error) {
    BASIN_AT_EXIT(basin_text_corpus_free) basin_text_corpus corpus = {0};
    const basin_text line_end = {.bytes = "\n", .length = 1};
    bool given = prompt && prompt->length;
    BASIN_TRY(basin_text_corpus_new(
        &corpus, &s->model->vocabulary, given ? prompt : &line_end,
        given ? "the prompt" : "no prompt, so that it begins with a line end", error));
    if (!corpus.count)
        return basin_fail(error, BASIN_BAD_VALUE, "the prompt has no token, wanted one or more");
    s->prompt = s->count = corpus.count;
    BASIN_TRY(make_arrays(s, error));
    memcpy(s->id, corpus.id, (size_t)corpus.count * sizeof *s->id);
    return BASIN_OK;
}

static basin_status begin(story *s, basin_text_generated *result, basin_error *error) {
    int64_t first;
    BASIN_TRY(look(&first, s, true, error));
    if (first)
        basin_watch_note(s->wish.watch,
                         "the prompt has %lld tokens, of which the model sees the last %lld",
                         (long long)s->count, (long long)(s->count - first));
    result->prompt = s->prompt;
    result->cropped = first;
    for (int64_t n = 0; n < s->prompt && !s->enough; n++) {
        s->surprise[n] = n < first ? NAN : s->surprises[n - first];
        tell(s, n, n < first ? -1 : n - first);
    }
    return BASIN_OK;
}

static basin_status go_on(story *s, basin_text_generated *result, basin_error *error) {
    double began = basin_clock(), sum = 0;
    int64_t end = s->prompt + s->wish.tokens, first;
    bool energies = s->steps > 0;
    while (s->count < end && !s->enough) {
        int64_t n = s->count;
        BASIN_TRY(draw(&s->id[n], &s->surprise[n], s, error));
        s->count++;
        sum += s->surprise[n];
        if (!energies) tell(s, n, -1);
        if (energies || s->count < end) BASIN_TRY(look(&first, s, false, error));
        if (energies) tell(s, n, n - first);
    }
    result->tokens = s->count - s->prompt;
    result->seconds = basin_clock() - began;
    result->surprise = result->tokens ? sum / (double)result->tokens : NAN;
    return BASIN_OK;
}

static basin_status check(story *s, basin_error *error) {
    enum { MOST = 1 << 30 };
    const basin_text_generation *w = &s->wish;
    if (w->tokens < 0 || w->tokens > MOST)
        return basin_fail(error, BASIN_BAD_VALUE, "tokens is %lld, wanted 0 to %d",
                          (long long)w->tokens, MOST);
    if (!(w->temperature >= 0) || !isfinite(w->temperature))
        return basin_fail(error, BASIN_BAD_VALUE, "temperature is %g, wanted 0 or more",
                          w->temperature);
    if (w->top_k < 0)
        return basin_fail(error, BASIN_BAD_VALUE, "top_k is %lld, wanted 0 or more",
                          (long long)w->top_k);
    if (w->energies && !basin_text_about(s->model).energies)
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "energies of a model whose arch is '%s', which has none; wanted nrgpt",
                          s->model->settings.arch);
    if (w->energies) s->steps = s->model->settings.steps;
    return BASIN_OK;
}

static void story_free(story *s) {
    BASIN_FREE(s->id, s->surprise, s->energy, s->window);
    BASIN_FREE(s->label, s->logit, s->surprises, s->energies);
    for (int i = 0; i < 2 * LENGTHS; i++) plan_free(s->plan[i / LENGTHS][i % LENGTHS]);
}

basin_status basin_text_generate(basin_text_generated *generated, basin_text_model *model,
                                 const basin_text *prompt, const basin_text_generation *generation,
                                 basin_error *error) {
    BASIN_AT_EXIT(story_free) story s = {.model = model, .wish = *generation};
    basin_text_generated result = {0}, *to = generated ? generated : &result;
    *to = result;
    BASIN_TRY(check(&s, error));
    BASIN_TRY(read_prompt(&s, prompt, error));
    BASIN_TRY(begin(&s, to, error));
    return go_on(&s, to, error);
}
