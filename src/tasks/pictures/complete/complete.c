/* Completing pictures of any size: what is missing is filled by a model and by the picture's own
 * patches (complete.h), everything else stays as it is. */
#include "tasks/pictures/complete/complete.h"
#include "base/sized.h"
#include "base/sort.h"

/* A picture on its way. */
typedef struct filling {
    basin_image_model *model;
    const basin_image_complete_options *how;
    basin_image_complete_result *result; /* `completed`: what is known, and the best guess */
    basin_hole hole;
    float *value; /* [box.height, box.width, channels] the same in the hole's box */
} filling;

static void filling_free(filling *f) {
    basin_hole_free(&f->hole);
    free(f->value);
}

/* ---- pixels of the box ---- */

static int64_t place_of(const filling *f, int64_t i) {
    const basin_area *box = &f->hole.box;
    return (box->top + i / box->width) * f->result->completed.width + box->left + i % box->width;
}

/* Gives missing pixels one value. */
static void paint(basin_picture *picture, const filling *f, uint8_t value) {
    for (int64_t i = 0; i < f->hole.box.height * f->hole.box.width; i++)
        if (f->hole.depth[i] > 0)
            memset(picture->pixel + place_of(f, i) * picture->channels, value,
                   (size_t)picture->channels);
}

/* Puts values, rounded, where the picture lacks something. */
static void write_values(filling *f) {
    basin_picture *to = &f->result->completed;
    for (int64_t i = 0; i < f->hole.box.height * f->hole.box.width; i++)
        for (int c = 0; c < to->channels && f->hole.depth[i] > 0; c++)
            to->pixel[place_of(f, i) * to->channels + c] =
                (uint8_t)lrintf(fminf(fmaxf(f->value[i * to->channels + c], 0), 255));
}

/* Adds the membrane through what is known, or through the errors of a guess. */
static basin_status add_membrane(float *to, const filling *f, basin_ties ties, basin_error *error) {
    int64_t area = f->hole.box.height * f->hole.box.width;
    BASIN_SCRATCH_RAW(uint8_t, missing, area, "a completion", error);
    for (int64_t i = 0; i < area; i++) missing[i] = f->hole.depth[i] > 0;
    ties.height = f->hole.box.height, ties.width = f->hole.box.width;
    ties.missing = missing, ties.known = f->value, ties.stride = f->result->completed.channels;
    return basin_membrane_add(to, &ties, f->result->completed.channels, error);
}

/* ---- the model ---- */

/* All windows go through the model in batches. */
static basin_status run_windows(basin_guessing *g, filling *f, const basin_windows *windows,
                                basin_error *error) {
    enum { BATCH = 8 };
    const basin_image_settings *s = &f->model->settings;
    int64_t count = (int64_t)windows->count, batch = basin_int_min(count, BATCH);
    int64_t N = basin_image_tokens(s), size = N * basin_image_patch_values(s);
    basin_image_runner *runner;
    BASIN_SCRATCH_RAW(float, patches, batch *size, "windows", error);
    BASIN_SCRATCH_RAW(float, output, batch *size, "windows", error);
    BASIN_SCRATCH_RAW(uint8_t, hidden, batch * N, "windows", error);
    BASIN_TRY(basin_image_runner_borrow(&runner, f->model, batch, error));
    for (int64_t first = 0, n; first < count; first += n) {
        const basin_window *w = windows->window + first;
        n = basin_int_min(batch, count - first);
        if (basin_watch_stopped(f->how->watch))
            return basin_fail(error, BASIN_BAD_VALUE, "interrupted");
        for (int64_t i = 0; i < n; i++)
            BASIN_TRY(basin_window_to_patches(patches + i * size, hidden + i * N, g, &w[i], error));
        BASIN_TRY(basin_image_runner_run(runner, output, patches, hidden, n, error));
        for (int64_t k = 0; k < n * size; k++) /* what is shown is known */
            if (hidden[k * N / size] == BASIN_PATCH_SHOWN) output[k] = patches[k];
        for (int64_t i = 0; i < n; i++)
            BASIN_TRY(basin_guess_add(g, &w[i], hidden + i * N, output + i * size, error));
        basin_watch_progress(f->how->watch, "completing", 500 * (first + n) / count, 1000, NAN,
                             "parts");
    }
    f->result->windows = count;
    return BASIN_OK;
}

