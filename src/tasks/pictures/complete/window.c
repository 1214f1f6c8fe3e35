/* Laying windows over a hole; see complete.h. The hole is cut into blocks of half a window; each
 * has a window around it, so that every missing pixel is seen with a quarter of a window of
 * surroundings, and most by several windows. */
#include "base/sort.h"
#include "tasks/pictures/complete/complete.h"

void basin_windows_free(basin_windows *windows) {
    free(windows->window);
    *windows = (basin_windows){0};
}

/* The box around what is missing in a block of the map, in the picture; height 0: none. */
static basin_area tighten(const basin_hole *h, basin_area block) {
    int64_t top = block.top + block.height, left = block.left + block.width, bottom = 0, right = 0;
    for (int64_t y = block.top; y < block.top + block.height; y++)
        for (int64_t x = block.left; x < block.left + block.width; x++) {
            if (!h->depth[y * h->box.width + x]) continue;
            top = basin_int_min(top, y), left = basin_int_min(left, x);
            bottom = basin_int_max(bottom, y + 1), right = basin_int_max(right, x + 1);
        }
    return (basin_area){h->box.top + top, h->box.left + left, basin_int_max(bottom - top, 0),
                        right - left};
}

/* Where a window begins that is centred on what is missing and holds all of it: with the border of
 * a patch at its beginning wherever the picture has room for that, so that few patches hide known
 * pixels. */
static int64_t place(const basin_guessing *g, int64_t from, int64_t length, int64_t end) {
    int64_t patch = basin_int_max(g->side / g->across, 1), last = end - g->side;
    int64_t at = from - (g->side - length) / 2 / patch * patch;
    int64_t within = basin_int_max(basin_int_min(at, last), 0);
    int64_t aligned = within + (from - within) % patch;
    if (aligned > last) aligned -= patch;
    return aligned >= 0 && from + length <= aligned + g->side ? aligned : within;
}

basin_status basin_windows_cover(basin_windows *windows, const basin_guessing *g,
                                 basin_error *error) {
    const basin_area *box = &g->hole->box;
    int64_t block = basin_int_max(g->side / 2, 1);
    int lanes = g->model->settings.channels == 1 ? g->picture->channels : 1;
    basin_area all = tighten(g->hole, (basin_area){0, 0, box->height, box->width});
    all.top -= box->top, all.left -= box->left;
    for (int64_t y = all.top; y < all.top + all.height; y += block)
        for (int64_t x = all.left; x < all.left + all.width; x += block) {
            basin_area at = {y, x, basin_int_min(block, all.top + all.height - y),
                             basin_int_min(block, all.left + all.width - x)};
            at = tighten(g->hole, at);
            for (int lane = 0; lane < lanes && at.height; lane++) {
                BASIN_TRY(BASIN_GROW(&windows->window, &windows->capacity, windows->count + 1,
                                     "windows", error));
                windows->window[windows->count++] =
                    (basin_window){place(g, at.top, at.height, g->picture->height),
                                   place(g, at.left, at.width, g->picture->width), g->side, lane};
            }
        }
    return BASIN_OK;
}

/* ---- the model's input ---- */

static bool is_hidden(const basin_guessing *g, const basin_window *w, int64_t row, int64_t column) {
    int64_t bottom = (row + 1) * w->side / g->across, right = (column + 1) * w->side / g->across;
    for (int64_t y = row * w->side / g->across; y < bottom; y++)
        for (int64_t x = column * w->side / g->across; x < right; x++)
            if (basin_hole_depth(g->hole, w->top + y, w->left + x) > 0) return true;
    return false;
}

/* The channel of `part` that channel c of `seen` shows. */
static int channel_of(const basin_guessing *g, const basin_window *w, int c) {
    return g->part.channels == g->seen.channels ? c : g->seen.channels == 1 ? w->lane : 0;
}

