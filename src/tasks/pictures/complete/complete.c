/* Completing pictures of any size: what is missing is filled by a model (complete.h), everything
 * else stays as it is. */
#include "tasks/pictures/complete/complete.h"
#include "base/sized.h"
#include "base/sort.h"
#include "tasks/pictures/report/report.h"

/* ---- the model: all windows of all pictures go through it in batches ---- */

enum { BATCH = 8 };

/* All pictures on their way through the model. */
typedef struct pass {
    basin_filling *fill; /* [count] */
    int64_t count;
    basin_image_model *model;
    const basin_image_complete_options *how;
    bool plain;
    int64_t across, tokens, values;
    basin_windows windows;
    basin_guessing guessing;
    float *patches, *output; /* [BATCH, N, P] */
    uint8_t *hidden;         /* [BATCH, N] */
} pass;

/* The side of a window, in pixels of the picture: a quarter of it is as deep as the hole. */
static int64_t side_of(const pass *l, const basin_filling *f) {
    int64_t side = l->model->settings.size;
    if (!l->plain) side = basin_int_max(side, 4 * f->hole.deepest);
    return basin_int_min(side, basin_int_min(f->now.height, f->now.width));
}

static basin_status run_batch(pass *l, basin_image_runner *runner, const basin_window *w,
                              int64_t count, basin_error *error) {
    BASIN_TRY(basin_image_runner_run(runner, l->output, l->patches, l->hidden, count, error));
    for (int64_t i = 0; i < count; i++)
        BASIN_TRY(basin_guess_add(&l->guessing, &w[i], l->hidden + i * l->tokens,
                                  l->output + i * l->tokens * l->values, 0, error));
    return BASIN_OK;
}

/* The same with every step of the descent. */
static basin_status trace_batch(pass *l, const basin_window *w, int64_t count, basin_error *error) {
    BASIN_AT_EXIT(basin_image_trace_free) basin_image_trace trace = {0};
    BASIN_TRY(basin_image_trace_new(&trace, l->model, l->patches, l->hidden, count, 0, error));
    for (int64_t i = 0; i < count; i++)
        for (int t = 0; t <= trace.steps; t++)
            BASIN_TRY(basin_guess_add(&l->guessing, &w[i], l->hidden + i * l->tokens,
                                      trace.token + (t * count + i) * l->tokens * l->values, t,
                                      error));
    return BASIN_OK;
}

/* Windows of one size at a time, since they share their weights; at most BATCH. */
static int64_t batch_of(const pass *l, size_t first) {
    const basin_window *w = l->windows.window;
    size_t end = first;
    while (end < l->windows.count && end < first + BATCH && w[end].height == w[first].height &&
           w[end].width == w[first].width)
        end++;
    return (int64_t)(end - first);
}

static basin_status run_windows(pass *l, basin_image_runner *runner, basin_error *error) {
    for (size_t first = 0; first < l->windows.count;) {
        const basin_window *w = l->windows.window + first;
        int64_t count = batch_of(l, first);
        for (int64_t i = 0; i < count; i++) {
            l->fill[w[i].picture].windows++;
            basin_guess_hide(l->hidden + i * l->tokens, &l->guessing, &w[i]);
            BASIN_TRY(basin_window_to_patches(l->patches + i * l->tokens * l->values, &l->guessing,
                                              &w[i], error));
        }
        BASIN_TRY(basin_guess_weigh(&l->guessing, w, error));
        BASIN_TRY(l->how->frames ? trace_batch(l, w, count, error)
                                 : run_batch(l, runner, w, count, error));
        first += (size_t)count;
        basin_watch_progress(l->how->watch, "completing",
                             500 * (int64_t)first / (int64_t)l->windows.count, 1000, NAN, "parts");
    }
    return BASIN_OK;
}

/* ---- before and after ---- */

