/* A resident process that scores accounts over HTTP: what `basin serve` runs (docs/serve.md). */
#ifndef BASIN_SERVE_SERVE_H
#define BASIN_SERVE_SERVE_H

#include "basin/backend.h"

typedef struct basin_serving {
    const char *model, *base; /* files */
    const char *const *files; /* in place of a model: labels of these are stored; or NULL */
    int file_count;
    int64_t passes;
    const char *weights;
    const char *listen, *socket;       /* HOST:PORT; a path, which comes first; or NULL */
    const char *host;                  /* further names of this server, by commas, or NULL */
    const char *token, *journal, *log; /* files; NULL: no token, BASE.journal, standard output */
    bool read_only, allow_future, allow_unknown; /* dates, kinds of additions */
    bool json; /* where it listens: an object on standard output, not a line that is said */
    int64_t max_body, max_ids, connections, threads, cap;
    double timeout; /* seconds */
    size_t memory;  /* bytes; 0: the library's choice */
    basin_backend *backend;
    void (*say)(const char *format, ...); /* a line on standard error */
} basin_serving;

/* Blocks the signals that the server waits for; before any thread is started. */
void basin_serve_prepare(void);
/* Serves until SIGTERM or SIGINT. */
basin_status basin_serve(const basin_serving *serving, basin_error *error);

#endif
