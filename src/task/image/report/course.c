/* Error, PSNR and energy step by step, as means over pictures; see look.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "task/image/eval.h"
#include "task/image/report/look.h"

static basin_status make_room(basin_image_course *c, const basin_image_trace *t,
                              const basin_image_settings *s, basin_error *error) {
    size_t frames = (size_t)(t->steps + 1);
    *c = (basin_image_course){.steps = t->steps, .parts = t->parts};
    c->mse = calloc(frames, sizeof *c->mse);
    c->psnr = calloc(frames, sizeof *c->psnr);
    bool good = c->mse && c->psnr;
    for (int p = 0; p < t->parts; p++) {
        c->energy[p] = calloc(frames, sizeof *c->energy[p]);
        c->size[p] = calloc(frames, sizeof *c->size[p]);
        good = good && c->energy[p] && c->size[p];
    }
    if (t->use) c->use = calloc((size_t)s->memories, sizeof *c->use);
    if (good && (!t->use || c->use)) return BASIN_OK;
    basin_image_course_free(c);
    return basin_fail(error, BASIN_NO_MEMORY, "out of memory for the course of a descent");
}

static void add_energies(basin_image_course *c, const basin_image_trace *t) {
    for (int64_t i = 0; i < t->count && t->parts; i++) {
        double before = INFINITY;
        for (int step = 0; step <= t->steps; step++) {
            double total = 0;
            for (int p = 0; p < t->parts; p++) {
                double energy = t->energy[p][step * t->count + i];
                c->energy[p][step] += energy;
                c->size[p][step] += t->square[p][step * t->count + i];
                total += energy;
            }
            /* Beyond what float rounds: sums of many terms waver in the last digits. */
            c->rises += total > before + 1e-5 * fabs(before);
            before = total;
        }
    }
}

static basin_status add_baseline(basin_image_course *c, const basin_image_trace *t,
                                 const float *patches, const uint8_t *mask,
                                 const basin_image_settings *s, basin_error *error) {
    int64_t N = basin_image_tokens(s), size = N * basin_image_patch_values(s);
    float *zero = calloc((size_t)size, sizeof *zero);
    basin_status status =
        zero ? BASIN_OK : basin_fail(error, BASIN_NO_MEMORY, "out of memory for a baseline");
    for (int64_t i = 0; i < t->count && !status; i++)
        status = basin_image_baseline_add(&c->baseline, zero, patches + i * size, mask + i * N, s,
                                          error);
    free(zero);
    return status;
}

static basin_status add_errors(basin_image_course *c, const basin_image_trace *t,
                               const float *patches, const uint8_t *mask,
                               const basin_image_settings *s, basin_error *error) {
    int64_t N = basin_image_tokens(s), P = basin_image_patch_values(s), size = N * P;
    basin_status status = BASIN_OK;
    for (int step = 0; step <= t->steps; step++)
        for (int64_t i = 0; i < t->count && !status; i++) {
            const float *output = t->token + (step * t->count + i) * size;
            double psnr = 0;
            c->mse[step] +=
                basin_image_masked_error(output, patches + i * size, mask + i * N, N, P);
            status =
                basin_image_masked_psnr(&psnr, output, patches + i * size, mask + i * N, s, error);
            c->psnr[step] += psnr;
        }
    return status;
}

basin_status basin_image_course_add(basin_image_course *c, const basin_image_trace *t,
                                    const float *patches, const uint8_t *mask,
                                    const basin_image_settings *s, basin_error *error) {
    basin_status status = c->mse ? BASIN_OK : make_room(c, t, s, error);
    if (!status) status = add_errors(c, t, patches, mask, s, error);
    if (!status) status = add_baseline(c, t, patches, mask, s, error);
    if (status) return status;
    add_energies(c, t);
    for (int64_t m = 0; c->use && m < s->memories; m++) c->use[m] += t->use[m];
    c->pictures += t->count;
    return BASIN_OK;
}

void basin_image_course_end(basin_image_course *c) {
    double part = 1 / (double)c->pictures;
    c->baseline.mse *= part;
    c->baseline.psnr *= part;
    for (int step = 0; step <= c->steps; step++) {
        c->mse[step] *= part;
        c->psnr[step] *= part;
        for (int p = 0; p < c->parts; p++) {
            c->energy[p][step] *= part;
            c->size[p][step] = sqrt(c->size[p][step] * part);
        }
    }
}

void basin_image_course_free(basin_image_course *c) {
    free(c->mse);
    free(c->psnr);
    free(c->use);
    for (int p = 0; p < 2; p++) {
        free(c->energy[p]);
        free(c->size[p]);
    }
    *c = (basin_image_course){0};
}
