/* Tokens as bytes; see pieces.h. Numbers are found in a hash table with linear probing, which is at
 * most half full. */
#include "data/text/pieces.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { FIRST_SLOTS = 64 };

void basin_pieces_free(basin_pieces *pieces) {
    free(pieces->text);
    free(pieces->begin);
    free(pieces->slot);
    *pieces = (basin_pieces){0};
}

/* FNV-1a, with its high bits folded in since slots are taken from the low ones. */
static size_t hash(const char *bytes, size_t length) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < length; i++) h = (h ^ (unsigned char)bytes[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

/* The slot of a piece, or the free one where it belongs. */
static size_t seek(const basin_pieces *p, const char *bytes, size_t length) {
    size_t at = hash(bytes, length) & (p->slots - 1);
    for (; p->slot[at] >= 0; at = (at + 1) & (p->slots - 1)) {
        size_t size;
        const char *piece = basin_pieces_get(&size, p, p->slot[at]);
        if (size == length && !memcmp(piece, bytes, length)) break;
    }
    return at;
}

static bool grow(basin_pieces *p) {
    size_t slots = p->slots ? 2 * p->slots : FIRST_SLOTS, old = p->slots;
    int32_t *slot = basin_array_new(slots, sizeof *slot), *before = p->slot;
    if (!slot) return false;
    memset(slot, 0xff, slots * sizeof *slot);
    p->slot = slot;
    p->slots = slots;
    for (size_t i = 0; i < old; i++) {
        size_t length;
        if (before[i] < 0) continue;
        const char *bytes = basin_pieces_get(&length, p, before[i]);
        slot[seek(p, bytes, length)] = before[i];
    }
    free(before);
    return true;
}

bool basin_pieces_add(basin_pieces *p, const char *bytes, size_t length, bool findable) {
    size_t used = p->begin ? p->begin[p->count] : 0, count = (size_t)p->count;
    if (p->count == INT32_MAX || (findable && 2 * (p->found + 1) > p->slots && !grow(p)) ||
        !basin_array_reserve((void **)&p->text, &p->text_room, used + length + 1, 1) ||
        !basin_array_reserve((void **)&p->begin, &p->begin_room, count + 2, sizeof *p->begin))
        return false;
    if (findable) {
        p->slot[seek(p, bytes, length)] = (int32_t)p->count;
        p->found++;
    }
    memcpy(p->text + used, bytes, length);
    p->begin[count] = used;
    p->begin[count + 1] = used + length;
    p->count++;
    return true;
}

int64_t basin_pieces_find(const basin_pieces *p, const char *bytes, size_t length) {
    return p->slots ? p->slot[seek(p, bytes, length)] : -1;
}
