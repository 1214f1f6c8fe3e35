/* Plans for windows of several lengths, and running them; see window.h. */
#include "task/text/window.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { SHORTEST = 16 };

static int parts_of(const basin_text_window *w) { return w->steps ? 2 * ((int)w->steps + 1) : 0; }

/* ---- plans ---- */

static void plan_free(basin_text_plan *plan) {
    if (!plan) return;
    basin_plan_free(plan->plan);
    basin_text_graph_free(&plan->graph);
    free(plan);
}

/* The head is large where there are many tokens: only the last row goes through it, but for a
 * look at all. */
static basin_status build(basin_text_plan *p, const basin_text_window *w, bool look,
                          basin_error *error) {
    basin_expr output[2 + 2 * (BASIN_MAX_LAYERS + 1)];
    int64_t N = p->graph.tokens;
    int outputs = 0;
    basin_expr rows = basin_reshape(p->graph.x, BASIN_SHAPE(N, w->model->settings.dim));
    p->last = basin_index(p->graph.graph, "last", BASIN_SHAPE(1));
    p->logits = basin_language_logits(&p->graph.net, basin_gather(rows, p->last));
    output[outputs++] = p->logits;
    if (look) {
        p->label = basin_index(p->graph.graph, "label", BASIN_SHAPE(N));
        p->surprise =
            basin_cross_entropy_labels(basin_language_logits(&p->graph.net, rows), p->label);
        output[outputs++] = p->surprise;
    }
    for (int i = 0; i < parts_of(w); i++) output[outputs++] = p->graph.energy[i];
    basin_status status = basin_text_graph_check(&p->graph, error);
    basin_plan_spec spec = {.output = output, .outputs = outputs};
    return status ? status : basin_plan_new(&p->plan, w->model->store, &spec, error);
}

static basin_status make(basin_text_plan **plan, const basin_text_window *w, int64_t length,
                         bool look, basin_error *error) {
    basin_text_plan *p = *plan = calloc(1, sizeof *p);
    if (!p) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a window of text");
    basin_text_wish wish = {.energies = w->steps > 0};
    basin_status status =
        basin_text_graph_new(&p->graph, &w->model->settings, 1, length, wish, error);
    if (!status) status = build(p, w, look, error);
    if (!status) return BASIN_OK;
    plan_free(p);
    *plan = NULL;
    return status;
}

/* The shortest plan that has room for `count` tokens; made where it is first asked for. */
static basin_status plan_for(basin_text_plan **plan, basin_text_window *w, int64_t count, bool look,
                             basin_error *error) {
    int64_t length = SHORTEST, most = w->model->settings.context;
    int at = 0;
    for (; length < count && at + 1 < BASIN_WINDOW_LENGTHS; length *= 2) at++;
    w->length = length < most ? length : most;
    basin_text_plan **kept = &w->plan[look][at];
    basin_status status = *kept ? BASIN_OK : make(kept, w, w->length, look, error);
    *plan = *kept;
    return status;
}

/* ---- running ---- */

basin_status basin_text_window_new(basin_text_window *window, basin_text_model *model,
                                   bool energies, basin_error *error) {
    const basin_text_settings *s = &model->settings;
    size_t context = (size_t)s->context;
    *window = (basin_text_window){.model = model};
    if (energies && !basin_text_has_energy(model))
        return basin_fail(error, BASIN_UNSUPPORTED,
                          "energies of a model whose arch is '%s', which has none; wanted nrgpt",
                          s->arch);
    if (energies) window->steps = s->steps;
    window->id = basin_array_new(context, sizeof *window->id);
    window->label = basin_array_new(context, sizeof *window->label);
    window->surprise = basin_array_new(context, sizeof *window->surprise);
    window->logit = basin_array_new((size_t)s->vocabulary, sizeof *window->logit);
    window->energy = basin_array_new(context * (size_t)parts_of(window), sizeof *window->energy);
    if (window->id && window->label && window->surprise && window->logit && window->energy)
        return BASIN_OK;
    basin_text_window_free(window);
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a window of text");
}

void basin_text_window_free(basin_text_window *window) {
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < BASIN_WINDOW_LENGTHS; k++) plan_free(window->plan[i][k]);
    free(window->id);
    free(window->label);
    free(window->surprise);
    free(window->logit);
    free(window->energy);
    *window = (basin_text_window){0};
}

static basin_status write(const basin_text_plan *p, basin_text_window *w, const int32_t *id,
                          int64_t count, basin_error *error) {
    int64_t N = p->graph.tokens;
    int32_t last = (int32_t)count - 1;
    for (int64_t n = 0; n < N; n++) {
        w->id[n] = n < count ? id[n] : 0;
        w->label[n] = n + 1 < count ? id[n + 1] : -1;
    }
    basin_tensor ids = basin_tensor_borrow(w->id, BASIN_I32, BASIN_SHAPE(N));
    basin_tensor labels = basin_tensor_borrow(w->label, BASIN_I32, BASIN_SHAPE(N));
    basin_tensor row = basin_tensor_borrow(&last, BASIN_I32, BASIN_SHAPE(1));
    basin_status status = basin_plan_write(p->plan, p->graph.ids, &ids, error);
    if (!status) status = basin_plan_write(p->plan, p->last, &row, error);
    if (!status && p->label) status = basin_plan_write(p->plan, p->label, &labels, error);
    return status;
}

static basin_status read(const basin_text_plan *p, basin_text_window *w, basin_error *error) {
    int64_t N = p->graph.tokens;
    basin_tensor logits = basin_tensor_borrow(w->logit, BASIN_F64, basin_expr_shape(p->logits));
    basin_status status = basin_plan_read(p->plan, p->logits, &logits, error);
    if (!status && p->surprise) {
        basin_tensor surprise = basin_tensor_borrow(w->surprise, BASIN_F64, BASIN_SHAPE(N));
        status = basin_plan_read(p->plan, p->surprise, &surprise, error);
        memmove(w->surprise + 1, w->surprise, (size_t)(N - 1) * sizeof *w->surprise);
        w->surprise[0] = NAN; /* it is of the token behind each row */
    }
    for (int i = 0; i < parts_of(w) && !status; i++) {
        basin_tensor part = basin_tensor_borrow(w->energy + i * N, BASIN_F64, BASIN_SHAPE(1, N));
        status = basin_plan_read(p->plan, p->graph.energy[i], &part, error);
    }
    return status;
}

static basin_status check(const basin_text_window *w, basin_error *error) {
    for (int64_t i = 0; i < w->model->settings.vocabulary; i++)
        if (!isfinite(w->logit[i]))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "the model gives %g for token %lld; wanted a finite number",
                              w->logit[i], (long long)i);
    return BASIN_OK;
}

basin_status basin_text_window_run(basin_text_window *window, const int32_t *id, int64_t count,
                                   bool look, basin_error *error) {
    basin_text_plan *plan;
    basin_status status = plan_for(&plan, window, count, look, error);
    if (!status) status = write(plan, window, id, count, error);
    if (!status) status = basin_plan_run(plan->plan, error);
    if (!status) status = read(plan, window, error);
    return status ? status : check(window, error);
}

void basin_text_window_energies(double *energy, const basin_text_window *window, int64_t n) {
    for (int i = 0; i < parts_of(window); i++) energy[i] = window->energy[i * window->length + n];
}
