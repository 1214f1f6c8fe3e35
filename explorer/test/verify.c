/* Golden cases in WebAssembly, under node: as `basin verify` on the cpu backend.
 *
 *     node verify.js [--each] FILE...
 *
 * --each prints the error of every tensor in full, to compare the bits of two builds. */
#include <stdio.h>
#include <string.h>

#include "base/bundle.h"
#include "base/shape.h"
#include "base/try.h"
#include "program/verify/verify.h"

/* The sum of the squares of a - b; b NULL: of a. */
static double squares(const basin_tensor *a, const basin_tensor *b) {
    double sum = 0;
    for (int64_t i = 0; i < basin_shape_count(a->shape); i++) {
        double off = basin_tensor_at(a, i) - (b ? basin_tensor_at(b, i) : 0);
        sum += off * off;
    }
    return sum;
}

/* The relative error of a result, as src/program/verify.c has it. */
static basin_status measure(double *off, const basin_case *c, const char *name,
                            const basin_tensor *expected, basin_error *error) {
    BASIN_AT_EXIT(basin_tensor_free) basin_tensor got = {0};
    const basin_tensor *beside = NULL;
    BASIN_TRY(basin_tensor_new(&got, BASIN_F64, expected->shape, error));
    for (size_t i = 0; i < c->outputs; i++) {
        const basin_case_output *o = &c->output[i];
        if (strcmp(o->name, name) != 0) continue;
        BASIN_TRY(basin_plan_read(&got, c->plan, o->value, error));
        if (*o->beside) beside = basin_bundle_find(c->bundle, o->beside);
    }
    double size = squares(expected, NULL), ratio = beside ? sqrt(squares(beside, NULL) / size) : 1;
    *off = sqrt(squares(&got, expected) / (size > 0 ? size : 1)) / (ratio > 1 ? ratio : 1);
    return BASIN_OK;
}

/* The largest error of a case; with `each` every one is printed. */
static basin_status run(double *worst, basin_case *c, const char *each, basin_error *error) {
    BASIN_SCRATCH_RAW(basin_expr, output, 1000, "a case", error);
    basin_params_begin(&c->params, c->graph);
    BASIN_TRY(basin_store_new(&c->store, c->backend, error));
    basin_case_build(c);
    BASIN_TRY(basin_graph_check(c->graph, error));
    for (size_t i = 0; i < c->outputs && i < 1000; i++) output[i] = c->output[i].value;
    basin_plan_spec spec = {.output = output, .outputs = (int)c->outputs};
    BASIN_TRY(basin_plan_new(&c->plan, c->store, &spec, error));
    for (size_t i = 0; i < c->params.count; i++) {
        const char *name = basin_expr_name(c->params.param[i].state);
        const basin_tensor *tensor;
        char full[96];
        snprintf(full, sizeof full, "in.%s", name);
        BASIN_TRY(basin_bundle_get(&tensor, c->bundle, full, error));
        BASIN_TRY(basin_store_write(c->store, name, tensor, error));
    }
    BASIN_TRY(basin_plan_run(c->plan, error));
    for (size_t i = 0; i < basin_bundle_count(c->bundle); i++) {
        const char *name = basin_bundle_name(c->bundle, i);
        double off;
        if (strncmp(name, "out.", 4) != 0 && strncmp(name, "grad", 4) != 0) continue;
        BASIN_TRY(measure(&off, c, name, basin_bundle_at(c->bundle, i), error));
        if (each) printf("%s %s %a\n", each, name, off);
        if (!(off <= *worst)) *worst = off;
    }
    return BASIN_OK;
}

int main(int count, char **file) {
    basin_backend *backend;
    basin_error error;
    int failed = 0;
    bool each = count > 1 && !strcmp(file[1], "--each");
    count -= each, file += each;
    if (basin_backend_open(&backend, &(basin_compute){.backend = "cpu", .threads = 1}, &error)) {
        puts(error.text);
        return 1;
    }
    for (int i = 1; i < count; i++) {
        basin_bundle *bundle = NULL;
        double worst = -1;
        basin_case c = {.graph = basin_graph_new(), .backend = backend};
        basin_status status = basin_bundle_read(&bundle, file[i], &error);
        c.bundle = bundle;
        if (!status) status = run(&worst, &c, each ? file[i] : NULL, &error);
        if (status) printf("%s: %s\n", file[i], error.text);
        if (!status && !(worst >= 0 && worst <= 1e-3)) printf("%s: error %.2e\n", file[i], worst);
        failed += status || !(worst >= 0 && worst <= 1e-3);
        free(c.output);
        basin_plan_free(c.plan);
        basin_store_free(c.store);
        basin_params_free(&c.params);
        basin_graph_free(c.graph);
        basin_bundle_free(bundle);
    }
    printf("%d of %d golden files within 0.001 in WebAssembly\n", count - 1 - failed, count - 1);
    basin_backend_close(backend);
    return failed != 0;
}
