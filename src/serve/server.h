/* What the files of the server share.
 *
 * Threads: libmicrohttpd's answer requests; one commits additions to the disk and lets those that
 * wait for it go on; the main one waits for signals, and reloads the model. A request that waits is
 * suspended and holds no thread. */
#ifndef BASIN_SERVE_SERVER_H
#define BASIN_SERVE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/network/journal.h"
#include "serve/serve.h"
#include "task/nodes/live.h"

typedef enum basin_route {
    BASIN_ROUTE_SCORE,
    BASIN_ROUTE_EXPLAIN,
    BASIN_ROUTE_ADD,
    BASIN_ROUTE_RELOAD,
    BASIN_ROUTE_HEALTH,
    BASIN_ROUTE_METRICS,
    BASIN_ROUTE_OTHER, /* no such path */
    BASIN_ROUTES,
} basin_route;

/* What /metrics has besides requests and times. */
#define BASIN_SERVE_METERS(X)                                                                      \
    X(scored, "nodes_scored_total", "Accounts scored.")                                            \
    X(capped, "nodes_capped_total", "Accounts whose neighbourhood was cut by the cap.")            \
    X(added, "added_accounts_total", "Accounts added since the start.")                            \
    X(updated, "updated_accounts_total", "Accounts updated since the start.")                      \
    X(edges_added, "added_edges_total", "Edges added since the start.")                            \
    X(syncs, "journal_syncs_total", "Times that the journal was written to the disk.")             \
    X(failures, "journal_failures_total", "Writes of the journal that failed.")                    \
    X(reloads, "reloads_total", "Models opened by a reload.")                                      \
    X(reload_failures, "reload_failures_total", "Reloads that left the old model.")                \
    X(log_failures, "log_failures_total", "Lines of the log that could not be written.")           \
    X(records, "journal_records", "Additions in the journal.")                                     \
    X(bytes, "journal_bytes", "Bytes of the journal.")                                             \
    X(connections, "connections", "Open connections.")                                             \
    X(accounts, "accounts", "Accounts of the network.")                                            \
    X(edges, "edges", "Edges of the network, both ways.")                                          \
    X(started, "start_time_seconds", "When the server started, since 1970.")                       \
    X(resident, "resident_bytes", "Memory in use.")

enum { BASIN_SERVE_STATUSES = 12, BASIN_SERVE_BUCKETS = 11 };
typedef struct basin_times {
    atomic_llong bucket[BASIN_SERVE_BUCKETS + 1], nanoseconds;
} basin_times;

typedef struct basin_meters {
#define BASIN_SERVE_METER(name, full, help) atomic_llong name;
    BASIN_SERVE_METERS(BASIN_SERVE_METER)
    atomic_llong request[BASIN_ROUTES][BASIN_SERVE_STATUSES];
    basin_times route[BASIN_ROUTES], node;
} basin_meters;

/* A model, and the base as it reads it. */
typedef struct basin_generation {
    basin_nodes_model *model;
    basin_network *network;
    basin_nodes_live *live;
    const char *id; /* the model's */
} basin_generation;

typedef struct basin_request basin_request;
typedef struct basin_server {
    const basin_serving *o;
    char token[256];
    basin_schema *schema; /* the base's own, whatever a model reads of it */
    basin_journal *journal;
    pthread_rwlock_t using; /* reading: a request is computed; writing: `now` is replaced */
    basin_generation *now;
    pthread_mutex_t adding; /* one addition at a time, inside of `using` */
    pthread_mutex_t lock;   /* of what follows */
    pthread_cond_t wake;
    basin_request *to_sync, *to_reload; /* suspended */
    bool ending;                        /* no addition comes any more */
    atomic_bool stopping;
    atomic_llong active, count; /* requests now, and in all */
    int log;                    /* a descriptor */
    basin_meters meters;
} basin_server;

typedef enum basin_stage { BASIN_READING, BASIN_WAITING, BASIN_ANSWERED } basin_stage;

struct basin_request {
    basin_server *server;
    void *connection; /* libmicrohttpd's */
    basin_route route;
    basin_stage stage;
    bool get, post;
    char name[40], model[24];
    double begun, arrived, done; /* basin_clock */
    char *body;
    size_t length, capacity, bytes; /* of the body; of the answer */
    int64_t added, updated, edges, ids, journal;
    basin_error waited; /* how what it waited for went */
    int status;
    basin_memory_file answer;
    basin_request *next;
};

/* http.c. An argument's value, NULL where there is none; a suspended request is put on a list, with
 * server->lock held, and all of a list go on. */
const char *basin_request_argument(const basin_request *request, const char *key, size_t *length);
const char *basin_request_header(const basin_request *request, const char *key);
void basin_request_suspend(basin_request *request, basin_request **list);
void basin_request_resume(basin_request *list, const basin_error *error);

/* routes.c: fills in status and answer, or suspends the request; called again when it goes on. */
void basin_request_answer(basin_request *request);
void basin_request_fail(basin_request *request, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
basin_route basin_route_find(const char *path);
const char *basin_route_path(basin_route route);
const char *basin_route_methods(basin_route route);

/* state.c. Errors of basin_server_add are BASIN_IO or BASIN_NO_MEMORY where the request is not at
 * fault; the addition is on the disk when the committer, a thread, lets the request go on. */
basin_status basin_server_open(basin_server *server, basin_error *error);
void basin_server_close(basin_server *server);
basin_status basin_server_add(basin_server *server, basin_request *request, const cJSON *tree,
                              basin_error *error);
basin_status basin_server_reload(basin_server *server, basin_error *error);
void *basin_server_commit(void *server);

/* metrics.c */
void basin_times_add(basin_times *times, double seconds, int64_t count);
void basin_request_log(basin_request *request);
void basin_metrics_print(FILE *file, basin_server *server);

#endif
