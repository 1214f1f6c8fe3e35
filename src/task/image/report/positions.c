/* Positions of several models in one picture: the appendix's figure of how beta and weight decay
 * shape them. See include/basin/tasks/image.h. */
#include <math.h>
#include <stdlib.h>

#include "basin/tasks/image.h"
#include "task/image/report/look.h"
#include "task/image/report/sheet.h"
#include "view/strip.h"

enum { GAP = 24 }; /* pixels between two models */

typedef struct panel {
    basin_image_weights weights;
    basin_picture picture;
} panel;

/* Mean cosine of patches that share an edge, and of any two. */
static void measure(basin_image_positions_of *figures, const double *cosine, int64_t across) {
    int64_t N = across * across, next = 0, pairs = 0;
    *figures = (basin_image_positions_of){.least = 1};
    for (int64_t i = 0; i < N; i++)
        for (int64_t j = 0; j < i; j++) {
            double c = cosine[i * N + j];
            bool beside = i - j == across || (i - j == 1 && i % across);
            figures->any += c, pairs++;
            if (beside) figures->next += c, next++;
            if (c < figures->least) figures->least = c;
        }
    figures->any = pairs ? figures->any / (double)pairs : NAN;
    figures->next = next ? figures->next / (double)next : NAN;
}

static int64_t across_of(const basin_image_model *model) {
    return model->settings.size / model->settings.patch;
}

static basin_status look(panel *p, basin_image_positions_of *figures, basin_image_model *model,
                         int64_t across, basin_error *error) {
    int64_t own = across_of(model);
    if (own != across)
        return basin_fail(error, BASIN_BAD_VALUE,
                          "a model of %lld x %lld patches beside one of %lld x %lld; wanted models "
                          "of one size",
                          (long long)own, (long long)own, (long long)across, (long long)across);
    basin_status status = basin_image_weights_new(&p->weights, model, error);
    if (!status) measure(figures, p->weights.cosine, across);
    return status;
}

/* All in one scale of colours, so that they can be compared. */
static basin_status draw(basin_picture *picture, panel *p, int count, int64_t across, double low,
                         basin_error *error) {
    const basin_picture **each = calloc((size_t)count, sizeof *each);
    if (!each) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for a picture");
    basin_status status = BASIN_OK;
    for (int i = 0; i < count && !status; i++) {
        each[i] = &p[i].picture;
        status =
            basin_image_sheet_positions(&p[i].picture, p[i].weights.cosine, across, low, error);
    }
    if (!status) status = basin_strip_draw(picture, each, count, GAP, 1, error);
    free(each);
    return status;
}

basin_status basin_image_positions(basin_picture *picture, basin_image_positions_of *figures,
                                   basin_image_model *const *model, int count, basin_error *error) {
    if (count < 1) return basin_fail(error, BASIN_BAD_VALUE, "no models to look at");
    panel *p = calloc((size_t)count, sizeof *p);
    if (!p) return basin_fail(error, BASIN_NO_MEMORY, "out of memory for positions");
    int64_t across = across_of(model[0]);
    double low = 1;
    basin_status status = BASIN_OK;
    for (int i = 0; i < count && !status; i++) {
        status = look(&p[i], &figures[i], model[i], across, error);
        if (!status) low = fmin(low, figures[i].least);
    }
    if (!status) status = draw(picture, p, count, across, low, error);
    for (int i = 0; i < count; i++) {
        basin_image_weights_free(&p[i].weights);
        basin_picture_free(&p[i].picture);
    }
    free(p);
    return status;
}
