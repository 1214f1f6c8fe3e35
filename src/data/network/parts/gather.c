/* Rows of nodes, from the parts of all ranks to every rank, in the order of the whole graph. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "data/network/parts/shared.h"

/* How many of each part's nodes are chosen. */
static void count_chosen(int64_t *count, const basin_parts *p, const uint8_t *chosen) {
    memset(count, 0, (size_t)p->parts * sizeof *count);
    for (int64_t i = 0; i < p->face->nodes; i++) count[p->owner[i]] += !chosen || chosen[i];
}

/* This rank's rows, part by part. */
static void pack(char *to, const basin_parts *p, const void *const *mine, const uint8_t *chosen,
                 size_t width) {
    for (int64_t k = 0; k < p->count; k++) {
        const basin_network *n = p->part[k]->network;
        for (int64_t i = 0; i < n->nodes; i++) {
            if (chosen && !chosen[n->origin[i]]) continue;
            memcpy(to, (const char *)mine[k] + (size_t)i * width, width);
            to += width;
        }
    }
}

/* Rows by part become rows by node. `next` [parts] is where the next row of a part lies. */
static void order(char *all, const char *packed, const basin_parts *p, int64_t *next,
                  const uint8_t *chosen, size_t width) {
    int64_t begin = 0;
    for (int64_t q = 0; q < p->parts; q++) {
        int64_t count = next[q];
        next[q] = begin;
        begin += count;
    }
    for (int64_t i = 0; i < p->face->nodes; i++) {
        if (chosen && !chosen[i]) continue;
        memcpy(all, packed + (size_t)next[p->owner[i]]++ * width, width);
        all += width;
    }
}

basin_status basin_parts_gather_packed(void *all, basin_parts *p, const void *own,
                                       const uint8_t *chosen, size_t width, basin_error *error) {
    size_t ranks = (size_t)basin_ranks_count(p->ranks);
    int64_t *count = basin_array_new((size_t)p->parts, sizeof *count), total = 0;
    size_t *bytes = calloc(ranks, sizeof *bytes);
    char *packed = NULL;
    if (count && bytes) {
        count_chosen(count, p, chosen);
        for (int64_t q = 0; q < p->parts; q++) {
            bytes[basin_parts_rank(p, q)] += (size_t)count[q] * width;
            total += count[q];
        }
        packed = basin_array_new((size_t)total, width);
    }
    basin_status status =
        packed ? BASIN_OK
               : basin_fail(error, BASIN_NO_MEMORY, "out of memory for rows of %lld nodes",
                            (long long)total);
    if (!status) status = basin_ranks_gather_parts(p->ranks, packed, own, bytes, error);
    if (!status) order(all, packed, p, count, chosen, width);
    free(count), free(bytes), free(packed);
    return status;
}

basin_status basin_parts_gather(void *all, basin_parts *p, const void *const *mine,
                                const uint8_t *chosen, size_t width, basin_error *error) {
    int64_t rows = 0;
    for (int64_t k = 0; k < p->count; k++) rows += p->part[k]->network->nodes;
    char *own = basin_array_new((size_t)rows, width);
    if (!own)
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for rows of %lld nodes",
                          (long long)rows);
    pack(own, p, mine, chosen, width);
    basin_status status = basin_parts_gather_packed(all, p, own, chosen, width, error);
    free(own);
    return status;
}
