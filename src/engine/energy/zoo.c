/* The table of the zoo, and how a row of it becomes a model in a graph: values by name are checked
 * against the tensors and settings of the row. The kinds of models are in zoo_memories.c and
 * zoo_attention.c. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shape.h"
#include "engine/energy/zoo.h"
#include "engine/expr/graph.h"

/* ---- the table ---- */

#define SET(...) ((const basin_zoo_value[]){__VA_ARGS__, {0}})
#define IS(name_, number_)                                                                         \
    { .name = (name_), .number = (number_) }

static const basin_zoo_model table[] = {
    {"classical", "Hopfield 1982", &basin_zoo_dense.kind, NULL, NULL},
    {"power", "Krotov and Hopfield 2016", &basin_zoo_dense.kind, SET(IS("power", 3)), NULL},
    {"hopfield", "Ramsauer et al. 2020", &basin_zoo_hopfield.kind, NULL, NULL},
    {"entmax15", "Santos et al. 2024", &basin_zoo_hopfield.kind, SET(IS("entropy", 1)), NULL},
    {"sparsemax", "Santos et al. 2024", &basin_zoo_hopfield.kind, SET(IS("entropy", 2)), NULL},
    {"normmax2", "Santos et al. 2024", &basin_zoo_hopfield.kind, SET(IS("entropy", 3)), NULL},
    {"drdam", "Hoover et al. 2024", &basin_zoo_features.kind, NULL,
     SET(IS("Y", 300), IS("xi", 0.5), IS("beta", 0.3))},
    {"lsr", "Hoover et al. 2025", &basin_zoo_lsr.kind, NULL, SET(IS("beta", 0.15))},
    {"graph_hopfield", "arXiv 2603.03464", &basin_zoo_graph.kind, NULL, SET(IS("beta", 0.2))},
    {"idp", "Betteti et al. 2025", &basin_zoo_plastic.kind, NULL, SET(IS("M", 4))},
    {"gated", "Choraria et al. 2026", &basin_zoo_gated.kind, NULL,
     SET(IS("Z", 11), IS("G", 3), IS("C", 4), IS("gamma", 2))},
    {"gaussians", "Tankala and Balasubramanian 2025", &basin_zoo_gaussians.kind, NULL,
     SET(IS("N", 4), IS("D", 3), IS("Z", 12), IS("M", 5), IS("c", 1))},
    {"eqprop", "Scellier and Bengio 2017", &basin_zoo_layers.kind, NULL,
     SET(IS("I", 6), IS("O", 4), IS("S", 12), IS("w1", 0.5), IS("b1", 0.5))},
    {"et", "Hoover et al. 2023", &basin_zoo_block.kind, NULL,
     SET(IS("wk", 0.5), IS("wq", 0.5), IS("xi", 0.5), IS("delta", 0.1))},
    {"et_stack", "Hoover et al. 2023", &basin_zoo_stack.kind, NULL, SET(IS("delta", 0.1))},
    {"cet", "Hoier et al. 2026", &basin_zoo_convergent.kind, NULL, SET(IS("P", 5))},
    {"pairs", "this project", &basin_zoo_pairs.kind, NULL, SET(IS("N", 12), IS("U", 6))},
    {"nrgpt", "Dehmamy et al. 2025", &basin_zoo_nrgpt.kind, NULL, SET(IS("alpha", 0.1))},
    {"nrgpt_strict", "Dehmamy et al. 2025", &basin_zoo_nrgpt.kind, SET(IS("proj", 1)),
     SET(IS("alpha", 0.1))},
    {"nrgpt_inclusive", "Dehmamy et al. 2025", &basin_zoo_nrgpt.kind,
     SET(IS("proj", 1), IS("strict", 0)), SET(IS("alpha", 0.1))},
    {"hyperset", "Hu et al. 2026", &basin_zoo_hyperset.kind, NULL,
     SET(IS("M", 32), IS("heads", 2))},
    {"akorn", "Miyato et al. 2025", &basin_zoo_akorn.kind, NULL,
     SET(IS("omega", 0), IS("a", 0.3), IS("gamma", 0.5))},
    {"akorn_rotation", "Miyato et al. 2025", &basin_zoo_akorn.kind, NULL,
     SET(IS("a", 0.3), IS("gamma", 0.5))},
    {"akorn_attention", "Miyato et al. 2025", &basin_zoo_akorn.kind, NULL,
     SET(IS("qkv_w", 0.5), IS("qkv_b", 0.1), IS("o_w", 0.5), IS("o_b", 0.1), IS("gamma", 0.5),
         IS("heads", 2))},
    {"crate", "Yu et al. 2023", &basin_zoo_crate.kind, NULL, SET(IS("K", 8), IS("y", 1))},
    {"ebt", "Gladstone et al. 2025", &basin_zoo_ebt.kind, NULL, SET(IS("alpha", 0.5))},
    {"ebt_loop", "Gladstone et al. 2025", &basin_zoo_ebt.kind, SET(IS("loop", 1)),
     SET(IS("alpha", 0.5))},
};

