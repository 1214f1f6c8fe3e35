/* Texture by association; see complete.h. The picture is a memory of itself: each pixel of the hole
 * attends over labels, which are shifts of the picture, and energy attention over the windows
 * around it says how well a shifted picture fits what is there: E = sum over pixels and labels a
 * (|x - v|^2 over the window + data) - lambda / 2 a (B a) with v what the label copies, B the mean
 * over a window (neighbours should copy from neighbouring places) and data the distance of colours
 * and of the amount of detail to what the rim and the model's completion say. Attention a and
 * filling x descend in turns, coarse grids first, while the inverse temperature grows until one
 * label is left. The copies are joined by their gradients. */
#include "base/sort.h"
#include "task/image/complete/complete.h"

enum {
    MARGIN = 128, /* sources lie so far around a hole, at most */
    PAD = 8,      /* known pixels around it that take part in the descent */
    MOST = 96,    /* larger holes are filled on a coarser grid */
    LABELS = 80,
    SHALLOW = 4, /* holes that are nowhere deeper are left as they are */
    WINDOW = 5,
    CHANNELS = 3,
    FEATURES = CHANNELS + 2,
};
static const double data_weight = 0.3, detail_weight = 2, coherence = 0.15;

typedef struct shift {
    int64_t down, right;
} shift;

/* The surroundings of one hole, on a grid of `by` x `by` pixels of the picture each. */
typedef struct scene {
    basin_area area; /* in the picture */
    basin_area box;  /* of the hole, in the grid */
    int64_t by, height, width;
    int channels;
    float *pixel;   /* [height, width, channels] 0 to 1, the completion in the hole */
    float *half;    /* [height, width, channels] the same, smoothed, for searches in steps of 2 */
    float *feature; /* [height, width, FEATURES] what data terms compare */
    uint8_t *known; /* [height, width] */
    shift label[LABELS];
    int64_t labels;
} scene;

static void scene_free(scene *s) {
    BASIN_FREE(s->pixel, s->half, s->feature, s->known);
    *s = (scene){0};
}

