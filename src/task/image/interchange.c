/* The published weights as a model; see image.h. Their layout is ours but for the
 * memories, which are columns there and rows here. And our own weights in a narrower type. */
#include "task/image/image.h"

typedef struct entry {
    const char *theirs, *ours;
    bool transposed;
} entry;

static const entry table[] = {
    {"Wk", "wk", false},
    {"Wq", "wq", false},
    {"Xi", "xi", true},
    {"Wenc", "enc_w", false},
    {"Benc", "enc_b", false},
    {"Wdec", "dec_w", false},
    {"Bdec", "dec_b", false},
    {"POS_embed", "pos", false},
    {"CLS_token", "cls", false},
    {"MASK_token", "mask", false},
    {"LNORM_bias", "delta", false},
    {"LNORM_gamma", "gamma", false},
};
enum { ENTRIES = sizeof table / sizeof *table };

/* ---- the settings ---- */

/* Drops leading axes of 1 until `rank` are left; rank -1 where that cannot be. */
static basin_shape squeeze(basin_shape shape, int rank) {
    int extra = shape.rank - rank;
    basin_shape out = {.rank = rank};
    for (int i = 0; i < extra; i++)
        if (shape.dim[i] != 1) extra = -1;
    if (extra < 0) return (basin_shape){.rank = -1};
    for (int i = 0; i < rank; i++) out.dim[i] = shape.dim[i + extra];
    return out;
}

static basin_status shape_of(basin_shape *shape, const basin_bundle *bundle, const char *name,
                             int rank, basin_error *error) {
    const basin_tensor *tensor;
    BASIN_TRY(basin_bundle_get(&tensor, bundle, name, error));
    *shape = squeeze(tensor->shape, rank);
    if (shape->rank == rank && basin_shape_count(*shape) > 0) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_SHAPE, "%s: %s is %s, wanted %d axes, none of them empty",
                      basin_bundle_path(bundle), name, basin_shape_text(tensor->shape), rank);
}

static int64_t root(int64_t square) {
    int64_t r = llround(sqrt((double)square));
    return r * r == square ? r : 0;
}

/* Patches of P numbers are square, in colour where P is three times a square, else grey; N patches
 * make a square. */
static basin_status infer_picture(basin_image_settings *s, int64_t P, int64_t N, const char *path,
                                  basin_error *error) {
    s->channels = P % 3 == 0 && root(P / 3) ? 3 : 1;
    s->patch = root(P / s->channels);
    if (!s->patch || !root(N))
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: %lld patches of %lld numbers, wanted a square number of square "
                          "patches of 1 or 3 channels",
                          path, (long long)N, (long long)P);
    s->size = root(N) * s->patch;
    s->occlude = 100.0 / 196;
    s->keep = 0.1;
    for (int c = 0; c < 3 && s->channels == 1; c++) s->mean[c] = 0.449, s->deviation[c] = 0.226;
    return BASIN_OK;
}

static basin_status infer(basin_image_settings *s, const basin_bundle *bundle, basin_error *error) {
    basin_shape wk, xi, enc, pos;
    BASIN_TRY(shape_of(&wk, bundle, "Wk", 3, error));
    BASIN_TRY(shape_of(&xi, bundle, "Xi", 2, error));
    BASIN_TRY(shape_of(&enc, bundle, "Wenc", 2, error));
    BASIN_TRY(shape_of(&pos, bundle, "POS_embed", 2, error));
    BASIN_TRY(basin_settings_preset(s, &basin_image_task, "paper-imagenet", error));
    s->cls = basin_bundle_find(bundle, "CLS_token") != NULL;
    s->heads = wk.dim[0], s->head_dim = wk.dim[1], s->dim = wk.dim[2];
    s->memories = xi.dim[1];
    s->self_attention = true;
    return infer_picture(s, enc.dim[0], pos.dim[0] - s->cls, basin_bundle_path(bundle), error);
}

/* ---- in ---- */

static basin_status transpose(basin_tensor *out, const basin_tensor *in, basin_error *error) {
    int64_t rows = in->shape.dim[0], columns = in->shape.dim[1];
    size_t item = basin_dtype_size(in->dtype);
    BASIN_TRY(basin_tensor_new(out, in->dtype, BASIN_SHAPE(columns, rows), error));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            memcpy((char *)out->data + (size_t)(j * rows + i) * item,
                   (const char *)in->data + (size_t)(i * columns + j) * item, item);
    return BASIN_OK;
}

