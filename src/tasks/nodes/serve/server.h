/* What the files of the server share. */
#ifndef BASIN_SERVE_SERVER_H
#define BASIN_SERVE_SERVER_H

#include <pthread.h>
#include <semaphore.h>
#include <sys/stat.h>

#include "base/dictionary.h"
#include "base/file.h"
#include "base/json.h"
#include "basin/tasks/context.h"
#include "tasks/nodes/network/journal.h"
#include "tasks/nodes/nodes.h"
#include "tasks/nodes/serve/serve.h"

/* "other" stands for paths that are none. */
typedef enum basin_route {
    SCORE,
    EXPLAIN,
    ADD,
    LABEL,
    RELOAD,
    HEALTH,
    METRICS,
    OTHER,
    ROUTES
} basin_route;

/* What /metrics has besides requests and times. */
#define BASIN_SERVE_METERS(X)                                                                      \
    X(scored, "nodes_scored_total", "Accounts scored.")                                            \
    X(anomalous, "nodes_anomalous_total", "Accounts above the threshold.")                         \
    X(capped, "nodes_capped_total", "Accounts whose neighbourhood was cut by the cap.")            \
    X(added, "added_rows_total", "Accounts and edges added or updated since the start.")           \
    X(syncs, "journal_syncs_total", "Times that the journal was written to the disk.")             \
    X(failures, "journal_failures_total", "Writes of the journal that failed.")                    \
    X(reloads, "reloads_total", "Models opened by a reload.")                                      \
    X(reload_failures, "reload_failures_total", "Reloads that left the old model.")                \
    X(log_failures, "log_failures_total", "Lines of the log that could not be written.")           \
    X(records, "journal_records", "Additions in the journal.")                                     \
    X(refused, "journal_refused", "Additions in the journal that the model cannot take.")          \
    X(bytes, "journal_bytes", "Bytes of the journal.")                                             \
    X(connections, "connections", "Open connections.")                                             \
    X(refused_connections, "connections_refused_total", "Connections beyond all limits.")          \
    X(accounts, "accounts", "Accounts of the network.")                                            \
    X(edges, "edges", "Edges of the network, both ways.")                                          \
    X(started, "start_time_seconds", "When the server started, since 1970.")                       \
    X(memory, "live_bytes", "Memory of inputs, states and additions.")

enum { BASIN_SERVE_STATUSES = 16, BASIN_SERVE_BUCKETS = 11 };
/* A histogram; the sum is in billionths. */
typedef struct basin_times {
    atomic_llong bucket[BASIN_SERVE_BUCKETS + 1], sum;
} basin_times;

typedef struct basin_meters {
#define BASIN_SERVE_METER(name, full, help) atomic_llong name;
    BASIN_SERVE_METERS(BASIN_SERVE_METER)
    atomic_llong request[ROUTES][BASIN_SERVE_STATUSES];
    basin_times route[ROUTES], node, score;
} basin_meters;

/* Labels on their way to a context. */
typedef struct basin_labels {
    int64_t *node, count;
    int32_t *label;
    size_t room[2];
} basin_labels;

/* A model, and the base as it reads it; or what labels store, and what the journal adds. */
typedef struct basin_generation {
    basin_nodes_model *model;
    basin_network *network;
    basin_nodes_live *live;
    const char *id; /* the model's */
    double threshold;
    basin_context *context; /* or NULL; it is used under the server's `adding` */
    basin_dictionary id_of; /* accounts of the context */
} basin_generation;

typedef struct basin_connection basin_connection; /* of http.c */

typedef struct basin_server {
    const basin_serving *o;
    char token[256];
    basin_schema *schema; /* the base's own, whatever a model reads of it */
    struct stat base;     /* its file */
    basin_journal *journal;
    pthread_rwlock_t using; /* reading: `now` is used; writing: it is replaced */
    basin_generation *now;
    sem_t slots;                                /* for those who score */
    pthread_mutex_t adding, syncing, reloading; /* one at a time; adding is inside of `using` */
    int64_t synced;                             /* bytes of the journal that are on the disk */
    atomic_bool stopping;
    atomic_llong active, count; /* requests now, and in all */
    int log, socket;            /* descriptors */
    basin_connection *first;    /* of all, under `listing` */
    pthread_mutex_t listing;
    basin_meters meters;
} basin_server;

typedef struct basin_request {
    basin_server *server;
    basin_route route;
    bool begins, get, post, answered;
    bool cut, zero; /* a zero byte is in the path, in the id of GET */
    const char *host, *origin, *authorization, *type; /* headers, or NULL */
    const char *local;                                /* the address where it came in, or "" */
    cJSON *arguments;                                 /* of the path */
    char name[40], model[24];
    double begun, arrived, done; /* basin_clock */
    char *body;
    size_t length, capacity, bytes; /* of body and answer */
    int64_t ids, journal;
    int status;
    basin_memory_file answer;
} basin_request;

/* routes.c: fill in an argument of the path, `value` NULL where it has none; status and answer. */
void basin_request_argument(basin_request *request, const char *key, const char *value);
void basin_request_answer(basin_request *request);
void basin_request_fail(basin_request *request, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
typedef struct basin_route_entry {
    const char *path, *methods;
    void (*answer)(basin_request *request);
} basin_route_entry;
extern const basin_route_entry basin_routes[ROUTES];
basin_route basin_route_find(const char *path); /* OTHER: none */

/* state.c. When basin_server_add returns, the addition is on the disk; its errors are BASIN_IO or
 * BASIN_NO_MEMORY where the request is not at fault, BASIN_BAD_VALUE for values. */
basin_status basin_server_open(basin_server *server, basin_error *error);
void basin_server_close(basin_server *server, bool served);
basin_status basin_server_add(int64_t added[3] /* accounts, updated, edges */, basin_request *r,
                              cJSON *tree, basin_error *error);
basin_status basin_server_reload(basin_server *server, basin_error *error);
/* The network's counts, and into `model` (or NULL) the model's id. */
basin_nodes_live_counts basin_server_look(basin_server *server, char model[24]);

/* labels.c: --in-context. */
basin_network_options basin_labels_reading(const basin_serving *serving);
basin_status basin_labels_open(basin_generation *generation, const basin_serving *serving,
                               basin_error *error);
void basin_labels_close(basin_generation *generation);
/* The body of /label as one of /add: rows of accounts that have only that column. It takes the body
 * over; without memory the result is not that, or NULL. */
cJSON *basin_labels_as_addition(cJSON *body, const basin_schema *schema);
/* Adds the labels of an addition to a list, all or none; then stores what is in the list. */
basin_status basin_labels_take(basin_labels *labels, const basin_generation *generation,
                               const basin_schema *schema, const cJSON *tree, const char *path,
                               basin_error *error);
basin_status basin_labels_store(basin_generation *generation, const basin_labels *labels,
                                const basin_near_commit *commit, basin_error *error);
void basin_labels_free(basin_labels *labels);
basin_status basin_labels_score(basin_nodes_live_score *score, basin_server *server, const char *id,
                                basin_error *error);
basin_status basin_labels_explain(basin_json *json, basin_server *server, int64_t node, int64_t max,
                                  basin_error *error);

/* Times and scores, the log, which counts requests, and all of it as text. */
void basin_times_add(basin_times *times, double seconds);
void basin_scores_add(basin_times *scores, double probability);
void basin_request_log(basin_request *request);
void basin_metrics_print(FILE *file, basin_server *server);

#endif
