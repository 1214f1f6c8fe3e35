/* Beginning with the weights of another model; see adopt.h. */
#include "task/image/adopt.h"

#include <math.h>
#include <string.h>

#include "train/restore.h"

/* ---- what must be the same ---- */

/* Layers are weights, steps of a descent are not. */
static const char *const same_et[] = {"arch",     "channels",   "patch",    "dim",
                                      "heads",    "head_dim",   "memories", "attention",
                                      "hopfield", "learn_beta", "cls",      NULL};
static const char *const same_vit[] = {"arch",     "channels", "patch", "dim", "heads",
                                       "head_dim", "memories", "steps", "cls", NULL};

basin_status basin_image_adopt_check(const basin_image_settings *settings, const basin_bundle *from,
                                     basin_error *error) {
    enum { TEXT = 64 };
    basin_image_settings its;
    basin_status status = basin_image_settings_read(&its, from, error);
    if (status) return status;
    for (const char *const *name = strcmp(settings->arch, "et") ? same_vit : same_et; *name;
         name++) {
        char found[TEXT], wanted[TEXT];
        const basin_setting *s = basin_setting_find(basin_image_task.table, *name);
        basin_setting_print(found, sizeof found, &its, s);
        basin_setting_print(wanted, sizeof wanted, settings, s);
        if (strcmp(found, wanted) != 0)
            return basin_fail(error, BASIN_BAD_SHAPE,
                              "%s: its %s is %s, asked for is %s; wanted the same, to begin with "
                              "its weights",
                              basin_bundle_path(from), *name, found, wanted);
    }
    return BASIN_OK;
}

/* ---- positions ---- */

/* Keys' cubic with a = -1/2. */
static double cubic(double x) {
    x = fabs(x);
    if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
    return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

/* Where row `to` of `after` lies among `before` rows: four neighbours, those outside being the
 * border, and their weights. */
static void neighbours(int64_t at[4], double weight[4], int64_t to, int64_t before, int64_t after) {
    double place = ((double)to + 0.5) * (double)before / (double)after - 0.5;
    int64_t first = (int64_t)floor(place) - 1;
    for (int i = 0; i < 4; i++) {
        int64_t k = first + i;
        at[i] = k < 0 ? 0 : k >= before ? before - 1 : k;
        weight[i] = cubic(place - (double)k);
    }
}

static void resample(float *out, const basin_tensor *in, int64_t extra, int64_t before,
                     int64_t after, int64_t dim) {
    for (int64_t i = 0; i < extra * dim; i++) out[i] = (float)basin_tensor_at(in, i);
    for (int64_t n = 0; n < after * after; n++) {
        int64_t y[4], x[4];
        double wy[4], wx[4];
        neighbours(y, wy, n / after, before, after);
        neighbours(x, wx, n % after, before, after);
        for (int64_t d = 0; d < dim; d++) {
            double sum = 0;
            for (int i = 0; i < 16; i++) {
                int64_t from = extra + y[i / 4] * before + x[i % 4];
                sum += wy[i / 4] * wx[i % 4] * basin_tensor_at(in, from * dim + d);
            }
            out[(extra + n) * dim + d] = (float)sum;
        }
    }
}

/* [N, D], with CLS [N + 1, D], its row first. */
static basin_status adopt_positions(basin_store *store, basin_shape shape,
                                    const basin_image_settings *settings,
                                    const basin_image_settings *its, const basin_bundle *from,
                                    basin_error *error) {
    basin_tensor out = {0};
    const basin_tensor *in;
    int64_t extra = settings->cls ? 1 : 0, before = its->size / its->patch;
    basin_status status = basin_bundle_get(&in, from, "pos", error);
    if (status) return status;
    if (in->shape.rank != 2 || in->shape.dim[0] != extra + before * before ||
        in->shape.dim[1] != settings->dim)
        return basin_fail(error, BASIN_BAD_SHAPE, "%s: tensor 'pos' is not of %lld patches",
                          basin_bundle_path(from), (long long)(before * before));
    status = basin_tensor_new(&out, BASIN_F32, shape, error);
    if (!status) {
        resample(out.data, in, extra, before, settings->size / settings->patch, settings->dim);
        status = basin_store_write(store, "pos", &out, error);
    }
    basin_tensor_free(&out);
    return status;
}

basin_status basin_image_adopt(basin_store *store, const basin_params *params,
                               const basin_image_settings *settings, const basin_bundle *from,
                               basin_error *error) {
    basin_image_settings its;
    basin_status status = basin_image_settings_read(&its, from, error);
    if (!status) status = basin_image_adopt_check(settings, from, error);
    for (size_t i = 0; i < params->count && !status; i++) {
        basin_expr state = params->param[i].state;
        const char *name = basin_expr_name(state);
        if (its.size != settings->size && !strcmp(name, "pos"))
            status = adopt_positions(store, basin_expr_shape(state), settings, &its, from, error);
        else
            status = basin_state_restore(store, name, basin_expr_shape(state), from, error);
    }
    return status;
}