/* The shape that a published tensor has in a model of these settings. */
static basin_shape wanted_shape(const basin_image_settings *s, const char *ours) {
    int64_t N = basin_image_tokens(s), P = basin_image_patch_values(s), D = s->dim;
    if (!strcmp(ours, "wk") || !strcmp(ours, "wq")) return BASIN_SHAPE(s->heads, s->head_dim, D);
    if (!strcmp(ours, "xi")) return BASIN_SHAPE(D, s->memories);
    if (!strcmp(ours, "enc_w")) return BASIN_SHAPE(P, D);
    if (!strcmp(ours, "dec_w")) return BASIN_SHAPE(D, P);
    if (!strcmp(ours, "dec_b")) return BASIN_SHAPE(P);
    if (!strcmp(ours, "pos")) return BASIN_SHAPE(N + s->cls, D);
    if (!strcmp(ours, "gamma")) return BASIN_SCALAR;
    return BASIN_SHAPE(D); /* enc_b, mask, cls, delta */
}

static basin_status take(basin_bundle *model, const basin_image_settings *settings,
                         const basin_bundle *published, const entry *e, basin_error *error) {
    const basin_tensor *from;
    basin_shape wanted = wanted_shape(settings, e->ours);
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor turned = {0};
    BASIN_TRY(basin_bundle_get(&from, published, e->theirs, error));
    if (!basin_shape_equal(squeeze(from->shape, wanted.rank), wanted)) {
        return basin_fail(error, BASIN_BAD_SHAPE, "%s: %s is %s, wanted %s",
                          basin_bundle_path(published), e->theirs, basin_shape_text(from->shape),
                          basin_shape_text(wanted));
    }
    basin_tensor squeezed = basin_tensor_borrow(from->data, from->dtype, wanted);
    if (e->transposed) BASIN_TRY(transpose(&turned, &squeezed, error));
    return basin_bundle_add(model, e->ours, e->transposed ? &turned : &squeezed, error);
}

basin_status basin_image_published_read(basin_image_settings *settings, basin_bundle **model,
                                        const basin_bundle *published, basin_error *error) {
    const char *json = basin_bundle_meta(published, "basin.config");
    const char *path = basin_bundle_path(published);
    if (json)
        BASIN_TRY(basin_settings_parse(settings, basin_image_task.table, json, true, path, error));
    else
        BASIN_TRY(infer(settings, published, error));
    BASIN_TRY(basin_image_settings_check(settings, error));
    BASIN_TRY(basin_bundle_new(model, error));
    for (int i = 0; i < ENTRIES; i++)
        if (settings->cls || strcmp(table[i].ours, "cls") != 0)
            BASIN_TRY(take(*model, settings, published, &table[i], error));
    return BASIN_OK;
}

/* ---- narrower ---- */

static basin_status give_rounded(basin_bundle *bundle, basin_store *store, const char *name,
                                 basin_dtype dtype, basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor tensor = {0};
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor rounded = {0};
    BASIN_TRY(basin_store_read(store, name, &tensor, error));
    BASIN_TRY(basin_tensor_new(&rounded, dtype, tensor.shape, error));
    BASIN_TRY(basin_tensor_convert(&rounded, &tensor, error));
    return basin_bundle_add(bundle, name, &rounded, error);
}

static basin_status give_weights(basin_bundle *bundle, const basin_params *params,
                                 basin_store *store, basin_dtype dtype, basin_error *error) {
    if (dtype == BASIN_F32) return basin_params_add(bundle, params, store, error);
    for (size_t i = 0; i < params->count; i++)
        BASIN_TRY(
            give_rounded(bundle, store, basin_expr_name(params->param[i].state), dtype, error));
    return BASIN_OK;
}

static basin_status write_model(const char *path, basin_bundle *bundle, basin_image_model *model,
                                basin_dtype dtype, basin_error *error) {
    BASIN_AT_EXIT(basin_image_graph_free) basin_image_graph graph = {0};
    BASIN_TRY(basin_image_graph_new(&graph, &model->settings, 1, error));
    BASIN_TRY(basin_settings_store(bundle, "image", &model->settings, &basin_image_task, error));
    BASIN_TRY(basin_image_card_add(bundle, &model->card, error));
    BASIN_TRY(give_weights(bundle, &graph.params, model->store, dtype, error));
    return basin_bundle_write(path, bundle, error);
}

basin_status basin_image_write(const char *path, basin_image_model *model, basin_dtype dtype,
                               basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    if (dtype != BASIN_F32 && dtype != BASIN_BF16)
        return basin_fail(error, BASIN_BAD_VALUE, "%s: dtype is %s, needs F32 or BF16", path,
                          basin_dtype_name(dtype));
    BASIN_TRY(basin_bundle_new(&bundle, error));
    return write_model(path, bundle, model, dtype, error);
}
