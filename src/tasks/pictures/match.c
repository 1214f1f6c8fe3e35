/* Descents from noise down an energy of pictures that was trained by matching (pictures/field.c):
 * samples, and completions, of which what is known is held on its way from noise to the picture. */
#include "base/sort.h"
#include "base/states.h"
#include "basin/random.h"
#include "tasks/pictures/image.h"

/* A descent of a batch; all [B, N, P], known [B, N]. */
typedef struct walk {
    basin_image_runner *runner;
    basin_image_descent how;
    int64_t count, tokens, values; /* pictures, N, P */
    int64_t first;                 /* number of the first, of which its noise is a function */
    const float *truth;            /* what is known; or NULL */
    const uint8_t *mask;
    float *x, *noise, *field;
    double *each;   /* [B] energies */
    double *energy; /* [steps + 1] sums over pictures are added; or NULL */
} walk;

basin_status basin_image_field_run(basin_image_runner *r, float *field, double *energy,
                                   const float *patches, int64_t count, basin_error *error) {
    const basin_image_graph *g = &r->graph;
    BASIN_TRY(basin_image_write_batch(r->plan, g, patches, NULL, count, error));
    BASIN_TRY(basin_plan_run(r->plan, error));
    BASIN_TRY(basin_values_read(r->plan, g->output, field, BASIN_F32, error));
    if (!g->energy) return BASIN_OK;
    return basin_values_read(r->plan, g->energy, energy, BASIN_F64, error);
}

/* ---- steps ---- */

/* What is known is at t of its way. */
static void hold_known(walk *w, double t) {
    for (int64_t i = 0; w->truth && i < w->count * w->tokens * w->values; i++) {
        if (w->mask[i / w->values] == BASIN_PATCH_REPLACED) continue;
        w->x[i] = (float)(t * (double)w->truth[i] + (1 - t) * (double)w->noise[i]);
    }
}

/* The field where the pictures are, and the energy there. */
static basin_status evaluate_field(walk *w, int64_t step, basin_error *error) {
    BASIN_TRY(basin_image_field_run(w->runner, w->field, w->each, w->x, w->count, error));
    for (int64_t i = 0; w->energy && i < w->count; i++) w->energy[step] += w->each[i];
    return BASIN_OK;
}

static basin_status take_step(walk *w, int64_t step, basin_error *error) {
    double max = 0, alpha = w->how.alpha;
    BASIN_TRY(evaluate_field(w, step, error));
    for (int64_t i = 0; i < w->count * w->tokens * w->values; i++) {
        w->x[i] -= (float)(alpha * (double)w->field[i]);
        max = fmax(max, isfinite(w->x[i]) ? fabs((double)w->x[i]) : INFINITY);
    }
    if (max < 1e4) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_VALUE,
                      "the descent of pixels diverges at step %lld; use an alpha smaller than %g",
                      (long long)step, alpha);
}

/* Mixes noise number `draw` of each picture in, so that it is at t of its way again. The noise is
 * the same whatever else is in the batch. */
static void mix_noise(walk *w, uint64_t draw, double t) {
    enum { NOISE_SALT = 0x6e6f6973 };
    int64_t size = w->tokens * w->values;
    for (int64_t i = 0; i < w->count; i++)
        basin_random_fill_normal(w->noise + i * size, w->how.seed ^ NOISE_SALT,
                                 (uint64_t)(w->first + i), draw * (uint64_t)size, (size_t)size);
    for (int64_t i = 0; i < w->count * size; i++)
        w->x[i] = (float)(t * (double)w->x[i] + (1 - t) * (double)w->noise[i]);
}