static basin_status begin(pass *l, int64_t number, basin_error *error) {
    enum { THIN = 8 }; /* a window as wide as that shows a model nothing */
    basin_filling *f = &l->fill[number];
    int64_t area = f->hole.box.height * f->hole.box.width;
    bool thin = basin_int_min(f->now.height, f->now.width) < THIN;
    f->seen = l->plain || l->how->resize || (!thin && f->hole.deepest > 0);
    f->lanes = l->model->settings.channels == 1 ? f->now.channels : 1;
    f->copies = l->how->frames ? (int)basin_image_run_settings(l->model).steps + 1 : 1;
    f->share = !f->seen ? 0 : l->plain ? 1 : 0.5; /* about as good as the membrane */
    BASIN_TRY(BASIN_NEW(&f->sum, f->copies * area * f->now.channels, "guesses", error));
    BASIN_TRY(BASIN_NEW(&f->weight, area, "guesses", error));
    basin_cover cover = {.hole = &f->hole,
                         .height = f->now.height,
                         .width = f->now.width,
                         .side = side_of(l, f),
                         .across = l->across,
                         .whole = l->how->resize,
                         .lanes = f->lanes,
                         .picture = number};
    return f->seen ? basin_windows_cover(&l->windows, &cover, error) : BASIN_OK;
}

/* Sums become guesses. */
static void settle(const basin_filling *f, float *sum) {
    const basin_area *box = &f->hole.box;
    int channels = f->now.channels;
    for (int64_t i = 0; i < box->height * box->width; i++) {
        int64_t at = (box->top + i / box->width) * f->now.width + box->left + i % box->width;
        for (int c = 0; c < channels; c++)
            sum[i * channels + c] = f->weight[i] > 0 ? sum[i * channels + c] / f->weight[i]
                                                     : f->now.pixel[at * channels + c];
    }
}

/* Puts guesses, rounded, where a picture lacks something. */
static void write_guesses(basin_picture *to, const basin_hole *hole, const float *guess) {
    const basin_area *box = &hole->box;
    for (int64_t i = 0; i < box->height * box->width; i++) {
        int64_t at = (box->top + i / box->width) * to->width + box->left + i % box->width;
        for (int c = 0; c < to->channels && hole->depth[i] > 0; c++)
            to->pixel[at * to->channels + c] =
                (uint8_t)lrintf(fminf(fmaxf(guess[i * to->channels + c], 0), 255));
    }
}

/* The model's guesses, corrected at the rim within two patches, and the membrane, by their shares.
 */
static basin_status end(const pass *l, basin_filling *f, basin_error *error) {
    int64_t cells = f->hole.box.height * f->hole.box.width * f->now.channels;
    double fade = 2 * (double)side_of(l, f) / (double)l->across;
    for (int copy = 0; copy < f->copies; copy++) {
        float *sum = f->sum + copy * cells;
        settle(f, sum);
        if (l->plain) continue;
        BASIN_TRY(basin_rim_match(sum, f->weight, &f->now, &f->hole, fade, error));
        for (int64_t i = 0; i < cells; i++)
            sum[i] = f->span[i] + (float)f->share * (sum[i] - f->span[i]);
    }
    write_guesses(&f->now, &f->hole, f->sum + (f->copies - 1) * cells);
    return BASIN_OK;
}

static void pass_free(pass *l) {
    basin_windows_free(&l->windows);
    basin_guessing_free(&l->guessing);
    BASIN_FREE(l->patches, l->output, l->hidden);
}

/* In the end `now` of each holds the result; where frames were asked for, `sum` still holds them,
 * divided by their weights. */
