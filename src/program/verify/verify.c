/* The frame of `basin verify`: reads a golden case, lets its builder declare the expressions, runs
 * them in one plan and compares every result and gradient the file holds. */
#include "program/verify/verify.h"
#include "base/shape.h"

#include <stdarg.h>

#include "base/try.h"

static void fail_memory(basin_case *c) {
    basin_graph_fail(c->graph, BASIN_NO_MEMORY, "out of memory");
}

const basin_tensor *basin_case_tensor(basin_case *c, const char *name, int rank) {
    char full[96];
    basin_error error;
    const basin_tensor *tensor;
    snprintf(full, sizeof full, "in.%s", name);
    if (basin_bundle_get(&tensor, c->bundle, full, &error)) {
        basin_graph_fail(c->graph, error.status, "%s", error.text);
        return NULL;
    }
    if (rank >= 0 && tensor->shape.rank != rank) {
        basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "%s is %s; expected %d axes", full,
                         basin_shape_text(tensor->shape), rank);
        return NULL;
    }
    return tensor;
}

int64_t basin_case_dim(basin_case *c, const char *name, int rank, int axis) {
    const basin_tensor *tensor = basin_case_tensor(c, name, rank);
    return tensor ? tensor->shape.dim[axis] : 0;
}

basin_tensor basin_case_integers(basin_case *c, const char *name, int rank) {
    const basin_tensor *tensor = basin_case_tensor(c, name, rank);
    basin_tensor copy = {0};
    basin_error error;
    if (tensor && (basin_tensor_new(&copy, BASIN_I32, tensor->shape, &error) ||
                   basin_tensor_convert(&copy, tensor, &error))) {
        basin_tensor_free(&copy);
        basin_graph_fail(c->graph, error.status, "%s", error.text);
    }
    return copy;
}

static const char *meta(basin_case *c, const char *key) {
    const char *text = basin_bundle_meta(c->bundle, key);
    if (!text) basin_graph_fail(c->graph, BASIN_BAD_FILE, "no '%s' in the metadata", key);
    return text;
}

double basin_case_number(basin_case *c, const char *key) {
    const char *text = meta(c, key);
    char *end = NULL;
    double value = text ? strtod(text, &end) : 0;
    if (text && (!strcmp(text, "true") || !strcmp(text, "false"))) return *text == 't';
    if (text && (end == text || *end))
        basin_graph_fail(c->graph, BASIN_BAD_FILE, "metadata '%s' is '%s'; expected a number", key,
                         text);
    return value;
}

bool basin_case_flag(basin_case *c, const char *key) { return basin_case_number(c, key) != 0; }

static const char *case_word(basin_case *c, const char *key, char text[BASIN_CASE_WORD]) {
    const char *value = meta(c, key);
    *text = 0;
    if (!value) return text;
    if (*value == '"') value++;
    snprintf(text, BASIN_CASE_WORD, "%.*s", (int)strcspn(value, "\""), value);
    return text;
}

basin_expr basin_case_input_add(basin_case *c, const char *name, int rank) {
    const basin_tensor *tensor = basin_case_tensor(c, name, rank);
    basin_error error;
    if (!tensor) return NULL;
    if (basin_store_write(c->store, name, tensor, &error))
        return basin_graph_fail(c->graph, error.status, "%s", error.text);
    return basin_state(c->graph, name, tensor->shape);
}

basin_expr basin_case_parameter(basin_case *c, const char *name) {
    const basin_tensor *tensor = basin_case_tensor(c, name, -1);
    if (!tensor) return NULL;
    for (size_t i = 0; i < c->params.count; i++)
        if (!strcmp(basin_expr_name(c->params.param[i].state), name))
            return c->params.param[i].state;
    return basin_param_add(&c->params, "", name, tensor->shape, (basin_init){0});
}

basin_expr basin_case_index(basin_case *c, const char *name, int64_t count) {
    basin_tensor number = basin_case_integers(c, name, 1);
    basin_expr index = NULL;
    const int32_t *value = number.data;
    for (int64_t i = 0; value && i < number.shape.dim[0]; i++)
        if (value[i] < 0 || value[i] >= count)
            basin_graph_fail(c->graph, BASIN_BAD_VALUE, "in.%s has %d; expected 0 to %lld", name,
                             value[i], (long long)count - 1);
    if (value && !basin_graph_error(c->graph)) index = basin_constant(c->graph, &number);
    basin_tensor_free(&number);
    return index;
}

