/* basin descend: descends the energy of a given block from given tokens and prints the trace. */
#include "base/bundle.h"
#include "base/info.h"
#include "base/shape.h"
#include "basin/version.h"
#include "basin/zoo.h"
#include "program/cli.h"
#include "program/verify/verify.h"
#include "tasks/common/digest.h"
#include "tasks/common/run/settings.h"

typedef struct options {
    BASIN_ARGS;
    const char *weights, *prefix, *hopfield_kind;
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
    BASIN_REAL(noise, "noise", "SIGMA", 0, 1e30, .needs = "guard=off"),
    BASIN_SWITCH(self, "self", .needs = "no-attention=off"),
    BASIN_FLAG(no_attention, "no-attention", .needs = "no-hopfield=off"),
    BASIN_FLAG(no_hopfield, "no-hopfield"),
    BASIN_CHOICE(hopfield_kind, "hopfield-kind", "relu|power|softmax", .needs = "no-hopfield=off",
                 .text = "relu"),
    BASIN_REAL(hopfield_power, "hopfield-power", "N", 1.001, 100,
               .needs = "no-hopfield=off hopfield-kind=power", .initial = 3),
    BASIN_COMPUTE_OPTIONS,
    BASIN_OPTION_SEED_FOR("noise!=0"),
    BASIN_OPTIONS_LAST,
};

/* All that a descent owns; freed in one place. */
typedef struct job {
    options *o;
    basin_bundle *tokens_file, *weights_file;
    const basin_tensor *tokens;
    basin_zoo_value value[16]; /* of the block */
    int values;
    basin_store *store;
    basin_graph *graph;
    basin_energy energy;
    basin_descent *descent;
    basin_descent_result result;
} job;

static void close_all(void *context) {
    job *j = context;
    basin_descent_result_free(&j->result);
    basin_descent_free(j->descent);
    basin_store_free(j->store);
    basin_graph_free(j->graph);
    basin_bundle_free(j->weights_file);
    basin_bundle_free(j->tokens_file);
}

/* ---- files ---- */

enum { NAME = 256 };

static const basin_tensor *find(const basin_bundle *bundle, const char *prefix, const char *name,
                                char found[NAME]) {
    snprintf(found, NAME, "%s%s", prefix, name);
    return basin_bundle_find(bundle, found);
}

static basin_status check_finite(const basin_bundle *bundle, const char *name,
                                 const basin_tensor *tensor, basin_error *error) {
    int64_t bad = basin_tensor_first_bad(tensor);
    if (bad < 0) return BASIN_OK;
    return basin_fail(
        error, BASIN_BAD_VALUE, "%s: tensor '%s' has %g at element %lld; expected finite numbers",
        basin_bundle_path(bundle), name, basin_tensor_at(tensor, bad), (long long)bad);
}

/* The tokens [N, D] or [B, N, D]: x, x0, or the only tensor of two or three axes. */
static basin_status read_tokens(job *j, basin_error *error) {
    const basin_bundle *bundle = j->tokens_file;
    char name[NAME];
    const basin_tensor *tensor = find(bundle, j->o->prefix, "x", name);
    if (!tensor) tensor = find(bundle, j->o->prefix, "x0", name);
    if (!tensor) tensor = find(bundle, "", "x0", name);
    bool named = tensor != NULL;
    int fitting = named;
    for (size_t i = 0; !named && i < basin_bundle_count(bundle); i++) {
        int rank = basin_bundle_at(bundle, i)->shape.rank;
        if (rank != 2 && rank != 3) continue;
        fitting++;
        tensor = basin_bundle_at(bundle, i);
        snprintf(name, sizeof name, "%s", basin_bundle_name(bundle, i));
    }
    if (fitting != 1)
        return basin_fail(error, BASIN_BAD_FILE,
                          "%s: no tensor 'x' or 'x0', and %d of two or three axes; expected one of "
                          "tokens",
                          basin_bundle_path(bundle), fitting);
    j->tokens = tensor;
    if ((tensor->shape.rank != 2 && tensor->shape.rank != 3) || !basin_shape_count(tensor->shape))
        return basin_fail(error, BASIN_BAD_SHAPE,
                          "%s: tensor '%s' is %s; expected tokens [N, D] or [B, N, D]",
                          basin_bundle_path(bundle), name, basin_shape_text(tensor->shape));
    return check_finite(bundle, name, tensor, error);
}

/* The tensors of the block that the file has; one number may stand for all of a tensor. */
static basin_status read_weights(job *j, const basin_bundle *bundle, basin_error *error) {
    const options *o = j->o;
    int64_t width = j->tokens->shape.dim[j->tokens->shape.rank - 1];
    for (const basin_zoo_tensor *row = basin_case_model("et")->kind->tensor + 1; row->name; row++) {
        bool memories = !strcmp(row->name, "xi"), pairs = row->name[0] == 'w';
        bool heads = strchr(row->shape, 'H') != NULL;
        char name[NAME];
        if (memories ? o->no_hopfield : heads && o->no_attention) continue;
        const basin_tensor *tensor = find(bundle, o->prefix, row->name, name);
        if (!tensor && (memories || pairs))
            return basin_fail(error, BASIN_BAD_FILE, "%s: no tensor '%s'; expected one, or --no-%s",
                              basin_bundle_path(bundle), name, memories ? "hopfield" : "attention");
        if (!tensor) continue;
        BASIN_TRY(check_finite(bundle, name, tensor, error));
        int rank = tensor->shape.rank;
        if ((memories || pairs) && rank && tensor->shape.dim[rank - 1] != width)
            return basin_fail(error, BASIN_BAD_SHAPE,
                              "%s: tokens %s; the last axis must be %lld, the width of %s",
                              basin_bundle_path(j->tokens_file), basin_shape_text(j->tokens->shape),
                              (long long)tensor->shape.dim[rank - 1], basin_bundle_path(bundle));
        bool one = basin_shape_count(tensor->shape) == 1 && !memories && !pairs;
        basin_zoo_value value = {.name = row->name, .data = one ? NULL : tensor};
        if (one) value.number = basin_tensor_at(tensor, 0);
        j->value[j->values++] = value;
    }
    return BASIN_OK;
}

