/* Models of the zoo with numbers, by the rows of its table: each tensor and setting is read from a
 * file, under the name that golden files have, or drawn. Running and judging them: everything is
 * computed in double by the backend ref, because a rise in a small step must not be a rounding
 * error. */
#include "program/verify/specimen.h"

#include <ctype.h>

#include "base/try.h"
#include "basin/random.h"

const basin_zoo_model *basin_specimen_model(const char *name) {
    const basin_zoo_model *model;
    for (int i = 0; (model = basin_zoo_at(i)) && strcmp(model->name, name) != 0;) i++;
    return model;
}

/* ---- numbers ---- */

static const basin_zoo_value *find(const basin_zoo_value *value, const char *name) {
    while (value && value->name && strcmp(value->name, name) != 0) value++;
    return value && value->name ? value : NULL;
}

void basin_specimen_set(basin_specimen *s, basin_zoo_value value) {
    if (s->values < BASIN_SPECIMEN_VALUES - 1)
        s->value[s->values++] = value;
    else
        basin_graph_fail(s->graph, BASIN_BAD_VALUE, "too many values for a model");
}

/* Golden files have the names of their oracle. */
static const char *const alias[][2] = {{"epsilon", "eps"}, {"sphere", "n"},    {"feed", "ff"},
                                       {"phase", "b"},     {"context", "ctx"}, {"alpha", "dt"},
                                       {"alpha", "eta"}};

/* The name of a tensor, without "in.", or of a setting in the file; NULL where it has neither. */
static const char *name_in_file(const basin_specimen *s, const char *name, bool tensor,
                                char found[BASIN_CASE_WORD]) {
    char full[BASIN_CASE_WORD + 8];
    for (size_t i = 0; i <= sizeof alias / sizeof *alias; i++) {
        const char *other = i ? alias[i - 1][1] : name;
        if (i && strcmp(alias[i - 1][0], name) != 0) continue;
        snprintf(found, BASIN_CASE_WORD, "%s%s", tensor && s->prefix ? s->prefix : "", other);
        snprintf(full, sizeof full, "in.%s", found);
        if (tensor ? (const void *)basin_bundle_find(s->bundle, full)
                   : (const void *)basin_bundle_meta(s->bundle, other))
            return tensor ? found : other;
    }
    return NULL;
}

static void read_tensor(basin_specimen *s, const basin_zoo_tensor *row) {
    char word[BASIN_CASE_WORD], full[BASIN_CASE_WORD + 8];
    const char *name = name_in_file(s, row->name, true, word);
    if (!name && !row->optional && row->role != BASIN_ZOO_STATE)
        basin_graph_fail(s->graph, BASIN_BAD_FILE, "no tensor in.%s for this model", row->name);
    if (!name) return;
    snprintf(full, sizeof full, "in.%s", name);
    const basin_tensor *data = basin_bundle_find(s->bundle, full);
    basin_zoo_value value = {.name = row->name};
    if (row->role == BASIN_ZOO_EDGES)
        value.data = data;
    else if (!s->c)
        value.expr = basin_constant(s->graph, data);
    else if (row->role == BASIN_ZOO_PARAMETER)
        value.expr = basin_case_parameter(s->c, name);
    else
        value.expr = basin_case_input_add(s->c, name, -1);
    if (row->role == BASIN_ZOO_STATE) s->start = value.expr;
    basin_specimen_set(s, value);
}

static void read_setting(basin_specimen *s, const char *name) {
    char word[BASIN_CASE_WORD];
    const char *key = name_in_file(s, name, false, word);
    const basin_zoo_value *fixed = find(s->model->variant, name);
    if (!key) return;
    const char *text = basin_bundle_meta(s->bundle, key);
    basin_zoo_value value = {.name = name, .number = strcmp(text, "true") ? strtod(text, NULL) : 1};
    if (*text == '"') {
        snprintf(s->word, sizeof s->word, "%.*s", (int)strcspn(text + 1, "\""), text + 1);
        value.choice = s->word;
    }
    if (!fixed)
        basin_specimen_set(s, value);
    else if (fixed->number != value.number)
        basin_graph_fail(s->graph, BASIN_UNSUPPORTED, "the setting %s is %s; expected %g", key,
                         text, fixed->number);
}

/* ---- draws ---- */

