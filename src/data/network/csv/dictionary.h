/* Strings by number: each different one gets the next number. */
#ifndef BASIN_DATA_NETWORK_CSV_DICTIONARY_H
#define BASIN_DATA_NETWORK_CSV_DICTIONARY_H

#include "data/network/network.h"

typedef struct basin_dictionary {
    basin_names_builder names;
    int32_t *slot; /* [slots] 1 + number, 0 where free; slots is a power of two */
    size_t slots;
} basin_dictionary;

/* The number of `text`, or -1. */
int32_t basin_dictionary_find(const basin_dictionary *dictionary, const char *text);
/* The number of `text`, a new one where it was not there; *number = -1 where there are too many. */
basin_status basin_dictionary_add(basin_dictionary *dictionary, int32_t *number, const char *text,
                                  basin_error *error);
void basin_dictionary_free(basin_dictionary *dictionary);

#endif
