/* Strings by number, in an open table with linear probing, never more than half full. */
#include "data/network/csv/dictionary.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static uint64_t hash(const char *text) {
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *text; text++) h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return h ^ h >> 32;
}

static const char *name_of(const basin_dictionary *x, int32_t number) {
    return x->names.names.text + x->names.names.at[number];
}

/* Where `text` is, or the free place where it would be. */
static size_t place(const basin_dictionary *x, const char *text) {
    size_t at = (size_t)hash(text) & (x->slots - 1);
    while (x->slot[at] && strcmp(name_of(x, x->slot[at] - 1), text) != 0)
        at = (at + 1) & (x->slots - 1);
    return at;
}

int32_t basin_dictionary_find(const basin_dictionary *dictionary, const char *text) {
    return dictionary->slots ? dictionary->slot[place(dictionary, text)] - 1 : -1;
}

static bool grow(basin_dictionary *x) {
    size_t slots = x->slots ? 2 * x->slots : 64;
    int32_t *slot = slots ? calloc(slots, sizeof *slot) : NULL;
    if (!slot) return false;
    free(x->slot);
    x->slot = slot;
    x->slots = slots;
    for (int64_t i = 0; i < x->names.names.count; i++)
        x->slot[place(x, name_of(x, (int32_t)i))] = (int32_t)i + 1;
    return true;
}

basin_status basin_dictionary_add(basin_dictionary *dictionary, int32_t *number, const char *text,
                                  basin_error *error) {
    int64_t count = dictionary->names.names.count;
    if (2 * (size_t)(count + 1) > dictionary->slots && !grow(dictionary))
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld names", (long long)count);
    size_t at = place(dictionary, text);
    *number = dictionary->slot[at] - 1;
    if (*number >= 0) return BASIN_OK;
    if (count >= BASIN_NETWORK_NODES)
        return basin_fail(error, BASIN_BAD_VALUE, "more than %d names", BASIN_NETWORK_NODES);
    basin_status status = basin_names_add(&dictionary->names, text, strlen(text), error);
    if (status) return status;
    dictionary->slot[at] = (int32_t)count + 1;
    *number = (int32_t)count;
    return BASIN_OK;
}

void basin_dictionary_free(basin_dictionary *dictionary) {
    basin_names_free(&dictionary->names.names);
    free(dictionary->slot);
    *dictionary = (basin_dictionary){0};
}
