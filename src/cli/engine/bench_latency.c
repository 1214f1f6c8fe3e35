/* basin bench --latency: prints how long one item takes on an open model. */
#include "cli/engine/bench_latency.h"

#include "backend/isa.h"
#include "bench/latency.h"
#include "cli/command.h"
#include "cli/table.h"
#include "io/json_writer.h"

enum { CALLS = 200 };

static void print_json(const basin_latency *result, const basin_backend *backend) {
    basin_json json = basin_json_begin(stdout);
    basin_json_text(&json, "backend", basin_backend_name(backend));
    basin_json_text(&json, "instruction_set", basin_isa_name(basin_cpu_isa()));
    basin_json_integer(&json, "threads", basin_backend_threads(backend));
    basin_json_integer(&json, "calls", CALLS);
    basin_json_object(&json, "items");
    for (int i = 0; i < BASIN_LATENCY_ITEMS; i++) {
        basin_json_object(&json, result[i].key);
        basin_json_text(&json, "name", result[i].name);
        basin_json_number(&json, "first_s", result[i].first);
        basin_json_number(&json, "median_s", result[i].median);
        basin_json_number(&json, "p99_s", result[i].p99);
        basin_json_end(&json);
    }
    basin_json_end(&json);
    basin_json_end(&json);
}

static bool print_table(const basin_latency *result, const basin_backend *backend) {
    static const char *const heading[] = {"", "median ms", "99th percentile ms", "first call ms"};
    basin_table rows = {.layout = "lrrr"};
    printf("from call to result on an open model, %d calls; %s, %d thread%s\n", CALLS,
           basin_backend_name(backend), basin_backend_threads(backend),
           basin_backend_threads(backend) == 1 ? "" : "s");
    for (int i = 0; i < 4; i++) basin_table_add(&rows, "%s", heading[i]);
    for (int i = 0; i < BASIN_LATENCY_ITEMS; i++) {
        basin_table_add(&rows, "%s", result[i].name);
        basin_table_add(&rows, "%.3f", 1e3 * result[i].median);
        basin_table_add(&rows, "%.3f", 1e3 * result[i].p99);
        basin_table_add(&rows, "%.3f", 1e3 * result[i].first);
    }
    return basin_table_print(&rows, stdout, 2);
}

int basin_cli_bench_latency(basin_backend *backend, uint64_t seed, bool json) {
    basin_latency result[BASIN_LATENCY_ITEMS];
    basin_error error;
    if (basin_bench_latency(result, backend, CALLS, seed, &error)) return basin_report(&error);
    if (json) print_json(result, backend);
    return json || print_table(result, backend) ? BASIN_EXIT_OK : BASIN_EXIT_FAILURE;
}
