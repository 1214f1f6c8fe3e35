/* Sums and exchanges of numbers between processes that train one model together, one device each.
 * Backends whose memory is the host's have none: there any messaging library does. */
#ifndef BASIN_COLLECTIVE_H
#define BASIN_COLLECTIVE_H

#include <stddef.h>
#include <stdint.h>

#include "basin/backend.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BASIN_COLLECTIVE_ID = 128, BASIN_COLLECTIVE_NAME = 64 };

/* A message to or from a process. */
typedef struct basin_collective_part {
    float *data; /* on the device; only read where it is sent */
    int64_t count;
    int32_t rank; /* may be this process */
} basin_collective_part;

/* What a backend can do with numbers in its memory. Work is queued on the backend's stream, in
 * order. Later versions append members; `size` says which ones are there. */
typedef struct basin_collective {
    size_t size;
    /* The backend's memory; NULL where there is no more. */
    float *(*alloc)(basin_backend *backend, int64_t count);
    void (*free)(basin_backend *backend, float *array);
    void (*add)(basin_backend *backend, float *to, const float *from, int64_t count);
    /* to = from * factor; `to` may be `from`. */
    void (*scale)(basin_backend *backend, float *to, const float *from, float factor,
                  int64_t count);
    /* Identifies the device: equal where two processes have the same one. */
    void (*name)(basin_backend *backend, char name[BASIN_COLLECTIVE_NAME]);
    /* One process makes an identity, and all join under it, one device each. */
    basin_status (*invite)(basin_backend *backend, char id[BASIN_COLLECTIVE_ID],
                           basin_error *error);
    basin_status (*join)(basin_backend *backend, const char id[BASIN_COLLECTIVE_ID], int rank,
                         int count, basin_error *error);
    /* Queues the exchange; what is sent between two processes is received in that order. */
    basin_status (*exchange)(basin_backend *backend, const basin_collective_part *send,
                             int64_t sends, const basin_collective_part *receive, int64_t receives,
                             basin_error *error);
} basin_collective;

/* NULL where the backend's memory is the host's. */
BASIN_API const basin_collective *basin_backend_collective(const basin_backend *backend);

#ifdef __cplusplus
}
#endif
#endif
