/* Filling holes level by level; see filling.h. At each level all windows of all pictures go through
 * the model in batches. */
#include "task/image/complete/filling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/image/complete/guess.h"
#include "task/image/complete/rehearse.h"
#include "task/image/report/report.h"

enum { BATCH = 8 };

/* A level of all pictures. */
typedef struct level {
    basin_filling *fill; /* [count] */
    int64_t count;
    basin_image_model *model;
    const basin_image_completing *how;
    int number;
    bool frames, plain;
    int64_t across, tokens, values;
    basin_windows windows;
    basin_guessing guessing;
    float *patches, *output; /* [BATCH, N, P] */
    uint8_t *hidden;         /* [BATCH, N] */
} level;

int64_t basin_filling_side(const basin_filling *f, int64_t size, int number) {
    int64_t side = size, most = f->now.height < f->now.width ? f->now.height : f->now.width;
    for (int i = 0; i < number && side < most; i++) side *= 2;
    return side < most ? side : most;
}

int64_t basin_filling_reach(const basin_filling *f, int64_t size, int number) {
    int64_t quarter = basin_filling_side(f, size, number) / 4;
    return number == f->levels - 1 ? f->hole.deepest : quarter > 1 ? quarter : 1;
}

/* ---- through the model ---- */

static basin_status run_batch(level *l, basin_image_runner *runner, const basin_window *w,
                              int64_t count, basin_error *error) {
    basin_status status =
        basin_image_runner_run(runner, l->output, l->patches, l->hidden, count, error);
    for (int64_t i = 0; i < count && !status; i++) {
        basin_filling *f = &l->fill[w[i].picture];
        if (f->steps < runner->taken[i]) f->steps = runner->taken[i];
        status = basin_guess_hear(&l->guessing, &w[i], l->hidden + i * l->tokens,
                                  l->output + i * l->tokens * l->values, 0, error);
    }
    return status;
}

/* The same with every step of the descent. */
static basin_status trace_batch(level *l, const basin_window *w, int64_t count,
                                basin_error *error) {
    basin_image_trace trace;
    basin_status status =
        basin_image_trace_new(&trace, l->model, l->patches, l->hidden, count, error);
    if (status) return status;
    for (int64_t i = 0; i < count && !status; i++) {
        basin_filling *f = &l->fill[w[i].picture];
        if (f->steps < trace.steps) f->steps = trace.steps;
        for (int t = 0; t <= trace.steps && !status; t++)
            status =
                basin_guess_hear(&l->guessing, &w[i], l->hidden + i * l->tokens,
                                 trace.token + (t * count + i) * l->tokens * l->values, t, error);
    }
    basin_image_trace_free(&trace);
    return status;
}

/* Windows of one size at a time, since they share their weights; at most BATCH. */
static int64_t batch_of(const level *l, size_t first) {
    const basin_window *w = l->windows.window;
    size_t end = first;
    while (end < l->windows.count && end < first + BATCH && w[end].height == w[first].height &&
           w[end].width == w[first].width)
        end++;
    return (int64_t)(end - first);
}

static basin_status run_windows(level *l, basin_image_runner *runner, basin_error *error) {
    basin_status status = BASIN_OK;
    for (size_t first = 0; first < l->windows.count && !status;) {
        const basin_window *w = l->windows.window + first;
        int64_t count = batch_of(l, first);
        for (int64_t i = 0; i < count && !status; i++) {
            l->fill[w[i].picture].windows++;
            basin_guess_hide(l->hidden + i * l->tokens, &l->guessing, &w[i]);
            status = basin_guess_show(l->patches + i * l->tokens * l->values, &l->guessing, &w[i],
                                      error);
        }
        if (!status) status = basin_guess_weigh(&l->guessing, w, error);
        if (!status)
            status =
                l->frames ? trace_batch(l, w, count, error) : run_batch(l, runner, w, count, error);
        first += (size_t)count;
    }
    return status;
}

/* ---- rehearsals ---- */

/* The fading length of corrections, in pixels of a window `side` pixels wide. */
static double fade_of(const level *l, int64_t side) { return 2 * (double)side / (double)l->across; }

enum { WAYS = 4 }; /* rehearsals a picture; masks and places fill a batch of masks */

/* First look number `number` of `of` that are spread over the windows of a picture. */
static const basin_window *first_look(const basin_window *w, size_t windows, size_t number,
                                      size_t of) {
    size_t firsts = 0, at = 0;
    for (size_t i = 0; i < windows; i++) firsts += w[i].first;
    for (size_t left = firsts * number / of; !w[at].first || left > 0; at++) left -= w[at].first;
    return &w[at];
}

/* Prepares rehearsals in windows from all over the hole, as many as find room. Other looks than the
 * first hide more than the hole, and would say nothing of it. */
