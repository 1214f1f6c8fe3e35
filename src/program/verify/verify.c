/* What builders of golden cases share: tensors and metadata of the file, results by name. */
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

const char *basin_case_word(basin_case *c, const char *key, char text[BASIN_CASE_WORD]) {
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
    basin_case_word(c, "kind", kind);
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
    double steps = basin_case_number(c, "steps");
    if (!(steps >= 0 && steps <= BASIN_CASE_STEPS)) {
        basin_graph_fail(c->graph, BASIN_BAD_VALUE, "%g steps; expected 0 to %d", steps,
                         BASIN_CASE_STEPS);
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
