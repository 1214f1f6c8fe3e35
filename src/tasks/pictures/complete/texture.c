/* Texture by association; see complete.h. The picture is a memory of itself: each pixel of the hole
 * attends over labels, which are shifts of the picture, and energy attention over the windows
 * around it says how well a shifted picture fits what is there: E = sum over pixels and labels a
 * (|x - v|^2 over the window + data) - lambda / 2 a (B a) with v what the label copies, B the mean
 * over a window (neighbours should copy from neighbouring places) and data the distance of colours
 * and of the amount of detail to what the rim and the model's completion say. Attention a and
 * filling x descend in turns, coarse grids first, while the inverse temperature grows until one
 * label is left. The copies are joined by their gradients. */
#include "tasks/pictures/complete/texture.h"
#include "base/info.h"
#include "base/sort.h"
#include "base/states.h"

enum {
    MARGIN = 128,  /* sources lie so far around a hole, at most */
    PAD = 8,       /* known pixels around it that take part in the descent */
    MAX_SIDE = 96, /* larger holes are filled on a coarser grid */
    WINDOW = 5,
    CHANNELS = 3,
    FEATURES = CHANNELS + 2,
};
static const double data_weight = 0.3, detail_weight = 2, coherence = 0.15;

void basin_scene_free(basin_scene *s) {
    BASIN_FREE(s->pixel, s->half, s->feature, s->known);
    *s = (basin_scene){0};
}

static bool inside(const basin_scene *s, int64_t y, int64_t x) {
    return y >= 0 && x >= 0 && y < s->height && x < s->width;
}

/* ---- smoothing ---- */

/* One axis of a smoothing: `step` from number to number of a line, `lines` that are `apart`. */
static void smooth_axis(float *z, float *line, const float *kernel, int64_t radius, int64_t count,
                        int64_t step, int64_t lines, int64_t apart) {
    for (int64_t l = 0; l < lines; l++) {
        float *from = z + l * apart;
        for (int64_t i = 0; i < count; i++) {
            float sum = 0;
            int64_t low = basin_int_max(-radius, -i), high = basin_int_min(radius, count - 1 - i);
            for (int64_t k = low; k <= high; k++)
                sum += kernel[k < 0 ? -k : k] * from[(i + k) * step];
            line[i] = sum;
        }
        for (int64_t i = 0; i < count; i++) from[i * step] = line[i];
    }
}

basin_status basin_blur(float *z, const uint8_t *weight, int64_t height, int64_t width,
                        int64_t depth, double sigma, basin_error *error) {
    int64_t radius = (int64_t)(5 * sigma), area = height * width;
    BASIN_SCRATCH_RAW(float, kernel, radius + 1, "smoothing", error);
    BASIN_SCRATCH_RAW(float, line, basin_int_max(height, width), "smoothing", error);
    BASIN_SCRATCH_RAW(float, sums, area, "smoothing", error);
    BASIN_SCRATCH_RAW(float, planes, area, "smoothing", error);
    for (int64_t k = 0; k <= radius; k++)
        kernel[k] = (float)exp(-0.5 * (double)(k * k) / (sigma * sigma));
    for (int64_t i = 0; i < area; i++) sums[i] = weight ? weight[i] != 0 : 1;
    smooth_axis(sums, line, kernel, radius, width, 1, height, width);
    smooth_axis(sums, line, kernel, radius, height, width, width, 1);
    for (int64_t c = 0; c < depth; c++) {
        for (int64_t i = 0; i < area; i++) planes[i] = weight && !weight[i] ? 0 : z[i * depth + c];
        smooth_axis(planes, line, kernel, radius, width, 1, height, width);
        smooth_axis(planes, line, kernel, radius, height, width, width, 1);
        for (int64_t i = 0; i < area; i++) z[i * depth + c] = planes[i] / fmaxf(sums[i], 1e-20F);
    }
    return BASIN_OK;
}

/* ---- the scene ---- */

static int64_t reduced(int64_t length, int64_t by) { return (length + by - 1) / by; }

