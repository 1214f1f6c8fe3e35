/* Counters in Prometheus' text format, and the log: one JSON object per request. */
#include <errno.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "serve/server.h"

static const double bound[BASIN_SERVE_BUCKETS] = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
                                                  0.05,   0.1,   0.5,   1,     10};
static const int codes[BASIN_SERVE_STATUSES] = {200, 400, 401, 403, 404, 405,
                                                408, 413, 415, 500, 503, 0};

void basin_meter_add(basin_meter *meter, double seconds, int64_t count) {
    int i = 0;
    while (i < BASIN_SERVE_BUCKETS && seconds > bound[i]) i++;
    atomic_fetch_add(&meter->bucket[i], count);
    atomic_fetch_add(&meter->count, count);
    atomic_fetch_add(&meter->nanoseconds, (long long)(seconds * 1e9) * count);
}

void basin_request_count(basin_request *r) {
    basin_meters *m = &r->server->meters;
    int i = 0;
    while (i < BASIN_SERVE_STATUSES - 1 && codes[i] != r->status) i++;
    atomic_fetch_add(&m->request[r->route][i], 1);
    if (r->arrived > 0) basin_meter_add(&m->route[r->route], r->done - r->arrived, 1);
}

/* ---- printing ---- */

static void put_meter(FILE *file, const char *name, const char *label, basin_meter *m) {
    long long sum = 0;
    const char *comma = *label ? "," : "";
    for (int i = 0; i < BASIN_SERVE_BUCKETS; i++) {
        sum += atomic_load(&m->bucket[i]);
        fprintf(file, "%s_bucket{%s%sle=\"%g\"} %lld\n", name, label, comma, bound[i], sum);
    }
    sum += atomic_load(&m->bucket[BASIN_SERVE_BUCKETS]);
    fprintf(file, "%s_bucket{%s%sle=\"+Inf\"} %lld\n", name, label, comma, sum);
    char braces[72];
    snprintf(braces, sizeof braces, *label ? "{%s}" : "%s", label);
    fprintf(file, "%s_sum%s %.9f\n", name, braces, (double)atomic_load(&m->nanoseconds) * 1e-9);
    fprintf(file, "%s_count%s %lld\n", name, braces, sum);
}

static void put(FILE *file, const char *name, const char *type, const char *help, double value) {
    fprintf(file, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, type, name, value);
}

static double resident_bytes(void) {
    unsigned long long all = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    int found = file ? fscanf(file, "%llu %llu", &all, &resident) : 0;
    if (file) fclose(file);
    return found == 2 ? (double)resident * (double)sysconf(_SC_PAGESIZE) : 0;
}

static void put_requests(FILE *file, basin_meters *m) {
    char label[64];
    fputs("# HELP basin_requests_total Requests.\n# TYPE basin_requests_total counter\n", file);
    for (int r = 0; r < BASIN_ROUTES; r++)
        for (int c = 0; c < BASIN_SERVE_STATUSES; c++) {
            long long count = atomic_load(&m->request[r][c]);
            if (count)
                fprintf(file, "basin_requests_total{route=\"%s\",status=\"%d\"} %lld\n",
                        basin_route_path((basin_route)r), codes[c], count);
        }
    fputs("# HELP basin_request_seconds From the end of a request to its answer.\n"
          "# TYPE basin_request_seconds histogram\n",
          file);
    for (int r = 0; r < BASIN_ROUTES; r++) {
        snprintf(label, sizeof label, "route=\"%s\"", basin_route_path((basin_route)r));
        if (atomic_load(&m->route[r].count))
            put_meter(file, "basin_request_seconds", label, &m->route[r]);
    }
    fputs("# HELP basin_node_seconds Per account scored.\n# TYPE basin_node_seconds histogram\n",
          file);
    put_meter(file, "basin_node_seconds", "", &m->node);
}