static basin_status fill_all(basin_filling *fill, int64_t count, basin_image_model *model,
                             const basin_image_complete_options *how, basin_error *error) {
    const basin_image_settings *s = &model->settings;
    BASIN_AT_EXIT(pass_free) pass l = {.fill = fill, .count = count, .model = model, .how = how};
    basin_image_runner *runner = NULL;
    l.guessing = (basin_guessing){.fill = fill, .model = model};
    l.plain = how->plain || basin_hole_is_drawn(how);
    l.across = s->size / s->patch;
    l.tokens = basin_image_tokens(s);
    l.values = basin_image_patch_values(s);
    for (int64_t i = 0; i < count; i++) BASIN_TRY(begin(&l, i, error));
    int64_t batch = basin_int_min((int64_t)l.windows.count, BATCH), patches = batch * l.tokens;
    if (batch > 0) {
        BASIN_TRY(BASIN_NEW_RAW(&l.patches, patches * l.values, "windows", error));
        BASIN_TRY(BASIN_NEW_RAW(&l.output, patches * l.values, "windows", error));
        BASIN_TRY(BASIN_NEW_RAW(&l.hidden, patches, "windows", error));
        BASIN_TRY(basin_image_runner_borrow(&runner, l.model, batch, error));
        BASIN_TRY(run_windows(&l, runner, error));
    }
    for (int64_t i = 0; i < count; i++)
        if (fill[i].seen) BASIN_TRY(end(&l, &fill[i], error));
    return BASIN_OK;
}

void basin_filling_free(basin_filling *fill) {
    basin_picture_free(&fill->now);
    basin_hole_free(&fill->hole);
    BASIN_FREE(fill->sum, fill->weight, fill->span);
    *fill = (basin_filling){0};
}

/* ---- completing ---- */

static basin_status check(const basin_image_complete_options *how, basin_error *error) {
    if (how->rectangles > 0 && !how->more_rectangles)
        return basin_fail(error, BASIN_BAD_VALUE, "%lld rectangles, but no list of them",
                          (long long)how->rectangles);
    return BASIN_OK;
}

/* The first guess. */
static basin_status span(basin_filling *fill, basin_error *error) {
    size_t area = (size_t)(fill->hole.box.height * fill->hole.box.width);
    BASIN_TRY(BASIN_NEW_RAW(&fill->span, area * (size_t)fill->now.channels, "a completion", error));
    BASIN_TRY(basin_rim_span(fill->span, &fill->now, &fill->hole, error));
    write_guesses(&fill->now, &fill->hole, fill->span);
    return BASIN_OK;
}

/* Gives missing pixels one value. */
static void paint(basin_picture *picture, const basin_hole *hole, uint8_t value) {
    for (int64_t i = 0; i < hole->box.height * hole->box.width; i++) {
        int64_t y = hole->box.top + i / hole->box.width, x = hole->box.left + i % hole->box.width;
        for (int c = 0; c < picture->channels && hole->depth[i] > 0; c++)
            picture->pixel[(y * picture->width + x) * picture->channels + c] = value;
    }
}

static basin_status make_masks(basin_image_complete_result *r, const basin_hole *hole,
                               basin_error *error) {
    const basin_picture *p = &r->original;
    BASIN_TRY(basin_picture_copy(&r->masked, p, error));
    BASIN_TRY(basin_picture_resize_memory(&r->hole, p->height, p->width, 1, error));
    memset(r->hole.pixel, 0, (size_t)(p->height * p->width));
    paint(&r->masked, hole, 128);
    paint(&r->hole, hole, 255);
    return BASIN_OK;
}

static basin_status begin_picture(basin_filling *fill, basin_image_complete_result *r,
                                  const basin_picture *picture, int64_t patch,
                                  const basin_image_complete_options *how, int64_t number,
                                  basin_error *error) {
    BASIN_TRY(basin_picture_copy(&r->original, picture, error));
    BASIN_TRY(basin_hole_make(&fill->hole, picture, patch, how, number, error));
    BASIN_TRY(make_masks(r, &fill->hole, error));
    BASIN_TRY(basin_picture_copy(&fill->now, picture, error));
    BASIN_TRY(span(fill, error));
    if (how->plain || how->resize || basin_hole_is_drawn(how)) return BASIN_OK;
    return basin_hole_keep_wide(&fill->hole, picture, patch, error);
}