/* Sizes of tokens, memories, heads, .. where the example of a model has no others. */
static const basin_zoo_value usual[] = {
    {.name = "N", .number = 6}, {.name = "D", .number = 8}, {.name = "M", .number = 10},
    {.name = "H", .number = 2}, {.name = "Y", .number = 4}, {.name = "K", .number = 12},
    {.name = "V", .number = 7}, {.name = "R", .number = 4}, {0}};

/* The shape of a text such as "..,M,2D". */
static basin_shape shape_of(const basin_specimen *s, const char *text) {
    basin_shape shape = BASIN_SCALAR;
    if (!strncmp(text, "..,", 3)) text += 3;
    for (; *text && *text != '|'; text += *text == ',') {
        int64_t size = 1;
        for (; isalnum((unsigned char)*text); text++) {
            const char letter[2] = {*text};
            const basin_zoo_value *example = find(s->model->example, letter);
            if (!example) example = find(usual, letter);
            size *= example ? (int64_t)example->number : *text - '0';
        }
        shape.dim[shape.rank++] = size;
    }
    return shape;
}

static basin_expr draw(basin_specimen *s, basin_shape shape, double deviation) {
    basin_tensor drawn;
    basin_error error;
    if (basin_tensor_new(&drawn, BASIN_F64, shape, &error))
        return basin_graph_fail(s->graph, error.status, "%s", error.text);
    double *number = drawn.data;
    int64_t count = basin_shape_count(shape);
    basin_random_fill_normal_f64(number, s->seed, s->drawn++, 0, (size_t)count);
    for (int64_t i = 0; i < count; i++) number[i] *= deviation;
    basin_expr expr = basin_constant(s->graph, &drawn);
    basin_tensor_free(&drawn);
    return expr;
}

static void draw_tensor(basin_specimen *s, const basin_zoo_tensor *row) {
    static const int32_t edge[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 0};
    static const basin_tensor ring = {
        .data = (void *)edge, .dtype = BASIN_I32, .shape = {2, {6, 2}}}; /* of N nodes */
    const basin_zoo_value *example = find(s->model->example, row->name);
    basin_zoo_value value = {.name = row->name, .number = example ? example->number : 0};
    bool absent = !example && (row->optional || row->deviation == 0);
    if (row->role == BASIN_ZOO_EDGES)
        value.data = &ring;
    else if (absent)
        return;
    else if (*row->shape)
        value.expr = draw(s, shape_of(s, row->shape), example ? example->number : row->deviation);
    if (row->role == BASIN_ZOO_STATE) s->start = value.expr;
    basin_specimen_set(s, value);
}

/* ---- models ---- */

static bool is_set(const basin_specimen *s, const char *name) {
    return find(s->value, name) || find(s->model->variant, name);
}

void basin_specimen_build(basin_specimen *s) {
    const basin_zoo_kind *kind = s->model->kind;
    for (const basin_zoo_tensor *row = kind->tensor; row->name; row++) {
        if (is_set(s, row->name) || strchr(row->name, '#')) continue;
        if (!strcmp(row->name, "start")) /* where the descent begins */
            basin_specimen_set(s, (basin_zoo_value){.name = "start", .expr = s->start});
        else
            (s->bundle ? read_tensor : draw_tensor)(s, row);
    }
    for (const basin_zoo_setting *row = kind->setting; row && row->name && s->bundle; row++)
        if (!find(s->value, row->name)) read_setting(s, row->name);
    if (s->bundle && !is_set(s, "alpha")) read_setting(s, "alpha");
    for (const basin_zoo_value *at = s->model->example; at && at->name && !s->bundle; at++)
        if (!is_set(s, at->name) && at->name[1]) basin_specimen_set(s, *at);
    s->zoo = basin_zoo_build(s->graph, s->model->name, s->value, s->values);
    if (!s->zoo) return;
    s->exact = s->zoo->energy;
    if (kind->exact) {
        const basin_zoo *exact = basin_specimen_with(s, kind->exact, NULL, 0);
        if (exact) s->exact = exact->energy;
    }
    s->x = basin_zoo_output(s->zoo, "begin", s->start);
}

const basin_zoo *basin_specimen_with(const basin_specimen *s, const char *name, const char *second,
                                     double number) {
    basin_specimen other = *s;
    const char *const names[] = {name, second};
    for (int i = 0; i < 2 && names[i]; i++) {
        basin_zoo_value value = {.name = names[i], .number = number};
        const basin_zoo_value *found = find(s->value, names[i]);
        if (found)
            other.value[found - s->value] = value;
        else
            basin_specimen_set(&other, value);
    }
    return basin_zoo_build(s->graph, s->model->name, other.value, other.values);
}

