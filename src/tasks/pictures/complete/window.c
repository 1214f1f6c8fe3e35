/* Laying windows over a hole; see complete.h. The hole is cut into blocks of half a window, row by
 * row; each block has a window around it, so that every missing pixel is seen with a quarter of a
 * window of surroundings, and most by several windows. */
#include "base/sort.h"
#include "tasks/pictures/complete/complete.h"

/* Where patch i of a row begins, in pixels of the window. */
static int64_t edge_of(int64_t i, int64_t length, int64_t across) { return i * length / across; }

void basin_windows_free(basin_windows *windows) {
    free(windows->window);
    *windows = (basin_windows){0};
}

static int64_t clamp(int64_t value, int64_t min, int64_t max) {
    return basin_int_max(min, basin_int_min(value, max));
}

static basin_status add(basin_windows *w, const basin_cover *c, basin_area area,
                        basin_error *error) {
    for (int lane = 0; lane < c->lanes; lane++) {
        BASIN_TRY(BASIN_GROW(&w->window, &w->capacity, w->count + 1, "windows", error));
        w->window[w->count++] =
            (basin_window){area.top, area.left, area.height, area.width, lane, c->picture};
    }
    return BASIN_OK;
}

/* ---- blocks ---- */

/* What is left to be covered, in the hole's box. */
typedef struct rest {
    uint8_t *left; /* [height, width] */
    int64_t height, width;
} rest;

/* The box around what is left in a block of the rest, which is then taken away. */
static basin_area take_block(rest *r, basin_area block) {
    basin_area box = {block.top + block.height, block.left + block.width, 0, 0};
    int64_t bottom = 0, right = 0;
    for (int64_t y = block.top; y < block.top + block.height; y++)
        for (int64_t x = block.left; x < block.left + block.width; x++) {
            if (!r->left[y * r->width + x]) continue;
            r->left[y * r->width + x] = 0;
            box.top = basin_int_min(box.top, y), box.left = basin_int_min(box.left, x);
            bottom = basin_int_max(bottom, y + 1), right = basin_int_max(right, x + 1);
        }
    box.height = bottom - box.top, box.width = right - box.left;
    return box;
}

/* The first column in which rows from `top` have something left; the width where none has. */
static int64_t first_column(const rest *r, int64_t top, int64_t height) {
    int64_t first = r->width;
    for (int64_t y = top; y < top + height; y++) {
        const uint8_t *found = memchr(r->left + y * r->width, 1, (size_t)first);
        if (found) first = found - (r->left + y * r->width);
    }
    return first;
}

/* Where a window begins that is centred on what is missing, with the border of a patch at its
 * beginning, so that few patches hide known pixels. */
static int64_t place(const basin_cover *c, int64_t from, int64_t length, int64_t end) {
    int64_t patch = basin_int_max(c->side / c->across, 1);
    int64_t before = (c->side - length) / 2 / patch * patch;
    return clamp(from - before, 0, end - c->side);
}

static basin_status cover_block(basin_windows *w, const basin_cover *c, basin_area box,
                                basin_error *error) {
    int64_t top = place(c, c->hole->box.top + box.top, box.height, c->height);
    int64_t left = place(c, c->hole->box.left + box.left, box.width, c->width);
    return add(w, c, (basin_area){top, left, c->side, c->side}, error);
}

static basin_status cover_rest(basin_windows *w, const basin_cover *c, rest *r,
                               basin_error *error) {
    int64_t block = c->side > 1 ? c->side / 2 : 1;
    for (int64_t y = 0; y < r->height;) {
        if (!memchr(r->left + y * r->width, 1, (size_t)r->width)) {
            y++;
            continue;
        }
        int64_t height = block < r->height - y ? block : r->height - y;
        int64_t x = first_column(r, y, height);
        basin_area area = {y, x, height, block < r->width - x ? block : r->width - x};
        BASIN_TRY(cover_block(w, c, take_block(r, area), error));
    }
    return BASIN_OK;
}

basin_status basin_windows_cover(basin_windows *windows, const basin_cover *cover,
                                 basin_error *error) {
    const basin_area *box = &cover->hole->box;
    basin_area all = {0, 0, cover->height, cover->width};
    if (cover->whole) return add(windows, cover, all, error);
    rest r = {.height = box->height, .width = box->width};
    BASIN_TRY(BASIN_NEW_RAW(&r.left, r.height * r.width, "placing windows", error));
    for (int64_t i = 0; i < r.height * r.width; i++) r.left[i] = cover->hole->depth[i] > 0;
    basin_status status = cover_rest(windows, cover, &r, error);
    free(r.left);
    return status;
}

/* ---- The model's input for windows and its output; see complete.h ---- */

static bool is_hidden(const basin_guessing *l, const basin_window *w, int64_t row, int64_t column) {
    const basin_filling *f = &l->fill[w->picture];
    int64_t across = l->model->settings.size / l->model->settings.patch;
    int64_t bottom = w->top + edge_of(row + 1, w->height, across);
    int64_t right = w->left + edge_of(column + 1, w->width, across);
    for (int64_t y = w->top + edge_of(row, w->height, across); y < bottom; y++)
        for (int64_t x = w->left + edge_of(column, w->width, across); x < right; x++) {
            if (basin_hole_depth(&f->hole, y, x) > 0) return true;
        }
    return false;
}

