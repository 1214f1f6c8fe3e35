/* Laying windows over a hole; see window.h. The hole is cut into blocks of half a window, row by
 * row; each block has a window around it, so that every missing pixel is seen with a quarter of a
 * window of surroundings, and most by several windows. */
#include "task/image/complete/window.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

int64_t basin_window_edge(int64_t i, int64_t length, int64_t across) { return i * length / across; }

void basin_windows_free(basin_windows *windows) {
    free(windows->window);
    *windows = (basin_windows){0};
}

static bool is_wanted(const basin_cover *c, int64_t y, int64_t x) {
    int32_t depth = basin_hole_depth(c->hole, y, x);
    return depth > 0 && depth <= c->reach;
}

static int64_t clamp(int64_t value, int64_t least, int64_t most) {
    return value > most ? most : value < least ? least : value;
}

/* ---- alignment ---- */

/* Sums of wanted pixels over the part of the picture in which a window may come to lie. */
typedef struct sums {
    int64_t top, left, height, width;
    int32_t *sum; /* [height + 1, width + 1] */
} sums;

static basin_status sums_make(sums *s, const basin_cover *c, basin_error *error) {
    int64_t row = s->width + 1;
    s->sum = basin_array_new((size_t)((s->height + 1) * row), sizeof *s->sum);
    if (!s->sum) return basin_fail(error, BASIN_NO_MEMORY, "out of memory to place a window");
    memset(s->sum, 0, (size_t)row * sizeof *s->sum);
    for (int64_t y = 0; y < s->height; y++) {
        int32_t line = 0, *to = s->sum + (y + 1) * row;
        to[0] = 0;
        for (int64_t x = 0; x < s->width; x++) {
            line += is_wanted(c, s->top + y, s->left + x);
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
        int64_t y = top + basin_window_edge(row, c->side, c->across);
        int64_t bottom = top + basin_window_edge(row + 1, c->side, c->across);
        int64_t x = left + basin_window_edge(column, c->side, c->across);
        int64_t right = left + basin_window_edge(column + 1, c->side, c->across);
        int64_t missing = sums_of(s, y, x, bottom, right);
        if (missing > 0) known += (bottom - y) * (right - x) - missing;
    }
    return known;
}

/* Moves a window by less than a patch to where it hides the fewest known pixels; of equal places,
 * to the nearest. Coarse windows move in steps of a pixel of theirs. */
static basin_status align(int64_t *top, int64_t *left, const basin_cover *c, basin_error *error) {
    int64_t patch = (c->side + c->across - 1) / c->across, step = patch > 32 ? patch / 32 : 1;
    int64_t low_y = clamp(*top - patch / 2, 0, c->height - c->side);
    int64_t low_x = clamp(*left - patch / 2, 0, c->width - c->side);
    int64_t high_y = clamp(*top + patch / 2, 0, c->height - c->side);
    int64_t high_x = clamp(*left + patch / 2, 0, c->width - c->side);
    sums s = {low_y, low_x, high_y - low_y + c->side, high_x - low_x + c->side, NULL};
    basin_status status = sums_make(&s, c, error);
    int64_t best = INT64_MAX, best_y = *top, best_x = *left;
    for (int64_t y = low_y; y <= high_y && !status; y += step)
        for (int64_t x = low_x; x <= high_x; x += step) {
            int64_t way = llabs(y - *top) + llabs(x - *left);
            int64_t cost = hidden_known(&s, c, y, x) * (2 * patch + 1) + way;
            if (cost < best) best = cost, best_y = y, best_x = x;
        }
    *top = best_y, *left = best_x;
    free(s.sum);
    return status;
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
    if (!basin_array_reserve((void **)&w->window, &w->capacity, w->count + 1, sizeof *w->window))
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for windows");
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
    basin_status status = BASIN_OK;
    for (int i = 0; i < c->looks && !status; i++)
        for (int lane = 0; lane < c->lanes && !status; lane++) {
            basin_window one = {
                .top = move_on(top, look[i].down * patch / 4, patch, c->height - c->side),
                .left = move_on(left, look[i].right * patch / 4, patch, c->width - c->side),
                .height = c->side,
                .width = c->side,
                .flip = c->flips && look[i].flip,
                .first = i == 0,
                .lane = lane,
                .picture = c->picture};
            status = add(w, &one, first, error);
        }
    return status;
}

static basin_status add_whole(basin_windows *w, const basin_cover *c, basin_error *error) {
    size_t first = w->count;
    basin_status status = BASIN_OK;
    for (int i = 0; i < (c->flips && c->looks > 1 ? 2 : 1) * c->lanes && !status; i++) {
        basin_window one = {.height = c->height,
                            .width = c->width,
                            .flip = i >= c->lanes,
                            .first = i < c->lanes,
                            .lane = i % c->lanes,
                            .picture = c->picture};
        status = add(w, &one, first, error);
    }
    return status;
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
            if (box.top > y) box.top = y;
            if (box.left > x) box.left = x;
            if (bottom < y + 1) bottom = y + 1;
            if (right < x + 1) right = x + 1;
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
    basin_status status = align(&top, &left, c, error);
    return status ? status : add_looks(w, c, top, left, error);
}

static basin_status cover_rest(basin_windows *w, const basin_cover *c, rest *r,
                               basin_error *error) {
    basin_status status = BASIN_OK;
    int64_t block = c->side > 1 ? c->side / 2 : 1;
    for (int64_t y = 0; y < r->height && !status;) {
        if (!memchr(r->left + y * r->width, 1, (size_t)r->width)) {
            y++;
            continue;
        }
        int64_t height = block < r->height - y ? block : r->height - y;
        int64_t x = first_column(r, y, height);
        basin_area area = {y, x, height, block < r->width - x ? block : r->width - x};
        status = cover_block(w, c, take_block(r, area), error);
    }
    return status;
}

basin_status basin_windows_cover(basin_windows *windows, const basin_cover *cover,
                                 basin_error *error) {
    const basin_area *box = &cover->hole->box;
    if (cover->whole) return add_whole(windows, cover, error);
    rest r = {.height = box->height, .width = box->width};
    r.left = basin_array_new((size_t)(r.height * r.width), 1);
    if (!r.left) return basin_fail(error, BASIN_NO_MEMORY, "out of memory to place windows");
    for (int64_t i = 0; i < r.height * r.width; i++)
        r.left[i] = cover->hole->depth[i] > 0 && cover->hole->depth[i] <= cover->reach;
    basin_status status = cover_rest(windows, cover, &r, error);
    free(r.left);
    return status;
}