/* Guesses of a part stay within the range of what is known around it, as a membrane does: what is
 * missing in pure white is white. */
static basin_status keep_range(filling *f, basin_error *error) {
    const basin_area *all = &f->hole.box;
    int64_t area = all->height * all->width, margin = f->model->settings.patch, deepest;
    int channels = f->result->completed.channels;
    BASIN_SCRATCH(uint8_t, mark, area, "a completion", error);
    BASIN_SCRATCH_RAW(int64_t, stack, area, "a completion", error);
    for (int64_t first = 0; first < area; first++) {
        if (mark[first] || !f->hole.depth[first]) continue;
        basin_area part = basin_hole_part(mark, stack, &f->hole, first, &deepest);
        int64_t top = basin_int_max(part.top - all->top - margin, 0);
        int64_t left = basin_int_max(part.left - all->left - margin, 0);
        int64_t bottom = basin_int_min(part.top - all->top + part.height + margin, all->height);
        int64_t right = basin_int_min(part.left - all->left + part.width + margin, all->width);
        for (int c = 0; c < channels; c++) {
            float low = INFINITY, high = -INFINITY;
            for (int pass = 0; pass < 2; pass++)
                for (int64_t k = 0; k < (bottom - top) * (right - left); k++) {
                    int64_t i = (top + k / (right - left)) * all->width + left + k % (right - left);
                    float *v = f->value + i * channels + c;
                    if (!f->hole.depth[i])
                        low = fminf(low, *v), high = fmaxf(high, *v);
                    else if (pass)
                        *v = fminf(fmaxf(*v, low), high);
                }
        }
    }
    return BASIN_OK;
}

/* The model's guesses take the place of the membrane; unless `plain`, corrected at the rim within
 * two patches, and averaged with the membrane, unless the model was shown the membrane. */
static basin_status ask_model(filling *f, basin_error *error) {
    const basin_picture *p = &f->result->completed;
    const basin_image_settings *s = &f->model->settings;
    int64_t cells = f->hole.box.height * f->hole.box.width * p->channels, side = s->size;
    BASIN_AT_EXIT(basin_windows_free) basin_windows windows = {0};
    BASIN_AT_EXIT(basin_guessing_free)
    basin_guessing g = {
        .model = f->model, .picture = p, .hole = &f->hole, .across = s->size / s->patch};
    g.missing = s->holes_apart ? BASIN_PATCH_GUESSED : BASIN_PATCH_REPLACED;
    if (!f->how->plain) side = basin_int_max(side, 4 * f->hole.deepest);
    g.side = basin_int_min(side, basin_int_min(p->height, p->width));
    BASIN_TRY(basin_guess_begin(&g, error));
    BASIN_TRY(basin_windows_cover(&windows, &g, error));
    BASIN_TRY(run_windows(&g, f, &windows, error));
    for (int64_t k = 0; k < cells; k++)
        g.sum[k] =
            g.weight[k / p->channels] > 0 ? g.sum[k] / g.weight[k / p->channels] : f->value[k];
    double fade = 2 * (double)g.side / (double)g.across;
    double share = f->how->plain || s->holes_apart ? 1 : 0.5;
    basin_ties ties = {.guess = g.sum, .weight = g.weight, .spring = 1 / (fade * fade)};
    if (!f->how->plain) BASIN_TRY(add_membrane(g.sum, f, ties, error));
    for (int64_t k = 0; k < cells; k++)
        if (f->hole.depth[k / p->channels]) f->value[k] += (float)share * (g.sum[k] - f->value[k]);
    if (!f->how->plain) BASIN_TRY(keep_range(f, error));
    write_values(f);
    return BASIN_OK;
}

/* ---- the whole ---- */