void basin_metrics_print(FILE *file, basin_server *s) {
    basin_meters *m = &s->meters;
    basin_generation *g = basin_generation_take(s);
    basin_nodes_live_counts counts = basin_nodes_live_count(g->live);
    const struct {
        const char *name, *type, *help;
        double value;
    } line[] = {
        {"basin_nodes_scored_total", "counter", "Accounts scored.",
         (double)atomic_load(&m->node.count)},
        {"basin_nodes_capped_total", "counter", "Accounts of which neighbours were left out.",
         (double)atomic_load(&m->capped)},
        {"basin_accounts", "gauge", "Accounts of the network.", (double)counts.nodes},
        {"basin_edges", "gauge", "Edges of the network, both ways.", (double)counts.edges},
        {"basin_added_accounts_total", "counter", "Accounts added since the start.",
         (double)atomic_load(&m->accounts)},
        {"basin_updated_accounts_total", "counter", "Accounts updated since the start.",
         (double)atomic_load(&m->updated)},
        {"basin_added_edges_total", "counter", "Edges added since the start.",
         (double)atomic_load(&m->edges)},
        {"basin_journal_records", "gauge", "Additions in the journal.",
         (double)atomic_load(&s->records)},
        {"basin_journal_bytes", "gauge", "Bytes of the journal.", (double)atomic_load(&s->bytes)},
        {"basin_journal_syncs_total", "counter", "Times that the journal was synchronised.",
         (double)atomic_load(&m->syncs)},
        {"basin_journal_failures_total", "counter", "Writes of the journal that failed.",
         (double)atomic_load(&m->failures)},
        {"basin_log_failures_total", "counter", "Lines of the log that could not be written.",
         (double)atomic_load(&m->log_failures)},
        {"basin_connections", "gauge", "Open connections.", (double)atomic_load(&s->connections)},
        {"basin_start_time_seconds", "gauge", "When the server started, since 1970.", s->started},
        {"basin_resident_bytes", "gauge", "Memory in use.", resident_bytes()},
    };
    put_requests(file, m);
    for (size_t i = 0; i < sizeof line / sizeof *line; i++)
        put(file, line[i].name, line[i].type, line[i].help, line[i].value);
    fprintf(file,
            "# HELP basin_reloads_total Models opened by a reload.\n"
            "# TYPE basin_reloads_total counter\nbasin_reloads_total{result=\"ok\"} %lld\n"
            "basin_reloads_total{result=\"failed\"} %lld\n"
            "# HELP basin_model_info The model in use.\n# TYPE basin_model_info gauge\n"
            "basin_model_info{model=\"%s\"} 1\n",
            atomic_load(&m->reloads[0]), atomic_load(&m->reloads[1]), g->id);
    basin_generation_drop(s, g);
}

/* ---- the log ---- */

void basin_request_log(basin_request *r) {
    basin_server *s = r->server;
    struct timeval now;
    struct tm day;
    char text[64];
    basin_memory_file memory;
    gettimeofday(&now, NULL);
    gmtime_r(&now.tv_sec, &day);
    size_t length = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &day);
    snprintf(text + length, sizeof text - length, ".%03dZ", (int)(now.tv_usec / 1000));
    if (!basin_memory_file_open(&memory)) {
        atomic_fetch_add(&s->meters.log_failures, 1);
        return;
    }
    basin_json json = basin_json_begin_line(memory.file);
    basin_json_text(&json, "time", text);
    basin_json_text(&json, "request", r->name);
    basin_json_text(&json, "method", r->method);
    basin_json_text(&json, "route", basin_route_path(r->route));
    basin_json_integer(&json, "status", r->status);
    snprintf(text, sizeof text, "%.3f", 1e3 * (r->done - (r->arrived > 0 ? r->arrived : r->begun)));
    basin_json_number(&json, "ms", strtod(text, NULL));
    basin_json_integer(&json, "ids", r->ids);
    basin_json_text(&json, "model", r->model);
    basin_json_integer(&json, "journal", r->journal);
    basin_json_integer(&json, "bytes_in", (int64_t)r->length);
    basin_json_integer(&json, "bytes_out", (int64_t)r->bytes);
    basin_json_end(&json);
    BASIN_FREE_AT_EXIT char *line = basin_memory_file_close(&memory);
    size_t size = line ? strlen(line) : 1;
    if (!line || write(s->log, line, size) != (ssize_t)size)
        atomic_fetch_add(&s->meters.log_failures, 1);
}
