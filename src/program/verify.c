/* basin verify: recomputes golden cases through the code that the tasks run, and says how far each
 * result is from the oracle's. */
#include "program/verify/verify.h"
#include "base/info.h"
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

/* A row of the record: the errors of all results, and the largest. */
static void put_case(verification *v, const basin_case *c, const char *path) {
    basin_record_row(v->r);
    basin_record_object(v->r, "errors");
    basin_record_data_keys(v->r, true);
    for (size_t i = 0; i < basin_bundle_count(c->bundle); i++)
        if (!(c->off[i] < 0))
            basin_record_number(v->r, basin_bundle_name(c->bundle, i), "%g", c->off[i]);
    basin_record_data_keys(v->r, false);
    basin_record_end(v->r);
    bool good = c->off[c->worst] <= v->tolerance;
    v->passed += good;
    basin_record_fields(v->r, "file=%s;.case=%s;tensors=%lld;worst=%s;error=%.2e;.ok=%d;|ok=%s",
                        path, c->name, (long long)c->results,
                        basin_bundle_name(c->bundle, c->worst), c->off[c->worst], good,
                        good ? "ok" : "FAILED");
}

static basin_status verify(verification *v, const char *path, basin_error *error) {
    BASIN_AT_EXIT(basin_case_free)
    basin_case c = {.backend = v->o->compute, .recompute = v->o->recompute};
    char text[400];
    BASIN_TRY(basin_case_run(&c, path, error));
    basin_convergence found = basin_convergence_of(c.store);
    if (basin_convergence_describe(text, sizeof text, &found))
        basin_say("basin: note: %s: %s", path, text);
    put_case(v, &c, path);
    return BASIN_OK;
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
