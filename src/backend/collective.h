/* Numbers in the memory of devices, added and exchanged between processes that have a device each:
 * what a backend offers those who train one model together. Everything is queued on the backend's
 * stream, in order. */
#ifndef BASIN_BACKEND_COLLECTIVE_H
#define BASIN_BACKEND_COLLECTIVE_H

#include <stdint.h>

#include "basin/backend.h"

#define BASIN_COLLECTIVE_EXTENSION "collective"

enum { BASIN_COLLECTIVE_ID = 128, BASIN_COLLECTIVE_NAME = 64 };

/* A message to or from a process. */
typedef struct basin_collective_part {
    float *data; /* on the device; only read where it is sent */
    int64_t count;
    int32_t rank; /* may be this process */
} basin_collective_part;

typedef struct basin_collective_table {
    void (*add)(basin_backend *backend, float *to, const float *from, int64_t count);
    /* to = from * factor; `to` may be `from`. */
    void (*scale)(basin_backend *backend, float *to, const float *from, float factor,
                  int64_t count);
    void (*copy)(basin_backend *backend, float *to, const float *from, int64_t count);
    /* The device: alike where two processes have the same one. */
    void (*name)(basin_backend *backend, char name[BASIN_COLLECTIVE_NAME]);
    /* One process makes an identity, and all join under it, each with a device of its own. */
    basin_status (*invite)(basin_backend *backend, char id[BASIN_COLLECTIVE_ID],
                           basin_error *error);
    basin_status (*join)(basin_backend *backend, const char id[BASIN_COLLECTIVE_ID], int rank,
                         int count, basin_error *error);
    /* Queues the exchange; what is sent between two processes is received in that order. */
    basin_status (*exchange)(basin_backend *backend, const basin_collective_part *send,
                             int64_t sends, const basin_collective_part *receive, int64_t receives,
                             basin_error *error);
} basin_collective_table;

/* NULL where numbers lie in the host's memory. */
const basin_collective_table *basin_backend_collective(const basin_backend *backend);

#endif
