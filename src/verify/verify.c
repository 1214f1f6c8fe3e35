/* The frame of `basin verify`: reads a golden case, lets its builder declare the expressions, runs
 * them in one plan and compares every result and gradient the file holds. */
#include "verify/verify.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "view/figures.h"

static void fail_memory(basin_case *c) {
    basin_graph_fail(c->graph, BASIN_NO_MEMORY, "%s: out of memory", basin_bundle_path(c->bundle));
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
        char shape[BASIN_SHAPE_TEXT];
        basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "%s: %s is %s; wanted %d axes",
                         basin_bundle_path(c->bundle), full,
                         basin_shape_print(shape, tensor->shape), rank);
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
    if (!text)
        basin_graph_fail(c->graph, BASIN_BAD_FILE, "%s: no '%s' in the metadata",
                         basin_bundle_path(c->bundle), key);
    return text;
}

double basin_case_number(basin_case *c, const char *key) {
    const char *text = meta(c, key);
    char *end = NULL;
    double value = text ? strtod(text, &end) : 0;
    if (text && (end == text || *end))
        basin_graph_fail(c->graph, BASIN_BAD_FILE, "%s: metadata '%s' is '%s'; wanted a number",
                         basin_bundle_path(c->bundle), key, text);
    return value;
}

bool basin_case_flag(basin_case *c, const char *key) {
    const char *text = meta(c, key);
    if (text && strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
        basin_graph_fail(c->graph, BASIN_BAD_FILE,
                         "%s: metadata '%s' is '%s'; wanted true or false",
                         basin_bundle_path(c->bundle), key, text);
    return text && !strcmp(text, "true");
}

const char *basin_case_word(basin_case *c, const char *key, char text[BASIN_CASE_WORD]) {
    const char *value = meta(c, key);
    *text = 0;
    if (!value) return text;
    if (*value == '"') value++;
    snprintf(text, BASIN_CASE_WORD, "%.*s", (int)strcspn(value, "\""), value);
    return text;
}

void basin_case_write(basin_case *c, basin_expr input, basin_tensor *tensor) {
    if (input &&
        basin_array_reserve((void **)&c->input, &c->input_room, c->inputs + 1, sizeof *c->input)) {
        c->input[c->inputs++] = (basin_case_input){input, *tensor};
        *tensor = (basin_tensor){0};
        return;
    }
    if (input) fail_memory(c);
    basin_tensor_free(tensor);
}

basin_expr basin_case_input_add(basin_case *c, const char *name, int rank) {
    const basin_tensor *tensor = basin_case_tensor(c, name, rank);
    if (!tensor) return NULL;
    basin_tensor view = *tensor;
    view.owned = false;
    basin_expr input = basin_input(c->graph, name, tensor->shape);
    basin_case_write(c, input, &view);
    return input;
}

basin_expr basin_case_parameter(basin_case *c, const char *name) {
    const basin_tensor *tensor = basin_case_tensor(c, name, -1);
    if (!tensor) return NULL;
    for (size_t i = 0; i < c->params.count; i++)
        if (!strcmp(basin_expr_name(c->params.param[i].state), name))
            return c->params.param[i].state;
    return basin_param_add(&c->params, "", name, tensor->shape, (basin_init){0});
}

void basin_case_state_add(basin_case *c, const char *name, const char *tensor) {
    if (!basin_array_reserve((void **)&c->state, &c->state_room, c->states + 1, sizeof *c->state)) {
        fail_memory(c);
        return;
    }
    basin_case_state *state = &c->state[c->states++];
    snprintf(state->name, sizeof state->name, "%s", name);
    snprintf(state->tensor, sizeof state->tensor, "%s", tensor);
}

void basin_case_pairs(basin_case *c, int list, int64_t tokens, const int32_t *edge, int64_t count,
                      int flags) {
    basin_error error;
    char name[16] = "pairs";
    if (list) snprintf(name, sizeof name, "pairs%d", list);
    if (basin_pairs_new(&c->pairs[list], tokens, tokens, edge, count, flags, &error)) {
        basin_graph_fail(c->graph, error.status, "%s: %s", basin_bundle_path(c->bundle),
                         error.text);
        return;
    }
    c->pattern[list] = basin_pairs_declare(c->graph, name, tokens, tokens, c->pairs[list].pairs);
}

void basin_case_edges(basin_case *c, int list, int64_t tokens, const char *name, int flags) {
    basin_tensor edges = basin_case_integers(c, name, 2);
    if (edges.data && edges.shape.dim[1] == 2)
        basin_case_pairs(c, list, tokens, edges.data, edges.shape.dim[0], flags);
    else
        basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "%s: in.%s; wanted [edges, 2]",
                         basin_bundle_path(c->bundle), name);
    basin_tensor_free(&edges);
}