/* A completion goes back some of the way several times, so that the hole agrees with the rest. */
static basin_status descend(walk *w, basin_error *error) {
    enum { ROUNDS = 5 };
    const double back = 0.4;
    memset(w->x, 0, (size_t)(w->count * w->tokens * w->values) * sizeof(float));
    for (uint64_t round = 0; round < (w->truth ? ROUNDS : 1); round++) {
        double t = round ? back : 0;
        mix_noise(w, round, t);
        for (int64_t step = (int64_t)(t / w->how.alpha); step < w->how.steps; step++) {
            hold_known(w, t);
            BASIN_TRY(take_step(w, step, error));
            t = fmin(1, t + w->how.alpha * basin_match_speed(t));
        }
    }
    hold_known(w, 1);
    return w->energy ? evaluate_field(w, w->how.steps, error) : BASIN_OK;
}

static basin_status begin(walk *w, basin_error *error) {
    const basin_image_settings *s = &w->runner->model->settings;
    int64_t batch = w->runner->graph.batch;
    w->how = w->runner->model->descent;
    if (w->how.steps == 0) w->how.steps = BASIN_IMAGE_SAMPLE_STEPS;
    if (!(w->how.alpha > 0)) w->how.alpha = 0.025;
    w->tokens = basin_image_tokens(s);
    w->values = basin_image_patch_values(s);
    float **part[] = {&w->x, &w->noise, &w->field};
    for (size_t i = 0; i < sizeof part / sizeof *part; i++)
        BASIN_TRY(
            BASIN_NEW_RAW(part[i], batch * w->tokens * w->values, "a descent of pixels", error));
    return BASIN_NEW(&w->each, batch, "a descent of pixels", error);
}

static void end(walk *w) { BASIN_FREE(w->x, w->noise, w->field, w->each); }

/* ---- what it is for ---- */

basin_status basin_image_match_complete(basin_image_runner *runner, float *output,
                                        const float *patches, const uint8_t *mask, int64_t count,
                                        basin_error *error) {
    BASIN_AT_EXIT(end)
    walk w = {.runner = runner, .count = count, .truth = patches, .mask = mask};
    BASIN_TRY(begin(&w, error));
    BASIN_TRY(descend(&w, error));
    memcpy(output, w.x, (size_t)(count * w.tokens * w.values) * sizeof *output);
    return BASIN_OK;
}

static basin_status draw_pictures(walk *w, basin_picture *picture, int64_t count,
                                  const basin_watch *watch, basin_error *error) {
    const basin_image_settings *s = &w->runner->model->settings;
    basin_patching patching = basin_image_patching(s);
    for (w->first = 0; w->first < count; w->first += w->count) {
        w->count = basin_int_min(count - w->first, w->runner->graph.batch);
        BASIN_TRY(descend(w, error));
        for (int64_t i = 0; i < w->count; i++) {
            basin_picture *p = &picture[w->first + i];
            BASIN_TRY(basin_picture_resize_memory(p, s->size, s->size, (int)s->channels, error));
            basin_patches_to_pixels(p->pixel, w->x + i * w->tokens * w->values, &patching);
        }
        basin_watch_progress(watch, "sampling", w->first + w->count, count, 0, "images");
    }
    return BASIN_OK;
}

basin_status basin_image_sample(basin_picture *picture, double *energy, basin_image_model *model,
                                int64_t count, const basin_watch *watch, basin_error *error) {
    enum { MAX_BATCH = 256 };
    BASIN_AT_EXIT(basin_image_runner_free) basin_image_runner runner = {0};
    BASIN_AT_EXIT(end) walk w = {.runner = &runner, .energy = energy};
    if (!basin_image_is_match(&model->settings))
        return basin_fail(error, BASIN_BAD_VALUE,
                          "the model completes masked pictures and has no energy of whole ones; "
                          "expected objective match");
    if (count < 1) return BASIN_OK;
    BASIN_TRY(basin_image_runner_new(&runner, model, basin_int_min(count, MAX_BATCH), error));
    BASIN_TRY(begin(&w, error));
    int64_t steps = w.how.steps;
    for (int64_t i = 0; energy && i <= steps; i++) energy[i] = 0;
    BASIN_TRY(draw_pictures(&w, picture, count, watch, error));
    for (int64_t i = 0; energy && i <= steps; i++)
        energy[i] = runner.graph.energy ? energy[i] / (double)count : NAN;
    return BASIN_OK;
}