static basin_status scene_cut(basin_scene *s, const basin_picture *p, const basin_hole *hole,
                              basin_area box, basin_error *error) {
    int64_t side = basin_int_max(box.height, box.width);
    *s = (basin_scene){.by = 1, .channels = p->channels};
    while (side / s->by > MAX_SIDE) s->by *= 2;
    int64_t top = basin_int_max(box.top - MARGIN * s->by, 0) / s->by * s->by;
    int64_t left = basin_int_max(box.left - MARGIN * s->by, 0) / s->by * s->by;
    int64_t bottom = basin_int_min(box.top + box.height + MARGIN * s->by, p->height);
    int64_t right = basin_int_min(box.left + box.width + MARGIN * s->by, p->width);
    s->area = (basin_area){top, left, bottom - top, right - left};
    s->height = reduced(bottom - top, s->by), s->width = reduced(right - left, s->by);
    s->box = (basin_area){(box.top - top) / s->by, (box.left - left) / s->by, 0, 0};
    s->box.height = reduced(box.top - top + box.height, s->by) - s->box.top;
    s->box.width = reduced(box.left - left + box.width, s->by) - s->box.left;
    int64_t area = s->height * s->width, channels = s->channels;
    BASIN_TRY(BASIN_NEW(&s->pixel, area * channels, "texture", error));
    BASIN_TRY(BASIN_NEW_RAW(&s->half, area * channels, "texture", error));
    BASIN_TRY(BASIN_NEW(&s->feature, area * FEATURES, "texture", error));
    BASIN_TRY(BASIN_NEW_RAW(&s->known, area, "texture", error));
    memset(s->known, 1, (size_t)area);
    for (int64_t i = 0; i < area; i++) {
        int64_t count = 0, y0 = top + i / s->width * s->by, x0 = left + i % s->width * s->by;
        for (int64_t y = y0; y < basin_int_min(y0 + s->by, bottom); y++)
            for (int64_t x = x0; x < basin_int_min(x0 + s->by, right); x++, count++) {
                if (basin_hole_depth(hole, y, x) > 0) s->known[i] = 0;
                for (int64_t c = 0; c < channels; c++)
                    s->pixel[i * channels + c] += p->pixel[(y * p->width + x) * channels + c];
            }
        for (int64_t c = 0; c < channels; c++) s->pixel[i * channels + c] /= 255 * (float)count;
    }
    return BASIN_OK;
}

/* Colours, smoothed, and the mean size of steps across and down; in the hole, as around it. */
static basin_status find_features(basin_scene *s, basin_error *error) {
    int64_t area = s->height * s->width, channels = s->channels;
    BASIN_SCRATCH_RAW(float, low, (area * channels), "texture", error);
    BASIN_SCRATCH(float, detail, area * 2, "texture", error);
    BASIN_SCRATCH_RAW(float, far, area * 2, "texture", error);
    memcpy(low, s->pixel, (size_t)(area * channels) * sizeof *low);
    BASIN_TRY(basin_blur(low, NULL, s->height, s->width, channels, 3, error));
    for (int64_t i = 0; i < area; i++)
        for (int way = 0; way < 2; way++) {
            int64_t y = i / s->width + !way, x = i % s->width + way, to = i + (way ? 1 : s->width);
            float step = 0;
            if (!inside(s, y, x) || !s->known[i] || !s->known[to]) continue;
            for (int64_t c = 0; c < channels; c++)
                step += s->pixel[to * channels + c] - s->pixel[i * channels + c];
            detail[i * 2 + way] = fabsf(step) / (float)channels;
        }
    BASIN_TRY(basin_blur(detail, s->known, s->height, s->width, 2, 2, error));
    memcpy(far, detail, (size_t)(area * 2) * sizeof *far);
    BASIN_TRY(basin_blur(far, s->known, s->height, s->width, 2, 8, error));
    for (int64_t i = 0; i < area; i++) {
        for (int64_t c = 0; c < CHANNELS; c++)
            s->feature[i * FEATURES + c] =
                (float)sqrt(data_weight) * low[i * channels + c % channels];
        for (int64_t c = 0; c < 2; c++)
            s->feature[i * FEATURES + CHANNELS + c] =
                (float)sqrt(detail_weight) * (s->known[i] ? detail : far)[i * 2 + c];
    }
    return BASIN_OK;
}

