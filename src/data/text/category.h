/* What regular expressions call \p{L}, \p{N} and \s, by Unicode. */
#ifndef BASIN_DATA_TEXT_CATEGORY_H
#define BASIN_DATA_TEXT_CATEGORY_H

#include <stdint.h>

typedef enum basin_category {
    BASIN_OTHER,
    BASIN_LETTER, /* \p{L} */
    BASIN_NUMBER, /* \p{N} */
    BASIN_SPACE,  /* \s */
} basin_category;

basin_category basin_category_of(uint32_t point);

/* 4 * code point + category where one begins that differs from the one before, ascending. */
extern const uint32_t basin_category_table[];
extern const int basin_category_entries;

#endif