void basin_guess_hide(uint8_t *hidden, const basin_guessing *l, const basin_window *w) {
    int64_t across = l->model->settings.size / l->model->settings.patch;
    for (int64_t row = 0; row < across; row++)
        for (int64_t column = 0; column < across; column++)
            hidden[row * across + column] =
                is_hidden(l, w, row, column) ? BASIN_PATCH_REPLACED : BASIN_PATCH_SHOWN;
}

/* The channel of `part` that channel c of `seen` shows. */
static int channel_of(const basin_guessing *l, const basin_window *w, int c) {
    return l->part.channels == l->seen.channels ? c : l->seen.channels == 1 ? w->lane : 0;
}

basin_status basin_window_to_patches(float *patches, basin_guessing *l, const basin_window *w,
                                     basin_error *error) {
    const basin_image_settings *s = &l->model->settings;
    basin_patching patching = basin_image_patching(s);
    basin_box box = {(double)w->top, (double)w->left, (double)w->height, (double)w->width};
    int64_t size = s->size;
    BASIN_TRY(basin_picture_scale_box(&l->part, &l->fill[w->picture].now, &box, size, size, error));
    BASIN_TRY(basin_picture_resize_memory(&l->seen, size, size, (int)s->channels, error));
    for (int64_t i = 0; i < size * size; i++)
        for (int c = 0; c < l->seen.channels; c++)
            l->seen.pixel[i * l->seen.channels + c] =
                l->part.pixel[i * l->part.channels + channel_of(l, w, c)];
    basin_patches_from_pixels(patches, l->seen.pixel, &patching);
    return BASIN_OK;
}

/* ---- the output ---- */

/* Along one axis: a hill over the window by hills over its patches. What only borders see still
 * counts a little. */
static bool weigh(float **axis, size_t *capacity, int64_t length, int64_t across) {
    const double pi = 3.14159265358979323846, floor = 0.02;
    if (!BASIN_RESERVE(axis, capacity, length)) return false;
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
    return basin_fail_memory(error, "the weights of a window");
}

void basin_guessing_free(basin_guessing *l) {
    basin_picture_free(&l->part);
    basin_picture_free(&l->seen);
    BASIN_FREE(l->down, l->right);
    *l = (basin_guessing){0};
}

/* Whether the window has a guess for the pixel (y, x) of it: it is missing, or known but in a
 * hidden patch. */
static bool has_guess(const basin_guessing *l, const basin_window *w, const uint8_t *hidden,
                      int64_t y, int64_t x) {
    int64_t across = l->model->settings.size / l->model->settings.patch;
    int64_t row = y * across / w->height, column = x * across / w->width;
    return basin_hole_depth(&l->fill[w->picture].hole, w->top + y, w->left + x) > 0 ||
           hidden[row * across + column] != BASIN_PATCH_SHOWN;
}

/* Adds a window's guesses, of the window's size and in as many channels as it speaks for, to copy
 * number `copy`. */
static void add_guesses(basin_guessing *l, const basin_window *w, const uint8_t *hidden,
                        const basin_picture *guess, int copy) {
    basin_filling *f = &l->fill[w->picture];
    const basin_area *box = &f->hole.box;
    int64_t top = box->top - w->top, left = box->left - w->left;
    int64_t bottom = basin_int_min(top + box->height, w->height);
    int64_t right = basin_int_min(left + box->width, w->width);
    for (int64_t y = basin_int_max(top, 0); y < bottom; y++)
        for (int64_t x = basin_int_max(left, 0); x < right; x++) {
            if (!has_guess(l, w, hidden, y, x)) continue;
            int64_t i = (y - top) * box->width + x - left;
            float weight = l->down[y] * l->right[x];
            float *to = f->sum + (copy * box->height * box->width + i) * f->now.channels + w->lane;
            for (int c = 0; c < guess->channels; c++)
                to[c] += weight * guess->pixel[(y * w->width + x) * guess->channels + c];
            if (w->lane == 0 && copy == 0) f->weight[i] += weight;
        }
}

basin_status basin_guess_add(basin_guessing *l, const basin_window *w, const uint8_t *hidden,
                             const float *output, int copy, basin_error *error) {
    const basin_image_settings *s = &l->model->settings;
    basin_patching patching = basin_image_patching(s);
    int grey = l->fill[w->picture].now.channels == 1;
    for (int64_t i = 0; i < basin_image_tokens(s) * basin_image_patch_values(s); i++)
        if (!isfinite(output[i]))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "the descent left the numbers: steps or alpha are too large");
    BASIN_TRY(basin_picture_resize_memory(&l->seen, s->size, s->size, (int)s->channels, error));
    basin_patches_to_pixels(l->seen.pixel, output, &patching);
    if (grey) BASIN_TRY(basin_picture_set_channels(&l->seen, 1, error));
    BASIN_TRY(basin_picture_scale(&l->part, &l->seen, w->height, w->width, error));
    add_guesses(l, w, hidden, &l->part, copy);
    return BASIN_OK;
}