static basin_status make_frames(basin_image_complete_result *r, const basin_filling *fill,
                                basin_error *error) {
    int64_t area = fill->hole.box.height * fill->hole.box.width;
    BASIN_TRY(BASIN_NEW(&r->frame, fill->copies, "frames", error));
    r->frames = fill->copies;
    for (int t = 0; t < r->frames; t++) {
        BASIN_TRY(basin_picture_copy(&r->frame[t], &fill->now, error));
        write_guesses(&r->frame[t], &fill->hole, fill->sum + t * area * r->original.channels);
    }
    return BASIN_OK;
}

/* Where the model has seen nothing every frame is the result. */
static basin_status finish(basin_image_complete_result *r, basin_filling *fill,
                           const basin_image_complete_options *how, basin_error *error) {
    basin_course course = {.steps = 0};
    if (!how->plain && !how->smooth && !basin_hole_is_drawn(how))
        BASIN_TRY(
            basin_memory_fill(&fill->now, &fill->hole, how->seed, how->watch, &course, error));
    if (how->frames) BASIN_TRY(make_frames(r, fill, error));
    for (int t = 0; t < r->frames; t++)
        if (!fill->seen || (course.steps && t == r->frames - 1))
            BASIN_TRY(basin_picture_copy(&r->frame[t], &fill->now, error));
    if (course.steps) {
        size_t bytes = (size_t)course.steps * sizeof *r->energy;
        BASIN_TRY(BASIN_NEW_RAW(&r->energy, course.steps, "a completion", error));
        BASIN_TRY(BASIN_NEW_RAW(&r->model_energy, course.steps, "a completion", error));
        memcpy(r->energy, course.memory, bytes);
        memcpy(r->model_energy, course.model, bytes);
    }
    r->energies = course.steps;
    r->completed = fill->now;
    fill->now = (basin_picture){0};
    r->windows = fill->windows;
    r->missing = fill->hole.missing;
    r->share = fill->share;
    return BASIN_OK;
}

basin_status basin_image_complete(basin_image_complete_result *completion, basin_image_model *model,
                                  const basin_picture *picture, int64_t count,
                                  const basin_image_complete_options *how, basin_error *error) {
    basin_image_complete_options taken = *how;
    BASIN_TRY(BASIN_SIZE_CHECK(how, "basin_image_complete_options", error));
    for (int64_t i = 0; i < count; i++) {
        BASIN_TRY(BASIN_SIZE_CHECK(&completion[i], "basin_image_complete_result", error));
        completion[i] = (basin_image_complete_result){.size = completion[i].size};
    }
    BASIN_TRY(check(&taken, error));
    if (count < 1) return BASIN_OK;
    basin_status status = BASIN_OK;
    BASIN_SCRATCH(basin_filling, fill, count, "completions", error);
    for (int64_t i = 0; i < count && !status; i++)
        status = begin_picture(&fill[i], &completion[i], &picture[i], model->settings.patch, &taken,
                               i, error);
    if (!status) status = fill_all(fill, count, model, &taken, error);
    if (!status) basin_convergence_note(taken.watch, "completing", model->store);
    for (int64_t i = 0; i < count && !status; i++)
        status = finish(&completion[i], &fill[i], &taken, error);
    for (int64_t i = 0; i < count; i++) {
        basin_filling_free(&fill[i]);
        if (status) basin_image_complete_result_free(&completion[i]);
    }
    return status;
}

void basin_image_complete_result_free(basin_image_complete_result *completion) {
    basin_picture_free(&completion->original);
    basin_picture_free(&completion->masked);
    basin_picture_free(&completion->completed);
    basin_picture_free(&completion->hole);
    for (int i = 0; i < completion->frames && completion->frame; i++)
        basin_picture_free(&completion->frame[i]);
    BASIN_FREE(completion->frame, completion->energy, completion->model_energy);
    *completion = (basin_image_complete_result){.size = completion->size};
}
