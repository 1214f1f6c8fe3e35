/* Reads a golden case, runs it, and measures how far each result is from the oracle's. */
#include "base/bundle.h"
#include "base/shape.h"
#include "base/try.h"
#include "program/verify/verify.h"

static basin_status fail_shape(const char *name, basin_shape found, basin_shape expected,
                               basin_error *error) {
    return basin_fail(error, BASIN_BAD_SHAPE, "tensor '%s' is %s; expected %s", name,
                      basin_shape_text(found), basin_shape_text(expected));
}

static basin_status write_parameter(basin_case *c, basin_expr state, basin_error *error) {
    char full[96];
    const basin_tensor *tensor;
    snprintf(full, sizeof full, "in.%s", basin_expr_name(state));
    BASIN_TRY(basin_bundle_get(&tensor, c->bundle, full, error));
    if (!basin_shape_equal(basin_expr_shape(state), tensor->shape))
        return fail_shape(full, tensor->shape, basin_expr_shape(state), error);
    return basin_store_write(c->store, basin_expr_name(state), tensor, error);
}

static basin_status plan_new(basin_case *c, basin_error *error) {
    BASIN_SCRATCH_RAW(basin_expr, output, c->outputs, "a case", error);
    for (size_t i = 0; i < c->outputs; i++) output[i] = c->output[i].value;
    basin_plan_spec spec = {.output = output, .outputs = (int)c->outputs};
    return basin_plan_new(&c->plan, c->store, &spec, error);
}

/* Builds the case, gives the parameters their numbers and runs. */
static basin_status compute(basin_case *c, basin_error *error) {
    if (!(c->graph = basin_graph_new())) return basin_fail_memory(error, "a case");
    basin_params_begin(&c->params, c->graph);
    BASIN_TRY(basin_store_new(&c->store, c->backend, error));
    basin_case_build(c);
    BASIN_TRY(basin_graph_check(c->graph, error));
    BASIN_TRY(plan_new(c, error));
    for (size_t i = 0; i < c->params.count; i++)
        BASIN_TRY(write_parameter(c, c->params.param[i].state, error));
    return basin_plan_run(c->plan, error);
}

static const basin_case_output *find_output(const basin_case *c, const char *name) {
    for (size_t i = 0; i < c->outputs; i++)
        if (!strcmp(c->output[i].name, name)) return &c->output[i];
    return NULL;
}

/* The sum of the squares of a - b; b NULL: of a. */
static double squares(const basin_tensor *a, const basin_tensor *b) {
    double sum = 0;
    for (int64_t i = 0; i < basin_shape_count(a->shape); i++) {
        double off = basin_tensor_at(a, i) - (b ? basin_tensor_at(b, i) : 0);
        sum += off * off;
    }
    return sum;
}

/* The relative error of `name`; a gradient that nobody computes (an ablation's) is zeros. */
static basin_status measure(double *distance, const basin_case *c, const char *name,
                            const basin_tensor *want, basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor got = {0};
    const basin_tensor *beside = NULL;
    const basin_case_output *output = find_output(c, name);
    BASIN_TRY(basin_tensor_new(&got, BASIN_F64, want->shape, error));
    if (!output && strncmp(name, "grad.", 5) != 0)
        return basin_fail(error, BASIN_UNSUPPORTED, "tensor '%s' is not one that is computed",
                          name);
    if (output) {
        if (!basin_shape_equal(basin_expr_shape(output->value), want->shape))
            return fail_shape(name, want->shape, basin_expr_shape(output->value), error);
        BASIN_TRY(basin_plan_read(&got, c->plan, output->value, error));
        if (*output->beside) beside = basin_bundle_find(c->bundle, output->beside);
    }
    double size = fmax(squares(want, NULL), beside ? squares(beside, NULL) : 0);
    *distance = sqrt(squares(&got, want) / (size > 0 ? size : 1));
    return BASIN_OK;
}

/* The errors of all results, and which is the largest: one that is not a number. */
static basin_status compare(basin_case *c, basin_error *error) {
    size_t count = basin_bundle_count(c->bundle);
    BASIN_TRY(BASIN_NEW_RAW(&c->off, count, "errors", error));
    for (size_t i = 0; i < count; i++) {
        const char *name = basin_bundle_name(c->bundle, i);
        c->off[i] = -1;
        if (strncmp(name, "out.", 4) != 0 && strncmp(name, "grad", 4) != 0) continue;
        BASIN_TRY(measure(&c->off[i], c, name, basin_bundle_at(c->bundle, i), error));
        if (!c->results++ || isnan(c->off[i]) || c->off[i] > c->off[c->worst]) c->worst = i;
    }
    return c->results
               ? BASIN_OK
               : basin_fail(error, BASIN_BAD_FILE, "no tensor 'out.*' or 'grad.*' to compare");
}

void basin_verify_name_file(basin_error *error, const char *path) {
    if (!error || !strncmp(error->text, path, strlen(path))) return;
    basin_error inner = *error;
    basin_fail(error, inner.status, "%s: %.*s", path, BASIN_ERROR_TEXT / 2, inner.text);
}

basin_status basin_case_run(basin_case *c, const char *path, basin_error *error) {
    BASIN_TRY(basin_bundle_read(&c->bundle, path, error));
    BASIN_TRY_OR(compute(c, error), basin_verify_name_file(error, path));
    BASIN_TRY_OR(compare(c, error), basin_verify_name_file(error, path));
    return BASIN_OK;
}

void basin_case_free(basin_case *c) {
    BASIN_FREE(c->output, c->off);
    basin_plan_free(c->plan);
    basin_store_free(c->store);
    basin_params_free(&c->params);
    basin_graph_free(c->graph);
    basin_bundle_free(c->bundle);
}