static basin_status prepare(level *l, const basin_window *w, size_t windows, int64_t *count,
                            basin_error *error) {
    basin_status status = BASIN_OK;
    *count = 0;
    for (int way = 0; way < WAYS && !status; way++) {
        const basin_window *one = first_look(w, windows, (size_t)way, WAYS);
        uint8_t *hidden = l->hidden + *count * l->tokens, *place = hidden + WAYS * l->tokens;
        basin_guess_hide(hidden, &l->guessing, one);
        if (!basin_rehearse_place(place, hidden, l->across, way)) continue;
        for (int64_t i = 0; i < l->tokens; i++)
            if (place[i] != BASIN_PATCH_SHOWN) hidden[i] = place[i];
        status =
            basin_guess_show(l->patches + *count * l->tokens * l->values, &l->guessing, one, error);
        ++*count;
    }
    return status;
}

static basin_status rehearse_picture(level *l, basin_image_runner *runner, const basin_window *w,
                                     size_t windows, basin_error *error) {
    basin_trust trust = {0};
    int64_t count, values = l->tokens * l->values, batch = runner->graph.batch;
    basin_status status = prepare(l, w, windows, &count, error);
    for (int64_t i = 0; i < count && !status; i += batch)
        status = basin_image_runner_run(runner, l->output + i * values, l->patches + i * values,
                                        l->hidden + i * l->tokens,
                                        count - i < batch ? count - i : batch, error);
    for (int64_t i = 0; i < count && !status; i++)
        status = basin_rehearse_judge(&trust, l->model, l->hidden + (WAYS + i) * l->tokens,
                                      l->patches + i * values, l->output + i * values,
                                      fade_of(l, l->model->settings.size), error);
    l->fill[w->picture].share = basin_trust_share(&trust);
    return status;
}

static basin_status rehearse(level *l, basin_image_runner *runner, basin_error *error) {
    const basin_window *w = l->windows.window;
    basin_status status = BASIN_OK;
    for (size_t first = 0, end; first < l->windows.count && !status; first = end) {
        for (end = first; end < l->windows.count && w[end].picture == w[first].picture;) end++;
        status = rehearse_picture(l, runner, w + first, end - first, error);
    }
    return status;
}

/* ---- before and after ---- */

static basin_status begin(level *l, int64_t number, basin_error *error) {
    basin_filling *f = &l->fill[number];
    int64_t size = l->model->settings.size, area = f->hole.box.height * f->hole.box.width;
    if (l->number >= f->levels) return BASIN_OK;
    f->copies = l->frames ? (int)basin_image_run_settings(l->model).steps + 1 : 1;
    free(f->sum);
    free(f->weight);
    f->sum = calloc((size_t)(f->copies * area), (size_t)f->now.channels * sizeof *f->sum);
    f->weight = calloc((size_t)area, sizeof *f->weight);
    if (!f->sum || !f->weight)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory to complete a picture");
    basin_cover cover = {.hole = &f->hole,
                         .height = f->now.height,
                         .width = f->now.width,
                         .side = basin_filling_side(f, size, l->number),
                         .across = l->across,
                         .reach = basin_filling_reach(f, size, l->number),
                         .whole = l->how->resize,
                         .looks = l->plain ? 1 : l->how->looks,
                         .flips = l->model->settings.flip,
                         .lanes = f->lanes,
                         .picture = number};
    return basin_windows_cover(&l->windows, &cover, error);
}

/* How much a guess counts beside what a coarser level gave: all of it near the rim, nothing at the
 * end of what this level reaches. */
static double trust(const level *l, const basin_filling *f, int32_t depth) {
    double reach = (double)basin_filling_reach(f, l->model->settings.size, l->number);
    if (l->number == f->levels - 1) return 1;
    double at = fmin(fmax(2 * (depth - 1) / reach - 1, 0), 1);
    return 1 - at * at * (3 - 2 * at);
}

/* Sums become guesses. */
static void settle(const level *l, basin_filling *f, float *sum) {
    const basin_area *box = &f->hole.box;
    int channels = f->now.channels;
    for (int64_t i = 0; i < box->height * box->width; i++) {
        int64_t at = (box->top + i / box->width) * f->now.width + box->left + i % box->width;
        double part = f->weight[i] > 0 ? trust(l, f, f->hole.depth[i]) : 0;
        for (int c = 0; c < channels; c++) {
            double before = f->now.pixel[at * channels + c], guess = before;
            if (f->weight[i] > 0) guess = sum[i * channels + c] / f->weight[i];
            sum[i * channels + c] = (float)(before + part * (guess - before));
        }
    }
}

