/* basin descend: descends the energy of a given block from given tokens and prints the trace. */
#include "base/bundle.h"
#include "base/info.h"
#include "base/json.h"
#include "base/shape.h"
#include "basin/version.h"
#include "program/cli.h"
#include "program/verify/verify.h"
#include "tasks/common/view/svg.h"

typedef struct options {
    BASIN_ARGS;
    const char *weights, *prefix, *hopfield_kind, *svg;
    int64_t steps;
    double alpha, tolerance, noise, hopfield_power;
    bool guard, accelerate, self, no_attention, no_hopfield;
} options;
#define OPTIONS options

static const basin_option table[] = {
    BASIN_TEXT(weights, 'w', "weights", "FILE"),
    BASIN_TEXT(prefix, 0, "prefix", "TEXT", .text = ""),
    BASIN_TEXT(output, 'o', "output", "FILE", .writes = true),
    BASIN_INTEGER(steps, "steps", "T", 0, 1000000, .initial = 12),
    BASIN_REAL(alpha, "alpha", "X", 0, 1e300, .initial = 0.1),
    BASIN_REAL(tolerance, "tolerance", "X", 0, 1e30),
    BASIN_FLAG(guard, "guard"),
    BASIN_FLAG(accelerate, "accelerate"),
    BASIN_REAL(noise, "noise", "SIGMA", 0, 1e30),
    BASIN_SWITCH(self, "self", .needs = "no-attention=off"),
    BASIN_FLAG(no_attention, "no-attention"),
    BASIN_FLAG(no_hopfield, "no-hopfield"),
    BASIN_TEXT(hopfield_kind, 0, "hopfield-kind", "relu|power|softmax", .needs = "no-hopfield=off",
               .text = "relu"),
    BASIN_REAL(hopfield_power, "hopfield-power", "N", 1, 100,
               .needs = "no-hopfield=off hopfield-kind=power", .initial = 3),
    BASIN_TEXT(svg, 0, "svg", "FILE", .writes = true),
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTION_SEED_FOR("noise!=0"),
    BASIN_OPTIONS_LAST,
};

/* All that a descent owns; freed in one place. */
typedef struct job {
    options *o;
    basin_bundle *tokens_file, *weights_file;
    const basin_tensor *tokens;
    basin_weights weights;
    basin_store *store;
    basin_graph *graph;
    basin_params params;
    basin_block block;
    basin_pattern pattern;
    basin_energy energy;
    basin_descent *descent;
    basin_descent_result result;
} job;

static void close_all(void *context) {
    job *j = context;
    basin_descent_result_free(&j->result);
    basin_descent_free(j->descent);
    basin_store_free(j->store);
    basin_params_free(&j->params);
    basin_graph_free(j->graph);
    basin_weights_free(&j->weights);
    basin_bundle_free(j->weights_file);
    basin_bundle_free(j->tokens_file);
}

/* The kind of Hopfield network; false where there is none of that name. */
static bool read_kind(basin_block_config *config, options *o) {
    const char *kind = o->hopfield_kind;
    bool power = !strcmp(kind, "power");
    config->hopfield = power ? BASIN_HOPFIELD_POWER : basin_hopfield_named(kind);
    config->power = o->hopfield_power;
    return power ? config->power > 1 : !strcmp(kind, "relu") || !strcmp(kind, "softmax");
}

static basin_status read_files(job *j, const char *path, const basin_block_config *config,
                               basin_error *error) {
    options *o = j->o;
    BASIN_TRY(basin_bundle_read(&j->tokens_file, path, error));
    if (o->weights) BASIN_TRY(basin_bundle_read(&j->weights_file, o->weights, error));
    BASIN_TRY(basin_tokens_find(&j->tokens, j->tokens_file, o->prefix, error));
    const basin_bundle *source = j->weights_file ? j->weights_file : j->tokens_file;
    BASIN_TRY(basin_weights_read(&j->weights, source, o->prefix, config, error));
    basin_shape shape = j->tokens->shape;
    if (shape.dim[shape.rank - 1] != j->weights.config.dim) {
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: tokens %s; the last axis must be %lld, the width of %s", path,
                          basin_shape_text(shape), (long long)j->weights.config.dim,
                          basin_bundle_path(source));
    }
    return BASIN_OK;
}

