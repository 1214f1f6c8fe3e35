/* The state of the server: models that follow each other over one base, additions and their
 * journal, what is counted and logged. */
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "tasks/nodes/serve/server.h"

static void generation_free(basin_generation *g) {
    if (!g) return;
    basin_nodes_live_close(g->live);
    basin_labels_close(g);
    basin_network_close(g->network);
    basin_nodes_close(g->model);
    free(g);
}

/* The journal belongs to the file that was there when the server started. */
static basin_status check_base(basin_server *s, basin_error *error) {
    struct stat now = {0}, *then = &s->base;
    if (!stat(s->o->base, &now) && !then->st_ino) *then = now;
    if (now.st_ino == then->st_ino && now.st_size == then->st_size &&
        now.st_mtim.tv_sec == then->st_mtim.tv_sec && now.st_mtim.tv_nsec == then->st_mtim.tv_nsec)
        return BASIN_OK;
    return basin_fail(error, BASIN_IO, "%s: has changed since the server started; start it again",
                      s->o->base);
}

static basin_status generation_fill(basin_generation *g, const basin_serving *o,
                                    basin_error *error) {
    if (o->files) return basin_labels_open(g, o, error);
    BASIN_TRY(basin_nodes_open(&g->model, "anomaly", o->model, o->backend, error));
    const basin_nodes_info *info = basin_nodes_get_info(g->model);
    g->id = info->id, g->threshold = info->threshold;
    basin_network_options read = {.schema = info->schema, .memory = o->memory};
    BASIN_TRY(basin_network_open(&g->network, &o->base, 1, &read, error));
    basin_nodes_live_options live = {.memory = o->memory, .cap_nodes = o->cap};
    return basin_nodes_live_open(&g->live, g->model, g->network, &live, error);
}

static basin_nodes_live_counts count_of(const basin_generation *g) {
    if (g->live) return basin_nodes_live_count(g->live);
    int main = basin_network_main_relation(g->network);
    return (basin_nodes_live_counts){.nodes = g->network->nodes,
                                     .edges = main < 0 ? 0 : g->network->relation[main].edges};
}

basin_nodes_live_counts basin_server_look(basin_server *s, char model[24]) {
    pthread_rwlock_rdlock(&s->using);
    basin_nodes_live_counts counts = count_of(s->now);
    if (model) snprintf(model, 24, "%s", s->now->id);
    pthread_rwlock_unlock(&s->using);
    return counts;
}

/* ---- additions ---- */

/* A record is written once nothing else can fail: so that nothing is known that the disk could not
 * take, and nothing is in the journal that the columns refuse. */
typedef struct writing {
    basin_server *server;
    const cJSON *tree;
} writing;

static basin_status write_record(void *context, basin_error *error) {
    const writing *w = context;
    basin_server *s = w->server;
    basin_status status = basin_journal_append(s->journal, w->tree, error);
    s->meters.failures += status != BASIN_OK;
    s->meters.records = s->journal->records;
    s->meters.bytes = s->journal->bytes;
    return status;
}

/* Until the journal is on the disk up to there. The first of those who wait writes for all of them.
 */
static basin_status sync_journal(basin_server *s, int64_t bytes, basin_error *error) {
    basin_status status = BASIN_OK;
    pthread_mutex_lock(&s->syncing);
    if (s->synced < bytes) {
        int64_t all = s->meters.bytes;
        status = basin_journal_sync(s->journal, error);
        s->meters.syncs++;
        s->meters.failures += status != BASIN_OK;
        if (!status) s->synced = all;
    }
    pthread_mutex_unlock(&s->syncing);
    return status;
}

/* What is asked of additions now. A clock may differ from ours, and a day from zone to zone. */
static basin_door door_now(const basin_serving *o) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double tomorrow = (double)now.tv_sec / 86400 + 1;
    return (basin_door){o->allow_future ? INFINITY : tomorrow, o->allow_unknown};
}

/* What is added on its way in: tables for a model, labels for a context. */
typedef struct addition {
    basin_additions tables;
    basin_labels labels;
} addition;

static void addition_free(addition *a) {
    basin_additions_free(&a->tables);
    basin_labels_free(&a->labels);
}