const basin_zoo_model *basin_zoo_at(int i) {
    return i >= 0 && i < (int)(sizeof table / sizeof *table) ? &table[i] : NULL;
}

static const basin_zoo_model *find(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name)) return &table[i];
    return NULL;
}

/* ---- values by name ---- */

/* The place of a name in "one|other"; -1 where it is none of them. */
static int place_of(const char *names, const char *name) {
    size_t length = strlen(name);
    for (int i = 0; names; i++) {
        size_t size = strcspn(names, "|");
        if (size == length && !strncmp(names, name, length)) return i;
        names = names[size] ? names + size + 1 : NULL;
    }
    return -1;
}

/* Whether a row is of that name: equal, or "w#" and "w2". */
static bool names(const char *row, const char *name) {
    size_t length = strcspn(row, "#");
    if (!row[length]) return !strcmp(row, name);
    return !strncmp(row, name, length) && name[length] &&
           !name[length + strspn(name + length, "0123456789")];
}

static const basin_zoo_tensor *tensor_row(const basin_zoo_kind *kind, const char *name) {
    const basin_zoo_tensor *row = kind->tensor;
    while (row->name && !names(row->name, name)) row++;
    return row->name ? row : NULL;
}

static int setting_row(const basin_zoo_kind *kind, const char *name) {
    for (int i = 0; kind->setting && kind->setting[i].name; i++)
        if (!strcmp(kind->setting[i].name, name)) return i;
    return -1;
}

basin_expr basin_zoo_part(const void *zoo, const char *name) {
    const basin_zoo_built *built = zoo;
    for (int i = 0; i < built->parts; i++)
        if (!strcmp(built->part[i].name, name)) return built->part[i].expr;
    return NULL;
}

double basin_zoo_number(const void *zoo, const char *name) {
    const basin_zoo_built *built = zoo;
    return built->setting[setting_row(built->zoo.model->kind, name)];
}

/* ---- settings ---- */

static void set_number(basin_zoo_built *built, basin_graph *graph, int row,
                       const basin_zoo_value *value) {
    const char *name = built->zoo.model->name;
    const basin_zoo_setting *s = &built->zoo.model->kind->setting[row];
    double number = value->number;
    if (value->choice) number = s->choices ? place_of(s->choices, value->choice) : -1;
    built->setting[row] = number;
    if (number >= s->min && number <= s->max) return;
    if (s->choices && value->choice)
        basin_graph_fail(graph, BASIN_BAD_VALUE, "%s: %s is '%s'; expected %s", name, s->name,
                         value->choice, s->choices);
    else
        basin_graph_fail(graph, BASIN_BAD_VALUE, "%s: %s is %g; expected %g to %g", name, s->name,
                         number, s->min, s->max);
}

/* ---- shapes ---- */

/* Whether an axis "2D", "ND" or "*" can have that size; a letter that is new gets its size. */
static bool fits_axis(basin_zoo_built *built, const char *axis, size_t length, int64_t dim) {
    int64_t known = 1, *unknown = NULL;
    if (*axis == '*') return true;
    for (size_t i = 0; i < length; i++) {
        int64_t *size = isupper((unsigned char)axis[i]) ? &built->size[axis[i] - 'A'] : NULL;
        if (size && !*size)
            unknown = size;
        else
            known *= size ? *size : axis[i] - '0';
    }
    if (unknown && dim % known == 0) *unknown = dim / known;
    return dim == known * (unknown ? *unknown : 1);
}

