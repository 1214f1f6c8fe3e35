/* Categories of characters; see category.h. */
#include "data/text/category.h"

static basin_category of_ascii(uint32_t point) {
    if ((point | 0x20) >= 'a' && (point | 0x20) <= 'z') return BASIN_LETTER;
    if (point >= '0' && point <= '9') return BASIN_NUMBER;
    return point == ' ' || (point >= '\t' && point <= '\r') ? BASIN_SPACE : BASIN_OTHER;
}

/* The last entry that does not lie behind the point. */
basin_category basin_category_of(uint32_t point) {
    if (point < 0x80) return of_ascii(point);
    int low = 0, high = basin_category_entries;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (basin_category_table[middle] >> 2 <= point)
            low = middle;
        else
            high = middle;
    }
    return (basin_category)(basin_category_table[low] & 3);
}
