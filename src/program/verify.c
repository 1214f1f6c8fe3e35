/* basin verify: recomputes golden cases through the code that the tasks run, and says how far each
 * result is from the oracle's. */
#include "program/verify/verify.h"
#include "base/bundle.h"
#include "base/info.h"
#include "base/shape.h"
#include "base/try.h"
#include "program/cli.h"

typedef struct options {
    BASIN_ARGS;
    double tolerance;
    bool recompute;
} options;
#define OPTIONS options

static const basin_option table[] = {
    BASIN_CHOICE(backend, "backend", "ref|cpu|cuda"),
    BASIN_CHOICE(dtype, "dtype", "f64|f32|bf16|fp8"),
    BASIN_REAL(tolerance, "tolerance", "X", 0, 1, .initial = -1),
    BASIN_FLAG(recompute, "recompute"),
    BASIN_FLAG(narrow_all, "narrow-all", .needs = "dtype=bf16|fp8"),
    BASIN_OPTION_PRODUCTS,
    BASIN_OPTION_THREADS,
    BASIN_OPTION_JSON,
    BASIN_OPTIONS_END,
};

typedef struct verification {
    const options *o;
    basin_record *r;
    double tolerance;
    int passed; /* files */
} verification;

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

static bool is_result(const char *name) {
    return !strncmp(name, "out.", 4) || !strncmp(name, "grad", 4);
}

/* A row of the record: the errors of all results, and the largest. */
static basin_status compare(verification *v, const basin_case *c, const char *path,
                            basin_error *error) {
    size_t count = basin_bundle_count(c->bundle), worst = count;
    long long results = 0;
    BASIN_SCRATCH_RAW(double, off, count, "errors", error);
    for (size_t i = 0; i < count; i++) {
        const char *name = basin_bundle_name(c->bundle, i);
        if (!is_result(name)) continue;
        BASIN_TRY(measure(&off[i], c, name, basin_bundle_at(c->bundle, i), error));
        if (!results++ || !(off[i] <= off[worst])) worst = i;
    }
    if (!results)
        return basin_fail(error, BASIN_BAD_FILE, "no tensor 'out.*' or 'grad.*' to compare");
    basin_record_row(v->r);
    basin_record_object(v->r, "errors");
    basin_record_data_keys(v->r, true);
    for (size_t i = 0; i < count; i++) {
        const char *name = basin_bundle_name(c->bundle, i);
        if (is_result(name)) basin_record_number(v->r, name, "%g", off[i]);
    }
    basin_record_data_keys(v->r, false);
    basin_record_end(v->r);
    bool good = off[worst] <= v->tolerance;
    v->passed += good;
    basin_record_fields(v->r, "file=%s;.case=%s;tensors=%lld;worst=%s;error=%.2e;.ok=%d;|ok=%s",
                        path, c->name, results, basin_bundle_name(c->bundle, worst), off[worst],
                        good, good ? "ok" : "FAILED");
    return BASIN_OK;
}

static basin_status plan_new(basin_case *c, basin_error *error) {
    BASIN_SCRATCH_RAW(basin_expr, output, c->outputs, "a case", error);
    for (size_t i = 0; i < c->outputs; i++) output[i] = c->output[i].value;
    basin_plan_spec spec = {.output = output, .outputs = (int)c->outputs};
    return basin_plan_new(&c->plan, c->store, &spec, error);
}

void basin_verify_name_file(basin_error *error, const char *path) {
    if (!error || !strncmp(error->text, path, strlen(path))) return;
    basin_error inner = *error;
    basin_fail(error, inner.status, "%s: %.*s", path, BASIN_ERROR_TEXT / 2, inner.text);
}

static basin_status run_case(verification *v, basin_case *c, const char *path, basin_error *error) {
    char text[400];
    if (!c->graph) return basin_fail_memory(error, "a case");
    basin_params_begin(&c->params, c->graph);
    BASIN_TRY(basin_store_new(&c->store, c->backend, error));
    basin_case_build(c);
    BASIN_TRY(basin_graph_check(c->graph, error));
    BASIN_TRY(plan_new(c, error));
    BASIN_TRY(compute(c, error));
    basin_convergence found = basin_convergence_of(c->store);
    if (basin_convergence_describe(text, sizeof text, &found))
        basin_say("basin: note: %s: %s", path, text);
    return compare(v, c, path, error);
}

static void case_free(basin_case *c) {
    free(c->output);
    basin_plan_free(c->plan);
    basin_store_free(c->store);
    basin_params_free(&c->params);
    basin_graph_free(c->graph);
}

static basin_status verify(verification *v, const char *path, basin_error *error) {
    BASIN_AT_EXIT(basin_bundle_free_at) basin_bundle *bundle = NULL;
    BASIN_TRY(basin_bundle_read(&bundle, path, error));
    basin_case c = {.bundle = bundle,
                    .recompute = v->o->recompute,
                    .graph = basin_graph_new(),
                    .backend = v->o->compute};
    basin_status status = run_case(v, &c, path, error);
    if (status) basin_verify_name_file(error, path);
    case_free(&c);
    return status;
}

static void put_files(basin_record *r, const void *context) {
    verification *v = (verification *)context;
    const options *o = v->o;
    basin_backend_info info = basin_backend_info_of(o->compute);
    const char *dtype = basin_dtype_name(info.storage);
    v->r = r;
    basin_record_fields(r, ".backend=%s;.dtype=%s;.tolerance=%g", info.name, dtype, v->tolerance);
    basin_record_table(r, "files", NULL);
    for (int i = 0; i < o->operands; i++) {
        basin_error error;
        if (verify(v, o->operand[i], &error)) basin_report(&error);
    }
    basin_record_end(r);
    basin_record_flag(r, ".ok", v->passed == o->operands);
    basin_record_note(r, "%d of %d files within %g on %s (%s)", v->passed, o->operands,
                      v->tolerance, info.name, dtype);
}

static basin_status run(void *context, basin_error *error) {
    options *o = context;
    basin_dtype dtype = basin_option_dtype(o->dtype);
    if (!o->backend) o->backend = dtype == BASIN_F64 ? "ref" : "cpu";
    bool ref = !strcmp(o->backend, "ref");
    bool fits = dtype == BASIN_BF16 || dtype == BASIN_F8_E4M3 || ref == (dtype == BASIN_F64);
    if (o->dtype && !fits)
        return basin_usage(error, "backend %s does not compute in %s", o->backend, o->dtype);
    BASIN_TRY(basin_compute_open(&o->args, error));
    verification v = {.o = o, .tolerance = o->tolerance};
    dtype = basin_backend_info_of(o->compute).storage;
    if (v.tolerance < 0)
        v.tolerance = dtype == BASIN_F64    ? 1e-9
                      : dtype == BASIN_F32  ? 1e-3
                      : dtype == BASIN_BF16 ? 2e-2
                                            : 3e-1;
    BASIN_TRY(basin_record_print(o->json, put_files, &v, error));
    return v.passed < o->operands ? BASIN_REPORTED : BASIN_OK;
}

const basin_command basin_command_verify = {BASIN_COMMAND("verify", table), .run = run};
