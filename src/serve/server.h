/* What the files of the server share: its state, a model with the network that it scores, and a
 * request on its way.
 *
 * Threads: libmicrohttpd's answer requests; one commits additions to the disk and lets those that
 * wait for it go on; the main one waits for signals, and reloads the model. A request that waits is
 * suspended and holds no thread. */
#ifndef BASIN_SERVE_SERVER_H
#define BASIN_SERVE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

#include "data/network/journal.h"
#include "io/file.h"
#include "serve/serve.h"
#include "task/nodes/live.h"

/* ---- what is counted ---- */

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

enum { BASIN_SERVE_STATUSES = 12, BASIN_SERVE_BUCKETS = 11 };
typedef struct basin_meter { /* times */
    atomic_llong bucket[BASIN_SERVE_BUCKETS + 1], count, nanoseconds;
} basin_meter;

typedef struct basin_meters {
    atomic_llong request[BASIN_ROUTES][BASIN_SERVE_STATUSES];
    basin_meter route[BASIN_ROUTES], node;
    atomic_llong capped, accounts, updated, edges, syncs, failures, reloads[2], log_failures;
} basin_meters;

/* ---- the server ---- */

/* A model, and the base as it reads it. */
typedef struct basin_generation {
    basin_nodes_model *model;
    basin_network *network;
    basin_nodes_live *live;
    const char *id; /* the model's */
    int uses;       /* requests, and being the one in use */
} basin_generation;

typedef struct basin_request basin_request;

typedef struct basin_server {
    const basin_serving *o;
    char token[256];
    basin_schema *schema; /* the base's own, whatever a model reads of it */
    basin_journal *journal;
    pthread_mutex_t adding; /* an addition, or the end of a reload: one at a time */
    pthread_mutex_t lock;   /* of what follows */
    pthread_cond_t wake;
    basin_generation *now;
    basin_request *to_sync, *to_reload; /* suspended */
    bool ending;                        /* no addition comes any more */
    atomic_bool stopping;
    atomic_llong active, connections, records, bytes;
    double started; /* seconds since 1970 */
    int log;        /* a descriptor */
    basin_meters meters;
} basin_server;

/* ---- a request ---- */

typedef enum basin_stage { BASIN_READING, BASIN_WAITING, BASIN_ANSWERED } basin_stage;

struct basin_request {
    basin_server *server;
    void *connection; /* libmicrohttpd's */
    basin_route route;
    char method[8], name[65];
    double begun, arrived, done; /* basin_clock */
    char *body;
    size_t length, capacity;
    basin_stage stage;
    int64_t added[3]; /* accounts, updated, edges */
    basin_status waited;
    basin_error problem;
    int status;
    const char *allow; /* of 405 */
    basin_memory_file answer;
    int64_t ids, journal;
    char model[24];
    size_t bytes;
    basin_request *next;
};

/* http.c: arguments and headers; suspended requests. Each gets a key and a value, of so many bytes.
 */
typedef basin_status basin_argument_take(void *context, const char *key, const char *value,
                                         size_t length, basin_error *error);
basin_status basin_request_arguments(basin_request *request, basin_argument_take *take,
                                     void *context, basin_error *error);
const char *basin_request_header(basin_request *request, const char *key);
/* With server->lock held, so that nobody resumes it before. */
void basin_request_suspend(basin_request *request, basin_request **list);
void basin_request_resume(basin_request *list, basin_status status, const basin_error *problem);

/* routes.c: fills in status and answer, or suspends the request; called again when it goes on. */
void basin_request_answer(basin_request *request);
/* The one error object. */
void basin_request_fail(basin_request *request, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
basin_route basin_route_find(const char *path);
const char *basin_route_path(basin_route route);

/* state.c */
basin_status basin_server_open(basin_server *server, const basin_serving *serving,
                               basin_error *error);
void basin_server_close(basin_server *server);
basin_generation *basin_generation_take(basin_server *server);
void basin_generation_drop(basin_server *server, basin_generation *generation);
/* Checks, writes and applies an addition; it is on the disk when the committer says so. *bad: the
 * request is at fault. */
basin_status basin_server_add(basin_server *server, basin_request *request, const cJSON *tree,
                              bool *bad, basin_error *error);
basin_status basin_server_reload(basin_server *server, basin_error *error);
/* Commits additions until server->ending; a thread. */
void *basin_server_commit(void *server);

/* metrics.c */
void basin_meter_add(basin_meter *meter, double seconds, int64_t count);
void basin_request_count(basin_request *request);
void basin_request_log(basin_request *request);
void basin_metrics_print(FILE *file, basin_server *server);

#endif