/* ---- labels: shifts by which the picture fits itself around the hole ---- */

enum { QUERY = 26, STEP = 18, EACH = 3, APART = 6, COARSE = 2 };

/* The distance of a query at (y, x) from the picture at a shift; pixels of the hole, which are
 * guesses, count less. Infinite where the source is not known. */
static double distance(const basin_scene *s, int64_t y, int64_t x, basin_shift by, int64_t step,
                       double max) {
    double sum = 0;
    int64_t channels = s->channels;
    const float *pixel = step == 1 ? s->pixel : s->half;
    if (!inside(s, y + by.down, x + by.right) ||
        !inside(s, y + by.down + QUERY - 1, x + by.right + QUERY - 1))
        return INFINITY;
    for (int64_t i = 0; i < QUERY && sum < max; i += step)
        for (int64_t k = 0; k < QUERY; k += step) {
            int64_t at = (y + i) * s->width + x + k, from = at + by.down * s->width + by.right;
            double part = 0;
            if (!s->known[from]) return INFINITY;
            for (int64_t c = 0; c < channels; c++) {
                double d = (double)pixel[at * channels + c] - pixel[from * channels + c];
                part += d * d;
            }
            sum += s->known[at] ? part : 0.4 * part;
        }
    return sum;
}

/* The best shifts of a query that are not near one another. */
static void find_some(basin_scene *s, int64_t y, int64_t x) {
    basin_shift found[EACH];
    for (int n = 0; n < EACH && s->labels < BASIN_LABELS; n++) {
        double min = INFINITY;
        for (int64_t ty = 0; ty + QUERY <= s->height; ty += COARSE)
            for (int64_t tx = 0; tx + QUERY <= s->width; tx += COARSE) {
                basin_shift by = {ty - y, tx - x};
                bool near = false;
                for (int k = 0; k < n; k++)
                    near |= llabs(by.down - found[k].down) < APART &&
                            llabs(by.right - found[k].right) < APART;
                double d = near ? INFINITY : distance(s, y, x, by, 2, min);
                if (d < min) min = d, found[n] = by;
            }
        if (isinf(min)) return;
        basin_shift best = found[n];
        min = INFINITY;
        for (int64_t k = 0; k < 9; k++) {
            basin_shift by = {found[n].down + k / 3 - 1, found[n].right + k % 3 - 1};
            double d = distance(s, y, x, by, 1, min);
            if (d < min) min = d, best = by;
        }
        bool new = true;
        for (int64_t k = 0; k < s->labels; k++)
            new &= s->label[k].down != best.down || s->label[k].right != best.right;
        if (new) s->label[s->labels++] = best;
    }
}

static void find_labels(basin_scene *s) {
    for (int64_t dy = -4; dy <= s->box.height + 4; dy += STEP)
        for (int64_t dx = -4; dx <= s->box.width + 4; dx += STEP) {
            int64_t y = basin_int_min(s->box.top + dy - QUERY / 2, s->height - QUERY);
            int64_t x = basin_int_min(s->box.left + dx - QUERY / 2, s->width - QUERY);
            if (s->height >= QUERY && s->width >= QUERY)
                find_some(s, basin_int_max(y, 0), basin_int_max(x, 0));
        }
}

basin_status basin_scene_new(basin_scene *s, const basin_picture *p, const basin_hole *hole,
                             basin_area box, basin_error *error) {
    BASIN_TRY(scene_cut(s, p, hole, box, error));
    BASIN_TRY(find_features(s, error));
    memcpy(s->half, s->pixel, (size_t)(s->height * s->width * s->channels) * sizeof *s->half);
    BASIN_TRY(basin_blur(s->half, NULL, s->height, s->width, s->channels, 0.8, error));
    find_labels(s);
    return BASIN_OK;
}

/* ---- the descent on one grid ---- */

enum { VALUE, FITS, DATA, HOLE, X, A, BETA, PART, GUESSES, INPUTS };