basin_expr basin_case_indices(basin_case *c, const int32_t *number, int64_t count) {
    basin_tensor tensor = basin_tensor_view(number, BASIN_I32, BASIN_SHAPE(count));
    return basin_constant(c->graph, &tensor);
}

basin_pattern basin_case_pairs(basin_case *c, basin_pairs *p, int64_t tokens, const int32_t *edge,
                               int64_t count, int flags) {
    basin_error error;
    *p = (basin_pairs){0};
    if (basin_graph_error(c->graph)) return BASIN_ALL_PAIRS;
    if (basin_pairs_new(p, tokens, tokens, edge, count, flags, &error)) {
        basin_graph_fail(c->graph, error.status, "%s", error.text);
        return BASIN_ALL_PAIRS;
    }
    return (basin_pattern){.row = basin_case_indices(c, p->row, tokens + 1),
                           .key = basin_case_indices(c, p->key, p->pairs),
                           .column = basin_case_indices(c, p->column, tokens + 1),
                           .query = basin_case_indices(c, p->query, p->pairs),
                           .pair = basin_case_indices(c, p->pair, p->pairs)};
}

void basin_case_output_add(basin_case *c, basin_expr value, const char *format, ...) {
    if (!value) return;
    if (!BASIN_RESERVE(&c->output, &c->output_room, c->outputs + 1)) {
        fail_memory(c);
        return;
    }
    basin_case_output *output = &c->output[c->outputs++];
    va_list args;
    va_start(args, format);
    vsnprintf(output->name, sizeof output->name, format, args);
    va_end(args);
    output->value = value;
    *output->beside = 0;
}

void basin_case_difference_add(basin_case *c, basin_expr value, const char *name,
                               const char *beside) {
    size_t before = c->outputs;
    basin_case_output_add(c, value, "%s", name);
    if (c->outputs == before) return;
    basin_case_output *output = &c->output[before];
    snprintf(output->beside, sizeof output->beside, "%s", beside);
}

void basin_case_loss(basin_case *c, basin_expr loss, basin_expr x) {
    size_t count = c->params.count;
    basin_expr from[count + 1], gradient[count + 1];
    basin_case_output_add(c, loss, "out.loss");
    for (size_t i = 0; i < count; i++) from[i] = c->params.param[i].state;
    from[count] = x;
    basin_vjp(gradient, loss, NULL, from, (int)count + (x != NULL));
    for (size_t i = 0; i < count + (x != NULL); i++)
        basin_case_output_add(c, gradient[i], "grad.%s", basin_expr_name(from[i]));
}

static void read_hopfield(basin_case *c, basin_block_config *block) {
    char kind[BASIN_CASE_WORD];
    case_word(c, "kind", kind);
    if (!strcmp(kind, "softmax")) {
        block->hopfield = BASIN_HOPFIELD_SOFTMAX;
    } else if (!strncmp(kind, "power", 5)) {
        block->hopfield = BASIN_HOPFIELD_POWER;
        block->power = strtod(kind + 5, NULL);
    } else if (strcmp(kind, "relu") != 0) {
        basin_graph_fail(c->graph, BASIN_BAD_FILE, "kind '%s'; expected relu, powerN or softmax",
                         kind);
    }
}

basin_block_config basin_case_block(basin_case *c, const char *prefix) {
    char wk[96], xi[96];
    snprintf(wk, sizeof wk, "%swk", prefix);
    snprintf(xi, sizeof xi, "%sxi", prefix);
    basin_block_config block = {.heads = basin_case_dim(c, wk, 3, 0),
                                .head_dim = basin_case_dim(c, wk, 3, 1),
                                .dim = basin_case_dim(c, wk, 3, 2),
                                .memories = basin_case_dim(c, xi, 2, 0),
                                .epsilon = basin_case_number(c, "eps"),
                                .learn_beta = true};
    read_hopfield(c, &block);
    return block;
}

int basin_case_steps(basin_case *c) {
    enum { MAX_STEPS = 1000 };
    double steps = basin_case_number(c, "steps");
    if (!(steps >= 0 && steps <= MAX_STEPS)) {
        basin_graph_fail(c->graph, BASIN_BAD_VALUE, "%g steps; expected 0 to %d", steps, MAX_STEPS);
        steps = 0;
    }
    return (int)steps;
}

basin_descent_spec basin_case_descent(basin_case *c) {
    return (basin_descent_spec){.steps = basin_case_steps(c),
                                .alpha = basin_case_number(c, "alpha"),
                                .recompute = c->recompute};
}

