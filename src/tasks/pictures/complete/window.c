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

/* ---- alignment ---- */

/* Sums of pixels to fill over the part of the picture in which a window may lie. */
typedef struct sums {
    int64_t top, left, height, width;
    int32_t *sum; /* [height + 1, width + 1] */
} sums;

static basin_status sums_make(sums *s, const basin_cover *c, basin_error *error) {
    int64_t row = s->width + 1;
    BASIN_TRY(BASIN_NEW_RAW(&s->sum, ((s->height + 1) * row), "placing a window", error));
    memset(s->sum, 0, (size_t)row * sizeof *s->sum);
    for (int64_t y = 0; y < s->height; y++) {
        int32_t line = 0, *to = s->sum + (y + 1) * row;
        to[0] = 0;
        for (int64_t x = 0; x < s->width; x++) {
            int32_t depth = basin_hole_depth(c->hole, s->top + y, s->left + x);
            line += depth > 0 && depth <= c->reach; /* to be filled */
            to[x + 1] = to[x + 1 - row] + line;
        }
    }
    return BASIN_OK;
}

static int64_t sums_of(const sums *s, int64_t top, int64_t left, int64_t bottom, int64_t right) {
    int64_t row = s->width + 1;
    top -= s->top, bottom -= s->top, left -= s->left, right -= s->left;
    return s->sum[bottom * row + right] - s->sum[top * row + right] - s->sum[bottom * row + left] +
           s->sum[top * row + left];
}

/* How many known pixels a window there would hide, because they share a patch with missing ones. */
static int64_t hidden_known(const sums *s, const basin_cover *c, int64_t top, int64_t left) {
    int64_t known = 0;
    for (int64_t i = 0; i < c->across * c->across; i++) {
        int64_t row = i / c->across, column = i % c->across;
        int64_t y = top + edge_of(row, c->side, c->across);
        int64_t bottom = top + edge_of(row + 1, c->side, c->across);
        int64_t x = left + edge_of(column, c->side, c->across);
        int64_t right = left + edge_of(column + 1, c->side, c->across);
        int64_t missing = sums_of(s, y, x, bottom, right);
        if (missing > 0) known += (bottom - y) * (right - x) - missing;
    }
    return known;
}

/* Moves a window by less than a patch to where it hides the fewest known pixels; ties go to the
 * nearest place. Coarse windows move in steps of one of their pixels. */
static basin_status align(int64_t *top, int64_t *left, const basin_cover *c, basin_error *error) {
    int64_t patch = (c->side + c->across - 1) / c->across, step = patch > 32 ? patch / 32 : 1;
    int64_t low_y = clamp(*top - patch / 2, 0, c->height - c->side);
    int64_t low_x = clamp(*left - patch / 2, 0, c->width - c->side);
    int64_t high_y = clamp(*top + patch / 2, 0, c->height - c->side);
    int64_t high_x = clamp(*left + patch / 2, 0, c->width - c->side);
    sums s = {low_y, low_x, high_y - low_y + c->side, high_x - low_x + c->side, NULL};
    BASIN_TRY(sums_make(&s, c, error));
    int64_t best = INT64_MAX, best_y = *top, best_x = *left;
    for (int64_t y = low_y; y <= high_y; y += step)
        for (int64_t x = low_x; x <= high_x; x += step) {
            int64_t way = llabs(y - *top) + llabs(x - *left);
            int64_t cost = hidden_known(&s, c, y, x) * (2 * patch + 1) + way;
            if (cost < best) best = cost, best_y = y, best_x = x;
        }
    *top = best_y, *left = best_x;
    free(s.sum);
    return BASIN_OK;
}

/* ---- looks ---- */

static basin_status add(basin_windows *w, const basin_window *window, size_t first,
                        basin_error *error) {
    for (size_t i = first; i < w->count; i++) {
        const basin_window *o = &w->window[i];
        if (o->top == window->top && o->left == window->left && o->flip == window->flip &&
            o->lane == window->lane)
            return BASIN_OK;
    }
    BASIN_TRY(BASIN_GROW(&w->window, &w->capacity, w->count + 1, "windows", error));
    w->window[w->count++] = *window;
    return BASIN_OK;
}

/* Moved on by a part of a patch; at the end of the picture back, so that patches lie the same. */
static int64_t move_on(int64_t from, int64_t by, int64_t patch, int64_t last) {
    int64_t to = from + by;
    return clamp(to > last ? to - patch : to, 0, last);
}

/* A window in several looks: patches aligned with the hole first, then moved by quarters of a patch
 * so that their borders lie in ever new places. */