void basin_case_output_add(basin_case *c, basin_expr value, const char *format, ...) {
    if (!value) return;
    if (!basin_array_reserve((void **)&c->output, &c->output_room, c->outputs + 1,
                             sizeof *c->output)) {
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

void basin_case_gradients(basin_case *c, basin_expr loss, basin_expr x) {
    size_t count = c->params.count;
    basin_expr *from = basin_array_new(2 * (count + 1), sizeof *from), *gradient;
    if (!from) {
        fail_memory(c);
        return;
    }
    gradient = from + count + 1;
    for (size_t i = 0; i < count; i++) from[i] = c->params.param[i].state;
    if (x) from[count] = x;
    basin_vjp(gradient, loss, NULL, from, (int)count + (x != NULL));
    for (size_t i = 0; i < count; i++)
        basin_case_output_add(c, gradient[i], "grad.%s", basin_expr_name(from[i]));
    if (x) basin_case_output_add(c, gradient[count], "grad.x0");
    free((void *)from);
}

static void read_hopfield(basin_case *c, basin_block_config *block) {
    char kind[BASIN_CASE_WORD];
    basin_case_word(c, "kind", kind);
    if (!strcmp(kind, "softmax")) {
        block->hopfield = BASIN_HOPFIELD_SOFTMAX;
    } else if (!strncmp(kind, "power", 5)) {
        block->hopfield = BASIN_HOPFIELD_POWER;
        block->power = strtod(kind + 5, NULL);
    } else if (strcmp(kind, "relu") != 0) {
        basin_graph_fail(c->graph, BASIN_BAD_FILE, "%s: kind '%s'; wanted relu, powerN or softmax",
                         basin_bundle_path(c->bundle), kind);
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
    enum { MOST = 1000 };
    double steps = basin_case_number(c, "steps");
    if (!(steps >= 0 && steps <= MOST)) {
        basin_graph_fail(c->graph, BASIN_BAD_VALUE, "%s: %g steps; wanted 0 to %d",
                         basin_bundle_path(c->bundle), steps, MOST);
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
                absent ? basin_fill(c->graph, one, 0) : basin_reshape(trace[at++], one);
        }
    basin_expr all = basin_concat(row, 2 * (steps + 1), axis);
    return basin_reshape(all, batch ? BASIN_SHAPE(batch, steps + 1, 2) : BASIN_SHAPE(steps + 1, 2));
}

/* ---- running ---- */

static const struct {
    const char *prefix;
    void (*build)(basin_case *c);
} kinds[] = {
    {"block_", basin_case_build_block},
    {"image", basin_case_build_image},
    {"anomaly", basin_case_build_anomaly},
    {"graph", basin_case_build_graphs},
    {"lagrangians", basin_case_build_lagrangians},
    {"ham", basin_case_build_ham},
};

static basin_status build(basin_case *c, const char *name, basin_error *error) {
    size_t i = 0, count = sizeof kinds / sizeof *kinds;
    while (i < count && strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)) != 0) i++;
    if (!basin_graph_error(c->graph) && !basin_case_build_zoo(c, name)) {
        if (i < count)
            kinds[i].build(c);
        else
            basin_graph_fail(c->graph, BASIN_UNSUPPORTED,
                             "%s: a case '%s'; wanted one that the oracle makes",
                             basin_bundle_path(c->bundle), name);
    }
    const basin_error *found = basin_graph_error(c->graph);
    if (!found) return BASIN_OK;
    if (error) *error = *found;
    return found->status;
}

static basin_status fail_shape(const basin_case *c, const char *name, basin_shape found,
                               basin_shape wanted, basin_error *error) {
    char a[BASIN_SHAPE_TEXT], b[BASIN_SHAPE_TEXT];
    return basin_fail(error, BASIN_BAD_SHAPE, "%s: tensor '%s' is %s; wanted %s",
                      basin_bundle_path(c->bundle), name, basin_shape_print(a, found),
                      basin_shape_print(b, wanted));
}

/* Where there is a parameter of that name, the tensor must have its shape. */
static basin_status check_parameter(const basin_case *c, const basin_tensor *tensor,
                                    const char *name, basin_error *error) {
    char full[96];
    for (size_t i = 0; i < c->params.count; i++) {
        basin_expr state = c->params.param[i].state;
        if (strcmp(basin_expr_name(state), name) != 0) continue;
        snprintf(full, sizeof full, "in.%s", name);
        if (!basin_shape_equal(basin_expr_shape(state), tensor->shape))
            return fail_shape(c, full, tensor->shape, basin_expr_shape(state), error);
    }
    return BASIN_OK;
}

static basin_status write_state(basin_case *c, basin_store *store, const char *name,
                                const char *from, basin_error *error) {
    const basin_tensor *tensor = basin_case_tensor(c, from, -1);
    if (tensor && check_parameter(c, tensor, name, error)) return BASIN_BAD_SHAPE;
    if (tensor) return basin_store_write(store, name, tensor, error);
    return basin_fail(error, BASIN_BAD_FILE, "%s: no tensor 'in.%s'", basin_bundle_path(c->bundle),
                      from);
}

/* Gives the states and inputs their numbers and runs. */
static basin_status compute(basin_case *c, basin_plan *plan, basin_error *error) {
    basin_store *store = c->store;
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < c->params.count && !status; i++) {
        const char *name = basin_expr_name(c->params.param[i].state);
        status = write_state(c, store, name, name, error);
    }
    for (size_t i = 0; i < c->states && !status; i++)
        status = write_state(c, store, c->state[i].name, c->state[i].tensor, error);
    for (size_t i = 0; i < c->inputs && !status; i++)
        status = basin_plan_write(plan, c->input[i].input, &c->input[i].tensor, error);
    for (int i = 0; i < BASIN_CASE_LISTS && !status; i++)
        if (c->pattern[i].row)
            status = basin_pairs_write(plan, &c->pattern[i], &c->pairs[i], error);
    return status ? status : basin_plan_run(plan, error);
}