static basin_status take_addition(addition *a, const basin_generation *g, cJSON *tree,
                                  const char *path, basin_error *error) {
    if (g->context) return basin_labels_take(&a->labels, g, a->tables.schema, tree, path, error);
    BASIN_TRY(basin_additions_put(&a->tables, tree, path, error));
    return basin_additions_finish(&a->tables, error);
}

static basin_status store_addition(basin_generation *g, const addition *a,
                                   const basin_near_commit *commit, basin_error *error) {
    if (g->context) return basin_labels_store(g, &a->labels, commit, error);
    return basin_nodes_live_commit(g->live, a->tables.table[0], a->tables.table[1], commit, error);
}

static basin_status add_to(basin_generation *g, addition *a, basin_request *r, cJSON *tree,
                           basin_error *error) {
    basin_server *s = r->server;
    basin_near_commit commit = {write_record, &(writing){s, tree}};
    BASIN_TRY(take_addition(a, g, tree, "the body", error));
    r->ids = a->labels.count + a->tables.rows[0] + a->tables.rows[1];
    if (r->ids > s->o->max_ids)
        return basin_fail(error, BASIN_BAD_SHAPE, "%lld rows, at most %lld are accepted",
                          (long long)r->ids, (long long)s->o->max_ids);
    basin_status status = store_addition(g, a, &commit, error);
    if (status == BASIN_BAD_FILE) status = error->status = BASIN_BAD_VALUE; /* a cell */
    return status;
}

basin_status basin_server_add(int64_t added[3], basin_request *r, cJSON *tree, basin_error *error) {
    basin_server *s = r->server;
    basin_door door = door_now(s->o);
    BASIN_AT_EXIT(addition_free) addition a = {{.schema = s->schema, .door = &door}, {0}};
    pthread_rwlock_rdlock(&s->using);
    pthread_mutex_lock(&s->adding);
    int64_t before = count_of(s->now).nodes;
    basin_status status = add_to(s->now, &a, r, tree, error);
    added[0] = count_of(s->now).nodes - before;
    added[2] = a.tables.rows[1];
    added[1] = r->ids - added[0] - added[2];
    int64_t bytes = s->meters.bytes;
    r->journal = s->meters.records;
    pthread_mutex_unlock(&s->adding);
    pthread_rwlock_unlock(&s->using);
    BASIN_TRY(status);
    s->meters.added += r->ids;
    return sync_journal(s, bytes, error);
}

/* ---- a model that catches up with the journal ---- */

typedef struct replay {
    basin_server *server;
    basin_generation *generation;
    basin_labels labels; /* of many records, to be stored together */
    int64_t refused;
} replay;

/* A record that this model cannot take stays in the journal, is named, and others go on. */
static basin_status apply(void *context, cJSON *tree, const char *what, basin_error *error) {
    enum { NAMED = 10 };
    replay *p = context;
    basin_server *s = p->server;
    BASIN_AT_EXIT(addition_free) addition a = {{.schema = s->schema}, p->labels};
    basin_status status = take_addition(&a, p->generation, tree, what, error);
    if (!status && !p->generation->context) status = store_addition(p->generation, &a, NULL, error);
    p->labels = a.labels, a.labels = (basin_labels){0};
    if (!status || status == BASIN_NO_MEMORY) return status;
    if (p->refused++ < NAMED)
        s->o->say("basin: %s cannot be used by this model and is left out: %s", what, error->text);
    return BASIN_OK;
}

/* Records from one byte to another. */
static basin_status catch_up(replay *p, int64_t from, int64_t to, basin_error *error) {
    basin_generation *g = p->generation;
    BASIN_TRY(basin_journal_replay(p->server->journal, from, to, apply, p, error));
    basin_status status = g->context ? basin_labels_store(g, &p->labels, NULL, error) : BASIN_OK;
    p->labels.count = 0;
    return status;
}

static void say_refused(const replay *p) {
    basin_server *s = p->server;
    s->meters.refused = p->refused;
    if (!p->refused) return;
    s->o->say("basin: %s: %lld of %lld additions are left out; they stay in the journal ('basin "
              "data journal' lists them and takes them back)",
              s->journal->path, (long long)p->refused, (long long)s->journal->records);
}