static basin_status add_looks(basin_windows *w, const basin_cover *c, int64_t top, int64_t left,
                              basin_error *error) {
    static const struct {
        int down, right; /* in quarters */
        bool flip;
    } look[BASIN_LOOKS] = {{0, 0, false}, {2, 2, true},  {1, 3, false}, {3, 1, true},
                           {0, 2, true},  {2, 0, false}, {1, 1, true},  {3, 3, false}};
    int64_t patch = c->side / c->across;
    size_t first = w->count;
    for (int i = 0; i < c->looks; i++)
        for (int lane = 0; lane < c->lanes; lane++) {
            basin_window one = {
                .top = move_on(top, look[i].down * patch / 4, patch, c->height - c->side),
                .left = move_on(left, look[i].right * patch / 4, patch, c->width - c->side),
                .height = c->side,
                .width = c->side,
                .flip = c->flips && look[i].flip,
                .first = i == 0,
                .lane = lane,
                .picture = c->picture};
            BASIN_TRY(add(w, &one, first, error));
        }
    return BASIN_OK;
}

static basin_status add_whole(basin_windows *w, const basin_cover *c, basin_error *error) {
    size_t first = w->count;
    for (int i = 0; i < (c->flips && c->looks > 1 ? 2 : 1) * c->lanes; i++) {
        basin_window one = {.height = c->height,
                            .width = c->width,
                            .flip = i >= c->lanes,
                            .first = i < c->lanes,
                            .lane = i % c->lanes,
                            .picture = c->picture};
        BASIN_TRY(add(w, &one, first, error));
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

static basin_status cover_block(basin_windows *w, const basin_cover *c, basin_area box,
                                basin_error *error) {
    int64_t top = c->hole->box.top + box.top + (box.height - c->side) / 2;
    int64_t left = c->hole->box.left + box.left + (box.width - c->side) / 2;
    top = clamp(top, 0, c->height - c->side);
    left = clamp(left, 0, c->width - c->side);
    BASIN_TRY(align(&top, &left, c, error));
    return add_looks(w, c, top, left, error);
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
    if (cover->whole) return add_whole(windows, cover, error);
    rest r = {.height = box->height, .width = box->width};
    BASIN_TRY(BASIN_NEW_RAW(&r.left, r.height * r.width, "placing windows", error));
    for (int64_t i = 0; i < r.height * r.width; i++)
        r.left[i] = cover->hole->depth[i] > 0 && cover->hole->depth[i] <= cover->reach;
    basin_status status = cover_rest(windows, cover, &r, error);
    free(r.left);
    return status;
}

/* ---- The model's input for windows and its output; see complete.h ---- */

static bool is_hidden(const basin_guessing *l, const basin_window *w, int64_t row, int64_t column) {
    const basin_filling *f = &l->fill[w->picture];
    int64_t across = l->model->settings.size / l->model->settings.patch;
    int64_t reach = basin_filling_reach(f, l->model->settings.size, l->level);
    int64_t bottom = w->top + edge_of(row + 1, w->height, across);
    int64_t right = w->left + edge_of(column + 1, w->width, across);
    for (int64_t y = w->top + edge_of(row, w->height, across); y < bottom; y++)
        for (int64_t x = w->left + edge_of(column, w->width, across); x < right; x++) {
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

basin_status basin_window_to_patches(float *patches, basin_guessing *l, const basin_window *w,
                                     basin_error *error) {
    const basin_image_settings *s = &l->model->settings;
    basin_patching patching = basin_image_patching(s);
    basin_box box = {(double)w->top, (double)w->left, (double)w->height, (double)w->width};
    int64_t size = s->size;
    BASIN_TRY(basin_picture_scale_box(&l->part, &l->fill[w->picture].now, &box, size, size, error));
    BASIN_TRY(basin_picture_resize_memory(&l->seen, size, size, (int)s->channels, error));
    for (int64_t i = 0; i < size * size; i++)
        for (int c = 0; c < l->seen.channels; c++) {
            int64_t from = w->flip ? i / size * size + size - 1 - i % size : i;
            l->seen.pixel[i * l->seen.channels + c] =
                l->part.pixel[from * l->part.channels + channel_of(l, w, c)];
        }
    basin_patches_from_pixels(patches, l->seen.pixel, &patching);
    return BASIN_OK;
}

/* ---- the output ---- */

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
    if (w->flip) mirror(&l->seen);
    if (grey) BASIN_TRY(basin_picture_set_channels(&l->seen, 1, error));
    BASIN_TRY(basin_picture_scale(&l->part, &l->seen, w->height, w->width, error));
    add_guesses(l, w, hidden, &l->part, copy);
    return BASIN_OK;
}
