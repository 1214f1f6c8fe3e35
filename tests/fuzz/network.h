/* Uses every part of a network, so that a wrong pointer or size shows, and checks what a reader
 * must guarantee. */
#ifndef TESTS_FUZZ_NETWORK_H
#define TESTS_FUZZ_NETWORK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/nodes/network/network.h"

static inline void network_touch(const basin_network *n) {
    char text[BASIN_MAX_NODE];
    if (basin_network_check(n, NULL) != BASIN_OK || n->nodes < 1 || n->relations < 1) abort();
    for (int64_t i = 0; i < n->nodes; i++)
        if (strlen(basin_network_id(n, i, text)) > 1u << 26) abort();
    for (int64_t f = 0; f < n->column.count; f++)
        if (strlen(n->column.text + n->column.at[f]) > 1u << 26) abort();
    for (int r = 0; r < n->relations; r++) {
        const basin_relation *e = &n->relation[r];
        for (int64_t i = 0; i < n->nodes; i++)
            for (int64_t k = e->row[i] + 1; k < e->row[i + 1]; k++)
                if (e->col[k - 1] >= e->col[k]) abort(); /* ascending, no duplicates */
    }
    const uint8_t *mask[] = {n->train, n->val, n->test};
    unsigned sum = 0;
    for (int m = 0; m < 3; m++)
        for (int64_t i = 0; mask[m] && i < n->splits * n->nodes; i++) sum += mask[m][i];
    if (sum > 3 * (uint64_t)n->splits * (uint64_t)n->nodes) abort();
}

/* An outcome is a network and no error, or none and one line that says why. */
static inline void network_check_outcome(const basin_network *n, basin_status status,
                                         const basin_error *error) {
    if ((status == BASIN_OK) != (n != NULL)) abort();
    if (status == BASIN_OK)
        network_touch(n);
    else if (error->status != status || !*error->text)
        abort();
}

#endif