static bool fits(basin_zoo_built *built, const char *text, basin_shape shape) {
    bool leading = !strncmp(text, "..,", 3);
    int axes = *text != 0, axis = shape.rank;
    if (leading) text += 3;
    if (strchr(text, '|') && shape.rank == 0) return true;
    for (const char *at = text; *at; at++) axes += *at == ',';
    if (axes > shape.rank || (axes < shape.rank && !leading)) return false;
    for (axis -= axes; axes--; axis++) {
        size_t length = strcspn(text, ",|");
        if (!fits_axis(built, text, length, shape.dim[axis])) return false;
        text += length + (text[length] != 0);
    }
    return true;
}

static void fail_tensor(const basin_zoo_built *built, basin_graph *graph,
                        const basin_zoo_tensor *row, const char *name, const char *found) {
    basin_graph_fail(graph, BASIN_BAD_SHAPE, "%s: %s is %s; expected [%s]", built->zoo.model->name,
                     name, found, row->shape);
}

/* A tensor of the model: an expression, numbers, or one number. */
static void add_part(basin_zoo_built *built, basin_graph *graph, const basin_zoo_tensor *row,
                     const basin_zoo_value *value, basin_zoo_value *part) {
    basin_shape shape = value->data ? value->data->shape : basin_expr_shape(value->expr);
    *part = (basin_zoo_value){.name = row->name, .expr = value->expr};
    if (strchr(row->name, '#')) { /* the model outlives a name of the caller */
        char *copy = basin_graph_keep(graph, strlen(value->name) + 1);
        if (copy) part->name = strcpy(copy, value->name);
    }
    if (!fits(built, row->shape, shape))
        fail_tensor(built, graph, row, value->name, basin_shape_text(shape));
    else if (row->role == BASIN_ZOO_EDGES)
        part->data = value->data;
    else if (value->data)
        part->expr = basin_constant(graph, value->data);
    else if (!value->expr)
        part->expr = basin_scalar(graph, value->number);
}

/* One of the groups "a|b,c" must be bound, and nothing of the others. */
static void check_groups(const basin_zoo_built *built, basin_graph *graph, const char *needs) {
    int whole = 0, partial = 0, has = 0, names = 0;
    for (const char *at = needs;; at++) {
        char name[16];
        size_t length = strcspn(at, ",|");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        has += basin_zoo_part(built, name) != NULL;
        names += length > 0;
        at += length;
        if (*at == ',') continue;
        whole += names && has == names;
        partial += has && has < names;
        has = names = 0;
        if (!*at) break;
    }
    if (partial || whole > 1 || (!whole && *needs != '|'))
        basin_graph_fail(graph, BASIN_BAD_VALUE, "%s needs %s%s", built->zoo.model->name,
                         *needs == '|' ? "none or all of " : "one of ", needs + (*needs == '|'));
}

/* ---- building ---- */

/* The value of a name: the caller's, or one of the variant. */
static const basin_zoo_value *value_of(const basin_zoo_model *model, const basin_zoo_value *value,
                                       int values, const char *name) {
    for (int i = 0; i < values; i++)
        if (!strcmp(value[i].name, name)) return &value[i];
    for (value = model->variant; value && value->name; value++)
        if (!strcmp(value->name, name)) return value;
    return NULL;
}

/* Every value must have a row; those of sizes and of the step go where they belong. */
static void take_values(basin_zoo_built *built, basin_graph *graph, const basin_zoo_value *value,
                        int values) {
    const basin_zoo_kind *kind = built->zoo.model->kind;
    for (int i = 0; i < values; i++) {
        const char *name = value[i].name;
        if (tensor_row(kind, name) || setting_row(kind, name) >= 0) continue;
        if (!strcmp(name, "alpha"))
            built->zoo.alpha = value[i].number;
        else if (isupper((unsigned char)name[0]) && !name[1])
            built->size[name[0] - 'A'] = (int64_t)value[i].number;
        else
            basin_graph_fail(graph, BASIN_BAD_VALUE, "%s has no tensor or setting '%s'",
                             built->zoo.model->name, name);
    }
}