static basin_status build(job *j, basin_block_bound *bound, basin_error *error) {
    options *o = j->o;
    j->graph = basin_graph_new();
    if (!j->graph) return basin_fail_memory(error, "a graph");
    basin_params_begin(&j->params, j->graph);
    j->pattern = o->self ? BASIN_ALL_PAIRS : BASIN_OTHER_PAIRS;
    basin_block_declare(&j->block, &j->params, "", &j->weights.config);
    BASIN_TRY(basin_graph_check(j->graph, error));
    *bound = (basin_block_bound){.block = &j->block, .pattern = &j->pattern};
    j->energy = basin_block_energy(bound);
    basin_descent_spec spec = {.steps = (int)o->steps, .alpha = o->alpha, .noise = o->noise};
    basin_stop stop = {.tolerance = o->tolerance,
                       .guard = o->guard,
                       .accelerate = o->accelerate,
                       .seed = (uint64_t)o->seed};
    return basin_descent_new(&j->descent, j->store, &j->energy, j->graph, j->tokens->shape, &spec,
                             &stop, error);
}

static basin_status compute(void *context, basin_error *error) {
    basin_block_bound bound;
    job *j = context;
    options *o = j->o;
    BASIN_TRY(basin_store_new(&j->store, o->compute, error));
    BASIN_TRY(basin_weights_store(&j->weights, j->store, error));
    BASIN_TRY(build(j, &bound, error));
    return basin_descent_run(j->descent, &j->result, j->tokens, error);
}

/* ---- results ---- */

static basin_status add_tensor(basin_bundle *out, const char *name, const void *data,
                               basin_dtype from, basin_dtype to, basin_shape shape,
                               basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor copy = {0};
    basin_tensor view = basin_tensor_view(data, from, shape);
    BASIN_TRY(basin_tensor_new(&copy, to, shape, error));
    BASIN_TRY(basin_tensor_convert(&copy, &view, error));
    return basin_bundle_add(out, name, &copy, error);
}

static basin_status add_tensors(basin_bundle *out, const job *j, basin_error *error) {
    const basin_descent_result *r = &j->result;
    basin_dtype dtype = basin_backend_dtype(j->o->compute);
    basin_shape trace = j->tokens->shape.rank == 3 ? BASIN_SHAPE(r->steps + 1, r->terms, r->samples)
                                                   : BASIN_SHAPE(r->steps + 1, r->terms);
    BASIN_TRY(add_tensor(out, "x", r->x->data, r->x->dtype, dtype, r->x->shape, error));
    BASIN_TRY(add_tensor(out, "g", r->g->data, r->g->dtype, dtype, r->g->shape, error));
    BASIN_TRY(add_tensor(out, "energy", r->energy, BASIN_F64, BASIN_F64, trace, error));
    return add_tensor(out, "change", r->change, BASIN_F64, BASIN_F64, BASIN_SHAPE(r->steps), error);
}

/* What would repeat the run, by the names of the options. */
static basin_status add_settings(basin_bundle *out, const job *j, basin_error *error) {
    options *o = j->o;
    const struct {
        const char *key, *text;
        double number;
    } all[] = {
        {"format", "basin descend", 0},
        {"version", basin_version(), 0},
        {"backend", o->backend, 0},
        {"products", o->products, 0},
        {"dtype", basin_dtype_name(basin_backend_info_of(j->o->compute).storage), 0},
        {"steps", NULL, (double)o->steps},
        {"alpha", NULL, o->alpha},
        {"tolerance", NULL, o->tolerance},
        {"noise", NULL, o->noise},
        {"seed", NULL, (double)o->seed},
        {"guard", o->guard ? "true" : "false", 0},
        {"accelerate", o->accelerate ? "true" : "false", 0},
        {"self", o->self ? "true" : "false", 0},
        {"attention", o->no_attention ? "false" : "true", 0},
        {"hopfield", o->no_hopfield ? "none" : o->hopfield_kind, 0},
        {"hopfield_power", NULL, o->hopfield_power},
        {"tokens_file", basin_bundle_path(j->tokens_file), 0},
        {"weights_file", o->weights ? o->weights : basin_bundle_path(j->tokens_file), 0},
        {"steps_taken", NULL, j->result.steps},
        {"converged", j->result.converged ? "true" : "false", 0},
        {"halvings", NULL, (double)j->result.halvings},
        {"energy_parts", j->energy.terms > 1 ? "attention,hopfield" : j->energy.term[0].name, 0}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char number[BASIN_NUMBER_TEXT];
        const char *text = all[i].text ? all[i].text : basin_number_print(number, all[i].number);
        BASIN_TRY(basin_bundle_meta_set(out, all[i].key, text, error));
    }
    return BASIN_OK;
}

static basin_status write_result(const job *j, basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *out = NULL;
    BASIN_TRY(basin_bundle_new(&out, NULL, error));
    BASIN_TRY(add_tensors(out, j, error));
    BASIN_TRY(add_settings(out, j, error));
    return basin_bundle_write(j->o->output, out, error);
}

