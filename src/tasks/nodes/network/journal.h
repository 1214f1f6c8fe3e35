/* The journal of a server: accounts and edges that were added to a base, in a file that is only
 * appended to. The server writes it, `basin data convert` folds it into the base, `basin data
 * journal` lists it and takes additions back (docs/serve.md).
 *
 * A record is the length of its JSON text and the CRC-32 of it, eight hexadecimal digits each, the
 * text, and a line feed for readers. Whether a record is whole is decided by its length and its
 * checksum and by nothing else. The first one names the base; others are additions, or take back
 * the one that begins at a byte:
 *
 *     00000066 1c0b72a4 {"basin_journal":2,"base":"0f3a..."}
 *     0000005b 9d21e6b0
 * {"accounts":[{"id":"A9","amount":12.5}],"edges":[{"source":"A9","target":"A1"}]} 0000000c
 * 53c0f0b1 {"undo":121}
 *
 * In format 1 records have no length and end at the line feed; they are read as they were. */
#ifndef BASIN_DATA_NETWORK_JOURNAL_H
#define BASIN_DATA_NETWORK_JOURNAL_H

#include <stdatomic.h>

#include "base/file.h"
#include "base/json.h"
#include "tasks/nodes/network/network.h"

/* ---- additions.c ---- */

/* What may be added. Records of a journal were let in before: none of it is asked of them. */
typedef struct basin_door {
    double latest; /* days since 1970, of dates */
    bool any_kind; /* values of categories and relations that the base does not have */
} basin_door;

/* Additions as tables, in all columns of the base; with only the schema it is empty. */
typedef struct basin_additions {
    const basin_schema *schema; /* the base's */
    const basin_door *door;     /* or NULL */
    int64_t rows[2];            /* accounts, edges */
    char *table[2];             /* exact CSV with a heading; NULL where there are no rows */
    basin_memory_file file[2];  /* until they are finished */
} basin_additions;

/* Adds the rows of {"accounts":[..], "edges":[..]}. "id", "source" and "target" may stand for the
 * names that the schema has for them; a column that an object lacks is a gap. In the tree, texts of
 * numbers become numbers and dates ISO 8601, so that it has no decimal mark and no format of dates.
 * Errors name the row and the column: BASIN_BAD_FILE where the tree is not of that form,
 * BASIN_BAD_VALUE for values. `path` is what they call the tree. Free it even after an error. */
basin_status basin_additions_put(basin_additions *additions, cJSON *tree, const char *path,
                                 basin_error *error);
basin_status basin_additions_finish(basin_additions *additions, basin_error *error);
/* A table of edges without rows, where there is no addition. */
basin_status basin_additions_put_none(basin_additions *additions, basin_error *error);
void basin_additions_free(basin_additions *additions);

/* ---- journal.c ---- */

typedef struct basin_journal {
    char *path;
    int fd;             /* -1: there is none */
    bool made;          /* by opening it */
    atomic_bool broken; /* what is on the disk is not known; nothing is appended any more */
    int64_t records;    /* additions that were not taken back */
    int64_t bytes;      /* where the next record begins */
    int64_t first;      /* where the first addition begins */
    int64_t dropped;    /* bytes of a torn tail that were cut off when it was opened */
    int64_t *undone;    /* [undones] where records begin that were taken back; ascending */
    size_t undones, undone_capacity;
} basin_journal;

/* Opens a journal of the base of that SHA-256, makes it where it is absent, and cuts off a torn
 * tail: what follows the last line feed and is not a whole record. A journal of another base, one
 * that another process has open, and one with a damaged record that was not taken back are errors.
 * `fixed`: it is only read, and an absent one is empty. Without a digest the journal of any base is
 * opened as it is, damaged or not. */
basin_status basin_journal_open(basin_journal **journal, const char *path, const char *digest,
                                bool fixed, basin_error *error);
void basin_journal_close(basin_journal *journal);
/* Closes it where its server does not start: a file that opening made, and to which nothing was
 * added, is removed. */
void basin_journal_abandon(basin_journal *journal);

typedef enum basin_entry_kind {
    BASIN_ENTRY_ADDITION,
    BASIN_ENTRY_UNDO,
    BASIN_ENTRY_DAMAGED, /* bytes that are not a record */
} basin_entry_kind;

typedef struct basin_journal_entry {
    int64_t number, at, size; /* from 1, counted from where the listing began; bytes */
    const char *json;
    size_t length;
    basin_entry_kind kind;
    bool undone;
} basin_journal_entry;

/* Hands out what is in the file from byte `from` (0: the first addition) to `to`. */
typedef basin_status basin_journal_take(void *context, const basin_journal_entry *entry,
                                        basin_error *error);
basin_status basin_journal_each(const basin_journal *journal, int64_t from, int64_t to,
                                basin_journal_take *take, void *context, basin_error *error);
/* The additions that were not taken back, with their name in errors. */
typedef basin_status basin_journal_apply(void *context, cJSON *addition, const char *what,
                                         basin_error *error);
basin_status basin_journal_replay(const basin_journal *journal, int64_t from, int64_t to,
                                  basin_journal_apply *apply, void *context, basin_error *error);
/* Appends, or leaves the file as before; it is on the disk after basin_journal_sync. Both fail
 * where the file was moved, removed or changed by others. */
basin_status basin_journal_append(basin_journal *journal, const cJSON *addition,
                                  basin_error *error);
basin_status basin_journal_sync(basin_journal *journal, basin_error *error);
/* Takes back entry `number` of the listing from 0, by a record. */
basin_status basin_journal_undo(basin_journal *journal, int64_t number, basin_error *error);

/* Whether a file is a journal; and all its additions, for its base of that digest. */
bool basin_journal_is(const char *path);
basin_status basin_journal_tables(basin_additions *additions, const char *path, const char *digest,
                                  basin_error *error);

#endif