void basin_filling_write(basin_picture *to, const basin_hole *hole, const float *guess) {
    const basin_area *box = &hole->box;
    for (int64_t i = 0; i < box->height * box->width; i++) {
        int64_t at = (box->top + i / box->width) * to->width + box->left + i % box->width;
        for (int c = 0; c < to->channels && hole->depth[i] > 0; c++)
            to->pixel[at * to->channels + c] =
                (uint8_t)lrintf(fminf(fmaxf(guess[i * to->channels + c], 0), 255));
    }
}

/* The model's guesses count by its share, the membrane for the rest. */
static void mix(const basin_filling *f, float *guess) {
    for (int64_t i = 0; i < f->hole.box.height * f->hole.box.width * f->now.channels; i++)
        guess[i] = f->span[i] + (float)f->share * (guess[i] - f->span[i]);
}

static basin_status end(level *l, basin_filling *f, basin_error *error) {
    int64_t area = f->hole.box.height * f->hole.box.width, size = l->model->settings.size;
    if (l->number >= f->levels) return BASIN_OK;
    int64_t side = basin_filling_side(f, size, l->number);
    basin_status status = BASIN_OK;
    for (int copy = 0; copy < f->copies && !status; copy++) {
        float *sum = f->sum + copy * area * f->now.channels;
        settle(l, f, sum);
        if (!l->plain)
            status = basin_rim_match(sum, f->weight, &f->now, &f->hole, fade_of(l, side), error);
        if (!l->plain) mix(f, sum);
    }
    if (!status)
        basin_filling_write(&f->now, &f->hole, f->sum + (f->copies - 1) * area * f->now.channels);
    return status;
}

/* ---- the whole ---- */

static basin_status run_level(level *l, basin_error *error) {
    basin_image_runner *runner = NULL;
    basin_status status = BASIN_OK;
    l->windows.count = 0;
    l->frames = l->how->frames && l->number == 0;
    l->guessing.level = l->number;
    for (int64_t i = 0; i < l->count && !status; i++) status = begin(l, i, error);
    size_t batch = l->windows.count < BATCH ? l->windows.count : BATCH;
    if (!status) status = basin_image_runner_borrow(&runner, l->model, (int64_t)batch, error);
    if (!status && !l->plain) status = rehearse(l, runner, error);
    if (!status) status = run_windows(l, runner, error);
    for (int64_t i = 0; i < l->count && !status; i++) status = end(l, &l->fill[i], error);
    return status;
}

/* Enough coarser levels for the deepest pixel to be within a quarter of a window from the rim. */
static void plan_levels(level *l, basin_filling *f) {
    int64_t size = l->model->settings.size;
    int64_t most = f->now.height < f->now.width ? f->now.height : f->now.width;
    f->lanes = l->model->settings.channels == 1 ? f->now.channels : 1;
    f->levels = 1;
    f->share = 1;
    if (l->plain || l->how->resize) return;
    while (basin_filling_side(f, size, f->levels - 1) < most &&
           f->hole.deepest > basin_filling_side(f, size, f->levels - 1) / 4)
        f->levels++;
}

static basin_status run_levels(level *l, basin_error *error) {
    size_t patches = (size_t)(BATCH * l->tokens);
    int levels = 1;
    l->patches = basin_array_new(patches, (size_t)l->values * sizeof *l->patches);
    l->output = basin_array_new(patches, (size_t)l->values * sizeof *l->output);
    l->hidden = basin_array_new(patches, sizeof *l->hidden);
    if (!l->patches || !l->output || !l->hidden)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory to complete pictures");
    for (int64_t i = 0; i < l->count; i++) {
        plan_levels(l, &l->fill[i]);
        if (levels < l->fill[i].levels) levels = l->fill[i].levels;
    }
    basin_status status = BASIN_OK;
    for (l->number = levels - 1; l->number >= 0 && !status; l->number--)
        status = run_level(l, error);
    return status;
}

basin_status basin_filling_run(basin_filling *fill, int64_t count, basin_image_model *model,
                               const basin_image_completing *how, basin_error *error) {
    const basin_image_settings *s = &model->settings;
    level l = {.fill = fill, .count = count, .model = model, .how = how};
    l.guessing = (basin_guessing){.fill = fill, .model = model};
    l.plain = how->plain || basin_hole_is_drawn(how);
    l.across = s->size / s->patch;
    l.tokens = basin_image_tokens(s);
    l.values = basin_image_patch_values(s);
    basin_status status = run_levels(&l, error);
    basin_windows_free(&l.windows);
    basin_guessing_free(&l.guessing);
    free(l.patches);
    free(l.output);
    free(l.hidden);
    return status;
}

void basin_filling_free(basin_filling *fill) {
    basin_picture_free(&fill->now);
    basin_hole_free(&fill->hole);
    free(fill->sum);
    free(fill->weight);
    free(fill->span);
    *fill = (basin_filling){0};
}