/* ---- running ---- */

/* The cosine of x's move in a tiny step and of the gradient downwards, by the activations g. */
static basin_expr cosine(const basin_specimen *s, basin_descent_spec spec) {
    const basin_energy *energy = &s->exact;
    basin_expr g =
        energy->activation ? basin_energy_activation(energy, s->x) : basin_variable(s->x);
    basin_expr down = basin_neg(basin_grad(basin_sum_all(basin_energy_total(energy, g)), g));
    spec.steps = 1;
    spec.alpha = s->zoo->alpha * 1e-6;
    basin_expr move = basin_sub(basin_descend(&s->zoo->energy, s->x, &spec, NULL), s->x);
    basin_expr dot = basin_sum_all(basin_mul(move, down));
    basin_expr squares =
        basin_mul(basin_sum_all(basin_square(move)), basin_sum_all(basin_square(down)));
    return basin_div(dot, basin_sqrt(squares));
}

/* ---- whether the force is a gradient ----
 *
 * With T a step of the size `alpha` and x = begin(y), u = (T(x) - x) / alpha is the update, and
 * w(y) = (dg/dy)' u the same by the activations: -dE(g(y))/dy where u = -dE/dg. It is the gradient
 * of some function if and only if its Jacobian is symmetric. */

enum { EXACT = 256, PROBES = 64 }; /* tokens' numbers up to which all of J is computed */

typedef struct probing {
    basin_expr direction, shift, field, back; /* w(y + shift), J' direction */
    basin_plan *plan;
    int64_t count;
} probing;

static void build_field(probing *p, const basin_specimen *s, double alpha) {
    basin_shape shape = basin_expr_shape(s->start);
    basin_descent_spec spec = {
        .steps = 1, .alpha = alpha, .substep = s->zoo->substep, .substeps = s->zoo->substeps};
    p->count = basin_shape_count(shape);
    p->direction = basin_input(s->graph, "direction", shape);
    p->shift = basin_input(s->graph, "shift", shape);
    basin_expr y = basin_add(s->start, p->shift), x = basin_zoo_output(s->zoo, "begin", y);
    basin_expr g = basin_energy_activation(&s->zoo->energy, x);
    basin_expr move = basin_sub(basin_descend(&s->zoo->energy, x, &spec, NULL), x);
    basin_vjp(&p->field, g, basin_scale(move, 1 / alpha), &y, 1);
    basin_vjp(&p->back, p->field, p->direction, &y, 1);
}

/* w(y + size v) and J' v; v, field, back [count]. */
static basin_status probe(probing *p, double *field, double *back, double *v, double size,
                          basin_error *error) {
    basin_shape shape = basin_expr_shape(p->shift);
    basin_tensor direction = basin_tensor_borrow(v, BASIN_F64, shape),
                 result[] = {basin_tensor_borrow(field, BASIN_F64, shape),
                             basin_tensor_borrow(back, BASIN_F64, shape)};
    BASIN_TRY(basin_plan_write(p->plan, p->direction, &direction, error));
    for (int64_t i = 0; i < p->count; i++) v[i] *= size;
    BASIN_TRY(basin_plan_write(p->plan, p->shift, &direction, error));
    BASIN_TRY(basin_plan_run(p->plan, error));
    BASIN_TRY(basin_plan_read(&result[0], p->plan, p->field, error));
    return basin_plan_read(&result[1], p->plan, p->back, error);
}

/* All rows of J. */
static basin_status skew_of_all(basin_specimen_skew *skew, probing *p, double *room,
                                basin_error *error) {
    int64_t n = p->count;
    double *field = room, *v = room + n, *row = room + 2 * n, apart = 0, all = 0;
    for (int64_t i = 0; i < n; i++) {
        memset(v, 0, (size_t)n * sizeof *v);
        v[i] = 1;
        BASIN_TRY(probe(p, field, row + i * n, v, 0, error));
    }
    for (int64_t i = 0; i < n * n; i++) {
        double gap = row[i] - row[i % n * n + i / n];
        apart += gap * gap, all += row[i] * row[i];
    }
    *skew = (basin_specimen_skew){all > 0 ? sqrt(apart / all) / 2 : 0, 0};
    return BASIN_OK;
}