static basin_status read_files(void *context, basin_error *error) {
    job *j = context;
    options *o = j->o;
    BASIN_TRY(basin_bundle_read(&j->tokens_file, o->operand[0], error));
    if (o->weights) BASIN_TRY(basin_model_read(&j->weights_file, o->weights, error));
    BASIN_TRY(read_tokens(j, error));
    return read_weights(j, j->weights_file ? j->weights_file : j->tokens_file, error);
}

/* ---- the descent ---- */

static basin_status build(job *j, basin_error *error) {
    options *o = j->o;
    j->graph = basin_graph_new();
    j->value[j->values++] = (basin_zoo_value){.name = "memories", .choice = o->hopfield_kind};
    j->value[j->values++] = (basin_zoo_value){.name = "power", .number = o->hopfield_power};
    j->value[j->values++] = (basin_zoo_value){.name = "exclude_self", .number = !o->self};
    const basin_zoo *block = basin_zoo_build(j->graph, "et", j->value, j->values);
    if (basin_graph_check(j->graph, error)) {
        const basin_bundle *source = j->weights_file ? j->weights_file : j->tokens_file;
        basin_verify_name_file(error, basin_bundle_path(source));
        return BASIN_BAD_SHAPE;
    }
    j->energy = block->energy;
    basin_descent_spec spec = {.steps = (int)o->steps, .alpha = o->alpha, .noise = o->noise};
    basin_stop stop = {.tolerance = o->tolerance,
                       .guard = o->guard,
                       .accelerate = o->accelerate,
                       .seed = (uint64_t)o->seed};
    return basin_descent_new(&j->descent, j->store, &j->energy, j->graph, j->tokens->shape, &spec,
                             &stop, error);
}

static basin_status compute(void *context, basin_error *error) {
    job *j = context;
    options *o = j->o;
    BASIN_TRY(basin_store_new(&j->store, o->compute, error));
    BASIN_TRY(build(j, error));
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
    basin_dtype dtype = basin_backend_info_of(j->o->compute).dtype;
    basin_shape trace = j->tokens->shape.rank == 3 ? BASIN_SHAPE(r->steps + 1, r->terms, r->samples)
                                                   : BASIN_SHAPE(r->steps + 1, r->terms);
    BASIN_TRY(add_tensor(out, "x", r->x->data, r->x->dtype, dtype, r->x->shape, error));
    BASIN_TRY(add_tensor(out, "g", r->g->data, r->g->dtype, dtype, r->g->shape, error));
    BASIN_TRY(add_tensor(out, "energy", r->energy, BASIN_F64, BASIN_F64, trace, error));
    return add_tensor(out, "change", r->change, BASIN_F64, BASIN_F64, BASIN_SHAPE(r->steps), error);
}

/* What would repeat the run, by the names of the options, and what came of it. */
static basin_status add_settings(basin_bundle *out, const job *j, basin_error *error) {
    char text[4200]; /* a path, at most */
    for (const basin_option *o = table; o->entry.is.name; o++) {
        basin_setting_print(text, sizeof text, &j->o->args, &o->entry);
        if (*text) BASIN_TRY(basin_bundle_meta_set(out, o->entry.is.name, text, error));
    }
    snprintf(text, sizeof text, "%d", j->result.steps);
    BASIN_TRY(basin_bundle_meta_set(out, "format", "basin descend", error));
    BASIN_TRY(basin_bundle_meta_set(out, "version", basin_version(), error));
    BASIN_TRY(basin_bundle_meta_set(out, "tokens", basin_bundle_path(j->tokens_file), error));
    BASIN_TRY(basin_bundle_meta_set(out, "steps-taken", text, error));
    for (int i = 0; i < j->energy.terms; i++) {
        snprintf(text, sizeof text, "term-%d", i);
        BASIN_TRY(basin_bundle_meta_set(out, text, j->energy.term[i].name, error));
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
    double before = INFINITY;
    for (int t = 0; t <= j->result.steps; t++) {
        double energy = basin_descent_total(&j->result, t);
        if (!isfinite(energy))
            return basin_fail(error, BASIN_BAD_VALUE,
                              "the energy is not finite at step %d; nothing is written (a smaller "
                              "--alpha or --guard may help)",
                              t);
        /* sums of floats come back with their rounding */
        if (risen < 0 && energy > before + 1e-6 * fabs(before)) risen = t - 1;
        before = energy;
    }
    if (risen >= 0 && o->noise == 0)
        basin_note(o, "the energy rose in step %d; --guard or a smaller --alpha prevents it",
                   risen);
    return o->output ? write_result(j, error) : BASIN_OK;
}

const basin_command basin_command_descend = {BASIN_COMMAND("descend", table),
                                             BASIN_USES(job, .prepare = read_files, .work = compute,
                                                        .print = put_result, .finish = finish,
                                                        .close = close_all, .no_stop = true)};
