/* What windows show to a model and what it says about them; see guess.h. */
#include "task/image/complete/guess.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory.h"
#include "picture/resize.h"

/* ---- what a window shows ---- */

static bool is_hidden(const basin_guessing *l, const basin_window *w, int64_t row, int64_t column) {
    const basin_filling *f = &l->fill[w->picture];
    int64_t across = l->model->settings.size / l->model->settings.patch;
    int64_t reach = basin_filling_reach(f, l->model->settings.size, l->level);
    int64_t bottom = w->top + basin_window_edge(row + 1, w->height, across);
    int64_t right = w->left + basin_window_edge(column + 1, w->width, across);
    for (int64_t y = w->top + basin_window_edge(row, w->height, across); y < bottom; y++)
        for (int64_t x = w->left + basin_window_edge(column, w->width, across); x < right; x++) {
            int32_t depth = basin_hole_depth(&f->hole, y, x);
            if (depth > 0 && depth <= reach) return true;
        }
    return false;
}

void basin_guess_hide(uint8_t *hidden, const basin_guessing *l, const basin_window *w) {
    int64_t across = l->model->settings.size / l->model->settings.patch;
    for (int64_t row = 0; row < across; row++)
        for (int64_t column = 0; column < across; column++) {
            int64_t place = w->flip ? across - 1 - column : column;
            hidden[row * across + place] =
                is_hidden(l, w, row, column) ? BASIN_PATCH_REPLACED : BASIN_PATCH_SHOWN;
        }
}

/* The channel of `part` that channel c of `seen` shows. */
static int channel_of(const basin_guessing *l, const basin_window *w, int c) {
    return l->part.channels == l->seen.channels ? c : l->seen.channels == 1 ? w->lane : 0;
}

basin_status basin_guess_show(float *patches, basin_guessing *l, const basin_window *w,
                              basin_error *error) {
    const basin_image_settings *s = &l->model->settings;
    basin_patching patching = basin_image_patching(s);
    basin_box box = {(double)w->top, (double)w->left, (double)w->height, (double)w->width};
    int64_t size = s->size;
    basin_status status =
        basin_picture_scale_box(&l->part, &l->fill[w->picture].now, &box, size, size, error);
    if (!status)
        status = basin_picture_resize_memory(&l->seen, size, size, (int)s->channels, error);
    if (status) return status;
    for (int64_t i = 0; i < size * size; i++)
        for (int c = 0; c < l->seen.channels; c++) {
            int64_t from = w->flip ? i / size * size + size - 1 - i % size : i;
            l->seen.pixel[i * l->seen.channels + c] =
                l->part.pixel[from * l->part.channels + channel_of(l, w, c)];
        }
    basin_patches_from_pixels(patches, l->seen.pixel, &patching);
    return BASIN_OK;
}

/* ---- what it says ---- */

static void mirror(basin_picture *p) {
    for (int64_t y = 0; y < p->height; y++)
        for (int64_t x = 0; x < p->width / 2; x++)
            for (int c = 0; c < p->channels; c++) {
                uint8_t *a = p->pixel + (y * p->width + x) * p->channels + c;
                uint8_t *b = p->pixel + (y * p->width + p->width - 1 - x) * p->channels + c;
                uint8_t kept = *a;
                *a = *b;
                *b = kept;
            }
}

/* Along one axis: a hill over the window by hills over its patches. What only borders see still
 * counts a little. */
static bool weigh(float **axis, size_t *capacity, int64_t length, int64_t across) {
    const double pi = 3.14159265358979323846, floor = 0.02;
    if (!basin_array_reserve((void **)axis, capacity, (size_t)length, sizeof **axis)) return false;
    for (int64_t i = 0; i < length; i++) {
        double at = ((double)i + 0.5) / (double)length, in_patch = at * (double)across;
        double hill = sin(pi * at), small = sin(pi * (in_patch - trunc(in_patch)));
        (*axis)[i] = (float)((hill * hill + 1e-3) * (small * small + floor));
    }
    return true;
}

basin_status basin_guess_weigh(basin_guessing *l, const basin_window *w, basin_error *error) {
    int64_t across = l->model->settings.size / l->model->settings.patch;
    if (weigh(&l->down, &l->downs, w->height, across) &&
        weigh(&l->right, &l->rights, w->width, across))
        return BASIN_OK;
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the weights of a window");
}

void basin_guessing_free(basin_guessing *l) {
    basin_picture_free(&l->part);
    basin_picture_free(&l->seen);
    free(l->down);
    free(l->right);
    *l = (basin_guessing){0};
}

/* Whether the window has a guess for the pixel (y, x) of it: it is missing and within reach, or
 * known but in a hidden patch. */
static bool has_guess(const basin_guessing *l, const basin_window *w, const uint8_t *hidden,
                      int64_t y, int64_t x) {
    const basin_filling *f = &l->fill[w->picture];
    int64_t across = l->model->settings.size / l->model->settings.patch;
    int32_t depth = basin_hole_depth(&f->hole, w->top + y, w->left + x);
    if (depth > 0) return depth <= basin_filling_reach(f, l->model->settings.size, l->level);
    int64_t row = y * across / w->height, column = x * across / w->width;
    if (w->flip) column = across - 1 - column;
    return hidden[row * across + column] != BASIN_PATCH_SHOWN;
}

/* Adds a window's guesses, of the window's size and in as many channels as it speaks for, to copy
 * number `copy`. */
static void add_guesses(basin_guessing *l, const basin_window *w, const uint8_t *hidden,
                        const basin_picture *guess, int copy) {
    basin_filling *f = &l->fill[w->picture];
    const basin_area *box = &f->hole.box;
    int64_t top = box->top - w->top, left = box->left - w->left;
    int64_t bottom = top + box->height, right = left + box->width;
    if (bottom > w->height) bottom = w->height;
    if (right > w->width) right = w->width;
    for (int64_t y = top > 0 ? top : 0; y < bottom; y++)
        for (int64_t x = left > 0 ? left : 0; x < right; x++) {
            if (!has_guess(l, w, hidden, y, x)) continue;
            int64_t i = (y - top) * box->width + x - left;
            float weight = l->down[y] * l->right[x];
            float *to = f->sum + (copy * box->height * box->width + i) * f->now.channels + w->lane;
            for (int c = 0; c < guess->channels; c++)
                to[c] += weight * guess->pixel[(y * w->width + x) * guess->channels + c];
            if (w->lane == 0 && copy == 0) f->weight[i] += weight;
        }
}

basin_status basin_guess_hear(basin_guessing *l, const basin_window *w, const uint8_t *hidden,
                              const float *output, int copy, basin_error *error) {
    const basin_image_settings *s = &l->model->settings;
    basin_patching patching = basin_image_patching(s);
    int grey = l->fill[w->picture].now.channels == 1;
    for (int64_t i = 0; i < basin_image_tokens(s) * basin_image_patch_values(s); i++)
        if (!isfinite(output[i]))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "the descent left the numbers: steps or alpha are too large");
    basin_status status =
        basin_picture_resize_memory(&l->seen, s->size, s->size, (int)s->channels, error);
    if (status) return status;
    basin_patches_to_pixels(l->seen.pixel, output, &patching);
    if (w->flip) mirror(&l->seen);
    if (grey) status = basin_picture_set_channels(&l->seen, 1, error);
    if (!status) status = basin_picture_scale(&l->part, &l->seen, w->height, w->width, error);
    if (!status) add_guesses(l, w, hidden, &l->part, copy);
    return status;
}
