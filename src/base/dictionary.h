/* Strings by number: lists, and dictionaries, where each different one gets the next number. */
#ifndef BASIN_BASE_DICTIONARY_H
#define BASIN_BASE_DICTIONARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "basin/status.h"

/* Text by number: entry i is the string at text + at[i]; `at` has one more, the end. */
typedef struct basin_names {
    int64_t count;                     /* 0: none */
    int64_t *at;                       /* [count + 1] */
    char *text;                        /* [at[count]], each entry ends with a zero byte */
    size_t at_capacity, text_capacity; /* of names that were added; 0: they are in a file */
} basin_names;

basin_status basin_names_add(basin_names *names, const char *text, basin_error *error);
/* The number of the first of that name, or -1. */
int32_t basin_names_find(const basin_names *names, const char *name);
/* Whether they are 0, 1, .. */
bool basin_names_are_numbers(const basin_names *names);
basin_status basin_names_copy(basin_names *to, const basin_names *from, basin_error *error);
void basin_names_free(basin_names *names);

typedef struct basin_dictionary {
    basin_names names;
    int32_t *slot; /* [slots] 1 + number, 0 where free; slots is a power of two */
    size_t slots;
} basin_dictionary;

/* The number of `text`, or -1. */
int32_t basin_dictionary_find(const basin_dictionary *dictionary, const char *text);
/* The number of `text`, a new one where it was not there; *number = -1 where there are too many. */
basin_status basin_dictionary_add(basin_dictionary *dictionary, int32_t *number, const char *text,
                                  basin_error *error);
/* Forgets the names from number `count` on. */
void basin_dictionary_shorten(basin_dictionary *dictionary, int64_t count);
void basin_dictionary_free(basin_dictionary *dictionary);

#endif