typedef struct grid {
    int64_t height, width, labels, channels;
    float *value, *fits, *data, *hole, *x, *a; /* as the plan's first six inputs */
    basin_graph *graph;
    basin_store *store;
    basin_plan *plan;
    basin_expr in[INPUTS];
    basin_expr new_x, new_a, energy, min;
} grid;

static void grid_free(grid *g) {
    basin_plan_free(g->plan);
    basin_store_free(g->store);
    basin_graph_free(g->graph);
    BASIN_FREE(g->value, g->fits, g->data, g->hole, g->x, g->a);
    *g = (grid){0};
}

/* The mean over windows: [count, count], rows that sum to 1. */
static basin_expr window_mean(basin_graph *graph, int64_t count) {
    basin_expr place = basin_arange(graph, count);
    basin_expr far = basin_abs(basin_sub(basin_reshape(place, BASIN_SHAPE(count, 1)),
                                         basin_reshape(place, BASIN_SHAPE(1, count))));
    basin_expr near = basin_greater(basin_scalar(graph, WINDOW / 2 + 0.5), far);
    return basin_div(near, basin_reshape(basin_sum(near, 1, 1), BASIN_SHAPE(count, 1)));
}

static basin_expr average(const grid *g, basin_expr z) {
    z = basin_einsum("uk,jkl->jul", window_mean(g->graph, g->width), z);
    return basin_einsum("ij,jul->iul", window_mean(g->graph, g->height), z);
}

static void write_energy(grid *g) {
    basin_shape map = BASIN_SHAPE(g->height, g->width, g->labels);
    basin_graph *graph = g->graph;
    basin_shape state = BASIN_SHAPE(g->height, g->width, g->channels);
    basin_shape values = BASIN_SHAPE(g->height, g->width, g->channels, g->labels);
    const basin_shape shape[INPUTS] = {values, map, map, BASIN_SHAPE(g->height, g->width, 1),
                                       state,  map};
    for (int i = 0; i < INPUTS; i++) {
        char name[] = {(char)('a' + i), 0};
        g->in[i] = basin_input(graph, name, shape[i]);
    }
    basin_expr x = basin_reshape(g->in[X], BASIN_SHAPE(g->height, g->width, g->channels, 1));
    basin_expr apart = basin_sum(basin_square(basin_sub(g->in[VALUE], x)), 2, 1);
    /* Windows count pixels that a label can copy; at first only known ones. */
    basin_expr guess = basin_mul(g->in[HOLE], basin_offset(basin_neg(g->in[GUESSES]), 1));
    basin_expr counts = basin_mul(g->in[FITS], basin_offset(basin_neg(guess), 1));
    basin_expr share = average(g, counts);
    basin_expr weight = basin_div(basin_minimum(basin_scale(share, 3), basin_scalar(graph, 1)),
                                  basin_maximum(share, basin_scalar(graph, 0.02)));
    basin_expr fit =
        basin_add(basin_mul(average(g, basin_mul(apart, counts)), weight), g->in[DATA]);
    basin_expr near = basin_scale(average(g, g->in[A]), coherence);
    basin_expr cost = basin_sub(fit, near);
    basin_expr best = basin_softmax(basin_neg(basin_mul(g->in[BETA], cost)), 2);
    basin_expr whole = basin_sub(fit, basin_scale(near, 0.5));
    g->energy = basin_sum_all(basin_mul(basin_mul(g->in[A], whole), g->in[HOLE]));
    basin_expr min = basin_neg(basin_max(basin_neg(fit), 2, 1));
    g->min =
        basin_sum_all(basin_mul(min, basin_reshape(g->in[HOLE], BASIN_SHAPE(g->height, g->width))));
    g->new_a = basin_add(g->in[A], basin_mul(g->in[PART], basin_sub(best, g->in[A])));
    basin_expr read = basin_sum(
        basin_mul(g->in[VALUE],
                  basin_reshape(g->new_a, BASIN_SHAPE(g->height, g->width, 1, g->labels))),
        3, 1);
    g->new_x = basin_add(g->in[X], basin_mul(g->in[HOLE], basin_sub(read, g->in[X])));
}