basin_status basin_window_to_patches(float *patches, uint8_t *hidden, basin_guessing *g,
                                     const basin_window *w, basin_error *error) {
    const basin_image_settings *s = &g->model->settings;
    basin_patching patching = basin_image_patching(s);
    basin_box box = {(double)w->top, (double)w->left, (double)w->side, (double)w->side};
    int64_t size = s->size;
    for (int64_t n = 0; n < g->across * g->across; n++)
        hidden[n] = is_hidden(g, w, n / g->across, n % g->across) ? g->missing : BASIN_PATCH_SHOWN;
    BASIN_TRY(basin_picture_scale_box(&g->part, g->picture, &box, size, size, error));
    BASIN_TRY(basin_picture_resize_memory(&g->seen, size, size, (int)s->channels, error));
    for (int64_t i = 0; i < size * size; i++)
        for (int c = 0; c < g->seen.channels; c++)
            g->seen.pixel[i * g->seen.channels + c] =
                g->part.pixel[i * g->part.channels + channel_of(g, w, c)];
    basin_patches_from_pixels(patches, g->seen.pixel, &patching);
    return BASIN_OK;
}

/* ---- its output ---- */

/* Along one axis: a hill over the window by hills over its patches. What only borders see still
 * counts a little. */
basin_status basin_guess_begin(basin_guessing *g, basin_error *error) {
    const double pi = 3.14159265358979323846, floor = 0.02;
    int64_t area = g->hole->box.height * g->hole->box.width;
    BASIN_TRY(BASIN_NEW(&g->sum, area * g->picture->channels, "guesses", error));
    BASIN_TRY(BASIN_NEW(&g->weight, area, "guesses", error));
    BASIN_TRY(BASIN_NEW_RAW(&g->hill, g->side, "guesses", error));
    for (int64_t i = 0; i < g->side; i++) {
        double at = ((double)i + 0.5) / (double)g->side, in_patch = at * (double)g->across;
        double hill = sin(pi * at), small = sin(pi * (in_patch - trunc(in_patch)));
        g->hill[i] = (float)((hill * hill + 1e-3) * (small * small + floor));
    }
    return BASIN_OK;
}

void basin_guessing_free(basin_guessing *g) {
    basin_picture_free(&g->part);
    basin_picture_free(&g->seen);
    BASIN_FREE(g->sum, g->weight, g->hill);
}

/* Adds a window's guesses, of the window's size and in as many channels as it speaks for, for what
 * is missing and for what is known but in a hidden patch. */
static void add_guesses(basin_guessing *g, const basin_window *w, const uint8_t *hidden,
                        const basin_picture *guess) {
    const basin_area *box = &g->hole->box;
    int64_t top = box->top - w->top, left = box->left - w->left;
    int64_t bottom = basin_int_min(top + box->height, w->side);
    int64_t right = basin_int_min(left + box->width, w->side);
    for (int64_t y = basin_int_max(top, 0); y < bottom; y++)
        for (int64_t x = basin_int_max(left, 0); x < right; x++) {
            int64_t i = (y - top) * box->width + x - left;
            int64_t patch = y * g->across / w->side * g->across + x * g->across / w->side;
            if (!g->hole->depth[i] && hidden[patch] != BASIN_PATCH_REPLACED) continue;
            float weight = g->hill[y] * g->hill[x];
            float *to = g->sum + i * g->picture->channels + w->lane;
            for (int c = 0; c < guess->channels; c++)
                to[c] += weight * guess->pixel[(y * w->side + x) * guess->channels + c];
            if (w->lane == 0) g->weight[i] += weight;
        }
}

basin_status basin_guess_add(basin_guessing *g, const basin_window *w, const uint8_t *hidden,
                             const float *output, basin_error *error) {
    const basin_image_settings *s = &g->model->settings;
    basin_patching patching = basin_image_patching(s);
    for (int64_t i = 0; i < basin_image_tokens(s) * basin_image_patch_values(s); i++)
        if (!isfinite(output[i]))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "the descent left the numbers: steps or alpha are too large");
    BASIN_TRY(basin_picture_resize_memory(&g->seen, s->size, s->size, (int)s->channels, error));
    basin_patches_to_pixels(g->seen.pixel, output, &patching);
    if (g->picture->channels == 1) BASIN_TRY(basin_picture_set_channels(&g->seen, 1, error));
    BASIN_TRY(basin_picture_scale(&g->part, &g->seen, w->side, w->side, error));
    add_guesses(g, w, hidden, &g->part);
    return BASIN_OK;
}
