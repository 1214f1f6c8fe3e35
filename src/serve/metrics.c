/* Counters in Prometheus' text format, and the log: one JSON object per request. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "serve/server.h"

static const double bound[BASIN_SERVE_BUCKETS] = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
                                                  0.05,   0.1,   0.5,   1,     10};
static const int codes[BASIN_SERVE_STATUSES] = {200, 400, 401, 403, 404, 405,
                                                408, 413, 415, 500, 503, 0};

void basin_times_add(basin_times *times, double seconds) {
    int i = 0;
    while (i < BASIN_SERVE_BUCKETS && seconds > bound[i]) i++;
    times->bucket[i]++;
    times->nanoseconds += (long long)(seconds * 1e9);
}

static void put_head(FILE *file, const char *name, const char *type, const char *help) {
    fprintf(file, "# HELP basin_%s %s\n# TYPE basin_%s %s\n", name, help, name, type);
}

/* `label`: "" or one that ends in a comma. */
static void put_times(FILE *file, const char *name, const char *label, basin_times *t) {
    long long sum = 0;
    for (int i = 0; i <= BASIN_SERVE_BUCKETS; i++) {
        char text[32] = "+Inf";
        if (i < BASIN_SERVE_BUCKETS) snprintf(text, sizeof text, "%g", bound[i]);
        sum += t->bucket[i];
        fprintf(file, "basin_%s_bucket{%sle=\"%s\"} %lld\n", name, label, text, sum);
    }
    fprintf(file, "basin_%s_sum{%s} %.9f\n", name, label, (double)t->nanoseconds * 1e-9);
    fprintf(file, "basin_%s_count{%s} %lld\n", name, label, sum);
}

static long long resident_bytes(void) {
    char text[100] = "", *second = text; /* pages in all, and those in memory */
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fgets(text, sizeof text, file)) strtoll(text, &second, 10);
    if (file) fclose(file);
    return strtoll(second, NULL, 10) * sysconf(_SC_PAGESIZE);
}

void basin_metrics_print(FILE *file, basin_server *s) {
    basin_meters *m = &s->meters;
    char label[64];
    basin_nodes_live_counts counts = basin_server_look(s, label);
    put_head(file, "model_info", "gauge", "The model in use.");
    fprintf(file, "basin_model_info{model=\"%s\"} 1\n", label);
    m->accounts = counts.nodes;
    m->edges = counts.edges;
    m->resident = resident_bytes();
#define PUT(field, name, help)                                                                     \
    put_head(file, name, strstr(name, "_total") ? "counter" : "gauge", help);                      \
    fprintf(file, "basin_%s %lld\n", name, atomic_load(&m->field));
    BASIN_SERVE_METERS(PUT)
    put_head(file, "requests_total", "counter", "Requests.");
    for (int i = 0; i < ROUTES * BASIN_SERVE_STATUSES; i++) {
        int r = i / BASIN_SERVE_STATUSES, c = i % BASIN_SERVE_STATUSES;
        if (m->request[r][c])
            fprintf(file, "basin_requests_total{route=\"%s\",status=\"%d\"} %lld\n",
                    basin_routes[r].path, codes[c], atomic_load(&m->request[r][c]));
    }
    put_head(file, "node_seconds", "histogram", "Time per account scored.");
    put_times(file, "node_seconds", "", &m->node);
    put_head(file, "request_seconds", "histogram", "From the end of a request to its answer.");
    for (int r = 0; r < ROUTES; r++) {
        snprintf(label, sizeof label, "route=\"%s\",", basin_routes[r].path);
        put_times(file, "request_seconds", label, &m->route[r]);
    }
}

/* Counts a request that ends, and logs it. Its name and the route are plain text. */
void basin_request_log(basin_request *r) {
    basin_meters *m = &r->server->meters;
    struct timespec now;
    struct tm day;
    char day_time[64], line[600];
    const char *method = r->get ? "GET" : r->post ? "POST" : "other";
    int code = 0;
    double seconds = r->done - (r->arrived > 0 ? r->arrived : r->begun);
    while (code < BASIN_SERVE_STATUSES - 1 && codes[code] != r->status) code++;
    m->request[r->route][code]++;
    basin_times_add(&m->route[r->route], seconds);
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &day);
    strftime(day_time, sizeof day_time, "%Y-%m-%dT%H:%M:%S", &day);
    int length =
        snprintf(line, sizeof line,
                 "{\"time\":\"%s.%03dZ\",\"request\":\"%s\",\"method\":\"%s\",\"route\":\"%s\","
                 "\"status\":%d,\"ms\":%.3f,\"ids\":%lld,\"model\":\"%s\",\"journal\":%lld,"
                 "\"bytes_in\":%zu,\"bytes_out\":%zu}\n",
                 day_time, (int)(now.tv_nsec / 1000000), r->name, method,
                 basin_routes[r->route].path, r->status, 1e3 * seconds, (long long)r->ids, r->model,
                 (long long)r->journal, r->length, r->bytes);
    if (write(r->server->log, line, (size_t)length) != length) m->log_failures++;
}
