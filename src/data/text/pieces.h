/* Tokens as bytes: bytes by number, numbers by bytes. */
#ifndef BASIN_DATA_TEXT_PIECES_H
#define BASIN_DATA_TEXT_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct basin_pieces {
    int64_t count;
    char *text;    /* all bytes, one piece behind the other */
    size_t *begin; /* [count + 1] */
    int32_t *slot; /* [slots], a power of two: the number of a piece that can be found, or -1 */
    size_t slots, found;
    size_t text_room, begin_room;
} basin_pieces;

void basin_pieces_free(basin_pieces *pieces);
/* Appends a piece; its number was pieces->count. One that is not `findable` has a number only.
 * false: no memory. */
bool basin_pieces_add(basin_pieces *pieces, const char *bytes, size_t length, bool findable);
/* The number of a findable piece, or -1. */
int64_t basin_pieces_find(const basin_pieces *pieces, const char *bytes, size_t length);

static inline const char *basin_pieces_get(size_t *length, const basin_pieces *pieces, int64_t i) {
    *length = pieces->begin[i + 1] - pieces->begin[i];
    return pieces->text + pieces->begin[i];
}

#endif
