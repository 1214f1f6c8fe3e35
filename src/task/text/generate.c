/* Text that goes on from a prompt, token by token: the model's window is run, a token drawn from
 * what it says, and the window moves on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "basin/random.h"
#include "task/given.h"
#include "task/text/window.h"

typedef struct story {
    basin_text_model *model;
    basin_text_generation wish;
    basin_text_window window;
    int64_t prompt, count; /* tokens */
    int32_t *id;           /* [prompt + tokens] */
    double *surprise;      /* the same */
    double *energy;        /* [steps + 1, 2] of the token that is told */
    bool enough;           /* who is told says so */
} story;

/* ---- drawing a token ---- */

typedef struct ranked {
    double logit;
    int32_t id;
} ranked;

static int by_logit(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* The share of each of the first `count`, the likeliest being 1 before they are summed. */
static int64_t pick(const ranked *rank, int64_t count, double temperature, double uniform) {
    double sum = 0, at = 0;
    for (int64_t i = 0; i < count; i++) sum += exp((rank[i].logit - rank[0].logit) / temperature);
    for (int64_t i = 0; i < count; i++) {
        at += exp((rank[i].logit - rank[0].logit) / temperature);
        if (uniform * sum < at) return i;
    }
    return count - 1;
}

static basin_status draw(int32_t *id, double *surprise, const story *s, basin_error *error) {
    const basin_text_generation *w = &s->wish;
    int64_t V = s->model->settings.vocabulary, most = w->top_k && w->top_k < V ? w->top_k : V;
    double sum = 0;
    ranked *rank = basin_array_new((size_t)V, sizeof *rank);
    if (!rank) return basin_fail(error, BASIN_NO_MEMORY, "out of memory to draw a token");
    for (int64_t i = 0; i < V; i++) rank[i] = (ranked){s->window.logit[i], (int32_t)i};
    qsort(rank, (size_t)V, sizeof *rank, by_logit);
    for (int64_t i = 0; i < V; i++) sum += exp(rank[i].logit - rank[0].logit);
    double uniform = basin_random_uniform_at(w->seed, 0, (uint64_t)(s->count - s->prompt));
    int64_t chosen = w->temperature > 0 ? pick(rank, most, w->temperature, uniform) : 0;
    *id = rank[chosen].id;
    *surprise = log(sum) + rank[0].logit - rank[chosen].logit;
    free(rank);
    return BASIN_OK;
}

/* ---- telling ---- */

/* Token n; where it lies in the window that was run last, or -1: before it. */
static void tell(story *s, int64_t n, int64_t at) {
    basin_text_token token = {.id = s->id[n],
                              .given = n < s->prompt,
                              .place = n,
                              .surprise = s->surprise[n],
                              .steps = at >= 0 ? s->window.steps : 0,
                              .energy = s->energy};
    token.text = basin_tokenizer_piece(&token.length, s->model->tokenizer, token.id);
    if (token.steps) basin_text_window_energies(s->energy, &s->window, at);
    if (s->wish.tell && !s->wish.tell(s->wish.context, &token)) s->enough = true;
    if (basin_watch_stopped(s->wish.watch)) s->enough = true;
}

/* ---- the prompt ---- */

static basin_status read_prompt(story *s, const char *prompt, size_t length, basin_error *error) {
    basin_text_corpus corpus;
    const char *text = length ? prompt : "\n", *what = "the prompt";
    if (!length) what = "no prompt, so that it begins with a line end";
    basin_status status =
        basin_text_corpus_new(&corpus, s->model->tokenizer, text, length ? length : 1, what, error);
    if (status) return status;
    size_t room = (size_t)(corpus.count + s->wish.tokens);
    s->prompt = s->count = corpus.count;
    s->id = basin_array_new(room, sizeof *s->id);
    s->surprise = basin_array_new(room, sizeof *s->surprise);
    s->energy = basin_array_new(2 * (size_t)(s->window.steps + 1), sizeof *s->energy);
    if (s->id && s->surprise && s->energy)
        memcpy(s->id, corpus.id, (size_t)corpus.count * sizeof *s->id);
    else
        status =
            basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld tokens", (long long)room);
    basin_text_corpus_free(&corpus);
    return status;
}

/* Runs the last tokens that the context has room for; the first of them. */
static basin_status look(int64_t *first, story *s, bool all, basin_error *error) {
    int64_t context = s->model->settings.context;
    *first = s->count > context ? s->count - context : 0;
    return basin_text_window_run(&s->window, s->id + *first, s->count - *first, all, error);
}

static basin_status begin(story *s, basin_text_generated *result, basin_error *error) {
    int64_t first;
    basin_status status = look(&first, s, true, error);
    if (status) return status;
    if (first)
        basin_watch_note(s->wish.watch,
                         "the prompt has %lld tokens, of which the model sees the last %lld",
                         (long long)s->count, (long long)(s->count - first));
    result->prompt = s->prompt;
    result->cropped = first;
    for (int64_t n = 0; n < s->prompt && !s->enough; n++) {
        s->surprise[n] = n < first ? NAN : s->window.surprise[n - first];
        tell(s, n, n < first ? -1 : n - first);
    }
    return BASIN_OK;
}

/* ---- what follows ---- */

static basin_status go_on(story *s, basin_text_generated *result, basin_error *error) {
    basin_status status = BASIN_OK;
    double began = basin_clock(), sum = 0;
    int64_t end = s->prompt + s->wish.tokens, first;
    bool energies = s->window.steps > 0;
    while (s->count < end && !s->enough && !status) {
        int64_t n = s->count;
        status = draw(&s->id[n], &s->surprise[n], s, error);
        if (status) break;
        s->count++;
        sum += s->surprise[n];
        if (!energies) tell(s, n, -1);
        if (energies || s->count < end) status = look(&first, s, false, error);
        if (energies && !status) tell(s, n, n - first);
    }
    result->tokens = s->count - s->prompt;
    result->seconds = basin_clock() - began;
    result->surprise = result->tokens ? sum / (double)result->tokens : NAN;
    return status;
}

static basin_status check(const basin_text_generation *w, basin_error *error) {
    enum { MOST = 1 << 30 };
    if (w->tokens < 0 || w->tokens > MOST)
        return basin_fail(error, BASIN_BAD_VALUE, "tokens is %lld, wanted 0 to %d",
                          (long long)w->tokens, MOST);
    if (!(w->temperature >= 0) || !isfinite(w->temperature))
        return basin_fail(error, BASIN_BAD_VALUE, "temperature is %g, wanted 0 or more",
                          w->temperature);
    if (w->top_k < 0)
        return basin_fail(error, BASIN_BAD_VALUE, "top_k is %lld, wanted 0 or more",
                          (long long)w->top_k);
    return BASIN_OK;
}

basin_status basin_text_generate(basin_text_generated *generated, basin_text_model *model,
                                 const char *prompt, size_t length,
                                 const basin_text_generation *generation, basin_error *error) {
    story s = {.model = model};
    basin_text_generated result = {0};
    basin_status status =
        basin_given_take(&s.wish, sizeof s.wish, generation, "basin_text_generation", error);
    if (!status) status = check(&s.wish, error);
    if (!status) status = basin_text_window_new(&s.window, model, s.wish.energies, error);
    if (!status) status = read_prompt(&s, prompt, length, error);
    if (!status) status = begin(&s, &result, error);
    if (!status) status = go_on(&s, &result, error);
    if (generated) *generated = result;
    basin_text_window_free(&s.window);
    free(s.id);
    free(s.surprise);
    free(s.energy);
    return status;
}
