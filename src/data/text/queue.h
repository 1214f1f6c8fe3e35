/* A heap of entries in the order of two numbers, the least first. */
#ifndef BASIN_DATA_TEXT_QUEUE_H
#define BASIN_DATA_TEXT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct basin_queued {
    int64_t first, second; /* what orders it */
    uint64_t value;
} basin_queued;

typedef struct basin_queue {
    basin_queued *entry; /* [count] */
    size_t count, room;
} basin_queue;

bool basin_queue_push(basin_queue *queue, basin_queued entry); /* false: no memory */
/* The least of a queue that is not empty. */
basin_queued basin_queue_pop(basin_queue *queue);

/* Two tokens as one number, in the order of the left one, then of the right one. */
static inline uint64_t basin_pair_number(int32_t left, int32_t right) {
    return (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
}

#endif