/* By random directions v, of which |J v - J' v|^2 has the mean |J - J'|^2; J v by differences. */
static basin_status skew_of_probes(basin_specimen_skew *skew, probing *p, double *room,
                                   basin_error *error) {
    int64_t n = p->count;
    double *v = room, *down = room + n, *up = room + 2 * n, *back = room + 3 * n, *kept = back + n;
    double apart[PROBES] = {0}, all[PROBES] = {0}, sums[2] = {0}, square = 0, size = 1e-5;
    for (int k = 0; k < PROBES; k++) {
        basin_random_fill_normal_f64(kept, 1, (uint64_t)k, 0, (size_t)n);
        for (int side = -1; side <= 1; side++) {
            memcpy(v, kept, (size_t)n * sizeof *v);
            BASIN_TRY(probe(p, side < 0 ? down : up, back, v, -side * size, error));
            if (side < 0) memcpy(room + 5 * n, down, (size_t)n * sizeof *v);
            if (side == 0) memcpy(room + 6 * n, back, (size_t)n * sizeof *v);
        }
        for (int64_t i = 0; i < n; i++) {
            double forward = (room[5 * n + i] - up[i]) / (2 * size), other = room[6 * n + i];
            apart[k] += (forward - other) * (forward - other) / 4;
            all[k] += (forward * forward + other * other) / 2;
        }
        sums[0] += apart[k], sums[1] += all[k];
    }
    double share = sums[1] > 0 ? sums[0] / sums[1] : 0;
    for (int k = 0; k < PROBES; k++)
        square += (apart[k] - share * all[k]) * (apart[k] - share * all[k]);
    *skew = (basin_specimen_skew){sqrt(share),
                                  share > 0 ? sqrt(square) / sums[1] / (2 * sqrt(share)) : 0};
    return BASIN_OK;
}

static basin_status measure_skew(basin_specimen_skew *skew, basin_engine *engine,
                                 const basin_specimen *s, double alpha, basin_error *error) {
    probing p = {0};
    build_field(&p, s, alpha);
    BASIN_TRY(basin_graph_check(s->graph, error));
    bool exact = p.count <= EXACT;
    BASIN_FREE_AT_EXIT double *room =
        basin_array_new((size_t)((exact ? p.count + 2 : 7) * p.count), sizeof *room);
    if (!room) return basin_fail_memory(error, "a Jacobian");
    basin_plan_spec spec = {.output = (const basin_expr[]){p.field, p.back}, .outputs = 2};
    BASIN_TRY(basin_plan_new(&p.plan, engine->store, &spec, error));
    basin_status status = (exact ? skew_of_all : skew_of_probes)(skew, &p, room, error);
    basin_plan_free(p.plan);
    return status;
}

/* ---- descending ---- */

/* Steps that raised the energy; one that is not finite did. */
static int64_t count_rises(const basin_descent_result *r) {
    int64_t rises = 0;
    for (int t = 0; t < r->steps; t++) {
        double before = basin_descent_total(r, t), after = basin_descent_total(r, t + 1);
        rises += !(after <= before + 1e-13 * (1 + fabs(before)));
    }
    return rises;
}

/* All steps of the published size from x, and of small ones from there and from their end. */
static basin_status follow(basin_specimen_run *run, basin_engine *engine, const basin_specimen *s,
                           basin_descent_spec spec, const basin_tensor *x, basin_error *error) {
    BASIN_AT_EXIT(basin_descent_result_free) basin_descent_result result = {0};
    basin_descent_result small;
    basin_descent *descent;
    basin_status status = BASIN_OK;
    BASIN_TRY(basin_engine_descend(engine, &result, &s->zoo->energy, x, &spec, NULL, error));
    for (int t = 0; t <= run->steps; t++) run->energy[t] = basin_descent_total(&result, t);
    run->rises = count_rises(&result);
    spec.alpha = s->zoo->alpha * 1e-3;
    BASIN_TRY(basin_descent_new(&descent, engine->store, &s->zoo->energy, engine->graph, x->shape,
                                &spec, NULL, error));
    for (int i = 0; i < 2 && !status; i++) {
        status = basin_descent_run(descent, &small, i ? result.x : x, error);
        if (!status) run->small_rises += count_rises(&small);
        basin_descent_result_free(&small);
    }
    basin_descent_free(descent);
    return status;
}