/* What is missing, and the smoothest surface over it. */
static basin_status begin(filling *f, const basin_picture *picture, int64_t number,
                          basin_error *error) {
    basin_image_complete_result *r = f->result;
    int channels = picture->channels;
    BASIN_TRY(basin_picture_copy(&r->completed, picture, error));
    BASIN_TRY(basin_hole_make(&f->hole, picture, f->model->settings.patch, f->how, number, error));
    r->missing = f->hole.missing;
    BASIN_TRY(basin_picture_copy(&r->masked, picture, error));
    BASIN_TRY(basin_picture_resize_memory(&r->hole, picture->height, picture->width, 1, error));
    memset(r->hole.pixel, 0, (size_t)(picture->height * picture->width));
    paint(&r->masked, f, 128);
    paint(&r->hole, f, 255);
    int64_t area = f->hole.box.height * f->hole.box.width;
    BASIN_TRY(BASIN_NEW(&f->value, area * channels, "a completion", error));
    for (int64_t k = 0; k < area * channels; k++)
        if (!f->hole.depth[k / channels])
            f->value[k] = picture->pixel[place_of(f, k / channels) * channels + k % channels];
    BASIN_TRY(add_membrane(f->value, f, (basin_ties){0}, error));
    write_values(f);
    return BASIN_OK;
}

static basin_status keep_energies(basin_image_complete_result *r, const basin_course *course,
                                  basin_error *error) {
    size_t bytes = (size_t)course->steps * sizeof *r->energy;
    if (!course->steps) return BASIN_OK;
    BASIN_TRY(BASIN_NEW_RAW(&r->energy, course->steps, "a completion", error));
    BASIN_TRY(BASIN_NEW_RAW(&r->model_energy, course->steps, "a completion", error));
    memcpy(r->energy, course->memory, bytes);
    memcpy(r->model_energy, course->model, bytes);
    r->energies = course->steps;
    return BASIN_OK;
}

static basin_status complete(basin_image_complete_result *result, basin_image_model *model,
                             const basin_picture *picture, int64_t number,
                             const basin_image_complete_options *how, basin_error *error) {
    enum { THIN = 8 }; /* a window as wide as that shows a model nothing */
    basin_course course = {.steps = 0};
    BASIN_AT_EXIT(filling_free) filling f = {.model = model, .how = how, .result = result};
    BASIN_TRY(begin(&f, picture, number, error));
    if (!how->plain) BASIN_TRY(basin_hole_keep_wide(&f.hole, model->settings.patch, error));
    bool thin = basin_int_min(picture->height, picture->width) < THIN;
    if (how->plain || (f.hole.deepest && !thin)) BASIN_TRY(ask_model(&f, error));
    if (!how->plain && !how->smooth)
        BASIN_TRY(
            basin_memory_fill(&result->completed, &f.hole, how->seed, how->watch, &course, error));
    return keep_energies(result, &course, error);
}

basin_status basin_image_complete(basin_image_complete_result *result, basin_image_model *model,
                                  const basin_picture *picture, int64_t count,
                                  const basin_image_complete_options *options, basin_error *error) {
    const basin_image_complete_options how = *options;
    basin_status status = BASIN_OK;
    BASIN_TRY(BASIN_SIZE_CHECK(options, "basin_image_complete_options", error));
    for (int64_t i = 0; i < count; i++) {
        BASIN_TRY(BASIN_SIZE_CHECK(&result[i], "basin_image_complete_result", error));
        result[i] = (basin_image_complete_result){.size = result[i].size};
    }
    if (how.rectangles > 0 && !how.more_rectangles)
        return basin_fail(error, BASIN_BAD_VALUE, "%lld rectangles, but no list of them",
                          (long long)how.rectangles);
    for (int64_t i = 0; i < count && !status; i++)
        status = complete(&result[i], model, &picture[i], i, &how, error);
    if (!status) basin_convergence_note(how.watch, "completing", model->store);
    for (int64_t i = 0; i < count && status; i++) basin_image_complete_result_free(&result[i]);
    return status;
}

void basin_image_complete_result_free(basin_image_complete_result *result) {
    basin_picture_free(&result->masked);
    basin_picture_free(&result->completed);
    basin_picture_free(&result->hole);
    BASIN_FREE(result->energy, result->model_energy);
    *result = (basin_image_complete_result){.size = result->size};
}