/* ---- the energies of all steps ---- */

/* Term `term` before step `step` (at the end, for the last), of all samples. */
static double energy_at(const job *j, int step, int term) {
    const basin_descent_result *d = &j->result;
    const double *of = d->energy + ((int64_t)step * d->terms + term) * d->samples;
    double sum = 0;
    for (int64_t i = 0; i < d->samples; i++) sum += of[i];
    return sum;
}

static void put_step(basin_record *r, const job *j, int t) {
    const basin_descent_result *d = &j->result;
    basin_record_row(r);
    basin_record_fields(r, "step=%lld;energy=%.6f", (long long)t, basin_descent_total(d, t));
    for (int p = 0; p < d->terms; p++)
        basin_record_number(r, j->energy.term[p].name, "%.6f", energy_at(j, t, p));
    basin_record_number(r, "change|change of g", "%.3e", t < d->steps ? d->change[t] : NAN);
}

static basin_status draw(const job *j, basin_error *error) {
    enum { MAX_TERMS = 3 }; /* of a block */
    const basin_descent_result *r = &j->result;
    const basin_term *term = j->energy.term;
    int points = r->steps + 1, lines = r->terms > 1 ? r->terms + 1 : 1;
    basin_plot_line line[MAX_TERMS + 1];
    BASIN_SCRATCH_RAW(double, number, ((size_t)points * (size_t)lines), "a plot", error);
    for (int p = 0; p < lines; p++) {
        double *y = number + (size_t)p * (size_t)points;
        for (int t = 0; t < points; t++)
            y[t] = p ? energy_at(j, t, p - 1) : basin_descent_total(r, t);
        line[p] = (basin_plot_line){.name = p            ? term[p - 1].name
                                            : lines == 1 ? term[0].name
                                                         : "energy",
                                    .y = y,
                                    .count = points};
    }
    basin_plot plot = {.title = "Energy descent",
                       .x_label = "step",
                       .y_label = "energy",
                       .line = line,
                       .lines = lines};
    return basin_svg_plot(j->o->svg, &plot, error);
}

static void put_result(basin_record *r, const void *context) {
    const job *j = context;
    const basin_descent_result *d = &j->result;
    basin_record_fields(
        r,
        "backend=%s;steps=%lld;samples=%lld;converged=%d;halvings|steps halved by the guard=%lld",
        j->o->backend, (long long)d->steps, (long long)d->samples, d->converged,
        (long long)d->halvings);
    basin_record_table(r, "trace", NULL);
    for (int t = 0; t <= d->steps; t++) put_step(r, j, t);
    basin_record_end(r);
}

static basin_status finish(void *context, basin_error *error) {
    const job *j = context;
    const options *o = j->o;
    int risen = -1;
    for (int t = j->result.steps; t >= 0; t--) {
        double energy = basin_descent_total(&j->result, t);
        double before = t ? basin_descent_total(&j->result, t - 1) : INFINITY;
        /* sums of floats come back with their rounding */
        if (energy > before + 1e-6 * fabs(before)) risen = t - 1;
    }
    for (int t = 0; t <= j->result.steps; t++)
        if (!isfinite(basin_descent_total(&j->result, t)))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "the energy is not finite at step %d; nothing is written (a smaller "
                              "--alpha or --guard may help)",
                              t);
    if (risen >= 0 && o->noise == 0)
        basin_note(o, "the energy rose in step %d; --guard or a smaller --alpha prevents it",
                   risen);
    if (o->output) BASIN_TRY(write_result(j, error));
    return o->svg ? draw(j, error) : BASIN_OK;
}

static basin_status prepare(void *context, basin_error *error) {
    job *j = context;
    options *o = j->o;
    basin_block_config config = {.no_attention = o->no_attention, .no_hopfield = o->no_hopfield};
    if (o->no_attention && o->no_hopfield)
        return basin_usage(error, "--no-attention and --no-hopfield leave no energy");
    if (!read_kind(&config, o))
        return basin_usage(error,
                           "--hopfield-kind: '%s' is not relu, softmax, or power with a "
                           "--hopfield-power above 1",
                           o->hopfield_kind);
    if (o->guard && o->noise > 0)
        return basin_usage(error, "--guard and --noise: noise may raise the energy, which the "
                                  "guard forbids");
    return read_files(j, o->operand[0], &config, error);
}

const basin_command basin_command_descend = {BASIN_COMMAND("descend", table),
                                             BASIN_USES(job, .prepare = prepare, .work = compute,
                                                        .print = put_result, .finish = finish,
                                                        .close = close_all, .no_stop = true)};