static bool inside(const scene *s, int64_t y, int64_t x) {
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

/* A Gaussian over z [height, width, depth] in place, by weights [height, width] (NULL: ones). */
static basin_status smooth(float *z, const uint8_t *weight, int64_t height, int64_t width,
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

static basin_status scene_new(scene *s, const basin_picture *p, const basin_hole *hole,
                              basin_area box, basin_error *error) {
    int64_t side = basin_int_max(box.height, box.width);
    *s = (scene){.by = 1, .channels = p->channels};
    while (side / s->by > MOST) s->by *= 2;
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
static basin_status find_features(scene *s, basin_error *error) {
    int64_t area = s->height * s->width, channels = s->channels;
    BASIN_SCRATCH_RAW(float, low, (area * channels), "texture", error);
    BASIN_SCRATCH(float, detail, area * 2, "texture", error);
    BASIN_SCRATCH_RAW(float, far, area * 2, "texture", error);
    memcpy(low, s->pixel, (size_t)(area * channels) * sizeof *low);
    BASIN_TRY(smooth(low, NULL, s->height, s->width, channels, 3, error));
    for (int64_t i = 0; i < area; i++)
        for (int way = 0; way < 2; way++) {
            int64_t y = i / s->width + !way, x = i % s->width + way, to = i + (way ? 1 : s->width);
            float step = 0;
            if (!inside(s, y, x) || !s->known[i] || !s->known[to]) continue;
            for (int64_t c = 0; c < channels; c++)
                step += s->pixel[to * channels + c] - s->pixel[i * channels + c];
            detail[i * 2 + way] = fabsf(step) / (float)channels;
        }
    BASIN_TRY(smooth(detail, s->known, s->height, s->width, 2, 2, error));
    memcpy(far, detail, (size_t)(area * 2) * sizeof *far);
    BASIN_TRY(smooth(far, s->known, s->height, s->width, 2, 8, error));
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
static double distance(const scene *s, int64_t y, int64_t x, shift by, int64_t step, double most) {
    double sum = 0;
    int64_t channels = s->channels;
    const float *pixel = step == 1 ? s->pixel : s->half;
    if (!inside(s, y + by.down, x + by.right) ||
        !inside(s, y + by.down + QUERY - 1, x + by.right + QUERY - 1))
        return INFINITY;
    for (int64_t i = 0; i < QUERY && sum < most; i += step)
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
static void find_some(scene *s, int64_t y, int64_t x) {
    shift found[EACH];
    for (int n = 0; n < EACH && s->labels < LABELS; n++) {
        double least = INFINITY;
        for (int64_t ty = 0; ty + QUERY <= s->height; ty += COARSE)
            for (int64_t tx = 0; tx + QUERY <= s->width; tx += COARSE) {
                shift by = {ty - y, tx - x};
                bool near = false;
                for (int k = 0; k < n; k++)
                    near |= llabs(by.down - found[k].down) < APART &&
                            llabs(by.right - found[k].right) < APART;
                double d = near ? INFINITY : distance(s, y, x, by, 2, least);
                if (d < least) least = d, found[n] = by;
            }
        if (isinf(least)) return;
        shift best = found[n];
        least = INFINITY;
        for (int64_t k = 0; k < 9; k++) {
            shift by = {found[n].down + k / 3 - 1, found[n].right + k % 3 - 1};
            double d = distance(s, y, x, by, 1, least);
            if (d < least) least = d, best = by;
        }
        bool new = true;
        for (int64_t k = 0; k < s->labels; k++)
            new &= s->label[k].down != best.down || s->label[k].right != best.right;
        if (new) s->label[s->labels++] = best;
    }
}

static void find_labels(scene *s) {
    for (int64_t dy = -4; dy <= s->box.height + 4; dy += STEP)
        for (int64_t dx = -4; dx <= s->box.width + 4; dx += STEP) {
            int64_t y = basin_int_min(s->box.top + dy - QUERY / 2, s->height - QUERY);
            int64_t x = basin_int_min(s->box.left + dx - QUERY / 2, s->width - QUERY);
            if (s->height >= QUERY && s->width >= QUERY)
                find_some(s, basin_int_max(y, 0), basin_int_max(x, 0));
        }
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
    basin_expr new_x, new_a, energy, least;
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
    basin_expr place = basin_iota(graph, count);
    basin_expr far = basin_abs(basin_sub(basin_reshape(place, BASIN_SHAPE(count, 1)),
                                         basin_reshape(place, BASIN_SHAPE(1, count))));
    basin_expr near = basin_greater(basin_const(graph, WINDOW / 2 + 0.5), far);
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
    /* Windows count pixels that a label can copy; at first those that are known alone. */
    basin_expr guess = basin_mul(g->in[HOLE], basin_offset(basin_neg(g->in[GUESSES]), 1));
    basin_expr counts = basin_mul(g->in[FITS], basin_offset(basin_neg(guess), 1));
    basin_expr share = average(g, counts);
    basin_expr weight = basin_div(basin_min(basin_scale(share, 3), basin_const(graph, 1)),
                                  basin_max(share, basin_const(graph, 0.02)));
    basin_expr fit =
        basin_add(basin_mul(average(g, basin_mul(apart, counts)), weight), g->in[DATA]);
    basin_expr near = basin_scale(average(g, g->in[A]), coherence);
    basin_expr cost = basin_sub(fit, near);
    basin_expr best = basin_softmax(basin_neg(basin_mul(g->in[BETA], cost)), 2);
    basin_expr whole = basin_sub(fit, basin_scale(near, 0.5));
    g->energy = basin_sum_all(basin_mul(basin_mul(g->in[A], whole), g->in[HOLE]));
    basin_expr least = basin_neg(basin_maximum(basin_neg(fit), 2, 1));
    g->least = basin_sum_all(
        basin_mul(least, basin_reshape(g->in[HOLE], BASIN_SHAPE(g->height, g->width))));
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
    basin_expr output[] = {g->new_a, g->new_x, g->energy, g->least};
    basin_plan_spec spec = {.output = output, .outputs = 4};
    return basin_plan_new(&g->plan, g->store, &spec, error);
}

/* Arrays of the finest grid: the hole with PAD pixels around it, in multiples of 4. */
static basin_status grid_new(grid *g, int64_t height, int64_t width, const scene *s,
                             basin_error *error) {
    *g = (grid){.height = height, .width = width, .labels = s->labels, .channels = s->channels};
    int64_t L = s->labels, C = s->channels, size[] = {C * L, L, L, 1, C, L};
    float **array[] = {&g->value, &g->fits, &g->data, &g->hole, &g->x, &g->a};
    for (int i = 0; i < BETA; i++)
        BASIN_TRY(BASIN_NEW(array[i], height * width * size[i], "texture", error));
    return BASIN_OK;
}

static void fill_finest(grid *g, const scene *s) {
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
static basin_status grid_reduce(grid *g, const grid *fine, const scene *s, int64_t by,
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
    if (first) *scale = 0.7 * basin_plan_scalar(g->plan, g->least) / pixels + 1e-4;
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

/* The label of each pixel of the hole, [box.height, box.width]; -1 for others. */
static basin_status associate(int32_t *label, const scene *s, basin_backend *backend,
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

/* ---- joining copies: steps between neighbours are those of the sources, at seams the mean of
 * both; the completion holds them by a spring, so that colours over large distances stay its own
 * ---- */

typedef struct joint {
    const scene *scene;
    const basin_picture *picture; /* the completion in the hole */
    const basin_hole *hole;
    const int32_t *label;
    basin_area box; /* of the hole, in the picture */
} joint;

/* The shift, in pixels of the picture, at (y, x); false where there is none. */
static bool shift_at(shift *by, const joint *j, int64_t y, int64_t x) {
    const scene *s = j->scene;
    int64_t v = (y - s->area.top) / s->by - s->box.top,
            u = (x - s->area.left) / s->by - s->box.left;
    if (y < j->box.top || x < j->box.left || y >= j->box.top + j->box.height ||
        x >= j->box.left + j->box.width || basin_hole_depth(j->hole, y, x) == 0)
        return false;
    int32_t label = j->label[v * s->box.width + u];
    if (label < 0) return false;
    *by = (shift){s->label[label].down * s->by, s->label[label].right * s->by};
    return true;
}

/* A known value of the picture; false where it is missing or outside. */
static bool known_at(float *value, const joint *j, int64_t y, int64_t x, int c) {
    const basin_picture *p = j->picture;
    if (y < 0 || x < 0 || y >= p->height || x >= p->width || basin_hole_depth(j->hole, y, x) > 0)
        return false;
    *value = p->pixel[(y * p->width + x) * p->channels + c];
    return true;
}

/* The step from (y, x) to its neighbour that a shift copies. */
static bool step_of(float *step, const joint *j, shift by, int64_t y, int64_t x, int64_t dy,
                    int64_t dx, int c) {
    float here, there;
    if (!known_at(&here, j, y + by.down, x + by.right, c) ||
        !known_at(&there, j, y + dy + by.down, x + dx + by.right, c))
        return false;
    *step = here - there;
    return true;
}

/* Ties pixel i of the membrane, whose surface is the filling itself. */
static void tie(basin_membrane *m, const joint *j, int64_t i, int c) {
    static const int down[] = {-1, 1, 0, 0}, right[] = {0, 0, -1, 1};
    int64_t y = j->box.top + i / j->box.width, x = j->box.left + i % j->box.width;
    const basin_picture *p = j->picture;
    shift own, other;
    bool has = shift_at(&own, j, y, x);
    m->toward[i] = (float)m->spring * p->pixel[(y * p->width + x) * p->channels + c];
    for (int k = 0; k < 4; k++) {
        int64_t v = y + down[k], u = x + right[k];
        float sum = 0, step, known;
        int count = 0;
        if (v < 0 || u < 0 || v >= p->height || u >= p->width) continue;
        if (has && step_of(&step, j, own, y, x, down[k], right[k], c)) sum += step, count++;
        bool rim = known_at(&known, j, v, u, c);
        if (!rim && shift_at(&other, j, v, u) &&
            step_of(&step, j, other, y, x, down[k], right[k], c))
            sum += step, count++;
        if (rim) m->pull[i] += 1, m->toward[i] += known, sum *= 0.5F;
        if (count) m->toward[i] += sum / (float)count;
    }
}

/* Fills `to` [box.height, box.width, channels]. */
static basin_status join(float *to, const joint *j, basin_error *error) {
    const double length = 50;
    int64_t area = j->box.height * j->box.width;
    BASIN_AT_EXIT(basin_membrane_free) basin_membrane m = {0};
    BASIN_TRY(basin_membrane_new(&m, j->box.height, j->box.width, error));
    m.spring = 1 / (length * length);
    for (int c = 0; c < j->picture->channels; c++) {
        memset(m.pull, 0, (size_t)area * sizeof *m.pull);
        memset(m.u, 0, (size_t)area * sizeof *m.u);
        for (int64_t i = 0; i < area; i++) {
            int64_t y = j->box.top + i / j->box.width, x = j->box.left + i % j->box.width;
            m.free[i] = basin_hole_depth(j->hole, y, x) > 0;
            m.toward[i] = 0;
            if (m.free[i]) tie(&m, j, i, c);
        }
        BASIN_TRY(basin_membrane_solve(&m, error));
        for (int64_t i = 0; i < area; i++) to[i * j->picture->channels + c] = m.u[i];
    }
    return BASIN_OK;
}

/* ---- the filling: colours and detail of the joined copies, each by as much as it is worth ---- */

/* How well the copies go on with what is known at the rim: 1 less their squared error there by the
 * variance of the same pixels, 0 to 1. */
static double confidence(const joint *j) {
    enum { AROUND = 3, SIDE = 2 * AROUND + 1 };
    double error = 0, sum = 0, square = 0, count = 0;
    for (int64_t i = 0; i < j->box.height * j->box.width; i++) {
        int64_t y = j->box.top + i / j->box.width, x = j->box.left + i % j->box.width;
        shift by;
        if (basin_hole_depth(j->hole, y, x) != 1 || !shift_at(&by, j, y, x)) continue;
        for (int64_t k = 0; k < SIDE * SIDE * j->picture->channels; k++) {
            int64_t v = y + k / j->picture->channels / SIDE - AROUND;
            int64_t u = x + k / j->picture->channels % SIDE - AROUND;
            int c = (int)(k % j->picture->channels);
            float known, copied;
            if (!known_at(&known, j, v, u, c) ||
                !known_at(&copied, j, v + by.down, u + by.right, c))
                continue;
            error += (double)(known - copied) * (known - copied);
            sum += known, square += (double)known * known, count++;
        }
    }
    double variance = square - sum * sum / fmax(count, 1);
    return variance > 0 ? fmax(1 - error / variance, 0) : 0;
}

/* Part of a picture around a hole, in three degrees of smoothness. */
typedef struct layers {
    basin_area area;
    float *copy, *fine, *low; /* [area, channels] as copied; smoothed by 1.5 and by 1.9 pixels */
    float *shape;             /* [area] how strong detail is to be there, beside other places */
} layers;

static void layers_free(layers *l) { BASIN_FREE(l->copy, l->fine, l->low, l->shape); }

static basin_status layers_new(layers *l, const joint *j, const float *filled, basin_error *error) {
    enum { RING = 16 };
    const basin_picture *p = j->picture;
    int64_t top = basin_int_max(j->box.top - RING, 0), left = basin_int_max(j->box.left - RING, 0);
    int64_t height = basin_int_min(j->box.top + j->box.height + RING, p->height) - top;
    int64_t width = basin_int_min(j->box.left + j->box.width + RING, p->width) - left;
    int64_t C = p->channels, count = height * width * C;
    l->area = (basin_area){top, left, height, width};
    BASIN_TRY(BASIN_NEW_RAW(&l->copy, count, "texture", error));
    BASIN_TRY(BASIN_NEW_RAW(&l->fine, count, "texture", error));
    BASIN_TRY(BASIN_NEW_RAW(&l->low, count, "texture", error));
    BASIN_TRY(BASIN_NEW(&l->shape, height * width, "texture", error));
    for (int64_t i = 0; i < count; i++) {
        int64_t y = top + i / C / width, x = left + i / C % width;
        int64_t v = y - j->box.top, u = x - j->box.left;
        bool in = v >= 0 && u >= 0 && v < j->box.height && u < j->box.width;
        l->copy[i] = p->pixel[(y * p->width + x) * C + i % C];
        if (in && basin_hole_depth(j->hole, y, x) > 0)
            l->copy[i] = filled[(v * j->box.width + u) * C + i % C];
    }
    memcpy(l->fine, l->copy, (size_t)count * sizeof *l->fine);
    memcpy(l->low, l->copy, (size_t)count * sizeof *l->low);
    BASIN_TRY(smooth(l->fine, NULL, height, width, C, 1.5, error));
    BASIN_TRY(smooth(l->low, NULL, height, width, C, 1.9, error));
    for (int64_t i = 0; i < count; i++) {
        float d = l->copy[i] - l->low[i];
        l->shape[i / C] += d * d;
    }
    return smooth(l->shape, NULL, height, width, 1, 2, error);
}

/* Detail is stronger where copies have more of it, and at the rim; in all it gets the energy that
 * is wanted, by that around the hole. */
static void shape_detail(layers *l, const joint *j, double sure) {
    const double wanted = 0.75 + 0.25 * pow(sure, 8), weakest = 0.5, fade = 20;
    int64_t area = l->area.height * l->area.width, C = j->picture->channels, count[2] = {0};
    double sum[2] = {0};
    for (int64_t i = 0; i < area; i++) {
        int64_t y = l->area.top + i / l->area.width, x = l->area.left + i % l->area.width;
        int32_t depth = basin_hole_depth(j->hole, y, x);
        double strength = fmax(exp((1 - depth) / fade), weakest);
        l->shape[i] = depth ? (float)(strength * l->shape[i]) : 1;
        for (int64_t c = 0; c < C; c++) {
            double d = (double)l->shape[i] * (l->copy[i * C + c] - l->fine[i * C + c]);
            sum[depth > 0] += d * d;
            count[depth > 0]++;
        }
    }
    double gain = 0;
    if (sum[1] > 0 && count[0])
        gain = sqrt(wanted * sum[0] / (double)count[0] * (double)count[1] / sum[1]);
    for (int64_t i = 0; i < area; i++) l->shape[i] = fminf((float)gain * l->shape[i], 3);
}

static basin_status blend(basin_picture *to, const joint *j, const float *filled, double texture,
                          basin_error *error) {
    BASIN_AT_EXIT(layers_free) layers l = {0};
    int64_t C = to->channels;
    BASIN_TRY(layers_new(&l, j, filled, error));
    double sure = confidence(j);
    shape_detail(&l, j, sure);
    texture *= fmin(4 * sure, 1); /* nothing fits: a smooth filling */
    for (int64_t i = 0; i < j->box.height * j->box.width; i++) {
        int64_t y = j->box.top + i / j->box.width, x = j->box.left + i % j->box.width;
        int64_t at = (y - l.area.top) * l.area.width + x - l.area.left;
        double depth = basin_hole_depth(j->hole, y, x);
        if (depth == 0) continue;
        double far = (1 - sure) * 30 + 0.01;
        double share =
            0.6 * sqrt(sure) * (1 - exp(-depth * depth / far)) * exp((sure - 1) * depth / 25);
        for (int64_t c = 0; c < C; c++) {
            int64_t pixel = (y * to->width + x) * C + c;
            double low = l.low[at * C + c], fine = l.copy[at * C + c] - low;
            double sum = j->picture->pixel[pixel] + texture * l.shape[at] * fine;
            sum += share * (low - j->picture->pixel[pixel]);
            to->pixel[pixel] = (uint8_t)lrint(fmin(fmax(sum, 0), 255));
        }
    }
    return BASIN_OK;
}

/* ---- holes one by one ---- */

/* The box of the part of a hole around pixel `first` of its map, which is marked by `mark`; its
 * greatest depth goes to `deepest`. */
static basin_area flood(int32_t *mark, int64_t *stack, const basin_hole *h, int64_t first,
                        int32_t number, int32_t *deepest) {
    int64_t width = h->box.width, height = h->box.height, count = 0;
    int64_t top = height, left = width, bottom = -1, right = -1;
    *deepest = 0;
    mark[first] = number;
    stack[count++] = first;
    while (count) {
        int64_t at = stack[--count], y = at / width, x = at % width;
        if (h->depth[at] > *deepest) *deepest = h->depth[at];
        top = basin_int_min(top, y), bottom = basin_int_max(bottom, y);
        left = basin_int_min(left, x), right = basin_int_max(right, x);
        for (int k = 0; k < 9; k++) {
            int64_t v = y + k / 3 - 1, u = x + k % 3 - 1, to = v * width + u;
            if (v < 0 || u < 0 || v >= height || u >= width || mark[to] || !h->depth[to]) continue;
            mark[to] = number;
            stack[count++] = to;
        }
    }
    return (basin_area){h->box.top + top, h->box.left + left, bottom - top + 1, right - left + 1};
}

/* A smooth filling without copies: kriging, and a fifth of the mean of model and membrane. */
static basin_status fill_smooth(basin_picture *now, const basin_hole *hole, basin_area box,
                                const float *span, basin_error *error) {
    const float part = 0.2F;
    int64_t C = now->channels, count = box.height * box.width * C;
    BASIN_FREE_AT_EXIT float *guess = NULL;
    BASIN_TRY(BASIN_NEW_RAW(&guess, count, "texture", error));
    for (int64_t i = 0; i < count; i++) {
        int64_t y = box.top + i / C / box.width, x = box.left + i / C % box.width;
        int64_t at = (y - hole->box.top) * hole->box.width + x - hole->box.left;
        guess[i] = span[at * C + i % C];
    }
    BASIN_TRY(basin_krige(guess, now, hole, box, error));
    for (int64_t i = 0; i < count; i++) {
        int64_t y = box.top + i / C / box.width, x = box.left + i / C % box.width;
        uint8_t *pixel = &now->pixel[(y * now->width + x) * C + i % C];
        float sum = guess[i] + part * ((float)*pixel - guess[i]);
        if (basin_hole_depth(hole, y, x)) *pixel = (uint8_t)lrintf(fminf(fmaxf(sum, 0), 255));
    }
    return BASIN_OK;
}

static basin_status fill_part(basin_picture *to, basin_picture *now, const basin_hole *hole,
                              basin_area box, const float *span, double texture,
                              basin_backend *backend, basin_course *course, basin_error *error) {
    BASIN_AT_EXIT(scene_free) scene s = {0};
    int64_t channels = now->channels;
    BASIN_TRY(fill_smooth(now, hole, box, span, error));
    BASIN_TRY(scene_new(&s, now, hole, box, error));
    BASIN_TRY(find_features(&s, error));
    memcpy(s.half, s.pixel, (size_t)(s.height * s.width * channels) * sizeof *s.half);
    BASIN_TRY(smooth(s.half, NULL, s.height, s.width, channels, 0.8, error));
    find_labels(&s);
    if (!s.labels) return BASIN_OK; /* nothing to copy from */
    BASIN_SCRATCH_RAW(int32_t, label, s.box.height * s.box.width, "texture", error);
    BASIN_SCRATCH(float, filled, (box.height * box.width * channels), "texture", error);
    BASIN_TRY(associate(label, &s, backend, course, error));
    joint j = {.scene = &s, .picture = now, .hole = hole, .label = label, .box = box};
    BASIN_TRY(join(filled, &j, error));
    return blend(to, &j, filled, texture, error);
}

basin_status basin_texture_fill(basin_picture *picture, const basin_hole *hole, const float *span,
                                double texture, basin_backend *backend, basin_course *course,
                                basin_error *error) {
    int64_t area = hole->box.height * hole->box.width;
    BASIN_AT_EXIT(basin_picture_free) basin_picture now = {0};
    if (hole->deepest < SHALLOW) return BASIN_OK;
    BASIN_TRY(basin_picture_copy(&now, picture, error));
    BASIN_SCRATCH(int32_t, mark, area, "texture", error);
    BASIN_SCRATCH_RAW(int64_t, stack, area, "texture", error);
    for (int64_t i = 0, number = 1; i < area; i++) {
        int32_t deepest;
        if (mark[i] || !hole->depth[i]) continue;
        basin_area box = flood(mark, stack, hole, i, (int32_t)number++, &deepest);
        if (deepest >= SHALLOW)
            BASIN_TRY(fill_part(picture, &now, hole, box, span, texture, backend, course, error));
    }
    return BASIN_OK;
}
