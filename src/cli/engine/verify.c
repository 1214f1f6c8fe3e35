/* basin verify: recomputes golden cases through the code that the tasks run, and says how far each
 * result is from the oracle's. */
#include <limits.h>
#include <string.h>

#include "cli/command.h"
#include "cli/table.h"
#include "io/json_writer.h"
#include "verify/verify.h"

typedef struct options {
    const char *backend, *dtype, *products;
    int64_t threads;
    double tolerance;
    bool tensors, recompute, narrow_all, json;
} options;

static const options defaults = {.products = "f32", .tolerance = -1};

static const basin_option table[] = {
    BASIN_CHOICE(options, backend, "backend", "ref|cpu|cuda",
                 "What computes; without it, what computes in --dtype, else cpu."),
    BASIN_CHOICE(options, dtype, "dtype", "f64|f32|bf16|fp8",
                 "The type of the numbers: f64 is computed by ref, f32 by cpu and cuda; bf16, for "
                 "intermediate results, by cpu and cuda, and by ref, which rounds as they store; "
                 "fp8, for factors of large products, by cuda and ref."),
    BASIN_REAL(options, tolerance, "tolerance", "X", 0, 1,
               "The largest relative error that passes; without it 1e-9 for f64, 1e-3 for f32, "
               "2e-2 for bf16, 3e-1 for fp8."),
    BASIN_FLAG(options, tensors, 0, "tensors", "Print every tensor, not only the worst."),
    BASIN_FLAG(options, recompute, 0, "recompute",
               "Keep one token tensor a step of the descent and compute the rest again."),
    BASIN_FLAG(
        options, narrow_all, 0, "narrow-all",
        "With bf16 and fp8: narrow the factors of every product; else only of large ones, which "
        "golden cases hardly have.",
        .needs = "dtype=bf16|fp8"),
    BASIN_OPTION_PRODUCTS(options),
    BASIN_OPTION_THREADS(options),
    BASIN_OPTION_JSON(options),
    BASIN_OPTIONS_END,
};

typedef struct printer {
    const options *o;
    basin_table rows;
    basin_json json;
    const char *file;
    double tolerance;
    bool open; /* the JSON object of the file, with its array of tensors, is begun */
} printer;

static void file_begin(printer *p, const char *file) {
    p->file = file;
    p->open = false;
}

/* Hears of each tensor of a file. */
static void tensor_print(void *context, const char *tensor, double error) {
    printer *p = context;
    if (!p->o->tensors) return;
    if (!p->o->json) {
        basin_table_add(&p->rows, "%s", p->file);
        basin_table_add(&p->rows, "%s", "");
        basin_table_add(&p->rows, "%s", tensor);
        basin_table_add(&p->rows, "%.2e", error);
        basin_table_add(&p->rows, "%s", error <= p->tolerance ? "" : "over");
        return;
    }
    if (!p->open) {
        basin_json_object(&p->json, NULL);
        basin_json_object(&p->json, "errors");
        p->open = true;
    }
    basin_json_number(&p->json, tensor, error);
}

static void file_end(printer *p, const basin_verdict *v) {
    bool good = v->error <= p->tolerance;
    if (!p->o->json) {
        basin_table_add(&p->rows, "%s", p->file);
        basin_table_add(&p->rows, "%d", v->tensors);
        basin_table_add(&p->rows, "%s", v->worst);
        basin_table_add(&p->rows, "%.2e", v->error);
        basin_table_add(&p->rows, "%s", good ? "ok" : "FAILED");
        return;
    }
    if (p->open)
        basin_json_end(&p->json);
    else
        basin_json_object(&p->json, NULL);
    basin_json_text(&p->json, "file", p->file);
    basin_json_text(&p->json, "case", v->name);
    basin_json_integer(&p->json, "tensors", v->tensors);
    basin_json_text(&p->json, "worst", v->worst);
    basin_json_number(&p->json, "error", v->error);
    basin_json_boolean(&p->json, "ok", good);
    basin_json_end(&p->json);
}

