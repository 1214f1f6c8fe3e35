/* Lists of strings; dictionaries: open tables with linear probing, at most half full. */
#include "base/dictionary.h"

#include <inttypes.h>

#include "base/hash.h"
#include "base/try.h"

enum { MAX_NAMES = INT32_MAX - 1 };

/* ---- lists ---- */

basin_status basin_names_add(basin_names *names, const char *text, basin_error *error) {
    size_t count = (size_t)names->count, used = count ? (size_t)names->at[count] : 0;
    size_t bytes = strlen(text) + 1;
    if (!BASIN_RESERVE(&names->at, &names->at_capacity, count + 2) ||
        !BASIN_RESERVE(&names->text, &names->text_capacity, used + bytes))
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %zu names", count + 1);
    memcpy(names->text + used, text, bytes);
    names->at[0] = 0;
    names->at[++names->count] = (int64_t)(used + bytes);
    return BASIN_OK;
}

void basin_names_free(basin_names *names) {
    BASIN_FREE(names->at, names->text);
    *names = (basin_names){0};
}

int32_t basin_names_find(const basin_names *names, const char *name) {
    for (int64_t i = 0; i < names->count; i++)
        if (!strcmp(names->text + names->at[i], name)) return (int32_t)i;
    return -1;
}

bool basin_names_are_numbers(const basin_names *names) {
    char text[24];
    for (int64_t i = 0; i < names->count; i++) {
        snprintf(text, sizeof text, "%" PRId64, i);
        if (strcmp(names->text + names->at[i], text) != 0) return false;
    }
    return true;
}

basin_status basin_names_copy(basin_names *to, const basin_names *from, basin_error *error) {
    *to = (basin_names){0};
    for (int64_t i = 0; i < from->count; i++)
        BASIN_TRY(basin_names_add(to, from->text + from->at[i], error));
    return BASIN_OK;
}

/* ---- dictionaries ---- */

static uint64_t hash(const char *text) {
    uint64_t h = basin_hash_text(BASIN_HASH_START, text);
    return h ^ h >> 32;
}

static const char *name_of(const basin_dictionary *x, int32_t number) {
    return x->names.text + x->names.at[number];
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
    for (int64_t i = 0; i < x->names.count; i++)
        x->slot[place(x, name_of(x, (int32_t)i))] = (int32_t)i + 1;
    return true;
}

basin_status basin_dictionary_add(basin_dictionary *dictionary, int32_t *number, const char *text,
                                  basin_error *error) {
    int64_t count = dictionary->names.count;
    if (2 * (size_t)(count + 1) > dictionary->slots && !grow(dictionary))
        return basin_fail(error, BASIN_NO_MEMORY, "out of memory for %lld names", (long long)count);
    size_t at = place(dictionary, text);
    *number = dictionary->slot[at] - 1;
    if (*number >= 0) return BASIN_OK;
    if (count >= MAX_NAMES)
        return basin_fail(error, BASIN_BAD_VALUE, "more than %d names", MAX_NAMES);
    BASIN_TRY(basin_names_add(&dictionary->names, text, error));
    dictionary->slot[at] = (int32_t)count + 1;
    *number = (int32_t)count;
    return BASIN_OK;
}

/* The last one first: no name was placed around one that came after it. */
void basin_dictionary_shorten(basin_dictionary *x, int64_t count) {
    for (int64_t i = x->names.count; i-- > count; x->names.count--)
        x->slot[place(x, name_of(x, (int32_t)i))] = 0;
}

void basin_dictionary_free(basin_dictionary *dictionary) {
    basin_names_free(&dictionary->names);
    free(dictionary->slot);
    *dictionary = (basin_dictionary){0};
}
