/* The journal of a server: accounts and edges that were added to a base, in a file that is only
 * appended to. The server writes it, `basin data convert` folds it into the base (docs/serve.md).
 *
 * A line is the CRC-32 of what follows in eight hexadecimal digits, a blank, a JSON object and a
 * line feed. The first one names the base, each other one is an addition:
 *
 *     1c0b72a4 {"basin_journal":1,"base":"0f3a..."}
 *     9d21e6b0 {"accounts":[{"id":"A9","amount":12.5}],"edges":[{"source":"A9","target":"A1"}]} */
#ifndef BASIN_DATA_NETWORK_JOURNAL_H
#define BASIN_DATA_NETWORK_JOURNAL_H

#include <stdatomic.h>

#include "base/file.h"
#include "base/json.h"
#include "tasks/nodes/network/network.h"

/* Additions as tables, in all columns of the base; with only the schema it is empty. */
typedef struct basin_additions {
    const basin_schema *schema; /* the base's */
    int64_t rows[2];            /* accounts, edges */
    char *table[2];             /* CSV texts with a heading; NULL where there are no rows */
    basin_memory_file file[2];  /* until they are finished */
} basin_additions;

/* Adds the rows of {"accounts":[..], "edges":[..]}. "id", "source" and "target" may stand for the
 * names that the schema has for them; a column that an object lacks is a gap. Errors name the row
 * and the column; `path` is what they call the tree. Free it even after an error. */
basin_status basin_additions_put(basin_additions *additions, const cJSON *tree, const char *path,
                                 basin_error *error);
basin_status basin_additions_finish(basin_additions *additions, basin_error *error);
void basin_additions_free(basin_additions *additions);

typedef struct basin_journal {
    char *path;
    int fd;              /* -1: there is none */
    atomic_bool broken;  /* what is on the disk is not known; nothing is appended any more */
    int64_t records;     /* additions */
    int64_t last, bytes; /* where the last one begins and ends */
    int64_t dropped;     /* bytes of a torn tail that were cut off when it was opened */
} basin_journal;

/* Opens a journal of the base of that SHA-256, makes it where it is absent, and cuts off a torn
 * tail. A journal of another base, one that another process has open, and one that is damaged
 * before its end are errors. `fixed`: it is only read, and an absent one is empty. */
basin_status basin_journal_open(basin_journal **journal, const char *path, const char *digest,
                                bool fixed, basin_error *error);
void basin_journal_close(basin_journal *journal);
/* Hands out the additions from byte `from` (0: the first) to `to`, with their name in errors. */
typedef basin_status basin_journal_take(void *context, const cJSON *addition, const char *what,
                                        basin_error *error);
basin_status basin_journal_replay(const basin_journal *journal, int64_t from, int64_t to,
                                  basin_journal_take *take, void *context, basin_error *error);
/* Appends, or leaves the file as before; it is on the disk after basin_journal_sync. */
basin_status basin_journal_append(basin_journal *journal, const cJSON *addition,
                                  basin_error *error);
/* Takes back the last addition; once. */
basin_status basin_journal_cut(basin_journal *journal, basin_error *error);
basin_status basin_journal_sync(basin_journal *journal, basin_error *error);

/* Whether a file is a journal; and all its additions, for its base of that digest. */
bool basin_journal_is(const char *path);
basin_status basin_journal_tables(basin_additions *additions, const char *path, const char *digest,
                                  basin_error *error);

#endif
