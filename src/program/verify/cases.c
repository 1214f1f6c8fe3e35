/* The golden cases, a row each. Models of the zoo: what the file holds beside energies, the end,
 * half the squared distance to "in.target" as the loss, and gradients. The block, the models of the
 * tasks, the Lagrangians and a network have other builders. */
#include <cjson/cJSON.h>
#include <stdarg.h>

#include "base/info.h"
#include "base/pairs.h"
#include "base/shape.h"
#include "base/try.h"
#include "basin/ham.h"
#include "basin/tasks/networks.h"
#include "basin/zoo.h"
#include "program/verify/verify.h"
#include "tasks/nodes/anomaly.h"
#include "tasks/pictures/net.h"

enum { MAX_STEPS = 1000 };

/* ---- what builders share: tensors and metadata of the file, results by name ---- */

static void fail_memory(basin_case *c) {
    basin_graph_fail(c->graph, BASIN_NO_MEMORY, "out of memory");
}

/* The tensor "in.NAME", or NULL. `rank` below 0 takes any. */
static const basin_tensor *in_tensor(basin_case *c, const char *name, int rank) {
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

/* Its axis; 0 where there is no such tensor. */
static int64_t in_dim(basin_case *c, const char *name, int rank, int axis) {
    const basin_tensor *tensor = in_tensor(c, name, rank);
    return tensor ? tensor->shape.dim[axis] : 0;
}

/* A copy as int32_t; data is NULL where there is no such tensor. Free it. */
static basin_tensor in_integers(basin_case *c, const char *name, int rank) {
    const basin_tensor *tensor = in_tensor(c, name, rank);
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

static double meta_number(basin_case *c, const char *key) {
    const char *text = meta(c, key);
    char *end = NULL;
    double value = text ? strtod(text, &end) : 0;
    if (text && (!strcmp(text, "true") || !strcmp(text, "false"))) return *text == 't';
    if (text && (end == text || *end))
        basin_graph_fail(c->graph, BASIN_BAD_FILE, "metadata '%s' is '%s'; expected a number", key,
                         text);
    return value;
}

static bool meta_flag(basin_case *c, const char *key) { return meta_number(c, key) != 0; }

/* A string of the metadata, which are JSON, unquoted into `text`. */
static const char *meta_word(basin_case *c, const char *key, char text[BASIN_CASE_WORD]) {
    const char *value = meta(c, key);
    *text = 0;
    if (!value) return text;
    if (*value == '"') value++;
    snprintf(text, BASIN_CASE_WORD, "%.*s", (int)strcspn(value, "\""), value);
    return text;
}

/* A state with the shape and the numbers of "in.NAME", not differentiated by. */
static basin_expr in_input(basin_case *c, const char *name, int rank) {
    const basin_tensor *tensor = in_tensor(c, name, rank);
    basin_error error;
    if (!tensor) return NULL;
    if (basin_store_write(c->store, name, tensor, &error))
        return basin_graph_fail(c->graph, error.status, "%s", error.text);
    return basin_state(c->graph, name, tensor->shape);
}

/* The same as a parameter, once for each name. */
static basin_expr in_parameter(basin_case *c, const char *name) {
    const basin_tensor *tensor = in_tensor(c, name, -1);
    if (!tensor) return NULL;
    for (size_t i = 0; i < c->params.count; i++)
        if (!strcmp(basin_expr_name(c->params.param[i].state), name))
            return c->params.param[i].state;
    return basin_param_add(&c->params, "", name, tensor->shape, (basin_init){0});
}

/* The integers of "in.NAME" [n], from 0 to count - 1. */
static basin_expr in_index(basin_case *c, const char *name, int64_t count) {
    basin_tensor number = in_integers(c, name, 1);
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

static basin_expr constant_of(basin_case *c, const int32_t *number, int64_t count) {
    basin_tensor tensor = basin_tensor_view(number, BASIN_I32, BASIN_SHAPE(count));
    return basin_constant(c->graph, &tensor);
}

/* A list of pairs among tokens, from edges [count, 2], and its constants; free the list. */
static basin_pattern pairs_of(basin_case *c, basin_pairs *p, int64_t tokens, const int32_t *edge,
                              int64_t count, int flags) {
    basin_error error;
    *p = (basin_pairs){0};
    if (basin_graph_error(c->graph)) return BASIN_ALL_PAIRS;
    if (basin_pairs_new(p, tokens, tokens, edge, count, flags, &error)) {
        basin_graph_fail(c->graph, error.status, "%s", error.text);
        return BASIN_ALL_PAIRS;
    }
    return (basin_pattern){.row = constant_of(c, p->row, tokens + 1),
                           .key = constant_of(c, p->key, p->pairs),
                           .column = constant_of(c, p->column, tokens + 1),
                           .query = constant_of(c, p->query, p->pairs),
                           .pair = constant_of(c, p->pair, p->pairs)};
}

/* The expression that must equal the tensor NAME, "out." or "grad." included. */
__attribute__((format(printf, 3, 4))) static void add_output(basin_case *c, basin_expr value,
                                                             const char *format, ...) {
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

/* The same for a result that the oracle made as a difference of two larger numbers, and whose
 * digits end where theirs do: its error is relative to the tensor BESIDE where that is larger. */
static void add_difference(basin_case *c, basin_expr value, const char *name, const char *beside) {
    size_t before = c->outputs;
    add_output(c, value, "%s", name);
    if (c->outputs == before) return;
    basin_case_output *output = &c->output[before];
    snprintf(output->beside, sizeof output->beside, "%s", beside);
}

/* "out.loss", and its gradients by every parameter and by `x` ("grad.x0") if not NULL. */
static void add_loss(basin_case *c, basin_expr loss, basin_expr x) {
    size_t count = c->params.count;
    basin_expr from[count + 1], gradient[count + 1];
    add_output(c, loss, "out.loss");
    for (size_t i = 0; i < count; i++) from[i] = c->params.param[i].state;
    from[count] = x;
    basin_vjp(gradient, loss, NULL, from, (int)count + (x != NULL));
    for (size_t i = 0; i < count + (x != NULL); i++)
        add_output(c, gradient[i], "grad.%s", basin_expr_name(from[i]));
}

static void read_hopfield(basin_case *c, basin_block_config *block) {
    char kind[BASIN_CASE_WORD];
    meta_word(c, "kind", kind);
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

static basin_block_config read_block(basin_case *c, const char *prefix) {
    char wk[96], xi[96];
    snprintf(wk, sizeof wk, "%swk", prefix);
    snprintf(xi, sizeof xi, "%sxi", prefix);
    basin_block_config block = {.heads = in_dim(c, wk, 3, 0),
                                .head_dim = in_dim(c, wk, 3, 1),
                                .dim = in_dim(c, wk, 3, 2),
                                .memories = in_dim(c, xi, 2, 0),
                                .epsilon = meta_number(c, "eps"),
                                .learn_beta = true};
    read_hopfield(c, &block);
    return block;
}

static int read_steps(basin_case *c) {
    double steps = meta_number(c, "steps");
    if (!(steps >= 0 && steps <= MAX_STEPS)) {
        basin_graph_fail(c->graph, BASIN_BAD_VALUE, "%g steps; expected 0 to %d", steps, MAX_STEPS);
        steps = 0;
    }
    return (int)steps;
}

static basin_descent_spec read_descent(basin_case *c) {
    return (basin_descent_spec){
        .steps = read_steps(c), .alpha = meta_number(c, "alpha"), .recompute = c->recompute};
}

/* Energies [steps + 1, 2] (with a batch [B, steps + 1, 2]) of a trace, zero for an absent term. */
static basin_expr energies_of(basin_case *c, const basin_block_config *block,
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

/* ---- models of the zoo, by the rows of its table: each tensor and setting is read from the file,
 * under the name that it has there ---- */

enum { VALUES = 32 };

typedef struct specimen {
    basin_case *c;
    const basin_zoo_model *model;
    const char *prefix;            /* of names in the file */
    basin_zoo_value value[VALUES]; /* those that are set before are not read */
    int values;
    char word[BASIN_CASE_WORD]; /* of a choice */
    const basin_zoo *zoo;
    basin_expr start, x; /* as given, and where the descent begins */
} specimen;

const basin_zoo_model *basin_case_model(const char *name) {
    const basin_zoo_model *model;
    for (int i = 0; (model = basin_zoo_at(i)) && strcmp(model->name, name) != 0;) i++;
    return model;
}

static specimen specimen_of(basin_case *c, const char *model) {
    return (specimen){.c = c, .model = basin_case_model(model), .prefix = ""};
}

static const basin_zoo_value *find(const basin_zoo_value *value, const char *name) {
    while (value && value->name && strcmp(value->name, name) != 0) value++;
    return value && value->name ? value : NULL;
}

static void set(specimen *s, basin_zoo_value value) {
    if (s->values < VALUES - 1)
        s->value[s->values++] = value;
    else
        basin_graph_fail(s->c->graph, BASIN_BAD_VALUE, "too many values for a model");
}

/* Golden files have the names of their oracle. */
static const char *const alias[][2] = {{"epsilon", "eps"}, {"sphere", "n"},    {"feed", "ff"},
                                       {"phase", "b"},     {"context", "ctx"}, {"alpha", "dt"},
                                       {"alpha", "eta"}};

/* Reads a tensor, or a setting (`row` NULL), of that name in the file; false where it has none. */
static bool read_value(specimen *s, const char *name, const char *other,
                       const basin_zoo_tensor *row) {
    char full[BASIN_CASE_WORD + 8];
    snprintf(full, sizeof full, "in.%s%s", s->prefix, other);
    const basin_tensor *data = row ? basin_bundle_find(s->c->bundle, full) : NULL;
    const char *text = row ? NULL : basin_bundle_meta(s->c->bundle, other);
    basin_zoo_value value = {.name = name};
    if (row && row->role == BASIN_ZOO_EDGES)
        value.data = data;
    else if (data && row->role == BASIN_ZOO_PARAMETER)
        value.expr = in_parameter(s->c, full + 3);
    else if (data)
        value.expr = in_input(s->c, full + 3, -1);
    else if (text && *text != '"')
        value.number = strcmp(text, "true") ? strtod(text, NULL) : 1;
    else if (text) {
        snprintf(s->word, sizeof s->word, "%.*s", (int)strcspn(text + 1, "\""), text + 1);
        value.choice = s->word;
    }
    if (row && row->role == BASIN_ZOO_STATE && data) s->start = value.expr;
    if (data || text) set(s, value);
    return data || text;
}

static void read_any(specimen *s, const char *name, const basin_zoo_tensor *row) {
    if (find(s->value, name) || find(s->model->variant, name) || strchr(name, '#')) return;
    bool found = read_value(s, name, name, row);
    for (size_t i = 0; i < sizeof alias / sizeof *alias && !found; i++)
        found = !strcmp(alias[i][0], name) && read_value(s, name, alias[i][1], row);
    if (!found && row && !row->optional && row->role != BASIN_ZOO_STATE)
        basin_graph_fail(s->c->graph, BASIN_BAD_FILE, "no tensor in.%s for this model", name);
}

/* Reads all values and builds the model; errors are in the graph. */
static void specimen_build(specimen *s) {
    const basin_zoo_kind *kind = s->model->kind;
    for (const basin_zoo_tensor *row = kind->tensor; row->name; row++)
        if (!strcmp(row->name, "start")) /* where the descent begins */
            set(s, (basin_zoo_value){.name = "start", .expr = s->start});
        else
            read_any(s, row->name, row);
    for (const basin_zoo_setting *row = kind->setting; row && row->name; row++)
        read_any(s, row->name, NULL);
    read_any(s, "alpha", NULL);
    s->zoo = basin_zoo_build(s->c->graph, s->model->name, s->value, s->values);
    if (s->zoo) s->x = basin_zoo_output(s->zoo, "begin", s->start);
}

/* The same model with another number for one or two tensors or settings. */
static const basin_zoo *built_with(const specimen *s, const char *name, const char *second,
                                   double number) {
    specimen other = *s;
    const char *const names[] = {name, second};
    for (int i = 0; i < 2 && names[i]; i++) {
        basin_zoo_value value = {.name = names[i], .number = number};
        const basin_zoo_value *found = find(s->value, names[i]);
        if (found)
            other.value[found - s->value] = value;
        else
            set(&other, value);
    }
    return basin_zoo_build(s->c->graph, s->model->name, other.value, other.values);
}

/* Half the squared distance to the target. */
static basin_expr loss_of(basin_case *c, basin_expr end) {
    basin_expr apart = basin_sub(end, in_input(c, "target", -1));
    return basin_scale(basin_sum_all(basin_square(apart)), 0.5);
}

/* The end, and the loss with its gradients. */
static basin_expr finish(basin_case *c, basin_expr end, basin_expr x) {
    basin_expr loss = loss_of(c, end);
    add_output(c, end, "out.xT");
    add_loss(c, loss, x);
    return loss;
}

/* `steps` published steps of a model from x; `trace` as in basin_descend. */
static basin_expr descend(const basin_case *c, const basin_zoo *zoo, basin_expr x, int steps,
                          basin_expr *trace) {
    basin_descent_spec spec = {.steps = steps,
                               .alpha = zoo->alpha,
                               .recompute = c->recompute,
                               .substep = zoo->substep,
                               .substeps = zoo->substeps};
    return basin_descend(&zoo->energy, x, &spec, trace);
}

/* The sums of energies over their rows, [steps + 1]; or by term, [steps + 1, terms]. */
static void add_energies(basin_case *c, basin_expr *trace, int terms, int steps, bool by_term) {
    basin_expr total[MAX_STEPS + 1];
    for (int t = 0; t <= steps; t++)
        for (int p = 0; p < terms; p++) {
            basin_expr *one = &trace[t * terms + p];
            *one = basin_sum_all(*one);
            total[t] = p ? basin_add(total[t], *one) : *one;
        }
    basin_expr all = basin_stack(total, steps + 1, 0);
    if (by_term)
        all = basin_reshape(basin_stack(trace, (steps + 1) * terms, 0),
                            BASIN_SHAPE(steps + 1, terms));
    add_output(c, all, "out.energy");
}

/* ---- models whose energies are summed, with their outputs by name ---- */

static const struct {
    const char *name, *output;
    bool end, sum;
} outputs[] = {{"out.p0", "recall", false, false},
               {"out.T", "sum", false, false},
               {"out.exact_energy0", "exact_energy", false, true},
               {"out.support0", "support", false, false},
               {"out.supportT", "support", true, false}};

static void add_descent(basin_case *c, specimen *s, bool by_term) {
    basin_expr trace[3 * (MAX_STEPS + 1)];
    int steps = read_steps(c);
    basin_expr end = descend(c, s->zoo, s->x, steps, trace);
    if (!end) return;
    add_energies(c, trace, s->zoo->energy.terms, steps, by_term);
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        const char *names = s->model->kind->outputs;
        if (!names || !strstr(names, outputs[i].output)) continue;
        basin_expr value = basin_zoo_output(s->zoo, outputs[i].output, outputs[i].end ? end : s->x);
        add_output(c, outputs[i].sum ? basin_sum_all(value) : value, "%s", outputs[i].name);
    }
    finish(c, end, s->start);
}

static void totals(basin_case *c, specimen *s) { add_descent(c, s, false); }
static void by_term(basin_case *c, specimen *s) { add_descent(c, s, true); }

/* ---- transformers: each term by itself, without its factor; forces ---- */

static basin_expr term_force(const basin_energy *energy, basin_expr g, int term) {
    basin_expr at = basin_variable(g);
    return basin_neg(basin_grad(basin_energy_term(energy, at, term), at));
}

/* The tokens at the end. Energies are the terms of `count` models at the tokens of every step,
 * [steps + 1, 2 count], or by token [steps + 1, N, 2 count]. */
static basin_expr add_terms(basin_case *c, specimen *s, const basin_zoo *const *model, int count) {
    basin_expr row[4 * (MAX_STEPS + 1)], x = s->x;
    int steps = read_steps(c), columns = 2 * count;
    if (basin_graph_error(c->graph)) return NULL;
    for (int t = 0; t <= steps; t++) { /* what descents share is built once */
        x = descend(c, s->zoo, s->x, t, NULL);
        for (int i = 0; i < columns; i++) {
            const basin_energy *energy = &model[i / 2]->energy;
            row[columns * t + i] =
                basin_energy_term(energy, basin_energy_activation(energy, x), i % 2);
        }
    }
    basin_expr all = basin_stack(row, columns * (steps + 1), 0);
    bool tokens = basin_expr_shape(all).rank > 1;
    all = basin_reshape(all, tokens ? BASIN_SHAPE(steps + 1, columns, -1)
                                    : BASIN_SHAPE(steps + 1, columns));
    add_output(c, tokens ? basin_transpose(all) : all, "out.energy");
    basin_expr g = basin_energy_activation(&model[0]->energy, s->x);
    add_output(c, g, "out.g0");
    add_output(c, term_force(&model[0]->energy, g, 0), "out.force_att0");
    add_output(c, term_force(&model[0]->energy, g, 1), "out.force_ff0");
    return x;
}

static basin_expr add_nrgpt(basin_case *c, specimen *s) {
    const basin_zoo *plain = built_with(s, "scale", NULL, 1);
    return plain ? add_terms(c, s, &plain, 1) : NULL;
}

static void nrgpt(basin_case *c, specimen *s) { finish(c, add_nrgpt(c, s), s->start); }

/* x W' + b of parameters by name. */
static basin_expr affine(basin_case *c, basin_expr x, const char *weight, const char *bias) {
    basin_expr w = in_parameter(c, weight), b = in_parameter(c, bias);
    return basin_add(basin_matmul_t(x, false, w, true), b);
}

static basin_expr norm(basin_case *c, basin_expr x, const char *gain, const char *bias) {
    basin_expr a = in_parameter(c, gain), b = in_parameter(c, bias);
    basin_expr zero = basin_full(c->graph, basin_expr_shape(b), 0);
    basin_expr one = basin_scalar(c->graph, 1);
    return basin_add(basin_mul(basin_layernorm(x, one, zero, meta_number(c, "eps")), a), b);
}

static void language_model(basin_case *c, specimen *s) {
    int64_t words = in_dim(c, "tok", 2, 0);
    basin_expr ids = in_index(c, "ids", words), label = in_index(c, "label", words);
    s->x = basin_add(basin_take(in_parameter(c, "tok"), 0, ids), in_parameter(c, "pos"));
    basin_expr end = add_nrgpt(c, s);
    basin_expr logits = affine(c, norm(c, end, "lnf_w", "lnf_b"), "head_w", "head_b");
    add_output(c, logits, "out.logits");
    add_loss(c, basin_mean_all(basin_cross_entropy_labels(logits, label)), NULL);
}

static void hyperset(basin_case *c, specimen *s) {
    const basin_zoo *model[] = {s->zoo, built_with(s, "gain_w", "gain_m", 1)};
    if (!model[1]) return;
    basin_expr end = add_terms(c, s, model, 2);
    const basin_zoo *exact = built_with(s, s->model->kind->exact, NULL, 0);
    if (!exact) return;
    basin_expr down = basin_energy_force(&exact->energy, s->x);
    add_output(c, basin_neg(down), "out.true_gradient0");
    finish(c, end, s->start);
}

/* ---- CRATE: blocks one after the other ---- */

static void crate(basin_case *c) {
    basin_expr x = in_input(c, "x0", 2), end = x, row[MAX_STEPS];
    int blocks = (int)meta_number(c, "blocks");
    if (blocks < 1 || blocks > MAX_STEPS)
        basin_graph_fail(c->graph, BASIN_BAD_VALUE, "%d blocks; expected 1 to %d", blocks,
                         MAX_STEPS);
    for (int i = 0; i < blocks && !basin_graph_error(c->graph); i++) {
        char prefix[BASIN_CASE_WORD];
        specimen block = specimen_of(c, "crate");
        basin_expr trace[4];
        snprintf(prefix, sizeof prefix, "block%d.", i);
        block.prefix = prefix;
        set(&block, (basin_zoo_value){.name = "x", .expr = end});
        specimen_build(&block);
        if (!block.zoo) return;
        end = descend(c, block.zoo, basin_zoo_output(block.zoo, "y", end), 1, trace);
        for (int k = 0; k < 4; k++) trace[k] = basin_sum_all(trace[k]);
        basin_expr both[] = {basin_add(trace[0], trace[1]), basin_add(trace[2], trace[3])};
        row[i] = basin_stack(both, 2, 0);
    }
    if (basin_graph_error(c->graph)) return;
    add_output(c, basin_stack(row, blocks, 0), "out.energy");
    finish(c, end, x);
}

/* ---- the Hopfield layer ---- */

/* Heads [H, rows, Y] of rows through a norm and a linear map. */
static basin_expr heads_of(basin_case *c, basin_expr a, const char *const name[4]) {
    int64_t heads = (int64_t)meta_number(c, "heads"), rows = basin_expr_shape(a).dim[0];
    basin_expr y = affine(c, norm(c, a, name[0], name[1]), name[2], name[3]);
    return basin_permute(basin_reshape(y, BASIN_SHAPE(rows, heads, -1)), (int[]){1, 0, 2});
}

static void hopfield_layer(basin_case *c) {
    static const char *const name[3][4] = {{"state_gain", "state_bias", "wq", "bq"},
                                           {"stored_gain", "stored_bias", "wk", "bk"},
                                           {"value_gain", "value_bias", "wv", "bv"}};
    basin_expr trace[MAX_STEPS + 1];
    specimen s = specimen_of(c, "hopfield");
    int steps = read_steps(c);
    basin_expr x = in_input(c, "x0", 2), y = in_parameter(c, "y");
    basin_expr q = heads_of(c, x, name[0]), k = heads_of(c, y, name[1]);
    set(&s, (basin_zoo_value){.name = "xi", .expr = k});
    set(&s, (basin_zoo_value){.name = "x0", .expr = q});
    set(&s, (basin_zoo_value){.name = "beta", .number = meta_number(c, "beta")});
    specimen_build(&s);
    if (!s.zoo) return;
    q = descend(c, s.zoo, q, steps, trace);
    if (!q) return;
    add_energies(c, trace, 1, steps, false);
    basin_expr share = basin_zoo_output(s.zoo, "recall", q);
    basin_expr out = basin_einsum("hns,hsd->nhd", share, heads_of(c, y, name[2]));
    out = basin_reshape(out, BASIN_SHAPE(basin_expr_shape(x).dim[0], -1));
    finish(c, affine(c, out, "wo", "bo"), x);
}

/* ---- energy-based transformers ---- */

/* The mean over the steps of the cross entropy; with `stop`, no gradient between steps. */
static basin_expr ebt_loss(const basin_case *c, const basin_zoo *zoo, basin_expr *y,
                           basin_expr label, int steps, bool stop, basin_expr *trace) {
    basin_expr total = NULL;
    for (int t = 0; t < steps; t++) {
        basin_expr p = basin_softmax(stop ? basin_stop_gradient(*y) : *y, -1), both[2];
        *y = descend(c, zoo, p, 1, both);
        trace[t] = basin_sum_all(both[0]);
        basin_expr part = basin_mean_all(basin_cross_entropy_labels(*y, label));
        total = total ? basin_add(total, part) : part;
    }
    return basin_scale(total, 1.0 / steps);
}

static void ebt(basin_case *c, specimen *s) {
    enum { MAX = 8 };
    basin_expr trace[MAX_STEPS], other[MAX_STEPS], from[MAX], gradient[MAX];
    basin_expr y = s->start, free_y = y, label = in_index(c, "label", in_dim(c, "e", 2, 1));
    int steps = read_steps(c), count = 0;
    for (int i = 0; i < s->values && count < MAX; i++)
        if (s->value[i].expr) from[count++] = s->value[i].expr;
    if (!y || steps < 1 || basin_graph_error(c->graph)) return;
    basin_expr loss = ebt_loss(c, s->zoo, &y, label, steps, true, trace);
    basin_vjp(gradient, ebt_loss(c, s->zoo, &free_y, label, steps, false, other), NULL, from,
              count);
    for (int i = 0; i < count; i++)
        add_output(c, gradient[i], "gradfull.%s", basin_expr_name(from[i]));
    add_output(c, y, "out.yT");
    add_output(c, basin_stack(trace, steps, 0), "out.energy");
    add_loss(c, loss, NULL);
}

/* ---- fixed points ---- */

/* The fixed point of u - x - dE/dg, to what the backend's numbers can give. The curvature at the
 * minima of these cases is up to 7, and a longer step circles around some of them. */
static basin_expr fixed_point(basin_case *c, const basin_energy *energy, basin_expr u) {
    bool twice = basin_backend_info_of(c->backend).dtype == BASIN_F64;
    basin_descent_spec spec = {
        .steps = 20000,
        .alpha = 0.1,
        .implicit = {.on = true, .until = twice ? 1e-14 : 4e-6, .accuracy = twice ? 1e-13 : 1e-5}};
    return u ? basin_descend(energy, u, &spec, NULL) : NULL;
}

/* ---- an Energy Transformer held by an input ---- */

/* E(norm(x)), by x: with the pull of the input, x is a minimum of |x - u|^2 / 2 + E. */
static basin_expr by_tokens(const void *inner, basin_expr x) {
    return basin_energy_total(inner, basin_energy_activation(inner, x));
}

static void implicit(basin_case *c) {
    basin_block block;
    basin_expr u = in_parameter(c, "u");
    basin_block_config config = read_block(c, "");
    if (!u || basin_block_declare(&block, &c->params, "", &config)) return;
    basin_block_bound bound = {.block = &block, .pattern = &BASIN_OTHER_PAIRS};
    const basin_energy inner = basin_block_energy(&bound);
    const basin_energy whole = {BASIN_TERMS({"held", by_tokens, &inner})};
    const basin_energy *energy = meta_flag(c, "minimum") ? &whole : &inner;
    basin_expr x = fixed_point(c, energy, u);
    basin_expr loss = loss_of(c, x);
    if (!x || !loss) return;
    basin_expr at = basin_variable(x);
    basin_expr force = basin_energy_force(energy, basin_energy_activation(energy, at));
    basin_expr residual = basin_sub(basin_sub(at, u), force);
    add_output(c, x, "out.x");
    add_output(c, basin_reshape(by_tokens(&inner, x), BASIN_SHAPE(1)), "out.energy");
    add_output(c, basin_jacobian(residual, at), "out.jacobian");
    add_difference(c, basin_max(basin_abs(residual), 0, basin_expr_shape(residual).rank),
                   "out.residual", "out.x");
    add_loss(c, loss, NULL);
}

/* ---- equilibrium propagation ---- */

/* The energy without |s|^2 / 2, which is the pull of zero. */
static basin_expr without_pull(const void *context, basin_expr s) {
    basin_expr half = basin_scale(basin_sum(basin_square(s), -1, 1), 0.5);
    return basin_sub(basin_energy_total(context, s), half);
}

/* (dE/dp at one state - dE/dp at the other) / by, the mean over the batch; the states are held. */
static void add_estimates(basin_case *c, const basin_energy *energy, basin_expr one,
                          basin_expr other, double by, const char *name) {
    basin_expr a = basin_energy_total(energy, basin_stop_gradient(one));
    basin_expr b = basin_energy_total(energy, basin_stop_gradient(other));
    basin_expr gap = basin_sub(basin_mean_all(a), basin_mean_all(b));
    for (size_t i = 0; i < c->params.count; i++) {
        basin_expr p = c->params.param[i].state;
        add_output(c, basin_scale(basin_grad(gap, p), 1 / by), "out.%s.%s", name,
                   basin_expr_name(p));
    }
}

static void eqprop(basin_case *c, specimen *s) {
    static const char *const name[] = {"out.free", "out.nudged", "out.nudged_minus"};
    const double nudge = meta_number(c, "nudge"), sign[] = {0, 1, -1};
    int64_t units = in_dim(c, "b0", 1, 0), last = in_dim(c, "b1", 1, 0);
    basin_shape shape = BASIN_SHAPE(in_dim(c, "x", 2, 0), units + last);
    basin_expr end[3];
    for (int i = 0; i < 3; i++) {
        const basin_zoo *model = built_with(s, "nudge", NULL, sign[i] * nudge);
        if (!model) return;
        basin_energy energy = {BASIN_TERMS({"layers", without_pull, &model->energy})};
        end[i] = fixed_point(c, &energy, basin_full(c->graph, shape, 0));
        add_output(c, end[i], "%s", name[i]);
    }
    const basin_zoo *model = built_with(s, "nudge", NULL, 0);
    basin_expr target = in_input(c, "target", 2);
    basin_expr gap = basin_sub(basin_slice(end[0], 1, units, last), target);
    basin_expr cost = basin_scale(basin_sum(basin_square(gap), 1, 1), 0.5);
    add_output(c, basin_energy_total(&model->energy, end[0]), "out.energy");
    add_estimates(c, &model->energy, end[1], end[0], nudge, "ep");
    add_estimates(c, &model->energy, end[1], end[2], 2 * nudge, "ep2");
    add_loss(c, basin_mean_all(cost), NULL);
}

/* ---- block_*: the paper's block, forces, energies, gradients through the descent ---- */

/* All pairs, or all but a token with itself, where `allowed` [N, N] has just these; else a list. */
static basin_pattern read_pattern(basin_case *c, int64_t n, bool self) {
    basin_tensor allowed = in_integers(c, "allowed", 2);
    basin_pattern pattern = self ? BASIN_ALL_PAIRS : BASIN_OTHER_PAIRS;
    int64_t count = 0, cells = basin_shape_count(allowed.shape);
    int32_t *edge = basin_array_new((size_t)cells, 2 * sizeof *edge), *may = allowed.data;
    bool square = may && allowed.shape.dim[0] == n && allowed.shape.dim[1] == n;
    if (!edge || !square)
        basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "in.allowed; expected [%lld, %lld]",
                         (long long)n, (long long)n);
    for (int64_t i = 0; i < cells && edge && square; i++)
        if (may[i]) {
            edge[2 * count] = (int32_t)(i / n);
            edge[2 * count++ + 1] = (int32_t)(i % n);
        }
    if (count < (self ? cells : cells - n)) {
        basin_pairs pairs;
        pattern = pairs_of(c, &pairs, n, edge, count, 0);
        basin_pairs_free(&pairs);
    }
    free(edge);
    basin_tensor_free(&allowed);
    return pattern;
}

/* The force of each term on its own. */
static void add_forces(basin_case *c, const basin_energy *energy, basin_expr g) {
    for (int p = 0; p < energy->terms; p++) {
        bool attention = energy->term[p].name[0] == 'a';
        add_output(c, term_force(energy, g, p), "out.force_%s0", attention ? "att" : "hn");
    }
}

static void add_block_descent(basin_case *c, const basin_block *block, const basin_pattern *pattern,
                              basin_expr x, basin_expr facts) {
    basin_block_graph_inputs inputs = {.facts = facts};
    basin_block_bound bound = {.block = block, .pattern = pattern, .graph = &inputs};
    basin_energy energy = basin_block_energy(&bound);
    basin_descent_spec spec = read_descent(c);
    basin_expr trace[(size_t)((spec.steps + 1) * energy.terms)];
    basin_expr g = basin_energy_activation(&energy, x);
    add_output(c, g, "out.g0");
    add_forces(c, &energy, g);
    basin_expr end = basin_descend(&energy, x, &spec, trace);
    basin_expr energies = energies_of(c, &block->config, trace, spec.steps, 0);
    add_output(c, energies, "out.energy");
    basin_expr loss = finish(c, end, x);
    if (facts) add_output(c, basin_grad(loss, facts), "grad.facts");
}

static void build_block(basin_case *c) {
    basin_block block;
    basin_block_config config = read_block(c, "");
    config.no_attention = !meta_flag(c, "attention");
    config.no_hopfield = !meta_flag(c, "hopfield");
    basin_expr x = in_input(c, "x0", 2);
    basin_expr facts = NULL; /* of pairs, by query and then by key */
    if (basin_bundle_find(c->bundle, "in.facts")) facts = in_input(c, "facts", 2);
    basin_block_graph extra = {.facts = facts ? basin_expr_shape(facts).dim[1] : 0};
    config.graph = &extra;
    if (!x) return;
    basin_pattern pattern =
        read_pattern(c, basin_expr_shape(x).dim[0], meta_flag(c, "self_attention"));
    if (basin_graph_error(c->graph) || basin_block_declare(&block, &c->params, "", &config)) return;
    basin_lagrangian norm = {.name = "layernorm",
                             .gamma = block.gamma,
                             .delta = block.delta,
                             .epsilon = block.config.epsilon};
    add_output(c, basin_lagrangian_value(&norm, x, 0), "out.lagrangian0");
    add_block_descent(c, &block, &pattern, x, facts);
}

/* ---- image: the masked image model ---- */

static void build_image(basin_case *c) {
    basin_image_net model;
    basin_image_net_config config = {.tokens = in_dim(c, "patches", 3, 1),
                                     .patch = in_dim(c, "patches", 3, 2),
                                     .block = read_block(c, ""),
                                     .descent = read_descent(c),
                                     .self_attention = meta_flag(c, "self_attention")};
    basin_expr patches = in_input(c, "patches", 3);
    basin_expr replaced = in_input(c, "replaced", 2);
    basin_expr occluded = in_input(c, "occluded", 2);
    if (basin_graph_error(c->graph) || basin_image_net_declare(&model, &c->params, &config)) return;
    int steps = config.descent.steps;
    basin_expr trace[2 * (size_t)(steps + 1)];
    basin_expr output = basin_image_net_forward(&model, patches, replaced, trace);
    basin_expr loss = basin_image_net_loss(output, patches, occluded);
    add_output(c, output, "out.patches");
    add_output(c, energies_of(c, &config.block, trace, steps, basin_expr_shape(patches).dim[0]),
               "out.energy");
    add_loss(c, loss, NULL);
}

/* ---- anomaly: node anomaly detection on one graph, probabilities, loss and gradients ---- */

static void build_anomaly(basin_case *c) {
    basin_anomaly model;
    basin_anomaly_config config = {.nodes = in_dim(c, "features", 2, 0),
                                   .features = in_dim(c, "features", 2, 1),
                                   .block = read_block(c, ""),
                                   .descent = read_descent(c),
                                   .position = BASIN_POSITION_LEARNED};
    basin_tensor edges = in_integers(c, "edges", 2);
    basin_pairs pairs;
    if (edges.data && edges.shape.dim[1] != 2)
        basin_graph_fail(c->graph, BASIN_BAD_SHAPE, "in.edges; expected [edges, 2]");
    basin_pattern pattern =
        pairs_of(c, &pairs, config.nodes, edges.data, edges.shape.dim[0], BASIN_PAIRS_BOTH_WAYS);
    basin_pairs_free(&pairs);
    basin_tensor_free(&edges);
    basin_expr features = in_input(c, "features", 2);
    basin_expr label = in_input(c, "label", 1);
    double omega = meta_number(c, "omega"); /* the weight of an anomalous node */
    basin_expr weight =
        basin_mul(in_input(c, "train", 1), basin_offset(basin_scale(label, omega - 1), 1));
    if (basin_graph_error(c->graph) || basin_anomaly_declare(&model, &c->params, &config)) return;
    basin_expr logits = basin_anomaly_logits(
        &model, &(basin_anomaly_inputs){.features = features, .neighbours = &pattern});
    basin_expr loss = basin_weighted_cross_entropy(logits, label, weight);
    add_output(c, basin_sigmoid(logits), "out.probability");
    add_loss(c, loss, NULL);
}

/* ---- graph, graph_mixed: classification of a few graphs, each with a CLS token before its nodes
 * and pairs of that with every node ---- */

enum { MAX_GRAPHS = 10000 };

/* Edges [nodes + edges, 2] of graph `which` by token, those of the CLS first; free them. */
static int32_t *list_edges(basin_case *c, int which, int64_t nodes, int64_t *count) {
    char name[BASIN_CASE_WORD];
    snprintf(name, sizeof name, "graph%d.edges", which);
    basin_tensor edges = in_integers(c, name, 2);
    const int32_t *end = edges.data;
    bool good = end && edges.shape.dim[1] == 2;
    *count = nodes + (good ? edges.shape.dim[0] : 0);
    int32_t *edge = basin_array_new((size_t)*count, 2 * sizeof *edge);
    for (int32_t i = 0; i < 2 * *count && edge && good; i++) {
        bool own = i >= 2 * nodes;
        good = !own || (end[i - 2 * nodes] >= 0 && end[i - 2 * nodes] < nodes);
        edge[i] = own ? end[i - 2 * nodes] + 1 : i % 2 ? i / 2 + 1 : 0;
    }
    if (!good || !edge)
        basin_graph_fail(c->graph, BASIN_BAD_VALUE, "in.%s; expected [edges, 2] of nodes 0 to %lld",
                         name, (long long)nodes - 1);
    basin_tensor_free(&edges);
    return edge;
}

/* Each edge's features at both of its pairs; ones at pairs with the CLS. */
static basin_expr pair_features(basin_case *c, const basin_pairs *pairs, const int32_t *edge,
                                int64_t edges, int64_t nodes, basin_expr features) {
    basin_shape ones = BASIN_SHAPE(1, basin_expr_shape(features).dim[1]);
    basin_expr rows = basin_concat((basin_expr[]){basin_full(c->graph, ones, 1), features}, 2, 0);
    BASIN_FREE_AT_EXIT int32_t *row = basin_zeros_new((size_t)pairs->pairs, sizeof *row);
    for (int64_t e = 0; e < edges && row; e++)
        for (int way = 0; way < 2; way++)
            row[basin_pairs_find(pairs, edge[2 * e + way], edge[2 * e + 1 - way])] =
                e < nodes ? 0 : (int32_t)(e - nodes + 1);
    return row ? basin_take(rows, 0, constant_of(c, row, pairs->pairs)) : NULL;
}

/* The logits of graph `which`, [1, C]. */
static basin_expr one_graph(basin_case *c, const basin_graph_net *model, int which) {
    static const char *const what[] = {"features", "pe", "edge_features"};
    const basin_tensor *part[3];
    for (int i = 0; i < 3; i++) {
        char name[BASIN_CASE_WORD];
        snprintf(name, sizeof name, "graph%d.%s", which, what[i]);
        part[i] = in_tensor(c, name, 2);
        if (!part[i]) return NULL;
    }
    int64_t nodes = part[0]->shape.dim[0], edges;
    /* -1, 0, .., nodes, -1: tokens before each from the first on, after each from the third on */
    BASIN_FREE_AT_EXIT int32_t *place = basin_array_new((size_t)nodes + 3, sizeof *place);
    for (int32_t t = 0; t <= nodes + 2 && place; t++) place[t] = t <= nodes + 1 ? t - 1 : -1;
    int32_t *edge = list_edges(c, which, nodes, &edges);
    basin_pairs pairs;
    basin_pattern pattern = pairs_of(c, &pairs, nodes + 1, edge, edges, BASIN_PAIRS_BOTH_WAYS);
    basin_expr features = basin_constant(c->graph, part[2]), logits = NULL;
    if (!place) basin_graph_fail(c->graph, BASIN_NO_MEMORY, "out of memory");
    if (!basin_graph_error(c->graph)) {
        basin_graph_net_batch batch = {
            .nodes = basin_constant(c->graph, part[0]),
            .positions = basin_constant(c->graph, part[1]),
            .edge_features = pair_features(c, &pairs, edge, edges, nodes, features),
            .source = constant_of(c, place, nodes + 1), /* token t is node t - 1 */
            .before = constant_of(c, place, nodes + 1),
            .after = constant_of(c, place + 2, nodes + 1),
            .first = constant_of(c, place + 1, 1),
            .pattern = pattern};
        logits = basin_graph_net_forward(model, &batch);
    }
    basin_pairs_free(&pairs);
    free(edge);
    return logits;
}

static void build_graphs(basin_case *c) {
    basin_graph_net model;
    basin_graph_net_config config = {.features = in_dim(c, "enc_w", 2, 0),
                                     .edge_features = in_dim(c, "adj_w", 2, 0),
                                     .positions = in_dim(c, "pos_w", 2, 0),
                                     .outputs = in_dim(c, "dec_w", 2, 1),
                                     .blocks = (int)meta_number(c, "blocks"),
                                     .block = read_block(c, "block0."),
                                     .descent = read_descent(c)};
    double graphs = meta_number(c, "graphs"), smoothing = meta_number(c, "smoothing");
    config.block.mix = meta_flag(c, "mixed");
    if (!(graphs >= 1 && graphs <= MAX_GRAPHS))
        basin_graph_fail(c->graph, BASIN_BAD_VALUE, "%g graphs; expected 1 to %d", graphs,
                         MAX_GRAPHS);
    basin_expr label = in_index(c, "label", config.outputs), row[MAX_GRAPHS];
    if (basin_graph_error(c->graph) || basin_graph_net_declare(&model, &c->params, &config)) return;
    for (int i = 0; i < (int)graphs; i++) row[i] = one_graph(c, &model, i);
    basin_expr logits = basin_concat(row, (int)graphs, 0);
    basin_expr hit = basin_take(basin_eye(c->graph, config.outputs), 0, label);
    basin_expr target = basin_offset(basin_scale(hit, 1 - smoothing), /* spread over all classes */
                                     smoothing / (double)config.outputs);
    add_output(c, logits, "out.logits");
    add_loss(c, basin_cross_entropy(logits, target), NULL);
}

/* ---- lagrangians: each one, its activation, its energy, at a mild and a large state ---- */

static void add_outputs(basin_case *c, const basin_lagrangian *l, basin_expr x, const char *size) {
    const char *name = l->name;
    char energy[96], value[96];
    snprintf(energy, sizeof energy, "out.%s.%s.E", size, name);
    snprintf(value, sizeof value, "out.%s.%s.L", size, name);
    add_output(c, basin_lagrangian_value(l, x, 0), "%s", value);
    add_output(c, basin_lagrangian_activation(l, x), "out.%s.%s.g", size, name);
    /* the oracle's energy is <x, g> - L, the library's a closed form without that cancellation */
    add_difference(c, basin_lagrangian_energy(l, x, 0), energy, value);
}

static void build_lagrangians(basin_case *c) {
    /* the oracle's ghostmax has no temperature, and its repu the power 4 */
    static const char *const names[] = {"identity", "relu",      "repu4",    "exp",
                                        "rexp",     "tanh",      "sigmoid",  "softmax",
                                        "ghostmax", "layernorm", "spherical"};
    basin_expr beta = basin_scalar(c->graph, meta_number(c, "beta"));
    basin_expr gamma = basin_scalar(c->graph, meta_number(c, "gamma"));
    basin_expr delta = in_input(c, "delta", 1);
    basin_expr mild = in_input(c, "mild", 1);
    basin_expr large = in_input(c, "large", 1);
    double epsilon = meta_number(c, "eps");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        basin_lagrangian l = {.name = names[i],
                              .beta = i == 8 ? NULL : beta,
                              .gamma = gamma,
                              .delta = delta,
                              .epsilon = epsilon};
        add_outputs(c, &l, mild, "mild");
        add_outputs(c, &l, large, "large");
    }
    add_output(c, basin_scalar(c->graph, 0), "out.loss");
}

/* ---- ham: a hierarchical associative memory of three layers, with linear synapses, a bias and a
 * dense associative memory; dE/dg, the descent and the energy tree of every step ---- */

enum { LAYERS = 3 };

static const char *const names[LAYERS] = {"v", "h", "c"};

/* The time constants: {"v": 1.0, ...} in the metadata. */
static double time_of(basin_case *c, const char *layer) {
    const char *text = basin_bundle_meta(c->bundle, "tau");
    cJSON *tree = text ? cJSON_Parse(text) : NULL;
    double tau = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(tree, layer));
    cJSON_Delete(tree);
    if (tau > 0) return tau;
    basin_graph_fail(c->graph, BASIN_BAD_FILE, "metadata 'tau' has no number '%s'", layer);
    return 1;
}

static void add_layers(basin_case *c, basin_ham *ham, basin_expr beta) {
    const basin_lagrangian lagrangian[LAYERS] = {
        {.name = "layernorm",
         .gamma = basin_scalar(c->graph, meta_number(c, "gamma")),
         .delta = in_input(c, "delta", 1),
         .epsilon = meta_number(c, "eps")},
        {.name = "softmax", .beta = beta},
        {.name = "tanh", .beta = beta},
    };
    for (int i = 0; i < LAYERS; i++) {
        char state[BASIN_CASE_WORD];
        snprintf(state, sizeof state, "x.%s", names[i]);
        basin_ham_layer(ham, &(basin_layer){.name = names[i],
                                            .shape = BASIN_SHAPE(in_dim(c, state, 1, 0)),
                                            .lagrangian = lagrangian[i],
                                            .tau = time_of(c, names[i])});
    }
}

static void add_synapses(basin_case *c, basin_ham *ham, basin_expr beta) {
    const basin_synapse synapse[] = {
        {.name = "vh", .kind = BASIN_SYNAPSE_LINEAR},
        {.name = "hc", .kind = BASIN_SYNAPSE_LINEAR},
        {.name = "bias", .kind = BASIN_SYNAPSE_BIAS},
        {.name = "memory",
         .kind = BASIN_SYNAPSE_MEMORY,
         .units = in_dim(c, "xi", 2, 0),
         .hidden = {.name = "softmax", .beta = beta}},
    };
    static const char *const layers[] = {"v, h", "h, c", "c", "v"};
    static const char *const parameter[][2] = {
        {"vh.w", "W_vh"}, {"hc.w", "W_hc"}, {"bias.b", "b_c"}, {"memory.xi", "xi"}};
    for (int i = 0; i < 4; i++) {
        basin_ham_bind(ham, parameter[i][0], in_parameter(c, parameter[i][1]));
        basin_ham_synapse(ham, &synapse[i]);
        basin_ham_connect(ham, synapse[i].name, layers[i]);
    }
}

static void add_vectors(basin_case *c, const basin_expr *value, const char *what) {
    for (int i = 0; i < LAYERS; i++)
        if (value[i])
            add_output(c, basin_reshape(value[i], BASIN_SHAPE(basin_expr_shape(value[i]).dim[1])),
                       "out.%s.%s", what, names[i]);
}

/* [steps + 1, 4]: the layers, and all connections in one. */
static basin_expr tree(const basin_expr *trace, int terms, int steps) {
    basin_expr row[4 * (size_t)(steps + 1)];
    for (int t = 0; t <= steps; t++) {
        const basin_expr *term = trace + t * terms;
        for (int i = 0; i < LAYERS; i++) row[4 * t + i] = term[i];
        basin_expr sum = term[LAYERS];
        for (int p = LAYERS + 1; p < terms; p++) sum = basin_add(sum, term[p]);
        row[4 * t + LAYERS] = sum;
    }
    return basin_reshape(basin_concat(row, 4 * (steps + 1), 0), BASIN_SHAPE(steps + 1, 4));
}

static void add_network_descent(basin_case *c, basin_ham *ham) {
    basin_expr x[LAYERS] = {0}, gradient[LAYERS] = {0}, end[LAYERS] = {0};
    basin_ham_spec spec = {.steps = read_steps(c), .dt = meta_number(c, "dt")};
    int terms = 0;
    while (basin_ham_term_name(ham, terms)) terms++;
    for (int i = 0; i < LAYERS; i++) { /* a batch of one */
        char state[BASIN_CASE_WORD];
        snprintf(state, sizeof state, "x.%s", names[i]);
        x[i] = basin_expand_dims(in_input(c, state, 1), 0, 1);
    }
    if (basin_graph_error(c->graph)) return;
    basin_expr trace[(size_t)(spec.steps + 1) * (size_t)terms];
    basin_ham_gradient(ham, gradient, x, false);
    basin_ham_descend(ham, end, x, &spec, trace);
    if (basin_graph_error(c->graph)) return;
    add_vectors(c, gradient, "dEdg");
    add_vectors(c, end, "x");
    add_output(c, tree(trace, terms, spec.steps), "out.energy");
    add_output(c, basin_scalar(c->graph, 0), "out.loss");
}

static void build_ham(basin_case *c) {
    basin_ham *ham = basin_ham_new(c->graph);
    if (!ham) {
        basin_graph_fail(c->graph, BASIN_NO_MEMORY, "out of memory for a network");
        return;
    }
    basin_expr beta = basin_scalar(c->graph, meta_number(c, "beta"));
    add_layers(c, ham, beta);
    add_synapses(c, ham, beta);
    if (!basin_graph_error(c->graph)) add_network_descent(c, ham);
    basin_ham_free(ham);
}

/* ---- the rows ---- */

/* The first prefix that fits: a model of the zoo, built from the file, and what is computed of it;
 * or another builder. */
static const struct {
    const char *prefix, *model;
    void (*add)(basin_case *c, specimen *s);
    void (*build)(basin_case *c);
} rows[] = {
    {"graph_hopfield", "graph_hopfield", totals, NULL},
    {"hopfield_layer", NULL, NULL, hopfield_layer},
    {"hopfield", "hopfield", totals, NULL},
    {"sparse_entmax15", "entmax15", totals, NULL},
    {"sparse_sparsemax", "sparsemax", totals, NULL},
    {"sparse_normmax2", "normmax2", totals, NULL},
    {"drdam", "drdam", totals, NULL},
    {"lsr", "lsr", totals, NULL},
    {"idp", "idp", by_term, NULL},
    {"nrgpt_lm", "nrgpt", language_model, NULL},
    {"nrgpt_", "nrgpt", nrgpt, NULL},
    {"hyperset", "hyperset", hyperset, NULL},
    {"akorn_attention", "akorn_attention", totals, NULL},
    {"akorn", "akorn", totals, NULL},
    {"crate", NULL, NULL, crate},
    {"ebt", "ebt", ebt, NULL},
    {"implicit_", NULL, NULL, implicit},
    {"eqprop", "eqprop", eqprop, NULL},
    {"cet", "cet", totals, NULL},
    {"pairs", "pairs", totals, NULL},
    {"et_stack", "et_stack", totals, NULL},
    {"gated", "gated", totals, NULL},
    {"gaussians", "gaussians", totals, NULL},
    {"block_", NULL, NULL, build_block},
    {"image", NULL, NULL, build_image},
    {"anomaly", NULL, NULL, build_anomaly},
    {"graph", NULL, NULL, build_graphs},
    {"lagrangians", NULL, NULL, build_lagrangians},
    {"ham", NULL, NULL, build_ham},
};

void basin_case_build(basin_case *c) {
    const char *name = meta_word(c, "case", c->name);
    size_t i = 0, count = sizeof rows / sizeof *rows;
    while (i < count && strncmp(name, rows[i].prefix, strlen(rows[i].prefix)) != 0) i++;
    if (basin_graph_error(c->graph)) return;
    if (i == count) {
        basin_graph_fail(c->graph, BASIN_UNSUPPORTED, "unknown case '%s'", name);
    } else if (rows[i].build) {
        rows[i].build(c);
    } else {
        specimen s = specimen_of(c, rows[i].model);
        specimen_build(&s);
        if (!basin_graph_error(c->graph)) rows[i].add(c, &s);
    }
}