static const basin_case_output *find_output(const basin_case *c, const char *name) {
    for (size_t i = 0; i < c->outputs; i++)
        if (!strcmp(c->output[i].name, name)) return &c->output[i];
    return NULL;
}

/* The relative error, as basin_case_output has it. */
static double error_of(const basin_case *c, const char *name, const basin_tensor *got,
                       const basin_tensor *want) {
    double distance = basin_tensor_distance(got, want);
    const basin_case_output *output = find_output(c, name);
    const basin_tensor *beside =
        output && *output->beside ? basin_bundle_find(c->bundle, output->beside) : NULL;
    double ratio = beside ? basin_tensor_norm(beside) / basin_tensor_norm(want) : 1;
    return ratio > 1 ? distance / ratio : distance;
}

/* What the case computed for `name`. A gradient nobody computes is that of a parameter which an
 * ablation left out: zeros. */
static basin_status read_result(basin_tensor *result, basin_case *c, basin_plan *plan,
                                const char *name, basin_shape shape, basin_error *error) {
    basin_status status = basin_tensor_new(result, BASIN_F64, shape, error);
    const basin_case_output *output = find_output(c, name);
    if (!status && output && !basin_shape_equal(basin_expr_shape(output->value), shape))
        return fail_shape(c, name, shape, basin_expr_shape(output->value), error);
    if (!status && output) return basin_plan_read(plan, output->value, result, error);
    if (!status && strncmp(name, "grad.", 5) != 0)
        status = basin_fail(error, BASIN_UNSUPPORTED, "%s: tensor '%s' is not one that is computed",
                            basin_bundle_path(c->bundle), name);
    return status;
}