static basin_status compute(basin_specimen_run *run, basin_engine *engine, const basin_specimen *s,
                            double scale, basin_error *error) {
    basin_tensor value[2];
    BASIN_TRY(basin_graph_check(s->graph, error));
    basin_descent_spec spec = {.steps = run->steps,
                               .alpha = s->zoo->alpha * scale,
                               .substep = s->zoo->substep,
                               .substeps = s->zoo->substeps};
    const basin_expr out[2] = {s->x, cosine(s, spec)};
    BASIN_TRY(basin_engine_compute(engine, value, out, 2, NULL, 0, error));
    run->cosine = basin_tensor_at(&value[1], 0);
    basin_status status = follow(run, engine, s, spec, &value[0], error);
    if (!status) status = measure_skew(&run->force, engine, s, s->zoo->alpha * 1e-6, error);
    if (!status) status = measure_skew(&run->step, engine, s, s->zoo->alpha, error);
    basin_tensor_free(&value[0]);
    basin_tensor_free(&value[1]);
    return status;
}

basin_status basin_specimen_descend(basin_specimen_run *run, const basin_zoo_model *model,
                                    const basin_bundle *bundle, uint64_t seed, int steps,
                                    double scale, basin_error *error) {
    basin_engine engine;
    *run = (basin_specimen_run){.steps = steps};
    if (steps < 1 || steps > BASIN_SPECIMEN_STEPS)
        return basin_fail(error, BASIN_BAD_VALUE, "%d steps; expected 1 to %d", steps,
                          BASIN_SPECIMEN_STEPS);
    BASIN_TRY(basin_engine_open(&engine, &(basin_compute){.backend = "ref", .threads = 1}, error));
    basin_specimen s = {.model = model, .graph = engine.graph, .bundle = bundle, .seed = seed};
    basin_specimen_build(&s);
    basin_status status = compute(run, &engine, &s, scale, error);
    if (status && bundle) basin_verify_name_file(error, basin_bundle_path(bundle));
    basin_engine_close(&engine);
    return status;
}

/* The interval of 95 % of a share of which `hits` of `count` were seen (Wilson), in percent. */
static void interval(double *low, double *high, int64_t hits, int64_t count) {
    const double z = 1.959963984540054;
    double n = (double)count, share = (double)hits / n, weight = 1 + z * z / n;
    double centre = (share + z * z / (2 * n)) / weight;
    double half = z / weight * sqrt(share * (1 - share) / n + z * z / (4 * n * n));
    *low = hits ? 100 * (centre - half) : 0;
    *high = hits < count ? 100 * (centre + half) : 100;
}

static void add_run(basin_specimen_verdict *v, const basin_specimen_run *run, double *squares,
                    double *errors) {
    v->draws++;
    v->rising_draws += run->small_rises > 0;
    v->steps += run->steps;
    v->rises += run->rises;
    v->small_rises += run->small_rises;
    v->min_cosine = fmin(v->min_cosine, run->cosine);
    v->mean_cosine += run->cosine;
    v->skew += run->force.share;
    v->step_skew += run->step.share;
    *squares += run->force.share * run->force.share;
    *errors += run->force.error * run->force.error;
}

basin_status basin_specimen_judge(basin_specimen_verdict *verdict, const basin_zoo_model *model,
                                  const basin_bundle *bundle, int seeds, uint64_t seed, int steps,
                                  basin_error *error) {
    basin_specimen_verdict v = {.min_cosine = 1};
    double squares = 0, errors = 0;
    if (bundle) seeds = 1;
    for (int i = 0; i < seeds; i++) {
        basin_specimen_run run;
        BASIN_TRY(basin_specimen_descend(&run, model, bundle, seed + (uint64_t)i, steps, 1, error));
        add_run(&v, &run, &squares, &errors);
    }
    double n = (double)seeds;
    v.mean_cosine /= n, v.skew /= n, v.step_skew /= n;
    double variance = seeds > 1 ? fmax(squares / n - v.skew * v.skew, 0) / (n - 1) : 0;
    double half = 1.96 * sqrt(variance + errors / (n * n));
    v.skew_low = fmax(v.skew - half, 0), v.skew_high = v.skew + half;
    interval(&v.rising_low, &v.rising_high, v.rising_draws, v.draws);
    *verdict = v;
    return BASIN_OK;
}

const char *basin_specimen_answer(const basin_specimen_verdict *verdict) {
    if (verdict->small_rises) return "not at all";
    return verdict->rises ? "for small steps" : "always";
}

/* Tiny steps in turns, and rounding, leave less. */
const char *basin_specimen_gradient(const basin_specimen_verdict *verdict) {
    return verdict->skew < 1e-4 ? "yes" : "no";
}
