/* The program as one of several ranks: rank 0 prints; the others are silent until one fails. */
#ifndef BASIN_CLI_LAUNCH_H
#define BASIN_CLI_LAUNCH_H

#include <stdbool.h>

#include "basin/tasks/ranks.h"

typedef struct basin_cli_ranks {
    basin_ranks *ranks; /* NULL: alone */
    int64_t rank;       /* by the launcher's word */
    int spoken;         /* of a silent rank: where its standard error goes */
    int heard;          /* of a silent rank: its standard error as it was */
    char *words;        /* what it was started with, where there are several; NULL: no memory */
} basin_cli_ranks;

/* By the environment alone, before anything is printed: silences all but rank 0. Whether there are
 * several ranks. */
bool basin_cli_ranks_begin(basin_cli_ranks *r, int words, char *const *word);
/* Opens the ranks: an error where they are of another version or were started with other words.
 * Ranks of one host take its GPUs in turn. */
basin_status basin_cli_ranks_open(basin_cli_ranks *r, basin_error *error);
/* The processors that this rank may use of those that it shares with others on its host. */
int64_t basin_cli_ranks_threads(const basin_cli_ranks *r);
/* With the exit code. A failure that the ranks have not agreed on ends the job. */
void basin_cli_ranks_end(basin_cli_ranks *r, int code);

#endif