typedef struct listener {
    void (*report)(void *context, const char *tensor, double error);
    void *context;
} listener;

static basin_status compare(basin_verdict *verdict, basin_case *c, basin_plan *plan,
                            const listener *to, basin_error *error) {
    basin_status status = BASIN_OK;
    for (size_t i = 0; i < basin_bundle_count(c->bundle) && !status; i++) {
        const char *name = basin_bundle_name(c->bundle, i);
        const basin_tensor *want = basin_bundle_at(c->bundle, i);
        basin_tensor got = {0};
        if (strncmp(name, "out.", 4) != 0 && strncmp(name, "grad", 4) != 0) continue;
        status = read_result(&got, c, plan, name, want->shape, error);
        if (!status) {
            double distance = error_of(c, name, &got, want);
            if (to->report) to->report(to->context, name, distance);
            if (verdict->tensors++ == 0 || !(distance <= verdict->error)) {
                verdict->error = distance;
                snprintf(verdict->worst, sizeof verdict->worst, "%s", name);
            }
        }
        basin_tensor_free(&got);
    }
    if (!status && verdict->tensors == 0)
        status = basin_fail(error, BASIN_BAD_FILE, "%s: no tensor 'out.*' or 'grad.*' to compare",
                            basin_bundle_path(c->bundle));
    return status;
}

static basin_status run_case(basin_verdict *verdict, basin_case *c, const listener *to,
                             basin_error *error) {
    basin_plan *plan = NULL;
    basin_expr *output = basin_array_new(c->outputs, sizeof *output);
    basin_status status = output ? BASIN_OK : basin_fail(error, BASIN_NO_MEMORY, "out of memory");
    if (!status) {
        for (size_t i = 0; i < c->outputs; i++) output[i] = c->output[i].value;
        basin_plan_spec spec = {.output = output, .outputs = (int)c->outputs};
        status = basin_plan_new(&plan, c->store, &spec, error);
    }
    if (!status) status = compute(c, plan, error);
    if (!status) status = compare(verdict, c, plan, to, error);
    basin_plan_free(plan);
    free((void *)output);
    return status;
}

static void case_free(basin_case *c) {
    for (size_t i = 0; i < c->inputs; i++) basin_tensor_free(&c->input[i].tensor);
    free(c->input);
    free(c->state);
    free(c->output);
    basin_store_free(c->store);
    for (int i = 0; i < BASIN_CASE_LISTS; i++) basin_pairs_free(&c->pairs[i]);
    basin_params_free(&c->params);
    basin_graph_free(c->graph);
}

/* Puts the path before a message of the library, which knows no files. */
static void name_file(basin_error *error, const char *path) {
    if (!error || !strncmp(error->text, path, strlen(path))) return;
    basin_error inner = *error;
    basin_fail(error, inner.status, "%s: %.*s", path, BASIN_ERROR_TEXT / 2, inner.text);
}

basin_status basin_verify(basin_verdict *verdict, const char *path, basin_backend *backend,
                          bool recompute,
                          void (*report)(void *context, const char *tensor, double error),
                          void *context, basin_error *error) {
    basin_bundle *bundle;
    *verdict = (basin_verdict){0};
    basin_status status = basin_bundle_read(&bundle, path, error);
    if (status) return status;
    basin_case c = {
        .bundle = bundle, .recompute = recompute, .graph = basin_graph_new(), .backend = backend};
    if (c.graph) {
        basin_params_begin(&c.params, c.graph);
        basin_case_word(&c, "case", verdict->name);
        status = basin_store_new(&c.store, backend, error);
        if (!status) status = build(&c, verdict->name, error);
        if (!status) status = run_case(verdict, &c, &(listener){report, context}, error);
        if (status) name_file(error, path);
    } else {
        status = basin_fail(error, BASIN_NO_MEMORY, "%s: out of memory", path);
    }
    case_free(&c);
    basin_bundle_free(bundle);
    return status;
}