static basin_status replace(basin_server *s, basin_error *error) {
    replay p = {.server = s};
    int64_t bytes = s->meters.bytes;
    BASIN_TRY(BASIN_NEW(&p.generation, 1, "a model", error));
    basin_status status = generation_fill(p.generation, s->o, error);
    if (!status) status = check_base(s, error);
    if (!status) status = catch_up(&p, 0, bytes, error);
    pthread_rwlock_wrlock(&s->using);
    if (!status) status = catch_up(&p, bytes, s->journal->bytes, error);
    basin_generation *old = status ? p.generation : s->now;
    if (!status) s->now = p.generation;
    pthread_rwlock_unlock(&s->using);
    if (!status) say_refused(&p);
    basin_labels_free(&p.labels);
    generation_free(old);
    return status;
}

/* Opens the model beside the one in use, and replaces it. It catches up beside additions that go
 * on, then, when requests have ended, with those that came meanwhile. */
basin_status basin_server_reload(basin_server *s, basin_error *error) {
    pthread_mutex_lock(&s->reloading);
    basin_status status = replace(s, error);
    if (status)
        s->meters.reload_failures++;
    else
        s->meters.reloads++;
    s->o->say(status ? "basin: the model was not reloaded: %s" : "basin: model %s",
              status ? error->text : s->now->id);
    pthread_mutex_unlock(&s->reloading);
    return status;
}

/* ---- beginning and end ---- */

static basin_status open_journal(basin_server *s, basin_error *error) {
    const basin_serving *o = s->o;
    char path[4096], digest[BASIN_SHA256_TEXT];
    snprintf(path, sizeof path, "%s.journal", o->base);
    BASIN_TRY(basin_file_sha256(digest, o->base, error));
    BASIN_TRY(basin_journal_open(&s->journal, o->journal ? o->journal : path, digest, o->read_only,
                                 error));
    const basin_journal *j = s->journal;
    if (j->dropped)
        o->say("basin: %s: dropped %lld bytes after byte %lld: an addition that was not finished",
               j->path, (long long)j->dropped, (long long)j->bytes);
    s->meters.bytes = j->bytes;
    return BASIN_OK;
}

static basin_status read_schema(basin_server *s, basin_error *error) {
    BASIN_NETWORK_AT_EXIT basin_network *base = NULL;
    const basin_serving *o = s->o;
    basin_network_options plain = {.missing = BASIN_MISSING_KEEP, .memory = o->memory};
    if (o->files) plain = basin_labels_reading(o);
    BASIN_TRY(basin_network_open(&base, o->files ? o->files : &o->base,
                                 o->files ? o->file_count : 1, &plain, error));
    return basin_schema_copy(&s->schema, base->schema, error);
}

basin_status basin_server_open(basin_server *s, basin_error *error) {
    pthread_rwlockattr_t kind;
    pthread_rwlockattr_init(&kind);
#ifdef __GLIBC__ /* a reload waits for requests that run, not for later ones */
    pthread_rwlockattr_setkind_np(&kind, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
    pthread_rwlock_init(&s->using, &kind);
    pthread_mutex_init(&s->adding, NULL);
    pthread_mutex_init(&s->reloading, NULL);
    sem_init(&s->slots, 0, (unsigned)s->o->threads);
    pthread_mutex_init(&s->syncing, NULL);
    BASIN_TRY(check_base(s, error));
    BASIN_TRY(read_schema(s, error));
    BASIN_TRY(open_journal(s, error));
    BASIN_TRY(replace(s, error));
    s->meters.records = s->journal->records;
    s->meters.bytes = s->synced = s->journal->bytes;
    return BASIN_OK;
}

void basin_server_close(basin_server *s, bool served) {
    (served ? basin_journal_close : basin_journal_abandon)(s->journal);
    generation_free(s->now);
    basin_schema_free(s->schema);
}

/* ---- counters in Prometheus' text format, and the log: one JSON object per request ---- */

static const double time_bound[BASIN_SERVE_BUCKETS] = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
                                                       0.05,   0.1,   0.5,   1,     10};
static const double score_bound[BASIN_SERVE_BUCKETS] = {0.001, 0.01, 0.05, 0.1, 0.2, 0.3,
                                                        0.4,   0.5,  0.7,  0.9, 0.99};