static basin_status grid_plan(grid *g, basin_backend *backend, basin_error *error) {
    g->graph = basin_graph_new();
    if (!g->graph) return basin_fail_memory(error, "texture");
    write_energy(g);
    BASIN_TRY(basin_graph_check(g->graph, error));
    BASIN_TRY(basin_store_new(&g->store, backend, error));
    basin_expr output[] = {g->new_a, g->new_x, g->energy, g->min};
    basin_plan_spec spec = {.output = output, .outputs = 4};
    return basin_plan_new(&g->plan, g->store, &spec, error);
}

/* Arrays of the finest grid: the hole with PAD pixels around it, in multiples of 4. */
static basin_status grid_new(grid *g, int64_t height, int64_t width, const basin_scene *s,
                             basin_error *error) {
    *g = (grid){.height = height, .width = width, .labels = s->labels, .channels = s->channels};
    int64_t L = s->labels, C = s->channels, size[] = {C * L, L, L, 1, C, L};
    float **array[] = {&g->value, &g->fits, &g->data, &g->hole, &g->x, &g->a};
    for (int i = 0; i < BETA; i++)
        BASIN_TRY(BASIN_NEW(array[i], height * width * size[i], "texture", error));
    return BASIN_OK;
}

static void fill_finest(grid *g, const basin_scene *s) {
    for (int64_t i = 0; i < g->height * g->width; i++) {
        int64_t y = s->box.top - PAD + i / g->width, x = s->box.left - PAD + i % g->width;
        bool in = inside(s, y, x);
        int64_t at = in ? y * s->width + x : 0, C = s->channels, L = s->labels;
        g->hole[i] = in && !s->known[at];
        for (int64_t c = 0; c < C && in; c++) g->x[i * C + c] = s->pixel[at * C + c];
        for (int64_t l = 0; l < L && in; l++) {
            int64_t v = y + s->label[l].down, u = x + s->label[l].right, from = v * s->width + u;
            if (!inside(s, v, u) || !s->known[from]) continue;
            g->fits[i * L + l] = 1;
            for (int64_t c = 0; c < C; c++) g->value[(i * C + c) * L + l] = s->pixel[from * C + c];
            for (int64_t f = 0; f < FEATURES; f++) {
                float d = s->feature[at * FEATURES + f] - s->feature[from * FEATURES + f];
                g->data[i * L + l] += d * d;
            }
        }
    }
}

/* Means over blocks of `by` x `by`. */
static void reduce(float *to, const float *from, int64_t height, int64_t width, int64_t depth,
                   int64_t by) {
    for (int64_t i = 0; i < height * width; i++)
        for (int64_t k = 0; k < by * by * depth; k++) {
            int64_t y = i / width * by + k / depth / by, x = i % width * by + k / depth % by;
            to[i * depth + k % depth] +=
                from[(y * width * by + x) * depth + k % depth] / (float)(by * by);
        }
}

/* Coarse labels fit where all that they stand for do; a coarse pixel is missing where any is. */
static basin_status grid_reduce(grid *g, const grid *fine, const basin_scene *s, int64_t by,
                                basin_error *error) {
    BASIN_TRY(grid_new(g, fine->height / by, fine->width / by, s, error));
    reduce(g->value, fine->value, g->height, g->width, g->channels * g->labels, by);
    reduce(g->fits, fine->fits, g->height, g->width, g->labels, by);
    reduce(g->data, fine->data, g->height, g->width, g->labels, by);
    reduce(g->hole, fine->hole, g->height, g->width, 1, by);
    reduce(g->x, fine->x, g->height, g->width, g->channels, by);
    for (int64_t i = 0; i < g->height * g->width; i++) g->hole[i] = g->hole[i] > 0;
    for (int64_t i = 0; i < g->height * g->width * g->labels; i++) g->fits[i] = g->fits[i] > 0.99F;
    return BASIN_OK;
}

static basin_status run_step(grid *g, double beta, double part, bool guesses, double *energy,
                             basin_error *error) {
    float value[3] = {(float)beta, (float)part, guesses};
    const float *given[] = {g->x, g->a, &value[0], &value[1], &value[2]};
    for (int i = X; i < INPUTS; i++)
        BASIN_TRY(basin_values_write(g->plan, g->in[i], given[i - X], BASIN_F32, error));
    BASIN_TRY(basin_plan_run(g->plan, error));
    *energy = basin_plan_scalar(g->plan, g->energy);
    BASIN_TRY(basin_values_read(g->plan, g->new_x, g->x, BASIN_F32, error));
    return basin_values_read(g->plan, g->new_a, g->a, BASIN_F32, error);
}