basin_expr basin_case_energies(basin_case *c, const basin_block_config *block,
                               const basin_expr *trace, int steps, int64_t batch) {
    basin_expr row[2 * (size_t)(steps + 1)];
    basin_shape one = batch ? BASIN_SHAPE(batch, 1) : BASIN_SHAPE(1);
    int axis = batch ? 1 : 0;
    for (int t = 0, at = 0; t <= steps; t++)
        for (int part = 0; part < 2; part++) {
            bool absent = part ? block->no_hopfield : block->no_attention;
            row[2 * t + part] =
                absent ? basin_full(c->graph, one, 0) : basin_reshape(trace[at++], one);
        }
    basin_expr all = basin_concat(row, 2 * (steps + 1), axis);
    return basin_reshape(all, batch ? BASIN_SHAPE(batch, steps + 1, 2) : BASIN_SHAPE(steps + 1, 2));
}

/* ---- running ---- */

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

/* Gives the parameters their numbers and runs. */
static basin_status compute(basin_case *c, basin_error *error) {
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
    double size = squares(want, NULL), ratio = beside ? sqrt(squares(beside, NULL) / size) : 1;
    *distance = sqrt(squares(&got, want) / (size > 0 ? size : 1)) / (ratio > 1 ? ratio : 1);
    return BASIN_OK;
}

static basin_status compare(basin_verdict *verdict, const basin_case *c,
                            basin_verify_report *report, void *context, basin_error *error) {
    for (size_t i = 0; i < basin_bundle_count(c->bundle); i++) {
        const char *name = basin_bundle_name(c->bundle, i);
        double distance;
        if (strncmp(name, "out.", 4) != 0 && strncmp(name, "grad", 4) != 0) continue;
        BASIN_TRY(measure(&distance, c, name, basin_bundle_at(c->bundle, i), error));
        if (report) report(context, name, distance);
        if (verdict->tensors++ && distance <= verdict->error) continue;
        verdict->error = distance;
        snprintf(verdict->worst, sizeof verdict->worst, "%s", name);
    }
    if (verdict->tensors) return BASIN_OK;
    return basin_fail(error, BASIN_BAD_FILE, "no tensor 'out.*' or 'grad.*' to compare");
}

static basin_status plan_new(basin_case *c, basin_error *error) {
    BASIN_SCRATCH_RAW(basin_expr, output, c->outputs, "a case", error);
    for (size_t i = 0; i < c->outputs; i++) output[i] = c->output[i].value;
    basin_plan_spec spec = {.output = output, .outputs = (int)c->outputs};
    return basin_plan_new(&c->plan, c->store, &spec, error);
}

static basin_status run_case(basin_verdict *verdict, basin_case *c, basin_verify_report *report,
                             void *context, basin_error *error) {
    if (!c->graph) return basin_fail_memory(error, "a case");
    basin_params_begin(&c->params, c->graph);
    case_word(c, "case", verdict->name);
    BASIN_TRY(basin_store_new(&c->store, c->backend, error));
    if (!basin_graph_error(c->graph)) basin_case_build(c, verdict->name);
    BASIN_TRY(basin_graph_check(c->graph, error));
    BASIN_TRY(plan_new(c, error));
    BASIN_TRY(compute(c, error));
    return compare(verdict, c, report, context, error);
}

static void case_free(basin_case *c) {
    free(c->output);
    basin_plan_free(c->plan);
    basin_store_free(c->store);
    basin_params_free(&c->params);
    basin_graph_free(c->graph);
}

void basin_verify_name_file(basin_error *error, const char *path) {
    if (!error || !strncmp(error->text, path, strlen(path))) return;
    basin_error inner = *error;
    basin_fail(error, inner.status, "%s: %.*s", path, BASIN_ERROR_TEXT / 2, inner.text);
}

basin_status basin_verify(basin_verdict *verdict, const char *path, basin_backend *backend,
                          bool recompute, basin_verify_report *report, void *context,
                          basin_error *error) {
    basin_bundle *bundle;
    *verdict = (basin_verdict){0};
    BASIN_TRY(basin_bundle_read(&bundle, path, error));
    basin_case c = {
        .bundle = bundle, .recompute = recompute, .graph = basin_graph_new(), .backend = backend};
    basin_status status = run_case(verdict, &c, report, context, error);
    if (status) basin_verify_name_file(error, path);
    case_free(&c);
    basin_bundle_free(bundle);
    return status;
}
