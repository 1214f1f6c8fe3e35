/* Weights, tokens and pairs from tensor files; see verify.h. */
#include "base/shape.h"
#include "program/verify/verify.h"

#include "base/try.h"
#include "program/verify/verify.h"

enum { NAME = 256 };

/* The tensor PREFIX + name, and that name. */
static const basin_tensor *find(const basin_bundle *bundle, const char *prefix, const char *name,
                                char found[NAME]) {
    snprintf(found, NAME, "%s%s", prefix, name);
    return basin_bundle_find(bundle, found);
}

static basin_status fail_missing(const basin_bundle *bundle, const char *name, const char *instead,
                                 basin_error *error) {
    return basin_fail(error, BASIN_BAD_FILE, "%s: no tensor '%s'; expected one, or %s",
                      basin_bundle_path(bundle), name, instead);
}

static basin_status fail_shape(const basin_bundle *bundle, const char *name, basin_shape found,
                               const char *expected, basin_error *error) {
    return basin_fail(error, BASIN_BAD_SHAPE, "%s: tensor '%s' is %s; expected %s",
                      basin_bundle_path(bundle), name, basin_shape_text(found), expected);
}

static basin_status check_finite(const basin_bundle *bundle, const char *name,
                                 const basin_tensor *tensor, basin_error *error) {
    int64_t bad = basin_tensor_first_bad(tensor);
    if (bad < 0) return BASIN_OK;
    return basin_fail(
        error, BASIN_BAD_VALUE, "%s: tensor '%s' has %g at element %lld; expected finite numbers",
        basin_bundle_path(bundle), name, basin_tensor_at(tensor, bad), (long long)bad);
}

/* A copy in double of a tensor that must have `shape`. */
static basin_status copy(basin_tensor *to, const basin_bundle *bundle, const char *name,
                         const basin_tensor *from, basin_shape shape, basin_error *error) {
    if (!basin_shape_equal(from->shape, shape))
        return fail_shape(bundle, name, from->shape, basin_shape_text(shape), error);
    BASIN_TRY(check_finite(bundle, name, from, error));
    BASIN_TRY(basin_tensor_new(to, BASIN_F64, shape, error));
    return basin_tensor_convert(to, from, error);
}

static basin_status read_heads(basin_weights *w, const basin_bundle *bundle, const char *prefix,
                               basin_error *error) {
    char name[NAME];
    const basin_tensor *wk = find(bundle, prefix, "wk", name);
    if (!wk) return fail_missing(bundle, name, "no attention", error);
    if (wk->shape.rank != 3) return fail_shape(bundle, name, wk->shape, "[H, Y, D]", error);
    w->config.heads = wk->shape.dim[0];
    w->config.head_dim = wk->shape.dim[1];
    w->config.dim = wk->shape.dim[2];
    BASIN_TRY(copy(&w->wk, bundle, name, wk, wk->shape, error));
    const basin_tensor *wq = find(bundle, prefix, "wq", name);
    if (!wq) return fail_missing(bundle, name, "no attention", error);
    return copy(&w->wq, bundle, name, wq, wk->shape, error);
}

static basin_status read_memories(basin_weights *w, const basin_bundle *bundle, const char *prefix,
                                  basin_error *error) {
    char name[NAME], expected[64] = "[M, D]";
    const basin_tensor *xi = find(bundle, prefix, "xi", name);
    int64_t D = w->config.dim;
    if (!xi) return fail_missing(bundle, name, "no Hopfield network", error);
    if (D) snprintf(expected, sizeof expected, "[M, %lld]", (long long)D);
    if (xi->shape.rank != 2 || (D && xi->shape.dim[1] != D))
        return fail_shape(bundle, name, xi->shape, expected, error);
    w->config.dim = xi->shape.dim[1];
    w->config.memories = xi->shape.dim[0];
    return copy(&w->xi, bundle, name, xi, xi->shape, error);
}