/* Descends on one grid. On the first (scale 0) the temperature falls from step to step; energies
 * per pixel of the hole are added to the course. */
static basin_status descend(grid *g, basin_backend *backend, int steps, double *scale,
                            basin_course *course, basin_error *error) {
    const double hot = 0.5, cold = 40;
    double energy, pixels = 0;
    bool first = *scale == 0;
    for (int64_t i = 0; i < g->height * g->width; i++) pixels += (double)g->hole[i];
    /* A label that cannot be copied from costs more than any other. */
    for (int64_t i = 0; i < g->height * g->width * g->labels; i++)
        if (g->fits[i] == 0) g->data[i] += 9;
    BASIN_TRY(grid_plan(g, backend, error));
    const float *given[] = {g->value, g->fits, g->data, g->hole};
    for (int i = 0; i < X; i++)
        BASIN_TRY(basin_values_write(g->plan, g->in[i], given[i], BASIN_F32, error));
    BASIN_TRY(run_step(g, 1, 0, !first, &energy, error)); /* reads x, changes nothing else */
    if (first) *scale = 0.7 * basin_plan_scalar(g->plan, g->min) / pixels + 1e-4;
    for (int i = 0; i < steps; i++) {
        double beta = first ? hot * pow(cold / hot, (double)i / (steps - 1)) : cold;
        double part = (first && i == 0) || i >= steps - 2 ? 1 : 0.6;
        BASIN_TRY(run_step(g, beta / *scale, part, !first || i > 0, &energy, error));
        if (course->steps < BASIN_COURSE && (!first || i > 0))
            course->energy[course->steps++] = energy / pixels;
    }
    return BASIN_OK;
}

/* Attention of a coarser grid. */
static void begin_with(grid *g, const grid *coarse) {
    int64_t by = g->height / coarse->height, L = g->labels;
    for (int64_t i = 0; i < g->height * g->width; i++) {
        int64_t from = i / g->width / by * coarse->width + i % g->width / by;
        memcpy(g->a + i * L, coarse->a + from * L, (size_t)L * sizeof(float));
    }
}

basin_status basin_associate(int32_t *label, const basin_scene *s, basin_backend *backend,
                             basin_course *course, basin_error *error) {
    static const struct {
        int64_t by;
        int steps;
    } level[] = {{4, 12}, {2, 6}, {1, 4}};
    BASIN_AT_EXIT(grid_free) grid fine = {0};
    BASIN_AT_EXIT(grid_free) grid now = {0};
    BASIN_AT_EXIT(grid_free) grid before = {0};
    int64_t height = (s->box.height + 2 * PAD + 3) / 4 * 4;
    int64_t width = (s->box.width + 2 * PAD + 3) / 4 * 4;
    double scale = 0;
    BASIN_TRY(grid_new(&fine, height, width, s, error));
    fill_finest(&fine, s);
    for (size_t k = 0; k < sizeof level / sizeof *level; k++) {
        BASIN_TRY(grid_reduce(&now, &fine, s, level[k].by, error));
        if (k > 0) begin_with(&now, &before);
        BASIN_TRY(descend(&now, backend, level[k].steps, &scale, course, error));
        grid_free(&before);
        before = now;
        now = (grid){0};
    }
    for (int64_t i = 0; i < s->box.height * s->box.width; i++) {
        int64_t y = i / s->box.width + PAD, x = i % s->box.width + PAD, best = -1;
        const float *a = before.a + (y * width + x) * s->labels;
        for (int64_t l = 0; l < s->labels && before.hole[y * width + x] > 0; l++)
            if (before.fits[(y * width + x) * s->labels + l] > 0 && (best < 0 || a[l] > a[best]))
                best = l;
        label[i] = (int32_t)best;
    }
    return BASIN_OK;
}