static void print_begin(printer *p, const basin_backend *backend) {
    if (p->o->json) {
        p->json = basin_json_begin(stdout);
        basin_json_text(&p->json, "backend", basin_backend_name(backend));
        basin_json_text(&p->json, "dtype", basin_dtype_name(basin_backend_storage(backend)));
        basin_json_number(&p->json, "tolerance", p->tolerance);
        basin_json_array(&p->json, "files");
        return;
    }
    const char *heading[] = {"file", "tensors", "worst", "error", ""};
    p->rows = (basin_table){.layout = "lrlrl"};
    for (int i = 0; i < 5; i++) basin_table_add(&p->rows, "%s", heading[i]);
}

static bool print_end(printer *p, const basin_backend *backend, int files, int failed) {
    if (p->o->json) {
        basin_json_end(&p->json);
        basin_json_boolean(&p->json, "ok", failed == 0);
        basin_json_end(&p->json);
        return true;
    }
    bool good = basin_table_print(&p->rows, stdout, 0);
    printf("%d of %d files within %g on %s (%s)\n", files - failed, files, p->tolerance,
           basin_backend_name(backend), basin_dtype_name(basin_backend_storage(backend)));
    return good;
}

static int verify_all(const options *o, basin_backend *backend, int operands, char **operand) {
    printer p = {.o = o, .tolerance = o->tolerance};
    int failed = 0;
    basin_dtype dtype = basin_backend_storage(backend);
    if (p.tolerance < 0)
        p.tolerance = dtype == BASIN_F64    ? 1e-9
                      : dtype == BASIN_F32  ? 1e-3
                      : dtype == BASIN_BF16 ? 2e-2
                                            : 3e-1;
    print_begin(&p, backend);
    for (int i = 0; i < operands; i++) {
        basin_verdict verdict;
        basin_error error;
        file_begin(&p, operand[i]);
        if (basin_verify(&verdict, operand[i], backend, o->recompute, tensor_print, &p, &error)) {
            basin_report(&error);
            failed++;
            if (p.open) basin_json_end(&p.json), basin_json_end(&p.json);
            continue;
        }
        file_end(&p, &verdict);
        failed += !(verdict.error <= p.tolerance);
    }
    bool printed = print_end(&p, backend, operands, failed);
    return failed || !printed ? BASIN_EXIT_FAILURE : BASIN_EXIT_OK;
}

static int run(const void *values, int operands, char **operand) {
    const options *o = values;
    basin_dtype dtype = basin_option_dtype(o->dtype);
    const char *name = o->backend ? o->backend : dtype == BASIN_F64 ? "ref" : "cpu";
    bool ref = !strcmp(name, "ref");
    bool fits = dtype == BASIN_BF16 || dtype == BASIN_F8_E4M3 || ref == (dtype == BASIN_F64);
    if (o->dtype && !fits)
        return basin_report_usage(&basin_command_verify, "backend %s does not compute in %s", name,
                                  o->dtype);
    basin_backend *backend;
    basin_error error;
    basin_compute compute = {.backend = name,
                             .threads = (int)o->threads,
                             .products = basin_option_products(o->products),
                             .storage = o->dtype ? dtype : 0,
                             .narrow_least = o->narrow_all ? 1 : 0};
    if (basin_option_products_check(o->products, name, &error) ||
        basin_backend_open(&backend, &compute, &error))
        return basin_report(&error);
    int code = verify_all(o, backend, operands, operand);
    basin_backend_close(backend);
    return code;
}

const basin_command basin_command_verify = {
    .name = "verify",
    .summary = "Recompute golden cases and compare: does this build compute right?",
    .operands = "FILE...",
    .operands_least = 1,
    .operands_most = INT_MAX,
    .text = "A golden case is a safetensors file of inputs (in.*), results (out.*) and gradients "
            "(grad.*) that an independent program computed in double precision. Each is computed "
            "again by the functions that the tasks use. One line a file names the worst tensor "
            "and its relative error ||a - b|| / ||b||. The error of a Lagrangian's energy "
            "<x, g> - L is relative to L if L is larger, because the file has no more digits of "
            "the difference. Exits 1 if an error is above the tolerance. Case block_wide amplifies "
            "every rounding "
            "14,000 times: float products err by 6e-4 there, others as accurate as float may err "
            "by more than 1e-3.",
    .example = "  basin verify golden/*.safetensors\n"
               "  basin verify --dtype f64 --tensors golden/image.safetensors\n",
    .option = table,
    .defaults = &defaults,
    .size = sizeof defaults,
    .run = run,
};
