/* A small table of accounts and transfers, with ids that are words, for tests of basin anomaly. */
#ifndef TESTS_CLI_ACCOUNTS_H
#define TESTS_CLI_ACCOUNTS_H

#include <stdbool.h>

#include "basin/random.h"
#include "program/program.h"

enum { NODES = 300, EDGES = 1500 };

static inline bool fraud(int64_t i) { return i % 7 == 3; }

/* Anomalous accounts hold more and mostly trade with each other. */
static inline void write_table(void **state) {
    FILE *nodes = fopen(folder_path(state, "accounts.csv"), "w");
    FILE *edges = fopen(folder_path(state, "transfers.csv"), "w");
    assert_true(nodes && edges);
    fputs("id,label,amount,age\n", nodes);
    for (int64_t i = 0; i < NODES; i++)
        fprintf(nodes, "acc%lld,%s,%.4f,%.4f\n", (long long)i,
                i % 10 == 9 ? ""
                : fraud(i)  ? "1"
                            : "0",
                basin_random_normal_at(1, 0, (uint64_t)i) + (fraud(i) ? 1.5 : 0),
                basin_random_normal_at(1, 1, (uint64_t)i));
    fputs("source,target\n", edges);
    for (uint64_t e = 0; e < EDGES; e++) {
        int64_t a = (int64_t)(basin_random_uniform_at(1, 2, e) * NODES), b = a;
        for (uint64_t t = 0; t < 9 && (b == a || fraud(b) != fraud(a)); t++)
            b = (int64_t)(basin_random_uniform_at(1, 3, 9 * e + t) * NODES);
        fprintf(edges, "acc%lld,acc%lld\n", (long long)a, (long long)b);
    }
    fclose(nodes);
    fclose(edges);
}

static inline int make_table(void **state) {
    if (folder_new(state)) return -1;
    write_table(state);
    return 0;
}

#endif
