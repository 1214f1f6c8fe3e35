/* basin verify: recomputes golden cases through the code that the tasks run, and says how far each
 * result is from the oracle's. */
#include "program/verify/verify.h"
#include "base/info.h"
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

typedef struct printer {
    options *o;
    basin_record *r;
    const char *file;
    double tolerance;
    bool open; /* the row of the file, with its errors by tensor, is begun */
} printer;

/* Called for each tensor of a file, for JSON. */
static void put_tensor(void *context, const char *tensor, double error) {
    printer *p = context;
    if (!p->o->json) return;
    if (!p->open) basin_record_row(p->r);
    if (!p->open) basin_record_object(p->r, "errors");
    p->open = true;
    basin_record_data_keys(p->r, true);
    basin_record_number(p->r, tensor, "%g", error);
    basin_record_data_keys(p->r, false);
}

static void put_file(printer *p, const basin_verdict *v) {
    bool good = v->error <= p->tolerance;
    if (p->open)
        basin_record_end(p->r);
    else
        basin_record_row(p->r);
    basin_record_fields(p->r, "file=%s;.case=%s;tensors=%lld;worst=%s;error=%.2e;.ok=%d;|ok=%s",
                        p->file, v->name, (long long)v->tensors, v->worst, v->error, good,
                        good ? "ok" : "FAILED");
}

/* How many files failed. */
static int verify_files(printer *p) {
    char **operand = p->o->operand;
    int failed = 0;
    for (int i = 0; i < p->o->operands; i++) {
        basin_verdict verdict;
        basin_error error;
        p->file = operand[i];
        p->open = false;
        if (basin_verify(&verdict, operand[i], p->o->compute, p->o->recompute, put_tensor, p,
                         &error)) {
            basin_report(&error);
            failed++;
            if (p->open) basin_record_end(p->r);
            continue;
        }
        put_file(p, &verdict);
        failed += !(verdict.error <= p->tolerance);
    }
    return failed;
}

static basin_status verify_all(options *o, basin_error *error) {
    basin_dtype dtype = basin_backend_info_of(o->compute).storage;
    const char *name = basin_backend_info_of(o->compute).name, *type = basin_dtype_name(dtype);
    printer p = {.o = o, .tolerance = o->tolerance};
    if (p.tolerance < 0)
        p.tolerance = dtype == BASIN_F64    ? 1e-9
                      : dtype == BASIN_F32  ? 1e-3
                      : dtype == BASIN_BF16 ? 2e-2
                                            : 3e-1;
    p.r = basin_record_open(stdout, o->json ? BASIN_FORM_JSON : BASIN_FORM_TEXT);
    if (!p.r) return basin_fail_memory(error, "a result");
    basin_record_fields(p.r, ".backend=%s;.dtype=%s;.tolerance=%g", name, type, p.tolerance);
    basin_record_table(p.r, "files", NULL);
    int failed = verify_files(&p);
    basin_record_end(p.r);
    basin_record_flag(p.r, ".ok", failed == 0);
    basin_record_note(p.r, "%d of %d files within %g on %s (%s)", o->operands - failed, o->operands,
                      p.tolerance, name, type);
    BASIN_TRY(basin_record_close(p.r, error));
    return failed ? BASIN_REPORTED : BASIN_OK;
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
    return verify_all(o, error);
}

const basin_command basin_command_verify = {BASIN_COMMAND("verify", table), .run = run};