/* The tensors in the order of the rows, so that sizes are those of the first that has them. */
static void add_parts(basin_zoo_built *built, basin_graph *graph, basin_zoo_value *part,
                      const basin_zoo_value *value, int values) {
    const basin_zoo_model *model = built->zoo.model;
    built->part = part;
    for (const basin_zoo_tensor *row = model->kind->tensor; row->name; row++) {
        const basin_zoo_value *found = value_of(model, value, values, row->name);
        const basin_zoo_value otherwise = {.name = row->name, .number = row->value};
        bool numbered = strchr(row->name, '#') != NULL, absent = row->optional || !row->role;
        for (int i = 0; i < values && numbered; i++)
            if (tensor_row(model->kind, value[i].name) == row)
                add_part(built, graph, row, &value[i], &part[built->parts++]);
        if (!found && (absent || numbered)) continue;
        if (!found && row->deviation != 0) fail_tensor(built, graph, row, row->name, "absent");
        add_part(built, graph, row, found ? found : &otherwise, &part[built->parts++]);
    }
}

static void add_settings(basin_zoo_built *built, basin_graph *graph, const basin_zoo_value *value,
                         int values) {
    const basin_zoo_setting *s = built->zoo.model->kind->setting;
    for (int i = 0; s && s[i].name; i++) {
        const basin_zoo_value *found = value_of(built->zoo.model, value, values, s[i].name);
        built->setting[i] = s[i].value;
        if (found) set_number(built, graph, i, found);
    }
}

const basin_zoo *basin_zoo_build(basin_graph *graph, const char *name, const basin_zoo_value *value,
                                 int values) {
    const basin_zoo_model *model = find(name);
    if (basin_graph_error(graph)) return NULL;
    if (!model)
        return (void *)basin_graph_fail(graph, BASIN_BAD_VALUE, "no model '%s' in the zoo", name);
    const basin_zoo_code *code = (const basin_zoo_code *)model->kind;
    size_t rows = (size_t)values;
    for (const basin_zoo_tensor *row = model->kind->tensor; row->name; row++) rows++;
    basin_zoo_built *built = basin_graph_keep(graph, sizeof *built);
    basin_zoo_value *part = basin_graph_keep(graph, rows * sizeof *part);
    if (!built || !part) return NULL;
    built->zoo =
        (basin_zoo){.model = model, .substep = built->substep, .alpha = model->kind->alpha};
    take_values(built, graph, value, values);
    add_settings(built, graph, value, values);
    add_parts(built, graph, part, value, values);
    for (int i = 0; i < 2; i++) {
        built->substep[i] = code->substep[i];
        built->substep[i].context = built;
        built->zoo.substeps +=
            code->substep[i].terms || code->substep[i].move || code->substep[i].project;
    }
    built->zoo.energy = (basin_energy){
        .term = code->term, .terms = code->terms, .activation = code->activation, .context = built};
    if (code->needs) check_groups(built, graph, code->needs);
    if (code->prepare && !basin_graph_error(graph)) code->prepare(built, graph);
    return basin_graph_error(graph) ? NULL : &built->zoo;
}

basin_expr basin_zoo_output(const basin_zoo *zoo, const char *name, basin_expr x) {
    const basin_zoo_code *code = (const basin_zoo_code *)zoo->model->kind;
    int place = place_of(code->kind.outputs, name);
    if (place >= 0 && x) return code->output[place](zoo, x);
    if (!x || !strcmp(name, "begin")) return x;
    return basin_graph_fail(basin_expr_graph(x), BASIN_BAD_VALUE,
                            "%s has no output '%s'; expected %s", zoo->model->name, name,
                            code->kind.outputs ? code->kind.outputs : "begin");
}

basin_expr basin_zoo_project(const void *zoo, basin_expr x, basin_expr t) {
    (void)t;
    return basin_zoo_output(zoo, "begin", x);
}