static const int codes[BASIN_SERVE_STATUSES] = {200, 400, 401, 403, 404, 405, 408, 413,
                                                414, 415, 422, 431, 500, 503, 505, 0};

static void add(basin_times *times, const double *bound, double value) {
    int i = 0;
    while (i < BASIN_SERVE_BUCKETS && value > bound[i]) i++;
    times->bucket[i]++;
    times->sum += (long long)(value * 1e9);
}

void basin_times_add(basin_times *times, double seconds) { add(times, time_bound, seconds); }
void basin_scores_add(basin_times *scores, double p) { add(scores, score_bound, p); }

static void put_head(FILE *file, const char *name, const char *type, const char *help) {
    fprintf(file, "# HELP basin_%s %s\n# TYPE basin_%s %s\n", name, help, name, type);
}

/* `label`: "" or one that ends in a comma. */
static void put_histogram(FILE *file, const char *name, const char *label, basin_times *t,
                          const double *bound) {
    long long sum = 0;
    for (int i = 0; i <= BASIN_SERVE_BUCKETS; i++) {
        char text[32] = "+Inf";
        if (i < BASIN_SERVE_BUCKETS) snprintf(text, sizeof text, "%g", bound[i]);
        sum += t->bucket[i];
        fprintf(file, "basin_%s_bucket{%sle=\"%s\"} %lld\n", name, label, text, sum);
    }
    fprintf(file, "basin_%s_sum{%s} %.9f\n", name, label, (double)t->sum * 1e-9);
    fprintf(file, "basin_%s_count{%s} %lld\n", name, label, sum);
}

static void put_label(FILE *file, const char *text) {
    for (; *text; text++)
        if (*text == '\n')
            fputs("\\n", file);
        else
            fputs(*text == '"' || *text == '\\' ? (char[]){'\\', *text, 0} : (char[]){*text, 0},
                  file);
}

/* What was scored against what the model was trained on; nothing where the model does not know. */
static void put_drift(FILE *file, basin_server *s) {
    basin_nodes_drift *d = NULL;
    basin_error error;
    pthread_rwlock_rdlock(&s->using);
    double threshold = s->now->threshold;
    basin_status status =
        s->now->live ? basin_nodes_live_drift(&d, s->now->live, &error) : BASIN_UNSUPPORTED;
    pthread_rwlock_unlock(&s->using);
    put_head(file, "score", "histogram", "Probabilities of accounts scored.");
    put_histogram(file, "score", "", &s->meters.score, score_bound);
    put_head(file, "threshold", "gauge", "The model's threshold.");
    fprintf(file, "basin_threshold %.9g\n", threshold);
    if (status) return;
    put_head(file, "drift_nodes", "gauge",
             "Accounts that basin_drift looks at, those scored last.");
    fprintf(file, "basin_drift_nodes %lld\n", (long long)d->nodes);
    put_head(file, "drift", "gauge", "Population stability index of a column against training.");
    for (int64_t i = 0; i < d->columns && !d->few; i++) {
        fputs("basin_drift{column=\"", file);
        put_label(file, d->column[i].name);
        fprintf(file, "\"} %.6g\n", d->column[i].index);
    }
    basin_nodes_drift_free(d);
}

void basin_metrics_print(FILE *file, basin_server *s) {
    basin_meters *m = &s->meters;
    char label[64];
    basin_nodes_live_counts counts = basin_server_look(s, label);
    put_head(file, "model_info", "gauge", "The model in use.");
    fprintf(file, "basin_model_info{model=\"%s\"} 1\n", label);
    m->accounts = counts.nodes;
    m->edges = counts.edges;
    m->memory = (long long)counts.bytes;
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
    put_drift(file, s);
    put_head(file, "node_seconds", "histogram", "Time per account scored.");
    put_histogram(file, "node_seconds", "", &m->node, time_bound);
    put_head(file, "request_seconds", "histogram", "From the end of a request to its answer.");
    for (int r = 0; r < ROUTES; r++) {
        snprintf(label, sizeof label, "route=\"%s\",", basin_routes[r].path);
        put_histogram(file, "request_seconds", label, &m->route[r], time_bound);
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