/* A tensor that may be absent (then all elements are `value`) or a single number for all. */
static basin_status read_or(basin_tensor *to, const basin_bundle *bundle, const char *prefix,
                            const char *own, basin_shape shape, double value, basin_error *error) {
    char name[NAME];
    const basin_tensor *from = find(bundle, prefix, own, name);
    if (from && basin_shape_count(from->shape) != 1)
        return copy(to, bundle, name, from, shape, error);
    if (from) BASIN_TRY(check_finite(bundle, name, from, error));
    BASIN_TRY(basin_tensor_new(to, BASIN_F64, shape, error));
    for (int64_t i = 0; i < basin_shape_count(shape); i++)
        ((double *)to->data)[i] = from ? basin_tensor_at(from, 0) : value;
    return BASIN_OK;
}

static basin_status read_all(basin_weights *w, const basin_bundle *bundle, const char *prefix,
                             basin_error *error) {
    basin_block_config *c = &w->config;
    char name[NAME];
    if (!c->no_attention) BASIN_TRY(read_heads(w, bundle, prefix, error));
    if (!c->no_hopfield) BASIN_TRY(read_memories(w, bundle, prefix, error));
    BASIN_TRY(read_or(&w->gamma, bundle, prefix, "gamma", BASIN_SCALAR, 1, error));
    BASIN_TRY(read_or(&w->delta, bundle, prefix, "delta", BASIN_SHAPE(c->dim), 0, error));
    if (c->no_attention) return BASIN_OK;
    BASIN_TRY(read_or(&w->beta, bundle, prefix, "beta", BASIN_SHAPE(c->heads),
                      1 / sqrt((double)c->head_dim), error));
    const basin_tensor *mix = find(bundle, prefix, "mix", name);
    c->mix = mix != NULL;
    return mix ? copy(&w->mix, bundle, name, mix, BASIN_SHAPE(c->heads, c->heads), error)
               : BASIN_OK;
}

basin_status basin_weights_read(basin_weights *weights, const basin_bundle *bundle,
                                const char *prefix, const basin_block_config *config,
                                basin_error *error) {
    *weights = (basin_weights){.config = *config};
    weights->config.learn_beta = true;
    BASIN_TRY_OR(read_all(weights, bundle, prefix, error), basin_weights_free(weights));
    return BASIN_OK;
}

void basin_weights_free(basin_weights *weights) {
    basin_tensor *all[] = {&weights->wk,    &weights->wq,   &weights->xi, &weights->gamma,
                           &weights->delta, &weights->beta, &weights->mix};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) basin_tensor_free(all[i]);
}

basin_status basin_weights_store(const basin_weights *weights, basin_store *store,
                                 basin_error *error) {
    const struct {
        const char *name;
        const basin_tensor *tensor;
    } all[] = {{"wk", &weights->wk},       {"wq", &weights->wq},       {"xi", &weights->xi},
               {"gamma", &weights->gamma}, {"delta", &weights->delta}, {"beta", &weights->beta},
               {"mix", &weights->mix}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].tensor->data)
            BASIN_TRY(basin_store_write(store, all[i].name, all[i].tensor, error));
    return BASIN_OK;
}

basin_status basin_tokens_find(const basin_tensor **tokens, const basin_bundle *bundle,
                               const char *prefix, basin_error *error) {
    char name[NAME];
    const basin_tensor *tensor = find(bundle, prefix, "x", name);
    if (!tensor) tensor = find(bundle, prefix, "x0", name);
    if (!tensor) tensor = find(bundle, "", "x0", name);
    int fitting = 0;
    for (size_t i = 0; !tensor && i < basin_bundle_count(bundle); i++) {
        int rank = basin_bundle_at(bundle, i)->shape.rank;
        if (rank != 2 && rank != 3) continue;
        fitting++;
        *tokens = basin_bundle_at(bundle, i);
        snprintf(name, sizeof name, "%s", basin_bundle_name(bundle, i));
    }
    if (tensor) *tokens = tensor;
    if (!tensor && fitting != 1)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: no tensor 'x' or 'x0', and %d of two or three axes; expected one of "
                          "tokens",
                          basin_bundle_path(bundle), fitting);
    basin_shape shape = (*tokens)->shape;
    if ((shape.rank != 2 && shape.rank != 3) || basin_shape_count(shape) < 1)
        return fail_shape(bundle, name, shape, "tokens [N, D] or [B, N, D]", error);
    return check_finite(bundle, name, *tokens, error);
}
